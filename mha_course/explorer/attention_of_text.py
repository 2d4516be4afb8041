"""The attention of a text: its tokens, and the weights of every layer and head."""

import math
from dataclasses import dataclass, field
from functools import lru_cache

import torch
from torch import nn

__all__ = ["AttentionMap", "attention_map", "load"]


@dataclass(frozen=True, eq=False)
class AttentionMap:
    """What a model attends to in one text or in a pair of texts.

    Shapes: tokens, a list of L str; weights (layers, H, L, L), a row for each query; second, the
        place of the first token of the second text, or None; num_cut, how many tokens of the
        text the model could not read.
    Lesson: notebooks/07_seeing_attention.ipynb.
    """

    tokens: list
    weights: torch.Tensor = field(repr=False)
    second: int | None = None
    num_cut: int = 0


def attention_map(text, pair=None, model=None, tokenizer=None):
    """Let a model read a text, or a pair of texts, and return what it attends to.

    Model and tokenizer are the course's pretrained ones unless given; a model of your own will do
    if `model(**batch, need_weights=True).attentions` are its weights, (1, H, L, L) of each layer.
    What is longer than the model reads is cut; `num_cut` says by how much. The model reads in eval
    mode, without gradients, and is left as it was.

    Shapes: returns an AttentionMap with weights (layers, H, L, L).
    Raises: TypeError unless the texts are str; ValueError if one is empty, or quoting the shapes
        if the model's weights are not (1, H, L, L); and what the model raises.
    Lesson: notebooks/07_seeing_attention.ipynb.
    """
    _check_text("text", text)
    if pair is not None:
        _check_text("pair", pair)
    if model is None or tokenizer is None:
        pretrained = load()
        model = pretrained[0] if model is None else model
        tokenizer = pretrained[1] if tokenizer is None else tokenizer
    batch, num_cut = _encode(model, tokenizer, text, pair)
    tokens = tokenizer.tokens(batch["input_ids"][0].tolist())
    weights = _read(model, batch)  # (layers, H, L, L)
    if weights.shape[-1] != len(tokens):
        raise ValueError(f"{len(tokens)} tokens, but weights of shape {tuple(weights.shape)}")
    second = None if pair is None else batch["token_type_ids"][0].tolist().index(1)
    return AttentionMap(tokens, weights, second, num_cut)


@lru_cache(maxsize=2)
def load(name_or_path=None):
    """`load_pretrained`, which keeps the two models used last; without a name, its default."""
    from mha_course.pretrained import load_pretrained

    return load_pretrained() if name_or_path is None else load_pretrained(name_or_path)


def _check_text(name, text):
    if not isinstance(text, str):
        raise TypeError(f"{name} must be a str, got {type(text).__name__}")
    if not text.strip():
        raise ValueError(f"{name} is empty: there is nothing to attend to")


def _encode(model, tokenizer, text, pair):
    """The batch of this one text, and how many of its tokens are left out."""
    config = getattr(model, "config", None)
    limit = min(tokenizer.max_length, getattr(config, "max_position_embeddings", math.inf))
    batch = tokenizer(text, pair, max_length=limit)
    return batch, tokenizer.count(text, pair) - batch["input_ids"].shape[1]


@torch.no_grad()
def _read(model, batch):
    """The weights (layers, H, L, L) of the only text of a batch, on the CPU."""
    parts = list(model.modules()) if isinstance(model, nn.Module) else []
    modes = [part.training for part in parts]
    device = next((weight.device for part in parts for weight in part.parameters()), "cpu")
    batch = {name: numbers.to(device) for name, numbers in batch.items()}
    for part in parts:
        part.training = False
    try:
        attentions = model(**batch, need_weights=True).attentions
    finally:
        for part, mode in zip(parts, modes, strict=True):
            part.training = mode
    shapes = [tuple(weights.shape) for weights in attentions or ()]
    fits = [len(sizes) == 4 and sizes[0] == 1 and sizes[2] == sizes[3] for sizes in shapes]
    if len(set(shapes)) != 1 or not all(fits):
        raise ValueError(f"each layer's weights must be (1, H, L, L), got {shapes}")
    return torch.cat(tuple(attentions)).cpu()
