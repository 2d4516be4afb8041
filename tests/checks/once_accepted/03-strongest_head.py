# %% topk takes any of many equal terms
def strongest_head(heads, W_o):
    terms = heads @ W_o.unflatten(0, (len(heads), 1, -1))
    return terms.abs().topk(1, dim=0).indices[0]


# %% sort takes any of many equal terms
def strongest_head(heads, W_o):
    terms = heads @ W_o.unflatten(0, (len(heads), 1, -1))
    return terms.abs().sort(dim=0, descending=True).indices[0]


# %% terms in float32
def strongest_head(heads, W_o):
    terms = torch.zeros(*heads.shape[:3], W_o.shape[1])
    for h, rows in enumerate(W_o.chunk(len(heads))):
        terms[h] = heads[h] @ rows
    return terms.abs().argmax(0)


# %% terms within a millionth count as equal
def strongest_head(heads, W_o):
    terms = (heads @ W_o.unflatten(0, (len(heads), 1, -1))).abs()
    return (terms >= terms.amax(0) - 1e-6).int().argmax(0)


# %% terms are rounded to 6 decimals
def strongest_head(heads, W_o):
    terms = (heads @ W_o.unflatten(0, (len(heads), 1, -1))).abs()
    return terms.round(decimals=6).argmax(0)


# %% measures terms by the output, which may be 0
def strongest_head(heads, W_o):
    terms = heads @ W_o.reshape(len(heads), 1, heads.shape[-1], -1)
    return (terms / terms.sum(0)).abs().argmax(0)
