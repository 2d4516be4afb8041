"""The known mistakes of lesson 12 in loading weights, all or nothing."""

import torch
from torch import nn

from mha_course.checks.task import Mistake

__all__ = ["STRICT", "build_strict"]

PLACE = "Every weight in its place"


def _put(parameter, X):
    with torch.no_grad():
        parameter.copy_(X)


def _matching(own, given):
    return given


def _misshapen(own, given):
    return [n for n in own if n in given and own[n].shape != given[n].shape]


def build_strict(
    missing=lambda own, given: [n for n in own if n not in given],
    unknown=lambda own, given: [n for n in given if n not in own],
    misshapen=_misshapen,
    error=ValueError,
    text=lambda missing, unknown, misshapen: " ".join([*missing, *unknown, *misshapen]),
    match=_matching,
    put=_put,
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


def _kind_by_kind(model, state_dict):
    """Each kind is looked for when there is none of the kind before."""
    own = dict(model.named_parameters())
    for names in (own.keys() - state_dict.keys(), state_dict.keys() - own.keys()):
        if names:
            raise ValueError(" ".join(sorted(names)))
    build_strict()(model, state_dict)


def _while_copying(model, state_dict):
    """Everything that fits is copied before the error is raised."""
    own, bad = dict(model.named_parameters()), []
    for name, X in state_dict.items():
        if name in own and own[name].shape == X.shape:
            _put(own[name], X)
        else:
            bad.append(name)
    bad += [name for name in own if name not in state_dict]
    if bad:
        raise ValueError(" ".join(bad))


def _library(model, state_dict):
    model.load_state_dict(state_dict)


def _only_names(model, state_dict):
    """The names are compared, and load_state_dict sees to the shapes."""
    build_strict(misshapen=lambda own, given: [], put=lambda parameter, X: None)(model, state_dict)
    model.load_state_dict(state_dict)


def _told_not_raised(model, state_dict):
    try:
        build_strict()(model, state_dict)
    except ValueError as error:
        return str(error)
    return ""


def _replaced(model, state_dict):
    build_strict(put=lambda parameter, X: None)(model, state_dict)
    for name, X in state_dict.items():
        path, _, last = name.rpartition(".")
        setattr(model.get_submodule(path), last, nn.Parameter(X.double()))


def _assigned(model, state_dict):
    build_strict(put=lambda parameter, X: None)(model, state_dict)
    model.load_state_dict({n: X.double() for n, X in state_dict.items()}, assign=True)


def _shared(parameter, X):
    parameter.data = X.to(parameter.dtype)


def _turn_square(parameter, X):
    _put(parameter, X.T if X.dim() == 2 and X.shape[0] == X.shape[1] else X)


def _turned_to_fit(own, given):
    return [n for n in _misshapen(own, given) if own[n].shape != given[n].t().shape]


def _by_number_count(own, given):
    return [n for n in _misshapen(own, given) if own[n].numel() != given[n].numel()]


def _by_broadcasting(own, given):
    def fits(X, shape):
        try:
            return X.expand(shape) is not None
        except RuntimeError:
            return False

    return [n for n in _misshapen(own, given) if not fits(given[n], own[n].shape)]


def _in_order(own, given):
    return dict(zip(own, given.values(), strict=False))


def _emptied(model, given):
    given.clear()


def _frozen(model, given):
    model.requires_grad_(False)


def _evaluating(model, given):
    model.eval()


STRICT = (
    Mistake(
        "library-error",
        "You call load_state_dict and leave the error to it: it raises a RuntimeError.",
        "Its text names everything, but it copies what fits before it raises. A ValueError was "
        "asked for, and a model that is as it was.",
        PLACE,
        _library,
    ),
    Mistake(
        "strict-false",
        "What is missing or unknown is passed over in silence, and the rest is copied "
        "(strict=False does that).",
        "A model with one layer untouched runs like any other, and its results are nonsense. "
        "Whatever has no partner has to be named.",
        PLACE,
        lambda model, state_dict: model.load_state_dict(state_dict, strict=False) and None,
    ),
    Mistake(
        "nothing-refused",
        "You copy what has a partner of the same shape and pass over the rest in silence.",
        "A model with one layer untouched runs like any other, and its results are nonsense. "
        "Whatever is missing, unknown or misshapen has to be named.",
        PLACE,
        build_strict(
            missing=lambda own, given: [],
            unknown=lambda own, given: [],
            misshapen=lambda own, given: [],
            match=lambda own, given: {
                n: X for n, X in given.items() if n in own and own[n].shape == X.shape
            },
        ),
    ),
    Mistake(
        "missing-not-named",
        "Weights of the model that state_dict lacks are not reported.",
        "Going through state_dict shows what is unknown. What is missing shows only to someone "
        "who goes through the model's own names.",
        PLACE,
        parts={"missing": lambda own, given: []},
    ),
    Mistake(
        "unknown-not-named",
        "Weights that the model does not have are not reported.",
        "Going through the model's names shows what is missing. What is left over shows only to "
        "someone who goes through state_dict.",
        PLACE,
        parts={"unknown": lambda own, given: []},
    ),
    Mistake(
        "misshapen-not-named",
        "You do not compare shapes before you copy.",
        "copy_ takes some wrong shapes without a word (a single row is spread over all rows), and "
        "at others it raises when half is copied.",
        PLACE,
        parts={"misshapen": lambda own, given: []},
    ),
    Mistake(
        "shapes-left-to-the-library",
        "You compare the names, and load_state_dict finds the wrong shapes.",
        "By then it has copied what fits, and its error is a RuntimeError. Shapes have to be "
        "compared before anything is copied.",
        PLACE,
        _only_names,
    ),
    Mistake(
        "numbers-counted",
        "You compare how many numbers there are, not the shapes.",
        "A matrix and its transpose have as many numbers.",
        PLACE,
        parts={
            "misshapen": _by_number_count,
            "put": lambda parameter, X: _put(parameter, X.reshape(parameter.shape)),
        },
    ),
    Mistake(
        "spread-out",
        "Shapes that can be broadcast pass as fitting.",
        "A bias of one number would be written into all places. A weight fits if its shape is the "
        "same.",
        PLACE,
        parts={"misshapen": _by_broadcasting},
    ),
    Mistake(
        "turned-to-fit",
        "A matrix that fits when it is transposed passes as fitting.",
        "Whether it is transposed cannot be seen where it is square. What has another shape is "
        "reported, not guessed at.",
        PLACE,
        parts={
            "misshapen": _turned_to_fit,
            "put": lambda parameter, X: _put(parameter, X if X.shape == parameter.shape else X.t()),
        },
    ),
    Mistake(
        "first-only",
        "You raise at the first weight that does not fit, and name that one alone.",
        "Someone who mends a file wants the whole list. Collect first, raise afterwards.",
        PLACE,
        parts={
            "text": lambda missing, unknown, misshapen: [*missing, *unknown, *misshapen][0],
        },
    ),
    Mistake(
        "kind-by-kind",
        "You raise for one kind of fault before you have looked for the next.",
        "The text has to name all three kinds at once. Collect first, raise afterwards.",
        PLACE,
        _kind_by_kind,
    ),
    Mistake(
        "counted-not-named",
        "You say how many weights do not fit, not which.",
        "“3 are missing” leaves the search to the reader. The names are known: write them down.",
        PLACE,
        parts={
            "text": lambda missing, unknown, misshapen: (
                f"{len(missing)} missing, {len(unknown)} unknown, {len(misshapen)} misshapen"
            )
        },
    ),
    Mistake(
        "copied-before-raising",
        "You copy what fits before you raise. (So does load_state_dict, if you leave the looking "
        "to it and only change its error.)",
        "A model is left behind that is half new, half old. Look at everything first, then copy.",
        PLACE,
        _while_copying,
    ),
    Mistake(
        "told-not-raised",
        "You find what does not fit and print or return it.",
        "A program that goes on will not read it. `raise ValueError(text)` stops it.",
        PLACE,
        _told_not_raised,
    ),
    Mistake(
        "key-error",
        "You raise a KeyError.",
        "The task asks for a ValueError: the names are one thing that can be wrong, the shapes "
        "another.",
        PLACE,
        parts={"error": KeyError},
    ),
    Mistake(
        "runtime-error",
        "You raise a RuntimeError.",
        "It is what load_state_dict raises. The task asks for a ValueError.",
        PLACE,
        parts={"error": RuntimeError},
    ),
    Mistake(
        "assertion",
        "You refuse with an assert.",
        "Assertions are for what cannot happen, and python -O leaves them out. For bad input, "
        "raise a ValueError.",
        PLACE,
        parts={"error": AssertionError},
    ),
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
