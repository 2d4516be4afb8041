"""What a run returns is judged elsewhere: forged evidence gains nothing, nor do patched checks."""

import contextlib
import importlib
import inspect
import random

import pytest
import torch

from mha_classroom.checks import find, lessons, modules, tasks
from mha_classroom.checks.compare import compare
from mha_classroom.checks.examining import total
from mha_classroom.checks.outcome import examined, frozen, observe
from mha_classroom.checks.recognition import wrong_answer
from mha_classroom.checks.registry import exercise_set
from mha_classroom.checks.running import copy_inputs, quiet_state
from mha_classroom.checks.showing import plain_number
from mha_classroom.checks.task import AnswerError, Draw
from mha_classroom.tasks import head_splitting, parameter_counting, your_bert
from mha_classroom.tasks.bert_attention import bert_self_attention

EXAMINED = [task_id for task_id in tasks() if find(task_id).examine]
PLAIN = (str, bool, int, float, type(None), torch.dtype)
FORGED = 300  # for each task
JUNK = (
    *(None, "", "text", 0, -1, 10**400, float("nan"), float("inf"), 1j, True, False, object()),
    *((), [], {}, (1, 2), [None, None], [[1, 2], [3, 4]], {"a": 1}, {0: None}, torch.float64),
    *(torch.zeros(()), torch.zeros(0), torch.zeros(2, 3), torch.ones(3).long(), torch.eye(2) == 1),
    *(torch.full((3, 1), torch.nan), torch.eye(3).to_sparse(), torch.zeros(2, 3, device="meta")),
)
GONE = object()


def evidence(task, answer, case):
    """What goes out of the process in which an answer ran."""
    with quiet_state():
        return frozen(task.run(answer, copy_inputs(case.inputs)))


def accepted(task, case, right, value):
    """Whether this is taken for the right result, in the words of what judges it."""
    try:
        judged = examined(task, case, value)
    except AnswerError as error:
        assert str(error)
        return False
    try:
        return compare(right, judged, task.returns, task.tolerance)[0] is None
    except Exception:  # such a result is called strange
        return False


def paths(value, path=()):
    """The way to every part of what a run returned."""
    yield path
    if isinstance(value, (dict, list, tuple)):
        for key in list(value) if isinstance(value, dict) else range(len(value)):
            yield from paths(value[key], (*path, key))


def part(value, path):
    for key in path:
        value = value[key]
    return value


def replaced(value, path, new):
    """A copy of it with one part in another's place, or gone."""
    if not path:
        return new
    key, *rest = path
    parts = dict(value) if isinstance(value, dict) else dict(enumerate(value))
    parts[key] = replaced(parts[key], rest, new)
    if parts[key] is GONE:
        del parts[key]
    return parts if isinstance(value, dict) else type(value)(parts.values())


def distorted(X):
    """A tensor's numbers in another shape or dtype, or other numbers."""
    yield X[None]
    yield X.flatten()[:-1]
    yield X * torch.nan if X.is_floating_point() else X.double() * torch.nan
    yield X.to(torch.complex128)
    yield X.to(torch.bool)
    yield X.repeat(2, *[1] * (X.dim() - 1)) if X.dim() else X.repeat(2)
    yield X.unsqueeze(-1).expand(*X.shape, 3)
    if X.is_floating_point():
        yield X + 0.5
        yield -X
        yield 0 * X
        yield X.to(torch.int64)


def forgeries(value):
    """(path, what stands there instead) for every part."""
    for path in paths(value):
        here = part(value, path)
        for junk in JUNK:
            yield path, junk
        if path:
            yield path, GONE
        if torch.is_tensor(here):
            yield from ((path, X) for X in distorted(here))
        elif isinstance(here, bool):
            yield path, not here
        elif isinstance(here, (list, tuple)):
            yield from ((path, [*here, extra]) for extra in (None, *here[:1]))
            yield path, list(here)[::-1]
            yield path, {"a": here}
        elif isinstance(here, dict):
            yield path, list(here.values())
            if path and path[-1] in ("parameters", "numbers", "mapped", "state_dict", "left"):
                yield path, {**here, "extra": None}


def means_the_same(one, other):
    """Whether a part is not forged: the same, or another way to write it down."""
    if isinstance(one, (list, tuple)) and isinstance(other, (list, tuple)):
        return repr(list(one)) == repr(list(other))
    if torch.is_tensor(one) and torch.is_tensor(other) and one.numel():
        return one.dtype == other.dtype and one.shape == other.shape and torch.equal(one, other)
    number = plain_number(one)
    if number is not None and number == plain_number(other):
        return True
    return type(one) is type(other) and repr(one) == repr(other)


def counts(task, case, path, here, new):
    """Whether the task looks at this part of its evidence in this case, and means one value."""
    names = [step for step in path if isinstance(step, str)]
    alike = torch.is_tensor(here) and torch.is_tensor(new) and here.is_floating_point()
    alike = alike and new.dtype == here.dtype and new.shape == here.shape
    if alike and ({"gradients", "gradient of X"} & set(names) or names == ["weights"]):
        return False  # any gradient but 0 will do, and so will many a matrix
    if names[-1:] == ["for many"]:
        return False  # these only help to put into words what is wrong
    if path[:1] == ("calls",) and path[2:3] == ("result",):
        return path[1] in looked_at(task, case) and not (path[1] == 3 and path[3:] == (0,))
    return True


def looked_at(task, case):
    """The calls of a module whose results are compared."""
    twice = task.id in ("06-BertSelfAttention", "06-BertLayer")  # with and without weights
    if task.id != "12-BertEncoder" and case.inputs.get("training"):
        return [2] if twice else [1]
    if 1.0 in (
        case.inputs.get("attention_probs_dropout_prob"),
        case.inputs.get("hidden_dropout_prob"),
    ):
        return [0, 2, 3] if twice else [0, 1]
    if 0.25 in (
        case.inputs.get("attention_probs_dropout_prob"),
        case.inputs.get("hidden_dropout_prob"),
    ):
        return [0, 2, 3] if twice else [0, 1, 2]
    return [0, 1]


@pytest.mark.parametrize("task_id", EXAMINED)
def test_forged_evidence_is_an_answer_error_or_no_right_result(task_id):
    task, rng, found, tried = find(task_id), random.Random(task_id), [], []
    for case in task.cases(Draw(3)):
        value = evidence(task, task.reference, case)
        right = examined(task, case, value)
        assert accepted(task, case, right, value)
        tried += [(case, right, value, *forged) for forged in forgeries(value)]
    assert len(tried) >= FORGED
    for case, right, value, path, new in rng.sample(tried, FORGED):
        here = part(value, path)
        if means_the_same(here, new) or not counts(task, case, path, here, new):
            continue
        if accepted(task, case, right, replaced(value, path, new)):
            found.append((case.name, path, here, new))
    assert not found, found[:3]


@pytest.mark.parametrize("task_id", tasks())
def test_a_run_is_a_function_of_a_module_and_returns_plain_parts(task_id):
    task = find(task_id)
    assert inspect.isfunction(task.run)
    assert getattr(importlib.import_module(task.run.__module__), task.run.__qualname__) is task.run
    assert task.run.__closure__ is None
    for case in task.cases(Draw()):
        value = evidence(task, task.reference, case)
        for path in paths(value):
            here = part(value, path)
            assert type(here) in (dict, list, tuple, torch.Tensor, *PLAIN), path


@pytest.mark.parametrize("task_id", EXAMINED)
def test_what_comes_from_somewhere_else_is_no_right_result(task_id):
    task = find(task_id)
    for case in task.cases(Draw(1)):
        right = examined(task, case, evidence(task, task.reference, case))
        for junk in (*JUNK, {}, {"parameters": {}}, {"calls": []}, {"raised": None}):
            assert means_the_same(right, junk) or not accepted(task, case, right, junk)


@contextlib.contextmanager
def believing(monkeypatch):
    """In the process of the answer every comparison says what an answer would like to hear."""
    with monkeypatch.context() as patch:
        for name in ("equal", "allclose"):
            patch.setattr(torch, name, lambda *_, **__: True)
        patch.setattr(torch.Tensor, "equal", lambda *_: True)
        for name in ("misfit", "_complaint"):
            patch.setattr(modules, name, lambda *_: "")
        patch.setattr(head_splitting.runs, "misfit", lambda *_: "")
        patch.setattr(your_bert.runs, "unlike", lambda *_: "")
        patch.setattr(parameter_counting.runs, "is_meant", lambda *_: True)
        yield


def passes(task, answer, cases, monkeypatch):
    """Whether an answer gets through, with nothing to be trusted where it runs."""
    for case, right in cases:
        with believing(monkeypatch):
            try:
                value = evidence(task, answer, case)
            except Exception:
                return False
        if not accepted(task, case, right, value):
            return False
    return True


@pytest.mark.parametrize("task_id", EXAMINED)
def test_no_mark_rests_on_a_comparison_made_beside_the_answer(task_id, monkeypatch):
    task, cases = find(task_id), []
    for case in task.cases(Draw(1)):
        cases.append((case, examined(task, case, evidence(task, task.reference, case))))
    assert passes(task, task.reference, cases, monkeypatch)
    wrong = {m.id: wrong_answer(task, m) for m in task.mistakes}
    assert [id for id, answer in wrong.items() if passes(task, answer, cases, monkeypatch)] == []


def test_the_lessons_lend_what_no_task_of_theirs_asks_for():
    for found in map(exercise_set, lessons()):
        forbidden = {name for task in found.tasks for name in task.forbidden}
        for name in found.lends:
            owner, _, last = name.rpartition(".")
            lent = getattr(importlib.import_module(owner), last)
            where = name if inspect.ismodule(lent) else f"{lent.__module__}.{lent.__qualname__}"
            assert not any(f == where or f.startswith(f"{where}.") for f in forbidden), name


def test_tasks_are_numbered_and_the_youngest_gives_the_version_of_the_set():
    assert find("02-mended_attention").since == 2
    for found in map(exercise_set, lessons()):
        assert [task.number for task in found.tasks] == list(range(1, len(found.tasks) + 1))
        assert found.version == max(task.since for task in found.tasks)


def test_an_examination_ends_whatever_it_meets():
    @total
    def examine(inputs, seen):
        return seen["a"] / seen["b"]

    assert examine({}, {"a": 6, "b": 3}) == 2
    for seen in (None, {"a": 1}, {"a": 1, "b": 0}, {"a": "", "b": 1}):
        with pytest.raises(AnswerError, match="cannot be judged"):
            examine({}, seen)


def test_what_an_examination_computes_is_no_step_of_an_answer():
    @total
    def examine(inputs, seen):
        return torch.exp(seen)

    class Recorder(torch.overrides.TorchFunctionMode):
        names = ()

        def __torch_function__(self, func, types, args=(), kwargs=None):
            self.names += (func.__name__,)
            return func(*args, **(kwargs or {}))

    with Recorder() as recorder:
        torch.exp(torch.zeros(2))
        assert torch.equal(examine({}, torch.zeros(2)), torch.ones(2))
    assert recorder.names == ("zeros", "exp", "zeros", "ones", "equal")


def test_a_weight_of_nearly_0_says_nothing_of_the_factor_of_the_others():
    with quiet_state():
        X = torch.randn(2, 2, 6, dtype=torch.float64)
    inputs = {"X": X, "num_attention_heads": 2, "W_v.weight": torch.eye(6).double()}
    inputs["W_v.bias"] = torch.zeros(6).double()
    weights = torch.tensor([[1 - 3e-12, 3e-12], [0.4, 0.6]]).double()
    masks = torch.tensor([[[[1, 1], [0, 1]], [[1, 1], [1, 0]]], [[[1, 1]] * 2, [[0, 1]] * 2]])
    values = X.unflatten(2, (2, 3)).transpose(1, 2)
    output, trained = (
        (w @ values).transpose(1, 2).flatten(2) for w in (weights, masks * weights / 0.75)
    )
    said = bert_self_attention._drops_weights(output, trained, inputs)
    assert [*said.values()] == [True, True, True, pytest.approx(4 / 3)]


def test_what_is_random_does_not_depend_on_what_ran_before():
    task = find("01-softmax")
    case = task.cases(Draw(0))[0]
    results = []
    for watch in (True, True, False):
        torch.rand(3)
        results.append(observe(task, torch.rand_like, case, watch=watch).value)
    first, after_others, again = results
    assert torch.equal(first, after_others)
    assert not torch.equal(first, again)  # a second call may show what hangs on chance
