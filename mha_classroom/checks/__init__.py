"""Checks that tell a learner whether an answer is right and where it first goes wrong.

`check(task_id, answer)` stands in the cell after each task; `diagnose` returns the same feedback
without raising; `tasks()` lists the ids. `Task`, `Case` and `Mistake` are what a task is made of.
"""

from mha_classroom.checks.diagnosis import diagnose_task
from mha_classroom.checks.feedback import Feedback
from mha_classroom.checks.last_cell import not_from_the_last_cell
from mha_classroom.checks.passed_tasks import progress, record
from mha_classroom.checks.registry import find, lessons, tasks
from mha_classroom.checks.task import AnswerError, Case, Mistake, Task

__all__ = [
    "AnswerError",
    "Case",
    "CheckFailed",
    "Feedback",
    "Mistake",
    "Task",
    "check",
    "diagnose",
    "find",
    "lessons",
    "progress",
    "tasks",
]


class CheckFailed(AssertionError):
    """Raised by `check` when the answer is wrong. `feedback` says why."""

    def __init__(self, feedback):
        super().__init__(str(feedback))
        self.feedback = feedback

    def _render_traceback_(self):
        # Jupyter shows this instead of the checker's own frames: the feedback stands above it.
        return [f"CheckFailed: {self.feedback.task_id}: {self.feedback.kind}"]


def diagnose(task_id, answer, seed=0):
    """Return the Feedback on an answer, without raising: .passed, .mistake, .message, HTML, text.

    Equal seeds draw equal inputs.
    Raises: ValueError naming the ids that are near if there is no task of this id.
    """
    return diagnose_task(find(task_id), answer, seed)


def check(task_id, answer):
    """Show the feedback on an answer, and raise CheckFailed if it is wrong.

    In work/ a task that has been tried shows the course's solution too, folded.
    Raises: CheckFailed, an AssertionError; ValueError if there is no task of this id.
    """
    feedback = not_from_the_last_cell(find(task_id), answer)
    solution = None
    if feedback is None:
        feedback = diagnose(task_id, answer)
        if feedback.kind != "unwritten":  # what is not written has not been tried
            solution = record(task_id, feedback.passed)
    _show(feedback, solution)
    if not feedback.passed:
        raise CheckFailed(feedback)


def _show(feedback, solution):
    try:
        from IPython import get_ipython
        from IPython.display import display
    except ImportError:
        get_ipython = None
    if get_ipython and get_ipython():
        display(feedback)
        if solution:
            display(solution)
    elif feedback.passed:
        print(feedback)
