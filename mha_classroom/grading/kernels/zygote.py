"""The process that kernels are forked from: Python with the imports done, and no answer in it.

`python -m mha_classroom.grading.kernels.zygote SOCKET ALIVE FOLDER` serves requests that arrive as
connections on the listening Unix socket with that number, one connection a kernel, until the pipe
ALIVE is closed; then it removes the folder. A request is one JSON line, see supervisor.py. The
answers are JSON lines too: {"ready": true, "process": its number} when the kernel can be talked
to, {"exit": ..., "why": ...} when it has ended. A line "signal 2" sends a signal, closing the
connection ends the kernel.
"""

import contextlib
import gc
import importlib
import json
import os
import select
import shutil
import signal
import socket
import sys

__all__ = ["main"]

# What a kernel needs anyway. Nothing here may import mha_course beyond mha_classroom.grading.
IMPORTS = (
    "torch",
    "numpy",
    "ipykernel.kernelapp",
    "ipykernel.zmqshell",
    "ipykernel.debugger",
    "IPython.core.completerlib",
    "IPython.core.logger",
    "IPython.core.oinspect",
    "IPython.extensions.storemagic",
    "encodings.ascii",
    "encodings.idna",
    "encodings.latin_1",
    "jupyter_client.localinterfaces",
    "matplotlib_inline.backend_inline",
    "psutil",
    "pydoc",
    "pygments.formatters",
    "stack_data",
    "tornado.platform.asyncio",
    "tornado.queues",
    "mha_classroom.grading.kernels.supervisor",
)


def main(listening, alive, folder):
    """Do the imports, then fork a supervisor for each connection, until `alive` is closed."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)  # who started this ends it
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    for name in IMPORTS:
        importlib.import_module(name)
    supervisor = sys.modules["mha_classroom.grading.kernels.supervisor"]
    gc.collect()
    gc.freeze()  # what is there stays shared with the forks
    with socket.socket(fileno=listening) as server:
        while True:
            asked, _, _ = select.select([server, alive], [], [])
            if alive in asked:
                break
            connection, _ = server.accept()
            try:
                child = os.fork()
            except OSError as error:  # there are too many processes; perhaps soon no longer
                _refuse(connection, error)
            else:
                if not child:
                    supervisor.supervise(server, connection)
            connection.close()
    shutil.rmtree(folder, ignore_errors=True)


def _refuse(connection, error):
    """Tell that there is no kernel, to whom is still there."""
    with contextlib.suppress(OSError):
        said = {"exit": 1, "why": "start", "text": f"no kernel can be forked: {error}"}
        connection.sendall(json.dumps(said).encode() + b"\n")


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3])
