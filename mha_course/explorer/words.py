"""What the widget and the page say: how to read them, what is left out, what a picture shows."""

from mha_course.explorer.heads import SPECIAL, describe_head, most_attended
from mha_course.explorer.pictures import DRAWN

__all__ = ["KINDS", "OPENING", "READING", "notes", "picture_text", "windows"]

UNKNOWN = "[UNK]"

READING = (
    "A row is a query, the word that looks; a column is a key, a word that is looked at.",
    "The thicker a line and the bluer a cell, the more of its attention that query gives to that "
    "key. Each row of the whole text sums to 1.",
    "A diagonal line: every word looks at a fixed distance, below the main diagonal at words "
    "before. A strong column: every word looks at the same token, often [CLS], which gives a head "
    "a place to park when it has nothing to say.",
    "Most attended: the mean of a column, so [CLS] wins easily. What kind of head it is says more.",
    "Layers and heads are counted from 0. A head's kind holds for this text; look at others before "
    "you believe it, and remember that weights alone do not explain what the model answers.",
)
OPENING = (
    "Until you choose a head, you see the one whose words give most of their weight to other "
    "words: not to themselves, to [CLS] or to [SEP]."
)
KINDS = (
    "A head looks at or parks on what gets more than half of its attention; it is broad if its "
    "spread, its entropy over that of equal weights, is above .8; else it is mixed."
)


def notes(found, start=0):
    """The sentences that say what is not read or not drawn of this text; often none."""
    length, lines = len(found.tokens), []
    if found.num_cut:
        lines.append(
            f"The text has {length + found.num_cut:,} tokens; the model reads the first {length:,}."
            if found.second is None
            else f"The texts have {length + found.num_cut:,} tokens; the model reads {length:,}, "
            "and the longer text is cut first."
        )
    if length > DRAWN:
        last = min(start + DRAWN, length) - 1
        lines.append(
            f"Tokens {start} to {last} of {length} are drawn, counted from 0. "
            "All figures and tables are of the whole text."
        )
    words = [token for token in found.tokens if token not in SPECIAL]
    if words.count(UNKNOWN) > len(words) / 2:
        lines.append(
            f"Most tokens are {UNKNOWN}, unknown: the model has no tokens for this text. "
            "The model of the course reads English."
        )
    return lines


def windows(found):
    """The largest token that a picture can start at; 0 if all tokens are drawn at once."""
    return max(0, len(found.tokens) - DRAWN)


def picture_text(found, layer, head):
    """The picture of a head in a sentence, for those who cannot see it."""
    weights = found.weights[layer, head]
    best = ", ".join(f"{token} {mean:.2f}" for token, mean in most_attended(weights, found.tokens))
    kind = describe_head(weights, found.tokens)
    return (
        f"Heat map of the attention weights of {len(found.tokens)} tokens, layer {layer}, "
        f"head {head}, which {kind}. Most attended: {best}."
    )
