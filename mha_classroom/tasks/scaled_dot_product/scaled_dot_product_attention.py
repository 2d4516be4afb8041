"""Task 2.4, scaled_dot_product_attention: scores, weights, averages."""

import math
from dataclasses import replace
from functools import partial

import torch

from mha_classroom.checks.task import (
    Case,
    Mistake,
    Task,
    and_in_float32,
    known,
    read_again,
    without,
)
from mha_classroom.tasks.attention_math.attend import FINISHED as FINISHED_PLAIN
from mha_classroom.tasks.attention_math.softmax import a_little_less, near
from mha_classroom.tasks.scaled_dot_product.masked_softmax import (
    CUT_OFF,
    FILLS,
    HAD_A_SAY,
    HAD_A_SAY_ANYHOW,
    HIDING,
    KINDS,
    LENGTHS,
    OTHER_SHARES,
    QUERIES_HIDDEN_TOO,
    build_masked_softmax,
    hidden_after,
    hidden_had_a_say,
    largest_of_all,
    queries_past_lengths_hidden,
    right_mask,
    shows_cut_off,
)
from mha_classroom.tasks.scaled_dot_product.scaled_scores import (
    SCALES,
    USUAL_SCALES,
    make_batch,
    not_scaled,
    right_scale,
    score_stages,
)
from mha_course import attention


def scaled_dot_product_attention(queries, keys, values, valid_lens=None):
    """Without what is forbidden, so that it may stand in for the learner's in 2.5."""
    weights = attention.dot_product_weights(queries, keys, valid_lens, None)
    return weights @ values, weights


@and_in_float32
def attention_cases(draw):
    def case(name, *sizes, valid_lens=None):
        inputs = make_qkv(draw, *sizes)
        if valid_lens is not None:
            inputs["valid_lens"] = torch.tensor(valid_lens)
        return Case(name, inputs)

    shares = make_batch([[1, 0], [2, 0], [5, 0]]).log().nan_to_num(neginf=0.0)  # exp: 1, 2, 5
    by_hand = {
        "queries": make_batch([[2, 0, 0, 0], [0, 0, 0, 0]]),
        "keys": torch.cat([shares, torch.zeros_like(shares)], dim=-1),
        "values": make_batch([[24, 0], [0, 12], [0, 24]]),
    }
    with_lengths = {
        "queries": make_batch([[2**0.5, 0], [0, 0]]).repeat(2, 1, 1),
        "keys": shares.repeat(2, 1, 1),
        "values": by_hand["values"].repeat(2, 1, 1),
        "valid_lens": torch.tensor([2, 3]),
    }
    large = {
        "queries": make_batch([[30], [-30]]).repeat(3, 1, 1),
        "keys": make_batch([[30], [10], [-30]]).repeat(3, 1, 1),
        "values": draw.normal(3, 3, 5),
        "valid_lens": torch.tensor([2, 3, 2]),
    }
    large["keys"][2] = torch.tensor([[30.0], [29], [28]])  # hidden scores like those that are not
    close = {
        "queries": make_batch([[100], [-100]]),
        "keys": make_batch([[10], [9.99], [-10]]),
        "values": make_batch([[0], [1], [3]]),
        "valid_lens": torch.tensor([2]),
    }
    return [
        Case("query 0 likes the keys 1 : 2 : 5, query 1 all alike", by_hand),
        Case("the same in 2 sequences of width 2, with lengths 2 and 3", with_lengths),
        case("2 sequences, 3 queries, 5 keys, d_k = 7, d_v = 11", 2, 3, 5, 7, 11),
        case("sequences of unequal length", 2, 5, 5, 3, 7, valid_lens=[5, 2]),
        case("one length a query", 3, 3, 7, 5, 2, valid_lens=[[1, 4, 7], [5, 2, 3], [2, 6, 1]]),
        case("all sizes 3", 3, 3, 3, 3, 3, valid_lens=[2, 3, 1]),
        case("a sequence of length 0", 3, 2, 5, 7, 3, valid_lens=[5, 0, 1]),
        case("a query of length 0", 2, 3, 5, 2, 7, valid_lens=[[2, 0, 4], [0, 3, 5]]),
        Case("scores up to 900 in size", large),
        Case("scores 1000 and 999, -1000 and -999", close),
        case("only lengths of 0", 2, 3, 5, 7, 2, valid_lens=[0, 0]),
        case("one query, values of width 1", 2, 1, 5, 3, 1, valid_lens=[5, 2]),
        case("one key", 2, 3, 1, 5, 2),
        case("one sequence, one length a query", 1, 3, 4, 5, 2, valid_lens=[[1, 4, 2]]),
    ]


def make_qkv(draw, batch, num_queries, num_keys, d_k, d_v):
    """Random queries, keys and values, by name."""
    return {
        "queries": draw.normal(batch, num_queries, d_k),
        "keys": draw.normal(batch, num_keys, d_k),
        "values": draw.normal(batch, num_keys, d_v),
    }


def attention_stages(attend, inputs):
    output, weights = attend(**inputs)
    return score_stages(inputs) | {"the table of weights": weights, "the weighted sums": output}


def build_attention(
    product=lambda q, k: q @ k.mT,
    scale=right_scale,
    settle=lambda weights, queries: weights,
    used=lambda softmax, raw, scores, weights: weights,
    shown=lambda softmax, raw, scores, weights: weights,
    weigh=lambda weights, keys, values: weights @ values,
    give=lambda output, weights: (output, weights),
    **softmax_parts,
):
    """settle: what happens to the weights. used, shown: those that make the output and those that
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


def _without_nan(softmax, raw, scores, weights):
    return weights.nan_to_num(0.0)


def shows_weights(shows):
    """A `shows` for output and weights, from one for inputs, scaled scores and weights."""

    def shows_both(inputs, results):
        if not isinstance(results, (tuple, list)) or len(results) != 2:
            return False
        output, weights = results
        scores = score_stages(inputs)["the scaled scores"]
        if not torch.is_tensor(weights) or weights.shape != scores.shape:
            return False
        return near(weights @ inputs["values"], output) and shows(inputs, scores, weights)

    return shows_both


# Of `mended_attention` as well.
ROOT_OF_VALUES = Mistake(
    "divided-by-root-of-value-width",
    "You divide by the root of the values' width, √d_v.",
    "Values have no part in a score. How large a score gets depends on the width of the vectors "
    "that are multiplied.",
    "Wide vectors have large scores",
    parts={"scale": lambda s, q, k, v: s / math.sqrt(v.shape[-1])},
)
RARE_SCALES = tuple(
    mistake
    for mistake in SCALES
    if mistake.id in ("divided-by-root-of-batch", "width-of-the-example")
)
RESULTS = {
    "output-only": known(
        "You return the output alone.",
        "The weights are asked for too: they say which keys each output was made from.",
        give=lambda output, weights: output,
    ),
    "weights-only": known(
        "Half of the way: you return the weights alone.",
        "They say how much of each value is wanted. The output is asked for too: what comes of "
        "the values under these weights?",
        give=lambda output, weights: weights,
    ),
    "results-swapped": known(
        "You return the weights first and the output second.",
        "Whoever calls unpacks them as output, weights.",
        give=lambda output, weights: (weights, output),
    ),
    "output-of-unmasked-weights": known(
        "Your weights are right, but the output is not made from the weights that you return: it "
        "still has in it what they hide.",
        "The output is the weighted sum under the very weights that you return. Is there an "
        "earlier tensor that you multiply with the values?",
        used=_unmasked,
    ),
    "unmasked-weights-returned": known(
        "Your output is right, but the weights that you return hide nothing.",
        "Whoever looks at them would think that hidden words were attended to. Are they from "
        "before the hiding?",
        shown=_unmasked,
    ),
    "unscaled-weights-returned": known(
        "Your output is right, but the weights that you return are those of scores without the "
        "scale.",
        "They would not say which keys the output was made from.",
        shown=lambda softmax, raw, scores, weights: softmax(raw),
    ),
    "scores-returned": known(
        "Your output is right, but in place of the weights you return the scores.",
        "Weights are shares of 1. A score says nothing before the softmax has compared it with the "
        "other scores of its row.",
        shown=lambda softmax, raw, scores, weights: scores,
    ),
    "scaled-after-softmax": known(
        "You divide the weights by √d_k, not the scores: rows sum to 1 / √d_k.",
        "The softmax has seen the large scores and made its pick. Scaling is to keep it from that.",
        section="What large scores do to gradients",
        scale=not_scaled,
        settle=lambda weights, q: weights / q.shape[-1] ** 0.5,
    ),
    "softmax-twice": known(
        "You take a softmax of the scores, and then a softmax of that.",
        "After the first all numbers lie between 0 and 1, so the second makes nearly equal weights "
        "of them.",
        scale=lambda s, q, k, v: (s / q.shape[-1] ** 0.5).softmax(-1),
    ),
    "weights-returned-transposed": known(
        "Your output is right, but the weights that you return are turned: (B, S, L).",
        "Rows ask: row i says what query i takes of each key. With as many queries as keys the "
        "shape does not tell.",
        shown=lambda softmax, raw, scores, weights: weights.mT,
    ),
    "weights-transposed": known(
        "You turn the weights before you multiply them with the values.",
        "Row i of the weights is for query i and goes along the keys, and each key has its value. "
        "They fit as they are.",
        weigh=lambda weights, keys, values: weights.mT @ values,
    ),
    "weights-times-values": known(
        "You multiply weights and values entry by entry.",
        "An output is a weighted sum: for each query, over all keys. Which product adds up?",
        weigh=lambda weights, keys, values: weights * values,
    ),
    "keys-averaged": known(
        "You average the keys, not the values.",
        "Keys are what is compared with the query; values are what it takes home.",
        weigh=lambda weights, keys, values: weights @ keys,
    ),
    "queries-and-keys-swapped": known(
        "Queries and keys have changed places in your scores.",
        "Row i is for query i, which shares out its attention along its row. With as many queries "
        "as keys the shape does not tell.",
        section="Scaled scores",
        product=lambda q, k: k @ q.mT,
    ),
}
RESULTS = read_again("Put together", RESULTS)


def _uniform_weights_left(queries, keys, values, valid_lens=None):
    output, weights = scaled_dot_product_attention(queries, keys, values, valid_lens)
    nothing = ~weights.any(-1, keepdim=True)
    return output, weights.masked_fill(nothing, 1 / weights.shape[-1])


def _none_if_all_are_0(queries, keys, values, valid_lens=None):
    if valid_lens is not None and not valid_lens.any():
        valid_lens = None
    return scaled_dot_product_attention(queries, keys, values, valid_lens)


def _padding_asks_nothing(queries, keys, values, valid_lens=None):
    output, weights = scaled_dot_product_attention(queries, keys, values, valid_lens)
    if valid_lens is None or valid_lens.dim() == 2:
        return output, weights
    asks = (torch.arange(queries.shape[1]) < valid_lens[:, None])[:, :, None]
    return output * asks, weights * asks


def _queries_past_lengths_hidden(queries, keys, values, valid_lens=None):
    scores = queries @ keys.mT / math.sqrt(queries.shape[-1])
    weights = queries_past_lengths_hidden(scores, valid_lens)
    return weights @ values, weights


def _small_number(queries, keys, values, valid_lens=None):
    weights = scaled_dot_product_attention(queries, keys, values, valid_lens)[1]
    weights = weights / (weights.sum(-1, keepdim=True) + 1e-3)
    return weights @ values, weights


def _shows_small_number(inputs, scores, weights):
    right = scaled_dot_product_attention(**inputs)[1]
    return a_little_less(right, weights) or a_little_less(right, weights, right.sum(-1, True))


def _shows_cut_off(inputs, scores, weights):
    lens = {"valid_lens": inputs["valid_lens"]} if "valid_lens" in inputs else {}
    return shows_cut_off({"scores": scores} | lens, weights)


def _shows_a_say(inputs, scores, weights):
    lens = inputs.get("valid_lens")
    mask = torch.ones_like(scores, dtype=torch.bool) if lens is None else right_mask(scores, lens)
    return hidden_had_a_say(scores, mask, weights)


NAIVE = tuple(mistake for mistake in OTHER_SHARES if mistake.id.startswith("naive-exp"))

ATTENTION = (
    *USUAL_SCALES,
    *(mistake for mistake in SCALES if mistake.id == "divided-by-root-of-queries"),
    *RARE_SCALES,
    ROOT_OF_VALUES,
    *without(LENGTHS, "no-axis-for-queries"),
    *KINDS,
    *HIDING,
    *NAIVE,
    *HAD_A_SAY,
    *FILLS,
    replace(CUT_OFF, shows=shows_weights(_shows_cut_off)),
    *RESULTS,
    Mistake(
        "length-0-for-none",
        "Where all lengths are 0 you hide nothing, as if there were no lengths.",
        "None means all keys, a length of 0 means none of them. 0 counts as False where Python "
        "asks for a truth: what has to be asked for is None itself.",
        "Nothing to attend to",
        _none_if_all_are_0,
    ),
    Mistake(
        "padding-asks-nothing",
        "With one length a sequence, the rows past it are zeros: you hide queries as well.",
        "A length says how many keys there are to look at, for every query of the sequence. What "
        "padding asks does no harm, since nobody looks at its answer.",
        "Hiding padding",
        _padding_asks_nothing,
    ),
    Mistake(
        "padding-asks-nothing-with-either-kind",
        *QUERIES_HIDDEN_TOO,
        "Hiding padding",
        _queries_past_lengths_hidden,
    ),
    Mistake(
        "small-number-in-the-sum",
        "You add a small number to the sum that you divide by.",
        "Every row then sums to a little less than 1. Only a row with nothing to attend to has a "
        "sum of 0 and needs help.",
        "Nothing to attend to",
        _small_number,
        shows=shows_weights(_shows_small_number),
    ),
    Mistake(
        "uniform-left-in-the-weights",
        "Your output is right, but the weights of a query with nothing to attend to are equal "
        "shares: the zeros are in the output only.",
        "Whoever looks at the weights would think that padding was attended to. They have to be "
        "zeros too.",
        "Nothing to attend to",
        _uniform_weights_left,
    ),
    Mistake(
        "nan-left-in-the-weights",
        "Your output is right, but the weights of a query with nothing to attend to are NaN: the "
        "zeros are in the output only.",
        "All keys are hidden there, and a softmax over none is NaN. Whoever gets the weights needs "
        "zeros in them too.",
        "Nothing to attend to",
        parts={"empty": lambda count: math.nan, "used": _without_nan},
    ),
    Mistake(
        "values-hidden",
        "The values of padding are left out of your output, and its weights are left as they were.",
        "What it adds to the output is gone, but it keeps its share, and the others get too "
        "little: the weights of the real keys have to sum to 1.",
        "Hiding padding",
        parts={"hide": hidden_after, "shown": _unmasked},
    ),
    replace(
        HAD_A_SAY_ANYHOW,
        wrong=build_attention(hide=largest_of_all),
        shows=shows_weights(_shows_a_say),
    ),
)

HIDES_OTHERS = (
    "root-of-a-number-by-torch",
    "weights-returned-transposed",
    "scores-cut-off",
    "divided-by-root-of-batch",
    "width-of-the-example",
    "scaled-after-softmax",
    "softmax-twice",
    "weights-transposed",
    "weights-times-values",
    "keys-averaged",
    "queries-and-keys-swapped",
)

LIBRARY = (
    "torch.nn.modules.activation.MultiheadAttention",
    "torch.nn.functional.multi_head_attention_forward",
    "torch._native_multi_head_attention",
)

FINISHED = (*FINISHED_PLAIN, *LIBRARY)

TASK = Task(
    "02-scaled_dot_product_attention",
    scaled_dot_product_attention,
    attention_cases,
    returns=("the output", "the table of weights"),
    mistakes=ATTENTION,
    build=build_attention,
    alone=(
        *HIDES_OTHERS,
        "queries-hidden-for-keys",
        "length-0-counts-as-1",
        "lengths-repeated-as-a-whole",
        "one-axis-too-many",
        "naive-exp",
        *(mistake.id for mistake in (*NAIVE, *HAD_A_SAY, *FILLS)),
        *(mistake.id for mistake in KINDS),
        "divided-by-root-of-queries",
        "nan-left-in-the-weights",
        "values-hidden",
    ),
    stages=partial(attention_stages, scaled_dot_product_attention),
    uses=("02-scaled_scores", "02-masked_softmax"),
    forbidden=FINISHED,
    number=4,
)
