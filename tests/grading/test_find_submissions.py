"""Who handed in what is found, in whatever folders and under whatever names."""

import hashlib
import os
import socket
from pathlib import Path

import pytest
from handed_notebooks import CELL, STEM, book

from mha_classroom.clone import CourseError
from mha_classroom.grading.handed_in import read_notebook as handed_files
from mha_classroom.grading.handed_in.find_submissions import find_submissions
from mha_classroom.grading.handed_in.read_notebook import Unreadable


def hand_in(root, *paths, content=None):
    for path in paths:
        path = root / path
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if content is not None else book(CELL).encode())


def labelled(stem):
    return book(CELL, metadata={"mha_course": {"exercise_set": stem, "version": 1}}).encode()


def rows_of(root, *names):
    found, _ = find_submissions(root, names or (STEM, "05_x"))
    assert found == sorted(found, key=lambda row: (row.student, row.lesson))
    for row in found:
        assert row.path is None or row.path.is_relative_to(root)
    return {(row.student, row.lesson): row for row in found}


@pytest.mark.parametrize(
    ("layout", "below"),
    [
        (f"{{}}/{STEM}.ipynb", ""),
        (f"submitted/{{}}/{STEM}/{STEM}.ipynb", ""),
        (f"submitted/{{}}/{STEM}/{STEM}.ipynb", "submitted"),
        (f"submitted/{{}}/ps1/{STEM}.ipynb", ""),
        (f"{{}}/{STEM}/homework.ipynb", ""),
    ],
)
def test_layouts_and_names(tmp_path, layout, below):
    students = ["Ann B", "王小明", "-rf", "two\nlines", 'o\'"x"', "=1+1", "..x"[2:], "%s"]
    hand_in(tmp_path, *(layout.format(student) for student in students))
    hand_in(tmp_path, *(layout.format(f"{hidden}/x") for hidden in (".git", "__MACOSX")))
    (tmp_path / layout.format("Ann B")).with_name("timestamp.txt").write_text("2026")
    hidden = (tmp_path / layout.format("Ann B")).parent / ".ipynb_checkpoints"
    hand_in(hidden, f"{STEM}.ipynb")
    if layout.startswith("submitted"):
        hand_in(tmp_path, f"release/{STEM}/{STEM}.ipynb", f"autograded/x/{STEM}/{STEM}.ipynb")
    rows = rows_of(tmp_path / below)
    assert sorted(rows) == sorted((student, STEM) for student in students)
    assert all(row.path.is_file() and not row.problem for row in rows.values())
    assert all(bool(row.note) == ("homework" in layout) for row in rows.values())


def test_a_row_for_each_student_and_lesson(tmp_path):
    hand_in(tmp_path, f"a/{STEM}.ipynb", "b/05_x.ipynb", "b/notes.ipynb")
    (tmp_path / "c").mkdir()
    (tmp_path / "list.csv").write_text("a")
    rows = rows_of(tmp_path, STEM, "05_x", "07_y")
    assert {key for key, row in rows.items() if not row.problem} == {("a", STEM), ("b", "05_x")}
    assert len(rows) == 6 and rows["c", STEM].problem == "nothing was handed in"
    assert "there is notes.ipynb, which does not say" in rows["b", STEM].problem
    assert rows["b", STEM].human and not rows["c", STEM].human


@pytest.mark.parametrize("name", ["{} (1)", "{}-Copy1", "Ann_04", "{}.bak"])
def test_other_names_count_by_what_they_say(tmp_path, name):
    hand_in(tmp_path, f"a/{name.format(STEM)}.ipynb", content=labelled(STEM))
    row = rows_of(tmp_path)["a", STEM]
    assert row.path.is_file() and not row.problem and "none of the right name" in row.note
    hand_in(tmp_path, "a/another.ipynb", content=labelled(STEM))
    assert not rows_of(tmp_path)["a", STEM].problem  # the same once more
    hand_in(tmp_path, "a/another.ipynb", content=labelled(STEM) + b"\n")
    row = rows_of(tmp_path)["a", STEM]
    assert row.path is None and row.human and "another.ipynb" in row.problem


@pytest.mark.parametrize("other", ["{} (1)", "{}-Copy1", "old/{}", "another"])
def test_of_two_that_differ_none_is_chosen_whatever_they_are_called(tmp_path, other):
    """The untouched exercise may have the right name, and the answers that of a second download."""
    hand_in(tmp_path, f"a/{STEM}.ipynb", content=labelled(STEM))
    hand_in(tmp_path, f"a/{other.format(STEM)}.ipynb", content=labelled(STEM) + b"\n")
    row = rows_of(tmp_path)["a", STEM]
    assert row.path is None and row.human
    assert "someone has to choose" in row.problem and f"{other.format(STEM)}" in row.problem


def test_the_name_decides_where_the_metadata_does_not(tmp_path):
    hand_in(tmp_path, f"a/{STEM} (1).ipynb", content=b"not json")
    hand_in(tmp_path, f"b/{STEM} (1).ipynb", content=labelled("05_x"))
    rows = rows_of(tmp_path)
    assert rows["a", STEM].path and rows["b", "05_x"].path and rows["b", STEM].path is None


def test_a_notebook_in_no_students_folder(tmp_path):
    hand_in(tmp_path, f"{STEM}.ipynb", "unknown.ipynb")
    row = rows_of(tmp_path)[f"{STEM}.ipynb", STEM]
    assert "beside the students' folders" in row.problem and row.human


def test_what_is_no_file_gets_a_row_and_nothing_hangs(tmp_path, monkeypatch):
    secret = tmp_path / "secret.ipynb"
    hand_in(tmp_path, "secret.ipynb", content=labelled(STEM))
    root = tmp_path / "handed in"
    kinds = ("link", "folder", "fifo", "socket", "device", "large", "gone", "good")
    paths = {kind: root / kind / f"{STEM}.ipynb" for kind in kinds}
    for path in paths.values():
        path.parent.mkdir(parents=True)
    paths["link"].symlink_to(secret)
    paths["folder"].mkdir()
    os.mkfifo(paths["fifo"])
    monkeypatch.chdir(paths["socket"].parent)
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(paths["socket"].name)
    paths["device"].write_bytes(b"")
    with paths["large"].open("wb") as file:
        file.truncate(handed_files.LIMIT + 1)
    paths["gone"].symlink_to("nowhere")
    paths["good"].write_bytes(labelled(STEM))
    (root / "linked student").symlink_to(tmp_path)
    (root / "linked folder").mkdir()
    (root / "linked folder" / STEM).symlink_to(tmp_path)
    os.mkfifo(root / "good" / "other.ipynb")
    lstat = os.lstat

    def device(path, **how):
        status = lstat(path, **how)
        if path == paths["device"]:
            return os.stat_result((0o020600, *status[1:]))
        return status

    monkeypatch.setattr(handed_files.os, "lstat", device)
    problems = {student: row.problem for (student, _), row in rows_of(root).items()}
    link = "is a symbolic link, which is not followed"
    assert problems == {
        "link": link,
        "gone": link,
        "folder": "is a folder and not a file",
        "fifo": "is a pipe and not a file",
        "socket": "is a socket and not a file",
        "device": "is a device and not a file",
        "large": "has 50 MB, more than 50 MB",
        "good": "",
        "linked student": f"the student's folder {link}",
        "linked folder": link,
    }
    for kind in set(kinds) - {"good"}:
        with pytest.raises(Unreadable, match="^(is|has) "):
            handed_files.read_submission(paths[kind])
    assert handed_files.read_submission(paths["good"]) == labelled(STEM)


def test_what_cannot_be_opened_is_said(tmp_path, monkeypatch):
    hand_in(tmp_path, f"a/{STEM}.ipynb", f"b/{STEM}.ipynb")

    def refuse(*_, **__):
        raise PermissionError(13, "Permission denied")

    with monkeypatch.context() as patched:
        patched.setattr(handed_files.os, "open", refuse)
        assert rows_of(tmp_path)["a", STEM].problem == "cannot be read: Permission denied"
    scandir = os.scandir
    with monkeypatch.context() as patched:
        patched.setattr(os, "scandir", lambda p: refuse() if p.name == "a" else scandir(p))
        rows = rows_of(tmp_path)
        assert "folder cannot be read: Permission denied" in rows["a", STEM].problem
    with pytest.raises(Unreadable, match="cannot be read: No such file"):
        handed_files.read_submission(tmp_path / "none.ipynb")
    with pytest.raises(CourseError, match="cannot be read: No such file"):
        find_submissions(tmp_path / "nowhere", [STEM])


def test_a_file_that_grows_is_read_to_the_limit(tmp_path, monkeypatch):
    hand_in(tmp_path, f"a/{STEM}.ipynb", content=b"x" * 101)
    monkeypatch.setattr(handed_files, "_check_kind", lambda status: None)
    monkeypatch.setattr(handed_files, "LIMIT", 100)
    with pytest.raises(Unreadable, match="has more than 0 MB"):
        handed_files.read_submission(tmp_path / "a" / f"{STEM}.ipynb")


def test_a_name_that_is_no_text(tmp_path):
    folder = os.fsencode(tmp_path) + b"/a\xff"
    os.mkdir(folder)
    with open(folder + f"/{STEM}.ipynb".encode(), "wb") as file:
        file.write(book(CELL).encode())
    ((row,), _) = find_submissions(tmp_path, [STEM])
    assert row.student == "a\\xff" and handed_files.read_submission(row.path)


def test_two_names_that_are_one_as_text_are_two_students(tmp_path):
    for name in (b"a\xff", b"a\\xff"):
        hand_in(tmp_path, Path(os.fsdecode(name), f"{STEM}.ipynb"))
    first, second = sorted(student for student, _ in rows_of(tmp_path))
    assert first == "a\\xff" and second.startswith("a\\xff ~")
    assert len({row.path for row in rows_of(tmp_path).values()}) == 2
    assert sorted(student for student, _ in rows_of(tmp_path)) == [first, second]


def test_no_name_that_a_student_chooses_takes_the_place_of_another(tmp_path):
    second = "Ann_2_assignsubmission_file"
    mark = hashlib.sha256(second.encode()).hexdigest()[:8]
    folders = ["Ann_1_assignsubmission_file", second, f"Ann ~{mark}_3_assignsubmission_file"]
    hand_in(tmp_path, *(f"{folder}/{STEM}.ipynb" for folder in folders))
    rows = rows_of(tmp_path)
    assert {row.path.parent.name for row in rows.values()} == set(folders)


def test_a_file_in_no_students_folder_takes_no_students_place(tmp_path):
    name = f"{STEM}.ipynb"
    hand_in(tmp_path, name, f"{name}_12_assignsubmission_file/{name}")
    for odd in (b"04_\xff.ipynb", rb"04_\xff.ipynb"):  # one text
        (tmp_path / os.fsdecode(odd)).write_bytes(labelled(STEM))
    rows = rows_of(tmp_path)
    assert len(rows) == 4 and len({row.path for row in rows.values()}) == 4
    assert not rows[name, STEM].problem


def test_a_student_called_submitted_does_not_swallow_the_class(tmp_path):
    hand_in(tmp_path, f"submitted/x/{STEM}.ipynb", f"Ann/{STEM}.ipynb")
    assert set(rows_of(tmp_path)) == {("submitted", STEM), ("Ann", STEM)}


@pytest.mark.parametrize("name", [".Bob", "...", "..x", "~", "con", "a" * 200])
def test_whatever_a_folder_is_called_it_has_a_row(tmp_path, name):
    hand_in(tmp_path, f"{name}/{STEM}.ipynb")
    assert rows_of(tmp_path)[name, STEM].path.is_file()


def test_what_is_nobodys_is_told(tmp_path):
    hand_in(tmp_path, f"Ann/{STEM}.ipynb", f"__MACOSX/Ann/._{STEM}.ipynb", "list.csv", ".cache/x")
    rows, aside = find_submissions(tmp_path, [STEM])
    assert [row.student for row in rows] == ["Ann"]
    assert aside == [
        ".cache: no notebook is in it",
        "__MACOSX: made by a program, nobody's submission",
        "list.csv: lies beside the students' folders",
    ]


def test_notebooks_further_down_are_found(tmp_path):
    hand_in(tmp_path, f"Ann/a/b/c/{STEM}.ipynb", f"Bob/a/b/{STEM} (1).ipynb")
    rows = rows_of(tmp_path)
    assert rows["Ann", STEM].path.is_file() and rows["Bob", STEM].path.is_file()


def test_what_is_no_notebook_is_not_nothing(tmp_path):
    hand_in(tmp_path, f"Ann/{STEM}.ipynb", "Bob/homework.zip", f"Eve/{STEM}.ipynb.txt")
    rows = rows_of(tmp_path)
    for student, file in (("Bob", "homework.zip"), ("Eve", f"{STEM}.ipynb.txt")):
        row = rows[student, STEM]
        assert f"there is {file}, which is no notebook" in row.problem and row.human
        assert not row.problem.startswith("nothing")
    hand_in(tmp_path, "Ann/05_x.ipynb")
    assert rows_of(tmp_path)["Eve", "05_x"].problem == "nothing was handed in"  # it is of 04


def test_a_thousand_files_are_not_all_listed(tmp_path):
    hand_in(tmp_path, f"Ann/{STEM}.ipynb", *(f"Bob/{i}.ipynb" for i in range(300)))
    for i in range(20):
        hand_in(tmp_path, f"Eve/{STEM} ({i}).ipynb", content=labelled(STEM) + b" " * i)
    rows = rows_of(tmp_path)
    assert len(rows["Bob", STEM].problem) < 200
    assert rows["Eve", STEM].problem.endswith("and 15 more")


MOODLES = "{}_{}_assignsubmission_file"


def test_moodles_folders(tmp_path):
    """Two of one name are told apart by the number that Moodle gives, and not by their order."""
    for name, number in (("Ann Example", 123), ("李明", 124), ("Ann Example", 99)):
        hand_in(tmp_path, f"{MOODLES.format(name, number)}/{STEM}.ipynb")
    hand_in(tmp_path, f"Bob_7_assignsubmission_file_/{STEM}.ipynb")  # of an old Moodle
    students = [student for student, _ in rows_of(tmp_path)]
    assert students == ["Ann Example 123", "Ann Example 99", "Bob", "李明"]


@pytest.mark.parametrize("between", ["/", "_"])
def test_what_moodle_gives_of_one_student_is_one_students(tmp_path, between):
    """In folders or as files alone; what was typed in lies in a folder of its own."""
    folder = MOODLES.format("Ann Example", 123)
    hand_in(tmp_path, f"{folder}{between}{STEM}.ipynb")
    hand_in(tmp_path, f"{folder.replace('_file', '_onlinetext')}{between}onlinetext.html")
    hand_in(tmp_path, f"{MOODLES.format('Bob', 124)}{between}{STEM}.zip")
    rows = rows_of(tmp_path)
    assert set(rows) == {("Ann Example", STEM), ("Bob", STEM)}
    row = rows["Ann Example", STEM]
    assert (row.platform, row.number) == ("Moodle", "123") and not row.problem and not row.note
    assert f"there is {STEM}.zip, which is no notebook" in rows["Bob", STEM].problem
    assert rows["Bob", STEM].human


def test_two_downloads_of_moodles_that_were_put_together(tmp_path):
    """A student has another number in each assignment."""
    hand_in(tmp_path, f"{MOODLES.format('Ann', 1)}/{STEM}.ipynb")
    hand_in(tmp_path, f"{MOODLES.format('Ann', 2)}/05_x.ipynb")
    rows = rows_of(tmp_path)
    assert set(rows) == {("Ann", STEM), ("Ann", "05_x")}
    assert not any(row.problem or row.number for row in rows.values())


def test_a_download_beside_others_is_no_student(tmp_path):
    hand_in(tmp_path, f"Ann/{STEM}.ipynb", f"NLP-Set 4/{MOODLES.format('Bob', 1)}/{STEM}.ipynb")
    hand_in(tmp_path, f"canvas/a_1_2_{STEM}.ipynb", f"canvas/b_2_3_{STEM}.ipynb")
    rows, aside = find_submissions(tmp_path, [STEM])
    assert [row.student for row in rows] == ["Ann"]
    assert aside == [
        f"{n}: a whole download; have it graded by itself" for n in ("NLP-Set 4", "canvas")
    ]


def test_canvas_files(tmp_path):
    hand_in(tmp_path, f"exampleann_1234_567890_{STEM}.ipynb", "exampleann_1234_567891_05_x-1.ipynb")
    hand_in(tmp_path, f"libob_LATE_99_567892_{STEM}-2.ipynb", "libob_LATE_99_567893_zip.zip")
    rows = rows_of(tmp_path)
    assert set(rows) == {(s, n) for s in ("exampleann", "libob") for n in (STEM, "05_x")}
    assert not rows["exampleann", STEM].problem and not rows["exampleann", "05_x"].problem
    assert not rows["libob", STEM].problem and rows["libob", "05_x"].problem
    assert not any(row.note for row in rows.values())  # it counts what is handed in again


def test_what_is_no_notebook_is_somebodys_in_canvass_download(tmp_path):
    hand_in(tmp_path, f"exampleann_1_567890_{STEM}.ipynb", f"libob_2_567891_{STEM}.pdf")
    row = rows_of(tmp_path)["libob", STEM]
    assert row.human and f"there is {STEM}.pdf, which is no notebook" in row.problem


def test_canvass_anonymous_files(tmp_path):
    hand_in(tmp_path, f"anon_12345_678910_{STEM}.ipynb", f"anon_aB3dE_678911_{STEM}-1.ipynb")
    hand_in(tmp_path, f"LATE_anon_Zz9_678912_{STEM}.ipynb")
    rows = rows_of(tmp_path)
    assert set(rows) == {(f"anon_{number}", STEM) for number in ("12345", "aB3dE", "Zz9")}
    assert not any(row.problem or row.note for row in rows.values())
    assert [row.marked_late for row in rows.values()] == [False, True, False]
    assert not any(row.number.isdigit() for row in rows.values())  # it is nobody's ID
