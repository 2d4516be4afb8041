"""Task 12.3, load_weights: a checkpoint into a model, each weight into its place."""

import re

import torch
from torch import nn

from mha_classroom.checks.examining import equal, total
from mha_classroom.checks.task import AnswerError, Case, Task, all_but, known, read_again
from mha_classroom.tasks.your_bert.runs import BEFORE, dtype_of, model_of, run_loading

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
    def case(name, model, lacking=(), order=list, dtype=None, more=None, **changed):
        shapes = {n: s for n, s in model.items() if n not in lacking}
        shapes |= {n.replace("__", "."): s for n, s in changed.items()}
        weights = {n: draw.normal(*shapes[n], 1)[..., 0] for n in order(shapes)}
        if dtype:
            weights = {n: X.to(dtype) for n, X in weights.items()}
        return Case(name, {"model": model, "state_dict": weights} | (more or {}))

    several = {
        "words__weight": (7, 3),
        "layers__11__W_1__weight": (5, 3),
        "layers__2__W__weight": (5, 5),
        "pooler__dense__bias": (5,),
        "positions__weight": (5,),
        "norm__bias": (1, 5),
    }
    inner = {"norm.weight": (2,), "norm.bias": (2,), "layer.norm.weight": (2,)}
    alike = {f"{part}.weight": (3, 3) for part in ("query", "key", "value", "output")}
    return [
        case("everything fits", SMALL),
        case("norm.bias is missing", SMALL, ["norm.bias"]),
        case("pooler.bias is unknown", SMALL, pooler__bias=(2,)),
        case("position_ids is unknown", SMALL, embeddings__position_ids=(3,)),
        case("words.weight has the shape (5, 2)", SMALL, words__weight=(5, 2)),
        case("everything fits, in another order", MODEL, order=sorted),
        case("all have one shape, in another order", alike, order=sorted),
        case("words.weight is turned: (2, 3)", SMALL, words__weight=(2, 3)),
        case("words.weight lies flat: (6,)", SMALL, words__weight=(6,)),
        case("words.weight is one row: (1, 2)", SMALL, words__weight=(1, 2)),
        case("norm.bias is one number: (1,)", SMALL, norm__bias=(1,)),
        case("norm.gain where norm.weight should be", SMALL, ["norm.weight"], norm__gain=(2,)),
        case("two of each kind, or more", MODEL, ["layers.1.W.bias", "norm.weight"], **several),
        case("nothing in it", MODEL, list(MODEL)),
        case("norm.weight is missing, layer.norm.weight is there", inner, ["norm.weight"]),
        case("everything fits, in float32", MODEL, dtype=torch.float32),
        case("everything fits, in bfloat16", MODEL, dtype=torch.bfloat16),
        case(
            "everything fits, one is a single number, and the model is in float32",
            {**SMALL, "scale": ()},
            more={"model_in_float32": True},
        ),
    ]


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
        named = [n for n in inputs["model"] if _names(seen["raised"][1], n)]
        what = f" that names {_some(named)}" if named else ""
        raise AnswerError(f"This weight file fits, and a ValueError is raised{what}.")
    _check_left(inputs["state_dict"], seen["state_dict"])
    _check_same(inputs, seen)
    if bad and changed:
        raise AnswerError(
            "A ValueError comes as it should, and yet the model is not what it was: "
            f"before it comes, other numbers are written into {_some(changed)}. All or nothing."
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
    rounded = [] if bad else _rounded(inputs["state_dict"], numbers)
    if rounded:
        raise AnswerError(
            f"The numbers of {_some(rounded)} are rounded: they are copied by way of a dtype that "
            "holds fewer digits. A copy is the same to the last digit."
        )
    return {f"the parameter {n}": X for n, X in numbers.items()}


def _rounded(weights, numbers):
    """The names of what holds almost the numbers that it should hold."""
    wanted = {n: X.to(numbers[n].dtype) for n, X in weights.items()}
    near = [n for n, X in wanted.items() if torch.allclose(numbers[n], X, rtol=1e-2, atol=1e-2)]
    return [n for n in near if not torch.equal(numbers[n], wanted[n])]


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
        stem, _, last = unnamed[0].rpartition(".")
        cut = f" It says {stem}, and the name goes on." if _names(text, stem) else ""
        if not cut and len(unnamed) == len(bad) and _names(text, last):  # "a wrong weight: …"
            cut = f" It says {last}, which is only the end of a name."
        others = [n for n in bad if n != unnamed[0]]
        if unnamed[0] in text and not any(unnamed[0] in n for n in others):
            cut = (
                f" Right before or behind {unnamed[0]} it has a letter, a digit or a dot, as if "
                "that belonged to the name."
            )
        raise AnswerError(
            f"This weight file does not fit: {listed}. The text of your ValueError does not name "
            f"{', '.join(unnamed)} in full.{cut}"
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


def _check_same(inputs, seen):
    """Raises: AnswerError if something else than the numbers of the parameters changed."""
    after, dtype = seen["numbers"], dtype_of(inputs)
    if list(after) != [n for n, _ in model_of(inputs["model"]).named_parameters()]:
        raise AnswerError(f"Afterwards the model has other parameters: {', '.join(after)}.")
    replaced = [n for n in after if seen["the same parameter"].get(n) is not True]
    if replaced:
        raise AnswerError(
            f"New parameters have taken the place of {_some(replaced)}. An optimizer that was "
            "made before would go on with the old ones: write the numbers into those."
        )
    other = [n for n, X in after.items() if X.dtype != dtype]
    if other:
        raise AnswerError(
            f"Afterwards {_some(other)} are {str(after[other[0]].dtype)}, and the model was "
            f"{dtype} before. It keeps its own dtype."
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


def _inside(names, others):
    """The names that are part of none of the others."""
    return [n for n in names if not any(n in other for other in others)]


def _put(parameter, X):
    with torch.no_grad():
        parameter.copy_(X)


def _misfits(own, given):
    return [n for n in own if n in given and own[n].shape != given[n].shape]


def build_strict(
    missing=lambda own, given: [n for n in own if n not in given],
    unknown=lambda own, given: [n for n in given if n not in own],
    misshapen=_misfits,
    error=ValueError,
    text=lambda missing, unknown, misshapen: " ".join([*missing, *unknown, *misshapen]),
    match=lambda own, given: given,
    put=_put,
    finish=lambda model, given: None,
):
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


def _names_before_shapes(model, state_dict):
    """Shapes are looked at when all names are right."""
    names = dict(model.named_parameters()).keys() ^ state_dict.keys()
    if names:
        raise ValueError(" ".join(sorted(names)))
    build_strict()(model, state_dict)


def _not_strict(model, state_dict):
    """With the library's error made a ValueError."""
    try:
        model.load_state_dict(state_dict, strict=False)
    except RuntimeError as error:
        raise ValueError(str(error)) from error


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


def _one_by_one(missing_first):
    """Each weight is looked at and copied; the first that does not fit ends it."""

    def load_weights(model, state_dict):
        own = dict(model.named_parameters())
        if missing_first:
            _refuse_missing(own, state_dict)
        for name, X in state_dict.items():
            if name not in own or own[name].shape != X.shape:
                raise ValueError(name)
            _put(own[name], X)
        _refuse_missing(own, state_dict)

    return load_weights


def _refuse_missing(own, given):
    for name in own:
        if name not in given:
            raise ValueError(name)


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


def _by_number_count(own, given):
    return [n for n in _misfits(own, given) if own[n].numel() != given[n].numel()]


def _by_axis_count(own, given):
    return [n for n in _misfits(own, given) if own[n].dim() != given[n].dim()]


def _of_other_dtype(own, given):
    both = [n for n in own if n in given]
    return [n for n in both if own[n].shape != given[n].shape or own[n].dtype != given[n].dtype]


def _by_broadcasting(own, given):
    def fits(X, shape):
        try:
            return X.expand(shape) is not None
        except RuntimeError:
            return False

    return [n for n in _misfits(own, given) if not fits(given[n], own[n].shape)]


def _turned_to_fit(own, given):
    return [n for n in _misfits(own, given) if own[n].shape != given[n].t().shape]


def _replaced(model, state_dict):
    build_strict(put=lambda parameter, X: None)(model, state_dict)
    for name, X in state_dict.items():
        path, _, last = name.rpartition(".")
        setattr(model.get_submodule(path), last, nn.Parameter(X.double()))


def _shared(parameter, X):
    parameter.data = X.to(parameter.dtype)


def _turn_square(parameter, X):
    _put(parameter, X.T if X.dim() == 2 and X.shape[0] == X.shape[1] else X)


STRICT = {
    "library-error": known(
        "You call load_state_dict and leave the error to it: it raises a RuntimeError.",
        "Its text names everything, but it copies what fits before it raises. A ValueError was "
        "asked for, and a model that is as it was.",
        wrong=lambda model, state_dict: model.load_state_dict(state_dict),
    ),
    "strict-false": known(
        "What is missing or unknown is passed over in silence, and the rest is copied "
        "(strict=False does that).",
        "A model with one layer untouched runs like any other, and its results are nonsense. "
        "Whatever has no partner has to be named.",
        wrong=lambda model, state_dict: model.load_state_dict(state_dict, strict=False) and None,
    ),
    "strict-false-with-another-error": known(
        "What is missing or unknown is passed over, and the rest is copied (strict=False does "
        "that); you raise for wrong shapes alone.",
        "A model with one layer untouched runs like any other, and its results are nonsense. "
        "Whatever has no partner has to be named.",
        wrong=_not_strict,
    ),
    "nothing-refused": known(
        "You copy what has a partner of the same shape, and raise nothing for the rest.",
        "A model with one layer untouched runs like any other, and its results are nonsense; and a "
        "program does not read what is printed. Whatever is missing, unknown or misshapen has to "
        "be named in a ValueError.",
        wrong=build_strict(
            missing=lambda own, given: [],
            unknown=lambda own, given: [],
            misshapen=lambda own, given: [],
            match=lambda own, given: {
                n: X for n, X in given.items() if n in own and own[n].shape == X.shape
            },
        ),
    ),
    "missing-not-named": known(
        "Weights of the model that state_dict lacks are not reported.",
        "Going through state_dict shows what is unknown. What is missing shows only to someone "
        "who goes through the model's own names.",
        missing=lambda own, given: [],
    ),
    **{
        id: known(
            "You look whether a name is part of another name, or of one text with all names.",
            "norm.weight is part of layer.norm.weight and is another weight. Of texts, `in` asks "
            "for a part; of a dict or a list of names, for a whole name.",
            missing=lambda own, given: _inside(own, given),
            unknown=lambda own, given: _inside(given, own),
            match=match,
        )
        for id, match in (
            ("names-within-names", lambda own, given: given),
            ("names-within-names-copied", lambda own, given: {n: given[n] for n in own}),
        )
    },
    "unknown-not-named": known(
        "Weights that the model does not have are not reported.",
        "Going through the model's names shows what is missing. What is left over shows only to "
        "someone who goes through state_dict.",
        unknown=lambda own, given: [],
    ),
    "misshapen-not-named": known(
        "Wrong shapes are not noticed before you copy.",
        "copy_ takes some wrong shapes without a word (a single row is spread over all rows), and "
        "at others it raises when half is copied.",
        misshapen=lambda own, given: [],
    ),
    "shapes-left-to-the-library": known(
        "You compare the names, and load_state_dict finds the wrong shapes.",
        "By then it has copied what fits, and its error is a RuntimeError. Shapes have to be "
        "compared before anything is copied.",
        wrong=_only_names,
    ),
    "numbers-counted": known(
        "A tensor with as many numbers passes as fitting: you compare how many there are, or try "
        "whether it can be reshaped.",
        "A matrix and its transpose have as many numbers.",
        misshapen=_by_number_count,
        put=lambda parameter, X: _put(parameter, X.reshape(parameter.shape)),
    ),
    "axes-counted": known(
        "You compare how many axes there are, not the shapes.",
        "(5, 2) and (3, 2) both have two axes. A weight fits if its shape is the same.",
        misshapen=_by_axis_count,
    ),
    "dtype-counts": known(
        "You refuse weights of another dtype.",
        "float32 in the file and float64 in the model is no misfit: copy_ converts. What has to "
        "agree is the names and the shapes.",
        misshapen=_of_other_dtype,
    ),
    "spread-out": known(
        "Shapes that can be broadcast pass as fitting.",
        "A bias of one number would be written into all places. A weight fits if its shape is the "
        "same.",
        misshapen=_by_broadcasting,
    ),
    "turned-to-fit": known(
        "A matrix that fits when it is transposed passes as fitting.",
        "Whether it is transposed cannot be seen where it is square. What has another shape is "
        "reported, not guessed at.",
        misshapen=_turned_to_fit,
        put=lambda parameter, X: _put(parameter, X if X.shape == parameter.shape else X.t()),
    ),
    "first-only": known(
        "Your text names one weight alone, the first that does not fit.",
        "Someone who mends a file wants the whole list. Collect first, raise afterwards.",
        text=lambda missing, unknown, misshapen: [*missing, *unknown, *misshapen][0],
    ),
    "kind-by-kind": known(
        "Your text names the weights of one kind of fault alone. Do you raise for one kind before "
        "you look for the next?",
        "The text has to name all three kinds at once. Collect first, raise afterwards.",
        wrong=_kind_by_kind,
    ),
    "names-before-shapes": known(
        "Where names are wrong, your text names no wrong shapes. Do you raise before you look at "
        "the shapes?",
        "The text has to name all three kinds at once. Collect first, raise afterwards.",
        wrong=_names_before_shapes,
    ),
    "counted-not-named": known(
        "Your text names no weight. Does it only say that some do not fit, or how many? Or has it "
        "a name in braces, without an f in front of the quotes?",
        "“3 are missing” leaves the search to the reader. The names are known: write them down.",
        text=lambda missing, unknown, misshapen: (
            f"{len(missing)} missing, {len(unknown)} unknown, {len(misshapen)} misshapen"
        ),
    ),
    "ends-of-names": known(
        "Your text gives the last part of each name only.",
        "Many weights end in the same word: whoever reads norm.bias knows which one is meant, and "
        "bias alone says little.",
        text=lambda *kinds: " ".join(n.split(".")[-1] for kind in kinds for n in kind),
    ),
    "copied-before-raising": known(
        "You copy what fits before you raise. (So does load_state_dict, if you leave the looking "
        "to it and only change its error. And what model.state_dict() gave you before is no copy: "
        "its tensors are the model's own.)",
        "A model is left behind that is half new, half old. Look at everything first, then copy.",
        wrong=_while_copying,
    ),
    **{
        id: known(
            "You copy one weight after the other, and raise at the first that does not fit.",
            "The model is half new by then, and whoever mends the file wants the whole list. Look "
            "at everything first, then copy.",
            wrong=_one_by_one(missing_first),
        )
        for id, missing_first in (("one-by-one", False), ("one-by-one-missing-first", True))
    },
    "told-not-raised": known(
        "You find what does not fit, copy nothing and raise nothing.",
        "A program that goes on will not read what is printed or returned. `raise "
        "ValueError(text)` stops it.",
        wrong=_told_not_raised,
    ),
    "key-error": known(
        "You raise a KeyError.",
        "The task asks for a ValueError: the names are one thing that can be wrong, the shapes "
        "another.",
        error=KeyError,
    ),
    "runtime-error": known(
        "You raise a RuntimeError.",
        "It is what load_state_dict raises. The task asks for a ValueError.",
        error=RuntimeError,
    ),
    "assertion": known(
        "You raise an AssertionError, as assert does.",
        "Assertions are for what cannot happen, and python -O leaves them out. For bad input, "
        "raise a ValueError.",
        error=AssertionError,
    ),
    "by-order": known(
        "You copy in the order in which the weights stand.",
        "A file may have them in another order. The name says where a weight belongs.",
        match=lambda own, given: dict(zip(own, given.values(), strict=False)),
    ),
    "square-turned": known(
        "You transpose the square matrices.",
        "Both sides keep a matrix as (out, in). With a square one no shape gives it away.",
        put=_turn_square,
    ),
    "gradients-recorded": known(
        "You write into the parameters while gradients are recorded.",
        "PyTorch forbids that for what is to be trained. `with torch.no_grad():` around the "
        "copying switches the recording off.",
        put=lambda parameter, X: parameter.copy_(X),
    ),
    "nothing-arrives": known(
        "After your function the model holds the numbers that it had before.",
        "An assignment to a name, such as `parameter = X`, makes the name mean another tensor; the "
        "model keeps the old one. Write into the tensor that is there.",
        put=lambda parameter, X: None,
    ),
    "parameters-replaced": known(
        "You put new parameters in the place of the model's own.",
        "Whoever holds the old ones, an optimizer for instance, holds something that the model no "
        "longer uses. Write the numbers into the parameters that are there.",
        wrong=_replaced,
    ),
    "memory-and-dtype-shared": known(
        "You make the model use the very tensors of state_dict: one memory, and the file's dtype.",
        "With `.data = X` two owners write into one tensor, and a file in float32 would change the "
        "dtype of a float64 model. `copy_` copies the numbers and converts them.",
        put=lambda parameter, X: setattr(parameter, "data", X),
    ),
    "memory-shared": known(
        "You make the model use the very memory of state_dict.",
        "With `.data = X` two owners write into one tensor: training the model would change the "
        "weights in state_dict. Copy the numbers.",
        put=_shared,
    ),
    "dtype-of-the-file": known(
        "Your parameters take the dtype of state_dict.",
        "A file in float32 would change the dtype of a float64 model. `copy_` converts.",
        put=lambda parameter, X: setattr(parameter, "data", X.clone()),
    ),
    "state-dict-emptied": known(
        "The state_dict that you are given is no longer what it was.",
        "pop and del, for instance, take its entries away, and the caller still needs them. Make a "
        "new dict or set if you want to cross things off.",
        finish=lambda model, given: given.clear(),
    ),
    "frozen": known(
        "Afterwards the parameters have requires_grad=False.",
        "`with torch.no_grad():` around the copying is enough; it changes nothing for later.",
        finish=lambda model, given: model.requires_grad_(False),
    ),
    "eval-mode": known(
        "You switch the model to eval mode.",
        "That is for the caller to decide. Loading changes numbers and nothing else.",
        finish=lambda model, given: model.eval(),
    ),
}
STRICT = read_again("Every weight in its place", STRICT)

TASK = Task(
    "12-load_weights",
    build_strict(),
    loading_cases,
    run=run_loading,
    examine=examine_loading,
    mistakes=STRICT,
    build=build_strict,
    alone=all_but(
        STRICT,
        "missing-not-named",
        "unknown-not-named",
        "misshapen-not-named",
        "first-only",
        "counted-not-named",
        "ends-of-names",
        "key-error",
        "square-turned",
        "frozen",
    ),
    number=3,
)
