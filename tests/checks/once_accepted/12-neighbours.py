# %% rounds the cosines to 6 digits
def neighbours(vectors, used, k=3):
    unit, used = vectors / vectors.norm(dim=1, keepdim=True), used.bool()
    may = used & used[:, None] & ~torch.eye(len(used), dtype=torch.bool)
    cosines = torch.round(unit @ unit.T, decimals=6).masked_fill(~may, -2.0)
    best, places = cosines.sort(dim=1, descending=True, stable=True)
    result = torch.full((len(used), k), -1)
    result[:, : len(used)] = places.masked_fill(best == -2, -1)[:, :k]
    return result
