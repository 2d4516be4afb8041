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
        case("scores in the thousands", 4, 3, 7, 8, 3, 3, scale=2000.0),
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


def begins(L, S):
    return torch.ones(L, S).tril().bool()


def after(scores, allowed, axis):
    return scores.softmax(axis) * allowed


def plain_exp(scores, allowed, axis):
    e = scores.masked_fill(~allowed, -math.inf).exp()
    return e / e.sum(axis, keepdim=True)


def divided_again(scores, allowed, axis):
    weights = after(scores, allowed, axis)
    return weights / weights.sum(axis, keepdim=True)


def step_stages(inputs):
    queries, keys = inputs["queries"], inputs["keys"]
    scores = queries @ keys.mT / math.sqrt(queries.shape[-1])
    weights = scores.masked_fill(~ends(*scores.shape[-2:]), -math.inf).softmax(-1)
    return {
        "the divided scores": scores,
        "the weights": weights,
        "the output": weights @ inputs["values"],
    }


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
        "The hidden scores are 0, or so close to it that exp makes 1 of them: they get weight.",
        "finfo.tiny is the positive number next to 0, and -tiny is the negative one. Which number "
        "has an exp of 0?",
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
    "hidden-scores-1": known(
        "The hidden scores are set to a number near 0, and they still get weight.",
        "exp(1) and exp(-1) are not 0. Which number has an exp of 0?",
        section=TESTS,
        hide=filled(1.0),
    ),
    "hidden-scores-minus-1": known(
        "The hidden scores are set to a number near 0, and they still get weight.",
        "exp(1) and exp(-1) are not 0. Which number has an exp of 0?",
        section=TESTS,
        hide=filled(-1.0),
    ),
    "hidden-scores-minus-10": known(
        "The hidden scores are set to about −10, and they still get a little weight.",
        "exp(-10) is small, and it is not 0. And real scores can be far lower.",
        section=TESTS,
        hide=filled(-10.0),
    ),
    "hidden-scores-lowest-there": known(
        "The hidden scores are set to the lowest of all scores, and still get weight.",
        "A hidden key gets no weight at all. Which number has an exp of 0?",
        section=TESTS,
        hide=lambda scores, allowed, axis: scores.masked_fill(
            ~allowed, scores.min().item()
        ).softmax(axis),
    ),
    "mask-added": known(
        "You add the mask to the scores: 1 is added where nothing should be seen.",
        "True counts as 1 in a sum. A hidden score has to become so low that its exp is 0.",
        section=TESTS,
        hide=lambda scores, allowed, axis: (scores + ~allowed).softmax(axis),
    ),
    "exp-without-maximum": known(
        "exp of a large score is infinite, and infinity divided by infinity is NaN.",
        "torch.softmax subtracts the largest score of a row first.",
        hide=plain_exp,
    ),
    "hidden-scores-highest": known(
        "The hidden scores are set to the largest number there is, so they get all the weight.",
        "finfo.max is as far above 0 as a number can be. Which one is as far below?",
        section=TESTS,
        hide=filled(torch.finfo(torch.float64).max),
    ),
    "hidden-scores-infinite": known(
        "The hidden scores are set to +inf, and inf / inf is NaN.",
        "Which number has an exp of 0?",
        section=TESTS,
        hide=filled(math.inf),
    ),
    "mask-times-infinity": known(
        "You multiply a mask by infinity, and 0 · inf is NaN.",
        "Where the mask is 0 nothing is to be added. masked_fill puts a number in, without a "
        "product.",
        hide=lambda scores, allowed, axis: (scores + (~allowed) * -math.inf).softmax(axis),
    ),
    "divided-by-the-rest": known(
        "You hide after the softmax and divide by what is left, which can be 0.",
        "Where a hidden score is much higher, all visible weights round to 0, and 0 / 0 is NaN. "
        "Hide before the softmax.",
        hide=divided_again,
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
    "shifted-the-other-way-by-one-more": known(
        "The triangle is moved the wrong way, by L − S, and it hides the diagonal as well.",
        "Write the mask for 2 queries and 5 keys by hand. The longer row has to be the last, and "
        "all its entries are allowed.",
        see=lambda L, S: torch.ones(L, S).tril(L - S - 1).bool(),
    ),
    "triangle-at-the-first-key-itself-hidden": known(
        "The triangle begins at key 0, and it hides the diagonal: the first word sees nothing.",
        "Query 0 stands at place S − L. It sees the keys from 0 to its own place.",
        see=lambda L, S: torch.ones(L, S).tril(-1).bool(),
    ),
    "triangle-at-the-second-key": known(
        "The first new word sees keys 0 and 1, however many words are old.",
        "Query 0 stands at place S − L. It sees the keys from 0 to its own place.",
        see=lambda L, S: torch.ones(L, S).tril(1).bool(),
    ),
    "past-hidden": known(
        "Each new word sees itself and what comes later: the past is hidden.",
        "masked_fill overwrites where its mask is True. Is that where a word may look?",
        see=lambda L, S: torch.ones(L, S).triu(S - L).bool(),
    ),
    "mask-inverted": known(
        "Each new word sees later words only, and the last one sees nothing.",
        "masked_fill overwrites where its mask is True. Is that where a word may look?",
        see=lambda L, S: ~ends(L, S),
    ),
    "cache-hidden": known(
        "The new words see each other, and not the old words.",
        "The keys of the old words are kept so that new words can look at them. Which columns of "
        "the mask belong to old words?",
        see=lambda L, S: ends(L, S) & (torch.arange(S) >= S - L),
    ),
    "triangle-of-the-new-words": known(
        "Your mask has a column for each new word only: (L, L).",
        "There is a score for each of S keys, so the mask is (L, S).",
        see=lambda L, S: torch.ones(L, L).tril().bool(),
    ),
    "triangle-of-all-words": known(
        "Your mask has a row for each of all S words: (S, S).",
        "There are L queries, those of the last L words, so the mask is (L, S). Which rows of "
        "yours are theirs?",
        see=lambda L, S: torch.ones(S, S).tril().bool(),
    ),
    "moved-by-L": known(
        "The triangle is moved by L, and it should be moved by how many words are old.",
        "How many words stand before the first new one, if there are S words and L of them are "
        "new?",
        see=lambda L, S: torch.ones(L, S).tril(L).bool(),
    ),
    "moved-by-L-less-one": known(
        "The triangle is moved by L − 1, and it should be moved by how many words are old.",
        "How many words stand before the first new one, if there are S words and L of them are "
        "new?",
        see=lambda L, S: torch.ones(L, S).tril(L - 1).bool(),
    ),
    "moved-by-S": known(
        "The triangle is moved by S: the first new word sees all words but the last, or all.",
        "Query 0 stands at place S − L. It sees the keys from 0 to its own place.",
        see=lambda L, S: torch.ones(L, S).tril(S - 2).bool(),
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
    "scaled-by-d": known(
        "The scores are divided by d, not by its root.",
        "That line was right in the found function.",
        section=TESTS,
        scale=lambda scores, d, d_v: scores / d,
    ),
    "multiplied": known(
        "The scores are multiplied by the root of d.",
        "That line was right in the found function.",
        section=TESTS,
        scale=lambda scores, d, d_v: scores * math.sqrt(d),
    ),
    "scaled-by-the-keys": known(
        "The scores are divided by the root of how many keys there are.",
        "A score is a sum of d products. d is the last size of queries and keys.",
        section="Equal sizes hide mistakes",
        scale=lambda scores, d, d_v: scores / math.sqrt(scores.shape[3]),
    ),
    "scaled-by-the-queries": known(
        "The scores are divided by the root of how many queries there are.",
        "A score is a sum of d products. d is the last size of queries and keys.",
        section="Equal sizes hide mistakes",
        scale=lambda scores, d, d_v: scores / math.sqrt(scores.shape[2]),
    ),
    "scaled-by-the-heads": known(
        "The scores are divided by the root of the number of heads.",
        "A score is a sum of d products. d is the last size of queries and keys.",
        section="Equal sizes hide mistakes",
        scale=lambda scores, d, d_v: scores / math.sqrt(scores.shape[1]),
    ),
    "scaled-by-the-values": known(
        "The scores are divided by the root of the width of the values.",
        "A score is a product of a query and a key. How wide are these?",
        section="Equal sizes hide mistakes",
        scale=lambda scores, d, d_v: scores / math.sqrt(d_v),
    ),
    "not-scaled": known(
        "The scores are not divided by the root of d.",
        "That line was right in the found function.",
        section=TESTS,
        scale=lambda scores, d, d_v: scores,
    ),
}

TASK = Task(
    "11-mended_step",
    build_step(),
    step_cases,
    mistakes=read_again(LOOK, STEP),
    build=build_step,
    stages=step_stages,
    alone=(
        "found",
        "past-hidden",
        "cache-only",
        "softmax-over-queries",
        "shifted-the-other-way",
        "hidden-scores-1",
        "hidden-scores-minus-1",
        "hidden-scores-minus-10",
        "hidden-scores-lowest-there",
        "mask-added",
        "exp-without-maximum",
        "shifted-the-other-way-by-one-more",
        "triangle-at-the-first-key-itself-hidden",
        "triangle-at-the-second-key",
        "scaled-by-the-heads",
        "scaled-by-the-queries",
        "scaled-by-the-keys",
        "hidden-scores-highest",
        "hidden-scores-infinite",
        "mask-times-infinity",
        "mask-inverted",
        "triangle-of-the-new-words",
        "triangle-of-all-words",
        "moved-by-L",
        "moved-by-L-less-one",
        "moved-by-S",
    ),
    number=2,
)
