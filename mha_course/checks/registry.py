"""Where the tasks of each lesson are found."""

import difflib
import functools
import importlib

__all__ = ["LESSONS", "find", "forget", "lesson_of", "register", "tasks"]

LESSONS = (
    "attention_math",
    "scaled_dot_product",
    "why_many_heads",
    "head_splitting",
    "parameter_counting",
    "bert_attention",
    "seeing_attention",
    "your_bert",
)


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
    return {
        task.id: (f"{task.id[:2]}_{lesson}", task)
        for lesson in LESSONS
        for task in importlib.import_module(f"mha_course.checks.{lesson}").TASKS
    }
