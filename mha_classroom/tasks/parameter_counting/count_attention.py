"""Task 5.1, count_attention: parameters of a multi-head attention layer."""

import itertools

from mha_classroom.checks.forms import like
from mha_classroom.checks.task import Case, Task, known, read_again
from mha_classroom.tasks.parameter_counting.number_types import in_floats


def attention_cases(draw):
    return [
        Case("width 3, biases by default", {"num_hiddens": 3}),
        Case("width 3, without biases", {"num_hiddens": 3, "bias": False}),
        Case("width 7, with biases", {"num_hiddens": 7, "bias": True}),
        Case("the lesson's layer without biases", {"num_hiddens": 512, "bias": False}),
        Case("a width drawn at random", {"num_hiddens": random_size(draw, 8, 400)}),
        # More than float32 holds. (Who builds the layer to count it needs memory for it.)
        Case("a wide layer without biases", {"num_hiddens": 4_099, "bias": False}),
    ]


def random_size(draw, low, high):
    return int(draw.integers(low, high))


def _in_whole_heads(heads, least=0, cut_biases=False):
    """The number of parameters if the width is cut to what so many heads can share."""

    def count_attention(num_hiddens, bias=True):
        d = num_hiddens
        cut = d // heads * heads if d >= heads else least * d
        biases = 3 * (cut if cut_biases else d) + d
        return 4 * d * cut + biases * bool(bias)

    return count_attention


WHOLE_HEADS = [_in_whole_heads(*way) for way in itertools.product(range(2, 65), (0, 1), (0, 1))]


def build_attention(
    matrices=4,
    weights=lambda d: d * d,
    biases=lambda matrices, d: matrices * d,
    has_biases=bool,
    default=True,
    factor=1,
):
    def count_attention(num_hiddens, bias=default):
        d = num_hiddens
        return factor * (matrices * weights(d) + has_biases(bias) * biases(matrices, d))

    return count_attention


def attention_quantities(inputs):
    d, bias = inputs["num_hiddens"], inputs.get("bias", True)
    terms = {"one matrix": d * d, "the bias of one matrix": d * bias, "the width": d}
    return terms, {"the width": d}


XOR = "You write ^ for a power."
POWER = (
    "In Python ^ compares two numbers bit by bit: 3 ^ 2 is 1. A power is written with two stars."
)

SWALLOWED = (
    "The matrices are there with and without biases. What depends on bias in your code: the "
    "biases alone, or the whole sum, as in `a + b if bias else 0`?"
)

ATTENTION = {
    "width-cut-to-heads": known(
        "You count whole heads: where num_hiddens cannot be shared out evenly, features are lost.",
        "Each of the four matrices leads from all features to all features, however many heads "
        "share them. Is a number of heads needed at all?",
        wrong=_in_whole_heads(8),
        shows=like(*WHOLE_HEADS),
    ),
    "biases-forgotten": known(
        "You count the matrices and leave their biases out.",
        "A bias is trained like any entry of a matrix, and with bias=True there are some. Every "
        "output has one: how many outputs do the matrices have?",
        biases=lambda matrices, d: 0,
    ),
    "bias-ignored": known(
        "You count biases even when bias=False.",
        "A layer that is made without biases has none to count. Where does your code look at the "
        "argument bias?",
        has_biases=lambda bias: True,
    ),
    "bias-inverted": known(
        "Your biases are the wrong way round: counted with bias=False, left out with bias=True.",
        "The argument says whether the layer has them.",
        has_biases=lambda bias: not bias,
    ),
    "no-biases-by-default": known(
        "When nothing is said about biases, you leave them out.",
        "A caller who does not name the argument means a layer with biases. Compare your def line "
        "with the one in the task.",
        default=False,
    ),
    "output-projection-forgotten": known(
        "You count three matrices.",
        "W_q, W_k and W_v lead into the heads. Which matrix makes the layer's output of what comes "
        "out of them?",
        matrices=3,
    ),
    "one-matrix-only": known(
        "You count one matrix.",
        "W_q, W_k, W_v and W_o have the same shape, and each has numbers of its own.",
        matrices=1,
        factor=1,
    ),
    "output-bias-forgotten": known(
        "You count three biases, and there are four matrices.",
        "Each of them has one: W_o is a linear layer like the other three. A bias counts whether "
        "or not the result would be another without it.",
        biases=lambda matrices, d: min(matrices, 3) * d,
    ),
    "one-more-input-and-output": known(
        "With biases you count a matrix of (d + 1) by (d + 1) for each of d by d.",
        "A bias can be seen as one more input that is always 1. Does it make one more output, too?",
        biases=lambda matrices, d: matrices * (2 * d + 1),
    ),
    "biases-of-one-matrix": known(
        "You count d biases for a width of d, as many as a single matrix has.",
        "Each matrix that leads somewhere has its own. Which of yours go without, and why those?",
        biases=lambda matrices, d: d,
    ),
    "one-bias-a-matrix": known(
        "You count one number as the bias of a whole matrix.",
        "A bias is a vector: no two outputs share a number.",
        biases=lambda matrices, d: matrices,
    ),
    "two-matrices": known(
        "You count two matrices.",
        "W_q, W_k, W_v and W_o are four, and each has numbers of its own.",
        matrices=2,
    ),
    "biases-of-two-matrices": known(
        "You count 2 · d biases for a width of d, as many as two matrices have.",
        "Each of the four leads somewhere and has its own. Which of yours go without, and why "
        "those?",
        biases=lambda matrices, d: 2 * d,
    ),
    "nothing-without-biases": known(
        "With bias=False you return 0.",
        SWALLOWED,
        wrong=lambda d, bias=True: 4 * d * d + 4 * d if bias else 0,
    ),
    "sides-added": known(
        "You count d + d numbers for a matrix of d by d: you add its two sides, or you write one "
        "star, d * 2, where d ** 2 is meant.",
        "A matrix has a number for every pair of an input and an output. Draw one of 3 by 3 and "
        "count its entries.",
        weights=lambda d: d + d,
    ),
    "three-for-the-width": known(
        "You count 3 numbers for each output of a matrix, whatever the width is.",
        "3 is the width of the example. How many inputs has a matrix of another width?",
        weights=lambda d: 3 * d,
    ),
    "outputs-only": known(
        "You count one weight for each output of a matrix.",
        "An output is a weighted sum of all inputs, so a whole column of weights belongs to it.",
        weights=lambda d: d,
    ),
    **{
        f"times-{heads}-heads": known(
            f"Your number is {heads} times too large, as that of {heads} heads of full width"
            f"{more}.",
            f"The heads of a layer share its width: {heads} heads are each {heads} times "
            "narrower. The lesson counts layers of 1 to 32 heads: what happens to their sum?",
            factor=heads,
        )
        for heads, more in ((8, ", or the bytes of float64"), (12, ""))
    },
    "every-head-full-width": known(
        "You give each of 8 heads the full width.",
        "Such a layer can be built, and it costs 8 times as much. In the layer that is used the "
        "heads share the width: num_hiddens is what all of them have together.",
        weights=lambda d: 8 * d * d,
        biases=lambda matrices, d: 25 * d,
    ),
    **{
        f"three-matrices-times-{heads}-heads": known(
            f"You count W_q, W_k and W_v at the full width for each of {heads} heads.",
            f"The heads of a layer share its width: {heads} heads are each {heads} times narrower. "
            "How many numbers are W_q, W_k and W_v of one such head?",
            matrices=3 * heads + 1,
        )
        for heads in (8, 12)
    },
    "xor-for-power": known(
        XOR,
        POWER,
        weights=lambda d: d ^ 2,
    ),
    "xor-of-the-product": known(
        XOR,
        POWER,
        wrong=lambda d, bias=True: (4 * d ^ 2) + (4 * d if bias else 0),
    ),
    "xor-of-the-sum": known(
        XOR,
        POWER,
        wrong=lambda d, bias=True: 4 * d ^ 2 + (4 * d if bias else 0),
    ),
    "bytes-not-numbers": known(
        "Your number is 4 times too large: do you multiply by 4 twice, or count the bytes of "
        "float32, or 4 heads?",
        "Asked for are numbers, in however many bytes each is stored. And heads share the width of "
        "a layer, so that it costs the same with any number of them.",
        factor=4,
    ),
    **in_floats(build_attention()),
    "width-cubed": known(
        "You take the third power of the width.",
        "A matrix has as many numbers as rows times columns. Two widths meet in it, not three.",
        wrong=lambda d, bias=True: 4 * d**3 + (4 * d if bias else 0),
    ),
    "biases-as-a-matrix": known(
        "You count the biases as one more matrix.",
        "A bias has one number for each output: it is as long as one side of its matrix.",
        wrong=lambda d, bias=True: 4 * d * d + (d * d if bias else 0),
    ),
}

FORBIDDEN = ("mha_course.counting",)

TASK = Task(
    "05-count_attention",
    build_attention(),
    attention_cases,
    returns=("the number of parameters",),
    mistakes=read_again("Parameters of an attention layer", ATTENTION),
    build=build_attention,
    quantities=attention_quantities,
    forbidden=FORBIDDEN,
    number=1,
)
