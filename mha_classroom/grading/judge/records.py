"""What an answer did in another process, read from what its probe sent."""

import builtins
import json
from collections import Counter
from dataclasses import dataclass, field, replace

import torch

from mha_classroom.checks.forbidden import Borrowed
from mha_classroom.checks.outcome import Outcome
from mha_classroom.checks.task import AnswerError
from mha_classroom.checks.time_limit import OutOfTime
from mha_classroom.grading.judge.decoding import Decoder, text_of
from mha_classroom.grading.kernels.inside.probe import STOPS

__all__ = ["Records", "decode", "rebuilt"]

LONGEST = 40_000_000  # characters of what a probe sends
MOST = 4_000  # tensors of one run, or names that are counted
STATES = ("run", "undefined", "other", "broken")


@dataclass
class Records:
    """What an answer did, as the process says in which it was run.

    state: "run"; "undefined" if there was no such name; "other" if it was no function or class,
        `got` says what it was; "broken" if the probe itself came to no end.
    outcomes: {(way, index of the case): Outcome}, with values as `run` returned them.
    tensors: {index: what was computed on the way}. calls: how often each function was called.
    suspicious: what a human should look at. memory: whether it ran out of memory.
    """

    task_id: str
    state: str
    got: str = ""
    outcomes: dict = field(default_factory=dict)
    tensors: dict = field(default_factory=dict)
    calls: Counter = field(default_factory=Counter)
    suspicious: tuple[str, ...] = ()
    memory: bool = False

    def with_stages(self, other):
        """These Records with what was computed on the way from others, of a plan to record it."""
        noted = tuple(dict.fromkeys(self.suspicious + other.suspicious))
        return replace(self, tensors=other.tensors, suspicious=noted)


def decode(data, plan):
    """Return the Records that a probe sent for a plan, as text or as the dict it stands for.

    Raises: ValueError if it is not what a probe sends, or of another plan.
    """
    try:
        if isinstance(data, (str, bytes)):
            if len(data) > LONGEST:
                raise ValueError(f"{len(data)} characters are too many")
            data = json.loads(data)
        return _records(data, plan)
    except ValueError:
        raise
    except Exception as error:
        raise ValueError(f"this is no record of a probe: {type(error).__name__}") from None


def _records(data, plan):
    if data["nonce"] != plan.nonce or data["task"] != plan.task:
        raise ValueError("this is the record of something else")
    if data["state"] not in STATES:
        raise ValueError("this is no state")
    found = Records(plan.task, data["state"], text_of(data.get("got", ""), 1000))
    found.suspicious = tuple(text_of(note, 1000) for note in data["suspicious"][:100])
    if data["state"] == "broken":
        found.memory = data.get("error", {}).get("kind") == "memory"
    decoder, planned, stopped = Decoder(), set(plan.runs), False
    for run in data["runs"]:
        place = text_of(run["way"]), run["index"]
        if type(run["index"]) is not int or place not in planned:
            raise ValueError("a run that was not planned, or came twice")
        planned.remove(place)
        _add(found, *place, run, decoder)
        stopped = "error" in run and run["error"]["kind"] in STOPS
    if planned and found.state == "run" and not stopped and data.get("late") is not True:
        found.state = "broken"  # runs that nothing kept from being made are missing
    return found


def _add(found, way, index, run, decoder):
    """Add to the Records what came of one run."""
    error = _error(run["error"]) if "error" in run else None
    found.memory |= error is not None and run["error"]["kind"] == "memory"
    if way == "tensors":
        seen = [decoder.decode(written) for written in run.get("tensors", [])[:MOST]]
        if not all(torch.is_tensor(X) and not X.is_meta for X in seen):
            raise ValueError("what was computed is no tensor")
        found.tensors[index] = [X for X in seen if X.is_floating_point()]
    elif way == "calls":
        counted = run.get("calls", [])[:MOST]
        found.calls = Counter({text_of(name, 100): int(count) for name, count in counted})
    else:
        found.outcomes[way, index] = Outcome(
            None if error is not None else decoder.decode(run["value"]),
            error,
            tuple(text_of(name, 100) for name in run["changed"][:100]),
            text_of(run["printed"], 1000),
            tuple(text_of(text, 1000) for text in run["warned"][:100]),
        )


def _error(written):
    """An exception that looks like the one that was raised; nothing of it is run."""
    kind, text = text_of(written["kind"]), text_of(written["text"], 1000)
    own = {"timeout": OutOfTime, "borrowed": Borrowed, "answer": AnswerError}
    if kind in own:
        return own[kind](text)
    base = vars(builtins).get(text_of(written["builtin"]))
    if not isinstance(base, type) or not issubclass(base, BaseException):
        raise ValueError("this is no exception")
    if issubclass(base, BaseExceptionGroup):
        base = Exception  # a group is not made without what is in it
    name, module = text_of(written["type"], 100), text_of(written["module"], 100)
    frames = [(text_of(f), int(n), text_of(g), text_of(s)) for f, n, g, s in written["frames"]]
    return rebuilt(base, name, module, text, frames)


def rebuilt(base, name, module, text, frames):
    """An exception of a class made here that says `text` and is called `name`."""
    said = {"__module__": module, "__str__": lambda error: text, "learners_frames": frames}
    made = type(name.rpartition(".")[2], (base,), {**said, "__qualname__": name})
    return made.__new__(made)
