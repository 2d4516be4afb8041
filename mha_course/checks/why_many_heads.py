"""The tasks of lesson 03: one head, the loop of heads, the output as a sum, weights by hand."""

import torch

from mha_course.attention import scaled_dot_product_attention
from mha_course.checks.mistakes.loop_of_heads import LOOP, build_loop
from mha_course.checks.mistakes.neighbours import build_neighbours
from mha_course.checks.mistakes.one_head import HEAD, build_head
from mha_course.checks.mistakes.output_as_sum import SUM, build_sum
from mha_course.checks.mistakes.strength_and_values import BY_HAND
from mha_course.checks.neighbours import (
    RETURNS,
    examine_neighbours,
    neighbour_cases,
    neighbour_weights,
    run_neighbours,
)
from mha_course.checks.task import Case, Task

__all__ = ["LENDS", "TASKS", "VERSION"]

VERSION = 1
LENDS = ("mha_course.attention",)  # what an answer may import of the course while it is graded

MODULES = (
    "mha_course.multihead.MultiHeadAttention",
    "d2l.torch.MultiHeadAttention",
    "torch.nn.modules.activation.MultiheadAttention",
    "torch.nn.functional.multi_head_attention_forward",
)


def one_head(X, W_q, W_k, W_v):
    """A right answer to `03-one_head`."""
    return scaled_dot_product_attention(X @ W_q, X @ W_k, X @ W_v)[0]


def loop_of_heads(X, W_q, W_k, W_v, W_o):
    """A right answer to `03-loop_of_heads`."""
    heads = [one_head(X, *matrices) for matrices in zip(W_q, W_k, W_v, strict=True)]
    return torch.cat(heads, dim=-1) @ W_o


def output_as_sum(heads, W_o):
    """A right answer to `03-output_as_sum`."""
    parts = zip(heads, W_o.split(heads.shape[-1]), strict=True)
    return sum(head @ rows for head, rows in parts)


def head_cases(draw):
    """Cases for `one_head`."""
    tokens = torch.tensor([[[2.0, 0.0], [0.0, 4.0]]], dtype=torch.float64)

    def case(name, B, L, d_model, d_k, d_v, X=None):
        X = draw.normal(B, L, d_model) if X is None else X
        matrices = [draw.normal(d_model, d, scale=d_model**-0.5) for d in (d_k, d_k, d_v)]
        return Case(name, dict(zip(("X", "W_q", "W_k", "W_v"), (X, *matrices), strict=True)))

    one, zero = tokens.new_ones, tokens.new_zeros
    eye = torch.eye(2, dtype=torch.float64)
    three = torch.tensor([[[1.0, 0.0], [0.0, 2.0], [0.0, 1.0]]], dtype=torch.float64)
    digits = torch.arange(12, dtype=torch.float64).reshape(1, 2, 6) - 6
    return [
        Case(
            "2 words, d_k = 4, all scores are 0, so each word gets the average",
            {"X": tokens, "W_q": zero(2, 4), "W_k": one(2, 4), "W_v": eye},
        ),
        Case(
            "3 words, d_k = 4, values 1, 0 and 0, so that the output is the weight on word 0",
            {"X": three, "W_q": one(2, 4) / 2, "W_k": eye[:1].T.repeat(1, 4), "W_v": eye[:1].T},
        ),
        case("2 sequences, 5 words, d_model = 7, d_k = 3, d_v = 11", 2, 5, 7, 3, 11),
        case("as many words as sequences and features", 3, 3, 3, 3, 3),
        case("1 word: nothing but its own value", 2, 1, 5, 3, 2),
        case("X is a transposed tensor", 3, 7, 5, 2, 3, X=draw.normal(3, 5, 7).transpose(1, 2)),
        Case(
            "scores of 3000, 3001 and 3002",
            {
                "X": torch.tensor([[[1.0, 0], [1, 1], [1, 2]]]).double(),
                "W_q": torch.tensor([[3000.0], [0]]).double(),
                "W_k": torch.tensor([[1], [1 / 3000]]).double(),
                "W_v": torch.tensor([[0.0], [1]]).double(),
            },
        ),
        Case(
            "scores in the thousands",
            {"X": digits, "W_q": 9 * one(6, 4), "W_k": 2 * one(6, 4), "W_v": one(6, 3)},
        ),
    ]


def _loop_inputs(draw, B, L, d_model, H, d_k, d_v):
    shapes = {"W_q": (d_model, d_k), "W_k": (d_model, d_k), "W_v": (d_model, d_v)}
    inputs = {"X": draw.normal(B, L, d_model)}
    for name, shape in shapes.items():
        inputs[name] = draw.normal(H, *shape, scale=d_model**-0.5)
    inputs["W_o"] = draw.normal(H * d_v, d_model, scale=(H * d_v) ** -0.5)
    return inputs


def loop_cases(draw):
    """Cases for `loop_of_heads`."""
    tokens = torch.tensor([[[2.0, 0.0], [0.0, 4.0]]], dtype=torch.float64)
    zero = tokens.new_zeros(2, 2, 1)
    by_hand = {"X": tokens, "W_q": zero, "W_k": zero + 1}
    by_hand["W_v"] = torch.tensor([[[1.0], [0.0]], [[0.0], [1.0]]], dtype=torch.float64)
    by_hand["W_o"] = torch.tensor([[1.0, 2.0], [3.0, 4.0]], dtype=torch.float64)
    small = {"X": tokens / 2}
    small["W_q"] = torch.tensor([[[1, 1, 1], [1, 1, 1]], [[1, 0, 0], [0, 1, 0]]]).double()
    small["W_k"] = torch.tensor([[[1, 1, 1], [0, 0, 0]], [[0, 1, 0], [0, 0, 1]]]).double()
    small["W_v"] = torch.tensor([[[1, 0], [0, 1]], [[2, 0], [0, 3]]]).double()
    small["W_o"] = torch.tensor([[1, 0], [0, 1], [10, 0], [0, 10]]).double()
    transposed = _loop_inputs(draw, 3, 5, 7, 2, 3, 2)
    transposed["X"] = draw.normal(3, 7, 5).transpose(1, 2)
    transposed["W_o"] = draw.normal(7, 4).T
    return [
        Case("2 words, 2 heads, all scores are 0, so each head averages", by_hand),
        Case("2 words, 2 heads, d_k = 3, d_v = 2", small),
        Case("3 sequences, 5 words, 2 heads, d_v = 11", _loop_inputs(draw, 3, 5, 7, 2, 3, 11)),
        Case("5 heads, d_k = 11, d_v = 3", _loop_inputs(draw, 2, 7, 13, 5, 11, 3)),
        Case("all sizes are 3", _loop_inputs(draw, 3, 3, 3, 3, 3, 3)),
        Case("one head", _loop_inputs(draw, 2, 3, 5, 1, 2, 7)),
        Case("X and W_o are transposed tensors", transposed),
    ]


def sum_cases(draw):
    """Cases for `output_as_sum`."""
    digits = torch.tensor([[[[1.0, 2.0]]], [[[3.0, 4.0]]]], dtype=torch.float64)
    words = torch.arange(1.0, 9.0, dtype=torch.float64).reshape(2, 2, 2, 1)
    rows = torch.tensor([[1.0, 0.0], [0.0, 1.0], [10.0, 0.0], [0.0, 100.0]], dtype=torch.float64)

    def case(name, H, B, L, d_v, d_model):
        inputs = {"heads": draw.normal(H, B, L, d_v), "W_o": draw.normal(H * d_v, d_model)}
        return Case(name, inputs)

    turned = {"heads": draw.normal(3, 5, 2, 7).permute(2, 0, 1, 3), "W_o": draw.normal(5, 14).T}
    return [
        Case("1 word, 2 heads of width 2", {"heads": digits, "W_o": rows}),
        Case(
            "2 sequences of 2 words, 2 heads of width 1", {"heads": words, "W_o": rows[[0, 2], :1]}
        ),
        case("3 heads, 2 sequences, 5 words, d_v = 7, d_model = 11", 3, 2, 5, 7, 11),
        case("all sizes are 3", 3, 3, 3, 3, 3),
        case("one head", 1, 3, 2, 5, 7),
        Case("heads and W_o are not contiguous", turned),
    ]


def head_stages(inputs):
    """What a right `one_head` computes on the way, for the case's inputs."""
    X, W_q, W_k, W_v = inputs.values()
    q, k, v = X @ W_q, X @ W_k, X @ W_v
    scores = q @ k.mT
    weights = (scores / q.shape[-1] ** 0.5).softmax(-1)
    return {
        "the projections": {"the queries": q, "the keys": k, "the values": v},
        "the scores": scores,
        "the scaled scores": scores / q.shape[-1] ** 0.5,
        "the weights": weights,
        "the weighted sums of the values": weights @ v,
    }


def loop_stages(inputs):
    """What a right `loop_of_heads` computes on the way: each stage for all heads."""
    X, *matrices, W_o = inputs.values()
    per_head = zip(*matrices, strict=True)
    runs = [head_stages(dict(zip("Xqkv", (X, *own), strict=True))) for own in per_head]
    projections = [run.pop("the projections") for run in runs]
    stages = {"the projections": _of_every_head(projections)} | _of_every_head(runs)
    joined = torch.cat([run["the weighted sums of the values"] for run in runs], -1)
    return stages | {"the heads side by side, times W_o": joined @ W_o}


def _of_every_head(runs):
    return {f"{name} of every head": torch.stack([r[name] for r in runs]) for name in runs[0]}


def sum_stages(inputs):
    """What a right `output_as_sum` computes on the way."""
    heads, W_o = inputs.values()
    terms = heads @ W_o.unflatten(0, (len(heads), 1, -1))
    return {"each head times its own rows of W_o": terms, "the sum over the heads": terms.sum(0)}


TASKS = [
    Task(
        "03-one_head",
        one_head,
        head_cases,
        returns=("the output", "the weights"),  # the second only if it is returned by mistake
        forbidden=MODULES,
        mistakes=HEAD,
        build=build_head,
        stages=head_stages,
    ),
    Task(
        "03-loop_of_heads",
        loop_of_heads,
        loop_cases,
        returns=("the output",),
        forbidden=MODULES,
        mistakes=LOOP,
        build=build_loop,
        stages=loop_stages,
        uses=("03-one_head",),
    ),
    Task(
        "03-output_as_sum",
        output_as_sum,
        sum_cases,
        returns=("the output",),
        mistakes=SUM,
        build=build_sum,
        stages=sum_stages,
    ),
    Task(
        "03-neighbour_weights",
        neighbour_weights,
        neighbour_cases,
        run=run_neighbours,
        examine=examine_neighbours,
        returns=RETURNS,
        mistakes=BY_HAND,
        build=build_neighbours,
    ),
]
