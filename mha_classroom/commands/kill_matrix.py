"""The kill matrix: what each check names, rejects and accepts, printed by `mha-course checks`."""

import importlib
import sys
from dataclasses import dataclass, field

from mha_classroom.checks.diagnosis import diagnose_task
from mha_classroom.checks.recognition import wrong_answer
from mha_classroom.checks.registry import find, tasks
from mha_classroom.clone import CourseError

__all__ = ["Row", "kill_matrix", "main"]

COLUMNS = ("mistakes named", "wrong rejected", "right accepted")


@dataclass
class Row:
    """One task: for each column how many came out as they should of how many tried.

    problems: a line for each that did not.
    """

    task_id: str
    counts: dict[str, tuple[int, int]] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)


def kill_matrix(tests_folder):
    """Return a Row for each task. Answers that are no known mistakes lie in tests/lessons.

    Raises: CourseError if they are not there.
    """
    right, wrong = _answers(tests_folder)
    return [_row(find(task_id), right[task_id], wrong[task_id]) for task_id in tasks()]


def main(root):
    """Print the kill matrix of the clone at `root`; return 1 if something is not as it should."""
    rows = kill_matrix(root / "tests")
    print(f"{'':34}" + "".join(f"{column:>16}" for column in COLUMNS))
    for row in rows:
        cells = ("{} of {}".format(*row.counts[column]) for column in COLUMNS)
        print(f"{row.task_id:34}" + "".join(f"{cell:>16}" for cell in cells))
    totals = (
        [sum(pair) for pair in zip(*(row.counts[c] for row in rows), strict=True)] for c in COLUMNS
    )
    print(f"{'all':34}" + "".join(f"{f'{good} of {tried}':>16}" for good, tried in totals))
    problems = [problem for row in rows for problem in row.problems]
    print("\n".join(problems or ["Everything is as it should be."]))
    return 1 if problems else 0


def _row(task, right, wrong):
    row = Row(task.id)
    named = {m.id: (diagnose_task(task, wrong_answer(task, m)).mistake, m) for m in task.mistakes}
    _count(
        row,
        COLUMNS[0],
        {
            f"{id} is named {got}": got == (mistake.twin or id)
            for id, (got, mistake) in named.items()
        },
    )
    _count(
        row,
        COLUMNS[1],
        {
            f"accepted, but wrong: {label}": not diagnose_task(task, answer).passed
            for label, answer in wrong.items()
        },
    )
    _count(
        row,
        COLUMNS[2],
        {
            f"rejected, but right: {label}": diagnose_task(task, answer).passed
            for label, answer in right.items()
        },
    )
    return row


def _count(row, column, outcomes):
    row.counts[column] = (sum(outcomes.values()), len(outcomes))
    row.problems += [f"{row.task_id}: {text}" for text, good in outcomes.items() if not good]


def _answers(folder):
    if not (folder / "lessons").is_dir():
        raise CourseError(f"The answers that checks are tried on are not in {folder / 'lessons'}.")
    sys.path.insert(0, str(folder))
    try:
        return importlib.import_module("lessons").all_answers()
    finally:
        sys.path.remove(str(folder))
