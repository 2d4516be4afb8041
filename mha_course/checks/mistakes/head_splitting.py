"""The known mistakes of lesson 04 in splitting and merging."""

import torch

from mha_course.checks.task import Mistake

__all__ = ["MERGE", "SPLIT", "cut_words", "interleaved", "right_merge", "right_split"]

STEP_3 = "Step 3: batch and heads become one axis"
TRAP = "The trap"
BACK = "And back again"


def cut_words(X, H):
    """The first words for head 0, and so on."""
    return X.reshape(X.shape[0] * H, X.shape[1], -1)


def interleaved(X, H):
    """Features dealt out in turn."""
    return X.reshape(*X.shape[:2], -1, H).permute(0, 3, 1, 2).flatten(0, 1)


def right_split(X, H):
    """A right split."""
    return X.reshape(*X.shape[:2], H, -1).transpose(1, 2).flatten(0, 1)


def right_merge(X, H):
    """A right merge."""
    return X.reshape(-1, H, *X.shape[1:]).transpose(1, 2).flatten(2)


SPLIT = (
    Mistake(
        "split-without-transpose",
        "Your heads hold whole words: head 0 got the first words and never sees the last.",
        "reshape deals the numbers out as they lie in memory, and there a word comes before the "
        "next word. A head has to get its slice of every word.",
        TRAP,
        cut_words,
    ),
    Mistake(
        "view-after-permute",
        "You call view on a tensor whose axes were swapped.",
        "view only describes numbers as they lie in memory, and after the swap they do not lie in "
        "the order that you ask for. They have to be copied. Do not delete the swap: that silences "
        "the error and mixes words up.",
        TRAP,
        lambda X, H: X.unflatten(-1, (H, -1)).transpose(1, 2).view(-1, X.shape[1], X.shape[2] // H),
    ),
    Mistake(
        "features-interleaved",
        "Your heads take features in turn, like cards dealt to players: head 0 gets features "
        "0, H, 2H and so on.",
        "Each head owns neighbouring features, since the columns of its own narrow matrix stand "
        "side by side in the wide one. Which of the two new axes comes first, head or feature?",
        "Step 1: cut each word",
        interleaved,
    ),
    Mistake(
        "count-and-width-swapped",
        "You cut each word into pieces of num_heads numbers, instead of into num_heads pieces.",
        "Number of heads and width of a head changed places: with 2 heads a word of width 6 has "
        "two pieces of 3, not three pieces of 2. Where the two are equal nobody notices.",
        "Step 1: cut each word",
        lambda X, H: X.reshape(*X.shape[:2], -1, H).transpose(1, 2).flatten(0, 1),
    ),
    Mistake(
        "heads-before-batch",
        "Your rows are ordered by head first, then by sequence.",
        "The rows of one sequence belong together: all heads of sequence 0, then all of sequence "
        "1. Lengths are spread in that order, so another order looks at other people's padding.",
        STEP_3,
        lambda X, H: torch.cat(X.chunk(H, -1), 0),
    ),
    Mistake(
        "axes-not-joined",
        "You return four axes, with the heads still on one of their own.",
        "The numbers are where they should be. The task asks for batch and heads as one axis.",
        STEP_3,
        lambda X, H: X.unflatten(-1, (H, -1)).transpose(1, 2),
    ),
    Mistake(
        "words-and-features-swapped",
        "Words and features have changed places in each head: you return (B · H, d, L).",
        "Attention multiplies (words, features) matrices: words before features.",
        "Step 2: heads to the front",
        lambda X, H: right_split(X, H).mT,
    ),
    Mistake(
        "heads-beside-words",
        "You joined batch and words instead of batch and heads.",
        "Every word became a problem of its own, with the heads in place of words: attention would "
        "compare the heads of one word. The axis of heads has to move before the first two axes "
        "are joined.",
        "Step 2: heads to the front",
        lambda X, H: X.unflatten(-1, (H, -1)).flatten(0, 1),
    ),
)

MERGE = (
    Mistake(
        "merge-without-transpose",
        "You join without swapping back: a row of your result holds several words of one head.",
        "Before heads and features may become one axis they have to be neighbours, and between "
        "them stands the axis of words.",
        BACK,
        lambda X, H: X.reshape(-1, X.shape[1], H * X.shape[2]),
    ),
    Mistake(
        "merge-interleaved",
        "You lay the heads' features down in turn: feature 0 of every head, then feature 1.",
        "Each head's features stay together, as they were before the split. In the last two axes, "
        "which has to come first, head or feature?",
        BACK,
        lambda X, H: X.reshape(-1, H, *X.shape[1:]).permute(0, 2, 3, 1).flatten(2),
    ),
    Mistake(
        "merge-heads-before-batch",
        "You read the first axis as (heads, batch).",
        "It is (batch, heads): all heads of sequence 0 come first. With one sequence both look "
        "the same.",
        STEP_3,
        lambda X, H: X.reshape(H, -1, *X.shape[1:]).permute(1, 2, 0, 3).flatten(2),
    ),
    Mistake(
        "heads-taken-for-the-batch",
        "You take num_heads for the number of sequences: your result has num_heads of them.",
        "The first axis holds B · num_heads rows. How many sequences is that?",
        STEP_3,
        lambda X, H: X.reshape(H, -1, *X.shape[1:]).transpose(1, 2).flatten(2),
    ),
    Mistake(
        "heads-summed",
        "You add the heads up.",
        "They are concatenated: the result is num_heads times as wide as one head.",
        BACK,
        lambda X, H: X.reshape(-1, H, *X.shape[1:]).sum(1),
    ),
    Mistake(
        "heads-averaged",
        "You average the heads.",
        "They are concatenated: each keeps its own place in the result, num_heads times as wide.",
        BACK,
        lambda X, H: X.reshape(-1, H, *X.shape[1:]).mean(1),
    ),
    Mistake(
        "heads-reversed",
        "Your heads stand in reverse order, the last one first.",
        "Head 0 owns the first features of every word.",
        BACK,
        lambda X, H: torch.cat([X[h::H] for h in reversed(range(H))], -1),
    ),
    Mistake(
        "axes-not-joined",
        "You return four axes: each word still has its heads on an axis of their own.",
        "Heads and features are neighbours and in the right order. The task asks for both as one "
        "axis, (B, L, num_heads · d).",
        BACK,
        lambda X, H: X.reshape(-1, H, *X.shape[1:]).transpose(1, 2),
    ),
    Mistake(
        "axes-neither-swapped-nor-joined",
        "You return four axes, with the heads in front of the words.",
        "You have undone the last step of the split. Two more are left: which axis has to move, "
        "and which two become one?",
        BACK,
        lambda X, H: X.reshape(-1, H, *X.shape[1:]),
    ),
    Mistake(
        "merge-view-after-permute",
        "You call view on a tensor whose axes were swapped.",
        "view cannot copy, and here the numbers have to move. Deleting the swap instead silences "
        "the error and mixes words up.",
        TRAP,
        lambda X, H: (
            X.view(-1, H, *X.shape[1:]).transpose(1, 2).view(-1, X.shape[1], H * X.shape[2])
        ),
    ),
)
