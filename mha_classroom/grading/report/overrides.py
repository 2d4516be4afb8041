"""What a human decided: overrides.csv, which is read and never written again once it is there."""

import contextlib
import csv
import io
import math
import re
import unicodedata
from dataclasses import dataclass, field
from pathlib import Path

from mha_classroom.grading.report.safe_text import cell_text, number

__all__ = [
    "COLUMNS",
    "Decision",
    "Overrides",
    "apply_overrides",
    "read_overrides",
]

COLUMNS = ("student", "lesson", "task", "points", "comment")
POINTS = re.compile(r"[0-9]+([.,][0-9]*)?|[.,][0-9]+")
SHOWN = 10  # wrong lines named in one message


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
        return sorted((vars(one) for one in kept), key=lambda one: [str(x) for x in one.values()])


def read_overrides(path, points, handed_in):
    """Return the Overrides of a file; one with only the header is made if there is none.

    points: {lesson: {task id: the most points}}. handed_in: pairs (student, lesson).
    Properties: commas, semicolons or tabs, a decimal comma, spaces around a value and what Excel
        writes before the text are understood, and names as grades.csv shows them. A line that
        fits no submission is a problem, no error; of two lines for the same the last counts.
    Raises: ValueError naming each line whose points are no number from 0 to the most there are,
        and for a file that is no table with the columns student, lesson, task and points.
    """
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    with contextlib.suppress(FileExistsError), open(path, "xb") as file:
        file.write(f"\ufeff{','.join(COLUMNS)}\n".encode())
    found, problems, errors = _decided(path, _Known(handed_in, points))
    if errors:
        more = [f"and {len(errors) - SHOWN} more"] if len(errors) > SHOWN else []
        raise ValueError("\n".join([*errors[:SHOWN], *more]))
    return Overrides(found, tuple(problems))


def _decided(path, known):
    """The decisions of a file, what could not be used of it, and what is wrong with it."""
    found, problems, errors = {}, [], []
    for line, row in _rows(path):
        try:
            decision = known.decision(row)
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
    return found, problems, errors


def apply_overrides(result, overrides, points):
    """Return a result with every task of its lesson, with the points that a human decided.

    Properties: the result that is given stays as it is. A task that was decided keeps its verdict
        and gets `machine`, the points it had, and `comment`. A task without an outcome is "not
        run". `points` is the sum again.
    """
    decided = overrides.decisions.get((result["student"], result["lesson"]), {})
    tasks = {task["id"]: task for task in result["tasks"]}
    best = points.get(result["lesson"], {})
    done = []
    for name in [*best, *(name for name in tasks if name not in best)]:
        blank = {"id": name, "verdict": "not run", "points": 0.0, "max": best.get(name, 0.0)}
        task = {"mistake": None, "carried": [], "feedback": None, **blank, **tasks.get(name, {})}
        if name in decided:
            new = {"points": decided[name].points, "comment": decided[name].comment}
            task = {**task, "machine": task["points"], **new}
        done.append(task)
    total = round(math.fsum(task["points"] for task in done), 6)
    most = result["max"] or round(math.fsum(best.values()), 6)
    return {**result, "tasks": done, "points": total, "max": most}


class _Known:
    """What a line can mean: names as they are, and as grades.csv and a keyboard show them."""

    def __init__(self, handed_in, points):
        self.pairs, self.points, self.students = set(handed_in), points, {}
        for name in {student for student, _ in self.pairs}:
            for form in {name, cell_text(name)}:
                self.students.setdefault(_key(form), set()).add(name)

    def decision(self, row):
        student = self._student(row["student"])
        lesson, task = row["lesson"].strip(), row["task"].strip()
        if lesson not in self.points:
            raise LookupError(f"there is no lesson {lesson!r} here")
        if (student, lesson) not in self.pairs:
            raise LookupError(f"{student!r} handed nothing in for {lesson!r}")
        if task not in self.points[lesson]:
            raise LookupError(f"{lesson!r} has no task {task!r}")
        points = _points(row["points"].strip(), self.points[lesson][task])
        return Decision(student, lesson, task, points, row["comment"].strip())

    def _student(self, cell):
        meant = self.students.get(_key(cell), set())
        if len(meant) > 1 and cell in meant and cell_text(cell) == cell:
            return cell
        if len(meant) != 1:
            which = f"{len(meant)} students could be meant by" if meant else "there is no student"
            raise LookupError(f"{which} {cell!r}")
        return min(meant)


def _key(name):
    return unicodedata.normalize("NFC", name).strip()


def _points(text, most):
    if not POINTS.fullmatch(text):
        raise ValueError(f"the points are not a number from 0 to {number(most)}: {text!r}")
    value = float(text.replace(",", "."))
    if value > most:
        raise ValueError(f"{text} points are more than the {number(most)} that there are")
    return value


def _rows(path):
    """The lines that are not empty as (line number, {column: text})."""
    text = _decoded(path)
    first, _, rest = text.partition("\n")
    skipped = 0
    if first.lstrip('"').startswith("sep="):  # Excel's own first line
        text, skipped = rest, 1
        first = rest.partition("\n")[0]
    delimiter = max(",;\t", key=first.count)
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter)
    names, start, rows = None, 1, []
    try:
        for cells in reader:
            line, start = start + skipped, reader.line_num + 1
            if not any(cell.strip() for cell in cells):
                continue
            if names is None:
                names = _header(path, cells)
            elif any(cell.strip() for cell in cells[len(names) :]):
                raise ValueError(
                    f"{path.name}, line {line}: {len(cells)} cells, and the first line names "
                    f"{len(names)}; a text with a {delimiter!r} has to stand in quotes"
                )
            else:
                row = dict.fromkeys(COLUMNS, "") | dict(zip(names, cells, strict=False))
                rows.append((line, row))
    except csv.Error as error:
        raise ValueError(f"{path.name}, line {start + skipped}: {error}") from error
    return rows


def _header(path, cells):
    names = [cell.strip().lower() for cell in cells]
    missing = [name for name in COLUMNS[:4] if name not in names]
    if missing:
        raise ValueError(
            f"{path.name}: the first line has no column {', '.join(missing)}; it has to be "
            f"{','.join(COLUMNS)}, got {','.join(cells)!r}"
        )
    return names


def _decoded(path):
    content = path.read_bytes()
    wide = content[:2] in (b"\xff\xfe", b"\xfe\xff")
    try:
        return content.decode("utf-16" if wide else "utf-8-sig")
    except UnicodeDecodeError as error:
        line = content[: error.start].count(b"\n") + 1
        raise ValueError(
            f"{path.name}, line {line}: this is not UTF-8. Save the file as “CSV UTF-8”."
        ) from error
