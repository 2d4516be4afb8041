"""Notebooks as students hand them in, and the way they are put together, for several tests."""

import copy
import json

import nbformat

from mha_classroom.grading.fit.assembly import assemble
from mha_classroom.grading.handed_in.read_notebook import parse

STEM = "04_head_splitting"
SPLIT, MERGE, SPREAD = "04-transpose_qkv", "04-transpose_output", "04-spread_valid_lens"
MODULE, LOAD = "04-MultiHeadAttention", "04-load_torch_weights"
PACKED, REPACK, GROUPED = "04-split_packed", "04-repack", "04-transpose_grouped"
ALL = (SPLIT, MERGE, SPREAD, MODULE, LOAD, PACKED, REPACK, GROUPED)
ANSWER = "def transpose_qkv(X, num_heads):\n    return X\n"


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
    notebook = parse(json.dumps(notebook).encode())
    assembled = assemble(notebook, assignment, probes, **how)
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


CELL = {"cell_type": "code", "source": "x = 1", "metadata": {}, "outputs": []}


def book(*cells, **more):
    return json.dumps({"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": cells} | more)
