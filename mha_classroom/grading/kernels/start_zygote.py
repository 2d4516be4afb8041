"""Start a zygote, and end it."""

import contextlib
import os
import shutil
import socket
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

__all__ = ["Zygote", "zygote"]

ONE_THREAD = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")  # or a fork would hang
KEPT = ("HOME", "LANG", "LC_", "LD_LIBRARY_PATH", "PYTHON", "TMPDIR")  # variables that begin so
LONGEST = 60  # bytes of a folder in which sockets are made below others: they may have 107 in all


@dataclass(frozen=True)
class Zygote:
    """A process that kernels are forked from: the path of its socket, a folder for passing files,
    and whether its kernels are isolated."""

    socket: str
    folder: str
    isolated: bool = True


@contextlib.contextmanager
def zygote(isolated=True):
    """Start a process that kernels are forked from; gives the Zygote.

    Properties: it is a new Python, in which nothing of this process can be read. It ends with this
        process, however that ends; its kernels end with it, and the folder is gone.
    """
    usual = tempfile.gettempdir()
    short = usual if len(os.fsencode(usual)) <= LONGEST else "/tmp"
    folder = Path(tempfile.mkdtemp(prefix="mha-grading-", dir=short))
    alive, hold = os.pipe()
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(folder / "socket"))
        listening.listen(64)
        # Only what is needed: a kernel has this memory too.
        environment = {name: X for name, X in os.environ.items() if name.startswith(KEPT)}
        environment |= dict.fromkeys(ONE_THREAD, "1") | {"MPLBACKEND": "agg"}
        environment["PYDEVD_DISABLE_FILE_VALIDATION"] = "1"  # or its debugger warns
        environment["PYTHONHASHSEED"] = "0"  # sets in texts come in one order
        numbers = [listening.fileno(), alive]
        process = subprocess.Popen(
            [
                sys.executable,
                "-m",
                "mha_classroom.grading.kernels.zygote",
                *map(str, numbers),
                str(folder),
            ],
            pass_fds=numbers,
            env=environment,
            stdin=subprocess.DEVNULL,
        )
    os.close(alive)
    try:
        yield Zygote(str(folder / "socket"), str(folder), isolated)
    finally:
        os.close(hold)
        process.wait()
        shutil.rmtree(folder, ignore_errors=True)  # if it was killed before it could
