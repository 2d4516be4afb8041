# %% solves for the matrix with as many positions as features
def shift_positions(P, shift):
    def table(places):
        angles = places[:, None] * 10000 ** (-torch.arange(0, P.shape[1], 2).double() / P.shape[1])
        return torch.stack([angles.sin(), angles.cos()], -1).flatten(1)

    places = torch.arange(P.shape[1]).double()
    return P @ torch.linalg.solve(table(places), table(places + shift))


# %% cuts a negative fraction towards 0, and adds the rest that % gives
def shift_positions(P, shift):
    omega = 10000 ** (-torch.arange(0, P.shape[1], 2).double() / P.shape[1])
    angles = (int(shift) + shift % 1) * omega
    s, c = P[:, 0::2], P[:, 1::2]
    later = s * angles.cos() + c * angles.sin(), c * angles.cos() - s * angles.sin()
    return torch.stack(later, -1).flatten(1)


# %% frequencies in float32, too few digits for a large shift
def shift_positions(P, shift):
    omega = 10000 ** (-torch.arange(0, P.shape[1], 2) / P.shape[1])
    s, c, a = P[:, ::2], P[:, 1::2], shift * omega
    return torch.stack([s * a.cos() + c * a.sin(), c * a.cos() - s * a.sin()], 2).flatten(1)


# %% shift in float32
def shift_positions(P, shift):
    omega = 10000 ** (-torch.arange(0, P.shape[1], 2).double() / P.shape[1])
    s, c, a = P[:, ::2], P[:, 1::2], torch.tensor([shift]) * omega
    return torch.stack([s * a.cos() + c * a.sin(), c * a.cos() - s * a.sin()], 2).flatten(1)
