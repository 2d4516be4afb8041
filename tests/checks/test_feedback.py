"""What a check says where no known mistake fits, and around a right answer."""

import dataclasses
import math
import sys
import threading
import time
import warnings

import numpy as np
import pytest
import torch
from lessons.head_splitting.answers import Module
from torch import nn

from mha_classroom.checks import Feedback, diagnose, explanation, find, outcome
from mha_classroom.checks.compare import compare
from mha_classroom.checks.exception_meanings import MEANINGS, explain
from mha_classroom.checks.recognition import wrong_answer
from mha_classroom.checks.showing import tell_apart
from mha_classroom.checks.stages import first_wrong_stage
from mha_classroom.checks.task import Case, Task
from mha_classroom.checks.time_limit import OutOfTime, time_limit
from mha_course.attention import scaled_dot_product_attention


def split(X, num_heads):
    return X.unflatten(-1, (num_heads, -1)).transpose(1, 2).flatten(0, 1)


def leaf_in_place():
    nn.Linear(2, 2).weight.copy_(torch.ones(2, 2))


def unpacked():
    q, k, v = X.split(1)


class NoSuper(nn.Module):
    def __init__(self):
        self.W_q = nn.Linear(2, 2)


def undefined():
    return there_is_no_such_name  # noqa: F821


def endless(n=0):
    return endless(n + 1)


X = torch.ones(2, 3, 5)


def gradient_of_what_is_gone():
    x = torch.ones(3, requires_grad=True)
    powers = x.exp()
    powers += 1
    powers.sum().backward()


RAISING = {
    "view size": (lambda: X.transpose(1, 2).view(-1), "reshape"),
    "mat1": (lambda: torch.ones(2, 3) @ torch.ones(5, 7), "3 is not 5"),
    "batch2": (lambda: torch.bmm(X, X), "in the second: 2 and 2. Columns of the first"),
    "shape '": (lambda: X.reshape(4, 4), "there are 30 of them"),
    "size of tensor a": (lambda: X + torch.ones(2, 4, 5), "axis 1 one tensor has 3"),
    "tensor b (0)": (lambda: X + X[:, 3:], "On axis 1 one of the two tensors has no entry"),
    "dtype": (lambda: X @ X.mT.double(), "dtype=X.dtype"),
    "leaf": (leaf_in_place, "no_grad"),
    "Boolean": (lambda: bool(X > 0), "is not None"),
    "Dimension": (lambda: X.sum(7), "only the axes -3 to 2"),
    "takes": (lambda: split(X, 1, 2), "called with 3 arguments"),
    "missing": (lambda: split(X), "leaves out 'num_heads'"),
    "not defined": (undefined, "has that cell been run"),
    "NoneType": (lambda: None.shape, "have no `return`"),
    "masked_fill": (lambda: X.masked_fill(X, 0.0), "compare numbers"),
    "unflatten": (lambda: X.unflatten(-1, (2, 2)), "do not multiply"),
    "recursion": (endless, "without an end"),
    "Sequential": (lambda: nn.Sequential()(X, X), "takes 2 arguments, itself included"),
    "overflow": (lambda: X.masked_fill(X > 0, -1e308), "for the dtype of the tensor"),
    "tuple": (lambda: nn.Linear(5, 2)((X, X)), "several results"),
    "by its name": (lambda: X.argsort(1, stable=True), "by their names: `dim=1`"),
    "vector": (lambda: X[0] @ X[0, 0, :3], "a vector of 5 numbers, and this one has 3"),
    "expanded": (lambda: X.expand(2, 4, 5), "with 3 entries is to be put where 4 are"),
    "cat": (lambda: torch.cat([X, X[:, :, 1:]], 1), "may differ on axis 1 only"),
    "stack": (lambda: torch.stack([X, X[1:]]), "pieces of one shape"),
    "reshape with -1": (lambda: X.reshape(4, -1), "no size in the place of -1 makes [4, -1]"),
    "one is missing": (unpacked, "The left side asks for"),
    "unpack": (lambda: [a for a, b in ["xyz"]], "how long each piece is"),
    "texts": (lambda: torch.tensor(["x"]), "holds numbers, no texts"),
    "list": (lambda: [1][2], "Counting starts from 0"),
    "tuple without": (lambda: (X,).shape, "A tuple has no `shape`"),
    "several": (lambda: X.item(), "A single number is asked for"),
    "too many": (lambda: X[0, 0, 0, 0], "more axes of a tensor"),
    "size": (lambda: X.reshape(2 / 1, 3, 5), "`/` gives one"),
    "mask": (lambda: scaled_dot_product_attention(X, X, X, None, 0.5), "`dropout=…`"),
    "negative": (lambda: X.new_zeros(-2), "a size of -2"),
    "pieces": (lambda: X.split(1)[2], "fewer than you ask for"),
    "einsum": (lambda: torch.einsum("bij,bjk->bik", X, X), "is 5 in a tensor before and 3 in"),
    "bounds": (lambda: X[0, 3], "has 3 entries, counted from 0, and you ask for number 3"),
    "callable": (lambda: str(X)(X), "it is a `str`"),
    "super": (NoSuper, "`super().__init__()`"),
    "parameter": (lambda: setattr(nn.Linear(2, 2), "weight", X), "`nn.Parameter(...)`"),
    "gradient": (gradient_of_what_is_gone, "Y = Y + ..."),
    "square": (lambda: torch.linalg.solve(X[0], X[0, 0]), "has 3 rows and 5 columns"),
    "singular": (lambda: torch.linalg.inv(torch.ones(2, 2)), "one of its rows follows from"),
    "one_hot": (
        lambda: nn.functional.one_hot(torch.tensor([-1])),
        "numbers from 0 to num_classes - 1",
    ),
    "one_hot of int32": (lambda: nn.functional.one_hot(X.int()), "`.long()` makes them so"),
    "kept": (lambda: X[:, torch.tensor([True, False])], "one entry for each place of axis 1"),
    "places": (lambda: X[torch.tensor([])], "An empty list becomes a tensor of floats"),
    "float for a place": (lambda: range(4 / 2), "even where nothing is left over"),
    "list of places": (lambda: list("ab")[[0, 1]], "one place or a slice"),
    "tensor for a place": (
        lambda: [1, 2][torch.tensor([0, 1])],
        "one whole number is needed",
    ),
    "numbers stacked": (lambda: torch.stack([0.5, 0.2]), "among the pieces is a `float`"),
    "nothing stacked": (lambda: torch.cat([]), "the list is empty"),
    "numbers in a row": (lambda: torch.cat([X.sum(), X.sum()]), "`stack` makes the axis"),
    "whole numbers": (lambda: torch.arange(3).mean(), "`.double()` or `.float()` first"),
    "Python's number": (lambda: torch.sqrt(5.0), "`torch.sqrt` takes a tensor"),
    "number's attribute": (lambda: (1.0).sqrt(), "the result of `.item()`"),
    "no axes": (lambda: list(X.sum()), "a single number without axes"),
    "zero": (lambda: 1 / 0, "divided by can be 0"),
    "no way back": (lambda: X.sum().backward(), "does not depend on a parameter"),
    "two results": (lambda: X.max(1).shape, "`max` returns two things"),
    "too large k": (lambda: X.topk(7), "More are asked for than the axis has"),
    "axis twice": (lambda: X.permute(0, 2, -1), "two names can mean one axis"),
    "nothing": (lambda: max([]), "nothing to choose from"),
    "ragged": (lambda: torch.tensor([[1, 2], [3]]), "make it of have 2 and 1 entries"),
    "-1 twice": (lambda: X.reshape(-1, -1), "One size may be left open"),
    "all pairs": (lambda: X[[0, 1], [0, 1, 2]], "have the shapes [2] and [3]"),
    "mask and number": (lambda: -(X > 0), "`~`, `&` and `|` are for True and False"),
    "axes for cat": (lambda: torch.cat([X, X[0]]), "have 3 and 2 axes"),
    "dot": (lambda: torch.ones(3) @ torch.ones(4), "these have 3 and 4 numbers"),
    "ids": (lambda: nn.Embedding(3, 4)(torch.tensor([3])), "past its last row"),
    "right of the arrow": (
        lambda: torch.einsum("bij,bkj->bil", X, X),
        "The letter l stands right of the arrow",
    ),
}


@pytest.mark.parametrize(("raising", "meaning"), RAISING.values(), ids=RAISING)
def test_an_exception_is_explained_in_terms_of_shapes(raising, meaning):
    with pytest.raises(Exception) as caught:
        raising()
    assert meaning in explain(caught.value), str(caught.value)


def test_every_explanation_was_triggered():
    assert len(RAISING) == len(MEANINGS)
    assert explain(ValueError("something else")) == ""
    assert explain(KeyError("W_q")).startswith("The dict has no key 'W_q', or the set no such")


def test_a_text_without_the_separator_is_no_chunk():
    with pytest.raises(ValueError) as caught:
        _first, *_middle, _last = "global_step".split("/")
    meaning = explain(caught.value)
    assert "asks for at least 2, and the right side has 1" in meaning
    assert "separator" in meaning
    assert "chunk" not in meaning


def test_none_in_a_sum_and_a_tuple_in_a_product_are_explained_too():
    for other, meaning in ((None, "have no `return`"), ((X, X), "several results")):
        with pytest.raises(TypeError) as caught:
            X @ other
        assert meaning in explain(caught.value), str(caught.value)


def test_a_mask_of_another_dtype_is_explained_too():
    attention = nn.MultiheadAttention(2, 1, batch_first=True).double()
    with pytest.raises(RuntimeError) as caught:
        attention(*[torch.eye(2).double()[None]] * 3, attn_mask=torch.zeros(2, 2))
    assert "dtype=X.dtype" in explain(caught.value), str(caught.value)


def test_a_method_of_a_class_lacks_its_object():
    with pytest.raises(TypeError) as caught:
        nn.Linear.load_state_dict({})
    assert "called on an object, and not on its class" in explain(caught.value)


def test_what_the_answer_never_gets_is_not_shown():
    for task_id, hidden in (
        ("11-first_test", "implementations"),
        ("11-broken_promises", "suspect"),
    ):
        details = dict(diagnose(task_id, lambda *_: 1 / 0).details)
        assert any(heading.startswith("case: ") for heading in details)
        assert not any(hidden in text for text in details.values())


def test_a_misspelt_key_stands_beside_the_one_that_is_missing():
    difference, _ = compare({"output": 1, "weights": 2}, {"output": 1, "weigths": 2}, (), 0)
    assert difference.message == (
        "the dict that is returned has no 'weights'; nobody asked for 'weigths'"
    )
    difference, _ = compare({"output": 1}, {3: 1}, (), 0)
    assert difference.message == "the dict that is returned has no 'output'"


def test_the_explanation_stands_in_the_feedback():
    feedback = diagnose("04-transpose_qkv", lambda X, H: X.reshape(5, 5))
    assert feedback.kind == "raises"
    assert "do not multiply to that" in dict(feedback.details)["what it means"]


def test_the_hint_to_who_debugs_pytorch_is_not_quoted():
    def exercise(X, num_heads):
        return gradient_of_what_is_gone()

    feedback = diagnose("04-transpose_qkv", exercise)
    assert feedback.message.endswith("expected version 0 instead.")


@pytest.fixture
def short(monkeypatch):
    monkeypatch.setattr(outcome, "SECONDS", 0.2)


def for_ever(X, num_heads):
    while True:
        pass


def asleep(X, num_heads):
    time.sleep(60)


def stubborn(X, num_heads):
    while True:
        try:
            time.sleep(0.01)
        except Exception:
            pass


@pytest.mark.parametrize("answer", [for_ever, asleep, stubborn])
def test_an_answer_that_does_not_end_is_stopped(short, answer):
    feedback = diagnose("04-transpose_qkv", answer)
    assert feedback.kind == "timeout"
    assert "did not come to an end" in feedback.message


@pytest.mark.parametrize("answer", [for_ever, stubborn])
def test_it_is_stopped_without_signals_too(short, answer):
    found = []
    thread = threading.Thread(target=lambda: found.append(diagnose("04-transpose_qkv", answer)))
    thread.start()
    thread.join(timeout=30)
    assert [feedback.kind for feedback in found] == ["timeout"]


def test_a_time_limit_that_is_kept_leaves_nothing_behind():
    for _ in range(3):
        with time_limit(0.05):
            pass
    time.sleep(0.1)
    with pytest.raises(OutOfTime), time_limit(0.05):
        time.sleep(5)


def test_the_learner_can_still_press_stop():
    def transpose_qkv(X, num_heads):
        raise KeyboardInterrupt()

    with pytest.raises(KeyboardInterrupt):
        diagnose("04-transpose_qkv", transpose_qkv)


def test_an_answer_that_ends_python_is_told_so():
    feedback = diagnose("04-transpose_qkv", lambda X, H: sys.exit(0))
    assert feedback.kind == "raises" and "ends Python" in feedback.message


def test_an_answer_that_prints_passes_and_is_told_so(capsys):
    def transpose_qkv(X, num_heads):
        print("shape", X.shape)
        return split(X, num_heads)

    feedback = diagnose("04-transpose_qkv", transpose_qkv)
    assert feedback.passed
    assert any("prints" in remark for remark in feedback.remarks)
    assert capsys.readouterr().out == ""


def test_an_answer_that_warns_passes_and_is_told_so():
    def transpose_qkv(X, num_heads):
        warnings.warn("old function", stacklevel=1)
        return split(X, num_heads)

    feedback = diagnose("04-transpose_qkv", transpose_qkv)
    assert feedback.passed
    assert any("old function" in remark for remark in feedback.remarks)


def test_what_numpy_wishes_of_pytorch_is_not_told_to_the_learner():
    def transpose_qkv(X, num_heads):
        return split(torch.from_numpy(np.array(X)), num_heads)

    feedback = diagnose("04-transpose_qkv", transpose_qkv)
    assert feedback.passed
    assert not any("warning" in remark for remark in feedback.remarks)


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (None, "got None"),
        ([1.0, 2.0], "got a list of length 2"),
        (torch.ones(2).numpy(), "got an object of type ndarray"),
        ((torch.ones(2), torch.ones(2)), "got a tuple of length 2"),
        (3, "got the number 3"),
    ],
)
def test_a_wrong_type_of_result_is_told_what_was_expected(value, said):
    feedback = diagnose("04-transpose_qkv", lambda X, H: value)
    assert feedback.kind == "type"
    assert "has to be a tensor" in feedback.message and said in feedback.message


def notebook(source):
    """The names that a notebook with these cells defines."""
    names = {}
    exec(source, names)
    return names


EARLIER = """
import torch
from torch import nn
from mha_course.attention import scaled_dot_product_attention

def transpose_qkv(X, num_heads):
    {split}

def transpose_output(X, num_heads):
    return X.unflatten(0, (-1, num_heads)).transpose(1, 2).flatten(2)

class MultiHeadAttention(nn.Module):
    def __init__(self, k, q, v, width, num_heads, dropout=0.0, bias=False):
        super().__init__()
        self.num_heads, self.drop = num_heads, nn.Dropout(dropout)
        self.W_q, self.W_k, self.W_v = (nn.Linear(n, width, bias=bias) for n in (q, k, v))
        self.W_o = nn.Linear(width, width, bias=bias)

    def forward(self, queries, keys, values, valid_lens=None):
        q = transpose_qkv(self.W_q(queries), self.num_heads)
        k = transpose_qkv(self.W_k(keys), self.num_heads)
        v = transpose_qkv(self.W_v(values), self.num_heads)
        if valid_lens is not None:
            valid_lens = valid_lens.repeat_interleave(self.num_heads, dim=0)
        weights = scaled_dot_product_attention(q, k, v, valid_lens)[1]
        return {finish}(transpose_output(self.drop(weights) @ v, self.num_heads))
"""
WRONG_SPLIT = "return X.reshape(X.shape[0] * num_heads, X.shape[1], -1)"
RIGHT_SPLIT = "return X.unflatten(2, (num_heads, -1)).transpose(1, 2).flatten(0, 1)"


@pytest.mark.parametrize("split", ["raise NotImplementedError()", WRONG_SPLIT])
def test_a_right_answer_that_fails_because_of_an_earlier_one_names_that(split):
    names = notebook(EARLIER.format(split=split, finish="self.W_o"))
    feedback = diagnose("04-MultiHeadAttention", names["MultiHeadAttention"])
    assert feedback.kind == "earlier"
    assert "itself is right" in feedback.message
    assert "transpose_qkv (04-transpose_qkv)" in feedback.message
    assert "transpose_output" not in feedback.message


def test_an_earlier_one_that_passed_is_tried_again_once_its_helper_is_another():
    names = notebook(
        f"def split(X, num_heads):\n    {RIGHT_SPLIT}\n"
        + EARLIER.format(split="return split(X, num_heads)", finish="(lambda output: output)")
    )

    def remarks():
        return " ".join(diagnose("04-MultiHeadAttention", names["MultiHeadAttention"]).remarks)

    assert "04-transpose_qkv" not in remarks()
    exec(f"def split(X, num_heads):\n    {WRONG_SPLIT}", names)
    assert "04-transpose_qkv" in remarks()


def test_its_own_mistake_is_named_beside_the_earlier_one():
    names = notebook(EARLIER.format(split=WRONG_SPLIT, finish="(lambda output: output)"))
    feedback = diagnose("04-MultiHeadAttention", names["MultiHeadAttention"])
    assert feedback.mistake == "no-output-projection"
    assert "04-transpose_qkv" in feedback.remarks[-1]


def test_what_is_imported_from_the_course_is_not_said_to_be_wrong():
    names = notebook("""
from torch import nn
from mha_course.bert import BertFeedForward, BertSelfAttention, BertSelfOutput


class BertLayer(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.self_attention = BertSelfAttention(config)
        self.self_output = BertSelfOutput(config)
        self.feed_forward = BertFeedForward(config)

    def forward(self, X, mask=None, need_weights=False):
        output, weights = self.self_attention(X, mask, need_weights=True)
        output = 1.01 * self.feed_forward(self.self_output(output, X))
        return (output, weights) if need_weights else output
""")
    feedback = diagnose("06-BertLayer", names["BertLayer"])
    assert not feedback.passed
    assert "own check" not in str(feedback)


def test_what_the_notebook_defines_is_put_back():
    names = notebook(EARLIER.format(split=WRONG_SPLIT, finish="self.W_o"))
    before = dict(names)
    diagnose("04-MultiHeadAttention", names["MultiHeadAttention"])
    assert names == before


def test_the_first_stage_that_differs_is_named():
    right = find("04-MultiHeadAttention").build()

    class Odd(right):
        def forward(self, queries, keys, values, valid_lens=None):
            return super().forward(queries, keys, values, valid_lens) * 1.01

    class Shifted(right):
        def forward(self, queries, keys, values, valid_lens=None):
            return super().forward(queries + 0.01, keys, values, valid_lens)

    late, early = (diagnose("04-MultiHeadAttention", answer) for answer in (Odd, Shifted))
    assert "by itself: the projected queries." in early.remarks[0]
    assert late.remarks[0] == "Every number is 1.01 times the right one."
    assert late.remarks[1] == (
        "On the way your code has the output as asked for, but it returns something else. What "
        "happens in between?"
    )
    assert late.details


def test_the_part_that_comes_of_the_steps_is_named():
    right = find("02-scaled_dot_product_attention").build()

    def attend(*inputs, **options):
        output, weights = right(*inputs, **options)
        return output, weights + 0.01 * torch.arange(weights.shape[-1])

    feedback = diagnose("02-scaled_dot_product_attention", attend)
    assert "Look at how you get the table of weights." in " ".join(feedback.remarks)


def test_numbers_put_into_a_tensor_are_a_step():
    def answer(x):
        y = x.clone()
        y[..., 0] = 7.0
        return y + 1

    def stages(x):
        return {
            "put in": torch.cat([torch.full_like(x[..., :1], 7.0), x[..., 1:]], -1),
            "twice": 2 * x,
        }

    assert staged(stages, answer, [1.5, 2.5], [3.5, 4.5], [0.3, 5.5]) == ("put in", "twice")


def test_steps_side_by_side_are_named_together():
    def stages(x):
        return {"both": {"twice": 2 * x, "thrice": 3 * x, "squared": x**2}}

    def answer(x):
        return 2 * x + 3 * x + 1

    seen = staged(stages, answer, [1.5, 2.5], [3.5, 4.5], [0.3, 5.5])
    assert seen == ("twice and thrice", "squared")


def staged(stages, answer, *inputs):
    """What is said of the stages of an answer that is wrong on each of the inputs."""
    tensors = [torch.as_tensor(x, dtype=torch.float64) for x in inputs]
    cases = [Case(f"{len(x)} numbers", {"x": x}) for x in tensors]
    task = Task("00-made", lambda x: 2 * x, lambda draw: cases, stages=lambda i: stages(i["x"]))
    outcomes = [outcome.observe(task, answer, case) for case in cases]
    return first_wrong_stage(task, answer, cases, outcomes, 0)


LARGE = ([1.0, 3, 5, 11], [7.0, 2, 5, 3])


def test_two_mistakes_in_different_cases_are_both_said():
    def stages(x):
        return {"the double": 2 * x, "the end": 2 * x + 9}

    def answer(x):
        return (2 if len(x) == 2 else 3) * x + 5

    seen = staged(stages, answer, [3.0, 4], *LARGE)
    assert seen == (None, 'the double, in "4 numbers"')


def test_rows_of_zeros_and_ones_are_not_taken_for_a_stage():
    def stages(x):
        return {"the double": 2 * x, "the largest": nn.functional.one_hot(x.argmax(-1)).double()}

    def answer(x):  # each row of "the largest" is here, and nobody has looked at x
        return [torch.eye(x.shape[-1], dtype=x.dtype)[i] for i in range(2)][0] + 2 * x

    tables = ([[1.0, 3], [5, 2]], [[7.0, 2], [2, 3]], [[1.0, 4], [6, 3]])
    assert staged(stages, answer, *tables) == ("the double", None)


def test_one_of_several_equal_pieces_does_not_show_that_all_were_computed():
    def stages(x):
        return {"the double": 2 * x, "the weights": (0 * x).softmax(-1)}

    def answer(x):  # the weights of one row, and those of all rows are alike
        return (2 * x) @ (0 * x[0]).softmax(-1)

    tables = ([[1.0, 3, 2], [5, 2, 7]], [[7.0, 2, 1], [2, 3, 9]], [[1.0, 4, 8], [6, 3, 5]])
    assert staged(stages, answer, *tables) == ("the double", None)


@pytest.mark.parametrize(
    ("kind", "name", "look"),
    [
        ("shape", "the weights", "how you get the weights."),
        ("shape", "", "what you make of it and return."),
        ("value", "the sum", "how you get the sum."),
    ],
)
def test_where_all_steps_are_right_it_is_said_where_to_look(kind, name, look):
    failed = explanation.of_stage(Feedback("00-made", kind, ""), ("the sum", None), name)
    assert failed.remarks[0].endswith(f"in your code or without: the sum. Look at {look}")


@pytest.mark.parametrize(
    ("kind", "ask"),
    [
        ("shape", "Look at the shape in which you return it."),
        ("value", "What happens in between?"),
    ],
)
def test_a_part_that_is_right_on_the_way_is_not_said_to_be_right(kind, ask):
    stage = ("the sum", "the mean")
    failed = explanation.of_stage(Feedback("00-made", kind, ""), stage, parts=["the sum"])
    said = "On the way your code has the sum as asked for, but it returns something else."
    assert failed.remarks == (f"{said} {ask}",)


@pytest.mark.parametrize(
    ("one", "other", "texts"),
    [
        (0.1, 0.1, ("0.1", "0.1")),
        (1.5, 2, ("1.5", "2")),
        (0.1234567, 0.1234568, ("0.1234567", "0.1234568")),
        (248.99999999999997, 249, ("248.99999999999997", "249")),
        (109482239.99999999, 109482240, ("109482239.99999999", "109482240")),
        (10**400, 10**400 + 1, ("about 10^400", "about 10^400")),
        (math.inf, 3, ("inf", "3")),
    ],
)
def test_two_numbers_are_shown_with_the_digits_in_which_they_differ(one, other, texts):
    assert tell_apart(one, other) == texts


@pytest.mark.parametrize(
    ("task_id", "ids"),
    [
        ("05-cache_bytes", ("last-token-not-kept", "one-kept")),
        ("08-expected_share", ("groups-count-alike", "values-always-different")),
    ],
)
def test_two_mistakes_in_one_number_are_what_gives_this_number(task_id, ids):
    task = find(task_id)
    first, second = (mistake for mistake in task.mistakes if mistake.id in ids)
    feedback = diagnose(task.id, wrong_answer(task, first, second))
    said = "Two mistakes together would give your number, and so might others. One may be: "
    assert feedback.message.startswith(said)
    assert feedback.remarks[0].startswith("Another may be: ")


def test_a_stage_that_equals_an_input_is_not_taken_for_done():
    def stages(x):
        return {"the scores": x * 1.0, "the double": 2 * x}

    assert staged(stages, lambda x: x.clone() + 1, [3.0, 4], *LARGE) == (None, "the double")


def test_a_stage_that_equals_an_earlier_one_is_not_taken_for_done():
    def stages(x):
        return {"the double": 2 * x, "its view": (2 * x)[None], "the end": 2 * x + 1}

    assert staged(stages, lambda x: 2 * x + 5, [3.0, 4], *LARGE) == ("the double", "the end")


def test_a_number_that_comes_up_by_accident_is_not_taken_for_a_stage():
    def stages(x):
        return {"the square": x * x, "the end": x * x + 1}

    # 2 · 2 = 2 + 2: with the other inputs it shows that nothing is squared.
    seen = staged(stages, lambda x: 2 * x + 5, [2.0], *LARGE)
    assert seen == (None, 'the square, in "4 numbers"')
    assert staged(stages, lambda x: x * x + 5, [2.0], *LARGE) == ("the square", "the end")


def test_a_stage_that_could_be_another_one_in_another_order_is_not_taken_for_done():
    def stages(x):
        return {"the doubles": 2 * x, "the doubles in order": (2 * x).sort().values}

    def one_by_one(x):
        return torch.stack([2 * number for number in x]) * 1.5

    found = staged(stages, one_by_one, [3.0, 1], *LARGE)
    moved = "the doubles in order (their numbers are all there, in another order)"
    assert found == ("the doubles", moved)


def test_where_nothing_is_computed_or_nothing_agrees_nothing_is_said():
    def stages(x):
        return {"the double": 2 * x}

    assert staged(stages, lambda x: 3.0, [3.0, 1], *LARGE) is None
    assert staged(lambda x: {"the input": x}, lambda x: 3 * x, [3.0, 1], *LARGE) is None


def test_a_mistake_is_said_to_be_recognised_by_results_for_nobody_has_read_the_code():
    task = find("04-transpose_qkv")
    known = diagnose(task.id, wrong_answer(task, task.mistakes[0]))
    for shown in (str(known), known._repr_html_()):
        assert "(Recognised by your results. Other code can give the same results.)" in shown
    unknown = diagnose(task.id, lambda X, num_heads: X.reshape(-1, *X.shape[1:]) + 1)
    assert unknown.mistake is None and "Recognised" not in str(unknown) + unknown._repr_html_()


def test_heads_that_are_right_and_joined_wrongly_are_told_so():
    def join(heads, num_heads):
        return heads.flip(0).reshape(-1, heads.shape[1], num_heads * heads.shape[2])

    class Joined(Module):
        merge = staticmethod(join)

    remark = diagnose("04-MultiHeadAttention", Joined).remarks[0]
    assert remark.startswith(
        "Right so far, with a name in your code or without: the weighted sums "
    )
    assert "holds by itself: the joined heads (their numbers are all there, in anoth" in remark


@pytest.mark.parametrize("dropout", [1.0, 0.25])
def test_stages_of_another_run_are_not_taken_for_those_that_fail(dropout):
    right = find("04-MultiHeadAttention").build()

    class Training(right):
        def __init__(self, *sizes):
            super().__init__(*sizes)
            self.wrong = len(sizes) > 5 and sizes[5] == dropout

        def forward(self, queries, keys, values, valid_lens=None):
            output = super().forward(queries, keys, values, valid_lens)
            return output + 1.5 if self.training and self.wrong else output

    feedback = diagnose("04-MultiHeadAttention", Training)
    assert not feedback.passed
    assert not any("step" in remark for remark in feedback.remarks)
    assert any(f"dropout={dropout}" in heading for heading, _ in feedback.details)


def test_what_should_hold_and_does_not_is_said_in_a_sentence():
    label = "the reference is left as it was"
    difference, _ = compare({label: True}, {label: False}, ("result",), 0.0)
    assert difference.message == f"this should hold, and it does not: {label}"
    difference, _ = compare({"W_q.bias": torch.ones(2)}, {"W_q.bias": torch.zeros(2)}, (), 1e-9)
    assert difference.message.startswith("W_q.bias: 2 of 2 numbers are wrong, the first at [0]: it")


def test_what_an_answer_did_is_not_called_a_text():
    def head_width(num_hiddens, num_heads):
        if num_hiddens % num_heads:
            raise (ValueError if num_hiddens < 10 else TypeError)(f"{num_hiddens}, {num_heads}")
        return num_hiddens // num_heads

    feedback = diagnose("05-head_width", head_width)
    assert feedback.mistake is None
    assert feedback.message.endswith("is another kind of error, TypeError, expected a ValueError.")
    assert dict(feedback.details)["expected: head_width(10, 4)"] == "a ValueError"


def test_a_known_mistake_comes_with_what_came_of_it_where_the_result_is_not_shown():
    task = find("01-attention")
    failed = Feedback(task.id, "value", "The result is 3, expected 4.", (("case: one", "x"),))
    known = explanation.of_mistakes(task, failed, task.mistakes[:1])
    assert known.details == (("what came of it", failed.message), *failed.details)
    shown = dataclasses.replace(failed, details=(("yours", "3"), ("expected", "4")))
    assert explanation.of_mistakes(task, shown, task.mistakes[:1]).details == shown.details


def test_a_pair_of_mistakes_is_named_together():
    task = find("04-MultiHeadAttention")
    known = {mistake.id: mistake for mistake in task.mistakes}
    both = wrong_answer(task, known["not-scaled"], known["merge-without-transpose"])
    feedback = diagnose(task.id, both)
    assert feedback.mistake == "merge-without-transpose + not-scaled"
    assert "First:" in feedback.message and "Second:" in feedback.remarks[0]
    assert len(feedback.sections) == 2


HOSTILE = "<script>alert(1)</script><img src=x onerror=alert(1)> $x$ `code` [a](javascript:b)"


def test_hostile_names_outputs_and_exceptions_are_escaped():
    def raises(X, num_heads):
        raise RuntimeError(HOSTILE)

    def warns(X, num_heads):
        warnings.warn(HOSTILE, stacklevel=1)
        return split(X, num_heads)

    strange = type(HOSTILE, (), {})

    class Odd:
        def __call__(self, X, num_heads):
            return strange()

    raises.__qualname__ = raises.__name__ = HOSTILE
    for answer in (raises, warns, Odd()):
        page = diagnose("04-transpose_qkv", answer)._repr_html_()
        assert "&lt;script&gt;" in page
        assert "<script" not in page and "<img" not in page and "$" not in page


@pytest.mark.parametrize(
    "answer",
    [
        lambda x: torch.softmax(x, -1).to_sparse(),
        lambda x: x.to("meta"),
        lambda x: torch.softmax(x, -1).half(),
        lambda x: x * torch.nan,
    ],
)
def test_a_result_without_numbers_to_compare_is_rejected_in_words(answer, monkeypatch):
    monkeypatch.setattr("mha_classroom.checks.diagnosis.observe", unwatched_observe)
    feedback = diagnose("01-softmax", answer)
    assert not feedback.passed and feedback.kind in ("strange", "dtype", "nan", "type")


def unwatched_observe(task, answer, case, watch=True):
    return outcome.observe(task, answer, case, watch=False)


def test_a_library_function_of_the_same_name_is_not_blamed():
    names = notebook(
        "import torch\nfrom torch import softmax\n"
        "def attend(query, keys, values):\n"
        "    return softmax(keys @ query / len(query) ** 0.5, 0) @ values\n"
    )
    feedback = diagnose("01-attend", names["attend"])
    assert feedback.mistake and "softmax (01-softmax)" not in str(feedback)


def test_a_helper_that_takes_other_arguments_is_not_blamed():
    names = notebook(
        "import torch\n"
        "def softmax(x, dim):\n    return torch.softmax(x, dim)\n"
        "def attend(query, keys, values):\n"
        "    return softmax(keys @ query / len(query) ** 0.5, 0) @ values\n"
    )
    feedback = diagnose("01-attend", names["attend"])
    assert feedback.mistake and "TypeError" not in str(feedback)


def details(yours, expected, case="X = 1"):
    pairs = (("case: one", case), ("yours", yours), ("expected", expected))
    return Feedback("04-x", "value", "Wrong.", pairs)._repr_html_()


def test_the_numbers_that_differ_are_marked():
    page = details("[1.0, 2.5]", "[1.0, 2.0]")
    assert page.count("<mark") == 2
    assert ">2.5</mark>]" in page and ">2.0</mark>]" in page


@pytest.mark.parametrize(
    ("yours", "expected"), [("[1, 2]", "[3, 4]"), ("[1, 2]", "[1, 2]"), ("[1, 2, 3]", "[1, 2]")]
)
def test_nothing_is_marked_where_it_would_not_help(yours, expected):
    assert "<mark" not in details(yours, expected)


@pytest.mark.parametrize("case", ["x" * 46, "\n".join("x" * 9)])
def test_a_wall_of_inputs_stands_below_the_comparison(case):
    small, large = details("1", "2"), details("1", "2", case)
    assert small.index("case: one") < small.index("yours") < small.index("expected")
    assert large.index("yours") < large.index("expected") < large.index("case: one")


def test_what_is_marked_is_escaped():
    page = details("[1, <b>]", "[1, $]")
    assert "<b>" not in page and "&lt;b&gt;</mark>" in page and "&#36;</mark>" in page


def test_a_second_run_that_does_not_end_is_a_timeout(monkeypatch):
    monkeypatch.setattr(outcome, "SECONDS", 0.3)
    calls = []

    def softmax(x):
        calls.append(x)
        if len(calls) == 2:
            time.sleep(5)
        powers = (x - x.amax(-1, keepdim=True)).exp()
        return powers / powers.sum(-1, keepdim=True)

    feedback = diagnose("01-softmax", softmax)
    assert feedback.kind == "timeout" and "two different results" not in str(feedback)


@pytest.mark.parametrize(("width", "reached"), [(3, False), (60, True)])
def test_a_result_that_is_wider_than_its_place_can_be_reached_with_the_keyboard(width, reached):
    feedback = Feedback("04-made", "value", "", (("yours", "1" * width), ("expected", "2")))
    shown = feedback._repr_html_()
    assert ('tabindex="0" role="group" aria-label="yours"' in shown) is reached
    assert shown.count("tabindex") == 2 * reached
