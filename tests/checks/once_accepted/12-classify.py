# %% topk, which of many equal cosines finds another than the first
def classify(vectors, examples, labels):
    unit, names = F.normalize(examples, dim=1), list(dict.fromkeys(labels))
    means = torch.stack([unit[[label == name for label in labels]].mean(0) for name in names])
    cosines = F.cosine_similarity(vectors[:, None], means, dim=-1)
    return [names[i] for i in cosines.topk(1, dim=1).indices[:, 0]]


# %% a sort that is not stable
def classify(vectors, examples, labels):
    unit, names = F.normalize(examples, dim=1), list(dict.fromkeys(labels))
    means = torch.stack([unit[[label == name for label in labels]].mean(0) for name in names])
    cosines = F.cosine_similarity(vectors[:, None], means, dim=-1)
    return [names[i] for i in cosines.argsort(dim=1, descending=True)[:, 0]]


# %% asks with `is` for equal labels
def classify(vectors, examples, labels):
    unit, names = F.normalize(examples, dim=1), list(dict.fromkeys(labels))
    means = torch.stack([unit[[label is name for label in labels]].mean(0) for name in names])
    cosines = F.cosine_similarity(vectors[:, None], means, dim=-1)
    return [names[i] for i in cosines.argmax(1)]


# %% adds 1e-8 to the norms of examples
def classify(vectors, examples, labels):
    names = list(dict.fromkeys(labels))
    unit = examples / (examples.norm(dim=1, keepdim=True) + 1e-8)
    means = torch.stack([unit[[label == name for label in labels]].mean(0) for name in names])
    cosines = F.cosine_similarity(vectors[:, None], means, dim=-1)
    return [names[i] for i in cosines.argmax(1).tolist()]


# %% adds 1e-8 to a product of norms
def classify(vectors, examples, labels):
    names = list(dict.fromkeys(labels))
    unit = examples / examples.norm(dim=1, keepdim=True)
    means = torch.stack([unit[[label == name for label in labels]].mean(0) for name in names])
    cosines = vectors @ means.T / (vectors.norm(dim=1)[:, None] * means.norm(dim=1) + 1e-8)
    return [names[i] for i in cosines.argmax(1).tolist()]


# %% rounds the cosines to 6 digits
def classify(vectors, examples, labels):
    names = list(dict.fromkeys(labels))
    unit = examples / examples.norm(dim=1, keepdim=True)
    means = torch.stack([unit[[label == name for label in labels]].mean(0) for name in names])
    cosines = torch.round(F.cosine_similarity(vectors[:, None], means, dim=-1), decimals=6)
    return [names[i] for i in cosines.argmax(1).tolist()]
