"""Answers that find out what they are tried on, instead of trying it."""

import pytest

from mha_classroom.checks.diagnosis import diagnose_task
from mha_classroom.checks.registry import find
from mha_classroom.tasks.reading_published_code.runs import SUSPECTS
from mha_course.implementations import WRONG


def by_class(Attention):
    return not any(issubclass(Attention, wrong) for wrong in WRONG.values())


@pytest.mark.parametrize("task", ["11-first_test", "11-my_test"])
def test_no_class_says_of_itself_that_it_is_wrong(task):
    assert not diagnose_task(find(task), by_class).passed


def test_no_suspect_says_its_name():
    names = set()

    def by_name(attention, *inputs):
        names.add(getattr(attention, "__name__", ""))
        return set()

    diagnose_task(find("11-broken_promises"), by_name)
    assert names and not names & {suspect.__name__ for suspect in SUSPECTS}
