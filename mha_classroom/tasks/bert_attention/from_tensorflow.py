"""Task 6.9, from_tensorflow: the checkpoint that BERT's authors published in 2018."""

import re

from mha_classroom.checks.examining import equal, total
from mha_classroom.checks.showing import Text, describe
from mha_classroom.checks.task import AnswerError, Case, Task, and_in_float32, known, read_again
from mha_classroom.tasks.bert_attention.map_weights import (
    PARTS,
    of_which_layers,
    what_became_of,
)
from mha_classroom.tasks.bert_attention.runs import run_names
from mha_course.interop import BERT_NAMES

TABLES = ("word_embeddings", "position_embeddings", "token_type_embeddings")
ENDS = {"kernel": "weight", "gamma": "weight", "bias": "bias", "beta": "bias"}
OTHERS = {
    "cls/predictions/output_bias": (5,),
    "cls/predictions/transform/dense/kernel": (2, 2),
    "cls/predictions/transform/LayerNorm/gamma": (2,),
    "cls/seq_relationship/output_weights": (2, 2),
    "global_step": (1,),
}
MOMENTS = ("adam_m", "adam_v")


@and_in_float32
def variables_cases(draw):
    """Checkpoints, or some of their entries."""

    def case(name, shapes):
        return Case(name, {n: draw.normal(*shape) for n, shape in shapes.items()})

    layer, outside = layer_shapes(0), outside_shapes()
    few = [
        f"bert/encoder/layer_0/{n}" for n in ("attention/self/query/kernel", "output/dense/bias")
    ]
    kept = {"bert/embeddings/word_embeddings": (5, 2), "bert/pooler/dense/kernel": (2, 2)}
    kept |= dict.fromkeys(("bert/embeddings/LayerNorm/gamma", few[1]), (2,))
    moments = {f"{n}/{moment}": shape for n, shape in kept.items() for moment in MOMENTS}
    alike = [f"{model}/pooler/dense/kernel" for model in ("bert", "bert_small", "albert")]
    high = {n: s for k in (11, 1, 10, 0, 123) for n, s in layer_shapes(k).items() if "output" in n}
    return [
        case("a few entries", {n: layer[n] for n in few}),
        case("one layer", layer),
        case("outside the layers", outside),
        case("with what training needs besides", kept | moments | OTHERS),
        case("other models beside it", dict.fromkeys(alike, (2, 2))),
        case("layers out of order", high),
    ]


def outside_shapes():
    sizes = dict(zip(TABLES, ((5, 2), (3, 2), (2, 2)), strict=True))
    tables = {f"bert/embeddings/{table}": size for table, size in sizes.items()}
    norm = {f"bert/embeddings/LayerNorm/{last}": (2,) for last in ("gamma", "beta")}
    return tables | norm | {"bert/pooler/dense/kernel": (2, 2), "bert/pooler/dense/bias": (2,)}


def layer_shapes(number):
    """{name: shape} of a layer, 2 wide and 3 inside."""
    shapes = {}
    for part in PARTS:
        before = f"bert/encoder/layer_{number}/{part.replace('.', '/')}/"
        if "Norm" in part:
            shapes |= {f"{before}gamma": (2,), f"{before}beta": (2,)}
        else:
            widths = {"intermediate.dense": (2, 3), "output.dense": (3, 2)}.get(part, (2, 2))
            shapes |= {f"{before}kernel": widths, f"{before}bias": widths[1:]}
    return shapes


@total
def examine_variables(inputs, seen):
    """The tensors under the names that the answer gives them.

    Raises: AnswerError if the given dict changed, for what is no dict, and for the first name that
        is missing.
    """
    mapped = seen["mapped"]
    if list(seen["left"]) != list(inputs) or any(v is not True for v in seen["left"].values()):
        raise AnswerError("Afterwards the given dict is not what it was: make a new one.")
    if not isinstance(mapped, dict):
        raise AnswerError(f"from_tensorflow has to return a dict, got {describe(mapped)}.")
    wanted = {new: n for n in inputs for new in build_variables()({n: inputs[n]})}
    lost = [new for new in wanted if new not in mapped]
    if lost:
        yours = [str(n) for n, X in mapped.items() if _is_of(X, inputs[wanted[lost[0]]])]
        raise AnswerError(
            f"{what_became_of(wanted[lost[0]], lost[0], yours)} Names that are missing "
            f"from your result: {len(lost)} of {len(wanted)}."
            + of_which_layers(lost, wanted, yours)
        )
    besides = _besides([str(n) for n in mapped if n not in wanted])
    return {BESIDES: besides} | {f"the tensor {name}": mapped[name] for name in wanted}


def _is_of(X, given):
    """Whether X is the given tensor, or its transpose."""
    return equal(X, given) or given.dim() == 2 and equal(X, given.mT)


BESIDES = "the rest of your result (besides the weights of the BERT)"


def _besides(names):
    """The kinds of names that should not be there, with an example."""
    kinds = {"numbers of the optimiser" if "adam" in n else "other names" for n in names}
    text = " and ".join(sorted(kinds)) or "nothing"
    return Text(text, f"{text}, such as {names[0]}" if names else None)


def _new_name(module, last):
    """The course's name of a module, "encoder.layer.3.output.dense", and of its tensor."""
    layer = re.fullmatch(r"encoder\.layer\.(\d+)\.(.+)", module)
    inner = layer[2] if layer else module
    prefix = f"encoder.layers.{layer[1]}." if layer else ""
    return f"{prefix}{BERT_NAMES[inner]}.{last}" if inner in BERT_NAMES else f"{module}.{last}"


def build_variables(
    number=lambda name: re.sub(r"/layer_(\d+)/", r"/layer/\1/", name),
    ends=ENDS,
    table=lambda name: f"{name}/weight",
    turn=lambda name, X: X.T if name.endswith("kernel") else X,
    ours=lambda name: name.startswith("bert/"),
    moment=lambda name: name.endswith(MOMENTS),
    other=lambda name: None,
    new_name=_new_name,
):
    def from_tensorflow(variables):
        mapped = {}
        for name, X in variables.items():
            if not ours(name) or moment(name):
                if other(name):
                    mapped[other(name)] = X
                continue
            path = re.sub("/adam_.$", "", number(name)).split("/", 1)[-1]
            if path.endswith("_embeddings"):
                path = table(path)
            *parts, last = path.split("/")
            mapped[new_name(".".join(parts), ends.get(last, last))] = turn(name, X)
        return mapped

    return from_tensorflow


def _any_end(module, last):
    """The same where a table may stand at the end of a name."""
    table = f"{module}.{last}"
    return BERT_NAMES[table] if table in BERT_NAMES else _new_name(module, last)


def _as_it_was(module, last):
    """The same by an answer to 6.6 that renames what ends in weight or bias."""
    return _new_name(module, last) if last in ("weight", "bias") else f"{module}.{last}"


def _published(module, last):
    """The name that transformers gives the tensor."""
    return f"{module}.{last}"


def _emptied(variables):
    mapped = build_variables()(variables)
    variables.clear()
    return mapped


def _numbered(name):
    return re.sub(r"/layer_(\d+)/", r"/layer/\1/", name)


NORM = "nn.LayerNorm calls gamma weight, and beta bias."

VARIABLES = {
    "kernels-not-transposed": known(
        "In your result no kernel is transposed. If you do it, does the name still end in kernel "
        "there?",
        "TensorFlow keeps (in, out), nn.Linear (out, in). Most matrices of a BERT are square, so "
        "they would load without an error.",
        turn=lambda name, X: X,
    ),
    "only-misfits-transposed": known(
        "In your result only the kernels that are not square are transposed.",
        "Those are the ones that would not load. The square ones are the other way round, too, "
        "and no shape tells.",
        turn=lambda name, X: X.T if name.endswith("kernel") and X.shape[0] != X.shape[1] else X,
    ),
    "reshaped-for-transposed": known(
        "You give the kernels their new shape with reshape or view, which does not transpose.",
        "The numbers stay in their order there, so rows do not become columns. A square kernel "
        "does not change at all.",
        turn=lambda name, X: X.reshape(X.shape[::-1]) if name.endswith("kernel") else X,
    ),
    "tables-transposed-too": known(
        "You transpose the tables of embeddings as well.",
        "They have a row for each entry on both sides. Only a kernel is the other way round.",
        turn=lambda name, X: X.T if X.dim() == 2 else X,
    ),
    "gamma-and-beta-swapped": known(
        "gamma and beta have changed places.",
        "gamma is what a LayerNorm multiplies with, beta what it adds. Both have one shape, so "
        "nothing warns you.",
        section="Joined, added, normalised",
        ends=ENDS | {"gamma": "bias", "beta": "weight"},
    ),
    **{
        f"{id}{end}": known(
            did, why, ends={n: ENDS[n] for n in ENDS if n not in kept.split()}, **renamed
        )
        for id, did, why, kept in (
            ("gamma-and-beta-kept", "Your names still end in gamma and beta.", NORM, "gamma beta"),
            ("gamma-kept", "Your names of norms still end in gamma.", NORM, "gamma"),
            ("beta-kept", "Your names of norms still end in beta.", NORM, "beta"),
            (
                "kernel-kept",
                "Your names still end in kernel.",
                "nn.Linear calls it weight.",
                "kernel",
            ),
        )
        for end, renamed in {"": {}, "-as-it-was": {"new_name": _as_it_was}}.items()
    },
    "number-not-split-off": known(
        "You leave layer_0 as it is, and 6.6 knows the name layer.0.",
        "TensorFlow's names have an underscore in front of a layer's number, where the other names "
        "have a dot.",
        number=lambda name: name,
    ),
    "prefix-by-lstrip": known(
        "Your names in encoder and embeddings lost their first letter. Do you cut bert/ with "
        "lstrip or strip?",
        "Both take a set of letters, not a word: they go on as long as the next letter is one of "
        "b, e, r, t or a slash, and the e of encoder is.",
        number=lambda name: "bert/" + _numbered(name).lstrip("bert/"),
    ),
    "prefix-kept": known(
        "Your names begin with bert.",
        "The course's model is the BERT itself, so that part goes.",
        new_name=lambda module, last: f"bert.{_new_name(module, last)}",
    ),
    "prefix-anywhere": known(
        "You take bert/ out of a name wherever it stands.",
        "Other models' names have it too, as albert/ does. What is wanted begins with bert/.",
        other=lambda name: (
            f"{'.'.join(name.replace('bert/', '').split('/')[:-1])}.weight"
            if "bert/" in name and not name.endswith(MOMENTS)
            else None
        ),
    ),
    "pooler-not-transposed": known(
        "You take the pooler's kernel as it is.",
        "It is a kernel like the others: TensorFlow keeps (in, out), nn.Linear (out, in).",
        turn=lambda name, X: X.T if name.endswith("kernel") and "pooler" not in name else X,
    ),
    "only-projections-transposed": known(
        "You transpose the kernels of query, key and value, and no others.",
        "Every kernel is the other way round: TensorFlow keeps (in, out), nn.Linear (out, in).",
        turn=lambda name, X: X.T if name.endswith("kernel") and "/self/" in name else X,
    ),
    "projections-not-transposed": known(
        "In your result the kernels of query, key and value are not transposed.",
        "Only their names have no dense in front of kernel. Every kernel is the other way round: "
        "TensorFlow keeps (in, out), nn.Linear (out, in).",
        wrong=build_variables(turn=lambda name, X: X.T if name.endswith("dense/kernel") else X),
    ),
    "second-matrix-not-transposed": known(
        "The kernel of a layer's output/dense is not transposed, or it is transposed twice.",
        "Every kernel is the other way round: TensorFlow keeps (in, out), nn.Linear (out, in).",
        turn=lambda name, X: (
            X.T if name.endswith("kernel") and not re.search(r"\d/output/dense/", name) else X
        ),
    ),
    "betas-dropped": known(
        "What ends in beta is missing from your result.",
        "A LayerNorm has two vectors, gamma and beta. nn.LayerNorm calls the second one bias.",
        ours=lambda name: name.startswith("bert/") and not name.endswith("beta"),
    ),
    "biases-dropped": known(
        "What ends in bias is missing from your result.",
        "Its last word stays: nn.Linear calls it bias as well, and each of a BERT's has one.",
        ours=lambda name: name.startswith("bert/") and not name.endswith("/bias"),
    ),
    **{
        f"tables-without-weight{end}": known(
            "The tables of embeddings have no .weight at the end.",
            "In the course they are nn.Embedding, whose tensor is called weight.",
            table=lambda name: name,
            new_name=renamed,
        )
        for end, renamed in {"": _any_end, "-as-it-was": _as_it_was}.items()
    },
    "moments-kept": known(
        "Names with adam_m or adam_v are in your result.",
        "Training needs these numbers, two for each weight, and the optimiser keeps them. The "
        "model has no place for them.",
        other=lambda name: (
            name.removeprefix("bert/").replace("/", ".") if name.endswith(MOMENTS) else None
        ),
    ),
    "moments-for-weights": known(
        "What a name with adam_m or adam_v at its end holds stands in the place of the weight.",
        "They are numbers that the optimiser keeps for each variable. They come after it, so they "
        "overwrite it.",
        moment=lambda name: False,
        turn=lambda name, X: X.T if re.search("kernel(/adam_.)?$", name) else X,
    ),
    "others-kept": known(
        "What does not begin with bert/ is in your result.",
        "The heads of the pretraining and the counter of steps have no place in the model.",
        other=lambda name: None if name.endswith(MOMENTS) else name.replace("/", "."),
    ),
    "bert-anywhere": known(
        "What begins with albert/ overwrites in your result what begins with bert/.",
        "Another model's name can have bert in it. Do you ask whether it is in a name, in whatever "
        "place, or leave out only cls and global_step? What is wanted begins with bert/.",
        ours=lambda name: "bert" in name,
    ),
    "bert-without-slash": known(
        "What begins with bert_small/ overwrites in your result what begins with bert/.",
        "Another model's name can go on behind bert. Do you ask for it without the slash? What is "
        "wanted begins with bert/.",
        ours=lambda name: name.startswith("bert"),
    ),
    "everything-else-kept": known(
        "What is no weight of the BERT is in your result too.",
        "The numbers of the optimiser, the heads of the pretraining and the counter of steps "
        "have no place in the model.",
        other=lambda name: name,
    ),
    "names-of-transformers": known(
        "Your names are those of 6.6 before they were mapped.",
        "One step is left: from encoder.layer.0.attention.self.query to the course's names.",
        new_name=_published,
    ),
    "layer-number-one-digit": known(
        "Of a layer's number you take one digit only.",
        "BERT-base has 12 layers, 0 to 11: a number can have two digits.",
        number=lambda name: re.sub(r"/layer_(\d)\d*/", r"/layer/\1/", name),
    ),
    "layers-from-1": known(
        "You count the layers from 1.",
        "Both count from 0, so a layer's number stays as it is.",
        number=lambda name: re.sub(
            r"/layer_(\d+)/", lambda found: f"/layer/{int(found[1]) + 1}/", name
        ),
    ),
    "pooler-dropped": known(
        "The pooler is missing.",
        "It is a part of the model, beside embeddings and encoder.",
        ours=lambda name: name.startswith("bert/") and "pooler" not in name,
    ),
    "given-dict-changed": known(
        "The dict that you are given is no longer what it was.",
        "Whoever calls still needs it. Put what you rename into a new dict, and take nothing out "
        "of the given one (as pop and del do).",
        wrong=_emptied,
    ),
}

TASK = Task(
    "06-from_tensorflow",
    build_variables(),
    variables_cases,
    run=run_names,
    examine=examine_variables,
    mistakes=read_again("The same weights under other names", VARIABLES),
    build=build_variables,
    alone=(
        "names-of-transformers",
        "moments-for-weights",
        "everything-else-kept",
        "tables-without-weight",
        "tables-without-weight-as-it-was",
        "gamma-and-beta-kept-as-it-was",
        "gamma-kept-as-it-was",
        "beta-kept-as-it-was",
        "kernel-kept-as-it-was",
        "number-not-split-off",
        "prefix-by-lstrip",
        "prefix-kept",
        "prefix-anywhere",
        "layers-from-1",
    ),
    uses=("06-map_weights",),
    forbidden=("mha_course.interop.map_weights",),
    number=9,
    since=2,
)
