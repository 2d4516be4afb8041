# %% divides rows by their sums first
def offset_score(weights, offset):
    shares = weights / weights.sum(-1, keepdim=True)
    return shares.diagonal(offset, -2, -1).mean(-1)
