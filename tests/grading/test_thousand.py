"""A thousand submissions, killed three times on the way, by `make prove`.

GRADING_PROOF=60 proves it for another number of submissions.
"""

import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

import pytest
from grading_copies import mixed, write_class

from mha_classroom.grading.kernels import jail

pytestmark = pytest.mark.prove
COUNT = int(os.environ.get("GRADING_PROOF", "1000"))
SEED, KILLS = "3", 3
EVERY = 0.5  # seconds between two looks at the memory
ROOM = 6.0  # MB by which memory may differ from one third of the run to the next


@pytest.fixture(scope="module")
def handed_in(tmp_path_factory):
    reason = jail.unavailable()
    assert not reason, f"This machine has no sandbox: {reason}"
    folder = tmp_path_factory.mktemp("class")
    write_class(folder, (mixed(number) for number in range(COUNT)))
    return folder


def start(handed_in, out, temporary, *options):
    """`mha-course grade` in a session of its own, with a folder for temporary files."""
    temporary.mkdir(exist_ok=True)
    words = ["grade", handed_in, "--out", out, "--workers", "2", "--seed", SEED, *options]
    with open(out.with_suffix(".log"), "ab") as log:
        return subprocess.Popen(
            [sys.executable, "-m", "mha_classroom.commands.cli", *map(str, words)],
            **{"stdout": log, "stderr": log, "start_new_session": True},
            env={**os.environ, "TMPDIR": str(temporary)},
        )


def finish(process, out):
    assert process.wait() == 0, out.with_suffix(".log").read_text("utf-8")[-4000:]


def left_in(temporary):
    """What lies in a folder for temporary files, but for the one that torch makes for a user."""
    return [path for path in temporary.iterdir() if not path.name.startswith("torchinductor_")]


@pytest.fixture(scope="module")
def short():
    """A folder with a short path: sockets are made in it."""
    with tempfile.TemporaryDirectory(prefix="proof-") as folder:
        yield Path(folder)


def parents():
    """{process: its parent} of all there are."""
    found = {}
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            stat = Path("/proc", name, "stat").read_text()
        except OSError:
            continue
        found[int(name)] = int(stat.rpartition(")")[2].split()[1])
    return found


def below(root):
    """All descendants of a process."""
    above, found = parents(), {root}
    while more := {process for process, parent in above.items() if parent in found} - found:
        found |= more
    return found - {root}


def memory(process):
    """MB of a process: resident, as what it shares with a fork is private once the fork writes."""
    try:
        text = Path("/proc", str(process), "status").read_text()
    except OSError:
        return None
    used = [int(line.split()[1]) for line in text.splitlines() if line.startswith("VmRSS:")]
    return used[0] / 1024 if used else None


def graded(out):
    """{file: when it was written} of the results that are kept."""
    files = (out / ".grading" / "results").glob("*.json")
    return {path.name: path.stat().st_mtime_ns for path in files}


def wait_until_gone(processes, seconds=20):
    end = time.monotonic() + seconds
    while (left := processes & parents().keys()) and time.monotonic() < end:
        time.sleep(0.05)
    assert not left, f"processes are left: {left}"


@pytest.fixture(scope="module")
def uninterrupted(handed_in, tmp_path_factory, short):
    """The folder of the reports of a run in one go, how memory developed, who was there."""
    folder = tmp_path_factory.mktemp("at once")
    out, temporary = folder / "out", short / "at once"
    process = start(handed_in, out, temporary)
    samples, seen = {}, set()
    while process.poll() is None:
        time.sleep(EVERY)
        seen |= below(process.pid)
        above, done = parents(), len(graded(out))
        # The process itself, its workers and the zygote; what they fork for one submission is
        # gone with it. Before the first result the self-check is running.
        lasting = [process.pid, *(p for p, parent in above.items() if parent == process.pid)]
        for one in lasting if 0 < done < COUNT else ():
            used = memory(one)
            if used is not None:
                samples.setdefault(one, []).append((done, used))
    finish(process, out)
    return out, temporary, samples, seen


def test_memory_is_constant(uninterrupted):
    _, _, samples, _ = uninterrupted
    long_lived = {p: found for p, found in samples.items() if found[-1][0] > 0.9 * COUNT}
    assert len(long_lived) == 4  # the command, two workers, the zygote
    for process, found in long_lived.items():
        thirds = [
            median(used for done, used in found if third == 3 * done // (COUNT + 1))
            for third in range(3)
        ]
        print(process, [round(used, 1) for used in thirds])
        assert thirds[2] < thirds[1] + ROOM, f"{process} grows: {thirds} MB"


def test_nothing_is_left(uninterrupted):
    out, temporary, _, seen = uninterrupted
    assert seen
    wait_until_gone(seen)
    assert left_in(temporary) == []
    reports = {"grades.csv", "results.json", "run.json", "overrides.csv", "feedback", ".grading"}
    assert {path.name for path in out.iterdir()} == reports
    kept = {path.name for path in (out / ".grading").iterdir()}
    assert kept == {"results", "seed.json", "lock"} and len(graded(out)) == COUNT
    files = [path for path in (out / "feedback").rglob("*") if path.is_file()]
    assert len(files) == COUNT and {path.suffix for path in files} == {".html"}


def test_everyone_has_the_verdicts_that_they_should_have(uninterrupted):
    results = json.loads((uninterrupted[0] / "results.json").read_text("utf-8"))["results"]
    assert [result["student"] for result in results] == [f"student {n:04}" for n in range(COUNT)]
    for number, result in enumerate(results):
        kind, points = number % 20, 15.0
        points = {3: 14.0, 5: 0.0, 8: 13.0, 10: 8.0, 13: 14.0, 18: 0.0}.get(kind, points)
        assert result["points"] == points, result["student"]
        assert bool(result["problem"]) == (kind == 18)
        crashed = [task["id"] for task in result["tasks"] if task["verdict"] == "crashed"]
        assert crashed == (["04-transpose_output"] if kind == 13 else [])
    run = json.loads((uninterrupted[0] / "run.json").read_text("utf-8"))
    kernels = [one["kernels"] for one in run["submissions"]]
    assert len(kernels) == COUNT and max(kernels) <= 5
    assert all(count == 1 for n, count in enumerate(kernels) if n % 20 in (0, 1, 2, 19))


def test_a_run_that_is_killed_goes_on_to_the_same_end(handed_in, uninterrupted, tmp_path, short):
    out, temporary = tmp_path / "out", short / "killed"
    draw, kept = random.Random(5), {}
    for kill in range(KILLS):
        process = start(handed_in, out, temporary, *(["--resume"] if kill else []))
        # At a random moment of the next part, in whatever it is doing then.
        enough = round(COUNT * (kill + draw.uniform(0.2, 0.9)) / KILLS)
        while len(graded(out)) < enough:
            assert process.poll() is None, out.with_suffix(".log").read_text("utf-8")[-4000:]
            time.sleep(0.02)
        time.sleep(draw.uniform(0, 1))
        there = below(process.pid)
        os.kill(process.pid, signal.SIGKILL)
        assert process.wait() == -signal.SIGKILL
        wait_until_gone(there)
        now = graded(out)
        assert kept.items() <= now.items(), "something was graded twice"
        assert len(now) < COUNT
        kept = now
    finish(start(handed_in, out, temporary, "--resume"), out)
    assert kept.items() <= graded(out).items() and len(graded(out)) == COUNT
    whole = uninterrupted[0]
    for name in ("results.json", "grades.csv"):
        assert (out / name).read_bytes() == (whole / name).read_bytes(), name
    pages = [
        {str(path.relative_to(X)): path.read_bytes() for path in X.rglob("*.html")}
        for X in (out, whole)
    ]
    assert pages[0] == pages[1] and len(pages[0]) == COUNT
    assert left_in(temporary) == []
    assert not list(out.rglob("*.draft")) and not list(out.rglob("*~"))
