"""How a value is put into words and digits, whatever an answer returned."""

import itertools
import math
import numbers
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction

import numpy as np
import torch

__all__ = [
    "Opaque",
    "Text",
    "describe",
    "listed",
    "number_text",
    "numbers_text",
    "plain_number",
    "rounded",
    "show_both",
    "tell_apart",
]

SHOWN = 36  # a tensor of up to this many numbers is shown in full
LONG = 10**30  # a whole number of more digits than this is not written out
WIDE, KEYS = 200, 20  # characters of a text, and keys of a dict, that are shown
HUGE = 10_000  # a Decimal of more digits than this would take too long to expand


@dataclass(frozen=True)
class Opaque:
    """What is known of a value that could not be taken over from another process.

    type_name: of its type. description: what it is, in a few words.
    """

    type_name: str
    description: str


class Text(str):
    """A text that stands for what an answer did; shown as it is, or as `shown`, unquoted.

    Two are equal if the texts are, whatever is shown.
    """

    def __new__(cls, text, shown=None):
        made = super().__new__(cls, text)
        made.shown = shown or text
        return made

    def __repr__(self):
        return self.shown


def describe(value):
    """What a value is, in a few words: "a tensor of shape (2, 3)", "None", "a list of length 2"."""
    if value is None or isinstance(value, (bool, np.bool_)):
        return str(value)
    if torch.is_tensor(value):
        kind = str(value.dtype).removeprefix("torch.")
        article = "an" if kind[0] in "aeiou" else "a"
        return f"{article} {kind} tensor of shape {tuple(value.shape)}"
    if isinstance(value, complex):
        return f"the complex number {value!r}"
    if isinstance(value, numbers.Number):
        value = value.item() if isinstance(value, np.generic) else value
        return f"the number {repr(value) if isinstance(value, float) else number_text(value)}"
    if isinstance(value, (tuple, list)):
        return f"a {type(value).__name__} of length {len(value)}"
    if isinstance(value, Text):
        return value.shown
    if isinstance(value, str):
        return f"the text {_beginning(value)}"
    if isinstance(value, dict):
        listed = [_beginning(key) for key in itertools.islice(value, KEYS)]
        more = [f"and {len(value) - KEYS} more"] if len(value) > KEYS else []
        return "a dict with the keys " + ", ".join([*listed, *more])
    if isinstance(value, torch.dtype):
        return f"the dtype {str(value).removeprefix('torch.')}"
    if isinstance(value, Opaque):
        return value.description
    name = type(value).__name__
    return f"an object of type {name}"


def _beginning(value):
    """A value as Python writes it, cut where it is long."""
    text = repr(value[: WIDE + 1] if isinstance(value, str) else value)
    return text if len(text) <= WIDE else f"{text[:WIDE]} …"


def plain_number(value):
    """The number that a value stands for: a Fraction, exact; inf or NaN; None if it is none.

    A number is whatever Python, numpy, `fractions`, `decimal` or a tensor without axes holds;
    True and False are not numbers.
    """
    if getattr(value, "ndim", None) == 0 and hasattr(value, "item"):  # of numpy or torch
        value = value.item()
    if isinstance(value, bool) or not isinstance(value, (numbers.Real, Decimal)):
        return None
    if isinstance(value, Decimal) and value.is_finite() and abs(value.adjusted()) > HUGE:
        value = float(value)
    try:
        return Fraction(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf
    except ValueError:
        return math.nan
    except TypeError:  # a kind of number that others have made
        return None


def number_text(x, digits=6):
    """A number in up to so many digits, also one that Python refuses to write out."""
    if isinstance(x, float):
        return f"{x + 0.0:.{digits}g}"  # without the sign of zero
    if isinstance(x, Fraction) and x.denominator != 1:
        try:
            return number_text(float(x), digits)
        except OverflowError:
            x = int(x)
    if isinstance(x, (int, Fraction)) and abs(x) > LONG:
        return f"about {'-' if x < 0 else ''}10^{math.log10(abs(int(x))):.0f}"
    return f"{x}"


def numbers_text(X, most=8):
    """The numbers of a tensor for a sentence: "0.6, 0.5, 0.4"; of more than `most` the first."""
    texts = [number_text(x, 4) for x in X.flatten().tolist()]
    return ", ".join(texts[:most] + ["…"] * (len(texts) > most))


def tell_apart(one, other):
    """Both numbers as text, with as many digits as it takes to see a difference."""
    for digits in (6, 12, 17):
        if one == other or _in_digits(one, digits) != _in_digits(other, digits):
            break
    return number_text(one, digits), number_text(other, digits)


def _in_digits(x, digits):
    """The same for whole numbers as for others, which `number_text` shortens."""
    return number_text(float(x) if abs(x) < LONG else x, digits)


def show_both(have, want):
    """Two tensors as text, with as many digits as it takes to see a difference."""
    texts = _show(have), _show(want)
    return texts if texts[0] != texts[1] else (_show(have, 10), _show(want, 10))


def rounded(X, decimals=4):
    """A tensor as it is shown: without the sign of zero, and large numbers as they are."""
    if not X.is_floating_point():
        return X
    X = X.double()
    return torch.where(X.abs() < 1e9, X.round(decimals=decimals), X) + 0.0


def _show(X, decimals=4):
    if X.numel() > SHOWN:
        return ""
    shown = rounded(X, decimals)
    return str(shown.tolist()) if X.dim() < 2 else _rows(shown, decimals)


def _rows(X, decimals):
    text = [
        [number_text(x, 6 if decimals == 4 else 12) for x in row]
        for row in X.reshape(-1, X.shape[-1]).tolist()
    ]
    width = max((len(x) for row in text for x in row), default=0)
    lines = ["  ".join(x.rjust(width) for x in row) for row in text]
    size = X.shape[-2] if X.dim() > 2 else len(lines)
    blocks = ["\n".join(lines[i : i + size]) for i in range(0, len(lines), max(size, 1))]
    return "\n\n".join(blocks)


def listed(names):
    """The names in a sentence: a, b and c."""
    *most, last = names
    return " and ".join(filter(None, [", ".join(most), last]))
