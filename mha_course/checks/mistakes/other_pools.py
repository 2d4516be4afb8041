"""The known mistakes of lesson 12 in making one vector of a text: not by the mean of all words."""

import torch

from mha_course.checks.task import Mistake

__all__ = ["POOLS"]

ONE = "One vector for a text"


def _loop(of_text):
    """An answer that makes each text's vector from its words, padding left out."""

    def mean_pool(hidden, attention_mask):
        texts = zip(hidden, attention_mask.bool(), strict=True)
        return torch.stack([of_text(text[words]) for text, words in texts])

    return mean_pool


POOLS = (
    Mistake(
        "first-place-only",
        "You take the vector at the first place.",
        "That is [CLS], which some models are trained to use. This task asks for the mean of all "
        "words.",
        ONE,
        lambda hidden, attention_mask: hidden[:, 0],
    ),
    Mistake(
        "first-word-only",
        "You take the first word of each text that is not padding.",
        "This task asks for the mean of all words.",
        ONE,
        _loop(lambda words: words[0]),
    ),
    Mistake(
        "last-word-only",
        "You take the last word of each text.",
        "This task asks for the mean of all words.",
        ONE,
        _loop(lambda words: words[-1]),
    ),
    Mistake(
        "largest",
        "You take the largest number of each feature.",
        "That is another way to pool. This task asks for the mean.",
        ONE,
        _loop(lambda words: words.amax(0)),
    ),
    Mistake(
        "largest-with-padding",
        "You take the largest number of each feature, padding included.",
        "This task asks for the mean, and of words only.",
        ONE,
        lambda hidden, attention_mask: hidden.amax(1),
    ),
    Mistake(
        "median",
        "You take the median of each feature.",
        "This task asks for the mean.",
        ONE,
        _loop(lambda words: words.median(0).values),
    ),
    Mistake(
        "only-between-the-ends",
        "You leave out the first and the last word of each text.",
        "[CLS] and [SEP] count like words here: attention_mask has a 1 for them. (Of a text of one "
        "word nothing is left, and the mean of nothing is NaN.)",
        ONE,
        _loop(lambda words: words[1:-1].mean(0)),
    ),
)
