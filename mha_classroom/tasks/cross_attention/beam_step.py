"""Task 10.6, beam_step: one step of a search that keeps several beginnings of each text."""

import torch

from mha_classroom.checks.task import Case, Task, known, read_again, unchanged

WRITING = "Writing, one token at a time"


def beam_step(totals, scores, ended, pad):
    K, V = scores.shape[1:]
    logs = scores.log_softmax(-1)
    only_pad = torch.full((V,), -torch.inf, dtype=scores.dtype)
    only_pad[pad] = 0.0
    logs = torch.where(ended[..., None], only_pad, logs)
    best = (totals[..., None] + logs).flatten(1).topk(K)
    return best.values, best.indices // V, best.indices % V


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
    loud = case("one beam has scores 50 higher than the other", 2, 2, 5, 0)
    loud.inputs["scores"][:, 1] += 50
    return [
        Case("probabilities .5 and .4 so far, then .6 .3 .1 or .1 .1 .8", by_hand),
        case("3 sequences, 2 beams, 7 tokens", 3, 2, 7, 0),
        loud,
        case("1 of 3 beams has ended", 2, 3, 5, 4, [[True, False, False], [False, False, True]]),
        case("all beams have ended", 1, 3, 4, 1, [[True] * 3]),
        case("an ended beam that is far behind", 2, 2, 6, 3, [[False, True]] * 2, apart=4.0),
        case("3 sequences, 3 beams, 3 tokens", 3, 3, 3, 2, [[False, True, False]] * 3),
        case("one beam: greedy", 4, 1, 6, 0, [[False], [True], [False], [False]]),
        case("more beams than tokens", 2, 5, 3, 0, apart=0.1),
        case("scores in the thousands", 2, 2, 5, 1, [[False, False], [False, True]], 1000.0),
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
    choose=lambda every, K: every.flatten(1).topk(K),
    which=lambda indices, V, K: (indices // V, indices % V),
    give=unchanged,
    place=unchanged,
):
    """pads, others: what an ended beam adds for padding and for other tokens; None: its own."""

    def beam_step(totals, scores, ended, pad):
        K, V = scores.shape[1:]
        new = logs(scores)
        of_ended = new.clone() if others is None else torch.full_like(new, others)
        of_ended[..., place(pad)] = new[..., pad] if pads is None else pads
        new = torch.where(end(ended)[..., None], of_ended, new)
        best = choose(add(totals, new), K)
        return give((best[0], *which(best[1], V, K)))

    return beam_step


def _best_of_each(every, K):
    best = every.max(-1)
    order = best.values.argsort(1, descending=True)
    values = best.values.gather(1, order)
    return values, order * every.shape[-1] + best.indices.gather(1, order)


def _in_order_of_beams(every, K):
    best = every.flatten(1).topk(K)
    places = best.indices.sort(1)
    return every.flatten(1).gather(1, places.values), places.values


def _over_all(scores):
    return scores.flatten(1).log_softmax(-1).reshape(scores.shape)


def _worst(every, K):
    finite = every.flatten(1).nan_to_num(neginf=torch.inf)
    return finite.topk(K, largest=False)


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
    "softmax-over-all-beams": known(
        "Your softmax runs over the tokens of all beams together.",
        "Each beam has its own next token: its probabilities sum to 1.",
        logs=_over_all,
    ),
    "softmax-over-beams": known(
        "Your softmax runs over the beams.",
        "For each beam, the probabilities of all tokens sum to 1.",
        logs=lambda scores: scores.log_softmax(1),
    ),
    "totals-forgotten": known(
        "What came before has no effect: the totals are not added.",
        "A beam that was unlikely so far stays so, however sure it is of the next token.",
        add=lambda totals, logs: logs,
    ),
    "totals-multiplied": known(
        "You multiply totals and logarithms.",
        "Probabilities are multiplied. What do their logarithms do?",
        add=lambda totals, logs: totals[..., None] * logs,
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
    "ended-is-dropped": known(
        "A beam that has ended is never chosen again.",
        "It may be the best text of all. It stays among the candidates, with one token: padding.",
        pads=-1e9,
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
    "padding-is-0": known(
        "You take token 0 for padding.",
        "The argument pad says which token is padding.",
        place=lambda pad: 0,
    ),
    "best-of-each-beam": known(
        "You take the best token of each beam.",
        "All beams and tokens compete: the two best candidates may come from the same beam.",
        choose=_best_of_each,
    ),
    "in-the-order-of-beams": known(
        "You found the right candidates, and return them in another order.",
        "The best comes first.",
        choose=_in_order_of_beams,
    ),
    "worst": known(
        "You take the lowest totals.",
        "Logarithms of probabilities are negative, and the largest is the best.",
        choose=_worst,
    ),
    "divided-by-beams": known(
        "You divide the place by the number of beams to find out which beam it is.",
        "Flattened, there are V places for each beam.",
        which=lambda indices, V, K: (indices // K, indices % K),
    ),
    "beams-and-tokens-swapped": known(
        "Beams and tokens have changed places in your result.",
        "First come the totals, then the beams, then the tokens.",
        give=lambda found: (found[0], found[2], found[1]),
    ),
    "places-for-tokens": known(
        "Your tokens are places among all K · V candidates.",
        "A place says beam and token at once. What is left of it without the beam?",
        which=lambda indices, V, K: (indices // V, indices),
    ),
}

TASK = Task(
    "10-beam_step",
    beam_step,
    beam_cases,
    returns=("the totals", "the beams", "the tokens"),
    mistakes=read_again(WRITING, BEAM),
    build=build_beam,
    stages=beam_stages,
    alone=(
        "worst",
        "divided-by-beams",
        "beams-and-tokens-swapped",
        "places-for-tokens",
        "in-the-order-of-beams",
        "totals-multiplied",
        "softmax-over-beams",
        "ended-is-dropped",
        "ended-may-write-others",
        "ended-all-free",
        "padding-is-0",
        "totals-forgotten",
        "best-of-each-beam",
    ),
    number=6,
)
