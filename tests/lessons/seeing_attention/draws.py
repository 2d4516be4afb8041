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
        row = torch.tensor([rng.choice([1, 2, 4]) for _ in range(length)]).double() / 64
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


DRAWS = {
    "07-most_attended": most_attended,
    "07-entropy": entropy,
    "07-offset_score": offset_score,
    "07-find_head": find_head,
}
