"""Task 11.4, mended_weights: a mask that fits where batch and heads are equally many, repaired."""

import math

import torch

from mha_classroom.checks.task import Case, Task, known, read_again


def weighing_cases(draw):
    def case(name, B, H, L, rows, scale=1.0):
        real = torch.tensor(rows).bool()
        return Case(name, {"scores": draw.normal(B, H, L, len(rows[0]), scale=scale), "real": real})

    return [
        case("1 sequence, 2 heads", 1, 2, 3, [[1, 1, 0]]),
        case("as many sequences as heads", 2, 2, 3, [[1, 1, 1, 0], [1, 0, 0, 0]]),
        case("3 sequences, 2 heads", 3, 2, 4, [[1, 1, 1, 1, 1], [1, 1, 0, 0, 0], [1, 1, 1, 0, 0]]),
        case("padding on the left", 2, 3, 4, [[0, 0, 1, 1], [0, 1, 1, 1]]),
        case("padding in the middle", 2, 3, 2, [[1, 0, 1, 0, 1], [1, 1, 0, 0, 1]]),
        case("a sequence without a word", 3, 2, 3, [[1, 1, 0, 0], [0, 0, 0, 0], [1, 1, 1, 1]]),
        case("all sizes 3", 3, 3, 3, [[1, 1, 0], [1, 0, 0], [1, 1, 1]]),
        case("scores in the thousands", 2, 3, 4, [[1, 0, 1, 1], [1, 1, 0, 0]], scale=3000.0),
        case("one sequence without a word", 1, 3, 2, [[0, 0]]),
        low_case(draw),
    ]


def low_case(draw):
    """Scores below -100,000, so that a hidden score has to be lower still."""
    scores = -1e5 * (1 + draw.normal(2, 3, 4, 5).abs())
    real = torch.tensor([[1, 0, 1, 1, 0], [1, 1, 0, 0, 0]]).bool()
    return Case("all scores far below 0", {"scores": scores, "real": real})


def build_weights(
    fit=lambda real: real[:, None, None],
    hide=lambda scores, allowed, axis: scores.masked_fill(~allowed, -math.inf).softmax(axis),
    empty=lambda weights: weights.nan_to_num(0.0),
    axis=-1,
):
    """fit: the mask, so that it fits (B, H, L, S). empty: what becomes of rows without a key."""

    def mended_weights(scores, real):
        allowed = fit(real)
        return empty(hide(scores, allowed, axis))

    return mended_weights


def filled(fill):
    """A number in hidden places, and weights of 0 there."""
    return lambda scores, allowed, axis: scores.masked_fill(~allowed, fill).softmax(axis) * allowed


def beside_heads(real):
    return real[:, None]


def uniform(weights):
    return weights.nan_to_num(1 / weights.shape[-1])


BROADCAST = "Text C: right, and then once more"
LENGTH_0 = "Five survive the best test"
TESTS = "Tests that people write"

WEIGHTS = {
    "found": known(
        "Both defects of the found function are still there: the mask (B, 1, S) meets scores "
        "(B, H, L, S), and a sequence without a word gets equal weights.",
        "Where B = H the mask of sequence 1 is laid on head 1 of every sequence. Elsewhere there "
        "is an error, unless B is 1.",
        fit=beside_heads,
        empty=uniform,
    ),
    "mask-beside-the-heads": known(
        "The mask (B, 1, S) still meets scores (B, H, L, S).",
        "Broadcasting compares sizes from the right, so B stands where H is. How many axes of size "
        "1 are needed between B and S?",
        fit=beside_heads,
    ),
    "equal-weights-without-a-word": known(
        "A sequence without a word still gets equal weights.",
        "Its queries have nothing to attend to. The course gives such rows zeros.",
        section=LENGTH_0,
        empty=uniform,
    ),
    "nan-without-a-word": known(
        "A sequence without a word gets NaN.",
        "A softmax over nothing but -inf divides 0 by 0.",
        section=LENGTH_0,
        empty=lambda weights: weights,
    ),
    "queries-masked": known(
        "Your mask hides rows, the queries, in place of columns.",
        "Padding must not be seen, so its columns have weight 0. In self-attention both fit.",
        section=TESTS,
        fit=lambda real: real[:, None, :, None],
    ),
    "mask-inverted": known(
        "Your queries see the padding only.",
        "masked_fill overwrites where its mask is True, and real is True where a word stands.",
        section=TESTS,
        fit=lambda real: ~real[:, None, None],
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
    "hidden-scores-0": known(
        "The hidden scores are set to 0, and they still get weight.",
        "exp(0) is 1. Which number has an exp of 0?",
        section=TESTS,
        hide=lambda scores, allowed, axis: scores.masked_fill(~allowed, 0.0).softmax(axis),
    ),
    "hidden-scores-not-low-enough": known(
        "The hidden scores are set to a number that real scores can fall below.",
        "Scores may have any size. If those of the words are lower than your number, the padding "
        "gets their weight, and a product with the mask afterwards does not give it back.",
        section=LENGTH_0,
        hide=filled(-1e4),
    ),
    "hidden-after-the-softmax": known(
        "You hide after the softmax: the rows no longer sum to 1.",
        "When the softmax divided, the padding was in the sum.",
        section=TESTS,
        hide=lambda scores, allowed, axis: scores.softmax(axis) * allowed,
    ),
    "softmax-over-heads": known(
        "Your weights sum to 1 over the heads.",
        "Each query of each head shares out one unit of attention among the keys.",
        section=TESTS,
        axis=1,
    ),
    "softmax-over-queries": known(
        "Your weights sum to 1 over the queries.",
        "Each query shares out one unit of attention among the keys.",
        section=TESTS,
        axis=-2,
    ),
}

TASK = Task(
    "11-mended_weights",
    build_weights(),
    weighing_cases,
    mistakes=read_again(BROADCAST, WEIGHTS),
    build=build_weights,
    alone=(
        "found",
        "mask-beside-the-heads",
        "queries-masked",
        "softmax-over-heads",
        "softmax-over-queries",
        "lengths-made-of-the-mask",
        "mask-of-the-first",
    ),
    number=4,
)
