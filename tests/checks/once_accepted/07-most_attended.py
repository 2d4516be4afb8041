# %% of equal pairs one is kept
def most_attended(weights, tokens, k=3):
    pairs = dict.fromkeys(zip(tokens, weights.mean(0).tolist(), strict=True))
    return sorted(pairs, key=lambda pair: -pair[1])[:k]
