"""Task 10.3, cross_step: cross-attention of one new token to keys and values that are kept."""

import torch

from mha_classroom.checks.forms import FILLS, like
from mha_classroom.checks.task import Case, Task, known, read_again, unchanged
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

    low = case("all scores near -30,000", 2, 2, 4, 3, 2, 6, 5, [2, 3])
    queries = (low.inputs["y"] @ low.inputs["W_q"]).reshape(2, 2, 1, 3)
    along = 1 + 0.01 * low.inputs["keys"][..., :1].abs()  # how far a key lies against its query
    low.inputs["keys"] = -30000 * 3**0.5 * along * queries / queries.square().sum(-1, True)
    return [
        case("1 sequence, 2 heads", 1, 2, 3, 2, 2, 4, 4, [3]),
        case("2 sequences of unequal length, 3 heads", 2, 3, 5, 2, 2, 6, 6, [5, 2]),
        case("all widths differ", 3, 2, 7, 5, 3, 4, 9, [1, 7, 4]),
        case("as many heads as sequences, tokens and features", 3, 3, 3, 3, 3, 9, 9, [2, 3, 1]),
        case("a source of length 0", 3, 2, 4, 3, 5, 6, 7, [0, 4, 2]),
        case("large scores", 2, 2, 5, 3, 2, 4, 6, [5, 3], 1000.0),
        case("heads of width 1", 2, 4, 3, 1, 1, 4, 4, [3, 2]),
        low,
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
    return {
        "the queries": projected,
        "the scores": scores,
        "the scaled scores": scaled,
        "the weights": weights,
        "what each head brings": heads,
        "the joined heads": heads.reshape(B, -1),
        "the output": heads.reshape(B, -1) @ W_o,
    }


def _in_turn(q, H, d_k):
    return q.reshape(len(q), d_k, H).transpose(1, 2)[:, :, None]


def _first_length(lens):
    return lens[:1].expand(len(lens))


def build_cross(
    split=lambda q, H, d_k: q.reshape(len(q), H, 1, d_k),
    scale=lambda H, d_k, d_v, S: d_k**-0.5,
    keep=torch.lt,
    lens=unchanged,
    fill=-torch.inf,
    axis=-1,
    empty=torch.nan_to_num,
    values=lambda keys, values: values,
    merge=lambda heads: heads.reshape(len(heads), -1),
    finish=torch.matmul,
    project=torch.matmul,
    after=lambda weights, lens: weights,
    bring=torch.matmul,
):
    def cross_step(y, keys, values_, memory_lens, W_q, W_o):
        _, H, S, d_k = keys.shape
        queries = split(project(y, W_q), H, d_k)
        scores = queries @ keys.mT * scale(H, d_k, values_.shape[-1], S)
        seen = keep(torch.arange(S), lens(memory_lens)[:, None, None, None])
        weights = empty(scores.masked_fill(~seen, fill).softmax(axis))
        weights = after(weights, memory_lens)
        return finish(merge(bring(weights, values(keys, values_))), W_o)

    return cross_step


def _mask_of_two_axes(y, keys, values, memory_lens, W_q, W_o):
    B, H, S, d_k = keys.shape
    scores = (y @ W_q).reshape(B, H, 1, d_k) @ keys.mT / d_k**0.5
    hidden = torch.arange(S) >= memory_lens[:, None]  # (B, S)
    weights = scores.masked_fill(hidden, -torch.inf).softmax(-1).nan_to_num()
    return (weights @ values).reshape(B, -1) @ W_o


def _mask_of_three_axes(y, keys, values, memory_lens, W_q, W_o):
    _, H, S, d_k = keys.shape
    scores = (y @ W_q).reshape(len(y), H, 1, d_k) @ keys.mT / d_k**0.5
    hidden = torch.arange(S) >= memory_lens[:, None, None]  # (B, 1, S)
    weights = scores.masked_fill(hidden, -torch.inf).softmax(-1).nan_to_num()
    return (weights @ values).reshape(len(y), -1) @ W_o


def _other_widths(inputs):
    y, keys = inputs["y"], inputs["keys"]
    sizes = {y.shape[1], keys.shape[0], keys.shape[1], inputs["W_o"].shape[1]}
    return [build_cross(scale=lambda *_, by=size**-0.5: by) for size in sizes]


def _lowered(by):
    """The number is added to the scores of hidden keys, not put in their place."""

    def cross_step(y, keys, values, memory_lens, W_q, W_o):
        B, H, S, d_k = keys.shape
        scores = (y @ W_q).reshape(B, H, 1, d_k) @ keys.mT / d_k**0.5
        hidden = torch.arange(S) >= memory_lens[:, None, None, None]
        weights = (scores + hidden * by).softmax(-1)
        return (weights @ values).reshape(B, -1) @ W_o

    return cross_step


LOW = (-1e4, -1e5, -1e6, -1e7, -1e8, -1e9, -1e10)


def _masked_after(weights, lens):
    return weights * (torch.arange(weights.shape[-1]) < lens[:, None, None, None])


def _zeros_where_empty(weights, lens):
    return weights * (lens > 0)[:, None, None, None]


def _powers(again):
    """A softmax that takes powers of the scores as they are, and what NaN becomes."""

    def cross_step(y, keys, values, memory_lens, W_q, W_o):
        B, H, S, d_k = keys.shape
        scores = (y @ W_q).reshape(B, H, 1, d_k) @ keys.mT / d_k**0.5
        hidden = torch.arange(S) >= memory_lens[:, None, None, None]
        powers = scores.masked_fill(hidden, -torch.inf).exp()
        weights = again(powers / powers.sum(-1, keepdim=True))
        return (weights @ values).reshape(B, -1) @ W_o

    return cross_step


def _no_softmax(scaled):
    def cross_step(y, keys, values, memory_lens, W_q, W_o):
        B, H, S, d_k = keys.shape
        scores = (y @ W_q).reshape(B, H, 1, d_k) @ keys.mT * (d_k**-0.5 if scaled else 1)
        hidden = torch.arange(S) >= memory_lens[:, None, None, None]
        return (scores.masked_fill(hidden, 0.0) @ values).reshape(B, -1) @ W_o

    return cross_step


def _only_length_0_mended(weights):
    """Zeros where a whole row is NaN."""
    return weights.masked_fill(weights.isnan().all(-1, keepdim=True), 0.0)


CROSS = {
    "not-scaled": known(
        "You do not scale the scores.",
        "Lesson 2's division is part of every head, in cross-attention too.",
        scale=lambda H, d_k, d_v, S: 1.0,
    ),
    "scaled-by-all-heads": known(
        "You divide the scores by the root of the width of all heads together.",
        "A score is the product of one head's query and key. How long are those?",
        scale=lambda H, d_k, d_v, S: (H * d_k) ** -0.5,
    ),
    "scaled-by-the-values": known(
        "You divide the scores by the root of the width of a value.",
        "Values take no part in a score.",
        scale=lambda H, d_k, d_v, S: d_v**-0.5,
    ),
    "divided-by-width": known(
        "You divide the scores by d_k, not by its root.",
        "The spread of a score is the root of d_k.",
        scale=lambda H, d_k, d_v, S: 1 / d_k,
    ),
    "multiplied-by-root": known(
        "You multiply the scores by the root of d_k.",
        "Scores spread too far as they are. The scale brings them closer together.",
        scale=lambda H, d_k, d_v, S: d_k**0.5,
    ),
    "scaled-by-keys": known(
        "You divide the scores by the root of the number of keys.",
        "How far scores spread depends on how many products are in one score.",
        scale=lambda H, d_k, d_v, S: S**-0.5,
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
    "mask-inverted": known(
        "You hide the real keys and show the padding.",
        "masked_fill writes where its mask is True: are those the keys that may be seen?",
        section=MASKS,
        keep=torch.ge,
    ),
    "scores-0": known(
        "You set the scores of padding to 0.",
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
    "one-length-for-all": known(
        "Every sequence gets the length of the first.",
        "Each source has its own length.",
        section=MASKS,
        lens=_first_length,
    ),
    "nan-for-length-0": known(
        "A source of length 0 gives NaN.",
        "A softmax over nothing but -inf divides 0 by 0 (lesson 2). Its heads have to bring zeros.",
        section=MASKS,
        empty=unchanged,
    ),
    "uniform-for-length-0": known(
        "A source of length 0 gets the average of its padding.",
        "A finite fill makes all scores equal, and softmax makes equal weights of them. The heads "
        "have to bring zeros.",
        section=MASKS,
        fill=-1e9,
        shows=like(*(build_cross(fill=fill) for fill in (-1e9, -1e6, -1e5, -3e38))),
    ),
    "lowered-for-length-0": known(
        "A source of length 0 gets the weights that it would have without a length.",
        "You add a very low number to hidden scores. Where all are hidden, the same is added to "
        "all, and only differences count. Its heads have to bring zeros.",
        section=MASKS,
        wrong=_lowered(-1e9),
        shows=like(*map(_lowered, LOW)),
    ),
    "first-key-for-length-0": known(
        "A source of length 0 gets its first key.",
        "There is no key in it, only padding. Its heads have to bring zeros.",
        section=MASKS,
        lens=lambda lens: lens.clamp(min=1),
    ),
    "fill-not-low-enough": known(
        "The score that you give to padding is not low enough: next to scores near -30,000 it is "
        "the highest.",
        "-100 is low among scores around 0. Scores may be any number. Which one is below every "
        "score?",
        section=MASKS,
        fill=-100.0,
        after=_zeros_where_empty,
        shows=like(
            *(build_cross(fill=fill, after=_zeros_where_empty) for fill in FILLS),
            *(build_cross(fill=fill, after=_masked_after) for fill in FILLS),
            *(build_cross(fill=fill) for fill in FILLS),
        ),
    ),
    "powers-too-large": known(
        "Your softmax takes exp of the scores as they are, and it overflows or sums to 0.",
        "exp of 1000 is inf, of -1000 it is 0, and inf / inf and 0 / 0 are NaN. What can be "
        "taken off all scores of a row without changing its weights (lesson 1)?",
        wrong=_powers(torch.nan_to_num),
        shows=like(*map(_powers, (torch.nan_to_num, _only_length_0_mended))),
    ),
    "mask-after-softmax": known(
        "You hide padding after the softmax: the weights of a head do not sum to 1.",
        "When the softmax divided, the padding was in the sum.",
        section=MASKS,
        lens=lambda lens: torch.full_like(lens, 10**6),
        after=_masked_after,
    ),
    "mask-of-three-axes": known(
        "Your mask has three axes, (B, 1, S), and the scores have four.",
        "Axes are matched from the right: so B meets the axis of the heads. Which axis does the "
        "mask lack?",
        section=MASKS,
        wrong=_mask_of_three_axes,
    ),
    "keys-for-values": known(
        "You average the keys: values has no effect.",
        "The keys are for being found. What a head brings are the values.",
        values=lambda keys, values: keys,
    ),
    "mean-of-the-values": known(
        "Your heads bring the plain mean of the values, or their sum: the weights have no effect.",
        "Each value counts as much as its weight says.",
        bring=lambda weights, values: values.mean(2, keepdim=True),
        shows=like(
            build_cross(bring=lambda weights, values: values.mean(2, keepdim=True)),
            build_cross(bring=lambda weights, values: values.sum(2, keepdim=True)),
        ),
    ),
    "softmax-over-queries": known(
        "The softmax runs over the queries, and there is only one.",
        "A single number gets the weight 1, so every key counts in full. Each head shares out its "
        "attention among the keys: which axis are they?",
        axis=2,
    ),
    "heads-averaged": known(
        "You average the heads before W_o, and give it the average once for each head.",
        "The heads are joined, not mixed: W_o has rows of its own for each of them.",
        merge=lambda heads: heads.mean(1).repeat(1, 1, heads.shape[1]).flatten(1),
        shows=like(
            *(
                build_cross(
                    merge=lambda heads, mix=mix: (
                        mix(heads, 1, keepdim=True).expand_as(heads).reshape(len(heads), -1)
                    )
                )
                for mix in (torch.mean, torch.sum)
            )
        ),
    ),
    "scaled-by-another-width": known(
        "You divide the scores by the root of a size that has nothing to do with them: d_model, "
        "the number of heads or of sequences.",
        "A score is the product of one head's query and key. How long are those?",
        scale=lambda H, d_k, d_v, S: H**-0.5,
        shows=lambda inputs, value: like(*_other_widths(inputs))(inputs, value),
    ),
    "W_o-transposed": known(
        "You multiply by the transpose of W_o.",
        "W_o is (H · d_v, d_out): a row of the joined heads times W_o has d_out numbers.",
        finish=lambda joined, W_o: joined @ W_o.T,
    ),
    "W_q-transposed": known(
        "You multiply by the transpose of W_q.",
        "W_q is (d_model, H · d_k): a row of y times W_q has H · d_k numbers.",
        project=lambda y, W_q: y @ W_q.T,
    ),
    "query-not-projected": known(
        "You split y itself into heads: W_q has no effect.",
        "y is the new token. The queries are made of it by W_q.",
        project=lambda y, W_q: y,
    ),
    "width-of-keys-for-values": known(
        "You join the heads as if each brought d_k numbers.",
        "It brings a mix of values, and these are d_v wide.",
        wrong=lambda y, keys, values, memory_lens, W_q, W_o: build_cross(
            merge=lambda heads: heads.reshape(len(heads), keys.shape[1] * keys.shape[3])
        )(y, keys, values, memory_lens, W_q, W_o),
    ),
    "heads-summed": known(
        "You add up the heads, and use only the first rows of W_o.",
        "The heads are joined, not mixed: W_o has rows of its own for each of them.",
        merge=lambda heads: heads.sum(1)[:, 0],
        finish=lambda summed, W_o: summed @ W_o[: summed.shape[1]],
        shows=like(
            *(
                build_cross(
                    merge=lambda heads, mix=mix: mix(heads, 1)[:, 0],
                    finish=lambda summed, W_o: summed @ W_o[: summed.shape[1]],
                )
                for mix in (torch.sum, torch.mean)
            )
        ),
    ),
    "scores-for-weights": known(
        "You average with the scores themselves: there is no softmax.",
        "Scores may be negative, and do not sum to 1.",
        wrong=_no_softmax(True),
        shows=like(*map(_no_softmax, (True, False))),
    ),
    "batch-and-heads-mixed": known(
        "Your queries are cut so that the numbers of several sequences come into one head.",
        "A row of y @ W_q holds all heads of one sequence: the batch stays the first axis, and the "
        "row is cut into heads.",
        split=lambda q, H, d_k: q.reshape(H, len(q), 1, d_k).transpose(0, 1),
    ),
    "heads-reversed": known(
        "Your query heads meet the keys in another order: the first head's query asks the last "
        "head's keys.",
        "Head h of the query belongs to head h of keys and values.",
        split=lambda q, H, d_k: q.reshape(len(q), H, 1, d_k).flip(1),
    ),
    "softmax-over-heads": known(
        "The softmax runs over the heads.",
        "Each head shares out its own unit of attention among the keys.",
        axis=1,
    ),
    "no-output-projection": known(
        "You return the joined heads: W_o is not used.",
        "W_o mixes what the heads bring.",
        finish=lambda joined, W_o: joined,
    ),
    "axis-left": known(
        "Your result has an axis of length 1 too many.",
        "There is one new token for each sequence. The result is (B, d_out).",
        finish=lambda joined, W_o: (joined @ W_o)[:, None],
    ),
}

TASK = Task(
    "10-cross_step",
    cross_step,
    cross_cases,
    returns=("the output",),
    mistakes=read_again(QUERIES_FROM_HERE, CROSS),
    build=build_cross,
    stages=cross_stages,
    alone=(
        "axis-left",
        "no-output-projection",
        "softmax-over-heads",
        "mask-inverted",
        "one-length-for-all",
        "scaled-by-keys",
        "multiplied-by-root",
        "scaled-by-the-values",
        "nan-for-length-0",
        "first-key-for-length-0",
        "fill-not-low-enough",
        "mask-after-softmax",
        "keys-for-values",
        "mean-of-the-values",
        "softmax-over-queries",
        "heads-averaged",
        "scaled-by-another-width",
        "W_o-transposed",
        "W_q-transposed",
        "query-not-projected",
        "heads-reversed",
        "heads-summed",
        "batch-and-heads-mixed",
    ),
    forbidden=FINISHED,
    number=3,
)
