"""The known mistakes of lesson 06 in the table of a checkpoint's names and the course's."""

from mha_course.checks.task import Mistake
from mha_course.interop import BERT_NAMES as RIGHT_NAMES

__all__ = ["RIGHT_NAMES", "TABLES"]

SAME = "The same weights under other names"


def _swapped(*names):
    """The table with the course's names of two published ones exchanged."""
    one, other = names
    return RIGHT_NAMES | {one: RIGHT_NAMES[other], other: RIGHT_NAMES[one]}


TABLES = (
    Mistake(
        "norms-swapped",
        "The two norms of a layer have changed places.",
        "A layer has one after the attention and one after the feed-forward part. Both are called "
        "LayerNorm; what stands before it tells them apart.",
        SAME,
        parts={"table": _swapped("attention.output.LayerNorm", "output.LayerNorm")},
    ),
    Mistake(
        "output-is-output",
        "attention.output.dense and output.dense have changed places.",
        "The one belongs to the attention: W_o. The other is the second matrix of the feed-forward "
        "part: W_2.",
        SAME,
        parts={"table": _swapped("attention.output.dense", "output.dense")},
    ),
    Mistake(
        "queries-and-keys-swapped",
        "query and key have changed places.",
        "The product of both is not the same the other way round: rows belong to queries.",
        SAME,
        parts={"table": _swapped("attention.self.query", "attention.self.key")},
    ),
    Mistake(
        "keys-and-values-swapped",
        "key and value have changed places.",
        "Keys are compared with, values are averaged. All three have the same shape, so nothing "
        "warns you.",
        SAME,
        parts={"table": _swapped("attention.self.key", "attention.self.value")},
    ),
    Mistake(
        "wide-and-narrow-swapped",
        "intermediate.dense and output.dense have changed places.",
        "The first widens a word, the second brings it back.",
        SAME,
        parts={"table": _swapped("intermediate.dense", "output.dense")},
    ),
    Mistake(
        "positions-and-segments-swapped",
        "The tables of positions and segments have changed places.",
        "position_embeddings has a row for each place in a text, token_type_embeddings one for "
        "each segment.",
        "Three tables, one sum",
        parts={
            "table": _swapped("embeddings.position_embeddings", "embeddings.token_type_embeddings")
        },
    ),
    Mistake(
        "embeddings-missed",
        "The names in embeddings stay as they were.",
        "They have other names in the course too, outside the layers.",
        SAME,
        parts={
            "table": {k: v for k, v in RIGHT_NAMES.items() if not k.startswith("embeddings.")},
        },
    ),
)
