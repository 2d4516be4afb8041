"""Where no mistake is known, it is said which other input would make the results right."""

import pytest
import torch

from mha_classroom.checks import diagnose, find
from mha_classroom.checks.diagnosis import diagnose_task
from mha_classroom.checks.task import Case, Task


def weighted(keys, weights, lens, factor, names):
    """A right answer in which every input counts, and the order of none is free."""
    places = torch.arange(1.0, keys.shape[1] + 1).double()
    total = keys @ places + weights.cos() * len(names) + len(names[0]) * torch.exp(weights)
    return total * factor + (0 if lens is None else lens.double() ** 2)


def cases(draw):
    def case(name, lens):
        inputs = {"keys": draw.normal(3, 4), "weights": draw.normal(3), "lens": lens, "factor": 3}
        return Case(name, inputs | {"names": ["one", "twelve", "seven"]})

    lens = torch.tensor([3, 1, 2])
    return [case("lengths", lens), case("none", None), case("others", 2 * lens)]


TASK = Task("02-weighted", weighted, cases)


def said(change, task=TASK):
    """What is said of an answer that is right after this change of its inputs."""

    def answer(*inputs):
        names = ("keys", "weights", "lens", "factor", "names")
        return weighted(**change(dict(zip(names, inputs, strict=True))))

    return str(diagnose_task(task, answer))


@pytest.mark.parametrize(
    ("name", "change", "words"),
    [
        ("keys", lambda X: X.flip(1), "`keys` were in reverse order along the last axis."),
        ("keys", lambda X: X.flip(0), "`keys` were in reverse order along the first axis."),
        ("keys", lambda X: X.roll(1, 1), "all of `keys` were one place further along the last axi"),
        ("keys", lambda X: X[:1].expand(3, 4), "all of `keys` were like the first along the first"),
        ("keys", lambda X: X - X.mean(1, True), "the mean of `keys` were subtracted along the las"),
        ("weights", torch.abs, "`weights` had no signs."),
        ("weights", torch.square, "`weights` were squared."),
        ("weights", lambda X: X.softmax(0), "`weights` were a softmax of itself."),
        ("weights", lambda X: X.sort().values, "`weights` were sorted."),
        ("weights", torch.zeros_like, "`weights` were all 0."),
        ("lens", lambda X: None, "`lens` were None."),
        ("lens", lambda X: None if X is None else X - 1, "all of `lens` were 1 less."),
        ("factor", lambda n: n + 1, "`factor` were 1 more."),
        ("names", lambda names: names[::-1], "`names` were in reverse order."),
        ("names", lambda names: names[:1], "only the first of `names` counted."),
    ],
)
def test_the_change_is_said_that_makes_all_results_right(name, change, words):
    text = said(lambda inputs: inputs | {name: change(inputs[name])})
    assert f"What you return would be right if {words}" in text


def test_an_input_used_in_place_of_another_is_said():
    def added(scores, bias):
        return scores * 2 + bias

    def two(draw):
        return [
            Case(f"{n} numbers", {"scores": draw.normal(n), "bias": draw.normal(n)}) for n in (3, 5)
        ]

    task = Task("02-added", added, two)
    for answer, words in (
        (lambda scores, bias: added(bias, scores), "`scores` and `bias` were exchanged."),
        (lambda scores, bias: added(scores, scores), "`bias` were `scores`."),
    ):
        assert f"would be right if {words}" in str(diagnose_task(task, answer))


def test_it_is_said_only_if_it_holds_in_every_case():
    assert "would be right" not in said(
        lambda inputs: inputs | {"factor": 4 if inputs["lens"] is None else 5}
    )


def test_nothing_is_said_of_inputs_that_the_answer_never_gets_nor_of_secret_ones():
    for field in ({"hidden": ("factor",)}, {"secret": True}):
        task = Task("02-weighted", weighted, cases, **field)
        text = said(lambda inputs: inputs | {"factor": inputs["factor"] + 1}, task)
        assert "would be right" not in text


def test_a_task_of_the_course_says_it():
    def squared(outputs, head_mask):
        return find("08-mask_heads").reference(outputs, head_mask**2)

    assert "right if `head_mask` were squared." in str(diagnose("08-mask_heads", squared))
