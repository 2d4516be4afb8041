"""Attention for one head: scores, softmax over the keys that may be seen, weighted sum."""

import math

import torch
from torch import nn
from torch.nn import functional as F

__all__ = [
    "AdditiveAttention",
    "DotProductAttention",
    "combined_mask",
    "dot_product_weights",
    "length_mask",
    "masked_softmax",
    "scaled_dot_product_attention",
]


def length_mask(valid_lens, batch_size, num_queries, num_keys):
    """The boolean mask that lengths stand for: True where the key's index is below the length.

    Shapes: valid_lens (B,) or (B, L); returns (B, 1, S) or (B, L, S).
    Raises: TypeError for lengths that are not an integer tensor; ValueError quoting the sizes for
        another shape or lengths outside 0..S.
    Lesson: notebooks/02_scaled_dot_product.ipynb.
    """
    check_lengths(valid_lens, batch_size, num_queries, num_keys)
    if valid_lens.dim() == 1:
        valid_lens = valid_lens.unsqueeze(1)  # (B, 1)
    positions = torch.arange(num_keys, device=valid_lens.device)  # (S,)
    return positions < valid_lens.unsqueeze(2)  # (B, 1 or L, S)


def softmax_where(scores, allowed):
    """Softmax over the keys where `allowed` is True, 0 at the others; None allows all."""
    if allowed is None:
        return torch.softmax(scores, dim=-1)
    # A finite fill keeps a row without any key free of NaN, forward and backward; that row
    # comes out uniform, and the second fill makes it 0.
    filled = scores.masked_fill(~allowed, torch.finfo(scores.dtype).min)
    return torch.softmax(filled, dim=-1).masked_fill(~allowed, 0.0)


def masked_softmax(scores, valid_lens=None):
    """Softmax over the keys, as if the keys past each valid length were not there.

    Shapes: scores (B, L, S); valid_lens (B,), one length a sequence, or (B, L), one a query;
        returns (B, L, S).
    Properties: each row over S sums to 1; positions past valid_lens are exactly 0; a row of
        length 0 is all 0. The caller's scores are not changed.
    Raises: TypeError for scores that are not floating point or lengths that are not integers;
        ValueError quoting the sizes for wrong shapes and for lengths outside 0..S.
    Source: Zhang et al., Dive into Deep Learning, section 11.3.
    Lesson: notebooks/02_scaled_dot_product.ipynb.
    """
    check_floating(scores, "scores")
    check_rank(scores, 3, "(B, L, S)", "scores")
    allowed = None if valid_lens is None else length_mask(valid_lens, *scores.shape)
    return softmax_where(scores, allowed)


def combined_mask(queries, keys, valid_lens=None, mask=None):
    """Where each query may attend, by valid_lens and by mask; None where neither is given.

    Shapes: queries (B, L, d_k); keys (B, S, d_k); valid_lens (B,) or (B, L); mask boolean, True =
        may attend, (L, S) or (B, L, S), where 1 stands for any size; returns what broadcasts to
        (B, L, S). With a head axis, queries (B, H, L, d_k) and so on, the mask may be
        (B, H, L, S) too, and what is returned broadcasts to that.
    Raises: as `length_mask`; TypeError for a mask that is not boolean; ValueError quoting the
        sizes of one that does not fit.
    Lesson: notebooks/02_scaled_dot_product.ipynb.
    """
    if valid_lens is None and mask is None:
        return None
    batch_size, *heads, num_queries, _ = queries.shape
    num_keys = keys.shape[-2]
    if mask is not None:
        mask = fit_mask(mask, (batch_size, *heads, num_queries, num_keys))
    if valid_lens is None:
        return mask
    allowed = length_mask(valid_lens, batch_size, num_queries, num_keys)  # (B, 1 or L, S)
    if heads:
        allowed = allowed.unsqueeze(1)  # (B, 1, 1 or L, S)
    return allowed if mask is None else allowed & mask


def fit_mask(mask, shape):
    """The mask with an axis for the heads where it lacks one; an error unless it fits `shape`."""
    if not torch.is_tensor(mask) or mask.dtype != torch.bool:
        raise TypeError(f"mask must be a boolean tensor, True = may attend, got {kind_of(mask)}")
    one_for_all_heads = mask.dim() == 3 and len(shape) == 4
    fitted = mask.unsqueeze(1) if one_for_all_heads else mask  # (B, 1, L, S)
    wanted = shape[-fitted.dim() :] if 2 <= fitted.dim() <= len(shape) else ()
    if not wanted or any(m not in (1, w) for m, w in zip(fitted.shape, wanted, strict=True)):
        raise ValueError(f"mask must fit {shape} (1 = any size), got {tuple(mask.shape)}")
    return fitted


def dot_product_weights(queries, keys, valid_lens=None, mask=None):
    """The weights of scaled dot-product attention: the softmax of the scaled scores.

    Shapes: as in `combined_mask`; returns (B, L, S), with a head axis (B, H, L, S).
    Raises: as `combined_mask`.
    Source: Vaswani et al. 2017, eq. 1. Lesson: notebooks/02_scaled_dot_product.ipynb.
    """
    # The queries are scaled, not the scores: the same numbers, and L * d divisions, not L * S.
    queries = queries / math.sqrt(queries.shape[-1])
    scores = queries @ keys.transpose(-2, -1)  # (B, L, S) or (B, H, L, S)
    return softmax_where(scores, combined_mask(queries, keys, valid_lens, mask))


def scaled_dot_product_attention(queries, keys, values, valid_lens=None, mask=None, dropout=0.0):
    """Each query's average of the values, weighted by the softmax of its scaled scores.

    Shapes: queries (B, L, d_k); keys (B, S, d_k); values (B, S, d_v); valid_lens (B,) or (B, L);
        mask boolean, True = may attend, (L, S) or (B, L, S), where 1 stands for any size;
        returns the output (B, L, d_v) and the weights (B, L, S), before dropout. With a head
        axis, queries (B, H, L, d_k) and so on, the mask may be (B, H, L, S) too.
    Properties: a query with nothing to attend to gets zeros, output and weights. `dropout` is the
        probability with which weights are dropped, whoever calls: modules pass 0 when they do
        not train.
    Raises: TypeError for inputs that are not floating-point tensors, dtypes that are mixed, a
        mask that is not boolean, lengths that are not integers; ValueError quoting the sizes
        where they do not fit, lengths outside 0..S, dropout outside 0..1.
    Source: Vaswani et al. 2017, eq. 1. Lesson: notebooks/02_scaled_dot_product.ipynb.
    """
    check_qkv(queries, keys, values, same_width=True)
    check_dropout(dropout)
    weights = dot_product_weights(queries, keys, valid_lens, mask)
    return F.dropout(weights, dropout) @ values, weights


class DotProductAttention(nn.Module):
    """Scaled dot-product attention as a module, with dropout on the weights while training.

    Shapes: as in `scaled_dot_product_attention`; returns the output (B, L, d_v), and with
        need_weights=True the output and the weights (B, L, S), before dropout.
    Raises: as `scaled_dot_product_attention`; ValueError for dropout outside 0..1.
    Source: Vaswani et al. 2017, eq. 1. Lesson: notebooks/02_scaled_dot_product.ipynb.
    """

    def __init__(self, dropout=0.0):
        super().__init__()
        check_dropout(dropout)
        self.dropout = nn.Dropout(dropout)

    def forward(self, queries, keys, values, valid_lens=None, mask=None, need_weights=False):
        """Attend; see the class for shapes."""
        check_qkv(queries, keys, values, same_width=True)
        weights = dot_product_weights(queries, keys, valid_lens, mask)
        output = self.dropout(weights) @ values
        return (output, weights) if need_weights else output


class AdditiveAttention(nn.Module):
    """Attention whose score is w_v · tanh(W_q q + W_k k): queries and keys may differ in width.

    Shapes: queries (B, L, query_size); keys (B, S, key_size); values (B, S, d_v); valid_lens (B,)
        or (B, L); returns (B, L, d_v), with need_weights=True also the weights (B, L, S).
    Raises: as `scaled_dot_product_attention`; ValueError quoting the sizes if queries or keys
        do not have the width the module was made for.
    Source: Bahdanau et al. 2015, appendix A.1.2. Lesson: notebooks/01_attention_math.ipynb.
    """

    def __init__(self, key_size, query_size, num_hiddens, dropout=0.0):
        super().__init__()
        check_dropout(dropout)
        self.W_q = nn.Linear(query_size, num_hiddens, bias=False)
        self.W_k = nn.Linear(key_size, num_hiddens, bias=False)
        self.w_v = nn.Linear(num_hiddens, 1, bias=False)
        self.dropout = nn.Dropout(dropout)

    def forward(self, queries, keys, values, valid_lens=None, need_weights=False):
        """Attend; see the class for shapes."""
        check_qkv(queries, keys, values)
        check_projectable(self.W_q, queries, "queries")
        check_projectable(self.W_k, keys, "keys")
        hidden = self.W_q(queries).unsqueeze(2) + self.W_k(keys).unsqueeze(1)  # (B, L, S, hiddens)
        scores = self.w_v(torch.tanh(hidden)).squeeze(-1)  # (B, L, S)
        weights = softmax_where(scores, combined_mask(queries, keys, valid_lens))
        output = self.dropout(weights) @ values
        return (output, weights) if need_weights else output


def check_qkv(queries, keys, values, same_width=False):
    """Raise an error quoting dtypes or sizes unless these can be attended with together."""
    for name, X in (("queries", queries), ("keys", keys), ("values", values)):
        check_floating(X, name)
    if not queries.dtype == keys.dtype == values.dtype:
        kinds = f"queries {queries.dtype}, keys {keys.dtype}, values {values.dtype}"
        raise TypeError(f"all inputs must have one dtype, got {kinds}")
    q, k, v = (tuple(X.shape) for X in (queries, keys, values))
    problem = _misfit(q, k, v, same_width)
    if problem:
        raise ValueError(f"{problem}, got queries {q}, keys {k}, values {v}")


def _misfit(q, k, v, same_width):
    if not len(q) == len(k) == len(v) or len(q) not in (3, 4):
        return "all inputs must be (B, L or S, width), or all have a head axis, (B, H, L or S, d)"
    if not q[:-2] == k[:-2] == v[:-2]:
        return "all inputs must have one batch size (and number of heads)"
    if k[-2] != v[-2]:
        return f"each key needs one value, not {k[-2]} keys and {v[-2]} values"
    if same_width and q[-1] != k[-1]:
        return f"queries and keys must have one width d_k, not {q[-1]} and {k[-1]}"
    return None


def check_lengths(valid_lens, batch_size, num_queries, num_keys):
    """Raise an error quoting what is wrong unless these are lengths in 0..S, (B,) or (B, L)."""
    if not torch.is_tensor(valid_lens) or valid_lens.is_floating_point() or valid_lens.is_complex():
        raise TypeError(f"valid_lens must be a tensor of integers, got {kind_of(valid_lens)}")
    if valid_lens.dtype == torch.bool:
        raise TypeError("valid_lens must be lengths, got torch.bool: pass booleans as mask=")
    if tuple(valid_lens.shape) not in ((batch_size,), (batch_size, num_queries)):
        raise ValueError(
            f"valid_lens must be (B,) = ({batch_size},) or (B, L) = ({batch_size}, {num_queries}), "
            f"got {tuple(valid_lens.shape)}"
        )
    if valid_lens.numel():
        low, high = (int(end) for end in valid_lens.aminmax())
        if low < 0 or high > num_keys:
            wrong = low if low < 0 else high
            raise ValueError(f"valid_lens must lie in 0..S = 0..{num_keys}, got {wrong}")


def check_projectable(linear, X, name):
    """Raise an error quoting both unless X has the dtype and the width that `linear` takes."""
    if X.dtype != linear.weight.dtype and not torch.is_autocast_enabled(X.device.type):
        raise TypeError(f"the inputs are {X.dtype}, the module's weights {linear.weight.dtype}")
    if X.shape[-1] != linear.in_features:
        raise ValueError(
            f"{name} must have width {linear.in_features}, got {X.shape[-1]} in {tuple(X.shape)}"
        )


def check_floating(X, name):
    """Raise TypeError naming the kind unless X is a floating-point tensor."""
    if not torch.is_tensor(X) or not X.is_floating_point():
        raise TypeError(f"{name} must be a floating-point tensor, got {kind_of(X)}")


def check_rank(X, rank, axes, name="X"):
    """Raise an error that says what the axes should be unless X is a tensor of this rank."""
    if not torch.is_tensor(X):
        raise TypeError(f"{name} must be a tensor {axes}, got {kind_of(X)}")
    if X.dim() != rank:
        raise ValueError(f"{name} must be {axes}, got {tuple(X.shape)}")


def check_dropout(dropout):
    """Raise ValueError quoting dropout unless it is a probability."""
    if not 0 <= dropout <= 1:
        raise ValueError(f"dropout must lie in 0..1, got {dropout}")


def kind_of(X):
    """What X is, for an error: the dtype of a tensor, the type of anything else."""
    return X.dtype if torch.is_tensor(X) else type(X).__name__
