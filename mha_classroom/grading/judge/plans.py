"""What is made once for a class: the plan of each task, and what kernels may import."""

import functools
import secrets

from mha_classroom.grading.fit.slicing import slice_modules
from mha_classroom.grading.judge.recorded import HARNESS, plan_of

__all__ = ["PROBE", "STAND_INS", "modules_of", "plan_for"]

# The source of the cell that takes the place of a check. Its plan comes with the request to run it.
PROBE = "from mha_classroom.grading.kernels.inside.probe import probe_sent as _probe; _probe()"

# What an exercise imports and calls outside of its answers, and a check has taken the place of.
STAND_INS = {"mha_course.checks": "def check(task_id, answer):\n    pass\n"}

_loaded, _sliced = {}, {}


def plan_for(assignment, task_id, settings, record=()):
    """The plan of a task with a new nonce; a process may grade several assignments."""
    _loaded[assignment.key] = assignment
    seconds, seed = settings.limits.seconds, settings.seed_of(task_id)
    plan = _plan_of(assignment.key, task_id, seed, tuple(record), seconds)
    return {**plan, "nonce": secrets.token_hex(16)}


@functools.lru_cache(maxsize=512)
def _plan_of(key, task_id, seed, record, seconds):
    return plan_of(_loaded[key].tasks[task_id], seed, record, seconds)


def modules_of(assignment):
    """{name: source} of what a kernel may import of the course."""
    if assignment.key not in _sliced:
        tasks = assignment.tasks.values()
        runs = (f"{task.run.__module__}.{task.run.__qualname__}" for task in tasks)
        roots = dict.fromkeys([*HARNESS, *runs, *assignment.lends])
        _sliced[assignment.key] = {**slice_modules(roots, assignment.files), **STAND_INS}
    return _sliced[assignment.key]
