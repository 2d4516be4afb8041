# %% torch.allclose with rtol=0 still overlooks 1e-8
def broken_promises(attention, queries, keys, values, valid_lens):
    def same(one, other):
        return torch.allclose(one, other, rtol=0)

    output, broken = attention(queries, keys, values, valid_lens), set()
    past = (torch.arange(keys.shape[1]) >= valid_lens[:, None])[..., None]
    if not same(attention(queries, keys + 5 * past, values + 5 * past, valid_lens), output):
        broken.add("padding")
    turned = attention(queries, keys.flip(1), values.flip(1), None)
    if not same(turned, attention(queries, keys, values, None)):
        broken.add("order of keys")
    if not same(attention(queries.flip(1), keys, values, valid_lens).flip(1), output):
        broken.add("order of queries")
    for b in range(len(queries)):
        alone = (X[b : b + 1] for X in (queries, keys, values, valid_lens))
        if not same(attention(*alone), output[b : b + 1]):
            broken.add("batch")
    return broken


# %% the mean of the differences
def broken_promises(attention, queries, keys, values, valid_lens):
    def differ(one, other):
        return not (one - other).abs().mean() < 1e-9

    output, broken = attention(queries, keys, values, valid_lens), set()
    past = (torch.arange(keys.shape[1]) >= valid_lens[:, None])[..., None]
    other = (X + past for X in (keys, values))
    if differ(attention(queries, *other, valid_lens), output):
        broken.add("padding")
    turned = attention(queries, keys.flip(1), values.flip(1), None)
    if differ(turned, attention(queries, keys, values, None)):
        broken.add("order of keys")
    if differ(attention(queries.flip(1), keys, values, valid_lens).flip(1), output):
        broken.add("order of queries")
    for b in range(len(queries)):
        alone = (X[b : b + 1] for X in (queries, keys, values, valid_lens))
        if differ(attention(*alone), output[b : b + 1]):
            broken.add("batch")
    return broken


# %% the norm of the differences
def broken_promises(attention, queries, keys, values, valid_lens):
    def differ(one, other):
        return not (one - other).norm() < 1e-9

    output, broken = attention(queries, keys, values, valid_lens), set()
    past = (torch.arange(keys.shape[1]) >= valid_lens[:, None])[..., None]
    other = (X + past for X in (keys, values))
    if differ(attention(queries, *other, valid_lens), output):
        broken.add("padding")
    turned = attention(queries, keys.flip(1), values.flip(1), None)
    if differ(turned, attention(queries, keys, values, None)):
        broken.add("order of keys")
    if differ(attention(queries.flip(1), keys, values, valid_lens).flip(1), output):
        broken.add("order of queries")
    for b in range(len(queries)):
        alone = (X[b : b + 1] for X in (queries, keys, values, valid_lens))
        if differ(attention(*alone), output[b : b + 1]):
            broken.add("batch")
    return broken


# %% padding taken from the sequence before
def broken_promises(attention, queries, keys, values, valid_lens):
    def differ(one, other):
        return not (one - other).abs().max() < 1e-9

    output, broken = attention(queries, keys, values, valid_lens), set()
    past = (torch.arange(keys.shape[1]) >= valid_lens[:, None])[..., None]
    other = (torch.where(past, X.roll(1, 0), X) for X in (keys, values))
    if differ(attention(queries, *other, valid_lens), output):
        broken.add("padding")
    turned = attention(queries, keys.flip(1), values.flip(1), None)
    if differ(turned, attention(queries, keys, values, None)):
        broken.add("order of keys")
    if differ(attention(queries.flip(1), keys, values, valid_lens).flip(1), output):
        broken.add("order of queries")
    for b in range(len(queries)):
        alone = (X[b : b + 1] for X in (queries, keys, values, valid_lens))
        if differ(attention(*alone), output[b : b + 1]):
            broken.add("batch")
    return broken
