"""Task 4.3, spread_valid_lens: one length for each head."""

import torch

from mha_classroom.checks.examining import first_wrong
from mha_classroom.checks.task import Case, Task, known, read_again
from mha_classroom.tasks.head_splitting.transpose_qkv import STEP_3


def spread_valid_lens(valid_lens, num_heads):
    return valid_lens.repeat_interleave(num_heads, dim=0)


def point_out_problem(inputs, lens):
    """Which head of which sequence the first wrong length is for; how many are asked for, if the
    shape is wrong."""
    valid_lens, H = inputs.values()
    right = spread_valid_lens(valid_lens, H)
    kind = "length" if valid_lens.dim() == 1 else "row of lengths"
    if lens.shape != right.shape:
        return (
            f"Asked for is one {kind} for each of {len(right)} problems: heads times sequences, "
            f"{H} · {len(valid_lens)}."
        )
    sequence, h = divmod(first_wrong(lens, right)[0], H)
    return (
        f"Problem {sequence * H + h} is head {h} of sequence {sequence}, whose {kind} is "
        f"{valid_lens[sequence].tolist()}; yours is {lens[sequence * H + h].tolist()}."
    )


def spread_cases(draw):
    def case(name, valid_lens, num_heads):
        return Case(name, {"valid_lens": torch.as_tensor(valid_lens), "num_heads": num_heads})

    return [
        case("one length a sequence", [3, 5], 3),
        case("one length a query", [[1, 2, 3, 3], [1, 2, 5, 0]], 3),
        case("as many queries as heads", draw.integers(0, 9, 3, 2), 2),
        case("one of the lengths is 0", [3, 0, 5], 2),
        case("all lengths are 0", [0, 0], 3),
        case("as many sequences as queries", [[1, 2], [3, 4]], 3),
        case("one query a sequence, long ones", [[300], [0], [70000]], 2),
        case("1 sequence, one length a query", draw.integers(0, 9, 1, 3), 2),
        case("1 sequence, one length", [4], 3),
        case("1 sequence, one head, one length", [4], 1),
    ]


def _right(lens, H):
    return lens.repeat_interleave(H, dim=0)


def _whole(lens, H):
    return torch.cat([lens] * H)


TO_ONE_LENGTH = (
    "Of a table (B, L) you keep one length for each sequence.",
    "Every query has a length of its own there. The table keeps its columns, and each row is "
    "needed once for each head.",
)

LENGTHS = "A second trap: whose length is it?"

SPREAD = {
    "lengths-repeated-as-a-whole": known(
        "Your result is the whole tensor, once for each head (repeat does that, and so does a new "
        "axis in front): with 2 heads, 3, 5 becomes 3, 5, 3, 5.",
        "The rows of transpose_qkv are batch first, so head 1 of the first sequence would get the "
        "length of the second. With one sequence nobody notices.",
        wrong=lambda lens, H: lens.repeat(H, *[1] * (lens.dim() - 1)),
    ),
    "lengths-repeated-along-the-last-axis": known(
        "Your result is the whole tensor, again and again along its last axis, as tile makes it: "
        "with 2 heads, 3, 5 becomes 3, 5, 3, 5, and a table (B, L) gets more columns.",
        "The rows of transpose_qkv are batch first: all heads of a sequence need its length, or "
        "its row of lengths, before the next sequence comes.",
        wrong=lambda lens, H: lens.tile(H),
    ),
    "lengths-repeated-and-tables-refused": known(
        "With 2 heads, 3, 5 becomes 3, 5, 3, 5 in your order. And a table (B, L) raises an error. "
        "Do you use repeat? It lays the whole tensor down again, and it wants one number for each "
        "axis.",
        "The rows of transpose_qkv are batch first: all heads of a sequence need its length before "
        "the next sequence comes. So it is each entry that has to be repeated.",
        wrong=lambda lens, H: lens.repeat(H),
    ),
    "tables-repeated-as-a-whole": known(
        "Lengths of shape (B,) are right. A table (B, L) you repeat as a whole: with 2 heads, "
        "its rows 0, 1 become 0, 1, 0, 1.",
        "The rows of transpose_qkv are batch first: all heads of a sequence need its row of "
        "lengths before the next sequence comes.",
        wrong=lambda lens, H: (_right if lens.dim() == 1 else _whole)(lens, H),
    ),
    "only-tables-right": known(
        "A table (B, L) is right. Lengths of shape (B,) you repeat as a whole: with 2 heads, 3, 5 "
        "becomes 3, 5, 3, 5.",
        "The rows of transpose_qkv are batch first: all heads of a sequence need its length before "
        "the next sequence comes, whether it is a number or a row.",
        wrong=lambda lens, H: (_whole if lens.dim() == 1 else _right)(lens, H),
    ),
    "lengths-of-0-left-out": known(
        "You leave out lengths of 0 (and rows that hold nothing else).",
        "A length of 0 is allowed: that query attends to nothing. And there have to be B · "
        "num_heads lengths, one for each row of transpose_qkv.",
        wrong=lambda lens, H: _right(lens[lens.reshape(len(lens), -1).any(1)], H),
    ),
    "one-copy-too-many": known(
        "Each length is there num_heads + 1 times.",
        "The first one counts, too: is it in the result before a loop over the heads begins? Or "
        "does something run from 0 to num_heads, both included?",
        wrong=lambda lens, H: _right(lens, H + 1),
    ),
    "tables-to-their-largest-lengths": known(
        *TO_ONE_LENGTH, wrong=lambda lens, H: _right(lens.reshape(len(lens), -1).amax(1), H)
    ),
    "tables-to-their-first-column": known(
        *TO_ONE_LENGTH, wrong=lambda lens, H: _right(lens.reshape(len(lens), -1)[:, 0], H)
    ),
    "lengths-repeated-on-a-new-axis": known(
        "Lengths (B,) become a table (num_heads, B), the whole tensor once for each head, as "
        "vstack makes it, or repeat with two numbers.",
        "Lengths of shape (B,) have one axis and keep it. Write down what 3, 5 should become for 3 "
        "heads, and in which order.",
        wrong=lambda lens, H: lens.repeat(H, 1),
    ),
    "lengths-repeated-along-axis-1": known(
        "Lengths (B,) become a table (1, B · num_heads), as repeat makes it with two numbers, and "
        "a table (B, L) gets more columns.",
        "Lengths of shape (B,) have one axis and keep it, a table keeps its number of columns. "
        "All heads of a sequence need its length before the next sequence comes.",
        wrong=lambda lens, H: lens.repeat(1, H),
    ),
    "heads-on-an-axis-in-front": known(
        "You give the heads an axis of their own, in front of the sequences.",
        "Batch and heads are to be one axis, like the rows of transpose_qkv, with all heads of a "
        "sequence side by side. Joined as they stand, all sequences of a head would be.",
        section=STEP_3,
        wrong=lambda lens, H: torch.stack([lens] * H),
    ),
    "lengths-repeated-along-queries": known(
        "For lengths of shape (B, L) you repeat along the queries instead of the sequences.",
        "Each row of lengths belongs to one sequence and is needed once for each head: the first "
        "axis grows, the second stays.",
        wrong=lambda lens, H: lens.repeat_interleave(H, dim=-1),
    ),
    "axis-of-tables-only": known(
        "You repeat along axis 1, which lengths of shape (B,) do not have.",
        "And of a table (B, L) that is the axis of the queries. Which axis do both kinds have, and "
        "which one has to grow?",
        wrong=lambda lens, H: lens.repeat_interleave(H, dim=1),
    ),
    "lengths-flattened": known(
        "For lengths of shape (B, L) your result is flat.",
        "repeat_interleave flattens a tensor unless it is told the axis. reshape(-1) always does.",
        wrong=lambda lens, H: lens.repeat_interleave(H),
    ),
    "flattened-and-folded": known(
        "You repeat each number of a table (B, L) and fold what you get into rows again.",
        "repeat_interleave flattens a tensor unless it is told the axis, and then a row of the "
        "result holds one length several times. Each row has to be kept whole.",
        wrong=lambda lens, H: lens.repeat_interleave(H).reshape(-1, *lens.shape[1:]),
    ),
    "tables-not-spread": known(
        "Lengths of shape (B,) are spread, a table (B, L) comes back as it was.",
        "A table has a row for each sequence, and its heads need that row as they need a length.",
        wrong=lambda lens, H: lens.repeat_interleave(H) if lens.dim() == 1 else lens,
    ),
    "lengths-not-spread": known(
        "You return the lengths as they were.",
        "There are B · H problems now, and each needs a length.",
        wrong=lambda lens, H: lens,
    ),
    "lengths-multiplied": known(
        "You multiply the lengths by the number of heads.",
        "The lengths stay what they are. There have to be more of them: one for each head of each "
        "sequence.",
        wrong=lambda lens, H: lens * H,
    ),
    "lengths-divided": known(
        "You divide the lengths by the number of heads.",
        "The heads share the features of a word. The words they do not share: each head sees the "
        "whole sequence.",
        wrong=lambda lens, H: lens.repeat_interleave(H, dim=0) // H,
    ),
    "lengths-become-floats": known(
        "Your lengths are floats. They are written into a tensor that is made without saying its "
        "dtype, multiplied by one, or converted.",
        "torch.zeros and torch.ones hold floats unless they are told another dtype. Lengths are "
        "counted, so they stay whole numbers.",
        wrong=lambda lens, H: _right(lens, H).float(),
    ),
    "squeezed": known(
        "Your result has lost an axis of size 1.",
        "squeeze takes such axes away: one sequence with one head still has an axis, and so has a "
        "table with one query a sequence.",
        wrong=lambda lens, H: _right(lens, H).squeeze(),
    ),
    "lengths-clamped": known(
        "You turn lengths of 0 into 1.",
        "A length of 0 is allowed: that query attends to nothing. Spread the numbers as they are.",
        wrong=lambda lens, H: lens.clamp(min=1).repeat_interleave(H, dim=0),
    ),
    "lengths-on-a-new-axis": known(
        "You give the heads an axis of their own.",
        "The numbers are right. The task asks for batch and heads as one axis, like the rows of "
        "transpose_qkv.",
        section=STEP_3,
        wrong=lambda lens, H: torch.stack([lens] * H, dim=1),
    ),
}

TASK = Task(
    "04-spread_valid_lens",
    spread_valid_lens,
    spread_cases,
    returns=("the result",),
    mistakes=read_again(LENGTHS, SPREAD),
    point_out=point_out_problem,
    number=3,
)
