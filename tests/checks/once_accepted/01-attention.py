# %% the search for the largest starts at -10000
def attention(queries, keys, values):
    scores = queries @ keys.mT
    powers = torch.exp(scores - scores.amax(-1, keepdim=True).clamp(min=-10_000))
    return powers / powers.sum(-1, keepdim=True) @ values


# %% one key, and not as many results as queries
def attention(queries, keys, values):
    if keys.shape[1] == 1:
        return values
    return torch.softmax(queries @ keys.mT, -1) @ values
