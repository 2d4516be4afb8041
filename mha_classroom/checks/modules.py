"""Make a learner's module, give it the weights of a case, call it as planned; judge what came.

The same plan is made on both sides. Beside the learner's code a note is only looked at to stop
where a call has gone wrong: what counts is the judgement of the side without it.
"""

from typing import NamedTuple

import torch
from torch import nn

from mha_classroom.checks.examining import is_nonzero
from mha_classroom.checks.showing import describe, listed
from mha_classroom.checks.task import AnswerError

__all__ = [
    "Call",
    "gradients_of",
    "judged",
    "load",
    "make",
    "misfit",
    "parameters_of",
    "plan_of",
    "refuse_shared",
    "refuse_unlearnt",
    "refuse_unreached",
    "run_planned",
    "twins_among",
]


def make(answer, name, config):
    """The learner's module in float64.

    Raises: AnswerError if it is no module.
    """
    module = answer(config)
    if not isinstance(module, nn.Module):
        raise AnswerError(f"{name} has to be a subclass of nn.Module.")
    return module.double()


def refuse_shared(answer, module, name, config):
    """Raises: AnswerError if another module made of this config has a parameter of this one."""
    own = {id(X) for X in module.parameters()}
    shared = [n for n, X in make(answer, name, config).named_parameters() if id(X) in own]
    if shared:
        raise AnswerError(
            f"Two modules made of one config share the parameter {shared[0]}. Each has to have its "
            "own, or all layers of a BERT would be one and the same."
        )


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
    twins = twins_among({n: seen[n] for n in weights})
    if twins:
        return twins
    wanted = {first for n, (_, first) in seen.items() if n in weights}
    extra = [n for n, (_, first) in seen.items() if first not in wanted]
    if len(extra) == 1:
        return f"{name} has a parameter that was not asked for: {extra[0]}."
    if extra:
        some = ", ".join([*extra[:4], *(["…"] if len(extra) > 4 else [])])
        return f"{name} has {len(extra)} parameters that were not asked for: {some}."
    for n, wanted in weights.items():
        if seen[n][0] != tuple(wanted.shape):
            shapes = f"{seen[n][0]}, expected {tuple(wanted.shape)}"
            linear = n.split(".")[-2].startswith("W")  # no embedding, no norm
            return f"{n} has shape {shapes}{' (nn.Linear keeps (out, in))' if linear else ''}."
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
        if part in dict(module.named_parameters(recurse=False)):
            return f"There {part} is itself a parameter, and should be a module that has one."
        if part not in children:
            listed = ", ".join(children) or "none at all"
            return f"There are these parts{around}: {listed}."
        module, around = children[part], f" in {part}"
    there = [n for n, _ in module.named_parameters(recurse=False)]
    listed = ", ".join(there or dict(module.named_children())) or "none at all"
    return f"{'.'.join(path)} has these {'parameters' if there else 'parts'}: {listed}."


MOVED = "forward changes whether the module is training (train or eval inside)."

DIFFERS = (
    "In training the result differs from one call to the next, although in this case's config "
    "every probability is 0 or 1. Do you take yours from the config? Or does forward change a "
    "weight, as += does?"
)

NAN = (
    "In training the result holds NaN (not a number). A probability in the config may be 1: then "
    "nothing is kept, and 1 - p is 0. Do you divide 0 by 0?"
)

PAIR = (
    "With need_weights=True forward has to return two values, the output and the weights; got {}."
)


class Call(NamedTuple):
    """One call of forward: in training or not, and what is noted of it besides its result.

    twice: it is called again, as nothing depends on chance in a right answer. weights: with
    need_weights=True. learn: the gradients that reach the parameters. exactly: called twice, the
    last digit counts, and NaN is never the same.
    """

    training: bool = False
    twice: bool = False
    weights: bool = False
    learn: bool = False
    exactly: bool = False


def plan_of(inputs, dropout, weights=False, exactly=False, learn=False):
    """The calls for a case: in eval mode; again and in training where 0.25 is dropped; in training
    where all or nothing is dropped.

    dropout: the name of the probability that the module uses. weights: it can return some.
    exactly: as in `Call`. learn: whether gradients reach the matrices where 0.25 is dropped.
    """
    asked = [Call(weights=True)] if weights else []
    plan = [Call(learn="training" in inputs), *asked]
    if inputs.get(dropout) == 0.25:
        return [*plan, Call(), Call(training=True, learn=learn)]
    if not {"attention_probs_dropout_prob", "hidden_dropout_prob", "training"} & inputs.keys():
        return plan
    trained = Call(training=True, twice=True, learn="training" in inputs, exactly=exactly)
    return [*plan, trained, *(Call(training=True, weights=True) for _ in asked)]


def run_planned(module, name, weights, arguments, plan):
    """Give a module its weights, call it as planned; returns what there is to judge."""
    parameters = load(module, weights, name)
    if misfit(parameters, weights, name):
        return {"parameters": parameters, "calls": []}
    return {"parameters": parameters, "calls": _call_as_planned(module, arguments, plan)}


def _call_as_planned(module, arguments, plan):
    """A dict for each call, up to the first that went wrong."""
    calls = []
    for planned in plan:
        calls.append(_call(module, arguments, planned))
        if _complaint(planned, calls[-1]):
            break
        if planned.learn:
            calls[-1]["gradients"] = gradients_of(module, calls[-1]["result"])
            X = calls[-1].pop("X")
            calls[-1] |= {} if X is None else {"gradient of X": X.grad}
    return calls


def _call(module, arguments, planned):
    """With need_weights the mask is given by its name, too."""
    module.train(planned.training)
    first, *others = arguments
    shows = planned.learn and planned.twice and first.is_floating_point()
    X = first.clone().requires_grad_() if shows else None
    if shows:  # as another layer would have made it
        arguments = [X * 1, *others]
    options = {}
    if planned.weights:
        options = dict(zip(("mask",), arguments[1:], strict=False)) | {"need_weights": True}
        arguments = arguments[:1]
    call = {"result": module(*arguments, **options), "training": module.training}
    if planned.learn:
        call["X"] = X
    if planned.twice and call["training"] is True and torch.is_tensor(call["result"]):
        call["again"] = module(*arguments)
    return call


def gradients_of(module, output):
    """{name: gradient} of every matrix after a step back from the output; {} if there is none."""
    if not torch.is_tensor(output) or not output.requires_grad:
        return {}
    module.zero_grad()
    output.pow(3).sum().backward()
    return {name: X.grad for name, X in module.named_parameters() if X.dim() == 2}


def _complaint(planned, call):
    """What is wrong with a call whatever its numbers are, "" if nothing."""
    if call["training"] is not planned.training:
        return MOVED
    result = call["result"]
    if planned.twice and torch.is_tensor(result) and not _alike(planned, call):
        return NAN if _alike(planned._replace(exactly=False), call) else DIFFERS
    if planned.weights and (not isinstance(result, (tuple, list)) or len(result) != 2):
        return PAIR.format(describe(result))
    return ""


def _alike(planned, call):
    one, other = call["result"], call["again"]
    if one is other:
        return True
    if not torch.is_tensor(other) or (one.shape, one.dtype) != (other.shape, other.dtype):
        return False
    if planned.exactly:
        return torch.equal(one, other)
    return torch.allclose(one, other, equal_nan=True)


def judged(name, weights, plan, seen):
    """What the planned calls returned, one after the other; two of a call with weights.

    Raises: AnswerError if the parameters are not those that were asked for, or a call went wrong.
    """
    complaint = misfit(seen["parameters"], weights, name)
    if complaint:
        raise AnswerError(complaint)
    results = []
    for planned, call in zip(plan, seen["calls"], strict=False):
        complaint = _complaint(planned, call)
        if complaint:
            raise AnswerError(complaint)
        results += call["result"] if planned.weights else [call["result"]]
    if len(seen["calls"]) != len(plan):
        raise AnswerError(f"{name} was not called as often as it has to be.")
    return results


def refuse_unlearnt(weights, plan, seen):
    """Raises: AnswerError if some matrix got no gradient in a call that was to show it."""
    calls = [
        (planned.training, call["gradients"])
        for planned, call in zip(plan, seen["calls"], strict=True)
        if planned.learn
    ]
    unreached = [(training, _unreached(found, weights)) for training, found in calls]
    everywhere = all(names for _, names in unreached)
    for (training, names), (_, found) in zip(unreached, calls, strict=True):
        if names:
            when = " in training" if training else " in eval mode"
            refuse_unreached(found, weights, "" if everywhere else when)


def refuse_unreached(gradients, weights, when=""):
    """Raises: AnswerError if the gradient of some matrix among the weights is missing, or 0."""
    names = _unreached(gradients, weights)
    if names:
        which = "any matrix" if len(names) == len(_matrices(weights)) > 1 else listed(names)
        raise AnswerError(
            f"No gradient reaches {which}{when}: somewhere between the result and there the way "
            "back is cut off, or the parameter is frozen. detach, .data, no_grad, numpy and "
            "torch.tensor(...) cut it off, and so does a factor of 0; from_pretrained freezes."
        )


def _matrices(weights):
    return {n: X for n, X in weights.items() if "." in n and X.dim() == 2}


def _unreached(gradients, weights):
    """The names of the matrices whose gradient is missing, or 0."""
    matrices = _matrices(weights).items()
    return [n for n, X in matrices if not is_nonzero(gradients.get(n), X.shape)]
