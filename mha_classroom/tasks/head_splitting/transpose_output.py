"""Task 4.2, transpose_output: the slices side by side again."""

import torch

from mha_classroom.checks.examining import first_wrong
from mha_classroom.checks.showing import number_text
from mha_classroom.checks.task import Case, Task, and_in_float32, known, read_again
from mha_classroom.tasks.head_splitting.transpose_qkv import (
    AS_FLOATS,
    FIRST_SEQUENCE,
    SQUEEZED,
    STEP_3,
    STRIDES,
    TRAP,
    as_it_lies,
    whole_number_cases,
)
from mha_course import multihead


def point_out_place(inputs, joined):
    """Of which head the first wrong number is, and where X has it; the sizes, if shapes differ."""
    X, H = inputs.values()
    right = right_merge(X, H)
    d = X.shape[-1]
    if joined.shape != right.shape:
        return (
            f"The {len(X)} rows of X are {H} for each sequence. A word gets the {d} numbers of "
            f"each head side by side, {H * d} in all."
        )
    b, word, feature = place = first_wrong(joined, right)
    h, i = divmod(feature, d)
    return (
        f"Feature {feature} of a word is number {i} of head {h}: for {list(place)} it is "
        f"X[{b * H + h}, {word}, {i}] = {number_text(right[place].item(), 4)}, and yours is "
        f"{number_text(joined[place].item(), 4)}."
    )


@and_in_float32
def merge_cases(draw):
    """What `transpose_qkv` returns for its cases."""
    return [
        Case(
            case.name.replace("X is", "X comes from"),
            {"X": multihead.transpose_qkv(**case.inputs), "num_heads": case.inputs["num_heads"]},
        )
        for case in whole_number_cases(draw)
    ]


def right_merge(X, H):
    return X.reshape(-1, H, *X.shape[1:]).transpose(1, 2).flatten(2)


def _rows_for_sequences(width):
    def transpose_output(X, num_heads):
        B, L, d = X.shape
        X = X.reshape(B, num_heads, L, width(d)).transpose(1, 2)
        return X.reshape(B, L, -1)

    return transpose_output


def _split_again(width, join):
    """The steps of the split; join: whether the first axis is made B long in the end."""

    def transpose_output(X, num_heads):
        n, L, d = X.shape
        heads = X.reshape(n, L, num_heads, width(d, num_heads)).permute(0, 2, 1, 3)
        if join:
            return heads.reshape(n // num_heads, L, num_heads * d)
        return heads.reshape(n * num_heads, L, -1)

    return transpose_output


BACK = "Merge: the same steps backwards"

MERGE = {
    "merge-without-transpose": known(
        "You join without swapping back: a row of your result mixes several words.",
        "Before heads and features may become one axis they have to be neighbours, and between "
        "them stands the axis of words.",
        wrong=lambda X, H: X.reshape(-1, X.shape[1], H * X.shape[2]),
    ),
    **{
        f"split-again{id}": known(
            "You split once more: you cut the last axis of X into num_heads pieces, as in 4.1.",
            "A row of X is one head already. To undo the split, its steps come backwards: which "
            "axis of X holds the heads, and which of them moves?",
            wrong=_split_again(width, join),
        )
        for id, width, join in (
            ("", lambda d, H: d // H, True),
            ("-and-width-left-open", lambda d, H: -1, True),
            ("-and-not-joined", lambda d, H: d // H, False),
            ("-and-width-left-open-and-not-joined", lambda d, H: -1, False),
        )
    },
    "merge-interleaved": known(
        "You lay the heads' features down in turn: feature 0 of every head, then feature 1.",
        "Each head's features stay together, as they were before the split. In the last two axes, "
        "which has to come first, head or feature?",
        wrong=lambda X, H: X.reshape(-1, H, *X.shape[1:]).permute(0, 2, 3, 1).flatten(2),
    ),
    "floats-whatever-X-holds": known(
        *AS_FLOATS, section=STEP_3, wrong=lambda X, H: right_merge(X, H).float()
    ),
    "merge-interleaved-and-heads-before-batch": known(
        "You read the first axis as (heads, batch), and you lay the heads' features down in turn: "
        "feature 0 of every head, then feature 1.",
        "The first axis is (batch, heads): all heads of sequence 0 come first. And each head's "
        "features stay together, as they were before the split.",
        wrong=lambda X, H: X.reshape(H, -1, *X.shape[1:]).permute(1, 2, 3, 0).flatten(2),
    ),
    "merge-heads-before-batch": known(
        "You read the first axis as (heads, batch).",
        "It is (batch, heads): all heads of sequence 0 come first. With one sequence both look "
        "the same.",
        section=STEP_3,
        wrong=lambda X, H: X.reshape(H, -1, *X.shape[1:]).permute(1, 2, 0, 3).flatten(2),
    ),
    "heads-taken-for-the-batch": known(
        "You take num_heads for the number of sequences: your result has num_heads of them.",
        "The first axis holds B · num_heads rows. How many sequences is that?",
        section=STEP_3,
        wrong=lambda X, H: X.reshape(H, -1, *X.shape[1:]).transpose(1, 2).flatten(2),
    ),
    **{
        f"rows-taken-for-sequences{id}": known(
            "You take the size of the first axis for the number of sequences.",
            "The first axis holds B · num_heads rows. How many sequences is that?",
            section=STEP_3,
            wrong=_rows_for_sequences(width),
        )
        for id, width in (("", lambda d: d), ("-and-width-left-open", lambda d: -1))
    },
    "words-and-features-swapped-in-the-result": known(
        "Words and features have changed places in your result: you return (B, num_heads · d, L).",
        "W_o comes next, and it multiplies features: they have to stand on the last axis.",
        wrong=lambda X, H: X.mT.reshape(-1, H * X.shape[2], X.shape[1]),
    ),
    "words-and-features-swapped": known(
        "Words and features have changed places before you join.",
        "reshape deals numbers out as they lie in memory: a row of your result mixes several "
        "words. It is heads and words that have to change places.",
        wrong=lambda X, H: X.mT.reshape(-1, X.shape[1], H * X.shape[2]),
    ),
    "heads-summed-and-repeated": known(
        "You add the heads up and repeat the sum until it is wide enough.",
        "They are concatenated: each place of the result holds a number of one head.",
        wrong=lambda X, H: X.reshape(-1, H, *X.shape[1:]).sum(1).repeat(1, 1, H),
    ),
    "first-sequence-only": known(
        *FIRST_SEQUENCE,
        section=STEP_3,
        wrong=lambda X, H: torch.cat([X[h] for h in range(H)], -1)[None],
    ),
    "all-rows-side-by-side": known(
        "You put all rows of the first axis side by side, those of other sequences too.",
        "The first axis holds B · num_heads rows. Only num_heads of them belong to one sequence.",
        section=STEP_3,
        wrong=lambda X, H: torch.cat(list(X), -1)[None],
    ),
    "pieces-of-H-rows-side-by-side": known(
        "You cut the first axis into pieces of num_heads rows and put the pieces side by side.",
        "Such a piece is one sequence with all its heads. It is the heads in a piece that stand "
        "side by side in the result; the sequences stay apart.",
        section=STEP_3,
        wrong=lambda X, H: torch.cat(X.split(H), -1),
    ),
    "heads-along-the-words": known(
        "You lay the heads end to end along the words: the sequence becomes num_heads times as "
        "long.",
        "Each word has its slice in every head. Which axis has to grow, words or features?",
        wrong=lambda X, H: torch.cat([X[h::H] for h in range(H)], 1),
    ),
    "strides-of-a-contiguous-tensor": known(
        *STRIDES, wrong=lambda X, H: right_merge(as_it_lies(X), H)
    ),
    "squeezed": known(*SQUEEZED, section=STEP_3, wrong=lambda X, H: right_merge(X, H).squeeze()),
    "squeezed-in-front": known(
        *SQUEEZED, section=STEP_3, wrong=lambda X, H: right_merge(X, H).squeeze(0)
    ),
    "heads-summed": known(
        "You add the heads up.",
        "They are concatenated: the result is num_heads times as wide as one head.",
        wrong=lambda X, H: X.reshape(-1, H, *X.shape[1:]).sum(1),
    ),
    "heads-averaged": known(
        "You average the heads.",
        "They are concatenated: each keeps its own place in the result, num_heads times as wide.",
        wrong=lambda X, H: X.reshape(-1, H, *X.shape[1:]).mean(1),
    ),
    "heads-reversed": known(
        "Your heads stand in reverse order, the last one first.",
        "Head 0 owns the first features of every word.",
        wrong=lambda X, H: torch.cat([X[h::H] for h in reversed(range(H))], -1),
    ),
    "axes-not-joined": known(
        "You return four axes: each word still has its heads on an axis of their own.",
        "Heads and features are neighbours and in the right order. The task asks for both as one "
        "axis, (B, L, num_heads · d).",
        wrong=lambda X, H: X.reshape(-1, H, *X.shape[1:]).transpose(1, 2),
    ),
    "axes-neither-swapped-nor-joined": known(
        "You return four axes, with the heads in front of the words.",
        "You have undone the last step of the split. Two more are left: which axis has to move, "
        "and which two become one?",
        wrong=lambda X, H: X.reshape(-1, H, *X.shape[1:]),
    ),
    "merge-view-after-permute": known(
        "You call view on a tensor whose axes were swapped.",
        "view cannot copy, and here the numbers have to move. Deleting the swap instead silences "
        "the error and mixes words up.",
        section=TRAP,
        wrong=lambda X, H: (
            X.view(-1, H, *X.shape[1:]).transpose(1, 2).view(-1, X.shape[1], H * X.shape[2])
        ),
    ),
}

TASK = Task(
    "04-transpose_output",
    multihead.transpose_output,
    merge_cases,
    returns=("the result",),
    mistakes=read_again(BACK, MERGE),
    point_out=point_out_place,
    forbidden=(
        "mha_course.multihead.transpose_output",
        "mha_course.multihead.merge_heads",
        "d2l.torch.transpose_output",
    ),
    number=2,
)
