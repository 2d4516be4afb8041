# %% divides by num_heads and multiplies then, in float32
def key_heads_needed(kept, num_heads, num_kv_heads):
    return torch.unique((kept / num_heads * num_kv_heads).long(), return_inverse=True)


# %% multiplies by a float, in float32
def key_heads_needed(kept, num_heads, num_kv_heads):
    return torch.unique((kept * (num_kv_heads / num_heads)).long(), return_inverse=True)


# %% multiplies by a float, in Python
def key_heads_needed(kept, num_heads, num_kv_heads):
    used = [int(head * (num_kv_heads / num_heads)) for head in kept.tolist()]
    return torch.unique(torch.tensor(used), return_inverse=True)
