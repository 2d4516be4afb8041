"""Task 10.3, cross_step: cross-attention of one new token to keys and values that are kept."""

import torch

from mha_classroom.checks.forms import FILLS, any_of, like
from mha_classroom.checks.task import Case, Task, and_in_float32, known, read_again, unchanged
from mha_classroom.tasks.cross_attention.bahdanau_step import (
    DIVIDED_AGAIN,
    masked_and_divided_safely,
)
from mha_classroom.tasks.scaled_dot_product.scaled_dot_product_attention import FINISHED

QUERIES_FROM_HERE = "Queries from here, keys from there"
MASKS = "Who hides what"


def cross_step(y, keys, values, memory_lens, W_q, W_o):
    B, H, S, d_k = keys.shape
    queries = (y @ W_q).reshape(B, H, 1, d_k)
    scores = queries @ keys.mT / d_k**0.5  # (B, H, 1, S)
    hidden = torch.arange(S) >= memory_lens[:, None, None, None]
    weights = scores.masked_fill(hidden, -torch.inf).softmax(-1).nan_to_num()
    return (weights @ values).reshape(B, -1) @ W_o


@and_in_float32
def cross_cases(draw):
    def case(name, B, H, S, d_k, d_v, d_model, d_out, lens, scale=1.0):
        inputs = {
            "y": draw.normal(B, d_model, scale=scale),
            "keys": draw.normal(B, H, S, d_k),
            "values": draw.normal(B, H, S, d_v),
            "memory_lens": torch.tensor(lens),
            "W_q": draw.normal(d_model, H * d_k),
            "W_o": draw.normal(H * d_v, d_out),
        }
        return Case(name, inputs)

    large = case("large scores, the largest for padding", 2, 2, 5, 3, 2, 4, 6, [5, 3], 1e6)
    queries = (large.inputs["y"] @ large.inputs["W_q"]).reshape(2, 2, 1, 3)
    large.inputs["keys"][1, :, 3:] = 9 * queries[1] / queries[1].norm(dim=-1, keepdim=True)
    low = case("all scores near -3,000,000", 2, 2, 4, 3, 2, 6, 5, [2, 3])
    queries = (low.inputs["y"] @ low.inputs["W_q"]).reshape(2, 2, 1, 3)
    along = 1 + 0.01 * low.inputs["keys"][..., :1].abs()  # how far a key lies against its query
    low.inputs["keys"] = -3_000_000 * 3**0.5 * along * queries / queries.square().sum(-1, True)
    with_zeros = case("all widths differ", 3, 2, 7, 5, 3, 4, 9, [1, 6, 4])
    with_zeros.inputs["y"][1] = 0  # so that scores are exactly 0
    return [
        case("1 sequence, 2 heads", 1, 2, 3, 2, 2, 4, 4, [3]),
        case("2 sequences of unequal length, 3 heads", 2, 3, 5, 2, 2, 6, 6, [5, 2]),
        with_zeros,
        case("as many heads as sequences, tokens and features", 3, 3, 3, 3, 3, 9, 9, [2, 3, 1]),
        case("a source of length 0, one head", 3, 1, 4, 3, 5, 6, 7, [0, 4, 2]),
        large,
        case("heads of width 1, and an output of width 1", 2, 4, 3, 1, 1, 4, 1, [3, 2]),
        low,
        case("no source has a word", 2, 2, 3, 2, 4, 4, 3, [0, 0]),
    ]


def cross_stages(inputs):
    y, keys, values, lens, W_q, W_o = inputs.values()
    B, H, S, d_k = keys.shape
    projected = y @ W_q
    scores = projected.reshape(B, H, 1, d_k) @ keys.mT
    hidden = torch.arange(S) >= lens[:, None, None, None]
    scaled = scores / d_k**0.5
    weights = scaled.masked_fill(hidden, -torch.inf).softmax(-1).nan_to_num()
    heads = weights @ values
    # Where no source needs the last keys, some answers cut them off.
    before = {"the scores": scores, "the scaled scores": scaled} if int(lens.max()) == S else {}
    return {
        "the queries": projected,
        **before,
        "the weights": weights,
        "what each head brings": heads,
        "the joined heads": heads.reshape(B, -1),
        "the output": heads.reshape(B, -1) @ W_o,
    }


def _in_turn(q, H, d_k):
    return q.reshape(len(q), d_k, H).transpose(1, 2)[:, :, None]


def _first_length(lens):
    return lens[:1].expand(len(lens))


def filled(scores, seen, fill):
    return scores.masked_fill(~seen, fill)


def added(scores, seen, fill):
    return scores + fill * ~seen


def build_cross(
    split=lambda q, H, d_k: q.reshape(len(q), H, 1, d_k),
    scale=lambda H, d_k, d_v, S: d_k**-0.5,
    weaken=lambda y: 1.0,
    keep=torch.lt,
    lens=unchanged,
    fill=-torch.inf,
    hide=filled,
    axis=-1,
    values=lambda keys, values: values,
    merge=lambda heads: heads.reshape(len(heads), -1),
    after=lambda weights, lens: weights,
    weigh=torch.softmax,
    ask=torch.matmul,
    out=torch.matmul,
    mend=torch.nan_to_num,
):
    """weaken: what the scores are multiplied by as well, made of y. hide: what becomes of scores
    of padding. ask, out: what is made of y and W_q, and of the joined heads and W_o. mend: of the
    weights, what is made of NaN.
    """

    def cross_step(y, keys, values_, memory_lens, W_q, W_o):
        _, H, S, d_k = keys.shape
        queries = split(ask(y, W_q), H, d_k)
        scores = queries @ keys.mT * scale(H, d_k, values_.shape[-1], S) * weaken(y)
        seen = keep(torch.arange(S), lens(memory_lens)[:, None, None, None])
        weights = mend(weigh(hide(scores, seen, fill), axis))
        weights = after(weights, memory_lens)
        return out(merge(weights @ values(keys, values_)), W_o)

    return cross_step


def _powers_shared(scores, axis):
    return scores.exp() / scores.exp().sum(axis, keepdim=True)


def _powers_shared_where_there_are(scores, axis):
    total = scores.exp().sum(axis, keepdim=True)
    return scores.exp() / total.masked_fill(total == 0, 1)


def _one_largest(*axes):
    """One largest score is subtracted along these axes."""

    def weigh(scores, axis):
        powers = torch.exp(scores - scores.amax(axes, keepdim=True))
        return powers / powers.sum(axis, keepdim=True)

    return weigh


def _mask_of_two_axes(y, keys, values, memory_lens, W_q, W_o):
    B, H, S, d_k = keys.shape
    scores = (y @ W_q).reshape(B, H, 1, d_k) @ keys.mT / d_k**0.5
    hidden = torch.arange(S) >= memory_lens[:, None]  # (B, S)
    weights = scores.masked_fill(hidden, -torch.inf).softmax(-1).nan_to_num()
    return (weights @ values).reshape(B, -1) @ W_o


def _other_scales(inputs):
    """The answers that divide by the root of another size, or otherwise by the width."""
    B, H, S, d_k = inputs["keys"].shape
    sizes = {B, H, S, H * d_k, inputs["W_o"].shape[1]}
    factors = [1 / d_k, d_k**0.5, *(size**-0.5 for size in sizes)]
    return [build_cross(scale=lambda *_, by=by: by) for by in factors]


def _masked_after(weights, lens):
    return weights * (torch.arange(weights.shape[-1]) < lens[:, None, None, None])


def _masked_and_divided(weights, lens):
    seen = torch.arange(weights.shape[-1]) < lens[:, None, None, None]
    return masked_and_divided_safely(weights, seen)


def _no_more(weights, lens):
    return weights


def _zeros_where_empty(weights, lens):
    return weights * (lens > 0)[:, None, None, None]


def _no_softmax(scaled):
    def cross_step(y, keys, values, memory_lens, W_q, W_o):
        B, H, S, d_k = keys.shape
        scores = (y @ W_q).reshape(B, H, 1, d_k) @ keys.mT * (d_k**-0.5 if scaled else 1)
        hidden = torch.arange(S) >= memory_lens[:, None, None, None]
        return (scores.masked_fill(hidden, 0.0) @ values).reshape(B, -1) @ W_o

    return cross_step


def _zeros_for_all(y, keys, values, memory_lens, W_q, W_o):
    output = cross_step(y, keys, values, memory_lens, W_q, W_o)
    return output if memory_lens.all() else torch.zeros_like(output)


CROSS = {
    "not-scaled": known(
        "The scores are not scaled, or they are divided by a size that is 1, such as the number of "
        "queries.",
        "Lesson 2's division is part of every head, in cross-attention too.",
        scale=lambda H, d_k, d_v, S: 1.0,
    ),
    "features-in-turn": known(
        "Your heads take the numbers of a query in turn.",
        "Head h owns columns h·d_k to (h+1)·d_k − 1 of W_q.",
        split=_in_turn,
    ),
    "heads-joined-in-turn": known(
        "You join the heads in turn: feature 0 of every head, then feature 1.",
        "All numbers of head 0 come first. W_o has its rows in this order.",
        merge=lambda heads: heads[:, :, 0].transpose(1, 2).reshape(len(heads), -1),
    ),
    "lengths-ignored": known(
        "memory_lens has no effect.",
        "Past the length of a source there is padding, and keys were computed of it all the same.",
        section=MASKS,
        lens=lambda lens: torch.full_like(lens, 10**6),
    ),
    "one-key-too-many": known(
        "Each query sees one key past the length.",
        "Keys count from 0, so a length of 3 allows the keys 0, 1 and 2.",
        section=MASKS,
        keep=torch.le,
    ),
    "one-key-too-few": known(
        "The last real key of each source is hidden.",
        "Keys count from 0, so a length of 3 allows the keys 0, 1 and 2.",
        section=MASKS,
        keep=lambda places, lens: places < lens - 1,
    ),
    "output-weights-forgotten": known(
        "You return the joined heads: W_o has no effect.",
        "What the heads bring only stands side by side, H · d_v numbers. The output is made of all "
        "of it, and may have another width.",
        out=lambda heads, W_o: heads,
    ),
    "W_q-transposed": known(
        "You multiply by W_q.T, or use W_q as nn.Linear keeps its weight.",
        "nn.Linear keeps (out, in), and W_q is (d_model, H · d_k). A square matrix gives numbers "
        "either way.",
        ask=lambda y, W_q: y @ W_q.T,
    ),
    "W_o-transposed": known(
        "You multiply by W_o.T, or use W_o as nn.Linear keeps its weight.",
        "nn.Linear keeps (out, in), and W_o is (H · d_v, d_out). A square matrix gives numbers "
        "either way.",
        out=lambda heads, W_o: heads @ W_o.T,
    ),
    "scores-0": known(
        "The scores of padding are 0 in your softmax, or nearly 0.",
        "exp(0) is 1, so padding still gets a share.",
        section=MASKS,
        fill=0.0,
    ),
    "mask-of-two-axes": known(
        "Your mask has two axes, (B, S), and the scores have four.",
        "Axes are matched from the right: so B meets the axis of the one query, and every sequence "
        "gets a row for each length. Which axes does the mask lack?",
        section=MASKS,
        wrong=_mask_of_two_axes,
    ),
    "uniform-for-length-0": known(
        "A source of length 0 gets the average of its padding.",
        "Its weights are all equal. They come of a finite fill, the same for all scores, or of a "
        "number in place of NaN. The heads have to bring zeros.",
        section=MASKS,
        **any_of(build_cross, fill=(-1e9, -1e6, -1e5, -3e38)),
    ),
    "nan-for-length-0": known(
        "A source of length 0 makes NaN.",
        "No key counts there: whether all scores are −inf or all powers are 0, it ends in 0 / 0 or "
        "−inf − (−inf). The task says what such a source brings.",
        section=MASKS,
        mend=unchanged,
    ),
    "longest-for-all": known(
        "Every source gets the length of the longest: only what is padding in all of them is "
        "hidden.",
        "A shorter source has padding before that. Each has a length of its own.",
        section=MASKS,
        lens=lambda lens: lens.max().expand_as(lens),
    ),
    "nothing-subtracted": known(
        "You do not subtract the largest of a row of scores before exp: nothing is subtracted, or "
        "in some cases another number, such as 0.",
        "exp overflows above 709 in float64, and far below 0 all of it is 0. Then inf / inf or "
        "0 / 0 gives NaN. Only differences of scores may go into exp.",
        **any_of(
            build_cross,
            {"weigh": _powers_shared},
            {"weigh": _powers_shared_where_there_are, "mend": unchanged},
        ),
    ),
    "length-0-counts-as-1": known(
        "A source of length 0 brings padding: you turn its length into 1, or never hide key 0.",
        "That keeps NaN away. But there is nothing to read, and the task says what such a source "
        "brings.",
        section=MASKS,
        lens=lambda lens: lens.clamp(min=1),
    ),
    "scores-for-weights": known(
        "You average with the scores themselves: there is no softmax.",
        "Scores may be negative, and do not sum to 1.",
        wrong=_no_softmax(True),
        shows=like(*map(_no_softmax, (True, False))),
    ),
}

# Not looked for together with another one: they hide it, or are seldom made.
ALONE = {
    "mask-inverted": known(
        "You hide the real keys and show the padding.",
        "masked_fill writes where its mask is True: are those the keys that may be seen?",
        section=MASKS,
        keep=torch.ge,
    ),
    "zeros-for-the-whole-batch": known(
        "If one source has length 0, all sequences of the batch get zeros.",
        "Each sequence has a source of its own: zeros are for the one that has nothing to read.",
        section=MASKS,
        wrong=_zeros_for_all,
    ),
    "one-length-for-all": known(
        "Every sequence gets the length of the first.",
        "Each source has its own length.",
        section=MASKS,
        lens=_first_length,
    ),
    "fill-not-low-enough": known(
        "Padding's score is not low enough, whether you set it or add a number to it: in a case "
        "with scores in the millions it is the highest.",
        "-100 is low among scores around 0. Scores may be any number. Which one is below every "
        "score?",
        section=MASKS,
        **any_of(
            build_cross,
            *(
                {"fill": fill, "after": after}
                for after in (_zeros_where_empty, _masked_after, _no_more)
                for fill in (*FILLS, -1e5, -1e6)
            ),
            *(
                {"fill": fill, "after": after, "hide": added}
                for after in (_zeros_where_empty, _no_more)
                for fill in (-1e3, -1e4, -1e5, -1e6)
            ),
        ),
    ),
    "mask-after-softmax": known(
        "You hide padding after the softmax or its sum, in the weights or in the values: what is "
        "left of the weights of a head does not sum to 1.",
        "When the softmax divided, the padding was in the sum.",
        section=MASKS,
        lens=lambda lens: torch.full_like(lens, 10**6),
        after=_masked_after,
    ),
    "divided-again": known(
        *DIVIDED_AGAIN,
        section=MASKS,
        lens=lambda lens: torch.full_like(lens, 10**6),
        after=_masked_and_divided,
    ),
    "keys-for-values": known(
        "You average the keys: values has no effect.",
        "The keys are for being found. What a head brings are the values.",
        values=lambda keys, values: keys,
    ),
    "one-largest-for-several-rows": known(
        "It is wrong where the scores of one head are far below others: you subtract one largest "
        "score from several heads, or from the whole batch.",
        "Measured against a score that is far above its own, exp of all scores of a head is 0, and "
        "so is their sum. Which largest score belongs to each row of scores?",
        **any_of(build_cross, weigh=(_one_largest(0, 1, 2, 3), _one_largest(1, 2, 3))),
    ),
    "softmax-over-another-axis": known(
        "The softmax runs over the one query, or over the heads.",
        "Each head shares out one unit of attention among the keys: which axis are they?",
        **any_of(build_cross, axis=(2, 1)),
    ),
    "scaled-by-the-width-of-y": known(
        "You divide the scores by the root of d_model, the width of y.",
        "A score is the product of one head's query and key, a sum of as many terms as each of "
        "them has numbers: that is another width.",
        scale=lambda H, d_k, d_v, S: 1.0,
        weaken=lambda y: y.shape[1] ** -0.5,
    ),
    "scaled-by-the-width-of-values": known(
        "You divide the scores by the root of d_v, the width of a value.",
        "The values do not go into the scores. A score is the product of one head's query and key.",
        scale=lambda H, d_k, d_v, S: d_v**-0.5,
    ),
    "scaled-by-something-else": known(
        "The scores are divided by something else than the root of d_k, or multiplied by it.",
        "A score is the product of one head's query and key, a sum of as many terms as each of "
        "them has numbers. The root of how many these are is the spread of the scores.",
        scale=lambda H, d_k, d_v, S: 1 / d_k,
        shows=lambda inputs, value: like(*_other_scales(inputs))(inputs, value),
    ),
}

TASK = Task(
    "10-cross_step",
    cross_step,
    cross_cases,
    returns=("the output",),
    mistakes=read_again(QUERIES_FROM_HERE, CROSS | ALONE),
    build=build_cross,
    stages=cross_stages,
    alone=tuple(ALONE),
    forbidden=FINISHED,
    number=3,
)
