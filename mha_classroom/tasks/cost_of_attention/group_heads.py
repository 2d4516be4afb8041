"""Task 9.7, group_heads: the key heads of a trained layer, averaged in groups."""

import torch

from mha_classroom.checks.examining import first_wrong
from mha_classroom.checks.forms import any_of, like
from mha_classroom.checks.showing import listed, numbers_text
from mha_classroom.checks.task import Case, Task, and_in_float32, known, read_again, unchanged
from mha_classroom.tasks.cost_of_attention.grouped_attention import SHARED
from mha_classroom.tasks.head_splitting.transpose_qkv import STRIDES, as_it_lies


def group_heads(weight, num_heads, num_kv_heads):
    heads = weight.reshape(num_kv_heads, num_heads // num_kv_heads, -1, *weight.shape[1:])
    return heads.mean(1).flatten(0, 1)


@and_in_float32
def weight_cases(draw):
    def case(name, weight, num_heads, num_kv_heads):
        inputs = {"weight": weight, "num_heads": num_heads, "num_kv_heads": num_kv_heads}
        return Case(name, inputs)

    small = 10 * torch.arange(4)[:, None, None] + torch.arange(2)[:, None]
    small = small.expand(4, 2, 3).reshape(8, 3).double()  # 31: head 3, row 1
    turned = "the weight is a transposed tensor, so it is not contiguous"
    return [
        case("4 heads of width 2, 2 key heads", small, 4, 2),
        case("6 heads of width 5, 2 key heads", draw.normal(30, 7), 6, 2),
        case("6 heads of width 2, 3 key heads", draw.normal(12, 12), 6, 3),
        case("one key head", draw.normal(15, 11), 5, 1),
        case("as many key heads as heads", draw.normal(12, 5), 4, 4),
        case("a bias", draw.normal(24), 8, 2),
        case("a bias, one key head of width 1", draw.normal(3), 3, 1),
        case("tokens with one feature", draw.normal(12, 1), 4, 2),
        case("heads of width 1", draw.normal(9, 9), 9, 3),
        case(turned, draw.normal(7, 24).T, 6, 2),
    ]


def point_out_group(inputs, means):
    """The numbers that the first wrong mean is made of, one of each head of its group; how many
    rows are asked for, if the shape is wrong."""
    weight, H, G = inputs.values()
    heads = weight.reshape(G, H // G, -1, *weight.shape[1:])
    if means.shape != (G * heads.shape[2], *weight.shape[1:]):
        many = "1 key head is" if G == 1 else f"{G} key heads are"
        return f"{many} asked for, of {heads.shape[2]} rows each like the heads."
    place = first_wrong(means, group_heads(*inputs.values()))
    group, row = divmod(place[0], heads.shape[2])
    numbers = heads[(group, slice(None), row, *place[1:])]
    members = listed([str(h) for h in range(group * (H // G), (group + 1) * (H // G))])
    return (
        f"Key head {group} is made of {'heads' if H > G else 'head'} {members}. For {list(place)} "
        f"of the result they hold {numbers_text(numbers)}."
    )


def build_group(
    cut=lambda W, H, G: W.unflatten(0, (G, H // G, -1)),
    axis=1,
    combine=lambda heads, axis: heads.mean(axis),
    join=lambda heads: heads.flatten(0, 1),
):
    """cut: into (groups, heads of a group, width, ...), or in another order; axis: that of the
    heads of a group."""

    def group_heads(weight, num_heads, num_kv_heads):
        return join(combine(cut(weight, num_heads, num_kv_heads), axis))

    return group_heads


def _pairs(weight, num_heads, num_kv_heads):
    heads = weight.split(weight.shape[0] // num_heads)
    return torch.cat([(heads[i] + heads[i + 1]) / 2 for i in range(0, num_heads, 2)])


def _repeated(again):
    """Each mean as often as its group has heads."""
    return lambda W, H, G: again(group_heads(W, H, G).unflatten(0, (G, -1)), H // G).flatten(0, 1)


REPEATED = (
    _repeated(lambda means, times: means.repeat_interleave(times, 0)),
    _repeated(lambda means, times: torch.cat([means] * times)),
    lambda W, H, G: group_heads(W, H, G).repeat_interleave(H // G, 0),  # row by row
)


def _windows(W, H, G):
    """Groups that overlap: each begins one head behind the one before."""
    heads = W.unflatten(0, (H, -1))
    return torch.stack([heads[g : g + H // G] for g in range(G)])


def _mean_of_means(heads, axis):
    mean, *others = heads.unbind(axis)
    for other in others:
        mean = (mean + other) / 2
    return mean


MISTAKES = {
    "heads-in-turn": known(
        "You put together heads that are far apart: 0, G, 2G and so on.",
        "A group is made of neighbours: with 4 heads and 2 key heads, heads 0 and 1 become one.",
        cut=lambda W, H, G: W.unflatten(0, (H // G, G, -1)).transpose(0, 1),
    ),
    "rows-of-a-head": known(
        "You put together neighbouring rows, as if each row were a head.",
        "Row 0 of one head goes with row 0 of the next. Of the axes that you cut the rows into, "
        "which one is the width of a head?",
        cut=lambda W, H, G: W.unflatten(0, (G, -1, H // G)).transpose(1, 2),
    ),
    "features-interleaved": known(
        "You read the rows as if the features of the heads took turns.",
        "All rows of head 0 come first, then those of head 1.",
        cut=lambda W, H, G: W.unflatten(0, (-1, G, H // G)).permute(
            1, 2, 0, *range(3, W.dim() + 2)
        ),
    ),
    "groups-counted-for-their-size": known(
        "You take num_kv_heads for the number of heads in a group.",
        "It is the number of groups. With 4 heads and 2 key heads nobody notices.",
        cut=lambda W, H, G: W.unflatten(0, (H // G, G, -1)),
    ),
    "added-up": known(
        "You add the heads of a group up.",
        "Then the keys are as many times too large as a group has heads. Take their mean.",
        combine=lambda heads, axis: heads.sum(axis),
    ),
    "divided-by-something-else": known(
        "You divide the sum of a group by something else than how many heads it has.",
        "A mean is divided by how many were added: the heads of one group. With 4 heads and 2 key "
        "heads there are as many groups, and dividing by these is right by chance.",
        **any_of(
            build_group,
            combine=(
                lambda heads, axis: heads.sum(axis) / len(heads),
                lambda heads, axis: heads.sum(axis) / (heads.shape[0] * heads.shape[1]),
                lambda heads, axis: heads.sum(axis) / heads.shape[axis] ** 0.5,
            ),
        ),
    ),
    "one-number-of-each": known(
        "You take one of the numbers for each place: the median, the largest or the smallest.",
        "The task asks for the mean.",
        **any_of(
            build_group,
            combine=(
                lambda heads, axis: heads.median(axis).values,
                lambda heads, axis: heads.amax(axis),
                lambda heads, axis: heads.amin(axis),
            ),
        ),
    ),
    "mean-of-means": known(
        "You average two heads, then the result with the next one, and so on.",
        "The last head of a group counts for half then. In a mean all count the same.",
        combine=_mean_of_means,
    ),
    "neighbours-in-pairs": known(
        "You average two heads at a time, whatever num_heads and num_kv_heads are.",
        "How many heads become one? With 4 heads and 2 key heads it is two.",
        wrong=_pairs,
    ),
    "one-head-kept": known(
        "You keep one head of each group, the first or the last, and drop the others.",
        "Ainslie et al. tried that, too (Figure 4). The mean lost less.",
        **any_of(
            build_group,
            combine=(
                lambda heads, axis: heads.select(axis, 0),
                lambda heads, axis: heads.select(axis, -1),
            ),
        ),
    ),
    "rows-in-steps": known(
        "You keep one row of every H / G, and drop the others.",
        "Neighbouring rows belong to one head. The mean is over the heads of a group: each row of "
        "the result comes of one row of each of them.",
        wrong=lambda weight, num_heads, num_kv_heads: weight[:: num_heads // num_kv_heads],
    ),
    "first-heads-kept": known(
        "You keep the first rows of the weight and drop the others.",
        "Each head has to count in the mean of its group.",
        wrong=lambda W, H, G: W[: len(W) * G // H].clone(),
    ),
    "means-repeated": known(
        "You repeat each mean as often as its group has heads.",
        "The smaller layer has num_kv_heads heads of keys: that is what it saves.",
        wrong=REPEATED[0],
        shows=like(*REPEATED),
    ),
    "root-mean-square": known(
        "You take the root of the mean square of a group.",
        "Weights have signs, and squares lose them. Take the mean of the numbers as they are.",
        combine=lambda heads, axis: heads.square().mean(axis).sqrt(),
    ),
    "groups-overlap": known(
        "Your groups overlap: each begins one head behind the one before.",
        "Every head belongs to one group. Which head is the first one of group g?",
        cut=_windows,
    ),
    "strides-of-a-contiguous-tensor": known(
        *STRIDES, wrong=lambda W, H, G: group_heads(as_it_lies(W), H, G)
    ),
    "joined-crosswise": known(
        "The rows of the key heads take turns in your result.",
        "All rows of key head 0 come first, then those of key head 1.",
        join=lambda heads: heads.transpose(0, 1).flatten(0, 1),
    ),
    "transposed-first": known(
        "You turn the weight over before you cut it, or cut its columns.",
        "nn.Linear keeps (out, in), so the heads are rows already. The columns are the features of "
        "a token, which every head reads.",
        wrong=lambda W, H, G: W.T.reshape(G, H // G, -1, *W.shape[:1]).mean(1).flatten(0, 1),
    ),
}

# Not looked for together with another one: they hide it, or are seldom made.
ALONE = {
    "not-joined": known(
        "Your result still has an axis that counts the key heads.",
        "A layer keeps one matrix: the rows of its heads stand below each other, as in the weight "
        "that you are given.",
        join=unchanged,
    ),
    "width-averaged": known(
        "You average over the rows of each head, so each head becomes one row.",
        "Heads are averaged with heads: row 0 of one with row 0 of the next. Of the axes that you "
        "cut the rows into, which one counts the heads of a group?",
        axis=2,
    ),
    "mean-of-all-heads": known(
        "Each key head becomes the mean of all heads.",
        "Each group has a mean of its own.",
        combine=lambda heads, axis: heads.mean((0, 1)).expand(heads.shape[0], *heads.shape[2:]),
    ),
    "groups-reversed": known(
        "Your key heads stand in reverse order, the last group first.",
        "The first rows belong to the first heads, and so to key head 0.",
        join=lambda heads: heads.flip(0).flatten(0, 1),
    ),
    "groups-averaged": known(
        "You average over the groups, not over the heads of a group.",
        "The groups have to remain. Of the axes that you cut the rows into, which one counts the "
        "heads of a group?",
        axis=0,
    ),
}

TASK = Task(
    "09-group_heads",
    group_heads,
    weight_cases,
    mistakes=read_again(SHARED, MISTAKES | ALONE),
    build=build_group,
    point_out=point_out_group,
    alone=tuple(ALONE),
    number=7,
)
