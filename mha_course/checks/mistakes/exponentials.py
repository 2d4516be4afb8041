"""The known mistakes of lesson 02 about exp, and about what is taken in its place."""

import math

import torch

from mha_course.checks.task import Mistake

__all__ = ["NAIVE_EXP", "OTHER_SHARES"]

PADDING = "Hiding padding"


def _naive(scores, mask, axis):
    e = scores.masked_fill(~mask, -math.inf).exp()
    return e / e.sum(axis, keepdim=True)


def _naive_then_masked(scores, mask, axis):
    e = scores.exp() * mask
    return e / e.sum(axis, keepdim=True)


def _zeros_for_nan(scores, mask, axis):
    return _naive_then_masked(scores, mask, axis).nan_to_num(0.0)


def _one_maximum(scores, mask, axis):
    return _naive(scores - scores.masked_fill(~mask, -math.inf).max(), mask, axis)


def _everywhere(hide):
    """Parts for a softmax that is another one without lengths too."""

    def without_lengths(scores, axis):
        return hide(scores, torch.ones_like(scores, dtype=torch.bool), axis)

    return {"hide": hide, "without_lengths": without_lengths}


NAIVE_EXP = Mistake(
    "naive-exp",
    "Large scores give NaN: you take exp of the scores as they are.",
    "exp(1000) is more than a float64 can hold, and exp(-1000) is 0, so in the end it divides "
    "inf by inf or 0 by 0. A softmax stays the same if one number is taken off a whole row. "
    "Which number keeps exp in bounds?",
    PADDING,
    parts=_everywhere(_naive),
)

OTHER_SHARES = (
    Mistake(
        "naive-exp-then-masked",
        "Large scores give NaN: you take exp of the scores as they are, and mask what comes out.",
        "exp(1000) is more than a float64 can hold, and inf times the 0 of a mask is NaN. A "
        "softmax stays the same if one number is taken off a whole row. Which keeps exp in bounds?",
        PADDING,
        parts=_everywhere(_naive_then_masked),
    ),
    Mistake(
        "naive-exp-nan-to-zeros",
        "Where scores are large, whole rows are empty: you take exp of the scores as they are, and "
        "turn the NaN that comes of it into zeros.",
        "Zeros are for rows with nothing to attend to. These have keys to attend to; exp(1000) is "
        "only more than a float64 can hold. A softmax stays the same if one number is taken off "
        "a whole row. Which keeps exp in bounds?",
        PADDING,
        parts=_everywhere(_zeros_for_nan),
    ),
    Mistake(
        "one-maximum-for-the-table",
        "Rows of scores near -1000 give NaN: you subtract the largest score of the whole tensor.",
        "Next to a 1000 elsewhere, their exp is 0 from end to end, and 0 is divided by 0. Each row "
        "is a softmax of its own.",
        PADDING,
        parts=_everywhere(_one_maximum),
    ),
    Mistake(
        "divided-by-the-sum",
        "You divide the scores by their sum, without exp.",
        "Scores may be negative, and shares may not. exp makes every number positive first.",
        PADDING,
        parts=_everywhere(lambda s, m, axis: s * m / (s * m).sum(axis, keepdim=True)),
    ),
    Mistake(
        "not-divided-by-the-sum",
        "You take exp of the scores and stop there.",
        "These numbers are positive, and 0 where a key is hidden. They do not sum to 1 yet; and "
        "exp(1000) is more than a float64 can hold.",
        PADDING,
        parts=_everywhere(lambda s, m, axis: s.exp() * m),
    ),
    Mistake(
        "sigmoid",
        "You use a sigmoid: each weight is decided alone, and rows do not sum to 1.",
        "Attention is a weighted average: what one key gains the others lose.",
        PADDING,
        parts=_everywhere(lambda s, m, axis: s.sigmoid() * m),
    ),
)
