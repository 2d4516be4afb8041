# %% room for no more queries than keys
def scaled_scores(queries, keys):
    B, L, d_k = queries.shape
    scores = queries.new_zeros(B, keys.shape[1], keys.shape[1])
    for i in range(L):
        scores[:, i] = (keys * queries[:, i : i + 1]).sum(-1) / math.sqrt(d_k)
    return scores[:, :L]


# %% no more rows than keys
def scaled_scores(queries, keys):
    scores = queries @ keys.mT / math.sqrt(queries.shape[-1])
    scores[:, keys.shape[1] :] = 0
    return scores
