"""Inputs for the tasks of lesson 02."""

import torch
from lessons import normal, size


def _shape(rng, weak):
    """Batch, queries and keys."""
    batch = 1 if weak == "batch 1" else size(rng, 1, 4)
    num_queries = size(rng, 1, 6)
    return batch, num_queries, num_queries if weak == "L = S" else size(rng, 1, 6)


def _lengths(rng, batch, num_queries, num_keys):
    """Lengths for sequences or for queries; or none at all."""
    kind = rng.choice(["none", "sequences", "queries"])
    if kind == "none":
        return {}
    count = batch if kind == "sequences" else batch * num_queries
    lens = torch.tensor([rng.randint(0, num_keys) for _ in range(count)])
    return {"valid_lens": lens if kind == "sequences" else lens.reshape(batch, num_queries)}


def scores(rng, weak=None):
    batch, num_queries, num_keys = _shape(rng, weak)
    d_k = size(rng, 1, 8)
    return {
        "queries": normal(rng, batch, num_queries, d_k, weak=weak),
        "keys": normal(rng, batch, num_keys, d_k, weak=weak),
    }


def softmax(rng, weak=None):
    shape = _shape(rng, weak)
    loudness = rng.choice([1.0, 4.0, 600.0])
    inputs = {"scores": (loudness * normal(rng, *shape, weak=weak)).clamp(-1000, 1000)}
    return inputs if weak == "no mask" else inputs | _lengths(rng, *shape)


def mask(rng, weak=None):
    return {"num_steps": size(rng, 1, 12)}


def attention(rng, weak=None):
    batch, num_queries, num_keys = shape = _shape(rng, weak)
    d_k, d_v = size(rng, 1, 8), size(rng, 1, 8)
    loudness = rng.choice([1.0, 3.0, 20.0])
    inputs = {
        "queries": loudness * normal(rng, batch, num_queries, d_k, weak=weak),
        "keys": loudness * normal(rng, batch, num_keys, d_k, weak=weak),
        "values": normal(rng, batch, num_keys, d_v, weak=weak),
    }
    return inputs if weak == "no mask" else inputs | _lengths(rng, *shape)


def mended(rng, weak=None):
    batch, steps, _ = _shape(rng, weak)
    d_k, d_v = size(rng, 1, 8), size(rng, 1, 8)
    loudness = rng.choice([1.0, 3.0, 40.0])
    return {
        "queries": loudness * normal(rng, batch, steps, d_k, weak=weak),
        "keys": loudness * normal(rng, batch, steps, d_k, weak=weak),
        "values": normal(rng, batch, steps, d_v, weak=weak),
    }


def window(rng, weak=None):
    batch, steps, _ = _shape(rng, weak)
    if weak == "no mask":
        lens = [steps] * batch
    else:
        lens = [rng.randint(0, steps) for _ in range(batch)]
    return {
        "num_steps": steps,
        "window": rng.randint(1, steps + 2),
        "valid_lens": torch.tensor(lens),
    }


def packed(rng, weak=None):
    batch, steps, _ = _shape(rng, weak)
    rows = []
    for _ in range(batch):
        numbers, row = rng.sample(range(8), 8), []
        length = steps if weak == "no mask" else rng.randint(0, steps)
        while len(row) < length:
            row += [numbers.pop()] * rng.randint(1, 3)
        rows.append((row[:length] + [-1] * steps)[:steps])
    return {"sentences": torch.tensor(rows)}


def key_to_hide(rng, weak=None):
    """Weights from a softmax, often with rows of zeros and with rows that see one key alone."""
    batch, num_queries, num_keys = _shape(rng, weak)
    key = rng.randrange(num_keys)
    weights = normal(rng, batch, num_queries, num_keys, weak=weak).softmax(-1)
    for row in weights.view(-1, num_keys):
        kind = rng.random()
        if kind < 0.3 and weak != "no mask":
            row.zero_()
        if kind < 0.15 and weak != "no mask":
            row[key if kind < 0.1 else 0] = 1.0
    values = normal(rng, batch, num_keys, size(rng, 1, 8), weak=weak)
    return {"output": weights @ values, "weights": weights, "values": values, "key": key}


DRAWS = {
    "02-scaled_scores": scores,
    "02-masked_softmax": softmax,
    "02-causal_mask": mask,
    "02-scaled_dot_product_attention": attention,
    "02-mended_attention": mended,
    "02-window_mask": window,
    "02-packed_mask": packed,
    "02-without_key": key_to_hide,
}
