"""What the terminal shows: how far a run is, and at its end how the class did."""

import statistics
import sys
import textwrap
import threading
from collections import Counter, defaultdict

from mha_classroom.checks.registry import find
from mha_classroom.grading.report.safe_text import number, visible
from mha_classroom.grading.results import Verdict

__all__ = ["Progress", "summary"]

BINS = 10  # of the marks of a lesson, each a tenth of the most there are
BAR = 40  # characters of the longest bar
COMMON = 3  # mistakes named for each task
LISTED = 20
WIDTH = 96
ABSENT = "nothing was handed in"
OTHER = "(no known mistake)"


def summary(results, problems=(), aside=()):
    """Return the text that ends a run.

    results: Results with decisions applied, gone through once. problems: what could not be used of
    overrides.csv. aside: what lies in the folder and is nobody's submission.
    Properties: bars of marks for each lesson, verdicts, the most common mistakes of each task, and
        what needs a human. No name in it is more than one line or moves the cursor.
    """
    seen = _Seen()
    for result in results:
        seen.add(result)
    parts = [
        seen.counts(),
        *(_chart(lesson, marks) for lesson, marks in sorted(seen.marks.items())),
        *seen.common(),
        *_listed("Needs a human", seen.human),
        *_listed("Not used of what humans decided", [visible(text) for text in problems]),
        *_listed("Left aside", [visible(text) for text in aside]),
    ]
    return "\n\n".join(parts) + "\n"


class _Seen:
    """What is kept of the results: counts, marks and what a human has to look at."""

    def __init__(self):
        self.total = self.decided = 0
        self.problems, self.verdicts = Counter(), Counter()
        self.marks, self.mistakes, self.human = defaultdict(list), defaultdict(Counter), []

    def add(self, result):
        self.total += 1
        who = f"{visible(result.student)}, {visible(result.lesson)}"
        if result.problem:
            self.problems[visible(result.problem).split(":")[0]] += 1
        if result.problem and result.problem != ABSENT:
            self.human.append(f"{who}: {visible(result.problem)}")
        self.human += [f"{who}: {visible(text)}" for text in result.human]
        if result.problem != ABSENT:
            self.marks[visible(result.lesson)].append((result.points, result.max))
        for task in () if result.problem else result.tasks:
            self.verdicts[task.verdict] += 1
            self.decided += task.machine is not None
            if task.verdict == Verdict.WRONG or task.mistake:
                names = (task.mistake or OTHER).split(" + ")
                self.mistakes[task.id].update(names)

    def counts(self):
        graded = self.total - sum(self.problems.values())
        lines = [f"{graded} of {self.total} submissions graded."]
        lines += [f"  {count} not graded: {why}" for why, count in _most(self.problems)]
        if self.verdicts:
            listed = ", ".join(f"{count} {verdict}" for verdict, count in _most(self.verdicts))
            lines.append(f"Tasks: {listed}.")
        if self.decided:
            lines.append(f"Decided by a human: the points of {self.decided} of these.")
        return "\n".join(lines)

    def common(self):
        lines = []
        for task_id, found in sorted(self.mistakes.items()):
            lines.append(f"  {visible(task_id)}")
            for name, count in _most(found)[:COMMON]:
                words = visible(_did(task_id, name))
                lines += textwrap.wrap(f"{count:6} × {words}", WIDTH, subsequent_indent=" " * 9)
        return ["\n".join(["Most common mistakes", *lines])] if lines else []


def _most(counter):
    """The largest counts first; of equal ones in the order of their names."""
    return sorted(counter.items(), key=lambda item: (-item[1], item[0]))


def _did(task_id, name):
    """What a known mistake is in words, and its name."""
    try:
        known = {mistake.id: mistake.did for mistake in find(task_id).mistakes}
    except ValueError:
        known = {}
    return f"{known[name]} ({name})" if name in known else name


def _chart(lesson, marks):
    """The distribution of one lesson's marks as bars."""
    points = [mark for mark, _ in marks]
    most = max(best for _, best in marks)
    counts = Counter(
        min(max(int(BINS * mark / best), 0), BINS - 1) if best else 0 for mark, best in marks
    )
    longest = max(counts.values())
    mean, median = statistics.fmean(points), statistics.median(points)
    lines = [
        f"{lesson}: {len(marks)} handed in, mean {mean:.1f} and median {number(median)} "
        f"of {number(most)} points"
    ]
    for i in range(BINS):
        count = counts[i]
        bar = "█" * max(round(BAR * count / longest), 1 if count else 0)
        upper = 100 if i == BINS - 1 else 100 * (i + 1) // BINS - 1
        label = f"{100 * i // BINS}–{upper} %"
        lines.append(f"  {label:>8}  {bar} {count or ''}".rstrip())
    return "\n".join(lines)


def _listed(title, texts):
    if texts:
        more = [f"  and {len(texts) - LISTED} more"] if len(texts) > LISTED else []
        lines = [f"  {text}" for text in texts[:LISTED]]
        yield "\n".join([f"{title} ({len(texts)})", *lines, *more])


class Progress:
    """How far a run is, on stderr: a bar on a terminal, else a line for every tenth.

    total: how many submissions there are. Use it in a `with`.
    """

    def __init__(self, total, stream=None):
        from tqdm import tqdm

        tqdm.monitor_interval = 0  # a thread would be in the way of processes that fork
        tqdm.set_lock(threading.RLock())  # its own is shared between processes and starts one
        self.done, self.total, self.stream = 0, total, stream or sys.stderr
        self.bar = None
        if self.stream.isatty():
            self.bar = tqdm(total=total, file=self.stream, unit=" graded", dynamic_ncols=True)

    def step(self, result=None):
        """Count one submission; one without a result was graded before this run."""
        self.done += 1
        if self.bar is not None:
            self.bar.initial += result is None  # what does not count for the speed
            self.bar.update()
        elif 10 * self.done // self.total > 10 * (self.done - 1) // self.total:
            share = 100 * self.done // self.total
            print(f"graded {self.done} of {self.total} ({share} %)", file=self.stream, flush=True)

    def __enter__(self):
        return self

    def __exit__(self, *error):
        if self.bar is not None:
            self.bar.close()
