"""What no caller of attention wants: changed tensors, and bad input that passes."""

import inspect
import math

import numpy as np
import pytest
import torch
from attention_inputs import D_K, D_V, HIDDENS, NOT_BOOLEAN, B, H, L, S, draw, draw_mask, draw_qkv

from mha_course import attention
from mha_course.attention import (
    AdditiveAttention,
    DotProductAttention,
    combined_mask,
    dot_product_weights,
    masked_softmax,
    scaled_dot_product_attention,
)
from mha_course.interop import import_d2l


def callers():
    """What attends, masks or weighs, as a call (queries, keys, values, lengths, mask)."""
    additive = AdditiveAttention(D_K, D_K, HIDDENS).double()
    return {
        "function": scaled_dot_product_attention,
        "module": DotProductAttention(),
        "additive": lambda q, k, v, valid_lens=None, mask=None: additive(q, k, v, valid_lens),
        "mask": lambda q, k, v, valid_lens=None, mask=None: combined_mask(q, k, valid_lens, mask),
        "weights": lambda q, k, v, *lens, **mask: dot_product_weights(q, k, *lens, **mask),
    }


CALLERS = pytest.mark.parametrize("caller", ["function", "module", "additive"])


@CALLERS
def test_the_callers_tensors_are_not_changed(caller):
    tensors = [*draw_qkv(), torch.tensor([0, 2, S]), draw_mask(L, S)]
    before = [X.clone() for X in tensors]
    callers()[caller](*tensors)
    assert all(torch.equal(X, Y) for X, Y in zip(tensors, before, strict=True))


Q, K, V = (B, L, D_K), (B, S, D_K), (B, S, D_V)

BAD_SHAPES = {
    "rank 2": ((L, D_K), (S, D_K), (S, D_V)),
    "rank 5": ((1, B, H, L, D_K), (1, B, H, S, D_K), (1, B, H, S, D_V)),
    "mixed ranks": ((B, H, L, D_K), K, V),
    "batch of the keys": (Q, (B + 1, S, D_K), (B + 1, S, D_V)),
    "batch of 1": (Q, (1, S, D_K), (1, S, D_V)),
    "batch of the values": (Q, K, (B + 1, S, D_V)),
    "heads": ((B, H, L, D_K), (B, H + 1, S, D_K), (B, H + 1, S, D_V)),
    "keys and values": (Q, K, (B, S + 1, D_V)),
}


@CALLERS
@pytest.mark.parametrize("shapes", BAD_SHAPES.values(), ids=BAD_SHAPES.keys())
def test_shapes_that_do_not_fit_are_quoted(caller, shapes):
    with pytest.raises(ValueError) as error:
        callers()[caller](*(draw(*shape) for shape in shapes))
    for shape in shapes:
        assert str(shape) in str(error.value)


@CALLERS
@pytest.mark.parametrize("shape", [(L, D_K), (1, B, H, L, D_K)])
def test_self_attention_quotes_a_rank_that_does_not_fit(caller, shape):
    X = draw(*shape)
    with pytest.raises(ValueError) as error:
        callers()[caller](X, X, X)
    assert f"queries {shape}, keys {shape}, values {shape}" in str(error.value)


@CALLERS
def test_self_attention_names_integers(caller):
    X = draw(B, L, D_K).long()
    with pytest.raises(TypeError, match="queries must be a floating-point tensor, got torch.int64"):
        callers()[caller](X, X, X)


@pytest.mark.parametrize("caller", ["function", "module"])
def test_widths_that_differ_are_quoted(caller):
    queries, keys, values = draw_qkv(width=D_K + 2)
    with pytest.raises(ValueError, match=f"d_k, not {D_K + 2} and {D_K}, got queries"):
        callers()[caller](queries, keys, values)


@pytest.mark.parametrize("name", ["queries", "keys"])
def test_additive_attention_quotes_a_width_it_was_not_made_for(name):
    sizes = dict(key_size=D_K, query_size=D_K)
    sizes["key_size" if name == "keys" else "query_size"] = D_K + 2
    module = AdditiveAttention(num_hiddens=HIDDENS, **sizes).double()
    with pytest.raises(ValueError, match=f"{name} must have width {D_K + 2}, got {D_K} in"):
        module(*draw_qkv())


def test_additive_attention_quotes_a_dtype_it_was_not_made_for():
    with pytest.raises(TypeError, match=r"inputs are torch.float64, .* weights torch.float32"):
        AdditiveAttention(D_K, D_K, HIDDENS)(*draw_qkv())


def test_additive_attention_runs_under_autocast():
    module = AdditiveAttention(D_K, D_K, HIDDENS)
    with torch.autocast("cpu", torch.bfloat16):
        output = module(*(X.bfloat16() for X in draw_qkv()))
    assert output.dtype == torch.bfloat16


NOT_FLOATS = {
    "torch.int64": lambda X: X.long(),
    "torch.bool": lambda X: X > 0,
    "torch.complex128": lambda X: X + 0j,
    "list": lambda X: X.tolist(),
    "ndarray": lambda X: X.numpy(),
    "NoneType": lambda X: None,
}


@CALLERS
@pytest.mark.parametrize("kind", NOT_FLOATS)
@pytest.mark.parametrize("position", range(3))
def test_what_is_not_a_floating_point_tensor_is_named(caller, kind, position):
    qkv = list(draw_qkv())
    qkv[position] = NOT_FLOATS[kind](qkv[position])
    name = ("queries", "keys", "values")[position]
    with pytest.raises(TypeError, match=f"{name} must be a floating-point tensor, got {kind}"):
        callers()[caller](*qkv)


@CALLERS
@pytest.mark.parametrize("position", range(3))
def test_mixed_dtypes_are_named(caller, position):
    qkv = list(draw_qkv())
    qkv[position] = qkv[position].float()
    name = ("queries", "keys", "values")[position]
    with pytest.raises(TypeError, match=f"one dtype, got .*{name} torch.float32"):
        callers()[caller](*qkv)


BAD_LENGTHS = {
    "floats": (torch.ones(B), TypeError, "integers, got torch.float32"),
    "complex": (torch.ones(B) + 0j, TypeError, "integers, got torch.complex64"),
    "booleans": (torch.ones(B, dtype=torch.bool), TypeError, r"got torch.bool: .*mask="),
    "list": ([1, 2, 3], TypeError, "integers, got list"),
    "array": (np.array([1, 2, 3]), TypeError, "integers, got ndarray"),
    "number": (3, TypeError, "integers, got int"),
    "scalar": (torch.tensor(3), ValueError, rf"\({B},\) .* \({B}, {L}\), got \(\)"),
    "batch": (torch.ones(B + 1, dtype=torch.int64), ValueError, rf"got \({B + 1},\)"),
    "one": (torch.ones(1, dtype=torch.int64), ValueError, r"got \(1,\)"),
    "column": (torch.ones(B, 1, dtype=torch.int64), ValueError, rf"got \({B}, 1\)"),
    "keys": (torch.ones(B, S, dtype=torch.int64), ValueError, rf"got \({B}, {S}\)"),
    "rank 3": (torch.ones(B, L, 1, dtype=torch.int64), ValueError, rf"got \({B}, {L}, 1\)"),
    "negative": (torch.tensor([1, -2, 3]), ValueError, rf"0..S = 0..{S}, got -2"),
    "beyond S": (torch.tensor([1, 2, S + 1]), ValueError, rf"0..S = 0..{S}, got {S + 1}"),
    "beyond S, a query": (torch.full((B, L), S + 4), ValueError, rf"0..{S}, got {S + 4}"),
}


@pytest.mark.parametrize(
    "caller", ["function", "module", "additive", "mask", "weights", "masked_softmax"]
)
@pytest.mark.parametrize("lengths, error, match", BAD_LENGTHS.values(), ids=BAD_LENGTHS.keys())
def test_bad_lengths_are_quoted(caller, lengths, error, match):
    with pytest.raises(error, match=match):
        if caller == "masked_softmax":
            masked_softmax(draw(B, L, S), lengths)
        else:
            callers()[caller](*draw_qkv(), lengths)


def test_lengths_beyond_the_keys_pass_in_d2l():
    scores = draw(B, L, S)
    book = import_d2l().masked_softmax(scores.clone(), torch.tensor([1, 2, S + 1]))
    assert torch.equal(book[2], scores[2].softmax(-1))


@pytest.mark.parametrize("shape", [(), (S,), (L, S), (B, H, L, S)])
def test_masked_softmax_quotes_scores_of_another_rank(shape):
    with pytest.raises(ValueError) as error:
        masked_softmax(draw(*shape), torch.ones(B, dtype=torch.int64))
    assert f"(B, L, S), got {shape}" in str(error.value)


@pytest.mark.parametrize("kind", NOT_FLOATS)
def test_masked_softmax_names_what_is_not_a_floating_point_tensor(kind):
    with pytest.raises(TypeError, match=f"scores must be a floating-point tensor, got {kind}"):
        masked_softmax(NOT_FLOATS[kind](draw(B, L, S)), torch.tensor([1, 2, 3]))


@pytest.mark.parametrize("caller", ["function", "module"])
@pytest.mark.parametrize(
    "shape", [(), (S,), (L, S + 1), (S, L), (B + 1, L, S), (B, S, L), (B, H, L, S), (1, B, L, S)]
)
def test_a_mask_of_another_shape_is_quoted(caller, shape):
    with pytest.raises(ValueError) as error:
        callers()[caller](*draw_qkv(), mask=torch.ones(shape, dtype=torch.bool))
    assert str((B, L, S)) in str(error.value) and f"got {shape}" in str(error.value)


@pytest.mark.parametrize("shape", [(B, L + 1, S), (B, H + 1, L, S), (H, L, S), (1, B, H, L, S)])
def test_a_mask_that_does_not_fit_the_heads_is_quoted(shape):
    for caller in ("function", "mask", "weights"):
        with pytest.raises(ValueError) as error:
            mask = torch.ones(shape, dtype=torch.bool)
            callers()[caller](*draw_qkv(heads=(H,)), mask=mask)
        assert str((B, H, L, S)) in str(error.value) and f"got {shape}" in str(error.value)


@pytest.mark.parametrize("caller", ["function", "module", "mask", "weights"])
@NOT_BOOLEAN
def test_a_mask_that_is_not_boolean_is_named(caller, mask, kind):
    with pytest.raises(TypeError, match=f"boolean tensor, True = may attend, got {kind}"):
        callers()[caller](*draw_qkv(), mask=mask)


@pytest.mark.parametrize("dropout", [-0.1, 1.1, math.nan])
def test_dropout_that_is_no_probability_is_quoted(dropout):
    makers = {
        "function": lambda: scaled_dot_product_attention(*draw_qkv(), dropout=dropout),
        "module": lambda: DotProductAttention(dropout),
        "additive": lambda: AdditiveAttention(D_K, D_K, HIDDENS, dropout),
    }
    for make in makers.values():
        with pytest.raises(ValueError, match=f"dropout must lie in 0..1, got {dropout}"):
            make()


@pytest.mark.parametrize("name", attention.__all__)
def test_docstrings_say_shapes_what_is_raised_and_the_lesson(name):
    doc = inspect.getdoc(getattr(attention, name))
    assert all(f"{part}:" in doc for part in ("Shapes", "Raises", "Lesson"))
