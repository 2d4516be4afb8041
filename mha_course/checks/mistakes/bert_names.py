"""The known mistakes of lesson 06 in giving a checkpoint's weights the course's names."""

import re

from mha_course.checks.mistakes.bert_tables import RIGHT_NAMES, TABLES
from mha_course.checks.task import Mistake

__all__ = ["NAMES", "build_names"]

SAME = "The same weights under other names"


def build_names(
    table=RIGHT_NAMES,
    cut=lambda name: name.removeprefix("bert."),
    before=lambda name: "",
    layer=lambda number: f"encoder.layers.{number}.",
    digits=r"\d+",
    rest=lambda name: True,
    keep=lambda module, last: True,
    turn=lambda module, X: X,
    old=lambda name, new: False,
):
    """Return a function for `06-map_weights`, right unless a part is replaced."""

    def map_weights(state_dict):
        mapped = {}
        for name, X in state_dict.items():
            *path, last = cut(name).split(".")
            module, prefix = ".".join(path), ""
            inside = re.fullmatch(rf"encoder\.layer\.({digits})\.(.+)", module)
            if inside:
                prefix, module = layer(inside[1]), inside[2]
            if module not in table:
                if rest(name):
                    mapped[cut(name)] = X
                continue
            new = f"{before(name)}{prefix}{table[module]}.{last}"
            if keep(module, last):
                mapped[new] = turn(module, X)
            if old(name, new):
                mapped[name] = X
        return mapped

    return map_weights


def _only_names(state_dict):
    new = {id(X): name for name, X in build_names()(state_dict).items()}
    return {name: new[id(X)] for name, X in state_dict.items()}


def _emptied(state_dict):
    mapped = build_names()(state_dict)
    state_dict.clear()
    return mapped


# What a chain of replacements makes in which "output.dense" comes before "attention.output.dense".
OUTPUT_FIRST = RIGHT_NAMES | {
    f"attention.{end}": f"attention.{RIGHT_NAMES[end]}"
    for end in ("output.dense", "output.LayerNorm")
}


NAMES = (
    Mistake(
        "prefix-kept",
        "Your names keep the leading bert.",
        "Checkpoints of models with something on top call the BERT in them bert. The course's "
        "model is the BERT itself, so that part goes.",
        SAME,
        parts={"before": lambda name: "bert." if name.startswith("bert.") else ""},
    ),
    Mistake(
        "names-with-prefix-missed",
        "Names with a leading bert. stay as they were.",
        "In such a checkpoint every name begins so. It is taken off, and what is left is renamed "
        "as in any other.",
        SAME,
        parts={"cut": lambda name: name},
    ),
    Mistake(
        "prefix-always-cut",
        "You cut the first part of every name off.",
        "Only some checkpoints begin with bert. In the others the first part is embeddings, "
        "encoder or pooler, and is needed.",
        SAME,
        parts={"cut": lambda name: name.split(".", 1)[1]},
    ),
    Mistake(
        "prefix-by-lstrip",
        "You cut bert. with lstrip, and it cuts more.",
        "lstrip takes a set of letters, not a word: it goes on as long as the next letter is one "
        "of b, e, r, t or a dot, and the e of encoder is.",
        SAME,
        parts={"cut": lambda name: name.lstrip("bert.")},
    ),
    Mistake(
        "layer-in-singular",
        "Your names say encoder.layer.",
        "In the course the list of layers is called layers.",
        SAME,
        parts={"layer": lambda number: f"encoder.layer.{number}."},
    ),
    Mistake(
        "layers-from-1",
        "You count the layers from 1.",
        "Both count from 0, so a layer's number stays as it is.",
        SAME,
        parts={"layer": lambda number: f"encoder.layers.{int(number) + 1}."},
    ),
    Mistake(
        "layer-number-lost",
        "All layers get the same number, and the last one overwrites the others.",
        "The number belongs to the name: there are as many of each name as there are layers.",
        SAME,
        parts={"layer": lambda number: "encoder.layers.0."},
    ),
    Mistake(
        "layer-number-one-digit",
        "Of a layer's number you take the first digit only, so that layer 11 becomes layer 1.",
        "BERT-base has 12 layers, 0 to 11: a number can have two digits.",
        SAME,
        parts={"layer": lambda number: f"encoder.layers.{number[0]}."},
    ),
    Mistake(
        "layers-above-9-missed",
        "Names in layers 10 and above stay as they were.",
        "BERT-base has 12 layers, 0 to 11: a number can have two digits.",
        SAME,
        parts={"digits": r"\d"},
    ),
    Mistake(
        "output-matched-first",
        "Names with attention.output were caught by what was meant for output.",
        "output.dense is also the end of attention.output.dense, so replacing the short one first "
        "leaves half a name behind. Which of the two has to come first?",
        SAME,
        parts={"table": OUTPUT_FIRST},
    ),
    *TABLES,
    Mistake(
        "biases-dropped",
        "The biases are missing.",
        "Each name ends in weight or bias, and both have to arrive.",
        SAME,
        parts={"keep": lambda module, last: last != "bias"},
    ),
    Mistake(
        "pooler-dropped",
        "The pooler is missing.",
        "Its name is the same on both sides. It still has to be in the result.",
        SAME,
        parts={"keep": lambda module, last: module != "pooler.dense"},
    ),
    Mistake(
        "other-names-dropped",
        "Names that are not in the table are missing from your result.",
        "They stay as they are: who loads the weights should hear of them, and they may matter to "
        "someone else.",
        SAME,
        parts={"rest": lambda name: False},
    ),
    Mistake(
        "old-names-kept",
        "Your result has the published names as well as the new ones.",
        "Loading would complain about every one of them.",
        SAME,
        parts={"old": lambda name, new: name != new},
    ),
    Mistake(
        "weights-transposed",
        "You transpose the weights of the nn.Linear.",
        "Both sides keep them as (out, in), the way nn.Linear does: nothing has to be turned.",
        SAME,
        parts={"turn": lambda module, X: X.T if X.dim() == 2 and "embeddings" not in module else X},
    ),
    Mistake(
        "everything-transposed",
        "You transpose every matrix.",
        "Both sides keep them the same way: nn.Linear as (out, in), nn.Embedding with a row for "
        "each entry.",
        SAME,
        parts={"turn": lambda module, X: X.T if X.dim() == 2 else X},
    ),
    Mistake(
        "nothing-renamed",
        "You return the names as they were.",
        "Each name in the table has another one in the course, except the pooler's.",
        SAME,
        lambda state_dict: dict(state_dict),
    ),
    Mistake(
        "names-for-tensors",
        "You return which name becomes which, without the tensors.",
        "The result has to be ready to load: the new names, each with its tensor.",
        SAME,
        _only_names,
    ),
    Mistake(
        "given-dict-changed",
        "The state_dict that you are given is no longer what it was.",
        "Whoever calls still needs it. Put what you rename into a new dict.",
        SAME,
        _emptied,
    ),
)
