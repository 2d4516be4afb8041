"""The cells that lead on: links to what comes before and after, the map, `progress()`.

They are made from the notebooks that there are, so that no one has to keep them in step. In work/
and in the repository the same links lead to the same places; solutions are only in the latter, so
only solutions link to them.
"""

import re
from dataclasses import dataclass
from pathlib import Path

import nbformat
from nbformat.v4 import new_code_cell, new_markdown_cell

__all__ = ["PROGRESS", "Lesson", "is_made", "lead", "lessons"]

TAG = "navigation"
START = "00_start_here"
MAP = "map"
TITLE = re.compile(r"# (\d+)\. (.+)\n+\*\*(.+)\*\*")
MINUTES = re.compile(r"[Aa]bout (\d+) minutes")
TASKS = re.compile(r"(\w+) tasks? for ")
PROGRESS = "from mha_course.checks import progress\n\nprogress()"


@dataclass(frozen=True)
class Lesson:
    """What the map says of a lesson. minutes: of the lesson, of its exercises. tasks: "Eight"."""

    stem: str
    number: str
    title: str
    question: str
    minutes: tuple[str, str]
    tasks: str


def lessons(root, solutions=None):
    """{stem: Lesson} of the lessons in root/notebooks that have a solution, in order.

    solutions: {stem: notebook} of those that are not saved yet.
    """
    found = {}
    for path in sorted(Path(root, "notebooks").glob("*.ipynb")):
        solution = (solutions or {}).get(path.stem) or _read(root, "solutions", path.stem)
        lesson = _read(root, "notebooks", path.stem).cells[0].source
        title = TITLE.match(lesson)
        if solution is None or title is None:
            continue
        first = solution.cells[0].source
        minutes = tuple(_found(MINUTES, text) for text in (lesson, first))
        found[path.stem] = Lesson(path.stem, *title.groups(), minutes, _found(TASKS, first))
    return found


def lead(notebook, folder, stem, known):
    """Make these cells of a notebook anew, in place; return the notebook.

    folder: "notebooks", "exercises" or "solutions". known: what `lessons` returns.
    Properties: the other cells stay as they are. The links stand below the title and at the end,
        above them in exercises `progress()`; the start page has the map.
    """
    if stem == START and folder == "notebooks":
        for cell in notebook.cells:
            if cell.id == MAP:
                cell.source = _map(known)
        return notebook
    notebook.cells = [cell for cell in notebook.cells if not is_made(cell)]
    if folder == "exercises":
        notebook.cells.append(new_code_cell(PROGRESS, id="progress", metadata={"tags": [TAG]}))
    if stem in known:
        links = " · ".join(_links(folder, stem, known))
        for place, name in ((1, "top"), (len(notebook.cells) + 1, "end")):
            cell = new_markdown_cell(links, id=f"{TAG}-{name}", metadata={"tags": [TAG]})
            notebook.cells.insert(place, cell)
    return notebook


def is_made(cell):
    """Whether a cell is one of those that `lead` puts in."""
    return TAG in cell.metadata.get("tags", ())


def _links(folder, stem, known):
    """Back, to the start, to what belongs to this notebook, on."""
    stems = list(known)
    here = stems.index(stem)
    before = known[stems[here - 1]] if here else None
    after = known[stems[here + 1]] if here + 1 < len(stems) else None
    this = known[stem]
    up = "" if folder == "notebooks" else "../notebooks/"
    start = f"[Start page]({up}{START}.ipynb)"
    exercises = f"[Exercises {this.number}](../exercises/{stem}.ipynb)"
    lesson = f"Lesson {this.number}: {this.title}]({up}{stem}.ipynb)"
    if folder == "notebooks":
        back = f"[← {before.number}. {before.title}]({before.stem}.ipynb)" if before else None
        on = f"[{after.number}. {after.title} →]({after.stem}.ipynb)" if after else None
        links = [back, start, exercises, on]
    elif folder == "exercises":
        on = f"[Lesson {after.number}: {after.title} →]({up}{after.stem}.ipynb)" if after else None
        links = [f"[← {lesson}", start, on]
    else:
        back = f"[← Solutions {before.number}]({before.stem}.ipynb)" if before else None
        on = f"[Solutions {after.number} →]({after.stem}.ipynb)" if after else None
        links = [back, start, f"[{lesson}", exercises, on]
    return [link for link in links if link]


def _map(known):
    rows = [
        f"| {one.number} | [{one.title}]({one.stem}.ipynb), {one.minutes[0]} min | {one.question} "
        f"| [{one.tasks.lower()} tasks](../exercises/{one.stem}.ipynb), {one.minutes[1]} min |"
        for one in known.values()
    ]
    head = "| | lesson | the question it answers | exercises |"
    return "\n".join(["## The map", "", head, "|---|---|---|---|", *rows])


def _found(pattern, text):
    found = pattern.search(text)
    return found[1] if found else ""


def _read(root, folder, stem):
    path = Path(root, folder, f"{stem}.ipynb")
    return nbformat.read(path, as_version=4) if path.is_file() else None
