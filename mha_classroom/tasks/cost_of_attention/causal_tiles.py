"""Task 9.3, causal_tiles: attention in tiles for queries that come last."""

from dataclasses import replace

import torch

from mha_classroom.checks.forms import like, near
from mha_classroom.checks.task import Case, Task, and_in_float32, known, read_again, unchanged
from mha_classroom.tasks.cost_of_attention.log_sum_exp import FORBIDDEN, ONE_PASS
from mha_classroom.tasks.cost_of_attention.merge_parts import TILES
from mha_classroom.tasks.cost_of_attention.runs import run_small
from mha_classroom.tasks.cost_of_attention.tensor_sizes import small_enough

MASK = "Which keys may a new token see?"


@and_in_float32
def tile_cases(draw):
    def case(name, B, H, L, S, d_k, d_v, tile, scale=1.0):
        inputs = {
            "queries": draw.normal(B, H, L, d_k, scale=scale),
            "keys": draw.normal(B, H, S, d_k),
            "values": draw.normal(B, H, S, d_v),
        }
        return Case(name, inputs | {"tile": tile})

    def huge_and_hidden(name, *sizes):
        """The last key has huge scores with query 0, which may not see it."""
        hidden = case(name, *sizes, scale=30.0)
        inputs = hidden.inputs
        inputs["keys"][:, :, -1] = 1e9 * inputs["queries"][:, :, 0]
        return hidden

    def far_below_zero(name, *sizes):
        """Each score is about three billion below 0, and exact in binary: here √d_k is 2."""
        low = case(name, *sizes)
        for vectors in ("queries", "keys"):
            low.inputs[vectors].mul_(8).round_().div_(8)
        low.inputs["queries"][..., 0] = 1000.0
        low.inputs["keys"][..., 0] -= 6e6
        return low

    with_zeros = case("5 queries come last among 13 keys, tiles of 4", 2, 3, 5, 13, 2, 3, 4)
    with_zeros.inputs["queries"][..., 1, :] = 0  # so that scores are exactly 0
    return [
        case("1 head, 2 queries and 4 keys, tiles of 3", 1, 1, 2, 4, 2, 1, 3),
        with_zeros,
        case("as many queries as keys, tiles of 3", 2, 3, 11, 11, 5, 7, 3),
        case("a single query", 2, 3, 1, 9, 5, 2, 4),
        case("one query and one key", 2, 1, 1, 1, 3, 2, 2),
        case("tiles of one key", 3, 2, 4, 7, 3, 5, 1),
        case("one tile for everything", 2, 2, 3, 5, 7, 2, 6),
        case("large scores", 2, 3, 7, 17, 3, 5, 5, scale=1000.0),
        far_below_zero("scores far below 0", 2, 2, 5, 9, 4, 2, 3),
        huge_and_hidden("a hidden key with a huge score", 2, 2, 3, 7, 5, 3, 4),
        case("one text, one head, 9 queries and 20 keys, tiles of 2", 1, 1, 9, 20, 3, 2, 2),
    ]


def tile_stages(inputs):
    """What answers in one pass have in common with those in two."""
    queries, keys, values, tile = inputs.values()
    L, S = queries.shape[-2], keys.shape[-2]
    scores = queries @ keys.mT
    scaled = scores * queries.shape[-1] ** -0.5
    hidden = _hide(scaled, _not_later(torch.arange(S), _own(L, S)))
    tiles = [part.amax(-1) for part in hidden.split(tile, -1)]
    so_far = torch.stack(tiles).cummax(0).values
    powers = torch.exp(hidden - so_far[-1, ..., None])
    return {
        "the scores of the first tile": scores[..., :tile],
        "the scaled scores of the first tile": scaled[..., :tile],
        "the largest score so far, after each tile": so_far,
        "the sums over all tiles": {
            "the total, measured against the largest score": powers.sum(-1),
            "the output before it is divided": powers @ values,
        },
    }


def _own(L, S):
    """The number of each query in the whole sequence."""
    return torch.arange(S - L, S)


def _not_later(keys, own):
    return keys <= own[:, None]


def _earlier(keys, own):
    return keys < own[:, None]


def _all_before_the_last_tile(keys, own):
    return (keys <= own[:, None]) | (keys[-1] < own[-1])  # the last query is the last token


def _hide(scores, allowed):
    return scores.masked_fill(~allowed, -torch.inf)


def _filled(number):
    return lambda scores, allowed: scores.masked_fill(~allowed, number)


def _lowered(number):
    return lambda scores, allowed: scores + number * ~allowed


def build_tiles(
    own=_own,
    numbered=lambda start, stop, tile: torch.arange(start, stop),
    allowed=_not_later,
    hide=_hide,
    scale=lambda q, v: q.shape[-1] ** -0.5,
    correct=lambda old, new: torch.exp(old - new),
    of_output=unchanged,
    of_total=unchanged,
    divide=lambda output, total: output / total[..., None],
    stops=lambda L, S, tile: range(0, S, tile),
    merged=torch.maximum,
    looks=lambda hidden, every: hidden,
    start_at=-1e30,
    again=lambda output, total: output,
    of_weights=lambda weights, mask: weights,
):
    """own: the numbers of the queries. numbered: those of the keys of a tile. allowed: which keys
    each query may see. of_output, of_total: of the correction, what the two are multiplied by.
    stops: where the tiles begin. looks: at which scores, for the largest. again: what becomes of
    the output after each tile."""

    def causal_tiles(queries, keys, values, tile):
        L, S = queries.shape[-2], keys.shape[-2]
        largest = torch.full_like(queries[..., 0], start_at)
        total, output = torch.zeros_like(largest), 0.0
        for start in stops(L, S, tile):
            part = slice(start, start + tile)
            every = queries @ keys[..., part, :].mT * scale(queries, values)
            mask = allowed(numbered(start, start + every.shape[-1], tile), own(L, S))
            scores = hide(every, mask)
            new = merged(largest, looks(scores, every).amax(-1))
            by = correct(largest, new)
            weights = torch.exp(scores - new[..., None])
            total = total * of_total(by) + weights.sum(-1)
            output = output * of_output(by)[..., None]
            output = output + of_weights(weights, mask) @ values[..., part, :]
            output = again(output, total)
            largest = new
        return divide(output, total)

    return causal_tiles


def _unsafe(queries, keys, values, tile):
    return build_tiles(
        merged=lambda old, new: torch.zeros_like(new), correct=lambda old, new: torch.ones_like(new)
    )(queries, keys, values, tile)


def _each_alone(joined, hide=_hide):
    """Attention in each tile for itself, and what is made of the outputs."""

    def causal_tiles(queries, keys, values, tile):
        outputs = []
        for start in range(0, keys.shape[-2], tile):
            one = build_tiles(
                hide=hide,
                stops=lambda L, S, tile, start=start: [start],
                divide=lambda output, total: output / total[..., None].clamp(min=1e-300),
            )
            outputs.append(one(queries, keys, values, tile))
        return joined(outputs)

    return causal_tiles


def _any_start(*parts, where=None):
    """The `shows` of a mistake, whether the largest score starts at −inf or at a number."""
    return like(
        *(build_tiles(**(one | at)) for one in parts for at in ({}, {"start_at": -torch.inf})),
        where=where,
    )


def _sees_another(inputs, value):
    """The queries that come after another token: alone with itself, one may get NaN or zeros."""
    return _own(inputs["queries"].shape[-2], inputs["keys"].shape[-2])[:, None] > 0


def _each_tile_for_itself(queries, keys, values, tile):
    """Merged afterwards, as parts are: where one has no key, with NaN."""
    L, S = queries.shape[-2], keys.shape[-2]
    largest, total, output = torch.full_like(queries[..., 0], -torch.inf), 0.0, 0.0
    for start in range(0, S, tile):
        part = slice(start, start + tile)
        scores = queries @ keys[..., part, :].mT * queries.shape[-1] ** -0.5
        scores = _hide(scores, _not_later(torch.arange(S)[part], _own(L, S)))
        here = scores.amax(-1)
        weights, new = torch.exp(scores - here[..., None]), torch.maximum(largest, here)
        old, now = torch.exp(largest - new), torch.exp(here - new)
        total = old * total + now * weights.sum(-1)
        output = old[..., None] * output + now[..., None] * (weights @ values[..., part, :])
        largest = new
    return output / total[..., None]


def _not_nan(inputs, value):
    """Where a result is a number, if any is: of a query that sees nothing many things come."""
    finite = value.isfinite()
    return finite if finite.any() else torch.ones_like(finite)


def _ends_early(*stops):
    """The `shows` of a mistake that does not come to the last tiles."""
    made = [build_tiles(stops=one) for one in stops]

    def where(inputs, value):
        return value.isfinite() & (value != 0)

    def shows(inputs, value):
        L, S = inputs["queries"].shape[2], inputs["keys"].shape[2]
        if torch.is_tensor(value) and not where(inputs, value).any():
            return any(len(one(L, S, inputs["tile"])) == 0 for one in stops)  # it has no tile
        return like(*made, where=where)(inputs, value)

    return shows


def _overflows(inputs, value):
    """Right, or no number: exp of a score overflowed, or was 0 for all keys."""
    right = build_tiles()(*inputs.values())
    if not torch.is_tensor(value) or value.shape != right.shape:
        return False
    largest = _largest_seen(inputs)
    every = inputs["queries"] @ inputs["keys"].mT * inputs["queries"].shape[-1] ** -0.5
    far = ((largest.abs() > 700) | (every.amax(-1) > 700))[..., None].expand_as(right)
    same, sure = near(value.double(), right), largest.abs() > 750  # no hidden key needed
    if largest.max() > 750 and same[largest == largest.max()].all():
        return False  # the largest of all would overflow first
    return _lost(value, same, far) and not bool(sure.any() and same[sure].all())


def _lost(value, same, places):
    """Whether all is the same but in these places, and there some are no numbers, or 0 for them.

    Not all: exp of −720 is a number with few digits.
    """
    gone = ~value.isfinite() | (value == 0)
    return bool((same | places).all()) and bool(same.all() or gone[~same].any())


def _largest_seen(inputs):
    queries, keys = inputs["queries"], inputs["keys"]
    scores = queries @ keys.mT * queries.shape[-1] ** -0.5
    L, S = scores.shape[-2:]
    return _hide(scores, _not_later(torch.arange(S), _own(L, S))).amax(-1)


def _starts_too_high(inputs, value):
    """Right, and wrong where each score is far below 0."""
    right = build_tiles()(*inputs.values())
    if not torch.is_tensor(value) or value.shape != right.shape:
        return False
    low = (_largest_seen(inputs) < -700)[..., None].expand_as(right)
    same = near(value.double(), right)
    return _lost(value, same, low) and not (low.all() and same.all())


def _one_for_all(inputs, value):
    """Right, and wrong for queries whose scores are far below the largest of another one."""
    right = build_tiles()(*inputs.values())
    if not torch.is_tensor(value) or value.shape != right.shape:
        return False
    largest = _largest_seen(inputs)
    below = (largest.max() - largest)[..., None].expand_as(right)
    same = near(value.double(), right)
    few_digits = ~same & (below > 700) & (below < 746)
    return _lost(value, same, below > 700) or bool((same | few_digits).all())


def _finite_fill(inputs, value):
    """Hidden keys get a number between −1 and a billion below 0, or are lowered by one."""
    if _largest_seen(inputs).amax() < -1e6:  # any of the numbers makes the hidden keys alike
        return like(build_tiles(), build_tiles(hide=_filled(-1000.0)))(inputs, value)
    fills = (-1.0, -10.0, -50.0, -100.0, -999.0, -1000.0, -9999.0, -1e4, -1e5, -1e6, -1e9)
    hides = [hide(number) for number in fills for hide in (_filled, _lowered)]
    return like(build_tiles(), *(build_tiles(hide=hide) for hide in hides))(inputs, value)


def _divided_in_each_tile(inputs, value):
    def divided(output, total):
        return output / torch.where(total == 0, 1.0, total)[..., None]

    made = [
        build_tiles(again=divided, divide=divide)
        for divide in (lambda output, total: output, divided)
    ]
    return like(*made, where=_not_nan)(inputs, value)


def _full_tiles(L, S, tile):
    return range(0, max(S - tile + 1, 1), tile)


def _up_to_query_0(L, S, tile):
    return range(0, S - L + 1, tile)


MISTAKES = {
    "aligned-top-left": known(
        "Your mask is aligned top left: query 0 sees key 0 only.",
        "The queries come last. With 5 queries and 13 keys, query 0 is token 8. Where L = S nobody "
        "notices.",
        section=MASK,
        own=lambda L, S: torch.arange(L),
    ),
    "own-key-hidden": known(
        "A query does not see its own key.",
        "A token attends to the tokens before it and to itself.",
        section=MASK,
        allowed=_earlier,
        shows=_any_start({"allowed": _earlier}, where=_sees_another),
    ),
    "one-key-too-many": known(
        "A query sees one key too many, that of the next token.",
        "The last query is the last token. How far before the end is query 0?",
        section=MASK,
        allowed=lambda keys, own: keys <= own[:, None] + 1,
    ),
    "keys-counted-from-the-tile": known(
        "In your mask the keys of each tile are counted from 0.",
        "Key 0 of the second tile has the number `tile`. The mask needs the numbers in the whole "
        "sequence.",
        section=MASK,
        numbered=lambda start, stop, tile: torch.arange(stop - start),
    ),
    "hidden-in-the-total": known(
        "Hidden keys count in the total, but not in the output.",
        "The weights that are used have to sum to 1. Hide a key before the total is summed.",
        hide=lambda scores, allowed: scores,
        of_weights=lambda weights, mask: weights * mask,
    ),
    "hidden-scores-zero": known(
        "Hidden scores are set to 0.",
        "exp(0 − largest) is not 0: hidden keys still get weight.",
        hide=lambda scores, allowed: scores.masked_fill(~allowed, 0.0),
    ),
    "largest-before-hiding": known(
        "You take the largest score before you hide keys.",
        "A hidden key may have a huge score. Measured against it, exp of all others is 0, and the "
        "total is 0, too.",
        looks=lambda hidden, every: every,
    ),
    "not-corrected": known(
        "Neither the total nor the output is corrected when a larger score arrives.",
        "What came before was measured against a smaller score and counts for too much. If you do "
        "correct it: is the old largest score overwritten before you use it?",
        section=ONE_PASS,
        correct=lambda old, new: torch.ones_like(new),
    ),
    "total-not-corrected": known(
        "The output is corrected, the total is not.",
        "The total so far was measured against the old largest score, like the output.",
        section=ONE_PASS,
        of_total=torch.ones_like,
    ),
    "tiles-added-up": known(
        "You compute attention in each tile for itself, and add the outputs, take their mean or "
        "keep the last one.",
        "The weights of a tile sum to 1 then, also where all of its scores are small. Tiles can be "
        "put together only if all are measured against the same score, and divided once.",
        wrong=_each_alone(sum),
        shows=like(
            _each_alone(sum),
            _each_alone(lambda outputs: sum(outputs) / len(outputs)),
            _each_alone(lambda outputs: outputs[-1]),
            _each_alone(sum, hide=_filled(-1e9)),
            where=_not_nan,
        ),
    ),
    "output-not-corrected": known(
        "The total is corrected, the output is not.",
        "The output so far was measured against the old largest score, like the total.",
        of_output=torch.ones_like,
    ),
    "not-divided": known(
        "The output is not divided by the total.",
        "The weights of a query have to sum to 1.",
        divide=lambda output, total: output,
    ),
    "not-scaled": known(
        "The scores are not divided by √d_k.",
        "Attention in tiles computes the same as attention.",
        scale=lambda q, v: 1.0,
    ),
    "nothing-subtracted": known(
        "Somewhere you take exp of a score, or of a tile's result, as it is.",
        "exp overflows above 709 in float64, and far below 0 all of it is 0. The largest score so "
        "far has to be subtracted before.",
        section=ONE_PASS,
        wrong=_unsafe,
        shows=_overflows,
    ),
    "one-largest-for-all-queries": known(
        "It is wrong where the scores of one query are far below those of another: you take one "
        "largest score for several queries.",
        "Measured against a score that is far above its own, exp of all scores of a query is 0, "
        "and so is its total. Each query has its own largest score.",
        section=ONE_PASS,
        wrong=build_tiles(looks=lambda hidden, every: hidden.amax().expand_as(hidden)),
        shows=_one_for_all,
    ),
}

# Not looked for together with another one: they hide it, or are seldom made.
ALONE = {
    "no-mask": known(
        "Every query sees all keys.",
        "A token attends to the tokens before it and to itself. Only the last query may see "
        "everything.",
        section=MASK,
        allowed=lambda keys, own: keys <= own[:, None] + 10**6,
    ),
    "offset-turned-round": known(
        "You take L − S for S − L, or add S − L to the numbers of the keys.",
        "Query 0 is the first of the last L tokens, so its number is not below 0. With 5 queries "
        "and 13 keys, which token is it?",
        section=MASK,
        own=lambda L, S: torch.arange(L) + L - S,
    ),
    "mask-turned-round": known(
        "Your mask is turned round: it hides what a query may see.",
        "A query sees the keys before it and its own. In `masked_fill`, True is what gets hidden. "
        "tril keeps what lies below, triu what lies above.",
        section=MASK,
        allowed=lambda keys, own: keys > own[:, None],
        shows=_any_start(
            {"allowed": lambda keys, own: keys > own[:, None]},
            {"allowed": lambda keys, own: keys >= own[:, None]},
        ),
    ),
    "masked-in-the-last-tile-only": known(
        "Only the last tile is masked. Of the tiles before it every query sees all keys.",
        "Query 0 is token S − L, and all keys after that are hidden from it. In how many tiles can "
        "they lie?",
        section=MASK,
        allowed=_all_before_the_last_tile,
    ),
    "hidden-scores-finite": known(
        "Hidden scores get a number such as −1000 or −1e9, or are lowered by one.",
        "Scores can be far apart and far below 0. Then exp still gives hidden keys the most "
        "weight. Which number is below every score?",
        hide=_filled(-1000.0),
        shows=_finite_fill,
    ),
    "starts-at-a-number": known(
        "Your largest score starts at 0, or at another number that scores can be below, or such a "
        "number is counted among the scores.",
        "Where all scores are below it, it is taken for the largest. exp of every score is 0 then, "
        "and so is the total.",
        section=ONE_PASS,
        start_at=0.0,
        shows=_starts_too_high,
    ),
    "corrected-the-wrong-way": known(
        "You get NaN everywhere. Do you multiply a mask by −inf? Or do you compute exp(new − old), "
        "or exp(score − old)?",
        "0 · (−inf) is NaN. And both powers are infinite in the first tile: if the old largest is "
        "−inf there, 0 · inf or inf / inf comes up, which is NaN as well. What came before has to "
        "become smaller when a larger score arrives, and the scores of a tile are measured against "
        "the new largest.",
        section=ONE_PASS,
        correct=lambda old, new: torch.exp(new - old),
        shows=like(build_tiles(correct=lambda old, new: torch.exp(new - old))),
    ),
    "divided-in-each-tile": known(
        "You divide the output by the total in each tile.",
        "The next tile corrects and adds to sums. Divide once, after the last tile.",
        again=lambda output, total: output / total[..., None],
        divide=lambda output, total: output,
        shows=_divided_in_each_tile,
    ),
    "largest-of-this-tile": known(
        "You take the largest score of the tile for the largest so far.",
        "A later tile may hold smaller scores only, or none that a query may see.",
        section=ONE_PASS,
        merged=lambda old, new: new,
    ),
    "each-tile-for-itself": known(
        "A tile that is hidden from a query altogether gives it NaN. Is each tile computed for "
        "itself?",
        "The largest score of such a tile is −inf, and its total 0: −inf − (−inf) and 0 / 0 are "
        "NaN. The largest score so far may be subtracted: what is it before a query has seen a "
        "key?",
        section=ONE_PASS,
        wrong=_each_tile_for_itself,
    ),
    "start-turned-round": known(
        "The mask of a later tile moves to the wrong side: a query sees more of its keys, not "
        "fewer.",
        "The further back in the text a tile begins, the fewer of its keys come before a query. "
        "For the tile that begins at `start`, which number has its first key?",
        section=MASK,
        numbered=lambda start, stop, tile: torch.arange(stop - start) - start,
    ),
    "last-tile-taken-for-full": known(
        "Your mask has room for `tile` keys in the last tile, too, and it may have fewer.",
        "Where `tile` does not divide S, or is larger than S, the mask is wider than the scores of "
        "the last tile. How many keys are left for it?",
        numbered=lambda start, stop, tile: torch.arange(start, start + tile),
    ),
    "scaled-by-the-width-of-values": known(
        "You divide the scores by √d_v, the width of a value.",
        "The values do not go into the scores. A score is the product of a query and a key, and "
        "d_k is the width of these.",
        scale=lambda q, v: v.shape[-1] ** -0.5,
    ),
    "scaled-by-something-else": known(
        "The scores are divided by something else than √d_k, or multiplied by it.",
        "d_k is the last axis of the queries, the width of a query and a key. They are divided by "
        "its root, once.",
        scale=lambda q, v: 1 / q.shape[-1],
        shows=_any_start(
            *(
                {"scale": scale}
                for scale in (
                    lambda q, v: 1 / q.shape[-1],
                    lambda q, v: q.shape[-1] ** 0.5,
                    lambda q, v: q.shape[-1] ** -0.25,
                    lambda q, v: (q.shape[1] * q.shape[-1]) ** -0.5,
                    lambda q, v: q.shape[1] ** -0.5,
                    lambda q, v: q.shape[-2] ** -0.5,
                )
            )
        ),
    ),
    "last-tile-dropped": known(
        "You leave out the last keys where the tiles do not divide their number.",
        "The last tile may be shorter than the others.",
        stops=_full_tiles,
        shows=_ends_early(_full_tiles, lambda L, S, tile: range(0, S - tile + 1, tile)),
    ),
    "ends-too-early": known(
        "You stop about where the keys of query 0 end, or after as many keys as there are queries.",
        "The keys are cut into tiles, and there are S of them. A tile can be left out only if no "
        "query sees it.",
        section=MASK,
        stops=_up_to_query_0,
        shows=_ends_early(
            _up_to_query_0,
            lambda L, S, tile: range(0, max(S - L, 1), tile),
            lambda L, S, tile: range(0, L, tile),
        ),
    ),
}

for _known in (MISTAKES, ALONE):
    for _id, _mistake in _known.items():
        if _mistake.parts and not _mistake.shows and _id != "last-tile-taken-for-full":  # raises
            _known[_id] = replace(_mistake, shows=_any_start(_mistake.parts))

TASK = Task(
    "09-causal_tiles",
    build_tiles(),
    tile_cases,
    run=run_small,
    examine=small_enough(
        shape=lambda inputs: (*inputs["queries"].shape[:3], inputs["values"].shape[-1]),
        limit=lambda inputs: max(
            *(inputs[name].numel() for name in ("queries", "keys", "values")),
            inputs["queries"][..., 0].numel() * inputs["values"].shape[-1],
            inputs["queries"][..., 0].numel() * inputs["tile"],
        ),
        reason="A tile of scores, the queries, keys, values and the output have no more. The whole "
        "table of scores has B · H · L · S, a mask of all keys L · S, and padding makes keys and "
        "values larger.",
    ),
    mistakes=read_again(TILES, ALONE | MISTAKES),
    build=build_tiles,
    stages=tile_stages,
    alone=tuple(ALONE),
    forbidden=(*FORBIDDEN, "torch.nn.functional.scaled_dot_product_attention"),
    number=3,
)
