"""Of several results it is said which are right, and which other tensor a wrong one is."""

import pytest
import torch

from mha_classroom.checks.compare import Difference
from mha_classroom.checks.diagnosis import diagnose_task
from mha_classroom.checks.task import Case, Task
from mha_classroom.checks.which_part import taken_from


def split(X, scale):
    return X * scale, X + 1, X.cos()


def cases(draw):
    zeros = torch.zeros(2, 3, dtype=torch.float64)
    inputs = [(draw.normal(2, 3), 2.0), (draw.normal(2, 3), 3.0), (zeros, 1.0)]
    return [Case(f"case {n}", {"X": X, "scale": s}) for n, (X, s) in enumerate(inputs)]


NAMES = ("the queries", "the keys", "the table of values")
TASK = Task("02-split", split, cases, returns=NAMES)


def said(answer, task=TASK):
    return str(diagnose_task(task, answer))


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (lambda X, s: (X * s, X + 2, X.cos()), ["The queries and the table of values are right."]),
        (lambda X, s: (X * s + 1, X + 1, X), ["The keys are right."]),
        (lambda X, s: (X, X + 2, X.cos()), ["Your queries are `X` as it was given."]),
        (
            lambda X, s: (X + 1, X * s, X.cos()),
            [
                "The table of values is right.",
                "Your queries are what the keys should be.",
                "Your keys are what the queries should be.",
            ],
        ),
        (lambda X, s: (X * s, X + 1, X + 1), ["Your table of values is what the keys should be."]),
        (lambda X, s: (X[0], X + 1, X.cos()), ["The keys and the table of values are right."]),
    ],
)
def test_it_is_said_which_parts_are_right_and_what_the_others_are(answer, words):
    feedback = said(answer)
    assert [word for word in words if word not in feedback] == []


def test_what_holds_in_one_case_only_is_not_said():
    def sometimes(X, scale):
        return (X if scale == 2 else X * scale + 1), X + 1 + (scale == 3), X.cos() + 1

    assert "as it was given" not in said(sometimes) and "right." not in said(sometimes)


def test_a_result_that_is_not_there_or_not_whole_says_nothing():
    def raises(X, scale):
        return X * scale, X + 1, X.unknown

    assert "The queries" not in said(lambda X, scale: (X * scale, X + 1)) + said(raises)


def test_nothing_is_said_where_the_result_is_secret():
    task = Task("02-split", split, cases, returns=NAMES, secret=True)
    assert "right." not in said(lambda X, scale: (X, X + 1, X.cos()), task)


def order(X):
    return X[torch.arange(len(X)).roll(1)]


def taken(answer, numbers=(4.0, 7.0, 1.0, 9.0, 3.0), **kwargs):
    def of_lengths(draw):
        X = torch.tensor(numbers, dtype=torch.float64)
        return [Case(f"{len(X) - n} numbers", {"X": X[n:]}) for n in range(2)]

    return said(answer, Task("02-order", order, of_lengths, **kwargs))


def swapped(X):
    return X[[*range(1, len(X) - 2), -1, 0, -2]]


def test_of_numbers_of_an_input_it_is_said_which_one_stands_where_another_should():
    assert "At [0] you have the number of X[1]; asked for is X[4]." in taken(swapped)


def test_it_is_not_said_where_a_number_occurs_twice_or_the_result_is_another_or_secret():
    assert "asked for" not in taken(swapped, (4.0, 7.0, 1.0, 7.0, 3.0))
    assert "asked for" not in taken(lambda X: swapped(X) + 0.5)
    assert "asked for" not in taken(lambda X: swapped(X)[1:])
    assert "asked for" not in taken(swapped, secret=True)
    assert "asked for" not in taken(swapped, hidden=("X",))


def test_it_is_said_of_transposed_tensors_too():
    """Of these torch.isin raises."""

    def transposed(draw):
        return [Case(f"{n} rows", {"X": draw.normal(n, 3)}) for n in (2, 4)]

    task = Task("02-order", lambda X: X[[1, 0, *range(2, len(X))]].mT, transposed)
    feedback = said(lambda X: X.flatten()[torch.arange(X.numel()).roll(2)].view_as(X).mT, task)
    assert "At [0, 0] you have the number of X[1, 1]; asked for is X[1, 0]." in feedback


def test_it_is_said_which_input_a_wrong_tensor_is():
    def of_names(draw):
        named = [{name: draw.normal(3, 3) for name in ("a/b", "a/c")} for _ in range(2)]
        return [Case(f"case {n}", inputs) for n, inputs in enumerate(named)]

    def run(answer, inputs):
        return answer(*inputs.values())

    task = Task("02-names", lambda b, c: (b - 2 * c, c), of_names, run=run)
    assert "What you have there is `a/b`; asked for is `a/c`." in said(
        lambda b, c: (b - 2 * c, b), task
    )
    turned = said(lambda b, c: (b - 2 * c, b.mT), task)
    assert "What you have there is `a/b`, transposed; asked for is `a/c`." in turned
    assert "have there" not in said(lambda b, c: (b - 2 * c, c + 1), task)


@pytest.mark.parametrize(
    "odd",
    [
        lambda X: X.long(),
        lambda X: X > 0,
        lambda X: X.to(torch.complex64),
        lambda X: X.to_sparse(),
        lambda X: X.clone().requires_grad_(),
        lambda X: X * torch.nan,
        lambda X: X.to("meta"),
        lambda X: X.half(),
        lambda X: X.sum(),
        lambda X: X[:, :0],
        lambda X: X,
    ],
)
def test_of_an_odd_tensor_nothing_is_said(odd):
    X = torch.arange(6.0).view(2, 3) + 0.3
    for tensors in ((X + 0.5, odd(X)), (X.mT.contiguous().mT + 0.5, odd(X))):
        difference = Difference("value", "", tensors=tensors)
        assert taken_from(TASK, difference, {"X": X, "Y": X.mT, "n": 3, "Z": X[:0]}) == ""


def task_of(output, other):
    """A task of two results, of which the powers of X are a step."""
    cases = [Case(f"case {n}", {"X": torch.randn(2, 3, dtype=torch.float64)}) for n in range(3)]
    return Task(
        "02-powers",
        lambda X: (output(X), other(X)),
        lambda draw: cases,
        returns=("the output", "the other"),
        stages=lambda inputs: {"the powers": inputs["X"].exp()},
    )


def test_where_another_part_should_be_the_same_no_step_is_told():
    """The step may be that of the other one, which is right."""

    def plus_1(X):
        return X.exp() + 1

    def thrice(X):
        return 3 * X.exp()

    told = "Right so far, with a name in your code or without: the powers."
    assert told in said(lambda X: (X.exp() + 5, thrice(X)), task_of(plus_1, thrice))
    assert told not in said(lambda X: (X + 5, plus_1(X)), task_of(plus_1, plus_1))
