"""Wrong implementations of multi-head attention, to find out what a test lets through.

Each is a class: Attention(num_hiddens, num_heads) makes a module with W_q, W_k, W_v and W_o, four
nn.Linear without biases, that is called as attention(queries, keys, values, valid_lens=None).
"""

from functools import partial

import torch
from torch import nn
from torch.nn import functional as F

__all__ = ["WRONG", "build"]


def project(self, queries, keys, values):
    return self.W_q(queries), self.W_k(keys), self.W_v(values)


def split(X, H):
    return X.reshape(len(X), X.shape[1], H, -1).movedim(2, 1)  # (B, H, L, d)


def see(self, lens, q, k):
    """Which keys may be seen, (B, 1, 1, S); None: all."""
    return None if lens is None else torch.arange(k.shape[2]) < lens[:, None, None, None]


def soften(scores, allowed, fill=-1e30, empty=0.0, axis=-1):
    if allowed is None:
        return scores.softmax(axis)
    weights = scores.masked_fill(~allowed, fill).softmax(axis)
    return weights * torch.where(allowed.any(dim=-1, keepdim=True), 1.0, empty).to(weights.dtype)


def merge(X):
    return X.movedim(1, 2).flatten(2)  # (B, L, H * d)


def build(
    project=project,
    split=split,
    scale=lambda scores, d, H: scores / d**0.5,
    see=see,
    soften=soften,
    merge=merge,
    finish=lambda self, X: self.W_o(X),
    whole=None,
):
    """A class of multi-head attention made of these steps; without any given it is right.

    whole: does all of forward instead: whole(self, queries, keys, values, valid_lens).
    Shapes: queries (B, L, num_hiddens); keys, values (B, S, num_hiddens); valid_lens (B,), from 0
        to S, or None; returns (B, L, num_hiddens). A sequence of length 0 gives zeros.
    Source: Vaswani et al. 2017, section 3.2.2. Lesson: notebooks/11_reading_published_code.ipynb.
    """

    class Attention(nn.Module):
        def __init__(self, num_hiddens, num_heads):
            super().__init__()
            self.num_heads = num_heads
            for name in ("W_q", "W_k", "W_v", "W_o"):
                setattr(self, name, nn.Linear(num_hiddens, num_hiddens, bias=False))

        def forward(self, queries, keys, values, valid_lens=None):
            if whole:
                return whole(self, queries, keys, values, valid_lens)
            H = self.num_heads
            q, k, v = (split(X, H) for X in project(self, queries, keys, values))
            scores = scale(q @ k.mT, q.shape[-1], H)  # (B, H, L, S)
            weights = soften(scores, see(self, valid_lens, q, k))
            return finish(self, merge(weights @ v))  # (B, L, num_hiddens)

    return Attention


# Wrong steps that take more than a line.


def project_narrow(self, queries, keys, values):
    d = self.W_q.out_features // self.num_heads  # the rows that W_q and W_k have
    q, k = F.linear(queries, self.W_q.weight[:d]), F.linear(keys, self.W_k.weight[:d])
    rest = 0, self.W_q.out_features - d  # a slice past the last row is empty, so its scores are 0
    return F.pad(q, rest), F.pad(k, rest), self.W_v(values)


def project_slices(self, *inputs):
    d, linears = self.W_q.out_features // self.num_heads, (self.W_q, self.W_k, self.W_v)
    blocks = torch.block_diag(*[self.W_q.weight.new_ones(d, d)] * self.num_heads)
    return [F.linear(X, W.weight * blocks) for X, W in zip(inputs, linears, strict=True)]


def see_first(self, lens, q, k):
    if not hasattr(self, "kept"):
        self.kept = see(self, lens, q, k)
    return self.kept


def see_past(self, lens, q, k):
    past = torch.ones(q.shape[2], k.shape[2]).tril().bool()
    return past if lens is None else past & see(self, lens, q, k)


def see_if(rule):
    """With lengths, which keys may be seen: rule(numbers of the keys, lengths (B, 1, 1, 1), q)."""
    return lambda self, lens, q, k: (
        None if lens is None else rule(torch.arange(k.shape[2]), lens[:, None, None, None], q)
    )


def rows_of_words(keys, lens, q):
    return (torch.arange(q.shape[2]) < lens).mT.expand(-1, 1, -1, len(keys))


def hide_after(scores, allowed):
    return scores.softmax(-1) if allowed is None else scores.softmax(-1) * allowed


def plain_exp(scores, allowed):
    e = scores.exp() if allowed is None else scores.exp() * allowed
    return e / e.sum(-1, keepdim=True).clamp(min=1e-30)


WRONG = {  # seen in the texts that this course grew from
    "W_q, W_k, W_v not used": build(project=lambda self, *inputs: inputs),
    "W_q, W_k as wide as one head": build(project=project_narrow),
    "each head reads a slice of the input": build(project=project_slices),
    "mask ignored": build(see=lambda *_: None),
    "merge without transpose": build(merge=lambda X: X.reshape(len(X), X.shape[2], -1)),
    "merge, then transpose again": build(
        merge=lambda X: merge(X).mT.reshape(len(X), X.shape[2], -1)
    ),
}
WRONG |= {  # shown in lessons 2 to 4
    "split without transpose": build(split=lambda X, H: X.reshape(len(X), H, X.shape[1], -1)),
    "split interleaved": build(split=lambda X, H: X.unflatten(2, (-1, H)).movedim(3, 1)),
    "not scaled": build(scale=lambda scores, d, H: scores),
    "mask after the softmax": build(soften=hide_after),
    "masked scores set to 0": build(soften=partial(soften, fill=0.0)),
    "softmax of exp, no maximum": build(soften=plain_exp),
    "lengths by repeat": build(
        see=see_if(
            lambda keys, n, q: keys < n.flatten().repeat(q.shape[1]).view(*q.shape[:2], 1, 1)
        )
    ),
    "length 0 gives NaN": build(soften=partial(soften, empty=torch.nan)),
    "length 0 gives the average": build(soften=partial(soften, empty=1.0)),
}
WRONG |= {  # seen in issue threads of libraries and in answers of learners
    "keys made by W_q": build(
        project=lambda self, q, k, v: (self.W_q(q), self.W_q(k), self.W_v(v))
    ),
    "values made from the keys": build(project=lambda self, q, k, v: project(self, q, k, k)),
    "the caller's queries changed": build(
        project=lambda self, q, k, v: (self.W_q(q.mul_(2)) / 2, self.W_k(k), self.W_v(v))
    ),
    "heads averaged": build(merge=lambda X: merge(X.mean(1, keepdim=True).expand_as(X))),
    "merge interleaved": build(merge=lambda X: X.permute(0, 2, 3, 1).flatten(2)),
    "W_o not used": build(finish=lambda self, X: X),
    "scaled by the root of d_model": build(scale=lambda scores, d, H: scores / (d * H) ** 0.5),
    "scaled by the root of H": build(scale=lambda scores, d, H: scores / H**0.5),
    "scaled by the root of S": build(scale=lambda scores, d, H: scores / scores.shape[-1] ** 0.5),
    "divided by d_k": build(scale=lambda scores, d, H: scores / d),
    "softmax over queries": build(soften=partial(soften, axis=-2)),
    "softmax over heads": build(soften=partial(soften, axis=1)),
    "mask inverted": build(see=see_if(lambda keys, n, q: keys >= n)),
    "one key too many": build(see=see_if(lambda keys, n, q: keys <= n)),
    "padded queries masked, not keys": build(see=see_if(rows_of_words)),
    "the first length for all": build(see=see_if(lambda keys, n, q: keys < n[:1])),
    "the first mask kept": build(see=see_first),
    "always causal": build(see=see_past),
    "dropout in eval mode": build(soften=lambda *given: F.dropout(soften(*given), 0.1)),
    "no gradient to W_q and W_k": build(scale=lambda scores, d, H: scores.detach() / d**0.5),
}
