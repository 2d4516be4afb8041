"""Notebooks that are after other students, the grader or its machine get nothing.

Each test asserts what has to hold in spite of them: what ended which cell, and that nothing is left
of the kernel. Many attempts share a kernel where they cannot disturb each other.
"""

import os
import shutil
import signal
import threading
import time
from pathlib import Path

import nbformat
import pytest
import torch
from attack_kit import HARNESS, SECRET, code, descendants, parent_of_kernels

from mha_classroom.grading.fit.assignment import load_assignment
from mha_classroom.grading.judge.make_plan import modules_of
from mha_classroom.grading.kernels import jail, nbval_run
from mha_classroom.grading.kernels.kernel import AWAY
from mha_classroom.grading.kernels.nbval_run import run_notebook
from mha_classroom.grading.kernels.start_zygote import zygote
from mha_classroom.grading.settings import Limits

pytestmark = pytest.mark.usefixtures("untouched")


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
    assert not came.why and not any(cell.error for cell in came.cells), came
    (found,) = came.cells[-1].outputs
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
        AWAY,
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
    assert second.cells[-1].outputs == [[[], False]]


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
    assert came.cells[0].outputs == [1]
    if came.why:
        assert came.stopped == {"added": "added 1"} and len(came.cells) == 1
    else:  # it was refused the memory, perhaps even that for saying so
        assert came.cells[1].outputs == [] and came.cells[2].outputs == [1]


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


EVERY_NAME = """
import importlib
found = {}
for name in NAMES:
    try:
        module = importlib.import_module(name)
    except Exception as error:
        found[name] = [f"refused: {type(error).__name__}"]
        continue
    own = [n for n, x in vars(module).items()
           if not n.startswith("__") and type(x) is not type(importlib)]
    if own:
        found[name] = own
"""


@pytest.mark.parametrize("lesson", ["04_head_splitting", "06_bert_attention"])
def test_no_module_of_the_course_can_be_had_by_its_name(source, lesson):
    """Each module of both packages is imported from inside: there is what was sent, and no more."""
    around = Path(jail.__file__).parents[3]
    names = [
        ".".join(path.relative_to(around).with_suffix("").parts).removesuffix(".__init__")
        for package in ("mha_course", "mha_classroom")
        for path in sorted((around / package).rglob("*.py"))
    ]
    sent = modules_of(load_assignment(lesson))
    cells = [f"NAMES = {names!r}", EVERY_NAME, SEND]
    made = [code(text, mha_course={"added": f"added {n}"}) for n, text in enumerate(cells)]
    notebook = nbformat.v4.new_notebook(cells=made)
    came = run_notebook(notebook, sent, source, Limits(20.0, 256 << 20))
    assert not came.why and not any(cell.error for cell in came.cells), came
    (found,) = came.cells[-1].outputs
    assert len(names) > 100 and set(found) <= {name for name, text in sent.items() if text}
    for name, defined in found.items():
        assert all(own in sent[name] for own in defined), name
