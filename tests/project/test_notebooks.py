"""What holds for every notebook of the course: structure, limits, and the unsolved exercises."""

import math
import re
import statistics
from pathlib import Path

import nbformat
import pytest
from jupyter_client.manager import start_new_kernel
from nbclient import NotebookClient

from mha_classroom import exercises as release
from mha_classroom import navigation
from mha_classroom.checks import tasks

ROOT = Path(__file__).parents[2]
LESSONS = sorted((ROOT / "notebooks").glob("*.ipynb"))
SOLUTIONS = sorted((ROOT / "solutions").glob("*.ipynb"))
EXERCISES = sorted((ROOT / "exercises").glob("*.ipynb"))
every_notebook = pytest.mark.parametrize(
    "path", LESSONS + SOLUTIONS + EXERCISES, ids=lambda p: f"{p.parent.name}/{p.stem}"
)
executed = pytest.mark.parametrize(
    "path", LESSONS + SOLUTIONS, ids=lambda p: f"{p.parent.name}/{p.stem}"
)
lessons = pytest.mark.parametrize("path", LESSONS[1:], ids=lambda p: p.stem)
drawn = pytest.mark.parametrize("path", LESSONS, ids=lambda p: p.stem)
exercises = pytest.mark.parametrize("path", EXERCISES, ids=lambda p: p.stem)


def read(path):
    return nbformat.read(path, as_version=4)


def code_cells(path):
    return [cell for cell in read(path).cells if cell.cell_type == "code"]


def grading(cell):
    return cell.metadata.get("nbgrader", {})


def own_cells(path):
    """Without the links from notebook to notebook, which are made."""
    return [cell for cell in read(path).cells if not navigation.is_made(cell)]


def sentences(path):
    return [cell.source for cell in own_cells(path) if cell.cell_type == "markdown"]


def count_lines(cell):
    return sum(bool(line.strip()) for line in cell.source.split("\n"))


def test_every_lesson_but_the_first_page_has_its_solution_and_exercise():
    names = [path.name for path in LESSONS]
    assert names[0] == "00_start_here.ipynb"
    assert names[1:] == [path.name for path in SOLUTIONS] == [path.name for path in EXERCISES]
    assert len(names) >= 6


@executed
def test_every_cell_was_run_in_order_and_none_failed_unless_it_means_to(path):
    cells = code_cells(path)
    assert [cell.execution_count for cell in cells] == list(range(1, len(cells) + 1))
    for cell in cells:
        failed = any(output.output_type == "error" for output in cell.outputs)
        assert failed == ("raises-exception" in cell.metadata.get("tags", []))


@every_notebook
def test_no_output_differs_between_machines(path):
    for cell in code_cells(path):
        text = str(cell.outputs)
        assert not re.search(r"0x[0-9a-f]{6,}", text)
        assert "/site-packages/" not in text and "\\site-packages\\" not in text
        assert not re.search(r"/(home|Users|work|tmp|root)/", text)


@every_notebook
def test_the_notebook_is_in_canonical_form(path):
    notebook = read(path)
    ids = [cell.id for cell in notebook.cells]
    assert (notebook.nbformat, notebook.nbformat_minor) == (4, 5)
    assert len(set(ids)) == len(ids)
    assert notebook.metadata.kernelspec.name == "python3"
    assert all("execution" not in cell.metadata for cell in notebook.cells)


@executed
def test_pictures_say_what_they_show(path):
    for output in (output for cell in code_cells(path) for output in cell.outputs):
        if "image/png" in output.get("data", {}):
            assert len(output.metadata["image/png"]["alt"]) > 30, "run the notebook again"


@every_notebook
def test_links_between_notebooks_lead_somewhere(path):
    text = "\n".join(c.source for c in read(path).cells if c.cell_type == "markdown")
    links = [link for link in re.findall(r"\]\(([^)]+)\)", text) if "://" not in link]
    assert links
    for link in links:
        assert (path.parent / link.split("#")[0]).exists(), link
    assert "![" not in text and "<img" not in text


@lessons
def test_a_lesson_keeps_the_limits_of_the_house_style(path):
    cells, code = own_cells(path), code_cells(path)
    lines = [count_lines(cell) for cell in code]
    # Of a heading or a table the signs are no words.
    words = [len(re.findall(r"\S*\w\S*", text)) for text in sentences(path)]
    assert 25 <= len(cells) <= 60
    assert statistics.median(lines) <= 8 and max(lines) <= 25
    assert statistics.median(words) <= 95 and max(words) <= 150
    assert lines[0] <= 8
    assert sum("assert" in cell.source for cell in code) >= len(code) // 3
    assert "raises-exception" in str([cell.metadata for cell in code])
    pictures = [o for cell in code for o in cell.outputs if "image/png" in o.get("data", {})]
    assert 1 <= len(pictures) <= 6
    assert 8 <= "\n".join(sentences(path)).count("<details>") <= 30


@lessons
def test_a_lesson_says_what_it_is_for_and_where_it_leads(path):
    text = "\n".join(sentences(path))
    number, stem = int(path.name[:2]), path.name
    assert text.startswith(f"# {number}. ")
    assert "you can" in text and "minutes" in text
    assert f"(../exercises/{stem})" in text
    assert f"{number}.1" in text
    for part in ("| symbol |", "## Check yourself", "## What to remember", "*Sources:*"):
        assert part in text, part


@lessons
def test_a_lesson_takes_the_minutes_that_it_says(path):
    """A minute for eighty words, one and a half for each cell, rounded up to five."""
    words = sum(len(text.split()) for text in sentences(path))
    minutes = words / 80 + 1.5 * len(code_cells(path))
    said = re.findall(r"(?:About|about) (\d+) minutes", sentences(path)[0])
    assert said == [str(5 * math.ceil(minutes / 5))], (words, len(code_cells(path)))


@drawn
def test_a_lesson_opens_with_a_drawing_of_its_own_sizes(path):
    outputs = [output for cell in code_cells(path)[:3] for output in cell.outputs]
    drawn = [
        o.data["text/html"] for o in outputs if "<svg" in o.get("data", {}).get("text/html", "")
    ]
    assert drawn, "no drawing in the first cells"
    table = re.findall(r"^\| *([^|]+?) *\|(.*)\|$", "\n".join(sentences(path)), re.MULTILINE)
    sizes = {}
    for symbols, row in table:
        for symbol in symbols.split(", "):
            sizes.setdefault(symbol, re.findall(r"\d+", row.replace(",", "")))
    for svg in drawn:
        for pair in re.search('data-sizes="([^"]*)"', svg)[1].split():
            symbol, size = pair.split("=")
            assert size in sizes.get(symbol, []), f"{pair} is not in the table of notation"


@pytest.fixture(scope="module")
def made():
    return release.make(ROOT)


@every_notebook
def test_the_notebooks_are_what_the_release_command_makes(path, made):
    assert made[path] == path.read_text(encoding="utf-8")


def links_of(path, place):
    links = re.findall(r"\[([^]]+)\]\(([^)]+)\)", read(path).cells[place].source)
    return {text: (path.parent / link).resolve() for text, link in links}


def test_links_lead_through_the_whole_course_and_back():
    """From the start page on, each notebook names the next, and all name the start page."""
    start = LESSONS[0]
    assert LESSONS[1] in links_of(start, -1).values()
    for number, (lesson, exercise) in enumerate(zip(LESSONS[1:], EXERCISES, strict=True), 1):
        solution, more = SOLUTIONS[number - 1], number < len(EXERCISES)
        for path in (lesson, exercise, solution):
            assert links_of(path, 1) == links_of(path, -1), "at the top and at the end"
            assert links_of(path, 1)["Start page"] == start
        assert links_of(lesson, 1)[f"Exercises {number}"] == exercise
        assert lesson in links_of(exercise, 1).values()
        assert {lesson, exercise} < set(links_of(solution, 1).values())
        for path, folder in ((lesson, LESSONS[1:]), (exercise, LESSONS[1:])):
            arrows = [p for text, p in links_of(path, 1).items() if text.endswith("→")]
            assert arrows == ([folder[number]] if more else [])
        back = [p for text, p in links_of(lesson, 1).items() if text.startswith("←")]
        assert back == ([LESSONS[number - 1]] if number > 1 else [])


@exercises
def test_only_the_links_of_a_solution_lead_to_solutions(path):
    """They are not in work/, and an instructor may leave them out."""
    for folder in ("notebooks", "exercises"):
        assert "](../solutions/" not in str(read(ROOT / folder / path.name).cells)


@exercises
def test_an_exercise_ends_with_progress(path):
    cell = read(path).cells[-2]
    assert cell.cell_type == "code" and cell.source.endswith("\nprogress()")


@exercises
def test_every_task_of_the_lesson_is_asked_and_checked(path):
    ids = [task for task in tasks() if task.startswith(path.name[:2])]
    cells = code_cells(path)
    solved = [grading(c).grade_id for c in cells if grading(c).get("solution")]
    graded = [c for c in cells if grading(c).get("grade")]
    assert solved == ids
    assert [grading(c).grade_id for c in graded] == [f"check-{task}" for task in ids]
    for task, cell in zip(ids, graded, strict=True):
        assert cell.source == f'check("{task}", {task.split("-", 1)[1]})'
        assert grading(cell).points > 0 and grading(cell).locked
    text = "\n".join(sentences(path))
    for number in range(1, len(ids) + 1):
        assert f"## {int(path.name[:2])}.{number} " in text
    heads = re.findall(
        r"Difficulty ([●○]{4}) · importance ([●○]{4}) · (\d+) minutes · (\d+) p", text
    )
    assert len(heads) == len(ids)
    assert [int(points) for *_, points in heads] == [grading(c).points for c in graded]
    assert text.count("<summary>Hint 1</summary>") == len(ids)
    assert text.count("<summary>Hint 2</summary>") == len(ids)


@pytest.fixture(scope="module")
def kernel():
    """One kernel for all unsolved exercises: each would import torch anew."""
    manager, client = start_new_kernel(kernel_name="python3", cwd=EXERCISES[0].parent)
    yield manager, client
    client.stop_channels()
    manager.shutdown_kernel(now=True)


@exercises
def test_in_the_unsolved_exercise_every_check_fails_and_nothing_else(path, kernel):
    manager, client = kernel
    notebook = read(path)
    client.execute_interactive("%reset -f")
    running = NotebookClient(notebook, km=manager, allow_errors=True, timeout=60)
    running.kc = client
    running.execute(reset_kc=False)
    for cell in notebook.cells:
        if cell.cell_type != "code":
            continue
        errors = [output for output in cell.outputs if output.output_type == "error"]
        if not grading(cell).get("grade"):
            assert not errors, cell.source
            continue
        name = grading(cell).grade_id.split("-", 2)[2]
        assert [error.ename for error in errors] == ["CheckFailed"]
        assert f"{name} is not written yet" in errors[0].evalue


@pytest.mark.parametrize("path", SOLUTIONS, ids=lambda p: p.stem)
def test_in_the_solution_every_check_passes(path):
    for cell in code_cells(path):
        if grading(cell).get("grade"):
            shown = "".join(output.data["text/plain"] for output in cell.outputs)
            assert shown.startswith("✓ "), cell.source


def minutes_of(path):
    return re.search(r"[Aa]bout (\d+) minutes", sentences(path)[0])[1]


def test_start_page_and_readme_list_the_lessons():
    start, readme = "\n".join(sentences(LESSONS[0])), (ROOT / "README.md").read_text("utf-8")
    for lesson, exercise in zip(LESSONS[1:], EXERCISES, strict=True):
        minutes = minutes_of(lesson), minutes_of(exercise)
        row = rf"\({lesson.name}\), {minutes[0]} min .*/{exercise.name}\), {minutes[1]} min \|"
        assert re.search(row, start), lesson
        times = re.escape(" + ".join(minutes))
        assert re.search(rf"\(notebooks/{lesson.name}\) .*\| {times} \|", readme), times


def test_the_start_page_says_what_to_do_first_and_where_help_is():
    first, cells = read(LESSONS[0]).cells[0].source, read(LESSONS[0]).cells
    assert re.search(r"^1\. .*Shift \+ Enter", first, re.MULTILINE)
    assert LESSONS[1].name in first and f"../exercises/{EXERCISES[0].name}" in first
    ids = [cell.id for cell in cells]
    assert ids.index("map") < ids.index("progress") < ids.index("help") < 10
