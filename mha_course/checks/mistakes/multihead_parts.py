"""A multi-head attention module of which any part can be replaced by a wrong one."""

import functools

import torch
from torch import nn
from torch.nn import functional as F

from mha_course.attention import length_mask
from mha_course.checks.mistakes.head_splitting import right_merge, right_split

__all__ = ["build_module"]


class _Linear(nn.Linear):
    """Without the random numbers: a check writes its own."""

    def reset_parameters(self):
        pass


@functools.cache
def _linear(role, size, width, bias):
    """One for all answers, which are tried one after the other: making four takes long."""
    return _Linear(size, width, bias=bias, dtype=torch.float64)


def _spread(lens, H):
    return lens.repeat_interleave(H, dim=0)


def _root_of_head(d, **other_sizes):
    return d**-0.5


def _key_positions(q, k):
    return torch.arange(k.shape[1])


def build_module(
    split=right_split,
    merge=right_merge,
    spread=_spread,
    fits=length_mask,
    scale=_root_of_head,
    positions=_key_positions,
    keep=torch.lt,
    also=None,
    fill=-torch.inf,
    axis=-1,
    drop_scores=lambda self, scores: scores,
    empty_row=lambda weights: weights.nan_to_num(0.0),
    drop=lambda self, weights: self.drop(weights),
    finish=lambda self, output: self.W_o(output),
    roles=("W_q", "W_k", "W_v"),
    inputs=lambda queries, keys, values: (queries, keys, values),
):
    """Return a class for `04-MultiHeadAttention`, right unless a part is replaced.

    It does without what makes a module slow, since a check tries hundreds of them.

    fits: raises for lengths that do not fit, as lesson 2's attention does. scale: from the width
    of a head and other sizes. keep, also: which positions are seen, from lengths and without.
    """

    def attend(self, q, k, lens, by):
        scores = drop_scores(self, q @ k.transpose(1, 2) * by)
        seen = None if also is None else also(scores)
        if lens is not None:
            fits(lens, *scores.shape)
            lens = lens[:, None, None] if lens.dim() == 1 else lens[:, :, None]
            real = keep(positions(q, k), lens)
            seen = real if seen is None else seen & real
        return (scores if seen is None else scores.masked_fill(~seen, fill)).softmax(axis)

    class MultiHeadAttention(nn.Module):
        def __init__(self, key_size, query_size, value_size, width, num_heads, dropout=0, bias=0):
            super().__init__()
            self.num_heads, self.drop = num_heads, nn.Dropout(dropout)
            sizes = {"W_q": query_size, "W_k": key_size, "W_v": value_size, "W_o": width}
            for name, size in sizes.items():
                linear = _linear(name, size, width, bool(bias))
                linear.zero_grad()
                setattr(self, name, linear)

        def double(self):
            return self  # which it is already

        def train(self, mode=True):
            self.training = self.drop.training = mode
            return self

        def forward(self, queries, keys, values, valid_lens=None):
            H = self.num_heads
            linears = [self._modules[role] for role in roles]
            given = inputs(queries, keys, values)
            projected = (F.linear(X, W.weight, W.bias) for W, X in zip(linears, given, strict=True))
            q, k, v = (split(X, H) for X in projected)
            lens = None if valid_lens is None else spread(valid_lens, H)
            by = scale(q.shape[-1], heads=H, keys=k.shape[1], inputs=queries.shape[-1])
            weights = empty_row(attend(self, q, k, lens, by))
            return finish(self, merge(drop(self, weights) @ v, H))

    return MultiHeadAttention
