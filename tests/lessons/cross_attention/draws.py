"""Inputs for the tasks of lesson 10."""

import torch
from lessons import normal, size


def _batch(rng, weak):
    return 1 if weak == "batch 1" else size(rng, 1, 4)


def _lengths(rng, batch, longest, weak, low=1):
    if weak == "no mask":
        return torch.full((batch,), longest)
    return torch.tensor([rng.randint(low, longest) for _ in range(batch)])


def step(rng, weak=None):
    batch, states, hidden, query_size = _batch(rng, weak), size(rng, 1), size(rng, 1), size(rng, 1)
    loud = 500 if rng.random() < 0.2 else 1
    return {
        "state": normal(rng, batch, query_size, weak=weak),
        "ready_keys": normal(rng, batch, states, hidden, weak=weak),
        "states": normal(rng, batch, states, size(rng, 1), weak=weak),
        "valid_lens": _lengths(rng, batch, states, weak),
        "W_q": normal(rng, query_size, hidden, weak=weak),
        "w_v": loud * normal(rng, hidden, weak=weak),
    }


def masks(rng, weak=None):
    batch, reads = _batch(rng, weak), size(rng, 1)
    writes = reads if weak == "L = S" else size(rng, 1)
    pad = 11 if weak == "no mask" else rng.randint(0, 4)
    source = torch.tensor([[rng.randint(0, 4) for _ in range(reads)] for _ in range(batch)])
    target = torch.tensor([[rng.randint(0, 4) for _ in range(writes)] for _ in range(batch)])
    return {"source": source, "target": target, "pad": pad}


def cross(rng, weak=None):
    batch, heads, keys, width = _batch(rng, weak), size(rng, 1, 5), size(rng, 1), size(rng, 1, 5)
    width = heads if weak == "head count = head width" else width
    d_model, d_v = size(rng, 1), size(rng, 1)
    loud = 500 if rng.random() < 0.2 else 1
    return {
        "y": loud * normal(rng, batch, d_model, weak=weak),
        "keys": normal(rng, batch, heads, keys, width, weak=weak),
        "values": normal(rng, batch, heads, keys, d_v, weak=weak),
        "memory_lens": _lengths(rng, batch, keys, weak, low=0),
        "W_q": normal(rng, d_model, heads * width, weak=weak),
        "W_o": normal(rng, heads * d_v, size(rng, 1), weak=weak),
    }


def layer(rng, weak=None):
    batch, heads, inner, reads = _batch(rng, weak), size(rng, 1, 3), size(rng), size(rng, 1)
    d = heads * (heads if weak == "head count = head width" else size(rng, 2, 3))
    writes = reads if weak == "L = S" else size(rng, 1)
    attention = [(3 * d, d), (3 * d,), (d, d), (d,)]
    shapes = [*attention, *attention, (inner, d), (inner,), (d, inner), (d,), *[(d,)] * 6]
    weights = [normal(rng, *shape, weak=weak) for shape in shapes]
    for k in (0, 4):  # the matrices of queries, keys and values
        weights[k] = weights[k] / 2
    return {
        "num_inner": inner,
        "num_heads": heads,
        "norm_first": rng.random() < 0.5,
        "activation": rng.choice(["relu", "gelu"]),
        "weights": torch.cat([weight.flatten() for weight in weights]),
        "Y": normal(rng, batch, writes, d, weak=weak),
        "memory": normal(rng, batch, reads, d, weak=weak),
        "memory_lens": _lengths(rng, batch, reads, weak),
    }


def writing(rng, weak=None):
    batch, longest, tokens = _batch(rng, weak), size(rng, 1), size(rng, 4, 7)
    special = rng.sample(range(tokens), 3)
    at_step = normal(rng, longest, batch, tokens)
    for b in range(batch):  # about half of the rows end
        at_step[rng.randrange(2 * longest) % longest, b, special[1]] += rng.choice([0, 20])
    return {"at_step": at_step, "after": normal(rng, tokens, tokens), "tokens": tuple(special)}


def beams(rng, weak=None):
    batch, count, tokens = _batch(rng, weak), size(rng, 1, 4), size(rng, 4, 7)
    loud = rng.choice([1, 1, 1, 300])
    return {
        "totals": -normal(rng, batch, count).abs(),
        "scores": loud * normal(rng, batch, count, tokens),
        "ended": torch.tensor(
            [[weak != "no mask" and rng.random() < 0.4 for _ in range(count)] for _ in range(batch)]
        ),
        "pad": rng.randrange(tokens),
    }


def positions(rng, weak=None):
    d = 2 * size(rng, 1, 5)
    places = torch.tensor([rng.uniform(0, 50) for _ in range(size(rng, 1))]).double()[:, None]
    P = torch.empty(len(places), d, dtype=torch.float64)
    for i in range(d // 2):
        angles = places[:, 0] / 10000 ** (2 * i / d)
        P[:, 2 * i], P[:, 2 * i + 1] = torch.sin(angles), torch.cos(angles)
    return {"P": P, "shift": rng.choice([1, 3, -2, 0, 0.25, 40])}


DRAWS = {
    "10-bahdanau_step": step,
    "10-three_masks": masks,
    "10-cross_step": cross,
    "10-decoder_layer": layer,
    "10-greedy": writing,
    "10-beam_step": beams,
    "10-shift_positions": positions,
}
