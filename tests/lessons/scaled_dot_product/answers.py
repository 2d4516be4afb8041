"""Right and wrong answers to the tasks of lesson 02."""

import math

import numpy as np
import torch
from torch.nn import functional as F

__all__ = ["RIGHT", "WRONG"]


# --- scaled_scores


def scores_loop(queries, keys):
    B, L, d_k = queries.shape
    scores = torch.empty(B, L, keys.shape[1], dtype=queries.dtype)
    for b in range(B):
        for i in range(L):
            for j in range(keys.shape[1]):
                scores[b, i, j] = sum(q * k for q, k in zip(queries[b, i], keys[b, j], strict=True))
    return scores / d_k**0.5


def scores_float32_root(queries, keys):
    return torch.bmm(queries, keys.permute(0, 2, 1)) / torch.sqrt(torch.tensor(keys.shape[2]))


def scores_view(queries, keys):
    """A view that is not contiguous: the transposed product, transposed."""
    return (keys @ queries.mT).mT / math.sqrt(queries.size(-1))


def scores_in_place(queries, keys):
    scores = queries @ keys.transpose(-1, -2)
    scores /= math.sqrt(queries.shape[-1])
    return scores


def scores_in_place_on_queries(queries, keys):
    queries /= math.sqrt(queries.shape[-1])
    return queries @ keys.transpose(1, 2)


SCORES_RIGHT = {
    "loop": scores_loop,
    "queries first": lambda q, k: (q / math.sqrt(q.shape[-1])) @ k.mT,
    "fourth roots": lambda q, k: (q * q.shape[-1] ** -0.25) @ (k * k.shape[-1] ** -0.25).mT,
    "einsum": lambda q, k: torch.einsum("bid,bjd->bij", q, k) * q.shape[-1] ** -0.5,
    "products summed": lambda q, k: (q[:, :, None] * k[:, None]).sum(-1) / k.shape[-1] ** 0.5,
    "float32 root": scores_float32_root,
    "float32 result": lambda q, k: (q @ k.mT).float() / math.sqrt(q.shape[-1]),
    "view": scores_view,
    "own scores in place": scores_in_place,
}
SCORES_WRONG = {
    "not scaled": lambda q, k: q @ k.mT,
    "by d_k": lambda q, k: q @ k.mT / q.shape[-1],
    "by sqrt(S)": lambda q, k: q @ k.mT / math.sqrt(k.shape[1]),
    "by sqrt(L)": lambda q, k: q @ k.mT / math.sqrt(q.shape[1]),
    "times sqrt": lambda q, k: q @ k.mT * math.sqrt(q.shape[-1]),
    "scaled twice": lambda q, k: (q / q.shape[-1] ** 0.5) @ (k / k.shape[-1] ** 0.5).mT,
    "d_k is 4": lambda q, k: q @ k.mT / 2,
    "keys against queries": lambda q, k: k @ q.mT / math.sqrt(q.shape[-1]),
    "reshape for transpose": lambda q, k: (
        q @ k.reshape(k.shape[0], k.shape[2], k.shape[1]) / math.sqrt(q.shape[-1])
    ),
    "whole division": lambda q, k: (q @ k.mT).floor_divide(math.sqrt(q.shape[-1])),
    "root rounded": lambda q, k: q @ k.mT / round(math.sqrt(q.shape[-1])),
    "first sequence only": lambda q, k: (q @ k[0].T) / math.sqrt(q.shape[-1]),
    "softmax already": lambda q, k: torch.softmax(q @ k.mT / math.sqrt(q.shape[-1]), -1),
    "cosine": lambda q, k: F.normalize(q, dim=-1) @ F.normalize(k, dim=-1).mT,
    "changes the queries": scores_in_place_on_queries,
    "half precision": lambda q, k: (q @ k.mT / math.sqrt(q.shape[-1])).half(),
    "a list": lambda q, k: (q @ k.mT / math.sqrt(q.shape[-1])).tolist(),
}


# --- masked_softmax


def softmax_slices(scores, valid_lens=None):
    """The definition: softmax of the part that may be seen, zeros behind it."""
    B, L, S = scores.shape
    weights = torch.zeros_like(scores)
    for b in range(B):
        for i in range(L):
            n = S
            if valid_lens is not None:
                n = int(valid_lens[b] if valid_lens.dim() == 1 else valid_lens[b, i])
            weights[b, i, :n] = torch.softmax(scores[b, i, :n], dim=0)
    return weights


def may_attend(scores, valid_lens):
    """(B, 1 or L, S), True before the length."""
    lens = valid_lens[:, None, None] if valid_lens.dim() == 1 else valid_lens[:, :, None]
    return torch.arange(scores.shape[-1]) < lens


def softmax_infinity(scores, valid_lens=None):
    if valid_lens is None:
        return scores.softmax(-1)
    mask = may_attend(scores, valid_lens)
    return scores.masked_fill(~mask, -math.inf).softmax(-1).nan_to_num(0.0)


def softmax_where(scores, valid_lens=None):
    if valid_lens is None:
        return torch.nn.Softmax(dim=2)(scores)
    mask = may_attend(scores, valid_lens)
    weights = torch.softmax(torch.where(mask, scores, torch.tensor(-1e9).double()), dim=-1)
    return torch.where(mask, weights, 0.0)


def softmax_additive(scores, valid_lens=None):
    if valid_lens is None:
        return F.softmax(scores, dim=-1)
    mask = may_attend(scores, valid_lens).double()
    return F.softmax(scores + (1 - mask) * -1e6, dim=-1) * mask


def softmax_own_exp(scores, valid_lens=None):
    """Own stable softmax; the maximum is taken over what may be seen."""
    B, L, S = scores.shape
    lens = torch.full((B, L), S) if valid_lens is None else valid_lens
    lens = lens[:, None].repeat(1, L) if lens.dim() == 1 else lens
    mask = torch.arange(S).repeat(B, L, 1) < lens.unsqueeze(2)
    scores = scores.clone()
    scores[~mask] = -1e30
    e = torch.exp(scores - scores.amax(2, keepdim=True)) * mask
    return e / e.sum(2, keepdim=True).clamp(min=1e-30)


def softmax_d2l_style(scores, valid_lens=None):
    """One length a row, all rows below one another, on a copy."""
    if valid_lens is None:
        return torch.softmax(scores, dim=-1)
    shape = scores.shape
    rows = valid_lens.repeat_interleave(shape[1]) if valid_lens.dim() == 1 else valid_lens.flatten()
    flat = scores.reshape(-1, shape[-1]).clone()
    flat[torch.arange(shape[-1]) >= rows[:, None]] = -1e6
    weights = torch.softmax(flat, dim=-1)
    weights[rows == 0] = 0
    return weights.reshape(shape)


def softmax_view(scores, valid_lens=None):
    """Keys in front while it works, so that the result is a view."""
    return softmax_infinity(scores, valid_lens).permute(2, 0, 1).contiguous().permute(1, 2, 0)


def with_mask(combine):
    """A masked softmax from what to do with (scores, mask)."""

    def answer(scores, valid_lens=None):
        if valid_lens is None:
            return torch.softmax(scores, dim=-1)
        return combine(scores, may_attend(scores, valid_lens))

    return answer


def zero_rows(weights, mask):
    return weights.masked_fill(~mask.any(-1, keepdim=True), 0.0)


def with_lens(change):
    """The right answer on lengths that `change` has changed first."""

    def answer(scores, valid_lens=None):
        return softmax_infinity(scores, None if valid_lens is None else change(scores, valid_lens))

    return answer


def softmax_lens_by_repeat(scores, valid_lens=None):
    if valid_lens is None or valid_lens.dim() == 2:
        return softmax_infinity(scores, valid_lens)
    B, L, _ = scores.shape
    return softmax_infinity(scores, valid_lens.repeat(L).reshape(B, L))


def softmax_naive(scores, valid_lens=None):
    e = torch.exp(scores)
    if valid_lens is not None:
        e = e * may_attend(scores, valid_lens)
    total = e.sum(-1, keepdim=True)
    return torch.where(total > 0, e / total, torch.zeros_like(e))


def softmax_in_place(scores, valid_lens=None):
    if valid_lens is not None:
        scores[~may_attend(scores, valid_lens).expand_as(scores)] = -math.inf
    return torch.softmax(scores, dim=-1).nan_to_num(0.0)


def softmax_queries_masked(scores, valid_lens=None):
    if valid_lens is None or valid_lens.dim() == 2:
        return softmax_infinity(scores, valid_lens)
    hidden = torch.arange(scores.shape[1]) >= valid_lens[:, None]  # (B, L)
    return torch.softmax(scores, dim=-1).masked_fill(hidden[:, :, None], 0.0)


def softmax_longest(scores, valid_lens=None):
    if valid_lens is None:
        return torch.softmax(scores, dim=-1)
    weights = torch.zeros_like(scores)
    n = int(valid_lens.max())
    weights[..., :n] = torch.softmax(scores[..., :n], dim=-1)
    return weights


def softmax_all_lengths_1d(scores, valid_lens=None):
    """Knows lengths (B,) only; the first query's length stands for all."""
    if valid_lens is not None and valid_lens.dim() == 2:
        valid_lens = valid_lens[:, 0]
    return softmax_infinity(scores, valid_lens)


SOFTMAX_RIGHT = {
    "slices": softmax_slices,
    "-inf, then nan_to_num": softmax_infinity,
    "where": softmax_where,
    "additive": softmax_additive,
    "own exp": softmax_own_exp,
    "rows below one another": softmax_d2l_style,
    "view": softmax_view,
    "float32": lambda s, lens=None: softmax_infinity(s.float(), lens),
}
SOFTMAX_WRONG = {
    "no mask": lambda s, lens=None: torch.softmax(s, -1),
    "after the softmax": with_mask(lambda s, m: torch.softmax(s, -1) * m),
    "renormalised, 0 / 0": with_mask(
        lambda s, m: F.normalize(torch.softmax(s, -1) * m, p=1, dim=-1, eps=1e-12)
    ),
    "filled with 0": with_mask(lambda s, m: zero_rows(torch.softmax(s * m, -1), m)),
    "filled with 1e-9": with_mask(
        lambda s, m: zero_rows(torch.softmax(s.masked_fill(~m, 1e-9), -1), m)
    ),
    "filled with -100": with_mask(
        lambda s, m: torch.softmax(s.masked_fill(~m, -100.0), -1).masked_fill(~m, 0)
    ),
    "inverted": with_mask(lambda s, m: softmax_inverted(s, m)),
    "0/1 added": with_mask(lambda s, m: zero_rows(torch.softmax(s + m.double(), -1), m)),
    "0 times infinity": with_mask(lambda s, m: torch.softmax(s + (1 - m.double()) * -math.inf, -1)),
    "off by one": with_lens(lambda s, lens: lens + 1),
    "one short": with_lens(lambda s, lens: (lens - 1).clamp(min=0)),
    "length 0 gives NaN": with_mask(lambda s, m: torch.softmax(s.masked_fill(~m, -math.inf), -1)),
    "length 0 is uniform": with_mask(lambda s, m: torch.softmax(s.masked_fill(~m, -1e9), -1)),
    "length 0 counts as 1": with_lens(lambda s, lens: lens.clamp(min=1)),
    "over the queries": lambda s, lens=None: softmax_infinity(s.mT, None).mT,
    "over the batch": lambda s, lens=None: torch.softmax(s, 0),
    "lengths by repeat": softmax_lens_by_repeat,
    "queries masked": softmax_queries_masked,
    "longest for all": softmax_longest,
    "first query's length": softmax_all_lengths_1d,
    "naive exp": softmax_naive,
    "scores changed": softmax_in_place,
    "sigmoid": with_mask(lambda s, m: torch.sigmoid(s) * m),
    "half precision": lambda s, lens=None: softmax_slices(s, lens).half(),
    "log": lambda s, lens=None: softmax_slices(s, lens).log(),
}


def softmax_inverted(scores, mask):
    return torch.softmax(scores.masked_fill(mask, -math.inf), -1).nan_to_num(0.0)


# --- causal_mask


def mask_loop(num_steps):
    mask = torch.zeros(num_steps, num_steps, dtype=torch.bool)
    for t in range(num_steps):
        mask[t, : t + 1] = True
    return mask


def mask_list(n):
    return torch.tensor([[key <= query for key in range(n)] for query in range(n)])


def one_mask(n):
    """A view that is not contiguous."""
    return torch.ones(n, n).triu().bool().T


MASK_RIGHT = {
    "loop": mask_loop,
    "list": mask_list,
    "compare": lambda n: torch.arange(n) <= torch.arange(n)[:, None],
    "not triu": lambda n: ~torch.triu(torch.ones(n, n, dtype=torch.bool), diagonal=1),
    "transposed view": one_mask,
    "numpy": lambda n: torch.from_numpy(np.tril(np.ones((n, n), dtype=bool))),
    "float made boolean": lambda n: torch.tril(torch.ones(n, n)) == 1,
}
MASK_WRONG = {
    "triu": lambda n: torch.ones(n, n, dtype=torch.bool).triu(),
    "hides the token itself": lambda n: torch.ones(n, n, dtype=torch.bool).tril(-1),
    "shows the next": lambda n: torch.ones(n, n, dtype=torch.bool).tril(1),
    "True = hidden": lambda n: torch.ones(n, n, dtype=torch.bool).triu(1),
    "float": lambda n: torch.ones(n, n).tril(),
    "whole numbers": lambda n: torch.ones(n, n, dtype=torch.int64).tril(),
    "0 and -inf": lambda n: torch.full((n, n), -math.inf).triu(1),
    "all True": lambda n: torch.ones(n, n, dtype=torch.bool),
    "diagonal only": lambda n: torch.eye(n, dtype=torch.bool),
    "with a batch": lambda n: torch.ones(1, n, n, dtype=torch.bool).tril(),
    "always 3": lambda n: torch.ones(3, 3, dtype=torch.bool).tril(),
    "one window": lambda n: mask_loop(n) & ~mask_loop(n).tril(-3),
    "lengths": lambda n: torch.arange(1, n + 1),
    "numpy array": lambda n: np.tril(np.ones((n, n), dtype=bool)),
}


# --- scaled_dot_product_attention


def attend(scores=None, softmax=softmax_infinity, output=None):
    """Attention put together from parts, each of them right unless another is given."""
    scores = scores or SCORES_RIGHT["queries first"]
    output = output or torch.matmul

    def answer(queries, keys, values, valid_lens=None):
        weights = softmax(scores(queries, keys), valid_lens)
        return output(weights, values), weights

    return answer


def attention_loop(queries, keys, values, valid_lens=None):
    outputs = torch.zeros(*queries.shape[:2], values.shape[2], dtype=values.dtype)
    weights = torch.zeros(*queries.shape[:2], keys.shape[1], dtype=values.dtype)
    for b, sequence in enumerate(queries):
        for i, query in enumerate(sequence):
            n = keys.shape[1]
            if valid_lens is not None:
                n = valid_lens[b].expand(len(sequence))[i].item()
            if n == 0:
                continue
            scores = keys[b, :n] @ query / math.sqrt(len(query))
            e = (scores - scores.max()).exp()
            weights[b, i, :n] = e / e.sum()
            outputs[b, i] = weights[b, i, :n] @ values[b, :n]
    return outputs, weights


def attention_einsum(queries, keys, values, valid_lens=None):
    scores = torch.einsum("bqd,bkd->bqk", queries, keys) / queries.size(-1) ** 0.5
    weights = softmax_where(scores, valid_lens)
    return torch.einsum("bqk,bkd->bqd", weights, values), weights


def attention_view(queries, keys, values, valid_lens=None):
    output, weights = attend()(queries, keys, values, valid_lens)
    return output.mT.contiguous().mT, weights.mT.contiguous().mT


def attention_list(queries, keys, values, valid_lens=None):
    return list(attend(scores_float32_root, softmax_own_exp)(queries, keys, values, valid_lens))


def output_only(queries, keys, values, valid_lens=None):
    return attend()(queries, keys, values, valid_lens)[0]


def in_another_order(queries, keys, values, valid_lens=None):
    return attend()(queries, keys, values, valid_lens)[::-1]


def weights_not_scaled(queries, keys, values, valid_lens=None):
    """The output is right; the weights are those of another softmax."""
    return (
        attention_loop(queries, keys, values, valid_lens)[0],
        softmax_infinity(queries @ keys.mT, valid_lens),
    )


def scores_for_weights(queries, keys, values, valid_lens=None):
    scores = queries @ keys.mT / math.sqrt(queries.shape[-1])
    return softmax_infinity(scores, valid_lens) @ values, scores


def scaled_after(queries, keys, values, valid_lens=None):
    weights = softmax_infinity(queries @ keys.mT, valid_lens) / math.sqrt(queries.shape[-1])
    return weights @ values, weights


def fused(queries, keys, values, valid_lens=None):
    mask = None
    if valid_lens is not None:
        mask = may_attend(queries @ keys.mT, valid_lens)
    output = F.scaled_dot_product_attention(queries, keys, values, attn_mask=mask)
    return output, attend()(queries, keys, values, valid_lens)[1]


def the_courses(queries, keys, values, valid_lens=None):
    from mha_course.attention import scaled_dot_product_attention

    return scaled_dot_product_attention(queries, keys, values, valid_lens)


def dropout_on(queries, keys, values, valid_lens=None):
    output, weights = attend()(queries, keys, values, valid_lens)
    return F.dropout(weights, 0.1) @ values, weights


def lens_ignored(queries, keys, values, valid_lens=None):
    return attend()(queries, keys, values)


ATTENTION_RIGHT = {
    "loop": attention_loop,
    "einsum": attention_einsum,
    "views": attention_view,
    "a list, float32 root, own exp": attention_list,
    "own helpers": attend(scores_loop, softmax_slices),
    "float32": lambda *inputs: attend()(
        *(X.float() if X.is_floating_point() else X for X in inputs)
    ),
}
ATTENTION_WRONG = {
    "not scaled": attend(scores=SCORES_WRONG["not scaled"]),
    "by d_k": attend(scores=SCORES_WRONG["by d_k"]),
    "by sqrt(S)": attend(scores=SCORES_WRONG["by sqrt(S)"]),
    "scaled after the softmax": scaled_after,
    "by sqrt(d_v)": lambda q, k, v, lens=None: attend(
        scores=lambda q, k: q @ k.mT / math.sqrt(v.shape[-1])
    )(q, k, v, lens),
    "lengths ignored": lens_ignored,
    "mask after the softmax": attend(softmax=SOFTMAX_WRONG["after the softmax"]),
    "off by one": attend(softmax=SOFTMAX_WRONG["off by one"]),
    "inverted": attend(softmax=SOFTMAX_WRONG["inverted"]),
    "length 0 is uniform": attend(softmax=SOFTMAX_WRONG["length 0 is uniform"]),
    "length 0 gives NaN": attend(softmax=SOFTMAX_WRONG["length 0 gives NaN"]),
    "lengths by repeat": attend(softmax=SOFTMAX_WRONG["lengths by repeat"]),
    "over the queries": attend(softmax=SOFTMAX_WRONG["over the queries"]),
    "naive exp": attend(softmax=softmax_naive),
    "weights transposed": attend(
        output=lambda w, v: w.mT @ v if w.shape[1] == w.shape[2] else w @ v
    ),
    "keys for values": lambda q, k, v, lens=None: attend()(q, k, k, lens),
    "output only": output_only,
    "in another order": in_another_order,
    "other weights": weights_not_scaled,
    "scores for weights": scores_for_weights,
    "dropout": dropout_on,
    "fused kernel": fused,
    "the course's": the_courses,
}


# --- mended_attention


def causal(weights):
    """Causal attention from how (scores, mask) become weights."""

    def answer(queries, keys, values):
        scores = queries @ keys.mT / math.sqrt(queries.shape[-1])
        mask = torch.ones(scores.shape[-2:], dtype=torch.bool).tril()
        result = weights(scores, mask)
        return result @ values, result

    return answer


def mended_by_lengths(queries, keys, values):
    """Query t has length t + 1."""
    lens = torch.arange(1, queries.shape[1] + 1).repeat(len(queries), 1)
    return attention_loop(queries, keys, values, lens)


def mended_step_by_step(queries, keys, values):
    outputs, weights = [], torch.zeros(len(queries), queries.shape[1], queries.shape[1]).double()
    for t in range(queries.shape[1]):
        scores = (keys[:, : t + 1] @ queries[:, t, :, None])[..., 0] / queries.shape[-1] ** 0.5
        weights[:, t, : t + 1] = torch.softmax(scores, -1)
        outputs.append((weights[:, t, : t + 1, None] * values[:, : t + 1]).sum(1))
    return torch.stack(outputs, dim=1), weights


def renormalised(scores, mask):
    weights = torch.softmax(scores, -1) * mask
    return weights / weights.sum(-1, keepdim=True)


def filled(value, diagonal=0):
    return lambda s, m: torch.softmax(
        s.masked_fill(~torch.ones_like(m).tril(diagonal), value), dim=-1
    )


def mended_in_place(queries, keys, values):
    values *= 1.0 + 1e-3
    return causal(filled(-math.inf))(queries, keys, values)


def leaky(queries, keys, values, diagonal=2):
    num_steps, d_k = queries.shape[1:]
    scores = queries @ keys.transpose(1, 2) / math.sqrt(d_k)
    hidden = torch.ones(num_steps, num_steps, dtype=torch.bool).triu(diagonal=diagonal)
    weights = torch.softmax(scores, dim=-1).masked_fill(hidden, 0.0)
    return weights @ values, weights


def fused_causal(queries, keys, values):
    weights = causal(filled(-math.inf))(queries, keys, values)[1]
    return F.scaled_dot_product_attention(queries, keys, values, is_causal=True), weights


MENDED_RIGHT = {
    "-inf": causal(filled(-math.inf)),
    "finite fill": causal(filled(-1e9)),
    "added": causal(lambda s, m: torch.softmax(s + torch.zeros(m.shape).masked_fill(~m, -1e9), -1)),
    "own softmax": causal(lambda s, m: softmax_own_exp(s, m.sum(-1).repeat(len(s), 1))),
    "lengths": mended_by_lengths,
    "step by step": mended_step_by_step,
    "float32": lambda q, k, v: mended_by_lengths(q.float(), k.float(), v.float()),
}
MENDED_WRONG = {
    "renormalised": causal(renormalised),
    "renormalised, never 0 / 0": causal(
        lambda s, m: F.normalize(torch.softmax(s, -1) * m, p=1, dim=-1)
    ),
    "as it was": leaky,
    "mask mended, order not": lambda q, k, v: leaky(q, k, v, diagonal=1),
    "order mended, mask not": causal(filled(-math.inf, diagonal=1)),
    "renormalised with the old mask": causal(
        lambda s, m: renormalised(s, torch.ones_like(m).tril(1))
    ),
    "hides the token itself": causal(filled(-math.inf, diagonal=-1)),
    "hides the token itself, finite fill": causal(filled(-1e9, diagonal=-1)),
    "filled with 0": causal(filled(0.0)),
    "inverted": causal(lambda s, m: torch.softmax(s.masked_fill(m, -1e9), -1)),
    "looks ahead only": causal(lambda s, m: torch.softmax(s.masked_fill(~m.T, -1e9), -1)),
    "no mask": causal(lambda s, m: torch.softmax(s, -1)),
    "no scale": lambda q, k, v: causal(filled(-math.inf))(q * math.sqrt(q.shape[-1]), k, v),
    "masked twice, normalised never": causal(
        lambda s, m: torch.softmax(s.masked_fill(~torch.ones_like(m).tril(1), -1e9), -1) * m
    ),
    "divided by the words seen": causal(lambda s, m: torch.softmax(s, -1) * m / m.sum(-1)[:, None]),
    "values changed": mended_in_place,
    "output only": lambda q, k, v: causal(filled(-math.inf))(q, k, v)[0],
    "fused kernel": fused_causal,
}


RIGHT = {
    "02-scaled_scores": SCORES_RIGHT,
    "02-masked_softmax": SOFTMAX_RIGHT,
    "02-causal_mask": MASK_RIGHT,
    "02-scaled_dot_product_attention": ATTENTION_RIGHT,
    "02-mended_attention": MENDED_RIGHT,
}
WRONG = {
    "02-scaled_scores": SCORES_WRONG,
    "02-masked_softmax": SOFTMAX_WRONG,
    "02-causal_mask": MASK_WRONG,
    "02-scaled_dot_product_attention": ATTENTION_WRONG,
    "02-mended_attention": MENDED_WRONG,
}
