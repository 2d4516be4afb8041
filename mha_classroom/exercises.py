"""Make the exercises from the solutions: answers taken out, outputs cleared, ids kept."""

import copy
from pathlib import Path

import nbformat

from mha_classroom.checks import registry

__all__ = ["exercise_set", "main", "release_notebook"]

STAND_IN = ("# YOUR CODE HERE", "raise NotImplementedError()")


def main(root):
    """Write `exercises/` from `solutions/` below root; return the paths that were written.

    An exercise whose solution is gone is removed. A file whose text would not change is not
    touched.
    Raises: ValueError naming the notebook and the cell for markers that do not match.
    """
    sources = sorted(Path(root, "solutions").glob("*.ipynb"))
    target = Path(root, "exercises")
    target.mkdir(exist_ok=True)
    released = {}
    for source in sources:
        try:
            solution = nbformat.read(source, as_version=4)
            exercise = release_notebook(solution, exercise_set(source.stem))
            released[target / source.name] = nbformat.writes(exercise) + "\n"
        except ValueError as error:
            raise ValueError(f"{source.name}: {error}") from error
    for stale in set(target.glob("*.ipynb")) - set(released):
        stale.unlink()
    changed = [path for path, text in released.items() if _text(path) != text]
    for path in changed:
        path.write_text(released[path], encoding="utf-8", newline="\n")
    return changed


def release_notebook(solution, label=None):
    """Return the exercise notebook of a solution notebook, which is left as it is.

    Properties: in cells whose nbgrader metadata says solution, each region between
        `### BEGIN SOLUTION` and `### END SOLUTION` becomes a line to replace; in graded cells the
        regions of hidden tests go. Cell ids and metadata stay; outputs and counts go. The name
        and version of the exercise set are added to the notebook's metadata.
    Raises: ValueError naming the cell for a region that is not closed or stands in another kind
        of cell, a solution cell without a region, a grade_id used twice.
    """
    exercise, seen = copy.deepcopy(solution), set()
    for cell in exercise.cells:
        if cell.cell_type != "code":
            continue
        grading = cell.metadata.get("nbgrader", {})
        grade_id = grading.get("grade_id")
        if grade_id in seen:
            raise ValueError(f"the grade_id {grade_id!r} is used twice")
        seen.update({grade_id} - {None})
        name = grade_id or cell.id
        source = cell.source
        cell.source = _cut(source, "SOLUTION", STAND_IN, name)
        if (cell.source != source) != bool(grading.get("solution")):
            raise ValueError(f"cell {name}: a solution region and nbgrader's solution=true differ")
        cell.source = _cut(cell.source, "HIDDEN TESTS", (), name)
        cell.outputs, cell.execution_count = [], None
        cell.metadata.pop("execution", None)
    if label:
        exercise.metadata["mha_course"] = label
    return exercise


def exercise_set(stem):
    """Name and version of the set."""
    return {"exercise_set": stem, "version": registry.exercise_set(stem).version}


def _cut(source, region, stand_in, name):
    """The source with each region replaced by the stand-in lines, indented like its marker."""
    lines, inside = [], False
    for line in source.split("\n"):
        marker = line.strip()
        if marker == f"### BEGIN {region}" and not inside:
            inside = True
            indent = line[: len(line) - len(line.lstrip())]
            lines += [indent + text for text in stand_in]
        elif marker == f"### END {region}" and inside:
            inside = False
        elif marker in (f"### BEGIN {region}", f"### END {region}"):
            raise ValueError(f"cell {name}: {marker!r} stands where it does not belong")
        elif not inside:
            lines.append(line)
    if inside:
        raise ValueError(f"cell {name}: '### BEGIN {region}' is never closed")
    return "\n".join(lines).rstrip("\n")


def _text(path):
    return path.read_text(encoding="utf-8") if path.exists() else None
