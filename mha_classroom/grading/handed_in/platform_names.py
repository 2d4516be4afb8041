"""What learning platforms call the files of their downloads: whose they are, and what they are."""

import re
from dataclasses import dataclass

__all__ = ["PlatformName", "platform_name"]

MOODLE = re.compile(r"(?P<student>.+?)_(?P<number>\d+)_assignsubmission_[a-z]+(_(?P<file>.*))?")
CANVAS = (
    # An anonymous one has no name; what stands there is no ID, also if it has digits alone.
    re.compile(r"(?P<late>LATE_)?(?P<number>(?P<student>anon_[^\W_]+))_\d+_(?P<file>.+)"),
    re.compile(r"(?P<student>.+?)_(?P<late>LATE_)?(?P<number>\d+)_\d+_(?P<file>.+)"),
)
AGAIN = re.compile(r"-\d+(?=\.[^.]+$)")  # Canvas's own, for a file that was handed in again


@dataclass(frozen=True)
class PlatformName:
    """What the name of a folder or a file in a download says.

    platform: "Moodle" or "Canvas". number: what it calls the student, or in Moodle the student in
    this assignment. file: as the student named it, "" for a folder. late: what Canvas says of it,
    None for Moodle.
    """

    platform: str
    student: str
    number: str
    file: str = ""
    late: bool | None = None


def platform_name(name, folder=False):
    """Return the PlatformName of a name, None for one that no platform gives.

    Moodle's folders are "Ann Example_12_assignsubmission_file", and its files, where no folders
    were asked for, begin with that. Canvas has files alone: "exampleann_LATE_12_34_….ipynb", and
    "LATE_anon_aB3dE_34_….ipynb" where it does not say whose they are.
    Source: mod/assign/classes/downloader.php of Moodle, lib/content_zipper.rb of Canvas.
    """
    moodle = MOODLE.fullmatch(name)
    if moodle and bool(moodle["file"]) != folder:
        return PlatformName("Moodle", moodle["student"], moodle["number"], moodle["file"] or "")
    canvas = None if folder else next(filter(None, (one.fullmatch(name) for one in CANVAS)), None)
    if canvas is None:
        return None
    file, late = AGAIN.sub("", canvas["file"]), bool(canvas["late"])
    return PlatformName("Canvas", canvas["student"], canvas["number"], file, late)
