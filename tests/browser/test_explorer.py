"""The explorer in JupyterLab and on its page."""

import json
import re

import pytest
from accessibility import serious
from learner import Learner, ask, close_everything, served

pytestmark = [pytest.mark.browser, pytest.mark.xdist_group("explorer")]
TEXT = "The children played in the garden until it got dark."
NUM_CELLS = 3
NOTEBOOK = {
    "nbformat": 4,
    "nbformat_minor": 5,
    "metadata": {"kernelspec": {"name": "python3", "display_name": "Python 3"}},
    "cells": [
        {
            **{"cell_type": "code", "id": "explore", "metadata": {}, "outputs": []},
            "execution_count": None,
            "source": f'from mha_course.explorer import explore\n\nexplore("{TEXT}")',
        },
        *(
            {"cell_type": "markdown", "id": f"text{place}", "metadata": {}, "source": "A text."}
            for place in range(1, NUM_CELLS)
        ),
    ],
}


def pressed(tab):
    """The name of the head that is shown large."""
    return tab.locator(".heads button[aria-pressed=true]").get_attribute("aria-label")


def expect(tab, selector, words):
    tab.wait_for_selector(f"{selector}:has-text({json.dumps(words, ensure_ascii=False)})")


def numbers(tab, side):
    """The numbers beside the queries or the keys."""
    return [float(text) for text in tab.locator(f".{side} .number").all_inner_texts()]


# The smallest contrast of a number with its cell, over all weights (WCAG 2, relative luminance).
CONTRAST = """
cell => {
  const paint = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
  const luminance = (colour) => {
    paint.fillStyle = colour;
    paint.fillRect(0, 0, 1, 1);
    const [r, g, b] = [...paint.getImageData(0, 0, 1, 1).data].map((part) => part / 255)
      .map((part) => part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4);
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  let smallest = 21;
  for (let share = 0; share <= 100; share++) {
    cell.style.setProperty("--share", `${share}%`);
    const style = getComputedStyle(cell);
    const both = [luminance(style.color), luminance(style.backgroundColor)].sort((a, b) => a - b);
    smallest = Math.min(smallest, (both[1] + 0.05) / (both[0] + 0.05));
  }
  return [smallest, luminance(getComputedStyle(cell.closest(".mha-explorer")).backgroundColor)];
}
"""


@pytest.fixture(scope="module")
def found():
    """What the model attends to in TEXT, to compare with what the browser says."""
    from mha_course.explorer import attention_map

    return attention_map(TEXT)


@pytest.mark.parametrize("theme", ["JupyterLab Light", "JupyterLab Dark"])
def test_the_widget_in_jupyterlab(course, new_tab, found, tmp_path, theme):
    close_everything(course.address)
    file = course.work / "try.ipynb"
    file.write_text(json.dumps(NOTEBOOK), "utf-8")
    themes = "/lab/api/settings/@jupyterlab/apputils-extension:themes"
    ask(course.address, themes, {"raw": json.dumps({"theme": theme})}, "PUT")
    tab = new_tab(height=2000)
    learner = Learner(course, tab)
    learner.open("try.ipynb")
    learner.run_all(cells=1)
    tab.wait_for_selector(".mha-explorer .heads button")

    # It opens on the head that looks most at other words; the saved picture is not in the way.
    assert pressed(tab) == "layer 0, head 2, looks at the token before: 1.00 of its attention"
    assert tab.locator(".mha-picture").count() == 1 and not tab.is_visible(".mha-picture")
    tab.screenshot(path=tmp_path / "widget.png")

    # Click a small head, then move on with the keys; JupyterLab does not take them.
    tab.get_by_role("button", name="layer 1, head 4,").click()
    expect(tab, "h3", "Layer 1, head 4")
    tab.keyboard.press("ArrowRight")
    tab.keyboard.press("ArrowDown")
    tab.keyboard.press("ArrowLeft")
    tab.keyboard.press("b")  # would add a cell
    expect(tab, "h3", "Layer 2, head 4")
    assert tab.evaluate("document.activeElement.getAttribute('aria-pressed')") == "true"
    assert tab.locator(".jp-Notebook .jp-Cell").count() == NUM_CELLS
    weights = found.weights[2, 4]

    # Point at a query, then at a key: lines and numbers are those of the model.
    tab.locator(".queries button").nth(3).hover()
    expect(tab, ".told", "The query “played” attends to: ")
    assert numbers(tab, "keys") == pytest.approx(weights[3].tolist(), abs=6e-4)
    for line in tab.locator(".lines path").all():
        query, key = map(int, line.get_attribute("data-pair").split())
        width = float(line.get_attribute("stroke-width"))
        assert query == 3 and width == pytest.approx(max(0.3, 7 * weights[3, key].item()), abs=1e-3)
    tab.locator(".keys button").nth(5).hover()
    expect(tab, ".told", "To the key “the” attend: ")
    assert numbers(tab, "queries") == pytest.approx(weights[:, 5].tolist(), abs=6e-4)
    tab.locator(".mha-explorer .asked").hover()
    expect(tab, ".told", "Point at a token")
    assert tab.locator(".lines path").count() == (weights >= 0.02).sum().item()

    # The same with the keyboard alone, and on to one weight step by step.
    tab.locator(".queries button").first.focus()
    tab.keyboard.press("ArrowDown")
    tab.keyboard.press("ArrowDown")
    expect(tab, ".told", "The query “children” attends to: ")
    tab.keyboard.press("ArrowRight")
    tab.keyboard.press("ArrowDown")
    expect(tab, ".told", "To the key “played” attend: ")
    tab.keyboard.press("Enter")
    tab.get_by_label("Query", exact=True).select_option("6")
    score = (found.queries[2, 4, 6] @ found.keys[2, 4, 3]).item()
    expect(tab, ".sums", f"q · k = {score:.3f}")
    expect(tab, ".sums", f"the score is {score / 32**0.5:.3f}")
    expect(tab, ".sums", f"the weight: {weights[6, 3].item():.4f}")
    tab.get_by_text("All 32 products as a table").focus()
    tab.keyboard.press("Enter")
    products = tab.locator("details[open] td:nth-child(4)").all_inner_texts()
    assert len(products) == 32
    assert sum(map(float, products)) == pytest.approx(score, abs=0.02)
    tab.locator(".weights tbody tr").nth(9).locator("td").nth(2).click()
    expect(tab, ".sums", f"the weight: {weights[9, 2].item():.4f}")
    cells = tab.locator(".weights tbody td").all_inner_texts()
    assert list(map(float, cells)) == pytest.approx(weights.flatten().tolist(), abs=6e-3)
    smallest, ground = tab.locator(".weights tbody td").first.evaluate(CONTRAST)
    assert smallest >= 4.5 and (ground > 0.8 if theme.endswith("Light") else ground < 0.1)

    # Other texts; the chosen head stays.
    text = tab.get_by_label("Text", exact=True)
    text.fill("Cats <b>sleep</b> all day.")
    text.press("Enter")
    expect(tab, ".queries", "sleep")
    assert tab.locator(".queries button").count() == 14
    assert pressed(tab).startswith("layer 2, head 4,")
    assert tab.locator(".mha-explorer b >> text=sleep").count() == 0
    text.press("ControlOrMeta+A")  # the field is still the one with the focus
    tab.keyboard.type(" ")
    tab.keyboard.press("Enter")
    expect(tab, ".mha-explorer [role=alert]", "text is empty")
    text.fill("word " * 600)
    text.press("Enter")
    expect(tab, ".mha-explorer [role=status]", "the model reads the first 512")
    tab.get_by_label("Drawn from token").press("ArrowRight")
    expect(tab, ".mha-explorer [role=status]", "Tokens 1 to 48 of 512 are drawn")
    text.fill("注意力机制是什么？我喜欢猫。")
    text.press("Enter")
    expect(tab, ".mha-explorer [role=status]", "The model of the course reads English.")

    # The picture that is saved is drawn after the component has its new text.
    tab.wait_for_selector(".mha-picture img[alt*='[UNK]']", state="attached")

    # The next day: the kernel is gone, the notebook was saved, from within the explorer.
    tab.locator(".heads button[aria-pressed=true]").focus()
    tab.keyboard.press("ControlOrMeta+s")
    tab.wait_for_function("() => !document.querySelector('.lm-TabBar-tab.jp-mod-dirty')")
    assert "[UNK]" in file.read_text("utf-8")
    tab.goto("about:blank")
    close_everything(course.address)
    learner.open("try.ipynb")
    gone = tab.locator("text=model not found")
    gone.wait_for(state="attached")
    assert tab.locator(".mha-picture img").is_visible() and not gone.is_visible()
    expect(tab, ".mha-picture", "Layer 2, head 4 ")
    tab.screenshot(path=tmp_path / "next-day.png")
    assert tab.errors == []
    assert tab.hosts == {"localhost"}


def test_the_page(new_tab, tmp_path):
    tab = new_tab(height=2000)
    words = ["explore", "--server.headless=true"]
    with served(tmp_path, words, {}, "/_stcore/health", tmp_path / "log") as address:
        tab.goto(address)
        tab.wait_for_selector(".mha-explorer .heads button")
        assert pressed(tab).startswith("layer 0, head 2, looks at the token before")
        tab.wait_for_selector("text=Take layer 0, head 2 along:")
        tab.get_by_role("button", name="layer 3, head 4,").click()
        expect(tab, "h3", "Layer 3, head 4")
        tab.wait_for_selector("text=Take layer 3, head 4 along:")
        tab.keyboard.press("ArrowRight")
        tab.wait_for_selector("text=Take layer 3, head 5 along:")
        assert pressed(tab).startswith("layer 3, head 5,")
        tab.locator(".queries button").nth(3).hover()
        expect(tab, ".told", "The query “played” attends to: ")
        assert sum(numbers(tab, "keys")) == pytest.approx(1, abs=0.01)
        tab.locator(".queries button").first.focus()
        tab.keyboard.press("ArrowDown")
        tab.keyboard.press("Enter")
        expect(tab, ".queries button[aria-pressed=true]", "the")
        expect(tab, ".mha-explorer", "How much “the” attends to")
        tab.screenshot(path=tmp_path / "page.png")
        for scheme in ("light", "dark"):
            tab.emulate_media(color_scheme=scheme)
            tab.reload()
            tab.wait_for_selector("text=Take layer 0, head 2 along:")
            assert serious(tab) == []
            smallest, ground = tab.locator(".weights tbody td").first.evaluate(CONTRAST)
            assert smallest >= 4.5 and (ground > 0.8 if scheme == "light" else ground < 0.1)
        tab.get_by_role("button", name="layer 3, head 5,").click()
        tab.wait_for_selector("text=Take layer 3, head 5 along:")

        text = tab.get_by_label("Text", exact=True)
        text.fill("Cats <b>sleep</b> all $day$ and **night**.")
        text.press("Control+Enter")
        expect(tab, ".queries", "sleep")
        assert tab.locator(".queries button").count() == 22
        assert tab.locator("b >> text=sleep").count() == 0
        other = tab.get_by_label(re.compile("Second text"))
        other.fill("Dogs do not.")
        other.press("Enter")
        expect(tab, ".queries", "dogs")
        # The heads are drawn before the buttons below them know the new text.
        tab.wait_for_selector("[data-test-script-state=notRunning]")
        assert pressed(tab).startswith("layer 3, head 5,")
        with tab.expect_download() as download:
            tab.get_by_text("(CSV)").click()
        assert b"'-" not in download.value.path().read_bytes()
        assert download.value.suggested_filename == "attention-layer3-head5.csv"
        lines = download.value.path().read_text("utf-8-sig").splitlines()
        assert len(lines) == 28 and lines[0].startswith('"query","[CLS]","cats","<","b",">"')
        with tab.expect_download() as download:
            tab.get_by_text("(PNG)").click()
        assert download.value.path().read_bytes().startswith(b"\x89PNG")

        text.fill("")
        text.press("Control+Enter")
        tab.wait_for_selector("[data-testid=stAlert] >> text=text is empty")
        text.fill("word " * 20_000)
        text.press("Control+Enter")
        expect(tab, ".mha-explorer", "The texts have 20,007 tokens; the model reads 512")
        assert pressed(tab).startswith("layer 3, head 5,")
        assert tab.errors == []
        assert tab.hosts == {"localhost"}
