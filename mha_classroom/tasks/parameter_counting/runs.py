"""What runs of lesson 05's tasks beside the learner's code."""

import inspect
import re
import textwrap

from mha_classroom.checks.showing import Text

__all__ = ["run_cache", "run_head_width"]

REFUSALS = ("a ValueError", "an AssertionError", "a plain Exception")  # raised on purpose
SHOWN = 120  # so many characters of what a learner's function says


NEITHER = Text("neither number")
BRACES = Text("neither number, but has braces")
OTHER = Text("another kind of error")


def run_cache(answer, inputs):
    """By place. If the bytes are left out, batch_size by its name, if the answer has this name."""
    if "bytes_per_number" in inputs or "batch_size" not in inputs:
        return answer(*inputs.values())
    *sizes, batch_size = inputs.values()
    if "batch_size" in inspect.signature(answer).parameters:
        return answer(*sizes, batch_size=batch_size)
    return answer(*sizes, 2, batch_size)


def run_head_width(answer, inputs):
    """Call an answer to `head_width`; return the number, or what was raised on purpose."""
    try:
        result = answer(*inputs.values())
    except Exception as error:
        seen = {"raised": _kind_of(error), "text": str(error)}
        if not is_meant(seen, inputs):
            raise  # hardly meant as a refusal: the learner needs to see where it comes from
        return seen
    if isinstance(result, Exception) or result is ValueError:
        return {"returned": None, "is an error": True}
    return {"returned": result, "is an error": False}


def _kind_of(error):
    """An exception in words."""
    if isinstance(error, ValueError):
        return REFUSALS[0]
    known = dict(zip((AssertionError, Exception), REFUSALS[1:], strict=True))
    return known.get(type(error), f"{OTHER}, {type(error).__name__}")


def is_meant(seen, inputs):
    named = message_of(seen["text"], inputs) not in (NEITHER, BRACES)
    refused = seen["raised"] in REFUSALS
    return refused and named if divides(inputs) else refused or named


def divides(inputs):
    num_hiddens, num_heads = inputs.values()
    return num_hiddens % num_heads == 0


def message_of(text, inputs):
    without_separators = re.sub(r"(?<=\d)[,._'\s](?=\d{3})", "", text)  # 3,000,001 or 3 000 001
    numbers = re.findall(r"\d+", f"{text} {without_separators}")
    width, heads = (str(size) in numbers for size in inputs.values())
    if width and heads:
        return Text("both numbers")
    named = BRACES if "{" in text and not numbers else NEITHER
    if width or heads:
        named = f"{'the width' if width else 'the number of heads'} only"
    return Text(named, f"{named}: {short(text)}")


def short(text):
    return repr(textwrap.shorten(text, SHOWN, placeholder=" …"))
