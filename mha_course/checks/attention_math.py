"""The tasks of lesson 01: softmax, one query, all queries, additive scores, three predictions."""

import torch

from mha_course.checks.additive_scores import additive_cases, additive_scores, additive_stages
from mha_course.checks.mistakes.additive_scores import ADDITIVE, build_additive
from mha_course.checks.mistakes.attention_math import ATTENTION
from mha_course.checks.mistakes.first_predictions import PREDICTIONS, build_predictions
from mha_course.checks.mistakes.one_query import ATTEND, build_attend, build_attention
from mha_course.checks.mistakes.plain_softmax import SOFTMAX
from mha_course.checks.mistakes.weighing import build_softmax
from mha_course.checks.task import Case, Task

__all__ = ["LENDS", "TASKS", "VERSION"]

VERSION = 1
LENDS = ()  # an answer needs nothing of the course
FINISHED = (
    "mha_course.attention.scaled_dot_product_attention",
    "mha_course.attention.DotProductAttention",
    "d2l.torch.DotProductAttention",
    "torch.nn.functional.scaled_dot_product_attention",
    "torch._scaled_dot_product_attention_math",
    "torch._scaled_dot_product_flash_attention_for_cpu",
)
# e to the power 709.5 is finite, to the power 711 not: one step down would be enough.
EDGE = "scores of 709, 709.5 and 711"


def softmax(x):
    """A right answer to `01-softmax`."""
    return torch.softmax(x, dim=-1)


def softmax_stages(inputs):
    """What a right softmax computes on the way."""
    scores = inputs["x"] - inputs["x"].amax(dim=-1, keepdim=True)
    sums = scores.exp().sum(dim=-1, keepdim=True)
    return {
        "the scores less the largest of their row": scores,
        "the powers": scores.exp(),
        "the sums of the rows": sums,
        "the weights": scores.exp() / sums,
    }


def softmax_cases(draw):
    """Cases for `softmax`: ranks 1 to 4, and scores whose powers overflow or round to 0."""
    large = [[1000.0, 1001, 999], [-1000, -1002, -1000], [0, 1, 2]]
    large = torch.tensor(large, dtype=torch.float64)
    spread = [[3000.0, 0, 2999, -3000], [0, 1, -900, 2], [1000, 1001, 1000, -3000]]
    spread = torch.tensor(spread, dtype=torch.float64)
    return [
        Case("two rows", {"x": torch.tensor([[0.0, 1, 2], [3, 3, 0]], dtype=torch.float64)}),
        Case("one row", {"x": torch.tensor([0.0, 1, 2], dtype=torch.float64)}),
        Case("as many rows as columns", {"x": draw.normal(5, 5)}),
        Case("rank 3", {"x": draw.normal(2, 5, 7, scale=3)}),
        Case("rank 4, all axes equal", {"x": draw.normal(3, 3, 3, 3)}),
        Case("one score a row", {"x": draw.normal(5, 1)}),
        Case(EDGE, {"x": torch.tensor([[709.0, 709.5, 711]]).double()}),
        Case("large scores: on paper, only differences count", {"x": large}),
        Case("scores that are far apart within a row", {"x": spread}),
        Case(
            "only scores near -3000",
            {"x": torch.tensor([[-3000.0, -3001], [-2999, -2997]]).double()},
        ),
        Case("rows that are far apart, rank 4", {"x": _far_apart(draw.normal(2, 3, 5, 7))}),
        Case("x is a transposed tensor, so it is not contiguous", {"x": draw.normal(3, 7, 2).mT}),
    ]


def _far_apart(x):
    """Rows about 1000, 2000, ... away from 0, on both sides, rounded so that float32 holds them."""
    offsets = 1000.0 * torch.arange(x[..., :1].numel(), dtype=torch.float64)
    offsets = (offsets - offsets.mean().round()).reshape(x[..., :1].shape)
    return (8 * x).round() / 8 + offsets


def attend(query, keys, values):
    """A right answer to `01-attend`."""
    return torch.softmax(keys @ query, dim=-1) @ values


def attend_cases(draw):
    """Cases for `attend`: unequal sizes, equal ones, zero and large scores."""

    def case(name, d, num_keys, d_v):
        return _case(name, draw.normal(d), draw.normal(num_keys, d), draw.normal(num_keys, d_v))

    keys = [[0.0, 0], [1, 1], [1, 0]]
    values = [[0.0, 0, 10, 1], [9, 0, 10, 2], [0, 9, 10, 3]]
    transposed = {"query": draw.normal(5), "keys": draw.normal(5, 3).T}
    return [
        _case("three pairs", [1.0, 1], keys, values),
        _case("a query of zeros", [0.0, 0], keys, values),
        _case("scores of 1000, 1001 and 999", [1.0], [[1000.0], [1001], [999]], values),
        _case("all scores near -1000", [1.0], [[-1000.0], [-1001], [-999]], values),
        _case(EDGE, [1.0], [[709.0], [709.5], [711]], values),
        case("7 keys of width 5", 5, 7, 3),
        case("as many keys as their width", 5, 5, 2),
        case("keys and values of one width", 3, 7, 3),
        case("all sizes equal", 3, 3, 3),
        case("one key", 3, 1, 2),
        case("values of one number", 2, 5, 1),
        _case("large scores", *_enlarged(draw.normal(1, 5), draw.normal(5, 5)), draw.normal(5, 5)),
        Case(
            "keys are a transposed tensor, so they are not contiguous",
            transposed | {"values": draw.normal(3, 2)},
        ),
    ]


def attention(queries, keys, values):
    """A right answer to `01-attention`."""
    return torch.softmax(queries @ keys.mT, dim=-1) @ values


def attention_stages(inputs):
    """What a right `attend` or `attention` computes on the way."""
    queries, keys, values = inputs.values()
    scores = queries @ keys.mT
    weights = torch.softmax(scores, dim=-1)
    return {"the scores": scores, "the weights": weights, "the weighted sums": weights @ values}


def attention_cases(draw):
    """Cases for `attention`: batches of unequal and of equal sizes, zero and large scores."""

    def case(name, batch, lengths, d, d_v, change=lambda *tensors: tensors):
        num_queries, num_keys = lengths
        queries, keys = change(draw.normal(batch, num_queries, d), draw.normal(batch, num_keys, d))
        return _case(name, queries, keys, draw.normal(batch, num_keys, d_v))

    keys = [[[0.0, 0], [1, 1], [1, 0]]]
    values = [[[0.0, 0, 10, 1], [9, 0, 10, 2], [0, 9, 10, 3]]]
    large = [[[1000.0], [1001], [999]], [[-1000], [-1002], [-1000]]]
    apart = [[[1.0], [3]], [[100], [300]]]
    transposed = (draw.normal(2, 7, 3).mT, draw.normal(2, 7, 5).mT, draw.normal(2, 11, 5).mT)
    return [
        _case("1 sentence, 2 queries, 3 pairs", [[[1.0, 1], [1, -2]]], keys, values),
        _case("2 sentences, queries of zeros", [[[0.0]], [[0]]], [[[1.0], [2]]] * 2, apart),
        case("2 sentences, 3 queries, 5 keys", 2, (3, 5), 7, 11),
        case("more queries than keys", 3, (7, 2), 5, 11),
        case("as many queries as keys", 2, (5, 5), 3, 7),
        case("as many keys as their width", 2, (3, 5), 5, 7),
        case("as many sentences as queries and keys", 3, (3, 3), 2, 5),
        case("all sizes equal", 3, (3, 3), 3, 3),
        case("one query, one key", 2, (1, 1), 3, 5),
        _case(EDGE, [[[1.0], [0]]], [[[709.0], [709.5], [711]]], values),
        _case("scores around 1000 and -1000", [[[1.0], [-1]]], large[:1], values),
        _case("the second sentence far below the first", [[[1.0]], [[1]]], large, values * 2),
        case("large scores, all sizes equal", 3, (3, 3), 3, 3, change=_enlarged),
        _case("no tensor is contiguous", *transposed),
    ]


def _enlarged(queries, keys):
    """Scores near 1600 for the first query, near -1600 for the second, and so on.

    Rounded so that float32 holds every score. One query, (1, d), is returned as (d,).
    """
    queries, keys = (8 * queries).round() / 8, (8 * keys).round() / 8
    keys[..., 0] = 40
    queries[..., 0] = 40
    queries[..., 1::2, 0] = -40
    return (queries[0] if queries.dim() == 2 else queries), keys


def _case(name, query, keys, values):
    names = ("query" if torch.as_tensor(query).dim() == 1 else "queries", "keys", "values")
    tensors = (torch.as_tensor(X, dtype=torch.float64) for X in (query, keys, values))
    return Case(name, dict(zip(names, tensors, strict=True)))


def predictions():
    """A right answer to `01-predictions`.

    Powers 1 : 2 : 5. After the shift 1 : 4 : 5, so 4 / 10. An average of 2 v + 6 is 2 · 9 + 6.
    With the second pair twice 1 : 2 : 2 : 5, so (5 · 4 + 5 · 12) / 10.
    """
    return {"second_weight": 0.4, "new_output": 24.0, "output_with_twin": 8.0}


def prediction_cases(draw):
    """The one case of `predictions`, which takes nothing."""
    return [Case("the example of the statement", {})]


TASKS = [
    Task(
        "01-softmax",
        softmax,
        softmax_cases,
        mistakes=SOFTMAX,
        build=build_softmax,
        stages=softmax_stages,
        tolerance=1e-9,  # as its statement says
        forbidden=(
            *("torch.softmax", "torch.softmin", "torch.log_softmax"),
            *("torch.special_softmax", "torch.special_log_softmax"),
            *("torch._safe_softmax", "torch._masked_softmax"),
            *("torch.nn.functional.softmax", "torch.nn.functional.log_softmax"),
            "mha_course.attention.masked_softmax",
        ),
    ),
    Task(
        "01-attend",
        attend,
        attend_cases,
        mistakes=ATTEND,
        build=build_attend,
        stages=attention_stages,
        uses=("01-softmax",),
        forbidden=FINISHED,
    ),
    Task(
        "01-attention",
        attention,
        attention_cases,
        mistakes=ATTENTION,
        build=build_attention,
        stages=attention_stages,
        uses=("01-softmax", "01-attend"),
        forbidden=FINISHED,
    ),
    Task(
        "01-additive_scores",
        additive_scores,
        additive_cases,
        mistakes=ADDITIVE,
        build=build_additive,
        stages=additive_stages,
        forbidden=("mha_course.attention.AdditiveAttention", "d2l.torch.AdditiveAttention"),
    ),
    Task(
        "01-predictions",
        predictions,
        prediction_cases,
        returns=("predictions",),
        tolerance=1e-3,
        secret=True,
        mistakes=PREDICTIONS,
        build=build_predictions,
    ),
]
