# %% hides with 1000 times the lowest score, which may be 0
def mended_step(queries, keys, values):
    L, S = queries.shape[2], keys.shape[2]
    scores = queries @ keys.mT / math.sqrt(queries.shape[3])
    later = torch.ones(L, S).triu(S - L + 1).bool()
    return scores.masked_fill(later, 1000 * scores.min().item()).softmax(-1) @ values


# %% hides with -1000 times the largest size of a score, which may be 0
def mended_step(queries, keys, values):
    L, S = queries.shape[2], keys.shape[2]
    scores = queries @ keys.mT / math.sqrt(queries.shape[3])
    later = torch.ones(L, S).triu(S - L + 1).bool()
    return scores.masked_fill(later, -1000 * scores.abs().max().item()).softmax(-1) @ values


# %% hides with twice the lowest score, which is not below it if all are above 0
def mended_step(queries, keys, values):
    L, S = queries.shape[2], keys.shape[2]
    scores = queries @ keys.mT / math.sqrt(queries.shape[3])
    later = torch.ones(L, S).triu(1 + S - L).bool()
    return scores.masked_fill(later, 2 * scores.min().item() - 100).softmax(-1) @ values
