"""What runs of lesson 11's tasks beside the learner's code."""

import torch
from torch.nn import functional as F

from mha_course.implementations import WRONG, build, merge, project, see, soften, split

__all__ = ["RIGHT"]


def fused(self, queries, keys, values, valid_lens):
    q, k, v = (split(X, self.num_heads) for X in project(self, queries, keys, values))
    allowed = see(self, valid_lens, q, k)
    return self.W_o(merge(F.scaled_dot_product_attention(q, k, v, allowed)))


def of_torch(self, *inputs_and_lens):
    *inputs, lens = inputs_and_lens
    ignore = None if lens is None else torch.arange(inputs[1].shape[1]) >= lens[:, None]
    packed = torch.cat([self.W_q.weight, self.W_k.weight, self.W_v.weight])
    inputs = [X.transpose(0, 1) for X in inputs]  # words before the batch
    arguments = (*inputs, inputs[0].shape[2], self.num_heads, packed, None, None, None, False, 0.0)
    options = {"key_padding_mask": ignore, "need_weights": False}
    output, _ = F.multi_head_attention_forward(*arguments, self.W_o.weight, None, **options)
    return output.transpose(0, 1)


def add_heads(self, X):
    parts = self.W_o.weight.chunk(self.num_heads, dim=1)
    return sum(F.linear(x, W) for x, W in zip(X.chunk(self.num_heads, -1), parts, strict=True))


def by_letters(self, queries, keys, values, valid_lens):
    q, k, v = (X.unflatten(2, (self.num_heads, -1)) for X in project(self, queries, keys, values))
    scores = torch.einsum("blhd,bshd->bhls", q, k) / q.shape[-1] ** 0.5
    weights = soften(scores, see(self, valid_lens, q, k.movedim(2, 1)))
    return self.W_o(torch.einsum("bhls,bshd->blhd", weights, v).flatten(2))


def by_hand(scores, allowed):
    allowed = torch.ones_like(scores, dtype=torch.bool) if allowed is None else allowed
    shifted = scores - scores.masked_fill(~allowed, -1e30).amax(-1, keepdim=True)
    e = shifted.clamp(max=0).exp() * allowed
    return e / e.sum(-1, keepdim=True).clamp(min=1e-30)


RIGHT = {  # in styles that a test must not mind
    "step by step": build(),
    "PyTorch's fused function": build(whole=fused),
    "PyTorch's multi-head function": build(whole=of_torch),
    "W_o head by head, added up": build(finish=add_heads),
    "einsum": build(whole=by_letters),
    "heads joined by cat": build(merge=lambda X: torch.cat(X.unbind(1), dim=-1)),
    "softmax by hand": build(soften=by_hand),
    "scaled before the product": build(
        project=lambda self, q, k, v: project(self, q * (self.num_heads / q.shape[2]) ** 0.5, k, v),
        scale=lambda scores, d, H: scores,
    ),
}
