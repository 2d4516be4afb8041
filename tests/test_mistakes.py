"""Each known mistake is recognised as itself, alone and together with another."""

import itertools
import random
from pathlib import Path

import nbformat
import pytest

from mha_course.checks import diagnose, find, tasks
from mha_course.checks.recognition import wrong_answer
from mha_course.checks.registry import lesson_of

ROOT = Path(__file__).parents[1]
MISTAKES = [
    pytest.param(task_id, mistake, id=f"{task_id}: {mistake.id}")
    for task_id in tasks()
    for mistake in find(task_id).mistakes
]


@pytest.mark.parametrize(("task_id", "mistake"), MISTAKES)
@pytest.mark.parametrize("seed", [0, 1])
def test_a_known_mistake_is_named_as_itself(task_id, mistake, seed):
    feedback = diagnose(task_id, wrong_answer(find(task_id), mistake), seed)
    assert not feedback.passed
    assert feedback.mistake == (mistake.twin or mistake.id), str(feedback)


@pytest.mark.parametrize(("task_id", "mistake"), MISTAKES)
def test_the_feedback_has_its_words_and_leads_to_a_section_of_the_lesson(task_id, mistake):
    assert mistake.did.endswith((".", "?", ")")) and mistake.why.endswith((".", "?", ")"))
    lesson = nbformat.read(ROOT / "notebooks" / f"{lesson_of(task_id)}.ipynb", as_version=4)
    text = "\n" + "\n".join(c.source for c in lesson.cells if c.cell_type == "markdown") + "\n"
    assert f"\n## {mistake.section}\n" in text, mistake.section
    ids = [other.id for other in find(task_id).mistakes]
    assert ids.count(mistake.id) == 1
    assert mistake.twin is None or mistake.twin in ids


def combinable(task_id):
    mistakes = [m for m in find(task_id).mistakes if m.parts and not m.twin]
    pairs = itertools.combinations(mistakes, 2)
    return [(one, other) for one, other in pairs if not one.parts.keys() & other.parts.keys()]


def not_named(task_id, pairs):
    """The pairs of mistakes whose answer is accepted, or rejected without a name.

    One mistake can hide another (lengths that are ignored hide a wrong mask): then the one that
    shows is named, or another pair that gives the same numbers.
    """
    answers = {f"{a.id} + {b.id}": wrong_answer(find(task_id), a, b) for a, b in pairs}
    return [label for label, answer in answers.items() if not diagnose(task_id, answer).mistake]


@pytest.mark.parametrize("task_id", tasks())
def test_two_mistakes_together_are_rejected_and_named(task_id):
    pairs = combinable(task_id)
    some = random.Random(3).sample(pairs, min(12, len(pairs)))
    assert not_named(task_id, some) == []


@pytest.mark.prove
@pytest.mark.parametrize("task_id", tasks())
def test_every_two_mistakes_together_are_rejected_and_named(task_id):
    assert not_named(task_id, combinable(task_id)) == []


@pytest.mark.parametrize("task_id", tasks())
def test_every_task_knows_enough_mistakes(task_id):
    counts = task_id.startswith("05") or task_id == "01-predictions"
    assert len(find(task_id).mistakes) >= (3 if counts else 6)
