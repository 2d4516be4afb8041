"""Have nbval run one notebook in a kernel of its own, and hear what came of each cell."""

import base64
import functools
import importlib
import json
import marshal
import os
import select
import shutil
import signal
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

import nbformat

from mha_classroom.grading.kernels.nbval_runner import (
    KERNEL,
    RUNNER_IMPORTS,
    START_SECONDS,
    become_runner,
)

__all__ = ["Limits", "Run", "run_notebook"]

MOST_EVENTS = 64 << 20  # bytes that the runner may tell
QUIET_SECONDS = 5  # nbval's own patience with a kernel that does not answer
MORE = 5  # cells that may take all their time, besides the answers and their checks


@dataclass(frozen=True)
class Limits:
    """What one task may use: seconds, and bytes of memory beyond what the libraries take."""

    seconds: float = 20.0
    memory: int = 1 << 30


@dataclass
class Run:
    """What came of a notebook.

    cells: a dict for each cell that ended: "role" (the cell's metadata of the course), "outcome"
        ("passed" or "failed"), "outputs" with the results of a probe, "error" [name, text] of one
        that raised. stopped: the role of the cell that did not end, None if all did.
        why: what ended the kernel early: "crashed", "memory", "threads", "timeout", "output",
        "start". text: more about it.
    """

    cells: list = field(default_factory=list)
    stopped: dict | None = None
    why: str = ""
    text: str = ""
    seconds: float = 0.0


def run_notebook(notebook, modules, zygote, limits):
    """Run a notebook's code cells with nbval in a fresh kernel and return the Run.

    notebook: its cells may have the plan of a probe in their metadata, under probe.PLAN.
    modules: {name: source} of what the kernel can import of the course. zygote: the Zygote that
        the kernel is forked from.
    Properties: what is written lies in a folder that is gone afterwards. nbval runs in a fork of
        this process, which ends with the notebook: whatever comes from the kernel stays there, but
        for the events, and these are counted.
    """
    started = time.monotonic()
    _import_runner()
    folder = Path(tempfile.mkdtemp(dir=zygote.folder))
    try:
        for name in ("root", "sockets", "scratch", "kernels/" + KERNEL):
            (folder / name).mkdir(parents=True)
        nbformat.write(notebook, folder / "notebook.ipynb")
        (folder / "modules.json").write_text(_compiled(tuple(modules.items())), encoding="utf-8")
        spec = {"argv": ["fork"], "display_name": KERNEL, "language": "python"}
        spec["metadata"] = {"kernel_provisioner": {"provisioner_name": "mha-course-fork"}}
        (folder / "kernels" / KERNEL / "kernel.json").write_text(json.dumps(spec))
        # So many may take all their time: a thousand cells of a student's own do not add up.
        count = MORE + 2 * sum("task" in cell.metadata["mha_course"] for cell in notebook.cells)
        wanted = {
            "zygote": zygote.socket,
            "folder": str(folder),
            "isolated": zygote.isolated,
            "modules": str(folder / "modules.json"),
            "memory": limits.memory,
            "seconds": int(limits.seconds * (count + 1)) + 5,
        }
        run = _listen(folder, wanted, limits, count)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    run.seconds = time.monotonic() - started
    return run


@functools.cache
def _import_runner():
    """Import what every runner needs, once, before the forks."""
    for name in RUNNER_IMPORTS:
        importlib.import_module(name)
    importlib.import_module("mha_classroom.grading.kernels.provisioner").register()


@functools.lru_cache(maxsize=8)
def _compiled(modules):
    """The modules as JSON, compiled here once and not in every kernel, which is the same Python."""
    codes = {name: compile(source, f"<{name}>", "exec") for name, source in modules}
    texts = {name: base64.b64encode(marshal.dumps(code)).decode() for name, code in codes.items()}
    return json.dumps(texts)


def _listen(folder, wanted, limits, count):
    """Fork the runner and collect what it tells."""
    readable, written = os.pipe()
    runner = os.fork()
    if not runner:
        try:
            os.close(readable)
            become_runner(folder, wanted, limits, written)
        finally:
            os._exit(1)
    os.close(written)
    deadline = time.monotonic() + START_SECONDS + (limits.seconds + 2 * QUIET_SECONDS) * count
    told, open_ended, late = bytearray(), True, False
    try:
        while open_ended and len(told) < MOST_EVENTS:
            # nbval waits for ever on a kernel that goes on talking about something else.
            patience = limits.seconds + 4 * QUIET_SECONDS if told else START_SECONDS
            left = min(patience, deadline - time.monotonic())
            late = left <= 0 or not select.select([readable], [], [], left)[0]
            if late:
                break
            piece = os.read(readable, 1 << 20)
            told += piece
            open_ended = bool(piece)
    finally:
        os.close(readable)
        os.kill(runner, signal.SIGKILL)
        os.waitpid(runner, 0)
    flood = len(told) >= MOST_EVENTS
    return _understood(told, "timeout" if late else "output" if flood else "crashed")


def _understood(told, otherwise):
    """The Run that the events tell of; otherwise: why it ended if they do not say."""
    run, running, complete = Run(), None, False
    for line in bytes(told).split(b"\n")[:-1]:
        event = json.loads(line)
        if event["event"] == "start":
            running = event["role"]
        elif event["event"] == "end":
            run.cells.append({key: event[key] for key in event if key != "event"})
            running = None
        elif event["event"] == "stopped":
            run.why, run.text = event["why"], event.get("text", "")
        elif event["event"] == "complete":
            complete = True
    if complete and not run.why:
        return run
    run.why = run.why or otherwise
    # A thread that ends the kernel between two cells was left behind by one that has ended.
    last = run.cells[-1]["role"] if run.cells and run.why != "start" else None
    run.stopped = running or last
    return run
