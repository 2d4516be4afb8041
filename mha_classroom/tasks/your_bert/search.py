"""Task 12.5, search: the documents most like a query."""

import numbers

import torch

from mha_classroom.checks.examining import total
from mha_classroom.checks.showing import describe, plain_number
from mha_classroom.checks.task import (
    AnswerError,
    Case,
    Task,
    in_float32,
    known,
    read_again,
    unchanged,
)
from mha_classroom.tasks.seeing_attention.most_attended import floats_of
from mha_course import sentences


def search_cases(draw):
    def case(name, count, width, **k):
        norms = draw.normal(count, 1, scale=1.5).exp()
        documents = draw.normal(count, width) * norms
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
        fixed("nearly equal", [1.0, 0.0], [[3.0, 4], [3, 3.99999], [3, 4.00001], [0, 1]], k=2),
        fixed("two are equal", [3.0, 4.0], [[2.0, 0], [0, 5], [2, 0], [0, -1], [0, 5]], k=4),
        fixed("many are equal", [3.0, 5.0, 2.0], axes, k=31),
        fixed("all are opposite to the query", [3.0, 4.0], [[-2.0, 0], [-6, -8], [0, -3]], k=3),
        case("73 documents", 73, 3, k=13),
        _short(draw),
        in_float32(fixed("one document, numbers in float32", [2.0], [[-4.0]], k=2)),
    ]


def _short(draw):
    """Vectors whose norms are hardly above the least that is allowed."""
    norms = torch.tensor([2e-6, 3e-6, 1e-5, 1e-4, 1e-3, 1.0, 50.0]).double()[:, None]
    inputs = {"query": 3e-6 * unit(draw.normal(5)), "documents": norms * unit(draw.normal(7, 5))}
    return Case("norms from 2e-6 on", inputs | {"k": 7})


def search_stages(inputs):
    query, documents = inputs["query"], inputs["documents"]
    return {"the cosines": torch.cosine_similarity(documents, query, dim=1)}


@total
def examine_search(inputs, pairs):
    """How many pairs there are, their indices, their cosines.

    Raises: AnswerError for what is no list of pairs of a whole number and a number.
    """
    if not isinstance(pairs, (list, tuple)):
        raise AnswerError(f"search has to return a list of pairs, got {describe(pairs)}.")
    for place, pair in enumerate(pairs):
        _check_pair(place, pair)
    indices = torch.tensor([int(index) for index, _ in pairs], dtype=torch.int64)
    return len(pairs), indices, floats_of([cosine for _, cosine in pairs]).double()


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


def unit(X):
    """Each vector divided by its norm."""
    return X / X.norm(dim=-1, keepdim=True)


def softened(query, documents, least):
    """Ways to keep a norm away from 0: cosines that `least` makes too small, (N,) of a query (d,),
    and (M, N) of queries (M, d)."""
    dots = query @ documents.mT
    own, its = documents.norm(dim=-1), query.norm(dim=-1, keepdim=True)
    for add in (lambda X: X + least, lambda X: X.clamp(min=least)):
        yield dots / add(own * its)
        yield dots / (add(own) * add(its))
        yield dots / (add(own) * its)
        yield dots / (own * add(its))
        yield dots / (add(own.square()) * add(its.square())).sqrt()


def _best_first(scores):
    """The indices in the order that is asked for."""
    return scores.argsort(descending=True, stable=True).tolist()


def build_search(
    score=lambda query, documents: unit(documents) @ unit(query),
    rank=unchanged,
    order=_best_first,
    take=lambda indices, k: indices[:k],
    pair=lambda index, cosine: (index, cosine),
):
    """score: a number for each document. rank: what is sorted, from the scores. order: of the
    indices. take: which are returned. pair: of an index and its score.
    """

    def search(query, documents, k=3):
        scores = score(query, documents)
        indices = take(order(rank(scores)), k)
        return [pair(index, scores[index].item()) for index in indices]

    return search


def _by_distance(query, documents, k=3):
    distances = (documents - query).norm(dim=1)
    order = distances.argsort(stable=True)[:k].tolist()
    return [(index, distances[index].item()) for index in order]


def _ordered_by(nearness):
    """Cosines, but another order: the largest nearness first."""

    def search(query, documents, k=3):
        cosines = unit(documents) @ unit(query)
        order = _best_first(nearness(query, documents))[:k]
        return [(index, cosines[index].item()) for index in order]

    return search


def _numbered_in_order(query, documents, k=3):
    """The place in the sorted list for the index."""
    return [
        (place, cosine) for place, (_, cosine) in enumerate(build_search()(query, documents, k))
    ]


def _last_of_equals(scores):
    count = len(scores)
    return [count - 1 - i for i in scores.flip(0).argsort(descending=True, stable=True).tolist()]


def _found_by_number(query, documents, k=3):
    cosines = (unit(documents) @ unit(query)).tolist()
    return [(cosines.index(value), value) for value in sorted(cosines, reverse=True)[:k]]


def _only_above_0(query, documents, k=3):
    pairs = build_search()(query, documents, len(documents))
    return [pair for pair in pairs if pair[1] > 0][:k]


def _side_by_side(as_list, indices_first):
    """Two sequences, as topk returns them."""

    def search(query, documents, k=3):
        cosines = unit(documents) @ unit(query)
        both = cosines.topk(min(k, len(cosines)))
        both = [X.tolist() for X in both] if as_list else list(both)
        return both[::-1] if indices_first else both

    return search


def _topk(query, documents, k=3):
    found = (unit(documents) @ unit(query)).topk(k)
    return list(zip(found.indices.tolist(), found.values.tolist(), strict=True))


def _anyhow(smallest_first=False):
    """Whether a result has the cosines that are asked for, or the smallest, equal ones in any
    order."""

    def shows(inputs, value):
        every = unit(inputs["documents"].double()) @ unit(inputs["query"].double())
        cosines = every.sort(descending=not smallest_first).values[: inputs.get("k", 3)]
        count = len(cosines)
        if not isinstance(value, tuple) or value[0] != count or value[2].shape != cosines.shape:
            return False
        found = value[1]
        if len(set(found.tolist())) != count or bool(((found < 0) | (found >= len(every))).any()):
            return False
        near = torch.isclose(value[2].double(), cosines, rtol=0, atol=1e-6)
        return bool(near.all() and torch.isclose(every[found], cosines, rtol=0, atol=1e-9).all())

    return shows


def _is_rounded(inputs, value):
    """Whether the cosines are rounded, before they are ordered or afterwards."""
    every = unit(inputs["documents"].double()) @ unit(inputs["query"].double())
    for digits in range(1, 6):
        rounded = every.round(decimals=digits)
        for order in (_best_first(every), _best_first(rounded)):
            order = order[: inputs.get("k", 3)]
            if value[0] == len(order) and torch.equal(value[1], torch.tensor(order)):
                if torch.allclose(value[2].double(), rounded[order], rtol=0, atol=1e-7):
                    return True
    return False


def _is_softened(inputs, value):
    """Whether the cosines are as a small number makes them that is added to the norms."""
    query, documents = inputs["query"].double(), inputs["documents"].double()
    for exponent in range(5, 17):
        for scores in softened(query, documents, 10.0**-exponent):
            order = _best_first(scores)[: inputs.get("k", 3)]
            if value[0] == len(order) and torch.equal(value[1], torch.tensor(order)):
                if torch.allclose(value[2].double(), scores[order], rtol=0, atol=1e-6):
                    return True
    return False


def _one_of_equals(first):
    """A dict with the cosine for its key: of documents with one cosine it keeps one."""

    def search(query, documents, k=3):
        found = {}
        for index, cosine in enumerate((unit(documents) @ unit(query)).tolist()):
            found[cosine] = found.get(cosine, index) if first else index
        return [(found[cosine], cosine) for cosine in sorted(found, reverse=True)[:k]]

    return search


SEARCH = {
    "dot-product": known(
        "Your numbers are dot products, not cosines.",
        "A vector with a large norm then wins for that reason alone. The cosine divides by both "
        "norms and looks only at where the vectors point.",
        score=lambda query, documents: documents @ query,
    ),
    "query-not-normalised": known(
        "You divide by the documents' norms, not by the query's.",
        "The order is right, since the query's norm is the same for all. The numbers are not "
        "cosines: they can exceed 1.",
        score=lambda query, documents: unit(documents) @ query,
    ),
    **{
        f"{which}-of-equals-only": known(
            "Of documents with the same cosine you return one: do you keep them in a dict or a "
            "set, with the cosine for the key, or leave out a cosine that is there already?",
            "Two documents can be equally near, and each of them counts. A cosine does not say "
            "which document it is.",
            wrong=_one_of_equals(which == "first"),
        )
        for which in ("first", "last")
    },
    "documents-not-normalised": known(
        "You divide by the query's norm, not by the documents'.",
        "A document with a large norm then wins for that reason alone.",
        score=lambda query, documents: documents @ unit(query),
    ),
    "normalised-over-documents": known(
        "You divide the columns by their norms: each feature over all documents.",
        "It is each document that has to have norm 1. Which axis of (N, d_model) runs along one?",
        score=lambda query, documents: (documents / documents.norm(dim=0)) @ unit(query),
    ),
    "divided-by-one-norm": known(
        "You divide by the norm of all documents together.",
        "Each document has a norm of its own.",
        score=lambda query, documents: (documents / documents.norm()) @ unit(query),
    ),
    "norms-squared": known(
        "You divide by the squares of the norms, or by the norms twice.",
        "The norm is the root of the sum of squares, and each norm divides once.",
        score=lambda query, documents: (
            documents @ query / (documents.square().sum(1) * query.square().sum())
        ),
    ),
    "distances": known(
        "You return distances, the smallest first.",
        "A distance grows with the vectors' norms. Asked for is the cosine, and its largest "
        "values come first.",
        wrong=_by_distance,
    ),
    "distances-negated": known(
        "Your numbers are distances with a minus sign.",
        "The nearest comes first, and yet a distance grows with the vectors' norms. Asked for is "
        "the cosine.",
        score=lambda query, documents: -(documents - query).norm(dim=1),
    ),
    "ordered-by-distance": known(
        "Your numbers are cosines, and the order is by distance.",
        "The two agree only where all vectors have one norm. Order by the cosines.",
        wrong=_ordered_by(lambda query, documents: -(documents - query).norm(dim=1)),
    ),
    "ordered-by-dot-product": known(
        "Your numbers are cosines, and the order is by dot product.",
        "A vector with a large norm then wins for that alone. Order by the cosines.",
        wrong=_ordered_by(lambda query, documents: documents @ query),
    ),
    "angles": known(
        "Your numbers are angles.",
        "The cosine of the angle was asked for, which comes without acos.",
        score=lambda query, documents: (unit(documents) @ unit(query)).clamp(-1, 1).acos(),
        rank=lambda scores: -scores,
    ),
    "one-minus-cosine": known(
        "Your numbers are 1 minus the cosine.",
        "Some libraries call that the cosine distance. Asked for is the cosine itself, 1 for the "
        "same direction.",
        score=lambda query, documents: 1 - unit(documents) @ unit(query),
        rank=lambda scores: -scores,
    ),
    "sign-lost": known(
        "You take the cosines without their sign.",
        "A document that points the opposite way has cosine -1, and is the last to be found.",
        score=lambda query, documents: (unit(documents) @ unit(query)).abs(),
    ),
    "ordered-without-sign": known(
        "You order the cosines by their size without the sign.",
        "A document that points the opposite way has cosine -1, and is the last to be found.",
        rank=torch.abs,
    ),
    "worst-first": known(
        "You begin with the smallest cosine.",
        "argsort and sorted go upwards unless they are told otherwise. The most similar document "
        "comes first.",
        order=lambda scores: scores.argsort(stable=True).tolist(),
        shows=_anyhow(smallest_first=True),
    ),
    "best-last": known(
        "You return the right k documents, the best one last.",
        "The best comes first.",
        take=lambda indices, k: indices[:k][::-1],
    ),
    "last-of-a-list-sorted-upwards": known(
        "You return the last k of a list that is sorted upwards: the best one comes last, and of "
        "documents with the same cosine the later one is kept.",
        "The best comes first, and of equal ones the earlier one. Sort downwards, keep the order "
        "of equal ones, and take the first k.",
        order=lambda scores: scores.argsort(stable=True).tolist(),
        take=lambda indices, k: indices[-k:],
    ),
    "in-order-of-documents": known(
        "You return the right k in the order in which they stand among the documents.",
        "The best comes first.",
        take=lambda indices, k: sorted(indices[:k]),
    ),
    "not-sorted": known(
        "You return the first k documents as they stand.",
        "The k best were asked for, the best one first.",
        order=lambda scores: list(range(len(scores))),
    ),
    "last-of-equals-first": known(
        "Of documents with the same cosine you put the later one first.",
        "The earlier one was asked for. Turning a sorted list round turns equal ones round, too, "
        "and in pairs of cosine and place the place is sorted as well. argsort has an argument for "
        "keeping the order of equal ones.",
        order=_last_of_equals,
    ),
    "found-by-number": known(
        "You sort the cosines and look up afterwards at which place each number stands.",
        "list.index and nonzero()[0] find the first always. Where two cosines are equal, the same "
        "document comes twice. Sort the places, not the numbers.",
        wrong=_found_by_number,
    ),
    "only-above-0": known(
        "You leave out documents whose cosine is not above 0.",
        "k of them were asked for, the most similar first, even if all point another way.",
        wrong=_only_above_0,
    ),
    **{
        f"two-{'lists' if as_list else 'tensors'}-{'indices' if first else 'cosines'}-first": known(
            "You return two sequences, the cosines and the indices, as topk does.",
            "Asked for is one list with a pair for each document that was found, (index, cosine). "
            "zip makes pairs of two lists.",
            wrong=_side_by_side(as_list, first),
        )
        for as_list in (True, False)
        for first in (True, False)
    },
    "equals-anyhow": known(
        "Documents with the same cosine come in any order.",
        "topk and argsort promise nothing about equal ones, unless a sort is asked to be stable. "
        "The earlier one comes first.",
        wrong=lambda query, documents, k=3: _topk(query, documents, min(k, len(documents))),
        shows=_anyhow(),
    ),
    "topk-past-the-end": known(
        "topk ends in an error where there are fewer than k documents.",
        "Then all of them are returned. (Nor does topk promise anything about equal ones, and "
        "there the earlier was asked for.)",
        wrong=_topk,
    ),
    "past-the-end": known(
        "Where there are fewer than k documents your function ends in an error.",
        "Then all of them are returned. A slice [:k] stops at the end by itself.",
        take=lambda indices, k: [indices[place] for place in range(k)],
    ),
    "k-ignored": known(
        "You return all documents, whatever k is.",
        "k says how many were asked for.",
        take=lambda indices, k: indices,
    ),
    "always-3": known(
        "You return 3 documents, whatever k is.",
        "3 is what k is when nobody says otherwise.",
        take=lambda indices, k: indices[:3],
    ),
    "best-only": known(
        "You return one document, whatever k is.",
        "k says how many were asked for.",
        take=lambda indices, k: indices[:1],
    ),
    "one-too-many": known(
        "You return one document more than was asked for.",
        "A slice [:k] has k entries, 0 to k - 1.",
        take=lambda indices, k: indices[: k + 1],
    ),
    "best-skipped": known(
        "You leave out the best document.",
        "Counting begins at 0. (Where the query itself is among the documents one skips it; here "
        "it is not.)",
        take=lambda indices, k: indices[1 : k + 1],
    ),
    "counted-from-1": known(
        "You count documents from 1.",
        "documents[index] has to be the one that was found, and Python counts from 0.",
        pair=lambda index, cosine: (index + 1, cosine),
    ),
    "rank-for-index": known(
        "Your index is the place in the sorted list: 0, 1, 2 and so on.",
        "It should say which of the documents it is. After sorting, who remembers where each "
        "cosine came from?",
        wrong=_numbered_in_order,
    ),
    "cosine-first": known(
        "Your pairs begin with the cosine.",
        "The index comes first.",
        pair=lambda index, cosine: (cosine, index),
    ),
    "indices-only": known(
        "You return the indices without their cosines.",
        "A list of pairs was asked for, index and cosine.",
        pair=lambda index, cosine: index,
    ),
    "cosines-only": known(
        "You return numbers alone, without saying which documents they belong to.",
        "A list of pairs was asked for, index and cosine.",
        pair=lambda index, cosine: cosine,
    ),
    "norms-made-larger": known(
        "Something small is added to the norms, or they are kept from getting that small. "
        "(cosine_similarity and normalize do that by themselves.)",
        "It should keep 0 from being divided by 0. Here no norm is 0, and a norm may be as small "
        "as 1e-6: next to that even a small number counts.",
        score=lambda query, documents: (
            documents @ query / (documents.norm(dim=1) * query.norm() + 1e-8)
        ),
        shows=_is_softened,
    ),
    "rounded": known(
        "You round the cosines.",
        "Rounding is for printing. The numbers are wanted as they are.",
        pair=lambda index, cosine: (index, round(cosine, 2)),
        shows=_is_rounded,
    ),
}

TASK = Task(
    "12-search",
    sentences.search,
    search_cases,
    examine=examine_search,
    returns=("the number of pairs", "the list of indices", "the list of cosines"),
    mistakes=read_again("Search by meaning", SEARCH),
    build=build_search,
    stages=search_stages,
    forbidden=("mha_course.sentences.search",),
    alone=("indices-only", "cosines-only", "cosine-first"),  # without pairs nothing else shows
    number=5,
)
