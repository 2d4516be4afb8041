"""Put into words what is wrong with an answer."""

import dataclasses
import re

import torch

from mha_classroom.checks.compare import FLOAT
from mha_classroom.checks.exception_meanings import explain, learners_frames
from mha_classroom.checks.feedback import Feedback
from mha_classroom.checks.forbidden import Borrowed
from mha_classroom.checks.registry import lesson_of
from mha_classroom.checks.showing import describe, listed, rounded
from mha_classroom.checks.task import AnswerError
from mha_classroom.checks.time_limit import OutOfTime

__all__ = [
    "of_changes",
    "of_difference",
    "of_exception",
    "of_memory",
    "of_mistakes",
    "of_repetition",
    "of_shortage",
    "of_stage",
    "of_strange_value",
    "with_remark",
]


SMALL = 24  # inputs of up to this many numbers are shown in full
FEW = 8  # and lists of up to this many words or numbers
PLAIN = (str, int, float)
# What the text on a mistake says is right, as a sentence and before another half of it.
IS_RIGHT = re.compile(
    r"(?<![^ ])(?:The|Your|Each|They|W_o|W and b|All)\b[^.,:?]* (?:is|are) "
    r"(?:right|the right ones|where they should be)\.(?: |$)"
)
RIGHT_BUT = re.compile(
    r"(?<![^ ])(?:The|Your) [\w ]+ (?:is|are) right(?: for padding)?, (?:but|and) (\w)"
)
IN_FLOAT32 = (
    "It is nearly right: on the way your numbers are in float32, which keeps about 7 digits, and "
    "here more of them count. Is there a .float(), or a tensor made without the inputs' dtype?"
)
PYTORCHS_HINT = " Hint: enable anomaly detection"  # to somebody who debugs PyTorch


def of_mistakes(task, failed, mistakes, other=(), sure=True, off_by=""):
    """The feedback on an answer that makes known mistakes; the failing case is its example.

    other: two mistakes that together give the same numbers, so that they may be meant.
    sure: whether nothing but these gives the results. Of a single number others could come, too.
    off_by: by what a number is off, which is sure even where two mistakes are only likely.
    """
    words = [f"{mistake.did} {mistake.why}" for mistake in mistakes]
    if len(words) > 1:
        words = [_without_praise(text) for text in words]
        count = ("Two", "Three")[len(words) - 2]
        if sure:
            said, places = f"{count} things at once.", ("First", "Second", "Third")
        else:
            said = f"{count} mistakes together would give your number, and so might others."
            said = f"{off_by} {said}" if off_by else said
            places = ("One may be", "Another may be", "A third may be")
        words = [f"{place}: {text}" for place, text in zip(places, words, strict=False)]
        words[0] = f"{said} {words[0]}"
    if other:
        did = " ".join(mistake.did for mistake in other)
        words.append(f"Or two other things that together give the same numbers. {did}")
    details = [] if task.secret else [d for d in failed.details if d[0] != "what it means"]
    if failed.kind != "changed inputs" and not any(d[0].startswith("yours") for d in details):
        details.insert(0, ("what came of it", failed.message))
    return dataclasses.replace(
        failed,
        kind="mistake",
        mistake=" + ".join(mistake.id for mistake in mistakes),
        message=words[0],
        remarks=tuple(words[1:]),
        details=tuple(details),
        sections=tuple(dict.fromkeys(mistake.section for mistake in mistakes)),
        lesson=lesson_of(task.id),
    )


def _without_praise(text):
    """The text on a mistake without what it says is right: another mistake may be about that."""
    text = IS_RIGHT.sub("", text).strip()
    text = RIGHT_BUT.sub(lambda found: found[1].upper(), text)
    return text.replace("the right tokens", "the tokens")


def of_stage(failed, stage, name="", skippable=False, parts=()):
    """The feedback with the first stage that differs named, where it could be found.

    name: of the part of the result that differs, where there are several. skippable: whether other
    stages may be there in another form. parts: the names of all parts that differ.
    """
    if stage is None:
        return failed
    right, wrong = stage
    if right in parts:  # right on the way, and not as it is returned
        shape = "Look at the shape in which you return it."
        ask = shape if failed.kind == "shape" else "What happens in between?"
        text = f"On the way your code has {right} as asked for, but it returns something else."
        return with_remark(failed, f"{text} {ask}")
    reached = f"Right so far, with a name in your code or without: {right}. " if right else ""
    if failed.kind == "raises":  # what comes later is not there because of the error
        return with_remark(failed, f"{reached}Then comes the error." if right else "")
    if skippable:
        return with_remark(failed, f"{reached}Look at what you make of it.")
    if wrong is None:
        get = f"how you get {name}" if name else "what you make of it and return"
        return with_remark(failed, f"{reached}Look at {get}.")
    between = " Look between the two, unless you go another way." if right else ""
    which = "The next" if right else "A"
    text = f"{reached}{which} step that none of your tensors holds by itself: {wrong}.{between}"
    return with_remark(failed, text)


def with_remark(failed, remark):
    """The feedback with one more sentence, if there is one."""
    return dataclasses.replace(failed, remarks=(*failed.remarks, *filter(None, [remark])))


def of_floats(task, case):
    """The feedback on an answer whose only fault is that floats stand where ints are asked for."""
    return Feedback(task.id, "type", FLOAT, (describe_case(task, case),))


def of_changes(task, case, names):
    """The feedback on an answer that changes its inputs."""
    inputs = listed([f"`{name}`" for name in names])
    message = (
        f"{task.name} changes the caller's {inputs}. Whoever calls it still "
        "needs what was there before: work on a copy. (Functions whose names end in _, += and its "
        "like, assignments to X[...], and sort, pop or append of a list change what is given.)"
    )
    return Feedback(task.id, "changed inputs", message, (describe_case(task, case),))


def of_strange_value(task, case, value):
    """The feedback on a result that cannot even be compared."""
    message = (
        f"What {task.name} returns cannot be compared: {describe(value)}. Return ordinary tensors "
        "or numbers."
    )
    return Feedback(task.id, "strange", message, (describe_case(task, case),))


def of_repetition(task, case):
    """The feedback on an answer that gives another result the second time."""
    message = (
        f"{task.name} gives two different results for the same inputs, one after another. Is "
        "something random in it (dropout that is not turned off, torch.rand), or does it keep "
        "something from one call to the next?"
    )
    return Feedback(task.id, "not repeatable", message, (describe_case(task, case),))


def of_shortage(task):
    """The feedback on an answer that was right as long as its time lasted."""
    message = f"{task.name} takes so long that its time was over before all cases were tried."
    return Feedback(task.id, "timeout", message)


def of_memory(task, failed):
    """The feedback on an answer that is wrong for the numbers of a case in reverse order."""
    message = (
        f"{task.name} is right here, and wrong for the same numbers in reverse order. It holds for "
        "some numbers only, or loses digits, or keeps something from an earlier call. "
        f"{failed.message}"
    )
    return dataclasses.replace(failed, kind="not repeatable", message=message)


def of_difference(task, case, difference):
    """The feedback on a result that differs from what is expected."""
    message = _as_sentence(difference.message)
    message = message if difference.name else _or_no_return(message)
    if task.secret:
        return Feedback(task.id, difference.kind, message)
    details = [describe_case(task, case)]
    of_what = f": {difference.name}" if difference.name else ""
    if difference.yours:
        details.append((f"yours{of_what}", difference.yours))
    if difference.expected:
        details.append((f"expected{of_what}", difference.expected))
    return Feedback(task.id, difference.kind, message, tuple(details))


def of_exception(task, case, error):
    """The feedback on an answer that raises."""
    if isinstance(error, AnswerError):
        message = _or_no_return(str(error))
        return Feedback(task.id, "type", message, (describe_case(task, case),))
    if isinstance(error, Borrowed):
        message = f"Your code calls {error}. The task asks you to do it yourself."
        return Feedback(task.id, "borrowed", message)
    if isinstance(error, OutOfTime):
        message = (
            f"{task.name} did not come to an end in time and was stopped. Is there a loop whose "
            "condition never becomes false, or something that takes long?"
        )
        return Feedback(task.id, "timeout", message, (describe_case(task, case),))
    own = learners_frames(error)
    if isinstance(error, NotImplementedError) and "forward" in str(error):
        message = f"The class {task.name} has no method named forward, or it is misspelt."
        return Feedback(task.id, "raises", message)
    if isinstance(error, NotImplementedError):
        missing = own[-1][2] if own else task.name
        if missing in (task.name, "__init__", "forward"):
            message = f"{task.name} is not written yet: replace `raise NotImplementedError()`."
        else:
            message = f"{task.name} calls {missing}, which is not written yet."
        return Feedback(task.id, "unwritten", message)
    if isinstance(error, SystemExit):
        message = f"{task.name} ends Python (exit or quit). It has to return its result."
        return Feedback(task.id, "raises", message, (describe_case(task, case),))
    said = str(error).partition(PYTORCHS_HINT)[0]
    message = f"{task.name} raises {type(error).__name__}: {said}".removesuffix(": ")
    details = [describe_case(task, case)]
    meaning = explain(error)
    if meaning:
        details.insert(0, ("what it means", meaning))
    if own:
        _, number, function, line = own[-1]
        inside = "" if function.startswith("<") else f", in {function}"  # <listcomp>, <module>
        details.insert(0, (f"at line {number} of the cell{inside}", line))
    return Feedback(task.id, "raises", message, tuple(details))


def _or_no_return(text):
    """The sentence, and where it found None the usual reason for that."""
    return f"{text} Is there a `return`, and is it reached?" if text.endswith("got None.") else text


def _as_sentence(text):
    """With a capital letter, unless it begins with a name from the learner's code, and a stop."""
    first = text.split(maxsplit=1)[0]
    return (text if "_" in first else text[0].upper() + text[1:]) + "."


def describe_case(task, case):
    """The heading and text that show a case's inputs."""
    shown = {name: X for name, X in case.inputs.items() if name not in task.hidden}
    lines = [f"{name} = {_input_text(X)}" for name, X in shown.items()]
    return f"case: {case.name}", "\n".join(lines) or f"{task.name}({'...' * bool(case.inputs)})"


def _has_small(X):
    """Whether a tensor has numbers of which little or nothing is left in 4 decimals."""
    return X.is_floating_point() and bool(((X != 0) & (X.abs() < 1e-3)).any())


def _readable(numbers):
    """Numbers in nested lists, rounded; of small ones 4 digits stay, however small they are."""
    if isinstance(numbers, list):
        return [_readable(number) for number in numbers]
    return float(f"{numbers:.4g}") if abs(numbers) < 1e-3 else round(numbers, 4)


def _input_text(X):
    if torch.is_tensor(X) and X.numel() <= SMALL:
        return str(_readable(X.tolist()) if _has_small(X) else rounded(X).tolist())
    if isinstance(X, (list, tuple)) and len(X) <= FEW and all(isinstance(x, PLAIN) for x in X):
        return str(list(X))
    return re.sub(r"^(the dtype|the number|the text|an?) ", "", describe(X))
