# %% hides with -1e6, and scores may be lower
def bahdanau_step(state, ready_keys, states, valid_lens, W_q, w_v):
    scores = torch.tanh((state @ W_q)[:, None] + ready_keys) @ w_v
    hidden = torch.arange(scores.shape[1]) >= valid_lens[:, None]
    weights = scores.masked_fill(hidden, -1e6).softmax(-1)
    return (weights[:, None] @ states)[:, 0], weights


# %% takes 1e5 off the scores of padding
def bahdanau_step(state, ready_keys, states, valid_lens, W_q, w_v):
    scores = torch.tanh((state @ W_q)[:, None] + ready_keys) @ w_v
    hidden = torch.arange(scores.shape[1]) >= valid_lens[:, None]
    weights = (scores - 1e5 * hidden).softmax(-1)
    return (weights[:, None] @ states)[:, 0], weights


# %% hides every score that is 0
def bahdanau_step(state, ready_keys, states, valid_lens, W_q, w_v):
    scores = torch.tanh((state @ W_q)[:, None] + ready_keys) @ w_v
    scores = scores * (torch.arange(scores.shape[1]) < valid_lens[:, None])
    weights = scores.masked_fill(scores == 0, -torch.inf).softmax(-1)
    return (weights[:, None] @ states)[:, 0], weights
