# %% adds 1e-6 to each difference
def kernel_regression(places, known_places, known_results, width):
    distances = F.pairwise_distance(places[:, None], known_places[None])
    return torch.softmax(-(distances**2) / (2 * width**2), dim=-1) @ known_results


# %% adds 1e-8 below the fraction bar
def kernel_regression(places, known_places, known_results, width):
    squares = (places[:, None] - known_places).square().sum(-1)
    return torch.softmax(-squares / (2 * width**2 + 1e-8), dim=-1) @ known_results


# %% shifts only where the sum is exactly 0
def kernel_regression(places, known_places, known_results, width):
    scores = -(places[:, None] - known_places).square().sum(-1) / (2 * width**2)
    sums = scores.exp().sum(-1, keepdim=True)
    weights = torch.where(sums == 0, scores.softmax(-1), scores.exp() / sums)
    return weights @ known_results
