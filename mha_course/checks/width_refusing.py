"""Cases and run of lesson 05's task that refuses a width its heads cannot share."""

import re
import textwrap

from mha_course.checks.task import AnswerError, Case

__all__ = ["run_head_width", "width_cases"]

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
    """Call an answer to `head_width`; where it has to refuse, make values of its refusal.

    Returns a dict: the number, or where the heads do not divide the width what came instead and
    its message.
    Raises: AnswerError if it refuses where the heads do divide the width.
    """
    sizes, message = tuple(inputs.values()), Text("no message")
    called = "head_width({}, {})".format(*sizes)
    divides = sizes[0] % sizes[1] == 0
    try:
        came = _text(answer(*sizes))
    except Exception as error:
        message = _message(error, *sizes)
        came = _refusal(error, message)
        if came is None or (divides and (message == NEITHER or came == OTHER)):
            raise  # hardly meant as a refusal: the learner needs to see where it comes from
    if not divides:
        return {called: came, f"the message of {called}": message}
    if isinstance(came, Text):
        raise AnswerError(
            f"{called} gives {came!r}, though the heads do divide the width: {sizes[0]} shared by "
            f"{sizes[1]} leaves nothing over."
        )
    return {called: came}


def _refusal(error, message):
    """What a refusal is called; None for an error that nobody raised on purpose."""
    known = {AssertionError: "an AssertionError", Exception: "a plain Exception"}
    if isinstance(error, ValueError):
        return Text("a ValueError")
    if type(error) in known:
        return Text(known[type(error)])
    shown = f"{OTHER}, {type(error).__name__}"
    return None if message == NEITHER else Text(OTHER, shown)


def _text(result):
    if isinstance(result, Exception) or result is ValueError:
        return Text("an error that is returned, not raised")
    return Text("a text", f"the text {_short(result)}") if isinstance(result, str) else result


def _message(error, num_hiddens, num_heads):
    numbers = re.findall(r"\d+", str(error))
    width, heads = (str(size) in numbers for size in (num_hiddens, num_heads))
    if width and heads:
        return Text("a message that names both numbers")
    named = NEITHER
    if width or heads:
        named = f"a message that names {'the width' if width else 'the number of heads'} only"
    return Text(named, f"{named}: {_short(error)}")


def _short(text):
    return repr(textwrap.shorten(str(text), SHOWN, placeholder=" …"))
