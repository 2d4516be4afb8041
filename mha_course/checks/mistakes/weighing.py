"""How scores become weights, and the mistakes in it that `01-softmax` shares with attention."""

import torch

from mha_course.checks.task import Mistake

__all__ = ["WEIGHING", "build_softmax", "one", "row_sum", "same", "zero"]

SHARES = "From scores to weights"
FORMULA = "Softmax"
SHIFT = "Only differences count"


def same(X):
    """Leave it as it is."""
    return X


def zero(x, axis):
    """Shift nothing."""
    return 0.0


def one(powers, axis):
    """Divide by nothing."""
    return 1.0


def _largest(x, axis):
    return x.amax(axis, keepdim=True)


def row_sum(powers, axis):
    """The right total: each row's own."""
    return powers.sum(axis, keepdim=True)


def build_softmax(
    prepare=same, shift=_largest, power=torch.exp, total=row_sum, finish=same, axis=-1
):
    """Return an answer to `01-softmax`, right unless a part is replaced.

    prepare: of the scores. shift: what is subtracted from them. power: what makes them positive.
    total: what the powers are divided by. finish: of the weights. axis: where a row lies.
    """

    def softmax(x):
        scores = prepare(x)
        powers = power(scores - shift(scores, axis))
        return finish(powers / total(powers, axis))

    return softmax


WEIGHING = (
    Mistake(
        "naive-exp",
        "You take the powers of the scores as they are.",
        "e to the power 710 is already infinite, and inf / inf is NaN; far below 0 all powers "
        "round to 0, and 0 / 0 is NaN as well. Which number may you take away from all scores of "
        "a row without changing one weight?",
        SHIFT,
        parts={"shift": zero},
    ),
    Mistake(
        "place-of-the-largest-subtracted",
        "You subtract the place of the largest score, not the score: argmax where max is meant.",
        "argmax says where the largest stands, 0, 1 or 2 in a row of three. Scores of 1000 less 2 "
        "overflow as before. What has to come out as 0, so that no power is above 1?",
        SHIFT,
        parts={"shift": lambda x, axis: x.argmax(axis, keepdim=True)},
    ),
    Mistake(
        "divided-by-the-sum",
        "You divide the scores themselves by their sum.",
        "Scores may be negative, so these weights may be, too, and the sum may be 0. The scores "
        "have to become positive first, the order among them kept.",
        SHARES,
        parts={"power": same, "shift": zero},
    ),
    Mistake(
        "sigmoid",
        "You turn each score into a weight by itself, with a sigmoid.",
        "Weights are shares of one whole: when one key fits better, the others have to get less. "
        "A sigmoid does not look at the others, and its results do not add up to 1.",
        SHARES,
        parts={"power": torch.sigmoid, "shift": zero, "total": one},
    ),
    Mistake(
        "not-divided-by-the-sum",
        "You take the powers and stop there.",
        "They are positive, but they do not add up to 1. Weights that add up to more than 1 make "
        "the result larger than any value.",
        FORMULA,
        parts={"total": one},
    ),
    Mistake(
        "powers-of-2",
        "Your powers have base 2.",
        "That is how the lesson starts, and these are good weights. But the base that all "
        "libraries agree on is e, and the same score gives other weights with it.",
        FORMULA,
        parts={"power": torch.exp2},
    ),
    Mistake(
        "sign-lost",
        "Your largest score gets the smallest weight.",
        "Somewhere a sign is turned round. The better a key fits, the larger its score, and the "
        "larger its weight has to be.",
        SHARES,
        parts={"prepare": torch.neg},
    ),
)
