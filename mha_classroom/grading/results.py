"""What is found out about a submission: the verdicts that there are, and results that hold them."""

import math
from dataclasses import asdict, dataclass, field
from enum import StrEnum

from mha_classroom.checks.feedback import Feedback

__all__ = [
    "ABSENT",
    "Graded",
    "Late",
    "Result",
    "TaskResult",
    "VERDICTS",
    "Verdict",
    "of_end",
    "of_feedback",
]

ABSENT = "nothing was handed in"


class Verdict(StrEnum):
    """What can happen to an answer. Only the first gets points."""

    PASSED = "passed"
    WRONG = "wrong"
    ERROR = "error"
    TIMEOUT = "timeout"
    CRASHED = "crashed"
    OUT_OF_MEMORY = "out of memory"
    BORROWED = "borrowed"
    MISSING = "missing"
    NOT_RUN = "not run"


@dataclass(frozen=True)
class Row:
    """What leads to a verdict, and how it is said.

    words: on the student's page. kinds: of the Feedback that leads to it. ends: {what ended the
    kernel in a cell of the task (see `Run.why`): the sentence that the student reads}.
    """

    words: str
    kinds: tuple[str, ...] = ()
    ends: dict[str, str] = field(default_factory=dict)


VERDICTS = {
    Verdict.PASSED: Row("passed", ("passed",)),
    Verdict.WRONG: Row(
        "not yet",
        (
            *("mistake", "type", "shape", "dtype", "nan", "value", "changed inputs"),
            *("not repeatable", "strange", "earlier"),
        ),
    ),
    Verdict.ERROR: Row(
        "stopped with an error",
        ("raises",),  # but see `of_feedback` for memory
        {"output": "It prints without end, and was stopped."},
    ),
    Verdict.TIMEOUT: Row(
        "stopped",
        ("timeout",),
        {"timeout": "It did not come to an end within {seconds:g} s and was stopped."},
    ),
    Verdict.CRASHED: Row(
        "crashed",
        ("crashed",),
        {
            "threads": "It starts threads without end, and was stopped.",
            "crashed": "Python itself ended while it ran: abort, or a crash in a library.",
        },
    ),
    Verdict.OUT_OF_MEMORY: Row(
        "out of memory",
        ("out of memory",),
        {"memory": "It needs more memory than the {megabytes} MB that there are."},
    ),
    Verdict.BORROWED: Row("calls what it should write", ("borrowed",)),
    Verdict.MISSING: Row("was not written", ("unwritten",)),
    Verdict.NOT_RUN: Row(
        "was not run",
        ("not run",),
        {"start": "This could not be graded: your instructor will look at it."},
    ),
}


def of_feedback(kind, memory=False):
    """The Verdict that a kind of Feedback means; memory: whether a run was out of memory."""
    if memory and kind == "raises":
        return Verdict.OUT_OF_MEMORY
    return next((v for v, row in VERDICTS.items() if kind in row.kinds), Verdict.WRONG)


def of_end(why):
    """(The Verdict, the sentence) for what ended the kernel in a task's cell."""
    return next((v, row.ends[why]) for v, row in VERDICTS.items() if why in row.ends)


@dataclass(frozen=True)
class TaskResult:
    """What became of one task.

    max: the most points. mistake: the id of a known mistake, None if none was recognised.
    carried: ids of earlier tasks that the course answered for it; the rest is what came then.
    feedback: as the student may see it. machine: the points before a human decided, None if nobody
    did; comment: the human's.
    """

    id: str
    verdict: Verdict
    points: float
    max: float
    feedback: Feedback
    mistake: str | None = None
    carried: tuple[str, ...] = ()
    machine: float | None = None
    comment: str = ""


@dataclass(frozen=True)
class Late:
    """When a submission for a lesson with a due time was handed in, and what that costs.

    at: with its time zone, "" if nobody says. source: who says it. days: that had begun since it
    was due, 0 if it was in time, None if nobody says. penalty: points that are taken off.
    decided: whether a human said how many; comment: the human's.
    """

    at: str
    source: str
    days: int | None
    penalty: float = 0.0
    decided: bool = False
    comment: str = ""


@dataclass(frozen=True)
class Result:
    """What became of one submission.

    file: its name and the folder's, "" if there is none. problem: why it was not graded, "" if it
    was. notes: for the instructor and the student. human: what someone has to look at. late: None
    if its lesson has no due time, or if nothing was handed in.
    """

    student: str
    lesson: str
    file: str
    problem: str
    notes: tuple[str, ...]
    human: tuple[str, ...]
    tasks: tuple[TaskResult, ...]
    late: Late | None = None

    @property
    def points(self):
        """The sum of the points of its tasks, before any penalty."""
        return round(math.fsum(task.points for task in self.tasks), 6)

    @property
    def counted(self):
        """The points that are left after a penalty."""
        return round(self.points - (self.late.penalty if self.late else 0), 6)

    @property
    def open(self):
        """Whether it has no mark yet: something is there that was not run, and nobody decided."""
        undecided = [task for task in self.tasks if task.machine is None]
        return self.problem != ABSENT and any(t.verdict == Verdict.NOT_RUN for t in undecided)

    @property
    def max(self):
        """The most points that there are for it."""
        return round(math.fsum(task.max for task in self.tasks), 6)

    def as_json(self):
        """What results.json holds of it: what the machine found."""
        data = asdict(self) | {"points": self.points, "max": self.max}
        del data["late"]  # by a clock, and not by the machine that graded it
        for task in data["tasks"]:
            del task["machine"], task["comment"]
        return data

    @classmethod
    def from_json(cls, data):
        """The Result that `as_json` wrote down."""
        names = cls.__dataclass_fields__.keys() - {"tasks", "late"}
        fields = {name: _plain(data[name]) for name in names}
        return cls(**fields, tasks=tuple(map(_task, data["tasks"])))


def _task(data):
    feedback = Feedback(**{name: _plain(value) for name, value in data["feedback"].items()})
    data = {**data, "verdict": Verdict(data["verdict"]), "carried": tuple(data["carried"])}
    return TaskResult(**data | {"feedback": feedback})


def _plain(value):
    """JSON has lists where there were tuples."""
    return tuple(map(_plain, value)) if isinstance(value, list) else value


@dataclass(frozen=True)
class Graded:
    """A submission that has been graded: how many seconds it took, and how many kernels.

    fault: what the grader itself could not do, "" if nothing. Its result is not final then. text:
    a sum of the student's own text, see `own_text`.
    """

    result: Result
    seconds: float
    kernels: int
    fault: str = ""
    text: tuple[str, int, int] | None = None
