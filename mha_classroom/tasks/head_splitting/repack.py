"""Task 4.7, repack: the rows of a packed matrix from one library's order into PyTorch's."""

import torch

from mha_classroom.checks.task import Case, Task, and_in_float32, known, read_again, unchanged
from mha_classroom.tasks.head_splitting.split_packed import PACKED
from mha_classroom.tasks.head_splitting.transpose_qkv import STRIDES, as_it_lies


def repack(packed, num_heads):
    return packed.unflatten(0, (num_heads, 3, -1)).transpose(0, 1).flatten(0, 2)


@and_in_float32
def repack_cases(draw):
    """3 H divides the width of each matrix: columns give the same however they are cut."""

    def case(name, packed, num_heads):
        return Case(name, {"packed": packed, "num_heads": num_heads})

    return [
        case("a bias, 2 heads of width 2: row i holds the number i", torch.arange(12).double(), 2),
        case("a bias, 4 heads of width 5", draw.normal(60), 4),
        case("a matrix, 2 heads of width 3", draw.normal(18, 6), 2),
        case("a matrix, 5 heads of width 3", draw.normal(45, 15), 5),
        case("a matrix that takes wider words", draw.normal(42, 48), 2),
        case("as many heads as parts", draw.normal(54, 18), 3),
        case("one head", draw.normal(18, 6), 1),
        case("heads of width 1", draw.normal(12, 12), 4),
        case("a transposed matrix, so it is not contiguous", draw.normal(12, 24).T, 2),
        case("a matrix of width 1", draw.normal(18, 1), 2),
    ]


def _cut(*names):
    """The sizes of the new axes: -1 for the width of a head, which follows."""
    return lambda H: tuple({"head": H, "part": 3, "feature": -1}[name] for name in names)


BY_HEAD = _cut("head", "part", "feature")


def build_repack(
    axes=BY_HEAD,
    move=(1, 0, 2),
    before=unchanged,
    after=unchanged,
    join=lambda rows: rows.flatten(0, 2),
):
    """axes: into which the rows are cut. move: the order in which these are joined again."""

    def repack(packed, num_heads):
        rows = before(packed).unflatten(0, axes(num_heads))
        rows = rows.permute(*move, *range(3, rows.dim()))
        return after(join(rows))

    return repack


def _columns(packed, H):
    return repack(packed.mT, H).mT


def _of_matrices_only(packed, H):
    d_in = packed.shape[1]
    return packed.reshape(H, 3, -1, d_in).transpose(0, 1).reshape(-1, d_in)


def _of_square_matrices_only(packed, H):
    width = packed.shape[0] // 3
    return packed.reshape(H, 3, width // H, width).transpose(0, 1).reshape(3 * width, width)


def _right(packed, H):
    return packed.unflatten(0, (H, 3, -1)).transpose(0, 1).flatten(0, 2)


def _way_back(packed, H):
    return packed.unflatten(0, (3, H, -1)).transpose(0, 1).flatten(0, 2)


def _unpacking_the_shape(rows):
    def repack(packed, num_heads):
        n, width = packed.shape
        return rows(packed, num_heads).reshape(n, width)

    return repack


def _last_axis_for_all(packed, H):
    rows = packed.reshape(H, 3, -1, packed.shape[-1]).transpose(0, 1)
    return rows.reshape(packed.shape)


def _square_matrices_and_biases(packed, H):
    width = packed.shape[-1]
    if packed.dim() == 1:
        return _right(packed, H)
    return packed.reshape(H, 3, width // H, width).transpose(0, 1).reshape(3 * width, width)


def _square_by_their_rows_and_biases(packed, H):
    return (_right if packed.dim() == 1 else _of_square_matrices_only)(packed, H)


def _columns_by_reshape(packed, H):
    return packed.reshape(len(packed), H, 3, -1).transpose(1, 2).reshape(packed.shape)


def _columns_by_unflatten(packed, H):
    return packed.unflatten(1, (H, 3, -1)).transpose(1, 2).flatten(1)


# Of the ways to cut columns each raises in words of its own where there is only one.
COLUMNS = {
    "by-reshape": _columns_by_reshape,
    "by-unflatten": _columns_by_unflatten,
}
BIASES_REFUSED = (
    "For a bias, which has one axis, your function raises: it asks packed for two.",
    "The same rows of a bias have to move. Write it so that it does not care how many axes stand "
    "behind the first one.",
)
REORDERED = {
    "queries-and-keys-swapped": ("queries and keys", [1, 0, 2]),
    "queries-and-values-swapped": ("queries and values", [2, 1, 0]),
}


def _in_order(order):
    return lambda rows: rows[order].flatten(0, 2)


COLUMNS_MOVED = (
    "You move columns instead of rows.",
    "nn.Linear keeps (out, in), and the heads share the numbers that come out. Which axis of "
    "the matrix is 3 · d_model long?",
)

REPACKING = {
    "left-as-it-is": known(
        "You return the rows in the order that they had.",
        "reshape and back, or rows cut and joined in the same order, change nothing. Some axis has "
        "to change its place in between.",
        move=(0, 1, 2),
    ),
    "the-way-back": known(
        "You go the other way: from PyTorch's order to the order by head.",
        "In what you get, each head has its three blocks together, and the first of the new axes "
        "is the head. If you put rows into places: is it where a row goes, or where it comes "
        "from? With three heads nobody notices the difference.",
        axes=_cut("part", "head", "feature"),
    ),
    "two-heads-only": known(
        "You cut the rows into six blocks, as for the two heads of the table.",
        "There are three blocks for each head. How many heads there are, num_heads says.",
        wrong=lambda packed, H: torch.cat([packed.chunk(6)[i] for i in (0, 3, 1, 4, 2, 5)]),
    ),
    "parts-in-turn": known(
        "You take the rows of a head in turn: one to the queries, one to the keys, one to the "
        "values.",
        "Within a head come d rows of queries, then d rows of keys, then d rows of values. Of the "
        "new axes, which changes fastest from row to row?",
        axes=_cut("head", "feature", "part"),
        move=(2, 0, 1),
    ),
    "parts-and-features-swapped": known(
        "Within each head you swap part and feature: a row of the queries, one of the keys, one of "
        "the values, and the heads stay where they are.",
        "In PyTorch's order all queries come first, those of head 0, then those of head 1. With "
        "which axis does the part have to change places?",
        move=(0, 2, 1),
    ),
    "features-before-heads": known(
        "In each part of your result the rows of the heads are interleaved: row 0 of every head, "
        "then row 1 of every head.",
        "Within the queries come all rows of head 0, then all of head 1.",
        move=(1, 2, 0),
    ),
    "reversed-axes": known(
        "You turn the order of all three axes around: feature, part, head.",
        "What is asked for is part, then head, then feature. Transposing everything (.T) moves the "
        "features, too.",
        move=(2, 1, 0),
    ),
    "width-and-count-swapped": known(
        "You cut the rows as if there were d heads of width num_heads.",
        "Number of heads and width of a head changed places. Where the two are equal nobody "
        "notices.",
        axes=lambda H: (-1, 3, H),
    ),
    "columns-moved": known(
        *COLUMNS_MOVED, wrong=lambda packed, H: _columns(packed, H) if packed.dim() > 1 else packed
    ),
    "columns-moved-biases-right": known(
        *COLUMNS_MOVED,
        wrong=lambda packed, H: (_columns if packed.dim() > 1 else repack)(packed, H),
    ),
    **{
        f"columns-moved-{way}": known(
            *COLUMNS_MOVED,
            wrong=lambda packed, H, cut=cut: cut(packed, H) if packed.dim() > 1 else packed,
        )
        for way, cut in COLUMNS.items()
    },
    **{
        f"columns-moved-{way}-biases-right": known(
            *COLUMNS_MOVED,
            wrong=lambda packed, H, cut=cut: (cut if packed.dim() > 1 else repack)(packed, H),
        )
        for way, cut in COLUMNS.items()
    },
    "features-first": known(
        "You cut the rows as if the first of the new axes were the feature.",
        "In packed, the rows of one head stay together, and in them those of one part: the axes "
        "are (head, part, feature), the slowest first.",
        wrong=build_repack(axes=_cut("feature", "head", "part"), move=(2, 1, 0)),
    ),
    "axes-not-joined": known(
        "You return the parts, heads and features on axes of their own.",
        "The order is right. The result has to have the shape of packed, so that it can be loaded.",
        join=unchanged,
    ),
    "parts-on-an-axis": known(
        "You return the three parts on an axis of their own.",
        "The order is right. The result has to have the shape of packed, so that it can be loaded.",
        join=lambda rows: rows.flatten(1, 2),
    ),
    "transposed": known(
        "Your matrix is transposed.",
        "Both libraries keep (out, in): only the order of the rows differs.",
        after=lambda rows: rows.mT if rows.dim() == 2 else rows,
    ),
    "biases-refused": known(
        "For a bias, which has one axis, your function raises: it reads packed.shape[1].",
        "The same rows of a bias have to move. Write it so that it does not care how many axes "
        "stand behind the first one.",
        wrong=_of_matrices_only,
    ),
    "biases-refused-and-square-matrices-only": known(
        "Your function takes the second axis to be d_model wide. A bias has no second axis, and a "
        "matrix may take words of another width.",
        "Only the first axis is cut. Write it so that it does not care what stands behind it.",
        wrong=_of_square_matrices_only,
    ),
    "biases-refused-by-unpacking": known(*BIASES_REFUSED, wrong=_unpacking_the_shape(_right)),
    "biases-refused-and-the-way-back": known(
        "You go the other way, from PyTorch's order to the order by head. And for a bias, which "
        "has one axis, your function raises: it asks packed for two.",
        "In what you get, each head has its three blocks together: which of the new axes comes "
        "first? And the same rows of a bias have to move.",
        wrong=_unpacking_the_shape(_way_back),
    ),
    "biases-refused-by-their-last-axis": known(
        "For a bias your function raises: its last axis is the one that is cut, and you keep that "
        "as a width.",
        "A bias has one axis only. Write it so that it does not care how many axes stand behind "
        "the first one.",
        wrong=_last_axis_for_all,
    ),
    "square-matrices-only": known(
        "Your function takes the second axis of a matrix to be d_model wide.",
        "A matrix may take words of another width. Only the first axis is cut: how long a head is "
        "follows from it.",
        wrong=_square_matrices_and_biases,
    ),
    "square-matrices-only-by-their-rows": known(
        "Your function takes the second axis of a matrix to be d_model wide.",
        "A matrix may take words of another width. Only the first axis is cut: what stands behind "
        "it stays as it is.",
        wrong=_square_by_their_rows_and_biases,
    ),
    "biases-left-as-they-are": known(
        "A bias comes back as it was; matrices are right.",
        "Number i of a bias is added to what row i of the matrix makes. If the rows move, it has "
        "to move, too.",
        wrong=lambda packed, H: packed.clone() if packed.dim() == 1 else _right(packed, H),
    ),
    "strides-of-a-contiguous-tensor": known(
        *STRIDES, wrong=lambda packed, H: _right(as_it_lies(packed), H)
    ),
    "width-1-squeezed": known(
        "A matrix of width 1 comes back with one axis.",
        "squeeze cannot tell it from a bias that is made a column. What stands behind the first "
        "axis of packed has to stand there in the result, too.",
        wrong=lambda packed, H: _right(packed, H).squeeze(-1),
    ),
    "squeezed": known(twin="width-1-squeezed", wrong=lambda packed, H: _right(packed, H).squeeze()),
    "heads-reversed": known(
        "In each part of your result the heads stand in reverse order, the last one first.",
        "Both libraries have the rows of head 0 first.",
        join=lambda rows: rows.flip(1).flatten(0, 2),
    ),
    **{
        id: known(
            f"In your result {which} have changed places.",
            "Both libraries have queries, keys, values in this order; one has it once, the other "
            "once in each head.",
            join=_in_order(order),
        )
        for id, (which, order) in REORDERED.items()
    },
    "biases-become-columns": known(
        "A bias comes back as a column, with a second axis of size 1.",
        "A bias has one axis and keeps it. What stands behind the first axis of packed has to "
        "stand there in the result, too.",
        after=lambda rows: rows.reshape(len(rows), -1),
    ),
    "values-forgotten": known(
        "You return two of the three parts: the values are missing.",
        "All rows of packed have to be in the result.",
        join=lambda rows: rows[:2].flatten(0, 2),
    ),
    "keys-and-values-swapped": known(
        "In your result keys and values have changed places.",
        "Both libraries have queries, keys, values in this order; one has it once, the other once "
        "in each head.",
        join=lambda rows: rows[[0, 2, 1]].flatten(0, 2),
    ),
}

TASK = Task(
    "04-repack",
    repack,
    repack_cases,
    returns=("the result",),
    mistakes=read_again(PACKED, REPACKING),
    build=build_repack,
    alone=(
        "axes-not-joined",
        "parts-on-an-axis",
        "values-forgotten",
        "left-as-it-is",
        "heads-reversed",
        *REORDERED,
    ),
    since=2,
    number=7,
)
