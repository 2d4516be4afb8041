"""What a function costs: counted by hand for small functions."""

import pytest
import torch
from torch.nn import functional as F

from mha_course.measuring import SlowMemory, flops, kept_for_backward, largest_tensor, seconds


def explicit(queries, keys, values):
    return torch.softmax(queries @ keys.mT, dim=-1) @ values


def of_attention(*shape):
    return [torch.ones(*shape, dtype=torch.float64) for _ in range(3)]


def test_flops_of_a_product():
    assert flops(torch.matmul, torch.ones(3, 5), torch.ones(5, 7)) == 2 * 3 * 5 * 7


def test_the_largest_tensor_is_the_table_or_the_output():
    assert largest_tensor(explicit, *of_attention(2, 3, 11, 5)) == 2 * 3 * 11 * 11 * 8
    fused = F.scaled_dot_product_attention
    assert largest_tensor(fused, *of_attention(2, 3, 11, 5)) == 2 * 3 * 11 * 5 * 8


def test_a_tensor_of_several_and_a_copy_are_seen():
    X = torch.ones(2, 7)
    assert largest_tensor(lambda X: X.max(dim=1), X) == 2 * 8  # two indices of 8 bytes
    assert largest_tensor(lambda X: X.expand(5, 2, 7), X) == 2 * 7 * 4  # no memory of its own
    assert largest_tensor(lambda X: X.expand(5, 2, 7).contiguous(), X) == 5 * 2 * 7 * 4
    assert largest_tensor(lambda X: None, X) == 0


def test_what_is_kept_for_the_backward_pass():
    inputs = of_attention(1, 3, 11, 5)
    plain = kept_for_backward(explicit, *inputs)
    assert sorted(X.numel() for X in plain) == [165, 165, 165, 363]  # the table once
    fused = kept_for_backward(F.scaled_dot_product_attention, *inputs)
    assert sorted(X.numel() for X in fused) == [33, 165, 165, 165, 165]
    assert not any(X.requires_grad for X in (*inputs, *fused))


def test_slow_memory_counts_both_ways():
    memory, X = SlowMemory(), torch.ones(3, 5)
    assert memory.write(memory.read(X)) is X
    assert memory.moved == 2 * 3 * 5 * 4


def test_seconds_are_the_shortest_of_the_runs():
    called = []
    assert 0 < seconds(called.append, 1, runs=3) < 1
    assert called == [1] * 4
    with pytest.raises(ValueError, match="got 0"):
        seconds(called.append, 1, runs=0)
