"""Exercises ask for more than the page: what a lesson defines or prints answers few tasks."""

import ast
import inspect
import operator
import re
import symtable
import textwrap
import types
from pathlib import Path

import matplotlib
import nbformat
import pytest
import torch
from matplotlib import pyplot as plt

from mha_classroom.checks import diagnose, diagnosis, tasks
from mha_course import recall

ROOT = Path(__file__).parents[2]
LESSONS = sorted((ROOT / "notebooks").glob("*.ipynb"))[1:]
SHOWN = re.compile(r"getsource\(([\w.]+)\)")


@pytest.fixture
def as_a_kernel_has_it(monkeypatch):
    """The settings that a lesson changes, put back."""
    monkeypatch.chdir(ROOT / "notebooks")
    matplotlib.use("Agg")
    dtype, threads, state = (
        torch.get_default_dtype(),
        torch.get_num_threads(),
        torch.random.get_rng_state(),
    )
    yield
    torch.set_default_dtype(dtype)
    torch.set_num_threads(threads)
    torch.random.set_rng_state(state)
    plt.close("all")


SETTINGS = ("torch.set_", "torch.manual_seed")  # statements that later ones rest on


def needed(sources):
    """The statements of each cell that functions and classes need to work, by the names in them.

    What else a lesson does, such as training for a minute, and what it asserts is tried where
    notebooks are.
    """
    names, kept = set(), []
    for source in reversed(sources):
        statements = []
        for statement in reversed(ast.parse(source).body):
            text = ast.unparse(statement)
            table = symtable.symtable(text, "cell", "exec")
            binds = {symbol.get_name() for symbol in table.get_symbols() if symbol.is_assigned()}
            binds |= set(_changed(statement))
            definition = isinstance(statement, (ast.FunctionDef, ast.ClassDef))
            if definition or binds & names or text.startswith(("import ", "from ", *SETTINGS)):
                statements.insert(0, statement)
                names |= set(_globals(table))
        kept.insert(0, _WithoutAsserts().visit(ast.Module(statements, [])))
    return kept


def _changed(statement):
    """The names of what X[0] = 1, X.y = 1 and X.append(1) change."""
    for node in ast.walk(statement):
        stored = isinstance(getattr(node, "ctx", None), ast.Store) and not isinstance(
            node, ast.Name
        )
        if stored or getattr(node, "attr", "") in ("append", "extend", "update"):
            yield re.match(r"\w*", ast.unparse(node)).group()


def _globals(table):
    """The global names that a piece of code looks up, those in its functions included."""
    for symbol in table.get_symbols():
        if symbol.is_referenced() and (symbol.is_global() or table.get_type() == "module"):
            yield symbol.get_name()
    for child in table.get_children():
        yield from _globals(child)


class _WithoutAsserts(ast.NodeTransformer):
    def visit_Assert(self, node):
        return ast.copy_location(ast.Pass(), node)


def run(path):
    """Everything that the cells of a lesson define or print, by name."""
    page = types.ModuleType("page")
    cells = nbformat.read(path, as_version=4).cells
    cells = [cell for cell in cells if cell.cell_type == "code"]
    for cell, statements in zip(cells, needed([cell.source for cell in cells]), strict=True):
        try:
            exec(compile(statements, path.name, "exec"), page.__dict__)
        except Exception:
            assert "raises-exception" in cell.metadata.get("tags", []), cell.source
        for name in SHOWN.findall(cell.source):  # printed, and so as good as written here
            shown = operator.attrgetter(name)(page)
            copied = types.ModuleType("page")
            copied.__dict__.update(vars(inspect.getmodule(shown)), __name__="page")
            exec(textwrap.dedent(inspect.getsource(shown)), copied.__dict__)
            setattr(page, f"{name} as printed", getattr(copied, shown.__name__))
    return {
        name: value
        for name, value in vars(page).items()
        if isinstance(value, (types.FunctionType, type)) and value.__module__ == "page"
    }


def points(stem):
    """{task id: points} of an exercise set."""
    cells = nbformat.read(ROOT / "solutions" / f"{stem}.ipynb", as_version=4).cells
    marks = [cell.metadata.get("nbgrader", {}) for cell in cells]
    return {
        mark.grade_id.removeprefix("check-"): mark.points for mark in marks if mark.get("grade")
    }


@pytest.mark.parametrize("path", LESSONS, ids=lambda path: path.stem)
def test_at_least_half_of_the_points_are_not_on_the_page(path, as_a_kernel_has_it, monkeypatch):
    # Whether it is right is enough: nobody has to be told why not.
    monkeypatch.setattr(
        diagnosis, "_explained", lambda task, does, tried, index, failed, seed: failed
    )
    train = recall.train_recall  # no function rests on how well a model is trained
    monkeypatch.setattr(
        recall, "train_recall", lambda *given, **named: train(*given, **named | {"steps": 1})
    )
    defined, worth = run(path), points(path.stem)
    assert defined and set(worth) == {task for task in tasks() if task.startswith(path.stem[:2])}
    answered = {
        task: name
        for task in worth
        for name, value in defined.items()
        if diagnose(task, value).passed
    }
    on_the_page = sum(worth[task] for task in answered)
    print(f"{path.stem}: {on_the_page} of {sum(worth.values())} points on the page: {answered}")
    assert on_the_page <= sum(worth.values()) / 2, answered


def test_what_a_page_prints_counts_as_an_answer(tmp_path, as_a_kernel_has_it):
    source = "import inspect\nfrom mha_course import multihead\n"
    source += "print(inspect.getsource(multihead.split_heads))\ndef f(x):\n    return x"
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(source)])
    nbformat.write(notebook, tmp_path / "page.ipynb")
    defined = run(tmp_path / "page.ipynb")
    assert set(defined) == {"multihead.split_heads as printed", "f"}
    assert defined["multihead.split_heads as printed"](torch.ones(2, 3, 8), 4).shape == (2, 4, 3, 2)
