"""Answers of lesson 12 about texts: means, search, labels."""

import math

import numpy as np
import torch
from torch.nn import functional as F


def mean_by_weights(hidden, attention_mask):
    weights = attention_mask / attention_mask.sum(1, keepdim=True)
    return torch.einsum("bl,bld->bd", weights.to(hidden.dtype), hidden)


def mean_by_nan(hidden, attention_mask):
    return hidden.masked_fill(attention_mask[:, :, None] == 0, torch.nan).nanmean(1)


def mean_by_loop(hidden, attention_mask):
    result = torch.zeros(len(hidden), hidden.shape[2], dtype=hidden.dtype)
    for b in range(len(hidden)):
        words = [hidden[b, i] for i in range(hidden.shape[1]) if attention_mask[b, i]]
        result[b] = sum(words) / len(words)
    return result


def mean_by_rows(hidden, attention_mask):
    pairs = zip(hidden, attention_mask.bool(), strict=True)
    return torch.stack([text[words].mean(0) for text, words in pairs])


def mean_by_product(hidden, attention_mask):
    mask = attention_mask.unsqueeze(1).to(hidden.dtype)  # (B, 1, L)
    return torch.bmm(mask, hidden)[:, 0] / mask.sum(-1).clamp(min=1e-9)


def mean(weigh, divide=lambda total, mask: total / mask.sum(1, keepdim=True)):
    return lambda hidden, attention_mask: divide(weigh(hidden, attention_mask), attention_mask)


def summed(hidden, mask):
    return (hidden * mask[..., None]).sum(1)


def search_by_argsort(query, documents, k=3):
    cosines = F.normalize(documents, dim=1) @ F.normalize(query, dim=0)
    order = torch.argsort(cosines, descending=True, stable=True)[:k]
    return [(i.item(), cosines[i].item()) for i in order]


def search_by_sorted(query, documents, k=3):
    pairs = enumerate(F.cosine_similarity(documents, query[None]).tolist())
    return sorted(pairs, key=lambda pair: -pair[1])[:k]


def search_by_loop(query, documents, k=3):
    length = math.sqrt(sum(x * x for x in query.tolist()))
    scored = []
    for index, row in enumerate(documents.tolist()):
        dot = sum(x * y for x, y in zip(row, query.tolist(), strict=True))
        scored.append((-dot / length / math.sqrt(sum(x * x for x in row)), index))
    return [(index, -score) for score, index in sorted(scored)][:k]


def search_one_by_one(query, documents, k=3):
    """The largest is taken out k times; tensors in the pairs."""
    cosines = documents @ query / (documents.norm(dim=1) * query.norm())
    left, found = cosines.clone(), []
    while len(found) < min(k, len(documents)):
        best = max(range(len(left)), key=lambda i: left[i].item())
        found.append((best, cosines[best]))
        left[best] = -torch.inf
    return tuple(found)


def search_by_numpy(query, documents, k=3):
    q, d = query.numpy(), documents.numpy()
    cosines = d @ q / np.linalg.norm(d, axis=1) / np.linalg.norm(q)
    return [[i, cosines[i]] for i in np.argsort(-cosines, kind="stable")[:k]]


def search_by_topk_of_ranks(query, documents, k=3):
    """Equal ones are told apart by a rank of whole numbers."""
    cosines = torch.cosine_similarity(documents, query, dim=-1)
    ranks = (-cosines).unique(return_inverse=True)[1] * len(cosines) + torch.arange(len(cosines))
    order = (-ranks).topk(min(k, len(ranks))).indices
    return list(zip(order.tolist(), cosines[order].tolist(), strict=True))


def search(score=None, choose=lambda cosines, k: cosines.argsort(descending=True, stable=True)[:k]):
    def answer(query, documents, k=3):
        cosines = F.cosine_similarity(documents, query[None])
        cosines = cosines if score is None else score(query, documents)
        return [(int(i), float(cosines[i])) for i in choose(cosines, k)]

    return answer


def softened(small):
    """Scores with something added, so that no norm can be 0."""
    return {
        "the product": lambda query, documents: (
            documents @ query / (documents.norm(dim=1) * query.norm() + small)
        ),
        "each": lambda query, documents: (
            documents @ query / (documents.norm(dim=1) + small) / (query.norm() + small)
        ),
    }


def classify_until_truthy(vectors, examples, labels):
    """`if not best` where `best is None` is meant."""
    unit, found = F.normalize(examples, dim=1), []
    for vector in vectors:
        best, top = None, -2.0
        for name in dict.fromkeys(labels):
            middle = unit[[label == name for label in labels]].mean(0)
            cosine = F.cosine_similarity(vector, middle, dim=0).item()
            if not best or cosine > top:
                best, top = name, cosine
        found.append(best)
    return found


def classify_by_blocks(vectors, examples, labels):
    names = list(dict.fromkeys(labels))
    size = len(labels) // len(names)
    blocks = F.normalize(examples, dim=1)[: size * len(names)].split(size)
    means = F.normalize(torch.stack([block.mean(0) for block in blocks]), dim=1)
    return [names[i] for i in (F.normalize(vectors, dim=1) @ means.T).argmax(1)]


def classify_by_dict(vectors, examples, labels):
    sums = {}
    for example, label in zip(F.normalize(examples, dim=1), labels, strict=True):
        sums[label] = sums.get(label, 0) + example
    names, means = list(sums), torch.stack(list(sums.values()))
    table = F.normalize(vectors, dim=1) @ F.normalize(means, dim=1).T
    return [names[i] for i in table.argmax(1)]


def classify_by_loop(vectors, examples, labels):
    names, means = [], []
    for name in labels:
        if name not in names:
            names.append(name)
            own = [x / x.norm() for x, label in zip(examples, labels, strict=True) if label == name]
            means.append(sum(own) / len(own))
    result = []
    for vector in vectors:
        best, found = -2.0, None
        for name, middle in zip(names, means, strict=True):
            cosine = (vector @ middle / middle.norm()).item() / vector.norm().item()
            if cosine > best:
                best, found = cosine, name
        result.append(found)
    return result


def classify_by_product(vectors, examples, labels):
    """A table of who is who sums the examples; the vectors' lengths do not matter."""
    names = list(dict.fromkeys(labels))
    member = torch.tensor([[name == label for label in labels] for name in names])
    sums = member.to(examples.dtype) @ (examples / examples.norm(dim=1, keepdim=True))
    table = torch.einsum("nd,kd->nk", vectors, sums / sums.norm(dim=1)[:, None])
    return [names[int(column)] for column in table.max(dim=1).indices]


def classify_by_distance(vectors, examples, labels):
    """Between vectors of length 1 the nearest is the one of the largest cosine."""
    names = sorted(set(labels), key=labels.index)
    rows = [[i for i, label in enumerate(labels) if label == name] for name in names]
    means = torch.stack([F.normalize(examples, dim=1)[row].mean(0) for row in rows])
    apart = F.normalize(vectors, dim=1)[:, None] - F.normalize(means, dim=1)
    return tuple(names[i] for i in apart.square().sum(2).argmin(1).tolist())


def classify_by_max(vectors, examples, labels):
    unit = F.normalize(examples, dim=1)
    names = list(dict.fromkeys(labels))
    means = {n: unit[[label == n for label in labels]].mean(0) for n in names}

    def nearness(vector, name):
        return float(torch.cosine_similarity(vector, means[name], dim=0))

    return [max(names, key=lambda name: nearness(vector, name)) for vector in vectors]


def classify(scale=F.normalize, join=lambda own: own.mean(0), table=None, end=list):
    """An answer made of parts, right without any."""

    def answer(vectors, examples, labels):
        names = list(dict.fromkeys(labels))
        scaled = scale(examples)
        means = [join(scaled[[label == name for label in labels]]) for name in names]
        means = torch.stack(means)
        scores = F.normalize(vectors) @ F.normalize(means).T
        if table:
            scores = table(vectors, means)
        return end(names[i] for i in scores.argmax(1))

    return answer
