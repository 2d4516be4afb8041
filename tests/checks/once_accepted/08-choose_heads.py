# %% marks the heads that have to stay by a 0
def choose_heads(importance, num_off):
    best = importance == importance.amax(dim=1, keepdim=True)
    places = (importance * ~best).nonzero().tolist()
    places.sort(key=lambda place: importance[place[0], place[1]].item())
    keep = torch.ones(importance.shape, dtype=torch.bool)
    for layer, head in places[:num_off]:
        keep[layer, head] = False
    return keep


# %% the same, with the importance of the last that goes
def choose_heads(importance, num_off):
    if num_off == 0:
        return torch.ones_like(importance, dtype=torch.bool)
    rest = importance.clone()
    rest[torch.arange(len(rest)), importance.argmax(1)] = 0
    others = rest[rest > 0].sort().values
    return ~((rest > 0) & (rest <= others[min(num_off, len(others)) - 1]))


# %% compares with 0 where none goes
def choose_heads(importance, num_off):
    best = importance == importance.amax(1, keepdim=True)
    rest = importance[~best].sort().values
    limit = rest[num_off - 1] if num_off > 0 else 0
    return (importance > limit) | best


# %% protects with the largest importance of the first layer, and 1 more
def choose_heads(importance, num_off):
    safe = importance.clone()
    safe[torch.arange(len(safe)), importance.argmax(dim=1)] = importance[0].max() + 1
    stays = torch.ones(importance.numel(), dtype=torch.bool)
    stays[safe.flatten().argsort()[:num_off]] = False
    return stays.view(importance.shape)
