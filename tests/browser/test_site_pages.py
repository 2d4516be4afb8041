"""The site of the lessons in a real browser."""

import functools
import http.server
import os
import re
import subprocess
import sysconfig
import threading
from pathlib import Path

import clean_clone
import pytest
from accessibility import serious

pytestmark = [pytest.mark.browser, pytest.mark.xdist_group("site")]


class Silent(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *words):
        pass


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The folder that `mha-course site` makes in a clone."""
    root = clean_clone.copy_to(tmp_path_factory.mktemp("site") / "mha course")
    environment = {**os.environ, "PYTHONPATH": str(root), "SITE_REPOSITORY": ""}
    command = [Path(sysconfig.get_path("scripts"), "mha-course"), "site"]
    done = subprocess.run(command, cwd=root, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return root / "build" / "site"


@pytest.fixture(scope="module")
def address(site):
    """Where the site is served from, as a host of static pages does."""
    handler = functools.partial(Silent, directory=str(site))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


@pytest.fixture
def tab(browser, address, request):
    """A tab in a light or dark system; what fails or is asked for elsewhere is in `tab.faults`."""
    theme, width = getattr(request, "param", ("light", 1366))
    size = {"width": width, "height": 900}
    context = browser.new_context(viewport=size, color_scheme=theme, base_url=address)
    page = context.new_page()
    page.set_default_timeout(60_000)
    page.faults = []
    page.on("pageerror", lambda error: page.faults.append(str(error)))
    page.on("response", lambda r: r.ok or r.status == 304 or page.faults.append(r.url))
    page.on("request", lambda r: r.url.startswith((address, "data:")) or page.faults.append(r.url))
    yield page
    context.close()


@pytest.mark.parametrize("tab", [("light", 1366), ("dark", 800)], indirect=True, ids=str)
def test_axe_finds_nothing_serious_on_any_page(site, tab):
    pages = [path.relative_to(site).as_posix() for path in site.rglob("*.html")]
    pages = [page for page in pages if not page.startswith("_static/")]
    found = {}
    for page in pages:
        tab.goto(f"/{page}")
        wider = "document.documentElement.scrollWidth > document.documentElement.clientWidth"
        assert not tab.evaluate(wider), page
        tab.evaluate("document.querySelectorAll('details').forEach(tag => tag.open = true)")
        if bad := serious(tab):
            found[page] = bad
    assert len(pages) > 25 and found == {} and tab.faults == []


def test_search_finds_the_lesson_that_explains_a_word(tab):
    tab.goto("/index.html")
    field = tab.locator(".bd-sidebar-primary input[type=search]")
    field.fill("entropy")
    field.press("Enter")
    result = tab.locator("#search-results a", has_text=re.compile("^7. Seeing attention$"))
    result.click()
    tab.wait_for_url("**/notebooks/07_seeing_attention.html*")
    assert tab.faults == []


def test_dark_and_light_can_be_chosen_and_answers_fold_open(tab):
    tab.goto("/notebooks/01_attention_math.html")
    for theme in ("dark", "light"):
        tab.click(".theme-switch-button >> visible=true")
        tab.click(f".theme-change-button[data-mode={theme}] >> visible=true")
        tab.wait_for_selector(f"html[data-theme={theme}]")
    answer = tab.locator("article details", has_text="Every weighted average of sevens").first
    folded = answer.bounding_box()["height"]
    answer.locator("summary").click()
    assert answer.bounding_box()["height"] > 1.5 * folded
    formula = tab.locator("math").first.bounding_box()
    assert formula["height"] > 20 and formula["width"] > 100
    assert tab.faults == []
