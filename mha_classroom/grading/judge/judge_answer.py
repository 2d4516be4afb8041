"""Judge an answer by what was recorded of it, in a process that never runs it."""

import dataclasses
import itertools
import re

from mha_classroom.checks.diagnosis import WAYS, NotRun, not_a, try_cases
from mha_classroom.checks.feedback import Feedback
from mha_classroom.checks.forbidden import Borrowed
from mha_classroom.checks.outcome import examined
from mha_classroom.checks.prepared import prepared
from mha_classroom.checks.running import quiet_state

__all__ = ["forbidden_name", "hidden", "judge", "needs_stages"]

LONG, LONGER = 200, 500  # characters of what an exception says, and of other texts
SEARCHED = 4_000  # characters of any text that are searched: some patterns take the square of it
OWN_WORDS = ("raises", "type", "value", "nan", "strange", "not repeatable", "borrowed")
SAID = ("mistake", "type", "shape", "dtype")  # kinds whose sentences hold no expected value
WARNING = "It works, with a warning"
# What compare says of a value: ": it is 3, expected 4", ", expected the text 'b'".
EXPECTED = re.compile(r"(?:: it is [^:]*?)?,? expected ", re.DOTALL)
ALLOWED = re.compile(
    r" (?:has|have) (?:shape \([\d, ]*\), expected \([\w, ]*\)(?:[:( ][^'\"]*)?"
    r"|dtype [\w.]+, expected [^,]*)\.$"
)
RAISES = re.compile(r"\w+ raises ")  # what their code says, which knows no expected value
# Not the end of a sentence ("6 is not 4."), nor part of a name ("layers.0.weight"), nor why a
# number is no whole one ("got the number 1.0").
DECIMAL = (
    r"(?<![\w.])(?!(?<=the number )\d+\.0(?!\d))"
    r"(?:\d*\.\d+(?:[eE][-+]?\d+)?|\d+\.?[eE][-+]?\d+|\d+\.(?=[,\])]))"
)
BLANKED = (
    (re.compile(r"0x[0-9a-fA-F]+"), "0x…"),
    (re.compile(DECIMAL), "#"),
    (re.compile(r"ipykernel_\d+"), "ipykernel"),
)


def judge(task, records, seed):
    """Return the Feedback on an answer from the Records of it: the same that `check` gives.

    seed: of the plan. A remark on the first wrong stage needs what `needs_stages` asks for.
    """
    return _judged(task, records, seed)[0]


def needs_stages(task, records, seed):
    """The indices of the cases for which to record what is computed on the way, () for none.

    `records.with_stages` takes what came of a plan with these; then judge again.
    """
    return _judged(task, records, seed)[1]


def _judged(task, records, seed):
    if records.state == "undefined":
        message = f"There is no {task.name}: the cell that defines it is missing or came to no end."
        return Feedback(task.id, "unwritten", message), ()
    if records.state == "other":
        return not_a(task, records.got), ()
    if records.state == "broken":
        message = f"{task.name} could not be run to its end."
        return Feedback(task.id, "raises", message), ()
    does = _Recorded(task, records, prepared(task, seed))
    try:
        with quiet_state():
            feedback = try_cases(task, does, seed)
    except Exception:  # a value after the first wrong one fails when it is looked at
        message = f"What {task.name} returns cannot be compared: return ordinary tensors, numbers."
        feedback = Feedback(task.id, "strange", message)
    return feedback, tuple(does.unknown)


class _Recorded:
    """What an answer does, as far as it was recorded: the methods of `diagnosis.Live`."""

    def __init__(self, task, records, known):
        self.task, self.records, self.known, self.unknown = task, records, known, []
        self.cases = known.cases

    @property
    def ran(self):
        """On how many of the cases, from the first, it was run in the second way."""
        runs = ((WAYS[1], index) in self.records.outcomes for index in range(len(self.cases)))
        return sum(itertools.takewhile(bool, runs))

    def reversed(self, index):
        """The case of this index with its numbers in reverse order, None if there is none."""
        return self.known.reversed(index)

    def expected(self, way, index):
        """What a right answer returns."""
        return self.known.right(index, turned=way == WAYS[2])

    def outcome(self, way, index, case):
        """The Outcome of a case, with its value examined here. Raises: NotRun."""
        if (way, index) not in self.records.outcomes:
            raise NotRun(f"case {index}, {way}")
        outcome = self.records.outcomes[way, index]
        if outcome.error is not None:
            return dataclasses.replace(outcome, error=self._told_apart(outcome.error))
        try:
            return dataclasses.replace(outcome, value=examined(self.task, case, outcome.value))
        except Exception as error:
            return dataclasses.replace(outcome, value=None, error=error)

    def computed(self, index, case):
        """The tensors of a case, None if they were not recorded."""
        if index not in self.records.tensors:
            self.unknown.append(index)
        return self.records.tensors.get(index)

    def calls(self, case):
        """What was called on the first case."""
        return self.records.calls

    def _told_apart(self, error):
        called = forbidden_name(self.task, type(error).__name__, str(error))
        return Borrowed(called) if called else error


def forbidden_name(task, kind, text):
    """What of the task's forbidden names an exception is about, "" if it is about none.

    They are not there where answers are run: calling one fails with an error that begins with it.
    """
    called = text.split(" ")[0]
    about = any(f"{called}.".startswith(f"{name}.") for name in task.forbidden)
    return called if kind in ("NotHere", "Borrowed") and about else ""


def hidden(feedback):
    """The Feedback without inputs or expected values: for a learner whose inputs stay hidden.

    What stays: what the known mistake is, the first wrong stage, shapes and dtypes, the name of the
    case, the learner's own line. Not their result: who returns an input would be shown it. Texts
    that their code can make (of exceptions and warnings) are cut, and could hold inputs, so that
    their decimals are blanked.
    """
    own_words = feedback.kind in OWN_WORDS
    message = feedback.message[:SEARCHED]
    message = message if feedback.kind in SAID else _without_expected(message)
    return dataclasses.replace(
        feedback,
        message=_blanked(message) if own_words else message,
        details=tuple(filter(None, map(_hidden_detail, feedback.details))),
        remarks=tuple(
            _blanked(r) if r.startswith(WARNING) else r[:SEARCHED] for r in feedback.remarks
        ),
    )


def _hidden_detail(detail):
    heading, text = (part[:SEARCHED] for part in detail)
    if heading.startswith("case: "):
        return "case", heading.removeprefix("case: ")
    if heading.startswith("at line "):
        return heading, text
    if heading == "what came of it":
        return heading, _blanked(_without_expected(text))
    if heading == "what it means":
        return heading, _blanked(text)
    return None


def _without_expected(text):
    """A sentence without the value that was expected; shapes and dtypes may be said."""
    if ALLOWED.search(text) or RAISES.match(text):
        return text
    cut = EXPECTED.split(text)[0]
    return cut if cut == text else f"{cut}."


def _blanked(text):
    """A text that the learner's code may have made, cut, without decimals and what differs from
    run to run."""
    text = text[:SEARCHED]
    for pattern, blank in BLANKED:
        text = pattern.sub(blank, text)
    longest = LONG if RAISES.match(text) else LONGER
    return text if len(text) <= longest else text[:longest] + " …"
