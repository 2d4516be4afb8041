"""Task 11.2, mended_step: new words that look back at a cache, repaired."""

import math

import torch

from mha_classroom.checks.task import Case, Task, known, read_again


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
        case("scores in the thousands", 2, 2, 4, 6, 3, 3, scale=2000.0),
        case("all sizes 4", 4, 4, 4, 4, 4, 4),
        low_case(draw),
    ]


def low_case(draw):
    """Scores below -100,000, so that a hidden score has to be lower still."""
    queries = 1e5 * (1 + draw.normal(2, 2, 3, 4).abs())
    keys = -1 - draw.normal(2, 2, 5, 4).abs()
    inputs = {"queries": queries, "keys": keys, "values": draw.normal(2, 2, 5, 3)}
    return Case("all scores far below 0", inputs)


def ends(L, S):
    """True where a word may be seen: the last query sees all."""
    return torch.ones(L, S).tril(S - L).bool()


def build_step(
    see=ends,
    hide=lambda scores, allowed, axis: scores.masked_fill(~allowed, -math.inf).softmax(axis),
    scale=lambda scores, d: scores / math.sqrt(d),
    axis=-1,
):
    def mended_step(queries, keys, values):
        scores = scale(queries @ keys.mT, queries.shape[-1])
        return hide(scores, see(*scores.shape[-2:]), axis) @ values

    return mended_step


def tiny(scores, allowed, axis):
    return scores.masked_fill(~allowed, torch.finfo(scores.dtype).tiny).softmax(axis)


def filled(fill):
    return lambda scores, allowed, axis: scores.masked_fill(~allowed, fill).softmax(axis)


def begins(L, S):
    return torch.ones(L, S).tril().bool()


def after(scores, allowed, axis):
    return scores.softmax(axis) * allowed


LOOK = "Five survive the best test"
TESTS = "Tests that people write"

STEP = {
    "found": known(
        "Both defects of the found function are still there: the triangle begins at key 0, and "
        "hidden scores become almost 0.",
        "Try one new word after a cache of five: how many of the six keys should it see? And what "
        "is exp of the smallest positive number?",
        see=begins,
        hide=tiny,
    ),
    "triangle-at-the-first-key": known(
        "The first new word sees key 0 and nothing else.",
        "The new words stand at the end of the sequence, so all words before them are past. At "
        "which place does query 0 stand, if there are S keys and L queries?",
        see=begins,
    ),
    "hidden-scores-tiny": known(
        "The hidden scores are set to 0, or to the smallest positive number, and still get weight.",
        "finfo.tiny is the positive number next to 0, and exp(0) is 1. Which number has an exp of "
        "0?",
        section=TESTS,
        hide=tiny,
    ),
    "hidden-scores-not-low-enough": known(
        "The hidden scores are set to a number that real scores can fall below.",
        "Scores of any size have to work. If those of the visible words are lower than your "
        "number, the hidden words get all the weight.",
        hide=filled(-100.0),
    ),
    "hidden-scores-low": known(
        "The hidden scores are low, like −1,000 or −10,000, but real scores can be lower.",
        "Scores of any size have to work. Here all visible words have scores below −100,000, so "
        "the hidden words get all the weight.",
        hide=filled(-1e4),
    ),
    "hidden-after-the-softmax": known(
        "You hide after the softmax: the rows no longer sum to 1.",
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
        "No new word sees itself.",
        "Causal means: itself, and what stands before it.",
        see=lambda L, S: torch.ones(L, S).tril(S - L - 1).bool(),
    ),
    "shifted-the-other-way": known(
        "The triangle is moved the wrong way: by L − S in place of S − L, or the other way round.",
        "Write the mask for 2 queries and 5 keys by hand. The longer row has to be the last, and "
        "all its entries are allowed.",
        see=lambda L, S: torch.ones(L, S).tril(L - S).bool(),
    ),
    "past-hidden": known(
        "Each new word sees itself and what comes later: the past is hidden.",
        "masked_fill overwrites where its mask is True. Is that where a word may look?",
        see=lambda L, S: torch.ones(L, S).triu(S - L).bool(),
    ),
    "cache-only": known(
        "The new words see the cache, and not each other.",
        "A new word also sees itself and the new words before it.",
        see=lambda L, S: (torch.arange(S) < max(S - L, 0)).expand(L, S),
    ),
    "all-visible": known(
        "Nothing is hidden: new words see later ones.",
        "For one new word that is right, and many tests stop there. Try two.",
        see=lambda L, S: torch.ones(L, S).bool(),
    ),
    "softmax-over-queries": known(
        "Your weights sum to 1 over the queries.",
        "Each query shares out one unit of attention among the keys.",
        section=TESTS,
        axis=-2,
    ),
    "not-scaled": known(
        "The scores are not divided by the root of d.",
        "That line was right in the found function.",
        section=TESTS,
        scale=lambda scores, d: scores,
    ),
}

TASK = Task(
    "11-mended_step",
    build_step(),
    step_cases,
    mistakes=read_again(LOOK, STEP),
    build=build_step,
    alone=("found", "past-hidden", "cache-only", "softmax-over-queries", "shifted-the-other-way"),
    number=2,
)
