"""The loop: what is seeded stays, what is measured is measured, an interrupt loses nothing."""

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from mha_course.training import train


def draw(generator):
    X = torch.randn(16, 3, generator=generator)
    return X, X.sum(dim=1, keepdim=True)


def loss_of(model, X, y):
    return F.mse_loss(model(X), y)


def model(dropout=0.0):
    torch.manual_seed(5)
    return nn.Sequential(nn.Dropout(dropout), nn.Linear(3, 1))


def run(made=None, **options):
    made = model() if made is None else made
    return made, train(made, draw, loss_of, bar=False, **({"steps": 7} | options))


def test_a_line_is_learned():
    made, curve = run(steps=300, rate=0.03)
    assert curve.losses[-1] < 1e-4 < 0.1 < curve.losses[0]
    assert torch.allclose(made[1].weight, torch.ones(1, 3), atol=0.01)


@pytest.mark.parametrize("threads", [1, 2])
def test_threads_and_what_was_drawn_before_change_nothing(threads):
    _, first = run(model(dropout=0.5))
    before = torch.get_num_threads()
    try:
        torch.set_num_threads(threads)
        torch.rand(11)
        made, again = run(model(dropout=0.5))
        assert torch.get_num_threads() == threads
    finally:
        torch.set_num_threads(before)
    assert again.losses == first.losses and not made.training


def test_with_decay_the_rate_falls_in_a_straight_line():
    """Adam's steps are as long as the rate while the gradient stays the same."""
    line = nn.Linear(1, 1, bias=False)
    values = [line.weight.item()]
    train(
        line,
        lambda generator: (torch.ones(1, 1),),
        lambda model, X: model(X).sum(),
        steps=4,
        rate=0.1,
        measure=lambda model: values.append(model.weight.item()) or 0.0,
        every=1,
        bar=False,
        decay=True,
    )
    moved = [one - other for one, other in zip(values[1:], values[2:], strict=False)]
    assert moved == pytest.approx([0.1, 0.075, 0.05, 0.025], rel=1e-4)


def test_another_seed_draws_other_batches():
    assert run()[1].losses[0] != run(seed=1)[1].losses[0]


def test_the_random_generator_is_left_as_it_was():
    made = model(dropout=0.5)
    state = torch.get_rng_state()
    run(made)
    assert torch.equal(torch.get_rng_state(), state)


def test_what_is_measured_and_when():
    modes = []

    def measure(made):
        modes.append((made.training, torch.is_grad_enabled()))
        return len(modes)

    made, curve = run(measure=measure, every=3)
    assert curve.steps == [0, 3, 6, 7] and curve.measured == [1, 2, 3, 4]
    assert modes == [(False, False)] * 4
    assert len(curve.losses) == 7 and not curve.stopped


def test_an_interrupt_keeps_what_was_learned(capsys):
    drawn = []

    def interrupted(generator):
        if len(drawn) == 4:
            raise KeyboardInterrupt
        drawn.append(1)
        return draw(generator)

    made = model()
    curve = train(made, interrupted, loss_of, 9, measure=lambda _: 0, every=2, bar=False)
    assert curve.stopped and curve.steps == [0, 2, 4] and len(curve.losses) == 4
    assert capsys.readouterr().out == "Stopped after 4 of 9 steps. What is learned is kept.\n"
    assert not made.training
    assert torch.equal(made[1].weight, run(steps=4)[0][1].weight)


def test_a_bar_is_shown(capsys):
    train(model(), draw, loss_of, 3)
    printed = capsys.readouterr()  # tqdm writes elsewhere where IPython has been started
    assert "steps of training" in printed.err + printed.out


@pytest.mark.parametrize("wrong", [{"steps": 0}, {"every": 0}])
def test_counts_below_one_are_quoted(wrong):
    with pytest.raises(ValueError, match="got steps=.*every="):
        run(**wrong)


def test_a_loss_that_is_no_number_is_named():
    def broken(made, X, y):
        return loss_of(made, X, y) / 0

    with pytest.raises(FloatingPointError, match="the loss of step 1 is inf"):
        train(model(), draw, broken, 3, bar=False)
