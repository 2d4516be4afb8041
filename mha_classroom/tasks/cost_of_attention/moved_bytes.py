"""Task 9.4, moved_bytes: what attention in tiles reads and writes, with a fast memory of a size."""

from math import ceil

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
        case("a block that is not full at the end", 10, 6, 5, 2, 3, 2 * (3 * 7 + 4 * 10 + 9)),
        case("room for more than all queries", 6, 9, 2, 3, 4, 10_000),
        case("room for a single query", 7, 5, 3, 2, 2, 2 * (2 * 5 + 7)),
        case("one byte too few for a third query", 9, 4, 3, 5, 2, 2 * (2 * 8 + 3 * 10) - 1),
        case("fewer keys than a tile has", 5, 1, 3, 4, 8, 160),
        case("one number is one byte", 9, 11, 2, 7, 3, 3 * 9 + 4 * 12 + 5, bytes_per_number=1),
        case("a head of width 64 with 100,000 bytes", 1024, 1024, 64, 64, 64, 100_000),
        case("drawn at random", L, S, d_k, d_v, tile, room, bytes_per_number=4),
    ]


def build_traffic(
    fixed=lambda tile, d_k, d_v: tile * (d_k + d_v),
    cut=lambda tile, S: tile,
    each=lambda tile, d_k, d_v: d_k + d_v + tile,
    numbers=lambda fast_bytes, size: fast_bytes // size,
    blocks=lambda L, block: -(-L // block),
    queries=lambda L, block: L,
    keys=lambda S, tile: S,
    most=min,
    once=lambda d_k, d_v: d_k + d_v,
    again=lambda d_k, d_v: d_k + d_v,
    extra=lambda L, S: 0,
    size=lambda b: b,
    default=2,
):
    """fixed, each: numbers in fast memory for the tile of keys, and for each query of a block.
    cut: keys that the tile has room for. queries, keys: how many are moved, in all and per block.
    once, again: numbers that are moved for each query, and for each key in each block."""

    def moved_bytes(num_queries, num_keys, d_k, d_v, tile, fast_bytes, bytes_per_number=default):
        L, S, b = num_queries, num_keys, bytes_per_number
        room = numbers(fast_bytes, b) - fixed(cut(tile, S), d_k, d_v)
        block = max(most(L, room // each(tile, d_k, d_v)), 1)
        moved = queries(L, block) * once(d_k, d_v) + extra(L, S)
        moved += blocks(L, block) * keys(S, tile) * again(d_k, d_v)
        return moved * size(b)

    return moved_bytes


MISTAKES = {
    "tile-of-keys-forgotten": known(
        "You give all of the fast memory to the queries.",
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
    "last-block-forgotten": known(
        "You count full blocks only.",
        "Where the block does not divide the queries, a smaller one comes last, and it reads all "
        "keys and values, too.",
        blocks=lambda L, block: L // block,
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
    "tile-cut-to-the-keys": known(
        "Where there are fewer keys than a tile has, you keep room for these only.",
        "In this task the fast memory always has room for a whole tile of keys and values.",
        cut=min,
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
    "values-not-read": known(
        "The values are not read in your count.",
        "A tile of values comes with each tile of keys.",
        again=lambda d_k, d_v: d_k,
    ),
    "table-moved": known(
        "You count the table of scores.",
        "In tiles, scores are made and used in fast memory. They never leave it.",
        section=TRAFFIC,
        extra=lambda L, S: 4 * L * S,
    ),
    "numbers-not-bytes": known(
        "You return how many numbers are moved.",
        "Each of them takes bytes_per_number bytes.",
        size=lambda b: 1,
    ),
    "default-of-4": known(
        "A number takes 4 bytes in your function if nothing is said.",
        "The default of the task is 2, as in float16.",
        default=4,
    ),
}

TASK = Task(
    "09-moved_bytes",
    moved_bytes,
    traffic_cases,
    mistakes=read_again(SAVED, MISTAKES),
    build=build_traffic,
    number=4,
)
