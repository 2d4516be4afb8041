"""The known mistakes of lesson 02 about what hides padding, and about the softmax."""

import math

import torch

from mha_course.checks.mistakes.combining import apart
from mha_course.checks.mistakes.exponentials import NAIVE_EXP, OTHER_SHARES
from mha_course.checks.mistakes.late_hiding import HAD_A_SAY, MASK_AFTER_SOFTMAX
from mha_course.checks.mistakes.lengths import LENGTHS, MORE_LENGTHS, compare
from mha_course.checks.task import Mistake

__all__ = ["FILLS", "HIDING", "SOFTMAX", "build_masked_softmax", "filled"]

PADDING = "Hiding padding"
NOTHING = "Nothing to attend to"
OPPOSITE = "True means the opposite next door"


def filled(fill, zeros_last=False):
    """Hide before the softmax, by writing a number over the scores."""

    def hide(scores, mask, axis):
        weights = scores.masked_fill(~mask, fill).softmax(axis)
        return weights * mask if zeros_last else weights

    return hide


right_mask = compare(torch.lt)
hidden_before = filled(-math.inf)


def _only_hidden(scores, valid_lens=None):
    if valid_lens is None:
        return scores.clone()
    return scores.masked_fill(~right_mask(scores, valid_lens), -math.inf)


def _shows_only_hidden(inputs, result):
    scores = inputs["scores"]
    if not torch.is_tensor(result) or result.shape != scores.shape:
        return False
    if "valid_lens" not in inputs:
        return any(torch.allclose(result, X) for X in (scores, scores.softmax(-1)))
    mask = right_mask(scores, inputs["valid_lens"]).expand_as(scores)
    return bool((result[mask] == scores[mask]).all() and (result[~mask] < -1e3).all())


def _in_place(scores, mask, axis):
    scores[~mask.expand_as(scores)] = -math.inf
    return scores.softmax(axis)


def build_masked_softmax(
    see=right_mask,
    hide=hidden_before,
    axis=-1,
    empty=lambda count: 0.0,
    finish=lambda weights: weights,
    without_lengths=torch.softmax,
):
    """Return an answer to `02-masked_softmax`, right unless a part is replaced.

    see: a mask from scores and lengths. hide: weights from scores, a mask and the axis. empty:
    what all that has nothing to share in gets, from how many share. finish: the last step.
    without_lengths: weights from scores and the axis where valid_lens is None.
    """

    def masked_softmax(scores, valid_lens=None):
        if valid_lens is None:
            return finish(without_lengths(scores, axis))
        mask = see(scores, valid_lens)
        weights = hide(scores, mask, axis)
        nothing = ~mask.any(axis, keepdim=True)
        return finish(weights.masked_fill(nothing, empty(scores.shape[axis])))

    return masked_softmax


HIDING = (
    MASK_AFTER_SOFTMAX,
    Mistake(
        "masked-scores-0",
        "You set the scores of hidden keys to 0, or next to 0, and they still get weight.",
        "exp(0) is 1: a score of 0 counts like any other, and above every negative one. "
        "Which score has an exp of 0?",
        PADDING,
        parts={"hide": filled(0.0)},
    ),
    Mistake(
        "masked-scores-0-then-zeros",
        "You set the scores of hidden keys to 0, and at the end their weights: the rows do not "
        "sum to 1.",
        "With a score of 0 a hidden key adds exp(0) = 1 to the sum that the softmax divides by. "
        "The zeros at the end do not take that back.",
        PADDING,
        parts={"hide": filled(0.0, zeros_last=True)},
    ),
    Mistake(
        "mask-of-ones-added",
        "You add a mask of ones and zeros to the scores.",
        "That makes what may be seen a little louder and hides nothing: a difference of 1 is a "
        "factor of e. What has to be added to a score so that its exp is 0?",
        OPPOSITE,
        parts={"hide": lambda s, m, axis: (s + m.double()).softmax(axis)},
    ),
    Mistake(
        "nan-for-length-0",
        "A query with nothing to attend to gives NaN.",
        "All its scores are -inf, so the softmax divides 0 by 0. Such a query learns nothing, and "
        "its row has to say so: zeros.",
        NOTHING,
        parts={"empty": lambda count: math.nan},
    ),
    Mistake(
        "uniform-for-length-0",
        "A query with nothing to attend to spreads its weight evenly over the padding.",
        "A finite fill makes all its scores equal, and equal scores get equal weights. No NaN "
        "warns you, but its output is an average of padding. Such a row has to be zeros.",
        NOTHING,
        parts={"empty": lambda count: 1 / count},
    ),
    Mistake(
        "softmax-over-queries",
        "Your weights sum to 1 down the columns: the softmax runs over the queries.",
        "Each query shares out one unit of attention among the keys, so each row sums to 1. "
        "Which axis of (B, L, S) are the keys?",
        PADDING,
        parts={"axis": -2},
    ),
    NAIVE_EXP,
)

FILLS = (
    Mistake(
        "fill-not-low-enough",
        "Your fill is not low enough: next to scores near -1000, hidden keys get all the weight.",
        "-100 is low among scores around 0, and high among scores around -1000. Is there a number "
        "that is below every score there can be?",
        NOTHING,
        parts={"hide": filled(-100.0)},
    ),
    Mistake(
        "fill-not-low-enough-then-zeros",
        "Your fill is not low enough: next to scores near -1000 hidden keys get all the weight, "
        "and once you write zeros over them the row is empty.",
        "-100 is low among scores around 0, and high among scores around -1000. Is there a number "
        "that is below every score there can be?",
        NOTHING,
        parts={"hide": filled(-100.0, zeros_last=True)},
    ),
)

HALF = (
    Mistake(
        "scores-returned",
        "You return the scores as they are.",
        "A row of weights adds up to 1 and has zeros for what is hidden. Two things are to be done "
        "with the scores: hide, and share out.",
        PADDING,
        lambda scores, valid_lens=None: scores.clone(),
    ),
    Mistake(
        "hidden-and-no-more",
        "Half of the way: you write low numbers over the scores of hidden keys and return that.",
        "Hidden scores are hidden well. What is still missing makes shares of the scores: numbers "
        "from 0 to 1, and 1 in each row.",
        PADDING,
        _only_hidden,
        shows=_shows_only_hidden,
    ),
)

_ALL = (
    *HALF,
    *LENGTHS,
    *MORE_LENGTHS,
    *HIDING,
    *OTHER_SHARES,
    Mistake(
        "masked-scores-1e-9",
        "You fill hidden scores with 1e-9, which is next to 0.",
        "exp(1e-9) is 1: the sign belongs in front of the number, not in its exponent.",
        PADDING,
        parts={"hide": filled(1e-9)},
        twin="masked-scores-0",
    ),
    *FILLS,
    *HAD_A_SAY,
    Mistake(
        "zero-times-infinity",
        "You multiply a mask of zeros and ones by -inf, and 0 times infinity is NaN.",
        "The 0 was meant to leave a score as it is. Look for another way to put a very low number "
        "in some places and leave the others alone.",
        NOTHING,
        parts={
            "hide": lambda s, m, axis: (s + (~m).double() * -math.inf).softmax(axis),
            "empty": lambda count: math.nan,
        },
    ),
    Mistake(
        "scores-changed-in-place",
        "You write into the caller's scores: after the call they are gone.",
        "Whoever calls may still need them, for a second mask or a picture. X[...] = and functions "
        "whose names end in _ write into the tensor they are given.",
        NOTHING,
        parts={"hide": _in_place},
    ),
    Mistake(
        "softmax-over-the-batch",
        "Your softmax runs over the sequences of the batch.",
        "Sequences in a batch have nothing to do with each other. F.softmax without dim takes the "
        "first of three axes. Which one are the keys?",
        PADDING,
        parts={"axis": 0},
    ),
    Mistake(
        "logarithm-of-the-weights",
        "You return the logarithms of the weights.",
        "They are to be multiplied with values, so they have to be shares: from 0 to 1, and 1 in "
        "all. log_softmax is for losses.",
        PADDING,
        parts={"finish": torch.log},
    ),
)

SOFTMAX = apart(
    _ALL,
    build_masked_softmax,
    "one-axis-too-many",
    "keys-counted-from-the-end",
    "length-0-counts-as-1",
    "longest-for-all",
    "lengths-of-queries-only",
    "naive-exp-nan-to-zeros",
    "one-maximum-for-the-table",
    "divided-by-the-sum",
    "not-divided-by-the-sum",
    "sigmoid",
    "fill-not-low-enough-then-zeros",
    "zero-times-infinity",
    "logarithm-of-the-weights",
)
