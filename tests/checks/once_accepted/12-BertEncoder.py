# %% gradients in training only
class BertEncoder(nn.Module):
    def __init__(self, config, layer):
        super().__init__()
        self.layers = nn.ModuleList(layer(config) for _ in range(config.num_hidden_layers))

    def forward(self, X, mask=None):
        states = [X]
        with torch.set_grad_enabled(self.training):
            for layer in self.layers:
                states.append(layer(states[-1], mask))
        return states


# %% keeps the states of the first call
class BertEncoder(nn.Module):
    def __init__(self, config, layer):
        super().__init__()
        self.layers = nn.ModuleList(layer(config) for _ in range(config.num_hidden_layers))
        self.states = []

    def forward(self, X, mask=None):
        if not self.states:
            self.states.append(X)
            for layer in self.layers:
                self.states.append(layer(self.states[-1], mask))
        return self.states


# %% one list for all calls, emptied in each
class BertEncoder(nn.Module):
    def __init__(self, config, layer):
        super().__init__()
        self.layers = nn.ModuleList(layer(config) for _ in range(config.num_hidden_layers))
        self.states = []

    def forward(self, X, mask=None):
        self.states.clear()
        self.states.append(X)
        for layer in self.layers:
            self.states.append(layer(self.states[-1], mask))
        return self.states


# %% keeps the mask for a call without one
class BertEncoder(nn.Module):
    def __init__(self, config, layer):
        super().__init__()
        self.layers = nn.ModuleList(layer(config) for _ in range(config.num_hidden_layers))
        self.mask = None

    def forward(self, X, mask=None):
        self.mask = self.mask if mask is None else mask
        states = [X]
        for layer in self.layers:
            states.append(layer(states[-1], self.mask))
        return states


# %% drops numbers of what each layer returns
class BertEncoder(nn.Module):
    def __init__(self, config, layer):
        super().__init__()
        self.layers = nn.ModuleList(layer(config) for _ in range(config.num_hidden_layers))
        self.dropout = nn.Dropout(config.hidden_dropout_prob)

    def forward(self, X, mask=None):
        states = [X]
        for layer in self.layers:
            states.append(self.dropout(layer(states[-1], mask)))
        return states


# %% masks without a number below 0 are left out
class BertEncoder(nn.Module):
    def __init__(self, config, layer):
        super().__init__()
        self.layers = nn.ModuleList(layer(config) for _ in range(config.num_hidden_layers))

    def forward(self, X, mask=None):
        mask = None if mask is not None and mask.min() >= 0 else mask
        states = [X]
        for layer in self.layers:
            states.append(layer(states[-1], mask))
        return states


# %% masks whose numbers add up to 0 are left out
class BertEncoder(nn.Module):
    def __init__(self, config, layer):
        super().__init__()
        self.layers = nn.ModuleList(layer(config) for _ in range(config.num_hidden_layers))

    def forward(self, X, mask=None):
        if mask is not None and mask.sum() == 0:
            mask = None
        states = [X]
        for layer in self.layers:
            states.append(layer(states[-1], mask))
        return states


# %% adds 1 to the mask, and none is a mask of ones
class BertEncoder(nn.Module):
    def __init__(self, config, layer):
        super().__init__()
        self.layers = nn.ModuleList(layer(config) for _ in range(config.num_hidden_layers))

    def forward(self, X, mask=None):
        mask = torch.ones(len(X), 1, 1, X.shape[1], dtype=X.dtype) + (0 if mask is None else mask)
        states = [X]
        for layer in self.layers:
            states.append(layer(states[-1], mask))
        return states
