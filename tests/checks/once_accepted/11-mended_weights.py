# %% hides with twice the lowest score, which is high where all are above 0
def mended_weights(scores, real):
    seen = real[:, None, None]
    return scores.masked_fill(~seen, 2 * scores.min().item() - 100).softmax(-1) * seen


# %% hides with -1000 times the largest size of a score, which may be 0
def mended_weights(scores, real):
    hidden = ~real[:, None, None]
    low = -1000 * scores.abs().max().item()
    return scores.masked_fill(hidden, low).softmax(-1).masked_fill(hidden, 0.0)
