"""The course's JupyterLab, and what a learner does in it with mouse and keyboard.

Whatever waits here waits for something to be seen. A notebook is ready when its kernel is:
JupyterLab forgets cells that are run before, or asks which kernel to take for them. A new notebook
has to say in its metadata which kernel it wants, or JupyterLab asks that.
"""

import json
import os
import re
import secrets
import signal
import socket
import subprocess
import sysconfig
import time
import urllib.request
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

__all__ = ["START", "Learner", "Served", "ask", "close_everything", "served", "served_lab"]

START = "notebooks/00_start_here.ipynb"
TOKEN = secrets.token_hex(8)
SECONDS = 120  # for a server to answer
RUN = 600  # for all cells of a notebook, of which some train
TRACEBACK = "[data-mime-type='application/vnd.jupyter.stderr']"
PANEL = ".jp-NotebookPanel:not(.lm-mod-hidden)"
TABS = ".lm-DockPanel-tabBar .lm-TabBar-tab"

# Whether the notebook with this path is in front, and its kernel waits for something to do.
READY = """path => {
    const tab = document.querySelector('.lm-DockPanel-tabBar .lm-TabBar-tab.jp-mod-current');
    const light = document.querySelector('PANEL .jp-Notebook-ExecutionIndicator');
    const bar = document.querySelector('#jp-main-statusbar');
    return tab?.title.split('\\n').includes(`Path: ${path}`) && light?.dataset.status === 'idle'
        && bar.textContent.includes('| Idle') && !document.querySelector('.jp-Dialog');
}""".replace("PANEL", PANEL)
PROMPTS = "cells => cells.map(cell => cell.textContent.trim())"
# So many cells were run, with the first numbers of a kernel, or more errors came than are meant.
# (An error that is meant clears the prompts of all cells that wait, though they are run.)
RUN_THROUGH = """({panel, cells, errors}) => {
    const all = (what) => [...document.querySelectorAll(`${panel} ${what}`)];
    const prompts = all('.jp-CodeCell .jp-InputArea-prompt').map(cell => cell.textContent.trim());
    const numbered = prompts.filter(prompt => /\\d/.test(prompt));
    return all("TRACEBACK").length > errors || !prompts.includes('[*]:')
        && numbered.length === cells
        && numbered.every((prompt, place) => prompt === `[${place + 1}]:`);
}""".replace("TRACEBACK", TRACEBACK)
WIDTHS = """shown => Promise.all(shown.map(one => one.localName === 'svg'
    ? one.getBoundingClientRect().width
    : one.decode().then(() => one.naturalWidth, () => 0)))"""


class Served(NamedTuple):
    """A clone of the course, the address of the JupyterLab on its work/, what it printed."""

    root: Path
    address: str
    log: Path

    @property
    def work(self):
        return self.root / "work"

    @property
    def printed(self):
        """The address to open, as it stands in the terminal; the token that was given does not."""
        pattern = rf"({re.escape(self.address)}/\S+)\?token=\.\.\."
        return re.search(pattern, self.log.read_text("utf-8"))[1]


@contextmanager
def served_lab(root, folder):
    """Run `mha-course lab` in the clone `root` until the block ends; gives it as Served.

    folder: for settings and a log, so that nobody's own are used.
    """
    places = "JUPYTER_CONFIG_DIR JUPYTER_DATA_DIR JUPYTER_RUNTIME_DIR IPYTHONDIR HOME".split()
    environment = {place: str(folder / place.lower()) for place in places}
    (folder / "home").mkdir(exist_ok=True)
    environment["PYTHONPATH"] = str(root)  # this clone's code, also in the kernels
    words = ["lab", "--no-browser", f"--IdentityProvider.token={TOKEN}"]
    path = f"/api/status?token={TOKEN}"
    with served(root, words, environment, path, folder / "log") as address:
        yield Served(root, address, folder / "log")


@contextmanager
def served(folder, words, environment, path, log):
    """Run `mha-course` with these words on a free port until the block ends; gives its address."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    address = f"http://localhost:{port}"
    command = [Path(sysconfig.get_path("scripts"), "mha-course"), *words, f"--port={port}"]
    with open(log, "wb") as file:
        server = subprocess.Popen(
            command,
            **{"cwd": folder, "env": {**os.environ, **environment}},
            **{"stdout": file, "stderr": file, "start_new_session": True},
        )
    try:
        end = time.monotonic() + SECONDS
        while not _answers(address + path):
            assert server.poll() is None and time.monotonic() < end, log.read_text("utf-8")[-4000:]
            time.sleep(0.2)
        yield address
    finally:
        if server.poll() is None:
            os.killpg(server.pid, signal.SIGTERM)
        server.wait(timeout=60)


def _answers(url):
    try:
        with urllib.request.urlopen(url, timeout=10) as answer:
            return answer.status == 200
    except OSError:
        return False


def ask(address, path, content=None, method=None):
    """What the server answers to GET, or with a content to another method."""
    request = urllib.request.Request(
        f"{address}{path}?token={TOKEN}",
        **{"method": method, "data": None if content is None else json.dumps(content).encode()},
        headers={"Content-Type": "application/json"},
    )
    with urllib.request.urlopen(request, timeout=60) as answer:
        return json.loads(answer.read() or "null")


def close_everything(address):
    """End all kernels, and forget which tabs were open: the next day."""
    for session in ask(address, "/api/sessions"):
        ask(address, f"/api/sessions/{session['id']}", method="DELETE")
    for name in ask(address, "/lab/api/workspaces")["workspaces"]["ids"]:
        ask(address, f"/lab/api/workspaces/{name}", method="DELETE")


class Learner:
    """Somebody with the course open in a tab of a browser."""

    def __init__(self, course, tab):
        self.course, self.tab = course, tab

    def open_printed_address(self):
        self.tab.goto(f"{self.course.printed}?token={TOKEN}")

    def open(self, path):
        """Open a notebook by its address."""
        self.tab.goto(f"{self.course.address}/lab/tree/{path}?token={TOKEN}")
        self.wait_until_ready(path)

    def wait_until_ready(self, path):
        self.tab.wait_for_function(READY, arg=path)

    @property
    def page(self):
        """The notebook in front."""
        return self.tab.locator(PANEL)

    def tab_of(self, path):
        """The tab with this path, a pattern of JupyterLab's tooltip."""
        return self.tab.locator(f'{TABS}[title*="Path: {path}"]')

    def unsaved(self):
        """The names of tabs with a dot."""
        return self.tab.locator(f"{TABS}.jp-mod-dirty").all_inner_texts()

    def follow(self, link):
        """Click a link to a notebook, once JupyterLab has made it one of its own."""
        link.and_(self.tab.locator("a[href*='/files/']")).click()

    def choose(self, menu, command):
        self.tab.click(f"#jp-MainMenu .lm-MenuBar-item:has-text('{menu}')")
        self.tab.click(f"li[data-command='{command}']")

    def run_all(self, cells, errors=0):
        """Clear all outputs, run all cells in a new kernel; returns the prompts.

        cells, errors: how many there are to be.
        """
        self.choose("Edit", "editmenu:clear-all")
        self.choose("Run", "runmenu:run-all")
        return self.wait_for_the_end(cells, errors)

    def restart_and_run_all(self, cells, errors=0):
        self.choose("Kernel", "runmenu:restart-and-run-all")
        self.tab.click(".jp-Dialog button.jp-mod-accept")
        return self.wait_for_the_end(cells, errors)

    def wait_for_the_end(self, cells, errors):
        told = {"panel": PANEL, "cells": cells, "errors": errors}
        self.tab.wait_for_function(RUN_THROUGH, arg=told, timeout=RUN * 1000)
        return self.prompts()

    def prompts(self):
        return self.page.locator(".jp-CodeCell .jp-InputArea-prompt").evaluate_all(PROMPTS)

    def tracebacks(self):
        return self.page.locator(TRACEBACK).all_text_contents()

    def widths(self, what, number):
        """The widths in pixels, 0 for a broken one, of what cells gave; as soon as so many are
        there: JupyterLab shows cells below the window when it has nothing else to do."""
        shown = f"{PANEL} .jp-OutputArea-output {what}"
        wanted = "([shown, number]) => document.querySelectorAll(shown).length >= number"
        self.tab.wait_for_function(wanted, arg=[shown, number])
        return self.tab.locator(shown).evaluate_all(WIDTHS)

    def cell(self, text):
        """The code cell with this text."""
        return self.page.locator(".jp-CodeCell", has=self.tab.locator(".cm-content", has_text=text))

    def write(self, cell, source):
        cell.locator(".cm-content").click()
        self.tab.keyboard.press("ControlOrMeta+A")
        self.tab.keyboard.insert_text(source)

    def run(self, cell, number):
        """Run one cell, which is the kernel's number-th."""
        cell.locator(".cm-content").click()
        self.tab.keyboard.press("Shift+Enter")
        cell.locator(".jp-InputArea-prompt", has_text=f"[{number}]:").wait_for()

    def save(self):
        self.tab.keyboard.press("ControlOrMeta+S")
        self.tab.wait_for_selector(f"{TABS}.jp-mod-current:not(.jp-mod-dirty)")
