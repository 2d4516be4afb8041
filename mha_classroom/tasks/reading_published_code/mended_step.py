"""Task 11.2, mended_step: new words that look back at a cache, repaired."""

import math

import torch

from mha_classroom.checks.forms import CUT_OFF_AT, FILLS, any_of
from mha_classroom.checks.task import Case, Task, in_float32, known, read_again
from mha_classroom.tasks.cross_attention.bahdanau_step import SCORES_CUT_OFF


def step_cases(draw):
    def case(name, B, H, L, S, d, d_v, scale=1.0):
        return Case(
            name,
            {
                "queries": draw.normal(B, H, L, d, scale=scale),
                "keys": draw.normal(B, H, S, d),
                "values": draw.normal(B, H, S, d_v),
            },
        )

    return [
        case("3 new words of 3", 1, 1, 3, 3, 2, 2),
        case("2 new words of 5", 1, 1, 2, 5, 2, 2),
        case("3 new words of 7, 2 sequences, 3 heads", 2, 3, 3, 7, 4, 5),
        case("one new word of 6", 2, 2, 1, 6, 3, 3),
        case("5 new words of 6", 3, 2, 5, 6, 4, 2),
        case("one word in all", 2, 3, 1, 1, 2, 4),
        case("scores in the thousands", 4, 3, 7, 8, 3, 3, scale=2000.0),
        high(case("all sizes 4, scores near 5,000", 4, 4, 4, 4, 4, 4)),
        low_case(draw),
        default_case(draw),
        widest_case(draw),
    ]


def high(case):
    """The same with 5,000 added to all scores, by one feature of queries and keys."""
    for name, number in (("queries", 50), ("keys", 200)):
        case.inputs[name][..., 0] = number
    return case


def default_case(draw):
    """Scores of 0 and whole numbers for values: no digit is rounded, in whatever order."""
    inputs = {
        "queries": torch.zeros(2, 3, 2, 4).double(),
        "keys": torch.ones(2, 3, 2, 4),
        "values": draw.integers(-9, 9, 2, 3, 2, 5).double(),
    }
    return in_float32(Case("all scores 0, in float32", inputs))


def low_case(draw):
    """Scores from -1e15 to -9e14, so that a hidden score has to be lower still; in one head all are
    -1e15. In width 16 equal ones are so in whatever order they are divided and added up."""
    queries = torch.full((2, 2, 3, 16), 2.5e14).double()
    keys = (0.02 * draw.normal(2, 2, 5, 16).abs()).clamp(max=0.1) - 1
    keys[0, 0] = -1
    inputs = {"queries": queries, "keys": keys, "values": draw.normal(2, 2, 5, 3)}
    return Case("all scores far below 0", inputs)


def widest_case(draw):
    """The first word has a score of -1e15, and what is hidden from it 1e15."""
    keys = torch.tensor([-1.0, 0.5, 1.0])[:, None].expand(2, 3, 3, 1).double()
    inputs = {"queries": torch.full((2, 3, 3, 1), 1e15).double(), "keys": keys.clone()}
    inputs["values"] = draw.integers(-9, 9, 2, 3, 3, 2).double()
    return in_float32(Case("scores from −1e15 to 1e15, in float32", inputs))


def ends(L, S):
    """True where a word may be seen: the last query sees all."""
    return torch.ones(L, S).tril(S - L).bool()


def build_step(
    see=ends,
    hide=lambda scores, allowed, axis: scores.masked_fill(~allowed, -math.inf).softmax(axis),
    scale=lambda scores, d, d_v: scores / math.sqrt(d),
    axis=-1,
):
    def mended_step(queries, keys, values):
        scores = scale(queries @ keys.mT, queries.shape[-1], values.shape[-1])
        return hide(scores, see(*scores.shape[-2:]), axis) @ values

    return mended_step


def tiny(scores, allowed, axis):
    return scores.masked_fill(~allowed, torch.finfo(scores.dtype).tiny).softmax(axis)


def filled(fill):
    return lambda scores, allowed, axis: scores.masked_fill(~allowed, fill).softmax(axis)


def lowest(scores, allowed, axis):
    return filled(torch.finfo(scores.dtype).min)(scores, allowed, axis)


def exp_of_all(scores, allowed, axis):
    e = scores.exp() * allowed
    return e / e.sum(axis, keepdim=True)


def exp_of_seen(scores, allowed, axis):
    e = scores.masked_fill(~allowed, -math.inf).exp()
    return e / e.sum(axis, keepdim=True)


def exp_below_one_maximum(scores, allowed, axis):
    return exp_of_all(scores - scores.max(), allowed, axis)


def below_all(scores, allowed, axis):
    return exp_of_all(scores - scores.amax(axis, keepdim=True), allowed, axis)


def divided_again(scores, allowed, axis):
    weights = scores.softmax(axis) * allowed
    return weights / weights.sum(axis, keepdim=True)


def divided_by_a_little_more(scores, allowed, axis):
    weights = scores.softmax(axis) * allowed
    return weights / weights.sum(axis, keepdim=True).clamp(min=1e-9)


def lowered(by):
    return lambda scores, allowed, axis: (scores - by * ~allowed).softmax(axis)


def cut_off(low, high):
    return lambda scores, allowed, axis: (
        scores.clamp(low, high).masked_fill(~allowed, -math.inf).softmax(axis)
    )


def just_below(by):
    return lambda scores, allowed, axis: scores.masked_fill(
        ~allowed, scores.min().item() - by
    ).softmax(axis)


def begins(L, S):
    return torch.ones(L, S).tril().bool()


def after(scores, allowed, axis):
    return scores.softmax(axis) * allowed


def step_stages(inputs):
    queries, keys = inputs["queries"], inputs["keys"]
    scores = queries @ keys.mT / math.sqrt(queries.shape[-1])
    weights = scores.masked_fill(~ends(*scores.shape[-2:]), -math.inf).softmax(-1)
    return {
        "the divided scores": scores,
        "the weights": weights,
        "the output": weights @ inputs["values"],
    }


EQUAL = "Equal sizes hide mistakes"
LOOK = "Five survive the best test"
TESTS = "Tests that people write"


LOWER = (-1e10, -1e12, -1e13, -1e14, -1e15)
NOT_LOW_ENOUGH = (-1e9, *FILLS[::-1], *LOWER)


def one_maximum(scores):
    e = (scores - scores.max()).exp()
    return e / e.sum(-1, keepdim=True)


def one_maximum_a_table(scores):
    e = (scores - scores.amax((-2, -1), keepdim=True)).exp()
    return e / e.sum(-1, keepdim=True)


def no_maximum(scores):
    e = scores.exp()
    return e / e.sum(-1, keepdim=True)


LARGE_EXPS = no_maximum, one_maximum, one_maximum_a_table
TOO_LARGE = (
    "Where scores are large your exp is infinite, or 0 for all of a row, and the result NaN.",
    "exp(1000) is infinite, and exp(-1000) is 0. Lesson 1 takes off the maximum first, of each row "
    "its own; torch.softmax does that, too.",
)


def zeros_for_none(scores, allowed, axis):
    return filled(-math.inf)(scores, allowed, axis).nan_to_num(0.0)


def less_the_logarithm(scores, allowed, axis):
    words = scores.masked_fill(~allowed, -math.inf)
    return (words - words.logsumexp(axis, keepdim=True)).exp()


def lowest_there(scores, allowed, axis):
    return scores.masked_fill(~allowed, scores.min().item()).softmax(axis)


def _triangles(*moved):
    """moved: by how much the triangle is, of L and S. A row without a 1 is NaN, or equal weights
    where a lowest number hides."""
    see = [lambda L, S, by=by: torch.ones(L, S).tril(by(L, S)).bool() for by in moved]
    choices = [{"see": each} | more for more in ({}, {"hide": lowest}) for each in see]
    return any_of(build_step, *choices)


FLOAT64_ONLY = (
    "You hide with a number that float64 can hold and float32 cannot.",
    "PyTorch makes float32 unless it is told otherwise, and so may your caller. Which number is "
    "low in every dtype, or the lowest in that of the scores?",
)

STEP = {
    "triangle-at-the-first-key": known(
        "The first new word sees key 0 and nothing else.",
        "The new words stand at the end of the sequence, so all words before them are past. At "
        "which place does query 0 stand, if there are S keys and L queries?",
        section=EQUAL,
        see=begins,
    ),
    "hidden-scores-tiny": known(
        "The hidden scores get weight: they are 0, nearly 0 like finfo.tiny, a small number like "
        "-10, or as low as the lowest score.",
        "finfo.tiny is the positive number next to 0, and -tiny is the negative one. Which number "
        "has an exp of 0?",
        section=TESTS,
        **any_of(build_step, hide=(tiny, filled(1.0), filled(-1.0), filled(-10.0), lowest_there)),
    ),
    "hidden-scores-not-low-enough": known(
        "The hidden scores are not low enough: real ones can be as low, or lower.",
        "Scores down to −1e15 have to work. In one case here all are below −8e14. Where those of "
        "the visible words are not above yours, the hidden words get weight.",
        **any_of(
            build_step,
            hide=[
                *(filled(fill) for fill in NOT_LOW_ENOUGH if fill < -10),
                *(lowered(-fill) for fill in (-1e9, -1e4, -1e6, *LOWER, -2e15)),
            ],
        ),
    ),
    "hidden-after-the-softmax": known(
        "You hide after the softmax, or after its sum: the rows no longer sum to 1.",
        "When the softmax divided, the later words were in the sum.",
        section=TESTS,
        hide=after,
    ),
    "next-word-visible": known(
        "Each new word sees one word past its own place.",
        "The last query sees all S keys, itself included. The one before it sees one less.",
        see=lambda L, S: torch.ones(L, S).tril(S - L + 1).bool(),
    ),
    "itself-hidden": known(
        "Your mask hides every new word from itself.",
        "Causal means: itself, and what stands before it.",
        **_triangles(lambda L, S: S - L - 1),
    ),
    "cache-hidden": known(
        "The new words see each other, and not the old words.",
        "The keys of the old words are kept so that new words can look at them. Which columns of "
        "the mask belong to old words?",
        see=lambda L, S: ends(L, S) & (torch.arange(S) >= S - L),
    ),
    "other-new-words-hidden": known(
        "A new word sees the old words and itself, and not the new words before it.",
        "Each may see all words before it, old or new. Write the mask for 3 new words and no old "
        "one by hand.",
        see=lambda L, S: (
            ends(L, S) & ((torch.arange(S) < S - L) | torch.eye(L, S).roll(S - L, 1).bool())
        ),
    ),
    "hidden-without-a-cache-only": known(
        "Where there are old words, nothing is hidden: new words see later ones.",
        "Old words are all in the past, and the new ones are not: the first of them is before the "
        "others. Which places are hidden with 2 new words among 5?",
        section=EQUAL,
        see=lambda L, S: ends(L, S) if L == S else torch.ones(L, S).bool(),
    ),
    "all-visible": known(
        "Nothing is hidden: new words see later ones.",
        "For one new word that is right, and many tests stop there. Try two.",
        see=lambda L, S: torch.ones(L, S).bool(),
    ),
    "scaled-by-something-else": known(
        "The scores are divided by something else than the root of d, or multiplied by it.",
        "A score is a sum of d products. d is the last size of queries and keys. That line was "
        "right in the found function.",
        section=EQUAL,
        **any_of(
            build_step,
            scale=(
                lambda scores, d, d_v: scores / math.sqrt(d_v),
                lambda scores, d, d_v: scores / d,
                lambda scores, d, d_v: scores * math.sqrt(d),
                lambda scores, d, d_v: scores / math.sqrt(scores.shape[1]),
                lambda scores, d, d_v: scores / math.sqrt(scores.shape[2]),
                lambda scores, d, d_v: scores / math.sqrt(scores.shape[3]),
            ),
        ),
    ),
    "not-scaled": known(
        "The scores are not divided by the root of d.",
        "That line was right in the found function.",
        section=TESTS,
        scale=lambda scores, d, d_v: scores,
    ),
    "exp-too-large": known(
        *TOO_LARGE,
        **any_of(build_step, hide=(exp_of_all, exp_of_seen, exp_below_one_maximum)),
    ),
    "maximum-of-the-hidden": known(
        "Later words take part before they are hidden: their score is the maximum that you "
        "subtract, or their exp is infinite, or they are in a softmax that you divide again.",
        "If a later word has a much higher score than all words before it, exp makes 0 of every "
        "word that is seen, or the later word's exp is infinite, and inf · 0 is NaN. Hide first.",
        **any_of(build_step, hide=(below_all, divided_again, divided_by_a_little_more)),
    ),
    "float64-only": known(
        *FLOAT64_ONLY,
        section=TESTS,
        hide=filled(torch.finfo(torch.float64).min),
    ),
}

# Not looked for together with another one: they hide it, or are seldom made.
ALONE = {
    "mask-added": known(
        "A hidden score gets 1 more than the others: you add the mask, or subtract its opposite.",
        "True counts as 1 in a sum. A hidden score has to become so low that its exp is 0.",
        section=TESTS,
        hide=lambda scores, allowed, axis: (scores + ~allowed).softmax(axis),
    ),
    "hidden-scores-highest": known(
        "The hidden scores are set to NaN, or to +inf, and inf / inf is NaN; or to the largest "
        "number there is, so they get all the weight.",
        "Which number has an exp of 0?",
        section=TESTS,
        **any_of(build_step, hide=(filled(math.inf), filled(torch.finfo(torch.float64).max))),
    ),
    "mask-times-infinity": known(
        "All your numbers are NaN: either you multiply a mask by infinity, and 0 · inf is NaN, or "
        "you hide every word.",
        "Where the mask is 0 nothing is to be added. masked_fill puts a number in, without a "
        "product.",
        hide=lambda scores, allowed, axis: (scores + (~allowed) * -math.inf).softmax(axis),
    ),
    "shifted-the-other-way": known(
        "The triangle is moved the wrong way: by L − S in place of S − L, or the other way round.",
        "Write the mask for 2 queries and 5 keys by hand. The longer row has to be the last, and "
        "all its entries are allowed.",
        section=EQUAL,
        **_triangles(lambda L, S: L - S, lambda L, S: L - S - 1),
    ),
    "mask-inverted": known(
        "Each new word sees what comes later: the past is hidden.",
        "masked_fill overwrites where its mask is True, and scaled_dot_product_attention looks "
        "there. Is that where a word may look?",
        **any_of(
            build_step,
            {"see": lambda L, S: ~ends(L, S)},
            {"see": lambda L, S: torch.ones(L, S).triu(S - L).bool()},
            {"see": lambda L, S: ~ends(L, S), "hide": zeros_for_none},  # as the fused function
        ),
    ),
    "moved-by-something-else": known(
        "The triangle is moved by L, by S or by 1, or by one more or one less, and it should be "
        "moved by how many words are old.",
        "How many words stand before the first new one, if there are S words and L of them are "
        "new?",
        section=EQUAL,
        **_triangles(
            lambda L, S: L,
            lambda L, S: L - 1,
            lambda L, S: S - 2,
            lambda L, S: S - 1,
            lambda L, S: 1,
            lambda L, S: -1,
        ),
    ),
    "scores-cut-off": known(
        *SCORES_CUT_OFF,
        section=TESTS,
        **any_of(build_step, hide=[cut_off(*ends) for ends in CUT_OFF_AT]),
    ),
    "just-below-the-lowest": known(
        "You hide with a number that is a little below the lowest score.",
        "Where scores are close to each other, a score lower by 1 still has a third of the weight. "
        "Which number has an exp of 0?",
        section=TESTS,
        **any_of(build_step, hide=[just_below(by) for by in (1, 2, 5, 10)]),
    ),
    "logarithm-of-large-scores": known(
        "You take off the logarithm of a sum of exps. Beside huge scores it has no digits left.",
        "1e15 and log 2 make 1e15 and a little, which float64 rounds: the weights of a row no "
        "longer sum to 1. Divide by the sum itself, as softmax does.",
        hide=less_the_logarithm,
    ),
    "softmax-over-queries": known(
        "Your weights sum to 1 over the queries.",
        "Each query shares out one unit of attention among the keys.",
        section=TESTS,
        axis=-2,
    ),
}

TASK = Task(
    "11-mended_step",
    build_step(),
    step_cases,
    mistakes=read_again(LOOK, STEP | ALONE),
    build=build_step,
    stages=step_stages,
    alone=(*ALONE, "other-new-words-hidden", "hidden-without-a-cache-only"),
    number=2,
)
