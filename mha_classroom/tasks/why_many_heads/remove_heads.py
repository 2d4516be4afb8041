"""Task 3.7, remove_heads: smaller matrices, with the output of the heads that stay."""

import torch

from mha_classroom.checks.examining import say_which_heads
from mha_classroom.checks.task import Case, Task, and_in_float32, known, read_again, unchanged


def remove_heads(W_q, W_k, W_v, W_o, num_heads, removed):
    stay = [h for h in range(num_heads) if h not in removed]
    wide = (W.unflatten(1, (num_heads, -1))[:, stay].flatten(1) for W in (W_q, W_k, W_v))
    return *wide, W_o.unflatten(0, (num_heads, -1))[stay].flatten(0, 1)


@and_in_float32
def remove_cases(draw):
    """H divides d_model and d_out: columns cut for rows give the same however they are cut."""
    columns = torch.arange(6.0, dtype=torch.float64).expand(3, -1)  # the number of the column
    small = {"W_q": columns + 10, "W_k": columns + 20, "W_v": columns[:, :3] + 30}
    small["W_o"] = 40 + torch.arange(3.0, dtype=torch.float64)[:, None].expand(-1, 3)

    def case(name, d_model, H, d_k, d_v, d_out, removed):
        inputs = {
            "W_q": draw.normal(d_model, H * d_k),
            "W_k": draw.normal(d_model, H * d_k),
            "W_v": draw.normal(d_model, H * d_v),
            "W_o": draw.normal(H * d_v, d_out),
        }
        return Case(name, inputs | {"num_heads": H, "removed": removed})

    # A set of what is left, 2, 8 and 10, gives 8 first, and texts of them 10.
    most = [11, 7, 0, 1, 3, 4, 5, 6, 9]
    turned = case("12 heads, all but 2, 8 and 10 go, transposed matrices", 24, 12, 3, 5, 8, most)
    for name in ("W_q", "W_k", "W_v", "W_o"):
        turned.inputs[name] = turned.inputs[name].T.contiguous().T
    zeros = case("4 heads, the last goes, it and head 1 have zeros", 8, 4, 2, 3, 5, [3])
    zeros.inputs["W_o"].view(4, 3, 5)[[1, 3]] = 0
    for name in ("W_q", "W_k", "W_v"):
        zeros.inputs[name][:, 3] = 0
    return [
        Case("3 heads, d_k = 2, d_v = 1, head 1 goes", small | {"num_heads": 3, "removed": [1]}),
        case("5 heads, d_k = 3, d_v = 2, heads 1 and 3 go", 20, 5, 3, 2, 5, [1, 3]),
        case("4 heads, d_k = 2, d_v = 5, heads 3, 0 and 1 go", 12, 4, 2, 5, 4, [3, 0, 1]),
        case("3 heads of width 3, the last goes", 9, 3, 3, 3, 9, [2]),
        case("no head goes", 9, 3, 2, 7, 3, []),
        turned,
        zeros,
    ]


def point_out_heads(inputs, left):
    """Of which heads the first wrong matrix is; "" if that is unclear."""
    H = inputs["num_heads"]
    stay = [h for h in range(H) if h not in inputs["removed"]]
    matrices = zip(("W_q", "W_k", "W_v", "W_o"), left, (1, 1, 1, 0), strict=True)
    said = (say_which_heads(name, W, inputs[name], H, axis, stay) for name, W, axis in matrices)
    return next(filter(None, said), "")


def build_remove(
    stay=lambda num_heads, removed: [h for h in range(num_heads) if h not in removed],
    columns=lambda W, num_heads, stay: W.unflatten(1, (num_heads, -1))[:, stay].flatten(1),
    rows=lambda W_o, num_heads, stay: W_o.unflatten(0, (num_heads, -1))[stay].flatten(0, 1),
    values=None,
    keys=None,
    after=unchanged,
):
    """stay: the numbers of the heads that stay. columns, rows: what is left of a wide matrix and of
    W_o; values, keys: of W_v and W_k, where that is not the same.
    """

    def remove_heads(W_q, W_k, W_v, W_o, num_heads, removed):
        left = stay(num_heads, removed)
        q, k = columns(W_q, num_heads, left), (keys or columns)(W_k, num_heads, left)
        v = (values or columns)(W_v, num_heads, left)
        return after((q, k, v, rows(W_o, num_heads, left)))

    return remove_heads


def _positions(width, num_heads, stay):
    """Where the numbers of the heads that stay are, if heads take turns."""
    return [i for i in range(width) if i % num_heads in stay]


def _one_by_one(W_q, W_k, W_v, W_o, num_heads, removed):
    """Cut out one head after the other, though the numbers of the later ones have moved."""
    d_k, d_v = W_q.shape[1] // num_heads, W_v.shape[1] // num_heads
    for h in removed:
        W_q, W_k, W_v = (
            torch.cat([W[:, : h * d], W[:, (h + 1) * d :]], 1)
            for W, d in ((W_q, d_k), (W_k, d_k), (W_v, d_v))
        )
        W_o = torch.cat([W_o[: h * d_v], W_o[(h + 1) * d_v :]])
    return W_q, W_k, W_v, W_o


def _masked(W_q, W_k, W_v, W_o, num_heads, removed):
    """Zeros in place of the heads."""
    left = []
    for W, axis in ((W_q, 1), (W_k, 1), (W_v, 1), (W_o, 0)):
        parts = list(W.chunk(num_heads, axis))
        for h in removed:
            parts[h] = torch.zeros_like(parts[h])
        left.append(torch.cat(parts, axis))
    return tuple(left)


def _rows_zeroed(W_q, W_k, W_v, W_o, num_heads, removed):
    return W_q.clone(), W_k.clone(), W_v.clone(), _masked(W_q, W_k, W_v, W_o, num_heads, removed)[3]


def _by_d_k(W_q, W_k, W_v, W_o, num_heads, removed):
    """The width of a query taken for that of a value as well."""
    d_k = W_q.shape[1] // num_heads
    stay = [h * d_k + i for h in range(num_heads) if h not in removed for i in range(d_k)]
    of_values = [i for i in stay if i < W_v.shape[1]]
    return W_q[:, stay], W_k[:, stay], W_v[:, of_values], W_o[of_values]


def _one_column_each(W_q, W_k, W_v, W_o, num_heads, removed):
    stay = [[i for i in range(W.shape[1]) if i not in removed] for W in (W_q, W_v)]
    q, v = stay
    return W_q[:, q], W_k[:, q], W_v[:, v], W_o[v]


def _joined(W, num_heads, stay, axis):
    pieces = W.chunk(num_heads, axis)
    return torch.cat([pieces[h] for h in stay], axis)


def _in_turn_head_by_head(W, num_heads, stay, axis):
    """As if heads took turns, the numbers of each head put together."""
    places = range(W.shape[axis])
    return W.index_select(axis, torch.tensor([i for h in stay for i in places[h::num_heads]]))


def _pieces_of_H(W, num_heads, stay, axis):
    pieces = W.split(num_heads, axis)
    return torch.cat([pieces[h] for h in stay], axis)


def _those_of_the_pieces_of_H(W, num_heads, stay, axis):
    """Whatever their number: nothing raises where a head has no piece."""
    pieces = enumerate(W.split(num_heads, axis))
    return torch.cat([W[:0] if axis == 0 else W[:, :0], *(X for h, X in pieces if h in stay)], axis)


def _along(cut):
    """A right answer but for this way to cut."""
    return build_remove(
        columns=lambda W, num_heads, stay: cut(W, num_heads, stay, 1),
        rows=lambda W_o, num_heads, stay: cut(W_o, num_heads, stay, 0),
    )


def _rows_of_all(W_q, W_k, W_v, W_o, num_heads, removed):
    """Rows cut everywhere, as if the matrices were (out, in)."""
    left = []
    for W in (W_q, W_k, W_v, W_o):
        parts = W.chunk(num_heads)
        left.append(torch.cat([parts[h] for h in range(num_heads) if h not in removed]))
    return tuple(left)


def _as_linear_keeps_them(W_q, W_k, W_v, W_o, num_heads, removed):
    stay = [h for h in range(num_heads) if h not in removed]
    rows = (W.tensor_split(num_heads, 0) for W in (W_q, W_k, W_v))
    columns = W_o.tensor_split(num_heads, 1)
    cut = [torch.cat([pieces[h] for h in stay]) for pieces in rows]
    return *cut, torch.cat([columns[h] for h in stay], 1)


def _with_width(width, cut):
    """The same width of a head for all matrices; cut: which positions, with what is there."""

    def remove_heads(W_q, W_k, W_v, W_o, num_heads, removed):
        d = width(W_q, num_heads)
        stay = [h * d + i for h in range(num_heads) if h not in removed for i in range(d)]
        return tuple(
            W.index_select(axis, torch.tensor(cut(stay, W.shape[axis]), dtype=torch.long))
            if cut
            else (W[:, stay] if axis else W[stay])
            for W, axis in ((W_q, 1), (W_k, 1), (W_v, 1), (W_o, 0))
        )

    return remove_heads


def _by_mask_of_d_model(W_q, W_k, W_v, W_o, num_heads, removed):
    mask = torch.ones(num_heads, dtype=torch.bool)
    mask[removed] = False
    mask = mask.repeat_interleave(W_q.shape[0] // num_heads)
    return W_q[:, mask], W_k[:, mask], W_v[:, mask], W_o[mask]


def _those_there_are(stay, size):
    return [i for i in stay if i < size]


def _numbers_moved_back(W_q, W_k, W_v, W_o, num_heads, removed):
    """Head after head, as if each number were smaller by as many heads as have gone."""
    matrices = ((W_q, 1), (W_k, 1), (W_v, 1), (W_o, 0))
    pieces = [list(W.chunk(num_heads, axis)) for W, axis in matrices]
    for i, h in enumerate(removed):
        for parts in pieces:
            del parts[h - i]
    return tuple(torch.cat(parts, axis) for parts, (_, axis) in zip(pieces, matrices, strict=True))


def _numbers_moved_back_below_0(W_q, W_k, W_v, W_o, num_heads, removed):
    """The same by slices, which take a number below 0 from the end."""
    d_k, d_v = W_q.shape[1] // num_heads, W_v.shape[1] // num_heads
    for i, h in enumerate(removed):
        W_q, W_k, W_v = (
            torch.cat([W[:, : (h - i) * d], W[:, (h - i + 1) * d :]], 1)
            for W, d in ((W_q, d_k), (W_k, d_k), (W_v, d_v))
        )
        W_o = torch.cat([W_o[: (h - i) * d_v], W_o[(h - i + 1) * d_v :]])
    return W_q, W_k, W_v, W_o


def _last_into_the_gap(num_heads, removed):
    heads = list(range(num_heads))
    for h in removed:
        place, last = heads.index(h), heads.pop()
        if place < len(heads):
            heads[place] = last
    return heads


def _by_rows_that_are_not_0(W_q, W_k, W_v, W_o, num_heads, removed):
    rows = W_o.unflatten(0, (num_heads, -1)).clone()
    rows[removed] = 0
    stay = rows.flatten(1).any(1).nonzero()[:, 0].tolist()
    removed = [h for h in range(num_heads) if h not in stay]
    return remove_heads(W_q, W_k, W_v, W_o, num_heads, removed)


def _columns_by_width(W, num_heads, stay):
    """What is over after num_heads widths belongs to nobody."""
    d = W.shape[1] // num_heads
    return torch.cat([W[:, h * d : (h + 1) * d] for h in stay], 1)


def _starting_early(W, num_heads, stay):
    d = W.shape[1] // num_heads
    return torch.cat([W[:, h * (d - 1) : h * (d - 1) + d] for h in stay], 1)


def _by_index_of_d_model(W_q, W_k, W_v, W_o, num_heads, removed):
    d = len(W_q) // num_heads
    stay = torch.tensor([h * d + i for h in range(num_heads) if h not in removed for i in range(d)])
    return *(W.index_select(1, stay) for W in (W_q, W_k, W_v)), W_o.index_select(0, stay)


def _reshaped(W, num_heads, stay):
    """Columns dealt out as they lie in memory, with an axis of heads put in front and taken off."""
    pieces = W.reshape(num_heads, len(W), -1)[stay]
    return pieces.reshape(len(W), len(stay) * pieces.shape[2])


D_MODEL_OVER_H = (
    "You take d_model // num_heads for the width of a head.",
    "Often it is, and here it need not be: W_q, W_k and W_v have one matrix per head side by side. "
    "What are their columns divided by?",
)
D_K_FOR_D_V = (
    "You use the width of a query for the values as well.",
    "d_v may differ from d_k: take it from W_v.",
)
ONLY_FIRST = (
    "Only the first head of the list is removed.",
    "Does a `return` stand inside the loop, or do you read removed[0] only? `removed` may name "
    "several heads, or none.",
)
NARROW_ONES = (
    "You return a matrix for each head, with the heads on an axis of their own.",
    "The matrices came in wide, and they go out wide: columns side by side, rows of W_o in one "
    "stack.",
)

WIDE = "Many narrow matrices, one wide one"
SUM_OF_HEADS = "The output is a sum"

# Made by an index or by joining pieces, which raises if there are none: two sets of results.
KEPT = (
    "You keep the heads that were to be removed, and remove the others.",
    "`removed` names the heads that go.",
)
JOINED = {
    "columns": lambda W, num_heads, stay: _joined(W, num_heads, stay, 1),
    "rows": lambda W_o, num_heads, stay: _joined(W_o, num_heads, stay, 0),
}

PIECES_OF_H = (
    "You cut the matrices into pieces of num_heads columns (and W_o into pieces of num_heads "
    "rows).",
    "There are num_heads pieces, each as wide as a head. split wants to know how long a piece is, "
    "chunk how many there are.",
)

REMOVE = {
    "masked": known(
        "You put zeros in place of the heads: your matrices are as large as before.",
        "That silences a head. To remove it means that its numbers are no longer there, so that "
        "nothing is computed with them.",
        wrong=_masked,
    ),
    "rows-of-W_o-zeroed": known(
        "You put zeros into W_o and leave the rest as it was.",
        "That silences a head, and its scores are still computed. To remove it means that its "
        "numbers are no longer there, in any of the four matrices.",
        wrong=_rows_zeroed,
    ),
    "W_o-not-cut": known(
        "Your W_o has all its rows.",
        "Fewer heads stand side by side now. Which rows of W_o have nothing to meet?",
        section=SUM_OF_HEADS,
        rows=lambda W_o, num_heads, stay: W_o.clone(),
    ),
    "W_v-not-cut": known(
        "Your W_v has all its columns.",
        "A head makes values, too. Every matrix that belongs to it has to go.",
        values=lambda W, num_heads, stay: W.clone(),
    ),
    "columns-of-W_o": known(
        "You cut columns out of W_o.",
        "Its columns are the features of the output, and every head writes into all of them. Which "
        "axis of W_o is H · d_v long?",
        section=SUM_OF_HEADS,
        rows=lambda W_o, num_heads, stay: torch.cat([W_o.chunk(num_heads, 1)[h] for h in stay], 1),
    ),
    "columns-of-W_o-by-their-width": known(
        "You cut columns out of W_o, as out of W_q, W_k and W_v.",
        "Its columns are the features of the output, and every head writes into all of them. Which "
        "axis of W_o is H · d_v long?",
        section=SUM_OF_HEADS,
        wrong=build_remove(rows=_columns_by_width),
    ),
    "rows-of-all": known(
        "You cut rows out of W_q, W_k and W_v.",
        "nn.Linear keeps (out, in). These are (d_model, H · d_k): which axis holds the heads?",
        wrong=_rows_of_all,
    ),
    "removed-kept": known(
        *KEPT,
        stay=lambda num_heads, removed: sorted(removed),
    ),
    "removed-kept-in-their-order": known(
        *KEPT,
        stay=lambda num_heads, removed: removed,
    ),
    "removed-kept-and-joined": known(
        *KEPT,
        stay=lambda num_heads, removed: sorted(removed),
        **JOINED,
    ),
    "removed-kept-in-their-order-and-joined": known(
        *KEPT,
        stay=lambda num_heads, removed: removed,
        **JOINED,
    ),
    "first-removed-or-none": known(
        *ONLY_FIRST,
        wrong=build_remove(stay=lambda H, removed: [h for h in range(H) if h != removed[0]]),
    ),
    **{
        f"numbers-moved-back{more}": known(
            "You cut out one head after the other and make each number smaller by the count of "
            "those that have gone. That is right only where `removed` goes upwards.",
            "Of 3, 0 and 1, head 0 keeps its number after head 3 is gone. Decide which heads stay "
            "before you cut.",
            wrong=wrong,
        )
        for more, wrong in (("", _numbers_moved_back), ("-below-0", _numbers_moved_back_below_0))
    },
    "last-into-the-gap": known(
        "You move the last head to the place of one that goes.",
        "The heads that stay keep their order. Whoever uses your matrices counts on it.",
        stay=_last_into_the_gap,
    ),
    "in-the-order-of-a-set": known(
        "Where there are many heads, those that stay are not in their old order.",
        "A set has no order of its own: up to 8 heads it goes upwards by chance, and {1, 8} gives "
        "8 first.",
        wrong=build_remove(stay=lambda H, removed: list(set(range(H)) - set(removed))),
    ),
    "zero-heads-removed-too": known(
        "You remove each head whose rows of W_o are 0, in `removed` or not.",
        "`removed` alone says which heads go. Another one may have only zeros in W_o, and stays.",
        wrong=_by_rows_that_are_not_0,
    ),
    "first-removed-only": known(
        *ONLY_FIRST,
        stay=lambda num_heads, removed: [h for h in range(num_heads) if h not in removed[:1]],
    ),
    "one-by-one": known(
        "You cut out one head after the other, and the numbers of the later ones have changed by "
        "then.",
        "After head 1 is gone, the old head 3 stands in place 2. Decide which heads stay before "
        "you cut.",
        wrong=_one_by_one,
    ),
    "last-ones-removed": known(
        "You remove as many heads as asked for, always the last ones.",
        "How many go is not enough: `removed` says which.",
        stay=lambda num_heads, removed: list(range(num_heads - len(removed))),
    ),
    "counted-from-1": known(
        "You count the heads from 1.",
        "Head 0 owns the first columns.",
        stay=lambda num_heads, removed: [h for h in range(num_heads) if h + 1 not in removed],
    ),
    "heads-take-turns": known(
        "You take columns h, h + H, h + 2H and so on for the columns of head h.",
        "Narrow matrices stand side by side in the wide one: all columns of head 0 come first.",
        columns=lambda W, num_heads, stay: W[:, _positions(W.shape[1], num_heads, stay)],
    ),
    "rows-take-turns": known(
        "You take rows h, h + H, h + 2H and so on of W_o for the rows of head h.",
        "W_o is a stack of matrices, d_v rows for each head: all rows of head 0 come first.",
        section=SUM_OF_HEADS,
        rows=lambda W_o, num_heads, stay: W_o[_positions(len(W_o), num_heads, stay)],
    ),
    "all-take-turns": known(
        "You take columns h, h + H, h + 2H and so on for the columns of head h, and the rows of "
        "W_o in the same way.",
        "Narrow matrices stand side by side in the wide one: all columns of head 0 come first. "
        "So do its rows of W_o.",
        wrong=_along(_in_turn_head_by_head),
    ),
    "pieces-of-H": known(*PIECES_OF_H, wrong=_along(_pieces_of_H)),
    "pieces-of-H-as-many-as-there-are": known(
        *PIECES_OF_H, wrong=_along(_those_of_the_pieces_of_H)
    ),
    "one-column-each": known(
        "You cut a single column for each head.",
        "A head owns d_k columns of W_q and W_k, and d_v of W_v. How do you get these widths from "
        "the shapes?",
        wrong=_one_column_each,
    ),
    "d_k-for-d_v": known(*D_K_FOR_D_V, wrong=_by_d_k),
    "d_k-for-d_v-past-the-end": known(
        *D_K_FOR_D_V, wrong=_with_width(lambda W_q, H: W_q.shape[1] // H, None)
    ),
    "as-nn-Linear-keeps-them": known(
        "You cut the rows of W_q, W_k and W_v, and the columns of W_o.",
        "nn.Linear keeps its weights that way, (out, in). Here they are given ready for X @ W: "
        "(d_model, H · d_k). On which side are the heads?",
        wrong=_as_linear_keeps_them,
    ),
    "d_model-over-H": known(
        *D_MODEL_OVER_H, wrong=_with_width(lambda W_q, H: W_q.shape[0] // H, _those_there_are)
    ),
    "d_model-over-H-past-the-end": known(
        *D_MODEL_OVER_H, wrong=_with_width(lambda W_q, H: W_q.shape[0] // H, None)
    ),
    "d_model-over-H-by-mask": known(*D_MODEL_OVER_H, wrong=_by_mask_of_d_model),
    "d_model-over-H-by-index": known(*D_MODEL_OVER_H, wrong=_by_index_of_d_model),
    "reshaped": known(
        "You reshape the wide matrices so that heads come first, as (H, d_model, d), without "
        "swapping axes.",
        "reshape deals numbers out as they lie in memory, row by row, and a row holds columns of "
        "all heads. Which axis has to be split in two, and which has to move?",
        wrong=build_remove(columns=_reshaped),
    ),
    **{
        f"all-between-removed{more}": known(
            "You remove every head from the first of the removed ones to the last.",
            "`removed` names single heads. Those between them stay.",
            stay=lambda num_heads, removed: [
                h for h in range(num_heads) if not removed or not min(removed) <= h <= max(removed)
            ],
            **parts,
        )
        for more, parts in (("", {}), ("-and-joined", JOINED))
    },
    "first-ones-removed": known(
        "You remove as many heads as asked for, always the first ones.",
        "How many go is not enough: `removed` says which.",
        stay=lambda num_heads, removed: list(range(len(removed), num_heads)),
    ),
    "heads-take-turns-one-by-one": known(
        "You take columns h, h + H, h + 2H and so on for the columns of head h.",
        "Narrow matrices stand side by side in the wide one: all columns of head 0 come first.",
        wrong=build_remove(columns=lambda W, H, stay: _in_turn_head_by_head(W, H, stay, 1)),
    ),
    "d_k-for-the-columns-of-W_v": known(
        *D_K_FOR_D_V,
        wrong=lambda *given: (
            *remove_heads(*given)[:2],
            _by_d_k(*given)[2],
            remove_heads(*given)[3],
        ),
    ),
    "heads-start-early": known(
        "The columns of head h start at h · (d − 1), where d is the width of a head.",
        "Each head before it owns d columns, not one less.",
        wrong=build_remove(columns=_starting_early),
    ),
    "rest-reversed": known(
        "The heads that stay are in reverse order.",
        "Each has its place among the others. Whoever uses your matrices counts on that order.",
        stay=lambda num_heads, removed: [h for h in range(num_heads) if h not in removed][::-1],
    ),
    "first-rows-of-W_o": known(
        "Your W_o has the first rows of the old one, whatever heads go.",
        "Their number is right. Which rows of W_o belonged to the heads that stay?",
        section=SUM_OF_HEADS,
        rows=lambda W_o, num_heads, stay: W_o[: len(stay) * (len(W_o) // num_heads)],
    ),
    "W_k-not-cut": known(
        "Your W_k has all its columns.",
        "A query meets keys of its own head: both have to be narrower by the same heads.",
        keys=lambda W, num_heads, stay: W.clone(),
    ),
    "W_q-and-W_k-not-cut": known(
        "Your W_q and W_k have all their columns.",
        "Then the scores of the heads that go are still computed. Every matrix that belongs to a "
        "head has to go.",
        wrong=lambda *given: (given[0].clone(), given[1].clone(), *remove_heads(*given)[2:]),
    ),
    "queries-and-keys-exchanged": known(
        "You return W_k in the place of W_q, and W_q in that of W_k.",
        "The statement says in which order: W_q, W_k, W_v, W_o.",
        after=lambda matrices: (matrices[1], matrices[0], *matrices[2:]),
    ),
    "rescaled": known(
        "What is left of W_o is multiplied by H / (number of heads that stay), as in dropout.",
        "The output is a sum over heads. Without a head, its term is missing, and the other terms "
        "stay as they are.",
        section=SUM_OF_HEADS,
        rows=lambda W_o, num_heads, stay: (
            W_o.unflatten(0, (num_heads, -1))[stay].flatten(0, 1) * num_heads / max(len(stay), 1)
        ),
    ),
    "heads-on-an-axis-in-all": known(
        *NARROW_ONES,
        wrong=build_remove(
            columns=lambda W, H, stay: W.unflatten(1, (H, -1))[:, stay].transpose(0, 1),
            rows=lambda W_o, H, stay: W_o.unflatten(0, (H, -1))[stay],
        ),
    ),
    "heads-on-an-axis": known(
        *NARROW_ONES,
        columns=lambda W, num_heads, stay: W.unflatten(1, (num_heads, -1))[:, stay].transpose(0, 1),
    ),
}

TASK = Task(
    "03-remove_heads",
    remove_heads,
    remove_cases,
    returns=("W_q", "W_k", "W_v", "W_o"),
    mistakes=read_again(WIDE, REMOVE),
    build=build_remove,
    point_out=point_out_heads,
    number=7,
    since=2,
    alone=(
        "all-between-removed",
        "first-ones-removed",
        "all-between-removed-and-joined",
        "heads-on-an-axis",
        "W_k-not-cut",
        "last-into-the-gap",
        "rest-reversed",
        "first-rows-of-W_o",
        "queries-and-keys-exchanged",
        "removed-kept-in-their-order",
        "removed-kept-and-joined",
        "removed-kept-in-their-order-and-joined",
    ),
)
