"""The known mistakes of lesson 12 in loading weights, all or nothing."""

from mha_course.checks.mistakes.combining import apart
from mha_course.checks.mistakes.weight_copying import COPYING, PLACE, build_strict, misfits, put
from mha_course.checks.task import Mistake

__all__ = ["STRICT", "build_strict"]

# Looked for in pairs, too; the others alone, since every pair costs time in a check.
IN_PAIRS = {
    "missing-not-named",
    "unknown-not-named",
    "misshapen-not-named",
    "first-only",
    "counted-not-named",
    "key-error",
    "square-turned",
    "frozen",
}


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
            put(own[name], X)
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


def _turned_to_fit(own, given):
    return [n for n in misfits(own, given) if own[n].shape != given[n].t().shape]


def _by_number_count(own, given):
    return [n for n in misfits(own, given) if own[n].numel() != given[n].numel()]


def _by_broadcasting(own, given):
    def fits(X, shape):
        try:
            return X.expand(shape) is not None
        except RuntimeError:
            return False

    return [n for n in misfits(own, given) if not fits(given[n], own[n].shape)]


EVERY = (
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
            "put": lambda parameter, X: put(parameter, X.reshape(parameter.shape)),
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
            "put": lambda parameter, X: put(parameter, X if X.shape == parameter.shape else X.t()),
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
    *COPYING,
)
STRICT = apart(EVERY, build_strict, *({m.id for m in EVERY} - IN_PAIRS))
