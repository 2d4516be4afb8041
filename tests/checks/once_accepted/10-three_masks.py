# %% cuts the causal mask out of one for 128 tokens
CAUSAL = torch.ones(128, 128).tril().bool()


def three_masks(source, target, pad):
    (B, S), L = source.shape, target.shape[1]
    reads, writes = source != pad, target != pad
    decoder = writes[:, None] & CAUSAL[:L, :L]
    return reads[:, None].expand(B, S, S), decoder, reads[:, None].expand(B, L, S)


# %% cuts the causal mask out of one for 512 tokens
CAUSAL = torch.ones(512, 512).tril().bool()


def three_masks(source, target, pad):
    (B, S), L = source.shape, target.shape[1]
    reads, writes = source != pad, target != pad
    decoder = writes[:, None] & CAUSAL[:L, :L]
    return reads[:, None].expand(B, S, S), decoder, reads[:, None].expand(B, L, S)
