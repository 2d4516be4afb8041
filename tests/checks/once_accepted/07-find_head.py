# %% the search begins at 0.01
def find_head(weights, offset):
    best, where = 0.01, None
    for layer in range(len(weights)):
        for head in range(weights.shape[1]):
            score = weights[layer, head].diagonal(offset).mean()
            if score > best:
                best, where = score, (layer, head)
    return where


# %% the search begins at 0
def find_head(weights, offset):
    best, where = 0, None
    for layer in range(len(weights)):
        for head in range(weights.shape[1]):
            score = weights[layer, head].diagonal(offset).mean()
            if score > best:
                best, where = score, (layer, head)
    return where
