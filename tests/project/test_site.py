"""The site of the lessons: every page, link, picture and formula, with nothing from elsewhere."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from urllib.parse import unquote, urlsplit

import nbformat
import pytest
import yaml
from bs4 import BeautifulSoup

ROOT = Path(__file__).parents[2]
NOTEBOOKS = sorted([*(ROOT / "notebooks").glob("*.ipynb"), *(ROOT / "exercises").glob("*.ipynb")])
LESSONS = [path for path in NOTEBOOKS if path.parent.name == "notebooks"]
BUILD = """import sys
from pathlib import Path
from mha_classroom.commands.site import build
build(*map(Path, sys.argv[1:]))"""
every_page = pytest.mark.parametrize(
    "path", NOTEBOOKS, ids=lambda path: f"{path.parent.name}/{path.stem}"
)


def made(root, out, **environment):
    return subprocess.run(
        [sys.executable, "-c", BUILD, str(root), str(out)],
        env={**os.environ, "PYTHONPATH": str(ROOT), "SITE_REPOSITORY": "", **environment},
        **{"capture_output": True, "text": True},
    )


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    """{path in the site: what BeautifulSoup reads there}, of a site made for these tests."""
    folder = tmp_path_factory.mktemp("site") / "of the course"
    done = made(ROOT, folder)
    assert done.returncode == 0, done.stderr
    found = {}
    for path in folder.rglob("*.html"):
        name = path.relative_to(folder).as_posix()
        if not name.startswith("_static/"):
            found[name] = BeautifulSoup(path.read_text("utf-8"), "html.parser")
    found["folder"] = folder
    yield found


def page_of(pages, path):
    return pages[f"{path.parent.name}/{path.stem}.html"]


def each(pages):
    return [(name, page) for name, page in pages.items() if name != "folder"]


def cells_of(path, kind):
    cells = [cell for cell in nbformat.read(path, 4).cells if cell.cell_type == kind]
    return [cell for cell in cells if "navigation" not in cell.metadata.get("tags", ())]


def outputs_of(path):
    return [output for cell in cells_of(path, "code") for output in cell.outputs]


def words(text):
    return " ".join(text.split())


def test_each_notebook_has_a_page_and_there_are_no_others(pages):
    named = {f"{path.parent.name}/{path.stem}.html" for path in NOTEBOOKS}
    assert {name for name, _ in each(pages)} == named | {"index.html", "search.html"}


def test_every_link_inside_the_site_leads_somewhere(pages):
    folder, dead, followed = pages["folder"], [], 0
    ids = {name: {tag["id"] for tag in page.select("[id]")} for name, page in each(pages)}
    for name, page in each(pages):
        for tag in page.select("[href], [src]"):
            address = urlsplit(tag.get("href") or tag.get("src"))
            if address.scheme or address.netloc:
                continue
            followed += 1
            target = (
                (folder / name).parent / unquote(address.path) if address.path else folder / name
            )
            if not target.is_file():
                dead.append((name, tag))
            elif address.fragment and target.suffix == ".html":
                other = target.resolve().relative_to(folder.resolve()).as_posix()
                if unquote(address.fragment) not in ids[other]:
                    dead.append((name, tag))
    assert not dead and followed > 1000


def test_nothing_is_fetched_from_elsewhere(pages):
    for name, page in each(pages):
        for tag in page.select("script[src], img[src], iframe, source, link[rel=stylesheet]"):
            address = urlsplit(tag.get("src") or tag.get("href"))
            assert not address.netloc and address.scheme in ("", "data"), (name, tag)
        assert str(ROOT) not in (pages["folder"] / name).read_text("utf-8")


def test_the_first_page_has_the_lessons_with_their_minutes(pages):
    rows = pages["index.html"].select("table tbody tr")
    assert len(rows) == len(LESSONS) - 1
    for row, lesson in zip(rows, LESSONS[1:], strict=True):
        links = [link["href"] for link in row.select("a[href]")]
        assert links == [f"{room}/{lesson.stem}.html" for room in ("notebooks", "exercises")]
        minutes = re.search(r"bout (\d+) minutes", cells_of(lesson, "markdown")[0].source)[1]
        assert f", {minutes} min" in row.select("td")[1].text
        assert re.search(r", \d+ min$", row.select("td")[-1].text)


def test_pages_follow_each_other_as_the_course_does(pages):
    order, name = [], "index.html"
    while after := pages[name].select_one("a.right-next"):
        target = (pages["folder"] / name).parent / after["href"]
        name = target.resolve().relative_to(pages["folder"].resolve()).as_posix()
        order.append(name.removesuffix(".html"))
    first, *lessons = (path.stem for path in LESSONS)
    pairs = [[f"notebooks/{stem}", f"exercises/{stem}"] for stem in lessons]
    assert order == [f"notebooks/{first}", *(name for pair in pairs for name in pair)]


@every_page
def test_a_page_shows_what_its_notebook_says_and_stored(pages, path):
    shown = words(page_of(pages, path).select_one("article").get_text())
    for cell in cells_of(path, "code"):
        assert words(cell.source) in shown
    printed = [output.text for output in outputs_of(path) if output.output_type == "stream"]
    assert all(words(text) in shown for text in printed)
    for cell in cells_of(path, "markdown"):
        for sentence in re.findall(r"^[A-Z][\w ,]{30,}[.?]$", cell.source, re.MULTILINE):
            assert words(sentence) in shown


@every_page
def test_pictures_are_those_of_the_notebook_and_say_what_they_show(pages, path):
    page, folder = page_of(pages, path), pages["folder"]
    stored = [o for o in outputs_of(path) if "image/png" in o.get("data", {})]
    images = page.select("article img:not([src^='data:'])")  # others stand in what a cell gave
    assert len(images) == len(stored)
    for image, output in zip(images, stored, strict=True):
        assert image["alt"] == output.metadata["image/png"]["alt"] and len(image["alt"]) > 30
        assert (folder / path.parent.name / image["src"]).is_file()
    drawn = [o for o in outputs_of(path) if "<svg" in o.get("data", {}).get("text/html", "")]
    drawings = page.select("article svg[role=img]")
    assert len(drawings) == len(drawn)
    assert all(len(drawing["aria-label"]) > 30 for drawing in drawings)


@every_page
def test_formulas_are_drawn_and_answers_stay_folded(pages, path):
    page = page_of(pages, path)
    source = "\n".join(cell.source for cell in cells_of(path, "markdown"))
    assert len(page.select("article math")) == source.count("$$") / 2
    assert "$$" not in page.select_one("article").get_text()
    folded = page.select("article details")
    assert len(folded) == source.count("<details>")
    assert all(tag.summary and not tag.has_attr("open") for tag in folded)


@every_page
def test_the_notebook_can_be_downloaded_as_it_is(pages, path):
    (link,) = page_of(pages, path).select("a.btn-download-source-button")
    given = pages["folder"] / path.parent.name / unquote(link["href"])
    assert given.read_bytes() == path.read_bytes()


def test_with_the_address_of_the_repository_pages_link_to_it(root, tmp_path):
    done = made(root, tmp_path / "out", SITE_REPOSITORY="https://example.org/who/course")
    assert done.returncode == 0, done.stderr
    page = BeautifulSoup((tmp_path / "out" / "index.html").read_text("utf-8"), "html.parser")
    assert page.select('a[href="https://example.org/who/course"]')
    assert "git clone https://example.org/who/course mha-course" in page.get_text()


@pytest.fixture
def root(tmp_path):
    """A course of one page, and a lesson with one cell."""
    place = tmp_path / "course"
    for folder in ("notebooks", "exercises"):
        (place / folder).mkdir(parents=True)
    (place / "docs").symlink_to(ROOT / "docs")
    text = nbformat.v4.new_notebook(cells=[nbformat.v4.new_markdown_cell("# Start\n\nHere.")])
    for name in ("notebooks/00_start_here.ipynb", "notebooks/01_attention_math.ipynb"):
        nbformat.write(text, place / name)
    nbformat.write(text, place / "exercises/01_attention_math.ipynb")
    return place


@pytest.mark.parametrize(
    ("source", "metadata", "said"),
    [
        ("[gone](gone.ipynb)", None, "gone.ipynb"),
        ("$$\\nosuchcommand{x}$$", None, "nosuchcommand"),
        ("Text", {}, "notebooks/01_attention_math.ipynb: not one picture that says what it shows"),
    ],
)
def test_what_is_wrong_ends_the_build(root, tmp_path, source, metadata, said):
    cells = [nbformat.v4.new_markdown_cell(f"# Start\n\n{source}")]
    if metadata is not None:
        picture = {"image/png": "aGVsbG8="}
        output = nbformat.v4.new_output("display_data", picture, metadata=metadata)
        cells.append(nbformat.v4.new_code_cell("draw()", outputs=[output]))
    nbformat.write(
        nbformat.v4.new_notebook(cells=cells), root / "notebooks/01_attention_math.ipynb"
    )
    done = made(root, tmp_path / "out")
    assert done.returncode != 0 and said in done.stderr


def test_the_workflow_publishes_what_make_site_makes():
    workflow = yaml.safe_load((ROOT / ".github/workflows/site.yml").read_text("utf-8"))
    assert workflow[True] == {"push": {"branches": ["main"]}, "workflow_dispatch": None}
    steps = workflow["jobs"]["publish"]["steps"]
    commands = [step["run"] for step in steps if "run" in step]
    assert commands == ['python -m pip install -c constraints.txt -e ".[site]"', "mha-course site"]
    (upload,) = [step for step in steps if "upload-pages-artifact" in step.get("uses", "")]
    assert upload["with"]["path"] == "build/site"
    assert "$(COURSE) site" in (ROOT / "Makefile").read_text("utf-8")
    assert json.dumps(workflow["permissions"], sort_keys=True) == (
        '{"contents": "read", "id-token": "write", "pages": "write"}'
    )
