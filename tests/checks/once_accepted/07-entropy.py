# %% cut off at a number that is 0 in float32
def entropy(weights):
    return -(weights * weights.clamp(min=1e-300).log()).sum(-1)


# %% a number is added that is 0 in float32
def entropy(weights):
    return -(weights * (weights + 1e-300).log()).sum(-1)
