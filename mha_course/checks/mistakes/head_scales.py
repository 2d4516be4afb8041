"""Known mistakes in the scale of one head's scores."""

from mha_course.checks.task import Mistake

__all__ = ["SCALES", "by_root_of_width"]

ONE = "One head, with matrices of its own"


def by_root_of_width(scores, X, W_q, W_v):
    """The right scale: the root of the width of queries and keys."""
    return scores / W_q.shape[-1] ** 0.5


SCALES = (
    Mistake(
        "not-scaled",
        "You do not scale the scores.",
        "Their spread grows with the width of queries and keys, and softmax then puts nearly all "
        "the weight on one word (lesson 2).",
        ONE,
        parts={"scale": lambda scores, X, W_q, W_v: scores},
    ),
    Mistake(
        "divided-by-width",
        "You divide the scores by the whole width of a query: by d_k, or by its root twice.",
        "The spread of a score is the root of that width, and dividing by more makes all weights "
        "nearly equal (lesson 2). Does a function that you call scale already?",
        ONE,
        parts={"scale": lambda scores, X, W_q, W_v: scores / W_q.shape[-1]},
    ),
    Mistake(
        "scaled-by-d_model",
        "You divide the scores by the square root of d_model, the width of a word.",
        "The scale follows from the vectors that meet in a score. How many numbers have they?",
        ONE,
        parts={"scale": lambda scores, X, W_q, W_v: scores / X.shape[-1] ** 0.5},
    ),
    Mistake(
        "scaled-by-d_v",
        "You divide the scores by the square root of d_v, the width of the values.",
        "Values take no part in a score. Which two vectors meet there, and how many numbers have "
        "they?",
        ONE,
        parts={"scale": lambda scores, X, W_q, W_v: scores / W_v.shape[-1] ** 0.5},
    ),
    Mistake(
        "scaled-by-words",
        "You divide the scores by the square root of the number of words.",
        "How far scores spread depends on how many products are added in one score, not on how "
        "many scores there are.",
        ONE,
        parts={"scale": lambda scores, X, W_q, W_v: scores / X.shape[-2] ** 0.5},
    ),
    Mistake(
        "multiplied-by-root",
        "You multiply the scores by the square root of d_k.",
        "Scores spread too far as they are. The scale is there to bring them closer together.",
        ONE,
        parts={"scale": lambda scores, X, W_q, W_v: scores * W_q.shape[-1] ** 0.5},
    ),
    Mistake(
        "scaled-after-softmax",
        "You scale the weights, after the softmax.",
        "Then a row no longer sums to 1, and the softmax has seen the wide scores already.",
        ONE,
        parts={
            "scale": lambda scores, X, W_q, W_v: scores,
            "softmax": lambda scores, W_q: scores.softmax(-1) / W_q.shape[-1] ** 0.5,
        },
    ),
)
