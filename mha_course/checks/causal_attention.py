"""The causal tasks of lesson 02: the mask, and a leak to mend."""

import torch

from mha_course import attention
from mha_course.checks.task import Case

__all__ = [
    "causal_mask",
    "make_batch",
    "make_qkv",
    "mask_cases",
    "mended_attention",
    "mending_cases",
]


def make_batch(numbers):
    """A float64 tensor of these numbers, with a batch of 1 in front."""
    return torch.tensor([numbers], dtype=torch.float64)


def make_qkv(draw, batch, num_queries, num_keys, d_k, d_v):
    """Random queries, keys and values of these sizes, by name."""
    return {
        "queries": draw.normal(batch, num_queries, d_k),
        "keys": draw.normal(batch, num_keys, d_k),
        "values": draw.normal(batch, num_keys, d_v),
    }


def mask_cases(draw):
    """Cases for `causal_mask`."""
    return [Case(f"{n} step{'s' * (n > 1)}", {"num_steps": n}) for n in (3, 1, 2, 7, 16)]


def causal_mask(num_steps):
    """A right answer to `02-causal_mask`."""
    return torch.ones(num_steps, num_steps, dtype=torch.bool).tril()


def mending_cases(draw):
    """Cases for `mended_attention`."""
    by_hand = {
        "queries": make_batch([[2, 0, 0, 0]] * 3),
        "keys": torch.cat([make_batch([[1], [2], [5]]).log(), torch.zeros(1, 3, 3)], dim=-1),
        "values": make_batch([[24], [12], [8]]),
    }
    loud = make_qkv(draw, 2, 5, 5, 3, 2)
    loud["keys"][:, -1] = 1000 * loud["queries"][:, 0]  # so word 0 would look at nothing else
    large = {
        "queries": make_batch([[40], [-40], [40]]).repeat(2, 1, 1),
        "keys": torch.cat([make_batch([[40], [38], [-40]]), make_batch([[40], [38], [39]])]),
        "values": draw.normal(2, 3, 2),
    }
    return [
        Case("every query likes the keys 1 : 2 : 5", by_hand),
        Case("2 sequences of 5 words, d_k = 7, d_v = 3", make_qkv(draw, 2, 5, 5, 7, 3)),
        Case("one word", make_qkv(draw, 2, 1, 1, 3, 5)),
        Case("all sizes 3", make_qkv(draw, 3, 3, 3, 3, 3)),
        Case("scores of 1600, 1520 and -1600, with both signs", large),
        Case("a last key with scores in the thousands", loud),
    ]


def mended_attention(queries, keys, values):
    """A right answer to `02-mended_attention`."""
    mask = causal_mask(queries.shape[1])
    return attention.scaled_dot_product_attention(queries, keys, values, mask=mask)
