"""What has to hold before anything is graded."""

import copy

from mha_classroom.checks.diagnosis import diagnose_task
from mha_classroom.checks.forbidden import named
from mha_classroom.checks.outcome import observe_known, same
from mha_classroom.checks.recognition import wrong_answer
from mha_classroom.checks.running import quiet_state
from mha_classroom.checks.task import Draw
from mha_classroom.clone import CourseError
from mha_classroom.grading.judge.grade_submission import grade_notebook

__all__ = ["SelfCheckFailed", "check_course"]


class SelfCheckFailed(CourseError):
    """Raised when the grading would not grade rightly; says where."""


def check_course(assignment, settings, zygote):
    """Try the grading on what has to come out full, empty and wrong.

    Raises: SelfCheckFailed if the solution does not get all points, with every planned run of each
        task compared; if the exercise as it was handed out, or answers that return nothing, get
        any; if a known mistake is not rejected on the inputs of this run; if a task forbids a name
        that stands for nothing.
    """
    _check_names(assignment)
    with quiet_state():
        _check_mistakes(assignment, settings)
    for what, notebook, full in (
        ("the solution", assignment.solution, True),
        ("the unsolved exercise", assignment.exercise, False),
        ("a set of answers that return None", _empty(assignment), False),
    ):
        graded = grade_notebook(notebook, assignment, settings, zygote)
        for task in graded.tasks:
            right = task.points == (task.max if full else 0)
            if not right or (full and not graded.complete(task.id)):
                raise SelfCheckFailed(
                    f"Nothing was graded: {what} of {assignment.name} gets {task.points:g} of "
                    f"{task.max:g} points for {task.id} ({task.verdict}: {task.feedback.message})."
                )


def _check_names(assignment):
    for task in assignment.tasks.values():
        try:
            for name in task.forbidden:
                named(name)
        except ValueError as error:
            raise SelfCheckFailed(f"Nothing was graded: {task.id}: {error}") from error


def _check_mistakes(assignment, settings):
    """Raise SelfCheckFailed if a known mistake is accepted on the inputs of this run."""
    for task in assignment.tasks.values():
        seed = settings.seed_of(task.id)
        cases = task.cases(Draw(seed))
        right = [observe_known(task, task.reference, case) for case in cases]
        for mistake in task.mistakes:
            wrong = wrong_answer(task, mistake)
            differs = any(
                not same(task, observe_known(task, wrong, case), known)
                for case, known in zip(cases, right, strict=True)
            )
            # Some differ in what is not a result: a second run, a print.
            if not differs and diagnose_task(task, wrong, seed).passed:
                raise SelfCheckFailed(
                    f"Nothing was graded: with seed {settings.seed}, {task.id} accepts the mistake "
                    f"{mistake.id}."
                )


def _empty(assignment):
    """The exercise with answers that take anything and return None."""
    notebook = copy.deepcopy(assignment.exercise)
    for cell in notebook.cells:
        task = assignment.tasks.get(cell.metadata.get("nbgrader", {}).get("grade_id"))
        if task:
            cell.source = (
                f"class {task.name}:\n    def __init__(self, *args, **kwargs):\n        pass"
                if task.kind == "class"
                else f"def {task.name}(*args, **kwargs):\n    pass"
            )
    return notebook
