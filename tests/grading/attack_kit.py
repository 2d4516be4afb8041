"""What the attacks on the sandbox and on marks have in common."""

import os
import time
from pathlib import Path

import nbformat

SEED = 7
HARNESS = {"mha_classroom.grading.kernels.inside.watch": "def start():\n    pass\n"}
SECRET = "a-secret-of-the-one-who-grades"
MARKER = "marker_of_the_solution"


def code(source, **metadata):
    """A code cell of format 4.5; the numbers are never used twice in one notebook."""
    cell = nbformat.v4.new_code_cell(source)
    cell.metadata |= metadata
    return cell


def children(process):
    """The processes that a process has started and that are still there."""
    try:
        found = Path(f"/proc/{process}/task").glob("*/children")
        return [int(pid) for path in found for pid in path.read_text().split()]
    except OSError:
        return []


def descendants(process):
    below = children(process)
    return below + [pid for child in below for pid in descendants(child)]


def parent_of_kernels(besides=None):
    """The zygote: the child of this process whose command says so."""
    while True:
        for pid in children(os.getpid()):
            if pid != besides and b"kernels.zygote" in command_of(pid):
                return pid
        time.sleep(0.01)  # it is just starting


def command_of(pid):
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""
