"""When something was handed in, who says so, and how late that is."""

import math
import os
import re
import stat
import zoneinfo
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta

__all__ = ["Arrival", "arrival_of", "days_late", "read_due"]

DAY = timedelta(days=1)
ISO = re.compile(r"(\d{4}-\d\d-\d\d[ T]\d\d:\d\d(?::\d\d(?:\.\d+)?)?) ?(Z|[+-]\d\d:?\d\d|UTC)?")
DATE = re.compile(r"\d{4}-\d\d-\d\d")
ENGLISH = ("%A, %d %B %Y, %I:%M %p", "%A, %B %d, %Y, %I:%M %p", "%A, %d %B %Y, %H:%M")
MOST_BYTES = 200  # of a timestamp.txt
UNSAID = "Moodle's folders do not say when"


@dataclass(frozen=True)
class Arrival:
    """When a submission was handed in.

    at: the time in ISO format with its zone, "" if nobody says. source: who says it. late: what
    the platform says of it, None if nothing.
    """

    at: str = ""
    source: str = ""
    late: bool | None = None


def read_due(text):
    """The time that `--due` gives, with its zone.

    text: "2026-11-22 23:59", a date for the end of that day; then, if it is not this machine's
        zone, "+01:00" or a name as "Europe/Berlin".
    Raises: ValueError that quotes a text that is no such time.
    """
    words = text.strip().split()
    try:
        zone = zoneinfo.ZoneInfo(words.pop()) if words and "/" in words[-1] else None
        whole = " ".join(words)
        if DATE.fullmatch(whole):
            day = date.fromisoformat(whole) + DAY
            return _in_zone(datetime(day.year, day.month, day.day), zone)
        return _time(whole, zone)
    except (ValueError, OverflowError, zoneinfo.ZoneInfoNotFoundError):
        raise ValueError(
            f"{text!r} is no time such as 2026-11-22, '2026-11-22 23:59' or "
            "'2026-11-22 23:59 Europe/Berlin'"
        ) from None


def _time(text, zone):
    found = ISO.fullmatch(text)
    if not found:
        raise ValueError(text)
    offset = {"Z": "+00:00", "UTC": "+00:00"}.get(found[2], found[2] or "")
    return _in_zone(datetime.fromisoformat(found[1] + offset), zone)


def _in_zone(time, zone):
    """A time that has a zone: its own, or the one given, or this machine's."""
    if time.tzinfo:
        return time
    return time.replace(tzinfo=zone) if zone else time.astimezone()


def arrival_of(handed_in, told="", zone=None):
    """Return the Arrival of a HandedIn; None where nothing was handed in.

    told: what students.csv says of the student, with zone for a time that names none.
    Properties: students.csv comes first, then what the platform's download says: nbgrader's
        timestamp.txt, Canvas's LATE in the name of a file. The time of the file itself is the last,
        and not used of Moodle's download and Canvas's, where it is the time of the download.
    Raises: ValueError that quotes what students.csv says, if it is no time.
    """
    if handed_in.path is None:
        return None
    if told.strip(" -"):
        return Arrival(_iso(_told(told, zone)), "students.csv")
    if handed_in.marked_late is not None:
        return Arrival("", "Canvas's name of the file", handed_in.marked_late)
    if handed_in.platform == "Moodle":
        return Arrival("", UNSAID)
    stamp = _timestamp(handed_in.path.parent) if handed_in.platform == "nbgrader" else None
    if stamp:
        return Arrival(_iso(stamp), "nbgrader's timestamp.txt")
    try:
        seconds = os.lstat(handed_in.path).st_mtime
    except OSError as error:
        return Arrival("", f"the file cannot be read: {error.strerror}")
    try:
        time = datetime.fromtimestamp(seconds, zone).astimezone(zone)
    except (ValueError, OverflowError, OSError):  # an archive may say that it is of the year 9999
        return Arrival("", "the file's time is none")
    return Arrival(_iso(time), "the file's time")


def _told(text, zone):
    """A time as Moodle's worksheet has it, in English, or as `--due` does."""
    text = " ".join(text.split())
    for form in ENGLISH:
        try:
            return _in_zone(datetime.strptime(text, form), zone)
        except ValueError:
            continue
    try:
        return _time(text, zone)
    except ValueError:
        raise ValueError(
            f"{text!r} is no time such as 2026-11-22 23:59 or “Sunday, 22 November 2026, 11:59 "
            "PM” (let Moodle write it in English)"
        ) from None


def _timestamp(folder):
    """What nbgrader wrote down when it took the submission, None if it did not."""
    try:
        file = os.open(folder / "timestamp.txt", os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        with open(file, "rb") as opened:
            if not stat.S_ISREG(os.fstat(file).st_mode):
                return None
            return _time(opened.read(MOST_BYTES).decode().strip(), UTC)
    except (OSError, ValueError):
        return None


def _iso(time):
    return time.isoformat(" ", "seconds")


def days_late(arrival, due):
    """How many days after `due` have begun, 0 if it was in time; None if nobody says.

    Of what is late by an unknown time, 1.
    """
    if not arrival.at:
        return None if arrival.late is None else int(arrival.late)
    return max(0, math.ceil((datetime.fromisoformat(arrival.at) - due) / DAY))
