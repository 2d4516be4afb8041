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


def softmax_with_scores_of_0_hidden(scores, valid_lens=None):
    if valid_lens is None:
        return scores.softmax(-1)
    lens = valid_lens[:, None] if valid_lens.dim() == 1 else valid_lens
    real = torch.arange(scores.shape[-1]) < lens[:, :, None]
    left = scores * real
    return torch.where(left == 0, -torch.inf, left).softmax(-1).nan_to_num(0.0)


def attention_with_lengths_of_at_least_1(queries, keys, values, valid_lens=None):
    scores = queries @ keys.mT / math.sqrt(queries.shape[-1])
    if valid_lens is not None:
        lens = valid_lens[:, None] if valid_lens.dim() == 1 else valid_lens
        hidden = torch.arange(keys.shape[1]) >= lens.clamp(min=1)[:, :, None]
        scores = scores.masked_fill(hidden, -math.inf)
    weights = scores.softmax(-1)
    return weights @ values, weights


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


def softmax_lens_squeezed(scores, valid_lens=None):
    if valid_lens is None:
        return scores.softmax(-1)
    lens = valid_lens.squeeze()
    lens = lens[..., None] if lens.dim() == 2 else lens.reshape(-1, 1, 1)
    mask = torch.arange(scores.shape[-1]) < lens
    return scores.masked_fill(~mask, -math.inf).softmax(-1).nan_to_num(0.0)


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
    "lengths squeezed": softmax_lens_squeezed,
    "largest of a sequence": with_mask(lambda s, m: softmax_one_largest(s, m, (1, 2))),
    "largest of all": with_mask(lambda s, m: softmax_one_largest(s, m, (0, 1, 2))),
    "scores of 0 hidden": softmax_with_scores_of_0_hidden,
}


def softmax_one_largest(scores, mask, axes):
    scores = scores.masked_fill(~mask, -math.inf)
    powers = torch.exp(scores - scores.amax(axes, keepdim=True)).nan_to_num(0.0)
    return powers / powers.sum(-1, keepdim=True).clamp(min=1e-300)


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
    "one step more": lambda n: torch.arange(n + 1) <= torch.arange(n + 1)[:, None],
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
    "lengths of 0 for None": lambda q, k, v, lens=None: attend()(
        q, k, v, lens if lens is not None and lens.any() else None
    ),
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
    "lengths of at least 1": attention_with_lengths_of_at_least_1,
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


def leaky(queries, keys, values, centred=True, axes=None):
    """As in the statement; or without the centring; or measured over these axes."""
    num_steps = queries.shape[1]
    if centred:
        keys = keys - keys.mean(dim=1, keepdim=True)
    scores = queries @ keys.mT
    scores = scores / scores.std(dim=axes, keepdim=True)
    weights = torch.softmax(scores.masked_fill(~mask_loop(num_steps), -math.inf), dim=-1)
    return weights @ values, weights


def mended_centred(queries, keys, values):
    """Centred keys change no weight."""
    return causal(filled(-math.inf))(queries, keys - keys.mean(dim=1, keepdim=True), values)


def centred_by_words_seen(queries, keys, values):
    """Values from which the mean of the words seen is taken."""
    count = torch.arange(1, values.shape[1] + 1)[:, None]
    return causal(filled(-math.inf))(queries, keys, values - values.cumsum(1) / count)


def hidden_late(shift):
    def weights(scores, mask):
        return torch.softmax(scores, dim=-1) * torch.ones_like(mask).tril(shift)

    return causal(weights)


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
    "keys centred": mended_centred,
    "float32": lambda q, k, v: mended_by_lengths(q.float(), k.float(), v.float()),
}
MENDED_WRONG = {
    "renormalised": causal(renormalised),
    "renormalised, never 0 / 0": causal(
        lambda s, m: F.normalize(torch.softmax(s, -1) * m, p=1, dim=-1)
    ),
    "as it was": leaky,
    "not centred": lambda q, k, v: leaky(q, k, v, centred=False),
    "each sentence": lambda q, k, v: leaky(q, k, v, axes=(1, 2)),
    "each row": lambda q, k, v: leaky(q, k, v, axes=-1),
    "each column": lambda q, k, v: leaky(q, k, v, axes=1),
    "values centred": lambda q, k, v: causal(filled(-math.inf))(
        q, k, v - v.mean(dim=1, keepdim=True)
    ),
    "values centred by words seen": centred_by_words_seen,
    "hidden late": hidden_late(0),
    "hidden late, next word visible": hidden_late(1),
    "next word visible": causal(filled(-math.inf, diagonal=1)),
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


# --- window_mask


def window_loop(num_steps, window, valid_lens):
    mask = torch.zeros(len(valid_lens), num_steps, num_steps, dtype=torch.bool)
    for b, length in enumerate(valid_lens.tolist()):
        for t in range(length):
            mask[b, t, max(0, t - window + 1) : t + 1] = True
    return mask


def window_of_triangles(num_steps, window, valid_lens):
    band = torch.ones(num_steps, num_steps, dtype=torch.bool).tril().triu(1 - window)
    return torch.stack([band & (torch.arange(num_steps) < n)[:, None] for n in valid_lens])


def window_products(num_steps, window, valid_lens):
    """Numbers multiplied, made boolean at the end."""
    steps = torch.arange(num_steps).double()
    distance = steps[:, None] - steps
    real = (steps < valid_lens[:, None]).double()
    band = (distance >= 0).double() * (distance < window).double()
    return torch.einsum("bi,bj,ij->bij", real, real, band) > 0.5


def window_numpy(num_steps, window, valid_lens):
    band = np.tril(np.ones((num_steps, num_steps))) - np.tril(
        np.ones((num_steps, num_steps)), -window
    )
    real = np.arange(num_steps) < valid_lens.numpy()[:, None]
    return torch.from_numpy(band.astype(bool)[None] & real[:, :, None])


def window_view(num_steps, window, valid_lens):
    return window_loop(num_steps, window, valid_lens).permute(2, 0, 1).contiguous().permute(1, 2, 0)


def window_with(change):
    """The right mask, changed afterwards."""
    return lambda n, window, lens: change(window_loop(n, window, lens), n, window, lens)


def window_in_place(num_steps, window, valid_lens):
    mask = window_loop(num_steps, window, valid_lens)
    valid_lens += 1
    return mask


WINDOW_RIGHT = {
    "loop": window_loop,
    "two triangles": window_of_triangles,
    "products": window_products,
    "numpy": window_numpy,
    "view": window_view,
}


def window_of_one_length(num_steps, window, valid_lens):
    mask = torch.zeros(len(valid_lens), num_steps, num_steps, dtype=torch.bool)
    for t in range(int(valid_lens.max())):
        mask[:, t, max(0, t - window + 1) : t + 1] = True
    return mask


WINDOW_WRONG = {
    "the longest for all": window_of_one_length,
    "one too many": lambda n, w, lens: window_loop(n, w + 1, lens),
    "one too few": lambda n, w, lens: window_loop(n, w - 1, lens),
    "window of 3": lambda n, w, lens: window_loop(n, 3, lens),
    "no window": lambda n, w, lens: window_loop(n, n, lens),
    "both ways": window_with(lambda m, *_: m | m.mT),
    "transposed": window_with(lambda m, *_: m.mT),
    "padding sees padding": lambda n, w, lens: window_loop(n, w, torch.full_like(lens, n)),
    "padding sees itself": window_with(lambda m, n, *_: m | torch.eye(n, dtype=torch.bool)),
    "padding sees words": lambda n, w, lens: (
        window_loop(n, w, torch.full_like(lens, n)) & (torch.arange(n) < lens[:, None, None])
    ),
    "chunks": window_with(
        lambda m, n, w, _: m & (torch.arange(n)[:, None] // w == torch.arange(n) // w)
    ),
    "one table": window_with(lambda m, *_: m[0]),
    "four axes": window_with(lambda m, *_: m[:, None]),
    "any sequence": window_with(lambda m, *_: m.any(0, keepdim=True).expand_as(m)),
    "inverted": window_with(lambda m, *_: ~m),
    "floats": window_with(lambda m, *_: m.float()),
    "to be added": window_with(lambda m, *_: torch.zeros(m.shape).masked_fill(~m, -math.inf)),
    "lengths": window_with(lambda m, *_: m.sum(-1)),
    "lengths changed": window_in_place,
}


# --- packed_mask


def packed_loop(sentences):
    B, L = sentences.shape
    mask = torch.zeros(B, L, L, dtype=torch.bool)
    for b, row in enumerate(sentences.tolist()):
        for t in range(L):
            for s in range(t + 1):
                mask[b, t, s] = row[s] == row[t] != -1
    return mask


def packed_blocks(sentences):
    """A triangle for each sentence of each row."""
    mask = torch.zeros(*sentences.shape, sentences.shape[1], dtype=torch.bool)
    for b, row in enumerate(sentences):
        start = 0
        numbers, counts = torch.unique_consecutive(row, return_counts=True)
        for number, count in zip(numbers.tolist(), counts.tolist(), strict=True):
            end = start + count
            if number >= 0:
                mask[b, start:end, start:end] = mask_loop(count)
            start = end
    return mask


def packed_one_hot(sentences):
    """Words of one sentence have the same one-hot vector, padding has none."""
    hot = F.one_hot(sentences.long() + 1)[..., 1:].double()
    return (hot @ hot.mT > 0) & mask_loop(sentences.shape[1])


def packed_differences(sentences):
    names = sentences.double().masked_fill(sentences < 0, math.nan)  # NaN equals nothing
    return (names.unsqueeze(2) - names.unsqueeze(1) == 0).tril()


def packed_with(change):
    return lambda sentences: change(packed_loop(sentences), sentences)


def packed_in_place(sentences):
    mask = packed_loop(sentences)
    sentences[sentences < 0] = 99
    return mask


def packed_by_lengths(sentences):
    """Takes for granted that sentences are numbered 0, 1, 2 …"""
    first = (sentences.diff(dim=1, prepend=sentences[:, :1] * 0) != 0).cumsum(1)
    return ((first[:, :, None] == first[:, None]) & (sentences >= 0)[:, None]).tril()


def packed_mask_by_lengths(sentences):
    """Padding stands at the end, so a row has a length."""
    places = torch.arange(sentences.shape[1])
    real = places < (sentences != -1).sum(1, keepdim=True)
    allowed = real[:, :, None] & real[:, None] & (places[:, None] >= places)
    return allowed & (sentences[:, :, None] == sentences[:, None])


PACKED_RIGHT = {
    "padding from a length on": packed_mask_by_lengths,
    "loop": packed_loop,
    "blocks": packed_blocks,
    "one-hot": packed_one_hot,
    "differences": packed_differences,
    "view": lambda s: packed_loop(s).permute(2, 0, 1).contiguous().permute(1, 2, 0),
}
PACKED_WRONG = {
    "of one sentence all is seen": lambda s: (
        packed_loop(s) if s.numel() == 1 or len(s.unique()) > 1 else torch.ones_like(packed_loop(s))
    ),
    "padding sees padding": lambda s: (s[:, :, None] == s[:, None]).tril(),
    "padding sees itself": packed_with(lambda m, s: m | torch.eye(s.shape[1], dtype=torch.bool)),
    "not causal": packed_with(lambda m, s: m | m.mT),
    "transposed": packed_with(lambda m, s: m.mT),
    "strict": packed_with(lambda m, s: m.tril(-1)),
    "sentences ignored": lambda s: mask_loop(s.shape[1]) & (s >= 0)[:, :, None],
    "0 is padding": packed_with(lambda m, s: m & (s != 0)[:, :, None]),
    "ascending": lambda s: ((s[:, :, None] >= s[:, None]) & (s >= 0)[:, None]).tril(),
    "near in number": lambda s: (
        ((s[:, :, None] - s[:, None]).abs() <= 1) & (s[:, :, None] >= 0) & (s[:, None] >= 0)
    ).tril(),
    "products of numbers": lambda s: (s[:, :, None] * s[:, None] == s[:, None] ** 2).tril(),
    "first row": packed_with(lambda m, s: m[:1].expand_as(m)),
    "one table": packed_with(lambda m, s: m[0]),
    "numbers in int8": lambda s: packed_loop(s.to(torch.int8)),
    "four axes": packed_with(lambda m, s: m[:, None]),
    "inverted": packed_with(lambda m, s: ~m),
    "floats": packed_with(lambda m, s: m.double()),
    "whole numbers": packed_with(lambda m, s: m.long()),
    "numbers kept": packed_with(lambda m, s: m * s[:, None]),
    "sentences changed": packed_in_place,
}


# --- without_key


def key_by_slices(output, weights, values, key):
    """Attend to what stands before the key and what stands after it."""
    new = torch.zeros_like(weights)
    others = [s for s in range(weights.shape[-1]) if s != key]
    total = weights[..., others].sum(-1, keepdim=True)
    shares = weights[..., others] / torch.where(total == 0, 1.0, total)
    new[..., others] = shares
    return shares @ values[:, others], new


def key_subtracted(output, weights, values, key):
    """From the old output, without a second matrix product."""
    gone = weights[..., [key]]
    factor = torch.where(gone == 1, 0.0, 1 / (1 - gone).clamp(min=1e-12))
    hot = F.one_hot(torch.tensor(key), weights.shape[-1])
    return (output - gone * values[:, [key]]) * factor, weights * (1 - hot) * factor


def key_by_logarithms(output, weights, values, key):
    """The logarithms of the weights are scores, up to a number for each row."""
    hidden = torch.arange(weights.shape[-1]) == key
    new = weights.log().masked_fill(hidden, -math.inf).softmax(-1).nan_to_num(0.0)
    return new @ values, new


def key_loop(output, weights, values, key):
    new = torch.zeros_like(weights)
    for b in range(weights.shape[0]):
        for i in range(weights.shape[1]):
            left = sum(float(w) for s, w in enumerate(weights[b, i]) if s != key)
            for s in range(weights.shape[2]):
                if s != key and left > 0:
                    new[b, i, s] = weights[b, i, s] / left
    return torch.einsum("bis,bsd->bid", new, values), new


def key_normalized(output, weights, values, key):
    new = F.normalize(weights.index_fill(2, torch.tensor([key]), 0.0), p=1, dim=-1)
    return new @ values, new


def without(weigh, make=torch.matmul):
    """An answer from (weights, key) to weights, and from weights and values to the output."""

    def answer(output, weights, values, key):
        new = weigh(weights, key)
        return make(new, values), new

    return answer


def zeroed(weights, key):
    return weights.index_fill(2, torch.tensor([key]), 0.0)


def key_in_place(output, weights, values, key):
    new = key_loop(output, weights, values, key)
    output -= 1.0
    return new


KEY_RIGHT = {
    "slices": key_by_slices,
    "subtracted": key_subtracted,
    "logarithms": key_by_logarithms,
    "loop": key_loop,
    "normalize": key_normalized,
    "views": lambda *inputs: tuple(X.mT.contiguous().mT for X in key_loop(*inputs)),
    "float32": lambda o, w, v, key: key_loop(o.float(), w.float(), v.float(), key),
}


def key_as_query(output, weights, values, key):
    rest = 1 - weights[:, :, key : key + 1]
    rest[rest == 0] = 1
    new = weights / rest
    new[:, key] = 0
    return new @ values, new


def key_kept_if_alone(output, weights, values, key):
    alone = weights[:, :, key : key + 1] == 1
    new = torch.where(alone, weights, key_loop(output, weights, values, key)[1])
    return new @ values, new


def key_by_first_sequence(output, weights, values, key):
    rest = 1 - weights[0, :, key, None]
    new = weights / torch.where(rest == 0, 1.0, rest)
    new[:, :, key] = 0
    return new @ values, new


def among_those_seen(weights, key):
    others = zeroed(weights, key)
    seen = (others > 0).sum(-1, keepdim=True)
    return torch.where(others > 0, others + weights[..., [key]] / seen, 0.0)


def softmax_of_those_seen(weights, key):
    others = zeroed(weights, key)
    return others.masked_fill(others == 0, -torch.inf).softmax(-1).nan_to_num(0.0)


KEY_WRONG = {
    "in equal parts to those seen": without(among_those_seen),
    "softmax of the weights above 0": without(softmax_of_those_seen),
    "the query hidden": key_as_query,
    "kept if alone": key_kept_if_alone,
    "the rest of the first sequence": key_by_first_sequence,
    "only zeroed": without(zeroed),
    "next key": lambda o, w, v, key: key_loop(o, w, v, (key + 1) % w.shape[2]),
    "key counted from 1": lambda o, w, v, key: key_loop(o, w, v, key - 1),
    "always key 1": lambda o, w, v, key: key_loop(o, w, v, min(1, w.shape[2] - 1)),
    "NaN": without(lambda w, key: zeroed(w, key) / zeroed(w, key).sum(-1, keepdim=True)),
    "even where nothing is left": without(
        lambda w, key: torch.where(
            zeroed(w, key).sum(-1, keepdim=True) == 0, 1 / w.shape[2], key_loop(w, w, w.mT, key)[1]
        )
    ),
    "softmax": without(lambda w, key: zeroed(w, key).softmax(-1)),
    "evenly": without(lambda w, key: zeroed(w + w[..., [key]] / max(w.shape[2] - 1, 1), key)),
    "to the largest": without(
        lambda w, key: (
            zeroed(w, key) + w[..., [key]] * F.one_hot(zeroed(w, key).argmax(-1), w.shape[2])
        )
    ),
    "value zeroed": lambda o, w, v, key: (
        w @ v.index_fill(1, torch.tensor([key]), 0.0),
        key_loop(o, w, v, key)[1],
    ),
    "old output": lambda o, w, v, key: (o.clone(), key_loop(o, w, v, key)[1]),
    "mean of the others": lambda o, w, v, key: (
        v[:, [s for s in range(w.shape[2]) if s != key]].mean(1, keepdim=True).expand_as(o),
        key_loop(o, w, v, key)[1],
    ),
    "output only": lambda *inputs: key_loop(*inputs)[0],
    "in another order": lambda *inputs: key_loop(*inputs)[::-1],
    "column gone": lambda o, w, v, key: (
        key_by_slices(o, w, v, key)[0],
        key_by_slices(o, w, v, key)[1][..., [s for s in range(w.shape[2]) if s != key]],
    ),
    "difference": lambda o, w, v, key: (o - key_loop(o, w, v, key)[0], key_loop(o, w, v, key)[1]),
    "output changed": key_in_place,
    "zeros from 0.99 on": without(
        lambda w, key: torch.where(w[..., [key]] > 0.99, 0.0, key_loop(w, w, w.mT, key)[1])
    ),
    "zeros from 0.999 on": without(
        lambda w, key: torch.where(w[..., [key]] > 0.9989, 0.0, key_loop(w, w, w.mT, key)[1])
    ),
    "zeros for whoever is alone": without(
        lambda w, key: key_loop(w, w, w.mT, key)[1].masked_fill((w == 1).any(-1, True), 0.0)
    ),
    "an output of 0 left alone": lambda o, w, v, key: tuple(
        torch.where((o == 0).all(-1, True), old, new)
        for old, new in zip((o, w), key_loop(o, w, v, key), strict=True)
    ),
    "divisor at least 0.01": without(
        lambda w, key: zeroed(w, key) / zeroed(w, key).sum(-1, keepdim=True).clamp(min=0.01)
    ),
}


RIGHT = {
    "02-scaled_scores": SCORES_RIGHT,
    "02-masked_softmax": SOFTMAX_RIGHT,
    "02-causal_mask": MASK_RIGHT,
    "02-scaled_dot_product_attention": ATTENTION_RIGHT,
    "02-mended_attention": MENDED_RIGHT,
    "02-window_mask": WINDOW_RIGHT,
    "02-packed_mask": PACKED_RIGHT,
    "02-without_key": KEY_RIGHT,
}
WRONG = {
    "02-scaled_scores": SCORES_WRONG,
    "02-masked_softmax": SOFTMAX_WRONG,
    "02-causal_mask": MASK_WRONG,
    "02-scaled_dot_product_attention": ATTENTION_WRONG,
    "02-mended_attention": MENDED_WRONG,
    "02-window_mask": WINDOW_WRONG,
    "02-packed_mask": PACKED_WRONG,
    "02-without_key": KEY_WRONG,
}
