# %% lowers hidden scores by 2000
def scaled_dot_product_attention(queries, keys, values, valid_lens=None):
    scores = queries @ keys.mT / math.sqrt(queries.shape[-1])
    if valid_lens is None:
        return scores.softmax(-1) @ values, scores.softmax(-1)
    lens = valid_lens[:, None] if valid_lens.dim() == 1 else valid_lens
    seen = torch.arange(keys.shape[1]) < lens[..., None]
    weights = torch.softmax(scores - 2000.0 * ~seen, -1) * seen
    return weights @ values, weights


# %% a fill that float32 does not hold
def scaled_dot_product_attention(queries, keys, values, valid_lens=None):
    scores = queries @ keys.mT / math.sqrt(queries.shape[-1])
    if valid_lens is None:
        return scores.softmax(-1) @ values, scores.softmax(-1)
    lens = valid_lens[:, None] if valid_lens.dim() == 1 else valid_lens
    seen = torch.arange(keys.shape[1]) < lens[..., None]
    lowest = torch.finfo(torch.float64).min
    weights = torch.softmax(scores.masked_fill(~seen, lowest), -1) * seen
    return weights @ values, weights


# %% a mask of float64 numbers
def scaled_dot_product_attention(queries, keys, values, valid_lens=None):
    scores = queries @ keys.mT / math.sqrt(queries.shape[-1])
    if valid_lens is None:
        return scores.softmax(-1) @ values, scores.softmax(-1)
    lens = valid_lens[:, None] if valid_lens.dim() == 1 else valid_lens
    seen = torch.arange(keys.shape[1]) < lens[..., None]
    weights = torch.softmax(scores.masked_fill(~seen, -1e9), -1) * seen.double()
    return weights @ values, weights


# %% takes lengths as long as the batch for one length a sequence
def scaled_dot_product_attention(queries, keys, values, valid_lens=None):
    scores = queries @ keys.mT / math.sqrt(queries.shape[-1])
    if valid_lens is None:
        return scores.softmax(-1) @ values, scores.softmax(-1)
    by_sequence = valid_lens.shape[-1] == len(queries)
    lens = valid_lens[..., None, None] if by_sequence else valid_lens[:, :, None]
    hidden = torch.arange(keys.shape[1]) >= lens
    weights = scores.masked_fill(hidden, -math.inf).softmax(-1).nan_to_num(0.0)
    return weights @ values, weights
