"""Cases, run and examination of lesson 05's task that refuses a width its heads cannot share."""

import re
import textwrap

from mha_course.checks.examining import total
from mha_course.checks.task import AnswerError, Case

__all__ = ["examine_head_width", "run_head_width", "width_cases"]

REFUSALS = ("a ValueError", "an AssertionError", "a plain Exception")  # raised on purpose
SHOWN = 120  # so many characters of what a learner's function says


class Text(str):
    """A text that stands for what an answer did; shown as it is, or as `shown`, unquoted.

    Two are equal if the texts are, whatever is shown.
    """

    def __new__(cls, text, shown=None):
        made = super().__new__(cls, text)
        made.shown = shown or text
        return made

    def __repr__(self):
        return self.shown


NEITHER = Text("a message that names neither number")
OTHER = Text("another kind of error")


def width_cases(draw):
    """Cases for `head_width`, those that divide and those that have to be refused."""
    heads, width = (int(draw.integers(*ends)) for ends in ((3, 12), (21, 80)))

    def case(num_hiddens, num_heads, name=None):
        refused = ": to be refused" if num_hiddens % num_heads else ""
        name = name or f"width {num_hiddens}, {num_heads} heads{refused}"
        return Case(name, {"num_hiddens": num_hiddens, "num_heads": num_heads})

    return [
        case(12, 4),
        case(10, 4),
        case(4, 8),
        case(7, 1, "one head"),
        case(7, 7, "as many heads as features"),
        case(45, 3, "an odd width, 3 heads"),
        case(7, 2),
        case(11, 4),
        case(768, 10),
        case(heads * width, heads, "drawn at random"),
        case(heads * width + 1, heads, "drawn at random, to be refused"),
    ]


def run_head_width(answer, inputs):
    """Call an answer to `head_width`; return the number, or what was raised on purpose."""
    try:
        result = answer(*inputs.values())
    except Exception as error:
        seen = {"raised": _kind_of(error), "text": str(error)}
        if not _is_meant(seen, inputs):
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


def _is_meant(seen, inputs):
    named = _message(seen["text"], inputs) != NEITHER
    refused = seen["raised"] in REFUSALS
    return refused and named if _divides(inputs) else refused or named


def _divides(inputs):
    num_hiddens, num_heads = inputs.values()
    return num_hiddens % num_heads == 0


@total
def examine_head_width(inputs, seen):
    """A dict: the number, or where the heads do not divide the width what came and its message.

    Raises: AnswerError if it refuses where the heads do divide the width.
    """
    num_hiddens, num_heads = inputs.values()
    called = f"head_width({num_hiddens}, {num_heads})"
    came = _refusal(seen, inputs) if "raised" in seen else _returned(seen)
    if not _divides(inputs):
        message = _message(seen["text"], inputs) if "raised" in seen else Text("no message")
        return {called: came, f"the message of {called}": message}
    if isinstance(came, Text):
        raise AnswerError(
            f"{called} gives {came!r}, though the heads do divide the width: {num_hiddens} shared "
            f"by {num_heads} leaves nothing over."
        )
    return {called: came}


def _refusal(seen, inputs):
    """What a refusal is called."""
    if not _is_meant(seen, inputs):
        raise AnswerError(f"head_width raises {seen['raised']}: {seen['text']}")
    return Text(seen["raised"]) if seen["raised"] in REFUSALS else Text(OTHER, seen["raised"])


def _returned(seen):
    if seen["is an error"] is not False:
        return Text("an error that is returned, not raised")
    result = seen["returned"]
    return Text("a text", f"the text {_short(result)}") if isinstance(result, str) else result


def _message(text, inputs):
    numbers = re.findall(r"\d+", text)
    width, heads = (str(size) in numbers for size in inputs.values())
    if width and heads:
        return Text("a message that names both numbers")
    named = NEITHER
    if width or heads:
        named = f"a message that names {'the width' if width else 'the number of heads'} only"
    return Text(named, f"{named}: {_short(text)}")


def _short(text):
    return repr(textwrap.shorten(text, SHOWN, placeholder=" …"))
