"""Run an answer on a case without letting it disturb anything."""

import contextlib
import random

import numpy as np
import torch

__all__ = [
    "changed_inputs",
    "copy_inputs",
    "quiet_state",
    "reversed_inputs",
]


def copy_inputs(inputs):
    """Return the inputs with tensors and lists copied, so that an answer cannot change the case."""
    return {name: _copied(X) for name, X in inputs.items()}


def _copied(X):
    if isinstance(X, list):
        return [_copied(one) for one in X]
    return X.clone() if torch.is_tensor(X) else X


def changed_inputs(given, inputs, allowed=()):
    """Return the names of tensors and lists in `given` that no longer equal those in `inputs`."""
    return [
        name for name, X in inputs.items() if name not in allowed and not _is_still(given[name], X)
    ]


def _is_still(given, X):
    if isinstance(X, list):
        alike = isinstance(given, list) and len(given) == len(X)
        return alike and all(map(_is_still, given, X))
    if isinstance(X, (int, float, str)):
        return type(given) is type(X) and (given == X or (given != given and X != X))  # in a list
    if not torch.is_tensor(X):
        return True
    if not torch.is_tensor(given) or (given.shape, given.dtype) != (X.shape, X.dtype):
        return False
    return bool(((given == X) | ((given != given) & (X != X))).all())  # NaN stays NaN


def reversed_inputs(inputs):
    """Return the inputs with the numbers of every tensor in reverse order."""
    return {
        name: X.flip(tuple(range(X.dim()))) if torch.is_tensor(X) else X
        for name, X in inputs.items()
    }


@contextlib.contextmanager
def quiet_state():
    """Leave the global random generators and torch's defaults as they were found.

    Inside, the generators start from 0 (`observe` starts them anew for each run), and torch has one
    thread: for the small tensors of a check a second one only waits.
    """
    python, numpy_state, dtype = random.getstate(), np.random.get_state(), torch.get_default_dtype()
    grad, threads = torch.is_grad_enabled(), torch.get_num_threads()
    torch.set_num_threads(1)
    with torch.random.fork_rng(devices=[]):
        for seed in (random.seed, np.random.seed, torch.manual_seed):
            seed(0)
        try:
            yield
        finally:
            random.setstate(python)
            np.random.set_state(numpy_state)
            torch.set_default_dtype(dtype)
            torch.set_grad_enabled(grad)
            torch.set_num_threads(threads)
