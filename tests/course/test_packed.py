"""`PackedMultiHeadAttention` against the plain class with the same weights, and PyTorch's."""

import inspect
import math

import pytest
import torch
from attention_inputs import NOT_BOOLEAN
from test_multihead import (
    BIAS,
    CLOSE,
    FUSED,
    KINDS,
    LONG,
    WIDTH,
    B,
    D,
    H,
    Record,
    S,
    as_mask,
    draw,
    draw_allowed,
    make,
    make_square,
)
from torch.nn import functional as F

from mha_course import packed
from mha_course.interop import to_torch
from mha_course.multihead import MultiHeadAttention
from mha_course.packed import PackedMultiHeadAttention


def pair(**options):
    """A plain module with random weights, and the packed one that is made of it."""
    plain = make_square(**options)
    return plain, PackedMultiHeadAttention.from_plain(plain)


# The same numbers as everyone else


def test_packed_attention_by_hand():
    # Two heads of width 1. The first two rows of W_qkv make queries, the next keys, the last
    # values: q = (x_0, 0), k = (x_0, x_1), v = (x_1, 1). Head 0 of word 0, which is (1, log 3),
    # scores 1 and 1 + log 3, so weights 1/4 and 3/4 of log 3 and 0; head 1 scores 0, 0.
    attention = PackedMultiHeadAttention(2, 2, bias=True).double()
    log3 = math.log(3)
    rows = [[1.0, 0.0], [0.0, 0.0], [1.0, 0.0], [0.0, 1.0], [0.0, 1.0], [0.0, 0.0]]
    attention.W_qkv.weight.data.copy_(torch.tensor(rows))
    attention.W_qkv.bias.data.copy_(torch.tensor([0.0, 0.0, 0.0, 0.0, 0.0, 1.0]))
    attention.W_o.weight.data.copy_(torch.tensor([[1.0, 1.0], [2.0, 0.0]]))
    attention.W_o.bias.data.zero_()
    X = torch.tensor([[[1.0, log3], [1 + log3, 0.0]]], dtype=torch.float64)
    output, weights = attention(X, need_weights=True)
    expected = torch.tensor([[0.25, 0.75], [0.5, 0.5]], dtype=torch.float64)
    torch.testing.assert_close(weights[0, :, 0], expected, **CLOSE)
    expected = torch.tensor([0.25 * log3 + 1, 0.5 * log3], dtype=torch.float64)
    torch.testing.assert_close(output[0, 0], expected, **CLOSE)
    torch.testing.assert_close(attention(X), output, **CLOSE)


@BIAS
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("need_weights", [False, True])
def test_results_and_gradients_equal_the_plain_class(bias, kind, need_weights):
    plain, attention = pair(bias=bias)
    options = draw_allowed(kind, S, S) | {"need_weights": need_weights}
    back = draw(B, S, WIDTH, seed=5)

    def results(call, module):
        X = draw(B, S, WIDTH).requires_grad_()
        output = call(X)
        output, weights = output if need_weights else (output, None)
        X_grad, *grads = torch.autograd.grad(output, [X, *module.parameters()], back)
        names = [name for name, _ in module.named_parameters()]
        return output, weights, X_grad, dict(zip(names, grads, strict=True))

    output, weights, X_grad, grads = results(lambda X: attention(X, **options), attention)
    expected = results(lambda X: plain(X, X, X, **options), plain)
    for got, wanted in zip((output, X_grad), (expected[0], expected[2]), strict=True):
        torch.testing.assert_close(got, wanted, **CLOSE)
    if need_weights:
        torch.testing.assert_close(weights, expected[1], **CLOSE)
    for name in ("weight", "bias") if bias else ("weight",):
        joined = torch.cat([expected[3][f"{W}.{name}"] for W in ("W_q", "W_k", "W_v")])
        torch.testing.assert_close(grads[f"W_qkv.{name}"], joined, **CLOSE)
        torch.testing.assert_close(grads[f"W_o.{name}"], expected[3][f"W_o.{name}"], **CLOSE)


@BIAS
@pytest.mark.parametrize("kind", KINDS)
def test_it_equals_torch_with_the_same_packed_weights(bias, kind):
    attention, X = pair(bias=bias)[1], draw(B, S, WIDTH)
    reference = torch.nn.MultiheadAttention(WIDTH, H, bias=bias, batch_first=True).double()
    reference.in_proj_weight.data.copy_(attention.W_qkv.weight)
    reference.out_proj.load_state_dict(attention.W_o.state_dict())
    if bias:
        reference.in_proj_bias.data.copy_(attention.W_qkv.bias)
    options = draw_allowed(kind, S, S)
    ignore = ~as_mask(S, S, **options).flatten(0, 1)  # PyTorch's module: True = ignore
    expected, expected_weights = reference(X, X, X, attn_mask=ignore, average_attn_weights=False)
    output, weights = attention(X, **options, need_weights=True)
    torch.testing.assert_close(output, expected, **CLOSE)
    torch.testing.assert_close(weights, expected_weights, **CLOSE)
    torch.testing.assert_close(attention(X, **options), expected, **CLOSE)


def test_it_has_as_many_parameters_as_the_plain_class():
    for bias in (False, True):
        plain, attention = pair(bias=bias)
        sizes = [sum(p.numel() for p in module.parameters()) for module in (plain, attention)]
        assert sizes == [4 * (WIDTH**2 + bias * WIDTH)] * 2
        assert attention.W_qkv.weight.shape == (3 * WIDTH, WIDTH)


# The two paths


@pytest.mark.parametrize("backward", [False, True])
@pytest.mark.parametrize("kind", ["none", "lengths"])
def test_the_fused_path_is_taken_and_makes_nothing_of_size_L_times_S(kind, backward):
    attention, X = pair(dropout=0.5)[1].eval(), draw(B, LONG, WIDTH)
    options = {} if kind == "none" else {"valid_lens": torch.tensor([0, 2, LONG])}
    with Record() as seen:
        output = attention(X, **options)
        if backward:
            output.sum().backward()
    assert FUSED in seen.names and "_softmax" not in seen.names
    assert (FUSED + "_backward" in seen.names) == backward
    assert seen.largest < LONG * LONG


def test_three_projections_are_one_product():
    attention, X = pair(bias=True)[1], draw(B, S, WIDTH)
    with Record() as seen, torch.no_grad():
        attention(X)
    assert seen.names.count("addmm") == 2  # W_qkv and W_o


def test_training_with_dropout_drops_weights_and_eval_does_not():
    plain, attention = pair(bias=True, dropout=0.5)
    X, lengths = draw(B, S, WIDTH), torch.tensor([1, S, 3])
    torch.testing.assert_close(attention.eval()(X, lengths), plain.eval()(X, X, X, lengths))
    torch.manual_seed(0)
    output, weights = attention.train()(X, lengths, need_weights=True)
    torch.manual_seed(0)
    expected, expected_weights = plain.train()(X, X, X, lengths, need_weights=True)
    torch.testing.assert_close(output, expected, **CLOSE)
    torch.testing.assert_close(weights, expected_weights, **CLOSE)  # before dropout
    torch.manual_seed(0)
    assert torch.equal(attention(X, lengths), output)


# From the plain class and back


@BIAS
def test_there_and_back_again_is_the_same_and_shares_nothing(bias):
    plain, attention = pair(bias=bias, dropout=0.3)
    back = attention.to_plain()
    assert [(n, p.dtype) for n, p in back.named_parameters()] == [
        (n, p.dtype) for n, p in plain.named_parameters()
    ]
    assert (back.num_heads, back.dropout.p) == (plain.num_heads, plain.dropout.p)
    for name, parameter in plain.state_dict().items():
        assert torch.equal(back.get_parameter(name), parameter), name
    X = draw(B, S, WIDTH)
    before = attention.eval()(X)
    with torch.no_grad():
        for parameter in (*plain.parameters(), *back.parameters()):
            parameter.zero_()
    assert torch.equal(attention(X), before)
    again = PackedMultiHeadAttention.from_plain(attention.to_plain())
    assert all(map(torch.equal, attention.parameters(), again.parameters()))


@pytest.mark.parametrize("training", [False, True])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_conversion_keeps_mode_dtype_and_gradients(training, dtype):
    plain = make_square(bias=True).to(dtype).train(training)
    attention = PackedMultiHeadAttention.from_plain(plain)
    for module in (attention, attention.to_plain()):
        assert module.training is module.dropout.training is training
        assert all(p.dtype == dtype and p.requires_grad and p.is_leaf for p in module.parameters())


def test_weights_of_torch_arrive_by_way_of_the_plain_class():
    attention = pair(bias=True)[1]
    reference = to_torch(attention.to_plain())
    assert torch.equal(reference.in_proj_weight, attention.W_qkv.weight)
    assert torch.equal(reference.in_proj_bias, attention.W_qkv.bias)


def test_what_cannot_be_packed_is_quoted():
    for sizes in ((13, WIDTH, WIDTH), (WIDTH, 13, WIDTH), (WIDTH, WIDTH, 13), (13, 13, 13)):
        with pytest.raises(ValueError, match=rf"num_hiddens={WIDTH} .*\({WIDTH}, 13\)"):
            PackedMultiHeadAttention.from_plain(make(sizes=sizes))
    odd = make_square(bias=True)
    odd.W_k = torch.nn.Linear(WIDTH, WIDTH, bias=False)
    with pytest.raises(ValueError, match="cannot be packed"):
        PackedMultiHeadAttention.from_plain(odd)


# Properties


def test_nothing_to_attend_to_gives_zero_heads_and_finite_gradients():
    attention, X = pair(bias=True)[1], draw(B, S, WIDTH).requires_grad_()
    for need_weights in (False, True):
        output = attention(X, torch.tensor([0, 2, S]), need_weights=need_weights)
        output = output[0] if need_weights else output
        torch.testing.assert_close(output[0], attention.W_o.bias.expand(S, WIDTH), **CLOSE)
        X.grad = None
        output.square().sum().backward()
        assert X.grad.isfinite().all() and (X.grad[0] == 0).all() and (X.grad[1:] != 0).any()


@pytest.mark.parametrize("sizes", [(1, 1), (2, 1), (1, 7), (0, 5), (3, 0)], ids=str)
def test_short_inputs(sizes):
    plain, attention = pair(bias=True)
    X = draw(*sizes, WIDTH)
    output, weights = attention(X, need_weights=True)
    expected, expected_weights = plain(X, X, X, need_weights=True)
    torch.testing.assert_close(output, expected, **CLOSE)
    torch.testing.assert_close(weights, expected_weights, **CLOSE)
    torch.testing.assert_close(attention(X), expected, **CLOSE)


def test_mixed_precision():
    attention, X = pair(bias=True)[1].float(), draw(B, S, WIDTH).float()
    expected, expected_weights = attention(X, need_weights=True)
    with torch.autocast("cpu", torch.bfloat16):
        output, weights = attention(X, need_weights=True)
        fused = attention(X)
    assert output.dtype == fused.dtype == torch.bfloat16
    for got, wanted in ((output, expected), (fused, expected), (weights, expected_weights)):
        torch.testing.assert_close(got.float(), wanted, rtol=0, atol=0.1)


# Bad input


@pytest.mark.parametrize("num_heads", [3, 4, 0, -1, WIDTH + 1])
def test_heads_that_do_not_divide_the_width_are_quoted(num_heads):
    match = f"num_hiddens={WIDTH} cannot be split into num_heads={num_heads}$"
    with pytest.raises(ValueError, match=match):
        PackedMultiHeadAttention(WIDTH, num_heads)


def test_heads_that_are_not_an_integer_are_quoted():
    with pytest.raises(TypeError, match="num_heads must be an integer, got 2.0"):
        PackedMultiHeadAttention(WIDTH, 2.0)


@pytest.mark.parametrize("dropout", [-0.1, 1.1, math.nan])
def test_dropout_that_is_no_probability_is_quoted(dropout):
    with pytest.raises(ValueError, match=f"dropout must lie in 0..1, got {dropout}"):
        PackedMultiHeadAttention(WIDTH, H, dropout)


@pytest.mark.parametrize("shape", [(), (WIDTH,), (S, WIDTH), (B, H, S, D)])
def test_ranks_other_than_3_are_quoted(shape):
    with pytest.raises(ValueError) as error:
        pair()[1](draw(*shape))
    assert f"X must be (B, L, num_hiddens), got {shape}" in str(error.value)


def test_a_width_the_module_was_not_made_for_is_quoted():
    with pytest.raises(ValueError, match=rf"X must have width {WIDTH}, got 13 in \({B}, {S}, 13\)"):
        pair()[1](draw(B, S, 13))


@pytest.mark.parametrize("X, kind", [([[[1.0]]], "list"), (draw(B, S, WIDTH).numpy(), "ndarray")])
def test_what_is_not_a_tensor_is_named(X, kind):
    with pytest.raises(TypeError, match=f"X must be a tensor .*, got {kind}"):
        pair()[1](X)


@pytest.mark.parametrize("dtype", [torch.float32, torch.int64, torch.bool])
def test_a_dtype_other_than_the_modules_is_named(dtype):
    with pytest.raises(TypeError, match=rf"inputs are {dtype}, .* weights torch.float64"):
        pair()[1](draw(B, S, WIDTH).to(dtype))


@pytest.mark.parametrize("need_weights", [False, True])
def test_bad_lengths_are_quoted(need_weights):
    call = pair()[1]
    with pytest.raises(ValueError, match=rf"0..S = 0..{S}, got {S + 1}"):
        call(draw(B, S, WIDTH), torch.tensor([1, 2, S + 1]), need_weights=need_weights)
    with pytest.raises(ValueError, match=rf"got \({B * H},\)"):
        call(draw(B, S, WIDTH), torch.ones(B * H, dtype=torch.int64), need_weights=need_weights)
    with pytest.raises(TypeError, match="integers, got torch.float32"):
        call(draw(B, S, WIDTH), torch.ones(B), need_weights=need_weights)


@pytest.mark.parametrize("need_weights", [False, True])
@pytest.mark.parametrize("shape", [(S,), (S, S + 1), (B * H, S, S), (B, H + 1, S, S)])
def test_a_mask_of_another_shape_is_quoted(need_weights, shape):
    with pytest.raises(ValueError) as error:
        mask = torch.ones(shape, dtype=torch.bool)
        pair()[1](draw(B, S, WIDTH), mask=mask, need_weights=need_weights)
    assert str((B, H, S, S)) in str(error.value) and f"got {shape}" in str(error.value)


@NOT_BOOLEAN
def test_a_mask_that_is_not_boolean_is_named(mask, kind):
    with pytest.raises(TypeError, match=f"boolean tensor, True = may attend, got {kind}"):
        pair()[1](draw(B, S, WIDTH), mask=mask)


# The module as a whole


def test_the_plain_class_with_its_weights_has_the_same_results_after_training():
    plain, attention = pair(bias=True)
    X, wanted = draw(B, S, WIDTH), draw(B, S, WIDTH, seed=7)
    for module, inputs in ((plain, (X, X, X)), (attention, (X,))):
        optimizer = torch.optim.SGD(module.parameters(), lr=0.1)
        for _ in range(3):
            optimizer.zero_grad()
            F.mse_loss(module(*inputs), wanted).backward()
            optimizer.step()
    for name, parameter in attention.to_plain().named_parameters():
        torch.testing.assert_close(parameter, plain.get_parameter(name), rtol=0, atol=1e-12)
    fresh = MultiHeadAttention(*[WIDTH] * 4, H, bias=True)
    assert attention.to_plain().state_dict().keys() == fresh.state_dict().keys()


@pytest.mark.parametrize("name", packed.__all__)
def test_docstrings_say_shapes_what_is_raised_source_and_lesson(name):
    doc = inspect.getdoc(getattr(packed, name))
    assert all(f"{part}:" in doc for part in ("Shapes", "Raises", "Source", "Lesson"))
