"""No small edit of a right answer gets through a check unless it changes nothing."""

import functools
import random
from pathlib import Path

import pytest
from lessons import all_draws
from mutation import mutants, solution_sources

from mha_classroom.checks import diagnose, diagnosis, find, tasks
from mha_classroom.checks.outcome import observe, same
from mha_classroom.checks.running import quiet_state
from mha_classroom.checks.task import Case

ROOT = Path(__file__).parents[2]
DRAWS_IN_CI, ALL_DRAWS = 50, 200
SOURCES, SETTINGS = solution_sources(ROOT)
DRAWS = all_draws()


def run_source(task_id, source):
    """What the source of an answer defines, among the other answers of its notebook."""
    names = {}
    exec(compile(SETTINGS[task_id], "solution", "exec"), names)
    exec(compile(source, "mutant", "exec"), names)
    return names[find(task_id).name]


@functools.cache
def drawn(task_id, number):
    """A case of the independent draws, and what the reference gives for it."""
    task, rng = find(task_id), random.Random(number)
    case = Case(f"draw {number}", DRAWS[task_id](rng))
    return case, observe(task, task.reference, case, watch=False)


def differs(task, answer, draws):
    """The first of so many draws on which an answer is not like the reference, or None."""
    with quiet_state():
        for case, right in (drawn(task.id, number) for number in range(draws)):
            if not same(task, right, observe(task, answer, case, watch=False)):
                return case
    return None


@functools.cache
def mutants_of(task_id):
    return list(mutants(SOURCES[task_id]))


@pytest.mark.parametrize("task_id", tasks())
@pytest.mark.parametrize("draws", [DRAWS_IN_CI, pytest.param(ALL_DRAWS, marks=pytest.mark.prove)])
def test_the_solution_equals_the_reference_on_the_independent_draws(task_id, draws):
    task = find(task_id)
    assert task_id in DRAWS
    assert differs(task, run_source(task_id, SOURCES[task_id]), draws) is None


@pytest.mark.parametrize("task_id", tasks())
@pytest.mark.parametrize(
    ("third", "draws"),
    [(0, DRAWS_IN_CI), *(pytest.param(n, ALL_DRAWS, marks=pytest.mark.prove) for n in range(3))],
)
def test_no_mutant_survives_that_differs(task_id, third, draws, record_property, monkeypatch):
    # Whether it passes is asked, not what is wrong with it, which takes most of the time.
    monkeypatch.setattr(diagnosis, "recognise", lambda *_: None)
    monkeypatch.setattr(diagnosis, "first_wrong_stage", lambda *_: None)
    monkeypatch.setattr(diagnosis, "blame_earlier", lambda task, answer, feedback, *_: feedback)
    task, tried, survivors = find(task_id), 0, []
    for label, source in mutants_of(task_id)[third::3]:
        try:
            answer = run_source(task_id, source)
        except Exception:
            continue  # it does not even define the answer
        tried += 1
        if diagnose(task_id, answer).passed and differs(task, answer, draws):
            survivors.append(f"{label}\n{source}")
    record_property("mutants tried", tried)
    record_property("mutants accepted that differ", len(survivors))
    assert tried > 0
    assert not survivors, "\n\n".join(survivors)


def test_there_are_at_least_500_mutants_in_each_third():
    """The first is tried by `make test`, all of them by `make prove`."""
    for third in range(3):
        assert sum(len(mutants_of(task_id)[third::3]) for task_id in tasks()) >= 500
