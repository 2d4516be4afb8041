"""Names and texts of others do no harm in a spreadsheet, in a path, on a terminal."""

import re
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st
from results_made_up import FOUR, NAMES, good, runs_as_formula, settled, texts, tricky

from mha_classroom.grading.report import safe_text as names
from mha_classroom.grading.report import write_reports as reports
from mha_classroom.grading.report.safe_text import (
    case_clashes,
    cell_text,
    feedback_path,
    plain_text,
    visible,
)


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
