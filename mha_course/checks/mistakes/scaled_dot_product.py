"""The known mistakes of lesson 02 about attention as a whole."""

import math

from mha_course.checks.mistakes.combining import apart, without
from mha_course.checks.mistakes.late_hiding import HAD_A_SAY, late
from mha_course.checks.mistakes.lengths import LENGTHS
from mha_course.checks.mistakes.masked_softmax import FILLS, HIDING, build_masked_softmax
from mha_course.checks.mistakes.scaled_scores import SCALES, not_scaled, pairs, right_scale
from mha_course.checks.task import Mistake

__all__ = ["ATTENTION", "HIDES_OTHERS", "RESULTS", "SELDOM", "build_attention"]

SHOUT = "Wide vectors shout"
VANISH = "What does vanish"
SCORE = "Scaled scores"
PADDING = "Hiding padding"
TOGETHER = "Put together"


# Whoever makes one of these makes it in `scaled_scores`.
SELDOM = (
    "divided-by-twice-the-width",
    "divided-by-root-of-queries",
    "multiplied-by-root",
    "width-of-the-example",
    "root-cut-to-whole",
    "root-rounded",
)


def build_attention(
    product=pairs,
    scale=right_scale,
    settle=lambda weights, queries: weights,
    used=lambda softmax, raw, scores, weights: weights,
    shown=lambda softmax, raw, scores, weights: weights,
    weigh=lambda weights, keys, values: weights @ values,
    give=lambda output, weights: (output, weights),
    **softmax_parts,
):
    """Return an answer to `02-scaled_dot_product_attention`, right unless a part is replaced.

    settle: what happens to the weights. used, shown: those that make the output and those that
    are returned, from a masked softmax, the scores before and after scaling, and the weights.
    """
    masked_softmax = build_masked_softmax(**softmax_parts)

    def attention(queries, keys, values, valid_lens=None):
        def softmax(scores):
            return settle(masked_softmax(scores, valid_lens), queries)

        raw = product(queries, keys)
        scores = scale(raw, queries, keys, values)
        made = softmax, raw, scores, softmax(scores)
        return give(weigh(used(*made), keys, values), shown(*made))

    return attention


def _unmasked(softmax, raw, scores, weights):
    return scores.softmax(-1)


RESULTS = (
    Mistake(
        "output-only",
        "You return the output alone.",
        "The weights are asked for too: they say which keys each output was made from.",
        TOGETHER,
        parts={"give": lambda output, weights: output},
    ),
    Mistake(
        "weights-only",
        "Half of the way: you return the weights alone.",
        "They say how much of each value is wanted. The output is asked for too: what comes of "
        "the values under these weights?",
        TOGETHER,
        parts={"give": lambda output, weights: weights},
    ),
    Mistake(
        "results-swapped",
        "You return the weights first and the output second.",
        "Whoever calls unpacks them as output, weights.",
        TOGETHER,
        parts={"give": lambda output, weights: (weights, output)},
    ),
    Mistake(
        "output-of-unmasked-weights",
        "Your weights are right, but the output is not made from them: it still has what they "
        "hide in it.",
        "The output is the weighted sum under the very weights that you return. Is there an "
        "earlier tensor that you multiply with the values?",
        TOGETHER,
        parts={"used": _unmasked},
    ),
    Mistake(
        "unmasked-weights-returned",
        "Your output is right, but the weights that you return are from before the hiding.",
        "Whoever looks at them would think that hidden words were attended to.",
        TOGETHER,
        parts={"shown": _unmasked},
    ),
    Mistake(
        "unscaled-weights-returned",
        "Your output is right, but the weights that you return are those of scores without the "
        "scale.",
        "They would not say which keys the output was made from.",
        TOGETHER,
        parts={"shown": lambda softmax, raw, scores, weights: softmax(raw)},
    ),
    Mistake(
        "scores-returned",
        "Your output is right, but in place of the weights you return the scores.",
        "Weights are shares of 1. A score says nothing before the softmax has compared it with the "
        "other scores of its row.",
        TOGETHER,
        parts={"shown": lambda softmax, raw, scores, weights: scores},
    ),
    Mistake(
        "scaled-after-softmax",
        "You divide the weights by √d_k, not the scores: rows sum to less than 1.",
        "The softmax has seen the large scores and made its pick. Scaling is to keep it from that.",
        VANISH,
        parts={"scale": not_scaled, "settle": lambda weights, q: weights / q.shape[-1] ** 0.5},
    ),
    Mistake(
        "softmax-twice",
        "You take a softmax of the scores, and then a softmax of that.",
        "After the first all numbers lie between 0 and 1, so the second makes nearly equal weights "
        "of them.",
        TOGETHER,
        parts={"scale": lambda s, q, k, v: (s / q.shape[-1] ** 0.5).softmax(-1)},
    ),
    Mistake(
        "weights-transposed",
        "You turn the weights before you multiply them with the values.",
        "Row i of the weights is for query i and goes along the keys, and each key has its value. "
        "They fit as they are.",
        TOGETHER,
        parts={"weigh": lambda weights, keys, values: weights.mT @ values},
    ),
    Mistake(
        "weights-times-values",
        "You multiply weights and values entry by entry.",
        "An output is a weighted sum: for each query, over all keys. Which product adds up?",
        TOGETHER,
        parts={"weigh": lambda weights, keys, values: weights * values},
    ),
    Mistake(
        "keys-averaged",
        "You average the keys, not the values.",
        "Keys are what is compared with the query; values are what it takes home.",
        TOGETHER,
        parts={"weigh": lambda weights, keys, values: weights @ keys},
    ),
    Mistake(
        "queries-and-keys-swapped",
        "Queries and keys have changed places in the product.",
        "Row i is for query i, which shares out its attention along its row. With as many queries "
        "as keys the shape does not tell.",
        SCORE,
        parts={"product": lambda q, k: k @ q.mT},
    ),
)

_ALL = (
    *without(SCALES, *SELDOM),
    Mistake(
        "divided-by-root-of-value-width",
        "You divide by the root of the values' width, √d_v.",
        "Values have no part in a score. How large a score gets depends on the width of the "
        "vectors that are multiplied.",
        SHOUT,
        parts={"scale": lambda s, q, k, v: s / math.sqrt(v.shape[-1])},
    ),
    *without(LENGTHS, "no-axis-for-queries"),
    *HIDING,
    *HAD_A_SAY,
    *FILLS,
    *RESULTS,
    Mistake(
        "values-hidden",
        "You write zeros over the values of padding, and leave its weights.",
        "What it adds to the output is gone, but it keeps its share, and the others get too "
        "little: the weights of the real keys have to sum to 1.",
        PADDING,
        parts={"hide": late, "shown": _unmasked},
    ),
)

HIDES_OTHERS = (
    "root-of-a-number-by-torch",
    "output-only",
    "weights-only",
    "results-swapped",
    "scaled-after-softmax",
    "softmax-twice",
    "weights-transposed",
    "weights-times-values",
    "keys-averaged",
    "queries-and-keys-swapped",
)
ATTENTION = apart(
    _ALL,
    build_attention,
    *HIDES_OTHERS,
    "queries-hidden-for-keys",
    "lengths-repeated-as-a-whole",
    "one-axis-too-many",
    "naive-exp",
    *(mistake.id for mistake in (*HAD_A_SAY, *FILLS)),
    "values-hidden",
)
