"""Cases, run and examination of lesson 04's task that loads PyTorch's weights."""

import torch
from torch import nn

from mha_course.checks.examining import equal, total
from mha_course.checks.task import AnswerError, Case

__all__ = ["examine_loading", "load_torch_weights", "loading_cases", "run_loading"]

BEFORE = 0.5  # every number of attention before loading


def load_torch_weights(attention, reference):
    """A right answer to `04-load_torch_weights`."""
    with torch.no_grad():
        for kind in ("weight", "bias"):
            packed = getattr(reference, f"in_proj_{kind}")
            if packed is not None:
                for name, part in zip(("W_q", "W_k", "W_v"), packed.chunk(3), strict=True):
                    attention.get_parameter(f"{name}.{kind}").copy_(part)
                attention.get_parameter(f"W_o.{kind}").copy_(getattr(reference.out_proj, kind))


def loading_cases(draw):
    """Cases for `load_torch_weights`."""
    cases = []
    for bias, name in ((True, "with biases"), (False, "without biases")):
        inputs = {"num_hiddens": 6, "num_heads": 3}
        inputs["in_proj_weight"] = draw.normal(18, 6)
        inputs["out_proj.weight"] = draw.normal(6, 6)
        if bias:
            inputs |= {"in_proj_bias": draw.normal(18), "out_proj.bias": draw.normal(6)}
        cases.append(Case(name, inputs))
    return cases


class FourProjections(nn.Module):
    """The parameters of the course's `MultiHeadAttention`, which is all that loading needs."""

    def __init__(self, num_hiddens, bias):
        super().__init__()
        for name in ("W_q", "W_k", "W_v", "W_o"):
            linear = nn.Linear(num_hiddens, num_hiddens, bias=bias, dtype=torch.float64)
            for parameter in linear.parameters():
                nn.init.constant_(parameter, BEFORE)
            setattr(self, name, linear)


def run_loading(answer, inputs):
    """Load a made reference with the learner's function; return what the two modules are then.

    At last the numbers of reference become 0, which shows whether the two share memory.
    """
    bias = "in_proj_bias" in inputs
    reference = nn.MultiheadAttention(
        inputs["num_hiddens"], inputs["num_heads"], bias=bias, batch_first=True, dtype=torch.float64
    )
    attention = FourProjections(inputs["num_hiddens"], bias)
    with torch.no_grad():
        for name, parameter in reference.named_parameters():
            parameter.copy_(inputs[name])
    answer(attention, reference)
    seen = {"attention": _state(attention), "reference": _state(reference)}
    with torch.no_grad():
        for parameter in reference.parameters():
            parameter.zero_()
    return seen | {"numbers in the end": _state(attention)["numbers"]}


def _state(module):
    parameters = dict(module.named_parameters())
    return {
        "numbers": {name: X.detach().clone() for name, X in parameters.items()},
        "trainable": {name: X.requires_grad for name, X in parameters.items()},
        "training": module.training,
    }


@total
def examine_loading(inputs, seen):
    """The weights that arrived.

    Raises: AnswerError if reference is not left as it was, if attention has other parameters or
        cannot be trained afterwards, if nothing arrives, or if the two share memory.
    """
    made = FourProjections(inputs["num_hiddens"], "in_proj_bias" in inputs)
    names = [name for name, _ in made.named_parameters()]
    after = seen["attention"]["numbers"]
    if sorted(after) != sorted(names):
        listed = ", ".join(after) or "none"
        raise AnswerError(f"Afterwards attention has other parameters than before: {listed}.")
    _check_reference(seen["reference"], inputs)
    _check_trainable(seen["attention"], "attention")
    if all(bool((X == BEFORE).all()) for X in after.values()):
        raise AnswerError(
            "All parameters of attention are as they were: nothing arrives. A line such as w = "
            "reference.in_proj_weight gives a name to a tensor and changes no number anywhere. "
            "Numbers have to be written into the tensors that attention has."
        )
    if not all(equal(seen["numbers in the end"][name], X) for name, X in after.items()):
        raise AnswerError(
            "attention and reference share memory afterwards: when the numbers of reference are "
            "changed, those of attention change too."
        )
    return {name: after[name] for name in names}


def _check_reference(state, inputs):
    wanted = {name: X for name, X in inputs.items() if torch.is_tensor(X)}
    names = [*state["numbers"], *(n for n in wanted if n not in state["numbers"])]
    changed = [n for n in names if not equal(state["numbers"].get(n), wanted.get(n))]
    if changed:
        raise AnswerError(
            f"Afterwards reference holds other numbers than before, in {' and '.join(changed)}. It "
            "has to be left as it is: numbers go from reference into attention."
        )
    _check_trainable(state, "reference")


def _check_trainable(state, module):
    if state["training"] is not True:
        raise AnswerError(
            f"Afterwards {module} is in eval mode, and it was training before. Loading weights "
            "changes numbers and nothing else."
        )
    frozen = [n for n in state["numbers"] if state["trainable"].get(n) is not True]
    if frozen:
        raise AnswerError(
            f"Afterwards {module} cannot be trained any more: requires_grad is False for "
            f"{', '.join(frozen)}. Loading weights changes numbers and nothing else."
        )
