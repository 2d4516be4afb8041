# %% plain powers without lengths
def masked_softmax(scores, valid_lens=None):
    if valid_lens is None:
        return scores.exp() / scores.exp().sum(-1, keepdim=True)
    lens = valid_lens[:, None] if valid_lens.dim() == 1 else valid_lens
    seen = torch.arange(scores.shape[-1]) < lens[..., None]
    weights = torch.softmax(scores.masked_fill(~seen, -math.inf), -1)
    return weights.masked_fill(~seen, 0.0)


# %% one largest score for all rows without lengths
def masked_softmax(scores, valid_lens=None):
    if valid_lens is None:
        powers = (scores - scores.max()).exp()
        return powers / powers.sum(-1, keepdim=True)
    lens = valid_lens[:, None] if valid_lens.dim() == 1 else valid_lens
    seen = torch.arange(scores.shape[-1]) < lens[..., None]
    weights = torch.softmax(scores.masked_fill(~seen, -math.inf), -1)
    return weights.masked_fill(~seen, 0.0)


# %% plain powers with one length a query
def masked_softmax(scores, valid_lens=None):
    if valid_lens is None:
        return torch.softmax(scores, -1)
    lens = valid_lens[:, None] if valid_lens.dim() == 1 else valid_lens
    seen = torch.arange(scores.shape[-1]) < lens[..., None]
    if valid_lens.dim() == 2:
        powers = scores.exp() * seen
        return powers / powers.sum(-1, keepdim=True).clamp(min=1e-300)
    weights = torch.softmax(scores.masked_fill(~seen, -math.inf), -1)
    return weights.masked_fill(~seen, 0.0)


# %% a fill that float32 does not hold
def masked_softmax(scores, valid_lens=None):
    if valid_lens is None:
        return torch.softmax(scores, -1)
    lens = valid_lens[:, None] if valid_lens.dim() == 1 else valid_lens
    seen = torch.arange(scores.shape[-1]) < lens[..., None]
    return torch.softmax(scores.masked_fill(~seen, -1e300), -1) * seen


# %% where there is one query, its length is taken for one of all
def masked_softmax(scores, valid_lens=None):
    if valid_lens is None:
        return torch.softmax(scores, -1)
    lens = valid_lens[:, None] if valid_lens.dim() == 1 else valid_lens
    keep = torch.arange(scores.shape[-1]) < lens[..., None]
    if valid_lens.dim() == 2 and valid_lens.shape[1] == 1:
        keep = keep & keep[:1]
    return torch.nan_to_num(torch.softmax(scores.masked_fill(~keep, -torch.inf), -1))
