"""Grade a class while something goes wrong, and again with --resume: a row for each fault.

`python tests/grading/grade_under_faults.py` prints the table; it takes some minutes. Of each fault
it says how the command ended, how many of the honest submissions had full marks then and how many
after one --resume, and how long the first run took beside its bound.
"""

import contextlib
import dataclasses
import json
import os
import resource
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from attack_kit import children, command_of
from grading_class import CLASS, LESSON, POINTS, ROOT, SPLIT, body, write_class

WHOLE = sum(POINTS.values())
HONEST, TIMEOUT, DEADLINE, WORKERS = 6, 10, 60, 2
START = 300  # seconds for the imports and the self-check, which are no submission's
MOST = 70  # processes and threads where they are scarce
PIDS = Path("/sys/fs/cgroup/pids")  # where it is in the second version of control groups: above
GROUP = (PIDS if PIDS.is_dir() else PIDS.parent) / f"mha-faults-{os.getpid()}"
FOR_A_WHILE = 15  # seconds
BUSY = "while True: pass"
SLEEPING = f"import time; time.sleep({FOR_A_WHILE})"
BAD = {
    "hangs": "while True: pass",
    "sleeps": "import time; time.sleep(99)",
    "keys": "return {f'{n}' + '1' * 10_000: n for n in range(500)}",
    "hashes": "return {n * (2**61 - 1): n for n in range(30_000)}",
    "threads": "import threading\n    for _ in range(50):\n"
    "        threading.Thread(target=lambda: [X @ X.mT for _ in range(10**9)]).start()\n"
    "    return X",
}


def write_all(folder):
    """The honest and the bad ones, in turn; returns how many there are."""
    honest = next(h for h in CLASS if not h.verdicts and not h.problem and h.lesson == LESSON)
    handed = [dataclasses.replace(honest, student=f"honest {n}") for n in range(HONEST)]
    handed += [
        dataclasses.replace(honest, student=f"bad {kind}", answers={SPLIT: body(SPLIT, text)})
        for kind, text in BAD.items()
    ]
    write_class(folder, handed)
    return len(handed)


def begun(out, count=1, seconds=300):
    """Wait until so many submissions are graded."""
    until = time.monotonic() + seconds
    while len(list(out.glob(".grading/results/*.json"))) < count and time.monotonic() < until:
        time.sleep(0.1)


def split(grader):
    """(The zygotes, the workers) of a grader."""
    below = children(grader)
    zygotes = [pid for pid in below if b"kernels.zygote" in command_of(pid)]
    return zygotes, [pid for pid in below if pid not in zygotes]


def kill_zygotes(grader, out):
    for count in (1, 3):
        begun(out, count)
        for pid in split(grader)[0]:
            os.kill(pid, signal.SIGKILL)


def hold_a_worker(grader, out):
    begun(out)
    os.kill(split(grader)[1][0], signal.SIGSTOP)


@contextlib.contextmanager
def others(source, count, **how):
    """Other processes that run this, as long as it is needed."""
    running = [subprocess.Popen([sys.executable, "-S", "-c", source], **how) for _ in range(count)]
    try:
        yield
    finally:
        for process in running:
            process.kill()
            process.wait()


def take_processes(grader, out):
    begun(out)
    room = MOST - 12
    with contextlib.suppress(OSError), others(SLEEPING, room, preexec_fn=become_limited):
        time.sleep(FOR_A_WHILE)


def take_processors(grader, out):
    with others(BUSY, 4 * len(os.sched_getaffinity(0))):
        os.waitid(os.P_PID, grader, os.WEXITED | os.WNOWAIT)


FAULTS = {
    "none": lambda grader, out: None,
    "the zygote is killed": kill_zygotes,
    "a worker is held": hold_a_worker,
    "processes are scarce": take_processes,
    "processors are busy": take_processors,
}


def become_limited():
    """Be of those who may have few processes together: in a group of root's, else as this user."""
    if os.geteuid():
        resource.setrlimit(resource.RLIMIT_NPROC, (MOST, MOST))
    else:
        GROUP.mkdir(exist_ok=True)
        (GROUP / "pids.max").write_text(str(MOST))
        (GROUP / "cgroup.procs").write_text(str(os.getpid()))


def grade(base, *options, limited=False):
    command = [sys.executable, "-m", "mha_classroom.commands.cli", "grade", str(base / "in")]
    command += ["--out", str(base / "out"), "--timeout", str(TIMEOUT), "--workers", str(WORKERS)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "HOME": str(base), "TMPDIR": str(base)}
    with open(base / "said", "a") as said:
        return subprocess.Popen(
            [*command, "--deadline", str(DEADLINE), *options],
            env=environment | {"PYTHONDONTWRITEBYTECODE": "1"},
            stdout=said,
            stderr=said,
            cwd=ROOT,
            preexec_fn=become_limited if limited else None,
        )


def full_marks(base):
    """How many of the honest ones have them."""
    with contextlib.suppress(OSError):
        results = json.loads((base / "out" / "results.json").read_text())["results"]
        return sum(r["student"] in honest_names() and r["points"] == WHOLE for r in results)
    return 0


def honest_names():
    return {f"honest {n}" for n in range(HONEST)}


def tried(fault):
    """The row of a fault, as a dict."""
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        base, limited = Path(folder), fault == "processes are scarce"
        count = write_all(base / "in")
        started = time.monotonic()
        grader = grade(base, limited=limited)
        FAULTS[fault](grader.pid, base / "out")
        first = grader.wait()
        row = {"fault": fault, "exit": first, "full": full_marks(base)}
        row["seconds"] = round(time.monotonic() - started)
        row["bound"] = START + DEADLINE * -(-count // WORKERS)
        row["resumed"] = grade(base, "--resume", limited=limited).wait() if first else 0
        row["full then"] = full_marks(base)
        if GROUP.is_dir():
            GROUP.rmdir()
        row["said"] = (base / "said").read_text()
    return row


def main():
    names = ("exit", "full", "resumed", "full then", "seconds", "bound")
    print(f"{'fault':24}", *(f"{name:>9}" for name in names))
    for fault in sys.argv[1:] or FAULTS:
        row = tried(fault)
        print(f"{row['fault']:24}", *(f"{row[name]:>9}" for name in names), flush=True)
        if row["full then"] < HONEST:
            print(row["said"])


if __name__ == "__main__":
    main()
