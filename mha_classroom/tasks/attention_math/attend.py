"""Task 1.2, attend: one query asks all keys."""

from dataclasses import replace
from functools import partial

import torch
from torch.nn import functional as F

from mha_classroom.checks.forms import any_of, like
from mha_classroom.checks.task import (
    Case,
    Task,
    and_in_float32,
    by_id,
    known,
    read_again,
    unchanged,
    without,
)
from mha_classroom.tasks.attention_math.softmax import (
    CUT_OFF,
    DIGITS,
    EDGE,
    SHIFT,
    WEIGHING,
    build_softmax,
    near,
    no_shift,
    no_total,
)


def attend(query, keys, values):
    return torch.softmax(keys @ query, dim=-1) @ values


@and_in_float32
def attend_cases(draw):
    """Unequal sizes, equal ones, zero and large scores."""

    def case(name, d, num_keys, d_v):
        return case_of(name, draw.normal(d), draw.normal(num_keys, d), draw.normal(num_keys, d_v))

    keys = [[0.0, 0], [1, 1], [1, 0]]
    values = [[0.0, 0, 10, 1], [9, 0, 10, 2], [0, 9, 10, 3]]
    transposed = {"query": draw.normal(5), "keys": draw.normal(5, 3).T}
    return [
        case_of("three pairs", [1.0, 1], keys, values),
        case_of("a query of zeros", [0.0, 0], keys, values),
        case_of("scores of 1000, 1001 and 999", [1.0], [[1000.0], [1001], [999]], values),
        case_of("all scores near -1000000", [1.0], [[-1e6], [-1e6 - 1], [-1e6 + 1]], values),
        case_of("one score 3000 above the others", [1.0], [[0.0], [3000], [0]], values),
        case_of(EDGE, [1.0], [[709.0], [709.5], [711]], values),
        case_of(DIGITS, [1.0], [[300000.3], [300000], [299999.6]], values),
        case("7 keys of width 5", 5, 7, 3),
        case("as many keys as their width", 5, 5, 2),
        case("keys and values of one width", 3, 7, 3),
        case("all sizes equal", 3, 3, 3),
        case("one key", 3, 1, 2),
        case("values of one number", 2, 5, 1),
        case_of("large scores", *enlarged(draw.normal(1, 5), draw.normal(5, 5)), draw.normal(5, 5)),
        Case(
            "keys are a transposed tensor, so they are not contiguous",
            transposed | {"values": draw.normal(3, 2)},
        ),
    ]


def case_of(name, query, keys, values):
    names = ("query" if torch.as_tensor(query).dim() == 1 else "queries", "keys", "values")
    tensors = (torch.as_tensor(X, dtype=torch.float64) for X in (query, keys, values))
    return Case(name, dict(zip(names, tensors, strict=True)))


def enlarged(queries, keys):
    """Scores near 1600 for the first query, near -1600 for the second, and so on.

    Rounded so that float32 holds every score. One query, (1, d), is returned as (d,).
    """
    queries, keys = (8 * queries).round() / 8, (8 * keys).round() / 8
    keys[..., 0] = 40
    queries[..., 0] = 40
    queries[..., 1::2, 0] = -40
    return (queries[0] if queries.dim() == 2 else queries), keys


def attention_stages(inputs):
    """Of `attend` and of `attention`."""
    queries, keys, values = inputs.values()
    scores = queries @ keys.mT
    weights = torch.softmax(scores, dim=-1)
    return {"the scores": scores, "the weights": weights, "the weighted sums": weights @ values}


def build_attend(
    score=lambda query, keys: keys @ query,
    vectors=unchanged,
    scale=lambda d: 1.0,
    combine=torch.matmul,
    finish=unchanged,
    give=lambda result, weights: result,
    scored="keys",
    averaged="values",
    weigh=None,
    **weighing,
):
    """score: of queries and keys. vectors: of both, before. scale: of the scores. combine: weights
    and values. finish: of the result. give: what is returned of result and weights. scored,
    averaged: which tensor is used for it. weigh: makes weights of scores. Other parts are those of
    `build_softmax`, which does it unless told.
    """
    weigh = weigh or build_softmax(**weighing)

    def attend(query, keys, values):
        pairs = {"keys": keys, "values": values}
        scores = score(vectors(query), vectors(pairs[scored])) * scale(query.shape[-1])
        weights = weigh(scores)
        return give(finish(combine(weights, pairs[averaged])), weights)

    return attend


build_attention = partial(build_attend, score=lambda queries, keys: queries @ keys.mT)
LOOKUP = "Query, key and value"
ATTENDING = "Attention with one query"
AVERAGE = "The output is an average of the values"


def _shows_more_than_the_result(inputs, results):
    right = attention_stages(inputs)["the weighted sums"]
    several = isinstance(results, (tuple, list)) and len(results) > 1
    return bool(several and near(right, results[0]))


def _keys_as_wide_as_values(queries, keys, values):
    weights = torch.softmax(queries @ keys.mT, dim=-1)
    return values.new_zeros(*weights.shape[:-1], values.shape[-1]) + weights @ keys


def _in_one_pass(total_rescaled, sum_rescaled):
    """Key by key with the largest score so far; what was summed before is rescaled, or not."""

    def attend(query, keys, values):
        largest, total, summed = -torch.inf, 0.0, torch.zeros_like(values[0])
        for key, value in zip(keys, values, strict=True):
            score = key @ query
            new = torch.clamp(score, min=largest)
            by, power = torch.exp(largest - new), torch.exp(score - new)
            total = total * (by if total_rescaled else 1) + power
            summed = summed * (by if sum_rescaled else 1) + power * value
            largest = new
        return summed / total

    return attend


def _largest_from(start):
    """The largest score, if the search for it begins at this number."""
    return lambda x, axis: x.amax(axis, keepdim=True).clamp(min=start)


(CUT,) = (mistake for mistake in WEIGHING if mistake.id == "scores-cut-off")

# Of `attend` and `attention`.
BOTH = {
    **by_id(without(WEIGHING, "scores-cut-off")),
    "scores-cut-off": replace(
        CUT, shows=like(*(build_attention(weigh=weigh) for weigh in CUT_OFF))
    ),
    "nan-far-below-0": known(
        "Where all scores lie far below 0, all your powers round to 0, and 0 / 0 is NaN.",
        "e to the power -746 is 0 for a computer. Not only large scores have to be shifted. If you "
        "look for the largest score in a loop: with which number does the search begin? If not: is "
        "what you subtract the largest score, or the largest in size?",
        section=SHIFT,
        **any_of(build_attention, shift=map(_largest_from, (0, -1, -100, -999, -1e3, -1e4, -1e5))),
    ),
    "scaled": known(
        "You divide the scores by the square root of the width of a query.",
        "That is lesson 2. Here attention is plain: the task asks for scores that are not divided.",
        scale=lambda d: d**-0.5,
    ),
    "divided-by-width": known(
        "You divide the scores by the width of a query, or take a mean over the features where a "
        "dot product adds up.",
        "The task asks for scores that are not divided. (Lesson 2 does divide them, by something "
        "smaller.)",
        scale=lambda d: 1 / d,
    ),
    "no-softmax": known(
        "You multiply the values by the scores themselves.",
        "Scores are no weights: they may be negative, and they do not add up to 1. The result can "
        "then lie outside of the values, where no average can be.",
        section=AVERAGE,
        power=unchanged,
        shift=no_shift,
        total=no_total,
    ),
    "hard-look-up": known(
        "You return the value of the best key and nothing of the others.",
        "That is a dictionary. Attention is the soft look-up: every value has a share, and two "
        "keys that fit equally well share equally.",
        section=LOOKUP,
        combine=lambda w, v: F.one_hot(w.argmax(-1), w.shape[-1]).to(v.dtype) @ v,
    ),
    "plain-average": known(
        "You return the plain average of the values: the query has no say.",
        "That is what a query of zeros gets. Which keys fit has to show in the weights.",
        section=AVERAGE,
        combine=lambda w, v: torch.full_like(w, 1 / w.shape[-1]) @ v,
    ),
    "weights-returned": known(
        "You return the weights.",
        "They say how much of each word is wanted. What a query brings back is made of values.",
        combine=lambda w, v: w,
    ),
    "more-than-the-result": known(
        "You return the result and something else with it.",
        "One thing is asked for: what the query brings back. Whoever uses it would get several "
        "things. (In lesson 2 the weights come along.)",
        give=lambda result, weights: (result, weights),
        shows=_shows_more_than_the_result,
    ),
    "values-just-added-up": known(
        "Your result is the plain sum of the values, as if all weights were 1.",
        "A softmax along an axis of length 1 gives 1 everywhere, since each score is alone there. "
        "Along which axis do the scores of all keys lie?",
        combine=lambda w, v: torch.ones_like(w) @ v,
    ),
    "divided-once-more": known(
        "You divide by the number of keys: do you take the mean of the weighted values?",
        "The weights add up to 1 already, so the sum is the average. A number that all values "
        "share should come out as it went in.",
        section=AVERAGE,
        combine=lambda w, v: w @ v / w.shape[-1],
    ),
    "last-pair-left-out": known(
        "The last pair is missing from your sum.",
        "Each value counts, and the weights have been shared out among all of them. If you count "
        "in a loop: where does it end?",
        combine=lambda w, v: w[..., :-1] @ v[..., :-1, :],
    ),
    "weighed-but-not-added": known(
        "You multiply each value by its weight and return them all.",
        "Each value has its share now. What a query brings back is one mixture of them.",
        combine=lambda w, v: w[..., None] * (v[:, None] if v.dim() == 3 else v),
    ),
    "keys-averaged": known(
        "You average the keys: your result is as wide as a key.",
        "Keys are there to be compared with the query. What is handed over is something else.",
        section=LOOKUP,
        averaged="keys",
    ),
    "keys-averaged-in-the-width-of-values": known(
        "You average the keys, in a tensor that is as wide as a value.",
        "Keys are there to be compared with the query. What is handed over is something else.",
        section=LOOKUP,
        wrong=_keys_as_wide_as_values,
    ),
    "keys-and-values-swapped": known(
        "You compare the query with the values.",
        "Each word has a vector to be compared with and another to hand over. Which is which? "
        "Where both have the same width, the wrong way round raises no error.",
        section=LOOKUP,
        scored="values",
        averaged="keys",
    ),
    "cosine": known(
        "You divide by the lengths of the vectors that you compare (cosine similarity).",
        "Then the length of a query has no effect. Here it has one: twice the query, twice the "
        "scores, and the weights move from the plain average towards a look-up.",
        section=AVERAGE,
        vectors=lambda X: F.normalize(X, dim=-1),
    ),
    "cosine-of-zeros": known(
        "You divide by the lengths of the vectors that you compare (cosine similarity).",
        "Then the length of a query has no effect, and a vector of zeros, which fits nothing "
        "better than anything else, gives NaN.",
        section=AVERAGE,
        vectors=lambda X: X / X.norm(dim=-1, keepdim=True),
    ),
    "squeezed-too-far": known(
        "You squeeze an axis of length 1 out of the result, or every one.",
        "Values of one number, one query or a batch of one are still an axis, and whoever uses the "
        "result counts on it. Is there an axis that may go at all?",
        section="All queries at once",
        finish=torch.squeeze,
    ),
}
BOTH = read_again(ATTENDING, BOTH)

ATTEND = {
    "scores-returned": known(
        "Half of the way: you return the scores.",
        "They say how well each key fits. They are no shares of one whole yet, and no value has "
        "been averaged.",
        section=ATTENDING,
        wrong=lambda query, keys, values: keys @ query,
    ),
    **by_id(BOTH),
    "keys-on-the-wrong-side": known(
        "You write the query to the left of the keys.",
        "Then it meets the columns of the keys: one number from each word instead of one word. "
        "With as many words as features there is no error, only wrong numbers.",
        score=lambda query, keys: query @ keys,
    ),
    "values-on-the-wrong-side": known(
        "You write the weights to the right of the values.",
        "Then they meet the rows of the values, and a row belongs to one word. Each weight has to "
        "meet a whole value, so that the values are mixed.",
        section=LOOKUP,
        combine=lambda weights, values: values @ weights,
    ),
    "weights-along-the-features": known(
        "You multiply the values by the weights as they are, so that each weight meets a column.",
        "A row of the values belongs to one word, and so does a weight. Broadcasting lines shapes "
        "up from the right: which axis do the weights lack there?",
        section=LOOKUP,
        combine=lambda weights, values: (weights * values).sum(0),
    ),
    "added-up-along-the-features": known(
        "You add up along the features, so that one number is left for each key.",
        "What a query brings back is as wide as a value: one number for each feature. Along which "
        "axis do the weighted values of different keys lie?",
        section=AVERAGE,
        combine=lambda weights, values: (weights[:, None] * values).sum(1),
    ),
    "result-as-wide-as-the-query": known(
        "You collect the result in a tensor as wide as the query.",
        "What comes out is made of values, and these may be wider or narrower than query and keys.",
        section=LOOKUP,
        wrong=lambda query, keys, values: torch.zeros_like(query) + attend(query, keys, values),
    ),
    "keys-reshaped": known(
        "You reshape the keys to (d, S).",
        "The shape is right, the numbers are not: reshape deals them out row after row, so that "
        "a column holds parts of several keys. The axes have to change places.",
        wrong=build_attend(score=lambda query, keys: query @ keys.reshape(len(query), -1)),
    ),
    "softmax-of-the-result": known(
        "You multiply the values by the scores, and apply softmax to what comes of it.",
        "It is the scores that become shares of one whole, one for each key. With them the values "
        "are averaged, and nothing is done to the average.",
        section=ATTENDING,
        wrong=lambda query, keys, values: ((keys @ query) @ values).softmax(-1),
    ),
    "products-not-added-up": known(
        "You multiply query and keys feature by feature and stop there.",
        "A score is one number for each key. A dot product multiplies, and then?",
        score=lambda query, keys: keys * query,
    ),
    "distance": known(
        "You compare by distance: the nearer a key, the larger its score.",
        "The task asks for dot products. They reward long keys too, not only near ones.",
        score=lambda query, keys: -(keys - query).norm(dim=-1),
    ),
    "sums-not-rescaled": known(
        "In one pass over the keys you keep the largest score so far. When it grows, the sum of "
        "the values or that of the powers stays as it was.",
        "Both were measured against the score that was the largest until then. What factor brings "
        "them to the new one?",
        section=AVERAGE,
        wrong=_in_one_pass(False, False),
        shows=like(*(_in_one_pass(*both) for both in ((0, 0), (0, 1), (1, 0)))),
    ),
    "result-as-a-row": known(
        "You return a table with one row.",
        "One query goes in, without an axis for queries. Its result comes out without one, too.",
        section=ATTENDING,
        finish=lambda result: result[None],
    ),
}

FINISHED = (
    "mha_course.attention.scaled_dot_product_attention",
    "mha_course.attention.DotProductAttention",
    "d2l.torch.DotProductAttention",
    "torch.nn.functional.scaled_dot_product_attention",
    "torch._scaled_dot_product_attention_math",
    "torch._scaled_dot_product_flash_attention_for_cpu",
)

TASK = Task(
    "01-attend",
    attend,
    attend_cases,
    returns=("the result",),
    mistakes=read_again("Scores", ATTEND),
    build=build_attend,
    stages=attention_stages,
    uses=("01-softmax",),
    forbidden=FINISHED,
    number=2,
    alone=(
        "scores-cut-off",
        "last-pair-left-out",
        "weights-along-the-features",
        "added-up-along-the-features",
    ),
)
