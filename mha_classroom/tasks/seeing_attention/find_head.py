"""Task 7.4, find_head: the head with the largest score."""

import numpy as np
import torch

from mha_classroom.checks.examining import total
from mha_classroom.checks.showing import describe, plain_number, tell_apart
from mha_classroom.checks.task import (
    AnswerError,
    Case,
    Task,
    and_in_float32,
    by_id,
    known,
    read_again,
    without,
)
from mha_classroom.tasks.seeing_attention.most_attended import FORBIDDEN, random_weights, table
from mha_classroom.tasks.seeing_attention.offset_score import HEADS, OFFSET, PAIRS, build_offset
from mha_course.explorer import heads


@and_in_float32
def find_cases(draw):
    """The head sits anywhere, and rivals are strong elsewhere."""

    def case(name, layers, num_heads, length, offset, *rivals, last=False):
        weights = random_weights(draw, layers, num_heads, length, length, scale=0.5)
        layer, head = int(draw.integers(0, layers - 1)), int(draw.integers(0, num_heads - 1))
        head = num_heads - 1 if last else head
        _look(weights[layer, head], offset, 0.8)
        for rival in rivals:  # another offset, looked at even more firmly by the next head
            head = (head + 1) % num_heads
            layer = (layer + 1) % layers
            _look(weights[layer, head], rival, 0.9)
        return Case(name, {"weights": weights, "offset": offset})

    # Two tokens: the first column of each head is what the two queries give to token 0.
    to_first = table([1.0, 0.3], [0.8, 0.4], [0.7, 0.2], [0.5, 0.8], [0.2, 0.7], [0.8, 0.1])
    small = torch.stack([to_first, 1 - to_first], dim=-1).view(2, 3, 2, 2)
    back = table([1, 0, 0], [0.6, 0.4, 0], [0.2, 0.5, 0.3])
    low = random_weights(draw, 2, 3, 37, 37, scale=0.3)
    for head in low.flatten(0, 1):
        _look(head, 0, 0.9)
    return [
        Case("2 layers, 3 heads, 2 tokens", {"weights": small, "offset": -1}),
        case("the token before", 3, 5, 7, -1, 1, 0),
        case("the token after", 5, 2, 7, 1, -1, 0),
        case("2 back", 2, 7, 5, -2, 2, -1),
        case("each token itself", 3, 2, 5, 0, 1, -1),
        case("as many layers as heads as tokens", 5, 5, 5, 1, -1, 0, 2),
        case("one layer", 1, 7, 5, -1, 1, 0, last=True),
        case("one head a layer", 7, 1, 5, 3, -3, 0),
        case("one pair of 3 tokens", 2, 5, 3, -2, 1, 0),
        case("one pair of 5 tokens", 5, 3, 5, 4, -1, 0),
        _hidden(draw, -1),
        _hidden(draw, 1),
        Case("no head stands out", {"weights": random_weights(draw, 5, 3, 11, 11), "offset": 2}),
        Case("no head stands out", {"weights": random_weights(draw, 3, 7, 13, 13), "offset": -1}),
        _at_the_ends(draw, -1),
        _at_the_ends(draw, 1),
        _alike(draw),
        Case("37 tokens, all scores below 0.01", {"weights": low, "offset": -2}),
        Case("one head, which never looks there", {"weights": back[None, None], "offset": 1}),
    ]


def _at_the_ends(draw, offset):
    """One head is best at this offset; others would be if the ends were treated otherwise.

    They look at the first key or the last from where there is no such key, or at all such keys
    but the first or the last.
    """
    weights = random_weights(draw, 6, 7, 7, scale=0.5)
    best, clamped, wrapped, not_first, not_last = draw.normal(6).argsort().tolist()[:5]
    strengths = (best, 0.6), (clamped, 0.54), (wrapped, 0.54), (not_first, 0.7), (not_last, 0.7)
    for head, strength in strengths:
        _look(weights[head], offset, strength)
    away, first, last = (0, 1, 6) if offset < 0 else (6, 0, 5)  # queries without such a key, with
    rows = (
        (best, away, 3),
        (clamped, away, away),
        (wrapped, away, 6 - away),
        (not_first, first, 3),
        (not_last, last, 3),
    )
    for head, query, key in rows:
        weights[head, query] = 0
        weights[head, query, key] = 1
    return Case("a rival at each end", {"weights": weights.view(2, 3, 7, 7), "offset": offset})


def _look(weights, offset, strength):
    """Let one head (L, L) put this share of its weight at the offset, in place."""
    length = len(weights)
    queries = torch.arange(max(0, -offset), min(length, length - offset))
    weights[queries] *= 1 - strength
    weights[queries, queries + offset] += strength


def _alike(draw):
    """Heads whose scores differ in the seventh digit: half precision has three, and holds what they
    have in common. Every weight is above 0.1, since half precision has more digits near 0."""
    common = random_weights(draw, 2, 3, 5, 5).mean(dim=(0, 1))
    common = (0.1 + common / 2).half().double()
    weights = common.expand(2, 3, 5, 5).clone()
    later = torch.arange(1, 5)
    for place, head in enumerate(weights.flatten(0, 1)):
        more = 2e-7 * (1 + place * 2 % 5)  # the largest is head 2 of layer 0
        # Above the diagonal too: with all numbers in reverse order no two heads may be alike.
        for queries, keys in ((later, later - 1), (later - 1, later)):
            head[queries, keys] += more
            head[queries, queries] -= more
    return Case("six heads that are almost alike", {"weights": weights, "offset": -1})


def _hidden(draw, offset):
    """The best head is the only good one of its layer, and of its number in other layers.

    On average another layer is better, and another number; the head where these two meet is poor.
    One more head has the largest single weight at the offset, and nothing else there.
    """
    weights = random_weights(draw, 3, 5, 7, 7, scale=0.5)
    best, good, third = draw.normal(3).argsort().tolist()
    mine, common, single, *_ = draw.normal(5).argsort().tolist()
    away = -offset
    for head in range(5):
        _look(weights[best, head], away, 0.9)
        _look(weights[good, head], away if head in (mine, common) else offset, 0.5)
    _look(weights[third, mine], away, 0.9)
    for layer, head, strength in ((best, mine, 0.95), (third, common, 0.85), (best, common, 0.4)):
        weights[layer, head] = random_weights(draw, 7, 7, scale=0.5)
        _look(weights[layer, head], offset, strength)
    weights[third, single, 3] = 0
    weights[third, single, 3, 3 + offset] = 1
    return Case("a sharp head among poor ones", {"weights": weights, "offset": offset})


@total
def examine_find(inputs, place):
    """The result of `find_head`; a tensor or array of two numbers is as good.

    Raises: AnswerError for numbers that are no index, like 2.0.
    """
    if isinstance(place, np.ndarray) and place.shape == (2,):
        place = tuple(place.tolist())
    if torch.is_tensor(place) and place.shape == (2,):
        place = tuple(place.tolist())
    whole_numbers("find_head", place)
    return place


def whole_numbers(name, place):
    """Raise AnswerError for layer and head that are numbers and cannot be used as an index."""
    if not isinstance(place, (tuple, list)) or len(place) != 2:
        return
    for part in place:
        float_tensor = torch.is_tensor(part) and part.is_floating_point()
        if float_tensor or isinstance(part, (float, np.floating)):
            raise AnswerError(
                f"{name} has to return whole numbers, since weights[layer, head] takes no others; "
                f"got {describe(part)}."
            )


def _place(scores, weights):
    return divmod(scores.argmax().item(), scores.shape[1])


def build_find(choose=_place, finish=lambda layer, head, scores: (layer, head), **scoring):
    """choose: layer and head, from the scores (layers, H) and the weights. finish: the result.
    Other parts are those of `build_offset`.
    """
    score = build_offset(**scoring)

    def find_head(weights, offset):
        scores = score(weights, offset)
        return finish(*choose(scores, weights), scores)

    return find_head


def find_stages(inputs):
    weights, offset = inputs.values()
    return {"the score of every head": weights.diagonal(offset, dim1=-2, dim2=-1).mean(dim=-1)}


def point_out_scores(inputs, place):
    """The scores of the best head and of the one that was returned."""
    scores = find_stages(inputs)["the score of every head"]
    best, (layer, head) = _place(scores, None), place
    if not 0 <= layer < len(scores) or not 0 <= head < scores.shape[1]:
        return f"There are {len(scores)} layers of {scores.shape[1]} heads, counted from 0."
    most, yours = tell_apart(scores[best].item(), scores[layer, head].item())
    return (
        f"Layer {best[0]}, head {best[1]} has the score {most}, the head that you return {yours}."
    )


def _best_by(score):
    return lambda weights, offset: _place(score(weights, offset), weights)


def _first_axes(weights, offset):
    """The diagonal of the first two axes, the place divided by the number of heads."""
    return divmod(weights.diagonal(offset).mean(dim=-1).argmax().item(), weights.shape[1])


def _anywhere(weights, offset):
    layer, place = divmod(weights.argmax().item(), weights[0].numel())
    return layer, place // weights[0, 0].numel()


def _average_layer(scores, weights):
    layer = scores.mean(dim=1).argmax().item()
    return layer, scores[layer].argmax().item()


def _average_head(scores, weights):
    head = scores.mean(dim=0).argmax().item()
    return scores[:, head].argmax().item(), head


def _head_of_layer_0(scores, weights):
    return scores.amax(dim=1).argmax().item(), scores[0].argmax().item()


def _largest_head_number(scores, weights):
    best = scores.argmax(dim=1)
    return best.argmax().item(), best.max().item()


def _head_by_average(scores, weights):
    return scores.amax(dim=1).argmax().item(), scores.mean(dim=0).argmax().item()


def _without_last_heads(inputs, value):
    """Whether a place is that of the best head but the last one of each layer.

    A layer of one head has none then, and there anything may come out.
    """
    scores = find_stages(inputs)["the score of every head"][:, :-1]
    if not scores.numel():
        return True
    return _is_place(value, _place(scores, None))


def _from_head_1_on(scores, weights):
    """The best head but the first one of each layer; where a layer has one head, that one."""
    if scores.shape[1] == 1:
        return _place(scores, weights)
    layer, head = _place(scores[:, 1:], weights)
    return layer, head + 1


def _without_first_heads(inputs, value):
    """Whether a place is that of the best head but the first one of each layer.

    A layer of one head has none then, and there anything may come out.
    """
    scores = find_stages(inputs)["the score of every head"]
    return scores.shape[1] == 1 or _is_place(value, _from_head_1_on(scores, None))


def _without_last_layer(inputs, value):
    """The same of the last layer. A model of one layer has none then."""
    scores = find_stages(inputs)["the score of every head"][:-1]
    return not len(scores) or _is_place(value, _place(scores, None))


def _is_place(value, place):
    if not isinstance(value, (tuple, list)) or len(value) != 2:
        return False
    return tuple(map(plain_number, value)) == place


def _above(least):
    """The best head, or None if no score is above this."""

    def find_head(weights, offset):
        scores = find_stages({"weights": weights, "offset": offset})["the score of every head"]
        return _place(scores, weights) if scores.max() > least else None

    return find_head


def _rounded(inputs, value):
    """Whether a place is that of the best of rounded scores."""
    scores = find_stages(inputs)["the score of every head"]
    picked = inputs["weights"].half().diagonal(inputs["offset"], dim1=-2, dim2=-1)
    tables = [picked.mean(-1), scores.half(), *(scores.round(decimals=n) for n in range(1, 8))]
    return any(_is_place(value, _place(table, None)) for table in tables)


def _best_or_low(inputs, value):
    """Whether a place is that of the best head, or where all scores are low none, or the first."""
    scores = find_stages(inputs)["the score of every head"]
    low = 0.5 if value is None else 0.1 if _is_place(value, (0, 0)) else 0.0
    return _is_place(value, _place(scores, None)) or bool(scores.max() < low)


def _apart(scores, weights):
    return scores.mean(dim=1).argmax().item(), scores.mean(dim=0).argmax().item()


FIND = {
    # The one changes no place, the other leaves heads alike.
    **by_id(without(PAIRS, "divided-by-length-less-offset", "softmax-again")),
    **{
        id: known(OFFSET[id].did, OFFSET[id].why, wrong=_best_by(OFFSET[id].wrong))
        for id in (
            "both-sides",
            "all-on-one-side",
            "all-from-the-offset-on",
        )
    },
    "diagonal-of-layers-and-heads": known(
        "You take the diagonal of the first two axes, layers and heads.",
        "diagonal does that unless it is told which axes. Queries and keys are the last two.",
        wrong=_first_axes,
    ),
    "largest-weight-anywhere": known(
        "You look for the largest of all weights, whatever the offset is.",
        "One large weight somewhere is not what is asked. Each head has a score for the offset "
        "(7.3), and the largest of those is wanted.",
        wrong=_anywhere,
    ),
    "flat-index": known(
        "You return one number: the head's place in the flattened table.",
        "argmax looks at a table as at one long row. Layer and head are the two coordinates of "
        "that place: how many heads are there in a layer, and how many are left over?",
        finish=lambda layer, head, scores: layer * scores.shape[1] + head,
    ),
    "in-half-precision": known(
        "You compare the scores in half precision, rounded, or with a margin, as isclose has one.",
        "Two heads that differ in the seventh digit come out as alike then, and the first of them "
        "is taken. The weights are float64: keep all of their digits.",
        pick=lambda weights, offset: weights.half().diagonal(offset, dim1=-2, dim2=-1),
        shows=_rounded,
    ),
    "none-where-scores-are-low": known(
        "Where all scores are low you return no head, or head 0 of layer 0.",
        "Does your search begin with a number such as 0, 0.1 or 0.5 as the best score so far? The "
        "largest score may be that low, in a long text above all. Some head is the best all the "
        "same.",
        wrong=_above(0.1),
        shows=_best_or_low,
    ),
    "head-before-layer": known(
        "You return (head, layer).",
        "The layer comes first, as in the weights. Both are small numbers, and nothing else tells "
        "them apart.",
        finish=lambda layer, head, scores: (head, layer),
    ),
    "counted-from-1": known(
        "You count layers and heads from 1.",
        "Some papers do. In the course they are counted from 0, so that weights[layer, head] is "
        "the head that was found.",
        finish=lambda layer, head, scores: (layer + 1, head + 1),
    ),
    "head-first-and-from-1": known(
        "You return (head, layer), and count both from 1.",
        "The layer comes first, as in the weights, and in the course both are counted from 0.",
        finish=lambda layer, head, scores: (head + 1, layer + 1),
    ),
    "score-returned-too": known(
        "You return the score as well.",
        "It is good to know. The task asks for layer and head.",
        finish=lambda layer, head, scores: (layer, head, scores[layer, head]),
    ),
    "divided-by-layers": known(
        "You divide the place in the flattened table by the number of layers, or unravel it as if "
        "a row had so many places.",
        "The flat row has all heads of layer 0 first, then all of layer 1. After how many places "
        "does a new layer begin?",
        choose=lambda scores, weights: divmod(scores.argmax().item(), len(scores)),
    ),
    "table-turned": known(
        "You flatten the table with the heads in front and read the place as if the layers were.",
        "In a turned table the first H places are not the heads of layer 0. Does your table have a "
        "row for each layer?",
        choose=lambda scores, weights: divmod(scores.T.argmax().item(), scores.shape[1]),
    ),
    "divided-by-12": known(
        "You divide the place in the flattened table by 12.",
        "The lesson's model has 12 heads in a layer. Another one has another number, and the "
        "weights tell you which.",
        choose=lambda scores, weights: divmod(scores.argmax().item(), 12),
    ),
    "smallest-score": known(
        "You return the head that looks least at this offset.",
        "The task asks for the one with the largest score.",
        choose=lambda scores, weights: _place(-scores, weights),
    ),
    "heads-averaged-first": known(
        "You choose the layer by the average of its heads, and then the best head in it.",
        "One sharp head among broad ones disappears in the average. The largest of all scores is "
        "asked for, wherever it is.",
        choose=_average_layer,
    ),
    "layers-averaged-first": known(
        "You choose the head's number by its average over the layers, and then the best layer.",
        "Head 2 of one layer has nothing to do with head 2 of another. The largest of all scores "
        "is asked for, wherever it is.",
        choose=_average_head,
    ),
    "layer-and-head-apart": known(
        "You choose the layer and the head separately, each by an average.",
        "The layer that is best on average and the head number that is best on average need not "
        "meet in a good head. The largest of all scores is asked for.",
        choose=_apart,
    ),
    "head-by-average": known(
        "You choose the layer by its best head, and the head by its average over the layers.",
        "Head 2 of one layer has nothing to do with head 2 of another. The head has to be the best "
        "one of that layer.",
        choose=_head_by_average,
    ),
    "argmax-of-argmax": known(
        "You take the layer whose best head has the largest number.",
        "argmax gives places, and the largest place is not that of the largest score. Compare the "
        "best scores of the layers.",
        choose=_largest_head_number,
    ),
    "head-of-layer-0": known(
        "You have the right layer, and the head that is best in layer 0.",
        "The head has to be the best one of that layer.",
        choose=_head_of_layer_0,
    ),
    "last-heads-missed": known(
        "You never look at the last head of a layer.",
        "range ends before its second number. How many heads does a layer have, and which is the "
        "number of the last?",
        choose=lambda scores, weights: divmod(
            scores[:, : max(1, scores.shape[1] - 1)].argmax().item(), max(1, scores.shape[1] - 1)
        ),
        shows=_without_last_heads,
    ),
    "first-heads-missed": known(
        "You never look at head 0 of a layer.",
        "Heads are counted from 0. At which number does your range or slice begin?",
        choose=_from_head_1_on,
        shows=_without_first_heads,
    ),
    "last-layer-missed": known(
        "You never look at the last layer.",
        "range ends before its second number. How many layers are there, and which is the number "
        "of the last?",
        choose=lambda scores, weights: _place(scores[: max(1, len(scores) - 1)], weights),
        shows=_without_last_layer,
    ),
    "best-so-far-forgotten": known(
        "You always return the last head of the last layer.",
        "Does your loop keep the best score that it has seen? If it compares with the number that "
        "it began with, every head wins, and the last one stays.",
        choose=lambda scores, weights: (scores.shape[0] - 1, scores.shape[1] - 1),
    ),
    "first-layer-only": known(
        "The head that you return is the best one of layer 0.",
        "The head may be in any layer.",
        choose=lambda scores, weights: (0, scores[0].argmax().item()),
    ),
    "last-layer-only": known(
        "The head that you return is the best one of the last layer.",
        "The head may be in any layer. Does each turn of your loop overwrite what the one before "
        "has found?",
        choose=lambda scores, weights: (len(scores) - 1, scores[-1].argmax().item()),
    ),
    "best-head-of-each-layer": known(
        "You return the best head of every layer.",
        "One of them is the best of all.",
        wrong=lambda weights, offset: build_offset()(weights, offset).argmax(dim=1),
    ),
}

TASK = Task(
    "07-find_head",
    heads.find_head,
    find_cases,
    examine=examine_find,
    returns=("the layer", "the head"),
    mistakes=read_again(HEADS, FIND),
    build=build_find,
    stages=find_stages,
    point_out=point_out_scores,
    uses=("07-offset_score",),
    forbidden=FORBIDDEN,
    number=4,
)
