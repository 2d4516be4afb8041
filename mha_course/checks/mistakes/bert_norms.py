"""The known mistakes of lesson 06 inside LayerNorm."""

from mha_course.checks.task import Mistake

__all__ = ["NORMS"]

JOINED = "Joined, added, normalised"


def _own_norm(self, Y, axis=-1, correction=0, shift=True, eps=None):
    mean = Y.mean(axis, keepdim=True)
    variance = Y.var(axis, keepdim=True, correction=correction)
    if not shift:
        mean, variance = 0, Y.square().mean(axis, keepdim=True)
    scaled = (Y - mean) / (variance + (self.norm.eps if eps is None else eps)) ** 0.5
    return scaled * self.norm.weight + self.norm.bias


NORMS = (
    Mistake(
        "default-eps",
        "Your norm uses PyTorch's eps of 1e-5.",
        "Where the numbers of a word differ little, eps decides the result. The config says which "
        "one this model was trained with.",
        JOINED,
        parts={"eps": lambda config: 1e-5},
    ),
    Mistake(
        "fixed-eps",
        "Your norm uses an eps of 1e-12 whatever the config says.",
        "Most BERTs have that one. Models that were trained with another need theirs.",
        JOINED,
        parts={"eps": lambda config: 1e-12},
    ),
    Mistake(
        "norm-over-words",
        "You normalise over the words.",
        "Each word is normalised by itself, over its features: what a word becomes must not depend "
        "on how many others there are.",
        JOINED,
        parts={"finish": lambda self, Y, X, residual: _own_norm(self, Y + residual, axis=1)},
    ),
    Mistake(
        "variance-over-n-minus-1",
        "You divide by n - 1 where LayerNorm divides by n.",
        "PyTorch's var and std count one less unless told otherwise. LayerNorm takes the mean of "
        "the squared distances.",
        JOINED,
        parts={"finish": lambda self, Y, X, residual: _own_norm(self, Y + residual, correction=1)},
    ),
    Mistake(
        "divided-by-std",
        "You divide by std as it is.",
        "It divides by n - 1 where LayerNorm divides by n, and knows nothing of eps.",
        JOINED,
        parts={
            "finish": lambda self, Y, X, residual: _own_norm(
                self, Y + residual, correction=1, eps=0
            )
        },
    ),
    Mistake(
        "no-eps",
        "eps is not in your norm.",
        "It is added to the variance, before the root. Where the numbers of a word differ little, "
        "it decides the result.",
        JOINED,
        parts={"finish": lambda self, Y, X, residual: _own_norm(self, Y + residual, eps=0)},
    ),
    Mistake(
        "mean-not-subtracted",
        "You scale without subtracting the mean.",
        "That is another norm (RMSNorm). LayerNorm moves the mean of each word to 0 first.",
        JOINED,
        parts={"finish": lambda self, Y, X, residual: _own_norm(self, Y + residual, shift=False)},
    ),
)
