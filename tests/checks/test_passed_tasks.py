"""Progress: what is kept, where, and what a broken file does to it."""

import json
import os

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
    assert "Nothing is kept here" in str(found)


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
