"""Of which other inputs an answer gives the right results: "right if `kept` were sorted"."""

import contextlib
import itertools

import torch

from mha_classroom.checks.outcome import observe_known, same
from mha_classroom.checks.patterns import AXES, MOST_AXES
from mha_classroom.checks.running import changed_inputs
from mha_classroom.checks.task import Case
from mha_classroom.checks.time_limit import own_time

__all__ = ["say_as_if"]

SECONDS = 0.12  # for trying changes


def say_as_if(task, cases, outcomes, failing):
    """A sentence that names a change of an input which makes all results right, "" if none does.

    Tried are changes that stand for mistakes: an input not used, or used the wrong way round.
    """
    if task.secret:
        return ""
    order = [failing, *(i for i in range(len(cases)) if i != failing)]
    shown = {name: X for name, X in cases[failing].inputs.items() if name not in task.hidden}
    until = own_time() + SECONDS
    changes = _exchanges(shown) if task.quantities else _changes(shown)
    for words, change in changes:
        for i in order:
            if own_time() > until:
                return ""
            if not _gives(task, cases[i], outcomes[i], change, i == failing):
                break
        else:
            return f"What you return would be right if {words}."
    return ""


def _gives(task, case, outcome, change, has_to_change):
    """Whether a right answer gives this outcome on the changed inputs of a case."""
    if outcome.error is not None:
        return False
    inputs = case.inputs
    with contextlib.suppress(Exception):  # a change that these inputs do not allow
        inputs = change(inputs)
    if has_to_change and not changed_inputs(inputs, case.inputs):
        return False
    made = observe_known(task, task.reference, Case(case.name, inputs))
    both = made.value, outcome.value
    if all(isinstance(value, dict) for value in both) and both[0].keys() != both[1].keys():
        return False
    return same(task, made, outcome)


def _changes(inputs):
    """Yield what is said of a change, and a function that makes it of a case's inputs."""
    for name, X in inputs.items():
        for words, change in _of_one(X):
            yield words.format(f"`{name}`"), _changed(name, change)
    yield from _exchanges(inputs)


def _exchanges(inputs):
    """The changes in which one input takes the place of another."""
    for one, other in itertools.combinations(inputs, 2):
        if _alike(inputs[one], inputs[other]):
            yield f"`{one}` and `{other}` were exchanged", _replaced({one: other, other: one})
            yield f"`{one}` were `{other}`", _replaced({one: other})
            yield f"`{other}` were `{one}`", _replaced({other: one})


def _changed(name, change):
    return lambda inputs: inputs | {name: change(inputs[name])}


def _replaced(names):
    return lambda inputs: inputs | {name: inputs[other] for name, other in names.items()}


def _alike(one, other):
    if torch.is_tensor(one) and torch.is_tensor(other):
        return one.dim() == other.dim() and one.dtype == other.dtype
    return type(one) is type(other) and isinstance(one, (int, float, str))


def _of_one(X):
    """The changes of one input, by its type."""
    if X is not None:
        yield "{} were None", lambda value: None
    if isinstance(X, bool):
        yield "{} were " + str(not X), lambda value: not X
        yield "{} were the opposite", lambda value: not value
    elif isinstance(X, int):
        yield "{} were 1 less", lambda n: n - 1
        yield "{} were 1 more", lambda n: n + 1
        yield "{} were half of it", lambda n: n // 2
        yield "{} were twice as much", lambda n: 2 * n
        yield "{} were always 1", lambda n: 1
        yield "{} were always 0", lambda n: 0
    elif isinstance(X, float):
        yield "{} were 0", lambda x: 0.0
        yield "{} were 1", lambda x: 1.0
        yield "{} had the other sign", lambda x: -x
        yield "{} were subtracted from 1", lambda x: 1 - x
    elif isinstance(X, (list, tuple)):
        yield "{} were sorted", lambda items: type(items)(sorted(items))
        yield "{} were in reverse order", lambda items: items[::-1]
        yield "{} had no first entry", lambda items: items[1:]
        yield "{} had no last entry", lambda items: items[:-1]
        yield "only the first of {} counted", lambda items: items[:1]
        yield "only the last of {} counted", lambda items: items[-1:]
        yield "{} were empty", lambda items: items[:0]
        yield "{} held everything only once", lambda items: type(items)(dict.fromkeys(items))
    elif torch.is_tensor(X):
        yield from _of_tensor(X)


def _of_tensor(X):
    if X.dtype == torch.bool:
        yield "{} were the opposite", torch.logical_not
        yield "{} were all True", torch.ones_like
        yield "{} were all False", torch.zeros_like
    else:
        yield "{} were all 0", torch.zeros_like
        if ((X == 0) | (X == 1)).all():
            yield "the 0s and 1s of {} were exchanged", lambda X: 1 - X
        yield "{} had the other sign", torch.neg
        if X.is_floating_point():
            yield "the numbers of {} were rounded", torch.round
            yield "the numbers of {} were cut to whole ones", torch.trunc
            yield "{} were a softmax of itself", lambda X: X.softmax(-1)
            yield "{} were subtracted from 1", lambda X: 1 - X
        yield "{} had no signs", torch.abs
        yield "{} were squared", torch.square
        yield "what is below 0 in {} were 0", lambda X: X.clamp(min=0)
        yield "what is above 1 in {} were 1", lambda X: X.clamp(max=1)
        yield "{} were all 1", torch.ones_like
        yield "all of {} were 1 less", lambda X: X - 1
        yield "all of {} were 1 more", lambda X: X + 1
        yield "all of {} were twice as much", lambda X: X * 2
    for axis in range(min(X.dim(), MOST_AXES)):
        if X.shape[axis] > 1:
            last = axis == X.dim() - 1  # of a tensor that may have fewer axes in another case
            along = f" along {'the last axis' if last else AXES[axis]}" if X.dim() > 1 else ""
            for words, change in ALONG:
                yield words + along, _on(change, -1 if last else axis)
    for one, other in itertools.combinations(range(min(X.dim(), MOST_AXES)), 2):
        words = f"{AXES[one]} and {AXES[other]} of {{}} were exchanged"
        yield words, lambda X, one=one, other=other: X.transpose(one, other)


def _on(change, axis):
    return lambda X: change(X, axis)


def _all_like(place):
    return lambda X, axis: X.select(axis, place).unsqueeze(axis).expand_as(X).clone()


ALONG = [
    ("{} were in reverse order", lambda X, axis: X.flip(axis)),
    ("{} were sorted", lambda X, axis: X.sort(axis).values),
    ("{} were sorted, the largest first", lambda X, axis: X.sort(axis, descending=True).values),
    ("all of {} were like the first", _all_like(0)),
    ("all of {} were like the last", _all_like(-1)),
    ("all of {} were the mean", lambda X, axis: X.mean(axis, keepdim=True).expand_as(X).clone()),
    ("the mean of {} were subtracted", lambda X, axis: X - X.mean(axis, keepdim=True)),
    ("all of {} were one place further", lambda X, axis: X.roll(1, axis)),
    ("all of {} were one place before", lambda X, axis: X.roll(-1, axis)),
    ("the first of {} were not there", lambda X, axis: X.narrow(axis, 1, X.shape[axis] - 1)),
    ("the last of {} were not there", lambda X, axis: X.narrow(axis, 0, X.shape[axis] - 1)),
    ("only the first of {} were there", lambda X, axis: X.narrow(axis, 0, 1)),
    ("the numbers of {} added up", lambda X, axis: X.cumsum(axis)),
]
