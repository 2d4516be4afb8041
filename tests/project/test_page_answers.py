"""Exercises ask for more than the page: what a lesson defines or prints answers few tasks."""

import inspect
import operator
import re
import textwrap
import types
from pathlib import Path

import matplotlib
import nbformat
import pytest
import torch
from matplotlib import pyplot as plt

from mha_classroom.checks import diagnose, diagnosis, tasks

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


def run(path):
    """Run the cells of a lesson; return everything that they define, by name."""
    page = types.ModuleType("page")
    for cell in nbformat.read(path, as_version=4).cells:
        if cell.cell_type != "code":
            continue
        try:
            exec(compile(cell.source, path.name, "exec"), page.__dict__)
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
