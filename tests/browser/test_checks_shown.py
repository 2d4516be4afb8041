"""What a check shows can be read by everyone, in JupyterLab's light theme and in its dark one."""

import nbformat
import pytest
from accessibility import serious
from learner import Learner, ask, close_everything

pytestmark = [pytest.mark.browser, pytest.mark.xdist_group("checks")]
CELLS = (
    """from mha_course.checks import check, diagnose, find, progress


def made(task_id, *mistakes):
    task, parts = find(task_id), {}
    for mistake in task.mistakes:
        if mistake.id in mistakes:
            parts |= mistake.parts
    return task.build(**parts)


def transpose_qkv(X, num_heads):
    return X.unflatten(2, (num_heads, -1)).transpose(1, 2).flatten(0, 1)""",
    'diagnose("04-repack", made("04-repack", "reversed-axes"))',
    'diagnose("04-MultiHeadAttention", made("04-MultiHeadAttention", '
    '"split-without-transpose", "no-output-projection"))',
    'diagnose("04-transpose_qkv", lambda X, num_heads: 1.01 * transpose_qkv(X, num_heads))',
    'diagnose("04-transpose_qkv", lambda X, num_heads: X.reshape(5, 5))',
    'check("04-transpose_qkv", transpose_qkv)',
    "progress()",
)
SAID = (
    ("Read again: lesson 04",),
    ("Two things at once.",),
    ("Every number is 1.01 times the right one.",),
    ("what it means",),
    ("✓ passed: 04-transpose_qkv", "The course's solution"),
    ("Next: 01-",),
)
OUTPUT = ".jp-OutputArea-output"


@pytest.mark.parametrize("theme", ["Light", "Dark"])
def test_what_a_check_shows_can_be_read_by_everyone(course, new_tab, tmp_path, theme):
    close_everything(course.address)
    themes = "/lab/api/settings/@jupyterlab/apputils-extension:themes"
    ask(course.address, themes, {"raw": f'{{"theme": "JupyterLab {theme}"}}'}, "PUT")
    notebook = nbformat.v4.new_notebook(cells=[*map(nbformat.v4.new_code_cell, CELLS)])
    notebook.metadata.kernelspec = {"name": "python3", "display_name": "Python 3"}
    nbformat.write(notebook, course.work / "shown.ipynb")
    tab = new_tab(height=5000)  # all of it is in view, or axe would leave some out
    learner = Learner(course, tab)
    learner.open("shown.ipynb")
    learner.run_all(cells=len(CELLS))
    for cell, said in zip(CELLS[1:], SAID, strict=True):
        for words in said:
            learner.cell(cell).locator(OUTPUT, has_text=words).first.wait_for()
    tab.locator("details").evaluate_all("all => all.forEach(one => { one.open = true; })")
    tab.locator("details code").wait_for()
    tab.screenshot(path=tmp_path / f"{theme}.png")
    light = tab.locator("body").get_attribute("data-jp-theme-light")
    assert light == str(theme == "Light").lower()
    assert serious(tab, OUTPUT) == []
    assert tab.errors == []
