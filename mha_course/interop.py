"""The same weights in `torch.nn.MultiheadAttention`, in d2l, in transformers and in this course."""

import importlib
import re
import sys
import types
from contextlib import contextmanager

import torch

from mha_course.multihead import MultiHeadAttention

__all__ = ["from_d2l", "from_torch", "import_d2l", "map_weights", "to_d2l", "to_torch"]

PROJECTIONS = ("W_q", "W_k", "W_v", "W_o")
# transformers' names in a BERT, and the course's
BERT_NAMES = {
    "embeddings.word_embeddings": "embeddings.words",
    "embeddings.position_embeddings": "embeddings.positions",
    "embeddings.token_type_embeddings": "embeddings.segments",
    "embeddings.LayerNorm": "embeddings.norm",
    "attention.self.query": "self_attention.W_q",
    "attention.self.key": "self_attention.W_k",
    "attention.self.value": "self_attention.W_v",
    "attention.output.dense": "self_output.W_o",
    "attention.output.LayerNorm": "self_output.norm",
    "intermediate.dense": "feed_forward.W_1",
    "output.dense": "feed_forward.W_2",
    "output.LayerNorm": "feed_forward.norm",
    "pooler.dense": "pooler.dense",
}
# Checkpoints of the first years call a LayerNorm's weight and bias so.
OLD_NAMES = {"gamma": "weight", "beta": "bias"}


def import_d2l():
    """Return d2l's PyTorch module (`d2l.torch`), also where torchvision is not installed.

    d2l imports torchvision at the top and its attention code never uses it, so an empty stand-in
    takes its place while d2l is imported, and only then. The import takes about two seconds.
    Raises: ImportError if d2l itself is not installed.
    Source: Zhang et al., Dive into Deep Learning (d2l 0.17.0).
    """
    if "d2l.torch" in sys.modules:
        return sys.modules["d2l.torch"]
    with _torchvision_or_stand_in():
        return importlib.import_module("d2l.torch")


def from_torch(reference):
    """Return a `MultiHeadAttention` with the weights of a `torch.nn.MultiheadAttention`.

    Shapes: PyTorch packs W_q, W_k, W_v below one another in in_proj_weight (3 * num_hiddens,
        num_hiddens), or keeps three matrices when keys or values have a width of their own.
        The result takes (B, L, width) whatever `reference.batch_first` says.
    Raises: ValueError for options that the course's module does not have (add_bias_kv,
        add_zero_attn).
    Lesson: notebooks/04_head_splitting.ipynb.
    """
    if reference.bias_k is not None or reference.add_zero_attn:
        raise ValueError("add_bias_kv=True and add_zero_attn=True have no counterpart here")
    bias = reference.in_proj_bias is not None
    attention = MultiHeadAttention(
        reference.kdim,
        reference.embed_dim,
        reference.vdim,
        reference.embed_dim,
        reference.num_heads,
        dropout=reference.dropout,
        bias=bias,
    )
    attention.to(reference.out_proj.weight)
    with torch.no_grad():
        for name, part in _torch_parts(reference).items():
            attention.get_parameter(name).copy_(part)
    return attention.train(reference.training)


def map_weights(state_dict):
    """The weights of a transformers BERT under the course's names, ready for `load_state_dict`.

    Shapes: stay as they are; both keep a Linear's weight as (out, in). The tensors are the same
        objects, not copies.
    Properties: `encoder.layer.0.attention.self.query.weight` becomes
        `encoder.layers.0.self_attention.W_q.weight`; a leading `bert.`, as in checkpoints with a
        head on top, is taken off; names that no BERT has stay as they are.
    Raises: ValueError naming both if two names of the checkpoint would become one.
    Source: Devlin et al. 2019, published checkpoints. Lesson: notebooks/06_bert_attention.ipynb.
    """
    mapped, origin = {}, {}
    for name, tensor in state_dict.items():
        new = _bert_name(name)
        if new in origin:
            raise ValueError(f"{origin[new]} and {name} are both {new}")
        mapped[new], origin[new] = tensor, name
    return mapped


def _bert_name(name):
    *path, last = name.removeprefix("bert.").split(".")
    module = ".".join(path)
    layer = re.fullmatch(r"encoder\.layer\.(\d+)\.(.+)", module)
    new = BERT_NAMES.get(layer[2] if layer else module)
    if new is None or bool(layer) == new.startswith(("embeddings.", "pooler.")):
        return name
    prefix = f"encoder.layers.{layer[1]}." if layer else ""
    return f"{prefix}{new}.{OLD_NAMES.get(last, last)}"


def to_torch(attention):
    """Return a `torch.nn.MultiheadAttention` (batch_first=True) with the weights of `attention`.

    Raises: ValueError quoting both widths if the queries are not num_hiddens wide, which PyTorch's
        module demands.
    Lesson: notebooks/04_head_splitting.ipynb.
    """
    num_hiddens, query_size = attention.W_q.weight.shape
    if query_size != num_hiddens:
        raise ValueError(
            f"torch.nn.MultiheadAttention needs queries as wide as num_hiddens={num_hiddens}, "
            f"these are {query_size} wide"
        )
    reference = torch.nn.MultiheadAttention(
        num_hiddens,
        attention.num_heads,
        dropout=attention.dropout.p,
        bias=attention.W_q.bias is not None,
        kdim=attention.W_k.in_features,
        vdim=attention.W_v.in_features,
        batch_first=True,
    ).to(attention.W_q.weight)
    with torch.no_grad():
        for name, part in _torch_parts(reference).items():
            part.copy_(attention.get_parameter(name))
    return reference.train(attention.training)


def to_d2l(attention):
    """Return d2l's `MultiHeadAttention` with the weights of `attention`: the names are the same.

    Raises: ImportError if d2l is not installed.
    Lesson: notebooks/04_head_splitting.ipynb.
    """
    book = (
        import_d2l()
        .MultiHeadAttention(
            attention.W_k.in_features,
            attention.W_q.in_features,
            attention.W_v.in_features,
            attention.W_q.out_features,
            attention.num_heads,
            attention.dropout.p,
            bias=attention.W_q.bias is not None,
        )
        .to(attention.W_q.weight)
    )
    book.load_state_dict(attention.state_dict())
    return book.train(attention.training)


def from_d2l(book):
    """Return a `MultiHeadAttention` with the weights of d2l's: the names are the same.

    Lesson: notebooks/04_head_splitting.ipynb.
    """
    attention = MultiHeadAttention(
        book.W_k.in_features,
        book.W_q.in_features,
        book.W_v.in_features,
        book.W_q.out_features,
        book.num_heads,
        book.attention.dropout.p,
        bias=book.W_q.bias is not None,
    ).to(book.W_q.weight)
    attention.load_state_dict(book.state_dict())
    return attention.train(book.training)


def _torch_parts(reference):
    """The course's parameter names, each with the slice of PyTorch's parameters it stands for."""
    weights = (
        (reference.q_proj_weight, reference.k_proj_weight, reference.v_proj_weight)
        if reference.in_proj_weight is None
        else reference.in_proj_weight.chunk(3)
    )
    parts = dict(zip((f"{name}.weight" for name in PROJECTIONS[:3]), weights, strict=True))
    parts["W_o.weight"] = reference.out_proj.weight
    if reference.in_proj_bias is not None:
        biases = (*reference.in_proj_bias.chunk(3), reference.out_proj.bias)
        parts |= zip((f"{name}.bias" for name in PROJECTIONS), biases, strict=True)
    return parts


@contextmanager
def _torchvision_or_stand_in():
    try:
        importlib.import_module("torchvision")
        names = ()
    except Exception:  # absent, or a build that does not fit this torch (RuntimeError)
        names = ("torchvision", "torchvision.transforms")
    stand_ins = {name: types.ModuleType(name) for name in names}
    if stand_ins:
        stand_ins["torchvision"].transforms = stand_ins["torchvision.transforms"]
    sys.modules.update(stand_ins)
    try:
        yield
    finally:
        for name in stand_ins:
            del sys.modules[name]
