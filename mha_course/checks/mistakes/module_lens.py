"""The known mistakes of lesson 04 in the whole module: lengths, masks, rows without any key."""

import torch

from mha_course.checks.mistakes.combining import apart
from mha_course.checks.mistakes.multihead_parts import build_module
from mha_course.checks.mistakes.spread_lens import LENGTHS
from mha_course.checks.task import Mistake

__all__ = ["MODULE_LENS"]

TOGETHER = "Put together"
PROOF = "The proof"


def _not_spread(lens, H):
    return lens


def _not_spread_words(id, **parts):
    return Mistake(
        id,
        "The lengths are not spread over the heads: they reach attention as they were given.",
        "After the split there are B · H problems, and attention takes each of them for a sequence "
        "of its own. How many lengths does it expect then, and how many does it get?",
        LENGTHS,
        parts={"spread": _not_spread, **parts},
    )


SPREAD = (
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
    _not_spread_words("lengths-not-spread"),
    _not_spread_words("lengths-not-spread-over-own-mask", fits=lambda *sizes: None),
    Mistake(
        "tables-not-spread",
        "Lengths of shape (B,) are spread over the heads, a table (B, L) is not.",
        "A table has a row of lengths for each sequence, and every head of the sequence needs that "
        "row.",
        LENGTHS,
        parts={"spread": lambda lens, H: lens.repeat_interleave(H) if lens.dim() == 1 else lens},
    ),
    Mistake(
        "lengths-flattened",
        "A table of lengths (B, L) arrives flat.",
        "repeat_interleave flattens a tensor unless it is told the axis.",
        LENGTHS,
        parts={"spread": lambda lens, H: lens.repeat_interleave(H)},
    ),
    Mistake(
        "lengths-repeated-along-the-last-axis",
        "The lengths are tiled: 3, 5 became 3, 5, 3, 5, and a table (B, L) became num_heads times "
        "as wide.",
        "The rows are batch first, so all heads of a sequence need its length, or its row of "
        "lengths, before the next sequence comes.",
        LENGTHS,
        parts={"spread": lambda lens, H: lens.tile(H)},
    ),
    Mistake(
        "lengths-repeated-and-tables-refused",
        "The lengths go to the wrong heads: 3, 5 became 3, 5, 3, 5. And for a table (B, L) your "
        "repeat raises, since it wants one number for each axis.",
        "The rows are batch first, so all heads of a sequence need its length before the next "
        "sequence comes.",
        LENGTHS,
        parts={"spread": lambda lens, H: lens.repeat(H)},
    ),
    Mistake(
        "lengths-divided",
        "You divide the lengths by the number of heads.",
        "The heads share the features of a word. The words they do not share: each head sees the "
        "whole sequence.",
        LENGTHS,
        parts={"spread": lambda lens, H: lens.repeat_interleave(H, 0) // H},
    ),
    Mistake(
        "length-0-counts-as-1",
        "You turn lengths of 0 into 1.",
        "That keeps NaN away, and makes a query without any real key attend to padding. Its heads "
        "have to give zeros.",
        TOGETHER,
        parts={"spread": lambda lens, H: lens.clamp(min=1).repeat_interleave(H, 0)},
    ),
)

MASKS = (
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
        "future-hidden",
        "You hide the keys that come later: a causal mask.",
        "That is for models that write text, and nobody asks for it here. A query sees all keys "
        "that valid_lens lets it see, whatever their place.",
        TOGETHER,
        parts={"also": lambda scores: torch.ones(scores.shape[1:], dtype=torch.bool).tril()},
    ),
)

MODULE_LENS = apart(
    SPREAD + MASKS,
    build_module,
    "lengths-not-spread-over-own-mask",
    "lengths-flattened",
    "lengths-repeated-along-the-last-axis",
    "lengths-repeated-and-tables-refused",
    "lengths-divided",
    "length-0-counts-as-1",
)
