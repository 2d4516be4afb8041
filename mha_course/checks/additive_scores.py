"""The task on additive scores: a right answer, its cases and its stages."""

import torch

from mha_course.checks.task import Case

__all__ = ["additive_cases", "additive_scores", "additive_stages"]


def additive_scores(queries, keys, W_q, W_k, w_v):
    """A right answer to `01-additive_scores`."""
    hidden = (queries @ W_q)[:, :, None] + (keys @ W_k)[:, None]  # (B, L, S, h)
    return torch.tanh(hidden) @ w_v


def additive_stages(inputs):
    """What a right `additive_scores` computes on the way."""
    queries, keys, W_q, W_k, w_v = inputs.values()
    q, k = queries @ W_q, keys @ W_k
    hidden = q[:, :, None] + k[:, None]
    return {
        "the mapped": {"the mapped queries": q, "the mapped keys": k},
        "the sums of each query and key": hidden,
        "the results of tanh": torch.tanh(hidden),
        "the scores": torch.tanh(hidden) @ w_v,
    }


def additive_cases(draw):
    """Cases for `additive_scores`: unequal widths, all sizes equal, saturated tanh."""

    def case(name, batch, lengths, widths, num_hiddens, scale=1.0):
        num_queries, num_keys = lengths
        query_size, key_size = widths
        inputs = {
            "queries": draw.normal(batch, num_queries, query_size, scale=scale),
            "keys": draw.normal(batch, num_keys, key_size, scale=scale),
            "W_q": draw.normal(query_size, num_hiddens),
            "W_k": draw.normal(key_size, num_hiddens),
            "w_v": draw.normal(num_hiddens),
        }
        if scale > 1:  # rounded so that float32 holds every sum before tanh
            inputs = {name: (8 * X).round() / 8 for name, X in inputs.items()}
        return Case(name, inputs)

    hand = {
        "queries": [[[1.0], [-1]]],
        "keys": [[[0.0, 0], [1, 0], [1, 2]]],
        "W_q": [[1.0, 0]],
        "W_k": [[1.0, 0], [0, 1]],
        "w_v": [1.0, 10],
    }
    hand = {name: torch.tensor(X, dtype=torch.float64) for name, X in hand.items()}
    return [
        Case("1 sentence, 2 queries of width 1, 3 keys of width 2", hand),
        case("2 sentences, widths 7 and 11", 2, (3, 5), (7, 11), 13),
        case("more queries than keys", 3, (7, 2), (3, 5), 11),
        case("as many queries as keys", 2, (5, 5), (3, 2), 7),
        case("one width everywhere", 2, (3, 5), (7, 7), 7),
        case("as many sentences as queries and keys", 3, (3, 3), (2, 5), 7),
        case("all sizes equal", 3, (3, 3), (3, 3), 3),
        case("h = 1", 2, (3, 5), (7, 2), 1),
        case("one query, one key", 2, (1, 1), (3, 2), 5),
        case("large numbers, where tanh levels off", 2, (3, 5), (7, 11), 13, scale=100.0),
    ]
