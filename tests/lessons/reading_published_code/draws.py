"""Inputs for the tasks of lesson 11."""

import torch
from lessons import normal, size

from mha_classroom.tasks.reading_published_code.first_test import PLAIN
from mha_classroom.tasks.reading_published_code.runs import NAMES, SUSPECTS


def _heads(rng, weak):
    heads = size(rng, 1, 4)
    return heads, heads if weak == "head count = head width" else size(rng, 1, 5)


def attend(rng, weak=None):
    heads, width = _heads(rng, weak)
    batch = 1 if weak == "batch 1" else size(rng, 1, 3)
    num_queries = size(rng, 1, 6)
    inputs = {"queries": normal(rng, batch, num_queries, heads * width, weak=weak)}
    if rng.random() < 0.2:
        inputs["queries"] = 3000 * inputs["queries"]
    if rng.random() < 0.7:
        num_keys = num_queries if weak == "L = S" else size(rng, 1, 6)
        inputs["keys"] = normal(rng, batch, num_keys, heads * width, weak=weak)
        inputs["values"] = normal(rng, batch, num_keys, heads * width, weak=weak)
    return inputs | {"num_heads": heads}


def step(rng, weak=None):
    batch = 1 if weak == "batch 1" else size(rng, 1, 3)
    heads, width, new = size(rng, 1, 3), size(rng, 1, 5), size(rng, 1, 4)
    words = new if weak == "L = S" else new + size(rng, 0, 4)
    factor = 3000 if rng.random() < 0.2 else 1
    return {
        "queries": factor * normal(rng, batch, heads, new, width, weak=weak),
        "keys": normal(rng, batch, heads, words, width, weak=weak),
        "values": normal(rng, batch, heads, words, size(rng, 1, 5), weak=weak),
    }


def learning(rng, weak=None):
    heads, width = _heads(rng, weak)
    d_model, batch = heads * width, 1 if weak == "batch 1" else size(rng, 1, 3)
    inputs = {"num_heads": heads}
    for head in range(heads):
        inputs[f"heads.{head}.weight"] = normal(rng, 3 * width, d_model, weak=weak) / 2
    inputs["W_o.weight"] = normal(rng, d_model, d_model, weak=weak) / 2
    factor = 50 if rng.random() < 0.2 else 1
    return inputs | {"X": factor * normal(rng, batch, size(rng, 2, 6), d_model, weak=weak)}


def weighing(rng, weak=None):
    batch = 1 if weak == "batch 1" else size(rng, 1, 4)
    heads = size(rng, 1, 4)
    num_keys = size(rng, 1, 6)
    num_queries = num_keys if weak == "L = S" else size(rng, 1, 6)
    share = 1 if weak == "no mask" else rng.choice([0.2, 0.5, 0.8])
    real = [[rng.random() < share for _ in range(num_keys)] for _ in range(batch)]
    factor = 3000 if rng.random() < 0.2 else 1
    scores = factor * normal(rng, batch, heads, num_queries, num_keys, weak=weak)
    return {"scores": scores, "real": torch.tensor(real)}


def promises(rng, weak=None):
    suspect = rng.randrange(len(SUSPECTS))
    batch, width, num_queries = size(rng, 2, 4), size(rng, 2, 5), size(rng, 2, 5)
    alike = SUSPECTS[suspect].__name__ == "causal"
    num_keys = num_queries if alike or weak == "L = S" else size(rng, 3, 6)
    lens = [rng.randint(1, num_keys) for _ in range(batch)]
    lens[-1] = rng.randint(1, num_keys - 1)
    return {
        "suspect": suspect,
        "queries": normal(rng, batch, num_queries, width, weak=weak),
        "keys": normal(rng, batch, num_keys, width, weak=weak),
        "values": normal(rng, batch, num_keys, size(rng, 1, 5), weak=weak),
        "valid_lens": torch.tensor(lens),
    }


def some(names, count):
    def draw(rng, weak=None):
        chosen = rng.sample(names, count)
        return {"implementations": torch.tensor([NAMES.index(name) for name in chosen])}

    return draw


DRAWS = {
    "11-mended_attend": attend,
    "11-mended_step": step,
    "11-MendedAttention": learning,
    "11-mended_weights": weighing,
    "11-broken_promises": promises,
    "11-first_test": some(PLAIN, 3),
    "11-my_test": some(NAMES, 3),
}
