"""Where the clone of the course is, what installs it, and which lesson a number means.

Standard library only.
"""

from __future__ import annotations

import sys
from pathlib import Path

from mha_course.embedded import quoted

__all__ = ["CourseError", "choose", "find_root", "install_command", "stems"]


class CourseError(Exception):
    """Something that the user can fix; the message is all that they need to read."""


def find_root(start=None):
    """The folder that holds notebooks/: the one around the package, else `start` or its parents.

    Raises: CourseError if there is none, as when the package was installed without its notebooks.
    """
    here = Path(start or Path.cwd()).resolve()
    around_package = Path(__file__).resolve().parent.parent
    if (around_package / "notebooks").is_dir():
        return around_package
    for folder in (here, *here.parents):
        # The number in the name keeps a folder of the reader's own notebooks from being taken.
        if any((folder / "notebooks").glob("[0-9][0-9]_*.ipynb")):
            return folder
    raise CourseError(
        "The notebooks of the course are not here: the package is installed without them. "
        "Clone the course with git and run this command inside the clone."
    )


def install_command(extra=""):
    """What installs the course of this clone into this environment, with one of its extras.

    Raises: CourseError as `find_root` does.
    """
    root = find_root()
    pins = quoted(str(root / "constraints.txt"))
    course = f'"{root}[{extra}]"' if extra else quoted(str(root))
    return f"{quoted(sys.executable)} -m pip install -c {pins} -e {course}"


def stems(root, folders=("notebooks", "exercises"), suffix=".ipynb"):
    """The names of the lessons, such as 04_head_splitting, that `folders` have, in order."""
    return sorted({path.stem for folder in folders for path in (root / folder).glob(f"*{suffix}")})


def choose(word, names):
    """Those of `names` that a user's word means: 4, 04, 04_head_splitting or a path of one.

    Raises: CourseError listing what exists if the word means none of them.
    """
    wanted = Path(word).stem
    if wanted.isdecimal():
        found = [name for name in names if _number(name) == int(wanted)]
    else:
        found = [name for name in names if name == wanted]
    if not found:
        raise CourseError(f"There is no lesson {word}. There are: {', '.join(names) or 'none'}.")
    return found


def _number(name):
    first = name.split("_")[0]
    return int(first) if first.isdecimal() else None
