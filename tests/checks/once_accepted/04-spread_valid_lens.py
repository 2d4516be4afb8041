# %% a row for the heads of one sequence
def spread_valid_lens(valid_lens, num_heads):
    if len(valid_lens) == 1:
        return valid_lens.expand(num_heads, -1)
    return valid_lens.repeat_interleave(num_heads, dim=0)


# %% squeezes what may be one length
def spread_valid_lens(valid_lens, num_heads):
    table = valid_lens.reshape(len(valid_lens), -1).repeat_interleave(num_heads, dim=0)
    return table.squeeze() if valid_lens.dim() == 1 else table


# %% goes through lengths without their axis
def spread_valid_lens(valid_lens, num_heads):
    if valid_lens.dim() > 1:
        return torch.cat([row.expand(num_heads, -1) for row in valid_lens])
    return torch.cat([length.expand(num_heads) for length in valid_lens.squeeze()])


# %% one sequence has one length, whatever the number of heads
def spread_valid_lens(valid_lens, num_heads):
    if len(valid_lens) == 1:
        return valid_lens.clone()
    return valid_lens.repeat_interleave(num_heads, dim=0)


# %% a single length is left alone
def spread_valid_lens(valid_lens, num_heads):
    if valid_lens.numel() == 1:
        return valid_lens.clone()
    return valid_lens.repeat_interleave(num_heads, dim=0)


# %% lengths of 0 alone are returned as they are
def spread_valid_lens(valid_lens, num_heads):
    if not valid_lens.any():
        return valid_lens
    return valid_lens.repeat_interleave(num_heads, dim=0)
