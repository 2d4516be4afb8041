"""Right loading with parts to replace, and the known mistakes of lesson 12 in the copying."""

import torch
from torch import nn

from mha_course.checks.task import Mistake

__all__ = ["COPYING", "PLACE", "build_strict", "misfits", "put"]

PLACE = "Every weight in its place"


def put(parameter, X):
    with torch.no_grad():
        parameter.copy_(X)


def _matching(own, given):
    return given


def misfits(own, given):
    return [n for n in own if n in given and own[n].shape != given[n].shape]


def build_strict(
    missing=lambda own, given: [n for n in own if n not in given],
    unknown=lambda own, given: [n for n in given if n not in own],
    misshapen=misfits,
    error=ValueError,
    text=lambda missing, unknown, misshapen: " ".join([*missing, *unknown, *misshapen]),
    match=_matching,
    put=put,
    finish=lambda model, given: None,
):
    """Return an answer to `12-load_weights`, right unless a part is replaced."""

    def load_weights(model, state_dict):
        own = dict(model.named_parameters())
        bad = [found(own, state_dict) for found in (missing, unknown, misshapen)]
        if any(bad):
            raise error(text(*bad))
        for name, X in match(own, state_dict).items():
            if name in own:
                put(own[name], X)
        finish(model, state_dict)

    return load_weights


def _replaced(model, state_dict):
    build_strict(put=lambda parameter, X: None)(model, state_dict)
    for name, X in state_dict.items():
        path, _, last = name.rpartition(".")
        setattr(model.get_submodule(path), last, nn.Parameter(X.double()))


def _shared(parameter, X):
    parameter.data = X.to(parameter.dtype)


def _turn_square(parameter, X):
    put(parameter, X.T if X.dim() == 2 and X.shape[0] == X.shape[1] else X)


def _in_order(own, given):
    return dict(zip(own, given.values(), strict=False))


def _emptied(model, given):
    given.clear()


def _frozen(model, given):
    model.requires_grad_(False)


def _evaluating(model, given):
    model.eval()


COPYING = (
    Mistake(
        "by-order",
        "You copy in the order in which the weights stand.",
        "A file may have them in another order. The name says where a weight belongs.",
        PLACE,
        parts={"match": _in_order},
    ),
    Mistake(
        "square-turned",
        "You transpose the square matrices.",
        "Both sides keep a matrix as (out, in). With a square one no shape gives it away.",
        PLACE,
        parts={"put": _turn_square},
    ),
    Mistake(
        "nothing-arrives",
        "After your function the model holds the numbers that it had before.",
        "An assignment to a name, such as `parameter = X`, makes the name mean another tensor; the "
        "model keeps the old one. Write into the tensor that is there.",
        PLACE,
        parts={"put": lambda parameter, X: None},
    ),
    Mistake(
        "parameters-replaced",
        "You put new parameters in the place of the model's own.",
        "Whoever holds the old ones, an optimizer for instance, holds something that the model no "
        "longer uses. Write the numbers into the parameters that are there.",
        PLACE,
        _replaced,
    ),
    Mistake(
        "memory-shared",
        "You make the model use the very memory of state_dict.",
        "With `.data = X` two owners write into one tensor: training the model would change the "
        "weights in state_dict. Copy the numbers.",
        PLACE,
        parts={"put": _shared},
    ),
    Mistake(
        "dtype-of-the-file",
        "Your parameters take the dtype of state_dict.",
        "A file in float32 would turn a float64 model into one of two dtypes. `copy_` converts.",
        PLACE,
        parts={"put": lambda parameter, X: setattr(parameter, "data", X.clone())},
    ),
    Mistake(
        "state-dict-emptied",
        "The state_dict that you are given is no longer what it was.",
        "pop and del take its entries away, and the caller still needs them. Make a new dict or "
        "set if you want to cross things off.",
        PLACE,
        parts={"finish": _emptied},
    ),
    Mistake(
        "frozen",
        "Afterwards the parameters have requires_grad=False.",
        "`with torch.no_grad():` around the copying is enough; it changes nothing for later.",
        PLACE,
        parts={"finish": _frozen},
    ),
    Mistake(
        "eval-mode",
        "You switch the model to eval mode.",
        "That is for the caller to decide. Loading changes numbers and nothing else.",
        PLACE,
        parts={"finish": _evaluating},
    ),
)
