"""Recognise a known mistake: its results equal the learner's on every case."""

import contextlib
import itertools
import numbers

from mha_classroom.checks.compare import compare
from mha_classroom.checks.outcome import observe_known, same
from mha_classroom.checks.prepared import prepared
from mha_classroom.checks.task import AnswerError

__all__ = ["other_reading", "pairs", "recognise", "take_back", "wrong_answer"]


def recognise(task, cases, outcomes, failing, seed):
    """Return the known mistakes that explain the outcomes: one, two combined, or none: ().

    outcomes: of the learner's answer, by the index of the case. failing: the index of one that it
        fails, which is tried first, since most mistakes are told apart there.
    """
    if task.secret and isinstance(outcomes[failing].value, dict):
        return _by_name(task, cases[failing], outcomes[failing].value)
    explained = _explainer(task, cases, outcomes, failing, seed)
    for mistake in task.mistakes:  # before any pair: one reason is enough
        if not mistake.twin and explained(mistake):
            return (mistake,)
    found = (p for p in pairs(task) if explained(*p) and not take_back(task, *p, seed))
    errors = (outcomes[index].error for index in range(len(cases)))  # run no case before it counts
    if any(error is None for error in errors):
        return next(found, ())
    if not all(isinstance(outcomes[index].error, AnswerError) for index in range(len(cases))):
        return ()  # the same exception comes of many things
    found = [*found]  # what all of them have in common is sure
    return tuple(m for m in found[0] if all(m in pair for pair in found)) if found else ()


def other_reading(task, cases, outcomes, failing, seed, known):
    """Two other mistakes that together give the same numbers as those that are known; () if none.

    Only where an answer is a number: tensors seldom agree by accident.
    """
    if not task.quantities:
        return ()
    explained = _explainer(task, cases, outcomes, failing, seed)
    ids = {mistake.id for mistake in known}
    parts = {part for mistake in known for part in mistake.parts or ()}
    others = (pair for pair in pairs(task) if ids.isdisjoint(mistake.id for mistake in pair))
    # A pair of the same parts is the mistake that is known, told in two halves.
    apart = (pair for pair in others if parts != pair[0].parts.keys() | pair[1].parts.keys())
    found = (pair for pair in apart if explained(*pair) and not take_back(task, *pair, seed))
    return next(found, ())


def _explainer(task, cases, outcomes, failing, seed):
    """A function that says whether an answer with these mistakes has the outcomes."""
    order = [failing, *(i for i in range(len(cases)) if i != failing)]

    def explained(*mistakes):
        if mistakes[0].shows and len(mistakes) == 1:
            forms = getattr(mistakes[0].shows, "forms", (mistakes[0].shows,))
            if any(all(_shown(form, cases[i], outcomes[i]) for i in order) for form in forms):
                return True
        return all(same(task, _outcome(task, mistakes, i, seed), outcomes[i]) for i in order)

    return explained


def pairs(task):
    """The pairs of mistakes of a task that one answer can make."""
    known = (mistake for mistake in task.mistakes if mistake.parts and not mistake.twin)
    combinable = [mistake for mistake in known if mistake.id not in task.alone]
    for one, other in itertools.combinations(combinable, 2):
        if not one.parts.keys() & other.parts.keys():
            yield one, other


def take_back(task, one, other, seed=0):
    """Whether one mistake takes away from a number a multiple of what the other one adds to it.

    What is left of the two could then come from many other things, so they are not named.
    """
    ratios, ready = set(), prepared(task, seed)
    for index in range(len(ready.cases)):
        results = [_outcome(task, made, index, seed).value for made in ((one,), (other,))]
        results.append(_outcome(task, (one, other), index, seed).value)
        right = ready.right(index)
        if not all(isinstance(number, numbers.Real) for number in (right, *results)):
            return False
        first, second, both = (number - right for number in results)
        if first or second:
            if both != first + second or first * second >= 0:
                return False
            ratios.add(round(first / second, 9))
    return len(ratios) == 1


def wrong_answer(task, *mistakes):
    """Return an answer that makes the given mistakes of a task."""
    if len(mistakes) == 1 and mistakes[0].wrong:
        return mistakes[0].wrong
    parts = {}
    for mistake in mistakes:
        parts |= mistake.parts
    return task.build(**parts)


def _by_name(task, case, values):
    """The mistakes in a dict of named numbers: those whose numbers are all there."""
    right, found = task.run(task.reference, case.inputs), {}

    def made(mistake):
        return all(_alike(task, part, values.get(of)) for of, part in mistake.parts.items())

    for name, expected in right.items():
        if not _alike(task, expected, values.get(name)):
            known = (m for m in task.mistakes if m.parts and name in m.parts and made(m))
            found |= {m.id: m for m in [*known][:1]}
    return tuple(found.values())


def _alike(task, expected, got):
    return compare(expected, got, ("it",), task.tolerance)[0] is None


def _shown(shows, case, outcome):
    """Whether a `shows` takes this outcome on a case for the mistake's."""
    if outcome.error is not None or outcome.changed:
        return False
    with contextlib.suppress(Exception):  # a result of another type or dtype than it looks at
        return bool(shows(case.inputs, outcome.value))
    return False


def _outcome(task, made, index, seed):
    ready = prepared(task, seed)
    return ready.kept(
        ("mistakes", tuple(mistake.id for mistake in made), index),
        lambda: observe_known(task, wrong_answer(task, *made), ready.cases[index]),
    )
