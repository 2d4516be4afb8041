"""What the code of a submission names that no answer needs is listed for a human."""

import copy

import pytest
from handed_notebooks import cell_of

from mha_classroom.grading.fit.assignment import assignments, load_assignment
from mha_classroom.grading.fit.odd_names import odd_names
from mha_classroom.grading.judge.grade_submission import grade_notebook
from mha_classroom.grading.settings import Limits, Settings

HIDDEN = {  # calls of what the task asks to write, each of which the watch misses
    "modes off": "with torch._C.DisableTorchFunction(), torch._C._DisableTorchDispatch():\n"
    "        return torch.softmax(x, -1)",
    "names taken": "from torch.overrides import _get_current_function_mode_stack as functions\n"
    "    from torch.utils._python_dispatch import _get_current_dispatch_mode_stack as below\n"
    "    for mode in [*functions(), *below()]:\n        mode.names = {}\n"
    "    return torch.softmax(x, -1)",
    "a thread from before": "return pool.submit(torch.softmax, x, -1).result()",
}
POOL = "from concurrent.futures import ThreadPoolExecutor\n\npool = ThreadPoolExecutor(1)\n"
POOL += "pool.submit(int).result()\n\n\n"


@pytest.mark.parametrize("way", HIDDEN)
def test_what_deceives_the_watch_is_seen_in_the_text(source, way):
    assignment = load_assignment("01_attention_math")
    notebook = copy.deepcopy(assignment.exercise)
    first = POOL if "pool" in HIDDEN[way] else ""
    cell_of(notebook, "01-softmax").source = f"{first}def softmax(x):\n    {HIDDEN[way]}\n"
    graded = grade_notebook(notebook, assignment, Settings(7, Limits(10.0)), source)
    assert graded.human and "which no answer needs" in graded.human[0]


@pytest.mark.parametrize(
    ("cell", "names"),
    [
        ("import sys\nsys._getframe(1).f_locals", ["_getframe", "f_locals"]),
        ("from mha_classroom.checks import compare", ["mha_classroom"]),
        ("getattr(f, '__code__')", ["__code__"]),
        ("%matplotlib inline\nexec('1')", ["exec"]),
        ("import gc\ngc.collect()\nmodel.eval()  # and no exec\n'a text about __code__'", []),
        ("this is no Python _getframe", []),
    ],
)
def test_names(cell, names):
    assert odd_names(["x = 1", cell]) == names


@pytest.mark.parametrize("stem", sorted(assignments()))
def test_no_solution_names_any(stem):
    assignment = load_assignment(stem)
    for notebook in (assignment.solution, assignment.exercise):
        assert not odd_names(c.source for c in notebook.cells if c.cell_type == "code")
