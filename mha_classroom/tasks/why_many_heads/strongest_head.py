"""Task 3.6, strongest_head: which head added most to each number of the output."""

import torch

from mha_classroom.checks.forms import any_of
from mha_classroom.checks.task import Case, Task, and_in_float32, known, read_again, unchanged
from mha_classroom.tasks.why_many_heads.output_as_sum import LINED_UP, WRONGLY


def strongest_head(heads, W_o):
    terms = heads @ W_o.reshape(len(heads), 1, heads.shape[-1], -1)  # (H, B, L, d_out)
    return terms.abs().argmax(0)


@and_in_float32
def strongest_cases(draw):
    digits = torch.tensor([[[[1.0, 2.0]]], [[[3.0, -4.0]]]], dtype=torch.float64)
    rows = torch.tensor([[3.0, 1.0, 1.0], [4.0, 0.0, 1.0], [1.0, 0.0, 1.0], [1.0, 1.0, 0.0]])
    # Terms 5, -5, 0, whose sum is 0; then 0, 0, 0; then -1, -4, 4.
    tied = torch.tensor([[5.0, 0.0, -1.0], [-5.0, 0.0, -4.0], [0.0, 0.0, 4.0]])
    equal = {"heads": tied.double()[:, None, :, None], "W_o": torch.ones(3, 1).double()}
    # Head 0 has the largest single product, and it cancels; head 1 the largest sum.
    cancel = torch.tensor([[[[9.0, -9.0]]], [[[2.0, 2.0]]]], dtype=torch.float64)

    close = {"heads": torch.tensor([3.0, 3.00000001], dtype=torch.float64)[:, None, None, None]}
    close["W_o"] = torch.tensor([[1.0, -1.0], [1.0, -1.0]]).double()

    ones = torch.ones(20, 1, dtype=torch.float64)
    many = {"heads": ones[..., None, None], "W_o": ones}

    def case(name, H, B, L, d_v, d_out):
        inputs = {"heads": draw.normal(H, B, L, d_v), "W_o": draw.normal(H * d_v, d_out)}
        return Case(name, inputs)

    turned = {"heads": draw.normal(3, 5, 2, 7).permute(2, 0, 1, 3), "W_o": draw.normal(5, 14).T}
    return [
        Case("1 word, 2 heads of width 2, 3 features", {"heads": digits, "W_o": rows.double()}),
        Case("what one head adds cancels out", {"heads": cancel, "W_o": torch.ones(4, 1).double()}),
        Case("terms 5, −5 and 0, then only zeros, then −1, −4 and 4", equal),
        Case("terms 3 and 3.00000001, and then both below 0", close),
        Case("20 heads, and all terms are 1", many),
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


def _largest_against_smallest(wins):
    """The head of the largest term, or that of the smallest: `wins` compares how far from 0."""

    def strongest_head(heads, W_o):
        terms = heads @ W_o.reshape(len(heads), 1, _width_of(heads), -1)
        larger = wins(terms.amax(0), -terms.amin(0))
        return torch.where(larger, terms.argmax(0), terms.argmin(0))

    return strongest_head


def _by_sign_of_ties(inputs, value):
    ways = (_largest_against_smallest(wins)(**inputs) for wins in (torch.gt, torch.ge))
    return torch.is_tensor(value) and any(torch.equal(value, way) for way in ways)


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


def _lined_up(heads, W_o):
    return (heads @ W_o.reshape(len(heads), _width_of(heads), -1)).abs().argmax(0)


def _dealt_out_anew(heads):
    """As if (H, B, L, d_v) lay in memory as (B, L, H, d_v)."""
    H, B, L, d_v = heads.shape
    return heads.reshape(B, L, H, d_v).permute(2, 0, 1, 3)


def _width_from_d_out(heads, W_o):
    d = W_o.shape[1] // len(heads)
    terms = [head @ W_o[h * d : (h + 1) * d] for h, head in enumerate(heads)]
    return torch.stack(terms).abs().argmax(0)


def _last_above_head_0(heads, W_o):
    terms = heads @ W_o.reshape(len(heads), 1, heads.shape[-1], -1)
    sizes, best = terms.abs(), torch.zeros(terms.shape[1:]).long()
    for h, size in enumerate(sizes):
        best = torch.where(size > sizes[0], h, best)
    return best


def _nobody_at_0(sizes):
    """As if the search began with a largest term of 0 and head -1."""
    return torch.where(sizes.amax(0) > 0, sizes.argmax(0), -1)


ONE_A_WORD = (
    "You name one head for each word.",
    "Each feature of the output has terms of its own: another head may be the strongest there.",
)
ONE_A_FEATURE = (
    "You name one head for each feature, the same for all words.",
    "Another word may have another strongest head: keep sequences and words apart.",
)

SUM_OF_HEADS = "The output is a sum"

STRONGEST = {
    "sign-kept": known(
        "You take the head with the largest term, and a negative one wins only where all are.",
        "A head that adds −9 changes the output more than one that adds 2. What counts is how far "
        "from 0 a term is.",
        size=lambda terms: terms,
    ),
    "sign-decides-ties": known(
        "Of two terms that are equally far from 0, one below it and one above, you always name the "
        "head of the negative one, or always that of the positive one.",
        "The sign does not decide. The statement says which head counts then.",
        wrong=_largest_against_smallest(torch.gt),
        shows=_by_sign_of_ties,
    ),
    "terms-cut-to-whole-numbers": known(
        "You turn the terms into whole numbers before you compare them.",
        "Then 0.9 and 0.2 are both 0, and equally strong. Compare the terms as they are.",
        size=lambda terms: terms.abs().long(),
    ),
    "one-for-each-sequence": known(
        "All words of a sequence get one head, or one for each feature.",
        "Each word brings other numbers, so another head may add most to it.",
        pick=lambda sizes: sizes.mean(2, keepdim=True).expand_as(sizes).argmax(0),
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
    "any-of-many-ties": known(
        "Of many terms that are equally large, you do not name the first.",
        "With few heads it may be the first by chance. topk promises no order of equals, and "
        "sort does only with stable=True.",
        **any_of(
            build_strongest,
            pick=[
                lambda sizes: sizes.topk(1, 0).indices[0],
                lambda sizes: sizes.sort(dim=0, descending=True).indices[0],
            ],
        ),
    ),
    "small-differences-lost": known(
        "Terms are equal to you that differ in the eighth decimal.",
        "Compare them as they are. Are they rounded, or compared with a tolerance, or put into a "
        "tensor of float32, which torch.zeros makes unless it is told another dtype?",
        size=lambda terms: terms.abs().float(),
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
    "feature-for-each-head-of-a-word": known(
        "You look for the largest feature of each head: your result has a number for each word and "
        "head.",
        "For each feature the heads compete. On which axis of your terms do the heads stand now?",
        wrong=build_strongest(pick=lambda sizes: sizes.argmax(-1).permute(1, 2, 0)),
    ),
    "sequences-for-heads": known(
        "You compare the sequences of the batch.",
        "heads is (H, B, L, d_v): which axis counts the heads?",
        pick=lambda sizes: sizes.argmax(1),
    ),
    "one-for-each-word": known(
        *ONE_A_WORD,
        pick=lambda sizes: sizes.norm(dim=-1).argmax(0),
    ),
    "one-for-each-word-repeated": known(
        *ONE_A_WORD,
        wrong=build_strongest(
            pick=lambda sizes: sizes.norm(dim=-1).argmax(0)[..., None].repeat(1, 1, sizes.shape[-1])
        ),
    ),
    "one-for-each-feature": known(
        *ONE_A_FEATURE,
        pick=lambda sizes: sizes.sum((1, 2)).argmax(0),
    ),
    "one-for-each-feature-repeated": known(
        *ONE_A_FEATURE,
        wrong=build_strongest(
            pick=lambda sizes: sizes.sum((1, 2)).argmax(0).repeat(*sizes.shape[1:3], 1)
        ),
    ),
    "first-word-for-all": known(
        "Every word has the result of word 0.",
        "Each word brings other numbers, so another head may add most to it.",
        wrong=build_strongest(finish=lambda heads: heads[:, :1].expand_as(heads)),
    ),
    "most-negative-first": known(
        "Where any term is negative you name the head with the smallest term, however far from 0 "
        "the largest one is.",
        "Of −1 and 4, the term 4 is further from 0. Compare the two, or make all terms positive "
        "first.",
        wrong=build_strongest(
            size=lambda terms: terms,
            pick=lambda terms: torch.where(terms.amin(0) < 0, terms.argmin(0), terms.argmax(0)),
        ),
    ),
    "smallest-by-sorting": known(
        "You name the head that adds least, and of equal ones the last. Is it the end of a list "
        "that is sorted from the largest down?",
        "Asked for is the head whose term is furthest from 0.",
        wrong=build_strongest(pick=lambda sizes: sizes.argsort(dim=0, descending=True)[-1]),
    ),
    "share-of-the-sum": known(
        "You compare the terms with their sum: the one that goes furthest in its direction wins, "
        "or the one that is the largest share of it.",
        "A term against that direction may be larger, and where the sum is 0 there are no shares. "
        "What counts is how far from 0 a term is, whatever the sum.",
        **any_of(
            build_strongest,
            size=(
                lambda terms: terms / terms.sum(0, keepdim=True),
                lambda terms: terms * terms.sum(0).sign(),
                lambda terms: (terms / terms.sum(0, keepdim=True)).abs(),
            ),
        ),
    ),
    "nobody-where-all-are-0": known(
        "Where all terms are 0 you name head −1.",
        "Does your search begin with 0 as the largest so far, so that no term is larger? Equal "
        "terms have a strongest head, too: read in the statement which one counts.",
        wrong=build_strongest(pick=_nobody_at_0),
    ),
    "axes-of-size-1-lost": known(
        "Axes of size 1 are gone from your result.",
        "squeeze() without an axis removes each of them, also that of the only sequence, word or "
        "feature. The result is (B, L, d_out).",
        wrong=build_strongest(finish=torch.squeeze),
    ),
    "axis-of-heads-kept": known(
        "Your result has an axis of size 1 in front.",
        "The axis of the heads is gone once one of them is chosen. keepdim keeps it.",
        wrong=build_strongest(pick=lambda sizes: sizes.argmax(0, keepdim=True)),
    ),
    "W_o-not-used": known(
        "You compare what the heads bring, feature by feature: W_o is not used.",
        "A head's features are not those of the output. Its term is what its d_v rows of W_o make "
        "of them.",
        wrong=lambda heads, W_o: heads.abs().argmax(0),
    ),
    "rows-start-at-h": known(
        "The rows of head h start at row h.",
        "Each head before it owns d_v rows.",
        rows=lambda W_o, H, d_v: torch.stack([W_o[h : h + d_v] for h in range(H)]),
    ),
    "rows-reversed": known(
        "Your last head goes through the first rows of W_o.",
        "The first d_v rows belong to head 0.",
        rows=lambda W_o, H, d_v: W_o.reshape(H, d_v, -1).flip(0),
    ),
    "width-from-d_out": known(
        "You take d_out // H for the width of a head.",
        "A piece of W_o has as many rows as a head has features. Which axis of heads counts these?",
        wrong=_width_from_d_out,
    ),
    "record-of-head-0": known(
        "You compare each head with head 0: the last one that is above it wins.",
        "If you keep the best head so far: what it has to be beaten by changes with it.",
        wrong=_last_above_head_0,
    ),
    "heads-line-up-with-sequences": known(*LINED_UP, wrong=_lined_up),
    "merge-without-transpose": known(
        "You reshape (H, B, L, d_v) to (B, L, H · d_v), or to (B, L, H, d_v): a row holds several "
        "words of one head.",
        "reshape deals numbers out as they lie in memory, all of head 0 before head 1. A row needs "
        "one word of every head.",
        section=WRONGLY,
        wrong=lambda heads, W_o: strongest_head(_dealt_out_anew(heads), W_o),
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
        "You take magnitudes before you add: those of the numbers that you multiply, or of their "
        "products.",
        "A head's products may cancel. Add them up first, then ask how far from 0 the sum is.",
        wrong=_magnitudes_first,
    ),
    **{
        f"magnitudes-of-the-heads{id}": known(
            "You take magnitudes of what the heads bring, before it meets W_o.",
            "A head's products may cancel. Add them up first, then ask how far from 0 the sum is.",
            wrong=lambda heads, W_o, size=size: build_strongest(size=size)(heads.abs(), W_o),
        )
        for id, size in (("", torch.abs), ("-and-the-sign-kept", unchanged))
    },
    "closest-to-the-output": known(
        "You name the head whose term is closest to the whole output: without it, least of the "
        "output is left.",
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
        "Your head h goes through the rows h, h + H, h + 2H and so on.",
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
    alone=("terms-cut-to-whole-numbers", "any-of-many-ties", "small-differences-lost"),
    number=6,
    since=2,
)
