"""Make the pictures of the README, each for a light and for a dark page; `make pictures` runs this.

Two heads are drawn by the course itself. What a check says is shown by a browser, so it needs
Chromium; without it, that picture stays as it is.
"""

import io
import re
import shutil
import sys
from html import escape
from pathlib import Path

import nbformat

from mha_course.explorer import attention_map
from mha_course.explorer.heads import describe_head
from mha_course.explorer.pictures import head_svg
from mha_course.style import ink

HERE = Path(__file__).parent
GROUNDS = {"light": "#ffffff", "dark": "#0d1117"}  # those of the pages of a code host
SCALE, COLOURS = 2, 128  # pixels of the picture for each of the page, and how many colours it has

# The common first attempt at a task of lesson 4; its shapes are right.
CHECKED = (
    """def transpose_qkv(X, num_heads):
    B, L, num_hiddens = X.shape
    return X.reshape(B * num_heads, L, num_hiddens // num_heads)""",
    'check("04-transpose_qkv", transpose_qkv)',
)
TEXT = "The cat slept on the sofa because it was tired."
HEADS = ((0, 2), (5, 11))
TITLE, GAP = 48, 56  # pixels above and between the two


def main():
    for page, ground in GROUNDS.items():
        (HERE / f"heads-{page}.svg").write_text(heads(ground), "utf-8", newline="\n")
    names = ("chromium", "chromium-browser", "google-chrome")
    chromium = next(filter(None, map(shutil.which, names)), None)
    try:
        from playwright.sync_api import sync_playwright
    except ModuleNotFoundError:
        return "The picture of a check needs playwright; `make pictures` installs it."
    if chromium is None:
        return (
            "The picture of a check needs Chromium; on Debian and Ubuntu: apt-get install chromium"
        )
    notebook = checked()
    with sync_playwright() as playwright:
        flags = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]
        browser = playwright.chromium.launch(executable_path=chromium, args=flags)
        for page, ground in GROUNDS.items():
            (HERE / f"check-{page}.png").write_bytes(shown(browser, notebook, page, ground))
        browser.close()


def checked():
    """A notebook with an answer and its check, run."""
    from nbclient import NotebookClient

    first = "from mha_course.checks import check"
    cells = [nbformat.v4.new_code_cell(source) for source in (first, *CHECKED)]
    notebook = nbformat.v4.new_notebook(cells=cells)
    NotebookClient(notebook, allow_errors=True).execute()
    del notebook.cells[0]
    # That the notebook stops there is said once more below; the picture ends with the check.
    (shown,) = (o for o in notebook.cells[-1].outputs if o.output_type != "error")
    notebook.cells[-1].outputs = [shown]
    return notebook


def shown(browser, notebook, theme, ground):
    """The PNG of a notebook as JupyterLab shows it."""
    from nbconvert import HTMLExporter
    from PIL import Image

    page = browser.new_page(viewport={"width": 800, "height": 900}, device_scale_factor=SCALE)
    page.route("http*://**", lambda route: route.abort())  # formulas, which there are none of
    page.set_content(HTMLExporter(theme=theme).from_notebook_node(notebook)[0])
    page.add_style_tag(
        content=f"body {{ --jp-layout-color0: {ground}; --jp-cell-prompt-width: 0 }}"
        ".jp-InputPrompt, .jp-OutputPrompt { display: none }"
        "pre { font-family: var(--jp-code-font-family) !important }"
    )
    picture = page.locator("main").screenshot()
    page.close()
    file = io.BytesIO()
    few = Image.open(io.BytesIO(picture)).convert("RGB").quantize(COLOURS, dither=Image.Dither.NONE)
    few.save(file, "PNG", optimize=True)
    return file.getvalue()


def heads(ground):
    """The SVG of two heads of the course's BERT, side by side on one sentence."""
    found = attention_map(TEXT)
    parts, left, below = [], 0, 0
    for layer, head in HEADS:
        svg = head_svg(found, layer, head, ground=ground)
        width, height = map(int, re.findall(r' (?:width|height)="(\d+)"', svg)[:2])
        does = escape(looks(found.weights[layer, head], found.tokens))
        parts += [
            f'<text x="{left + 2}" y="17" font-weight="bold">Layer {layer}, head {head}</text>',
            f'<text x="{left + 2}" y="36">{does}</text>',
            svg.replace("<svg ", f'<svg x="{left}" y="{TITLE}" ', 1),
        ]
        left, below = left + width + GAP, TITLE + height
    width = left - GAP + 1
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {below + 1}" '
        f'width="{width}" font-family="sans-serif" font-size="14" fill="{ink(ground)}">'
        f'<rect width="100%" height="100%" fill="{ground}"/>{"".join(parts)}</svg>\n'
    )


def looks(weights, tokens):
    """What a head does, in a few words: the kind that it is, else the token that it looks at."""
    kind = describe_head(weights, tokens)
    if kind.startswith("looks"):
        return kind.split(":")[0]
    most = [tokens[place] for place in weights.argmax(dim=-1)]
    token = max(most, key=most.count)
    return f"{most.count(token)} of {len(tokens)} tokens look most at “{token}”"


if __name__ == "__main__":
    sys.exit(main())
