"""What is sent to the sandbox: enough to run, importable alone, and no reference or mistake."""

import ast
import json
import subprocess
import sys
import textwrap
import types

import pytest

from mha_classroom.checks import registry
from mha_classroom.checks.task import Task
from mha_classroom.grading.fit.assignment import assignments, load_assignment
from mha_classroom.grading.fit.slicing import slice_modules
from mha_classroom.grading.judge.make_plan import modules_of

TASKS = [registry.find(name) for name in registry.tasks()]
RUNS = {task.id: f"{task.run.__module__}.{task.run.__qualname__}" for task in TASKS}
OBSERVE = "mha_classroom.checks.outcome.observe"
OTHERS = (
    "mha_course.attention",
    "mha_course.bert.BertConfig",
    OBSERVE,
)

# Imports each slice in memory with the package refused otherwise; prints {root: what is wrong}.
ALONE = """
import builtins, dis, importlib, importlib.abc, importlib.util, json, sys, types, warnings
LIBRARIES
OWN = ("mha_course", "mha_classroom", "own_package")

class Finder(importlib.abc.MetaPathFinder, importlib.abc.InspectLoader):
    sources = {}
    def find_spec(self, name, path=None, target=None):
        if name in self.sources:
            package = any(other.startswith(name + ".") for other in self.sources)
            return importlib.util.spec_from_loader(name, self, is_package=package)
        if name.split(".")[0] in OWN:
            raise ModuleNotFoundError(f"{name} was not sent", name=name)
    def get_source(self, name):
        return self.sources[name]
    def is_package(self, name):
        return any(other.startswith(name + ".") for other in self.sources)

def codes(code):
    yield code
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from codes(constant)

def unknown(sources):
    for name, source in sources.items():
        module = importlib.import_module(name)
        for code in codes(compile(source, name, "exec")):
            for step in dis.get_instructions(code):
                if step.opname == "LOAD_GLOBAL":
                    if not hasattr(module, step.argval) and not hasattr(builtins, step.argval):
                        yield f"{name} has no {step.argval}"

sys.meta_path.insert(0, Finder())
found = {}
for root, sources in json.load(sys.stdin).items():
    Finder.sources = sources
    for name in [n for n in sys.modules if n.split(".")[0] in OWN]:
        del sys.modules[name]
    try:
        found[root] = list(unknown(sources))
        thing = root
        parts = root.split(".")
        if root not in sources:
            getattr(importlib.import_module(".".join(parts[:-1])), parts[-1])
    except Exception as error:
        found[root] = [f"{type(error).__name__}: {error}"]
SCRIPT
print(json.dumps(found))
"""


CALL_OBSERVE = """
from types import SimpleNamespace as Some
observe = importlib.import_module("mha_classroom.checks.outcome").observe
def call(answer, inputs):
    return answer(*inputs.values())
def wrong(X):
    print("looked at", X.shape)
    X += 1
    raise KeyError("seven")
task = Some(run=call, examine=None, forbidden=(), changes=())
case = Some(inputs={"X": torch.zeros(2, 3)})
one, two = observe(task, wrong, case), observe(task, lambda X: (X + 2, "a"), case)
found["one"] = [repr(one.error), one.printed, one.changed]
found["two"] = [two.value[0].tolist(), two.value[1], two.error, two.changed]
"""


def run_alone(slices, libraries="", script=""):
    done = subprocess.run(
        [sys.executable, "-c", ALONE.replace("LIBRARIES", libraries).replace("SCRIPT", script)],
        input=json.dumps(slices),
        capture_output=True,
        text=True,
        timeout=120,
        cwd="/",
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def test_every_slice_is_importable_alone_and_does_what_the_whole_does():
    roots = list(dict.fromkeys([*RUNS.values(), *OTHERS]))  # the last one is called: OBSERVE
    found = run_alone(
        {root: slice_modules([root]) for root in roots}, "import numpy, torch", CALL_OBSERVE
    )
    assert found.pop("one") == ["KeyError('seven')", "looked at torch.Size([2, 3])\n", ["X"]]
    assert found.pop("two") == [[[2.0] * 3] * 2, "a", None, []]
    assert found == {root: [] for root in roots}


def in_slices(slices):
    """The dotted names that slices define or import."""
    names = set()
    for module, source in slices.items():
        for node in ast.walk(ast.parse(source)):
            if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
                names.add(f"{module}.{node.name}")
            elif isinstance(node, ast.ImportFrom):
                names |= {f"{node.module}.{alias.name}" for alias in node.names}
            elif isinstance(node, ast.Import):
                names |= {alias.name for alias in node.names}
    return names


def finished(lesson=""):
    """Dotted names of all references, and of what answers may not call; or those of a lesson.

    A kernel runs the tasks of one lesson, so that it may hold what another one asks for.
    """
    tasks = [task for task in TASKS if task.id.startswith(lesson)]
    references = {
        f"{task.reference.__module__}.{task.reference.__qualname__.split('.')[0]}" for task in tasks
    }
    forbidden = {name for task in tasks for name in task.forbidden}
    return references | {name for name in forbidden if name.startswith("mha_course.")}


def test_the_names_of_references_are_known():
    assert {
        "mha_course.multihead.MultiHeadAttention",
        "mha_classroom.tasks.head_splitting.load_torch_weights.load_torch_weights",
        "mha_course.attention.masked_softmax",
    } <= finished()


@pytest.mark.parametrize("name", RUNS)
def test_no_run_brings_a_reference_or_a_mistake(name):
    slices = slice_modules([RUNS[name]])
    assert not in_slices(slices) & finished(name[:3])
    of_tasks = [name for name in slices if slices[name] and name.startswith("mha_classroom.tasks")]
    assert all(name.endswith(".runs") for name in of_tasks)
    assert not {module for module in slices if slices[module]} & {
        "mha_course",
        "mha_classroom",
        "mha_classroom.checks",
        "mha_classroom.checks.registry",
        "mha_course.interop",
        "mha_course.sentences",
    }


SENT = ("forbidden", "outcome", "running", "time_limit")


def test_observe_brings_neither_feedback_nor_tasks():
    sent = {name for name, source in slice_modules([OBSERVE]).items() if source}
    assert sent <= {f"mha_classroom.checks.{name}" for name in SENT}


def test_a_lent_class_comes_without_its_neighbours():
    slices = slice_modules(["mha_course.bert.BertConfig"])
    names = in_slices(slices)
    assert "mha_course.bert.BertConfig" in names
    assert not names & finished()


def test_a_whole_module_is_whole():
    slices = slice_modules(["mha_course.attention"])
    assert set(slices) == {"mha_course", "mha_course.attention"}
    assert slices["mha_course"] == ""
    assert {"mha_course.attention.AdditiveAttention"} <= in_slices(slices)


def make(folder, **files):
    for name, text in files.items():
        path = folder.joinpath("own_package", *name.split("__")).with_suffix(".py")
        path = path.with_name(path.name.replace("init.py", "__init__.py"))
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(text), encoding="utf-8")
    return {"own_package": folder / "own_package" / "__init__.py"}


def own(files, *roots):
    return slice_modules([f"own_package.{root}" for root in roots], files)


PACKAGE = {
    "init": "from own_package.a import wanted\nraise_on_import = 1 / 0\n",
    "a": '''
        """The docstring of a."""
        from __future__ import annotations
        import math, os as operating
        import own_package.b as bee
        from . import c, sub
        from .sub.deep import thing as renamed, unused_thing
        from .stars import *

        FACTOR, OTHER = 2, 3
        TABLE = {}
        TABLE["x"] = FACTOR
        TABLE.update(y=1)
        UNUSED = 1 / 0
        try:
            import own_package.fast as fast
        except ImportError:
            fast = None
        print("imported")

        def decorator(function): return function

        @decorator
        def wanted(x, default=FACTOR):
            """Ünïcode."""
            def inner():
                from .local import in_function
                return in_function(helper(x)), [hidden for hidden in range(3)]
            return inner, bee.used(1), c.sub_of_c.f, renamed, TABLE

        def helper(unused_function): return unused_function + math.pi
        def unused_function(): return UNUSED
        def hidden(): return UNUSED
        def starry(): return from_star()
        def guarded(): return fast.go()
        a = 1; b = 2
        def whole(): return dir(bee)
        if __name__ == "__main__":
            unused_function()
        ''',
    "b": "def used(x): return _more(x)\ndef _more(x): return x\ndef not_used(): return 1\n",
    "c": "import own_package.sub.deep as sub_of_c\nfrom . import b\n",
    "sub__init": "",
    "sub__deep": "def f(): return 5\nthing = 7\nunused_thing = 1 / 0\n",
    "local": "def in_function(x): return Class\nclass Class(dict):\n    x: int = 3\n",
    "stars": "def from_star(): return 1\ndef other_star(): return 2\n",
    "fast": "def go(): return 1\ndef stop(): return 2\n",
}


def test_imports_are_followed_name_by_name(tmp_path):
    slices = own(make(tmp_path, **PACKAGE), "a.wanted")
    names = {name.removeprefix("own_package.") for name in in_slices(slices)}
    assert {"a.wanted", "a.decorator", "a.helper", "b.used", "b._more"} <= names
    assert {"local.in_function", "local.Class", "sub.deep.f", "math"} <= names
    assert not names & {
        "os",
        "a.unused_function",
        "a.hidden",
        "b.not_used",
        "sub.deep.unused_thing",
    }
    assert slices["own_package"] == slices["own_package.sub"] == ""
    a = slices["own_package.a"]
    assert "TABLE.update" in a and 'TABLE["x"]' in a and "annotations" in a and "Ünïcode" in a
    assert "UNUSED" not in a and "print" not in a and "fast" not in a and "docstring" not in a
    assert "own_package.stars" not in slices and "thing = 7" in slices["own_package.sub.deep"]
    found = run_alone({"own_package.a.wanted": slices})
    assert found == {"own_package.a.wanted": []}


@pytest.mark.parametrize(
    ("root", "there", "absent"),
    [
        ("a.starry", {"stars.from_star"}, {"a.wanted", "b.used"}),
        ("a.guarded", {"fast.go", "a.guarded"}, {"fast.stop"}),
        ("a.whole", {"b.used", "b.not_used"}, {"a.wanted"}),
        ("wanted", {"a.wanted", "b.used"}, {"b.not_used"}),
        ("b", {"b.used", "b.not_used"}, {"a.wanted"}),
        ("local.Class.x", {"local.Class"}, {"local.in_function"}),
    ],
)
def test_roots(tmp_path, root, there, absent):
    names = in_slices(own(make(tmp_path, **PACKAGE), root))
    names = {name.removeprefix("own_package.") for name in names}
    assert there <= names and not absent & names


def test_statements_that_share_a_line(tmp_path):
    slices = own(make(tmp_path, **PACKAGE), "a.b")
    assert slices["own_package.a"].endswith("b = 2\n") and "a = 1" not in slices["own_package.a"]


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("def f(x):\n    match x:\n        case {'a': g, **rest}: return g, rest\n", False),
        ("def f(x):\n    global g\n    g = 1\n", True),
        ("def f():\n    try: pass\n    except ValueError as g: return g\n", False),
        ("f = lambda g: g\n", False),
        ("f = lambda x=g: x\n", True),
        ("def f(): return {k: g for k, g in {}.items()}\n", False),
        ("def f(): return [k for k in g()]\n", True),
        ("def f():\n    if (g := 3): return g\n", False),
        ("class f:\n    y = g()\n    def g(self): return 1\n", True),
        ("class f:\n    def g(self): return 1\n    def h(self): return g()\n", True),
        ("async def f(x: g): return 1\n", True),
        ("def f(): return 'g', x.g\nx = 1\n", False),
        ("def f():\n    def h(): return m.g()\n    import own_package.text as m\n", True),
    ],
)
def test_local_names_hide_global_ones(tmp_path, text, kept):
    slices = own(make(tmp_path, init="", text=text + "def g(): return 0\n"), "text.f")
    assert ("def g(): return 0" in slices["own_package.text"]) is kept


@pytest.mark.parametrize(
    ("root", "words"),
    [
        ("text.nothing", "own_package.text defines no 'nothing'"),
        ("text.f", "own_package.text imports own_package.gone"),
        ("text.g", "own_package.text imports lost from own_package.sub"),
        ("broken.f", "the source of own_package.broken cannot be read"),
    ],
)
def test_what_is_not_there_is_named(tmp_path, root, words):
    text = "import own_package.gone\nfrom own_package.sub import lost\n"
    text += "def f(): return own_package.gone.x\ndef g(): return lost\n"
    files = make(tmp_path, init="", text=text, sub__init="", broken="def f(:\n")
    with pytest.raises(ValueError, match=words):
        own(files, root)


def test_other_packages_are_no_roots():
    with pytest.raises(ValueError, match="'torch' that is to be cut out"):
        slice_modules(["torch.nn.Linear"])


def test_modules_of_one_file(tmp_path):
    path = tmp_path / "own tasks.py"
    path.write_text(
        "from mha_classroom.checks.task import AnswerError, Task\nimport torch\nimport helper\n"
        "def run(answer, inputs):\n    raise AnswerError(answer)\nTASKS = [Task('1-x', run, run)]\n"
    )
    slices = slice_modules(["own_tasks.run"], {"own_tasks": path})
    assert set(slices) == {
        "own_tasks",
        "mha_classroom",
        "mha_classroom.checks",
        "mha_classroom.checks.task",
    }
    names = in_slices(slices)
    assert "mha_classroom.checks.task.AnswerError" in names
    assert not names & {"mha_classroom.checks.task.Task", "torch", "helper"}


def test_the_default_run_brings_itself_alone():
    slices = slice_modules([f"{Task.run.__module__}.{Task.run.__qualname__}"])
    assert in_slices(slices) == {"mha_classroom.checks.task.call"}


def codes_of(code):
    """What tells a piece of code from others, of it and of the functions inside it.

    Pieces as short as `lambda x: x**2` say nothing and may stand anywhere.
    """
    found = {(code.co_code, code.co_names)} if len(code.co_code) >= 60 else set()
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            found |= codes_of(constant)
    return found


def codes_of_callables(*things):
    found = set()
    for thing in things:
        if isinstance(thing, type):
            found |= codes_of_callables(*vars(thing).values())
        elif hasattr(thing, "__code__"):
            found |= codes_of(thing.__code__)
    return found


def secrets_of(task):
    """What makes the cases of a task, compares, and is wrong in a known way."""
    mistakes = [(m.wrong, m.shows, *(m.parts or {}).values()) for m in task.mistakes]
    flat = [part for parts in mistakes for part in parts]
    return codes_of_callables(task.cases, task.examine, task.stages, task.build, *flat)


def sent_for(lesson):
    """The code of every module that a kernel may import for a lesson."""
    found = set()
    for name, source in modules_of(load_assignment(lesson)).items():
        found |= codes_of(compile(source, name, "exec"))
    return found


@pytest.mark.parametrize("lesson", assignments())
def test_nothing_that_is_sent_holds_a_reference_a_mistake_or_the_cases(lesson):
    sent = sent_for(lesson)
    assert len(sent) > 20
    for task in TASKS:
        assert not sent & secrets_of(task), task.id
    for task in registry.exercise_set(lesson).tasks:
        assert not sent & codes_of_callables(task.reference), task.id


def test_what_must_not_be_sent_would_be_seen():
    """The test above looks for something in nearly every task, and finds it where it is."""
    assert [task.id for task in TASKS if not secrets_of(task)] in ([], ["01-predictions"])
    assert len([task for task in TASKS if codes_of_callables(task.reference)]) > len(TASKS) / 2
    task = registry.find("04-transpose_qkv")
    whole = slice_modules([task.cases.__module__])
    found = set()
    for name, source in whole.items():
        found |= codes_of(compile(source, name, "exec"))
    assert secrets_of(task) & found
