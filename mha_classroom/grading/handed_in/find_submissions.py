"""Which files were handed in by whom, for which lesson; a folder is read and never trusted."""

import hashlib
import os
import re
from dataclasses import dataclass, field, replace
from pathlib import Path

from mha_classroom.clone import CourseError
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
MOODLE = re.compile(r"(?P<student>.+)_(?P<number>\d+)_assignsubmission_\w+$")
CANVAS = re.compile(r"(?P<student>[^_]+)_(?P<late>LATE_)?(?P<number>\d+)_\d+_(?P<name>.+)$")
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
        named = CANVAS.match(self.path.name) if self.path and self.platform == "Canvas" else None
        return named and bool(named["late"])

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
        or is the folder above nbgrader's `submitted/`; what Moodle ("Ann Example_12_assign…") and
        Canvas (one folder of files, "exampleann_12_34_….ipynb") let you download is known, too.
    names: the lessons that there are, such as "04_head_splitting".
    Properties: a lesson's file has its name, or says in its metadata that it is the lesson's.
        Links are not followed, pipes and devices not opened. Contents are not kept.
    Raises: CourseError if the folder cannot be read.
    """
    root, names = _root(Path(folder)), set(names)
    nbgraders = "nbgrader" if root.name == "submitted" else ""
    students, found, outside, aside, lessons = {}, [], [], [], set()
    for entry in _scan(root):
        path = Path(entry.path)
        if entry.name in NOBODYS:
            aside.append(f"{entry.name}: made by a program, nobody's submission")
        elif _is_folder(entry) or entry.is_symlink():
            files = _Files(path, names)
            if entry.name.startswith(".") and not files.notebooks:
                aside.append(f"{_shown(entry.name)}: no notebook is in it")
            else:
                student, files.number = _student_of(entry.name)
                files.platform = "Moodle" if files.number else nbgraders
                students[_unlike(student, students, entry.name)] = files
        elif _is_notebook(entry):
            canvas = CANVAS.match(_shown(entry.name))
            if canvas:
                _of_canvas(students, canvas["student"], canvas["number"], names).add(path)
            else:
                outside += _outside(path, names)
        else:
            aside.append(f"{_shown(entry.name)}: lies beside the students' folders")
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


def _student_of(name):
    """(Who a folder is of, the number that Moodle adds): it also adds what it is."""
    moodle = MOODLE.match(_shown(name))
    return moodle.group("student", "number") if moodle else (_shown(name), "")


def _of_canvas(students, name, number, names):
    """The _Files of a student in Canvas's download: two of one name differ in their numbers."""
    for student in (name, f"{name} {number}"):
        files = students.setdefault(student, _Files(None, names))
        if files.number in ("", number) and files.platform in ("", "Canvas"):
            break
    files.platform, files.number = "Canvas", number
    return files


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
            if not any(map(_is_notebook, _scan(below))):
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


def _is_notebook(entry):
    return entry.name.lower().endswith(".ipynb")


def _shown(name):
    """A file's name as text that can be written anywhere, also if it is not UTF-8."""
    return os.fsencode(name).decode("utf-8", "backslashreplace")


class _Files:
    """What one student handed in.

    notebooks: paths. by_lesson: {lesson: (those of the right name, those that say they are)}.
    unknown: names of notebooks that do not say what they are. others: of files that are none.
    platform, number: as a HandedIn has them.
    """

    platform = number = ""

    def __init__(self, folder, names):
        self.folder, self.names, self.problem = folder, names, ""
        self.notebooks, self.by_lesson, self.unknown, self.others = [], {}, [], []
        if folder is not None and folder.is_symlink():
            self.problem = f"the student's folder {LINK}"
        elif folder is not None:
            try:
                _scan(folder)
            except OSError as error:
                self.problem = f"the student's folder cannot be read: {error.strerror}"
            else:
                self._look_into(folder, DEEPEST)

    def _look_into(self, folder, deeper):
        """Take what looks like a notebook, here and in the folders below."""
        try:
            entries = _scan(folder)
        except OSError:
            # Read later as if it were the file: the row then says what is the matter.
            if folder.name in self.names:
                self.add(folder)
            return
        for entry in entries:
            if len(self.notebooks) + len(self.others) >= MOST_FILES:
                return
            if entry.name in NOBODYS or entry.name.startswith("."):
                continue
            if _is_notebook(entry) or (entry.is_symlink() and entry.name in self.names):
                self.add(Path(entry.path))
            elif _is_folder(entry):
                if deeper:
                    self._look_into(Path(entry.path), deeper - 1)
            elif entry.name not in NBGRADERS_OWN:
                self.others.append(_shown(entry.name))

    def add(self, path):
        """Find out which lesson a notebook is for."""
        self.notebooks.append(path)
        name = CANVAS.sub(r"\g<name>", path.name) if self.folder is None else path.name
        stem = name[: -len(".ipynb")] if name.lower().endswith(".ipynb") else name
        exact = stem in self.names
        lesson = stem if exact else _lesson_of(path, name, self.names, self.folder)
        if lesson:
            self.by_lesson.setdefault(lesson, ([], []))[0 if exact else 1].append(path)
        else:
            self.unknown.append(_shown(path.name))

    def row(self, lesson):
        """Fields of the HandedIn for a lesson."""
        if lesson not in self.by_lesson:
            return self._nothing()
        right, others = self.by_lesson[lesson]
        return self._named(right, others) if right else self._loose(others)

    def _named(self, paths, others):
        """Where the name is right: in the student's own folder, else in one named like it."""
        direct = [path for path in paths if path.parent == self.folder]
        nbgraders = [path for path in paths if path.parent.name == path.stem]
        best = direct or nbgraders or paths
        if len(best) > 1:
            return self._several(best)
        others = [*(path for path in paths if path not in best), *others]
        row = {"path": best[0], "problem": problem_of(best[0])}
        if others:
            note = f"there is also {self._listed(others)}, which was not graded: which one counts?"
            row |= {"note": note, "human": True}
        return row

    def _loose(self, paths):
        if len(paths) > 1:
            return self._several(paths)
        note = f"taken from {self._listed(paths)}, as there is none of the right name"
        return {"path": paths[0], "problem": problem_of(paths[0]), "note": note}

    def _several(self, paths):
        problem = f"several files could be meant, someone has to choose: {self._listed(paths)}"
        return {"problem": problem, "human": True}

    def _listed(self, paths):
        shown = [path.relative_to(self.folder) if self.folder else path.name for path in paths]
        more = [f"and {len(shown) - LISTED} more"] if len(shown) > LISTED else []
        return ", ".join([*(_shown(str(path)) for path in shown[:LISTED]), *more])

    def _nothing(self):
        """Where a lesson is not there; what is there instead may be it."""
        if self.problem:
            return {"problem": self.problem, "human": True}
        problem = ABSENT
        if self.unknown:
            problem += (
                f"; there is {', '.join(self.unknown[:LISTED])}, which does not say what it is"
            )
        if self.others:
            problem += f"; there is {', '.join(self.others[:LISTED])}, which is no notebook"
        return {"problem": problem, "human": bool(self.unknown or self.others)}


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
