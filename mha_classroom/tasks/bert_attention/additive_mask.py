"""Task 6.1, additive_mask: 0 for words, the lowest number for padding."""

import torch

from mha_classroom.checks.examining import total
from mha_classroom.checks.showing import Text, describe, numbers_text
from mha_classroom.checks.task import AnswerError, Case, Task, known, read_again
from mha_course import bert


def additive_mask(attention_mask, dtype=torch.float64):
    return bert.additive_mask(attention_mask, dtype)


def mask_cases(draw):
    def case(name, *shape, low=0, **dtype):
        return Case(name, {"attention_mask": draw.integers(low, 1, *shape)} | dtype)

    def fixed(name, rows, **dtype):
        return Case(name, {"attention_mask": torch.tensor(rows)} | dtype)

    lengths = draw.lengths(3, 13)
    return [
        fixed("3 words and 1", [[1, 1, 1], [1, 0, 0]], dtype=torch.float32),
        Case("no dtype given", {"attention_mask": (torch.arange(13) < lengths[:, None]).long()}),
        fixed("padding in front", [[0, 0, 1, 1], [1, 1, 1, 1], [0, 1, 1, 1]], dtype=torch.float32),
        fixed("padding between words", [[1, 0, 1, 0], [1, 1, 0, 1]], dtype=torch.float32),
        case("float64", 5, 11, dtype=torch.float64),
        case("float16", 3, 7, dtype=torch.float16),
        case("bfloat16", 2, 5, dtype=torch.bfloat16),
        case("as many sequences as words", 3, 3, dtype=torch.float32),
        fixed("a sequence of padding alone", [[1, 1], [0, 0]], dtype=torch.float32),
        case("1 sequence of 1 word", 1, 1, low=1, dtype=torch.float32),
        fixed("no padding", [[1, 1, 1], [1, 1, 1]], dtype=torch.float32),
    ]


@total
def examine_mask(inputs, mask):
    """The mask's dtype, and the mask in float64, which holds all numbers of the others."""
    if not torch.is_tensor(mask):
        raise AnswerError(f"additive_mask has to return a tensor, got {describe(mask)}.")
    return Text(str(mask.dtype).removeprefix("torch.")), mask.double()


def point_out_numbers(inputs, examined):
    """What a mask of the right dtype holds for words, or for padding, where that is wrong."""
    words = inputs["attention_mask"] == 1
    dtype, mask = examined
    right = inputs.get("dtype", torch.float64)
    if str(right) != f"torch.{dtype}":
        return ""
    kinds = (("words", words, 0.0), ("padding", ~words, torch.finfo(right).min))
    held = [(kind, mask[:, 0, 0][where].unique(), wanted) for kind, where, wanted in kinds]
    return " ".join(
        f"For {kind} your mask holds {numbers_text(X)}; asked for is "
        f"{f'the lowest number of {dtype}' if wanted else '0'}."
        for kind, X, wanted in held
        if (X != wanted).any()
    )


def _lowest(dtype):
    return torch.finfo(dtype).min


def _filled(value):
    """Write a number that depends on the dtype where something is hidden."""
    return lambda hidden, dtype: torch.zeros(hidden.shape, dtype=dtype).masked_fill(
        hidden, value(dtype)
    )


RIGHT_FILL = _filled(_lowest)


def build_mask(
    hide=lambda attention_mask: attention_mask == 0,
    write=RIGHT_FILL,
    place=lambda mask: mask[:, None, None, :],
    default=torch.float64,
):
    def additive_mask(attention_mask, dtype=default):
        return place(write(hide(attention_mask), dtype))

    return additive_mask


def _by_way_of(way, convert=True):
    """Write the lowest number of one dtype in another; what it does not hold becomes -inf."""

    def write(hidden, dtype):
        made, source = way(dtype)
        low = torch.tensor(_lowest(source), dtype=torch.float64).to(made)
        mask = torch.where(hidden, low, torch.zeros((), dtype=made))
        return mask.to(dtype) if convert else mask

    return write


def _filled_in_float32(convert):
    """Fill with the lowest number of the dtype in float32; PyTorch refuses that of float64."""

    def write(hidden, dtype):
        mask = torch.zeros(hidden.shape, dtype=torch.float32).masked_fill(hidden, _lowest(dtype))
        return mask.to(dtype) if convert else mask

    return write


def _one_number(sign, always=None):
    """Whether a mask is 0 for words and for padding one number of this sign, not the lowest.

    always: the dtype that it has whatever is asked for.
    """

    def shows(inputs, value):
        dtype, mask = value
        attention_mask = inputs["attention_mask"][:, None, None]
        asked = str(inputs.get("dtype", "float64")).removeprefix("torch.")
        if mask.shape != attention_mask.shape or dtype != (always or asked):
            return False
        words, padding = mask[attention_mask == 1], mask[attention_mask == 0]
        found = bool((padding * sign > 0).all()) and len(padding.unique()) <= 1
        return found and not words.any() and not (padding == _lowest(getattr(torch, dtype))).any()

    return shows


MASK = {
    "mask-inverted": known(
        "You hide the words and let the padding be seen.",
        "In attention_mask 1 stands for a word. What is added to a word's scores must leave them "
        "as they are.",
        hide=lambda attention_mask: attention_mask == 1,
    ),
    "padding-assumed-at-the-end": known(
        "You hide as many places at the end of each sequence as there are zeros in it. Do you "
        "count?",
        "That is right only where all padding stands at the end. attention_mask says of each "
        "place by itself whether there is a word, and some tokenizers pad in front.",
        hide=lambda attention_mask: (
            torch.arange(attention_mask.shape[1]) >= attention_mask.sum(1, keepdim=True)
        ),
    ),
    "padding-between-words-seen": known(
        "You hide padding in front of the first word and behind the last, and leave what stands "
        "between words.",
        "attention_mask says of each place by itself whether there is a word.",
        hide=lambda attention_mask: (
            (attention_mask.cumsum(1) == 0) | (attention_mask.flip(1).cumsum(1).flip(1) == 0)
        ),
    ),
    "hidden-from-the-first-padding-on": known(
        "You hide the first padding and all that comes after it.",
        "Padding may stand in front of words and between them. attention_mask says of each place "
        "by itself whether there is a word.",
        hide=lambda attention_mask: attention_mask.cumprod(1) == 0,
    ),
    "padding-alone-seen": known(
        "Where a sequence holds nothing but padding, you hide none of it.",
        "Its places are padding like any others. The lowest finite number does no harm there: it "
        "is the same for all, and softmax gives no NaN.",
        hide=lambda attention_mask: (
            (attention_mask == 0) & (attention_mask.sum(1, keepdim=True) > 0)
        ),
    ),
    "first-row-for-all": known(
        "Every sequence gets the mask of the first one.",
        "In a batch each sequence has padding of its own.",
        hide=lambda mask: (mask[:1] == 0).expand(mask.shape),
    ),
    "minus-infinity": known(
        "For padding your mask holds -inf.",
        "Where a row holds nothing but padding, all its scores would be -inf, and softmax divides "
        "0 by 0: NaN. A finite number that is low enough hides as well and cannot do that.",
        write=_filled(lambda dtype: -torch.inf),
    ),
    "minus-infinity-in-float32": known(
        "For padding your mask holds -inf, and it is float32 whatever dtype was asked for.",
        "In a row of nothing but padding -inf becomes NaN, and a finite number that is low enough "
        "hides as well. And PyTorch makes float32, its default dtype, where you say no other: of "
        "plain numbers in torch.where, too.",
        write=lambda hidden, dtype: _filled(lambda dtype: -torch.inf)(hidden, torch.float32),
    ),
    "infinity-times-0": known(
        "Your mask holds NaN for words and -inf for padding. Do you multiply with infinity?",
        "0 times infinity is not 0 but NaN. The lowest finite number can be multiplied with 0, "
        "and masked_fill or where need no product.",
        write=lambda hidden, dtype: hidden.to(dtype) * -torch.inf,
    ),
    "words-marked-with-1": known(
        "Your mask holds what attention_mask holds: 1 for words, 0 for padding.",
        "Added to the scores, that raises the words a little and hides nothing: exp(0) is 1, so "
        "padding keeps its share.",
        write=lambda hidden, dtype: (~hidden).to(dtype),
    ),
    "words-raised-by-1": known(
        "Your mask holds 1 for what it does not hide.",
        "attention_mask says 1 for a word. What is added to a word's scores has to leave them as "
        "they are.",
        write=lambda hidden, dtype: RIGHT_FILL(hidden, dtype) + (~hidden).to(dtype),
    ),
    "padding-marked-with-1": known(
        "Your mask holds 1 where there is padding.",
        "It is added: 1 more makes padding more attractive. What has to be added to a score so "
        "that its exp is 0?",
        write=lambda hidden, dtype: hidden.to(dtype),
    ),
    "padding-marked-with-minus-1": known(
        "Your mask holds -1 where there is padding.",
        "A score that is 1 lower still gets a share, about a third of what it was. What has to be "
        "added so that nothing is left?",
        write=lambda hidden, dtype: -hidden.to(dtype),
    ),
    "highest-number": known(
        "For padding your mask holds the highest number, not the lowest.",
        "Added to a score it draws all attention to the padding. Is it max, or the lowest number "
        "times -1?",
        write=_filled(lambda dtype: torch.finfo(dtype).max),
    ),
    "smallest-number": known(
        "For padding your mask holds the smallest positive number.",
        "torch.finfo knows several: tiny is a positive number very near to 0, and adding it "
        "changes nothing. What is wanted is far below 0.",
        write=_filled(lambda dtype: torch.finfo(dtype).tiny),
    ),
    "fixed-1e9": known(
        "For padding you take -1e9 whatever the dtype.",
        "float16 ends at -65504, so there is no -1e9: PyTorch refuses or makes -inf of it. Each "
        "dtype has a lowest number of its own; ask the dtype for it.",
        write=_filled(lambda dtype: -1e9),
    ),
    "fixed-1e9-overflows": known(
        "For padding you take -1e9 whatever the dtype.",
        "float16 ends at -65504, so -1e9 becomes -inf there. Each dtype has a lowest number of its "
        "own; ask the dtype for it.",
        write=lambda hidden, dtype: (hidden.double() * -1e9).to(dtype),
    ),
    "fixed-1e4": known(
        "For padding you take -10000 whatever the dtype.",
        "BERT's first code did so, and it does for usual scores. The task asks for more: the "
        "lowest finite number of the dtype, below which no score can be.",
        write=_filled(lambda dtype: -1e4),
    ),
    "lowest-of-float32": known(
        "For padding you take the lowest number of float32 whatever the dtype.",
        "For float64 it is not the lowest, and float16 does not have it. Ask the dtype that was "
        "given.",
        write=_filled(lambda dtype: torch.finfo(torch.float32).min),
    ),
    "lowest-of-float32-overflows": known(
        "You take the lowest number of float32 whatever the dtype.",
        "For float64 it is not the lowest, and in float16 it becomes -inf. Ask the dtype that was "
        "given.",
        write=_by_way_of(lambda dtype: (torch.float64, torch.float32)),
    ),
    "lowest-of-float32-for-float64": known(
        "Where float64 is asked for, your mask holds the lowest number of float32.",
        "That of float64 is about -1.8e308, far below. Ask the dtype that was given, whichever it "
        "is.",
        write=_filled(lambda dtype: max(_lowest(dtype), _lowest(torch.float32))),
    ),
    "dtype-ignored": known(
        "Your mask is float64 whatever dtype was asked for.",
        "Scores and mask should have one dtype: float64 added to float32 makes float64 of all "
        "that follows.",
        write=lambda hidden, dtype: RIGHT_FILL(hidden, torch.float64),
    ),
    "always-float32": known(
        "Your mask is float32 whatever dtype was asked for.",
        "Do you say float32 or float(), or no dtype at all? Without one PyTorch takes its default, "
        "float32. The lowest number depends on the dtype, too.",
        write=lambda hidden, dtype: RIGHT_FILL(hidden, torch.float32),
    ),
    "by-way-of-float32": known(
        "Where float64 is asked for, your mask holds -inf.",
        "Was it float32 on the way? PyTorch makes that, its default dtype, where you say no other. "
        "The lowest number of float64 does not fit into it, and converting afterwards is too late.",
        write=_by_way_of(lambda dtype: (torch.float32, dtype)),
    ),
    "filled-in-float32": known(
        "You write the lowest number of the dtype into a float32 tensor.",
        "PyTorch makes float32, its default dtype, where you say no other: of plain numbers given "
        "to where, too. float() makes it as well. The lowest number of float64 does not fit in, "
        "and converting afterwards is too late.",
        write=_filled_in_float32(convert=True),
    ),
    "left-in-float32": known(
        "You ask the right dtype for its lowest number, and the mask is float32 all the same.",
        "PyTorch makes float32, its default dtype, where you say no other: of plain numbers given "
        "to where, too. float() makes it as well. The lowest number of float64 does not even fit "
        "in.",
        write=_filled_in_float32(convert=False),
    ),
    "lowest-of-float64": known(
        "You take the lowest number of float64 whatever the dtype.",
        "Converted to a smaller dtype, it becomes -inf. Ask the dtype that was given.",
        write=_by_way_of(lambda dtype: (torch.float64, torch.float64)),
    ),
    "whole-numbers-multiplied": known(
        "You multiply in float32, PyTorch's default dtype, and your mask stays in it.",
        "Whole numbers times a number give float32, and float() gives it too. There the lowest "
        "number of float64 and the highest are infinite, and 0 times infinity is NaN. Convert "
        "before you multiply.",
        write=lambda hidden, dtype: hidden.long() * _lowest(dtype),
    ),
    "whole-numbers-multiplied-then-converted": known(
        "You multiply in float32, and convert the product.",
        "Whole numbers times a number give float32, PyTorch's default dtype, and float() gives it "
        "too. There the lowest number of float64 and the highest are infinite, and 0 times "
        "infinity is NaN. Convert before you multiply.",
        write=lambda hidden, dtype: (hidden.long() * _lowest(dtype)).to(dtype),
    ),
    "whole-numbers": known(
        "You return whole numbers.",
        "The mask is added to scores, so it has to be of their dtype. attention_mask holds whole "
        "numbers, and sums and products of these stay whole.",
        write=lambda hidden, dtype: -10_000 * hidden.long(),
        shows=lambda inputs, value: value[0].startswith("int"),
    ),
    "some-low-number": known(
        "For padding your mask holds a negative number that is not the lowest of the dtype.",
        "A score that is large enough makes up for it, and if the number is near 0, any score is. "
        "`torch.finfo(dtype).tiny` is the smallest number above 0, and its negative is shown as 0 "
        "here. Which number is the lowest of all?",
        write=_filled(lambda dtype: -1000.0),
        shows=_one_number(-1),
    ),
    "some-low-number-in-float32": known(
        "For padding your mask holds a negative number that is not the lowest, and it is float32 "
        "whatever dtype was asked for.",
        "PyTorch makes float32, its default dtype, of whole numbers and plain numbers, and float() "
        "makes it too. Each dtype has a lowest number of its own; ask the one that was given.",
        write=lambda hidden, dtype: _filled(lambda dtype: -1e9)(hidden, torch.float32),
        shows=_one_number(-1, "float32"),
    ),
    "some-positive-number": known(
        "For padding your mask holds a positive number.",
        "Added to a score it makes padding more attractive. What is wanted is as far below 0 as "
        "the dtype goes.",
        write=_filled(lambda dtype: 1000.0),
        shows=_one_number(1),
    ),
    "float32-by-default": known(
        "Where no dtype is given, your mask is float32.",
        "Compare your def line with the one in the task: it says what dtype is if nobody says.",
        default=torch.float32,
    ),
    "boolean-mask": known(
        "You return a boolean mask, True for padding.",
        "True and False say which keys to hide. This mask is added to scores, so it has to hold "
        "numbers of the given dtype.",
        write=lambda hidden, dtype: hidden,
    ),
    "boolean-mask-of-words": known(
        "You return a boolean mask, True for words.",
        "True and False say what may be seen, or what is hidden, and each library has its own "
        "habit. This mask is added to scores, so it has to hold numbers of the given dtype.",
        wrong=build_mask(
            hide=lambda attention_mask: attention_mask == 1, write=lambda hidden, dtype: hidden
        ),
    ),
    "queries-hidden-for-keys": known(
        "Your mask has the shape (B, 1, S, 1): it lowers whole rows, those of the padded queries.",
        "Rows are queries, columns keys. A row that is lowered as a whole hides no key from its "
        "query, and the padding stays in sight. On which axis do keys stand?",
        place=lambda mask: mask[:, None, :, None],
    ),
    "no-axis-for-heads": known(
        "Your mask has the shape (B, 1, S).",
        "Lined up from the right with scores (B, H, L, S), its B falls on the heads: an error, or, "
        "with as many heads as sequences, the wrong mask without an error.",
        place=lambda mask: mask[:, None, :],
    ),
    "no-new-axes": known(
        "Your mask still has the shape (B, S).",
        "Lined up from the right with scores (B, H, L, S), its B falls on the queries. It needs "
        "axes of size 1 where the scores have heads and queries.",
        place=lambda mask: mask,
    ),
    "batch-beside-keys": known(
        "Your mask has the shape (1, 1, B, S): the new axes stand in front.",
        "Lined up with scores (B, H, L, S), query i would get the mask of sequence i. The batch "
        "has to stay in front.",
        place=lambda mask: mask[None, None],
    ),
    "axes-at-the-end": known(
        "Your mask has the shape (B, S, 1, 1): the new axes stand at the end.",
        "Lined up from the right with scores (B, H, L, S), its S falls on the heads. Keys are the "
        "last axis.",
        place=lambda mask: mask[:, :, None, None],
    ),
    "keys-beside-the-batch": known(
        "Your mask has the shape (B, S, 1): one new axis stands at the end.",
        "Lined up from the right with scores (B, H, L, S), its S falls on the queries. Keys are "
        "the last axis.",
        place=lambda mask: mask[:, :, None],
    ),
    "a-row-for-each-query": known(
        "Your mask has the shape (B, 1, S, S), with the same row for every query.",
        "The numbers are right. The task asks for (B, 1, 1, S): an axis of size 1 is read again "
        "for each query, and costs S times less memory.",
        place=lambda mask: mask[:, None, None, :].expand(-1, 1, mask.shape[1], -1),
    ),
}

TASK = Task(
    "06-additive_mask",
    additive_mask,
    mask_cases,
    examine=examine_mask,
    returns=("the dtype of the mask", "the mask"),
    mistakes=read_again("A mask that is added", MASK),
    build=build_mask,
    point_out=point_out_numbers,
    forbidden=("mha_course.bert.additive_mask",),
    number=1,
)
