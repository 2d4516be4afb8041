"""Task 5.7, count_grouped_attention: parameters where the heads do not share the width."""

from mha_classroom.checks.task import Case, Task, known, read_again
from mha_classroom.tasks.parameter_counting.count_attention import FORBIDDEN, SWALLOWED, random_size
from mha_classroom.tasks.parameter_counting.number_types import in_floats

NAMES = ("num_hiddens", "num_heads", "num_kv_heads", "head_width")


def grouped_cases(draw):
    """Heads that are wider together than a token, narrower, and as wide; few KV heads, and all."""

    def sizes(*numbers, **more):
        return dict(zip(NAMES, numbers, strict=True)) | more

    kv_heads, times = random_size(draw, 2, 5), random_size(draw, 2, 5)
    drawn = random_size(draw, 30, 90), kv_heads * times, kv_heads, random_size(draw, 7, 20)
    return [
        Case("width 2, 6 heads of width 5, 3 KV heads", sizes(2, 6, 3, 5)),
        Case("the same without biases", sizes(2, 6, 3, 5, bias=False)),
        Case("heads narrower than the width, one KV head", sizes(100, 4, 1, 7, bias=True)),
        Case("as many KV heads as heads", sizes(11, 3, 3, 13)),
        Case("heads that share the width, like those of the lesson", sizes(12, 4, 4, 3)),
        Case("heads that share the width, two KV heads", sizes(12, 4, 2, 3)),
        Case("one head", sizes(5, 1, 1, 3)),
        Case("32 heads of width 128, 8 KV heads", sizes(4096, 32, 8, 128, bias=False)),
        Case("drawn at random", sizes(*drawn)),
        Case("33 heads of width 127", sizes(4_097, 33, 11, 127)),  # more than float32 holds
    ]


def build_grouped(
    width=lambda d, H, w: w,
    queries=lambda H, G: H,
    keys=lambda H, G: G,
    values=lambda H, G: G,
    joined=lambda H, G: H,
    inputs=lambda d, inner: inner,
    outputs=lambda d, inner: d,
    output_matrices=1,
    input_biases=lambda q, k, v: q + k + v,
    output_biases=lambda d, inner: d,
    has_biases=bool,
    default=True,
    factor=lambda H: 1,
):
    """width: of one head. queries, keys, values, joined: how many heads each has. inputs,
    outputs, output_biases: of W_o, into which `inner` numbers go.
    """

    def count_grouped_attention(num_hiddens, num_heads, num_kv_heads, head_width, bias=default):
        d, H, G = num_hiddens, num_heads, num_kv_heads
        w = width(d, H, head_width)
        q, k, v, inner = (heads(H, G) * w for heads in (queries, keys, values, joined))
        weights = d * (q + k + v) + output_matrices * inputs(d, inner) * outputs(d, inner)
        biases = input_biases(q, k, v) + output_matrices * output_biases(d, inner)
        return factor(H) * (weights + has_biases(bias) * biases)

    return count_grouped_attention


def grouped_quantities(inputs):
    d, H, G, w = (inputs[name] for name in list(inputs)[:4])
    bias = inputs.get("bias", True)
    terms = {
        "the matrix of W_q, or of W_o": d * H * w,
        "the matrix of W_k, or of W_v": d * G * w,
        "the bias of W_q": H * w * bias,
        "the bias of W_k, or of W_v": G * w * bias,
        "the bias of W_o": d * bias,
        "all biases": (H * w + 2 * G * w + d) * bias,
    }
    return terms, {
        "the number of heads": H,
        "the number of heads of keys": G,
        "the head's width": w,
    }


def _narrow_kv_heads(d, H, G, w, bias=True):
    keys = G * (w // (H // G))
    return 2 * d * (H * w + keys) + bool(bias) * (H * w + 2 * keys + d)


def _half_as_many_kv_heads(d, H, G, w, bias=True):
    return 3 * d * H * w + bool(bias) * (2 * H * w + d)


GROUPED = {
    "width-divided": known(
        "You divide the width by the number of heads to get the width of a head.",
        "In this layer the heads do not share the width. How wide each of them is stands among "
        "the arguments.",
        section="Which sizes have to divide which",
        width=lambda d, H, w: d // H,
    ),
    "kv-heads-ignored": known(
        "You count keys and values for every head.",
        "Several heads read the same keys and values here, so fewer of them are made. Which "
        "argument says how many?",
        keys=lambda H, G: H,
        values=lambda H, G: H,
    ),
    "one-kv-head": known(
        "You count one head of keys and one of values, whatever num_kv_heads is.",
        "head_width is the width of one head, and there may be several of keys and values.",
        keys=lambda H, G: 1,
        values=lambda H, G: 1,
    ),
    "keys-or-values-forgotten": known(
        "You count keys or values, but not both.",
        "W_k and W_v are two matrices of the same shape.",
        values=lambda H, G: 0,
    ),
    "biases-of-heads": known(
        "You count the bias of W_o as long as the joined heads.",
        "A bias is as long as what comes out of its matrix. What comes out of W_o?",
        output_biases=lambda d, inner: inner,
    ),
    "half-as-many-kv-heads": known(
        "Your W_k and W_v together are as large as W_q: you count keys or values alone, for every "
        "head, or half as many KV heads as heads.",
        "In the example that gives the right number. How many KV heads there are is given, and "
        "each makes keys and values.",
        wrong=_half_as_many_kv_heads,
    ),
    "one-of-two-shared": known(
        "Of W_q, W_k and W_v you count one for num_kv_heads heads, and two for num_heads heads.",
        "A KV head is a head of keys and of values. Which of the three matrices make what several "
        "heads share?",
        values=lambda H, G: H,
    ),
    "group-size-taken-for-number": known(
        "You divide the number of heads by the number of KV heads, and count that many KV heads.",
        "The result says how many heads share one KV head. How many KV heads there are is given.",
        keys=lambda H, G: H // G,
        values=lambda H, G: H // G,
    ),
    "queries-shared": known(
        "You count as many heads of queries as of keys and values.",
        "Each head keeps queries of its own. Only keys and values are shared.",
        queries=lambda H, G: G,
    ),
    "output-of-kv-heads": known(
        "Your W_o takes in as many heads as there are KV heads, or your W_q makes as many.",
        "Each query head has a query and an average of its own, although several use the same keys "
        "and values. How many averages are joined before W_o?",
        joined=lambda H, G: G,
    ),
    "output-of-one-head": known(
        "Your W_o takes in one head, or your W_q makes the queries of one.",
        "head_width is the width of one head. How wide are the queries and the outputs of all "
        "heads, side by side?",
        joined=lambda H, G: 1,
    ),
    "everything-shared": known(
        "You count num_kv_heads heads everywhere.",
        "Only keys and values are shared. Each head has queries of its own, and its own output "
        "goes into W_o.",
        queries=lambda H, G: G,
        joined=lambda H, G: G,
    ),
    "one-query-head": known(
        "You count the queries of one head.",
        "head_width is the width of one head, and each head has its own queries.",
        queries=lambda H, G: 1,
    ),
    "heads-forgotten": known(
        "You count one head.",
        "head_width is the width of one head. How wide are all of them together?",
        queries=lambda H, G: 1,
        keys=lambda H, G: 1,
        values=lambda H, G: 1,
        joined=lambda H, G: 1,
    ),
    "output-square": known(
        "Your W_o leads from the joined heads to the same number of features.",
        "It has to lead back to the width of a token, because the next layer expects that width.",
        outputs=lambda d, inner: inner,
        output_biases=lambda d, inner: inner,
    ),
    "output-of-token-width": known(
        "Your W_o has num_hiddens inputs, or your W_q has num_hiddens outputs.",
        "W_q makes the queries of all heads, and W_o takes in their outputs, side by side. How "
        "many numbers are these?",
        inputs=lambda d, inner: d,
    ),
    "output-projection-forgotten": known(
        "You leave out W_o.",
        "The layer has four matrices. The last one leads from the joined heads back to the width "
        "of a token.",
        output_matrices=0,
    ),
    "biases-forgotten": known(
        "You leave out the biases.",
        "With bias=True each of the four matrices has some, and not equally many.",
        input_biases=lambda q, k, v: 0,
        output_biases=lambda d, inner: 0,
    ),
    "biases-of-token-width": known(
        "You count num_hiddens biases for each of the four matrices.",
        "That is right where all four lead to the width of a token. A bias is as long as what "
        "comes out of its matrix.",
        input_biases=lambda q, k, v: 0,
        output_biases=lambda d, inner: 4 * d,
    ),
    "biases-of-inputs": known(
        "Three of your biases have num_hiddens numbers, and one has as many as all heads together.",
        "A bias is added to a result, so it is as long as what comes out of its matrix, not as "
        "what goes in. What comes out of each of the four?",
        input_biases=lambda q, k, v: 0,
        output_biases=lambda d, inner: 3 * d + inner,
    ),
    "biases-of-one-head": known(
        "You count biases of one head for queries, keys and values.",
        "head_width is the width of one head. What comes out of W_q belongs to all heads, and each "
        "number of it has a bias.",
        wrong=lambda d, H, G, w, bias=True: 2 * d * w * (H + G) + bool(bias) * (3 * w + d),
    ),
    "kv-biases-of-all-heads": known(
        "You count biases of keys and values for every head.",
        "Fewer keys and values are made, so fewer biases are added to them.",
        input_biases=lambda q, k, v: 3 * q,
    ),
    "query-bias-only": known(
        "Of the biases you count one number for each feature of all heads, as the bias of W_q has, "
        "and no other.",
        "With bias=True each of the four matrices has biases.",
        input_biases=lambda q, k, v: q,
        output_biases=lambda d, inner: 0,
    ),
    "output-bias-only": known(
        "You count num_hiddens biases, as many as W_o has, and no others.",
        "With bias=True each of the four matrices has biases.",
        input_biases=lambda q, k, v: 0,
    ),
    "output-bias-forgotten": known(
        "As many numbers are missing as W_o has biases.",
        "It is a linear layer like the other three, and each has as many biases as numbers come "
        "out of it. Which are in your count?",
        output_biases=lambda d, inner: 0,
    ),
    "output-bias-always": known(
        "With bias=False you still count num_hiddens biases, as many as W_o has.",
        "Without biases no matrix has any. Which part of your sum does not depend on bias?",
        wrong=lambda d, H, G, w, bias=True: build_grouped()(d, H, G, w, bias) + (0 if bias else d),
    ),
    "bias-ignored": known(
        "You count biases even when bias=False.",
        "A layer that is made without biases has none to count. Where does your code look at the "
        "argument bias?",
        has_biases=lambda bias: True,
    ),
    "no-biases-by-default": known(
        "When nothing is said about biases, you leave them out.",
        "A caller who does not name the argument means a layer with biases. Compare your def line "
        "with the one in the task.",
        default=False,
    ),
    "queries-of-token-width": known(
        "Your W_q leads to num_hiddens features.",
        "It has to make the queries of all heads. How many heads are there, and how wide is each?",
        wrong=lambda d, H, G, w, bias=True: (
            d * (d + 2 * G * w + H * w) + bool(bias) * (2 * d + 2 * G * w)
        ),
    ),
    "queries-and-output-of-token-width": known(
        "Your W_q and your W_o lead from num_hiddens features to num_hiddens features.",
        "The heads do not share the width here. W_q makes the queries of all heads, and W_o takes "
        "in as many numbers.",
        wrong=lambda d, H, G, w, bias=True: 2 * d * (d + G * w) + bool(bias) * (2 * d + 2 * G * w),
    ),
    "width-of-kv-heads-divided": known(
        "You make the heads of keys and values narrower than those of queries.",
        "There are fewer of them, and each is head_width wide: a query and a key have to be "
        "equally long to be compared.",
        wrong=_narrow_kv_heads,
    ),
    "one-bias-a-head": known(
        "You count one number as the bias of a whole head.",
        "A bias is a vector: each number that comes out of a matrix has its own, and a head has "
        "head_width of them.",
        wrong=lambda d, H, G, w, bias=True: 2 * d * w * (H + G) + bool(bias) * (H + 2 * G + d),
    ),
    "nothing-without-biases": known(
        "With bias=False you return 0.",
        SWALLOWED,
        wrong=lambda d, H, G, w, bias=True: build_grouped()(d, H, G, w) if bias else 0,
    ),
    "heads-share-the-width": known(
        "You count a layer whose heads share the width of a token, as in 5.1.",
        "Here the heads have a width of their own. Write down the two sizes of each matrix.",
        section="Which sizes have to divide which",
        wrong=lambda d, H, G, w, bias=True: 4 * d * (d + bool(bias)),
    ),
    "heads-share-the-width-without-groups": known(
        "Where no key heads are shared you count a layer whose heads share the width of a token, "
        "as in 5.1.",
        "As many KV heads as heads makes no groups, and the heads still have the width that is "
        "given.",
        section="Which sizes have to divide which",
        wrong=lambda d, H, G, w, bias=True: (
            4 * d * (d + bool(bias)) if H == G else build_grouped()(d, H, G, w, bias)
        ),
    ),
    "times-heads": known(
        "You multiply the whole layer by the number of heads.",
        "Each matrix is there once, and it already makes the numbers of all heads.",
        factor=lambda H: H,
    ),
    **in_floats(build_grouped()),
}

TASK = Task(
    "05-count_grouped_attention",
    build_grouped(),
    grouped_cases,
    returns=("the number of parameters",),
    mistakes=read_again("Parameters of an attention layer", GROUPED),
    build=build_grouped,
    quantities=grouped_quantities,
    forbidden=FORBIDDEN,
    number=7,
    since=2,
)
