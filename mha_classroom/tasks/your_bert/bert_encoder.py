"""Task 12.2, BertEncoder: layer after layer."""

import torch
from torch import nn

from mha_classroom.checks.examining import is_floats, total
from mha_classroom.checks.modules import Call, judged, refuse_unreached
from mha_classroom.checks.task import (
    AnswerError,
    Case,
    Task,
    all_but,
    in_float32,
    known,
    read_again,
    unchanged,
)
from mha_classroom.tasks.bert_attention.bert_self_attention import padding_mask
from mha_classroom.tasks.your_bert.runs import run_encoder, unlike


def encoder_cases(draw):
    def case(name, num_layers, shape, lengths=None, **more):
        inputs, width = dict(more), shape[-1]
        for n in range(num_layers):
            inputs[f"layers.{n}.W.weight"] = draw.normal(width, width, scale=width**-0.5)
            inputs[f"layers.{n}.W.bias"] = draw.normal(width)
        inputs["X"] = draw.normal(*shape)
        if lengths is not None:
            inputs["mask"] = padding_mask(lengths, shape[1])
        return Case(name, inputs)

    added = case("2 layers, a mask of numbers above 0", 2, (3, 5, 2))
    added.inputs["mask"] = 3 * draw.normal(3, 1, 1, 5).abs() + 0.5
    training = case("in training", 3, (2, 3, 5), training=True)
    mask = torch.tensor([[1.5, -2.0, 0.5], [-1.0, 3.0, -2.0]]).double()  # in sum 0
    training.inputs["mask"] = mask[:, None, None]
    return [
        case("2 layers, 1 text of 2 words, no mask", 2, (1, 2, 2)),
        case("3 layers, texts of unequal length", 3, (2, 5, 7), [5, 2]),
        case("1 layer", 1, (2, 3, 5), [1, 3]),
        case("as many layers as texts and words", 3, (3, 3, 3), [3, 1, 2]),
        case("5 layers, no mask", 5, (3, 2, 3)),
        added,
        training,
        in_float32(case("1 layer, 1 text of one word, numbers in float32", 1, (1, 1, 2))),
    ]


@total
def examine_encoder(inputs, seen):
    """All hidden states in one tensor; in training, what would learn too.

    Raises: AnswerError if no layer was made with what was given, or if what came back is no list
        of hidden states, in the first call or in a second one.
    """
    if seen["layer is called"] is not True:
        raise AnswerError(
            "Your __init__ does not call the `layer` that it is given: layer(config)."
        )
    plan = [Call(training=inputs.get("training", False))]
    (states,) = judged("BertEncoder", inputs, plan, seen)
    complaint = unlike(inputs, states)
    if complaint:
        raise AnswerError(complaint)
    if not inputs.get("training") and seen["second call"] != "":
        raise AnswerError(
            f"Of a second call, with another X and no mask: {seen['second call']} Does your "
            "encoder keep something from the call before?"
        )
    if not inputs.get("training"):
        return {
            "hidden_states": torch.stack(list(states)),
            "in eval mode, too, gradients get through every hidden state": seen["learns"] is True,
        }
    refuse_unreached(seen["gradients"], inputs)
    carried = seen["requires_grad"] == [True] * len(states)
    return {
        "the output in training": torch.stack(list(states)),
        "gradients get through every hidden state to X": carried
        and is_floats(seen["gradient of X"], inputs["X"].shape),
    }


def build_encoder(
    make=lambda config, layer: [layer(config) for _ in range(config.num_hidden_layers)],
    keep=nn.ModuleList,
    order=unchanged,
    feed=lambda X, states: X,
    call=lambda layer, X, mask: layer(X, mask),
    mask_of=lambda mask, number, count: mask,
    after=lambda new, old: new,
    collect=unchanged,
):
    class BertEncoder(nn.Module):
        def __init__(self, config, layer):
            super().__init__()
            self.layers = keep(make(config, layer))

        def forward(self, X, mask=None):
            states, layers = [X], list(order(self.layers))
            for number, layer in enumerate(layers):
                used = mask_of(mask, number, len(layers))
                old = feed(states[-1], states)
                states.append(after(call(layer, old, used), old))
            return collect(states)

    return BertEncoder


def _only(number_that):
    return lambda mask, number, count: mask if number_that(number, count) else None


def _as_a_whole(forward):
    sequential = build_encoder(keep=lambda layers: nn.Sequential(*layers))
    return type("BertEncoder", (sequential,), {"forward": forward})


def _in_one_buffer(states):
    """Into one copy of X each state is written past autograd."""
    buffer = states[0].clone()
    buffer.data.copy_(states[-1])
    return [states[0], *[buffer] * (len(states) - 1)]


class _Dropping(build_encoder()):
    """Drops numbers of what each layer returns."""

    def __init__(self, config, layer):
        super().__init__(config, layer)
        self.dropout = nn.Dropout(config.hidden_dropout_prob)

    def forward(self, X, mask=None):
        states = [X]
        for layer in self.layers:
            states.append(self.dropout(layer(states[-1], mask)))
        return states


class _LastLayerTwice(build_encoder()):
    def forward(self, X, mask=None):
        states = super().forward(X, mask)
        return [*states, self.layers[-1](states[-1], mask)]


ENCODER = {
    "one-layer-reused": known(
        "Your list holds one layer, many times over.",
        "Multiplying a list repeats the object in it, and so does a loop that appends one object "
        "again and again. Each layer has weights of its own, so each has to be made by a call of "
        "its own.",
        make=lambda config, layer: [layer(config)] * config.num_hidden_layers,
    ),
    "layer-not-called": known(
        "You put `layer` itself into the list.",
        "It makes a layer when it is called with the config, and is none itself.",
        make=lambda config, layer: [layer] * config.num_hidden_layers,
    ),
    "layer-without-config": known(
        "You call `layer()` without the config.",
        "It makes a layer as large as the config says, so it has to be given the config.",
        make=lambda config, layer: [layer() for _ in range(config.num_hidden_layers)],
    ),
    "one-layer-only": known(
        "There is one layer in your `layers`.",
        "The config says how many there are: num_hidden_layers. (Is the list made anew in each "
        "turn of a loop? Then it holds the last one alone.)",
        make=lambda config, layer: [layer(config)],
    ),
    "one-layer-too-many": known(
        "You make one layer more than num_hidden_layers.",
        "There is one hidden state more than layers, because X counts as one. The layers are as "
        "many as the config says.",
        make=lambda config, layer: [layer(config) for _ in range(config.num_hidden_layers + 1)],
    ),
    "as-many-layers-as-heads": known(
        "You make as many layers as num_attention_heads says, or hidden_size, which is the same "
        "number here.",
        "Heads are inside a layer, and hidden_size is the width of its vectors. How many layers "
        "there are is num_hidden_layers.",
        make=lambda config, layer: [layer(config) for _ in range(config.num_attention_heads)],
    ),
    **{
        f"always-{count}-layers": known(
            f"You make {count} layers, whatever the config says.",
            "The number of layers is the config's: num_hidden_layers.",
            make=lambda config, layer, count=count: [layer(config) for _ in range(count)],
        )
        for count in (2, 6, 12)
    },
    "python-list": known(
        "PyTorch does not see your layers. Are they kept in an ordinary list, tuple or dict, in a "
        "name that lacks `self`, or in a variable of the class, made outside __init__?",
        "Their parameters are not the module's then: they would not be loaded, trained or moved. "
        "nn.ModuleList is a list that registers what it holds.",
        keep=list,
    ),
    "sequential-called": known(
        "You return X and the last hidden state, and the mask does not reach the layers. Do you "
        "call an nn.Sequential as a whole?",
        "It passes one argument from layer to layer, so the mask gets lost or does not fit; and "
        "what each layer returns remains inside. Asked for is every hidden state.",
        wrong=_as_a_whole(lambda self, X, mask=None: [X, self.layers(X)]),
    ),
    "sequential-called-with-mask": known(
        "You keep the layers in nn.Sequential and call it as a whole, with X and the mask.",
        "It takes one argument and passes it from layer to layer, so it refuses the mask; and what "
        "each layer returns would remain inside.",
        wrong=_as_a_whole(lambda self, X, mask=None: self.layers(X, mask)),
    ),
    "mask-first-layer-only": known(
        "The mask reaches the first layer only.",
        "A layer returns hidden states, and no mask. Whatever is padding for one layer is padding "
        "for the next, too, so each has to be given the mask.",
        mask_of=_only(lambda number, count: number == 0),
    ),
    "mask-last-layer-only": known(
        "The mask reaches the last layer only.",
        "By then words have heard of padding. Every layer needs the mask.",
        mask_of=_only(lambda number, count: number == count - 1),
    ),
    "mask-asked-whether-true": known(
        "You ask a tensor whether it is true: `if mask` does that, and so does `mask or …`.",
        "A tensor of many numbers is neither true nor false. Whether a mask was given is asked "
        "with `is not None`; and each layer takes None as well.",
        mask_of=lambda mask, number, count: mask if mask else None,
    ),
    "mask-not-in-the-first": known(
        "The first layer gets no mask.",
        "Every layer needs it, and the first is where padding would enter.",
        mask_of=_only(lambda number, count: number > 0),
    ),
    "mask-not-passed": known(
        "The mask does not reach the layers.",
        "Your forward takes it, and so does each layer. Left out, it is None, and padding is read "
        "like words.",
        mask_of=lambda mask, number, count: None,
    ),
    "mask-added-up": known(
        "The mask grows from layer to layer.",
        "It is the same for every layer: do not change it on the way.",
        mask_of=lambda mask, number, count: None if mask is None else mask * (number + 1),
    ),
    "every-layer-gets-x": known(
        "Every layer is given X.",
        "The layers stand in a row: each takes what the one before returned.",
        feed=lambda X, states: states[0],
    ),
    "layers-backwards": known(
        "You run the layers from the last to the first.",
        "Layer 0 is the one that takes X.",
        order=lambda layers: list(layers)[::-1],
    ),
    "first-layer-again": known(
        "Your loop runs layer 0 every time.",
        "Each turn of the loop belongs to another layer.",
        order=lambda layers: [layers[0]] * len(layers),
    ),
    "last-layer-skipped": known(
        "Your list begins with X and is one state too short. Is what the last layer returns in it?",
        "Either the loop leaves a layer out, or it ends before a result is appended. All "
        "num_hidden_layers of them take part.",
        order=lambda layers: list(layers)[:-1],
    ),
    "x-left-out": known(
        "X is not in your list.",
        "The list has num_hidden_layers + 1 hidden states. The first is what went into layer 0.",
        collect=lambda states: states[1:],
    ),
    "last-left-out": known(
        collect=lambda states: states[:-1],
        twin="last-layer-skipped",
    ),
    "only-the-last": known(
        "You return one tensor of X's shape. Is it the last hidden state alone?",
        "The task asks for all of them, in a list or a tuple, X first.",
        collect=lambda states: states[-1],
    ),
    "in-one-tensor": known(
        "You return the hidden states as one tensor.",
        "The numbers may be right; the task asks for a list or a tuple of tensors.",
        collect=torch.stack,
    ),
    "last-first": known(
        "Your list begins with the last hidden state.",
        "It begins with X and follows the layers.",
        collect=lambda states: states[::-1],
    ),
    "x-twice": known(
        "X stands in your list twice.",
        "Once before the first layer. After each layer, what that layer returns.",
        collect=lambda states: [states[0], *states],
    ),
    "last-twice": known(
        "The last hidden state stands in your list twice.",
        "Each hidden state belongs into it once: X, and what each layer returns.",
        collect=lambda states: [*states, states[-1]],
    ),
    "last-layer-twice": known(
        "Your list begins with X and is one state too long. Does a layer run twice, such as the "
        "last one?",
        "Each layer has its turn once: X, and one more hidden state for each layer.",
        wrong=_LastLayerTwice,
    ),
    "last-layer-skipped-and-x-twice": known(
        "Your list begins with X twice, and what the last layer returns is not in it.",
        "Its length is right by that. Is a state appended before the layer has run, or is the last "
        "layer left out? X stands there once, then what each layer returns.",
        order=lambda layers: list(layers)[:-1],
        collect=lambda states: [states[0], *states],
    ),
    **{
        id: known(
            did,
            "A list holds no copies: if what each layer returns is written into the same tensor, "
            "every entry is that one tensor. Keep what a layer returns as it is.",
            collect=collect,
        )
        for id, did, collect in (
            (
                "one-tensor-for-all",
                "After X all entries of your list are the last hidden state.",
                lambda states: [states[0], *[states[-1]] * (len(states) - 1)],
            ),
            (
                "one-tensor-for-all-and-x",
                "All entries of your list are the last hidden state, the first entry too.",
                lambda states: [states[-1]] * len(states),
            ),
            (
                "one-buffer-for-all",
                "After X all entries of your list are the last hidden state.",
                _in_one_buffer,
            ),
        )
    },
    "weights-asked-for": known(
        "You call the layers with need_weights, and then each returns a pair.",
        "The pair is output and weights, and the next layer wants the output alone. Without "
        "need_weights a layer returns nothing else.",
        call=lambda layer, X, mask: layer(X, mask, True),
    ),
    "residual-added": known(
        "You add what went into a layer to what it returns.",
        "The residuals are inside the layer, before its norms.",
        after=lambda new, old: new + old,
    ),
    "states-dropped": known(
        "In training no gradient reaches the weights. Do you drop numbers of what a layer takes or "
        "returns, or detach it while training?",
        "Dropout is inside the layers. Each takes what the one before returned, as it is, and that "
        "is what stands in your list.",
        wrong=_Dropping,
    ),
    "eval-inside": known(
        "You switch the layers to eval mode inside.",
        "In training they should drop, and in eval mode they never do. Whoever has the model says "
        "which of the two it is: train() and eval() reach the layers by themselves.",
        call=lambda layer, X, mask: layer.eval()(X, mask),
    ),
    "detached": known(
        "No gradient gets from the last hidden state of your list to the weights.",
        "detach, .data and no_grad cut the path back, and requires_grad=False freezes a weight. A "
        "stack that is to be trained needs the path.",
        collect=lambda states: [X.detach() for X in states],
    ),
}
ENCODER = read_again("A stack of your layers", ENCODER)

TASK = Task(
    "12-BertEncoder",
    build_encoder(),
    encoder_cases,
    run=run_encoder,
    examine=examine_encoder,
    returns=("hidden_states",),
    kind="class",
    mistakes=ENCODER,
    build=build_encoder,
    alone=all_but(
        ENCODER,
        "mask-first-layer-only",
        "mask-not-passed",
        "every-layer-gets-x",
        "layers-backwards",
        "x-left-out",
        "residual-added",
        "detached",
    ),
    forbidden=("mha_course.bert.BertEncoder",),
    number=2,
)
