"""Become a Jupyter kernel in a process that has been forked for it."""

import base64
import importlib.abc
import importlib.machinery
import json
import marshal
import os
import resource
import sys
import types

from mha_classroom.grading.kernels import jail, seccomp

__all__ = ["AWAY", "NotHere", "run"]

MOST_PRINTED = 10 << 20  # characters; the rest is dropped, since nobody reads it
AWAY = "mha_classroom.taken_away"  # the module that takes away what answers may not use
STAND_INS = ("mha_course", "mha_classroom", "d2l", "transformers")


def run(wanted, ready):
    """Serve as the kernel that a request asks for; calls `ready` once it can be talked to."""
    from ipykernel.kernelapp import IPKernelApp

    isolated = wanted["isolated"]
    scratch = "/tmp" if isolated else os.path.join(wanted["folder"], "scratch")
    os.chdir(scratch)
    _forget(wanted["modules"])
    os.environ.clear()
    os.environ |= {"HOME": scratch, "IPYTHONDIR": f"{scratch}/.ipython", "LANG": "C.UTF-8"}
    os.environ |= {"PATH": "", "OMP_NUM_THREADS": "1", "MPLBACKEND": "agg", "MPLCONFIGDIR": scratch}
    file = f"{scratch}/.connection.json"
    with open(file, "w") as target:
        json.dump(wanted["connection"], target)
    _silence()
    app = IPKernelApp.instance()
    app.initialize(
        [
            *("-f", file, "--quiet"),
            "--IPKernelApp.capture_fd_output=False",
            "--IPKernelApp.log_level=CRITICAL",
            "--HistoryManager.enabled=False",
            "--Completer.use_jedi=False",
        ]
    )
    app.shell.ask_exit = lambda: None  # exit() in a cell ends nothing
    app.shell.system = lambda command: print("No other program runs while answers are graded.")
    _limit_printing()
    _send_any_text(app.session)
    app.shell.history_manager.outputs = _KeepsNothing()
    _compile_nothing()
    importlib.import_module(AWAY)
    importlib.import_module("mha_classroom.grading.kernels.inside.watch").start()
    _limit(wanted["memory"], wanted["seconds"])
    if seccomp.SUPPORTED:
        seccomp.deny()
    ready()
    app.start()


def _limit_printing():
    from ipykernel.iostream import OutStream

    write, flush, printed, unsent = OutStream.write, OutStream.flush, 0, set()

    def limited(stream, text):
        nonlocal printed
        printed += len(text)
        unsent.add(stream)
        return write(stream, text) if printed <= MOST_PRINTED else len(text)

    def if_written(stream):
        # Each cell flushes four times, and each time another thread is waited for.
        if stream in unsent:
            unsent.discard(stream)
            flush(stream)

    OutStream.write, OutStream.flush = limited, if_written


def _send_any_text(session):
    """Let messages with half characters be sent, with "?" in their place: an exception that quotes
    one would be lost, and with it that its cell has failed."""
    pack = session.pack

    def packed(content):
        try:
            return pack(content)
        except UnicodeEncodeError:
            text = json.dumps(content, ensure_ascii=False, default=str)
            return text.encode("utf-8", "replace")

    session.pack = packed


class _KeepsNothing(dict):
    """In the place of what IPython keeps of all output: floods would fill the memory with it."""

    def __missing__(self, count):
        return []


def _compile_nothing():
    """Let functions that a cell has torch compile run as they are: what they call is seen then."""
    import torch

    def compiled(function=None, **options):
        return compiled if function is None else function

    torch.compile = compiled
    torch.jit._state.disable()


def _silence():
    """Let what native code prints go nowhere."""
    nowhere = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(nowhere, descriptor)
    os.close(nowhere)


def _forget(modules):
    """Leave of the course only the modules that were sent, and stand-ins for everything else."""
    for name in list(sys.modules):
        if name.split(".")[0] in STAND_INS:
            del sys.modules[name]
    sys.meta_path.insert(0, _Finder(modules))


class NotHere(RuntimeError):
    """Raised by what is not there while answers are graded, when it is used; quotes its name."""


class _StandIn:
    """Takes the place of a name that cannot be used here: importing it does no harm."""

    def __init__(self, name):
        self._name = name

    def __call__(self, *args, **kwargs):
        raise NotHere(f"{self._name} is not there while answers are graded")

    def __mro_entries__(self, bases):
        self()

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return _StandIn(f"{self._name}.{name}")


class _Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    def __init__(self, modules):
        self.modules = modules

    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] not in STAND_INS and name not in self.modules:
            return None
        return importlib.machinery.ModuleSpec(name, self, origin=f"<{name}>", is_package=True)

    def create_module(self, spec):
        return types.ModuleType(spec.name)

    def exec_module(self, module):
        name = module.__name__
        module.__all__ = []
        if name in self.modules:
            exec(marshal.loads(base64.b64decode(self.modules[name])), module.__dict__)
        if "__getattr__" not in vars(module):
            module.__getattr__ = lambda missing: _missing(name, missing)


def _missing(module, name):
    if name.startswith("__"):
        raise AttributeError(f"module {module!r} has no attribute {name!r}")
    return _StandIn(f"{module}.{name}")


def _limit(memory, seconds):
    """Limit what this process may use: bytes of memory beyond what it has, seconds of computing."""
    with open("/proc/self/status") as file:
        kilobytes = {line.split(":")[0]: line.split()[1] for line in file if "kB" in line}
    data, space = int(kilobytes["VmData"]) << 10, int(kilobytes["VmSize"]) << 10
    for what, most in (
        (resource.RLIMIT_DATA, data + memory),
        (resource.RLIMIT_AS, space + memory + (1 << 30)),
        (resource.RLIMIT_CPU, seconds),
        (resource.RLIMIT_FSIZE, jail.SCRATCH_BYTES),
        (resource.RLIMIT_NOFILE, 256),
        (resource.RLIMIT_CORE, 1),  # 0 does not keep a crash from a program that collects them
        (resource.RLIMIT_MSGQUEUE, 0),
        (resource.RLIMIT_MEMLOCK, 0),
    ):
        resource.setrlimit(what, (most, most))
