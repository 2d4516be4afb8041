"""The tasks of lesson 06: the mask, self-attention, its output, a layer, other names."""

import torch

from mha_course import bert, interop
from mha_course.checks.bert_modules import attention_cases, layer_cases, output_cases
from mha_course.checks.bert_runs import (
    examine_attention,
    examine_layer,
    examine_output,
    run_attention,
    run_layer,
    run_output,
)
from mha_course.checks.bert_stages import attention_stages, layer_stages, output_stages
from mha_course.checks.evidence import total
from mha_course.checks.mistakes.bert_layers import LAYER, build_layer
from mha_course.checks.mistakes.bert_mask import MASK, build_mask
from mha_course.checks.mistakes.bert_names import NAMES, build_names
from mha_course.checks.mistakes.bert_self_attention import ATTENTION, build_attention
from mha_course.checks.mistakes.bert_self_output import OUTPUT, build_output
from mha_course.checks.showing import describe
from mha_course.checks.task import AnswerError, Case, Task

__all__ = ["LENDS", "TASKS", "VERSION"]

VERSION = 1  # of the exercise set: counted up when a task's statement or signature changes
# What an answer may import of the course while it is graded.
LENDS = ("mha_course.bert.BertConfig", "mha_course.bert.BertFeedForward")

LIBRARY = (
    "torch.nn.modules.activation.MultiheadAttention",
    "torch.nn.functional.multi_head_attention_forward",
)
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


def mask_cases(draw):
    """Cases for `additive_mask`."""

    def case(name, *shape, low=0, **dtype):
        return Case(name, {"attention_mask": draw.integers(low, 1, *shape)} | dtype)

    def fixed(name, rows, **dtype):
        return Case(name, {"attention_mask": torch.tensor(rows)} | dtype)

    lengths = draw.lengths(3, 13)
    return [
        fixed("3 words and 1", [[1, 1, 1], [1, 0, 0]], dtype=torch.float32),
        Case(
            "no dtype given",
            {"attention_mask": (torch.arange(13) < lengths[:, None]).long()},
        ),
        fixed("padding in front", [[0, 0, 1, 1], [1, 1, 1, 1], [0, 1, 1, 1]], dtype=torch.float32),
        case("float64", 5, 11, dtype=torch.float64),
        case("float16", 3, 7, dtype=torch.float16),
        case("bfloat16", 2, 5, dtype=torch.bfloat16),
        case("as many sequences as words", 3, 3, dtype=torch.float32),
        fixed("a sequence of padding alone", [[1, 1], [0, 0]], dtype=torch.float32),
        case("1 sequence of 1 word", 1, 1, low=1, dtype=torch.float32),
    ]


@total
def examine_mask(inputs, mask):
    """The mask's dtype, and the mask in float64, which holds all numbers of the others."""
    if not torch.is_tensor(mask):
        raise AnswerError(f"additive_mask has to return a tensor, got {describe(mask)}.")
    return str(mask.dtype).removeprefix("torch."), mask.double()


def additive_mask(attention_mask, dtype=torch.float64):
    """A right answer to `06-additive_mask`."""
    return bert.additive_mask(attention_mask, dtype)


def names_cases(draw):
    """Cases for `map_weights`: checkpoints, or some of their entries."""

    def case(name, entries, before=""):
        return Case(name, {f"{before}{n}": draw.normal(*s) for n, s in entries.items()})

    few = ["attention.self.query.weight", "attention.output.dense.weight", "output.LayerNorm.bias"]
    some = {f"encoder.layer.0.{n}": (2, 2) if "weight" in n else (2,) for n in few}
    embeddings = _embeddings() | {"pooler.dense.weight": (2, 2), "pooler.dense.bias": (2,)}
    layers = {k: s for n in (0, 1) for k, s in _layer(n).items()}
    high = {k: s for n in (11, 1, 10, 0) for k, s in _layer(n).items() if k.endswith("bias")}
    heads = ("cls.predictions.bias", "cls.predictions.transform.LayerNorm.bias", "qa_outputs.bias")
    return [
        case("a few entries", some),
        case("outside the layers", embeddings),
        case("a whole BERT of two layers", embeddings | layers),
        Case(
            "with a head on top",
            case("", some | embeddings, "bert.").inputs | case("", {n: (2,) for n in heads}).inputs,
        ),
        case("layers out of order", high),
    ]


def _embeddings():
    tables = {"word_embeddings": 5, "position_embeddings": 3, "token_type_embeddings": 3}
    norm = {f"embeddings.LayerNorm.{last}": (2,) for last in ("weight", "bias")}
    return {f"embeddings.{n}.weight": (rows, 2) for n, rows in tables.items()} | norm


def _layer(number):
    """{name: shape} of a layer, 2 wide and 3 inside."""
    names = [f"{part}.{last}" for part in PARTS for last in ("weight", "bias")]
    shapes = {n: (2,) if n.endswith("bias") or "Norm" in n else (2, 2) for n in names} | SHAPES
    return {f"encoder.layer.{number}.{n}": shape for n, shape in shapes.items()}


def run_names(answer, inputs):
    """Return what the answer makes of the tensors, and which given one stands where.

    `origins` has the name of the given tensor for each value of the result, None for others; of
    the given dict it is said for each name whether its tensor still stands there.
    """
    given, names = dict(inputs), {id(X): name for name, X in inputs.items()}
    mapped = answer(given)
    left = {name: X is inputs.get(name) for name, X in given.items()}
    values = list(mapped.values()) if isinstance(mapped, dict) else []
    return {"mapped": mapped, "origins": [names.get(id(X)) for X in values], "left": left}


@total
def examine_names(inputs, seen):
    """The tensors under the names that the answer gives them.

    Raises: AnswerError if the given dict changed, for what is no dict, and for the first name that
        is missing or that nothing becomes.
    """
    mapped = seen["mapped"]
    if list(seen["left"]) != list(inputs) or any(v is not True for v in seen["left"].values()):
        raise AnswerError("Afterwards the given state_dict is not what it was: make a new dict.")
    if not isinstance(mapped, dict):
        raise AnswerError(f"map_weights has to return a dict, got {describe(mapped)}.")
    wanted = dict(zip(inputs, build_names()(inputs), strict=True))
    lost = [n for n in wanted if wanted[n] not in mapped]
    if lost:
        yours = [str(n) for n, X in zip(mapped, seen["origins"], strict=True) if X == lost[0]]
        raise AnswerError(
            f"{_what_became_of(lost[0], wanted[lost[0]], yours)} Names that are "
            f"not there: {len(lost)} of {len(wanted)}."
        )
    extra = [n for n in mapped if n not in wanted.values()]
    if extra:
        raise AnswerError(
            f"Your result has {len(extra)} names that nothing should become, such as {extra[0]}."
        )
    return dict(mapped)


def _what_became_of(name, new, yours):
    should = f"{name} has to {'stay as it is' if name == new else f'become {new}'}"
    if not yours:
        return f"{should}, and it is missing from your result."
    return f"{should}, and in your result it is {' and '.join(yours)}."


TASKS = [
    Task(
        "06-additive_mask",
        additive_mask,
        mask_cases,
        examine=examine_mask,
        returns=("the dtype of the mask", "the mask"),
        mistakes=MASK,
        build=build_mask,
        forbidden=("mha_course.bert.additive_mask",),
    ),
    Task(
        "06-BertSelfAttention",
        bert.BertSelfAttention,
        attention_cases,
        run=run_attention,
        examine=examine_attention,
        returns=("the output", "the output with need_weights=True", "the table of weights"),
        kind="class",
        mistakes=ATTENTION,
        build=build_attention,
        stages=attention_stages,
        forbidden=("mha_course.bert.BertSelfAttention", *LIBRARY),
    ),
    Task(
        "06-BertSelfOutput",
        bert.BertSelfOutput,
        output_cases,
        run=run_output,
        examine=examine_output,
        returns=("the output",),
        kind="class",
        mistakes=OUTPUT,
        build=build_output,
        stages=output_stages,
        forbidden=("mha_course.bert.BertSelfOutput",),
    ),
    Task(
        "06-BertLayer",
        bert.BertLayer,
        layer_cases,
        run=run_layer,
        examine=examine_layer,
        returns=("the output", "the output with need_weights=True", "the table of weights"),
        kind="class",
        mistakes=LAYER,
        build=build_layer,
        stages=layer_stages,
        uses=("06-BertSelfAttention", "06-BertSelfOutput"),
        forbidden=("mha_course.bert.BertLayer",),
    ),
    Task(
        "06-map_weights",
        interop.map_weights,
        names_cases,
        run=run_names,
        examine=examine_names,
        mistakes=NAMES,
        build=build_names,
        forbidden=("mha_course.interop.map_weights",),
    ),
]
