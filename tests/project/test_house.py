"""The plan of the house holds: which package knows which, no circles, how small the course is."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DOCS = ("how-checks-work.md", "how-grading-works.md")
DOORS = {"mha_course.checks", "mha_course.mine"}
# Who may know whom, from the ground up: each may import from itself and from what stands before it.
FLOORS = (
    "mha_course",
    "mha_classroom.clone",
    "mha_classroom.checks",
    "mha_classroom.tasks",
    "mha_classroom.navigation",
    "mha_classroom.exercises",
    "mha_classroom.grading",
    "mha_classroom.commands",
)


def modules():
    """{dotted name: path} of both packages."""
    found = {}
    for package in ("mha_course", "mha_classroom"):
        for path in sorted((ROOT / package).rglob("*.py")):
            parts = path.relative_to(ROOT).with_suffix("").parts
            found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


MODULES = modules()


def imported(name, path, everywhere=True):
    """The modules of the course that a module imports, at its top or also in its functions."""
    tree = ast.parse(path.read_text("utf-8"))
    found = set()
    for node in ast.walk(tree) if everywhere else tree.body:
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            below = {f"{node.module}.{alias.name}" for alias in node.names}
            found |= (below & MODULES.keys()) or {node.module}
    return {other for other in found if other in MODULES and other != name}


def floor(name):
    return max(i for i, start in enumerate(FLOORS) if f"{name}.".startswith(f"{start}."))


def test_only_the_doors_lead_from_the_course_to_the_classroom():
    for name, path in MODULES.items():
        if name.startswith("mha_course") and name not in DOORS:
            known = imported(name, path)
            assert not {other for other in known if other.startswith("mha_classroom")}, name


def test_no_floor_knows_a_higher_one():
    wrong = set()
    for name, path in MODULES.items():
        if name.startswith("mha_classroom."):
            higher = {o for o in imported(name, path) if floor(o) > floor(name)}
            wrong |= {(name, other) for other in higher}
    assert wrong == set()


def test_there_is_no_circle_of_imports():
    known = {name: imported(name, path) for name, path in MODULES.items()}
    done, way = set(), []

    def visit(name):
        assert name not in way, " -> ".join([*way[way.index(name) :], name])
        if name not in done:
            way.append(name)
            for other in sorted(known[name]):
                visit(other)
            way.pop()
            done.add(name)

    for name in known:
        visit(name)


def test_the_course_is_small():
    own = {name: path for name, path in MODULES.items() if name.startswith("mha_course")}
    own = {name: path for name, path in own.items() if "explorer" not in name}
    lines = {name: path.read_text("utf-8").count("\n") for name, path in own.items()}
    assert sum(lines.values()) < 4350, lines  # with what pictures say to those who cannot see
    assert len(lines) <= 24, sorted(lines)


@pytest.mark.parametrize("room", ["mha_course", "mha_classroom"])
def test_names_of_files_say_which_they_are(room):
    """No two files of one name but for the same role in sister folders."""
    same_role = {"__init__", "runs"}
    seen = {}
    for name in MODULES:
        last = name.rpartition(".")[2]
        if name.startswith(room) and MODULES[name].stem not in same_role:
            seen.setdefault(last, []).append(name)
    assert {last: names for last, names in seen.items() if len(names) > 1} == {}


@pytest.mark.parametrize("name", ["CONTRIBUTING.md", "README.md", *(f"docs/{d}" for d in DOCS)])
def test_the_files_that_are_named_in_the_documents_are_there(name):
    known = {path.name for path in (ROOT / "mha_course").rglob("*.py")}
    for folder in ("mha_classroom", "tests"):
        known |= {path.name for path in (ROOT / folder).rglob("*.py")}
    text = (ROOT / name).read_text("utf-8")
    named = set(re.findall(r"`[\w/]*?(\w+\.py)`", text))
    assert named <= known | {"conftest.py"}, named - known
