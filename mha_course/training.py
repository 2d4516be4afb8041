"""The loop that trains the small models of lessons 8 to 11."""

from contextlib import contextmanager
from dataclasses import dataclass, field

import torch

__all__ = ["Curve", "train"]


@dataclass
class Curve:
    """What a training run showed.

    losses: the loss of each step. steps and measured: after which steps something was measured,
    0 is before the first, and what came out. stopped: whether the reader interrupted the run.
    """

    losses: list[float] = field(default_factory=list)
    steps: list[int] = field(default_factory=list)
    measured: list[float] = field(default_factory=list)
    stopped: bool = False


def train(
    model,
    draw,
    loss_of,
    steps,
    rate=0.003,
    seed=0,
    measure=None,
    every=50,
    bar=True,
    decay=False,
):
    """Train the model with Adam, and return its learning curve.

    In each step `draw(generator)` returns a tuple, a batch, and `loss_of(model, *batch)` its
    loss. `measure(model)` returns a number, the accuracy on held-out examples for instance: before
    the first step, after each `every` steps and after the last. `bar` shows how far it is. With
    `decay` the rate falls from step to step, in a straight line to 0 after the last.
    Properties: batches and dropout follow from the seed, and torch's random generator is left as
        it was. One thread is used, so that the numbers do not depend on how many there are, and
        with tensors this small a second one mostly waits. An interrupt (the stop button) ends the
        run: the model keeps what it has learned, and the curve what was measured.
    Raises: ValueError quoting steps or `every` below 1; FloatingPointError naming the step whose
        loss is not a finite number.
    Source: Kingma and Ba 2015 (Adam). Lesson: notebooks/10_cross_attention.ipynb.
    """
    if steps < 1 or every < 1:
        raise ValueError(f"steps and every must be 1 or more, got {steps=}, {every=}")
    optimiser = torch.optim.Adam(model.parameters(), rate)
    batches = torch.Generator().manual_seed(seed)
    curve = Curve()
    with _one_thread(), torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        try:
            _measure(model, measure, 0, curve)
            for step in _counted(steps, bar):
                model.train()
                loss = loss_of(model, *draw(batches))
                if not torch.isfinite(loss):
                    raise FloatingPointError(f"the loss of step {step} is {loss.item()}")
                for group in optimiser.param_groups:
                    group["lr"] = rate * (1 - (step - 1) / steps) if decay else rate
                optimiser.zero_grad()
                loss.backward()
                optimiser.step()
                curve.losses.append(loss.item())
                if step % every == 0 or step == steps:
                    _measure(model, measure, step, curve)
        except KeyboardInterrupt:
            curve.stopped = True
            print(f"Stopped after {len(curve.losses)} of {steps} steps. What is learned is kept.")
        finally:
            model.eval()
    return curve


def _measure(model, measure, step, curve):
    if measure is not None:
        model.eval()
        with torch.no_grad():
            curve.measured.append(float(measure(model)))
        curve.steps.append(step)


def _counted(steps, bar):
    """1, 2, …, steps, with a progress bar."""
    if not bar:
        return range(1, steps + 1)
    from tqdm.auto import tqdm

    # A page that does not run shows what stands before the bar.
    shape = "{total_fmt} steps of training {bar}"
    return tqdm(range(1, steps + 1), bar_format=shape, mininterval=0.5)


@contextmanager
def _one_thread():
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)
