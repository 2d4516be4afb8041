"""Cases, run and examination of lesson 12's task that loads weights, all or nothing."""

import re

import torch
from torch import nn

from mha_course.checks.examining import equal, total
from mha_course.checks.task import AnswerError, Case

__all__ = ["examine_loading", "loading_cases", "run_loading"]

BEFORE = 0.5  # every number of the model before loading
OTHER_ERRORS = (LookupError, RuntimeError, AssertionError, AttributeError, TypeError)
SMALL = {"words.weight": (3, 2), "norm.weight": (2,), "norm.bias": (2,)}
LAYER = {"W.weight": (5, 5), "W.bias": (5,), "W_1.weight": (3, 5), "W_1.bias": (3,)}
MODEL = {
    "words.weight": (7, 5),
    "positions.weight": (5, 5),
    **{f"layers.{n}.{part}": shape for n in (0, 1, 11) for part, shape in LAYER.items()},
    "norm.weight": (5,),
    "norm.bias": (5,),
}


def loading_cases(draw):
    """Cases for `load_weights`."""

    def case(name, model, lacking=(), order=list, dtype=None, **changed):
        shapes = {n: s for n, s in model.items() if n not in lacking}
        shapes |= {n.replace("__", "."): s for n, s in changed.items()}
        weights = {n: draw.normal(*shapes[n]) for n in order(shapes)}
        if dtype:
            weights = {n: X.to(dtype) for n, X in weights.items()}
        return Case(name, {"model": model, "state_dict": weights})

    several = {
        "words__weight": (7, 3),
        "layers__11__W_1__weight": (5, 3),
        "layers__2__W__weight": (5, 5),
        "pooler__dense__bias": (5,),
    }
    alike = {f"{part}.weight": (3, 3) for part in ("query", "key", "value", "output")}
    return [
        case("everything fits", SMALL),
        case("norm.bias is missing", SMALL, ["norm.bias"]),
        case("pooler.bias is unknown", SMALL, pooler__bias=(2,)),
        case("words.weight has the shape (5, 2)", SMALL, words__weight=(5, 2)),
        case("everything fits, in another order", MODEL, order=sorted),
        case("all have one shape, in another order", alike, order=sorted),
        case("words.weight is turned: (2, 3)", SMALL, words__weight=(2, 3)),
        case("words.weight lies flat: (6,)", SMALL, words__weight=(6,)),
        case("words.weight is one row: (1, 2)", SMALL, words__weight=(1, 2)),
        case("norm.bias is one number: (1,)", SMALL, norm__bias=(1,)),
        case("norm.gain where norm.weight should be", SMALL, ["norm.weight"], norm__gain=(2,)),
        case("two of each kind", MODEL, ["layers.1.W.bias", "norm.weight"], **several),
        case("nothing in it", SMALL, list(SMALL)),
        case("everything fits, in float32", MODEL, dtype=torch.float32),
    ]


def run_loading(answer, inputs):
    """Load into a made model with the learner's function; return what came of it.

    What is raised where something does not fit is returned. At last the numbers of state_dict
    become 0, which shows whether the model shares memory with it.
    """
    model = _made(inputs["model"])
    given = {n: X.clone() for n, X in inputs["state_dict"].items()}
    tensors, before = list(given.values()), dict(model.named_parameters())
    fits = {n: tuple(X.shape) for n, X in given.items()} == inputs["model"]
    raised = None
    try:
        answer(model, given)
    except NotImplementedError:
        raise
    except (ValueError, *OTHER_ERRORS) as error:
        if fits:
            raise
        refused = isinstance(error, ValueError)
        raised = (refused, str(error) if refused else f"{type(error).__name__}: {error}")
    after = dict(model.named_parameters())
    seen = {
        "raised": raised,
        "state_dict": {n: _copied(X) for n, X in given.items()},
        "numbers": {n: X.detach().clone() for n, X in after.items()},
        "the same parameter": {n: X is before.get(n) for n, X in after.items()},
        "trainable": {n: X.requires_grad for n, X in after.items()},
        "training": model.training,
    }
    with torch.no_grad():
        for X in tensors:
            X.zero_()
    return seen | {"numbers in the end": {n: X.detach() for n, X in after.items()}}


def _copied(X):
    return X.detach().clone() if torch.is_tensor(X) else X


@total
def examine_loading(inputs, seen):
    """The weights that the model has afterwards.

    Raises: AnswerError if what does not fit is not refused as asked for, and if more changes than
        the numbers of the parameters.
    """
    bad, numbers = _unfit(inputs["model"], inputs["state_dict"]), seen["numbers"]
    changed = [n for n, X in numbers.items() if not bool((X == BEFORE).all())]
    if bad:
        _check_refused(seen["raised"], inputs["model"], bad, changed)
    elif seen["raised"] is not None:
        raise AnswerError("This weight file fits, and it is refused.")
    _check_left(inputs["state_dict"], seen["state_dict"])
    _check_same(inputs["model"], seen)
    if bad and changed:
        raise AnswerError(
            "A ValueError comes as it should, and yet the model is not what it was: "
            f"{_some(changed)} changed before. All or nothing."
        )
    if not bad and not changed:
        raise AnswerError(
            "Nothing arrives: every parameter holds the numbers that it had before. Numbers have "
            "to be written into the tensors that the model has."
        )
    if not all(equal(seen["numbers in the end"][n], X) for n, X in numbers.items()):
        raise AnswerError(
            "The model and state_dict share memory afterwards: when the numbers of the one are "
            "changed, those of the other change too."
        )
    return _named(numbers)


def _named(result):
    """As sentences call them."""
    return {f"the parameter {n}": X for n, X in result.items()}


def _made(shapes):
    """A module with parameters of these names and shapes, in float64."""
    root = nn.Module()
    for name, shape in shapes.items():
        *path, last = name.split(".")
        module = root
        for part in path:
            if part not in dict(module.named_children()):
                module.add_module(part, nn.Module())
            module = module.get_submodule(part)
        full = torch.full(shape, BEFORE, dtype=torch.float64)
        module.register_parameter(last, nn.Parameter(full))
    return root


def _unfit(shapes, given):
    """{name: what is wrong with it} for every weight that does not fit."""
    bad = {n: "missing" for n in shapes if n not in given}
    bad |= {n: "unknown" for n in given if n not in shapes}
    for n in shapes.keys() & given.keys():
        if tuple(given[n].shape) != shapes[n]:
            bad[n] = f"of shape {tuple(given[n].shape)} where the model has {shapes[n]}"
    return dict(sorted(bad.items()))


def _check_refused(raised, model, bad, changed):
    """Raises: AnswerError unless a ValueError came that names all that is bad."""
    listed = "; ".join(f"{n} is {what}" for n, what in bad.items())
    if raised is None:
        what = "the rest is copied" if changed else "nothing is copied"
        raise AnswerError(
            f"This weight file does not fit: {listed}. No ValueError is raised, and {what}."
        )
    refused, text = raised
    if refused is not True:
        raise AnswerError(
            f"This weight file does not fit: {listed}. A ValueError was asked for, and it ends in "
            f"{text}"
        )
    unnamed = [n for n in bad if not _names(text, n)]
    if unnamed:
        raise AnswerError(
            f"This weight file does not fit: {listed}. The text of your ValueError does not name "
            f"{', '.join(unnamed)}."
        )
    fine = [n for n in model if n not in bad and _names(text, n)]
    if fine:
        raise AnswerError(
            f"The text of your ValueError names {', '.join(fine)} too, and nothing is wrong there. "
            f"What does not fit: {listed}."
        )


def _names(text, name):
    """Whether a text names a weight: layers.1.W.bias is not named by layers.11.W.bias."""
    return re.search(rf"(?<![\w.]){re.escape(name)}(?!\w|\.\w)", text) is not None


def _check_left(weights, given):
    alike = isinstance(given, dict) and list(given) == list(weights)
    if not alike or not all(equal(given[n], X) for n, X in weights.items()):
        raise AnswerError("Afterwards state_dict is not what it was. Whoever calls still needs it.")


def _check_same(shapes, seen):
    """Raises: AnswerError if something else than the numbers of the parameters changed."""
    after = seen["numbers"]
    if list(after) != [n for n, _ in _made(shapes).named_parameters()]:
        raise AnswerError(f"Afterwards the model has other parameters: {', '.join(after)}.")
    replaced = [n for n in after if seen["the same parameter"].get(n) is not True]
    if replaced:
        raise AnswerError(
            f"New parameters have taken the place of {_some(replaced)}. An optimizer that was "
            "made before would go on with the old ones: write the numbers into those."
        )
    other = [n for n, X in after.items() if X.dtype != torch.float64]
    if other:
        raise AnswerError(
            f"Afterwards {_some(other)} are {str(after[other[0]].dtype)}, and the model was "
            "torch.float64 before. It keeps its own dtype."
        )
    frozen = [n for n in after if seen["trainable"].get(n) is not True]
    if frozen:
        raise AnswerError(
            f"Afterwards requires_grad is False for {_some(frozen)}: the model cannot be trained "
            "any more. Loading changes numbers and nothing else."
        )
    if seen["training"] is not True:
        raise AnswerError(
            "Afterwards the model is in eval mode, and it was training before. Loading changes "
            "numbers and nothing else."
        )


def _some(names):
    """Up to three names, and how many there are besides."""
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    return f"{', '.join(names[:3])}{more}"
