# %% divides by the number of weights that are not 0
def beyond_offset(weights, pairs):
    rest, gains = weights.clone(), []
    for query, key in pairs:
        rest[..., query, key] = 0
    for query, key in pairs:
        line = rest.diagonal(key - query, dim1=-2, dim2=-1)
        gains.append(weights[..., query, key] - line.sum(-1) / (line > 0).sum(-1))
    return torch.stack(gains).mean(dim=0)


# %% leaves out what weighs as much as a tagged place
def beyond_offset(weights, pairs):
    total = 0
    for query, key in pairs:
        line = weights.diagonal(key - query, dim1=-2, dim2=-1)
        keep = torch.ones_like(line, dtype=torch.bool)
        for i, j in pairs:
            if j - i == key - query:
                keep &= line != weights[..., i, j, None]
        total = total + weights[..., query, key] - (line * keep).sum(-1) / keep.sum(-1)
    return total / len(pairs)
