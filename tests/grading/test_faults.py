"""What the grader itself cannot do is no mark: it is tried again, told, and never kept."""

import dataclasses
import json
import os
import signal
import subprocess
import threading
import time

import pytest
from attack_kit import descendants, parent_of_kernels
from grading_class import CLASS, LESSON, POINTS, write_class

from mha_classroom.commands import cli
from mha_classroom.commands import grade as command
from mha_classroom.grading import local_pool as pools
from mha_classroom.grading.kernels import start_zygote as starting

RIGHT = next(h for h in CLASS if not h.verdicts and not h.problem and h.lesson == LESSON)
WHOLE = sum(POINTS.values())


@pytest.fixture
def handed_in(tmp_path, monkeypatch):
    """Six honest submissions, and a grader that does not try itself out first."""
    monkeypatch.setattr(pools, "check_course", lambda *given: None)
    honest = [dataclasses.replace(RIGHT, student=f"Student {i}") for i in range(6)]
    write_class(tmp_path / "in", honest)
    return tmp_path


def grade(base, *options):
    return cli.main(
        ["grade", str(base / "in"), "--out", str(base / "out"), "--workers", "2", *options]
    )


def marks(base):
    written = json.loads((base / "out" / "results.json").read_text(encoding="utf-8"))
    return [result["points"] for result in written["results"]]


def kill_two():
    """Kill the process that kernels are forked from, and the one that is started in its place."""
    first = parent_of_kernels()
    kill_when_a_kernel_runs(first)
    kill_when_a_kernel_runs(parent_of_kernels(besides=first))


def kill_when_a_kernel_runs(parent):
    deadline = time.monotonic() + 60
    while not descendants(parent) and time.monotonic() < deadline:
        time.sleep(0.05)
    os.kill(parent, signal.SIGKILL)


def test_a_zygote_that_is_killed_is_started_again(handed_in):
    killer = threading.Thread(target=kill_two)
    killer.start()
    assert grade(handed_in) == 0
    killer.join()
    assert marks(handed_in) == [WHOLE] * 6


def test_what_the_grader_could_not_do_is_told_and_tried_again(handed_in, monkeypatch, capsys):
    """Without a zygote nothing can be graded; with one again the same command gives all marks."""
    real = starting.zygote

    class Broken:
        def __enter__(self):
            self.inner = real()
            kernels = self.inner.__enter__()
            victim = parent_of_kernels()
            os.kill(victim, signal.SIGKILL)
            return dataclasses.replace(kernels, revive=lambda: None)

        def __exit__(self, *error):
            return self.inner.__exit__(*error)

    monkeypatch.setattr("mha_classroom.grading.kernels.nbval_run.START_SECONDS", 1)
    with monkeypatch.context() as patch:
        patch.setattr(command, "zygote", lambda isolated: Broken())
        assert grade(handed_in) == command.NOT_ALL
    said = capsys.readouterr().err
    assert "Not graded, by no fault of the students (6)" in said
    assert f"Student 3, {LESSON}: the grading itself stopped" in said
    assert marks(handed_in) == [0.0] * 6
    monkeypatch.undo()
    monkeypatch.setattr(pools, "check_course", lambda *given: None)
    assert grade(handed_in, "--resume") == 0
    assert marks(handed_in) == [WHOLE] * 6
    assert "Not graded" not in capsys.readouterr().err


FEW_PROCESSES = """
import os, sys
fork, failing = os.fork, [True] * 3

def scarce():
    if failing:
        failing.pop()
        raise BlockingIOError(11, "Resource temporarily unavailable")
    return fork()

os.fork = scarce
from mha_classroom.grading.kernels import zygote
zygote.main(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3])
"""


def test_where_processes_are_scarce_nobody_loses_marks(handed_in, monkeypatch):
    """As a student's own processes may make them, for a while."""
    popen = subprocess.Popen

    def start(command, **options):
        return popen([command[0], "-c", FEW_PROCESSES, *command[3:]], **options)

    monkeypatch.setattr(starting.subprocess, "Popen", start)
    assert grade(handed_in) == 0
    assert marks(handed_in) == [WHOLE] * 6


def own_cells(*sources):
    """A change of a notebook: code cells of the student's own before the first answer."""

    def change(notebook):
        place = next(i for i, c in enumerate(notebook["cells"]) if c["cell_type"] == "code") + 1
        cells = [
            {"cell_type": "code", "id": f"own{i}", "source": source, "metadata": {}}
            | {"outputs": [], "execution_count": None}
            for i, source in enumerate(sources)
        ]
        notebook["cells"][place:place] = cells

    return change


HELPER = "def cut(X, num_heads):\n    return X.unflatten(-1, (num_heads, -1))"
USES_IT = (
    "def transpose_qkv(X, num_heads):\n    return cut(X, num_heads).transpose(1, 2).flatten(0, 1)"
)


def test_slow_cells_of_ones_own_do_not_take_helpers_with_them(handed_in):
    slow = ["import time\ntime.sleep(60)"] * 5
    student = dataclasses.replace(
        RIGHT,
        student="Slow",
        change=own_cells(*slow[:3], HELPER, *slow[3:], "print(1)"),
        answers={"04-transpose_qkv": USES_IT},
    )
    write_class(handed_in / "slow", [student])
    out = ["--out", str(handed_in / "marks"), "--timeout", "1", "--workers", "1"]
    assert cli.main(["grade", str(handed_in / "slow"), *out]) == 0
    written = json.loads((handed_in / "marks" / "results.json").read_text(encoding="utf-8"))
    (result,) = written["results"]
    assert result["points"] == WHOLE
    notes = " ".join(result["notes"])
    assert "an own cell did not come to an end and was left out" in notes
    assert "own cells that were left out because 4 others had to be" in notes
