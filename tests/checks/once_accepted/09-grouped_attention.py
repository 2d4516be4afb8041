# %% cuts scores off at 1e4
def grouped_attention(queries, keys, values):
    group, outputs = queries.shape[1] // keys.shape[1], []
    for h in range(queries.shape[1]):
        scores = queries[:, h] @ keys[:, h // group].mT / queries.shape[-1] ** 0.5
        outputs.append(scores.clamp(-1e4, 1e4).softmax(-1) @ values[:, h // group])
    return torch.stack(outputs, 1)


# %% the largest score starts at -1000
def grouped_attention(queries, keys, values):
    group, outputs = queries.shape[1] // keys.shape[1], []
    for h in range(queries.shape[1]):
        scores = queries[:, h] @ keys[:, h // group].mT / queries.shape[-1] ** 0.5
        powers = torch.exp(scores - scores.amax(-1, keepdim=True).clamp(min=-1000))
        outputs.append(powers / powers.sum(-1, keepdim=True) @ values[:, h // group])
    return torch.stack(outputs, 1)
