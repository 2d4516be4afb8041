"""Inputs for the tasks of lesson 04."""

import torch
from lessons import normal, size


def _heads(rng, weak):
    heads = size(rng, 1, 5)
    return heads, heads if weak == "head count = head width" else size(rng, 1, 5)


def _lengths(rng, batch, num_queries, num_keys):
    shape = (batch,) if rng.random() < 0.5 else (batch, num_queries)
    count = shape[0] if len(shape) == 1 else shape[0] * shape[1]
    return torch.tensor([rng.randint(0, num_keys) for _ in range(count)]).reshape(shape)


def split(rng, weak=None):
    heads, width = _heads(rng, weak)
    batch = 1 if weak == "batch 1" else size(rng, 1, 4)
    X = normal(rng, batch, size(rng, 1, 6), heads * width, weak=weak)
    return {"X": X, "num_heads": heads}


def merge(rng, weak=None):
    heads, width = _heads(rng, weak)
    batch = 1 if weak == "batch 1" else size(rng, 1, 4)
    X = normal(rng, batch * heads, size(rng, 1, 6), width, weak=weak)
    return {"X": X, "num_heads": heads}


def spread(rng, weak=None):
    batch = 1 if weak == "batch 1" else size(rng, 1, 4)
    lens = _lengths(rng, batch, size(rng, 1, 5), 9)
    return {"valid_lens": lens, "num_heads": size(rng, 1, 5)}


def module(rng, weak=None):
    heads, width = _heads(rng, weak)
    batch = 1 if weak == "batch 1" else size(rng, 1, 3)
    num_queries = size(rng, 1, 6)
    num_keys = num_queries if weak == "L = S" else size(rng, 1, 6)
    num_hiddens, bias = heads * width, rng.random() < 0.5
    widths = {"key_size": size(rng), "query_size": size(rng), "value_size": size(rng)}
    inputs = widths | {"num_hiddens": num_hiddens, "num_heads": heads}
    inputs |= {"dropout": rng.choice([0.0, 0.0, 1.0]), "bias": bias}
    for name, source in (("W_q", "query_size"), ("W_k", "key_size"), ("W_v", "value_size")):
        inputs[f"{name}.weight"] = normal(rng, num_hiddens, widths[source], weak=weak)
    inputs["W_o.weight"] = normal(rng, num_hiddens, num_hiddens, weak=weak)
    if bias:
        for name in ("W_q", "W_k", "W_v", "W_o"):
            inputs[f"{name}.bias"] = normal(rng, num_hiddens, weak=weak)
    inputs["queries"] = normal(rng, batch, num_queries, widths["query_size"], weak=weak)
    inputs["keys"] = normal(rng, batch, num_keys, widths["key_size"], weak=weak)
    inputs["values"] = normal(rng, batch, num_keys, widths["value_size"], weak=weak)
    if weak != "no mask" and rng.random() < 0.7:
        inputs["valid_lens"] = _lengths(rng, batch, num_queries, num_keys)
    return inputs


def loading(rng, weak=None):
    heads, width = _heads(rng, weak)
    num_hiddens = heads * width
    inputs = {"num_hiddens": num_hiddens, "num_heads": heads}
    inputs["in_proj_weight"] = normal(rng, 3 * num_hiddens, num_hiddens, weak=weak)
    inputs["out_proj.weight"] = normal(rng, num_hiddens, num_hiddens, weak=weak)
    if rng.random() < 0.5:
        inputs["in_proj_bias"] = normal(rng, 3 * num_hiddens, weak=weak)
        inputs["out_proj.bias"] = normal(rng, num_hiddens, weak=weak)
    if rng.random() < 0.3:
        inputs["frozen"] = True
    return inputs


def packed(rng, weak=None):
    heads, width = _heads(rng, weak)
    batch = 1 if weak == "batch 1" else size(rng, 1, 4)
    X = normal(rng, batch, size(rng, 1, 6), 3 * heads * width, weak=weak)
    return {"X": X, "num_heads": heads}


def repacked(rng, weak=None):
    heads, width = _heads(rng, weak)
    others = [size(rng, 1, 7)] if rng.random() < 0.6 else []
    rows = normal(rng, 3 * heads * width, *others, weak=weak)
    return {"packed": rows, "num_heads": heads}


def grouped(rng, weak=None):
    key_heads, width = _heads(rng, weak)
    batch = 1 if weak == "batch 1" else size(rng, 1, 4)
    X = normal(rng, batch, size(rng, 1, 6), key_heads * width, weak=weak)
    return {"X": X, "num_heads": key_heads * size(rng, 1, 4), "num_kv_heads": key_heads}


DRAWS = {
    "04-transpose_qkv": split,
    "04-transpose_output": merge,
    "04-spread_valid_lens": spread,
    "04-MultiHeadAttention": module,
    "04-load_torch_weights": loading,
    "04-split_packed": packed,
    "04-repack": repacked,
    "04-transpose_grouped": grouped,
}
