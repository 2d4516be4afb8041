"""`mha_course.attention` against hand-computed numbers, PyTorch, d2l and plain loops."""

import math

import pytest
import torch
from attention_inputs import (
    CLOSE,
    D_K,
    D_V,
    EXAMPLES,
    HIDDENS,
    SIZES,
    B,
    H,
    L,
    S,
    draw,
    draw_lengths,
    draw_mask,
    draw_qkv,
    loop_attention,
    numbers,
)
from hypothesis import given
from hypothesis import strategies as st
from torch.nn import functional as F

from mha_course.attention import (
    AdditiveAttention,
    DotProductAttention,
    combined_mask,
    dot_product_weights,
    length_mask,
    masked_softmax,
    scaled_dot_product_attention,
)
from mha_course.interop import import_d2l

# masked_softmax


def test_masked_softmax_by_hand():
    # exp(log 1), exp(log 2), exp(log 5) = 1, 2, 5: of all three 8, of the first two 3.
    scores = numbers([[[1, 2, 5]] * 4]).log()
    expected = numbers([[[1 / 8, 2 / 8, 5 / 8], [1 / 3, 2 / 3, 0], [1, 0, 0], [0, 0, 0]]])
    weights = masked_softmax(scores, torch.tensor([[3, 2, 1, 0]]))
    torch.testing.assert_close(weights, expected, **CLOSE)


@SIZES
@pytest.mark.parametrize("kind", ["one a sequence", "one a query"])
def test_masked_softmax_equals_softmax_of_the_seen_keys_alone(num_queries, num_keys, kind):
    scores = draw(B, num_queries, num_keys)
    lengths = draw_lengths(kind, num_queries, num_keys)
    weights = masked_softmax(scores, lengths)
    per_query = lengths.reshape(B, -1).expand(B, num_queries)
    for b in range(B):
        for i in range(num_queries):
            n = per_query[b, i]
            torch.testing.assert_close(weights[b, i, :n], scores[b, i, :n].softmax(-1), **CLOSE)
            assert (weights[b, i, n:] == 0).all()


@SIZES
@pytest.mark.parametrize("kind", ["one a sequence", "one a query"])
def test_masked_softmax_equals_d2l(num_queries, num_keys, kind):
    scores = draw(B, num_queries, num_keys)
    lengths = draw_lengths(kind, num_queries, num_keys)
    book = import_d2l().masked_softmax(scores.clone(), lengths)
    torch.testing.assert_close(masked_softmax(scores, lengths), book, **CLOSE)


def test_masked_softmax_without_lengths_is_softmax():
    scores = draw(B, L, S)
    assert torch.equal(masked_softmax(scores), torch.softmax(scores, dim=-1))


def test_masked_softmax_leaves_the_scores_alone_where_d2l_does_not():
    scores = draw(B, L, S)
    before = scores.clone()
    masked_softmax(scores, torch.tensor([1, 2, 3]))
    assert torch.equal(scores, before)
    import_d2l().masked_softmax(scores, torch.tensor([1, 2, 3]))
    assert not torch.equal(scores, before)


def test_masked_softmax_of_length_0_is_zero_where_d2l_is_uniform():
    scores, lengths = draw(B, L, S), torch.tensor([0, 1, S])
    assert (masked_softmax(scores, lengths)[0] == 0).all()
    book = import_d2l().masked_softmax(scores.clone(), lengths)
    torch.testing.assert_close(book[0], torch.full_like(book[0], 1 / S), **CLOSE)


@EXAMPLES
@given(
    st.lists(st.integers(0, S), min_size=B * L, max_size=B * L),
    st.integers(0, 2**32),
    st.sampled_from([1e-3, 1.0, 300.0]),
)
def test_masked_softmax_rows_sum_to_1_or_are_zero(lengths, seed, spread):
    lengths = torch.tensor(lengths).reshape(B, L)
    weights = masked_softmax(spread * draw(B, L, S, seed=seed), lengths)
    torch.testing.assert_close(weights.sum(-1), (lengths > 0).double(), **CLOSE)
    past = torch.arange(S) >= lengths.unsqueeze(-1)
    assert (weights[past] == 0).all() and (weights >= 0).all()


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_masked_softmax_keeps_the_dtype(dtype):
    scores, lengths = draw(B, L, S), torch.tensor([0, 2, S])
    weights = masked_softmax(scores.to(dtype), lengths)
    assert weights.dtype == dtype
    assert (weights[0] == 0).all() and (weights[1, :, 2:] == 0).all()
    atol = 4 * torch.finfo(dtype).eps
    torch.testing.assert_close(weights.double(), masked_softmax(scores, lengths), rtol=0, atol=atol)


# length_mask


def test_length_mask_by_hand():
    assert length_mask(torch.tensor([2, 0]), 2, 5, 3).tolist() == [
        [[True, True, False]],
        [[False, False, False]],
    ]
    assert length_mask(torch.tensor([[1, 3]]), 1, 2, 3).tolist() == [
        [[True, False, False], [True, True, True]]
    ]


@pytest.mark.parametrize("dtype", [torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64])
def test_length_mask_takes_every_integer_dtype(dtype):
    lengths = torch.tensor([1, 4, S])
    expected = length_mask(lengths, B, L, S)
    assert torch.equal(length_mask(lengths.to(dtype), B, L, S), expected)


@pytest.mark.parametrize("shape, rows", [((0,), 1), ((0, L), L)])
def test_length_mask_of_an_empty_batch_is_empty(shape, rows):
    assert length_mask(torch.zeros(shape, dtype=torch.int64), 0, L, S).shape == (0, rows, S)


# combined_mask and dot_product_weights


def test_combined_mask_by_hand():
    queries, keys, mask = draw(1, 2, 3), draw(1, 3, 3), torch.tensor([[True, False, True]] * 2)
    assert combined_mask(queries, keys) is None
    lengths = torch.tensor([2])
    assert combined_mask(queries, keys, lengths).tolist() == [[[True, True, False]]]
    both = combined_mask(queries, keys, lengths, mask)
    assert both.tolist() == [[[True, False, False]] * 2]


@pytest.mark.parametrize("kind", [None, "one a sequence", "one a query"])
@pytest.mark.parametrize(
    "shape", [(L, S), (1, S), (B, L, S), (B, 1, S), (B, H, L, S), (1, H, 1, 1)]
)
def test_combined_mask_spreads_over_the_heads(kind, shape):
    lengths = None if kind is None else draw_lengths(kind, L, S)
    queries, keys, _ = draw_qkv(heads=(H,))
    mask = draw_mask(*shape)
    allowed = combined_mask(queries, keys, lengths, mask).expand(B, H, L, S)
    per_sequence = mask if len(shape) > 2 else mask.expand(B, *shape)
    per_head = per_sequence if len(shape) == 4 else torch.stack([per_sequence] * H, dim=1)
    expected = per_head.expand(B, H, L, S)
    if lengths is not None:
        expected = expected & (torch.arange(S) < lengths.reshape(B, 1, -1, 1))
    assert torch.equal(allowed, expected)


def test_weights_are_those_of_scaled_dot_product_attention_heads_or_not():
    for heads in ((), (H,)):
        queries, keys, values = draw_qkv(heads=heads)
        options = dict(valid_lens=torch.tensor([1, 4, S]), mask=draw_mask(B, L, S))
        weights = dot_product_weights(queries, keys, **options)
        expected = scaled_dot_product_attention(queries, keys, values, **options)[1]
        assert torch.equal(weights, expected) and weights.shape == (B, *heads, L, S)
        allowed = combined_mask(queries, keys, **options).expand(weights.shape)
        scores = torch.einsum("...ld,...sd->...ls", queries, keys) / D_K**0.5
        expected = scores.masked_fill(~allowed, -math.inf).softmax(-1)
        torch.testing.assert_close(weights, expected, **CLOSE)


# scaled_dot_product_attention and DotProductAttention


def test_scaled_dot_product_attention_by_hand():
    # Scores 0 and 2·log(3), divided by √4: weights 1/4 and 3/4.
    queries = numbers([[[1, 1, 1, 1]]])
    keys = numbers([[[1, -1, 1, -1], [2 * math.log(3), 0, 0, 0]]])
    values = numbers([[[4, 0, 8], [0, 4, 8]]])
    output, weights = scaled_dot_product_attention(queries, keys, values)
    torch.testing.assert_close(weights, numbers([[[0.25, 0.75]]]), **CLOSE)
    torch.testing.assert_close(output, numbers([[[1, 3, 8]]]), **CLOSE)


@SIZES
def test_attention_equals_the_definition_and_torch(num_queries, num_keys):
    qkv = draw_qkv(num_queries, num_keys)
    output, weights = scaled_dot_product_attention(*qkv)
    loop_output, loop_weights = loop_attention(*qkv, lambda b, i: range(num_keys))
    torch.testing.assert_close(output, loop_output, **CLOSE)
    torch.testing.assert_close(weights, loop_weights, **CLOSE)
    torch.testing.assert_close(output, F.scaled_dot_product_attention(*qkv), **CLOSE)


@SIZES
@pytest.mark.parametrize("kind", ["one a sequence", "one a query"])
def test_attention_with_lengths_equals_the_definition_d2l_and_torch(num_queries, num_keys, kind):
    qkv = draw_qkv(num_queries, num_keys)
    lengths = draw_lengths(kind, num_queries, num_keys)
    per_query = lengths.reshape(B, -1).expand(B, num_queries)
    output, weights = scaled_dot_product_attention(*qkv, lengths)
    loop_output, loop_weights = loop_attention(*qkv, lambda b, i: range(per_query[b, i]))
    torch.testing.assert_close(output, loop_output, **CLOSE)
    torch.testing.assert_close(weights, loop_weights, **CLOSE)
    book = import_d2l().DotProductAttention(0.0)
    torch.testing.assert_close(output, book(*qkv, lengths), **CLOSE)
    torch.testing.assert_close(weights, book.attention_weights, **CLOSE)
    allowed = torch.arange(num_keys) < per_query.unsqueeze(-1)
    expected = F.scaled_dot_product_attention(*qkv, attn_mask=allowed)
    torch.testing.assert_close(output, expected, **CLOSE)


@pytest.mark.parametrize("shape", [(L, S), (B, L, S), (1, L, S), (B, 1, S), (B, L, 1), (1, 1, S)])
def test_attention_with_a_mask_equals_the_definition_and_torch(shape):
    qkv, mask = draw_qkv(), draw_mask(*shape)
    full = mask.expand(B, L, S)
    output, weights = scaled_dot_product_attention(*qkv, mask=mask)
    loop_output, loop_weights = loop_attention(*qkv, lambda b, i: full[b, i].nonzero()[:, 0])
    torch.testing.assert_close(output, loop_output, **CLOSE)
    torch.testing.assert_close(weights, loop_weights, **CLOSE)
    expected = F.scaled_dot_product_attention(*qkv, attn_mask=full)
    torch.testing.assert_close(output, expected, **CLOSE)


def test_causal_mask_lets_a_query_see_itself_and_what_came_before():
    qkv = draw_qkv(S, S)
    mask = torch.ones(S, S, dtype=torch.bool).tril()
    output, weights = scaled_dot_product_attention(*qkv, mask=mask)
    expected = F.scaled_dot_product_attention(*qkv, is_causal=True)
    torch.testing.assert_close(output, expected, **CLOSE)
    assert (weights.triu(1) == 0).all() and (weights.diagonal(dim1=1, dim2=2) > 0).all()


@pytest.mark.parametrize("kind", ["one a sequence", "one a query"])
def test_lengths_and_mask_together_allow_what_both_allow(kind):
    qkv, mask = draw_qkv(), draw_mask(B, L, S)
    lengths = draw_lengths(kind, L, S)
    together = mask & (torch.arange(S) < lengths.reshape(B, -1, 1))
    for got, expected in zip(
        scaled_dot_product_attention(*qkv, lengths, mask),
        scaled_dot_product_attention(*qkv, mask=together),
        strict=True,
    ):
        assert torch.equal(got, expected)


@SIZES
@pytest.mark.parametrize("kind", ["none", "one a sequence", "one a query", "mask", "mask of heads"])
def test_attention_with_a_head_axis_equals_a_loop_of_heads(num_queries, num_keys, kind):
    queries, keys, values = draw_qkv(num_queries, num_keys, heads=(H,))
    lengths = mask = None
    if kind.startswith("one"):
        lengths = draw_lengths(kind, num_queries, num_keys)
    elif kind.startswith("mask"):
        heads = (H,) if kind == "mask of heads" else ()
        mask = draw_mask(B, *heads, num_queries, num_keys)
    output, weights = scaled_dot_product_attention(queries, keys, values, lengths, mask)
    for h in range(H):
        one = mask[:, h] if kind == "mask of heads" else mask
        head = (queries[:, h], keys[:, h], values[:, h], lengths, one)
        head_output, head_weights = scaled_dot_product_attention(*head)
        torch.testing.assert_close(output[:, h], head_output, **CLOSE)
        torch.testing.assert_close(weights[:, h], head_weights, **CLOSE)


@EXAMPLES
@given(st.permutations(range(S)), st.integers(0, 2**32))
def test_permuting_key_value_pairs_changes_only_the_order_of_the_weights(order, seed):
    queries, keys, values = draw_qkv()
    mask = draw_mask(B, L, S, seed=seed)
    output, weights = scaled_dot_product_attention(queries, keys, values, mask=mask)
    permuted = (queries, keys[:, order], values[:, order])
    moved_output, moved_weights = scaled_dot_product_attention(*permuted, mask=mask[..., order])
    torch.testing.assert_close(moved_output, output, **CLOSE)
    torch.testing.assert_close(moved_weights, weights[..., order], **CLOSE)


@EXAMPLES
@given(st.lists(st.booleans(), min_size=B * L * S, max_size=B * L * S))
def test_weights_sum_to_1_or_are_zero_and_the_output_stays_between_the_values(allowed):
    mask = torch.tensor(allowed).reshape(B, L, S)
    queries, keys, values = draw_qkv()
    output, weights = scaled_dot_product_attention(queries, keys, values, mask=mask)
    assert (weights[~mask] == 0).all()
    torch.testing.assert_close(weights.sum(-1), mask.any(-1).double(), **CLOSE)
    low = values.amin(1, keepdim=True).clamp(max=0)
    high = values.amax(1, keepdim=True).clamp(min=0)
    assert ((output >= low - 1e-12) & (output <= high + 1e-12)).all()


def test_padding_cannot_be_seen():
    queries, keys, values = draw_qkv()
    lengths = torch.tensor([2, 3, 5])
    changed_keys, changed_values = keys.clone(), values.clone()
    for b, n in enumerate(lengths):
        changed_keys[b, n:], changed_values[b, n:] = 1e3, -1e3
    output, _ = scaled_dot_product_attention(queries, keys, values, lengths)
    changed, _ = scaled_dot_product_attention(queries, changed_keys, changed_values, lengths)
    torch.testing.assert_close(changed, output, **CLOSE)


@pytest.mark.parametrize("how", ["lengths", "mask"])
def test_a_query_with_nothing_to_attend_to_gets_zeros_and_finite_gradients(how):
    qkv = [X.requires_grad_() for X in draw_qkv()]
    lengths, mask = torch.tensor([0, 2, S]), None
    if how == "mask":
        lengths, mask = None, torch.arange(S) < lengths.reshape(B, 1, 1)
    output, weights = scaled_dot_product_attention(*qkv, lengths, mask)
    assert (output[0] == 0).all() and (weights[0] == 0).all()
    (output.square().sum() + weights.square().sum()).backward()
    for X in qkv:
        assert X.grad.isfinite().all()
        assert (X.grad[0] == 0).all() and (X.grad[1:] != 0).any()


@pytest.mark.parametrize("kind", ["one a sequence", "one a query"])
def test_gradients_equal_torch_and_d2l(kind):
    lengths, seed = draw_lengths(kind, L, S), draw(B, L, D_V, seed=5)
    allowed = torch.arange(S) < lengths.reshape(B, -1, 1)

    def gradients(attend):
        qkv = [X.requires_grad_() for X in draw_qkv()]
        return torch.autograd.grad(attend(*qkv), qkv, seed)

    ours = gradients(lambda *qkv: scaled_dot_product_attention(*qkv, lengths)[0])
    book = gradients(lambda *qkv: import_d2l().DotProductAttention(0.0)(*qkv, lengths))
    fused = gradients(lambda *qkv: F.scaled_dot_product_attention(*qkv, attn_mask=allowed))
    for got, one, other in zip(ours, book, fused, strict=True):
        torch.testing.assert_close(got, one, **CLOSE)
        torch.testing.assert_close(got, other, **CLOSE)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_attention_keeps_the_dtype(dtype):
    qkv, lengths = draw_qkv(), torch.tensor([0, 2, S])
    output, weights = scaled_dot_product_attention(*(X.to(dtype) for X in qkv), lengths)
    assert output.dtype == weights.dtype == dtype
    expected, _ = scaled_dot_product_attention(*(X.to(dtype).double() for X in qkv), lengths)
    atol = 16 * torch.finfo(dtype).eps
    torch.testing.assert_close(output.double(), expected, rtol=0, atol=atol)


@pytest.mark.parametrize("num_queries, num_keys", [(0, S), (L, 0)])
def test_no_queries_give_nothing_and_no_keys_give_zeros(num_queries, num_keys):
    output, weights = scaled_dot_product_attention(*draw_qkv(num_queries, num_keys))
    assert output.shape == (B, num_queries, D_V) and (output == 0).all()
    assert weights.shape == (B, num_queries, num_keys)


def test_keys_without_width_are_all_alike():
    values = draw(B, S, D_V)
    output, weights = scaled_dot_product_attention(draw(B, L, 0), draw(B, S, 0), values)
    expected = torch.full((B, L, S), 1 / S, dtype=torch.float64)
    torch.testing.assert_close(weights, expected, **CLOSE)
    torch.testing.assert_close(output, values.mean(1, keepdim=True).expand(B, L, D_V), **CLOSE)


def test_attention_runs_under_autocast():
    qkv, lengths = [X.float() for X in draw_qkv()], torch.tensor([0, 2, S])
    expected = scaled_dot_product_attention(*qkv, lengths)
    with torch.autocast("cpu", torch.bfloat16):
        got = scaled_dot_product_attention(*qkv, lengths)
    for one, other in zip(got, expected, strict=True):
        assert one.dtype == torch.bfloat16
        torch.testing.assert_close(one.float(), other, rtol=0, atol=0.1)


def test_module_equals_function_and_returns_weights_on_request_without_keeping_them():
    qkv, lengths, mask = draw_qkv(), torch.tensor([0, 2, S]), draw_mask(L, S)
    output, weights = scaled_dot_product_attention(*qkv, lengths, mask)
    module = DotProductAttention(dropout=0.5).eval()
    assert torch.equal(module(*qkv, lengths, mask), output)
    got_output, got_weights = module(*qkv, lengths, mask, need_weights=True)
    assert torch.equal(got_output, output) and torch.equal(got_weights, weights)
    assert not any(torch.is_tensor(kept) for kept in vars(module).values())


def test_function_drops_weights_with_the_probability_it_is_given():
    qkv = draw_qkv()
    torch.manual_seed(0)
    output, weights = scaled_dot_product_attention(*qkv, dropout=0.5)
    torch.manual_seed(0)
    dropped = F.dropout(weights, 0.5)
    torch.testing.assert_close(output, dropped @ qkv[2], **CLOSE)
    assert (dropped == 0).any()
    torch.testing.assert_close(weights.sum(-1), torch.ones(B, L).double(), **CLOSE)
    assert (scaled_dot_product_attention(*qkv, dropout=1.0)[0] == 0).all()


@pytest.mark.parametrize("kind", ["dot product", "additive"])
def test_modules_drop_in_training_only_and_return_the_weights_before_dropout(kind):
    torch.manual_seed(0)
    if kind == "dot product":
        module = DotProductAttention(dropout=0.5)
    else:
        module = AdditiveAttention(D_K, D_K, HIDDENS, dropout=0.5).double()
    qkv, lengths = draw_qkv(), torch.tensor([1, 2, S])
    plain, weights = module.eval()(*qkv, lengths, need_weights=True)
    assert torch.equal(module(*qkv, lengths), plain)
    torch.manual_seed(0)
    output, train_weights = module.train()(*qkv, lengths, need_weights=True)
    assert torch.equal(train_weights, weights)
    torch.manual_seed(0)
    torch.testing.assert_close(output, F.dropout(weights, 0.5) @ qkv[2], **CLOSE)
    assert not torch.allclose(output, plain)


# AdditiveAttention


def test_additive_attention_by_hand():
    # Scores log(3)·tanh(0 + 0) = 0 and log(3)·tanh(0 + 20) = log(3): weights 1/4 and 3/4.
    module = AdditiveAttention(key_size=1, query_size=2, num_hiddens=1).double()
    with torch.no_grad():
        module.W_q.weight.copy_(numbers([[1, -1]]))
        module.W_k.weight.fill_(1.0)
        module.w_v.weight.fill_(math.log(3))
    queries = numbers([[[5, 5]]])
    keys = numbers([[[0], [20]]])
    values = numbers([[[4, 0, 8], [0, 4, 8]]])
    output, weights = module(queries, keys, values, need_weights=True)
    torch.testing.assert_close(weights, numbers([[[0.25, 0.75]]]), **CLOSE)
    torch.testing.assert_close(output, numbers([[[1, 3, 8]]]), **CLOSE)


@SIZES
@pytest.mark.parametrize("kind", ["none", "one a sequence", "one a query"])
def test_additive_attention_equals_d2l(num_queries, num_keys, kind):
    query_size = 19
    torch.manual_seed(0)
    book = import_d2l().AdditiveAttention(D_K, query_size, HIDDENS, 0.0).double()
    module = AdditiveAttention(D_K, query_size, HIDDENS).double()
    module.load_state_dict(book.state_dict())
    qkv = draw_qkv(num_queries, num_keys, width=query_size)
    lengths = None if kind == "none" else draw_lengths(kind, num_queries, num_keys)
    output, weights = module(*qkv, lengths, need_weights=True)
    torch.testing.assert_close(output, book(*qkv, lengths), **CLOSE)
    torch.testing.assert_close(weights, book.attention_weights, **CLOSE)
    seed = draw(*output.shape, seed=5)
    output.backward(seed)
    book(*qkv, lengths).backward(seed)
    for name, parameter in module.named_parameters():
        torch.testing.assert_close(parameter.grad, book.get_parameter(name).grad, **CLOSE)


def test_additive_attention_of_length_0_is_zero_with_finite_gradients():
    torch.manual_seed(0)
    module = AdditiveAttention(D_K, D_K, HIDDENS).double()
    output, weights = module(*draw_qkv(), torch.tensor([0, 2, S]), need_weights=True)
    assert (output[0] == 0).all() and (weights[0] == 0).all()
    output.square().sum().backward()
    assert all(p.grad.isfinite().all() and (p.grad != 0).any() for p in module.parameters())
