"""Task 10.5, greedy: write the best next token until each row has come to its own end."""

import itertools

import torch

from mha_classroom.checks.examining import first_wrong
from mha_classroom.checks.forms import FILLS, any_of, like
from mha_classroom.checks.showing import listed, number_text
from mha_classroom.checks.task import Case, Task, and_in_float32, known, read_again, unchanged
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


def point_out_token(inputs, written):
    """The scores of the first wrong token and the right one; where the rows end, if it is another
    number of tokens."""
    right = run_greedy(greedy, inputs)
    at_step, after, (start, end, pad) = inputs.values()
    if written.shape != right.shape:
        ends = [row.index(end) for row in right.tolist() if end in row]
        if len(ends) < len(right):
            return (
                f"Here not every row gets an END: asked for are `longest` = {len(at_step)} tokens."
            )
        steps = f"step {ends[0]}" if len(ends) == 1 else f"the steps {listed([*map(str, ends)])}"
        return f"The END is to be written in {steps}, and the loop ends after step {max(ends)}."
    b, t = place = first_wrong(written, right)
    if not t:
        return f"Row {b} begins with START, which is {start}."
    where = f"In step {t} row {b}"
    if end in right[b, :t]:
        return f"{where} has had its END: padding is asked for, which is {pad}."
    scores = at_step[t - 1, b] + after[right[b, t - 1]]
    best, mine = int(right[place]), int(written[place])
    score, less = (number_text(scores[token].item(), 4) for token in (best, mine))
    return f"{where} has the highest score for token {best}, {score}; your token {mine} has {less}."


@and_in_float32
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
    close = case("scores close together", [[3] * 6] * 3, 8, usual, weak=0.0)
    close.inputs["at_step"][..., usual[1]] -= 9  # nobody ends
    late = [[5, 2, 6], [6, 2, 3], [3, 4, 5]]  # the first two end, and the scores go on
    loud = case("scores near 3,000 and near -20,000", late, 8, usual)
    loud.inputs["at_step"] += torch.tensor([3000, -20000, 0])[:, None]
    return [
        case("1 sequence that ends after 3 tokens", [[5, 6, 7, 2, 3]], 8, usual),
        case("3 sequences that end after 2, 4 and 1 tokens", after_end, 8, usual),
        case("start 6, end 0, pad 7", [[3, 0, 4, 4], [5, 3, 2, 0]], 8, (6, 0, 7)),
        case("nobody ends: longest is 4", [[5, 6, 7, 4], [4, 4, 3, 5], [7, 6, 5, 3]], 8, usual),
        case("one ends, one does not", [[5, 2, 7, 4], [4, 4, 3, 5]], 8, usual),
        case("the model likes to write padding and START", [[0, 1, 5, 2], [1, 0, 0, 1]], 6, usual),
        chain,
        case("nobody ends, and all write padding last", [[5, 0, 0], [4, 3, 0]], 6, usual),
        case("longest is 1", [[4], [2]], 6, usual),
        close,
        case("nobody ends: longest is 70", [[4, 5] * 35, [5, 3] * 35], 6, usual),
        loud,
    ]


def build_greedy(
    choose=lambda scores: scores.argmax(1),
    close=lambda best, ended, pad, end: best.masked_fill(ended, pad),
    late=False,
    remember=torch.logical_or,
    done=torch.all,
    count=unchanged,
    asked=lambda score_next, written, start: score_next(written),
    looked_at=lambda ended, now: ended,
    ends=lambda best, end, pad: best == end,
    give=unchanged,
):
    """late: a row counts as ended one step too early, so that its END becomes padding.

    asked: the scores. looked_at: what says whether the loop is done, of the rows that have ended
    and those that do so now. give: what is returned of all that is written.
    """

    def greedy(score_next, batch_size, longest, start, end, pad):
        written = torch.full((batch_size, 1), start)
        ended = torch.zeros(batch_size, dtype=torch.bool)
        for _ in range(count(longest)):
            best = choose(asked(score_next, written, start))
            if late:
                ended = ended | ends(best, end, pad)
            best = close(best, ended, pad, end)
            written = torch.cat([written, best[:, None]], 1)
            now = ends(best, end, pad)
            ended = remember(ended, now)
            if done(looked_at(ended, now)):
                break
        return give(written)

    return greedy


def _highest_above(start):
    """A search that begins with this score and token 0."""
    return lambda scores: scores.argmax(1).masked_fill(scores.amax(1) <= start, 0)


def _forbidding(no_start, no_pad):
    """Never writes START, or padding before the END."""

    def writes(score_next, batch_size, longest, start, end, pad):
        barred = torch.tensor([start] * no_start + [pad] * no_pad)
        return greedy(
            lambda written: score_next(written).index_fill(1, barred, -torch.inf),
            *(batch_size, longest, start, end, pad),
        )

    return writes


def _stops_late(score_next, batch_size, longest, start, end, pad):
    """Asks whether all have ended before it notes which rows end now."""
    written = torch.full((batch_size, 1), start)
    ended = torch.zeros(batch_size, dtype=torch.bool)
    for _ in range(longest):
        best = score_next(written).argmax(1).masked_fill(ended, pad)
        written = torch.cat([written, best[:, None]], 1)
        if ended.all():
            break
        ended |= best == end
    return written


def _stops_early(score_next, batch_size, longest, start, end, pad):
    written = torch.full((batch_size, 1), start)
    ended = torch.zeros(batch_size, dtype=torch.bool)
    for _ in range(longest):
        best = score_next(written).argmax(1).masked_fill(ended, pad)
        ended |= best == end
        if ended.all():
            break
        written = torch.cat([written, best[:, None]], 1)
    return written


def _filled_from_the_first_end(score_next, batch_size, longest, start, end, pad):
    """Padding is put behind the first END when all is written, wherever argmax says that it is."""
    written = build_greedy(close=lambda best, ended, pad, end: best)(
        score_next, batch_size, longest, start, end, pad
    )
    first = (written == end).long().argmax(1)
    return written.masked_fill(torch.arange(written.shape[1]) > first[:, None], pad)


def _end_put_last(score_next, batch_size, longest, start, end, pad):
    written = greedy(score_next, batch_size, longest, start, end, pad)
    open_rows = ~(written[:, 1:] == end).any(1)
    if written.shape[1] == longest + 1:
        written[open_rows, -1] = end
    return written


def _columns_of_padding_cut(score_next, batch_size, longest, start, end, pad):
    written = greedy(score_next, batch_size, longest, start, end, pad)
    return written[:, (written != pad).any(0)]


def _last_columns_of_padding_cut(score_next, batch_size, longest, start, end, pad):
    written = greedy(score_next, batch_size, longest, start, end, pad)
    return written[:, : int((written != pad).any(0).nonzero().max()) + 1]


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
    "padding-is-0": known(
        "You take token 0 for padding.",
        "The argument pad says which token is padding.",
        close=lambda best, ended, pad, end: best.masked_fill(ended, 0),
    ),
    "end-replaced": known(
        "The END itself is missing: padding stands in its place.",
        "A row has ended for the tokens after END, not for END itself. Which comes first, the "
        "choice of the padding or noting that it has ended?",
        late=True,
    ),
    "ended-forgotten": known(
        "You remember only which rows ended in the last step.",
        "A row that ended earlier has ended too. After one token of padding yours goes on writing.",
        remember=lambda ended, now: now,
    ),
    "stops-at-the-first-end": known(
        "All rows stop when the first row ends.",
        "Each row has its own end. The loop is done when all rows have one.",
        done=torch.any,
    ),
    "never-stops": known(
        "You go on to the limit although all rows have ended, or you return a table made for the "
        "limit, with columns that nothing was written into.",
        "When every row has its END, nothing but padding would follow. Stop there, and return "
        "what is written up to then.",
        done=lambda ended: False,
    ),
    "start-left-off": known(
        "START is missing in front.",
        "The result begins with it, in each row.",
        give=lambda written: written[:, 1:],
    ),
    "special-tokens-forbidden": known(
        "You do not let the model write padding, or START.",
        "The statement says: the token with the highest score, whichever it is. Only END ends.",
        wrong=_forbidding(True, True),
        shows=like(
            *itertools.starmap(_forbidding, [(True, True), (True, False), (False, True)]),
            run=run_greedy,
        ),
    ),
    "stops-one-step-late": known(
        "You find out one step late that all rows have ended, and write a column of padding more.",
        "Stop right after the step in which the last END is written.",
        wrong=_stops_late,
    ),
    "end-not-written": known(
        "The END of the rows that end last is missing: you stop before it is written.",
        "Append first, then look whether all rows have ended.",
        wrong=_stops_early,
    ),
    "one-too-few": known(
        "You write one token less than longest allows.",
        "longest counts what is written after START.",
        count=lambda longest: longest - 1,
    ),
}

# Not looked for together with another one: they hide it, or are seldom made.
ALONE = {
    "lowest-score": known(
        "You take the token with the lowest score.",
        "The highest score belongs to the token that the model finds most likely.",
        choose=lambda scores: scores.argmin(1),
    ),
    "starts-at-a-number": known(
        "Where all scores of a row are low you write token 0: your search for the highest score "
        "begins with a number such as 0 or -100, or you raise all scores below such a number to "
        "it, as clamp does.",
        "Scores may be any numbers, logarithms of probabilities for instance. Begin with the first "
        "score, or is there a method that finds the place?",
        **any_of(
            build_greedy, choose=[_highest_above(low) for low in (0.0, *FILLS)], run=run_greedy
        ),
    ),
    "rows-without-end-erased": known(
        "A row in which no END was written becomes padding, all of it behind START.",
        "argmax of what is False everywhere is 0: the first place. A row without an END has no "
        "place from which it is to be filled up.",
        wrong=_filled_from_the_first_end,
    ),
    "end-put-last": known(
        "Where the limit is reached you put END in the place of the last token.",
        "Such a row has not ended. What the model chose stays, and nothing is added.",
        wrong=_end_put_last,
    ),
    "columns-of-padding-cut": known(
        "You cut off columns that hold only padding, also where rows were still going on.",
        "A model may write padding before the END. The loop ends when every row has its END, or at "
        "the limit: until then each step leaves a column.",
        wrong=_columns_of_padding_cut,
        shows=like(_columns_of_padding_cut, _last_columns_of_padding_cut, run=run_greedy),
    ),
    "argmax-of-all": known(
        "Your argmax has no axis: it is the place of the highest score of all rows together.",
        "Each row chooses its own token: along which axis do the scores of one row lie?",
        choose=lambda scores: scores.argmax().expand(len(scores)),
    ),
    "padding-ends": known(
        "For you a row has ended when it writes padding.",
        "Only END ends a row. A model may write padding before it, however odd that is.",
        ends=lambda best, end, pad: (best == end) | (best == pad),
    ),
    "start-alone-each-time": known(
        "You ask the model with START alone each time, not with what is written.",
        "The next token follows from all tokens before it.",
        **any_of(
            build_greedy,
            asked=(
                lambda score_next, written, start: score_next(written[:, :1]),
                lambda score_next, written, start: score_next(torch.full_like(written, start)),
            ),
            run=run_greedy,
        ),
    ),
    "last-token-only": known(
        "You ask the model with the last token alone.",
        "The next token follows from all tokens before it: score_next takes (B, t).",
        asked=lambda score_next, written, start: score_next(written[:, -1:]),
    ),
    "one-too-many": known(
        "You ask for one more token when `longest` have been written after START.",
        "longest counts what is written after START, and a loop without an END must stop there. "
        "How many times may it run?",
        count=lambda longest: longest + 1,
    ),
    "all-in-the-same-step": known(
        "You stop only when all rows write END in the same step.",
        "They end at different times. The loop is done when every row has an END somewhere.",
        looked_at=lambda ended, now: now,
    ),
}


TASK = Task(
    "10-greedy",
    greedy,
    writing_cases,
    run=run_greedy,
    returns=("what is written",),
    mistakes=read_again(WRITING, GREEDY | ALONE),
    build=build_greedy,
    point_out=point_out_token,
    alone=tuple(ALONE),
    forbidden=("mha_course.translation.greedy",),
    number=5,
)
