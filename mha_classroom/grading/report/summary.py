"""What the terminal shows: how far a run is, and at its end how the class did."""

import sys
import textwrap
import threading

from mha_classroom.grading.report.safe_text import visible
from mha_classroom.grading.report.tally import COMMON, in_words, label, most, spread

__all__ = ["Progress", "summary"]

BAR = 40  # characters of the longest bar
LISTED = 20
WIDTH = 96


def summary(tally):
    """Return the text that ends a run, of a Tally.

    Properties: bars of marks for each lesson, verdicts, the most common mistakes of each task, and
        what needs a human. No name in it is more than one line or moves the cursor.
    """
    parts = [
        _counts(tally),
        *(_chart(tally, lesson) for lesson, handed in sorted(tally.handed.items()) if handed),
        *_common(tally),
        *_listed("Needs a human", [visible(note.line) for note in tally.needs_a_human()]),
        *(_listed(title, [visible(text) for text in texts]) for title, texts in tally.told()),
    ]
    return "\n\n".join(_flat(parts)) + "\n"


def _flat(parts):
    for part in parts:
        yield from [part] if isinstance(part, str) else part


def _counts(tally):
    lines = [f"{tally.graded} of {tally.total} submissions graded."]
    lines += [f"  {count} not graded: {visible(why)}" for why, count in most(tally.problems)]
    if tally.absent:
        lines.append(f"Nothing handed in, by student and lesson: {tally.absent}.")
    if tally.verdicts:
        listed = ", ".join(f"{count} {verdict}" for verdict, count in most(tally.verdicts))
        lines.append(f"Tasks: {listed}.")
    if tally.decided:
        lines.append(f"Decided by a human: the points of {tally.decided} of these.")
    lines += [visible(line) for line in tally.about_time()]
    return "\n".join(lines)


def _common(tally):
    lines = []
    for task_id, found in sorted(tally.mistakes.items()):
        lines.append(f"  {visible(task_id)}")
        for name, count in most(found)[:COMMON]:
            words = visible(in_words(task_id, name))
            whole = {"subsequent_indent": " " * 9, "break_on_hyphens": False}  # ids stay whole
            lines += textwrap.wrap(f"{count:6} × {words}", WIDTH, **whole)
    if lines:
        yield "\n".join(["Most common mistakes", *lines])


def _chart(tally, lesson):
    """The distribution of one lesson's marks as bars."""
    lines = [f"{visible(lesson)}: {tally.about_marks(lesson)}"]
    counts = spread(tally.marks[lesson])[0] if tally.marks[lesson] else []
    longest = max(counts, default=0)
    for i, count in enumerate(counts):
        bar = "█" * max(round(BAR * count / longest), 1 if count else 0)
        lines.append(f"  {label(i):>8}  {bar} {count or ''}".rstrip())
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
