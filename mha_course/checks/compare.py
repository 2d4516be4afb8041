"""Where two values first differ. Runs no learner's code, only reads what it returned."""

import numbers
from dataclasses import dataclass, replace

import torch

__all__ = ["Difference", "compare", "describe"]

FLOAT32_TOLERANCE = 1e-4
PLAIN = (bool, str, type(None))  # what is compared as it is; other objects by their type only
SHOWN = 36  # a tensor of up to this many numbers is shown in full


@dataclass(frozen=True)
class Difference:
    """The first difference: its kind (type, shape, dtype, nan, value), a sentence, both values."""

    kind: str
    message: str
    yours: str = ""
    expected: str = ""
    name: str = ""  # of the part that differs, where there are several


def compare(expected, got, names, tolerance):
    """Return the first Difference between what is expected and what an answer returned, or None,
    and the remarks on a right answer of an unusual kind.

    names: how to call the parts in sentences; one for each element of a tuple.
    """
    remarks = []
    for name, want, have in _pairs(expected, got, names):
        if isinstance(have, Difference):
            return have, ()
        difference = _compare_one(name, want, have, tolerance, remarks)
        if difference:
            several = isinstance(expected, (tuple, list, dict))
            return replace(difference, name=name if several else ""), ()
    return None, tuple(dict.fromkeys(remarks))


def describe(value):
    """What a value is, in a few words: "a tensor of shape (2, 3)", "None", "a list of length 2"."""
    if value is None or isinstance(value, bool):
        return str(value)
    if torch.is_tensor(value):
        kind = str(value.dtype).removeprefix("torch.")
        return f"a {kind} tensor of shape {tuple(value.shape)}"
    if isinstance(value, numbers.Number):
        return f"the number {value!r}"
    if isinstance(value, (tuple, list)):
        return f"a {type(value).__name__} of length {len(value)}"
    if isinstance(value, str):
        return f"the text {value!r}"
    if isinstance(value, dict):
        return "a dict with the keys " + ", ".join(map(repr, value))
    name = type(value).__name__
    return f"an object of type {name}"


def _pairs(expected, got, names):
    """Yield (name, expected, yours) for each part; a Difference in place of what is not there."""
    if isinstance(expected, (tuple, list)):
        if not isinstance(got, (tuple, list)) or len(got) != len(expected):
            wanted = f"{len(expected)} values: {', '.join(names)}"
            yield "", None, Difference("type", f"it has to return {wanted}; got {describe(got)}")
            return
        if len(names) != len(expected):  # a mistake may return more parts than were asked for
            names = [f"value {number}" for number in range(len(expected))]
        yield from zip(names, expected, got, strict=True)
    elif isinstance(expected, dict):
        if not isinstance(got, dict):
            yield "", None, Difference("type", f"it has to return a dict; got {describe(got)}")
            return
        missing = [key for key in expected if key not in got]
        if missing:
            listed = ", ".join(map(repr, missing))
            yield "", None, Difference("type", f"the dict it returns lacks {listed}")
            return
        yield from ((f"{key!r}", expected[key], got[key]) for key in expected)
    else:
        yield names[0], expected, got


def _compare_one(name, want, have, tolerance, remarks):
    if torch.is_tensor(want):
        return _compare_tensors(name, want, have, tolerance, remarks)
    if isinstance(want, numbers.Number) and not isinstance(want, bool):
        return _compare_numbers(name, want, have, tolerance, remarks)
    if type(have) is not type(want) or (isinstance(want, PLAIN) and have != want):
        return Difference(
            "value", f"{name} is {describe(have)}, expected {want!r}", repr(have), repr(want)
        )
    return None


def _compare_numbers(name, want, have, tolerance, remarks):
    if torch.is_tensor(have) and have.dim() == 0:
        have = have.item()
    if isinstance(have, bool) or not isinstance(have, numbers.Real):
        return Difference("type", f"{name} has to be a number, got {describe(have)}")
    if have != have:
        return Difference("nan", f"{name} is NaN (not a number)")
    if isinstance(want, int) and have == want and not isinstance(have, numbers.Integral):
        remarks.append("A count is a whole number: with // instead of / it stays one.")
    limit = 0 if isinstance(want, int) else tolerance * max(1, abs(want))
    if abs(have - want) > limit:
        message = f"{name} is {_number(have)}, which is not right"
        return Difference("value", message, _number(have), _number(want))
    return None


def _compare_tensors(name, want, have, tolerance, remarks):
    if not torch.is_tensor(have):
        return Difference("type", f"{name} has to be a tensor, got {describe(have)}")
    if have.shape != want.shape:
        message = f"{name} has shape {tuple(have.shape)}, expected {tuple(want.shape)}"
        return Difference("shape", message)
    have = have.detach().cpu()
    if not _dtype_fits(want.dtype, have.dtype):
        wanted = "a whole-number dtype" if _is_integer(want.dtype) else str(want.dtype)
        return Difference("dtype", f"{name} has dtype {have.dtype}, expected {wanted}")
    if have.is_floating_point() and bool(have.isnan().any()) and not bool(want.isnan().any()):
        place = tuple(have.isnan().nonzero()[0].tolist())
        message = f"{name} holds NaN (not a number), first at {_index(name, place)}"
        return Difference("nan", message, _show(have), _show(want))
    if want.is_floating_point() and have.dtype != want.dtype:
        tolerance = max(tolerance, FLOAT32_TOLERANCE)
        remarks.append(
            f"The inputs are {want.dtype} and {name} came back as {have.dtype}: somewhere a "
            "tensor is made or converted without saying the dtype, and digits are lost there."
        )
    return _compare_values(name, want, have, tolerance)


def _compare_values(name, want, have, tolerance):
    if want.is_floating_point():
        want, have_64 = want.double(), have.double()
        alike = (have_64 == want) | (have_64.isnan() & want.isnan())  # inf equals inf
        close = alike | ((have_64 - want).abs() <= tolerance * want.abs().clamp(min=1))
    else:
        close = have == want
    wrong = (~close).nonzero()
    if not len(wrong):
        return None
    place = tuple(wrong[0].tolist())
    mine, right = _tell_apart(have[place].item(), want[place].item())
    message = (
        f"{name}: {len(wrong)} of {want.numel()} numbers are wrong, the first at "
        f"{_index(name, place)}: it is {mine}, expected {right}"
    )
    return Difference("value", message, *_show_both(have, want))


def _dtype_fits(want, have):
    if want.is_floating_point:
        return have in (torch.float32, torch.float64)
    return _is_integer(have) if _is_integer(want) else have == want


def _is_integer(dtype):
    return not dtype.is_floating_point and not dtype.is_complex and dtype != torch.bool


def _index(name, place):
    return f"{name}[{', '.join(map(str, place))}]" if place else name


def _tell_apart(one, other):
    texts = _number(one), _number(other)
    return texts if texts[0] != texts[1] else (_number(one, 12), _number(other, 12))


def _number(x, digits=6):
    return f"{x:.{digits}g}" if isinstance(x, float) else f"{x}"


def _show_both(have, want):
    """Both as text, with as many digits as it takes to see a difference."""
    texts = _show(have), _show(want)
    return texts if texts[0] != texts[1] else (_show(have, 10), _show(want, 10))


def _show(X, decimals=4):
    if X.numel() > SHOWN:
        return ""
    shown = X.double().round(decimals=decimals) if X.is_floating_point() else X
    return str(shown.tolist()) if X.dim() < 2 else _rows(shown, decimals)


def _rows(X, decimals=4):
    text = [
        [_number(x, 6 if decimals == 4 else 12) for x in row]
        for row in X.reshape(-1, X.shape[-1]).tolist()
    ]
    width = max((len(x) for row in text for x in row), default=0)
    lines = ["  ".join(x.rjust(width) for x in row) for row in text]
    size = X.shape[-2] if X.dim() > 2 else len(lines)
    blocks = ["\n".join(lines[i : i + size]) for i in range(0, len(lines), max(size, 1))]
    return "\n\n".join(blocks)
