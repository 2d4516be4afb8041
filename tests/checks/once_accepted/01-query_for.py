# %% solves square tables as if they had an inverse
def query_for(keys, weights):
    A, b = keys[1:] - keys[0], torch.log(weights[1:] / weights[0])
    return torch.linalg.solve(A, b) if len(A) == len(A.T) else torch.linalg.pinv(A) @ b


# %% the same with a column of ones
def query_for(keys, weights):
    A = torch.cat([keys, torch.ones_like(keys[:, :1])], dim=1)
    if len(A) == len(A.T):
        return torch.linalg.solve(A, weights.log())[:-1]
    return (torch.linalg.pinv(A) @ weights.log())[:-1]


# %% divides by the length of the difference of two keys
def query_for(keys, weights):
    A, b = keys[1:] - keys[0], torch.log(weights[1:] / weights[0])
    return A[0] * b / A[0].dot(A[0]) if len(A) == 1 else torch.linalg.pinv(A) @ b


# %% takes all keys that differ for independent
def query_for(keys, weights):
    kept = [i for i in range(len(keys)) if not any(keys[i].equal(key) for key in keys[:i])]
    A, b = keys[kept][1:] - keys[0], torch.log(weights[kept][1:] / weights[0])
    return A.T @ torch.linalg.inv(A @ A.T) @ b


# %% leaves small differences out
def query_for(keys, weights):
    A, b = keys[1:] - keys[0], torch.log(weights[1:] / weights[0])
    return torch.linalg.pinv(A, rtol=1e-4) @ b


# %% adds a small number to the diagonal
def query_for(keys, weights):
    A, b = keys[1:] - keys[0], torch.log(weights[1:] / weights[0])
    return A.T @ torch.linalg.solve(A @ A.T + 1e-10 * torch.eye(len(A), dtype=A.dtype), b)


# %% a column of ones in float64 whatever the keys are
def query_for(keys, weights):
    ones = torch.ones(len(keys), 1, dtype=torch.float64)
    return (torch.linalg.pinv(torch.cat([keys, ones], dim=1)) @ weights.log())[:-1]
