"""Recognise a known mistake: its results equal the learner's on every case."""

import functools
import itertools

from mha_course.checks.compare import compare
from mha_course.checks.outcome import observe_known, same
from mha_course.checks.registry import find, tasks
from mha_course.checks.task import Draw

__all__ = ["recognise", "wrong_answer"]


def recognise(task, cases, outcomes, failing, seed):
    """Return the known mistakes that explain the outcomes: one, two combined, or none: ().

    outcomes: of the learner's answer, one for each case. failing: the index of a case that it
        fails, which is tried first, since most mistakes are told apart there.
    """
    if task.secret and isinstance(outcomes[failing].value, dict):
        return _by_name(task, cases[failing], outcomes[failing].value)
    order = [failing, *(i for i in range(len(cases)) if i != failing)]
    for mistakes in itertools.chain(_singles(task), _pairs(task)):
        if all(same(task, _outcome(task, mistakes, cases, i, seed), outcomes[i]) for i in order):
            return mistakes
    return ()


def wrong_answer(task, *mistakes):
    """Return an answer that makes the given mistakes of a task."""
    if len(mistakes) == 1 and mistakes[0].wrong:
        return mistakes[0].wrong
    parts = {}
    for mistake in mistakes:
        parts |= mistake.parts
    return task.build(**parts)


def _by_name(task, case, values):
    """The mistakes in a dict of named numbers: each number is looked at for itself."""
    right, found = task.run(task.reference, case.inputs), []
    for name, expected in right.items():
        if not _alike(task, expected, values.get(name)):
            known = (m for m in task.mistakes if m.parts and set(m.parts) == {name})
            found += [m for m in known if _alike(task, m.parts[name], values.get(name))][:1]
    return tuple(found)


def _alike(task, expected, got):
    return compare(expected, got, ("it",), task.tolerance)[0] is None


def _singles(task):
    return ((mistake,) for mistake in task.mistakes if not mistake.twin)


def _pairs(task):
    combinable = [mistake for mistake in task.mistakes if mistake.parts and not mistake.twin]
    for one, other in itertools.combinations(combinable, 2):
        if not one.parts.keys() & other.parts.keys():
            yield one, other


def _outcome(task, mistakes, cases, index, seed):
    if task.id not in tasks() or find(task.id) is not task:
        return observe_known(task, wrong_answer(task, *mistakes), cases[index])
    return _kept(task.id, tuple(mistake.id for mistake in mistakes), index, seed)


@functools.lru_cache(maxsize=4096)
def _kept(task_id, mistake_ids, index, seed):
    task = find(task_id)
    mistakes = [mistake for mistake in task.mistakes if mistake.id in mistake_ids]
    return observe_known(task, wrong_answer(task, *mistakes), _cases(task_id, seed)[index])


@functools.lru_cache(maxsize=64)
def _cases(task_id, seed):
    return find(task_id).cases(Draw(seed))
