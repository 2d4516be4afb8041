# %% with isclose
def smallest_enough(num_heads, accuracies, goal, least_runs):
    for h in num_heads.unique().tolist():
        a = accuracies[num_heads == h]
        reached = (a >= goal) | torch.isclose(a, torch.tensor(goal, dtype=a.dtype))
        if len(a) >= least_runs and reached.all():
            return h


# %% a run may miss the goal by 1e-6
def smallest_enough(num_heads, accuracies, goal, least_runs):
    for h in num_heads.unique().tolist():
        a = accuracies[num_heads == h]
        if len(a) >= least_runs and (a >= goal - 1e-6).all():
            return h


# %% an accuracy of 0 is taken for none
def smallest_enough(num_heads, accuracies, goal, least_runs):
    worst, count = {}, {}
    for h, a in zip(num_heads.tolist(), accuracies.tolist(), strict=True):
        worst[h] = min(worst.get(h) or 1.0, a)
        count[h] = count.get(h, 0) + 1
    return min((h for h in worst if count[h] >= least_runs and worst[h] >= goal), default=None)


# %% marks runs by what is not 0
def smallest_enough(num_heads, accuracies, goal, least_runs):
    for h in num_heads.unique().tolist():
        a = accuracies * (num_heads == h)
        a = a[a > 0]
        if len(a) >= least_runs and a.min() >= goal:
            return h


# %% judges by the mean less the standard deviation
def smallest_enough(num_heads, accuracies, goal, least_runs):
    for h in num_heads.unique().tolist():
        a = accuracies[num_heads == h]
        if len(a) >= least_runs and a.mean() - a.std(correction=0) >= goal:
            return h


# %% at most 256 heads
def smallest_enough(num_heads, accuracies, goal, least_runs):
    for h in range(1, 257):
        a = accuracies[num_heads == h]
        if len(a) > 0 and len(a) >= least_runs and (a >= goal).all():
            return h


# %% the goal in float32, which may lie above it
def smallest_enough(num_heads, accuracies, goal, least_runs):
    goal = torch.tensor(goal, dtype=torch.float32).double()
    for h in num_heads.unique().tolist():
        runs = accuracies[num_heads == h]
        if len(runs) >= least_runs and (runs >= goal).all():
            return h
    return None


# %% accuracies in float32
def smallest_enough(num_heads, accuracies, goal, least_runs):
    for h in num_heads.unique().tolist():
        a = accuracies[num_heads == h].float()
        if len(a) >= least_runs and (a >= goal).all():
            return h


# %% the worst runs in float32
def smallest_enough(num_heads, accuracies, goal, least_runs):
    counts, place, runs = num_heads.unique(return_inverse=True, return_counts=True)
    worst = torch.ones(len(counts))
    for i in range(len(counts)):
        worst[i] = accuracies[place == i].min()
    good = counts[(runs >= least_runs) & (worst >= goal)]
    return int(good[0]) if len(good) else None
