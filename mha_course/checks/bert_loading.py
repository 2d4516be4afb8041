"""Make a learner's module and give it the weights of a case, by the names of its parameters."""

import torch
from torch import nn

from mha_course.checks.task import AnswerError

__all__ = ["load", "make", "misfit", "parameters_of", "twins_among"]


def make(answer, name, config):
    """The learner's module in float64.

    Raises: AnswerError if it is no module.
    """
    module = answer(config)
    if not isinstance(module, nn.Module):
        raise AnswerError(f"{name} has to be a subclass of nn.Module.")
    return module.double()


def parameters_of(module):
    """{name: (its shape, the first name of the very same parameter)}"""
    parameters = dict(module.named_parameters(remove_duplicate=False))
    firsts = {}
    for name, X in parameters.items():
        firsts.setdefault(id(X), name)
    return {name: (tuple(X.shape), firsts[id(X)]) for name, X in parameters.items()}


def load(module, weights, name):
    """Copy the tensors whose names have a dot into the parameters of these names, if all fit.

    Returns what `parameters_of` sees, for `misfit` to judge.
    Raises: AnswerError naming a parameter that is missing, and what is there instead.
    """
    seen = parameters_of(module)
    for missing in (n for n in _dotted(weights) if n not in seen):
        raise AnswerError(f"{name} has no parameter {missing}. {_what_is_there(module, missing)}")
    if not misfit(seen, weights, name):
        parameters = dict(module.named_parameters(remove_duplicate=False))
        with torch.no_grad():
            for n, wanted in _dotted(weights).items():
                parameters[n].copy_(wanted)
    return seen


def misfit(seen, weights, name):
    """What is wrong with the parameters that `parameters_of` saw, "" if the weights fit.

    One is missing, there twice, besides, or misshapen.
    """
    weights = _dotted(weights)
    for missing in (n for n in weights if n not in seen):
        return f"{name} has no parameter {missing}."
    twins = twins_among(seen)
    if twins:
        return twins
    for extra in (n for n in seen if n not in weights):
        return f"{name} has a parameter that was not asked for: {extra}."
    for n, wanted in weights.items():
        if seen[n][0] != tuple(wanted.shape):
            shapes = f"{seen[n][0]}, expected {tuple(wanted.shape)}"
            return f"{n} has shape {shapes} (nn.Linear keeps (out, in))."
    return ""


def twins_among(seen):
    """A complaint about the first parameter that has two names, "" if none has."""
    shared = [first for n, (_, first) in seen.items() if first != n]
    twins = [n for n, (_, first) in seen.items() if first in shared[:1]]
    return f"{' and '.join(twins)} are one and the same parameter." if twins else ""


def _dotted(weights):
    return {n: X for n, X in weights.items() if "." in n}


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
