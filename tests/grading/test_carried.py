"""What is told of an answer is about it alone, whatever the earlier ones that it calls are like."""

import nbformat
import pytest
from grading_class import marked

from mha_classroom.grading.fit.assignment import load_assignment
from mha_classroom.grading.handed_in.read_notebook import parse
from mha_classroom.grading.judge.grade_submission import grade_notebook
from mha_classroom.grading.settings import Limits, Settings

TASKS = """
import torch

from mha_classroom.checks import Case, Task
from mha_classroom.checks.task import known, read_again

VERSION = 1


def cases(draw):
    return [Case("three numbers", {"X": draw.normal(3)}), Case("five", {"X": draw.normal(5)})]


def average(X):
    return torch.einsum("i->", X) / len(X)


def centred(X):
    return X - average(X)


def energy(X):
    return (centred(X) ** 2).sum()


MISTAKES = {"added": known("You add the mean.", "It is to be 0.", wrong=lambda X: X + X.mean())}
TASKS = [
    Task("my-average", average, cases, forbidden=("torch.mean",)),
    Task(
        "my-centred",
        centred,
        cases,
        mistakes=read_again("Means", MISTAKES),
        forbidden=("torch.mean",),
        uses=("my-average",),
    ),
    Task("my-energy", energy, cases, uses=("my-centred",)),
]
"""
RIGHT = {
    "average": "return torch.einsum('i->', X) / len(X)",
    "centred": "return X - average(X)",
    "energy": "return (centred(X) ** 2).sum()",
}


@pytest.fixture(scope="module")
def own(tmp_path_factory):
    """Three tasks of which each calls the one before."""
    folder = tmp_path_factory.mktemp("own")
    (folder / "means.py").write_text(TASKS, encoding="utf-8")
    cells = [nbformat.v4.new_code_cell("import torch")]
    for name, line in RIGHT.items():
        lines = f"def {name}(X):", "### BEGIN SOLUTION", line, "### END SOLUTION"
        cells.append(marked("\n    ".join(lines), grade_id=f"my-{name}", solution=True))
        check = f"{name}(torch.ones(2))"
        cells.append(marked(check, grade_id=f"check-my-{name}", grade=True, points=1))
    nbformat.write(nbformat.v4.new_notebook(cells=cells), folder / "means.ipynb")
    return load_assignment("means", folder)


@pytest.fixture
def grade(own, source):
    """A function that grades these sources in the place of right answers; returns the Grading."""

    def graded(**answers):
        notebook = nbformat.from_dict(own.exercise)
        notebook = parse(nbformat.writes(notebook).encode())
        for cell in notebook.cells:
            name = cell.metadata.get("nbgrader", {}).get("grade_id", "")[3:]
            if name in RIGHT:
                answer = answers.get(name, RIGHT[name])
                whole = answer.startswith(("def ", "import ", "from ", "X"))
                cell.source = answer if whole else f"def {name}(X):\n    {answer}"
        return grade_notebook(notebook, own, Settings(7, Limits(6.0)), source)

    return graded


def told(grading):
    """{name: (verdict, mistake, the tasks that the course answered)}"""
    return {t.id[3:]: (str(t.verdict), t.mistake, t.carried) for t in grading.tasks}


def feedback(grading, name):
    return next(task.feedback for task in grading.tasks if task.id == f"my-{name}")


PASSED = ("passed", None, ())
WRONG = ("wrong", None, ())
ONE, TWO = ("my-average",), ("my-average", "my-centred")


def test_right_answers_need_no_second_kernel(grade):
    grading = grade()
    assert told(grading) == dict.fromkeys(RIGHT, PASSED) and grading.kernels == 1


def test_the_mistake_of_a_later_answer_is_named_although_an_earlier_one_is_wrong(grade):
    grading = grade(average="return X.sum()", centred="return X + average(X)")
    assert told(grading) == {
        "average": WRONG,
        "centred": ("wrong", "added", ONE),
        "energy": ("passed", None, TWO),
    }
    assert feedback(grading, "centred").message.startswith("You add the mean.")


def test_the_first_wrong_step_is_looked_for_in_the_same_run(grade):
    grading = grade(average="return X.sum()", energy="return (centred(X) ** 2).sum() + 1")
    assert told(grading)["centred"] == ("passed", None, ONE)
    # Through the answer in between, which is right.
    assert told(grading)["energy"] == ("wrong", None, ONE)


def test_borrowing_in_an_earlier_task_is_not_the_later_ones(grade):
    grading = grade(average="return torch.mean(X)")
    assert told(grading) == {
        "average": ("borrowed", None, ()),
        "centred": ("passed", None, ONE),
        "energy": PASSED,
    }
    own = grade(average="return torch.mean(X)", centred="return X - torch.mean(X)")
    assert told(own)["centred"] == ("borrowed", None, ())


def test_a_remark_stands_where_it_belongs(grade):
    grading = grade(average="return X.float().sum().double() / len(X)")
    assert told(grading) == dict.fromkeys(RIGHT, PASSED)
    assert "float32" in str(feedback(grading, "average").remarks)
    assert feedback(grading, "centred").remarks == feedback(grading, "energy").remarks == ()
    both = grade(
        average="print(X)\n    return X.sum() / len(X)",
        centred="print(X)\n    return X - average(X)",
    )
    assert "prints" in str(feedback(both, "centred").remarks)
    assert feedback(both, "energy").remarks == ()


def test_what_an_earlier_answer_is_praised_for_is_not_said_of_a_later_one(grade):
    grading = grade()
    assert "einsum" in str(feedback(grading, "average").remarks)
    assert feedback(grading, "centred").remarks == ()
    assert "einsum" not in str(feedback(grade(average="return X.sum()"), "centred").remarks)


def test_a_helper_in_the_cell_of_a_wrong_answer_is_there(grade):
    helper = "def sizes(X):\n    return len(X)\n\n\ndef average(X):\n    {}"
    uses = "return X - X.sum() / sizes(X) + 0 * average(X)"
    for line, verdict in (("return None", "wrong"), ("import os; os.abort()", "crashed")):
        grading = grade(average=helper.format(line), centred=uses)
        assert told(grading)["average"] == (verdict, None, ())
        assert told(grading)["centred"] == ("passed", None, ONE)


def test_an_earlier_function_that_takes_other_arguments_changes_nothing(grade):
    grading = grade(
        average="def average(X, by):\n    return X.sum() / by",
        centred="return X - average(X, len(X) + 1)",
    )
    assert told(grading)["centred"] == WRONG


def test_an_answer_that_calls_an_unwritten_one_and_fails_by_itself(grade):
    grading = grade(average="raise NotImplementedError()", centred="return average(X) - y")
    assert told(grading)["centred"] == ("error", None, ONE)
    said = feedback(grading, "centred")
    assert "name 'y' is not defined" in said.message
    assert said.details[0][1] == "return average(X) - y"


SPY = """def centred(X):
    import base64
    raise ValueError(" ".join(map(str, average.__code__.co_consts)) + "x" * 400)"""


def test_nothing_of_the_courses_answer_can_be_told_by_the_code_that_calls_it(grade):
    grading = grade(average="return X.sum()", centred=SPY)
    assert told(grading)["centred"] == ("error", None, ONE)
    said = str(feedback(grading, "centred"))
    assert "i->" not in said and "xx" not in said
    for line in (
        "return average.__code__.co_consts",
        "return {c: X for c in map(str, average.__code__.co_consts)}",
        "raise type('-'.join(map(str, average.__code__.co_consts)), (ValueError,), {})",
        "import warnings; warnings.warn(str(average.__code__.co_consts)); return X - average(X)",
        "raise ValueError([ord(c) for c in str(average.__code__.co_consts)] * 9)",
    ):
        said = str(feedback(grade(average="return X.sum()", centred=line), "centred"))
        assert "i->" not in said and "105, 45" not in said
    sized = grade(average="return X.sum()", centred="return X @ torch.ones(7, 2) + average(X)")
    assert "(1x3 and 7x2)" in str(feedback(sized, "centred"))
    deep = grade(average="return X.sum() + y", centred="return average([X])")
    assert "einsum" not in str(feedback(deep, "centred"))
