"""The tasks of lesson 03: one head, the loop of heads, the output as a sum, weights by hand."""

import torch

from mha_course.attention import scaled_dot_product_attention
from mha_course.checks.task import AnswerError, Case, Task

__all__ = ["TASKS", "VERSION"]

VERSION = 1

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


def neighbour_weights(num_features, num_positions):
    """A right answer to `03-neighbour_weights`: keys say where they are, queries where to look."""
    here = torch.eye(num_positions, dtype=torch.float64)
    W_q = here.new_zeros(2, num_features + num_positions, num_positions)
    W_k, W_v = W_q.clone(), W_q[:, :, :1].repeat(1, 1, num_features)
    W_k[:, num_features:] = 100 * here
    W_q[0, num_features + 1 :] = here[:-1]
    W_q[1, num_features:-1] = here[1:]
    W_v[:, :num_features] = torch.eye(num_features, dtype=torch.float64)
    return W_q, W_k, W_v


def head_cases(draw):
    """Cases for `one_head`."""
    tokens = torch.tensor([[[2.0, 0.0], [0.0, 4.0]]], dtype=torch.float64)

    def case(name, B, L, d_model, d_k, d_v, X=None):
        X = draw.normal(B, L, d_model) if X is None else X
        matrices = [draw.normal(d_model, d, scale=d_model**-0.5) for d in (d_k, d_k, d_v)]
        return Case(name, dict(zip(("X", "W_q", "W_k", "W_v"), (X, *matrices), strict=True)))

    one, zero = tokens.new_ones, tokens.new_zeros
    eye = torch.eye(2, dtype=torch.float64)
    digits = torch.arange(12, dtype=torch.float64).reshape(1, 2, 6) - 6
    return [
        Case(
            "2 words, d_k = 4, all scores are 0, so each word gets the average",
            {"X": tokens, "W_q": zero(2, 4), "W_k": one(2, 4), "W_v": eye},
        ),
        Case(
            "2 words, d_k = 4",
            {"X": tokens / 4, "W_q": one(2, 4), "W_k": eye.repeat(1, 2), "W_v": eye[:1].T},
        ),
        case("2 sequences, 5 words, d_model = 7, d_k = 3, d_v = 11", 2, 5, 7, 3, 11),
        case("as many words as sequences and features", 3, 3, 3, 3, 3),
        case("1 word: nothing but its own value", 2, 1, 5, 3, 2),
        case("X is a transposed tensor", 3, 7, 5, 2, 3, X=draw.normal(3, 5, 7).transpose(1, 2)),
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
    transposed = _loop_inputs(draw, 3, 5, 7, 2, 3, 2)
    transposed["X"] = draw.normal(3, 7, 5).transpose(1, 2)
    transposed["W_o"] = draw.normal(7, 4).T
    return [
        Case("2 words, 2 heads, all scores are 0, so each head averages", by_hand),
        Case("3 sequences, 5 words, 2 heads, d_v = 11", _loop_inputs(draw, 3, 5, 7, 2, 3, 11)),
        Case("5 heads, d_k = 11, d_v = 3", _loop_inputs(draw, 2, 7, 13, 5, 11, 3)),
        Case("all sizes are 3", _loop_inputs(draw, 3, 3, 3, 3, 3, 3)),
        Case("one head", _loop_inputs(draw, 2, 3, 5, 1, 2, 7)),
        Case("X and W_o are transposed tensors", transposed),
    ]


def sum_cases(draw):
    """Cases for `output_as_sum`."""
    digits = torch.tensor([[[[1.0, 2.0]]], [[[3.0, 4.0]]]], dtype=torch.float64)
    rows = torch.tensor([[1.0, 0.0], [0.0, 1.0], [10.0, 0.0], [0.0, 100.0]], dtype=torch.float64)

    def case(name, H, B, L, d_v, d_model):
        inputs = {"heads": draw.normal(H, B, L, d_v), "W_o": draw.normal(H * d_v, d_model)}
        return Case(name, inputs)

    turned = {"heads": draw.normal(3, 5, 2, 7).permute(2, 0, 1, 3), "W_o": draw.normal(5, 14).T}
    return [
        Case("1 word, 2 heads of width 2", {"heads": digits, "W_o": rows}),
        case("3 heads, 2 sequences, 5 words, d_v = 7, d_model = 11", 3, 2, 5, 7, 11),
        case("all sizes are 3", 3, 3, 3, 3, 3),
        case("one head", 1, 3, 2, 5, 7),
        Case("heads and W_o are not contiguous", turned),
    ]


def neighbour_cases(draw):
    """Cases for `neighbour_weights`: sizes, and contents between -1 and 1 to run its weights on."""

    def case(B, L, d, content=None):
        content = draw.normal(B, L, d).tanh() if content is None else content
        inputs = {"num_features": d, "num_positions": L, "content": content}
        return Case(f"{L} positions, features a word: {d}", inputs)

    digits = torch.tensor([[[1.0], [-1.0], [0.5]]], dtype=torch.float64)
    sign = torch.sign(draw.normal(2, 13, 11))  # as large as contents get
    same = sign[:, :1, :7].repeat(1, 7, 1)  # words alike: only their position tells them apart
    return [
        case(1, 3, 1, digits),
        case(2, 5, 3),
        case(3, 2, 5),
        case(2, 13, 11, sign),
        case(2, 7, 7, same * draw.normal(2, 7, 1).tanh()),
        case(3, 19, 2),
    ]


def run_neighbours(answer, inputs):
    """Run a right attention with the learner's weights; return where its two heads look.

    Where a word has no such neighbour, 1 and 0 stand in for whatever the head does.
    """
    d, content = inputs["num_features"], inputs["content"]
    W_q, W_k, W_v = _checked(answer(d, inputs["num_positions"]), d, inputs["num_positions"])
    B, L, _ = content.shape
    positions = torch.eye(L, dtype=content.dtype).expand(B, L, L)
    X = torch.cat([content, positions], dim=-1)
    result = []
    for head, step in ((0, -1), (1, 1)):
        queries, keys, values = (X @ W[head] for W in (W_q, W_k, W_v))
        output, weights = scaled_dot_product_attention(queries, keys, values)
        asks = torch.arange(L)[max(0, -step) : L - max(0, step)]
        weight, copied = weights.new_ones(B, L), torch.zeros_like(content)
        found = weights[:, asks, asks + step]
        weight[:, asks] = torch.where(found > 0.99, 1.0, found)
        wanted, got = content[:, asks + step], output[:, asks]
        copied[:, asks] = torch.where((got - wanted).abs() <= 0.02, wanted, got)
        result += [weight, copied]
    return tuple(result)


def _checked(weights, num_features, num_positions):
    """W_q, W_k, W_v in float64, or an AnswerError that says what about them is wrong."""
    if not isinstance(weights, (tuple, list)) or len(weights) != 3:
        raise AnswerError("neighbour_weights has to return three tensors: W_q, W_k, W_v.")
    d_model = num_features + num_positions
    wanted = {"W_q": "d_k", "W_k": "d_k", "W_v": num_features}
    for (name, width), W in zip(wanted.items(), weights, strict=True):
        if not torch.is_tensor(W) or W.dtype not in (torch.float32, torch.float64):
            kind = W.dtype if torch.is_tensor(W) else type(W).__name__
            raise AnswerError(f"{name} has to be a tensor of float32 or float64, got {kind}.")
        fits = W.dim() == 3 and W.shape[:2] == (2, d_model) and W.shape[2] > 0
        if not fits or (width != "d_k" and W.shape[2] != width):
            shape = f"(2, {d_model}, {width})"
            raise AnswerError(f"{name} has shape {tuple(W.shape)}, expected {shape}.")
    W_q, W_k, W_v = (W.detach().double() for W in weights)
    if W_q.shape != W_k.shape:
        sizes = f"{tuple(W_q.shape)} and {tuple(W_k.shape)}"
        raise AnswerError(f"W_q and W_k must have one width d_k, their shapes are {sizes}.")
    return W_q, W_k, W_v


TASKS = [
    Task("03-one_head", one_head, head_cases, forbidden=MODULES),
    Task("03-loop_of_heads", loop_of_heads, loop_cases, forbidden=MODULES),
    Task("03-output_as_sum", output_as_sum, sum_cases),
    Task(
        "03-neighbour_weights",
        neighbour_weights,
        neighbour_cases,
        run=run_neighbours,
        returns=("weight_before", "copied_before", "weight_after", "copied_after"),
    ),
]
