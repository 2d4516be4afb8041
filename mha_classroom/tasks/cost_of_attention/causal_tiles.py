"""Task 9.3, causal_tiles: attention in tiles for queries that come last."""

import torch

from mha_classroom.checks.task import Case, Task, known, read_again, unchanged
from mha_classroom.tasks.cost_of_attention.log_sum_exp import FORBIDDEN, ONE_PASS
from mha_classroom.tasks.cost_of_attention.merge_parts import TILES
from mha_classroom.tasks.cost_of_attention.runs import run_small
from mha_classroom.tasks.cost_of_attention.tensor_sizes import small_enough

MASK = "Which keys may a new token see?"


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
        inputs["keys"][:, :, -1] = 10 * inputs["queries"][:, :, 0]
        return hidden

    return [
        case("1 head, 2 queries and 3 keys, tiles of 2", 1, 1, 2, 3, 2, 1, 2),
        case("5 queries come last among 13 keys, tiles of 4", 2, 3, 5, 13, 2, 3, 4),
        case("as many queries as keys, tiles of 3", 2, 3, 11, 11, 5, 7, 3),
        case("a single query", 2, 3, 1, 9, 5, 2, 4),
        case("one query and one key", 2, 1, 1, 1, 3, 2, 2),
        case("tiles of one key", 3, 2, 4, 7, 3, 5, 1),
        case("one tile for everything", 2, 2, 3, 5, 7, 2, 6),
        case("large scores", 2, 3, 7, 17, 3, 5, 5, scale=300.0),
        huge_and_hidden("a hidden key with a huge score", 2, 2, 3, 7, 5, 3, 4),
        case("one text, one head, 9 queries and 20 keys, tiles of 2", 1, 1, 9, 20, 3, 2, 2),
    ]


def _bottom_right(L, S, start, stop):
    return torch.arange(start, stop) <= torch.arange(L)[:, None] + S - L


def _hide(scores, allowed):
    return scores.masked_fill(~allowed, -torch.inf)


def build_tiles(
    allowed=_bottom_right,
    hide=_hide,
    scale=lambda q: q.shape[-1] ** -0.5,
    correct=lambda old, new: torch.exp(old - new),
    of_output=unchanged,
    divide=lambda output, total: output / total[..., None],
    stops=lambda S, tile: range(0, S, tile),
    merged=torch.maximum,
    looks=lambda hidden, every: hidden,
):
    """allowed: which keys of a tile each query may see. of_output: of the correction, what the
    output is multiplied by. stops: where the tiles begin.
    looks: at which scores, for the largest."""

    def causal_tiles(queries, keys, values, tile):
        L, S = queries.shape[-2], keys.shape[-2]
        largest = torch.full_like(queries[..., 0], -1e300)
        total, output = torch.zeros_like(largest), 0.0
        for start in stops(S, tile):
            part = slice(start, start + tile)
            every = queries @ keys[..., part, :].mT * scale(queries)
            mask = allowed(L, S, start, start + every.shape[-1])
            scores = hide(every, mask)
            new = merged(largest, looks(scores, every).amax(-1))
            by = correct(largest, new)
            weights = torch.exp(scores - new[..., None])
            total = total * by + weights.sum(-1)
            output = output * of_output(by)[..., None] + weights @ values[..., part, :]
            largest = new
        return divide(output, total)

    return causal_tiles


def _whole(queries, keys, values, tile):
    scores = queries @ keys.mT * queries.shape[-1] ** -0.5
    L, S = scores.shape[-2:]
    scores = scores.masked_fill(~_bottom_right(L, S, 0, S), -torch.inf)
    scores = torch.exp(scores - scores.amax(-1, keepdim=True))
    return scores @ values / scores.sum(-1, keepdim=True)


MISTAKES = {
    "aligned-top-left": known(
        "Your mask is aligned top left: query 0 sees key 0 only.",
        "The queries come last. With 5 queries and 13 keys, query 0 is token 8. Where L = S nobody "
        "notices.",
        section=MASK,
        allowed=lambda L, S, a, b: torch.arange(a, b) <= torch.arange(L)[:, None],
    ),
    "own-key-hidden": known(
        "A query does not see its own key.",
        "A token attends to the tokens before it and to itself.",
        section=MASK,
        allowed=lambda L, S, a, b: torch.arange(a, b) < torch.arange(L)[:, None] + S - L,
    ),
    "one-key-too-many": known(
        "Each query sees one key too many, that of the next token.",
        "The last query is the last token. How far before the end is query 0?",
        section=MASK,
        allowed=lambda L, S, a, b: torch.arange(a, b) <= torch.arange(L)[:, None] + S - L + 1,
    ),
    "no-mask": known(
        "Every query sees all keys.",
        "A token attends to the tokens before it and to itself. Only the last query may see "
        "everything.",
        section=MASK,
        allowed=lambda L, S, a, b: torch.ones(L, b - a, dtype=torch.bool),
    ),
    "keys-counted-from-the-tile": known(
        "You count the keys of each tile from 0.",
        "Key 0 of the second tile has the number `tile`. The mask needs the numbers in the whole "
        "sequence.",
        section=MASK,
        allowed=lambda L, S, a, b: torch.arange(b - a) <= torch.arange(L)[:, None] + S - L,
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
    "whole-mask": known(
        "You make the mask for all queries and all keys at once.",
        "The numbers are right. But this mask grows with L · S, like the table. Each tile needs "
        "its own columns of it only.",
        section=MASK,
        allowed=lambda L, S, a, b: torch.ones(L, S, dtype=torch.bool).tril(S - L)[:, a:b],
    ),
    "not-corrected": known(
        "Neither the total nor the output is corrected when a larger score arrives.",
        "What came before was measured against a smaller score and counts for too much.",
        section=ONE_PASS,
        correct=lambda old, new: torch.ones_like(new),
    ),
    "output-not-corrected": known(
        "The total is corrected, the output is not.",
        "The output so far was measured against the old largest score, like the total.",
        of_output=torch.ones_like,
    ),
    "largest-of-this-tile": known(
        "You take the largest score of the tile for the largest so far.",
        "A later tile may hold smaller scores only, or none that a query may see.",
        section=ONE_PASS,
        merged=lambda old, new: new,
    ),
    "not-divided": known(
        "The output is not divided by the total.",
        "The weights of a query have to sum to 1.",
        divide=lambda output, total: output,
    ),
    "divided-by-keys": known(
        "The scores are divided by d_k.",
        "They are divided by the root of it, as everywhere.",
        scale=lambda q: 1 / q.shape[-1],
    ),
    "not-scaled": known(
        "The scores are not divided by √d_k.",
        "Attention in tiles computes the same as attention.",
        scale=lambda q: 1.0,
    ),
    "last-tile-dropped": known(
        "You leave out the last keys where the tiles do not divide their number.",
        "The last tile may be shorter than the others.",
        stops=lambda S, tile: range(0, max(S - tile + 1, 1), tile),
    ),
    "whole-table": known(
        "You make the whole table of scores.",
        "The numbers are right. But the table grows with L · S, and the task is to have one tile "
        "of it at a time.",
        wrong=_whole,
    ),
}

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
        reason="That is more than a tile of scores, the queries, keys, values or the output have.",
    ),
    mistakes=read_again(TILES, MISTAKES),
    build=build_tiles,
    alone=("last-tile-dropped", "divided-by-keys", "largest-of-this-tile", "no-mask"),
    forbidden=(*FORBIDDEN, "torch.nn.functional.scaled_dot_product_attention"),
    number=3,
)
