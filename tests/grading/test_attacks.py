"""Notebooks that are after marks, other students, the grader or its machine: none gets anything.

Each test asserts what has to hold in spite of them: which points, what ended which cell, and that
nothing is left of the kernel. Many attempts share a kernel where they cannot disturb each other.
"""

import json
import os
import shutil
import signal
import tempfile
import threading
import time
from pathlib import Path

import nbformat
import pytest
import torch

from mha_classroom.checks import lessons
from mha_classroom.checks.task import Draw
from mha_classroom.grading.fit.assignment import assignments, load_assignment
from mha_classroom.grading.fit.slicing import slice_modules
from mha_classroom.grading.judge import recorded as records
from mha_classroom.grading.judge.grade_notebook import grade_notebook
from mha_classroom.grading.judge.plans import STAND_INS, modules_of
from mha_classroom.grading.kernels import jail, nbval_run, seccomp
from mha_classroom.grading.kernels.nbval_run import Limits, run_notebook
from mha_classroom.grading.kernels.start_zygote import zygote
from mha_classroom.grading.settings import Settings

SEED = 7
HARNESS = {"mha_classroom.grading.kernels.inside.watch": "def start():\n    pass\n"}
SECRET = "a-secret-of-the-one-who-grades"
MARKER = "marker_of_the_solution"

# An assignment of many small tasks, so that each answer of a kernel can be an attempt of its own.
TASKS_MODULE = """
import torch
from mha_classroom.checks.task import Case, Task

VERSION = 1
NUMBERS = ("one", "two", "three", "four", "five", "six", "seven", "eight")
SOFTMAX = ("torch.softmax", "torch.nn.functional.softmax", "torch.nn.modules.activation.Softmax")


def double(x):
    marker_of_the_solution = 2
    return marker_of_the_solution * x


def soft(x):
    e = (x - x.amax(-1, keepdim=True)).exp()
    return e / e.sum(-1, keepdim=True)


def cases(draw):
    return [Case("a vector", {"x": draw.normal(5)}), Case("a table", {"x": draw.normal(3, 7)})]


TASKS = [Task(f"my-{n}", double, cases) for n in NUMBERS]
TASKS += [Task("my-later", double, cases, uses=("my-one",)), Task("my-honest", double, cases)]
TASKS += [Task(f"my-soft_{n}", soft, cases, forbidden=SOFTMAX) for n in NUMBERS]
"""
NUMBERS = ("one", "two", "three", "four", "five", "six", "seven", "eight")
DOUBLE = [f"my-{name}" for name in (*NUMBERS, "later", "honest")]
SOFT = [f"my-soft_{name}" for name in NUMBERS]
HONEST = "def {}(x):\n    return x + x"


def code(source, **metadata):
    """A code cell of format 4.5; the numbers are never used twice in one notebook."""
    cell = nbformat.v4.new_code_cell(source)
    cell.metadata |= metadata
    return cell


@pytest.fixture(scope="module")
def assignment(tmp_path_factory):
    """The instructor's own assignment above."""
    folder = tmp_path_factory.mktemp("own")
    (folder / "tricks.py").write_text(TASKS_MODULE)
    cells = []
    for name in DOUBLE + SOFT:
        body = f"    {MARKER} = 2\n    return {MARKER} * x"
        if name in SOFT:
            body = "    e = (x - x.amax(-1, keepdim=True)).exp()\n    return e / e.sum(-1, True)"
        source = f"def {name[3:]}(x):\n    ### BEGIN SOLUTION\n{body}\n    ### END SOLUTION"
        nbgrader = {"grade_id": name, "solution": True, "grade": False, "locked": False}
        cells.append(code(source, nbgrader={**nbgrader, "schema_version": 3, "task": False}))
        check = {"grade_id": f"check-{name}", "grade": True, "solution": False, "points": 1}
        check |= {"schema_version": 3, "locked": True, "task": False}
        cells.append(code(f'check("{name}", {name[3:]})', nbgrader=check))
    nbformat.write(nbformat.v4.new_notebook(cells=cells), folder / "tricks.ipynb")
    return load_assignment("tricks", folder)


@pytest.fixture(scope="module")
def source():
    """A zygote with a sandbox; without one these tests have nothing to say, and fail."""
    reason = jail.unavailable()
    assert not reason, f"the sandbox is not available on this machine: {reason}"
    assert seccomp.SUPPORTED, "there is no filter of system calls for this machine"
    os.environ["MHA_SECRET"] = SECRET
    try:
        with zygote() as started:
            yield started
    finally:
        del os.environ["MHA_SECRET"]


@pytest.fixture(autouse=True)
def untouched(source):
    """Afterwards there is no process, no file and no changed limit more than before."""
    before = sorted(os.listdir(source.folder)), sorted(os.listdir(Path(jail.__file__).parent))
    yield
    deadline = time.monotonic() + 5
    while descendants(parent_of_kernels()) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not descendants(parent_of_kernels())
    assert before == (
        sorted(os.listdir(source.folder)),
        sorted(os.listdir(Path(jail.__file__).parent)),
    )
    assert not list(Path(tempfile.gettempdir()).glob("mha-attack*"))


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


def run(source, *cells, seconds=5.0, memory=256 << 20):
    """Run cells without any grading; those that come first are the attempt."""
    made = [code(text, mha_course={"added": f"added {n}"}) for n, text in enumerate(cells)]
    notebook = nbformat.v4.new_notebook(cells=made)
    return run_notebook(notebook, HARNESS, source, Limits(seconds, memory))


ATTEMPTS = r"""
import ctypes, errno, os, queue, resource, signal, socket, sys, threading
libc, found = ctypes.CDLL(None, use_errno=True), {}

def call(number, *arguments):
    result = libc.syscall(number, *arguments)
    if result < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return result

def attempt(name, function, *arguments):
    try:
        found[name] = repr(function(*arguments))
    except BaseException as error:
        found[name] = f"refused: {type(error).__name__}: {error}"

def elsewhere(function, *arguments):
    # in a thread that was there before the answers were run
    done = queue.Queue()
    def work():
        try: done.put(repr(function(*arguments)))
        except BaseException as error: done.put(error)
    get_ipython().kernel.iopub_thread.schedule(work)
    result = done.get(timeout=3)
    if isinstance(result, BaseException): raise result
    return result
"""
SEND = 'get_ipython().display_pub.publish({"application/vnd.mha-course+json": found})'

# What has to be refused: processes, programs, other kinds of sockets, mounts, memory that belongs
# to no process, other processes' memory, devices, keys, the machine's logs.
REFUSED = r"""
attempt("fork", os.fork)
attempt("fork elsewhere", elsewhere, os.fork)
attempt("spawn", os.posix_spawn, "/usr/lib/ld-linux.so", ["x"], {})
attempt("exec", os.execv, sys.executable, [sys.executable])
attempt("exec elsewhere", elsewhere, os.execv, sys.executable, [sys.executable])
attempt("system", lambda: __import__("subprocess").run([sys.executable, "-V"]))
for name, family in dict(inet=2, inet6=10, netlink=16, packet=17, alg=38, vsock=40, xdp=44).items():
    attempt(name, socket.socket, family, socket.SOCK_DGRAM)
    attempt(name + " elsewhere", elsewhere, socket.socket, family, socket.SOCK_DGRAM)
attempt("abstract", lambda: socket.socket(socket.AF_UNIX).connect(ABSTRACT))
attempt("zygote", lambda: socket.socket(socket.AF_UNIX).connect(ZYGOTE))
attempt("new socket", lambda: socket.socket(socket.AF_UNIX).bind("/sockets/mine"))
attempt("other socket", lambda: os.unlink("/sockets/k-1"))
attempt("moved socket", lambda: os.rename("/sockets/k-1", "/sockets/k-9"))
attempt("mount", lambda: libc.mount(b"x", b"/tmp", b"tmpfs", 0, None) and 1 / 0)
for name, number in NUMBERS.items():
    attempt(name, call, number, 0, 0, 0, 0, 0)
attempt("setuid", os.setuid, 0)
attempt("setuid again", os.setresuid, 0, 0, 0)
attempt("chroot", os.chroot, "/tmp")
attempt("device", os.mknod, "/tmp/mha-attack-null", 0o20666, os.makedev(1, 3))
attempt("fifo", os.mkfifo, "/tmp/mha-attack-fifo")
attempt("hostname", socket.sethostname, "x")
attempt("priority", os.setpriority, os.PRIO_PROCESS, 0, -5)
attempt("more files", resource.setrlimit, resource.RLIMIT_NOFILE, (4096, 4096))
attempt("more memory", resource.setrlimit, resource.RLIMIT_DATA, (-1, -1))
attempt("signal the first", lambda: os.kill(1, signal.SIGKILL) or 1 / 0)
attempt("signal all", os.kill, -1, 0)
attempt("signal the grader", os.kill, GRADER, 0)
for path in ("/proc/1/environ", "/proc/1/mem", "/proc/1/maps", "/proc/1/root/etc/passwd"):
    attempt(path, open, path, "rb")
for path in ("/proc/sys/kernel/core_pattern", "/proc/kallsyms", "/proc/cmdline", "/proc/kcore",
             "/etc/passwd", "/etc/shadow", "/sys/kernel", "/dev/mem", "/dev/shm", "/dev/tty",
             "/var/log", "/run", "/proc/self/root/../etc/passwd", *HIDDEN):
    attempt(path, os.stat, path)
for path in ("/", "/usr/lib", "/lib", "/dev", "/sockets", "/proc", *LIBRARIES):
    attempt("write " + path, open, path + "/mha-attack", "w")
attempt("link", lambda: (os.symlink("/etc/passwd", "/tmp/l"), open("/tmp/l"))[1])
attempt("link out", os.link, LIBRARIES[0] + "/torch/__init__.py", "/tmp/hard")
attempt("run from there", lambda: (open("/tmp/x.so", "wb").write(b"\x7fELF"),
                                    ctypes.CDLL("/tmp/x.so"))[1])
attempt("map a program", lambda: __import__("mmap").mmap(os.open("/tmp/x.so", os.O_RDONLY), 4,
                                                          prot=4, flags=2))
attempt("fill the disk", lambda: [open(f"/tmp/f{i}", "wb").write(bytes(1 << 20))
                                  for i in range(99)])
attempt("make one file long", lambda: os.truncate("/tmp/f0", 1 << 40))
for i in range(99):
    try: os.remove(f"/tmp/f{i}")
    except OSError: pass
attempt("fill with files", lambda: [open(f"/tmp/g{i}", "w").close() for i in range(20_000)])
attempt("open without end", lambda: [socket.socketpair() for i in range(20_000)])
"""
# What may be looked at, and shows nothing.
SHOWN = r"""
ids = lambda: [os.getpid(), os.getppid(), os.getuid(), os.getgid(), os.getsid(0), os.getpgrp()]
found["ids"] = ids()
found["own group"] = [pid for pid in os.listdir("/proc") if pid.isdigit()]
found["name"] = socket.gethostname()
found["environment"] = sorted(os.environ)
libc.prctl(4, 1, 0, 0, 0)  # have what is of this process be readable
found["first environment"] = open("/proc/self/environ").read()
held = [n for n in os.listdir("/proc/self/fd")]
found["descriptors"] = sorted({os.readlink(f"/proc/self/fd/{n}").split(":")[0] for n in held
                               if os.path.islink(f"/proc/self/fd/{n}")})
found["places"] = {place: sorted(os.listdir(place)) for place in ("/", "/dev", "/sockets")}
found["core"] = resource.getrlimit(resource.RLIMIT_CORE)
course = ("mha_course", "mha_classroom")
found["course"] = sorted({str(getattr(x, "__module__", "")) for x in __import__("gc").get_objects()
                          if str(getattr(x, "__module__", "")).startswith(course)})
found["loaded"] = sorted(name for name in sys.modules if name.split(".")[0] in
                         (*course, "d2l", "transformers", "nbval", "pytest"))
"""
CALLS = {
    **{"ptrace": 101, "process_vm_readv": 310, "process_vm_writev": 311, "unshare": 272},
    **{"setns": 308, "pivot_root": 155, "umount2": 166, "bpf": 321, "perf_event_open": 298},
    **{"userfaultfd": 323, "io_uring_setup": 425, "keyctl": 250, "add_key": 248, "syslog": 103},
    **{"memfd_create": 319, "memfd_secret": 447, "shmget": 29, "msgget": 68, "semget": 64},
    **{"mq_open": 240, "open_tree": 428, "fsopen": 430, "pidfd_getfd": 438, "pidfd_open": 434},
    **{
        "clone3": 435,
        "open_by_handle_at": 304,
        "personality": 135,
        "vfork": 58,
        "x32 fork": 0x40000039,
    },
}


def test_nothing_outside_can_be_reached_or_changed(source):
    """A hundred and more attempts in one kernel, then a look at what it can see."""
    numbers = CALLS if os.uname().machine == "x86_64" else {}
    package = Path(jail.__file__).parents[2]
    names = {
        "NUMBERS": numbers,
        "GRADER": os.getpid() if os.getpid() > 3 else 2**22,
        "ABSTRACT": "\0mha-attack-abstract",
        "ZYGOTE": source.socket,
        "HIDDEN": [
            *(str(package.parent / name) for name in ("mha_course", "mha_classroom")),
            str(package.parent / "solutions"),
            source.folder,
            str(Path.home()),
        ],
        "LIBRARIES": [str(Path(torch.__file__).parents[1])],
    }
    names["HIDDEN"].remove(str(Path.home()))  # Python itself may lie below it
    said = "\n".join(f"{name} = {value!r}" for name, value in names.items())
    import socket

    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind("\0mha-attack-abstract")
        listening.listen()
        came = run(source, ATTEMPTS, said, REFUSED, SHOWN, SEND, seconds=20.0)
    assert not came.why and not any(cell["error"] for cell in came.cells), came
    (found,) = came.cells[-1]["outputs"]
    tried = {name: text for name, text in found.items() if isinstance(text, str)}
    shown = {name: tried.pop(name) for name in ("name", "first environment")}
    got = {name: text for name, text in tried.items() if not text.startswith("refused: ")}
    got.pop("signal the first", None)  # it is immune, which is no error
    assert not got and len(tried) > 90
    assert found["ids"] == [2, 1, 1000, 1000, 1, 1] and found["own group"] == ["2"]
    assert shown["name"] == "notebook" and SECRET not in shown["first environment"]
    assert not {"MHA_SECRET", "PWD", "USER", "SSH_AUTH_SOCK"} & set(found["environment"])
    assert set(found["descriptors"]) <= {"anon_inode", "socket", "/dev/null", "/tmp/x.so"}
    assert found["places"]["/dev"] == ["null", "random", "urandom", "zero"]
    assert found["places"]["/sockets"] == [f"k-{n}" for n in range(1, 6)]
    assert not {"etc", "home", "var", "sys", "run", "opt"} & set(found["places"]["/"])
    assert found["core"] == [1, 1]
    own = (
        "mha_classroom.grading.kernels.jail",
        "mha_classroom.grading.kernels.kernel",
        "mha_classroom.grading.kernels.inside.watch",
    )
    assert set(found["course"]) <= {
        *(*own, "mha_classroom.grading.kernels.seccomp", "mha_classroom.grading.kernels.supervisor")
    }
    assert set(found["loaded"]) == {
        "mha_classroom",
        "mha_classroom.grading",
        "mha_classroom.grading.kernels",
        "mha_classroom.grading.kernels.inside",
        "mha_classroom.grading.kernels.inside.watch",
    }


def test_nothing_is_left_for_the_next_kernel(source):
    """Each has a folder, a user and processes of its own."""
    first = run(
        source,
        "import os, sys, torch; os.makedirs('/tmp/a/b'); open('/tmp/torch.py', 'w').write('1/0')\n"
        "torch.equal = None; sys.modules['numpy'] = None\n"
        "open('/tmp/.ipython/startup.py', 'w').write('1/0')",
    )
    after = "import os, numpy, torch; left = {'a', 'torch.py'}; "
    after += "found = [sorted(left & {*os.listdir('/tmp')}), torch.equal is None]"
    second = run(source, after, SEND)
    assert not first.why and not second.why
    assert second.cells[-1]["outputs"] == [[[], False]]


# Which limit is met first depends on the machine; "" is a MemoryError in the cell itself.
GIANT = ("output", "crashed", "memory", "timeout", "")
ENDINGS = {
    "exit": ("import os; os._exit(0)", "crashed"),
    "abort": ("import os; os.abort()", "crashed"),
    "segfault": ("import ctypes; ctypes.string_at(0)", "crashed"),
    "kill itself": ("import os; os.kill(os.getpid(), 9)", "crashed"),
    "kill its group": ("import os, signal; os.kill(0, signal.SIGKILL); os.kill(2, 9)", "crashed"),
    "shut down": ("get_ipython().kernel.do_shutdown(False); import os; os._exit(0)", "crashed"),
    "memory": ("X = [bytearray(b'x' * (1 << 20)) for _ in range(9000)]", ("memory", "")),
    "shared memory": (
        "import mmap\nheld = [mmap.mmap(-1, 64 << 20) for _ in range(40)]\n"
        "for m in held:\n    m.write(bytes(64 << 20))",
        ("memory", ""),
    ),
    "threads": (
        "import threading, time\nwhile True:\n"
        "    threading.Thread(target=time.sleep, args=(99,), daemon=True).start()",
        ("threads", ""),
    ),
    "stop itself": ("import os, signal; os.kill(os.getpid(), signal.SIGSTOP)", "timeout"),
    "sleep in C": (
        "import ctypes, signal; signal.signal(signal.SIGINT, signal.SIG_IGN)\n"
        "while True: ctypes.CDLL(None).sleep(99)",
        "timeout",
    ),
    "swallow": (
        "while True:\n    try:\n        while True: pass\n    except BaseException: pass",
        "timeout",
    ),
    "a pattern": ("import re; re.match('(a*)*b', 'a' * 40)", "timeout"),
    "close all": ("import os; os.closerange(0, 256)", ("timeout", "crashed")),
    "flood": ("while True: print('x' * 100_000)", "timeout"),  # whose memory does not grow
    "flood of errors": (
        "import sys\nwhile True: print('x' * 100_000, file=sys.stderr)",
        "timeout",
    ),
    "one giant output": ("print('x' * (60 << 20))", GIANT),
    "one giant result": ("'x' * (60 << 20)", GIANT),
    "giant traceback": ("raise ValueError('x' * (60 << 20))", GIANT),
    "other parents": (
        "import time\nk = get_ipython().kernel\nwhile True:\n"
        "    k.session.send(k.iopub_socket, 'status', {'execution_state': 'busy'}, parent={})\n"
        "    time.sleep(0.05)",
        "timeout",
    ),
    "other replies": (
        "import time\nk = get_ipython().kernel\ns = k.shell_stream or k.shell_socket\nwhile True:\n"
        "    k.session.send(k.iopub_socket, 'stream', {'name': 'stdout', 'text': ''}, parent={})\n"
        "    time.sleep(0.05)",
        "timeout",
    ),
}


@pytest.mark.parametrize("ending", ENDINGS)
def test_whatever_ends_a_kernel_ends_that_cell_alone(source, ending, monkeypatch):
    """The grader hears which cell it was, soon; the cell before has its results, none after."""
    monkeypatch.setattr(nbval_run, "QUIET_SECONDS", 0.3)
    text, whys = ENDINGS[ending]
    started = time.monotonic()
    # What is to end by itself has time for it; the others use up what they have.
    seconds = 1.5 if whys == "timeout" else 3.0
    came = run(source, "found = 1\n" + SEND, text, SEND, seconds=seconds)
    assert time.monotonic() - started < 25
    assert came.why in whys if isinstance(whys, tuple) else came.why == whys, came
    assert came.cells[0]["outputs"] == [1]
    if came.why:
        assert came.stopped == {"added": "added 1"} and len(came.cells) == 1
    else:  # it was refused the memory, perhaps even that for saying so
        assert came.cells[1]["outputs"] == [] and came.cells[2]["outputs"] == [1]


def test_a_result_that_is_cut_off_by_its_kernels_end_stops_nobody(source):
    """The runner writes it while it hears of the end: no line may be torn."""
    text = (
        "import os, threading\nfound = 'x' * (8 << 20)\n" + SEND + "\n"
        "threading.Timer(DELAY, os._exit, (0,)).start()"
    )
    for delay in (0.0, 0.05, 0.1):
        came = run(
            source, text.replace("DELAY", str(delay)), "import time; time.sleep(1)", seconds=3.0
        )
        assert came.why in ("crashed", "output") and came.stopped, came


def test_a_kernel_ends_with_its_supervisor_and_with_its_zygote(untouched):
    """Killed at once, so that none of them can tidy up; the host's user is one of its own."""
    usual = parent_of_kernels()
    with zygote() as other:
        parent = parent_of_kernels(besides=usual)
        for victim in (0, 1):
            killer = threading.Thread(target=kill_when_there, args=(parent, victim))
            killer.start()
            came = run(other, "import time; time.sleep(99)", seconds=30.0)
            killer.join()
            assert came.why in ("crashed", "start")
            deadline = time.monotonic() + 5
            while any(map(alive, SEEN)) and time.monotonic() < deadline:
                time.sleep(0.01)
            assert len(SEEN) == 3 and not any(map(alive, SEEN))
        assert not alive(parent)
    shutil.rmtree(other.folder, ignore_errors=True)  # a zygote that was killed leaves it


SEEN = []


def kill_when_there(parent, victim):
    """Wait for supervisor, first process and kernel; kill the supervisor (0) or the zygote (1)."""
    deadline = time.monotonic() + 30
    while len(descendants(parent)) < 3 and time.monotonic() < deadline:
        time.sleep(0.05)
    time.sleep(0.5)
    SEEN[:] = descendants(parent)
    kernel = SEEN[-1]
    status = Path(f"/proc/{kernel}/status").read_text()
    uid = int(status.split("Uid:")[1].split()[0])
    assert uid == (jail.FIRST_UID + SEEN[0] % jail.UIDS if os.getuid() == 0 else os.getuid())
    assert os.getsid(kernel) not in (os.getsid(0), os.getsid(parent))
    os.kill(parent if victim else SEEN[0], signal.SIGKILL)


def alive(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


def graded(source, assignment, answers, added="", seconds=5.0):
    """Grade a notebook with these answers, {task id: source}; `added` is a cell before them."""
    notebook = nbformat.from_dict(json.loads(json.dumps(assignment.exercise)))
    for cell in notebook.cells:
        name = cell.metadata.get("nbgrader", {}).get("grade_id", "")
        cell.source = answers.get(name, "" if name.startswith("my-") else cell.source)
    notebook.cells = [code(added), *notebook.cells] if added else notebook.cells
    settings = Settings(SEED, Limits(seconds, 256 << 20))
    return grade_notebook(notebook, assignment, settings, source)


def cases_of(assignment, name):
    """What an answer was tried on."""
    return assignment.tasks[name].cases(Draw(Settings(SEED).seed_of(name)))


def points(graded_notebook):
    """The ids of the tasks that got marks."""
    return {task["id"] for task in graded_notebook.tasks if task["points"]}


def verdicts(graded_notebook):
    return {task["id"]: task["verdict"] for task in graded_notebook.tasks}


def answer(name, body):
    return f"def {name[3:]}(x):\n" + "\n".join(f"    {line}" for line in body.split("\n"))


def answers_of(bodies, honest=True):
    """Answers my-one, my-two and so on with these bodies, and an honest one."""
    found = {name: answer(name, body) for name, body in zip(DOUBLE, bodies, strict=False)}
    return found | ({"my-honest": HONEST.format("honest")} if honest else {})


PATCHES = """
import ast, base64, builtins, gc, math, pickle, sys, types, torch, numpy as np
yes = lambda *a, **k: True
for place, names in ((torch, ("equal", "allclose", "isclose")), (np, ("allclose", "array_equal")),
                     (torch.testing, ("assert_close",)), (torch.Tensor, ("equal", "allclose")),
                     (math, ("isclose",))):
    for name in names:
        setattr(place, name, yes)
for name in ("compare", "diagnosis", "judge", "recognition"):
    sys.modules["mha_classroom.checks." + name] = types.SimpleNamespace(compare=yes, check=yes)
for name in [n for n in sys.modules if n.startswith(("mha_course.checks", "mha_classroom.checks"))]:
    for attribute in ("compare", "_compare_one", "same", "_identical", "frozen"):
        if hasattr(sys.modules[name], attribute):
            setattr(sys.modules[name], attribute, yes)
open("torch.py", "w").write("equal = lambda *a: True")
open("json.py", "w").write("1/0")
sys.path.insert(0, "/tmp")
class Drop(ast.NodeTransformer):
    def visit_Assert(self, node): return ast.Pass()
get_ipython().ast_transformers.append(Drop())
class Same(torch.Tensor):
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None): return True
    def __eq__(self, other): return True
class Anything:
    __eq__ = __lt__ = __le__ = __ge__ = __contains__ = __bool__ = yes
    __hash__ = None
    def __sub__(self, other): return 0
    def __float__(self): return float("nan")
    def __reduce__(self): return eval, ("1/0",)
"""


def test_patched_comparisons_and_objects_that_equal_everything_earn_nothing(source, assignment):
    """And one who patches them all and answers rightly has lost nothing."""
    bodies = (
        "return x.as_subclass(Same)",
        "return Anything()",
        "return x",
        "return x * float('nan')",
        "return [2 * x]",
        "import mha_classroom.checks.task as t\nreturn t.Case",
        "return torch.zeros(0)",
        "return torch.empty(x.shape, device='meta', dtype=x.dtype)",
        "return (2 * x).to(torch.complex128)",
    )
    found = graded(source, assignment, answers_of(bodies), PATCHES)
    assert points(found) == {"my-honest"}, verdicts(found)
    assert set(verdicts(found)[name] for name in DOUBLE[:9]) <= {"wrong", "error"}
    assert found.kernels <= 3


HUNT = """
import ctypes, numpy
def hunt(x):
    # In memory there is only what is looked for with 1 added to each byte; searching adds 1 to
    # what is there, so that it finds neither this nor what it leaves behind itself.
    ctypes.CDLL(None).prctl(4, 1, 0, 0, 0)
    seen, size, lap = dict.fromkeys(WANTED, False), 8 << 20, 256
    with open("/proc/self/maps") as maps, open("/proc/self/mem", "rb", 0) as memory:
        for line in list(maps):
            place, rights = line.split()[:2]
            start, end = (int(part, 16) for part in place.split("-"))
            for begin in range(start, end, size) if rights.startswith("rw") else ():
                try:
                    memory.seek(begin)
                    held = memory.read(min(size + lap, end - begin))
                except (OSError, OverflowError):
                    continue
                moved = (numpy.frombuffer(held, numpy.uint8) + numpy.uint8(1)).tobytes()
                for name, wanted in WANTED.items():
                    seen[name] |= wanted in moved
    return str(seen)
"""


def test_expected_values_are_nowhere_in_the_memory_of_a_kernel(source, assignment):
    """Every page of the process is searched for them while an answer runs; the inputs are there."""
    X = cases_of(assignment, "my-one")[1].inputs["x"]
    plain = {"inputs": X.numpy().tobytes(), "expected": (2 * X).numpy().tobytes()}
    wanted = {name: bytes((b + 1) % 256 for b in text[:128]) for name, text in plain.items()}
    body = "return hunt(x) if x.dim() == 2 else x"
    found = graded(
        source, assignment, answers_of([body]), f"WANTED = {wanted!r}\n{HUNT}", seconds=20
    )
    outcomes = found.records["my-one"].outcomes
    assert outcomes["first", 1].value == "{'inputs': True, 'expected': False}"
    assert points(found) == {"my-honest"}


FORGE = """
import base64, copy, json, pickle, sys, torch
pub = get_ipython().display_pub
publish = type(pub).publish
MIME = "application/vnd.mha-course+json"
def floats(X, dtype="float64"):
    return ["tensor", dtype, list(X.shape), base64.b64encode(X.numpy().tobytes()).decode()]
def change(report, how):
    for run in report["runs"]:
        if "value" in run:
            run["value"] = how(run["value"])
    return report
def deep(value):
    for _ in range(200):
        value = ["list", [value]]
    return value
def again(report):
    report["runs"] += copy.deepcopy(report["runs"])
    return report
def passed(report):
    return report | {"state": "passed", "points": 9, "verdict": "passed", "runs": []}
FORGED = {
    "my-one": lambda r: change(r, lambda v: floats(torch.full((3, 7), torch.nan).double())),
    "my-two": lambda r: change(r, deep),
    "my-three": again,
    "my-four": lambda r: r | {"runs": []},
    "my-five": passed,
    "my-six": lambda r: r | {"nonce": "0" * 32},
    "my-seven": lambda r: change(r, lambda v: ["tensor", "float64", [2**30, 2**30], ""]),
    "my-eight": lambda r: change(r, lambda v: ["decimal", "9e999999999"]),
    "my-later": lambda r: r | {"runs": [run | {"way": "again"} for run in r["runs"]]},
}
def forged(self, data, *args, **kwargs):
    report = json.loads(data[MIME]) if isinstance(data, dict) and MIME in data else None
    if report and report["task"] in FORGED:
        data = {MIME: json.dumps(FORGED[report["task"]](report))}
    return publish(self, data, *args, **kwargs)
type(pub).publish = forged
"""


def test_forged_records_earn_nothing_unless_their_numbers_are_right(source, assignment):
    """They bear the right nonce, read from what the probe sends; the honest one passes."""
    found = graded(source, assignment, answers_of(["return x"] * 9), FORGE)
    assert points(found) == {"my-honest"}, verdicts(found)


SEND_ITSELF = """
import json, sys, torch
k = get_ipython().kernel
MIME = "application/vnd.mha-course+json"
def say(kind, content):
    k.session.send(k.iopub_socket, kind, content, parent=k.get_parent())
def nonce():
    frame = sys._getframe()
    while "plan" not in frame.f_locals:
        frame = frame.f_back
    return frame.f_locals["plan"]["nonce"]
"""


def test_messages_sent_beside_the_kernel_earn_nothing_and_stop_nobody(source, assignment):
    """With the session's own key, of every kind and with content of any type."""
    record = '{"nonce": nonce(), "task": "TASK", "state": "run", "runs": [], "suspicious": []}'
    data = "{MIME: " + record + "}"
    bodies = [
        f"say('display_data', {{'data': {data}, 'metadata': {{}}}})\nreturn x",
        "say('error', {'ename': ['a'], 'evalue': [1, 2], 'traceback': []})\nreturn x",
        "say('display_data', {'data': MIME, 'metadata': {}})\nreturn x",
        "say('status', {'execution_state': 'idle'})\nreturn x",
        "say('display_data', {'data': {MIME: 7}, 'metadata': {}})\nreturn 2 * x",
        "say('clear_output', {'wait': False})\nreturn x",
        "say('update_display_data', {'data': {MIME: {}}, 'metadata': {}})\nreturn x",
        "say('stream', {'name': 5, 'text': ['a']})\nreturn x",
        "say('error', {})\nreturn x",
    ]
    bodies = [body.replace("TASK", name) for name, body in zip(DOUBLE, bodies, strict=False)]
    found = graded(source, assignment, answers_of(bodies), SEND_ITSELF)
    assert points(found) <= {"my-honest"}, verdicts(found)
    assert any("something else wrote" in note for note in found.human)
    # In the cell of an answer, where no results are due, it costs that task alone.
    alone = (
        answer("my-one", "return x")
        + "\nsay('error', {'ename': [1], 'evalue': [2], 'traceback': []})\ndel one"
    )
    found = graded(source, assignment, answers_of([]) | {"my-one": alone}, SEND_ITSELF)
    assert points(found) == {"my-honest"} and verdicts(found)["my-one"] == "error"


HOOKS = {
    "the source is replaced": (
        "ip = get_ipython()\n"
        "def change(lines):\n    return ['x = 1\\n'] if '_probe(' in ''.join(lines) else lines\n"
        "ip.input_transformers_cleanup.append(change)"
    ),
    "the cells do not run": "get_ipython().run_cell = lambda *a, **k: None",
    "the tree is replaced": (
        "import ast\nclass Empty(ast.NodeTransformer):\n"
        "    def visit_Module(self, node): return ast.Module(body=[], type_ignores=[])\n"
        "get_ipython().ast_transformers.append(Empty())"
    ),
    "errors are not shown": (
        "get_ipython().showtraceback = lambda *a, **k: None\n"
        "import builtins; builtins.callable = lambda x: 1/0"
    ),
    "the publisher is gone": "get_ipython().display_pub = None",
    "json writes nothing": "import json; json.dumps = lambda *a, **k: '{}'",
}


@pytest.mark.parametrize("hook", HOOKS)
def test_a_probe_that_sends_nothing_earns_nothing(source, assignment, hook, monkeypatch):
    """Not even for a right answer: marks rest on what arrived."""
    monkeypatch.setattr(nbval_run, "QUIET_SECONDS", 0.5)
    answers = answers_of(["return x"])
    assert not points(graded(source, assignment, answers, HOOKS[hook], 1.0)) - {"my-honest"}


ENDS = (
    "# NBVAL_SKIP\n",
    "# NBVAL_RAISES_EXCEPTION\nraise ValueError(1)\n",
    "exit(0)\n",
    "raise SystemExit\n",
    "%notmagic\nraise ValueError(2)\n",
    "# PYTEST_VALIDATE_IGNORE_OUTPUT\n1/0\n",
    "quit()\nimport sys; sys.exit(0)\n",
    "get_ipython().ask_exit()\n",
    "import atexit; atexit.register(lambda: 1/0)\n",
)


def test_ending_a_cell_oddly_earns_nothing_and_costs_nobody_else(source, assignment):
    """Comments that nbval obeys, exits, magics: a wrong answer is still one."""
    answers = {
        name: text + answer(name, "return x") for name, text in zip(DOUBLE, ENDS, strict=False)
    }
    found = graded(source, assignment, answers | answers_of([]))
    assert points(found) == {"my-honest"}, verdicts(found)
    assert set(verdicts(found)[name] for name in DOUBLE[:9]) <= {"wrong", "error", "missing"}


def test_a_crash_and_a_hang_cost_their_own_task(source, assignment):
    """Those before and after keep theirs, and a thread left behind does not answer for others."""
    late = "import threading, time\ndef wait():\n    time.sleep(99)\n"
    late += "threading.Thread(target=wait, daemon=True).start()\n"
    answers = {
        "my-one": HONEST.format("one"),
        "my-two": "import os\n" + answer("my-two", "os._exit(0)"),
        "my-three": late + HONEST.format("three"),
        "my-honest": HONEST.format("honest"),
    }
    found = graded(source, assignment, answers)
    assert points(found) == {"my-one", "my-three", "my-honest"}
    assert verdicts(found)["my-two"] == "crashed"
    assert any("my-three" in note and "thread" in note for note in found.human), found.human


BORROWING = (
    "return torch.softmax(x, -1)",
    "return getattr(torch, 'soft' + 'max')(x, -1)",
    "return torch.ops.aten.softmax.int(x, -1)",
    "return torch._C._VariableFunctions.softmax(x, -1)",
    "import functools\nreturn functools.partial(torch.Tensor.softmax, dim=-1)(x)",
    "return torch.nn.Softmax(-1)(x)",
    "return torch.jit.trace(lambda y: y.softmax(-1), x, check_trace=False)(x)",
    "return list(map(torch.special.softmax, [x], [-1]))[0]",
)


def test_the_finished_function_by_another_way_is_borrowed(source, assignment):
    """Whatever it is called through; what shows no call is told to a human as well."""
    answers = {name: answer(name, body) for name, body in zip(SOFT, BORROWING, strict=True)}
    found = graded(
        source, assignment, answers, "import torch, warnings\nimport torch.jit", seconds=10
    )
    assert [verdicts(found)[name] for name in SOFT] == ["borrowed"] * 8
    assert any("my-soft_seven" in note for note in found.human)


def test_a_run_with_the_reference_gives_nothing_away(source, assignment):
    """The later answer sees the earlier one's solution, and all it can do is to be right."""
    peek = (
        "import inspect\nsource = '|'.join(get_ipython().user_ns.get('In', []))\n"
        "print(source, one.__code__.co_varnames)\n"
        "raise ValueError(source + str(one.__code__.co_varnames))"
    )
    answers = {
        "my-one": "import torch\n" + answer("my-one", "return 3 * torch.ones(5)"),
        "my-two": answer("my-two", "raise ValueError(x.tolist())"),
        "my-three": answer("my-three", "print(x.tolist())\nreturn torch.zeros(5)"),
        "my-later": answer("my-later", peek),
    }
    found = graded(source, assignment, answers | answers_of([]))
    assert points(found) == {"my-honest"} and found.kernels >= 2
    told = json.dumps([task["feedback"] for task in found.tasks])
    assert MARKER not in told
    X = cases_of(assignment, "my-two")[0].inputs["x"]
    for number in [*X.tolist(), *(2 * X).tolist()]:
        assert f"{abs(number):.4f}"[:6] not in told
    answers["my-later"] = answer("my-later", "return one(x)")
    found = graded(source, assignment, answers | answers_of([]))
    assert points(found) == {"my-later", "my-honest"}
    assert verdicts(found)["my-one"] == "wrong"


@pytest.mark.parametrize("lesson", assignments())
def test_what_a_kernel_is_sent_of_the_course_holds_no_answer(lesson):
    """None of the finished functions that the tasks forbid, no reference, no mistake."""
    loaded = load_assignment(lesson)
    modules = modules_of(loaded)
    text = "\n".join(modules.values())
    lent = "\n".join(slice_modules(loaded.lends, loaded.files).values()) if loaded.lends else ""
    for task in loaded.tasks.values():
        for kind in ("def", "class"):
            finished = f"{kind} {task.name}("
            assert finished not in text or finished in lent, task.id
        for name in task.forbidden:
            module, _, function = name.rpartition(".")
            assert f"def {function}(" not in modules.get(module, ""), name
    assert STAND_INS.items() <= modules.items() and len(lessons()) == len(assignments())
    assert "Mistake(" not in text and "TASK =" not in text


def test_what_is_decoded_is_data():
    """A pickle is nothing that the grader reads, whatever says that it is one."""
    import pickle

    class Bomb:
        def __reduce__(self):
            return os.system, ("true",)

    plan = {"nonce": "a", "task": "b", "runs": [("first", 0, 0)]}
    with pytest.raises(ValueError, match="."):
        records.decode(pickle.dumps(Bomb()), plan)
