# %% hides with twice the lowest score, which is high where all are above 0
def mended_weights(scores, real):
    seen = real[:, None, None]
    return scores.masked_fill(~seen, 2 * scores.min().item() - 100).softmax(-1) * seen
