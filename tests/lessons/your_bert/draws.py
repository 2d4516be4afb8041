"""Inputs for the tasks of lesson 12."""

import torch
from lessons import normal, size

LOW = torch.finfo(torch.float32).min


def _whole(rng, low, high, *shape):
    generator = torch.Generator().manual_seed(rng.getrandbits(40))
    return torch.randint(low, high + 1, shape, generator=generator)


def _batch(rng, weak):
    return 1 if weak == "batch 1" else size(rng, 1, 4)


def embeddings(rng, weak=None):
    batch, length = _batch(rng, weak), size(rng, 1, 6)
    words, positions, segments, width = size(rng, 7, 13), size(rng, 6, 9), size(rng, 2, 4), 5
    mode = rng.choice(
        [
            {},
            {},
            {"hidden_dropout_prob": 1.0},
            {"attention_probs_dropout_prob": 1.0},
            {"hidden_dropout_prob": 0.25},
        ]
    )
    if (
        mode.get("hidden_dropout_prob") == 0.25
    ):  # enough numbers that some are dropped, some are kept
        batch, length, width = 3, 6, 11
    inputs = mode | {"layer_norm_eps": rng.choice([1e-12, 1e-5, 0.3])}
    inputs["words.weight"] = normal(rng, words, width, weak=weak)
    inputs["positions.weight"] = normal(rng, positions, width, weak=weak)
    inputs["segments.weight"] = normal(rng, segments, width, weak=weak)
    inputs |= {f"norm.{last}": normal(rng, width, weak=weak) for last in ("weight", "bias")}
    inputs["input_ids"] = _whole(rng, 0, words - 1, batch, length)
    if rng.random() < 0.6:
        inputs["token_type_ids"] = _whole(rng, 0, segments - 1, batch, length)
    return inputs


def encoder(rng, weak=None):
    batch, length, width = _batch(rng, weak), size(rng, 1, 6), size(rng, 1, 5)
    inputs = {"training": True} if rng.random() < 0.2 else {}
    for n in range(size(rng, 1, 5)):
        inputs[f"layers.{n}.W.weight"] = normal(rng, width, width, weak=weak) / width**0.5
        inputs[f"layers.{n}.W.bias"] = normal(rng, width, weak=weak)
    inputs["X"] = normal(rng, batch, length, width, weak=weak)
    if weak != "no mask" and rng.random() < 0.7:
        hidden = _whole(rng, 0, 1, batch, 1, 1, length) == 0
        mask = torch.zeros(hidden.shape, dtype=torch.float64).masked_fill(hidden, LOW)
        mask[..., 0] = 0
        soft = normal(rng, batch, 1, 1, length, weak=weak)
        inputs["mask"] = rng.choice([mask, soft])
    return inputs


def loading(rng, weak=None):
    width = size(rng, 2, 5)
    model = {"words.weight": (width + 1, width), "positions.weight": (width, width)}
    for n in rng.sample(range(13), 3):
        model |= {f"layers.{n}.W.weight": (width, width), f"layers.{n}.W.bias": (width,)}
    names = list(model)
    given = dict(model)
    if rng.random() < 0.2:  # nothing is wrong but one matrix, which lies on its side
        given["words.weight"] = given["words.weight"][::-1]
    elif rng.random() < 0.6:
        for name in rng.sample(names, size(rng, 0, 2)):
            del given[name]
        for name in rng.sample(
            ["layers.13.W.bias", "pooler.bias", "pooler.weight"], size(rng, 0, 2)
        ):
            given[name] = (width,)
        for name in rng.sample(names, size(rng, 0, 2)):
            shape = model[name]
            others = [(3, 7), (1, width), (1,), shape[::-1], (torch.Size(shape).numel(),)]
            if name in given:
                given[name] = rng.choice(others)
    order = rng.sample(list(given), len(given)) if rng.random() < 0.5 else list(given)
    dtype = rng.choice([torch.float64, torch.float32])
    weights = {name: normal(rng, *given[name], weak=weak).to(dtype) for name in order}
    return {"model": model, "state_dict": weights}


def mean(rng, weak=None):
    batch, length, width = _batch(rng, weak), size(rng, 1, 6), size(rng, 1, 5)
    mask = _whole(rng, 0, 1, batch, length)
    mask[torch.arange(batch), _whole(rng, 0, length - 1, batch)] = 1
    if weak in ("no mask", "all ones"):
        mask = torch.ones_like(mask)
    return {"hidden": normal(rng, batch, length, width, weak=weak), "attention_mask": mask}


def _scaled(rng, weak, count, width):
    """Vectors of very unequal lengths."""
    return normal(rng, count, width, weak=weak) * normal(rng, count, 1, weak=weak).exp() ** 1.5


def search(rng, weak=None):
    count, width = size(rng, 1, 41), size(rng, 2, 5)
    documents = _scaled(rng, weak, count, width)
    if rng.random() < 0.4:
        documents = torch.eye(width).double()[_whole(rng, 0, width - 1, count)]
    inputs = {"query": 3 * normal(rng, width, weak=weak), "documents": documents}
    return inputs | ({"k": size(rng, 1, 45)} if rng.random() < 0.8 else {})


def classify(rng, weak=None):
    kinds = rng.choice([["b", "c", "a"], [7, 2, 5, 3], ["no", "yes"], [4]])
    count, width = size(rng, len(kinds), 13), size(rng, 2, 5)
    labels = [*kinds, *(rng.choice(kinds) for _ in range(count - len(kinds)))]
    rng.shuffle(labels)
    if rng.random() < 0.3:
        width = len(kinds)
        return {
            "vectors": torch.ones(size(rng, 1, 3), width).double(),
            "examples": torch.eye(width).double(),
            "labels": list(kinds),
        }
    vectors = _scaled(rng, weak, 1 if weak == "batch 1" else size(rng, 1, 23), width)
    return {"vectors": vectors, "examples": _scaled(rng, weak, count, width), "labels": labels}


def neighbours(rng, weak=None):
    count, width = 1 if weak == "batch 1" else size(rng, 1, 13), size(rng, 2, 5)
    vectors = _scaled(rng, weak, count, width)
    if rng.random() < 0.4:  # along the axes, both ways: many equal cosines
        vectors = torch.eye(width).double()[_whole(rng, 0, width - 1, count)]
        vectors = vectors * (2.0 * _whole(rng, 0, 1, count, 1) - 1) * _whole(rng, 1, 3, count, 1)
    used = torch.ones(count, dtype=torch.int64)
    if weak != "no mask" and rng.random() < 0.7:
        used = _whole(rng, 0, 1, count)
        if rng.random() < 0.5:
            vectors = vectors * used[:, None]
    inputs = {"vectors": vectors, "used": used}
    return inputs | ({"k": size(rng, 1, 15)} if rng.random() < 0.8 else {})


def training_step(rng, weak=None):
    texts, classes, width = (
        _batch(rng, weak) + (weak != "batch 1"),
        size(rng, 2, 6),
        size(rng, 1, 5),
    )
    scale = rng.choice([0.0, 1.0, 1.0, 3000.0])
    inputs = {
        "W": scale * normal(rng, classes, width, weak=weak),
        "b": scale * normal(rng, classes, weak=weak),
        "vectors": normal(rng, texts, width, weak=weak),
        "targets": _whole(rng, 0, classes - 1, texts),
    }
    return inputs | ({"rate": rng.choice([0.3, 0.7, 2.0])} if rng.random() < 0.8 else {})


DRAWS = {
    "12-BertEmbeddings": embeddings,
    "12-BertEncoder": encoder,
    "12-load_weights": loading,
    "12-mean_pool": mean,
    "12-search": search,
    "12-neighbours": neighbours,
    "12-classify": classify,
    "12-training_step": training_step,
}
