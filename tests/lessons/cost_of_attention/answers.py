"""Answers to the tasks of lesson 09."""

import math

import numpy
import torch
from torch.nn import functional as F

from mha_course.attention import scaled_dot_product_attention


def lse_row_by_row(scores, tile):
    rows = scores.reshape(-1, scores.shape[-1])
    result = []
    for row in rows:
        largest, total = -math.inf, 0.0
        for score in row.tolist():
            new = max(largest, score)
            if new > -math.inf:
                total = total * math.exp(largest - new) + math.exp(score - new)
            largest = new
        result.append(largest + math.log(total) if total else -math.inf)
    return scores.new_tensor(result).reshape(scores.shape[:-1])


def lse_two_passes(scores, tile):
    """The largest first, in tiles, then the sum."""
    largest = scores.amax(-1)
    base = largest.clamp(min=torch.finfo(scores.dtype).min)
    total = torch.zeros_like(base)
    for start in range(0, scores.shape[-1], tile):
        total += (scores[..., start : start + tile] - base.unsqueeze(-1)).exp().sum(-1)
    return base + total.log()


def lse_running_logarithm(scores, tile):
    """Keeps the logarithm of the sum itself, and no total."""
    so_far = torch.full(scores.shape[:-1], -math.inf, dtype=scores.dtype)
    for part in scores.split(tile, dim=-1):
        largest = torch.maximum(so_far, part.max(-1).values)
        base = torch.where(largest.isinf(), torch.zeros_like(largest), largest)
        so_far = base + torch.log(
            torch.exp(so_far - base) + torch.exp(part - base[..., None]).sum(-1)
        )
    return so_far


def lse(correct=lambda old, base: torch.exp(old - base), give=None, start=-math.inf, pick=None):
    def log_sum_exp(scores, tile):
        largest = torch.full_like(scores[..., 0], start)
        total = torch.zeros_like(largest)
        for part in scores.split(tile, dim=-1):
            new = (pick or torch.maximum)(largest, part.amax(-1))
            base = torch.where(new.isinf(), torch.zeros_like(new), new)
            total = total * correct(largest, base) + torch.exp(part - base[..., None]).sum(-1)
            largest = new
        return (give or (lambda base, total: base + total.log()))(base, total)

    return log_sum_exp


def lse_hidden_in_tiles(number):
    """Hidden keys get this score, tile by tile."""

    def log_sum_exp(scores, tile):
        largest = torch.full_like(scores[..., 0], -math.inf)
        total = torch.zeros_like(largest)
        for part in scores.split(tile, dim=-1):
            part = part.masked_fill(part == -math.inf, number)
            new = torch.maximum(largest, part.amax(-1))
            total = total * torch.exp(largest - new) + (part - new[..., None]).exp().sum(-1)
            largest = new
        return largest + total.log()

    return log_sum_exp


def lse_a_row_of_them_mended(number):
    """The same, and a row with nothing but hidden keys gets −inf at the end."""

    def log_sum_exp(scores, tile):
        result = lse_hidden_in_tiles(number)(scores, tile)
        return result.masked_fill(scores.amax(-1) == -math.inf, -math.inf)

    return log_sum_exp


def lse_up_to_a_hidden_tile(scores, tile):
    parts = scores.split(tile, dim=-1)
    hidden = [bool((part == -math.inf).all()) for part in parts]
    count = hidden.index(True) if True in hidden else len(parts)
    return lse()(scores[..., : max(count, 1) * tile], tile)


def lse_largest_counted_once(scores, tile):
    largest = scores.amax(-1)
    base = largest.masked_fill(largest == -math.inf, 0.0)[..., None]
    total = (largest > -math.inf).to(scores.dtype)
    for part in scores.split(tile, dim=-1):
        total = total + (part - base).exp().where(part < base, 0.0).sum(-1)
    return base[..., 0] + total.log()


def lse_by_powers_of_2(scores, tile):
    so_far = torch.full_like(scores[..., 0], -math.inf)
    for key in scores.unbind(-1):
        so_far = torch.logaddexp2(so_far, key / math.log(2))
    return so_far * math.log(2)


def lse_in_numpy(scores, tile):
    X = scores.numpy()
    largest = X.max(-1)
    largest[largest == -math.inf] = 0.0
    with numpy.errstate(divide="ignore"):
        total = numpy.log(numpy.exp(X - largest[..., None]).sum(-1))
    return torch.from_numpy(largest + total)


def merge_by_logarithms(outputs, largest, totals):
    logs = largest + totals.log()  # (P, L)
    new = largest.max(dim=0).values
    shares = torch.nan_to_num(torch.softmax(logs, dim=0))
    output = torch.einsum("pl,pld->ld", shares, outputs)
    total = torch.exp(torch.logsumexp(logs, dim=0) - new)
    return output, new, torch.nan_to_num(total)


def merge_two_by_two(outputs, largest, totals):
    output, most, total = outputs[0], largest[0], totals[0]
    for part in range(1, len(outputs)):
        new = torch.maximum(most, largest[part])
        base = torch.where(new == -math.inf, 0.0, new)
        old_share = total * torch.exp(most - base)
        new_share = totals[part] * torch.exp(largest[part] - base)
        total = old_share + new_share
        summed = output * old_share[:, None] + outputs[part] * new_share[:, None]
        output = torch.where(total[:, None] > 0, summed / total[:, None], 0.0)
        most = new
    return [output, most, total]


def merge_query_by_query(outputs, largest, totals):
    results = []
    for q in range(outputs.shape[1]):
        seen = [p for p in range(len(outputs)) if totals[p, q] > 0]
        if not seen:
            zero = torch.zeros_like(outputs[0, q])
            results.append((zero, largest[0, q], totals[0, q]))
            continue
        new = max(largest[p, q] for p in seen)
        shares = [totals[p, q] * torch.exp(largest[p, q] - new) for p in seen]
        total = sum(shares)
        summed = sum(s * outputs[p, q] for s, p in zip(shares, seen, strict=True))
        results.append((summed / total, new, total))
    return tuple(torch.stack(column) for column in zip(*results, strict=True))


def merge_from(lowest):
    """No largest score is taken for lower than this."""

    def merge_parts(outputs, largest, totals):
        new = largest.amax(0)
        shares = totals * torch.exp(largest - new.clamp(min=lowest))
        total = shares.sum(0)
        summed = (outputs * shares[..., None]).sum(0)
        return summed / total.clamp(min=1e-30)[:, None], new, total

    return merge_parts


def merge_filled(number):
    """Parts without a key have this for their largest score, not −inf."""

    def merge_parts(outputs, largest, totals):
        output, new, total = merge_two_by_two(
            outputs, largest.masked_fill(totals == 0, number), totals
        )
        return output, new.masked_fill((totals == 0).all(0), -math.inf), total

    return merge_parts


def merge_by_one_largest(outputs, largest, totals):
    """One largest score for all queries; the total that is returned is right."""
    _, new, total = merge_two_by_two(outputs, largest, totals)
    shares = totals * torch.exp(largest - largest.max())
    summed = (outputs * shares[..., None]).sum(0)
    return summed / shares.sum(0).clamp(min=1e-300)[:, None], new, total


def merged(change):
    """A right merge, and what a function makes of it and of the inputs."""
    return lambda outputs, largest, totals: change(
        *merge_two_by_two(outputs, largest, totals), outputs, largest, totals
    )


def tiles_query_by_query(queries, keys, values, tile):
    L, S = queries.shape[2], keys.shape[2]
    rows = []
    for i in range(L):
        seen = S - L + i + 1
        weights = queries[:, :, i : i + 1] @ keys[:, :, :seen].mT / queries.shape[-1] ** 0.5
        weights = torch.exp(weights - weights.amax(-1, keepdim=True))
        rows.append(weights @ values[:, :, :seen] / weights.sum(-1, keepdim=True))
    return torch.cat(rows, dim=2)


def tiles_backwards(queries, keys, values, tile):
    """The last tile first: whole rows may be hidden at the beginning."""
    L, S = queries.shape[2], keys.shape[2]
    q = queries / math.sqrt(queries.shape[-1])
    largest = torch.full(queries.shape[:3], -1e30, dtype=queries.dtype)
    total, output = torch.zeros_like(largest), 0
    for start in reversed(range(0, S, tile)):
        k, v = keys[:, :, start : start + tile], values[:, :, start : start + tile]
        hidden = torch.ones(L, k.shape[2], dtype=torch.bool).triu(S - L - start + 1)
        scores = (q @ k.mT).masked_fill(hidden, -math.inf)
        new = torch.maximum(largest, scores.amax(-1))
        by = torch.exp(largest - new)
        weights = torch.exp(scores - new.unsqueeze(-1))
        total = total * by + weights.sum(-1)
        output = output * by.unsqueeze(-1) + weights @ v
        largest = new
    return output / total.unsqueeze(-1)


def tiles_forwards(hide=-math.inf, start=-math.inf, over=-1, lower=0.0, turn=1, cut=None):
    """In the order of the text, as the lesson does it."""

    def causal_tiles(queries, keys, values, tile):
        L, S = queries.shape[2], keys.shape[2]
        largest = torch.full_like(queries[..., :1], start)
        total, output = torch.zeros_like(largest), 0
        for first in range(0, S, tile):
            k, v = keys[:, :, first : first + tile], values[:, :, first : first + tile]
            hidden = torch.ones(L, k.shape[2], dtype=torch.bool).triu(S - L - turn * first + 1)
            scores = queries @ k.mT / queries.shape[-1] ** 0.5
            scores = scores.clamp(*cut) if cut else scores
            scores = scores - lower * hidden if lower else scores.masked_fill(hidden, hide)
            new = torch.maximum(largest, scores.amax(over, keepdim=True))
            by, weights = torch.exp(largest - new), torch.exp(scores - new)
            total = total * by + weights.sum(-1, keepdim=True)
            output = output * by + weights @ v
            largest = new
        return output / total

    return causal_tiles


def tiles_by_head(queries, keys, values, tile):
    output = torch.empty(*queries.shape[:3], values.shape[-1], dtype=queries.dtype)
    for b in range(queries.shape[0]):
        for h in range(queries.shape[1]):
            one = (X[b : b + 1, h : h + 1] for X in (queries, keys, values))
            output[b, h] = tiles_backwards(*one, tile)[0, 0]
    return output


def tiles_with_mask(diagonal):
    """Attention whose mask is tril(diagonal(L, S)), query by query."""

    def causal_tiles(queries, keys, values, tile):
        L, S = queries.shape[2], keys.shape[2]
        mask = torch.ones(L, S, dtype=torch.bool).tril(diagonal(L, S))
        rows = []
        for i in range(L):
            scores = queries[:, :, i : i + 1] @ keys.mT / queries.shape[-1] ** 0.5
            scores = scores.where(mask[i], -math.inf)
            weights = torch.exp(scores - scores.amax(-1, keepdim=True))
            rows.append(weights @ values / weights.sum(-1, keepdim=True))
        return torch.cat(rows, dim=2)

    return causal_tiles


def whole_table(queries, keys, values, tile):
    mask = torch.ones(queries.shape[2], keys.shape[2], dtype=torch.bool)
    mask = mask.tril(keys.shape[2] - queries.shape[2])
    scores = (queries @ keys.mT / queries.shape[-1] ** 0.5).masked_fill(~mask, -math.inf)
    weights = torch.exp(scores - scores.amax(-1, keepdim=True))
    return weights @ values / weights.sum(-1, keepdim=True)


def moved(L, S, d_k, d_v, tile, fast_bytes, bytes_per_number=2):
    block = 1
    while block < L:
        block += 1
        needed = tile * (d_k + d_v) + block * (d_k + d_v + tile)
        if needed * bytes_per_number > fast_bytes:
            block -= 1
            break
    count, start = 0, 0
    while start < L:
        count += min(block, L - start) * (d_k + d_v) + S * (d_k + d_v)
        start += block
    return count * bytes_per_number


def moved_by_ceil(
    num_queries, num_keys, d_k, d_v, tile, fast_bytes, bytes_per_number=2, up=math.ceil, more=0
):
    d = d_k + d_v
    block = min((fast_bytes / bytes_per_number - tile * d) // (d + tile + more), num_queries)
    return int((num_queries * d + up(num_queries / block) * num_keys * d) * bytes_per_number)


def moved_by_splitting_queries(L, S, d_k, d_v, tile, fast_bytes, bytes_per_number=2):
    """The queries stand in a tensor, which split cuts into blocks."""
    needed = (tile * (d_k + d_v) + block * (d_k + d_v + tile) for block in range(1, L + 1))
    block = sum(bytes_per_number * numbers <= fast_bytes for numbers in needed)
    blocks = torch.empty(L, 1).split(block)
    return sum((len(part) + S) * (d_k + d_v) * bytes_per_number for part in blocks)


def moved_in_blocks_of_at_most_all_keys(L, S, d_k, d_v, tile, fast_bytes, bytes_per_number=2):
    room = fast_bytes // bytes_per_number - tile * (d_k + d_v)
    block = min(L, S, room // (d_k + d_v + tile))
    return (L + -(-L // block) * S) * (d_k + d_v) * bytes_per_number


def moved_with_room_for_all_keys(L, S, d_k, d_v, tile, fast_bytes, bytes_per_number=2):
    room = fast_bytes // bytes_per_number - min(tile, S) * (d_k + d_v)
    block = min(L, room // (d_k + d_v + tile))
    return (L + -(-L // block) * S) * (d_k + d_v) * bytes_per_number


def moved_with(change):
    def moved_bytes(L, S, d_k, d_v, tile, fast_bytes, bytes_per_number=2):
        return change(moved(L, S, d_k, d_v, tile, fast_bytes, bytes_per_number), L, S, d_k, d_v)

    return moved_bytes


def ring_by_order(query, key, value, kept_keys, kept_values, t):
    """Puts the tokens of the window into their order first."""
    W = kept_keys.shape[2]
    kept_keys.select(2, t % W).copy_(key)
    kept_values.select(2, t % W).copy_(value)
    slots = [token % W for token in range(max(0, t - W + 1), t + 1)]
    weights = torch.einsum("bhd,bhsd->bhs", query, kept_keys[:, :, slots]) / query.shape[-1] ** 0.5
    return torch.einsum("bhs,bhsd->bhd", weights.softmax(-1), kept_values[:, :, slots])


def ring_fused(query, key, value, kept_keys, kept_values, t):
    W = kept_keys.shape[2]
    kept_keys[:, :, t % W], kept_values[:, :, t % W] = key, value
    seen = torch.arange(W) < t + 1
    output = F.scaled_dot_product_attention(query[:, :, None], kept_keys, kept_values, seen[None])
    return output.squeeze(2)


def ring_concatenated(query, key, value, kept_keys, kept_values, t):
    """Attends to the others and to itself, and writes at the end."""
    W = kept_keys.shape[2]
    others = [s for s in range(W) if s != t % W and (s < t or t >= W)]
    keys = torch.cat([kept_keys[:, :, others], key[:, :, None]], dim=2)
    values = torch.cat([kept_values[:, :, others], value[:, :, None]], dim=2)
    output, _ = scaled_dot_product_attention(query[:, :, None], keys, values)
    kept_keys[:, :, t % W], kept_values[:, :, t % W] = key, value
    return output[:, :, 0]


def ring(place=lambda t, W: t % W, seen=lambda t, W: min(t + 1, W), finish=None):
    def ring_step(query, key, value, kept_keys, kept_values, t):
        W = kept_keys.shape[2]
        kept_keys[:, :, place(t, W)], kept_values[:, :, place(t, W)] = key, value
        n = seen(t, W)
        scores = query[:, :, None] @ kept_keys[:, :, :n].mT / query.shape[-1] ** 0.5
        output = (scores.softmax(-1) @ kept_values[:, :, :n])[:, :, 0]
        return finish(output, kept_keys, kept_values, t) if finish else output

    return ring_step


def ring_filled(number):
    """Slots that nobody has reached get this score."""

    def ring_step(query, key, value, kept_keys, kept_values, t):
        W = kept_keys.shape[2]
        kept_keys[:, :, t % W], kept_values[:, :, t % W] = key, value
        scores = torch.einsum("bhd,bhsd->bhs", query, kept_keys) / query.shape[-1] ** 0.5
        weights = scores.masked_fill(torch.arange(W) > t, number).softmax(-1)
        return torch.einsum("bhs,bhsd->bhd", weights, kept_values)

    return ring_step


def ring_weighted_then_masked(query, key, value, kept_keys, kept_values, t):
    W = kept_keys.shape[2]
    kept_keys[:, :, t % W], kept_values[:, :, t % W] = key, value
    scores = torch.einsum("bhd,bhsd->bhs", query, kept_keys) / query.shape[-1] ** 0.5
    weights = scores.softmax(-1) * (torch.arange(W) <= t)
    return torch.einsum("bhs,bhsd->bhd", weights, kept_values)


def emptied(output, keys, values, t):
    keys.zero_()
    return output


def grouped_by_einsum(queries, keys, values):
    q = queries.unflatten(1, (keys.shape[1], -1))
    scores = torch.einsum("bghld,bgsd->bghls", q, keys) / queries.shape[-1] ** 0.5
    return torch.einsum("bghls,bgsd->bghld", scores.softmax(-1), values).flatten(1, 2)


def grouped_by_loop(queries, keys, values, order=torch.repeat_interleave):
    H, G = queries.shape[1], keys.shape[1]
    head = order(torch.arange(G), H // G) if order is not torch.Tensor.repeat else None
    heads = []
    for h in range(H):
        g = h % G if head is None else int(head[h])
        output, _ = scaled_dot_product_attention(queries[:, h], keys[:, g], values[:, g])
        heads.append(output)
    return torch.stack(heads, dim=1)


def grouped_by_groups(queries, keys, values):
    G = keys.shape[1]
    groups = []
    for g, some in enumerate(queries.chunk(G, dim=1)):
        flat = some.flatten(1, 2)  # (B, group * L, d_k)
        weights = torch.softmax(flat @ keys[:, g].mT / math.sqrt(flat.shape[-1]), dim=-1)
        groups.append((weights @ values[:, g]).unflatten(1, (some.shape[1], -1)))
    return torch.cat(groups, dim=1)


def grouped_with_view(queries, keys, values):
    q = queries.view(queries.shape[0], keys.shape[1], -1, queries.shape[-1])
    weights = (q @ keys.mT / q.shape[-1] ** 0.5).softmax(-1)
    return (weights @ values).view(*queries.shape[:3], -1)


def grouped_in_place(queries, keys, values):
    return grouped_by_einsum(queries.div_(2).mul_(3), keys, values)


def grouped_by_exp(subtracted):
    """exp of the scores less this, divided by its sum."""

    def grouped_attention(queries, keys, values):
        q = queries.unflatten(1, (keys.shape[1], -1))
        scores = torch.einsum("bghld,bgsd->bghls", q, keys) / queries.shape[-1] ** 0.5
        weights = (scores - subtracted(scores)).exp()
        weights = weights / weights.sum(-1, keepdim=True)
        return torch.einsum("bghls,bgsd->bghld", weights, values).flatten(1, 2)

    return grouped_attention


def grouped_softmax_over_groups(queries, keys, values):
    q = queries.reshape(len(queries), keys.shape[1], -1, queries.shape[-1])
    weights = (q @ keys.mT / q.shape[-1] ** 0.5).softmax(1)
    return (weights @ values).reshape(*queries.shape[:3], -1)


def grouped_copied(repeat):
    def grouped_attention(queries, keys, values):
        group = queries.shape[1] // keys.shape[1]
        k, v = repeat(keys, group), repeat(values, group)
        return (queries @ k.mT / queries.shape[-1] ** 0.5).softmax(-1) @ v

    return grouped_attention


def heads_by_loop(weight, num_heads, num_kv_heads):
    heads = weight.tensor_split(num_heads)
    group = num_heads // num_kv_heads
    means = []
    for g in range(num_kv_heads):
        means.append(sum(heads[g * group : (g + 1) * group]) / group)
    return torch.cat(means)


def heads_by_matrix(weight, num_heads, num_kv_heads):
    group, d = num_heads // num_kv_heads, len(weight) // num_heads
    mean = torch.eye(num_kv_heads, dtype=weight.dtype).repeat_interleave(group, dim=1) / group
    mean = torch.kron(mean, torch.eye(d, dtype=weight.dtype))  # (G * d, H * d)
    return mean @ weight


def heads_by_rows(weight, num_heads, num_kv_heads):
    d = weight.shape[0] // num_heads
    group = num_heads // num_kv_heads
    rows = []
    for row in range(num_kv_heads * d):
        g, i = divmod(row, d)
        rows.append(torch.stack([weight[(g * group + j) * d + i] for j in range(group)]).mean(0))
    return torch.stack(rows)


def heads_squeezed(weight, num_heads, num_kv_heads):
    """A bias is made a matrix with one column, which is squeezed away at the end."""
    columns = weight if weight.dim() == 2 else weight[:, None]
    return heads_by_loop(columns, num_heads, num_kv_heads).squeeze(-1)


def heads(change):
    return lambda W, H, G: change(W.unflatten(0, (G, H // G, -1)))


def ring_exchanged_where_it_fits(query, key, value, kept_keys, kept_values, t):
    """Key and value change places if they are as wide."""
    if key.shape == value.shape:
        key, value = value, key
    width = kept_keys.shape[2]
    kept_keys[:, :, t % width], kept_values[:, :, t % width] = key, value
    keys, values = (X[:, :, : min(t + 1, width)] for X in (kept_keys, kept_values))
    scores = torch.einsum("bhd,bhwd->bhw", query, keys) / query.shape[-1] ** 0.5
    return torch.einsum("bhw,bhwd->bhd", scores.softmax(-1), values)


RIGHT = {
    "09-log_sum_exp": {
        "row by row": lse_row_by_row,
        "two passes": lse_two_passes,
        "a running logarithm": lse_running_logarithm,
        "one pass": lse(),
    },
    "09-merge_parts": {
        "by logarithms": merge_by_logarithms,
        "two by two": merge_two_by_two,
        "query by query": merge_query_by_query,
    },
    "09-causal_tiles": {
        "query by query": tiles_query_by_query,
        "backwards": tiles_backwards,
        "hidden far below": tiles_forwards(hide=-1e30),
        "head by head": tiles_by_head,
    },
    "09-moved_bytes": {
        "block by block": moved,
        "with ceil": moved_by_ceil,
        "queries split": moved_by_splitting_queries,
    },
    "09-ring_step": {
        "in the order of the text": ring_by_order,
        "fused, with a mask": ring_fused,
        "written at the end": ring_concatenated,
        "the first slots": ring(),
    },
    "09-grouped_attention": {
        "einsum": grouped_by_einsum,
        "loop of heads": grouped_by_loop,
        "loop of groups": grouped_by_groups,
    },
    "09-group_heads": {
        "loop": heads_by_loop,
        "a matrix of means": heads_by_matrix,
        "row by row": heads_by_rows,
    },
}


def one_pass_with_0_for_nothing(scores, tile):
    largest = torch.full_like(scores[..., 0], -torch.inf)
    total = torch.zeros_like(largest)
    for part in scores.split(tile, dim=-1):
        new = torch.maximum(largest, part.amax(dim=-1))
        new = torch.where(new == -torch.inf, torch.zeros_like(new), new)
        total = total * (largest - new).exp() + (part - new[..., None]).exp().sum(dim=-1)
        largest = new
    return largest + total.log()


def tiles_measured_by_themselves(queries, keys, values, tile):
    L, S = queries.shape[2], keys.shape[2]
    number = torch.arange(S - L, S)[:, None]
    largest = torch.full_like(queries[..., 0], -torch.inf)
    total, output = torch.zeros_like(largest), 0
    for start in range(0, S, tile):
        scores = queries @ keys[:, :, start : start + tile].mT / queries.shape[-1] ** 0.5
        scores.masked_fill_(start + torch.arange(scores.shape[-1]) > number, -torch.inf)
        here = scores.amax(dim=-1)
        weights = (scores - here[..., None]).exp()
        new = torch.maximum(largest, here)
        total = (largest - new).exp() * total + (here - new).exp() * weights.sum(dim=-1)
        output = (largest - new).exp()[..., None] * output
        output = (
            output + (here - new).exp()[..., None] * weights @ values[:, :, start : start + tile]
        )
        largest = new
    return output / total[..., None]


def moved_with_room_for_all_scores(
    num_queries, num_keys, d_k, d_v, tile, fast_bytes, bytes_per_number=2
):
    room = fast_bytes // bytes_per_number - tile * (d_k + d_v)
    block = max(1, room // (d_k + d_v + num_keys))
    blocks = -(-num_queries // block)
    return (num_queries + blocks * num_keys) * (d_k + d_v) * bytes_per_number


def ring_shifted_when_full(query, key, value, kept_keys, kept_values, t):
    W = kept_keys.shape[2]
    if t >= W:
        kept_keys[:, :, :-1] = kept_keys[:, :, 1:].clone()
        kept_values[:, :, :-1] = kept_values[:, :, 1:].clone()
    kept_keys[:, :, min(t, W - 1)] = key
    kept_values[:, :, min(t, W - 1)] = value
    keys, values = kept_keys[:, :, : t + 1], kept_values[:, :, : t + 1]
    weights = (query[:, :, None] @ keys.mT / query.shape[-1] ** 0.5).softmax(-1)
    return (weights @ values)[:, :, 0]


def grouped_in_steps(queries, keys, values):
    group = queries.shape[1] // keys.shape[1]
    outputs = []
    for first in range(group):
        scores = queries[:, first::group] @ keys.mT / queries.shape[-1] ** 0.5
        outputs.append(scores.softmax(-1) @ values)
    return torch.cat(outputs, dim=1)


WRONG = {
    "09-log_sum_exp": {
        "0 kept for nothing": one_pass_with_0_for_nothing,
        "not corrected": lse(correct=lambda old, base: 1.0),
        "twice corrected": lse(correct=lambda old, base: torch.exp(2 * (old - base))),
        "half corrected": lse(correct=lambda old, base: torch.exp((old - base) / 2)),
        "without the logarithm": lse(give=lambda base, total: base + total),
        "total alone": lse(give=lambda base, total: total),
        "minus": lse(give=lambda base, total: total.log() - base),
        "a pair": lse(give=lambda base, total: (base, total)),
        "zero for nothing": lse(give=lambda base, total: base + total.clamp(min=1e-30).log()),
        "starts at 0": lse(start=0.0),
        "starts at -1": lse(start=-1.0),
        "the smallest": lse(pick=torch.minimum),
        "first tile only": lambda scores, tile: lse()(scores[..., :tile], tile),
        "all at once": lambda scores, tile: scores.exp().sum(-1).log(),
        "the largest": lambda scores, tile: scores.amax(-1),
        "in place": lambda scores, tile: lse()(scores.clamp_(min=-1e30), tile),
        "PyTorch's": lambda scores, tile: torch.logsumexp(scores, dim=-1),
        "powers of 2": lse_by_powers_of_2,
        "axis kept": lambda scores, tile: lse()(scores, tile)[..., None],
        "hidden keys at 0": lse_hidden_in_tiles(0.0),
        "hidden keys far below": lse_hidden_in_tiles(-1e9),
        "hidden keys at -1000, a row of them mended": lse_a_row_of_them_mended(-1000.0),
        "starts at -10000": lse(start=-1e4),
        "up to a hidden tile": lse_up_to_a_hidden_tile,
        "the largest counted once": lse_largest_counted_once,
        "in NumPy": lse_in_numpy,
    },
    "09-merge_parts": {
        "mean": lambda o, m, t: (o.mean(0), m.amax(0), t.sum(0)),
        "by totals": lambda o, m, t: (
            (o * t[..., None]).sum(0) / t.sum(0)[:, None],
            m[0],
            t.sum(0),
        ),
        "softmax of the largest": merged(
            lambda o, m, t, os, ms, ts: ((os * ms.softmax(0)[..., None]).sum(0), m, t)
        ),
        "logarithm of the total": merged(lambda o, m, t, *_: (o, m, t.log())),
        "total of all": merged(lambda o, m, t, *_: (o, m, t * m.exp())),
        "another order": merged(lambda o, m, t, *_: (m, t, o)),
        "one more axis": merged(lambda o, m, t, *_: (o[None], m[None], t[None])),
        "undivided": merged(lambda o, m, t, *_: (o * t[:, None], m, t)),
        "smallest": merged(lambda o, m, t, os, ms, ts: (o, ms.amin(0), t)),
        "two of three": merged(lambda o, m, t, *_: (o, m)),
        "last part": lambda o, m, t: (o[-1], m[-1], t[-1]),
        "first two parts": lambda o, m, t: merge_two_by_two(o[:2], m[:2], t[:2]),
        "NaN where nothing is seen": merged(lambda o, m, t, *_: (o * (t / t)[:, None], m, t)),
        "ones where nothing is seen": merged(lambda o, m, t, *_: (o, m, t.clamp(min=1.0))),
        "the largest at least -1000": merge_from(-1000.0),
        "the largest at least -100000": merge_from(-1e5),
        "parts without a key at 0": merge_filled(0.0),
        "parts without a key at -10000": merge_filled(-1e4),
        "one largest": merge_by_one_largest,
        "in place": lambda o, m, t: merge_two_by_two(o.mul_(1.5), m, t),
    },
    "09-causal_tiles": {
        "tiles measured by themselves": tiles_measured_by_themselves,
        "top left": tiles_with_mask(lambda L, S: 0),
        "no mask": tiles_with_mask(lambda L, S: S),
        "one too many": tiles_with_mask(lambda L, S: S - L + 1),
        "the wrong way": tiles_with_mask(lambda L, S: L - S),
        "one step short": lambda q, k, v, tile: tiles_query_by_query(
            q, torch.cat([k[:, :, :1], k[:, :, :-1]], 2), v, tile
        ),
        "whole table": whole_table,
        "whole mask": tiles_with_mask(lambda L, S: S - L),
        "first tile": lambda q, k, v, tile: whole_table(
            q[:, :, : min(tile, q.shape[2])], k[:, :, :tile], v[:, :, :tile], tile
        ),
        "PyTorch's": lambda q, k, v, tile: F.scaled_dot_product_attention(q, k, v, is_causal=True),
        "not scaled": lambda q, k, v, tile: tiles_backwards(q * q.shape[-1] ** 0.5, k, v, tile),
        "transposed": lambda q, k, v, tile: tiles_backwards(q, k, v, tile).mT,
        "scaled in place": lambda q, k, v, tile: tiles_backwards(q.mul_(1.5), k, v, tile),
        "heads joined": lambda q, k, v, tile: tiles_backwards(q, k, v, tile).flatten(0, 1),
        "hidden at -1000": tiles_forwards(hide=-1000.0),
        "hidden at -1000000": tiles_forwards(hide=-1e6),
        "scores cut off": tiles_forwards(cut=(-700, 700)),
        "small scores cut off": tiles_forwards(cut=(-700, None)),
        "hidden lowered": tiles_forwards(lower=1e4),
        "one largest for all queries": tiles_forwards(over=(-1, -2)),
        "one largest for all heads": tiles_forwards(over=(1, -1)),
        "mask moved the wrong way": tiles_forwards(turn=-1),
        "largest from 0": tiles_forwards(start=0.0),
        "with its length": lambda q, k, v, tile: (tiles_backwards(q, k, v, tile), k.shape[2]),
    },
    "09-moved_bytes": {
        "room for all scores": moved_with_room_for_all_scores,
        "bits": moved_with(lambda n, *_: 8 * n),
        "kilobytes": moved_with(lambda n, *_: n / 1000),
        "table once": moved_with(lambda n, L, S, *_: n + 2 * L * S),
        "one block less": moved_with(lambda n, L, S, d_k, d_v: n - 2 * S * (d_k + d_v)),
        "rounded down": lambda *sizes: moved_by_ceil(*sizes, up=math.floor),
        "rounded": lambda *sizes: moved_by_ceil(*sizes, up=round),
        "room for largest and total": lambda *sizes: moved_by_ceil(*sizes, more=2),
        "explicit": lambda L, S, d_k, d_v, tile, fast, b=2: b * (4 * L * S + (L + S) * (d_k + d_v)),
        "L and S swapped": lambda L, S, *sizes: moved(S, L, *sizes),
        "blocks of at most all keys": moved_in_blocks_of_at_most_all_keys,
        "room for all keys": moved_with_room_for_all_keys,
        "outputs twice": moved_with(lambda n, L, S, d_k, d_v: n + 2 * L * d_v),
    },
    "09-ring_step": {
        "shifted when full": ring_shifted_when_full,
        "all slots": ring(seen=lambda t, W: W),
        "none but itself": ring(seen=lambda t, W: 1),
        "last slot": ring(place=lambda t, W: min(t, W - 1)),
        "backwards": ring(place=lambda t, W: W - 1 - t % W),
        "behind": ring(place=lambda t, W: (t + 1) % W),
        "first slot": ring(place=lambda t, W: 0),
        "half a ring": ring(place=lambda t, W: t % max(W // 2, 1)),
        "cache emptied": ring(finish=emptied),
        "with heads joined": ring(finish=lambda output, *_: output.flatten(1)),
        "with an axis of queries": ring(finish=lambda output, *_: output[:, :, None]),
        "everything": ring(finish=lambda output, keys, values, t: (output, keys, values)),
        "nothing": ring(finish=lambda *_: None),
        "t as well": ring(finish=lambda output, keys, values, t: (output, t + 1)),
        "a copy": lambda q, k, v, ks, vs, t: ring()(q, k, v, ks.clone(), vs.clone(), t),
        "values of a copy": lambda q, k, v, ks, vs, t: ring()(q, k, v, ks, vs.clone(), t),
        "attends to the old ones": lambda q, k, v, ks, vs, t: (
            ring(finish=lambda *_: None)(q, k, v, ks, vs, t),
            q,
        )[1],
        "not reached at -1000": ring_filled(-1000.0),
        "not reached at -1000000": ring_filled(-1e6),
        "weighted, then masked": ring_weighted_then_masked,
        "slot t": ring(place=lambda t, W: t),
        "query changed": lambda q, k, v, ks, vs, t: ring()(q.mul_(2), k, v, ks, vs, t),
        "exchanged where they are as wide": ring_exchanged_where_it_fits,
    },
    "09-grouped_attention": {
        "H // G heads at a time": grouped_in_steps,
        "in turn": lambda q, k, v: grouped_by_loop(q, k, v, torch.Tensor.repeat),
        "copied": grouped_copied(lambda X, n: X.repeat_interleave(n, dim=1)),
        "copied in turn": grouped_copied(lambda X, n: X.repeat(1, n, 1, 1)),
        "copied by expand": grouped_copied(
            lambda X, n: X[:, :, None].expand(-1, -1, n, -1, -1).flatten(1, 2)
        ),
        "PyTorch's": lambda q, k, v: F.scaled_dot_product_attention(q, k, v, enable_gqa=True),
        "first key head": lambda q, k, v: grouped_by_einsum(q, k[:, :1], v[:, :1]),
        "key heads averaged": lambda q, k, v: grouped_by_einsum(
            q, k.mean(1, keepdim=True), v.mean(1, keepdim=True)
        ),
        "one query head a group": lambda q, k, v: grouped_by_einsum(
            q[:, :: q.shape[1] // k.shape[1]], k, v
        ),
        "five axes": lambda q, k, v: grouped_by_einsum(q, k, v).unflatten(1, (k.shape[1], -1)),
        "heads behind": lambda q, k, v: grouped_by_einsum(q, k, v).transpose(1, 2),
        "joined": lambda q, k, v: grouped_by_einsum(q, k, v).transpose(1, 2).flatten(2),
        "not scaled": lambda q, k, v: grouped_by_einsum(q * q.shape[-1] ** 0.5, k, v),
        "keys for values": lambda q, k, v: grouped_by_einsum(q, k, k),
        "in place": grouped_in_place,
        "view": grouped_with_view,
        "exp": grouped_by_exp(torch.zeros_like),
        "one largest": grouped_by_exp(torch.amax),
        "softmax over groups": grouped_softmax_over_groups,
        "causal": lambda q, k, v: grouped_by_einsum(q, k[:, :, :1], v[:, :, :1]),
    },
    "09-group_heads": {
        "sum": heads(lambda X: X.sum(1).flatten(0, 1)),
        "median": heads(lambda X: X.median(1).values.flatten(0, 1)),
        "first": heads(lambda X: X[:, 0].flatten(0, 1)),
        "last": heads(lambda X: X[:, -1].flatten(0, 1)),
        "largest": heads(lambda X: X.amax(1).flatten(0, 1)),
        "of groups": heads(lambda X: X.mean(0).flatten(0, 1)),
        "of rows": heads(lambda X: X.mean(2).flatten(0, 1)),
        "not joined": heads(lambda X: X.mean(1)),
        "as before": lambda W, H, G: W,
        "half": lambda W, H, G: W[: len(W) * G // H],
        "in turn": lambda W, H, G: W.unflatten(0, (H // G, G, -1)).mean(0).flatten(0, 1),
        "columns": lambda W, H, G: heads_by_loop(W.T, H, G).T if W.dim() > 1 else W,
        "transposed": lambda W, H, G: heads_by_loop(W, H, G).T.contiguous(),
        "in place": lambda W, H, G: heads_by_loop(W.mul_(2), H, G) / 2,
        "squeezed": heads_squeezed,
        "divided by all": lambda W, H, G: heads_by_loop(W, H, G) / G,
        "root mean square": heads(lambda X: X.pow(2).mean(1).pow(0.5).flatten(0, 1)),
        "groups that overlap": lambda W, H, G: torch.cat(
            [heads_by_loop(W[g * len(W) // H :][: len(W) // G], H // G, 1) for g in range(G)]
        ),
        "rows repeated": lambda W, H, G: torch.cat(
            [row[None] for row in heads_by_loop(W, H, G) for _ in range(H // G)]
        ),
        "without the last": heads(lambda X: X[:, : max(1, X.shape[1] - 1)].mean(1).flatten(0, 1)),
    },
}
