"""Multi-head attention: all heads in one matrix product."""

from numbers import Integral

import torch
from torch import nn
from torch.nn import functional as F

from mha_course.attention import (
    check_dropout,
    check_dtype,
    check_qkv,
    check_width,
    combined_mask,
    dot_product_weights,
)
from mha_course.packing import Packed, is_plain

__all__ = ["MultiHeadAttention", "transpose_output", "transpose_qkv"]

NARROW = 128  # self-attention up to this width projects everything in one product, at any price


def transpose_qkv(X, num_heads):
    """Give each head its slice of every word: heads move beside the batch, words stay whole.

    Shapes: X (B, L, num_hiddens); returns (B * num_heads, L, num_hiddens / num_heads), the heads
        of the first sequence first.
    Raises: TypeError if X is not a tensor or num_heads not an integer; ValueError quoting the
        sizes if X is not of rank 3 or num_heads does not divide num_hiddens.
    Source: Zhang et al., Dive into Deep Learning, section 11.5.
    Lesson: notebooks/04_head_splitting.ipynb.
    """
    _check_rank(X, "(B, L, num_hiddens)")
    check_heads(X.shape[-1], num_heads)
    return _to_heads(X, num_heads).flatten(0, 1)  # (B * H, L, d)


def transpose_output(X, num_heads):
    """Undo `transpose_qkv`: put the heads' slices of each word side by side again.

    Shapes: X (B * num_heads, L, d); returns (B, L, num_heads * d).
    Raises: TypeError if X is not a tensor or num_heads not an integer; ValueError quoting the
        sizes if X is not of rank 3 or num_heads does not divide its first axis.
    Source: Zhang et al., Dive into Deep Learning, section 11.5.
    Lesson: notebooks/04_head_splitting.ipynb.
    """
    _check_rank(X, "(B * num_heads, L, d)")
    _check_integer(num_heads)
    if num_heads < 1 or X.shape[0] % num_heads:
        raise ValueError(
            f"num_heads={num_heads} does not divide the first axis of {tuple(X.shape)}"
        )
    return _from_heads(X.unflatten(0, (-1, num_heads)))  # (B, L, H * d)


class MultiHeadAttention(nn.Module):
    """Multi-head attention: H heads side by side, each on its own slice of the projections.

    Shapes: queries (B, L, query_size); keys (B, S, key_size); values (B, S, value_size);
        valid_lens (B,) or (B, L); mask boolean, True = may attend, (L, S), (B, L, S) or
        (B, H, L, S), where 1 stands for any size; returns (B, L, num_hiddens), with
        need_weights=True also the weights of each head (B, H, L, S), before dropout.
    Properties: parameters and results are those of d2l's class of the same name wherever
        1 <= length <= S. It differs where d2l gives a query of length 0 the average of all
        values (here the heads give zeros), lets lengths beyond S pass (here an error) and keeps
        the last weights as an attribute (here they are returned on request). With no mask or one
        length a sequence, no active dropout and no weights asked for, PyTorch's fused kernel
        runs and no (L, S) tensor is made.
    Raises: TypeError for inputs that are not floating-point tensors, dtypes that are mixed or not
        the module's, a mask that is not boolean, lengths or num_heads that are not integers;
        ValueError quoting the sizes where num_heads does not divide num_hiddens, widths or
        batches do not fit, lengths lie outside 0..S, dropout outside 0..1.
    Source: Vaswani et al. 2017, section 3.2.2. Lesson: notebooks/04_head_splitting.ipynb.
    """

    def __init__(
        self, key_size, query_size, value_size, num_hiddens, num_heads, dropout=0.0, bias=False
    ):
        super().__init__()
        check_heads(num_hiddens, num_heads)
        check_dropout(dropout)
        self.num_heads = num_heads
        self.W_q = nn.Linear(query_size, num_hiddens, bias=bias)
        self.W_k = nn.Linear(key_size, num_hiddens, bias=bias)
        self.W_v = nn.Linear(value_size, num_hiddens, bias=bias)
        self.W_o = nn.Linear(num_hiddens, num_hiddens, bias=bias)
        self.dropout = nn.Dropout(dropout)
        self._packed = Packed(self.W_q, self.W_k, self.W_v)

    def forward(self, queries, keys, values, valid_lens=None, mask=None, need_weights=False):
        """Attend with all heads; see the class for shapes."""
        check_qkv(queries, keys, values)
        if queries.dim() != 3:
            raise ValueError(f"queries must be (B, L, query_size), got {tuple(queries.shape)}")
        if need_weights and valid_lens is None and mask is None:
            if both := self._in_one_call(queries, keys, values):
                return both
        q, k, v = self._project(queries, keys, values)  # (B, H, L or S, d)
        if need_weights or (self.training and self.dropout.p > 0):
            weights = dot_product_weights(q, k, valid_lens, mask)  # (B, H, L, S)
            output = self.dropout(weights) @ v  # (B, H, L, d)
        else:
            allowed = combined_mask(q, k, valid_lens, mask)
            output = F.scaled_dot_product_attention(q, k, v, attn_mask=allowed)  # (B, H, L, d)
        output = self.W_o(_from_heads(output))  # (B, L, num_hiddens)
        return (output, weights) if need_weights else output

    def _project(self, queries, keys, values):
        # Straight from the dictionary: the search behind `self.W_q` is felt in a small layer.
        modules = self._modules
        W_q, W_k, W_v = modules["W_q"], modules["W_k"], modules["W_v"]
        check_dtype(W_q, queries)
        check_width(W_q, queries, "queries")
        if queries is keys is values and (packed := self._pack(W_q, W_k, W_v)):
            return _split(F.linear(queries, *packed), self.num_heads)
        check_width(W_k, keys, "keys")
        check_width(W_v, values, "values")
        projected = W_q(queries), W_k(keys), W_v(values)
        return [_to_heads(X, self.num_heads) for X in projected]

    def _pack(self, *linears):
        # Weight and bias of one Linear that does the work of these three, or None.
        if linears != self._packed.linears:
            self._packed = Packed(*linears)  # another module has taken the place of one
        copied = linears[0].out_features <= NARROW
        return self._packed.shared() or (self._packed.copied() if copied else None)

    def _in_one_call(self, queries, keys, values):
        # The output and the weights by what runs below nn.MultiheadAttention in eval mode; None
        # where that module would not use it either.
        W_q, W_k, W_v, W_o = self.W_q, self.W_k, self.W_v, self.W_o
        device = queries.device.type
        mixed = device not in ("cpu", "cuda") or torch.is_autocast_enabled(device)
        dropped = self.training and self.dropout.p > 0
        if not queries is keys is values or torch.is_grad_enabled() or mixed or dropped:
            return None
        if not queries.numel():
            return None
        packed = self._pack(W_q, W_k, W_v) if is_plain(W_o) else None
        if not packed or packed[1] is None or W_o.bias is None or self.num_heads % 2:
            return None
        check_dtype(W_q, queries)
        check_width(W_q, queries, "queries")
        sizes = W_o.in_features, self.num_heads
        projections = *packed, W_o.weight, W_o.bias
        return torch._native_multi_head_attention(
            queries, keys, values, *sizes, *projections, None, True, False
        )

    def _apply(self, fn, recurse=True):
        module = super()._apply(fn, recurse)  # moves the parameters: to another dtype or device
        self._packed.lay()
        return module


def check_heads(num_hiddens, num_heads):
    """Raise an error quoting both unless num_heads is an integer that divides num_hiddens."""
    _check_integer(num_heads)
    if num_heads < 1 or num_hiddens % num_heads:
        raise ValueError(f"num_hiddens={num_hiddens} cannot be split into num_heads={num_heads}")


def _check_integer(num_heads):
    if not isinstance(num_heads, Integral):
        raise TypeError(f"num_heads must be an integer, got {num_heads!r}")


def _check_rank(X, meaning):
    if not torch.is_tensor(X):
        raise TypeError(f"X must be a tensor {meaning}, got {type(X).__name__}")
    if X.dim() != 3:
        raise ValueError(f"X must be {meaning}, got {tuple(X.shape)}")


def _to_heads(X, num_heads):
    batch_size, length, num_hiddens = X.shape
    X = X.reshape(batch_size, length, num_heads, num_hiddens // num_heads)  # (B, L, H, d)
    return X.transpose(1, 2)  # (B, H, L, d)


def _split(projected, num_heads):
    batch_size, length, width = projected.shape
    parts = projected.view(batch_size, length, 3, num_heads, width // (3 * num_heads))
    return parts.permute(2, 0, 3, 1, 4).unbind()  # three of (B, H, L, d)


def _from_heads(X):
    return X.transpose(1, 2).flatten(2)  # (B, L, H * d)
