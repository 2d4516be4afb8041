"""Make a learner's module and give it the weights of a case, by the names of its parameters."""

import torch
from torch import nn

from mha_course.checks.task import AnswerError

__all__ = ["load", "make"]


def make(answer, name, config):
    """The learner's module in float64.

    Raises: AnswerError if it is no module.
    """
    module = answer(config)
    if not isinstance(module, nn.Module):
        raise AnswerError(f"{name} has to be a subclass of nn.Module.")
    return module.double()


def load(module, weights, name):
    """Copy the tensors whose names have a dot into the parameters of these names.

    Raises: AnswerError naming a parameter that is missing, there twice, besides, or misshapen.
    """
    weights = {n: X for n, X in weights.items() if "." in n}
    parameters = dict(module.named_parameters(remove_duplicate=False))
    for missing in (n for n in weights if n not in parameters):
        raise AnswerError(f"{name} has no parameter {missing}. {_what_is_there(module, missing)}")
    for parameter in parameters.values():
        twins = [n for n in parameters if parameters[n] is parameter]
        if len(twins) > 1:
            raise AnswerError(f"{' and '.join(twins)} are one and the same parameter.")
    for extra in (n for n in parameters if n not in weights):
        raise AnswerError(f"{name} has a parameter that was not asked for: {extra}.")
    for n, wanted in weights.items():
        if parameters[n].shape != wanted.shape:
            shapes = f"{tuple(parameters[n].shape)}, expected {tuple(wanted.shape)}"
            raise AnswerError(f"{n} has shape {shapes} (nn.Linear keeps (out, in)).")
        with torch.no_grad():
            parameters[n].copy_(wanted)


def _what_is_there(module, missing):
    """The names beside which a parameter is missing, at the level where its name goes astray."""
    *path, last = missing.split(".")
    around = ""
    for part in path:
        children = dict(module.named_children())
        if part not in children:
            listed = ", ".join(children) or "none at all"
            return f"There are these parts{around}: {listed}."
        module, around = children[part], f" in {part}"
    there = [n for n, _ in module.named_parameters(recurse=False)]
    listed = ", ".join(there or dict(module.named_children())) or "none at all"
    return f"{'.'.join(path)} has these {'parameters' if there else 'parts'}: {listed}."
