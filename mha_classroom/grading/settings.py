"""What a grading run was asked for."""

import hashlib
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from mha_classroom.grading.kernels.nbval_run import Limits

__all__ = ["Settings"]


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

    def with_seed(self, seed):
        """The same with a seed."""
        return replace(self, seed=seed)

    def seed_of(self, task_id):
        """The seed of a task: its own, or the inputs of one could be the results of another."""
        return int(hashlib.sha256(f"{self.seed} {task_id}".encode()).hexdigest()[:15], 16)

    def listed(self):
        """As JSON can hold it."""
        folder = self.folder and Path(self.folder).name
        return {**asdict(self), "folder": folder}
