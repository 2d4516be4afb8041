"""A layer of BERT: lesson 04's heads, and what BERT puts around them."""

import math

import torch
from torch import nn
from torch.nn import functional as F

from mha_course.attention import check_dtype, check_width, masked_softmax
from mha_course.bert_config import ACTIVATIONS
from mha_course.multihead import _from_heads, _to_heads

__all__ = ["BertFeedForward", "BertLayer", "BertSelfAttention", "BertSelfOutput", "additive_mask"]


def additive_mask(attention_mask, dtype=torch.float32):
    """What is added to the scores so that padding gets no weight: 0 for words, else the lowest.

    Shapes: attention_mask (B, S), 1 for a word and 0 for padding; returns (B, 1, 1, S), which
        fits the scores (B, H, L, S) of all heads and queries.
    Properties: the lowest number of `dtype`, not -inf: a row of padding alone gets no NaN.
    Raises: TypeError unless attention_mask is a tensor and dtype floating point; ValueError
        quoting the shape or a value that is neither 0 nor 1.
    Source: Devlin et al. 2019, published code. Lesson: notebooks/06_bert_attention.ipynb.
    """
    if not torch.is_tensor(attention_mask):
        raise TypeError(f"attention_mask must be a tensor, got {type(attention_mask).__name__}")
    if not dtype.is_floating_point:
        raise TypeError(f"the mask is added to scores, so dtype must be floating, got {dtype}")
    if attention_mask.dim() != 2:
        raise ValueError(f"attention_mask must be (B, S), got {tuple(attention_mask.shape)}")
    odd = (attention_mask != 0) & (attention_mask != 1)
    if odd.any():
        raise ValueError(f"attention_mask must hold 0 and 1, got {attention_mask[odd][0].item()}")
    mask = torch.zeros(attention_mask.shape, dtype=dtype, device=attention_mask.device)
    return mask.masked_fill(attention_mask == 0, torch.finfo(dtype).min)[:, None, None, :]


class BertSelfAttention(nn.Module):
    """Lesson 04's heads with biases and an additive mask; what joins them is in BertSelfOutput.

    Shapes: X (B, L, hidden_size); mask added to the scores, (B, 1, 1, L) or whatever broadcasts
        to (B, H, L, L); head_mask (H,), a factor for each head; returns (B, L, hidden_size), with
        need_weights=True also each head's weights (B, H, L, L), before dropout and head_mask.
    Raises: TypeError for a dtype that is not the module's; ValueError quoting the sizes of an X
        or head_mask that does not fit.
    Source: Devlin et al. 2019; Vaswani et al. 2017, section 3.2.2.
    Lesson: notebooks/06_bert_attention.ipynb.
    """

    def __init__(self, config):
        super().__init__()
        width = config.hidden_size
        self.num_heads = config.num_attention_heads
        self.W_q = nn.Linear(width, width)
        self.W_k = nn.Linear(width, width)
        self.W_v = nn.Linear(width, width)
        self.dropout = nn.Dropout(config.attention_probs_dropout_prob)

    def forward(self, X, mask=None, head_mask=None, need_weights=False):
        """Attend with all heads; see the class for shapes."""
        _check_hidden(X, self.W_q)
        q, k, v = (_to_heads(W(X), self.num_heads) for W in (self.W_q, self.W_k, self.W_v))
        if need_weights or (self.training and self.dropout.p > 0):
            scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])  # (B, H, L, L)
            scores = scores if mask is None else scores + mask
            weights = masked_softmax(scores.flatten(0, 1)).view(scores.shape)
            output = self.dropout(weights) @ v  # (B, H, L, d)
        else:
            output = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)  # (B, H, L, d)
        if head_mask is not None:
            if tuple(head_mask.shape) != (self.num_heads,):
                shape = tuple(head_mask.shape)
                raise ValueError(f"head_mask must be (H,) = ({self.num_heads},), got {shape}")
            output = output * head_mask.view(-1, 1, 1)
        output = _from_heads(output)  # (B, L, H * d)
        return (output, weights) if need_weights else output


class BertSelfOutput(nn.Module):
    """The heads joined by W_o, added to what went in, and normalised.

    Shapes: X and residual (B, L, hidden_size); returns (B, L, hidden_size).
    Raises: as BertSelfAttention; ValueError quoting both shapes if they differ.
    Source: Devlin et al. 2019; Ba et al. 2016. Lesson: notebooks/06_bert_attention.ipynb.
    """

    def __init__(self, config):
        super().__init__()
        self.W_o = nn.Linear(config.hidden_size, config.hidden_size)
        self.norm = nn.LayerNorm(config.hidden_size, eps=config.layer_norm_eps)
        self.dropout = nn.Dropout(config.hidden_dropout_prob)

    def forward(self, X, residual):
        """Join, add, normalise; see the class for shapes."""
        _check_hidden(X, self.W_o)
        if residual.shape != X.shape:
            shapes = f"{tuple(residual.shape)} and {tuple(X.shape)}"
            raise ValueError(f"what went in and the heads must have one shape, got {shapes}")
        return self.norm(self.dropout(self.W_o(X)) + residual)


class BertFeedForward(nn.Module):
    """Each word on its own through a wide layer and back, added to what went in, normalised.

    Shapes: X (B, L, hidden_size); returns (B, L, hidden_size).
    Raises: as BertSelfAttention.
    Source: Vaswani et al. 2017, eq. 2; Devlin et al. 2019 (GELU).
    Lesson: notebooks/06_bert_attention.ipynb.
    """

    def __init__(self, config):
        super().__init__()
        self.W_1 = nn.Linear(config.hidden_size, config.intermediate_size)
        self.W_2 = nn.Linear(config.intermediate_size, config.hidden_size)
        self.activation = ACTIVATIONS[config.hidden_act]
        self.norm = nn.LayerNorm(config.hidden_size, eps=config.layer_norm_eps)
        self.dropout = nn.Dropout(config.hidden_dropout_prob)

    def forward(self, X):
        """Widen, narrow, add, normalise; see the class for shapes."""
        _check_hidden(X, self.W_1)
        hidden = self.activation(self.W_1(X))  # (B, L, intermediate_size)
        return self.norm(self.dropout(self.W_2(hidden)) + X)


class BertLayer(nn.Module):
    """One layer: self-attention, its output, the feed-forward part.

    Shapes: X (B, L, hidden_size); mask and head_mask as in BertSelfAttention; returns
        (B, L, hidden_size), with need_weights=True also the weights (B, H, L, L).
    Raises: as BertSelfAttention.
    Source: Devlin et al. 2019; Vaswani et al. 2017, figure 1.
    Lesson: notebooks/06_bert_attention.ipynb.
    """

    def __init__(self, config):
        super().__init__()
        self.self_attention = BertSelfAttention(config)
        self.self_output = BertSelfOutput(config)
        self.feed_forward = BertFeedForward(config)

    def forward(self, X, mask=None, head_mask=None, need_weights=False):
        """Attend, join, think each word over; see the class for shapes."""
        attended = self.self_attention(X, mask, head_mask, need_weights)
        attended, weights = attended if need_weights else (attended, None)
        output = self.feed_forward(self.self_output(attended, X))  # (B, L, hidden_size)
        return (output, weights) if need_weights else output


def _check_hidden(X, linear):
    if not torch.is_tensor(X):
        raise TypeError(f"X must be a tensor (B, L, hidden_size), got {type(X).__name__}")
    if X.dim() != 3:
        raise ValueError(f"X must be (B, L, hidden_size), got {tuple(X.shape)}")
    check_dtype(linear, X)
    check_width(linear, X, "X")
