# %% a mask counts only if it hides something
class BertSelfAttention(nn.Module):
    def __init__(self, config):
        super().__init__()
        width, self.H = config.hidden_size, config.num_attention_heads
        self.W_q, self.W_k, self.W_v = (nn.Linear(width, width) for _ in range(3))
        self.drop = nn.Dropout(config.attention_probs_dropout_prob)

    def forward(self, X, mask=None, need_weights=False):
        q, k, v = (
            W(X).unflatten(-1, (self.H, -1)).transpose(1, 2) for W in (self.W_q, self.W_k, self.W_v)
        )
        scores = q @ k.mT / math.sqrt(q.shape[-1])
        if mask is not None and mask.min() < -1000:
            scores = scores + mask
        weights = scores.softmax(-1)
        output = (self.drop(weights) @ v).transpose(1, 2).flatten(2)
        return (output, weights) if need_weights else output


# %% a mask counts only if its numbers do not add up to 0
class BertSelfAttention(nn.Module):
    def __init__(self, config):
        super().__init__()
        width, self.H = config.hidden_size, config.num_attention_heads
        self.W_q, self.W_k, self.W_v = (nn.Linear(width, width) for _ in range(3))
        self.drop = nn.Dropout(config.attention_probs_dropout_prob)

    def forward(self, X, mask=None, need_weights=False):
        q, k, v = (
            W(X).unflatten(-1, (self.H, -1)).transpose(1, 2) for W in (self.W_q, self.W_k, self.W_v)
        )
        scores = q @ k.mT / math.sqrt(q.shape[-1])
        if mask is not None and mask.sum() != 0:
            scores = scores + mask
        weights = scores.softmax(-1)
        output = (self.drop(weights) @ v).transpose(1, 2).flatten(2)
        return (output, weights) if need_weights else output
