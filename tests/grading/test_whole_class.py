"""A whole class is graded by the command: everyone has a row, and every task its verdict."""

import contextlib
import dataclasses
import html
import json
import os
import re
import shutil
import signal
import time

import grading_class
import pytest
import torch
from grading_class import CLASS, EARLIER, LESSON, LOAD, POINTS, SPLIT, TASKS
from results_made_up import read_grades

from mha_classroom.checks.task import Draw
from mha_classroom.commands import cli
from mha_classroom.commands import grade as command
from mha_classroom.grading import local_pool as pools
from mha_classroom.grading.fit.assignment import load_assignment
from mha_classroom.grading.kernels import jail
from mha_classroom.grading.kernels import start_zygote as starting
from mha_classroom.grading.report.safe_text import feedback_path

SEED = 11
SMALL = ("Ann Example", "mistakes 04", "blank", "cut off")


@pytest.fixture(scope="module", autouse=True)
def sandbox():
    reason = jail.unavailable()
    assert not reason, f"these tests need the sandbox, and {reason}"


def grade(folder, out, *options, timeout="3"):
    """Run the command; returns its exit code."""
    options = ["--workers", "2", "--timeout", timeout, "--seed", str(SEED), *options]
    return cli.main(["grade", str(folder), "--out", str(out), *options])


def results_of(out):
    written = json.loads((out / "results.json").read_text(encoding="utf-8"))
    return {(result["student"], result["lesson"]): result for result in written["results"]}


@pytest.fixture(scope="module")
def source(sandbox):
    """What kernels are forked from, started once for all runs of this module."""
    with starting.zygote() as started, pytest.MonkeyPatch.context() as patch:
        patch.setattr(command, "zygote", lambda isolated: contextlib.nullcontext(started))
        yield


@pytest.fixture(scope="module")
def graded(tmp_path_factory, source):
    """The reports on the whole class."""
    base = tmp_path_factory.mktemp("class")
    grading_class.write_class(base / "in")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pools, "check_course", lambda *given: None)  # tried below
        assert grade(base / "in", base / "out") == 0
    return base / "out"


@pytest.fixture
def quick(monkeypatch, source):
    """Without the self-check."""
    monkeypatch.setattr(pools, "check_course", lambda *given: None)


@pytest.fixture(scope="module")
def small(tmp_path_factory, source):
    """A few submissions, and the reports on them; to be copied, not changed."""
    base = tmp_path_factory.mktemp("small")
    chosen = [handed for handed in CLASS if handed.student in SMALL]
    grading_class.write_class(base / "in", chosen)
    assert grade(base / "in", base / "out") == 0  # with the self-check
    return base


@pytest.fixture
def few(small, tmp_path):
    shutil.copytree(small, tmp_path / "few")
    return tmp_path / "few"


@pytest.mark.parametrize("handed", CLASS, ids=lambda handed: ascii(handed.student))
def test_each_submission_has_its_verdicts(graded, handed):
    result = results_of(graded)[handed.student, handed.lesson]
    assert bool(result["problem"]) == bool(handed.problem)
    assert result["problem"].startswith(handed.problem)
    for task in result["tasks"]:
        name = task["id"]
        expected = handed.verdicts.get(name, ("passed", None))
        assert (name, task["verdict"], task["mistake"]) == (name, *expected)
        assert (name, task["carried"]) == (name, handed.carried.get(name, []))
        assert task["points"] == (task["max"] if task["verdict"] == "passed" else 0)
    assert result["points"] == sum(task["points"] for task in result["tasks"])
    assert result["max"] == sum(task["max"] for task in result["tasks"])
    for part in handed.notes:
        assert any(part in note for note in result["notes"]), (part, result["notes"])
    assert len(result["human"]) == len(handed.human)
    for part, text in zip(handed.human, result["human"], strict=True):
        assert part in text


def test_many_known_mistakes_of_the_first_tasks_are_in_the_class():
    assignment = load_assignment(LESSON)
    named = {name: set() for name in TASKS}
    for handed in CLASS:
        for name, (_, mistake) in handed.verdicts.items():
            if name in named:
                named[name].add(mistake)
    for name in TASKS[:3]:
        known = {mistake.id for mistake in assignment.tasks[name].mistakes}
        assert len(known & named[name]) >= 10
    assert assignment.points == POINTS


def test_there_is_a_row_for_everyone(graded):
    rows = {(row["student"], row["lesson"]): row for row in read_grades(graded / "grades.csv")}
    results = results_of(graded)
    assert set(rows) == set(results)
    assert set(rows) == {(h.student, lesson) for h in CLASS for lesson in (LESSON, EARLIER)}
    for key, result in results.items():
        assert float(rows[key]["total"]) == result["points"]
        for task in result["tasks"]:
            assert float(rows[key][task["id"]]) == task["points"]
            assert rows[key][f"{task['id']} verdict"] == task["verdict"]
    raw = (graded / "grades.csv").read_text(encoding="utf-8-sig")
    assert not re.search(r"""^"?[=+@-]""", raw, re.MULTILINE)


def test_run_json_has_the_times_and_results_json_has_none(graded):
    run = json.loads((graded / "run.json").read_text(encoding="utf-8"))
    whole = json.loads((graded / "results.json").read_text(encoding="utf-8"))
    assert len(run["submissions"]) == len(whole["results"]) and run["seconds"] > 0
    assert run["settings"]["workers"] == 2 and run["settings"]["limits"]["seconds"] == 3
    assert whole["seed"] == SEED and "seconds" not in json.dumps(list(whole["results"][0]))
    written = (graded / "overrides.csv").read_text(encoding="utf-8-sig")
    assert written == "student,lesson,task,points,comment\n"


def test_everyone_has_a_page_and_no_page_gives_a_hidden_number_away(graded):
    hidden = set(hidden_numbers())
    assert len(hidden) > 1000
    for (student, lesson), result in results_of(graded).items():
        page = feedback_path(graded, student, lesson).read_text(encoding="utf-8")
        assert html.escape(student) in page and "<b>" not in page
        own = [task["feedback"]["details"] for task in result["tasks"]]
        shown = "".join(text for details in own for name, text in details if name[:5] == "yours")
        numbers = set(re.findall(r"\d+\.\d{3,}", page)) - set(re.findall(r"\d+\.\d{3,}", shown))
        assert not numbers & hidden


def hidden_numbers():
    """What was drawn for the answers of lesson 04, and what a right one makes of it, as text."""
    for task in load_assignment(LESSON).tasks.values():
        for case in task.cases(Draw(SEED)):
            known = task.kind == "function" and task.id != LOAD
            made = [task.reference(**case.inputs)] if known else []
            for X in (*case.inputs.values(), *made):
                if torch.is_tensor(X) and X.is_floating_point():
                    for x in X.flatten().tolist():
                        yield from (f"{abs(x):.{digits}f}" for digits in (3, 4, 5, 6))


def test_the_same_seed_gives_the_same_file(few, quick):
    assert grade(few / "in", few / "again") == 0
    first = (few / "out" / "results.json").read_bytes()
    assert (few / "again" / "results.json").read_bytes() == first


def test_one_is_graded_alike_in_any_class(graded, small):
    every = results_of(graded)
    for key, result in results_of(small / "out").items():
        assert every[key] == result


def test_resuming_grades_nothing_again_and_keeps_decisions(few, quick, monkeypatch):
    before = results_of(few / "out")
    monkeypatch.setattr(pools, "grade_submission", None)  # whatever is graded now fails
    with open(few / "out" / "overrides.csv", "a", encoding="utf-8") as file:
        file.write(f"blank,{LESSON},{SPLIT},0.5,said aloud\n")
    decided = (few / "out" / "overrides.csv").read_bytes()
    assert grade(few / "in", few / "out", "--resume") == 0
    assert results_of(few / "out") == before
    assert (few / "out" / "overrides.csv").read_bytes() == decided
    (row,) = [row for row in read_grades(few / "out" / "grades.csv") if row["student"] == "blank"]
    assert (row["total"], row[SPLIT], row[f"{SPLIT} verdict"]) == ("0.5", "0.5", "missing")
    page = feedback_path(few / "out", "blank", LESSON).read_text(encoding="utf-8")
    assert "said aloud" in page


def test_a_changed_submission_is_graded_again_and_it_alone(few, quick, monkeypatch):
    before, real = results_of(few / "out"), pools.grade_submission
    shutil.copy(few / "in" / "Ann Example" / f"{LESSON}.ipynb", few / "in" / "blank")

    def only_blank(handed_in, *rest):
        assert handed_in.student == "blank"
        return real(handed_in, *rest)

    monkeypatch.setattr(pools, "grade_submission", only_blank)
    assert grade(few / "in", few / "out", "--resume") == 0
    after = results_of(few / "out")
    assert after.pop(("blank", LESSON))["points"] == sum(POINTS.values())
    assert after == {key: before[key] for key in after}


def test_marks_that_are_there_are_not_overwritten_without_a_word(few, quick, capsys):
    before = (few / "out" / "results.json").read_bytes()
    assert grade(few / "in", few / "out") == 2
    assert "holds the marks of an earlier run" in capsys.readouterr().err
    assert (few / "out" / "results.json").read_bytes() == before
    assert grade(few / "in", few / "out", "--resume", "--overwrite") == 2
    shutil.rmtree(few / "in" / "blank")
    assert grade(few / "in", few / "out", "--overwrite") == 0
    assert ("blank", LESSON) not in results_of(few / "out")


def test_marks_of_other_submissions_stay(few, quick, tmp_path):
    before = results_of(few / "out")
    shutil.copytree(few / "in" / "Ann Example", tmp_path / "late" / "Bob")
    assert grade(tmp_path / "late", few / "out", "--resume") == 0
    after = results_of(few / "out")
    assert after.pop(("Bob", LESSON))["points"] == sum(POINTS.values())
    assert after == before
    rows = read_grades(few / "out" / "grades.csv")
    assert {row["student"] for row in rows} == {*SMALL, "Bob"}


def test_one_lesson_alone(tmp_path, quick, capsys):
    """Who hands in the next set early gives nobody else a zero."""
    honest = next(h for h in CLASS if h.student == "Ann Example")
    early = dataclasses.replace(honest, student="Early", lesson=EARLIER, answers={})
    grading_class.write_class(tmp_path / "in", [honest, early])
    assert grade(tmp_path / "in", tmp_path / "out", "--lesson", "04") == 0
    assert set(results_of(tmp_path / "out")) == {("Ann Example", LESSON), ("Early", LESSON)}
    assert grade(tmp_path / "in", tmp_path / "new", "--lesson", "99") == 2
    assert "There is no lesson '99'" in capsys.readouterr().err


WORKSHEET = """Identifier,Full name,Email address,Status,Grade,Last modified (submission)
Participant 12,Ann Example,ann@uni.example,,,"Monday, 23 November 2026, 12:05 AM"
Participant 13,Bob Li,bob@uni.example,,,"Sunday, 22 November 2026, 11:50 PM"
Participant 14,Eve Roe,eve@uni.example,,,-
"""
DUE = ("--due", "2026-11-22 23:59", "--penalty", "10")


@pytest.fixture
def moodles(tmp_path):
    """Moodle's download and its grading worksheet."""
    honest = next(h for h in CLASS if h.student == "Ann Example")
    for name in ("Ann Example_12", "Bob Li_13", "Stranger_99"):
        folder = f"{name}_assignsubmission_file"
        grading_class.write_class(tmp_path / "in", [dataclasses.replace(honest, student=folder)])
    (tmp_path / "sheet.csv").write_text(WORKSHEET, encoding="utf-8-sig")
    return tmp_path


def test_from_moodles_download_to_its_import(moodles, quick, capsys, monkeypatch):
    students, out = ("--students", str(moodles / "sheet.csv")), moodles / "out"
    assert grade(moodles / "in", out, *students, *DUE) == 0
    said = capsys.readouterr().out
    assert "Handed in: 1 of 2 late, as students.csv says." in said
    assert "1 at a time that is not known: Moodle's folders do not say when." in said
    assert "Stranger: no row has this name or id" in said
    assert f"may be theirs (1)\n  Eve Roe: {LESSON}\n" in said
    assert "Ann Example = Bob Li = Stranger, 04_head_splitting: the same text in all" in said
    best = sum(POINTS.values())
    assert (out / "moodle.csv").read_text("utf-8").splitlines() == [
        f"Full name,Username,ID number,Email address,{LESSON},total",
        f"Ann Example,,,ann@uni.example,{0.9 * best:g},{0.9 * best:g}",
        f"Bob Li,,,bob@uni.example,{best:g},{best:g}",
        "Eve Roe,,,eve@uni.example,-,-",
    ]
    assert f"Points Possible,,,,,{best:g},{best:g}" in (out / "canvas.csv").read_text("utf-8")
    page = (out / "index.html").read_text("utf-8")
    assert "1 d late" in page and "Eve Roe" in page and "Bob Li</a> = <a href" in page
    # What an instructor then decides counts, and what was told once need not be told again.
    monkeypatch.setattr(pools, "grade_submission", None)  # whatever is graded now fails
    with open(out / "overrides.csv", "a", encoding="utf-8") as file:
        file.write(f"Ann Example,{LESSON},penalty,0,ill\n")
    assert grade(moodles / "in", out, "--resume") == 0
    assert f"ann@uni.example,{best:g},{best:g}" in (out / "moodle.csv").read_text("utf-8")
    ann = read_grades(out / "grades.csv")[0]
    assert (ann["days late"], ann["penalty"], ann["total"]) == ("1", "0", f"{best:g}")
    assert "ill" in ann["notes"] and "ill" in feedback_path(out, "Ann Example", LESSON).read_text()


def test_a_students_csv_that_is_none_stops_it_before_anything_is_graded(moodles, quick, capsys):
    bad = moodles / "class.csv"
    for text, words in (
        ("name,group\nAnn,1\n", "class.csv: the first line names no column with an id or a mail"),
        (WORKSHEET.replace("Monday, 23", "Montag, 23."), "class.csv, line 2: 'Montag, 23."),
    ):
        bad.write_text(text)
        assert grade(moodles / "in", moodles / "out", "--students", str(bad), *DUE) == 2
        assert words in capsys.readouterr().err
        assert not (moodles / "out" / "results.json").exists()


def test_reports_that_cannot_be_written_are_told_in_a_line(few, quick, capsys, monkeypatch):
    def full(*given, **named):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("mha_classroom.grading.grade_class.write_reports", full)
    assert grade(few / "in", few / "new") == 2
    assert f"{few / 'new'} cannot be written: No space left on device." in capsys.readouterr().err


def only_result(handed_in, *rest):
    """In place of grading, for tests of what is around it."""
    return pools.could_not(handed_in, pools._shared["loaded"], "")


def test_an_exception_in_the_grader_stops_no_other(few, quick, monkeypatch):
    errors = {"blank": RuntimeError("odd"), "mistakes 04": MemoryError()}

    def odd(handed_in, *rest):
        if handed_in.student in errors:
            raise errors[handed_in.student]
        return only_result(handed_in)

    monkeypatch.setattr(pools, "grade_submission", odd)
    assert grade(few / "in", few / "new") == command.NOT_ALL
    results = results_of(few / "new")
    assert len(results) == len(SMALL)
    for student, error in errors.items():
        problem = results.pop((student, LESSON))["problem"]
        assert problem == f"the grader failed: {type(error).__name__}: {error}"
    assert all(result["problem"] == "" for result in results.values())


@pytest.mark.parametrize("always", [False, True])
def test_a_worker_that_is_killed_loses_no_submission(few, quick, monkeypatch, always):
    killed = few / "killed"

    def deadly(handed_in, *rest):
        if handed_in.student == "blank" and (always or not killed.exists()):
            killed.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        time.sleep(0.05)
        return only_result(handed_in)

    monkeypatch.setattr(pools, "grade_submission", deadly)
    assert grade(few / "in", few / "new") == (command.NOT_ALL if always else 0)
    results = results_of(few / "new")
    assert killed.exists() and len(results) == len(SMALL)
    problem = "the process that graded it ended again and again" if always else ""
    assert results.pop(("blank", LESSON))["problem"] == problem
    assert all(result["problem"] == "" for result in results.values())


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--workers", "0"], "--workers has to be a number above 0, got 0"),
        (["--timeout", "-1"], "--timeout has to be a number above 0, got -1"),
        (["--timeout", "nan"], "--timeout has to be a number above 0, got nan"),
        (["--timeout", "inf"], "--timeout has to be a number above 0, got inf"),
        (["--deadline", "0"], "--deadline has to be a number above 0, got 0"),
        (["--deadline", "5"], "--deadline has to be --timeout, 20 s, or more, got 5"),
        (["--memory", "10"], "--memory has to be 64 MB or more, got 10"),
        (["--seed", "-1"], "--seed has to be a whole number from 0 up, got -1"),
        (["--assignment", "nowhere"], "There is no assignment in"),
        (["--due", "soon"], "--due: 'soon' is no time such as 2026-11-22"),
        (["--penalty", "10"], "--penalty needs --due"),
        (["--due", "2026-11-22", "--penalty", "-1"], "from 0 to 100, got -1"),
        (["--students", "nowhere.csv"], "There is no file nowhere.csv"),
    ],
)
def test_options_that_make_no_sense_are_refused(tmp_path, capsys, options, words):
    (tmp_path / "in" / "Ann").mkdir(parents=True)
    command_line = ["grade", str(tmp_path / "in"), "--out", str(tmp_path / "out"), *options]
    assert cli.main(command_line) == 2
    assert words in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_folders_that_cannot_be_graded_are_refused(tmp_path, capsys):
    (tmp_path / "empty").mkdir()
    (tmp_path / "file").touch()
    for folder, out, words in (
        ("nowhere", "out", "There is no folder"),
        ("file", "out", "There is no folder"),
        ("empty", "out", "There is nothing to grade in"),
        ("empty", "file", "is a file; --out has to be a folder"),
        ("empty", "empty/out", "where it would be taken for a student"),
        ("empty", "empty", "where it would be taken for a student"),
    ):
        assert grade(tmp_path / folder, tmp_path / out) == 2
        assert words in capsys.readouterr().err


def test_reports_may_lie_beside_nbgraders_submissions(tmp_path, capsys):
    (tmp_path / "submitted").mkdir()
    assert grade(tmp_path, tmp_path / "out") == 2
    assert "There is nothing to grade in" in capsys.readouterr().err


def test_without_a_sandbox_it_says_so(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(command, "unavailable", lambda: "the kernel says no")
    assert grade(tmp_path, tmp_path.parent / "never") == 2
    said = capsys.readouterr().err
    assert "the kernel says no" in said and "--no-sandbox" in said
    assert not (tmp_path.parent / "never").exists()


ACCEPTING = "def run(answer, inputs):\n    return 0\n\n\ndef double"


@pytest.mark.parametrize(
    ("change", "right", "words"),
    [
        (("", ""), "return 3 * x", "the solution of doubling gets 0 of 3 points for my-double"),
        (("lambda x: x**2", "lambda x: x + x"), "return 2 * x", "accepts the mistake squared"),
        (
            ("mistakes=(SQUARED,)", "run=run"),
            "return 2 * x",
            "the unsolved exercise of doubling gets 3 of 3 points for my-double",
        ),
    ],
)
def test_the_self_check_refuses(source, tmp_path, capsys, change, right, words):
    module = grading_class.documented().replace("def double", ACCEPTING).replace(*change)
    notebook = grading_class.write_own(tmp_path / "mine", module, right)
    (tmp_path / "in" / "Ann").mkdir(parents=True)
    (tmp_path / "in" / "Ann" / "doubling.ipynb").write_text(json.dumps(notebook))
    assert grade(tmp_path / "in", tmp_path / "out", "--assignment", str(tmp_path / "mine")) == 2
    said = capsys.readouterr().err
    assert "Nothing was graded" in said and words in said
    assert not (tmp_path / "out" / "grades.csv").exists()
