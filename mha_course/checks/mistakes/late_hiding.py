"""The known mistakes of lesson 02 that hide too late: hidden keys have had a say by then."""

from mha_course.checks.task import Mistake

__all__ = ["HAD_A_SAY", "MASK_AFTER_SOFTMAX", "late"]

PADDING = "Hiding padding"


def late(scores, mask, axis):
    """Hide after the softmax."""
    return scores.softmax(axis) * mask


def _renormalised(least):
    def hide(scores, mask, axis):
        weights = late(scores, mask, axis)
        return weights / weights.sum(axis, keepdim=True).clamp(min=least)

    return hide


def _largest_of_all(least):
    def hide(scores, mask, axis):
        powers = (scores - scores.amax(axis, keepdim=True)).exp() * mask
        return powers / powers.sum(axis, keepdim=True).clamp(min=least)

    return hide


MASK_AFTER_SOFTMAX = Mistake(
    "mask-after-softmax",
    "You hide after the softmax, so rows with hidden keys do not sum to 1.",
    "When the softmax divided, padding was still in the sum, and no later step is sure to mend "
    "that: a hidden score can be so large that nothing is left for the others. What has to happen "
    "before the softmax, so that it never sees the padding?",
    PADDING,
    parts={"hide": late},
)

HAD_A_SAY = (
    Mistake(
        "hidden-keys-had-a-say",
        "Next to hidden scores that are far larger, your rows turn into NaN: hidden keys have a "
        "say, in a softmax that comes before the hiding or in the largest score that is taken off.",
        "On paper that cancels. In the computer, a hidden score of 1000 beside real ones of -1000 "
        "leaves exp(-2000) for the real keys, which is 0, and then 0 is divided by 0. At which "
        "step are hidden keys looked at for the last time?",
        PADDING,
        parts={"hide": _renormalised(0.0)},
    ),
    Mistake(
        "hidden-keys-had-a-say-safely",
        "Next to hidden scores that are far larger, your rows stay empty: hidden keys have a say, "
        "in a softmax that comes before the hiding or in the largest score that is taken off.",
        "On paper that cancels. In the computer, a hidden score of 1000 beside real ones of -1000 "
        "leaves nothing for the real keys, although they should share 1. That you avoid dividing "
        "by 0 only hides it. At which step are hidden keys looked at for the last time?",
        PADDING,
        parts={"hide": _renormalised(1e-12)},
    ),
    Mistake(
        "largest-of-hidden-keys",
        "You take off the largest score of the row, hidden keys included.",
        "Next to a hidden score that is far larger all powers of real keys round to 0.",
        PADDING,
        parts={"hide": _largest_of_all(0.0)},
        twin="hidden-keys-had-a-say",
    ),
    Mistake(
        "largest-of-hidden-keys-safely",
        "You take off the largest score of the row, hidden keys included, and avoid dividing by 0.",
        "Next to a hidden score that is far larger all powers of real keys round to 0.",
        PADDING,
        parts={"hide": _largest_of_all(1e-12)},
        twin="hidden-keys-had-a-say-safely",
    ),
)
