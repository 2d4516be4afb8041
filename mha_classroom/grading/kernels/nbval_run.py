"""Have nbval run one notebook in a kernel of its own, and hear what came of each cell.

nbval runs in a fork of the worker, which only talks to the kernel and tells through a pipe what
becomes of each cell. What comes from the kernel stays in that fork.
"""

import base64
import functools
import gc
import importlib
import json
import marshal
import os
import resource
import select
import shutil
import signal
import tempfile
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from queue import Empty

import nbformat

from mha_classroom.checks.time_limit import SOON, waited
from mha_classroom.grading.kernels import jail
from mha_classroom.grading.kernels.inside.probe import MIME, PLAN

__all__ = ["CellRun", "Run", "run_notebook"]

MOST_EVENTS = 64 << 20  # bytes that the runner may tell
QUIET_SECONDS = 5  # nbval's own patience with a kernel that does not answer
KERNEL = "mha-course-graded"
MOST_OUTPUT = 20 << 20  # characters that a notebook may print and show, in all
RUNNER_MEMORY = 512 << 20
START_SECONDS = 60
RUNNER_IMPORTS = (
    "IPython",
    "nbval.plugin",
    "zmq.utils.garbage",
    "mha_classroom.grading.kernels.provisioner",
)
UNUSED = (  # of pytest
    *("debugging", "doctest", "faulthandler", "junitxml", "logging", "pastebin"),
    *("recwarn", "setuponly", "setupplan", "stepwise", "subtests", "threadexception"),
    *("tmpdir", "unittest", "unraisableexception", "warnings"),
)


@dataclass(frozen=True)
class CellRun:
    """What came of a cell that ended.

    role: the cell's metadata of the course. outputs: what a probe displayed. error: [name, text]
    of the exception that it ended in, None if it ended in none.
    """

    role: dict
    outputs: list
    error: list | None


@dataclass
class Run:
    """What came of a notebook.

    cells: a CellRun for each cell that ended. stopped: the role of the cell that did not end, None
    if all did. why: what ended the kernel early: "crashed", "memory", "threads", "timeout",
    "output", "start", "deadline", "" if nothing did. text: more about it. waited: seconds that the
    kernel could have run and others did.
    """

    cells: list[CellRun] = field(default_factory=list)
    stopped: dict | None = None
    why: str = ""
    text: str = ""
    waited: float = 0.0


def run_notebook(notebook, modules, zygote, limits, until=None):
    """Run a notebook's code cells with nbval in a fresh kernel and return the Run.

    notebook: its cells may have the plan of a probe in their metadata, under probe.PLAN.
    modules: {name: source} of what the kernel can import of the course. zygote: the Zygote that
        the kernel is forked from. until: when it is ended in any case, as time.monotonic tells it,
        in `limits.deadline` seconds unless told.
    Properties: what is written lies in a folder that is gone afterwards. nbval runs in a fork of
        this process, which ends with the notebook: whatever comes from the kernel stays there, but
        for the events, and these are counted.
    """
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
        until = until or time.monotonic() + limits.deadline
        wanted = {
            "zygote": zygote.socket,
            "folder": str(folder),
            "isolated": zygote.isolated,
            "modules": str(folder / "modules.json"),
            "memory": limits.memory,
            "seconds": int(limits.deadline) + 5,
        }
        return _listen(folder, wanted, limits, until)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


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


def _listen(folder, wanted, limits, until):
    """Fork the runner and collect what it tells."""
    readable, written = os.pipe()
    runner = os.fork()
    if not runner:
        try:
            os.close(readable)
            _become_runner(folder, wanted, limits, written)
        finally:
            os._exit(1)
    os.close(written)
    told, ended, process, seconds = bytearray(), "", None, 0.0
    try:
        while not ended:
            # nbval waits for ever on a kernel that goes on talking about something else.
            patience = limits.seconds + 4 * QUIET_SECONDS if told else START_SECONDS
            in_time = _readable(readable, patience, until, process)
            seconds = max(seconds, waited(process))
            if not in_time:
                ended = "deadline" if time.monotonic() >= until else "timeout"
                break
            piece = os.read(readable, 1 << 20)
            told += piece
            if process is None and b"\n" in told:
                process = json.loads(told[: told.index(b"\n")]).get("process")
            ended = "output" if len(told) >= MOST_EVENTS else "" if piece else "crashed"
    finally:
        os.close(readable)
        os.kill(runner, signal.SIGKILL)
        os.waitpid(runner, 0)
    run = _understood(told, ended)
    run.waited = seconds
    return run


def _readable(pipe, patience, until, process):
    """Whether there is something to be read in time.

    patience: seconds, without those that the kernel waits for a processor. until: by the clock.
    """
    started, before = time.monotonic(), waited(process)
    while True:
        now = time.monotonic()
        spent = now - started - max(waited(process) - before, 0.0)
        left = min(patience - spent, until - now)
        if left <= 0:
            return False
        if select.select([pipe], [], [], left)[0]:
            return True


def _understood(told, otherwise):
    """The Run that the events tell of; otherwise: why it ended if they do not say."""
    run, running, complete = Run(), None, False
    for line in bytes(told).split(b"\n")[:-1]:
        event = json.loads(line)
        if event["event"] == "start":
            running = event["role"]
        elif event["event"] == "end":
            run.cells.append(CellRun(event["role"], event["outputs"], event["error"]))
            running = None
        elif event["event"] == "stopped":
            run.why, run.text = event["why"], event.get("text", "")
        elif event["event"] == "complete":
            complete = True
    if complete and not run.why:
        return run
    run.why = run.why or otherwise
    # A thread that ends the kernel between two cells was left behind by one that has ended.
    last = run.cells[-1].role if run.cells and run.why != "start" else None
    run.stopped = running or last
    return run


def _become_runner(folder, wanted, limits, written):
    """Run pytest with nbval on the notebook, telling events through the pipe; returns never."""
    jail.die_with_parent()
    gc.freeze()  # or a collection copies what is shared with the worker
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    data = int(next(line.split()[1] for line in open("/proc/self/status") if "VmData" in line))
    most = (data << 10) + RUNNER_MEMORY
    resource.setrlimit(resource.RLIMIT_DATA, (most, most))
    nowhere = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(nowhere, descriptor)
    os.environ["JUPYTER_PATH"] = str(folder)
    os.environ["JUPYTER_RUNTIME_DIR"] = str(folder)
    os.environ["MHA_COURSE_GRADING"] = json.dumps(wanted)
    os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
    tempfile.tempdir = str(folder)  # the kernel's connection file, which nobody else removes
    os.chdir(folder)
    import nbval.plugin
    import pytest

    pytest.main(
        [
            *("-p", "no:cacheprovider", "-s", "-q"),
            *(word for name in UNUSED for word in ("-p", f"no:{name}")),
            # Without its own confcutdir it lists the folders above and runs a conftest.py there.
            *("-c", os.devnull, "--rootdir", str(folder), "--confcutdir", str(folder)),
            *("--noconftest", "--nbval-lax"),
            *("--nbval-kernel-name", KERNEL, "--nbval-cell-timeout", str(limits.seconds)),
            *("--nbval-kernel-startup-timeout", str(START_SECONDS), str(folder / "notebook.ipynb")),
        ],
        plugins=[nbval.plugin, _Teller(written)],
    )


def _text(value, length):
    """The beginning of a text of a kernel's, without half characters."""
    return str(value)[:length].encode("utf-8", "replace").decode()


class _Teller:
    """A pytest plugin that tells what becomes of each cell, and stops what floods."""

    def __init__(self, written):
        import nbval.kernel
        from jupyter_client import BlockingKernelClient

        from mha_classroom.grading.kernels.provisioner import ForkProvisioner

        self.written, self.printed, self.left, self.item = written, 0, None, None
        self.writing = threading.Lock()
        ForkProvisioner.listeners = [self.kernel_ended]
        get_message = nbval.kernel.RunningKernel.get_message

        def counted(kernel, stream, timeout=None):
            process = kernel.km.provisioner.process
            while True:
                before = waited(process)
                try:
                    message = get_message(kernel, stream, timeout)
                    break
                except Empty:  # others may have had the processor in that time
                    timeout = waited(process) - before
                    if timeout < SOON:
                        raise
            self.count(message["content"])
            return message

        nbval.kernel.RunningKernel.get_message = counted
        nbval.kernel.RunningKernel.execute_cell_input = self.execute
        nbval.kernel.pformat = str  # for a log that nobody reads, and slow
        # It ends in waiting for what does not come. nbval asks again, and the sockets are there.
        BlockingKernelClient.wait_for_ready = lambda client, timeout=None: None

    def execute(self, source, allow_stdin=None):
        """Ask the kernel to run a cell, and send along the plan of one that probes an answer.

        In the source of the cell IPython would look for magics in it, which takes longer than to
        run the answer.
        """
        asked = {"code": source, "silent": False, "store_history": False, "user_expressions": {}}
        asked |= {"allow_stdin": False, "stop_on_error": False}
        client = self.item.parent.kernel.kc
        sent = {PLAN: self.item.cell.metadata.get(PLAN, "")}
        message = client.session.msg("execute_request", asked, metadata=sent)
        client.shell_channel.send(message)
        return message["header"]["msg_id"]

    def tell(self, event, **what):
        """Write one line; whole, also where a kernel ends while its results are written."""
        line = json.dumps({"event": event, **what}).encode() + b"\n"
        with self.writing:
            while line:
                line = line[os.write(self.written, line) :]

    def stop(self, why, text=""):
        """Tell why, and end the runner: closing its connection ends the kernel."""
        self.tell("stopped", why=why, text=text[:2000])
        os._exit(0)

    def kernel_ended(self, ended):
        """Called in a thread when the kernel has ended, which here is always too early."""
        why = ended["why"] if ended["why"] in ("memory", "threads", "start") else "crashed"
        self.stop(why, str(ended.get("text", ended["exit"])))

    def count(self, content):
        """Add up what is printed and shown."""
        data = content.get("data") or {}
        shown = data.values() if isinstance(data, dict) else [data]
        self.printed += sum(len(X) if isinstance(X, str) else len(str(X)) for X in shown)
        self.printed += len(str(content.get("text", ""))) + len(str(content.get("evalue", "")))
        if self.printed > MOST_OUTPUT:
            self.stop("output")

    def pytest_collection_finish(self, session):
        """How many cells there are."""
        self.left = len(session.items)

    def pytest_collectreport(self, report):
        """A notebook that cannot even be read."""
        if report.failed:
            self.stop("start", str(report.longrepr))

    def pytest_runtest_call(self, item):
        """Before a cell runs; a kernel that does not start is no cell's fault."""
        if self.item is None:
            self.tell("kernel", process=item.parent.kernel.km.provisioner.process)
        self.item = item
        self.tell("start", role=item.cell.metadata.get("mha_course") or {})

    def pytest_runtest_makereport(self, item, call):
        """After each phase of a cell."""
        if call.when == "setup" and call.excinfo:
            self.stop("start", str(call.excinfo.value))
        if call.when != "call":
            return
        if item.parent.timed_out:
            self.stop("timeout")
        outputs = item.test_outputs or []
        errors = [out for out in outputs if out.output_type == "error"]  # of any types
        errors = [[_text(out.ename, 200), _text(out.evalue, 2000)] for out in errors]
        shown = [out.data for out in outputs if isinstance(out.get("data"), dict)]
        self.tell(
            "end",
            role=item.cell.metadata.get("mha_course") or {},
            outputs=[data[MIME] for data in shown if MIME in data],
            error=errors[-1] if errors else None,
        )
        self.left -= 1
        if not self.left:
            self.tell("complete")
            os._exit(0)
