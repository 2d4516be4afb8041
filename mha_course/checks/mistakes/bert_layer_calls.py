"""The known mistakes of lesson 06 in calling a layer's attention, and in returning its weights."""

from mha_course.checks.task import Mistake

__all__ = ["CALLS", "RETURNED", "attend"]

FLOW = "A layer, and a stack of them"
ADDED = "A mask that is added"


def attend(self, X, mask, need_weights):
    """What a right layer gets from its attention: the output and the weights."""
    return self.self_attention(X, mask, need_weights=True)


def _attend_twice(self, X, mask, need_weights):
    return attend(self, attend(self, X, mask, need_weights)[0], mask, need_weights)


def _think_first(self, X, mask, need_weights):
    return attend(self, self.feed_forward(X), mask, need_weights)


CALLS = (
    Mistake(
        "mask-not-passed",
        "The mask does not reach the attention.",
        "Your layer takes it, and self_attention takes it too. Left out, it is None, and padding "
        "is read like words.",
        ADDED,
        parts={
            "attend": lambda self, X, mask, need_weights: self.self_attention(X, need_weights=True)
        },
    ),
    Mistake(
        "mask-lost-with-weights",
        "With need_weights=True the mask does not reach the attention.",
        "You call self_attention in two places, and one of them leaves the mask out.",
        ADDED,
        parts={
            "attend": lambda self, X, mask, need_weights: attend(
                self, X, None if need_weights else mask, need_weights
            )
        },
    ),
    Mistake(
        "mask-lost-without-weights",
        "With need_weights=False the mask does not reach the attention.",
        "You call self_attention in two places, and one of them leaves the mask out.",
        ADDED,
        parts={
            "attend": lambda self, X, mask, need_weights: attend(
                self, X, mask if need_weights else None, need_weights
            )
        },
    ),
    Mistake(
        "attention-twice",
        "You apply self_attention twice, one after the other.",
        "Each part of a layer has its turn once.",
        FLOW,
        parts={"attend": _attend_twice},
    ),
    Mistake(
        "feed-forward-first",
        "The feed-forward part comes before the attention.",
        "In a layer words first hear of one another, then each is thought over.",
        FLOW,
        parts={
            "attend": _think_first,
            "think": lambda self, joined, attended, X: joined,
        },
    ),
)

RETURNED = (
    Mistake(
        "weights-averaged",
        "You return the weights averaged over the heads.",
        "(B, H, L, L) was asked for, as self_attention gives them.",
        FLOW,
        parts={"show": lambda output, weights: (output, weights.mean(1))},
    ),
    Mistake(
        "weights-first",
        "You return the weights first, then the output.",
        "The task asks for them the other way round.",
        FLOW,
        parts={"show": lambda output, weights: (weights, output)},
    ),
    Mistake(
        "weights-not-returned",
        "need_weights has no effect: only the output comes back.",
        "With need_weights=True two values were asked for, the output and the weights.",
        FLOW,
        parts={"show": lambda output, weights: output},
    ),
    Mistake(
        "weights-always-returned",
        "You return the weights whether they were asked for or not.",
        "With need_weights=False, the default, the next layer expects one tensor.",
        FLOW,
        parts={"plain": lambda output, weights: (output, weights)},
    ),
)
