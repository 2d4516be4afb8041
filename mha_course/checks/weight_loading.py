"""Cases and run of lesson 04's task that loads PyTorch's weights."""

import torch
from torch import nn

from mha_course.checks.task import AnswerError, Case

__all__ = ["load_torch_weights", "loading_cases", "run_loading"]

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
    """Load a made reference with the learner's function; return the weights that arrived.

    Raises: AnswerError if reference is not left as it was, if attention has other parameters or
        cannot be trained afterwards, if nothing arrives, or if the two share memory.
    """
    bias = "in_proj_bias" in inputs
    reference = nn.MultiheadAttention(
        inputs["num_hiddens"], inputs["num_heads"], bias=bias, batch_first=True, dtype=torch.float64
    )
    attention = FourProjections(inputs["num_hiddens"], bias)
    with torch.no_grad():
        for name, parameter in reference.named_parameters():
            parameter.copy_(inputs[name])
    names = [name for name, _ in attention.named_parameters()]
    answer(attention, reference)
    after = dict(attention.named_parameters())
    if sorted(after) != sorted(names):
        listed = ", ".join(after) or "none"
        raise AnswerError(f"Afterwards attention has other parameters than before: {listed}.")
    _check_reference(reference, inputs)
    _check_trainable(attention, "attention")
    if all(bool((X == BEFORE).all()) for X in after.values()):
        raise AnswerError(
            "All parameters of attention are as they were: nothing arrives. A line such as w = "
            "reference.in_proj_weight gives a name to a tensor and changes no number anywhere. "
            "Numbers have to be written into the tensors that attention has."
        )
    result = {name: after[name].detach().clone() for name in names}
    with torch.no_grad():
        for parameter in reference.parameters():
            parameter.zero_()
    if not all(torch.equal(X, result[name]) for name, X in attention.named_parameters()):
        raise AnswerError(
            "attention and reference share memory afterwards: when the numbers of reference are "
            "changed, those of attention change too."
        )
    return result


def _check_reference(reference, inputs):
    changed = [n for n, X in reference.named_parameters() if not torch.equal(X, inputs[n])]
    if changed:
        raise AnswerError(
            f"Afterwards reference holds other numbers than before, in {' and '.join(changed)}. It "
            "has to be left as it is: numbers go from reference into attention."
        )
    _check_trainable(reference, "reference")


def _check_trainable(module, name):
    if not module.training:
        raise AnswerError(
            f"Afterwards {name} is in eval mode, and it was training before. Loading weights "
            "changes numbers and nothing else."
        )
    frozen = [n for n, X in module.named_parameters() if not X.requires_grad]
    if frozen:
        raise AnswerError(
            f"Afterwards {name} cannot be trained any more: requires_grad is False for "
            f"{', '.join(frozen)}. Loading weights changes numbers and nothing else."
        )
