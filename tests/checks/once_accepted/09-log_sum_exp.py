# %% the largest score starts at -5e4
def log_sum_exp(scores, tile):
    largest = torch.full_like(scores[..., 0], -5e4)
    total = torch.zeros_like(largest)
    for part in scores.split(tile, -1):
        new = torch.maximum(largest, part.amax(-1))
        total = total * torch.exp(largest - new) + torch.exp(part - new[..., None]).sum(-1)
        largest = new
    return largest + total.log()
