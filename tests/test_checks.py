"""The checks reject wrong answers, accept unusual right ones, and disturb nothing."""

import importlib
import random

import numpy as np
import pytest
import torch

from mha_course.checks import LESSONS, CheckFailed, check, diagnose, find, tasks

ANSWERS = {lesson: importlib.import_module(f"answers.{lesson}") for lesson in LESSONS}


def listed(kind):
    return [
        pytest.param(task_id, answer, id=f"{task_id}: {label}")
        for module in ANSWERS.values()
        for task_id, answers in getattr(module, kind).items()
        for label, answer in answers.items()
    ]


@pytest.mark.parametrize(("task_id", "answer"), listed("RIGHT"))
def test_a_right_answer_passes_whatever_its_style(task_id, answer):
    feedback = diagnose(task_id, answer)
    assert feedback.passed, str(feedback)


@pytest.mark.parametrize(("task_id", "answer"), listed("WRONG"))
@pytest.mark.parametrize("seed", [0, 1])
def test_a_wrong_answer_is_rejected_with_a_reason(task_id, answer, seed):
    feedback = diagnose(task_id, answer, seed=seed)
    assert not feedback.passed
    assert feedback.kind != "unwritten"
    assert feedback.message


@pytest.mark.parametrize("task_id", tasks())
def test_every_task_has_enough_answers(task_id):
    right = {t: a for module in ANSWERS.values() for t, a in module.RIGHT.items()}
    wrong = {t: a for module in ANSWERS.values() for t, a in module.WRONG.items()}
    counts = task_id.startswith("05") or task_id.endswith("predictions")
    assert len(right[task_id]) >= 3
    assert len(wrong[task_id]) >= (3 if counts else 6)


@pytest.mark.parametrize("task_id", tasks())
def test_an_unwritten_answer_is_called_unwritten(task_id):
    if find(task_id).kind == "class":

        class Unwritten:
            def __init__(self, *sizes):
                raise NotImplementedError()

        answer = Unwritten
    else:

        def answer(*inputs, **options):
            raise NotImplementedError()

        answer.__code__ = answer.__code__.replace(co_name=find(task_id).name)
    feedback = diagnose(task_id, answer)
    assert feedback.kind == "unwritten"
    assert f"{find(task_id).name} is not written yet" in feedback.message


@pytest.mark.parametrize("task_id", tasks())
def test_the_reference_itself_is_right_on_every_seed(task_id):
    task = find(task_id)
    free = {**vars(task), "forbidden": ()}
    for seed in range(5):
        from mha_course.checks.diagnosis import diagnose_task

        assert diagnose_task(type(task)(**free), task.reference, seed).passed


@pytest.mark.parametrize("task_id", tasks())
@pytest.mark.parametrize("answer", [None, 3, [1, 2], np.ones(3), torch.ones(2)])
def test_what_is_not_even_a_function_is_told_so(task_id, answer):
    feedback = diagnose(task_id, answer)
    assert feedback.kind == "type"
    assert "has to be a" in feedback.message


@pytest.mark.parametrize("task_id", tasks())
def test_a_function_that_returns_nothing_is_rejected(task_id):
    if find(task_id).kind == "function":
        feedback = diagnose(task_id, lambda *inputs, **options: None)
        assert not feedback.passed and feedback.kind in ("type", "value")


def test_the_finished_function_of_the_course_is_not_an_answer():
    from mha_course import interop, multihead

    for answer in (multihead.transpose_qkv, interop.import_d2l().transpose_qkv):
        feedback = diagnose("04-transpose_qkv", answer)
        assert feedback.kind == "borrowed"
        assert "transpose_qkv" in feedback.message
    hidden = type("Mine", (multihead.MultiHeadAttention,), {})
    assert diagnose("04-MultiHeadAttention", hidden).kind == "borrowed"


def test_check_raises_an_assertion_error_that_carries_the_feedback(capsys):
    def transpose_qkv(X, num_heads):
        return X.reshape(X.shape[0] * num_heads, X.shape[1], -1)

    with pytest.raises(AssertionError, match="Your heads hold whole words") as caught:
        check("04-transpose_qkv", transpose_qkv)
    assert isinstance(caught.value, CheckFailed)
    assert caught.value.feedback.mistake == "split-without-transpose"
    assert caught.value._render_traceback_() == ["CheckFailed: 04-transpose_qkv: mistake"]
    assert capsys.readouterr().out == ""


def test_check_says_so_in_one_line_when_it_passes(capsys):
    check("04-transpose_qkv", ANSWERS["head_splitting"].split)
    assert capsys.readouterr().out == "✓ 04-transpose_qkv: right in 8 cases.\n"


def test_an_exception_is_shown_with_the_line_of_the_learner():
    def transpose_qkv(X, num_heads):
        return X.view(-1, num_heads, 99)

    feedback = diagnose("04-transpose_qkv", transpose_qkv)
    assert feedback.kind == "raises"
    assert "RuntimeError" in feedback.message and "99" in feedback.message
    assert feedback.details[0][1] == "return X.view(-1, num_heads, 99)"


def test_an_answer_that_calls_an_unwritten_function_names_it():
    def transpose_output(X, num_heads):
        raise NotImplementedError()

    class MultiHeadAttention(ANSWERS["head_splitting"].Module):
        merge = staticmethod(transpose_output)

    feedback = diagnose("04-MultiHeadAttention", MultiHeadAttention)
    assert feedback.kind == "unwritten"
    assert feedback.message == (
        "MultiHeadAttention calls transpose_output, which is not written yet."
    )


def test_an_answer_that_remembers_is_caught():
    calls = []

    def transpose_qkv(X, num_heads):
        calls.append(1)
        return ANSWERS["head_splitting"].split(X, num_heads) + 1e-3 * (len(calls) > 1)

    assert diagnose("04-transpose_qkv", transpose_qkv).kind == "not repeatable"


def test_a_list_is_as_good_as_a_tuple():
    answers = ANSWERS["scaled_dot_product"].RIGHT["02-scaled_dot_product_attention"]
    right = next(iter(answers.values()))
    assert diagnose("02-scaled_dot_product_attention", lambda *X: list(right(*X))).passed


def test_nan_is_called_nan():
    feedback = diagnose(
        "04-transpose_qkv", lambda X, H: ANSWERS["head_splitting"].split(X * torch.nan, H)
    )
    assert feedback.kind == "nan"


def test_a_float32_answer_passes_with_a_remark():
    feedback = diagnose("04-transpose_qkv", RIGHT_FLOAT32)
    assert feedback.passed
    assert "float32" in feedback.remarks[0] and "float32" in feedback._repr_html_()


def RIGHT_FLOAT32(X, num_heads):
    return ANSWERS["head_splitting"].split(X, num_heads).float()


def test_nothing_global_changes():
    def transpose_qkv(X, num_heads):
        torch.manual_seed(1), random.seed(1), np.random.seed(1)
        torch.rand(3), random.random(), np.random.rand()
        torch.set_default_dtype(torch.float16)
        torch.set_grad_enabled(False)
        return ANSWERS["head_splitting"].split(X, num_heads)

    before = torch.get_rng_state(), random.getstate(), str(np.random.get_state())
    assert diagnose("04-transpose_qkv", transpose_qkv).passed
    assert torch.equal(torch.get_rng_state(), before[0])
    assert (random.getstate(), str(np.random.get_state())) == before[1:]
    assert torch.get_default_dtype() == torch.float32 and torch.is_grad_enabled()


def test_the_same_answer_gets_the_same_words_each_time():
    wrong = ANSWERS["head_splitting"].WRONG["04-MultiHeadAttention"]["NaN for length 0"]
    first, second = (diagnose("04-MultiHeadAttention", wrong) for _ in range(2))
    assert first._repr_html_() == second._repr_html_() and str(first) == str(second)


def test_what_comes_from_the_answer_is_escaped():
    def transpose_qkv(X, num_heads):
        raise RuntimeError("<script>alert(1)</script> $x$")

    page = diagnose("04-transpose_qkv", transpose_qkv)._repr_html_()
    assert "<script>" not in page and "&lt;script&gt;" in page and "$" not in page


def test_an_unknown_task_is_answered_with_what_is_near():
    with pytest.raises(ValueError, match="did you mean 04-transpose_qkv"):
        diagnose("04-transpose_qvk", len)
