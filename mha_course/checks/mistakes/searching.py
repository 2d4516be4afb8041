"""The known mistakes of lesson 12 in searching by cosine."""

import torch

from mha_course.checks.mistakes.cosines import COSINES, SEARCHING, build_search, unit
from mha_course.checks.task import Mistake

__all__ = ["SEARCH", "build_search"]


def _numbered_in_order(query, documents, k=3):
    """The place in the sorted list for the index."""
    return [
        (place, cosine) for place, (_, cosine) in enumerate(build_search()(query, documents, k))
    ]


def _last_of_equals(scores):
    count = len(scores)
    return [count - 1 - i for i in scores.flip(0).argsort(descending=True, stable=True).tolist()]


def _topk(query, documents, k=3):
    found = (unit(documents) @ unit(query)).topk(min(k, len(documents)))
    return list(zip(found.indices.tolist(), found.values.tolist(), strict=True))


def _topk_past_the_end(query, documents, k=3):
    found = (unit(documents) @ unit(query)).topk(k)
    return list(zip(found.indices.tolist(), found.values.tolist(), strict=True))


def _equals_anyhow(inputs, value):
    """Whether a result is right but for the order of equal ones."""
    count, indices, cosines = _read(inputs)
    if not isinstance(value, tuple) or value[0] != count or value[2].shape != cosines.shape:
        return False
    every = unit(inputs["documents"]) @ unit(inputs["query"])
    found = value[1]
    if len(set(found.tolist())) != count or bool(((found < 0) | (found >= len(every))).any()):
        return False
    near = torch.isclose(value[2].double(), cosines, rtol=0, atol=1e-6)
    return bool(near.all() and torch.isclose(every[found], cosines, rtol=0, atol=1e-9).all())


def _read(inputs):
    """What a right answer gives: how many, the indices, the cosines."""
    pairs = build_search()(*inputs.values())
    indices, cosines = zip(*pairs, strict=True)
    return len(pairs), torch.tensor(indices), torch.tensor(cosines, dtype=torch.float64)


def _to_the_end(indices, k):
    return [indices[place] for place in range(k)]


SEARCH = (
    *COSINES,
    Mistake(
        "worst-first",
        "You begin with the smallest cosine.",
        "argsort and sorted go upwards unless they are told otherwise. The most similar document "
        "comes first.",
        SEARCHING,
        parts={"order": lambda scores: scores.argsort(stable=True).tolist()},
    ),
    Mistake(
        "best-last",
        "You return the right k documents, the best one last.",
        "The best comes first.",
        SEARCHING,
        parts={"take": lambda indices, k: indices[:k][::-1]},
    ),
    Mistake(
        "in-order-of-documents",
        "You return the right k in the order in which they stand among the documents.",
        "The best comes first.",
        SEARCHING,
        parts={"take": lambda indices, k: sorted(indices[:k])},
    ),
    Mistake(
        "not-sorted",
        "You return the first k documents as they stand.",
        "The k best were asked for, the best one first.",
        SEARCHING,
        parts={"order": lambda scores: list(range(len(scores)))},
    ),
    Mistake(
        "last-of-equals-first",
        "Of documents with the same cosine you put the later one first.",
        "Turning a sorted list round turns equal ones round, too. The earlier one was asked for: "
        "argsort has an argument for keeping their order.",
        SEARCHING,
        parts={"order": _last_of_equals},
    ),
    Mistake(
        "equals-anyhow",
        "Documents with the same cosine come in any order.",
        "topk and argsort promise nothing about equal ones, unless a sort is asked to be stable. "
        "The earlier one comes first.",
        SEARCHING,
        _topk,
        shows=_equals_anyhow,
    ),
    Mistake(
        "topk-past-the-end",
        "topk ends in an error where there are fewer than k documents.",
        "Then all of them are returned. (Nor does topk promise anything about equal ones, and "
        "there the earlier was asked for.)",
        SEARCHING,
        _topk_past_the_end,
    ),
    Mistake(
        "past-the-end",
        "Where there are fewer than k documents your function ends in an error.",
        "Then all of them are returned. A slice [:k] stops at the end by itself.",
        SEARCHING,
        parts={"take": _to_the_end},
    ),
    Mistake(
        "k-ignored",
        "You return all documents, whatever k is.",
        "k says how many were asked for.",
        SEARCHING,
        parts={"take": lambda indices, k: indices},
    ),
    Mistake(
        "always-3",
        "You return 3 documents, whatever k is.",
        "3 is what k is when nobody says otherwise.",
        SEARCHING,
        parts={"take": lambda indices, k: indices[:3]},
    ),
    Mistake(
        "best-only",
        "You return one document, whatever k is.",
        "k says how many were asked for.",
        SEARCHING,
        parts={"take": lambda indices, k: indices[:1]},
    ),
    Mistake(
        "one-too-many",
        "You return one document more than was asked for.",
        "A slice [:k] has k entries, 0 to k - 1.",
        SEARCHING,
        parts={"take": lambda indices, k: indices[: k + 1]},
    ),
    Mistake(
        "best-skipped",
        "You leave out the best document.",
        "Counting begins at 0. (Where the query itself is among the documents one skips it; here "
        "it is not.)",
        SEARCHING,
        parts={"take": lambda indices, k: indices[1 : k + 1]},
    ),
    Mistake(
        "counted-from-1",
        "You count documents from 1.",
        "documents[index] has to be the one that was found, and Python counts from 0.",
        SEARCHING,
        parts={"pair": lambda index, cosine: (index + 1, cosine)},
    ),
    Mistake(
        "rank-for-index",
        "Your index is the place in the sorted list: 0, 1, 2 and so on.",
        "It should say which of the documents it is. After sorting, who remembers where each "
        "cosine came from?",
        SEARCHING,
        _numbered_in_order,
    ),
    Mistake(
        "cosine-first",
        "Your pairs begin with the cosine.",
        "The index comes first.",
        SEARCHING,
        parts={"pair": lambda index, cosine: (cosine, index)},
    ),
    Mistake(
        "indices-only",
        "You return the indices without their cosines.",
        "A list of pairs was asked for, index and cosine.",
        SEARCHING,
        parts={"pair": lambda index, cosine: index},
    ),
    Mistake(
        "cosines-only",
        "You return the cosines without saying which documents they belong to.",
        "A list of pairs was asked for, index and cosine.",
        SEARCHING,
        parts={"pair": lambda index, cosine: cosine},
    ),
    Mistake(
        "rounded",
        "You round the cosines.",
        "Rounding is for printing. The numbers are wanted as they are.",
        SEARCHING,
        parts={"pair": lambda index, cosine: (index, round(cosine, 2))},
    ),
)
