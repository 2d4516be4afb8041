"""What a grading run was asked for, and what is taken where nothing was asked for."""

import hashlib
import os
from dataclasses import asdict, dataclass
from pathlib import Path

__all__ = ["DEADLINE", "LEAST_MEGABYTES", "MEGABYTES", "SECONDS", "Limits", "Settings", "cores"]

SECONDS = 20.0  # for one task
DEADLINE = 300.0  # seconds for one submission, judging included
MEGABYTES = 1024  # for one notebook, beyond what the libraries take
LEAST_MEGABYTES = 64


def cores():
    """How many submissions are graded at a time unless told: the cores that there are for this."""
    return len(os.sched_getaffinity(0))


@dataclass(frozen=True)
class Limits:
    """What one task may use: seconds, and bytes of memory beyond what the libraries take.

    deadline: seconds after which nothing more is done for a submission, by the clock. The others
    leave out what a task waits for a processor that others use.
    """

    seconds: float = SECONDS
    memory: int = MEGABYTES << 20
    deadline: float = DEADLINE


@dataclass(frozen=True)
class Settings:
    """What decides about results.

    seed: of the inputs that answers are tried on; None until one is drawn. limits: for each task.
    isolated: whether kernels are. folder: an instructor's own assignment, None for the course's.
    """

    seed: int | None = None
    limits: Limits = Limits()
    isolated: bool = True
    folder: Path | None = None

    def seed_of(self, task_id):
        """The seed of a task: its own, or the inputs of one could be the results of another."""
        return int(hashlib.sha256(f"{self.seed} {task_id}".encode()).hexdigest()[:15], 16)

    def listed(self):
        """As JSON can hold it."""
        folder = self.folder and Path(self.folder).name
        return {**asdict(self), "folder": folder}
