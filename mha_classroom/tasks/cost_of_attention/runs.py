"""What runs of lesson 09's tasks beside the learner's code: it counts, and judges nothing."""

import torch
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

__all__ = ["run_ring", "run_small"]


class _Largest(TorchDispatchMode):
    """Sees how many numbers the largest tensor has that is made, views of the inputs left out."""

    def __init__(self, inputs):
        super().__init__()
        self.given = {_place(X) for X in inputs.values() if torch.is_tensor(X)}
        self.numbers = 0

    @classmethod
    def _should_skip_dynamo(cls):
        """torch asks this of a mode, and would import its compiler only to keep it away."""
        return False

    def __torch_dispatch__(self, operation, types, args=(), kwargs=None):
        result = operation(*args, **(kwargs or {}))
        for X in result if isinstance(result, (tuple, list)) else (result,):
            if torch.is_tensor(X) and _place(X) not in self.given:
                numbers = X.untyped_storage().nbytes() // X.element_size()
                self.numbers = max(self.numbers, numbers)
        return result


class _Left(TorchFunctionMode):
    """Sees whether tensors are handed to NumPy, whose arrays nobody here counts."""

    def __init__(self):
        super().__init__()
        self.numpy = False

    def __torch_function__(self, func, types, args=(), kwargs=None):
        self.numpy |= getattr(func, "__name__", "") in ("numpy", "__array__", "from_numpy")
        return func(*args, **(kwargs or {}))


def _place(X):
    return X.untyped_storage().data_ptr()


def run_small(answer, inputs):
    """Call an answer; return its result, the numbers of the largest tensor that it makes, and
    whether it computes with NumPy."""
    with _Left() as left, _Largest(inputs) as watching:
        result = answer(*inputs.values())
    numbers = result.numel() if torch.is_tensor(result) else 0  # perhaps made without torch
    return {"result": result, "largest": max(watching.numbers, numbers), "numpy": left.numpy}


def run_ring(answer, inputs):
    """Call an answer to `ring_step`; return its output, and the caller's cache afterwards."""
    output = answer(*inputs.values())
    return output, inputs["kept_keys"], inputs["kept_values"]
