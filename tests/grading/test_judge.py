"""What is judged from records equals what a check says on the spot, and nothing else gets through.

The probe runs here in the same process; what it sends goes through JSON text and back.
"""

import copy
import importlib
import json
import math
import pickle
import random
import re
import subprocess
import sys
import threading
import types
import warnings
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from lessons import all_answers
from torch.nn import functional as F

from mha_classroom.checks import diagnose, find, tasks
from mha_classroom.checks.recognition import wrong_answer
from mha_classroom.checks.showing import Opaque, describe
from mha_classroom.grading.judge.decoding import Decoder
from mha_classroom.grading.judge.judge_answer import hidden, judge, needs_stages
from mha_classroom.grading.judge.make_plan import HARNESS, blob_of, pickled, plan_of
from mha_classroom.grading.judge.records import decode
from mha_classroom.grading.kernels.inside.encoding import Encoder, tensor_from
from mha_classroom.grading.kernels.inside.probe import probe
from mha_classroom.grading.results import of_feedback

RIGHT, WRONG = all_answers()
SPLIT = "04-transpose_qkv"


WATCHED = """
import sys, torch
from mha_classroom.checks.forbidden import forbid
with forbid(("torch.softmax",), closely=True) as called:
    torch.ones(2).softmax(0)
assert called and "torch._dynamo" not in sys.modules
"""


def test_watching_does_not_import_the_compiler_of_torch():
    """It takes 1.6 s, in each kernel that is forked before it is there."""
    subprocess.run([sys.executable, "-c", WATCHED], check=True)


def sent(plan, names):
    """What a probe sends, as text."""
    reports = []
    probe(blob_of(plan), names, reports.append)
    (report,) = reports
    return json.dumps(report)


def verdict(feedback, records):
    return of_feedback(feedback.kind, records.memory)


def records_of(task, answer, seed=0, **options):
    """The records of an answer that is defined under the task's name."""
    plan = plan_of(task, seed, **options)
    return decode(sent(plan, {task.name: answer}), plan)


def graded(task, answer, seed=0):
    """The feedback from records, with the stages where they are asked for; and the records."""
    records = records_of(task, answer, seed)
    wanted = needs_stages(task, records, seed)
    if wanted:
        records = records.with_stages(records_of(task, answer, seed, record=wanted))
        assert needs_stages(task, records, seed) == ()
    return judge(task, records, seed), records


def samples():
    """For each task a known mistake, a wrong answer, a right one."""
    for number, task_id in enumerate(tasks()):
        kinds = [{m.id: wrong_answer(find(task_id), m) for m in find(task_id).mistakes}]
        kinds += [WRONG[task_id], RIGHT[task_id]]
        for answers in kinds:
            listed = [item for item in answers.items() if item[0] not in RANDOM]
            if listed:  # a task may begin with its known mistakes alone
                yield task_id, *random.Random(number).choice(listed)


def in_turn(samples):
    """One of each three for `make test`, another kind each time; `make prove` tries all."""
    for number, (task_id, label, answer) in enumerate(samples):
        marks = () if number % 3 == number // 3 % 3 else pytest.mark.prove
        yield pytest.param(task_id, answer, id=f"{task_id}: {label}", marks=marks)


RANDOM = ("dropout",)  # answers that do something else each time


@pytest.mark.parametrize(("task_id", "answer"), list(in_turn(samples())))
def test_records_are_judged_as_a_check_judges_on_the_spot(task_id, answer):
    feedback, records = graded(find(task_id), answer)
    assert feedback == diagnose(task_id, answer)
    assert records.suspicious == ()


def test_the_judgement_is_the_same_from_run_to_run():
    task = find(SPLIT)
    answer = wrong_answer(task, task.mistakes[0])
    assert graded(task, answer, 5)[0] == graded(task, answer, 5)[0]
    assert plan_of(task, 5).nonce != plan_of(task, 5).nonce


def test_a_random_answer_does_the_same_for_the_same_seed():
    task = find(SPLIT)
    one, other = (graded(task, lambda X, h: F.dropout(right_split(X, h)), 7)[0] for _ in range(2))
    assert one == other and not one.passed


def right_split(X, num_heads):
    return X.reshape(*X.shape[:2], num_heads, -1).transpose(1, 2).flatten(0, 1)


def test_what_is_not_there_or_no_function_is_said():
    task, plan = find(SPLIT), plan_of(find(SPLIT), 0)
    nothing = decode(sent(plan, {}), plan)
    assert nothing.state == "undefined"
    assert verdict(judge(task, nothing, 0), nothing) == "missing"
    records = decode(sent(plan, {"transpose_qkv": 3}), plan)
    assert judge(task, records, 0) == diagnose(SPLIT, 3)


class SilentError(Exception):
    def __str__(self):
        raise self


def endless(X, num_heads):
    while True:
        pass


def stubborn(X, num_heads):
    raise KeyboardInterrupt


def starting_a_thread(X, num_heads):
    found = []
    worker = threading.Thread(target=lambda: found.append(right_split(X, num_heads)))
    worker.start()
    worker.join()
    return found[0]


def raises(error):
    def answer(X, num_heads):
        raise error

    return answer


def printing(X, num_heads):
    print("y" * 10**6)
    return right_split(X, num_heads)


@pytest.mark.parametrize(
    ("answer", "kind", "word"),
    [
        (endless, "timeout", "timeout"),
        (starting_a_thread, "passed", "passed"),
        (stubborn, "raises", "error"),
        (raises(SystemExit(0)), "raises", "error"),
        (raises(SilentError()), "raises", "error"),
        (raises(MemoryError()), "raises", "out of memory"),
        (raises(ExceptionGroup("two", [ValueError(), KeyError()])), "raises", "error"),
        (raises(UnicodeDecodeError("utf-8", b"x", 0, 1, "no")), "raises", "error"),
        (raises(NotImplementedError()), "unwritten", "missing"),
        (raises(ValueError("\ud800")), "raises", "error"),
        (lambda X, h: torch.empty(2**50), "raises", "out of memory"),
        (lambda X, h: torch.zeros(1).expand(2**45), "raises", "out of memory"),
        (lambda X, h: X.to_sparse(), "shape", "wrong"),
        (lambda X, h: right_split(X, h).to_sparse(), "strange", "wrong"),
        (lambda X, h: [0] * 300, "type", "wrong"),
        (lambda X, h: object(), "type", "wrong"),
        (lambda X, h: X.zero_(), "changed inputs", "wrong"),
        (printing, "passed", "passed"),
    ],
)
def test_whatever_goes_wrong_is_data(answer, kind, word):
    task = find(SPLIT)
    records = records_of(task, answer, each=1.0)
    assert records.suspicious == ()
    feedback = judge(task, records, 0)
    assert (feedback.kind, verdict(feedback, records)) == (kind, word)
    assert feedback.passed == (word == "passed")


def test_a_value_that_fails_when_it_is_looked_at_is_rejected():
    task = find(SPLIT)
    wrong = wrong_answer(task, task.mistakes[0])

    def answer(X, num_heads):
        return wrong(X, num_heads) if len(X) == 1 else wrong(X, num_heads).to_sparse()

    assert judge(task, records_of(task, answer), 0).kind == "value"  # of the first case


def test_what_fails_while_it_is_watched_has_failed():
    def answer(x):
        if len(torch.utils._python_dispatch._get_current_dispatch_mode_stack()):
            raise ValueError("watched")
        return torch.exp(x) / torch.exp(x).sum(-1, keepdim=True)

    records = records_of(find("01-softmax"), answer)
    assert not judge(find("01-softmax"), records, 0).passed


def test_the_first_timeout_ends_the_plan():
    records = records_of(find(SPLIT), endless, each=0.2)
    assert list(records.outcomes) == [("first", 0)]


def test_time_that_is_over_before_the_end_is_said():
    task = find(SPLIT)
    records = records_of(task, right_split, seconds=0.0)
    feedback = judge(task, records, 0)
    assert verdict(feedback, records) == "timeout" and "all cases" in feedback.message


def test_the_learners_own_line_is_shown():
    def transpose_qkv(X, num_heads):
        return X.nothing_like_it(num_heads)

    feedback, _ = graded(find(SPLIT), transpose_qkv)
    assert feedback.details[0][1] == "return X.nothing_like_it(num_heads)"
    assert hidden(feedback).details[0] == feedback.details[0]


class Pretender(torch.Tensor):
    """Says of everything that it is equal, and of itself that it is something else."""

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        if func.__name__ in ("clone", "detach"):
            return args[0]
        return True


def test_a_tensor_that_pretends_is_read_as_what_it_holds():
    def pretend(X, num_heads):
        return torch.zeros(right_split(X, num_heads).shape, dtype=X.dtype).as_subclass(Pretender)

    feedback, records = graded(find(SPLIT), pretend)
    assert feedback.kind == "value"
    assert type(records.outcomes["first", 1].value) is torch.Tensor


def traced():
    """A function that reaches torch without a call that could be seen."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return torch.jit.trace(lambda x: torch.softmax(x, -1), torch.ones(3), check_trace=False)


@pytest.mark.parametrize(
    "answer",
    [
        lambda x: torch.softmax(x, -1),
        lambda x: torch.ops.aten._softmax(x, -1, False),
        lambda x: torch.nn.Softmax(-1)(x),
        lambda x: F.cross_entropy(x, x) * 0 + x,
        lambda x: list(map(torch.Tensor.softmax, [x], [-1]))[0],
        traced(),
    ],
)
def test_a_forbidden_call_is_seen_in_whatever_way_it_is_made(answer):
    task = find("01-softmax")
    feedback, records = graded(task, lambda x: answer(x))
    assert verdict(feedback, records) == "borrowed"


def test_a_thread_of_the_answers_own_is_reported():
    over = threading.Event()
    worker = threading.Thread(target=lambda: over.wait(60))
    worker.start()
    try:
        records = records_of(find(SPLIT), right_split)
    finally:
        over.set()
        worker.join()
    assert records.suspicious == ("has a thread of its own running",)


NOTED = """
import sys, types
from mha_classroom.grading.kernels.inside import watch as noticing
from mha_classroom.checks import forbidden
noticing.start()
names = {"__name__": "__main__"}
code = '''
import gc, sys, dataclasses, collections, warnings
collections.namedtuple("P", "x y")
warnings.warn("nothing")
gc.collect()
'''
exec(compile(code, "cell", "exec"), names)
print(noticing.take_notes())
code = '''
gc.get_objects()
gc.get_referrers(3)
'''
exec(compile(code, "cell", "exec"), names)
forbidden._plain_name = lambda function: ""
print(noticing.take_notes())
"""


def test_what_no_answer_needs_is_noted():
    ran = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", NOTED], capture_output=True, text=True, timeout=60
    )
    honest, noted = ran.stdout.strip().split("\n")[0], ran.stdout.strip().split("\n")[-1]
    assert honest == "[]", ran.stderr
    for words in ("looks through", "forbidden._plain_name"):
        assert words in noted


def test_a_stand_in_of_a_forbidden_function_is_borrowed():
    missing = type("NotHere", (RuntimeError,), {})

    def answer(X, num_heads):
        raise missing("mha_course.multihead.transpose_qkv is not there")

    feedback, records = graded(find(SPLIT), answer)
    assert verdict(feedback, records) == "borrowed"


VALUES = [
    None,
    True,
    0,
    -(10**4000),
    math.inf,
    -0.0,
    1e-300,
    1 + 2j,
    "text 'with' \u00e9",
    Fraction(-7, 3),
    Decimal("1.10"),
    torch.float64,
    [1, (2.0, {"a": None, 3: [()]})],
    np.float32(0.1),
    np.bool_(True),
    np.arange(6).reshape(2, 3),
    torch.arange(6.0).reshape(2, 3).T,
    torch.tensor(True),
    torch.empty(0, 3, dtype=torch.int32),
    torch.tensor([1.5], dtype=torch.bfloat16),
]


@pytest.mark.parametrize("value", VALUES, ids=lambda value: repr(value)[:30])
def test_a_value_comes_over_as_it_is(value):
    came = Decoder().decode(json.loads(json.dumps(Encoder().encode(value))))
    assert type(came) is type(value)
    if isinstance(value, torch.Tensor):
        assert came.dtype == value.dtype and torch.equal(came, value)
    elif isinstance(value, np.ndarray):
        assert came.dtype == value.dtype and np.array_equal(came, value)
    else:
        assert came == value and str(came)[:99] == str(value)[:99]


@pytest.mark.parametrize(
    "value",
    [{1, 2}, object(), types.SimpleNamespace(x=1), np.array(["a"]), ValueError("x")],
)
def test_what_cannot_come_over_is_described(value):
    came = Decoder().decode(Encoder().encode(value))
    assert isinstance(came, Opaque) and describe(came) == describe(value)[:300]


def test_values_beyond_the_room_there_is_are_described():
    encoder = Encoder(room=1000)
    came = Decoder().decode(encoder.encode((torch.zeros(7), torch.zeros(500), [0] * 500)))
    assert torch.equal(came[0], torch.zeros(7))
    assert came[1].is_meta and came[1].shape == (500,)
    assert describe(came[2]) == "a list of length 500"


def test_inputs_come_over_with_their_strides():
    X = torch.arange(30.0).reshape(2, 3, 5).transpose(1, 2)[:, 1:]
    came = pickle.loads(pickled({"X": X, "Y": X[:, :0], "n": 3}))
    assert torch.equal(came["X"], X) and came["X"].stride() == X.stride()
    assert came["Y"].shape == X[:, :0].shape and came["n"] == 3
    assert tensor_from(torch.int64, (), (), (7).to_bytes(8, "little")) == 7


PLAN = plan_of(find(SPLIT), 0)
REPORT = json.loads(sent(PLAN, {"transpose_qkv": right_split}))


def test_a_record_of_another_plan_is_refused():
    with pytest.raises(ValueError, match="something else"):
        decode(REPORT, plan_of(find(SPLIT), 0))


def test_a_run_that_came_twice_is_refused():
    with pytest.raises(ValueError, match="came twice"):
        decode({**REPORT, "runs": [*REPORT["runs"], REPORT["runs"][0]]}, PLAN)


@pytest.mark.parametrize(
    "written",
    [
        ["tensor", "float64", [2**39, 2**39], ""],
        ["tensor", "float64", [3], "AAAA"],
        ["tensor", "float64", [-1], ""],
        ["tensor", "object", [1], "AAAA"],
        ["array", "object", [1], "AAAAAAAAAAA="],
        ["fraction", "1", "0"],
        ["int", "zz"],
        ["shape", "float64", [2**39, 2**39]],
        ["object", "x"],
        ["__import__", "os"],
        ["dict", [[["list", []], ["none"]]]],
        json.loads('["list", [' * 30 + "]]" * 30),
        ["str", "\ud800"],
        ["bool", 1],
        [],
        None,
    ],
)
def test_a_forged_value_is_refused(written):
    forged = copy.deepcopy(REPORT)
    forged["runs"][0]["value"] = written
    with pytest.raises(ValueError):
        decode(forged, PLAN)


def test_a_bool_tensor_holds_nothing_but_true_and_false():
    came = Decoder().decode(["tensor", "bool", [3], "AAEC"])
    assert came.tolist() == [False, True, True] and came.sum() == 2


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda below: st.lists(below, max_size=3) | st.dictionaries(st.text(max_size=5), below),
    max_leaves=8,
)


def places(value, path=()):
    """The paths to all parts of a report."""
    yield path
    if isinstance(value, (dict, list)):
        for key, part in value.items() if isinstance(value, dict) else enumerate(value):
            yield from places(part, (*path, key))


PLACES = [path for path in places({**REPORT, "runs": REPORT["runs"][:3]}) if path]


@settings(max_examples=40, deadline=None)
@given(st.sampled_from(PLACES), JSON)
def test_a_report_with_a_forged_part_is_refused_or_judged(path, forged):
    report = copy.deepcopy({**REPORT, "runs": REPORT["runs"][:3]})
    place = report
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = forged
    try:
        records = decode(report, PLAN)
    except ValueError:
        return
    assert not judge(find(SPLIT), records, 0).passed


@settings(max_examples=40, deadline=None)
@given(JSON | st.text() | st.binary())
def test_what_is_no_report_is_refused(data):
    with pytest.raises(ValueError):
        decode(data, PLAN)


def test_deep_and_long_texts_are_refused():
    for text in ("[" * 10**6, "1" * 10**5, '{"nonce":'):
        with pytest.raises(ValueError):
            decode(text, PLAN)


def test_hidden_feedback_holds_no_input_and_no_expected_value():
    for task_id, _, answer in list(samples())[::5]:
        task = find(task_id)
        if task.kind == "class":
            continue
        feedback = diagnose(task_id, answer)
        shown = hidden(feedback)
        headings = [heading for heading, _ in shown.details]
        assert not any(h.startswith(("expected", "case:")) for h in headings)
        assert (shown.kind, shown.mistake, shown.sections) == (
            *(feedback.kind, feedback.mistake, feedback.sections),
        )
        for heading, text in feedback.details:
            if heading.startswith(("expected", "yours")):
                assert not [n for n in re.findall(r"\d+\.\d{3,}", text) if n in str(shown)]


def test_what_an_exception_says_is_cut_and_blanked():
    def transpose_qkv(X, num_heads):
        raise ValueError(f"{X.tolist()} {object()} {3.25} " + "x" * 1000)

    shown = hidden(diagnose(SPLIT, transpose_qkv))
    assert shown.message.startswith("transpose_qkv raises ValueError: [[[#, #")
    assert len(shown.message) < 250 and "0.0" not in shown.message

    def short(X, num_heads):
        raise ValueError(f"{3.25} at {object()}")

    assert hidden(diagnose(SPLIT, short)).message.endswith("# at <object object at 0x…>")


def test_shapes_are_kept_and_values_are_not():
    one = hidden(diagnose(SPLIT, lambda X, h: X[:, :0]))
    assert re.search(r"has shape \(.*\), expected \(.*\)\.$", one.message)
    other = hidden(diagnose(SPLIT, lambda X, h: right_split(X, h) + 0.125))
    assert "numbers are wrong" in other.message and "expected" not in str(other)
    assert [heading for heading, _ in other.details] == ["case"]
    # Who returns an input would be shown it.
    own = hidden(diagnose(SPLIT, lambda X, h: X.repeat(h, 1, 1)))
    assert not re.search(r"\d\.\d|yours", str(own))


def test_the_harness_is_named():
    for dotted in HARNESS:
        module, name = dotted.rsplit(".", 1)
        assert callable(getattr(importlib.import_module(module), name))
