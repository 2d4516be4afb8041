"""Counts that do not fit into the numbers of a tensor: what two tasks of lesson 05 share."""

import inspect
import numbers

import numpy as np

from mha_classroom.checks.task import known

__all__ = ["in_float32", "small_numbers"]

DIGITS = 1e-6  # relative: float32 keeps seven digits


def in_float32(right):
    """{id: mistake} of counts made in float32. right: the right count of some sizes."""

    def rounded(inputs, value):
        if isinstance(value, bool) or not isinstance(value, numbers.Real):
            return False
        expected = _count(right, inputs)
        return abs(value - expected) <= DIGITS * expected

    return {
        "float32": known(
            "Where your count is long, about its first seven digits are right, and no more.",
            "That is as much as float32 can hold, PyTorch's default dtype. Count with Python's own "
            "whole numbers, which have as many digits as it takes.",
            wrong=lambda *sizes, **more: int(np.float32(right(*sizes, **more))),
            shows=rounded,
        ),
    }


def small_numbers(right):
    """The same, and of counts made in int32."""

    def overflown(inputs, value):
        if isinstance(value, bool) or not isinstance(value, numbers.Real):
            return False
        return value == _in_int32(_count(right, inputs))

    return in_float32(right) | {
        "int32": known(
            "Your count ends at 2,147,483,647 and goes on below 0.",
            "That is all that int32 can hold. Count with Python's own whole numbers, which have "
            "as many digits as it takes.",
            wrong=lambda *sizes, **more: _in_int32(right(*sizes, **more)),
            shows=overflown,
        ),
    }


def _count(right, inputs):
    """The right count of a case, which may leave out one optional size and give the next."""
    given = inspect.signature(right).parameters.items()
    optional = [name for name, parameter in given if parameter.default is not parameter.empty]
    sizes = [size for name, size in inputs.items() if name not in optional]
    return right(*sizes, **{name: inputs[name] for name in optional if name in inputs})


def _in_int32(count):
    return (count + 2**31) % 2**32 - 2**31
