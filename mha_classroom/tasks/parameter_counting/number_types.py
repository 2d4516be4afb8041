"""Counts that do not fit into the numbers of a tensor: what tasks of lesson 05 share."""

import math
import numbers

import numpy as np

from mha_classroom.checks.task import call, known

__all__ = ["in_floats", "small_numbers"]

DIGITS = 1e-6  # relative: float32 keeps seven digits
LAST_DIGITS = 1e-13  # and float64 fifteen, of which a few operations may lose two


def in_floats(right, run=call):
    """{id: mistake} of counts made in float32, or in Python's floats. right: the right count of
    some sizes. run: the task's, which knows what a case may leave out."""

    def off(inputs, value):
        """How far a count is off, by so much of the right one."""
        if isinstance(value, bool) or not isinstance(value, numbers.Real):
            return math.inf
        expected = run(right, inputs)
        return abs(value - expected) / expected

    def rounded(inputs, value):
        by = off(inputs, value)
        return by == 0 or LAST_DIGITS < by <= DIGITS

    def nearly(inputs, value):
        return off(inputs, value) <= LAST_DIGITS

    return {
        "float32": known(
            "Where your count is long, about its first seven digits are right, and no more.",
            "That is as much as float32 can hold, PyTorch's default dtype. Count with Python's own "
            "whole numbers, which have as many digits as it takes.",
            wrong=lambda *sizes, **more: int(np.float32(right(*sizes, **more))),
            shows=rounded,
        ),
        "floats": known(
            "Your count is right but for its last digits, the fourteenth or later: it is made of "
            "floats, and those are rounded.",
            "Division with / gives a float, and so does a factor such as 1e6 or 0.5, a root or a "
            "logarithm. Whole numbers that are added, multiplied, raised to a power with ** and "
            "divided with // stay exact.",
            wrong=lambda *sizes, **more: math.nextafter(right(*sizes, **more), 0),
            shows=nearly,
        ),
    }


def small_numbers(right, run=call):
    """The same, and of counts made in int32."""

    def overflown(inputs, value):
        if isinstance(value, bool) or not isinstance(value, numbers.Real):
            return False
        return value == _in_int32(run(right, inputs))

    return in_floats(right, run) | {
        "int32": known(
            "Your count ends at 2,147,483,647 and goes on below 0.",
            "That is all that int32 can hold. Count with Python's own whole numbers, which have "
            "as many digits as it takes.",
            wrong=lambda *sizes, **more: _in_int32(right(*sizes, **more)),
            shows=overflown,
        ),
    }


def _in_int32(count):
    return (count + 2**31) % 2**32 - 2**31
