"""Task 9.7, group_heads: the key heads of a trained layer, averaged in groups."""

import torch

from mha_classroom.checks.task import Case, Task, known, read_again
from mha_classroom.tasks.cost_of_attention.grouped_attention import SHARED


def group_heads(weight, num_heads, num_kv_heads):
    heads = weight.reshape(num_kv_heads, num_heads // num_kv_heads, -1, *weight.shape[1:])
    return heads.mean(1).flatten(0, 1)


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
        case("heads of width 1", draw.normal(9, 9), 9, 3),
        case(turned, draw.normal(7, 24).T, 6, 2),
    ]


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


def _columns(W, H, G):
    if W.dim() == 1:
        return W.unflatten(0, (G, H // G, -1)).mean(1).flatten()
    return W.unflatten(1, (G, H // G, -1)).mean(2).flatten(1)


MISTAKES = {
    "heads-in-turn": known(
        "You average heads that are far apart: 0, G, 2G and so on.",
        "A group is made of neighbours: with 4 heads and 2 key heads, heads 0 and 1 become one.",
        cut=lambda W, H, G: W.unflatten(0, (H // G, G, -1)).transpose(0, 1),
    ),
    "rows-of-a-head": known(
        "You average neighbouring rows, which belong to the same head.",
        "Row 0 of one head is averaged with row 0 of the next. Of the axes that you cut the rows "
        "into, which one is the width of a head?",
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
    "first-head-kept": known(
        "You keep the first head of each group and drop the others.",
        "Ainslie et al. tried that, too (Figure 4). The mean lost less.",
        combine=lambda heads, axis: heads.select(axis, 0),
    ),
    "one-for-all": known(
        "You average all heads, and repeat the result for each key head.",
        "Each group has a mean of its own.",
        combine=lambda heads, axis: heads.mean((0, 1)).expand(len(heads), *heads.shape[2:]),
    ),
    "columns-averaged": known(
        "You average columns.",
        "nn.Linear keeps (out, in), so the heads are rows. The columns are the features of a "
        "token, which every head reads.",
        wrong=_columns,
    ),
    "heads-not-joined": known(
        "The key heads stand on an axis of their own.",
        "The rows have to stand in one stack, like those of the weight that you were given.",
        join=lambda heads: heads,
    ),
    "as-large-as-before": known(
        "You put the mean in place of each head, so the weight is as large as before.",
        "The outputs would be the same, and so would the cache. It is to become smaller.",
        wrong=lambda W, H, G: (
            group_heads(W, H, G).unflatten(0, (G, -1)).repeat_interleave(H // G, 0).flatten(0, 1)
        ),
    ),
}

TASK = Task(
    "09-group_heads",
    group_heads,
    weight_cases,
    mistakes=read_again(SHARED, MISTAKES),
    build=build_group,
    alone=("heads-not-joined", "one-for-all"),
    number=7,
)
