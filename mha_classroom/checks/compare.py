"""Where two values first differ. Runs no learner's code, only reads what it returned."""

import numbers
import re
from dataclasses import dataclass, field, replace
from fractions import Fraction

import torch

from mha_classroom.checks.showing import describe, listed, plain_number, show_both, tell_apart

__all__ = ["FLOAT", "FLOAT32_TOLERANCE", "Difference", "compare", "is_plural", "pairs_of"]

FLOAT32_TOLERANCE = 1e-4
EXACT = 1e-9  # what is further off than this, and let through, gets a remark
LOST = ", and digits are lost there"
FEW, LONG = 3, 40  # names, and letters of each, that are quoted of what nobody asked for
SHORT = 36  # numbers of a tensor that are shown beside another shape
PLAIN = (bool, str, type(None))  # what is compared as it is; other objects by their type only


@dataclass(frozen=True)
class Difference:
    """The first difference: its kind (type, shape, dtype, nan, value), a sentence, both values."""

    kind: str
    message: str
    yours: str = ""
    expected: str = ""
    name: str = ""  # of the part that differs, where there are several
    # What is expected and yours, if these are tensors.
    tensors: tuple = field(default=(), repr=False, compare=False)


def compare(expected, got, names, tolerance):
    """Return the first Difference between what is expected and what an answer returned, or None,
    and the remarks on a right answer of an unusual kind.

    names: how to call the parts in sentences; one for each element of a tuple.
    tolerance: the largest |yours - expected| / max(1, |expected|) that is right.
    """
    remarks = []
    for name, want, have in pairs_of(expected, got, names):
        if isinstance(have, Difference):
            return have, ()
        difference = _compare_one(name, want, have, tolerance, remarks)
        if difference:
            several = isinstance(expected, (tuple, list, dict))
            return replace(difference, name=name if several else ""), ()
    return None, tuple(dict.fromkeys(remarks))


def pairs_of(expected, got, names):
    """Yield (name, expected, yours) for each part; a Difference in place of what is not there."""
    if isinstance(expected, (tuple, list)):
        if not isinstance(got, (tuple, list)) or len(got) != len(expected):
            wanted = f"{len(expected)} values have to be returned: {listed(names)}"
            yield "", None, Difference("type", f"{wanted}; got {describe(got)}")
            return
        if len(names) != len(expected):  # a mistake may return more parts than were asked for
            names = [f"value {number}" for number in range(len(expected))]
        yield from zip(names, expected, got, strict=True)
    elif isinstance(expected, dict):
        if not isinstance(got, dict):
            yield "", None, Difference("type", f"a dict has to be returned; got {describe(got)}")
            return
        missing = [key for key in expected if key not in got]
        if missing:
            message = f"the dict that is returned has no {', '.join(map(repr, missing))}"
            others = [key[:LONG] for key in got if type(key) is str and key not in expected]
            if others:
                message += f"; nobody asked for {', '.join(map(repr, others[:FEW]))}"
            yield "", None, Difference("type", message)
            return
        yield from ((str(key), expected[key], got[key]) for key in expected)
    else:
        yield names[0], expected, got


def _compare_one(name, want, have, tolerance, remarks):
    if torch.is_tensor(want):
        return _compare_tensors(name, want, have, tolerance, remarks)
    if isinstance(want, bool) and isinstance(have, bool):
        # The name of what is asked whether it holds is a sentence.
        should, does = ("should", "does not") if want else ("should not", "does")
        message = f"this {should} hold, and it {does}: {name}"
        return Difference("value", message) if have != want else None
    if isinstance(want, numbers.Number) and not isinstance(want, bool):
        return _compare_numbers(name, want, have, tolerance, remarks)
    if type(have) is not type(want) or (isinstance(want, PLAIN) and have != want):
        message = f"{name} is {describe(have)}, expected {describe(want)}"
        return Difference("value", message, describe(have), describe(want))
    return None


FLOAT = (  # who is right but for this has not passed
    "Every number is right, and where an int is asked for there is none: / and factors such as 4.0 "
    "make floats, // does not."
)


def _is_int(have):
    """Whether this is an int, or one of NumPy's or PyTorch's."""
    if torch.is_tensor(have):
        return not have.is_floating_point()
    kind = getattr(getattr(have, "dtype", None), "kind", "")
    return isinstance(have, numbers.Integral) or kind in ("i", "u")


def _compare_numbers(name, want, have, tolerance, remarks):
    mine, right = plain_number(have), plain_number(want)
    if mine is None:
        return Difference("type", f"{_have(name)} to be a number, got {describe(have)}")
    if mine != mine:
        return Difference("nan", f"{name} is NaN (not a number)")
    if isinstance(want, int) and mine == right and not _is_int(have):
        remarks.append(FLOAT)
    if mine == right or _near(mine, right, 0 if isinstance(want, int) else tolerance):
        return None
    yours, expected = tell_apart(mine, right)
    return Difference("value", f"{name} is {yours}, which is not right", yours, expected)


def _near(mine, right, tolerance):
    if not isinstance(mine, Fraction) or not isinstance(right, Fraction):  # inf or NaN
        return False
    return abs(mine - right) <= Fraction(tolerance) * max(1, abs(right))


def _compare_tensors(name, want, have, tolerance, remarks):
    if not torch.is_tensor(have):
        return Difference("type", f"{_have(name)} to be a tensor, got {describe(have)}")
    if have.shape != want.shape:
        message = f"{_have(name)} shape {tuple(have.shape)}, expected {tuple(want.shape)}"
        both = show_both(have.detach(), want) if _is_short(want) and _is_short(have) else ()
        return Difference("shape", message, *both, tensors=(want, have))
    have = have.detach().cpu()
    if not _dtype_fits(want.dtype, have.dtype):
        wanted = "a whole-number dtype" if _is_integer(want.dtype) else str(want.dtype)
        return Difference("dtype", f"{_have(name)} dtype {have.dtype}, expected {wanted}")
    if not have.is_floating_point():
        return _difference(name, want, have, have == want)
    if bool(have.isnan().any()) and not bool(want.isnan().any()):
        place = tuple(have.isnan().nonzero()[0].tolist())
        message = f"there is NaN (not a number) in {name}{_first(place)}"
        return Difference("nan", message, *show_both(have, want))
    return _compare_floats(name, want, have, tolerance, remarks)


def _is_short(X):
    """Whether a tensor can be shown as a few numbers."""
    strange = X.layout != torch.strided or X.is_meta or X.is_complex()
    return not strange and X.numel() <= SHORT and X.dim() < (3 if X.numel() else 2)


def _compare_floats(name, want, have, tolerance, remarks):
    off = _distance(want.double(), have.double())
    worst = off.max().item() if off.numel() else 0.0
    if worst > tolerance and (have.dtype != want.dtype or _through_float32(have)):
        tolerance = max(tolerance, FLOAT32_TOLERANCE)
    if worst > tolerance:
        return _difference(name, want, have, off <= tolerance)
    if have.dtype != want.dtype:
        lost = torch.finfo(have.dtype).eps > torch.finfo(want.dtype).eps
        remarks.append(
            f"The inputs are {want.dtype} and {name} came back as {have.dtype}: somewhere a "
            f"tensor is made without the inputs' dtype, or converted{LOST if lost else ''}."
        )
    elif worst > EXACT and want.dtype == torch.float64:
        remarks.append(
            "It is right to the digits of float32, about 7, where 15 can be had: somewhere a "
            "number passes through float32 (a tensor made without the inputs' dtype, or .float()), "
            "or something small is added."
        )
    return None


def _distance(want, have):
    """|yours - expected| / max(1, |expected|), entry by entry; inf from what is not finite to
    anything but itself."""
    off = (have - want).abs() / want.abs().clamp(min=1)
    off = torch.where(want.isfinite() & have.isfinite(), off, torch.inf)
    return torch.where((have == want) | (have.isnan() & want.isnan()), 0.0, off)


def _through_float32(have):
    """Whether every number is one that float32 can hold: made in it, and cast back since."""
    return bool((have.float().to(have.dtype) == have).all())


def _difference(name, want, have, close):
    wrong = (~close).nonzero()
    if not len(wrong):
        return None
    place = tuple(wrong[0].tolist())
    mine, right = tell_apart(have[place].item(), want[place].item())
    wanted = f"{mine}, expected {right}"
    if want.numel() == 1:
        message = f"{name} is {wanted}"
    else:
        kind = "entries" if want.dtype == torch.bool else "numbers"
        numbers = (
            f"{len(wrong)} of {want.numel()} {kind} {'is' if len(wrong) == 1 else 'are'} wrong"
        )
        message = f"{name}: {numbers}{_first(place)}: it is {wanted}"
    return Difference("value", message, *show_both(have, want), tensors=(want, have))


def _have(name):
    """The name and the right one of "has" and "have"."""
    return f"{name} {'have' if is_plural(name) else 'has'}"


def is_plural(name):
    """Whether a part is called by a plural: "the totals", "the beams of each text"."""
    subject = name.partition(" of ")[0].partition(" in ")[0]
    return bool(re.search(r"[^su]s$", subject)) and not re.search(r"\.|bias$", subject)


def _first(place):
    """Where in a tensor something is first found, "" in one number."""
    return f", the first at {list(place)}" if place else ""


def _dtype_fits(want, have):
    if want.is_floating_point:
        return have in (torch.float32, torch.float64)
    return _is_integer(have) if _is_integer(want) else have == want


def _is_integer(dtype):
    return not dtype.is_floating_point and not dtype.is_complex and dtype != torch.bool
