"""What `MultiHeadAttention` says of input that does not fit."""

import math

import numpy as np
import pytest
import torch
from attention_inputs import NOT_BOOLEAN
from test_multihead import KEY, QUERY, VALUE, WIDTH, B, H, L, S, draw, draw_inputs, make

from mha_course.multihead import MultiHeadAttention

Q, K, V = (B, L, QUERY), (B, S, KEY), (B, S, VALUE)
BAD_SHAPES = {
    "rank 2": ((L, QUERY), (S, KEY), (S, VALUE)),
    "mixed ranks": (Q, (S, KEY), V),
    "batch of the keys": (Q, (B + 1, S, KEY), V),
    "batch of 1": ((1, L, QUERY), K, V),
    "keys and values": (Q, K, (B, S + 1, VALUE)),
}


@pytest.mark.parametrize("shapes", BAD_SHAPES.values(), ids=BAD_SHAPES.keys())
def test_shapes_that_do_not_fit_are_quoted(shapes):
    with pytest.raises(ValueError) as error:
        make()(*(draw(*shape) for shape in shapes))
    for shape in shapes:
        assert str(shape) in str(error.value)


def test_inputs_that_are_split_already_are_quoted():
    with pytest.raises(ValueError) as error:
        make()(draw(B, H, L, QUERY), draw(B, H, S, KEY), draw(B, H, S, VALUE))
    assert f"queries must be (B, L, query_size), got {(B, H, L, QUERY)}" in str(error.value)


@pytest.mark.parametrize("position", range(3))
def test_a_width_the_module_was_not_made_for_is_quoted(position):
    inputs = list(draw_inputs())
    inputs[position] = torch.cat([inputs[position]] * 2, dim=-1)
    name, width = ("queries", "keys", "values")[position], (QUERY, KEY, VALUE)[position]
    with pytest.raises(ValueError, match=f"{name} must have width {width}, got {2 * width} in"):
        make()(*inputs)


def test_queries_and_keys_in_the_wrong_places_are_quoted():
    queries, keys, values = draw_inputs(S, S)
    with pytest.raises(ValueError, match=f"queries must have width {QUERY}, got {KEY} in"):
        make()(keys, queries, values)


NOT_FLOATS = {
    "torch.int64": lambda X: X.long(),
    "torch.bool": lambda X: X > 0,
    "list": lambda X: X.tolist(),
    "ndarray": lambda X: X.numpy(),
}


@pytest.mark.parametrize("kind", NOT_FLOATS)
@pytest.mark.parametrize("position", range(3))
def test_what_is_not_a_floating_point_tensor_is_named(kind, position):
    inputs = list(draw_inputs())
    inputs[position] = NOT_FLOATS[kind](inputs[position])
    name = ("queries", "keys", "values")[position]
    with pytest.raises(TypeError, match=f"{name} must be a floating-point tensor, got {kind}"):
        make()(*inputs)


@pytest.mark.parametrize("position", range(3))
def test_mixed_dtypes_are_named(position):
    inputs = list(draw_inputs())
    inputs[position] = inputs[position].float()
    name = ("queries", "keys", "values")[position]
    with pytest.raises(TypeError, match=f"one dtype, got .*{name} torch.float32"):
        make()(*inputs)


def test_a_dtype_other_than_the_modules_is_named():
    with pytest.raises(TypeError, match=r"inputs are torch.float32, .* weights torch.float64"):
        make()(*(X.float() for X in draw_inputs()))


BAD_LENGTHS = {
    "floats": (torch.ones(B), TypeError, "integers, got torch.float32"),
    "booleans": (torch.ones(B, dtype=torch.bool), TypeError, "pass booleans as mask="),
    "list": ([1, 2, 3], TypeError, "integers, got list"),
    "array": (np.array([1, 2, 3]), TypeError, "integers, got ndarray"),
    "scalar": (torch.tensor(3), ValueError, rf"\({B},\) .* \({B}, {L}\), got \(\)"),
    "a head": (torch.ones(B * H, dtype=torch.int64), ValueError, rf"got \({B * H},\)"),
    "keys": (torch.ones(B, S, dtype=torch.int64), ValueError, rf"got \({B}, {S}\)"),
    "rank 3": (torch.ones(B, H, L, dtype=torch.int64), ValueError, rf"got \({B}, {H}, {L}\)"),
    "negative": (torch.tensor([1, -2, 3]), ValueError, rf"0..S = 0..{S}, got -2"),
    "beyond S": (torch.tensor([1, 2, S + 1]), ValueError, rf"0..S = 0..{S}, got {S + 1}"),
    "beyond S, a query": (torch.full((B, L), S + 4), ValueError, rf"0..{S}, got {S + 4}"),
}


@pytest.mark.parametrize("need_weights", [False, True])
@pytest.mark.parametrize("lengths, error, match", BAD_LENGTHS.values(), ids=BAD_LENGTHS.keys())
def test_bad_lengths_are_quoted(need_weights, lengths, error, match):
    with pytest.raises(error, match=match):
        make()(*draw_inputs(), lengths, need_weights=need_weights)


@pytest.mark.parametrize("need_weights", [False, True])
@pytest.mark.parametrize(
    "shape", [(S,), (S, L), (L, S + 1), (B * H, L, S), (H, L, S), (B, H + 1, L, S), (1, B, H, L, S)]
)
def test_a_mask_of_another_shape_is_quoted(need_weights, shape):
    with pytest.raises(ValueError) as error:
        mask = torch.ones(shape, dtype=torch.bool)
        make()(*draw_inputs(), mask=mask, need_weights=need_weights)
    assert str((B, H, L, S)) in str(error.value) and f"got {shape}" in str(error.value)


@pytest.mark.parametrize("need_weights", [False, True])
@NOT_BOOLEAN
def test_a_mask_that_is_not_boolean_is_named(need_weights, mask, kind):
    with pytest.raises(TypeError, match=f"boolean tensor, True = may attend, got {kind}"):
        make()(*draw_inputs(), mask=mask, need_weights=need_weights)


@pytest.mark.parametrize("dropout", [-0.1, 1.1, math.nan])
def test_dropout_that_is_no_probability_is_quoted(dropout):
    with pytest.raises(ValueError, match=f"dropout must lie in 0..1, got {dropout}"):
        make(dropout=dropout)


@pytest.mark.parametrize("num_heads", [3, 4, 0, -1, WIDTH + 1])
def test_heads_that_do_not_divide_the_width_are_quoted(num_heads):
    match = f"num_hiddens={WIDTH} cannot be split into num_heads={num_heads}$"
    with pytest.raises(ValueError, match=match):
        MultiHeadAttention(KEY, QUERY, VALUE, WIDTH, num_heads)
