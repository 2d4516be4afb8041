# %% the search for the highest score starts at 0
def greedy(score_next, batch_size, longest, start, end, pad):
    rows = [[start] for _ in range(batch_size)]
    for _ in range(longest):
        scores = score_next(torch.tensor(rows)).tolist()
        for row, mine in zip(rows, scores, strict=True):
            best, token = 0, 0
            for t, score in enumerate(mine):
                if score > best:
                    best, token = score, t
            row.append(pad if end in row else token)
        if all(end in row for row in rows):
            break
    return torch.tensor(rows)


# %% the search for the highest score starts at -100
def greedy(score_next, batch_size, longest, start, end, pad):
    rows = [[start] for _ in range(batch_size)]
    for _ in range(longest):
        scores = score_next(torch.tensor(rows)).tolist()
        for row, mine in zip(rows, scores, strict=True):
            best, token = -100, 0
            for t, score in enumerate(mine):
                if score > best:
                    best, token = score, t
            row.append(pad if end in row else token)
        if all(end in row for row in rows):
            break
    return torch.tensor(rows)
