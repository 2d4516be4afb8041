# %% hides with the smallest score less 15
def mended_attention(queries, keys, values):
    scores = queries @ keys.mT / math.sqrt(queries.shape[-1])
    later = torch.ones(scores.shape[1:]).triu(1).bool()
    weights = torch.softmax(scores.masked_fill(later, scores.min().item() - 15), dim=-1)
    return weights @ values, weights


# %% hides with -1000 times the largest size of a score, which may be near 0
def mended_attention(queries, keys, values):
    scores = queries @ keys.mT / math.sqrt(queries.shape[-1])
    later = torch.ones(scores.shape[1:]).triu(1).bool()
    weights = torch.softmax(scores.masked_fill(later, -1000 * scores.abs().max().item()), dim=-1)
    return weights @ values, weights
