"""`mine.load` takes the learner's own right answers, and says so when it cannot."""

import json
import os
import traceback

import nbformat
import pytest
import torch

from mha_classroom.checks import find
from mha_classroom.checks import learners_answers as mine

STEM = "04_head_splitting"
RIGHT = """def transpose_qkv(X, num_heads):
    B, L, D = X.shape
    return X.view(B, L, num_heads, D // num_heads).transpose(1, 2).flatten(0, 1)"""
WRONG = """def transpose_qkv(X, num_heads):
    B, L, D = X.shape
    return X.reshape(B * num_heads, L, D // num_heads)"""
BLANK = """def transpose_qkv(X, num_heads):
    # YOUR CODE HERE
    raise NotImplementedError()"""
COURSE = "04-transpose_qkv: the course's is used; "
YOURS = f"04-transpose_qkv: yours, from work/exercises/{STEM}.ipynb\n"


@pytest.fixture
def course(tmp_path, monkeypatch):
    """A clone with a learner's notebook in it: course(cells) writes it; a pair is (id, source)."""
    monkeypatch.setattr(mine, "find_root", lambda: tmp_path)
    for folder in ("work/exercises", "work/notebooks", "solutions"):
        (tmp_path / folder).mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "work" / "notebooks")

    def write(*cells, folder="work/exercises"):
        notebook = nbformat.v4.new_notebook()
        for cell in cells:
            grade_id, source = cell if isinstance(cell, tuple) else (None, cell)
            new = nbformat.v4.new_code_cell(source)
            if grade_id:
                new.metadata["nbgrader"] = {"grade_id": grade_id, "solution": True}
            notebook.cells.append(new)
        path = tmp_path / folder / f"{STEM}.ipynb"
        nbformat.write(notebook, path)
        return path

    return write


def is_right(transpose_qkv):
    X = torch.arange(12.0).reshape(1, 3, 4)
    return torch.equal(transpose_qkv(X, 2), X.view(1, 3, 2, 2).transpose(1, 2)[0])


def test_a_right_answer_is_the_learners_own(course, capsys):
    course("import torch", ("04-transpose_qkv", RIGHT))
    answer = mine.load("04-transpose_qkv")
    assert capsys.readouterr().out == YOURS
    assert is_right(answer) and answer is not find("04-transpose_qkv").reference
    assert answer.__globals__["__name__"] == f"work.{STEM}"


def test_quiet_says_nothing(course, capsys):
    course(("04-transpose_qkv", RIGHT))
    assert is_right(mine.load("04-transpose_qkv", quiet=True))
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize(
    ("cells", "said"),
    [
        ([("04-transpose_qkv", BLANK)], "yours in {place} is not written yet"),
        (
            [("04-transpose_qkv", WRONG)],
            "yours in {place} does not pass its check (split-without-transpose)",
        ),
        ([("04-transpose_qkv", "transpose_qkv = 3")], "does not pass its check (type)"),
        ([("04-transpose_qkv", "def transpose_qkv(:")], "yours in {place} ends in SyntaxError"),
        ([("04-transpose_qkv", "transpose_qkv = missing")], "ends in NameError: name 'missing'"),
        ([("04-transpose_qkv", "")], "your {place} does not define transpose_qkv"),
        (["import torch"], "your {place} does not define transpose_qkv"),
    ],
)
def test_otherwise_the_courses_is_used_and_why_is_said(course, capsys, cells, said):
    course(*cells)
    answer = mine.load("04-transpose_qkv")
    out = capsys.readouterr().out
    place = f"work/exercises/{STEM}.ipynb"
    assert out.startswith(COURSE) and said.format(place=place) in out
    assert answer is find("04-transpose_qkv").reference


def test_no_notebook_or_a_broken_one(course, capsys):
    assert is_right(mine.load("04-transpose_qkv"))
    assert capsys.readouterr().out == f"{COURSE}there is no work/exercises/{STEM}.ipynb\n"
    path = course(("04-transpose_qkv", RIGHT))
    for content in ("", "{", json.dumps({"cells": 3}), json.dumps([1])):
        path.write_text(content)
        assert is_right(mine.load("04-transpose_qkv"))
        out = capsys.readouterr().out
        assert out.startswith(COURSE) and "cannot be read" in out, content


def test_helpers_imports_and_constants_of_other_cells_come_along(course, capsys):
    course(
        "import torch as tt\nfrom math import prod",
        "AXES = (0, 2, 1, 3)\nSIGN = -1",
        "def cut(X, h):\n    return X.reshape(*X.shape[:2], h, SIGN)",
        (
            "04-transpose_qkv",
            "def transpose_qkv(X, num_heads):\n"
            "    X = tt.permute(cut(X, num_heads), AXES)\n"
            "    return X.reshape(prod(X.shape[:2]), *X.shape[2:])",
        ),
    )
    assert is_right(mine.load("04-transpose_qkv"))
    assert capsys.readouterr().out == YOURS


def test_nothing_else_of_the_notebook_is_run(course, capsys, tmp_path):
    course(
        "%matplotlib inline\n!touch from_shell",
        "open('from_a_call', 'w').close()\nprint('noise')",
        "kept = open('from_an_assignment', 'w')",
        "import a_package_that_is_not_there",
        "this is not Python",
        ("04-transpose_qkv", RIGHT + "\nopen('from_an_answer', 'w').close()\nprint('noise')"),
        "transpose_qkv(3)",
    )
    assert is_right(mine.load("04-transpose_qkv"))
    assert capsys.readouterr().out == YOURS
    assert not list((tmp_path / "work" / "notebooks").iterdir())


def test_a_trial_of_the_same_name_further_down_does_not_count(course, capsys):
    course(("04-transpose_qkv", RIGHT), WRONG)
    assert is_right(mine.load("04-transpose_qkv"))
    assert capsys.readouterr().out == YOURS


def test_an_answer_whose_cell_lost_its_mark_is_found_by_its_name(course, capsys):
    course("import torch", RIGHT)
    assert is_right(mine.load("04-transpose_qkv"))
    assert capsys.readouterr().out == YOURS


def test_a_notebook_saved_again_is_read_again(course, capsys):
    path = course(("04-transpose_qkv", BLANK))
    mine.load("04-transpose_qkv")
    course(("04-transpose_qkv", RIGHT))
    later = path.stat().st_mtime_ns + 10**9
    os.utime(path, ns=(later, later))
    mine.load("04-transpose_qkv")
    assert capsys.readouterr().out.endswith(YOURS)


def test_an_exception_later_on_shows_the_learners_own_line(course):
    course(("04-transpose_qkv", RIGHT))
    answer = mine.load("04-transpose_qkv", quiet=True)
    with pytest.raises(AttributeError) as raised:
        answer(None, 2)
    shown = "".join(traceback.format_exception(raised.value))
    assert f"{STEM}.ipynb, transpose_qkv" in shown and "B, L, D = X.shape" in shown


def test_outside_work_the_solutions_answer(course, capsys, monkeypatch, tmp_path):
    course(("04-transpose_qkv", RIGHT), folder="solutions")
    course(("04-transpose_qkv", BLANK))
    monkeypatch.chdir(tmp_path)
    assert is_right(mine.load("04-transpose_qkv"))
    said = f"04-transpose_qkv: the solution's, from solutions/{STEM}.ipynb\n"
    assert capsys.readouterr().out == said


def test_without_a_clone_the_course_answers(monkeypatch, capsys):
    def nowhere():
        raise mine.CourseError("not here")

    monkeypatch.setattr(mine, "find_root", nowhere)
    assert is_right(mine.load("04-transpose_qkv"))
    assert capsys.readouterr().out == f"{COURSE[:-2]}, as there are no notebooks here\n"


def test_an_id_that_does_not_exist_names_its_neighbours():
    with pytest.raises(ValueError, match="did you mean 04-transpose_qkv"):
        mine.load("04-transpose_qvk")
