"""Task 9.4, moved_bytes: what attention in tiles reads and writes, with a fast memory of a size."""

import math
from dataclasses import replace
from math import ceil
from operator import truediv

from mha_classroom.checks.forms import any_of, like
from mha_classroom.checks.task import Case, Task, known, read_again

SAVED = "What the tiles save"
TRAFFIC = "Reading and writing"
NAMES = ("num_queries", "num_keys", "d_k", "d_v", "tile", "fast_bytes")


def moved_bytes(num_queries, num_keys, d_k, d_v, tile, fast_bytes, bytes_per_number=2):
    room = fast_bytes // bytes_per_number - tile * (d_k + d_v)  # numbers, for a block of queries
    block = min(num_queries, room // (d_k + d_v + tile))
    numbers = (d_k + d_v) * (num_queries + num_keys * ceil(num_queries / block))
    return numbers * bytes_per_number


def traffic_cases(draw):
    def case(name, *numbers, **more):
        return Case(name, dict(zip(NAMES, numbers, strict=True)) | more)

    L, S, d_k, d_v, tile, more = (int(draw.integers(3, 40)) for _ in range(6))
    room = 4 * (tile * (d_k + d_v) + 2 * (d_k + d_v + tile) + more)
    return [
        case("5 queries, 8 keys, blocks of 2", 5, 8, 3, 4, 2, 64),
        case(
            "4 bytes a number, blocks of 3",
            12,
            7,
            2,
            5,
            3,
            4 * (3 * 7 + 3 * 10),
            bytes_per_number=4,
        ),
        case(
            "a block that is not full at the end, fewer keys than a block",
            10,
            3,
            5,
            2,
            3,
            2 * (3 * 7 + 4 * 10 + 3),
        ),
        case("room for more than all queries", 6, 9, 2, 3, 4, 10_000),
        case("room for a single query", 7, 5, 3, 2, 2, 2 * (2 * 5 + 7 + 6)),
        case("one byte too few for a third query", 9, 4, 3, 5, 2, 2 * (2 * 8 + 3 * 10) - 1),
        case("fewer keys than a tile has", 5, 1, 3, 4, 8, 160),
        case("one number is one byte", 9, 11, 2, 7, 3, 3 * 9 + 4 * 12 + 5, bytes_per_number=1),
        case("a head of width 64 with 100,000 bytes", 1086, 1024, 64, 64, 64, 100_000),
        case("drawn at random", L, S, d_k, d_v, tile, room, bytes_per_number=4),
    ]


def point_out_blocks(inputs, num_bytes):
    """How large a block is here, and what is moved."""
    L, S, d_k, d_v, tile, fast_bytes, *_ = inputs.values()
    size = inputs.get("bytes_per_number", 2)
    block = min(L, (fast_bytes // size - tile * (d_k + d_v)) // (d_k + d_v + tile))
    blocks = ceil(L / block)
    once, again = (n * (d_k + d_v) * size for n in (L, S))
    return (
        f"Here a block has {'1 query' if block == 1 else f'{block} queries'}, and there "
        f"{'is 1 block' if blocks == 1 else f'are {blocks} blocks'}. Queries and outputs have "
        f"{once} bytes, keys and values {again}."
    )


def build_traffic(
    fixed=lambda tile, d_k, d_v: tile * (d_k + d_v),
    each=lambda tile, d_k, d_v: d_k + d_v + tile,
    numbers=lambda fast_bytes, size: fast_bytes // size,
    per=lambda room, each: room // each,
    blocks=lambda L, block: ceil(L / block),
    queries=lambda L, block: L,
    keys=lambda S, tile: S,
    most=min,
    least=lambda block: block if block > 0 else 1,
    once=lambda d_k, d_v: d_k + d_v,
    again=lambda d_k, d_v: d_k + d_v,
    extra=lambda L, S: 0,
    widths=lambda d_k, d_v: (d_k, d_v),
    size=lambda b: b,
):
    """fixed, each: numbers in fast memory for the tile of keys, and for each query of a block.
    per: how many queries there is room for. queries, keys:
    how many are moved, in all and per block. once, again: numbers that are moved for each query,
    and for each key in each block. widths: what is taken for d_k and d_v. size: what the numbers
    are multiplied by, of the bytes of one."""

    def moved_bytes(num_queries, num_keys, d_k, d_v, tile, fast_bytes, bytes_per_number=2):
        L, S, b = num_queries, num_keys, bytes_per_number
        d_k, d_v = widths(d_k, d_v)
        room = numbers(fast_bytes, b) - fixed(tile, d_k, d_v)
        block = most(L, per(room, each(tile, d_k, d_v)))
        block = least(block)
        moved = queries(L, block) * once(d_k, d_v) + extra(L, S)
        moved += blocks(L, block) * keys(S, tile) * again(d_k, d_v)
        return moved * size(b)

    return moved_bytes


def _uncapped(L, room):
    return room


FREE = {"most": _uncapped, "least": lambda block: block}


def _room_for_all_scores(least):
    """least: how many queries a block has at least."""

    def moved_bytes(num_queries, num_keys, d_k, d_v, tile, fast_bytes, bytes_per_number=2):
        room = fast_bytes // bytes_per_number - tile * (d_k + d_v)
        block = max(least, room // (d_k + d_v + num_keys))
        numbers = (num_queries + ceil(num_queries / block) * num_keys) * (d_k + d_v)
        return numbers * bytes_per_number

    return moved_bytes


def by_name(answer, inputs):
    return answer(**inputs)


def _forms(**lists):
    """As most write it: a block that is larger than all queries, or has none, stays as it is."""
    ((name, parts),) = lists.items()
    choices = ({name: part} | more for part in parts for more in ({}, FREE))
    return any_of(build_traffic, *choices, run=by_name)


# An output is counted as wide as a query: where it is moved, in fast memory, or both.
AS_QUERIES = (
    {"once": lambda d_k, d_v: 2 * d_k},
    {"each": lambda tile, d_k, d_v: 2 * d_k + tile},
    {"once": lambda d_k, d_v: 2 * d_k, "each": lambda tile, d_k, d_v: 2 * d_k + tile},
)


def _changed(change):
    """A right number, and what is made of it and of the sizes."""

    def moved(num_queries, num_keys, d_k, d_v, tile, fast_bytes, bytes_per_number=2):
        sizes = (num_queries, num_keys, d_k, d_v, tile, fast_bytes)
        right = moved_bytes(*sizes, bytes_per_number)
        return change(right, bytes_per_number, num_queries, num_keys, d_k, d_v, tile)

    return moved


def _outputs_by_tile(times, but=0):
    """but: how many times less, such as the first one, when there is nothing to read."""
    return _changed(
        lambda right, b, L, S, d_k, d_v, tile: (
            right + b * L * d_v * (times * ceil(S / tile) - but - 1)
        )
    )


def _queries_by_tile(outputs_too):
    return _changed(
        lambda right, b, L, S, d_k, d_v, tile: (
            right + b * L * (d_k + outputs_too * d_v) * (ceil(S / tile) - 1)
        )
    )


def _half_of_the_keys(num_queries, num_keys, d_k, d_v, tile, fast_bytes, bytes_per_number=2):
    sizes = (num_queries, num_keys, d_k, d_v, tile, fast_bytes, bytes_per_number)
    queries = bytes_per_number * num_queries * (d_k + d_v)
    again = (moved_bytes(*sizes) - queries) // (bytes_per_number * (d_k + d_v))
    return queries + again // 2 * (d_k + d_v) * bytes_per_number


def _as_many_as_keys(kept=True, scores=True):
    """Room for no more keys than there are, in the tile of keys, of scores, or both."""

    def moved(num_queries, num_keys, d_k, d_v, tile, fast_bytes, bytes_per_number=2):
        cut, both = min(tile, num_keys), d_k + d_v
        room = fast_bytes // bytes_per_number - (cut if kept else tile) * both
        block = min(num_queries, room // (both + (cut if scores else tile)))
        return bytes_per_number * both * (num_queries + num_keys * ceil(num_queries / block))

    return moved


def _keys_outside(right, b, L, S, d_k, d_v, tile):
    return b * (d_k + d_v) * (S + L * ceil(S / tile))


MISTAKES = {
    "tile-of-keys-forgotten": known(
        "You keep no room for the tile of keys and values in fast memory.",
        "A tile of keys and of values has to lie there at the same time.",
        fixed=lambda tile, d_k, d_v: 0,
    ),
    "scores-take-no-room": known(
        "The tile of scores takes no room in your fast memory.",
        "Each query of a block has a score for each key of the tile, and these are computed there.",
        each=lambda tile, d_k, d_v: d_k + d_v,
    ),
    "outputs-take-no-room": known(
        "The outputs of a block take no room in your fast memory.",
        "The output of a query grows tile by tile. Until the last tile it has to stay there.",
        each=lambda tile, d_k, d_v: d_k + tile,
    ),
    "bytes-for-numbers": known(
        "You take the bytes of the fast memory for numbers.",
        "A number takes bytes_per_number bytes.",
        numbers=lambda fast_bytes, size: fast_bytes,
    ),
    "numbers-for-bytes": known(
        "You return how many numbers are moved.",
        "The task asks for bytes, and a number takes bytes_per_number of them.",
        size=lambda b: 1,
    ),
    "two-bytes-always": known(
        "In your count, or in a part of it, a number takes 2 bytes, whatever bytes_per_number is.",
        "2 is half precision. The argument may say something else.",
        **any_of(
            build_traffic,
            {"numbers": lambda fast_bytes, size: fast_bytes // 2, "size": lambda b: 2},
            {"size": lambda b: 2},
            {"numbers": lambda fast_bytes, size: fast_bytes // 2},
            run=by_name,
        ),
    ),
    "block-of-a-power-of-2": known(
        "Your block is rounded down to a power of 2.",
        "Programs often do that. Here a block is as large as fits.",
        per=lambda room, each: 1 << max((room // each).bit_length() - 1, 0),
    ),
    "queries-again-for-each-tile": known(
        "You move queries, or outputs too, for each tile of keys.",
        "A block of queries is read once, and stays while the tiles of keys come by. Which of the "
        "two is read again and again?",
        wrong=_queries_by_tile(True),
        shows=like(_queries_by_tile(True), _queries_by_tile(False), run=by_name),
    ),
    "values-as-wide-as-keys": known(
        "In your count, or in a part of it, the values are as wide as the keys.",
        "A key has d_k numbers, and a value d_v.",
        **any_of(
            build_traffic,
            {"again": lambda d_k, d_v: 2 * d_k},
            {"fixed": lambda tile, d_k, d_v: 2 * tile * d_k},
            {
                "again": lambda d_k, d_v: 2 * d_k,
                "fixed": lambda tile, d_k, d_v: 2 * tile * d_k,
            },
            run=by_name,
        ),
    ),
    "half-of-the-keys": known(
        "You move half of the keys, as if there were a causal mask.",
        "Nothing is said of a mask here: each block of queries meets all keys and values.",
        wrong=_half_of_the_keys,
    ),
    "room-for-all-scores": known(
        "You keep room for a query's scores of all keys.",
        "The keys come tile by tile, and so do the scores: how many of a query are there at once?",
        wrong=_room_for_all_scores(1),
        shows=like(*(_room_for_all_scores(least) for least in (1, -math.inf)), run=by_name),
    ),
    "last-block-forgotten": known(
        "You count full blocks only, or round their number.",
        "Where the block does not divide the queries, a smaller one comes last, however small, and "
        "it reads all keys and values, too.",
        **_forms(blocks=(lambda L, block: L // block, lambda L, block: round(L / block))),
    ),
    "part-of-a-block": known(
        "You multiply by queries / block, also where that is no whole number.",
        "The last block may be smaller. It reads all keys and values all the same.",
        blocks=lambda L, block: L / block,
    ),
    "last-block-counted-full": known(
        "You count the last block as full.",
        "It may have fewer queries, and only as many outputs are written.",
        queries=lambda L, block: -(-L // block) * block,
    ),
    "queries-read-for-each-block": known(
        "You move all queries and outputs for each block.",
        "A block has its own queries. Each query is read once, and each output is written once.",
        queries=lambda L, block: -(-L // block) * L,
    ),
    "last-tile-counted-full": known(
        "You count the last tile of keys and values as full.",
        "Room is kept for a whole tile, but only the keys that there are come from slow memory.",
        keys=lambda S, tile: -(-S // tile) * tile,
    ),
    "keys-read-once": known(
        "You read the keys and values once.",
        "For each block of queries all of them come again, since they do not fit into fast memory.",
        blocks=lambda L, block: 1,
    ),
    "keys-read-for-each-query": known(
        "You read the keys and values once for each query.",
        "The queries of a block share a tile while it lies in fast memory.",
        blocks=lambda L, block: L,
    ),
    "outputs-not-written": known(
        "The outputs are not written in your count.",
        "What is moved is what is read and what is written.",
        section=TRAFFIC,
        once=lambda d_k, d_v: d_k,
    ),
    "queries-not-read": known(
        "The queries are not read in your count.",
        "Each block of queries comes from slow memory, too, once.",
        section=TRAFFIC,
        once=lambda d_k, d_v: d_v,
    ),
    "outputs-as-wide-as-queries": known(
        "You count an output d_k wide, where it is moved, in fast memory, or both.",
        "It is an average of values. Where d_k = d_v nobody notices.",
        **any_of(
            build_traffic,
            *(part | more for part in AS_QUERIES for more in ({}, FREE)),
            run=by_name,
        ),
    ),
    "values-not-read": known(
        "The values are not read in your count.",
        "A tile of values comes with each tile of keys.",
        again=lambda d_k, d_v: d_k,
    ),
    "table-moved": known(
        "You count the table of scores.",
        "In tiles, scores are made and used in fast memory. They never leave it.",
        section=TRAFFIC,
        **_forms(extra=[lambda L, S, n=n: n * L * S for n in (1, 2, 3, 4)]),
    ),
    "values-take-no-room": known(
        "The values of a tile take no room in your fast memory.",
        "A tile has keys and values, and both lie there.",
        fixed=lambda tile, d_k, d_v: tile * d_k,
    ),
    "queries-take-no-room": known(
        "The queries of a block take no room in your fast memory.",
        "They meet each tile of keys, so they have to stay there.",
        each=lambda tile, d_k, d_v: d_v + tile,
    ),
    "more-takes-room": known(
        "You keep room for more than the task lists: for the largest score and the total of each "
        "query, or for weights beside the scores.",
        "They may need it. But here only queries, outputs, scores and a tile lie in fast memory.",
        **_forms(
            each=(
                lambda tile, d_k, d_v: d_k + d_v + tile + 2,
                lambda tile, d_k, d_v: d_k + d_v + 2 * tile,
            )
        ),
    ),
    "block-rounded-up": known(
        "You round the number of queries in a block up.",
        "Then the last of them does not fit into fast memory.",
        per=lambda room, each: -(-room // each),
    ),
    "fractions-of-blocks": known(
        "You divide with / throughout, so that a block has a fraction of a query, and a fraction "
        "of a block is counted.",
        "A query fits into fast memory or it does not. And a last block that is small reads all "
        "keys like the others.",
        numbers=truediv,
        per=truediv,
        blocks=truediv,
    ),
    "one-block-too-many": known(
        "You count one block more than the full ones, also where none is left over.",
        "If the block divides the queries, there is no smaller one at the end.",
        blocks=lambda L, block: L // block + 1,
    ),
    "outputs-moved-again": known(
        "You move the outputs more than once: you read them, too, or move them with each tile.",
        "An output starts with zeros in fast memory and stays there until the last tile. It is "
        "written once, at the end.",
        section=TRAFFIC,
        wrong=build_traffic(once=lambda d_k, d_v: d_k + 2 * d_v),
        shows=like(
            build_traffic(once=lambda d_k, d_v: d_k + 2 * d_v),
            _outputs_by_tile(1),
            _outputs_by_tile(2),
            _outputs_by_tile(2, but=1),
            run=by_name,
        ),
    ),
    "loops-exchanged": known(
        "You read the keys once, and the queries and outputs again for each tile of keys.",
        "Here the blocks of queries are the outer loop: a block stays in fast memory, and all "
        "tiles of keys pass by.",
        wrong=_changed(_keys_outside),
    ),
    "last-tile-forgotten": known(
        "You count full tiles only.",
        "The last keys are read, too, where the tiles do not divide their number.",
        keys=lambda S, tile: S // tile * tile,
    ),
    "one-tile-for-a-block": known(
        "You read one tile of keys and values for each block.",
        "One tile at a time lies in fast memory. In the end each block has seen all keys.",
        keys=lambda S, tile: tile,
    ),
    "queries-and-keys-exchanged": known(
        "You take the number of queries for that of keys, and the other way round.",
        "Queries come in blocks, and each block reads all keys.",
        wrong=lambda L, S, d_k, d_v, tile, fast, b=2: moved_bytes(S, L, d_k, d_v, tile, fast, b),
    ),
}

# Not looked for together with another one: they hide it, or are seldom made.
ALONE = {
    "room-for-fewer-keys": known(
        "Where there are fewer keys than a tile holds, you keep room for these alone.",
        "The task keeps room for a whole tile all the same: a program lays out its memory before "
        "it sees a text.",
        wrong=_as_many_as_keys(),
        shows=like(
            _as_many_as_keys(),
            _as_many_as_keys(scores=False),
            _as_many_as_keys(kept=False),
            run=by_name,
        ),
    ),
    "one-width-for-both": known(
        "You take one width for keys and values.",
        "A key is as wide as a query, d_k, and an output as wide as a value, d_v. They may differ.",
        widths=lambda d_k, d_v: (d_k, d_k),
        shows=like(
            *(
                build_traffic(**(moved | more))
                for moved in (
                    {"widths": lambda d_k, d_v: (d_k, d_k)},
                    {"widths": lambda d_k, d_v: (d_v, d_v)},
                    dict.fromkeys(("once", "again"), lambda d_k, d_v: 2 * d_k),
                    dict.fromkeys(("once", "again"), lambda d_k, d_v: 2 * d_v),
                )
                for more in ({}, FREE)
            ),
            run=by_name,
        ),
    ),
    "block-of-a-fraction": known(
        "Your block has a fraction of a query.",
        "Room for 2.9 queries is room for 2. And how many blocks there are comes from that whole "
        "number.",
        per=lambda room, each: room / each,
    ),
}

for _id, _mistake in MISTAKES.items():
    if _mistake.parts and not _mistake.shows:
        _forms_of_it = (build_traffic(**(_mistake.parts | more)) for more in ({}, FREE))
        MISTAKES[_id] = replace(_mistake, shows=like(*_forms_of_it, run=by_name))

TASK = Task(
    "09-moved_bytes",
    moved_bytes,
    traffic_cases,
    mistakes=read_again(SAVED, MISTAKES | ALONE),
    build=build_traffic,
    point_out=point_out_blocks,
    alone=tuple(ALONE),
    number=4,
)
