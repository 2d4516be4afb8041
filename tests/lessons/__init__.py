"""Answers to the tasks of each lesson, and inputs drawn independently of the cases of the checks.

A folder for each lesson. In answers.py, RIGHT and WRONG map a task id to {label: answer}: right
answers of unusual kinds, and wrong ones that are no known mistakes. In draws.py, DRAWS maps a task
id to a function of a `random.Random` and of what to leave out:

    draw(rng, weak=None) -> inputs, as the task's `run` takes them

`weak` names a strength that the inputs are to lack: one of WEAK. A draw to which it does not apply
ignores it.
"""

import importlib
import random

import pytest
import torch

__all__ = ["WEAK", "all_answers", "all_draws", "normal", "proven", "size"]

WEAK = ("batch 1", "L = S", "no mask", "all ones", "head count = head width")


def all_answers():
    """({task id: right answers}, {task id: wrong ones}) of all lessons."""
    right, wrong = {}, {}
    for module in _modules("answers"):
        right |= module.RIGHT
        wrong |= module.WRONG
    return right, wrong


def all_draws():
    """{task id: draw} of all lessons."""
    return {name: draw for module in _modules("draws") for name, draw in module.DRAWS.items()}


def _modules(name):
    from mha_classroom.checks.registry import lessons

    folders = [stem.split("_", 1)[1] for stem in lessons()]
    return [importlib.import_module(f"lessons.{folder}.{name}") for folder in folders]


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
