"""Which files were handed in by whom, for which lesson; a folder is read and never trusted."""

import hashlib
import os
from collections import defaultdict
from dataclasses import dataclass, field, replace
from pathlib import Path

from mha_classroom.clone import CourseError
from mha_classroom.grading.handed_in.platform_names import platform_name
from mha_classroom.grading.handed_in.read_notebook import (
    LINK,
    Unreadable,
    label_of,
    problem_of,
    read_submission,
)
from mha_classroom.grading.results import ABSENT

__all__ = ["HandedIn", "find_submissions"]

NOBODYS = {"__MACOSX", ".ipynb_checkpoints", ".git", ".DS_Store", "Thumbs.db", "desktop.ini"}
NBGRADERS = {"submitted", "source", "release", "autograded", "feedback"}
NBGRADERS_OWN = {"timestamp.txt"}
DEEPEST = 4  # folders below a student's own that are looked into
MOST_FILES = 200  # of a student that are looked at
LISTED = 5


@dataclass(frozen=True)
class HandedIn:
    """One student's notebook for one lesson: the unit of work that any machine can grade.

    path: None if nothing was handed in. problem: why it cannot be graded, in words. note: what
    the instructor should know although it can. human: whether someone has to look at it.
    platform: whose download it lies in, "Moodle", "Canvas", "nbgrader" or "" for no one's; number:
    what that calls the student. content: of the file, None until it is read.
    """

    student: str
    lesson: str
    path: Path | None = None
    problem: str = ""
    note: str = ""
    human: bool = False
    platform: str = ""
    number: str = ""
    content: bytes | None = field(default=None, repr=False)

    @property
    def file(self):
        """The file's name and the folder's, "" if there is none."""
        return "/".join(self.path.parts[-2:]) if self.path else ""

    @property
    def marked_late(self):
        """Whether the name that Canvas gave the file says that it is late; None without one."""
        named = platform_name(self.path.name) if self.path and self.platform == "Canvas" else None
        return named and named.late

    def read(self):
        """The same with its content, or with the problem that there is with reading it."""
        if self.problem:
            return self
        try:
            return replace(self, content=read_submission(self.path))
        except (OSError, ValueError) as error:
            return replace(self, problem=str(error))


def find_submissions(folder, names):
    """Return a HandedIn for each student and each of the lessons that anyone handed in, sorted, and
    a line for whatever else lies there.

    folder: has `<student>/<lesson>.ipynb`, or nbgrader's `<student>/<assignment>/<file>.ipynb`,
        or is the folder above nbgrader's `submitted/`, or a download as `platform_name` knows it.
    names: the lessons that there are, such as "04_head_splitting".
    Properties: a lesson's file has its name, or says in its metadata that it is the lesson's.
        Links are not followed, pipes and devices not opened. Contents are not kept.
    Raises: CourseError if the folder cannot be read.
    """
    root, names = _root(Path(folder)), set(names)
    nbgraders = "nbgrader" if root.name == "submitted" else ""
    students, found, outside, aside, lessons = {}, [], [], [], set()
    downloaded = defaultdict(dict)  # {(platform, student): {number: _Files}}
    for entry in _scan(root):
        path, whole = Path(entry.path), _is_folder(entry) or entry.is_symlink()
        named = platform_name(_shown(entry.name), folder=whole)
        if entry.name in NOBODYS:
            aside.append(f"{entry.name}: made by a program, nobody's submission")
        elif named:
            numbers = downloaded[named.platform, named.student]
            files = numbers.setdefault(named.number, _Files(names, named.platform, named.number))
            files.look_into(path) if whole else files.take(path, named.file)
        elif _is_folder(entry) and _is_download(path):
            aside.append(f"{_shown(entry.name)}: a whole download; have it graded by itself")
        elif whole:
            files = _Files(names, nbgraders)
            files.look_into(path)
            if entry.name.startswith(".") and not files.notebooks:
                aside.append(f"{_shown(entry.name)}: no notebook is in it")
            else:
                students[_unlike(_shown(entry.name), students, entry.name)] = files
        elif _is_notebook(entry.name):
            outside += _outside(path, names)
        else:
            aside.append(f"{_shown(entry.name)}: lies beside the students' folders")
    for (platform, student), numbers in downloaded.items():
        for name, files in _told_apart(platform, student, numbers):
            students[_unlike(name, students, f"{platform} {name}")] = files
    for files in students.values():
        lessons |= files.by_lesson.keys()
    for student, files in students.items():
        for lesson in sorted(lessons):
            whose = {"platform": files.platform, "number": files.number}
            found.append(HandedIn(student, lesson, **files.row(lesson), **whose))
    taken = set(students)
    for row in outside:
        name = _unlike(row.student, taken, row.path.name)
        taken.add(name)
        found.append(replace(row, student=name))
    return sorted(found, key=lambda row: (row.student, row.lesson, str(row.path))), aside


def _told_apart(platform, student, numbers):
    """(Name, _Files) of those of one name in a download: several have their numbers behind it.

    Moodle gives a student another number in each assignment. So numbers that have different lessons
    are one student's, of downloads that were put together.
    """
    files = list(numbers.values())
    lessons = [lesson for one in files for lesson in one.by_lesson]
    apart = all(one.by_lesson for one in files) and len(set(lessons)) == len(lessons)
    if len(files) == 1 or (platform == "Moodle" and apart):
        for one in files[1:]:
            files[0].join(one)
        yield student, files[0]
    else:
        yield from ((f"{student} {number}", one) for number, one in numbers.items())


def _unlike(student, others, name):
    """The student's name; where another has it already, with a mark that follows from the folder's
    own, which may differ in what is no text."""
    while student in others:  # somebody may be called what that gives
        student = f"{student} ~{hashlib.sha256(os.fsencode(name)).hexdigest()[:8]}"
    return student


def _root(folder):
    """The folder of the students' folders."""
    below = folder / "submitted"
    try:
        entries = _scan(folder)
        others = {e.name for e in entries if _is_folder(e) and not e.name.startswith(".")}
        if "submitted" in others and others <= NBGRADERS and not below.is_symlink():
            if not any(_is_notebook(entry.name) for entry in _scan(below)):
                return below
    except OSError as error:
        raise CourseError(
            f"The submissions in {folder} cannot be read: {error.strerror}."
        ) from None
    return folder


def _scan(folder):
    with os.scandir(folder) as entries:
        return sorted(entries, key=lambda entry: os.fsencode(entry.name))


def _is_folder(entry):
    return entry.is_dir(follow_symlinks=False)


def _is_notebook(name):
    return name.lower().endswith(".ipynb")


def _is_download(folder):
    """Whether a folder is what a platform gave of many students, and not one student's."""
    try:
        named = [platform_name(_shown(entry.name), _is_folder(entry)) for entry in _scan(folder)]
    except OSError:
        return False
    found = [one for one in named if one]
    return any(one.platform == "Moodle" for one in found) or len({o.number for o in found}) > 1


def _shown(name):
    """A file's name as text that can be written anywhere, also if it is not UTF-8."""
    return os.fsencode(name).decode("utf-8", "backslashreplace")


class _Files:
    """What one student handed in.

    notebooks: paths. by_lesson: {lesson: (those of the right name, those that say they are)}.
    unknown: names of notebooks that do not say what they are. others: of files that are none.
    shown: {path: as it is called to people}. platform, number: as a HandedIn has them.
    """

    def __init__(self, names, platform="", number=""):
        self.names, self.platform, self.number, self.problem = names, platform, number, ""
        self.notebooks, self.by_lesson, self.unknown, self.others = [], {}, [], []
        self.shown = {}

    def look_into(self, folder):
        """Take what lies in a folder of the student's."""
        if folder.is_symlink():
            self.problem = f"the student's folder {LINK}"
            return
        try:
            _scan(folder)
        except OSError as error:
            self.problem = f"the student's folder cannot be read: {error.strerror}"
        else:
            self._look_into(folder, folder, DEEPEST)

    def _look_into(self, folder, top, deeper):
        """Take what looks like a notebook, here and in the folders below."""
        try:
            entries = _scan(folder)
        except OSError:
            # Read later as if it were the file: the row then says what is the matter.
            if folder.name in self.names:
                self._add(folder, folder.name, top)
            return
        for entry in entries:
            if len(self.notebooks) + len(self.others) >= MOST_FILES:
                return
            path = Path(entry.path)
            if entry.name in NOBODYS or entry.name.startswith("."):
                continue
            if entry.is_symlink() and entry.name in self.names:
                self._add(path, entry.name, top)
            elif _is_folder(entry) and not _is_notebook(entry.name):
                if deeper:
                    self._look_into(path, top, deeper - 1)
            else:
                self.take(path, entry.name, top)

    def take(self, path, name, top=None):
        """Take a file that the student named so. top: the student's folder, if there is one."""
        if _is_notebook(name):
            self._add(path, name, top)
        elif name not in NBGRADERS_OWN:
            self.others.append(_shown(name))

    def _add(self, path, name, top):
        """Find out which lesson a notebook is for."""
        self.notebooks.append(path)
        self.shown[path] = _shown(str(path.relative_to(top)) if top else path.name)
        stem = name[: -len(".ipynb")] if _is_notebook(name) else name
        exact = stem in self.names
        lesson = stem if exact else _lesson_of(path, name, self.names, top or path.parent)
        if lesson:
            self.by_lesson.setdefault(lesson, ([], []))[0 if exact else 1].append(path)
        else:
            self.unknown.append(_shown(name))

    def join(self, other):
        """Take what lies in another folder of the student's, which has other lessons."""
        self.by_lesson |= other.by_lesson
        self.shown |= other.shown
        self.unknown += other.unknown
        self.others += other.others
        self.number = ""  # there are two

    def row(self, lesson):
        """Fields of the HandedIn for a lesson."""
        if lesson not in self.by_lesson:
            return self._nothing(lesson)
        right, others = self.by_lesson[lesson]
        paths = _different([*right, *others])
        if len(paths) > 1:
            problem = "several files could be meant, someone has to choose"
            return {"problem": f"{problem}: {self._listed(paths)}", "human": True}
        row = {"path": paths[0], "problem": problem_of(paths[0])}
        if not right:
            row["note"] = f"taken from {self._listed(paths)}, as there is none of the right name"
        return row

    def _listed(self, paths):
        more = [f"and {len(paths) - LISTED} more"] if len(paths) > LISTED else []
        return ", ".join([*(self.shown[path] for path in paths[:LISTED]), *more])

    def _nothing(self, lesson):
        """Where a lesson is not there; what is there instead may be it."""
        if self.problem:
            return {"problem": self.problem, "human": True}
        of_others, there = tuple(self.names - {lesson}), []
        others = [name for name in self.others if not name.startswith(of_others)]
        if self.unknown:
            there.append(f"{', '.join(self.unknown[:LISTED])}, which does not say what it is")
        if others:
            there.append(f"{', '.join(others[:LISTED])}, which is no notebook")
        if not there:
            return {"problem": ABSENT}
        problem = f"no notebook of it was handed in: there is {'; there is '.join(there)}"
        return {"problem": problem, "human": True}


def _different(paths):
    """The first path of each content that there is."""
    found = {}
    for path in paths if len(paths) > 1 else ():
        try:
            content = hashlib.sha256(read_submission(path)).digest()
        except Unreadable:
            content = path
        found.setdefault(content, path)
    return list(found.values()) or paths


def _lesson_of(path, name, names, student):
    """The lesson that a file of another name is for: by its metadata, its folder, its name."""
    try:
        label = label_of(read_submission(path))
    except Unreadable:
        label = None
    if label in names:
        return label
    if path.parent != student and path.parent.name in names:
        return path.parent.name
    starts = [lesson for lesson in names if name.startswith(lesson)]
    return max(starts, key=len, default=None)


def _outside(path, names):
    """A row for a lesson's notebook that lies in no student's folder."""
    stem = path.name[: -len(".ipynb")]
    lesson = stem if stem in names else _lesson_of(path, path.name, names, path.parent)
    problem = "lies beside the students' folders and not in one"
    return [HandedIn(_shown(path.name), lesson, path, problem, human=True)] if lesson else []
