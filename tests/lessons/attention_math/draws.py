"""Inputs for the tasks of lesson 01."""

import torch
from lessons import normal, size


def _scores(rng, shape, weak):
    """Scores around 0, or each row around a number far away from it, or with a wide spread."""
    x = normal(rng, *shape, weak=weak)
    kind = rng.choice(["plain", "far", "wide"])
    if weak == "all ones" or kind == "plain":
        return x
    if kind == "wide":
        return 900 * x
    return x + 2000 * normal(rng, *shape[:-1], 1)


def softmax(rng, weak=None):
    shape = [size(rng, 1, 6) for _ in range(rng.randint(1, 4))]
    if weak == "batch 1" and len(shape) > 1:
        shape[0] = 1
    if weak == "L = S" and len(shape) > 1:
        shape[-2] = shape[-1]
    return {"x": _scores(rng, shape, weak)}


def attend(rng, weak=None):
    num_keys, d = size(rng, 1), size(rng, 1)
    scale = rng.choice([0.5, 1, 60])
    return {
        "query": scale * normal(rng, d, weak=weak),
        "keys": scale * normal(rng, num_keys, d, weak=weak),
        "values": normal(rng, num_keys, d if rng.random() < 0.3 else size(rng, 1), weak=weak),
    }


def attention(rng, weak=None):
    batch = 1 if weak == "batch 1" else size(rng, 1, 4)
    num_keys, d = size(rng, 1), size(rng, 1)
    num_queries = num_keys if weak == "L = S" or rng.random() < 0.3 else size(rng, 1)
    scale = rng.choice([0.5, 1, 60])
    return {
        "queries": scale * normal(rng, batch, num_queries, d, weak=weak),
        "keys": scale * normal(rng, batch, num_keys, d, weak=weak),
        "values": normal(rng, batch, num_keys, size(rng, 1), weak=weak),
    }


def additive_scores(rng, weak=None):
    batch = 1 if weak == "batch 1" else size(rng, 1, 4)
    num_keys, num_hiddens = size(rng, 1), size(rng, 1)
    num_queries = num_keys if weak == "L = S" or rng.random() < 0.3 else size(rng, 1)
    widths = [num_hiddens] * 2 if rng.random() < 0.3 else [size(rng, 1), size(rng, 1)]
    return {
        "queries": normal(rng, batch, num_queries, widths[0], weak=weak),
        "keys": normal(rng, batch, num_keys, widths[1], weak=weak),
        "W_q": normal(rng, widths[0], num_hiddens, weak=weak),
        "W_k": normal(rng, widths[1], num_hiddens, weak=weak),
        "w_v": normal(rng, num_hiddens, weak=weak),
    }


def kernel_regression(rng, weak=None):
    num_known, d = size(rng, 1), size(rng, 1, 4)
    num_places = num_known if weak == "L = S" or rng.random() < 0.3 else size(rng, 1)
    scale = rng.choice([0.5, 1, 40])
    return {
        "places": scale * normal(rng, num_places, d, weak=weak),
        "known_places": normal(rng, num_known, d, weak=weak),
        "known_results": normal(rng, num_known, size(rng, 1, 3), weak=weak),
        "width": rng.choice([0.3, 0.7, 1, 2.5]),
    }


def query_for(rng, weak=None):
    d = size(rng, 1)
    num_keys = rng.choice([d + 1, size(rng, 2, max(2, d))])
    keys = normal(rng, num_keys, d, weak=weak) / 4 + rng.choice([0, 3])
    keys[: len(keys) - 1] += 2 * torch.eye(len(keys) - 1, d)
    return {"keys": keys, "weights": normal(rng, num_keys, weak=weak).softmax(0)}


def looking_matrices(rng, weak=None):
    kinds = size(rng, 2, 6)
    looks_at = (normal(rng, kinds, kinds, weak=weak) > 0.2).double()
    words = [rng.randrange(kinds) for _ in range(rng.choice([3, 7, 90]))]
    return {"looks_at": looks_at, "X": torch.eye(kinds, dtype=torch.float64)[words]}


DRAWS = {
    "01-softmax": softmax,
    "01-attend": attend,
    "01-attention": attention,
    "01-additive_scores": additive_scores,
    "01-kernel_regression": kernel_regression,
    "01-query_for": query_for,
    "01-looking_matrices": looking_matrices,
    "01-predictions": lambda rng, weak=None: {},
}
