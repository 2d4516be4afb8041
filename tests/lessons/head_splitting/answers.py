"""Answers to the tasks of lesson 04."""

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

from mha_course.attention import scaled_dot_product_attention


def split(X, num_heads):
    return X.reshape(*X.shape[:2], num_heads, -1).permute(0, 2, 1, 3).flatten(0, 1)


def split_by_loop(X, num_heads):
    d = X.shape[2] // num_heads
    rows = [sequence[:, h * d : (h + 1) * d] for sequence in X for h in range(num_heads)]
    return torch.stack(rows)


def split_row_by_row(X, num_heads):
    B, L, num_hiddens = X.shape
    d = num_hiddens // num_heads
    output = X.new_empty(B * num_heads, L, d)
    for row in range(B * num_heads):
        b, h = divmod(row, num_heads)
        output[row] = X[b, :, h * d : (h + 1) * d]
    return output


def split_by_einsum(X, num_heads):
    return torch.einsum("blhd->bhld", X.unflatten(-1, (num_heads, -1))).flatten(0, 1)


def merge(X, num_heads):
    return X.unflatten(0, (-1, num_heads)).transpose(1, 2).flatten(2)


def merge_by_loop(X, num_heads):
    sequences = X.split(num_heads)
    return torch.stack([torch.cat(list(heads), dim=-1) for heads in sequences])


def merge_in_place(X, num_heads):
    return X.transpose_(1, 2).reshape(-1, X.shape[1] * num_heads, X.shape[2]).transpose(1, 2)


class Module(nn.Module):
    """A right answer whose parts can be replaced by wrong ones."""

    split, merge = staticmethod(split), staticmethod(merge)
    drop_in_eval = False

    def __init__(self, key_size, query_size, value_size, num_hiddens, num_heads, dropout=0, bias=0):
        super().__init__()
        self.num_heads, self.dropout = num_heads, nn.Dropout(dropout)
        self.W_q = nn.Linear(query_size, num_hiddens, bias=bool(bias))
        self.W_k = nn.Linear(key_size, num_hiddens, bias=bool(bias))
        self.W_v = nn.Linear(value_size, num_hiddens, bias=bool(bias))
        self.W_o = nn.Linear(num_hiddens, num_hiddens, bias=bool(bias))

    def spread(self, valid_lens):
        return valid_lens.repeat_interleave(self.num_heads, dim=0)

    def attend(self, q, k, v, valid_lens):
        weights = scaled_dot_product_attention(q, k, v, valid_lens)[1]
        return self.dropout(weights) @ v

    def finish(self, output):
        return self.W_o(output)

    def forward(self, queries, keys, values, valid_lens=None):
        projections = zip((self.W_q, self.W_k, self.W_v), (queries, keys, values), strict=True)
        q, k, v = (self.split(W(X), self.num_heads) for W, X in projections)
        spread = None if valid_lens is None else self.spread(valid_lens)
        return self.finish(self.merge(self.attend(q, k, v, spread), self.num_heads))


class DropsByDefault(Module):
    def __init__(self, *sizes, dropout=0.1, bias=False):
        super().__init__(*sizes[:5], *(sizes[5:] or (dropout, bias)))


class BiasByDefault(DropsByDefault):
    def __init__(self, *sizes):
        super().__init__(*sizes, dropout=0.0, bias=True)


def softmax_attention(q, k, v, valid_lens, fill, scale, keep):
    """Attention with the parts that people get wrong: fill value, scale, which keys are kept."""
    scores = q @ k.transpose(1, 2) * scale
    if valid_lens is not None:
        lens = valid_lens[:, None, None] if valid_lens.dim() == 1 else valid_lens[:, :, None]
        scores = scores.masked_fill(~keep(torch.arange(k.shape[1]), lens), fill)
    return scores.softmax(-1)


def variant(base=Module, **parts):
    return type("MultiHeadAttention", (base,), parts)


def with_attention(fill=-torch.inf, scale=None, keep=torch.lt, mend=torch.nan_to_num):
    def attend(self, q, k, v, valid_lens):
        by = q.shape[-1] ** -0.5 if scale is None else scale(q, self.num_heads)
        weights = mend(softmax_attention(q, k, v, valid_lens, fill, by, keep))
        return self.dropout(weights) @ v

    return variant(attend=attend)


class RemembersLengths(Module):
    lens = None

    def forward(self, queries, keys, values, valid_lens=None):
        self.lens = self.lens if valid_lens is None else valid_lens
        return super().forward(queries, keys, values, self.lens)


class AveragesInTables(Module):
    def attend(self, q, k, v, valid_lens):
        fill = -1e9 if valid_lens is not None and valid_lens.dim() > 1 else -torch.inf
        return with_attention(fill).attend(self, q, k, v, valid_lens)


class QueryAndKeySizeSwapped(Module):
    def __init__(self, key_size, query_size, *others):
        super().__init__(query_size, key_size, *others)


class AllOfQuerySize(Module):
    def __init__(self, key_size, query_size, value_size, *others):
        super().__init__(query_size, query_size, query_size, *others)


class InAndOutSwapped(Module):
    def __init__(self, key_size, query_size, value_size, num_hiddens, *others):
        super().__init__(key_size, query_size, value_size, num_hiddens, *others)
        self.W_q = nn.Linear(num_hiddens, query_size, bias=self.W_o.bias is not None)


class LoopOfHeads(Module):
    def forward(self, queries, keys, values, valid_lens=None):
        heads = []
        for q, k, v in zip(
            self.W_q(queries).chunk(self.num_heads, -1),
            self.W_k(keys).chunk(self.num_heads, -1),
            self.W_v(values).chunk(self.num_heads, -1),
            strict=True,
        ):
            heads.append(self.attend(q, k, v, valid_lens))
        return self.W_o(torch.cat(heads, -1))


class Fused(Module):
    def forward(self, queries, keys, values, valid_lens=None):
        q, k, v = (
            W(X).unflatten(-1, (self.num_heads, -1)).transpose(1, 2)
            for W, X in ((self.W_q, queries), (self.W_k, keys), (self.W_v, values))
        )
        mask = None
        if valid_lens is not None:
            lens = valid_lens.reshape(len(valid_lens), 1, -1, 1)
            mask = torch.arange(keys.shape[1]) < lens
        dropout = self.dropout.p if self.training else 0.0
        output = F.scaled_dot_product_attention(q, k, v, mask, dropout_p=dropout)
        return self.W_o(output.transpose(1, 2).flatten(2))


class FiniteFill(Module):
    """Four axes all along; padding is filled with a large number, and its weights are wiped out."""

    scale, causal, fill = None, False, -1e30

    def forward(self, queries, keys, values, valid_lens=None):
        q, k, v = (
            W(X).unflatten(-1, (self.num_heads, -1)).transpose(1, 2)
            for W, X in ((self.W_q, queries), (self.W_k, keys), (self.W_v, values))
        )
        hidden = torch.zeros(q.shape[2], k.shape[2], dtype=torch.bool)
        if self.causal:
            hidden = ~torch.ones_like(hidden).tril()
        if valid_lens is not None:
            lens = valid_lens.reshape(len(valid_lens), 1, -1, 1)
            hidden = hidden | (torch.arange(k.shape[2]) >= lens)
        scores = q @ k.mT / (self.scale or q.shape[-1]) ** 0.5
        weights = scores.masked_fill(hidden, self.fill).softmax(-1).masked_fill(hidden, 0.0)
        return self.finish((self.dropout(weights) @ v).transpose(1, 2).flatten(2))


class SequenceBySequence(Module):
    def forward(self, queries, keys, values, valid_lens=None):
        outputs = []
        for b in range(len(queries)):
            lens = None if valid_lens is None else valid_lens[b : b + 1]
            given = (X[b : b + 1] for X in (queries, keys, values))
            outputs.append(super().forward(*given, lens))
        return torch.cat(outputs)


class ByRootOfAll(FiniteFill):
    def forward(self, queries, keys, values, valid_lens=None):
        self.scale = self.W_o.in_features
        return super().forward(queries, keys, values, valid_lens)


class DropsScores(Module):
    def attend(self, q, k, v, valid_lens):
        scores = self.dropout(q @ k.mT / q.shape[-1] ** 0.5)
        if valid_lens is not None:
            lens = valid_lens.reshape(len(valid_lens), -1, 1)
            scores = scores.masked_fill(torch.arange(k.shape[1]) >= lens, -torch.inf)
        return scores.softmax(-1).nan_to_num() @ v


class DropsMore(Module):
    of_queries = of_scores = False

    def kept(self, weights):
        return self.dropout(weights)

    def attend(self, q, k, v, valid_lens):
        q = self.dropout(q) if self.of_queries else q
        scores = q @ k.mT / q.shape[-1] ** 0.5
        scores = self.dropout(scores) if self.of_scores else scores
        if valid_lens is not None:
            lens = valid_lens.reshape(len(valid_lens), -1, 1)
            scores = scores.masked_fill(torch.arange(k.shape[1]) >= lens, -torch.inf)
        return self.kept(scores.softmax(-1).nan_to_num()) @ v


def drop_rows(self, weights):
    return weights * self.dropout(torch.ones_like(weights[..., :1]))


def drop_by_one_mask(self, weights):
    return weights * self.dropout(torch.ones_like(weights[:1]))


def drop_by_a_mask_for_each_head(self, weights):
    mask = self.dropout(torch.ones_like(weights[: self.num_heads]))
    return weights * mask.repeat(len(weights) // self.num_heads, 1, 1)


def drop_heads(self, weights):
    return weights * self.dropout(torch.ones_like(weights[:, :1, :1]))


class OwnMaskOfFewLengths(Module):
    """Lengths of the sequences next to scores of the heads."""

    def attend(self, q, k, v, valid_lens):
        scores = q @ k.mT / q.shape[-1] ** 0.5
        if valid_lens is not None:
            lens = valid_lens.reshape(len(valid_lens), -1, 1)
            scores = torch.where(torch.arange(k.shape[1]) < lens, scores, -torch.inf)
        return self.dropout(scores.softmax(-1).nan_to_num()) @ v

    def spread(self, valid_lens):
        return valid_lens


def blocks_of_W_o(self, output):
    pieces = output.chunk(self.num_heads, -1)
    W, b = self.W_o.weight, self.W_o.bias
    d = len(W) // self.num_heads
    own = (slice(h * d, (h + 1) * d) for h in range(self.num_heads))
    return torch.cat(
        [
            F.linear(X, W[rows, rows], None if b is None else b[rows])
            for X, rows in zip(pieces, own, strict=True)
        ],
        -1,
    )


def terms_of_W_o(self, output):
    """A sum over the heads, each with the bias."""
    W = self.W_o.weight.chunk(self.num_heads, 1)
    terms = zip(output.chunk(self.num_heads, -1), W, strict=True)
    return sum(F.linear(X, columns, self.W_o.bias) for X, columns in terms)


class HeadsInList(nn.Module):
    def __init__(self, key_size, query_size, value_size, num_hiddens, num_heads, dropout=0, bias=0):
        super().__init__()
        self.W_q = [nn.Linear(query_size, num_hiddens // num_heads) for _ in range(num_heads)]

    def forward(self, queries, keys, values, valid_lens=None):
        return torch.cat([W(queries) for W in self.W_q], -1)


def load(attention, reference, parts=(0, 1, 2), transpose=False, out=True, bias=True):
    with torch.no_grad():
        linears = (attention.W_q, attention.W_k, attention.W_v)
        weights = reference.in_proj_weight.chunk(3)
        for linear, part in zip(linears, parts, strict=True):
            linear.weight.copy_(weights[part].T if transpose else weights[part])
            if reference.in_proj_bias is not None and bias:
                linear.bias.copy_(reference.in_proj_bias.chunk(3)[part])
        if out:
            attention.W_o.weight.copy_(reference.out_proj.weight)
            if bias and reference.out_proj.bias is not None:
                attention.W_o.bias.copy_(reference.out_proj.bias)


@torch.no_grad()
def load_by_narrow(attention, reference):
    for kind in ("weight", "bias"):
        packed = getattr(reference, f"in_proj_{kind}")
        if packed is not None:
            for i, letter in enumerate("qkv"):
                rows = packed.narrow(0, i * reference.embed_dim, reference.embed_dim)
                attention.get_parameter(f"W_{letter}.{kind}").copy_(rows)
    attention.W_o.load_state_dict(reference.out_proj.state_dict())


def load_some(turn_in=False, turn_out=False, in_bias=True, out_bias=True):
    """Loading with one thing wrong or left out."""

    def load_torch_weights(attention, reference):
        load(attention, reference, bias=False)
        with torch.no_grad():
            for linear in (attention.W_q, attention.W_k, attention.W_v) if turn_in else ():
                linear.weight.copy_(linear.weight.T.clone())
            if turn_out:
                attention.W_o.weight.copy_(reference.out_proj.weight.T)
        if reference.in_proj_bias is not None:
            for i, letter in enumerate("qkv") if in_bias else ():
                bias = attention.get_parameter(f"W_{letter}.bias")
                bias.data.copy_(reference.in_proj_bias.data.chunk(3)[i])
            if out_bias:
                attention.W_o.bias.data.copy_(reference.out_proj.bias.data)

    return load_torch_weights


def load_by_head(attention, reference):
    load(attention, reference)
    for kind in ("weight", "bias"):
        packed = getattr(reference, f"in_proj_{kind}")
        if packed is not None:
            heads = packed.detach().tensor_split(reference.num_heads)
            for i, letter in enumerate("qkv"):
                own = torch.cat([head.chunk(3)[i] for head in heads])
                attention.get_parameter(f"W_{letter}.{kind}").data.copy_(own)


def load_biases_blindly(attention, reference):
    load(attention, reference, bias=False)
    with torch.no_grad():
        for letter, bias in zip("qkv", torch.chunk(reference.in_proj_bias, 3), strict=True):
            attention.get_submodule(f"W_{letter}").bias.copy_(bias)
        attention.W_o.bias.copy_(reference.out_proj.bias)


def then(change):
    """Right loading, and afterwards something that should not be."""

    def load_torch_weights(attention, reference):
        load(attention, reference)
        change(attention, reference)

    return load_torch_weights


def load_by_state_dict(attention, reference):
    state = {}
    for name, X in reference.state_dict().items():
        kind = name.removeprefix("in_proj_").removeprefix("out_proj.")
        names = ("W_q", "W_k", "W_v") if name.startswith("in") else ("W_o",)
        state |= {f"{n}.{kind}": x for n, x in zip(names, X.chunk(len(names)), strict=True)}
    attention.load_state_dict(state)


def load_by_data(attention, reference):
    d = reference.embed_dim
    for i, name in enumerate(("W_q", "W_k", "W_v")):
        linear = getattr(attention, name)
        linear.weight.data[:] = reference.in_proj_weight.data[i * d : (i + 1) * d]
        if linear.bias is not None:
            linear.bias.data[:] = reference.in_proj_bias.data[i * d : (i + 1) * d]
    attention.W_o.load_state_dict(reference.out_proj.state_dict())


def load_new_parameters(attention, reference):
    for i, name in enumerate(("W_q", "W_k", "W_v")):
        linear = getattr(attention, name)
        trained = linear.weight.requires_grad
        weight = reference.in_proj_weight.detach().chunk(3)[i].clone()
        linear.weight = nn.Parameter(weight, trained)
        if reference.in_proj_bias is not None:
            linear.bias = nn.Parameter(reference.in_proj_bias.detach().chunk(3)[i].clone(), trained)
    attention.W_o.load_state_dict(reference.out_proj.state_dict())


def load_into_thawed_parameters(attention, reference):
    load_by_state_dict(attention, reference)
    for name in ("W_q", "W_k", "W_v"):
        linear = getattr(attention, name)
        linear.weight = nn.Parameter(linear.weight.detach().clone())


@torch.no_grad()
def load_six_features(attention, reference):
    for kind in ("weight", "bias"):
        packed = getattr(reference, f"in_proj_{kind}")
        if packed is not None:
            for i, letter in enumerate("qkv"):
                attention.get_parameter(f"W_{letter}.{kind}").copy_(packed[6 * i : 6 * i + 6])
    attention.W_o.load_state_dict(reference.out_proj.state_dict())


def load_shared(attention, reference):
    attention.W_q.weight.data = reference.in_proj_weight.data.chunk(3)[0]
    load(attention, reference, parts=(0, 1, 2))


def load_only_weights_in_wrong_place(attention, reference):
    attention.W_q, attention.W_k = attention.W_k, attention.W_q
    load(attention, reference)
    attention.W_q, attention.W_k = attention.W_k, attention.W_q


def split_packed_by_loop(X, num_heads):
    d = X.shape[2] // 3 // num_heads
    parts = []
    for part in range(3):
        starts = [(part * num_heads + h) * d for h in range(num_heads)]
        parts.append(torch.stack([X[:, :, start : start + d] for start in starts], dim=1))
    return tuple(parts)


def split_packed_by_transpose_qkv(X, num_heads):
    """All parts as if they were 3 * H heads of one projection."""
    heads = split(X, 3 * num_heads).unflatten(0, (len(X), 3, num_heads))
    return heads[:, 0], heads[:, 1], heads[:, 2]


def split_packed_by_columns(X, num_heads):
    width = X.shape[2] // 3
    q, k, v = X[..., :width], X[..., width : 2 * width], X[..., 2 * width :]
    return [split(part, num_heads).unflatten(0, (-1, num_heads)) for part in (q, k, v)]


def packed_with(change):
    """Right, and then one of the three changed."""

    def split_packed(X, num_heads):
        return change(*split_packed_by_loop(X, num_heads))

    return split_packed


def repack_row_by_row(packed, num_heads):
    d = packed.shape[0] // 3 // num_heads
    repacked = torch.empty_like(packed)
    for row in range(packed.shape[0]):
        head, rest = divmod(row, 3 * d)
        part, feature = divmod(rest, d)
        repacked[(part * num_heads + head) * d + feature] = packed[row]
    return repacked


def repack_by_blocks(packed, num_heads):
    blocks = packed.chunk(3 * num_heads)
    return torch.cat([*blocks[0::3], *blocks[1::3], *blocks[2::3]])


def repack_by_index(packed, num_heads):
    order = torch.arange(packed.shape[0]).reshape(num_heads, 3, -1).permute(1, 0, 2).flatten()
    return packed[order]


def repack_by_head(packed, num_heads):
    heads = [head.chunk(3) for head in packed.chunk(num_heads)]
    return torch.cat([head[part] for part in range(3) for head in heads])


def repack_in_place(packed, num_heads):
    return packed.copy_(repack_by_blocks(packed, num_heads))


def repack_axes(*order, cut):
    """Rows cut into heads (H), parts (3) and features (d) in an order, joined in another."""

    def repack(packed, num_heads):
        sizes = {"H": num_heads, "3": 3, "d": packed.shape[0] // 3 // num_heads}
        rows = packed.reshape(*[sizes[name] for name in cut], *packed.shape[1:])
        places = [cut.index(name) for name in order]
        return rows.permute(*places, *range(3, rows.dim())).reshape(packed.shape)

    return repack


def grouped_row_by_row(X, num_heads, num_kv_heads):
    d = X.shape[2] // num_kv_heads
    rows = []
    for sequence in X:
        for h in range(num_heads):
            key_head = h * num_kv_heads // num_heads
            rows.append(sequence[:, key_head * d : (key_head + 1) * d])
    return torch.stack(rows)


def grouped_by_expand(X, num_heads, num_kv_heads):
    B, S, _ = X.shape
    heads = X.unflatten(-1, (num_kv_heads, -1)).transpose(1, 2)[:, :, None]
    shape = (B, num_kv_heads, num_heads // num_kv_heads, S, heads.shape[-1])
    return heads.expand(shape).flatten(0, 2)


def grouped_by_columns(X, num_heads, num_kv_heads):
    """The heads of each word are repeated before the split, as whole blocks of columns."""
    blocks = X.chunk(num_kv_heads, dim=-1)
    wide = torch.cat([b for b in blocks for _ in range(num_heads // num_kv_heads)], dim=-1)
    return split(wide, num_heads)


def grouped_in_place(X, num_heads, num_kv_heads):
    rows = grouped_row_by_row(X, num_heads, num_kv_heads)
    X.zero_()
    return rows


RIGHT = {
    "04-transpose_qkv": {
        "loop": split_by_loop,
        "einsum": split_by_einsum,
        "stack of chunks": lambda X, H: torch.stack(X.chunk(H, -1), 1).flatten(0, 1),
        "view and transpose": lambda X, H: (
            X.contiguous().view(*X.shape[:2], H, -1).transpose(1, 2).flatten(0, 1)
        ),
        "movedim": lambda X, H: X.unflatten(-1, (H, -1)).movedim(2, 1).flatten(0, 1),
        "row by row": split_row_by_row,
        "cat of stacks": lambda X, H: torch.cat([torch.stack(x.chunk(H, -1)) for x in X]),
        "not contiguous": lambda X, H: split(X, H).mT.contiguous().mT,
    },
    "04-transpose_output": {
        "loop": merge_by_loop,
        "einsum": lambda X, H: torch.einsum("bhld->blhd", X.unflatten(0, (-1, H))).flatten(2),
        "hstack": lambda X, H: torch.stack([torch.hstack(tuple(x)) for x in X.split(H)]),
        "cat of strides": lambda X, H: torch.cat([X[h::H] for h in range(H)], dim=-1),
        "contiguous view": lambda X, H: (
            X.reshape(-1, H, *X.shape[1:])
            .permute(0, 2, 1, 3)
            .contiguous()
            .view(-1, X.shape[1], H * X.shape[2])
        ),
    },
    "04-spread_valid_lens": {
        "indexing": lambda lens, H: lens[torch.arange(len(lens) * H) // H],
        "stack": lambda lens, H: torch.stack([lens] * H, dim=1).flatten(0, 1),
        "loop": lambda lens, H: torch.stack([row for row in lens for _ in range(H)]),
        "expand": lambda lens, H: (
            lens.unsqueeze(1).expand(-1, H, *lens.shape[1:]).reshape(-1, *lens.shape[1:])
        ),
        "kron": lambda lens, H: torch.kron(lens, lens.new_ones(H, *[1] * (lens.dim() - 1))),
        "numpy": lambda lens, H: torch.from_numpy(np.repeat(lens.numpy(), H, axis=0)),
        "int32": lambda lens, H: lens.int().repeat_interleave(H, 0),
    },
    "04-MultiHeadAttention": {
        "plain": Module,
        "loop of heads": LoopOfHeads,
        "fused": Fused,
        "own softmax with -inf, NaN mended": with_attention(),
        "finite fill, weights wiped out": FiniteFill,
        "sequence by sequence": SequenceBySequence,
        "split by loop, merge by loop": variant(
            split=staticmethod(split_by_loop), merge=staticmethod(merge_by_loop)
        ),
    },
    "04-load_torch_weights": {
        "copy_": load,
        "state dict": load_by_state_dict,
        "narrow": load_by_narrow,
        "data": load_by_data,
        "new parameters": load_new_parameters,
        "attention returned": lambda attention, reference: load(attention, reference) or attention,
    },
    "04-split_packed": {
        "loop": split_packed_by_loop,
        "three times as many heads": split_packed_by_transpose_qkv,
        "columns, a list": split_packed_by_columns,
        "contiguous": packed_with(lambda q, k, v: (q.contiguous(), k.contiguous(), v.contiguous())),
        "einsum": lambda X, H: torch.einsum("blphd->pbhld", X.unflatten(-1, (3, H, -1))).unbind(),
        "split, unbind": lambda X, H: tuple(
            torch.stack(part.chunk(H, dim=-1), dim=1) for part in X.split(X.shape[-1] // 3, dim=-1)
        ),
        "a list of movedim": lambda X, H: list(
            X.unflatten(-1, (3, H, -1)).movedim((2, 3), (0, 2)).unbind(0)
        ),
    },
    "04-repack": {
        "row by row": repack_row_by_row,
        "blocks": repack_by_blocks,
        "an index": repack_by_index,
        "head by head": repack_by_head,
        "stack": lambda packed, H: torch.stack(
            [head.unflatten(0, (3, -1)) for head in packed.chunk(H)], dim=1
        ).reshape(packed.shape),
        "a permutation matrix": lambda packed, H: (
            torch.eye(len(packed), dtype=packed.dtype)[
                repack_by_index(torch.arange(len(packed)), H)
            ]
            @ packed
        ),
    },
    "04-transpose_grouped": {
        "row by row": grouped_row_by_row,
        "expand": grouped_by_expand,
        "columns": grouped_by_columns,
        "repeat_interleave of rows": lambda X, H, G: split(X, G).repeat_interleave(H // G, dim=0),
        "index": lambda X, H, G: split(X, G)[torch.arange(len(X) * H) // (H // G)],
        "stack": lambda X, H, G: torch.stack([split(X, G)] * (H // G), dim=1).flatten(0, 1),
    },
}


def merged_into_a_new_tensor(X, num_heads):
    rows, L, d = X.shape
    merged = torch.empty(rows // num_heads, L, num_heads * d)
    for row, head in enumerate(X):
        h = row % num_heads
        merged[row // num_heads, :, h * d : (h + 1) * d] = head
    return merged


def repacked_as_two_heads(packed, num_heads):
    q0, k0, v0, q1, k1, v1 = packed.chunk(6)
    return torch.cat([q0, q1, k0, k1, v0, v1])


def load_with_keys_first(attention, reference):
    with torch.no_grad():
        k, q, v = reference.in_proj_weight.chunk(3)
        for linear, part in ((attention.W_q, q), (attention.W_k, k), (attention.W_v, v)):
            linear.weight.copy_(part)
        attention.W_o.weight.copy_(reference.out_proj.weight)
        if reference.in_proj_bias is not None:
            q, k, v = reference.in_proj_bias.chunk(3)
            for linear, part in ((attention.W_q, q), (attention.W_k, k), (attention.W_v, v)):
                linear.bias.copy_(part)
            attention.W_o.bias.copy_(reference.out_proj.bias)


WRONG = {
    "04-transpose_qkv": {
        "batch and heads swapped": lambda X, H: (
            X.unflatten(2, (H, -1)).transpose(0, 2).reshape(len(X) * H, X.shape[1], -1)
        ),
        "reshape to (B, H, L, d)": lambda X, H: X.reshape(X.shape[0], H, X.shape[1], -1).flatten(
            0, 1
        ),
        "reshape to (B * H, L, d)": lambda X, H: X.reshape(X.shape[0] * H, X.shape[1], -1),
        "view on what was permuted": lambda X, H: (
            X.unflatten(-1, (H, -1)).transpose(1, 2).view(-1, X.shape[1], X.shape[2] // H)
        ),
        "features interleaved": lambda X, H: (
            X.reshape(*X.shape[:2], -1, H).permute(0, 3, 1, 2).flatten(0, 1)
        ),
        "heads in front of the batch": lambda X, H: torch.cat(X.chunk(H, -1), 0),
        "four axes": lambda X, H: X.unflatten(-1, (H, -1)).transpose(1, 2),
        "words and features swapped": lambda X, H: split(X, H).mT,
        "heads beside words": lambda X, H: X.unflatten(-1, (H, -1)).flatten(0, 1),
        "words in wrong order": lambda X, H: split(X, H).flip(1),
        "X centred in place": lambda X, H: split(X.sub_(0.0).add_(1e-3), H),
        "half": lambda X, H: split(X, H).half(),
        "in float32": lambda X, H: split(X.float(), H),
        "in float64": lambda X, H: split(X.double(), H).to(X.dtype),
    },
    "04-transpose_output": {
        "into a new tensor": merged_into_a_new_tensor,
        "float32": lambda X, H: merge(X, H).float(),
        "reshape to (B, L, H * d)": lambda X, H: X.reshape(-1, X.shape[1], H * X.shape[2]),
        "no swap": lambda X, H: X.unflatten(0, (-1, H)).reshape(X.shape[0] // H, X.shape[1], -1),
        "interleaved": lambda X, H: X.unflatten(0, (-1, H)).permute(0, 2, 3, 1).flatten(2),
        "heads in front of the batch": lambda X, H: (
            X.unflatten(0, (H, -1)).permute(1, 2, 0, 3).flatten(2)
        ),
        "summed": lambda X, H: X.unflatten(0, (-1, H)).sum(1),
        "averaged": lambda X, H: X.unflatten(0, (-1, H)).mean(1).repeat(1, 1, H),
        "changes X in place": merge_in_place,
        "four axes": lambda X, H: X.unflatten(0, (-1, H)).transpose(1, 2),
        "four axes, heads first": lambda X, H: X.unflatten(0, (-1, H)),
        "H sequences": lambda X, H: X.unflatten(0, (H, -1)).transpose(1, 2).flatten(2),
        "heads in reverse": lambda X, H: torch.cat([X[h::H] for h in reversed(range(H))], -1),
    },
    "04-spread_valid_lens": {
        "repeat": lambda lens, H: lens.repeat(H, *[1] * (lens.dim() - 1)),
        "tile": lambda lens, H: lens.tile(H),
        "tile with two numbers": lambda lens, H: lens.tile((H, 1)),
        "cat": lambda lens, H: torch.cat([lens] * H),
        "repeat along axis 1": lambda lens, H: lens.repeat(1, H),
        "stack": lambda lens, H: torch.stack([lens] * H),
        "axis 1": lambda lens, H: lens.repeat_interleave(H, 1),
        "tables as they are": lambda lens, H: (
            torch.repeat_interleave(lens, H) if lens.dim() == 1 else lens
        ),
        "flat, then rows again": lambda lens, H: lens.repeat_interleave(H).view(
            -1, *lens.shape[1:]
        ),
        "multiplied": lambda lens, H: lens * H,
        "divided": lambda lens, H: lens.repeat_interleave(H, dim=0) // H,
        "repeat everything": lambda lens, H: lens.repeat(H),
        "no axis": lambda lens, H: lens.repeat_interleave(H),
        "last axis": lambda lens, H: lens.repeat_interleave(H, dim=-1),
        "unchanged": lambda lens, H: lens,
        "floats": lambda lens, H: lens.double().repeat_interleave(H, dim=0),
        "at least 1": lambda lens, H: lens.clamp(min=1).repeat_interleave(H, dim=0),
        "list": lambda lens, H: [x for x in lens.tolist() for _ in range(H)],
        "squeezed": lambda lens, H: (
            lens.reshape(len(lens), 1, -1).repeat(1, H, 1).flatten(0, 1).squeeze(-1)
        ),
        "squeezed in front": lambda lens, H: lens.repeat_interleave(H, dim=0).squeeze(0),
        "in 8 bits": lambda lens, H: lens.to(torch.int8).repeat_interleave(H, dim=0),
    },
    "04-MultiHeadAttention": {
        "split without permute": variant(
            split=staticmethod(lambda X, H: X.reshape(X.shape[0] * H, X.shape[1], -1))
        ),
        "merge without permute": variant(
            merge=staticmethod(lambda X, H: X.reshape(X.shape[0] // H, X.shape[1], -1))
        ),
        "interleaved": variant(
            split=staticmethod(
                lambda X, H: X.reshape(*X.shape[:2], -1, H).permute(0, 3, 1, 2).flatten(0, 1)
            )
        ),
        "lengths by repeat": variant(
            spread=lambda self, lens: lens.repeat(self.num_heads, *[1] * (lens.dim() - 1))
        ),
        "lengths ignored": variant(spread=lambda self, lens: None),
        "lengths not spread": variant(spread=lambda self, lens: lens),
        "lengths not spread, own mask": OwnMaskOfFewLengths,
        "tables not spread": variant(
            spread=lambda self, lens: (
                lens if lens.dim() > 1 else lens.repeat_interleave(self.num_heads)
            )
        ),
        "lengths tiled": variant(spread=lambda self, lens: lens.tile(self.num_heads)),
        "lengths flat": variant(spread=lambda self, lens: lens.repeat_interleave(self.num_heads)),
        "lengths of the call before": RemembersLengths,
        "zeros for lengths, not for tables": AveragesInTables,
        "causal": variant(FiniteFill, causal=True),
        "W_o before the merge": variant(
            merge=staticmethod(lambda X, H: X),
            finish=lambda self, X: merge(self.W_o(X), self.num_heads),
        ),
        "W_o in blocks": variant(finish=blocks_of_W_o),
        "W_o's bias for each head": variant(finish=terms_of_W_o),
        "scaled by the root of num_hiddens": ByRootOfAll,
        "heads averaged": variant(
            merge=staticmethod(lambda X, H: X.unflatten(0, (-1, H)).mean(dim=1))
        ),
        "scores dropped": DropsScores,
        "keys cut off from training": variant(
            attend=lambda self, q, k, v, lens: Module.attend(self, q, k.detach(), v, lens)
        ),
        "weighted sums dropped": variant(
            attend=lambda self, q, k, v, lens: self.dropout(
                scaled_dot_product_attention(q, k, v, lens)[0]
            )
        ),
        "no W_o": variant(finish=lambda self, output: output),
        "W_o twice": variant(finish=lambda self, output: self.W_o(self.W_o(output))),
        "scaled by the width of all heads": with_attention(
            scale=lambda q, H: (q.shape[-1] * H) ** -0.5
        ),
        "not scaled": with_attention(scale=lambda q, H: 1.0),
        "divided by d": with_attention(scale=lambda q, H: 1 / q.shape[-1]),
        "NaN for length 0": with_attention(mend=lambda output: output),
        "uniform for length 0": with_attention(fill=-1e9),
        "small fill": with_attention(fill=1e-9),
        "one key too many": with_attention(keep=torch.le),
        "padding at -20": variant(FiniteFill, fill=-20.0),
        "queries dropped too": variant(DropsMore, of_queries=True),
        "scores dropped too": variant(DropsMore, of_scores=True),
        "all weights of a query dropped": variant(DropsMore, kept=drop_rows),
        "whole heads dropped": variant(DropsMore, kept=drop_heads),
        "one mask for all": variant(DropsMore, kept=drop_by_one_mask),
        "one mask for all sequences": variant(DropsMore, kept=drop_by_a_mask_for_each_head),
        "lengths left out with dropout": variant(
            spread=lambda self, lens: (
                None if self.training and self.dropout.p else Module.spread(self, lens)
            )
        ),
        "inverted mask": with_attention(keep=torch.ge),
        "dropout never": variant(
            attend=lambda self, q, k, v, lens: scaled_dot_product_attention(q, k, v, lens)[0]
        ),
        "dropout in eval": variant(
            attend=lambda self, q, k, v, lens: scaled_dot_product_attention(
                q, k, v, lens, dropout=self.dropout.p
            )[0]
        ),
        "dropout=0.1 by default": DropsByDefault,
        "bias=True by default": BiasByDefault,
        "dropout on the output": variant(
            attend=lambda self, q, k, v, lens: scaled_dot_product_attention(q, k, v, lens)[0],
            finish=lambda self, output: self.dropout(self.W_o(output)),
        ),
        "heads in a list": HeadsInList,
        "key_size and query_size swapped": QueryAndKeySizeSwapped,
        "query_size for all": AllOfQuerySize,
        "in and out swapped": InAndOutSwapped,
        "returns weights too": variant(finish=lambda self, output: (self.W_o(output), None)),
        "a function": lambda *sizes: Module(*sizes),
    },
    "04-load_torch_weights": {
        "keys first, biases right": load_with_keys_first,
        "nothing": lambda attention, reference: None,
        "transposed": lambda a, r: load(a, r, transpose=True),
        "keys and queries swapped": lambda a, r: load(a, r, parts=(1, 0, 2)),
        "keys and values swapped": lambda a, r: load(a, r, parts=(0, 2, 1)),
        "W_o forgotten": lambda a, r: load(a, r, out=False),
        "biases forgotten": lambda a, r: load(a, r, bias=False),
        "memory shared": load_shared,
        "frozen parameters replaced by new ones": load_into_thawed_parameters,
        "everything trainable afterwards": then(lambda a, r: a.requires_grad_(True)),
        "in_proj transposed": load_some(turn_in=True),
        "out_proj transposed": load_some(turn_out=True),
        "out_proj.bias forgotten": load_some(out_bias=False),
        "in_proj_bias forgotten": load_some(in_bias=False),
        "really packed by head": load_by_head,
        "biases that are None": load_biases_blindly,
        "reference frozen": then(lambda a, r: r.requires_grad_(False)),
        "attention in eval mode": then(lambda a, r: a.eval()),
        "attention in training mode": then(lambda a, r: a.train()),
        "attention in the mode of reference": then(lambda a, r: a.train(r.training)),
        "six features": load_six_features,
        "packed by head": load_only_weights_in_wrong_place,
        "without no_grad": lambda a, r: a.W_q.weight.copy_(r.in_proj_weight.chunk(3)[0]),
        "copies the other way": lambda a, r: r.in_proj_weight.data.copy_(
            torch.cat([a.W_q.weight, a.W_k.weight, a.W_v.weight])
        ),
    },
    "04-split_packed": {
        "reshaped at once": lambda X, H: tuple(
            X.reshape(len(X), 3, H, X.shape[1], -1).transpose(0, 1)
        ),
        "by head": lambda X, H: X.unflatten(-1, (H, 3, -1)).permute(3, 0, 2, 1, 4).unbind(),
        "in turn": lambda X, H: X.unflatten(-1, (H, -1, 3)).permute(4, 0, 2, 1, 3).unbind(),
        "chunk without an axis": lambda X, H: [split(part, H) for part in X.chunk(3)],
        "chunk of words": lambda X, H: [split(part, H) for part in X.chunk(3, dim=1)],
        "three axes": lambda X, H: [split(part, H) for part in X.chunk(3, dim=-1)],
        "no heads": lambda X, H: X.chunk(3, dim=-1),
        "no permute": lambda X, H: [
            part.reshape(X.shape[0], H, X.shape[1], -1) for part in X.chunk(3, dim=-1)
        ],
        "one permute too few": lambda X, H: X.unflatten(-1, (3, H, -1)).movedim(2, 0).unbind(),
        "k, q, v": packed_with(lambda q, k, v: (k, q, v)),
        "v first": packed_with(lambda q, k, v: (v, q, k)),
        "keys transposed": packed_with(lambda q, k, v: (q, k.mT, v)),
        "two of three": packed_with(lambda q, k, v: (q, k)),
        "a dict": packed_with(lambda q, k, v: {"q": q, "k": k, "v": v}),
        "one tensor": packed_with(lambda q, k, v: torch.stack([q, k, v])),
        "side by side": packed_with(lambda q, k, v: torch.cat([q, k, v], dim=-1)),
        "queries scaled in place": lambda X, H: split_packed_by_loop(X.mul_(0.5), H),
        "in float32": lambda X, H: [part.float() for part in split_packed_by_loop(X, H)],
        "width and count": lambda X, H: [
            part.unflatten(-1, (-1, H)).transpose(1, 2) for part in X.chunk(3, dim=-1)
        ],
    },
    "04-repack": {
        "six blocks": repacked_as_two_heads,
        "as it is": lambda packed, H: packed,
        "the way back": repack_axes("H", "3", "d", cut="3Hd"),
        "in turn": repack_axes("3", "H", "d", cut="Hd3"),
        "parts first, features second": repack_axes("3", "d", "H", cut="H3d"),
        "all axes turned": repack_axes("d", "3", "H", cut="H3d"),
        "features first": repack_axes("d", "H", "3", cut="H3d"),
        "heads and features swapped": repack_axes("3", "d", "H", cut="d3H"),
        "parts, then PyTorch's order already": repack_axes("H", "d", "3", cut="H3d"),
        "reshape alone": lambda packed, H: packed.reshape(3, H, -1, *packed.shape[1:]).flatten(
            0, 2
        ),
        "in place": repack_in_place,
        "no bias": lambda packed, H: torch.cat(
            [packed.reshape(H, 3, -1, packed.shape[1])[:, i].flatten(0, 1) for i in range(3)]
        ),
        "a list": lambda packed, H: list(repack_by_blocks(packed, H).chunk(3)),
        "columns": lambda packed, H: packed if packed.dim() < 2 else packed.flip(1),
        "squeezed": lambda packed, H: repack_by_blocks(packed, H).squeeze(-1),
        "only queries": lambda packed, H: torch.cat(packed.chunk(3 * H)[::3]),
        "three chunks in turn": lambda packed, H: torch.cat(
            [x for heads in zip(*(p.chunk(H) for p in packed.chunk(3)), strict=True) for x in heads]
        ),
        "transposed": lambda packed, H: repack_by_blocks(packed, H).T.contiguous(),
    },
    "04-transpose_grouped": {
        "groups of three": lambda X, H, G: (
            X.unflatten(2, (G, -1)).transpose(1, 2).repeat_interleave(3, 1).flatten(0, 1)
        ),
        "pieces of the size of a group": lambda X, H, G: (
            X.unflatten(2, (H // G, -1)).transpose(1, 2).repeat_interleave(G, 1).flatten(0, 1)
        ),
        "tiled heads": lambda X, H, G: (
            X.unflatten(-1, (G, -1)).transpose(1, 2).repeat(1, H // G, 1, 1).flatten(0, 1)
        ),
        "tiled rows": lambda X, H, G: split(X, G).repeat(H // G, 1, 1),
        "tiled features": lambda X, H, G: split(X.repeat(1, 1, H // G), H),
        "tiled sequences": lambda X, H, G: split(X.repeat_interleave(H // G, dim=0), G),
        "features one by one": lambda X, H, G: split(X.repeat_interleave(H // G, dim=-1), H),
        "transpose_qkv": lambda X, H, G: split(X, H),
        "transpose_qkv of key heads": lambda X, H, G: split(X, G),
        "H times": lambda X, H, G: split(X, G).repeat_interleave(H, dim=0),
        "G times": lambda X, H, G: split(X, G).repeat_interleave(G, dim=0),
        "words": lambda X, H, G: split(X, G).repeat_interleave(H // G, dim=1),
        "flat": lambda X, H, G: split(X, G).repeat_interleave(H // G),
        "no permute": lambda X, H, G: X.reshape(len(X) * G, X.shape[1], -1).repeat_interleave(
            H // G, dim=0
        ),
        "four axes": lambda X, H, G: grouped_row_by_row(X, H, G).unflatten(0, (-1, H)),
        "heads first": lambda X, H, G: (
            grouped_row_by_row(X, H, G).unflatten(0, (-1, H)).transpose(0, 1).flatten(0, 1)
        ),
        "in place": grouped_in_place,
        "first key head for all": lambda X, H, G: split(X, G)[::G].repeat_interleave(H, dim=0),
        "squeezed": lambda X, H, G: grouped_row_by_row(X, H, G).squeeze(),
        "features squeezed": lambda X, H, G: grouped_row_by_row(X, H, G).squeeze(-1),
        "one key head squeezed": lambda X, H, G: (
            X.squeeze().repeat_interleave(H, 0) if G == 1 else grouped_row_by_row(X, H, G)
        ),
        "shared by distance": lambda X, H, G: torch.stack(
            [x[:, (h % G) * (x.shape[1] // G) :][:, : x.shape[1] // G] for x in X for h in range(H)]
        ),
    },
}
