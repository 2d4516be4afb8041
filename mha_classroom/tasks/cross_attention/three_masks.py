"""Task 10.2, three_masks: who may look where, with padding at any place."""

import torch

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
):
    def three_masks(source, target, pad):
        reads, writes = seen(source, pad), seen(target, pad)
        S, L = source.shape[1], target.shape[1]
        encoder = encode(hide(reads, S), torch.ones(S, S, dtype=torch.bool).tril())
        decoder = write(writes, causal(torch.ones(L, L, dtype=torch.bool)))
        masks = [finish(m.clone()) for m in (encoder, decoder, cross(reads, writes))]
        return tuple(masks[i] for i in order)

    return three_masks


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
        seen=_from_lengths,
    ),
    "padding-is-0": known(
        "You take token 0 for padding.",
        "The argument pad says which token is padding.",
        seen=lambda numbers, pad: numbers != 0,
    ),
    "numbers-for-booleans": known(
        "Your masks hold the numbers 0 and 1.",
        "A mask of numbers would be added to the scores. Asked for are booleans.",
        finish=torch.Tensor.long,
    ),
    "decoder-first": known(
        "The masks come in another order.",
        "Encoder, decoder, cross-attention.",
        order=(1, 0, 2),
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
    ),
    number=2,
)
