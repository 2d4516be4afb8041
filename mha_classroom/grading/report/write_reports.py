"""The files that grading leaves: grades.csv, results.json, run.json and the feedback pages."""

import contextlib
import csv
import json
import os
import platform
import re
import uuid
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path

from mha_classroom.grading.report.feedback_page import page
from mha_classroom.grading.report.safe_text import case_clashes, cell_text, feedback_path, number
from mha_course import __version__

__all__ = [
    "clear_drafts",
    "replacing",
    "versions",
    "write_grades",
    "write_json",
    "write_pages",
    "write_reports",
    "write_results",
    "write_run",
    "write_text",
]

FORMAT = 1
DRAFT = re.compile(r"\.[0-9a-f]{32}\.draft")
TIMES = ("handed in", "as said by", "days late", "penalty", "total after penalty")
LONGEST = 2000  # characters of a cell: a spreadsheet cuts a longer one into the next


def write_text(path, text):
    """Write UTF-8 text so that the file holds all of the old or all of the new, never a part.

    Folders that are missing are made. A file that holds this text already is not touched. Half a
    character from a broken file name becomes an escape.
    """
    with contextlib.suppress(OSError):
        if Path(path).read_bytes() == text.encode("utf-8", "backslashreplace"):
            return
    with replacing(path) as file:
        file.write(text)


def write_json(path, data):
    """Write data as JSON, keys sorted; equal data give equal files. See `write_text`.

    Raises: ValueError for NaN and infinity, TypeError for what JSON cannot hold.
    """
    write_text(path, _json(data, indent=1) + "\n")


def clear_drafts(folder):
    """Remove what a killed run left half-written in a folder and those below it.

    Only for a folder that nothing else is writing to.
    """
    for path in Path(folder).rglob(".*.draft"):
        if DRAFT.fullmatch(path.name) and not path.is_dir():
            path.unlink()


@contextlib.contextmanager
def replacing(path, encoding="utf-8"):
    """A file to write into, which takes the place of an old one as `write_text` says."""
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f".{uuid.uuid4().hex}.draft")
    try:
        # For JSON the escape of half a character is the right way to write it.
        with open(draft, "x", encoding=encoding, errors="backslashreplace", newline="") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(draft, path)
    finally:
        draft.unlink(missing_ok=True)


def _json(data, indent=None):
    return json.dumps(data, ensure_ascii=False, allow_nan=False, sort_keys=True, indent=indent)


def write_grades(path, results, points, due=False):
    """Write grades.csv: a row for each Result, a column for each task of any lesson.

    results: with decisions applied, in the order of the rows. points: {lesson: {task id: the most
    points}}. due: whether any lesson has a due time; then there are columns about that, too.
    Properties: for Excel too; no text is run as a formula.
    """
    tasks = [task for lesson in sorted(points) for task in points[lesson]]
    late = TIMES if due else ()
    names = [
        "student",
        "lesson",
        *tasks,
        "total",
        "max",
        *late,
        *(f"{t} verdict" for t in tasks),
        "notes",
    ]
    with replacing(path, encoding="utf-8-sig") as file:
        writer = csv.DictWriter(file, names, restval="", lineterminator="\n")
        writer.writerow({name: cell_text(name) for name in names})
        writer.writerows(_row(result, due) for result in results)


def _row(result, due):
    row = {"total": number(result.points), "max": number(result.max)}
    if due:
        row[TIMES[-1]] = number(result.counted)
    for task in result.tasks:
        row[task.id] = number(task.points)
        row[f"{task.id} verdict"] = task.verdict.value
    if result.late:
        late = result.late
        days = "" if late.days is None else str(late.days)
        known = (late.at, late.source, days, number(late.penalty))
        row |= dict(zip(TIMES, known, strict=False))
    notes = "; ".join(_notes(result))
    notes = notes if len(notes) <= LONGEST else notes[: LONGEST - 1] + "…"
    texts = {"student": result.student, "lesson": result.lesson, "notes": notes}
    return row | {name: cell_text(text) for name, text in texts.items()}


def _notes(result):
    if result.problem:
        yield result.problem
    for task in result.tasks:
        if task.machine is not None:
            why = f" ({task.comment})" if task.comment else ""
            points, machine = number(task.points), number(task.machine)
            yield f"{task.id}: a human gave {points}, not {machine}{why}"
        if task.carried:
            yield f"{task.id}: graded with the course's {' and '.join(task.carried)}"
    if result.late and result.late.decided:
        why = f" ({result.late.comment})" if result.late.comment else ""
        yield f"a human decided on the penalty{why}"
    yield from result.notes
    yield from (f"to look at: {text}" for text in result.human)


def write_results(path, results, seed, versions, overrides):
    """Write results.json: what the machine found, and apart from it what humans decided.

    results: Results as they were graded; only one of them is held at a time.
    Properties: no times; one line for each submission; equal input gives an equal file.
    """
    decided, made = _json(overrides.listed(), indent=1), _json(versions, indent=1)
    with replacing(path) as file:
        file.write(f'{{"format": {FORMAT},\n"overrides": {decided},\n"results": [')
        for count, result in enumerate(results):
            file.write((",\n" if count else "\n") + _json(result.as_json()))
        file.write(f'\n],\n"seed": {_json(seed)},\n"versions": {made}}}\n')


def versions(keys):
    """What results depend on. keys: {assignment: its key}."""
    found = {name: metadata.version(name) for name in ("torch", "numpy", "nbval")}
    found |= {"python": platform.python_version(), "mha-course": __version__}
    return {**found, "assignments": dict(keys)}


def write_run(path, started, ended, submissions, settings):
    """Write run.json: how long it took.

    started, ended: seconds since 1970. submissions: dicts with student, lesson, seconds and
    kernels. settings: workers, limits, isolation and whatever else the run was given.
    Raises: ValueError if it ended before it started.
    """
    if ended < started:
        raise ValueError(f"the run ended at {ended}, before it started at {started}")
    times = [datetime.fromtimestamp(x, UTC).isoformat("T", "seconds") for x in (started, ended)]
    data = {
        "format": FORMAT,
        "start": times[0],
        "end": times[1],
        "seconds": round(ended - started, 3),
        "settings": settings,
        "submissions": sorted(submissions, key=lambda one: (one["student"], one["lesson"])),
    }
    write_json(path, data)


def write_pages(out, results, titles, students, seconds=None):
    """Write the page of each result below out/feedback.

    results: with decisions applied. titles: {lesson: title}. students: all names of the class.
    seconds: how long an answer was allowed to take.
    """
    clashes = case_clashes(students)
    for result in results:
        path = feedback_path(out, result.student, result.lesson, clashes)
        write_text(path, page(result, titles.get(result.lesson, ""), seconds))


def write_reports(out, results, *, points, titles, seed, versions, settle, seconds=None):
    """Write results.json, grades.csv and the pages into the folder `out`.

    results: Results as they were graded, by student and lesson; an object that can be gone through
    more than once, such as one that reads them from disk each time. settle: a Settling. The rest
    as above.
    """
    out = Path(out)
    write_results(out / "results.json", results, seed, versions, settle.overrides)
    write_grades(out / "grades.csv", map(settle, results), points, bool(settle.deadlines))
    students = {result.student for result in results}
    write_pages(out, map(settle, results), titles, students, seconds)
