"""Find where an answer first goes wrong."""

import linecache
import traceback
from pathlib import Path

import torch

from mha_course.checks.compare import compare, describe
from mha_course.checks.feedback import Feedback
from mha_course.checks.running import (
    Borrowed,
    changed_inputs,
    copy_inputs,
    quiet_state,
    watch_calls,
)
from mha_course.checks.task import AnswerError, Draw

__all__ = ["diagnose_task"]


def diagnose_task(task, answer, seed=0):
    """Try `answer` on every case of `task` and return the Feedback of the first that fails."""
    if not callable(answer) or (task.kind == "class") != isinstance(answer, type):
        message = f"{task.name} has to be a {task.kind}, got {describe(answer)}."
        return Feedback(task.id, "type", message)
    cases, remarks = task.cases(Draw(seed)), []
    with quiet_state():
        for case in cases:
            failed, new = _try_case(task, answer, case)
            if failed:
                return failed
            remarks += new
    count = "1 case" if len(cases) == 1 else f"{len(cases)} cases"
    return Feedback(task.id, "passed", f"right in {count}.", remarks=tuple(dict.fromkeys(remarks)))


def _try_case(task, answer, case):
    expected = task.run(task.reference, copy_inputs(case.inputs))
    given = copy_inputs(case.inputs)
    try:
        with watch_calls(task.forbidden):
            got = _frozen(task.run(answer, given))
            again = _frozen(task.run(answer, copy_inputs(case.inputs)))
    except Exception as error:
        return _explain_exception(task, case, error), ()
    where = _describe_case(task, case)
    changed = changed_inputs(given, case.inputs, task.changes)
    if changed:
        message = (
            f"{task.name} changes the caller's {' and '.join(changed)}. Whoever calls it still "
            "needs the old numbers: work on a new tensor."
        )
        return Feedback(task.id, "changed inputs", message, (where,)), ()
    difference, remarks = compare(expected, got, task.returns, task.tolerance)
    if difference:
        return _explain_difference(task, case, difference), ()
    if compare(got, again, task.returns, task.tolerance)[0]:
        message = f"{task.name} gives two different results for the same inputs, one after another."
        return Feedback(task.id, "not repeatable", message, (where,)), ()
    return None, remarks


def _explain_difference(task, case, difference):
    message = f"{difference.message[0].upper()}{difference.message[1:]}."
    if task.secret:
        return Feedback(task.id, difference.kind, message)
    details = [_describe_case(task, case)]
    if difference.yours:
        details.append(("yours", difference.yours))
    if difference.expected:
        details.append(("expected", difference.expected))
    return Feedback(task.id, difference.kind, message, tuple(details))


def _explain_exception(task, case, error):
    if isinstance(error, AnswerError):
        return Feedback(task.id, "type", str(error), (_describe_case(task, case),))
    if isinstance(error, Borrowed):
        name = str(error)
        message = f"The answer calls {name}, which is what this task asks you to write."
        return Feedback(task.id, "borrowed", message)
    own = [f for f in traceback.extract_tb(error.__traceback__) if _is_learners(f.filename)]
    if isinstance(error, NotImplementedError):
        missing = own[-1].name if own else task.name
        if missing in (task.name, "__init__", "forward"):
            message = f"{task.name} is not written yet: replace `raise NotImplementedError()`."
        else:
            message = f"{task.name} calls {missing}, which is not written yet."
        return Feedback(task.id, "unwritten", message)
    message = f"{task.name} raises {type(error).__name__}: {error}"
    details = [_describe_case(task, case)]
    if own:
        line = own[-1].line or linecache.getline(own[-1].filename, own[-1].lineno).strip()
        details.insert(0, (f"at line {own[-1].lineno} of the cell, in {own[-1].name}", line))
    return Feedback(task.id, "raises", message, tuple(details))


def _is_learners(filename):
    ours = filename.startswith(str(Path(__file__).parents[1]))
    return not ours and not {"site-packages", "dist-packages"} & set(Path(filename).parts)


def _describe_case(task, case):
    lines = [f"{name} = {_input_text(X)}" for name, X in case.inputs.items()]
    return (f"case: {case.name}", "\n".join(lines) or f"{task.name}()")


def _input_text(X):
    if torch.is_tensor(X) and X.numel() <= 12:
        shown = X.double().round(decimals=4) if X.is_floating_point() else X
        return str(shown.tolist())
    return describe(X).removeprefix("a ").removeprefix("the number ")


def _frozen(value):
    """The value with its tensors copied, so that a second call cannot change the first result."""
    if torch.is_tensor(value):
        return value.detach().clone()
    if isinstance(value, dict):
        return {key: _frozen(part) for key, part in value.items()}
    if isinstance(value, (tuple, list)):
        return (list if isinstance(value, list) else tuple)(_frozen(part) for part in value)
    return value
