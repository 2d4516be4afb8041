"""What the tests of attention draw, and the definition of attention as loops."""

import math

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, settings

B, L, S, D_K, D_V, HIDDENS, H = 3, 5, 7, 11, 13, 17, 2
CLOSE = dict(rtol=0, atol=1e-12)
EXAMPLES = settings(  # the same ones each time, however slow the machine
    derandomize=True, deadline=None, max_examples=50, suppress_health_check=[HealthCheck.too_slow]
)

SIZES = pytest.mark.parametrize("num_queries, num_keys", [(L, S), (S, S), (S, L)])
NOT_BOOLEAN = pytest.mark.parametrize(
    "mask, kind",
    [
        (torch.zeros(L, S), "torch.float32"),
        (torch.ones(L, S, dtype=torch.int64), "torch.int64"),
        ([[True] * S] * L, "list"),
        (np.ones((L, S), dtype=bool), "ndarray"),
    ],
    ids=["floats", "integers", "list", "array"],
)


def draw(*shape, seed=0, dtype=torch.float64):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(shape, generator=generator, dtype=torch.float64).to(dtype)


def numbers(nested):
    return torch.tensor(nested, dtype=torch.float64)


def draw_qkv(num_queries=L, num_keys=S, heads=(), width=D_K):
    """Queries, keys and values of one drawing each."""
    return (
        draw(B, *heads, num_queries, width, seed=1),
        draw(B, *heads, num_keys, D_K, seed=2),
        draw(B, *heads, num_keys, D_V, seed=3),
    )


def draw_lengths(kind, num_queries, num_keys):
    """Unequal lengths, none of them 0: one a sequence, or one a query."""
    shape = {"one a sequence": (B,), "one a query": (B, num_queries)}[kind]
    lengths = 1 + (torch.arange(math.prod(shape)) * 3) % num_keys
    assert len(set(lengths.tolist())) > 1
    return lengths.reshape(shape)


def draw_mask(*shape, seed=4):
    """A random boolean mask in which every query may attend to its first key at least."""
    mask = draw(*shape, seed=seed) > 0
    mask[..., 0] = True
    return mask


def loop_attention(queries, keys, values, allowed):
    """The definition, one query at a time; `allowed(b, i)` lists the keys that query i may see."""
    weights = torch.zeros(*queries.shape[:-1], keys.shape[1], dtype=queries.dtype)
    for b in range(queries.shape[0]):
        for i in range(queries.shape[1]):
            seen = allowed(b, i)
            scores = [sum(queries[b, i] * keys[b, j]) / queries.shape[-1] ** 0.5 for j in seen]
            total = sum(math.exp(score) for score in scores)
            for j, score in zip(seen, scores, strict=True):
                weights[b, i, j] = math.exp(score) / total
    output = torch.stack([w @ v for w, v in zip(weights, values, strict=True)])
    return output, weights
