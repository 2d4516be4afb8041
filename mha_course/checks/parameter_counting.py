"""The tasks of lesson 05: parameters of a layer, a block and a BERT, FLOPs, cache, head width."""

import re

from mha_course import counting
from mha_course.checks.task import Case, Task

__all__ = ["TASKS", "VERSION"]

VERSION = 1


def attention_cases(draw):
    """Cases for `count_attention`."""
    return [
        Case("width 3, biases by default", {"num_hiddens": 3}),
        Case("width 3, without biases", {"num_hiddens": 3, "bias": False}),
        Case("width 7, with biases", {"num_hiddens": 7, "bias": True}),
        Case("the lesson's layer without biases", {"num_hiddens": 512, "bias": False}),
        Case("a width drawn at random", {"num_hiddens": _size(draw, 8, 400)}),
    ]


def block_cases(draw):
    """Cases for `count_block`."""
    sizes = _size(draw, 8, 90), _size(draw, 91, 400)
    return [
        Case("width 2, inner width 5", {"num_hiddens": 2, "ffn_num_hiddens": 5}),
        Case("inner width below the width", {"num_hiddens": 7, "ffn_num_hiddens": 3}),
        Case("BERT-base", {"num_hiddens": 768, "ffn_num_hiddens": 3072}),
        Case("drawn at random", dict(zip(("num_hiddens", "ffn_num_hiddens"), sizes, strict=True))),
    ]


def bert_cases(draw):
    """Cases for `count_bert`: the first two are small, the second leaves the defaults alone."""
    small = {"vocab_size": 7, "num_hiddens": 2, "num_layers": 3, "ffn_num_hiddens": 5}
    base = {"vocab_size": 30_522, "num_hiddens": 768, "num_layers": 12, "ffn_num_hiddens": 3072}
    drawn = {name: _size(draw, 8, 60) for name in (*small, "max_len", "num_segments")}
    return [
        Case("a tiny BERT", small | {"max_len": 11, "num_segments": 13}),
        Case("a tiny BERT, 512 positions and 2 segments by default", small),
        Case("more layers, one segment", small | {"num_layers": 19, "num_segments": 1}),
        Case("BERT-base", base),
        Case("drawn at random", drawn),
    ]


def flops_cases(draw):
    """Cases for `attention_flops`: shorter and longer than the width, and as long."""
    return [
        Case("3 words of width 2", {"num_tokens": 3, "num_hiddens": 2}),
        Case("fewer words than features", {"num_tokens": 5, "num_hiddens": 12}),
        Case("as many words as features", {"num_tokens": 7, "num_hiddens": 7}),
        Case("one word", {"num_tokens": 1, "num_hiddens": 11}),
        Case("BERT-base, 512 words", {"num_tokens": 512, "num_hiddens": 768}),
        Case(
            "drawn at random", {"num_tokens": _size(draw, 8, 90), "num_hiddens": _size(draw, 8, 90)}
        ),
    ]


def cache_cases(draw):
    """Cases for `cache_bytes`: the first leaves the defaults alone."""
    names = ("num_tokens", "num_layers", "num_kv_heads", "head_width")
    more = ("bytes_per_number", "batch_size")
    small = dict(zip(names, (5, 2, 4, 3), strict=True))
    gpt2 = dict(zip(names, (1024, 12, 12, 64), strict=True))
    return [
        Case("the lesson's example", small),
        Case("4 bytes a number", small | {"bytes_per_number": 4}),
        Case("a batch of 7", small | {"bytes_per_number": 2, "batch_size": 7}),
        Case("one layer, one head, one byte", dict.fromkeys(names, 1) | {"bytes_per_number": 1}),
        Case("GPT-2 small, 1,024 words", gpt2),
        Case("drawn at random", {name: _size(draw, 2, 30) for name in (*names, *more)}),
    ]


def width_cases(draw):
    """Cases for `head_width`, those that divide and those that have to be refused."""
    heads, width = _size(draw, 3, 12), _size(draw, 21, 80)
    return [
        Case("width 12, 4 heads", {"num_hiddens": 12, "num_heads": 4}),
        Case("width 10, 4 heads: to be refused", {"num_hiddens": 10, "num_heads": 4}),
        Case("width 4, 8 heads: to be refused", {"num_hiddens": 4, "num_heads": 8}),
        Case("one head", {"num_hiddens": 7, "num_heads": 1}),
        Case("as many heads as features", {"num_hiddens": 7, "num_heads": 7}),
        Case("an odd width, 3 heads", {"num_hiddens": 45, "num_heads": 3}),
        Case("width 768, 10 heads: to be refused", {"num_hiddens": 768, "num_heads": 10}),
        Case("drawn at random", {"num_hiddens": heads * width, "num_heads": heads}),
        Case(
            "drawn at random, to be refused",
            {"num_hiddens": heads * width + 1, "num_heads": heads},
        ),
    ]


def run_head_width(answer, inputs):
    """Call an answer to `head_width`, and make a value of its refusal, so that it is compared.

    Only a ValueError is a refusal, and only where the heads do not divide the width.
    """
    num_hiddens, num_heads = inputs.values()
    call = f"head_width({num_hiddens}, {num_heads})"
    if num_hiddens % num_heads == 0:
        return {call: answer(num_hiddens, num_heads)}
    both = f"the message names both numbers, {num_hiddens} and {num_heads}"
    try:
        return {call: answer(num_hiddens, num_heads), both: False}
    except ValueError as error:
        numbers = re.findall(r"\d+", str(error))
        return {call: "ValueError", both: {str(num_hiddens), str(num_heads)} <= set(numbers)}


def _size(draw, low, high):
    return int(draw.integers(low, high))


FORBIDDEN = ("mha_course.counting",)

TASKS = [
    Task(
        "05-count_attention",
        counting.count_attention,
        attention_cases,
        returns=("the number of parameters",),
        forbidden=FORBIDDEN,
    ),
    Task(
        "05-count_block",
        counting.count_block,
        block_cases,
        returns=("the number of parameters",),
        forbidden=FORBIDDEN,
    ),
    Task(
        "05-count_bert",
        counting.count_bert,
        bert_cases,
        returns=("the number of parameters",),
        forbidden=FORBIDDEN,
    ),
    Task(
        "05-attention_flops",
        counting.attention_flops,
        flops_cases,
        returns=("the number of FLOPs",),
        forbidden=FORBIDDEN,
    ),
    Task(
        "05-cache_bytes",
        counting.cache_bytes,
        cache_cases,
        returns=("the number of bytes",),
        forbidden=FORBIDDEN,
    ),
    Task(
        "05-head_width",
        counting.head_width,
        width_cases,
        run=run_head_width,
        forbidden=FORBIDDEN,
    ),
]
