"""The widget in JupyterLab and the page in a real browser, run by `make prove`."""

import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from contextlib import contextmanager

import pytest

pytestmark = pytest.mark.prove
TOKEN = "explorer"
TEXT = "The children played in the garden until it got dark."
NOTEBOOK = {
    "nbformat": 4,
    "nbformat_minor": 5,
    "metadata": {"kernelspec": {"name": "python3", "display_name": "Python 3"}},
    "cells": [
        {
            **{"cell_type": "code", "id": "explore", "metadata": {}, "outputs": []},
            "execution_count": None,
            "source": f'from mha_course.explorer import explore\n\nexplore("{TEXT}")',
        }
    ],
}
SECONDS = 120


@pytest.fixture
def tab(browser):
    """A new tab, and the errors of the page in `tab.errors`."""
    context = browser.new_context(viewport={"width": 1280, "height": 2000})
    page = context.new_page()
    page.set_default_timeout(SECONDS * 1000)
    page.errors = []
    page.on("pageerror", lambda error: page.errors.append(str(error)))
    yield page
    context.close()


@contextmanager
def served(folder, words, environment, path):
    """Run a server on a free port until the block ends; gives its address."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    address = f"http://localhost:{port}"
    log = folder / "log"
    with open(log, "wb") as file:
        server = subprocess.Popen(
            [sys.executable, "-m", *words, f"--port={port}"],
            **{"cwd": folder, "env": {**os.environ, **environment}},
            **{"stdout": file, "stderr": file, "start_new_session": True},
        )
    try:
        end = time.monotonic() + SECONDS
        while not _answers(address + path):
            assert server.poll() is None and time.monotonic() < end, log.read_text("utf-8")[-4000:]
            time.sleep(0.3)
        yield address
    finally:
        os.killpg(server.pid, signal.SIGTERM)
        server.wait(timeout=60)


def _answers(url):
    try:
        with urllib.request.urlopen(url, timeout=10) as answer:
            return answer.status == 200
    except OSError:
        return False


@pytest.fixture
def lab(tmp_path):
    """The address of a JupyterLab with one notebook and settings of its own."""
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "try.ipynb").write_text(json.dumps(NOTEBOOK), "utf-8")
    places = "JUPYTER_CONFIG_DIR JUPYTERLAB_SETTINGS_DIR JUPYTERLAB_WORKSPACES_DIR IPYTHONDIR"
    environment = {place: str(tmp_path / place.lower()) for place in places.split()}
    words = [
        *("jupyterlab", "--no-browser", "--allow-root", f"--IdentityProvider.token={TOKEN}"),
        f"--ServerApp.root_dir={tmp_path / 'work'}",
    ]
    with served(tmp_path, words, environment, f"/api/status?token={TOKEN}") as address:
        yield address


def call(address, path, content, method="POST"):
    request = urllib.request.Request(
        f"{address}{path}?token={TOKEN}",
        **{"method": method, "data": json.dumps(content).encode()},
        headers={"Content-Type": "application/json"},
    )
    urllib.request.urlopen(request, timeout=60).close()


@pytest.mark.parametrize("theme", ["JupyterLab Light", "JupyterLab Dark"])
def test_the_widget_in_jupyterlab(lab, tab, tmp_path, theme):
    themes = "/lab/api/settings/@jupyterlab/apputils-extension:themes"
    call(lab, themes, {"raw": json.dumps({"theme": theme})}, "PUT")
    kernel = {"path": "try.ipynb", "type": "notebook", "name": "", "kernel": {"name": "python3"}}
    call(lab, "/api/sessions", kernel)  # or about one start in three waits for ever
    tab.goto(f"{lab}/lab/tree/try.ipynb?token={TOKEN}")
    tab.wait_for_selector(".jp-Notebook")
    tab.wait_for_selector("#jp-main-statusbar >> text=Idle")
    tab.wait_for_timeout(2000)
    if tab.locator(".jp-Dialog button.jp-mod-reject").count():
        tab.click(".jp-Dialog button.jp-mod-reject")
    tab.click("#jp-MainMenu .lm-MenuBar-item:has-text('Run')")
    tab.click("li[data-command='runmenu:run-all']")
    tab.wait_for_selector(".jp-OutputArea img[alt^='Heat maps']")
    expect_picture(tab, "layer 0, head 0, which is broad")

    head, layer = (tab.locator(".widget-slider [role=slider]").nth(place) for place in (1, 0))
    head.focus()
    tab.keyboard.press("ArrowRight")
    tab.keyboard.press("ArrowRight")
    expect_picture(tab, "layer 0, head 2, which looks at the token before: 1.00")
    grid = tab.get_attribute("img[alt^='Heat maps']", "src")
    layer.focus()
    tab.keyboard.press("ArrowRight")
    expect_picture(tab, "layer 1, head 2, which ")
    tab.wait_for_selector("img[alt$='all heads of layer 1']")
    assert tab.get_attribute("img[alt^='Heat maps']", "src") != grid
    tab.screenshot(path=tmp_path / "widget.png")

    text = tab.locator(".jp-OutputArea .widget-text input").nth(0)
    text.fill("Cats <b>sleep</b> all day.")
    text.press("Enter")
    expect_picture(tab, "of 14 tokens")
    assert tab.locator(".jp-OutputArea b >> text=sleep").count() == 0
    text.fill("")
    text.press("Enter")
    tab.wait_for_selector(".jp-OutputArea [role=alert] >> text=text is empty")
    text.fill("word " * 600)
    text.press("Enter")
    tab.wait_for_selector("text=the model reads the first 512")
    expect_picture(tab, "of 512 tokens")
    assert tab.errors == []


def expect_picture(tab, words):
    """Wait for the heat map of one head whose description holds the words."""
    tab.wait_for_selector(f"img[alt^='Heat map of'][alt*='{words}']")


def test_the_page(tab, tmp_path):
    words = ["mha_classroom.commands.cli", "explore", "--server.headless=true"]
    with served(tmp_path, words, {}, "/_stcore/health") as address:
        tab.goto(address)
        expect_picture(tab, "layer 0, head 0, which is broad")
        first = tab.get_attribute("img[alt^='Heat map of']", "src")
        head = tab.locator("[data-testid=stSlider] input[type=range]").nth(1)
        head.focus()
        tab.keyboard.press("ArrowRight")
        tab.keyboard.press("ArrowRight")
        expect_picture(tab, "layer 0, head 2, which looks at the token before: 1.00")
        assert tab.get_attribute("img[alt^='Heat map of']", "src") != first

        text = tab.get_by_label("Text", exact=True)
        text.fill("Cats <b>sleep</b> all $day$ and **night**.")
        text.press("Control+Enter")
        expect_picture(tab, "of 22 tokens, layer 0, head 2")
        assert tab.locator("b >> text=sleep").count() == 0
        other = tab.get_by_label(re.compile("Second text"))
        other.fill("Dogs do not.")
        other.press("Enter")
        expect_picture(tab, "of 27 tokens")
        tab.get_by_text("Compare all heads of this layer").click()
        tab.wait_for_selector("img[alt^='Heat maps']")
        tab.screenshot(path=tmp_path / "page.png")
        with tab.expect_download() as download:
            tab.get_by_text("(CSV)").click()
        assert b"'-" not in download.value.path().read_bytes()
        lines = download.value.path().read_text("utf-8-sig").splitlines()
        assert len(lines) == 28 and lines[0].startswith('"query","[CLS]","cats","<","b",">"')

        text.fill("")
        text.press("Control+Enter")
        tab.wait_for_selector("[data-testid=stAlert] >> text=text is empty")
        text.fill("word " * 20_000)
        text.press("Control+Enter")
        tab.wait_for_selector("text=The texts have 20,007 tokens; the model reads 512")
        assert tab.errors == []
