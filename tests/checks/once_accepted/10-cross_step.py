# %% hides with -1e6, and scores may be lower
def cross_step(y, keys, values, memory_lens, W_q, W_o):
    B, H, S, d_k = keys.shape
    scores = (y @ W_q).reshape(B, H, 1, d_k) @ keys.mT / d_k**0.5
    seen = torch.arange(S) < memory_lens[:, None, None, None]
    weights = scores.masked_fill(~seen, -1e6).softmax(-1) * seen
    return (weights @ values).reshape(B, -1) @ W_o


# %% cuts to the longest source, and the largest of no scores raises
def cross_step(y, keys, values, memory_lens, W_q, W_o):
    B, H, _, d_k = keys.shape
    S = int(memory_lens.max())
    keys, values = keys[:, :, :S], values[:, :, :S]
    scores = (y @ W_q).reshape(B, H, 1, d_k) @ keys.mT / d_k**0.5
    seen = torch.arange(S) < memory_lens[:, None, None, None]
    scores = scores.masked_fill(~seen, -torch.inf)
    powers = (scores - scores.amax(-1, keepdim=True)).exp().nan_to_num()
    weights = (powers / powers.sum(-1, keepdim=True)).nan_to_num()
    return (weights @ values).reshape(B, -1) @ W_o


# %% zeros in float64 where there is NaN
def cross_step(y, keys, values, memory_lens, W_q, W_o):
    B, H, S, d_k = keys.shape
    scores = (y @ W_q).reshape(B, H, 1, d_k) @ keys.mT / d_k**0.5
    hidden = torch.arange(S) >= memory_lens[:, None, None, None]
    weights = scores.masked_fill(hidden, -torch.inf).softmax(-1)
    weights = torch.where(weights.isnan(), torch.zeros(B, H, 1, S, dtype=torch.float64), weights)
    return (weights @ values).reshape(B, -1) @ W_o


# %% squeeze without an axis takes the axis of a single head, too
def cross_step(y, keys, values, memory_lens, W_q, W_o):
    B, H, S, d_k = keys.shape
    q = (y @ W_q).reshape(B, H, d_k, 1)
    scores = (keys @ q).squeeze() / d_k**0.5
    hidden = torch.arange(S) >= memory_lens[:, None, None]
    weights = scores.masked_fill(hidden, -torch.inf).softmax(-1).nan_to_num()
    return (weights[:, :, None] @ values).reshape(B, -1) @ W_o


# %% hides every score that is 0
def cross_step(y, keys, values, memory_lens, W_q, W_o):
    B, H, S, d_k = keys.shape
    q = (y @ W_q).reshape(B, H, 1, d_k)
    scores = q @ keys.mT / d_k**0.5 * (torch.arange(S) < memory_lens[:, None, None, None])
    weights = scores.masked_fill(scores == 0, -torch.inf).softmax(-1).nan_to_num()
    return (weights @ values).reshape(B, -1) @ W_o
