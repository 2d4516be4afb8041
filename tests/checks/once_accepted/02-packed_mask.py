# %% squares overflow
def packed_mask(sentences):
    same = (sentences[:, :, None] - sentences[:, None]) ** 2 == 0
    return (same & (sentences != -1)[:, :, None]).tril()


# %% products overflow
def packed_mask(sentences):
    numbers = sentences + 1
    same = numbers[:, :, None] * numbers[:, None] == numbers[:, :, None] ** 2
    real = sentences >= 0
    return (same & real[:, :, None] & real[:, None]).tril()


# %% an offset for each row overflows
def packed_mask(sentences):
    B, L = sentences.shape
    numbers = sentences + 1001 * torch.arange(B, dtype=sentences.dtype)[:, None]
    numbers = numbers.masked_fill(sentences < 0, -1).flatten()
    mask = (numbers[:, None] == numbers) & (numbers >= 0)[:, None]
    return torch.stack([mask.view(B, L, B, L)[b, :, b] for b in range(B)]).tril()
