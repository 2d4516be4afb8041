"""The known mistakes of `07-most_attended` with words that stand there twice, and equal means."""

import torch

from mha_course.checks.task import Mistake

__all__ = ["SAME_WORDS"]

TOKENS = "The tokens that a head looks at"


def _collected(add):
    """Pairs with each token once: `add` says what becomes of the second of its kind."""

    def most_attended(weights, tokens, k=3):
        found = {}
        for token, mean in zip(tokens, weights.mean(dim=0).tolist(), strict=True):
            found[token] = add(found[token], mean) if token in found else mean
        return sorted(found.items(), key=lambda pair: -pair[1])[:k]

    return most_attended


def _by_index(weights, tokens, k=3):
    means = weights.mean(dim=0).tolist()
    pairs = [(token, means[tokens.index(token)]) for token in tokens]
    return sorted(pairs, key=lambda pair: -pair[1])[:k]


def _topk(weights, tokens, k=3):
    means, positions = weights.mean(dim=0).topk(min(k, len(tokens)))
    return [(tokens[place], mean) for place, mean in zip(positions, means.tolist(), strict=True)]


def _equals_anyhow(inputs, value):
    """Whether a list is right but for the order of tokens with equal means."""
    found, means = value[0].split(), inputs["weights"].mean(dim=0)
    right = means.sort(descending=True).values[: inputs.get("k", 3)]
    if len(found) != len(right) or not torch.allclose(value[1].double(), right, atol=1e-6):
        return False
    left = list(zip(inputs["tokens"], means.tolist(), strict=True))
    for token, mean in zip(found, right.tolist(), strict=True):
        alike = [pair for pair in left if pair[0] == token and abs(pair[1] - mean) < 1e-9]
        if not alike:
            return False
        left.remove(alike[0])
    return True


SAME_WORDS = (
    Mistake(
        "equals-anyhow",
        "Tokens with equal means come in any order.",
        "topk and argsort promise nothing about equal ones, and a sort of pairs goes on with the "
        "second of the pair. The earlier place comes first.",
        TOKENS,
        _topk,
        shows=_equals_anyhow,
    ),
    Mistake(
        "same-words-added-up",
        "You add up what the same word gets at different places.",
        'A head looks at positions, and each is an entry of its own: the first "the" and the '
        "second are two keys with two values.",
        TOKENS,
        _collected(lambda old, new: old + new),
    ),
    Mistake(
        "same-words-overwritten",
        "Where a word stands twice, the later place takes the other's entry.",
        "That is what a dict does with a key that it has already. Each position is an entry of "
        "its own.",
        TOKENS,
        _collected(lambda old, new: new),
    ),
    Mistake(
        "same-words-once",
        "Where a word stands twice, only its first place is looked at.",
        "tokens.index(word) always finds the first. Each position is an entry of its own.",
        TOKENS,
        _collected(lambda old, new: old),
    ),
    Mistake(
        "same-words-same-number",
        "Where a word stands twice, both entries have the number of its first place.",
        "tokens.index(word) always finds the first. The entries are right, and each needs the mean "
        "of its own position.",
        TOKENS,
        _by_index,
    ),
)
