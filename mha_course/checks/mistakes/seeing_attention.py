"""The known mistakes of `07-find_head`."""

from mha_course.checks.mistakes.offsets import HARMLESS, HEADS, PAIRS, build_offset
from mha_course.checks.task import Mistake

__all__ = ["FIND", "build_find"]


def _place(scores, weights):
    return divmod(scores.argmax().item(), scores.shape[1])


def build_find(choose=_place, finish=lambda layer, head, scores: (layer, head), **scoring):
    """Return an answer to `07-find_head`, right unless a part is replaced.

    choose: layer and head, from the scores (layers, H) and the weights. finish: what is returned.
    Other parts are those of `build_offset`.
    """
    score = build_offset(**scoring)

    def find_head(weights, offset):
        scores = score(weights, offset)
        return finish(*choose(scores, weights), scores)

    return find_head


def _average_layer(scores, weights):
    layer = scores.mean(dim=1).argmax().item()
    return layer, scores[layer].argmax().item()


def _average_head(scores, weights):
    head = scores.mean(dim=0).argmax().item()
    return scores[:, head].argmax().item(), head


def _apart(scores, weights):
    return scores.mean(dim=1).argmax().item(), scores.mean(dim=0).argmax().item()


FIND = (
    *(
        Mistake(id, did, why, section, parts=parts)
        for id, did, why, section, parts in PAIRS
        if id not in HARMLESS
    ),
    Mistake(
        "flat-index",
        "You return one number: the head's place in the flattened table.",
        "argmax looks at a table as at one long row. Layer and head are the two coordinates of "
        "that place: how many heads are there in a layer, and how many are left over?",
        HEADS,
        parts={"finish": lambda layer, head, scores: layer * scores.shape[1] + head},
    ),
    Mistake(
        "head-before-layer",
        "You return (head, layer).",
        "The layer comes first, as in the weights. Both are small numbers, and nothing else tells "
        "them apart.",
        HEADS,
        parts={"finish": lambda layer, head, scores: (head, layer)},
    ),
    Mistake(
        "counted-from-1",
        "You count layers and heads from 1.",
        "Some papers do. In the course they are counted from 0, so that weights[layer, head] is "
        "the head that was found.",
        HEADS,
        parts={"finish": lambda layer, head, scores: (layer + 1, head + 1)},
    ),
    Mistake(
        "score-returned-too",
        "You return the score as well.",
        "It is good to know. The task asks for layer and head.",
        HEADS,
        parts={"finish": lambda layer, head, scores: (layer, head, scores[layer, head])},
    ),
    Mistake(
        "divided-by-layers",
        "You divide the place in the flattened table by the number of layers.",
        "The flat row has all heads of layer 0 first, then all of layer 1. After how many places "
        "does a new layer begin?",
        HEADS,
        parts={"choose": lambda scores, weights: divmod(scores.argmax().item(), len(scores))},
    ),
    Mistake(
        "divided-by-12",
        "You divide the place in the flattened table by 12.",
        "The lesson's model has 12 heads in a layer. Another one has another number, and the "
        "weights tell you which.",
        HEADS,
        parts={"choose": lambda scores, weights: divmod(scores.argmax().item(), 12)},
    ),
    Mistake(
        "smallest-score",
        "You return the head that looks least at this offset.",
        "The task asks for the one with the largest score.",
        HEADS,
        parts={"choose": lambda scores, weights: _place(-scores, weights)},
    ),
    Mistake(
        "heads-averaged-first",
        "You choose the layer by the average of its heads, and then the best head in it.",
        "One sharp head among broad ones disappears in the average. The largest of all scores is "
        "asked for, wherever it is.",
        HEADS,
        parts={"choose": _average_layer},
    ),
    Mistake(
        "layers-averaged-first",
        "You choose the head's number by its average over the layers, and then the best layer.",
        "Head 2 of one layer has nothing to do with head 2 of another. The largest of all scores "
        "is asked for, wherever it is.",
        HEADS,
        parts={"choose": _average_head},
    ),
    Mistake(
        "layer-and-head-apart",
        "You choose layer and head one without the other, each by an average.",
        "The best layer on average and the best number on average need not meet in a good head. "
        "The largest of all scores is asked for.",
        HEADS,
        parts={"choose": _apart},
    ),
    Mistake(
        "first-layer-only",
        "You look in layer 0 only.",
        "The head may be in any layer.",
        HEADS,
        parts={"choose": lambda scores, weights: (0, scores[0].argmax().item())},
    ),
    Mistake(
        "last-layer-only",
        "You look in the last layer only.",
        "The head may be in any layer.",
        HEADS,
        parts={
            "choose": lambda scores, weights: (len(scores) - 1, scores[-1].argmax().item()),
        },
    ),
    Mistake(
        "best-head-of-each-layer",
        "You return the best head of every layer.",
        "One of them is the best of all.",
        HEADS,
        lambda weights, offset: build_offset()(weights, offset).argmax(dim=1),
    ),
)
