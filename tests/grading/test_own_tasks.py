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
    # What comes after the name is defined does not count.
    "fails below": ("def double(x):\n    return 2 * x\n\n\nassert double(2) == 5", "passed", None),
    "fails above": ("assert 2 == 3\n\n\ndef double(x):\n    return 2 * x", "error", None),
}
UNIT = "def unit(X):\n    return {}"
LINEAR = """class UnitLinear(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.{} = nn.Linear(width, width, bias=False)

    def forward(self, X):
        return {}"""
RIGHT = UNIT.format("X / (X * X).sum(-1, keepdim=True).sqrt()")
RIGHT_TOO = LINEAR.format("linear", "unit(self.linear(X))")
NORMALIZE = "nn.functional.normalize({}, dim=-1)"
CLASSES = {  # the two answers, what becomes of each, and whether the earlier one was replaced
    "right": (RIGHT, RIGHT_TOO, "passed", "passed", False),
    "no linear": (RIGHT, LINEAR.format("layer", "unit(self.layer(X))"), "passed", "wrong", False),
    "a function": (RIGHT, "def UnitLinear(width):\n    pass", "passed", "wrong", False),
    "borrows": (UNIT.format(NORMALIZE.format("X")), RIGHT_TOO, "borrowed", "passed", True),
    "norm": (
        UNIT.format("X / X.norm(dim=-1, keepdim=True)"),
        RIGHT_TOO,
        "borrowed",
        "passed",
        True,
    ),
    "borrows too": (
        RIGHT,
        LINEAR.format("linear", NORMALIZE.format("self.linear(X)")),
        *("passed", "borrowed", False),
    ),
    "wrong": (UNIT.format("X / X.sum()"), RIGHT_TOO, "wrong", "passed", True),
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


@pytest.fixture(scope="module")
def classes(tmp_path_factory):
    """{student: the TaskResults as JSON} of the guide's assignment with a class.

    The students fill in what `mha-course release` made.
    """
    base = tmp_path_factory.mktemp("classes")
    (base / "mine").mkdir()
    text = grading_class.documented("More about tasks")
    (base / "mine" / "unit.py").write_text(text, encoding="utf-8")
    cells = [nbformat.v4.new_code_cell("import torch\nfrom torch import nn")]
    for name, source in (("unit", RIGHT), ("UnitLinear", RIGHT_TOO)):
        head, _, last = source.rpartition("\n")
        indent = last[: len(last) - len(last.lstrip())]
        lines = head, f"{indent}### BEGIN SOLUTION", last, f"{indent}### END SOLUTION"
        answer = grading_class.marked("\n".join(lines), grade_id=f"my-{name}", solution=True)
        check = grading_class.marked(name, grade_id=f"check-my-{name}", grade=True, points=1)
        cells += [answer, check]
    nbformat.write(nbformat.v4.new_notebook(cells=cells), base / "mine" / "unit.ipynb")
    assert cli.main(["release", str(base / "mine"), "--out", str(base / "handout")]) == 0
    for student, answers in CLASSES.items():
        handed = nbformat.read(base / "handout" / "unit.ipynb", as_version=4)
        assert "raise NotImplementedError()" in handed.cells[1].source
        handed.cells[1].source, handed.cells[3].source = answers[:2]
        (base / "class" / student).mkdir(parents=True)
        nbformat.write(handed, base / "class" / student / "unit.ipynb")
    options = ["--assignment", str(base / "mine"), "--workers", "2", "--timeout", "6"]
    assert cli.main(["grade", str(base / "class"), "--out", str(base / "out"), *options]) == 0
    written = json.loads((base / "out" / "results.json").read_text(encoding="utf-8"))
    return {result["student"]: result["tasks"] for result in written["results"]}


@pytest.mark.parametrize("student", CLASSES)
def test_a_class_that_uses_an_earlier_function(classes, student):
    *_, one, two, carried = CLASSES[student]
    tasks = classes[student]
    assert [task["verdict"] for task in tasks] == [one, two]
    assert tasks[1]["carried"] == (["my-unit"] if carried else [])
    if student == "no linear":
        said = "UnitLinear has no nn.Linear that is named linear."
        assert tasks[1]["feedback"]["message"] == said


def test_an_own_set_is_released_beside_its_solutions_and_never_over_them(tmp_path, capsys):
    grading_class.write_own(tmp_path / "mine")
    before = (tmp_path / "mine" / "doubling.ipynb").read_bytes()
    assert cli.main(["release", str(tmp_path / "mine"), "--out", str(tmp_path / "mine")]) == 2
    assert cli.main(["release", str(tmp_path / "mine")]) == 2
    assert cli.main(["release", str(tmp_path / "none"), "--out", str(tmp_path / "out")]) == 2
    assert "There is no assignment in" in capsys.readouterr().err
    assert (tmp_path / "mine" / "doubling.ipynb").read_bytes() == before
    assert not (tmp_path / "out").exists()


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
