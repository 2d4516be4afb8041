"""Grade one submission: the unit of work that can be done on any machine."""

import time

from mha_classroom.checks.feedback import Feedback
from mha_classroom.grading.fit.assembly import Unreadable, parse
from mha_classroom.grading.judge.grade_notebook import grade_notebook, task_result

__all__ = ["failed_result", "grade_unit"]


def grade_unit(unit, assignment, settings, zygote):
    """Grade one submission; returns {"result", "seconds", "kernels"}, see `_result` for the result.

    unit: "student", "lesson", "file", "content" (bytes), "problem" (why there is none), "note" and
        "human" (whether the note needs someone).
    """
    started = time.monotonic()
    if unit["problem"]:
        return _outcome(failed_result(unit, assignment, unit["problem"], unit["human"]), started, 0)
    try:
        notebook = parse(unit["content"])
        graded = grade_notebook(notebook, assignment, settings, zygote)
    except Unreadable as error:
        return _outcome(failed_result(unit, assignment, str(error)), started, 0)
    notes = [unit["note"]] if unit["note"] else []
    human = [unit["note"]] if unit["human"] else []
    result = _result(unit, graded.tasks, notes + graded.notes, human + graded.human)
    return _outcome(result, started, graded.kernels)


def failed_result(unit, assignment, problem, human=True):
    """The result of a submission that could not be graded; human: whether someone could mend it."""
    word = "not run" if unit["file"] or human else "missing"  # a link or a folder is something
    tasks = [
        task_result(assignment, name, word, Feedback(name, "not run", "This was not graded."))
        for name in assignment.tasks
    ]
    return _result(unit, tasks, [], [], problem)


def _outcome(result, started, kernels):
    return {"result": result, "seconds": time.monotonic() - started, "kernels": kernels}


def _result(unit, tasks, notes, human, problem=""):
    return {
        **{name: unit[name] for name in ("student", "lesson", "file")},
        "problem": problem,
        "notes": list(dict.fromkeys(notes)),
        "human": list(dict.fromkeys(human)),
        "tasks": tasks,
        "points": sum(task["points"] for task in tasks),
        "max": sum(task["max"] for task in tasks),
    }
