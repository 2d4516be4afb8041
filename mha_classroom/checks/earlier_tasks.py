"""An answer that fails only because a function of an earlier task is missing or wrong."""

import dataclasses
import functools
import types
from contextlib import contextmanager

from mha_classroom.checks.feedback import Feedback
from mha_classroom.checks.forbidden import permitted
from mha_classroom.checks.registry import find

__all__ = ["blame_earlier"]

_passed = {}  # {(task id, seed): all functions and classes of the notebook with which it passed}


def blame_earlier(task, answer, failed, try_again, seed, diagnose):
    """Return the Feedback on `answer` that is fair to it.

    If functions of earlier tasks that it may call are wrong where it finds them, it is tried again
    with right ones in their place. Passes then: the fault lies there, and they are named. Fails
    still: its own mistake is named, and they are mentioned.
    try_again: gives the Feedback on `answer` once more. diagnose: `diagnosis.diagnose_task`.
    """
    names = _namespace(answer)
    guilty = _guilty(task, answer, names, seed, diagnose)
    if not guilty:
        return failed
    with _replaced(names, guilty):
        again = try_again()
    if again.kind == "raises" and failed.kind != "raises":
        return failed  # their function of this name is another one: it takes other arguments
    if again.passed:
        for earlier in guilty:  # is each of them needed?
            others = [other for other in guilty if other is not earlier]
            with _replaced(names, others):
                if others and try_again().passed:
                    guilty = others
    listed = " and ".join(f"{earlier.name} ({earlier.id})" for earlier in guilty)
    do, own, them = ("does", "its", "that") if len(guilty) == 1 else ("do", "their", "them")
    if again.passed:
        message = (
            f"{task.name} itself is right. It fails because of {listed}, which it calls and which "
            f"{do} not pass {own} own check yet: fix {them} first."
        )
        return Feedback(task.id, "earlier", message)
    text = f"In this notebook {listed} {do} not pass {own} own check yet either."
    return dataclasses.replace(again, remarks=(*again.remarks, text))


def _guilty(task, answer, names, seed, diagnose):
    """The earlier tasks whose functions are wrong here, other than through yet earlier ones."""
    guilty = []
    kinds = (types.FunctionType, type)
    around = [f for f in names.values() if isinstance(f, kinds) and f is not answer]
    for earlier in map(find, task.uses):
        theirs = names.get(earlier.name)
        library = isinstance(theirs, types.BuiltinFunctionType) or str(
            getattr(theirs, "__module__", "")
        ).startswith(("torch.", "mha_course."))
        if callable(theirs) and theirs is not answer and not library:
            if _unchanged(_passed.get((earlier.id, seed)), around):
                continue
            if diagnose(earlier, theirs, seed).kind in ("passed", "earlier"):
                _passed[earlier.id, seed] = around
            else:
                guilty.append(earlier)
    return guilty


def _unchanged(before, now):
    """Whether these are the same functions: one that is defined again is another one."""
    same_number = before is not None and len(before) == len(now)
    return same_number and all(one is other for one, other in zip(before, now, strict=True))


def _namespace(answer):
    """The module or notebook in which a function, or the methods of a class, look up names."""
    if isinstance(answer, type):
        methods = (m for c in answer.__mro__ for m in vars(c).values())
        answer = next((m for m in methods if isinstance(m, types.FunctionType)), answer)
    return getattr(answer, "__globals__", {})


@contextmanager
def _replaced(names, earlier_tasks):
    before = {earlier.name: names[earlier.name] for earlier in earlier_tasks}
    names.update({earlier.name: _lent(earlier.reference) for earlier in earlier_tasks})
    try:
        yield
    finally:
        names.update(before)


def _lent(reference):
    """The reference, which may call what the learner's answer may not."""

    @functools.wraps(reference)
    def call(*inputs, **options):
        with permitted():
            return reference(*inputs, **options)

    return call
