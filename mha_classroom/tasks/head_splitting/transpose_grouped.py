"""Task 4.8, transpose_grouped: fewer heads of keys than of queries."""

import torch

from mha_classroom.checks.examining import first_wrong
from mha_classroom.checks.showing import numbers_text
from mha_classroom.checks.task import Case, Task, and_in_float32, known, read_again, unchanged
from mha_classroom.tasks.head_splitting.spread_valid_lens import LENGTHS
from mha_classroom.tasks.head_splitting.transpose_qkv import (
    FIRST_SEQUENCE,
    SQUEEZED,
    STEP_1,
    STEP_2,
    STEP_3,
    TRAP,
    right_split,
)


def transpose_grouped(X, num_heads, num_kv_heads):
    heads = X.unflatten(-1, (num_kv_heads, -1)).transpose(1, 2)  # (B, G, S, d)
    return heads.repeat_interleave(num_heads // num_kv_heads, dim=1).flatten(0, 1)


def point_out_key_head(inputs, rows):
    """Which query head the first wrong row is of, and whose keys belong there; the number of rows
    and their width, if the shape is wrong."""
    X, H, G = inputs.values()
    right = transpose_grouped(X, H, G)
    if rows.shape != right.shape:
        B, _, width = X.shape
        return (
            f"Asked for are {len(right)} rows, one for each of {H} query heads of {B} "
            f"{'sequence' if B == 1 else 'sequences'}; a key head is {width // G} wide."
        )
    row, word, _ = first_wrong(rows, right)
    sequence, h = divmod(row, H)
    return (
        f"Row {row} is query head {h} of sequence {sequence}, and word {word} has "
        f"{numbers_text(rows[row, word])} there. Asked for is key head {h // (H // G)}: "
        f"{numbers_text(right[row, word])}."
    )


@and_in_float32
def grouped_cases(draw):
    def case(name, X, num_heads, num_kv_heads):
        return Case(name, {"X": X, "num_heads": num_heads, "num_kv_heads": num_kv_heads})

    # num_heads divides each width, so that keys can be cut into as many pieces by mistake.
    labels = (10 * torch.arange(3)[:, None] + torch.arange(6))[None].double()
    turned = "X is a transposed tensor, so it is not contiguous"
    return [
        case("3 words, 6 query heads for 2 key heads of width 3", labels, 6, 2),
        case("2 sequences, 8 query heads for 2 key heads of width 8", draw.normal(2, 7, 16), 8, 2),
        case("12 query heads for 4 key heads of width 3", draw.normal(2, 5, 12), 12, 4),
        case("one key head for all 5 query heads", draw.normal(3, 4, 10), 5, 1),
        case("as many key heads as query heads", draw.normal(2, 4, 15), 3, 3),
        case("22 key heads for 22 query heads, of width 1", draw.normal(2, 4, 22), 22, 22),
        case("sequences of one word", draw.normal(2, 1, 8), 4, 2),
        case("1 sequence, one key head for all 3 query heads", draw.normal(1, 4, 6), 3, 1),
        case("4 query heads for 2 key heads, 2 words", draw.normal(3, 2, 8), 4, 2),
        case(turned, draw.normal(3, 12, 4).transpose(1, 2), 6, 2),
    ]


def cut(X, heads):
    return X.unflatten(-1, (heads, -1)).transpose(1, 2)


def build_grouped(
    split=cut,
    group=lambda H, G: H // G,
    repeat=lambda X, times: X.repeat_interleave(times, dim=1),
    join=lambda X: X.flatten(0, 1),
    turn=unchanged,
):
    """group: how often each key head is repeated, from the number of query and of key heads."""

    def transpose_grouped(X, num_heads, num_kv_heads):
        X = repeat(split(X, num_kv_heads), group(num_heads, num_kv_heads))  # (B, H, S, d)
        return turn(join(X))

    return transpose_grouped


def _by_number(pick):
    """Query head h takes the key head h // num_kv_heads. pick: from X, cut into key heads."""

    def transpose_grouped(X, num_heads, num_kv_heads):
        heads = pick(X, num_kv_heads)
        return torch.stack([heads(h // num_kv_heads) for h in range(num_heads)], 1).flatten(0, 1)

    return transpose_grouped


def _slice(X, G):
    d = X.shape[-1] // G
    return lambda g: X[..., g * d : (g + 1) * d]


def _to_the_last(X, G):
    return lambda g: cut(X, G)[:, min(g, G - 1)]


# What there is no key head for raises in words of its own, or is empty.
PICKED = {
    "from-chunks": lambda X, G: X.chunk(G, -1).__getitem__,
    "by-index": lambda X, G: lambda g: cut(X, G)[:, g],
    "by-slice": _slice,
    "to-the-last": _to_the_last,
}


def _whole_for_one_key_head(X, H, G):
    return X.repeat(H, 1, 1) if G == 1 else transpose_grouped(X, H, G)


def _squeezed_for_one_key_head(X, H, G):
    return X.squeeze().repeat_interleave(H, 0) if G == 1 else transpose_grouped(X, H, G)


def _view_after_expand(X, H, G):
    heads = cut(X, G)[:, :, None].expand(-1, -1, H // G, -1, -1)
    return heads.view(len(X) * H, X.shape[1], X.shape[2] // G)


FLATTENED = (
    "You repeat each number: repeat_interleave flattens a tensor unless it is told the axis.",
    "It is heads that have to be repeated, each as a whole.",
)

GROUPED = {
    "squeezed-for-one-key-head": known(*SQUEEZED, section=STEP_3, wrong=_squeezed_for_one_key_head),
    "squeezed": known(
        *SQUEEZED, section=STEP_3, wrong=lambda *given: transpose_grouped(*given).squeeze()
    ),
    "first-sequence-only": known(
        *FIRST_SEQUENCE,
        section=STEP_3,
        wrong=lambda X, H, G: transpose_grouped(X[:1], H, G),
    ),
    "features-in-front-and-reshaped": known(
        "You bring the features in front of the words, and reshape then.",
        "reshape deals numbers out as they lie in memory: a row mixes several words. "
        "Of the axes words, heads and features, which has to change its place?",
        section=TRAP,
        wrong=build_grouped(
            split=lambda X, G: X.transpose(1, 2).reshape(len(X), G, X.shape[1], -1)
        ),
    ),
    "key-head-0-for-all": known(
        "All query heads get key head 0.",
        "Each group of query heads has a key head of its own. With one key head nobody notices.",
        wrong=lambda X, H, G: cut(X, G)[:, :1].repeat_interleave(H, 1).flatten(0, 1),
    ),
    "key-heads-added": known(
        "You add the key heads up, and all query heads get the sum.",
        "Each group of query heads has a key head of its own.",
        wrong=lambda X, H, G: cut(X, G).sum(1).repeat_interleave(H, 0),
    ),
    "key-heads-averaged": known(
        "You average the key heads, and all query heads get the mean.",
        "Each group of query heads has a key head of its own.",
        wrong=lambda X, H, G: cut(X, G).mean(1).repeat_interleave(H, 0),
    ),
    "key-heads-reversed": known(
        "Your key heads stand in reverse order, the last one first.",
        "Key head 0 owns the first features, and the first group of query heads uses it.",
        wrong=build_grouped(split=lambda X, G: cut(X, G).flip(1)),
    ),
    "divided-upside-down": known(
        "You repeat each key head num_kv_heads // num_heads times, and mostly that is 0.",
        "How many query heads share one key head? There are more query heads than key heads.",
        wrong=build_grouped(group=lambda H, G: G // H),
    ),
    "batch-repeated-for-one-key-head": known(
        "With one key head you repeat all rows as a whole: those of all sequences, then those of "
        "all sequences again. With more key heads your answer is right.",
        "All query heads of sequence 0 come first, then all of sequence 1, as in transpose_qkv.",
        section=STEP_3,
        wrong=_whole_for_one_key_head,
    ),
    "not-cut-where-both-are-equal": known(
        "With as many key heads as query heads you return X as it is.",
        "Nothing has to be repeated then. The heads still have to be cut, and joined with the "
        "batch to one axis.",
        section=STEP_1,
        wrong=lambda X, H, G: X.clone() if H == G else transpose_grouped(X, H, G),
    ),
    "reshaped-where-both-are-equal": known(
        "With as many key heads as query heads you reshape X to (B · num_heads, S, d) at once.",
        "Nothing has to be repeated then. The heads still have to come in front of the words, or "
        "a row holds pieces of one word after another.",
        section=TRAP,
        wrong=lambda X, H, G: (
            X.reshape(len(X) * H, X.shape[1], -1) if H == G else transpose_grouped(X, H, G)
        ),
    ),
    "key-heads-repeated-as-a-whole": known(
        "Your key heads come in the order 0, 1, 0, 1, 0, 1, if there are 2: they are repeated as a "
        "whole, or query head h takes key head h % num_kv_heads.",
        "Query heads of a group are neighbours, and they all use the same key head. So which key "
        "head do the query heads 0 and 1 need?",
        repeat=lambda X, times: X.repeat(1, times, 1, 1),
    ),
    "batch-repeated": known(
        "You repeat the whole batch, before or after its heads are cut: the rows of all sequences, "
        "then those of all sequences again.",
        "All query heads of sequence 0 come first, then all of sequence 1, as in transpose_qkv. "
        "With one sequence this gives the key heads in the order 0, 1, 0, 1.",
        wrong=lambda X, H, G: cut(X, G).flatten(0, 1).repeat(H // G, 1, 1),
    ),
    "not-repeated": known(
        "Your key heads are not repeated: there are B · num_kv_heads rows.",
        "Attention in d2l's manner needs a row of keys for each row of queries, and of these there "
        "are B · num_heads.",
        group=lambda H, G: 1,
    ),
    "repeated-num_heads-times": known(
        "You repeat each key head num_heads times.",
        "There are num_heads query heads in all. How many of them share one key head?",
        group=lambda H, G: H,
    ),
    "groups-of-three": known(
        "You repeat each key head 3 times, whatever the numbers of heads are.",
        "That is so in the example. How many query heads share one key head?",
        group=lambda H, G: 3,
    ),
    "groups-counted-for-their-size": known(
        "You repeat each key head num_kv_heads times.",
        "That is the number of groups. How many query heads are in one group? With 4 query heads "
        "and 2 key heads the two numbers are equal, and nobody notices.",
        group=lambda H, G: G,
    ),
    **{
        f"divided-by-number-of-groups-{way}": known(
            "Query head h takes the key head h // num_kv_heads.",
            "Count through 6 query heads and 2 key heads: each key head is shared by 3 of them, a "
            "group. Divide by the size of a group, not by the number of groups.",
            wrong=_by_number(pick),
        )
        for way, pick in PICKED.items()
    },
    "cut-into-group-size": known(
        "You cut the keys into num_heads / num_kv_heads pieces.",
        "That is how many query heads share a key head. A key is num_kv_heads · d wide. With 4 "
        "query heads and 2 key heads the two numbers are equal, and nobody notices.",
        wrong=lambda X, H, G: right_split(X, H // G).repeat_interleave(G, dim=0),
    ),
    "cut-into-query-heads": known(
        "You cut the keys into num_heads pieces.",
        "A key is num_kv_heads · d wide. Cut so, each key head is torn into pieces that are "
        "narrower than the queries.",
        section=STEP_1,
        wrong=lambda X, H, G: cut(X, H).flatten(0, 1),
    ),
    "view-after-expand": known(
        "You call view on a tensor whose heads are expanded, not copied.",
        "After expand the heads of a group are the same numbers in memory. view copies nothing, so "
        "it cannot make one axis of them and the key heads. The numbers have to be copied.",
        section=TRAP,
        wrong=_view_after_expand,
    ),
    "features-repeated": known(
        "You repeat each feature, and then cut into num_heads pieces.",
        "A head would hold the same number several times, one after the other. It is whole heads "
        "that have to be repeated, so cut first.",
        wrong=lambda X, H, G: cut(X.repeat_interleave(H // G, dim=-1), H).flatten(0, 1),
    ),
    "flattened-and-reshaped": known(
        "You repeat each number. Is repeat_interleave told an axis? Without one it flattens the "
        "tensor, and with dim=-1 it repeats single features.",
        "It is heads that have to be repeated, each as a whole.",
        repeat=lambda X, times: X.repeat_interleave(times).reshape(len(X), -1, *X.shape[2:]),
    ),
    "flattened": known(
        *FLATTENED,
        wrong=lambda X, H, G: cut(X, G).flatten(0, 1).repeat_interleave(H // G),
    ),
    "words-repeated": known(
        "You repeat each word instead of each head: a sequence becomes longer.",
        "S stays as it is. Which axis holds the heads after the split?",
        repeat=lambda X, times: X.repeat_interleave(times, dim=2),
    ),
    "words-repeated-and-reshaped": known(
        "You repeat each word instead of each head, and reshape the rows to length S.",
        "A row has to hold S different words. Which axis holds the heads after the split?",
        wrong=lambda X, H, G: (
            cut(X, G).repeat_interleave(H // G, dim=2).reshape(len(X) * H, X.shape[1], -1)
        ),
    ),
    "repeated-without-transpose": known(
        "You repeat the key heads in front of the features and then reshape, without bringing the "
        "heads in front of the words.",
        "reshape deals numbers out as they lie in memory, and there a word comes before the next "
        "word. A head has to get its slice of every word.",
        section=TRAP,
        wrong=lambda X, H, G: (
            X.unflatten(-1, (G, -1))
            .repeat_interleave(H // G, 2)
            .reshape(len(X) * H, X.shape[1], -1)
        ),
    ),
    "repeated-as-a-whole-without-transpose": known(
        "You repeat the key heads as a whole, 0, 1, 0, 1, 0, 1 if there are 2, and then reshape, "
        "without bringing the heads in front of the words.",
        "Query heads of a group are neighbours, and they all use the same key head. And reshape "
        "deals numbers out as they lie in memory: a head has to get its slice of every word.",
        section=TRAP,
        wrong=lambda X, H, G: X.repeat(1, 1, H // G).reshape(len(X) * H, X.shape[1], -1),
    ),
    "heads-before-batch": known(
        "Your rows are ordered by head first, then by sequence.",
        "All heads of sequence 0 come first, then all of sequence 1, as in transpose_qkv. With one "
        "sequence both look the same.",
        section=STEP_3,
        join=lambda X: X.transpose(0, 1).flatten(0, 1),
    ),
    "split-without-transpose": known(
        "Your heads share out the words, not the features: head 0 got what comes first in the "
        "sentence and never sees the last word.",
        "reshape fills the new shape in the order of memory. A head has to get its slice of every "
        "word.",
        section=TRAP,
        split=lambda X, G: X.reshape(X.shape[0], G, X.shape[1], -1),
    ),
    "features-interleaved": known(
        "Your key heads take features in turn: of 2 key heads, head 0 gets features 0, 2, 4.",
        "Each head owns neighbouring features. Of the two new axes, which comes first, head or "
        "feature?",
        section=STEP_1,
        split=lambda X, G: X.unflatten(-1, (-1, G)).movedim(-1, 1),
    ),
    "axes-not-joined": known(
        "You return four axes, with the heads still on one of their own.",
        "The numbers are where they should be. The task asks for batch and heads as one axis.",
        section=STEP_3,
        join=unchanged,
    ),
    "words-and-features-swapped": known(
        "Words and features have changed places in each head: you return (B · num_heads, d, S).",
        "The transpose of the keys belongs to the scores. Here words come before features.",
        section=STEP_2,
        turn=lambda X: X.mT,
    ),
}

TASK = Task(
    "04-transpose_grouped",
    transpose_grouped,
    grouped_cases,
    returns=("the result",),
    mistakes=read_again(LENGTHS, GROUPED),
    build=build_grouped,
    point_out=point_out_key_head,
    alone=("words-repeated", "not-repeated", "repeated-num_heads-times"),
    uses=("04-transpose_qkv",),
    forbidden=(
        "mha_course.multihead.transpose_qkv",
        "mha_course.multihead.split_heads",
        "d2l.torch.transpose_qkv",
    ),
    since=2,
    number=8,
)
