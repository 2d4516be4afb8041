"""The exercise notebooks, made from the solutions: answers taken out, outputs cleared, ids kept."""

import copy
import re
from contextlib import contextmanager
from pathlib import Path

import nbformat
from nbformat.v4 import new_code_cell

from mha_classroom import navigation
from mha_classroom.checks import registry

__all__ = ["complete", "exercise_set", "main", "make", "release_notebook"]

STAND_IN = ("# YOUR CODE HERE", "raise NotImplementedError()")
NUMBERS = "no one two three four five six seven eight nine ten eleven twelve".split()
WORTH = re.compile(r"(\d+) minutes? · (\d+) points?")  # in each statement
HEADER = re.compile(r"\w+ tasks? for (\[lesson [^)]*\)), \d+ points?, about \d+ minutes")
ALL_PASSED = re.compile(r"^All \w+ passed\?", re.MULTILINE)
DEFINED = re.compile(r"^(?:def|class) (\w+)", re.MULTILINE)


def main(root):
    """Write what `make` returns; return the paths that were written.

    An exercise whose solution is gone is removed. A file whose text would not change is not
    touched.
    """
    made = make(root)
    target = Path(root, "exercises")
    target.mkdir(exist_ok=True)
    for stale in set(target.glob("*.ipynb")) - set(made):
        stale.unlink()
    changed = [path for path, text in made.items() if _text(path) != text]
    for path in changed:
        path.write_text(made[path], encoding="utf-8", newline="\n")
    return changed


def make(root):
    """{path: text} of all lessons, solutions and exercises below root, nothing written.

    Solutions have what `complete` writes, exercises are made from them, and all have the cells
    that lead from one to the next.
    Raises: ValueError naming the notebook and the cell for markers that do not match, an answer
        without a task, a task that is new and does not say since which version it is there.
    """
    root, solutions, made = Path(root), {}, {}
    for path in sorted((root / "solutions").glob("*.ipynb")):
        with _named(path):
            solutions[path] = complete(nbformat.read(path, as_version=4), path.stem)
    known = navigation.lessons(root, {path.stem: book for path, book in solutions.items()})
    for path, solution in solutions.items():
        with _named(path):
            exercise = release_notebook(solution, exercise_set(path.stem))
            target = root / "exercises" / path.name
            _check_version(target, exercise, path.stem)
            made[path] = navigation.lead(solution, "solutions", path.stem, known)
            made[target] = navigation.lead(exercise, "exercises", path.stem, known)
    for path in sorted((root / "notebooks").glob("*.ipynb")):
        lesson = nbformat.read(path, as_version=4)
        made[path] = navigation.lead(lesson, "notebooks", path.stem, known)
    return {path: nbformat.writes(notebook) + "\n" for path, notebook in made.items()}


@contextmanager
def _named(path):
    """A ValueError says which notebook it is about."""
    try:
        yield
    except ValueError as error:
        raise ValueError(f"{path.name}: {error}") from error


def complete(solution, stem):
    """Write into a solution what follows from the rest of it, in place; return the notebook.

    Properties: an answer, which is a cell with a solution region, gets its task's id as grade_id,
        and below it a check cell with the points that the statement above gives. The first cell
        and the last words say how many tasks, points and minutes there are.
    Raises: ValueError naming an answer for which there is no task, or no statement with minutes
        and points.
    """
    ids = {task.id for task in registry.exercise_set(stem).tasks}
    cells, worth, total = [], None, []
    waiting = list(solution.cells)
    while waiting:
        cell = waiting.pop(0)
        cells.append(cell)
        if cell.cell_type == "markdown":
            worth = WORTH.search(cell.source) or worth
        elif "### BEGIN SOLUTION" in cell.source:
            name = _task_of(cell, stem, ids)
            if worth is None:
                raise ValueError(f"{name} has no statement that says '10 minutes · 2 points'")
            minutes, points = map(int, worth.groups())
            total.append((minutes, points))
            _label(cell, grade_id=name, solution=True)
            if not waiting or not waiting[0].source.startswith(f'check("{name}"'):
                check = f'check("{name}", {name.split("-", 1)[1]})'
                waiting.insert(0, new_code_cell(check, id=f"check-{name}"[:64]))
            cells.append(waiting.pop(0))
            _label(cells[-1], grade_id=f"check-{name}", grade=True, points=points)
            worth = None
    solution.cells = cells
    _say_how_many(solution, total)
    return solution


def _task_of(cell, stem, ids):
    """The id of the task that a cell answers: as it says, or by the name that it defines."""
    known = cell.metadata.get("nbgrader", {}).get("grade_id")
    names = [f"{stem.split('_')[0]}-{name}" for name in DEFINED.findall(cell.source)]
    found = [name for name in [known, *names] if name in ids]
    if not found:
        listed = " or ".join(names) or "without a name"
        raise ValueError(f"there is no task for the answer {listed}: add its file to the tasks")
    return found[0]


def _label(cell, points=None, **said):
    """nbgrader's metadata of an answer or a check, in its own order."""
    plain = {"grade": False, "locked": said.get("grade", False), "solution": False, "task": False}
    label = plain | {"schema_version": 3} | said | ({} if points is None else {"points": points})
    cell.metadata["nbgrader"] = nbformat.from_dict(dict(sorted(label.items())))


def _say_how_many(solution, total):
    count, minutes = NUMBERS[len(total)], sum(minutes for minutes, _ in total)
    points = sum(points for _, points in total)
    tasks = "task" if len(total) == 1 else "tasks"
    header = rf"{count.capitalize()} {tasks} for \1, {points} points, about {minutes} minutes"
    for cell in solution.cells:
        if cell.cell_type == "markdown":
            cell.source = HEADER.sub(header, cell.source)
            cell.source = ALL_PASSED.sub(f"All {count} passed?", cell.source)


def _check_version(path, exercise, stem):
    """Raise ValueError if a task is new here and not in the version that was handed out before.

    Who has answered that version was not asked for it, and is not to lose points for it.
    """
    if not path.exists():
        return
    before = nbformat.read(path, as_version=4)
    version = before.metadata.get("mha_course", {}).get("version", 1)
    new = _grade_ids(exercise) - _grade_ids(before)
    for task in registry.exercise_set(stem).tasks:
        if task.id in new and task.since <= version:
            raise ValueError(f"{task.id} is new in this exercise set: give it since={version + 1}")


def _grade_ids(notebook):
    return {cell.metadata.get("nbgrader", {}).get("grade_id") for cell in notebook.cells}


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
