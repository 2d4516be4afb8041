"""Submissions are put into the instructor's notebook, whatever is in them."""

import copy
import json
import re
import types

import nbformat
import pytest
from handed_notebooks import (
    ALL,
    ANSWER,
    LOAD,
    MERGE,
    MODULE,
    SPLIT,
    SPREAD,
    STEM,
    cell_of,
    code,
    handed_in,
    insert,
    put_together,
    roles,
    sources,
    strip,
)
from hypothesis import given, settings
from hypothesis import strategies as st

from mha_classroom.clone import find_root
from mha_classroom.grading.fit.assembly import assemble
from mha_classroom.grading.fit.assignment import assignments, load_assignment
from mha_classroom.grading.handed_in.read_notebook import Unreadable, parse


@pytest.fixture(scope="module")
def course():
    return load_assignment(STEM)


# --- honest submissions ---


def test_what_an_exercise_ends_with_is_no_cell_of_the_students_own(course):
    path = find_root() / "exercises" / f"{STEM}.ipynb"
    notebook = nbformat.read(path, 4)
    assert "progress()" in notebook.cells[-2].source
    assert not any("put in" in note for note in put_together(notebook, course).notes)


def test_a_solution_is_put_in_between_the_probes(course):
    notebook = copy.deepcopy(course.solution)
    notebook.metadata["mha_course"] = course.exercise.metadata["mha_course"]
    assembled = put_together(notebook, course)
    own = next(c for c in course.exercise.cells if c.cell_type == "code")
    expected = [{"own": own.id}]
    for name in ALL:
        expected += [{"answer": name}, {"task": name}]
    assert roles(assembled) == expected
    assert sources(assembled, "task") == [f"probe({name!r})" for name in ALL]
    assert sources(assembled, "answer", SPLIT) == [cell_of(notebook, SPLIT).source]
    assert assembled.status == dict.fromkeys(ALL, "written")
    assert assembled.notes == assembled.human == []


def test_a_blank_exercise_is_unchanged(course):
    assembled = put_together(course.exercise, course)
    assert assembled.status == dict.fromkeys(ALL, "unchanged")
    assert assembled.probed == ALL and assembled.notes == []


def test_spaces_at_the_ends_are_no_change(course):
    stub = cell_of(course.exercise, SPLIT).source.replace("\n", "  \n") + "\n\n"
    assert put_together(handed_in(course, transpose_qkv=stub), course).status[SPLIT] == "unchanged"


@pytest.mark.parametrize("stem", assignments())
def test_every_solution_of_the_course(stem):
    assignment = load_assignment(stem)
    assembled = put_together(assignment.solution, assignment)
    assert set(assembled.status.values()) == {"written"}
    assert assembled.probed == tuple(assignment.tasks) and not assembled.human
    kept = "\n".join(sources(assembled, "own"))
    assert not re.search(r"print|attention_map\(|manual_seed|OwnBert", kept)


def test_outputs_and_metadata_of_students_go(course):
    notebook = handed_in(course, transpose_qkv=ANSWER)
    cell = cell_of(notebook, SPLIT)
    cell.metadata["tags"] = ["nbval-skip", "raises-exception"]
    cell.outputs = [nbformat.v4.new_output("stream", text="99")]
    cell.execution_count = 7
    notebook.metadata["kernelspec"] = {"name": "evil", "display_name": "evil", "language": "R"}
    assembled = put_together(notebook, course)
    assert assembled.notebook.metadata == course.exercise.metadata


# --- what is left out, replaced, or asked for alone ---


def test_leave_out_replaced_and_only(course):
    notebook = handed_in(course, transpose_qkv=ANSWER, transpose_output="x = 1")
    assembled = put_together(notebook, course, leave_out=[SPLIT])
    assert {"answer": SPLIT} not in roles(assembled) and assembled.probed == ALL[1:]
    assembled = put_together(notebook, course, replaced=[SPLIT, MERGE], only=[MODULE])
    assert assembled.probed == (MODULE,)
    solution = cell_of(course.solution, SPLIT).source
    # The student's stays above it: it may define more than that.
    assert sources(assembled, "answer", SPLIT) == [ANSWER, solution]
    assert roles(assembled)[-1] == {"task": MODULE}  # nothing after the last probe
    assert put_together(notebook, course, only=[]).notebook.cells == []


def test_added_cells_can_be_left_out(course):
    notebook = handed_in(course, transpose_qkv=ANSWER)
    insert(notebook, SPLIT, code("import os\nos.abort()"))
    name = next(r["added"] for r in roles(put_together(notebook, course)) if "added" in r)
    assembled = put_together(notebook, course, leave_out=[name])
    assert not sources(assembled, "added") and assembled.probed == ALL


@pytest.mark.parametrize("how", [{"leave_out": ["no"]}, {"replaced": ["no"]}, {"only": ["no"]}])
def test_ids_that_there_are_not(course, how):
    with pytest.raises(ValueError, match=r"04_head_splitting has no tasks \['no'\]"):
        put_together(course.exercise, course, **how)


def test_a_probe_for_each_task_is_needed(course):
    with pytest.raises(ValueError, match=f"no probe for .*{SPLIT}"):
        assemble(parse(json.dumps(course.exercise).encode()), course, {})


# --- added and changed cells ---


def test_helpers_come_where_they_stood(course):
    notebook = handed_in(course, transpose_qkv=ANSWER)
    notebook.cells.insert(0, code("import einops_like"))
    insert(notebook, SPLIT, code("helper = 1"), code("  \n"))
    insert(notebook, f"check-{SPLIT}", code("after = 1"))
    insert(notebook, f"check-{ALL[-1]}", code("too_late = 1"))
    assembled = put_together(notebook, course)
    assert sources(assembled, "added") == ["import einops_like", "helper = 1", "after = 1"]
    names = [next(iter(role.values())) for role in roles(assembled)]
    own = next(i for i, role in enumerate(roles(assembled)) if "own" in role)
    assert names[:own] == ["added 1"]
    assert [list(r)[0] for r in roles(assembled)[own + 1 :]][
        :4
    ] == "answer added task added".split()
    assert any("own code cells that were put in: 4" in note for note in assembled.notes)


def test_a_changed_import_cell_comes_after_the_instructors(course):
    notebook = handed_in(course, transpose_qkv=ANSWER)
    first = next(c for c in notebook.cells if c.cell_type == "code")
    released, first.source = first.source, "import torch\nimport numpy as np"
    for strip_ids in (False, True):
        first.id = "another" if strip_ids else first.id
        assembled = put_together(notebook, course)
        assert [c.source for c in assembled.notebook.cells][:2] == [released, first.source]
    assert any("ungraded cells" in n or "own that were put in: 1" in n for n in assembled.notes)


def test_only_definitions_of_a_changed_trial_count():
    lesson = load_assignment("06_bert_attention")
    notebook = copy.deepcopy(lesson.exercise)
    trial = next(c for c in notebook.cells if c.source.startswith("config ="))
    trial.source += "\nimport math as m\nEPS = 1e-5\n\n\ndef own(x):\n    return x\nown(config)"
    for identity in (trial.id, "stripped"):
        trial.id = identity
        added = sources(put_together(notebook, lesson), "added")
        assert len(added) == 1 and added[0].strip().startswith("import math as m\nEPS = 1e-5")
        assert "BertConfig" not in added[0] and "own(config)" not in added[0]
        assert added[0].index("import") == 3, "lines keep their numbers"


# --- moved, deleted, doubled, stripped ---


def test_two_different_answers(course):
    notebook = handed_in(course, transpose_qkv=ANSWER)
    second = copy.deepcopy(cell_of(notebook, SPLIT))
    second.source, second.id = ANSWER + "    # again", "second"
    insert(notebook, f"check-{MERGE}", second)
    assembled = put_together(notebook, course)
    assert sources(assembled, "answer", SPLIT) == [ANSWER, second.source]
    assert f"the answer of {SPLIT} stands twice: the last counts" in assembled.notes
    assert len(assembled.human) == 1 and assembled.human[0].startswith(f"{SPLIT}: there are 2")
    solution = cell_of(course.solution, SPLIT).source
    replaced = put_together(notebook, course, replaced=[SPLIT])
    assert sources(replaced, "answer", SPLIT)[-1] == solution


@pytest.mark.parametrize("copied", ["the same", "the stub"])
def test_a_copy_needs_no_human(course, copied):
    notebook = handed_in(course, transpose_qkv=ANSWER)
    second = copy.deepcopy(cell_of(notebook, SPLIT))
    second.id = "second"
    if copied == "the stub":
        second.source = cell_of(course.exercise, SPLIT).source
    insert(notebook, SPLIT, second)
    assembled = put_together(notebook, course)
    assert sources(assembled, "answer", SPLIT) == [ANSWER]
    assert assembled.status[SPLIT] == "written" and assembled.human == []
    assert f"the answer of {SPLIT} stands twice: the last counts" in assembled.notes


def test_the_last_of_three_answers_stays_the_last(course):
    notebook = handed_in(course, transpose_qkv=ANSWER)
    copies = [copy.deepcopy(cell_of(notebook, SPLIT)) for _ in range(2)]
    copies[0].source = "def transpose_qkv(X, n): return 2"
    insert(notebook, SPLIT, *copies)
    assembled = put_together(notebook, course)
    assert sources(assembled, "answer", SPLIT) == [copies[0].source, ANSWER]
    assert f"the answer of {SPLIT} stands 3 times: the last counts" in assembled.notes


def test_checks_that_were_changed_cost_nothing(course):
    notebook = handed_in(course, transpose_qkv=ANSWER)
    cell_of(notebook, f"check-{SPLIT}").source = "assert True  # full marks"
    notebook.cells.remove(cell_of(notebook, f"check-{MERGE}"))
    twice = copy.deepcopy(cell_of(notebook, f"check-{SPREAD}"))
    twice.id = "twice"
    insert(notebook, f"check-{SPREAD}", twice)
    assembled = put_together(notebook, course)
    assert assembled.probed == ALL and assembled.human == []
    assert not any("full marks" in cell.source for cell in assembled.notebook.cells)
    for what, name in (("edited", SPLIT), ("deleted", MERGE), ("duplicated", SPREAD)):
        assert f"check cells that were {what}, which costs nothing: {name}" in assembled.notes


def test_a_deleted_answer_is_missing(course):
    notebook = handed_in(course, transpose_qkv=ANSWER)
    notebook.cells.remove(cell_of(notebook, MERGE))
    cell_of(notebook, SPREAD).source = "  \n"
    assembled = put_together(notebook, course)
    assert assembled.status[MERGE] == assembled.status[SPREAD] == "missing"
    assert MERGE not in assembled.probed and SPREAD not in assembled.probed
    assert f"the answer of {MERGE} is missing: there is no cell of it" in assembled.notes
    assert f"the answer of {SPREAD} is an empty cell" in assembled.notes


@pytest.mark.parametrize("kind", ["markdown", "raw"])
def test_an_answer_that_is_no_code_is_missing(course, kind):
    notebook = handed_in(course, transpose_qkv=ANSWER)
    cell = cell_of(notebook, SPLIT)
    cell.cell_type = kind
    del cell["outputs"], cell["execution_count"]
    assembled = put_together(notebook, course)
    assert assembled.status[SPLIT] == "missing"
    assert f"the answer of {SPLIT} is a {kind} cell and not a code cell" in assembled.human


@pytest.mark.parametrize("ids", [True, False])
def test_answers_without_metadata_are_found(course, ids):
    notebook = copy.deepcopy(course.solution)
    strip(notebook, ids)
    assembled = put_together(notebook, course)
    assert set(assembled.status.values()) == {"written"} and not sources(assembled, "added")
    how = "the name that it defines" if ids else "its cell id"
    assert f"the answer of {MODULE} was found by {how}" in assembled.notes
    notebook = copy.deepcopy(course.exercise)
    strip(notebook, ids)
    assert set(put_together(notebook, course).status.values()) == {"unchanged"}


def test_answers_in_other_cells_than_their_own(course):
    notebook = handed_in(course)
    insert(notebook, SPLIT, code("first_helper = 1"), code(ANSWER))
    cell_of(
        notebook, f"check-{MERGE}"
    ).source = "def transpose_output(X, n):\n    return X\ncheck()"
    both = "def spread_valid_lens(v, n):\n    return v\nclass MultiHeadAttention:\n    pass"
    cell_of(notebook, MODULE).source = both
    notebook.cells.remove(cell_of(notebook, SPREAD))
    cell_of(notebook, LOAD).source = "def load_torch_weights(:  # half written"
    assembled = put_together(notebook, course)
    touched = (SPLIT, MERGE, SPREAD, MODULE, LOAD)
    assert {assembled.status[name] for name in touched} == {"written"} and assembled.probed == ALL
    assert sources(assembled, "answer", SPLIT) == [ANSWER]  # and not the stub
    assert roles(assembled)[1:3] == [{"added": "added 3"}, {"answer": SPLIT}]
    assert f"the answer of {SPREAD} stands in the cell of {MODULE}" in assembled.notes
    order = roles(assembled)
    assert order.index({"answer": MODULE}) < order.index({"task": SPREAD})
    left = put_together(notebook, course, leave_out=[MODULE])
    assert left.probed == (SPLIT, MERGE, *ALL[4:]) and both not in str(left.notebook.cells)
    one = put_together(notebook, course, replaced=[SPREAD])
    assert sources(one, "answer", SPREAD) and sources(one, "answer", MODULE) == [both]


def test_a_second_definition_further_down_stays_there(course):
    notebook = handed_in(course, transpose_qkv=ANSWER)
    insert(notebook, f"check-{SPLIT}", code(ANSWER + "    # better"))
    assembled = put_together(notebook, course)
    assert roles(assembled)[1:4] == [{"answer": SPLIT}, {"task": SPLIT}, {"answer": SPLIT}]
    assert len(assembled.human) == 1
    solution = cell_of(course.solution, SPLIT).source
    replaced = put_together(notebook, course, replaced=[SPLIT])
    assert sources(replaced, "answer", SPLIT) == [ANSWER, solution]


def test_moved_answers_are_put_back(course):
    notebook = copy.deepcopy(course.solution)
    moved = cell_of(notebook, MODULE)
    notebook.cells.remove(moved)
    notebook.cells.insert(1, moved)
    assembled = put_together(notebook, course)
    assert [r["answer"] for r in roles(assembled) if "answer" in r] == list(ALL)
    assert "the answers stand in another order than in the exercise" in assembled.notes


def test_an_answer_that_does_not_parse_goes_in(course):
    broken = "def transpose_qkv(X, num_heads)\n    return X"
    assembled = put_together(handed_in(course, transpose_qkv=broken), course)
    assert sources(assembled, "answer", SPLIT) == [broken]
    assert assembled.status[SPLIT] == "written"


# --- versions ---


def with_label(course, **label):
    notebook = handed_in(course)
    notebook.metadata["mha_course"] = label
    return notebook


@pytest.mark.parametrize(
    ("label", "words"),
    [
        ({"exercise_set": "05_x", "version": 1}, "is a notebook of '05_x' and not of 04_head"),
        (
            {"exercise_set": STEM, "version": 10**9},
            "answers version 1000000000 of 04_head_splitting",
        ),
    ],
)
def test_other_versions_are_refused_by_name(course, label, words):
    with pytest.raises(Unreadable, match=words):
        put_together(with_label(course, **label), course)


@pytest.mark.parametrize("label", [{}, {"version": True}, {"version": -1}, {"version": "1"}])
def test_no_version_is_the_current_one(course, label):
    assembled = put_together(with_label(course, **label), course)
    assert assembled.probed == ALL and "which version" in assembled.notes[0]
    notebook = handed_in(course)
    notebook.metadata["mha_course"] = [label]
    assert put_together(notebook, course).notes == assembled.notes


def test_an_older_version_is_graded_by_what_fits(course):
    newer = types.SimpleNamespace(**vars(course))
    newer.version, newer.tasks = 3, dict(course.tasks)
    split = types.SimpleNamespace(name="transpose_qkv", since=3)
    newer.tasks[SPLIT] = split
    assembled = put_together(handed_in(course, transpose_qkv=ANSWER), newer)
    assert assembled.status[SPLIT] == "older" and assembled.probed == ALL[1:]
    assert assembled.notes == [f"answers version {course.version}; 3 is the current one"]
    [human] = assembled.human
    assert f"version {course.version} of the exercises" in human and human.endswith(f": {SPLIT}")


LINES = st.sampled_from(
    [ANSWER, "x = 1", "def transpose_output(", "%magic", "# NBVAL_SKIP", "class A(", ""]
)
GRADE_IDS = st.sampled_from([None, SPLIT, MERGE, f"check-{SPLIT}", f"check-{LOAD}", "other"])


@settings(deadline=None, max_examples=60)
@given(st.lists(st.tuples(GRADE_IDS, st.lists(LINES, max_size=3)), max_size=7))
def test_any_cells_are_put_together(course, drawn):
    cells = [
        code("\n".join(lines), metadata={"nbgrader": {"grade_id": grade_id}} if grade_id else {})
        for grade_id, lines in drawn
    ]
    assembled = put_together(nbformat.v4.new_notebook(cells=cells), course)
    joined = "\n".join(cell.source for cell in assembled.notebook.cells)
    assert "NBVAL_SKIP" not in joined
    assert set(assembled.status) == set(ALL)
    assert {n for n in ALL if assembled.status[n] != "missing"} == set(assembled.probed)
