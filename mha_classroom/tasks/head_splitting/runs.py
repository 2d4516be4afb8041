"""What runs of lesson 04's tasks beside the learner's code."""

import inspect
from operator import attrgetter

import torch
from torch import nn

from mha_classroom.checks.modules import parameters_of, twins_among
from mha_classroom.checks.task import AnswerError

__all__ = ["modes_before", "run_loading", "run_module"]

SIZES = ("key_size", "query_size", "value_size", "num_hiddens", "num_heads")
GIVEN = {  # what each matrix is applied to, and the name of its width
    "W_q": ("the queries", "query_size"),
    "W_k": ("the keys", "key_size"),
    "W_v": ("the values", "value_size"),
    "W_o": ("the joined heads", "num_hiddens"),
}
MATRICES = ("W_q.weight", "W_k.weight", "W_v.weight", "W_o.weight")


def run_module(answer, inputs):
    """Make the learner's module, give it the case's weights, and run it.

    With dropout, in eval mode and in training: dropout of 1 leaves nothing of the values there,
    and with less the heads of a query are dropped or scaled up one by one. In training without
    dropout the gradients are looked at too, and what a module made without the last two arguments
    does. With "lengths before" it has been called with these before, on the same words. Where the
    widths of queries, keys and values differ, one is made by the names of its arguments, too.
    Raises: AnswerError if it is no module.
    """
    module = answer(*(inputs[size] for size in SIZES), inputs["dropout"], inputs["bias"])
    if not isinstance(module, nn.Module):
        raise AnswerError("MultiHeadAttention has to be a subclass of nn.Module.")
    seen = {"parameters": parameters_of(module.double())}
    if misfit(seen["parameters"], inputs):
        return seen
    names = (*SIZES, "dropout", "bias")
    if _widths_differ(inputs) and set(names) <= set(inspect.signature(answer).parameters):
        seen["by name"] = parameters_of(answer(**{name: inputs[name] for name in names}))
    _load(module, inputs)
    words = [inputs[name] for name in ("queries", "keys", "values")]
    arguments = [*words, *(inputs[name] for name in ("valid_lens",) if name in inputs)]
    training = inputs.get("training", False)
    if "lengths before" in inputs:
        module.train(training)(*words, inputs["lengths before"])
    seen["output"] = output = module.train(training)(*arguments)
    seen["training"] = module.training
    if module.training is not training:
        return seen
    if training:
        seen["gradients"] = _gradients(output, module)
        seen["by default"] = _by_default(answer, inputs, arguments)
    if inputs["dropout"]:
        seen["in training"] = module.train()(*arguments)
    if 0 < inputs["dropout"] < 1:
        seen["again"] = module.eval()(*arguments)
    return seen


def _widths_differ(inputs):
    return len({inputs[size] for size in SIZES[:3]}) == 3


def _by_default(answer, inputs, arguments):
    """The parameters and the output, in training, of a module made without dropout and bias."""
    module = answer(*(inputs[size] for size in SIZES))
    seen = {"parameters": parameters_of(module.double())}
    if not misfit(seen["parameters"], inputs):
        _load(module, inputs)
        with torch.no_grad():
            seen["output"] = module.train()(*arguments)
    return seen


def _gradients(output, module):
    if not output.requires_grad:
        return {}
    output.square().sum().backward()
    return {name: module.get_parameter(name).grad for name in MATRICES}


def misfit(parameters, inputs):
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
            return f"{_wrong_sizes(name, shape, inputs)}{name} has shape {shape}, {expected}."
    return ""


def _wrong_sizes(name, shape, inputs):
    """What the learner gave nn.Linear, if the shape of a weight shows it, "" if not."""
    role, kind = name.split(".")
    given, size = GIVEN[role]
    if kind == "bias":
        return ""
    if shape == (inputs[size], inputs["num_hiddens"]):
        return (
            f"You gave nn.Linear the two sizes of {role} in the wrong order: the width of what "
            "goes in comes first. "
        )
    sizes = [
        other for _, other in GIVEN.values() if shape == (inputs["num_hiddens"], inputs[other])
    ]
    if len(sizes) != 1:
        return ""
    order = (
        " Or do the sizes stand in another order in your `def` line than in the task's?"
        if sizes[0] != "num_hiddens"
        else ""
    )
    return (
        f"You gave {role} the {sizes[0]}. It is applied to {given}, whose width is {size}.{order} "
    )


def _load(module, inputs):
    """Copy every W_….weight and W_….bias among the inputs into the parameter of that name."""
    with torch.no_grad():
        for name, wanted in inputs.items():
            if name.startswith("W_"):
                attrgetter(name)(module).copy_(wanted)


BEFORE = 0.5  # every number of attention before loading
FROZEN = ("W_k.weight", "W_k.bias", "W_o.weight")


class FourProjections(nn.Module):
    """The parameters of the course's `MultiHeadAttention`, which is all that loading needs."""

    def __init__(self, num_hiddens, bias, dtype=None):
        super().__init__()
        for name in ("W_q", "W_k", "W_v", "W_o"):
            linear = nn.Linear(num_hiddens, num_hiddens, bias=bias, dtype=dtype)
            for parameter in linear.parameters():
                nn.init.constant_(parameter, BEFORE)
            setattr(self, name, linear)


def run_loading(answer, inputs):
    """Load a made reference with the learner's function; return what the two modules are then.

    In a case that is "frozen", the parameters `FROZEN` of attention and all of reference are not to
    be trained, and attention is in eval mode; in another, reference is.
    At last the numbers of reference become 0, which shows whether the two share memory.
    """
    bias, dtype = "in_proj_bias" in inputs, inputs["in_proj_weight"].dtype
    reference = nn.MultiheadAttention(
        inputs["num_hiddens"], inputs["num_heads"], bias=bias, batch_first=True, dtype=dtype
    )
    attention = FourProjections(inputs["num_hiddens"], bias, dtype)
    with torch.no_grad():
        for name, parameter in reference.named_parameters():
            parameter.copy_(inputs[name])
    if inputs.get("frozen"):
        for name, parameter in attention.named_parameters():
            parameter.requires_grad_(name not in FROZEN)
        reference.requires_grad_(False)
    for name, module in (("attention", attention), ("reference", reference)):
        module.train(modes_before(inputs)[name])
    with torch.enable_grad():  # which puts back what was before, whatever is left behind
        answer(attention, reference)
        seen = {"gradients": torch.is_grad_enabled()}
    seen |= {"attention": _state(attention), "reference": _state(reference)}
    with torch.no_grad():
        for parameter in reference.parameters():
            parameter.zero_()
    return seen | {"numbers in the end": _state(attention)["numbers"]}


def modes_before(inputs):
    """Whether each of the two modules is in training mode before loading."""
    return {
        "attention": not inputs.get("frozen", False),
        "reference": not inputs.get("reference in eval mode", False),
    }


def _state(module):
    parameters = dict(module.named_parameters())
    return {
        "numbers": {name: X.detach().clone() for name, X in parameters.items()},
        "trainable": {name: X.requires_grad for name, X in parameters.items()},
        "training": module.training,
    }
