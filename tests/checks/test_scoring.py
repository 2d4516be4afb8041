"""How a learner's test of attention is scored: what it lets through and what it rejects."""

import pytest
import torch

from mha_classroom.checks import diagnose, find
from mha_classroom.checks.task import AnswerError, Draw
from mha_classroom.tasks.reading_published_code.runs import NAMES, RIGHT
from mha_course.implementations import WRONG

TASK = find("11-my_test")
(CASE,) = TASK.cases(Draw(0))


def scored(verdict_of):
    """What is said of a test that gives each implementation this verdict, by its name."""
    numbers = CASE.inputs["implementations"].tolist()
    said = {number: verdict_of(NAMES[number]) for number in numbers}
    return TASK.examine(CASE.inputs, said)


def complaint(verdict_of):
    with pytest.raises(AnswerError) as raised:
        scored(verdict_of)
    return str(raised.value)


@pytest.mark.parametrize("yes", [True, "nothing"])
@pytest.mark.parametrize("no", [False, "raises RuntimeError"])
def test_all_right_is_all_right(yes, no):
    said = scored(lambda name: yes if name in RIGHT else no)
    assert said == "rejects all 35 wrong implementations and accepts all 8 right ones"


@pytest.mark.parametrize("name", WRONG)
def test_each_survivor_costs_one_and_is_named(name):
    text = complaint(lambda other: other in RIGHT or other == name)
    assert text.startswith(
        "Rejects 34 of 35 wrong implementations, accepts 8 of 8 right ones. Wrong ones that get "
        f"through: {name}."
    )


@pytest.mark.parametrize("name", RIGHT)
def test_each_right_one_that_is_rejected_is_named_with_its_exception(name):
    text = complaint(lambda other: "raises KeyError" if other == name else other in RIGHT)
    assert text == (
        "Rejects 35 of 35 wrong implementations, accepts 7 of 8 right ones. Right ones that are "
        f"rejected: {name} (raises KeyError)."
    )


def test_a_weaker_test_gets_its_score():
    def without_lengths(Attention):
        attention, trusted = Attention(12, 3).double(), RIGHT["einsum"](12, 3).double()
        trusted.load_state_dict(attention.state_dict())
        queries, keys, values = torch.randn(3, 2, 5, 12).double()
        return torch.allclose(attention(queries, keys, values), trusted(queries, keys, values))

    feedback = diagnose("11-my_test", without_lengths)
    assert not feedback.passed
    assert "Rejects 22 of 35 wrong implementations, accepts 8 of 8 right ones" in str(feedback)
    survivors = str(feedback).split("get through: ")[1].split(".")[0].split("; ")
    assert len(survivors) == 13 and "mask ignored" in survivors and "not scaled" not in survivors


def test_none_of_the_implementations_tells_what_it_is():
    named = {Attention.__qualname__ for Attention in (WRONG | RIGHT).values()}
    assert named == {"build.<locals>.Attention"}
    numbers = CASE.inputs["implementations"].tolist()
    assert sorted(numbers) == list(range(43)) != numbers


def test_an_error_of_the_test_itself_is_shown_as_such():
    feedback = diagnose("11-my_test", lambda Attention: Attention(12, 3).no_such_thing)
    assert feedback.kind == "raises" and "no_such_thing" in feedback.message


def test_a_test_that_asserts_and_returns_nothing_is_a_test():
    def asserts(Attention):
        assert find("11-my_test").reference(Attention)

    assert diagnose("11-my_test", asserts).passed
