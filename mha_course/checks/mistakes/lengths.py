"""The known mistakes of lesson 02 about lengths: which keys a mask lets be seen."""

import torch

from mha_course.checks.task import Mistake

__all__ = ["LENGTHS", "MORE_LENGTHS", "compare"]

PADDING = "Hiding padding"
NOTHING = "Nothing to attend to"
AXES = "A mask with one axis too many, or too few"
OPPOSITE = "True means the opposite next door"


def compare(holds, shift=0):
    """A mask from keys and lengths: True where holds(index of the key, length + shift)."""

    def see(scores, lens):
        lens = lens[:, None] if lens.dim() == 1 else lens
        return holds(torch.arange(scores.shape[-1]), lens[:, :, None] + shift)

    return see


LENGTHS = (
    Mistake(
        "one-key-too-many",
        "Each query sees one key past its length.",
        "Keys count from 0, so with a length of 3 the keys 0, 1 and 2 are real. Which comparison "
        "still lets key 3 in?",
        PADDING,
        parts={"see": compare(torch.le)},
    ),
    Mistake(
        "one-key-too-few",
        "The last real key of each sequence gets nothing.",
        "A length of 3 means three real keys: 0, 1 and 2. One of them is hidden here.",
        PADDING,
        parts={"see": compare(torch.lt, shift=-1)},
    ),
    Mistake(
        "mask-inverted",
        "Your queries attend to the padding and to nothing else.",
        "The mask is the wrong way round. What does True mean where you make it, and what where "
        "you use it? masked_fill, for one, overwrites where its mask is True.",
        OPPOSITE,
        parts={"see": compare(torch.ge)},
    ),
    Mistake(
        "lengths-ignored",
        "valid_lens has no effect: the padding gets its share like any word.",
        "Keys past a length are there only to fill the box. Attention to them is attention to "
        "nothing that was said.",
        PADDING,
        parts={"see": lambda scores, lens: torch.ones_like(scores, dtype=torch.bool)},
    ),
    Mistake(
        "queries-hidden-for-keys",
        "With one length a sequence, you hide the queries past it, not the keys: the queries that "
        "are left still attend to padding.",
        "Rows are queries, columns keys. A length says how many keys there are to look at, for "
        "every query of the sequence. Along which axis do your positions run?",
        PADDING,
        parts={
            "see": lambda scores, lens: (
                (torch.arange(scores.shape[1]) < lens[:, None])[:, :, None]
                if lens.dim() == 1
                else compare(torch.lt)(scores, lens)
            )
        },
    ),
    Mistake(
        "lengths-repeated-as-a-whole",
        "With one length a sequence, the rows get the wrong ones: 2, 3 became 2, 3, 2, 3.",
        "repeat lays the whole tensor down again. All queries of sequence 0 come first, and every "
        "one of them needs the length of sequence 0.",
        AXES,
        parts={
            "see": lambda scores, lens: compare(torch.lt)(
                scores,
                lens.repeat(scores.shape[1]).view(scores.shape[:2]) if lens.dim() == 1 else lens,
            )
        },
    ),
    Mistake(
        "no-axis-for-queries",
        "Your mask has the shape (B, S), and query i of every sequence gets the length of "
        "sequence i.",
        "PyTorch lines shapes up from the right, so next to scores (B, L, S) the B of your mask "
        "stands under L. Where B and L differ that is an error; where they agree, nothing "
        "warns you.",
        AXES,
        parts={
            "see": lambda scores, lens: (
                torch.arange(scores.shape[-1])
                < (lens[:, None] if lens.dim() == 1 else lens[..., None])
            )
        },
    ),
    Mistake(
        "one-axis-too-many",
        "Your mask has four axes, and so has your result: every sequence under the lengths of "
        "every sequence.",
        "Masks with an axis for heads are (B, 1, 1, S). Scores are (B, L, S) here: count the axes "
        "from the right, and see which one the batch of your mask falls on.",
        AXES,
        parts={"see": lambda scores, lens: compare(torch.lt)(scores, lens)[:, None]},
    ),
)

MORE_LENGTHS = (
    Mistake(
        "length-0-counts-as-1",
        "You turn lengths of 0 into 1.",
        "That keeps NaN away, and makes a query without any real key attend to padding. Its row "
        "has to be zeros.",
        NOTHING,
        parts={"see": lambda scores, lens: compare(torch.lt)(scores, lens.clamp(min=1))},
    ),
    Mistake(
        "longest-for-all",
        "Every row gets the length of the longest.",
        "In a batch some sequences are shorter, and their padding is hidden only if each row is "
        "compared with its own length.",
        PADDING,
        parts={
            "see": lambda scores, lens: compare(torch.lt)(scores, lens.max().expand(len(scores)))
        },
    ),
    Mistake(
        "one-length-for-all-queries",
        "With one length a query, you use the first for the whole sequence.",
        "Lengths of shape (B, L) are there so that queries of one sequence may see different "
        "numbers of keys, as in causal attention.",
        NOTHING,
        parts={
            "see": lambda scores, lens: compare(torch.lt)(
                scores, lens if lens.dim() == 1 else lens[:, 0]
            )
        },
    ),
    Mistake(
        "keys-counted-from-the-end",
        "You keep the last keys of each row and hide the first.",
        "Padding stands at the end of a sequence: a length of 2 means that keys 0 and 1 are real.",
        PADDING,
        parts={
            "see": lambda scores, lens: compare(torch.ge)(scores, scores.shape[-1] - lens),
        },
    ),
    Mistake(
        "lengths-of-sequences-only",
        "It works with one length a sequence, and raises with one length a query.",
        "Lengths come as (B,) or as (B, L). Next to scores (B, L, S), which axes of size 1 does "
        "the one need, and which the other?",
        AXES,
        parts={"see": lambda s, lens: torch.arange(s.shape[-1]) < lens[:, None, None]},
    ),
    Mistake(
        "lengths-of-queries-only",
        "It works with one length a query, and raises with one length a sequence.",
        "Lengths come as (B,) or as (B, L). A tensor with one axis cannot be indexed as if it had "
        "two: it has to get the axis of queries first.",
        AXES,
        parts={"see": lambda s, lens: torch.arange(s.shape[-1]) < lens[:, :, None]},
    ),
)
