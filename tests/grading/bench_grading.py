"""How many submissions a minute can be graded? `make bench` prints two tables; Linux only.

Everyone grades honest submissions of set 04, all right, on two cores:

mha-course   `mha-course grade --workers 2`, isolated, all reports written
nbval        `pytest --nbval-lax -n 2 --dist loadfile`, as a school would without this command
nbgrader     `nbgrader autograde`, which takes one after the other

Times are of whole commands, start and self-check included; `steady` leaves those out: the time
between the first and the last result, or for the others what more submissions cost. nbgrader gets
fewer submissions and is extrapolated. CPU seconds are of all processes of a command: on a machine
where others work too they tell more than the clock.

The second table says where the computing for one submission goes, against a bare fork of a process
that has torch.
"""

import argparse
import json
import os
import re
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from pathlib import Path

from grading_copies import LESSON, ROOT, honest, submission, write_class

BIN = Path(sys.executable).parent
ENVIRONMENT = {
    **os.environ,
    **dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS"), "1"),
    "PATH": f"{BIN}{os.pathsep}{os.environ['PATH']}",
}
TARGETS = {"nbval": 3, "nbgrader": 10}


def ticks(process):
    """(parent, CPU seconds) of a process, without those of its children."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return int(fields[1]), sum(map(int, fields[11:13])) / os.sysconf("SC_CLK_TCK")


class Watch:
    """Adds up what the descendants of a process compute, by looking every few milliseconds.

    Kernels are children of a process that does not wait for them, so nobody else counts them.
    """

    def __init__(self, root, every=0.02):
        self.root, self.every = root, every
        self.seconds, self.above = {}, {}  # of each process; its parent when it was seen first
        self.stopped = threading.Event()
        self.thread = threading.Thread(target=self.run)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.stopped.set()
        self.thread.join()

    def run(self):
        while not self.stopped.wait(self.every):
            waiting = [self.root]
            while waiting:  # only these: to look at all processes takes a tenth of a core
                process = waiting.pop()
                try:
                    parent, self.seconds[process] = ticks(process)
                    for task in Path(f"/proc/{process}/task").iterdir():
                        waiting += map(int, (task / "children").read_text().split())
                except OSError:
                    continue
                if process != self.root:
                    self.above.setdefault(process, parent)

    def depth(self, process):
        """1 for children of the root, 2 for theirs."""
        parent = self.above.get(process)
        return 0 if parent is None else 1 + self.depth(parent)


def timed(words, folder):
    """Run a command; returns (seconds, CPU seconds, what it wrote)."""
    before = time.perf_counter()
    process = subprocess.Popen(
        list(map(str, words)),
        **{"cwd": folder, "env": ENVIRONMENT, "text": True},
        **{"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT},
    )
    with Watch(process.pid) as watch:
        said = process.communicate()[0]
    if process.returncode:
        raise SystemExit(f"{words[0]} failed:\n{said[-4000:]}")
    return time.perf_counter() - before, sum(watch.seconds.values()), said


def make_class(folder, count):
    write_class(folder, (submission(honest(number)) for number in range(count)))
    return folder


def run_ours(folder, count, workers):
    """(seconds, CPU seconds, full marks) of `mha-course grade`."""
    make_class(folder / "class", count)
    command = [BIN / "mha-course", "grade", "class", "--out", "marks", "--workers", workers]
    seconds, computed, _ = timed(command, folder)
    results = json.loads((folder / "marks" / "results.json").read_text("utf-8"))["results"]
    return seconds, computed, sum(result["points"] == result["max"] for result in results)


def run_nbval(folder, count, workers):
    """The same of plain nbval."""
    make_class(folder / "class", count)
    words = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-c", os.devnull]
    words += ["--rootdir", folder, "--nbval-lax", "--nbval-current-env", "-n", workers]
    seconds, computed, said = timed([*words, "--dist", "loadfile", "class"], folder)
    cells = sum(cell["cell_type"] == "code" for cell in json.loads(submission({}))["cells"])
    return seconds, computed, int(re.search(r"(\d+) passed", said)[1]) / cells


def run_nbgrader(folder, count, workers):
    """The same of nbgrader, which has one worker whatever is asked for."""
    source = folder / "source" / LESSON
    source.mkdir(parents=True)
    shutil.copy(ROOT / "solutions" / f"{LESSON}.ipynb", source)
    timed([BIN / "nbgrader", "generate_assignment", LESSON], folder)
    released = folder / "release" / LESSON / f"{LESSON}.ipynb"
    for number in range(count):
        path = folder / "submitted" / f"student{number}" / LESSON / f"{LESSON}.ipynb"
        path.parent.mkdir(parents=True)
        path.write_text(submission(honest(number), released), encoding="utf-8")
    seconds, computed, _ = timed([BIN / "nbgrader", "autograde", LESSON], folder)
    timed([BIN / "nbgrader", "export"], folder)
    rows = (folder / "grades.csv").read_text("utf-8").splitlines()
    place = [rows[0].split(",").index(name) for name in ("score", "max_score")]
    scores = [[row.split(",")[i] for i in place] for row in rows[1:]]
    return seconds, computed, sum(score == most for score, most in scores)


GRADERS = {"mha-course": run_ours, "nbval": run_nbval, "nbgrader": run_nbgrader}


def measure(name, count, workers):
    with tempfile.TemporaryDirectory() as folder:
        seconds, computed, full = GRADERS[name](Path(folder), count, workers)
    if full != count:
        raise SystemExit(f"{name} gave full marks to {full:g} of {count}")
    return seconds, computed


def print_throughput(count, few, rounds, workers):
    """Everyone in turn, `rounds` times, with many submissions and with one."""
    counts = {name: few if name == "nbgrader" else count for name in GRADERS}
    found = {name: [] for name in GRADERS}
    for _ in range(rounds):
        for name, most in counts.items():
            least = workers if name != "nbgrader" else 1
            whole, start = measure(name, most, workers), measure(name, least, workers)
            more = most - least
            steady = [(a - b) / more for a, b in zip(whole, start, strict=True)]
            found[name].append((whole[0] / most, *steady, whole[1] / most))
    print(f"\nSubmissions a minute, {workers} workers (nbgrader: 1), medians of {rounds} rounds\n")
    heads = ("whole", "ratio", "steady", "ratio", "CPU s each", "steady", "ratio")
    print(f"{'':11} {'graded':>6}", *(f"{head:>10}" for head in heads))
    middle = {
        name: [statistics.median(X) for X in zip(*found[name], strict=True)] for name in found
    }
    ours = middle["mha-course"]
    for name, (whole, steady, computed, computed_whole) in middle.items():
        row = [60 / whole, whole / ours[0], 60 / steady, steady / ours[1]]
        row += [computed_whole, computed, computed / ours[2]]
        print(f"{name:11} {counts[name]:6}", *(f"{x:10.2f}" for x in row))
    print(f"\nnbgrader graded {few}, the others {count}: its rate is taken to stay as it is.")
    for name, target in TARGETS.items():
        ratio = middle[name][1] / ours[1]
        words = "met" if ratio >= target else "NOT met"
        print(f"{ratio:.1f} times {name}, target {target}: {words}")


def print_parts(count):
    """Where the computing for one submission goes, each after the other in one process."""
    import torch

    from mha_classroom.grading.fit.assignment import load_assignment
    from mha_classroom.grading.handed_in.find_submissions import HandedIn
    from mha_classroom.grading.judge.grade_submission import grade_submission
    from mha_classroom.grading.kernels.start_zygote import zygote
    from mha_classroom.grading.settings import Settings

    torch.set_num_threads(1)
    assignment, settings = load_assignment(LESSON), Settings(seed=1)
    all_handed_in = [
        HandedIn(str(number), LESSON, content=submission(honest(number)).encode())
        for number in range(count + 1)
    ]
    with zygote() as source:
        grade_submission(all_handed_in[0], assignment, settings, source)  # what is made once
        children = Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()
        before = {int(child): ticks(child)[1] for child in children}
        started, computed = time.perf_counter(), time.thread_time()
        with Watch(os.getpid(), every=0.01) as watch:
            for one in all_handed_in[1:]:
                grade_submission(one, assignment, settings, source)
        computed, seconds = time.thread_time() - computed, time.perf_counter() - started
    parts = Counter()
    names = {2: "supervisor", 3: "jail, process 1", 4: "kernel: start, cells, probes"}
    for process, used in watch.seconds.items():
        if process == watch.root:
            continue
        top = process
        while watch.depth(top) > 1:
            top = watch.above[top]
        name = names.get(watch.depth(process), "zygote") if top in before else "nbval and pytest"
        parts[name] += used - before.get(process, 0)
    parts["decoding, judging, assembling"] = computed
    print(f"\nCPU ms for one submission, of {count} one after the other\n")
    for name, used in parts.most_common():
        print(f"{name:32} {1e3 * used / count:8.1f}")
    print(f"{'all of this':32} {1e3 * parts.total() / count:8.1f}")
    print(f"{'the clock, with waiting':32} {1e3 * seconds / count:8.1f}")
    print(f"{'a bare fork with torch':32} {1e3 * bare_fork():8.1f}")


def bare_fork(times=100):
    """CPU seconds of forking this process, which has torch, and waiting for the child's end."""

    def used():
        both = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
        return sum(usage.ru_utime + usage.ru_stime for usage in both)

    before = used()
    for _ in range(times):
        child = os.fork()
        if not child:
            os._exit(0)
        os.waitpid(child, 0)
    return (used() - before) / times


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="few submissions, one round, rough")
    parser.add_argument("--parts", action="store_true", help="only where the computing goes")
    options = parser.parse_args()

    from mha_classroom.grading.kernels.jail import unavailable

    reason = unavailable()
    if reason:
        raise SystemExit(f"This machine cannot isolate what students wrote: {reason}")
    count, few, rounds = (16, 4, 1) if options.quick else (60, 10, 3)
    if not options.parts:
        print_throughput(count, few, rounds, workers=2)
    print_parts(10 if options.quick else 20)


if __name__ == "__main__":
    main()
