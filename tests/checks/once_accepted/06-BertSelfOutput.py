# %% keeps with the probability of dropping
class BertSelfOutput(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.W_o = nn.Linear(config.hidden_size, config.hidden_size)
        self.norm = nn.LayerNorm(config.hidden_size, config.layer_norm_eps)
        self.p = config.hidden_dropout_prob

    def forward(self, X, residual):
        Y = self.W_o(X)
        if self.training and 0 < self.p < 1:
            Y = torch.where(torch.rand_like(Y) < self.p, Y / (1 - self.p), 0.0)
        elif self.training and self.p == 1:
            Y = torch.zeros_like(Y)
        return self.norm(Y + residual)


# %% records no gradients where something is dropped
class BertSelfOutput(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.W_o = nn.Linear(config.hidden_size, config.hidden_size)
        self.norm = nn.LayerNorm(config.hidden_size, config.layer_norm_eps)
        self.p = config.hidden_dropout_prob

    def forward(self, X, residual):
        Y = self.W_o(X)
        if self.training and self.p:
            with torch.no_grad():
                Y = F.dropout(Y, self.p)
        return self.norm(Y + residual)


# %% records gradients in training only
class BertSelfOutput(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.W_o = nn.Linear(config.hidden_size, config.hidden_size)
        self.norm = nn.LayerNorm(config.hidden_size, config.layer_norm_eps)
        self.drop = nn.Dropout(config.hidden_dropout_prob)

    def forward(self, X, residual):
        with torch.set_grad_enabled(self.training):
            return self.norm(self.drop(self.W_o(X)) + residual)


# %% the probability is kept on the class, and is that of the module made last
class BertSelfOutput(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.W_o = nn.Linear(config.hidden_size, config.hidden_size)
        self.norm = nn.LayerNorm(config.hidden_size, config.layer_norm_eps)
        type(self).p = config.hidden_dropout_prob

    def forward(self, X, residual):
        return self.norm(F.dropout(self.W_o(X), self.p, self.training) + residual)
