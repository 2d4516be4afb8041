# %% the strength grows with the number of features
def neighbour_weights(num_features, num_positions):
    d, here = num_features, torch.eye(num_positions)
    W_q = torch.zeros(2, d + num_positions, num_positions)
    W_k, W_v = W_q.clone(), torch.zeros(2, d + num_positions, d)
    W_q[0, d + 1 :], W_q[1, d:-1] = 10 * d * here[:-1], 10 * d * here[1:]
    W_k[:, d:], W_v[:, :d] = here, torch.eye(d)
    return W_q, W_k, W_v


# %% contents stay in the scores
def neighbour_weights(num_features, num_positions):
    d, L = num_features, num_positions
    W_q = torch.eye(d + L).repeat(2, 1, 1)
    W_k, W_v = W_q.clone(), W_q[:, :, :d].clone()
    W_q[0, d:, d:] = 100 * torch.ones(L - 1).diag(-1)
    W_q[1, d:, d:] = 100 * torch.ones(L - 1).diag(1)
    return W_q, W_k, W_v
