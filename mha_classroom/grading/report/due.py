"""What is due when, and what it costs to be late."""

from dataclasses import dataclass, field, replace
from datetime import datetime

from mha_classroom.grading.handed_in.arrival import days_late
from mha_classroom.grading.report.overrides import Overrides, apply_overrides
from mha_classroom.grading.results import Late

__all__ = ["PENALTY", "Due", "Settling", "apply_due"]

PENALTY = "penalty"  # stands in the column `task` of overrides.csv


@dataclass(frozen=True)
class Due:
    """When a lesson is due. percent: of its points, taken off for each day begun since then."""

    due: datetime
    percent: float = 0.0


def apply_due(result, deadline, arrival, decision=None):
    """Return a Result that says how late it is, and how many points that takes off.

    result: with decisions applied. deadline: of its lesson, None if there is none. arrival: None if
    nothing was handed in. decision: a human's, who says how many points the penalty is.
    Properties: the points of the tasks stay as they are. Nothing is taken off for a task that a
        human decided, and never more than the points that there are.
    """
    if deadline is None or arrival is None:
        return result
    days = days_late(arrival, deadline.due)
    open_to_it = [task for task in result.tasks if task.machine is None]
    most = sum(task.points for task in open_to_it)
    penalty = (days or 0) * deadline.percent / 100 * sum(task.max for task in open_to_it)
    late = Late(arrival.at, arrival.source, days, min(most, round(penalty, 6)))
    if decision:
        penalty = min(decision.points, result.points)
        late = replace(late, penalty=penalty, decided=True, comment=decision.comment)
    return replace(result, late=late)


@dataclass(frozen=True)
class Settling:
    """Makes of what the machine found what counts: with what humans decided, and with deadlines.

    deadlines: {lesson: Due}. arrivals: {(student, lesson): Arrival}.
    """

    overrides: Overrides = field(default_factory=Overrides)
    deadlines: dict = field(default_factory=dict)
    arrivals: dict = field(default_factory=dict)

    def __call__(self, result):
        """Return the Result that counts."""
        key = result.student, result.lesson
        decision = self.overrides.decisions.get(key, {}).get(PENALTY)
        settled = apply_overrides(result, self.overrides)
        deadline = self.deadlines.get(result.lesson)
        return apply_due(settled, deadline, self.arrivals.get(key), decision)
