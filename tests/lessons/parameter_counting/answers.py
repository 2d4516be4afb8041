"""Answers to the tasks of lesson 05."""

import math
from fractions import Fraction

import numpy as np
import torch
import torch._dynamo  # FlopCounterMode does when first entered, in the time of an answer
from torch import nn
from torch.utils.flop_counter import FlopCounterMode


def parameters(*modules):
    return sum(p.numel() for module in modules for p in module.parameters())


def attention(d, bias=True):
    return 4 * d * (d + bool(bias))


def attention_by_module(num_hiddens, bias=True):
    return parameters(nn.MultiheadAttention(num_hiddens, 1, bias=bias, device="meta"))


def attention_by_loop(num_hiddens, bias=True):
    count = 0
    for _projection in ("W_q", "W_k", "W_v", "W_o"):
        for _output in range(num_hiddens):
            count += num_hiddens
            if bias:
                count += 1
    return count


def attention_by_head(num_hiddens, bias=True):
    widths = [1] * num_hiddens  # as many heads as features: three columns and a row of W_o each
    weights = sum(3 * num_hiddens * width + width * num_hiddens for width in widths)
    return weights + (4 * num_hiddens if bias else 0)


def attention_as_tensor(num_hiddens, bias=True):
    return torch.tensor(num_hiddens).square() * 4 + 4 * num_hiddens * bool(bias)


def block(d, f):
    return attention(d) + 2 * d * f + f + d + 4 * d


def block_by_module(num_hiddens, ffn_num_hiddens):
    return parameters(nn.TransformerEncoderLayer(num_hiddens, 1, ffn_num_hiddens, device="meta"))


def block_by_real_layers(num_hiddens, ffn_num_hiddens):
    layers = [nn.Linear(num_hiddens, num_hiddens) for _ in range(4)]
    layers += [nn.Linear(num_hiddens, ffn_num_hiddens), nn.Linear(ffn_num_hiddens, num_hiddens)]
    return parameters(*layers, nn.LayerNorm(num_hiddens), nn.LayerNorm(num_hiddens))


def block_multiplied_out(num_hiddens, ffn_num_hiddens):
    d, f = np.int64(num_hiddens), np.int64(ffn_num_hiddens)
    return 4 * d**2 + 9 * d + f * (2 * d + 1)


def bert(V, d, layers, f, max_len=512, segments=2):
    return (V + max_len + segments + 2) * d + layers * block(d, f) + d * (d + 1)


def bert_by_parts(vocab_size, num_hiddens, num_layers, ffn_num_hiddens, max_len=512, segments=2):
    parts = {
        "tables": [vocab_size * num_hiddens, max_len * num_hiddens, segments * num_hiddens],
        "norm": [num_hiddens, num_hiddens],
        "blocks": [block(num_hiddens, ffn_num_hiddens) for _ in range(num_layers)],
        "pooler": [num_hiddens**2, num_hiddens],
    }
    return sum(number for part in parts.values() for number in part)


def bert_by_modules(vocab_size, num_hiddens, num_layers, ffn_num_hiddens, max_len=512, segments=2):
    d = num_hiddens
    with torch.device("meta"):
        rows = (vocab_size, max_len, segments)
        tables = [nn.Embedding.from_pretrained(torch.empty(n, d)) for n in rows]
        blocks = [nn.TransformerEncoderLayer(d, 1, ffn_num_hiddens) for _ in range(num_layers)]
        return parameters(*tables, nn.LayerNorm(d), *blocks, nn.Linear(d, d))


def bert_by_linears(V, d, layers, f, max_len=512, segments=2):
    def linear(inputs, outputs):
        return (inputs + 1) * outputs

    norm = linear(1, d)
    one = 4 * linear(d, d) + linear(d, f) + linear(f, d) + 2 * norm
    return sum(rows * d for rows in (V, max_len, segments)) + norm + layers * one + linear(d, d)


def bert_in_floats(V, d, layers, f, max_len=512.0, segments=2.0):
    return 1.0 * bert(V, d, layers, f, max_len, segments)


def flops(n, d):
    return 8 * n * d**2 + 4 * n**2 * d


def flops_factored(num_tokens, num_hiddens):
    return 4 * num_tokens * num_hiddens * (2 * num_hiddens + num_tokens)


def flops_by_products(num_tokens, num_hiddens):
    n, d = num_tokens, num_hiddens
    shapes = [(n, d, d)] * 4 + [(n, d, n), (n, n, d)]
    return sum(2 * rows * inner * columns for rows, inner, columns in shapes)


def flops_by_counter(num_tokens, num_hiddens):
    X, W = torch.ones(num_tokens, num_hiddens), torch.ones(num_hiddens, num_hiddens)
    with FlopCounterMode(display=False) as counter:
        q, k, v = X @ W, X @ W, X @ W
        (torch.softmax(q @ k.T, dim=-1) @ v) @ W
    return counter.get_total_flops()


def flops_in_floats(num_tokens, num_hiddens):
    return float(flops(num_tokens, num_hiddens))


def cache(n, layers, heads, width, bytes_per_number=2, batch_size=1):
    return 2 * batch_size * n * layers * heads * width * bytes_per_number


def cache_by_tensors(n, layers, heads, width, bytes_per_number=2, batch_size=1):
    with torch.device("meta"):
        keys, values = (torch.empty(batch_size, heads, n, width) for _ in range(2))
    return layers * (keys.numel() + values.numel()) * bytes_per_number


def cache_by_prod(*sizes):
    defaults = (None,) * 4 + (2, 1)
    return np.prod([2, *sizes, *defaults[len(sizes) :]])


def cache_shifted(n, layers, heads, width, bytes_per_number=2, batch_size=1):
    return math.prod((n, layers, heads, width, bytes_per_number, batch_size)) << 1


def cache_in_bits(n, layers, heads, width, bytes_per_number=2, batch_size=1):
    bits = 8 * bytes_per_number
    return sum(2 * bits * heads * width * n * batch_size for _layer in range(layers)) / 8


def width_first_refuse(num_hiddens, num_heads):
    if num_hiddens % num_heads:
        raise ValueError(f"{num_heads} heads do not divide a width of {num_hiddens}")
    return num_hiddens // num_heads


def width_by_divmod(num_hiddens, num_heads):
    width, left = divmod(num_hiddens, num_heads)
    if left != 0:
        raise ValueError("cannot split", num_hiddens, num_heads, left)
    return width


class HeadsDoNotFit(ValueError):
    pass


def width_by_multiplying_back(num_hiddens, num_heads):
    width = num_hiddens / num_heads
    if int(width) * num_heads == num_hiddens:
        return width
    raise HeadsDoNotFit(f"{num_hiddens=}, {num_heads=}: {width} is not a whole number")


def width_by_fraction(num_hiddens, num_heads):
    width = Fraction(num_hiddens, num_heads)
    if width.denominator > 1:
        raise ValueError(f"width {num_hiddens}, heads {num_heads}")
    return width.numerator


def width_by_search(num_hiddens, num_heads):
    for width in range(1, num_hiddens + 1):
        if width * num_heads == num_hiddens:
            return torch.tensor(width)
    raise ValueError(f"no whole width gives {num_hiddens} with {num_heads} heads")


def width_by_assert(num_hiddens, num_heads):
    assert num_hiddens % num_heads == 0, f"{num_heads} does not divide {num_hiddens}"
    return num_hiddens // num_heads


def refusing(message, condition=lambda d, h: d % h, error=ValueError):
    """A `head_width` with another condition, message or kind of error."""

    def head_width(num_hiddens, num_heads):
        if condition(num_hiddens, num_heads):
            raise error(message.format(d=num_hiddens, h=num_heads))
        return num_hiddens // num_heads

    return head_width


def width_returns_the_error(num_hiddens, num_heads):
    if num_hiddens % num_heads:
        return ValueError(f"{num_hiddens} and {num_heads}")
    return num_hiddens // num_heads


def width_prints(num_hiddens, num_heads):
    if num_hiddens % num_heads == 0:
        return num_hiddens // num_heads


def grouped(d, heads, kv_heads, width, bias=True):
    weights = 2 * d * width * (heads + kv_heads)
    return weights + bool(bias) * (width * (heads + 2 * kv_heads) + d)


def grouped_by_modules(num_hiddens, num_heads, num_kv_heads, head_width, bias=True):
    inner, shared = num_heads * head_width, num_kv_heads * head_width
    with torch.device("meta"):
        makers = [nn.Linear(num_hiddens, out, bias=bias) for out in (inner, shared, shared)]
        return parameters(*makers, nn.Linear(inner, num_hiddens, bias=bias))


def grouped_by_shapes(num_hiddens, num_heads, num_kv_heads, head_width, bias=True):
    inner, shared = num_heads * head_width, num_kv_heads * head_width
    shapes = [(num_hiddens, inner), (num_hiddens, shared), (num_hiddens, shared)]
    shapes.append((inner, num_hiddens))
    return np.sum([(inputs + (1 if bias else 0)) * outputs for inputs, outputs in shapes])


def grouped_by_group(num_hiddens, num_heads, num_kv_heads, head_width, bias=True):
    count = num_hiddens if bias else 0
    for _group in range(num_kv_heads):
        count += 2 * (num_hiddens + (1 if bias else 0)) * head_width
        for _head in range(num_heads // num_kv_heads):
            count += (num_hiddens + (1 if bias else 0)) * head_width + head_width * num_hiddens
    return count


def share_by_trying(percent, num_hiddens, ffn_num_hiddens):
    n = 1
    while True:
        feed_forward = 2 * (2 * n * num_hiddens * ffn_num_hiddens)
        pairs = 4 * n * n * num_hiddens
        if 100 * pairs >= percent * (flops(n, num_hiddens) + feed_forward):
            return n
        n += 1


def share_by_halving(percent, num_hiddens, ffn_num_hiddens):
    def enough(n):
        pairs = 4 * n * n * num_hiddens
        rest = 8 * n * num_hiddens**2 + 4 * n * num_hiddens * ffn_num_hiddens
        return pairs * (100 - percent) >= rest * percent

    low, high = 0, 1
    while not enough(high):
        high *= 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high


def share_by_fraction(percent, d, f):
    share = Fraction(percent, 100)
    return math.ceil(share / (1 - share) * (2 * d + f))


def share_in_floats(percent, d, f):
    return float(math.ceil(percent * (2 * d + f) / (100 - percent)))


def share_turned(percent, d, f):
    return -(-percent * (2 * d + f) // (100 - percent))


def text(card, P, layers, heads, width, bytes_per_number=2, batch_size=1):
    room = card // bytes_per_number - P  # numbers
    return max(0, room // (2 * layers * heads * width * batch_size))


def text_by_trying(card, P, layers, heads, width, bytes_per_number=2, batch_size=1):
    one = cache(1, layers, heads, width, bytes_per_number, batch_size)
    low, high = 0, card
    while low < high:  # the largest that fits, by halving
        middle = (low + high + 1) // 2
        if P * bytes_per_number + middle * one <= card:
            low = middle
        else:
            high = middle - 1
    return low


def text_by_fraction(card, P, layers, heads, width, bytes_per_number=2, batch_size=1):
    one = cache(1, layers, heads, width, bytes_per_number, batch_size)
    if card < P * bytes_per_number:
        return 0
    return math.floor(Fraction(card - P * bytes_per_number, one))


def text_by_numpy(card, P, layers, heads, width, bytes_per_number=2, batch_size=1):
    one = cache(1, layers, heads, width, bytes_per_number, batch_size)
    return np.maximum(np.floor_divide(card - P * bytes_per_number, one), 0)


def text_in_floats(card, P, layers, heads, width, bytes_per_number=2, batch_size=1):
    one = cache(1, layers, heads, width, bytes_per_number, batch_size)
    return max(math.floor((card - P * bytes_per_number) / one), 0) * 1.0


def borrowed(name):
    def answer(*sizes):
        from mha_course import counting

        return getattr(counting, name)(*sizes)

    return answer


RIGHT = {
    "05-count_attention": {
        "formula": attention,
        "a module": attention_by_module,
        "a loop": attention_by_loop,
        "head by head": attention_by_head,
        "a tensor without axes": attention_as_tensor,
    },
    "05-count_block": {
        "formula": block,
        "a module": block_by_module,
        "real layers": block_by_real_layers,
        "multiplied out, numpy": block_multiplied_out,
    },
    "05-count_bert": {
        "formula": bert,
        "by parts": bert_by_parts,
        "modules": bert_by_modules,
        "linear layers": bert_by_linears,
    },
    "05-attention_flops": {
        "formula": flops,
        "factored": flops_factored,
        "by products": flops_by_products,
        "PyTorch's counter": flops_by_counter,
    },
    "05-cache_bytes": {
        "formula": cache,
        "tensors": cache_by_tensors,
        "numpy": cache_by_prod,
        "shifted": cache_shifted,
    },
    "05-head_width": {
        "refuses first": width_first_refuse,
        "divmod, message in pieces": width_by_divmod,
        "search, tensor": width_by_search,
        "fraction": width_by_fraction,
    },
    "05-count_grouped_attention": {
        "formula": grouped,
        "linear layers": grouped_by_modules,
        "shapes, numpy": grouped_by_shapes,
        "group by group": grouped_by_group,
    },
    "05-length_for_share": {
        "trying": share_by_trying,
        "halving": share_by_halving,
        "fraction": share_by_fraction,
        "rounded up with //": share_turned,
    },
    "05-longest_text": {
        "numbers, not bytes": text,
        "halving": text_by_trying,
        "fraction": text_by_fraction,
        "numpy": text_by_numpy,
    },
}


# Right in every number, and asked for is an int.
NO_INTS = [
    ("05-count_attention", lambda d, bias=True: 4.0 * d * (d + bool(bias))),
    ("05-count_bert", bert_in_floats),
    ("05-attention_flops", flops_in_floats),
    ("05-cache_bytes", cache_in_bits),
    ("05-head_width", width_by_multiplying_back),
    ("05-count_grouped_attention", lambda *sizes: 1.0 * grouped(*sizes)),
    ("05-length_for_share", share_in_floats),
    ("05-longest_text", text_in_floats),
]


def first_length(enough):
    """A search for the first length at which this is true of percent, the pairs and the rest."""

    def length_for_share(percent, num_hiddens, ffn_num_hiddens):
        n = 1
        while not enough(
            percent,
            4 * n * n * num_hiddens,
            4 * n * num_hiddens * (2 * num_hiddens + ffn_num_hiddens),
        ):
            n += 1
        return n

    return length_for_share


def length_by_rounded_share(percent, num_hiddens, ffn_num_hiddens):
    rest = 2 * num_hiddens + ffn_num_hiddens
    n = max(1, (percent - 1) * rest // (101 - percent))
    while round(100 * n / (n + rest)) < percent:
        n += 1
    return n


WRONG = {
    "05-count_attention": {
        "12 heads, cut": lambda d, bias=True: (
            4 * d * (d // 12 * 12 if d >= 12 else d)
            + bias * (3 * (d // 12 * 12 if d >= 12 else d) + d)
        ),
        "8 heads of whole width": lambda d, bias=True: 4 * d * (d // 8 * 8) + 4 * d * bool(bias),
        "12 heads, or one": lambda d, bias=True: (
            4 * d * (d // 12 * 12 if d >= 12 else d) + 4 * d * bool(bias)
        ),
        "in float32": lambda d, bias=True: int(np.float32(4) * d * d + 4 * d * bool(bias)),
        "no biases": lambda d, bias=True: 4 * d * d,
        "biases always": lambda d, bias=True: 4 * d * (d + 1),
        "no biases by default": lambda d, bias=False: attention(d, bias),
        "without W_o": lambda d, bias=True: 3 * d * (d + bool(bias)),
        "W_o without bias": lambda d, bias=True: 4 * d * d + 3 * d * bool(bias),
        "times 8 heads": lambda d, bias=True: 8 * attention(d, bias),
        "one head of 8": lambda d, bias=True: attention(d, bias) // 8,
        "one bias a matrix": lambda d, bias=True: 4 * (d * d + bool(bias)),
        "one bias vector": lambda d, bias=True: 4 * d * d + d * bool(bias),
        "d**4": lambda d, bias=True: d**4 + 4 * d * bool(bias),
        "megabytes": lambda d, bias=True: 4 * attention(d, bias),
        "a string": lambda d, bias=True: f"{attention(d, bias):,}",
        "borrowed": borrowed("count_attention"),
        "the third power": lambda d, bias=True: 4 * d**3 + (4 * d if bias else 0),
    },
    "05-count_block": {
        "in float32": lambda d, f: int(np.float32(block(d, f))),
        "layers by their sizes": lambda d, f: block(d, f) - (d * f + d) * (d == f),
        "no LayerNorm": lambda d, f: block(d, f) - 4 * d,
        "one LayerNorm": lambda d, f: block(d, f) - 2 * d,
        "LayerNorm without shift": lambda d, f: block(d, f) - 2 * d,
        "LayerNorm of two numbers": lambda d, f: block(d, f) - 4 * d + 4,
        "one bias for all of attention": lambda d, f: block(d, f) - 3 * d,
        "neither LayerNorms nor biases of attention": lambda d, f: block(d, f) - 8 * d,
        "three LayerNorms": lambda d, f: block(d, f) + 2 * d,
        "LayerNorm of the inner width": lambda d, f: block(d, f) - 2 * d + 2 * f,
        "attention without biases": lambda d, f: block(d, f) - 4 * d,
        "feed-forward without biases": lambda d, f: block(d, f) - d - f,
        "both biases as wide as f": lambda d, f: block(d, f) - d + f,
        "both biases as wide as d": lambda d, f: block(d, f) + d - f,
        "f taken as 4 d": lambda d, f: block(d, 4 * d),
        "only one of the two layers": lambda d, f: block(d, f) - d * f - d,
        "no attention": lambda d, f: block(d, f) - attention(d),
        "borrowed": borrowed("count_block"),
    },
    "05-count_bert": {
        "in float32": lambda *sizes: int(np.float32(bert(*sizes))),
        "in thirds of a million": lambda *sizes: bert(*sizes) / 3e6 * 3e6,
        "a set of tables": lambda V, d, n, f, m=512, s=2: (
            bert(V, d, n, f, m, s) - (V + m + s - sum({V, m, s})) * d
        ),
        "max_len and num_segments swapped": lambda V, d, n, f, segments=2, max_len=512: bert(
            V, d, n, f, max_len, segments
        ),
        "no pooler": lambda *sizes: bert(*sizes) - sizes[1] * (sizes[1] + 1),
        "pooler without bias": lambda *sizes: bert(*sizes) - sizes[1],
        "no LayerNorm of the embeddings": lambda *sizes: bert(*sizes) - 2 * sizes[1],
        "a LayerNorm too many in each block": lambda *sizes: bert(*sizes) + 2 * sizes[1] * sizes[2],
        "a LayerNorm too few in each block": lambda *sizes: bert(*sizes) - 2 * sizes[1] * sizes[2],
        "a LayerNorm too many": lambda *sizes: bert(*sizes) + 2 * sizes[1],
        "the embeddings' LayerNorm in each block": lambda *sizes: (
            bert(*sizes) + 2 * sizes[1] * (sizes[2] - 1)
        ),
        "a bias too few in each block": lambda *sizes: bert(*sizes) - sizes[1] * sizes[2],
        "a bias for the vocabulary": lambda *sizes: bert(*sizes) + sizes[0],
        "biases in the tables": lambda *sizes: bert(*sizes) + 3 * sizes[1],
        "no positions": lambda V, d, n, f, m=512, s=2: bert(V, d, n, f, 0, s),
        "512 positions always": lambda V, d, n, f, m=512, s=2: bert(V, d, n, f, 512, s),
        "no segments": lambda V, d, n, f, m=512, s=2: bert(V, d, n, f, m, 0),
        "two segments always": lambda V, d, n, f, m=512, s=2: bert(V, d, n, f, m, 2),
        "another default length": lambda V, d, n, f, m=1024, s=2: bert(V, d, n, f, m, s),
        "another default of segments": lambda V, d, n, f, m=512, s=1: bert(V, d, n, f, m, s),
        "one block": lambda V, d, n, f, m=512, s=2: bert(V, d, 1, f, m, s),
        "12 blocks": lambda V, d, n, f, m=512, s=2: bert(V, d, 12, f, m, s),
        "a block too many": lambda V, d, n, f, m=512, s=2: bert(V, d, n + 1, f, m, s),
        "an output layer for the vocabulary": lambda V, d, *more: bert(V, d, *more) + V * d + V,
        "embeddings in each block": lambda V, d, n, f, m=512, s=2: n * bert(V, d, 1, f, m, s),
        "blocks without LayerNorms": lambda *sizes: bert(*sizes) - 4 * sizes[1] * sizes[2],
        "no defaults": lambda V, d, n, f, m, s: bert(V, d, n, f, m, s),
        "borrowed": borrowed("count_bert"),
    },
    "05-attention_flops": {
        "multiply-adds": lambda n, d: flops(n, d) // 2,
        "projections only": lambda n, d: 8 * n * d**2,
        "pairs only": lambda n, d: 4 * n**2 * d,
        "without W_o": lambda n, d: flops(n, d) - 2 * n * d**2,
        "without the weighted sums": lambda n, d: flops(n, d) - 2 * n**2 * d,
        "one projection": lambda n, d: 2 * n * d**2 + 4 * n**2 * d,
        "pairs as multiply-adds": lambda n, d: 8 * n * d**2 + 2 * n**2 * d,
        "times the heads": lambda n, d: 8 * n * d**2 + 8 * 4 * n**2 * d,
        "a head of 64 only": lambda n, d: 8 * n * d**2 + 4 * n**2 * 64,
        "n and d swapped": lambda n, d: flops(d, n),
        "softmax counted": lambda n, d: flops(n, d) + 3 * n**2,
        "biases counted": lambda n, d: flops(n, d) + 4 * n * d,
        "exactly 2k - 1 a sum": lambda n, d: flops(n, d) - 4 * n * d - n * n - n * d,
        "per token": lambda n, d: flops(n, d) // n,
        "borrowed": borrowed("attention_flops"),
        "d squared for the pairs": lambda n, d: 8 * n * d**2 + 4 * n**2 * d**2,
    },
    "05-cache_bytes": {
        "keys + values * bytes": lambda n, m, h, w, b=2, batch=1: n * m * h * w * batch * (1 + b),
        "keys only": lambda *sizes: cache(*sizes) // 2,
        "numbers, not bytes": lambda *sizes: cache(*sizes[:4], 1, *sizes[5:]),
        "bits": lambda *sizes: 8 * cache(*sizes),
        "2 bytes always": lambda *sizes: cache(*sizes[:4], 2, *sizes[5:]),
        "4 bytes by default": lambda n, m, h, w, bytes_per_number=4, batch_size=1: cache(
            n, m, h, w, bytes_per_number, batch_size
        ),
        "one sequence always": lambda *sizes: cache(*sizes[:5]),
        "no layers": lambda *sizes: cache(sizes[0], 1, *sizes[2:]),
        "no heads": lambda *sizes: cache(*sizes[:2], 1, *sizes[3:]),
        "one word": lambda *sizes: cache(1, *sizes[1:]),
        "pairs of words": lambda *sizes: sizes[0] * cache(*sizes),
        "width over heads": lambda n, m, h, w, *more: cache(n, m, 1, w, *more),
        "queries kept too": lambda *sizes: cache(*sizes) * 3 // 2,
        "kilobytes": lambda *sizes: cache(*sizes) / 1024,
        "borrowed": borrowed("cache_bytes"),
    },
    "05-head_width": {
        "nearly whole": refusing("{d} {h}", lambda d, h: not np.isclose(d / h, round(d / h))),
        "cut silently": lambda d, h: d // h,
        "a fraction": lambda d, h: d / h,
        "rounded": lambda d, h: round(d / h),
        "an assert": width_by_assert,
        "TypeError": refusing("{d} {h}", error=TypeError),
        "message without numbers": refusing("the heads do not divide the width"),
        "message with the width only": refusing("cannot split {d}"),
        "message with the heads only": refusing("{h} heads do not fit"),
        "condition the wrong way round": refusing("{d} {h}", lambda d, h: h % d),
        "odd widths refused": refusing("{d} {h}", lambda d, h: d % 2 or d % h),
        "only too many heads refused": refusing("{d} {h}", lambda d, h: h > d),
        "only odd remainders refused": refusing("{d} {h}", lambda d, h: d % h % 2),
        "always refused": refusing("{d} {h}", lambda d, h: True),
        "the error is returned": width_returns_the_error,
        "nothing is returned": width_prints,
        "-1 is returned": lambda d, h: -1 if d % h else d // h,
        "one too many": lambda d, h: width_first_refuse(d, h) + 1,
        "a text where it divides": lambda d, h: str(width_first_refuse(d, h)),
        "the word ValueError": lambda d, h: "ValueError" if d % h else d // h,
        "full width": lambda d, h: d,
        "borrowed": borrowed("head_width"),
    },
    "05-count_grouped_attention": {
        "in float32": lambda *sizes: int(np.float32(grouped(*sizes))),
        "biases as in 5.1 where the heads fill the width": lambda d, H, G, w, bias=True: (
            grouped(d, H, G, w, bias) + 2 * (H - G) * w * bool(bias) * (H * w == d)
        ),
        "four square matrices": lambda d, h, g, w, bias=True: attention(d, bias),
        "all heads": lambda d, h, g, w, bias=True: grouped(d, h, h, w, bias),
        "all KV heads": lambda d, h, g, w, bias=True: grouped(d, g, g, w, bias),
        "width shared": lambda d, h, g, w, bias=True: grouped(d, h, g, d // h, bias),
        "no biases": lambda d, h, g, w, bias=True: grouped(d, h, g, w, False),
        "biases always": lambda d, h, g, w, bias=True: grouped(d, h, g, w, True),
        "no biases by default": lambda d, h, g, w, bias=False: grouped(d, h, g, w, bias),
        "W_o without bias": lambda d, h, g, w, bias=True: (
            grouped(d, h, g, w, bias) - d * bool(bias)
        ),
        "without W_o": lambda d, h, g, w, bias=True: (
            grouped(d, h, g, w, bias) - d * (h * w + bool(bias))
        ),
        "only one KV matrix": lambda d, h, g, w, bias=True: (
            grouped(d, h, g, w, bias) - (d + bool(bias)) * g * w
        ),
        "one bias vector": lambda d, h, g, w, bias=True: (
            grouped(d, h, g, w, False) + d * bool(bias)
        ),
        "4 d biases": lambda d, h, g, w, bias=True: grouped(d, h, g, w, False) + 4 * d * bool(bias),
        "one head": lambda d, h, g, w, bias=True: grouped(d, 1, 1, w, bias),
        "KV heads multiplied": lambda d, h, g, w, bias=True: grouped(d, h, h * g, w, bias),
        "groups counted": lambda d, h, g, w, bias=True: grouped(d, h, h // g, w, bias),
        "heads and width swapped": lambda d, h, g, w, bias=True: grouped(d, w, g, h, bias),
    },
    "05-length_for_share": {
        "round() of the share": length_by_rounded_share,
        "from 2 on": lambda percent, d, f: max(2, -(-percent * (2 * d + f) // (100 - percent))),
        "the last that does not reach it": lambda p, d, f: max(
            1, math.ceil(Fraction(p * (2 * d + f), 100 - p)) - 1
        ),
        "percent / (100 - percent)": lambda p, d, f: math.ceil(p / (100 - p) * (2 * d + f)),
        "divided by the odds": lambda p, d, f: math.ceil((2 * d + f) / ((100 - p) / p)),
        "with a small tolerance": lambda p, d, f: math.ceil(p * (2 * d + f) / (100 - p) - 0.012),
        "up to 100,000": lambda p, d, f: next(
            (n for n in range(1, 100_000) if n * (100 - p) >= p * (2 * d + f)), None
        ),
        "percent / 100 of all": first_length(
            lambda p, pairs, rest: pairs >= p / 100 * (pairs + rest)
        ),
        "100 times the share": first_length(
            lambda p, pairs, rest: pairs / (pairs + rest) * 100 >= p
        ),
        "with a tolerance": lambda p, d, f: math.ceil(p / (100 - p) * (2 * d + f) - 0.05),
        "always half": lambda p, d, f: 2 * d + f,
        "6 d": lambda p, d, f: 6 * d,
        "attention only": lambda p, d, f: share_turned(p, d, 0),
        "inner width 4 d": lambda p, d, f: share_turned(p, d, 4 * d),
        "rounded down": lambda p, d, f: p * (2 * d + f) // (100 - p),
        "one more": lambda p, d, f: p * (2 * d + f) // (100 - p) + 1,
        "rounded": lambda p, d, f: round(p * (2 * d + f) / (100 - p)),
        "a fraction": lambda p, d, f: p * (2 * d + f) / (100 - p),
        "rounded down, 1 or more": lambda p, d, f: max(1, p * (2 * d + f) // (100 - p)),
        "rounded, 1 or more": lambda p, d, f: max(1, round(p * (2 * d + f) / (100 - p))),
        "float shares": lambda p, d, f: math.ceil(p / 100 / (1 - p / 100) * (2 * d + f)),
        "percent of the rest": lambda p, d, f: -(-p * (2 * d + f) // 100),
        "share of the rest": lambda p, d, f: share_turned(100 - p, d, f),
        "one layer up": lambda p, d, f: -(-p * (4 * d + f) // (2 * (100 - p))),
        "pairs once": lambda p, d, f: share_turned(p, 2 * d, 2 * f),
        "no projections": lambda p, d, f: share_turned(p, 0, f),
        "widths swapped": lambda p, d, f: share_turned(p, f, d),
        "share as a fraction": lambda p, d, f: math.ceil(p / (1.5 - p) * (2 * d + f)),
    },
    "05-longest_text": {
        "a fifth kept free": lambda card, *sizes, **more: text(card * 4 // 5, *sizes, **more),
        "two quotients": lambda card, P, m, h, w, b=2, batch=1: max(
            0, math.floor(card / cache(1, m, h, w, b, batch) - P * b / cache(1, m, h, w, b, batch))
        ),
        "in float32": lambda card, P, m, h, w, b=2, batch=1: max(
            0, int((torch.tensor(float(card)) - P * b) // cache(1, m, h, w, b, batch))
        ),
        "tested without bytes": lambda card, P, *more: (
            0 if P > card else (card - 2 * P) // cache(1, *more)
        ),
        "no weights": lambda card, P, *more: text(card, 0, *more),
        "weights as numbers": lambda card, P, *more: max(0, (card - P) // cache(1, *more)),
        "weights for each text": lambda card, P, m, h, w, b=2, batch=1: text(
            card, P * batch, m, h, w, b, batch
        ),
        "keys only": lambda card, P, m, *more: 2 * text(card, P, m, *more),
        "one layer": lambda card, P, m, *more: text(card, P, 1, *more),
        "one head": lambda card, P, m, h, *more: text(card, P, m, 1, *more),
        "all texts together": lambda *sizes: text(*sizes[:6]),
        "batch divided twice": lambda *sizes: (
            text(*sizes) // sizes[6] if len(sizes) > 6 else text(*sizes)
        ),
        "2 bytes always": lambda card, P, m, h, w, b=2, batch=1: text(card, P, m, h, w, 2, batch),
        "rounded up": lambda card, P, *more: max(0, -((2 * P - card) // cache(1, *more))),
        "one too few": lambda *sizes: max(0, text(*sizes) - 1),
        "negative": lambda card, P, *more: (card - 2 * P) // cache(1, *more),
        "at least one": lambda *sizes: max(1, text(*sizes)),
        "a fraction": lambda card, P, *more: max(0, (card - 2 * P) / cache(1, *more)),
        "rounded up, tested first": lambda card, P, *more: (
            0 if card - 2 * P < cache(1, *more) else math.ceil((card - 2 * P) / cache(1, *more))
        ),
        "cut towards 0": lambda card, P, *more: int((card - 2 * P) / cache(1, *more)),
        "one too many": lambda *sizes: text(*sizes) + 1,
        "bytes left over": lambda card, P, *more: max(0, card - 2 * P),
        "no defaults": lambda card, P, m, h, w, b, batch: text(card, P, m, h, w, b, batch),
    },
}
