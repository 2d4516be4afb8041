# %% in the order of a set
def remove_heads(W_q, W_k, W_v, W_o, num_heads, removed):
    stay = list(set(range(num_heads)) - set(removed))
    wide = (W.unflatten(1, (num_heads, -1))[:, stay].flatten(1) for W in (W_q, W_k, W_v))
    return *wide, W_o.unflatten(0, (num_heads, -1))[stay].flatten(0, 1)


# %% marks columns by 0, and drops those that were 0 before, too
def remove_heads(W_q, W_k, W_v, W_o, num_heads, removed):
    q, v = W_q.clone(), W_v.clone()
    for h in removed:
        for W in (q, v):
            W.unflatten(1, (num_heads, -1))[:, h] = 0
    q, v = q.any(0), v.any(0)
    return W_q[:, q], W_k[:, q], W_v[:, v], W_o[v]


# %% the heads that stay in the order of texts, "10" before "2"
def remove_heads(W_q, W_k, W_v, W_o, num_heads, removed):
    stay = sorted({str(h) for h in range(num_heads)} - {str(h) for h in removed})

    def cut(W, axis):
        return torch.cat([W.chunk(num_heads, axis)[int(h)] for h in stay], axis)

    return cut(W_q, 1), cut(W_k, 1), cut(W_v, 1), cut(W_o, 0)


# %% every piece that is equal to a removed one goes
def remove_heads(W_q, W_k, W_v, W_o, num_heads, removed):
    def cut(W, axis):
        parts = W.chunk(num_heads, axis)
        gone = [parts[h] for h in removed]
        return torch.cat([p for p in parts if not any(torch.equal(p, g) for g in gone)], axis)

    return cut(W_q, 1), cut(W_k, 1), cut(W_v, 1), cut(W_o, 0)
