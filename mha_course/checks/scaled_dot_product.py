"""The tasks of lesson 02: scores, masked softmax, causal mask, attention, a leak to mend."""

import math
from functools import partial

import torch

from mha_course import attention
from mha_course.checks.causal_attention import (
    causal_mask,
    make_batch,
    make_qkv,
    mask_cases,
    mended_attention,
    mending_cases,
)
from mha_course.checks.mistakes.causal_mask import MASK, build_mask
from mha_course.checks.mistakes.masked_softmax import SOFTMAX, build_masked_softmax
from mha_course.checks.mistakes.mended_attention import MENDED, build_mended
from mha_course.checks.mistakes.scaled_dot_product import ATTENTION, build_attention
from mha_course.checks.mistakes.scaled_scores import SCORES, build_scores
from mha_course.checks.task import Case, Task

__all__ = ["LENDS", "TASKS", "VERSION"]

VERSION = 2  # of the exercise set
LENDS = ()  # an answer needs nothing of the course

FINISHED = (
    "mha_course.attention.scaled_dot_product_attention",
    "mha_course.attention.DotProductAttention",
    "d2l.torch.DotProductAttention",
    "torch.nn.functional.scaled_dot_product_attention",
    "torch._scaled_dot_product_attention_math",
    "torch._scaled_dot_product_flash_attention_for_cpu",
    "torch.nn.modules.activation.MultiheadAttention",
    "torch.nn.functional.multi_head_attention_forward",
)


def score_cases(draw):
    """Cases for `scaled_scores`."""

    def case(name, num_queries, num_keys, d_k, batch=2):
        queries, keys = draw.normal(batch, num_queries, d_k), draw.normal(batch, num_keys, d_k)
        return Case(name, {"queries": queries, "keys": keys})

    by_hand = {
        "queries": make_batch([[2, 0, 0, 0], [1, 1, 1, 1]]),
        "keys": make_batch([[1, 2, 3, 4], [0, 0, 2, 0], [4, 0, -2, 6]]),
    }
    return [
        Case("2 queries, 3 keys of width 4", by_hand),
        case("2 sequences, 3 queries, 5 keys of width 7", 3, 5, 7),
        case("as many queries as keys", 5, 5, 3),
        case("3 sequences, 3 queries, 3 keys of width 3", 3, 3, 3, batch=3),
        case("width 1", 2, 5, 1, batch=3),
        case("one query, one key", 1, 1, 5, batch=3),
        Case("transposed", {"queries": draw.normal(2, 7, 3).mT, "keys": draw.normal(2, 7, 5).mT}),
    ]


def scaled_scores(queries, keys):
    """A right answer to `02-scaled_scores`."""
    return queries @ keys.transpose(1, 2) / math.sqrt(queries.shape[-1])


def softmax_cases(draw):
    """Cases for `masked_softmax`."""

    def case(name, sizes, valid_lens=None):
        inputs = {"scores": draw.normal(*sizes, scale=2.0)}
        if valid_lens is not None:
            inputs["valid_lens"] = torch.as_tensor(valid_lens)
        return Case(name, inputs)

    by_hand = {
        "scores": torch.tensor([[[1, 2, 5], [2, 2, 4]], [[1, 2, 5], [4, 4, 8]]]).double().log(),
        "valid_lens": torch.tensor([2, 3]),
    }
    large = draw.normal(4, 2, 4)
    large[0] += torch.tensor([-1000, -1000, 1000, 1000])
    large[1] += torch.tensor([1000, 1000, 1000, -1000])
    large[2] += torch.tensor([0, 0, 0, 1000])
    some_large = {"scores": large, "valid_lens": torch.tensor([2, 3, 3, 4])}
    return [
        Case("lengths 2 and 3; exp of the scores: 1 2 5, 2 2 4, 1 2 5, 4 4 8", by_hand),
        case("valid_lens=None", (2, 3, 5)),
        case("3 sequences of unequal length", (3, 5, 7), [6, 2, 4]),
        case("one length a query", (2, 3, 7), [[1, 4, 7], [5, 2, 3]]),
        case("as many sequences as queries", (3, 3, 5), [5, 1, 3]),
        case("as many sequences as queries and keys", (3, 3, 3), [[1, 3, 2], [2, 2, 1], [3, 1, 1]]),
        case("a sequence of length 0", (3, 2, 5), [5, 0, 1]),
        case("a query of length 0", (2, 3, 5), [[2, 0, 4], [0, 3, 5]]),
        case("as many queries as keys", (2, 5, 5), draw.lengths(2, 5)),
        Case("scores near 1000 and -1000", some_large),
        case("one query, one key, of length 0", (1, 1, 1), [0]),
        case("one key", (1, 3, 1), [1]),
        case("one query", (3, 1, 4), [4, 1, 2]),
        case("only lengths of 0, in int32", (2, 3, 5), torch.tensor([0, 0], dtype=torch.int32)),
        Case("transposed", {"scores": draw.normal(2, 7, 3).mT, "valid_lens": torch.tensor([4, 7])}),
    ]


def attention_cases(draw):
    """Cases for `scaled_dot_product_attention`."""

    def case(name, *sizes, valid_lens=None):
        inputs = make_qkv(draw, *sizes)
        if valid_lens is not None:
            inputs["valid_lens"] = torch.tensor(valid_lens)
        return Case(name, inputs)

    shares = make_batch([[1, 0], [2, 0], [5, 0]]).log().nan_to_num(neginf=0.0)  # exp: 1, 2, 5
    by_hand = {
        "queries": make_batch([[2, 0, 0, 0], [0, 0, 0, 0]]),
        "keys": torch.cat([shares, torch.zeros_like(shares)], dim=-1),
        "values": make_batch([[24, 0], [0, 12], [0, 24]]),
    }
    with_lengths = {
        "queries": make_batch([[2**0.5, 0], [0, 0]]).repeat(2, 1, 1),
        "keys": shares.repeat(2, 1, 1),
        "values": by_hand["values"].repeat(2, 1, 1),
        "valid_lens": torch.tensor([2, 3]),
    }
    large = {
        "queries": make_batch([[30], [-30]]).repeat(3, 1, 1),
        "keys": make_batch([[30], [10], [-30]]).repeat(3, 1, 1),
        "values": draw.normal(3, 3, 5),
        "valid_lens": torch.tensor([2, 3, 2]),
    }
    large["keys"][2] = torch.tensor([[30.0], [29], [28]])  # hidden scores like those that are not
    close = {
        "queries": make_batch([[100]]),
        "keys": make_batch([[10], [9.99]]),
        "values": make_batch([[0], [1]]),
    }
    return [
        Case("query 0 likes the keys 1 : 2 : 5, query 1 all alike", by_hand),
        Case("the same in 2 sequences of width 2, with lengths 2 and 3", with_lengths),
        case("2 sequences, 3 queries, 5 keys, d_k = 7, d_v = 11", 2, 3, 5, 7, 11),
        case("sequences of unequal length", 2, 5, 5, 3, 7, valid_lens=[5, 2]),
        case("one length a query", 2, 3, 7, 5, 2, valid_lens=[[1, 4, 7], [5, 2, 3]]),
        case("all sizes 3", 3, 3, 3, 3, 3, valid_lens=[2, 3, 1]),
        case("a sequence of length 0", 3, 2, 5, 7, 3, valid_lens=[5, 0, 1]),
        case("a query of length 0", 2, 3, 5, 2, 7, valid_lens=[[2, 0, 4], [0, 3, 5]]),
        Case("scores up to 900 in size", large),
        Case("scores 1000 and 999", close),
        case("one query, values of width 1", 2, 1, 5, 3, 1, valid_lens=[5, 2]),
        case("one key", 2, 3, 1, 5, 2),
    ]


def scaled_dot_product_attention(queries, keys, values, valid_lens=None):
    """A right answer to `02-scaled_dot_product_attention`, free to stand in for it in 2.5."""
    weights = attention.dot_product_weights(queries, keys, valid_lens, None)
    return weights @ values, weights


def score_stages(inputs):
    """What a right `scaled_scores` computes on the way."""
    products = inputs["queries"] @ inputs["keys"].mT
    return {
        "the dot products of queries and keys": products,
        "the scaled scores": products / math.sqrt(inputs["queries"].shape[-1]),
    }


def attention_stages(attend, inputs):
    """What a right attention computes on the way."""
    output, weights = attend(**inputs)
    return score_stages(inputs) | {"the weights": weights, "the weighted sums": output}


TASKS = [
    Task(
        "02-scaled_scores",
        scaled_scores,
        score_cases,
        mistakes=SCORES,
        build=build_scores,
        stages=score_stages,
    ),
    Task(
        "02-masked_softmax",
        attention.masked_softmax,
        softmax_cases,
        mistakes=SOFTMAX,
        build=build_masked_softmax,
        forbidden=(
            "mha_course.attention.masked_softmax",
            "mha_course.attention.length_mask",
            "d2l.torch.masked_softmax",
        ),
    ),
    Task("02-causal_mask", causal_mask, mask_cases, mistakes=MASK, build=build_mask),
    Task(
        "02-scaled_dot_product_attention",
        scaled_dot_product_attention,
        attention_cases,
        returns=("output", "weights"),
        mistakes=ATTENTION,
        build=build_attention,
        stages=partial(attention_stages, scaled_dot_product_attention),
        uses=("02-scaled_scores", "02-masked_softmax"),
        forbidden=FINISHED,
    ),
    Task(
        "02-mended_attention",
        mended_attention,
        mending_cases,
        returns=("output", "weights"),
        mistakes=MENDED,
        build=build_mended,
        stages=partial(attention_stages, mended_attention),
        since=2,  # scores of any size
        uses=(
            "02-scaled_scores",
            "02-masked_softmax",
            "02-causal_mask",
            "02-scaled_dot_product_attention",
        ),
        forbidden=FINISHED,
    ),
]
