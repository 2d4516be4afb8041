"""Grading on a Dask cluster gives what grading here gives, also when a worker dies."""

import contextlib
import functools
import io
import json
import os
import pickle
import signal
import subprocess
import sys
import threading
import time
import types
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from grading_copies import LESSON, NOT_SWAPPED, SPLIT, answers, honest, submission, write_class

from mha_classroom.clone import CourseError
from mha_classroom.grading import dask_pool as cluster
from mha_classroom.grading import dask_worker as remote
from mha_classroom.grading import grade_class as class_run
from mha_classroom.grading import local_pool as pools
from mha_classroom.grading.fit.assignment import load_assignment
from mha_classroom.grading.handed_in.find_submissions import HandedIn
from mha_classroom.grading.kernels import jail
from mha_classroom.grading.kernels import start_zygote as starting
from mha_classroom.grading.kernels.start_zygote import zygote
from mha_classroom.grading.local_pool import local_pool
from mha_classroom.grading.results import Graded, Result
from mha_classroom.grading.settings import Limits, Settings

SETTINGS = Settings(seed=11, limits=Limits(seconds=20.0))
COUNT = 8
# Two workers with a nanny each, as on two machines; the file says that both are there.
CLUSTER = """
import os, sys
from distributed import LocalCluster

if __name__ == "__main__":
    options = dict(n_workers=int(sys.argv[2]), threads_per_worker=1, dashboard_address=None)
    with LocalCluster(processes=True, host="127.0.0.1", **options) as cluster:
        with open(sys.argv[1] + "~", "w") as file:
            file.write(cluster.scheduler_address)
        os.rename(sys.argv[1] + "~", sys.argv[1])
        sys.stdin.read()
"""


@pytest.fixture(scope="module", autouse=True)
def sandbox():
    assert not jail.unavailable(), f"This machine has no sandbox: {jail.unavailable()}"


@pytest.fixture
def start_cluster(tmp_path):
    """A function that starts a cluster in processes of its own; returns one that waits for it
    and gives its address."""
    script, started = tmp_path / "cluster.py", []
    script.write_text(CLUSTER)

    def start(workers, **environment):
        told = tmp_path / f"address {len(started)}"
        process = subprocess.Popen(
            [sys.executable, "-W", "ignore", script, told, str(workers)],
            **{"stdin": subprocess.PIPE, "stderr": subprocess.DEVNULL, "cwd": tmp_path},
            env={**os.environ, "OMP_NUM_THREADS": "1", **environment},
        )
        started.append(process)
        return lambda: wait(told)

    def wait(told):
        for _ in range(600):
            if told.exists():
                return told.read_text()
            time.sleep(0.1)
        raise AssertionError("the cluster did not start")

    start.processes = started
    yield start
    for process in started:
        process.stdin.close()
        process.wait(timeout=60)


def processes():
    """{process: (its parent, its command line)} of all there are."""
    found = {}
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            command = Path("/proc", name, "cmdline").read_bytes().decode().split("\0")
            stat = Path("/proc", name, "stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        found[int(name)] = int(stat[1]), command
    return found


def below(root, all_of_them=None):
    """All descendants of a process."""
    all_of_them, found = all_of_them or processes(), {root}
    while more := {p for p, (parent, _) in all_of_them.items() if parent in found} - found:
        found |= more
    return found - {root}


@pytest.fixture(scope="module")
def handed_in(tmp_path_factory):
    folder = tmp_path_factory.mktemp("class")
    texts = [submission(honest(number)) for number in range(COUNT - 2)]
    texts.append(submission({**answers(), SPLIT: NOT_SWAPPED}))
    write_class(folder, [*texts, "{}"])
    return folder


def grade(handed_in, out, pool, **options):
    class_run.grade_class(handed_in, out, SETTINGS, pool, **options)
    return (out / "results.json").read_bytes()


tried = Counter()


def grade_or_end(pickled, work):
    """In place of grading: one submission fails once, one always, one is over its deadline."""
    one = pickle.loads(pickled)
    student = one.student
    tried[student] += 1
    if student == "late":
        raise remote.Late("over its deadline")
    if student == "never" or (student == "once" and tried[student] == 1):
        raise RuntimeError("the process that grades has ended")
    return pickle.dumps(Graded(Result(student, one.lesson, "", "", (), (), ()), 0.0, 1))


def test_every_submission_comes_back_whatever_becomes_of_its_worker(monkeypatch):
    """A cluster of threads in this process; see below for one of processes."""
    from distributed import Client

    tried.clear()
    monkeypatch.setattr(cluster, "grade_here", grade_or_end)
    monkeypatch.setattr(cluster, "check_course", lambda *_: None)
    loaded = {LESSON: load_assignment(LESSON)}
    students = [*map(str, range(9)), "once", "never", "late"]
    own = {"n_workers": 1, "threads_per_worker": 2, "dashboard_address": None}
    with Client(processes=False, **own) as client:
        address = client.cluster.scheduler_address
        with cluster.cluster_pool(SETTINGS, loaded, None, address) as graded:
            came = list(graded(replace(handed_one_in(), student=student) for student in students))
    problems = {one.result.student: one.result.problem for one in came}
    assert len(came) == len(students) and problems.keys() == set(students)
    assert "could not grade it" in problems.pop("never")
    assert problems.pop("late").startswith("it was not graded within")
    assert not any(problems.values())
    times = {student: tried[student] for student in ("never", "once", "late", "0")}
    assert times == {"never": cluster.TRIES, "once": 2, "late": 1, "0": 1}


@pytest.mark.prove
def test_a_worker_that_dies_changes_nothing(handed_in, tmp_path, start_cluster, monkeypatch):
    for module in (pools, cluster):  # the self-check has tests of its own
        monkeypatch.setattr(module, "check_course", lambda *_: None)
    address_of = start_cluster(2)  # while it starts, they are graded here
    with zygote() as kernels:
        pool = functools.partial(local_pool, kernels=kernels, workers=2)
        here = grade(handed_in, tmp_path / "here", pool)
    address = address_of()
    (started,) = start_cluster.processes
    killed, cluster_processes = [], set()

    def kill():
        """End a worker as soon as one is grading and something has been graded."""
        kept = tmp_path / "there" / class_run.STATE / "results"
        while not list(kept.glob("*.json")):
            time.sleep(0.02)
        there = processes()
        mine = below(started.pid, there)
        grading = {p for p in mine if "mha_classroom.grading.dask_worker" in there[p][1]}
        # The others are forks of these, and may be gone already.
        worker = next(there[p][0] for p in grading if there[p][0] not in grading)
        cluster_processes.update(mine)
        os.kill(worker, signal.SIGKILL)
        killed.append(worker)

    thread = threading.Thread(target=kill, daemon=True)
    thread.start()
    pool = functools.partial(cluster.cluster_pool, kernels=None, address=address)
    there = grade(handed_in, tmp_path / "there", pool)
    thread.join(timeout=5)
    assert killed and not Path("/proc", str(killed[0])).exists()
    assert there == here
    results = json.loads(there)["results"]
    points = [result["points"] for result in results]
    assert points == [15.0] * (COUNT - 2) + [14.0, 0.0]
    run = json.loads((tmp_path / "there" / "run.json").read_text("utf-8"))
    assert [one["kernels"] > 0 for one in run["submissions"]] == [True] * (COUNT - 1) + [False]
    cluster_processes |= below(started.pid)
    started.stdin.close()
    started.wait(timeout=60)
    end = time.monotonic() + 30
    while (left := cluster_processes & processes().keys()) and time.monotonic() < end:
        time.sleep(0.1)
    assert not left, {process: processes().get(process) for process in left}


def handed_one_in():
    return HandedIn("A", LESSON, content=submission(answers()).encode())


def test_no_scheduler_no_worker_no_dask(monkeypatch, start_cluster):
    monkeypatch.setattr(cluster, "PATIENCE", 2)
    loaded = {}
    for address in ("tcp://127.0.0.1:9", "nowhere"):
        with pytest.raises(CourseError, match=f"no Dask scheduler at '{address}'"):
            cluster.cluster_pool(SETTINGS, loaded, None, address).__enter__()
    with pytest.raises(CourseError, match="has no workers"):
        cluster.cluster_pool(SETTINGS, loaded, None, start_cluster(0)()).__enter__()
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(CourseError, match=r'--dask needs Dask.*\n.* -m pip install .*\[cluster\]"'):
        cluster.cluster_pool(SETTINGS, loaded, None, "tcp://127.0.0.1:9").__enter__()


def test_a_worker_with_another_version_is_refused_by_name(monkeypatch):
    """What the remote process says, and what is made of it here."""
    asked = io.BytesIO(pickle.dumps((SETTINGS, None, {LESSON: "another"})))
    told = io.BytesIO()
    with monkeypatch.context() as patch:
        patch.setattr(sys, "stdin", types.SimpleNamespace(buffer=asked))
        patch.setattr(sys, "stdout", types.SimpleNamespace(buffer=told))
        patch.setattr(starting, "zygote", lambda isolated: contextlib.nullcontext())
        patch.setattr(torch, "set_num_threads", lambda number: None)
        remote.main()
    said = "import pickle, sys; pickle.load(sys.stdin.buffer)\n"
    said += f"sys.stdout.buffer.write({told.getvalue()!r})"
    start = subprocess.Popen
    monkeypatch.setattr(
        *(remote.subprocess, "Popen"),
        lambda command, **options: start([sys.executable, "-c", said], **options),
    )
    with pytest.raises(remote.Refused, match=f"has another version of {LESSON}"):
        remote.Remote(SETTINGS, None, {LESSON: "another"})


class Failed:
    """A future of a unit that a worker could not grade."""

    def __init__(self, error):
        self.error = error

    def cancelled(self):
        return self.error is None

    def exception(self):
        return self.error


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (remote.Refused(f"has another version of {LESSON}"), "cluster has another version of 04_"),
        (
            ModuleNotFoundError("No module named 'mha_course'"),
            "lacks what grading needs: No module",
        ),
        (None, "The Dask scheduler is gone"),
    ],
)
def test_what_fails_for_all_stops_the_run(error, said):
    with pytest.raises(CourseError, match=f"{said}.*--resume"):
        cluster._check_worker(Failed(error))
    assert cluster._check_worker(Failed(RuntimeError("the process that grades has ended"))) is None


def test_a_remote_process_that_is_held_ends_at_the_deadline():
    settings = replace(SETTINGS, limits=replace(SETTINGS.limits, deadline=2.0))
    one = remote.Remote(settings, None, {LESSON: load_assignment(LESSON).key})
    there = below(one.process.pid)
    os.kill(one.process.pid, signal.SIGSTOP)
    with pytest.raises(remote.Late):
        one.grade(pickle.dumps(handed_one_in()))
    one.close()
    end = time.monotonic() + 20
    while there & processes().keys() and time.monotonic() < end:
        time.sleep(0.05)
    assert there and not there & processes().keys()


def test_a_remote_process_grades_and_ends_with_the_pipe():
    key = load_assignment(LESSON).key
    one = remote.Remote(SETTINGS, None, {LESSON: key})
    handed_in = pickle.dumps(handed_one_in())
    assert pickle.loads(one.grade(handed_in)).result.points == 15.0
    there = below(one.process.pid)
    one.process.kill()
    with pytest.raises(RuntimeError, match="has ended"):
        one.grade(handed_in)
    one.close()
    end = time.monotonic() + 20
    while there & processes().keys() and time.monotonic() < end:
        time.sleep(0.05)
    assert there and not there & processes().keys()
