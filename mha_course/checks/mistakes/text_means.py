"""The known mistakes of lesson 12 in taking the mean of a text's words."""

import torch

from mha_course.checks.mistakes.other_pools import POOLS
from mha_course.checks.mistakes.weighing import same
from mha_course.checks.task import Mistake

__all__ = ["MEAN", "build_mean"]

ONE = "One vector for a text"


def build_mean(
    words=lambda hidden, mask: hidden * mask[..., None],
    total=lambda words: words.sum(1),
    count=lambda mask, hidden: mask.sum(1, keepdim=True),
    finish=same,
    visible=same,
):
    """Return an answer to `12-mean_pool`, right unless a part is replaced."""

    def mean_pool(hidden, attention_mask):
        mask = visible(attention_mask)
        return finish(total(words(hidden, mask)) / count(mask, hidden))

    return mean_pool


def _without_ends(mask):
    """The first and the last word of each text hidden, where there are more than two."""
    places, inner = mask.cumsum(1) * mask, mask.clone()
    inner[(places == 1) | (places == mask.sum(1, keepdim=True))] = 0
    return torch.where(inner.sum(1, keepdim=True) > 0, inner, mask)


def _places(mask):
    return torch.arange(mask.shape[1])


def _in_place(hidden, attention_mask):
    hidden *= attention_mask[..., None]
    return hidden.sum(1) / attention_mask.sum(1, keepdim=True)


MEAN = (
    Mistake(
        "padding-counted",
        "You average over all places, padding included.",
        "Then a text's vector depends on how long its neighbours in the batch are. Only words "
        "count, in the sum and in the number.",
        ONE,
        lambda hidden, attention_mask: hidden.mean(1),
    ),
    Mistake(
        "padding-in-the-sum",
        "You divide by the number of words, and the sum has padding in it.",
        "The hidden states of padding are not zero: the layers compute something there, too.",
        ONE,
        parts={"words": lambda hidden, mask: hidden},
    ),
    Mistake(
        "divided-by-length",
        "You leave padding out of the sum and divide by L.",
        "L is the length of the longest text. The shorter a text, the shorter its vector would be. "
        "How many words does each text have?",
        ONE,
        parts={"count": lambda mask, hidden: hidden.shape[1]},
    ),
    Mistake(
        "divided-by-batch",
        "You divide by the number of texts.",
        "The mean is over the words of one text. How many words does each text have?",
        ONE,
        parts={"count": lambda mask, hidden: len(hidden)},
    ),
    Mistake(
        "divided-by-all-words",
        "You divide by the number of words in the whole batch.",
        "Each text has a number of its own. Along which axis of attention_mask is it found?",
        ONE,
        parts={"count": lambda mask, hidden: mask.sum()},
    ),
    Mistake(
        "divided-by-longest",
        "You divide by the number of words of the longest text.",
        "Each text has a number of its own.",
        ONE,
        parts={"count": lambda mask, hidden: mask.sum(1).max()},
    ),
    Mistake(
        "not-divided",
        "You return the sum of the words.",
        "A mean is the sum divided by how many there are, so that long and short texts can be "
        "compared.",
        ONE,
        parts={"count": lambda mask, hidden: 1},
    ),
    Mistake(
        "divided-by-root",
        "You divide by the root of the number of words.",
        "That is done for variances. A mean divides by the number itself.",
        ONE,
        parts={"count": lambda mask, hidden: mask.sum(1, keepdim=True) ** 0.5},
    ),
    Mistake(
        "divided-whole",
        "You divide with //, which rounds down.",
        "The mask counts in whole numbers, the hidden states are fractions: / is the division "
        "for them.",
        ONE,
        lambda hidden, attention_mask: (
            (hidden * attention_mask[..., None]).sum(1) // attention_mask.sum(1, keepdim=True)
        ),
    ),
    *POOLS,
    Mistake(
        "mask-beside-features",
        "Your mask meets the features, not the words.",
        "(B, L) has to reach (B, L, D) with its L on the middle axis. As many words as features, "
        "and nothing would warn you.",
        ONE,
        parts={"words": lambda hidden, mask: hidden * mask[:, None, :]},
    ),
    Mistake(
        "mask-without-axis",
        "You multiply (B, L, D) by the mask (B, L) as it is.",
        "Axes are matched from the back: B meets L, and L meets D. The mask needs one more axis. "
        "Where?",
        ONE,
        parts={"words": lambda hidden, mask: hidden * mask},
    ),
    Mistake(
        "count-without-axis",
        "You divide (B, D) by the counts (B,) as they are.",
        "Axes are matched from the back, so the counts meet the features. They need one more axis.",
        ONE,
        parts={"count": lambda mask, hidden: mask.sum(1)},
    ),
    Mistake(
        "mask-inverted",
        "You average over the padding.",
        "In attention_mask 1 is a word and 0 is padding.",
        ONE,
        parts={"visible": lambda mask: 1 - mask},
    ),
    Mistake(
        "over-features",
        "You take the mean of each word's features.",
        "(B, D) was asked for: the words' axis goes, the features stay.",
        ONE,
        lambda hidden, attention_mask: (hidden * attention_mask[..., None]).mean(2),
    ),
    Mistake(
        "over-texts",
        "You add over the texts of the batch.",
        "(B, D) was asked for: the words' axis goes, the texts stay apart.",
        ONE,
        parts={"total": lambda words: words.sum(0)},
    ),
    Mistake(
        "unit-length",
        "You bring the mean to length 1.",
        "The course's embed does that afterwards. This task asks for the mean as it is.",
        ONE,
        parts={"finish": lambda pooled: pooled / pooled.norm(dim=1, keepdim=True)},
    ),
    Mistake(
        "one-added-to-the-count",
        "Your number of words is one too large.",
        "Was it meant against division by 0? Each text has a word here.",
        ONE,
        parts={"count": lambda mask, hidden: mask.sum(1, keepdim=True) + 1},
    ),
    Mistake(
        "ends-left-out",
        "You leave out the first and the last word of each text.",
        "[CLS] and [SEP] count like words here: attention_mask has a 1 for them.",
        ONE,
        parts={"visible": _without_ends},
    ),
    Mistake(
        "padding-assumed-at-the-end",
        "You count the words of each text and take as many from the beginning.",
        "That is right only where all padding stands at the end. attention_mask says of each "
        "place by itself whether there is a word.",
        ONE,
        parts={"visible": lambda mask: (_places(mask) < mask.sum(1, keepdim=True)).long()},
    ),
    Mistake(
        "words-of-all-texts",
        "You average over the words of all texts together.",
        "(B, D) was asked for. Picking with hidden[attention_mask == 1] forgets which text a word "
        "is from.",
        ONE,
        lambda hidden, attention_mask: hidden[attention_mask == 1].mean(0),
    ),
    Mistake(
        "words-not-added",
        "You return the words, each divided by how many there are.",
        "(B, D) was asked for: one vector a text. They have to be added up.",
        ONE,
        lambda hidden, attention_mask: (
            hidden * attention_mask[..., None] / attention_mask.sum(1)[:, None, None]
        ),
    ),
    Mistake(
        "changed-in-place",
        "You set the padding of the given hidden states to 0.",
        "The result may be right, and the caller's hidden states are not what they were.",
        ONE,
        _in_place,
    ),
)
