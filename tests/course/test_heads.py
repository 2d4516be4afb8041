"""Splitting and merging heads: `split_heads`, `merge_heads`, and d2l's way of it."""

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mha_course.interop import import_d2l
from mha_course.multihead import (
    MultiHeadAttention,
    merge_heads,
    split_heads,
    transpose_output,
    transpose_qkv,
)

B, L, H, D = 3, 5, 2, 11  # batch, words, heads, head width
WIDTH = H * D
EXAMPLES = settings(  # the same ones each time, however slow the machine
    derandomize=True, deadline=None, max_examples=50, suppress_health_check=[HealthCheck.too_slow]
)
SPLITS = pytest.mark.parametrize("split", [split_heads, transpose_qkv])

# Two sequences of three words, four numbers a word, the tens digit the word's.
WORDS = [
    [[10, 11, 12, 13], [20, 21, 22, 23], [30, 31, 32, 33]],
    [[40, 41, 42, 43], [50, 51, 52, 53], [60, 61, 62, 63]],
]
HEADS = [
    [[[10, 11], [20, 21], [30, 31]], [[12, 13], [22, 23], [32, 33]]],
    [[[40, 41], [50, 51], [60, 61]], [[42, 43], [52, 53], [62, 63]]],
]


def draw(*shape, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(shape, generator=generator, dtype=torch.float64)


def test_split_and_merge_by_hand():
    assert split_heads(torch.tensor(WORDS), 2).tolist() == HEADS
    assert merge_heads(torch.tensor(HEADS)).tolist() == WORDS


def test_transpose_qkv_and_output_by_hand():
    rows = HEADS[0] + HEADS[1]
    assert transpose_qkv(torch.tensor(WORDS), 2).tolist() == rows
    assert transpose_output(torch.tensor(rows), 2).tolist() == WORDS


def test_transpose_qkv_and_output_equal_d2l():
    X = draw(B, L, WIDTH)
    split = transpose_qkv(X, H)
    assert torch.equal(split, import_d2l().transpose_qkv(X, H))
    assert torch.equal(transpose_output(split, H), import_d2l().transpose_output(split, H))


def test_a_head_is_a_slice_of_the_features_of_every_word():
    X = draw(B, L, WIDTH)
    for h, head in enumerate(split_heads(X, H).unbind(1)):
        assert torch.equal(head, X[..., h * D : (h + 1) * D])


def test_to_split_moves_nothing_in_memory():
    X = draw(B, L, WIDTH)
    assert split_heads(X, H).data_ptr() == X.data_ptr()


@EXAMPLES
@given(*[st.integers(1, 7)] * 4)
def test_split_and_merge_are_inverse(batch_size, length, num_heads, width):
    X = draw(batch_size, length, num_heads * width)
    split = split_heads(X, num_heads)
    assert split.shape == (batch_size, num_heads, length, width)
    assert torch.equal(merge_heads(split), X)
    heads = draw(batch_size, num_heads, length, width)
    assert torch.equal(split_heads(merge_heads(heads), num_heads), heads)


@EXAMPLES
@given(*[st.integers(1, 7)] * 4)
def test_transpose_qkv_and_output_are_inverse(batch_size, length, num_heads, width):
    X = draw(batch_size, length, num_heads * width)
    split = transpose_qkv(X, num_heads)
    assert split.shape == (batch_size * num_heads, length, width)
    assert torch.equal(transpose_output(split, num_heads), X)
    heads = draw(batch_size * num_heads, length, width)
    assert torch.equal(transpose_qkv(transpose_output(heads, num_heads), num_heads), heads)


def test_split_and_merge_of_nothing_are_empty():
    assert split_heads(draw(B, 0, WIDTH), H).shape == (B, H, 0, D)
    assert merge_heads(draw(0, H, L, D)).shape == (0, L, WIDTH)
    assert transpose_qkv(draw(B, 0, WIDTH), H).shape == (B * H, 0, D)
    assert transpose_output(draw(0, L, D), H).shape == (0, L, WIDTH)


@SPLITS
def test_heads_may_be_a_numpy_integer(split):
    X = draw(B, L, WIDTH)
    assert torch.equal(split(X, np.int64(H)), split(X, H))


# Bad input


@SPLITS
@pytest.mark.parametrize("num_heads", [3, 4, 0, -1, WIDTH + 1])
def test_heads_that_do_not_divide_the_width_are_quoted(split, num_heads):
    match = f"num_hiddens={WIDTH} cannot be split into num_heads={num_heads}$"
    with pytest.raises(ValueError, match=match):
        split(draw(B, L, WIDTH), num_heads)


@pytest.mark.parametrize("num_heads", [4, 5, 0, -1])
def test_heads_that_do_not_divide_the_first_axis_are_quoted(num_heads):
    with pytest.raises(ValueError, match=rf"num_heads={num_heads} .* \({B * H}, {L}, {D}\)"):
        transpose_output(draw(B * H, L, D), num_heads)


@pytest.mark.parametrize("num_heads", [2.0, 2.5, "2", None])
def test_heads_that_are_not_an_integer_are_quoted(num_heads):
    for split in (
        lambda: split_heads(draw(B, L, WIDTH), num_heads),
        lambda: transpose_qkv(draw(B, L, WIDTH), num_heads),
        lambda: transpose_output(draw(B * H, L, D), num_heads),
        lambda: MultiHeadAttention(*[WIDTH] * 4, num_heads),
    ):
        with pytest.raises(TypeError, match=f"num_heads must be an integer, got {num_heads!r}"):
            split()


@pytest.mark.parametrize("split", [split_heads, transpose_qkv, transpose_output])
@pytest.mark.parametrize("shape", [(), (L,), (L, WIDTH), (B, H, L, D)])
def test_ranks_other_than_3_are_quoted(split, shape):
    with pytest.raises(ValueError) as error:
        split(draw(*shape), H)
    assert "X must be (B" in str(error.value) and f"got {shape}" in str(error.value)


@pytest.mark.parametrize("shape", [(), (L,), (L, D), (B * H, L, D), (1, B, H, L, D)])
def test_ranks_other_than_4_are_quoted(shape):
    with pytest.raises(ValueError) as error:
        merge_heads(draw(*shape))
    assert f"X must be (B, H, L, d), got {shape}" in str(error.value)


@pytest.mark.parametrize("X, kind", [([[[1.0, 2.0]]], "list"), (np.ones((1, 1, 2)), "ndarray")])
def test_what_is_not_a_tensor_is_named(X, kind):
    for call in (
        lambda: split_heads(X, H),
        lambda: merge_heads(X),
        lambda: transpose_qkv(X, H),
        lambda: transpose_output(X, H),
    ):
        with pytest.raises(TypeError, match=f"X must be a tensor .*, got {kind}"):
            call()
