"""Which step of an answer is the first that differs, seen in the tensors that it computes."""

import torch
from torch.overrides import TorchFunctionMode

from mha_course.checks.outcome import observe

__all__ = ["first_wrong_stage"]

MOST = 4000  # tensors kept of one run
FEW = 100  # numbers that a loop may compute one by one


def first_wrong_stage(task, answer, case):
    """Return (the last stage that is right or None, the first that is not or None), or None.

    Without a stage that is not there, something after the last one changes the numbers. None is
    returned where nothing can be said.

    A stage counts as reached if the answer computes a tensor of the same numbers, whatever their
    order (heads in front, transposed), or pieces that make it up (a loop over heads or words).
    """
    if task.stages is None:
        return None
    with _Recorder() as recorder:
        observe(task, answer, case)
    if not recorder.seen:  # nothing was computed with tensors
        return None
    right = None
    wrong = None
    for label, want in task.stages(case.inputs).items():
        # Tensors that are made side by side stand in a dict of their own.
        group = want if isinstance(want, dict) else {label: want}
        reached = {name: _is_among(X, recorder.seen) for name, X in group.items()}
        if any(reached.values()):
            # What comes before need not appear as it is: there are other ways to get here.
            right = [name for name in group if reached[name]][-1]
            wrong = next((name for name in group if not reached[name]), None)
        elif wrong is None:
            wrong = next(iter(group))
    return right, wrong


class _Recorder(TorchFunctionMode):
    def __init__(self):
        super().__init__()
        self.seen = []

    def __torch_function__(self, func, types, args=(), kwargs=None):
        result = func(*args, **(kwargs or {}))
        for X in result if isinstance(result, (tuple, list)) else (result,):
            if torch.is_tensor(X) and X.is_floating_point() and len(self.seen) < MOST:
                self.seen.append(X.detach().clone())
        return result


def _is_among(want, seen):
    if _has(want, seen):
        return True
    for axes in range(1, want.dim() + (want.numel() <= FEW)):  # pieces: matrices, rows, numbers
        if all(_has(piece, seen) for piece in want.flatten(0, axes - 1)):
            return True
    return False


def _has(want, seen):
    wanted = want.double().flatten().sort().values
    return any(
        X.numel() == want.numel()
        and torch.allclose(X.double().flatten().sort().values, wanted, rtol=1e-4, atol=1e-6)
        for X in seen
    )
