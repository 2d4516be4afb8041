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


# %% new layers, in float32 whatever the old ones are
def prune_heads(attention, heads):
    n = attention.num_heads
    d = attention.W_q.weight.shape[0] // n
    index = [h * d + i for h in range(n) if h not in heads for i in range(d)]

    def cut(weight, bias):
        new = nn.Linear(weight.shape[1], weight.shape[0], bias=bias is not None)
        with torch.no_grad():
            new.weight.copy_(weight)
            if bias is not None:
                new.bias.copy_(bias)
        return new

    for name in ("W_q", "W_k", "W_v"):
        W = getattr(attention, name)
        setattr(attention, name, cut(W.weight[index], None if W.bias is None else W.bias[index]))
    attention.W_o = cut(attention.W_o.weight[:, index], attention.W_o.bias)
    attention.num_heads = len(index) // d
