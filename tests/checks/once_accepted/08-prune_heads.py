# %% in the order of a set
def prune_heads(attention, heads):
    n = attention.num_heads
    d = attention.W_q.weight.shape[0] // n
    stay = set(range(n)) - set(heads)
    index = [h * d + i for h in stay for i in range(d)]
    for linear in (attention.W_q, attention.W_k, attention.W_v):
        linear.weight = nn.Parameter(linear.weight.detach()[index])
        if linear.bias is not None:
            linear.bias = nn.Parameter(linear.bias.detach()[index])
    attention.W_o.weight = nn.Parameter(attention.W_o.weight.detach()[:, index])
    attention.num_heads = len(stay)
