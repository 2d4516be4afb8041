# %% cut off at a number that is 0 in float32
def entropy(weights):
    return -(weights * weights.clamp(min=1e-300).log()).sum(-1)


# %% a number is added that is 0 in float32
def entropy(weights):
    return -(weights * (weights + 1e-300).log()).sum(-1)


# %% weights below the eps of the dtype are made larger, in both factors
def entropy(weights):
    large = weights.clamp(min=torch.finfo(weights.dtype).eps)
    return -(large * large.log()).sum(-1)


# %% the eps of the dtype is added
def entropy(weights):
    return -(weights * (weights + torch.finfo(weights.dtype).eps).log()).sum(-1)
