"""Task 3.6, strongest_head: which head added most to each number of the output."""

import torch

from mha_classroom.checks.task import Case, Task, known, read_again


def strongest_head(heads, W_o):
    terms = heads @ W_o.reshape(len(heads), 1, heads.shape[-1], -1)  # (H, B, L, d_out)
    return terms.abs().argmax(0)


def strongest_cases(draw):
    digits = torch.tensor([[[[1.0, 2.0]]], [[[3.0, -4.0]]]], dtype=torch.float64)
    rows = torch.tensor([[3.0, 1.0, 1.0], [4.0, 0.0, 1.0], [1.0, 0.0, 1.0], [1.0, 1.0, 0.0]])
    # Terms 5, -5, 2; then 0, 0, 0; then -1, 4, -4.
    tied = torch.tensor([[5.0, 0.0, -1.0], [-5.0, 0.0, 4.0], [2.0, 0.0, -4.0]])
    equal = {"heads": tied.double()[:, None, :, None], "W_o": torch.ones(3, 1).double()}
    # Head 0 has the largest single product, and it cancels; head 1 the largest sum.
    cancel = torch.tensor([[[[9.0, -9.0]]], [[[2.0, 2.0]]]], dtype=torch.float64)

    def case(name, H, B, L, d_v, d_out):
        inputs = {"heads": draw.normal(H, B, L, d_v), "W_o": draw.normal(H * d_v, d_out)}
        return Case(name, inputs)

    turned = {"heads": draw.normal(3, 5, 2, 7).permute(2, 0, 1, 3), "W_o": draw.normal(5, 14).T}
    return [
        Case("1 word, 2 heads of width 2, 3 features", {"heads": digits, "W_o": rows.double()}),
        Case("what one head adds cancels out", {"heads": cancel, "W_o": torch.ones(4, 1).double()}),
        Case("terms 5, −5 and 2, then only zeros, then −1, 4 and −4", equal),
        case("3 heads, 2 sequences, 5 words, d_v = 7, 11 features", 3, 2, 5, 7, 11),
        case("5 heads, 3 sequences, 2 words, d_v = 2, 7 features", 5, 3, 2, 2, 7),
        case("all sizes are 3", 3, 3, 3, 3, 3),
        case("one head", 1, 2, 3, 5, 7),
        Case("heads and W_o are not contiguous", turned),
    ]


def strongest_stages(inputs):
    heads, W_o = inputs.values()
    terms = heads @ W_o.reshape(len(heads), 1, heads.shape[-1], -1)
    return {"what each head adds to the output": terms}


def build_strongest(
    rows=lambda W_o, H, d_v: W_o.reshape(H, d_v, -1),
    size=torch.abs,
    pick=lambda sizes: sizes.argmax(0),
    finish=lambda heads: heads,
):
    """rows: the rows of W_o for each head. size: of the terms (H, B, L, d_out). pick: from them."""

    def strongest_head(heads, W_o):
        terms = heads @ rows(W_o, len(heads), heads.shape[-1])[:, None]
        return finish(pick(size(terms)))

    return strongest_head


def _last_largest(sizes):
    return len(sizes) - 1 - sizes.flip(0).argmax(0)


def _products(heads, W_o):
    """Every single product, (B, L, H * d_v, d_out)."""
    return torch.cat(list(heads), -1)[..., None] * W_o


def _width_of(heads):
    return heads.shape[-1]


def _single_product(heads, W_o):
    return _products(heads, W_o).abs().argmax(2) // _width_of(heads)


def _row_number(heads, W_o):
    return _products(heads, W_o).abs().argmax(2)


def _magnitudes_first(heads, W_o):
    sizes = heads.abs() @ W_o.abs().reshape(len(heads), 1, _width_of(heads), -1)
    return sizes.argmax(0)


def _by_rows_alone(heads, W_o):
    lengths = W_o.reshape(len(heads), _width_of(heads), -1).norm(dim=1)  # (H, d_out)
    return lengths.argmax(0).expand(*heads.shape[1:3], -1)


def _by_heads_alone(heads, W_o):
    lengths = heads.norm(dim=-1)  # (H, B, L)
    return lengths.argmax(0)[..., None].expand(-1, -1, W_o.shape[1])


def _closest_to_the_output(heads, W_o):
    terms = heads @ W_o.reshape(len(heads), 1, _width_of(heads), -1)
    return (terms - terms.sum(0)).abs().argmin(0)


SUM_OF_HEADS = "The output is a sum"

STRONGEST = {
    "sign-kept": known(
        "You take the head with the largest term, and negative terms never win.",
        "A head that adds −9 changes the output more than one that adds 2. What counts is how far "
        "from 0 a term is.",
        size=lambda terms: terms,
    ),
    "smallest": known(
        "You name the head that adds least.",
        "Asked for is the head whose term is furthest from 0.",
        pick=lambda sizes: sizes.argmin(0),
    ),
    "last-of-ties": known(
        "Where two terms are equally large, you name the later head.",
        "The statement says which one counts then.",
        pick=_last_largest,
    ),
    "sizes-returned": known(
        "You return how large the largest term is.",
        "Asked for is the head that it came from: which function returns the place of the largest?",
        pick=lambda sizes: sizes.amax(0),
    ),
    "counted-from-1": known(
        "You count the heads from 1.",
        "heads[0] is head 0.",
        finish=lambda heads: heads + 1,
    ),
    "feature-for-head": known(
        "You look for the largest feature of each head.",
        "For each feature the heads compete. Which axis of the terms counts the heads?",
        pick=lambda sizes: sizes.argmax(-1),
    ),
    "sequences-for-heads": known(
        "You compare the sequences of the batch.",
        "heads is (H, B, L, d_v): which axis counts the heads?",
        pick=lambda sizes: sizes.argmax(1),
    ),
    "one-for-each-word": known(
        "You name one head for each word.",
        "Each feature of the output has terms of its own: another head may be the strongest there.",
        pick=lambda sizes: sizes.norm(dim=-1).argmax(0),
    ),
    "one-for-each-feature": known(
        "You name one head for each feature, the same for all words.",
        "Another word may have another strongest head: keep sequences and words apart.",
        pick=lambda sizes: sizes.sum((1, 2)).argmax(0),
    ),
    "single-product": known(
        "You look for the largest single product of a head's number and a row of W_o.",
        "A head adds d_v products to a feature, and they may cancel. What counts is their sum.",
        wrong=_single_product,
    ),
    "row-number": known(
        "You return the number of a row of W_o.",
        "W_o has H · d_v rows, d_v for each head. What a head adds is the sum over its rows.",
        wrong=_row_number,
    ),
    "magnitudes-first": known(
        "You take magnitudes before you multiply and add.",
        "A head's products may cancel. Add them up first, then ask how far from 0 the sum is.",
        wrong=_magnitudes_first,
    ),
    "closest-to-the-output": known(
        "You name the head whose term is closest to the whole output.",
        "The other heads may add up to much and cancel. Asked for is the term that is furthest "
        "from 0, whatever the sum.",
        wrong=_closest_to_the_output,
    ),
    "rows-of-W_o-alone": known(
        "You compare the rows of W_o only: what the heads bring plays no part.",
        "A head with large rows adds nothing where it brings nothing.",
        wrong=_by_rows_alone,
    ),
    "heads-alone": known(
        "You compare how much the heads bring: W_o plays no part.",
        "A head that brings much adds nothing to a feature if its rows of W_o are 0 there.",
        wrong=_by_heads_alone,
    ),
    "first-rows-for-all": known(
        "Every head goes through the first d_v rows of W_o.",
        "Those belong to head 0. Where do the rows of head h start?",
        rows=lambda W_o, H, d_v: W_o[:d_v].expand(H, -1, -1),
    ),
    "rows-interleaved": known(
        "Head h goes through the rows h, h + H, h + 2H and so on.",
        "The rows of a head are neighbours, since its features stand side by side in Concat.",
        rows=lambda W_o, H, d_v: torch.stack([W_o[h::H] for h in range(H)]),
    ),
}

TASK = Task(
    "03-strongest_head",
    strongest_head,
    strongest_cases,
    returns=("the result",),
    mistakes=read_again(SUM_OF_HEADS, STRONGEST),
    build=build_strongest,
    stages=strongest_stages,
    number=6,
    since=2,
)
