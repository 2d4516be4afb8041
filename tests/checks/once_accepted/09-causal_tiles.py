# %% the largest score starts at -1e7
def causal_tiles(queries, keys, values, tile):
    L, S = queries.shape[2], keys.shape[2]
    own = torch.arange(S - L, S)[:, None]
    largest = torch.full_like(queries[..., :1], -1e7)
    total, output = torch.zeros_like(largest), 0.0
    for start in range(0, S, tile):
        part = slice(start, start + tile)
        scores = queries @ keys[:, :, part].mT / queries.shape[-1] ** 0.5
        scores = scores.masked_fill(torch.arange(S)[part] > own, -torch.inf)
        new = torch.maximum(largest, scores.amax(-1, keepdim=True))
        powers, by = torch.exp(scores - new), torch.exp(largest - new)
        total = total * by + powers.sum(-1, keepdim=True)
        output = output * by + powers @ values[:, :, part]
        largest = new
    return output / total


# %% hidden scores are -1e9
def causal_tiles(queries, keys, values, tile):
    L, S = queries.shape[2], keys.shape[2]
    own = torch.arange(S - L, S)[:, None]
    largest = torch.full_like(queries[..., :1], -1e30)
    total, output = torch.zeros_like(largest), 0.0
    for start in range(0, S, tile):
        part = slice(start, start + tile)
        scores = queries @ keys[:, :, part].mT / queries.shape[-1] ** 0.5
        scores = scores.masked_fill(torch.arange(S)[part] > own, -1e9)
        new = torch.maximum(largest, scores.amax(-1, keepdim=True))
        powers, by = torch.exp(scores - new), torch.exp(largest - new)
        total = total * by + powers.sum(-1, keepdim=True)
        output = output * by + powers @ values[:, :, part]
        largest = new
    return output / total


# %% takes 1e9 off the scores of hidden keys
def causal_tiles(queries, keys, values, tile):
    L, S = queries.shape[2], keys.shape[2]
    own = torch.arange(S - L, S)[:, None]
    largest = torch.full_like(queries[..., :1], -1e30)
    total, output = torch.zeros_like(largest), 0.0
    for start in range(0, S, tile):
        part = slice(start, start + tile)
        scores = queries @ keys[:, :, part].mT / queries.shape[-1] ** 0.5
        scores = scores - 1e9 * (torch.arange(S)[part] > own)
        new = torch.maximum(largest, scores.amax(-1, keepdim=True))
        powers, by = torch.exp(scores - new), torch.exp(largest - new)
        total = total * by + powers.sum(-1, keepdim=True)
        output = output * by + powers @ values[:, :, part]
        largest = new
    return output / total


# %% hides every score that is 0
def causal_tiles(queries, keys, values, tile):
    L, S = queries.shape[2], keys.shape[2]
    own = torch.arange(S - L, S)[:, None]
    largest = torch.full_like(queries[..., :1], -1e30)
    total, output = torch.zeros_like(largest), 0.0
    for start in range(0, S, tile):
        part = slice(start, start + tile)
        scores = queries @ keys[:, :, part].mT / queries.shape[-1] ** 0.5
        scores = scores * (torch.arange(S)[part] <= own)
        scores = scores.masked_fill(scores == 0, -torch.inf)
        new = torch.maximum(largest, scores.amax(-1, keepdim=True))
        powers, by = torch.exp(scores - new), torch.exp(largest - new)
        total = total * by + powers.sum(-1, keepdim=True)
        output = output * by + powers @ values[:, :, part]
        largest = new
    return output / total
