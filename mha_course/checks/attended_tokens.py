"""What `07-most_attended` is tried on, and what is read out of the list that it returns."""

import numbers

import numpy as np
import torch

from mha_course.checks.examining import total
from mha_course.checks.showing import describe
from mha_course.checks.task import AnswerError, Case

__all__ = ["attended_cases", "examine_attended", "random_weights", "run_attended", "table"]


def random_weights(draw, *shape, scale=2.0):
    """Weights as softmax makes them, (..., L, S)."""
    return draw.normal(*shape, scale=scale).softmax(dim=-1)


def table(*rows):
    return torch.tensor(rows, dtype=torch.float64)


def attended_cases(draw):
    """Cases for `most_attended`: equal words, equal means, every k, one token."""

    def case(name, tokens, weights=None, **options):
        weights = random_weights(draw, len(tokens), len(tokens)) if weights is None else weights
        # The tokens of a short text stand in the name, since a list is shown by its length only.
        name = f"{name}, tokens {' '.join(tokens)}" if len(tokens) < 9 else name
        return Case(name, {"weights": weights, "tokens": tokens, **options})

    def words(count):
        return [f"w{place}" for place in draw.normal(count).argsort().tolist()]

    small = table(
        [0.4, 0.1, 0.4, 0.1], [0.2, 0.1, 0.6, 0.1], [0.1, 0.2, 0.5, 0.2], [0.3, 0.1, 0.3, 0.3]
    )
    even = torch.full((4, 4), 0.25, dtype=torch.float64)
    steps = table([1, 2, 1, 4, 2, 4, 1, 1]).expand(8, 8) / 16
    twice = ["the", "cat", "saw", "the", "dog"]
    return [
        case("no k given", ["[CLS]", "the", "cat", "[SEP]"], small),
        case("a word that stands there twice", twice, _often_twice(), k=2),
        case("equal weights everywhere", ["[CLS]", "the", "cat", "[SEP]"], even, k=2),
        case("some means are equal", words(8), steps, k=5),
        case("k = 1", words(7), k=1),
        case("as many as there are", words(5), k=5),
        case("more than there are", words(3), k=7),
        case("one token", ["hello"], k=2),
        case("13 tokens, no k given", words(13)),
        case("17 tokens, many equal", words(17), _many_equal(17), k=11),
        case("[CLS] gets most", ["[CLS]", *words(9), "[SEP]"], _parked(draw, 11), k=4),
        case("the same words again and again", twice * 3, k=6),
        case("weights are not contiguous", words(7), random_weights(draw, 7, 7).T.contiguous().T),
    ]


def _often_twice():
    """Both places of the same word are among the first two, the later one ahead."""
    return table(
        [0.3, 0.1, 0.1, 0.4, 0.1],
        [0.2, 0.1, 0.2, 0.4, 0.1],
        [0.4, 0.1, 0.1, 0.3, 0.1],
        [0.3, 0.2, 0.1, 0.3, 0.1],
        [0.3, 0.1, 0.1, 0.3, 0.2],
    )


def _many_equal(length):
    """Rows whose means fall into three groups of equal ones, exact in binary."""
    row = torch.tensor([4.0, 1, 2] * length)[:length].double() / 64
    return row.expand(length, length).clone()


def _parked(draw, length):
    weights = random_weights(draw, length, length) / 2
    weights[:, 0] += 0.5
    return weights


def run_attended(answer, inputs):
    """Call an answer to `most_attended`; return its list, and the caller's tokens afterwards."""
    given = {**inputs, "tokens": list(inputs["tokens"])}
    return {"pairs": answer(*given.values()), "tokens": given["tokens"]}


@total
def examine_attended(inputs, seen):
    """The tokens in one line, and the numbers.

    Raises: AnswerError for what is no list of pairs of a token and a number.
    """
    pairs = seen["pairs"]
    if seen["tokens"] != inputs["tokens"]:
        raise AnswerError("most_attended changes the caller's list of tokens.")
    if not isinstance(pairs, (list, tuple)):
        raise AnswerError(f"most_attended has to return a list of pairs, got {describe(pairs)}.")
    for place, pair in enumerate(pairs):
        _check_pair(place, pair)
    means = [number for _, number in pairs]
    narrow = any(getattr(number, "dtype", None) in (torch.float32, np.float32) for number in means)
    means = torch.tensor([float(mean) for mean in means], dtype=torch.float64)
    return " ".join(token for token, _ in pairs), means.float() if narrow else means


def _check_pair(place, pair):
    if not isinstance(pair, (list, tuple)) or len(pair) != 2:
        raise AnswerError(
            f"Each entry of the list has to be a pair (token, mean weight); entry {place} is "
            f"{describe(pair)}."
        )
    token, number = pair
    if not isinstance(token, str):
        raise AnswerError(
            f"The first of a pair has to be a token, a str; in entry {place} it is "
            f"{describe(token)}."
        )
    scalar = torch.is_tensor(number) and number.dim() == 0 and number.is_floating_point()
    if not scalar and (isinstance(number, bool) or not isinstance(number, numbers.Real)):
        raise AnswerError(
            f"The second of a pair has to be a number; in entry {place} it is {describe(number)}."
        )
