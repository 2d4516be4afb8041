"""Task 8.4, key_heads_needed: which key heads stay when query heads go, and their new numbers."""

import torch

from mha_classroom.checks.forms import any_of, like
from mha_classroom.checks.showing import numbers_text
from mha_classroom.checks.task import Case, Task, known, read_again, unchanged
from mha_classroom.tasks.how_many_heads.prune_heads import REMOVAL


def key_heads_needed(kept, num_heads, num_kv_heads):
    used = kept // (num_heads // num_kv_heads)  # (n,)
    return torch.unique(used, return_inverse=True)


def point_out_groups(inputs, seen):
    """Which key head each of the query heads uses."""
    kept, num_heads, num_kv_heads = inputs.values()
    used = kept // (num_heads // num_kv_heads)
    return f"These query heads use key heads {numbers_text(used, most=12)}, one after another."


def needed_cases(draw):
    def case(name, kept, num_heads, num_kv_heads):
        inputs = {"kept": torch.tensor(kept), "num_heads": num_heads, "num_kv_heads": num_kv_heads}
        return Case(name, inputs)

    some = draw.integers(0, 1, 24).nonzero().flatten().tolist()
    return [
        case("heads 0, 4, 5 of 6 stay, 2 key heads", [0, 4, 5], 6, 2),
        case("a key head is not needed any more", [4, 5, 7], 8, 4),
        case("several are not needed", [3, 10, 11], 12, 6),
        case("the first key head is not needed", [4, 5, 9], 12, 3),
        case("a key head for each query head", [4, 1, 2], 5, 5),
        case("one key head for all", [0, 3], 6, 1),
        case("in no order, two of one group", [26, 41, 2, 27], 44, 22),
        case("all stay", list(range(6)), 6, 3),
        case("one of 214 stays", [107], 214, 2),
        case("drawn at random", some, 24, 8),
    ]


def by_group(kept, num_heads, num_kv_heads):
    return kept // (num_heads // num_kv_heads)


def in_order_of_use(used, key_heads):
    return torch.tensor(list(dict.fromkeys(used.tolist())))


def in_order_of_a_set(used, key_heads):
    return torch.tensor(list(set(used.tolist())))


def place_in(used, needed):
    return (used[:, None] == needed).long().argmax(dim=1)


def build_needed(
    use=by_group,
    needed=lambda used, kv: used.unique(),
    place=lambda used, needed: torch.searchsorted(needed, used),
    order=unchanged,
):
    def key_heads_needed(kept, num_heads, num_kv_heads):
        used = use(kept, num_heads, num_kv_heads)
        key_heads = needed(used, num_kv_heads)
        return order((key_heads, place(used, key_heads)))

    return key_heads_needed


def _as_mask(dtype):
    def answer(kept, H, G):
        used, places = key_heads_needed(kept, H, G)
        return torch.isin(torch.arange(G), used).to(dtype), places

    return answer


def _whole_groups(kept, H, G):
    used, counts = by_group(kept, H, G).unique(return_counts=True)
    return used[counts == H // G]


def _shows_whole_groups(inputs, value):
    found = next(iter(value), None) if isinstance(value, (tuple, list)) else None
    return torch.is_tensor(found) and found.tolist() == _whole_groups(*inputs.values()).tolist()


def _those_that_go(kept, H, G):
    used, places = key_heads_needed(kept, H, G)
    return torch.tensor([g for g in range(G) if g not in used.tolist()], dtype=torch.long), places


def _shows_those_that_go(inputs, value):
    found = next(iter(value), None) if isinstance(value, (tuple, list)) else None
    right = _those_that_go(*inputs.values())[0].tolist()
    return torch.is_tensor(found) and found.tolist() == right


def _places_of_all(kept, H, G):
    used, _ = key_heads_needed(kept, H, G)
    return used, torch.searchsorted(used, by_group(torch.arange(H), H, G))


def _as_they_come_without_groups(kept, H, G):
    return (kept.clone(), torch.arange(len(kept))) if H == G else key_heads_needed(kept, H, G)


def _size_by_what_stays(**form):
    return known(
        "You get the size of a group from the number of query heads that stay.",
        "The groups were made when the model was: with num_heads query heads.",
        **form,
    )


NEEDED = {
    "heads-dealt-in-turn": known(
        "You deal the key heads out in turn: query head h uses key head h modulo their number.",
        "Query heads that are neighbours form a group (exercise 4.8).",
        use=lambda kept, H, G: kept % G,
    ),
    "groups-and-size-swapped": known(
        "You divide by the number of key heads.",
        "A group has as many query heads as share one key head (exercise 4.8). How many are these?",
        use=lambda kept, H, G: kept // G,
    ),
    "old-numbers": known(
        "For the query heads you return the old numbers of their key heads.",
        "When key heads go, the others move up. Asked for is the place among those that stay.",
        place=lambda used, needed: used,
    ),
    "all-key-heads": known(
        "You keep all key heads.",
        "A key head that no query head uses any more can go.",
        needed=lambda used, kv: torch.arange(kv),
    ),
    "repeated": known(
        "You list a key head once for each query head that uses it.",
        "A key head is there once, and its group shares it (exercise 4.8).",
        **any_of(
            build_needed,
            needed=(lambda used, kv: used, lambda used, kv: used.sort().values),
        ),
    ),
    "place-in-the-group": known(
        "Your places say which query head of its group one is.",
        "Asked for is the place of its key head among those that stay.",
        wrong=lambda kept, H, G: (by_group(kept, H, G).unique(), kept % (H // G)),
    ),
}

# Not looked for together with another one: they hide it, or are seldom made.
ALONE = {
    "grouped-anew": known(
        "You group the query heads that stay anew, so that some get the keys of another group.",
        "A query head was trained with its key head, and keeps it. Groups may be unequal now.",
        place=lambda used, needed: torch.arange(len(used)) * len(needed) // len(used),
        shows=like(
            build_needed(
                place=lambda used, needed: torch.arange(len(used)) * len(needed) // len(used)
            ),
            lambda kept, H, G: (
                by_group(kept, H, G).unique(),
                by_group(torch.arange(len(kept)), H, G),
            ),
        ),
    ),
    "whole-groups-only": known(
        "A key head stays for you only if all of its query heads do.",
        "One query head that stays still needs its keys.",
        wrong=lambda kept, H, G: (_whole_groups(kept, H, G), by_group(kept, H, G)),
        shows=_shows_whole_groups,
    ),
    "renumbered-too-early": known(
        "You use the places of the query heads among those that stay, where their old numbers "
        "belong.",
        "The old number says to which group a head belongs.",
        use=lambda kept, H, G: torch.arange(len(kept)) // (H // G),
    ),
    "kept-sorted": known(
        "You sort `kept`, or go from key head to key head, and the places come in that order.",
        "The n-th place belongs to the n-th query head of `kept` as it was given.",
        use=lambda kept, H, G: by_group(kept.sort().values, H, G),
    ),
    "in-order-of-use": known(
        "You list the key heads in the order in which the query heads need them.",
        "They should be in increasing order, and the places count in that order.",
        needed=in_order_of_use,
        place=place_in,
    ),
    "places-in-order-of-use": known(
        "Your key heads come in increasing order, but your places count them in the order in which "
        "the query heads need them.",
        "A place says where a key head stands in the list that you return.",
        place=lambda used, needed: place_in(used, in_order_of_use(used, needed)),
    ),
    "in-order-of-a-set": known(
        "You list the key heads in the order in which a set holds them.",
        "A set has no order. Small numbers often come out sorted, but 1 and 8 do not. They should "
        "be in increasing order, and the places count in that order.",
        needed=in_order_of_a_set,
        place=place_in,
    ),
    "modulo-the-size-of-a-group": known(
        "You take the numbers of query heads modulo the size of a group.",
        "That says which query head of its group one is. Query heads that are neighbours form a "
        "group (exercise 4.8): which group is it?",
        use=lambda kept, H, G: kept % (H // G),
    ),
    "fractions": known(
        "You divide without rounding down, so that query heads of one group get different numbers.",
        "In Python / gives fractions, // whole numbers.",
        use=lambda kept, H, G: kept / (H // G),
    ),
    "rounded": known(
        "You round the quotient, to the nearest number or up.",
        "Then some query heads of a group get the next key head.",
        **any_of(
            build_needed,
            use=(
                lambda kept, H, G: (kept / (H // G)).round().long(),
                lambda kept, H, G: -(-kept // (H // G)),
            ),
        ),
    ),
    "less-the-first": known(
        "You subtract the smallest number from the old ones.",
        "Then the smallest place is 0, and gaps further on are still there.",
        place=lambda used, needed: used - used.min(),
    ),
    "place-for-each-key-head": known(
        "You return one place for each key head that stays.",
        "Asked for is one place for each query head that stays: where to find its keys.",
        place=lambda used, needed: torch.arange(len(needed)),
    ),
    "places-of-query-heads": known(
        "You number the query heads that stay.",
        "Query heads of one group have one key head, and so the same place.",
        place=lambda used, needed: torch.arange(len(used)),
    ),
    "in-between-stay": known(
        "You keep all key heads up to the last that is needed, or from the first to the last.",
        "One in between may be needed by nobody. It goes, too.",
        **any_of(
            build_needed,
            needed=(
                lambda used, kv: torch.arange(int(used.min()), int(used.max()) + 1),
                lambda used, kv: torch.arange(int(used.max()) + 1),
            ),
        ),
    ),
    "size-by-what-stays": _size_by_what_stays(use=lambda kept, H, G: kept // (len(kept) // G)),
    "size-by-what-stays-and-not-0": _size_by_what_stays(
        **any_of(
            build_needed,
            use=(
                lambda kept, H, G: kept // max(len(kept) // G, 1),
                lambda kept, H, G: kept // -(-len(kept) // G),
            ),
        )
    ),
    "key-heads-that-go": known(
        "You return the key heads that go.",
        "Asked for are those that stay: each that some query head still uses.",
        wrong=_those_that_go,
        shows=_shows_those_that_go,
    ),
    "unsorted-without-groups": known(
        "Where each query head has a key head of its own, you return the numbers as they come.",
        "Key heads are in increasing order, whatever the order of `kept` is. Does a branch for "
        "this case forget that?",
        wrong=_as_they_come_without_groups,
    ),
    "counted-not-placed": known(
        "You return how many query heads use each key head.",
        "Asked for is one place for each query head that stays: where to find its keys.",
        place=lambda used, needed: used.unique(return_counts=True)[1],
    ),
    "places-from-1": known(
        "Your places count from 1.",
        "The first key head that stays has place 0.",
        place=lambda used, needed: torch.searchsorted(needed, used) + 1,
    ),
    "places-of-all-query-heads": known(
        "You return a place for every query head, also for those that go.",
        "Asked for is one place for each of the n query heads in `kept`.",
        wrong=_places_of_all,
    ),
    "key-heads-as-a-mask": known(
        "You return a mask of the key heads: a 1 or True for each that stays.",
        "Their numbers are wanted, in increasing order.",
        wrong=_as_mask(torch.long),
        shows=like(*(_as_mask(dtype) for dtype in (torch.long, torch.bool, torch.float64))),
    ),
    "largest-first": known(
        "You list the key heads from the largest number to the smallest.",
        "They should be in increasing order, and the places count in that order.",
        needed=lambda used, kv: used.unique().flip(0),
        place=place_in,
        shows=like(
            build_needed(needed=lambda used, kv: used.unique().flip(0), place=place_in),
            build_needed(needed=lambda used, kv: used.unique().flip(0)),
            lambda kept, H, G: (
                by_group(kept, H, G).unique().flip(0),
                key_heads_needed(kept, H, G)[1],
            ),
        ),
    ),
    "where-each-is-used-first": known(
        "For each key head you return the place of the first query head that uses it.",
        "Asked for is the other way round: for each query head the place of its key head.",
        place=lambda used, needed: (used == needed[:, None]).long().argmax(dim=1),
    ),
    "swapped": known(
        "The two results have changed places.",
        "First the key heads that stay, then the place for each query head.",
        order=lambda pair: pair[::-1],
    ),
}

TASK = Task(
    "08-key_heads_needed",
    key_heads_needed,
    needed_cases,
    returns=("the key heads", "the places"),
    mistakes=read_again(REMOVAL, NEEDED | ALONE),
    build=build_needed,
    point_out=point_out_groups,
    alone=tuple(ALONE),
    number=4,
)
