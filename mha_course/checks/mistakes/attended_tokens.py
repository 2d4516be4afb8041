"""The known mistakes of `07-most_attended`."""

import torch

from mha_course.checks.mistakes.same_words import SAME_WORDS
from mha_course.checks.mistakes.weighing import same
from mha_course.checks.task import Mistake

__all__ = ["ATTENDED", "build_attended"]

ROWS = "Rows ask, columns are asked"
TOKENS = "The tokens that a head looks at"


def largest_first(means):
    """The positions in the order that is asked for."""
    return means.argsort(descending=True, stable=True).tolist()


def build_attended(
    strength=lambda weights: weights.mean(dim=0),
    order=largest_first,
    take=lambda positions, k: positions[:k],
    number=float,
    pair=lambda tokens, position, number: (tokens[position], number),
    finish=same,
):
    """Return an answer to `07-most_attended`, right unless a part is replaced.

    strength: a number for each key, from the weights. order: of the positions, from the numbers.
    take: which positions are returned. number: what is said of the strength. pair: of a token and
    that number. finish: of the list.
    """

    def most_attended(weights, tokens, k=3):
        numbers = strength(weights)
        positions = take(order(numbers), k)
        return finish([pair(tokens, place, number(numbers[place])) for place in positions])

    return most_attended


def _means_of_rows(inputs, value):
    """Whether the numbers are those of the rows; they are alike, so any tokens may come first."""
    expected = inputs["weights"].mean(dim=1).sort(descending=True).values[: inputs.get("k", 3)]
    same_length = len(value[1]) == len(expected)
    return same_length and torch.allclose(value[1].double(), expected, rtol=0, atol=1e-6)


def _votes(weights):
    """The share of the queries whose largest weight is on this key."""
    return weights.argmax(dim=1).bincount(minlength=len(weights)).double() / len(weights)


def _by_topk(weights, tokens, k=3):
    means, positions = weights.mean(dim=0).topk(k)
    return [(tokens[place], mean) for place, mean in zip(positions, means.tolist(), strict=True)]


def _without_special(weights, tokens, k=3):
    kept = [pair for pair in build_attended()(weights, tokens, len(tokens)) if pair[0][0] != "["]
    return kept[:k]


ATTENDED = (
    Mistake(
        "averaged-over-keys",
        "You average along the rows, over the keys.",
        "A row sums to 1, so every one of your averages is 1 / L and says nothing about the head. "
        "How much a key gets is spread over all the rows.",
        ROWS,
        parts={"strength": lambda weights: weights.mean(dim=1)},
        shows=_means_of_rows,
    ),
    Mistake(
        "added-not-averaged",
        "You add the weights that a key gets up, and your numbers go above 1.",
        "The order is right. The task asks for the mean over the queries, so that a long sentence "
        "and a short one can be compared.",
        TOKENS,
        parts={"strength": lambda weights: weights.sum(dim=0)},
    ),
    Mistake(
        "largest-weight-of-a-key",
        "You rank the keys by the largest weight that any query gives them.",
        "One query is enough for that. The task asks what all the queries give, on average.",
        TOKENS,
        parts={"strength": lambda weights: weights.amax(dim=0)},
    ),
    Mistake(
        "attention-to-itself",
        "You read the diagonal: what each token gives to itself.",
        "All the queries may look at a token, not only the token itself.",
        ROWS,
        parts={"strength": lambda weights: weights.diagonal()},
    ),
    Mistake(
        "first-query-only",
        "You look at the first row: what the first token attends to.",
        "Every token asks. The task asks for the mean over all of them.",
        ROWS,
        parts={"strength": lambda weights: weights[0]},
    ),
    Mistake(
        "last-query-only",
        "You look at the last row: what the last token attends to.",
        "Every token asks. The task asks for the mean over all of them.",
        ROWS,
        parts={"strength": lambda weights: weights[-1]},
    ),
    Mistake(
        "votes-counted",
        "You count how many queries have their largest weight on each token.",
        "Then a weight of .9 counts as much as one of .3, and a second place counts nothing. The "
        "task asks for the mean of the weights.",
        TOKENS,
        parts={"strength": _votes},
    ),
    Mistake(
        "smallest-first",
        "Your list begins with the tokens that get least.",
        "Sorting goes up unless it is told otherwise.",
        TOKENS,
        parts={"order": lambda means: means.argsort(stable=True).tolist()},
    ),
    Mistake(
        "later-one-first",
        "Of tokens with equal means your list has the later one first.",
        "That is what comes of sorting upwards and turning the list round: the equal ones are "
        "turned round, too.",
        TOKENS,
        parts={"order": lambda means: means.argsort(stable=True).tolist()[::-1]},
    ),
    Mistake(
        "best-ones-upwards",
        "You have the right tokens in the wrong order: the largest stands last.",
        "Sorting goes up, so the last ones are the largest, and the largest of all is at the end.",
        TOKENS,
        lambda w, tokens, k=3: build_attended()(w, tokens, k)[::-1],
    ),
    Mistake(
        "order-of-the-sentence",
        "You have the right tokens, in the order of the sentence.",
        "The list is a ranking: the token that gets most comes first.",
        TOKENS,
        parts={"take": lambda positions, k: sorted(positions[:k])},
    ),
    Mistake(
        "k-ignored",
        "You return all tokens, whatever k is.",
        "The task asks for k of them.",
        TOKENS,
        parts={"take": lambda positions, k: positions},
    ),
    Mistake(
        "always-3",
        "You return 3 tokens, whatever k is.",
        "3 is what k is if the caller says nothing. Callers may say something.",
        TOKENS,
        parts={"take": lambda positions, k: positions[:3]},
    ),
    Mistake(
        "first-k-tokens",
        "You sort only the first k tokens of the sentence.",
        "Any token may be among those that get most: rank them all before you cut.",
        TOKENS,
        lambda w, tokens, k=3: build_attended()(w[:, :k], tokens, k),
    ),
    Mistake(
        "one-too-few",
        "You return one token less than k.",
        "A slice ends before its second number; from place 0 on, how many places does yours hold?",
        TOKENS,
        parts={"take": lambda positions, k: positions[: k - 1]},
    ),
    Mistake(
        "one-too-many",
        "You return one token more than k.",
        "A slice ends before its second number; from place 0 on, how many places does yours hold?",
        TOKENS,
        parts={"take": lambda positions, k: positions[: k + 1]},
    ),
    Mistake(
        "topk",
        "You take the k largest with topk.",
        "It insists on k entries and fails where there are fewer tokens. And of equal ones it may "
        "return any; the task asks for the earlier first.",
        TOKENS,
        _by_topk,
    ),
    Mistake(
        "position-instead-of-token",
        "You return where the token stands instead of the token.",
        "A position means nothing without the sentence. The caller gave you the tokens.",
        TOKENS,
        parts={"pair": lambda tokens, position, number: (position, number)},
    ),
    Mistake(
        "pairs-turned-round",
        "Your pairs are (mean weight, token).",
        "The token comes first. (With the number first a plain sort works, and that is perhaps "
        "why.)",
        TOKENS,
        parts={"pair": lambda tokens, position, number: (number, tokens[position])},
    ),
    Mistake(
        "tokens-alone",
        "You return the tokens without their mean weights.",
        "Without the number nobody can tell a head that parks from one that spreads: first of a "
        "close race, or of none?",
        TOKENS,
        parts={"pair": lambda tokens, position, number: tokens[position]},
    ),
    Mistake(
        "numbers-alone",
        "You return the mean weights without the tokens.",
        "The reader wants to know who gets them.",
        TOKENS,
        parts={"pair": lambda tokens, position, number: number},
    ),
    Mistake(
        "rounded",
        "You round the mean weights.",
        "Round what you print, not what you return: whoever goes on with it needs the digits.",
        TOKENS,
        parts={"number": lambda number: round(float(number), 2)},
    ),
    Mistake(
        "rounded-to-4-digits",
        "You round the mean weights.",
        "Round what you print, not what you return: whoever goes on with it needs the digits.",
        TOKENS,
        parts={"number": lambda number: round(float(number), 4)},
    ),
    *SAME_WORDS,
    Mistake(
        "special-tokens-left-out",
        "You leave [CLS] and [SEP] out.",
        "They are keys like any other, and this model gives one of them more than all words "
        "together. The task asks for what the head does, not for what we would like it to do.",
        TOKENS,
        _without_special,
    ),
)
