"""Try an answer on every case of its task, and say what is wrong with it."""

import torch

from mha_course.checks import explanation
from mha_course.checks.compare import compare
from mha_course.checks.earlier import blame_earlier
from mha_course.checks.feedback import Feedback
from mha_course.checks.outcome import observe, observe_known, same
from mha_course.checks.praise import praise
from mha_course.checks.recognition import recognise
from mha_course.checks.running import changed_inputs, quiet_state
from mha_course.checks.showing import describe
from mha_course.checks.stages import first_wrong_stage
from mha_course.checks.task import Case, Draw

__all__ = ["diagnose_task"]

FINAL = (
    "unwritten",
    "borrowed",
    "timeout",
    "not repeatable",
    "strange",
)  # no need to look at the other cases
PRINTED = "It prints while it runs. That does no harm here, but whoever calls it gets the text too."
WARNED = "It works, with a warning: {}"


def diagnose_task(task, answer, seed=0):
    """Try `answer` on every case of `task` and return the Feedback."""
    if not callable(answer) or (task.kind == "class") != isinstance(answer, type):
        message = f"{task.name} has to be a {task.kind}, got {describe(answer)}."
        return Feedback(task.id, "type", message)
    with quiet_state():
        feedback = _try_cases(task, answer, seed)
        if feedback.passed or feedback.kind == "borrowed":
            return feedback
        return blame_earlier(task, answer, feedback, lambda: _try_cases(task, answer, seed), seed)


def _try_cases(task, answer, seed):
    cases = task.cases(Draw(seed))
    outcomes, first, remarks = [], None, []
    for index, case in enumerate(cases):
        outcomes.append(observe(task, answer, case))
        failed, new = _judge(task, answer, case, outcomes[-1])
        remarks += new
        if failed and first is None:
            first = index, failed
        if first and first[0] == index and failed.kind in FINAL:
            return failed
    if first is None:
        kept = _kept_from_before(task, answer, cases)
        if kept:
            return kept
        count = "1 case" if len(cases) == 1 else f"{len(cases)} cases"
        said = tuple(dict.fromkeys(filter(None, [*remarks, praise(task, answer, cases[0])])))
        return Feedback(task.id, "passed", f"right in {count}.", remarks=said)
    index, failed = first
    known = recognise(task, cases, outcomes, index, seed)
    if known:
        return explanation.of_mistakes(task, failed, known)
    if failed.kind not in ("value", "nan", "shape", "raises") or any(
        word in failed.message for word in ("dtype", "TypeError", "ends Python")
    ):
        return failed
    stage = first_wrong_stage(task, answer, cases, outcomes, index)
    return explanation.of_stage(failed, stage)


def _judge(task, answer, case, outcome):
    """Return (the Feedback if this case fails or None, the remarks if it is right)."""
    if outcome.error is not None:
        return explanation.of_exception(task, case, outcome.error), []
    try:
        failed, remarks = _compared(task, case, outcome)
        repeated = same(task, outcome, observe(task, answer, case, watch=False))
    except Exception:  # sparse, nested, on the meta device: it has no numbers to look at
        return explanation.of_strange_value(task, case, outcome.value), []
    if outcome.changed:
        return explanation.of_changes(task, case, outcome.changed), []
    return (failed, remarks) if repeated else (explanation.of_repetition(task, case), [])


def _compared(task, case, outcome):
    """The same for a single call that came to its end."""
    expected = observe_known(task, task.reference, case).value
    difference, remarks = compare(expected, outcome.value, task.returns, task.tolerance)
    if difference:
        return explanation.of_difference(task, case, difference), []
    remarks = [*remarks, *([PRINTED] if outcome.printed else [])]
    return None, [*remarks, *(WARNED.format(text) for text in outcome.warned)]


def _kept_from_before(task, answer, cases):
    """The Feedback if an answer fails for other numbers of the shapes that it has just passed."""
    for case in cases:
        turned = {name: _reversed(X) for name, X in case.inputs.items()}
        if changed_inputs(turned, case.inputs):
            other = Case(f"{case.name}, with all numbers in reverse order", turned)
            if observe_known(task, task.reference, other).error is not None:
                continue  # there is no such input
            failed, _ = _judge(task, answer, other, observe(task, answer, other, watch=False))
            if failed:
                return explanation.of_memory(task, failed)
    return None


def _reversed(X):
    return X.flip(tuple(range(X.dim()))) if torch.is_tensor(X) else X
