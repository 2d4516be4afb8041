"""nbgrader and `mha-course grade` give the same points for the same files."""

import contextlib
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from grading_copies import (
    LESSON,
    LOAD,
    MERGE,
    MODULE,
    NO_BIASES,
    NOT_SWAPPED,
    ROOT,
    SPLIT,
    SPREAD,
    TASKS,
    answers,
    submission,
)

from mha_course import cli

pytestmark = pytest.mark.prove
POINTS = {SPLIT: 2, MERGE: 2, SPREAD: 2, MODULE: 4, LOAD: 2}
CLASS = {
    "all right": ({}, set(TASKS)),
    "half done": ({SPREAD: None, MODULE: None, LOAD: NO_BIASES}, {SPLIT, MERGE}),
    "first one wrong": ({SPLIT: NOT_SWAPPED}, {MERGE, SPREAD, MODULE, LOAD}),
}
NO_VERSION = "it does not say of which version it is, so it is taken for version 2"
# A process of its own: nbgrader's warnings are not this course's.
NBGRADER = """
import json, sys
from nbgrader.apps import NbGraderAPI
from traitlets.config import Config

lesson, students = sys.argv[1], sys.argv[2:]
api = NbGraderAPI(config=Config({"CourseDirectory": {"root": "."}}))


def done(result):
    assert result["success"], result["log"] + result.get("error", "")


done(api.generate_assignment(lesson))
print("released", flush=True)
sys.stdin.readline()
for student in students:
    done(api.autograde(lesson, student))
    with api.gradebook as book:
        grades = book.find_submission_notebook(lesson, lesson, student).grades
        scores = {grade.name: grade.auto_score for grade in grades}
    print(json.dumps([student, scores]))
"""


@contextlib.contextmanager
def nbgrader(course, students):
    """Has nbgrader release the lesson, and gives a function that has it grade the students."""
    log = course / "nbgrader.log"
    with log.open("w") as errors:
        process = subprocess.Popen(
            [sys.executable, "-W", "ignore", "-c", NBGRADER, LESSON, *students],
            **{"cwd": course, "text": True, "stderr": errors},
            **{"stdin": subprocess.PIPE, "stdout": subprocess.PIPE},
            # It starts a program that is installed with it.
            env={
                **os.environ,
                "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
            },
        )

    def grades():
        said, _ = process.communicate("go on\n", timeout=300)
        assert process.returncode == 0, (said + log.read_text())[-4000:]
        lines = (line for line in said.split("\n") if line.startswith("["))
        return dict(map(json.loads, lines))

    try:
        while (line := process.stdout.readline()) != "released\n":
            assert line, log.read_text()[-4000:]
        yield grades
    finally:
        process.kill()
        process.communicate()


@pytest.fixture(scope="module")
def course(tmp_path_factory):
    """A course of nbgrader's, in which a class has answered what nbgrader has handed out."""
    course = tmp_path_factory.mktemp("course")
    (course / "source" / LESSON).mkdir(parents=True)
    shutil.copy(ROOT / "solutions" / f"{LESSON}.ipynb", course / "source" / LESSON)
    with nbgrader(course, list(CLASS)) as grades:
        write_class(course)
        yield course, grades


def write_class(course):
    released, right = course / "release" / LESSON / f"{LESSON}.ipynb", answers()
    for student, (changes, _) in CLASS.items():
        written = {name: source for name, source in (right | changes).items() if source}
        path = course / "submitted" / student / LESSON / f"{LESSON}.ipynb"
        path.parent.mkdir(parents=True)
        path.write_text(submission(written, released), encoding="utf-8")


def test_the_release_is_the_exercise(course):
    course, _ = course
    ours = json.loads((ROOT / "exercises" / f"{LESSON}.ipynb").read_text("utf-8"))
    released = json.loads((course / "release" / LESSON / f"{LESSON}.ipynb").read_text("utf-8"))
    sources = [["".join(cell["source"]).strip() for cell in X["cells"]] for X in (ours, released)]
    assert sources[0] == sources[1]


def test_honest_submissions_get_the_same_points(course, tmp_path):
    course, grades = course
    theirs = grades()
    words = ["grade", str(course), "--out", str(tmp_path / "out"), "--workers", "2"]
    assert cli.main(words) == 0
    results = json.loads((tmp_path / "out" / "results.json").read_text("utf-8"))["results"]
    ours = {result["student"]: result for result in results}
    assert ours.keys() == theirs.keys() == CLASS.keys()
    for student, (_, passed) in CLASS.items():
        points = {name: POINTS[name] if name in passed else 0 for name in TASKS}
        got = {task["id"]: task for task in ours[student]["tasks"]}
        assert {name: task["points"] for name, task in got.items()} == points, student
        # What nbgrader does not know: a later task that is right although an earlier one is not.
        carried = {name for name, task in got.items() if task["carried"]}
        assert carried == ({MODULE} if student == "first one wrong" else set())
        expected = {f"check-{name}": points[name] * (name not in carried) for name in TASKS}
        assert theirs[student] == expected, student
        assert ours[student]["notes"] == [NO_VERSION] and ours[student]["human"] == []
