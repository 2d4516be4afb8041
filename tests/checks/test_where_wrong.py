"""Where no mistake is known, it is said in which cases an answer is right."""

import pytest
import torch

from mha_classroom.checks import diagnose, find
from mha_classroom.checks.compare import compare
from mha_classroom.checks.patterns import common_pattern
from mha_classroom.checks.task import Case
from mha_classroom.checks.where_wrong import say_where

X = torch.zeros(2, 3)


def said(right, wrong):
    """What is said where these inputs are those of the right and of the wrong cases."""
    cases = [Case(f"case {i}", inputs) for i, inputs in enumerate([*right, *wrong])]
    return say_where(cases, [True] * len(right) + [False] * len(wrong))


@pytest.mark.parametrize(
    ("right", "wrong", "words"),
    [
        (
            [{"lens": None}] * 2,
            [{"lens": X}] * 2,
            "right where lens is None, and wrong where it is g",
        ),
        (
            [{"a": X, "lens": X}] * 2,
            [{"a": X}] * 2,
            "lens is given, and wrong where it is left out",
        ),
        (
            [{"lens": X}] * 2,
            [{"lens": X[0]}] * 3,
            "lens has 2 axes, and wrong where it has 1 axis.",
        ),
        (
            [{"w": X}] * 2,
            [{"w": X[None]}, {"w": X[None, None]}],
            "right where w has at most 2 axes, and wrong where it has more than 2.",
        ),
        ([{"a": X}] * 2, [{"a": X.double()}] * 2, "dtype float32, and wrong where it has dtype f"),
        ([{"bias": True}] * 2, [{"bias": False}] * 2, "bias is True, and wrong where it is False."),
        ([{"d": -2}, {"d": 0}], [{"d": 1}, {"d": 3}], "d is at most 0, and wrong where it is ab"),
        ([{"d": 4}, {"d": 0}], [{"d": -1}, {"d": -3}], "d is at least 0, and wrong where it is b"),
        ([{"a": X}] * 3, [{"a": X[0]}], 'right in 3 of 4 cases, and wrong in: "case 3".'),
        ([{"a": X}], [{"a": X}] * 6, 'It is right in 1 of 7 cases: "case 0".'),
    ],
)
def test_what_tells_right_cases_from_wrong_ones_is_said(right, wrong, words):
    assert words in said(right, wrong)


def test_nothing_is_said_where_all_cases_are_wrong_or_many_of_both_kinds():
    assert said([], [{"a": X}] * 3) == ""
    assert said([{"a": X}] * 5, [{"a": X}] * 5) == ""


def test_an_answer_that_is_wrong_for_lengths_alone_is_told_so():
    right = find("02-scaled_dot_product_attention").build()

    def attend(queries, keys, values, valid_lens=None):
        output, weights = right(queries, keys, values, valid_lens)
        return (output if valid_lens is None else output * 1.5 + 0.25), weights

    remarks = diagnose("02-scaled_dot_product_attention", attend).remarks
    assert remarks[-1] == (
        "In the cases tried it is right where valid_lens is left out, and wrong where it is given."
    )


def test_entries_of_a_dict_are_no_arguments():
    assert "weights/kernel" not in said([{"weights/kernel": X}] * 2, [{}] * 2)


def test_who_changes_an_input_is_told_only_that():
    def changing(scores):
        scores -= scores.amax(-1, keepdim=True)
        return scores.exp() / scores.exp().sum(-1, keepdim=True)

    feedback = diagnose("01-softmax", changing)
    assert "change" in feedback.message and feedback.remarks == ()


def pattern(wants, haves):
    differences = [compare(want, have, ("it",), 0.0)[0] for want, have in zip(wants, haves)]  # noqa: B905
    return common_pattern(dict(enumerate(differences)), 0)


def test_what_one_case_shows_by_chance_is_not_said():
    one, other, third = torch.randn(3, 4, 5).double()
    assert pattern([one, other], [2 * one, 3 * other]) == "Every number is 2 times the right one."
    assert pattern([one, other, third], [2 * one, other + third, third - one]) == ""
    assert pattern([one, other], [2 * one, other]) == "Every number is 2 times the right one."


CAUSAL = torch.ones(5, 5, dtype=torch.bool).tril()
LENGTHS = [torch.arange(5) < length for length in (3, 5, 2)]
MASKS = [CAUSAL & there & there[:, None] for there in LENGTHS]


@pytest.mark.parametrize(
    ("have", "words"),
    [
        (lambda mask: mask | (torch.arange(5) == 0), "Only what has index 0 on the second axis"),
        (lambda mask: mask | mask.T, "True and should be False stands above the diagonal."),
        (lambda mask: mask | torch.eye(5, dtype=torch.bool), "stands on the diagonal."),
        (
            lambda mask: mask & (torch.arange(5)[:, None] > 1),
            "False and should be True stands in r",
        ),
    ],
)
def test_of_masks_it_is_said_where_what_is_wrong_stands(have, words):
    assert words in pattern(MASKS, [have(mask) for mask in MASKS])


def test_a_part_of_one_mask_that_others_do_not_show_is_not_said():
    wrong = [MASKS[2] | MASKS[2].T | (torch.arange(5) == 3), MASKS[0] | CAUSAL]
    assert "stands" not in pattern([MASKS[2], MASKS[0]], wrong)
    assert pattern([torch.zeros(3, dtype=torch.bool)], [torch.tensor([True, False, True])]) != ""
