"""The attention of a text: its tokens, and the weights of every layer and head."""

import math
from dataclasses import dataclass, field
from functools import lru_cache

import torch
from torch import nn

from mha_course.multihead import split_heads

__all__ = ["AttentionMap", "attention_map", "load"]


@dataclass(frozen=True, eq=False)
class AttentionMap:
    """What a model attends to in one text or in a pair of texts.

    Shapes: tokens, a list of L str; weights (layers, H, L, L), a row for each query; second, the
        place of the first token of the second text, or None; num_cut, how many tokens of the
        text the model could not read; queries and keys (layers, H, L, d_k), or None both.
    Properties: where there are queries and keys, the weights are softmax(q·k/√d_k).
    Lesson: notebooks/07_seeing_attention.ipynb.
    """

    tokens: list
    weights: torch.Tensor = field(repr=False)
    second: int | None = None
    num_cut: int = 0
    queries: torch.Tensor | None = field(default=None, repr=False)
    keys: torch.Tensor | None = field(default=None, repr=False)


def attention_map(text, pair=None, model=None, tokenizer=None):
    """Let a model read a text, or a pair of texts, and return what it attends to.

    Model and tokenizer are the course's pretrained ones unless given; a model of your own will do
    if `model(**batch, need_weights=True).attentions` are its weights, (1, H, L, L) of each layer.
    If its attention modules call their projections W_q and W_k, queries and keys are kept, too.
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
    weights, projected = _read(model, batch)  # (layers, H, L, L)
    if weights.shape[-1] != len(tokens):
        raise ValueError(f"{len(tokens)} tokens, but weights of shape {tuple(weights.shape)}")
    second = None if pair is None else batch["token_type_ids"][0].tolist().index(1)
    return AttentionMap(tokens, weights, second, num_cut, *_queries_and_keys(projected, weights))


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
    """The weights (layers, H, L, L) of the only text of a batch, on the CPU.

    Beside them, under their names, what each W_q and W_k of the model returned meanwhile.
    """
    parts = list(model.modules()) if isinstance(model, nn.Module) else []
    projected = {"W_q": [], "W_k": []}
    hooks = [
        getattr(part, name).register_forward_hook(
            lambda module, inputs, output, kept=kept: kept.append(output)
        )
        for part in parts
        if all(isinstance(getattr(part, name, None), nn.Module) for name in projected)
        for name, kept in projected.items()
    ]
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
        for hook in hooks:
            hook.remove()
    shapes = [tuple(weights.shape) for weights in attentions or ()]
    fits = [len(sizes) == 4 and sizes[0] == 1 and sizes[2] == sizes[3] for sizes in shapes]
    if len(set(shapes)) != 1 or not all(fits):
        raise ValueError(f"each layer's weights must be (1, H, L, L), got {shapes}")
    return torch.cat(tuple(attentions)).cpu(), projected


def _queries_and_keys(projected, weights):
    """Both (layers, H, L, d_k), or None and None unless their products do give the weights."""
    num_layers, num_heads, length, _ = weights.shape
    for outputs in projected.values():
        shapes = {tuple(output.shape) for output in outputs}
        sizes = shapes.pop() if len(shapes) == 1 and len(outputs) == num_layers else ()
        if len(sizes) != 3 or sizes[:2] != (1, length) or sizes[2] % num_heads:
            return None, None
    queries, keys = (
        split_heads(torch.cat(tuple(outputs)).cpu(), num_heads) for outputs in projected.values()
    )  # (layers, H, L, d_k)
    if queries.shape != keys.shape:
        return None, None
    scores = queries @ keys.transpose(-2, -1) / math.sqrt(queries.shape[-1])
    same = torch.allclose(torch.softmax(scores, dim=-1), weights, atol=1e-4)
    return (queries, keys) if same else (None, None)
