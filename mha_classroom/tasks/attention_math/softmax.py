"""Task 1.1, softmax: scores become weights that sum to 1."""

import math

import torch
from torch.nn import functional as F

from mha_classroom.checks.forms import like
from mha_classroom.checks.task import (
    Case,
    Task,
    and_in_float32,
    by_id,
    known,
    read_again,
    unchanged,
)

# e to the power 709.5 is finite, to the power 711 not: one step down would be enough.
EDGE = "scores of 709, 709.5 and 711"
# Their differences are lost in float32, which has 7 digits.
DIGITS = "scores of 300000.3, 300000 and 299999.6"


def softmax(x):
    return torch.softmax(x, dim=-1)


@and_in_float32
def softmax_cases(draw):
    """Ranks 1 to 4, and scores whose powers overflow or round to 0."""
    large = [[1000.0, 1001, 999], [-1000, -1002, -1000], [0, 1, 2]]
    large = torch.tensor(large, dtype=torch.float64)
    spread = [[3000.0, 0, 2999, -3000], [0, 1, -900, 2], [1000, 1001, 1000, -3000]]
    spread = torch.tensor(spread, dtype=torch.float64)
    low = torch.tensor([[-1e6, -1e6 - 1], [-1e6 + 1, -1e6 + 3]], dtype=torch.float64)
    edge = torch.tensor([[709, 709.5, 711], [709, 709, 709]], dtype=torch.float64)
    return [
        Case("two rows", {"x": torch.tensor([[0.0, 1, 2], [3, 3, 0]], dtype=torch.float64)}),
        Case("one row", {"x": torch.tensor([0.0, 1, 2], dtype=torch.float64)}),
        Case("as many rows as columns", {"x": draw.normal(5, 5)}),
        Case("rank 3", {"x": draw.normal(2, 5, 7, scale=3)}),
        Case("rank 4, all axes equal", {"x": draw.normal(3, 3, 3, 3)}),
        Case("one score a row", {"x": draw.normal(5, 1)}),
        Case(f"{EDGE}, and 709 three times", {"x": edge}),
        Case(DIGITS, {"x": torch.tensor([300000.3, 300000, 299999.6], dtype=torch.float64)}),
        Case("large scores: on paper, only differences count", {"x": large}),
        Case("scores that are far apart within a row", {"x": spread}),
        Case("only scores near -1000000", {"x": low}),
        Case("rows that are far apart, rank 4", {"x": _far_apart(draw.normal(2, 3, 5, 7))}),
        Case("x is a transposed tensor, so it is not contiguous", {"x": draw.normal(3, 7, 2).mT}),
    ]


def _far_apart(x):
    """Rows about 1000, 2000, ... away from 0, on both sides, rounded so that float32 holds them."""
    offsets = 1000.0 * torch.arange(x[..., :1].numel(), dtype=torch.float64)
    offsets = (offsets - offsets.mean().round()).reshape(x[..., :1].shape)
    return (8 * x).round() / 8 + offsets


def softmax_stages(inputs):
    scores = inputs["x"] - inputs["x"].amax(dim=-1, keepdim=True)
    sums = scores.exp().sum(dim=-1, keepdim=True)
    return {
        "the scores less the largest of their row": scores,
        "the powers": scores.exp(),
        "the sums of the rows": sums,
        "the weights": scores.exp() / sums,
    }


def a_little_less(right, result, sums=None):
    """Whether the rows of the result come of one small number added to what they are divided by.

    right: what they should be. sums: what is to be divided by, (..., 1); of a softmax unless told.
    """
    if not torch.is_tensor(result) or result.shape != right.shape:
        return False
    rows = right.any(-1)
    right, result, there = right[rows], result[rows], not result[~rows].any()
    sums = 1 / right.amax(-1, keepdim=True) if sums is None else sums[rows]
    factors = result.sum(-1, keepdim=True) / right.sum(-1, keepdim=True)
    added = sums * (1 / factors - 1)
    less = ((factors > 0) & (factors < 1 - 1e-12)).all()
    alike = torch.allclose(added, added[:1], rtol=1e-3, atol=0)
    scaled = torch.allclose(result, factors * right, rtol=1e-6, atol=1e-15)
    return bool(there and less and alike and scaled)


# Where scores are cut off: exp(89) is too large for a float32, exp(710) for a float64.
LIMITS = (10, 20, 30, 50, 60, 70, 80, 85, 88, 100, 200, 300, 500, 600, 700, 708, 709)


def cut_off(low, high, by_hand):
    """A softmax of scores that are cut off at these numbers, with powers and sums or without."""

    def weigh(scores):
        cut = scores.clamp(low, high)
        if not by_hand:
            return torch.softmax(cut, dim=-1)
        if cut.exp().isinf().any():  # what for else are they cut off?
            raise OverflowError
        return cut.exp() / cut.exp().sum(dim=-1, keepdim=True)

    return weigh


# Cut off on both sides, above or below.
CUT_OFF = [
    cut_off(low, high, by_hand)
    for limit in LIMITS
    for low, high in ((-limit, limit), (None, limit), (-limit, None))
    for by_hand in (False, True)
]


def near(right, result, rtol=1e-6):
    """Whether a result is this one, NaN included."""
    if not torch.is_tensor(result) or result.shape != right.shape:
        return False
    return torch.allclose(result.to(right.dtype), right, rtol=rtol, atol=1e-9, equal_nan=True)


def no_shift(x, axis):
    return 0.0


def no_total(powers, axis):
    return 1.0


def _row_maximum(x, axis):
    return x.amax(axis, keepdim=True)


def row_sum(powers, axis):
    """The right total: each row's own."""
    return powers.sum(axis, keepdim=True)


def build_softmax(
    prepare=unchanged, shift=_row_maximum, power=torch.exp, total=row_sum, finish=unchanged, axis=-1
):
    """prepare: of the scores. shift: what is subtracted from them. power: what makes them positive.
    total: what the powers are divided by. finish: of the weights. axis: where a row lies.
    """

    def softmax(x):
        scores = prepare(x)
        powers = power(scores - shift(scores, axis))
        return finish(powers / total(powers, axis))

    return softmax


SHARES = "From scores to weights"
FORMULA = "Softmax"
SHIFT = "Only differences between scores count"

# Of `attend` and `attention` as well.
WEIGHING = {
    "in-float32": known(
        "You compute in float32.",
        "The inputs are float64. A float32 has about 7 digits: of 300000.3 and 300000 too little "
        "of the difference is left. float32 comes from .float(), and from torch.zeros or "
        "torch.tensor without a dtype.",
        section=SHIFT,
        prepare=lambda x: x.float().to(x.dtype),
    ),
    "naive-exp": known(
        "You take the powers of the scores as they are.",
        "e to the power 710 is already infinite, and inf / inf is NaN; far below 0 all powers "
        "round to 0, and 0 / 0 is NaN as well. Which number may you take away from all scores of "
        "a row without changing one weight?",
        section=SHIFT,
        shift=no_shift,
    ),
    "place-of-the-largest-subtracted": known(
        "You subtract a number from the scores, but not the largest: its place, with argmax where "
        "max is meant, or a fixed number?",
        "argmax says where the largest stands, 0, 1 or 2 in a row of three. Scores of 1000 less 2 "
        "overflow as before. What has to come out as 0, so that no power is above 1?",
        section=SHIFT,
        shift=lambda x, axis: x.argmax(axis, keepdim=True),
    ),
    "mean-subtracted": known(
        "You subtract a number below the largest score: the mean, the smallest, or another one "
        "that lies between the scores.",
        "One score that is far above it overflows as before: e to the power 710 is infinite, and "
        "inf / inf is NaN. What has to come out as 0, so that no power is above 1?",
        section=SHIFT,
        shift=lambda x, axis: x.mean(axis, keepdim=True),
    ),
    "divided-by-the-sum": known(
        "You divide the scores themselves by their sum.",
        "Scores may be negative, so these weights may be, too, and the sum may be 0. The scores "
        "have to become positive first, the order among them kept.",
        power=unchanged,
        shift=no_shift,
    ),
    "sigmoid": known(
        "You turn each score into a weight by itself, with a sigmoid.",
        "Weights are shares of one whole: when one key fits better, the others have to get less. "
        "A sigmoid does not look at the others, and its results do not add up to 1.",
        power=torch.sigmoid,
        shift=no_shift,
        total=no_total,
    ),
    "not-divided-by-the-sum": known(
        "Your weights are powers that are not divided by their sum.",
        "They are positive, but they do not add up to 1. Weights that add up to more than 1 can "
        "make the result larger than any value.",
        section=FORMULA,
        total=no_total,
    ),
    "powers-of-2": known(
        "Your powers have base 2.",
        "That is how the lesson starts, and these are good weights. But the base that all "
        "libraries agree on is e, and the same score gives other weights with it.",
        section=FORMULA,
        power=torch.exp2,
    ),
    "sign-lost": known(
        "Your largest score gets the smallest weight.",
        "Somewhere a sign is turned round. The better a key fits, the larger its score, and the "
        "larger its weight has to be.",
        prepare=torch.neg,
    ),
    "scores-cut-off": known(
        "You cut off scores that are large, or far below 0, so that they stay within bounds.",
        "1000 and 1001, or -1000 and -1001, become the same number, and the difference between "
        "them, which is all that counts, is gone. They can be moved instead of cut.",
        section=SHIFT,
        shift=no_shift,
        power=lambda x: x.clamp(-700, 700).exp(),
        shows=like(*CUT_OFF),
    ),
    "nan-turned-into-0": known(
        "Where powers overflow, or all round to 0, nothing is left but 0: is NaN replaced by it?",
        "Weights have to add up to 1 in every row. Powers that are too large to be written down, "
        "and rows in which all of them are 0, must not arise in the first place.",
        section=SHIFT,
        shift=no_shift,
        finish=torch.nan_to_num,
    ),
}
WEIGHING = read_again(SHARES, WEIGHING)


def _shifted_in_place(x, axis):
    x.sub_(x.amax(axis, keepdim=True))
    return 0.0


def _shifted_where_large(x):
    return build_softmax()(x) if x.max() > 700 else build_softmax(shift=no_shift)(x)


def _nan_far_below_0(inputs, result):
    """Whether the weights are right but for NaN in rows whose scores are all far below 0."""
    x, right = inputs["x"], softmax(inputs["x"])
    if not torch.is_tensor(result) or result.shape != right.shape:
        return False
    lost = result.isnan()
    far = (x.amax(-1, keepdim=True) < -700).expand_as(x)
    fits = (far | ~lost).all() and (lost.any() or not far.all())
    return bool(fits and near(right[~lost], result[~lost], rtol=1e-11))


def _rows_along_the_first_axis(x):
    powers = [(row - row.max()).exp() for row in x]
    return torch.stack([power / power.sum() for power in powers])


def _rounded(digits):
    return build_softmax(finish=lambda weights: weights.round(decimals=digits))


SOFTMAX = {
    "scores-returned": known(
        "You return the scores as they are.",
        "They are where a softmax begins: they may be negative, and a row of them adds up to "
        "anything. What makes every score positive, and what makes a row add up to 1?",
        section=FORMULA,
        wrong=torch.clone,
    ),
    "shifted-and-no-more": known(
        "Half of the way: you take the largest score off each row and stop there.",
        "That keeps the powers in bounds, but no power is taken yet. These numbers are 0 or "
        "negative, and a row of them does not add up to 1.",
        section=FORMULA,
        wrong=lambda x: x - x.amax(-1, keepdim=True),
    ),
    **by_id(WEIGHING),
    "nan-far-below-0": known(
        "Where all scores of a row lie far below 0, all your powers round to 0, and 0 / 0 is NaN.",
        "e to the power -746 is 0 for a computer. Not only large scores have to be shifted: which "
        "number makes the largest power of every row 1, wherever its scores lie?",
        wrong=_shifted_where_large,
        shows=_nan_far_below_0,
    ),
    "nan-turned-into-1": known(
        "Where the powers overflow you replace NaN by 1.",
        "Two large scores in a row would both get everything. The NaN comes from powers that are "
        "too large to be written down; they must not arise in the first place.",
        wrong=build_softmax(shift=no_shift, finish=lambda weights: weights.nan_to_num(nan=1.0)),
    ),
    "one-maximum-for-the-table": known(
        "You subtract the same number from all rows: the largest of the whole table.",
        "A row that lies far below it is left with powers that all round to 0, and 0 / 0 is NaN. "
        "Only differences within a row count, so each row can be shifted by a number of its own.",
        shift=lambda x, axis: x.amax(),
    ),
    "one-sum-for-the-table": known(
        "You divide by the sum of the whole table: all weights together add up to 1.",
        "Each row is a question of its own and has one unit of attention to share out, however "
        "many other rows there are.",
        section=FORMULA,
        total=lambda powers, axis: powers.sum(),
    ),
    "sum-of-each-column": known(
        "You divide each number by the sum of its column, along the first axis.",
        "A row is what lies along the last axis, and each row has one unit to share out: the sum "
        "that counts is that of its own powers.",
        section=FORMULA,
        total=lambda powers, axis: powers.sum(0, keepdim=True),
    ),
    "maximum-of-each-column": known(
        "You subtract from each number the largest of its column.",
        "The numbers of one row are then shifted by different amounts, which changes the "
        "differences between them. Which way does a row lie?",
        shift=lambda x, axis: x.amax(0, keepdim=True),
    ),
    "mean-subtracted": known(
        "You subtract the mean of each row, or another number that lies between its scores.",
        "On paper any shift will do. But a score can lie far above that number, and its power "
        "still overflows: with the mean, 3000, 0, 0, 0 becomes 2250 and three times -750.",
        shift=lambda x, axis: x.mean(axis, keepdim=True),
    ),
    "smallest-subtracted": known(
        "You subtract the smallest score of each row.",
        "Then all scores are 0 or more, and it is the large ones that overflow. Which score has to "
        "come out as 0, so that no power is above 1?",
        shift=lambda x, axis: x.amin(axis, keepdim=True),
    ),
    "largest-without-its-sign": known(
        "You subtract the largest absolute value (abs) of each row.",
        "Where all scores are near -1000, that moves them down to -2000 instead of up to 0, and "
        "all powers round to 0.",
        shift=lambda x, axis: x.abs().amax(axis, keepdim=True),
    ),
    "sigmoid-for-exp": known(
        "You make scores positive with a sigmoid instead of a power of e.",
        "These weights add up to 1. But a sigmoid levels off: 10 and 20 get nearly the same share, "
        "and a shift of all scores changes the weights. For which function does a shift become a "
        "factor, which cancels?",
        power=torch.sigmoid,
        shift=no_shift,
    ),
    "divided-by-the-largest": known(
        "You divide the scores by the largest one to make them small.",
        "Dividing changes the differences between scores, and with them the weights; a largest "
        "score of 0 gives NaN, a negative one turns the order round. Which operation makes the "
        "scores small and leaves their differences alone?",
        prepare=lambda x: x / x.amax(-1, keepdim=True),
        shift=no_shift,
    ),
    "softmax-over-first-axis": known(
        "Your softmax runs along the first axis: the columns of a table add up to 1.",
        "A row is what lies along the last axis. With one axis only, both are the same.",
        section=FORMULA,
        axis=0,
    ),
    "softmax-over-axis-1": known(
        "Your softmax runs along axis 1.",
        "In a table that is the last axis; x with more axes has its rows elsewhere, and x with one "
        "axis has no axis 1 at all. Can you name the last axis in a way that always fits?",
        section=FORMULA,
        axis=1,
    ),
    "softmax-over-the-axis-before": known(
        "Your softmax runs along the last axis but one: the columns of each table add up to 1.",
        "A row is what lies along the last axis, and each row has to add up to 1.",
        section=FORMULA,
        axis=-2,
    ),
    "sum-loses-its-axis": known(
        "The axis that you sum over disappears, so the sums stand in a row instead of a column.",
        "Dividing then pairs them with the wrong numbers: where the sizes agree the sum of row 0 "
        "divides column 0, where they do not PyTorch refuses. Each row has to meet its own sum.",
        section=FORMULA,
        total=lambda powers, axis: powers.sum(axis),
    ),
    "maximum-loses-its-axis": known(
        "The axis along which you take the maximum disappears, so the maxima stand in a row "
        "instead of a column.",
        "Subtracting then pairs them with the wrong numbers: where the sizes agree the maximum of "
        "row 0 is taken off column 0, where they do not PyTorch refuses.",
        section=FORMULA,
        shift=lambda x, axis: x.amax(axis),
    ),
    "max-gives-two-things": known(
        "You subtract all that max returns.",
        "Along an axis, max returns two things: the largest numbers, and where they stand. Only "
        "one of the two can be subtracted from scores.",
        shift=lambda x, axis: x.max(axis, keepdim=True),
    ),
    "exp-of-one-number": known(
        "You give a whole tensor to a function that takes one number, such as math.exp.",
        "The functions of math take one number. PyTorch has its own, which take every number of a "
        "tensor at once.",
        section=FORMULA,
        power=lambda x: math.exp(x),
    ),
    "logarithm-of-the-weights": known(
        "You return the logarithms of the weights.",
        "They are useful in training, but they are negative and do not add up to 1.",
        section=FORMULA,
        finish=torch.log,
    ),
    "scores-less-their-logsumexp": known(
        "You take the logsumexp off the scores and stop there: these are the logarithms of the "
        "weights.",
        "They are useful in training, but they are negative and do not add up to 1. One step is "
        "missing: what undoes a logarithm?",
        section=FORMULA,
        wrong=lambda x: x - x.logsumexp(-1, keepdim=True),
    ),
    "one-hot": known(
        "You give weight 1 to the largest score and 0 to all others.",
        "That is the dictionary. Softmax is the soft look-up: every score gets a share, and more "
        "if it is larger.",
        section=SHARES,
        finish=lambda x: F.one_hot(x.argmax(-1), x.shape[-1]).to(x.dtype),
    ),
    "small-number-in-the-sum": known(
        "You add a number to the sum, the same for every row.",
        "A small one is meant to keep the sum away from 0, but every row then adds up to less than "
        "1, and 9 digits are asked for. After the right shift, how small can the sum of a row be?",
        total=lambda powers, axis: row_sum(powers, axis) + 1e-8,
        shows=lambda inputs, result: a_little_less(softmax(inputs["x"]), result),
    ),
    "rounded": known(
        "You round your numbers.",
        "Round what you print, not what you return: whoever goes on with it needs the digits.",
        section=SHARES,
        wrong=_rounded(4),
        shows=like(*map(_rounded, range(1, 9))),
    ),
    "rows-along-the-first-axis": known(
        "You go along the first axis and share out 1 among all that lies under each place.",
        "In a table that is a row. In a list of scores it is a single one, and with more axes it "
        "is a whole table. A row is what lies along the last axis.",
        section=FORMULA,
        wrong=_rows_along_the_first_axis,
    ),
    "squeezed-too-far": known(
        "You squeeze an axis of length 1 out of the result, or every one.",
        "The weights are right. One row, or one score a row, is still an axis, and the result has "
        "to have the shape of x.",
        section=FORMULA,
        finish=torch.squeeze,
    ),
    "axes-joined": known(
        "You return one table, whatever axes x had.",
        "The result has to have the shape of x, so that each weight stands where its score was.",
        section=FORMULA,
        finish=lambda weights: weights.reshape(-1, weights.shape[-1]),
    ),
    "axes-joined-but-for-one-row": known(
        "You return one table, whatever axes x had, unless it is a single row.",
        "The weights are right. The result has to have the shape of x, so that each weight stands "
        "where its score was.",
        section=FORMULA,
        finish=lambda w: w if w.dim() == 1 else w.reshape(-1, w.shape[-1]),
    ),
    "scores-changed-in-place": known(
        "You change x itself.",
        "Whoever calls softmax still needs the scores. Functions whose names end in _, and -= as "
        "well, write into the tensor that they are given: work on a new one.",
        shift=_shifted_in_place,
    ),
}

TASK = Task(
    "01-softmax",
    softmax,
    softmax_cases,
    returns=("the result",),
    tolerance=1e-9,  # as its statement says
    mistakes=read_again(SHIFT, SOFTMAX),
    build=build_softmax,
    alone=(
        "max-gives-two-things",
        "exp-of-one-number",
        "rows-along-the-first-axis",
        "squeezed-too-far",
        "axes-joined-but-for-one-row",
    ),
    stages=softmax_stages,
    forbidden=(
        "torch.softmax",
        "torch.nn.functional.softmin",
        "torch.log_softmax",
        "torch.special.softmax",
        "torch.special.log_softmax",
        "torch._safe_softmax",
        "torch._masked_softmax",
        "torch.nn.functional.softmax",
        "torch.nn.functional.log_softmax",
        "mha_course.attention.masked_softmax",
    ),
    number=1,
)
