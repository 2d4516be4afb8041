"""What the widget and the page say: how to read them, what is left out, the tables."""

from mha_course.explorer.heads import describe_head, head_figures, most_attended
from mha_course.explorer.pictures import DRAWN

__all__ = ["KINDS", "READING", "kinds", "notes", "picture_text", "shares", "windows"]

READING = (
    "A row is a query, the word that looks; a column is a key, a word that is looked at.",
    "The brighter a cell, the more of its attention that query gives to that key. Each row of the "
    "whole text sums to 1.",
    "A diagonal line: every word looks at a fixed distance, below the main diagonal at words "
    "before. A bright column: every word looks at the same token, often [CLS], which gives a head "
    "a place to park when it has nothing to say.",
    "Most attended: the mean of a column, so [CLS] wins easily. What kind of head it is says more.",
    "Layers and heads are counted from 0. A head's kind holds for this text; look at others before "
    "you believe it, and remember that weights alone do not explain what the model answers.",
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
    return lines


def windows(found):
    """The largest token that a picture can start at; 0 if all tokens are drawn at once."""
    return max(0, len(found.tokens) - DRAWN)


def picture_text(found, layer, head=None):
    """The picture in a sentence, for those who cannot see it."""
    of = f"of {len(found.tokens)} tokens"
    if head is None:
        return f"Heat maps of the attention weights {of}, all heads of layer {layer}"
    weights = found.weights[layer, head]
    best = ", ".join(f"{token} {mean:.2f}" for token, mean in most_attended(weights, found.tokens))
    kind = describe_head(weights, found.tokens)
    return (
        f"Heat map of the attention weights {of}, layer {layer}, head {head}, which {kind}. "
        f"Most attended: {best}."
    )


def shares(found, layer, head):
    """The rows (name, figure) of the table that says where a head's attention goes."""
    return list(head_figures(found.weights[layer, head], found.tokens).items())


def kinds(found, layer):
    """The rows (head, kind) of the table that says what each head of a layer does."""
    return [
        (f"head {head}", describe_head(weights, found.tokens))
        for head, weights in enumerate(found.weights[layer])
    ]
