"""BERT, from the ids of words to their hidden states and the pooled vector."""

from typing import NamedTuple

import torch
from torch import nn

from mha_course.bert_config import ACTIVATIONS, BertConfig
from mha_course.bert_layer import (
    BertFeedForward,
    BertLayer,
    BertSelfAttention,
    BertSelfOutput,
    additive_mask,
)

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
        wanted = (len(self.layers), self.num_heads)
        if tuple(head_mask.shape) != wanted:
            shape = tuple(head_mask.shape)
            raise ValueError(f"head_mask must be (num_hidden_layers, H) = {wanted}, got {shape}")
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


def _check_ids(name, ids, table):
    if not torch.is_tensor(ids) or ids.dtype not in (torch.int64, torch.int32):
        kind = ids.dtype if torch.is_tensor(ids) else type(ids).__name__
        raise TypeError(f"{name} must be an integer tensor (B, L), got {kind}")
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
