"""Task 2.1, scaled_scores: products of queries and keys over √d_k."""

import math

import torch
from torch.nn import functional as F

from mha_classroom.checks.task import Case, Mistake, Task, read_again, unchanged, without

__all__ = ["TASK"]


def scaled_scores(queries, keys):
    return queries @ keys.transpose(1, 2) / math.sqrt(queries.shape[-1])


def score_cases(draw):
    def case(name, num_queries, num_keys, d_k, batch=2):
        queries, keys = draw.normal(batch, num_queries, d_k), draw.normal(batch, num_keys, d_k)
        return Case(name, {"queries": queries, "keys": keys})

    by_hand = {
        "queries": make_batch([[2, 0, 0, 0], [1, 1, 1, 1]]),
        "keys": make_batch([[1, 2, 3, 4], [0, 0, 2, 0], [4, 0, -2, 6]]),
    }
    return [
        Case("2 queries, 3 keys of width 4", by_hand),
        case("2 sequences, 3 queries, 5 keys of width 7", 3, 5, 7),
        case("as many queries as keys", 5, 5, 3),
        case("3 sequences, 3 queries, 3 keys of width 3", 3, 3, 3, batch=3),
        case("width 1", 2, 5, 1, batch=3),
        case("one query, one key", 1, 1, 5, batch=3),
        Case("transposed", {"queries": draw.normal(2, 7, 3).mT, "keys": draw.normal(2, 7, 5).mT}),
    ]


def make_batch(numbers):
    """A float64 tensor of these numbers, with a batch of 1 in front."""
    return torch.tensor([numbers], dtype=torch.float64)


def score_stages(inputs):
    products = inputs["queries"] @ inputs["keys"].mT
    return {
        "the dot products of queries and keys": products,
        "the scaled scores": products / math.sqrt(inputs["queries"].shape[-1]),
    }


def _times(factor):
    """A scale from a factor that depends on queries and keys."""
    return lambda scores, queries, keys, *values: scores * factor(queries, keys)


def not_scaled(scores, *inputs):
    return scores


right_scale = _times(lambda q, k: q.shape[-1] ** -0.5)


def build_scores(product=lambda q, k: q @ k.mT, scale=right_scale, finish=unchanged):
    return lambda queries, keys: finish(scale(product(queries, keys), queries, keys))


SHOUT = "Wide vectors shout"
SCORE = "Scaled scores"

SCALES = read_again(
    SCORE,
    Mistake(
        "not-scaled",
        "You do not scale the scores.",
        "A score is a sum of d_k products, so it grows with the width. At d_k = 512 one key takes "
        "nearly all the weight, and hardly any gradient gets through.",
        SHOUT,
        parts={"scale": not_scaled},
    ),
    Mistake(
        "divided-by-width",
        "Your scores are divided by d_k: there is no root, or you divide by the root twice.",
        "The typical size of a score is √d_k. Dividing by more makes all scores nearly equal, and "
        "every key gets the same weight whatever was asked.",
        "What does vanish",
        parts={"scale": _times(lambda q, k: 1 / q.shape[-1])},
    ),
    Mistake(
        "divided-by-half-the-width",
        "Your scores are divided by d_k / 2. At d_k = 4 that happens to be √4.",
        "Python takes a power before a division: what is d_k ** 1 / 2, and what d_k ** (1 / 2)?",
        parts={"scale": _times(lambda q, k: 2 / q.shape[-1])},
    ),
    Mistake(
        "divided-by-twice-the-width",
        "Your scores are divided by 2 · d_k.",
        "Python takes a power before a division: what is scores / d_k ** 1 / 2, read from the "
        "left?",
        parts={"scale": _times(lambda q, k: 0.5 / q.shape[-1])},
    ),
    Mistake(
        "multiplied-by-root",
        "You multiply by √d_k.",
        "Scores of wide vectors are too large as it is. This makes them larger.",
        SHOUT,
        parts={"scale": _times(lambda q, k: q.shape[-1] ** 0.5)},
    ),
    Mistake(
        "divided-by-root-of-keys",
        "You divide by the root of the number of keys, √S.",
        "A score is one query with one key. How large it gets depends on how many numbers the two "
        "have, not on how many other keys there are.",
        SHOUT,
        parts={"scale": _times(lambda q, k: k.shape[1] ** -0.5)},
    ),
    Mistake(
        "divided-by-root-of-queries",
        "You divide by the root of the number of queries, √L.",
        "A score is one query with one key. How large it gets depends on how many numbers the two "
        "have, not on how many other queries there are.",
        SHOUT,
        parts={"scale": _times(lambda q, k: q.shape[1] ** -0.5)},
    ),
    Mistake(
        "width-of-the-example",
        "You always divide by 2.",
        "That is √d_k for d_k = 4, as in the lesson's example. Other queries have other widths.",
        parts={"scale": _times(lambda q, k: 0.5)},
    ),
    Mistake(
        "root-cut-to-whole",
        "You cut the root down to a whole number: 2 for √7 = 2.65.",
        "Then vectors of width 4 and of width 8 are scaled alike.",
        parts={"scale": _times(lambda q, k: 1 / math.isqrt(q.shape[-1]))},
    ),
    Mistake(
        "root-rounded",
        "You round the root to a whole number: 3 for √7 = 2.65.",
        "Then vectors of width 7 and of width 12 are scaled alike.",
        parts={"scale": _times(lambda q, k: 1 / round(q.shape[-1] ** 0.5))},
    ),
    Mistake(
        "root-of-a-number-by-torch",
        "You ask torch.sqrt for the root of a number.",
        "torch.sqrt takes tensors, and the size of an axis is a plain whole number. Which module "
        "has a root for those?",
        parts={"scale": lambda scores, q, *rest: scores / torch.sqrt(q.shape[-1])},
    ),
)

# Whoever makes one of the others makes it here.
USUAL_SCALES = without(
    SCALES,
    "divided-by-twice-the-width",
    "divided-by-root-of-queries",
    "multiplied-by-root",
    "width-of-the-example",
    "root-cut-to-whole",
    "root-rounded",
)

SCORES = read_again(
    SCORE,
    *SCALES,
    Mistake(
        "whole-division",
        "You divide with //, which cuts the scores down to whole numbers.",
        "Two keys with the scores 1.9 and 1.1 would come out alike.",
        parts={"scale": lambda scores, q, k: scores // math.sqrt(q.shape[-1])},
    ),
    Mistake(
        "queries-and-keys-swapped",
        "Queries and keys have changed places: your rows belong to keys.",
        "Row i is for query i, since each query will share out its attention along its row. With "
        "as many queries as keys the shape does not tell.",
        parts={"product": lambda q, k: k @ q.mT},
    ),
    Mistake(
        "queries-with-themselves",
        "You multiply the queries with themselves.",
        "A score says how well a key answers to a query, so each product takes one of both.",
        parts={"product": lambda q, k: q @ q.mT},
    ),
    Mistake(
        "keys-not-transposed",
        "You multiply queries with keys as they stand, and the shapes do not fit.",
        "A matrix product pairs rows of the first with columns of the second. As they stand, each "
        "key is a row.",
        parts={"product": lambda q, k: q @ k},
    ),
    Mistake(
        "all-axes-reversed",
        "keys.T turns all three axes around, the batch too.",
        "Only keys and features have to change places: each sequence stays where it is.",
        parts={"product": lambda q, k: q @ k.permute(2, 1, 0)},
    ),
    Mistake(
        "keys-reshaped",
        "You bring the keys into shape with reshape or view, and they are mixed up.",
        "The shape is right and the numbers are not: reshape reads them in the order in which they "
        "lie in memory, so a column holds parts of several keys. Swapping two axes is another "
        "thing.",
        parts={"product": lambda q, k: q @ k.reshape(k.shape[0], k.shape[2], k.shape[1])},
    ),
    Mistake(
        "first-sentence-for-all",
        "Every sequence is scored against the keys of the first.",
        "Sequences in a batch have nothing to do with each other: each has its own keys.",
        parts={"product": lambda q, k: q @ k[0].mT},
    ),
    Mistake(
        "entry-by-entry",
        "You multiply queries and keys entry by entry.",
        "That pairs query 0 with key 0 and nobody else, and adds nothing up. Every query is to "
        "meet every key, in a dot product.",
        parts={"product": lambda q, k: q * k},
    ),
    Mistake(
        "products-not-added-up",
        "You keep the products of all features: your result has an axis too many.",
        "A dot product is the sum of them: one number for each query and key.",
        parts={"product": lambda q, k: q[:, :, None] * k[:, None]},
    ),
    Mistake(
        "cosine",
        "You divide every query and key by its length: your scores are cosines.",
        "Then all scores lie between -1 and 1, and a query cannot be sure of anything. Scaling "
        "uses the width alone, whatever the numbers are.",
        SHOUT,
        parts={
            "product": lambda q, k: F.normalize(q, dim=-1) @ F.normalize(k, dim=-1).mT,
            "scale": not_scaled,
        },
    ),
    Mistake(
        "queries-changed-in-place",
        "You divide the caller's queries in place.",
        "Whoever calls still needs them: a second call would divide them again. Which way of "
        "dividing makes a new tensor?",
        parts={
            "product": lambda q, k: q.div_(math.sqrt(q.shape[-1])) @ k.mT,
            "scale": not_scaled,
        },
    ),
    Mistake(
        "softmax-included",
        "You return weights: a softmax has gone over the scores.",
        "The task asks for the scores before that. The softmax has to wait until padding is "
        "hidden.",
        parts={"finish": lambda scores: scores.softmax(-1)},
    ),
)

TASK = Task(
    "02-scaled_scores",
    scaled_scores,
    score_cases,
    mistakes=SCORES,
    build=build_scores,
    stages=score_stages,
    number=1,
)
