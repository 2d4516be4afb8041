"""Answers to the tasks of lesson 07."""

import functools
import heapq
import math
from collections import Counter

import numpy as np
import torch


def attended(weights, tokens, k=3):
    means = weights.mean(dim=0)
    order = means.argsort(descending=True, stable=True)[:k]
    return [(tokens[j], means[j].item()) for j in order]


def attended_by_sorted(weights, tokens, k=3):
    means = [sum(row[j] for row in weights.tolist()) / len(weights) for j in range(len(tokens))]
    pairs = list(zip(tokens, means, strict=True))
    return sorted(pairs, key=lambda pair: pair[1], reverse=True)[:k]


def attended_by_maximum(weights, tokens, k=3):
    left, found = weights.mean(0).tolist(), []
    while len(found) < min(k, len(tokens)):
        best = left.index(max(left))
        found.append([tokens[best], left[best]])
        left[best] = -math.inf
    return found


def attended_in_numpy(weights, tokens, k=3):
    means = weights.numpy().mean(axis=0)
    order = np.argsort(-means, kind="stable")[:k]
    return tuple((tokens[j], means[j]) for j in order)


def attended_by_heap(weights, tokens, k=3):
    share = 1 / len(weights)
    means = [(-float(column.sum()) * share, j) for j, column in enumerate(weights.T)]
    return [(tokens[j], -mean) for mean, j in heapq.nsmallest(k, means)]


def attended_by_product(weights, tokens, k=3):
    means = weights.new_full((1, len(weights)), 1 / len(weights)) @ weights
    values, order = means[0].sort(descending=True, stable=True)
    return [(tokens[j], value) for value, j in zip(values[:k], order[:k], strict=True)]


def attended_with(strength, finish=lambda pairs, k: pairs[:k]):
    def most_attended(weights, tokens, k=3):
        means = strength(weights)
        order = means.argsort(descending=True, stable=True)
        return finish([(tokens[j], means[j].item()) for j in order], k)

    return most_attended


def attended_by_dict(weights, tokens, k=3):
    return Counter(dict(zip(tokens, weights.mean(0).tolist(), strict=True))).most_common(k)


def attended_by_counter(weights, tokens, k=3):
    counts = Counter()
    for token, mean in zip(tokens, weights.mean(0).tolist(), strict=True):
        counts[token] += mean
    return counts.most_common(k)


def attended_by_argsort(weights, tokens, k=3):
    means = weights.mean(0).numpy()
    return [(tokens[j], means[j]) for j in np.argsort(means, kind="stable")[-k:][::-1]]


def attended_and_sorts(weights, tokens, k=3):
    pairs = attended(weights, tokens, k)
    tokens.sort()
    return pairs


def attended_by_rounded(digits):
    def most_attended(weights, tokens, k=3):
        pairs = zip(tokens, weights.mean(0).tolist(), strict=True)
        return sorted(pairs, key=lambda pair: -round(pair[1], digits))[:k]

    return most_attended


def attended_set_to_0(weights, tokens, k=3):
    means, pairs = weights.mean(0), []
    while len(pairs) < min(k, len(tokens)):
        best = means.argmax().item()
        pairs.append((tokens[best], means[best].item()))
        means[best] = 0
    return pairs


def attended_largest_of_a_word(weights, tokens, k=3):
    means = {}
    for token, mean in attended(weights, tokens, len(tokens)):
        means.setdefault(token, mean)
    return list(means.items())[:k]


def attended_sorted_by_pair(weights, tokens, k=3):
    pairs = sorted(zip(weights.mean(0).tolist(), tokens, strict=True), reverse=True)[:k]
    return [(token, mean) for mean, token in pairs]


def entropy(weights):
    return torch.special.entr(weights).sum(dim=-1)


def entropy_by_loop(weights):
    rows = []
    for row in weights.reshape(-1, weights.shape[-1]).tolist():
        rows.append(math.fsum(-w * math.log(w) for w in row if w > 0))
    return torch.tensor(rows, dtype=weights.dtype).reshape(weights.shape[:-1])


def entropy_by_clamp(weights):
    least = torch.finfo(weights.dtype).tiny
    return -torch.einsum("...s,...s->...", weights, weights.clamp(min=least).log())


def entropy_with(terms, total=lambda X: -X.sum(-1)):
    return lambda weights: total(terms(weights))


def plogp(weights):
    return torch.xlogy(weights, weights)


def offset_score(weights, offset):
    return weights.diagonal(offset, -2, -1).mean(-1)


def offset_by_loop(weights, offset):
    length = weights.shape[-1]
    total, count = torch.zeros_like(weights[..., 0, 0]), 0
    for i in range(length):
        if 0 <= i + offset < length:
            total, count = total + weights[..., i, i + offset], count + 1
    return total / count


def offset_by_mask(weights, offset):
    length = weights.shape[-1]
    places = torch.arange(length)
    mask = (places[None] - places[:, None] == offset).to(weights.dtype)
    return torch.einsum("...ls,ls->...", weights, mask) / (length - abs(offset))


def offset_by_where(weights, offset):
    places = torch.arange(weights.shape[-1])
    mask = places == places[:, None] + offset
    return torch.where(mask, weights, torch.nan).flatten(-2).nanmean(-1)


def offset_by_slices(weights, offset):
    length, skip = weights.shape[-1], abs(offset)
    flat = weights.reshape(*weights.shape[:-2], length * length)
    start = offset if offset > 0 else skip * length
    return flat[..., start :: length + 1][..., : length - skip].sum(-1).div(length - skip)


def offset_among(queries):
    """queries: of L, those that are asked for such a key."""

    def offset_score(weights, offset):
        places = range(weights.shape[-1])
        asked = [i for i in queries(len(places)) if i + offset in places]
        return weights[..., asked, [i + offset for i in asked]].mean(-1)

    return offset_score


def offset_by_two_slices(weights, offset):
    rows, columns = slice(max(0, -offset), -offset if offset >= 0 else None), slice(offset, None)
    if offset < 0:
        columns = slice(0, offset)
    return weights[..., rows, columns].diagonal(0, -2, -1).mean(-1)


def offset_of_one_head(weights, offset):
    if weights.dim() > 2:
        return torch.stack([offset_of_one_head(head, offset) for head in weights])
    picked = torch.diagonal(weights, offset).tolist()
    return torch.tensor(sum(picked) / len(picked), dtype=weights.dtype)


def plain_number(weights, offset):
    score = offset_score(weights, offset)
    return score.item() if weights.dim() == 2 else score


def offset_with(pick, average=lambda X, length, offset: X.mean(-1)):
    return lambda weights, offset: average(pick(weights, offset), weights.shape[-1], offset)


def diagonal(weights, offset):
    return weights.diagonal(offset, -2, -1)


def rolled(weights, offset):
    return weights.roll(-offset, -1).diagonal(0, -2, -1)


def cut_off(weights, offset):
    length = weights.shape[-1]
    here = torch.arange(length)
    return weights[..., here, (here + offset).clamp(0, length - 1)]


def triangle(weights, offset):
    return weights.tril(offset).sum(-1)


def find_head(weights, offset):
    scores = offset_score(weights, offset)
    return divmod(scores.argmax().item(), scores.shape[1])


def find_by_loop(weights, offset):
    best, place = -1.0, None
    for layer, heads in enumerate(weights):
        for head, table in enumerate(heads):
            score = offset_score(table, offset)
            if score > best:
                best, place = score, (layer, head)
    return place


def find_by_unravel(weights, offset):
    scores = offset_by_mask(weights, offset)
    return torch.unravel_index(scores.argmax(), scores.shape)


def find_by_nonzero(weights, offset):
    scores = offset_score(weights, offset)
    return (scores == scores.max()).nonzero()[0]


def find_in_numpy(weights, offset):
    scores = offset_score(weights, offset).numpy()
    return np.argwhere(scores == scores.max())[0]


def find_by_tuples(weights, offset):
    """Of heads that are exactly alike the last is taken: no case may have any."""
    scores = diagonal(weights, offset).mean(-1).tolist()
    every = [(s, layer, h) for layer, row in enumerate(scores) for h, s in enumerate(row)]
    return max(every)[1:]


def find_by_two_maxima(weights, offset):
    scores = offset_score(weights, offset)
    best, heads = scores.max(dim=1)
    layer = best.argmax()
    return layer, heads[layer]


def find_with(score, choose=lambda scores: divmod(scores.argmax().item(), scores.shape[1])):
    return lambda weights, offset: choose(score(weights, offset))


def steady_head(weights, lens, offset, at_least):
    """Right, by loops over plain numbers."""
    best, place = -1.0, None
    for layer in range(weights.shape[1]):
        for head in range(weights.shape[2]):
            scores = []
            for text, used in zip(weights[:, layer, head].tolist(), lens.tolist(), strict=True):
                picked = [text[i][i + offset] for i in range(used) if 0 <= i + offset < used]
                if picked:
                    scores.append(sum(picked) / len(picked))
            if scores and min(scores) >= at_least and sum(scores) > best:
                best, place = sum(scores), (layer, head)
    return place


def steady_by_mask(weights, lens, offset, at_least):
    places = torch.arange(weights.shape[-1])
    line = places[None] - places[:, None] == offset  # (L, L)
    inside = places < lens[:, None]  # (B, L)
    mask = line & inside[:, :, None] & inside[:, None]  # (B, L, L)
    counts = mask.sum(dim=(1, 2))  # (B,)
    used = counts > 0
    if not used.any():
        return None
    sums = torch.einsum("bnhij,bij->bnh", weights[used], mask[used].to(weights.dtype))
    scores = sums / counts[used, None, None]
    passing = torch.where(scores.amin(0) >= at_least, scores.mean(0), -1.0)
    if passing.max() < 0:
        return None
    return list(torch.unravel_index(passing.argmax(), passing.shape))


def steady_by(given, rank):
    """The head that passes and is the first by a rank of the scores, (texts, layers, heads)."""
    weights, lens, offset, at_least = given
    texts = [w[..., :n, :n] for w, n in zip(weights, lens.tolist(), strict=True) if n > abs(offset)]
    if not texts:
        return None
    scores = torch.stack([offset_by_mask(text, offset) for text in texts])
    passing = (scores >= at_least).all(0)
    best = rank(scores).masked_fill(~passing, -1.0).argmax().item()
    return divmod(best, weights.shape[2]) if passing.any() else None


def steady_by_sort(weights, lens, offset, at_least):
    """The heads from the best on, until one passes."""
    texts = [w[..., :n, :n] for w, n in zip(weights, lens.tolist(), strict=True) if n > abs(offset)]
    if not texts:
        return None
    scores = torch.stack([offset_by_mask(text, offset) for text in texts]).flatten(1)
    for place in scores.mean(0).argsort(descending=True).tolist():
        if all(score >= at_least for score in scores[:, place].tolist()):
            return np.array(divmod(place, weights.shape[2]))
    return None


def steady_best_first(weights, lens, offset, at_least):
    """Ask whether the best head passes, and no other; raises where no text counts."""
    texts = zip(weights, lens.tolist(), strict=True)
    kept = [text[..., :used, :used] for text, used in texts if used > abs(offset)]
    scores = torch.stack([text.diagonal(offset, -2, -1).mean(-1) for text in kept])
    layer, head = divmod(scores.mean(0).argmax().item(), weights.shape[2])
    return (layer, head) if scores[:, layer, head].min() >= at_least else None


def steady_from(
    counts=lambda used, offset: abs(offset) < used,
    cut=lambda X, n: X[..., :n, :n],
    passes=lambda scores, at_least: (scores >= at_least).all(0),
    rank=lambda scores, passed: scores.mean(0).masked_fill(~passed, -1),
    place=lambda ranks: divmod(ranks.argmax().item(), ranks.shape[1]),
    score=lambda line, used, offset: line.mean(-1),
):
    """counts: whether a text does. cut: what is looked at. score: of what stands at the offset."""

    def steady_head(weights, lens, offset, at_least):
        lengths = lens.tolist()
        texts = [(X, n) for X, n in zip(weights, lengths, strict=True) if counts(n, offset)]
        if not texts:
            return None
        lines = [(cut(X, n).diagonal(offset, -2, -1), n) for X, n in texts]
        scores = torch.stack([score(line, n, offset) for line, n in lines])
        passed = passes(scores, at_least)
        return place(rank(scores, passed)) if passed.any() else None

    return steady_head


def steady_until_one_is_short(weights, lens, offset, at_least):
    used = []
    for text, length in zip(weights, lens.tolist(), strict=True):
        if length <= abs(offset):
            break
        used.append((text, length))
    count = len(used)
    return steady_head(weights[:count], lens[:count], offset, at_least) if used else None


def steady_by_length(weights, lens, offset, at_least):
    texts = dict(zip(lens.tolist(), weights, strict=True))
    return steady_head(torch.stack([*texts.values()]), torch.tensor([*texts]), offset, at_least)


def steady_with(change):
    return lambda weights, lens, offset, at_least: steady_head(
        *change(weights, lens, offset, at_least)
    )


def steady_without_none(weights, lens, offset, at_least):
    place = steady_head(weights, lens, offset, at_least)
    if place is None:
        raise ValueError("no head passes")
    return place


def steady_by_place(weights, lens, offset, at_least):
    """A loop that keeps the place in the flat table and asks `if not best`."""
    texts = [
        offset_score(text[..., :used, :used], offset)
        for text, used in zip(weights, lens.tolist(), strict=True)
        if used > abs(offset)
    ]
    if not texts:
        return None
    scores, best = torch.stack(texts).flatten(1), None
    for place, own in enumerate(scores.T):
        if bool((own >= at_least).all()) and (not best or own.mean() > scores[:, best].mean()):
            best = place
    return divmod(best, weights.shape[2]) if best else None


def steady_and_zeroes(weights, lens, offset, at_least):
    for text, used in zip(weights, lens.tolist(), strict=True):
        text[..., used:, :] = 0
        text[..., used:] = 0
    return steady_head(weights, lens, offset, at_least)


def steady_by_products(weights, lens, offset, at_least):
    """The geometric mean in place of the mean."""
    best, place = -1.0, None
    for layer in range(weights.shape[1]):
        for head in range(weights.shape[2]):
            texts = zip(weights[:, layer, head], lens.tolist(), strict=True)
            kept = [text[:used, :used] for text, used in texts if used > abs(offset)]
            scores = [text.diagonal(offset).mean().item() for text in kept]
            if scores and min(scores) >= at_least and math.prod(scores) > best:
                best, place = math.prod(scores), (layer, head)
    return place


def steady_of_many_queries(weights, lens, offset, at_least):
    """A text counts from its second query on that has such a key."""
    long = lens - abs(offset) > 1
    return steady_head(weights[long], lens[long], offset, at_least)


def steady_pooled_best_first(weights, lens, offset, at_least):
    """The head that is best over all queries at once, if it passes."""
    texts = zip(weights, lens.tolist(), strict=True)
    lines = [X[..., :n, :n].diagonal(offset, -2, -1) for X, n in texts if n > abs(offset)]
    if not lines:
        return None
    layer, head = divmod(torch.cat(lines, -1).mean(-1).argmax().item(), weights.shape[2])
    passes = all(line[layer, head].mean() >= at_least for line in lines)
    return (layer, head) if passes else None


def beyond_offset(weights, pairs):
    """Right, by a table of what is tagged."""
    length = weights.shape[-1]
    tagged = torch.zeros(length, length, dtype=torch.bool)
    for query, key in pairs:
        tagged[query, key] = True
    scores = torch.zeros_like(weights[..., 0, 0])
    for query, key in pairs:
        line = torch.ones(length, length).diag().diag().roll(key - query, 1).bool()
        line &= torch.ones(length, length, dtype=torch.bool).triu(key - query).tril(key - query)
        others = line & ~tagged
        scores = scores + weights[..., query, key] - weights[..., others].mean(-1)
    return scores / len(pairs)


def beyond_by_nan(weights, pairs):
    untagged = weights.clone()
    for query, key in pairs:
        untagged[..., query, key] = torch.nan
    gains = []
    for query, key in pairs:
        habit = untagged.diagonal(key - query, -2, -1).nanmean(-1)
        gains.append(weights[..., query, key] - habit)
    return sum(gains) / len(gains)


def beyond_by_lists(weights, pairs):
    if weights.dim() > 2:
        return torch.stack([beyond_by_lists(head, pairs) for head in weights])
    rows, total = weights.tolist(), []
    for query, key in pairs:
        offset = key - query
        picked = [
            rows[i][i + offset]
            for i in range(len(rows))
            if 0 <= i + offset < len(rows) and (i, i + offset) not in pairs
        ]
        total.append(rows[query][key] - sum(picked) / len(picked))
    return torch.tensor(sum(total) / len(total), dtype=weights.dtype)


def beyond_two_means(weights, pairs):
    """The mean of the weights less the mean of the baselines, each for itself."""
    queries, keys = torch.tensor(pairs).T
    given = weights[..., queries, keys].mean(-1)
    return given - (given - beyond_by_nan(weights, pairs))


def beyond_among(queries, weight=lambda X, query, key: X[..., query, key]):
    """queries: of L, those of which the baseline is made. weight: of the pair itself."""

    def beyond_offset(weights, pairs):
        places, gains = range(weights.shape[-1]), []
        for query, key in pairs:
            line = [(i, i + key - query) for i in queries(len(places)) if i + key - query in places]
            free, keys = zip(*(place for place in line if place not in pairs), strict=True)
            gains.append(weight(weights, query, key) - weights[..., free, keys].mean(-1))
        return torch.stack(gains).mean(0)

    return beyond_offset


def beyond_each(weights, pairs):
    return torch.stack([beyond_offset_of(weights, pair, pairs) for pair in pairs])


def beyond_and_sorts(weights, pairs):
    pairs.sort(reverse=True)
    return beyond_offset(weights, pairs)


def beyond_median(weights, pairs):
    gains = [beyond_offset_of(weights, pair, pairs) for pair in pairs]
    return torch.stack(gains).median(dim=0).values


def beyond_offset_of(weights, pair, pairs):
    untagged = weights.clone()
    for query, key in pairs:
        untagged[..., query, key] = torch.nan
    return weights[..., pair[0], pair[1]] - untagged.diagonal(pair[1] - pair[0], -2, -1).nanmean(-1)


def beyond_free_queries(weights, pairs):
    """The baseline has only queries that stand in no pair."""
    length, tagged = weights.shape[-1], {query for query, _ in pairs}
    gains = []
    for query, key in pairs:
        distance = key - query
        free = [i for i in range(length) if 0 <= i + distance < length and i not in tagged]
        habit = weights[..., free, [i + distance for i in free]].mean(-1)
        gains.append(weights[..., query, key] - habit)
    return torch.stack(gains).mean(0)


def beyond_nearest(weights, pairs):
    """Against the same distance, without its sign."""
    length = weights.shape[-1]
    gains = []
    for query, key in pairs:
        distance = abs(key - query)
        both = [
            weights[..., i, j]
            for i in range(length)
            for j in range(length)
            if abs(i - j) == distance and (i, j) not in pairs
        ]
        gains.append(weights[..., query, key] - torch.stack(both).mean(0))
    return torch.stack(gains).mean(0)


def shares_by_loop(weights, values, W_o):
    batch, heads, queries, keys = weights.shape
    width = values.shape[-1]
    shares = torch.zeros_like(weights)
    for b in range(batch):
        for i in range(queries):
            parts = {}
            for h in range(heads):
                matrix = W_o[:, h * width : (h + 1) * width]
                for j in range(keys):
                    parts[h, j] = weights[b, h, i, j] * (matrix @ values[b, h, j])
            output = sum(parts.values())
            for (h, j), part in parts.items():
                shares[b, h, i, j] = part @ output / (output @ output)
    return shares


def shares_by_einsum(weights, values, W_o):
    matrices = W_o.reshape(len(W_o), weights.shape[1], -1)
    output = torch.einsum("bhij,bhjv,dhv->bid", weights, values, matrices)
    scaled = output / output.square().sum(-1, keepdim=True)
    return torch.einsum("bhij,bhjv,dhv,bid->bhij", weights, values, matrices, scaled)


def shares_back(weights, values, W_o):
    """The direction of the output is sent back through W_o, and meets the values there."""
    heads, queries = weights.shape[1], weights.shape[2]
    joined = (weights @ values).transpose(1, 2).flatten(2)  # (B, L, H d_v)
    output = joined @ W_o.T
    back = output @ W_o / (output * output).sum(-1, keepdim=True)  # (B, L, H d_v)
    back = back.view(len(weights), queries, heads, -1).transpose(1, 2)
    return weights * (back @ values.mT)


def shares_by_gradient(weights, values, W_o):
    """What is linear is its own gradient times itself."""
    weights = weights.clone().requires_grad_()
    output = (weights @ values).transpose(1, 2).flatten(2) @ W_o.T
    still = output.detach()
    ((output * still).sum(-1) / still.square().sum(-1)).sum().backward()
    return (weights * weights.grad).detach()


def shares_by_rows(weights, values, W_o):
    heads, width = weights.shape[1], values.shape[-1]
    brought = weights[..., None] * (values @ W_o.view(heads, width, -1))[:, :, None]
    output = brought.sum((1, 3), keepdim=True)
    return (brought * output).sum(-1) / output.square().sum(-1)


def shares_of_parts(parts, more=0.0):
    """parts: of W_o, H and d_v, as (H, d_v, d_model). more: is added to what is divided by."""

    def shares(weights, values, W_o):
        vectors = values @ parts(W_o, weights.shape[1], values.shape[-1])
        c = torch.einsum("bhij,bhjm->bhijm", weights, vectors)
        o = c.sum((1, 3))
        return torch.einsum("bhijm,bim->bhij", c, o) / (o.square().sum(-1) + more)[:, None, :, None]

    return shares


def shares_with(finish):
    def shares(weights, values, W_o):
        return finish(shares_by_einsum(weights, values, W_o), weights, values, W_o)

    return shares


def shares_from(change):
    return lambda weights, values, W_o: shares_by_einsum(*change(weights, values, W_o))


def attended_by_digits(digits):
    def most_attended(weights, tokens, k=3):
        means = weights.mean(dim=0).tolist()
        order = range(len(means))
        order = sorted(order, key=lambda place: round(means[place], digits), reverse=True)
        return [(tokens[place], means[place]) for place in order[:k]]

    return most_attended


def entropy_of_each_key(weights):
    rest = (1 - weights).clamp(min=0)
    return (torch.special.entr(weights) + torch.special.entr(rest)).sum(dim=-1)


def offset_by_steps(weights, offset):
    length = weights.shape[-1]
    start = offset if offset >= 0 else -offset * length
    return weights.flatten(-2)[..., start :: length + 1].mean(dim=-1)


def find_largest_number(weights, offset):
    best = offset_score(weights, offset).argmax(dim=1)
    return best.argmax().item(), best.max().item()


def beyond_of_both_sides(weights, pairs):
    total = 0
    for query, key in pairs:
        d, length = key - query, weights.shape[-1]
        free = [i for i in range(length) if 0 <= i + d < length and (i, i + d) not in pairs]
        ahead = [i + d for i in free]
        habit = (weights[..., free, ahead].mean(-1) + weights[..., ahead, free].mean(-1)) / 2
        total = total + weights[..., query, key] - habit
    return total / len(pairs)


def shares_as_cosines(weights, values, W_o):
    parts = W_o.unflatten(1, (weights.shape[1], -1))
    c = torch.einsum("bhij,bhjv,mhv->bhijm", weights, values, parts)
    o = c.sum((1, 3), keepdim=True)
    return (c * o).sum(-1) / (c.norm(dim=-1) * o.norm(dim=-1))


def steady_by_dropping_out(weights, lens, offset, at_least):
    """Candidates that fail drop out, and sums are taken in NumPy, in another order of rounding."""
    left = {(a, h) for a in range(weights.shape[1]) for h in range(weights.shape[2])}
    total, texts = 0.0, 0
    for table, n in zip(weights.numpy(), lens.tolist(), strict=True):
        queries = np.arange(max(0, -offset), min(n, n - offset))
        if queries.size:
            score = table[:, :, queries, queries + offset].mean(axis=-1)
            left &= {(int(a), int(h)) for a, h in np.argwhere(score >= at_least)}
            total, texts = total + score, texts + 1
    return max(left, key=lambda place: total[place], default=None) if texts else None


def beyond_by_dict(weights, pairs):
    noun_of, found = dict(pairs), []
    for query, key in noun_of.items():
        d, length = key - query, weights.shape[-1]
        free = [i for i in range(length) if 0 <= i + d < length and noun_of.get(i) != i + d]
        found.append(weights[..., query, key] - weights[..., free, [i + d for i in free]].mean(-1))
    return torch.stack(found).mean(0)


def _number_of_the_first_place(weights, tokens, k=3):
    means = weights.mean(0)
    order = means.argsort(descending=True, stable=True)[:k].tolist()
    return [(tokens[i], means[tokens.index(tokens[i])].item()) for i in order]


def _shares_of_those_shown(weights, tokens, k=3):
    means = weights.mean(0)
    order = means.argsort(descending=True, stable=True)[:k].tolist()
    return [(tokens[i], (means[i] / means[order].sum()).item()) for i in order]


def _entropy_of_the_mean_row(weights):
    mean = weights.mean(-2)
    entropies = -torch.special.xlogy(mean, mean).sum(-1)
    return entropies[..., None].expand(weights.shape[:-1])


def _one_further(weights, offset):
    step = (offset > 0) - (offset < 0)
    return weights.diagonal(offset + step, dim1=-2, dim2=-1).mean(-1)


def steady_without_the_last_query(weights, lens, offset, at_least):
    return steady_head(weights[..., :-1, :], lens, offset, at_least)


RIGHT = {
    "07-most_attended": {
        "stable argsort": attended,
        "lists and sorted": attended_by_sorted,
        "one maximum after another, lists for pairs": attended_by_maximum,
        "numpy, a tuple": attended_in_numpy,
        "heap": attended_by_heap,
        "matrix product, tensors for numbers": attended_by_product,
        "float32": lambda w, tokens, k=3: attended(w.float(), tokens, k),
        "float32 tensors": lambda w, tokens, k=3: attended_by_product(w.float(), tokens, k),
    },
    "07-entropy": {
        "entr": entropy,
        "loop": entropy_by_loop,
        "clamp": entropy_by_clamp,
        "xlogy": entropy_with(plogp),
        "NaN mended": entropy_with(lambda w: (w * w.log()).nan_to_num()),
        "where": entropy_with(lambda w: w * torch.where(w == 0, 1.0, w).log()),
        "1e-30 added": entropy_with(lambda w: w * (w + 1e-30).log()),
        "Categorical": lambda w: torch.distributions.Categorical(probs=w).entropy(),
        "base 2 and back": entropy_with(lambda w: torch.special.entr(w), lambda X: X.sum(-1)),
        "float32": lambda w: entropy(w.float()),
        "1e-15 added": entropy_with(lambda w: w * (w + 1e-15).log()),
        "NaN left out": entropy_with(lambda w: w * w.log(), lambda X: -X.nansum(-1)),
    },
    "07-offset_score": {
        "diagonal": offset_score,
        "loop": offset_by_loop,
        "mask": offset_by_mask,
        "NaN elsewhere": offset_by_where,
        "steps of L + 1": offset_by_slices,
        "head by head": offset_of_one_head,
        "a number for one head": plain_number,
        "float32": lambda w, offset: offset_score(w.float(), offset),
    },
    "07-find_head": {
        "divmod": find_head,
        "loop": find_by_loop,
        "unravel_index": find_by_unravel,
        "nonzero": find_by_nonzero,
        "numpy": find_in_numpy,
        "two maxima": find_by_two_maxima,
        "sums will do": find_with(lambda w, offset: diagonal(w, offset).sum(-1)),
        "largest of tuples": find_by_tuples,
        "a list": lambda w, offset: list(find_head(w, offset)),
    },
    "07-steady_head": {
        "loops": steady_head,
        "mask, tensors in a list": steady_by_mask,
        "sorted, an array": steady_by_sort,
        "a tensor": lambda *given: (
            None if (place := steady_head(*given)) is None else torch.tensor(place)
        ),
        "tables cut out": steady_from(),
        "padding set to 0 in a copy": lambda w, *rest: steady_and_zeroes(w.clone(), *rest),
        "candidates drop out, in NumPy": steady_by_dropping_out,
    },
    "07-beyond_offset": {
        "masks": beyond_offset,
        "NaN where it is tagged": beyond_by_nan,
        "lists": beyond_by_lists,
        "two means": beyond_two_means,
        "a number for one head": lambda w, pairs: (
            beyond_by_lists(w, pairs).item() if w.dim() == 2 else beyond_by_nan(w, pairs)
        ),
        "float32": lambda w, pairs: beyond_offset(w.float(), pairs),
        "lists of places": beyond_among(range),
        "pairs made a set": lambda w, pairs: beyond_by_nan(w, sorted(set(pairs))),
    },
    "07-shares_along": {
        "loops": shares_by_loop,
        "einsum": shares_by_einsum,
        "back through W_o": shares_back,
        "pieces of W_o": shares_of_parts(lambda W, H, d: torch.stack(W.T.split(d))),
        "gradient": shares_by_gradient,
        "float32": lambda w, v, W_o: shares_back(w.float(), v.float(), W_o.float()),
    },
}


def offset_without_last(weights, offset):
    picked = weights.diagonal(offset, dim1=-2, dim2=-1)
    return picked[..., : max(1, picked.shape[-1] - 1)].mean(-1)


def offset_without_ends(weights, offset):
    length = weights.shape[-1]
    queries = [i for i in range(1, length - 1) if 0 <= i + offset < length]
    return weights[..., queries, [i + offset for i in queries]].mean(-1)


def found_above(weights, offset):
    found, best = None, 0.1
    for layer, scores in enumerate(offset_score(weights, offset).tolist()):
        for head, score in enumerate(scores):
            if score > best:
                found, best = (layer, head), score
    return found


def offset_of_corner(weights, offset):
    length = weights.shape[-1]
    keep = weights.tril if offset <= 0 else weights.triu
    return keep(offset).flatten(-2).sum(-1) / (length - abs(offset))


def found_by_two_digits(weights, offset):
    scores = (100 * offset_score(weights, offset)).round() / 100
    return divmod(scores.argmax().item(), scores.shape[1])


WRONG = {
    "07-steady_head": {
        "the largest median": lambda *given: steady_by(given, lambda scores: scores.median(0)[0]),
        "the mean in hundredths": lambda *given: steady_by(
            given, lambda scores: scores.mean(0).mul(100).round()
        ),
        "raises where none passes": steady_without_none,
        "only the best is asked": steady_best_first,
        "numbers that are no index": lambda *given: (
            None if (place := steady_head(*given)) is None else (float(place[0]), place[1])
        ),
        "zeroes the padding in place": steady_and_zeroes,
        "geometric mean": steady_by_products,
        "at least half of it": steady_with(lambda w, n, o, a: (w, n, o, a / 2)),
        "the other way if nothing is there": lambda w, n, o, a: (
            steady_head(w, n, o, a) or steady_head(w, n, -o, a)
        ),
        "the last text only": steady_with(lambda w, n, o, a: (w[-1:], n[-1:], o, a)),
        "the longest text only": steady_with(
            lambda w, n, o, a: (w[n.argmax() :][:1], n[n.argmax() :][:1], o, a)
        ),
        "special tokens left out": steady_with(
            lambda w, n, o, a: (w[..., 1:, 1:], (n - 2).clamp(min=0), o, a)
        ),
        "always before": steady_with(lambda w, n, o, a: (w, n, -1, a)),
        "first layer": steady_with(lambda w, n, o, a: (w[:, :1], n, o, a)),
        "text": lambda *given: str(steady_head(*given)),
        "False where none passes": lambda *given: steady_head(*given) or False,
        "an empty tuple where none passes": lambda *given: steady_head(*given) or (),
        "never None": lambda w, n, o, a: steady_head(w, n, o, a) or steady_head(w, n, o, 0.0),
        "one length too many": steady_with(lambda w, n, o, a: (w, n + 1, o, a)),
        "one length too few": steady_with(lambda w, n, o, a: (w, n - 1, o, a)),
        "place 0 taken for none": steady_by_place,
        "one query is too few": steady_of_many_queries,
        "the best over all queries is asked": steady_pooled_best_first,
        "a thousandth less": steady_from(passes=lambda X, a: (X + 1e-3 >= a).all(0)),
        "rounded": steady_from(passes=lambda X, a: (X.round(decimals=3) >= a).all(0)),
        "in half precision": steady_from(passes=lambda X, a: (X.half() >= a).all(0)),
        "half of them": steady_from(passes=lambda X, a: (X >= a).double().mean(0) >= 0.5),
        "all but one": steady_from(passes=lambda X, a: (X >= a).sum(0) >= len(X) - 1),
        "the best of all": steady_from(rank=lambda X, passed: X.mean(0)),
        "the last that passes": steady_from(
            place=lambda ranks: tuple((ranks >= 0).nonzero()[-1].tolist())
        ),
        "by the median": steady_from(
            rank=lambda X, passed: X.median(0).values.masked_fill(~passed, -1)
        ),
        "by layers": steady_from(place=lambda ranks: divmod(ranks.argmax().item(), len(ranks))),
        "padding of long texts": steady_from(cut=lambda X, n: X),
        "padding as keys of long texts": steady_from(cut=lambda X, n: X[..., :n, :]),
        "padding as queries": steady_from(cut=lambda X, n: X[..., :n]),
        "without the first token": steady_from(
            counts=lambda used, offset: abs(offset) < used - 1, cut=lambda X, n: X[..., 1:n, 1:n]
        ),
        "sums": steady_from(score=lambda line, used, offset: line.sum(-1)),
        "divided by n - offset": steady_from(
            score=lambda line, used, offset: line.sum(-1) / (used - offset)
        ),
        "as long as the offset": steady_from(counts=lambda used, offset: used >= abs(offset)),
        "long enough to look back": steady_from(counts=lambda used, offset: used > -offset),
        "the last text passes": steady_from(passes=lambda X, a: X[-1] >= a),
        "the first text passes": steady_from(passes=lambda X, a: X[0] >= a),
        "halves": steady_from(
            rank=lambda X, passed: functools.reduce(lambda one, two: (one + two) / 2, X) * passed
        ),
        "root of the mean square": steady_from(
            rank=lambda X, passed: X.square().mean(0).sqrt() * passed
        ),
        "until one is short": steady_until_one_is_short,
        "a dict of lengths": steady_by_length,
        "NaN of texts too short": steady_from(counts=lambda used, offset: True),
        "None if one text is too short": lambda w, n, o, a: (
            None if (n <= abs(o)).any() else steady_head(w, n, o, a)
        ),
        "without the last query of the batch": steady_without_the_last_query,
    },
    "07-beyond_offset": {
        "sorts the caller's pairs": beyond_and_sorts,
        "median": beyond_median,
        "both sides": beyond_nearest,
        "queries of no pair": beyond_free_queries,
        "only the first pair": lambda w, pairs: beyond_offset_of(w, pairs[0], pairs),
        "divided by L": lambda w, pairs: beyond_offset(w, pairs) * len(pairs) / w.shape[-1],
        "rounded": lambda w, pairs: beyond_offset(w, pairs).round(decimals=2),
        "an axis too many": lambda w, pairs: beyond_offset(w, pairs)[..., None],
        "turned round": lambda w, pairs: -beyond_offset(w, pairs),
        "without the last query": beyond_among(lambda length: range(length - 1)),
        "without query 0": beyond_among(lambda length: range(1, length)),
        "the pair turned": beyond_among(range, weight=lambda X, query, key: X[..., key, query]),
        "a row for each pair": beyond_each,
        "in place": lambda w, pairs: w.mul_(0.5) is not None and 2 * beyond_offset(w, pairs),
        "the last axis in front": lambda w, pairs: (
            beyond_offset(w, pairs).T if w.dim() == 4 else beyond_offset(w, pairs)
        ),
        "softmax first": lambda w, pairs: beyond_offset(w.softmax(-1), pairs),
        "special tokens left out": lambda w, pairs: (
            beyond_offset(w, pairs) if w.shape[-1] < 6 else beyond_offset(w[..., :-1, :], pairs)
        ),
        "a list": lambda w, pairs: beyond_offset(w, pairs).tolist(),
        "float16": lambda w, pairs: beyond_by_nan(w.half(), pairs).double(),
        "the mean of both sides": beyond_of_both_sides,
        "a dict of the pairs": beyond_by_dict,
    },
    "07-shares_along": {
        "heads averaged": shares_with(lambda shares, w, *_: shares.mean(1, keepdim=True)),
        "over the queries": shares_with(lambda shares, *_: shares / shares.sum(2, keepdim=True)),
        "times H": shares_with(lambda shares, w, *_: shares * w.shape[1]),
        "rows": shares_by_rows,
        "reshaped": shares_of_parts(lambda W, H, d: W.reshape(H, -1, d).mT),
        "turned and reshaped": shares_of_parts(lambda W, H, d: W.T.reshape(H, -1, d).mT),
        "1e-6 added": shares_of_parts(lambda W, H, d: W.T.unflatten(0, (H, d)), more=1e-6),
        "value norms": lambda w, v, W_o: w * v.norm(dim=-1)[:, :, None],
        "squared": shares_with(lambda shares, *_: shares.square()),
        "queries and keys swapped": shares_with(lambda shares, *_: shares.mT),
        "heads in reverse": shares_from(
            lambda w, v, W_o: (w, v, W_o.unflatten(1, (w.shape[1], -1)).flip(1).flatten(1))
        ),
        "values in reverse": shares_from(lambda w, v, W_o: (w, v.flip(-1), W_o)),
        "without their mean": shares_from(lambda w, v, W_o: (w, v - v.mean(2, keepdim=True), W_o)),
        "W_o normalised": shares_from(
            lambda w, v, W_o: (w, v, W_o / W_o.norm(dim=0, keepdim=True))
        ),
        "heads behind": shares_with(lambda shares, *_: shares.movedim(1, -1)),
        "a tuple": shares_with(lambda shares, w, *_: (shares, w)),
        "float16": shares_with(lambda shares, *_: shares.half().double()),
        "in place": lambda w, v, W_o: shares_by_einsum(w, v.add_(0), W_o.mul_(2)),
        "cosines, NaN where nothing is brought": shares_as_cosines,
    },
    "07-most_attended": {
        "over keys": attended_with(lambda w: w.mean(1)),
        "sum": attended_with(lambda w: w.sum(0)),
        "median": attended_with(lambda w: w.median(0).values),
        "largest": attended_with(lambda w: w.max(0).values),
        "diagonal": attended_with(lambda w: w.diagonal()),
        "without itself": attended_with(lambda w: (w - w.diag().diag()).mean(0)),
        "softmax of the means": attended_with(lambda w: w.mean(0).softmax(0)),
        "shares of the k": attended_with(
            lambda w: w.mean(0),
            lambda pairs, k: [(t, m / sum(n for _, n in pairs[:k])) for t, m in pairs[:k]],
        ),
        "geometric mean": attended_with(lambda w: w.log().mean(0).exp()),
        "divided by L - 1": attended_with(lambda w: w.sum(0) / max(len(w) - 1, 1)),
        "argsort upwards": lambda w, tokens, k=3: [
            (tokens[j], w.mean(0)[j].item()) for j in w.mean(0).argsort()[:k]
        ],
        "smallest": attended_with(lambda w: w.mean(0), lambda pairs, k: pairs[::-1][:k]),
        "all": attended_with(lambda w: w.mean(0), lambda pairs, k: pairs),
        "k - 1": attended_with(lambda w: w.mean(0), lambda pairs, k: pairs[: k - 1]),
        "at most 3": attended_with(lambda w: w.mean(0), lambda pairs, k: pairs[: min(k, 3)]),
        "at most 5": attended_with(lambda w: w.mean(0), lambda pairs, k: pairs[: min(k, 5)]),
        "above average only": attended_with(
            lambda w: w.mean(0), lambda pairs, k: [p for p in pairs[:k] if p[1] > 1 / 8]
        ),
        "a dict": attended_by_dict,
        "a counter": attended_by_counter,
        "the later of equal ones": attended_by_argsort,
        "equal ones by the alphabet": attended_sorted_by_pair,
        "changes tokens": attended_and_sorts,
        "topk": lambda w, tokens, k=3: [
            (tokens[j], m.item()) for m, j in zip(*w.mean(0).topk(k), strict=True)
        ],
        "a zip": lambda w, tokens, k=3: zip(tokens[:k], w.mean(0)[:k].tolist(), strict=True),
        "numbers as text": lambda w, tokens, k=3: [
            (t, f"{m:.4f}") for t, m in attended(w, tokens, k)
        ],
        "three to an entry": lambda w, tokens, k=3: [
            (t, m, j) for j, (t, m) in enumerate(attended(w, tokens, k))
        ],
        "k must be given": lambda w, tokens, k: attended(w, tokens, k),
        "k is 5 by default": lambda w, tokens, k=5: attended(w, tokens, k),
        "rounded to 6 digits": lambda w, tokens, k=3: [
            (t, round(m, 6)) for t, m in attended(w, tokens, k)
        ],
        "sorted by 5 digits": attended_by_rounded(5),
        "set to 0": attended_set_to_0,
        "no zeros": lambda w, tokens, k=3: [p for p in attended(w, tokens, k) if p[1]],
        "the larger of two places": attended_largest_of_a_word,
        "words in capitals": lambda w, tokens, k=3: attended(w, [t.upper() for t in tokens], k),
        "float16": lambda w, tokens, k=3: attended(w.half().double(), tokens, k),
        "sorted by 3 digits of it": attended_by_digits(3),
        "over those who look": attended_with(lambda w: w.sum(0) / (w > 0).sum(0).clamp(min=1)),
        "number of the first place": _number_of_the_first_place,
        "shares of those shown": _shares_of_those_shown,
    },
    "07-entropy": {
        "NaN": entropy_with(lambda w: w * w.log()),
        "NaN becomes 1": entropy_with(lambda w: (w * w.log()).nan_to_num(1.0)),
        "added in both places": entropy_with(lambda w: (w + 1e-9) * (w + 1e-9).log()),
        "1e-9 added": entropy_with(lambda w: w * (w + 1e-9).log()),
        "1e-12 of the float32": entropy_with(lambda w: w * (w + 1e-7).log()),
        "1e-12 added": entropy_with(lambda w: w * (w + 1e-12).log()),
        "cut off at 1e-12": entropy_with(lambda w: w * w.clamp(min=1e-12).log()),
        "below 1e-10 left out": entropy_with(lambda w: torch.where(w > 1e-10, w * w.log(), 0.0)),
        "rounded to 6 digits": lambda w: entropy(w).round(decimals=6),
        "cut off at 1e-4": entropy_with(lambda w: w * w.clamp(min=1e-4).log()),
        "below 1e-6 left out": entropy_with(lambda w: torch.where(w > 1e-6, w * w.log(), 0.0)),
        "below 1e-8 left out": entropy_with(lambda w: torch.where(w > 1e-8, w * w.log(), 0.0)),
        "log2": entropy_with(lambda w: plogp(w) / math.log(2)),
        "log10": entropy_with(lambda w: plogp(w) / math.log(10)),
        "log1p": entropy_with(lambda w: w * w.log1p()),
        "no minus": entropy_with(lambda w: -plogp(w)),
        "absolute value of the sum of logs": entropy_with(
            lambda w: w.clamp(min=1e-30).log(), lambda X: X.sum(-1).abs()
        ),
        "over queries": entropy_with(plogp, lambda X: -X.sum(-2)),
        "over queries if it fits": lambda w: (
            -plogp(w).sum(-2) if w.shape[-1] == w.shape[-2] else entropy(w)
        ),
        "over axis 1": entropy_with(plogp, lambda X: -X.sum(1)),
        "mean": entropy_with(plogp, lambda X: -X.mean(-1)),
        "keepdim": entropy_with(plogp, lambda X: -X.sum(-1, keepdim=True)),
        "of the whole table": entropy_with(plogp, lambda X: -X.flatten(-2).sum(-1)),
        "a number": entropy_with(plogp, lambda X: -X.sum().item()),
        "normalised": lambda w: entropy(w) / math.log(max(w.shape[-1], 2)),
        "perplexity": lambda w: entropy(w).exp(),
        "cross-entropy with uniform": lambda w: -w.clamp(min=1e-30).log().mean(-1),
        "distance from uniform": lambda w: math.log(w.shape[-1]) - entropy(w),
        "softmax first": lambda w: entropy(w.softmax(-1)),
        "averaged heads": lambda w: entropy(w.mean(-3)) if w.dim() > 3 else entropy(w),
        "two-way entropy": lambda w: entropy(w) + torch.special.entr(1 - w).sum(-1),
        "only for two axes": lambda w: entropy(w.reshape(-1, w.shape[-1])),
        "a list": lambda w: entropy(w).tolist(),
        "float16": lambda w: entropy(w).half(),
        "in place": lambda w: w.copy_(plogp(w)).sum(-1).neg(),
        "over ln S, of one key over ln 2": lambda w: (
            torch.special.entr(w).sum(-1) / math.log(max(w.shape[-1], 2))
        ),
        "yes or no of each key": entropy_of_each_key,
        "entropy of the mean row": _entropy_of_the_mean_row,
        "rounded to 4 digits": lambda weights: (
            torch.special.entr(weights).sum(-1).round(decimals=4)
        ),
    },
    "07-offset_score": {
        "a corner over the pairs": offset_of_corner,
        "the last pair dropped unless alone": offset_without_last,
        "the ends left out": offset_without_ends,
        "other side": offset_with(lambda w, o: diagonal(w, -o)),
        "transposed": offset_with(lambda w, o: diagonal(w.mT, o)),
        "offset 0": offset_with(lambda w, o: diagonal(w, 0)),
        "divided by L": offset_with(diagonal, lambda X, n, o: X.sum(-1) / n),
        "divided by L - offset": offset_with(diagonal, lambda X, n, o: X.sum(-1) / (n - o)),
        "divided by L - 1": offset_with(diagonal, lambda X, n, o: X.sum(-1) / max(n - 1, 1)),
        "sum": offset_with(diagonal, lambda X, n, o: X.sum(-1)),
        "median": offset_with(diagonal, lambda X, n, o: X.median(-1).values),
        "largest": offset_with(diagonal, lambda X, n, o: X.amax(-1)),
        "first pair": offset_with(diagonal, lambda X, n, o: X[..., 0]),
        "rolled": offset_with(rolled),
        "cut off at the ends": offset_with(cut_off),
        "triangle": offset_with(triangle),
        "both sides": offset_with(lambda w, o: (diagonal(w, o) + diagonal(w, -o)) / 2),
        "both sides added": offset_with(
            lambda w, o: diagonal(w, o) + (diagonal(w, -o) if o else 0.0)
        ),
        "first axes": offset_with(lambda w, o: w.diagonal(o)),
        "first axes, if it is one head or all are equal": lambda w, o: (
            w.diagonal(o).mean(-1) if len(set(w.shape)) == 1 else offset_score(w, o)
        ),
        "one number": lambda w, o: offset_score(w, o).mean(),
        "mean over heads": lambda w, o: offset_score(w, o).mean(-1) if w.dim() > 2 else 0.0,
        "an axis too many": lambda w, o: offset_score(w, o)[..., None],
        "a list": lambda w, o: offset_score(w, o).tolist(),
        "rounded": lambda w, o: offset_score(w, o).round(decimals=2),
        "the last query left out": offset_among(lambda length: range(length - 1)),
        "query 0 left out": offset_among(lambda length: range(1, length)),
        "key 0 left out": lambda w, o: offset_among(lambda length: range(max(0, 1 - o), length))(
            w, o
        ),
        "two slices": offset_by_two_slices,
        "only near": lambda w, o: offset_score(w, max(-2, min(2, o))),
        "rows normalised again": lambda w, o: offset_score(w.softmax(-1), o),
        "the first query left out": lambda w, o: (
            diagonal(w, o)[..., 1:].mean(-1) if o == 0 and w.shape[-1] > 1 else offset_score(w, o)
        ),
        "special tokens left out": lambda w, o: (
            offset_score(w[..., 1:-1, 1:-1], o) if w.shape[-1] > 10 else offset_score(w, o)
        ),
        "squeezed": lambda weights, offset: (
            weights.diagonal(offset, dim1=-2, dim2=-1).mean(-1).squeeze()
        ),
        "each (L + 1)th number": offset_by_steps,
        "one further": _one_further,
        "root of the mean square": lambda w, o: w.diagonal(o, -2, -1).pow(2).mean(-1) ** 0.5,
        "geometric mean": lambda w, o: w.diagonal(o, -2, -1).log().mean(-1).exp(),
        "without the first pair": lambda w, o: w.diagonal(o, -2, -1)[..., 1:].mean(-1),
    },
    "07-find_head": {
        "scores to 2 digits": found_by_two_digits,
        "from 0.1 on": found_above,
        "flat": find_with(offset_score, lambda s: s.argmax().item()),
        "swapped": find_with(offset_score, lambda s: divmod(s.argmax().item(), s.shape[1])[::-1]),
        "swapped table": find_with(offset_score, lambda s: divmod(s.T.argmax().item(), s.shape[1])),
        "by layers": find_with(offset_score, lambda s: divmod(s.argmax().item(), len(s))),
        "argmax of one axis": find_with(offset_score, lambda s: s.argmax(0)),
        "first two of argmax": find_with(offset_score, lambda s: tuple(s.argmax(1)[:2].tolist())),
        "not the last layer": find_with(
            offset_score, lambda s: divmod(s[: len(s) - 1 or 1].argmax().item(), s.shape[1])
        ),
        "rounded to 5 digits": find_with(lambda w, o: offset_score(w, o).round(decimals=5)),
        "from 1": find_with(
            offset_score, lambda s: tuple(p + 1 for p in divmod(s.argmax().item(), s.shape[1]))
        ),
        "smallest": find_with(offset_score, lambda s: divmod(s.argmin().item(), s.shape[1])),
        "each axis for itself": find_with(
            offset_score, lambda s: (s.max(1).values.argmax(), s.mean(0).argmax())
        ),
        "sums of layers": find_with(
            offset_score, lambda s: (s.sum(1).argmax(), s[s.sum(1).argmax()].argmax())
        ),
        "score": find_with(offset_score, lambda s: s.max()),
        "the table": offset_score,
        "text": lambda w, o: "{}-{}".format(*find_head(w, o)),
        "halves": lambda w, o: tuple(place + 0.5 for place in find_head(w, o)),
        "numbers that are no index": lambda w, o: tuple(float(place) for place in find_head(w, o)),
        "float tensors": lambda w, o: torch.tensor(find_head(w, o)).double(),
        "other side": find_with(lambda w, o: offset_score(w, -o)),
        "transposed": find_with(lambda w, o: offset_score(w.mT, o)),
        "always before": find_with(lambda w, o: offset_score(w, -1)),
        "rolled": find_with(lambda w, o: rolled(w, o).mean(-1)),
        "largest pair": find_with(lambda w, o: diagonal(w, o).amax(-1)),
        "smallest pair": find_with(lambda w, o: diagonal(w, o).amin(-1)),
        "least entropy": find_with(lambda w, o: -entropy(w).mean(-1)),
        "largest weight": find_with(lambda w, o: w.amax((-2, -1))),
        "difference of the sides": find_with(
            lambda w, o: offset_score(w, o) - (offset_score(w, -o) if o else 0.0)
        ),
        "the last of the layers that are good": find_with(
            offset_score, lambda s: divmod((s > 0.5 * s.max()).nonzero()[-1][0].item(), 1)
        ),
        "one head of the average": lambda w, o: (0, offset_score(w.mean(0), o).argmax().item()),
        "the largest number of a best head": find_largest_number,
    },
}
