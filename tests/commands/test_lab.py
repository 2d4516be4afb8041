"""The learner's copies in work/: made once, never overwritten, renewed beside."""

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.request
from pathlib import Path

import nbformat
import pytest
from nbformat.sign import NotebookNotary

from mha_classroom import clone
from mha_classroom.commands import cli, lab

PACKAGE = Path(clone.__file__).parent
NOTEBOOK = '{"cells": [], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}\n'
STEMS = ("00_start_here", "04_head_splitting")


@pytest.fixture
def root(tmp_path):
    """A clone of two lessons and one exercise, in a folder whose name is not plain."""
    root = tmp_path / "mein Kürs"
    for name in ("notebooks/00_start_here", "notebooks/04_head_splitting"):
        put(root, name, NOTEBOOK)
    put(root, "exercises/04_head_splitting", NOTEBOOK)
    return root


def put(root, name, text):
    path = root / f"{name}.ipynb"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def contents(root):
    files = (path for path in (root / "work").rglob("*") if path.is_file())
    return {path.relative_to(root / "work").as_posix(): text(path) for path in files}


def text(path):
    return path.read_text("utf-8", errors="replace")


def notebooks(root):
    return sorted(name for name in contents(root) if name.endswith(".ipynb"))


ALL = ["exercises/04_head_splitting.ipynb"] + [f"notebooks/{stem}.ipynb" for stem in STEMS]


def test_first_start_copies_everything_and_says_so(root):
    lines = lab.prepare(root)
    assert lines == [f"3 notebooks copied into {root / 'work'}."]
    assert notebooks(root) == ALL


def test_links_between_folders_lead_to_the_same_file_in_both_places(root):
    lab.prepare(root)
    link = "notebooks/../exercises/04_head_splitting.ipynb"
    assert (root / link).resolve().is_file() and (root / "work" / link).resolve().is_file()


def test_the_copies_are_trusted_until_they_change(root, tmp_path, monkeypatch):
    monkeypatch.setenv("JUPYTER_DATA_DIR", str(tmp_path / "data" / "jupyter"))
    cell = nbformat.v4.new_code_cell("1", outputs=[nbformat.v4.new_output("stream", text="1")])
    put(
        root, "notebooks/04_head_splitting", nbformat.writes(nbformat.v4.new_notebook(cells=[cell]))
    )
    lab.prepare(root)
    copy = nbformat.read(root / "work/notebooks/04_head_splitting.ipynb", as_version=4)
    assert not NotebookNotary().check_signature(copy)
    lab.trust(root)
    assert NotebookNotary().check_signature(copy)
    copy.cells[0].source = "2"
    assert not NotebookNotary().check_signature(copy)


def test_no_place_for_signatures_does_not_stop_the_start(root, tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("JUPYTER_DATA_DIR", str(tmp_path / "file" / "jupyter"))
    before = {path: path.read_bytes() for path in root.rglob("*.ipynb")}
    lab.trust(root)
    assert {path: path.read_bytes() for path in root.rglob("*.ipynb")} == before
    assert (tmp_path / "file").read_text() == ""


def test_second_start_changes_nothing_and_says_nothing(root):
    lab.prepare(root)
    put(root, "work/notebooks/04_head_splitting", "mine")
    before = contents(root)
    assert lab.prepare(root) == []
    assert contents(root) == before


def test_changed_original_is_put_beside_once(root):
    lab.prepare(root)
    put(root, "work/notebooks/04_head_splitting", "mine")
    put(root, "notebooks/04_head_splitting", "version 2")
    lines = lab.prepare(root)
    assert len(lines) == 1
    assert "work/notebooks/04_head_splitting.ipynb stays as it is" in lines[0]
    assert "work/notebooks/04_head_splitting_fresh.ipynb" in lines[0]
    assert contents(root)["notebooks/04_head_splitting.ipynb"] == "mine"
    assert contents(root)["notebooks/04_head_splitting_fresh.ipynb"] == "version 2"
    (root / "work/notebooks/04_head_splitting_fresh.ipynb").unlink()
    before = contents(root)
    assert lab.prepare(root) == [] and contents(root) == before


def test_fresh_copies_of_two_versions_do_not_meet(root):
    lab.prepare(root)
    for version in ("version 2", "version 3"):
        put(root, "notebooks/04_head_splitting", version)
        lab.prepare(root)
    found = contents(root)
    assert found["notebooks/04_head_splitting.ipynb"] == NOTEBOOK
    assert found["notebooks/04_head_splitting_fresh.ipynb"] == "version 2"
    assert found["notebooks/04_head_splitting_fresh_2.ipynb"] == "version 3"


def test_deleted_lesson_comes_back(root):
    lab.prepare(root)
    (root / "work" / ALL[0]).unlink()
    assert lab.prepare(root) == [f"1 notebooks copied into {root / 'work'}."]
    assert notebooks(root) == ALL


@pytest.mark.parametrize("broken", ["", "{", "[]", '{"given": 3}', '{"given": {"a": 1}}', "\xff"])
def test_broken_record_is_set_aside_and_made_anew(root, broken):
    lab.prepare(root)
    put(root, "work/notebooks/04_head_splitting", "mine")
    (root / "work" / lab.RECORD).write_bytes(broken.encode("latin-1"))
    lab.prepare(root)
    aside = list((root / "work").glob(f"{lab.RECORD}.broken-*"))
    assert [path.read_bytes() for path in aside] == [broken.encode("latin-1")]
    assert len(json.loads((root / "work" / lab.RECORD).read_text())["given"]) == 3
    assert contents(root)["notebooks/04_head_splitting.ipynb"] == "mine"
    assert lab.prepare(root) == []


def test_lost_record_costs_one_fresh_copy_of_what_was_worked_in(root):
    lab.prepare(root)
    put(root, "work/notebooks/04_head_splitting", "mine")
    (root / "work" / lab.RECORD).unlink()
    assert len(lab.prepare(root)) == 1
    assert notebooks(root) == sorted([*ALL, "notebooks/04_head_splitting_fresh.ipynb"])
    assert lab.prepare(root) == []


def test_record_that_is_a_folder_is_set_aside(root):
    (root / "work" / lab.RECORD).mkdir(parents=True)
    lab.prepare(root)
    assert notebooks(root) == ALL and (root / "work" / lab.RECORD).is_file()


@pytest.mark.parametrize("kind", ["file", "folder", "dead link"])
def test_what_is_in_the_way_stays(root, kind):
    path = root / "work" / "notebooks" / "04_head_splitting.ipynb"
    path.parent.mkdir(parents=True)
    if kind == "file":
        path.write_text("a file of the learner's own")
    elif kind == "folder":
        path.mkdir()
    else:
        try:
            path.symlink_to(root / "nowhere")
        except OSError:  # Windows lets few people make links; a folder is as much in the way
            path.mkdir()
    before = os.lstat(path)
    assert "04_head_splitting_fresh.ipynb" in "".join(lab.prepare(root))
    assert os.lstat(path).st_mtime_ns == before.st_mtime_ns
    assert not (root / "nowhere").exists()
    assert contents(root)["notebooks/04_head_splitting_fresh.ipynb"] == NOTEBOOK
    assert lab.prepare(root) == []


def test_file_where_a_folder_should_be_gets_a_sentence(root):
    (root / "work").write_text("not a folder")
    with pytest.raises(clone.CourseError, match="cannot be made"):
        lab.prepare(root)
    assert (root / "work").read_text() == "not a folder"


def test_no_half_written_copy_under_the_final_name(root, monkeypatch):
    def full(descriptor):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(lab.os, "fsync", full)
    with pytest.raises(clone.CourseError, match="No space left"):
        lab.prepare(root)
    assert contents(root) == {}


@pytest.mark.parametrize("links", [True, False])
def test_starts_at_the_same_time_make_each_copy_once(root, monkeypatch, links):
    if not links:

        def no_links(source, target):
            raise PermissionError(1, "Operation not permitted")

        monkeypatch.setattr(lab.os, "link", no_links)
    gate, errors = threading.Barrier(8), []

    def start():
        gate.wait()
        try:
            lab.prepare(root)
        except Exception as error:
            errors.append(error)

    threads = [threading.Thread(target=start) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    assert [name for name in notebooks(root) if "_fresh" not in name] == ALL
    assert all(text == NOTEBOOK for name, text in contents(root).items() if name in ALL)
    # A link appears whole. Without links another start may meet a file that is still growing and
    # take it for the learner's: a fresh copy too many, and nothing lost.
    assert not links or notebooks(root) == ALL
    assert set(contents(root)) - set(notebooks(root)) == {lab.RECORD}


def test_create_never_replaces(tmp_path, monkeypatch):
    path = tmp_path / "lesson.ipynb"
    assert lab.create(path, b"first") and not lab.create(path, b"second")
    # The name is taken between the look and the write.
    monkeypatch.setattr(lab.os.path, "lexists", lambda path: False)
    assert not lab.create(path, b"third")
    assert path.read_bytes() == b"first"
    assert os.listdir(tmp_path) == ["lesson.ipynb"]


@pytest.mark.parametrize("word", ["4", "04", "04_head_splitting", "04_head_splitting.ipynb"])
def test_reset_puts_fresh_copies_beside(root, word):
    lab.prepare(root)
    put(root, "work/notebooks/04_head_splitting", "mine")
    lines = lab.reset(root, word)
    assert len(lines) == 2 and all("stays as it is" in line for line in lines)
    found = contents(root)
    assert found["notebooks/04_head_splitting.ipynb"] == "mine"
    assert found["notebooks/04_head_splitting_fresh.ipynb"] == NOTEBOOK
    assert found["exercises/04_head_splitting_fresh.ipynb"] == NOTEBOOK
    lab.reset(root, word)
    assert contents(root) == found
    put(root, "work/notebooks/04_head_splitting_fresh", "mine too")
    lab.reset(root, word)
    assert contents(root)["notebooks/04_head_splitting_fresh.ipynb"] == "mine too"
    assert contents(root)["notebooks/04_head_splitting_fresh_2.ipynb"] == NOTEBOOK


@pytest.mark.parametrize("word", ["7", "04_head", "x", "", "-1"])
def test_reset_of_what_does_not_exist_lists_what_does(root, word):
    with pytest.raises(clone.CourseError, match="00_start_here, 04_head_splitting"):
        lab.reset(root, word)
    assert not (root / "work").exists()


def test_root_is_searched_upwards_when_the_package_is_installed_alone(root, monkeypatch):
    monkeypatch.setattr(clone, "__file__", str(root.parent / "site" / "mha_classroom" / "clone.py"))
    assert clone.find_root(root / "notebooks") == root.resolve()
    with pytest.raises(clone.CourseError, match="Clone the course"):
        clone.find_root(root.parent)


def test_user_errors_are_a_sentence_and_exit_code_2(root, monkeypatch, capsys):
    monkeypatch.setattr(cli, "find_root", lambda: root)
    assert cli.main(["reset", "99"]) == 2
    captured = capsys.readouterr()
    assert captured.err.startswith("There is no lesson 99.") and captured.out == ""
    for wrong in ([], ["unknown"], ["reset"], ["doctor", "--loud"]):
        with pytest.raises(SystemExit, match="2"):
            cli.main(wrong)


def test_lab_passes_its_arguments_on_in_order(root, monkeypatch):
    seen = []
    monkeypatch.setattr(cli, "find_root", lambda: root)
    monkeypatch.setattr(lab, "serve", lambda root, args: seen.extend(args))
    words = ["--no-browser", "--port", "8901", "notebooks/04_head_splitting.ipynb", "--ip=::1"]
    assert cli.main(["lab", *words]) == 0
    assert seen == words
    assert notebooks(root) == ALL


def test_lab_really_serves(root):
    for package in ("mha_course", "mha_classroom"):
        shutil.copytree(PACKAGE.parent / package, root / package)
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [
        sys.executable,
        "-m",
        "mha_classroom.commands.cli",
        "lab",
        "--no-browser",
        f"--port={port}",
    ]
    where = {"cwd": root, "env": {**os.environ, "PYTHONPATH": str(root)}}
    with open(root / "log", "wb") as log:
        server = subprocess.Popen(
            [*command, "--IdentityProvider.token=abc"], stdout=log, stderr=log, **where
        )
    try:
        listing = ask(server, f"http://127.0.0.1:{port}/api/contents/notebooks?token=abc")
        home = urllib.request.urlopen(f"http://127.0.0.1:{port}/?token=abc", timeout=10)
        with home:
            assert home.url.split("?")[0].endswith("/lab/tree/notebooks/00_start_here.ipynb")
    finally:
        server.terminate()
        assert server.wait(timeout=30) in (0, 1, -signal.SIGTERM), (root / "log").read_text()
    assert [item["name"] for item in listing["content"]] == [f"{stem}.ipynb" for stem in STEMS]


def ask(server, url):
    """The JSON that the address answers, as soon as it does."""
    for _ in range(300):
        assert server.poll() is None, "the server ended"
        try:
            with urllib.request.urlopen(url, timeout=10) as answer:
                return json.load(answer)
        except OSError:
            time.sleep(0.1)
    raise AssertionError("nothing answered")
