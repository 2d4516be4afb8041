"""Submissions are found, read and put into the instructor's notebook, whatever is in them."""

import copy
import json
import os
import re
import socket
import time
import types

import nbformat
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from nbval.plugin import comment_markers, find_comment_markers

from mha_course.checks import registry
from mha_course.clone import CourseError
from mha_course.grading import handed_files
from mha_course.grading.assembly import Unreadable, assemble, parse
from mha_course.grading.assignment import assignments, load_assignment
from mha_course.grading.cell_sources import defined, defused, is_setup, setup_lines
from mha_course.grading.parsing import label_of
from mha_course.grading.slicing import slice_modules
from mha_course.grading.submissions import find_submissions, read_submission

STEM = "04_head_splitting"
SPLIT, MERGE, SPREAD = "04-transpose_qkv", "04-transpose_output", "04-spread_valid_lens"
MODULE, LOAD = "04-MultiHeadAttention", "04-load_torch_weights"
ALL = (SPLIT, MERGE, SPREAD, MODULE, LOAD)
ANSWER = "def transpose_qkv(X, num_heads):\n    return X\n"


@pytest.fixture(scope="module")
def course():
    return load_assignment(STEM)


def handed_in(assignment, **answers):
    """A submission with these sources in the answer cells, by the name that they define."""
    notebook = copy.deepcopy(assignment.exercise)
    for name, source in answers.items():
        cell_of(notebook, f"04-{name}").source = source
    return notebook


def cell_of(notebook, grade_id):
    return next(c for c in notebook.cells if grade_id_of(c) == grade_id)


def grade_id_of(cell):
    return cell.metadata.get("nbgrader", {}).get("grade_id")


def code(source, **more):
    return nbformat.v4.new_code_cell(source, **more)


def insert(notebook, after, *cells):
    at = notebook.cells.index(cell_of(notebook, after)) + 1
    notebook.cells[at:at] = cells


def strip(notebook, ids=True):
    """As tools do that drop metadata."""
    for number, cell in enumerate(notebook.cells):
        cell.metadata = {}
        cell.id = f"new-{number}" if ids else cell.id


def put_together(notebook, assignment, **how):
    probes = {name: f"probe({name!r})" for name in assignment.tasks}
    content = json.dumps(notebook).encode()
    assembled = assemble(content, assignment, probes, **how)
    nbformat.validate(assembled.notebook)
    assert (assembled.notebook.nbformat, assembled.notebook.nbformat_minor) == (4, 5)
    for cell in assembled.notebook.cells:
        assert cell.cell_type == "code" and not cell.outputs and cell.execution_count is None
        assert list(cell.metadata) == ["mha_course"] and len(cell.metadata.mha_course) == 1
    probed = [role.get("task") for role in roles(assembled) if "task" in role]
    assert sorted(probed) == sorted(assembled.probed)
    return assembled


def roles(assembled):
    return [dict(cell.metadata["mha_course"]) for cell in assembled.notebook.cells]


def sources(assembled, kind, name=None):
    return [
        cell.source
        for cell in assembled.notebook.cells
        if (
            cell.metadata.mha_course.get(kind) == name if name else kind in cell.metadata.mha_course
        )
    ]


# --- honest submissions ---


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
    assert sources(assembled, "answer", SPLIT) == [solution]
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
    insert(notebook, f"check-{LOAD}", code("too_late = 1"))
    assembled = put_together(notebook, course)
    assert sources(assembled, "added") == ["import einops_like", "helper = 1", "after = 1"]
    names = [next(iter(role.values())) for role in roles(assembled)]
    own = next(i for i, role in enumerate(roles(assembled)) if "own" in role)
    assert names[:own] == ["added 1"]
    assert [list(r)[0] for r in roles(assembled)[own + 1 :]][
        :4
    ] == "answer added task added".split()
    assert any("own that were put in: 4" in note for note in assembled.notes)


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
    assert put_together(notebook, course, replaced=[SPLIT]).notebook.cells[1].source != ANSWER


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
    assert f"the answer of {SPLIT} is a {kind} cell and not a code cell" in assembled.notes


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
    assert set(assembled.status.values()) == {"written"} and assembled.probed == ALL
    assert sources(assembled, "answer", SPLIT) == [ANSWER]  # and not the stub
    assert roles(assembled)[1:3] == [{"added": "added 3"}, {"answer": SPLIT}]
    assert f"the answer of {SPREAD} stands in the cell of {MODULE}" in assembled.notes
    order = roles(assembled)
    assert order.index({"answer": MODULE}) < order.index({"task": SPREAD})
    left = put_together(notebook, course, leave_out=[MODULE])
    assert left.probed == (SPLIT, MERGE, LOAD) and both not in str(left.notebook.cells)
    one = put_together(notebook, course, replaced=[SPREAD])
    assert sources(one, "answer", SPREAD) and sources(one, "answer", MODULE) == [both]


def test_a_second_definition_further_down_stays_there(course):
    notebook = handed_in(course, transpose_qkv=ANSWER)
    insert(notebook, f"check-{SPLIT}", code(ANSWER + "    # better"))
    assembled = put_together(notebook, course)
    assert roles(assembled)[1:4] == [{"answer": SPLIT}, {"task": SPLIT}, {"answer": SPLIT}]
    assert len(assembled.human) == 1
    assert len(sources(put_together(notebook, course, replaced=[SPLIT]), "answer", SPLIT)) == 1


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
    assert assembled.notes == [
        "answers version 2; 3 is the current one",
        f"{SPLIT} is not graded: version 2 is before its own",
    ]


# --- what nbval obeys, and what cells define ---


@pytest.mark.parametrize("marker", comment_markers)
@pytest.mark.parametrize("line", ["# {}", "  ##{}  ", "x = 1\x0c#{}", "x = 1\u2028 # {} \r\ny = 2"])
def test_comments_that_nbval_obeys_are_defused(marker, line):
    source = "a = 1\n" + line.format(marker) + "\nb = 2"
    assert list(find_comment_markers(source))
    assert not list(find_comment_markers(defused(source)))
    assert len(defused(source)) == len(source) and defused(source).count("\n") == source.count("\n")


def test_other_text_is_left_alone():
    source = "x_y = 1  # NBVAL_SKIP is a comment of nbval\n# a_b\n"
    assert defused(source) == source


@pytest.mark.parametrize(
    ("source", "functions", "others"),
    [
        ("def f(): pass\nclass G: pass\nh = 1", "fG", "h"),
        ("if 1:\n    def f(): pass\nfor k in ():\n    pass", "", "fk"),
        ("%matplotlib inline\n!pip install x\nx = !ls\ndef f(): pass\ng?\n?h", "f", "x"),
        ("%%time\ndef f(): pass", "f", ""),
        ("%%bash\ndef f(): pass", "", ""),
        ("async def f(): pass\nx = = 2", "f", ""),
        ("def f(:\n    def g(): pass", "f", ""),
        ("'''\ndef f(): pass\n'''", "", ""),
        ("x = '\\d'", "", "x"),
        ("-" * 30_000 + "1", "", ""),
        ("a" + ".a" * 30_000, "", ""),
        ("#" * 300_000 + "\ndef f(): pass", "f", ""),
    ],
    ids=range(12),
)
def test_what_a_cell_defines(source, functions, others):
    found, names = defined(source)
    assert found == set(functions) and names == set(functions) | set(others)


@pytest.mark.parametrize(
    "source",
    [" " * 150_000 + "!", "a, " * 50_000, "a b\n" * 40_000 + "=", "x" * 150_000 + " ="],
    ids=range(4),
)
def test_no_source_takes_for_ever(source):
    start = time.process_time()
    assert not defined(source)[0] and setup_lines(source) == "" and defused(source) == source
    assert time.process_time() - start < 2


def test_setup_and_trial_cells():
    assert is_setup("import x") and is_setup("A, B = 1, -2") and is_setup("def f(): pass\nf()")
    assert not is_setup("x = f()") and not is_setup("A = 1\nprint(A)") and not is_setup("import (")
    assert setup_lines("f()\n@g\ndef f(): pass\nA = 1; f()") == "\n@g\ndef f(): pass\nA = 1; f()"
    assert setup_lines("x = (") == ""


# --- parse ---

CELL = {"cell_type": "code", "source": "x = 1", "metadata": {}, "outputs": []}


def book(*cells, **more):
    return json.dumps({"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": cells} | more)


NO_NOTEBOOKS = [
    (b"", "is empty"),
    (b" \n\t ", "is empty"),
    (b"PK\x03\x04rest", "zip file"),
    (b"\x89PNG\r\n\x1a\n\0\0", "NUL bytes"),
    (b"\xff\xfe{", "byte 0 is not UTF-8"),
    (book().encode("utf-16"), "NUL bytes"),
    (b'{"cells": [', "malformed JSON at line 1"),
    (b"<<<<<<< HEAD\n{}", "malformed JSON"),
    (b"[" + b"[]," * 3_000_000, "has more than 3000000 brackets"),
    (b"[" * 200_000, "nested too deeply"),
    (b'{"a":' * 200_000, "nested too deeply"),
    (b'{"nbformat": ' + b"9" * 5000 + b"}", "number that is too long"),
    (b"[]", "its JSON is no object"),
    (b"null", "its JSON is no object"),
    (b"{}", "which format version"),
    (book(nbformat="4"), "which format version"),
    (book(nbformat=True), "which format version"),
    (book(nbformat=5), "format version 5; 4 is the last"),
    (book(nbformat=0), "which format version"),
    (book(nbformat=3), "cannot be converted"),
    (book(nbformat=2), "cannot be converted"),
    (book(cells={}), "no list of cells"),
    (book(*[CELL] * 2001), "has 2001 cells"),
    (book(CELL | {"source": "#" * 2_000_001}), "has 2000001 characters of code"),
    (book(3), "cell 1 is no cell"),
    (book(CELL, {"source": ""}), "cell 2 is no cell"),
    (book(CELL | {"source": 3}), "source of cell 1 is no text"),
    (book(CELL | {"source": ["a", 3]}), "source of cell 1 is no text"),
    (book(CELL | {"source": None}), "source of cell 1 is no text"),
    (book(CELL | {"source": "a\0"}), "NUL character in cell 1"),
    (book(CELL | {"source": "\ud800"}), "half a character"),
]


@pytest.mark.parametrize(
    ("content", "words"), NO_NOTEBOOKS, ids=[words for _, words in NO_NOTEBOOKS]
)
def test_what_is_no_notebook_is_refused_in_words(content, words):
    content = content.encode() if isinstance(content, str) else content
    with pytest.raises(Unreadable, match=words):
        parse(content)
    assert label_of(content) is None


def test_what_is_odd_but_readable_costs_nothing():
    deep = {}
    for _ in range(150):
        deep = {"a": [deep]}
    cells = [
        CELL | {"source": ["a\n", "b"], "metadata": 3, "id": "x", "outputs": "no", "extra": deep},
        CELL | {"id": "x", "metadata": {"nbgrader": {"grade_id": ["no"]}}},
        CELL | {"id": "no good", "metadata": {"nbgrader": "no"}},
        {"cell_type": "heading", "source": "A"},
        {"cell_type": "markdown", "source": "\ud800\0"},
        {"cell_type": "code"},
    ]
    content = "\ufeff" + book(*cells, metadata={"mha_course": {"version": 2, "x": deep}}, odd=deep)
    notebook = parse(content.encode())
    nbformat.validate(notebook)
    assert [cell.source for cell in notebook.cells] == ["a\nb", "x = 1", "x = 1", "", "", ""]
    assert notebook.metadata == {"mha_course": {"version": 2}}
    assert len({cell.id for cell in notebook.cells}) == 6 and notebook.cells[0].id == "x"


def test_format_3_is_converted():
    old = nbformat.v3.new_notebook(
        worksheets=[nbformat.v3.new_worksheet(cells=[nbformat.v3.new_code_cell(input="x = 1")])]
    )
    assert [cell.source for cell in parse(json.dumps(old).encode()).cells] == ["x = 1"]


ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=9),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["cell_type", "metadata", "nbgrader", "id"]), inner)
    ),
    max_leaves=5,
)
CELLS = st.fixed_dictionaries(
    {"cell_type": st.sampled_from(["code", "raw", "x"]) | ANYTHING, "source": st.text() | ANYTHING},
    optional={"id": ANYTHING, "metadata": ANYTHING, "input": ANYTHING, "outputs": ANYTHING},
)
BOOKS = st.fixed_dictionaries(
    {"nbformat": st.sampled_from([4, 3, 2, 1]) | ANYTHING},
    optional={
        "cells": st.lists(CELLS, max_size=3) | ANYTHING,
        "worksheets": st.lists(st.fixed_dictionaries({"cells": st.lists(CELLS)}), max_size=1),
        "metadata": ANYTHING,
        "nbformat_minor": ANYTHING,
    },
)


@settings(deadline=None, max_examples=150)
@given(st.binary() | st.text().map(str.encode) | (BOOKS | ANYTHING).map(json.dumps).map(str.encode))
def test_parse_raises_nothing_but_unreadable(content):
    try:
        notebook = parse(content)
    except Unreadable as error:
        assert str(error)
    else:
        nbformat.validate(notebook)


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


# --- finding and reading ---


def hand_in(root, *paths, content=None):
    for path in paths:
        path = root / path
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if content is not None else book(CELL).encode())


def labelled(stem):
    return book(CELL, metadata={"mha_course": {"exercise_set": stem, "version": 1}}).encode()


def rows_of(root, *names):
    found = find_submissions(root, names or (STEM, "05_x"))
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
    row = rows_of(tmp_path)["a", STEM]
    assert row.path is None and row.human and "another.ipynb" in row.problem
    hand_in(tmp_path, f"a/{STEM}.ipynb")
    row = rows_of(tmp_path)["a", STEM]
    assert row.path.name == f"{STEM}.ipynb" and not row.problem and not row.note


def test_the_name_decides_where_the_metadata_does_not(tmp_path):
    hand_in(tmp_path, f"a/{STEM} (1).ipynb", content=b"not json")
    hand_in(tmp_path, f"b/{STEM} (1).ipynb", content=labelled("05_x"))
    rows = rows_of(tmp_path)
    assert rows["a", STEM].path and rows["b", "05_x"].path and rows["b", STEM].path is None


def test_the_right_place_comes_first(tmp_path):
    hand_in(tmp_path, f"a/{STEM}.ipynb", f"a/old/{STEM}.ipynb", f"b/x/{STEM}.ipynb")
    hand_in(tmp_path, f"b/y/{STEM}.ipynb")
    rows = rows_of(tmp_path)
    assert rows["a", STEM].path == tmp_path / "a" / f"{STEM}.ipynb"
    assert f"old/{STEM}.ipynb" in rows["a", STEM].note
    assert rows["b", STEM].human and "someone has to choose" in rows["b", STEM].problem


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
            read_submission(paths[kind])
    assert read_submission(paths["good"]) == labelled(STEM)


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
        read_submission(tmp_path / "none.ipynb")
    with pytest.raises(CourseError, match="cannot be read: No such file"):
        find_submissions(tmp_path / "nowhere", [STEM])


def test_a_file_that_grows_is_read_to_the_limit(tmp_path, monkeypatch):
    hand_in(tmp_path, f"a/{STEM}.ipynb", content=b"x" * 101)
    monkeypatch.setattr(handed_files, "_check_kind", lambda status: None)
    monkeypatch.setattr(handed_files, "LIMIT", 100)
    with pytest.raises(Unreadable, match="has more than 0 MB"):
        read_submission(tmp_path / "a" / f"{STEM}.ipynb")


def test_a_name_that_is_no_text(tmp_path):
    folder = os.fsencode(tmp_path) + b"/a\xff"
    os.mkdir(folder)
    with open(folder + f"/{STEM}.ipynb".encode(), "wb") as file:
        file.write(book(CELL).encode())
    (row,) = find_submissions(tmp_path, [STEM])
    assert row.student == "a\\xff" and read_submission(row.path)


# --- assignments ---

OWN = """
from mha_course.checks.task import Case, Task

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
