"""Long proofs from a clean clone, run by `make prove`: the two commands do everything."""

import os
import socket
import subprocess
import time
import urllib.request
import xml.etree.ElementTree as ElementTree

import clean_clone
import pytest

pytestmark = pytest.mark.prove
# What an outer make and an outer pytest leave behind is not there in a newcomer's shell.
OURS = ("MAKE", "MFLAGS", "PYTEST_", "VIRTUAL_ENV", "PYTHON", "LAB_ARGS", "TEST_ARGS")
ENVIRONMENT = {name: value for name, value in os.environ.items() if not name.startswith(OURS)}


@pytest.fixture(scope="module")
def clone(tmp_path_factory):
    """A clone of what git would have if everything here were committed, and nothing else."""
    folder = clean_clone.copy_to(tmp_path_factory.mktemp("empty") / "mha course")
    author = ["-c", "user.name=A", "-c", "user.email=a@example.org"]
    for words in (["init", "-q"], ["add", "-A"], [*author, "commit", "-q", "-m", "all"]):
        subprocess.run(["git", *words], cwd=folder, check=True)
    return folder


def make(folder, *words, **environment):
    done = subprocess.run(
        ["make", *words],
        **{"cwd": folder, "env": {**ENVIRONMENT, **environment}},
        **{"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True},
    )
    assert done.returncode == 0, done.stdout[-8000:]
    return done.stdout


def difference(folder):
    words = ["git", "status", "--porcelain"]
    return subprocess.run(words, cwd=folder, capture_output=True, text=True, check=True).stdout


def test_make_lab_serves_from_a_clean_clone(clone, tmp_path):
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    with open(tmp_path / "log", "wb") as log:
        lab = subprocess.Popen(
            ["make", "lab", f"LAB_ARGS=--no-browser --port={port} --IdentityProvider.token=abc"],
            **{"cwd": clone, "env": ENVIRONMENT, "stdout": log, "stderr": log},
            start_new_session=True,
        )
    try:
        page = wait_for(lab, f"http://127.0.0.1:{port}/?token=abc", tmp_path / "log")
    finally:
        if lab.poll() is None:
            os.killpg(lab.pid, 15)
        lab.wait(timeout=60)
    assert "00_start_here.ipynb" in page.url and b"JupyterLab" in page.body
    originals = {path.name for path in (clone / "notebooks").glob("*.ipynb")}
    assert {path.name for path in (clone / "work/notebooks").glob("*.ipynb")} == originals
    assert difference(clone) == ""


def wait_for(process, url, log, seconds=1800):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        assert process.poll() is None, log.read_text("utf-8")[-8000:]
        try:
            with urllib.request.urlopen(url, timeout=10) as answer:
                answer.body = answer.read()
                return answer
        except OSError:
            time.sleep(0.5)
    raise AssertionError("nothing answered")


def test_make_test_is_green_and_starts_at_once_the_second_time(clone):
    assert " passed" in make(clone, "test", CI="1")
    started = time.monotonic()
    again = subprocess.Popen(
        ["make", "test"],
        **{"cwd": clone, "env": ENVIRONMENT, "stdout": subprocess.PIPE, "text": True},
        start_new_session=True,
    )
    try:
        lines = []
        for line in again.stdout:
            lines.append(line)
            if "test session starts" in line:
                break
        seconds = time.monotonic() - started
    finally:
        os.killpg(again.pid, 15)
        again.communicate(timeout=60)
    assert "test session starts" in lines[-1] and not any("pip install" in x for x in lines)
    assert seconds < 5
    assert difference(clone) == ""


@pytest.mark.parametrize("threads", ["1", "2"])
def test_notebooks_give_the_same_result_every_time(clone, tmp_path, threads):
    report = tmp_path / "report.xml"
    words = f"-m pytest -q --nbval --nbval-current-env --nbval-cell-timeout=240 --junitxml={report}"
    make(clone, ".venv/.ready-dev")
    results = []
    for _ in range(5):
        done = subprocess.run(
            [clone / ".venv/bin/python", *words.split(), "notebooks", "solutions"],
            **{"cwd": clone, "env": {**ENVIRONMENT, "OMP_NUM_THREADS": threads}},
            **{"capture_output": True, "text": True},
        )
        assert done.returncode == 0, done.stdout[-8000:]
        cases = ElementTree.parse(report).iter("testcase")
        results.append([(case.get("classname"), case.get("name"), len(case)) for case in cases])
    assert results[0] and all(result == results[0] for result in results)
    assert not any(children for _, _, children in results[0])


def test_make_run_and_make_exercises_leave_every_file_as_it_is(clone):
    stems = {path.stem for path in (clone / "notebooks").glob("*.ipynb")}
    assert stems
    for stem in sorted(stems):
        make(clone, "run", f"NB={stem}")
    make(clone, "exercises")
    assert difference(clone) == ""


def test_ci_runs_what_a_machine_has(clone):
    done = subprocess.run(
        [clone / ".ci/run"],
        **{"cwd": clone, "env": ENVIRONMENT, "capture_output": True, "text": True},
    )
    assert done.returncode == 0, (done.stdout + done.stderr)[-8000:]
    assert " passed" in done.stdout
