# %% the search for the largest starts at -99999
def softmax(x):
    powers = torch.exp(x - x.amax(-1, keepdim=True).clamp(min=-99999))
    return powers / powers.sum(-1, keepdim=True)


# %% shifts only above 709, though three powers of 709 overflow together
def softmax(x):
    largest = x.amax(-1, keepdim=True)
    powers = torch.exp(x - torch.where(largest.abs() > 709, largest, 0.0))
    return powers / powers.sum(-1, keepdim=True)
