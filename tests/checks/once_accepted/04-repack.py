# %% cuts the longer axis
def repack(packed, num_heads):
    wide = packed.dim() > 1 and packed.shape[1] > packed.shape[0]
    rows = (packed.mT if wide else packed).unflatten(0, (num_heads, 3, -1))
    rows = rows.transpose(0, 1).flatten(0, 2)
    return rows.mT if wide else rows
