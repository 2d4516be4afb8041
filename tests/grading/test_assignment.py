"""The assignments of the course and an instructor's own, and what is wrong with one."""

import re
import shutil

import nbformat
import pytest
from handed_notebooks import (
    SPLIT,
    STEM,
    code,
    put_together,
)

from mha_classroom.checks import registry
from mha_classroom.checks.forbidden import named
from mha_classroom.clone import CourseError
from mha_classroom.grading.fit.assignment import (
    PACKAGES,
    assignments,
    load_assignment,
    sum_of_sources,
)
from mha_classroom.grading.fit.slicing import slice_modules


@pytest.fixture(scope="module")
def course():
    return load_assignment(STEM)


OWN = """
from mha_classroom.checks.task import Case, Task

def right(x):
    return x + 1

def run(answer, inputs):
    return answer(inputs["x"])

def cases(draw):
    return [Case("three", {"x": draw.normal(3)})]

VERSION = 2
LENDS = ("mha_course.attention",)
TASKS = [Task("own-first", right, cases, run=run), Task("own-second", right, cases)]
"""


def own_solution(**changes):
    cells = [code("import torch")]
    for name in ("first", "second"):
        source = f"def {name}(x):\n    ### BEGIN SOLUTION\n    return x + 1\n    ### END SOLUTION"
        common = {"schema_version": 3, "task": False, "locked": False}
        answer = {"grade_id": f"own-{name}", "solution": True, "grade": False, **common}
        check = {"grade_id": f"check-own-{name}", "solution": False, "grade": True, "points": 2}
        check |= common | changes.get(name, {})
        cells.append(code(source, metadata={"nbgrader": answer}))
        cells.append(code(f"check('own-{name}', {name})", metadata={"nbgrader": check}))
    return nbformat.v4.new_notebook(cells=cells)


def write_own(folder, tasks=OWN, solution=None, name="own set"):
    nbformat.write(solution or own_solution(), folder / f"{name}.ipynb")
    (folder / f"{name}.py").write_text(tasks)
    return folder


@pytest.fixture
def own_registry(monkeypatch):
    monkeypatch.setattr(registry, "_own", {})


def test_an_instructors_own_assignment(tmp_path, own_registry):
    write_own(tmp_path)
    (tmp_path / "notes.ipynb").write_text("{}")
    assert assignments(tmp_path) == ["own set"]
    own = load_assignment("own set", tmp_path)
    assert own.points == {"own-first": 2.0, "own-second": 2.0} and own.version == 2
    assert own.exercise.metadata["mha_course"] == {"exercise_set": "own set", "version": 2}
    assert "raise NotImplementedError()" in own.exercise.cells[1].source
    assert registry.find("own-first") is own.tasks["own-first"]
    assert registry.lesson_of("own-first") == "own set" and registry.tasks()[-1] == "own-second"
    run = own.tasks["own-first"].run
    slices = slice_modules([f"{run.__module__}.{run.__qualname__}"], own.files)
    assert list(slices) == ["own_own_set"] and "def right" not in slices["own_own_set"]
    assembled = put_together(own.solution, own)
    assert assembled.probed == ("own-first", "own-second")


def test_the_key_is_of_what_marks_depend_on(tmp_path, own_registry, course):
    keys = [load_assignment("own set", write_own(tmp_path)).key for _ in range(2)]
    assert keys[0] == keys[1] and re.fullmatch("[0-9a-f]{64}", keys[0])
    keys.append(load_assignment("own set", write_own(tmp_path, OWN.replace("+ 1", "+ 2"))).key)
    other = own_solution(first={"points": 3})
    keys.append(load_assignment("own set", write_own(tmp_path, solution=other)).key)
    assert len(set(keys)) == 3
    assert sorted(path.name for path in tmp_path.iterdir()) == ["own set.ipynb", "own set.py"]
    assert load_assignment(STEM).key == course.key != load_assignment("05_parameter_counting").key


def first_task(text):
    return OWN.replace('Task("own-first", right, cases, run=run)', text)


@pytest.mark.parametrize(
    ("tasks", "words"),
    [
        ("", "defines no list TASKS"),
        ("TASKS = []", "defines no list TASKS"),
        ("TASKS = [1]", "TASKS has int in it"),
        ("1 / 0", "own set.py ends in ZeroDivisionError"),
        ("def f(:", "own set.py ends in SyntaxError"),
        ("raise SystemExit(3)", "own set.py ends in SystemExit: 3"),
        (OWN.replace("VERSION = 2", ""), "VERSION is None"),
        (OWN.replace("VERSION = 2", "VERSION = '2'"), "VERSION is '2'"),
        (OWN.replace('("mha_course.attention",)', '"mha_course.attention"'), "LENDS is 'mha_"),
        (OWN.replace("mha_course.attention", "mha_course.nothing"), "mha_course.nothing"),
        (OWN.replace("own-second", "own-first"), "'own-first' is used twice"),
        (OWN.replace("own-second", SPLIT), "check-own-second is not"),
        (OWN.replace("own-second", "second"), "the task id 'second' is not"),
        (first_task('Task("own-first", right, cases, uses=("own-x",))'), "uses own-x"),
        (first_task('Task("own-first", right, cases, run=lambda a, b: a)'), "<lambda>"),
        (
            first_task('Task("own-first", right, cases, since=3)'),
            "since version 3, and VERS",
        ),
        (OWN + 'TASKS.append(Task("own-third", right, cases))', "own-third has no answer cell"),
        (OWN + "TASKS.pop()", "check-own-second is not 'check-' and the id of a task"),
    ],
)
def test_tasks_that_are_not_as_they_should_be(tmp_path, own_registry, tasks, words):
    with pytest.raises(CourseError, match=f"^own set cannot be used: .*{words}"):
        load_assignment("own set", write_own(tmp_path, tasks))
    assert registry._own == {}


def changed_solution(change):
    notebook = own_solution()
    change(notebook.cells)
    return notebook


def nbgrader_of(cells, number):
    return cells[number].metadata["nbgrader"]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda cells: nbgrader_of(cells, 2).pop("points"), "points of check-own-first are None"),
        (lambda cells: nbgrader_of(cells, 2).update(points="2"), "are '2' and no number"),
        (lambda cells: nbgrader_of(cells, 2).update(points=-1), "are -1 and no number"),
        (lambda cells: nbgrader_of(cells, 2).update(points=True), "are True and no number"),
        (lambda cells: nbgrader_of(cells, 2).pop("grade_id"), "has no grade_id"),
        (lambda cells: nbgrader_of(cells, 2).update(grade_id="x"), "check cell x is not"),
        (lambda cells: nbgrader_of(cells, 3).update(grade_id="own-first"), "is used twice"),
        (lambda cells: nbgrader_of(cells, 1).update(grade=True), "graded by hand"),
        (lambda cells: cells.pop(2), "own-first has no check cell"),
        (lambda cells: cells.pop(1), "own-first has no answer cell"),
        (lambda cells: cells[1].update(source="x = 1"), "a solution region"),
    ],
)
def test_solutions_that_are_not_as_they_should_be(tmp_path, own_registry, change, words):
    with pytest.raises(CourseError, match=f"^own set cannot be used: .*{words}"):
        load_assignment("own set", write_own(tmp_path, solution=changed_solution(change)))


def test_ids_that_clash(tmp_path, own_registry):
    load_assignment("own set", write_own(tmp_path))
    load_assignment("own set", tmp_path)  # again is no clash
    write_own(tmp_path, name="another")
    with pytest.raises(CourseError, match="'own-first' is one of own set already"):
        load_assignment("another", tmp_path)
    with pytest.raises(ValueError, match=f"'{SPLIT}' is one of {STEM} already"):
        registry.register("x", [registry.find(SPLIT)])


def test_assignments_that_are_not_there(tmp_path):
    with pytest.raises(CourseError, match="There is no assignment in"):
        assignments(tmp_path)
    with pytest.raises(CourseError, match="there is no x.ipynb"):
        load_assignment("x", tmp_path)
    (tmp_path / "x.ipynb").write_text("{")
    with pytest.raises(CourseError, match="x.ipynb is no notebook"):
        load_assignment("x", tmp_path)
    nbformat.write(own_solution(), tmp_path / "x.ipynb")
    with pytest.raises(CourseError, match="there is no x.py"):
        load_assignment("x", tmp_path)
    with pytest.raises(CourseError, match="there is no 99_nothing.ipynb"):
        load_assignment("99_nothing")


@pytest.mark.parametrize("stem", assignments())
def test_what_an_exercise_lends_is_no_answer_to_it(stem):
    assignment = load_assignment(stem)
    slices = slice_modules(assignment.lends)
    answers = {name for task in assignment.tasks.values() for name in task.forbidden}
    for task in assignment.tasks.values():
        answers.add(f"{task.reference.__module__}.{task.reference.__qualname__.split('.')[0]}")
    for name in answers:
        module, _, last = name.rpartition(".")
        assert not re.search(rf"^(def|class) {last}\b", slices.get(module, ""), re.MULTILINE), name


@pytest.fixture(scope="module")
def copied(tmp_path_factory):
    """Copies of both packages, sources only."""
    base = tmp_path_factory.mktemp("packages")
    for package in PACKAGES:
        only_sources = shutil.ignore_patterns("__pycache__", "*.csv", "*.txt", "*.bin")
        shutil.copytree(package, base / package.name, ignore=only_sources)
    return [base / package.name for package in PACKAGES]


@pytest.mark.parametrize("stem", sorted(assignments()))
def test_what_a_task_forbids_is_there(stem):
    """Or the lesson is not graded at all, and with it nothing that is handed in beside it."""
    for task in load_assignment(stem).tasks.values():
        for name in task.forbidden:
            named(name)  # raises ValueError


def test_a_change_in_any_room_of_both_packages_changes_the_key(copied):
    """Or --resume would keep what another version of the course has graded."""
    before = sum_of_sources(copied)
    assert before == sum_of_sources() == sum_of_sources(copied)
    rooms = {path.parent for package in copied for path in package.rglob("*.py")}
    names = {room.relative_to(copied[0].parent).as_posix() for room in rooms}
    grading = {"", "/handed_in", "/fit", "/kernels", "/kernels/inside", "/judge", "/report"}
    assert {f"mha_classroom/grading{room}" for room in grading} <= names
    assert {"mha_course", "mha_classroom/checks", "mha_classroom/tasks/your_bert"} <= names
    for room in rooms:
        path = min(room.glob("*.py"))
        content = path.read_bytes()
        path.write_bytes(content + b"# changed\n")
        assert sum_of_sources(copied) != before, room
        path.write_bytes(content)
        added = room / "new.py"
        added.touch()
        assert sum_of_sources(copied) != before, room
        added.unlink()
    assert sum_of_sources(copied) == before


@pytest.mark.parametrize("old", ["mha_course.checks.task", "mha_course.checks.tasks.x"])
def test_tasks_that_import_from_the_old_place_are_told_the_new_one(tmp_path, own_registry, old):
    text = OWN.replace("from mha_classroom.checks.task import", f"from {old} import")
    assert text != OWN
    with pytest.raises(CourseError) as caught:
        load_assignment("own set", write_own(tmp_path, text))
    assert "own set.py ends in ModuleNotFoundError" in str(caught.value)
    assert "It is in mha_classroom.checks" in str(caught.value)
    assert "`from mha_classroom.checks import Case, Mistake, Task`" in str(caught.value)
