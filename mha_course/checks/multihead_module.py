"""Cases, run, examination and stages of lesson 04's module."""

from operator import attrgetter

import torch
from torch import nn

from mha_course.attention import length_mask
from mha_course.checks.bert_loading import parameters_of, twins_among
from mha_course.checks.examining import equal, is_floats, is_nonzero, total
from mha_course.checks.showing import describe
from mha_course.checks.task import AnswerError, Case

__all__ = ["examine_module", "module_cases", "module_stages", "run_module"]

SIZES = ("key_size", "query_size", "value_size", "num_hiddens", "num_heads")
MATRICES = ("W_q.weight", "W_k.weight", "W_v.weight", "W_o.weight")


def _module_case(
    draw, name, sizes, batch, lengths, valid_lens=None, bias=False, dropout=0.0, training=False
):
    inputs = dict(zip(SIZES, sizes, strict=True)) | {"dropout": dropout, "bias": bias}
    key_size, query_size, value_size, num_hiddens, _ = sizes
    widths = {"W_q": query_size, "W_k": key_size, "W_v": value_size, "W_o": num_hiddens}
    for projection, width in widths.items():
        inputs[f"{projection}.weight"] = draw.normal(num_hiddens, width, scale=width**-0.5)
        if bias:
            inputs[f"{projection}.bias"] = draw.normal(num_hiddens)
    num_queries, num_keys = lengths
    inputs["queries"] = draw.normal(batch, num_queries, query_size)
    inputs["keys"] = draw.normal(batch, num_keys, key_size)
    inputs["values"] = draw.normal(batch, num_keys, value_size)
    if valid_lens is not None:
        inputs["valid_lens"] = torch.tensor(valid_lens)
    if training:
        inputs["training"] = True
    return Case(name, inputs)


def module_cases(draw):
    """Cases for `MultiHeadAttention`."""

    def case(*args, **options):
        return _module_case(draw, *args, **options)

    six = (6, 6, 6, 6, 3)
    return [
        case("1 sequence, 2 heads", (4, 4, 4, 4, 2), 1, (3, 3)),
        case("2 sequences, 3 heads of width 5", (15, 15, 15, 15, 3), 2, (7, 7)),
        case("5 queries, 7 keys, three input widths", (2, 3, 5, 14, 2), 3, (5, 7)),
        case("sequences of unequal length", (6, 6, 6, 6, 3), 2, (5, 5), valid_lens=[5, 2]),
        case("one length a query", (6, 6, 6, 6, 3), 2, (2, 5), valid_lens=[[1, 4], [3, 5]]),
        case("a sequence of length 0", (6, 6, 6, 6, 3), 3, (2, 4), valid_lens=[4, 0, 1]),
        case("with biases", (6, 6, 6, 6, 2), 2, (4, 5), valid_lens=[5, 3], bias=True),
        case("as many sequences as queries", six, 3, (3, 5), valid_lens=[5, 2, 3]),
        case("one query, nothing to attend to", six, 2, (1, 4), valid_lens=[0, 0], bias=True),
        case("in training, without dropout", six, 3, (2, 4), valid_lens=[1, 0, 3], training=True),
        case("dropout=1.0", (6, 6, 6, 6, 2), 2, (4, 5), bias=True, dropout=1.0),
        _one_key_case(case("dropout=0.25, one key", six, 7, (11, 1), dropout=0.25)),
    ]


def _one_key_case(case):
    """The output is then the heads' results themselves: dropped, or the one value scaled up."""
    case.inputs["W_o.weight"] = torch.eye(6).double()
    return case


def run_module(answer, inputs):
    """Make the learner's module, give it the case's weights, and run it.

    With dropout, in eval mode and in training: dropout of 1 leaves nothing of the values there,
    and with less the heads of a query are dropped or scaled up one by one. In training without
    dropout the gradients are looked at too.
    Raises: AnswerError if it is no module.
    """
    module = answer(*(inputs[size] for size in SIZES), inputs["dropout"], inputs["bias"])
    if not isinstance(module, nn.Module):
        raise AnswerError("MultiHeadAttention has to be a subclass of nn.Module.")
    seen = {"parameters": parameters_of(module.double())}
    if _misfit(seen["parameters"], inputs):
        return seen
    _load(module, inputs)
    arguments = [inputs[n] for n in ("queries", "keys", "values", "valid_lens") if n in inputs]
    training = inputs.get("training", False)
    seen["output"] = output = module.train(training)(*arguments)
    seen["training"] = module.training
    if module.training is not training:
        return seen
    if training:
        seen["gradients"] = _gradients(output, module)
    if inputs["dropout"]:
        seen["in training"] = module.train()(*arguments)
    if 0 < inputs["dropout"] < 1:
        seen["again"] = module.eval()(*arguments)
    return seen


@total
def examine_module(inputs, seen):
    """The output; with dropout also that in training, or what is said of it.

    Raises: AnswerError if the module lacks a parameter, leaves one without a gradient, or drops
        something else than the weights of each head, or in eval mode.
    """
    complaint = _misfit(seen["parameters"], inputs)
    if complaint:
        raise AnswerError(complaint)
    training = inputs.get("training", False)
    if seen["training"] is not training:
        raise AnswerError("forward changes whether the module is training (train or eval inside).")
    if training:
        _check_gradients(seen["gradients"], inputs)
    if not inputs["dropout"]:
        return seen["output"]
    if inputs["dropout"] == 1:
        return {
            "the output in eval mode": seen["output"],
            "the output in training": seen["in training"],
        }
    _check_dropout(inputs, seen["output"], seen["again"], seen["in training"])
    return "dropped in training, one weight of a head at a time"


def _gradients(output, module):
    if not output.requires_grad:
        return {}
    output.square().sum().backward()
    return {name: module.get_parameter(name).grad for name in MATRICES}


def _check_gradients(gradients, inputs):
    names = [n for n in MATRICES if not is_nonzero(gradients.get(n), inputs[n].shape)]
    if names:
        raise AnswerError(
            f"After backward() there is no gradient in {' and '.join(names)}, so training would "
            "never change it. Is it used at all? detach, .data, numpy and no_grad cut a result off "
            "from what it was computed with."
        )


def _check_dropout(inputs, once, again, trained):
    """With one key and W_o the identity: is each head dropped or scaled up as a whole?"""
    dropout = inputs["dropout"]
    if not equal(once, again):
        raise AnswerError(
            f"In eval mode, with dropout={dropout}, two runs on the same inputs give two results: "
            "something is dropped there. Dropout is for training only."
        )
    output = nn.functional.linear(inputs["values"], inputs["W_v.weight"])  # (B, 1, num_hiddens)
    shape = (*inputs["queries"].shape[:2], inputs["num_hiddens"])
    if not is_floats(once, shape) or not is_floats(trained, shape):
        raise AnswerError(
            f"The output has to be a tensor of shape {shape}, in eval mode and in training; got "
            f"{describe(once)} and {describe(trained)}."
        )
    factors = (trained / output).unflatten(-1, (inputs["num_heads"], -1))  # (B, L, H, d)
    rounded = torch.where(factors.abs() < 1e-6, 0.0, 1 / (1 - dropout))
    whole = bool((factors - rounded[..., :1]).abs().max() < 1e-6)
    if not whole or len(rounded.unique()) != 2:
        raise AnswerError(
            f"In training, with dropout={dropout}, something else than attention weights is "
            "dropped, or nothing. Where there is one key, the result of a head is one weight times "
            f"one value: either 0, or that value divided by {1 - dropout}."
        )


def module_stages(inputs):
    """What a right module computes on the way, for the case's inputs."""
    projections, parts = {}, {}
    for name, role in (("W_q", "queries"), ("W_k", "keys"), ("W_v", "values")):
        bias = inputs.get(f"{name}.bias")
        projected = nn.functional.linear(inputs[role], inputs[f"{name}.weight"], bias)
        projections[f"the projected {role}"] = projected
        parts[name] = projected.unflatten(-1, (inputs["num_heads"], -1)).transpose(1, 2)
    q, k, v = parts.values()
    stages = {"the projections": projections}
    stages["the scores"] = q @ k.transpose(2, 3)
    stages["the scaled scores"] = stages["the scores"] / q.shape[-1] ** 0.5
    mask = torch.ones(1, 1, 1, k.shape[2], dtype=torch.bool)
    if "valid_lens" in inputs:
        mask = length_mask(inputs["valid_lens"], len(q), q.shape[2], k.shape[2])[:, None]
    weights = stages["the scaled scores"].masked_fill(~mask, -torch.inf).softmax(-1).nan_to_num()
    stages["the weights"] = weights
    stages["the weighted sums of each head"] = weights @ v
    joined = stages["the joined heads"] = (weights @ v).transpose(1, 2).flatten(2)
    output = nn.functional.linear(joined, inputs["W_o.weight"], inputs.get("W_o.bias"))
    stages["the output"] = output
    return stages


def _misfit(parameters, inputs):
    """What is wrong with a module's parameters, "" if every W_….weight and W_….bias fits."""
    twins = twins_among(parameters)
    if twins:
        return twins
    for name in parameters:
        if name.endswith(".bias") and name.startswith("W_") and name not in inputs:
            return f"With bias=False there is a parameter {name} all the same."
    for name, wanted in inputs.items():
        if not name.startswith("W_"):
            continue
        if name not in parameters:
            listed = ", ".join(parameters) or "none at all"
            return (
                f"The module has no parameter {name}. Its parameters: {listed}. Four nn.Linear "
                "named W_q, W_k, W_v, W_o are asked for, with a bias each if bias=True."
            )
        shape = parameters[name][0]
        if shape != tuple(wanted.shape):
            expected = f"expected {tuple(wanted.shape)} (nn.Linear keeps (out, in))"
            return f"{name} has shape {shape}, {expected}."
    return ""


def _load(module, inputs):
    """Copy every W_….weight and W_….bias among the inputs into the parameter of that name."""
    with torch.no_grad():
        for name, wanted in inputs.items():
            if name.startswith("W_"):
                attrgetter(name)(module).copy_(wanted)
