"""Inputs for the tasks of lesson 09."""

import torch
from lessons import normal, size


def _batch(rng, weak):
    return 1 if weak == "batch 1" else size(rng, 1, 3)


def _lengths(rng, weak, longest=9):
    """L queries that are the last of S keys."""
    num_keys = size(rng, 1, longest)
    return num_keys if weak == "L = S" else size(rng, 1, num_keys), num_keys


def one_pass(rng, weak=None):
    scores = normal(rng, _batch(rng, weak), size(rng, 1, 11), weak=weak) * rng.choice([1, 30, 900])
    if weak != "no mask" and rng.random() < 0.7:
        scores[torch.rand(scores.shape, generator=_generator(rng)) < 0.5] = -torch.inf
    return {"scores": scores, "tile": size(rng, 1, 6)}


def _generator(rng):
    return torch.Generator().manual_seed(rng.getrandbits(31))


def merge(rng, weak=None):
    parts, num_queries = size(rng, 1, 5), size(rng, 1, 5)
    outputs = normal(rng, parts, num_queries, size(rng, 1, 6), weak=weak)
    largest = normal(rng, parts, num_queries, weak=weak) * rng.choice([1, 5, 700])
    totals = 1 + normal(rng, parts, num_queries, weak=weak).abs()
    if weak != "no mask" and rng.random() < 0.7:
        empty = torch.rand(parts, num_queries, generator=_generator(rng)) < 0.4
        outputs[empty], largest[empty], totals[empty] = 0.0, -torch.inf, 0.0
    return {"outputs": outputs, "largest": largest, "totals": totals}


def tiles(rng, weak=None):
    B, H, d_k, d_v = _batch(rng, weak), size(rng, 1, 4), size(rng), size(rng)
    L, S = _lengths(rng, weak)
    scale = rng.choice([1, 1, 100])
    return {
        "queries": scale * normal(rng, B, H, L, d_k, weak=weak),
        "keys": normal(rng, B, H, S, d_k, weak=weak),
        "values": normal(rng, B, H, S, d_v, weak=weak),
        "tile": size(rng, 1, 6),
    }


def traffic(rng, weak=None):
    L, S = size(rng, 1, 40), size(rng, 1, 40)
    d_k, d_v, tile, numbers = size(rng), size(rng), size(rng), rng.choice([1, 2, 4])
    room = tile * (d_k + d_v) + size(rng, 1, 5) * (d_k + d_v + tile) + size(rng, 0, 9)
    inputs = {"num_queries": L, "num_keys": S, "d_k": d_k, "d_v": d_v, "tile": tile}
    inputs["fast_bytes"] = room * numbers + size(rng, 0, numbers - 1)
    return inputs | ({"bytes_per_number": numbers} if numbers != 2 else {})


def ring(rng, weak=None):
    B, H, W, d_k, d_v = _batch(rng, weak), size(rng, 1, 4), size(rng, 1, 6), size(rng), size(rng)
    return {
        "query": normal(rng, B, H, d_k, weak=weak),
        "key": normal(rng, B, H, d_k, weak=weak),
        "value": normal(rng, B, H, d_v, weak=weak),
        "kept_keys": normal(rng, B, H, W, d_k, weak=weak),
        "kept_values": normal(rng, B, H, W, d_v, weak=weak),
        "t": size(rng, 0, 3 * W),
    }


def grouped(rng, weak=None):
    B, G, d_k, d_v = _batch(rng, weak), size(rng, 1, 3), size(rng), size(rng)
    L, S = _lengths(rng, weak)
    return {
        "queries": normal(rng, B, G * size(rng, 1, 4), L, d_k, weak=weak),
        "keys": normal(rng, B, G, S, d_k, weak=weak),
        "values": normal(rng, B, G, S, d_v, weak=weak),
    }


def weights(rng, weak=None):
    G, group = size(rng, 1, 4), size(rng, 1, 4)
    width = G * group if weak == "head count = head width" else size(rng, 1, 5)
    others = [size(rng, 1, 7)] if rng.random() < 0.7 else []
    weight = normal(rng, G * group * width, *others, weak=weak)
    return {"weight": weight, "num_heads": G * group, "num_kv_heads": G}


DRAWS = {
    "09-log_sum_exp": one_pass,
    "09-merge_parts": merge,
    "09-causal_tiles": tiles,
    "09-moved_bytes": traffic,
    "09-ring_step": ring,
    "09-grouped_attention": grouped,
    "09-group_heads": weights,
}
