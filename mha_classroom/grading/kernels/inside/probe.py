"""What runs beside the learner's code: tries an answer as planned and sends out what came of it.

It compares nothing and knows no right answer. Whatever goes wrong is part of what it sends.
"""

import base64
import contextlib
import errno
import functools
import importlib
import json
import pickle
import time
import types
from dataclasses import dataclass

from mha_classroom.checks.exception_meanings import learners_frames
from mha_classroom.checks.forbidden import Borrowed, given_back
from mha_classroom.checks.outcome import Outcome, observe
from mha_classroom.checks.praise import Counting
from mha_classroom.checks.running import quiet_state, reversed_inputs
from mha_classroom.checks.showing import describe
from mha_classroom.checks.stages import Recorder
from mha_classroom.checks.task import AnswerError
from mha_classroom.checks.time_limit import OutOfTime, time_limit, waited
from mha_classroom.grading.kernels.inside.encoding import Encoder, shorten
from mha_classroom.grading.kernels.inside.watch import running_threads, take_notes

__all__ = ["MIME", "PLAN", "STOPS", "Plan", "probe", "probe_sent"]

STOPS = ("timeout", "interrupted")  # what is told of a run after which no more are made
MIME = "application/vnd.mha-course+json"
PLAN = "mha_course_plan"  # in the metadata of a cell that probes, and of the request to run it
CLOSELY = "first"  # the way in which a right answer has to be right without what is forbidden
TEXT, FRAMES, WARNINGS, PRINTED = 500, 5, 5, 200  # what is sent of each
ENCODING = 5.0  # seconds for what one run returned to be written down
NO_MEMORY = ("can't allocate memory", "not enough memory", "out of memory")


@dataclass(frozen=True)
class Plan:
    """What an answer to a task is to be run on.

    task: the id. name: what the answer defines, a `kind` ("function" or "class"). run: what runs
    it, "module:function". forbidden, changes, uses: of the task. runs: (way, index of the case) in
    order. inputs: of each case, pickled. seconds: for all runs. each: for one. nonce: a text that
    no other plan has.
    """

    task: str
    name: str
    kind: str
    run: str
    forbidden: tuple[str, ...]
    changes: tuple[str, ...]
    uses: tuple[str, ...]
    runs: list[tuple[str, int]]
    inputs: list[bytes]
    seconds: float
    each: float
    nonce: str


def probe_sent():
    """Run an answer by the plan that came with the request to run this cell."""
    from IPython import get_ipython

    probe(get_ipython().get_parent()["metadata"][PLAN])


def probe(blob, names=None, show=None):
    """Run an answer as planned and display what came of it, as one JSON object of type MIME.

    blob: what `make_plan.blob_of` made of a Plan. names: where the answer is looked up, the names
    of the notebook unless told. show: takes the object; displays it unless told.
    """
    plan = pickle.loads(base64.b64decode(blob))
    report = {"nonce": plan.nonce, "task": plan.task, "state": "broken", "runs": []}
    noticed = running_threads()
    try:
        names = get_names() if names is None else names
        report["state"] = "undefined"
        if plan.name in names:
            _try(plan, names[plan.name], report)
    except BaseException as error:
        report["state"], report["error"] = "broken", encode_error(error)
    notes = [*noticed, *running_threads(), *take_notes()]
    report["suspicious"] = [shorten(note, TEXT) for note in dict.fromkeys(notes)]
    (show or display)(report)


def get_names():
    """The names that the cells of this notebook define."""
    from IPython import get_ipython

    return get_ipython().user_ns


def display(report):
    """Send the report out of the kernel."""
    from IPython import get_ipython

    # As a text: whoever reads it part by part on the way would need as long as this has taken.
    get_ipython().display_pub.publish({MIME: json.dumps(report)})


def _try(plan, answer, report):
    if not callable(answer) or (plan.kind == "class") != isinstance(answer, type):
        report["state"], report["got"] = "other", shorten(describe(answer), TEXT)
        return
    report["state"] = "run"
    task = types.SimpleNamespace(
        run=named(plan.run),
        forbidden=plan.forbidden,
        changes=plan.changes,
        uses=plan.uses,
        examine=None,
    )
    encoder, inputs = Encoder(), [pickle.loads(given) for given in plan.inputs]
    until, before = time.monotonic() + plan.seconds, waited()
    with quiet_state(), given_back():
        for way, index in plan.runs:
            left = until - time.monotonic() + waited() - before
            if left <= 0:
                report["late"] = True
                return
            given = reversed_inputs(inputs[index]) if way == "reversed" else inputs[index]
            case, seconds = types.SimpleNamespace(inputs=given), min(left, plan.each)
            record = _run(task, answer, case, way, seconds, encoder)
            report["runs"].append({"way": way, "index": index, **record})
            if record.get("error", {}).get("kind") in STOPS:
                return


def named(dotted):
    """What a dotted name stands for: "mha_classroom.checks.task:call"."""
    module, name = dotted.split(":")
    return getattr(importlib.import_module(module), name)


def _run(task, answer, case, way, seconds, encoder):
    """The record of one run."""
    kinds = {"calls": functools.partial(Counting, task.uses), "tensors": Recorder}
    around = kinds.get(way, contextlib.nullcontext)()
    with around:
        closely = way == CLOSELY  # watching takes half the time
        outcome = _observed(task, answer, case, seconds, watch=closely, closely=closely)
        if closely and _kind(outcome.error) in ("raised", "memory"):
            # Watched so closely torch words some of its errors otherwise. Only the words are taken:
            # what fails while it is watched has failed.
            less = _observed(task, answer, case, seconds)
            outcome = outcome if less.error is None else less
    record = {}
    try:
        with time_limit(ENCODING):
            if outcome.error is not None:
                record["error"] = encode_error(outcome.error)
            elif way == "calls":
                record["calls"] = encode_counts(around.calls)
            elif way != "tensors":
                record["value"] = encoder.encode(outcome.value)
            if way == "tensors":
                record["tensors"] = encoder.encode_some(around.seen)
    except BaseException as error:
        record = {"error": encode_error(error)}
    record["changed"] = [str(name) for name in outcome.changed]
    record["printed"] = shorten(outcome.printed, PRINTED)
    record["warned"] = [shorten(text, TEXT) for text in outcome.warned[:WARNINGS]]
    return record


def _observed(task, answer, case, seconds, watch=False, closely=False):
    try:
        return observe(task, answer, case, watch=watch, seconds=seconds, closely=closely)
    except BaseException as error:
        return Outcome(error=error)


def encode_counts(calls):
    """[name, count] of what was called, without what cannot be the name of a function."""
    return [[name, count] for name, count in calls.items() if type(name) is str and len(name) < 60]


def encode_error(error):
    """What is sent of an exception: what it is called and says, and the learner's own lines."""
    with contextlib.suppress(BaseException):
        cls = type(error)
        frames = learners_frames(error)[-FRAMES:]
        return {
            "kind": _kind(error),
            "type": shorten(cls.__qualname__, 100),
            "module": shorten(cls.__module__, 100),
            "builtin": next(c.__name__ for c in cls.__mro__ if c.__module__ == "builtins"),
            "text": shorten(error, TEXT),
            "frames": [
                [shorten(f, 200), n, shorten(g, 200), shorten(s, 200)] for f, n, g, s in frames
            ],
        }
    # One whose own methods fail.
    odd = {"type": "Exception", "module": "builtins", "builtin": "Exception"}
    return {"kind": "raised", **odd, "text": "an exception that cannot be shown", "frames": []}


def _kind(error):
    if error is None:
        return ""
    kinds = {OutOfTime: "timeout", Borrowed: "borrowed", AnswerError: "answer"}
    kinds |= {KeyboardInterrupt: "interrupted", MemoryError: "memory"}
    for cls, kind in kinds.items():
        if isinstance(error, cls):
            return kind
    if isinstance(error, OSError) and error.errno == errno.ENOMEM:
        return "memory"
    if isinstance(error, RuntimeError) and any(words in str(error) for words in NO_MEMORY):
        return "memory"
    return "raised"
