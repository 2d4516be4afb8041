# %% takes the padding off the sum of all, in which large padding leaves no digits
def mean_pool(hidden, attention_mask):
    padding = (hidden * (1 - attention_mask)[..., None]).sum(1)
    return (hidden.sum(1) - padding) / attention_mask.sum(1, keepdim=True)
