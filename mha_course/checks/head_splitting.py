"""The tasks of lesson 04: split, merge, spread lengths, the module, PyTorch's weights."""

import torch

from mha_course import multihead
from mha_course.checks.mistakes.head_splitting import MERGE, SPLIT
from mha_course.checks.mistakes.loading import LOADING, build_loading
from mha_course.checks.mistakes.multihead_module import MODULE
from mha_course.checks.mistakes.multihead_parts import build_module
from mha_course.checks.mistakes.spread_lens import SPREAD
from mha_course.checks.multihead_module import (
    examine_module,
    module_cases,
    module_stages,
    run_module,
)
from mha_course.checks.task import Case, Task
from mha_course.checks.weight_loading import (
    examine_loading,
    load_torch_weights,
    loading_cases,
    run_loading,
)

__all__ = ["LENDS", "TASKS", "VERSION"]

VERSION = 2  # of the exercise set: counted up when a task's statement or signature changes
LENDS = ("mha_course.attention",)  # what an answer may import of the course while it is graded

LIBRARY = (
    "torch.nn.modules.activation.MultiheadAttention",
    "torch.nn.functional.multi_head_attention_forward",
)


def _digits(num_words, num_hiddens):
    """The lesson's example: 12 is word 1, feature 2."""
    return (10 * torch.arange(num_words)[:, None] + torch.arange(num_hiddens)).double()


def split_cases(draw):
    """Cases for `transpose_qkv`."""
    return [
        Case("the lesson's example", {"X": _digits(3, 4)[None], "num_heads": 2}),
        Case(
            "2 sequences, 5 words, 3 heads of width 7", {"X": draw.normal(2, 5, 21), "num_heads": 3}
        ),
        Case("as many words as heads", {"X": draw.normal(2, 3, 15), "num_heads": 3}),
        Case("one head", {"X": draw.normal(3, 2, 5), "num_heads": 1}),
        Case("sequences of one word", {"X": draw.normal(3, 1, 6), "num_heads": 3}),
        Case("heads of width 1", {"X": draw.normal(2, 4, 3), "num_heads": 3}),
        Case("one word, one feature", {"X": draw.normal(1, 1, 1), "num_heads": 1}),
        Case(
            "X is a transposed tensor, so it is not contiguous",
            {"X": draw.normal(3, 10, 7).transpose(1, 2), "num_heads": 5},
        ),
    ]


def merge_cases(draw):
    """Cases for `transpose_output`: what `transpose_qkv` returns for the cases above."""
    return [
        Case(
            case.name.replace("X is", "X comes from"),
            {"X": multihead.transpose_qkv(**case.inputs), "num_heads": case.inputs["num_heads"]},
        )
        for case in split_cases(draw)
    ]


def spread_cases(draw):
    """Cases for `spread_valid_lens`."""
    return [
        Case("one length a sequence", {"valid_lens": torch.tensor([3, 5]), "num_heads": 3}),
        Case(
            "one length a query",
            {"valid_lens": torch.tensor([[1, 2, 3, 3], [1, 2, 5, 0]]), "num_heads": 3},
        ),
        Case("as many queries as heads", {"valid_lens": draw.integers(0, 9, 3, 2), "num_heads": 2}),
        Case("one of the lengths is 0", {"valid_lens": torch.tensor([3, 0, 5]), "num_heads": 2}),
        Case(
            "as many sequences as queries",
            {"valid_lens": torch.tensor([[1, 2], [3, 4]]), "num_heads": 3},
        ),
        Case("one head", {"valid_lens": draw.integers(0, 9, 5), "num_heads": 1}),
    ]


def spread_valid_lens(valid_lens, num_heads):
    """A right answer to `04-spread_valid_lens`."""
    return valid_lens.repeat_interleave(num_heads, dim=0)


TASKS = [
    Task(
        "04-transpose_qkv",
        multihead.transpose_qkv,
        split_cases,
        mistakes=SPLIT,
        forbidden=(
            "mha_course.multihead.transpose_qkv",
            "mha_course.multihead.split_heads",
            "d2l.torch.transpose_qkv",
        ),
    ),
    Task(
        "04-transpose_output",
        multihead.transpose_output,
        merge_cases,
        mistakes=MERGE,
        forbidden=(
            "mha_course.multihead.transpose_output",
            "mha_course.multihead.merge_heads",
            "d2l.torch.transpose_output",
        ),
    ),
    Task("04-spread_valid_lens", spread_valid_lens, spread_cases, mistakes=SPREAD),
    Task(
        "04-MultiHeadAttention",
        multihead.MultiHeadAttention,
        module_cases,
        run=run_module,
        examine=examine_module,
        returns=("the output",),
        kind="class",
        mistakes=MODULE,
        build=build_module,
        stages=module_stages,
        uses=("04-transpose_qkv", "04-transpose_output", "04-spread_valid_lens"),
        forbidden=(
            "mha_course.multihead.MultiHeadAttention",
            "d2l.torch.MultiHeadAttention",
            *LIBRARY,
        ),
    ),
    Task(
        "04-load_torch_weights",
        load_torch_weights,
        loading_cases,
        run=run_loading,
        examine=examine_loading,
        mistakes=LOADING,
        build=build_loading,
    ),
]
