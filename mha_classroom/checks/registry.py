"""Where the tasks of each lesson are found: a folder for each lesson, a file for each task."""

import difflib
import functools
import importlib
import pkgutil
from dataclasses import dataclass

__all__ = [
    "ExerciseSet",
    "exercise_set",
    "find",
    "forget",
    "lesson_of",
    "lessons",
    "register",
    "tasks",
]

FOLDER = "mha_classroom.tasks"


@dataclass(frozen=True)
class ExerciseSet:
    """The tasks of a lesson, and what goes for all of them.

    stem: "04_head_splitting". tasks: in the order of their numbers. version: counts up when a task
    is added or asks for something else. lends: dotted names of what an answer may import of the
    course while it is graded.
    """

    stem: str
    tasks: tuple
    version: int
    lends: tuple[str, ...] = ()


def exercise_set(stem):
    """Return the ExerciseSet of a lesson, "04_head_splitting".

    Raises: ValueError naming the module if there is none.
    """
    name = f"{FOLDER}.{stem.split('_', 1)[-1]}"
    try:
        return _load(name)
    except ModuleNotFoundError as error:
        if error.name != name:
            raise
        raise ValueError(f"there is no module {name}") from None


@functools.cache
def _load(name):
    package = importlib.import_module(name)
    names = [info.name for info in pkgutil.iter_modules(package.__path__)]
    modules = [importlib.import_module(f"{name}.{module}") for module in names]
    found = [module.TASK for module in modules if hasattr(module, "TASK")]
    found = tuple(sorted(found, key=lambda task: task.number))
    stem = f"{found[0].id.split('-')[0]}_{name.rpartition('.')[2]}"
    version = max(task.since for task in found)
    return ExerciseSet(stem, found, version, getattr(package, "LENDS", ()))


_own = {}  # task id: (stem of the exercise set, Task), of an instructor


def register(stem, tasks):
    """Let checks find the tasks of an instructor's own exercise set, in place of earlier ones.

    Raises: ValueError naming an id that the course or another exercise set has.
    """
    others = _of_the_course() | {name: (s, task) for name, (s, task) in _own.items() if s != stem}
    for task in tasks:
        if task.id in others:
            raise ValueError(f"the task id {task.id!r} is one of {others[task.id][0]} already")
    for name in [name for name, (s, _) in _own.items() if s == stem]:
        del _own[name]
    _own.update({task.id: (stem, task) for task in tasks})


def forget(stem):
    """Undo `register`."""
    register(stem, ())


def lessons():
    """Return the stems of the lessons that have an exercise set, in order."""
    return list(dict.fromkeys(stem for stem, _ in _of_the_course().values()))


def tasks():
    """Return the ids of all tasks, in the order of the lessons; registered ones come last."""
    return list(_all_tasks())


def find(task_id):
    """Return the Task of this id.

    Raises: ValueError naming the ids that are near if there is none.
    """
    known = _all_tasks()
    if task_id not in known:
        near = difflib.get_close_matches(str(task_id), known, n=3) or list(known)
        raise ValueError(f"there is no task {task_id!r}; did you mean {', '.join(near)}?")
    return known[task_id][1]


def lesson_of(task_id):
    """Return the stem of the lesson that a task belongs to: "04_head_splitting"."""
    find(task_id)
    return _all_tasks()[task_id][0]


def _all_tasks():
    return _of_the_course() | _own


@functools.cache
def _of_the_course():
    folder = importlib.import_module(FOLDER)
    names = [f"{FOLDER}.{info.name}" for info in pkgutil.iter_modules(folder.__path__)]
    sets = sorted(map(_load, names), key=lambda one: one.stem)
    return {task.id: (one.stem, task) for one in sets for task in one.tasks}
