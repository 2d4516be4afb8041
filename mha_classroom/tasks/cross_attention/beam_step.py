"""Task 10.6, beam_step: one step of a search that keeps several beginnings of each text."""

import itertools

import torch

from mha_classroom.checks.forms import FILLS, alike, any_of, like
from mha_classroom.checks.task import Case, Task, and_in_float32, known, read_again, unchanged

WRITING = "Writing, one token at a time"


def beam_step(totals, scores, ended, pad):
    K, V = scores.shape[1:]
    logs = scores.log_softmax(-1)
    only_pad = torch.full((V,), -torch.inf, dtype=scores.dtype)
    only_pad[pad] = 0.0
    logs = torch.where(ended[..., None], only_pad, logs)
    best = (totals[..., None] + logs).flatten(1).topk(K)
    return best.values, best.indices // V, best.indices % V


@and_in_float32
def beam_cases(draw):
    def case(name, B, K, V, pad, ended=None, scale=1.0, apart=0.3):
        inputs = {
            "totals": -draw.normal(B, K, scale=apart).abs().cumsum(1),
            "scores": draw.normal(B, K, V, scale=scale),
            "ended": torch.zeros(B, K, dtype=torch.bool) if ended is None else torch.tensor(ended),
            "pad": pad,
        }
        return Case(name, inputs)

    by_hand = {
        "totals": torch.tensor([[0.5, 0.4]]).double().log(),
        "scores": torch.tensor([[[6.0, 3.0, 1.0], [1.0, 1.0, 8.0]]]).double().log(),
        "ended": torch.zeros(1, 2, dtype=torch.bool),
        "pad": 0,
    }
    plain = case("3 sequences, 2 beams, 7 tokens", 3, 2, 7, 0)
    plain.inputs["totals"][0, 1] -= 9.0  # both of the best come from the other beam
    loud = case("one beam has scores 90,000 higher than the other", 2, 2, 5, 0)
    loud.inputs["scores"][:, 1] += 90000
    steep = case("one beam is far ahead, with scores 20,000 apart", 2, 2, 4, 3)
    steep.inputs["totals"] = torch.tensor([[-1.0, -90000.0], [-90000.0, -2.0]]).double()
    steep.inputs["scores"][0, 0] -= 20000.0 * torch.arange(4)
    steep.inputs["scores"][1, 1] -= 20000.0 * torch.arange(4)
    ahead = case("an ended beam that is far ahead", 2, 2, 5, 1, [[True, False], [False, True]])
    ahead.inputs["totals"] = torch.tensor([[-0.1, -99999.5], [-99999.5, -0.2]]).double()
    alone = case("all 3 best come from one beam", 2, 3, 6, 0)
    alone.inputs["totals"][:, 1:] -= 30.0
    return [
        Case("probabilities .5 and .4 so far, then .6 .3 .1 or .1 .1 .8", by_hand),
        plain,
        loud,
        case("1 of 3 beams has ended", 2, 3, 5, 4, [[True, False, False], [False, False, True]]),
        case("all beams have ended", 1, 3, 4, 1, [[True] * 3]),
        case("an ended beam that is far behind", 2, 2, 6, 3, [[False, True]] * 2, apart=4.0),
        case("3 sequences, 3 beams, 3 tokens", 3, 3, 3, 2, [[False, True, False]] * 3),
        case("one beam: greedy", 4, 1, 6, 0, [[False], [True], [False], [False]]),
        case("more beams than tokens", 2, 5, 3, 0, apart=0.1),
        case("scores in the thousands", 2, 2, 5, 1, [[False, False], [False, True]], 1000.0),
        steep,
        ahead,
        alone,
    ]


def beam_stages(inputs):
    logs = inputs["scores"].log_softmax(-1)
    return {"the logarithms of the probabilities": logs}


def build_beam(
    logs=lambda scores: scores.log_softmax(-1),
    pads=0.0,
    others=-torch.inf,
    add=lambda totals, logs: totals[..., None] + logs,
    end=lambda ended: ended,
    choose=lambda every, K: every.topk(K),
    which=lambda indices, V, K: (indices // V, indices % V),
    give=unchanged,
    ready=lambda scores, ended, pad: scores,
    joined=lambda every: every.flatten(1),
    sums=lambda every, ended: every,
    after=lambda tokens, beams, ended, pad: tokens,
    padding=unchanged,
):
    """pads, others: what an ended beam adds for padding and for other tokens; None: its own.

    ready: the scores before the softmax. joined: the row in which all candidates compete.
    """

    def beam_step(totals, scores, ended, pad):
        pad = padding(pad)
        K, V = scores.shape[1:]
        new = logs(ready(scores, ended, pad))
        of_ended = new.clone() if others is None else torch.full_like(new, others)
        of_ended[..., pad] = new[..., pad] if pads is None else pads
        new = torch.where(end(ended)[..., None], of_ended, new)
        best = choose(joined(sums(add(totals, new), ended)), K)
        beams, tokens = which(best[1], V, K)
        return give((best[0], beams, after(tokens, beams, ended, pad)))

    return beam_step


def _best_of_each(totals, scores, ended, pad):
    K, V = scores.shape[1:]
    every = build_beam(choose=lambda every, K: (every, every), which=lambda i, V, K: (i, i))(
        totals, scores, ended, pad
    )[0].unflatten(1, (K, V))
    best = every.max(-1)
    order = best.values.argsort(1, descending=True)
    return best.values.gather(1, order), order, best.indices.gather(1, order)


def _each_in_place(*given):
    """The same, in the order of the beams."""
    values, beams, tokens = _best_of_each(*given)
    order = beams.argsort(1)
    return tuple(X.gather(1, order) for X in (values, beams, tokens))


def _in_order_of_beams(every, K):
    places = every.topk(K).indices.sort(1).values
    return every.gather(1, places), places


def _in_another_order(inputs, found):
    """Whether these are the right candidates, in any order."""
    if not isinstance(found, (tuple, list)) or len(found) != 3:
        return False
    right = beam_step(*inputs.values())
    if any(not torch.is_tensor(X) or X.shape != Y.shape for X, Y in zip(found, right, strict=True)):
        return False
    order = found[0].argsort(1, descending=True)
    return alike(right, tuple(X.gather(1, order) for X in found))


def _of_all_texts(totals, scores, ended, pad):
    """The candidates of all texts compete, and K of them are dealt out to each."""
    (B, K), V = totals.shape, scores.shape[2]
    values, beams, tokens = build_beam(choose=lambda every, K: (every, every), which=_both)(
        totals, scores, ended, pad
    )
    best, places = values.flatten().topk(B * K)
    return best.view(B, K), (places // V % K).view(B, K), (places % V).view(B, K)


def _both(indices, V, K):
    return indices, indices


def _totals_added_late(totals, scores, ended, pad):
    values, beams, tokens = build_beam(add=lambda totals, logs: logs)(totals, scores, ended, pad)
    return values + totals.gather(1, beams), beams, tokens


def _padding_barred(totals, scores, ended, pad):
    """Where a beam goes on, padding costs everything; the others stay as they are."""
    V, K = scores.shape[2], scores.shape[1]
    every = build_beam(choose=lambda every, K: (every, every), which=_both)(
        totals, scores, ended, pad
    )[0].unflatten(1, (K, V))
    barred = torch.zeros_like(every, dtype=torch.bool)
    barred[..., pad] = ~ended
    best, places = every.masked_fill(barred, -torch.inf).flatten(1).topk(K)
    return best, places // V, places % V


def _padding_barred_before(scores, ended, pad):
    barred = torch.zeros_like(scores, dtype=torch.bool)
    barred[..., pad] = ~ended
    return scores.masked_fill(barred, -torch.inf)


def _worst(every, K):
    return every.nan_to_num(neginf=torch.inf).topk(K, largest=False)


def _log_of_softmax(least, add):
    """The logarithm of the softmax, which is made no smaller than this."""

    def logs(scores):
        shares = scores.softmax(-1)
        return (shares + least if add else shares.clamp(min=least)).log()

    return logs


LOGS = [
    _log_of_softmax(least, add)
    for least in (0.0, *(10.0**-n for n in (*range(3, 21), 30, 37, 45, 300)))
    for add in (True, False)
]


def _log_of_exps(largest):
    """largest: what is subtracted before exp."""

    def logs(scores):
        less = scores - largest(scores)
        return less - less.exp().sum(-1, keepdim=True).log()

    return logs


LOGS_BY_HAND = [
    _log_of_exps(largest)
    for largest in (
        lambda scores: scores.max(),
        lambda scores: scores.amax((1, 2), keepdim=True),
        lambda scores: 0.0,
    )
]


def _scores_of_ended(fill, of_pad):
    """The scores of an ended beam: one for padding, another for the rest."""

    def ready(scores, ended, pad):
        made = torch.full_like(scores, fill)
        made[..., pad] = of_pad
        return torch.where(ended[..., None], made, scores)

    return ready


TOO_LITTLE = [
    *({"others": fill} for fill in (*FILLS, -1e5)),
    *(
        {"pads": None, "others": None, "ready": _scores_of_ended(fill, of_pad)}
        for fill, of_pad in itertools.product((*FILLS, 0.0), (0.0, 10.0, 100.0, 1e3, 1e4))
        if of_pad > fill
    ),
]


def _of_probabilities(totals, scores, ended, pad):
    values, beams, tokens = beam_step(totals, scores, ended, pad)
    return values.exp(), beams, tokens


def _products(finish, late=False):
    """The best products of probabilities, and what is made of them, before or after the choice."""

    def beam_step(totals, scores, ended, pad):
        V = scores.shape[2]
        only_pad = torch.zeros(V, dtype=scores.dtype)
        only_pad[pad] = 1.0
        shares = torch.where(ended[..., None], only_pad, scores.softmax(-1))
        every = totals.exp()[..., None] * shares
        best = (every if late else finish(every)).flatten(1).topk(scores.shape[1])
        values = finish(best.values) if late else best.values
        return values, best.indices // V, best.indices % V

    return beam_step


def _columns_first(every):
    return every.transpose(1, 2).flatten(1)


def _total_lost(every, ended):
    alone = every.masked_fill(every > -torch.inf, 0.0)
    return torch.where(ended[..., None], alone, every)


def _softmax_of_sums(every, ended):
    return every.flatten(1).log_softmax(-1).reshape(every.shape)


def _tokens_replaced(tokens, beams, ended, pad):
    return tokens.masked_fill(ended.gather(1, beams), pad)


def _costs_taken_back(totals, scores, ended, pad):
    """An ended beam goes on writing, and is mended when the best have been chosen."""
    values, beams, tokens = build_beam(end=torch.zeros_like)(totals, scores, ended, pad)
    over = ended.gather(1, beams)
    return torch.where(over, totals.gather(1, beams), values), beams, tokens.masked_fill(over, pad)


BEAM = {
    "scores-added": known(
        "You add the scores as they are.",
        "Scores of two beams cannot be compared: each beam's are right up to a number that the "
        "softmax takes out. Totals are logarithms of probabilities.",
        logs=unchanged,
    ),
    "probabilities-added": known(
        "You add probabilities to the totals.",
        "A text's probability is a product. Which of its logarithms is a sum?",
        logs=lambda scores: scores.softmax(-1),
    ),
    "ended-goes-on": known(
        "A beam that has ended goes on writing.",
        "Its only next token is padding, and that costs nothing.",
        end=torch.zeros_like,
    ),
    "ended-pays-for-padding": known(
        "A beam that has ended pays for its padding: you add the model's logarithm for it.",
        "The text is complete, and its probability does not change any more.",
        pads=None,
    ),
    "padding-is-0": known(
        "You take token 0 for padding.",
        "The argument pad says which token is padding.",
        padding=lambda pad: 0,
    ),
    "probabilities-returned": known(
        "You return probabilities.",
        "Totals are logarithms, those that you return as those that you got.",
        wrong=_of_probabilities,
        shows=like(_of_probabilities, _products(unchanged)),
    ),
    "logarithm-at-the-end": known(
        "You make probabilities of the totals, and take the logarithm afterwards.",
        "A probability of e to the power of -2000 is too small for any number: it becomes 0, and "
        "its logarithm -inf. Add logarithms, without a way through probabilities.",
        wrong=_products(torch.log),
        shows=like(_products(torch.log), _products(torch.log, late=True)),
    ),
    "totals-forgotten": known(
        "What came before has no effect: the totals are not added.",
        "A beam that was unlikely so far stays so, however sure it is of the next token.",
        add=lambda totals, logs: logs,
    ),
}

# Not looked for together with another one: they hide it, or are seldom made.
ALONE = {
    "softmax-over-beams": known(
        "Your softmax runs over the beams, over the texts, or over the tokens of all beams "
        "together.",
        "Each beam has its own next token: its probabilities sum to 1.",
        **any_of(
            build_beam,
            logs=(
                lambda scores: scores.flatten(1).log_softmax(-1).reshape(scores.shape),
                lambda scores: scores.log_softmax(1),
                lambda scores: scores.log_softmax(0),
            ),
        ),
    ),
    "totals-not-added": known(
        "You multiply the totals, subtract them, or add them as probabilities.",
        "Probabilities are multiplied. What do their logarithms do?",
        **any_of(
            build_beam,
            add=(
                lambda totals, logs: totals[..., None] * logs,
                lambda totals, logs: logs - totals[..., None],
                lambda totals, logs: totals.exp()[..., None] + logs,
            ),
        ),
    ),
    "ended-is-dropped": known(
        "A beam that has ended is never chosen again.",
        "It may be the best text of all. It stays among the candidates, with one token: padding.",
        **any_of(build_beam, pads=(-1e9, -torch.inf)),
    ),
    "ended-may-write-others": known(
        "A beam that has ended may choose other tokens besides padding.",
        "Then one complete text takes several places, as several texts.",
        others=None,
    ),
    "ended-all-free": known(
        "A beam that has ended gets every next token at no cost.",
        "Then one complete text takes several places, as several texts.",
        others=0.0,
    ),
    "ended-all-free-then-padded": known(
        "A beam that has ended gets every next token at no cost, and padding is put in their place "
        "afterwards.",
        "Then one complete text is there several times, and takes the places of other beams.",
        others=0.0,
        after=lambda tokens, beams, ended, pad: torch.where(ended.gather(1, beams), pad, tokens),
    ),
    "log-of-softmax": known(
        "You take the logarithm of a softmax, or of what you keep from becoming 0.",
        "Where scores are far apart a probability is too small for any number, and its logarithm "
        "is -inf or whatever you put there. Is there a function that makes both steps in one?",
        **any_of(build_beam, logs=LOGS),
    ),
    "one-largest-for-several-beams": known(
        "You take the logarithm of a sum of exps by hand, and subtract no score before exp, or one "
        "largest score for several beams.",
        "exp overflows above 709 in float64, and far below 0 all of it is 0. Each beam has a "
        "largest score of its own. Is there a function that does all this?",
        **any_of(build_beam, logs=LOGS_BY_HAND),
    ),
    "other-tokens-cost-too-little": known(
        "A beam that has ended may write other tokens than padding, at a price that is too low.",
        "If the next beam is 100,000 behind, -100 is a bargain. The candidate is not to exist: "
        "which logarithm does a probability of 0 have?",
        **any_of(build_beam, *TOO_LITTLE),
    ),
    "softmax-of-the-sums": known(
        "You take the softmax after the totals have been added, over all candidates of a text.",
        "The scores become logarithms of probabilities first, each beam by itself. Then the total "
        "is added.",
        logs=unchanged,
        sums=_softmax_of_sums,
    ),
    "ended-total-lost": known(
        "A beam that has ended loses its total: it starts again from 0.",
        "Padding costs nothing, so the total stays as it was.",
        sums=_total_lost,
    ),
    "ended-mended-afterwards": known(
        "You choose first, and put padding in ended beams afterwards.",
        "Then an ended beam has competed with all of its tokens, at their cost. Its one candidate "
        "has to be ready before the best are chosen.",
        end=torch.zeros_like,
        after=_tokens_replaced,
        shows=like(build_beam(end=torch.zeros_like, after=_tokens_replaced), _costs_taken_back),
    ),
    "tokens-before-beams": known(
        "You line the candidates up token by token, and read the places as if it were beam by "
        "beam.",
        "Where V and K come in this order, K places belong to each token. Which of the two does "
        "// find then?",
        joined=_columns_first,
    ),
    "best-of-each-beam": known(
        "You take the best token of each beam.",
        "All beams and tokens compete: the two best candidates may come from the same beam.",
        wrong=_best_of_each,
        shows=like(_best_of_each, _each_in_place),
    ),
    "in-the-order-of-beams": known(
        "You found the right candidates, and return them in another order.",
        "The best comes first. topk sorts, unless it is told not to.",
        choose=_in_order_of_beams,
        shows=_in_another_order,
    ),
    "numbered-through-the-batch": known(
        "Your beams are numbered through the whole batch: text 1 begins with beam K.",
        "Each text counts its own beams, from 0 to K − 1.",
        give=lambda found: (
            found[0],
            found[1] + torch.arange(len(found[1]))[:, None] * found[1].shape[1],
            found[2],
        ),
    ),
    "texts-compete": known(
        "The candidates of all texts compete with each other.",
        "Each text has K beams of its own, and its K best candidates are asked for. Which axis do "
        "you choose along?",
        wrong=_of_all_texts,
    ),
    "totals-added-late": known(
        "You choose by the next token alone, and add the totals to what you have chosen.",
        "A beam that was unlikely so far stays so, however sure it is of the next token. Its total "
        "has to be there when the candidates compete.",
        wrong=_totals_added_late,
    ),
    "padding-barred": known(
        "A beam that goes on may not choose padding in your answer.",
        "The statement says: all pairs of a beam and a next token. Padding is a token like others "
        "until the beam has ended.",
        wrong=_padding_barred,
        shows=like(_padding_barred, build_beam(ready=_padding_barred_before)),
    ),
    "worst": known(
        "You take the lowest totals.",
        "Logarithms of probabilities are negative, and the largest is the best.",
        **any_of(build_beam, choose=(_worst, lambda every, K: every.topk(K, largest=False))),
    ),
    "divided-by-beams": known(
        "You get the wrong beam or token from a place: you divide by the number of beams, or you "
        "do not divide.",
        "Flattened, there are V places for each beam. // V finds the beam, and what is left of the "
        "place without the beam is the token.",
        **any_of(
            build_beam,
            which=(
                lambda indices, V, K: (indices // K, indices % K),
                lambda indices, V, K: (indices // K, indices % V),
                lambda indices, V, K: (indices // V, indices % K),
                lambda indices, V, K: (indices % K, indices // K),
                lambda indices, V, K: (indices // V, indices),
            ),
        ),
    ),
    "beams-and-tokens-swapped": known(
        "Beams and tokens have changed places in your result.",
        "First come the totals, then the beams, then the tokens.",
        give=lambda found: (found[0], found[2], found[1]),
    ),
}

TASK = Task(
    "10-beam_step",
    beam_step,
    beam_cases,
    returns=("the totals", "the beams", "the tokens"),
    mistakes=read_again(WRITING, BEAM | ALONE),
    build=build_beam,
    stages=beam_stages,
    alone=tuple(ALONE),
    number=6,
)
