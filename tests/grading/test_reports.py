"""The reports of grading, whatever a student is called or writes and whatever goes wrong."""

import contextlib
import copy
import csv
import dataclasses
import html
import json
import os
import pty
import random
import re
import termios
from html.parser import HTMLParser
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from nbformat import v4

from mha_classroom.checks import Feedback, find
from mha_classroom.grading.report import files as reports
from mha_classroom.grading.report import safe_text as names
from mha_classroom.grading.report.overrides import (
    COLUMNS,
    Overrides,
    apply_overrides,
    read_overrides,
)
from mha_classroom.grading.report.page import MEANING, WORDS, heading, page
from mha_classroom.grading.report.safe_text import (
    case_clashes,
    cell_text,
    feedback_path,
    plain_text,
    visible,
)
from mha_classroom.grading.report.summary import LISTED, Progress, summary

FOUR, FIVE = "04_head_splitting", "05_parameter_counting"
SPLIT, MERGE, COUNT = "04-transpose_qkv", "04-transpose_output", "05-count_parameters"
POINTS = {FOUR: {SPLIT: 2.0, MERGE: 3.0}, FIVE: {COUNT: 5.0}}
EVIL = "<script>alert('x')</script> $\\alpha$ \u202e\x1b[2J & \"quoted\" \ud800"
NAMES = [
    "Ann",
    "ann",
    "Ann Lee",
    "安娜",
    "-Ann",
    "'-Ann",
    "'t Hooft",
    "=cmd|' /C calc'!A0",
    "＝1+1",
    " @SUM(1)",
    "\t=1",
    "a\nb",
    "a\\nb",
    "a;=1+1",
    'x"y;"=1',
    "..",
    ".",
    "a/b",
    "a\\b",
    "CON",
    "con.txt",
    "_con.txt",
    "lpt1 ",
    "name.",
    "name ",
    "n" * 255,
    "n" * 254 + "m",
    "安" * 85,
    "e\u0301",
    "\u00e9",
    EVIL,
]
texts = st.text(st.characters(codec=None), max_size=30)
tricky = st.text(
    st.sampled_from("=+-@＝－'\"; \t\r\n\\xu20nA.~/aA安\u200c\u202e\ud800"), max_size=12
)


def task(task_id, verdict="passed", points=0.0, best=2.0, mistake=None, carried=(), **fields):
    feedback = dataclasses.asdict(Feedback(task_id, **fields)) if fields else None
    return {
        "id": task_id,
        "verdict": verdict,
        "points": points,
        "max": best,
        "mistake": mistake,
        "carried": list(carried),
        "feedback": feedback,
    }


def result(student="Ann", lesson=FOUR, tasks=(), **more):
    tasks = list(tasks)
    total = sum(one["points"] for one in tasks)
    best = sum(POINTS.get(lesson, {}).values())
    plain = {"student": student, "lesson": lesson, "file": f"{student}/{lesson}.ipynb"}
    known = {"problem": "", "notes": [], "human": [], "points": total, "max": best}
    # As it comes from a file: lists where there were tuples.
    return json.loads(json.dumps({**plain, **known, "tasks": tasks, **more}))


def good(student="Ann"):
    right = task(SPLIT, "passed", 2.0, kind="passed", message="right in 7 cases.")
    wrong = task(
        MERGE,
        "wrong",
        0.0,
        3.0,
        "merge-without-transpose",
        kind="mistake",
        message="You join without swapping back.",
        sections=("And back again",),
        lesson=FOUR,
    )
    return result(student, tasks=[right, wrong])


def overrides(tmp_path, text, students=("Ann",), lessons=(FOUR, FIVE)):
    path = tmp_path / "overrides.csv"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return read_overrides(path, POINTS, [(s, lesson) for s in students for lesson in lessons])


def settled(*results):
    return [apply_overrides(one, Overrides(), POINTS) for one in results]


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


def runs_as_formula(cell):
    """Whether a spreadsheet may run it; each way of taking it apart, as blunt as can be."""
    parts = [cell, *cell.split(";"), *re.split("[;\t\r\n]", cell)]
    signs = "=+-@＝＋－＠−\t\r"
    return any(part.strip(' "\u200c\u200d\u00a0\u3000')[:1] in tuple(signs) for part in parts)


@given(texts | tricky)
def test_a_cell_is_one_line_never_a_formula_and_can_be_read_back(text):
    cell = cell_text(text)
    assert not runs_as_formula(cell)
    assert plain_text(cell) == text
    assert cell.splitlines() in ([cell], []) and not {"\x1b", "\u202e", "\x00"} & set(cell)
    cell.encode("utf-8")


def test_names_stay_recognisable():
    shown = {name: cell_text(name) for name in NAMES}
    assert shown["Ann Lee"] == "Ann Lee" and shown["安娜"] == "安娜"
    assert shown["'t Hooft"] == "'t Hooft" and shown["-Ann"] == "'-Ann"
    assert shown["=cmd|' /C calc'!A0"] == "'=cmd|' /C calc'!A0"
    assert cell_text("a\u2028b\u2029") == r"a\u2028b\u2029"
    assert shown["a\nb"] == r"a\nb" and shown["a;=1+1"] == "a;'=1+1"
    assert len(set(shown.values())) == len(NAMES)


def test_grades_have_a_row_for_each_submission_and_a_column_for_each_task(tmp_path):
    path = tmp_path / "grades.csv"
    results = [good(name) for name in NAMES]
    results.append(result("Ann", FIVE, [task(COUNT, "timeout", 0.5, 5.0)], notes=["-1 is odd"]))
    results.append(result("Bob", FIVE, problem="is not a notebook"))
    reports.write_grades(path, settled(*results), POINTS)
    assert path.read_bytes().startswith(b"\xef\xbb\xbfstudent,lesson,04-transpose_qkv,04-tr")
    with open(path, encoding="utf-8-sig", newline="") as file:
        rows = list(csv.reader(file))
    assert not any(runs_as_formula(cell) for row in rows for cell in row)
    assert len(rows) == 1 + len(results) == len(path.read_text("utf-8").splitlines())
    read = {(row["student"], row["lesson"]): row for row in reports.read_grades(path)}
    assert list(read) == sorted((one["student"], one["lesson"]) for one in results)
    ann = read["Ann", FOUR]
    assert [ann[x] for x in (SPLIT, MERGE, COUNT, "total", "max")] == ["2", "0", "", "2", "5"]
    assert ann[f"{MERGE} verdict"] == "wrong" and ann[f"{COUNT} verdict"] == ""
    assert read["Ann", FIVE][COUNT] == "0.5" and read["Ann", FIVE]["notes"] == "-1 is odd"
    bob = read["Bob", FIVE]
    assert (bob[COUNT], bob[f"{COUNT} verdict"], bob["total"]) == ("0", "not run", "0")
    assert bob["notes"] == "is not a notebook"


def test_two_results_for_the_same_are_refused_by_name(tmp_path):
    for write in (
        lambda both: reports.write_grades(tmp_path / "a", both, POINTS),
        lambda both: reports.write_results(tmp_path / "a", both, 3, {}, Overrides()),
    ):
        with pytest.raises(ValueError, match="'Ann', lesson '04_head_splitting'"):
            write(settled(good(), good()))
    assert list(tmp_path.iterdir()) == []


def test_a_long_note_is_cut_and_points_are_added_without_rounding_errors(tmp_path):
    tasks = [task(SPLIT, "wrong", 0.1), task(MERGE, "wrong", 0.2, 3.0)]
    [one] = settled(result(tasks=tasks, notes=["x" * 40_000], human=["look"]))
    assert one["points"] == 0.3
    reports.write_grades(tmp_path / "grades.csv", [one], POINTS)
    [row] = reports.read_grades(tmp_path / "grades.csv")
    assert row["total"] == "0.3" and len(row["notes"]) == 2000 and row["notes"].endswith("…")


# results.json, run.json


def test_equal_input_gives_equal_files_in_any_order(tmp_path):
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
            overrides=decided,
        )
        random.Random(3).shuffle(results)
        results = [dict(reversed(one.items())) for one in results]
    files = [sorted(p.relative_to(f) for p in f.rglob("*") if p.is_file()) for f in out]
    assert files[0] == files[1] and len(files[0]) == len(NAMES) + 2
    assert all((out[0] / name).read_bytes() == (out[1] / name).read_bytes() for name in files[0])


def test_results_are_what_the_machine_found_with_the_overrides_apart(tmp_path):
    path = tmp_path / "results.json"
    decided = overrides(tmp_path, f"student,lesson,task,points,comment\nAnn,{FOUR},{MERGE},1,ok\n")
    reports.write_results(path, iter([good("b"), good(EVIL), good("Ann")]), 3, {"v": "1"}, decided)
    data = json.loads(path.read_bytes())
    assert list(data) == sorted(data) and data["seed"] == 3 and data["versions"] == {"v": "1"}
    assert data["results"] == [good(EVIL), good("Ann"), good("b")]
    assert data["overrides"] == [
        {"student": "Ann", "lesson": FOUR, "task": MERGE, "points": 1.0, "comment": "ok"}
    ]
    reports.write_results(path, [], 3, {}, Overrides())
    assert json.loads(path.read_bytes())["results"] == []


def test_results_are_not_held_while_they_are_written(tmp_path):
    alive = set()

    class Watched(dict):
        def __del__(self):
            alive.discard(id(self))

    def stream():
        for i in range(97):
            one = Watched(good(f"s{i}"))
            alive.add(id(one))
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


# Names as paths


def test_an_ordinary_name_stays_as_it_is(tmp_path):
    for name in ("Ann", "Ann Lee", "安娜", "O'Brien", "José (2)", "a.b_c-d@e", "100%", "'t Hooft"):
        path = feedback_path(tmp_path, name, FOUR)
        assert path == tmp_path / "feedback" / name / f"{FOUR}.html"


@given(st.lists(texts | tricky | st.sampled_from(NAMES), unique=True, max_size=13))
def test_names_never_share_a_folder_nor_leave_it(students):
    clashes = case_clashes(students)
    folders = [feedback_path("out", name, FOUR, clashes).parent for name in students]
    assert all(folder.parent == Path("out", "feedback") for folder in folders)
    found = [folder.name for folder in folders]
    assert len({name.casefold() for name in found}) == len(students)
    for name in found:
        assert name and len(name.encode()) <= 160 and not names.RESERVED.fullmatch(name)
        assert not re.search(r'^[-.~ ]|[<>:"/\\|?*\x00-\x1f]|[. ]$', name)


def test_names_that_differ_in_case_only_are_kept_apart(tmp_path):
    clashes = case_clashes(NAMES)
    assert clashes == {"Ann", "ann", "e\u0301", "\u00e9"}
    folders = {feedback_path("", name, FOUR, clashes).parent.name for name in ("Ann", "ann")}
    assert len({name.lower() for name in folders}) == 2 and "Ann" not in folders
    reports.write_pages(tmp_path, settled(*map(good, NAMES)), {}, NAMES)
    pages = list(tmp_path.rglob("*.html"))
    assert len(pages) == len(NAMES) == len({str(path).lower() for path in pages})
    shown = {re.search("<bdi>(.*?)</bdi>", path.read_text("utf-8"))[1] for path in pages}
    assert len(shown) == len({visible(name) for name in NAMES})


def test_a_name_cannot_be_chosen_to_be_anothers_folder():
    theirs = feedback_path("out", "a/b", FOUR)
    assert feedback_path("out", theirs.parent.name, FOUR) != theirs


def test_a_lessons_name_is_no_path_either():
    path = feedback_path("out", "Ann", "../../../etc/x")
    assert path.parent == Path("out", "feedback", "Ann") and path.suffix == ".html"


# The page


class Tags(HTMLParser):
    """The tags and attributes of a page, and whether its tags match."""

    def __init__(self, text):
        super().__init__()
        self.found, self.open, self.words = [], [], []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.found.append((tag, dict(attrs)))
        if tag != "meta":
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.words.append(data)


def shown(one, **more):
    [one] = settled(one)
    return page(one, **more)


def plain(text):
    return " ".join(html.unescape(re.sub("<[^>]*>", " ", text.split("</style>")[1])).split())


def test_the_page_stands_alone_and_can_be_read_aloud():
    text = shown(good(), title="Exercises 4: splitting heads")
    tags = Tags(text)
    assert tags.open == [] and text.startswith("<!doctype html>")
    kinds = [tag for tag, _ in tags.found]
    assert not {"script", "img", "link", "iframe", "form", "object"} & set(kinds)
    assert dict(tags.found)["html"] == {"lang": "en"} and kinds.count("h1") == 1
    policy = next(a["content"] for _, a in tags.found if "http-equiv" in a)
    assert policy.startswith("default-src 'none'; style-src 'unsafe-inline'")
    assert "prefers-color-scheme: dark" in text and "<caption>" in text
    assert {a["scope"] for tag, a in tags.found if tag == "th"} == {"col", "row"}
    targets = {a["href"] for tag, a in tags.found if tag == "a"}
    assert targets == {"#task-1", "#task-2"} <= {f"#{a.get('id')}" for _, a in tags.found}
    assert not any(name.startswith("on") for _, a in tags.found for name in a)
    assert (
        "role=" not in text and "url(" not in text and "http:" not in text and "https:" not in text
    )
    assert "<title>Exercises 4: splitting heads · Ann</title>" in text


def test_the_page_says_what_was_right_and_wrong_in_the_checks_words():
    text = plain(shown(good()))
    assert "2 of 5 points · 1 of 2 tasks passed" in text
    assert "✓ passed: 04-transpose_qkv · right in 7 cases." in text
    assert "✗ not yet: 04-transpose_output · You join without swapping back." in text
    assert "Read again: lesson 04, “And back again”" in text
    done = plain(shown(result(lesson=FIVE, tasks=[task(COUNT, "passed", 5.0, 5.0)])))
    assert "Every task is right" in done and "Begin with" not in done


@given(texts | tricky | st.sampled_from(NAMES))
def test_nothing_of_a_student_gets_out_of_its_place(text):
    fields = {
        "kind": "raises",
        "message": text,
        "details": ((text, text),),
        "remarks": (text,),
        "sections": (text,),
        "lesson": text,
    }
    one = result(
        text,
        tasks=[task(SPLIT, "error", mistake=text, carried=[text], **fields)],
        notes=[text],
        problem=text,
    )
    one = {**one, "tasks": [{**one["tasks"][0], "machine": 0.0, "comment": text}]}
    made = page(one, title=text)
    tags = Tags(made)
    assert tags.open == []
    allowed = {tag for tag, _ in Tags(shown(good())).found} | {"pre", "em", "div", "ul", "li"}
    assert {tag for tag, _ in tags.found} <= allowed and "script" not in allowed
    assert made.count("<a ") == 1
    body = made.split("</style>")[1]
    assert "$" not in body and not {"\x1b", "\u202e", "\u2066", "\x00", "\ud800"} & set(made)
    made.encode("utf-8")


def test_every_verdict_is_put_into_words():
    verdicts = ("wrong", "error", "timeout", "crashed", "out of memory", "borrowed", "missing")
    assert set(WORDS) == {*verdicts, "not run"} == set(MEANING) | {"wrong"}
    for verdict in (*verdicts, "not run"):
        text = plain(shown(result(tasks=[task(SPLIT, verdict)]), seconds=60.0))
        expected = "stopped after 60 s" if verdict == "timeout" else WORDS[verdict]
        assert f"✗ {expected} 0 of 2" in text
        assert verdict == "wrong" or MEANING[verdict] in text
    unwritten = task(SPLIT, "error", kind="unwritten", message="transpose_qkv is not written yet")
    assert "✗ was not written 0 of 2" in plain(shown(result(tasks=[unwritten])))


def test_carried_forward_is_explained():
    carried = task(MERGE, "passed", 3.0, 3.0, carried=[SPLIT], kind="passed", message="right.")
    text = plain(shown(result(tasks=[task(SPLIT, "wrong"), carried])))
    assert (
        "Carried forward: your earlier transpose_qkv is wrong; with the course's version in its "
        "place this task is right: full points."
    ) in text
    twice = {**carried, "carried": [SPLIT, "04-x"], "points": 1.5}
    text = plain(shown(result(tasks=[task(SPLIT, "wrong"), twice])))
    assert "your earlier transpose_qkv and x are wrong; with the course's versions" in text
    assert "full points" not in text


def test_notes_are_shown_to_the_student_and_what_a_human_should_see_is_not():
    text = plain(shown({**good(), "notes": ["it stands twice"], "human": ["calls gc.get_objects"]}))
    assert "About your notebook it stands twice" in text and "get_objects" not in text


def test_a_notebook_that_was_not_graded_says_why():
    text = plain(shown(result(problem="it is empty")))
    assert "Your notebook was not graded: it is empty" in text
    assert "0 of 5 points" in text and "was not run" in text and "It was not tried" not in text


def test_the_heading_of_a_notebook():
    cells = [v4.new_code_cell("# no"), v4.new_markdown_cell("text\n# Exercises 4: heads \n# b")]
    assert heading(v4.new_notebook(cells=cells)) == "Exercises 4: heads"
    assert heading(v4.new_notebook()) == ""


# overrides.csv


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
        LINES.encode("utf-16"),
        f"sep=;\r\n{LINES}".replace("\n", "\r\n").encode(),
        LINES.replace(";", "\t").encode(),
        f'Points , Student,x,LESSON,task,comment\n1.5 ,Ann ,y, {FOUR} ,{MERGE} ,"a, b" \n'.encode(),
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


def test_excels_own_first_line_is_counted(tmp_path):
    with pytest.raises(ValueError, match="line 4: the points are not a number from 0 to 3: 'x'"):
        overrides(tmp_path, f"sep=;\n{LINES}Ann;{FOUR};{MERGE};x;\n")


def test_many_wrong_lines_are_named_together(tmp_path):
    text = "student,lesson,task,points\n" + f'"Ann",{FOUR},{MERGE},"9"\n' * 13
    with pytest.raises(ValueError) as caught:
        overrides(tmp_path, text)
    assert str(caught.value).count("9 points are more than the 3") == 10
    assert "line 2:" in str(caught.value) and str(caught.value).endswith("and 3 more")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"student,lesson,task,points\nAnn,a,b,1,5\n", "line 2: 5 cells, and the first .* 4"),
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


def test_a_name_that_two_could_have_is_not_guessed(tmp_path):
    text = f"student,lesson,task,points\n'-Ann,{FOUR},{MERGE},1\nJo,{FOUR},{MERGE},1\n"
    found = overrides(tmp_path, text, students=["-Ann", "'-Ann", "Jo", "Jo "])
    assert 'line 2: 2 students could be meant by "\'-Ann"' in found.problems[0]
    assert list(found.decisions) == [("Jo", FOUR)]


def test_a_decision_replaces_the_points_and_keeps_the_verdict(tmp_path):
    text = f"student,lesson,task,points,comment\nAnn,{FOUR},{MERGE},1.5,<b>nearly</b>\n"
    decided = overrides(tmp_path, text)
    one, before = good(), copy.deepcopy(good())
    after = apply_overrides(one, decided, POINTS)
    assert one == before and after["points"] == 3.5 and after["max"] == 5.0
    assert after["tasks"][1]["verdict"] == "wrong" and after["tasks"][1]["machine"] == 0.0
    assert "Decided by your instructor: <b>nearly</b>" in plain(page(after))
    assert "<b>" not in page(after)
    assert "✗ not yet; decided by your instructor" in plain(page(after))
    reports.write_grades(tmp_path / "grades.csv", [after], POINTS)
    [row] = reports.read_grades(tmp_path / "grades.csv")
    assert row["total"] == "3.5" and row[f"{MERGE} verdict"] == "wrong"
    assert row["notes"] == f"{MERGE}: a human gave 1.5, not 0 (<b>nearly</b>)"


def test_what_was_not_graded_can_be_decided_too(tmp_path):
    decided = overrides(tmp_path, f"student,lesson,task,points\nAnn,{FOUR},{MERGE},1\n")
    after = apply_overrides(result(problem="it is empty", max=0.0), decided, POINTS)
    assert [one["verdict"] for one in after["tasks"]] == ["not run", "not run"]
    assert (after["points"], after["max"]) == (1.0, 5.0)
    assert "Decided by your instructor." in plain(page(after))


# The summary


def test_the_summary_counts_draws_and_names(tmp_path):
    wrong = [good(f"s{i}") for i in range(3)]
    other = result("o", tasks=[task(SPLIT, "wrong", mistake="unheard-of"), task(MERGE, "wrong")])
    full = result(
        "f", tasks=[task(SPLIT, "passed", 2.0), task(MERGE, "passed", 3.0, 3.0)], human=["odd\x1b"]
    )
    bad = [
        result("x", problem="is not a notebook: bla", human=[]),
        result("y", problem="nothing was handed in"),
    ]
    text = summary(settled(*wrong, other, full, *bad), ["overrides.csv, line 2: no 'Bob'"])
    assert "5 of 7 submissions graded." in text and "1 not graded: nothing was handed in" in text
    assert "Tasks: 5 passed, 5 wrong." in text
    assert f"{FOUR}: 6 handed in, mean 1.8 and median 2 of 5 points" in text
    assert re.search("40–49 %  █{40} 3\n", text) and re.search("90–100 %  █{13} 1\n", text)
    [did] = [m.did for m in find(MERGE).mistakes if m.id == "merge-without-transpose"]
    assert f"3 × {did} (merge-without-transpose)" in " ".join(text.split())
    assert "1 × unheard-of" in text and "1 × (no known mistake)" in text
    needs = text.split("Needs a human (2)")[1]
    assert f"f, {FOUR}: odd\\x1b\n" in needs and f"x, {FOUR}: is not a notebook: bla" in needs
    assert "  overrides.csv, line 2: no 'Bob'\n" in needs


def test_the_list_for_a_human_is_cut_and_names_stay_on_their_line():
    text = summary(settled(*({**good(f"{i}{EVIL}\n"), "human": ["look\r"]} for i in range(23))))
    lines = text.split("Needs a human (23)\n")[1].splitlines()
    assert len(lines) == LISTED + 1 and lines[-1] == "  and 3 more"
    assert not {"\x1b", "\r", "\u202e", "\ud800"} & set(text)


def test_the_summary_of_nothing_and_of_two_mistakes_at_once():
    assert summary([]) == "0 of 0 submissions graded.\n"
    one = result(tasks=[task(MERGE, "wrong", 0.0, 3.0, "merge-interleaved + unheard-of")])
    text = summary(settled(one))
    assert "(merge-interleaved)" in text and "1 × unheard-of" in text


# Progress


def test_without_a_terminal_there_is_a_line_for_every_tenth(capsys):
    with Progress(23, done=3) as progress:
        for _ in range(20):
            progress.step(good())
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 9 and lines[-1].startswith("graded 23 of 23 (100 %), ")
    assert re.fullmatch(r"graded 5 of 23 \(21 %\), \d+ a minute", lines[0])


def test_what_was_graded_before_does_not_count_for_the_speed(capsys):
    with Progress(10) as progress:
        for _ in range(10):
            progress.step()
    assert capsys.readouterr().err.endswith("graded 10 of 10 (100 %), 0 a minute\n")


def test_a_terminal_gets_a_bar():
    ours, theirs = pty.openpty()
    termios.tcsetwinsize(theirs, (24, 80))
    with os.fdopen(theirs, "w") as stream, Progress(7, stream=stream) as progress:
        progress.step()
        for _ in range(6):
            progress.step(good())
    text = b""
    with contextlib.suppress(OSError):  # how Linux says that this is all
        while piece := os.read(ours, 100_000):
            text += piece
    os.close(ours)
    text = text.decode()
    assert re.search(r"100 %\|.*\| 7 of 7, \d+ a minute, 00:00 left", text)
    assert progress.bar.initial == 1
