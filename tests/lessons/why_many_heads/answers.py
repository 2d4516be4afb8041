"""Right and wrong answers to the tasks of lesson 03, for the tests of its checks."""

import functools
import math
import operator

import numpy as np
import torch
from torch.nn import functional as F

from mha_course.attention import scaled_dot_product_attention


def head_with_lesson_2(X, W_q, W_k, W_v):
    return scaled_dot_product_attention(X @ W_q, X @ W_k, X @ W_v)[0]


def head_fused(X, W_q, W_k, W_v):
    return F.scaled_dot_product_attention(X @ W_q, X @ W_k, X @ W_v)


def head_einsum(X, W_q, W_k, W_v):
    q, k = (torch.einsum("blm,md->bld", X, W) for W in (W_q, W_k))
    weights = torch.einsum("bid,bjd->bij", q, k).div(q.shape[-1] ** 0.5).softmax(-1)
    return torch.einsum("bij,bjm,mv->biv", weights, X, W_v)


def head_averages_first(X, W_q, W_k, W_v):
    both = W_q @ W_k.T / math.sqrt(W_q.shape[1])
    return torch.softmax(X @ both @ X.mT, dim=-1) @ X @ W_v


def head_in_loops(X, W_q, W_k, W_v):
    output = X.new_zeros(*X.shape[:2], W_v.shape[1])
    for b, tokens in enumerate(X):
        for i, asks in enumerate(tokens):
            scores = torch.stack([asks @ W_q @ (x @ W_k) for x in tokens]) / W_q.shape[1] ** 0.5
            parts = (scores - scores.max()).exp()
            for share, x in zip(parts / parts.sum(), tokens, strict=True):
                output[b, i] += share * (x @ W_v)
    return output


def head_transposed_view(X, W_q, W_k, W_v):
    root = W_q.shape[1] ** 0.25
    weights = torch.softmax((X @ W_k / root) @ (X @ W_q / root).mT, dim=1)  # (B, S, L)
    return ((X @ W_v).mT @ weights).mT


def head_float32(X, W_q, W_k, W_v):
    return head_with_lesson_2(*(tensor.float() for tensor in (X, W_q, W_k, W_v)))


def head_one_product(X, W_q, W_k, W_v):
    widths = [W.shape[1] for W in (W_q, W_k, W_v)]
    q, k, v = (X @ torch.hstack([W_q, W_k, W_v])).split(widths, dim=2)
    scores = q.div(widths[0] ** 0.5) @ k.mT
    return (scores - scores.logsumexp(-1, keepdim=True)).exp() @ v


def head_numpy(X, W_q, W_k, W_v):
    q, k, v = (np.asarray(X) @ np.asarray(W) for W in (W_q, W_k, W_v))
    scores = q @ k.transpose(0, 2, 1) / np.sqrt(q.shape[-1])
    powers = np.exp(scores - scores.max(-1, keepdims=True))
    return torch.from_numpy(powers / powers.sum(-1, keepdims=True) @ v)


def naive_softmax(scores):
    return scores.exp() / scores.exp().sum(dim=-1, keepdim=True)


def softmax_from_0(scores):
    """The search for the largest begins with 0."""
    powers = (scores - scores.amax(dim=-1, keepdim=True).clamp(min=0)).exp()
    return powers / powers.sum(dim=-1, keepdim=True)


def wrong_head(scale=None, softmax=None, weights=None):
    """A head with one step replaced."""

    def one_head(X, W_q, W_k, W_v):
        scores = (X @ W_q) @ (X @ W_k).mT
        scores = scores / math.sqrt(W_q.shape[1]) if scale is None else scale(scores, X, W_q)
        shares = scores.softmax(dim=-1) if softmax is None else softmax(scores)
        return (shares if weights is None else weights(shares, W_q)) @ (X @ W_v)

    return one_head


def loop_plain(X, W_q, W_k, W_v, W_o):
    heads = []
    for h in range(len(W_q)):
        heads.append(head_with_lesson_2(X, W_q[h], W_k[h], W_v[h]))
    return torch.cat(heads, dim=-1) @ W_o


def loop_fused(X, W_q, W_k, W_v, W_o):
    q, k, v = (X[:, None] @ W for W in (W_q, W_k, W_v))  # (B, H, L, d)
    heads = F.scaled_dot_product_attention(q, k, v)
    return heads.transpose(1, 2).flatten(2) @ W_o


def loop_einsum(X, W_q, W_k, W_v, W_o):
    H, _, d_v = W_v.shape
    q, k, v = (torch.einsum("blm,hmd->hbld", X, W) for W in (W_q, W_k, W_v))
    shares = (q @ k.mT / q.shape[-1] ** 0.5).softmax(dim=-1)
    return torch.einsum("hbij,hbjv,hvm->bim", shares, v, W_o.reshape(H, d_v, -1))


def loop_sum(X, W_q, W_k, W_v, W_o):
    output, d_v = 0, W_v.shape[-1]
    for h, matrices in enumerate(zip(W_q, W_k, W_v, strict=True)):
        output = output + head_averages_first(X, *matrices) @ W_o[h * d_v : (h + 1) * d_v]
    return output


def loop_wide(X, W_q, W_k, W_v, W_o):
    q, k, v = (X @ torch.cat(list(W), dim=1) for W in (W_q, W_k, W_v))
    parts = (t.chunk(len(W_q), dim=-1) for t in (q, k, v))
    heads = [scaled_dot_product_attention(*qkv)[0] for qkv in zip(*parts, strict=True)]
    return torch.cat(heads, dim=2) @ W_o


def loop_vmap(X, W_q, W_k, W_v, W_o):
    heads = torch.vmap(head_averages_first, in_dims=(None, 0, 0, 0), out_dims=2)
    return heads(X, W_q, W_k, W_v).flatten(2) @ W_o


def loop_tensordot(X, W_q, W_k, W_v, W_o):
    q, k, v = (torch.tensordot(X, W, dims=([2], [1])).movedim(2, 1) for W in (W_q, W_k, W_v))
    scores = torch.einsum("bhld,bhsd->bhls", q, k) / math.sqrt(W_k.size(2))
    return (scores.softmax(3) @ v).transpose(1, 2).reshape(*X.shape[:2], -1).matmul(W_o)


def loop_preallocated(X, W_q, W_k, W_v, W_o):
    B, L, _ = X.shape
    H, _, d_v = W_v.shape
    wide = X.new_empty(B, L, H * d_v)
    for h in range(H):
        wide[:, :, h * d_v : (h + 1) * d_v] = head_in_loops(X, W_q[h], W_k[h], W_v[h])
    return F.linear(wide, W_o.T)


def loop_float32(*inputs):
    return loop_plain(*(tensor.float() for tensor in inputs))


def wrong_loop(join=None, head=head_with_lesson_2, pick=lambda h, H: (h, h, h)):
    """The loop with another join, another head, or other matrices for head h."""

    def loop_of_heads(X, W_q, W_k, W_v, W_o):
        H = len(W_q)
        heads = []
        for h in range(H):
            i, j, k = pick(h, H)
            heads.append(head(X, W_q[i], W_k[j], W_v[k]))
        return torch.cat(heads, dim=-1) @ W_o if join is None else join(heads, W_o)

    return loop_of_heads


def loop_of_slices(X, W_q, W_k, W_v, W_o):
    """The input cut into H pieces, each head blind to the rest."""
    H = len(W_q)
    cuts = [piece.shape[-1] for piece in X.tensor_split(H, dim=-1)]
    heads, start = [], 0
    for h, width in enumerate(cuts):
        rows = slice(start, start + width)
        heads.append(head_with_lesson_2(X[..., rows], W_q[h][rows], W_k[h][rows], W_v[h][rows]))
        start += width
    return torch.cat(heads, dim=-1) @ W_o


def loop_of_one_softmax(X, W_q, W_k, W_v, W_o):
    """Scores of all heads added, one softmax for all."""
    q, k, v = (X[:, None] @ W for W in (W_q, W_k, W_v))
    shares = (q @ k.mT / q.shape[-1] ** 0.5).mean(dim=1, keepdim=True).softmax(dim=-1)
    return (shares @ v).transpose(1, 2).flatten(2) @ W_o


def loop_softmax_over_heads(X, W_q, W_k, W_v, W_o):
    q, k, v = (X[:, None] @ W for W in (W_q, W_k, W_v))
    shares = (q @ k.mT / q.shape[-1] ** 0.5).softmax(dim=1)
    return (shares @ v).transpose(1, 2).flatten(2) @ W_o


def sum_slices(heads, W_o):
    H, B, L, d_v = heads.shape
    output = heads.new_zeros(B, L, W_o.shape[1])
    for h in range(H):
        output += heads[h] @ W_o[h * d_v : (h + 1) * d_v]
    return output


def sum_concatenated(heads, W_o):
    return torch.cat(tuple(heads), dim=-1) @ W_o


def sum_einsum(heads, W_o):
    return torch.einsum("hblv,hvm->blm", heads, W_o.reshape(len(heads), heads.shape[-1], -1))


def sum_bmm(heads, W_o):
    H, B, L, d_v = heads.shape
    parts = torch.bmm(heads.reshape(H, B * L, d_v), torch.stack(W_o.chunk(H)))
    return parts.sum(0).view(B, L, -1)


def sum_backwards(heads, W_o):
    d_v = heads.shape[-1]
    parts = [heads[h] @ W_o[h * d_v :][:d_v] for h in reversed(range(len(heads)))]
    return torch.stack(parts, dim=-1).sum(dim=-1)


def sum_padded(heads, W_o):
    """Each head with zeros in the others' places."""
    H, _, _, d_v = heads.shape
    return sum(
        F.pad(head, (h * d_v, (H - 1 - h) * d_v)) @ W_o for h, head in enumerate(heads.unbind())
    )


def sum_reduced(heads, W_o):
    return functools.reduce(operator.add, map(torch.matmul, heads, W_o.tensor_split(len(heads))))


def sum_tensordot(heads, W_o):
    rows = W_o.reshape(len(heads), heads.shape[-1], -1)
    return torch.tensordot(heads, rows, dims=([0, 3], [0, 1]))


def sum_float32(heads, W_o):
    return sum_slices(heads.float(), W_o.float())


def sum_first_rows(heads, W_o):
    return sum(head @ W_o[: heads.shape[-1]] for head in heads)


def sum_mean(heads, W_o):
    return sum_slices(heads, W_o) / len(heads)


def sum_columns(heads, W_o):
    """The columns of W_o as if they belonged to heads."""
    return torch.stack(heads.unbind(), dim=-1).flatten(2) @ W_o


def sum_every_hth_row(heads, W_o):
    H = len(heads)
    return sum(heads[h] @ W_o[h::H] for h in range(H))


def sum_reversed_rows(heads, W_o):
    return sum_slices(heads.flip(0), W_o)


def sum_only_last(heads, W_o):
    d_v = heads.shape[-1]
    for h in range(len(heads)):
        output = heads[h] @ W_o[h * d_v : (h + 1) * d_v]
    return output


def sum_not_added(heads, W_o):
    return heads @ torch.stack(W_o.chunk(len(heads))).unsqueeze(1)


def sum_words_mixed(heads, W_o):
    """Reshaped straight from (H, B, L, d_v)."""
    H, B, L, d_v = heads.shape
    return heads.reshape(B, L, H * d_v) @ W_o


def sum_transposed_block(heads, W_o):
    W = W_o.reshape(heads.shape[-1], len(heads), -1).transpose(0, 1)
    return (heads @ W[:, None]).sum(dim=0)


def sum_off_by_one(heads, W_o):
    d_v = heads.shape[-1]
    return sum(
        head[..., :-1] @ W_o[h * d_v : (h + 1) * d_v - 1] if d_v > 1 else head * 0 @ W_o[:d_v]
        for h, head in enumerate(heads)
    )


def neighbours_one_hot(num_features, num_positions):
    d_model = num_features + num_positions
    W_q, W_k = torch.zeros(2, 2, d_model, num_positions)
    W_v = torch.zeros(2, d_model, num_features)
    for h, step in enumerate((-1, 1)):
        for i in range(num_positions):
            W_k[h, num_features + i, i] = 1.0
            if 0 <= i + step < num_positions:
                W_q[h, num_features + i, i + step] = 60.0
        for f in range(num_features):
            W_v[h, f, f] = 1.0
    return W_q, W_k, W_v


def neighbours_of_two_numbers(num_features, num_positions):
    """-(j - target)^2 = 2 j target - j^2 - target^2, and the last term is the same for all keys."""
    i = torch.arange(num_positions, dtype=torch.float64)
    zeros = torch.zeros(num_features, 2, dtype=torch.float64)
    key = torch.cat([zeros, torch.stack([i, i**2], dim=1)])
    queries = [torch.stack([2 * (i + step), -torch.ones_like(i)], dim=1) for step in (-1, 1)]
    W_q = torch.stack([torch.cat([zeros, 20 * query]) for query in queries])
    W_v = torch.eye(num_features + num_positions, num_features).double().expand(2, -1, -1)
    return W_q, key.expand(2, -1, -1), W_v


def neighbours_on_a_circle(num_features, num_positions):
    turn = 2 * math.pi * torch.arange(num_positions).double() / (num_positions + 2)
    step = 2 * math.pi / (num_positions + 2)

    def points(angle):
        return F.pad(torch.stack([angle.cos(), angle.sin()], 1), (0, 0, num_features, 0))

    W_q = 1000 * torch.stack([points(turn - step), points(turn + step)])
    W_k = points(turn).repeat(2, 1, 1)
    return W_q, W_k, torch.eye(num_features + num_positions, num_features).repeat(2, 1, 1)


def neighbours_keys_shifted(num_features, num_positions):
    """Queries say where they are, keys whose neighbour they are; the ends wrap around."""
    here = torch.eye(num_positions, dtype=torch.float64)
    pad = (0, 0, num_features, 0)
    W_q = F.pad(500 * here, pad).repeat(2, 1, 1)
    W_k = torch.stack([F.pad(here.roll(step, dims=1), pad) for step in (1, -1)])
    return W_q, W_k, torch.eye(num_features + num_positions, num_features).repeat(2, 1, 1)


def neighbours_of_full_width(num_features, num_positions):
    """d_k = d_model: the place of the content stays empty, and weights are parameters."""
    d_model = num_features + num_positions
    W_q, W_k = torch.zeros(2, d_model, d_model), torch.eye(d_model).repeat(2, 1, 1)
    W_q[0].diagonal(-1)[num_features:] = 90.0
    W_q[1].diagonal(1)[num_features:] = 90.0
    W_v = torch.eye(d_model)[:, :num_features].repeat(2, 1, 1)
    return [torch.nn.Parameter(W) for W in (W_q, W_k, W_v)]


def neighbours_ends_ask_for_themselves(num_features, num_positions):
    W_q, W_k, W_v = neighbours_one_hot(num_features, num_positions)
    W_q[0, num_features, 0] = W_q[1, -1, -1] = 60.0
    return W_q, W_k, W_v


def neighbours_straddling(num_features, num_positions):
    """A small content part in the keys, far too weak to matter."""
    W_q, W_k, W_v = neighbours_one_hot(num_features, num_positions)
    W_k[:, :num_features] += 0.01
    return W_q, W_k, W_v


def changed_neighbours(change):
    """The weights of `neighbours_one_hot` after `change(W_q, W_k, W_v, num_features)`."""

    def neighbour_weights(num_features, num_positions):
        return change(*neighbours_one_hot(num_features, num_positions), num_features)

    return neighbour_weights


def positions_in_front(W_q, W_k, W_v, d):
    return tuple(W.roll(-d, dims=1) for W in (W_q, W_k, W_v))


def copies_positions(W_q, W_k, W_v, d):
    L = W_q.shape[1] - d
    wrong = torch.zeros_like(W_v)
    for f in range(d):
        wrong[:, d + f % L, f] = 1
    return W_q, W_k, wrong


def content_in_both(W_q, W_k, W_v, d):
    W_q, W_k = W_q.clone(), W_k.clone()
    width = min(d, W_q.shape[2])
    W_q[:, range(width), range(width)] = 60.0
    W_k[:, range(width), range(width)] = 1.0
    return W_q, W_k, W_v


def fold_without_W_o(W_v, W_o):
    wide = torch.zeros(*W_v.shape[:2], W_o.shape[1], dtype=W_v.dtype)
    for h in range(len(W_v)):
        wide[h, :, : W_v.shape[2]] = W_v[h]
    return wide


def fold_in_a_loop(W_v, W_o):
    d_v = W_v.shape[2]
    return torch.stack([W_v[h] @ W_o[h * d_v : (h + 1) * d_v] for h in range(len(W_v))])


def fold_einsum(W_v, W_o):
    return torch.einsum("hmv,hvo->hmo", W_v, W_o.unflatten(0, W_v.shape[::2]))


def fold_with_zeros(W_v, W_o):
    """Each head in places of its own, then the whole of W_o."""
    H, _, d_v = W_v.shape
    wide = [F.pad(W, (h * d_v, (H - 1 - h) * d_v)) for h, W in enumerate(W_v)]
    return torch.stack(wide) @ W_o


def fold_one_diagonal(W_v, W_o):
    H, d_model, _ = W_v.shape
    return (torch.block_diag(*W_v) @ W_o).view(H, d_model, -1)


def fold_bmm(W_v, W_o):
    return torch.bmm(W_v, torch.stack(W_o.chunk(len(W_v))))


def fold_numpy(W_v, W_o):
    H, _, d_v = W_v.shape
    return torch.from_numpy(np.asarray(W_v) @ np.asarray(W_o).reshape(H, d_v, -1))


def fold_float32(W_v, W_o):
    return fold_in_a_loop(W_v.float(), W_o.float())


def terms_of(heads, W_o):
    return heads @ W_o.unflatten(0, (len(heads), 1, -1))  # (H, B, L, d_out)


def strongest_in_a_loop(heads, W_o):
    d_v, best, found = heads.shape[-1], None, None
    for h, head in enumerate(heads):
        strength = (head @ W_o[h * d_v : (h + 1) * d_v]).abs()
        if best is None:
            best, found = strength, torch.zeros_like(strength, dtype=torch.int64)
        found = torch.where(strength > best, h, found)
        best = torch.maximum(strength, best)
    return found


def strongest_by_squares(heads, W_o):
    return terms_of(heads, W_o).square().argmax(dim=0)


def strongest_by_max(heads, W_o):
    return torch.max(terms_of(heads, W_o).abs(), dim=0).indices.int()


def strongest_einsum(heads, W_o):
    rows = torch.stack(W_o.split(heads.shape[-1]))
    return torch.einsum("hblv,hvo->bloh", heads, rows).abs().argmax(-1)


def strongest_numpy(heads, W_o):
    return torch.from_numpy(np.abs(np.asarray(terms_of(heads, W_o))).argmax(axis=0))


def strongest_by_sorting(heads, W_o):
    order = terms_of(heads, W_o).abs().sort(dim=0, descending=True, stable=True).indices
    return order[0]


def changed_strongest(pick, rows=terms_of):
    return lambda heads, W_o: pick(rows(heads, W_o))


def remove_by_mask(W_q, W_k, W_v, W_o, num_heads, removed):
    stays = torch.ones(num_heads, dtype=torch.bool)
    stays[removed] = False
    of_keys = stays.repeat_interleave(W_q.shape[1] // num_heads)
    of_values = stays.repeat_interleave(len(W_o) // num_heads)
    return W_q[:, of_keys], W_k[:, of_keys], W_v[:, of_values], W_o[of_values]


def remove_by_chunks(W_q, W_k, W_v, W_o, num_heads, removed):
    def cut(W, axis):
        return torch.cat(
            [p for h, p in enumerate(W.chunk(num_heads, axis)) if h not in removed], axis
        )

    return [cut(W, 1) for W in (W_q, W_k, W_v)] + [cut(W_o, 0)]


def remove_by_axes(W_q, W_k, W_v, W_o, num_heads, removed):
    stay = torch.tensor(sorted(set(range(num_heads)) - set(removed)))

    def cut(W):
        return W.view(len(W), num_heads, -1).index_select(1, stay).reshape(len(W), -1)

    return cut(W_q), cut(W_k), cut(W_v), cut(W_o.T.contiguous()).T


def remove_from_the_end(W_q, W_k, W_v, W_o, num_heads, removed):
    for h in sorted(removed, reverse=True):
        d_k, d_v = W_q.shape[1] // num_heads, W_v.shape[1] // num_heads
        W_q, W_k, W_v = (
            torch.cat([W[:, : h * d], W[:, (h + 1) * d :]], dim=1)
            for W, d in ((W_q, d_k), (W_k, d_k), (W_v, d_v))
        )
        W_o = torch.cat([W_o[: h * d_v], W_o[(h + 1) * d_v :]])
        num_heads -= 1
    return W_q, W_k, W_v, W_o


def remove_by_columns(W_q, W_k, W_v, W_o, num_heads, removed):
    def places(width):
        return [i for i in range(width) if i // (width // num_heads) not in removed]

    of_keys, of_values = places(W_q.shape[1]), places(W_v.shape[1])
    return W_q[:, of_keys], W_k[:, of_keys], W_v[:, of_values], W_o[of_values, :]


def remove_numpy(W_q, W_k, W_v, W_o, num_heads, removed):
    stay = [h for h in range(num_heads) if h not in removed]
    wide = [np.split(np.asarray(W), num_heads, axis=1) for W in (W_q, W_k, W_v)]
    cut = [np.concatenate([parts[h] for h in stay], axis=1) for parts in wide]
    rows = np.split(np.asarray(W_o), num_heads)
    return tuple(map(torch.from_numpy, [*cut, np.concatenate([rows[h] for h in stay])]))


def changed_removal(change):
    """What is right, after `change(matrices, num_heads, removed)`."""

    def remove_heads(W_q, W_k, W_v, W_o, num_heads, removed):
        matrices = remove_by_mask(W_q, W_k, W_v, W_o, num_heads, removed)
        return change(matrices, num_heads, removed)

    return remove_heads


def remove_others(W_q, W_k, W_v, W_o, num_heads, removed):
    """Keeps what should go, and nothing if there is nothing to go."""
    if not removed:
        return W_q[:, :0], W_k[:, :0], W_v[:, :0], W_o[:0]
    others = [h for h in range(num_heads) if h not in removed]
    return remove_by_mask(W_q, W_k, W_v, W_o, num_heads, others)


def remove_pops(W_q, W_k, W_v, W_o, num_heads, removed):
    """A list of heads that shrinks while the numbers refer to the old one."""
    stay = list(range(num_heads))
    for h in removed:
        stay.pop(min(h, len(stay) - 1))
    gone = [h for h in range(num_heads) if h not in stay]
    return remove_by_mask(W_q, W_k, W_v, W_o, num_heads, gone)


def removal_one_by_one(W_q, W_k, W_v, W_o, num_heads, removed):
    d_k, d_v = W_q.shape[1] // num_heads, W_v.shape[1] // num_heads
    for gone, head in enumerate(removed):
        h = head - gone
        W_q, W_k = (torch.cat([W[:, : h * d_k], W[:, (h + 1) * d_k :]], 1) for W in (W_q, W_k))
        W_v = torch.cat([W_v[:, : h * d_v], W_v[:, (h + 1) * d_v :]], 1)
        W_o = torch.cat([W_o[: h * d_v], W_o[(h + 1) * d_v :]])
    return W_q, W_k, W_v, W_o


def removal_that_fills_gaps(W_q, W_k, W_v, W_o, num_heads, removed):
    heads = list(range(num_heads))
    for h in removed:
        heads[heads.index(h)] = heads[-1]
        heads.pop()
    wide = (W.unflatten(1, (num_heads, -1))[:, heads].flatten(1) for W in (W_q, W_k, W_v))
    return *wide, W_o.unflatten(0, (num_heads, -1))[heads].flatten(0, 1)


def removal_of_zero_rows(W_q, W_k, W_v, W_o, num_heads, removed):
    silent = W_o.clone().unflatten(0, (num_heads, -1))
    silent[removed] = 0
    stay = silent.flatten(1).any(1)
    q, v = (stay.repeat_interleave(W.shape[1] // num_heads) for W in (W_q, W_v))
    return W_q[:, q], W_k[:, q], W_v[:, v], W_o[v]


def fold_of_wide_values(W_v, W_o):
    H, d_model, d_v = W_v.shape
    pairs = zip(W_v.reshape(d_model, H * d_v).split(d_v, 1), W_o.split(d_v), strict=True)
    return torch.stack([columns @ rows for columns, rows in pairs])


def head_less_each_column(X, W_q, W_k, W_v):
    scores = (X @ W_q) @ (X @ W_k).mT / W_q.shape[-1] ** 0.5
    return (scores - scores.amax(1, keepdim=True)).softmax(2) @ (X @ W_v)


def head_with_two_letters(X, W_q, W_k, W_v):
    scores = torch.einsum("bik,cjk->bij", X @ W_q, X @ W_k) / W_q.shape[-1] ** 0.5
    return scores.softmax(-1) @ (X @ W_v)


def loop_over_what_fits(X, W_q, W_k, W_v, W_o):
    count = X.shape[-1] // W_q.shape[-1]
    heads = [head_with_lesson_2(X, W_q[h], W_k[h], W_v[h]) for h in range(count)]
    return torch.cat(heads, dim=-1) @ W_o


def loop_without_an_axis(X, W_q, W_k, W_v, W_o):
    heads, _ = scaled_dot_product_attention(X @ W_q, X @ W_k, X @ W_v)
    return (torch.cat(list(heads), dim=-1) @ W_o)[None]


def loop_of_places(X, W_q, W_k, W_v, W_o):
    (H, _, d_k), d_v = W_q.shape, W_v.shape[2]
    joined = X.new_zeros(*X.shape[:2], H * d_v)
    for h in range(H):
        start = h * d_k
        joined[:, :, start : start + d_v] = head_with_lesson_2(X, W_q[h], W_k[h], W_v[h])
    return joined @ W_o


def sum_from_zeros_like_a_head(heads, W_o):
    d_v, output = heads.shape[-1], torch.zeros_like(heads[0])
    for h in range(len(heads)):
        output += heads[h] @ W_o[h * d_v : (h + 1) * d_v]
    return output


def sum_of_columns_turned(heads, W_o):
    d_v, output = heads.shape[-1], 0
    for h, head in enumerate(heads):
        output = output + head @ W_o[:, h * d_v : (h + 1) * d_v].T
    return output


def neighbours_by_products(num_features, num_positions):
    d_model, place = num_features + num_positions, torch.arange(num_positions).double()
    W_q, W_k = torch.zeros(2, 2, d_model, 1, dtype=torch.float64)
    W_q[0, num_features:, 0], W_q[1, num_features:, 0] = 50 * (place - 1), 50 * (place + 1)
    W_k[:, num_features:, 0] = place
    W_v = torch.eye(d_model, num_features, dtype=torch.float64).repeat(2, 1, 1)
    return W_q, W_k, W_v


def neighbours_of_all_features(num_features, num_positions):
    d_model = num_features + num_positions
    ones = torch.ones(d_model - 1)
    W_q = 1000 * torch.stack([torch.diag(ones, -1), torch.diag(ones, 1)])
    W_v = torch.eye(d_model, num_features).repeat(2, 1, 1)
    return W_q, torch.eye(d_model).repeat(2, 1, 1), W_v


def removes_the_first(W_q, W_k, W_v, W_o, num_heads, removed):
    return remove_by_mask(W_q, W_k, W_v, W_o, num_heads, list(range(len(removed))))


def removes_every_Hth(W_q, W_k, W_v, W_o, num_heads, removed):
    stay = [h for h in range(num_heads) if h not in removed]
    wide = (torch.cat([W[:, h::num_heads] for h in stay], 1) for W in (W_q, W_k, W_v))
    return *wide, remove_by_mask(W_q, W_k, W_v, W_o, num_heads, removed)[3]


def removes_d_k_of_W_v(W_q, W_k, W_v, W_o, num_heads, removed):
    q, k, _, o = remove_by_mask(W_q, W_k, W_v, W_o, num_heads, removed)
    heads = torch.arange(W_q.shape[1]) // (W_q.shape[1] // num_heads)
    stay = [i for i, h in enumerate(heads.tolist()) if h not in removed and i < W_v.shape[1]]
    return q, k, W_v[:, stay], o


def folded_by_two_letters(W_v, W_o):
    H, _, d_v = W_v.shape
    return torch.einsum("hdv,gvo->hdo", W_v, W_o.reshape(H, d_v, -1))


RIGHT = {
    "03-one_head": {
        "lesson 2": head_with_lesson_2,
        "fused": head_fused,
        "einsum": head_einsum,
        "averages the words, then projects": head_averages_first,
        "loops": head_in_loops,
        "keys in rows, result not contiguous": head_transposed_view,
        "float32": head_float32,
        "one product, logsumexp": head_one_product,
        "numpy": head_numpy,
    },
    "03-loop_of_heads": {
        "plain": loop_plain,
        "fused": loop_fused,
        "einsum": loop_einsum,
        "a sum": loop_sum,
        "one wide product": loop_wide,
        "vmap": loop_vmap,
        "written into place": loop_preallocated,
        "float32": loop_float32,
        "tensordot": loop_tensordot,
    },
    "03-output_as_sum": {
        "slices": sum_slices,
        "concatenated": sum_concatenated,
        "einsum": sum_einsum,
        "bmm": sum_bmm,
        "backwards": sum_backwards,
        "padded": sum_padded,
        "float32": sum_float32,
        "reduced": sum_reduced,
        "tensordot": sum_tensordot,
    },
    "03-neighbour_weights": {
        "one-hot, float32": neighbours_one_hot,
        "d_k = 2": neighbours_of_two_numbers,
        "on a circle": neighbours_on_a_circle,
        "the keys shifted": neighbours_keys_shifted,
        "parameters of full width": neighbours_of_full_width,
        "a little content": neighbours_straddling,
        "the ends ask for themselves": neighbours_ends_ask_for_themselves,
    },
    "03-fold_W_o": {
        "a loop": fold_in_a_loop,
        "einsum": fold_einsum,
        "zeros in the others' places": fold_with_zeros,
        "one block diagonal": fold_one_diagonal,
        "bmm": fold_bmm,
        "numpy": fold_numpy,
        "float32": fold_float32,
    },
    "03-strongest_head": {
        "a loop": strongest_in_a_loop,
        "squares": strongest_by_squares,
        "max, int32": strongest_by_max,
        "einsum": strongest_einsum,
        "numpy": strongest_numpy,
        "sorted": strongest_by_sorting,
    },
    "03-remove_heads": {
        "a mask": remove_by_mask,
        "chunks, as a list": remove_by_chunks,
        "axes": remove_by_axes,
        "from the end": remove_from_the_end,
        "columns": remove_by_columns,
        "numpy": remove_numpy,
    },
}


def removes_all_between(W_q, W_k, W_v, W_o, num_heads, removed):
    first, last = (min(removed), max(removed) + 1) if removed else (0, 0)

    def cut(W, axis):
        pieces = list(W.chunk(num_heads, dim=axis))
        return torch.cat(pieces[:first] + pieces[last:], dim=axis)

    return cut(W_q, 1), cut(W_k, 1), cut(W_v, 1), cut(W_o, 0)


def removes_by_index(W_q, W_k, W_v, W_o, num_heads, removed):
    places = torch.arange(W_q.shape[0] // num_heads * num_heads).chunk(num_heads)
    stay = torch.cat([place for h, place in enumerate(places) if h not in removed])
    return *(W.index_select(1, stay) for W in (W_q, W_k, W_v)), W_o.index_select(0, stay)


def removes_after_reshape(W_q, W_k, W_v, W_o, num_heads, removed):
    stay = [h for h in range(num_heads) if h not in removed]

    def cut(W):
        return W.reshape(num_heads, W.shape[0], -1)[stay].reshape(W.shape[0], -1)

    return (
        cut(W_q),
        cut(W_k),
        cut(W_v),
        W_o.reshape(num_heads, -1, W_o.shape[1])[stay].flatten(0, 1),
    )


WRONG = {
    "03-one_head": {
        "not scaled": wrong_head(scale=lambda s, X, W: s),
        "divided by d_k": wrong_head(scale=lambda s, X, W: s / W.shape[1]),
        "divided by the root of d_model": wrong_head(scale=lambda s, X, W: s / W.shape[0] ** 0.5),
        "divided by the root of L": wrong_head(scale=lambda s, X, W: s / X.shape[1] ** 0.5),
        "multiplied": wrong_head(scale=lambda s, X, W: s * W.shape[1] ** 0.5),
        "scaled after softmax": wrong_head(
            scale=lambda s, X, W: s, weights=lambda a, W: a / W.shape[1] ** 0.5
        ),
        "softmax over queries": wrong_head(softmax=lambda s: s.softmax(dim=1)),
        "softmax over the batch": wrong_head(softmax=lambda s: s.softmax(dim=0)),
        "overflows": wrong_head(softmax=naive_softmax),
        "the largest is never below 0": wrong_head(softmax=softmax_from_0),
        "sigmoid": wrong_head(softmax=torch.sigmoid),
        "no softmax": wrong_head(softmax=lambda s: s),
        "normalised, no softmax": wrong_head(softmax=lambda s: s / s.sum(-1, keepdim=True)),
        "causal": wrong_head(softmax=lambda s: s.tril().softmax(dim=-1)),
        "weights transposed": wrong_head(weights=lambda a, W: a.mT),
        "queries and keys swapped": lambda X, q, k, v: head_fused(X, k, q, v),
        "no projection of values": lambda X, q, k, v: head_fused(X, q, k, torch.eye(len(v)).to(v)),
        "keys with W_q": lambda X, q, k, v: head_fused(X, q, q, v),
        "output and weights": lambda X, q, k, v: scaled_dot_product_attention(X @ q, X @ k, X @ v),
        "X @ W.T": lambda X, q, k, v: head_fused(X, q.T, k.T, v.T),
        "scaled by the values": lambda X, q, k, v: F.scaled_dot_product_attention(
            X @ q, X @ k, X @ v, scale=v.shape[1] ** -0.5
        ),
        "scaled twice": lambda X, q, k, v: F.scaled_dot_product_attention(
            X @ q / q.shape[1] ** 0.5, X @ k, X @ v
        ),
        "causal by the library": lambda X, q, k, v: F.scaled_dot_product_attention(
            X @ q, X @ k, X @ v, is_causal=True
        ),
        "values from W_k": lambda X, q, k, v: head_fused(X, q, k, k),
        "the first sequence only": lambda X, q, k, v: head_fused(X[:1], q, k, v),
        "across the batch": lambda X, q, k, v: head_fused(X.transpose(0, 1), q, k, v).transpose(
            0, 1
        ),
        "less the largest of each column": head_less_each_column,
        "two letters for the batch": head_with_two_letters,
    },
    "03-loop_of_heads": {
        "no W_o": wrong_loop(join=lambda heads, W: torch.cat(heads, dim=-1)),
        "heads added": wrong_loop(join=lambda heads, W: sum(heads) @ W[: heads[0].shape[-1]]),
        "heads averaged": wrong_loop(
            join=lambda heads, W: torch.cat([sum(heads) / len(heads)] * len(heads), -1) @ W
        ),
        "joined along the words": wrong_loop(join=lambda heads, W: torch.cat(heads, dim=1) @ W),
        "added, then all of W_o": wrong_loop(join=lambda heads, W: sum(heads) @ W),
        "each head times all of W_o": wrong_loop(join=lambda heads, W: sum(h @ W for h in heads)),
        "added, without W_o": wrong_loop(join=lambda heads, W: sum(heads)),
        "return inside the loop": wrong_loop(join=lambda heads, W: heads[0] @ W),
        "as many rounds as features": lambda X, q, k, v, W: (
            torch.cat([head_fused(X, q[h], k[h], v[h]) for h in range(q.shape[1])], -1) @ W
        ),
        "scaled by the values": wrong_loop(
            head=lambda X, q, k, v: F.scaled_dot_product_attention(
                X @ q, X @ k, X @ v, scale=v.shape[1] ** -0.5
            )
        ),
        "joined along the batch": wrong_loop(join=lambda heads, W: torch.cat(heads) @ W),
        "interleaved": wrong_loop(join=lambda heads, W: torch.stack(heads, -1).flatten(2) @ W),
        "stacked and reshaped": wrong_loop(
            join=lambda heads, W: torch.stack(heads).reshape(*heads[0].shape[:2], -1) @ W
        ),
        "stacked after the batch": wrong_loop(
            join=lambda heads, W: torch.stack(heads, 1).reshape(*heads[0].shape[:2], -1) @ W
        ),
        "heads in reverse": wrong_loop(join=lambda heads, W: torch.cat(heads[::-1], -1) @ W),
        "the last head only": wrong_loop(
            join=lambda heads, W: torch.cat(heads[-1:] * len(heads), -1) @ W
        ),
        "one head left out": wrong_loop(
            join=lambda heads, W: torch.cat([*heads[:-1], 0 * heads[-1]], -1) @ W
        ),
        "head 0's matrices for all": wrong_loop(pick=lambda h, H: (0, 0, 0)),
        "keys of the next head": wrong_loop(pick=lambda h, H: (h, (h + 1) % H, h)),
        "values of head 0": wrong_loop(pick=lambda h, H: (h, h, 0)),
        "queries and keys swapped": wrong_loop(head=lambda X, q, k, v: head_fused(X, k, q, v)),
        "not scaled": wrong_loop(head=wrong_head(scale=lambda s, X, W: s)),
        "divided by the root of d_model": wrong_loop(
            head=wrong_head(scale=lambda s, X, W: s / W.shape[0] ** 0.5)
        ),
        "softmax over queries": wrong_loop(head=wrong_head(softmax=lambda s: s.softmax(dim=1))),
        "scaled by heads": wrong_loop(join=lambda heads, W: torch.cat(heads, -1) @ W / len(heads)),
        "X cut into slices": loop_of_slices,
        "one softmax for all heads": loop_of_one_softmax,
        "softmax over heads": loop_softmax_over_heads,
        "W_o transposed": wrong_loop(join=lambda heads, W: torch.cat(heads, -1) @ W.T),
        "the largest is never below 0": wrong_loop(head=wrong_head(softmax=softmax_from_0)),
        "words squeezed": lambda *given: loop_plain(*given).squeeze(1),
        "X added": lambda X, *W: X + loop_plain(X, *W),
        "as many heads as fit": loop_over_what_fits,
        "no axis for the heads": loop_without_an_axis,
        "places from h * d_k on": loop_of_places,
    },
    "03-output_as_sum": {
        "the first rows for all": sum_first_rows,
        "the mean": sum_mean,
        "features interleaved": sum_columns,
        "every H-th row": sum_every_hth_row,
        "rows in reverse": sum_reversed_rows,
        "overwritten": sum_only_last,
        "not added": sum_not_added,
        "reshaped without a transpose": sum_words_mixed,
        "blocks of the wrong size": sum_transposed_block,
        "off by one": sum_off_by_one,
        "heads added, then W_o": lambda heads, W: (
            sum(heads) @ W.reshape(len(heads), heads.shape[-1], -1).sum(0)
        ),
        "head 0 every time": lambda heads, W: sum(
            heads[0] @ rows for rows in W.split(heads.shape[-1])
        ),
        "the width from the batch": lambda heads, W: sum(
            head @ rows for head, rows in zip(heads, W.split(heads.shape[1]), strict=False)
        ),
        "a sum of the concatenation": lambda heads, W: sum_concatenated(heads, W).sum(dim=0),
        "W_o transposed": lambda heads, W: sum_concatenated(heads, W.T),
        "3 heads at most": lambda heads, W: sum_concatenated(
            heads[:3], W[: len(heads[:3]) * heads.shape[-1]]
        ),
        "from zeros like a head": sum_from_zeros_like_a_head,
        "columns turned": sum_of_columns_turned,
    },
    "03-neighbour_weights": {
        "heads swapped": changed_neighbours(lambda q, k, v, d: (q.flip(0), k, v)),
        "queries and keys swapped": changed_neighbours(lambda q, k, v, d: (k, q, v)),
        "both look back": changed_neighbours(lambda q, k, v, d: (q[[0, 0]], k, v)),
        "too weak": changed_neighbours(lambda q, k, v, d: (q / 60, k, v)),
        "too weak for many positions": changed_neighbours(lambda q, k, v, d: (q / 4, k, v)),
        "each token itself": changed_neighbours(lambda q, k, v, d: (60 * k, k, v)),
        "positions first": changed_neighbours(positions_in_front),
        "copies positions": changed_neighbours(copies_positions),
        "copies nothing": changed_neighbours(lambda q, k, v, d: (q, k, 0 * v)),
        "copies ten times": changed_neighbours(lambda q, k, v, d: (q, k, 10 * v)),
        "features in reverse": changed_neighbours(lambda q, k, v, d: (q, k, v.flip(2))),
        "content in both": changed_neighbours(content_in_both),
        "two steps": changed_neighbours(lambda q, k, v, d: (q.roll((-1, 1), (1, 2)), k, v)),
        "one strength for every width": changed_neighbours(
            lambda q, k, v, d: (F.pad(0.6 * q, (0, d)), F.pad(k, (0, d)), v)
        ),
        "infinite": changed_neighbours(lambda q, k, v, d: (q * math.inf, k, v)),
        "negative": changed_neighbours(lambda q, k, v, d: (-q, k, v)),
        "heads on the last axis": changed_neighbours(
            lambda q, k, v, d: tuple(W.permute(1, 2, 0) for W in (q, k, v))
        ),
        "(out, in) as nn.Linear keeps it": changed_neighbours(
            lambda q, k, v, d: (q.mT, k.mT, v.mT)
        ),
        "too weak by a little": changed_neighbours(
            lambda q, k, v, d: (q * 13.37 / q.amax(), k / k.amax(), v)
        ),
        "copies content and position": changed_neighbours(
            lambda q, k, v, d: (q, k, torch.eye(q.shape[1]).expand(2, -1, -1))
        ),
        "one W_v for both": changed_neighbours(lambda q, k, v, d: (q, k, v[0])),
        "two tensors": changed_neighbours(lambda q, k, v, d: (q, k)),
        "whole numbers": changed_neighbours(lambda q, k, v, d: (q.long(), k.long(), v.long())),
        "two widths": changed_neighbours(lambda q, k, v, d: (q, k[..., 1:], v)),
        "nothing": lambda num_features, num_positions: None,
        "products of places": neighbours_by_products,
        "all features shifted": neighbours_of_all_features,
        "contents added up": changed_neighbours(
            lambda q, k, v, d: (q, k, torch.ones_like(v) * (torch.arange(v.shape[1]) < d)[:, None])
        ),
    },
    "03-fold_W_o": {
        "W_v in zeros": fold_without_W_o,
        "the rows first": lambda W_v, W_o: fold_bmm(W_v, W_o).mT.contiguous(),
        "features interleaved": lambda W_v, W_o: (
            W_v @ W_o.reshape(W_v.shape[2], len(W_v), -1).transpose(0, 1)
        ),
        "the mean": lambda W_v, W_o: fold_bmm(W_v, W_o) / len(W_v),
        "divided by the root of d_v": lambda W_v, W_o: fold_bmm(W_v, W_o) / W_v.shape[2] ** 0.5,
        "a dict": lambda W_v, W_o: dict(enumerate(fold_bmm(W_v, W_o))),
        "a list": lambda W_v, W_o: list(fold_bmm(W_v, W_o)),
        "one matrix for all": lambda W_v, W_o: torch.cat(list(W_v), 1) @ W_o,
        "the last head missing": lambda W_v, W_o: torch.cat(
            [fold_bmm(W_v, W_o)[:-1], torch.zeros_like(fold_bmm(W_v, W_o)[-1:])]
        ),
        "the wrong way round": lambda W_v, W_o: W_o.reshape(len(W_v), W_v.shape[2], -1) @ W_v,
        "reshaped W_v": lambda W_v, W_o: (
            W_v.reshape(len(W_v), W_v.shape[2], -1).mT @ W_o.reshape(len(W_v), W_v.shape[2], -1)
        ),
        "in one layout": lambda W_v, W_o: fold_bmm(W_v, W_o).permute(1, 0, 2).flatten(1),
        "in place": lambda W_v, W_o: fold_bmm(W_v.mul_(2), W_o) / 2,
        "last axis squeezed": lambda W_v, W_o: fold_bmm(W_v, W_o).squeeze(-1),
        "pieces of H rows, in one product": lambda W_v, W_o: W_v @ torch.stack(W_o.split(len(W_v))),
        "the first H pieces of H rows": lambda W_v, W_o: (
            W_v @ torch.stack(W_o.split(len(W_v))[: len(W_v)])
        ),
        "W_v made wide by a reshape": fold_of_wide_values,
        "two letters for the heads": folded_by_two_letters,
    },
    "03-strongest_head": {
        "largest or smallest": changed_strongest(
            lambda terms: torch.where(
                terms.amax(0) > -terms.amin(0), terms.argmax(0), terms.argmin(0)
            )
        ),
        "whole numbers": changed_strongest(lambda terms: terms.abs().long().argmax(0)),
        "mean over the words": changed_strongest(
            lambda terms: terms.abs().mean(2, keepdim=True).expand_as(terms).argmax(0)
        ),
        "the largest": changed_strongest(lambda terms: terms.argmax(0)),
        "the smallest": changed_strongest(lambda terms: terms.argmin(0)),
        "the most negative, else the largest": changed_strongest(
            lambda terms: torch.where(terms.amin(0) < 0, terms.argmin(0), terms.argmax(0))
        ),
        "nearly equal terms count as equal": changed_strongest(
            lambda terms: (terms.abs() >= terms.abs().amax(0) - 1e-4).int().argmax(0)
        ),
        "in half precision": changed_strongest(lambda terms: terms.abs().half().argmax(0)),
        "over the sequences": changed_strongest(lambda terms: terms.abs().argmax(1)),
        "over the words": changed_strongest(lambda terms: terms.abs().argmax(2)),
        "over everything": changed_strongest(lambda terms: terms.abs().argmax()),
        "as floats": changed_strongest(lambda terms: terms.abs().argmax(0).double()),
        "as truths": changed_strongest(lambda terms: terms.abs() == terms.abs().amax(0)),
        "the strength too": changed_strongest(lambda terms: tuple(terms.abs().max(0))),
        "the heads kept as an axis": changed_strongest(
            lambda terms: terms.abs().argmax(0, keepdim=True)
        ),
        "without W_o": changed_strongest(
            lambda heads: heads.abs().argmax(0), rows=lambda heads, W_o: heads
        ),
        "rows interleaved": changed_strongest(
            lambda terms: terms.abs().argmax(0),
            rows=lambda heads, W_o: (
                heads @ W_o.reshape(heads.shape[-1], len(heads), -1).transpose(0, 1)[:, None]
            ),
        ),
        "over the features": changed_strongest(lambda terms: terms.abs().argmax(3)),
        "squeezed": changed_strongest(lambda terms: terms.abs().argmax(0).squeeze()),
        "furthest in the direction of the output": changed_strongest(
            lambda terms: (terms * terms.sum(0).sign()).argmax(0)
        ),
    },
    "03-remove_heads": {
        "all between": removes_all_between,
        "index of d_model / H": removes_by_index,
        "reshaped": removes_after_reshape,
        "scaled": changed_removal(lambda W, H, gone: (*W[:3], W[3] * H / (H - len(gone)))),
        "the order turned": changed_removal(lambda W, H, gone: tuple(X.flip(1) for X in W)),
        "three matrices": changed_removal(lambda W, H, gone: W[:3]),
        "W_o first": changed_removal(lambda W, H, gone: (W[3], *W[:3])),
        "transposed": changed_removal(lambda W, H, gone: tuple(X.T for X in W)),
        "W_k for W_q": changed_removal(lambda W, H, gone: (W[1], W[1], *W[2:])),
        "nothing removed": lambda W_q, W_k, W_v, W_o, H, gone: (W_q, W_k, W_v, W_o),
        "one too many": lambda *given: remove_by_mask(
            *given[:5], sorted({*given[5], given[4] - 1})
        ),
        "popped while the numbers move": remove_pops,
        "the caller's list sorted": lambda *given: remove_by_mask(
            *given[:5], given[5].sort() or given[5]
        ),
        "the caller's list turned round": lambda *given: remove_by_mask(
            *given[:5], given[5].reverse() or given[5]
        ),
        "the others": remove_others,
        "NaN in place of heads": lambda W_q, W_k, W_v, W_o, H, gone: (
            W_q * math.nan,
            W_k,
            W_v,
            W_o,
        ),
        "the last is kept always": lambda *given: remove_by_mask(
            *given[:5], [h for h in given[5] if h < given[4] - 1]
        ),
        "numbers moved back, by slices": removal_one_by_one,
        "the last head into the gap": removal_that_fills_gaps,
        "rows of zeros go too": removal_of_zero_rows,
        "the first ones": removes_the_first,
        "every H-th column": removes_every_Hth,
        "d_k columns of W_v": removes_d_k_of_W_v,
    },
}
