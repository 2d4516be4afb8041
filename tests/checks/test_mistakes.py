"""Each known mistake is recognised as itself, alone and together with another."""

import functools
import random
import re
from dataclasses import replace
from pathlib import Path

import nbformat
import pytest
import torch
from lessons import proven

from mha_classroom.checks import diagnose, find, tasks
from mha_classroom.checks.diagnosis import diagnose_task
from mha_classroom.checks.outcome import observe
from mha_classroom.checks.recognition import pairs, recognise, take_back, wrong_answer
from mha_classroom.checks.registry import lesson_of, register
from mha_classroom.checks.task import Case, Mistake, Task
from mha_course.attention import dot_product_weights

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("task_id", tasks())
@pytest.mark.parametrize("seed", [0, *proven(1, 2)])
def test_each_known_mistake_is_named_as_itself(task_id, seed):
    task, taken_for = find(task_id), {}
    for mistake in task.mistakes:
        feedback = diagnose(task_id, wrong_answer(task, mistake), seed)
        if feedback.passed or feedback.mistake != (mistake.twin or mistake.id):
            taken_for[mistake.id] = str(feedback)
    assert task.mistakes and taken_for == {}


# Seeds with which chance once decided what was named: a weight below 1e-9, exp of about -740.
BY_CHANCE = [
    ("04-MultiHeadAttention", "dropout-before-the-softmax", 20443),
    ("09-grouped_attention", "exp-too-large", 40037),
    ("09-causal_tiles", "one-largest-for-all-queries", 81283),
]


@pytest.mark.parametrize(("task_id", "mistake_id", "seed"), BY_CHANCE)
def test_it_is_named_whatever_is_drawn(task_id, mistake_id, seed):
    (mistake,) = (m for m in find(task_id).mistakes if m.id == mistake_id)
    assert diagnose(task_id, wrong_answer(find(task_id), mistake), seed).mistake == mistake_id


# A mistake as one that nobody knows, and a known one that it was once taken for.
TAKEN_FOR = [
    ("01-attend", "naive-exp", "scores-cut-off"),
    ("02-causal_mask", "mask-of-floats", "cut-from-a-table"),
    ("02-without_key", "nearly-alone-for-alone", "divisor-kept-from-getting-small"),
    ("07-entropy", "added-more-or-less", "rounded"),
    ("07-entropy", "weights-cut-off", "rounded"),
    ("08-head_importance", "one-norm-for-all", "small-number"),
    ("08-prune_heads", "nothing-changed", "masked-not-removed"),
    ("09-causal_tiles", "corrected-the-wrong-way", "divided-in-each-tile"),
]


@pytest.mark.parametrize(("task_id", "mistake_id", "other"), TAKEN_FOR)
def test_an_unknown_mistake_is_not_taken_for_a_known_one(task_id, mistake_id, other):
    task = find(task_id)
    (mistake,) = (m for m in task.mistakes if m.id == mistake_id)
    left = tuple(m for m in task.mistakes if mistake_id not in (m.id, m.twin))
    feedback = diagnose_task(replace(task, mistakes=left), wrong_answer(task, mistake))
    assert not feedback.passed and feedback.mistake != other


@functools.cache
def sections(lesson):
    """The headings of a lesson's sections."""
    cells = nbformat.read(ROOT / "notebooks" / f"{lesson}.ipynb", as_version=4).cells
    text = "\n".join(cell.source for cell in cells if cell.cell_type == "markdown")
    return re.findall(r"^## (.*)$", text, re.MULTILINE)


@pytest.mark.parametrize("task_id", tasks())
def test_the_feedback_has_its_words_and_leads_to_a_section_of_the_lesson(task_id):
    ids = [mistake.id for mistake in find(task_id).mistakes]
    assert len(set(ids)) == len(ids)
    for mistake in find(task_id).mistakes:
        if mistake.twin:  # the other one is named
            assert (mistake.did, mistake.why) == ("", "")
            continue
        for words in (mistake.did, mistake.why):
            assert words.endswith((".", "?", ")")), (mistake.id, words)
        assert mistake.section in sections(lesson_of(task_id)), mistake.id
        assert mistake.twin is None or mistake.twin in ids, mistake.id


def combinable(task_id):
    task = find(task_id)
    return [pair for pair in pairs(task) if not take_back(task, *pair)]


def not_named(task_id, some):
    """The pairs of mistakes whose answer is accepted, or rejected without a name.

    One mistake can hide another (lengths that are ignored hide a wrong mask): then the one that
    shows is named, or another pair that gives the same numbers.
    """
    answers = {f"{a.id} + {b.id}": wrong_answer(find(task_id), a, b) for a, b in some}
    return [label for label, answer in answers.items() if not diagnose(task_id, answer).mistake]


@pytest.mark.parametrize("task_id", tasks())
def test_two_mistakes_together_are_rejected_and_named(task_id):
    known = combinable(task_id)
    some = random.Random(3).sample(known, min(2, len(known)))
    assert not_named(task_id, some) == []


@pytest.mark.prove
@pytest.mark.parametrize("task_id", tasks())
def test_every_two_mistakes_together_are_rejected_and_named(task_id):
    assert not_named(task_id, combinable(task_id)) == []


@pytest.mark.parametrize("task_id", tasks())
def test_every_task_knows_enough_mistakes(task_id):
    counts = task_id.startswith("05") or task_id == "01-predictions"
    assert len(find(task_id).mistakes) >= (3 if counts else 6)


def test_the_readme_does_not_promise_more_mistakes_than_there_are():
    promised = re.search(r"Over ([\d,]+) known mistakes", (ROOT / "README.md").read_text("utf-8"))
    known = {(m.did, m.why) for task_id in tasks() for m in find(task_id).mistakes}
    assert len(known) > int(promised[1].replace(",", ""))


def made_task(**parts):
    """Count n plus nothing; its mistakes count more, or less, by a part."""
    made = [Mistake(id, "You did.", "It is.", "Section", parts={id: p}) for id, p in parts.items()]
    single = Mistake("single", "You did.", "It is.", "Section", lambda n: n + 5)

    def build(**given):
        return lambda n: n + sum(part(n) for part in given.values())

    cases = [Case(f"{n}", {"n": n}) for n in (3, 7, 11)]
    reference = build()
    return Task("00-made", reference, lambda draw: cases, mistakes=(*made, single), build=build)


def named(task, answer):
    cases = task.cases(None)
    outcomes = [observe(task, answer, case) for case in cases]
    return [mistake.id for mistake in recognise(task, cases, outcomes, 0, 0)]


def test_a_single_mistake_is_named_before_a_pair_of_the_same_results():
    task = made_task(two=lambda n: 2, three=lambda n: 3, n=lambda n: n)
    assert named(task, lambda n: n + 5) == ["single"]
    assert named(task, lambda n: n + 3 + n) == ["three", "n"]


def test_a_pair_is_not_named_if_one_takes_back_what_the_other_adds():
    task = made_task(four=lambda n: 4 * n, less=lambda n: -n, one=lambda n: 1, late=lambda n: 7 - n)
    assert named(task, lambda n: n + 4 * n - n) == []
    assert named(task, lambda n: n + 4 * n + 1) == ["four", "one"]
    # 7 - n is no multiple of 4 n: there is nothing else that this sum could come from.
    assert named(task, lambda n: n + 4 * n + 7 - n) == ["four", "late"]


def test_a_wrong_answer_is_run_on_other_cases_until_it_takes_long(monkeypatch):
    task, ran = made_task(two=lambda n: 2), []
    register("made", [task])  # the conftest forgets it

    def wrong_by(amount):
        ran.clear()
        return diagnose_task(task, lambda n: ran.append(n) or n + amount).mistake

    assert (wrong_by(1), ran) == (None, [3, 3, 7, 11])
    assert (wrong_by(2), ran) == ("two", [3, 3, 7, 11])
    for module in ("diagnosis", "as_if"):
        monkeypatch.setattr(f"mha_classroom.checks.{module}.SECONDS", -1.0)
    assert (wrong_by(1), ran) == (None, [3, 3])


def hidden_with_a_million(scores, valid_lens=None):
    if valid_lens is None:
        return scores
    lens = valid_lens.reshape(len(scores), -1, 1)
    return scores.masked_fill(torch.arange(scores.shape[-1]) >= lens, -1e6)


HALVES = {
    "01-softmax": {
        "scores-returned": lambda x: x,
        "shifted-and-no-more": lambda x: x - x.max(dim=-1, keepdim=True).values,
    },
    "01-attend": {"scores-returned": lambda query, keys, values: keys @ query},
    "01-attention": {"scores-returned": lambda queries, keys, values: queries @ keys.mT},
    "01-additive_scores": {
        "not-weighed": lambda queries, keys, W_q, W_k, w_v: torch.tanh(
            (queries @ W_q)[:, :, None] + (keys @ W_k)[:, None]
        )
    },
    "02-scaled_scores": {"not-scaled": lambda queries, keys: queries @ keys.mT},
    "02-masked_softmax": {
        "scores-returned": lambda scores, valid_lens=None: scores,
        "lengths-ignored": lambda scores, valid_lens=None: scores.softmax(-1),
        "hidden-and-no-more": hidden_with_a_million,
    },
    "02-scaled_dot_product_attention": {
        "weights-only": lambda queries, keys, values, valid_lens=None: dot_product_weights(
            queries, keys, valid_lens, None
        ),
    },
}


@pytest.mark.parametrize(
    ("task_id", "mistake", "answer"),
    [(task_id, *half) for task_id, halves in HALVES.items() for half in halves.items()],
)
def test_half_of_the_way_is_one_mistake(task_id, mistake, answer):
    assert diagnose(task_id, answer).mistake == mistake


@pytest.mark.parametrize(
    ("mask", "mistake"),
    [
        (lambda n: torch.full((n, n), -1e9).triu(1), "mask-to-be-added"),
        (lambda n: torch.full((n, n), -torch.inf).double().triu(1), "mask-to-be-added"),
        (lambda n: torch.full((n, n), -1e4).tril(), "mask-to-be-added-inverted"),
        (lambda n: torch.ones(n, n).tril(), "mask-of-floats"),
        (lambda n: torch.ones(n, n).triu(1), "mask-inverted + mask-of-floats"),
        (lambda n: torch.zeros(n, n), "nothing-visible + mask-of-floats"),
    ],
)
def test_a_mask_of_floats_is_one_to_be_added_only_if_it_hides(mask, mistake):
    assert diagnose("02-causal_mask", mask).mistake == mistake
