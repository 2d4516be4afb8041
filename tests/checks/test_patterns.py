"""What is said of how two tensors differ is true, and is said where it helps."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from mha_classroom.checks.compare import Difference, compare
from mha_classroom.checks.patterns import MOVED, common_pattern, pattern_of


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
        (X[0], X[0].gather(0, torch.tensor([[0, 1, 2], [2, 0, 0], [1, 2, 1]])), "along the first"),
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
        (X, X[:, :, None], "All numbers are right. An axis of size 1 is too many."),
        (X[:1], X[0], "All numbers are right. An axis of size 1 is missing."),
        (X[:1, :, :1], X[0, :, 0], "2 axes of size 1 are missing."),
        (X, X.flatten(1), "All numbers are there in their order, and the shape is another."),
        (X, X.movedim(0, 2), "with the first axis and the second axis and the third axis exch"),
        (numbers(2, 5), numbers(2, 5).T, "with the first axis and the second axis exchanged"),
        (X, X.sum(1), "Yours is the sum of the right numbers along the second axis."),
        (X, X.mean(0, keepdim=True), "the mean of the right numbers along the first axis."),
        (X, X.amax(2), "the largest of the right numbers along the third axis."),
        (X, X[:, :2], "What is there is right. It ends too early along the second axis."),
        (X, X[1:], "What is there is right. It begins too late along the first axis."),
        (X[0], X[:1].expand(4, 3, 3), "Yours is the right result 4 times, along the first axis."),
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
        (X, numbers(2, 3, 4)),
        (X, X[0, 0, 0]),
        (X, X.to("meta")),
        (X, X[0].to_sparse()),
        (X, X.to(torch.complex128)[0]),
        (torch.eye(2).double(), torch.eye(2).double().flip(0)),  # any order of two is some order
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


def seen_in_all(*pairs):
    return common_pattern({i: Difference("value", "", tensors=p) for i, p in enumerate(pairs)}, 0)


def with_wrong(n, *places):
    X = numbers(n, 3, seed=n)
    have = X.clone()
    for place in places:
        have[place] += numbers(1, seed=sum(place))[0]
    return X, have


def test_it_is_said_which_end_is_right_in_every_case():
    first = (
        with_wrong(3, (1, 0), (2, 1)),
        with_wrong(4, (1, 1), (1, 2), (3, 0)),
        with_wrong(5, (4, 2)),
    )
    assert (
        seen_in_all(*first)
        == "Along the first axis the first is right in every case; of the others some are not."
    )
    last = (
        with_wrong(4, (0, 0), (1, 1)),
        with_wrong(5, (0, 1), (1, 2), (2, 0)),
        with_wrong(3, (1, 2)),
    )
    assert "Along the first axis the last is right in every case" in seen_in_all(*last)
    assert "right in every case" not in seen_in_all(*first, *last)
    assert "right in every case" not in seen_in_all(first[0])


def test_numbers_that_are_all_there_in_every_case_are_told_where_each_is_ordered_otherwise():
    A, B, C = numbers(5, 1, seed=5), numbers(3, 2, seed=3), numbers(4, 1, seed=4)
    reverse, shuffled = (A, A.flip(0)), (B, B.flatten()[[3, 2, 5, 0, 1, 4]].view_as(B))
    moved = (C, C.roll(1, 0))
    assert "in reverse order" in seen_in_all(reverse)
    assert seen_in_all(reverse, shuffled, moved) == MOVED
    assert seen_in_all(reverse, shuffled, moved, (C, C + 1)) != MOVED


def test_a_shape_that_is_always_the_same_is_told():
    fixed = [(numbers(n, 3, seed=n), numbers(4, 4)) for n in (2, 3, 5)]
    assert "Wherever it is wrong, it has this shape." in seen_in_all(*fixed)
    assert "this shape" not in seen_in_all(*fixed[:1] * 3)  # where one shape is right for all
    moving = [(numbers(n, 3, seed=n), numbers(n, 4)) for n in (2, 3, 5)]
    assert "this shape" not in seen_in_all(*moving)


def test_of_a_case_without_a_result_nothing_is_said():
    fixed = [(numbers(n, 3, seed=n), numbers(4, 4)) for n in (2, 3)]
    first = [with_wrong(3, (1, 0), (2, 1)), with_wrong(4, (1, 1), (3, 0))]
    for pairs, words in (
        (fixed, "All that could be compared have this shape."),
        (first, "the first is right in all that could be compared; of the others"),
    ):
        told = [Difference("value", "", tensors=pair) for pair in pairs]
        assert words in common_pattern(dict(enumerate([*told, ""])), 0)


@pytest.mark.parametrize(
    ("want", "have", "shown"),
    [
        (X[0, 0], X[0, 0, :2], True),
        (X[0], X[0, 0], True),
        (X[0, 0], X[0, 0, :0], True),
        (X[0], X, False),
        (numbers(40), numbers(3), False),
        (X[0], X[0].to_sparse()[0], False),
    ],
)
def test_of_another_shape_few_numbers_are_shown(want, have, shown):
    difference, _ = compare(want, have, ("the result",), 1e-9)
    assert bool(difference.yours and difference.expected) == shown


SHAPES = st.lists(st.integers(0, 4), max_size=5)


@given(SHAPES, st.none() | SHAPES, st.booleans(), st.integers(0, 99))
def test_it_has_something_to_say_of_any_tensors_or_nothing(shape, other, boolean, seed):
    want = numbers(*shape, seed=seed)
    have = numbers(*(shape if other is None else other), seed=seed + 1)
    if boolean:
        want, have = want > 0, have > 0
    assert isinstance(pattern_of(want, have), str)
