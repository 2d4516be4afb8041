"""What a learner has passed so far: kept in work/, shown by `progress()`."""

import html
import json
import os
import uuid
from dataclasses import dataclass
from pathlib import Path

from mha_classroom.checks.registry import lesson_of, tasks
from mha_classroom.checks.shown_solution import TRIES, solution_of
from mha_classroom.clone import CourseError, find_root

__all__ = ["Progress", "progress", "record"]

FILE = ".progress.jsonl"  # one line a check, only ever added to
FORMAT = 1
WIDTH = 10  # characters of a bar
NOT_KEPT = (
    "What you have passed is kept for the notebooks in work/, which `make lab` opens. "
    "Run this cell there to see it."
)


def record(task_id, passed):
    """Note the outcome of a check, if it was run under work/; never raises.

    Returns the course's Solution once the task has been tried, else None.
    """
    try:
        work = _work()
        if work is None:
            return None
        tries = [line for line in _read(work) if line["task"] == task_id]
        line = json.dumps({"format": FORMAT, "task": task_id, "passed": bool(passed)})
        with open(work / FILE, "a", encoding="utf-8") as file:
            file.write(line + "\n")
    except OSError:
        return None  # a full or read-only disk is no reason to fail a check
    return solution_of(task_id, work.parent) if passed or len(tries) + 1 >= TRIES else None


def progress():
    """Return what has been passed so far, which a notebook shows as bars, and what comes next.

    Only checks run under work/ count. Outside of it there is nothing to show.
    """
    work = _work()
    lines = [] if work is None else _read(work)
    passed = frozenset(line["task"] for line in lines if line.get("passed") is True)
    return Progress(passed, work is not None)


@dataclass(frozen=True, repr=False)
class Progress:
    """The ids of the tasks that have been passed, and how they are shown.

    passed: ids. kept: whether this notebook lies where progress is kept.
    """

    passed: frozenset
    kept: bool = True

    @property
    def sets(self):
        """For each exercise set, in order: its stem, and {task id: passed or not}."""
        found = {}
        for task_id in tasks():
            found.setdefault(lesson_of(task_id), {})[task_id] = task_id in self.passed
        return found

    @property
    def next(self):
        """The id of the first task that has not been passed; None at the end."""
        return next((task_id for task_id in tasks() if task_id not in self.passed), None)

    def __str__(self):
        if not self.kept:
            return NOT_KEPT
        lines = []
        for stem, done in self.sets.items():
            filled = round(WIDTH * sum(done.values()) / len(done))
            bar = "█" * filled + "░" * (WIDTH - filled)
            lines.append(f"{stem:24} {bar} {sum(done.values())} of {len(done)}")
        return "\n".join([*lines, self._what_next()])

    __repr__ = __str__

    def _repr_html_(self):
        if not self.kept:
            return f"<p>{html.escape(NOT_KEPT)}</p>"
        rows = []
        for stem, done in self.sets.items():
            count, marks = f"{sum(done.values())} of {len(done)}", []
            for task_id, passed in done.items():
                mark = "✓" if passed else "○"
                marks.append(f"{mark}&nbsp;{html.escape(task_id.split('-', 1)[1])}")
            bar = (
                f'<progress value="{sum(done.values())}" max="{len(done)}" '
                f'aria-label="{html.escape(stem)}: {count}"></progress>'
            )
            link = f'<a href="../exercises/{stem}.ipynb">{html.escape(stem)}</a>'
            cells = (link, bar, count.replace(" ", "&nbsp;"), " &nbsp; ".join(marks))
            styled = (f'<td style="text-align: left">{cell}</td>' for cell in cells)
            rows.append(f"<tr>{''.join(styled)}</tr>")
        return f"<table>{''.join(rows)}</table><p>{html.escape(self._what_next())}</p>"

    def _what_next(self):
        if self.next is None:
            return "Every task is passed."
        return f"Next: {self.next}, in exercises/{lesson_of(self.next)}.ipynb."


def _work():
    """The folder work/ of the course, if the notebook lies in it."""
    try:
        work = find_root() / "work"
    except CourseError:
        return None
    here = Path.cwd().resolve()
    return work if work.resolve() in (here, *here.parents) else None


def _read(work):
    """What was recorded; of a file that cannot be read, which is set aside, the good lines.

    A file of another format is set aside too: it is the learner's, and nothing is deleted.
    """
    path, entries, good, broken = work / FILE, [], [], False
    try:
        text = path.read_text(encoding="utf-8", errors="replace")
    except FileNotFoundError:
        return entries
    for line in text.splitlines():
        try:
            entry = json.loads(line)
            if entry["format"] != FORMAT or not isinstance(entry["task"], str):
                raise ValueError(line)
        except (ValueError, TypeError, KeyError):
            broken = True
            continue
        good.append(line)
        entries.append(entry)
    if broken or (text and not text.endswith("\n")):
        _set_aside(path, good)
    return entries


def _set_aside(path, good):
    mark = uuid.uuid4().hex[:8]
    draft = path.with_name(f"{path.name}.{mark}.tmp")
    draft.write_text("".join(line + "\n" for line in good), encoding="utf-8")
    os.replace(path, path.with_name(f"{path.name}.broken-{mark}"))
    os.replace(draft, path)
