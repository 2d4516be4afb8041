"""Whatever bytes are handed in: they are a notebook, or refused in words."""

import json

import nbformat
import pytest
from handed_notebooks import CELL, book
from hypothesis import given, settings
from hypothesis import strategies as st

from mha_classroom.grading.handed_in.read_notebook import Unreadable, label_of, parse

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
