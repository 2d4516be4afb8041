"""An exercise set as grading needs it: of the course, or an instructor's own."""

import hashlib
import math
from dataclasses import dataclass
from pathlib import Path

import nbformat

from mha_classroom.checks import registry
from mha_classroom.checks.task import Task
from mha_classroom.clone import CourseError, find_root
from mha_classroom.exercises import release_notebook
from mha_classroom.grading.fit.matching import frame_of
from mha_classroom.grading.fit.own_tasks import load_own_tasks
from mha_classroom.grading.fit.slicing import slice_modules

__all__ = ["Assignment", "assignments", "load_assignment", "release_own", "sum_of_sources"]

PACKAGES = [Path(__file__).resolve().parents[3] / n for n in ("mha_course", "mha_classroom")]


@dataclass(frozen=True, eq=False)
class Assignment:
    """One exercise set.

    name: "04_head_splitting". tasks and points: by task id, in the order of the checks. version:
    of the exercise set. lends: dotted names that the kernel may import. key: differs as soon as
    anything does that marks depend on: the solution, the tasks, the code of the course. files:
    {module: source file} for `slice_modules`, of an instructor's own tasks.
    """

    name: str
    exercise: nbformat.NotebookNode
    solution: nbformat.NotebookNode
    tasks: dict[str, Task]
    points: dict[str, float]
    version: int
    lends: tuple[str, ...]
    key: str
    files: dict[str, Path]


def assignments(folder=None):
    """Return the names of the exercise sets: the course's, or those in an instructor's folder.

    Raises: CourseError if there are none.
    """
    if folder is None:
        names = sorted(path.stem for path in (find_root() / "solutions").glob("*.ipynb"))
    else:
        found = sorted(Path(folder).glob("*.ipynb"))
        names = [path.stem for path in found if path.with_suffix(".py").is_file()]
    if not names:
        where = "solutions/ of the course" if folder is None else folder
        raise CourseError(
            f"There is no assignment in {where}: it has to be NAME.ipynb and NAME.py."
        )
    return names


def load_assignment(stem, folder=None):
    """Return the Assignment of a lesson's exercise set, or of `stem`.ipynb in a folder.

    folder: of an instructor: beside NAME.ipynb, a solution with nbgrader's metadata and markers,
        NAME.py defines TASKS, VERSION and perhaps LENDS. Its tasks are registered for checks.
    Raises: CourseError naming the file and what is wrong in it.
    """
    place = find_root() / "solutions" if folder is None else Path(folder)
    try:
        solution = _solution(place / f"{stem}.ipynb")
        found, files = (
            (registry.exercise_set(stem), {}) if folder is None else load_own_tasks(stem, folder)
        )
        tasks = {task.id: task for task in found.tasks}
        exercise = release_notebook(solution, {"exercise_set": stem, "version": found.version})
        points = _points(exercise, tasks)
        runs = [f"{task.run.__module__}.{task.run.__qualname__}" for task in found.tasks]
        slice_modules([*runs, *found.lends], files)  # what a kernel is to be given has to be there
        if folder is not None:
            registry.register(stem, found.tasks)
    except ValueError as error:
        raise CourseError(f"{stem} cannot be used: {error}.") from error
    tasks = {name: tasks[name] for name in points}
    key = _key(stem, solution, files)
    return Assignment(
        *(stem, exercise, solution, tasks, points), found.version, found.lends, key, files
    )


def release_own(folder, out):
    """Write what students get of the exercise sets in an instructor's folder; return the paths.

    Raises: CourseError if a set is not as it should be, or `out` is that folder.
    """
    if Path(out).resolve() == Path(folder).resolve():
        raise CourseError(f"--out {out} is the folder of the solutions: give another one.")
    made = {name: load_assignment(name, folder).exercise for name in assignments(folder)}
    Path(out).mkdir(parents=True, exist_ok=True)
    for name, exercise in made.items():
        nbformat.write(exercise, Path(out, f"{name}.ipynb"))
    return [Path(out, f"{name}.ipynb") for name in made]


def _solution(path):
    if not path.is_file():
        raise ValueError(f"there is no {path.name} in {path.parent}")
    try:
        return nbformat.read(path, as_version=4)
    except Exception as error:  # nbformat trips over a broken file in many ways
        raise ValueError(f"{path.name} is no notebook: {type(error).__name__}") from error


def _points(exercise, tasks):
    """{task id: points} in the order of the checks, which have to match answers and tasks."""
    cells = [cell for cell in exercise.cells if cell.metadata.get("nbgrader")]
    points = {}
    for cell in cells:
        grading = cell.metadata["nbgrader"]
        grade_id = grading.get("grade_id")
        if not isinstance(grade_id, str) or not grade_id:
            raise ValueError(f"cell {cell.get('id')} has no grade_id")
        if grading.get("grade") and (grading.get("solution") or cell.cell_type != "code"):
            raise ValueError(f"the cell {grade_id} is to be graded by hand, which is not done here")
        if grading.get("grade"):
            name = grade_id.removeprefix("check-")
            if name == grade_id or name not in tasks:
                raise ValueError(f"the check cell {grade_id} is not 'check-' and the id of a task")
            points[name] = _number(grading.get("points"), grade_id)
    answers = {cell.id for cell in frame_of(exercise) if cell.kind == "answer"}
    for name in tasks:
        if name not in answers:
            raise ValueError(f"the task {name} has no answer cell with this grade_id")
        if name not in points:
            raise ValueError(f"the task {name} has no check cell: grade_id 'check-{name}'")
    return points


def _number(points, grade_id):
    if type(points) not in (int, float) or not math.isfinite(points) or points < 0:
        raise ValueError(f"the points of {grade_id} are {points!r} and no number from 0 up")
    return float(points)


def _key(stem, solution, files):
    digest = hashlib.sha256()
    cells = [cell for cell in solution.cells if cell.cell_type == "code"]
    parts = [(cell.source, sorted(cell.metadata.get("nbgrader", {}).items())) for cell in cells]
    own = [path.read_bytes() for path in files.values()]
    for part in (stem, *parts, *own, sum_of_sources()):
        digest.update(repr(part).encode("utf-8", "backslashreplace") + b"\0")
    return digest.hexdigest()


def sum_of_sources(packages=PACKAGES):
    """A sum of every source file of the course: a mark may depend on any of them."""
    digest = hashlib.sha256()
    for package in packages:
        for path in sorted(package.rglob("*.py")):
            name = path.relative_to(package.parent).as_posix()
            digest.update(name.encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()
