"""One table says what can happen to an answer, and a result comes back from its file as it was."""

import inspect
import json
import re
from pathlib import Path

import pytest
from results_made_up import MERGE, SPLIT, good, result, task

from mha_classroom.checks import Feedback
from mha_classroom.grading.kernels.nbval_run import Run
from mha_classroom.grading.results import VERDICTS, Result, Verdict, of_end, of_feedback


def quoted(text):
    return set(re.findall(r'"([a-z ]+)"', text))


def test_each_kind_of_feedback_leads_to_one_verdict():
    kinds = [kind for row in VERDICTS.values() for kind in row.kinds]
    assert len(kinds) == len(set(kinds))
    documented = inspect.getdoc(Feedback).split("kind:")[1].split("message:")[0]
    assert quoted(documented) <= set(kinds) and "raises" in quoted(documented)


def test_each_end_of_a_kernel_leads_to_one_verdict():
    ends = [end for row in VERDICTS.values() for end in row.ends]
    documented = inspect.getdoc(Run).split("why:")[1].split("text:")[0]
    whole = {"deadline"}  # of a submission, whatever was running then: see Grading.stop
    assert sorted(ends) == sorted(quoted(documented) - whole) and len(ends) == len(set(ends))


@pytest.mark.parametrize(
    ("kind", "memory", "verdict"),
    [
        ("passed", True, Verdict.PASSED),
        ("raises", False, Verdict.ERROR),
        ("raises", True, Verdict.OUT_OF_MEMORY),
        ("unwritten", False, Verdict.MISSING),
        ("mistake", False, Verdict.WRONG),
        ("a kind that nobody has heard of", False, Verdict.WRONG),
    ],
)
def test_what_a_kind_of_feedback_means(kind, memory, verdict):
    assert of_feedback(kind, memory) == verdict


def test_what_an_end_means():
    verdict, sentence = of_end("memory")
    assert verdict == Verdict.OUT_OF_MEMORY
    assert "than the 512 MB" in sentence.format(seconds=1, megabytes=512)


def test_a_result_in_a_file_has_what_the_machine_found_and_comes_back():
    written = good().as_json()
    first = {"id", "verdict", "points", "max", "mistake", "carried", "feedback"}
    assert set(written["tasks"][0]) == first
    head = {"student", "lesson", "file", "problem", "notes", "human", "tasks", "points", "max"}
    assert set(written) == head and (written["points"], written["max"]) == (2.0, 5.0)
    assert Result.from_json(json.loads(json.dumps(written))) == good()


def test_points_are_added_without_rounding_errors():
    one = result(tasks=[task(SPLIT, "wrong", 0.1), task(MERGE, "wrong", 0.2, 3.0)])
    assert (one.points, one.max) == (0.3, 5.0)


def test_the_guide_explains_each_verdict():
    guide = (Path(__file__).parents[2] / "docs" / "grading.md").read_text("utf-8")
    table = guide.split("The verdicts:")[1].split("\n\n")[1]
    cells = re.findall(r"^\| ([a-z, ]+) \|", table, re.M)
    told = [word for cell in cells for word in cell.split(", ") if word != "verdict"]
    assert told == [verdict.value for verdict in Verdict]
