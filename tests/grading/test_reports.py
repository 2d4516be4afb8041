"""The files that grading leaves hold whole and equal results, whatever goes wrong."""

import csv
import json
import os
import weakref

import pytest
from results_made_up import (
    COUNT,
    EVIL,
    FIVE,
    FOUR,
    MERGE,
    NAMES,
    POINTS,
    SPLIT,
    good,
    overrides,
    read_grades,
    result,
    runs_as_formula,
    settled,
    task,
)

from mha_classroom.grading.report import write_reports as reports
from mha_classroom.grading.report.due import Settling
from mha_classroom.grading.report.overrides import (
    Overrides,
)
from mha_classroom.grading.results import Result

# Files


def test_text_and_json_are_utf8_with_plain_line_ends(tmp_path):
    reports.write_text(tmp_path / "new" / "a.txt", "安\nb\n")
    assert (tmp_path / "new" / "a.txt").read_bytes() == "安\nb\n".encode()
    data = {"b": [1, EVIL], "a": "安"}
    reports.write_json(tmp_path / "a.json", data)
    raw = (tmp_path / "a.json").read_bytes()
    assert "安".encode() in raw and raw.endswith(b"}\n") and raw.index(b'"a"') < raw.index(b'"b"')
    assert json.loads(raw) == data


def test_a_file_that_would_not_change_is_not_touched(tmp_path):
    path = tmp_path / "a.json"
    reports.write_json(path, [EVIL])
    before = path.stat()
    reports.write_json(path, [EVIL])
    assert path.stat() == before
    reports.write_json(path, [])
    assert path.stat().st_ino != before.st_ino and path.read_text() == "[]\n"


@pytest.mark.parametrize("moment", ["fsync", "replace"])
def test_an_interrupted_write_leaves_the_old_file(tmp_path, monkeypatch, moment):
    def interrupted(*args):
        raise KeyboardInterrupt

    path = tmp_path / "a.json"
    reports.write_json(path, "old")
    with monkeypatch.context() as patched:
        patched.setattr(reports.os, moment, interrupted)
        with pytest.raises(KeyboardInterrupt):
            reports.write_json(path, "new")
    assert json.loads(path.read_text()) == "old" and list(tmp_path.iterdir()) == [path]


def test_what_breaks_on_the_way_leaves_the_old_files(tmp_path):
    def broken():
        yield good()
        raise OSError("the disk is gone")

    grades, found = tmp_path / "grades.csv", tmp_path / "results.json"
    grades.write_text("old")
    found.write_text("old")
    with pytest.raises(OSError, match="disk"):
        reports.write_grades(grades, broken(), POINTS)
    with pytest.raises(OSError, match="disk"):
        reports.write_results(found, broken(), 3, {}, Overrides())
    with pytest.raises(ValueError, match="not JSON compliant"):
        reports.write_json(found, float("nan"))
    with pytest.raises(TypeError, match="not JSON serializable"):
        reports.write_json(found, {1, 2})
    assert grades.read_text() == found.read_text() == "old" and len(list(tmp_path.iterdir())) == 2


def test_a_killed_process_leaves_the_old_file_and_a_draft_that_is_cleared(tmp_path):
    path = tmp_path / "below" / "a.txt"
    reports.write_text(path, "old")
    child = os.fork()
    if not child:
        reports.os.replace = lambda *args: os._exit(9)
        reports.write_text(path, "new")
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 9
    kept = tmp_path / ".my.draft"
    kept.write_text("not ours")
    assert path.read_text() == "old" and len(list(path.parent.iterdir())) == 2
    reports.clear_drafts(tmp_path)
    assert list(path.parent.iterdir()) == [path] and kept.exists()


# grades.csv


def test_grades_have_a_row_for_each_submission_and_a_column_for_each_task(tmp_path):
    path = tmp_path / "grades.csv"
    results = [good(name) for name in NAMES]
    results.append(result("Ann", FIVE, [task(COUNT, "timeout", 0.5, 5.0)], notes=("-1 is odd",)))
    results.append(result("Bob", FIVE, problem="is not a notebook"))
    reports.write_grades(path, settled(*results), POINTS)
    assert path.read_bytes().startswith(b"\xef\xbb\xbfstudent,lesson,04-transpose_qkv,04-tr")
    with open(path, encoding="utf-8-sig", newline="") as file:
        rows = list(csv.reader(file))
    assert not any(runs_as_formula(cell) for row in rows for cell in row)
    assert len(rows) == 1 + len(results) == len(path.read_text("utf-8").splitlines())
    read = {(row["student"], row["lesson"]): row for row in read_grades(path)}
    assert list(read) == [(one.student, one.lesson) for one in results]
    ann = read["Ann", FOUR]
    assert [ann[x] for x in (SPLIT, MERGE, COUNT, "total", "max")] == ["2", "0", "", "2", "5"]
    assert ann[f"{MERGE} verdict"] == "wrong" and ann[f"{COUNT} verdict"] == ""
    assert read["Ann", FIVE][COUNT] == "0.5" and read["Ann", FIVE]["notes"] == "-1 is odd"
    bob = read["Bob", FIVE]
    assert (bob[COUNT], bob[f"{COUNT} verdict"], bob["total"]) == ("0", "not run", "0")
    assert bob["notes"] == "is not a notebook"


def test_a_long_note_is_cut_and_points_are_added_without_rounding_errors(tmp_path):
    tasks = [task(SPLIT, "wrong", 0.1), task(MERGE, "wrong", 0.2, 3.0)]
    [one] = settled(result(tasks=tasks, notes=("x" * 40_000,), human=("look",)))
    assert one.points == 0.3
    reports.write_grades(tmp_path / "grades.csv", [one], POINTS)
    [row] = read_grades(tmp_path / "grades.csv")
    assert row["total"] == "0.3" and len(row["notes"]) == 2000 and row["notes"].endswith("…")


# results.json, run.json


def test_equal_input_gives_equal_files(tmp_path):
    results = [good(name) for name in NAMES]
    out = [tmp_path / "one", tmp_path / "two"]
    for folder in out:
        decided = overrides(tmp_path, f"student,lesson,task,points\nAnn,{FOUR},{MERGE},1\n")
        reports.write_reports(
            folder,
            results,
            points=POINTS,
            titles={},
            seed=3,
            versions=reports.versions({FOUR: "ab"}),
            settle=Settling(decided),
        )
    files = [sorted(p.relative_to(f) for p in f.rglob("*") if p.is_file()) for f in out]
    assert files[0] == files[1] and len(files[0]) == len(NAMES) + 2
    assert all((out[0] / name).read_bytes() == (out[1] / name).read_bytes() for name in files[0])


def test_results_are_what_the_machine_found_with_the_overrides_apart(tmp_path):
    path = tmp_path / "results.json"
    decided = overrides(tmp_path, f"student,lesson,task,points,comment\nAnn,{FOUR},{MERGE},1,ok\n")
    reports.write_results(path, iter([good("b"), good(EVIL), good("Ann")]), 3, {"v": "1"}, decided)
    data = json.loads(path.read_bytes())
    assert list(data) == sorted(data) and data["seed"] == 3 and data["versions"] == {"v": "1"}
    found = [Result.from_json(one) for one in data["results"]]
    assert found == [good("b"), good(EVIL), good("Ann")]
    assert data["overrides"] == [
        {"student": "Ann", "lesson": FOUR, "task": MERGE, "points": 1.0, "comment": "ok"}
    ]
    reports.write_results(path, [], 3, {}, Overrides())
    assert json.loads(path.read_bytes())["results"] == []


def test_results_are_not_held_while_they_are_written(tmp_path):
    alive = weakref.WeakSet()

    def stream():
        for i in range(97):
            one = good(f"s{i}")
            alive.add(one)
            assert len(alive) <= 2
            yield one

    reports.write_results(tmp_path / "results.json", stream(), 3, {}, Overrides())
    assert len(json.loads((tmp_path / "results.json").read_text())["results"]) == 97


def test_versions_and_times(tmp_path):
    made = reports.versions({FOUR: "ab"})
    assert set(made) == {"python", "torch", "numpy", "nbval", "mha-course", "assignments"}
    times = [{"student": s, "lesson": FOUR, "seconds": 0.5, "kernels": 1} for s in ("b", "安", "a")]
    reports.write_run(tmp_path / "run.json", 0.25, 7.5, times, {"workers": 2, "isolation": "on"})
    data = json.loads((tmp_path / "run.json").read_text())
    assert [one["student"] for one in data["submissions"]] == ["a", "b", "安"]
    assert (data["start"], data["seconds"]) == ("1970-01-01T00:00:00+00:00", 7.25)
    assert data["settings"] == {"workers": 2, "isolation": "on"}
    with pytest.raises(ValueError, match="ended at 2, before it started at 3"):
        reports.write_run(tmp_path / "run.json", 3, 2, [], {})
