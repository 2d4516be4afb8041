"""Exercises made from solutions."""

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

from mha_course.classroom import release

GRADED = {"grade": True, "solution": False, "grade_id": "check-t", "points": 2}
SOLVED = {"grade": False, "solution": True, "grade_id": "t"}


def solution(source, metadata=SOLVED, **options):
    cell = new_code_cell(source, metadata={"nbgrader": metadata}, **options)
    return new_notebook(cells=[new_markdown_cell("statement"), cell])


def released(notebook):
    return release.release_notebook(notebook).cells[1]


def test_the_answer_becomes_a_line_to_replace_at_its_own_indentation():
    source = (
        "class A:\n    def f(self):\n        ### BEGIN SOLUTION\n        secret = 1\n"
        "        return secret\n        ### END SOLUTION\n\nA"
    )
    assert released(solution(source)).source == (
        "class A:\n    def f(self):\n        # YOUR CODE HERE\n"
        "        raise NotImplementedError()\n\nA"
    )


def test_hidden_tests_go_and_visible_ones_stay():
    source = "check(1)\n### BEGIN HIDDEN TESTS\nassert f(7) == 8\n### END HIDDEN TESTS"
    assert released(solution(source, GRADED)).source == "check(1)"


def test_outputs_and_counts_go_and_ids_and_metadata_stay():
    output = new_output("stream", name="stdout", text="42")
    notebook = solution("check(1)", GRADED, outputs=[output], execution_count=3)
    before = nbformat.writes(notebook)
    cell = released(notebook)
    assert (cell.outputs, cell.execution_count) == ([], None)
    assert cell.id == notebook.cells[1].id
    assert cell.metadata.nbgrader == GRADED
    assert nbformat.writes(notebook) == before


@pytest.mark.parametrize(
    ("source", "metadata", "message"),
    [
        ("### BEGIN SOLUTION\nx = 1", SOLVED, "cell t: .* never closed"),
        ("### END SOLUTION", SOLVED, "cell t: .* does not belong"),
        ("### BEGIN SOLUTION\n### BEGIN SOLUTION\n### END SOLUTION", SOLVED, "does not belong"),
        ("x = 1", SOLVED, "cell t: a solution region"),
        ("### BEGIN SOLUTION\nx\n### END SOLUTION", GRADED, "cell check-t: a solution region"),
        ("### BEGIN HIDDEN TESTS\nx", GRADED, "never closed"),
    ],
)
def test_markers_that_do_not_match_are_refused_by_name(source, metadata, message):
    with pytest.raises(ValueError, match=message):
        release.release_notebook(solution(source, metadata))


def test_a_grade_id_used_twice_is_refused():
    notebook = solution("check(1)", GRADED)
    notebook.cells.append(new_code_cell("check(2)", metadata={"nbgrader": GRADED}))
    with pytest.raises(ValueError, match="'check-t' is used twice"):
        release.release_notebook(notebook)


def test_main_writes_what_changed_and_removes_what_lost_its_solution(tmp_path):
    folder = tmp_path / "solutions"
    folder.mkdir()
    nbformat.write(solution("check(1)", GRADED), folder / "04_head_splitting.ipynb")
    stale = tmp_path / "exercises" / "99_gone.ipynb"
    stale.parent.mkdir()
    stale.write_text("{}")
    written = release.main(tmp_path)
    assert [path.name for path in written] == ["04_head_splitting.ipynb"]
    assert not stale.exists()
    assert release.main(tmp_path) == []
    exercise = nbformat.read(written[0], as_version=4)
    assert exercise.metadata.mha_course == {"exercise_set": "04_head_splitting", "version": 2}


def test_main_names_the_notebook_that_is_wrong(tmp_path):
    (tmp_path / "solutions").mkdir()
    nbformat.write(solution("x"), tmp_path / "solutions" / "04_head_splitting.ipynb")
    with pytest.raises(ValueError, match="04_head_splitting.ipynb: cell t"):
        release.main(tmp_path)
