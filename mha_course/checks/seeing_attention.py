"""The tasks of lesson 07: the most attended tokens, entropy, offset scores, finding a head."""

import math

import numpy as np
import torch

from mha_course.checks.attended_tokens import (
    attended_cases,
    examine_attended,
    random_weights,
    run_attended,
    table,
)
from mha_course.checks.examining import total
from mha_course.checks.mistakes.attended_tokens import ATTENDED, build_attended
from mha_course.checks.mistakes.entropies import ENTROPY, build_entropy
from mha_course.checks.mistakes.offsets import OFFSET, build_offset
from mha_course.checks.mistakes.seeing_attention import FIND, build_find
from mha_course.checks.task import Case, Task
from mha_course.explorer import heads

__all__ = ["LENDS", "TASKS", "VERSION"]

VERSION = 1
LENDS = ()  # nothing of the course but what stands in for it while answers are graded
FORBIDDEN = ("mha_course.explorer.heads",)


def entropy_cases(draw):
    """Cases for `entropy`: weights of 0, of almost 0, one key, ranks 2 to 5, L = S and not."""
    small = table([0.25, 0.25, 0.25, 0.25], [0.5, 0, 0.5, 0], [0, 0, 1, 0])
    holes = random_weights(draw, 2, 3, 5, 7) * (draw.normal(2, 3, 5, 7) > -0.5)
    holes[..., 0] += 0.1
    tiny = random_weights(draw, 3, 5, 61)
    tiny[..., ::2] = 3e-9
    tiny[..., 1::4] = 3e-7
    return [
        Case("3 queries, 4 keys", {"weights": small}),
        Case("2 sentences, 3 heads", {"weights": random_weights(draw, 2, 3, 5, 7)}),
        Case("as many queries as keys", {"weights": random_weights(draw, 3, 5, 5)}),
        Case("many weights are 0", {"weights": holes / holes.sum(dim=-1, keepdim=True)}),
        Case("a causal mask", {"weights": _causal(draw, 2, 7)}),
        Case("many weights are almost 0", {"weights": tiny / tiny.sum(dim=-1, keepdim=True)}),
        Case("one key", {"weights": torch.ones(2, 3, 1, dtype=torch.float64)}),
        Case("one query", {"weights": random_weights(draw, 2, 1, 5)}),
        Case("97 keys", {"weights": random_weights(draw, 3, 97, scale=0.3)}),
        Case("sharp heads", {"weights": random_weights(draw, 2, 5, 11, scale=300.0)}),
        Case("all axes equal", {"weights": random_weights(draw, 3, 3, 3, 3)}),
        Case("layers too", {"weights": random_weights(draw, 2, 1, 3, 5, 7)}),
        Case(
            "weights are not contiguous",
            {"weights": random_weights(draw, 3, 2, 5, 7).transpose(0, 1)},
        ),
    ]


def _causal(draw, *shape):
    scores = draw.normal(*shape, shape[-1])
    return scores.masked_fill(torch.ones_like(scores).triu(1).bool(), -math.inf).softmax(dim=-1)


def offset_cases(draw):
    """Cases for `offset_score`: both sides, near and far, ranks 2 to 5, L equal to other axes."""

    def case(name, offset, *shape):
        return Case(name, {"weights": random_weights(draw, *shape), "offset": offset})

    small = table(
        [0.7, 0.1, 0.1, 0.1], [0.6, 0.2, 0.1, 0.1], [0, 0.5, 0.2, 0.3], [0.2, 0, 0.4, 0.4]
    )
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
        case("19 tokens, 7 back", -7, 2, 19, 19),
        Case(
            "weights are not contiguous",
            {"weights": random_weights(draw, 3, 7, 5, 5).transpose(0, 1), "offset": 1},
        ),
    ]


@total
def examine_offset(inputs, score):
    """The result of `offset_score`; of one head (L, L) a plain number is as good."""
    if inputs["weights"].dim() == 2 and isinstance(score, float):
        return torch.tensor(score, dtype=torch.float64)
    return score


def find_cases(draw):
    """Cases for `find_head`: the head sits anywhere, and rivals are strong elsewhere."""

    def case(name, layers, num_heads, length, offset, *rivals):
        weights = random_weights(draw, layers, num_heads, length, length, scale=0.5)
        layer, head = int(draw.integers(0, layers - 1)), int(draw.integers(0, num_heads - 1))
        _look(weights[layer, head], offset, 0.8)
        for rival in rivals:  # another offset, looked at even more firmly by the next head
            head = (head + 1) % num_heads
            layer = (layer + 1) % layers
            _look(weights[layer, head], rival, 0.9)
        return Case(name, {"weights": weights, "offset": offset})

    # Two tokens: the first column of each head is what the two queries give to token 0.
    to_first = table([0.6, 0.2], [0.9, 0.4], [0.7, 0.3], [0.5, 0.8], [0.2, 0.7], [0.8, 0.1])
    small = torch.stack([to_first, 1 - to_first], dim=-1).view(2, 3, 2, 2)
    return [
        Case("2 layers, 3 heads, 2 tokens", {"weights": small, "offset": -1}),
        case("the token before", 3, 5, 7, -1, 1, 0),
        case("the token after", 5, 2, 7, 1, -1, 0),
        case("2 back", 2, 7, 5, -2, 2, -1),
        case("each token itself", 3, 2, 5, 0, 1, -1),
        case("as many layers as heads as tokens", 5, 5, 5, 1, -1, 0, 2),
        case("one layer", 1, 7, 5, -1, 1, 0),
        case("one head a layer", 7, 1, 5, 3, -3, 0),
        case("one pair of 3 tokens", 2, 5, 3, -2, 1, 0),
        case("one pair of 5 tokens", 5, 3, 5, 4, -1, 0),
        _hidden(draw, -1),
        _hidden(draw, 1),
        Case("no head stands out", {"weights": random_weights(draw, 5, 3, 11, 11), "offset": 2}),
        Case("no head stands out", {"weights": random_weights(draw, 3, 7, 13, 13), "offset": -1}),
    ]


def _look(weights, offset, strength):
    """Let one head (L, L) put this share of its weight at the offset, in place."""
    length = len(weights)
    queries = torch.arange(max(0, -offset), min(length, length - offset))
    weights[queries] *= 1 - strength
    weights[queries, queries + offset] += strength


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
    """The result of `find_head`; a tensor or array of two numbers is as good."""
    if isinstance(place, np.ndarray) and place.shape == (2,):
        return tuple(place.tolist())
    if torch.is_tensor(place) and place.shape == (2,):
        return tuple(place.tolist())
    return place


TASKS = [
    Task(
        "07-most_attended",
        heads.most_attended,
        attended_cases,
        run=run_attended,
        examine=examine_attended,
        returns=("the list of tokens", "the list of mean weights"),
        tolerance=1e-6,
        forbidden=FORBIDDEN,
        mistakes=ATTENDED,
        build=build_attended,
    ),
    Task(
        "07-entropy",
        heads.entropy,
        entropy_cases,
        tolerance=1e-9,  # a small number that is added to every weight shows
        forbidden=FORBIDDEN,
        mistakes=ENTROPY,
        build=build_entropy,
    ),
    Task(
        "07-offset_score",
        heads.offset_score,
        offset_cases,
        examine=examine_offset,
        forbidden=FORBIDDEN,
        mistakes=OFFSET,
        build=build_offset,
    ),
    Task(
        "07-find_head",
        heads.find_head,
        find_cases,
        examine=examine_find,
        returns=("the layer", "the head"),
        forbidden=FORBIDDEN,
        mistakes=FIND,
        build=build_find,
        uses=("07-offset_score",),
    ),
]
