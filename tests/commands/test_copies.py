"""The learner's copies in work/: what was changed is never overwritten, the rest is kept new."""

import hashlib
import json
import os
import re
import shutil
import threading
from pathlib import Path

import nbformat
import pytest
from ipykernel.ipkernel import IPythonKernel
from small_clone import ALL, NOTEBOOK, contents, notebooks, put

from mha_classroom import clone
from mha_classroom.commands import copies

COURSE = Path(clone.__file__).parents[1]


def test_first_start_copies_everything_and_says_so(root):
    assert copies.prepare(root) == ([f"3 notebooks copied into {root / 'work'}."], None)
    assert notebooks(root) == ALL


def test_links_between_folders_lead_to_the_same_file_in_both_places(root):
    copies.prepare(root)
    link = "notebooks/../exercises/04_head_splitting.ipynb"
    assert (root / link).resolve().is_file() and (root / "work" / link).resolve().is_file()


def test_second_start_changes_nothing_and_says_nothing(root):
    copies.prepare(root)
    put(root, "work/notebooks/04_head_splitting", "mine")
    before = contents(root)
    assert copies.prepare(root) == ([], None)
    assert contents(root) == before


def test_changed_original_is_put_beside_once(root):
    copies.prepare(root)
    put(root, "work/notebooks/04_head_splitting", "mine")
    put(root, "notebooks/04_head_splitting", "version 2")
    lines, page = copies.prepare(root)
    assert lines[0] == "Changed by you, so they stay, with the new one beside: 1."
    assert "| [notebooks/04_head_splitting.ipynb](notebooks/04_head" in contents(root)[page]
    assert "| [notebooks/04_head_splitting.new_version.ipynb](note" in contents(root)[page]
    assert contents(root)["notebooks/04_head_splitting.ipynb"] == "mine"
    assert contents(root)["notebooks/04_head_splitting.new_version.ipynb"] == "version 2"
    (root / "work/notebooks/04_head_splitting.new_version.ipynb").unlink()
    before = contents(root)
    assert copies.prepare(root) == ([], None) and contents(root) == before


def test_a_new_copy_that_was_worked_in_stays_and_one_that_was_not_gives_way(root):
    copies.prepare(root)
    put(root, "work/notebooks/04_head_splitting", "mine")
    for version in ("version 2", "version 3"):
        put(root, "notebooks/04_head_splitting", version)
        copies.prepare(root)
    assert contents(root)["notebooks/04_head_splitting.new_version.ipynb"] == "version 3"
    put(root, "work/notebooks/04_head_splitting.new_version", "mine too")
    put(root, "notebooks/04_head_splitting", "version 4")
    copies.prepare(root)
    found = contents(root)
    assert found["notebooks/04_head_splitting.ipynb"] == "mine"
    assert found["notebooks/04_head_splitting.new_version.ipynb"] == "mine too"
    assert found["notebooks/04_head_splitting.new_version2.ipynb"] == "version 4"


def test_what_was_never_changed_is_replaced_by_the_new_version(root):
    copies.prepare(root)
    put(root, "notebooks/04_head_splitting", "version 2")
    lines, page = copies.prepare(root)
    assert lines == [
        "Renewed, as you had not changed them: 1 notebooks.",
        "Which ones: work/what_is_new.md",
    ]
    assert contents(root)["notebooks/04_head_splitting.ipynb"] == "version 2"
    assert notebooks(root) == ALL
    assert "(notebooks/04_head_splitting.ipynb)" in contents(root)[page]
    assert copies.prepare(root) == ([], None)
    put(root, "notebooks/04_head_splitting", "version 3")
    copies.prepare(root)
    assert contents(root)["notebooks/04_head_splitting.ipynb"] == "version 3"
    assert not [name for name in contents(root) if ".before_" in name or name.endswith(".tmp")]


def test_many_changes_are_three_lines_and_a_page(root):
    for number in range(5, 25):
        put(root, f"notebooks/{number:02}_more", NOTEBOOK)
    copies.prepare(root)
    for number in range(5, 25):
        put(root, f"notebooks/{number:02}_more", "version 2")
        if number % 2:
            put(root, f"work/notebooks/{number:02}_more", "mine")
    lines, page = copies.prepare(root)
    assert len(lines) == 3
    text = contents(root)[page]
    for number in range(5, 25):
        both = f"{number:02}_more.ipynb)", f"{number:02}_more.new_version.ipynb)"
        assert [name in text for name in both] == [True, bool(number % 2)]
    for link in re.findall(r"\]\(([^)]+)\)", text):
        assert (root / "work" / link).is_file(), link


def test_a_page_that_the_learner_has_written_in_stays(root):
    copies.prepare(root)
    pages = []
    for folder in copies.FOLDERS:
        put(root, f"work/{folder}/04_head_splitting", "mine")
        put(root, f"{folder}/04_head_splitting", "version 2")
        pages.append(copies.prepare(root)[1])
        with open(root / "work" / pages[-1], "a", encoding="utf-8") as file:
            file.write("my notes")
    assert pages == ["what_is_new.md", "what_is_new.new_version.md"]
    assert contents(root)["what_is_new.md"].endswith("my notes")
    assert "exercises/" in contents(root)["what_is_new.new_version.md"]


def test_links_in_a_fresh_copy_lead_somewhere(tmp_path):
    for folder in copies.FOLDERS:
        shutil.copytree(COURSE / folder, tmp_path / folder)
    copies.prepare(tmp_path)
    for folder in copies.FOLDERS:
        put(tmp_path, f"work/{folder}/04_head_splitting", "mine")
    copies.reset(tmp_path, "04")
    links = 0
    for folder in copies.FOLDERS:
        path = tmp_path / "work" / folder / "04_head_splitting.new_version.ipynb"
        for cell in nbformat.read(path, as_version=4).cells:
            for link in re.findall(r"\]\(([^)#:]+\.ipynb)\)", cell.source):
                assert (path.parent / link).resolve().is_file(), link
                links += 1
    assert links >= 8


def save_before(name, path, monkeypatch):
    """Let somebody save the notebook just before copies.os does this."""
    really = getattr(os, name)

    def saving(*args):
        monkeypatch.setattr(copies.os, name, really)
        path.write_text("saved meanwhile")
        return really(*args)

    monkeypatch.setattr(copies.os, name, saving)


@pytest.mark.parametrize("moment", ["rename", "link", "fsync"])
def test_what_is_saved_while_it_is_replaced_stays(root, monkeypatch, moment):
    copies.prepare(root)
    mine = root / "work/notebooks/04_head_splitting.ipynb"
    known = [hashlib.sha256(NOTEBOOK.encode()).hexdigest()]
    save_before(moment, mine, monkeypatch)
    assert not copies.replace(mine, b"version 2", known)
    assert contents(root)["notebooks/04_head_splitting.ipynb"] == "saved meanwhile"
    assert notebooks(root) == ALL


def test_what_is_written_on_into_the_file_aside_stays(root, monkeypatch):
    """JupyterLab empties a file and writes: here it has it open while it is taken aside."""
    copies.prepare(root)
    mine = root / "work/notebooks/04_head_splitting.ipynb"
    known = [hashlib.sha256(NOTEBOOK.encode()).hexdigest()]
    rename, opened = os.rename, []

    def emptied(*args):
        opened.append(open(mine, "w"))
        rename(*args)

    monkeypatch.setattr(copies.os, "rename", emptied)
    try:
        assert not copies.replace(mine, b"version 2", known)
        opened[0].write("mine")
    finally:
        opened[0].close()
    assert contents(root)["notebooks/04_head_splitting.ipynb"] == "mine"


def test_a_full_disk_leaves_the_old_version(root, monkeypatch):
    copies.prepare(root)
    put(root, "notebooks/04_head_splitting", "version 2")

    def full(descriptor):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(copies.os, "fsync", full)
    with pytest.raises(clone.CourseError, match="No space left"):
        copies.prepare(root)
    assert contents(root)["notebooks/04_head_splitting.ipynb"] == NOTEBOOK
    assert notebooks(root) == ALL


def test_a_copy_says_of_its_language_what_the_kernel_says(root):
    """JupyterLab would write that in on opening, and then ask whether to save."""
    original = (COURSE / "notebooks" / "04_head_splitting.ipynb").read_bytes()
    (root / "notebooks" / "04_head_splitting.ipynb").write_bytes(original)
    copies.prepare(root)
    copy = (root / "work" / "notebooks" / "04_head_splitting.ipynb").read_bytes()
    assert copies.as_opened(copy) == copy != original
    before, after = json.loads(original), json.loads(copy)
    assert after["metadata"].pop("language_info") == IPythonKernel.language_info
    del before["metadata"]["language_info"]
    assert after == before
    # Saved by Jupyter without a change it is the same file, and no work of the learner's.
    assert (nbformat.writes(nbformat.reads(copy.decode(), 4)) + "\n").encode() == copy
    put(root, "notebooks/04_head_splitting", "version 2")
    copies.prepare(root)
    assert contents(root)["notebooks/04_head_splitting.ipynb"] == "version 2"


def test_another_python_renews_what_was_not_changed_and_says_nothing(root, monkeypatch):
    original = (COURSE / "notebooks" / "04_head_splitting.ipynb").read_bytes()
    (root / "notebooks" / "04_head_splitting.ipynb").write_bytes(original)
    copies.prepare(root)
    put(root, "work/exercises/04_head_splitting", "mine")
    monkeypatch.setattr(IPythonKernel, "language_info", {"name": "python", "version": "3.99"})
    assert copies.prepare(root) == ([], None)
    assert '"3.99"' in contents(root)["notebooks/04_head_splitting.ipynb"]
    assert notebooks(root) == ALL


def test_deleted_lesson_comes_back(root):
    copies.prepare(root)
    (root / "work" / ALL[0]).unlink()
    assert copies.prepare(root) == ([f"1 notebooks copied into {root / 'work'}."], None)
    assert notebooks(root) == ALL


@pytest.mark.parametrize("broken", ["", "{", "[]", '{"given": 3}', '{"given": {"a": 1}}', "\xff"])
def test_broken_record_is_set_aside_and_made_anew(root, broken):
    copies.prepare(root)
    put(root, "work/notebooks/04_head_splitting", "mine")
    (root / "work" / copies.RECORD).write_bytes(broken.encode("latin-1"))
    copies.prepare(root)
    aside = list((root / "work").glob(f"{copies.RECORD}.broken-*"))
    assert [path.read_bytes() for path in aside] == [broken.encode("latin-1")]
    given = json.loads((root / "work" / copies.RECORD).read_text())["given"]
    assert set(given) == {*ALL, copies.NEWS}
    assert contents(root)["notebooks/04_head_splitting.ipynb"] == "mine"
    assert copies.prepare(root) == ([], None)


def test_lost_record_costs_one_fresh_copy_of_what_was_worked_in(root):
    copies.prepare(root)
    put(root, "work/notebooks/04_head_splitting", "mine")
    (root / "work" / copies.RECORD).unlink()
    copies.prepare(root)
    assert notebooks(root) == sorted([*ALL, "notebooks/04_head_splitting.new_version.ipynb"])
    assert copies.prepare(root) == ([], None)


def test_record_that_is_a_folder_is_set_aside(root):
    (root / "work" / copies.RECORD).mkdir(parents=True)
    copies.prepare(root)
    assert notebooks(root) == ALL and (root / "work" / copies.RECORD).is_file()


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
    assert copies.prepare(root)[1] == copies.NEWS
    assert os.lstat(path).st_mtime_ns == before.st_mtime_ns
    assert not (root / "nowhere").exists()
    assert contents(root)["notebooks/04_head_splitting.new_version.ipynb"] == NOTEBOOK
    assert copies.prepare(root) == ([], None)


def test_file_where_a_folder_should_be_gets_a_sentence(root):
    (root / "work").write_text("not a folder")
    with pytest.raises(clone.CourseError, match="cannot be made"):
        copies.prepare(root)
    assert (root / "work").read_text() == "not a folder"


def test_no_half_written_copy_under_the_final_name(root, monkeypatch):
    def full(descriptor):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(copies.os, "fsync", full)
    with pytest.raises(clone.CourseError, match="No space left"):
        copies.prepare(root)
    assert contents(root) == {}


@pytest.mark.parametrize("links", [True, False])
def test_starts_at_the_same_time_make_each_copy_once(root, monkeypatch, links):
    if not links:

        def no_links(source, target):
            raise PermissionError(1, "Operation not permitted")

        monkeypatch.setattr(copies.os, "link", no_links)
    gate, errors = threading.Barrier(8), []

    def start():
        gate.wait()
        try:
            copies.prepare(root)
        except Exception as error:
            errors.append(error)

    threads = [threading.Thread(target=start) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    assert [name for name in notebooks(root) if ".new_version" not in name] == ALL
    assert all(text == NOTEBOOK for name, text in contents(root).items() if name in ALL)
    # A link appears whole. Without links another start may meet a file that is still growing and
    # take it for the learner's: a fresh copy too many, news of it, and nothing lost.
    others = set(contents(root)) - set(notebooks(root))
    if links:
        assert (notebooks(root), others) == (ALL, {copies.RECORD})
    assert {name for name in others if not name.startswith("what_is_new")} == {copies.RECORD}


def test_create_never_replaces(tmp_path, monkeypatch):
    path = tmp_path / "lesson.ipynb"
    assert copies.create(path, b"first") and not copies.create(path, b"second")
    # The name is taken between the look and the write.
    monkeypatch.setattr(copies.os.path, "lexists", lambda path: False)
    assert not copies.create(path, b"third")
    assert path.read_bytes() == b"first"
    assert os.listdir(tmp_path) == ["lesson.ipynb"]


@pytest.mark.parametrize("word", ["4", "04", "04_head_splitting", "04_head_splitting.ipynb"])
def test_reset_puts_fresh_copies_beside(root, word):
    copies.prepare(root)
    put(root, "work/notebooks/04_head_splitting", "mine")
    lines = copies.reset(root, word)
    assert len(lines) == 2 and all("stays as it is" in line for line in lines)
    found = contents(root)
    assert found["notebooks/04_head_splitting.ipynb"] == "mine"
    assert found["notebooks/04_head_splitting.new_version.ipynb"] == NOTEBOOK
    assert found["exercises/04_head_splitting.new_version.ipynb"] == NOTEBOOK
    copies.reset(root, word)
    assert contents(root) == found
    put(root, "work/notebooks/04_head_splitting.new_version", "mine too")
    copies.reset(root, word)
    assert contents(root)["notebooks/04_head_splitting.new_version.ipynb"] == "mine too"
    assert contents(root)["notebooks/04_head_splitting.new_version2.ipynb"] == NOTEBOOK


@pytest.mark.parametrize("word", ["7", "04_head", "x", "", "-1"])
def test_reset_of_what_does_not_exist_lists_what_does(root, word):
    with pytest.raises(clone.CourseError, match="00_start_here, 04_head_splitting"):
        copies.reset(root, word)
    assert not (root / "work").exists()
