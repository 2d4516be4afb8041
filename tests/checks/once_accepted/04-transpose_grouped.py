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


# %% key heads evenly spread and rounded
def transpose_grouped(X, num_heads, num_kv_heads):
    heads = X.unflatten(-1, (num_kv_heads, -1)).transpose(1, 2)
    index = torch.linspace(0, num_kv_heads - 1, num_heads).round().long()
    return heads[:, index].flatten(0, 1)


# %% key heads by a rounded ratio
def transpose_grouped(X, num_heads, num_kv_heads):
    heads = X.unflatten(-1, (num_kv_heads, -1)).transpose(1, 2)
    index = [round(h * (num_kv_heads - 1) / (num_heads - 1)) for h in range(num_heads)]
    return heads[:, index].flatten(0, 1)


# %% a step that is added up
def transpose_grouped(X, num_heads, num_kv_heads):
    heads = X.unflatten(-1, (num_kv_heads, -1)).transpose(1, 2)
    index, place = [], 0.0
    for _ in range(num_heads):
        index.append(int(place))
        place += num_kv_heads / num_heads
    return heads[:, index].flatten(0, 1)
