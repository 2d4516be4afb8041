"""What a human decided is read as it was meant, or refused with its line."""

import copy
import csv

import pytest
from results_made_up import (
    COUNT,
    FIVE,
    FOUR,
    MERGE,
    NAMES,
    POINTS,
    good,
    overrides,
    plain,
    read_grades,
    result,
)

from mha_classroom.grading.report import write_reports as reports
from mha_classroom.grading.report.feedback_page import page
from mha_classroom.grading.report.overrides import (
    COLUMNS,
    Overrides,
    apply_overrides,
    read_overrides,
)
from mha_classroom.grading.report.safe_text import (
    cell_text,
)


def test_a_file_with_only_the_header_is_made_and_nothing_else_ever_written(tmp_path):
    path = tmp_path / "new" / "overrides.csv"
    assert read_overrides(path, POINTS, []) == read_overrides(path, POINTS, []) == Overrides()
    assert path.read_text("utf-8-sig") == ",".join(COLUMNS) + "\n"
    text = f"student,lesson,task,points\nAnn,{FOUR},{MERGE},1\nAnn,{FOUR},{MERGE},x\n"
    path.write_text(text)
    with pytest.raises(ValueError, match="line 3"):
        read_overrides(path, POINTS, [("Ann", FOUR)])
    assert path.read_text() == text
    path.write_text("")  # a run was killed while it made the file
    assert read_overrides(path, POINTS, []) == Overrides() and path.read_text() == ""


LINES = f"student;lesson;task;points;comment\nAnn;{FOUR};{MERGE};1,5;a, b\n"


@pytest.mark.parametrize(
    "content",
    [
        LINES.encode("utf-8-sig"),
        LINES.replace("\n", "\r\n").encode(),
        f'points,student,x,lesson,task,comment\n1.5 ,Ann ,y, {FOUR} ,{MERGE} ,"a, b" \n'.encode(),
        LINES.replace("\n", "\n;;;;\n\n").encode(),
    ],
)
def test_what_spreadsheets_write_is_understood(tmp_path, content):
    found = overrides(tmp_path, content)
    assert found.problems == ()
    [decision] = found.listed()
    assert (decision["student"], decision["points"], decision["comment"]) == ("Ann", 1.5, "a, b")


@pytest.mark.parametrize("points", ["", "x", "-1", "nan", "inf", "1e0", "1_0", "3.5", "٣", "."])
def test_points_that_are_none_are_named_with_their_line(tmp_path, points):
    text = f"student,lesson,task,points\n\nAnn,{FOUR},{MERGE},{points}\n"
    with pytest.raises(ValueError, match="overrides.csv, line 3: ") as caught:
        overrides(tmp_path, text)
    assert (points in str(caught.value)) and "3" in str(caught.value)


def test_many_wrong_lines_are_named_together(tmp_path):
    text = "student,lesson,task,points\n" + f'"Ann",{FOUR},{MERGE},"9"\n' * 13
    with pytest.raises(ValueError) as caught:
        overrides(tmp_path, text)
    assert str(caught.value).count("9 points are more than the 3") == 13
    assert "line 2:" in str(caught.value) and "line 14:" in str(caught.value)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (
            b"student,lesson,task,points\nAnn,a,b,1,5\n",
            "line 2: more cells than .* ',' has to stand in quotes",
        ),
        (b"student,lesson,points\n", "no column task"),
        (b"Ann,04,x,1\n", "no column student, lesson, task, points"),
        (b"student,lesson,task,points\nJos\xe9,1,2,3\n", "line 2: this is not UTF-8"),
        (b"student,lesson,task,points\n" + b"a" * 200_000, "line 2: field larger"),
    ],
)
def test_a_file_that_is_no_table_is_refused(tmp_path, content, message):
    with pytest.raises(ValueError, match=message):
        overrides(tmp_path, content)


def test_lines_that_fit_nothing_and_double_ones_are_reported(tmp_path):
    lines = [
        "student,lesson,task,points,comment",
        f"Bob,{FOUR},{MERGE},1,",
        f"Ann,04,{MERGE},1,",
        f"Ann,{FOUR},{COUNT},1,",
        f"Ann,{FIVE},{COUNT},1,",
        f'Ann,{FOUR},{MERGE},1,"two\nlines"',
        f"Ann,{FOUR},{MERGE},2,last",
    ]
    found = overrides(tmp_path, "\n".join(lines), lessons=[FOUR])
    expected = ["2: there is no student 'Bob'", "3: there is no lesson '04'"]
    expected += ["4: '04_head_splitting' has no task", "5: 'Ann' handed nothing in for '05_"]
    expected += ["8: a second line for 'Ann'"]
    assert len(found.problems) == len(expected)
    for problem, words in zip(found.problems, expected, strict=True):
        assert f"overrides.csv, line {words}" in problem
    assert [(one["points"], one["comment"]) for one in found.listed()] == [(2.0, "last")]


@pytest.mark.parametrize("name", NAMES)
def test_a_name_can_be_copied_from_the_grades(tmp_path, name):
    rest = f"{FOUR},{MERGE},1"
    path = tmp_path / "names.csv"
    with open(path, "w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([COLUMNS[:4], [cell_text(name), *rest.split(",")]])
    found = overrides(tmp_path, path.read_bytes(), students=[name, "Zoe"])
    assert found.problems == () and list(found.decisions) == [(name, FOUR)]


def test_a_name_as_it_is_comes_before_one_as_the_grades_show_it(tmp_path):
    text = f"student,lesson,task,points\n'-Ann,{FOUR},{MERGE},1\nJo,{FOUR},{MERGE},1\n"
    found = overrides(tmp_path, text, students=["-Ann", "'-Ann", "Jo", "Jo "])
    assert found.problems == () and list(found.decisions) == [("'-Ann", FOUR), ("Jo", FOUR)]


def test_a_decision_replaces_the_points_and_keeps_the_verdict(tmp_path):
    text = f"student,lesson,task,points,comment\nAnn,{FOUR},{MERGE},1.5,<b>nearly</b>\n"
    decided = overrides(tmp_path, text)
    one, before = good(), copy.deepcopy(good())
    after = apply_overrides(one, decided)
    assert one == before and after.points == 3.5 and after.max == 5.0
    assert after.tasks[1].verdict == "wrong" and after.tasks[1].machine == 0.0
    assert "Decided by your instructor: <b>nearly</b>" in plain(page(after))
    assert "<b>" not in page(after)
    assert "✗ not yet; decided by your instructor" in plain(page(after))
    reports.write_grades(tmp_path / "grades.csv", [after], POINTS)
    [row] = read_grades(tmp_path / "grades.csv")
    assert row["total"] == "3.5" and row[f"{MERGE} verdict"] == "wrong"
    assert row["notes"] == f"{MERGE}: a human gave 1.5, not 0 (<b>nearly</b>)"


def test_what_was_not_graded_can_be_decided_too(tmp_path):
    decided = overrides(tmp_path, f"student,lesson,task,points\nAnn,{FOUR},{MERGE},1\n")
    after = apply_overrides(result(problem="it is empty"), decided)
    assert [one.verdict for one in after.tasks] == ["not run", "not run"]
    assert (after.points, after.max) == (1.0, 5.0)
    assert "Decided by your instructor." in plain(page(after))
