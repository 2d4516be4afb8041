"""A kernel that ends in a cell of the exercise has been ended by a cell of the student's."""

import pytest
from handed_notebooks import cell_of, code, insert

from mha_classroom.grading.fit.assignment import load_assignment
from mha_classroom.grading.judge.grade_submission import grade_notebook
from mha_classroom.grading.results import Verdict
from mha_classroom.grading.settings import Limits, Settings

LESSON, FIRST = "11_reading_published_code", "11-mended_attend"
HOOK = """
import os
from IPython import get_ipython

def end(info):
    if "def found_step" in info.raw_cell:
        os._exit(1)

get_ipython().events.register("pre_run_cell", end)
"""


@pytest.mark.parametrize("own", [False, True], ids=["in an answer", "in a cell of their own"])
def test_what_ends_a_kernel_in_a_cell_of_the_exercise_is_left_out(source, own):
    assignment = load_assignment(LESSON)
    notebook = assignment.solution.copy()
    right = cell_of(notebook, FIRST)
    if own:
        insert(notebook, FIRST, code(HOOK))
    else:
        right.source += HOOK
    graded = grade_notebook(notebook, assignment, Settings(7, Limits(10.0)), source)
    assert not graded.fault
    assert {task.verdict for task in graded.tasks} == {Verdict.PASSED}
    assert any("in a cell of the exercise" in text for text in graded.human)
