"""What a function costs: FLOPs, tensors that it makes and keeps, bytes moved, time."""

from time import perf_counter

import torch
from torch.autograd.graph import saved_tensors_hooks
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import FlopCounterMode

__all__ = ["SlowMemory", "flops", "kept_for_backward", "largest_tensor", "seconds"]


def flops(function, *inputs):
    """FLOPs of the matrix products of function(*inputs), as PyTorch counts them.

    Properties: a fused attention on the CPU counts 0, since the counter does not know it.
    Source: torch.utils.flop_counter. Lesson: notebooks/05_parameter_counting.ipynb.
    """
    with FlopCounterMode(display=False) as counter:
        function(*inputs)
    return counter.get_total_flops()


class _Watching(TorchDispatchMode):
    """Sees the result of each operation of PyTorch, and remembers the size of the largest."""

    def __init__(self):
        super().__init__()
        self.num_bytes = 0

    @classmethod
    def _should_skip_dynamo(cls):
        """torch asks this of a mode, and would import its compiler only to keep it away."""
        return False

    def __torch_dispatch__(self, operation, types, args=(), kwargs=None):
        result = operation(*args, **(kwargs or {}))
        for X in result if isinstance(result, (tuple, list)) else (result,):
            if torch.is_tensor(X):
                self.num_bytes = max(self.num_bytes, X.untyped_storage().nbytes())
        return result


def largest_tensor(function, *inputs):
    """Bytes of the largest tensor that an operation of PyTorch returns in function(*inputs).

    Properties: equal on every machine. What an operation uses inside is not seen; a view counts
        as much as the tensor that it looks at, so pass inputs that are no views of larger ones.
    Source: torch.utils._python_dispatch. Lesson: notebooks/09_cost_of_attention.ipynb.
    """
    with _Watching() as watching:
        function(*inputs)
    return watching.num_bytes


def kept_for_backward(function, *inputs):
    """The tensors that autograd keeps for the gradients of function(*inputs), each once.

    The inputs are copied, and gradients are asked for all of them. Two tensors that begin at the
    same place in memory count as one.
    Source: torch.autograd.graph.saved_tensors_hooks. Lesson: notebooks/09_cost_of_attention.ipynb.
    """
    kept = {}

    def keep(X):
        kept.setdefault(X.data_ptr(), X.detach())
        return X

    with saved_tensors_hooks(keep, lambda X: X):
        function(*[X.detach().clone().requires_grad_() for X in inputs])
    return list(kept.values())


class SlowMemory:
    """The large memory beside a small fast one: counts in `moved` the bytes read and written."""

    def __init__(self):
        self.moved = 0

    def read(self, X):
        """Bring a tensor into fast memory; returns it."""
        self.moved += X.nbytes
        return X

    def write(self, X):
        """Bring a tensor back into slow memory; returns it."""
        self.moved += X.nbytes
        return X


def seconds(function, *inputs, runs=5):
    """The shortest time of some runs of function(*inputs), after one that is not timed.

    Properties: on one thread, so that what else runs on the machine disturbs less.
    Raises: ValueError quoting runs below 1. Lesson: notebooks/09_cost_of_attention.ipynb.
    """
    if runs < 1:
        raise ValueError(f"runs must be 1 or more, got {runs}")
    times, threads = [], torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        function(*inputs)  # the first call also sets things up
        for _run in range(runs):
            start = perf_counter()
            function(*inputs)
            times.append(perf_counter() - start)
    finally:
        torch.set_num_threads(threads)
    return min(times)
