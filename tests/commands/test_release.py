"""Exercises made from solutions."""

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

from mha_classroom import exercises as release

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
    assert exercise.metadata.mha_course == release.exercise_set("04_head_splitting")


def test_main_names_the_notebook_that_is_wrong(tmp_path):
    (tmp_path / "solutions").mkdir()
    nbformat.write(solution("x"), tmp_path / "solutions" / "04_head_splitting.ipynb")
    with pytest.raises(ValueError, match="04_head_splitting.ipynb: cell t"):
        release.main(tmp_path)


def written_set(folder, *cells):
    """solutions/05_parameter_counting.ipynb with these cells, and nothing else."""
    (folder / "solutions").mkdir(exist_ok=True)
    header = new_markdown_cell(
        "Two tasks for [lesson 5](../notebooks/05.ipynb), 9 points, about 99 minutes. And more."
    )
    notebook = new_notebook(
        cells=[header, *cells, new_markdown_cell("All nine passed? Then rest.")]
    )
    nbformat.write(notebook, folder / "solutions" / "05_parameter_counting.ipynb")


def answer(name):
    return new_code_cell(
        f"def {name}():\n    ### BEGIN SOLUTION\n    return 1\n    ### END SOLUTION"
    )


def statement(minutes, points):
    return new_markdown_cell(
        f"## 5.1\n\nDifficulty ● · {minutes} minutes · {points} points\n\nSay."
    )


def test_what_follows_from_the_answers_is_written(tmp_path):
    cells = (statement(5, 2), answer("count_attention"), statement(10, 3), answer("count_block"))
    written_set(tmp_path, *cells)
    release.main(tmp_path)
    for folder in ("solutions", "exercises"):
        made = nbformat.read(tmp_path / folder / "05_parameter_counting.ipynb", as_version=4)
        assert made.cells[0].source.startswith(
            "Two tasks for [lesson 5](../notebooks/05.ipynb), 5 points, about 15 minutes. And more."
        )
        assert made.cells[7].source == "All two passed? Then rest."
        labels = [c.metadata.nbgrader for c in made.cells if "nbgrader" in c.metadata]
        assert [label.grade_id for label in labels] == [
            *("05-count_attention", "check-05-count_attention"),
            *("05-count_block", "check-05-count_block"),
        ]
        assert [(label.grade, label.solution, label.locked) for label in labels] == [
            *[(False, True, False), (True, False, True)] * 2
        ]
        assert [labels[1].points, labels[3].points] == [2, 3]
        assert made.cells[3].source == 'check("05-count_attention", count_attention)'
    assert release.main(tmp_path) == []


@pytest.mark.parametrize(
    ("cells", "message"),
    [
        ([statement(5, 2), answer("unknown")], "there is no task for the answer 05-unknown"),
        ([answer("count_block")], "05-count_block has no statement that says"),
        (
            [statement(5, 2), answer("count_block"), answer("count_bert")],
            "05-count_bert has no statement",
        ),
    ],
)
def test_an_answer_without_task_or_statement_is_refused(tmp_path, cells, message):
    written_set(tmp_path, *cells)
    with pytest.raises(ValueError, match=f"05_parameter_counting.ipynb: {message}"):
        release.main(tmp_path)
    assert not list((tmp_path / "exercises").glob("*.ipynb"))


def test_a_new_task_has_to_say_with_which_version_it_comes(tmp_path):
    written_set(tmp_path, statement(5, 2), answer("count_attention"))
    release.main(tmp_path)
    written_set(
        tmp_path,
        *(statement(5, 2), answer("count_attention")) * 1,
        statement(5, 2),
        answer("count_block"),
    )
    with pytest.raises(
        ValueError, match=r"05-count_block is new in this exercise set: give it since=\d"
    ):
        release.main(tmp_path)
