"""Task 10.5, greedy: write the best next token until each row has come to its own end."""

import torch

from mha_classroom.checks.task import Case, Task, known, read_again, unchanged
from mha_classroom.tasks.cross_attention.runs import run_greedy

WRITING = "Writing, one token at a time"


def greedy(score_next, batch_size, longest, start, end, pad):
    written = torch.full((batch_size, 1), start)
    ended = torch.zeros(batch_size, dtype=torch.bool)
    for _ in range(longest):
        best = score_next(written).argmax(1).masked_fill(ended, pad)
        written = torch.cat([written, best[:, None]], 1)
        ended |= best == end
        if ended.all():
            break
    return written


def writing_cases(draw):
    def case(name, rows, num_tokens, tokens, longest=None, weak=1.0):
        """rows: what the model wants to write, a list of tokens for each row."""
        steps = longest or len(rows[0])
        at_step = draw.normal(steps, len(rows), num_tokens)
        for b, row in enumerate(rows):
            for t, token in enumerate(row[:steps]):
                at_step[t, b, token] += 40 * weak
        inputs = {"at_step": at_step, "after": draw.normal(num_tokens, num_tokens)}
        return Case(name, inputs | {"tokens": tokens})

    usual = (1, 2, 0)  # start, end, pad
    after_end = [[5, 2, 7, 3, 6, 4], [4, 5, 6, 2, 3, 7], [2, 2, 5, 2, 6, 3]]
    chain = case("the next token depends on the one before", [[3] * 9] * 4, 5, usual, weak=0.0)
    for token, following in ((1, 3), (3, 4), (4, 0), (0, 2), (2, 1)):
        chain.inputs["after"][token, following] += 20
    return [
        case("1 sequence that ends after 3 tokens", [[5, 6, 7, 2, 3]], 8, usual),
        case("3 sequences that end after 2, 4 and 1 tokens", after_end, 8, usual),
        case("start 6, end 0, pad 7", [[3, 0, 4, 4], [5, 3, 2, 0]], 8, (6, 0, 7)),
        case("nobody ends: longest is 4", [[5, 6, 7, 4], [4, 4, 3, 5], [7, 6, 5, 3]], 8, usual),
        case("one ends, one does not", [[5, 2, 7, 4], [4, 4, 3, 5]], 8, usual),
        case("the model likes to write padding and START", [[0, 1, 5, 2], [1, 0, 0, 1]], 6, usual),
        chain,
        case("longest is 1", [[4], [2]], 6, usual),
    ]


def build_greedy(
    choose=lambda scores: scores.argmax(1),
    close=lambda best, ended, pad, end: best.masked_fill(ended, pad),
    late=False,
    remember=torch.logical_or,
    done=torch.all,
    begin=unchanged,
    count=unchanged,
    finish=lambda written, start: written,
):
    """late: a row counts as ended one step too early, so that its END becomes padding."""

    def greedy(score_next, batch_size, longest, start, end, pad):
        written = torch.full((batch_size, 1), start)
        ended = torch.zeros(batch_size, dtype=torch.bool)
        for _ in range(count(longest)):
            best = choose(score_next(written))
            if late:
                ended = ended | (best == end)
            best = close(best, ended, pad, end)
            written = torch.cat([written, best[:, None]], 1)
            ended = remember(ended, best == end)
            if done(ended):
                break
        return finish(written, start)

    return greedy


def _cut(written, start):
    return written[:, 1:]


GREEDY = {
    "goes-on-after-the-end": known(
        "A row that has ended goes on: behind its END there is more than padding.",
        "The model knows nothing of an end and scores a next token for every row. Whoever calls it "
        "has to remember which rows have ended.",
        close=lambda best, ended, pad, end: best,
    ),
    "end-repeated": known(
        "Behind its END a row is filled with END.",
        "Asked for is padding there.",
        close=lambda best, ended, pad, end: best.masked_fill(ended, end),
    ),
    "end-replaced": known(
        "The END itself is missing: padding stands in its place.",
        "A row has ended for the tokens after END, not for END itself. Which comes first, the "
        "choice of the padding or the remark that it has ended?",
        late=True,
    ),
    "ended-forgotten": known(
        "You remember only which rows ended in the last step.",
        "A row that ended earlier has ended too. After one token of padding yours goes on writing.",
        remember=lambda ended, now: now,
    ),
    "stops-at-the-first-end": known(
        "Everybody stops when the first row ends.",
        "Each row has its own end. The loop is done when all rows have one.",
        done=torch.any,
    ),
    "never-stops": known(
        "You go on to the limit although all rows have ended.",
        "When every row has its END, nothing but padding would follow. Stop there.",
        done=lambda ended: False,
    ),
    "start-cut-off": known(
        "START is missing in your result.",
        "The statement asks for START in front.",
        finish=_cut,
    ),
    "one-too-few": known(
        "You write one token less than longest allows.",
        "longest counts what is written after START.",
        count=lambda longest: longest - 1,
    ),
    "lowest-score": known(
        "You take the token with the lowest score.",
        "Greedy means: the highest.",
        choose=lambda scores: scores.argmin(1),
    ),
    "best-row": known(
        "You ask which row scores highest, for all tokens together.",
        "Each row chooses its own token: along which axis do the scores of one row lie?",
        choose=lambda scores: scores.argmax().expand(len(scores)) % scores.shape[1],
    ),
    "second-best": known(
        "You do not take the highest score.",
        "argmax gives the place of the highest score in each row.",
        choose=lambda scores: scores.topk(2, dim=1).indices[:, 1],
    ),
    "special-tokens-forbidden": known(
        "You do not let the model write padding or START.",
        "The statement says: the token with the highest score, whichever it is. Only END ends.",
        wrong=lambda score_next, batch_size, longest, start, end, pad: greedy(
            lambda written: score_next(written).index_fill(
                1, torch.tensor([start, pad]), -torch.inf
            ),
            *(batch_size, longest, start, end, pad),
        ),
    ),
    "padding-ends": known(
        "For you a row has ended when it writes padding.",
        "Only END ends a row. A model may write padding before it, however odd that is.",
        wrong=lambda score_next, batch_size, longest, start, end, pad: _padding_ends(
            score_next, batch_size, longest, start, end, pad
        ),
    ),
    "start-given-each-time": known(
        "You ask the model with START alone each time, not with what is written.",
        "The next token follows from all tokens before it.",
        wrong=lambda score_next, batch_size, longest, start, end, pad: greedy(
            lambda written: score_next(torch.full_like(written, start)),
            *(batch_size, longest, start, end, pad),
        ),
    ),
}


def _padding_ends(score_next, batch_size, longest, start, end, pad):
    written = torch.full((batch_size, 1), start)
    ended = torch.zeros(batch_size, dtype=torch.bool)
    for _ in range(longest):
        best = score_next(written).argmax(1).masked_fill(ended, pad)
        written = torch.cat([written, best[:, None]], 1)
        ended |= (best == end) | (best == pad)
        if ended.all():
            break
    return written


TASK = Task(
    "10-greedy",
    greedy,
    writing_cases,
    run=run_greedy,
    returns=("what is written",),
    mistakes=read_again(WRITING, GREEDY),
    build=build_greedy,
    alone=("start-cut-off", "one-too-few", "lowest-score", "best-row", "second-best"),
    forbidden=("mha_course.translation.greedy",),
    number=5,
)
