# %% an offset beyond the table raises
def steady_head(weights, lens, offset, at_least):
    queries = torch.arange(max(0, -offset), weights.shape[-1] - max(0, offset))
    keys = queries + offset
    inside = (queries < lens[:, None]) & (keys < lens[:, None])
    counts = inside.any(1)
    if not counts.any():
        return None
    inside = inside[counts][:, None, None]
    scores = (weights[..., queries, keys][counts] * inside).sum(-1) / inside.sum(-1)
    means = scores.mean(0).masked_fill(~(scores >= at_least).all(0), -1)
    return None if means.max() < 0 else divmod(means.argmax().item(), means.shape[1])


# %% the search begins with a mean of 0
def steady_head(weights, lens, offset, at_least):
    best, largest = None, 0.0
    for layer in range(weights.shape[1]):
        for head in range(weights.shape[2]):
            tables = [w[layer, head, :n, :n] for w, n in zip(weights, lens.tolist(), strict=True)]
            scores = [X.diagonal(offset).mean().item() for X in tables if abs(offset) < len(X)]
            if scores and min(scores) >= at_least and sum(scores) / len(scores) > largest:
                best, largest = (layer, head), sum(scores) / len(scores)
    return best


# %% a millionth below at_least passes
def steady_head(weights, lens, offset, at_least):
    texts = [w[..., :n, :n] for w, n in zip(weights, lens.tolist(), strict=True) if abs(offset) < n]
    if not texts:
        return None
    scores = torch.stack([X.diagonal(offset, -2, -1).mean(-1) for X in texts])
    passed = (scores >= at_least - 1e-6).all(0)
    means = scores.mean(0).masked_fill(~passed, -1)
    return divmod(means.argmax().item(), means.shape[1]) if passed.any() else None
