"""Task 2.2, masked_softmax: softmax over the keys that may be seen."""

import math

import torch

from mha_classroom.checks.examining import first_wrong
from mha_classroom.checks.forms import like
from mha_classroom.checks.showing import numbers_text
from mha_classroom.checks.task import (
    Case,
    Mistake,
    Task,
    and_in_float32,
    by_id,
    known,
    read_again,
    unchanged,
)
from mha_classroom.tasks.attention_math.softmax import LIMITS, a_little_less, near
from mha_course import attention


@and_in_float32
def softmax_cases(draw):
    def case(name, sizes, valid_lens=None, shift=0):
        inputs = {"scores": draw.normal(*sizes, scale=2.0) + shift}
        if valid_lens is not None:
            inputs["valid_lens"] = torch.as_tensor(valid_lens)
        return Case(name, inputs)

    by_hand = {
        "scores": torch.tensor([[[1, 2, 5], [2, 2, 4]], [[1, 2, 5], [4, 4, 8]]]).double().log(),
        "valid_lens": torch.tensor([2, 3]),
    }
    large = draw.normal(4, 2, 4)
    large[0] += torch.tensor([-1000, -1000, 1000, 1000])
    large[1] += torch.tensor([3000, 1000, 1000, -1000])
    large[2] += torch.tensor([0, 0, 0, 1000])
    large[3] += torch.tensor([[1000], [-1000]])
    rows = 1000 * torch.tensor([[1.0], [-1], [0]])
    some_large = {"scores": large, "valid_lens": torch.tensor([2, 3, 3, 4])}
    return [
        Case("lengths 2 and 3; exp of the scores: 1 2 5, 2 2 4, 1 2 5, 4 4 8", by_hand),
        case("3 sequences of unequal length", (3, 5, 7), [6, 2, 4]),
        case("valid_lens=None, rows near 1000, -1000 and 0", (2, 3, 5), shift=rows),
        case("one length a query", (2, 3, 7), [[1, 4, 7], [5, 2, 3]]),
        case("as many sequences as queries", (3, 3, 5), [5, 1, 3]),
        case("as many sequences as queries and keys", (3, 3, 3), [[1, 3, 2], [2, 2, 1], [3, 1, 1]]),
        case("a sequence of length 0", (3, 2, 5), [5, 0, 1]),
        case("a query of length 0", (2, 3, 5), [[2, 0, 4], [0, 3, 5]]),
        case("as many queries as keys", (2, 5, 5), draw.lengths(2, 5)),
        Case("scores near 1000 and -1000", some_large),
        case("one query, one key, of length 0", (1, 1, 1), [0]),
        case("one key", (1, 3, 1), [1]),
        case("one query", (3, 1, 4), [4, 1, 2]),
        case("one query, with a length of its own", (3, 1, 4), [[2], [4], [1]]),
        case("one sequence, one length a query, rows as far apart", (1, 3, 4), [[2, 4, 2]], rows),
        case("only lengths of 0, in int32", (2, 3, 5), torch.tensor([0, 0], dtype=torch.int32)),
        Case("transposed", {"scores": draw.normal(2, 7, 3).mT, "valid_lens": torch.tensor([4, 7])}),
    ]


def point_out_row(inputs, weights):
    """What the keys within the length get in the first row that is wrong, and those past it."""
    right = attention.masked_softmax(**inputs)
    row = first_wrong(weights, right)[:2]
    lens = inputs.get("valid_lens")
    length = right.shape[-1] if lens is None else int(lens[row[: lens.dim()]])
    mine, right = weights[row], right[row]
    said = [f"Row {list(row)} has the length {length}."]
    if lens is None:
        said = [f"Without lengths row {list(row)} sees all its keys."]
    if length:
        keys = "key gets" if length == 1 else f"{length} keys get"
        said += [
            f"Its first {keys} {numbers_text(mine[:length])} from you; asked for is "
            f"{numbers_text(right[:length])}."
        ]
    if length < len(right):
        said += [f"What is past it gets {numbers_text(mine[length:])}; asked for is 0."]
    return " ".join(said)


def mask_where(holds, shift=0):
    """A mask from keys and lengths: True where holds(index of the key, length + shift)."""

    def see(scores, lens):
        lens = lens[:, None] if lens.dim() == 1 else lens
        return holds(torch.arange(scores.shape[-1]), lens[:, :, None] + shift)

    return see


right_mask = mask_where(torch.lt)


def filled(fill, zeros_last=False):
    """Hide before the softmax, by writing a number over the scores."""

    def hide(scores, mask, axis):
        weights = scores.masked_fill(~mask, fill).softmax(axis)
        return weights * mask if zeros_last else weights

    return hide


hidden_before = filled(-math.inf)


def hidden_after(scores, mask, axis):
    """Hide after the softmax."""
    return scores.softmax(axis) * mask


def build_masked_softmax(
    see=right_mask,
    hide=hidden_before,
    axis=-1,
    empty=lambda count: 0.0,
    finish=unchanged,
    without_lengths=torch.softmax,
):
    """see: a mask from scores and lengths. hide: weights from scores, a mask and the axis. empty:
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


PADDING = "Hiding padding"
NOTHING = "Nothing to attend to"
AXES = "A mask with one axis too many, or too few"
OPPOSITE = "Two meanings of True"

# The groups down to HAD_A_SAY are known to 2.4 or 2.5 as well.
QUERIES_HIDDEN_TOO = (
    "With either kind of lengths, row i is zeros if its length is i or less: you hide queries "
    "as well.",
    "A length says how many keys there are to look at, and nothing of the place of the query. What "
    "padding asks does no harm, since nobody looks at its answer.",
)
LENGTHS = {
    "one-key-too-many": known(
        "Each query sees one key past its length.",
        "Keys count from 0, so with a length of 3 the keys 0, 1 and 2 are real. Which comparison, "
        "or which slice, lets key 3 in?",
        see=mask_where(torch.le),
    ),
    "one-key-too-many-but-for-0": known(
        "Each query sees one key past its length, unless the length is 0.",
        "Keys count from 0, so with a length of 3 the keys 0, 1 and 2 are real. Which comparison, "
        "or which slice, lets key 3 in?",
        see=mask_where(lambda key, length: (key <= length) & (length > 0)),
    ),
    "one-key-too-few": known(
        "The last real key of each query gets nothing.",
        "A length of 3 means three real keys: 0, 1 and 2. One of them is hidden here.",
        see=mask_where(torch.lt, shift=-1),
    ),
    "mask-inverted": known(
        "Your queries attend to the padding and to nothing else.",
        "Real keys and padding have changed places. If you have a mask: what does True mean where "
        "you make it, and what where you use it? masked_fill overwrites where its mask is True.",
        section=OPPOSITE,
        see=mask_where(torch.ge),
    ),
    "length-0-counts-as-1": known(
        "A length of 0 works like 1 in your code: key 0 gets all the weight.",
        "That keeps NaN away, and makes a query without any real key attend to padding. Its row "
        "has to be zeros.",
        section=NOTHING,
        see=lambda scores, lens: right_mask(scores, lens.clamp(min=1)),
    ),
    "lengths-ignored": known(
        "valid_lens has no effect: the padding gets its share like any word.",
        "Keys past a length are there only to fill the table up. Attention to them is attention to "
        "nothing that was said.",
        see=lambda scores, lens: torch.ones_like(scores, dtype=torch.bool),
    ),
    "queries-hidden-for-keys": known(
        "With one length a sequence, you hide the queries past it, not the keys: the queries that "
        "are left still attend to padding.",
        "Rows are queries, columns keys. A length says how many keys there are to look at, for "
        "every query of the sequence. Along which axis do your positions run?",
        see=lambda scores, lens: (
            (torch.arange(scores.shape[1]) < lens[:, None])[:, :, None]
            if lens.dim() == 1
            else right_mask(scores, lens)
        ),
    ),
    "lengths-repeated-as-a-whole": known(
        "With one length a sequence, the rows get the wrong ones: 2, 3 became 2, 3, 2, 3.",
        "repeat, for one, lays the whole tensor down again. All queries of sequence 0 come first, "
        "and every one of them needs the length of sequence 0.",
        section=AXES,
        see=lambda scores, lens: right_mask(
            scores,
            lens.repeat(scores.shape[1]).view(scores.shape[:2]) if lens.dim() == 1 else lens,
        ),
    ),
    "no-axis-for-queries": known(
        "Query i of every sequence gets the length of sequence i: your mask has the shape (B, S), "
        "or (1, B, S).",
        "PyTorch lines shapes up from the right, so next to scores (B, L, S) the B of your mask "
        "stands under L. Where B and L differ that is an error; where they agree, nothing "
        "warns you.",
        section=AXES,
        see=lambda scores, lens: (
            torch.arange(scores.shape[-1]) < (lens[:, None] if lens.dim() == 1 else lens[..., None])
        ),
    ),
    "lengths-squeezed": known(
        "With one sequence and one length a query, its L lengths are taken for those of L "
        "sequences. Does a squeeze make (L,) of (1, L)?",
        "squeeze takes out every axis of size 1, also one that means something. Which axis do you "
        "want to be rid of, and in which of the two kinds of lengths?",
        section=AXES,
        see=lambda scores, lens: right_mask(scores, lens.squeeze() if lens.numel() > 1 else lens),
    ),
    "one-axis-too-many": known(
        "Your result has four axes: every sequence under the lengths of every sequence. Has your "
        "mask four axes, too?",
        "Masks with an axis for heads are (B, 1, 1, S). Scores are (B, L, S) here: count the axes "
        "from the right, and see which one the batch of your mask falls on.",
        section=AXES,
        see=lambda scores, lens: right_mask(scores, lens)[:, None],
    ),
}
LENGTHS = read_again(PADDING, LENGTHS)


def _naive(scores, mask, axis):
    e = scores.masked_fill(~mask, -math.inf).exp()
    return e / e.sum(axis, keepdim=True)


def _everywhere(hide):
    """For `known`: a softmax that is another one without lengths too, or with lengths only."""

    def without_lengths(scores, axis):
        return hide(scores, torch.ones_like(scores, dtype=torch.bool), axis)

    shows = like(build_masked_softmax(hide=hide))
    return {"hide": hide, "without_lengths": without_lengths, "shows": shows}


NAIVE_EXP = {
    "naive-exp": known(
        "Large scores give NaN: you take exp of the scores as they are.",
        "exp(1000) is more than a float64 can hold, and exp(-1000) is 0, so in the end it divides "
        "inf by inf or 0 by 0. A softmax stays the same if one number is taken off a whole row. "
        "Which number keeps exp in bounds?",
        **_everywhere(_naive),
    )
}
(NAIVE_EXP,) = read_again(PADDING, NAIVE_EXP)

HIDING = {
    "mask-after-softmax": known(
        "Rows with hidden keys do not sum to 1: padding is still in the sum that you divide by. Do "
        "you hide after the softmax?",
        "No later step is sure to repair that: a hidden score can be so large that nothing is left "
        "for the others. What has to happen before the softmax, so that it never sees the padding?",
        hide=hidden_after,
    ),
    "masked-scores-0": known(
        "You set the scores of hidden keys to 0, or next to 0, and they still get weight.",
        "exp(0) is 1: a score of 0 counts like any other, and above every negative one. "
        "Which score has an exp of 0?",
        hide=filled(0.0),
    ),
    "masked-scores-0-then-zeros": known(
        "You set the scores of hidden keys to 0, or next to 0, and at the end their weights to 0: "
        "the rows do not sum to 1.",
        "With a score of 0 a hidden key adds exp(0) = 1 to the sum that the softmax divides by. "
        "The zeros at the end do not take that back.",
        hide=filled(0.0, zeros_last=True),
    ),
    "mask-of-ones-added": known(
        "You add a mask of ones and zeros to the scores, or subtract such a mask.",
        "What may be seen moves up by 1 beside what is to be hidden, and nothing is hidden: 1 more "
        "is a factor of e. What has to be added to a score so that its exp is 0?",
        section=OPPOSITE,
        hide=lambda s, m, axis: (s + m.double()).softmax(axis),
    ),
    "nan-for-length-0": known(
        "A query with nothing to attend to gives NaN.",
        "All its keys are hidden. A softmax over none divides 0 by 0, or takes -inf from -inf, and "
        "weights of 0 divided by their sum are 0 / 0 as well. Such a query attends to nothing, and "
        "its row has to say so: zeros.",
        section=NOTHING,
        empty=lambda count: math.nan,
    ),
    "uniform-for-length-0": known(
        "A query with nothing to attend to spreads its weight evenly over the padding.",
        "If your fill is finite, all its scores are equal, and equal scores get equal weights. No "
        "NaN warns you, but its output is an average of padding. Such a row has to be zeros.",
        section=NOTHING,
        empty=lambda count: 1 / count,
    ),
    "softmax-over-queries": known(
        "Your softmax runs over the queries: the weights that each key gets sum to 1.",
        "Each query shares out one unit of attention among the keys, so each row sums to 1. "
        "Which axis of (B, L, S) are the keys?",
        axis=-2,
    ),
    **by_id([NAIVE_EXP]),
}
HIDING = read_again(PADDING, HIDING)


def _naive_then_masked(scores, mask, axis):
    e = scores.exp() * mask
    return e / e.sum(axis, keepdim=True)


def _naive_divided_safely(scores, mask, axis):
    e = scores.exp().masked_fill(~mask, 0.0)
    total = e.sum(axis, keepdim=True)
    return e / total.masked_fill(total == 0, 1.0)


def _naive_where_there_is_a_sum(scores, mask, axis):
    e = scores.exp() * mask
    total = e.sum(axis, keepdim=True)
    return torch.where(total > 0, e / total, 0.0)


def _one_maximum(of=(0, 1, 2), least=0.0):
    """Subtract one largest score from all rows of these axes."""

    def hide(scores, mask, axis):
        shown = scores.masked_fill(~mask, -math.inf)
        powers = (shown - shown.amax(of, keepdim=True)).exp()
        return powers / powers.sum(axis, keepdim=True).clamp(min=least)

    return hide


OTHER_SHARES = {
    "naive-exp-then-masked": known(
        "Large scores give NaN: you take exp of the scores as they are, and mask what comes out.",
        "exp(1000) is more than a float64 can hold, and inf times the 0 of a mask is NaN. A "
        "softmax stays the same if one number is taken off a whole row. Which keeps exp in bounds?",
        **_everywhere(_naive_then_masked),
    ),
    "naive-exp-divided-safely": known(
        "Large scores give NaN, and far below 0 all of a row is 0: you take exp of the scores as "
        "they are.",
        "exp(1000) is more than a float64 can hold, and exp(-1000) is 0, though there are keys to "
        "attend to. A softmax stays the same if one number is taken off a whole row. Which keeps "
        "exp in bounds?",
        **_everywhere(_naive_divided_safely),
    ),
    "naive-exp-nan-to-zeros": known(
        "Where scores are large, whole rows are empty: you take exp of the scores as they are, and "
        "turn the NaN that comes of it into zeros.",
        "Zeros are for rows with nothing to attend to. These have keys to attend to; exp(1000) is "
        "only more than a float64 can hold. A softmax stays the same if one number is taken off "
        "a whole row. Which keeps exp in bounds?",
        **_everywhere(lambda s, m, axis: _naive_then_masked(s, m, axis).nan_to_num(0.0)),
    ),
    "naive-exp-zeros-where-no-sum": known(
        "Large scores give NaN, or leave a row empty: you take exp of the scores as they are.",
        "exp(1000) is more than a float64 can hold, and inf / inf and inf times 0 are NaN. A "
        "softmax stays the same if one number is taken off a whole row. Which keeps exp in bounds?",
        **_everywhere(_naive_where_there_is_a_sum),
    ),
    "one-maximum-for-the-table": known(
        "Rows of low scores give NaN: you subtract the largest score of the whole tensor.",
        "Next to a far larger score elsewhere, their exp is 0 from end to end, and 0 is divided by "
        "0. Each row is a softmax of its own.",
        **_everywhere(_one_maximum()),
    ),
    "one-maximum-for-the-table-safely": known(
        "Rows of low scores stay empty: you subtract the largest score of the whole tensor.",
        "Next to a far larger score elsewhere, their exp is 0 from end to end. Each row is a "
        "softmax of its own.",
        **_everywhere(_one_maximum(least=1e-12)),
    ),
    "one-maximum-for-a-sequence": known(
        "Rows of low scores give NaN: you subtract the largest score of the whole sequence.",
        "Next to a far larger score in the row of another query, their exp is 0 from end to end, "
        "and 0 is divided by 0. Each row is a softmax of its own.",
        **_everywhere(_one_maximum(of=(1, 2))),
    ),
    "one-maximum-for-a-sequence-safely": known(
        "Rows of low scores stay empty: you subtract the largest score of the whole sequence.",
        "Next to a far larger score in the row of another query, their exp is 0 from end to end. "
        "Each row is a softmax of its own.",
        **_everywhere(_one_maximum(of=(1, 2), least=1e-12)),
    ),
    "divided-by-the-sum": known(
        "You divide the scores by their sum, without exp.",
        "Scores may be negative, and shares may not. exp makes every number positive first.",
        **_everywhere(lambda s, m, axis: s * m / (s * m).sum(axis, keepdim=True)),
    ),
    "not-divided-by-the-sum": known(
        "You take exp of the scores and stop there.",
        "What comes of it is not below 0, but a row of it does not sum to 1 yet; and exp(1000) is "
        "more than a float64 can hold.",
        **_everywhere(lambda s, m, axis: s.exp() * m),
    ),
    "sigmoid": known(
        "You use a sigmoid: each weight is decided alone, and rows do not sum to 1.",
        "Attention is a weighted average: what one key gains the others lose.",
        **_everywhere(lambda s, m, axis: s.sigmoid() * m),
    ),
}
OTHER_SHARES = read_again(PADDING, OTHER_SHARES)

FILLS = {
    "fill-not-low-enough": known(
        "Your fill is not low enough: next to scores far below 0, hidden keys get all the weight.",
        "What is low among scores around 0 is high among scores far below it. Is there a number "
        "that is below every score there can be?",
        hide=filled(-100.0),
    ),
    "fill-not-low-enough-then-zeros": known(
        "Some rows are left without weight: next to scores far below others hidden keys get all of "
        "it, or all powers are 0. Your fill is not low enough, or the largest score that you "
        "subtract is that of a hidden key or of another row.",
        "What is low among scores around 0 is high among scores far below it. Is there a number "
        "that is below every score there can be?",
        hide=filled(-100.0, zeros_last=True),
    ),
}
FILLS = read_again(NOTHING, FILLS)


def _renormalised(least):
    def hide(scores, mask, axis):
        weights = hidden_after(scores, mask, axis)
        return weights / weights.sum(axis, keepdim=True).clamp(min=least)

    return hide


def _largest_of_all(least):
    def hide(scores, mask, axis):
        powers = (scores - scores.amax(axis, keepdim=True)).exp() * mask
        return powers / powers.sum(axis, keepdim=True).clamp(min=least)

    return hide


HAD_A_SAY = {
    "hidden-keys-had-a-say": known(
        "Next to hidden scores that are far larger, your rows turn into NaN: hidden keys have a "
        "say, in a softmax that comes before the hiding or in the largest score that is "
        "subtracted.",
        "On paper that cancels. In the computer, a hidden score of 1000 beside real ones of -1000 "
        "leaves exp(-2000) for the real keys, which is 0, and then 0 is divided by 0. At which "
        "step are hidden keys looked at for the last time?",
        hide=_renormalised(0.0),
    ),
    "hidden-keys-had-a-say-safely": known(
        "Next to hidden scores that are far larger, your rows stay empty: hidden keys have a say, "
        "in a softmax that comes before the hiding or in the largest score that is "
        "subtracted.",
        "On paper that cancels. In the computer, a hidden score of 1000 beside real ones of -1000 "
        "leaves nothing for the real keys, which should share 1. At which step are hidden keys "
        "looked at for the last time?",
        hide=_renormalised(1e-12),
    ),
    "largest-of-hidden-keys": known(
        hide=_largest_of_all(0.0),
        twin="hidden-keys-had-a-say",
    ),
    "largest-of-hidden-keys-safely": known(
        hide=_largest_of_all(1e-12),
        twin="hidden-keys-had-a-say-safely",
    ),
}
HAD_A_SAY = read_again(PADDING, HAD_A_SAY)

# Where the division is kept safe in another way than above. To be told by 2.4 and 2.5.
HAD_A_SAY_ANYHOW = Mistake(
    "hidden-keys-had-a-say-anyhow",
    "Next to hidden scores that are far larger, the weights of your rows sum to less than 1: "
    "hidden keys have a say, in a softmax that comes before the hiding or in the largest score "
    "that is subtracted.",
    "On paper that cancels. In the computer, a hidden score of 1000 beside real ones of -1000 "
    "leaves nothing for the real keys, which should share 1. At which step are hidden keys looked "
    "at for the last time?",
    PADDING,
)
largest_of_all = _largest_of_all(1e-30)


def hidden_had_a_say(scores, mask, weights):
    """Whether rows are right but for those beside far larger hidden scores, with too small sums."""
    right = hidden_before(scores, mask, -1).nan_to_num(0.0)
    sums, seen = weights.sum(-1), mask.expand_as(scores).any(-1)
    if not near(sums[..., None] * right, weights) or (sums > 1 + 1e-6).any():
        return False
    shown = scores.masked_fill(~mask, -math.inf)
    lead = scores.logsumexp(-1) - shown.logsumexp(-1)  # of all keys before those that are seen
    full = sums > 1 - 1e-6
    lacking, whole = lead[seen & ~full], lead[seen & full]
    empty = (sums[seen & (lead > 750)] < 1e-6).all()  # exp(-750) is 0
    if not len(lacking) or not len(whole):
        return bool(empty and (lacking > 15).all())
    return bool(empty and lacking.min() > 15 and lacking.min() >= whole.max())


# Of 2.4 as well.
KINDS = {
    "lengths-of-sequences-only": known(
        "It works with one length a sequence, and raises an error with one length a query.",
        "Lengths come as (B,) or as (B, L). Next to scores (B, L, S), which axes of size 1 does "
        "the one need, and which the other?",
        see=lambda s, lens: torch.arange(s.shape[-1]) < lens[:, None, None],
    ),
    "one-number-a-sequence": known(
        "It works with one length a sequence, and raises an error with one length a query: you "
        "make one whole number of what belongs to a sequence.",
        "Lengths come as (B,) or as (B, L), and in the second case each query of a sequence has a "
        "length of its own.",
        see=lambda s, lens: right_mask(s, torch.tensor([int(length) for length in lens])),
    ),
    "lengths-of-queries-only": known(
        "It works with one length a query, and raises an error with one length a sequence.",
        "Lengths come as (B,) or as (B, L). A tensor with one axis cannot be indexed as if it had "
        "two: it has to get the axis of queries first.",
        see=lambda s, lens: torch.arange(s.shape[-1]) < lens[:, :, None],
    ),
    "axis-2-of-all-lengths": known(
        "It works with one length a query, and raises an error with one length a sequence.",
        "Lengths come as (B,) or as (B, L). A tensor with one axis cannot get an axis 2: it has to "
        "get the axis of queries first.",
        see=lambda s, lens: torch.arange(s.shape[-1]) < lens.unsqueeze(2),
    ),
}
KINDS = read_again(AXES, KINDS)


def _without_none(use):
    """An answer that uses its lengths without a look whether there are any."""

    def masked_softmax(scores, valid_lens=None):
        if valid_lens is None:
            use(scores, valid_lens)
        return build_masked_softmax()(scores, valid_lens)

    return masked_softmax


def _along_queries_where_it_fits(scores, lens):
    batch, num_queries, _ = scores.shape
    if lens.numel() == num_queries:
        lens = lens.reshape(1, num_queries).expand(batch, -1)
    return right_mask(scores, lens)


def _none_if_all_are_0(scores, valid_lens=None):
    if valid_lens is not None and not valid_lens.any():
        valid_lens = None
    return build_masked_softmax()(scores, valid_lens)


def queries_past_lengths_hidden(scores, valid_lens=None):
    weights = build_masked_softmax()(scores, valid_lens)
    if valid_lens is None:
        return weights
    lens = valid_lens[:, None] if valid_lens.dim() == 1 else valid_lens
    return weights * (torch.arange(scores.shape[1]) < lens)[:, :, None]


def _padding_asks_nothing(scores, valid_lens=None):
    weights = build_masked_softmax()(scores, valid_lens)
    if valid_lens is None or valid_lens.dim() == 2:
        return weights
    asks = torch.arange(scores.shape[1]) < valid_lens[:, None]
    return weights * asks[:, :, None]


def cut_off_scores(scores, axis=-1, mask=None):
    """The weights of scores that are cut off, whether before they are hidden or afterwards."""
    mask = torch.ones_like(scores, dtype=torch.bool) if mask is None else mask
    for limit in LIMITS:
        for cut in (scores.clamp(-limit, limit), scores.clamp(max=limit)):
            weights = cut.masked_fill(~mask, -math.inf).softmax(axis)
            yield weights.masked_fill(~mask, 0.0)


def shows_cut_off(inputs, result):
    """Whether a masked softmax is that of scores that are cut off."""
    scores, lens = inputs["scores"], inputs.get("valid_lens")
    mask = None if lens is None else right_mask(scores, lens).expand_as(scores)
    if mask is None and near(scores.softmax(-1), result):
        return True  # cut off only where there are lengths
    return any(near(weights, result) for weights in cut_off_scores(scores, mask=mask))


def _cut_off(scores, mask, axis):
    return hidden_before(scores.clamp(-50, 50), mask, axis)


CUT_OFF = {
    "scores-cut-off": known(
        "You cut large scores off so that their powers stay finite.",
        "990 and 1000 both become the same number, and the difference between them, which is all "
        "that counts, is gone. Scores can be moved instead of cut: a softmax stays the same if one "
        "number is taken off a whole row.",
        **_everywhere(_cut_off) | {"shows": shows_cut_off},
    )
}
(CUT_OFF,) = read_again(PADDING, CUT_OFF)


def _lowered(scores, mask, axis):
    return (scores - 1000.0 * ~mask).softmax(axis)


def _lowered_where_nothing(scores, valid_lens=None):
    """A mask of 0 and -1e9 added: a row that is all hidden is as if nothing were."""
    weights = build_masked_softmax()(scores, valid_lens)
    return torch.where(weights.any(-1, keepdim=True), weights, scores.softmax(-1))


def _sequence_cleared(scores, valid_lens=None):
    weights = build_masked_softmax()(scores, valid_lens)
    empty = ~weights.any(-1, keepdim=True)
    return weights.masked_fill(empty.any(1, keepdim=True), 0.0)


def _small_number_added(scores, mask, axis):
    hidden = scores.masked_fill(~mask, -1e300)
    powers = (hidden - hidden.amax(axis, keepdim=True)).exp() * mask
    return powers / (powers.sum(axis, keepdim=True) + 1e-3)


def _shows_small_number(inputs, result):
    right = build_masked_softmax()(**inputs)
    if "valid_lens" not in inputs and torch.is_tensor(result) and result.shape == right.shape:
        return torch.allclose(result, right) or a_little_less(right, result)
    return a_little_less(right, result)


def _first_length(scores, lens):
    return (torch.arange(scores.shape[-1]) < lens.flatten()[0]).expand_as(scores)


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


SOFTMAX = {
    "scores-returned": known(
        "You return the scores as they are.",
        "A row of weights adds up to 1 and has zeros for what is hidden. Two things are to be done "
        "with the scores: hide, and share out.",
        wrong=lambda scores, valid_lens=None: scores.clone(),
    ),
    "hidden-and-no-more": known(
        "Half of the way: you return scores, with very low numbers for hidden keys.",
        "Hidden scores are hidden well. What is still missing makes shares of the scores: numbers "
        "from 0 to 1, and 1 in each row.",
        wrong=_only_hidden,
        shows=_shows_only_hidden,
    ),
    **by_id(LENGTHS),
    "first-length-for-all": known(
        "Every row gets the first length.",
        "Each sequence of the batch has a length of its own, and so may each query.",
        see=_first_length,
    ),
    "longest-for-all": known(
        "Every row gets the length of the longest.",
        "In a batch some sequences are shorter, and their padding is hidden only if each row is "
        "compared with its own length.",
        see=lambda scores, lens: right_mask(scores, lens.max().expand(len(scores))),
    ),
    "one-length-for-all-queries": known(
        "With one length a query, you use the first for the whole sequence.",
        "Lengths of shape (B, L) are there so that queries of one sequence may see different "
        "numbers of keys, as in causal attention.",
        section=NOTHING,
        see=lambda scores, lens: right_mask(scores, lens if lens.dim() == 1 else lens[:, 0]),
    ),
    "longest-for-all-queries": known(
        "With one length a query, you use the longest for the whole sequence.",
        "Lengths of shape (B, L) are there so that queries of one sequence may see different "
        "numbers of keys, as in causal attention.",
        section=NOTHING,
        see=lambda scores, lens: right_mask(scores, lens if lens.dim() == 1 else lens.amax(1)),
    ),
    "keys-counted-from-the-end": known(
        "You keep the last keys of each row and hide the first.",
        "Padding stands at the end of a sequence: a length of 2 means that keys 0 and 1 are real.",
        see=lambda scores, lens: mask_where(torch.ge)(scores, scores.shape[-1] - lens),
    ),
    "lengths-by-their-number": known(
        "Where there are as many sequences as queries, one length a sequence is taken for one a "
        "query. Do you tell the two kinds apart by how many there are?",
        "One length a sequence holds for all its queries. (B,) and (B, L) differ in something "
        "that no size can hide: how many axes they have.",
        section=AXES,
        see=_along_queries_where_it_fits,
    ),
    "length-0-for-none": known(
        "Where all lengths are 0 you hide nothing, as if there were no lengths.",
        "None means all keys, a length of 0 means none of them. 0 counts as False where Python "
        "asks for a truth: what has to be asked for is None itself.",
        section=NOTHING,
        wrong=_none_if_all_are_0,
    ),
    "none-not-expected": known(
        "Your function raises an error without lengths.",
        "valid_lens may be None, which is no tensor and has nothing to compare with. Then all keys "
        "may be seen.",
        wrong=_without_none(lambda scores, lens: torch.arange(scores.shape[-1]) < lens),
    ),
    "none-asked-for-its-axes": known(
        "Your function raises an error without lengths.",
        "valid_lens may be None, which is no tensor and has no axes. Then all keys may be seen.",
        wrong=_without_none(lambda scores, lens: lens.dim()),
    ),
    "none-viewed": known(
        "Your function raises an error without lengths.",
        "valid_lens may be None, which is no tensor and has no shape. Then all keys may be seen.",
        wrong=_without_none(lambda scores, lens: lens.view(-1)),
    ),
    "none-reshaped": known(
        "Your function raises an error without lengths.",
        "valid_lens may be None, which is no tensor and has no shape. Then all keys may be seen.",
        wrong=_without_none(lambda scores, lens: lens.reshape(-1)),
    ),
    "none-indexed": known(
        "Your function raises an error without lengths.",
        "valid_lens may be None, which is no tensor and cannot be indexed. Then all keys may be "
        "seen.",
        wrong=_without_none(lambda scores, lens: lens[:, None]),
    ),
    "padding-asks-nothing": known(
        "With one length a sequence, the rows past it are zeros: you hide queries as well.",
        "A length says how many keys there are to look at, for every query of the sequence. What "
        "padding asks does no harm, since nobody looks at its answer.",
        wrong=_padding_asks_nothing,
    ),
    "padding-asks-nothing-with-either-kind": known(
        *QUERIES_HIDDEN_TOO,
        wrong=queries_past_lengths_hidden,
    ),
    "length-0-of-a-query-counts-as-1": known(
        "With one length a query, a length of 0 works like 1: key 0 gets all the weight.",
        "That keeps NaN away, and makes a query without any real key attend to padding. Its row "
        "has to be zeros, with either kind of lengths.",
        section=NOTHING,
        see=lambda scores, lens: right_mask(scores, lens if lens.dim() == 1 else lens.clamp(min=1)),
    ),
    **by_id(KINDS),
    **by_id(HIDING),
    **by_id(OTHER_SHARES),
    "softmax-over-queries-with-lengths": known(
        "With lengths, your softmax runs over the queries: the weights that each key gets sum to "
        "1.",
        "Each query shares out one unit of attention among the keys, so each row sums to 1, with "
        "lengths as without. Which axis of (B, L, S) are the keys?",
        axis=-2,
        without_lengths=lambda scores, axis: scores.softmax(-1),
    ),
    "lowered-for-length-0": known(
        "A query with nothing to attend to gets the weights that it would have without lengths.",
        "If one number is added to all its scores, nothing is hidden: only their differences "
        "count. Nor may its keys be shown to keep NaN away. Such a row has to be zeros.",
        section=NOTHING,
        wrong=_lowered_where_nothing,
    ),
    "sequence-cleared": known(
        "One query with nothing to attend to empties the rows of its whole sequence.",
        "The other queries have keys to attend to. Each row is judged by itself.",
        section=NOTHING,
        wrong=_sequence_cleared,
    ),
    "small-number-in-the-sum": known(
        "You add a number to the sum that you divide by.",
        "Every row then sums to less than 1, if only by a little. Only a row with nothing to "
        "attend to has a sum of 0 and needs help.",
        section=NOTHING,
        **_everywhere(_small_number_added) | {"shows": _shows_small_number},
    ),
    "fill-of-minus-1000": known(
        "Your fill is not low enough: next to scores near -1000, hidden keys get weight.",
        "-1000 is low among scores around 0, and one of many among scores around -1000. Is there a "
        "number that is below every score there can be?",
        section=NOTHING,
        hide=filled(-1000.0),
    ),
    "fill-of-minus-1000-then-zeros": known(
        "Next to scores near -1000, hidden keys get weight, and once you write zeros over them the "
        "rows do not sum to 1: your fill is not low enough.",
        "-1000 is low among scores around 0, and one of many among scores around -1000. Is there a "
        "number that is below every score there can be?",
        section=NOTHING,
        hide=filled(-1000.0, zeros_last=True),
    ),
    "lowered-by-1000": known(
        "You lower hidden scores by too little: some are 2000 above the others and win even so.",
        "Scores go from -1000 to 1000 here. What is subtracted has to bring the highest of them "
        "below the lowest, and far below.",
        section=NOTHING,
        hide=_lowered,
    ),
    **by_id([CUT_OFF]),
    "masked-scores-1e-9": known(
        hide=filled(1e-9),
        twin="masked-scores-0",
    ),
    **by_id(FILLS),
    **by_id(HAD_A_SAY),
    "score-of-0-hidden": known(
        "A real key whose score is exactly 0 is hidden, too.",
        "Multiplied by a mask, or filled with 0, hidden scores are 0, and 0 is a score like any "
        "other. Whether a key is real does not depend on its score: compare its place with the "
        "length.",
        hide=lambda s, m, axis: (s * m).masked_fill(s * m == 0, -math.inf).softmax(axis),
    ),
    "zero-times-infinity": known(
        "With lengths, all that you return is NaN. Is a mask of zeros and ones multiplied by -inf?",
        "0 times infinity is NaN, though the 0 was meant to leave a score as it is. Look for "
        "another way to put a very low number in some places and leave the others alone.",
        section=NOTHING,
        hide=lambda s, m, axis: (s + (~m).double() * -math.inf).softmax(axis),
        empty=lambda count: math.nan,
    ),
    "zero-times-infinity-then-zeros": known(
        "With lengths, all weights that you return are 0.",
        "Is a mask of zeros and ones multiplied by -inf? 0 times infinity is NaN, and zeros "
        "written over NaN then fill all rows. Or are weights computed that never get into the "
        "result?",
        section=NOTHING,
        hide=lambda s, m, axis: torch.zeros_like(s),
    ),
    "scores-changed-in-place": known(
        "You write into the caller's scores: after the call they are not what they were.",
        "Whoever calls may still need them, for a second mask or a picture. X[...] = and functions "
        "whose names end in _ write into the tensor they are given.",
        section=NOTHING,
        hide=_in_place,
    ),
    "softmax-over-the-batch": known(
        "Your softmax runs over the sequences of the batch.",
        "Sequences in a batch have nothing to do with each other. F.softmax without dim takes the "
        "first of three axes. Which one are the keys?",
        axis=0,
    ),
    "logarithm-of-the-weights": known(
        "You return the logarithms of the weights.",
        "They are to be multiplied with values, so they have to be shares: from 0 to 1, and 1 in "
        "all. log_softmax is for losses.",
        finish=torch.log,
    ),
}

TASK = Task(
    "02-masked_softmax",
    attention.masked_softmax,
    softmax_cases,
    returns=("the result",),
    mistakes=read_again(PADDING, SOFTMAX),
    build=build_masked_softmax,
    point_out=point_out_row,
    alone=(
        "one-axis-too-many",
        "keys-counted-from-the-end",
        "length-0-counts-as-1",
        "longest-for-all",
        "one-key-too-many-but-for-0",
        "first-length-for-all",
        "softmax-over-queries-with-lengths",
        "small-number-in-the-sum",
        "fill-of-minus-1000-then-zeros",
        *(mistake.id for mistake in KINDS),
        "scores-cut-off",
        "lengths-by-their-number",
        "length-0-of-a-query-counts-as-1",
        "naive-exp-divided-safely",
        "naive-exp-nan-to-zeros",
        "naive-exp-zeros-where-no-sum",
        "one-maximum-for-the-table",
        "one-maximum-for-the-table-safely",
        "one-maximum-for-a-sequence",
        "one-maximum-for-a-sequence-safely",
        "lengths-squeezed",
        "divided-by-the-sum",
        "not-divided-by-the-sum",
        "sigmoid",
        "fill-not-low-enough-then-zeros",
        "zero-times-infinity",
        "zero-times-infinity-then-zeros",
        "score-of-0-hidden",
        "logarithm-of-the-weights",
    ),
    forbidden=(
        "mha_course.attention.masked_softmax",
        "mha_course.attention.length_mask",
        "d2l.torch.masked_softmax",
    ),
    number=2,
)
