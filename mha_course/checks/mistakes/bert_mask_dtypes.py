"""The known mistakes of lesson 06 in the dtype of the additive mask."""

import torch

from mha_course.checks.task import Mistake

__all__ = ["MASK_DTYPES", "WRITE", "fill", "lowest"]

ADDED = "A mask that is added"


def fill(value):
    """Write a number that depends on the dtype where something is hidden."""
    return lambda hidden, dtype: torch.zeros(hidden.shape, dtype=dtype).masked_fill(
        hidden, value(dtype)
    )


def lowest(dtype):
    return torch.finfo(dtype).min


WRITE = fill(lowest)


def _by_way_of(way, convert=True):
    """Write the lowest number of one dtype in another; what it does not hold becomes -inf."""

    def write(hidden, dtype):
        made, source = way(dtype)
        low = torch.tensor(lowest(source), dtype=torch.float64).to(made)
        mask = torch.where(hidden, low, torch.zeros((), dtype=made))
        return mask.to(dtype) if convert else mask

    return write


def _filled_in_float32(convert):
    """Fill with the lowest number of the dtype in float32; PyTorch refuses that of float64."""

    def write(hidden, dtype):
        mask = torch.zeros(hidden.shape, dtype=torch.float32).masked_fill(hidden, lowest(dtype))
        return mask.to(dtype) if convert else mask

    return write


MASK_DTYPES = (
    Mistake(
        "lowest-of-float32",
        "You fill with the lowest number of float32 whatever the dtype.",
        "For float64 it is not the lowest, and float16 does not have it. Ask the dtype that was "
        "given.",
        ADDED,
        parts={"write": fill(lambda dtype: torch.finfo(torch.float32).min)},
    ),
    Mistake(
        "dtype-ignored",
        "Your mask is float64 whatever dtype was asked for.",
        "Scores and mask should have one dtype: float64 added to float32 makes float64 of all "
        "that follows.",
        ADDED,
        parts={"write": lambda hidden, dtype: WRITE(hidden, torch.float64)},
    ),
    Mistake(
        "always-float32",
        "Your mask is float32 whatever dtype was asked for.",
        "A tensor that is made without saying its dtype gets PyTorch's default. Its lowest number "
        "depends on the dtype, too.",
        ADDED,
        parts={"write": lambda hidden, dtype: WRITE(hidden, torch.float32)},
    ),
    Mistake(
        "by-way-of-float32",
        "Where float64 is asked for, your mask holds -inf.",
        "A function that is given plain numbers makes PyTorch's default dtype of them, float32, "
        "and the lowest number of float64 does not fit into it. Converting afterwards is too late.",
        ADDED,
        parts={"write": _by_way_of(lambda dtype: (torch.float32, dtype))},
    ),
    Mistake(
        "filled-in-float32",
        "You write the lowest number of the dtype into a float32 tensor.",
        "PyTorch makes float32, its default dtype, where you say no other: of plain numbers given "
        "to where, too. The lowest number of float64 does not fit in, and converting afterwards is "
        "too late.",
        ADDED,
        parts={"write": _filled_in_float32(convert=True)},
    ),
    Mistake(
        "left-in-float32",
        "You ask the right dtype for its lowest number, and the mask is float32 all the same.",
        "PyTorch makes float32, its default dtype, where you say no other: of plain numbers given "
        "to where, too. The lowest number of float64 does not even fit in.",
        ADDED,
        parts={"write": _filled_in_float32(convert=False)},
    ),
    Mistake(
        "lowest-of-float64",
        "You take the lowest number of float64 whatever the dtype.",
        "Converted to a smaller dtype, it becomes -inf. Ask the dtype that was given.",
        ADDED,
        parts={"write": _by_way_of(lambda dtype: (torch.float64, torch.float64))},
    ),
    Mistake(
        "whole-numbers-multiplied",
        "You multiply whole numbers with the lowest number, and the product has PyTorch's default "
        "dtype instead of the one asked for.",
        "In float32 the lowest number of float64 is -inf, and 0 · (-inf) is NaN. Convert before "
        "you multiply.",
        ADDED,
        parts={"write": lambda hidden, dtype: hidden.long() * lowest(dtype)},
    ),
    Mistake(
        "whole-numbers",
        "You return whole numbers.",
        "The mask is added to scores, so it has to be of their dtype. attention_mask holds whole "
        "numbers, and sums and products of these stay whole.",
        ADDED,
        parts={"write": lambda hidden, dtype: -10_000 * hidden.long()},
        shows=lambda inputs, value: value[0].startswith("int"),
    ),
)
