"""What Python hands over to the component in the browser: one dictionary, ready for JSON."""

import base64

import torch

from mha_course.explorer import words
from mha_course.explorer.heads import describe_head, head_figures, most_attended, opening_head
from mha_course.explorer.pictures import DRAWN

__all__ = ["handed_over", "head_shown"]


def handed_over(found, start=0):
    """All that `component.js` shows of a text, DRAWN tokens of it at most, from `start` on.

    Numbers of all heads go as base64 of float32, layer by layer. `logsums` are ln Σ exp(score)
    over all keys of the text, so that a weight is exp(score - logsum) for the drawn keys, too.

    Shapes: found an AttentionMap; n drawn tokens; weights (layers, H, n, n); queries and keys
        (layers, H, n, d_k) and logsums (layers, H, n), None if the model does not say them.
    Lesson: notebooks/07_seeing_attention.ipynb.
    """
    shown = slice(start, start + DRAWN)
    layers, heads = found.weights.shape[:2]
    content = {
        "tokens": found.tokens[shown],
        "start": start,
        "last_start": words.windows(found),
        "length": len(found.tokens),
        "second": None if found.second is None else found.second - start,
        "notes": words.notes(found, start),
        "reading": [*words.READING, words.KINDS, words.OPENING],
        "opening": opening_head(found.weights, found.tokens),
        "layers": layers,
        "heads": heads,
        "weights": _packed(found.weights[:, :, shown, shown]),
        "figures": [
            [_figures(found.weights[layer, head], found.tokens) for head in range(heads)]
            for layer in range(layers)
        ],
        "queries": None,
    }
    if found.queries is not None:
        width = found.queries.shape[-1]
        scores = found.queries[:, :, shown] @ found.keys.transpose(-2, -1) / width**0.5
        content |= {
            "width": width,
            "queries": _packed(found.queries[:, :, shown]),
            "keys": _packed(found.keys[:, :, shown]),
            "logsums": _packed(torch.logsumexp(scores, dim=-1)),
        }
    return content


def head_shown(content, layer=None, head=None):
    """The (layer, head) that the component shows: the chosen ones, if there are such."""
    first, second = content["opening"]
    return (
        layer if layer is not None and 0 <= layer < content["layers"] else first,
        head if head is not None and 0 <= head < content["heads"] else second,
    )


def _figures(weights, tokens):
    """What the tables beside a head say of it."""
    return {
        "kind": describe_head(weights, tokens),
        "most": most_attended(weights, tokens, 5),
        "shares": list(head_figures(weights, tokens).items()),
    }


def _packed(numbers):
    return base64.b64encode(numbers.float().contiguous().numpy().tobytes()).decode()
