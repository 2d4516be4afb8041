"""Cases of lesson 06's classes: sizes, weights, inputs."""

import torch

from mha_course.checks.task import Case

__all__ = ["attention_cases", "layer_cases", "output_cases"]

LOW = torch.finfo(torch.float32).min  # for float64 scores as good as its own, and can be shown


def _case(draw, name, widths, shape, shapes, lengths=None, **more):
    """widths: hidden_size, num_attention_heads. shape: (B, L). shapes: of the weights, by name."""
    hidden_size, num_heads = widths
    inputs = {"hidden_size": hidden_size, "num_attention_heads": num_heads} | more
    weights = {n: draw.normal(*s, scale=s[-1] ** -0.5) for n, s in shapes(hidden_size).items()}
    if any(n.count(".") > 1 for n in weights):
        inputs["weights"] = tuple(weights.items())  # too many to be shown
    else:
        inputs |= weights
    inputs["X"] = draw.normal(*shape, hidden_size)
    if lengths is not None:
        hidden = torch.arange(shape[1]) >= torch.tensor(lengths)[:, None]
        mask = torch.zeros(shape, dtype=torch.float64).masked_fill(hidden, LOW)
        inputs["mask"] = mask[:, None, None, :]
    return Case(name, inputs)


def _linear(name, num_outputs, num_inputs):
    return {f"{name}.weight": (num_outputs, num_inputs), f"{name}.bias": (num_outputs,)}


def _attention_shapes(width):
    names = ("W_q", "W_k", "W_v")
    return {n: s for W in names for n, s in _linear(W, width, width).items()}


def _output_shapes(width):
    return _linear("W_o", width, width) | {"norm.weight": (width,), "norm.bias": (width,)}


def _layer_shapes(intermediate_size):
    def shapes(width):
        narrow = _linear("W_2", width, intermediate_size)
        parts = {
            "self_attention": _attention_shapes(width),
            "self_output": _output_shapes(width),
            "feed_forward": _linear("W_1", intermediate_size, width)
            | narrow
            | {"norm.weight": (width,), "norm.bias": (width,)},
        }
        return {f"{part}.{n}": s for part, names in parts.items() for n, s in names.items()}

    return shapes


def attention_cases(draw):
    """Cases for `BertSelfAttention`."""

    def case(name, widths, shape, *lengths, **more):
        return _case(draw, name, widths, shape, _attention_shapes, *lengths, **more)

    added = case("a mask of all kinds of numbers", (6, 3), (2, 5))
    added.inputs["mask"] = 3 * draw.normal(2, 1, 1, 5)
    even = case("attention_probs_dropout_prob=0.25", (10, 2), (7, 3), attention_dropout=0.25)
    for name in ("W_q.weight", "W_q.bias"):
        even.inputs[name] *= 0.1  # no weight near 0, so that what is dropped can be told
    return [
        case("1 sequence, 2 heads", (4, 2), (1, 3)),
        case("sequences of unequal length", (6, 3), (2, 5), [5, 2]),
        case("3 heads of width 5", (15, 3), (2, 7), [4, 7]),
        case("as many sequences as words and heads", (6, 3), (3, 3), [2, 3, 1]),
        case("a sequence of padding alone", (6, 2), (3, 4), [3, 0, 4]),
        added,
        case("in training, without dropout", (6, 3), (2, 5), [5, 3], training=True),
        case("attention_probs_dropout_prob=1", (6, 3), (2, 5), [5, 3], attention_dropout=1.0),
        case("hidden_dropout_prob=1, which is for 6.3", (6, 2), (2, 5), hidden_dropout=1.0),
        even,
    ]


def output_cases(draw):
    """Cases for `BertSelfOutput`."""

    def case(name, width, shape, **more):
        made = _case(draw, name, (width, 1), shape, _output_shapes, **more)
        made.inputs["residual"] = draw.normal(*shape, width)
        return made

    flat = case("the sum hardly varies within a word", 5, (2, 3), layer_norm_eps=1e-8)
    flat.inputs["W_o.weight"] *= 1e-4
    flat.inputs["W_o.bias"] *= 1e-4
    flat.inputs["residual"] *= 1e-4
    return [
        case("1 sequence of 2 words", 3, (1, 2)),
        case("2 sequences", 7, (2, 5)),
        flat,
        case("layer_norm_eps=0.5", 5, (2, 3), layer_norm_eps=0.5),
        case("as many words as features", 5, (3, 5)),
        case("in training, without dropout", 5, (2, 3), training=True),
        case("hidden_dropout_prob=1", 5, (2, 3), hidden_dropout=1.0),
        case("attention_probs_dropout_prob=1, which is for 6.2", 5, (2, 3), attention_dropout=1.0),
        _case_that_shows_dropout(case("hidden_dropout_prob=0.25", 11, (3, 7), hidden_dropout=0.25)),
    ]


def _case_that_shows_dropout(case):
    """In each word W_o(X) is 1 but for the first and last feature, and the residual is known."""
    case.inputs["W_o.weight"] = torch.zeros(11, 11, dtype=torch.float64)
    case.inputs["W_o.bias"] = torch.tensor([0.0] + [1.0] * 9 + [0.0]).double()
    case.inputs["norm.weight"] = torch.ones(11, dtype=torch.float64)
    case.inputs["norm.bias"] = torch.zeros(11, dtype=torch.float64)
    case.inputs["residual"] = torch.zeros_like(case.inputs["residual"])
    case.inputs["residual"][..., -1] = 1.0
    return case


def layer_cases(draw):
    """Cases for `BertLayer`."""

    other = {"layer_norm_eps": 0.5, "hidden_act": "relu"}

    def case(name, widths, shape, *lengths, intermediate_size=7, **more):
        shapes = _layer_shapes(intermediate_size)
        more["intermediate_size"] = intermediate_size
        return _case(draw, name, widths, shape, shapes, *lengths, **more)

    return [
        case("1 sequence, 2 heads", (4, 2), (1, 3), intermediate_size=3),
        case("sequences of unequal length", (6, 3), (2, 5), [5, 2]),
        case("as many sequences as words", (6, 2), (3, 3), [2, 3, 1], **other),
        case("in training, without dropout", (6, 3), (2, 5), [5, 3], training=True),
        case("attention_probs_dropout_prob=1", (6, 3), (2, 5), [5, 3], attention_dropout=1.0),
        case("hidden_dropout_prob=1", (6, 3), (2, 5), [5, 3], hidden_dropout=1.0),
    ]
