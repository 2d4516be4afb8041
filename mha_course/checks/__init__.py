"""Checks that tell a learner whether an answer is right and where it first goes wrong.

`check(task_id, answer)` stands in the cell after each task; `diagnose` returns the same feedback
without raising; `tasks()` lists the ids. The tasks of a lesson are in the module of its name.
"""

import difflib
import importlib

from mha_course.checks.feedback import Feedback

__all__ = ["CheckFailed", "Feedback", "check", "diagnose", "tasks"]

LESSONS = (
    "attention_math",
    "scaled_dot_product",
    "why_many_heads",
    "head_splitting",
    "parameter_counting",
)


class CheckFailed(AssertionError):
    """Raised by `check` when the answer is wrong. `feedback` says why."""

    def __init__(self, feedback):
        super().__init__(str(feedback))
        self.feedback = feedback

    def _render_traceback_(self):
        # Jupyter shows this instead of the checker's own frames: the feedback stands above it.
        return [f"CheckFailed: {self.feedback.task_id}: {self.feedback.kind}"]


def tasks():
    """Return the ids of all tasks, in the order of the lessons."""
    return list(_all_tasks())


def diagnose(task_id, answer, seed=0):
    """Return the Feedback on an answer, without raising: .passed, .mistake, .message, HTML, text.

    Equal seeds draw equal inputs.
    Raises: ValueError naming the ids that are near if there is no task of this id.
    """
    from mha_course.checks.diagnosis import diagnose_task

    return diagnose_task(find(task_id), answer, seed)


def check(task_id, answer):
    """Show the feedback on an answer, and raise CheckFailed if it is wrong.

    Raises: CheckFailed, an AssertionError; ValueError if there is no task of this id.
    """
    feedback = diagnose(task_id, answer)
    _show(feedback)
    if not feedback.passed:
        raise CheckFailed(feedback)


def find(task_id):
    """Return the Task of this id.

    Raises: ValueError naming the ids that are near if there is none.
    """
    known = _all_tasks()
    if task_id not in known:
        near = difflib.get_close_matches(str(task_id), known, n=3) or list(known)
        raise ValueError(f"there is no task {task_id!r}; did you mean {', '.join(near)}?")
    return known[task_id]


def _all_tasks():
    found = {}
    for lesson in LESSONS:
        for task in importlib.import_module(f"mha_course.checks.{lesson}").TASKS:
            found[task.id] = task
    return found


def _show(feedback):
    try:
        from IPython import get_ipython
        from IPython.display import display
    except ImportError:
        get_ipython = None
    if get_ipython and get_ipython():
        display(feedback)
    elif feedback.passed:
        print(feedback)
