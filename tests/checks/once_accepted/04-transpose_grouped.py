# %% a float that is a little too small
def transpose_grouped(X, num_heads, num_kv_heads):
    heads = X.unflatten(-1, (num_kv_heads, -1)).transpose(1, 2)
    index = [int(h / num_heads * num_kv_heads) for h in range(num_heads)]
    return heads[:, index].flatten(0, 1)


# %% a float32 that is a little too small
def transpose_grouped(X, num_heads, num_kv_heads):
    heads = X.unflatten(-1, (num_kv_heads, -1)).transpose(1, 2)
    index = (torch.arange(num_heads) / num_heads * num_kv_heads).long()
    return heads[:, index].flatten(0, 1)
