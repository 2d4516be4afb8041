"""Inputs for the tasks of lesson 07."""

import torch
from lessons import normal, size


def _weights(rng, *shape, weak=None):
    """Weights as softmax makes them: broad, sharp, or some of them exactly 0."""
    kind = rng.choice(["broad", "sharp", "holes"])
    scores = normal(rng, *shape, weak=weak)
    if weak == "all ones":
        return scores.softmax(dim=-1)
    weights = (scores * (200 if kind == "sharp" else 2)).softmax(dim=-1)
    if kind == "holes":
        weights = weights * (scores > -0.3)
        weights[..., 0] += 0.05
    return weights / weights.sum(dim=-1, keepdim=True)


def _batch(rng, weak):
    """Axes in front: sentences, layers, heads."""
    shape = [size(rng, 1, 4) for _ in range(rng.randint(0, 3))]
    if weak == "batch 1":
        shape = [1] * len(shape)
    return shape


def most_attended(rng, weak=None):
    length = size(rng, 1, 9)
    if rng.random() < 0.3 and weak != "all ones":  # equal means, exact in binary
        row = torch.tensor([rng.choice([0, 1, 2, 4]) for _ in range(length)]).double() / 64
        weights = row.expand(length, length).clone()
    else:
        weights = _weights(rng, length, length, weak=weak)
    words = ["[CLS]", "[SEP]", "the", "cat", "sat", "on", "a", "mat"]
    inputs = {"weights": weights, "tokens": [rng.choice(words) for _ in range(length)]}
    return inputs if rng.random() < 0.3 else inputs | {"k": size(rng, 1, 11)}


def entropy(rng, weak=None):
    num_keys = size(rng, 1, 40)
    num_queries = num_keys if weak == "L = S" or rng.random() < 0.3 else size(rng, 1, 9)
    return {"weights": _weights(rng, *_batch(rng, weak), num_queries, num_keys, weak=weak)}


def offset_score(rng, weak=None):
    length = size(rng, 1, 8)
    weights = _weights(rng, *_batch(rng, weak), length, length, weak=weak)
    return {"weights": weights, "offset": rng.randint(1 - length, length - 1)}


def find_head(rng, weak=None):
    """One head is made to look at the offset, so that no two are equal."""
    length, layers, heads = size(rng, 2, 8), size(rng, 1, 5), size(rng, 1, 6)
    if weak == "batch 1":
        layers = 1
    weights = _weights(rng, layers, heads, length, length, weak=weak)
    offset = rng.randint(1 - length, length - 1)
    chosen = weights[rng.randrange(layers), rng.randrange(heads)]
    queries = torch.arange(max(0, -offset), min(length, length - offset))
    chosen[queries] *= 0.01
    chosen[queries, queries + offset] += 0.99
    return {"weights": weights, "offset": offset}


def steady_head(rng, weak=None):
    """Some heads are made to look at the offset, a little or much; often one passes."""
    texts, layers, heads = size(rng, 1, 4), size(rng, 1, 4), size(rng, 1, 5)
    if weak == "batch 1":
        texts = 1
    lens = [size(rng, 1, 7) for _ in range(texts)]
    length = max(lens) + rng.randrange(3)
    offset = rng.randint(-3, 3)
    weights = _weights(rng, texts, layers, heads, length, length, weak=weak)
    for _ in range(rng.randrange(4)):
        layer, head = rng.randrange(layers), rng.randrange(heads)
        for text, used in enumerate(lens):
            share = rng.choice([0.2, 0.6, 0.9]) * rng.random() ** 0.3
            queries = torch.arange(max(0, -offset), max(0, -offset, min(used, used - offset)))
            weights[text, layer, head, queries] *= 1 - share
            weights[text, layer, head, queries, queries + offset] += share
    weights += 1e-4 * torch.arange(layers * heads).view(1, layers, heads, 1, 1)  # no two are equal
    at_least = rng.choice([0.0, 0.1, 0.2, 0.4, 0.6])
    if weak is None and rng.random() < 0.4:
        # One head is just good enough. Another has a better mean, and fails in the first text.
        at_least = 0.5
        scores = [[0.5] * texts, [0.0] + [0.875] * (texts - 1)][: layers * heads]
        for score, place in zip(
            scores, rng.sample(range(layers * heads), len(scores)), strict=True
        ):
            layer, head = divmod(place, heads)
            for text in range(texts):
                weights[text, layer, head].diagonal(offset).fill_(score[text])
    return {"weights": weights, "lens": torch.tensor(lens), "offset": offset, "at_least": at_least}


def beyond_offset(rng, weak=None):
    """Tagged pairs of which none takes up all places at its distance."""
    length = size(rng, 3, 8)
    weights = _weights(rng, *_batch(rng, weak), length, length, weak=weak)
    places = [(i, j) for i in range(length) for j in range(length) if abs(j - i) < length - 1]
    pairs = []
    for i, j in rng.sample(places, rng.randint(1, 6)):
        taken = sum(b - a == j - i for a, b in pairs)
        if taken < length - abs(j - i) - 1:
            pairs.append((i, j))
    return {"weights": weights, "pairs": tuple(pairs)}


def shares_along(rng, weak=None):
    batch, heads = (1 if weak == "batch 1" else size(rng, 1, 3)), size(rng, 1, 4)
    width = heads if weak == "head count = head width" else size(rng, 1, 4)
    keys = size(rng, 1, 7)
    queries = keys if weak == "L = S" or rng.random() < 0.3 else size(rng, 1, 5)
    d_model = heads * width if rng.random() < 0.5 else size(rng, 2, 9)
    scale = rng.choice([1.0, 0.002])
    return {
        "weights": _weights(rng, batch, heads, queries, keys, weak=weak),
        "values": scale * (normal(rng, batch, heads, keys, width, weak=weak) + 0.8),
        "W_o": normal(rng, d_model, heads * width, weak=weak) + 0.5,
    }


DRAWS = {
    "07-most_attended": most_attended,
    "07-entropy": entropy,
    "07-offset_score": offset_score,
    "07-find_head": find_head,
    "07-steady_head": steady_head,
    "07-beyond_offset": beyond_offset,
    "07-shares_along": shares_along,
}
