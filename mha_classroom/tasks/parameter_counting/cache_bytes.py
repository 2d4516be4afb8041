"""Task 5.5, cache_bytes: bytes of a KV cache."""

from operator import floordiv, truediv

from mha_classroom.checks.forms import like
from mha_classroom.checks.task import Case, Task, known, read_again
from mha_classroom.tasks.parameter_counting.count_attention import FORBIDDEN, random_size
from mha_classroom.tasks.parameter_counting.number_types import small_numbers
from mha_classroom.tasks.parameter_counting.runs import run_cache
from mha_course import counting


def cache_cases(draw):
    """The first leaves the defaults alone."""
    names = ("num_tokens", "num_layers", "num_kv_heads", "head_width")
    more = ("bytes_per_number", "batch_size")
    small = dict(zip(names, (5, 2, 4, 3), strict=True))
    gpt2 = dict(zip(names, (1024, 12, 12, 64), strict=True))
    return [
        Case("the lesson's example", small),
        Case("4 bytes a number", small | {"bytes_per_number": 4}),
        Case("a batch of 7", small | {"bytes_per_number": 2, "batch_size": 7}),
        Case("one layer, one head, one byte", dict.fromkeys(names, 1) | {"bytes_per_number": 1}),
        Case("GPT-2 small, 7 texts, the bytes left out", gpt2 | {"batch_size": 7}),
        Case("a long text", dict(zip(names, (32_769, 33, 9, 129), strict=True))),
        Case("drawn at random", {name: random_size(draw, 2, 30) for name in (*names, *more)}),
    ]


def build_cache(
    kept=2,
    tokens=lambda n: n,
    layers=lambda m: m,
    heads=lambda h: h,
    width=lambda w, h: w,
    size=lambda b: b,
    batch=lambda B: B,
    default=2,
    unit=lambda total: total,
):
    def cache_bytes(
        n, num_layers, num_kv_heads, head_width, bytes_per_number=default, batch_size=1
    ):
        kept_of_one = heads(num_kv_heads) * width(head_width, num_kv_heads)
        numbers = kept * tokens(n) * layers(num_layers) * kept_of_one
        return unit(numbers * size(bytes_per_number) * batch(batch_size))

    return cache_bytes


def cache_quantities(inputs):
    names = {
        "num_tokens": "the number of tokens",
        "num_layers": "the number of layers",
        "num_kv_heads": "the number of heads",
        "head_width": "the width of a head",
        "bytes_per_number": "the bytes of a number",
        "batch_size": "the batch size",
    }
    defaults = {"bytes_per_number": 2, "batch_size": 1}
    return {}, {
        text: (inputs | {})[name] if name in inputs else defaults[name]
        for name, text in names.items()
    }


RIGHT = build_cache()


def _swapped(num_tokens, num_layers, num_kv_heads, head_width, batch_size=1, bytes_per_number=2):
    """An answer whose last two arguments stand in the other order."""
    sizes = (num_tokens, num_layers, num_kv_heads, head_width, bytes_per_number, batch_size)
    return RIGHT(*sizes)


def _tokens_shared_out(n, layers, heads, width, b=2, batch_size=1):
    return RIGHT(n // batch_size, layers, heads, width, b, batch_size)


def _batch_added(inputs, value):
    """Whether there are as many tokens as one sequence has and the batch, or one less."""
    n, *sizes = list(inputs.values())[:4]
    b, B = inputs.get("bytes_per_number", 2), inputs.get("batch_size", 1)
    return value in [RIGHT(n + B - less, *sizes, b) for less in (0, 1)]


def _bytes_of_one(n, layers, heads, width, b=2, batch_size=1):
    return RIGHT(n, layers, heads, width, 1, batch_size) // 2 * (1 + b)


def _bytes_and_batch_of_one(n, layers, heads, width, b=2, batch_size=1):
    return RIGHT(n, layers, heads, width, 1, 1) // 2 * (1 + b * batch_size)


UNITS = (1000, 1024, 1000**2, 1024**2)

CACHE = {
    "one-kept": known(
        "Your count is half of the right one, as if one of the two were kept, keys or values.",
        "The query of a new token is compared with the keys of all tokens so far, and then the "
        "average is taken of something else. What does that need?",
        kept=1,
    ),
    "one-head-of-one": known(
        "You count the keys of one head only, or the values, and of the other those of all heads.",
        "Each KV head has keys and values of its own, as many of the one as of the other.",
        kept=1,
        heads=lambda h: 1 + h,
    ),
    "queries-kept": known(
        "You count three vectors for each token and head: do you keep queries as well?",
        "Only the new token asks. No later step uses its query again.",
        kept=3,
    ),
    "numbers-not-bytes": known(
        "You count numbers.",
        "In memory each of them takes several bytes, and one of the arguments says how many.",
        size=lambda b: 1,
    ),
    "bytes-of-one-only": known(
        "In your count only the keys or only the values take bytes_per_number bytes, and the "
        "others 1 byte, and perhaps no batch either.",
        "In keys + values * b the product comes before the sum. Both are numbers in memory, and "
        "each of them takes bytes_per_number bytes.",
        wrong=_bytes_of_one,
        shows=like(_bytes_of_one, _bytes_and_batch_of_one, run=run_cache),
    ),
    "bits-not-bytes": known(
        "Your count is 8 times the right one, as a count of bits is.",
        "Asked for are bytes, of 8 bits each.",
        size=lambda b: 8 * b,
    ),
    "two-bytes-always": known(
        "A number takes 2 bytes in your count, whatever bytes_per_number is.",
        "2 is half precision. In single precision the same cache is larger.",
        size=lambda b: 2,
    ),
    "four-bytes-always": known(
        "A number takes 4 bytes in your count, whatever bytes_per_number is.",
        "4 is single precision. The argument may say something else.",
        size=lambda b: 4,
    ),
    "four-bytes-by-default": known(
        "When nothing is said about bytes, you take 4.",
        "A caller who does not name the argument means half precision. Compare your def line with "
        "the one in the task.",
        default=4,
    ),
    "batch-ignored": known(
        "You count num_tokens tokens in all, whatever batch_size is.",
        "That is what one sequence has. Each sequence of the batch has tokens of its own, and no "
        "two share what they keep.",
        batch=lambda B: 1,
    ),
    "batch-for-one-only": known(
        "In your count only the keys or only the values are there for each sequence of the batch, "
        "and the others once.",
        "In keys + values * B the product comes before the sum. Each sequence of the batch has "
        "keys and values of its own.",
        wrong=lambda n, layers, heads, width, b=2, B=1: (
            RIGHT(n, layers, heads, width, b, 1) // 2 * (1 + B)
        ),
    ),
    "batch-twice": known(
        "Your count grows with the square of batch_size: does it stand in your product twice?",
        "Each sequence of the batch keeps its own tokens, and these are as many as in one alone.",
        batch=lambda B: B * B,
    ),
    "batch-added": known(
        "In your count batch_size, or one less, is added to the number of tokens.",
        "Each sequence of the batch has num_tokens tokens. How many have all of them together?",
        wrong=lambda n, layers, heads, width, b=2, B=1: RIGHT(n + B - 1, layers, heads, width, b),
        shows=_batch_added,
    ),
    "tokens-shared-out": known(
        "You divide the number of tokens by batch_size.",
        "num_tokens are the tokens of one sequence, and each sequence of the batch has as many.",
        wrong=_tokens_shared_out,
    ),
    "bytes-and-batch-swapped": known(
        "bytes_per_number and batch_size have changed places, or their defaults have.",
        "Who calls with five numbers gives them in the order of the task, and who calls with four "
        "counts on its defaults. Compare your def line with the one in the task.",
        wrong=_swapped,
    ),
    **small_numbers(RIGHT, run_cache),
    "power-for-product": known(
        "You raise to a power where you should multiply.",
        "** is a power, * a product: a number of the cache takes bytes_per_number bytes, so the "
        "two are multiplied.",
        wrong=lambda n, layers, heads, width, b=2, B=1: 2 * n * layers * heads * width**b * B,
    ),
    "power-of-the-layers": known(
        "You multiply once for each layer where you should add: num_layers stands as a power.",
        "The layers lie one above the other, and each keeps as much as the first. A loop that adds "
        "up begins with 0 and has += in it.",
        wrong=lambda n, layers, heads, width, b=2, B=1: n * (2 * heads * width) ** layers * b * B,
    ),
    "layers-ignored": known(
        "You count one layer.",
        "Every layer makes keys and values of what the layer below gave it, so every layer keeps "
        "its own.",
        layers=lambda m: 1,
    ),
    "heads-ignored": known(
        "Your count is that of one KV head.",
        "head_width is the width of one head, not of all of them together.",
        heads=lambda h: 1,
    ),
    "width-shared-out": known(
        "You divide head_width by num_kv_heads.",
        "head_width is the width of one head, not of all of them together.",
        width=lambda w, h: w // h,
    ),
    "one-token": known(
        "You count what one token leaves behind.",
        "A new token looks back at all tokens before it.",
        tokens=lambda n: 1,
    ),
    "last-token-not-kept": known(
        "You count one token less than there are, as if the last one were not kept.",
        "It is there when the next one is written, which looks back at all tokens before it.",
        tokens=lambda n: n - 1,
    ),
    "all-steps-added-up": known(
        "You count n · (n + 1) / 2 tokens in place of n: you add up the caches of all steps of "
        "writing, or count pairs of tokens.",
        "Each step adds one token to what the step before has kept. What is there after the last?",
        tokens=lambda n: n * (n + 1) // 2,
    ),
    "pairs-of-tokens": known(
        "Your cache grows with the square of the number of tokens.",
        "Scores belong to pairs of tokens, and scores are not kept. What does each token leave "
        "behind, however many there are?",
        tokens=lambda n: n * n,
    ),
    **{
        f"divided-by-{size}{end}": known(
            f"You divide by {size:,}.",
            "Asked for are bytes. They are whole numbers, and nobody has to ask which kilobyte or "
            "megabyte you mean.",
            unit=lambda total, size=size, divide=divide: divide(total, size),
        )
        for size in UNITS
        for end, divide in {"": truediv, "-and-cut": floordiv}.items()
    },
}

TASK = Task(
    "05-cache_bytes",
    counting.cache_bytes,
    cache_cases,
    run=run_cache,
    returns=("the number of bytes",),
    mistakes=read_again("The KV cache: what a model keeps while it writes", CACHE),
    build=build_cache,
    alone=tuple(f"divided-by-{size}-and-cut" for size in UNITS),  # little is left to tell by
    quantities=cache_quantities,
    forbidden=FORBIDDEN,
    number=5,
)
