"""Submissions of exercise set 04: what is told, or a class of any size with small differences."""

import json
from pathlib import Path

import nbformat

ROOT = Path(__file__).parents[2]
LESSON = "04_head_splitting"
SPLIT, MERGE, SPREAD, MODULE, LOAD, *_ = TASKS = (
    "04-transpose_qkv",
    "04-transpose_output",
    "04-spread_valid_lens",
    "04-MultiHeadAttention",
    "04-load_torch_weights",
    "04-split_packed",
    "04-repack",
    "04-transpose_grouped",
)
HEADS = "def transpose_qkv(X, num_heads):\n"
RENAMED = HEADS + (
    "    batch, words, width = X.shape\n"
    "    heads = X.reshape(batch, words, num_heads, width // num_heads)\n"
    "    return heads.permute(0, 2, 1, 3).reshape(batch * num_heads, words, -1)\n"
)
NOT_SWAPPED = HEADS + "    return X.reshape(X.shape[0] * num_heads, X.shape[1], -1)\n"
NO_BIASES = (
    "def load_torch_weights(attention, reference):\n"
    "    projections = (attention.W_q, attention.W_k, attention.W_v)\n"
    "    with torch.no_grad():\n"
    "        for linear, weight in zip(projections, reference.in_proj_weight.chunk(3)):\n"
    "            linear.weight.copy_(weight)\n"
    "        attention.W_o.weight.copy_(reference.out_proj.weight)\n"
)
ABORTS = "import os\n\n\ndef transpose_output(X, num_heads):\n    os.abort()\n"


def answers():
    """{task id: the source of its cell in the solution}."""
    solution = nbformat.read(ROOT / "solutions" / f"{LESSON}.ipynb", as_version=4)
    cells = {cell.metadata.get("nbgrader", {}).get("grade_id"): cell for cell in solution.cells}
    return {name: cells[name].source for name in TASKS}


def submission(written, exercise=None):
    """The exercise's notebook with answers in it, {task id: source}, as JSON text."""
    path = exercise or ROOT / "exercises" / f"{LESSON}.ipynb"
    notebook = nbformat.read(path, as_version=4)
    for cell in notebook.cells:
        name = cell.metadata.get("nbgrader", {}).get("grade_id")
        cell.source = written.get(name, cell.source)
    return json.dumps(notebook)


def honest(number):
    """Right answers that nobody else has: a comment of their own, sometimes other names."""
    right = answers()
    right[SPLIT] = RENAMED if number % 2 else right[SPLIT]
    return {name: f"# {number}\n{source}" for name, source in right.items()}


def mixed(number):
    """The text of a submission: mostly right, some wrong, blank, half done, crashing or broken."""
    right, kind = honest(number), number % 20
    changed = {3: {SPLIT: NOT_SWAPPED}, 8: {LOAD: NO_BIASES}, 13: {MERGE: ABORTS}}
    if kind == 18:
        return "{" + "}" * number
    if kind in (5, 10):
        return submission({name: right[name] for name in TASKS[: kind - 5]})
    return submission(right | changed.get(kind, {}))


def write_class(folder, texts):
    """Write submissions as folder/student 1/04_head_splitting.ipynb and so on."""
    for number, text in enumerate(texts):
        path = Path(folder, f"student {number:04}", f"{LESSON}.ipynb")
        path.parent.mkdir(parents=True)
        path.write_text(text, encoding="utf-8")
