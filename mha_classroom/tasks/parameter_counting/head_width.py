"""Task 5.6, head_width: the width of a head, or an error."""

import numbers

from mha_classroom.checks.examining import total
from mha_classroom.checks.showing import Text, number_text
from mha_classroom.checks.task import AnswerError, Case, Task, known, read_again
from mha_classroom.tasks.parameter_counting.count_attention import FORBIDDEN
from mha_classroom.tasks.parameter_counting.runs import (
    OTHER,
    REFUSALS,
    divides,
    is_meant,
    message_of,
    run_head_width,
    short,
)
from mha_course import counting


def width_cases(draw):
    """Numbers that divide, and some that have to be refused."""
    heads, width = (int(draw.integers(*ends)) for ends in ((3, 12), (21, 80)))

    def case(num_hiddens, num_heads, name=None):
        refused = ": to be refused" if num_hiddens % num_heads else ""
        name = name or f"width {num_hiddens}, {num_heads} heads{refused}"
        return Case(name, {"num_hiddens": num_hiddens, "num_heads": num_heads})

    return [
        case(12, 4),
        case(10, 4),
        case(1, 4),
        case(7, 1, "one head"),
        case(49, 49, "as many heads as features"),
        case(45, 3, "an odd width, 3 heads"),
        case(7, 2),
        case(11, 4),
        case(768, 10),
        case(10_000_000, 9_999_999),  # nearly 1
        case(10_000_000, 5, "a width of 10 million"),
        case(heads * width, heads, "drawn at random"),
        case(heads * width + 1, heads, "drawn at random, to be refused"),
    ]


@total
def examine_head_width(inputs, seen):
    """A dict: the number, or where the heads do not divide the width what came and its message.

    Raises: AnswerError if it refuses where the heads do divide the width.
    """
    num_hiddens, num_heads = inputs.values()
    called = f"head_width({num_hiddens}, {num_heads})"
    came = _refusal(seen, inputs) if "raised" in seen else _returned(seen)
    if not divides(inputs):
        message = message_of(seen["text"], inputs) if "raised" in seen else Text("nothing")
        return {called: came, f"in the message of {called}": message}
    if isinstance(came, Text):
        raise AnswerError(
            f"{called} gives {came!r}, though the heads do divide the width: {num_hiddens} shared "
            f"by {num_heads} leaves nothing over."
        )
    return {called: came}


def point_out_features(inputs, came):
    """How many features the heads have together, with the width that was returned."""
    num_hiddens, num_heads = inputs.values()
    width = next(iter(came.values()))
    if not divides(inputs) or not isinstance(width, numbers.Real):
        return ""
    return (
        f"{num_heads} {'head' if num_heads == 1 else 'heads'} of the width {number_text(width)} "
        f"have {number_text(num_heads * width)} features, and {num_hiddens} are to be shared."
    )


def _refusal(seen, inputs):
    """What a refusal is called."""
    if not is_meant(seen, inputs):
        raise AnswerError(f"head_width raises {seen['raised']}: {seen['text']}")
    return Text(seen["raised"]) if seen["raised"] in REFUSALS else Text(OTHER, seen["raised"])


def _returned(seen):
    if seen["is an error"] is not False:
        return Text("an error that is returned, not raised")
    result = seen["returned"]
    return Text("a text", f"the text {short(result)}") if isinstance(result, str) else result


def _raising(kind):
    def refuse(text):
        raise kind(text)

    return refuse


def _returning(number):
    return lambda text: number


REFUSE = _raising(ValueError)


def build_width(
    refused=lambda d, h: d % h != 0,
    refuse=REFUSE,
    message="{h} heads, width {d}",
    result=lambda d, h: d // h,
):
    def head_width(num_hiddens, num_heads):
        if refused(num_hiddens, num_heads):
            return refuse(message.format(d=num_hiddens, h=num_heads))
        return result(num_hiddens, num_heads)

    return head_width


def _refused_sometimes(inputs, value):
    """Whether the width is right, or refused, or given as a number where it should be refused."""
    d, h = inputs.values()
    came, *message = value.values()
    if isinstance(came, numbers.Real):
        return d % h != 0 or came == d // h
    return came == "a ValueError" and message == ["both numbers"]


WIDTH = {
    "cut-silently": known(
        "Where the heads do not divide the width, your function raises nothing and returns a "
        "number all the same.",
        "4 heads of width 2 make 8. If the width is 10, two features belong to no head: W_q "
        "computes them, nothing reads them, and no error says so.",
        refused=lambda d, h: False,
    ),
    "fraction": known(
        "You return a fraction where the heads do not divide the width.",
        "No tensor has half a column. The mistake is only found where somebody builds one, far "
        "from the two numbers that caused it.",
        refused=lambda d, h: False,
        result=lambda d, h: d / h,
    ),
    "rounded": known(
        "You round to a whole number.",
        "Heads of that width do not fill the layer, or do not fit into it: multiply your result by "
        "the number of heads.",
        refused=lambda d, h: False,
        result=lambda d, h: round(d / h),
    ),
    "rounded-up": known(
        "You round up.",
        "Heads of that width do not fit into the layer: multiply your result by the number of "
        "heads.",
        refused=lambda d, h: False,
        result=lambda d, h: -(-d // h),
    ),
    "asserted": known(
        "You refuse with an AssertionError, as an assert raises it.",
        "If it is an assert, python -O skips it, and then nothing is refused. The task names the "
        "error that is wanted.",
        refuse=_raising(AssertionError),
    ),
    "plain-exception": known(
        "You raise a plain Exception.",
        "Whoever wants to catch it has to catch everything else too. The task names the error "
        "that is wanted.",
        refuse=_raising(Exception),
    ),
    "another-error": known(
        "You refuse with another kind of error.",
        "Whoever catches the one that the task names will miss yours. Errors have types for that: "
        "the two numbers are numbers, only their values do not go together.",
        refuse=_raising(TypeError),
    ),
    "error-returned": known(
        "You return the error.",
        "To the caller it is a result like any other, and the program goes on with it. An error "
        "stops the program only if it is raised.",
        refuse=ValueError,
    ),
    "text-returned": known(
        "You return a text that says what is wrong.",
        "To the caller it is a result like any other, and the program goes on with it. An error "
        "has to be raised.",
        refuse=str,
    ),
    "nothing-returned": known(
        "Where the heads do not divide the width, your function raises nothing and returns None.",
        "The program that called it goes on, and its next line calculates with None. Only an "
        "error stops it, and a text that is printed does not.",
        refuse=lambda text: None,
    ),
    **{
        f"{number}-returned": known(
            f"Where the heads do not divide the width, your function returns {number}.",
            "To the caller it is a width like any other, and the program goes on with it. An error "
            "has to be raised.",
            refuse=_returning(number),
        )
        for number in (0, -1)
    },
    "message-without-numbers": known(
        "You refuse, and your message names neither number.",
        "Whoever reads it may not know which width and how many heads your function was given: "
        "they came from a file of settings, or another function.",
        message="the heads do not divide the width",
    ),
    "message-with-braces": known(
        "You refuse, and your message has braces where the numbers should be.",
        "In an f-string Python puts a value where a name stands in single braces. Without the f, "
        "only format() fills braces. What stands in front of your quotes?",
        message="{{h}} heads, width {{d}}",
    ),
    "message-of-the-example": known(
        "Your message says 10 and 4 whatever the numbers are.",
        "These are the numbers of the task's example. Whoever reads the message needs those that "
        "your function was given.",
        message="4 heads, width 10",
    ),
    "message-with-the-width-only": known(
        "You refuse, and of the two numbers your message names the width only.",
        "Either of the two numbers may be the one to change. Whoever reads it needs the other one "
        "as well, in digits.",
        message="width {d}",
    ),
    "message-with-the-heads-only": known(
        "You refuse, and of the two numbers your message names the number of heads only.",
        "Either of the two numbers may be the one to change. Whoever reads it needs the other one "
        "as well, in digits.",
        message="{h} heads",
    ),
    "condition-inverted": known(
        "You refuse where the heads do divide the width, and cut where they do not.",
        "% gives what is left over. What is left over from 12 shared by 4, and what does an if "
        "make of that number?",
        refused=lambda d, h: d % h == 0,
    ),
    "remainder-of-the-wrong-division": known(
        "You refuse wherever there are more features than heads: you look at what is left over "
        "when the heads are divided by the width, or at which number is larger.",
        "The width is what is shared out, and the heads are those who share it. Which of the two "
        "has to stand on the left of %?",
        refused=lambda d, h: h % d != 0,
    ),
    "only-too-many-heads-refused": known(
        "Of the cases that were tried you refuse only the one with more heads than features. Do "
        "you ask which number is larger, or divide the heads by the width?",
        "10 features for 4 heads are enough for everyone, and still cannot be shared evenly.",
        refused=lambda d, h: h > d,
    ),
    "odd-widths-refused": known(
        "You ask whether the width is even.",
        "3 heads can share 45 features, and 4 heads cannot share 10. It depends on both numbers.",
        refused=lambda d, h: d % 2 != 0,
    ),
    "refused-sometimes": known(
        "You do not refuse every width that the heads cannot share.",
        "Sharing works out or it does not: what is left over says which, whatever the two numbers "
        "are otherwise.",
        wrong=build_width(refused=lambda d, h: d % h % 2 != 0),
        shows=_refused_sometimes,
    ),
    "full-width": known(
        "You return the whole width.",
        "Then every head would be as wide as the layer, and the layer would cost as many times as "
        "much. The heads share the width.",
        section="Parameters of an attention layer",
        result=lambda d, h: d,
    ),
    "divided-the-wrong-way": known(
        "You divide the number of heads by the width.",
        "12 features for 4 heads: how many does each get?",
        result=lambda d, h: h / d,
    ),
    "remainder-returned": known(
        "You return 0 where the heads do divide the width: is that what is left over?",
        "% tells you whether the division works out. What each head gets is another number.",
        result=lambda d, h: d % h,
    ),
}

TASK = Task(
    "05-head_width",
    counting.head_width,
    width_cases,
    run=run_head_width,
    examine=examine_head_width,
    mistakes=read_again("Which sizes have to divide which", WIDTH),
    build=build_width,
    point_out=point_out_features,
    forbidden=FORBIDDEN,
    number=6,
)
