"""Inputs for the tasks of lesson 08."""

import torch
from lessons import normal, size


def masks(rng, weak=None):
    batch = 1 if weak == "batch 1" else size(rng, 1, 4)
    heads = size(rng, 1, 5)
    width = heads if weak == "head count = head width" else size(rng, 1, 5)
    shape = [heads] if rng.random() < 0.5 else [batch, heads]
    outputs = normal(rng, batch, heads, size(rng, 1, 4), width, weak=weak)
    return {"outputs": outputs, "head_mask": normal(rng, *shape)}


def gradients(rng, weak=None):
    shape = size(rng, 1, 6), size(rng, 1, 4), size(rng, 1, 5)
    drawn = normal(rng, *shape, weak=weak) * 10.0 ** rng.randint(-13, 2)
    if rng.random() < 0.3:
        drawn[:, rng.randrange(shape[1])] = 0
    return {"gradients": drawn}


def removal(rng, weak=None):
    heads = size(rng, 2, 6)
    width = heads if weak == "head count = head width" else size(rng, 1, 5)
    num_hiddens, bias = heads * width, rng.random() < 0.5
    sizes = [size(rng, 1, 7) for _ in range(3)] if rng.random() < 0.5 else [num_hiddens] * 3
    inputs = {"num_heads": heads}
    for letter, given in zip("qkv", sizes, strict=True):
        inputs[f"W_{letter}.weight"] = normal(rng, num_hiddens, given, weak=weak)
    inputs["W_o.weight"] = normal(rng, num_hiddens, num_hiddens, weak=weak)
    if bias:
        inputs |= {f"W_{letter}.bias": normal(rng, num_hiddens, weak=weak) for letter in "qkvo"}
    inputs["heads"] = tuple(rng.sample(range(heads), rng.randint(0, heads - 1)))
    left = heads - len(inputs["heads"])
    if rng.random() < 0.5:
        inputs["later"] = tuple(rng.sample(range(left), rng.randint(0, left - 1)))
    num_queries = size(rng, 1, 4)
    num_keys = num_queries if weak == "L = S" else size(rng, 1, 4)
    batch = 1 if weak == "batch 1" else 2
    lengths = (num_queries, num_keys, num_keys)
    for name, given, length in zip(("queries", "keys", "values"), sizes, lengths, strict=True):
        inputs[name] = normal(rng, batch, length, given, weak=weak)
    return inputs


def groups_of_heads(rng, weak=None):
    key_heads = size(rng, 1, 12)
    heads = key_heads * size(rng, 1, 5)
    kept = rng.sample(range(heads), rng.randint(1, heads))
    return {"kept": torch.tensor(kept), "num_heads": heads, "num_kv_heads": key_heads}


def budget(rng, weak=None):
    layers, heads = size(rng, 1, 6), size(rng, 1, 6)
    order = torch.tensor(rng.sample(range(layers * heads), layers * heads)).double()
    off = rng.randint(0, layers * (heads - 1))
    return {"importance": order.reshape(layers, heads) + 0.5, "num_off": off}


def shared(rng, weak=None):
    groups = tuple(rng.choice([1, 1, 2, 3, 4]) for _ in range(size(rng, 1, 4)))
    return {"groups": groups, "num_values": size(rng, 1, 6)}


def runs(rng, weak=None):
    heads = [rng.choice([1, 3, 4, 8, 144]) for _ in range(size(rng, 1, 12))]
    shares = [rng.choice([0.5, 0.75, 0.875, 1.0, 1.0]) for _ in heads]
    inputs = {"num_heads": torch.tensor(heads), "accuracies": torch.tensor(shares).double()}
    return inputs | {"goal": rng.choice([0.75, 0.8, 0.875]), "least_runs": size(rng, 1, 3)}


DRAWS = {
    "08-mask_heads": masks,
    "08-head_importance": gradients,
    "08-prune_heads": removal,
    "08-key_heads_needed": groups_of_heads,
    "08-choose_heads": budget,
    "08-expected_share": shared,
    "08-smallest_enough": runs,
}
