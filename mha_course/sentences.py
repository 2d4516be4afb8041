"""From the hidden states of words to one vector a text, and what can be done with it."""

import torch
from torch.nn import functional as F

__all__ = ["classify", "embed", "mean_pool", "search"]


def mean_pool(hidden, attention_mask):
    """The mean of each text's word vectors, padding left out.

    Shapes: hidden (B, L, d_model); attention_mask (B, L), 1 for a word and 0 for padding;
        returns (B, d_model).
    Raises: TypeError unless hidden is floating point; ValueError quoting shapes that do not fit,
        a mask with other numbers than 0 and 1, a text of padding alone, which has no mean.
    Source: Reimers and Gurevych 2019, section 3. Lesson: notebooks/12_your_bert.ipynb.
    """
    _check_floating("hidden", hidden, 3, "(B, L, d_model)")
    if attention_mask.shape != hidden.shape[:2]:
        shapes = f"{tuple(attention_mask.shape)} for hidden {tuple(hidden.shape)}"
        raise ValueError(f"attention_mask must be (B, L), got {shapes}")
    if not ((attention_mask == 0) | (attention_mask == 1)).all():
        raise ValueError("attention_mask must hold 0 and 1")
    counts = attention_mask.sum(1, keepdim=True)  # (B, 1)
    if not counts.all():
        raise ValueError(f"text {int((counts == 0).nonzero()[0, 0])} has no word, only padding")
    return (hidden * attention_mask.unsqueeze(2)).sum(1) / counts


@torch.no_grad()
def embed(texts, model, tokenizer, batch_size=32):
    """One vector of norm 1 a text: the mean of its words in the model's last hidden state.

    Shapes: texts, N strings; returns (N, hidden_size), in the order of the texts.
    Properties: texts of like length are read together, so that there is little padding.
    Raises: TypeError or ValueError quoting it for a text that the tokenizer refuses, or
        batch_size below 1.
    Source: Reimers and Gurevych 2019. Lesson: notebooks/12_your_bert.ipynb.
    """
    if batch_size < 1:
        raise ValueError(f"batch_size must be at least 1, got {batch_size}")
    texts = [texts] if isinstance(texts, str) else list(texts)
    order = sorted(range(len(texts)), key=lambda i: len(texts[i]))
    vectors = []
    for start in range(0, len(texts), batch_size):
        batch = tokenizer([texts[i] for i in order[start : start + batch_size]])
        hidden = model(**batch).last_hidden_state  # (B, L, hidden_size)
        vectors.append(F.normalize(mean_pool(hidden, batch["attention_mask"]), dim=1))
    if not vectors:
        raise ValueError("there must be at least one text, got none")
    back = torch.tensor(order).argsort()
    return torch.cat(vectors)[back]


def search(query, documents, k=3):
    """The k documents most like the query: pairs of index and cosine, best first.

    Shapes: query (d_model,); documents (N, d_model), of any norm; returns min(k, N) pairs.
    Properties: of two alike, the earlier comes first.
    Raises: TypeError unless both are floating point; ValueError quoting shapes that do not fit or
        k below 1.
    Lesson: notebooks/12_your_bert.ipynb.
    """
    _check_floating("query", query, 1, "(d_model,)")
    _check_floating("documents", documents, 2, "(N, d_model)")
    if query.shape[0] != documents.shape[1]:
        shapes = f"{tuple(query.shape)} and {tuple(documents.shape)}"
        raise ValueError(f"query and documents must have one width, got {shapes}")
    if k < 1:
        raise ValueError(f"k must be at least 1, got {k}")
    cosines = F.normalize(documents, dim=1) @ F.normalize(query, dim=0)  # (N,)
    best = cosines.argsort(descending=True, stable=True)[:k]
    return [(int(i), float(cosines[i])) for i in best]


def classify(vectors, examples, labels):
    """The label whose examples' mean points most nearly the way that each vector does.

    Shapes: vectors (N, d_model); examples (M, d_model); labels, M of them, of any kind that can
        be compared; returns a list of N labels.
    Properties: of two labels alike, the one seen first.
    Raises: TypeError unless both are floating point; ValueError quoting sizes that do not fit.
    Lesson: notebooks/12_your_bert.ipynb.
    """
    _check_floating("vectors", vectors, 2, "(N, d_model)")
    _check_floating("examples", examples, 2, "(M, d_model)")
    labels = list(labels)
    if len(labels) != len(examples) or not labels:
        raise ValueError(f"each example needs a label: {len(examples)} and {len(labels)}")
    if vectors.shape[1] != examples.shape[1]:
        shapes = f"{tuple(vectors.shape)} and {tuple(examples.shape)}"
        raise ValueError(f"vectors and examples must have one width, got {shapes}")
    kinds = list(dict.fromkeys(labels))
    rows = [torch.tensor([label == kind for label in labels]) for kind in kinds]
    means = torch.stack([F.normalize(examples, dim=1)[row].mean(0) for row in rows])  # (K, d_model)
    cosines = F.normalize(vectors, dim=1) @ F.normalize(means, dim=1).T  # (N, K)
    return [kinds[i] for i in cosines.argmax(1)]


def _check_floating(name, X, rank, meaning):
    if not torch.is_tensor(X) or not X.is_floating_point():
        kind = X.dtype if torch.is_tensor(X) else type(X).__name__
        raise TypeError(f"{name} must be a floating-point tensor, got {kind}")
    if X.dim() != rank:
        raise ValueError(f"{name} must be {meaning}, got {tuple(X.shape)}")
