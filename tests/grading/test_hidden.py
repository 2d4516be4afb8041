"""What of a check's words stays where inputs and expected values are hidden, and reads well."""

import re

import pytest
from test_judge import samples

from mha_classroom.checks import Feedback, diagnose, find
from mha_classroom.checks.exception_meanings import MEANINGS, explain
from mha_classroom.checks.task import Draw
from mha_classroom.checks.where_wrong import say_where
from mha_classroom.grading.judge.judge_answer import hidden

SPLIT = "04-transpose_qkv"
FILLED = [words.format(*["6", "4", "2", "3"]) for _, words in MEANINGS]


def masked(message, kind="raises", heading="what it means"):
    shown = hidden(Feedback(SPLIT, kind, "f raises E: x", ((heading, message),)))
    return shown.details[0][1]


@pytest.mark.parametrize("words", FILLED, ids=[words[:25] for words in FILLED])
def test_what_an_exception_means_is_not_touched(words):
    assert masked(words) == words


def test_decimals_in_what_it_means_are_still_hidden():
    words = explain(ValueError("shape '[0.25, 3.14159]' is invalid for input of size 6"))
    assert "sizes [#, #] do not multiply" in masked(words)
    long = explain(TypeError("missing 1 required positional arguments: " + "x" * 400))
    assert len(long) < 300


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("6 is not 4. Is one of them?", "6 is not 4. Is one of them?"),
        ("f has no parameter layers.0.W_q.weight.", "f has no parameter layers.0.W_q.weight."),
        ("in layers.10.1.", "in layers.10.1."),
        ("it has 3. And [1.5, -.25, 2e-3, 1.e5]", "it has 3. And [#, -#, #, #]"),
        ("tensor([1., 2.])", "tensor([#, #])"),
        ("got the number 1.0.", "got the number 1.0."),
        ("got the number 1.05.", "got the number #."),
        ("at 0xAF12.", "at 0x…."),
    ],
)
def test_only_numbers_are_masked(text, shown):
    assert hidden(Feedback(SPLIT, "type", text)).message == shown


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("W_q has shape (4, 3), expected (2, d_k): heads come first.", None),
        ("W has shape (4, 3), expected (3, 4) (nn.Linear keeps (out, in)).", None),
        ("The output is 9, expected 8.", "The output is 9."),
        ("b: 2 of 4 entries are wrong, the first at [1]: it is True, expected False.", ""),
        ("x is the text 'b has shape (1), expected (1): ', expected True.", ""),
    ],
)
def test_shapes_may_be_expected_and_values_not(text, shown):
    told = masked(text, "mistake", "what came of it")
    assert told == (text if shown is None else told)
    assert "True." not in told and "False." not in told and "8" not in told
    assert shown in (None, "", told)


def test_sentences_end_where_they_should():
    """Of wrong answers to tasks of every lesson."""
    for task_id, _, answer in list(samples())[1::7]:
        shown = hidden(diagnose(task_id, answer))
        for text in (shown.message, *(t for h, t in shown.details if h.startswith("what"))):
            assert not re.search(r"# [A-Z][a-z]|\w#|\(\)\.| \.$", text), text
            assert text[-1] in ".?!)\"'…" or "raises" in text, text


def test_where_an_answer_is_right_is_said_in_whole_sentences():
    cases = find(SPLIT).cases
    made = cases(Draw(0))
    said = say_where(made, [index > 0 for index in range(len(made))])
    failed = Feedback(SPLIT, "value", "Result is 3, expected 4.", remarks=(said,))
    assert hidden(failed).remarks == (said,) and said.endswith(".")
