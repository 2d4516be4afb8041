"""Answers to 12.6 and 12.8: the nearest neighbours, one step of training."""

import math

import numpy as np
import torch
from torch.nn import functional as F


def neighbours_by_loop(vectors, used, k=3):
    """One text after the other, in plain numbers."""
    rows = []
    for place, row in enumerate(vectors.tolist()):
        found = []
        for other, column in enumerate(vectors.tolist()):
            if place != other and used[place] and used[other]:
                dot = sum(x * y for x, y in zip(row, column, strict=True))
                norms = math.hypot(*row) * math.hypot(*column)
                found.append((-dot / norms, other))
        best = [other for _, other in sorted(found)][:k]
        rows.append(best + [-1] * (k - len(best)))
    return rows


def neighbours_among_used(vectors, used, k=3):
    """The empty places are cut out; the numbers of the others are kept beside them."""
    result = torch.full((len(vectors), k), -1)
    places = used.nonzero().flatten()
    unit = F.normalize(vectors[places], dim=1)
    table = unit @ unit.T
    for row, place in enumerate(places.tolist()):
        order = table[row].argsort(descending=True, stable=True)
        found = places[order[order != row]][:k]
        result[place, : len(found)] = found
    return result


def neighbours_by_numpy(vectors, used, k=3):
    X, used = vectors.numpy(), used.numpy().astype(bool)
    norms = np.where(used, np.linalg.norm(X, axis=1), 1.0)[:, None]
    table = (X / norms) @ (X / norms).T
    table[~used], table[:, ~used] = -np.inf, -np.inf
    np.fill_diagonal(table, -np.inf)
    order = np.argsort(-table, axis=1, kind="stable")
    order = np.where(np.take_along_axis(table, order, axis=1) == -np.inf, -1, order)
    padded = np.pad(order, ((0, 0), (0, k)), constant_values=-1)
    return torch.from_numpy(padded[:, :k])


def neighbours_taken_out(vectors, used, k=3, keep=lambda result: result):
    """The best is taken out k times; int32."""
    norms = vectors.norm(dim=1).clamp(min=1e-12)
    table = vectors @ vectors.T / (norms * norms[:, None])
    table[used == 0] = -9
    table[:, used == 0] = -9
    table.fill_diagonal_(-9)
    columns = []
    for _ in range(k):
        best = table.max(dim=1).values
        place = (table == best[:, None]).int().argmax(dim=1)
        columns.append(torch.where(best < -2, -1, place))
        table[torch.arange(len(table)), place] = -9
    return keep(torch.stack(columns, dim=1).int())


def neighbours_clamped(vectors, used, k=3):
    norms = vectors.norm(dim=1)
    table = vectors @ vectors.T / (norms[:, None] * norms).clamp(min=1e-5)
    table = table.masked_fill((used[:, None] * used) == 0, -9).fill_diagonal_(-9)
    values, places = table.sort(dim=1, descending=True, stable=True)
    return F.pad(places.masked_fill(values < -5, -1), (0, k), value=-1)[:, :k]


def neighbours_as_first_written(vectors, used, k=3, cut=0, barred=-math.inf, rows=True, by=None):
    """Zeros have the cosine 0, whoever may not be found has `barred`, and column 0 may go."""
    table = F.normalize(vectors, dim=1) @ F.normalize(vectors, dim=1).T
    table[:, used == 0] = barred
    if rows:
        table[used == 0] = barred
    if not cut:
        table.fill_diagonal_(barred)
    places = table.argsort(dim=1, descending=True, stable=True)[:, cut : cut + k]
    places = places.masked_fill(table.gather(1, places) == (barred if by is None else by), -1)
    return F.pad(places, (0, k - places.shape[1]), value=-1)


def _first_written(use=lambda used: used, **how):
    return lambda vectors, used, k=3: neighbours_as_first_written(vectors, use(used), k, **how)


def neighbours_with_itself_last(vectors, used, k=3):
    """The text itself comes after all others that are in use, and before the empty places."""
    table = F.cosine_similarity(vectors[:, None], vectors, dim=2).fill_diagonal_(-5)
    order = table.masked_fill(used == 0, -9).argsort(dim=1, descending=True, stable=True)
    result = torch.full((len(vectors), k), -1)
    count = min(k, int(used.sum()))
    result[used == 1, :count] = order[used == 1, :count]
    return result


def neighbours_with_ones(vectors, used, k=3, unit=F.normalize, factor=1, rows=True):
    """A constant stands in empty places. factor: -1 for the other way round."""
    X = vectors.masked_fill(used[:, None] == 0, 1.0)
    X = X if unit is None else unit(X)
    table = (factor * X @ X.T).masked_fill(used == 0, -1e9).fill_diagonal_(-1e9)
    values, places = table.sort(dim=1, descending=True, stable=True)
    places = places.masked_fill(values < -1e8, -1)[:, :k]
    if rows:
        places[used == 0] = -1
    return F.pad(places, (0, k - places.shape[1]), value=-1)


def neighbours_of_a_product(vectors, used, k=3):
    """An empty place has the cosine 0, and stands before all that point the other way."""
    directions, everyone = F.normalize(vectors), torch.arange(len(vectors))
    table = (directions @ directions.T * used).fill_diagonal_(-torch.inf)
    order = table.argsort(dim=1, descending=True, stable=True)
    barred = (used[order] * used[:, None] == 0) | (order == everyone[:, None])
    return F.pad(order.masked_fill(barred, -1), (0, k), value=-1)[:, :k]


def neighbours_with_nan(vectors, used, k=3):
    table = vectors @ vectors.T / (vectors.norm(dim=1)[:, None] * vectors.norm(dim=1))
    table = (table * used - 2 * (1 - used)).fill_diagonal_(-2)
    values, places = table.sort(dim=1, descending=True, stable=True)
    places = places.masked_fill(values < -1.5, -1)[:, :k]
    places[used == 0] = -1
    return F.pad(places, (0, k - places.shape[1]), value=-1)


def _kept(change):
    return lambda vectors, used, k=3: neighbours_taken_out(vectors, used, k, change)


NEIGHBOURS_RIGHT = {
    "loop, lists": neighbours_by_loop,
    "cut out, numbered": neighbours_among_used,
    "numpy": neighbours_by_numpy,
    "taken out one by one": neighbours_taken_out,
    "pairs in float32": lambda vectors, used, k=3: neighbours_by_numpy(vectors.float(), used, k),
}


def stacked_first(vectors, used, k=3):
    torch.stack([vector for vector, taken in zip(vectors, used, strict=True) if taken])
    return next(iter(NEIGHBOURS_RIGHT.values()))(vectors, used, k)


def others_than(vectors, used, k=3):
    """Texts are told apart by their vectors."""
    table = []
    for place, vector in enumerate(vectors):
        others = [j for j in range(len(vectors)) if used[j] and not vectors[j].equal(vector)]
        cosines = {j: float(F.cosine_similarity(vector, vectors[j], dim=0)) for j in others}
        row = sorted(cosines, key=lambda j: -cosines[j])[:k] if used[place] else []
        table.append(row + [-1] * (k - len(row)))
    return torch.tensor(table)


NEIGHBOURS_WRONG = {
    "stacked": stacked_first,
    "told apart by vectors": others_than,
    "hidden with the lowest of float64": lambda vectors, used, k=3: neighbours_taken_out(
        vectors.masked_fill(used[:, None] == 0, torch.finfo(torch.float64).min), used, k
    ),
    "floats": _kept(lambda result: result.double()),
    "transposed": _kept(lambda result: result.mT),
    "turned round": _kept(lambda result: result.flip(1)),
    "one too few": _kept(lambda result: result[:, 1:]),
    "in order of places": _kept(lambda result: result.sort(dim=1).values),
    "N for nobody": _kept(lambda result: torch.where(result < 0, len(result), result)),
    "-1 in front": _kept(lambda result: result.gather(1, (result >= 0).int().argsort(stable=True))),
    "-1 for place 0": _kept(lambda result: torch.where(result == 0, -1, result)),
    "forbidden ones at the end": _first_written(by=9.0),
    "itself at the end": neighbours_with_itself_last,
    "first text only": _kept(lambda result: result[0]),
    "k=5 by default": lambda vectors, used, k=5: neighbours_taken_out(vectors, used, k),
    "used without a look": lambda vectors, used, k=3: neighbours_taken_out(
        vectors, torch.ones_like(used), k
    ),
    "used turned round": lambda vectors, used, k=3: neighbours_taken_out(vectors, 1 - used, k),
    "centred": lambda vectors, used, k=3: neighbours_taken_out(vectors - vectors.mean(0), used, k),
    "squared": lambda vectors, used, k=3: neighbours_taken_out(vectors.square(), used, k),
    "padding zeroed only": lambda vectors, used, k=3: neighbours_taken_out(
        vectors * used[:, None], torch.ones_like(used), k
    ),
    "product of norms clamped": lambda vectors, used, k=3: neighbours_clamped(vectors, used, k),
    "in place": lambda vectors, used, k=3: neighbours_taken_out(vectors.mul_(2), used, k),
    "column 0 cut off": _first_written(cut=1),
    "column 0 cut off, used ignored": _first_written(torch.ones_like, cut=1),
    "used ignored, zeros for 0 / 0": _first_written(torch.ones_like),
    "used ignored, nobody left out": _first_written(torch.ones_like, by=9.0),
    "empty rows answered": _first_written(rows=False),
    "0 for barred": _first_written(barred=0.0),
    "0 for barred, nobody left out": _first_written(barred=0.0, by=9),
    "-1 for barred": _first_written(barred=-1.0),
    "ones in empty places": lambda vectors, used, k=3: neighbours_with_ones(
        vectors, used, k, rows=False
    ),
    "dot products, upwards": lambda vectors, used, k=3: neighbours_with_ones(
        vectors, used, k, unit=None, factor=-1
    ),
    "NaN of empty places": neighbours_with_nan,
    "table times used": neighbours_of_a_product,
    "cosines": lambda vectors, used, k=3: F.normalize(vectors) @ F.normalize(vectors).T,
}


def step_by_loop(W, b, vectors, targets, rate=0.1):
    """Text after text, in plain numbers."""
    loss, grad_W, grad_b = 0.0, torch.zeros_like(W), torch.zeros_like(b)
    for vector, target in zip(vectors, targets.tolist(), strict=True):
        logits = W @ vector + b
        highest = logits.max()
        powers = (logits - highest).exp()
        loss += (highest + powers.sum().log() - logits[target]).item() / len(vectors)
        error = powers / powers.sum()
        error[target] -= 1
        grad_W += torch.outer(error, vector) / len(vectors)
        grad_b += error / len(vectors)
    return loss, W - rate * grad_W, b - rate * grad_b


def step_with_ones(W, b, vectors, targets, rate=0.1):
    """The bias is one more column, for a feature that is always 1."""
    whole = torch.cat([W, b[:, None]], dim=1)
    inputs = F.pad(vectors, (0, 1), value=1.0)
    logs = (inputs @ whole.T).log_softmax(1)
    hot = F.one_hot(targets, len(W)).to(W.dtype)
    whole = whole - rate / len(vectors) * (logs.exp() - hot).T @ inputs
    return -(logs * hot).sum(1).mean(), whole[:, :-1], whole[:, -1]


def step_with_float64_targets(W, b, vectors, targets, rate=0.1):
    logs = (vectors @ W.T + b).log_softmax(1)
    hot = F.one_hot(targets, len(W)).double()
    error = (logs.exp() - hot) / len(vectors)
    return -(logs * hot).sum(1).mean(), W - rate * error.T @ vectors, b - rate * error.sum(0)


def step_by_einsum(W, b, vectors, targets, rate=0.1):
    logits = torch.einsum("nd,cd->nc", vectors, W) + b
    norm = logits.logsumexp(1)
    loss = (norm - logits.gather(1, targets[:, None])[:, 0]).mean()
    error = (logits - norm[:, None]).exp()
    error[range(len(targets)), targets] -= 1
    new_W = W.clone().sub_(torch.einsum("nc,nd->cd", error, vectors), alpha=rate / len(targets))
    return [loss, new_W, b.add(error.mean(0), alpha=-rate)]


def step_by_classes(W, b, vectors, targets, rate=0.1):
    """Class after class, as a loss in numpy."""
    logs = F.log_softmax(F.linear(vectors, W, b), dim=-1)
    new_W, new_b = W.clone(), b.clone()
    for c in range(len(W)):
        error = (logs[:, c].exp() - (targets == c).to(W.dtype)) / len(targets)
        new_W[c] -= rate * (error @ vectors)
        new_b[c] -= rate * error.sum()
    picked = [logs[n, c].item() for n, c in enumerate(targets.tolist())]
    return -np.mean(picked), new_W, new_b


def _changed(change):
    def step(W, b, vectors, targets, rate=0.1):
        return change(*step_with_ones(W, b, vectors, targets, rate), W, b, rate)

    return step


def _with_loss(loss):
    """Another loss, of the probabilities and the targets; the right W and b."""

    def step(W, b, vectors, targets, rate=0.1):
        _, *moved = step_with_ones(W, b, vectors, targets, rate)
        return loss((vectors @ W.T + b).softmax(1), targets), *moved

    return step


def step_by_autograd(W, b, vectors, targets, rate=0.1):
    W, b = W.clone().requires_grad_(), b.clone().requires_grad_()
    loss = F.cross_entropy(vectors @ W.T + b, targets)
    loss.backward()
    return loss.detach(), W.detach() - rate * W.grad, b.detach() - rate * b.grad


def step_in_place(W, b, vectors, targets, rate=0.1):
    loss, new_W, new_b = step_with_ones(W, b, vectors, targets, rate)
    return loss, W.copy_(new_W), b.copy_(new_b)


def step_at_its_own_rate(W, b, vectors, targets, rate=0.1):
    """Goes on with 0.1 whatever the rate; 1 is taken off in place."""
    logs = (vectors @ W.T + b).log_softmax(1)
    rows, slope = torch.arange(len(targets)), logs.exp()
    slope[rows, targets] -= 1
    slope /= len(targets)
    return -logs[rows, targets].mean(), W - 0.1 * slope.T @ vectors, b - 0.1 * slope.sum(0)


STEP_RIGHT = {
    "loop": step_by_loop,
    "a column of ones": step_with_ones,
    "einsum, a list": step_by_einsum,
    "class after class": step_by_classes,
    "numbers, no tensors": lambda *inputs: [
        step_by_loop(*inputs)[0],
        *step_with_ones(*inputs)[1:],
    ],
}


def rate_or_default(W, b, vectors, targets, rate=0.1):
    return next(iter(STEP_RIGHT.values()))(W, b, vectors, targets, rate or 0.1)


STEP_WRONG = {
    "rate or 0.1": rate_or_default,
    "float64 whatever is given": step_with_float64_targets,
    "autograd": step_by_autograd,
    "in place": step_in_place,
    "a rate of its own": step_at_its_own_rate,
    "two values": _changed(lambda loss, new_W, new_b, *old: (new_W, new_b)),
    "loss only": _changed(lambda loss, *rest: loss),
    "dict": _changed(lambda loss, new_W, new_b, *old: {"loss": loss, "W": new_W, "b": new_b}),
    "nothing moves": _changed(lambda loss, new_W, new_b, W, b, rate: (loss, W, b)),
    "half a step": _changed(
        lambda loss, new_W, new_b, W, b, rate: (loss, (W + new_W) / 2, (b + new_b) / 2)
    ),
    "two steps": _changed(
        lambda loss, new_W, new_b, W, b, rate: (loss, 2 * new_W - W, 2 * new_b - b)
    ),
    "weights decay": _changed(
        lambda loss, new_W, new_b, W, b, rate: (loss, new_W - 0.01 * rate * W, new_b)
    ),
    "signs only": _changed(
        lambda loss, new_W, new_b, W, b, rate: (
            loss,
            W + rate * (new_W - W).sign(),
            b + rate * (new_b - b).sign(),
        )
    ),
    "logarithm to base 2": _changed(
        lambda loss, new_W, new_b, *old: (loss / math.log(2), new_W, new_b)
    ),
    "loss rounded": _changed(
        lambda loss, new_W, new_b, *old: (round(float(loss), 2), new_W, new_b)
    ),
    "something added in the logarithm": _with_loss(
        lambda p, targets: -(p[range(len(p)), targets] + 1e-9).log().mean()
    ),
    "probability clamped": _with_loss(
        lambda p, targets: -p[range(len(p)), targets].clamp(min=1e-300).log().mean()
    ),
    "all targets": _with_loss(lambda p, targets: -(p + 1e-300).log()[:, targets].mean()),
    "squared error for loss": _with_loss(
        lambda p, targets: (p - F.one_hot(targets, p.shape[1])).square().mean()
    ),
    "loss as text": _changed(lambda loss, new_W, new_b, *old: (f"{loss:.4f}", new_W, new_b)),
    "bias as a column": _changed(lambda loss, new_W, new_b, *old: (loss, new_W, new_b[:, None])),
    "a loss for each class": _changed(
        lambda loss, new_W, new_b, *old: (loss.expand(len(new_b)), new_W, new_b)
    ),
    "rate of 0.5 by default": lambda W, b, vectors, targets, rate=0.5: step_with_ones(
        W, b, vectors, targets, rate
    ),
    "next class": lambda W, b, vectors, targets, rate=0.1: step_with_ones(
        W, b, vectors, (targets + 1) % len(W), rate
    ),
}
