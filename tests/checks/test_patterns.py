"""What is said of how two tensors differ is true, and is said where it helps."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from mha_classroom.checks.patterns import pattern_of


def numbers(*shape, seed=0):
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed)).double()


X = numbers(2, 3, 3)
CAUSAL = torch.ones(4, 4, dtype=torch.bool).tril()


def changed(X, place, by):
    changed = X.clone()
    changed[place] += by
    return changed


@pytest.mark.parametrize(
    ("want", "have", "words"),
    [
        (X, X.mT, "with the second axis and the third axis exchanged"),
        (X, X.flip(0), "in reverse order along the first axis"),
        (X, X.roll(1, 2), "moved along the third axis"),
        (numbers(5, 4), numbers(5, 4).flatten()[torch.arange(20) * 7 % 20].view(5, 4), "in other"),
        (X, 2 * X, "Every number is 2 times the right one."),
        (X, X / 2, "Every number is half the right one."),
        (X, X / 3, "Every number is a third of the right one."),
        (X, -X, "Every number has the wrong sign."),
        (X.abs(), changed(X.abs(), (0, 0, 0), -2 * X.abs()[0, 0, 0]), "Only signs are wrong."),
        (X, X - 0.25, "Every number is too small by 0.25."),
        (X, torch.zeros_like(X), "All of your numbers are 0."),
        (numbers(3, 5), changed(numbers(3, 5), 1, numbers(5)), "index 1 on the first axis"),
        (numbers(3, 5), changed(numbers(3, 5), slice(1, 3), 1 + numbers(5)), "only index 0 is"),
        (X, X + torch.eye(3) * X, "exactly what stands on the diagonal"),
        (X, X + torch.ones(3, 3).triu(1) * X.abs(), "exactly what stands above the diagonal"),
        (X, X + torch.ones(3, 3).tril(-1) * X.abs(), "exactly what stands below the diagonal"),
        (CAUSAL, ~CAUSAL, "Every entry is the opposite"),
        (CAUSAL, CAUSAL.T, "first axis and the second axis exchanged"),
        (CAUSAL, CAUSAL.tril(-1), "False in 4 places too many. Wrong is exactly what stands on"),
        (CAUSAL, CAUSAL | (torch.arange(4) == 3), "Yours is True in 3 places too many."),
    ],
)
def test_a_pattern_is_said(want, have, words):
    assert words in pattern_of(want, have)


@pytest.mark.parametrize(
    ("want", "have"),
    [
        (X, X + numbers(2, 3, 3, seed=1)),
        (numbers(4, 5), torch.linspace(1e-6, 2e-6, 20).view(4, 5) * numbers(4, 5)),
        (numbers(5), numbers(5) + 1e-8),
        (torch.ones(1), torch.zeros(1)),
        (torch.tensor(2.0), torch.tensor(1.0)),
        (X, X),
    ],
)
def test_where_nothing_is_seen_nothing_is_said(want, have):
    assert pattern_of(want, have) == ""


def test_nan_is_no_number_to_compare_with():
    have = X.clone()
    have[1] = torch.nan
    assert pattern_of(X, have) == ""
    assert "index 2 on the first axis" in pattern_of(
        numbers(3, 2), changed(numbers(3, 2), 2, torch.nan)
    )


@given(st.lists(st.integers(1, 4), max_size=4), st.booleans(), st.integers(0, 99))
def test_it_has_something_to_say_of_any_tensors_or_nothing(shape, boolean, seed):
    want, have = numbers(*shape, seed=seed), numbers(*shape, seed=seed + 1)
    if boolean:
        want, have = want > 0, have > 0
    assert isinstance(pattern_of(want, have), str)
