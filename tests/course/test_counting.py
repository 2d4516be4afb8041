"""`mha_course.counting` held to hand-computed numbers, to real modules and to PyTorch's counter."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn
from torch.nn import functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

from mha_course import counting
from mha_course.counting import (
    attention_flops,
    bert_parts,
    cache_bytes,
    count_attention,
    count_bert,
    count_block,
    count_feed_forward,
    count_linear,
    crossing_length,
    feed_forward_flops,
    head_width,
    matmul_flops,
    pairwise_flops,
    projection_flops,
)

BERT_BASE = {"vocab_size": 30_522, "num_hiddens": 768, "num_layers": 12, "ffn_num_hiddens": 3072}
BERT_LARGE = {"vocab_size": 30_522, "num_hiddens": 1024, "num_layers": 24, "ffn_num_hiddens": 4096}
SMALL_BERT = {
    "vocab_size": 31,
    "num_hiddens": 35,
    "num_layers": 3,
    "ffn_num_hiddens": 29,
    "max_len": 17,
    "num_segments": 13,
}
NUM_HEADS = {768: 12, 1024: 16, 35: 5}

# Sizes that every function accepts: distinct primes, but for the pair that must divide.
GOOD_CALLS = {
    "head_width": {"num_hiddens": 35, "num_heads": 5},
    "count_linear": {"num_inputs": 3, "num_outputs": 5},
    "count_attention": {"num_hiddens": 3},
    "count_feed_forward": {"num_hiddens": 3, "ffn_num_hiddens": 5},
    "count_block": {"num_hiddens": 3, "ffn_num_hiddens": 5},
    "bert_parts": SMALL_BERT,
    "count_bert": SMALL_BERT,
    "matmul_flops": {"num_rows": 2, "num_inner": 3, "num_columns": 5},
    "projection_flops": {"num_tokens": 7, "num_hiddens": 3},
    "pairwise_flops": {"num_tokens": 7, "num_hiddens": 3},
    "attention_flops": {"num_tokens": 7, "num_hiddens": 3},
    "feed_forward_flops": {"num_tokens": 7, "num_hiddens": 3, "ffn_num_hiddens": 5},
    "crossing_length": {"num_hiddens": 3},
    "cache_bytes": {
        "num_tokens": 11,
        "num_layers": 3,
        "num_kv_heads": 2,
        "head_width": 5,
        "bytes_per_number": 4,
        "batch_size": 7,
    },
}
SIZE_ARGUMENTS = [(name, arg) for name, sizes in GOOD_CALLS.items() for arg in sizes]

sizes = st.integers(1, 10**6)
properties = settings(deadline=None, max_examples=50)


def num_parameters(*modules):
    return sum(p.numel() for module in modules for p in module.parameters())


def counted_flops(function, *args, **kwargs):
    with FlopCounterMode(display=False) as counter:
        function(*args, **kwargs)
    return counter.get_total_flops()


def call(name, **changes):
    return getattr(counting, name)(**{**GOOD_CALLS[name], **changes})


# By hand


def test_head_width_by_hand():
    assert head_width(512, 8) == 64
    assert [head_width(512, h) for h in (1, 2, 4, 8, 16, 32)] == [512, 256, 128, 64, 32, 16]


def test_count_linear_by_hand():
    assert count_linear(2, 3) == 2 * 3 + 3 == 9
    assert count_linear(2, 3, bias=False) == 6


def test_count_attention_by_hand():
    assert count_attention(3) == 4 * (9 + 3) == 48
    assert count_attention(3, bias=False) == 4 * 9 == 36


def test_count_feed_forward_by_hand():
    assert count_feed_forward(2, 5) == (2 * 5 + 5) + (5 * 2 + 2) == 27


def test_count_block_by_hand():
    # attention 4 · (2² + 2), feed-forward 27, two LayerNorms of 2 · 2
    assert count_block(2, 5) == 24 + 27 + 8 == 59


def test_bert_parts_and_count_bert_by_hand():
    args = (7, 2, 3, 5, 11, 13)
    assert bert_parts(*args) == {
        "embeddings": (7 + 11 + 13) * 2 + 4,  # three tables and a LayerNorm: 66
        "attention": 3 * 24,
        "feed_forward": 3 * 27,
        "layer_norms": 3 * 8,
        "pooler": 6,
    }
    assert count_bert(*args) == 66 + 72 + 81 + 24 + 6 == 249


def test_flops_by_hand():
    assert matmul_flops(2, 3, 5) == 2 * 30 == 60
    assert projection_flops(3, 2) == 8 * 3 * 4 == 96
    assert pairwise_flops(3, 2) == 4 * 9 * 2 == 72
    assert attention_flops(3, 2) == 96 + 72 == 168
    assert feed_forward_flops(3, 2, 5) == 2 * 60 == 120


def test_crossing_length_by_hand():
    assert crossing_length(5) == 10
    assert projection_flops(10, 5) == pairwise_flops(10, 5) == 2000
    assert crossing_length(5, 7) == 17
    assert projection_flops(17, 5) + feed_forward_flops(17, 5, 7) == pairwise_flops(17, 5) == 5780


def test_cache_bytes_by_hand():
    assert cache_bytes(11, 3, 2, 5) == 11 * 60 * 2 == 1320  # 60 = 2 · 3 · 2 · 5 numbers a token
    assert cache_bytes(11, 3, 2, 5, bytes_per_number=4, batch_size=7) == 7 * 2 * 1320


# Numbers that the course quotes


def test_quoted_attention_layer_of_width_512():
    assert count_attention(512, bias=False) == 1_048_576
    assert count_attention(512) == 1_050_624


def test_quoted_bert_base():
    parts = bert_parts(**BERT_BASE)
    assert count_attention(768) == 2_362_368
    assert count_feed_forward(768, 3072) == 4_722_432
    assert count_block(768, 3072) == 7_087_872
    assert parts["embeddings"] == 23_837_184
    assert parts["attention"] == 28_348_416
    assert parts["pooler"] == 590_592
    assert count_bert(**BERT_BASE) == 109_482_240
    assert f"{parts['attention'] / count_bert(**BERT_BASE):.1%}" == "25.9%"
    assert f"{count_attention(768) / count_block(768, 3072):.1%}" == "33.3%"


def test_quoted_bert_large():
    assert count_bert(**BERT_LARGE) == 335_141_888


def test_quoted_crossing_for_bert_base():
    assert crossing_length(768) == 1536
    assert projection_flops(1536, 768) == pairwise_flops(1536, 768) == 7_247_757_312
    assert crossing_length(768, 3072) == 6 * 768 == 4608


def test_quoted_cache_bytes_per_token():
    assert cache_bytes(1, 12, 12, head_width(768, 12)) == 36_864
    assert cache_bytes(1, 32, 32, 128) == 524_288
    assert cache_bytes(1, 32, 8, 128) == 131_072


# Real modules have as many parameters


@pytest.mark.parametrize("bias", [True, False])
def test_count_linear_equals_torch(bias):
    assert count_linear(3, 5, bias) == num_parameters(nn.Linear(3, 5, bias=bias))


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("num_heads", [1, 2, 3, 5, 7, 210])
def test_count_attention_equals_torch_for_any_number_of_heads(num_heads, bias):
    module = nn.MultiheadAttention(210, num_heads, bias=bias, device="meta")
    assert module.head_dim == head_width(210, num_heads)
    assert count_attention(210, bias) == num_parameters(module)


@pytest.mark.parametrize("bias", [True, False])
def test_count_attention_equals_four_linear_layers(bias):
    assert count_attention(35, bias) == num_parameters(
        *(nn.Linear(35, 35, bias=bias) for _ in range(4))
    )


def test_count_feed_forward_and_block_equal_torch():
    block = nn.TransformerEncoderLayer(35, 5, dim_feedforward=29, device="meta")
    assert count_feed_forward(35, 29) == num_parameters(block.linear1, block.linear2)
    assert count_block(35, 29) == num_parameters(block)


@pytest.mark.parametrize("sizes", [BERT_BASE, BERT_LARGE, SMALL_BERT], ids=["base", "large", "own"])
def test_bert_parts_equal_transformers(sizes):
    from transformers import BertConfig, BertModel

    config = BertConfig(
        vocab_size=sizes["vocab_size"],
        hidden_size=sizes["num_hiddens"],
        num_hidden_layers=sizes["num_layers"],
        intermediate_size=sizes["ffn_num_hiddens"],
        num_attention_heads=NUM_HEADS[sizes["num_hiddens"]],
        max_position_embeddings=sizes.get("max_len", 512),
        type_vocab_size=sizes.get("num_segments", 2),
    )
    with torch.device("meta"):
        model = BertModel(config)
    layers = model.encoder.layer
    assert bert_parts(**sizes) == {
        "embeddings": num_parameters(model.embeddings),
        "attention": num_parameters(
            *(part for x in layers for part in (x.attention.self, x.attention.output.dense))
        ),
        "feed_forward": num_parameters(
            *(part for x in layers for part in (x.intermediate, x.output.dense))
        ),
        "layer_norms": num_parameters(
            *(part for x in layers for part in (x.attention.output.LayerNorm, x.output.LayerNorm))
        ),
        "pooler": num_parameters(model.pooler),
    }
    block = count_block(sizes["num_hiddens"], sizes["ffn_num_hiddens"])
    assert [num_parameters(layer) for layer in layers] == [block] * sizes["num_layers"]
    assert count_bert(**sizes) == num_parameters(model)


# What PyTorch's counter counts

B, N, H, D_K = 3, 11, 2, 5
D = H * D_K


def split(X, num_heads):
    return X.reshape(*X.shape[:-1], num_heads, -1).transpose(-3, -2)  # (B, H, N, d_k)


def explicit_attention(Q, K, V):
    return torch.softmax(Q @ K.transpose(-2, -1), dim=-1) @ V


def four_projections(X, num_heads, attend):
    num_hiddens = X.shape[-1]
    W_q, W_k, W_v, W_o = (nn.Linear(num_hiddens, num_hiddens) for _ in range(4))
    heads = attend(*(split(W(X), num_heads) for W in (W_q, W_k, W_v)))
    return W_o(heads.transpose(-3, -2).reshape(X.shape))


@pytest.mark.parametrize("num_heads", [1, 2, 3, 5, 7, 210])
def test_counter_finds_both_terms_in_explicit_products(num_heads):
    flops = counted_flops(four_projections, torch.ones(N, 210), num_heads, explicit_attention)
    assert flops == attention_flops(N, 210) == 8 * N * 210**2 + 4 * N**2 * 210


def test_counter_finds_both_products_of_a_feed_forward_network():
    network = nn.Sequential(nn.Linear(7, 29), nn.ReLU(), nn.Linear(29, 7))
    assert counted_flops(network, torch.ones(N, 7)) == feed_forward_flops(N, 7, 29)


def test_counter_multiplies_by_the_batch():
    flops = counted_flops(four_projections, torch.ones(B, N, D), H, explicit_attention)
    assert flops == B * attention_flops(N, D)


def test_counter_misses_the_fused_kernel():
    def fused():
        X = torch.ones(B, N, D)
        return counted_flops(four_projections, X, H, F.scaled_dot_product_attention)

    assert fused() == B * projection_flops(N, D)
    with sdpa_kernel(SDPBackend.FLASH_ATTENTION):
        assert fused() == B * projection_flops(N, D)
    with sdpa_kernel(SDPBackend.MATH):
        assert fused() == B * attention_flops(N, D)


def test_counter_on_torch_multihead_attention():
    module, X = nn.MultiheadAttention(D, H, batch_first=True), torch.ones(B, N, D)
    for training in (True, False):  # with gradients, so eval does not take its fast path either
        with_weights = counted_flops(module.train(training), X, X, X)
        assert with_weights == B * attention_flops(N, D)
        fused = counted_flops(module, X, X, X, need_weights=False)
        assert fused == B * projection_flops(N, D)


@pytest.mark.parametrize("need_weights", [True, False])
def test_counter_finds_nothing_on_the_eval_fast_path(need_weights):
    module, X = nn.MultiheadAttention(D, H, batch_first=True).eval(), torch.ones(B, N, D)
    with torch.no_grad():
        assert counted_flops(module, X, X, X, need_weights=need_weights) == 0
        # Keys in another tensor are no self-attention to the module, so no fast path.
        other = counted_flops(module, X, X.clone(), X, need_weights=need_weights)
    counted = attention_flops if need_weights else projection_flops
    assert other == B * counted(N, D)


def test_counter_is_back_for_an_odd_number_of_heads():
    module, X = nn.MultiheadAttention(15, 3, batch_first=True).eval(), torch.ones(B, N, 15)
    with torch.no_grad():
        assert counted_flops(module, X, X, X) == B * attention_flops(N, 15)


# GPT-2 small, batch 2, 1,024 tokens, output layer included


@pytest.fixture(scope="module")
def gpt2_run():
    """FLOPs by operator and the KV cache of GPT-2 small in float16; no number is computed."""
    from transformers import GPT2Config, GPT2LMHeadModel

    with torch.device("meta"):
        model = GPT2LMHeadModel(GPT2Config(attn_implementation="eager")).half().eval()
        tokens = torch.zeros(2, 1024, dtype=torch.long)
    with torch.no_grad(), FlopCounterMode(display=False) as counter:
        cache = model(tokens, use_cache=True).past_key_values
    flops = {str(op): n for op, n in counter.get_flop_counts()["Global"].items()}
    return flops, sum(layer.keys.nbytes + layer.values.nbytes for layer in cache.layers)


def test_gpt2_share_of_attention(gpt2_run):
    batch, n, d, layers, vocab = 2, 1024, 768, 12, 50_257
    feed_forward = matmul_flops(n, d, 4 * d) + matmul_flops(n, 4 * d, d)
    blocks = batch * layers * (projection_flops(n, d) + feed_forward)
    linear = blocks + batch * matmul_flops(n, d, vocab)
    pairs = batch * layers * pairwise_flops(n, d)
    assert (linear, pairs) == (505_987_203_072, 77_309_411_328)
    assert (f"{linear:.2e}", f"{pairs:.2e}") == ("5.06e+11", "7.73e+10")
    assert f"{pairs / (linear + pairs):.1%}" == "13.3%"
    flops, _ = gpt2_run
    assert flops.pop("aten.bmm") == pairs
    assert sum(flops.values()) == linear


def test_gpt2_cache_bytes(gpt2_run):
    _, num_bytes = gpt2_run
    assert cache_bytes(1024, 12, 12, 64, batch_size=2) == num_bytes == 2 * 1024 * 36_864


def test_cache_bytes_equal_a_cache_with_fewer_kv_heads():
    from transformers import LlamaConfig, LlamaModel

    config = LlamaConfig(
        vocab_size=13,
        hidden_size=60,
        intermediate_size=17,
        num_hidden_layers=3,
        num_attention_heads=6,
        num_key_value_heads=2,
        pad_token_id=0,
    )
    with torch.no_grad():
        cache = LlamaModel(config).eval()(torch.zeros(7, 11, dtype=torch.long)).past_key_values
    num_bytes = sum(layer.keys.nbytes + layer.values.nbytes for layer in cache.layers)
    assert cache_bytes(11, 3, 2, 10, bytes_per_number=4, batch_size=7) == num_bytes


# Properties


@properties
@given(num_heads=sizes, width=sizes)
def test_head_width_undoes_the_product(num_heads, width):
    assert head_width(num_heads * width, num_heads) == width


@properties
@given(vocab=sizes, d=sizes, layers=sizes, ffn=sizes, max_len=sizes, segments=sizes)
def test_bert_grows_by_one_block_per_layer(vocab, d, layers, ffn, max_len, segments):
    total = count_bert(vocab, d, layers, ffn, max_len, segments)
    assert count_bert(vocab, d, layers + 1, ffn, max_len, segments) - total == count_block(d, ffn)
    assert sum(bert_parts(vocab, d, layers, ffn, max_len, segments).values()) == total


@properties
@given(n=sizes, d=sizes)
def test_twice_the_tokens_cost_twice_the_projections_and_four_times_the_pairs(n, d):
    assert projection_flops(2 * n, d) == 2 * projection_flops(n, d)
    assert pairwise_flops(2 * n, d) == 4 * pairwise_flops(n, d)
    assert attention_flops(n, d) == projection_flops(n, d) + pairwise_flops(n, d)


@properties
@given(n=sizes, num_heads=sizes, width=sizes)
def test_heads_do_not_change_the_cost_of_the_pairs(n, num_heads, width):
    one_head = matmul_flops(n, width, n) + matmul_flops(n, n, width)
    assert num_heads * one_head == pairwise_flops(n, num_heads * width)


@properties
@given(d=sizes)
def test_pairs_cost_more_only_past_the_crossing(d):
    n = crossing_length(d)
    assert pairwise_flops(n - 1, d) < projection_flops(n - 1, d)
    assert pairwise_flops(n, d) == projection_flops(n, d)
    assert pairwise_flops(n + 1, d) > projection_flops(n + 1, d)


@properties
@given(d=sizes, ffn=sizes)
def test_pairs_cost_more_than_the_rest_of_a_block_only_past_the_crossing(d, ffn):
    def more(n):
        rest = projection_flops(n, d) + feed_forward_flops(n, d, ffn)
        return pairwise_flops(n, d) - rest

    n = crossing_length(d, ffn)
    assert more(n - 1) < 0 == more(n) < more(n + 1)


@properties
@given(factor=sizes, argument=st.sampled_from(sorted(GOOD_CALLS["cache_bytes"])))
def test_cache_bytes_is_linear_in_every_argument(factor, argument):
    size = GOOD_CALLS["cache_bytes"][argument]
    assert call("cache_bytes", **{argument: factor * size}) == factor * call("cache_bytes")


# Bad input, and exact results


def test_every_public_function_is_in_the_table_of_calls():
    assert sorted(GOOD_CALLS) == sorted(counting.__all__)


@pytest.mark.parametrize("name", GOOD_CALLS)
def test_results_are_python_ints(name):
    result = call(name)
    values = result.values() if isinstance(result, dict) else [result]
    assert {type(value) for value in values} == {int}


def test_results_are_exact_beyond_64_bits():
    n, d = 10**12 + 39, 10**12 + 61
    assert attention_flops(n, d) == 4 * n * d * (2 * d + n) > 2**64


@pytest.mark.parametrize("value", [0, -7])
@pytest.mark.parametrize(("name", "argument"), SIZE_ARGUMENTS)
def test_sizes_below_one_are_refused(name, argument, value):
    with pytest.raises(ValueError, match=f"^{argument} must be at least 1, got {value}$"):
        call(name, **{argument: value})


@pytest.mark.parametrize(
    ("value", "quoted"),
    [
        (35.0, "35.0 (float)"),
        (True, "True (bool)"),
        ("35", "'35' (str)"),
        (None, "None (NoneType)"),
        (np.int64(35), "np.int64(35) (int64)"),
        (torch.tensor(35), "tensor(35) (Tensor)"),
    ],
    ids=lambda x: type(x).__name__,
)
@pytest.mark.parametrize(("name", "argument"), SIZE_ARGUMENTS)
def test_sizes_of_another_type_are_refused(name, argument, value, quoted):
    with pytest.raises(TypeError) as error:
        call(name, **{argument: value})
    assert str(error.value) == f"{argument} must be a Python int, got {quoted}"


@pytest.mark.parametrize(("value", "error"), [(0, ValueError), (-7, ValueError), (5.0, TypeError)])
def test_crossing_length_refuses_an_inner_width_that_is_no_size(value, error):
    with pytest.raises(error, match=f"^ffn_num_hiddens must be .*, got {value}"):
        crossing_length(3, value)


@pytest.mark.parametrize("value", [1, 0, 8, None, "no"])
@pytest.mark.parametrize("name", ["count_linear", "count_attention"])
def test_bias_must_be_a_bool(name, value):
    with pytest.raises(TypeError) as error:
        call(name, bias=value)
    assert str(error.value) == f"bias must be True or False, got {value!r} ({type(value).__name__})"


@pytest.mark.parametrize(("num_hiddens", "num_heads"), [(512, 7), (5, 35)])
def test_head_width_refuses_heads_that_do_not_divide(num_hiddens, num_heads):
    message = f"num_hiddens={num_hiddens} .* num_heads={num_heads}: {num_hiddens % num_heads} left"
    with pytest.raises(ValueError, match=message):
        head_width(num_hiddens, num_heads)
