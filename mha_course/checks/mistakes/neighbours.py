"""Known mistakes in weights made by hand: where the heads look."""

import torch

from mha_course.checks.task import Mistake

__all__ = ["WHERE", "build_neighbours", "copy_content"]

STANDS = "Where a word stands"
LOOP_OF_HEADS = "The loop of heads"


def copy_content(W_v, d):
    W_v[:, :d] = torch.eye(d)


def build_neighbours(
    looks=((-1,), (1,)),
    strength=lambda L: 100.0,
    fill=copy_content,
    change=lambda weights, d: weights,
):
    """Return an answer to `03-neighbour_weights`, right unless a part is replaced.

    looks: how far from itself a word looks, for each head; a head may look at several places.
    fill: writes the values' matrices. change: what is done to W_q, W_k, W_v in the end.
    """

    def neighbour_weights(num_features, num_positions):
        d, L = num_features, num_positions
        W_q, W_k = torch.zeros(2, 2, d + L, L, dtype=torch.float64)
        W_v = torch.zeros(2, d + L, d, dtype=torch.float64)
        W_k[:, d:] = torch.eye(L)
        for head, steps in enumerate(looks):
            for step in steps:
                W_q[head, d:] += strength(L) * torch.ones(L - abs(step)).diag(step)
        fill(W_v, d)
        return change((W_q, W_k, W_v), d)

    return neighbour_weights


def _ends_forgotten(weights, d):
    weights[0][:, [d, -1]] = 0
    return weights


def _ring(weights, d):
    W_q = torch.zeros_like(weights[0])
    here = torch.eye(W_q.shape[2], dtype=W_q.dtype)
    W_q[:, d:] = 100 * torch.stack([here.roll(step, 1) for step in (1, -1)])
    return W_q, *weights[1:]


def _with_contents(weights, d):
    W_q, W_k, W_v = weights
    eye = torch.eye(W_q.shape[1], d, dtype=torch.float64).expand(2, -1, -1)
    return torch.cat([100 * eye, W_q], -1), torch.cat([eye, W_k], -1), W_v


WHERE = (
    Mistake(
        "heads-swapped",
        "Head 0 brings the word after, head 1 the word before.",
        "Have the two heads changed places, or queries and keys? Row i of the scores belongs to "
        "the word that asks; is the large number left or right of the diagonal?",
        STANDS,
        parts={"looks": ((1,), (-1,))},
    ),
    Mistake(
        "queries-and-keys-swapped",
        "The queries say where a word stands, and the keys whom it asks for.",
        "Row i of the scores belongs to the word that asks.",
        STANDS,
        parts={"change": lambda weights, d: (weights[1], weights[0], weights[2])},
        twin="heads-swapped",
    ),
    Mistake(
        "heads-swapped-on-a-ring",
        "Head 0 brings the word after, head 1 the word before. (Your positions form a ring, which "
        "is allowed: after the last comes the first.)",
        "Did you roll the wrong way, or the wrong side? Rolled keys and rolled queries move the "
        "large score to opposite sides.",
        STANDS,
        parts={"change": _ring},
    ),
    Mistake(
        "both-look-back",
        "Both heads bring the word before.",
        "One head does that. The second has matrices of its own, so that it can look elsewhere.",
        LOOP_OF_HEADS,
        parts={"looks": ((-1,), (-1,))},
    ),
    Mistake(
        "both-look-ahead",
        "Both heads bring the word after.",
        "One head does that. The first has matrices of its own, so that it can look elsewhere.",
        LOOP_OF_HEADS,
        parts={"looks": ((1,), (1,))},
    ),
    Mistake(
        "each-word-itself",
        "Every word looks at itself.",
        "The query of word i asks for place i. Whom should it ask for?",
        STANDS,
        parts={"looks": ((0,), (0,))},
    ),
    Mistake(
        "two-steps",
        "Your heads look two words away.",
        "Are queries and keys both shifted? One of them can say where a word stands.",
        STANDS,
        parts={"looks": ((-2,), (2,))},
    ),
    Mistake(
        "both-neighbours-in-each-head",
        "Each of your heads looks at both neighbours, half and half.",
        "Their contents arrive as one mixture, and who was before and who after is lost. That is "
        "why there are two heads.",
        LOOP_OF_HEADS,
        parts={"looks": ((-1, 1), (-1, 1))},
    ),
    Mistake(
        "nobody-asked-for",
        "All scores are 0, so every word gets the average of all.",
        "A score is a query times a key. Are W_q and W_k both filled, in the rows that a position "
        "meets?",
        STANDS,
        parts={"looks": ((), ())},
    ),
    Mistake(
        "second-head-empty",
        "Head 1 looks at all words alike: its scores are 0.",
        "Head 0 is done. A head makes its weights from its own W_q and W_k.",
        LOOP_OF_HEADS,
        parts={"looks": ((-1,), ())},
    ),
    Mistake(
        "ends-forgotten",
        "The first and the last word ask for nobody, in either head.",
        "Each of them lacks one neighbour only. In which head does the first word have one?",
        STANDS,
        parts={"change": _ends_forgotten},
    ),
    Mistake(
        "positions-in-the-wrong-rows",
        "Where your heads look is decided by the contents of the words: queries and keys are made "
        "from features that should not reach them.",
        "A word is its content first, its position after it. Which rows of W_q and W_k does the "
        "position meet in X @ W?",
        STANDS,
        parts={"change": lambda weights, d: tuple(W.roll(-d, 1) for W in weights)},
    ),
    Mistake(
        "contents-in-scores",
        "Your queries and keys hold the content as well as the position.",
        "Contents then add to the scores, and words that are alike draw each other's attention. "
        "What is a place asked for by?",
        STANDS,
        parts={"change": _with_contents},
    ),
)
