"""The known mistakes of lesson 12 in the list of hidden states that a stack of layers returns."""

import torch

from mha_course.checks.task import Mistake

__all__ = ["HIDDEN_STATES"]

STACK = "A stack of your layers"

HIDDEN_STATES = (
    Mistake(
        "x-left-out",
        "X is not in your list.",
        "The list has num_hidden_layers + 1 hidden states. The first is what went into layer 0.",
        STACK,
        parts={"collect": lambda states: states[1:]},
    ),
    Mistake(
        "last-left-out",
        "What the last layer returns is not in your list.",
        "You put into the list what goes into each layer. One hidden state comes out of the last, "
        "and it is the one that is used most.",
        STACK,
        parts={"collect": lambda states: states[:-1]},
        twin="last-layer-skipped",
    ),
    Mistake(
        "only-the-last",
        "You return the last hidden state alone.",
        "The task asks for a list of all of them, X first.",
        STACK,
        parts={"collect": lambda states: states[-1]},
    ),
    Mistake(
        "in-one-tensor",
        "You return the hidden states as one tensor.",
        "The numbers may be right; the task asks for a list of tensors.",
        STACK,
        parts={"collect": torch.stack},
    ),
    Mistake(
        "last-first",
        "Your list begins with the last hidden state.",
        "It begins with X and follows the layers.",
        STACK,
        parts={"collect": lambda states: states[::-1]},
    ),
    Mistake(
        "x-twice",
        "X stands in your list twice.",
        "Once before the first layer. After each layer, what that layer returns.",
        STACK,
        parts={"collect": lambda states: [states[0], *states]},
    ),
    Mistake(
        "last-twice",
        "The last hidden state stands in your list twice.",
        "Each hidden state belongs into it once: X, and what each layer returns.",
        STACK,
        parts={"collect": lambda states: [*states, states[-1]]},
    ),
)
