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
