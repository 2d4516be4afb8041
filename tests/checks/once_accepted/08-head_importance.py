# %% no norm below 1e-30
def head_importance(gradients):
    sizes = gradients.abs().mean(0)
    return sizes / sizes.norm(dim=1, keepdim=True).clamp(min=1e-30)


# %% 0 where the sum is not above 1e-20
def head_importance(gradients):
    sizes = gradients.abs().mean(0)
    result = torch.zeros_like(sizes)
    for layer in range(len(sizes)):
        if sizes[layer].sum() > 1e-20:
            result[layer] = sizes[layer] / sizes[layer].norm()
    return result


# %% adds 1e-45 under the root
def head_importance(gradients):
    sizes = gradients.abs().mean(0)
    return sizes / (sizes.square().sum(1, keepdim=True) + 1e-45).sqrt()


# %% 0 where another layer is far larger
def head_importance(gradients):
    sizes = gradients.abs().mean(0)
    norms = sizes.norm(dim=1, keepdim=True)
    return torch.where(norms > 1e-12 * norms.max(), sizes / norms, 0.0)


# %% in float32, where squares of tiny numbers are 0
def head_importance(gradients):
    sizes = gradients.float().abs().mean(0)
    return torch.nan_to_num(sizes / sizes.norm(dim=1, keepdim=True))
