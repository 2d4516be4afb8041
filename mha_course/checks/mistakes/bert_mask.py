"""The known mistakes of lesson 06 in the additive mask."""

import torch

from mha_course.checks.mistakes.bert_mask_axes import MASK_AXES
from mha_course.checks.mistakes.bert_mask_dtypes import MASK_DTYPES, WRITE, fill, lowest
from mha_course.checks.task import Mistake

__all__ = ["MASK", "build_mask"]

ADDED = "A mask that is added"


def _one_number(sign):
    """Whether a mask is 0 for words and for padding one number of this sign, not the lowest."""

    def shows(inputs, value):
        dtype, mask = value
        attention_mask = inputs["attention_mask"][:, None, None]
        if mask.shape != attention_mask.shape or dtype not in str(inputs.get("dtype", "float64")):
            return False
        words, padding = mask[attention_mask == 1], mask[attention_mask == 0]
        found = bool((padding * sign > 0).all()) and len(padding.unique()) <= 1
        return found and not words.any() and not (padding == lowest(getattr(torch, dtype))).any()

    return shows


def build_mask(
    hide=lambda attention_mask: attention_mask == 0,
    write=WRITE,
    place=lambda mask: mask[:, None, None, :],
    default=torch.float64,
):
    """Return a function for `06-additive_mask`, right unless a part is replaced."""

    def additive_mask(attention_mask, dtype=default):
        return place(write(hide(attention_mask), dtype))

    return additive_mask


MASK = (
    Mistake(
        "mask-inverted",
        "You hide the words and let the padding be seen.",
        "In attention_mask 1 stands for a word. What is added to a word's scores must leave them "
        "as they are.",
        ADDED,
        parts={"hide": lambda attention_mask: attention_mask == 1},
    ),
    Mistake(
        "padding-assumed-at-the-end",
        "You count the words of each sequence and hide what comes after so many.",
        "That is right only where all padding stands at the end. attention_mask says of each "
        "place by itself whether there is a word, and some tokenizers pad in front.",
        ADDED,
        parts={
            "hide": lambda attention_mask: (
                torch.arange(attention_mask.shape[1]) >= attention_mask.sum(1, keepdim=True)
            )
        },
    ),
    Mistake(
        "first-row-for-all",
        "Every sequence gets the mask of the first one.",
        "In a batch each sequence has padding of its own.",
        ADDED,
        parts={"hide": lambda mask: (mask[:1] == 0).expand(mask.shape)},
    ),
    Mistake(
        "minus-infinity",
        "You fill with -inf.",
        "Where a row holds nothing but padding, all its scores would be -inf, and softmax divides "
        "0 by 0: NaN. A finite number that is low enough hides as well and cannot do that.",
        ADDED,
        parts={"write": fill(lambda dtype: -torch.inf)},
    ),
    Mistake(
        "infinity-times-0",
        "You multiply with -inf, and for words that is 0 · (-inf).",
        "0 times infinity is not 0 but NaN. The lowest finite number can be multiplied with 0, "
        "and masked_fill or where need no product.",
        ADDED,
        parts={"write": lambda hidden, dtype: hidden.to(dtype) * -torch.inf},
    ),
    Mistake(
        "words-marked-with-1",
        "You return attention_mask itself with new axes: 1 for words, 0 for padding.",
        "Added to the scores, that raises the words a little and hides nothing: exp(0) is 1, so "
        "padding keeps its share.",
        ADDED,
        parts={"write": lambda hidden, dtype: (~hidden).to(dtype)},
    ),
    Mistake(
        "padding-marked-with-1",
        "Your mask holds 1 where there is padding.",
        "It is added: 1 more makes padding more attractive. What has to be added to a score so "
        "that its exp is 0?",
        ADDED,
        parts={"write": lambda hidden, dtype: hidden.to(dtype)},
    ),
    Mistake(
        "padding-marked-with-minus-1",
        "Your mask holds -1 where there is padding.",
        "A score that is 1 lower still gets a share, about a third of what it was. What has to be "
        "added so that nothing is left?",
        ADDED,
        parts={"write": lambda hidden, dtype: -hidden.to(dtype)},
    ),
    Mistake(
        "highest-number",
        "You fill with the highest number, not the lowest.",
        "Added to a score it draws all attention to the padding.",
        ADDED,
        parts={"write": fill(lambda dtype: torch.finfo(dtype).max)},
    ),
    Mistake(
        "smallest-number",
        "You fill with the smallest positive number.",
        "torch.finfo knows several: tiny is the positive number nearest to 0, and adding it "
        "changes nothing. What is wanted is far below 0.",
        ADDED,
        parts={"write": fill(lambda dtype: torch.finfo(dtype).tiny)},
    ),
    Mistake(
        "fixed-1e9",
        "You fill with -1e9 whatever the dtype.",
        "float16 ends at -65504, so there is no -1e9: PyTorch refuses or makes -inf of it. Each "
        "dtype has a lowest number of its own; ask the dtype for it.",
        ADDED,
        parts={"write": fill(lambda dtype: -1e9)},
    ),
    Mistake(
        "fixed-1e9-overflows",
        "You fill with -1e9 whatever the dtype.",
        "float16 ends at -65504, so -1e9 becomes -inf there. Each dtype has a lowest number of its "
        "own; ask the dtype for it.",
        ADDED,
        parts={"write": lambda hidden, dtype: (hidden.double() * -1e9).to(dtype)},
    ),
    Mistake(
        "fixed-1e4",
        "You fill with -10000 whatever the dtype.",
        "BERT's first code did so, and it does for usual scores. The task asks for more: the "
        "lowest finite number of the dtype, below which no score can be.",
        ADDED,
        parts={"write": fill(lambda dtype: -1e4)},
    ),
    *MASK_DTYPES,
    Mistake(
        "some-low-number",
        "You fill with a negative number that is not the lowest of the dtype.",
        "It hides padding as long as no score is large enough to make up for it. Below the lowest "
        "number of a dtype there is no score at all.",
        ADDED,
        parts={"write": fill(lambda dtype: -1000.0)},
        shows=_one_number(-1),
    ),
    Mistake(
        "some-positive-number",
        "You fill with a positive number.",
        "Added to a score it makes padding more attractive. What is wanted is as far below 0 as "
        "the dtype goes.",
        ADDED,
        parts={"write": fill(lambda dtype: 1000.0)},
        shows=_one_number(1),
    ),
    Mistake(
        "float32-by-default",
        "Where no dtype is given, your mask is float32.",
        "Compare your def line with the one in the task: it says what dtype is if nobody says.",
        ADDED,
        parts={"default": torch.float32},
    ),
    Mistake(
        "boolean-mask",
        "You return a boolean mask.",
        "True and False say which keys to hide. This mask is added to scores, so it has to hold "
        "numbers of the given dtype.",
        ADDED,
        parts={"write": lambda hidden, dtype: hidden},
    ),
    *MASK_AXES,
)
