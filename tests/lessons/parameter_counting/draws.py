"""Inputs for the tasks of lesson 05. None of them are tensors, so no strength can be left out."""

import math
import random

from lessons import size


def attention(rng: random.Random, weak=None):
    inputs = {"num_hiddens": size(rng, 1, 600)}
    return inputs | rng.choice([{}, {"bias": True}, {"bias": False}])


def block(rng: random.Random, weak=None):
    return {"num_hiddens": size(rng, 1, 500), "ffn_num_hiddens": size(rng, 1, 900)}


def bert(rng: random.Random, weak=None):
    names = ("vocab_size", "num_hiddens", "num_layers", "ffn_num_hiddens")
    inputs = {name: size(rng, 1, 50) for name in names}
    given = rng.randint(0, 2)  # of the two sizes that have a default
    return inputs | {name: size(rng, 1, 700) for name in ("max_len", "num_segments")[:given]}


def flops(rng: random.Random, weak=None):
    return {"num_tokens": size(rng, 1, 300), "num_hiddens": size(rng, 1, 300)}


def cache(rng: random.Random, weak=None):
    names = ("num_tokens", "num_layers", "num_kv_heads", "head_width")
    inputs = {name: size(rng, 1, 70) for name in names}
    given = rng.randint(0, 2)  # of the two sizes that have a default
    return inputs | {name: size(rng, 1, 9) for name in ("bytes_per_number", "batch_size")[:given]}


def width(rng: random.Random, weak=None):
    heads = size(rng, 1, 20)
    num_hiddens = heads * size(rng, 1, 20) if rng.random() < 0.5 else size(rng, 1, 400)
    return {"num_hiddens": num_hiddens, "num_heads": heads}


def grouped(rng: random.Random, weak=None):
    kv_heads = size(rng, 1, 9)
    inputs = {
        "num_hiddens": size(rng, 1, 500),
        "num_heads": kv_heads * size(rng, 1, 9),
        "num_kv_heads": kv_heads,
        "head_width": size(rng, 1, 140),
    }
    return inputs | rng.choice([{}, {"bias": True}, {"bias": False}])


def share(rng: random.Random, weak=None):
    percent = rng.choice([rng.randint(1, 90), 10 * rng.randint(1, 9)])  # tens often come out even
    widths = {"num_hiddens": size(rng, 1, 300), "ffn_num_hiddens": size(rng, 1, 900)}
    return {"percent": percent} | widths


def longest(rng: random.Random, weak=None):
    """Room for a few tokens; or for none, as the parameters need it all or more."""
    names = ("num_layers", "num_kv_heads", "head_width")
    model = {name: size(rng, 1, 20) for name in names}
    model |= {"bytes_per_number": rng.choice([1, 2, 4]), "batch_size": size(rng, 1, 9)}
    if rng.random() < 0.4:  # the defaults
        model |= {"bytes_per_number": 2, "batch_size": 1}
    parameters = size(rng, 1, 50_000)
    token = 2 * math.prod(model.values())
    room = rng.choice([size(rng, 0, 40) * token, size(rng, 0, 40 * token), -size(rng, 1, 400)])
    card = max(1, parameters * model["bytes_per_number"] + room)
    if (model["bytes_per_number"], model["batch_size"]) == (2, 1):
        del model["bytes_per_number"], model["batch_size"]
    return {"card_bytes": card, "num_parameters": parameters} | model


DRAWS = {
    "05-count_attention": attention,
    "05-count_block": block,
    "05-count_bert": bert,
    "05-attention_flops": flops,
    "05-cache_bytes": cache,
    "05-head_width": width,
    "05-count_grouped_attention": grouped,
    "05-length_for_share": share,
    "05-longest_text": longest,
}
