"""The tasks of lesson 05: parameters of a layer, a block and a BERT, FLOPs, cache, head width."""

from mha_course import counting
from mha_course.checks.mistakes.bert_counting import BERT, build_bert
from mha_course.checks.mistakes.block_counting import BLOCK, build_block
from mha_course.checks.mistakes.cache_counting import CACHE, build_cache
from mha_course.checks.mistakes.flops_counting import FLOPS, build_flops
from mha_course.checks.mistakes.parameter_counting import ATTENTION, build_attention
from mha_course.checks.mistakes.width_sharing import WIDTH, build_width
from mha_course.checks.task import Case, Task
from mha_course.checks.width_refusing import examine_head_width, run_head_width, width_cases

__all__ = ["LENDS", "TASKS", "VERSION"]

VERSION = 1
LENDS = ()  # an answer needs nothing of the course


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
    sizes = {"max_len": 512, "num_segments": 1}  # both, since an answer gets them by position
    drawn = {name: _size(draw, 8, 60) for name in (*small, *sizes)}
    return [
        Case("a tiny BERT", small | {"max_len": 11, "num_segments": 13}),
        Case("a tiny BERT, 512 positions and 2 segments by default", small),
        Case("more layers, one segment", small | {"num_layers": 19, **sizes}),
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
        Case("a long text", {"num_tokens": 4097, "num_hiddens": 257}),
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
        Case("a long text", dict(zip(names, (32_769, 33, 9, 129), strict=True))),
        Case("drawn at random", {name: _size(draw, 2, 30) for name in (*names, *more)}),
    ]


def _size(draw, low, high):
    return int(draw.integers(low, high))


FORBIDDEN = ("mha_course.counting",)

# The references of what later tasks call are not those of the package: these stand in for a
# learner's function that is wrong, and an answer may not call the package.
TASKS = [
    Task(
        "05-count_attention",
        build_attention(),
        attention_cases,
        returns=("the number of parameters",),
        mistakes=ATTENTION,
        build=build_attention,
        forbidden=FORBIDDEN,
    ),
    Task(
        "05-count_block",
        build_block(),
        block_cases,
        returns=("the number of parameters",),
        mistakes=BLOCK,
        build=build_block,
        uses=("05-count_attention",),
        forbidden=FORBIDDEN,
    ),
    Task(
        "05-count_bert",
        counting.count_bert,
        bert_cases,
        returns=("the number of parameters",),
        mistakes=BERT,
        build=build_bert,
        uses=("05-count_attention", "05-count_block"),
        forbidden=FORBIDDEN,
    ),
    Task(
        "05-attention_flops",
        counting.attention_flops,
        flops_cases,
        returns=("the number of FLOPs",),
        mistakes=FLOPS,
        build=build_flops,
        forbidden=FORBIDDEN,
    ),
    Task(
        "05-cache_bytes",
        counting.cache_bytes,
        cache_cases,
        returns=("the number of bytes",),
        mistakes=CACHE,
        build=build_cache,
        forbidden=FORBIDDEN,
    ),
    Task(
        "05-head_width",
        counting.head_width,
        width_cases,
        run=run_head_width,
        examine=examine_head_width,
        mistakes=WIDTH,
        build=build_width,
        forbidden=FORBIDDEN,
    ),
]
