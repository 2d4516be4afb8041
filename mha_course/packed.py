"""Self-attention with one projection for queries, keys and values."""

from torch import nn

from mha_course.attention import check_dropout, check_projectable, check_rank
from mha_course.multihead import MultiHeadAttention, attend, check_heads

__all__ = ["PackedMultiHeadAttention"]


class PackedMultiHeadAttention(nn.Module):
    """Multi-head self-attention whose W_q, W_k and W_v lie below one another in one matrix.

    Shapes: X (B, L, num_hiddens); valid_lens (B,) or (B, L); mask boolean, True = may attend,
        (L, L), (B, L, L) or (B, H, L, L), where 1 stands for any size; returns
        (B, L, num_hiddens), with need_weights=True also the weights (B, H, L, L), before dropout.
    Properties: attention(X) is what the `MultiHeadAttention` with the same weights makes of
        (X, X, X), with one matrix product in place of three. W_qkv.weight is
        (3 * num_hiddens, num_hiddens), in the order of PyTorch's in_proj_weight.
    Raises: as `MultiHeadAttention`; ValueError quoting the sizes for an X that is not of rank 3.
    Source: torch.nn.MultiheadAttention (in_proj_weight); Vaswani et al. 2017, section 3.2.2.
    Lesson: notebooks/09_cost_of_attention.ipynb.
    """

    def __init__(self, num_hiddens, num_heads, dropout=0.0, bias=False):
        super().__init__()
        check_heads(num_hiddens, num_heads)
        check_dropout(dropout)
        self.num_heads = num_heads
        self.W_qkv = nn.Linear(num_hiddens, 3 * num_hiddens, bias=bias)
        self.W_o = nn.Linear(num_hiddens, num_hiddens, bias=bias)
        self.dropout = nn.Dropout(dropout)

    def forward(self, X, valid_lens=None, mask=None, need_weights=False):
        """Project once and split into three times as many heads; see the class for shapes."""
        check_rank(X, 3, "(B, L, num_hiddens)")
        check_projectable(self.W_qkv, X, "X")
        qkv = self.W_qkv(X).unflatten(-1, (3 * self.num_heads, -1))  # (B, L, 3 * H, d)
        q, k, v = qkv.transpose(1, 2).chunk(3, dim=1)  # (B, H, L, d) each
        output, weights = attend(q, k, v, valid_lens, mask, self.dropout, need_weights)
        output = self.W_o(output.transpose(1, 2).flatten(2))  # (B, L, num_hiddens)
        return (output, weights) if need_weights else output

    @classmethod
    def from_plain(cls, attention):
        """The same self-attention, packed: with a copy of the weights of a `MultiHeadAttention`.

        Raises: ValueError quoting the sizes unless all four matrices map num_hiddens to as many.
        """
        num_hiddens, bias = attention.W_o.in_features, attention.W_o.bias is not None
        packed = cls(num_hiddens, attention.num_heads, attention.dropout.p, bias)
        parts, weights = packed.to(attention.W_o.weight)._parts(), attention.state_dict()
        sizes = {name: tuple(X.shape) for name, X in weights.items()}
        if sizes != {name: tuple(X.shape) for name, X in parts.items()}:
            raise ValueError(f"num_hiddens={num_hiddens} cannot be packed from {sizes}")
        for name, part in parts.items():
            part.copy_(weights[name])
        return packed.train(attention.training)

    def to_plain(self):
        """The same self-attention as a `MultiHeadAttention`, with a copy of the weights."""
        num_hiddens, bias = self.W_o.in_features, self.W_o.bias is not None
        attention = MultiHeadAttention(*[num_hiddens] * 4, self.num_heads, self.dropout.p, bias)
        attention.to(self.W_o.weight).load_state_dict(self._parts())
        return attention.train(self.training)

    def _parts(self):
        # The plain class's parameter names, each with the part of these weights that it stands for.
        parts = {f"W_o.{name}": X for name, X in self.W_o.state_dict().items()}
        for name, X in self.W_qkv.state_dict().items():
            W_q, W_k, W_v = X.chunk(3)
            parts |= {f"W_q.{name}": W_q, f"W_k.{name}": W_k, f"W_v.{name}": W_v}
        return parts
