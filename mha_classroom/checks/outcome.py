"""What an answer does with one case: its result, or its exception, and what else it did."""

import contextlib
import io
import random
import re
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from mha_classroom.checks.compare import FLOAT32_TOLERANCE, compare
from mha_classroom.checks.forbidden import Borrowed, forbid
from mha_classroom.checks.running import changed_inputs, copy_inputs
from mha_classroom.checks.showing import plain_number
from mha_classroom.checks.time_limit import OutOfTime, time_limit

__all__ = ["Outcome", "examined", "observe", "observe_known", "same"]

SECONDS = 10.0  # for one run of an answer on one case
PRINTED, WARNED = 10_000, 100  # characters and warnings that are kept of one run
BETWEEN_LIBRARIES = "__array__ implementation"  # what NumPy wishes of PyTorch, not of the learner
LONGEST = 1_000  # characters of an exception by which it is known again


@dataclass(frozen=True)
class Outcome:
    """What came of one run. `value` has its tensors copied; `error` is the exception, if any."""

    value: Any = None
    error: BaseException | None = None
    changed: tuple[str, ...] = ()
    printed: str = ""
    warned: tuple[str, ...] = ()


def observe(task, answer, case, watch=True, seconds=None, closely=False):
    """Run `answer` on `case` and return the Outcome; nothing that an answer raises gets out.

    KeyboardInterrupt does: the learner pressed stop.
    seconds: SECONDS unless told. closely: see `forbid`.

    The random generators start anew, so that what comes of it does not depend on what ran before:
    from 0 where it is watched, else from 1, so that a second call of an answer that hangs on chance
    differs from the first.
    """
    start = 0 if watch else 1
    random.seed(start)
    np.random.seed(start)
    torch.default_generator.manual_seed(start)
    given, printed = copy_inputs(case.inputs), _Beginning()
    value, error, called = None, None, []
    with warnings.catch_warnings(record=True) as warned, contextlib.ExitStack() as around:
        warnings.simplefilter("always")
        warnings.filterwarnings("ignore", BETWEEN_LIBRARIES)
        around.enter_context(contextlib.redirect_stdout(printed))
        try:
            forbidden = task.forbidden if watch else ()
            with forbid(forbidden, closely) as called, time_limit(seconds or SECONDS):
                value = frozen(task.run(answer, given))
            value = examined(task, case, value)
        except KeyboardInterrupt:
            raise
        except (Exception, OutOfTime, SystemExit) as caught:
            error = caught
    if called:
        value, error = None, Borrowed(called[0])
    changed = changed_inputs(given, case.inputs, task.changes)
    texts = tuple(str(warning.message) for warning in warned[:WARNED])
    return Outcome(value, error, tuple(changed), printed.getvalue(), texts)


class _Beginning(io.StringIO):
    """Keeps the beginning of what is printed, however much it is."""

    def write(self, text):
        super().write(text[: max(PRINTED - self.tell(), 0)])
        return len(text)


def observe_known(task, answer, case):
    """The same for an answer of the course's own, which neither prints nor hangs."""
    given, value, error = copy_inputs(case.inputs), None, None
    torch.default_generator.manual_seed(0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            value = examined(task, case, frozen(task.run(answer, given)))
        except Exception as caught:
            error = caught
    return Outcome(value, error, tuple(changed_inputs(given, case.inputs, task.changes)))


def examined(task, case, value):
    """What is compared, of what the task's `run` returned on a case."""
    return task.examine(case.inputs, value) if task.examine else value


def same(task, one, other):
    """Whether two outcomes cannot be told apart: equal values, or the same kind of exception."""
    if (one.error is None) != (other.error is None) or one.changed != other.changed:
        return False
    if one.error is not None:
        return _kind(one.error) == _kind(other.error) and _words(one.error) == _words(other.error)
    if _far_apart(one.value, other.value, max(task.tolerance, FLOAT32_TOLERANCE)):
        return False
    if _identical(one.value, other.value):
        return True
    return compare(one.value, other.value, task.returns, task.tolerance)[0] is None


def _far_apart(one, other, tolerance):
    """Whether values surely differ, found out without finding the words for it, which takes long.

    False says nothing, and NaN and inf are no reason.
    """
    if torch.is_tensor(one) and torch.is_tensor(other):
        if one.shape != other.shape or _has_numbers(one) != _has_numbers(other):
            return True
        if not _has_numbers(one):
            return False
        if not one.is_floating_point() or not other.is_floating_point():
            return False
        return bool(((one - other).abs() > 2 * tolerance * one.abs().clamp(min=1)).any())
    if isinstance(one, dict) and isinstance(other, dict):
        return any(_far_apart(one[k], other[k], tolerance) for k in one.keys() & other.keys())
    if isinstance(one, (tuple, list)) and isinstance(other, (tuple, list)):
        return any(_far_apart(a, b, tolerance) for a, b in zip(one, other, strict=False))
    return False


def _identical(one, other):
    """Whether two values are the same whatever they are, right or wrong: NaN equals NaN here."""
    if type(one) is not type(other):
        return False
    if torch.is_tensor(one):
        alike = one.dtype == other.dtype and one.shape == other.shape
        if not alike or not _has_numbers(one):
            return alike
        return torch.allclose(one, other, rtol=0, atol=0, equal_nan=True)
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(_identical(one[k], other[k]) for k in one)
    if isinstance(one, (tuple, list)):
        return len(one) == len(other) and all(map(_identical, one, other))
    number, number_too = plain_number(one), plain_number(other)
    if number is not None and number_too is not None:
        return number == number_too or (number != number and number_too != number_too)
    return bool(one is other or repr(one) == repr(other))


def _has_numbers(X):
    """Whether a tensor has numbers to look at: it is neither sparse nor on the meta device, where
    torch would import its compiler for the attempt."""
    return X.layout == torch.strided and not X.is_meta


def frozen(value):
    """The value with its tensors copied, so that a later call cannot change it."""
    if torch.is_tensor(value):
        return value.detach().clone()
    if isinstance(value, dict):
        return {key: frozen(part) for key, part in value.items()}
    if isinstance(value, (tuple, list)):
        return (list if isinstance(value, list) else tuple)(frozen(part) for part in value)
    return value


def _kind(error):
    """By name, since an exception that came from another process is of a class made here."""
    return type(error).__module__, type(error).__qualname__


def _words(error):
    """The text without what differs from run to run or with the numbers: addresses, decimals."""
    return re.sub(r"0x[0-9a-f]+|\d+\.\d+(e-?\d+)?", "#", str(error)[:LONGEST])
