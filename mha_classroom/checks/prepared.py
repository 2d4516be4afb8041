"""What is the same for every answer to a task: its cases, and what known answers do with them."""

import torch

from mha_classroom.checks.outcome import observe_known
from mha_classroom.checks.running import changed_inputs, quiet_state, reversed_inputs
from mha_classroom.checks.task import Case, Draw

__all__ = ["Prepared", "prepared", "reversed_case"]

MOST = 100  # tasks and seeds that are kept in mind

_made = {}


def prepared(task, seed):
    """The Prepared of a task and a seed, made once; it holds the task, so that no other takes its
    place."""
    key = id(task), seed
    if key not in _made:
        if len(_made) >= MOST:
            _made.clear()
        with quiet_state():
            _made[key] = Prepared(task, seed)
    return _made[key]


class Prepared:
    """The cases of a task for a seed, never given to an answer, and what has been computed of them.

    Everything is computed when it is asked for, once.
    """

    def __init__(self, task, seed):
        self.task, self.cases, self._kept = task, task.cases(Draw(seed)), {}

    def reversed(self, index):
        """The case of this index with its numbers in reverse order, None if there is none."""
        return self.kept(("reversed", index), lambda: reversed_case(self.task, self.cases[index]))

    def right(self, index, turned=False):
        """What a right answer returns on a case, or on it with its numbers in reverse order."""
        case = self.reversed(index) if turned else self.cases[index]
        return self.kept(
            ("right", index, turned), lambda: observe_known(self.task, self.task.reference, case)
        ).value

    def kept(self, key, compute):
        """What `compute` returned when this key was asked for first."""
        if key not in self._kept:
            self._kept[key] = compute()
        return self._kept[key]


def reversed_case(task, case):
    """A case with all its numbers in reverse order.

    None if nothing changes, if that is not allowed, or if rounding decides what comes out there:
    a task may promise that no two numbers are alike, and in reverse order two of them may be.
    """
    turned = reversed_inputs(case.inputs)
    if not task.reversible or not changed_inputs(turned, case.inputs):
        return None
    other = Case(f"{case.name}, with all numbers in reverse order", turned)
    outcome = observe_known(task, task.reference, other)
    if outcome.error is not None:
        return None
    nudged = (
        observe_known(task, task.reference, Case(other.name, _nudged(turned, sign))).value
        for sign in (1, -1)  # of two that are alike one is larger each time
    )
    return other if all(_chosen(value) == _chosen(outcome.value) for value in nudged) else None


def _nudged(inputs, sign):
    """The same with floats that differ in their last digits."""
    generator = torch.Generator().manual_seed(0)

    def nudge(X):
        if not torch.is_tensor(X) or not X.is_floating_point():
            return X
        step = 16 * sign * torch.finfo(X.dtype).eps
        return X * (1 + step * (torch.rand(X.shape, generator=generator).to(X.dtype) - 0.5))

    return {name: nudge(X) for name, X in inputs.items()}


def _chosen(value):
    """What a result holds besides floats: places, words, whether there is anything."""
    if torch.is_tensor(value):
        return value.shape if value.is_floating_point() else value.tolist()
    if isinstance(value, dict):
        return {name: _chosen(part) for name, part in value.items()}
    if isinstance(value, (tuple, list)):
        return [_chosen(part) for part in value]
    return float if isinstance(value, float) else value
