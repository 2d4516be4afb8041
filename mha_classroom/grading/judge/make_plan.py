"""What an answer is to be run on, and what of the course its kernel may import."""

import base64
import functools
import io
import pickle
import secrets
from dataclasses import replace

import torch

from mha_classroom.checks import outcome
from mha_classroom.checks.diagnosis import WAYS
from mha_classroom.checks.prepared import reversed_case
from mha_classroom.checks.running import quiet_state
from mha_classroom.checks.task import Draw
from mha_classroom.grading.fit.slicing import slice_modules
from mha_classroom.grading.kernels.inside.encoding import bytes_of, tensor_from
from mha_classroom.grading.kernels.inside.probe import Plan
from mha_classroom.grading.kernels.kernel import AWAY
from mha_classroom.grading.settings import SECONDS

__all__ = [
    "HARNESS",
    "PROBE",
    "STAND_INS",
    "blob_of",
    "modules_of",
    "pickled",
    "plan_for",
    "plan_of",
]

# The source of the cell that takes the place of a check. Its plan comes with the request to run it.
PROBE = "from mha_classroom.grading.kernels.inside.probe import probe_sent as _probe; _probe()"

# What an exercise imports and calls outside of its answers, and a check has taken the place of.
STAND_INS = {"mha_course.checks": "def check(task_id, answer):\n    pass\n"}

# Is imported before any cell of a student's runs, so that none has what its answers may not use.
TAKE_AWAY = "from mha_classroom.checks.forbidden import take_away\ntake_away({})\n"

# What has to be there where answers are run, besides the task's `run`.
HARNESS = (
    "mha_classroom.checks.forbidden.borrow",
    "mha_classroom.checks.forbidden.take_away",
    "mha_classroom.grading.kernels.inside.encoding.tensor_from",
    "mha_classroom.grading.kernels.inside.watch.start",
    "mha_classroom.grading.kernels.inside.probe.Plan",
    "mha_classroom.grading.kernels.inside.probe.probe_sent",
)


def plan_for(assignment, task_id, settings, record=()):
    """The Plan of a task with a new nonce."""
    plan = _same_for_all(assignment, task_id, settings, tuple(record))
    return replace(plan, nonce=secrets.token_hex(16))


@functools.lru_cache(maxsize=512)
def _same_for_all(assignment, task_id, settings, record):
    seed = settings.seed_of(task_id)
    return plan_of(assignment.tasks[task_id], seed, record, settings.limits.seconds)


@functools.cache
def modules_of(assignment):
    """{name: source} of what a kernel may import of the course."""
    tasks = assignment.tasks.values()
    runs = (f"{task.run.__module__}.{task.run.__qualname__}" for task in tasks)
    roots = dict.fromkeys([*HARNESS, *runs, *assignment.lends])
    forbidden = {name for task in tasks for name in task.forbidden}
    away = {AWAY: TAKE_AWAY.format(sorted(forbidden))}
    return {**slice_modules(roots, assignment.files), **STAND_INS, **away}


def plan_of(task, seed, record=(), seconds=SECONDS, each=outcome.SECONDS):
    """Return what an answer to a task is to be run on: the Plan for `blob_of` and `decode`.

    record: indices of cases; then nothing is run but these, and what is computed on the way is
        recorded. seconds: for all runs. each: for one.
    """
    with quiet_state():
        cases = task.cases(Draw(seed))
        turned = [i for i, case in enumerate(cases) if not record and reversed_case(task, case)]
    runs = [(way, i) for i in range(len(cases)) for way in WAYS[:2]]
    runs += [*((WAYS[2], i) for i in turned), ("calls", 0)]
    if record:
        runs = [("tensors", i) for i in record]
    return Plan(
        task=task.id,
        name=task.name,
        kind=task.kind,
        run=f"{task.run.__module__}:{task.run.__qualname__}",
        forbidden=task.forbidden,
        changes=task.changes,
        uses=task.uses,
        runs=runs,
        inputs=[pickled(case.inputs) for case in cases],
        seconds=seconds,
        each=each,
        nonce=secrets.token_hex(16),
    )


def blob_of(plan):
    """The plan as the text that a probe takes."""
    return base64.b64encode(pickle.dumps(plan)).decode()


def pickled(inputs):
    """The inputs of a case as bytes; only what is trusted may be unpickled."""
    target = io.BytesIO()
    _Pickler(target).dump(inputs)
    return target.getvalue()


class _Pickler(pickle.Pickler):
    """Tensors as the bytes of their memory, so that strides come over too."""

    def reducer_override(self, value):
        if not torch.is_tensor(value):
            return NotImplemented
        steps = zip(value.shape, value.stride(), strict=True)
        count = 1 + sum((size - 1) * stride for size, stride in steps) if value.numel() else 0
        flat = value.detach().as_strided((count,), (1,))
        content = bytes_of(flat) if count else b""
        return tensor_from, (value.dtype, tuple(value.shape), value.stride(), content)
