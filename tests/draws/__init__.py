"""Inputs for answers, drawn independently of the cases of the checks; a module for each lesson.

DRAWS maps each task id to a function of a `random.Random` and of what to leave out:

    draw(rng, weak=None) -> inputs, as the task's `run` takes them

`weak` names a strength that the inputs are to lack: one of WEAK below. A draw to which it does
not apply ignores it.
"""

import random

import torch

__all__ = ["WEAK", "normal", "size"]

WEAK = ("batch 1", "L = S", "no mask", "all ones", "head count = head width")


def size(rng: random.Random, low=2, high=7):
    """A size from low to high."""
    return rng.randint(low, high)


def normal(rng: random.Random, *shape, weak=None):
    """Normal numbers in float64; ones if that is what is left out."""
    if weak == "all ones":
        return torch.ones(*shape, dtype=torch.float64)
    generator = torch.Generator().manual_seed(rng.getrandbits(40))
    return torch.randn(*shape, generator=generator, dtype=torch.float64)
