"""Right search with parts to replace, and the known mistakes of lesson 12 in the cosines."""

import torch

from mha_course.checks.mistakes.weighing import same
from mha_course.checks.task import Mistake

__all__ = ["COSINES", "SEARCHING", "best_first", "build_search", "unit"]

SEARCHING = "Search by meaning"


def unit(X):
    """Each vector at length 1."""
    return X / X.norm(dim=-1, keepdim=True)


def best_first(scores):
    """The indices in the order that is asked for."""
    return scores.argsort(descending=True, stable=True).tolist()


def build_search(
    score=lambda query, documents: unit(documents) @ unit(query),
    rank=same,
    order=best_first,
    take=lambda indices, k: indices[:k],
    pair=lambda index, cosine: (index, cosine),
    default=3,
):
    """Return an answer to `12-search`, right unless a part is replaced.

    score: a number for each document. rank: what is sorted, from the scores. order: of the
    indices. take: which are returned. pair: of an index and its score.
    """

    def search(query, documents, k=default):
        scores = score(query, documents)
        indices = take(order(rank(scores)), k)
        return [pair(index, scores[index].item()) for index in indices]

    return search


def _by_distance(query, documents, k=3):
    distances = (documents - query).norm(dim=1)
    order = distances.argsort(stable=True)[:k].tolist()
    return [(index, distances[index].item()) for index in order]


def _distance_order(query, documents, k=3):
    cosines = unit(documents) @ unit(query)
    order = (documents - query).norm(dim=1).argsort(stable=True)[:k].tolist()
    return [(index, cosines[index].item()) for index in order]


def _dot_order(query, documents, k=3):
    cosines = unit(documents) @ unit(query)
    return [(index, cosines[index].item()) for index in best_first(documents @ query)[:k]]


COSINES = (
    Mistake(
        "dot-product",
        "Your numbers are dot products, not cosines.",
        "A long vector then wins by its length alone. The cosine divides by both lengths and looks "
        "only at where the vectors point.",
        SEARCHING,
        parts={"score": lambda query, documents: documents @ query},
    ),
    Mistake(
        "query-not-normalised",
        "You divide by the documents' lengths, not by the query's.",
        "The order is right, since the query's length is the same for all. The numbers are not "
        "cosines: they can exceed 1.",
        SEARCHING,
        parts={"score": lambda query, documents: unit(documents) @ query},
    ),
    Mistake(
        "documents-not-normalised",
        "You divide by the query's length, not by the documents'.",
        "A long document then wins by its length alone.",
        SEARCHING,
        parts={"score": lambda query, documents: documents @ unit(query)},
    ),
    Mistake(
        "normalised-over-documents",
        "You bring the columns to length 1: each feature over all documents.",
        "It is each document that has to have length 1. Which axis of (N, D) runs along one?",
        SEARCHING,
        parts={"score": lambda query, documents: (documents / documents.norm(dim=0)) @ unit(query)},
    ),
    Mistake(
        "divided-by-one-length",
        "You divide by the length of all documents together.",
        "Each document has a length of its own.",
        SEARCHING,
        parts={"score": lambda query, documents: (documents / documents.norm()) @ unit(query)},
    ),
    Mistake(
        "lengths-squared",
        "You divide by the squares of the lengths.",
        "The length is the root of the sum of squares.",
        SEARCHING,
        parts={
            "score": lambda query, documents: (
                documents @ query / (documents.square().sum(1) * query.square().sum())
            )
        },
    ),
    Mistake(
        "distances",
        "You return distances, the smallest first.",
        "A distance grows with the vectors' lengths. Asked for is the cosine, and its largest "
        "values come first.",
        SEARCHING,
        _by_distance,
    ),
    Mistake(
        "distances-negated",
        "Your numbers are distances with a minus sign.",
        "The nearest comes first, and yet a distance grows with the vectors' lengths. Asked for is "
        "the cosine.",
        SEARCHING,
        parts={"score": lambda query, documents: -(documents - query).norm(dim=1)},
    ),
    Mistake(
        "ordered-by-distance",
        "Your numbers are cosines, and the order is by distance.",
        "The two agree only where all vectors have one length. Order by the cosines.",
        SEARCHING,
        _distance_order,
    ),
    Mistake(
        "ordered-by-dot-product",
        "Your numbers are cosines, and the order is by dot product.",
        "A long vector then wins by its length alone. Order by the cosines.",
        SEARCHING,
        _dot_order,
    ),
    Mistake(
        "angles",
        "Your numbers are angles.",
        "The cosine of the angle was asked for, which comes without acos.",
        SEARCHING,
        parts={
            "score": lambda query, documents: (unit(documents) @ unit(query)).clamp(-1, 1).acos(),
            "rank": lambda scores: -scores,
        },
    ),
    Mistake(
        "one-minus-cosine",
        "Your numbers are 1 minus the cosine.",
        "Some libraries call that the cosine distance. Asked for is the cosine itself, 1 for the "
        "same direction.",
        SEARCHING,
        parts={
            "score": lambda query, documents: 1 - unit(documents) @ unit(query),
            "rank": lambda scores: -scores,
        },
    ),
    Mistake(
        "sign-lost",
        "You take the cosines without their sign.",
        "A document that points the opposite way has cosine -1, and is the last to be found.",
        SEARCHING,
        parts={"score": lambda query, documents: (unit(documents) @ unit(query)).abs()},
    ),
    Mistake(
        "ordered-without-sign",
        "You order the cosines by their size without the sign.",
        "A document that points the opposite way has cosine -1, and is the last to be found.",
        SEARCHING,
        parts={"rank": torch.abs},
    ),
)
