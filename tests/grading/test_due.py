"""Who was late is known from what the platform says, and costs what the instructor asked for."""

import os
import time
from datetime import UTC, datetime, timedelta

import pytest
from handed_notebooks import CELL, STEM, book
from results_made_up import FOUR, MERGE, POINTS, SPLIT, good, overrides, plain, read_grades, result

from mha_classroom.grading.handed_in.arrival import Arrival, arrival_of, days_late, read_due
from mha_classroom.grading.handed_in.find_submissions import find_submissions
from mha_classroom.grading.report.due import PENALTY, Due, Settling
from mha_classroom.grading.report.feedback_page import page
from mha_classroom.grading.report.overrides import read_overrides
from mha_classroom.grading.report.summary import summary
from mha_classroom.grading.report.tally import tally_of
from mha_classroom.grading.report.write_reports import write_grades

DUE = datetime(2026, 11, 22, 12, tzinfo=UTC)
KEY = ("Ann", FOUR)


@pytest.fixture
def berlin(monkeypatch):
    """A machine in Berlin."""
    monkeypatch.setenv("TZ", "Europe/Berlin")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("2026-11-22 23:59", "2026-11-22 22:59"),
        ("2026-11-22T23:59:30", "2026-11-22 22:59:30"),
        ("2026-07-22 23:59", "2026-07-22 21:59"),
        ("2026-11-22", "2026-11-22 23:00"),
        ("2026-11-22 23:59Z", "2026-11-22 23:59"),
        ("2026-11-22 23:59 +05:30", "2026-11-22 18:29"),
        ("2026-11-22 23:59 America/New_York", "2026-11-23 04:59"),
        ("2026-11-22 Asia/Shanghai", "2026-11-22 16:00"),
    ],
)
def test_a_time_is_of_this_machines_zone_unless_it_names_one(berlin, text, meant):
    assert read_due(text) == datetime.fromisoformat(meant).replace(tzinfo=UTC)


@pytest.mark.parametrize(
    "text", ["", "tomorrow", "22.11.2026", "2026-13-01", "2026-11-22 24:30", "2026-11-22 No/Where"]
)
def test_what_is_no_time_is_quoted(text):
    with pytest.raises(ValueError, match="is no time such as") as told:
        read_due(text)
    assert repr(text) in str(told.value)


def handed(folder, path, mtime=DUE, content=None):
    file = folder / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(content or book(CELL).encode())
    os.utime(file, (mtime.timestamp(),) * 2)
    [row] = find_submissions(folder, [STEM])[0]
    return row


def test_who_says_when(tmp_path):
    late = DUE + timedelta(hours=1)
    own = handed(tmp_path / "own", f"Ann/{STEM}.ipynb", late)
    assert arrival_of(own, zone=UTC) == Arrival("2026-11-22 13:00:00+00:00", "the file's time")
    (tmp_path / "own/Ann/timestamp.txt").write_text("2020-01-01 00:00:00 UTC")  # the student's own
    assert arrival_of(own, zone=UTC).source == "the file's time"
    nbgrader = handed(tmp_path / "nb", f"submitted/Ann/ps/{STEM}.ipynb", late)
    (nbgrader.path.parent / "timestamp.txt").write_text("2026-11-22 11:58:23.948203 UTC\n")
    stamp = arrival_of(nbgrader)
    assert (stamp.at, stamp.source) == ("2026-11-22 11:58:23+00:00", "nbgrader's timestamp.txt")
    moodle = handed(tmp_path / "m", f"Ann_1_assignsubmission_file/{STEM}.ipynb", late)
    assert arrival_of(moodle) == Arrival("", "Moodle's folders do not say when")
    told = arrival_of(moodle, "Monday, 23 November 2026, 8:05\u202fAM", UTC)
    assert told == Arrival("2026-11-23 08:05:00+00:00", "students.csv")
    assert arrival_of(moodle, "-").source.startswith("Moodle")
    with pytest.raises(ValueError, match="'Montag, 23. November 2026, 08:05' is no time"):
        arrival_of(moodle, "Montag, 23. November 2026, 08:05", UTC)


@pytest.mark.parametrize("seconds", [2**62, 2**40, -(2**40)])
def test_a_file_of_a_time_that_is_none_stops_no_class(tmp_path, monkeypatch, seconds):
    (tmp_path / "Ann").mkdir()
    (tmp_path / "Ann" / f"{STEM}.ipynb").write_text(book(CELL))
    ((own,), _) = find_submissions(tmp_path, [STEM])
    times = os.stat_result((*os.lstat(own.path)[:8], seconds, 0))
    monkeypatch.setattr(os, "lstat", lambda path: times)
    arrival = arrival_of(own, zone=UTC)
    assert not arrival.at and days_late(arrival, DUE) is None


@pytest.mark.parametrize("mark", ["", "LATE_"])
def test_canvas_says_who_is_late_whenever_the_file_was_downloaded(tmp_path, mark):
    row = handed(tmp_path, f"leeann_{mark}12_345_{STEM}.ipynb", DUE + timedelta(days=30))
    found = arrival_of(row)
    assert found == Arrival("", "Canvas's name of the file", bool(mark))
    assert days_late(found, DUE) == len(mark[:1])


def test_two_of_one_name_are_two_in_canvass_download(tmp_path):
    for number in (12, 13):
        handed_file = tmp_path / f"leeann_{number}_3{number}_{STEM}.ipynb"
        handed_file.write_bytes(book(CELL).encode())
    rows = find_submissions(tmp_path, [STEM])[0]
    assert [(row.student, row.number) for row in rows] == [("leeann 12", "12"), ("leeann 13", "13")]
    assert all(row.path and not row.problem for row in rows)


def test_nothing_has_no_time(tmp_path):
    handed(tmp_path, f"Ann/{STEM}.ipynb")
    (tmp_path / "Bob").mkdir()
    assert arrival_of(find_submissions(tmp_path, [STEM])[0][1]) is None


@pytest.mark.parametrize(
    ("seconds", "days"), [(-1, 0), (0, 0), (1, 1), (86_400, 1), (86_401, 2), (864_000, 10)]
)
def test_each_day_that_has_begun_counts(seconds, days):
    at = (DUE + timedelta(seconds=seconds)).isoformat()
    assert days_late(Arrival(at, ""), DUE) == days


def settled(tmp_path, days, percent, decided="", one=None):
    """Ann's result of lesson 04, of which she has 2 of 5 points."""
    lines = "student,lesson,task,points,comment\n" + decided
    points = {FOUR: POINTS[FOUR] | {PENALTY: 5.0}}
    (tmp_path / "overrides.csv").write_text(lines)
    made = read_overrides(tmp_path / "overrides.csv", points, [KEY])
    at = (DUE + timedelta(days=days)).isoformat(" ") if days is not None else ""
    settle = Settling(made, {FOUR: Due(DUE, percent)}, {KEY: Arrival(at, "the file's time")})
    return settle(one or good())


@pytest.mark.parametrize(
    ("days", "percent", "penalty"), [(0, 10, 0), (1, 10, 0.5), (3, 10, 1.5), (9, 10, 2), (3, 0, 0)]
)
def test_percent_of_the_most_points_a_day_and_never_below_0(tmp_path, days, percent, penalty):
    one = settled(tmp_path, days, percent)
    assert (one.points, one.late.penalty, one.counted) == (2, penalty, 2 - penalty)
    assert one.late.days == days


def test_what_a_human_decided_wins(tmp_path):
    one = settled(tmp_path, 9, 10, f"Ann,{FOUR},{MERGE},1.5,see my mail\n")
    assert (one.points, one.late.penalty, one.counted) == (3.5, 1.8, 1.7)
    one = settled(tmp_path, 9, 10, f"Ann,{FOUR},penalty,0,ill\n")
    assert (one.late.penalty, one.late.decided, one.counted) == (0, True, 2)
    told = plain(page(one))
    assert "Taken off: 0 points. Left: 2. Decided by your instructor: ill" in told
    one = settled(tmp_path, 0, 10, f"Ann,{FOUR},penalty,5,copied\n")
    assert (one.late.penalty, one.counted) == (2, 0)


def test_the_marks_keep_the_points_and_the_penalty_apart(tmp_path):
    one = settled(tmp_path, 2, 10)
    write_grades(tmp_path / "grades.csv", [one, result("Bob")], POINTS, due=True)
    ann, bob = read_grades(tmp_path / "grades.csv")
    assert [ann[x] for x in ("total", "days late", "penalty", "total after penalty")] == [
        *("2", "2", "1", "1")
    ]
    assert (
        ann["handed in"] == "2026-11-24 12:00:00+00:00" and ann["as said by"] == "the file's time"
    )
    assert (bob["days late"], bob["total after penalty"]) == ("", "0")
    assert ann[SPLIT] == "2"


def test_the_student_reads_what_was_taken_off(tmp_path):
    told = plain(page(settled(tmp_path, 2, 10)))
    assert "Handed in late at 2026-11-24 12:00:00+00:00: 2 days begun after it was due." in told
    assert "Taken off: 1 points. Left: 1." in told and "2 of 5 points" in told
    assert "Handed in" not in plain(page(settled(tmp_path, 0, 10)))
    assert "Taken off" not in plain(page(settled(tmp_path, 2, 0)))


def test_the_summary_says_who_says_so(tmp_path):
    text = summary(tally_of([settled(tmp_path, 2, 10), settled(tmp_path, 0, 10)]))
    assert "Handed in: 1 of 2 late, as the file's time says." in text
    assert "A penalty for being late: 1." in text
    unknown = Settling(
        overrides(tmp_path, "student,lesson,task,points\n"),
        {FOUR: Due(DUE, 10)},
        {KEY: Arrival("", "Moodle's folders do not say when")},
    )
    text = summary(tally_of([unknown(good())]))
    assert "1 at a time that is not known: Moodle's folders do not say when." in text


def test_a_late_file_of_canvass_costs_a_day_and_that_is_said():
    arrival = Arrival("", "Canvas's name of the file", True)
    one = Settling(deadlines={FOUR: Due(DUE, 10)}, arrivals={KEY: arrival})(good())
    assert (one.late.days, one.late.penalty) == (1, 0.5)
    assert "1 late by nobody knows how much: one day is counted." in summary(tally_of([one]))
