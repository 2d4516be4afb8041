# %% compares shapes without their axes of size 1
def load_weights(model, state_dict):
    own = dict(model.named_parameters())
    bad = [*(own.keys() ^ state_dict.keys())]
    for name in own.keys() & state_dict.keys():
        if own[name].squeeze().shape != state_dict[name].squeeze().shape:
            bad.append(name)
    if bad:
        raise ValueError(", ".join(bad))
    with torch.no_grad():
        for name, X in own.items():
            X.copy_(state_dict[name].reshape(X.shape))


# %% compares sizes in pairs, as far as the shorter shape goes
def load_weights(model, state_dict):
    own = dict(model.named_parameters())
    bad = [*(own.keys() ^ state_dict.keys())]
    for name in own.keys() & state_dict.keys():
        if any(a != b for a, b in zip(own[name].shape, state_dict[name].shape, strict=False)):
            bad.append(name)
    if bad:
        raise ValueError(", ".join(bad))
    with torch.no_grad():
        for name, X in own.items():
            X.copy_(state_dict[name])


# %% names the first ten only
def load_weights(model, state_dict):
    own = dict(model.named_parameters())
    bad = [*(own.keys() ^ state_dict.keys())]
    bad += [n for n in own if n in state_dict and own[n].shape != state_dict[n].shape]
    if bad:
        raise ValueError(", ".join(bad[:10]))
    model.load_state_dict(state_dict)
