"""Task 9.5, ring_step: one token more, with a cache that holds the last W tokens."""

import torch

from mha_classroom.checks.task import Case, Task, known, read_again
from mha_classroom.tasks.cost_of_attention.causal_tiles import MASK
from mha_classroom.tasks.cost_of_attention.runs import run_ring

CACHE = "The cache"
WINDOW = "A window"


def ring_cases(draw):
    def case(name, B, H, W, d_k, d_v, t):
        inputs = {
            "query": draw.normal(B, H, d_k, scale=2.0),
            "key": draw.normal(B, H, d_k),
            "value": draw.normal(B, H, d_v),
            "kept_keys": draw.normal(B, H, W, d_k),
            "kept_values": draw.normal(B, H, W, d_v),
        }
        if t < W:  # the slots that nobody has written yet
            inputs["kept_keys"][:, :, t:] *= 5
            inputs["kept_values"][:, :, t:] = 1000.0
        return Case(name, inputs | {"t": t})

    return [
        case("1 head, a window of 3, token 1", 1, 1, 3, 2, 1, 1),
        case("a window of 5, token 3", 2, 3, 5, 7, 2, 3),
        case("the first token of a text", 2, 2, 4, 3, 5, 0),
        case("the token that fills the last slot", 2, 3, 4, 5, 7, 3),
        case("the first token that replaces another", 3, 2, 5, 3, 7, 5),
        case("token 17 with a window of 5", 2, 3, 5, 7, 2, 17),
        case("a window of one token", 2, 3, 1, 5, 2, 4),
    ]


def _write(kept, new, place):
    kept[:, :, place] = new


def _shift(kept, new, place):
    kept.copy_(torch.cat([kept[:, :, 1:], new[:, :, None]], 2))


def _shifted(seen, in_place=False):
    """A step that shifts the cache with cat, and attends to the slots that `seen` gives."""

    def ring_step(query, key, value, kept_keys, kept_values, t):
        keys = torch.cat([kept_keys[:, :, 1:], key[:, :, None]], 2)
        values = torch.cat([kept_values[:, :, 1:], value[:, :, None]], 2)
        if in_place:
            kept_keys.copy_(keys)
            kept_values.copy_(values)
        slots = seen(t, keys.shape[2])
        return _attend(query, keys[:, :, slots], values[:, :, slots])

    return ring_step


def _attend(query, keys, values):
    weights = (query[:, :, None] @ keys.mT * query.shape[-1] ** -0.5).softmax(-1)
    return (weights @ values)[:, :, 0]


def _without_itself(query, key, value, kept_keys, kept_values, t):
    W = kept_keys.shape[2]
    kept_keys[:, :, t % W], kept_values[:, :, t % W] = key, value
    filled = min(t, W)
    return _attend(query, kept_keys[:, :, :filled], kept_values[:, :, :filled])


def _all_slots(t, W):
    return slice(None)


def _first_slots(t, W):
    return slice(0, t + 1)


def _last_slots(t, W):
    return slice(max(W - t - 1, 0), None)


def build_ring(
    place=lambda t, W: t % W,
    write=_write,
    seen=lambda t, W: torch.arange(W) <= t,
    before=False,
    scale=lambda q: q.shape[-1] ** -0.5,
    keep=lambda kept: kept,
    give=lambda output, keys, values: output,
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
        scores = (query[:, :, None] @ kept_keys.mT)[:, :, 0] * scale(query)  # (B, H, W)
        weights = scores.masked_fill(~seen(t, W), -torch.inf).softmax(-1)
        output = (weights[:, :, None] @ kept_values)[:, :, 0]
        if before:
            store()
        return give(output, kept_keys, kept_values)

    return ring_step


SHIFTED = (
    "You shift the whole cache by one place in each step.",
    "That copies W keys and values for one new token. The order of the keys does not matter "
    "for attention, so only one slot has to change.",
)
SHIFTED_AWAY = (
    "You shift the cache by one place with cat, which makes a new tensor.",
    "The caller's cache is as it was. And no shift is needed: the order of the keys does not "
    "matter for attention, so only slot t mod W has to change, in the tensor that you are given.",
)
OWN_SLOT = (
    "The new token does not see itself, as long as the ring is not full.",
    "Token t is the last of t + 1 tokens.",
)

MISTAKES = {
    "cache-not-changed": known(
        "The caller's cache is as it was.",
        "kept_keys and kept_values have to hold the new token afterwards. cat, clone and "
        "arithmetic make new tensors: write into the ones that you are given.",
        section=CACHE,
        keep=torch.clone,
    ),
    "all-slots-seen": known(
        "A token early in the text attends to slots that nobody has written yet.",
        "Until the ring is full, only the slots of this text count. The others hold old numbers.",
        seen=lambda t, W: torch.arange(W) >= 0,
    ),
    "own-slot-hidden": known(
        *OWN_SLOT,
        section=MASK,
        seen=lambda t, W: torch.arange(W) < t,
    ),
    "own-slot-hidden-by-a-slice": known(*OWN_SLOT, section=MASK, wrong=_without_itself),
    "own-key-only-in-the-next-step": known(
        "You attend first and write then: the token does not see itself, but one that should be "
        "gone.",
        "A token attends to itself, and the window has W tokens with it.",
        section=MASK,
        before=True,
    ),
    "stops-at-the-end": known(
        "When the ring is full, you write into the last slot again and again.",
        "The oldest token has to go. In which slot is it?",
        place=lambda t, W: min(t, W - 1),
    ),
    "one-slot-late": known(
        "You write into the slot behind the right one.",
        "Token 0 goes into slot 0.",
        place=lambda t, W: (t + 1) % W,
    ),
    "everything-shifted": known(
        *SHIFTED,
        write=_shift,
    ),
    "everything-shifted-all-seen": known(*SHIFTED, wrong=_shifted(_all_slots, in_place=True)),
    "everything-shifted-last-seen": known(*SHIFTED, wrong=_shifted(_last_slots, in_place=True)),
    "shifted-into-a-new-tensor": known(
        *SHIFTED_AWAY,
        wrong=_shifted(_all_slots),
    ),
    "shifted-first-seen": known(*SHIFTED_AWAY, wrong=_shifted(_first_slots)),
    "shifted-last-seen": known(*SHIFTED_AWAY, wrong=_shifted(_last_slots)),
    "value-not-kept": known(
        "The key is kept, the value is not.",
        "Weights that belong to the new key meet the value of another token.",
        section=CACHE,
        store_value=False,
    ),
    "causal-over-slots": known(
        "You mask the slots after the one that you write into, also when the ring is full.",
        "Slots are no positions: behind the newest token stand the oldest ones of the window.",
        seen=lambda t, W: torch.arange(W) <= t % W,
    ),
    "not-scaled": known(
        "The scores are not divided by √d_k.",
        "A cache changes nothing in the attention itself.",
        section=CACHE,
        scale=lambda q: 1.0,
    ),
    "divided-by-d_k": known(
        "The scores are divided by d_k.",
        "They are divided by the root of it, as everywhere.",
        section=CACHE,
        scale=lambda q: 1 / q.shape[-1],
    ),
    "cache-returned": known(
        "You return the cache, too.",
        "The numbers are right. The caller has the cache already, since you write into it: the "
        "task asks for the output.",
        section=CACHE,
        give=lambda output, keys, values: (output, keys, values),
    ),
}

TASK = Task(
    "09-ring_step",
    build_ring(),
    ring_cases,
    run=run_ring,
    returns=("the output", "kept_keys afterwards", "kept_values afterwards"),
    changes=("kept_keys", "kept_values"),
    mistakes=read_again(WINDOW, MISTAKES),
    build=build_ring,
    alone=("cache-not-changed", "everything-shifted", "cache-returned", "value-not-kept"),
    number=5,
)
