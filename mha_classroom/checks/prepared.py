"""What is the same for every answer to a task: its cases, and what known answers do with them."""

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
    """A case with all its numbers in reverse order; None if nothing changes or none is allowed."""
    turned = reversed_inputs(case.inputs)
    other = Case(f"{case.name}, with all numbers in reverse order", turned)
    if not changed_inputs(turned, case.inputs):
        return None
    return None if observe_known(task, task.reference, other).error is not None else other
