"""The course's solution of a task, folded below the check once the task has been tried.

Tried means: the answer is right, or a written answer has been checked three times. By then the
named mistake and the section to read again have had their chance, and whoever is stuck goes on.
Solutions are read from solutions/ when they are shown. Nothing of them stands in an exercise, so
they are left out by leaving that folder out, and nothing is shown where no progress is kept:
outside of work/, as in grading.
"""

from dataclasses import dataclass
from pathlib import Path

from mha_classroom.checks.registry import lesson_of

__all__ = ["Solution", "TRIES", "solution_of"]

TRIES = 3
MARKERS = ("### BEGIN SOLUTION", "### END SOLUTION")


@dataclass(frozen=True, repr=False)
class Solution:
    """A solution as a notebook shows it: folded."""

    task_id: str
    source: str

    def __repr__(self):
        return f"(A notebook shows the course's solution of {self.task_id} here, folded.)"

    def _repr_markdown_(self):
        fence = "```"
        summary = f"<details><summary>The course's solution of {self.task_id}</summary>"
        return f"{summary}\n\n{fence}python\n{self.source}\n{fence}\n\n</details>"


def solution_of(task_id, root):
    """The Solution in root/solutions, or None if it is not there."""
    try:
        import nbformat

        path = Path(root, "solutions", f"{lesson_of(task_id)}.ipynb")
        cells = nbformat.read(path, as_version=4).cells
    except Exception:  # left out, or no notebook: nbformat trips over a broken file in many ways
        return None
    for cell in cells:
        label = cell.metadata.get("nbgrader", {})
        if label.get("solution") and label.get("grade_id") == task_id:
            lines = cell.source.split("\n")
            return Solution(task_id, "\n".join(x for x in lines if x.strip() not in MARKERS))
    return None
