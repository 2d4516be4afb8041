"""Cases and run of lesson 12's stack of layers."""

import torch
from torch import nn

from mha_course.bert import BertConfig
from mha_course.checks.bert_loading import make
from mha_course.checks.evidence import is_floats, total
from mha_course.checks.module_calls import Call, all_reached, gradients_of, judged, run_planned
from mha_course.checks.showing import describe
from mha_course.checks.task import AnswerError, Case

__all__ = ["TestLayer", "encoder_cases", "examine_encoder", "run_encoder"]

LOW = torch.finfo(torch.float32).min  # for float64 scores as good as its own, and can be shown


class TestLayer(nn.Module):
    """A layer that is quick and uses its mask: each word hears the mean of those that are seen."""

    __test__ = False  # it is no test

    def __init__(self, config):
        super().__init__()
        self.W = nn.Linear(config.hidden_size, config.hidden_size)

    def forward(self, X, mask=None, need_weights=False):
        """Shapes as in lesson 06's BertLayer."""
        B, L, _ = X.shape
        scores = X.new_zeros(B, 1, L, L) + (0 if mask is None else mask)
        weights = scores.softmax(-1)
        output = X + torch.tanh(self.W(X) + weights[:, 0] @ X)
        return (output, weights) if need_weights else output


def encoder_cases(draw):
    """Cases for `BertEncoder`."""

    def case(name, num_layers, shape, lengths=None, **more):
        inputs, width = dict(more), shape[-1]
        for n in range(num_layers):
            inputs[f"layers.{n}.W.weight"] = draw.normal(width, width, scale=width**-0.5)
            inputs[f"layers.{n}.W.bias"] = draw.normal(width)
        inputs["X"] = draw.normal(*shape)
        if lengths is not None:
            hidden = torch.arange(shape[1]) >= torch.tensor(lengths)[:, None]
            mask = torch.zeros(shape[:2], dtype=torch.float64).masked_fill(hidden, LOW)
            inputs["mask"] = mask[:, None, None, :]
        return Case(name, inputs)

    added = case("2 layers, a mask of all kinds of numbers", 2, (3, 5, 2))
    added.inputs["mask"] = 3 * draw.normal(3, 1, 1, 5)
    return [
        case("2 layers, 1 text of 2 words, no mask", 2, (1, 2, 2)),
        case("3 layers, texts of unequal length", 3, (2, 5, 7), [5, 2]),
        case("1 layer", 1, (2, 3, 5), [1, 3]),
        case("as many layers as texts and words", 3, (3, 3, 3), [3, 1, 2]),
        case("5 layers, no mask", 5, (3, 2, 3)),
        added,
        case("in training", 3, (2, 3, 5), [3, 2], training=True),
    ]


def run_encoder(answer, inputs):
    """Make the learner's encoder of test layers, give it the case's weights, run it."""
    config, made = _config(inputs), []

    def layer(config):
        made.append(TestLayer(config))
        return made[-1]

    module = make(lambda config: answer(config, layer), "BertEncoder", config)
    if not made:
        return {"layer is called": False}
    arguments = [inputs[name] for name in ("X", "mask") if name in inputs]
    training = inputs.get("training", False)
    if training:
        arguments[0] = inputs["X"].clone().requires_grad_()
    seen = run_planned(module, "BertEncoder", inputs, arguments, [Call(training=training)])
    states = seen["calls"][0]["result"] if seen["calls"] else None
    if training and not _unlike(inputs, states):
        seen["gradients"] = gradients_of(module, states[-1])  # through all the layers below it
        seen["requires_grad"] = [state.requires_grad for state in states]
        seen["gradient of X"] = arguments[0].grad
    return seen | {"layer is called": True}


def _config(inputs):
    return BertConfig(
        vocab_size=17,
        hidden_size=inputs["X"].shape[-1],
        num_hidden_layers=_count(inputs),
        num_attention_heads=1,
        intermediate_size=23,
        hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
    )


def _count(inputs):
    return sum(name.endswith(".W.weight") for name in inputs)


@total
def examine_encoder(inputs, seen):
    """All hidden states in one tensor; in training, what would learn too.

    Raises: AnswerError if no layer was made with what was given, or if what came back is no list
        of hidden states.
    """
    if seen["layer is called"] is not True:
        raise AnswerError("BertEncoder never calls the `layer` that it is given: layer(config).")
    plan = [Call(training=inputs.get("training", False))]
    (states,) = judged("BertEncoder", inputs, plan, seen)
    complaint = _unlike(inputs, states)
    if complaint:
        raise AnswerError(complaint)
    if not inputs.get("training"):
        return torch.stack(list(states))
    carried = seen["requires_grad"] == [True] * len(states)
    return {
        "the output in training": torch.stack(list(states)),
        "gradients reach every matrix": all_reached(seen["gradients"], inputs),
        "gradients get through every hidden state to X": carried
        and is_floats(seen["gradient of X"], inputs["X"].shape),
    }


def _unlike(inputs, states):
    """In what the hidden states are not as many tensors of X's shape as there should be, or ""."""
    X, count = inputs["X"], _count(inputs)
    if not isinstance(states, (list, tuple)):
        return f"forward has to return the list of all hidden states, got {describe(states)}."
    for number, state in enumerate(states):
        if not torch.is_tensor(state) or state.shape != X.shape:
            return (
                f"Each hidden state has the shape of X, {tuple(X.shape)}; number {number} of your "
                f"list is {describe(state)}."
            )
    if len(states) != count + 1:
        return (
            f"With {count} layers there are {count + 1} hidden states, X first; your list has "
            f"{len(states)}.{_what_stands_out(states, X)}"
        )
    return ""


def _what_stands_out(states, X):
    first = "" if states and torch.equal(states[0], X) else " It does not begin with X."
    twins = [n for n in range(1, len(states)) if torch.equal(states[n - 1], states[n])]
    same = f" Its numbers {twins[0] - 1} and {twins[0]} are the same." if twins else ""
    return first + same
