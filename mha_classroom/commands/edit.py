"""A lesson as text: edit .edit/notebooks/04_….py, save it back into notebooks/04_….ipynb.

The notebook stays the one source; the text is a lens that keeps ids and outputs on the way back.
Beside each view .edit/.base/ keeps the text as it was written, so that it is known which of view
and notebook has changed since.
"""

from __future__ import annotations

from copy import deepcopy
from itertools import zip_longest

import jupytext
import nbformat
from jupytext.combine import combine_inputs_with_outputs

from mha_classroom import exercises, navigation
from mha_classroom.clone import CourseError, choose, stems
from mha_classroom.commands import run_notebooks as execute
from mha_course.embedded import command

__all__ = ["as_view", "edit", "from_view", "save"]

FOLDERS = ("notebooks", "solutions")
FORMAT = {"extension": ".py", "format_name": "percent", "cell_markers": '"""'}


def edit(root, word, force=False):
    """Write the views of a lesson and its solution; returns 0.

    Raises: CourseError if that would lose an edit of a view, unless `force`.
    """
    for stem in choose(word, stems(root, FOLDERS)):
        for folder in FOLDERS:
            notebook, view, base = _files(root, folder, stem)
            if not notebook.exists():
                continue
            text = as_view(execute.read(notebook))
            if view.exists() and not force and _text(view) not in (text, _text(base)):
                raise CourseError(
                    f"{view} has edits that are not in {folder}/{stem}.ipynb. Save them with "
                    f"`{command(f'save {stem}')}`, or drop them with "
                    f"`{command(f'edit {stem} --force')}`."
                )
            _put(text, view, base)
            print(view)
    return 0


def save(root, word, force=False):
    """Write the views of a lesson and its solution back into the notebooks, and run those.

    Returns what `execute.run` returns. Raises: CourseError if a notebook has changed since its
    view was written, unless `force`.
    """
    views = tuple(f".edit/{folder}" for folder in FOLDERS)
    saved, known = [], navigation.lessons(root)
    for stem in choose(word, stems(root, views, ".py")):
        for folder in FOLDERS:
            notebook, view, base = _files(root, folder, stem)
            if not view.exists():
                continue
            old = execute.read(notebook) if notebook.exists() else None
            if old and not force and as_view(old) not in (_text(base), _text(view)):
                raise CourseError(
                    f"{folder}/{stem}.ipynb has changed since {view} was written from it. Look at "
                    f"both; `{command(f'save {stem} --force')}` takes the view."
                )
            new = from_view(_text(view), old)
            if folder == "solutions":
                new = _completed(new, stem)
            navigation.lead(new, folder, stem, known)
            execute.write(notebook, new)
            _put(as_view(new), view, base)
            saved.append(str(notebook))
    return execute.run(saved, root)


def _completed(solution, stem):
    """With what follows from the tasks written in."""
    try:
        return execute.canonical(exercises.complete(solution, stem))
    except ValueError as error:
        raise CourseError(f"solutions/{stem}.ipynb: {error}") from error


def as_view(notebook):
    """The notebook's cells, without outputs, as a Python script with `# %%` between them.

    Raises: CourseError if a cell would not come back as it is.
    """
    shown = deepcopy(notebook)
    for cell in shown.cells:
        if cell.cell_type != "code" and ('"""' in cell.source or "# %%" in cell.source):
            cell.metadata["cell_marker"] = "#"
    shown.metadata = nbformat.from_dict({"jupytext": {"notebook_metadata_filter": "-all"}})
    text = jupytext.writes(shown, fmt=FORMAT)
    back = from_view(text, notebook).cells
    for number, (cell, other) in enumerate(zip_longest(notebook.cells, back), 1):
        if cell is None or cell != other:
            raise CourseError(f"Cell {number} cannot be shown as text.\n\n{(cell or other).source}")
    return text


def from_view(text, old=None):
    """The notebook of a view; unchanged cells keep the ids and outputs that they have in `old`."""
    new = jupytext.reads(text, fmt=FORMAT)
    known = set()
    if old:
        known = {cell.id for cell in old.cells}
        new = combine_inputs_with_outputs(new, deepcopy(old), FORMAT)
    for cell in new.cells:
        if cell.id not in known:
            del cell["id"]  # drawn by chance: the canonical form gives one that follows the text
    return execute.canonical(new)


def _files(root, folder, stem):
    edits = root / ".edit"
    view = f"{folder}/{stem}.py"
    return root / folder / f"{stem}.ipynb", edits / view, edits / ".base" / view


def _text(path):
    return path.read_text("utf-8") if path.exists() else None


def _put(text, *paths):
    for path in paths:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8", newline="\n")
