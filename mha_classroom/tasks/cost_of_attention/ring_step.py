"""Task 9.5, ring_step: one token more, with a cache that holds the last W tokens."""

import torch

from mha_classroom.checks.forms import FILLS, near
from mha_classroom.checks.task import Case, Task, and_in_float32, known, read_again
from mha_classroom.tasks.cost_of_attention.causal_tiles import MASK
from mha_classroom.tasks.cost_of_attention.runs import run_ring

CACHE = "The cache"
WINDOW = "A window"


@and_in_float32
def ring_cases(draw):
    def case(name, B, H, W, d_k, d_v, t):
        inputs = {
            "query": draw.normal(B, H, d_k, scale=2.0),
            "key": draw.normal(B, H, d_k),
            "value": draw.normal(B, H, d_v),
            "kept_keys": draw.normal(B, H, W, d_k),
            "kept_values": draw.normal(B, H, W, d_v),
        }
        if t < W:  # the slots that this text has not reached
            inputs["kept_keys"][:, :, t:] *= 5
            inputs["kept_values"][:, :, t:] = 1000.0
        return Case(name, inputs | {"t": t})

    def far_below_zero(name, *sizes):
        """Each score is about three billion below 0, and exact in binary: here √d_k is 2. Slots
        that are not reached have scores so far above that exp of the others is 0 beside them."""
        low = case(name, *sizes)
        for vectors in ("query", "key", "kept_keys"):
            low.inputs[vectors].mul_(8).round_().div_(8)
        low.inputs["query"][..., 0] = 1000.0
        for keys in ("key", "kept_keys"):
            low.inputs[keys][..., 0] -= 6e6
        low.inputs["kept_keys"][:, :, low.inputs["t"] + 1 :, 0] += 50
        return low

    with_zeros = case("a window of 5, token 3", 2, 3, 5, 7, 2, 3)
    with_zeros.inputs["query"][0] = 0  # so that scores are exactly 0
    return [
        case("1 head, a window of 3, token 2", 1, 1, 3, 2, 1, 2),
        with_zeros,
        case("the first token of a text", 2, 2, 4, 3, 5, 0),
        case("the token that fills the last slot", 2, 3, 4, 5, 7, 3),
        case("the first token that replaces another", 3, 2, 5, 3, 7, 5),
        case("token 17 with a window of 5", 2, 3, 5, 7, 2, 17),
        case("a window of one token", 2, 3, 1, 5, 2, 4),
        case("all sizes equal, token 4", 3, 3, 3, 3, 3, 4),
        far_below_zero("scores far below 0, token 1", 2, 3, 5, 4, 2, 1),
        far_below_zero("scores far below 0, token 9", 2, 3, 5, 4, 2, 9),
    ]


def ring_stages(inputs):
    """Scores and weights only where every slot counts: else some answers have some for each slot
    and hide them, others have them for the first slots alone."""
    query, key, value, kept_keys, kept_values, t = inputs.values()
    W = kept_keys.shape[2]
    keys, values = kept_keys.clone(), kept_values.clone()
    keys[:, :, t % W], values[:, :, t % W] = key, value
    kept = {"the keys with the new one": keys, "the values with the new one": values}
    if t < W - 1:
        return {"what is kept": kept}
    scores = (query[:, :, None] @ keys.mT)[:, :, 0]
    scaled = scores * query.shape[-1] ** -0.5
    return {
        "what is kept": kept,
        "the scores of the tokens in the window": scores,
        "the scaled scores of the tokens in the window": scaled,
        "the weights of the tokens in the window": scaled.softmax(-1),
    }


def _write(kept, new, place):
    kept[:, :, place] = new


def _shift(kept, new, place):
    kept.copy_(torch.cat([kept[:, :, 1:], new[:, :, None]], 2))


def _attend(query, keys, values):
    weights = (query[:, :, None] @ keys.mT * query.shape[-1] ** -0.5).softmax(-1)
    return (weights @ values)[:, :, 0]


def build_ring(
    place=lambda t, W: t % W,
    write=_write,
    seen=lambda t, W: torch.arange(W) <= t,
    before=False,
    scale=lambda q, W, t: q.shape[-1] ** -0.5,
    hidden=-torch.inf,
    over=lambda scores: scores.softmax(-1),
    keep=lambda kept: kept,
    store_value=True,
):
    """place: the slot of token t. seen: which slots it attends to. before: attend, then write."""

    def ring_step(query, key, value, kept_keys, kept_values, t):
        kept_keys, kept_values = keep(kept_keys), keep(kept_values)
        W = kept_keys.shape[2]

        def store():
            write(kept_keys, key, place(t, W))
            if store_value:
                write(kept_values, value, place(t, W))

        if not before:
            store()
        scores = (query[:, :, None] @ kept_keys.mT)[:, :, 0] * scale(query, W, t)  # (B, H, W)
        weights = over(scores.masked_fill(~seen(t, W), hidden))
        output = (weights[:, :, None] @ kept_values)[:, :, 0]
        if before:
            store()
        return output

    return ring_step


def _as_kept(inputs, value):
    return torch.equal(value[1], inputs["kept_keys"]) and torch.equal(
        value[2], inputs["kept_values"]
    )


def _shifted_when_full(query, key, value, kept_keys, kept_values, t):
    W = kept_keys.shape[2]
    for kept, new in ((kept_keys, key), (kept_values, value)):
        if t < W:
            _write(kept, new, t)
        else:
            _shift(kept, new, W - 1)
    scores = (query[:, :, None] @ kept_keys.mT)[:, :, 0] * query.shape[-1] ** -0.5
    weights = scores.masked_fill(torch.arange(W) > t, -torch.inf).softmax(-1)
    return (weights[:, :, None] @ kept_values)[:, :, 0]


def _below_the_largest_of_all(query, key, value, kept_keys, kept_values, t):
    slots = torch.arange(kept_keys.shape[2])
    for kept, new in ((kept_keys, key), (kept_values, value)):
        _write(kept, new, t % len(slots))
    scores = (query[:, :, None] @ kept_keys.mT)[:, :, 0] * query.shape[-1] ** -0.5
    powers = (scores - scores.amax(-1, keepdim=True)).exp() * (slots <= t)
    weights = powers / powers.sum(-1, keepdim=True)
    return (weights[:, :, None] @ kept_values)[:, :, 0]


def _plain_exp(scores):
    powers = scores.exp()
    return powers / powers.sum(-1, keepdim=True)


def _is_shifted(inputs, value):
    """Whether the new token stands at the end of the cache, and the others one place earlier."""
    pairs = (("kept_keys", "key", value[1]), ("kept_values", "value", value[2]))
    return all(
        mine.shape == inputs[kept].shape
        and near(mine, torch.cat([inputs[kept][:, :, 1:], inputs[new][:, :, None]], 2)).all()
        for kept, new, mine in pairs
    )


def _kept_rightly(inputs, value):
    """Whether the new token stands in its slot, and all else is as before."""
    t, W = inputs["t"], inputs["kept_keys"].shape[2]
    for kept, new, mine in (("kept_keys", "key", value[1]), ("kept_values", "value", value[2])):
        want = inputs[kept].clone()
        _write(want, inputs[new], t % W)
        if mine.shape != want.shape or not near(mine, want).all():
            return False
    return True


def _gives(*answers, where=None):
    """The `shows` of a mistake: the cache is right, and the output that of one of these answers.

    where: for the inputs, whether the output counts in this case.
    """

    def shows(inputs, value):
        if not _kept_rightly(inputs, value):
            return False
        return (where is not None and not where(inputs)) or _output_of(answers, inputs, value[0])

    return shows


def _output_of(answers, inputs, output):
    if not torch.is_tensor(output) or not output.is_floating_point():
        return False
    for answer in answers:
        given = {name: X.clone() if torch.is_tensor(X) else X for name, X in inputs.items()}
        want = answer(*given.values())
        if want.shape == output.shape and near(output.double(), want).all():
            return True
    return False


def _emptying(query, key, value, kept_keys, kept_values, t):
    kept_keys[:, :, t + 1 :] = 0.0
    kept_values[:, :, t + 1 :] = 0.0
    return build_ring()(query, key, value, kept_keys, kept_values, t)


def _others_changed(inputs, value):
    """The new token is in its slot, and the output right, but other slots have changed."""
    t, W = inputs["t"], inputs["kept_keys"].shape[2]
    there = torch.equal(value[1][:, :, t % W], inputs["key"]) and torch.equal(
        value[2][:, :, t % W], inputs["value"]
    )
    return there and _output_of([build_ring()], inputs, value[0])


def _one_fewer(query, key, value, kept_keys, kept_values, t):
    W = kept_keys.shape[2]
    kept_keys[:, :, t % W], kept_values[:, :, t % W] = key, value
    n = min(t + 1, W - 1)
    return _attend(query, kept_keys[:, :, :n], kept_values[:, :, :n])


def _oldest_seen(query, key, value, kept_keys, kept_values, t):
    place = t % kept_keys.shape[2]
    seen = [
        torch.cat([kept[:, :, :t], new[:, :, None]], 2)
        for kept, new in ((kept_keys, key), (kept_values, value))
    ]
    kept_keys[:, :, place], kept_values[:, :, place] = key, value
    return _attend(query, *seen)


def _shared_with_zeros(keys=1.0):
    """Values of slots that this text has not reached are set to 0, and perhaps their keys."""

    def ring_step(query, key, value, kept_keys, kept_values, t):
        W = kept_keys.shape[2]
        kept_keys[:, :, t % W], kept_values[:, :, t % W] = key, value
        seen = (torch.arange(W) <= t)[:, None]
        return _attend(query, kept_keys.where(seen, keys * kept_keys), kept_values * seen)

    return ring_step


def _oldest_hidden(t, W):
    return (torch.arange(W) <= t) & ((torch.arange(W) != (t + 1) % W) | (W == 1))


def _first_others(inputs):
    """Whether there is another token that may be seen."""
    return inputs["t"] > 0


def _value_missing(inputs, value):
    """The key stands in its slot, no value has changed; the output is right or that of the old
    value."""
    output, keys, values = value
    want = inputs["kept_keys"].clone()
    _write(want, inputs["key"], inputs["t"] % want.shape[2])
    return (
        torch.equal(keys, want)
        and torch.equal(values, inputs["kept_values"])
        and _output_of([build_ring(), build_ring(store_value=False)], inputs, output)
    )


def _moved_by(step):
    """The new token is in another slot, and all else as before."""

    def shows(inputs, value):
        t, W = inputs["t"], inputs["kept_keys"].shape[2]
        return _kept_rightly(inputs | {"t": t + step + W}, value)

    return shows


MISTAKES = {
    "all-slots-seen": known(
        "A token early in the text attends to slots that this text has not reached.",
        "Until the ring is full, only the slots of this text count. The others hold old numbers.",
        seen=lambda t, W: torch.arange(W) >= 0,
    ),
    "own-slot-hidden": known(
        "As long as the ring is not full, the new token does not see itself (at t = 0 it may).",
        "Token t is the last of t + 1 tokens.",
        section=MASK,
        seen=lambda t, W: torch.arange(W) < t,
        shows=_gives(build_ring(seen=lambda t, W: torch.arange(W) < t), where=_first_others),
    ),
    "own-key-only-in-the-next-step": known(
        "You attend to the cache as it was before this step: the token does not see itself, but "
        "the one in its slot, or only those before it.",
        "A token attends to itself, and the window has W tokens with it. Before the attention it "
        "has to be in the cache.",
        section=MASK,
        before=True,
        shows=_gives(
            build_ring(before=True),
            build_ring(before=True, seen=lambda t, W: torch.arange(W) < t),
            where=_first_others,
        ),
    ),
    "last-slots-seen": known(
        "You attend to the last slots of the cache.",
        "Token 0 goes into slot 0: as long as the ring is not full, this text stands in the first "
        "slots.",
        seen=lambda t, W: torch.arange(W) >= W - t - 1,
    ),
    "cache-emptied": known(
        "You change slots that are not that of token t.",
        "kept_keys and kept_values are to be as before, but for one slot. Leave slots that this "
        "text has not reached out of the attention, and let them be.",
        section=CACHE,
        wrong=_emptying,
        shows=_others_changed,
    ),
    "oldest-left-out": known(
        "You attend to one token too few.",
        "The window has W tokens, the new one among them. When the ring is full, each slot counts.",
        wrong=_one_fewer,
        shows=_gives(
            _one_fewer, build_ring(seen=_oldest_hidden), where=lambda i: i["kept_keys"].shape[2] > 1
        ),
    ),
    "oldest-seen": known(
        "When the ring is full, you attend to W + 1 tokens: the oldest one is still seen.",
        "The window has W tokens, the new one among them. It takes the place of the oldest.",
        wrong=_oldest_seen,
        shows=_gives(_oldest_seen),
    ),
    "another-slot": known(
        "You write into the slot before the right one, or behind it.",
        "Token 0 goes into slot 0.",
        place=lambda t, W: (t - 1) % W,
        shows=lambda inputs, value: _moved_by(-1)(inputs, value) or _moved_by(1)(inputs, value),
    ),
    "stops-at-the-end": known(
        "When the ring is full, you write into the last slot again and again.",
        "The oldest token has to go. In which slot is it?",
        place=lambda t, W: min(t, W - 1),
    ),
    "causal-over-slots": known(
        "In your answer slots after the one that you write into do not count, also when the ring "
        "is full.",
        "Slots are no positions: behind the newest token stand the oldest ones of the window.",
        seen=lambda t, W: torch.arange(W) <= t % W,
    ),
    "not-scaled": known(
        "The scores are not divided by √d_k.",
        "A cache changes nothing in the attention itself.",
        section=CACHE,
        scale=lambda q, W, t: 1.0,
    ),
    "cache-as-it-was": known(
        "The caller's cache is as it was.",
        "kept_keys and kept_values have to hold the new token afterwards. cat, clone and "
        "arithmetic make new tensors: write into the ones that you are given.",
        section=CACHE,
        wrong=build_ring(keep=torch.clone),
        shows=_as_kept,
    ),
}

# Not looked for together with another one: they hide it, or are seldom made.
ALONE = {
    "slot-score-finite": known(
        "Slots that this text has not reached get a number such as 0 or −1e9 as their score.",
        "exp(0) is 1, and the other scores can be below −1e9. Which number is below every score?",
        hidden=-1000.0,
        shows=_gives(
            build_ring(), *(build_ring(hidden=number) for number in (0.0, *FILLS, -1e5, -1e6, -1e9))
        ),
    ),
    "everything-shifted": known(
        "You shift the whole cache by one place in each step.",
        "That copies W keys and values for one new token. The order of the keys does not matter "
        "for attention, so only one slot has to change.",
        write=_shift,
        shows=_is_shifted,
    ),
    "shifted-when-full": known(
        "When the ring is full, you shift the whole cache by one place.",
        "That copies W keys and values for one new token. The order of the keys does not matter "
        "for attention: write over the oldest, in slot t mod W.",
        wrong=_shifted_when_full,
    ),
    "exp-too-small": known(
        "You compute exp(score) without subtracting the largest, or take 0 for it. Far below 0 all "
        "of it is 0, and 0 / 0 is NaN.",
        "A softmax looks at differences only. What can be subtracted before the exponential?",
        section=CACHE,
        over=_plain_exp,
    ),
    "largest-of-all-slots": known(
        "You subtract the largest score of all slots, or divide weights of a softmax over all of "
        "them again: slots that are not reached yet have a say.",
        "What lies there is not of this text, and its score may be far above all others. Then exp "
        "of every real score is 0, and 0 / 0 is NaN.",
        section=CACHE,
        wrong=_below_the_largest_of_all,
    ),
    "value-not-kept": known(
        "The key is kept, the value is not.",
        "Whoever calls you for the next token finds the value of another token in this slot.",
        section=CACHE,
        store_value=False,
        shows=_value_missing,
    ),
    "behind-the-end": known(
        "You take t for the number of a slot, also where the window has no such slot.",
        "There are W slots, from 0 to W − 1. Token W goes where the oldest token is.",
        place=lambda t, W: t,
    ),
    "scaled-by-something-else": known(
        "The scores are divided by something else than √d_k, or multiplied by it.",
        "d_k is the width of a query and a key. They are divided by its root, once.",
        section=CACHE,
        scale=lambda q, W, t: 1 / q.shape[-1],
        shows=_gives(
            lambda *given: build_ring(scale=lambda *_: given[2].shape[-1] ** -0.5)(*given),
            *(
                build_ring(scale=scale)
                for scale in (
                    lambda q, W, t: 1 / q.shape[-1],
                    lambda q, W, t: q.shape[-1] ** 0.5,
                    lambda q, W, t: min(t + 1, W) ** -0.5,
                    lambda q, W, t: W**-0.5,
                )
            ),
        ),
    ),
    "slots-take-a-share": known(
        "Slots that this text has not reached take a share of the weights, though their values do "
        "not count.",
        "The softmax runs over them, too, so that the weights of the tokens that are seen do not "
        "sum to 1. When is it too late to leave a slot out?",
        section=WINDOW,
        wrong=_shared_with_zeros(),
        shows=_gives(_shared_with_zeros(), _shared_with_zeros(keys=0.0)),
    ),
    "softmax-over-another-axis": known(
        "Your softmax runs over the heads, the batch or the single query, not over the slots.",
        "The weights of each head have to sum to 1 over the tokens that it sees.",
        section=CACHE,
        over=lambda scores: scores.softmax(1).nan_to_num(),
        shows=_gives(
            build_ring(over=lambda scores: scores.softmax(0).nan_to_num()),
            build_ring(over=lambda scores: scores.softmax(1).nan_to_num()),
            build_ring(over=lambda scores: (scores > -torch.inf).to(scores.dtype)),
        ),
    ),
}

TASK = Task(
    "09-ring_step",
    build_ring(),
    ring_cases,
    run=run_ring,
    returns=("the output", "kept_keys afterwards", "kept_values afterwards"),
    changes=("kept_keys", "kept_values"),
    mistakes=read_again(WINDOW, MISTAKES | ALONE),
    build=build_ring,
    stages=ring_stages,
    alone=tuple(ALONE),
    number=5,
)
