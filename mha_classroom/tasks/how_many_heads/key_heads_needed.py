"""Task 8.4, key_heads_needed: which key heads stay when query heads go, and their new numbers."""

import torch

from mha_classroom.checks.task import Case, Task, known, read_again, unchanged
from mha_classroom.tasks.how_many_heads.prune_heads import REMOVAL


def key_heads_needed(kept, num_heads, num_kv_heads):
    used = kept // (num_heads // num_kv_heads)  # (n,)
    return torch.unique(used, return_inverse=True)


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
        case("a key head for each query head", [1, 2, 4], 5, 5),
        case("one key head for all", [0, 3], 6, 1),
        case("in no order", [9, 2, 11, 3], 12, 6),
        case("all stay", list(range(6)), 6, 3),
        case("one stays", [5], 12, 4),
        case("drawn at random", some, 24, 8),
    ]


def by_group(kept, num_heads, num_kv_heads):
    return kept // (num_heads // num_kv_heads)


def in_order_of_use(used, key_heads):
    return torch.tensor(list(dict.fromkeys(used.tolist())))


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


def whole_groups(inputs):
    """The key heads whose query heads all stay."""
    kept, size = inputs["kept"].tolist(), inputs["num_heads"] // inputs["num_kv_heads"]
    groups = (range(size * g, size * (g + 1)) for g in range(inputs["num_kv_heads"]))
    return [g for g, group in enumerate(groups) if all(h in kept for h in group)]


def those_that_go(inputs):
    used = by_group(*inputs.values()).tolist()
    return [g for g in range(inputs["num_kv_heads"]) if g not in used]


def _shows_key_heads(listed):
    """Whether the key heads are these, whatever the places."""

    def shows(inputs, result):
        if not isinstance(result, (tuple, list)) or not len(result) == 2:
            return False
        return torch.is_tensor(result[0]) and result[0].tolist() == listed(inputs)

    return shows


def _lists(listed):
    """Places where a key head is not there: 0."""

    def key_heads_needed(*given):
        inputs = dict(zip(("kept", "num_heads", "num_kv_heads"), given, strict=True))
        here, used = listed(inputs), by_group(*given).tolist()
        return torch.tensor(here), torch.tensor([here.index(g) if g in here else 0 for g in used])

    return key_heads_needed


def _place_of_nothing(kept, num_heads, num_kv_heads):
    """whole_groups, and the place of a key head that is not among them."""
    here = _lists(whole_groups)(kept, num_heads, num_kv_heads)[0].tolist()
    return torch.tensor(here), torch.tensor(
        [here.index(g) for g in by_group(kept, num_heads, num_kv_heads).tolist()]
    )


def _with_mask(kept, num_heads, num_kv_heads):
    used = by_group(kept, num_heads, num_kv_heads)
    there = torch.zeros(num_kv_heads, dtype=torch.bool)
    there[used] = True
    return there, (there.long().cumsum(0) - 1)[used]


def _of_all_query_heads(kept, num_heads, num_kv_heads):
    needed = by_group(kept, num_heads, num_kv_heads).unique()
    return needed, torch.searchsorted(
        needed, by_group(torch.arange(num_heads), num_heads, num_kv_heads)
    )


WHOLE = (
    "You keep a key head only if all query heads of its group stay.",
    "It is needed as long as one query head uses it.",
)
SIZE = (
    "You get the size of a group from the number of query heads that stay.",
    "The groups were made when the model was: with num_heads query heads.",
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
        place=lambda used, needed: torch.searchsorted(needed, used),
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
        needed=lambda used, kv: used,
    ),
    "grouped-anew": known(
        "You group the query heads that stay anew, so that some get the keys of another group.",
        "A query head was trained with its key head, and keeps it. Groups may be unequal now.",
        place=lambda used, needed: torch.arange(len(used)) * len(needed) // len(used),
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
    "counts": known(
        "Your second result says how many query heads use each key head.",
        "Asked for is one place for each query head that stays.",
        place=lambda used, needed: (used == needed[:, None]).sum(1),
    ),
    "mask-of-key-heads": known(
        "Your first result is a mask.",
        "Asked for are the numbers of the key heads that are True in it.",
        wrong=_with_mask,
    ),
    "fractions": known(
        "You divide without rounding down, so that query heads of one group get different numbers.",
        "In Python / gives fractions, // whole numbers.",
        use=lambda kept, H, G: kept / (H // G),
    ),
    "rounded": known(
        "You round the quotient.",
        "The last query heads of a group then get the next key head.",
        use=lambda kept, H, G: (kept / (H // G)).round().long(),
    ),
    "rounded-up": known(
        "You round the quotient up.",
        "Then only the first query head of a group gets its number.",
        use=lambda kept, H, G: -(-kept // (H // G)),
    ),
    "key-heads-from-1": known(
        "You count key heads from 1.",
        "As everywhere in this course, the first head is head 0.",
        order=lambda pair: (pair[0] + 1, pair[1]),
    ),
    "repeats-next-to-each-other": known(
        "A key head is there more than once if `kept` is in no order.",
        "unique_consecutive finds only repeats that stand next to each other.",
        wrong=lambda kept, H, G: torch.unique_consecutive(
            by_group(kept, H, G), return_inverse=True
        ),
    ),
    "place-of-a-query-head-grouped": known(
        "You group the query heads that stay anew, by the old size of a group.",
        "A query head was trained with its key head, and keeps it. Groups may be unequal now.",
        wrong=lambda kept, H, G: (
            by_group(kept, H, G).unique(),
            by_group(torch.arange(len(kept)), H, G),
        ),
    ),
    "floats": known(
        "Your key heads are floats.",
        "They are numbers of heads: whole numbers, which can be used as an index.",
        order=lambda pair: (pair[0].double(), pair[1]),
    ),
    "floats-both": known(
        "Your results are floats.",
        "They are numbers and places of heads: whole numbers, which can be used as an index.",
        order=lambda pair: (pair[0].double(), pair[1].double()),
    ),
    "whole-groups": known(*WHOLE, wrong=_lists(whole_groups), shows=_shows_key_heads(whole_groups)),
    "whole-groups-without-place": known(*WHOLE, wrong=_place_of_nothing),
    "those-that-go": known(
        "You list the key heads that go.",
        "Asked for are those that stay.",
        wrong=_lists(those_that_go),
        shows=_shows_key_heads(those_that_go),
    ),
    "place-in-the-group": known(
        "Your places say which query head of its group one is.",
        "Asked for is the place of its key head among those that stay.",
        wrong=lambda kept, H, G: (by_group(kept, H, G).unique(), kept % (H // G)),
    ),
    "from-1": known(
        "You count places from 1.",
        "A place is an index: the first is 0.",
        place=lambda used, needed: torch.searchsorted(needed, used) + 1,
    ),
    "less-the-first": known(
        "You subtract the first number from the old ones.",
        "Then the first place is 0, and gaps further on are still there.",
        place=lambda used, needed: used - used.min(),
    ),
    "places-of-query-heads": known(
        "You number the query heads that stay.",
        "Query heads of one group have one key head, and so the same place.",
        place=lambda used, needed: torch.arange(len(used)),
    ),
    "places-of-key-heads": known(
        "You return one place for each key head.",
        "Asked for is one for each query head that stays.",
        place=lambda used, needed: torch.arange(len(needed)),
    ),
    "places-of-all-query-heads": known(
        "You return a place for each of the num_heads query heads.",
        "Asked for is one for each that stays, in the order of `kept`.",
        wrong=_of_all_query_heads,
    ),
    "in-between-stay": known(
        "You keep all key heads from the first to the last that is needed.",
        "One in between may be needed by nobody. It goes, too.",
        needed=lambda used, kv: torch.arange(int(used.min()), int(used.max()) + 1),
    ),
    "up-to-the-last": known(
        "You keep all key heads up to the last that is needed.",
        "One before it may be needed by nobody. It goes, too.",
        needed=lambda used, kv: torch.arange(int(used.max()) + 1),
    ),
    "falling": known(
        "Your key heads come in falling order.",
        "They should be in increasing order, and the places count in that order.",
        needed=lambda used, kv: used.unique().flip(0),
        place=place_in,
    ),
    "column": known(
        "Your key heads have an axis of length 1 at the end.",
        "nonzero() returns one row for each place that it finds. Asked for is one axis.",
        order=lambda pair: (pair[0][:, None], pair[1]),
    ),
    "size-by-what-stays": known(*SIZE, use=lambda kept, H, G: kept // max(1, len(kept) // G)),
    "size-by-what-stays-or-0": known(*SIZE, use=lambda kept, H, G: kept // (len(kept) // G)),
    "size-by-what-stays-rounded-up": known(
        *SIZE, use=lambda kept, H, G: kept // -(-len(kept) // G)
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
    mistakes=read_again(REMOVAL, NEEDED),
    build=build_needed,
    alone=(
        "swapped",
        "grouped-anew",
        "renumbered-too-early",
        "kept-sorted",
        "in-order-of-use",
        "counts",
        "fractions",
        "rounded",
        "rounded-up",
        "key-heads-from-1",
        "floats",
        "floats-both",
        "in-between-stay",
        "up-to-the-last",
        "falling",
        "column",
        "size-by-what-stays",
        "size-by-what-stays-or-0",
        "size-by-what-stays-rounded-up",
        "places-of-key-heads",
        "places-of-query-heads",
        "less-the-first",
    ),
    number=4,
)
