"""Task 9.5, ring_step: one token more, with a cache that holds the last W tokens."""

import torch

from mha_classroom.checks.forms import near
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

    def far_below_zero(name, *sizes):
        """Each score is about a million below 0."""
        low = case(name, *sizes)
        low.inputs["query"][..., 0] = 1000.0
        for keys in ("key", "kept_keys"):
            low.inputs[keys][..., 0] -= 1000 * low.inputs[keys].shape[-1] ** 0.5
        return low

    return [
        case("1 head, a window of 3, token 1", 1, 1, 3, 2, 1, 1),
        case("a window of 5, token 3", 2, 3, 5, 7, 2, 3),
        case("the first token of a text", 2, 2, 4, 3, 5, 0),
        case("the token that fills the last slot", 2, 3, 4, 5, 7, 3),
        case("the first token that replaces another", 3, 2, 5, 3, 7, 5),
        case("token 17 with a window of 5", 2, 3, 5, 7, 2, 17),
        case("a window of one token", 2, 3, 1, 5, 2, 4),
        far_below_zero("scores far below 0, token 1", 2, 3, 5, 3, 2, 1),
        far_below_zero("scores far below 0, token 9", 2, 3, 4, 3, 2, 9),
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
    scale=lambda q, W, t: q.shape[-1] ** -0.5,
    hidden=-torch.inf,
    over=lambda scores: scores.softmax(-1),
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
        scores = (query[:, :, None] @ kept_keys.mT)[:, :, 0] * scale(query, W, t)  # (B, H, W)
        weights = over(scores.masked_fill(~seen(t, W), hidden))
        output = (weights[:, :, None] @ kept_values)[:, :, 0]
        if before:
            store()
        return give(output, kept_keys, kept_values)

    return ring_step


def _as_kept(inputs, value):
    return torch.equal(value[1], inputs["kept_keys"]) and torch.equal(
        value[2], inputs["kept_values"]
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


def _axis_left(inputs, value):
    """The cache is right, and the output has the shape of something that is not finished."""
    B, H, d_v = inputs["value"].shape
    shapes = ((B, H, 1, d_v), (B, 1, H, d_v), (B, H * d_v), (B, 1, H * d_v))
    return torch.is_tensor(value[0]) and value[0].shape in shapes


def _emptied(inputs, value):
    """Slots that nobody has reached are 0 afterwards, and the others right."""
    t, W = inputs["t"], inputs["kept_keys"].shape[2]
    changed = dict(inputs)
    for kept in ("kept_keys", "kept_values"):
        changed[kept] = inputs[kept].clone()
        changed[kept][:, :, t + 1 :] = 0.0
    return _kept_rightly(changed if t < W else inputs, value)


def _emptying(query, key, value, kept_keys, kept_values, t):
    kept_keys[:, :, t + 1 :] = 0.0
    kept_values[:, :, t + 1 :] = 0.0
    return build_ring()(query, key, value, kept_keys, kept_values, t)


def _emptied_whole(query, key, value, kept_keys, kept_values, t):
    if t == 0:
        kept_keys.zero_()
        kept_values.zero_()
    return build_ring()(query, key, value, kept_keys, kept_values, t)


def _others_changed(inputs, value):
    """The new token is in its slot, and the output right, but other slots have changed."""
    t, W = inputs["t"], inputs["kept_keys"].shape[2]
    there = torch.equal(value[1][:, :, t % W], inputs["key"]) and torch.equal(
        value[2][:, :, t % W], inputs["value"]
    )
    return there and _output_of([build_ring()], inputs, value[0])


def _window_of(axis):
    """The size of another axis is taken for the window."""

    def ring_step(query, key, value, kept_keys, kept_values, t):
        W = kept_keys.shape[axis]
        kept_keys[:, :, t % W], kept_values[:, :, t % W] = key, value
        n = min(t + 1, W)
        return _attend(query, kept_keys[:, :, :n], kept_values[:, :, :n])

    return ring_step


def _slot_t(query, key, value, kept_keys, kept_values, t):
    kept_keys[:, :, t], kept_values[:, :, t] = key, value
    return _attend(query, kept_keys[:, :, : t + 1], kept_values[:, :, : t + 1])


def _grown(query, key, value, kept_keys, kept_values, t):
    """Puts the new token behind the whole cache, in a new tensor."""
    keys = torch.cat([kept_keys, key[:, :, None]], 2)
    values = torch.cat([kept_values, value[:, :, None]], 2)
    return _attend(query, keys, values)


def _one_fewer(query, key, value, kept_keys, kept_values, t):
    W = kept_keys.shape[2]
    kept_keys[:, :, t % W], kept_values[:, :, t % W] = key, value
    n = min(t + 1, W - 1)
    return _attend(query, kept_keys[:, :, :n], kept_values[:, :, :n])


def _oldest_hidden(t, W):
    return (torch.arange(W) <= t) & ((torch.arange(W) != (t + 1) % W) | (W == 1))


def _only_itself(t, W):
    return torch.arange(W) == t % W


def _first_others(inputs):
    """Whether there is another token that may be seen."""
    return inputs["t"] > 0


def _moved_by(step):
    """The new token is in another slot, and all else as before."""

    def shows(inputs, value):
        t, W = inputs["t"], inputs["kept_keys"].shape[2]
        return _kept_rightly(inputs | {"t": t + step + W}, value)

    return shows


def _finite_fill(inputs, value):
    """Slots that nobody has reached get a number as their score."""
    fills = (0.0, -1.0, -10.0, -50.0, -100.0, -999.0, -1000.0, -9999.0, -1e4, -1e5)
    return _gives(build_ring(), *(build_ring(hidden=number) for number in fills))(inputs, value)


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
        shows=_gives(build_ring(seen=lambda t, W: torch.arange(W) < t), where=_first_others),
    ),
    "own-key-only-in-the-next-step": known(
        "You attend first and write afterwards: the token does not see itself, but one that "
        "should be gone.",
        "A token attends to itself, and the window has W tokens with it.",
        section=MASK,
        before=True,
    ),
    "slot-t": known(
        "You write into slot t.",
        "There are W slots only. From token W on they are used again, which mod takes care of.",
        wrong=_slot_t,
    ),
    "slot-score-zero": known(
        "Slots that nobody has written yet get the score 0.",
        "exp(0) is 1, so they get weight. A score of −inf leaves them out, and so does a slice.",
        hidden=0.0,
        shows=_gives(build_ring(hidden=0.0)),
    ),
    "slot-score-finite": known(
        "Slots that nobody has written yet get a number such as −1000 as their score.",
        "The others can be below it. Which number is below every score?",
        hidden=-1000.0,
        shows=_finite_fill,
    ),
    "unreached-slots-emptied": known(
        "You set slots to 0 that this text has not reached yet.",
        "The cache is to be as before, but for the slot of token t. Leave these slots out of the "
        "attention, and let them be.",
        section=CACHE,
        wrong=_emptying,
        shows=_emptied,
    ),
    "last-slots-seen": known(
        "You attend to the last slots of the cache.",
        "Token 0 goes into slot 0: as long as the ring is not full, this text stands in the first "
        "slots.",
        seen=lambda t, W: torch.arange(W) >= W - t - 1,
    ),
    "cache-emptied": known(
        "You change slots that are not that of token t.",
        "kept_keys and kept_values are to be as before, but for one slot.",
        section=CACHE,
        wrong=_emptied_whole,
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
    "only-itself": known(
        "The token attends to itself alone.",
        "It attends to the tokens of the window before it, too.",
        seen=_only_itself,
    ),
    "another-axis-for-the-window": known(
        "You take the size of another axis for the window.",
        "kept_keys is (B, H, W, d_k): which axis has the slots?",
        section=CACHE,
        wrong=_window_of(3),
    ),
    "heads-for-the-window": known(
        "You take the number of heads for the window.",
        "kept_keys is (B, H, W, d_k): which axis has the slots?",
        section=CACHE,
        wrong=_window_of(1),
    ),
    "one-slot-early": known(
        "You write into the slot before the right one.",
        "Token 0 goes into slot 0.",
        place=lambda t, W: (t - 1) % W,
        shows=_moved_by(-1),
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
        scale=lambda q, W, t: 1.0,
    ),
    "divided-by-d_k": known(
        "The scores are divided by d_k.",
        "They are divided by the root of it, as everywhere.",
        section=CACHE,
        scale=lambda q, W, t: 1 / q.shape[-1],
    ),
    "scaled-by-the-window": known(
        "The scores are divided by the root of the number of keys.",
        "The width that counts is that of a query and a key, d_k.",
        section=CACHE,
        scale=lambda q, W, t: min(t + 1, W) ** -0.5,
        shows=_gives(
            build_ring(scale=lambda q, W, t: min(t + 1, W) ** -0.5),
            build_ring(scale=lambda q, W, t: W**-0.5),
        ),
    ),
    "scaled-by-d_v": known(
        "The scores are divided by √d_v.",
        "The width that counts is that of a query and a key, d_k.",
        section=CACHE,
        wrong=lambda query, key, value, kept_keys, kept_values, t: build_ring(
            scale=lambda q, W, t: value.shape[-1] ** -0.5
        )(query, key, value, kept_keys, kept_values, t),
    ),
    "multiplied-by-the-root": known(
        "The scores are multiplied by √d_k.",
        "They are divided by it.",
        section=CACHE,
        scale=lambda q, W, t: q.shape[-1] ** 0.5,
    ),
    "softmax-over-another-axis": known(
        "Your softmax runs over the heads or over the batch, not over the slots.",
        "The weights of each head have to sum to 1 over the tokens that it sees.",
        section=CACHE,
        over=lambda scores: scores.softmax(1).nan_to_num(),
        shows=_gives(
            *(
                build_ring(over=lambda scores, axis=axis: scores.softmax(axis).nan_to_num())
                for axis in (0, 1)
            )
        ),
    ),
    "all-weights-one": known(
        "All weights are 1: your softmax runs over the axis of the query, which has one entry.",
        "It has to run over the tokens that are seen.",
        section=CACHE,
        over=lambda scores: (scores > -torch.inf).to(scores.dtype),
    ),
    "axis-left": known(
        "The output still has an axis for the queries, or its heads are joined.",
        "There is one query. The task asks for (B, H, d_v).",
        section=CACHE,
        give=lambda output, keys, values: output[:, :, None],
        shows=_axis_left,
    ),
    "cache-returned": known(
        "You return the cache, too.",
        "The numbers are right. The caller has the cache already, since you write into it: the "
        "task asks for the output.",
        section=CACHE,
        give=lambda output, keys, values: (output, keys, values),
    ),
    "cache-as-it-was": known(
        "The caller's cache is as it was.",
        "kept_keys and kept_values have to hold the new token afterwards. cat, clone and "
        "arithmetic make new tensors: write into the ones that you are given.",
        section=CACHE,
        wrong=_grown,
        shows=_as_kept,
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
    alone=(
        "cache-not-changed",
        "everything-shifted",
        "cache-returned",
        "value-not-kept",
        "slot-score-zero",
        "slot-score-finite",
        "only-itself",
        "axis-left",
        "softmax-over-another-axis",
        "all-weights-one",
        "scaled-by-the-window",
        "multiplied-by-the-root",
    ),
    number=5,
)
