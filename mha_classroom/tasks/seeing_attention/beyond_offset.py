"""Task 7.6, beyond_offset: a head's weight on tagged pairs, against its own habit."""

import torch

from mha_classroom.checks.examining import total
from mha_classroom.checks.forms import any_of
from mha_classroom.checks.task import (
    AnswerError,
    Case,
    Task,
    and_in_float32,
    known,
    read_again,
    unchanged,
)
from mha_classroom.tasks.seeing_attention.most_attended import random_weights, table
from mha_classroom.tasks.seeing_attention.offset_score import of_one_head
from mha_classroom.tasks.seeing_attention.runs import run_beyond


@and_in_float32
def beyond_cases(draw):
    """Pairs on both sides, several at one distance, ranks 2 to 5, a head that only looks ahead.

    Every baseline has a place whose query and key are in no pair, so that whoever leaves out too
    much gets a number, and not one of many kinds of exception.
    """

    def case(name, length, pairs, *shape, weights=None):
        if weights is None:
            weights = random_weights(draw, *shape, length, length)
        # The pairs stand in the name, since a list is shown by its length only.
        name = f"{name}: {', '.join(map(str, pairs))}"
        return Case(name, {"weights": weights, "pairs": list(pairs)})

    small = table(
        [0.1, 0.7, 0.1, 0.1], [0.1, 0.2, 0.3, 0.4], [0.1, 0.2, 0.2, 0.5], [0.3, 0.0, 0.4, 0.3]
    )
    ahead = 0.2 * random_weights(draw, 3, 7, 7)
    ahead.diagonal(1, -2, -1).add_(0.8)
    ahead[:, -1, 0] += 0.8
    equal = random_weights(draw, 2, 5, 7, 7)
    equal[..., 0, 2] = 0
    equal[0, 0] = 1 / 7
    return [
        case("one pair", 4, [(0, 1)], weights=small),
        case("two pairs at one distance", 4, [(0, 1), (2, 3)], weights=small),
        case("one pair to the left", 4, [(3, 2)], weights=small),
        case("3 heads, distances 1 and 2", 7, [(1, 2), (3, 5), (4, 5)], 3),
        case("2 layers, 3 heads", 7, [(5, 2), (6, 4), (1, 3)], 2, 3),
        case("to the left and to the right", 6, [(0, 2), (3, 1), (2, 1)], 2, 3),
        case("3 of 6 at one distance", 7, [(0, 1), (1, 2), (4, 5), (2, 5), (5, 3)], 5),
        case(
            "the same query twice, some weights of 0, some equal",
            7,
            [(1, 3), (1, 4), (2, 4)],
            weights=equal,
        ),
        case("each token itself", 5, [(0, 0), (3, 3)], 3),
        case("far away", 7, [(0, 5), (6, 1)], 2, 3),
        case("as many heads as tokens", 5, [(1, 2), (3, 1)], 5),
        case("all axes equal", 3, [(0, 1), (2, 1)], 3, 3),
        case("heads that look at the next token everywhere", 7, [(1, 2), (4, 5)], weights=ahead),
        case("five axes", 6, [(4, 3), (0, 3), (1, 0)], 2, 1, 3),
        case(
            "weights are not contiguous",
            5,
            [(1, 2), (4, 2)],
            weights=random_weights(draw, 3, 2, 5, 5).transpose(0, 1),
        ),
    ]


@total
def examine_beyond(inputs, seen):
    """The scores; of one head (L, L) a plain number is as good.

    Raises: AnswerError if the list of pairs was changed.
    """
    before, after = ([tuple(pair) for pair in some["pairs"]] for some in (inputs, seen))
    if repr(after) != repr(before):
        raise AnswerError("beyond_offset changes the caller's list of pairs.")
    return of_one_head(inputs["weights"], seen["scores"])


def _at(weights, query, key):
    return weights[..., query, key]


def _others(length, offset, pairs):
    """The queries with a key at this offset that are not tagged with it."""
    queries = range(max(0, -offset), min(length, length - offset))
    return [query for query in queries if (query, query + offset) not in pairs]


def _habit(weights, query, key, pairs):
    """What the head gives at the same distance elsewhere."""
    return _mean_at(weights, key - query, pairs)


def build_beyond(
    weight=_at,
    baseline=_habit,
    gain=lambda weight, baseline: weight - baseline,
    average=lambda gains: torch.stack(gains).mean(dim=0),
    finish=unchanged,
):
    """weight: on one pair. baseline: of the same pair, given all of them. gain: from these two.
    average: of the gains. finish: of the scores.
    """

    def beyond_offset(weights, pairs):
        pairs = [tuple(pair) for pair in pairs]
        gains = [
            gain(weight(weights, query, key), baseline(weights, query, key, pairs))
            for query, key in pairs
        ]
        return finish(average(gains))

    return beyond_offset


beyond_offset = build_beyond()


def _line(weights, query, key, pairs):
    return weights.diagonal(key - query, -2, -1)


def _without_this_one(weights, query, key, pairs):
    return _habit(weights, query, key, [(query, key)])


def _among(free):
    """The baseline over those places (i, j) at the distance that are `free`, given the pairs."""

    def baseline(weights, query, key, pairs):
        distance = key - query
        queries = _others(weights.shape[-1], distance, pairs)
        picked = [weights[..., i, i + distance] for i in queries if free(i, i + distance, pairs)]
        return torch.stack(picked).mean(dim=0)

    return baseline


def _tagged_query(i, pairs):
    return any(i == query for query, _ in pairs)


def _tagged_key(j, pairs):
    return any(j == key for _, key in pairs)


def _wrapped(weights, query, key, pairs):
    length, offset = weights.shape[-1], key - query
    queries = torch.arange(length)
    tagged = [(q, (q + offset) % length) in pairs for q in range(length)]
    queries = queries[~torch.tensor(tagged)]
    return weights[..., queries, (queries + offset) % length].mean(dim=-1)


def _other_side(weights, query, key, pairs):
    return _habit(weights.mT, query, key, pairs)


def _over_length(weights, query, key, pairs):
    queries = torch.tensor(_others(weights.shape[-1], key - query, pairs))
    total_ = weights[..., queries, queries + (key - query)].sum(dim=-1)
    return total_ / weights.shape[-1]


def _rest_of_the_row(weights, query, key, pairs):
    row = weights[..., query, :]
    return (row.sum(dim=-1) - row[..., key]) / (weights.shape[-1] - 1)


def _rest_of_the_row_untagged(weights, query, key, pairs):
    keys = [other for other in range(weights.shape[-1]) if (query, other) not in pairs]
    return weights[..., query, keys].mean(dim=-1)


def _distance_by_distance(weights, pairs):
    """The mean over the distances of what the pairs at each of them come to."""
    groups = {}
    for query, key in pairs:
        groups.setdefault(key - query, []).append((query, key))
    return torch.stack([beyond_offset(weights, own) for own in groups.values()]).mean(dim=0)


def _column(weights, query, key, pairs):
    column = weights[..., :, key]
    return (column.sum(dim=-1) - column[..., query]) / (weights.shape[-1] - 1)


def _distance_turned(weights, query, key, pairs):
    return _habit(weights, key, query, pairs)


def _always_ahead(weights, query, key, pairs):
    return _habit(weights, min(query, key), max(query, key), pairs)


def _both_sides(weights, query, key, pairs):
    """Untagged places at the distance, on whichever side."""
    distance, places = abs(key - query), range(weights.shape[-1])
    free = [(i, j) for i in places for j in places if abs(i - j) == distance]
    return torch.stack([weights[..., i, j] for i, j in free if (i, j) not in pairs]).mean(dim=0)


def _mean_of_both_sides(weights, query, key, pairs):
    """The untagged places at the distance, and the same places mirrored."""
    return _habit(weights + weights.mT, query, key, pairs) / 2


def _every_query_with_every_key(weights, pairs):
    queries, keys = [query for query, _ in pairs], [key for _, key in pairs]
    habits = [_habit(weights, query, key, [tuple(pair) for pair in pairs]) for query, key in pairs]
    inside = weights[..., queries, :][..., keys].mean(dim=(-2, -1))
    return inside - torch.stack(habits).mean(dim=0)


def _everywhere(weights, query, key, pairs):
    places = range(weights.shape[-1])
    free = [weights[..., i, j] for i in places for j in places if (i, j) not in pairs]
    return torch.stack(free).mean(dim=0)


def _tagged_as_0(weights, query, key, pairs):
    rest = weights.clone()
    for i, j in pairs:
        rest[..., i, j] = 0
    return rest.diagonal(key - query, -2, -1).mean(dim=-1)


def _over_those_that_are_not_0(weights, query, key, pairs):
    queries = _others(weights.shape[-1], key - query, pairs)
    line = torch.stack([weights[..., i, i + key - query] for i in queries])
    return line.sum(dim=0) / (line != 0).sum(dim=0)


def _tagged_both_ways(weights, query, key, pairs):
    return _habit(weights, query, key, [*pairs, *((j, i) for i, j in pairs)])


def _without_the_last(weights, query, key, pairs):
    """Places whose query and key are before the last token."""
    last = weights.shape[-1] - 1
    return _mean_at(weights[..., :last, :last], key - query, pairs)


def _mean_at(weights, distance, pairs):
    """Over the untagged places; of no place the mean is NaN."""
    queries = torch.tensor(_others(weights.shape[-1], distance, pairs), dtype=torch.int64)
    return weights[..., queries, queries + distance].mean(dim=-1)


def _of_queries(first, end):
    """The baseline of a part of the queries."""

    def baseline(weights, query, key, pairs):
        length, distance = weights.shape[-1], key - query
        part = range(length)[first:end]
        queries = [i for i in _others(length, distance, pairs) if i in part]
        queries = torch.tensor(queries, dtype=torch.int64)
        return weights[..., queries, queries + distance].mean(dim=-1)

    return baseline


def _index_below_0(weights, query, key, pairs):
    """Every query whose key is not past the end; before the beginning an index counts back."""
    length, distance = weights.shape[-1], key - query
    queries = [i for i in range(length) if i + distance < length and (i, i + distance) not in pairs]
    queries = torch.tensor(queries)
    return weights[..., queries, queries + distance].mean(dim=-1)


def _at_first_axes(elsewhere_first):
    """Query and key index the first two axes; where one is too short, the error quotes the place
    that is looked at first: the pair's own, or one elsewhere.
    """

    def beyond_offset(weights, pairs):
        gains = []
        for query, key in pairs:
            distance, own = key - query, [(query, key)]
            others = [(i, i + distance) for i in _others(weights.shape[-1], distance, pairs)]
            places = others + own if elsewhere_first else own + others
            found = {place: weights[place] for place in places}
            habit = torch.stack([found[place] for place in others]).mean(dim=0)
            gains.append(found[query, key] - habit)
        return torch.stack(gains).mean(dim=0)

    return beyond_offset


def beyond_stages(inputs):
    weights, pairs = inputs["weights"], inputs["pairs"]
    habits = [_habit(weights, query, key, pairs) for query, key in pairs]
    return {
        "the weights on the tagged pairs": torch.stack([weights[..., i, j] for i, j in pairs]),
        "the baseline of each pair": torch.stack(habits),
    }


def _best_offset(weights, query, key, pairs):
    length = weights.shape[-1]
    means = [weights.diagonal(o, -2, -1).mean(dim=-1) for o in range(1 - length, length)]
    return torch.stack(means).amax(dim=0)


def _first_offset(weights, query, key, pairs):
    return _habit(weights, *pairs[0], pairs)


def _pooled(weights, pairs):
    """All untagged places at any of the distances at once."""
    pairs = [tuple(pair) for pair in pairs]
    length = weights.shape[-1]
    places = [
        (query, query + offset)
        for offset in {key - query for query, key in pairs}
        for query in _others(length, offset, pairs)
    ]
    inside = torch.stack([weights[..., i, j] for i, j in pairs]).mean(dim=0)
    return inside - torch.stack([weights[..., i, j] for i, j in places]).mean(dim=0)


def _hits(weights, pairs):
    """The share of the tagged queries whose largest weight is on their key, less the offset's."""
    largest = (weights == weights.amax(dim=-1, keepdim=True)).double()
    return beyond_offset(largest, pairs)


ROW = (
    "Your baseline is what the query gives to other keys on average.",
    "A head that looks at the next token everywhere is far above that, without any grammar. What "
    "does it give at the same distance from other queries?",
)

BEYOND = {
    "no-baseline": known(
        "You return the mean weight on the tagged pairs, with no baseline.",
        "A head that looks at the next token everywhere gets a high number for every determiner "
        "whose noun comes next, without any grammar. What does it give at the same distance "
        "elsewhere?",
        baseline=lambda weights, query, key, pairs: 0.0,
    ),
    "subtracted-the-other-way": known(
        "You subtract the weight from the baseline.",
        "What is asked for is how much more the head gives to the tagged pairs: above 0 if it "
        "gives them more than its habit.",
        gain=lambda weight, baseline: baseline - weight,
    ),
    "weight-of-the-turned-pair": known(
        "Of the pair itself you read the weight the wrong way round: in row key, column query.",
        "Which of the two gives, and so has a row?",
        section="Rows are queries, columns are keys",
        weight=lambda weights, query, key: weights[..., key, query],
    ),
    "tagged-in-the-baseline": known(
        "Your baseline contains the tagged pairs themselves.",
        "Then a head that looks there only for tagged pairs is compared with itself, in part. "
        "Which places at this distance say what it does elsewhere?",
        baseline=lambda *given: _line(*given).mean(dim=-1),
    ),
    "only-this-pair-left-out": known(
        "You leave the pair itself out of its baseline, but not the other tagged pairs at the same "
        "distance.",
        "They are tagged as well. Elsewhere means: at places that are not tagged.",
        baseline=_without_this_one,
    ),
    "tagged-queries-left-out": known(
        "You leave every tagged query out of the baseline, at whatever distance its key stands.",
        "What is tagged is a pair, not a word. With the pairs (1, 2), (3, 5) and (4, 5), what does "
        "query 3 give to key 4? That is distance 1, and (3, 4) is not tagged.",
        baseline=_among(lambda i, j, pairs: not _tagged_query(i, pairs)),
    ),
    "tagged-keys-left-out": known(
        "You leave every tagged key out of the baseline, whichever query asks.",
        "What is tagged is a pair, not a word. With the pairs (1, 2), (3, 5) and (4, 5), what does "
        "key 2 get from query 0? That is distance 2, and (0, 2) is not tagged.",
        baseline=_among(lambda i, j, pairs: not _tagged_key(j, pairs)),
    ),
    "tagged-words-left-out": known(
        "You leave tagged queries and tagged keys out of the baseline, at every distance.",
        "What is tagged is a pair, not a word. With the pairs (1, 2), (3, 5) and (4, 5), the "
        "places (3, 4) and (0, 2) are not tagged: one belongs to the baseline of distance 1, the "
        "other to that of distance 2.",
        baseline=_among(
            lambda i, j, pairs: not _tagged_query(i, pairs) and not _tagged_key(j, pairs)
        ),
    ),
    "tagged-queries-meet-tagged-keys": known(
        "You leave out every place whose query stands in a pair and whose key stands in a pair, "
        "though the two may be of different pairs.",
        "What is tagged is a pair. With the pairs (5, 2), (6, 4) and (1, 3), the place (5, 3) is "
        "not tagged, so it belongs to the baseline of distance -2, that of the pair (6, 4).",
        baseline=_among(
            lambda i, j, pairs: not (_tagged_query(i, pairs) and _tagged_key(j, pairs))
        ),
    ),
    "distances-averaged": known(
        "You average over the pairs of each distance first, and then over the distances.",
        "Then a pair that is alone at its distance counts more than one of three. The mean is over "
        "the pairs, and each counts once.",
        wrong=_distance_by_distance,
    ),
    "one-distance-for-all": known(
        "You take the baseline of the first pair's distance for all pairs.",
        "A head may look one token ahead by habit, but not two. Each pair needs the baseline of "
        "its own distance.",
        baseline=_first_offset,
    ),
    "baselines-pooled": known(
        "You put the untagged places of all distances into one baseline.",
        "Then a distance with many places counts more. Each pair needs the baseline of its own "
        "distance, before you average over the pairs.",
        wrong=_pooled,
    ),
    "best-offset-of-the-head": known(
        "Your baseline is the best offset that the head has.",
        "That is another good question. Here each pair is compared with its own distance: what "
        "does the head give that far away, at other places?",
        baseline=_best_offset,
    ),
    "equal-weights": known(
        "Your baseline is 1 / L, what a head gives that looks everywhere alike.",
        "A head that looks at the next token everywhere is far above that, without any grammar.",
        baseline=lambda weights, query, key, pairs: 1 / weights.shape[-1],
    ),
    "rest-of-the-row": known(*ROW, baseline=_rest_of_the_row),
    "rest-of-the-row-untagged": known(*ROW, baseline=_rest_of_the_row_untagged),
    "rest-of-the-column": known(
        "Your baseline is what the key gets from other queries on average.",
        "These queries stand at other distances. What does the head give at the same distance?",
        baseline=_column,
    ),
    "wrapped-around": known(
        "Your places go round the end: one past the last token is the first one.",
        "That is what roll does, or a remainder, or a negative index. Which queries have a key at "
        "this distance?",
        section="The token before",
        baseline=_wrapped,
    ),
    "baseline-on-the-other-side": known(
        "Your baseline looks on the other side of the query.",
        "For the pair (2, 3) the key stands one place further right. The places to compare with "
        "are (0, 1), (1, 2) and so on.",
        section="The token before",
        baseline=_other_side,
    ),
    "distance-turned": known(
        "Your baseline has the distance query - key: it looks on the other side of the query.",
        "For the pair (2, 3) the key stands one place further right, at distance 1. The places to "
        "compare with are (0, 1), (1, 2) and so on.",
        section="The token before",
        baseline=_distance_turned,
    ),
    "distance-without-sign": known(
        "You take the distance without its sign: your baseline lies to the right for a key to the "
        "left, too.",
        "A head that looks back and one that looks ahead have two kinds of habit. For the pair "
        "(3, 2) the places to compare with are (1, 0), (2, 1) and so on.",
        section="The token before",
        baseline=_always_ahead,
    ),
    "both-sides-in-the-baseline": known(
        "Your baseline has places on both sides of the query, to the left and to the right.",
        "A head that looks back and one that looks ahead have two kinds of habit. For the pair "
        "(2, 3) the places to compare with are (0, 1), (1, 2) and so on.",
        section="The token before",
        **any_of(build_beyond, baseline=(_both_sides, _mean_of_both_sides)),
    ),
    "one-pair-of-each-query": known(
        "Of several pairs with the same query only one counts.",
        "A dict with queries as keys has one place for each, and so has a list with a place for "
        "each query: the last pair replaces the one before.",
        wrong=lambda weights, pairs: beyond_offset(weights, list(dict(map(tuple, pairs)).items())),
    ),
    "every-query-with-every-key": known(
        "You take every tagged query with every tagged key, not pair by pair.",
        "What is tagged is a pair. weights[..., queries, keys] with two lists picks one number for "
        "each of their pairs of entries; one index after the other picks a whole table.",
        wrong=_every_query_with_every_key,
    ),
    "tagged-the-other-way-round": known(
        "You leave out a place (i, j) if (j, i) is one of the pairs.",
        "A pair is (query, key). Which of the two is larger by the distance?",
        baseline=lambda weights, query, key, pairs: _habit(
            weights, query, key, [(j, i) for i, j in pairs]
        ),
    ),
    "every-place-in-the-baseline": known(
        "Your baseline is the mean of all places that are not tagged, at any distance.",
        "A head that looks at the next token everywhere is far above that, without any grammar. "
        "What does it give at the distance of the pair, elsewhere?",
        baseline=_everywhere,
    ),
    "tagged-counted-as-0": known(
        "Tagged places count as 0 in your baseline: either you set their weights to 0 before the "
        "mean, or you divide the sum of the others by the number of all places at the distance.",
        "A place that is left out is not in the sum and not in the number that the sum is divided "
        "by.",
        baseline=_tagged_as_0,
    ),
    "zeros-not-counted": known(
        "You divide the baseline's sum by the number of weights that are not 0.",
        "A weight of 0 says that the head does not look there at all. If its place is not tagged, "
        "it is one of those that the mean is taken of.",
        baseline=_over_those_that_are_not_0,
    ),
    "tagged-both-ways": known(
        "You take (key, query) for tagged as well as (query, key).",
        "A pair has a direction. The tag (1, 3) says nothing about what query 3 gives to key 1: "
        "that is a place like any other.",
        baseline=_tagged_both_ways,
    ),
    **{
        id: known(
            f"You always leave {which} out of your baseline, also where it has a key.",
            "range ends before its second number, and begins at its first. Which is the first "
            "query with a key at this distance, and which the last?",
            section="The token before",
            baseline=baseline,
        )
        for id, which, baseline in (
            ("last-query-left-out", "the last query", _of_queries(0, -1)),
            ("first-query-left-out", "query 0", _of_queries(1, None)),
        )
    },
    "last-place-missed": known(
        "The last place is missing in your baseline.",
        "range ends before its second number. Which is the last query with a key at this distance?",
        section="The token before",
        baseline=_without_the_last,
    ),
    "index-below-0": known(
        "For a key to the left your baseline has places that are none: the key of query 0 would "
        "be before the beginning.",
        "A negative index counts from the end, and Python does not complain: index -1 is the last "
        "token. Which queries have a key at this distance?",
        section="The token before",
        baseline=_index_below_0,
    ),
    **{
        id: known(
            "You index the first two axes with query and key.",
            "For one head, (L, L), that is right. With heads and layers in front, queries and keys "
            "are the last two: what can stand for all the axes before them?",
            wrong=_at_first_axes(elsewhere_first),
        )
        for id, elsewhere_first in (
            ("first-axes-indexed", False),
            ("first-axes-indexed-elsewhere-first", True),
        )
    },
    "baseline-over-length": known(
        "You divide the baseline's sum by L.",
        "How many places are in the sum? Not every query has a key at this distance, and tagged "
        "pairs are left out.",
        section="The token before",
        baseline=_over_length,
    ),
    "rows-and-columns-swapped": known(
        "You read the weights the wrong way round: in row key, column query.",
        "Which of the two gives, and so has a row?",
        section="Rows are queries, columns are keys",
        wrong=lambda weights, pairs: beyond_offset(weights.mT, pairs),
    ),
    "ratio": known(
        "You divide by the baseline.",
        "The task asks for the difference. (A ratio explodes where the baseline is almost 0.)",
        gain=lambda weight, baseline: weight / baseline,
    ),
    "never-below-0": known(
        "You set what is below 0 to 0.",
        "A head may look at tagged pairs less than elsewhere. The average has to show that.",
        gain=lambda weight, baseline: (weight - baseline).clamp(min=0),
    ),
    "size-of-the-difference": known(
        "You take the absolute value of the difference.",
        "A head may look at tagged pairs less than elsewhere. The average has to show that.",
        gain=lambda weight, baseline: (weight - baseline).abs(),
    ),
    "added-not-averaged": known(
        "You add over the pairs.",
        "A text with many tags would get a larger number. The task asks for the mean.",
        average=lambda gains: torch.stack(gains).sum(dim=0),
    ),
    "first-pair-only": known(
        "You return the difference of the first pair.",
        "Is the return inside your loop? The mean is over all pairs.",
        average=lambda gains: gains[0],
    ),
    "last-pair-only": known(
        "You return the difference of the last pair.",
        "Does each turn of your loop overwrite what the one before has found? The mean is over all "
        "pairs.",
        average=lambda gains: gains[-1],
    ),
    "axis-kept": known(
        "Your result has an axis of length 1 at its end.",
        "The numbers are right. The pairs are averaged, and so their axis is gone: (...).",
        finish=lambda scores: scores[..., None],
    ),
    "best-pair": known(
        "You return the largest difference of all pairs.",
        "One pair is enough for that. The mean says what the head does as a rule.",
        average=lambda gains: torch.stack(gains).amax(dim=0),
    ),
    "pairs-not-averaged": known(
        "You return a number for every pair.",
        "They are the right ones. The task asks for their mean, one number for each head.",
        **any_of(
            build_beyond,
            average=(lambda gains: torch.stack(gains, dim=-1), torch.stack),
            run=lambda answer, inputs: examine_beyond(inputs, run_beyond(answer, inputs)),
        ),
    ),
    "heads-averaged": known(
        "You average over everything: one number in all.",
        "Each head gets a score of its own; (..., L, L) becomes (...).",
        finish=lambda scores: scores.mean(),
    ),
    "hits-counted": known(
        "You count hits, the queries whose largest weight is on the key.",
        "That is how the lesson does it. The task asks for weights, in which .9 counts more than "
        ".3.",
        wrong=_hits,
    ),
}

TASK = Task(
    "07-beyond_offset",
    beyond_offset,
    beyond_cases,
    run=run_beyond,
    examine=examine_beyond,
    mistakes=read_again("The role of a head against a baseline", BEYOND),
    build=build_beyond,
    stages=beyond_stages,
    number=6,
    since=2,
    alone=(
        "first-pair-only",
        "last-pair-only",
        "axis-kept",
        "best-pair",
        "pairs-not-averaged",
        "heads-averaged",
        "size-of-the-difference",
        "never-below-0",
        "ratio",
        "rest-of-the-column",
        "baseline-over-length",
        "distance-without-sign",
        "both-sides-in-the-baseline",
        "every-place-in-the-baseline",
        "tagged-counted-as-0",
        "zeros-not-counted",
        "tagged-both-ways",
        "last-place-missed",
        "last-query-left-out",
        "first-query-left-out",
        "weight-of-the-turned-pair",
    ),
)
