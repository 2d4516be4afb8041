"""Answers to the tasks of lesson 01."""

import math
from fractions import Fraction

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F


def softmax(x):
    powers = torch.exp(x - x.amax(dim=-1, keepdim=True))
    return powers / powers.sum(dim=-1, keepdim=True)


def softmax_by_loop(x):
    rows = []
    for row in x.reshape(-1, x.shape[-1]):
        largest = max(row.tolist())
        powers = [math.exp(score - largest) for score in row.tolist()]
        rows.append([power / sum(powers) for power in powers])
    return torch.tensor(rows, dtype=x.dtype).reshape(x.shape)


def softmax_by_differences(x):
    return 1 / torch.exp(x.unsqueeze(-2) - x.unsqueeze(-1)).sum(dim=-1)


def softmax_in_numpy(x):
    powers = np.exp(x.numpy() - x.numpy().max(-1, keepdims=True))
    return torch.from_numpy(powers / powers.sum(-1, keepdims=True))


def softmax_from_the_back(x):
    x = x.movedim(-1, 0)
    powers = (x - x.max(0).values).exp()
    return powers.div(powers.sum(0)).movedim(0, -1)


def softmax_by_sorting(x):
    powers = 2 ** ((x - x.sort(dim=-1).values[..., -1:]) / math.log(2))
    return torch.einsum("...i,...->...i", powers, 1 / torch.einsum("...i->...", powers))


def naive(x):
    return x.exp() / x.exp().sum(dim=-1, keepdim=True)


def shifted_by(shift):
    return lambda x: naive(x - shift(x))


def softmax_over(dim):
    return lambda x: softmax(x.transpose(dim, -1)).transpose(dim, -1)


def softmax_in_place(x):
    x -= x.amax(dim=-1, keepdim=True)
    return x.exp_().div_(x.sum(dim=-1, keepdim=True))


def attend(query, keys, values):
    return softmax(keys @ query) @ values


def attend_by_loop(query, keys, values):
    scores = [sum(q * k for q, k in zip(query, key, strict=True)) for key in keys]
    powers = [math.exp(score - max(scores)) for score in scores]
    output = torch.zeros(values.shape[1], dtype=values.dtype)
    for power, value in zip(powers, values, strict=True):
        output += power / sum(powers) * value
    return output


def attend_as_rows(query, keys, values):
    return (F.softmax(query[None] @ keys.T, dim=-1) @ values).squeeze(0)


def attend_with(weigh):
    return lambda query, keys, values: weigh(keys @ query) @ values


def attention(queries, keys, values):
    return softmax(queries @ keys.transpose(-2, -1)) @ values


def attention_by_loop(queries, keys, values):
    rows = [
        [attend(query, k, v) for query in sentence]
        for sentence, k, v in zip(queries, keys, values, strict=True)
    ]
    return torch.stack([torch.stack(row) for row in rows])


def attention_by_einsum(queries, keys, values):
    weights = torch.einsum("bld,bsd->bsl", queries, keys).softmax(dim=1)
    return torch.einsum("bsl,bsv->bvl", weights, values).transpose(1, 2)


def attention_by_sums(queries, keys, values):
    scores = (queries.unsqueeze(2) * keys.unsqueeze(1)).sum(-1, keepdim=True)  # (B, L, S, 1)
    return (nn.Softmax(dim=2)(scores) * values.unsqueeze(1)).sum(2)


def attention_by_bmm(queries, keys, values):
    output = torch.empty(*queries.shape[:2], values.shape[2], dtype=values.dtype)
    torch.bmm(torch.bmm(queries, keys.permute(0, 2, 1)).softmax(-1), values, out=output)
    return output


def attention_with(weigh):
    return lambda queries, keys, values: weigh(queries @ keys.transpose(-2, -1)) @ values


def one_batch(queries, keys, values):
    flat = [X.reshape(1, -1, X.shape[-1]) for X in (queries, keys, values)]
    return attention(*flat).reshape(*queries.shape[:2], -1)


def first_sentence(queries, keys, values):
    return attention(queries, keys[:1].expand_as(keys), values[:1].expand_as(values))


def reshaped_keys(queries, keys, values):
    return softmax(queries @ keys.reshape(keys.shape[0], keys.shape[2], -1)) @ values


def scores_of(activation=torch.tanh):
    def additive_scores(queries, keys, W_q, W_k, w_v):
        return activation((queries @ W_q).unsqueeze(2) + (keys @ W_k).unsqueeze(1)) @ w_v

    return additive_scores


additive_scores = scores_of()


def additive_by_loop(queries, keys, W_q, W_k, w_v):
    scores = torch.zeros(queries.shape[0], queries.shape[1], keys.shape[1], dtype=w_v.dtype)
    for b, i, j in np.ndindex(*scores.shape):
        scores[b, i, j] = torch.tanh(queries[b, i] @ W_q + keys[b, j] @ W_k).dot(w_v)
    return scores


def additive_by_repeating(queries, keys, W_q, W_k, w_v):
    L, S = queries.shape[1], keys.shape[1]
    pairs = torch.cat(
        (queries.repeat_interleave(S, dim=1), keys.repeat(1, L, 1)), dim=-1
    )  # (B, L * S, both)
    return ((pairs @ torch.cat((W_q, W_k))).tanh() @ w_v).unflatten(1, (L, S))


def additive_by_einsum(queries, keys, W_q, W_k, w_v):
    q, k = torch.einsum("bld,dh->hbl", queries, W_q), torch.einsum("bsd,dh->hbs", keys, W_k)
    hidden = (q[..., None] + k[..., None, :]).tanh_()
    return torch.einsum("hbls,h->bsl", hidden, w_v).mT


def additive_by_linear(queries, keys, W_q, W_k, w_v):
    hidden = F.linear(queries, W_q.T)[:, :, None] + F.linear(keys, W_k.T)[:, None]
    return F.linear(torch.tanh(hidden), w_v[None]).squeeze(-1)


def dot_of_projections(queries, keys, W_q, W_k, w_v):
    return (queries @ W_q) @ (keys @ W_k).mT


def separate_tanh(queries, keys, W_q, W_k, w_v):
    q, k = torch.tanh(queries @ W_q).unsqueeze(2), torch.tanh(keys @ W_k).unsqueeze(1)
    return (q + k) @ w_v


def difference(queries, keys, W_q, W_k, w_v):
    return torch.tanh((queries @ W_q).unsqueeze(2) - (keys @ W_k).unsqueeze(1)) @ w_v


def tanh_outside(queries, keys, W_q, W_k, w_v):
    return torch.tanh(scores_of(lambda x: x)(queries, keys, W_q, W_k, w_v))


def tanh_of_product(queries, keys, W_q, W_k, w_v):
    return torch.tanh((queries @ W_q).unsqueeze(2) * (keys @ W_k).unsqueeze(1)) @ w_v


def transposed_if_it_fits(queries, keys, W_q, W_k, w_v):
    W_q, W_k = (W.T if W.shape[0] == W.shape[1] else W for W in (W_q, W_k))
    return additive_scores(queries, keys, W_q, W_k, w_v)


def paired(queries, keys, W_q, W_k, w_v):
    if queries.shape[1] != keys.shape[1]:
        return additive_scores(queries, keys, W_q, W_k, w_v)
    scores = torch.tanh(queries @ W_q + keys @ W_k) @ w_v
    return scores.unsqueeze(1).expand(-1, keys.shape[1], -1)


def across_batch(queries, keys, W_q, W_k, w_v):
    hidden = (queries @ W_q).unsqueeze(2) + (keys.flip(0) @ W_k).unsqueeze(1)
    return torch.tanh(hidden) @ w_v


def keys_first(queries, keys, W_q, W_k, w_v):
    return additive_scores(queries, keys, W_q, W_k, w_v).transpose(1, 2)


def kernel_regression(places, known_places, known_results, width):
    squares = ((places[:, None] - known_places[None]) ** 2).sum(-1)
    return softmax(-squares / (2 * width**2)) @ known_results


def kernel_by_loop(places, known_places, known_results, width):
    rows = []
    for place in places:
        squares = [
            sum((p - k) ** 2 for p, k in zip(place, known, strict=True)) for known in known_places
        ]
        nearest = min(squares)
        powers = [math.exp((nearest - square) / (2 * width**2)) for square in squares]
        parts = [power / sum(powers) * y for power, y in zip(powers, known_results, strict=True)]
        rows.append(sum(parts))
    return torch.stack(rows)


def kernel_by_cdist(places, known_places, known_results, width):
    distances = torch.cdist(places, known_places, compute_mode="donot_use_mm_for_euclid_dist")
    return F.softmax(-0.5 * (distances / width) ** 2, dim=1) @ known_results


def kernel_by_dot_products(places, known_places, known_results, width):
    """The square of the place itself is the same in all scores of a row, and cancels."""
    middle = known_places.mean(0)  # far from 0 the squares would lose the digits that count
    return kernel_by_products_from_0(places - middle, known_places - middle, known_results, width)


def kernel_by_products_from_0(places, known_places, known_results, width):
    scores = places @ known_places.T - known_places.square().sum(-1) / 2
    return softmax(scores / width**2) @ known_results


def kernel_with_densities(places, known_places, known_results, width):
    """The factor of the normal density cancels."""
    squares = ((places[:, None] - known_places[None]) ** 2).sum(-1)
    logs = -squares / (2 * width**2) - places.shape[1] * math.log(width * math.sqrt(2 * math.pi))
    return (logs - logs.logsumexp(-1, keepdim=True)).exp() @ known_results


def kernel_with(score):
    def kernel(places, known_places, known_results, width):
        return softmax(score(places[:, None] - known_places[None], width)) @ known_results

    return kernel


def by_lstsq(A, b):
    return torch.linalg.lstsq(A, b[:, None], driver="gelsd").solution[:, 0]


def solved(A, b):
    return torch.linalg.pinv(A) @ b


def query_for(keys, weights):
    return by_lstsq(keys[1:] - keys[0], (weights[1:] / weights[0]).log())


def query_with_gram(keys, weights):
    apart = keys[1:] - keys[0]
    return apart.T @ torch.linalg.inv(apart @ apart.T) @ (weights[1:] / weights[0]).log()


def query_with_unknown_constant(keys, weights):
    both = torch.cat([keys, -torch.ones(len(keys), 1, dtype=keys.dtype)], dim=1)
    return (torch.linalg.pinv(both) @ weights.log())[:-1]


def query_from_centred_keys(keys, weights):
    return torch.linalg.pinv(keys - keys.mean(0)) @ weights.log()


def query_from_neighbours(keys, weights):
    return torch.linalg.pinv(keys.diff(dim=0)) @ weights.log().diff()


def query_in_numpy(keys, weights):
    differences = (keys[:-1] - keys[-1]).numpy()
    logarithms = (weights[:-1] / weights[-1]).log().numpy()
    found = np.linalg.lstsq(differences, logarithms, rcond=None)
    return torch.from_numpy(found[0])


def query_and_more(keys, weights):
    """Any direction in which all keys agree may be added."""
    differences = keys[1:] - keys[0]
    free = torch.eye(keys.shape[1], dtype=keys.dtype) - torch.linalg.pinv(differences) @ differences
    return query_for(keys, weights) + 3 * free.sum(1)


def query_by_descent(keys, weights):
    """Newton's method on the cross-entropy."""
    query = torch.zeros_like(keys[0])
    for _ in range(60):
        now = (keys @ query).softmax(0)
        slope = keys.T @ (now - weights)
        bend = keys.T @ (now.diag() - now[:, None] * now) @ keys
        query = query - torch.linalg.pinv(bend, rtol=1e-13) @ slope
    return query


def query_with(solve):
    return lambda keys, weights: solve(keys, weights.log())


def looking_matrices(looks_at):
    return 50 * looks_at, torch.eye(len(looks_at), dtype=looks_at.dtype)


def looking_split(looks_at):
    """A singular value decomposition: neither matrix is one-hot."""
    U, S, V = torch.linalg.svd(looks_at)
    return 60 * U * S.sqrt(), V.T * S.sqrt()


def looking_away_from_others(looks_at):
    return -50 * (1 - looks_at), torch.eye(len(looks_at), dtype=looks_at.dtype)


def looking_by_loop(looks_at):
    kinds = len(looks_at)
    W_q, W_k = torch.zeros(2, kinds, kinds + 3, dtype=torch.float64)
    for kind in range(kinds):
        W_k[kind, kind + 1] = 5
        for other in range(kinds):
            if looks_at[kind, other]:
                W_q[kind, other + 1] = 4
    return [W_q, W_k]


def looking_changed(change):
    return lambda looks_at: change(*looking_matrices(looks_at), looks_at)


def predictions(second_weight=0.4, new_output=24, output_with_twin=8):
    return lambda: {
        "second_weight": second_weight,
        "new_output": new_output,
        "output_with_twin": output_with_twin,
    }


def computed():
    scores, values = torch.tensor([1.0, 2, 5]).log() - 7, torch.tensor([4.0, 4, 12])
    shifted = softmax(scores + math.log(3) + torch.tensor([0, math.log(2), 0]))
    twin = [1, 0, 1, 2]
    return {
        "output_with_twin": softmax(scores[twin]) @ values[twin],
        "second_weight": shifted[1],
        "new_output": softmax(scores) @ (2 * values + 6),
        "remark": "more than was asked",
    }


def softmax_shifted_if_large(x):
    if x.max() > 500:
        x = x - x.amax(dim=-1, keepdim=True)
    return x.exp() / x.exp().sum(dim=-1, keepdim=True)


def softmax_with_ones(x):
    return (x.exp() / x.exp().sum(dim=-1, keepdim=True)).nan_to_num(nan=1.0)


def scores_by_addition_theorem(queries, keys, W_q, W_k, w_v):
    a, b = torch.tanh(queries @ W_q).unsqueeze(2), torch.tanh(keys @ W_k).unsqueeze(1)
    return ((a + b) / (1 + a * b)) @ w_v


def scores_of_other_sentences(queries, keys, W_q, W_k, w_v):
    return torch.tanh((queries @ W_q).unsqueeze(2) + (keys @ W_k).unsqueeze(0)) @ w_v


def scores_of_wholes(queries, keys, W_q, W_k, w_v):
    B, L, S = queries.shape[0], queries.shape[1], keys.shape[1]
    q, k = (queries @ W_q).repeat(1, S, 1), (keys @ W_k).repeat(1, L, 1)
    return (torch.tanh(q + k) @ w_v).view(B, L, S)


def scores_of_one_matrix(queries, keys, W_q, W_k, w_v):
    W_k = W_q if W_q.shape == W_k.shape else W_k
    return torch.tanh((queries @ W_q).unsqueeze(2) + (keys @ W_k).unsqueeze(1)) @ w_v


def attention_from(scores, values):
    return torch.softmax(scores, dim=-1) @ values


def query_without_the_last(keys, weights):
    return torch.linalg.pinv(keys[:-1]) @ torch.log(weights[:-1])


def query_of_merged_keys(keys, weights):
    different, place = torch.unique(keys, dim=0, return_inverse=True)
    merged = torch.zeros(len(different), dtype=weights.dtype).index_add(0, place, weights)
    scores = merged.log()
    return torch.linalg.pinv(different - different.mean(dim=0)) @ (scores - scores.mean())


def query_with_tolerance(keys, weights):
    target = torch.log(weights[1:]) - torch.log(weights[:1])
    return torch.linalg.pinv(keys[1:] - keys[:1], rtol=1e-2) @ target


def _two_names_exchanged():
    names = ("second_weight", "output_with_twin", "new_output")
    return dict(zip(names, (4 / 10, 2 * 9 + 6, (5 * 12 + 2 * 4 + 2 * 4 + 4) / 10), strict=True))


def _last_pair_left_out(keys, weights):
    A, b = torch.zeros_like(keys[1:]), torch.zeros_like(weights[1:])
    for i in range(len(keys) - 2):
        A[i] = keys[i + 1] - keys[i]
        b[i] = weights[i + 1].log() - weights[i].log()
    return torch.linalg.pinv(A) @ b


def _first_pair_left_out(keys, weights):
    A, b = keys.diff(dim=0)[1:], weights.log().diff()[1:]
    return (
        torch.linalg.lstsq(A, b, driver="gelsd").solution if len(A) else torch.zeros_like(keys[0])
    )


def _eigenvectors(looks_at):
    values, vectors = torch.linalg.eigh(30 * looks_at)
    return vectors * values, vectors


def _rows_shared_out(looks_at):
    W_q = torch.zeros_like(looks_at)
    for kind, row in enumerate(looks_at):
        if row.any():
            W_q[kind] = 20 * row / row.sum()
    return W_q, torch.eye(len(looks_at), dtype=looks_at.dtype)


RIGHT = {
    "01-softmax": {
        "amax": softmax,
        "plain Python": softmax_by_loop,
        "no shift, only differences": softmax_by_differences,
        "logsumexp": lambda x: (x - x.logsumexp(dim=-1, keepdim=True)).exp(),
        "numpy": softmax_in_numpy,
        "last axis to the front": softmax_from_the_back,
        "powers of 2": softmax_by_sorting,
        "float32": lambda x: softmax(x).float(),
        "with gradients": lambda x: softmax(x.requires_grad_()),
    },
    "01-attend": {
        "own softmax": attend,
        "loops": attend_by_loop,
        "as one row": attend_as_rows,
        "einsum": lambda q, k, v: torch.einsum(
            "s,sv->v", torch.einsum("d,sd->s", q, k).softmax(0), v
        ),
        "sum of products": lambda q, k, v: (softmax((q * k).sum(1))[:, None] * v).sum(0),
        "from the batched one": lambda q, k, v: attention(q[None, None], k[None], v[None])[0, 0],
        "float32": lambda q, k, v: attend(q, k, v).float(),
    },
    "01-attention": {
        "own softmax": attention,
        "loops over attend": attention_by_loop,
        "einsum, not contiguous": attention_by_einsum,
        "sums": attention_by_sums,
        "bmm": attention_by_bmm,
        "vmap": torch.vmap(torch.vmap(attend, in_dims=(0, None, None))),
        "float32": lambda q, k, v: attention(q, k, v).float(),
    },
    "01-additive_scores": {
        "broadcasting": additive_scores,
        "loops": additive_by_loop,
        "concatenated pairs": additive_by_repeating,
        "einsum, not contiguous": additive_by_einsum,
        "linear": additive_by_linear,
        "sigmoid": scores_of(lambda x: 2 * torch.sigmoid(2 * x) - 1),
        "float32": lambda *inputs: additive_scores(*(X.float() for X in inputs)),
    },
    "01-predictions": {
        "by thinking": predictions(),
        "fractions": predictions(Fraction(2, 5), Fraction(24), Fraction(8)),
        "numpy": predictions(np.float32(0.4), np.int64(24), np.float64(8)),
        "computed, more keys": computed,
    },
    "01-kernel_regression": {
        "own softmax": kernel_regression,
        "loops": kernel_by_loop,
        "cdist": kernel_by_cdist,
        "dot products": kernel_by_dot_products,
        "normal densities": kernel_with_densities,
        "divided before it is squared": kernel_with(
            lambda apart, width: -(apart / width / math.sqrt(2)).square().sum(-1)
        ),
        "as a product": kernel_with(
            lambda apart, width: -torch.einsum("lsd,lsd->ls", apart, apart) * 0.5 * width**-2
        ),
        "float32 from the differences on": kernel_with(
            lambda apart, width: -apart.float().square().sum(-1).to(apart.dtype) / (2 * width**2)
        ),
    },
    "01-query_for": {
        "differences": query_for,
        "one more unknown": query_with_unknown_constant,
        "centred keys": query_from_centred_keys,
        "neighbours": query_from_neighbours,
        "numpy": query_in_numpy,
        "another of many": query_and_more,
        "step by step": query_by_descent,
        "float32": lambda keys, weights: query_for(keys, weights).float(),
        "parameters": lambda keys, weights: nn.Parameter(query_for(keys, weights)),
    },
    "01-looking_matrices": {
        "keys one-hot": looking_matrices,
        "queries one-hot": lambda looks_at: (
            torch.eye(len(looks_at), dtype=torch.float64),
            50 * looks_at.T,
        ),
        "singular values": looking_split,
        "away from the others": looking_away_from_others,
        "loops, wider, a list": looking_by_loop,
        "shared out": looking_changed(
            lambda W_q, W_k, looks_at: (W_q / looks_at.sum(1, keepdim=True).clamp(min=1), 90 * W_k)
        ),
        "a shift for all": looking_changed(lambda W_q, W_k, looks_at: (W_q - 7, W_k)),
        "parameters": looking_changed(
            lambda W_q, W_k, looks_at: (nn.Parameter(W_q), W_k.requires_grad_())
        ),
        "just firm enough": looking_changed(lambda W_q, W_k, looks_at: (W_q * 0.24, W_k)),
    },
}

WRONG = {
    "01-softmax": {
        "naive": naive,
        "one maximum for the table": shifted_by(lambda x: x.max()),
        "mean subtracted": shifted_by(lambda x: x.mean(dim=-1, keepdim=True)),
        "maximum of each column": shifted_by(lambda x: x.amax(dim=0, keepdim=True)),
        "over the first axis": softmax_over(0),
        "over axis 1": softmax_over(1),
        "over axis -2": softmax_over(-2),
        "over all entries": lambda x: softmax(x.flatten()).reshape(x.shape),
        "sum without keepdim": lambda x: (
            x.sub(x.amax(-1, True)).exp() / x.sub(x.amax(-1, True)).exp().sum(-1)
        ),
        "sum of everything": lambda x: x.sub(x.amax(-1, True)).exp() / x.sub(x.amax()).exp().sum(),
        "only for matrices": lambda x: softmax(x.reshape(-1, x.shape[-1])),
        "divided by the sum": lambda x: x / x.sum(dim=-1, keepdim=True),
        "sigmoid": torch.sigmoid,
        "sigmoid, normalised": lambda x: x.sigmoid() / x.sigmoid().sum(dim=-1, keepdim=True),
        "powers of 2": lambda x: softmax(x * math.log(2)),
        "squares": lambda x: x**2 / (x**2).sum(dim=-1, keepdim=True),
        "logarithm of it": lambda x: x - x.logsumexp(dim=-1, keepdim=True),
        "one-hot": lambda x: F.one_hot(x.argmax(dim=-1), x.shape[-1]).double(),
        "scores cut off": lambda x: naive(x.clamp(-700, 700)),
        "NaN mended": lambda x: naive(x).nan_to_num(),
        "1e-8 in the sum": lambda x: (
            x.sub(x.amax(-1, True)).exp()
            / (x.sub(x.amax(-1, True)).exp().sum(-1, keepdim=True) + 1e-8)
        ),
        "sign lost": lambda x: softmax(-x),
        "absolute largest": shifted_by(lambda x: x.abs().amax(dim=-1, keepdim=True)),
        "smallest subtracted": shifted_by(lambda x: x.amin(dim=-1, keepdim=True)),
        "divided by the largest": lambda x: naive(x / x.amax(dim=-1, keepdim=True)),
        "half precision": lambda x: softmax(x).half(),
        "changes x": softmax_in_place,
        "torch.softmax": lambda x: torch.softmax(x, dim=-1),
        "F.softmax": lambda x: F.softmax(x, dim=-1),
        "Tensor.softmax": lambda x: x.softmax(-1),
        "nn.Softmax": nn.Softmax(dim=-1).forward,
        "log_softmax": lambda x: x.log_softmax(dim=-1).exp(),
        "softmin": lambda x: F.softmin(-x, dim=-1),
        "torch.special.softmax": lambda x: torch.special.softmax(x, dim=-1),
        "shifted if large": softmax_shifted_if_large,
        "1 for NaN": softmax_with_ones,
    },
    "01-attend": {
        "scaled": lambda q, k, v: softmax(k @ q / math.sqrt(len(q))) @ v,
        "naive exp": attend_with(naive),
        "no softmax": attend_with(lambda x: x),
        "divided by the sum": attend_with(lambda x: x / x.sum()),
        "sigmoid": attend_with(torch.sigmoid),
        "sum not divided": attend_with(lambda x: (x - x.max()).exp()),
        "hard look-up": lambda q, k, v: v[(k @ q).argmax()],
        "plain average": lambda q, k, v: v.mean(dim=0),
        "the weights": lambda q, k, v: softmax(k @ q),
        "both": lambda q, k, v: (attend(q, k, v), softmax(k @ q)),
        "one row": lambda q, k, v: attend(q, k, v)[None],
        "scaled values, not added": lambda q, k, v: softmax(k @ q)[:, None] * v,
        "keys averaged": lambda q, k, v: attend(q, k, k) if k.shape == v.shape else attend(q, k, v),
        "keys not transposed": lambda q, k, v: (
            softmax(q @ k) @ v if k.shape[0] == k.shape[1] else attend(q, k, v)
        ),
        "values transposed": lambda q, k, v: (
            v @ softmax(k @ q) if v.shape[0] == v.shape[1] else attend(q, k, v)
        ),
        "values score": lambda q, k, v: attend(q, v, k) if k.shape == v.shape else attend(q, k, v),
        "cosine": lambda q, k, v: softmax(k @ q / (k.norm(dim=1) * q.norm()).clamp(min=1e-9)) @ v,
        "distance": lambda q, k, v: softmax(-(k - q).norm(dim=1)) @ v,
        "squeezed": lambda q, k, v: attend(q, k, v).squeeze(),
        "finished function": lambda q, k, v: F.scaled_dot_product_attention(
            q[None, None], k[None], v[None], scale=1.0
        )[0, 0],
        "keys reshaped": lambda q, k, v: torch.softmax(q @ k.reshape(q.shape[0], -1), -1) @ v,
        "softmax at the end": lambda q, k, v: torch.softmax(k @ q @ v, dim=-1),
    },
    "01-attention": {
        "scaled": lambda q, k, v: attention(q / math.sqrt(q.shape[-1]), k, v),
        "scaled by d": lambda q, k, v: attention(q / q.shape[-1], k, v),
        "naive exp": attention_with(naive),
        "one maximum": attention_with(shifted_by(lambda x: x.max())),
        "one maximum a sentence": attention_with(shifted_by(lambda x: x.amax((1, 2), True))),
        "softmax over queries": attention_with(softmax_over(1)),
        "softmax over the batch": attention_with(softmax_over(0)),
        "softmax over all": attention_with(lambda x: softmax(x.flatten(1)).reshape(x.shape)),
        "no softmax": attention_with(lambda x: x),
        "divided by the sum": attention_with(lambda x: x / x.sum(dim=-1, keepdim=True)),
        "transposed weights if they fit": lambda q, k, v: (
            softmax(q @ k.mT).mT @ v if q.shape[1] == k.shape[1] else attention(q, k, v)
        ),
        "queries and keys swapped if they fit": lambda q, k, v: (
            attention(k, q, v) if q.shape == k.shape else attention(q, k, v)
        ),
        "keys not transposed if they fit": lambda q, k, v: (
            softmax(q @ k) @ v if k.shape[1] == k.shape[2] else attention(q, k, v)
        ),
        "keys and values swapped if they fit": lambda q, k, v: (
            attention(q, v, k) if k.shape == v.shape else attention(q, k, v)
        ),
        "keys reshaped, not transposed": reshaped_keys,
        "all sentences at once": one_batch,
        "pairs of the first sentence": first_sentence,
        "batch axis transposed": lambda q, k, v: (
            softmax(q @ k.permute(2, 1, 0)) @ v
            if k.shape[0] == k.shape[1] == k.shape[2]
            else attention(q, k, v)
        ),
        "the weights": lambda q, k, v: softmax(q @ k.mT),
        "both": lambda q, k, v: (attention(q, k, v), softmax(q @ k.mT)),
        "one query only": lambda q, k, v: attention(q[:, :1], k, v),
        "squeezed": lambda q, k, v: attention(q, k, v).squeeze(),
        "view": lambda q, k, v: attention(
            q.view(q.shape), k.view(k.shape), v.view(-1).view(v.shape)
        ),
        "finished function": lambda q, k, v: F.scaled_dot_product_attention(q, k, v, scale=1.0),
        "half of the squared distance": lambda q, k, v: (
            torch.softmax(-(torch.cdist(q, k) ** 2) / 2, -1) @ v
        ),
        "less the largest of each key": lambda q, k, v: attention_from(
            q @ k.mT - (q @ k.mT).amax(1, keepdim=True), v
        ),
        "0 hidden": lambda q, k, v: attention_from(
            (s := q @ k.mT).masked_fill(s == 0, -torch.inf), v
        ),
    },
    "01-additive_scores": {
        "no tanh": scores_of(lambda x: x),
        "relu": scores_of(torch.relu),
        "plain sigmoid": scores_of(torch.sigmoid),
        "tanh at the end": tanh_outside,
        "tanh of each": separate_tanh,
        "tanh of the product": tanh_of_product,
        "difference": difference,
        "dot product of the projections": dot_of_projections,
        "softmax included": lambda *inputs: softmax(additive_scores(*inputs)),
        "scaled": lambda q, k, W_q, W_k, w_v: (
            additive_scores(q, k, W_q, W_k, w_v) / math.sqrt(len(w_v))
        ),
        "w_v forgotten": lambda q, k, W_q, W_k, w_v: additive_scores(
            q, k, W_q, W_k, torch.ones_like(w_v)
        ),
        "not added up": lambda q, k, W_q, W_k, w_v: (
            torch.tanh((q @ W_q)[:, :, None] + (k @ W_k)[:, None]) * w_v
        ),
        "an axis too many": lambda *inputs: additive_scores(*inputs)[..., None],
        "squeezed": lambda *inputs: additive_scores(*inputs).squeeze(),
        "transposed matrices if they fit": transposed_if_it_fits,
        "matrices swapped if they fit": lambda q, k, W_q, W_k, w_v: (
            additive_scores(q, k, W_k, W_q, w_v)
            if W_q.shape == W_k.shape
            else additive_scores(q, k, W_q, W_k, w_v)
        ),
        "pairs one to one if L = S": paired,
        "keys of another sentence": across_batch,
        "(B, S, L)": keys_first,
        "changes queries": lambda q, k, W_q, W_k, w_v: additive_scores(
            q.mul_(1.0).add_(1.0).sub_(1.5), k, W_q, W_k, w_v
        ),
        "by the addition theorem": scores_by_addition_theorem,
        "axis in front of the batch": scores_of_other_sentences,
        "both repeated as a whole": scores_of_wholes,
        "one matrix where it fits": scores_of_one_matrix,
    },
    "01-kernel_regression": {
        "float32": lambda p, k, y, width: kernel_regression(p.float(), k.float(), y.float(), width),
        "dot products from 0": kernel_by_products_from_0,
        "naive": lambda p, k, y, width: (
            naive(-(p[:, None] - k).square().sum(-1) / (2 * width**2)) @ y
        ),
        "NaN turned into 0": lambda p, k, y, width: (
            naive(-(p[:, None] - k).square().sum(-1) / (2 * width**2)).nan_to_num() @ y
        ),
        "cdist, not squared": lambda p, k, y, width: (
            softmax(-torch.cdist(p, k) / (2 * width**2)) @ y
        ),
        "width not squared": kernel_with(lambda x, width: -x.square().sum(-1) / (2 * width)),
        "no 2": kernel_with(lambda x, width: -x.square().sum(-1) / width**2),
        "sign": kernel_with(lambda x, width: x.square().sum(-1) / (2 * width**2)),
        "mean of the features": kernel_with(lambda x, width: -x.square().mean(-1) / 2 / width**2),
        "last feature": kernel_with(lambda x, width: -x[..., -1].square() / (2 * width**2)),
        "largest difference": kernel_with(lambda x, width: -(x.abs().amax(-1) ** 2) / 2 / width**2),
        "fourth powers": kernel_with(lambda x, width: -(x**4).sum(-1) / (2 * width**2)),
        "a sharp edge": kernel_with(lambda x, width: -(x.square().sum(-1) > width**2) * 1e3),
        "cosine": lambda p, k, y, width: (
            softmax(F.normalize(p, dim=-1) @ F.normalize(k, dim=-1).T / width**2) @ y
        ),
        "attention": lambda p, k, y, width: softmax(p @ k.T / width**2) @ y,
        "softmax over places": lambda p, k, y, width: (
            (-(p[:, None] - k).square().sum(-1) / (2 * width**2)).softmax(0) @ y
        ),
        "only the first place": lambda p, k, y, width: kernel_regression(p[:1], k, y, width),
        "known places": lambda p, k, y, width: kernel_regression(p, k, k, width),
        "transposed": lambda p, k, y, width: kernel_regression(p, k, y, width).T,
        "known and new swapped if they fit": lambda p, k, y, width: (
            kernel_regression(k, p, y, width)
            if p.shape == k.shape
            else kernel_regression(p, k, y, width)
        ),
        "width ignored": lambda p, k, y, width: kernel_regression(p, k, y, 1.0),
        "squeezed": lambda p, k, y, width: kernel_regression(p, k, y, width).squeeze(
            1 if len(p) > 1 else ()
        ),
        "changes the results": lambda p, k, y, width: kernel_regression(p, k, y.mul_(2), width) / 2,
    },
    "01-query_for": {
        "logarithms as they are": query_with(solved),
        "less the last": query_with(lambda k, s: solved(k, s - s[-1])),
        "less the mean": query_with(lambda k, s: solved(k, s - s.mean())),
        "weights as scores": lambda keys, weights: solved(keys, weights),
        "keys times weights": lambda keys, weights: keys.T @ weights,
        "keys times logarithms": lambda keys, weights: keys.T @ weights.log(),
        "centred keys times logarithms": lambda keys, weights: (
            (keys - keys.mean(0)).T @ weights.log()
        ),
        "best key": lambda keys, weights: 5 * keys[weights.argmax()],
        "zeros": lambda keys, weights: torch.zeros_like(keys[0]),
        "differences of weights": lambda keys, weights: by_lstsq(
            keys[1:] - keys[0], weights.diff()
        ),
        "differences to different keys": lambda keys, weights: solved(
            keys[1:] - keys[0], weights.log().diff()
        ),
        "keys taken for independent": query_with_gram,
        "the constant only with more keys": lambda keys, weights: solved(
            keys if len(keys) <= keys.shape[1] else keys - keys.mean(0), weights.log()
        ),
        "one equation too few": lambda keys, weights: query_for(keys[:-1], weights[:-1]),
        "base 2": lambda keys, weights: query_for(keys, weights) / math.log(2),
        "for scaled scores": lambda keys, weights: query_for(keys, weights) * keys.shape[1] ** 0.5,
        "a list": lambda keys, weights: query_for(keys, weights).tolist(),
        "a row": lambda keys, weights: query_for(keys, weights)[None],
        "NaN": lambda keys, weights: query_for(keys, weights) * math.nan,
        "whole numbers": lambda keys, weights: query_for(keys, weights).round().long(),
        "rounded": lambda keys, weights: query_for(keys, weights).round(decimals=2),
        "changes keys": lambda keys, weights: query_for(keys.sub_(keys[0].clone()), weights),
        "the last key left out": query_without_the_last,
        "equal keys merged": query_of_merged_keys,
        "a tolerance of 0.01": query_with_tolerance,
        "last pair left out": _last_pair_left_out,
        "first pair left out": _first_pair_left_out,
    },
    "01-looking_matrices": {
        "identity": lambda looks_at: (50 * torch.eye(len(looks_at)).double(),) * 2,
        "the table twice": lambda looks_at: (50 * looks_at, looks_at),
        "transposed": lambda looks_at: looking_matrices(looks_at.T),
        "strength 1": looking_changed(lambda W_q, W_k, looks_at: (W_q / 50, W_k)),
        "strength 7": looking_changed(lambda W_q, W_k, looks_at: (W_q * 0.14, W_k)),
        "enough for 60 words": looking_changed(lambda W_q, W_k, looks_at: (W_q * 0.22, W_k)),
        "enough for 5 words": looking_changed(lambda W_q, W_k, looks_at: (W_q / 5, W_k)),
        "negative": looking_changed(lambda W_q, W_k, looks_at: (-W_q, W_k)),
        "preferring the first kind": looking_changed(
            lambda W_q, W_k, looks_at: (W_q, W_k * torch.arange(2, 2 + len(W_k)).flip(0)[:, None])
        ),
        "unlike shares": looking_changed(
            lambda W_q, W_k, looks_at: (W_q, W_k + 0.01 * torch.arange(len(W_k)).diag())
        ),
        "infinite": looking_changed(lambda W_q, W_k, looks_at: (W_q * math.inf, W_k)),
        "W_k in float32": looking_changed(lambda W_q, W_k, looks_at: (W_q, W_k.float())),
        "W_q in float32": looking_changed(lambda W_q, W_k, looks_at: (W_q.float(), W_k)),
        "both in float32": looking_changed(lambda W_q, W_k, looks_at: (W_q.float(), W_k.float())),
        "too large": looking_changed(lambda W_q, W_k, looks_at: (W_q * 1e200, W_k * 1e200)),
        "product": looking_changed(lambda W_q, W_k, looks_at: W_q @ W_k.T),
        "unequal widths": looking_changed(lambda W_q, W_k, looks_at: (W_q, W_k[:, :1])),
        "lists": looking_changed(lambda W_q, W_k, looks_at: (W_q.tolist(), W_k.tolist())),
        "three": looking_changed(lambda W_q, W_k, looks_at: (W_q, W_k, W_k)),
        "zeros": looking_changed(lambda W_q, W_k, looks_at: (0 * W_q, W_k)),
        "swapped": looking_changed(lambda W_q, W_k, looks_at: (W_k, W_q)),
        "changes the table": lambda looks_at: looking_matrices(looks_at.mul_(50)),
        "eigenvectors of a table that is not symmetric": _eigenvectors,
        "a row shared out among its kinds": _rows_shared_out,
    },
    "01-predictions": {
        "weight doubled": predictions(second_weight=0.5),
        "nothing moves": predictions(second_weight=0.25),
        "all grow": predictions(second_weight=12 / 27),
        "only doubled": predictions(new_output=18.0),
        "6 for each pair": predictions(new_output=36.0),
        "twin ignored": predictions(output_with_twin=9.0),
        "twin added on top": predictions(output_with_twin=10.0),
        "first twin": predictions(output_with_twin=76 / 9),
        "one missing": lambda: {"second_weight": 0.4, "new_output": 24.0},
        "no dict": lambda: (0.4, 24.0, 8.0),
        "text": predictions(second_weight="0.4"),
        "two names exchanged": _two_names_exchanged,
    },
}
