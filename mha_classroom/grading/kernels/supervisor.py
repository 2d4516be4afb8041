"""The process that starts one kernel, watches what it uses, and ends it."""

import json
import os
import selectors
import signal
import time

from mha_classroom.grading.kernels import jail, kernel

__all__ = ["supervise"]

LOOK_EVERY = 0.05  # seconds between two looks at what a kernel uses
MOST_THREADS = 200
START_SECONDS = 30


def supervise(server, connection):
    """Serve one request in a process of its own; returns never."""
    try:
        server.close()
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        jail.die_with_parent()
        _serve(connection)
    except BaseException as error:
        _tell(connection, exit=1, why="start", text=f"{type(error).__name__}: {error}")
    finally:
        os._exit(0)


def _serve(connection):
    """Start the kernel that the first line asks for, and watch over it.

    The line: {"isolated": bool, "folder": one of its own, with the folders "root" and "sockets" in
    it, "connection": the connection file's content, "modules": a file that kernel.run reads,
    "memory": bytes, "seconds": of computing in all}.
    """
    lines = connection.makefile("r", encoding="utf-8")
    wanted = json.loads(lines.readline())
    folder = wanted["folder"]
    with open(wanted["modules"], encoding="utf-8") as file:
        wanted["modules"] = json.load(file)
    home = None
    if wanted["isolated"]:
        home = jail.Jail(os.path.join(folder, "root"), os.path.join(folder, "sockets"))
        jail.own_namespaces(os.getpid(), home.sockets)  # no other zygote has this number now
    ready, written = os.pipe()
    child = os.fork()
    if not child:
        _close_all_but(written)
        _run(wanted, home, written)
    os.close(written)
    _watch(connection, child, ready, wanted["memory"])


def _run(wanted, home, written):
    """Become the kernel; returns never."""
    status = 1
    try:
        jail.die_with_parent()
        os.setsid()  # or a kernel could send signals to the process group of who grades
        if home is None:
            kernel.run(wanted, lambda: os.write(written, b"!"))
            status = 0
        else:
            home.build()
            status = _first_process(wanted, home, written)
    except BaseException as error:
        os.write(written, f"{type(error).__name__}: {error}"[:2000].encode())
    finally:
        os._exit(status)


def _first_process(wanted, home, written):
    """Process 1 of the jail: starts the kernel and, when it has its sockets, bars their folder."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    bound, tell = os.pipe()
    child = os.fork()
    if not child:
        _close_all_but(tell)
        status = 1
        try:
            jail.drop_privileges()
            kernel.run(wanted, lambda: os.write(tell, b"!") and os.close(tell))
            status = 0
        except BaseException as error:
            os.write(tell, f"{type(error).__name__}: {error}"[:2000].encode())
        finally:
            os._exit(status)
    os.close(tell)
    said = os.read(bound, 2000)
    home.close()
    jail.drop_privileges()
    os.write(written, said)
    os.close(written)
    while True:
        ended, status = os.wait()
        if ended == child:
            return 128 + os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)


def _close_all_but(kept):
    for descriptor in map(int, os.listdir("/proc/self/fd")):
        if descriptor > 2 and descriptor != kept:
            try:
                os.close(descriptor)
            except OSError:
                pass  # the one that the list itself was read with


def _watch(connection, child, ready, memory):
    """Pass on what is asked until the kernel has ended, and end it when it uses too much."""
    chosen = selectors.DefaultSelector()
    chosen.register(connection, selectors.EVENT_READ)
    chosen.register(ready, selectors.EVENT_READ)
    why, process, started, base = "", None, time.monotonic(), None
    while True:
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            break
        for key, _ in chosen.select(LOOK_EVERY):
            if key.fileobj is connection:
                asked = connection.recv(100)
                if asked.startswith(b"signal") and process:
                    os.kill(process, int(asked.split()[1]))
                elif not asked.startswith(b"signal"):
                    why = why or "asked"
                    os.kill(child, signal.SIGKILL)
            else:
                said = os.read(ready, 2000)
                chosen.unregister(ready)
                if said == b"!":
                    process = _kernel_of(child)
                    base = _used(process)[0]
                    _tell(connection, ready=True, process=process)
                elif said:
                    _tell(connection, exit=1, why="start", text=said.decode("utf-8", "replace"))
        if why:
            continue
        if process is None:
            why = "start" if time.monotonic() - started > START_SECONDS else ""
        else:
            used, threads = _used(process)
            why = "memory" if used - base > memory else "threads" if threads > MOST_THREADS else ""
        if why:
            os.kill(child, signal.SIGKILL)
    code = 128 + os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)
    _tell(connection, exit=code, why=why)


def _kernel_of(child):
    """The process that runs the kernel: the child of the jail's process 1, or the one itself."""
    try:
        with open(f"/proc/{child}/task/{child}/children") as file:
            return int(file.read().split()[0])
    except (OSError, IndexError):
        return child


def _used(process):
    """Bytes of memory and number of threads."""
    used = {"VmRSS": 0, "VmSwap": 0, "Threads": 0}
    try:
        with open(f"/proc/{process}/status") as file:
            for line in file:
                name, _, rest = line.partition(":")
                if name in used:
                    used[name] = int(rest.split()[0])
    except OSError:
        pass  # it has just ended
    return (used["VmRSS"] + used["VmSwap"]) << 10, used["Threads"]


def _tell(connection, **what):
    try:
        connection.sendall(json.dumps(what).encode() + b"\n")
    except OSError:
        pass  # nobody is there any more to be told
