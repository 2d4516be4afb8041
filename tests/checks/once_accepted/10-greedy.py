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


# %% padding gets the score 1000 in rows that have ended
def greedy(score_next, batch_size, longest, start, end, pad):
    written = torch.full((batch_size, 1), start)
    ended = torch.zeros(batch_size, dtype=torch.bool)
    for _ in range(longest):
        scores = score_next(written)
        scores[ended, pad] = 1000.0
        best = scores.argmax(1)
        written = torch.cat([written, best[:, None]], 1)
        ended |= best == end
        if ended.all():
            break
    return written


# %% all tokens but padding get the score -1000 in rows that have ended
def greedy(score_next, batch_size, longest, start, end, pad):
    written = torch.full((batch_size, 1), start)
    ended = torch.zeros(batch_size, dtype=torch.bool)
    for _ in range(longest):
        scores = score_next(written)
        others = torch.arange(scores.shape[1]) != pad
        best = scores.masked_fill(ended[:, None] & others, -1000.0).argmax(1)
        written = torch.cat([written, best[:, None]], 1)
        ended |= best == end
        if ended.all():
            break
    return written
