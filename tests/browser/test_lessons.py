"""Every lesson, opened from the start page and run from top to bottom."""

import nbformat
import pytest
from clean_clone import ROOT
from learner import START

pytestmark = pytest.mark.browser  # each on its own, so that two workers share them
LONG = ("08_how_many_heads", "10_cross_attention", "12_your_bert")  # they train, so they go first
ALL = sorted(path.stem for path in (ROOT / "notebooks").glob("*.ipynb"))[1:]
LESSONS = sorted(ALL, key=lambda stem: stem not in LONG)


def outputs(path):
    cells = nbformat.read(path, as_version=4).cells
    return [output for cell in cells if cell.cell_type == "code" for output in cell.outputs]


def code_cells(path):
    return sum(cell.cell_type == "code" for cell in nbformat.read(path, as_version=4).cells)


def numbers(cells):
    return [f"[{number}]:" for number in range(1, cells + 1)]


def test_nothing_stands_in_the_way_of_the_start_page(learner):
    assert not learner.unsaved()
    assert learner.tab.locator(".Toastify__toast, .jp-Dialog").count() == 0
    cells = code_cells(ROOT / START)
    assert learner.run_all(cells) == numbers(cells) and not learner.tracebacks()
    assert min(learner.widths("svg[role=img]", 1)) > 100

    learner.run(learner.cell("progress()"), cells + 1)
    assert learner.restart_and_run_all(cells) == numbers(cells) and not learner.tracebacks()


@pytest.mark.parametrize("stem", LESSONS)
def test_a_lesson_opens_and_runs_from_top_to_bottom(learner, course, stem):
    name = f"notebooks/{stem}.ipynb"
    stored = outputs(ROOT / name)
    pictures = sum("image/png" in output.get("data", {}) for output in stored)
    drawings = sum("<svg" in output.get("data", {}).get("text/html", "") for output in stored)
    errors = sum(output.output_type == "error" for output in stored)  # those that are meant
    cells = code_cells(ROOT / name)
    before = (course.work / name).read_bytes()

    learner.follow(learner.page.locator(f"table a[href*='notebooks/{stem}.ipynb']"))
    learner.wait_until_ready(name)
    for done in (False, True):  # as it was handed out, and as it is run here
        if done:
            assert not learner.unsaved() and (course.work / name).read_bytes() == before
            assert learner.run_all(cells, errors) == numbers(cells), learner.tracebacks()
        for what, number in (("img", pictures), ("svg[role=img]", drawings)):
            widths = learner.widths(what, number)
            assert len(widths) >= number and all(width > 100 for width in widths)
        assert len(learner.tracebacks()) == errors
