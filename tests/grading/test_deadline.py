"""No submission holds the others: texts, hashes, hanging cells and hanging judges meet an end."""

import dataclasses
import json
import os
import signal
import subprocess
import sys
import time

import grade_under_faults
import pytest
from grading_class import CLASS, LESSON, MERGE, POINTS, RIGHT, SPLIT, write_class
from handed_notebooks import code, handed_in, insert
from test_judge import PLAN, REPORT

from mha_classroom.checks import diagnose, find
from mha_classroom.checks.exception_meanings import explain
from mha_classroom.checks.time_limit import OutOfTime, time_limit, waited
from mha_classroom.commands import cli
from mha_classroom.commands import grade as command
from mha_classroom.grading import local_pool as pools
from mha_classroom.grading.fit.assignment import load_assignment
from mha_classroom.grading.judge import grade_submission as grading
from mha_classroom.grading.judge.decoding import Decoder
from mha_classroom.grading.judge.judge_answer import hidden, judge
from mha_classroom.grading.judge.records import decode
from mha_classroom.grading.kernels import nbval_run
from mha_classroom.grading.results import of_feedback
from mha_classroom.grading.settings import Limits, Settings

ENOUGH = 20.0  # seconds for what takes a moment, and minutes if it is held
HONEST = next(h for h in CLASS if not h.verdicts and not h.problem and h.lesson == LESSON)
WHOLE = sum(POINTS.values())


def test_long_texts_are_cut_before_they_are_searched():
    """A dict with keys of 10,000 digits held a pattern for minutes."""
    digits = "1" * 10_000
    with time_limit(ENOUGH):
        shown = hidden(diagnose(SPLIT, lambda X, h: {f"{n}{digits}": n for n in range(500)}))
        assert len(str(shown)) < 10_000
        explain(ValueError("shape '[-1" * 10_000))
        diagnose(SPLIT, lambda X, h: int(digits * 100))


def test_numbers_whose_hashes_are_alike_hold_nobody():
    alike = [[["int", f"{n * (2**61 - 1):x}"], ["none"]] for n in range(100_000)]
    with time_limit(ENOUGH):
        assert len(Decoder().decode(["dict", alike])) <= 1_000


@pytest.mark.parametrize(("late", "word"), [(False, "error"), (True, "timeout")])
def test_records_without_their_runs_are_no_timeout(late, word):
    records = decode({**REPORT, "runs": REPORT["runs"][:3], "late": late}, PLAN)
    assert of_feedback(judge(find(SPLIT), records, 0).kind) == word


NO_NUMBERS = """
import os, sys, tempfile
from mha_classroom.checks import diagnose
for device in ("meta", "sparse"):
    change = lambda X: X.to("meta") if device == "meta" else X.to_sparse()
    wrong = diagnose("04-transpose_qkv", lambda X, h: change(X))
    assert wrong.kind == "shape", wrong
    answer = lambda X, h: change(X.unflatten(-1, (h, -1)).transpose(1, 2).flatten(0, 1))
    right = diagnose("04-transpose_qkv", answer)
    assert right.kind == "strange", right
assert "torch._dynamo" not in sys.modules
assert not os.listdir(tempfile.gettempdir())
"""


def test_tensors_without_numbers_leave_no_folder_behind(tmp_path):
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    subprocess.run([sys.executable, "-c", NO_NUMBERS], check=True, env=environment)


BUSY = "while True: pass"


@pytest.fixture
def hogged():
    """Four times as many busy processes as there are processors."""
    count = 4 * len(os.sched_getaffinity(0))
    others = [subprocess.Popen([sys.executable, "-c", BUSY]) for _ in range(count)]
    time.sleep(0.5)
    yield
    for other in others:
        other.kill()
        other.wait()


@pytest.mark.skipif(not os.path.exists("/proc/self/schedstat"), reason="Linux tells it")
def test_waiting_for_a_processor_uses_up_no_time(hogged):
    def compute(seconds):
        until = time.process_time() + seconds
        while time.process_time() < until:
            pass

    started, before = time.monotonic(), waited()
    with time_limit(0.5):
        compute(0.35)
    assert time.monotonic() - started > 0.5 and waited() - before > 0.2
    with pytest.raises(OutOfTime), time_limit(0.3):
        compute(30)
    with pytest.raises(OutOfTime), time_limit(0.3):
        time.sleep(30)


@pytest.fixture(scope="module")
def assignment():
    return load_assignment(LESSON)


def graded(notebook, assignment, source, **limits):
    settings = Settings(7, Limits(**limits))
    return grading.grade_notebook(notebook, assignment, settings, source)


def solved(assignment, *cells):
    """The right notebook with cells of the student's own before the second answer."""
    notebook = handed_in(assignment, **{name.split("-")[1]: text for name, text in RIGHT.items()})
    insert(notebook, "check-" + SPLIT, *map(code, cells))
    return notebook


HANGS = "import time\ndef {}():\n    pass\ntime.sleep(99)"


def test_what_is_graded_at_the_deadline_stays(assignment, source, untouched, monkeypatch):
    """Cells that hang one after another take no more time; the task before them is graded."""
    monkeypatch.setattr(nbval_run, "QUIET_SECONDS", 0.5)
    notebook = solved(assignment, *(HANGS.format(f"hang{n}") for n in range(6)))
    done = graded(notebook, assignment, source, seconds=5.0, deadline=30.0)
    assert done.verdicts.pop(SPLIT) == "passed", done.feedback[SPLIT]
    assert set(done.verdicts.values()) == {"timeout"} and done.kernels <= 4
    assert "The whole notebook took more than 30 s" in done.feedback[MERGE].message
    assert any("it took more than 30 s" in what for what in done.human)
    assert not done.fault


@pytest.mark.parametrize("hanging", [0, 1])
def test_only_where_no_cell_hangs_is_a_kernel_that_comes_too_late_a_fault(
    assignment, source, untouched, monkeypatch, hanging
):
    real, runs = grading.run_notebook, []

    def late(*given):
        runs.append(real(*given))
        if len(runs) <= hanging:
            return runs[0]
        return dataclasses.replace(runs[0], cells=[], why="deadline", stopped=None)

    monkeypatch.setattr(grading, "run_notebook", late)
    notebook = solved(assignment, *[HANGS.format("hang")] * hanging)
    done = graded(notebook, assignment, source, seconds=3.0)
    assert done.fault == ("" if hanging else "no kernel could be started in time")
    assert "timeout" in done.verdicts.values()


def test_what_holds_the_judge_costs_that_task_alone(assignment, source, untouched, monkeypatch):
    real = grading.judge

    def held(task, *rest):
        while task.id == SPLIT:
            pass
        return real(task, *rest)

    monkeypatch.setattr(grading, "judge", held)
    monkeypatch.setattr(grading, "JUDGING", 3.0)
    done = graded(solved(assignment), assignment, source)
    assert done.verdicts.pop(SPLIT) == "timeout"
    assert set(done.verdicts.values()) == {"passed"}
    assert f"{SPLIT}: what it returned takes too long to be judged" in done.human


def test_a_deadline_that_others_used_up_is_no_mark(assignment, source, untouched, monkeypatch):
    real = grading.run_notebook

    def starved(*given):
        return dataclasses.replace(real(*given), why="deadline", stopped={}, waited=1e9)

    monkeypatch.setattr(grading, "run_notebook", starved)
    done = graded(solved(assignment), assignment, source)
    assert "others kept the processors busy" in done.fault
    assert set(done.verdicts.values()) == {"passed"}  # what came of it before that


def test_an_exception_with_half_a_character_is_an_error(assignment, source, untouched):
    notebook = handed_in(assignment, transpose_qkv='raise ValueError("\\ud800")')
    done = graded(notebook, assignment, source)
    assert done.verdicts[SPLIT] == "error"
    assert "ends in ValueError: ?" in done.feedback[SPLIT].message


COMPILED = """
@torch.compile
def transpose_qkv(X, num_heads):
    return X.unflatten(-1, (num_heads, -1)).transpose(1, 2).flatten(0, 1)
"""
OPTIONS = """
@torch.compile(dynamic=True)
def transpose_output(X, num_heads):
    return X.unflatten(0, (-1, num_heads)).transpose(1, 2).flatten(2)
"""


def test_what_is_compiled_runs_as_it_is(assignment, source, untouched):
    notebook = handed_in(assignment, transpose_qkv=COMPILED, transpose_output=OPTIONS)
    done = graded(notebook, assignment, source)
    assert [done.verdicts[SPLIT], done.verdicts[MERGE]] == ["passed", "passed"]
    assert not done.human


HOOKS = """
import ast
shell = get_ipython()
shell.events.register("pre_run_cell", lambda info: None)
shell.input_transformers_post.append(lambda lines: lines)
shell.ast_transformers.append(ast.NodeTransformer())
"""
HARMLESS = (
    "%matplotlib inline\n%load_ext autoreload\nimport matplotlib.pyplot as plt\nplt.plot([1, 2]);"
)


@pytest.mark.parametrize(("cell", "noted"), [(HOOKS, 3), (HARMLESS, 0)])
def test_hooks_of_a_notebook_are_noted(assignment, source, untouched, cell, noted):
    done = graded(solved(assignment, cell), assignment, source)
    told = {what for what in done.human if "around cells" in what and MERGE in what}
    assert len(told) == noted
    assert set(done.verdicts.values()) == {"passed"}


@pytest.fixture
def six(tmp_path, monkeypatch):
    """Six honest submissions, and a grader that does not try itself out first."""
    monkeypatch.setattr(pools, "check_course", lambda *given: None)
    write_class(
        tmp_path / "in", [dataclasses.replace(HONEST, student=f"Student {i}") for i in range(6)]
    )
    return tmp_path


def grade(base, *options):
    given = ["grade", str(base / "in"), "--out", str(base / "out"), "--workers", "2", *options]
    return cli.main(given)


def marks(base):
    written = json.loads((base / "out" / "results.json").read_text(encoding="utf-8"))
    return [result["points"] for result in written["results"]]


def test_a_worker_that_is_held_is_ended_and_its_submission_named(six, monkeypatch, capsys):
    real = pools.grade_submission

    def held(handed_in, *rest):
        if handed_in.student == "Student 2":
            os.kill(os.getpid(), signal.SIGSTOP)
        return real(handed_in, *rest)

    monkeypatch.setattr(pools, "grade_submission", held)
    options = ("--deadline", "30", "--timeout", "5")
    assert grade(six, *options) == command.NOT_ALL
    assert "Student 2, 04_head_splitting: it was not graded within 30 s" in capsys.readouterr().err
    assert sorted(marks(six)) == [0.0] + [WHOLE] * 5
    monkeypatch.setattr(pools, "grade_submission", real)
    assert grade(six, *options, "--resume") == 0
    assert marks(six) == [WHOLE] * 6


def test_what_has_failed_is_tried_again_with_nothing_beside_it(six, monkeypatch):
    real = pools.grade_submission

    def scarce_at_first(handed_in, *rest):
        failed, running = (six / f"{word} {handed_in.student}" for word in ("failed", "running"))
        if handed_in.student in ("Student 0", "Student 1") and not failed.exists():
            failed.touch()
            raise BlockingIOError(11, "Resource temporarily unavailable")
        if failed.exists():
            failed.write_text(f"beside {len(list(six.glob('running *')))}")
        running.touch()
        try:
            return real(handed_in, *rest)
        finally:
            running.unlink()

    monkeypatch.setattr(pools, "grade_submission", scarce_at_first)
    assert grade(six) == 0 and marks(six) == [WHOLE] * 6
    assert [path.read_text() for path in six.glob("failed *")] == ["beside 0"] * 2


def test_where_no_process_can_be_started_everyone_is_named(six, monkeypatch, capsys):
    def scarce(*given):
        raise BlockingIOError(11, "Resource temporarily unavailable")

    monkeypatch.setattr(pools, "LOOK_EVERY", 0.01)
    with monkeypatch.context() as patch:
        patch.setattr(pools, "_Worker", scarce)
        assert grade(six) == command.NOT_ALL
    assert "by no fault of the students (6)" in capsys.readouterr().err


def test_overrides_that_are_a_folder_are_told_in_a_line(six, capsys):
    (six / "out" / "overrides.csv").mkdir(parents=True)
    assert grade(six) == 2
    said = capsys.readouterr().err.strip()
    assert said.endswith("overrides.csv cannot be read: Is a directory.") and "\n" not in said


CAPABILITIES = "found = [line for line in open('/proc/self/status') if line.startswith('Cap')]"


def test_a_kernel_has_no_capability_and_can_get_none(assignment, source, untouched):
    from test_attacks import SEND, run

    came = run(source, CAPABILITIES, SEND)
    (found,) = came.cells[-1].outputs
    assert {line.split()[1] for line in found} == {"0" * 16}, found


@pytest.mark.prove
@pytest.mark.parametrize("fault", grade_under_faults.FAULTS)
def test_whatever_goes_wrong_the_honest_have_their_marks(fault):
    """After at most one --resume; the exit code tells, and no submission holds the others."""
    row = grade_under_faults.tried(fault)
    assert row["full then"] == grade_under_faults.HONEST, row["said"]
    assert row["exit"] in (0, command.NOT_ALL) and row["resumed"] in (0, command.NOT_ALL)
    assert row["exit"] or row["full"] == grade_under_faults.HONEST
    assert row["seconds"] <= row["bound"]
