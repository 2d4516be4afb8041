"""Task 3.5, fold_W_o: wide values, so that the heads only have to be added."""

import torch
from torch.nn import functional as F

from mha_classroom.checks.examining import first_wrong
from mha_classroom.checks.showing import numbers_text
from mha_classroom.checks.task import Case, Task, and_in_float32, known, read_again, unchanged


def fold_W_o(W_v, W_o):
    """(H, d_model, d_v) @ (H, d_v, d_out): one product for each head."""
    return W_v @ W_o.reshape(len(W_v), W_v.shape[-1], -1)


@and_in_float32
def fold_cases(draw):
    W_v = torch.tensor([[[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]], [[1.0, 1.0], [2.0, 0.0], [0.0, 2.0]]])
    W_o = torch.tensor([[1.0, 2.0], [0.0, 1.0], [10.0, 0.0], [0.0, 100.0]])

    def case(name, H, d_model, d_v, d_out):
        inputs = {"W_v": draw.normal(H, d_model, d_v), "W_o": draw.normal(H * d_v, d_out)}
        return Case(name, inputs)

    turned = {"W_v": draw.normal(5, 3, 2).permute(1, 0, 2), "W_o": draw.normal(7, 6).T}
    return [
        Case("2 heads, d_model 3, d_v = 2, d_out 2", {"W_v": W_v.double(), "W_o": W_o.double()}),
        case("3 heads, d_model 7, d_v = 2, d_out 5", 3, 7, 2, 5),
        case("2 heads, d_model 5, d_v = 3, d_out 11", 2, 5, 3, 11),
        case("all sizes are 3", 3, 3, 3, 3),
        case("one head, d_out 1", 1, 5, 3, 1),
        case("d_v = 1", 5, 3, 1, 7),
        Case("W_v and W_o are not contiguous", turned),
    ]


def point_out_head(inputs, wide):
    """The row of W_v and the column of W_o that the first wrong number depends on, for its head;
    the sizes, if the shape is wrong."""
    W_v, W_o = inputs.values()
    H, d_model, d_v = W_v.shape
    if wide.shape != (H, d_model, W_o.shape[1]):
        return f"Asked for is one matrix ({d_model}, {W_o.shape[1]}) for each head."
    h, row, column = first_wrong(wide, fold_W_o(W_v, W_o))
    start = h * d_v
    return (
        f"Head {h} has {numbers_text(W_v[h, row])} in row {row} of its W_v, and "
        f"{numbers_text(W_o[start : start + d_v, column])} in column {column} of its rows of W_o. "
        f"[{h}, {row}, {column}] of the result depends on these alone."
    )


def build_fold(
    rows=lambda W_o, H, d_v: W_o.reshape(H, d_v, -1),
    order=unchanged,
    multiply=lambda W_v, rows: W_v @ rows,
    finish=unchanged,
):
    """rows: the rows of W_o for each head, (H, d_v, d_out). order: of the heads' W_v."""

    def fold_W_o(W_v, W_o):
        return finish(multiply(order(W_v), rows(W_o, len(W_v), W_v.shape[-1])))

    return fold_W_o


def _places_of_their_own(W_v, W_o):
    """Each head in places of its own, H * d_v wide."""
    H, d_model, d_v = W_v.shape
    wide = W_v.new_zeros(H, d_model, H * d_v)
    for h in range(H):
        wide[h, :, h * d_v : (h + 1) * d_v] = W_v[h]
    return wide


def _places_in_d_out(W_v, W_o):
    """The same, as wide as the output: there may be too few columns."""
    H, d_model, d_v = W_v.shape
    wide = W_v.new_zeros(H, d_model, W_o.shape[1])
    for h in range(H):
        wide[h, :, h * d_v : (h + 1) * d_v] = W_v[h]
    return wide


def _all_rows(wide):
    """A fold that multiplies the values' matrices of all heads, as one wide matrix, by W_o."""

    def fold_W_o(W_v, W_o):
        return (wide(W_v) @ W_o).repeat(len(W_v), 1, 1)

    return fold_W_o


def _into_zeros(W_v, W_o):
    wide = W_v.new_zeros(*W_v.shape[:2], W_o.shape[1])
    for h, W in enumerate(W_v):
        wide[h, :, : W.shape[1]] = W
    return wide


def _padded(W_v, W_o):
    """Cut off where the output is narrower."""
    return F.pad(W_v, (0, W_o.shape[1] - W_v.shape[2]))


def _every_hth(W_o, H, d_v):
    return torch.stack([W_o[h::H] for h in range(H)])


def _starting_at_h(W_o, H, d_v):
    return torch.stack([W_o[h : h + d_v] for h in range(H)])


def _one_after_the_other(W_v, rows):
    """Head by head, up to the first two that do not fit."""
    return torch.stack([W_v[h] @ rows[h] for h in range(len(W_v))])


def _width_from_d_out(W_v, W_o):
    d = W_o.shape[1] // len(W_v)
    return torch.stack([W_v[h] @ W_o[h * d : (h + 1) * d] for h in range(len(W_v))])


def _width_from_d_model(W_v, W_o):
    d = W_v.shape[1] // len(W_v)
    return torch.stack([W_v[h] @ W_o[h * d : (h + 1) * d] for h in range(len(W_v))])


def _square(W_v, W_o):
    return W_v @ W_o.reshape(len(W_v), W_v.shape[2], W_v.shape[1])


def _put_into_square(W_v, W_o):
    H, d_model, d_v = W_v.shape
    wide = W_v.new_zeros(H, d_model, d_model)
    for h in range(H):
        wide[h] = W_v[h] @ W_o[h * d_v : (h + 1) * d_v]
    return wide


def _alone(h):
    def finish(W):
        """All but the matrix of this head are 0."""
        kept = torch.zeros_like(W)
        kept[h] = W[h]
        return kept

    return finish


def _two_heads(W_v, W_o):
    d = W_v.shape[-1]
    return torch.stack([W_v[0] @ W_o[:d], W_v[1] @ W_o[d : 2 * d]])


def _starting_early(W_o, H, d_v):
    return torch.stack([W_o[h * (d_v - 1) : h * (d_v - 1) + d_v] for h in range(H)])


D_OUT_FOR_D_MODEL = (
    "You take d_out to be as large as d_model.",
    "In the lesson it is, and here it need not be. The values now go straight into the output: "
    "which matrix says how wide that is?",
)

SUM_OF_HEADS = "The output is a sum"

FOLD = {
    "places-without-W_o": known(
        "You give each head places of its own, H · d_v in all, and W_o is not in it.",
        "Added up, these heads are what Concat makes. The output is that times W_o: which of its "
        "rows meet the places of head h?",
        wrong=_places_of_their_own,
    ),
    "W_v-returned": known(
        "You return W_v as it was.",
        "Heads of width d_v write on top of each other when they are added. Each has to arrive "
        "where its rows of W_o would have put it.",
        wrong=lambda W_v, W_o: W_v.clone(),
    ),
    **{
        f"W_v-{id}": known(
            "The numbers of W_o have no effect on your result: it holds W_v, with zeros beside it "
            "up to the width of W_o.",
            "Heads of width d_v write on top of each other when they are added. Each has to "
            "arrive where its rows of W_o would have put it.",
            wrong=wrong,
        )
        for id, wrong in (("written-into-zeros", _into_zeros), ("padded", _padded))
    },
    "places-without-W_o-in-its-width": known(
        "You put the W_v of each head into places of its own, d_v columns each, and the numbers of "
        "W_o have no effect. Where d_out is below H · d_v, there are too few columns.",
        "More columns would not do: the new matrix of head h has to do what its W_v and its rows "
        "of W_o do one after the other.",
        wrong=_places_in_d_out,
    ),
    "rows-returned": known(
        "You return the rows of W_o for each head: the numbers of W_v are not in it.",
        "The new values still have to be made from the words.",
        multiply=lambda W_v, rows: rows,
    ),
    "first-rows-for-all": known(
        "Every head gets the first d_v rows of W_o.",
        "Those belong to head 0. Where do the rows of head h start?",
        rows=lambda W_o, H, d_v: W_o[:d_v].expand(H, -1, -1),
    ),
    "rows-interleaved": known(
        "Your head h gets the rows h, h + H, h + 2H and so on.",
        "The rows of a head are neighbours, since its features stand side by side in Concat.",
        rows=_every_hth,
    ),
    "rows-start-at-h": known(
        "The rows of your head h start at row h.",
        "Each head before it owns d_v rows.",
        rows=_starting_at_h,
    ),
    "pieces-reshaped-and-turned": known(
        "You reshape W_o to (H, d_out, d_v) and use each piece turned: its numbers are in other "
        "places than they were.",
        "reshape deals numbers out as they lie in memory, row by row, and a row of W_o is d_out "
        "long. Which of the new axes has to come last, so that a row stays a row?",
        rows=lambda W_o, H, d_v: W_o.reshape(H, -1, d_v).mT,
    ),
    "pieces-of-H-rows": known(
        "You cut W_o into pieces of H rows.",
        "A head is d_v wide, so its piece has d_v rows, and there are H pieces. split wants to "
        "know how long a piece is, chunk how many there are.",
        rows=lambda W_o, H, d_v: W_o.split(H),
        multiply=_one_after_the_other,
    ),
    **{
        f"pieces-of-H-rows-{id}": known(
            "You cut W_o into pieces of H rows.",
            "A head is d_v wide, so its piece has d_v rows, and there are H pieces. split wants to "
            "know how long a piece is, chunk how many there are.",
            wrong=build_fold(lambda W_o, H, d_v: torch.stack(W_o.split(H)), multiply=multiply),
        )
        for id, multiply in (("in-one-product", torch.matmul), ("in-one-bmm", torch.bmm))
    },
    "rows-of-the-head-before": known(
        "Your head h gets the rows of head h − 1, and head 0 those of the last one.",
        "Is there an h - 1 in your answer? In Python index -1 is the last: nothing complains.",
        rows=lambda W_o, H, d_v: W_o.reshape(H, d_v, -1).roll(1, 0),
    ),
    "rows-of-the-head-after": known(
        "Your head h gets the rows of head h + 1, and the last one those of head 0.",
        "Those of head 0 are the first d_v rows. Where do the rows of head h start?",
        rows=lambda W_o, H, d_v: W_o.reshape(H, d_v, -1).roll(-1, 0),
    ),
    "rows-start-early": known(
        "The rows of your head h start at row h · (d_v − 1).",
        "Each head before it owns d_v rows, not one less.",
        wrong=build_fold(rows=_starting_early),
    ),
    "rows-of-all-heads-added": known(
        "Every head gets the sum of all heads' rows of W_o.",
        "In an einsum with different letters for the heads of W_v and of W_o, each head of one "
        "meets each of the other. Head h has d_v rows of its own.",
        rows=lambda W_o, H, d_v: W_o.reshape(H, d_v, -1).sum(0).expand(H, -1, -1),
    ),
    "only-head-0-filled": known(
        "Only the matrix of head 0 is filled, the others are zeros.",
        "Does a `return` stand inside the loop? It ends it in the first round.",
        wrong=build_fold(finish=_alone(0)),
    ),
    "only-the-last-head-filled": known(
        "Only the matrix of the last head is filled, the others are zeros.",
        "Is something made anew in each round of the loop? What was there before has to stay.",
        wrong=build_fold(finish=_alone(-1)),
    ),
    "two-heads-always": known(
        "Your answer is for two heads, whatever their number is.",
        "The first axis of W_v counts the heads: len(W_v).",
        wrong=_two_heads,
    ),
    "width-from-d_out": known(
        "You take d_out // H for the width of a head.",
        "A piece of W_o has as many rows as a head's values have features. Which axis of W_v "
        "counts these?",
        wrong=_width_from_d_out,
    ),
    "width-from-d_model": known(
        "You take d_model // H for the width of a head.",
        "A head can have another width: d_v is the last size of W_v. A piece of W_o has as many "
        "rows.",
        wrong=_width_from_d_model,
    ),
    "d_out-for-d_model": known(*D_OUT_FOR_D_MODEL, wrong=_square),
    "d_out-for-d_model-in-a-new-tensor": known(*D_OUT_FOR_D_MODEL, wrong=_put_into_square),
    "result-reversed": known(
        "Your heads stand in reverse order: the matrix of the last head comes first.",
        "Do you put each in front of those before, with insert(0, …)? Head 0 comes first.",
        wrong=build_fold(finish=lambda result: result.flip(0)),
    ),
    "rows-reversed": known(
        "The last head gets the first rows of W_o.",
        "The first d_v rows belong to head 0.",
        order=lambda W_v: W_v.flip(0),
    ),
    "pieces-reversed": known(
        "Your head 0 gets the last rows of W_o.",
        "The first d_v rows belong to head 0.",
        rows=lambda W_o, H, d_v: W_o.reshape(H, d_v, -1).flip(0),
    ),
    "all-rows-in-every-head": known(
        "All rows of W_o are in each of your matrices, and all matrices are alike.",
        "Such a matrix holds what all heads do together. Which d_v rows of W_o belong to head h "
        "alone?",
        wrong=_all_rows(lambda W_v: torch.cat(list(W_v), -1)),
    ),
    "all-rows-in-every-head-and-reshaped": known(
        "All rows of W_o are in each of your matrices, and all matrices are alike. Besides, you "
        "reshape (H, d_model, d_v) to (d_model, H · d_v), and that mixes the heads up.",
        "Which d_v rows of W_o belong to head h alone? As for reshape: it deals numbers out as "
        "they lie in memory, all of head 0 before head 1.",
        wrong=_all_rows(lambda W_v: W_v.reshape(W_v.shape[1], -1)),
    ),
    "W_v-reshaped-to-wide": known(
        "You reshape W_v from (H, d_model, d_v) to (d_model, H · d_v), or to (d_model, H, d_v): "
        "that mixes the heads up.",
        "reshape deals numbers out as they lie in memory, all of head 0 before head 1. W_v is cut "
        "already: W_v[h] is the matrix of head h.",
        order=lambda W_v: W_v.reshape(W_v.shape[1], len(W_v), -1).transpose(0, 1),
    ),
    "head-0-for-all": known(
        "You use the values' matrix of head 0 for every head.",
        "Each head has a W_v of its own. Is there a W_v[0], or do only the rows of W_o follow h?",
        order=lambda W_v: W_v[:1].expand_as(W_v),
    ),
    "heads-added": known(
        "Your result is one matrix, the sum of the heads' matrices.",
        "Each head has weights of its own. The heads can be added after they have taken their "
        "averages, not before.",
        finish=lambda W: W.sum(0),
    ),
    "heads-added-first": known(
        "One matrix is left: the heads are added up, and all of them meet the first d_v rows of "
        "W_o.",
        "Each head goes through rows of its own. Which rows would their sum go through?",
        wrong=lambda W_v, W_o: W_v.sum(0) @ W_o[: W_v.shape[-1]],
    ),
    "side-by-side": known(
        "You put the matrices of the heads side by side.",
        "The heads are to be added, so each keeps a matrix of its own: the first axis counts the "
        "heads.",
        finish=lambda W: torch.cat(list(W), -1),
    ),
    "heads-on-the-second-axis": known(
        "The heads stand on the second axis of your result.",
        "W_v is (H, d_model, d_v), heads first. So is the result.",
        finish=lambda W: W.transpose(0, 1),
    ),
    "heads-averaged": known(
        "Your matrices are divided by the number of heads.",
        "The heads' parts are added, not averaged.",
        finish=lambda W: W / len(W),
    ),
    "W_o-transposed": known(
        "You multiply by the transpose of W_o.",
        "W_o is (H · d_v, d_out): its rows belong to the heads, and nothing has to be turned.",
        rows=lambda W_o, H, d_v: W_o.T.reshape(H, d_v, -1),
    ),
    **{
        id: known(
            "Matrices as wide as one head meet the whole W_o.",
            "W_o has H · d_v rows. Which d_v of them belong to head h?",
            wrong=wrong,
        )
        for id, wrong in {
            "whole-W_o-for-each-head": lambda W_v, W_o: W_v @ W_o,
            "whole-W_o-in-a-loop": lambda W_v, W_o: torch.stack([W @ W_o for W in W_v]),
        }.items()
    },
    "result-transposed": known(
        "Your matrices are (d_out, d_model).",
        "They are used as X @ W, so d_model comes first.",
        finish=lambda W: W.mT,
    ),
}

TASK = Task(
    "03-fold_W_o",
    fold_W_o,
    fold_cases,
    returns=("the result",),
    mistakes=read_again(SUM_OF_HEADS, FOLD),
    build=build_fold,
    alone=("rows-reversed",),  # with pieces-reversed it is result-reversed
    point_out=point_out_head,
    number=5,
    since=2,
)
