"""Start a zygote, and end it."""

import contextlib
import os
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

__all__ = ["Zygote", "zygote"]

ONE_THREAD = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")  # or a fork would hang
KEPT = ("HOME", "LANG", "LC_", "LD_LIBRARY_PATH", "PYTHON", "TMPDIR")  # variables that begin so
LONGEST = 60  # bytes of a folder in which sockets are made below others: they may have 107 in all


@dataclass(frozen=True)
class Zygote:
    """A process that kernels are forked from: the path of its socket, a folder for passing files,
    whether its kernels are isolated, and what starts it again if it has ended."""

    socket: str
    folder: str
    isolated: bool = True
    revive: Callable[[], None] = field(default=lambda: None, repr=False, compare=False)


@contextlib.contextmanager
def zygote(isolated=True):
    """Start a process that kernels are forked from; gives the Zygote.

    Properties: it is a new Python, in which nothing of this process can be read. It ends with this
        process, however that ends; its kernels end with it, and the folder is gone. Should it end
        before that, `revive` starts another on the same socket, where requests have waited.
    """
    usual = tempfile.gettempdir()
    short = usual if len(os.fsencode(usual)) <= LONGEST else "/tmp"
    folder = Path(tempfile.mkdtemp(prefix="mha-grading-", dir=short))
    alive, hold = os.pipe()
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(folder / "socket"))
        listening.listen(64)
        processes = [_start(listening.fileno(), alive, folder)]

        def revive():
            if processes[-1].poll() is not None:
                with contextlib.suppress(OSError):  # too few processes, perhaps no longer soon
                    processes.append(_start(listening.fileno(), alive, folder))

        try:
            yield Zygote(str(folder / "socket"), str(folder), isolated, revive)
        finally:
            os.close(hold)
            processes[-1].wait()
            os.close(alive)
            shutil.rmtree(folder, ignore_errors=True)  # if it was killed before it could


def _start(listening, alive, folder):
    # Only what is needed: a kernel has this memory too.
    environment = {name: X for name, X in os.environ.items() if name.startswith(KEPT)}
    environment |= dict.fromkeys(ONE_THREAD, "1") | {"MPLBACKEND": "agg"}
    environment["PYDEVD_DISABLE_FILE_VALIDATION"] = "1"  # or its debugger warns
    environment["PYTHONHASHSEED"] = "0"  # sets in texts come in one order
    module = "mha_classroom.grading.kernels.zygote"
    return subprocess.Popen(
        [sys.executable, "-m", module, str(listening), str(alive), str(folder)],
        pass_fds=[listening, alive],
        env=environment,
        stdin=subprocess.DEVNULL,
    )
