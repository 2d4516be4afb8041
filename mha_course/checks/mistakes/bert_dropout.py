"""The known mistakes of lesson 06 in dropout, of attention weights and of hidden states."""

import torch
from torch import nn

from mha_course.checks.task import Mistake

__all__ = ["HIDDEN_DROPOUT", "WEIGHT_DROPOUT", "drop"]

HEADS = "The heads of lesson 4, with biases"
JOINED = "Joined, added, normalised"


def drop(self, X):
    """Right dropout: with the module's rate, while it is training."""
    return nn.functional.dropout(X, self.rate, self.training)


WEIGHT_DROPOUT = (
    Mistake(
        "no-dropout",
        "attention_probs_dropout_prob has no effect while training.",
        "With that probability a weight is dropped: after the softmax, before the weighted sum.",
        HEADS,
        parts={"drop": lambda self, weights: weights},
    ),
    Mistake(
        "dropout-in-eval",
        "Weights are dropped in eval mode too.",
        "A function drops whenever it is told to. The module knows whether it is training.",
        HEADS,
        parts={"drop": lambda self, weights: nn.functional.dropout(weights, self.rate, True)},
    ),
    Mistake(
        "other-probability",
        "You drop with hidden_dropout_prob.",
        "The config has two probabilities. One is for hidden states, in 6.3; the other for "
        "attention weights.",
        HEADS,
        parts={"rate": lambda config: config.hidden_dropout_prob},
    ),
    Mistake(
        "dropout-before-softmax",
        "You drop scores, before the softmax.",
        "A score of 0 is no small weight: exp(0) is 1. Weights are dropped, after the softmax.",
        HEADS,
        parts={
            "soften": lambda self, scores: drop(self, scores).softmax(-1),
            "drop": lambda self, weights: weights,
        },
    ),
    Mistake(
        "dropout-elsewhere",
        "You drop single numbers of the result or of the values, not attention weights.",
        "A weight that is dropped takes a whole word out of a query's average. Where in your "
        "computation do the weights stand?",
        HEADS,
        parts={
            "drop": lambda self, weights: weights,
            "finish": lambda self, output: drop(self, output),
        },
    ),
    Mistake(
        "not-scaled-up",
        "Weights are dropped in training, and the others stay as they were.",
        "Then a head's output is smaller in training than in eval mode. What is kept is divided by "
        "1 - p, as nn.Dropout does.",
        HEADS,
        parts={
            "drop": lambda self, weights: (
                weights * (torch.rand_like(weights) >= self.rate) if self.training else weights
            )
        },
    ),
    Mistake(
        "whole-rows-dropped",
        "You drop whole rows of weights: a query loses all its words or none.",
        "Single weights are dropped, each by its own chance.",
        HEADS,
        parts={
            "drop": lambda self, weights: weights * drop(self, torch.ones_like(weights[..., :1]))
        },
    ),
    Mistake(
        "weights-after-dropout",
        "The weights that you return have gone through dropout.",
        "Whoever looks at them wants to see where a head looks: rows that sum to 1. Dropped are "
        "those that the average is made with.",
        HEADS,
        parts={"show": lambda output, weights, dropped: (output, dropped)},
    ),
)

HIDDEN_DROPOUT = (
    Mistake(
        "no-dropout",
        "hidden_dropout_prob has no effect while training.",
        "With that probability a number of W_o's result is dropped, before the residual is added.",
        JOINED,
        parts={"drop": lambda self, Y: Y},
    ),
    Mistake(
        "dropout-in-eval",
        "Numbers are dropped in eval mode too.",
        "A function drops whenever it is told to. The module knows whether it is training.",
        JOINED,
        parts={"drop": lambda self, Y: nn.functional.dropout(Y, self.rate, True)},
    ),
    Mistake(
        "other-probability",
        "You drop with attention_probs_dropout_prob.",
        "That one is for attention weights, in 6.2. Hidden states have a probability of their own.",
        JOINED,
        parts={"rate": lambda config: config.attention_probs_dropout_prob},
    ),
    Mistake(
        "dropout-after-the-sum",
        "You drop after the residual was added.",
        "Then the residual is dropped too, and it is meant to get through whatever happens. "
        "Only what is added to it is dropped.",
        JOINED,
        parts={
            "drop": lambda self, Y: Y,
            "finish": lambda self, Y, X, residual: self.norm(drop(self, Y + residual)),
        },
    ),
    Mistake(
        "dropout-after-the-norm",
        "You drop last, after the norm.",
        "Only what is added to the residual is dropped, so dropout stands before the sum.",
        JOINED,
        parts={
            "drop": lambda self, Y: Y,
            "finish": lambda self, Y, X, residual: drop(self, self.norm(Y + residual)),
        },
    ),
    Mistake(
        "dropout-on-the-residual",
        "You drop numbers of the residual.",
        "The residual is meant to get through whatever happens. Dropped is what is added to it.",
        JOINED,
        parts={
            "drop": lambda self, Y: Y,
            "finish": lambda self, Y, X, residual: self.norm(Y + drop(self, residual)),
        },
    ),
    Mistake(
        "dropout-before-projection",
        "You drop numbers before W_o.",
        "With all of them dropped, W_o still returns its bias. What is dropped is W_o's result.",
        JOINED,
        parts={
            "begin": lambda self, X, residual: self.W_o(drop(self, X)),
            "drop": lambda self, Y: Y,
        },
    ),
    Mistake(
        "not-scaled-up",
        "Numbers are dropped in training, and the others stay as they were.",
        "Then what is added to the residual is smaller in training than in eval mode. What is kept "
        "is divided by 1 - p, as nn.Dropout does.",
        JOINED,
        parts={
            "drop": lambda self, Y: Y * (torch.rand_like(Y) >= self.rate) if self.training else Y
        },
    ),
)
