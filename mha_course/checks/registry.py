"""Where the tasks of each lesson are found."""

import difflib
import functools
import importlib

__all__ = ["LESSONS", "find", "lesson_of", "tasks"]

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


def tasks():
    """Return the ids of all tasks, in the order of the lessons."""
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
    return f"{task_id[:2]}_{_all_tasks()[task_id][0]}"


@functools.cache
def _all_tasks():
    return {
        task.id: (lesson, task)
        for lesson in LESSONS
        for task in importlib.import_module(f"mha_course.checks.{lesson}").TASKS
    }
