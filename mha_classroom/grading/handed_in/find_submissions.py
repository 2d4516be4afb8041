"""Which files were handed in by whom, for which lesson; a folder is read and never trusted."""

import os
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

__all__ = ["HandedIn", "find_submissions"]


@dataclass(frozen=True)
class HandedIn:
    """One student's notebook for one lesson: the unit of work that any machine can grade.

    path: None if nothing was handed in. problem: why it cannot be graded, in words. note: what
    the instructor should know although it can. human: whether someone has to look at it.
    content: of the file, None until it is read.
    """

    student: str
    lesson: str
    path: Path | None = None
    problem: str = ""
    note: str = ""
    human: bool = False
    content: bytes | None = field(default=None, repr=False)

    @property
    def file(self):
        """The file's name and the folder's, "" if there is none."""
        return "/".join(self.path.parts[-2:]) if self.path else ""

    def read(self):
        """The same with its content, or with the problem that there is with reading it."""
        if self.problem:
            return self
        try:
            return replace(self, content=read_submission(self.path))
        except (OSError, ValueError) as error:
            return replace(self, problem=str(error))


def find_submissions(folder, names):
    """Return a HandedIn for each student and each of the lessons that anyone handed in, sorted.

    folder: has `<student>/<lesson>.ipynb`, or nbgrader's `<student>/<assignment>/<file>.ipynb`,
        or is the folder above nbgrader's `submitted/`.
    names: the lessons that there are, such as "04_head_splitting".
    Properties: a lesson's file has its name, or says in its metadata that it is the lesson's.
        Links are not followed, pipes and devices not opened, hidden folders not entered. Contents
        are not kept.
    Raises: CourseError if the folder cannot be read, or two students in it have one name.
    """
    root, names = _root(Path(folder)), set(names)
    students, found, lessons = {}, [], set()
    for entry in _entries(root):
        student, path = _shown(entry.name), Path(entry.path)
        if _is_notebook(entry) and not _is_folder(entry):
            found += _outside(path, names)
        elif _is_folder(entry) or entry.is_symlink():
            if student in students:  # a name that is no text, and one that is how it is shown
                raise CourseError(f"Two folders are called {student!r}: rename one of them.")
            students[student] = path
            lessons |= set(_handed_in(path, names)[0])
    for student, path in students.items():
        rows, unknown = _handed_in(path, names)
        for lesson in sorted(lessons):
            row = rows.get(lesson) or _nothing(path, unknown)
            found.append(HandedIn(student, lesson, **row))
    return sorted(found, key=lambda row: (row.student, row.lesson, str(row.path)))


def _root(folder):
    """The folder of the students' folders."""
    below = folder / "submitted"
    try:
        if below.is_dir() and not below.is_symlink() and not any(map(_is_notebook, _scan(below))):
            return below
        _scan(folder)
    except OSError as error:
        raise CourseError(
            f"The submissions in {folder} cannot be read: {error.strerror}."
        ) from None
    return folder


def _scan(folder):
    with os.scandir(folder) as entries:
        return sorted(entries, key=lambda entry: os.fsencode(entry.name))


def _entries(folder):
    return [e for e in _scan(folder) if not e.name.startswith(".") and e.name != "__MACOSX"]


def _is_folder(entry):
    return entry.is_dir(follow_symlinks=False)


def _is_notebook(entry):
    return entry.name.lower().endswith(".ipynb")


def _shown(name):
    """A file's name as text that can be written anywhere, also if it is not UTF-8."""
    return os.fsencode(name).decode("utf-8", "backslashreplace")


def _handed_in(folder, names):
    """({lesson: fields of its HandedIn}, the notebooks that belong to none) of one student."""
    if folder.is_symlink():
        return {}, []
    try:
        files = _notebooks(folder, names)
    except OSError:
        return {}, []
    exact, loose, unknown = {}, {}, []
    for path in files:
        stem = path.name[: -len(".ipynb")] if path.name.lower().endswith(".ipynb") else path.name
        if stem in names:
            exact.setdefault(stem, []).append(path)
            continue
        lesson = _lesson_of(path, names, folder)
        if lesson:
            loose.setdefault(lesson, []).append(path)
        else:
            unknown.append(_shown(path.name))
    rows = {lesson: _loose_row(paths, folder) for lesson, paths in loose.items()}
    return rows | {lesson: _exact_row(paths, folder) for lesson, paths in exact.items()}, unknown


def _notebooks(folder, names):
    """What looks like a notebook in a student's folder and one level below it."""
    found = []
    for entry in _entries(folder):
        if _is_notebook(entry) or (entry.is_symlink() and entry.name in names):
            found.append(Path(entry.path))
        elif _is_folder(entry):
            found += _below(Path(entry.path), entry.name in names)
    return found


def _below(folder, is_lesson):
    try:
        return [Path(entry.path) for entry in _entries(folder) if _is_notebook(entry)]
    except OSError:
        # Read later as if it were the file: the row then says what is the matter.
        return [folder] if is_lesson else []


def _lesson_of(path, names, student):
    """The lesson that a file of another name is for: by its metadata, its folder, its name."""
    try:
        label = label_of(read_submission(path))
    except Unreadable:
        label = None
    if label in names:
        return label
    if path.parent != student and path.parent.name in names:
        return path.parent.name
    starts = [name for name in names if path.name.startswith(name)]
    return max(starts, key=len, default=None)


def _exact_row(paths, folder):
    """Where the name is right: in the student's own folder, else in one named like the lesson."""
    direct = [path for path in paths if path.parent == folder]
    nbgraders = [path for path in paths if path.parent.name == path.stem]
    best = direct or nbgraders or paths
    if len(best) > 1:
        return _several(best, folder)
    others = [path for path in paths if path not in best]
    note = f"there is also {_listed(others, folder)}, which was not looked at" if others else ""
    return {"path": best[0], "problem": problem_of(best[0]), "note": note}


def _loose_row(paths, folder):
    if len(paths) > 1:
        return _several(paths, folder)
    note = f"taken from {_listed(paths, folder)}, as there is none of the right name"
    return {"path": paths[0], "problem": problem_of(paths[0]), "note": note}


def _several(paths, folder):
    problem = f"several files could be meant, someone has to choose: {_listed(paths, folder)}"
    return {"problem": problem, "human": True}


def _listed(paths, folder):
    return ", ".join(_shown(str(path.relative_to(folder))) for path in paths)


def _nothing(folder, unknown):
    """Fields of the row of a student who did not hand a lesson in."""
    problem, human = "nothing was handed in", bool(unknown)
    if unknown:
        problem += f"; there is {', '.join(unknown[:5])}, which does not say what it is"
    if folder.is_symlink():
        return {"problem": f"the student's folder {LINK}", "human": True}
    try:
        _scan(folder)
    except OSError as error:
        problem, human = f"the student's folder cannot be read: {error.strerror}", True
    return {"problem": problem, "human": human}


def _outside(path, names):
    """A row for a lesson's notebook that lies in no student's folder."""
    stem = path.name[: -len(".ipynb")]
    lesson = stem if stem in names else _lesson_of(path, names, path.parent)
    problem = "lies beside the students' folders and not in one"
    return [HandedIn(_shown(path.name), lesson, path, problem, human=True)] if lesson else []
