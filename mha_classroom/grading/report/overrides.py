"""What a human decided: overrides.csv, which is read and never written again once it is there."""

import contextlib
import re
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

from mha_classroom.grading.handed_in.read_table import rows_of
from mha_classroom.grading.report.safe_text import number, plain_text

__all__ = ["COLUMNS", "Decision", "Overrides", "apply_overrides", "read_overrides"]

COLUMNS = ("student", "lesson", "task", "points", "comment")
POINTS = re.compile(r"[0-9]+([.,][0-9]*)?|[.,][0-9]+")


@dataclass(frozen=True)
class Decision:
    """One line of overrides.csv: so many points for a task, and why."""

    student: str
    lesson: str
    task: str
    points: float
    comment: str = ""


@dataclass(frozen=True)
class Overrides:
    """What a human decided, and what could not be used.

    decisions: {(student, lesson): {task id: Decision}}. problems: sentences that name the line.
    """

    decisions: dict = field(default_factory=dict)
    problems: tuple[str, ...] = ()

    def listed(self):
        """All decisions as dicts, sorted."""
        kept = (decision for tasks in self.decisions.values() for decision in tasks.values())
        return sorted(map(asdict, kept), key=lambda one: [str(x) for x in one.values()])


def read_overrides(path, points, handed_in):
    """Return the Overrides of a file; one with only the header is made if there is none.

    points: {lesson: {task id: the most points}}. handed_in: pairs (student, lesson).
    Properties: UTF-8, commas or semicolons, a decimal comma and names as grades.csv shows them are
        understood. A line that fits no submission is a problem, no error; of two lines for the
        same the last counts.
    Raises: ValueError naming each line whose points are no number from 0 to the most there are,
        for what cannot be read, and for what is no table with student, lesson, task and points.
    """
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    with contextlib.suppress(FileExistsError), open(path, "x", encoding="utf-8-sig") as file:
        file.write(",".join(COLUMNS) + "\n")
    found, problems, errors = {}, [], []
    for line, row in rows_of(path, COLUMNS[:4], COLUMNS):
        try:
            decision = _decision(row, points, set(handed_in))
        except LookupError as error:
            problems.append(f"{path.name}, line {line}: {error.args[0]}")
            continue
        except ValueError as error:
            errors.append(f"{path.name}, line {line}: {error}")
            continue
        tasks = found.setdefault((decision.student, decision.lesson), {})
        if decision.task in tasks:
            what = f"{decision.student!r}, {decision.task!r}"
            problems.append(f"{path.name}, line {line}: a second line for {what}; the last counts")
        tasks[decision.task] = decision
    if errors:
        raise ValueError("\n".join(errors))
    return Overrides(found, tuple(problems))


def _decision(row, points, pairs):
    """The Decision of a line. Raises: LookupError if it fits nothing, ValueError for its points."""
    students = {student for student, _ in pairs}
    ways = (row["student"], plain_text(row["student"]), row["student"].strip())
    student = next((name for name in ways if name in students), None)
    lesson, task = row["lesson"].strip(), row["task"].strip()
    if student is None:
        raise LookupError(f"there is no student {row['student']!r}")
    if lesson not in points:
        raise LookupError(f"there is no lesson {lesson!r} here")
    if (student, lesson) not in pairs:
        raise LookupError(f"{student!r} handed nothing in for {lesson!r}")
    if task not in points[lesson]:
        raise LookupError(f"{lesson!r} has no task {task!r}")
    text, most = row["points"].strip(), points[lesson][task]
    if not POINTS.fullmatch(text):
        raise ValueError(f"the points are not a number from 0 to {number(most)}: {text!r}")
    if float(text.replace(",", ".")) > most:
        raise ValueError(f"{text} points are more than the {number(most)} that there are")
    value = float(text.replace(",", "."))
    return Decision(student, lesson, task, value, row.get("comment", "").strip())


def apply_overrides(result, overrides):
    """Return a Result with the points that a human decided.

    Properties: the result that is given stays as it is. A task that was decided keeps its verdict
        and gets `machine`, the points it had, and `comment`.
    """
    decided = overrides.decisions.get((result.student, result.lesson), {})
    tasks = []
    for task in result.tasks:
        if task.id in decided:
            new = decided[task.id]
            task = replace(task, points=new.points, comment=new.comment, machine=task.points)
        tasks.append(task)
    return replace(result, tasks=tuple(tasks))
