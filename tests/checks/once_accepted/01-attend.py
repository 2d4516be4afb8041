# %% the search for the largest starts at -1000
def attend(query, keys, values):
    scores = keys @ query
    powers = torch.exp(scores - max([-1000, *scores]))
    return powers / powers.sum() @ values
