"""Answers to the tasks of lesson 10."""

import math

import torch
from torch.nn import functional as F

from mha_course.attention import length_mask, masked_softmax


def step_by_loop(state, ready_keys, states, valid_lens, W_q, w_v):
    contexts, weights = [], torch.zeros(ready_keys.shape[:2], dtype=state.dtype)
    for b, length in enumerate(valid_lens.tolist()):
        scores = torch.stack(
            [w_v @ torch.tanh(state[b] @ W_q + ready_keys[b, j]) for j in range(length)]
        )
        powers = torch.exp(scores - scores.max())
        weights[b, :length] = powers / powers.sum()
        contexts.append(sum(weights[b, j] * states[b, j] for j in range(length)))
    return torch.stack(contexts), weights


def step_by_einsum(state, ready_keys, states, valid_lens, W_q, w_v):
    hidden = torch.tanh(torch.einsum("bq,qh->bh", state, W_q).unsqueeze(1) + ready_keys)
    scores = torch.einsum("bsh,h->bs", hidden, w_v)
    weights = masked_softmax(scores[:, None], valid_lens)[:, 0]
    return torch.einsum("bs,bsd->bd", weights, states), weights


def step_with(
    scores=lambda q, keys, w_v: torch.tanh(q[:, None] + keys) @ w_v,
    context=lambda weights, states: torch.einsum("bs,bsd->bd", weights, states),
    finish=lambda context, weights: (context, weights),
    lens=lambda valid_lens: valid_lens,
):
    def bahdanau_step(state, ready_keys, states, valid_lens, W_q, w_v):
        found = scores(state @ W_q, ready_keys, w_v)
        weights = masked_softmax(found[:, None], lens(valid_lens))[:, 0]
        return finish(context(weights, states), weights)

    return bahdanau_step


def step_filled_with(fill):
    def bahdanau_step(state, ready_keys, states, valid_lens, W_q, w_v):
        scores = torch.tanh((state @ W_q)[:, None] + ready_keys) @ w_v
        hidden = torch.arange(scores.shape[1]) >= valid_lens[:, None]
        weights = scores.masked_fill(hidden, fill).softmax(-1)
        return torch.einsum("bs,bsd->bd", weights, states), weights

    return bahdanau_step


def masks_by_loop(source, target, pad):
    def made(queries, keys, causal):
        rows = []
        for i in range(queries):
            rows.append([k != pad and not (causal and j > i) for j, k in enumerate(keys)])
        return rows

    S, L = source.shape[1], target.shape[1]
    pairs = list(zip(source.tolist(), target.tolist(), strict=True))
    return [
        torch.tensor([made(S, read, False) for read, _ in pairs]),
        torch.tensor([made(L, wrote, True) for _, wrote in pairs]),
        torch.tensor([made(L, read, False) for read, _ in pairs]),
    ]


def masks_by_places(source, target, pad):
    i, j = torch.arange(target.shape[1])[:, None], torch.arange(target.shape[1])
    reads = (source != pad)[:, None, :]
    return (
        reads.repeat(1, source.shape[1], 1),
        torch.logical_and((target != pad)[:, None, :], j <= i),
        reads.repeat(1, target.shape[1], 1),
    )


def masks_with(change):
    return lambda source, target, pad: change(*masks_by_places(source, target, pad))


def cross_by_loop(y, keys, values, memory_lens, W_q, W_o):
    B, H, _, d_k = keys.shape
    d_v, rows = values.shape[-1], []
    for b, length in enumerate(memory_lens.tolist()):
        total = torch.zeros(W_o.shape[1], dtype=y.dtype)
        for h in range(H):
            if length == 0:
                continue
            query = y[b] @ W_q[:, h * d_k : (h + 1) * d_k]
            weights = torch.softmax(keys[b, h, :length] @ query / math.sqrt(d_k), 0)
            total = total + weights @ values[b, h, :length] @ W_o[h * d_v : (h + 1) * d_v]
        rows.append(total)
    return torch.stack(rows)


def cross_by_einsum(y, keys, values, memory_lens, W_q, W_o):
    B, H, S, d_k = keys.shape
    q = (y @ W_q).unflatten(1, (H, d_k)) * d_k**-0.5
    scores = torch.einsum("bhd,bhsd->bhs", q, keys)
    weights = masked_softmax(scores, memory_lens)
    return torch.einsum("bhs,bhsd->bhd", weights, values).flatten(1) @ W_o


def cross_with(
    split=lambda q, H: q.unflatten(1, (H, -1)),
    lens=lambda memory_lens: memory_lens,
    scale=lambda keys, values: keys.shape[-1] ** -0.5,
    bring=lambda weights, keys, values: torch.einsum("bhs,bhsd->bhd", weights, values),
    finish=lambda heads, W_o: heads.flatten(1) @ W_o,
):
    def cross_step(y, keys, values, memory_lens, W_q, W_o):
        scores = torch.einsum("bhd,bhsd->bhs", split(y @ W_q, keys.shape[1]), keys)
        weights = masked_softmax(scores * scale(keys, values), lens(memory_lens))
        return finish(bring(weights, keys, values), W_o)

    return cross_step


def cross_filled_with(fill):
    def cross_step(y, keys, values, memory_lens, W_q, W_o):
        d_k = keys.shape[-1]
        q = (y @ W_q).unflatten(1, (keys.shape[1], d_k))
        scores = torch.einsum("bhd,bhsd->bhs", q, keys) / d_k**0.5
        seen = torch.arange(keys.shape[2]) < memory_lens[:, None, None]
        weights = scores.masked_fill(~seen, fill).softmax(-1) * seen
        return torch.einsum("bhs,bhsd->bhd", weights, values).flatten(1) @ W_o

    return cross_step


def layer_one_by_one(layer, Y, memory, memory_lens):
    """Each row of the result from the rows before it."""
    rows = []
    for t in range(1, Y.shape[1] + 1):
        rows.append(layer_with(causal=lambda Y: None)(layer, Y[:, :t], memory, memory_lens)[:, -1])
    return torch.stack(rows, dim=1)


def layer_each_alone(layer, Y, memory, memory_lens):
    """Each sequence by itself, with its padding cut off."""
    made = []
    for b, length in enumerate(memory_lens.tolist()):
        one = slice(b, b + 1)
        made.append(layer_with(pads=False)(layer, Y[one], memory[one, :length], memory_lens[one]))
    return torch.cat(made)


def own_attention(module, queries, keys, allowed):
    """What nn.MultiheadAttention computes, from its weights."""
    W_q, W_k, W_v = module.in_proj_weight.chunk(3)
    b_q, b_k, b_v = module.in_proj_bias.chunk(3)
    H = module.num_heads
    q = F.linear(queries, W_q, b_q).unflatten(-1, (H, -1)).transpose(1, 2)
    k = F.linear(keys, W_k, b_k).unflatten(-1, (H, -1)).transpose(1, 2)
    v = F.linear(keys, W_v, b_v).unflatten(-1, (H, -1)).transpose(1, 2)
    scores = q @ k.mT / q.shape[-1] ** 0.5
    weights = scores.masked_fill(~allowed, -torch.inf).softmax(-1)
    return module.out_proj((weights @ v).transpose(1, 2).flatten(2))


def layer_from_weights(layer, Y, memory, memory_lens):
    L, S = Y.shape[1], memory.shape[1]
    causal = torch.ones(L, L, dtype=torch.bool).tril()
    reads = length_mask(memory_lens, len(Y), L, S)[:, None]

    def block(X, norm, part):
        return X + part(norm(X)) if layer.norm_first else norm(X + part(X))

    Y = block(Y, layer.norm1, lambda X: own_attention(layer.self_attn, X, X, causal))
    Y = block(Y, layer.norm2, lambda X: own_attention(layer.multihead_attn, X, memory, reads))
    return block(Y, layer.norm3, lambda X: layer.linear2(layer.activation(layer.linear1(X))))


def layer_with(
    causal=lambda Y: torch.full((Y.shape[1],) * 2, -torch.inf, dtype=Y.dtype).triu(1),
    pads=True,
    keys=lambda X, memory: memory,
    values=lambda X, memory: memory,
    wrap=lambda X, norm, part, first: X + part(norm(X)) if first else norm(X + part(X)),
    finish=lambda layer, Y: Y,
    act=lambda layer, X: layer.activation(X),
):
    def decoder_layer(layer, Y, memory, memory_lens):
        hidden = torch.arange(memory.shape[1]) >= memory_lens[:, None] if pads else None

        def looks(X):
            return layer.self_attn(X, X, X, attn_mask=causal(X))[0]

        def reads(X):
            return layer.multihead_attn(
                X, keys(X, memory), values(X, memory), key_padding_mask=hidden
            )[0]

        first = layer.norm_first
        Y = wrap(Y, layer.norm1, looks, first)
        Y = wrap(Y, layer.norm2, reads, first)
        Y = wrap(Y, layer.norm3, lambda X: layer.linear2(act(layer, layer.linear1(X))), first)
        return finish(layer, Y)

    return decoder_layer


def greedy_in_lists(score_next, batch_size, longest, start, end, pad):
    rows = [[start] for _ in range(batch_size)]
    while len(rows[0]) <= longest and not all(end in row[1:] for row in rows):
        scores = score_next(torch.tensor(rows))
        for row, of_row in zip(rows, scores.tolist(), strict=True):
            best = max(range(len(of_row)), key=of_row.__getitem__)
            row.append(pad if end in row[1:] else best)
    return torch.tensor(rows)


def greedy_with_a_table(score_next, batch_size, longest, start, end, pad):
    table = torch.full((batch_size, longest + 1), pad)
    table[:, 0] = start
    open_rows = torch.ones(batch_size, dtype=torch.bool)
    for t in range(1, longest + 1):
        best = score_next(table[:, :t].clone()).max(dim=1).indices
        table[open_rows, t] = best[open_rows]
        open_rows &= table[:, t] != end
        if not open_rows.any():
            return table[:, : t + 1]
    return table


def beam_of_two_each(totals, scores, ended, pad):
    """As if no more than two of the best could come from one beam."""
    K, V = scores.shape[1:]
    logs = scores.log_softmax(-1)
    logs[ended] = torch.where(torch.arange(V) == pad, 0.0, -torch.inf).to(logs.dtype)
    best = (totals[..., None] + logs).topk(min(2, V))
    every = best.values.flatten(1).topk(K)
    return (
        every.values,
        every.indices // min(2, V),
        best.indices.flatten(1).gather(1, every.indices),
    )


def greedy_then_clean(score_next, batch_size, longest, start, end, pad):
    written = torch.full((batch_size, 1), start)
    for _ in range(longest):
        best = score_next(written).argmax(dim=-1, keepdim=True)
        written = torch.cat([written, best], dim=1)
        ends = written[:, 1:] == end
        if ends.any(dim=1).all():
            break
    behind = (ends.cumsum(1) - ends.long()) > 0
    written[:, 1:][behind] = pad
    return written


def greedy_by_chance(score_next, batch_size, longest, start, end, pad):
    written = torch.full((batch_size, 1), start)
    ended = torch.zeros(batch_size, dtype=torch.bool)
    for _ in range(longest):
        drawn = score_next(written).softmax(1).multinomial(1)
        written = torch.cat([written, drawn.masked_fill(ended[:, None], pad)], 1)
        ended |= written[:, -1] == end
        if ended.all():
            break
    return written


def greedy_asked_once_more(score_next, batch_size, longest, start, end, pad):
    written = greedy_in_lists(score_next, batch_size, longest, start, end, pad)
    if not (written[:, 1:] == end).any(1).all():
        score_next(written)
    return written


def greedy_changed(change):
    def greedy(score_next, batch_size, longest, start, end, pad):
        written = greedy_in_lists(score_next, batch_size, longest, start, end, pad)
        return change(written, start, end, pad)

    return greedy


def beam_by_sorting(totals, scores, ended, pad):
    B, K, V = scores.shape
    found = []
    for b in range(B):
        candidates = []
        for k in range(K):
            logs = F.log_softmax(scores[b, k], dim=0)
            tokens = [pad] if ended[b, k] else range(V)
            for v in tokens:
                candidates.append((float(totals[b, k] + (0 if ended[b, k] else logs[v])), k, v))
        found.append(sorted(candidates, reverse=True)[:K])
    best = torch.tensor([[c[0] for c in row] for row in found], dtype=torch.float64)
    beams = torch.tensor([[c[1] for c in row] for row in found])
    return best, beams, torch.tensor([[c[2] for c in row] for row in found])


def beam_by_logsumexp(totals, scores, ended, pad):
    logs = scores - scores.logsumexp(-1, keepdim=True)
    is_pad = torch.arange(scores.shape[-1]) == pad
    stay = torch.zeros_like(logs).masked_fill(~is_pad, -math.inf)
    every = (totals.unsqueeze(-1) + torch.where(ended.unsqueeze(-1), stay, logs)).flatten(1)
    values, places = every.sort(dim=1, descending=True)
    K, V = scores.shape[1:]
    places = places[:, :K]
    return values[:, :K], torch.div(places, V, rounding_mode="floor"), places.remainder(V)


def beam_of_logs(logs, others=-math.inf):
    def beam_step(totals, scores, ended, pad):
        K, V = scores.shape[1:]
        free = torch.full((V,), others, dtype=scores.dtype)
        free[pad] = 0.0
        every = totals[..., None] + torch.where(ended[..., None], free, logs(scores))
        best = every.flatten(1).topk(K)
        return best.values, best.indices // V, best.indices % V

    return beam_step


def beam_with(change):
    return lambda totals, scores, ended, pad: change(*beam_by_logsumexp(totals, scores, ended, pad))


def beam_of(inputs):
    """Right, of inputs that are changed before."""
    return lambda *given: beam_by_logsumexp(*inputs(*given))


def shift_by_matrices(P, shift):
    d = P.shape[1]
    M = torch.zeros(d, d, dtype=P.dtype)
    for i in range(0, d, 2):
        a = shift / 10000 ** (i / d)
        M[i, i], M[i, i + 1] = math.cos(a), math.sin(a)
        M[i + 1, i], M[i + 1, i + 1] = -math.sin(a), math.cos(a)
    return P @ M.T


def shift_by_complex(P, shift):
    d = P.shape[1]
    omega = torch.exp(-math.log(10000.0) * torch.arange(0, d, 2, dtype=P.dtype) / d)
    clocks = torch.view_as_complex(P.unflatten(1, (-1, 2)).flip(-1).contiguous())  # cos + i sin
    turned = clocks * torch.polar(torch.ones_like(omega), shift * omega)
    return torch.view_as_real(turned).flip(-1).flatten(1)


def shift_by_pairs(P, shift):
    d, columns = P.shape[1], []
    for i in range(d // 2):
        a = torch.tensor(shift * 10000 ** (-2 * i / d), dtype=P.dtype)
        s, c = P[:, 2 * i], P[:, 2 * i + 1]
        columns += [s * a.cos() + c * a.sin(), c * a.cos() - s * a.sin()]
    return torch.stack(columns, 1)


def shift_with(change):
    return lambda P, shift: change(P, shift)


def beams_unsorted(totals, scores, ended, pad):
    values, beams, tokens = beam_by_sorting(totals, scores, ended, pad)
    return values.flip(1), beams.flip(1), tokens.flip(1)


def beams_totals_late(totals, scores, ended, pad):
    V, logs = scores.shape[2], scores.log_softmax(-1)
    only_pad = torch.full_like(logs, -math.inf).index_fill(-1, torch.tensor([pad]), 0.0)
    best, place = torch.where(ended[..., None], only_pad, logs).flatten(1).topk(scores.shape[1])
    return best + totals.gather(1, place // V), place // V, place % V


def shifted_halves_only_read(P, shift):
    d = P.shape[1]
    a = shift * 10000 ** (-torch.arange(0, d, 2).double() / d)
    s, c = P[:, : d // 2], P[:, d // 2 :]
    out = torch.empty_like(P)
    out[:, 0::2], out[:, 1::2] = s * a.cos() + c * a.sin(), c * a.cos() - s * a.sin()
    return out


def shifted_rising(P, shift):
    d = P.shape[1]
    a = shift * 10000 ** (torch.arange(0, d, 2).double() / d)
    s, c = P[:, 0::2], P[:, 1::2]
    turned = s * a.cos() + c * a.sin(), c * a.cos() - s * a.sin()
    return torch.stack(turned, -1).flatten(1)


def greedy_filled_by_argmax(score_next, batch_size, longest, start, end, pad):
    written = torch.full((batch_size, 1), start)
    for _ in range(longest):
        written = torch.cat([written, score_next(written).argmax(1)[:, None]], 1)
        if (written == end).any(1).all():
            break
    first = (written == end).long().argmax(1)
    return written.masked_fill(torch.arange(written.shape[1]) > first[:, None], pad)


def greedy_closed(score_next, batch_size, longest, start, end, pad):
    written = torch.full((batch_size, 1), start)
    ended = torch.zeros(batch_size, dtype=torch.bool)
    for t in range(longest):
        best = score_next(written).argmax(1) if t < longest - 1 else torch.full((batch_size,), end)
        written = torch.cat([written, best.masked_fill(ended, pad)[:, None]], 1)
        ended = ended | (best == end)
        if ended.all():
            break
    return written


def beams_numbered_through(totals, scores, ended, pad):
    values, beams, tokens = beam_by_logsumexp(totals, scores, ended, pad)
    return values, beams + torch.arange(len(beams))[:, None] * beams.shape[1], tokens


def shifted_with_d_speeds(P, shift):
    angle = shift * 10000 ** (-torch.arange(P.shape[1]).double() / P.shape[1])
    s, c = P[:, 0::2], P[:, 1::2]
    out = torch.empty_like(P)
    out[:, 0::2] = s * angle[0::2].cos() + c * angle[0::2].sin()
    out[:, 1::2] = c * angle[1::2].cos() - s * angle[1::2].sin()
    return out


def _position_from_the_slowest_pair(P, shift):
    omega = 10000.0 ** (-torch.arange(0, P.shape[1], 2).double() / P.shape[1])
    angles = (torch.atan2(P[:, -2:-1], P[:, -1:]) / omega[-1] + shift) * omega
    return torch.stack([angles.sin(), angles.cos()], -1).flatten(1)


def _cut_behind_the_last_word(score_next, batch_size, longest, start, end, pad):
    written, ended = torch.full((batch_size, 1), start), torch.zeros(batch_size, dtype=torch.bool)
    for _ in range(longest):
        best = torch.where(ended, pad, score_next(written).argmax(1))
        ended, written = ended | (best == end), torch.cat([written, best[:, None]], 1)
    while (written[:, -1] == pad).all():
        written = written[:, :-1]
    return written


RIGHT = {
    "10-bahdanau_step": {
        "loop": step_by_loop,
        "einsum": step_by_einsum,
        "a list": lambda *given: list(step_by_einsum(*given)),
        "bmm": step_with(context=lambda w, states: torch.bmm(w[:, None], states).squeeze(1)),
    },
    "10-three_masks": {
        "loop": masks_by_loop,
        "places": masks_by_places,
        "views": lambda source, target, pad: (
            (source != pad)[:, None].expand(-1, source.shape[1], -1),
            (target != pad)[:, None] & torch.ones(target.shape[1], target.shape[1]).tril().bool(),
            (source != pad)[:, None].expand(-1, target.shape[1], -1),
        ),
    },
    "10-cross_step": {
        "loop": cross_by_loop,
        "einsum": cross_by_einsum,
        "sum over heads": cross_with(
            finish=lambda heads, W_o: torch.einsum(
                "bhd,hdo->bo", heads, W_o.unflatten(0, heads.shape[1:])
            )
        ),
    },
    "10-decoder_layer": {
        "one by one": layer_one_by_one,
        "each alone": layer_each_alone,
        "from the weights": layer_from_weights,
        "additive mask": layer_with(),
    },
    "10-greedy": {
        "lists": greedy_in_lists,
        "table": greedy_with_a_table,
        "cleaned up afterwards": greedy_then_clean,
    },
    "10-beam_step": {
        "sorting": beam_by_sorting,
        "logsumexp": beam_by_logsumexp,
        "a list": lambda *given: list(beam_by_logsumexp(*given)),
    },
    "10-shift_positions": {
        "matrices": shift_by_matrices,
        "complex numbers": shift_by_complex,
        "pair by pair": shift_by_pairs,
    },
}

WRONG = {
    "10-bahdanau_step": {
        "sigmoid": step_with(lambda q, keys, w_v: torch.sigmoid(q[:, None] + keys) @ w_v),
        "tanh of the score": step_with(lambda q, keys, w_v: torch.tanh((q[:, None] + keys) @ w_v)),
        "w_v forgotten": step_with(lambda q, keys, w_v: torch.tanh(q[:, None] + keys).sum(-1)),
        "query forgotten": step_with(lambda q, keys, w_v: torch.tanh(keys) @ w_v),
        "same query for all": step_with(lambda q, keys, w_v: torch.tanh(q[0] + keys) @ w_v),
        "keys halved": step_with(lambda q, keys, w_v: torch.tanh(q[:, None] + keys / 2) @ w_v),
        "sum of states": step_with(context=lambda w, states: states.sum(1)),
        "mean of states": step_with(context=lambda w, states: states.mean(1)),
        "best state": step_with(context=lambda w, s: s[torch.arange(len(s)), w.argmax(1)]),
        "weights with an axis": step_with(finish=lambda c, w: (c, w[:, None])),
        "one length for all": step_with(lens=lambda lens: lens[:1].expand(len(lens))),
        "longest for all": step_with(lens=lambda lens: lens.max().expand(len(lens))),
        "one less": step_with(lens=lambda lens: (lens - 1).clamp(min=1)),
        "context of the first": step_with(finish=lambda c, w: (c[:1].expand(len(c), -1), w)),
        "rounded": step_with(finish=lambda c, w: (c, w.round(decimals=2))),
        "padding at -100": step_filled_with(-100.0),
        "padding at -10,000": step_filled_with(-1e4),
        "weights up to the longest": lambda state, keys, states, lens, W_q, w_v: step_with()(
            state, keys[:, : lens.max()], states[:, : lens.max()], lens, W_q, w_v
        ),
    },
    "10-three_masks": {
        "all see all": masks_with(lambda e, d, c: (e | True, d | True, c | True)),
        "decoder without padding, but of one size": masks_with(
            lambda e, d, c: (e, d[0].expand(len(d), -1, -1), c)
        ),
        "an axis for the heads": masks_with(lambda e, d, c: (e[:, None], d[:, None], c[:, None])),
        "one row": masks_with(lambda e, d, c: (e[:, :1], d, c[:, :1])),
        "encoder transposed": masks_with(lambda e, d, c: (e.mT, d, c)),
        "decoder transposed": masks_with(lambda e, d, c: (e, d.mT, c)),
        "only two": masks_with(lambda e, d, c: (e, d)),
        "cross of the first": masks_with(lambda e, d, c: (e, d, c[:1].expand(len(c), -1, -1))),
        "the diagonal always": masks_with(
            lambda e, d, c: (e, d | torch.eye(d.shape[1], dtype=torch.bool), c)
        ),
        "floats": masks_with(lambda e, d, c: (e.float(), d.float(), c.float())),
        "to be added": masks_with(
            lambda e, d, c: tuple(torch.where(m, 0.0, -torch.inf) for m in (e, d, c))
        ),
        "causal encoder": masks_with(lambda e, d, c: (e.tril(), d, c)),
        "up to 64 tokens": masks_with(lambda e, d, c: (e, d[:, :64, :64], c)),
        "next seen": lambda source, target, pad: (
            *masks_by_places(source, target, pad)[:1],
            (target != pad)[:, None] & torch.ones(*[target.shape[1]] * 2).tril(1).bool(),
            *masks_by_places(source, target, pad)[2:],
        ),
    },
    "10-cross_step": {
        "squeezed": cross_with(finish=lambda heads, W_o: (heads.flatten(1) @ W_o).squeeze(-1)),
        "keys brought": cross_with(
            bring=lambda w, keys, values: torch.einsum("bhs,bhsd->bhd", w, keys)
        ),
        "mean of values": cross_with(bring=lambda w, keys, values: values.mean(2)),
        "average of heads": cross_with(
            finish=lambda heads, W_o: heads.mean(1).repeat(1, heads.shape[1]) @ W_o
        ),
        "W_o transposed": cross_with(finish=lambda heads, W_o: heads.flatten(1) @ W_o.mT),
        "W_o twice": cross_with(finish=lambda heads, W_o: 2 * (heads.flatten(1) @ W_o)),
        "reversed heads": cross_with(split=lambda q, H: q.unflatten(1, (H, -1)).flip(1)),
        "first head for all": cross_with(
            split=lambda q, H: q.unflatten(1, (H, -1))[:, :1].expand(-1, H, -1)
        ),
        "at least one": cross_with(lens=lambda lens: lens.clamp(min=1)),
        "longest for all": cross_with(lens=lambda lens: lens.max().expand(len(lens))),
        "no length": cross_with(lens=lambda lens: None),
        "multiplied": cross_with(scale=lambda keys, values: keys.shape[-1] ** 0.5),
        "by batch": cross_with(scale=lambda keys, values: len(keys) ** -0.5),
        "twice": cross_with(scale=lambda keys, values: 1 / keys.shape[-1]),
        "padding at -100": cross_filled_with(-100.0),
        "one for all": cross_with(
            finish=lambda h, W_o: (h.flatten(1) @ W_o)[:1].expand(len(h), -1)
        ),
    },
    "10-decoder_layer": {
        "no mask": layer_with(causal=lambda Y: None),
        "no padding": layer_with(pads=False),
        "values from Y": layer_with(
            keys=lambda X, memory: memory[:, :1].expand_as(memory),
        ),
        "memory as values only": layer_with(keys=lambda X, memory: memory.flip(1)),
        "mask of small numbers": layer_with(
            causal=lambda Y: -torch.ones_like(Y[0] @ Y[0].mT).triu(1)
        ),
        "one more norm": layer_with(finish=lambda layer, Y: layer.norm3(Y)),
        "post-norm": layer_with(wrap=lambda X, norm, part, first: norm(X + part(X))),
        "pre-norm": layer_with(wrap=lambda X, norm, part, first: X + part(norm(X))),
        "no norm": layer_with(wrap=lambda X, norm, part, first: X + part(X)),
        "norm of the part": layer_with(wrap=lambda X, norm, part, first: X + norm(part(X))),
        "sum with the normed": layer_with(
            wrap=lambda X, norm, part, first: (
                norm(X) + part(norm(X)) if first else norm(X + part(X))
            )
        ),
        "both norms": layer_with(wrap=lambda X, norm, part, first: norm(X + part(norm(X)))),
        "gelu": layer_with(act=lambda layer, X: F.gelu(X)),
        "activation at the end": layer_with(finish=lambda layer, Y: layer.activation(Y)),
        "a pair": layer_with(finish=lambda layer, Y: (Y, None)),
        "Y returned": lambda layer, Y, memory, memory_lens: Y,
        "the last row": layer_with(finish=lambda layer, Y: Y[:, -1]),
    },
    "10-greedy": {
        "by chance": greedy_by_chance,
        "exp of the scores": lambda score_next, *others: greedy_with_a_table(
            lambda written: score_next(written).exp(), *others
        ),
        "never more than 50": lambda score_next, batch_size, longest, *tokens: greedy_with_a_table(
            score_next, batch_size, min(longest, 50), *tokens
        ),
        "asked once more": greedy_asked_once_more,
        "one row": greedy_changed(lambda w, *_: w[:1].expand(len(w), -1)),
        "without the last": greedy_changed(lambda w, *_: w[:, :-1]),
        "padding for START": greedy_changed(lambda w, start, end, pad: w.where(w != start, pad)),
        "ends as padding": greedy_changed(lambda w, start, end, pad: w.where(w != end, pad)),
        "floats": greedy_changed(lambda w, *_: w.double() + 0.25),
        "END always there": greedy_changed(
            lambda w, start, end, pad: torch.cat([w, torch.full((len(w), 1), end)], 1)
        ),
        "padded once more": greedy_changed(
            lambda w, start, end, pad: torch.cat([w, torch.full((len(w), 1), pad)], 1)
        ),
        "a list of texts": greedy_changed(lambda w, *_: [row.tolist() for row in w][0]),
        "reversed": greedy_changed(lambda w, *_: w.flip(1)),
        "transposed": greedy_changed(lambda w, *_: w.T.reshape(w.shape)),
        "padding is 0": greedy_changed(
            lambda w, start, end, pad: (
                torch.where((w == end).cumsum(1) - (w == end).long() > 0, 0, w)
                if pad
                else w.where(w != start, 0)
            )
        ),
        "scores returned": lambda score_next, batch_size, longest, start, end, pad: score_next(
            torch.full((batch_size, 1), start)
        ),
        "all at once": lambda score_next, batch_size, longest, start, end, pad: torch.cat(
            [
                torch.full((batch_size, 1), start),
                score_next(torch.full((batch_size, 1), start)).argmax(1, True).repeat(1, longest),
            ],
            1,
        ),
        "filled up by argmax": greedy_filled_by_argmax,
        "END at the limit": greedy_closed,
        "cut behind the last word": _cut_behind_the_last_word,
    },
    "10-beam_step": {
        "two of each beam": beam_of_two_each,
        "log of softmax": beam_of_logs(lambda scores: scores.softmax(-1).log()),
        "log of softmax and a little": beam_of_logs(lambda s: (s.softmax(-1) + 1e-9).log()),
        "others cost 10": beam_of_logs(lambda scores: scores.log_softmax(-1), -10.0),
        "others cost 10,000": beam_of_logs(lambda scores: scores.log_softmax(-1), -1e4),
        "probabilities": beam_with(lambda best, beams, tokens: (best.exp(), beams, tokens)),
        "without beams": beam_with(lambda best, beams, tokens: (best, tokens)),
        "beams of the first": beam_with(
            lambda best, beams, tokens: (best, beams[:1].expand(len(beams), -1), tokens)
        ),
        "worst first": beam_with(lambda *found: tuple(X.flip(1) for X in found)),
        "the best only": beam_with(lambda *found: tuple(X[:, :1] for X in found)),
        "nobody ended": beam_of(lambda t, s, ended, pad: (t, s, ended & False, pad)),
        "everybody ended": beam_of(lambda t, s, ended, pad: (t, s, ended | True, pad)),
        "totals as probabilities": beam_of(lambda t, s, ended, pad: (t.exp(), s, ended, pad)),
        "scores scaled": beam_of(lambda t, s, ended, pad: (t, s / s.shape[-1] ** 0.5, ended, pad)),
        "totals sorted": beam_of(lambda t, s, ended, pad: (t.sort(1).values, s, ended, pad)),
        "totals of the first beam": beam_of(
            lambda t, s, ended, pad: (t[:, :1].expand_as(t), s, ended, pad)
        ),
        "next token is padding": beam_of(
            lambda t, s, ended, pad: (t, s, ended, (pad + 1) % s.shape[-1])
        ),
        "counted from 1": beam_with(lambda best, beams, tokens: (best, beams + 1, tokens)),
        "the best last": beams_unsorted,
        "totals added late": beams_totals_late,
        "numbered through": beams_numbered_through,
    },
    "10-shift_positions": {
        "by 1": lambda P, shift: shift_by_pairs(P, 1),
        "whole numbers": lambda P, shift: shift_by_pairs(P, int(shift)),
        "only later": lambda P, shift: shift_by_pairs(P, abs(shift)),
        "twice": lambda P, shift: shift_by_pairs(P, 2 * shift),
        "first pair only": lambda P, shift: torch.cat(
            [shift_by_pairs(P, shift)[:, :2], P[:, 2:]], 1
        ),
        "shift added": lambda P, shift: P + shift,
        "shift multiplied": lambda P, shift: P * shift,
        "angle added": lambda P, shift: P + shift_by_pairs(torch.zeros_like(P), shift) + 0.1,
        "width of one pair": lambda P, shift: torch.cat(
            [shift_by_pairs(pair, shift) for pair in P.split(2, dim=1)], 1
        ),
        "flipped": lambda P, shift: shift_by_pairs(P.flip(1), shift).flip(1),
        "turned twice": lambda P, shift: shift_by_pairs(shift_by_pairs(P, shift), shift),
        "row by row": lambda P, shift: torch.cat(
            [shift_by_pairs(row[None], shift * n) for n, row in enumerate(P)]
        ),
        "transposed": lambda P, shift: shift_by_pairs(P, shift).T,
        "rounded": lambda P, shift: shift_by_pairs(P, shift).round(decimals=3),
        "halves, put back in pairs": shifted_halves_only_read,
        "speeds that rise": shifted_rising,
        "d speeds": shifted_with_d_speeds,
        "position from the slowest pair": _position_from_the_slowest_pair,
    },
}
