# %% found documents get the cosine -1, which an opposite one has too
def search(query, documents, k=3):
    cosines, pairs = F.cosine_similarity(documents, query, dim=1), []
    for _ in range(min(k, len(documents))):
        best = int(cosines.argmax())
        pairs.append((best, float(cosines[best])))
        cosines[best] = -1
    return pairs
