"""The site of the lessons, made by Sphinx from the notebooks with the outputs stored in them."""

from __future__ import annotations

import os
import re
import shutil
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory

from mha_classroom.clone import CourseError, find_root, install_command, stems

__all__ = ["build", "read_notebook"]

ROOMS = ("notebooks", "exercises")
LINK = re.compile(r'(<a href="[^":]+)\.ipynb(?:#([^"]*))?"')  # to a notebook, in what a cell gave
LESSON = re.compile(r"\]\((?=\d)")  # a link to a lesson, from its own folder
LINE = re.compile(r"^\| *\d+ \|.*$", re.MULTILINE)  # a lesson of the map on the first page
WAYS = {
    True: "git clone {address} mha-course && cd mha-course\nmake lab",
    False: "make lab    # in a clone of the course",
}


def build(root, out=None):
    """Make the site anew in the folder `out`, by default build/site; returns its first page.

    Where SITE_REPOSITORY holds the address of the repository, pages link to it.
    Raises: CourseError if Sphinx is missing, or something is wrong with a notebook.
    """
    if None in map(find_spec, ("myst_nb", "sphinx_book_theme", "latex2mathml")):
        raise CourseError(f"The site needs more. This installs it:\n{install_command('site')}")
    from sphinx.cmd.build import main

    out = out or root / "build" / "site"
    shutil.rmtree(out, ignore_errors=True)
    with TemporaryDirectory() as folder:
        source = Path(folder) / "pages"
        for path in (path for room in ROOMS for path in sorted((root / room).glob("*.ipynb"))):
            try:
                read_notebook(path.read_text("utf-8"))
            except ValueError as error:
                raise CourseError(f"{path.parent.name}/{path.name}: {error}") from error
            (source / path.parent.name).mkdir(parents=True, exist_ok=True)
            shutil.copy(path, source / path.parent.name)
        (source / "index.md").write_text(_first_page(root), "utf-8")
        words = ["-q", "-W", "--keep-going", "-c", root / "docs" / "site", "-d", f"{folder}/read"]
        if main([*map(str, words), str(source), str(out)]):
            raise CourseError("The site was not made; what is said above is why.")
    return out / "index.html"


def read_notebook(text):
    """A notebook as MyST-NB is to show it: pictures say what they show, links lead to pages.

    Raises: ValueError if a picture was stored without words, or a cell has more than one picture.
    """
    import nbformat

    notebook = nbformat.reads(text, as_version=4)
    # The pages have links of their own to what comes before and after.
    notebook.cells = [c for c in notebook.cells if "navigation" not in c.metadata.get("tags", ())]
    for cell in notebook.cells:
        outputs = [output for output in cell.get("outputs", ()) if "data" in output]
        for output in outputs:
            if "text/html" in output.data:
                output.data["text/html"] = LINK.sub(_page_link, output.data["text/html"])
        words = [
            o.metadata.get("image/png", {}).get("alt") for o in outputs if "image/png" in o.data
        ]
        if len(words) > 1 or None in words:
            start = cell.source.split("\n")[0]
            raise ValueError(f"not one picture that says what it shows: the cell {start!r}")
        if words:
            cell.metadata["mystnb"] = {"image": {"alt": words[0]}}
    return notebook


def _page_link(link):
    from docutils.nodes import make_id

    section = link[2] or ""
    if section.startswith("cell-id="):  # as a check names it, for JupyterLab
        section = _heading(link[1].rpartition("/")[2], section.removeprefix("cell-id="))
    return f'{link[1]}.html{"#" + make_id(section) if section else ""}"'


def _heading(lesson, cell_id):
    """The heading of the cell of a lesson that has this id, "" if there is none."""
    import nbformat

    cells = nbformat.read(find_root() / "notebooks" / f"{lesson}.ipynb", as_version=4).cells
    found = next((cell.source for cell in cells if cell.id == cell_id), "")
    heading = re.search(r"^#+ (.*)$", found, re.MULTILINE)
    return heading[1] if heading else ""


def _first_page(root):
    import nbformat

    names = stems(root, ROOMS)
    start = nbformat.read(root / "notebooks" / f"{names[0]}.ipynb", as_version=4)
    lines = LINE.findall("\n".join(cell.source for cell in start.cells))
    pages = [f"notebooks/{names[0]}"]
    for name in names[1:]:
        pages += [f"notebooks/{name}", f"exercises/{name}"]
    address = os.environ.get("SITE_REPOSITORY", "")
    text = (root / "docs" / "site" / "index.md").read_text("utf-8")
    for word, filling in {
        "lessons": LESSON.sub("](notebooks/", "\n".join(lines)).replace("](../", "]("),
        "pages": "\n".join(pages),
        "ways": WAYS[bool(address)].format(address=address),
    }.items():
        text = text.replace(f"<!-- {word} -->", filling)
    return text
