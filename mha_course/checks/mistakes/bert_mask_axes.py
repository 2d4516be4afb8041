"""The known mistakes of lesson 06 in the axes of the additive mask."""

from mha_course.checks.task import Mistake

__all__ = ["MASK_AXES"]

ADDED = "A mask that is added"

MASK_AXES = (
    Mistake(
        "queries-hidden-for-keys",
        "Your mask has the shape (B, 1, S, 1): it lowers whole rows, those of the padded queries.",
        "Rows are queries, columns keys. Lowering all scores of a row by the same amount changes "
        "nothing after softmax, and the padding stays in sight. On which axis do keys stand?",
        ADDED,
        parts={"place": lambda mask: mask[:, None, :, None]},
    ),
    Mistake(
        "no-axis-for-heads",
        "Your mask has the shape (B, 1, S).",
        "Lined up from the right with scores (B, H, L, S), its B falls on the heads: an error, or, "
        "with as many heads as sequences, the wrong mask without an error.",
        ADDED,
        parts={"place": lambda mask: mask[:, None, :]},
    ),
    Mistake(
        "no-new-axes",
        "Your mask still has the shape (B, S).",
        "Lined up from the right with scores (B, H, L, S), its B falls on the queries. It needs "
        "axes of size 1 where the scores have heads and queries.",
        ADDED,
        parts={"place": lambda mask: mask},
    ),
    Mistake(
        "batch-beside-keys",
        "Your mask has the shape (1, 1, B, S): the new axes stand in front.",
        "Lined up with scores (B, H, L, S), query i would get the mask of sequence i. The batch "
        "has to stay in front.",
        ADDED,
        parts={"place": lambda mask: mask[None, None]},
    ),
    Mistake(
        "a-row-for-each-query",
        "Your mask has the shape (B, 1, S, S), with the same row for every query.",
        "The numbers are right. The task asks for (B, 1, 1, S): an axis of size 1 is read again "
        "for each query, and costs S times less memory.",
        ADDED,
        parts={
            "place": lambda mask: mask[:, None, None, :].expand(-1, 1, mask.shape[1], -1),
        },
    ),
)
