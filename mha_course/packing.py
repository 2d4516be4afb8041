"""Several linear projections of one input as a single matrix product."""

import torch
from torch import nn

__all__ = ["Packed", "is_plain"]


class Packed:
    """Lays the parameters of Linears that are alike side by side in one memory.

    Applied to one input they are then a single product with that memory, and nothing has to be
    copied for it.
    Properties: the Linears keep their parameters and the values of these. A copy (deepcopy, pickle)
        lays its own side by side. Whoever moves parameters, as `module.to` does, calls `lay`.
    Source: torch.nn.RNNBase does the same and calls it flatten_parameters.
    """

    def __init__(self, *linears):
        self.linears = linears
        self.lay()

    def __reduce__(self):
        return Packed, self.linears

    @torch.inference_mode(False)  # or they could not be trained later
    def lay(self):
        """Lay the parameters side by side, wherever they are now."""
        self.wholes, self.places = (), []
        columns = self._columns()
        if columns is None:
            return
        for name, parameters in zip(("weight", "bias"), columns, strict=True):
            if parameters[0] is None:
                self.wholes += (None,)
                continue
            whole = torch.cat([X.detach() for X in parameters])
            self.wholes += (whole,)
            pieces = whole.chunk(len(parameters))
            for linear, X, piece in zip(self.linears, parameters, pieces, strict=True):
                X.data = piece
                self.places.append((linear._parameters, name, piece.data_ptr()))

    def shared(self):
        """Weight and bias of one Linear that does the work of all, without a copy, or None.

        None if gradients are asked for, or if some parameters lie elsewhere now.
        """
        if torch.is_grad_enabled() or not self.wholes or torch.compiler.is_compiling():
            return None
        for parameters, name, address in self.places:
            X = parameters.get(name)  # while the whole is held, nothing else can have this address
            if type(X) is not nn.Parameter or X.data_ptr() != address:
                return None
        return self.wholes if all(map(is_plain, self.linears)) else None

    def copied(self):
        """The same as a copy, through which gradients flow; None if the Linears are not alike."""
        columns = self._columns()
        return columns and tuple(map(_cat, columns))

    def _columns(self):
        """The weights and the biases, None if they cannot be laid side by side."""
        if not all(map(is_plain, self.linears)):
            return None
        columns = [[getattr(W, name) for W in self.linears] for name in ("weight", "bias")]
        return columns if all(map(_can_be_joined, columns)) else None


def _can_be_joined(parameters):
    if parameters[0] is None:
        return not any(X is not None for X in parameters)
    kinds = {X is not None and (type(X), X.shape, X.dtype, X.device) for X in parameters}
    return len(kinds) == 1 and type(parameters[0]) is nn.Parameter  # none that only has a shape


def is_plain(linear):
    """Whether nothing but its parameters says what this Linear does: it has no hook, for one."""
    forward_hooks = linear._forward_hooks or linear._forward_pre_hooks
    backward_hooks = linear._backward_hooks or linear._backward_pre_hooks
    return type(linear) is nn.Linear and not forward_hooks and not backward_hooks


def _cat(parameters):
    return None if parameters[0] is None else torch.cat(parameters)
