"""students.csv is understood as platforms and people write it, and hand-ins are matched to it."""

import csv
import io
from datetime import UTC, datetime

import pytest
from results_made_up import FIVE, FOUR, MERGE, POINTS, SPLIT, good, result, runs_as_formula, task

from mha_classroom.grading.handed_in.arrival import Arrival
from mha_classroom.grading.handed_in.find_submissions import HandedIn
from mha_classroom.grading.handed_in.students import Student, match_students, read_students
from mha_classroom.grading.register import Asked, Register
from mha_classroom.grading.report.due import Due, apply_due
from mha_classroom.grading.report.platform_files import ClassList, write_platform_files

CANVAS = """Student,ID,SIS User ID,SIS Login ID,Section,Old homework (77)
    Points Possible,,,,,10
"Example, Ann",501,u1001,aexample,Group A,9
"Li, Bob",502,u1002,bli,Group A,
"""
MOODLE = """"First name",Surname,"ID number",Institution,Department,"Email address",Last
Ann,Example,1001,,,ann@uni.example,1790000000
Bob,Li,1002,,,bob@uni.example,1790000000
"""
WORKSHEET = """Identifier,"Full name","Email address",Status,Grade,"Last modified (submission)"
"Participant 123","Ann Example",ann@uni.example,Submitted,,"Monday, 23 November 2026, 8:05 AM"
"Participant 124","Bob Li",bob@uni.example,None,,-
"""


def students_of(tmp_path, text):
    path = tmp_path / "students.csv"
    path.write_text(text, encoding="utf-8-sig")
    return read_students(path)


def table(path):
    return list(csv.reader(io.StringIO(path.read_text("utf-8"))))


def test_what_platforms_export_is_read_as_it_is(tmp_path):
    ann, bob = students_of(tmp_path, CANVAS)
    assert (ann.canvas, ann.number, ann.login) == ("501", "u1001", "aexample")
    assert (bob.name, bob.section, bob.line) == ("Li, Bob", "Group A", 4)
    two = CANVAS.replace("Student,", "LastName,FirstName,").replace("Possible,", "Possible,,")
    two = two.replace('"Example, Ann"', "Example,Ann").replace('"Li, Bob"', "Li,Bob")
    ann, bob = students_of(tmp_path, two)
    assert (ann.canvas, ann.number, ann.shown) == ("501", "u1001", "Ann Example")
    ann, bob = students_of(tmp_path, MOODLE)
    assert (ann.shown, ann.number, ann.email) == ("Ann Example", "1001", "ann@uni.example")
    ann, bob = students_of(tmp_path, WORKSHEET)
    assert (ann.participant, ann.handed) == ("123", "Monday, 23 November 2026, 8:05 AM")


@pytest.mark.parametrize("text", ["name;id\nAnn;17\n", "NAME, Email \nAnn,a@b.c\n"])
def test_an_own_list_will_do(tmp_path, text):
    [ann] = students_of(tmp_path, text)
    assert ann.name == "Ann" and (ann.number, ann.email) in {("17", ""), ("", "a@b.c")}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("name,group\nAnn,1\n", "no column with an id or a mail.*got 'name,group'"),
        ("name,id\nAnn,1\nBob,1\n", "line 3: a second row with '1', as in line 2"),
        ("name,id\n", "there is no student in it"),
        ("", "there is no student in it"),
        ("name,id\nAnn,1,2\n", "line 2: more cells"),
    ],
)
def test_a_list_that_is_none_is_refused_by_its_line(tmp_path, text, words):
    with pytest.raises(ValueError, match=f"^students.csv.*{words}"):
        students_of(tmp_path, text)


@pytest.mark.parametrize(
    ("text", "platform", "number", "name"),
    [
        (CANVAS, "Canvas", "501", "exampleann"),
        (CANVAS, "Canvas", "501", "changedname"),
        (CANVAS, "Canvas", "999", "exampleann"),
        (CANVAS, "", "", "u1001"),
        (MOODLE, "Moodle", "777", "Ann Example"),
        (MOODLE, "", "", "ann example"),
        (MOODLE, "", "", "Example_Ann_1001"),
        (MOODLE, "", "", "homework (1001)"),
        (MOODLE, "", "", "Ann@uni.example"),
        (MOODLE, "Moodle", "778", "Ann Example ~0a1b2c3d"),
        (MOODLE, "Moodle", "778", "Ann Example 778"),
        ("name,id\nWei Chen,1\nChen Wei,2\n", "Moodle", "778", "Wei Chen"),
        ("name,id,folder\nAnn Lee,1,Ann Lee 77; Ann Lee 92\nAnn Lee,2,\n", "", "", "Ann Lee 92"),
        (WORKSHEET, "Moodle", "123", "Participant 123"),
        ("name,id,folder\nAnn Example,1001,an-odd name\n", "", "", "an-odd name"),
    ],
)
def test_a_hand_in_finds_its_row(tmp_path, text, platform, number, name):
    students = students_of(tmp_path, text)
    found, none = match_students(students, {name: (platform, number)})
    assert found == {name: students[0]} and none == {}


def test_what_is_not_sure_is_not_matched(tmp_path):
    students = students_of(tmp_path, "name,id\nAnn Lee,1\nAnn Lee,2\n李明,3\n")
    numbers = {name: ("", "") for name in ("Ann Lee", "Ann", "Leeann", "李明", "明", "4")}
    found, none = match_students(students, numbers)
    assert set(found) == {"李明"}
    assert str(none["Ann Lee"]) == "could be several rows: lines 2, 3"
    assert {str(none[name]) for name in ("Ann", "明", "4")} == {"no row has this name or id"}


def test_a_short_number_in_a_name_is_nobodys_id(tmp_path):
    students = students_of(tmp_path, "name,id\nAnn,1\nBob,2\nEve,u1003\n")
    numbers = {name: ("", "") for name in ("Mallory (1)", "Team 2", "2", "Eva (u1003)")}
    found, none = match_students(students, numbers)
    assert {name: row.name for name, row in found.items()} == {"2": "Bob", "Eva (u1003)": "Eve"}
    assert {str(none[name]) for name in ("Mallory (1)", "Team 2")} == {"no row has this name or id"}


def listed(tmp_path, *results, text=CANVAS, points=POINTS, canvas=None):
    students = students_of(tmp_path, text)
    numbers = {one.student: ("Canvas" if canvas else "", canvas or "") for one in results}
    made = ClassList(students, *match_students(students, numbers), points)
    for one in results:
        made.add(one)
    write_platform_files(tmp_path, made)
    return table(tmp_path / "canvas.csv"), table(tmp_path / "moodle.csv"), dict(made.told())


ABSENT = {"problem": "nothing was handed in", "file": ""}


def test_both_files_have_a_row_for_each_student_and_what_the_platforms_want(tmp_path):
    canvas, moodle, told = listed(
        tmp_path, good("Ann Example"), result("Ann Example", FIVE, **ABSENT)
    )
    assert canvas[0] == [
        *("Student", "ID", "SIS User ID", "SIS Login ID", "Section", FOUR, FIVE, "total")
    ]
    assert canvas[1] == ["    Points Possible", "", "", "", "", "5", "5", "10"]
    assert canvas[2:] == [
        ["Example, Ann", "501", "u1001", "aexample", "Group A", "2", "0", "2"],
        ["Li, Bob", "502", "u1002", "bli", "Group A", "0", "0", "0"],
    ]
    assert moodle[0][:4] == ["Full name", "Username", "ID number", "Email address"]
    assert moodle[1][4:] == ["2", "0", "2"] and len(moodle) == 3
    assert told["In students.csv and handed in nothing, which is 0 points"] == ["Li, Bob"]


NOBODYS = "Handed in by nobody in students.csv, and in no file for the platform"
PERHAPS = "Nothing under this name, and no 0 while a hand-in without a row may be theirs"


def test_nobody_gets_a_zero_while_a_hand_in_may_be_theirs(tmp_path):
    canvas, moodle, told = listed(tmp_path, good("Ann Example"), good("stranger"))
    assert told[NOBODYS] == ["stranger: no row has this name or id"]
    assert canvas[2][5:] == ["2", "0", "2"] and canvas[3][5:] == ["", "0", ""]
    assert moodle[2][4:] == ["-", "0", "-"] and told[PERHAPS] == [f"Li, Bob: {FOUR}"]
    assert not told["In students.csv and handed in nothing, which is 0 points"]
    canvas, _, _ = listed(tmp_path, good("stranger"), canvas="777")
    assert canvas[3][5:] == ["0", "0", "0"]  # Bob has another number
    canvas, _, _ = listed(tmp_path, good("anon_777"), canvas="anon_777")
    assert canvas[3][5:] == ["", "0", ""]
    text = "name,id\nAnn Lee,1\nAnn Lee,2\nBob,3\n"
    canvas, _, told = listed(tmp_path, good("Ann Lee"), text=text)
    assert [row[5:] for row in canvas[2:]] == [["", "0", ""], ["", "0", ""], ["0", "0", "0"]]
    assert told["In students.csv and handed in nothing, which is 0 points"] == ["Bob"]


@pytest.mark.parametrize("platform", ["Canvas", "Moodle"])
def test_another_student_of_the_same_name_in_a_later_download(tmp_path, platform):
    """Also where each handed in one of two lessons."""
    students_of(tmp_path, "name,id\nLee Ann,1\nLee Ann,2\n")

    def run(number, lesson, resume):
        register = Register(tmp_path, Asked(tmp_path / "students.csv"), resume)
        one = HandedIn("leeann", lesson, platform=platform, number=number)
        found = register.told_apart([one])
        register.enter(found)
        register.save()
        return [one.student for one in found]

    assert run("12", FOUR, False) == ["leeann"] and run("12", FIVE, True) == ["leeann"]
    assert run("13", FIVE, True) == ["leeann 13"] and run("12", FIVE, True) == ["leeann"]


def test_moodle_gives_a_student_another_number_in_each_assignment(tmp_path):
    students_of(tmp_path, MOODLE)
    register = Register(tmp_path, Asked(tmp_path / "students.csv"), False)
    register.enter([HandedIn("Ann Example", FOUR, platform="Moodle", number="12")])
    [one] = register.told_apart([HandedIn("Ann Example", FIVE, platform="Moodle", number="77")])
    assert one.student == "Ann Example"


def test_what_has_no_mark_is_no_zero(tmp_path):
    canvas, moodle, told = listed(tmp_path, result("Ann Example", problem="is empty"))
    assert canvas[2][5:] == ["", "0", ""] and moodle[1][4:] == ["-", "0", "-"]
    told = told["Without a mark for the platform until someone decides"]
    assert told == [f"Example, Ann: {FOUR}"]


def test_two_hand_ins_of_one_student_are_told_and_not_added(tmp_path):
    canvas, _, told = listed(tmp_path, good("Ann Example"), good("u1001"))
    assert canvas[2][5:] == ["", "0", ""]
    [line] = told["Several hand-ins of one student, and no mark for the platform"]
    assert line == "Example, Ann: Ann Example, u1001. Which one counts?"


def test_the_penalty_is_taken_off_and_large_marks_are_told(tmp_path):
    arrival = Arrival("2026-11-23 11:00:00+00:00", "the file's time")
    due = Due(datetime(2026, 11, 22, 12, tzinfo=UTC), 10.0)
    late = apply_due(good("Ann Example"), due, arrival)
    canvas, _, _ = listed(tmp_path, late)
    assert canvas[2][5:] == ["1.5", "0", "1.5"]
    much = [task(SPLIT, "passed", 120.0, 120.0), task(MERGE, "passed", 3.0, 3.0)]
    _, _, told = listed(tmp_path, result("Ann Example", tasks=much))
    assert told["Before you import"] == [f"Moodle refuses marks above 100: {FOUR}, total"]


def test_a_lesson_that_one_has_handed_in_early_is_told(tmp_path):
    text = "name,id\nAnn,1\nBob,2\nEve,3\n"
    three = [good(name) for name in ("Ann", "Bob", "Eve")]
    _, moodle, told = listed(tmp_path, *three, result("Eve", FIVE), text=text)
    assert [row[5] for row in moodle[1:3]] == ["0", "0"]
    [line] = told["Before you import"]
    assert line.startswith(f"{FIVE}: handed in by 1 of 3 students, and 0 points for everyone else")
    assert not listed(tmp_path, *three, text=text)[2]["Before you import"]


def test_no_name_is_a_formula_and_ids_stay_as_they_are(tmp_path):
    text = 'name,id,username\n"=cmd|x",7,UNI\\ann\n'
    canvas, moodle, _ = listed(tmp_path, text=text)
    assert canvas[2][0] == moodle[1][0] == "'=cmd|x" and moodle[1][1] == "UNI\\ann"
    assert not any(runs_as_formula(row[0]) for row in canvas)


def test_a_student_is_shown_by_whatever_there_is():
    assert Student(first="Ann", last="Lee").shown == "Ann Lee"
    assert Student(email="a@b.c").shown == "a@b.c"
