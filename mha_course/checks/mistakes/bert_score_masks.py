"""The known mistakes of lesson 06 in applying an additive mask to scores."""

import torch

from mha_course.checks.task import Mistake

__all__ = ["SCORE_MASKS"]

ADDED = "A mask that is added"


def _fill_where(hidden, fill=-torch.inf):
    return lambda scores, mask, scale: (scores * scale).masked_fill(hidden(mask), fill)


SCORE_MASKS = (
    Mistake(
        "mask-ignored",
        "mask has no effect on your result.",
        "It holds what has to be added to the scores so that padding gets no weight.",
        ADDED,
        parts={"hide": lambda scores, mask, scale: scores * scale},
    ),
    Mistake(
        "mask-multiplied",
        "You multiply the scores with the mask.",
        "This mask is additive: it holds 0 where a score should stay as it is, and times 0 nothing "
        "stays.",
        ADDED,
        parts={"hide": lambda scores, mask, scale: scores * scale * mask},
    ),
    Mistake(
        "mask-subtracted",
        "You subtract the mask.",
        "It holds very low numbers for padding: taken away instead of added, they draw all "
        "attention to it.",
        ADDED,
        parts={"hide": lambda scores, mask, scale: scores * scale - mask},
    ),
    Mistake(
        "mask-scaled",
        "You add the mask before you scale, so it is divided by √d like the scores.",
        "The mask is added to the scaled scores. With very low numbers no one notices; with others "
        "the result changes.",
        ADDED,
        parts={"hide": lambda scores, mask, scale: (scores + mask) * scale},
    ),
    Mistake(
        "mask-after-softmax",
        "You add the mask to the weights, after the softmax.",
        "There the low numbers make huge negative weights. Before the softmax exp makes 0 of them.",
        ADDED,
        parts={
            "hide": lambda scores, mask, scale: scores * scale,
            "after": lambda weights, mask: weights + mask,
        },
    ),
    Mistake(
        "weights-zeroed-after-softmax",
        "You set weights of padding to 0 after the softmax.",
        "The rows then sum to less than 1: padding took part in sharing out. Hidden before the "
        "softmax, it leaves its share to the words.",
        ADDED,
        parts={
            "hide": lambda scores, mask, scale: scores * scale,
            "after": lambda weights, mask: weights * (mask == 0),
        },
    ),
    Mistake(
        "mask-turned",
        "You turn the mask, so that it lowers whole rows instead of columns.",
        "Columns are keys. A row whose scores are all lowered alike has the same softmax as "
        "before.",
        ADDED,
        parts={"hide": lambda scores, mask, scale: scores * scale + mask.mT},
    ),
    Mistake(
        "mask-read-as-0-and-1",
        "You hide where the mask is 0.",
        "In attention_mask 0 means padding. In the additive mask that arrives here, 0 means: "
        "leave this score as it is.",
        ADDED,
        parts={"hide": _fill_where(lambda mask: mask == 0)},
    ),
    Mistake(
        "mask-read-as-0-and-1-finite",
        "You fill with a low number of your own where the mask is 0.",
        "In attention_mask 0 means padding. In the additive mask that arrives here, 0 means: "
        "leave this score as it is. Its other numbers are low already.",
        ADDED,
        parts={"hide": _fill_where(lambda mask: mask == 0, -1e9)},
    ),
    Mistake(
        "mask-made-boolean",
        "You use the mask only to say which scores are hidden, and fill these yourself.",
        "The task says that it is added, whatever its numbers: a small one lowers a score a little "
        "and hides nothing. And a row that you fill with -inf gives NaN.",
        ADDED,
        parts={"hide": _fill_where(lambda mask: mask != 0)},
    ),
    Mistake(
        "mask-made-boolean-finite",
        "You use the mask only to say which scores are hidden, and fill these with a low number of "
        "your own.",
        "The task says that the mask is added, whatever its numbers: a small one lowers a score a "
        "little and hides nothing.",
        ADDED,
        parts={"hide": _fill_where(lambda mask: mask != 0, -1e9)},
    ),
    Mistake(
        "negative-means-hidden",
        "You use the mask only to say which scores are hidden, those where it is negative.",
        "The task says that it is added, whatever its numbers: a small one lowers a score a little "
        "and hides nothing. And a row that you fill with -inf gives NaN.",
        ADDED,
        parts={"hide": _fill_where(lambda mask: mask < 0)},
    ),
    Mistake(
        "mask-made-again",
        "You make an additive mask out of mask, as if it held 1 for words and 0 for padding.",
        "That has been done (6.1). What arrives here is 0 for words and very low for padding, "
        "ready to be added.",
        ADDED,
        parts={
            "hide": lambda scores, mask, scale: (
                scores * scale + (1 - mask) * torch.finfo(torch.float64).min
            )
        },
    ),
)
