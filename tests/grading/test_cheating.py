"""Notebooks that are after marks: none gets any but for right numbers."""

import dataclasses
import json
import os
import types

import nbformat
import pytest
from attack_kit import MARKER, SEED, code

from mha_classroom.checks import lessons
from mha_classroom.checks.task import Draw
from mha_classroom.grading.fit.assignment import assignments, load_assignment
from mha_classroom.grading.fit.slicing import slice_modules
from mha_classroom.grading.judge import records
from mha_classroom.grading.judge.grade_submission import grade_notebook
from mha_classroom.grading.judge.make_plan import STAND_INS, modules_of
from mha_classroom.grading.kernels import nbval_run
from mha_classroom.grading.settings import Limits, Settings

pytestmark = pytest.mark.usefixtures("untouched")

# An assignment of many small tasks, so that each answer of a kernel can be an attempt of its own.
TASKS_MODULE = """
import torch
from mha_classroom.checks.task import Case, Task

VERSION = 1
NUMBERS = ("one", "two", "three", "four", "five", "six", "seven", "eight")
SOFTMAX = ("torch.softmax", "torch.nn.functional.softmax", "torch.nn.modules.activation.Softmax")


def double(x):
    marker_of_the_solution = 2
    return marker_of_the_solution * x


def soft(x):
    e = (x - x.amax(-1, keepdim=True)).exp()
    return e / e.sum(-1, keepdim=True)


def cases(draw):
    return [Case("a vector", {"x": draw.normal(5)}), Case("a table", {"x": draw.normal(3, 7)})]


TASKS = [Task(f"my-{n}", double, cases) for n in NUMBERS]
TASKS += [Task("my-later", double, cases, uses=("my-one",)), Task("my-honest", double, cases)]
TASKS += [Task(f"my-soft_{n}", soft, cases, forbidden=SOFTMAX) for n in NUMBERS]
"""
NUMBERS = ("one", "two", "three", "four", "five", "six", "seven", "eight")
DOUBLE = [f"my-{name}" for name in (*NUMBERS, "later", "honest")]
SOFT = [f"my-soft_{name}" for name in NUMBERS]
HONEST = "def {}(x):\n    return x + x"


@pytest.fixture(scope="module")
def assignment(tmp_path_factory):
    """The instructor's own assignment above."""
    folder = tmp_path_factory.mktemp("own")
    (folder / "tricks.py").write_text(TASKS_MODULE)
    cells = []
    for name in DOUBLE + SOFT:
        body = f"    {MARKER} = 2\n    return {MARKER} * x"
        if name in SOFT:
            body = "    e = (x - x.amax(-1, keepdim=True)).exp()\n    return e / e.sum(-1, True)"
        source = f"def {name[3:]}(x):\n    ### BEGIN SOLUTION\n{body}\n    ### END SOLUTION"
        nbgrader = {"grade_id": name, "solution": True, "grade": False, "locked": False}
        cells.append(code(source, nbgrader={**nbgrader, "schema_version": 3, "task": False}))
        check = {"grade_id": f"check-{name}", "grade": True, "solution": False, "points": 1}
        check |= {"schema_version": 3, "locked": True, "task": False}
        cells.append(code(f'check("{name}", {name[3:]})', nbgrader=check))
    nbformat.write(nbformat.v4.new_notebook(cells=cells), folder / "tricks.ipynb")
    return load_assignment("tricks", folder)


def graded(source, assignment, answers, added="", seconds=5.0):
    """Grade a notebook with these answers, {task id: source}; `added` is a cell before them."""
    notebook = nbformat.from_dict(json.loads(json.dumps(assignment.exercise)))
    for cell in notebook.cells:
        name = cell.metadata.get("nbgrader", {}).get("grade_id", "")
        cell.source = answers.get(name, "" if name.startswith("my-") else cell.source)
    notebook.cells = [code(added), *notebook.cells] if added else notebook.cells
    settings = Settings(SEED, Limits(seconds, 256 << 20))
    return grade_notebook(notebook, assignment, settings, source)


def cases_of(assignment, name):
    """What an answer was tried on."""
    return assignment.tasks[name].cases(Draw(Settings(SEED).seed_of(name)))


def points(graded_notebook):
    """The ids of the tasks that got marks."""
    return {task.id for task in graded_notebook.tasks if task.points}


def verdicts(graded_notebook):
    return {task.id: task.verdict for task in graded_notebook.tasks}


def answer(name, body):
    return f"def {name[3:]}(x):\n" + "\n".join(f"    {line}" for line in body.split("\n"))


def answers_of(bodies, honest=True):
    """Answers my-one, my-two and so on with these bodies, and an honest one."""
    found = {name: answer(name, body) for name, body in zip(DOUBLE, bodies, strict=False)}
    return found | ({"my-honest": HONEST.format("honest")} if honest else {})


PATCHES = """
import ast, base64, builtins, gc, math, pickle, sys, types, torch, numpy as np
yes = lambda *a, **k: True
for place, names in ((torch, ("equal", "allclose", "isclose")), (np, ("allclose", "array_equal")),
                     (torch.testing, ("assert_close",)), (torch.Tensor, ("equal", "allclose")),
                     (math, ("isclose",))):
    for name in names:
        setattr(place, name, yes)
for name in ("compare", "diagnosis", "judge", "recognition"):
    sys.modules["mha_classroom.checks." + name] = types.SimpleNamespace(compare=yes, check=yes)
for name in [n for n in sys.modules if n.startswith(("mha_course.checks", "mha_classroom.checks"))]:
    for attribute in ("compare", "_compare_one", "same", "_identical", "frozen"):
        if hasattr(sys.modules[name], attribute):
            setattr(sys.modules[name], attribute, yes)
open("torch.py", "w").write("equal = lambda *a: True")
open("json.py", "w").write("1/0")
sys.path.insert(0, "/tmp")
class Drop(ast.NodeTransformer):
    def visit_Assert(self, node): return ast.Pass()
get_ipython().ast_transformers.append(Drop())
class Same(torch.Tensor):
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None): return True
    def __eq__(self, other): return True
class Anything:
    __eq__ = __lt__ = __le__ = __ge__ = __contains__ = __bool__ = yes
    __hash__ = None
    def __sub__(self, other): return 0
    def __float__(self): return float("nan")
    def __reduce__(self): return eval, ("1/0",)
"""


def test_patched_comparisons_and_objects_that_equal_everything_earn_nothing(source, assignment):
    """And one who patches them all and answers rightly has lost nothing."""
    bodies = (
        "return x.as_subclass(Same)",
        "return Anything()",
        "return x",
        "return x * float('nan')",
        "return [2 * x]",
        "import mha_classroom.checks.task as t\nreturn t.Case",
        "return torch.zeros(0)",
        "return torch.empty(x.shape, device='meta', dtype=x.dtype)",
        "return (2 * x).to(torch.complex128)",
    )
    found = graded(source, assignment, answers_of(bodies), PATCHES)
    assert points(found) == {"my-honest"}, verdicts(found)
    assert set(verdicts(found)[name] for name in DOUBLE[:9]) <= {"wrong", "error"}
    assert found.kernels <= 3


HUNT = """
import ctypes, numpy
def hunt(x):
    # In memory there is only what is looked for with 1 added to each byte; searching adds 1 to
    # what is there, so that it finds neither this nor what it leaves behind itself.
    ctypes.CDLL(None).prctl(4, 1, 0, 0, 0)
    seen, size, lap = dict.fromkeys(WANTED, False), 8 << 20, 256
    with open("/proc/self/maps") as maps, open("/proc/self/mem", "rb", 0) as memory:
        for line in list(maps):
            place, rights = line.split()[:2]
            start, end = (int(part, 16) for part in place.split("-"))
            for begin in range(start, end, size) if rights.startswith("rw") else ():
                try:
                    memory.seek(begin)
                    held = memory.read(min(size + lap, end - begin))
                except (OSError, OverflowError):
                    continue
                moved = (numpy.frombuffer(held, numpy.uint8) + numpy.uint8(1)).tobytes()
                for name, wanted in WANTED.items():
                    seen[name] |= wanted in moved
    return str(seen)
"""


def test_expected_values_are_nowhere_in_the_memory_of_a_kernel(source, assignment):
    """Every page of the process is searched for them while an answer runs; the inputs are there."""
    X = cases_of(assignment, "my-one")[1].inputs["x"]
    plain = {"inputs": X.numpy().tobytes(), "expected": (2 * X).numpy().tobytes()}
    wanted = {name: bytes((b + 1) % 256 for b in text[:128]) for name, text in plain.items()}
    body = "return hunt(x) if x.dim() == 2 else x"
    found = graded(
        source, assignment, answers_of([body]), f"WANTED = {wanted!r}\n{HUNT}", seconds=20
    )
    outcomes = found.records["my-one"].outcomes
    assert outcomes["first", 1].value == "{'inputs': True, 'expected': False}"
    assert points(found) == {"my-honest"}


FORGE = """
import base64, copy, json, pickle, sys, torch
pub = get_ipython().display_pub
publish = type(pub).publish
MIME = "application/vnd.mha-course+json"
def floats(X, dtype="float64"):
    return ["tensor", dtype, list(X.shape), base64.b64encode(X.numpy().tobytes()).decode()]
def change(report, how):
    for run in report["runs"]:
        if "value" in run:
            run["value"] = how(run["value"])
    return report
def deep(value):
    for _ in range(200):
        value = ["list", [value]]
    return value
def again(report):
    report["runs"] += copy.deepcopy(report["runs"])
    return report
def passed(report):
    return report | {"state": "passed", "points": 9, "verdict": "passed", "runs": []}
FORGED = {
    "my-one": lambda r: change(r, lambda v: floats(torch.full((3, 7), torch.nan).double())),
    "my-two": lambda r: change(r, deep),
    "my-three": again,
    "my-four": lambda r: r | {"runs": []},
    "my-five": passed,
    "my-six": lambda r: r | {"nonce": "0" * 32},
    "my-seven": lambda r: change(r, lambda v: ["tensor", "float64", [2**30, 2**30], ""]),
    "my-eight": lambda r: change(r, lambda v: ["decimal", "9e999999999"]),
    "my-later": lambda r: r | {"runs": [run | {"way": "again"} for run in r["runs"]]},
}
def forged(self, data, *args, **kwargs):
    report = json.loads(data[MIME]) if isinstance(data, dict) and MIME in data else None
    if report and report["task"] in FORGED:
        data = {MIME: json.dumps(FORGED[report["task"]](report))}
    return publish(self, data, *args, **kwargs)
type(pub).publish = forged
"""


def test_forged_records_earn_nothing_unless_their_numbers_are_right(source, assignment):
    """They bear the right nonce, read from what the probe sends; the honest one passes."""
    found = graded(source, assignment, answers_of(["return x"] * 9), FORGE)
    assert points(found) == {"my-honest"}, verdicts(found)


SEND_ITSELF = """
import json, sys, torch
k = get_ipython().kernel
MIME = "application/vnd.mha-course+json"
def say(kind, content):
    k.session.send(k.iopub_socket, kind, content, parent=k.get_parent())
def nonce():
    frame = sys._getframe()
    while "plan" not in frame.f_locals:
        frame = frame.f_back
    return frame.f_locals["plan"]["nonce"]
"""


def test_messages_sent_beside_the_kernel_earn_nothing_and_stop_nobody(source, assignment):
    """With the session's own key, of every kind and with content of any type."""
    record = '{"nonce": nonce(), "task": "TASK", "state": "run", "runs": [], "suspicious": []}'
    data = "{MIME: " + record + "}"
    bodies = [
        f"say('display_data', {{'data': {data}, 'metadata': {{}}}})\nreturn x",
        "say('error', {'ename': ['a'], 'evalue': [1, 2], 'traceback': []})\nreturn x",
        "say('display_data', {'data': MIME, 'metadata': {}})\nreturn x",
        "say('status', {'execution_state': 'idle'})\nreturn x",
        "say('display_data', {'data': {MIME: 7}, 'metadata': {}})\nreturn 2 * x",
        "say('clear_output', {'wait': False})\nreturn x",
        "say('update_display_data', {'data': {MIME: {}}, 'metadata': {}})\nreturn x",
        "say('stream', {'name': 5, 'text': ['a']})\nreturn x",
        "say('error', {})\nreturn x",
    ]
    bodies = [body.replace("TASK", name) for name, body in zip(DOUBLE, bodies, strict=False)]
    found = graded(source, assignment, answers_of(bodies), SEND_ITSELF)
    assert points(found) <= {"my-honest"}, verdicts(found)
    assert any("something else wrote" in note for note in found.human)
    # In the cell of an answer, where no results are due, it costs that task alone.
    alone = (
        answer("my-one", "return x")
        + "\nsay('error', {'ename': [1], 'evalue': [2], 'traceback': []})\ndel one"
    )
    found = graded(source, assignment, answers_of([]) | {"my-one": alone}, SEND_ITSELF)
    assert points(found) == {"my-honest"} and verdicts(found)["my-one"] == "error"


HOOKS = {
    "the source is replaced": (
        "ip = get_ipython()\n"
        "def change(lines):\n    return ['x = 1\\n'] if '_probe(' in ''.join(lines) else lines\n"
        "ip.input_transformers_cleanup.append(change)"
    ),
    "the cells do not run": "get_ipython().run_cell = lambda *a, **k: None",
    "the tree is replaced": (
        "import ast\nclass Empty(ast.NodeTransformer):\n"
        "    def visit_Module(self, node): return ast.Module(body=[], type_ignores=[])\n"
        "get_ipython().ast_transformers.append(Empty())"
    ),
    "errors are not shown": (
        "get_ipython().showtraceback = lambda *a, **k: None\n"
        "import builtins; builtins.callable = lambda x: 1/0"
    ),
    "the publisher is gone": "get_ipython().display_pub = None",
    "json writes nothing": "import json; json.dumps = lambda *a, **k: '{}'",
}


@pytest.mark.parametrize("hook", HOOKS)
def test_a_probe_that_sends_nothing_earns_nothing(source, assignment, hook, monkeypatch):
    """Not even for a right answer: marks rest on what arrived."""
    monkeypatch.setattr(nbval_run, "QUIET_SECONDS", 0.5)
    answers = answers_of(["return x"])
    assert not points(graded(source, assignment, answers, HOOKS[hook], 1.0)) - {"my-honest"}


ENDS = (
    "# NBVAL_SKIP\n",
    "# NBVAL_RAISES_EXCEPTION\nraise ValueError(1)\n",
    "exit(0)\n",
    "raise SystemExit\n",
    "%notmagic\nraise ValueError(2)\n",
    "# PYTEST_VALIDATE_IGNORE_OUTPUT\n1/0\n",
    "quit()\nimport sys; sys.exit(0)\n",
    "get_ipython().ask_exit()\n",
    "import atexit; atexit.register(lambda: 1/0)\n",
)


def test_ending_a_cell_oddly_earns_nothing_and_costs_nobody_else(source, assignment):
    """Comments that nbval obeys, exits, magics: a wrong answer is still one."""
    answers = {
        name: text + answer(name, "return x") for name, text in zip(DOUBLE, ENDS, strict=False)
    }
    found = graded(source, assignment, answers | answers_of([]))
    assert points(found) == {"my-honest"}, verdicts(found)
    assert set(verdicts(found)[name] for name in DOUBLE[:9]) <= {"wrong", "error", "missing"}


def test_a_crash_and_a_hang_cost_their_own_task(source, assignment):
    """Those before and after keep theirs, and a thread left behind does not answer for others."""
    late = "import threading, time\ndef wait():\n    time.sleep(99)\n"
    late += "threading.Thread(target=wait, daemon=True).start()\n"
    answers = {
        "my-one": HONEST.format("one"),
        "my-two": "import os\n" + answer("my-two", "os._exit(0)"),
        "my-three": late + HONEST.format("three"),
        "my-honest": HONEST.format("honest"),
    }
    found = graded(source, assignment, answers)
    assert points(found) == {"my-one", "my-three", "my-honest"}
    assert verdicts(found)["my-two"] == "crashed"
    assert any("my-three" in note and "thread" in note for note in found.human), found.human


BORROWING = (
    "return torch.softmax(x, -1)",
    "return getattr(torch, 'soft' + 'max')(x, -1)",
    "return torch.ops.aten.softmax.int(x, -1)",
    "return torch._C._VariableFunctions.softmax(x, -1)",
    "import functools\nreturn functools.partial(torch.Tensor.softmax, dim=-1)(x)",
    "return torch.nn.Softmax(-1)(x)",
    "return torch.jit.trace(lambda y: y.softmax(-1), x, check_trace=False)(x)",
    "return list(map(torch.special.softmax, [x], [-1]))[0]",
)


def test_the_finished_function_by_another_way_is_borrowed(source, assignment):
    """Whatever it is called through; what shows no call is told to a human as well."""
    answers = {name: answer(name, body) for name, body in zip(SOFT, BORROWING, strict=True)}
    found = graded(
        source, assignment, answers, "import torch, warnings\nimport torch.jit", seconds=10
    )
    assert [verdicts(found)[name] for name in SOFT] == ["borrowed"] * 8


HAVING_IT = """
import sys, types, torch, torch.nn.functional as F
copied = types.FunctionType(F.layer_norm.__code__, F.layer_norm.__globals__)
renamed = types.FunctionType(F.layer_norm.__code__, {**vars(F), "__name__": "__main__"})
made = object.__new__(torch.nn.LayerNorm)
forward = torch.nn.LayerNorm.forward
compiled = torch.compile(lambda x: torch.softmax(x, -1))
class Mine(torch.nn.LayerNorm): pass
"""
HAD = (
    "return copied(x, x.shape[-1:])",
    "return renamed(x, x.shape[-1:])",
    "return forward(made, x)",
    "sys.setprofile(None)\nreturn F.layer_norm(x, x.shape[-1:])",
    "return Mine(x.shape[-1]).double()(x)",
    "return torch.nn.modules.normalization.LayerNorm(x.shape[-1]).double()(x)",
    "return compiled(x)",
    "with torch._C.DisableTorchFunction():\n    return x.softmax(-1)",
)


def test_what_is_forbidden_is_away_before_a_cell_runs(source, assignment):
    """Under every name, its code too, so that none can be kept for later."""
    names = ("torch.nn.LayerNorm", "torch.nn.functional.layer_norm", "torch.softmax")
    tasks = {
        name: dataclasses.replace(task, forbidden=names) if name in SOFT else task
        for name, task in assignment.tasks.items()
    }
    assignment = dataclasses.replace(assignment, tasks=tasks)
    answers = {name: answer(name, body) for name, body in zip(SOFT, HAD, strict=True)}
    found = graded(source, assignment, answers, HAVING_IT, seconds=10)
    assert [verdicts(found)[name] for name in SOFT] == ["borrowed"] * 8


def test_what_one_task_forbids_another_one_may_use(source, assignment):
    """And a cell that fails only after its def has defined an answer."""
    tasks = dict(assignment.tasks)
    tasks["my-soft_one"] = dataclasses.replace(
        tasks["my-soft_one"], forbidden=("torch.nn.LayerNorm",)
    )
    answers = {
        "my-one": answer("my-one", "torch.nn.LayerNorm(2)\nreturn 2 * x"),
        "my-two": HONEST.format("two") + "\ntorch.nn.LayerNorm(2)",
    }
    found = graded(
        source, dataclasses.replace(assignment, tasks=tasks), answers, "import torch", seconds=10
    )
    told = [str(task.feedback) for task in found.tasks[:2]]
    assert points(found) == {"my-one", "my-two"}, told


def test_a_run_with_the_reference_gives_nothing_away(source, assignment):
    """The later answer sees the earlier one's solution, and all it can do is to be right."""
    peek = (
        "import inspect\nsource = '|'.join(get_ipython().user_ns.get('In', []))\n"
        "print(source, one.__code__.co_varnames)\n"
        "raise ValueError(source + str(one.__code__.co_varnames))"
    )
    answers = {
        "my-one": "import torch\n" + answer("my-one", "return 3 * torch.ones(5)"),
        "my-two": answer("my-two", "raise ValueError(x.tolist())"),
        "my-three": answer("my-three", "print(x.tolist())\nreturn torch.zeros(5)"),
        "my-later": answer("my-later", peek),
    }
    found = graded(source, assignment, answers | answers_of([]))
    assert points(found) == {"my-honest"} and found.kernels >= 2
    told = str([vars(task.feedback) for task in found.tasks])
    assert MARKER not in told
    X = cases_of(assignment, "my-two")[0].inputs["x"]
    for number in [*X.tolist(), *(2 * X).tolist()]:
        assert f"{abs(number):.4f}"[:6] not in told
    answers["my-later"] = answer("my-later", "return one(x)")
    found = graded(source, assignment, answers | answers_of([]))
    assert points(found) == {"my-later", "my-honest"}
    assert verdicts(found)["my-one"] == "wrong"


@pytest.mark.parametrize("lesson", assignments())
def test_what_a_kernel_is_sent_of_the_course_holds_no_answer(lesson):
    """None of the finished functions that the tasks forbid, no reference, no mistake."""
    loaded = load_assignment(lesson)
    modules = modules_of(loaded)
    text = "\n".join(modules.values())
    lent = "\n".join(slice_modules(loaded.lends, loaded.files).values()) if loaded.lends else ""
    for task in loaded.tasks.values():
        for kind in ("def", "class"):
            finished = f"{kind} {task.name}("
            assert finished not in text or finished in lent, task.id
        for name in task.forbidden:
            module, _, function = name.rpartition(".")
            assert f"def {function}(" not in modules.get(module, ""), name
    assert STAND_INS.items() <= modules.items() and len(lessons()) == len(assignments())
    assert "Mistake(" not in text and "TASK =" not in text


def test_what_is_decoded_is_data():
    """A pickle is nothing that the grader reads, whatever says that it is one."""
    import pickle

    class Bomb:
        def __reduce__(self):
            return os.system, ("true",)

    plan = types.SimpleNamespace(nonce="a", task="b", runs=[("first", 0)])
    with pytest.raises(ValueError, match="."):
        records.decode(pickle.dumps(Bomb()), plan)
