"""Try an answer on every case of its task, and say what is wrong with it."""

import contextlib
import functools
import numbers

from mha_classroom.checks import explanation
from mha_classroom.checks.as_if import say_as_if
from mha_classroom.checks.compare import FLOAT, compare
from mha_classroom.checks.earlier_tasks import blame_earlier
from mha_classroom.checks.feedback import Feedback
from mha_classroom.checks.off_by import say_off_by
from mha_classroom.checks.outcome import observe, same
from mha_classroom.checks.patterns import IN_ORDER, MOVED, common_pattern
from mha_classroom.checks.praise import count_calls, praise
from mha_classroom.checks.prepared import prepared
from mha_classroom.checks.recognition import other_reading, recognise
from mha_classroom.checks.running import quiet_state
from mha_classroom.checks.showing import describe
from mha_classroom.checks.stages import computed_tensors, first_wrong_stage, through_float32
from mha_classroom.checks.task import Draw
from mha_classroom.checks.time_limit import OutOfTime, own_time
from mha_classroom.checks.where_wrong import say_where
from mha_classroom.checks.which_part import (
    Parts,
    instead,
    is_right_elsewhere,
    right_parts,
    taken_from,
)

__all__ = ["WAYS", "Live", "NotRun", "diagnose_task", "not_a", "try_cases"]

# How an answer is run on a case: watched, once more, and with all numbers in reverse order.
WAYS = ("first", "again", "reversed")

# After these there is no need to look at the other cases.
FINAL = ("unwritten", "borrowed", "timeout", "not repeatable", "strange")
SECONDS = 2.0  # for finding out in which cases an answer is right
PRINTED = "It prints while it runs. That does no harm here, but whoever calls it gets the text too."
WARNED = "It works, with a warning: {}"


def diagnose_task(task, answer, seed=0):
    """Try `answer` on every case of `task` and return the Feedback."""
    if not callable(answer) or (task.kind == "class") != isinstance(answer, type):
        return not_a(task, describe(answer))
    with quiet_state():
        try_again = functools.partial(try_cases, task, Live(task, answer, seed), seed)
        feedback = try_again()
        if feedback.passed or feedback.kind == "borrowed":
            return feedback
        return blame_earlier(task, answer, feedback, try_again, seed, diagnose_task)


def not_a(task, got):
    """The feedback on what is no function or class, where the task asks for one."""
    return Feedback(task.id, "type", f"{task.name} has to be a {task.kind}, got {got}.")


class NotRun(Exception):
    """Raised where nobody knows what an answer does on a case, since it was not run."""


class Live:
    """What an answer does, found out by running it here and now.

    What was recorded elsewhere has the same methods.
    """

    def __init__(self, task, answer, seed):
        self.task, self.answer, self.seed = task, answer, seed
        self.cases = task.cases(Draw(seed))

    @property
    def ran(self):
        """On how many of the cases it is known what it does."""
        return len(self.cases)

    def reversed(self, index):
        """The case of this index with its numbers in reverse order, None if there is none."""
        return prepared(self.task, self.seed).reversed(index)

    def expected(self, way, index):
        """What a right answer returns."""
        return prepared(self.task, self.seed).right(index, turned=way == WAYS[2])

    def outcome(self, way, index, case):
        """The Outcome of the case of this index, run in one of the WAYS. Raises: NotRun."""
        return observe(self.task, self.answer, case, watch=way == WAYS[0])

    def computed(self, index, case):
        """The tensors that it computes on the way, None if that is not known."""
        return computed_tensors(self.task, self.answer, case)

    def calls(self, case):
        """How often it calls each function of torch on the first case: a Counter."""
        return count_calls(self.task, self.answer, case)


def try_cases(task, does, seed):
    """Return the Feedback on an answer of which `does`, a Live or its like, says what it does."""
    cases, outcomes, remarks, floats = does.cases, {}, [], []
    try:
        for index, case in enumerate(cases):
            outcomes[index] = does.outcome(WAYS[0], index, case)
            failed, new = _judge(task, does, WAYS[:2], index, case, outcomes[index])
            remarks += new
            floats += [case] * (FLOAT in new)
            if failed:
                final = failed.kind in FINAL
                return failed if final else _explained(task, does, outcomes, index, failed, seed)
        if floats:
            return explanation.of_floats(task, floats[0])
        return _kept_from_before(task, does) or _passed(task, does, cases, remarks)
    except NotRun:
        return explanation.of_shortage(task)


class _Outcomes(dict):
    """What an answer does on each case, by index: run only when asked for, and not watched.

    It is wrong by then. What it does on other cases tells one mistake from another, if any known
    one could be it.
    """

    def __init__(self, does, tried):
        super().__init__(tried)
        self.does = does

    def __missing__(self, index):
        self[index] = self.does.outcome(WAYS[1], index, self.does.cases[index])
        return self[index]


def _passed(task, does, cases, remarks):
    count = "1 case" if len(cases) == 1 else f"{len(cases)} cases"
    praised = praise(task, does.calls(cases[0]))
    said = tuple(dict.fromkeys(filter(None, [*remarks, praised])))
    return Feedback(task.id, "passed", f"right in {count}.", remarks=said)


def _explained(task, does, tried, index, failed, seed):
    """The Feedback with the known mistake named, or else the first stage that differs."""
    cases, outcomes = does.cases[: max(does.ran, len(tried))], _Outcomes(does, tried)
    known = recognise(task, cases, outcomes, index, seed)
    if known:
        other = other_reading(task, cases, outcomes, index, seed, known)
        sure = not isinstance(does.expected(WAYS[0], index), numbers.Real)
        off_by = "" if sure or len(known) < 2 else say_off_by(task, does, outcomes, cases)
        off_by = off_by if off_by.startswith("In every case") else ""
        return explanation.of_mistakes(task, failed, known, other, sure, off_by)
    if failed.kind == "changed inputs":  # in whatever case: its numbers say nothing more
        return failed
    as_if = say_as_if(task, cases, outcomes, index)
    settled = False  # parts are exchanged, or only the shape is another: then no step is missing
    twice, parts = False, []
    differences = _differences(task, does, outcomes, cases, index)
    if as_if:
        failed = explanation.with_remark(failed, as_if)
    else:
        wrong = Parts.of(task, cases, lambda i: does.expected(WAYS[0], i), outcomes, differences)
        failed = explanation.with_remark(failed, right_parts(wrong))
        exchanged = instead(wrong)
        pattern = exchanged or common_pattern(differences, index)
        failed = explanation.with_remark(failed, pattern)
        settled = bool(exchanged) or pattern.startswith(IN_ORDER)
        twice = is_right_elsewhere(wrong)
        parts = wrong[0].wrong if wrong else []
        if pattern in ("", MOVED):
            others = [(d, cases[i].inputs) for i, d in differences.items() if d and i != index]
            taken = taken_from(task, differences.get(index), cases[index].inputs, others)
            failed = explanation.with_remark(failed, taken)
    kinds = ("value", "nan", "shape", "raises", *(["type"] if task.skippable else []))
    if failed.kind in kinds and not any(
        word in failed.message for word in ("dtype", "TypeError", "ends Python", "the caller's")
    ):
        if task.quantities:
            failed = explanation.with_remark(failed, say_off_by(task, does, outcomes, cases))
        elif not settled:
            of = functools.partial(does.computed, index)
            if through_float32(task, differences.get(index), cases[index], of):
                failed = explanation.with_remark(failed, explanation.IN_FLOAT32)
            elif not twice:
                stage = first_wrong_stage(task, None, cases, outcomes, index, does.computed)
                name = getattr(differences.get(index), "name", "")
                failed = explanation.of_stage(failed, stage, name, task.skippable, parts)
    failed = explanation.with_remark(failed, _pointed_out(task, cases[index], outcomes[index]))
    if as_if or len(differences) < len(cases):
        return failed
    if task.quantities and any(said.endswith("too small by 1.") for said in failed.remarks):
        return failed  # it may be cut off to a whole number, in whatever cases
    promises = [_is_promise(does.expected(WAYS[0], i)) for i in range(len(cases))]
    # Where numbers are wrong, a promise that is kept does not make a case a right one.
    counted = [i for i in range(len(cases)) if promises[index] or not promises[i]]
    is_right = [differences[i] is None for i in counted]
    return explanation.with_remark(failed, say_where([cases[i] for i in counted], is_right))


def _is_promise(expected):
    """Whether what is compared is only whether sentences hold: "heads are dropped as a whole"."""
    if not isinstance(expected, dict) or not expected:
        return False
    return all(isinstance(held, bool) for held in expected.values())


def _pointed_out(task, case, outcome):
    """What the task has to say about this wrong result, "" if nothing."""
    with contextlib.suppress(Exception):  # a result of another type or shape than it looks at
        if task.point_out and outcome.error is None:
            return task.point_out(case.inputs, outcome.value)
    return ""


def _differences(task, does, outcomes, cases, failing):
    """{index of a case: how the result differs}: a Difference, None if right, "" without a result.

    The failing case comes first. Of an answer that takes long not all cases are tried.
    """
    found, until = {}, own_time() + SECONDS
    for index in [failing, *(i for i in range(len(cases)) if i != failing)]:
        if own_time() > until:
            break
        outcome, found[index] = outcomes[index], ""
        if outcome.error is None and not outcome.changed:
            with contextlib.suppress(Exception):  # what cannot be compared
                expected = does.expected(WAYS[0], index)
                found[index] = compare(expected, outcome.value, task.returns, task.tolerance)[0]
    return found


def _judge(task, does, ways, index, case, outcome):
    """Return (the Feedback if this case fails or None, the remarks if it is right).

    ways: in which the case was run, and then a second time, if it was.
    """
    if outcome.error is not None:
        return explanation.of_exception(task, case, outcome.error), []
    try:
        expected = does.expected(ways[0], index)
        failed, remarks = _compared(task, case, outcome, expected)
        others = [does.outcome(way, index, case) for way in ways[1:]]
        repeated = all(same(task, outcome, other) for other in others)
    except NotRun:
        raise
    except Exception:  # sparse, nested, on the meta device: it has no numbers to look at
        return explanation.of_strange_value(task, case, outcome.value), []
    late = [other.error for other in others if isinstance(other.error, OutOfTime)]
    if late:  # it was as right the second time, as far as anybody knows
        return explanation.of_exception(task, case, late[0]), []
    if outcome.changed:
        return explanation.of_changes(task, case, outcome.changed), []
    return (failed, remarks) if repeated else (explanation.of_repetition(task, case), [])


def _compared(task, case, outcome, expected):
    """The same for a single call that came to its end."""
    difference, remarks = compare(expected, outcome.value, task.returns, task.tolerance)
    if difference:
        return explanation.of_difference(task, case, difference), []
    remarks = [*remarks, *([PRINTED] if outcome.printed else [])]
    return None, [*remarks, *(WARNED.format(text) for text in outcome.warned)]


def _kept_from_before(task, does):
    """The Feedback if an answer fails for other numbers of the shapes that it has just passed."""
    for index in range(len(does.cases)):
        other = does.reversed(index)
        if other:
            outcome = does.outcome(WAYS[2], index, other)
            failed, _ = _judge(task, does, WAYS[2:], index, other, outcome)
            if failed:
                return explanation.of_memory(task, failed)
    return None
