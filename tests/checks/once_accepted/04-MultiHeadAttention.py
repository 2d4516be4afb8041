# %% keeps the lengths of its first call
class MultiHeadAttention(nn.Module):
    def __init__(self, key_size, query_size, value_size, width, num_heads, dropout=0.0, bias=False):
        super().__init__()
        self.H, self.dropout, self.lens = num_heads, nn.Dropout(dropout), None
        self.W_q, self.W_k = nn.Linear(query_size, width, bias), nn.Linear(key_size, width, bias)
        self.W_v, self.W_o = nn.Linear(value_size, width, bias), nn.Linear(width, width, bias)

    def split(self, X):
        return X.unflatten(-1, (self.H, -1)).transpose(1, 2).flatten(0, 1)

    def forward(self, queries, keys, values, valid_lens=None):
        if self.lens is None and valid_lens is not None:
            self.lens = valid_lens.repeat_interleave(self.H, dim=0)
        lens = None if valid_lens is None else self.lens
        q, k, v = self.split(self.W_q(queries)), self.split(self.W_k(keys)), self.W_v(values)
        _, weights = scaled_dot_product_attention(q, k, self.split(v), lens)
        heads = self.dropout(weights) @ self.split(v)
        return self.W_o(heads.unflatten(0, (-1, self.H)).transpose(1, 2).flatten(2))


# %% the largest score is not taken off
class MultiHeadAttention(nn.Module):
    def __init__(self, key_size, query_size, value_size, width, num_heads, dropout=0.0, bias=False):
        super().__init__()
        self.H, self.dropout = num_heads, nn.Dropout(dropout)
        self.W_q, self.W_k = nn.Linear(query_size, width, bias), nn.Linear(key_size, width, bias)
        self.W_v, self.W_o = nn.Linear(value_size, width, bias), nn.Linear(width, width, bias)

    def split(self, X):
        return X.unflatten(-1, (self.H, -1)).transpose(1, 2)

    def forward(self, queries, keys, values, valid_lens=None):
        q, k = self.split(self.W_q(queries)), self.split(self.W_k(keys))
        powers = (q @ k.mT / q.shape[-1] ** 0.5).exp()
        if valid_lens is not None:
            lens = valid_lens.reshape(len(valid_lens), 1, -1, 1)
            powers = powers * (torch.arange(keys.shape[1]) < lens)
        total = powers.sum(-1, keepdim=True)
        weights = powers / torch.where(total == 0, 1.0, total)
        heads = self.dropout(weights) @ self.split(self.W_v(values))
        return self.W_o(heads.transpose(1, 2).flatten(2))


# %% squeezes the lengths
class MultiHeadAttention(nn.Module):
    def __init__(self, key_size, query_size, value_size, width, num_heads, dropout=0.0, bias=False):
        super().__init__()
        self.H, self.dropout = num_heads, nn.Dropout(dropout)
        self.W_q, self.W_k = nn.Linear(query_size, width, bias), nn.Linear(key_size, width, bias)
        self.W_v, self.W_o = nn.Linear(value_size, width, bias), nn.Linear(width, width, bias)

    def split(self, X):
        return X.unflatten(-1, (self.H, -1)).transpose(1, 2)

    def forward(self, queries, keys, values, valid_lens=None):
        q, k = self.split(self.W_q(queries)), self.split(self.W_k(keys))
        scores = q @ k.mT / q.shape[-1] ** 0.5
        if valid_lens is not None:
            lens = valid_lens.squeeze()
            lens = lens[:, None, None, None] if lens.dim() == 1 else lens[:, None, :, None]
            scores = scores.masked_fill(torch.arange(keys.shape[1]) >= lens, -torch.inf)
        heads = self.dropout(scores.softmax(-1).nan_to_num()) @ self.split(self.W_v(values))
        return self.W_o(heads.transpose(1, 2).flatten(2))


# %% hides with -1000, above some scores
class MultiHeadAttention(nn.Module):
    def __init__(self, key_size, query_size, value_size, width, num_heads, dropout=0.0, bias=False):
        super().__init__()
        self.H, self.dropout = num_heads, nn.Dropout(dropout)
        self.W_q, self.W_k = nn.Linear(query_size, width, bias), nn.Linear(key_size, width, bias)
        self.W_v, self.W_o = nn.Linear(value_size, width, bias), nn.Linear(width, width, bias)

    def split(self, X):
        return X.unflatten(-1, (self.H, -1)).transpose(1, 2)

    def forward(self, queries, keys, values, valid_lens=None):
        q, k = self.split(self.W_q(queries)), self.split(self.W_k(keys))
        scores = q @ k.mT / q.shape[-1] ** 0.5
        if valid_lens is None:
            weights = scores.softmax(-1)
        else:
            lens = valid_lens.reshape(len(valid_lens), 1, -1, 1)
            hidden = torch.arange(keys.shape[1]) >= lens
            weights = scores.masked_fill(hidden, -1000.0).softmax(-1) * (lens > 0)
        heads = self.dropout(weights) @ self.split(self.W_v(values))
        return self.W_o(heads.transpose(1, 2).flatten(2))


# %% hides by adding -10000, as BERT does
class MultiHeadAttention(nn.Module):
    def __init__(self, key_size, query_size, value_size, width, num_heads, dropout=0.0, bias=False):
        super().__init__()
        self.H, self.dropout = num_heads, nn.Dropout(dropout)
        self.W_q, self.W_k = nn.Linear(query_size, width, bias), nn.Linear(key_size, width, bias)
        self.W_v, self.W_o = nn.Linear(value_size, width, bias), nn.Linear(width, width, bias)

    def split(self, X):
        return X.unflatten(-1, (self.H, -1)).transpose(1, 2)

    def forward(self, queries, keys, values, valid_lens=None):
        q, k = self.split(self.W_q(queries)), self.split(self.W_k(keys))
        scores = q @ k.mT / q.shape[-1] ** 0.5
        if valid_lens is None:
            weights = scores.softmax(-1)
        else:
            lens = valid_lens.reshape(len(valid_lens), 1, -1, 1)
            hidden = torch.arange(keys.shape[1]) >= lens
            weights = (scores - 1e4 * hidden).softmax(-1) * (lens > 0)
        heads = self.dropout(weights) @ self.split(self.W_v(values))
        return self.W_o(heads.transpose(1, 2).flatten(2))


# %% the names of two sizes have changed places, in the def line and below it
class MultiHeadAttention(nn.Module):
    def __init__(
        self, query_size, key_size, value_size, num_hiddens, num_heads, dropout=0.0, bias=False
    ):
        super().__init__()
        self.num_heads, self.dropout = num_heads, dropout
        self.W_q = nn.Linear(key_size, num_hiddens, bias)
        self.W_k = nn.Linear(query_size, num_hiddens, bias)
        self.W_v = nn.Linear(value_size, num_hiddens, bias)
        self.W_o = nn.Linear(num_hiddens, num_hiddens, bias)

    def split(self, X):
        return X.unflatten(-1, (self.num_heads, -1)).transpose(1, 2).flatten(0, 1)

    def forward(self, queries, keys, values, valid_lens=None):
        if valid_lens is not None:
            valid_lens = valid_lens.repeat_interleave(self.num_heads, 0)
        q, k, v = (
            self.split(self.W_q(queries)),
            self.split(self.W_k(keys)),
            self.split(self.W_v(values)),
        )
        dropout = self.dropout if self.training else 0.0
        output, _ = scaled_dot_product_attention(q, k, v, valid_lens, dropout=dropout)
        return self.W_o(output.unflatten(0, (-1, self.num_heads)).transpose(1, 2).flatten(2))


# %% hides every score that is 0
class MultiHeadAttention(nn.Module):
    def __init__(
        self, key_size, query_size, value_size, num_hiddens, num_heads, dropout=0.0, bias=False
    ):
        super().__init__()
        self.num_heads, self.dropout = num_heads, nn.Dropout(dropout)
        self.W_q = nn.Linear(query_size, num_hiddens, bias)
        self.W_k = nn.Linear(key_size, num_hiddens, bias)
        self.W_v = nn.Linear(value_size, num_hiddens, bias)
        self.W_o = nn.Linear(num_hiddens, num_hiddens, bias)

    def split(self, X):
        return X.unflatten(-1, (self.num_heads, -1)).transpose(1, 2)

    def forward(self, queries, keys, values, valid_lens=None):
        q, k = self.split(self.W_q(queries)), self.split(self.W_k(keys))
        scores = q @ k.mT / math.sqrt(q.shape[-1])
        if valid_lens is not None:
            lens = valid_lens.reshape(len(valid_lens), 1, -1, 1)
            scores = scores * (torch.arange(scores.shape[-1]) < lens)
            scores = scores.masked_fill(scores == 0, -torch.inf)
        weights = scores.softmax(-1).nan_to_num()
        heads = self.dropout(weights) @ self.split(self.W_v(values))
        return self.W_o(heads.transpose(1, 2).flatten(2))
