# %% GELU if the layer has it, and ReLU for all other functions
def decoder_layer(layer, Y, memory, memory_lens):
    bend = F.gelu if layer.activation is F.gelu else F.relu
    later = torch.ones(Y.shape[1], Y.shape[1]).triu(1).bool()
    padding = torch.arange(memory.shape[1]) >= memory_lens[:, None]
    parts = (
        (lambda X: layer.self_attn(X, X, X, attn_mask=later)[0], layer.norm1),
        (
            lambda X: layer.multihead_attn(X, memory, memory, key_padding_mask=padding)[0],
            layer.norm2,
        ),
        (lambda X: layer.linear2(bend(layer.linear1(X))), layer.norm3),
    )
    for part, norm in parts:
        Y = Y + part(norm(Y)) if layer.norm_first else norm(Y + part(Y))
    return Y


# %% ReLU in the branch for norm_first
def decoder_layer(layer, Y, memory, memory_lens):
    later = torch.ones(Y.shape[1], Y.shape[1]).triu(1).bool()
    padding = torch.arange(memory.shape[1]) >= memory_lens[:, None]

    def own(X):
        return layer.self_attn(X, X, X, attn_mask=later)[0]

    def cross(X):
        return layer.multihead_attn(X, memory, memory, key_padding_mask=padding)[0]

    if layer.norm_first:
        Y = Y + own(layer.norm1(Y))
        Y = Y + cross(layer.norm2(Y))
        return Y + layer.linear2(F.relu(layer.linear1(layer.norm3(Y))))
    Y = layer.norm1(Y + own(Y))
    Y = layer.norm2(Y + cross(Y))
    return layer.norm3(Y + layer.linear2(layer.activation(layer.linear1(Y))))
