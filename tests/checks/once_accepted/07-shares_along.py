# %% o · o is at least eps
def shares_along(weights, values, W_o):
    B, H, L, S = weights.shape
    columns = W_o.T.reshape(H, values.shape[-1], -1)
    c = weights[..., None] * (values @ columns)[:, :, None]
    o = c.sum((1, 3), keepdim=True)
    return (c * o).sum(-1) / (o * o).sum(-1).clamp(min=torch.finfo(o.dtype).eps)


# %% cosines, whose lengths are at least 1e-8
def shares_along(weights, values, W_o):
    B, H, L, S = weights.shape
    columns = W_o.T.reshape(H, values.shape[-1], -1)
    c = weights[..., None] * (values @ columns)[:, :, None]
    o = c.sum((1, 3), keepdim=True)
    return torch.cosine_similarity(c, o, dim=-1) * c.norm(dim=-1) / o.norm(dim=-1)
