"""An instructor's own assignment, as the guide describes it: its example is taken from there."""

import copy
import json

import grading_class
import nbformat
import pytest
from results_made_up import read_grades

from mha_classroom.commands import cli
from mha_classroom.grading.kernels import jail

ANSWERS = {
    "right": ("def double(x):\n    return x + x", "passed", None),
    "squares": ("def double(x):\n    return x * x", "wrong", "squared"),
    "adds 1": ("def double(x):\n    return x + 1", "wrong", None),
    "fails": ("def double(x):\n    return y", "error", None),
    "blank": (None, "missing", None),
}


@pytest.fixture(scope="module")
def graded(tmp_path_factory):
    """The folder of reports after a class was graded with the guide's assignment."""
    reason = jail.unavailable()
    assert not reason, f"this test needs the sandbox, and {reason}"
    base = tmp_path_factory.mktemp("own")
    notebook = grading_class.write_own(base / "mine")
    for student, (source, *_) in ANSWERS.items():
        handed = copy.deepcopy(notebook)
        handed.cells[1].source = source or "def double(x):\n    raise NotImplementedError()"
        (base / "class" / student).mkdir(parents=True)
        nbformat.write(handed, base / "class" / student / "doubling.ipynb")
    options = ["--assignment", str(base / "mine"), "--workers", "2", "--timeout", "6"]
    assert cli.main(["grade", str(base / "class"), "--out", str(base / "out"), *options]) == 0
    return base / "out"


@pytest.mark.parametrize("student", ANSWERS)
def test_each_answer_gets_its_verdict(graded, student):
    results = json.loads((graded / "results.json").read_text(encoding="utf-8"))["results"]
    (result,) = [result for result in results if result["student"] == student]
    (task,) = result["tasks"]
    _, verdict, mistake = ANSWERS[student]
    assert (task["id"], task["verdict"], task["mistake"]) == ("my-double", verdict, mistake)
    assert (result["points"], result["max"]) == (3 if verdict == "passed" else 0, 3)
    assert result["problem"] == "" and result["human"] == []


def test_the_reports_speak_of_the_assignment(graded):
    rows = {row["student"]: row for row in read_grades(graded / "grades.csv")}
    assert set(rows) == set(ANSWERS)
    assert rows["right"]["my-double"] == rows["right"]["total"] == "3"
    page = (graded / "feedback" / "squares" / "doubling.html").read_text(encoding="utf-8")
    assert "Doubling" in page and "You square the numbers." in page


def test_nothing_is_left_in_the_folder_of_the_assignment(graded):
    names = sorted(path.name for path in (graded.parent / "mine").iterdir())
    assert names == ["doubling.ipynb", "doubling.py"]


def test_the_guide_says_what_the_notebook_needs():
    text = (grading_class.ROOT / "docs" / "grading.md").read_text(encoding="utf-8")
    for words in ('"my-double"', '"check-my-double"', "### BEGIN SOLUTION", "### END SOLUTION"):
        assert words in text
