"""BERT, from the ids of words to their hidden states and the pooled vector."""

import math
from dataclasses import dataclass, fields
from functools import partial
from numbers import Integral, Real
from typing import NamedTuple

import torch
from torch import nn
from torch.nn import functional as F

from mha_course.attention import check_projectable, check_rank, kind_of
from mha_course.multihead import check_heads, merge_heads, split_heads

__all__ = [
    "ACTIVATIONS",
    "BertConfig",
    "BertEmbeddings",
    "BertEncoder",
    "BertFeedForward",
    "BertLayer",
    "BertModel",
    "BertOutput",
    "BertPooler",
    "BertSelfAttention",
    "BertSelfOutput",
    "additive_mask",
]

ACTIVATIONS = {
    "gelu": F.gelu,
    "gelu_new": partial(F.gelu, approximate="tanh"),
    "relu": F.relu,
    "silu": F.silu,
}
SIZES = (
    "vocab_size",
    "hidden_size",
    "num_hidden_layers",
    "num_attention_heads",
    "intermediate_size",
    "max_position_embeddings",
    "type_vocab_size",
)
# What a config.json may say that this BERT is not, and the value that it has to have.
FIXED = {
    "model_type": "bert",
    "position_embedding_type": "absolute",
    "is_decoder": False,
    "add_cross_attention": False,
}


@dataclass(frozen=True)
class BertConfig:
    """The sizes of a BERT, under the names that published checkpoints use; BERT-base by default.

    Raises: TypeError or ValueError quoting the value for sizes that are not positive integers,
        probabilities outside 0..1, a width that the heads do not divide, an unknown activation.
    Source: Devlin et al. 2019, section 3. Lesson: notebooks/06_bert_attention.ipynb.
    """

    vocab_size: int = 30522
    hidden_size: int = 768
    num_hidden_layers: int = 12
    num_attention_heads: int = 12
    intermediate_size: int = 3072
    hidden_act: str = "gelu"
    hidden_dropout_prob: float = 0.1
    attention_probs_dropout_prob: float = 0.1
    max_position_embeddings: int = 512
    type_vocab_size: int = 2
    layer_norm_eps: float = 1e-12
    initializer_range: float = 0.02
    pad_token_id: int = 0

    def __post_init__(self):
        for name in (*SIZES, "pad_token_id"):
            value = getattr(self, name)
            if not isinstance(value, Integral) or isinstance(value, bool):
                raise TypeError(f"{name} must be an integer, got {value!r}")
            if value < (name in SIZES):
                raise ValueError(f"{name} must be positive, got {value}")
        for name in ("hidden_dropout_prob", "attention_probs_dropout_prob"):
            _check_real(name, getattr(self, name), 0, 1)
        for name in ("layer_norm_eps", "initializer_range"):
            _check_real(name, getattr(self, name), 0, math.inf)
        check_heads(self.hidden_size, self.num_attention_heads)
        if self.hidden_act not in ACTIVATIONS:
            known = ", ".join(ACTIVATIONS)
            raise ValueError(f"hidden_act must be one of {known}; got {self.hidden_act!r}")
        if self.pad_token_id >= self.vocab_size:
            raise ValueError(
                f"pad_token_id={self.pad_token_id} is not in a vocabulary of {self.vocab_size}"
            )

    @property
    def activation(self):
        """The function that `hidden_act` names."""
        return ACTIVATIONS[self.hidden_act]

    @classmethod
    def from_dict(cls, content):
        """The config that a published `config.json` describes; what it says besides is left out.

        Raises: ValueError quoting the entry if it describes a model that this BERT is not, or
            lacks one of the sizes; otherwise as the class.
        """
        if not isinstance(content, dict):
            raise TypeError(f"a config is a dictionary, got {type(content).__name__}")
        for name, value in FIXED.items():
            if content.get(name, value) != value:
                raise ValueError(f"{name} is {content[name]!r}; the course's BERT needs {value!r}")
        if lacking := [name for name in SIZES if name not in content]:
            raise ValueError(f"the config does not say {', '.join(lacking)}")
        known = {field.name for field in fields(cls)}
        return cls(**{name: value for name, value in content.items() if name in known})


class BertEmbeddings(nn.Module):
    """A word's vector, its position's and its segment's, added and normalised.

    Shapes: input_ids (B, L); token_type_ids (B, L) or None for all 0; returns (B, L, hidden_size).
    Raises: TypeError unless ids are integer tensors; ValueError quoting shapes that do not fit,
        texts longer than max_position_embeddings, ids outside their tables.
    Source: Devlin et al. 2019, figure 2. Lesson: notebooks/06_bert_attention.ipynb.
    """

    def __init__(self, config):
        super().__init__()
        width = config.hidden_size
        self.words = nn.Embedding(config.vocab_size, width, padding_idx=config.pad_token_id)
        self.positions = nn.Embedding(config.max_position_embeddings, width)
        self.segments = nn.Embedding(config.type_vocab_size, width)
        self.norm = nn.LayerNorm(width, eps=config.layer_norm_eps)
        self.dropout = nn.Dropout(config.hidden_dropout_prob)

    def forward(self, input_ids, token_type_ids=None):
        """Embed; see the class for shapes."""
        _check_ids("input_ids", input_ids, self.words)
        length = input_ids.shape[1]
        if length > self.positions.num_embeddings:
            raise ValueError(
                f"the model reads {self.positions.num_embeddings} tokens, got {length}"
            )
        X = self.words(input_ids) + self.positions.weight[:length]  # (B, L, D)
        if token_type_ids is None:
            X = X + self.segments.weight[0]
        else:
            _check_ids("token_type_ids", token_type_ids, self.segments)
            _check_same_shape("token_type_ids", token_type_ids, input_ids)
            X = X + self.segments(token_type_ids)
        return self.dropout(self.norm(X))


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

    def forward(self, X, mask=None, need_weights=False, head_mask=None):
        """Attend with all heads; see the class for shapes."""
        _check_hidden(X, self.W_q)
        q = split_heads(self.W_q(X), self.num_heads)  # (B, H, L, d)
        k = split_heads(self.W_k(X), self.num_heads)  # (B, H, L, d)
        v = split_heads(self.W_v(X), self.num_heads)  # (B, H, L, d)
        if need_weights or (self.training and self.dropout.p > 0):
            scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])  # (B, H, L, L)
            scores = scores if mask is None else scores + mask
            weights = torch.softmax(scores, dim=-1)
            output = self.dropout(weights) @ v  # (B, H, L, d)
        else:
            output = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)  # (B, H, L, d)
        if head_mask is not None:
            _check_head_mask(head_mask, "(H,)", (self.num_heads,))
            output = output * head_mask.view(-1, 1, 1)
        output = merge_heads(output)  # (B, L, H * d)
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
        self.activation = config.activation
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

    def forward(self, X, mask=None, need_weights=False, head_mask=None):
        """Attend, join, think each word over; see the class for shapes."""
        attended = self.self_attention(X, mask, need_weights, head_mask)
        attended, weights = attended if need_weights else (attended, None)
        output = self.feed_forward(self.self_output(attended, X))  # (B, L, hidden_size)
        return (output, weights) if need_weights else output


class BertEncoder(nn.Module):
    """The layers, one after the other.

    Shapes: X (B, L, hidden_size); mask (B, 1, 1, L), added to the scores of every layer; head_mask
        (num_hidden_layers, H); returns the last hidden state (B, L, hidden_size), a list of the
        hidden states and a list of the weights, both empty unless asked for.
    Properties: `layer` makes a layer from a config, so a layer of your own can run here.
    Raises: as BertSelfAttention; ValueError quoting the shape of a head_mask that does not fit.
    Source: Devlin et al. 2019. Lesson: notebooks/06_bert_attention.ipynb.
    """

    def __init__(self, config, layer=BertLayer):
        super().__init__()
        self.num_heads = config.num_attention_heads
        self.layers = nn.ModuleList(layer(config) for _ in range(config.num_hidden_layers))

    def forward(self, X, mask=None, head_mask=None, need_weights=False, need_hidden_states=False):
        """Run all layers; see the class for shapes."""
        factors = self._factors(head_mask)
        hidden_states, attentions = [X] if need_hidden_states else [], []
        for layer, factor in zip(self.layers, factors, strict=True):
            # A learner's own layer need not know of head masks until one is used.
            options = {} if factor is None else {"head_mask": factor}
            X = layer(X, mask, need_weights=need_weights, **options)
            if need_weights:
                X, weights = X
                attentions.append(weights)
            if need_hidden_states:
                hidden_states.append(X)
        return X, hidden_states, attentions

    def _factors(self, head_mask):
        if head_mask is None:
            return [None] * len(self.layers)
        sizes = (len(self.layers), self.num_heads)
        _check_head_mask(head_mask, "(num_hidden_layers, H)", sizes)
        return head_mask


class BertPooler(nn.Module):
    """One vector for a text: the first token's, through a linear layer and tanh.

    Shapes: X (B, L, hidden_size); returns (B, hidden_size).
    Source: Devlin et al. 2019, published code. Lesson: notebooks/06_bert_attention.ipynb.
    """

    def __init__(self, config):
        super().__init__()
        self.dense = nn.Linear(config.hidden_size, config.hidden_size)

    def forward(self, X):
        """Pool; see the class for shapes."""
        return torch.tanh(self.dense(X[:, 0]))


class BertOutput(NamedTuple):
    """What a BERT returns.

    Shapes: last_hidden_state (B, L, hidden_size); pooler_output (B, hidden_size); hidden_states,
        on request, the embeddings and each layer's output, num_hidden_layers + 1 of
        (B, L, hidden_size); attentions, on request, each layer's weights (B, H, L, L).
    """

    last_hidden_state: torch.Tensor
    pooler_output: torch.Tensor
    hidden_states: tuple | None = None
    attentions: tuple | None = None


class BertModel(nn.Module):
    """BERT: embeddings, encoder, pooler, with the results of transformers' BertModel.

    Shapes: input_ids (B, L); attention_mask (B, L), 1 for a word and 0 for padding, None for no
        padding; token_type_ids (B, L), None for all 0; head_mask (num_hidden_layers, H), a factor
        for each head's output; returns a BertOutput.
    Properties: unless weights are asked for or dropped, PyTorch's fused attention runs. `layer`
        makes a layer from a config: with your own, this is your own BERT.
    Raises: TypeError or ValueError quoting what does not fit; see BertConfig, BertEmbeddings,
        additive_mask, BertEncoder.
    Source: Devlin et al. 2019. Lesson: notebooks/06_bert_attention.ipynb.
    """

    def __init__(self, config, layer=BertLayer):
        super().__init__()
        self.config = config
        self.embeddings = BertEmbeddings(config)
        self.encoder = BertEncoder(config, layer)
        self.pooler = BertPooler(config)
        self.apply(self._initialise)

    def forward(
        self,
        input_ids,
        attention_mask=None,
        token_type_ids=None,
        head_mask=None,
        need_weights=False,
        need_hidden_states=False,
    ):
        """Encode; see the class for shapes."""
        X = self.embeddings(input_ids, token_type_ids)  # (B, L, hidden_size)
        mask = None
        if attention_mask is not None:
            _check_same_shape("attention_mask", attention_mask, input_ids)
            mask = additive_mask(attention_mask, X.dtype)  # (B, 1, 1, L)
            if not mask.any():
                mask = None  # without one, the fused kernel is quickest
        X, hidden_states, attentions = self.encoder(
            X, mask, head_mask, need_weights, need_hidden_states
        )
        return BertOutput(
            X,
            self.pooler(X),
            tuple(hidden_states) if need_hidden_states else None,
            tuple(attentions) if need_weights else None,
        )

    def _initialise(self, module):
        if isinstance(module, nn.Linear | nn.Embedding):
            nn.init.normal_(module.weight, std=self.config.initializer_range)
        if isinstance(module, nn.Linear) and module.bias is not None:
            nn.init.zeros_(module.bias)
        if isinstance(module, nn.Embedding) and module.padding_idx is not None:
            with torch.no_grad():
                module.weight[module.padding_idx] = 0


def _check_real(name, value, low, high):
    if not isinstance(value, Real) or isinstance(value, bool):
        raise TypeError(f"{name} must be a number, got {value!r}")
    if not low <= value <= high:
        raise ValueError(f"{name} must lie in {low}..{high}, got {value}")


def _check_ids(name, ids, table):
    if not torch.is_tensor(ids) or ids.dtype not in (torch.int64, torch.int32):
        raise TypeError(f"{name} must be an integer tensor (B, L), got {kind_of(ids)}")
    if ids.dim() != 2 or not ids.numel():
        raise ValueError(f"{name} must be (B, L), both positive, got {tuple(ids.shape)}")
    low, high = (int(end) for end in ids.aminmax())
    if low < 0 or high >= table.num_embeddings:
        wrong = low if low < 0 else high
        raise ValueError(f"{name} must lie in 0..{table.num_embeddings - 1}, got {wrong}")


def _check_same_shape(name, tensor, other):
    if tensor.shape != other.shape:
        raise ValueError(
            f"{name} must have the shape {tuple(other.shape)}, got {tuple(tensor.shape)}"
        )


def _check_hidden(X, linear):
    check_rank(X, 3, "(B, L, hidden_size)")
    check_projectable(linear, X, "X")


def _check_head_mask(head_mask, axes, sizes):
    if tuple(head_mask.shape) != sizes:
        raise ValueError(f"head_mask must be {axes} = {sizes}, got {tuple(head_mask.shape)}")
