"""The checks reject wrong answers, accept unusual right ones, and disturb nothing."""

import dataclasses
import functools
import random
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
import torch
from lessons import all_answers, proven
from lessons.head_splitting.answers import Module, split
from lessons.scaled_dot_product.answers import softmax_infinity
from torch.nn import functional as F

from mha_classroom.checks import CheckFailed, check, diagnose, diagnosis, find, tasks
from mha_classroom.checks.compare import compare
from mha_classroom.checks.diagnosis import diagnose_task
from mha_classroom.checks.prepared import reversed_case
from mha_classroom.checks.registry import forget, register
from mha_classroom.checks.running import changed_inputs
from mha_classroom.checks.task import Case, Draw, Task, call

RIGHT, WRONG = all_answers()


@pytest.mark.parametrize("task_id", tasks())
def test_right_answers_pass_whatever_their_style(task_id):
    """Only those in float32 are told so.

    For that a case's inputs have to be float64 to their last digit: 0.1 in float32 is another
    number.
    """
    rejected = {}
    for label, answer in RIGHT[task_id].items():
        feedback = diagnose(task_id, answer)
        if not feedback.passed:
            rejected[label] = str(feedback)
        told = any("as torch.float32" in said or "of float32" in said for said in feedback.remarks)
        # Sums of numbers near 1e9 lose digits on the way.
        assert not told or "float32" in label or task_id == "12-mean_pool", label
    assert rejected == {}


@pytest.mark.parametrize("task_id", tasks())
@pytest.mark.parametrize(
    ("seed", "explained"),
    [(1, 8), *(pytest.param(s, 1, marks=pytest.mark.prove) for s in (0, 1, 2))],
)
def test_wrong_answers_are_rejected_with_a_reason(task_id, seed, explained, monkeypatch):
    """What takes time is to explain: with `make test` every eighth of them is explained."""
    got_through = {}
    for number, (label, answer) in enumerate(WRONG[task_id].items()):
        with monkeypatch.context() as patch:
            if number % explained:
                patch.setattr(
                    diagnosis, "_explained", lambda t, does, tried, i, failed, seed: failed
                )
            feedback = diagnose(task_id, answer, seed=seed)
        if feedback.passed or feedback.kind == "unwritten" or not feedback.message:
            got_through[label] = str(feedback)
    assert got_through == {}


@pytest.mark.parametrize("task_id", tasks())
def test_no_case_leaves_out_an_argument_before_one_that_it_gives(task_id):
    task = find(task_id)
    if task.run is call:  # by place: what comes after a gap would land in it
        given = [list(case.inputs) for case in task.cases(Draw(0))]
        longest = max(given, key=len)
        assert all(names == longest[: len(names)] for names in given)


@pytest.mark.parametrize("task_id", tasks())
def test_every_task_has_enough_answers(task_id):
    counts = task_id.startswith("05") or task_id.endswith("predictions")
    if WRONG[task_id]:  # a task may begin with its known mistakes alone
        assert len(RIGHT[task_id]) >= 3
        assert len(WRONG[task_id]) >= (3 if counts else 6)
    assert len(find(task_id).mistakes) >= 3


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
@pytest.mark.parametrize("seed", [0, *proven(1, 2, 3, 4)])
def test_the_reference_itself_is_right_on_every_seed(task_id, seed):
    task = dataclasses.replace(find(task_id), forbidden=())
    assert diagnose_task(task, task.reference, seed).passed


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
        assert not feedback.passed and feedback.kind in ("type", "value", "mistake")


def deeply(value, change):
    """The value with each number, text and tensor in it changed."""
    if isinstance(value, dict):
        return {key: deeply(part, change) for key, part in value.items()}
    if isinstance(value, (tuple, list)):
        return type(value)(deeply(part, change) for part in value)
    return change(value)


def if_float(change):
    return lambda X: change(X) if torch.is_tensor(X) and X.is_floating_point() else X


def if_tensor(change):
    return lambda X: change(X) if torch.is_tensor(X) else X


ODD_RESULTS = {
    "float32, and wrong": if_float(lambda X: 1.5 * X.float()),
    "an empty tensor": lambda X: torch.tensor([]),
    "a float for an int": lambda X: float(X + 1) if isinstance(X, int) else X,
    "whole numbers": if_tensor(lambda X: X.long()),
    "one axis more": if_tensor(lambda X: X[None]),
    "NumPy's": if_tensor(lambda X: X.detach().numpy()),
    "NaN": if_float(lambda X: X * float("nan")),
    "texts": str,
}


# Every second one for `make test`, of one task these and of the next task the others.
ODD = [
    pytest.param(task_id, name, marks=[pytest.mark.prove] * ((i + j) % 2))
    for i, task_id in enumerate(tasks())
    for j, name in enumerate(ODD_RESULTS)
]


@pytest.mark.parametrize(("task_id", "name"), ODD)
def test_an_odd_result_is_judged_whatever_it_is(task_id, name):
    """No known mistake is looked for in a way that raises for another dtype, shape or type."""
    reference, change = find(task_id).reference, ODD_RESULTS[name]

    class Odd(reference if isinstance(reference, type) else object):
        def forward(self, *given, **named):
            return deeply(super().forward(*given, **named), change)

    def odd(*given, **named):
        return deeply(reference(*given, **named), change)

    feedback = diagnose(task_id, Odd if isinstance(reference, type) else odd)
    assert feedback.passed or feedback.message


def test_the_finished_function_of_the_course_is_not_an_answer():
    from mha_course import interop, multihead

    for answer in (multihead.transpose_qkv, interop.import_d2l().transpose_qkv):
        feedback = diagnose("04-transpose_qkv", answer)
        assert feedback.kind == "borrowed"
        assert "transpose_qkv" in feedback.message
    most_of_it = {
        "04-transpose_qkv": lambda X, H: multihead.split_heads(X, H).flatten(0, 1),
        "04-transpose_output": lambda X, H: multihead.merge_heads(X.unflatten(0, (-1, H))),
    }
    for task, answer in most_of_it.items():
        assert diagnose(task, answer).kind == "borrowed"
    hidden = type("Mine", (multihead.MultiHeadAttention,), {})
    assert diagnose("04-MultiHeadAttention", hidden).kind == "borrowed"


def own_softmax(x):
    powers = torch.exp(x - x.amax(dim=-1, keepdim=True))
    return powers / powers.sum(dim=-1, keepdim=True)


def softmax_or_own(x):
    try:
        return torch.softmax(x, dim=-1)
    except BaseException:
        return own_softmax(x)


def softmax_in_a_thread(x, weigh=torch.softmax):
    results = []
    thread = threading.Thread(target=lambda: results.append(weigh(x, -1)))
    thread.start()
    thread.join()
    return results[0]


def softmax_in_a_pool(x):
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(F.softmax, x, dim=-1).result()


WAYS_ROUND = {
    "exception swallowed": softmax_or_own,
    "thread": softmax_in_a_thread,
    "method in a thread": lambda x: softmax_in_a_thread(x, torch.Tensor.softmax),
    "pool of threads": softmax_in_a_pool,
    "torch.ops": lambda x: torch.ops.aten.softmax(x, -1),
    "torch.ops, an overload": lambda x: torch.ops.aten._softmax.default(x, -1, False),
    "torch.ops, the logarithm": lambda x: torch.ops.aten.log_softmax(x, -1).exp(),
    "torch._softmax": lambda x: torch._softmax(x, -1, False),
    "torch._safe_softmax": lambda x: torch._safe_softmax(x, -1),
    "torch._C": lambda x: torch._C._VariableFunctions.softmax(x, -1),
    "method": lambda x: torch.Tensor.softmax(x, -1),
    "partial": functools.partial(torch.softmax, dim=-1),
    "map": lambda x: next(map(torch.softmax, [x], [-1])),
    "vmap": lambda x: torch.vmap(lambda row: torch.softmax(row, -1))(x[None])[0],
    "a distribution": lambda x: torch.distributions.Categorical(logits=x).probs,
}


@pytest.mark.parametrize("way", WAYS_ROUND.values(), ids=WAYS_ROUND)
def test_what_is_to_be_written_is_not_borrowed_on_another_way(way):
    feedback = diagnose("01-softmax", way)
    assert feedback.kind == "borrowed" and "softmax" in feedback.message
    assert sys.getprofile() is None and threading.getprofile() is None


def test_a_function_whose_own_name_is_another_one_is_forbidden():
    task = dataclasses.replace(find("01-softmax"), forbidden=("torch.linalg.vector_norm",))
    feedback = diagnose_task(task, lambda x: x / torch.linalg.vector_norm(x))
    assert feedback.message.startswith("Your code calls torch.linalg.vector_norm.")


ATTENDING = {
    "torch._C": torch._C._nn.scaled_dot_product_attention,
    "torch.ops": torch.ops.aten.scaled_dot_product_attention,
    "the slow half": lambda q, k, v, scale: torch._scaled_dot_product_attention_math(
        q, k, v, scale=scale
    )[0],
}


@pytest.mark.parametrize("finished", ATTENDING.values(), ids=ATTENDING)
def test_finished_attention_is_not_borrowed_on_another_way(finished):
    feedback = diagnose("01-attention", lambda q, k, v: finished(q, k, v, scale=1.0))
    assert feedback.kind == "borrowed" and "attention" in feedback.message


def test_what_allowed_functions_call_is_not_held_against_an_answer():
    assert diagnose("01-softmax", lambda x: (x - x.logsumexp(-1, keepdim=True)).exp()).passed
    assert diagnose("01-attention", lambda q, k, v: F.softmax(q @ k.mT, dim=-1) @ v).passed


def test_check_raises_an_assertion_error_that_carries_the_feedback(capsys):
    def transpose_qkv(X, num_heads):
        return X.reshape(X.shape[0] * num_heads, X.shape[1], -1)

    with pytest.raises(AssertionError, match="You cut along the words") as caught:
        check("04-transpose_qkv", transpose_qkv)
    assert isinstance(caught.value, CheckFailed)
    assert caught.value.feedback.mistake == "split-without-transpose"
    assert caught.value._render_traceback_() == ["CheckFailed: 04-transpose_qkv: mistake"]
    assert capsys.readouterr().out == ""


def test_check_says_so_in_one_line_when_it_passes(capsys):
    check("04-transpose_qkv", split)
    assert capsys.readouterr().out == "✓ 04-transpose_qkv: right in 10 cases.\n"


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

    class MultiHeadAttention(Module):
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
        return split(X, num_heads) + 1e-3 * (len(calls) > 1)

    feedback = diagnose("04-transpose_qkv", transpose_qkv)
    assert feedback.kind == "not repeatable" and "random" in feedback.message


def test_a_result_that_is_kept_for_the_next_call_is_caught():
    kept = {}

    def transpose_qkv(X, num_heads):
        right = split(X, num_heads)
        return kept.setdefault((X.shape, num_heads), right)

    feedback = diagnose("04-transpose_qkv", transpose_qkv)
    assert feedback.kind == "not repeatable"
    assert "keeps something from an earlier call" in feedback.message


def test_a_mask_that_is_kept_for_the_next_call_is_caught():
    kept = {}

    def scaled_dot_product_attention(queries, keys, values, valid_lens=None):
        scores = queries @ keys.mT / queries.shape[-1] ** 0.5
        if valid_lens is not None:
            seen = torch.arange(keys.shape[1]) < valid_lens.reshape(len(keys), -1, 1)
            seen = kept.setdefault((scores.shape, valid_lens.dim()), seen)
            scores = scores.masked_fill(~seen, -torch.inf)
        weights = scores.softmax(-1).nan_to_num(0.0)
        return weights @ values, weights

    feedback = diagnose("02-scaled_dot_product_attention", scaled_dot_product_attention)
    assert feedback.kind == "not repeatable"
    assert "in reverse order" in feedback.details[0][0]


def test_what_depends_on_the_shape_alone_may_be_kept():
    @functools.lru_cache
    def mask(num_steps):
        return torch.ones(num_steps, num_steps, dtype=torch.bool).tril()

    def mended_attention(queries, keys, values):
        scores = queries @ keys.mT / queries.shape[-1] ** 0.5
        weights = scores.masked_fill(~mask(len(scores[0])), -torch.inf).softmax(-1)
        return weights @ values, weights

    assert diagnose("02-mended_attention", mended_attention).passed


def test_a_list_is_as_good_as_a_tuple():
    answers = RIGHT["02-scaled_dot_product_attention"]
    right = next(iter(answers.values()))
    assert diagnose("02-scaled_dot_product_attention", lambda *X: list(right(*X))).passed


def test_nan_is_called_nan():
    feedback = diagnose("04-transpose_qkv", lambda X, H: split(X * torch.nan, H))
    assert feedback.kind == "nan"


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("the table of weights", "the table of weights has shape (3,), expected (2,)"),
        ("the scores of all pairs", "the scores of all pairs have shape (3,), expected (2,)"),
        ("the bias of W_o", "the bias of W_o has shape (3,), expected (2,)"),
        ("W_o.bias", "W_o.bias has shape (3,), expected (2,)"),
    ],
)
def test_one_has_and_many_have(name, sentence):
    difference, _ = compare(torch.zeros(2), torch.zeros(3), (name,), 1e-6)
    assert difference.message == sentence


def test_nan_in_a_list_stays_nan():
    given = {"losses": [torch.nan, 2.0], "norms": [torch.nan, 2.0]}
    before = {"losses": [torch.nan, 2.0], "norms": [1.0, 2.0]}
    assert changed_inputs(given, before) == ["norms"]


def test_a_float32_answer_passes_with_a_remark():
    feedback = diagnose("03-output_as_sum", sum_in_float32)
    assert feedback.passed
    assert "float32" in feedback.remarks[0] and "float32" in feedback._repr_html_()


@pytest.mark.parametrize(
    ("task_id", "answer"),
    [
        ("01-softmax", lambda x: own_softmax(x).float().double()),
        ("01-attend", lambda q, k, v: (k @ q).softmax(0).float().to(v) @ v),
        ("02-scaled_scores", lambda q, k: q @ k.mT / torch.tensor(k.shape[2]).sqrt()),
        ("02-masked_softmax", lambda *inputs: in_float32(*inputs).double()),
        ("03-output_as_sum", lambda heads, W_o: sum_in_float32(heads, W_o).double()),
    ],
)
def test_what_went_through_float32_passes_with_a_remark(task_id, answer):
    feedback = diagnose(task_id, answer)
    assert feedback.passed, str(feedback)
    assert sum("about 7, where 15 can be had" in remark for remark in feedback.remarks) == 1


def test_inputs_in_float32_ask_for_no_more_digits_than_they_have():
    _, remarks = compare(torch.ones(2), torch.ones(2) + 1e-6, ("it",), 1e-5)
    assert remarks == ()
    _, (remark,) = compare(torch.ones(2), torch.ones(2).double(), ("it",), 1e-5)
    assert "came back as torch.float64" in remark and "lost" not in remark
    _, (remark,) = compare(torch.ones(2).double(), torch.ones(2), ("it",), 1e-5)
    assert "digits are lost there" in remark


def in_float32(scores, valid_lens=None):
    return softmax_infinity(scores.float(), valid_lens)


NUMBERS = [
    Fraction(24),
    Decimal(24),
    Decimal("2.4e1"),
    np.float32(24),
    np.int64(24),
    np.array(24.0),
    torch.tensor(24),
    24.0,
]
OTHERS = [
    *(True, np.True_, torch.tensor(True), 24j, "24", [24], None),
    *(10**400, -(10**5000), Fraction(10**5000, 7), Decimal("1e999999999")),
    *(Decimal("nan"), Decimal("snan"), Decimal("inf"), float("nan"), -float("inf")),
    *(np.array([24]), torch.tensor([24.0]), Fraction(73, 3), Decimal("24.1")),
]


def predictions(new_output):
    return {"second_weight": 0.4, "new_output": new_output, "output_with_twin": 8}


@pytest.mark.parametrize("number", NUMBERS, ids=repr)
def test_a_right_number_passes_whatever_its_kind(number):
    assert diagnose("01-predictions", lambda: predictions(number)).passed


@pytest.mark.parametrize("number", NUMBERS, ids=repr)
def test_where_an_int_is_asked_for_only_ints_pass(number):
    def head_width(num_hiddens, num_heads):
        if num_hiddens % num_heads:
            raise ValueError(f"{num_hiddens} features, {num_heads} heads")
        return number // 24 * (num_hiddens // num_heads)

    width = diagnose("05-head_width", head_width)
    is_int = isinstance(number, (np.int64, Fraction, torch.Tensor))
    assert width.passed == is_int
    assert is_int or "int is asked for" in width.message


@pytest.mark.parametrize("number", OTHERS, ids=lambda number: type(number).__name__)
def test_a_wrong_number_is_rejected_in_words_whatever_its_kind(number):
    for feedback in (
        diagnose("01-predictions", lambda: predictions(number)),
        diagnose("05-count_attention", lambda n, bias=True: number),
    ):
        assert feedback.kind in ("value", "type", "nan")
        assert len(feedback.message) < 200


def test_infinity_is_near_to_nothing_but_itself():
    infinite = torch.tensor([0.0, -torch.inf])
    for other in (torch.zeros(2), torch.tensor([0.0, -1e30]), -infinite):
        assert compare(infinite, other, ("mask",), 1e-5)[0].kind == "value"
        assert compare(other, infinite, ("mask",), 1e-5)[0].kind == "value"
    assert compare(infinite, infinite.clone(), ("mask",), 1e-5)[0] is None


def sum_in_float32(heads, W_o):
    rows = W_o.unflatten(0, (len(heads), -1)).float()
    return torch.einsum("hbld,hdo->blo", heads.float(), rows)


def test_nothing_global_changes():
    def transpose_qkv(X, num_heads):
        torch.manual_seed(1), random.seed(1), np.random.seed(1)
        torch.rand(3), random.random(), np.random.rand()
        torch.set_default_dtype(torch.float16)
        torch.set_grad_enabled(False)
        return split(X, num_heads)

    before = torch.get_rng_state(), random.getstate(), str(np.random.get_state())
    assert diagnose("04-transpose_qkv", transpose_qkv).passed
    assert torch.equal(torch.get_rng_state(), before[0])
    assert (random.getstate(), str(np.random.get_state())) == before[1:]
    assert torch.get_default_dtype() == torch.float32 and torch.is_grad_enabled()


def test_what_is_said_does_not_depend_on_random_numbers_drawn_before():
    def by_chance(scores):
        return torch.rand_like(scores) + random.random() + np.random.rand()

    said = []
    for seed in (1, 2):
        torch.manual_seed(seed), random.seed(seed), np.random.seed(seed)
        said.append(str(diagnose("01-softmax", by_chance)))
    assert said[0] == said[1]


def test_the_same_answer_gets_the_same_words_each_time():
    wrong = WRONG["04-MultiHeadAttention"]["NaN for length 0"]
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


def test_a_task_that_is_registered_anew_is_judged_anew():
    """As happens while an instructor writes it."""

    def times(k):
        return lambda n: n * k

    try:
        for k in (2, 3):
            cases = [Case(f"{n}", {"n": n}) for n in (3, 5)]
            register("own", [Task("own-times", times(k), lambda draw, cases=cases: cases)])
            assert [diagnose("own-times", times(m)).passed for m in (2, 3)] == [k == 2, k == 3]
    finally:
        forget("own")


def test_no_case_is_turned_round_if_two_numbers_are_alike_then():
    """A task may promise that no two are, and which of them is meant is then up to rounding."""
    case = Case("3 rows", {"X": torch.tensor([[1.0, 3.0], [2.0, 2.0], [3.0, 1.5]])})
    largest = Task("00-largest", lambda X: X[0].argmax(), lambda draw: [case])
    assert reversed_case(largest, case).inputs["X"][0].tolist() == [1.5, 3.0]
    alike = Case("a row of twins at the end", {"X": torch.tensor([[1.0, 3.0], [2.0, 2.0]])})
    assert reversed_case(largest, alike) is None
    means = Task("00-means", lambda X: X.mean(1), lambda draw: [alike])
    assert reversed_case(means, alike) is not None
