"""The known mistakes of lesson 04 in the whole module."""

import torch
from torch import nn

from mha_course.checks.mistakes.head_splitting import (
    BACK,
    LENGTHS,
    TRAP,
    cut_words,
    interleaved,
    right_merge,
    right_split,
)
from mha_course.checks.task import Mistake

__all__ = ["MODULE", "build_module"]

TOGETHER = "Put together"
PROOF = "The proof"


def _weights(q, k, valid_lens, scale, positions, keep, fill, axis):
    scores = q @ k.transpose(1, 2) * scale
    if valid_lens is not None:
        lens = valid_lens[:, None, None] if valid_lens.dim() == 1 else valid_lens[:, :, None]
        scores = scores.masked_fill(~keep(positions(q, k), lens), fill)
    return scores.softmax(axis)


def build_module(
    split=right_split,
    merge=right_merge,
    spread=lambda lens, H: lens.repeat_interleave(H, dim=0),
    scale=lambda d, H: d**-0.5,
    positions=lambda q, k: torch.arange(k.shape[1]),
    keep=torch.lt,
    fill=-torch.inf,
    axis=-1,
    empty_row=lambda weights: weights.nan_to_num(0.0),
    drop=lambda self, weights: self.drop(weights),
    finish=lambda self, output: self.W_o(output),
    roles=("W_q", "W_k", "W_v"),
):
    """Return a class for `04-MultiHeadAttention`, right unless a part is replaced."""

    class MultiHeadAttention(nn.Module):
        def __init__(self, key_size, query_size, value_size, width, num_heads, dropout=0, bias=0):
            super().__init__()
            self.num_heads, self.drop = num_heads, nn.Dropout(dropout)
            self.W_q = nn.Linear(query_size, width, bias=bool(bias))
            self.W_k = nn.Linear(key_size, width, bias=bool(bias))
            self.W_v = nn.Linear(value_size, width, bias=bool(bias))
            self.W_o = nn.Linear(width, width, bias=bool(bias))

        def forward(self, queries, keys, values, valid_lens=None):
            H = self.num_heads
            linears = [getattr(self, role) for role in roles]
            inputs = (queries, keys, values)
            q, k, v = (split(W(X), H) for W, X in zip(linears, inputs, strict=True))
            lens = None if valid_lens is None else spread(valid_lens, H)
            by = scale(q.shape[-1], H)
            weights = empty_row(_weights(q, k, lens, by, positions, keep, fill, axis))
            return finish(self, merge(drop(self, weights) @ v, H))

    return MultiHeadAttention


MODULE = (
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
        "lengths-repeated-as-a-whole",
        "The lengths go to the wrong heads: 3, 5 became 3, 5, 3, 5.",
        "The rows are batch first, so all heads of a sequence need its length before the next "
        "sequence comes.",
        LENGTHS,
        parts={"spread": lambda lens, H: lens.repeat(H, *[1] * (lens.dim() - 1))},
    ),
    Mistake(
        "lengths-ignored",
        "valid_lens has no effect on your result.",
        "Keys past the length are padding: no query may attend to them.",
        LENGTHS,
        parts={"spread": lambda lens, H: None},
    ),
    Mistake(
        "no-output-projection",
        "You return the joined heads as they are: W_o is not used.",
        "Without it the heads never meet: each keeps to its own features.",
        TOGETHER,
        parts={"finish": lambda self, output: output},
    ),
    Mistake(
        "scaled-by-all-heads",
        "You divide the scores by the square root of the width of all heads together.",
        "The scale follows from the length of the vectors that are multiplied, and these are one "
        "head's queries and keys.",
        TOGETHER,
        parts={"scale": lambda d, H: (d * H) ** -0.5},
    ),
    Mistake(
        "scaled-by-number-of-heads",
        "You divide the scores by the square root of the number of heads.",
        "The scale follows from how many products are added up in one score: the width of a head.",
        TOGETHER,
        parts={"scale": lambda d, H: H**-0.5},
    ),
    Mistake(
        "not-scaled",
        "You do not scale the scores.",
        "Without the scale their spread grows with the width, and softmax saturates (lesson 2).",
        TOGETHER,
        parts={"scale": lambda d, H: 1.0},
    ),
    Mistake(
        "divided-by-width",
        "You divide the scores by the width of a head, without the square root.",
        "The spread of a score is √d, not d: dividing by d makes all weights nearly equal.",
        TOGETHER,
        parts={"scale": lambda d, H: 1 / d},
    ),
    Mistake(
        "softmax-over-queries",
        "Your weights sum to 1 down the columns: the softmax runs over the queries.",
        "Each query shares out one unit of attention among the keys, so each row sums to 1.",
        TOGETHER,
        parts={"axis": -2},
    ),
    Mistake(
        "nan-for-length-0",
        "A query with nothing to attend to gives NaN.",
        "A softmax over nothing but -inf divides 0 by 0. Such a row has to give zeros.",
        TOGETHER,
        parts={"empty_row": lambda weights: weights},
    ),
    Mistake(
        "uniform-for-length-0",
        "A query with nothing to attend to gets the average of all values.",
        "A finite fill makes all its scores equal, and softmax makes equal weights of them. Such a "
        "row has to give zeros.",
        TOGETHER,
        parts={"fill": -1e9},
    ),
    Mistake(
        "masked-scores-0",
        "The scores of padding are set to 0.",
        "exp(0) is 1: padding still gets a share of the attention.",
        LENGTHS,
        parts={"fill": 0.0},
    ),
    Mistake(
        "one-key-too-many",
        "Each query sees one key past its length.",
        "Keys count from 0, so a length of 3 allows the keys 0, 1 and 2.",
        LENGTHS,
        parts={"keep": torch.le},
    ),
    Mistake(
        "mask-as-long-as-queries",
        "Your mask counts the positions of the queries.",
        "It hides keys, so it needs a column for each key. In self-attention there are as many of "
        "both, and nobody notices.",
        TOGETHER,
        parts={"positions": lambda q, k: torch.arange(q.shape[1])},
    ),
    Mistake(
        "mask-inverted",
        "Your queries see the padding and nothing else.",
        "The mask is the wrong way round. Libraries differ in what True means.",
        PROOF,
        parts={"keep": torch.ge},
    ),
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
)
