"""Lesson 12's tasks about vectors of texts: the cases of mean, search, labels, and their runs."""

import numbers

import numpy as np
import torch

from mha_course.checks.examining import total
from mha_course.checks.showing import describe, plain_number
from mha_course.checks.task import AnswerError, Case

__all__ = [
    "classify_cases",
    "examine_classify",
    "examine_search",
    "mean_cases",
    "mean_stages",
    "run_classify",
    "search_cases",
    "search_stages",
]


def mean_cases(draw):
    """Cases for `mean_pool`."""

    def case(name, shape, mask=None):
        if mask is None:
            mask = draw.integers(0, 1, *shape[:2])
            mask[torch.arange(shape[0]), draw.integers(0, shape[1] - 1, shape[0])] = 1
        return Case(name, {"hidden": draw.normal(*shape), "attention_mask": torch.as_tensor(mask)})

    def first(lengths, L):
        return [[int(place < length) for place in range(L)] for length in lengths]

    small = [[[1.0, 2], [3, 6], [5, 1]], [[4, 7], [9, 8], [5, 3]]]
    return [
        Case(
            "2 texts, of 3 words and of 1",
            {
                "hidden": torch.tensor(small).double(),
                "attention_mask": torch.tensor([[1, 1, 1], [1, 0, 0]]),
            },
        ),
        case("5 texts of unequal length", (5, 7, 3), first([7, 2, 5, 1, 4], 7)),
        case("no padding", (2, 3, 5), first([3, 3], 3)),
        case("padding everywhere in the batch", (3, 5, 2), first([3, 2, 4], 5)),
        case(
            "padding in front and between",
            (3, 5, 2),
            [[0, 0, 1, 1, 1], [1, 0, 1, 0, 1], [0] * 4 + [1]],
        ),
        case("as many texts as words and features", (3, 3, 3), first([2, 3, 1], 3)),
        case("one text", (1, 5, 3), first([3], 5)),
        case("words and padding mixed", (7, 11, 5)),
        Case(
            "large numbers in the padding",
            {
                "hidden": draw.normal(2, 3, 5) + torch.tensor([0, 0, 1e9])[:, None].double(),
                "attention_mask": torch.tensor([[1, 1, 0], [1, 0, 0]]),
            },
        ),
    ]


def mean_stages(inputs):
    """What a right `mean_pool` computes on the way."""
    words = inputs["hidden"] * inputs["attention_mask"][..., None]
    return {"the sum of each text's words": words.sum(1)}


def search_cases(draw):
    """Cases for `search`."""

    def case(name, count, width, **k):
        lengths = draw.normal(count, 1, scale=1.5).exp()
        documents = draw.normal(count, width) * lengths
        return Case(name, {"query": 2 * draw.normal(width), "documents": documents} | k)

    def fixed(name, query, documents, **k):
        given = {"query": query, "documents": documents}
        return Case(name, {n: torch.tensor(X).double() for n, X in given.items()} | k)

    # Along the axes every way to compute a cosine gives the very same number for equal rows.
    axes = torch.eye(3)[draw.integers(0, 2, 37)].tolist()
    return [
        fixed("4 documents", [3.0, 4.0], [[0.0, 2.0], [9.0, 12.0], [1.0, 0.0], [-3.0, -4.0]], k=2),
        case("no k given", 7, 5),
        case("k=5", 11, 3, k=5),
        case("as many as there are", 5, 5, k=5),
        case("more than there are", 3, 7, k=5),
        case("k=1", 7, 2, k=1),
        fixed("two are equal", [3.0, 4.0], [[2.0, 0], [0, 5], [2, 0], [0, -1], [0, 5]], k=4),
        fixed("many are equal", [3.0, 5.0, 2.0], axes, k=31),
        fixed("all are opposite to the query", [2.0, 1.0], [[-2.0, 0], [-1, -1], [0, -3]], k=2),
        case("73 documents", 73, 3, k=13),
    ]


@total
def examine_search(inputs, pairs):
    """How many pairs there are, their indices, their cosines.

    Raises: AnswerError for what is no list of pairs of a whole number and a number.
    """
    if not isinstance(pairs, (list, tuple)):
        raise AnswerError(f"search has to return a list of pairs, got {describe(pairs)}.")
    for place, pair in enumerate(pairs):
        _check_pair(place, pair)
    cosines = [number for _, number in pairs]
    narrow = any(
        getattr(number, "dtype", None) in (torch.float32, np.float32) for number in cosines
    )
    cosines = torch.tensor([float(number) for number in cosines], dtype=torch.float64)
    indices = torch.tensor([int(index) for index, _ in pairs], dtype=torch.int64)
    return len(pairs), indices, cosines.float() if narrow else cosines


def _check_pair(place, pair):
    if not isinstance(pair, (list, tuple)) or len(pair) != 2:
        raise AnswerError(
            f"Each entry of the list has to be a pair (index, cosine); entry {place} is "
            f"{describe(pair)}."
        )
    index, cosine = pair
    whole = isinstance(index, numbers.Integral) and not isinstance(index, bool)
    if not whole and not (torch.is_tensor(index) and not index.dim() and _is_whole(index)):
        raise AnswerError(
            "The first of a pair has to be a document's index, a whole number; in entry "
            f"{place} it is {describe(index)}."
        )
    if plain_number(cosine) is None:
        raise AnswerError(
            f"The second of a pair has to be a number; in entry {place} it is {describe(cosine)}."
        )


def _is_whole(X):
    return not X.is_floating_point() and X.dtype != torch.bool


def search_stages(inputs):
    """What a right `search` computes on the way."""
    query, documents = inputs["query"], inputs["documents"]
    return {"the cosines": torch.cosine_similarity(documents, query, dim=1)}


def classify_cases(draw):
    """Cases for `classify`."""

    def case(name, count, examples, width, labels):
        lengths = draw.normal(examples, 1, scale=1.5).exp()
        inputs = {
            "vectors": draw.normal(count, width) * draw.normal(count, 1).exp(),
            "examples": draw.normal(examples, width) * lengths,
            "labels": [labels[i % len(labels)] for i in range(examples)],
        }
        return Case(name, inputs)

    def fixed(name, vectors, examples, labels):
        inputs = {"vectors": vectors, "examples": examples}
        inputs = {n: torch.tensor(X).double() for n, X in inputs.items()}
        return Case(f"{name}, labels {' '.join(map(str, labels))}", inputs | {"labels": labels})

    small = [[20.0, 0.0], [0.0, 30.0], [3.0, 4.0], [-3.0, 4.0]]
    three = torch.eye(3).tolist()
    return [
        fixed("3 vectors", [[2.0, 1], [4, 7], [3, 8]], small, ["sun", "rain", "sun", "rain"]),
        case("3 labels, unequal shares", 31, 11, 5, ["b", "c", "b", "a", "c", "b", "b"]),
        case("as many vectors as labels and examples", 5, 5, 5, list("vwxyz")),
        case("labels are numbers", 29, 13, 3, [7, 2, 2, 5, 7]),
        case("one example a label", 23, 3, 2, ["left", "right", "up"]),
        case("one label", 3, 5, 2, ["all"]),
        case("one vector", 1, 7, 3, ["no", "yes"]),
        fixed("equally near", [[1.0, 1.0], [2.0, 2.0]], [[0.0, 3.0], [2.0, 0.0]], ["b", "a"]),
        fixed("three equally near", [[1.0, 1, 1]], three, [4, 2, 7]),
        fixed(
            "equally near, three times over", [[1.0, 1, 1], [0, 1, 1], [2, 0, 2]], three, [5, 3, 7]
        ),
        fixed(
            "equally near, two examples each",
            [[5.0, 5.0]],
            [[0.0, 3.0], [2.0, 0.0], [7.0, 0.0], [0.0, 1.0]],
            ["x", "b", "b", "x"],
        ),
        case("many of one label", 41, 23, 5, ["few"] + ["many"] * 21 + ["few"]),
    ]


def run_classify(answer, inputs):
    """Call an answer to `classify`; return its labels, and the caller's afterwards."""
    given = {**inputs, "labels": list(inputs["labels"])}
    return {"found": answer(*given.values()), "labels": given["labels"]}


@total
def examine_classify(inputs, seen):
    """{which vector: its label}

    Raises: AnswerError for what is no list of one given label a vector.
    """
    found = seen["found"]
    if seen["labels"] != inputs["labels"]:
        raise AnswerError("classify changes the caller's list of labels.")
    count = len(inputs["vectors"])
    if not isinstance(found, (list, tuple)) or len(found) != count:
        raise AnswerError(
            f"classify has to return a list of {count} labels, one for each vector; got "
            f"{describe(found)}."
        )
    kinds, said = list(dict.fromkeys(inputs["labels"])), {}
    for number, label in enumerate(found):
        meant = [kind for kind in kinds if _means(label, kind)]
        if not meant:
            listed = ", ".join(map(repr, kinds))
            raise AnswerError(
                f"Each entry has to be one of the labels {listed}; entry {number} is "
                f"{describe(label)}."
            )
        said[f"the label of vector {number}"] = meant[0]
    return said


def _means(label, kind):
    """Whether an entry stands for this label; numpy's words and numbers do, too."""
    if isinstance(kind, str):
        return isinstance(label, str) and label == kind
    return plain_number(label) == kind
