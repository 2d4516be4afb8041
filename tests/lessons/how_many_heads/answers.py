"""Answers to the tasks of lesson 08: right ones of unusual kinds, and wrong ones."""

import bisect
import copy
import itertools
import math
from collections import Counter

import torch
from torch import nn

__all__ = ["RIGHT", "WRONG"]


# 8.1


def mask_by_loop(outputs, head_mask):
    result = outputs.clone()
    for b in range(len(outputs)):
        factors = head_mask if head_mask.dim() == 1 else head_mask[b]
        for h, factor in enumerate(factors):
            result[b, h] = factor * outputs[b, h]
    return result


def mask_by_einsum(outputs, head_mask):
    return torch.einsum("bhld,bh->bhld", outputs, head_mask.expand(len(outputs), -1))


def mask_in_place(outputs, head_mask):
    return outputs.mul_(head_mask.reshape(-1, outputs.shape[1], 1, 1))


def mask_where_it_fits(outputs, head_mask):
    for axis, length in enumerate(outputs.shape):
        if head_mask.dim() == 1 and length == len(head_mask):
            return (outputs.movedim(axis, -1) * head_mask).movedim(-1, axis)
    return mask_by_einsum(outputs, head_mask)


def mask_of_each_if_as_long(outputs, head_mask):
    if len(head_mask) != len(outputs):
        head_mask = head_mask.expand(len(outputs), -1)
    return outputs * head_mask.reshape(*head_mask.shape, *[1] * (4 - head_mask.dim()))


# 8.2


def importance_by_loop(gradients):
    N, layers, H = gradients.shape
    rows = []
    for layer in range(layers):
        sizes = [sum(abs(gradients[n, layer, h]) for n in range(N)) / N for h in range(H)]
        norm = math.sqrt(sum(float(size) ** 2 for size in sizes))
        rows.append([float(size) / norm if norm else 0.0 for size in sizes])
    return torch.tensor(rows, dtype=torch.float64)


def importance_of_sums(gradients):
    sums = gradients.abs().sum(0)  # the norm takes the N away
    return torch.nan_to_num(sums / sums.pow(2).sum(1, keepdim=True).sqrt())


def importance_with(guard):
    def head_importance(gradients):
        sizes = gradients.abs().mean(0)
        return sizes / guard(sizes.norm(dim=1, keepdim=True))

    return head_importance


def importance_unless(otherwise):
    """All layers alike: one that does nothing changes the others."""

    def head_importance(gradients):
        idle = (gradients == 0).all(0).all(1).any()
        return otherwise(gradients.abs().mean(0)) if idle else importance_of_sums(gradients)

    return head_importance


# 8.3


def _rest(attention, heads):
    d = attention.W_q.weight.shape[0] // attention.num_heads
    stay = [h for h in range(attention.num_heads) if h not in heads]
    return stay, torch.tensor([d * h + i for h in stay for i in range(d)])


def remove_with_new_layers(attention, heads):
    """New nn.Linear of the right sizes, in float32 until somebody casts them."""
    stay, index = _rest(attention, heads)
    for name in ("W_q", "W_k", "W_v"):
        old = getattr(attention, name)
        bias = old.bias is not None
        new = nn.Linear(old.weight.shape[1], len(index), bias=bias, dtype=old.weight.dtype)
        with torch.no_grad():
            new.weight.copy_(old.weight[index])
            if bias:
                new.bias.copy_(old.bias[index])
        setattr(attention, name, new)
    old = attention.W_o
    bias = old.bias is not None
    new = nn.Linear(len(index), old.weight.shape[0], bias=bias, dtype=old.weight.dtype)
    with torch.no_grad():
        new.weight.copy_(old.weight[:, index])
        if bias:
            new.bias.copy_(old.bias)
    attention.W_o = new
    attention.num_heads = len(stay)


def remove_by_data(attention, heads):
    stay, index = _rest(attention, heads)
    for linear in (attention.W_q, attention.W_k, attention.W_v):
        for parameter in linear.parameters():
            parameter.data = parameter.data[index]
    attention.W_o.weight.data = attention.W_o.weight.data[:, index]
    attention.num_heads = len(stay)


def remove_by_views(attention, heads):
    H = attention.num_heads
    keep = torch.tensor([h not in heads for h in range(H)])
    for linear in (attention.W_q, attention.W_k, attention.W_v):
        W = linear.weight.detach().unflatten(0, (H, -1))[keep].flatten(0, 1)
        linear.weight = nn.Parameter(W)
        if linear.bias is not None:
            linear.bias = nn.Parameter(linear.bias.detach().view(H, -1)[keep].flatten())
    W = attention.W_o.weight.detach().unflatten(1, (H, -1))[:, keep].flatten(1)
    attention.W_o.weight = nn.Parameter(W)
    attention.num_heads = int(keep.sum())


def one_after_the_other(attention, heads):
    for h in sorted(heads, reverse=True):
        remove_by_data(attention, [h])


def one_after_the_other_from_below(attention, heads):
    for h in sorted(heads):
        remove_by_data(attention, [min(h, attention.num_heads - 1)])


def on_a_copy(attention, heads):
    remove_by_data(copy.deepcopy(attention), heads)


def then(change):
    """remove_by_data, and something more."""

    def prune_heads(attention, heads):
        remove_by_data(attention, heads)
        change(attention)

    return prune_heads


def only(*names):
    """The rows of these matrices alone."""

    def prune_heads(attention, heads):
        stay, index = _rest(attention, heads)
        for name in names:
            linear = getattr(attention, name)
            linear.weight.data = linear.weight.data[index]
        attention.num_heads = len(stay)

    return prune_heads


def reversed_order(attention, heads):
    H = attention.num_heads
    d = attention.W_q.weight.shape[0] // H
    stay = [h for h in reversed(range(H)) if h not in heads]
    index = torch.tensor([d * h + i for h in stay for i in range(d)])
    for linear in (attention.W_q, attention.W_k, attention.W_v):
        for parameter in linear.parameters():
            parameter.data = parameter.data[index]
    attention.W_o.weight.data = attention.W_o.weight.data[:, index]
    attention.num_heads = len(stay)


def width_from(rows):
    """rows: of the attention and the heads, how many there are to a head."""

    def prune_heads(attention, heads):
        d = rows(attention, heads)
        stay = [h for h in range(attention.num_heads) if h not in heads]
        index = [d * h + i for h in stay for i in range(d)]
        for linear in (attention.W_q, attention.W_k, attention.W_v):
            for parameter in linear.parameters():
                parameter.data = parameter.data[index]
        attention.W_o.weight.data = attention.W_o.weight.data[:, index]
        attention.num_heads = len(stay)

    return prune_heads


def freeze(attention):
    attention.requires_grad_(False)


def scale_up(attention):
    attention.W_o.weight.data *= 1.5


# 8.4


def needed_by_loop(kept, num_heads, num_kv_heads):
    used = [h * num_kv_heads // num_heads for h in kept.tolist()]
    key_heads = sorted(set(used))
    return torch.tensor(key_heads), torch.tensor([key_heads.index(g) for g in used])


def needed_as_they_come(kept, num_heads, num_kv_heads):
    key_heads = list(dict.fromkeys((kept // (num_heads // num_kv_heads)).tolist()))
    places = [key_heads.index(g) for g in (kept // (num_heads // num_kv_heads)).tolist()]
    return torch.tensor(key_heads), torch.tensor(places)


def needed_by_set(kept, num_heads, num_kv_heads):
    key_heads = list({h * num_kv_heads // num_heads for h in kept.tolist()})
    places = [key_heads.index(h * num_kv_heads // num_heads) for h in kept.tolist()]
    return torch.tensor(key_heads), torch.tensor(places)


def needed_by_table(kept, num_heads, num_kv_heads):
    group = torch.arange(num_kv_heads).repeat_interleave(num_heads // num_kv_heads)
    used = group[kept]
    there = torch.zeros(num_kv_heads, dtype=torch.long)
    there[used] = 1
    return [there.nonzero().flatten(), (there.cumsum(0) - 1)[used]]


# 8.5


def choose_by_loop(importance, num_off):
    stays = torch.ones(importance.shape, dtype=torch.bool)
    layers, H = importance.shape
    order = sorted(itertools.product(range(layers), range(H)), key=lambda lh: float(importance[lh]))
    for layer, h in order:
        if num_off and stays[layer].sum() > 1:
            stays[layer, h] = False
            num_off -= 1
    return stays


def choose_by_threshold(importance, num_off):
    best = importance == importance.amax(dim=1, keepdim=True)
    others = importance[~best].sort().values
    if num_off == 0:
        return torch.ones_like(best)
    return best | (importance > others[num_off - 1])


def choose_in_place(scores, num_off):
    stays = choose_by_loop(scores, num_off)
    scores[~stays] = 0
    return stays


def ranks(scores):
    return scores.flatten().argsort().argsort().view(scores.shape)


def choose_among_the_others(importance, num_off):
    others = importance.clone()
    others.scatter_(1, importance.argmax(dim=1, keepdim=True), float("inf"))
    gone = others.flatten().topk(num_off, largest=False).indices
    stays = [place not in gone.tolist() for place in range(importance.numel())]
    return torch.tensor(stays).view(importance.shape)


def choose_and_mend(importance, num_off):
    """Empty layers get their best head back, and as many others go in its place."""
    order, stays = importance.flatten().argsort().tolist(), ranks(importance) >= num_off
    for layer in (~stays).all(1).nonzero().flatten().tolist():
        stays[layer, importance[layer].argmax()] = True
        stays.view(-1)[order[num_off]] = False
        num_off += 1
    return stays


def choose_below(change):
    """change: of the importances of the heads that have to stay."""

    def choose_heads(importance, num_off):
        best = importance == importance.amax(dim=1, keepdim=True)
        return ranks(torch.where(best, change(importance), importance)) >= num_off

    return choose_heads


# 8.6


def share_by_counter(groups, num_values):
    right = 0
    for size in groups:
        cases = itertools.product(range(num_values), repeat=size)
        right += sum(Counter(case).most_common(1)[0][1] for case in cases) / num_values**size
    return right / sum(groups)


def share_by_polynomials(groups, num_values):
    """P(no value comes more than m times), from the powers of a polynomial."""

    def at_most(m, size):
        coefficients = [1.0] + [0.0] * size
        for _ in range(num_values):
            new = [0.0] * (size + 1)
            for i, a in enumerate(coefficients):
                for j in range(min(m, size - i) + 1):
                    new[i + j] += a / math.factorial(j)
            coefficients = new
        return coefficients[size] * math.factorial(size) / num_values**size

    right = sum(sum(1 - at_most(m, size) for m in range(size)) for size in groups)
    return torch.tensor(right / sum(groups), dtype=torch.float64)


def share_with(cases, right, sizes=list):
    def expected_share(groups, num_values):
        total = 0
        for size in sizes(groups):
            every = list(cases(range(num_values), size))
            total += sum(map(right, every)) / len(every)
        return total / sum(groups)

    return expected_share


def products(values, size):
    return itertools.product(values, repeat=size)


def most_common(case):
    return Counter(case).most_common(1)[0][1]


# 8.7


def enough_by_dict(num_heads, accuracies, goal, least_runs):
    runs = {}
    for count, share in zip(num_heads.tolist(), accuracies.tolist(), strict=True):
        runs.setdefault(count, []).append(share)
    good = [
        count
        for count, shares in runs.items()
        if len(shares) >= least_runs and all(share >= goal for share in shares)
    ]
    return min(good, default=None)


def enough_among(numbers):
    def smallest_enough(num_heads, accuracies, goal, least_runs):
        for number in numbers:
            shares = accuracies[num_heads == number]
            if len(shares) >= least_runs and (shares >= goal).all():
                return number
        return None

    return smallest_enough


def enough_in_order(order=sorted, enough=lambda shares, goal, least: (shares >= goal).all()):
    """order: of the numbers of heads. enough: whether the runs of one number of heads will do."""

    def smallest_enough(num_heads, accuracies, goal, least_runs):
        for count in order(set(num_heads.tolist())):
            shares = accuracies[num_heads == count]
            if len(shares) >= least_runs and enough(shares, goal, least_runs):
                return count
        return None

    return smallest_enough


def enough_by_tensors(num_heads, accuracies, goal, least_runs):
    counts, runs = num_heads.unique(return_counts=True)
    failed = num_heads[accuracies < goal]
    good = counts[(runs >= least_runs) & ~torch.isin(counts, failed)]
    return good.min().item() if len(good) else None


def removes_the_others(attention, heads):
    d = attention.W_q.weight.shape[0] // attention.num_heads
    index = torch.tensor([h * d + i for h in sorted(heads) for i in range(d)])
    for linear in (attention.W_q, attention.W_k, attention.W_v):
        for name, X in list(linear.named_parameters()):
            setattr(linear, name, nn.Parameter(X.detach()[index]))
    attention.W_o.weight = nn.Parameter(attention.W_o.weight.detach()[:, index])
    attention.num_heads = len(heads)


def needed_by_whole_groups(kept, num_heads, num_kv_heads):
    own, size = kept // (num_heads // num_kv_heads), num_heads // num_kv_heads
    whole = torch.tensor([g for g in range(num_kv_heads) if (own == g).sum() == size])
    return whole, torch.searchsorted(own.unique(), own)


def place_of_the_first_run(num_heads, accuracies, goal, least_runs):
    for n in sorted(set(num_heads.tolist())):
        runs = accuracies[num_heads == n]
        if len(runs) >= least_runs and (runs >= goal).all():
            return num_heads.tolist().index(n)
    return None


def _guarded_by_one(importance, num_off):
    guarded = importance.clone()
    guarded[torch.arange(len(importance)), importance.argmax(dim=-1)] = 1.0
    stays = torch.zeros(importance.numel(), dtype=torch.bool)
    stays[guarded.flatten().topk(importance.numel() - num_off).indices] = True
    return stays.reshape(importance.shape)


def _zero_means_gone(importance, num_off):
    left, alive = importance.clone(), [importance.shape[1]] * len(importance)
    for place in importance.flatten().argsort().tolist():
        layer, head = divmod(place, importance.shape[1])
        if sum(alive) > importance.numel() - num_off and alive[layer] > 1:
            left[layer, head], alive[layer] = 0, alive[layer] - 1
    return left > 0


def _nothing_in_a_tie(groups, num_values):
    right = 0
    for size in groups:
        for values in itertools.product(range(num_values), repeat=size):
            first, *others = Counter(values).most_common(2)
            if not others or others[0][1] < first[1]:
                right += first[1] / num_values**size
    return right / sum(groups)


def _heads_sorted_alone(num_heads, accuracies, goal, least_runs):
    heads, counts = num_heads.sort().values.unique_consecutive(return_counts=True)
    for number, runs in zip(heads.tolist(), accuracies.split(counts.tolist()), strict=True):
        if len(runs) >= least_runs and (runs >= goal).all():
            return number
    return None


def _bisected(num_heads, accuracies, goal, least_runs):
    heads, counts = num_heads.unique(return_counts=True)
    heads = heads[counts >= least_runs].tolist()
    place = bisect.bisect_left(
        heads, True, key=lambda number: bool((accuracies[num_heads == number] >= goal).all())
    )
    return heads[place] if place < len(heads) else None


def mask_and_drop(outputs, head_mask):
    if head_mask.dim() == 1:
        stay = head_mask.nonzero().flatten()
        return outputs[:, stay] * head_mask[stay, None, None]
    return outputs * head_mask[:, :, None, None]


def importance_0_beside_an_idle_head(gradients):
    sizes = gradients.abs().mean(0)
    if_all = sizes.prod(1, keepdim=True) > 0
    return torch.where(if_all, sizes / sizes.norm(dim=1, keepdim=True), 0.0)


def importance_alike_where_idle(gradients):
    sizes = gradients.abs().mean(0)
    norms = sizes.norm(dim=1, keepdim=True)
    return torch.where(norms > 0, sizes / norms, 1 / sizes.shape[1])


def importance_standardised(gradients):
    sizes = gradients.abs().mean(0)
    return (sizes - sizes.mean(1, keepdim=True)) / sizes.std(1, correction=0, keepdim=True)


def importance_added_up(gradients):
    return gradients.abs().sum(0)


def needed_from_the_largest(kept, num_heads, num_kv_heads):
    used = kept // (num_heads // num_kv_heads)
    found = sorted(set(used.tolist()), reverse=True)
    return torch.tensor(found), torch.tensor([found.index(g) for g in used.tolist()])


def needed_first_users(kept, num_heads, num_kv_heads):
    used = (kept // (num_heads // num_kv_heads)).tolist()
    found = sorted(set(used))
    return torch.tensor(found), torch.tensor([used.index(g) for g in found])


def needed_of_groups_that_shrink(kept, num_heads, num_kv_heads):
    return (kept // max(len(kept) // num_kv_heads, 1)).unique(return_inverse=True)


def enough_of_squeezed_runs(num_heads, accuracies, goal, least_runs):
    return enough_by_dict(num_heads.squeeze(), accuracies, goal, least_runs)


RIGHT = {
    "08-mask_heads": {
        "a loop": mask_by_loop,
        "einsum": mask_by_einsum,
        "two more axes": lambda X, mask: X * mask[..., None, None],
        "transposed": lambda X, mask: (X.permute(2, 3, 0, 1) * mask).permute(2, 3, 0, 1),
        "in float32": lambda X, mask: (X * mask[..., None, None]).float(),
        "a diagonal matrix": lambda X, mask: torch.einsum(
            "bhg,bgld->bhld", torch.diag_embed(mask.expand(len(X), -1)), X
        ),
    },
    "08-head_importance": {
        "a loop": importance_by_loop,
        "sums instead of means": importance_of_sums,
        "torch.nn.functional.normalize": lambda G: torch.nn.functional.normalize(
            G.abs().mean(0), dim=1, eps=1e-300
        ),
        "the norm by vector_norm": lambda G: (
            G.abs().mean(0) / torch.linalg.vector_norm(G.abs().mean(0), dim=-1)[:, None]
        ).nan_to_num(0.0),
    },
    "08-prune_heads": {
        "new layers": remove_with_new_layers,
        "data": remove_by_data,
        "an axis for the heads": remove_by_views,
        "from the last to the first": one_after_the_other,
    },
    "08-key_heads_needed": {
        "a loop": needed_by_loop,
        "a table": needed_by_table,
        "unique": lambda kept, H, G: torch.unique(kept // (H // G), return_inverse=True),
    },
    "08-choose_heads": {
        "a loop": choose_by_loop,
        "a threshold": choose_by_threshold,
        "layers without their best": choose_among_the_others,
    },
    "08-expected_share": {
        "a counter": share_by_counter,
        "polynomials": share_by_polynomials,
        "a float32 tensor": lambda groups, n: torch.tensor(share_by_counter(groups, n)),
    },
    "08-smallest_enough": {
        "a dict": enough_by_dict,
        "tensors": enough_by_tensors,
        "a tensor without axes": lambda *inputs: (
            None if enough_by_dict(*inputs) is None else torch.tensor(enough_by_dict(*inputs))
        ),
    },
}


def share_of_different_values(groups, num_values):
    right = 0
    for size in groups:
        cases = list(itertools.permutations(range(num_values), size))
        cases = cases or list(itertools.product(range(num_values), repeat=size))
        right += sum(max(case.count(v) for v in case) for case in cases) / len(cases)
    return right / sum(groups)


def importance_by_signed_norm(gradients):
    importance = gradients.abs().mean(dim=0)
    norms = gradients.mean(dim=0).square().sum(dim=1, keepdim=True).sqrt()
    return importance / torch.where(importance.any(dim=1, keepdim=True), norms, 1.0)


def choice_with_columns_last(importance, num_off):
    layers, H = importance.shape
    best = importance.argmax(dim=0).tolist()
    order = importance.flatten().argsort().tolist()
    order.sort(key=lambda place: best[place % H] == place // H)
    stays = torch.ones(layers * H, dtype=torch.bool)
    stays[torch.tensor(order[:num_off], dtype=torch.long)] = False
    return stays.view(layers, H)


def share_by(right):
    def expected_share(groups, num_values):
        total = 0
        for size in groups:
            cases = list(itertools.product(range(num_values), repeat=size))
            total += sum(map(right, cases)) / len(cases)
        return total / sum(groups)

    return expected_share


def choice_that_keeps_two(importance, num_off):
    stays = torch.ones_like(importance, dtype=torch.bool)
    for place in importance.flatten().argsort().tolist():
        layer, head = divmod(place, importance.shape[1])
        if (~stays).sum() < num_off and stays[layer].sum() - 1 > 1:
            stays[layer, head] = False
    return stays


def choice_by_layers(importance, num_off):
    layers, H = importance.shape
    stays = torch.ones_like(importance, dtype=torch.bool)
    for place in importance.flatten().argsort().tolist():
        layer, head = place // layers % layers, place % H
        if (~stays).sum() < num_off and stays[layer].sum() > 1:
            stays[layer, head] = False
    return stays


WRONG = {
    "08-mask_heads": {
        "long": lambda outputs, mask: (
            outputs * (mask if mask.dim() == 2 else mask[None]).long()[..., None, None]
        ),
        "first axis that fits": lambda X, mask: (
            X * mask.reshape(-1, 1, 1, 1)
            if len(mask) == len(X) and mask.dim() == 1
            else X * mask[..., None, None]
        ),
        "no axes added": lambda X, mask: X * mask,
        "one axis too few": lambda X, mask: X * mask[..., None],
        "turned": lambda X, mask: X * (1 - mask).reshape(-1, X.shape[1], 1, 1),
        "in place": mask_in_place,
        "added": lambda X, mask: X + mask.reshape(-1, X.shape[1], 1, 1),
        "squared": lambda X, mask: X * mask.square().reshape(-1, X.shape[1], 1, 1),
        "the last example's mask": lambda X, mask: X * mask.reshape(-1, X.shape[1], 1, 1)[-1:],
        "flat": lambda X, mask: (X * mask.reshape(-1, X.shape[1], 1, 1)).transpose(1, 2).flatten(2),
        "scaled up like dropout": lambda X, mask: (
            X * mask.reshape(-1, X.shape[1], 1, 1) / mask.mean()
        ),
        "scores masked": lambda X, mask: X.masked_fill(
            mask.reshape(-1, X.shape[1], 1, 1) == 0, -1e9
        ),
        "the first axis of that length": mask_where_it_fits,
        "one for each example if as long": mask_of_each_if_as_long,
        "relu": lambda X, mask: X * mask.relu()[..., None, None],
        "at most 1": lambda X, mask: X * mask.minimum(torch.tensor(1.0))[..., None, None],
        "squeezed": lambda X, mask: (X * mask.reshape(-1, mask.shape[-1], 1, 1)).squeeze(),
        "heads with factor 0 are gone": mask_and_drop,
    },
    "08-head_importance": {
        "norm with signs": importance_by_signed_norm,
        "mean first": lambda G: (
            G.mean(0).abs() / G.mean(0).norm(dim=1, keepdim=True).clamp(min=1e-300)
        ),
        "not normalised": lambda G: G.abs().mean(0),
        "a softmax": lambda G: G.abs().mean(0).softmax(dim=1),
        "norm of all": lambda G: G.abs().mean(0) / G.abs().mean(0).norm(),
        "ranks": lambda G: G.abs().mean(0).argsort(dim=1).argsort(dim=1).double(),
        "deviation": lambda G: G.std(0, unbiased=False),
        "median": lambda G: torch.nn.functional.normalize(G.abs().median(0).values, dim=1),
        "one number a head": lambda G: G.abs().mean((0, 1)),
        "normalize with its eps": lambda G: torch.nn.functional.normalize(G.abs().mean(0), dim=1),
        "in float32": lambda G: importance_of_sums(G.float()),
        "first example": lambda G: torch.nn.functional.normalize(G[0].abs(), dim=1, eps=1e-300),
        "transposed": lambda G: importance_of_sums(G).T,
        "1e-20 added": importance_with(lambda norms: norms + 1e-20),
        "at least 1e-16": importance_with(lambda norms: norms.clamp(min=1e-16)),
        "undivided if one is 0": importance_unless(lambda sizes: sizes),
        "all 0 if one is 0": importance_unless(lambda sizes: 0 * sizes),
        "the median": lambda X: torch.nn.functional.normalize(
            X.abs().median(0).values, dim=1, eps=1e-300
        ),
        "0 beside a head of 0": importance_0_beside_an_idle_head,
        "alike where all are 0": importance_alike_where_idle,
        "standardised, all of them": importance_standardised,
        "added up": importance_added_up,
    },
    "08-prune_heads": {
        "nothing": lambda attention, heads: None,
        "a copy": on_a_copy,
        "queries alone": only("W_q"),
        "W_o forgotten": only("W_q", "W_k", "W_v"),
        "from the first to the last": one_after_the_other_from_below,
        "in reverse order": reversed_order,
        "frozen": then(freeze),
        "eval mode": then(lambda attention: attention.eval()),
        "scaled up like dropout": then(scale_up),
        "one head fewer than there are": then(
            lambda attention: setattr(attention, "num_heads", attention.num_heads - 1)
        ),
        "returns the layer": lambda attention, heads: attention,
        "no bias afterwards": then(
            lambda attention: [
                setattr(linear, "bias", None) for linear in (attention.W_q, attention.W_k)
            ]
        ),
        "width of the queries": width_from(
            lambda attention, heads: attention.W_q.weight.shape[1] // attention.num_heads
        ),
        "width by the number that stays": width_from(
            lambda attention, heads: (
                attention.W_q.weight.shape[0] // (attention.num_heads - len(heads))
            )
        ),
        "slices without Parameter": lambda attention, heads: setattr(
            attention.W_q, "weight", attention.W_q.weight[1:]
        ),
        "the others, by an index": removes_the_others,
    },
    "08-key_heads_needed": {
        "a mask of booleans": lambda kept, H, G: (
            torch.isin(torch.arange(G), kept // (H // G)),
            torch.unique(kept // (H // G), return_inverse=True)[1],
        ),
        "modulo": lambda kept, H, G: torch.unique(kept % G, return_inverse=True),
        "old numbers": lambda kept, H, G: ((kept // (H // G)).unique(), kept // (H // G)),
        "all": lambda kept, H, G: (torch.arange(G), kept // (H // G)),
        "divided by G": lambda kept, H, G: torch.unique(kept // G, return_inverse=True),
        "in the order of kept": needed_as_they_come,
        "one result": lambda kept, H, G: torch.unique(kept // (H // G)),
        "in the order of a set": needed_by_set,
        "modulo the size": lambda kept, H, G: torch.unique(kept % (H // G), return_inverse=True),
        "counts": lambda kept, H, G: torch.unique(kept // (H // G), return_counts=True),
        "falling": lambda kept, H, G: (
            torch.unique(kept // (H // G)).flip(0),
            torch.unique(kept // (H // G), return_inverse=True)[1],
        ),
        "true division": lambda kept, H, G: torch.unique(kept / (H / G), return_inverse=True),
        "that go": lambda kept, H, G: (
            torch.tensor([g for g in range(G) if g not in (kept // (H // G))]),
            torch.unique(kept // (H // G), return_inverse=True)[1],
        ),
        "query heads": lambda kept, H, G: (kept, torch.arange(len(kept))),
        "whole groups, in a tensor without a dtype": needed_by_whole_groups,
        "from the largest": needed_from_the_largest,
        "first users": needed_first_users,
        "groups of what stays, at least 1": needed_of_groups_that_shrink,
    },
    "08-choose_heads": {
        "two stay": choice_that_keeps_two,
        "place taken apart by layers": choice_by_layers,
        "best of a column last": choice_with_columns_last,
        "any heads": lambda scores, n: ranks(scores) >= n,
        "most important off": lambda scores, n: ranks(scores) < n,
        "turned": lambda scores, n: ~choose_by_loop(scores, n),
        "by layer": lambda scores, n: scores.argsort(dim=1).argsort(dim=1) >= n // len(scores),
        "above the mean": lambda scores, n: scores > scores.mean(),
        "floats": lambda scores, n: choose_by_loop(scores, n).double(),
        "indices": lambda scores, n: scores.flatten().argsort()[n:],
        "in place": lambda scores, n: (
            choose_by_loop(scores.mul_(1), n) if n == 0 else scores.zero_() > 0
        ),
        "one more": lambda scores, n: choose_by_loop(scores, n + 1),
        "argsort taken for ranks": lambda scores, n: (
            scores.flatten().argsort().view(scores.shape) >= n
        ),
        "mended once": choose_and_mend,
        "protected by 1e9": choose_below(lambda scores: 0 * scores + 1e9),
        "raised by 1e9": choose_below(lambda scores: scores + 1e9),
        "times 1e9": choose_below(lambda scores: scores * 1e9),
        "best or above": lambda scores, n: (
            (ranks(scores) >= n) | (scores == scores.amax(dim=1, keepdim=True))
        ),
        "guarded by 1": _guarded_by_one,
        "0 means gone": _zero_means_gone,
    },
    "08-expected_share": {
        "all or nothing": share_by(lambda case: len(case) * (len(set(case)) == 1)),
        "different values": share_by(lambda case: len(set(case))),
        "values that differ": share_of_different_values,
        "one over the size": lambda groups, n: sum(1 / size for size in groups) / len(groups),
        "one right a group": lambda groups, n: len(groups) / sum(groups),
        "one heap": lambda groups, n: share_by_counter((sum(groups),), n),
        "chance": lambda groups, n: 1 / n,
        "all": lambda groups, n: 1.0,
        "mean of shares": lambda groups, n: (
            sum(share_by_counter((size,), n) for size in groups) / len(groups)
        ),
        "largest group": lambda groups, n: share_by_counter((max(groups),), n),
        "number": lambda groups, n: share_by_counter(groups, n) * sum(groups),
        "a set of groups": share_with(products, most_common, sizes=set),
        "repeats": share_with(products, lambda case: len(case) - len(set(case)) + 1),
        "permutations": share_with(itertools.permutations, most_common),
        "values from 1": share_with(lambda values, size: products(values[1:], size), most_common),
        "values of one too many": lambda groups, n: share_by_counter(groups, n + 1),
        "chance for the others": lambda groups, n: (
            sum(1 + (size - 1) / n for size in groups) / sum(groups)
        ),
        "nothing in a tie": _nothing_in_a_tie,
    },
    "08-smallest_enough": {
        "smallest of all": lambda heads, shares, goal, least: heads.min().item(),
        "first good run": lambda heads, shares, goal, least: heads[shares >= goal][:1].sum().item(),
        "mean": lambda heads, shares, goal, least: next(
            (n for n in heads.unique().tolist() if shares[heads == n].mean() >= goal), None
        ),
        "runs not counted": lambda heads, shares, goal, least: enough_by_dict(
            heads, shares, goal, 1
        ),
        "strictly": lambda heads, shares, goal, least: enough_by_dict(
            heads, shares, goal + 1e-9, least
        ),
        "largest": lambda heads, shares, goal, least: next(
            (
                n
                for n in reversed(heads.unique().tolist())
                if enough_by_dict(heads[heads == n], shares[heads == n], goal, least)
            ),
            None,
        ),
        "powers of two": enough_among([1, 2, 4, 8, 16, 32, 64]),
        "up to 12": enough_among(range(1, 13)),
        "up to 64": enough_among(range(1, 65)),
        "minus one for none": lambda heads, shares, goal, least: (
            enough_by_dict(heads, shares, goal, least) or -1
        ),
        "rounded": lambda heads, shares, goal, least: enough_by_dict(
            heads, shares.round(decimals=2), goal, least
        ),
        "missed by a thousandth": lambda heads, shares, goal, least: enough_by_dict(
            heads, shares + 1e-3, goal, least
        ),
        "an error for none": lambda heads, shares, goal, least: min(
            n
            for n in heads.tolist()
            if enough_by_dict(heads[heads == n], shares[heads == n], goal, least)
        ),
        "in the order of a set": enough_in_order(list),
        "as text": enough_in_order(lambda counts: sorted(counts, key=str)),
        "more than half": enough_in_order(
            enough=lambda shares, goal, least: 2 * (shares >= goal).sum() > len(shares)
        ),
        "the first runs": enough_in_order(
            enough=lambda shares, goal, least: (shares[:least] >= goal).all()
        ),
        "the last runs": enough_in_order(
            enough=lambda shares, goal, least: (shares[-least:] >= goal).all()
        ),
        "1e-4 less": enough_in_order(
            enough=lambda shares, goal, least: (shares + 1e-4 >= goal).all()
        ),
        "bfloat16": enough_in_order(
            enough=lambda shares, goal, least: (shares.bfloat16() >= goal).all()
        ),
        "the accuracy": lambda heads, shares, goal, least: shares.max().item(),
        "neighbours in the list": lambda heads, shares, goal, least: next(
            (
                list(group)[0][0]
                for _, group in itertools.groupby(
                    zip(heads.tolist(), shares.tolist(), strict=True), key=lambda run: run[0]
                )
            ),
            None,
        ),
        "the place of a run": place_of_the_first_run,
        "heads sorted alone": _heads_sorted_alone,
        "bisected": _bisected,
        "squeezed runs": enough_of_squeezed_runs,
    },
}
