"""Task 6.6, map_weights: published names become those of the course."""

import re

import torch

from mha_classroom.checks.examining import total
from mha_classroom.checks.showing import describe, listed
from mha_classroom.checks.task import (
    AnswerError,
    Case,
    Task,
    and_in_float32,
    known,
    read_again,
    unchanged,
)
from mha_classroom.tasks.bert_attention.runs import run_names
from mha_course import interop
from mha_course.interop import BERT_NAMES as RIGHT_NAMES


@and_in_float32
def names_cases(draw):
    """Checkpoints, or some of their entries."""

    def case(name, entries, before=""):
        return Case(name, {f"{before}{n}": draw.normal(*s) for n, s in entries.items()})

    # The key first: it shows both what its layer is called and whether it has changed places.
    few = ["attention.self.key.weight", "attention.output.dense.weight", "output.LayerNorm.bias"]
    some = {f"encoder.layer.0.{n}": (2, 2) if "weight" in n else (2,) for n in few}
    embeddings = _embeddings() | {"pooler.dense.weight": (2, 2), "pooler.dense.bias": (2,)}
    positions = {"embeddings.position_ids": torch.arange(3)}
    layers = {k: s for n in (0, 1) for k, s in _layer(n).items()}
    high = {k: s for n in (11, 1, 10, 0) for k, s in _layer(n).items() if k.endswith("bias")}
    large = {k: s for n in (123, 23, 12, 2) for k, s in _layer(n).items() if k.endswith("bias")}
    heads = ("cls.predictions.bias", "cls.predictions.transform.LayerNorm.bias", "qa_outputs.bias")
    # not everything with bert. in it is one
    heads += ("albert.classifier.bias", "albert.pooler.dense.bias")
    heads += ("bert_head.bias", "value_head.bias")
    bert = case("", some | embeddings, "bert.").inputs
    return [
        case("a few entries", some),
        Case("outside the layers", case("", embeddings).inputs | positions),
        case("a whole BERT of two layers", embeddings | layers),
        Case("with a head on top", bert | case("", {n: (2,) for n in heads}).inputs),
        Case("a head's names first", case("", {n: (2,) for n in heads}).inputs | bert),
        Case("bert. in front of every name", bert),
        case("layers out of order", high),
        case("layers far above those of BERT-base", large),
    ]


PARTS = (
    "attention.self.query",
    "attention.self.key",
    "attention.self.value",
    "attention.output.dense",
    "attention.output.LayerNorm",
    "intermediate.dense",
    "output.dense",
    "output.LayerNorm",
)

WIDE = {"intermediate.dense.weight": (3, 2), "intermediate.dense.bias": (3,)}
SHAPES = WIDE | {"output.dense.weight": (2, 3)}


def _embeddings():
    tables = {"word_embeddings": 5, "position_embeddings": 3, "token_type_embeddings": 3}
    norm = {f"embeddings.LayerNorm.{last}": (2,) for last in ("weight", "bias")}
    return {f"embeddings.{n}.weight": (rows, 2) for n, rows in tables.items()} | norm


def _layer(number):
    """{name: shape} of a layer, 2 wide and 3 inside."""
    names = [f"{part}.{last}" for part in PARTS for last in ("weight", "bias")]
    shapes = {n: (2,) if n.endswith("bias") or "Norm" in n else (2, 2) for n in names} | SHAPES
    return {f"encoder.layer.{number}.{n}": shape for n, shape in shapes.items()}


@total
def examine_names(inputs, seen):
    """The tensors under the names that the answer gives them.

    Raises: AnswerError if the given dict changed, for what is no dict, and for the first name that
        is missing or that nothing becomes.
    """
    mapped = seen["mapped"]
    if list(seen["left"]) != list(inputs) or any(v is not True for v in seen["left"].values()):
        raise AnswerError("Afterwards the given state_dict is not what it was.")
    if not isinstance(mapped, dict):
        raise AnswerError(f"map_weights has to return a dict, got {describe(mapped)}.")
    wanted = dict(zip(inputs, build_names()(inputs), strict=True))
    lost = [n for n in wanted if wanted[n] not in mapped]
    if lost:
        X = inputs[lost[0]]
        yours = [str(n) for n, Y in mapped.items() if torch.is_tensor(Y) and torch.equal(X, Y)]
        raise AnswerError(
            f"{what_became_of(lost[0], wanted[lost[0]], yours)} Names that are "
            f"missing from your result: {len(lost)} of {len(wanted)}."
            + of_which_layers([wanted[n] for n in lost], wanted.values(), yours)
        )
    extra = [n for n in mapped if n not in wanted.values()]
    if extra:
        raise AnswerError(
            f"Your result has {len(extra)} names that should not be in it, such as {extra[0]}."
        )
    return {f"the tensor {name}": X for name, X in mapped.items()}


def of_which_layers(lost, wanted, yours):
    """A sentence on the layers that the lost names are of, if no other layer lacks any, else "".

    yours: what has become of the first of them. If its layer has another number, nothing is said.
    """
    lacking, others = _layers(lost), _layers(wanted) - _layers(lost)
    if None in lacking or not others - {None} or _layers(yours) - _layers(lost[:1]) - {None}:
        return ""
    some, none = (
        f"layer{'s' if len(numbers) > 1 else ''} {listed([str(n) for n in sorted(numbers)])}"
        for numbers in (lacking, others - {None})
    )
    return f" They are all of {some}. Of {none} none is missing."


def _layers(names):
    """The numbers of the layers in names of the course, None for a name without one."""
    found = (re.search(r"encoder\.layers\.(\d+)\.", name) for name in names)
    return {int(number[1]) if number else None for number in found}


FEW_LETTERS = 3  # are lost where lstrip goes on into the name
CUT_TOO_FAR = "Is a slice too long, or is it lstrip, which takes a set of letters and not a word?"


def what_became_of(name, new, yours):
    should = f"{name} has to {'stay as it is' if name == new else f'become {new}'}"
    if not yours:
        return f"{should}, and it is missing from your result."
    short = any(new.endswith(n) and 0 < len(new) - len(n) <= FEW_LETTERS for n in yours)
    cut = f" Its first letters are gone. {CUT_TOO_FAR}" if short else ""
    return f"{should}, and in your result it is {' and '.join(yours)}.{cut}"


def build_names(
    table=RIGHT_NAMES,
    cut=lambda name: name.removeprefix("bert."),
    before=lambda name: "",
    layer=lambda number: f"encoder.layers.{number}.",
    digits=r"\d+",
    rest=lambda name: True,
    ours=lambda name: True,
    keep=lambda module, last: True,
    turn=lambda module, X: X,
    old=lambda name, new: False,
    unknown=lambda name, short: short,
):
    def map_weights(state_dict):
        mapped = {}
        for name, X in state_dict.items():
            if not ours(name):
                continue
            *path, last = cut(name).split(".")
            module, prefix = ".".join(path), ""
            inside = re.fullmatch(rf"encoder\.layer\.({digits})\.(.+)", module)
            if inside:
                prefix, module = layer(inside[1]), inside[2]
            if module not in table:
                if rest(name):
                    mapped[unknown(name, cut(name))] = X
                continue
            new = f"{before(name)}{prefix}{table[module]}.{last}"
            if keep(module, last):
                mapped[new] = turn(module, X)
            if old(name, new):
                mapped[name] = X
        return mapped

    return map_weights


def _swapped(*names):
    """The table with the course's names of two published ones exchanged."""
    one, other = names
    return RIGHT_NAMES | {one: RIGHT_NAMES[other], other: RIGHT_NAMES[one]}


# What a chain of replacements makes in which "output.dense" comes before "attention.output.dense".
ENDS = ("output.dense", "output.LayerNorm")
OUTPUT = tuple(f"attention.{end}" for end in ENDS)
OUTPUT_FIRST = RIGHT_NAMES | {f"attention.{end}": f"attention.{RIGHT_NAMES[end]}" for end in ENDS}


def _decided_by_all_names(state_dict):
    prefixed = all(name.startswith("bert.") for name in state_dict)
    return (build_names() if prefixed else build_names(cut=unchanged))(state_dict)


def _decided_by_the_first_name(state_dict):
    prefixed = next(iter(state_dict)).startswith("bert.")
    right, cut = build_names(), build_names(cut=unchanged)
    return (right if prefixed else cut)(state_dict)


def _only_names(state_dict):
    new = {id(X): name for name, X in build_names()(state_dict).items()}
    return {name: new[id(X)] for name, X in state_dict.items()}


def _emptied(state_dict):
    mapped = build_names()(state_dict)
    state_dict.clear()
    return mapped


def _biases_missed(state_dict):
    mapped = build_names()(state_dict)
    names = {id(X): name for name, X in state_dict.items()}
    return {names[id(X)] if n.endswith(".bias") else n: X for n, X in mapped.items()}


def _stripped_and_replaced(layer, whole):
    """lstrip, and then a chain of replacements: what they find behind the lost letters is renamed.

    layer: what stands for layers. whole: whether the tables are looked for as embeddings.…
    """
    chain = [(f"{layer}.", f"{layer}s."), *RIGHT_NAMES.items()]
    if not whole:
        chain = [
            (old.removeprefix("embeddings."), new.removeprefix("embeddings."))
            if "_" in old
            else (old, new)
            for old, new in chain
        ]

    def map_weights(state_dict):
        mapped = {}
        for name, X in state_dict.items():
            new = name.lstrip("bert.")
            for old, ours in chain:
                new = new.replace(old, ours)
            mapped[new] = X
        return mapped

    return map_weights


def _one_place(state_dict):
    """Of encoder.layer.11.output the number is 1, and the rest of the name 1.output."""
    short = re.compile(r"(?:bert\.)?encoder\.layer\.(\d)(\d+\..+)")
    mapped = {}
    for name, X in state_dict.items():
        long = short.fullmatch(name)
        if long:
            mapped[f"encoder.layers.{long[1]}.{long[2][1:]}"] = X
        else:
            mapped |= build_names()({name: X})
    return mapped


NORM = ("LayerNorm", "norm")
PREFIX_ANYWHERE = "You take bert. out of a name wherever it stands."
ONLY_LEADING = (
    "Only a leading bert. goes. replace and split also find it inside of albert., and that name "
    "has to stay as it is."
)
LSTRIP = (
    "lstrip takes a set of letters, not a word: it goes on as long as the next letter is one of "
    "b, e, r, t or a dot, and the e of encoder is."
)

NAMES = {
    "prefix-kept": known(
        "Your names keep the leading bert.",
        "In a checkpoint of a larger model, bert. stands before the names of the BERT within it. "
        "The course's model is the BERT itself, so that part goes.",
        before=lambda name: "bert." if name.startswith("bert.") else "",
    ),
    "names-with-prefix-missed": known(
        "Names with a leading bert. stay as they were.",
        "In such a checkpoint all names of the model begin so. It is taken off, and what is left "
        "is renamed as in any other.",
        cut=lambda name: name,
    ),
    "names-with-prefix-missed-behind-others": known(
        "Where a head's names come first, names with a leading bert. stay as they were.",
        "Do you look at one name, the first for instance, and decide for all? A checkpoint may "
        "hold names of both kinds, in any order.",
        wrong=_decided_by_the_first_name,
    ),
    "prefix-cut-where-all-have-it": known(
        "Names with a leading bert. stay as they were where others, those of a head, have none.",
        "Do you look at all names, and decide for all? A checkpoint may hold names of both kinds: "
        "look at each for itself.",
        wrong=_decided_by_all_names,
    ),
    "prefix-always-cut": known(
        "You cut the first part of every name off.",
        "Only some checkpoints begin with bert. In the others the first part is embeddings, "
        "encoder or pooler, and is needed.",
        cut=lambda name: name.split(".", 1)[1],
    ),
    "names-without-prefix-skipped": known(
        "Names that do not begin with bert. are missing from your result.",
        "Only some checkpoints have it in front, and a head's names never do. What has no bert. in "
        "front is renamed like the rest, or stays as it is.",
        ours=lambda name: name.startswith("bert."),
    ),
    "prefix-by-lstrip": known(
        "Your names lost letters in front. Do you cut bert. with lstrip?",
        LSTRIP,
        cut=lambda name: name.lstrip("bert."),
    ),
    "prefix-replaced-everywhere": known(
        PREFIX_ANYWHERE,
        ONLY_LEADING,
        cut=lambda name: name.replace("bert.", ""),
    ),
    "prefix-replaced-where-known": known(
        "albert.pooler.dense.bias becomes pooler.dense.bias. Do you look for bert. anywhere in a "
        "name, or for names of the table?",
        ONLY_LEADING,
        wrong=build_names(
            cut=lambda name: name.split("bert.")[-1], unknown=lambda name, short: name
        ),
    ),
    "prefix-split-off": known(
        PREFIX_ANYWHERE,
        ONLY_LEADING,
        wrong=build_names(cut=lambda name: name.split("bert.")[-1]),
    ),
    "prefix-by-lstrip-where-known": known(
        "Names in encoder and embeddings stay as they were. Do you cut bert. with lstrip, and look "
        "up what is left?",
        LSTRIP,
        wrong=build_names(cut=lambda name: name.lstrip("bert."), unknown=lambda name, short: name),
    ),
    **{
        f"prefix-by-lstrip-in-a-chain-{layer.replace('.', '-')}{end}": known(
            "Your names lost letters in front. Do you cut bert. with lstrip?",
            LSTRIP,
            wrong=_stripped_and_replaced(layer, not end),
        )
        for layer in ("encoder.layer", "layer")
        for end in ("", "-of-ends")
    },
    "biases-missed": known(
        "Names that end in bias stay as they were.",
        "Each name ends in weight or bias, and both have other names in the course.",
        wrong=_biases_missed,
    ),
    "layer-number-one-place": known(
        "You read one digit of a layer's number, and look for the rest of the name right behind "
        "it.",
        "BERT-base has 12 layers, 0 to 11: a number can have two digits.",
        wrong=_one_place,
    ),
    "layer-in-singular": known(
        "Your names say encoder.layer.",
        "In the course the list of layers is called layers.",
        layer=lambda number: f"encoder.layer.{number}.",
    ),
    "layers-from-1": known(
        "You count the layers from 1.",
        "Both count from 0, so a layer's number stays as it is.",
        layer=lambda number: f"encoder.layers.{int(number) + 1}.",
    ),
    "layer-number-lost": known(
        "All layers get the same number, and the last one overwrites the others.",
        "The number belongs to the name: there are as many of each name as there are layers.",
        layer=lambda number: "encoder.layers.0.",
    ),
    "layer-number-one-digit": known(
        "Of a layer's number you take one digit only, so that layer 11 becomes layer 1.",
        "BERT-base has 12 layers, 0 to 11: a number can have two digits.",
        layer=lambda number: f"encoder.layers.{number[0]}.",
    ),
    "layers-above-9-missed": known(
        "Names in layers 10 and above stay as they were.",
        "BERT-base has 12 layers, 0 to 11: a number can have two digits. Or do you count the "
        "layers that are there, and loop over a range of that count? Some may be missing.",
        digits=r"\d",
    ),
    "layers-above-11-missed": known(
        "Names in layers 12 and above stay as they were.",
        "BERT-base has 12 layers, and BERT-large has 24. Take whatever number stands there.",
        digits=r"\d|1[01]",
    ),
    "output-matched-first": known(
        "Names with attention.output were caught by what was meant for output.",
        "output.dense is also the end of attention.output.dense, so replacing the short one first "
        "leaves half a name behind. Which of the two has to come first?",
        table=OUTPUT_FIRST,
    ),
    "output-dense-matched-first": known(
        "Names with attention.output.dense were caught by what was meant for output.dense.",
        "The short name is also the end of the long one, so replacing the short one first leaves "
        "half a name behind. Which of the two has to come first?",
        table=RIGHT_NAMES | {OUTPUT[0]: OUTPUT_FIRST[OUTPUT[0]]},
    ),
    "output-norm-matched-first": known(
        "Names with attention.output.LayerNorm were caught by what was meant for output.LayerNorm.",
        "The short name is also the end of the long one, so replacing the short one first leaves "
        "half a name behind. Which of the two has to come first?",
        table=RIGHT_NAMES | {OUTPUT[1]: OUTPUT_FIRST[OUTPUT[1]]},
    ),
    **{
        f"self-output-renamed-again{end}": known(
            "attention.output becomes self_output, and that once more, self_feed_forward.",
            "Each replace works on what the one before it left. self_output.dense ends in "
            "output.dense, self_output.norm in output.norm. Do you look for these afterwards?",
            wrong=build_names(
                table=RIGHT_NAMES
                | {name: f"self_{RIGHT_NAMES[name.split('.', 1)[1]]}" for name in again},
                unknown=unknown,
            ),
        )
        for end, again, unknown in (
            ("", OUTPUT, lambda name, short: short),
            ("-norm", OUTPUT[1:], lambda name, short: short),
            ("-norm-everywhere", OUTPUT[1:], lambda name, short: short.replace(*NORM)),
        )
    },
    "output-taken-for-output": known(
        "Names with attention.output become those of the feed-forward part.",
        "output.dense is also the end of attention.output.dense. Whoever asks only for the short "
        "one finds both.",
        table=RIGHT_NAMES | {f"attention.{end}": RIGHT_NAMES[end] for end in ENDS},
    ),
    "norms-swapped": known(
        "The two norms of a layer have changed places.",
        "A layer has one after the attention and one after the feed-forward part. Both are called "
        "LayerNorm; what stands before it tells them apart.",
        table=_swapped("attention.output.LayerNorm", "output.LayerNorm"),
    ),
    "output-is-output": known(
        "attention.output.dense and output.dense have changed places.",
        "The one belongs to the attention: W_o. The other is the second matrix of the feed-forward "
        "part: W_2.",
        table=_swapped("attention.output.dense", "output.dense"),
    ),
    "queries-and-keys-swapped": known(
        "query and key have changed places.",
        "The product of both is not the same the other way round: rows belong to queries.",
        table=_swapped("attention.self.query", "attention.self.key"),
    ),
    "keys-and-values-swapped": known(
        "key and value have changed places.",
        "Keys are compared with, values are averaged. Queries, keys and values have matrices of "
        "the same shape, so nothing warns you.",
        table=_swapped("attention.self.key", "attention.self.value"),
    ),
    "wide-and-narrow-swapped": known(
        "intermediate.dense and output.dense have changed places.",
        "The first widens a word, the second brings it back.",
        table=_swapped("intermediate.dense", "output.dense"),
    ),
    "positions-and-segments-swapped": known(
        "The tables of positions and segments have changed places.",
        "position_embeddings has a row for each place in a text, token_type_embeddings one for "
        "each segment.",
        section="Three tables, one sum",
        table=_swapped("embeddings.position_embeddings", "embeddings.token_type_embeddings"),
    ),
    "embeddings-missed": known(
        "Your names in embeddings are still the published ones.",
        "They have other names in the course too, outside the layers.",
        table={k: v for k, v in RIGHT_NAMES.items() if not k.startswith("embeddings.")},
    ),
    "biases-dropped": known(
        "The biases are missing.",
        "Each name ends in weight or bias, and both have to arrive.",
        keep=lambda module, last: last != "bias",
    ),
    "pooler-dropped": known(
        "The pooler is missing.",
        "Its name is the same on both sides. It still has to be in the result.",
        keep=lambda module, last: module != "pooler.dense",
    ),
    "other-names-dropped": known(
        "Names that are not in the table are missing from your result.",
        "They stay as they are: who loads the weights should hear of them, and they may matter to "
        "someone else.",
        rest=lambda name: False,
    ),
    "old-names-kept": known(
        "Your result has the published names as well as the new ones.",
        "Loading would complain about every one of them.",
        old=lambda name, new: name != new,
    ),
    "weights-transposed": known(
        "You transpose the weights of the nn.Linear.",
        "Both sides keep them as (out, in), the way nn.Linear does: nothing has to be turned.",
        turn=lambda module, X: X.T if X.dim() == 2 and "embeddings" not in module else X,
    ),
    "everything-transposed": known(
        "You transpose every matrix.",
        "Both sides keep them the same way: nn.Linear as (out, in), nn.Embedding with a row for "
        "each entry.",
        turn=lambda module, X: X.T if X.dim() == 2 else X,
    ),
    "nothing-renamed": known(
        "You return the names as they were.",
        "Each name in the table has another one in the course, except the pooler's.",
        wrong=lambda state_dict: dict(state_dict),
    ),
    "names-for-tensors": known(
        "Your result has the published names. If the new ones are its values, where are the "
        "tensors?",
        "The result has to be ready to load: the new names, each with its tensor.",
        wrong=_only_names,
    ),
    "given-dict-changed": known(
        "The state_dict that you are given is no longer what it was.",
        "Whoever calls still needs it. Put what you rename into a new dict, and take nothing out "
        "of the given one (as pop and del do).",
        wrong=_emptied,
    ),
}

TASK = Task(
    "06-map_weights",
    interop.map_weights,
    names_cases,
    run=run_names,
    examine=examine_names,
    mistakes=read_again("The same weights under other names", NAMES),
    build=build_names,
    alone=("old-names-kept",),
    forbidden=("mha_course.interop.map_weights",),
    number=6,
)
