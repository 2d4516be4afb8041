"""The notebook that is run for a submission: the instructor's, with the student's answers in it."""

import copy
from typing import NamedTuple

import nbformat

from mha_classroom.grading.fit.cell_notes import notes_of, status_of
from mha_classroom.grading.fit.cell_sources import defused, is_setup, setup_lines, tidy
from mha_classroom.grading.fit.matching import frame_of, is_stub, is_written, match
from mha_classroom.grading.handed_in.read_notebook import Unreadable

__all__ = ["Assembled", "assemble"]


class Assembled(NamedTuple):
    """What is run, and what became of the student's cells.

    notebook: code cells alone; the metadata `mha_course` of a cell says what it is: {"answer":
        id}, {"task": id} for a probe, {"added": name} for a cell of the student's own, {"own":
        cell id} for one of the instructor's. status: {task id: "written", "unchanged", "missing"
        or "older"}. probed: the ids of the tasks that have a probe. notes: for the instructor.
    human: what someone should look at. answers: {task id: the source of the student's last cell}.
    """

    notebook: nbformat.NotebookNode
    status: dict[str, str]
    notes: list[str]
    human: list[str]
    probed: tuple[str, ...]
    answers: dict[str, str]


def assemble(notebook, assignment, probes, leave_out=(), replaced=(), only=None):
    """Return the Assembled notebook of a submission, given as `parse` returns it.

    probes: {task id: the source of the cell that takes the place of its check}.
    leave_out: ids of tasks whose answers are not put in, and names of added cells ("added 3").
    replaced: ids of tasks that are answered by the solution and not probed. The student's cell
        stays above it, since it may define more than that.
    only: the ids to probe, if not all of them.
    Properties: written and unchanged answers are probed, missing ones and those of tasks that an
        older version of the exercise set asked for otherwise are not. What stands below the last
        probe is left out. No metadata of the student's is kept; see `cell_sources.defused`.
    Raises: Unreadable for what cannot be graded; ValueError for ids that there are not.
    """
    _check_ids(assignment, probes, leave_out, replaced, only)
    version, notes = _version(notebook, assignment)
    frame = frame_of(assignment.exercise)
    written = match(notebook, frame, {name: task.name for name, task in assignment.tasks.items()})
    status = status_of(written, frame, assignment.tasks)
    more, human = notes_of(notebook, written, frame, status)
    older = [n for n, task in assignment.tasks.items() if getattr(task, "since", 1) > version]
    status |= dict.fromkeys(older, "older")
    notes += more
    if older:
        what = f"it answers version {version} of the exercises, where these are not, or otherwise"
        human.append(f"{what}, so they are not graded: {', '.join(older)}")
    gone = {name for cell in written if set(cell.ids) & set(leave_out) for name in cell.ids}
    skipped = {*gone, *leave_out, *replaced}
    probed = [n for n in status if status[n] in ("written", "unchanged") and n not in skipped]
    probed = [n for n in probed if only is None or n in only]
    cells = list(_chosen(written, frame, set(leave_out), set(replaced)))
    pieces = list(_pieces(assignment, frame, cells, set(replaced)))
    pieces = [piece for piece in pieces if piece[0] != "task" or piece[1] in probed]
    while pieces and pieces[-1][0] != "task":
        pieces.pop()
    made = _built(assignment, pieces, probes)
    answers = {
        name: cell.source for cell in written if is_written(cell, frame) for name in cell.ids
    }
    return Assembled(made, status, notes, human, tuple(probed), answers)


def _chosen(written, frame, leave_out, replaced):
    """The student's cells that go in."""
    last = {_standing(cell): cell.number for cell in written}
    answered = {name for cell in written if is_written(cell, frame) for name in cell.ids}
    for cell in written:
        names, again = set(cell.ids), last[_standing(cell)] != cell.number
        released = is_stub(cell, frame) and (not names or names <= answered)
        is_check = cell.home is not None and frame[cell.home].kind == "check"
        if not tidy(cell.source) or released or is_check or cell.label in leave_out:
            continue
        if not names or not (names & leave_out or again or _hides(cell, frame, replaced)):
            yield cell


def _hides(cell, frame, replaced):
    """Whether it stands below a place where the solution answers in its stead."""
    places = {slot.id: place for place, slot in enumerate(frame) if slot.kind == "answer"}
    return set(cell.ids) <= replaced and any(cell.place > places[name] for name in cell.ids)


def _standing(cell):
    """Of answers that are the same in the same place, the last one is enough."""
    return tuple(cell.ids), cell.place, tidy(cell.source)


def _pieces(assignment, frame, cells, replaced):
    """(kind, name, source) of each cell that is run, in order."""
    solution = frame_of(assignment.solution)
    answers = {cell.id: cell.source for cell in solution if cell.kind == "answer"}
    for place in range(-1, len(frame)):
        slot = frame[place] if place >= 0 else None
        trial = slot is not None and slot.kind == "own" and not is_setup(slot.source)
        if slot and slot.kind == "check":
            yield "task", slot.id, None
        elif slot and slot.kind == "own" and not trial:
            yield "own", slot.cell_id, slot.source
        for cell in cells:
            if cell.place == place and cell.ids:
                yield "answer", cell.ids[0], defused(cell.source)
            elif cell.place == place:
                in_trial = trial and cell.home is not None
                yield (
                    "added",
                    cell.label,
                    defused(setup_lines(cell.source) if in_trial else cell.source),
                )
        if slot and slot.kind == "answer" and slot.id in replaced:
            yield "answer", slot.id, answers[slot.id]


def _built(assignment, pieces, probes):
    """The pieces as a notebook of format 4.5."""
    cells = []
    for number, (kind, name, source) in enumerate(pieces):
        if kind == "task":
            source = probes[name]
        elif not tidy(source):
            continue
        metadata = {"mha_course": {kind: name}}
        cell = {"cell_type": "code", "id": f"cell-{number}", "metadata": metadata, "source": source}
        cells.append(cell | {"outputs": [], "execution_count": None})
    metadata = copy.deepcopy(assignment.exercise.metadata)
    made = {"nbformat": 4, "nbformat_minor": 5, "metadata": metadata, "cells": cells}
    return nbformat.from_dict(made)


def _version(notebook, assignment):
    """(The version of the exercise set that a submission answers, notes about it)."""
    label = notebook.metadata.get("mha_course", {})
    name, version = label.get("exercise_set"), label.get("version")
    if name not in (None, assignment.name):
        raise Unreadable(f"is a notebook of {_short(name)} and not of {assignment.name}")
    if version is None:
        words = "it does not say of which version it is, so it is taken for"
        return assignment.version, [f"{words} version {assignment.version}"]
    if version > assignment.version:
        raise Unreadable(
            f"answers version {_short(version)} of {assignment.name}, and version "
            f"{assignment.version} is the newest known here"
        )
    if version < assignment.version:
        return version, [f"answers version {version}; {assignment.version} is the current one"]
    return version, []


def _short(value):
    return ascii(value)[:60]


def _check_ids(assignment, probes, leave_out, replaced, only):
    known = set(assignment.tasks)
    left = {name for name in leave_out if not str(name).startswith("added ")}
    unknown = left | set(replaced) | set(only or ())
    if unknown - known:
        raise ValueError(f"{assignment.name} has no tasks {sorted(unknown - known)}")
    wanted = known if only is None else set(only)
    if wanted - set(probes):
        raise ValueError(f"there is no probe for {sorted(wanted - set(probes))}")
