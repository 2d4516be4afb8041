"""The known mistakes of lesson 04 in the whole module."""

import torch
from torch import nn

from mha_course.checks.mistakes.combining import apart
from mha_course.checks.mistakes.head_splitting import (
    BACK,
    TRAP,
    cut_words,
    interleaved,
    right_merge,
)
from mha_course.checks.mistakes.module_lens import MODULE_LENS
from mha_course.checks.mistakes.multihead_parts import build_module
from mha_course.checks.task import Mistake

__all__ = ["MODULE"]

TOGETHER = "Put together"


def _block_for_each_head(self, output):
    d = output.shape[-1] // self.num_heads
    blocks = torch.block_diag(*[output.new_ones(d, d)] * self.num_heads)
    return nn.functional.linear(output, self.W_o.weight * blocks, self.W_o.bias)


def _bias_for_each_head(self, output):
    bias = 0.0 if self.W_o.bias is None else self.W_o.bias
    return self.W_o(output) + (self.num_heads - 1) * bias


HEADS = (
    Mistake(
        "split-without-transpose",
        "Your heads hold whole words: the split misses the swap of words and heads.",
        "reshape deals numbers out word after word, so a head sees some words only.",
        TRAP,
        parts={"split": cut_words},
    ),
    Mistake(
        "features-interleaved",
        "Your heads take features in turn instead of neighbouring ones.",
        "Head h owns the columns h·d to (h+1)·d of each projection.",
        "Step 1: cut each word",
        parts={"split": interleaved},
    ),
    Mistake(
        "merge-without-transpose",
        "You join the heads without swapping back: words are mixed up in the result.",
        "Heads and features have to be neighbours before they become one axis.",
        BACK,
        parts={"merge": lambda X, H: X.reshape(X.shape[0] // H, X.shape[1], -1)},
    ),
    Mistake(
        "heads-averaged",
        "You add the heads up, or average them: what meets W_o is as wide as one head.",
        "The heads stand side by side, num_heads times as wide. Added up, they cannot be told "
        "apart.",
        BACK,
        parts={"merge": lambda X, H: X.unflatten(0, (-1, H)).mean(1)},
    ),
    Mistake(
        "no-output-projection",
        "You return the joined heads as they are: W_o is not used.",
        "Without it the heads never meet: each keeps to its own features.",
        TOGETHER,
        parts={"finish": lambda self, output: output},
    ),
    Mistake(
        "W_o-before-the-merge",
        "W_o meets the heads one by one, before they are joined.",
        "A head is num_heads times narrower than what W_o takes in. It waits for all heads of a "
        "word side by side.",
        TOGETHER,
        parts={
            "merge": lambda X, H: X,
            "finish": lambda self, X: right_merge(self.W_o(X), self.num_heads),
        },
    ),
    Mistake(
        "W_o-block-for-each-head",
        "You cut W_o into blocks, and each head meets one block: its features in, its features "
        "out.",
        "Then the heads never meet. Each feature of the output takes something from every head: "
        "how many numbers does one row of W_o.weight have?",
        TOGETHER,
        parts={"finish": _block_for_each_head},
    ),
    Mistake(
        "W_o-bias-for-each-head",
        "The bias of W_o is in your output once for each head.",
        "As a sum over the heads, each head meets its own part of the matrix. The bias belongs to "
        "the sum: how many sums are there?",
        TOGETHER,
        parts={"finish": _bias_for_each_head},
    ),
)

SCALES = (
    Mistake(
        "scaled-by-all-heads",
        "You divide the scores by the square root of num_hiddens, the width of all heads together.",
        "The scale follows from the length of the vectors that are multiplied, and these are one "
        "head's queries and keys.",
        TOGETHER,
        parts={"scale": lambda d, heads, **_: (d * heads) ** -0.5},
    ),
    Mistake(
        "scaled-by-query-size",
        "You divide the scores by the square root of the width of a query before it is projected.",
        "The scale follows from the vectors that meet in a score. What has happened to the "
        "queries by then?",
        TOGETHER,
        parts={"scale": lambda d, inputs, **_: inputs**-0.5},
    ),
    Mistake(
        "scaled-by-number-of-heads",
        "You divide the scores by the square root of the number of heads.",
        "The scale follows from how many products are added up in one score: the width of a head.",
        TOGETHER,
        parts={"scale": lambda d, heads, **_: heads**-0.5},
    ),
    Mistake(
        "scaled-by-keys",
        "You divide the scores by the square root of the number of keys.",
        "How far scores spread depends on how many products are added up in one score, not on how "
        "many scores there are.",
        TOGETHER,
        parts={"scale": lambda d, keys, **_: keys**-0.5},
    ),
    Mistake(
        "not-scaled",
        "You do not scale the scores.",
        "Without the scale their spread grows with the width, and softmax saturates (lesson 2).",
        TOGETHER,
        parts={"scale": lambda d, **_: 1.0},
    ),
    Mistake(
        "divided-by-width",
        "You divide the scores by the whole width of a head: by d, or by its root twice.",
        "The spread of a score is √d, not d: dividing by more makes all weights nearly equal. Does "
        "a function that you call scale already?",
        TOGETHER,
        parts={"scale": lambda d, **_: 1 / d},
    ),
    Mistake(
        "multiplied-by-root",
        "You multiply the scores by the square root of the width of a head.",
        "Scores spread too far as they are. The scale is there to bring them closer together.",
        TOGETHER,
        parts={"scale": lambda d, **_: d**0.5},
    ),
    Mistake(
        "softmax-over-queries",
        "Your weights sum to 1 down the columns: the softmax runs over the queries.",
        "Each query shares out one unit of attention among the keys, so each row sums to 1.",
        TOGETHER,
        parts={"axis": -2},
    ),
)

MORE = (
    Mistake(
        "no-dropout",
        "dropout has no effect while training.",
        "It drops attention weights: after the softmax, before the weighted sum.",
        TOGETHER,
        parts={"drop": lambda self, weights: weights},
    ),
    Mistake(
        "dropout-in-eval",
        "Weights are dropped in eval mode too.",
        "A function drops whenever it is told to; only the module knows whether it is training.",
        TOGETHER,
        parts={
            "drop": lambda self, weights: nn.functional.dropout(weights, self.drop.p, training=True)
        },
    ),
    Mistake(
        "dropout-before-the-softmax",
        "You drop scores, before the softmax.",
        "A score of 0 still gets a weight, so nothing is left out. With dropout=1 all keys would "
        "weigh alike. It is weights that are dropped.",
        TOGETHER,
        parts={
            "drop": lambda self, weights: weights,
            "drop_scores": lambda self, scores: self.drop(scores),
        },
    ),
    Mistake(
        "dropout-on-the-output",
        "You drop numbers of the result instead of attention weights.",
        "With dropout=1 no value gets through, but the bias of W_o still does.",
        TOGETHER,
        parts={
            "drop": lambda self, weights: weights,
            "finish": lambda self, output: self.drop(self.W_o(output)),
        },
    ),
    Mistake(
        "queries-and-keys-swapped",
        "Queries and keys have changed places.",
        "W_q belongs to the queries, and each query has a row of scores.",
        TOGETHER,
        parts={"roles": ("W_k", "W_q", "W_v")},
    ),
    Mistake(
        "queries-attend-to-themselves",
        "Keys and values are made from the queries: the arguments keys and values have no effect.",
        "In self-attention a caller passes the same tensor three times. It is the caller who "
        "decides that.",
        TOGETHER,
        parts={"inputs": lambda queries, keys, values: (queries, queries, queries)},
    ),
    Mistake(
        "values-from-keys",
        "The values are made from the keys: the argument values has no effect.",
        "What a word is found by and what it hands over may be different tensors. Each goes "
        "through its own projection.",
        TOGETHER,
        parts={"inputs": lambda queries, keys, values: (queries, keys, keys)},
    ),
)

MODULE = apart(
    HEADS + SCALES + MODULE_LENS + MORE,
    build_module,
    "heads-averaged",
    "W_o-before-the-merge",
    "W_o-block-for-each-head",
    "W_o-bias-for-each-head",
    "scaled-by-number-of-heads",
    "scaled-by-query-size",
    "scaled-by-keys",
    "multiplied-by-root",
    "dropout-before-the-softmax",
    "dropout-on-the-output",
    "queries-attend-to-themselves",
    "values-from-keys",
)
