"""The fork of a worker in which nbval runs one notebook: it only talks to a kernel."""

import gc
import json
import os
import resource
import signal
import tempfile
import threading

from mha_classroom.grading.kernels import jail
from mha_classroom.grading.kernels.inside.probe import MIME, PLAN

__all__ = ["KERNEL", "RUNNER_IMPORTS", "START_SECONDS", "become_runner"]

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


def become_runner(folder, wanted, limits, written):
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
            message = get_message(kernel, stream, timeout)
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
        errors = [[str(out.ename)[:200], str(out.evalue)[:2000]] for out in errors]
        shown = [out.data for out in outputs if isinstance(out.get("data"), dict)]
        self.tell(
            "end",
            role=item.cell.metadata.get("mha_course") or {},
            outcome="failed" if call.excinfo else "passed",
            outputs=[data[MIME] for data in shown if MIME in data],
            error=errors[-1] if errors else None,
        )
        self.left -= 1
        if not self.left:
            self.tell("complete")
            os._exit(0)
