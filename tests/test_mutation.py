"""No small edit of a right answer gets through a check unless it changes nothing."""

import importlib
import random
from pathlib import Path

import pytest
from mutation import mutants, solution_sources

from mha_course.checks import LESSONS, diagnose, diagnosis, find, tasks
from mha_course.checks.outcome import observe, same
from mha_course.checks.running import quiet_state
from mha_course.checks.task import Case

ROOT = Path(__file__).parents[1]
DRAWN = 200
SOURCES, SETTINGS = solution_sources(ROOT)
DRAWS = {
    task_id: draw
    for lesson in LESSONS
    for task_id, draw in importlib.import_module(f"draws.{lesson}").DRAWS.items()
}


def run_source(task_id, source):
    """What the source of an answer defines, among the other answers of its notebook."""
    names = {}
    exec(compile(SETTINGS[task_id], "solution", "exec"), names)
    exec(compile(source, "mutant", "exec"), names)
    return names[find(task_id).name]


def differs(task, one, other, seed=0):
    """The first of the independent draws on which two answers can be told apart, or None."""
    rng = random.Random(seed)
    with quiet_state():
        for number in range(DRAWN):
            case = Case(f"draw {number}", DRAWS[task.id](rng))
            outcomes = [observe(task, answer, case, watch=False) for answer in (one, other)]
            if not same(task, *outcomes):
                return case
    return None


@pytest.mark.parametrize("task_id", tasks())
def test_the_solution_equals_the_reference_on_the_independent_draws(task_id):
    task = find(task_id)
    assert task_id in DRAWS
    assert differs(task, task.reference, run_source(task_id, SOURCES[task_id])) is None


@pytest.mark.parametrize("task_id", tasks())
def test_no_mutant_survives_that_differs(task_id, record_property, monkeypatch):
    # Whether it passes is asked, not what is wrong with it, which takes most of the time.
    monkeypatch.setattr(diagnosis, "recognise", lambda *_: None)
    monkeypatch.setattr(diagnosis, "first_wrong_stage", lambda *_: None)
    task, tried, survivors = find(task_id), 0, []
    for label, source in mutants(SOURCES[task_id]):
        try:
            answer = run_source(task_id, source)
        except Exception:
            continue  # it does not even define the answer
        tried += 1
        if diagnose(task_id, answer).passed and differs(task, answer, task.reference):
            survivors.append(f"{label}\n{source}")
    record_property("mutants tried", tried)
    record_property("mutants accepted that differ", len(survivors))
    assert tried > 0
    assert not survivors, "\n\n".join(survivors)


def test_there_are_at_least_500_mutants():
    assert sum(1 for task_id in tasks() for _ in mutants(SOURCES[task_id])) >= 500
