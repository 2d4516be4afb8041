"""Known mistakes in one head: projections, softmax, weighted sum."""

import torch

from mha_course.checks.mistakes.head_scales import SCALES, by_root_of_width
from mha_course.checks.task import Mistake

__all__ = ["HEAD", "SHARED", "build_head"]

ONE = "One head, with matrices of its own"
STANDS = "Where a word stands"


def _project(X, W_q, W_k, W_v):
    return X @ W_q, X @ W_k, X @ W_v


def build_head(
    project=_project,
    match=lambda q, k: q @ k.mT,
    scale=by_root_of_width,
    softmax=lambda scores, W_q: scores.softmax(-1),
    finish=lambda weights, v: weights @ v,
):
    """Return an answer to `03-one_head`, right unless a part is replaced.

    It takes several heads as well: X (B, 1, L, d_model) and matrices (H, d_model, d).
    """

    def one_head(X, W_q, W_k, W_v):
        q, k, v = project(X, W_q, W_k, W_v)
        return finish(softmax(scale(match(q, k), X, W_q, W_v), W_q), v)

    return one_head


def _plain_softmax(scores, W_q):
    return scores.exp() / scores.exp().sum(-1, keepdim=True)


def _causal(scores, W_q):
    future = torch.ones(scores.shape[-2:], dtype=torch.bool).triu(1)
    return scores.masked_fill(future, -torch.inf).softmax(-1)


def _across_batch(X, *matrices):
    return build_head()(X.transpose(0, 1), *matrices).transpose(0, 1)


SHARED = SCALES + (
    Mistake(
        "softmax-over-queries",
        "Your weights sum to 1 down the columns: the softmax runs over the queries.",
        "Each word shares out one unit of attention among the words that it looks at, so each row "
        "sums to 1.",
        ONE,
        parts={"softmax": lambda scores, W_q: scores.softmax(-2)},
    ),
    Mistake(
        "softmax-over-batch",
        "Your softmax runs over the sequences of the batch.",
        "Sequences share a batch to be fast, nothing else: no number of one may change another.",
        ONE,
        parts={"softmax": lambda scores, W_q: scores.softmax(0)},
    ),
    Mistake(
        "sigmoid",
        "You take the sigmoid of the scores.",
        "It looks at each score alone. What a head returns is an average, so the weights of a row "
        "have to sum to 1.",
        ONE,
        parts={"softmax": lambda scores, W_q: scores.sigmoid()},
    ),
    Mistake(
        "no-softmax",
        "You use the scores as weights: there is no softmax.",
        "Scores may be negative and of any size. An average needs weights that are positive and "
        "sum to 1.",
        ONE,
        parts={"softmax": lambda scores, W_q: scores},
    ),
    Mistake(
        "plain-normalisation",
        "You divide each score by the sum of its row, without the exponential.",
        "Scores may be negative: such a sum can be 0, and weights negative or huge.",
        ONE,
        parts={"softmax": lambda scores, W_q: scores / scores.sum(-1, keepdim=True)},
    ),
    Mistake(
        "future-hidden",
        "You hide the words that come later.",
        "That is for models that write text. Here every word may look at all of them.",
        ONE,
        parts={"softmax": _causal},
    ),
    Mistake(
        "weights-transposed",
        "Your weights are right, and you multiply the values by their transpose.",
        "Row i of the weights says what word i takes from the others. Turned over, it says what "
        "the others take from word i.",
        ONE,
        parts={"finish": lambda weights, v: weights.mT @ v},
    ),
    Mistake(
        "queries-and-keys-swapped",
        "Queries and keys have changed places.",
        "A query says whom I ask for, a key where I stand. The word that asks owns the row of "
        "weights.",
        STANDS,
        parts={"project": lambda X, W_q, W_k, W_v: (X @ W_k, X @ W_q, X @ W_v)},
    ),
    Mistake(
        "keys-from-W_q",
        "Your keys are made with W_q, like the queries: W_k changes nothing.",
        "Then scores are symmetric: cats would look at dogs exactly as much as dogs at cats.",
        STANDS,
        parts={"project": lambda X, W_q, W_k, W_v: (X @ W_q, X @ W_q, X @ W_v)},
    ),
    Mistake(
        "values-not-projected",
        "You average the words themselves: W_v is not used.",
        "What a word is found by and what it hands over are different things, each with a matrix.",
        ONE,
        parts={"project": lambda X, W_q, W_k, W_v: (X @ W_q, X @ W_k, X)},
    ),
)

HEAD = SHARED + (
    Mistake(
        "nothing-projected",
        "The words attend to each other as they are: none of the three matrices is used.",
        "Without its matrices every head would make the same weights.",
        ONE,
        parts={"project": lambda X, W_q, W_k, W_v: (X, X, X)},
    ),
    Mistake(
        "softmax-overflows",
        "Your exponentials overflow when scores are in the thousands, and inf / inf is NaN.",
        "Only differences between scores matter to a softmax. What can be taken away from a whole "
        "row before the exponential?",
        ONE,
        parts={"softmax": _plain_softmax},
    ),
    Mistake(
        "weights-returned-too",
        "You return the output and the weights.",
        "The task asks for the output alone. Heads are joined later, and weights cannot be.",
        ONE,
        parts={"finish": lambda weights, v: (weights @ v, weights)},
    ),
    Mistake(
        "weights-only",
        "You return the weights.",
        "They say where a head looks. The output is what it brings from there: (B, L, d_v).",
        ONE,
        parts={"finish": lambda weights, v: weights},
    ),
    Mistake(
        "values-from-W_k",
        "Your values are made with W_k, like the keys: W_v changes nothing.",
        "What a word is found by and what it hands over are different things, each with a matrix.",
        ONE,
        build_head(project=lambda X, W_q, W_k, W_v: (X @ W_q, X @ W_k, X @ W_k)),
    ),
    Mistake(
        "matrices-transposed",
        "You multiply by the transposes of the matrices.",
        "nn.Linear keeps (out, in) and has to be turned. These are (in, out): which of their sizes "
        "meets the width of a word?",
        ONE,
        lambda X, W_q, W_k, W_v: build_head()(X, W_q.T, W_k.T, W_v.T),
    ),
    Mistake(
        "matrix-on-the-left",
        "You multiply by the matrix from the left.",
        "Each row of X is a word, and it is the words that are projected. What does a matrix on "
        "the left mix?",
        ONE,
        lambda X, W_q, W_k, W_v: build_head()(W_q @ X, W_q, W_k, W_v),
    ),
    Mistake(
        "keys-not-turned",
        "You multiply queries by keys as they stand, both (B, L, d_k).",
        "A score is one query times one key: the two axes that are summed over have to meet, and "
        "these are the features.",
        ONE,
        build_head(match=lambda q, k: q @ k),
    ),
    Mistake(
        "keys-turned-with-T",
        "You turn the keys with .T, and it turns all three axes: the batch goes to the end.",
        "Each sequence has its own matrix of scores. Only words and features change places.",
        ONE,
        build_head(match=lambda q, k: q @ k.permute(2, 1, 0)),
    ),
    Mistake(
        "attention-across-the-batch",
        "Your words attend to the words at the same place in other sequences.",
        "The first axis is the batch. Some libraries put words first, and no shape complains.",
        ONE,
        _across_batch,
    ),
)
