"""The browser, a tab of it, and the course as `mha-course lab` serves it from a fresh clone."""

import shutil
from urllib.parse import urlsplit

import clean_clone
import pytest
from learner import START, Learner, close_everything, served_lab

SECONDS = 120  # for a thing to appear: the machine may be busy
OPTIONS = (
    "--no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking "
    "--disable-component-update --disable-sync"
).split()


@pytest.fixture(scope="module")
def browser():
    try:
        from playwright.sync_api import sync_playwright
    except ModuleNotFoundError:
        pytest.fail("these tests need what `make test-browser` installs")
    names = ("chromium", "chromium-browser", "google-chrome")
    path = next(filter(None, map(shutil.which, names)), None)
    if path is None:
        pytest.fail("these tests need Chromium; on Debian and Ubuntu: apt-get install chromium")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=OPTIONS)
        yield browser
        browser.close()


@pytest.fixture
def new_tab(browser):
    """Open a tab; `tab.errors` are the errors of its pages, `tab.hosts` whom they asked."""
    contexts = []

    def opened(height=900, **options):
        contexts.append(browser.new_context(viewport={"width": 1366, "height": height}, **options))
        page = contexts[-1].new_page()
        page.set_default_timeout(SECONDS * 1000)
        page.errors, page.hosts = [], set()
        page.on("pageerror", lambda error: page.errors.append(str(error)))
        page.on("request", lambda request: page.hosts.add(urlsplit(request.url).hostname))
        page.on("request", lambda request: page.hosts.discard(None))  # data: and blob: ask nobody
        return page

    yield opened
    for context in contexts:
        context.close()


@pytest.fixture(scope="module")
def course(tmp_path_factory):
    """The course in a fresh clone, served until the tests of this file are over."""
    folder = tmp_path_factory.mktemp("course")
    root = clean_clone.copy_to(folder / "mha course")
    with served_lab(root, folder) as course:
        yield course


@pytest.fixture
def learner(course, new_tab):
    """Somebody who has opened the address that `make lab` prints, in a browser of their own."""
    close_everything(course.address)
    learner = Learner(course, new_tab())
    learner.open_printed_address()
    learner.wait_until_ready(START)
    yield learner
    assert learner.tab.errors == []
    assert learner.tab.hosts == {"localhost"}
