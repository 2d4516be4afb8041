"""Progress: what is kept, where, and what a broken file does to it."""

import json
import os
import shutil
from pathlib import Path
from types import SimpleNamespace

import pytest

from mha_classroom.checks import check, passed_tasks, progress, tasks


@pytest.fixture
def work(tmp_path, monkeypatch):
    """The work/notebooks of a clone of its own, as the current directory."""
    folder = tmp_path / "work" / "notebooks"
    folder.mkdir(parents=True)
    monkeypatch.setattr(passed_tasks, "find_root", lambda: tmp_path)
    monkeypatch.chdir(folder)
    return tmp_path / "work"


def split(X, num_heads):
    return X.reshape(*X.shape[:2], num_heads, -1).transpose(1, 2).flatten(0, 1)


def test_a_passed_check_is_kept_and_a_later_failure_takes_nothing_away(work, capsys):
    check("04-transpose_qkv", split)
    with pytest.raises(AssertionError):
        check("04-transpose_qkv", lambda X, num_heads: X)
    found = progress()
    assert found.passed == {"04-transpose_qkv"} and found.kept
    assert found.sets["04_head_splitting"]["04-transpose_qkv"] is True
    assert found.next == tasks()[0]
    assert "04_head_splitting        █░░░░░░░░░ 1 of 8" in str(found)
    assert f"Next: {tasks()[0]}, in exercises/01_attention_math.ipynb." in str(found)
    page = found._repr_html_()
    assert '<progress value="1" max="8" aria-label="04_head_splitting: 1 of 8">' in page
    assert "✓&nbsp;transpose_qkv" in page and "○&nbsp;transpose_output" in page


def test_nothing_is_kept_outside_of_work(work, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    check("04-transpose_qkv", split)
    assert not (work / passed_tasks.FILE).exists()
    found = progress()
    assert not found.kept and found.passed == frozenset()
    # The same text for as long as the course lasts: it is stored in notebooks.
    assert str(found) == passed_tasks.NOT_KEPT and "work/" in found._repr_html_()


@pytest.fixture
def shown(monkeypatch):
    """What a notebook displays."""
    found = []
    monkeypatch.setattr("IPython.get_ipython", lambda: SimpleNamespace(user_ns={}))
    monkeypatch.setattr("IPython.display.display", found.append)
    return found


@pytest.fixture
def solutions(tmp_path):
    folder = tmp_path / "solutions"
    folder.mkdir()
    shutil.copy(Path(__file__).parents[2] / "solutions" / "04_head_splitting.ipynb", folder)
    return folder


def try_wrong(times):
    for _ in range(times):
        with pytest.raises(AssertionError):
            check("04-transpose_qkv", lambda X, num_heads: X)


def test_a_right_answer_shows_the_solution_at_once(work, solutions, shown):
    check("04-transpose_qkv", split)
    feedback, solution = shown
    assert feedback.passed
    page = solution._repr_markdown_()
    assert page.startswith("<details><summary>") and page.endswith("</details>")
    assert "X.permute(0, 2, 1, 3)" in page and "### " not in page
    assert "permute" not in repr(solution)


def test_a_wrong_answer_shows_it_with_the_third_try_of_this_task(work, solutions, shown):
    try_wrong(2)
    assert len(shown) == 2
    try_wrong(1)
    assert "X.permute(0, 2, 1, 3)" in shown[3]._repr_markdown_()


def test_what_is_not_written_has_not_been_tried(work, solutions, shown):
    def transpose_qkv(X, num_heads):
        raise NotImplementedError()

    for _ in range(4):
        with pytest.raises(AssertionError):
            check("04-transpose_qkv", transpose_qkv)
    try_wrong(2)
    assert len(shown) == 6 and not any(hasattr(one, "source") for one in shown)


@pytest.mark.parametrize("text", [None, "{", '{"cells": []}'])
def test_without_solutions_there_is_only_the_feedback(work, solutions, shown, text):
    path = solutions / "04_head_splitting.ipynb"
    path.unlink()
    if text:
        path.write_text(text)
    check("04-transpose_qkv", split)
    try_wrong(3)
    assert len(shown) == 4


def test_outside_of_work_there_is_only_the_feedback(work, solutions, shown, monkeypatch):
    monkeypatch.chdir(solutions)
    check("04-transpose_qkv", split)
    assert len(shown) == 1


def test_a_folder_that_is_only_called_work_does_not_count(work, tmp_path, monkeypatch, capsys):
    other = tmp_path / "elsewhere" / "work"
    other.mkdir(parents=True)
    monkeypatch.chdir(other)
    check("04-transpose_qkv", split)
    assert list(other.iterdir()) == [] and not progress().kept


def test_the_end_is_said():
    done = passed_tasks.Progress(frozenset(tasks()))
    assert done.next is None and "Every task is passed." in str(done)


@pytest.mark.parametrize(
    "text",
    [
        "not json\n",
        '{"format": 1, "task": "04-transpose_qkv", "passed": tr',
        '{"format": 99, "task": "x", "passed": true}\n',
        '{"format": 1, "task": 3, "passed": true}\n',
        "[]\n",
        "\x00\xff\n",
    ],
)
def test_a_broken_or_old_file_is_set_aside_and_its_good_lines_are_kept(work, text, capsys):
    good = json.dumps({"format": 1, "task": "04-transpose_output", "passed": True}) + "\n"
    (work / passed_tasks.FILE).write_text(good + text, encoding="utf-8")
    assert progress().passed == {"04-transpose_output"}
    aside = list(work.glob(f"{passed_tasks.FILE}.broken-*"))
    assert [path.read_text(encoding="utf-8") for path in aside] == [good + text]
    check("04-transpose_qkv", split)
    assert progress().passed == {"04-transpose_output", "04-transpose_qkv"}
    assert len(list(work.glob(f"{passed_tasks.FILE}.broken-*"))) == 1


def test_what_cannot_be_written_does_not_fail_a_check(work, capsys):
    (work / passed_tasks.FILE).mkdir()
    check("04-transpose_qkv", split)
    assert "passed" not in os.listdir(work)


def test_a_task_that_is_gone_does_no_harm(work):
    line = json.dumps({"format": 1, "task": "04-no_longer_there", "passed": True})
    (work / passed_tasks.FILE).write_text(line + "\n", encoding="utf-8")
    assert progress().next == tasks()[0]
    assert "04-no_longer_there" not in progress()._repr_html_()
