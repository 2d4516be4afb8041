"""Task 3.2, loop_of_heads: one head after the other, joined by W_o."""

import torch

from mha_classroom.checks.task import Case, Task, and_in_float32, known, read_again
from mha_classroom.tasks.why_many_heads.one_head import (
    CLAMPED,
    LARGEST_OF_ALL,
    MEAN_SUBTRACTED,
    MODULES,
    ONE,
    OVERFLOW_HIDDEN,
    ROUNDED,
    SHARED,
    SQUEEZED,
    build_head,
    clamped,
    far_below_0,
    head_stages,
    less_the_largest_of_all,
    less_the_mean,
    one_head,
    overflow_hidden,
    rounded_root,
)


def loop_of_heads(X, W_q, W_k, W_v, W_o):
    heads = [one_head(X, *matrices) for matrices in zip(W_q, W_k, W_v, strict=True)]
    return torch.cat(heads, dim=-1) @ W_o


@and_in_float32
def loop_cases(draw):
    tokens = torch.tensor([[[2.0, 0.0], [0.0, 4.0]]], dtype=torch.float64)
    # The queries are 0. No two keys are alike, so that they show which heads are computed.
    W_k = torch.tensor([[[1.0], [1.0]], [[1.0], [2.0]]], dtype=torch.float64)
    by_hand = {"X": tokens, "W_q": 0 * W_k, "W_k": W_k}
    by_hand["W_v"] = torch.tensor([[[1.0], [0.0]], [[0.0], [1.0]]], dtype=torch.float64)
    by_hand["W_o"] = torch.tensor([[1.0, 2.0], [3.0, 4.0]], dtype=torch.float64)
    small = {"X": tokens / 2}
    small["W_q"] = torch.tensor([[[1, 1, 1], [1, 1, 1]], [[1, 0, 0], [0, 1, 0]]]).double()
    small["W_k"] = torch.tensor([[[1, 1, 1], [0, 0, 0]], [[0, 1, 0], [0, 0, 1]]]).double()
    small["W_v"] = torch.tensor([[[1, 0], [0, 1]], [[2, 0], [0, 3]]]).double()
    small["W_o"] = torch.tensor([[1, 0], [0, 1], [10, 0], [0, 10]]).double()
    transposed = _loop_inputs(draw, 3, 5, 7, 2, 3, 2)
    transposed["X"] = draw.normal(3, 7, 5).transpose(1, 2)
    transposed["W_o"] = draw.normal(7, 4).T
    large = _loop_inputs(draw, 2, 5, 7, 3, 2, 5)
    large["W_q"] = 3000 * large["W_q"]
    low = far_below_0()
    for name in ("W_q", "W_k", "W_v"):  # alike in both heads: one largest score does for all
        low[name] = torch.stack([low[name], low[name]])
    low["W_o"] = torch.tensor([[1.0, 2.0], [3.0, 4.0]]).double()
    return [
        Case("2 words, 2 heads, all scores are 0, so each head averages", by_hand),
        Case("2 words, 2 heads, d_k = 3, d_v = 2", small),
        Case("3 sequences, 5 words, 2 heads, d_v = 11", _loop_inputs(draw, 3, 5, 7, 2, 3, 11)),
        Case("5 heads, d_k = 11, d_v = 3", _loop_inputs(draw, 2, 7, 13, 5, 11, 3)),
        Case("all sizes are 3", _loop_inputs(draw, 3, 3, 3, 3, 3, 3)),
        Case("one head", _loop_inputs(draw, 2, 3, 5, 1, 2, 7)),
        Case("2 sequences of 1 word", _loop_inputs(draw, 2, 1, 5, 2, 2, 3)),
        Case("X and W_o are transposed tensors", transposed),
        Case("scores in the thousands", large),
        Case("scores of −6000, −3001 and −3000, and −3500 for −6000", low),
    ]


def _loop_inputs(draw, B, L, d_model, H, d_k, d_v):
    shapes = {"W_q": (d_model, d_k), "W_k": (d_model, d_k), "W_v": (d_model, d_v)}
    inputs = {"X": draw.normal(B, L, d_model)}
    for name, shape in shapes.items():
        inputs[name] = draw.normal(H, *shape, scale=d_model**-0.5)
    inputs["W_o"] = draw.normal(H * d_v, d_model, scale=(H * d_v) ** -0.5)
    return inputs


def loop_stages(inputs):
    """Each stage for all heads."""
    X, *matrices, W_o = inputs.values()
    per_head = zip(*matrices, strict=True)
    runs = [head_stages(dict(zip("Xqkv", (X, *own), strict=True))) for own in per_head]
    projections = [run.pop("the projections") for run in runs]
    stages = {"the projections": _of_every_head(projections)} | _of_every_head(runs)
    joined = torch.cat([run["the weighted sums of the values"] for run in runs], -1)
    return stages | {"the heads side by side, times W_o": joined @ W_o}


def _of_every_head(runs):
    return {f"{name} of every head": torch.stack([r[name] for r in runs]) for name in runs[0]}


def _join(heads, W_o):
    return heads.transpose(1, 2).flatten(2) @ W_o


def build_loop(pick=lambda W: W, join=_join, after=lambda output, X: output, **parts):
    """pick: from (H, d_model, d) the matrices that are used. join: heads (B, H, L, d_v) and W_o to
    the output. The other parts are those of a head.
    """
    head = build_head(**parts)

    def loop_of_heads(X, W_q, W_k, W_v, W_o):
        return after(join(head(X[:, None], pick(W_q), pick(W_k), pick(W_v)), W_o), X)

    return loop_of_heads


LOOP_OF_HEADS = "The loop of heads"
SUM_OF_HEADS = "The output is a sum"
NARROW = "Many narrow matrices, one wide one"


def _each(heads):
    return list(heads.unbind(1))  # H times (B, L, d_v)


def _cut_on_axis_1(X, W_q, W_k, W_v, W_o):
    heads = [build_head()(X, W_q[:, h], W_k[:, h], W_v[:, h]) for h in range(len(W_q))]
    return torch.cat(heads, -1) @ W_o


def _loop_over_features(X, W_q, W_k, W_v, W_o):
    heads = [build_head()(X, W_q[h], W_k[h], W_v[h]) for h in range(W_q.shape[1])]
    return torch.cat(heads, -1) @ W_o


def _loop_over_sequences(X, W_q, W_k, W_v, W_o):
    heads = [build_head()(X, W_q[h], W_k[h], W_v[h]) for h in range(len(X))]
    return torch.cat(heads, -1) @ W_o


def _loop_over_columns(of):
    """of: where among W_q, W_k and W_v the matrix is whose columns are counted."""

    def loop_of_heads(X, *matrices):
        *own, W_o = matrices
        heads = [build_head()(X, *(W[h] for W in own)) for h in range(own[of].shape[2])]
        return torch.cat(heads, -1) @ W_o

    return loop_of_heads


def _slices_of_words(X, W_q, W_k, W_v, W_o):
    heads, start = [], 0
    for h, part in enumerate(X.tensor_split(len(W_q), -1)):
        rows = slice(start, start + part.shape[-1])
        heads.append(build_head()(part, W_q[h, rows], W_k[h, rows], W_v[h, rows]))
        start = rows.stop
    return torch.cat(heads, -1) @ W_o


def _mixed(role, shift):
    """Each head with the queries, keys or values of the head before it or after it."""

    def loop_of_heads(X, W_q, W_k, W_v, W_o):
        matrices = [W_q, W_k, W_v]
        matrices[role] = matrices[role].roll(shift, 0)
        return build_loop()(X, *matrices, W_o)

    return loop_of_heads


def _of_head_0(role):
    """Each head with the queries, keys or values of head 0."""

    def loop_of_heads(X, W_q, W_k, W_v, W_o):
        matrices = [W_q, W_k, W_v]
        matrices[role] = matrices[role][:1].expand_as(matrices[role])
        return build_loop()(X, *matrices, W_o)

    return loop_of_heads


def _heads(X, W_q, W_k, W_v):
    return [one_head(X, *own) for own in zip(W_q, W_k, W_v, strict=True)]


def _places_of_d_k(X, W_q, W_k, W_v, W_o):
    H, d_k = len(W_q), W_q.shape[-1]
    joined = X.new_zeros(*X.shape[:2], H * d_k)
    for h, head in enumerate(_heads(X, W_q, W_k, W_v)):
        joined[:, :, h * d_k : (h + 1) * d_k] = head
    return joined @ W_o


def _places_from_d_k(X, W_q, W_k, W_v, W_o):
    """As wide as the values, from a place on that the queries' width says."""
    H, d_k, d_v = len(W_q), W_q.shape[-1], W_v.shape[-1]
    joined = X.new_zeros(*X.shape[:2], H * d_v)
    for h, head in enumerate(_heads(X, W_q, W_k, W_v)):
        joined[:, :, h * d_k : h * d_k + d_v] = head
    return joined @ W_o


def _as_many_as_fit(X, W_q, W_k, W_v, W_o):
    H = X.shape[-1] // W_q.shape[-1]
    heads = [one_head(X, W_q[h], W_k[h], W_v[h]) for h in range(H)]
    return torch.cat(heads, -1) @ W_o


def _sequences_meet_heads(X, W_q, W_k, W_v, W_o):
    q, k, v = X @ W_q, X @ W_k, X @ W_v
    heads = (q @ k.mT / q.shape[-1] ** 0.5).softmax(-1) @ v
    return (torch.cat(list(heads), -1) @ W_o)[None]


def _rows_of_d_k(X, W_q, W_k, W_v, W_o):
    d_k = W_q.shape[-1]
    return sum(
        head @ W_o[h * d_k : (h + 1) * d_k] for h, head in enumerate(_heads(X, W_q, W_k, W_v))
    )


def _joined_to_d_model(X, W_q, W_k, W_v, W_o):
    return torch.stack(_heads(X, W_q, W_k, W_v), 2).reshape(X.shape) @ W_o


def _without_the_last(X, W_q, W_k, W_v, W_o):
    return torch.cat(_heads(X, W_q[:-1], W_k[:-1], W_v[:-1]), -1) @ W_o


def _zero_at(h, heads):
    return heads.index_fill(1, torch.tensor(h % heads.shape[1]), 0.0)


def _softmax_over_all_heads(scores, W_q):
    flat = scores.transpose(1, 2).flatten(2).softmax(-1)
    return flat.unflatten(2, scores.shape[1::2]).transpose(1, 2)


D_K_FOR_D_V = (
    "You take d_k for the width of what a head brings.",
    "A head brings averages of its values, and they are d_v wide. That may be another number than "
    "d_k: which matrix has it as a size?",
)
D_MODEL_OVER_H = (
    "You divide the scores by the square root of d_model / H.",
    "Often a head is that wide, and here it need not be. The scale follows from the vectors that "
    "meet in a score: which matrix says how many numbers they have?",
)
EVERY_HEAD = "Every head has something to add."

HEAD_0_FOR_ALL = {
    f"{name}-of-head-0-for-all": known(
        f"All your heads use the {name} of head 0.",
        f"W_q[h], W_k[h] and W_v[h] belong together, and {matrix} is always that of head 0 in "
        "your answer.",
        wrong=_of_head_0(role),
    )
    for role, (name, matrix) in enumerate(
        {"queries": "W_q", "keys": "W_k", "values": "W_v"}.items()
    )
}

MIXED = HEAD_0_FOR_ALL | {
    f"{name}-of-the-head-{which}": known(
        f"Each of your heads takes the {name} of the head {which} it.",
        f"W_q[h], W_k[h] and W_v[h] belong together, and here {matrix} comes from another head. "
        "Is there an h - 1 or h + 1, or a list that is one longer than the others?",
        wrong=_mixed(role, shift),
    )
    for role, (name, matrix) in enumerate(
        {"queries": "W_q", "keys": "W_k", "values": "W_v"}.items()
    )
    for which, shift in (("before", 1), ("after", -1))
}

JOINING = {
    "heads-end-to-end": known(
        "What meets W_o is as wide as one head: your heads are laid end to end, along the batch "
        "(as torch.cat does when it is told no axis) or along the words, or they have an axis of "
        "their own.",
        "W_o has H · d_v rows, so it waits for all heads side by side. Sequences and words stay "
        "as many as they are: which axis has to grow?",
        join=lambda heads, W_o: torch.cat(_each(heads)) @ W_o,
    ),
    "heads-along-the-words": known(
        join=lambda heads, W_o: torch.cat(_each(heads), 1) @ W_o,
        twin="heads-end-to-end",
    ),
    "heads-summed": known(
        "What meets W_o is as wide as one head: each head by itself, one head alone (does a "
        "`return` stand inside the loop?), or the sum or the mean of all.",
        "W_o has H · d_v rows, so it waits for all heads side by side. Added up, they would write "
        "on top of each other: dogs and cats in one mixture again.",
        section=SUM_OF_HEADS,
        join=lambda heads, W_o: heads.sum(1) @ W_o,
    ),
    "heads-summed-through-first-rows": known(
        "All heads meet the first d_v rows of W_o, one by one or added up.",
        "Those are the rows of head 0. Added up, heads write on top of each other. The other rows "
        "are there for the other heads.",
        section=SUM_OF_HEADS,
        join=lambda heads, W_o: heads.sum(1) @ W_o[: heads.shape[-1]],
    ),
    "heads-summed-without-W_o": known(
        "You return the sum of the heads.",
        "Added up, heads write on top of each other. They stand side by side, and W_o, which you "
        "do not use, decides what becomes of each.",
        join=lambda heads, W_o: heads.sum(1),
    ),
    "heads-stacked": known(
        "Your heads stand on an axis of their own, and W_o meets one head at a time.",
        "W_o has H · d_v rows: the heads have to share the last axis.",
        join=lambda heads, W_o: torch.stack(_each(heads)) @ W_o,
    ),
    "no-output-projection": known(
        "You return the heads side by side: W_o is not used.",
        "It mixes what the heads bring, and brings it back to the width of a word.",
        section=LOOP_OF_HEADS,
        join=lambda heads, W_o: heads.transpose(1, 2).flatten(2),
    ),
    "W_o-transposed": known(
        "You multiply by the transpose of W_o.",
        "W_o is (H · d_v, d_model): its rows belong to the heads, and nothing has to be turned.",
        section=LOOP_OF_HEADS,
        join=lambda heads, W_o: heads.transpose(1, 2).flatten(2) @ W_o.T,
    ),
    "merge-interleaved": known(
        "Your heads take turns: feature 0 of every head, then feature 1. Or head h meets the rows "
        "h, h + H, h + 2H of W_o and so on, which comes to the same.",
        "The first rows of W_o belong to head 0 alone. All its features come first.",
        join=lambda heads, W_o: heads.permute(0, 2, 3, 1).flatten(2) @ W_o,
    ),
    "merge-without-transpose": known(
        "You reshape (B, H, L, d_v), or (B, H · L, d_v), to (B, L, H · d_v): a row holds several "
        "words of one head.",
        "reshape deals numbers out as they lie in memory. A row needs one word of every head.",
        join=lambda heads, W_o: heads.reshape(*heads[:, 0].shape[:2], -1) @ W_o,
    ),
    "stacked-and-reshaped": known(
        "You reshape heads that stand one after the other, as (H, B, L, d_v): sequences, words and "
        "heads are mixed up.",
        "reshape deals numbers out as they lie in memory, all of head 0 before head 1. A row needs "
        "one word of every head.",
        join=lambda heads, W_o: torch.stack(_each(heads)).reshape(*heads[:, 0].shape[:2], -1) @ W_o,
    ),
    "heads-reversed": known(
        "Your heads stand in reverse order, the last one first.",
        "Each head has to meet its own rows of W_o, and those of head 0 come first.",
        section=SUM_OF_HEADS,
        join=lambda heads, W_o: _join(heads.flip(1), W_o),
    ),
    "first-head-only": known(
        "Only head 0 arrives in your output.",
        "Does a `return` stand inside the loop? It ends it in the first round. Every head has "
        "something to add.",
        section=SUM_OF_HEADS,
        join=lambda heads, W_o: heads[:, 0] @ W_o[: heads.shape[3]],
    ),
    "last-head-only": known(
        "Only the last head arrives in your output.",
        "Is something overwritten in each round of the loop? Every head has something to add.",
        section=SUM_OF_HEADS,
        join=lambda heads, W_o: heads[:, -1] @ W_o[(heads.shape[1] - 1) * heads.shape[3] :],
    ),
    "heads-averaged": known(
        "Your output is divided by the number of heads.",
        "The heads' parts of the output are added, not averaged.",
        section=SUM_OF_HEADS,
        join=lambda heads, W_o: _join(heads, W_o) / heads.shape[1],
    ),
    "matrices-of-head-0": known(
        "All your heads use the matrices of head 0.",
        "Then they look at the same words and bring the same numbers. What differs from head to "
        "head?",
        section=LOOP_OF_HEADS,
        pick=lambda W: W[:1].expand(len(W), -1, -1),
    ),
    "matrices-of-the-last-head": known(
        "In place of every head stands what the last head brings.",
        "Each head has matrices of its own. Does a second loop use what the first one left behind, "
        "q, k and v of its last round? Or does your list hold one tensor several times, and each "
        "round writes over it?",
        section=LOOP_OF_HEADS,
        wrong=build_loop(pick=lambda W: W[-1:].expand(len(W), -1, -1)),
    ),
    "matrices-cut-on-the-wrong-axis": known(
        "You take the matrices of head h from the second axis.",
        "W_q is (H, d_model, d_k). Which axis counts the heads?",
        section=LOOP_OF_HEADS,
        wrong=_cut_on_axis_1,
    ),
    "loop-over-the-wrong-axis": known(
        "Your loop does not run over the heads: it has as many rounds as a word has features.",
        "W_q is (H, d_model, d_k). Which axis counts the heads, and what does len(W_q) say?",
        section=LOOP_OF_HEADS,
        wrong=_loop_over_features,
    ),
    "loop-over-sequences": known(
        "Your loop does not run over the heads: it has a round for each sequence, len(X).",
        "W_q is (H, d_model, d_k). Which axis counts the heads, and what does len(W_q) say?",
        section=LOOP_OF_HEADS,
        wrong=_loop_over_sequences,
    ),
    "loop-over-d_k": known(
        "Your loop does not run over the heads: it has d_k rounds, so with 2 heads and d_k = 1 it "
        "runs one head of two.",
        "W_q is (H, d_model, d_k). Which axis counts the heads, and what does len(W_q) say?",
        section=LOOP_OF_HEADS,
        wrong=_loop_over_columns(0),
    ),
    "loop-over-d_v": known(
        "Your loop does not run over the heads: it has d_v rounds, so with 2 heads and d_v = 1 it "
        "runs one head of two.",
        "W_v is (H, d_model, d_v). Which axis counts the heads, and what does len(W_v) say?",
        section=LOOP_OF_HEADS,
        wrong=_loop_over_columns(2),
    ),
    "input-split": known(
        "You cut the words into H pieces and give each head one piece.",
        "Every head sees the whole word. What is narrow is what it makes of it.",
        section=NARROW,
        wrong=_slices_of_words,
    ),
    "softmax-over-heads": known(
        "Your softmax runs over the heads.",
        "Heads do not compete. In each head, each word shares out one unit of attention.",
        section=LOOP_OF_HEADS,
        softmax=lambda scores, W_q: scores.softmax(1),
    ),
    "weights-averaged": known(
        "All your heads use the same weights, the average of those of all heads.",
        "Then all heads look at the same words. Each has weights of its own, and its values meet "
        "only these.",
        section=LOOP_OF_HEADS,
        wrong=build_loop(
            softmax=lambda scores, W_q: scores.softmax(-1).mean(1, keepdim=True).expand_as(scores)
        ),
    ),
    "scaled-by-all-heads": known(
        "You divide the scores by the square root of H · d_k, the width of all heads together.",
        "The scale follows from the vectors that meet in a score, and these are one head's.",
        section=NARROW,
        scale=lambda scores, X, W_q, W_v: scores / (len(W_q) * W_q.shape[-1]) ** 0.5,
    ),
    "softmax-overflows": known(
        "Your exponentials overflow when scores are in the thousands, and inf / inf is NaN.",
        "Only differences between scores matter to a softmax. What can be taken away from a whole "
        "row before the exponential?",
        section=ONE,
        softmax=lambda scores, W_q: scores.exp() / scores.exp().sum(-1, keepdim=True),
    ),
    "largest-of-the-whole-table": known(
        *LARGEST_OF_ALL, section=ONE, softmax=less_the_largest_of_all
    ),
    "mean-subtracted": known(
        *MEAN_SUBTRACTED, section=ONE, wrong=build_loop(softmax=less_the_mean)
    ),
    "overflow-hidden": known(
        *OVERFLOW_HIDDEN, section=ONE, wrong=build_loop(softmax=overflow_hidden)
    ),
    "scores-clamped": known(*CLAMPED, section=ONE, wrong=build_loop(softmax=clamped)),
    "root-rounded-down": known(*ROUNDED, section=ONE, wrong=build_loop(scale=rounded_root)),
    "scaled-by-d_model-over-H": known(
        *D_MODEL_OVER_H,
        section=ONE,
        wrong=build_loop(
            scale=lambda scores, X, W_q, W_v: scores / (X.shape[-1] / len(W_q)) ** 0.5
        ),
    ),
    "scaled-by-whole-d_model-over-H": known(
        *D_MODEL_OVER_H,
        section=ONE,
        wrong=build_loop(
            scale=lambda scores, X, W_q, W_v: scores / (X.shape[-1] // len(W_q)) ** 0.5
        ),
    ),
    "softmax-over-heads-and-words": known(
        "Your softmax runs over heads and words together.",
        "Heads do not compete. In each head, each word shares out one unit of attention.",
        section=LOOP_OF_HEADS,
        wrong=build_loop(softmax=_softmax_over_all_heads),
    ),
    "squeezed": known(*SQUEEZED, wrong=lambda *given: loop_of_heads(*given).squeeze()),
    "squeezed-in-front": known(*SQUEEZED, wrong=lambda *given: loop_of_heads(*given).squeeze(0)),
    "first-sequence-only": known(
        "Your output holds the first sequence alone.",
        "With a batch of one nobody notices. Every sequence of the batch is to be there.",
        section=LOOP_OF_HEADS,
        wrong=lambda X, *matrices: loop_of_heads(X[:1], *matrices),
    ),
    "first-sequence-for-all": known(
        "Every sequence gets the output of the first.",
        "With a batch of one nobody notices. Is there an X[0] where the whole X is meant?",
        section=LOOP_OF_HEADS,
        wrong=lambda X, *matrices: loop_of_heads(X[:1].expand_as(X), *matrices),
    ),
    "last-head-left-out": known(
        "The last head is missing from your output.",
        f"range(H - 1) ends before H - 1: how many rounds is that? {EVERY_HEAD}",
        section=SUM_OF_HEADS,
        wrong=build_loop(join=lambda heads, W_o: _join(_zero_at(-1, heads), W_o)),
    ),
    "first-head-left-out": known(
        "Head 0 is missing from your output.",
        f"Does a loop or a slice begin at 1? The heads are numbered from 0. {EVERY_HEAD}",
        section=SUM_OF_HEADS,
        wrong=build_loop(join=lambda heads, W_o: _join(_zero_at(0, heads), W_o)),
    ),
    "one-head-left-out-before-joining": known(
        "A head is missing: what meets W_o is too narrow by d_v.",
        f"range(H - 1) ends before H - 1, and range(1, H) begins behind head 0. {EVERY_HEAD}",
        section=SUM_OF_HEADS,
        wrong=_without_the_last,
    ),
    "places-of-d_k": known(*D_K_FOR_D_V, wrong=_places_of_d_k),
    "places-from-d_k": known(
        "Your head h begins at column h · d_k of what meets W_o.",
        "A head brings averages of its values, and they are d_v wide. That may be another number "
        "than d_k: how many columns do the heads before it take?",
        wrong=_places_from_d_k,
    ),
    "as-many-as-fit": known(
        "You take d_model // d_k for the number of heads.",
        "Often it is, and here it need not be. W_q is (H, d_model, d_k): what does len(W_q) say?",
        section=LOOP_OF_HEADS,
        wrong=_as_many_as_fit,
    ),
    "sequences-meet-heads": known(
        "You multiply X (B, L, d_model) by matrices (H, d_model, d_k) as they are: the sequences "
        "meet the heads.",
        "Axes are lined up from the right, so that H stands below B, and with B = 1 nothing "
        "complains. Where does X need an axis of size 1?",
        section=LOOP_OF_HEADS,
        wrong=_sequences_meet_heads,
    ),
    "rows-of-d_k": known(*D_K_FOR_D_V, wrong=_rows_of_d_k),
    "joined-to-d_model": known(
        "You take d_model for the width of all heads side by side.",
        "Often the two are equal, and here they need not be: what W_o meets is H · d_v wide.",
        wrong=_joined_to_d_model,
    ),
    "wide-matrices-by-reshape": known(
        "You make one wide matrix of (H, d_model, d) by a reshape to (d_model, H · d), or to "
        "(d_model, H, d).",
        "reshape deals numbers out as they lie in memory, all rows of head 0 before head 1. In the "
        "wide matrix the columns of the heads stand side by side: which axis has to move first?",
        section=NARROW,
        wrong=build_loop(pick=lambda W: W.reshape(W.shape[1], len(W), -1).transpose(0, 1)),
    ),
    "residual-added": known(
        "You add the words to the output.",
        "A transformer layer does so afterwards. Multi-head attention itself does not.",
        section=LOOP_OF_HEADS,
        after=lambda output, X: output + X,
    ),
}
JOINING = read_again("Joining them, wrongly", JOINING)

TASK = Task(
    "03-loop_of_heads",
    loop_of_heads,
    loop_cases,
    returns=("the output",),
    mistakes=JOINING + read_again(LOOP_OF_HEADS, MIXED) + SHARED,
    build=build_loop,
    alone=(
        "first-head-only",
        "heads-summed-through-first-rows",
        "heads-summed-without-W_o",
        "heads-stacked",
        "stacked-and-reshaped",
        "heads-averaged",
        "residual-added",
        "softmax-overflows",
        "largest-of-the-whole-table",
        "softmax-over-heads",
        "scaled-by-words",
        "scaled-by-d_v",
        "multiplied-by-root",
        "softmax-over-batch",
        "sigmoid",
        "plain-normalisation",
    ),
    stages=loop_stages,
    uses=("03-one_head",),
    forbidden=MODULES,
    number=2,
    since=2,
)
