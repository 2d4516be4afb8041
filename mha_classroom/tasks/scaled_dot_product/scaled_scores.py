"""Task 2.1, scaled_scores: products of queries and keys over √d_k."""

import math

import torch
from torch.nn import functional as F

from mha_classroom.checks.task import (
    Case,
    Task,
    and_in_float32,
    by_id,
    known,
    read_again,
    unchanged,
    without,
)
from mha_classroom.tasks.attention_math.softmax import near


def scaled_scores(queries, keys):
    return queries @ keys.transpose(1, 2) / math.sqrt(queries.shape[-1])


@and_in_float32
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
        case("width 1, more queries than keys", 5, 2, 1, batch=3),
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


# Roots of widths that models have, and the widths themselves.
CONSTANTS = tuple(
    number**power
    for number in (3, 4, 5, 7, 8, 10, 16, 32, 50, 64, 80, 96, 100, 128, 256, 512, 768, 1000, 1024)
    for power in (0.5, 1)
)


def _shows_constant(inputs, result):
    """Whether the scores are the products divided by a number that somebody may have in mind."""
    products = inputs["queries"] @ inputs["keys"].mT
    return any(near(products / number, result) for number in CONSTANTS)


def _shows_deviation(inputs, result):
    """Whether the scores are divided by their standard deviation along some axes."""
    products = inputs["queries"] @ inputs["keys"].mT
    for axes in ((0, 1, 2), -1, 0, 1, (1, 2)):
        squares = (products - products.mean(axes, keepdim=True)).square()
        total = squares.sum(axes, keepdim=True)
        count = squares.numel() // total.numel()
        if any(near(products / (total / n).sqrt(), result) for n in (count, count - 1)):
            return True
    return False


def _shows_rounded(inputs, result):
    products, root = inputs["queries"] @ inputs["keys"].mT, inputs["queries"].shape[-1] ** 0.5
    return any(near(products / round(root, digits), result) for digits in (1, 2, 3, 4))


LARGE = "Wide vectors have large scores"
SCORE = "Scaled scores"

SCALES = {
    "not-scaled": known(
        "Your scores are not scaled.",
        "A score is a sum of d_k products, so it grows with the width. At d_k = 512 one of ten "
        "keys takes nearly all the weight, and most queries get hardly any gradient.",
        section=LARGE,
        scale=not_scaled,
    ),
    "divided-by-width": known(
        "Your scores are divided by d_k: there is no root, or you divide by the root twice.",
        "The typical size of a score is √d_k. Dividing by more makes all scores nearly equal, and "
        "every key gets the same weight whatever was asked.",
        section="What large scores do to gradients",
        scale=_times(lambda q, k: 1 / q.shape[-1]),
    ),
    "divided-by-half-the-width": known(
        "Your scores are divided by d_k / 2. At d_k = 4 that happens to be √4.",
        "Python takes a power before a division: what is d_k ** 1 / 2, and what d_k ** (1 / 2)?",
        scale=_times(lambda q, k: 2 / q.shape[-1]),
    ),
    "divided-by-twice-the-width": known(
        "Your scores are divided by 2 · d_k.",
        "Python takes a power before a division: what is scores / d_k ** 1 / 2, read from the "
        "left?",
        scale=_times(lambda q, k: 0.5 / q.shape[-1]),
    ),
    "multiplied-by-root": known(
        "Your scores are multiplied by √d_k, or divided by 1 / √d_k.",
        "Scores of wide vectors are too large as it is. This makes them larger.",
        section=LARGE,
        scale=_times(lambda q, k: q.shape[-1] ** 0.5),
    ),
    "divided-by-root-of-keys": known(
        "You divide by the root of the number of keys, √S.",
        "A score is one query with one key. How large it gets depends on how many numbers the two "
        "have, not on how many other keys there are.",
        section=LARGE,
        scale=_times(lambda q, k: k.shape[1] ** -0.5),
    ),
    "divided-by-root-of-queries": known(
        "You divide by the root of the number of queries, √L.",
        "A score is one query with one key. How large it gets depends on how many numbers the two "
        "have, not on how many other queries there are.",
        section=LARGE,
        scale=_times(lambda q, k: q.shape[1] ** -0.5),
    ),
    "divided-by-root-of-batch": known(
        "You divide by the root of the number of sequences: the first axis, which len gives too.",
        "A score is one query with one key. How large it gets depends on how many numbers the two "
        "have, not on how many sequences lie side by side.",
        section=LARGE,
        scale=_times(lambda q, k: len(q) ** -0.5),
    ),
    "width-of-the-example": known(
        "Your scores are always divided by 2.",
        "That is √d_k for d_k = 4, the width of the example. Other queries have other widths.",
        scale=_times(lambda q, k: 0.5),
    ),
    "root-cut-to-whole": known(
        "You cut the root down to a whole number: 2 for √7 = 2.65.",
        "Then vectors of width 4 and of width 8 are scaled alike.",
        scale=_times(lambda q, k: 1 / math.isqrt(q.shape[-1])),
    ),
    "root-rounded": known(
        "You round the root to a whole number: 3 for √7 = 2.65.",
        "Then vectors of width 7 and of width 12 are scaled alike.",
        scale=_times(lambda q, k: 1 / round(q.shape[-1] ** 0.5)),
    ),
    "root-of-a-number-by-torch": known(
        "You ask torch.sqrt for the root of a number.",
        "torch.sqrt takes tensors, and the size of an axis is a plain whole number. Which module "
        "has a root for those?",
        scale=lambda scores, q, *rest: scores / torch.sqrt(q.shape[-1]),
    ),
}
SCALES = read_again(SCORE, SCALES)

# Whoever makes one of the others makes it here.
USUAL_SCALES = without(
    SCALES,
    "divided-by-root-of-batch",
    "divided-by-twice-the-width",
    "divided-by-root-of-queries",
    "multiplied-by-root",
    "width-of-the-example",
    "root-cut-to-whole",
    "root-rounded",
)

SCORES = {
    **by_id(SCALES),
    "whole-division": known(
        "Your scores are cut down to whole numbers. Do you divide with //?",
        "Two keys with the scores 1.9 and 1.1 would come out alike.",
        scale=lambda scores, q, k: scores // math.sqrt(q.shape[-1]),
    ),
    "always-the-same-number": known(
        "You divide by the same number whatever the width is: one that stands in your code, or the "
        "number of axes.",
        "That fits one width at most. Queries and keys have a shape that says how wide they are.",
        scale=_times(lambda q, k: 1 / 8),
        shows=_shows_constant,
    ),
    "divided-by-the-standard-deviation": known(
        "You divide the scores by their own standard deviation.",
        "It is near to what is wanted for random numbers, but it depends on all the scores that it "
        "is taken from: if one changes, all of them do. Scaling uses the width alone, whatever the "
        "numbers are.",
        section=LARGE,
        scale=lambda scores, q, k: scores / scores.std(),
        shows=_shows_deviation,
    ),
    "root-rounded-to-digits": known(
        "You round the root to a few digits.",
        "Nothing is won by it, and the scores come out wrong by what is cut off.",
        scale=_times(lambda q, k: 1 / round(q.shape[-1] ** 0.5, 2)),
        shows=_shows_rounded,
    ),
    "as-many-keys-as-queries": known(
        "You score only as many keys as there are queries; what comes later stays 0.",
        "L and S may differ. A loop over keys has its own end.",
        product=lambda q, k: (q @ k.mT) * (torch.arange(k.shape[1]) < q.shape[1]),
    ),
    "keys-of-all-sequences-added": known(
        "Your scores are sums over the sequences of the batch: each query meets the keys of all.",
        "Sequences in a batch have nothing to do with each other: each has its own keys. In "
        "einsum, a letter that only one factor has, and not the result, is summed over.",
        product=lambda q, k: q @ k.sum(0).T,
    ),
    "batch-and-keys-exchanged": known(
        "You transpose the first two axes of the keys: batch and keys change places.",
        "transpose(0, 1) is right for one sequence alone. In a batch axis 0 tells sequences apart "
        "and has to stay.",
        product=lambda q, k: q @ k.transpose(0, 1),
    ),
    "squeezed-too-far": known(
        "You squeeze every axis of length 1 out of the result.",
        "The scores are right. One sequence, one query or one key is still an axis, and whoever "
        "uses the result counts on it.",
        finish=torch.squeeze,
    ),
    "batch-of-one-squeezed": known(
        "A batch of one sequence loses its axis.",
        "The scores are right. One sequence is still a batch, and whoever uses the result counts "
        "on its axis.",
        finish=lambda scores: scores.squeeze(0),
    ),
    "queries-and-keys-swapped": known(
        "Queries and keys have changed places: your rows belong to keys.",
        "Row i is for query i, since each query will share out its attention along its row. With "
        "as many queries as keys the shape does not tell.",
        product=lambda q, k: k @ q.mT,
    ),
    "queries-with-themselves": known(
        "You multiply the queries with themselves.",
        "A score says how well a key answers to a query, so each product takes one of both.",
        product=lambda q, k: q @ q.mT,
    ),
    "keys-not-transposed": known(
        "You multiply queries with keys as they stand, and the shapes do not fit.",
        "A matrix product pairs rows of the first with columns of the second. As they stand, each "
        "key is a row.",
        product=lambda q, k: q @ k,
    ),
    "all-axes-reversed": known(
        "You turn all three axes of the keys around, the batch too, as keys.T does.",
        "Only keys and features have to change places: each sequence stays where it is.",
        product=lambda q, k: q @ k.permute(2, 1, 0),
    ),
    "keys-reshaped": known(
        "You bring the keys into shape with reshape or view, and they are mixed up.",
        "The shape is right and the numbers are not: reshape reads them in the order in which they "
        "lie in memory, so a column holds parts of several keys. Swapping two axes is another "
        "thing.",
        product=lambda q, k: q @ k.reshape(k.shape[0], k.shape[2], k.shape[1]),
    ),
    "keys-viewed": known(
        "You bring the keys into shape with view, and they are mixed up.",
        "The shape is right and the numbers are not: view leaves them in the order in which they "
        "lie in memory, so a column holds parts of several keys. Swapping two axes is another "
        "thing.",
        product=lambda q, k: q @ k.view(k.shape[0], k.shape[2], k.shape[1]),
    ),
    "first-sentence-for-all": known(
        "Every sequence is scored against the keys of the first.",
        "Sequences in a batch have nothing to do with each other: each has its own keys.",
        product=lambda q, k: q @ k[0].mT,
    ),
    "entry-by-entry": known(
        "You multiply queries and keys entry by entry.",
        "That pairs query 0 with key 0 and nobody else, and adds nothing up. Every query is to "
        "meet every key, in a dot product.",
        product=lambda q, k: q * k,
    ),
    "paired-one-to-one": known(
        "You multiply query 0 with key 0, query 1 with key 1, and no others.",
        "Every query is to meet every key: the result has a row for each query and a column for "
        "each key.",
        product=lambda q, k: (q * k).sum(-1),
    ),
    "products-not-added-up": known(
        "You keep the products of all features: your result has an axis too many.",
        "A dot product is the sum of them: one number for each query and key.",
        product=lambda q, k: q[:, :, None] * k[:, None],
    ),
    "cosine": known(
        "Your scores are cosines: they are divided by the lengths of query and key.",
        "Then all scores lie between -1 and 1, and a query cannot be sure of anything. Scaling "
        "uses the width alone, whatever the numbers are.",
        section=LARGE,
        product=lambda q, k: F.normalize(q, dim=-1) @ F.normalize(k, dim=-1).mT,
        scale=not_scaled,
    ),
    "queries-changed-in-place": known(
        "You scale the caller's queries in place.",
        "Whoever calls still needs them: a second call would scale them again. Which way of "
        "scaling makes a new tensor?",
        product=lambda q, k: q.div_(math.sqrt(q.shape[-1])) @ k.mT,
        scale=not_scaled,
    ),
    "softmax-included": known(
        "You return weights: a softmax has gone over the scores.",
        "The task asks for the scores before that. The softmax has to wait until padding is "
        "hidden.",
        finish=lambda scores: scores.softmax(-1),
    ),
}

TASK = Task(
    "02-scaled_scores",
    scaled_scores,
    score_cases,
    returns=("the result",),
    mistakes=read_again(SCORE, SCORES),
    build=build_scores,
    alone=(
        "root-of-a-number-by-torch",
        "divided-by-root-of-batch",
        "always-the-same-number",
        "divided-by-the-standard-deviation",
        "root-rounded-to-digits",
        "keys-of-all-sequences-added",
        "batch-and-keys-exchanged",
        "batch-of-one-squeezed",
    ),
    stages=score_stages,
    number=1,
)
