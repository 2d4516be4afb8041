"""Answers to the tasks of each lesson, and inputs drawn independently of the cases of the checks.

A folder for each lesson. In answers.py, RIGHT and WRONG map a task id to {label: answer}: right
answers of unusual kinds, and wrong ones that are no known mistakes. In draws.py, DRAWS maps a task
id to a function of a `random.Random` and of what to leave out:

    draw(rng, weak=None) -> inputs, as the task's `run` takes them

`weak` names a strength that the inputs are to lack: one of WEAK. A draw to which it does not apply
ignores it.
"""

import functools
import importlib
import random
from pathlib import Path

import pytest
import torch

from mha_classroom.checks import find, lessons, tasks
from mha_classroom.checks.task import Draw

__all__ = ["WEAK", "all_answers", "all_draws", "normal", "proven", "size"]

WEAK = ("batch 1", "L = S", "no mask", "all ones", "head count = head width")


def all_answers():
    """({task id: right answers}, {task id: wrong ones}) of all tasks.

    A task that has none here is tried on its reference; its known mistakes and the small edits of
    its solution are tried on by other tests.
    """
    right = {task_id: {"the reference": find(task_id).reference} for task_id in tasks()}
    wrong = {task_id: {} for task_id in tasks()}
    for module in _modules("answers"):
        right |= module.RIGHT
        wrong |= module.WRONG
    return right, wrong


def all_draws():
    """{task id: draw} of all tasks; of one that has none here, its own cases from other seeds."""
    drawn = {task_id: functools.partial(_one_of_its_cases, task_id) for task_id in tasks()}
    for module in _modules("draws"):
        drawn |= module.DRAWS
    return drawn


def _one_of_its_cases(task_id, rng, weak=None):
    return rng.choice(find(task_id).cases(Draw(rng.getrandbits(31)))).inputs


def _modules(name):
    folders = [stem.split("_", 1)[1] for stem in lessons()]
    here = [folder for folder in folders if Path(__file__).with_name(folder).is_dir()]
    return [importlib.import_module(f"lessons.{folder}.{name}") for folder in here]


def proven(*seeds):
    """Seeds of cases that `make prove` tries besides those of `make test`."""
    return [pytest.param(seed, marks=pytest.mark.prove) for seed in seeds]


def size(rng: random.Random, low=2, high=7):
    """A size from low to high."""
    return rng.randint(low, high)


def normal(rng: random.Random, *shape, weak=None):
    """Normal numbers in float64; ones if that is what is left out."""
    if weak == "all ones":
        return torch.ones(*shape, dtype=torch.float64)
    generator = torch.Generator().manual_seed(rng.getrandbits(40))
    return torch.randn(*shape, generator=generator, dtype=torch.float64)
