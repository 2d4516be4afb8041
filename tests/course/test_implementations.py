"""The collection: its right module is right, each wrong one is wrong, all are called alike."""

import pytest
import torch

from mha_classroom.tasks.reading_published_code.first_test import NEEDS_MORE, build_test
from mha_classroom.tasks.reading_published_code.my_test import build_my_test
from mha_classroom.tasks.reading_published_code.runs import NAMES, RIGHT
from mha_course.implementations import WRONG, build
from mha_course.multihead import MultiHeadAttention

torch_seed = pytest.fixture(autouse=True)(lambda: torch.manual_seed(0))


@pytest.mark.parametrize("scale", [1, 3000])
@pytest.mark.parametrize("lens", [None, [7, 3], [0, 4]])
@pytest.mark.parametrize("name", RIGHT)
def test_right_ones_equal_the_module_of_lesson_4(name, lens, scale):
    attention = RIGHT[name](12, 3).double()
    course = MultiHeadAttention(12, 12, 12, 12, 3).double()
    course.load_state_dict(attention.state_dict())
    queries = scale * torch.randn(2, 5, 12).double()
    keys, values = torch.randn(2, 2, 7, 12).double()
    lens = None if lens is None else torch.tensor(lens)
    expected = course(queries, keys, values, lens)
    assert torch.allclose(attention(queries, keys, values, lens), expected, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("name", RIGHT)
def test_right_ones_have_the_gradients_of_lesson_4(name):
    attention, course = RIGHT[name](12, 3).double(), MultiHeadAttention(12, 12, 12, 12, 3).double()
    course.load_state_dict(attention.state_dict())
    queries, keys = torch.randn(2, 5, 12).double(), torch.randn(2, 7, 12).double()
    for module in (attention, course):
        module(queries, keys, keys, torch.tensor([7, 0])).square().sum().backward()
    for one, other in zip(attention.parameters(), course.parameters(), strict=True):
        assert torch.allclose(one.grad, other.grad, atol=1e-12)


@pytest.mark.parametrize("name", NAMES)
def test_all_are_called_alike_and_have_the_right_shape(name):
    attention = (WRONG | RIGHT)[name](12, 3)
    assert list(attention.state_dict()) == [f"{W}.weight" for W in ("W_q", "W_k", "W_v", "W_o")]
    queries, keys = torch.randn(2, 5, 12), torch.randn(2, 7, 12)
    for lens in (None, torch.tensor([7, 3])):
        attention = (WRONG | RIGHT)[name](12, 3)
        assert attention(queries.clone(), keys, keys, lens).shape == (2, 5, 12)


@pytest.mark.parametrize("name", WRONG)
def test_the_reference_test_rejects_every_wrong_one(name):
    assert not build_my_test()(WRONG[name])
    assert build_test()(WRONG[name]) == (name in NEEDS_MORE and name not in CHANGED)


CHANGED = ("the caller's queries changed", "no gradient to W_q and W_k")


@pytest.mark.parametrize("name", RIGHT)
def test_the_reference_test_accepts_every_right_one(name):
    assert build_my_test()(RIGHT[name]) and build_test()(RIGHT[name])


def test_there_are_as_many_as_the_lesson_says():
    assert (len(WRONG), len(RIGHT), len(NAMES)) == (35, 8, 43)
    assert build_my_test()(build())
