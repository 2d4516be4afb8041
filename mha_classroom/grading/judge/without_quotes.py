"""Records without what an answer's code says, where it could quote the course's answers."""

import builtins
import re
from dataclasses import replace

import torch

from mha_classroom.checks.exception_meanings import MEANINGS
from mha_classroom.checks.forbidden import Borrowed
from mha_classroom.checks.showing import Opaque
from mha_classroom.checks.task import AnswerError
from mha_classroom.grading.judge.records import rebuilt

__all__ = ["Allowed"]

LONGEST, DIGITS = 160, 24  # of a text, and in it
SHAPE = re.compile(r"\d{1,6}(?:x\d{1,6})?")
PYTORCHS = {word for pattern, _ in MEANINGS for word in re.findall(r"[A-Za-z]\w*", pattern)}
PYTORCHS |= {*dir(builtins), *dir(torch)}
INSTEAD = {AnswerError: "It does not fit what the task asks for.", Borrowed: "what it should write"}


class Allowed:
    """What may be told of a run that had the course's answers in it.

    Texts whose words stand in the student's own notebook, or are Python's and PyTorch's, and that
    have few digits: the others might quote.
    notebook: the student's. names: more that may be told.
    """

    def __init__(self, notebook, names=()):
        sources = [cell.source for cell in notebook.cells]
        self.lines = {line.strip() for source in sources for line in source.split("\n")}
        self.words = PYTORCHS.union(*(re.findall(r"\w+", text) for text in (*sources, *names)))

    def text(self, text):
        """Whether a text may be told."""
        words = set(re.findall(r"\w+", text)) - self.words
        short = len(text) <= LONGEST and sum(map(str.isdigit, text)) <= DIGITS
        return short and all(map(SHAPE.fullmatch, words))

    def records(self, records, values=True):
        """The Records without other texts; values: whether those that were returned stay."""
        outcomes = {
            place: replace(
                outcome,
                value=outcome.value if values else self._value(outcome.value),
                error=self._error(outcome.error),
                warned=tuple(filter(self.text, outcome.warned)),
            )
            for place, outcome in records.outcomes.items()
        }
        got = records.got if self.text(records.got) else "something else"
        return replace(records, got=got, outcomes=outcomes)

    def _value(self, value):
        if isinstance(value, (list, tuple)):
            return type(value)(map(self._value, value))
        if isinstance(value, dict) and all(isinstance(k, str) and self.text(k) for k in value):
            return {key: self._value(part) for key, part in value.items()}
        if isinstance(value, dict):
            return Opaque("dict", "a dict with other keys")
        if isinstance(value, str):
            return value if self.text(value) else Opaque("str", "a text")
        if isinstance(value, Opaque):
            return value if self.text(value.description) else Opaque("object", "something else")
        return value

    def _error(self, error):
        if error is None:
            return None
        for kind, text in INSTEAD.items():
            if isinstance(error, kind):
                return error if self.text(str(error)) else kind(text)
        if not hasattr(error, "learners_frames"):
            return error
        frames = [f for f in error.learners_frames if f[3].strip() in self.lines]
        frames = [f for f in frames if self.text(f"{f[1]} {f[2]}")]
        cls = type(error)
        if self.text(f"{cls.__name__} {error}"):
            return rebuilt(cls.__mro__[1], cls.__qualname__, cls.__module__, str(error), frames)
        return rebuilt(cls.__mro__[1], cls.__mro__[1].__name__, "builtins", "", frames)
