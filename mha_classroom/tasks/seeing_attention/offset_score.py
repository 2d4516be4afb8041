"""Task 7.3, offset_score: how strongly a head looks so many tokens on."""

import numpy as np
import torch

from mha_classroom.checks.examining import first_wrong, total
from mha_classroom.checks.forms import any_of
from mha_classroom.checks.showing import numbers_text
from mha_classroom.checks.task import (
    Case,
    Task,
    and_in_float32,
    by_id,
    known,
    read_again,
    unchanged,
)
from mha_classroom.tasks.seeing_attention.most_attended import FORBIDDEN, random_weights, table
from mha_course.explorer import heads


@and_in_float32
def offset_cases(draw):
    """Both sides, near and far, ranks 2 to 5, L equal to other axes."""

    def case(name, offset, *shape):
        return Case(name, {"weights": random_weights(draw, *shape), "offset": offset})

    small = table(
        [0.7, 0.1, 0.1, 0.1], [0.6, 0.2, 0.1, 0.1], [0, 0.5, 0.2, 0.3], [0.2, 0, 0.4, 0.4]
    )
    gap = table([1, 0, 0, 0], [0.6, 0.4, 0, 0], [0.5, 0, 0.5, 0], [0.1, 0.2, 0.3, 0.4])
    halves = random_weights(draw, 2, 19, 19) / 2
    return [
        Case("one head, the token before", {"weights": small, "offset": -1}),
        Case("one head, the token after", {"weights": small, "offset": 1}),
        case("3 heads, the token before", -1, 3, 5, 5),
        case("2 layers, 3 heads, the token after", 1, 2, 3, 5, 5),
        case("each token itself", 0, 2, 3, 7, 7),
        case("2 further on", 2, 3, 2, 7, 7),
        case("3 back", -3, 2, 5, 7, 7),
        case("as many heads as tokens, 2 back", -2, 5, 5, 5),
        case("all axes equal", 1, 3, 3, 3, 3),
        case("from the first token to the last", 4, 2, 5, 5),
        case("from the last token to the first", -6, 3, 7, 7),
        case("one token", 0, 2, 3, 1, 1),
        case("five axes", -1, 2, 1, 3, 5, 5),
        Case("19 tokens, rows of sum 1/2, 7 back", {"weights": halves, "offset": -7}),
        Case("a weight of 0 among those that are looked at", {"weights": gap, "offset": -1}),
        Case(
            "weights are not contiguous",
            {"weights": random_weights(draw, 3, 7, 5, 5).transpose(0, 1), "offset": 1},
        ),
    ]


@total
def examine_offset(inputs, score):
    """The result of `offset_score`; of one head (L, L) a plain number is as good."""
    return of_one_head(inputs["weights"], score)


def of_one_head(weights, score):
    """The score as a tensor of the dtype of weights, if these are (L, L) and it is a number."""
    if weights.dim() == 2 and isinstance(score, (float, np.floating)):
        return torch.tensor(float(score), dtype=weights.dtype)
    return score


def point_out_pairs(inputs, score):
    """The weights that the first wrong score should be the mean of."""
    weights, offset = inputs.values()
    pairs = weights.diagonal(offset, dim1=-2, dim2=-1)
    place = first_wrong(score, pairs.mean(dim=-1))
    queries = "1 query has" if pairs.shape[-1] == 1 else f"{pairs.shape[-1]} queries have"
    where = f", at {list(place)}" if place else ""
    given = numbers_text(pairs[place])
    return f"{queries} a key at offset {offset}. What they give to it{where}: {given}."


def build_offset(
    shift=unchanged,
    pick=lambda weights, offset: weights.diagonal(offset, dim1=-2, dim2=-1),
    average=lambda picked, length, offset: picked.mean(dim=-1),
    finish=unchanged,
):
    """shift: the offset that is used. pick: the weights at this offset, along the last axis.
    average: of them, given L and the offset. finish: of the scores.
    """

    def offset_score(weights, offset):
        used = shift(offset)
        return finish(average(pick(weights, used), weights.shape[-1], used))

    return offset_score


OFFSETS = "The token before"
HEADS = "The token before"


def _wrapped(weights, offset):
    """With a key for every query: past the end it goes on at the beginning."""
    queries = torch.arange(weights.shape[-1])
    return weights[..., queries, (queries + offset) % len(queries)]


def _indexed(weights, offset):
    """The same by plain indices, which count from the end if negative and fail past the end."""
    queries = torch.arange(weights.shape[-1])
    return weights[..., queries, queries + offset]


def _indexed_one_by_one(weights, offset):
    """The same in a loop over the queries, which raises in other words."""
    length = weights.shape[-1]
    return torch.stack([weights[..., i, i + offset] for i in range(length)], dim=-1)


def _before_one_by_one(weights, offset):
    """The weights on the token before, in a loop; of one token there is nothing to stack."""
    picked = [weights[..., i, i - 1] for i in range(1, weights.shape[-1])]
    return torch.stack(picked, dim=-1)


def _from_query(first, one_by_one):
    """Every query from one on that depends on the offset. one_by_one: in a loop."""

    def pick(weights, offset):
        queries = torch.arange(first(offset), weights.shape[-1])
        if one_by_one:
            return torch.stack([weights[..., i, i + offset] for i in queries.tolist()], dim=-1)
        return weights[..., queries, queries + offset]

    return build_offset(pick=pick)


def _cut_at_the_end(weights, offset):
    """The same without the queries whose key would be past the end."""
    queries = torch.arange(min(weights.shape[-1], weights.shape[-1] - offset))
    return weights[..., queries, queries + offset]


def _clamped(weights, offset):
    """With a key for every query: the last one past the end, the first before the beginning."""
    queries = torch.arange(weights.shape[-1])
    return weights[..., queries, (queries + offset).clamp(0, len(queries) - 1)]


def _votes(weights, offset):
    """1 for each query whose largest weight is at this offset, else 0."""
    queries = torch.arange(weights.shape[-1])
    queries = queries[(queries + offset >= 0) & (queries + offset < len(queries))]
    return (weights.argmax(dim=-1)[..., queries] == queries + offset).double()


def _last_pair_dropped(weights, offset):
    """In a loop that ends one query early; of a single pair nothing is left to stack."""
    length = weights.shape[-1]
    queries = range(max(0, -offset), min(length, length - offset) - 1)
    return torch.stack([weights[..., i, i + offset] for i in queries], dim=-1)


def _last_pair_dropped_else(nothing, alone=False):
    """In a loop that ends one query early, which divides by how many there were.

    nothing: makes the result of a single pair, of which nothing is left. alone: it gets that pair.
    """

    def offset_score(weights, offset):
        pairs = weights.diagonal(offset, dim1=-2, dim2=-1)
        if pairs.shape[-1] > 1:
            return pairs[..., :-1].mean(dim=-1)
        return nothing(pairs[..., 0] if alone else weights[..., 0, 0])

    return offset_score


def _but_for(left_out):
    """The queries that have such a key, without some. left_out: of query, key and L."""

    def pick(weights, offset):
        length = weights.shape[-1]
        places = [(i, i + offset) for i in range(length) if 0 <= i + offset < length]
        queries = [i for i, j in places if not left_out(i, j, length)]
        queries = torch.tensor(queries, dtype=torch.int64)
        return weights[..., queries, queries + offset]

    return build_offset(pick=pick)


def _two_slices(weights, offset):
    """Rows and columns cut off by a slice that ends at minus the offset."""
    if offset >= 0:
        return weights[..., :-offset, offset:].diagonal(dim1=-2, dim2=-1).mean(dim=-1)
    return weights[..., -offset:, :offset].diagonal(dim1=-2, dim2=-1).mean(dim=-1)


def _at_first_axes(length_of):
    """The weights at the offset on the first two axes. length_of: how far the loop goes."""

    def offset_score(weights, offset):
        queries = [i for i in range(length_of(weights)) if 0 <= i + offset < length_of(weights)]
        return torch.stack([weights[i, i + offset] for i in queries]).mean(dim=0)

    return offset_score


def _of_one_head(weights, offset):
    """With item(), which takes one number only."""
    length = weights.shape[-1]
    picked = [weights[..., i, i + offset].item() for i in range(length) if 0 <= i + offset < length]
    return torch.tensor(sum(picked) / len(picked), dtype=torch.float64)


def _corner(cut, whole):
    """The mean over the corner that `cut` leaves; of the whole table with zeros beside it."""

    def offset_score(weights, offset):
        kept = cut(torch.ones(weights.shape[-2:], dtype=torch.bool), offset)
        return (weights * kept).mean(dim=(-2, -1)) if whole else weights[..., kept].mean(dim=-1)

    return offset_score


def _corner_over_the_pairs(weights, offset):
    corner = weights.triu(offset) if offset > 0 else weights.tril(offset)
    return corner.sum(dim=(-2, -1)) / (weights.shape[-1] - abs(offset))


def _every_length_and_one(weights, offset):
    """Each (L + 1)th number of the flattened table, from the first pair to the table's end."""
    length = weights.shape[-1]
    first = offset if offset >= 0 else -offset * length
    return weights.flatten(-2)[..., first :: length + 1]


def _one_further(offset):
    return offset + (offset > 0) - (offset < 0)


def _nearer_too(weights, offset):
    nearer = range(min(0, offset), max(0, offset) + 1)
    summed = sum(weights.diagonal(near, dim1=-2, dim2=-1).sum(dim=-1) for near in nearer)
    return summed / (weights.shape[-1] - abs(offset))


def _mean_of_the_band(weights, offset):
    """Every pair from the main diagonal to the one at the offset counts the same."""
    nearer = range(min(0, offset), max(0, offset) + 1)
    return torch.cat([weights.diagonal(o, dim1=-2, dim2=-1) for o in nearer], dim=-1).mean(dim=-1)


def _both_sides(weights, offset):
    ahead, back = (weights.diagonal(o, dim1=-2, dim2=-1).mean(dim=-1) for o in (offset, -offset))
    return (ahead + back) / 2


PAST_THE_END = (
    "You ask for the key i + offset of every query i, also where there is none.",
    "A negative index counts from the end, and Python does not complain: index -1 is the last "
    "token. Past the end it raises an error. Which queries have such a key?",
)
ALWAYS_BEFORE = (
    "You look at the token before, whatever the offset is.",
    "The offset says how far away the key is, and on which side.",
)
LAST_PAIR = (
    "You leave out the last query that has such a key.",
    "range and slices end before their second number. Which is the last query with a key at this "
    "offset?",
)

# What is wrong about the pairs that are looked at, in `find_head` as well.
PAIRS = {
    "sign-turned": known(
        "You look on the other side: at offset -1, at the token after. (Or rows and columns have "
        "changed places, which comes to the same.)",
        "The key of query i is i + offset. At offset -1 query 5 asks key 4: in which row is that, "
        "and in which column?",
        section="Rows are queries, columns are keys",
        shift=lambda offset: -offset,
    ),
    "offset-ignored": known(
        "You look at offset 0, whatever the offset is.",
        "That is how much each token looks at itself: the main diagonal. The pairs of any other "
        "offset lie beside it.",
        shift=lambda offset: 0,
    ),
    "always-before": known(*ALWAYS_BEFORE, shift=lambda offset: -1),
    "offset-0-taken-for-none": known(
        "At offset 0 you do not look at each token itself. Is there an `offset or -1`, or a slice "
        "up to `-offset`?",
        "0 counts as False, so `or` passes on; and a slice up to -0 is empty. Offset 0 is how "
        "much each token looks at itself.",
        shift=lambda offset: offset or -1,
    ),
    "one-too-far-right": known(
        "Your keys stand one place further right than they should: i + offset + 1.",
        "Offset 0 is the token itself. Is it in your code, too?",
        shift=lambda offset: offset + 1,
    ),
    "one-too-far-left": known(
        "Your keys stand one place further left than they should: i + offset - 1.",
        "Offset 0 is the token itself. Is it in your code, too?",
        shift=lambda offset: offset - 1,
    ),
    "distance-only": known(
        "You take the offset without its sign: before and after become the same.",
        "A head that looks back and one that looks ahead are two kinds of head. The sign tells "
        "them apart.",
        shift=abs,
    ),
    "wrapped-around": known(
        "Your pairs go round the end: the first token's key at offset -1 is the last token.",
        "That is what roll does, or a remainder. The first token has no token before it; that "
        "query is left out.",
        pick=_wrapped,
    ),
    "index-past-the-end": known(*PAST_THE_END, pick=_indexed),
    "index-past-the-end-in-a-loop": known(*PAST_THE_END, pick=_indexed_one_by_one),
    "last-pair-dropped": known(
        *LAST_PAIR,
        pick=lambda weights, offset: weights.diagonal(offset, dim1=-2, dim2=-1)[..., :-1],
    ),
    "last-pair-dropped-in-a-loop": known(*LAST_PAIR, pick=_last_pair_dropped),
    "negative-index": known(
        "You leave out the queries whose key would be past the end, but not those whose key would "
        "be before the beginning.",
        "A negative index counts from the end, and Python does not complain: index -1 is the last "
        "token. Which queries have a key at offset -1?",
        pick=_cut_at_the_end,
    ),
    "diagonal-of-the-first-axes": known(
        "You take the diagonal of the first two axes.",
        "diagonal does that unless it is told which axes. For one head, (L, L), it is right; with "
        "heads and layers in front it is not queries and keys that it pairs up.",
        pick=lambda weights, offset: weights.diagonal(offset),
    ),
    "clamped-at-the-ends": known(
        "For queries without such a key you take the first or the last key instead.",
        "clamp, or min and max, make a place of what is none. The first token has no token before "
        "it; that query is left out.",
        pick=_clamped,
    ),
    "softmax-again": known(
        "You apply softmax to the weights.",
        "They are weights already: each row sums to 1. A second softmax makes them almost equal.",
        pick=lambda weights, offset: weights.softmax(dim=-1).diagonal(offset, dim1=-2, dim2=-1),
    ),
    "votes-counted": known(
        "You count the queries whose largest weight is at this offset.",
        "By this count Voita et al. call a head positional. The task asks for "
        "the mean weight, in which a weight of .9 counts more than one of .3.",
        pick=_votes,
    ),
    "one-position-for-all": known(
        "You look at one key for all queries, the one that has the offset as its index, and "
        "average over the queries.",
        "The key that is asked for moves along with the query: at offset -1, query 5 asks key 4, "
        "query 6 asks key 5. In one column that cannot be seen.",
        pick=lambda weights, offset: weights.mean(dim=-2)[..., [offset]],
    ),
    "whole-table": known(
        "You average over the whole table, whatever the offset is.",
        "Each row sums to 1, so that mean is 1 / L for every head. The pairs at one offset lie on "
        "a single line.",
        pick=lambda weights, offset: weights.flatten(-2),
    ),
    "largest-pair": known(
        "You take the largest weight at this offset.",
        "One pair of tokens is enough for that. The mean says what the head does as a rule.",
        average=lambda picked, length, offset: picked.amax(dim=-1),
    ),
    "divided-by-length-less-offset": known(
        "You divide by L - offset.",
        "That is the number of pairs for an offset to the right. How many are there at offset -1, "
        "and what does L - (-1) give?",
        average=lambda picked, length, offset: picked.sum(dim=-1) / (length - offset),
    ),
}
PAIRS = read_again(OFFSETS, PAIRS)

OFFSET = {
    **by_id(PAIRS),
    "median-of-the-pairs": known(
        "You take the median of the pairs at this offset.",
        "The task asks for their mean. Of few pairs, or of two kinds of them, the median says "
        "something else.",
        average=lambda picked, length, offset: picked.median(dim=-1).values,
    ),
    "root-mean-square": known(
        "You take the root of the mean square of the pairs.",
        "The task asks for their mean. Squares give the large weights more say.",
        average=lambda picked, length, offset: picked.square().mean(dim=-1).sqrt(),
    ),
    "mean-of-the-logarithms": known(
        "You take a geometric mean: exp of the mean of the logarithms, or a root of the product.",
        "The task asks for the mean of the weights. One small weight pulls a geometric mean down.",
        average=lambda picked, length, offset: picked.log().mean(dim=-1).exp(),
    ),
    "first-pair-dropped": known(
        "You leave out the first query that has a key at this offset.",
        "All of them count: at offset -1 the queries from 1 on.",
        **any_of(
            build_offset,
            average=(
                lambda picked, length, offset: picked[..., 1:].mean(dim=-1),
                lambda picked, length, offset: picked[..., 1:].mean(dim=-1).nan_to_num(0.0),
            ),
        ),
    ),
    "nearer-ones-too": known(
        "You count what is nearer than the offset, too.",
        "Only the pairs at this very offset count: one diagonal.",
        wrong=_nearer_too,
    ),
    "nearer-ones-averaged": known(
        "Your mean is over all pairs from the token itself up to the offset.",
        "Only the pairs at this very offset count: one diagonal. What do you do with the pairs "
        "that are nearer?",
        wrong=_mean_of_the_band,
    ),
    "one-further-away": known(
        "Your offset is one further away from the query than asked for, on either side.",
        "diagonal counts from the main one, which has offset 0: the token before is -1.",
        **any_of(
            build_offset,
            {"shift": _one_further},
            {"shift": _one_further, "finish": lambda scores: scores.nan_to_num(0.0)},
        ),
    ),
    "always-before-in-a-loop": known(*ALWAYS_BEFORE, wrong=build_offset(pick=_before_one_by_one)),
    "rows-and-columns-swapped": known(
        wrong=lambda weights, offset: build_offset()(weights.mT, offset),
        twin="sign-turned",
    ),
    **{
        id: known(
            f"You begin at query {where} and go on to the last query, {whichever}.",
            "At offset 1 query 0 has a key, and the last query has none. Which queries have a key "
            "at this offset?",
            wrong=_from_query(first, one_by_one),
        )
        for id, where, whichever, first, one_by_one in (
            ("from-query-1", "1", "as if every offset were -1", lambda offset: 1, False),
            ("from-query-1-in-a-loop", "1", "as if every offset were -1", lambda offset: 1, True),
            ("from-query-of-the-distance", "|offset|", "as if no offset were positive", abs, False),
            (
                "from-query-of-the-distance-in-a-loop",
                "|offset|",
                "as if no offset were positive",
                abs,
                True,
            ),
        )
    },
    **{
        id: known(
            f"You always leave out {which}, also where there is such a pair.",
            "range ends before its second number, and begins at its first. Which is the first "
            "query with a key at this offset, and which the last?",
            wrong=_but_for(left_out),
        )
        for id, which, left_out in (
            ("last-query-left-out", "the last query", lambda i, j, length: i == length - 1),
            ("first-query-left-out", "query 0", lambda i, j, length: i == 0),
            ("first-key-left-out", "key 0", lambda i, j, length: j == 0),
            ("last-key-left-out", "the last key", lambda i, j, length: j == length - 1),
            (
                "end-queries-left-out",
                "the first query and the last",
                lambda i, j, length: i in (0, length - 1),
            ),
        )
    },
    "slice-up-to-minus-0": known(
        "At offset 0 you take the mean of nothing.",
        "Does a slice of yours end at offset, or at -offset? There it is empty: -0 is 0, and [:0] "
        "holds nothing.",
        wrong=_two_slices,
    ),
    "both-sides": known(
        "You look on both sides: at offset -1, at the token before and at the one after.",
        "A head that looks back and one that looks ahead are two kinds of head. The sign of the "
        "offset says which is meant.",
        wrong=_both_sides,
    ),
    **{
        id: known(
            f"You take all pairs {of}: a whole corner of the table.",
            "tril and triu keep a corner, and so does <= or >=. The pairs at one offset lie on a "
            "single line.",
            wrong=_corner(cut, whole),
        )
        for id, of, cut, whole in (
            ("all-on-one-side", "up to the offset", torch.tril, True),
            ("all-from-the-offset-on", "from the offset on", torch.triu, True),
            ("corner-up-to-the-offset", "up to the offset", torch.tril, False),
            ("corner-from-the-offset-on", "from the offset on", torch.triu, False),
        )
    },
    "corner-over-the-pairs": known(
        "You add up a whole corner of the table, all keys from the offset on, or up to it.",
        "tril and triu keep a corner, and so does <= or >=. The pairs at one offset lie on a "
        "single line.",
        wrong=_corner_over_the_pairs,
    ),
    "last-pair-dropped-else-0": known(*LAST_PAIR, wrong=_last_pair_dropped_else(lambda X: X * 0)),
    "last-pair-dropped-unless-alone": known(
        *LAST_PAIR,
        wrong=_last_pair_dropped_else(lambda X: X, alone=True),
    ),
    "last-pair-dropped-else-a-number": known(
        *LAST_PAIR, wrong=_last_pair_dropped_else(lambda X: 0.0)
    ),
    "last-pair-dropped-and-divided": known(
        *LAST_PAIR, wrong=_last_pair_dropped_else(lambda X: 0 / 0)
    ),
    **{
        id: known(
            "You index the first two axes with query and key.",
            "For one head, (L, L), that is right. With heads and layers in front, queries and keys "
            "are the last two: what can stand for all the axes before them?",
            wrong=_at_first_axes(length_of),
        )
        for id, length_of in (
            ("first-axes-indexed", lambda weights: weights.shape[-1]),
            ("first-axes-indexed-and-counted", len),
        )
    },
    "one-head-only": known(
        "You make a plain number of each weight, or of the score, with item(). So one head works "
        "and several do not.",
        "item() takes a tensor of one number. Of several heads weights[..., i, j] has a number "
        "each, and so has the score: leave it a tensor.",
        wrong=_of_one_head,
    ),
    "always-three-axes": known(
        "You go through the first axis as if it always held the heads.",
        "There may be none, (L, L), or layers in front of them. The last two axes are queries and "
        "keys in any case.",
        wrong=lambda weights, offset: torch.stack(
            [torch.diag(head, offset).mean() for head in weights]
        ),
    ),
    "mean-over-the-first-axis": known(
        "You average over the first axis, not over the pairs.",
        "The pairs at one offset lie on a new axis. Where does it stand?",
        average=lambda picked, length, offset: picked.mean(dim=0),
    ),
    "axes-of-length-1-lost": known(
        "Axes of length 1 are gone from your result.",
        "squeeze() without an axis removes each of them, the one layer or the one text in front, "
        "too. The result has all axes of the weights but the last two: (...).",
        finish=lambda scores: scores.squeeze(),
    ),
    "flat-steps-run-on": known(
        "You step through the flattened table by L + 1, up to its end.",
        "After the last pair these steps go on in the opposite corner, on a line L + 1 places "
        "away. How many pairs are there at this offset?",
        pick=_every_length_and_one,
    ),
    "axis-kept": known(
        "Your result has an axis of length 1 at its end.",
        "The numbers are right. One number comes of all pairs, so their axis is gone: (...).",
        finish=lambda scores: scores[..., None],
    ),
    "zeros-not-counted": known(
        "You divide by the number of weights that are not 0.",
        "A weight of 0 says that this query does not look there at all. It is one of those that "
        "the mean is taken of.",
        average=lambda picked, length, offset: picked.sum(dim=-1) / (picked != 0).sum(dim=-1),
    ),
    "divided-by-length": known(
        "You divide by L, as if every query had such a key.",
        "The first token has no token before it. A head that always looks there would get less "
        "than 1, and the shorter the sentence, the less.",
        average=lambda picked, length, offset: picked.sum(dim=-1) / length,
    ),
    "both-sides-added": known(
        "You add up both sides: at offset -1, the token before and the one after.",
        "A head that looks back and one that looks ahead are two kinds of head. The sign of the "
        "offset says which is meant.",
        wrong=lambda weights, offset: _both_sides(weights, offset) * (2 if offset else 1),
    ),
    "divided-by-length-less-1": known(
        "You divide by L - 1, whatever the offset is.",
        "That is how many pairs there are one place apart. How many are there at offset 2, and at "
        "offset 0?",
        average=lambda picked, length, offset: picked.sum(dim=-1) / max(length - 1, 1),
    ),
    "first-pair-only": known(
        "You return the weight of the first pair.",
        "One pair of tokens is not the habit of a head. The mean says what it does as a rule. (Is "
        "the return inside your loop?)",
        average=lambda picked, length, offset: picked[..., 0],
    ),
    "added-not-averaged": known(
        "You add the weights up, and your scores can go above 1.",
        "A long sentence has more pairs. The mean over them can be compared.",
        average=lambda picked, length, offset: picked.sum(dim=-1),
    ),
    "heads-averaged": known(
        "You average over everything: one number in all.",
        "Each head gets a score of its own; (..., L, L) becomes (...).",
        section=HEADS,
        finish=lambda scores: scores.mean(),
    ),
    "pairs-not-averaged": known(
        "You return the weight of every pair.",
        "They are the right ones. The task asks for their mean.",
        average=lambda picked, length, offset: picked,
    ),
}

TASK = Task(
    "07-offset_score",
    heads.offset_score,
    offset_cases,
    examine=examine_offset,
    mistakes=read_again(OFFSETS, OFFSET),
    build=build_offset,
    point_out=point_out_pairs,
    forbidden=FORBIDDEN,
    number=3,
)
