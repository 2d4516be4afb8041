# %% keeps the outputs of the call before
class MendedAttention(nn.Module):
    def __init__(self, d_model, num_heads):
        super().__init__()
        d = d_model // num_heads
        heads = [nn.Linear(d_model, 3 * d, bias=False) for _ in range(num_heads)]
        self.heads = nn.ModuleList(heads)
        self.W_o = nn.Linear(d_model, d_model, bias=False)
        self.outputs = []

    def forward(self, X):
        for head in self.heads:
            q, k, v = head(X).chunk(3, dim=-1)
            weights = torch.softmax(q @ k.mT / math.sqrt(q.shape[-1]), dim=-1)
            self.outputs.append(weights @ v)
        return self.W_o(torch.cat(self.outputs, dim=-1))


# %% weights cut off in eval mode
class MendedAttention(nn.Module):
    def __init__(self, d_model, num_heads):
        super().__init__()
        d = d_model // num_heads
        heads = [nn.Linear(d_model, 3 * d, bias=False) for _ in range(num_heads)]
        self.heads = nn.ModuleList(heads)
        self.W_o = nn.Linear(d_model, d_model, bias=False)

    def forward(self, X):
        outputs = []
        for head in self.heads:
            q, k, v = head(X).chunk(3, dim=-1)
            weights = torch.softmax(q @ k.mT / math.sqrt(q.shape[-1]), dim=-1)
            outputs.append((weights if self.training else weights.data) @ v)
        return self.W_o(torch.cat(outputs, dim=-1))


# %% gradients in training only
class MendedAttention(nn.Module):
    def __init__(self, d_model, num_heads):
        super().__init__()
        d = d_model // num_heads
        heads = [nn.Linear(d_model, 3 * d, bias=False) for _ in range(num_heads)]
        self.heads = nn.ModuleList(heads)
        self.W_o = nn.Linear(d_model, d_model, bias=False)

    def forward(self, X):
        with torch.set_grad_enabled(self.training):
            outputs = []
            for head in self.heads:
                q, k, v = head(X).chunk(3, dim=-1)
                weights = torch.softmax(q @ k.mT / math.sqrt(q.shape[-1]), dim=-1)
                outputs.append(weights @ v)
            return self.W_o(torch.cat(outputs, dim=-1))
