"""Task 10.2, three_masks: who may look where, with padding at any place."""

import itertools

import torch

from mha_classroom.checks.forms import like
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
    order=(0, 1, 2),
    last=lambda masks, reads, writes: masks,
    seen_in_target=None,
):
    def three_masks(source, target, pad):
        reads, writes = seen(source, pad), (seen_in_target or seen)(target, pad)
        S, L = source.shape[1], target.shape[1]
        encoder = encode(hide(reads, S), torch.ones(S, S, dtype=torch.bool).tril())
        decoder = write(writes, causal(torch.ones(L, L, dtype=torch.bool)))
        masks = [finish(m.clone()) for m in (encoder, decoder, cross(reads, writes))]
        masks = last(masks, reads, writes)
        return tuple(masks[i] for i in order)

    return three_masks


def _before_the_first(numbers, pad):
    return (numbers == pad).cumsum(1) == 0


def _orders():
    return (build_masks(order=o) for o in itertools.permutations(range(3)) if o != (0, 1, 2))


def _added(low):
    """The masks as numbers that are added to the scores."""
    return lambda masks, *_: [torch.zeros(m.shape).masked_fill(~m, low) for m in masks]


def _to_be_added(inputs, value):
    """Whether the masks hold 0.0 where a key is seen and something below elsewhere."""
    right = three_masks(*inputs.values())
    return _three_of_floats(value, right) and all(
        bool((made[seen] == 0).all() and (made[~seen] < -1).all())
        for made, seen in zip(value, right, strict=True)
    )


def _three_of_floats(value, right):
    return (
        isinstance(value, (tuple, list))
        and len(value) == 3
        and all(
            torch.is_tensor(made) and made.is_floating_point() and made.shape == seen.shape
            for made, seen in zip(value, right, strict=True)
        )
    )


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


def _inverted(which):
    return lambda masks, *_: [~m if i in which else m for i, m in enumerate(masks)]


SOME = [(0,), (1,), (2,), (0, 1), (0, 2), (1, 2)]


def _axis_for_heads(masks, *_):
    return [m[:, None] for m in masks]


def _tokens(numbers, pad):
    return numbers != pad


def _in_one_or_both(seen):
    """The parts of an answer that looks so at source and target, and whether one looks so at
    either."""
    forms = ({"seen": seen}, {"seen_in_target": seen}, {"seen": seen, "seen_in_target": _tokens})
    return {"shows": like(*(build_masks(**parts) for parts in forms)), "seen": seen}


THREE = {
    "mask-inverted": known(
        "Your masks are True where nobody may look.",
        "In this course True means: may attend. PyTorch's modules mean the opposite.",
        finish=torch.logical_not,
    ),
    "queries-hidden": known(
        "In the mask of the encoder you hide the rows of padding, not its columns.",
        "A row is a query, a column a key. What a padding token receives does no harm. That others "
        "look at it does.",
        hide=lambda reads, S: reads[:, :, None].expand(-1, -1, S),
    ),
    "rows-and-columns-hidden": known(
        "In the mask of the encoder you hide the rows of padding as well as its columns.",
        "The statement asks for one rule: a key that is padding is hidden. Rows that see nothing "
        "at all make trouble in a softmax.",
        hide=lambda reads, S: reads[:, None] & reads[:, :, None],
    ),
    "not-expanded": known(
        "Your masks of the encoder and the cross-attention have one row for all queries.",
        "Broadcasting would make the same of it in the scores. Asked for is the full shape, with a "
        "row for each query.",
        hide=lambda reads, S: reads[:, None],
        cross=lambda reads, writes: reads[:, None],
    ),
    "encoder-not-expanded": known(
        "Your mask of the encoder has one row for all queries.",
        "Broadcasting would make the same of it in the scores. Asked for is the full shape, with a "
        "row for each query.",
        hide=lambda reads, S: reads[:, None],
    ),
    "cross-not-expanded": known(
        "Your mask of the cross-attention has one row for all queries.",
        "Broadcasting would make the same of it in the scores. Asked for is the full shape, with a "
        "row for each query.",
        cross=lambda reads, writes: reads[:, None],
    ),
    "padding-for-tokens": known(
        "Your masks show the padding and hide the tokens.",
        "In this course True means: may attend. Which comparison is True for a token?",
        seen=torch.eq,
    ),
    "decoder-hides-the-source": known(
        "In the decoder's self-attention you hide the padding of the source.",
        "There the target looks at itself: its keys are the target's.",
        wrong=lambda source, target, pad: (
            three_masks(source, target, pad)[0],
            (source != pad)[:, None]
            & torch.ones(target.shape[1], target.shape[1], dtype=torch.bool).tril(),
            three_masks(source, target, pad)[2],
        ),
    ),
    "padded-queries-hidden": known(
        "In all three masks you hide the rows of padding as well as the columns.",
        "The statement asks for one rule about keys. A query that is padding follows the same rule "
        "as all others.",
        hide=lambda reads, S: reads[:, None] & reads[:, :, None],
        write=lambda writes, causal: writes[:, None] & writes[:, :, None] & causal,
        cross=lambda reads, writes: writes[:, :, None] & reads[:, None],
    ),
    "target-rows-and-columns-hidden": known(
        "In the mask of the decoder you hide the rows of padding as well as its columns.",
        "The statement asks for one rule about keys. A query that is padding follows the same rule "
        "as all others.",
        write=lambda writes, causal: writes[:, None] & writes[:, :, None] & causal,
    ),
    "target-padding-seen": known(
        "The mask of the decoder hides what comes later, and lets everybody see padding.",
        "The causal mask hides padding that comes later. Where else can padding stand?",
        write=lambda writes, causal: causal.expand(len(writes), -1, -1),
    ),
    "target-padding-hidden-by-rows": known(
        "In the mask of the decoder you hide the rows of padding, not its columns.",
        "A row is a query, a column a key. It is keys that have to be hidden.",
        write=lambda writes, causal: writes[:, :, None] & causal,
    ),
    "future-seen": known(
        "The decoder sees what comes later.",
        "There is padding in your mask, and nothing else. What must position t not see while the "
        "model learns to guess token t + 1?",
        causal=unchanged,
    ),
    "past-hidden": known(
        "Your decoder sees what comes later and not what came before.",
        "Which half of the square, seen from the diagonal, has the keys that are later than the "
        "query?",
        causal=torch.triu,
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
    "or-for-and": known(
        "Your decoder sees a key if it is a token or if it is not later.",
        "Both conditions have to hold.",
        write=lambda writes, causal: writes[:, None] | causal,
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
    "cross-hides-both": known(
        "In the cross-attention you hide the padding of the target too.",
        "The mask is about keys, and they are the source's. A row that sees nothing helps nobody.",
        cross=lambda reads, writes: writes[:, :, None] & reads[:, None],
    ),
    "cross-causal": known(
        "Your cross-attention lets token t of the target see the first tokens of the source only.",
        "Word 1 of a translation may need the last word of the source. It is all known.",
        cross=lambda reads, writes: (
            reads[:, None] & torch.ones(writes.shape[1], reads.shape[1], dtype=torch.bool).tril()
        ),
    ),
    "cross-transposed": known(
        "The mask of the cross-attention is (B, S, L).",
        "Queries are rows, keys are columns. Who asks in the cross-attention?",
        cross=lambda reads, writes: reads[:, :, None].expand(-1, -1, writes.shape[1]),
    ),
    "padding-counted": known(
        "You count the tokens and let the first so many be seen.",
        "That is right if all padding comes last. The statement says where it may be.",
        **_in_one_or_both(_from_lengths),
    ),
    "padding-is-0": known(
        "You take token 0 for padding.",
        "The argument pad says which token is padding.",
        **_in_one_or_both(lambda numbers, pad: numbers != 0),
    ),
    "numbers-for-booleans": known(
        "Your masks hold the numbers 0 and 1.",
        "A mask of numbers would be added to the scores. Asked for are booleans.",
        finish=torch.Tensor.long,
        shows=like(build_masks(finish=torch.Tensor.long), build_masks(finish=torch.Tensor.float)),
    ),
    "decoder-first": known(
        "The masks come in another order.",
        "Encoder, decoder, cross-attention.",
        order=(1, 0, 2),
        shows=like(*_orders()),
    ),
    "masks-to-be-added": known(
        "Your masks are numbers to be added to the scores: 0 where a key is seen, a very low "
        "number elsewhere.",
        "They say the right thing in another language. Asked for are booleans, True = may attend.",
        last=_added(-torch.inf),
        shows=_to_be_added,
    ),
    "empty-rows-opened": known(
        "You let a token see itself, or a row see everything, though it is padding that is seen "
        "there.",
        "A query never sees a key that is padding: the statement allows rows without any True. It "
        "is for the softmax to deal with them.",
        last=_own_place_seen,
        shows=like(*(build_masks(last=rescue) for rescue in RESCUES)),
    ),
    "one-mask-inverted": known(
        "Not all of your masks say the same with True: in one or two of them it means hidden.",
        "In this course True means: may attend. Look at each mask by itself.",
        last=_inverted((1,)),
        shows=like(*(build_masks(last=_inverted(which)) for which in SOME)),
    ),
    "no-batch-in-the-decoder": known(
        "The mask of the decoder is (L, L): the causal mask, without the batch and without the "
        "padding of the target.",
        "Every target of the batch has its own padding, so each has a mask of its own.",
        last=lambda masks, reads, writes: [
            masks[0],
            torch.ones(*[writes.shape[1]] * 2, dtype=torch.bool).tril(),
            masks[2],
        ],
    ),
    "axis-for-the-heads": known(
        "Your masks have an axis of length 1 for the heads.",
        "It would be right for scores of four axes. Asked for are three: batch, queries, keys.",
        last=_axis_for_heads,
    ),
    "hidden-from-the-first-padding": known(
        "You hide everything from the first padding on, tokens behind it too.",
        "Padding may stand in front of a text, or in the middle. Each key is judged by itself.",
        **_in_one_or_both(_before_the_first),
    ),
    "only-later-seen": known(
        "Your decoder sees nothing but what comes later.",
        "triu(1) marks what has to be hidden. In your mask True means: may attend.",
        causal=lambda ones: ones.triu(1),
    ),
    "source-padding-seen": known(
        "The padding of the source is seen, in the encoder and in the cross-attention.",
        "A query never sees a key that is padding, and the source is padded too.",
        last=lambda masks, *_: [masks[0] | True, masks[1], masks[2] | True],
    ),
    "encoder-padding-seen": known(
        "In the mask of the encoder everything is seen, padding too.",
        "A query never sees a key that is padding.",
        last=lambda masks, *_: [masks[0] | True, *masks[1:]],
    ),
    "cross-padding-seen": known(
        "In the cross-attention everything is seen, the padding of the source too.",
        "A query never sees a key that is padding.",
        last=lambda masks, *_: [*masks[:2], masks[2] | True],
    ),
    "cross-keys-of-the-target": known(
        "The columns of your cross-attention's mask are the tokens of the target.",
        "In the cross-attention the target asks, and the keys are the source's.",
        cross=lambda reads, writes: writes[:, None].expand(-1, writes.shape[1], -1),
        shows=like(
            build_masks(
                cross=lambda reads, writes: writes[:, None].expand(-1, writes.shape[1], -1)
            ),
            build_masks(cross=lambda reads, writes: writes[:, None].expand(-1, reads.shape[1], -1)),
        ),
    ),
}

TASK = Task(
    "10-three_masks",
    three_masks,
    mask_cases,
    returns=("the encoder's mask", "the decoder's mask", "the cross-attention's mask"),
    mistakes=read_again(MASKS, THREE),
    build=build_masks,
    alone=(
        "cross-transposed",
        "numbers-for-booleans",
        "decoder-first",
        "mask-inverted",
        "cross-hides-both",
        "rows-and-columns-hidden",
        "or-for-and",
        "padding-counted",
        "not-expanded",
        "padded-queries-hidden",
        "target-rows-and-columns-hidden",
        "masks-to-be-added",
        "empty-rows-opened",
        "one-mask-inverted",
        "no-batch-in-the-decoder",
        "axis-for-the-heads",
        "hidden-from-the-first-padding",
        "only-later-seen",
        "source-padding-seen",
        "encoder-padding-seen",
        "cross-padding-seen",
        "cross-keys-of-the-target",
        "encoder-not-expanded",
        "cross-not-expanded",
        "padding-for-tokens",
    ),
    number=2,
)
