"""Task 3.3, output_as_sum: what each head writes into the output."""

import torch

from mha_classroom.checks.task import Case, Task, and_in_float32, known, read_again, unchanged
from mha_classroom.tasks.why_many_heads.one_head import SQUEEZED


def output_as_sum(heads, W_o):
    parts = zip(heads, W_o.split(heads.shape[-1]), strict=True)
    return sum(head @ rows for head, rows in parts)


@and_in_float32
def sum_cases(draw):
    digits = torch.tensor([[[[1.0, 2.0]]], [[[3.0, 4.0]]]], dtype=torch.float64)
    words = torch.arange(1.0, 9.0, dtype=torch.float64).reshape(2, 2, 2, 1)
    rows = torch.tensor([[1.0, 0.0], [0.0, 1.0], [10.0, 0.0], [0.0, 100.0]], dtype=torch.float64)

    def case(name, H, B, L, d_v, d_model):
        inputs = {"heads": draw.normal(H, B, L, d_v), "W_o": draw.normal(H * d_v, d_model)}
        return Case(name, inputs)

    turned = {"heads": draw.normal(3, 5, 4, 7).permute(2, 0, 1, 3), "W_o": draw.normal(5, 28).T}
    return [
        Case("1 word, 2 heads of width 2", {"heads": digits, "W_o": rows}),
        Case(
            "2 sequences of 2 words, 2 heads of width 1", {"heads": words, "W_o": rows[[0, 2], :1]}
        ),
        case("3 heads, 2 sequences, 5 words, d_v = 7, d_model = 11", 3, 2, 5, 7, 11),
        case("all sizes are 3", 3, 3, 3, 3, 3),
        case("one head", 1, 3, 2, 5, 7),
        Case("4 heads; heads and W_o are not contiguous", turned),
    ]


def sum_stages(inputs):
    heads, W_o = inputs.values()
    terms = heads @ W_o.unflatten(0, (len(heads), 1, -1))
    return {"each head times its own rows of W_o": terms, "the sum over the heads": terms.sum(0)}


def build_sum(
    rows=lambda W_o, h, H, d_v: W_o[h * d_v : (h + 1) * d_v],
    order=unchanged,
    combine=lambda terms: terms.sum(0),
):
    def output_as_sum(heads, W_o):
        H, d_v = len(heads), heads.shape[-1]
        terms = [head @ rows(W_o, h, H, d_v) for h, head in enumerate(order(heads))]
        return combine(torch.stack(terms))

    return output_as_sum


def _in_rounds(first, beyond, combine):
    """The terms of some heads: from the number `first` to the last, but for `beyond` of them."""

    def output_as_sum(heads, W_o):
        rows = W_o.split(heads.shape[-1])
        return combine([heads[h] @ rows[h] for h in range(first, len(heads) - beyond)])

    return output_as_sum


def _width_from_batch(heads, W_o):
    B = heads.shape[1]
    return sum(head @ W_o[h * B : (h + 1) * B] for h, head in enumerate(heads))


def _width_from_d_model(heads, W_o):
    d = W_o.shape[1] // len(heads)
    return sum(head @ W_o[h * d : (h + 1) * d] for h, head in enumerate(heads))


def _sequences_for_heads(heads, W_o):
    B = heads.shape[1]
    d = len(W_o) // B
    return sum(heads[h] @ W_o[h * d : (h + 1) * d] for h in range(B))


def _sum_as_wide_as_a_head(heads, W_o):
    output = torch.zeros_like(heads[0])
    for head, rows in zip(heads, W_o.split(heads.shape[-1]), strict=True):
        output += head @ rows
    return output


def _sum_as_wide_as_all_heads(heads, W_o):
    output = heads.new_zeros(*heads.shape[1:3], len(W_o))
    for head, rows in zip(heads, W_o.split(heads.shape[-1]), strict=True):
        output += head @ rows
    return output


def _columns_turned(heads, W_o):
    d_v = heads.shape[-1]
    return sum(head @ W_o[:, h * d_v : (h + 1) * d_v].T for h, head in enumerate(heads))


LEFT_OUT = (
    "The last head is missing from your sum.",
    "range(H - 1) ends before H - 1: how many rounds is that? Every head has something to add.",
)
FIRST_LEFT_OUT = (
    "The term of head 0 is missing from your sum.",
    "Does a loop or a slice begin at 1? The heads are numbered from 0.",
)
# With one head each way to add up no terms returns, or raises, something of its own.
ADDED = {"with-sum": sum, "by-stacking": lambda terms: torch.stack(terms).sum(0)}
# Of `strongest_head` as well.
LINED_UP = (
    "You multiply heads (H, B, L, d_v) by matrices (H, d_v, d_model) as they are: the sequences "
    "meet the rows that belong to heads.",
    "Axes are lined up from the right, so that H of the matrices stands below B of the heads. With "
    "B = 1, or B = H, nothing complains. Where does W_o need an axis of size 1?",
)

WRONGLY = "Joining them, wrongly"

SUM = {
    "first-rows-for-all": known(
        "Every head writes through the first d_v rows of W_o.",
        "That equals adding the heads up first, so that they write on top of each other. Where do "
        "the rows of head h start?",
        rows=lambda W_o, h, H, d_v: W_o[:d_v],
    ),
    "merge-interleaved": known(
        "Your head h meets the rows h, h + H, h + 2H and so on: you cut them so, or you join the "
        "heads in turn, feature 0 of every head first.",
        "The rows of a head are neighbours, since its features stand side by side.",
        section=WRONGLY,
        rows=lambda W_o, h, H, d_v: W_o[h::H],
    ),
    "rows-start-at-h": known(
        "The rows of head h start at row h.",
        "Each head before it owns d_v rows. With d_v = 2, which rows are left for head 3?",
        rows=lambda W_o, h, H, d_v: W_o[h : h + d_v],
    ),
    "pieces-of-H-rows": known(
        "You cut W_o into pieces of H rows.",
        "A head is d_v wide, so its piece has d_v rows, and there are H pieces. split wants to "
        "know how long a piece is, chunk how many there are.",
        rows=lambda W_o, h, H, d_v: W_o.chunk(d_v)[min(h, d_v - 1)],
    ),
    "last-row-left-out": known(
        "A piece of your W_o has d_v − 1 rows.",
        "In Python the end of a slice is not part of it: how many rows does 0:d_v take? Or does "
        "each piece begin a row late, so that W_o ends before the last one does?",
        rows=lambda W_o, h, H, d_v: W_o[h * d_v : (h + 1) * d_v - 1],
    ),
    "columns-for-rows": known(
        "You cut W_o into columns.",
        "Its columns are the features of the output, and every head writes into all of them. "
        "The rows belong to the heads.",
        rows=lambda W_o, h, H, d_v: W_o[:, h * d_v : (h + 1) * d_v],
    ),
    "whole-W_o-for-each-head": known(
        "Numbers as wide as one head meet the whole W_o.",
        "W_o has H · d_v rows, a head d_v numbers a word. Added up or one by one, heads stay that "
        "narrow: they meet their own rows only.",
        rows=lambda W_o, h, H, d_v: W_o,
    ),
    "heads-summed": known(
        wrong=lambda heads, W_o: heads.sum(0) @ W_o,
        twin="whole-W_o-for-each-head",
    ),
    "heads-reversed": known(
        "The last head meets the first rows of W_o.",
        "Heads may be added in any order, as long as each keeps its own rows.",
        order=lambda heads: heads.flip(0),
    ),
    "head-0-for-all": known(
        "Head 0 meets the rows of every head, and the other heads nothing.",
        "Each head brings numbers of its own. Is there a heads[0], or do only the rows of W_o "
        "follow h?",
        order=lambda heads: heads[:1].expand_as(heads),
    ),
    "width-from-the-wrong-axis": known(
        "You take the width of a head from the axis that counts the sequences.",
        "heads is (H, B, L, d_v): the width is the size of the last axis. Where B and d_v are "
        "equal nobody notices.",
        wrong=_width_from_batch,
    ),
    "W_o-transposed": known(
        "You multiply by the transpose of W_o.",
        "W_o is (H · d_v, d_model): its rows belong to the heads, and nothing has to be turned.",
        wrong=lambda heads, W_o: torch.cat(list(heads), -1) @ W_o.T,
    ),
    "heads-averaged": known(
        "Your output is the average of the terms.",
        "Side by side times W_o is their sum. The mean is H times too small.",
        combine=lambda terms: terms.mean(0),
    ),
    "last-head-only": known(
        "Only the last head arrives in your output.",
        "Is something overwritten in each round of the loop? What was there before has to stay.",
        combine=lambda terms: terms[-1],
    ),
    "first-head-only": known(
        "Only head 0 arrives in your output.",
        "Does a `return` stand inside the loop? It ends it in the first round.",
        combine=lambda terms: terms[0],
    ),
    "rows-of-the-head-before": known(
        "Head h meets the rows of head h − 1, and head 0 those of the last one.",
        "Is there an h - 1 in your answer? In Python index -1 is the last: nothing complains.",
        wrong=build_sum(
            rows=lambda W_o, h, H, d_v: W_o[(h - 1) % H * d_v : ((h - 1) % H + 1) * d_v]
        ),
    ),
    "rows-start-early": known(
        "The rows of head h start at row h · (d_v − 1).",
        "Each head before it owns d_v rows, not one less.",
        wrong=build_sum(rows=lambda W_o, h, H, d_v: W_o[h * (d_v - 1) : h * (d_v - 1) + d_v]),
    ),
    "no-output-projection": known(
        "You return the heads side by side: W_o is not used.",
        "What is asked for is the output: each head times its own rows of W_o, added up.",
        wrong=lambda heads, W_o: torch.cat(list(heads), -1),
    ),
    "heads-summed-without-W_o": known(
        "You return the sum of the heads: W_o is not used.",
        "Added up, heads write on top of each other. Each goes through its own rows of W_o first.",
        wrong=lambda heads, W_o: heads.sum(0),
    ),
    "last-head-left-out": known(
        *LEFT_OUT, wrong=build_sum(combine=lambda terms: terms[: max(1, len(terms) - 1)].sum(0))
    ),
    "last-head-left-out-even-of-one": known(
        *LEFT_OUT, wrong=build_sum(combine=lambda terms: terms[:-1].sum(0))
    ),
    "first-head-left-out": known(
        *FIRST_LEFT_OUT, wrong=build_sum(combine=lambda terms: terms[1:].sum(0))
    ),
    **{
        f"{which}-head-left-out-{how}": known(*said, wrong=_in_rounds(*ends, combine))
        for which, said, ends in (("first", FIRST_LEFT_OUT, (1, 0)), ("last", LEFT_OUT, (0, 1)))
        for how, combine in ADDED.items()
    },
    "first-head-twice": known(
        "Head 0 is in your sum twice.",
        "Does the sum begin with its term, and does the loop add it again? With what should a sum "
        "begin, or a loop?",
        wrong=build_sum(combine=lambda terms: terms.sum(0) + terms[0]),
    ),
    "sum-times-sum": known(
        "Every head goes through the rows of every other head, too, as if the sum of the heads met "
        "the sum of the pieces of W_o.",
        "Multiply each head by its own rows and add then. In einsum the axes of the heads need one "
        "and the same letter.",
        wrong=lambda heads, W_o: heads.sum(0) @ sum(W_o.split(heads.shape[-1])),
    ),
    "sum-as-wide-as-a-head": known(
        "You begin your sum with zeros as wide as a head.",
        "What is added to them is a head times its rows of W_o, and that is as wide as the output: "
        "(B, L, d_model).",
        wrong=_sum_as_wide_as_a_head,
    ),
    "sum-as-wide-as-all-heads": known(
        "You begin your sum with zeros as wide as all heads side by side, H · d_v.",
        "So wide is what meets the whole W_o. What is added here is a head times its rows of W_o. "
        "How wide is that?",
        wrong=_sum_as_wide_as_all_heads,
    ),
    "columns-turned": known(
        "You cut columns out of W_o, and turn them.",
        "nn.Linear keeps (out, in). This W_o is (H · d_v, d_model): the heads own its rows, and "
        "nothing has to be turned.",
        wrong=_columns_turned,
    ),
    "every-number-meets-every-row": known(
        "In your product every number of a head meets every row of its piece of W_o: d_v has two "
        "letters, or is summed in each of the two alone.",
        "Feature i of a head meets row i only. In einsum both axes need one and the same letter.",
        wrong=lambda heads, W_o: torch.einsum(
            "hbld,hem->blm", heads, W_o.unflatten(0, (len(heads), -1))
        ),
    ),
    "heads-line-up-with-sequences": known(
        *LINED_UP,
        wrong=lambda heads, W_o: (heads @ W_o.reshape(len(heads), heads.shape[-1], -1)).sum(0),
    ),
    "width-from-d_model": known(
        "You take d_model // H for the width of a head.",
        "Often it is, and here it need not be: a piece of W_o has as many rows as a head has "
        "features. Which axis of heads counts these?",
        wrong=_width_from_d_model,
    ),
    "sequences-for-heads": known(
        "You count the heads on the axis of the sequences.",
        "heads is (H, B, L, d_v). With as many sequences as heads nobody notices.",
        wrong=_sequences_for_heads,
    ),
    "squeezed": known(*SQUEEZED, wrong=lambda *given: output_as_sum(*given).squeeze()),
    "squeezed-in-front": known(*SQUEEZED, wrong=lambda *given: output_as_sum(*given).squeeze(0)),
    "terms-not-added": known(
        "You return the terms, one for each head.",
        "Each is right. The output is a single (B, L, d_model).",
        combine=lambda terms: terms,
    ),
    "terms-side-by-side": known(
        "You put the terms side by side.",
        "Each is as wide as the output already: past their own rows of W_o, heads are added.",
        combine=lambda terms: torch.cat(list(terms), -1),
    ),
    "summed-over-the-batch": known(
        "You add up the sequences instead of the heads.",
        "heads is (H, B, L, d_v): which axis counts the heads?",
        combine=lambda terms: terms.sum(1),
    ),
    "merge-without-transpose": known(
        "You reshape (H, B, L, d_v) to (B, L, H · d_v), or to (B, L, H, d_v): a row holds several "
        "words of one head.",
        "reshape deals numbers out as they lie in memory, all of head 0 before head 1. A row needs "
        "one word of every head.",
        section=WRONGLY,
        wrong=lambda heads, W_o: heads.reshape(*heads.shape[1:3], -1) @ W_o,
    ),
}

TASK = Task(
    "03-output_as_sum",
    output_as_sum,
    sum_cases,
    returns=("the output",),
    mistakes=read_again("The output is a sum", SUM),
    build=build_sum,
    stages=sum_stages,
    number=3,
)
