"""What the `examine` functions of the tasks share: they come to an end, whatever a run returned.

What a run returns may have been made by code that wants its marks for nothing. So of each part of
it is asked whether it is there and of the right kind, and nothing is taken for granted.
"""

import functools

import torch

from mha_classroom.checks.showing import listed
from mha_classroom.checks.task import AnswerError

__all__ = [
    "equal",
    "first_wrong",
    "is_floats",
    "is_nonzero",
    "refuse_what_is_not_finite",
    "say_which_heads",
    "total",
]


def total(examine):
    """Make a function of a case's inputs and of what came of a run raise AnswerError or nothing.

    Properties: what it computes is no step of the answer, so that nobody who records torch's
        calls sees it.
    """

    @functools.wraps(examine)
    def examined(inputs, seen):
        try:
            with torch._C.DisableTorchFunction():
                return examine(inputs, seen)
        except AnswerError:
            raise
        except Exception as error:
            raise AnswerError(
                "What came of the answer cannot be judged. Return ordinary tensors and numbers."
            ) from error

    return examined


def equal(one, other):
    """Whether both are floating-point tensors of one shape with the same numbers, none of them NaN.

    float32 and float64 can hold the same.
    """
    if not torch.is_tensor(one) or not torch.is_tensor(other):
        return False
    return is_floats(one, other.shape) and other.is_floating_point() and torch.equal(one, other)


def first_wrong(mine, right):
    """Where the first number is that is wrong: a tuple. What a rounding of float32 may explain
    comes last.

    Raises: IndexError if there is none; RuntimeError for shapes that do not fit together.
    """
    off = (mine.detach().double() - right.double()).abs() / right.abs().clamp(min=1)
    wrong = next((~(off < near) for near in (1e-6, 1e-9) if not (off < near).all()), off < 0)
    return tuple(wrong.nonzero()[0].tolist())


def is_floats(X, shape):
    """Whether X is a floating-point tensor of this shape."""
    return torch.is_tensor(X) and X.is_floating_point() and X.shape == shape


def is_nonzero(X, shape):
    """Whether X is a floating-point tensor of this shape that holds more than zeros."""
    return is_floats(X, shape) and bool(X.any())


def refuse_what_is_not_finite(name, X):
    """Raises: AnswerError for a tensor that holds inf or NaN, and says how such numbers come."""
    if X.isinf().any():
        raise AnswerError(f"{name} holds inf or -inf, and inf · 0 is not a number.")
    if X.isnan().any():
        raise AnswerError(f"{name} holds NaN: 0 / 0 is not a number, and neither is inf · 0.")


def say_which_heads(name, X, before, num_heads, axis, wanted):
    """Of which heads a cut matrix is made, if these are not the `wanted` ones; "" if it is unclear.

    before: the matrix of all heads, whose `axis` holds them side by side.
    """
    whole = before.chunk(num_heads, axis)
    parts = X.split(whole[0].shape[axis], axis)
    found = [next((h for h, W in enumerate(whole) if torch.equal(part, W)), None) for part in parts]
    if None in found or found == list(wanted):
        return ""
    return f"Your {name} holds {_heads(found)}. Asked for: {_heads(wanted)}."


def _heads(numbers):
    return f"head{'s' * (len(numbers) != 1)} {listed([*map(str, numbers)])}"
