# %% -100,000 for the other tokens of a beam that has ended
def beam_step(totals, scores, ended, pad):
    K, V = scores.shape[1:]
    only_pad = torch.full((V,), -1e5, dtype=scores.dtype)
    only_pad[pad] = 0
    logs = torch.where(ended[..., None], only_pad, scores.log_softmax(-1))
    best = (totals[..., None] + logs).flatten(1).topk(K)
    return best.values, best.indices // V, best.indices % V


# %% one largest score for all beams of a text
def beam_step(totals, scores, ended, pad):
    K, V = scores.shape[1:]
    less = scores - scores.amax((1, 2), keepdim=True)
    only_pad = torch.full((V,), -math.inf, dtype=scores.dtype)
    only_pad[pad] = 0
    logs = torch.where(ended[..., None], only_pad, less - less.exp().sum(-1, keepdim=True).log())
    best = (totals[..., None] + logs).flatten(1).topk(K)
    return best.values, best.indices // V, best.indices % V


# %% scores in float32
def beam_step(totals, scores, ended, pad):
    K, V = scores.shape[1:]
    only_pad = torch.full((V,), -math.inf, dtype=scores.dtype)
    only_pad[pad] = 0
    logs = torch.where(ended[..., None], only_pad, scores.float().log_softmax(-1))
    best = (totals[..., None] + logs).flatten(1).topk(K)
    return best.values, best.indices // V, best.indices % V


# %% logarithms not below -10,000
def beam_step(totals, scores, ended, pad):
    K, V = scores.shape[1:]
    only_pad = torch.full((V,), -math.inf, dtype=scores.dtype)
    only_pad[pad] = 0
    logs = torch.where(ended[..., None], only_pad, scores.log_softmax(-1).clamp(min=-1e4))
    best = (totals[..., None] + logs).flatten(1).topk(K)
    return best.values, best.indices // V, best.indices % V
