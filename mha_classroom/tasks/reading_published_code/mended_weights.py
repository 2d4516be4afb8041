"""Task 11.4, mended_weights: a mask that fits where batch and heads are equally many, repaired."""

import math

import torch

from mha_classroom.checks.examining import is_floats
from mha_classroom.checks.forms import CUT_OFF_AT, any_of
from mha_classroom.checks.task import Case, Task, in_float32, known, read_again
from mha_classroom.tasks.cross_attention.bahdanau_step import SCORES_CUT_OFF
from mha_classroom.tasks.reading_published_code.mended_step import (
    FLOAT64_ONLY,
    LOWER,
    NOT_LOW_ENOUGH,
    cut_off,
)


def weighing_cases(draw):
    def case(name, B, H, L, rows, scale=1.0):
        real = torch.tensor(rows).bool()
        return Case(name, {"scores": draw.normal(B, H, L, len(rows[0]), scale=scale), "real": real})

    return [
        case("1 sequence, 2 heads", 1, 2, 3, [[1, 1, 0]]),
        case("as many sequences as heads", 2, 2, 3, [[1, 1, 1, 0], [1, 0, 0, 0]]),
        case("3 sequences, 2 heads", 3, 2, 4, [[1, 1, 1, 1, 1], [1, 1, 0, 0, 0], [1, 1, 1, 0, 0]]),
        case("padding on the left", 2, 3, 4, [[0, 0, 1, 1], [0, 1, 1, 1]]),
        high(case("scores near 5,000", 2, 3, 2, [[1, 0, 1, 0, 1], [1, 1, 0, 0, 1]])),
        case("a sequence without a word", 3, 2, 3, [[1, 1, 0, 0], [0, 0, 0, 0], [1, 1, 1, 1]]),
        case("all sizes 3", 3, 3, 3, [[1, 1, 0], [1, 0, 0], [1, 1, 1]]),
        padding_above(
            case("scores in the thousands", 2, 3, 4, [[1, 0, 1, 1], [1, 1, 0, 0]], scale=3000.0)
        ),
        case("one sequence without a word", 1, 3, 2, [[0, 0]]),
        low_case(draw),
        in_float32(
            case("all scores 0, in float32", 3, 2, 4, [[0, 1, 0], [0, 0, 0], [0, 1, 1]], scale=0.0)
        ),
        widest_case(),
        case("one place in all", 2, 3, 1, [[1], [0]]),
        case("no padding", 2, 3, 2, [[1, 1, 1], [1, 1, 1]]),
    ]


def high(case):
    """The same with all scores far above 0."""
    return Case(case.name, case.inputs | {"scores": case.inputs["scores"] + 5000})


def padding_above(case):
    """The same with one row in which all words are above 0, and padding far above them."""
    case.inputs["scores"][0, 0, 0] = torch.tensor([2000.0, 9000.0, 1000.0, 500.0])
    return case


def low_case(draw):
    """Scores from -1e15 to -9e14, so that a hidden score has to be lower still; in one head all are
    -1e15."""
    scores = -1e15 * (1 - 0.02 * draw.normal(2, 3, 4, 5).abs()).clamp(min=0.9)
    scores[0, 0] = -1e15
    real = torch.tensor([[1, 0, 1, 1, 0], [1, 1, 0, 0, 0]]).bool()
    return Case("all scores far below 0", {"scores": scores, "real": real})


def widest_case():
    """A word with a score of -1e15 beside padding with 1e15."""
    scores = 1e15 * torch.tensor([[-1.0, 1.0], [1.0, -1.0], [1.0, 1.0]])[:, None, None]
    inputs = {"scores": scores.double(), "real": torch.tensor([[1, 0], [0, 1], [0, 0]]).bool()}
    return in_float32(Case("scores from −1e15 to 1e15, in float32, one head", inputs))


def build_weights(
    fit=lambda real: real[:, None, None],
    fit_heads=None,
    hide=lambda scores, allowed, axis: scores.masked_fill(~allowed, -math.inf).softmax(axis),
    empty=lambda weights: weights.nan_to_num(0.0),
    axis=-1,
):
    """fit, fit_heads: the mask, so that it fits (B, H, L, S). empty: what becomes of rows without a
    key."""

    def mended_weights(scores, real):
        allowed = fit_heads(real, scores.shape[1]) if fit_heads else fit(real)
        return empty(hide(scores, allowed, axis))

    return mended_weights


def filled(fill):
    """A number in hidden places, and weights of 0 there."""
    return lambda scores, allowed, axis: scores.masked_fill(~allowed, fill).softmax(axis) * allowed


def filled_before(fill):
    """The same, with weights of 0 for a sequence without a word only."""
    return lambda scores, allowed, axis: (
        scores.masked_fill(~allowed, fill).softmax(axis) * allowed.any(-1, keepdim=True)
    )


def lowered(by):
    """A number taken off in hidden places, and weights of 0 there."""
    return lambda scores, allowed, axis: (scores - by * ~allowed).softmax(axis) * allowed


def lowered_and_no_more(by):
    return lambda scores, allowed, axis: (scores - by * ~allowed).softmax(axis)


def weights_stages(inputs):
    scores, allowed = inputs["scores"], inputs["real"][:, None, None]
    hidden = scores.masked_fill(~allowed, -math.inf)
    weights = hidden.softmax(-1).nan_to_num(0.0)
    return {"the softmax over the words, with zeros where there is none": weights}


def by_exp(shift):
    """shift: what is subtracted before exp."""

    def hide(scores, allowed, axis):
        e = (scores - shift(scores)).exp() * allowed
        return e / e.sum(axis, keepdim=True)

    return hide


MORE_THAN_A_ROW = (0, 1, 2, 3), (1, 2, 3), (2, 3)


def below_maximum_over(axes):
    def hide(scores, allowed, axis):
        words = scores.masked_fill(~allowed, -math.inf)
        e = (words - words.amax(axes, keepdim=True)).exp()
        return e / e.sum(axis, keepdim=True)

    return hide


def falls_short(inputs, weights):
    """Whether each row is the right one times a number from 0 to 1: 0 only without a word, or where
    padding has a far higher score."""
    scores, words = inputs["scores"], inputs["real"][:, None, None]
    right = build_weights()(scores, inputs["real"])
    if not is_floats(weights, right.shape):
        return False
    sums = weights.double().sum(-1, keepdim=True)
    near = scores - scores.amax(-1, keepdim=True) > -10
    some = (sums > 0) | ~(near & words).any(-1, keepdim=True)
    fits = (weights - sums * right).abs().max() < 1e-6 and sums.max() < 1 + 1e-6
    return bool(fits and some.all())


def beside_heads(real):
    return real[:, None]


def uniform(weights):
    return weights.nan_to_num(1 / weights.shape[-1])


def _zeros_if_all_are_empty(weights):
    return weights.nan_to_num(0.0) if weights.isnan().all() else weights


def sum_made_larger(scores, real):
    allowed = real[:, None, None]
    e = (scores - scores.masked_fill(~allowed, -1e30).amax(-1, keepdim=True)).clamp(max=0).exp()
    e = e * allowed
    return e / (e.sum(-1, keepdim=True) + 1e-3)


BROADCAST = "Text C: right, and then once more"
LENGTH_0 = "Five survive the best test"
TESTS = "Tests that people write"

WEIGHTS = {
    "mask-beside-the-heads": known(
        "The mask meets the scores (B, H, L, S) with its B in the place of H.",
        "Broadcasting compares sizes from the right, as with (B, 1, S) in the found function. How "
        "many axes of size 1 are needed between B and S?",
        fit=beside_heads,
    ),
    "equal-weights-without-a-word": known(
        "A sequence without a word still gets equal weights.",
        "Its queries have nothing to attend to, so the statement asks for weights of 0 there.",
        section=LENGTH_0,
        empty=uniform,
    ),
    "nan-without-a-word": known(
        "A sequence without a word gets NaN.",
        "A softmax over nothing but -inf divides 0 by 0.",
        section=LENGTH_0,
        **any_of(build_weights, empty=(lambda weights: weights, _zeros_if_all_are_empty)),
    ),
    "mask-inverted": known(
        "Your queries see the padding only.",
        "masked_fill overwrites where its mask is True, and real is True where a word stands.",
        section=TESTS,
        fit=lambda real: ~real[:, None, None],
    ),
    "hidden-scores-0": known(
        "The hidden scores are 0, or nearly 0, and they still get weight.",
        "exp(0) is 1. Which number has an exp of 0?",
        section=TESTS,
        hide=lambda scores, allowed, axis: scores.masked_fill(~allowed, 0.0).softmax(axis),
    ),
    "hidden-scores-not-low-enough": known(
        "The hidden scores are not low enough: real ones can be as low, or lower.",
        "Scores down to −1e15 have to work. In one case here all are below −8e14. Where those of "
        "the words are not above yours, the padding gets weight of theirs, and a product with the "
        "mask afterwards does not give it back.",
        section=LENGTH_0,
        **any_of(
            build_weights,
            hide=[
                *(filled(fill) for fill in NOT_LOW_ENOUGH),
                *(filled_before(fill) for fill in (-1e9, -1e4, *LOWER)),
                *(
                    lower(-fill)
                    for lower in (lowered, lowered_and_no_more)
                    for fill in (-1e9, -1e4, -1e6, *LOWER, -2e15)
                ),
            ],
        ),
    ),
    "hidden-after-the-softmax": known(
        "You hide after the softmax, or after its sum: the rows no longer sum to 1.",
        "When the softmax divided, the padding was in the sum.",
        section=TESTS,
        hide=lambda scores, allowed, axis: scores.softmax(axis) * allowed,
    ),
    "scores-times-the-mask": known(
        "Padding has a score of 0 in your softmax, by a product with the mask or by masked_fill, "
        "and counts in the sum by which all are divided.",
        "exp(0) is 1. Which number has an exp of 0?",
        section=TESTS,
        **any_of(
            build_weights,
            hide=(
                lambda scores, allowed, axis: (
                    (scores * allowed).softmax(axis) * allowed.any(-1, keepdim=True)
                ),
                lambda scores, allowed, axis: (scores * allowed).softmax(axis) * allowed,
            ),
        ),
    ),
    "mask-added": known(
        "A word's score gets 1 more than padding's: you add the mask, or subtract its opposite. "
        "Padding still gets weight.",
        "True counts as 1 in a sum. A hidden score has to become so low that its exp is 0.",
        section=TESTS,
        hide=lambda scores, allowed, axis: (scores + allowed.double()).softmax(axis),
    ),
    "maximum-of-the-padding": known(
        "Padding takes part before it is hidden: its score is the maximum that you subtract, or "
        "its exp is infinite, or it is in a softmax that you divide again.",
        "If padding has a much higher score than all words, exp makes 0 of every word, or "
        "padding's exp is infinite, and inf · 0 is NaN. Hide first.",
        section=LENGTH_0,
        hide=by_exp(lambda scores: scores.amax(-1, keepdim=True)),
    ),
    "one-maximum-for-all": known(
        "You take one maximum off the scores of several rows.",
        "Where a row's own scores are far below it, exp makes 0 of all of them. Each row has a "
        "maximum of its own.",
        section=TESTS,
        **any_of(build_weights, hide=[below_maximum_over(axes) for axes in MORE_THAN_A_ROW]),
    ),
}

# Not looked for together with another one: they hide it, or are seldom made.
ALONE = {
    "float64-only": known(
        *FLOAT64_ONLY,
        section=TESTS,
        hide=filled(torch.finfo(torch.float64).min),
    ),
    "scores-cut-off": known(
        *SCORES_CUT_OFF,
        section=TESTS,
        **any_of(build_weights, hide=[cut_off(*ends) for ends in CUT_OFF_AT]),
    ),
    "queries-masked": known(
        "Your mask hides rows, the queries, in place of columns.",
        "Padding must not be seen, so its columns have weight 0. In self-attention both fit.",
        section=TESTS,
        fit=lambda real: real[:, None, :, None],
    ),
    "mask-of-the-first": known(
        "All sequences get the mask of the first one.",
        "Each sequence has its own padding. Try two that differ.",
        section=TESTS,
        fit=lambda real: real[:1, None, None],
    ),
    "lengths-made-of-the-mask": known(
        "You count the words and take the first ones for real.",
        "Padding may stand on the left or in the middle. The mask says where.",
        section=TESTS,
        fit=lambda real: (torch.arange(real.shape[1]) < real.sum(1, keepdim=True))[:, None, None],
    ),
    "masks-on-the-wrong-sequences": known(
        "You repeat the masks one after another, and a sequence gets those of others.",
        "repeat copies the batch as a whole: all B masks, then all B of them again. Sequence b "
        "needs its own mask H times in a row. And a size of 1 needs no copies.",
        fit_heads=lambda real, H: real.repeat(H, 1).view(len(real), H, 1, -1),
    ),
    "mask-times-infinity": known(
        "All your weights are 0: either you multiply a mask by infinity, where 0 · inf is NaN, and "
        "make zeros of NaN, or you hide every place.",
        "Where the mask is 0 nothing is to be added. masked_fill puts a number in, without a "
        "product.",
        section=TESTS,
        hide=lambda scores, allowed, axis: (scores + (~allowed) * -math.inf).softmax(axis),
    ),
    "softmax-over-another-axis": known(
        "Your weights sum to 1 over the queries, the heads or the sequences.",
        "Each query of each head shares out one unit of attention among the keys.",
        section=TESTS,
        **any_of(build_weights, axis=(-2, 1, 0)),
    ),
    "sum-made-larger": known(
        "Your rows are in proportion, and they sum to less than 1.",
        "Is a number added to the sum that you divide by? It makes all weights smaller, and only "
        "rows without a word have no sum. Or are hidden scores not low enough, and the padding's "
        "weights set to 0 afterwards? Then the words lack what the padding got. Or do you take "
        "the logarithm of the sum off the scores? Beside large scores it loses its digits.",
        section=LENGTH_0,
        wrong=sum_made_larger,
        shows=falls_short,
    ),
}

TASK = Task(
    "11-mended_weights",
    build_weights(),
    weighing_cases,
    mistakes=read_again(BROADCAST, WEIGHTS | ALONE),
    build=build_weights,
    stages=weights_stages,
    alone=tuple(ALONE),
    number=4,
)
