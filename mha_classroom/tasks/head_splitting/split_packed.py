"""Task 4.6, split_packed: queries, keys and values of all heads out of one packed tensor."""

import torch

from mha_classroom.checks.examining import first_wrong
from mha_classroom.checks.showing import number_text
from mha_classroom.checks.task import Case, Task, and_in_float32, known, read_again, unchanged
from mha_classroom.tasks.head_splitting.transpose_qkv import (
    AS_FLOATS,
    SQUEEZED,
    STEP_1,
    STEP_2,
    STEP_3,
    STRIDES,
    TRAP,
    as_it_lies,
    whole_numbers,
)

KINDS = ("Queries", "Keys", "Values")
PACKED = "How PyTorch packs its weights"


def split_packed(X, num_heads):
    parts = X.chunk(3, dim=-1)
    return tuple(part.unflatten(-1, (num_heads, -1)).transpose(1, 2) for part in parts)


def point_out_feature(inputs, parts):
    """Which feature of a word the first wrong number is; how wide a head is, if shapes differ."""
    X, H = inputs.values()
    width = X.shape[-1] // 3 // H
    for part, (name, mine, right) in enumerate(zip(KINDS, parts, split_packed(X, H), strict=True)):
        if mine.shape != right.shape:
            return (
                f"A word has {X.shape[-1] // 3} features of each kind: {H} heads of width {width}."
            )
        if not torch.equal(mine, right):
            b, h, word, i = place = first_wrong(mine, right)
            feature = (part * H + h) * width + i
            return (
                f"{name} of head {h} in sequence {b}, word {word}: "
                f"number {i} is X[{b}, {word}, {feature}] = {number_text(right[place].item(), 4)}, "
                f"and yours is {number_text(mine[place].item(), 4)}."
            )
    return ""


@and_in_float32
def packed_cases(draw):
    def case(name, X, num_heads):
        return Case(name, {"X": X, "num_heads": num_heads})

    turned = "X is a transposed tensor, so it is not contiguous"
    return [
        case("2 words of width 4, 2 heads", torch.arange(24).reshape(1, 2, 12).double(), 2),
        case("2 sequences, 5 words, 4 heads of width 7", draw.normal(2, 5, 84), 4),
        case("6 words, 3 heads of width 2", draw.normal(2, 6, 18), 3),
        case("as many words as heads", draw.normal(2, 5, 45), 5),
        case("one head", draw.normal(3, 2, 12), 1),
        case("heads of width 1", draw.normal(2, 4, 15), 5),
        case("sequences of one word", draw.normal(3, 1, 24), 2),
        case(turned, draw.normal(3, 36, 7).transpose(1, 2), 2),
        case("X holds whole numbers (int64)", whole_numbers(draw, 2, 3, 24), 2),
    ]


def cut_in_order(X, H):
    return X.chunk(3, dim=-1)


def cut_by_head(X, H):
    """As if each head had its queries, keys and values side by side."""
    parts = X.unflatten(-1, (H, 3, -1))
    return [parts[..., i, :].flatten(2) for i in range(3)]


def cut_in_turn(X, H):
    return [X[..., i::3] for i in range(3)]


def three(parts):
    q, k, v = parts
    return q, k, v


def into_heads(X, H):
    return X.unflatten(-1, (H, -1)).transpose(1, 2)


def _reshaped_into_heads(X, H):
    return X.reshape(*X.shape[:2], H, -1).transpose(1, 2)


def build_packed(cut=cut_in_order, order=(0, 1, 2), split=into_heads, finish=unchanged, give=tuple):
    """cut: into queries, keys and values. finish: what is done with each of them at the end."""

    def split_packed(X, num_heads):
        parts = cut(X, num_heads)
        return give([finish(split(parts[i], num_heads)) for i in order])

    return split_packed


def _starting_early(X, H):
    d = X.shape[-1] // H
    return torch.stack([X[..., h * (d - 1) : h * (d - 1) + d] for h in range(H)], 1)


def _pieces_of_three_reshaped(X, H):
    first = X.split(3, -1)[:3]
    return tuple(part.reshape(*X.shape[:2], H, -1).transpose(1, 2) for part in first)


def _open_end(X, H):
    n = X.shape[-1] // 3
    return X[..., :n], X[..., n : 2 * n], X[..., n:]


def _words_sliced(X, H):
    n = X.shape[-1] // 3
    return X[:, :n], X[:, n : 2 * n], X[:, 2 * n :]


PIECES_OF_THREE = (
    "You cut X into pieces of 3 numbers, instead of into 3 pieces.",
    "split wants to know how long a piece is, chunk how many there are.",
)


FIRST_AXIS_CUT = (
    "You cut along the axis of sequences.",
    "Each word has its query, its key and its value, so B stays as it is. chunk and split cut "
    "along the first axis unless they are told another one.",
)
FIRST_AXIS = {"chunked": lambda X: X.chunk(3), "split": lambda X: X.split(X.shape[-1] // 3)}


def _as_many_as_there_are(cut):
    return lambda X, H: [into_heads(part, H) for part in cut(X)]


PACKING = {
    "packed-by-head": known(
        "You take X to be packed head by head: queries, keys and values of head 0, then those of "
        "head 1.",
        "Some libraries pack so. Here all queries of a word come first, those of every head, then "
        "all its keys, then all its values.",
        cut=cut_by_head,
    ),
    "parts-in-turn": known(
        "You deal the numbers of a word out in turn: one to the queries, one to the keys, one to "
        "the values.",
        "The three parts lie one after the other, each d_model wide. Of two new axes, which comes "
        "first: which part it is, or the place in this part?",
        cut=cut_in_turn,
    ),
    "reshaped-at-once": known(
        "You reshape X to (B, 3, num_heads, L, d), at once or in steps, and no axis moves.",
        "reshape deals numbers out as they lie in memory, word after word, and a word holds all "
        "three parts. First cut the last axis, then move axes.",
        wrong=lambda X, H: X.reshape(len(X), 3, H, X.shape[1], -1).unbind(1),
    ),
    "words-cut-into-three": known(
        "You cut the words into three parts: one third of the sequence makes the queries, and so "
        "on.",
        "Each word has its query, its key and its value. Which axis of X is three times as wide as "
        "a word?",
        wrong=lambda X, H: tuple(
            into_heads(part.reshape(*X.shape[:2], -1), H) for part in X.flatten(1).chunk(3, -1)
        ),
    ),
    "words-chunked": known(
        "You cut along the axis of words.",
        "Each word has its query, its key and its value, so L stays as it is. Which axis "
        "of X is three times as wide as a word?",
        cut=lambda X, H: three(X.chunk(3, dim=1)),
    ),
    **{
        f"words-sliced{way}": known(
            "Your slices take words, not features: X[:, n:2 * n] slices axis 1.",
            "Axis 1 has no more than n words here, so the later parts are empty. Which axis of X "
            "is three times as wide as a word?",
            wrong=build_packed(cut=_words_sliced, split=split),
        )
        for way, split in {"": into_heads, "-and-reshaped": _reshaped_into_heads}.items()
    },
    "pieces-of-three-reshaped": known(*PIECES_OF_THREE, wrong=_pieces_of_three_reshaped),
    "values-from-keys-on": known(
        "Your values begin where the keys begin: they are the last two thirds of X.",
        "A slice with an open end goes on to the end. Where do the values begin?",
        wrong=build_packed(cut=_open_end),
    ),
    "heads-start-early": known(
        "Head h begins at h · (d − 1), where d is the width of a head.",
        "Each head before it owns d features, not one less.",
        section=STEP_1,
        wrong=build_packed(split=_starting_early),
    ),
    "squeezed": known(*SQUEEZED, section=STEP_3, wrong=build_packed(finish=lambda X: X.squeeze())),
    "features-in-front-and-reshaped": known(
        "You bring the features in front of the words, and reshape to (B, H, L, d) then.",
        "reshape deals numbers out as they lie in memory: a row mixes several words. "
        "Of the axes words, heads and features, which has to change its place?",
        section=TRAP,
        wrong=build_packed(split=lambda X, H: X.transpose(1, 2).reshape(len(X), H, X.shape[1], -1)),
    ),
    "words-and-features-swapped": known(
        "Words and features have changed places in all three: you return (B, H, d, L).",
        "Attention multiplies (words, features) matrices: words before features.",
        section=STEP_2,
        wrong=build_packed(finish=lambda X: X.mT),
    ),
    "heads-in-front-of-the-batch": known(
        "The heads stand in front of the batch: you return (num_heads, B, L, d).",
        "The batch comes first, then the heads. With one sequence or one head the numbers are the "
        "same, and the axes are not.",
        section=STEP_2,
        wrong=build_packed(finish=lambda X: X.transpose(0, 1)),
    ),
    "pieces-of-three": known(
        "You take apart more than 3 pieces: X is cut into pieces of 3 numbers, or of another "
        "length, instead of into 3 pieces.",
        "split wants to know how long a piece is, chunk how many there are.",
        cut=lambda X, H: three(X.split(3, -1)),
    ),
    **{
        f"sequences-{way}": known(*FIRST_AXIS_CUT, cut=lambda X, H, cut=cut: three(cut(X)))
        for way, cut in FIRST_AXIS.items()
    },
    **{
        f"sequences-{way}-in-a-loop": known(*FIRST_AXIS_CUT, wrong=_as_many_as_there_are(cut))
        for way, cut in FIRST_AXIS.items()
    },
    **{
        f"{twice}-for-{missing}": known(
            f"The {missing} are the {twice} once more.",
            "Each has a third of its own. Is a line copied where one number has not been changed?",
            wrong=build_packed(order=order),
        )
        for twice, missing, order in (
            ("keys", "values", (0, 1, 1)),
            ("queries", "keys", (0, 0, 2)),
            ("queries", "values", (0, 1, 0)),
            ("values", "keys", (0, 2, 2)),
        )
    },
    "keys-first": known(
        "Queries and keys have changed places.",
        "Both X and what you return hold queries, keys and values, in this order.",
        order=(1, 0, 2),
    ),
    "keys-and-values-swapped": known(
        "Keys and values have changed places.",
        "Both X and what you return hold queries, keys and values, in this order.",
        order=(0, 2, 1),
    ),
    "values-first": known(
        "Queries and values have changed places.",
        "Both X and what you return hold queries, keys and values, in this order.",
        order=(2, 1, 0),
    ),
    "one-part-for-all": known(
        "Queries, keys and values are all cut from the first third of X.",
        "Each has a third of its own.",
        order=(0, 0, 0),
    ),
    "split-without-transpose": known(
        "Your heads share out the words, not the features: head 0 got what comes first in the "
        "sentence and never sees the last word.",
        "reshape fills the new shape in the order of memory, and there a word comes before the "
        "next word. A head has to get its slice of every word.",
        section=TRAP,
        split=lambda X, H: X.reshape(X.shape[0], H, X.shape[1], -1),
    ),
    "features-interleaved": known(
        "Your heads take features in turn: head 0 gets features 0, H, 2H and so on.",
        "Each head owns neighbouring features. Of the two new axes, which comes first, head or "
        "feature?",
        section=STEP_1,
        split=lambda X, H: X.unflatten(-1, (-1, H)).movedim(-1, 1),
    ),
    "count-and-width-swapped": known(
        "You cut each part into pieces of num_heads numbers, instead of into num_heads pieces.",
        "Number of heads and width of a head changed places. Where the two are equal nobody "
        "notices.",
        section=STEP_1,
        split=lambda X, H: X.unflatten(-1, (-1, H)).transpose(1, 2),
    ),
    "heads-behind-words": known(
        "The heads stand behind the words: you return (B, L, num_heads, d).",
        "Attention multiplies the last two axes, so these have to be words and features.",
        section=STEP_2,
        split=lambda X, H: X.unflatten(-1, (H, -1)),
    ),
    "batch-and-heads-joined": known(
        "Batch and heads are one axis, as in d2l.",
        "The numbers are right. Here the heads are to stay on an axis of their own.",
        section=STEP_3,
        finish=lambda X: X.flatten(0, 1),
    ),
    "not-split": known(
        "You return three tensors (B, L, d_model): the heads are not split yet.",
        "The first step is right. What did transpose_qkv do with each of the three?",
        section=STEP_1,
        split=lambda X, H: X,
    ),
    "keys-transposed": known(
        "Your keys are transposed: words and features have changed places.",
        "The scores need the transpose of the keys, but they make it themselves. Here words come "
        "before features in all three.",
        give=lambda parts: (parts[0], parts[1].mT, parts[2]),
    ),
    "strides-of-a-contiguous-tensor": known(
        *STRIDES, cut=lambda X, H: cut_in_order(as_it_lies(X), H)
    ),
    "floats-whatever-X-holds": known(*AS_FLOATS, finish=lambda X: X.float()),
    "stacked": known(
        "You return one tensor with the three parts on a new first axis.",
        "The numbers are right. A caller writes q, k, v = split_packed(…), and so could take your "
        "tensor apart. But the task asks for three tensors, in a tuple or a list.",
        give=torch.stack,
    ),
}

TASK = Task(
    "04-split_packed",
    split_packed,
    packed_cases,
    returns=("the query tensor", "the key tensor", "the value tensor"),
    mistakes=read_again(PACKED, PACKING),
    build=build_packed,
    point_out=point_out_feature,
    alone=(
        "words-chunked",
        "sequences-chunked",
        "sequences-split",
        "pieces-of-three",
        "floats-whatever-X-holds",
        "values-first",
        "one-part-for-all",
        "not-split",
        "keys-transposed",
        "stacked",
    ),
    forbidden=(
        "mha_course.multihead.transpose_qkv",
        "mha_course.multihead.split_heads",
        "d2l.torch.transpose_qkv",
    ),
    since=2,
    number=6,
)
