# %% cuts scores off at 10,000
def mended_attend(queries, keys, values, num_heads):
    q, k, v = (X.unflatten(2, (num_heads, -1)).transpose(1, 2) for X in (queries, keys, values))
    scores = (q @ k.mT / math.sqrt(q.shape[-1])).clamp(-1e4, 1e4)
    return (scores.softmax(-1) @ v).transpose(1, 2).flatten(2)
