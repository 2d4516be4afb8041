"""Task 10.2, three_masks: who may look where, with padding at any place."""

import torch

from mha_classroom.checks.forms import any_of
from mha_classroom.checks.task import Case, Task, known, read_again, unchanged

MASKS = "Who hides what"


def three_masks(source, target, pad):
    (B, S), L = source.shape, target.shape[1]
    reads, writes = source != pad, target != pad
    causal = torch.ones(L, L, dtype=torch.bool).tril()
    encoder = reads[:, None].expand(B, S, S)
    cross = reads[:, None].expand(B, L, S)
    return encoder.clone(), writes[:, None] & causal, cross.clone()


def mask_cases(draw):
    def case(name, source, target, pad):
        source, target = torch.tensor(source), torch.tensor(target)
        return Case(name, {"source": source, "target": target, "pad": pad})

    def drawn(name, B, S, L, pad):
        source, target = draw.integers(0, 3, B, S), draw.integers(0, 3, B, L)
        source[:, 0], target[:, -1] = (pad + 1) % 4, (pad + 1) % 4  # no row is padding alone
        return Case(name, {"source": source, "target": target, "pad": pad})

    return [
        case("1 pair: 3 tokens and padding to the right, 2 tokens", [[5, 6, 7, 0]], [[1, 5]], 0),
        case(
            "the targets are padded on the left", [[5, 6, 7]] * 2, [[0, 0, 1, 5], [1, 4, 3, 6]], 0
        ),
        case(
            "2 pairs, padding on both sides, pad = 9",
            [[9, 4, 0, 3, 9], [2, 0, 5, 9, 9]],
            [[9, 1, 0], [1, 7, 9]],
            9,
        ),
        drawn("padding anywhere, 3 pairs, S = 7, L = 5", 3, 7, 5, 2),
        drawn("S = L = 4, 4 pairs", 4, 4, 4, 0),
        drawn("no token is padding but some are 0, pad = -1", 2, 3, 6, -1),
        drawn("targets of one token", 3, 5, 1, 1),
        drawn("targets of 520 tokens", 1, 5, 520, 3),
    ]


def _from_lengths(numbers, pad):
    lens = (numbers != pad).sum(1)
    return torch.arange(numbers.shape[1]) < lens[:, None]


def build_masks(
    seen=lambda numbers, pad: numbers != pad,
    causal=torch.tril,
    encode=lambda mask, causal: mask,
    write=lambda writes, causal: writes[:, None] & causal,
    cross=lambda reads, writes: reads[:, None].expand(-1, writes.shape[1], -1),
    hide=lambda reads, S: reads[:, None].expand(-1, S, -1),
    finish=unchanged,
    last=lambda masks, reads, writes: masks,
    seen_in_target=None,
):
    def three_masks(source, target, pad):
        reads, writes = seen(source, pad), (seen_in_target or seen)(target, pad)
        S, L = source.shape[1], target.shape[1]
        encoder = encode(hide(reads, S), torch.ones(S, S, dtype=torch.bool).tril())
        decoder = write(writes, causal(torch.ones(L, L, dtype=torch.bool)))
        masks = [finish(m.clone()) for m in (encoder, decoder, cross(reads, writes))]
        return tuple(last(masks, reads, writes))

    return three_masks


def _rows_of_other_texts(masks, reads, writes):
    """Each text's row repeated by .repeat(n, 1), which puts the whole batch behind itself."""

    def rows(real, n):
        return real.repeat(n, 1).view(len(real), n, -1)

    L, S = writes.shape[1], reads.shape[1]
    causal = torch.ones(L, L, dtype=torch.bool).tril()
    return [rows(reads, S), rows(writes, L) & causal, rows(reads, L)]


def _before_the_first(numbers, pad):
    return (numbers == pad).cumsum(1) == 0


def _own(X):
    return torch.eye(X.shape[-1], dtype=torch.bool)


def _own_place_seen(masks, *_):
    encoder, decoder, cross = masks
    return [encoder, decoder | _own(decoder), cross]


def _both_own_places_seen(masks, *_):
    encoder, decoder, cross = masks
    return [encoder | _own(encoder), decoder | _own(decoder), cross]


def _open_where_empty(which):
    """Rows of these masks that see nothing see everything."""
    return lambda masks, *_: [
        m | ~m.any(-1, keepdim=True) if i in which else m for i, m in enumerate(masks)
    ]


def _own_where_empty(masks, *_):
    encoder, decoder, cross = masks
    return [
        encoder,
        decoder | (~decoder.any(-1, keepdim=True) & _own(decoder)),
        cross,
    ]


RESCUES = (
    _own_place_seen,
    _both_own_places_seen,
    _own_where_empty,
    *map(_open_where_empty, [(1,), (0, 1), (0, 1, 2)]),
)


def _tokens(numbers, pad):
    return numbers != pad


def _single_row(which):
    """These masks have one row, which has an axis or has none."""
    return [
        lambda masks, *_, row=row: [m[:, row] if i in which else m for i, m in enumerate(masks)]
        for row in (slice(1), 0)
    ]


SINGLE_ROWS = [last for which in ((0, 2), (0,), (2,)) for last in _single_row(which)]


def _in_one_or_both(seen):
    """The parts of an answer that looks so at source and target, and whether one looks so at
    either."""
    forms = ({"seen": seen}, {"seen_in_target": seen}, {"seen": seen, "seen_in_target": _tokens})
    return any_of(build_masks, *forms)


def _rows(reads, S):
    return reads[:, :, None].expand(-1, -1, S)


def _early_rows(writes, causal):
    return writes[:, :, None] & causal


ROWS = {"hide": _rows, "write": _early_rows}
OWN_BOTH = {
    "hide": lambda reads, S: reads[:, None] & reads[:, :, None],
    "write": lambda writes, causal: writes[:, None] & writes[:, :, None] & causal,
}
BOTH = OWN_BOTH | {"cross": lambda reads, writes: writes[:, :, None] & reads[:, None]}


THREE = {
    "rows-of-other-texts": known(
        "In a batch your rows are those of other texts: text 0, text 1, text 0, text 1 and so on.",
        "repeat puts the whole batch behind itself. Each text's row has to be repeated for its own "
        "queries: an axis of length 1 does that, or repeat_interleave.",
        last=_rows_of_other_texts,
    ),
    "queries-hidden": known(
        "You hide the rows of padding, not its columns: in the mask of the encoder or the decoder, "
        "or in both.",
        "A row is a query, a column a key. What a padding token receives does no harm. That others "
        "look at it does.",
        **any_of(build_masks, {"hide": _rows}, {"write": _early_rows}, ROWS),
    ),
    "target-padding-seen": known(
        "In the mask of the decoder everybody sees padding.",
        "A causal mask alone hides padding that comes later. Where else can padding stand?",
        write=lambda writes, causal: causal.expand(len(writes), -1, -1),
    ),
    "future-seen": known(
        "The decoder sees what comes later.",
        "Padding is not all that has to be hidden. What must position t not see while the model "
        "learns to guess token t + 1?",
        causal=unchanged,
    ),
    "past-hidden": known(
        "Your decoder sees what comes later and not what came before.",
        "triu keeps what lies above the diagonal, and triu(1) marks what has to be hidden. In your "
        "mask True means: may attend.",
        **any_of(build_masks, causal=(torch.triu, lambda ones: ones.triu(1))),
    ),
    "itself-hidden": known(
        "A target token does not see itself.",
        "Position t reads tokens 0 to t: it has to guess token t + 1, not t.",
        causal=lambda ones: ones.tril(-1),
    ),
    "next-seen": known(
        "Each target token sees the next one too.",
        "It is the very token that the model has to guess. Which diagonal is the first that is "
        "hidden?",
        causal=lambda ones: ones.tril(1),
    ),
    "encoder-causal": known(
        "The encoder sees only what came before.",
        "The whole source is known before anything is written. Who has something to hide from "
        "itself?",
        encode=torch.logical_and,
    ),
    "cross-hides-the-target": known(
        "In the cross-attention you hide the padding of the target.",
        "The keys of the cross-attention are the source's. Target tokens are its queries.",
        cross=lambda reads, writes: writes[:, :, None].expand(-1, -1, reads.shape[1]),
    ),
    "cross-causal": known(
        "Your cross-attention lets token t of the target see the first tokens of the source only.",
        "Word 1 of a translation may need the last word of the source. It is all known.",
        cross=lambda reads, writes: (
            reads[:, None] & torch.ones(writes.shape[1], reads.shape[1], dtype=torch.bool).tril()
        ),
    ),
    "padding-is-0": known(
        "You take token 0 for padding.",
        "The argument pad says which token is padding.",
        **_in_one_or_both(lambda numbers, pad: numbers != 0),
    ),
    "mask-inverted": known(
        "Your masks are True where nobody may look.",
        "In this course True means: may attend. PyTorch's modules mean the opposite.",
        finish=torch.logical_not,
    ),
}

# Not looked for together with another one: they hide it, or are seldom made.
ALONE = {
    "one-row-for-all": known(
        "A mask has a single row for all queries.",
        "With an axis of 1 for the queries it could be broadcast. But the task asks for a row for "
        "each query: (B, S, S), (B, L, L) and (B, L, S).",
        **any_of(build_masks, last=SINGLE_ROWS),
    ),
    "padded-queries-hidden": known(
        "You hide the rows of padding as well as its columns, in one of the masks or more.",
        "The statement asks for one rule about keys. A query that is padding follows the same rule "
        "as all others.",
        **any_of(build_masks, BOTH, *({part: BOTH[part]} for part in BOTH), OWN_BOTH),
    ),
    "or-for-and": known(
        "Your decoder sees a key if it is a token or if it is not later.",
        "Both conditions have to hold.",
        write=lambda writes, causal: writes[:, None] | causal,
    ),
    "padding-counted": known(
        "You count the tokens and let the first so many be seen.",
        "That is right if all padding comes last. The statement says where it may be.",
        **_in_one_or_both(_from_lengths),
    ),
    "empty-rows-opened": known(
        "You let a token see itself, or a row see everything, though it is padding that is seen "
        "there.",
        "A query never sees a key that is padding: the statement allows rows without any True. It "
        "is for the softmax to deal with them.",
        **any_of(build_masks, last=RESCUES),
    ),
    "hidden-from-the-first-padding": known(
        "You hide everything from the first padding on, tokens behind it too.",
        "Padding may stand in front of a text, or in the middle. Each key is judged by itself.",
        **_in_one_or_both(_before_the_first),
    ),
    "source-padding-seen": known(
        "The padding of the source is seen, in the encoder or in the cross-attention, or in both.",
        "A query never sees a key that is padding, and the source is padded too.",
        **any_of(
            build_masks,
            last=(
                lambda masks, *_: [masks[0] | True, masks[1], masks[2] | True],
                lambda masks, *_: [masks[0] | True, *masks[1:]],
                lambda masks, *_: [*masks[:2], masks[2] | True],
            ),
        ),
    ),
}

TASK = Task(
    "10-three_masks",
    three_masks,
    mask_cases,
    returns=("the encoder's mask", "the decoder's mask", "the cross-attention's mask"),
    mistakes=read_again(MASKS, THREE | ALONE),
    build=build_masks,
    alone=tuple(ALONE),
    number=2,
)
