"""The known mistakes of `01-softmax`."""

import math

import torch
from torch.nn import functional as F

from mha_course.checks.mistakes.weighing import WEIGHING, row_sum, zero
from mha_course.checks.task import Mistake

__all__ = ["SOFTMAX"]

SHARES = "From scores to weights"
FORMULA = "Softmax"
SHIFT = "Only differences count"


def _shifted_in_place(x, axis):
    x.sub_(x.amax(axis, keepdim=True))
    return 0.0


SOFTMAX = (
    Mistake(
        "scores-returned",
        "You return the scores as they are.",
        "They are where a softmax begins: they may be negative, and a row of them adds up to "
        "anything. What makes every score positive, and what makes a row add up to 1?",
        FORMULA,
        torch.clone,
    ),
    Mistake(
        "shifted-and-no-more",
        "Half of the way: you take the largest score off each row and stop there.",
        "That keeps the powers in bounds, but no power is taken yet. These numbers are 0 or "
        "negative, and a row of them does not add up to 1.",
        FORMULA,
        lambda x: x - x.amax(-1, keepdim=True),
    ),
    *WEIGHING,
    Mistake(
        "one-maximum-for-the-table",
        "You subtract the same number from all rows: the largest of the whole table.",
        "A row that lies far below it is left with powers that all round to 0, and 0 / 0 is NaN. "
        "Only differences within a row count, so each row can be shifted by a number of its own.",
        SHIFT,
        parts={"shift": lambda x, axis: x.amax()},
    ),
    Mistake(
        "one-sum-for-the-table",
        "You divide by the sum of the whole table: all weights together add up to 1.",
        "Each row is a question of its own and has one unit of attention to share out, however "
        "many other rows there are.",
        FORMULA,
        parts={"total": lambda powers, axis: powers.sum()},
    ),
    Mistake(
        "maximum-of-each-column",
        "You subtract from each number the largest of its column.",
        "The numbers of one row are then shifted by different amounts, which changes the "
        "differences between them. Which way does a row lie?",
        SHIFT,
        parts={"shift": lambda x, axis: x.amax(0, keepdim=True)},
    ),
    Mistake(
        "mean-subtracted",
        "You subtract the mean of each row.",
        "On paper any shift will do. But a score can lie far above the mean, and its power still "
        "overflows: 3000, 0, 0, 0 becomes 2250 and three times -750.",
        SHIFT,
        parts={"shift": lambda x, axis: x.mean(axis, keepdim=True)},
    ),
    Mistake(
        "smallest-subtracted",
        "You subtract the smallest score of each row.",
        "Then all scores are 0 or more, and it is the large ones that overflow. Which score has to "
        "come out as 0, so that no power is above 1?",
        SHIFT,
        parts={"shift": lambda x, axis: x.amin(axis, keepdim=True)},
    ),
    Mistake(
        "largest-without-its-sign",
        "You subtract the largest score without its sign.",
        "Where all scores are near -1000, that moves them down to -2000 instead of up to 0, and "
        "all powers round to 0.",
        SHIFT,
        parts={"shift": lambda x, axis: x.abs().amax(axis, keepdim=True)},
    ),
    Mistake(
        "scores-cut-off",
        "You cut large scores off so that their powers stay finite.",
        "1000 and 1001 both become 700, and the difference between them, which is all that counts, "
        "is gone. They can be moved instead of cut.",
        SHIFT,
        parts={"shift": zero, "power": lambda x: x.clamp(-700, 700).exp()},
    ),
    Mistake(
        "nan-turned-into-0",
        "Where the powers overflow you replace NaN by 0.",
        "The row then has no weights at all. The NaN comes from powers that are too large to be "
        "written down; they must not arise in the first place.",
        SHIFT,
        parts={"shift": zero, "finish": torch.nan_to_num},
    ),
    Mistake(
        "sigmoid-for-exp",
        "You make scores positive with a sigmoid instead of a power of e.",
        "These weights add up to 1. But a sigmoid levels off: 10 and 20 get nearly the same share, "
        "and a shift of all scores changes the weights. For which function does a shift become a "
        "factor, which cancels?",
        SHIFT,
        parts={"power": torch.sigmoid, "shift": zero},
    ),
    Mistake(
        "divided-by-the-largest",
        "You divide the scores by the largest one to make them small.",
        "Dividing changes the differences between scores, and with them the weights; a largest "
        "score of 0 gives NaN, a negative one turns the order round. Which operation makes the "
        "scores small and leaves their differences alone?",
        SHIFT,
        parts={"prepare": lambda x: x / x.amax(-1, keepdim=True), "shift": zero},
    ),
    Mistake(
        "softmax-over-first-axis",
        "Your softmax runs along the first axis: the columns of a table add up to 1.",
        "A row is what lies along the last axis. With one row only, both are the same.",
        FORMULA,
        parts={"axis": 0},
    ),
    Mistake(
        "softmax-over-axis-1",
        "Your softmax runs along axis 1.",
        "In a table that is the last axis; x with more axes has its rows elsewhere, and x with one "
        "axis has no axis 1 at all. Can you name the last axis in a way that always fits?",
        FORMULA,
        parts={"axis": 1},
    ),
    Mistake(
        "softmax-over-the-axis-before",
        "Your softmax runs along the last axis but one: the columns of each table add up to 1.",
        "A row is what lies along the last axis, and each row has to add up to 1.",
        FORMULA,
        parts={"axis": -2},
    ),
    Mistake(
        "sum-loses-its-axis",
        "The axis that you sum over disappears, so the sums stand in a row instead of a column.",
        "Dividing then pairs them with the wrong numbers: where the sizes agree the sum of row 0 "
        "divides column 0, where they do not PyTorch refuses. Each row has to meet its own sum.",
        FORMULA,
        parts={"total": lambda powers, axis: powers.sum(axis)},
    ),
    Mistake(
        "maximum-loses-its-axis",
        "The axis along which you take the maximum disappears, so the maxima stand in a row "
        "instead of a column.",
        "Subtracting then pairs them with the wrong numbers: where the sizes agree the maximum of "
        "row 0 is taken off column 0, where they do not PyTorch refuses.",
        FORMULA,
        parts={"shift": lambda x, axis: x.amax(axis)},
    ),
    Mistake(
        "max-gives-two-things",
        "You subtract all that max returns.",
        "Along an axis, max returns two things: the largest numbers, and where they stand. Only "
        "one of the two can be subtracted from scores.",
        SHIFT,
        parts={"shift": lambda x, axis: x.max(axis, keepdim=True)},
    ),
    Mistake(
        "exp-of-one-number",
        "You give a whole tensor to math.exp.",
        "The functions of math take one number. PyTorch has its own, which take every number of a "
        "tensor at once.",
        FORMULA,
        parts={"power": lambda x: math.exp(x)},
    ),
    Mistake(
        "logarithm-of-the-weights",
        "You return the logarithms of the weights.",
        "They are useful in training, but they are negative and do not add up to 1.",
        FORMULA,
        parts={"finish": torch.log},
    ),
    Mistake(
        "one-hot",
        "You give weight 1 to the largest score and 0 to all others.",
        "That is the dictionary. Softmax is the soft look-up: every score gets a share, and more "
        "if it is larger.",
        SHARES,
        parts={"finish": lambda x: F.one_hot(x.argmax(-1), x.shape[-1]).to(x.dtype)},
    ),
    Mistake(
        "small-number-in-the-sum",
        "You add a small number to the sum.",
        "It is meant to keep the sum away from 0, but every row then adds up to a little less than "
        "1, and 9 digits are asked for. After the right shift, how small can the sum of a row be?",
        SHIFT,
        parts={"total": lambda powers, axis: row_sum(powers, axis) + 1e-8},
    ),
    Mistake(
        "axes-joined",
        "You return one table, whatever axes x had.",
        "The weights are right. The result has to have the shape of x, so that each weight stands "
        "where its score was.",
        FORMULA,
        parts={"finish": lambda weights: weights.reshape(-1, weights.shape[-1])},
    ),
    Mistake(
        "scores-changed-in-place",
        "You change x itself.",
        "Whoever calls softmax still needs the scores. Functions whose names end in _, and -= as "
        "well, write into the tensor that they are given: work on a new one.",
        SHIFT,
        parts={"shift": _shifted_in_place},
    ),
)
