"""A class whose every submission says what should become of it: CLASS, and `write_class`.

Mostly of lesson 04. Several mistakes share a student, so that the class stays small: a task that
is right but for earlier ones has to be carried.
"""

import copy
import json
import re
from dataclasses import dataclass, field
from pathlib import Path

import nbformat

ROOT = Path(__file__).parents[2]
LESSON, EARLIER = "04_head_splitting", "02_scaled_dot_product"
SPLIT, MERGE, SPREAD = "04-transpose_qkv", "04-transpose_output", "04-spread_valid_lens"
MODULE, LOAD = "04-MultiHeadAttention", "04-load_torch_weights"
PACKED, REPACK, GROUPED = "04-split_packed", "04-repack", "04-transpose_grouped"
TASKS = (SPLIT, MERGE, SPREAD, MODULE, LOAD, PACKED, REPACK, GROUPED)
POINTS = dict(zip(TASKS, (1, 1, 1, 3, 2, 2, 3, 2), strict=True))
SCORES, SOFTMAX, CAUSAL = "02-scaled_scores", "02-masked_softmax", "02-causal_mask"
ATTENTION, MENDED = "02-scaled_dot_product_attention", "02-mended_attention"
NEWER = ("02-window_mask", "02-packed_mask", "02-without_key")
HEADS = {
    SPLIT: "def transpose_qkv(X, num_heads):",
    MERGE: "def transpose_output(X, num_heads):",
    SPREAD: "def spread_valid_lens(valid_lens, num_heads):",
    LOAD: "def load_torch_weights(attention, reference):",
    CAUSAL: "def causal_mask(num_steps):",
    ATTENTION: "def scaled_dot_product_attention(queries, keys, values, valid_lens=None):",
}


@dataclass(frozen=True)
class Handed:
    """What one student hands in, and what should become of it.

    answers: {task id: source}, the solution's where there is none. change: of the notebook, before
    it is written. write: instead of writing it, into the student's folder. verdicts: {task id:
    (verdict, mistake)} of what does not pass. carried: {task id: earlier ones}. problem: how the
    row's problem begins. notes, human: parts of them; no human means that nobody is asked.
    """

    student: str
    answers: dict = field(default_factory=dict)
    change: object = None
    write: object = None
    verdicts: dict = field(default_factory=dict)
    carried: dict = field(default_factory=dict)
    problem: str = ""
    notes: tuple = ()
    human: tuple = ()
    lesson: str = LESSON


def body(task_id, *lines):
    """The source of an answer with these lines."""
    return "\n    ".join([HEADS[task_id], *lines])


def solution(lesson=LESSON):
    """{task id: source} of the right answers."""
    notebook = nbformat.read(ROOT / "solutions" / f"{lesson}.ipynb", as_version=4)
    marked = {cell.metadata.get("nbgrader", {}).get("grade_id"): cell for cell in notebook.cells}
    return {
        name: cell.source
        for name, cell in marked.items()
        if name and cell.metadata.nbgrader.solution
    }


RIGHT = solution()
_LOADED, _MODULE = RIGHT[LOAD], RIGHT[MODULE]

SPLITS = {
    "split-without-transpose": "X.reshape(X.shape[0] * num_heads, X.shape[1], -1)",
    "view-after-permute": "X.unflatten(-1, (num_heads, -1)).transpose(1, 2)"
    ".view(-1, X.shape[1], X.shape[2] // num_heads)",
    "features-interleaved": "X.reshape(*X.shape[:2], -1, num_heads).permute(0, 3, 1, 2)"
    ".flatten(0, 1)",
    "count-and-width-swapped": "X.reshape(*X.shape[:2], -1, num_heads).transpose(1, 2)"
    ".flatten(0, 1)",
    "heads-before-batch": "torch.cat(X.chunk(num_heads, -1), 0)",
    "axes-not-joined": "X.unflatten(-1, (num_heads, -1)).transpose(1, 2)",
    "words-and-features-swapped": "X.unflatten(-1, (num_heads, -1)).permute(0, 2, 3, 1)"
    ".flatten(0, 1)",
    "heads-beside-words": "X.unflatten(-1, (num_heads, -1)).flatten(0, 1)",
    "features-interleaved-and-heads-before-batch": "torch.cat([X[..., h::num_heads] for h in"
    " range(num_heads)])",
    "heads-reversed": "torch.stack(X.chunk(num_heads, -1)[::-1], 1).flatten(0, 1)",
    "words-cut-and-joined": "torch.cat(X.chunk(num_heads, 1))",
    "words-cut-and-stacked": "torch.stack(X.chunk(num_heads, 1), 1).flatten(0, 1)",
    "floats-whatever-X-holds": "X.float().unflatten(-1, (num_heads, -1)).transpose(1, 2)"
    ".flatten(0, 1)",
}
MERGES = {
    "merge-without-transpose": "X.reshape(-1, X.shape[1], num_heads * X.shape[2])",
    "merge-interleaved": "X.unflatten(0, (-1, num_heads)).permute(0, 2, 3, 1).flatten(2)",
    "merge-heads-before-batch": "X.unflatten(0, (num_heads, -1)).permute(1, 2, 0, 3).flatten(2)",
    "merge-interleaved-and-heads-before-batch": "X.reshape(num_heads, -1, *X.shape[1:])"
    ".permute(1, 2, 3, 0).flatten(2)",
    "heads-taken-for-the-batch": "X.unflatten(0, (num_heads, -1)).transpose(1, 2).flatten(2)",
    "heads-summed": "X.unflatten(0, (-1, num_heads)).sum(1)",
    "heads-averaged": "X.unflatten(0, (-1, num_heads)).mean(1)",
    "heads-reversed": "torch.cat([X[h::num_heads] for h in reversed(range(num_heads))], -1)",
    "axes-not-joined": "X.unflatten(0, (-1, num_heads)).transpose(1, 2)",
    "axes-neither-swapped-nor-joined": "X.unflatten(0, (-1, num_heads))",
    "merge-view-after-permute": "X.view(-1, num_heads, *X.shape[1:]).transpose(1, 2)"
    ".view(-1, X.shape[1], num_heads * X.shape[2])",
}
SPREADS = {
    "lengths-repeated-as-a-whole": "torch.cat([valid_lens] * num_heads)",
    "lengths-repeated-along-the-last-axis": "valid_lens.tile(num_heads)",
    "lengths-repeated-and-tables-refused": "valid_lens.repeat(num_heads)",
    "lengths-repeated-on-a-new-axis": "valid_lens.repeat(num_heads, 1)",
    "lengths-repeated-along-axis-1": "valid_lens.repeat(1, num_heads)",
    "heads-on-an-axis-in-front": "torch.stack([valid_lens] * num_heads)",
    "lengths-repeated-along-queries": "valid_lens.repeat_interleave(num_heads, dim=-1)",
    "axis-of-tables-only": "valid_lens.repeat_interleave(num_heads, dim=1)",
    "lengths-flattened": "valid_lens.repeat_interleave(num_heads)",
    "flattened-and-folded": "valid_lens.repeat_interleave(num_heads)"
    ".reshape(-1, *valid_lens.shape[1:])",
    "tables-not-spread": "valid_lens if valid_lens.dim() == 2"
    " else valid_lens.repeat_interleave(num_heads)",
    "lengths-not-spread": "valid_lens",
    "lengths-multiplied": "valid_lens * num_heads",
    "lengths-divided": "valid_lens.repeat_interleave(num_heads, dim=0) // num_heads",
    "lengths-clamped": "valid_lens.clamp(min=1).repeat_interleave(num_heads, dim=0)",
    "lengths-on-a-new-axis": "torch.stack([valid_lens] * num_heads, dim=1)",
}
_Q, _K, _V = "attention.W_q", "attention.W_k", "attention.W_v"
_IN, _OUT = "linear.weight.copy_(weight", "attention.W_o.weight.copy_(reference.out_proj.weight"
_OUT_BIAS = "attention.W_o.bias.copy_(reference.out_proj.bias)"
LOADS = {  # what is replaced in the solution
    "weights-transposed": ((_IN, f"{_IN}.T"), (_OUT, f"{_OUT}.T")),
    "in_proj-transposed": ((_IN, f"{_IN}.T"),),
    "out_proj-transposed": ((_OUT, f"{_OUT}.T"),),
    "keys-and-queries-swapped": ((f"{_Q}, {_K}", f"{_K}, {_Q}"),),
    "keys-and-values-swapped": ((f"{_K}, {_V}", f"{_V}, {_K}"),),
    "queries-and-values-swapped": ((f"{_Q}, {_K}, {_V}", f"{_V}, {_K}, {_Q}"),),
    "one-matrix-for-all": (
        ("weight.chunk(3)", "weight[:reference.embed_dim].expand(3, -1, -1)"),
        ("bias.chunk(3)", "bias[:reference.embed_dim].expand(3, -1)"),
    ),
    "packed-by-head": (
        (
            "weight.chunk(3)",
            "weight.unflatten(0, (reference.num_heads, 3, -1)).transpose(0, 1).flatten(1, 2)",
        ),
        (
            "bias.chunk(3)",
            "bias.unflatten(0, (reference.num_heads, 3, -1)).transpose(0, 1).flatten(1, 2)",
        ),
    ),
    "cut-into-columns": (("weight.chunk(3)", "weight.chunk(3, dim=1)"),),
    "output-projection-forgotten": ((f"{_OUT})", "pass"), (_OUT_BIAS, "pass")),
    "biases-forgotten": (("if reference.in_proj_bias is not None", "if False"),),
    "out_proj-bias-forgotten": ((_OUT_BIAS, "pass"),),
    "in_proj-bias-forgotten": (("linear.bias.copy_(bias)", "pass"),),
    "biases-always-expected-by-chunk": (("if reference.in_proj_bias is not None", "if True"),),
    "copied-the-wrong-way": (
        (f"{_IN})", "weight.copy_(linear.weight)"),
        (f"{_OUT})", "reference.out_proj.weight.copy_(attention.W_o.weight)"),
        ("linear.bias.copy_(bias)", "bias.copy_(linear.bias)"),
        (_OUT_BIAS, "reference.out_proj.bias.copy_(attention.W_o.bias)"),
    ),
    "gradients-recorded": (("torch.no_grad()", "torch.enable_grad()"),),
}
_DROPS = "self.dropout if self.training else 0.0"
MODULES = {
    "no-output-projection": (("self.W_o(transpose_output(", "(transpose_output("),),
    "no-dropout": ((_DROPS, "0.0"),),
    "dropout-in-eval": ((_DROPS, "self.dropout"),),
    "lengths-ignored": (("k, v, valid_lens,", "k, v, None,"),),
    "lengths-repeated-as-a-whole": (
        (
            "spread_valid_lens(valid_lens, self.num_heads)",
            "torch.cat([valid_lens] * self.num_heads)",
        ),
    ),
}


def _replaced(source, pairs):
    for old, new in pairs:
        assert source.count(old) == 1, old
        source = source.replace(old, new)
    return source


def _mistakes():
    """A student for each mistake in spreading; with them those in splitting, merging, loading."""
    kinds = {
        SPLIT: {name: body(SPLIT, f"return {text}") for name, text in SPLITS.items()},
        MERGE: {name: body(MERGE, f"return {text}") for name, text in MERGES.items()},
        SPREAD: {name: body(SPREAD, f"return {text}") for name, text in SPREADS.items()},
        LOAD: {name: _replaced(_LOADED, pairs) for name, pairs in LOADS.items()},
    }
    for number in range(len(SPREADS)):
        chosen = {
            task_id: list(made.items())[number]
            for task_id, made in kinds.items()
            if number < len(made)
        }
        answers = {task_id: source for task_id, (_, source) in chosen.items()}
        verdicts = {task_id: ("wrong", name) for task_id, (name, _) in chosen.items()}
        carried = {MODULE: [task_id for task_id in (SPLIT, MERGE, SPREAD) if task_id in chosen]}
        if number % 4:  # it takes time
            answers[MODULE], verdicts[MODULE], carried = None, ("missing", None), {}
        yield Handed(f"mistakes {number:02}", answers, verdicts=verdicts, carried=carried)


def cell_of(notebook, name):
    """The cell with a grade_id."""
    return next(c for c in notebook.cells if c.metadata.get("nbgrader", {}).get("grade_id") == name)


def _own(after, *sources):
    """A change that puts cells of the student's own below a cell."""

    def change(notebook):
        at = notebook.cells.index(cell_of(notebook, after)) + 1
        notebook.cells[at:at] = [nbformat.v4.new_code_cell(source) for source in sources]

    return change


def _stripped(notebook):
    """As some platforms hand notebooks on: no metadata, other ids; helpers at the top."""
    for number, cell in enumerate(notebook.cells):
        cell.metadata, cell.id = nbformat.NotebookNode(), f"new-{number}"
    notebook.metadata = nbformat.NotebookNode()
    helpers = "import math as m\nfrom functools import reduce\n\nHALF = 0.5", "def cut(X, H):\n"
    helpers = helpers[0], f"{helpers[1]}    return X.unflatten(-1, (H, X.shape[-1] // H))"
    notebook.cells[1:1] = [nbformat.v4.new_code_cell(source) for source in helpers]


def _moved(notebook):
    """The first answer and its check at the end, a check edited, another one twice."""
    for name in (SPREAD, f"check-{SPREAD}"):
        cell = cell_of(notebook, name)
        notebook.cells.remove(cell)
        notebook.cells.append(cell)
    cell_of(notebook, f"check-{MERGE}").source = "print('passed')"
    again = copy.deepcopy(cell_of(notebook, f"check-{LOAD}"))
    again.id = "again"
    notebook.cells.append(again)


def _torn(notebook):
    """One answer is missing, one stands twice, and no check is left."""
    notebook.cells = [c for c in notebook.cells if not c.source.startswith("check(")]
    notebook.cells.remove(cell_of(notebook, MERGE))
    first = copy.deepcopy(cell_of(notebook, SPLIT))
    first.id, first.source = "first", body(SPLIT, "return X")
    notebook.cells.insert(notebook.cells.index(cell_of(notebook, SPLIT)), first)


def _label(version, lesson=LESSON):
    def change(notebook):
        notebook.metadata["mha_course"] = {"exercise_set": lesson, "version": version}

    return change


def _file(content, name=f"{LESSON}.ipynb"):
    """A way to write a file of these bytes in place of the notebook."""
    return lambda folder, notebook: (folder / name).write_bytes(
        content if isinstance(content, bytes) else content(notebook)
    )


def _linked(folder, notebook):
    elsewhere = folder.parent.parent / "elsewhere.ipynb"
    elsewhere.write_text(json.dumps(notebook), encoding="utf-8")
    (folder / f"{LESSON}.ipynb").symlink_to(elsewhere)


def _linked_folder(folder, notebook):
    elsewhere = folder.parent.parent / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / f"{LESSON}.ipynb").write_text(json.dumps(notebook), encoding="utf-8")
    folder.rmdir()
    folder.symlink_to(elsewhere)


def _nbgrader(folder, notebook):
    (folder / LESSON).mkdir()
    (folder / LESSON / f"{LESSON}.ipynb").write_text(json.dumps(notebook), encoding="utf-8")


def _noisy(notebook):
    _own(
        SPREAD,
        "import matplotlib.pyplot as plt\nplt.plot([1, 2]);",
        "%timeit -n 1 -r 1 transpose_qkv(torch.ones(1, 2, 4), 2)",
        "!ls",
        "%pip install nothing-at-all",
        "1 / 0",
    )(notebook)


_EINSUM = {
    SPLIT: body(
        SPLIT,
        'four = torch.einsum("blhd->bhld", X.unflatten(-1, (num_heads, -1)))',
        "return four.flatten(0, 1)",
    ),
    MERGE: body(
        MERGE,
        "sequences = X.split(num_heads)",
        "return torch.stack([torch.cat(list(heads), dim=-1) for heads in sequences])",
    ),
    SPREAD: body(SPREAD, "return torch.stack([n for n in valid_lens for _ in range(num_heads)])"),
}
_LOOPS = {
    SPLIT: body(
        SPLIT,
        "d = X.shape[2] // num_heads",
        "output = X.new_empty(len(X) * num_heads, X.shape[1], d)",
        "for row in range(len(output)):",
        "    b, h = divmod(row, num_heads)",
        "    output[row] = X[b, :, h * d : (h + 1) * d]",
        "return output",
    ),
    SPREAD: "import numpy as np\n\n"
    + body(SPREAD, "return torch.from_numpy(np.repeat(valid_lens.numpy(), num_heads, axis=0))"),
    MODULE: _MODULE.split("        q = ")[0] + "        heads = []\n"
    "        projections = self.W_q(queries), self.W_k(keys), self.W_v(values)\n"
    "        for q, k, v in zip(*(X.chunk(self.num_heads, -1) for X in projections)):\n"
    "            drop = self.dropout * self.training\n"
    "            output, _ = scaled_dot_product_attention(q, k, v, valid_lens, dropout=drop)\n"
    "            heads.append(output)\n"
    "        return self.W_o(torch.cat(heads, -1))",
}
_LOUD = {
    SPLIT: RIGHT[SPLIT].replace("    B, L", '    print("X:", X)\n    B, L'),
    MERGE: "import warnings\n\n"
    + RIGHT[MERGE].replace("    _, L", '    warnings.warn("be warned")\n    _, L'),
}
_HANGS = body(SPREAD, "while True:", "    try:", "        pass", "    except:", "        pass")
_HANGS = _HANGS.replace("        pass\n    except", "        sum(range(1000))\n    except")
_SLEEPS = "import ctypes\n\n" + body(
    MERGE, "while True:", "    ctypes.PyDLL(None).sleep(1000)  # no signal is heard in there"
)
_FLOOD = 'print("x" * 99 + "\\n", end="")'
_BORROWING = _replaced(
    _MODULE,
    (
        (
            "self.W_o = nn.Linear(num_hiddens, num_hiddens, bias=bias)",
            "self.W_o = nn.Linear(num_hiddens, num_hiddens, bias=bias)\n"
            '        made = getattr(nn, "Multihead" + "Attention")\n'
            "        self.inner = made(num_hiddens, num_heads, batch_first=True)",
        ),
        ("        q = ", "        self.inner(*[self.W_q(queries)] * 3)\n        q = "),
    ),
)
MISSING = {task_id: ("missing", None) for task_id in TASKS}
NOT_RUN = {task_id: ("not run", None) for task_id in TASKS}
BLANK = dict.fromkeys(TASKS)  # left as they were handed out

CLASS = [
    Handed("Ann Example"),
    Handed("李明", _EINSUM),
    Handed("-rf", _LOOPS, write=_nbgrader),
    Handed(
        "O\"Brien & 'Co' <b>",
        _LOUD,
        _noisy,
        notes=("own code cells that were put in: 5",),
    ),
    Handed("=cmd|calc", change=_stripped, notes=("found by", "it does not say of which version")),
    *_mistakes(),
    *(
        Handed(
            f"module {name}",
            {MODULE: _replaced(_MODULE, pairs)},
            verdicts={MODULE: ("wrong", name)},
        )
        for name, pairs in MODULES.items()
    ),
    Handed("blank", BLANK, verdicts=MISSING),
    Handed(
        "half done",
        {SPREAD: None, LOAD: None},
        verdicts={SPREAD: ("missing", None), LOAD: ("missing", None)},
        carried={MODULE: [SPREAD]},
    ),
    Handed("hangs in a cell", change=_own(SPLIT, "while True:\n    pass")),
    Handed(
        "hangs in answers",
        {SPREAD: _HANGS, MERGE: _SLEEPS},
        verdicts={SPREAD: ("timeout", None), MERGE: ("timeout", None)},
        carried={MODULE: [MERGE, SPREAD]},
        human=("the code names ctypes",),
    ),
    Handed(
        "crashes",
        {
            SPLIT: "import os\n\n" + body(SPLIT, "os.abort()"),
            MERGE: "import ctypes\n\n" + body(MERGE, "ctypes.string_at(0)"),
            LOAD: "import os\n\n" + body(LOAD, "os._exit(0)"),
        },
        verdicts=dict.fromkeys((SPLIT, MERGE, LOAD), ("crashed", None)),
        carried={MODULE: [SPLIT, MERGE]},
        human=("the code names ctypes",),
    ),
    Handed(
        "kills itself",
        {SPREAD: "import sys\n\nsys.exit(0)\n\n\n" + RIGHT[SPREAD]},
        _own(SPLIT, "import os, signal\nos.kill(os.getpid(), signal.SIGKILL)", "exit()"),
        verdicts={SPREAD: ("error", None)},
        carried={MODULE: [SPREAD]},
    ),
    Handed(
        "memory",
        {
            SPLIT: body(SPLIT, "return bytearray(8 << 30)"),
            MERGE: body(MERGE, "return torch.ones(1 << 33)"),
            LOAD: "import mmap\n\n"
            + body(LOAD, "kept = [mmap.mmap(-1, 1 << 28) for _ in range(64)]", "return kept"),
        },
        verdicts={
            SPLIT: ("out of memory", None),
            MERGE: ("out of memory", None),
            LOAD: ("out of memory", None),
        },
        carried={MODULE: [SPLIT, MERGE]},
    ),
    Handed("crashes in many cells", change=_own(SPLIT, *["import os\n\nos.abort()"] * 9)),
    Handed(
        "prints 200 MB",
        {SPLIT: RIGHT[SPLIT].replace("    B, L", '    print("x" * 12_000_000)\n    B, L')},
        _own(SPLIT, f"for _ in range(2_000_000):\n    {_FLOOD}"),
    ),
    Handed(
        "borrows",
        {
            SPLIT: "from mha_course.multihead import transpose_qkv",
            MERGE: "from d2l import torch as d2l\n\n"
            + body(MERGE, "return d2l.transpose_output(X, num_heads)"),
            MODULE: _BORROWING,
        },
        verdicts=dict.fromkeys((SPLIT, MERGE, MODULE), ("borrowed", None)),
    ),
    Handed("moved", change=_moved, notes=("in another order", "edited", "duplicated")),
    Handed(
        "torn",
        change=_torn,
        verdicts={MERGE: ("missing", None)},
        carried={MODULE: [MERGE]},
        notes=("is missing", "stands twice", "deleted"),
        human=("different answers",),
    ),
    Handed(
        "old",
        lesson=EARLIER,
        change=_label(1, EARLIER),
        verdicts={task: ("not run", None) for task in (MENDED, *NEWER)},
        notes=("answers version 1",),
        human=("it answers version 1 of the exercises, where these are not, or otherwise",),
    ),
    Handed(
        "aliases",
        {
            ATTENTION: "import importlib\n\nF = importlib.import_module('torch.nn.functional')\n"
            "fused = vars(F)['scaled_dot_product_attention']\n\n\n"
            + body(
                ATTENTION,
                "weights = masked_softmax(scaled_scores(queries, keys), valid_lens)",
                "fused(queries, keys, values)",
                "return weights @ values, weights",
            )
        },
        lesson=EARLIER,
        verdicts={ATTENTION: ("borrowed", None)},
    ),
    Handed("new", change=_label(99), verdicts=NOT_RUN, problem="answers version 99"),
    Handed(
        "format 3",
        write=_file(lambda notebook: nbformat.writes(notebook, version=3).encode()),
    ),
]


def _broken(student, problem, write):
    return Handed(student, write=write, verdicts=NOT_RUN, problem=problem)


CLASS += [
    _broken(
        "cut off",
        "is not a notebook: malformed JSON",
        _file(lambda n: nbformat.writes(n)[:999].encode()),
    ),
    _broken(
        "format 5",
        "is a notebook of format version 5",
        _file(lambda n: json.dumps({**n, "nbformat": 5}).encode()),
    ),
    _broken("empty", "is empty", _file(b"")),
    _broken("binary", "is not a notebook: it has NUL", _file(bytes(range(256)))),
    _broken("zip", "is not a notebook but a zip", _file(b"PK\x03\x04" + bytes(99))),
    _broken("list", "is not a notebook: its JSON", _file(b"[]")),
    _broken("folder", "is a folder", lambda folder, _: (folder / f"{LESSON}.ipynb").mkdir()),
    _broken("link", "is a symbolic link", _linked),
    _broken("link to a folder", "the student's folder is a symbolic link", _linked_folder),
    Handed("nothing", write=lambda *_: None, verdicts=MISSING, problem="nothing was handed in"),
]


def notebook_of(handed):
    """The exercise with a student's answers in it."""
    path = ROOT / "exercises" / f"{handed.lesson}.ipynb"
    notebook = nbformat.read(path, as_version=4)
    for name, source in (solution(handed.lesson) | handed.answers).items():
        if source is not None:
            cell_of(notebook, name).source = source
    if handed.change:
        handed.change(notebook)
    return notebook


def write_class(folder, chosen=CLASS):
    """Write the submissions of a class into an empty folder."""
    for handed in chosen:
        place = Path(folder, handed.student)
        place.mkdir(parents=True)
        if handed.write:
            handed.write(place, notebook_of(handed))
        else:
            path = place / f"{handed.lesson}.ipynb"
            path.write_text(json.dumps(notebook_of(handed)), encoding="utf-8")


def documented(heading="A task of your own"):
    """The module in a section of the guide."""
    text = (ROOT / "docs" / "grading.md").read_text(encoding="utf-8")
    section = text.split(f"## {heading}\n")[1].split("\n## ")[0]
    (module,) = re.findall(r"```python\n(.*?)```", section, re.DOTALL)
    return module


def marked(source, **grading):
    """A code cell with nbgrader's metadata."""
    cell = nbformat.v4.new_code_cell(source)
    whole = {"schema_version": 3, "locked": False, "grade": False, "solution": False, "task": False}
    cell.metadata["nbgrader"] = {**whole, **grading}
    return cell


def write_own(folder, module=None, right="return 2 * x"):
    """Write the guide's assignment as doubling.ipynb and doubling.py; returns the notebook."""
    lines = ("def double(x):", "### BEGIN SOLUTION", right, "### END SOLUTION")
    notebook = nbformat.v4.new_notebook(
        cells=[
            nbformat.v4.new_markdown_cell("# Doubling"),
            marked("\n    ".join(lines), grade_id="my-double", solution=True),
            marked("assert double(2) == 4", grade_id="check-my-double", grade=True, points=3),
        ]
    )
    folder.mkdir(parents=True, exist_ok=True)
    nbformat.write(notebook, folder / "doubling.ipynb")
    text = documented() if module is None else module
    (folder / "doubling.py").write_text(text, encoding="utf-8")
    return notebook
