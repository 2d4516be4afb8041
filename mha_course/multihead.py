"""Multi-head attention: all heads in one matrix product."""

from numbers import Integral

from torch import nn
from torch.nn import functional as F

from mha_course.attention import (
    check_dropout,
    check_projectable,
    check_qkv,
    check_rank,
    combined_mask,
    dot_product_weights,
)

__all__ = [
    "MultiHeadAttention",
    "attend",
    "merge_heads",
    "split_heads",
    "transpose_output",
    "transpose_qkv",
]


def split_heads(X, num_heads):
    """Give each head its slice of every word: words are cut, and the heads move to the front.

    Shapes: X (B, L, num_hiddens); returns (B, num_heads, L, num_hiddens / num_heads).
    Raises: TypeError if X is not a tensor or num_heads not an integer; ValueError quoting the
        sizes if X is not of rank 3 or num_heads does not divide num_hiddens.
    Source: Vaswani et al. 2017, section 3.2.2. Lesson: notebooks/04_head_splitting.ipynb.
    """
    check_rank(X, 3, "(B, L, num_hiddens)")
    check_heads(X.shape[-1], num_heads)
    X = X.unflatten(-1, (num_heads, -1))  # (B, L, H, d)
    return X.transpose(1, 2)  # (B, H, L, d)


def merge_heads(X):
    """Undo `split_heads`: put the heads' slices of each word side by side again.

    Shapes: X (B, H, L, d); returns (B, L, H * d).
    Raises: TypeError if X is not a tensor; ValueError quoting the sizes if it is not of rank 4.
    Source: Vaswani et al. 2017, section 3.2.2. Lesson: notebooks/04_head_splitting.ipynb.
    """
    check_rank(X, 4, "(B, H, L, d)")
    return X.transpose(1, 2).flatten(2)  # (B, L, H * d)


def transpose_qkv(X, num_heads):
    """Split the heads as d2l does, with batch and heads as one axis.

    Shapes: X (B, L, num_hiddens); returns (B * num_heads, L, num_hiddens / num_heads), the heads
        of the first sequence first.
    Raises: as `split_heads`.
    Source: Zhang et al., Dive into Deep Learning, section 11.5.
    Lesson: notebooks/04_head_splitting.ipynb.
    """
    return split_heads(X, num_heads).flatten(0, 1)  # (B * H, L, d)


def transpose_output(X, num_heads):
    """Undo `transpose_qkv`: the heads' slices of each word side by side again.

    Shapes: X (B * num_heads, L, d); returns (B, L, num_heads * d).
    Raises: TypeError if X is not a tensor or num_heads not an integer; ValueError quoting the
        sizes if X is not of rank 3 or num_heads does not divide its first axis.
    Source: Zhang et al., Dive into Deep Learning, section 11.5.
    Lesson: notebooks/04_head_splitting.ipynb.
    """
    check_rank(X, 3, "(B * num_heads, L, d)")
    check_integer(num_heads)
    if num_heads < 1 or X.shape[0] % num_heads:
        raise ValueError(
            f"num_heads={num_heads} does not divide the first axis of {tuple(X.shape)}"
        )
    return merge_heads(X.unflatten(0, (-1, num_heads)))  # (B, L, H * d)


def attend(queries, keys, values, valid_lens, mask, dropout, need_weights):
    """Scaled dot-product attention in every head: the output, and the weights if they were made.

    Shapes: queries (B, H, L, d); keys (B, H, S, d); values (B, H, S, d_v); valid_lens and mask as
        in `MultiHeadAttention`, or None; dropout an nn.Dropout; returns the output (B, H, L, d_v)
        and the weights (B, H, L, S), before dropout.
    Properties: unless weights are asked for or dropped, PyTorch's fused kernel runs: no (L, S)
        tensor is made where there is no mask or one length a sequence, and the weights are None.
    Raises: as `mha_course.attention.combined_mask`.
    Source: Vaswani et al. 2017, eq. 1. Lesson: notebooks/04_head_splitting.ipynb.
    """
    if need_weights or (dropout.training and dropout.p > 0):
        weights = dot_product_weights(queries, keys, valid_lens, mask)  # (B, H, L, S)
        return dropout(weights) @ values, weights
    allowed = combined_mask(queries, keys, valid_lens, mask)  # fits (B, H, L, S), or None
    return F.scaled_dot_product_attention(queries, keys, values, attn_mask=allowed), None


class MultiHeadAttention(nn.Module):
    """Multi-head attention: H heads side by side, each on its own slice of the projections.

    Shapes: queries (B, L, query_size); keys (B, S, key_size); values (B, S, value_size);
        valid_lens (B,) or (B, L); mask boolean, True = may attend, (L, S), (B, L, S) or
        (B, H, L, S), where 1 stands for any size; returns (B, L, num_hiddens), with
        need_weights=True also the weights of each head (B, H, L, S), before dropout.
    Properties: parameters and results are those of d2l's class of the same name wherever
        1 <= length <= S. It differs where d2l gives a query of length 0 the average of all
        values (here the heads give zeros), lets lengths beyond S pass (here an error) and keeps
        the last weights as an attribute (here they are returned on request).
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

    def forward(self, queries, keys, values, valid_lens=None, mask=None, need_weights=False):
        """Project, split, attend, merge, project; see the class for shapes."""
        check_inputs(self, queries, keys, values)
        q = split_heads(self.W_q(queries), self.num_heads)  # (B, H, L, d)
        k = split_heads(self.W_k(keys), self.num_heads)  # (B, H, S, d)
        v = split_heads(self.W_v(values), self.num_heads)  # (B, H, S, d)
        output, weights = attend(q, k, v, valid_lens, mask, self.dropout, need_weights)
        output = self.W_o(merge_heads(output))  # (B, L, num_hiddens)
        return (output, weights) if need_weights else output


def check_inputs(attention, queries, keys, values):
    """Raise an error quoting the sizes unless the inputs fit each other and the projections."""
    check_qkv(queries, keys, values)
    check_rank(queries, 3, "(B, L, query_size)", "queries")
    check_projectable(attention.W_q, queries, "queries")
    check_projectable(attention.W_k, keys, "keys")
    check_projectable(attention.W_v, values, "values")


def check_heads(num_hiddens, num_heads):
    """Raise an error quoting both unless num_heads is an integer that divides num_hiddens."""
    check_integer(num_heads)
    if num_heads < 1 or num_hiddens % num_heads:
        raise ValueError(f"num_hiddens={num_hiddens} cannot be split into num_heads={num_heads}")


def check_integer(num_heads):
    """Raise TypeError quoting num_heads unless it is an integer."""
    if not isinstance(num_heads, Integral):
        raise TypeError(f"num_heads must be an integer, got {num_heads!r}")
