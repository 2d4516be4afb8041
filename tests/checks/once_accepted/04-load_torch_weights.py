# %% a bias is frozen where its matrix is
def load_torch_weights(attention, reference):
    linears = (attention.W_q, attention.W_k, attention.W_v, attention.W_o)
    for kind in ("weight", "bias"):
        packed = getattr(reference, f"in_proj_{kind}")
        if packed is not None:
            parts = *packed.chunk(3), getattr(reference.out_proj, kind)
            for linear, X in zip(linears, parts, strict=True):
                trained = linear.weight.requires_grad
                setattr(linear, kind, nn.Parameter(X.detach().clone(), requires_grad=trained))


# %% W_o becomes trainable
def load_torch_weights(attention, reference):
    linears = (attention.W_q, attention.W_k, attention.W_v)
    for kind in ("weight", "bias"):
        packed = getattr(reference, f"in_proj_{kind}")
        if packed is not None:
            for linear, X in zip(linears, packed.chunk(3), strict=True):
                getattr(linear, kind).data.copy_(X)
            own = getattr(reference.out_proj, kind).detach().clone()
            setattr(attention.W_o, kind, nn.Parameter(own))


# %% gradients stay switched off
def load_torch_weights(attention, reference):
    torch.set_grad_enabled(False)
    linears = (attention.W_q, attention.W_k, attention.W_v)
    for kind in ("weight", "bias"):
        packed = getattr(reference, f"in_proj_{kind}")
        if packed is not None:
            for linear, X in zip(linears, packed.chunk(3), strict=True):
                getattr(linear, kind).copy_(X)
            getattr(attention.W_o, kind).copy_(getattr(reference.out_proj, kind))


# %% gradients stay switched off without biases
def load_torch_weights(attention, reference):
    torch.set_grad_enabled(False)
    linears = (attention.W_q, attention.W_k, attention.W_v)
    for kind in ("weight", "bias"):
        packed = getattr(reference, f"in_proj_{kind}")
        if packed is None:
            return
        for linear, X in zip(linears, packed.chunk(3), strict=True):
            getattr(linear, kind).copy_(X)
        getattr(attention.W_o, kind).copy_(getattr(reference.out_proj, kind))
    torch.set_grad_enabled(True)


# %% training mode is taken over
def load_torch_weights(attention, reference):
    linears = (attention.W_q, attention.W_k, attention.W_v)
    with torch.no_grad():
        for kind in ("weight", "bias"):
            packed = getattr(reference, f"in_proj_{kind}")
            if packed is not None:
                for linear, X in zip(linears, packed.chunk(3), strict=True):
                    getattr(linear, kind).copy_(X)
                getattr(attention.W_o, kind).copy_(getattr(reference.out_proj, kind))
    if reference.training:
        attention.train()


# %% biases of 0 are not copied
def load_torch_weights(attention, reference):
    linears = (attention.W_q, attention.W_k, attention.W_v)
    with torch.no_grad():
        for kind in ("weight", "bias"):
            packed = getattr(reference, f"in_proj_{kind}")
            if packed is not None and packed.any():
                for linear, X in zip(linears, packed.chunk(3), strict=True):
                    getattr(linear, kind).copy_(X)
                getattr(attention.W_o, kind).copy_(getattr(reference.out_proj, kind))
