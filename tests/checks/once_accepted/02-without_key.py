# %% squeezes the axis of one query away
def without_key(output, weights, values, key):
    left = (1 - weights[:, :, key : key + 1]).squeeze().unsqueeze(-1)
    new = weights.clone()
    new[:, :, key] = 0
    new = torch.where(left == 0, 0.0, new / left.clamp(min=1e-12))
    return new @ values, new
