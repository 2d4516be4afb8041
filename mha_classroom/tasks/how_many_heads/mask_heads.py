"""Task 8.1, mask_heads: a factor on the output of each head."""

import torch

from mha_classroom.checks.examining import first_wrong
from mha_classroom.checks.forms import any_of
from mha_classroom.checks.showing import number_text
from mha_classroom.checks.task import Case, Task, and_in_float32, known, read_again

SWITCHING = "Switching heads off"


def mask_heads(outputs, head_mask):
    return outputs * head_mask.reshape(-1, head_mask.shape[-1], 1, 1)


def point_out_factor(inputs, masked):
    """The factor of the first wrong number's head; the axes, if the shape is wrong."""
    outputs, mask = inputs.values()
    if masked.shape != outputs.shape:
        return f"The result keeps all axes of outputs, {tuple(outputs.shape)}: B, H, L and d."
    b, h, *_ = place = first_wrong(masked, mask_heads(outputs, mask))
    factor = mask[h] if mask.dim() == 1 else mask[b, h]
    given, mine, factor = (
        number_text(X.item(), 4) for X in (outputs[place], masked[place], factor)
    )
    return (
        f"Head {h} has the factor {factor} in example {b}. At {list(place)} outputs holds {given}, "
        f"and your result {mine}."
    )


@and_in_float32
def mask_cases(draw):
    """One mask for all examples, one for each; equal sizes and unequal; factors of any kind."""

    def case(name, shape, *mask_shape):
        mask = draw.integers(0, 1, *mask_shape).double()
        mask.view(-1)[:2] = mask.new_tensor([0.0, 1.0])[: mask.numel()]
        if mask.shape == (3, 3):  # no two rows are equal, no two columns, and no symmetry
            mask = mask.new_tensor([[0, 1, 1], [1, 0, 0], [0, 0, 1]])
        return Case(name, {"outputs": draw.normal(*shape), "head_mask": mask})

    shape, any_factors = (2, 3, 2, 5), torch.tensor([-1.5, 0.5, 4.0]).double()  # 3 in all
    return [
        case("one mask for 3 heads", shape, 3),
        case("a mask for each of 2 examples", shape, 2, 3),
        case("as many queries as heads", (2, 5, 5, 3), 5),
        case("heads as wide as there are heads", (3, 4, 2, 4), 4),
        case("all sizes equal, a mask for each example", (3, 3, 3, 3), 3, 3),
        case("as many examples as queries", (4, 3, 4, 2), 4, 3),
        case("as many examples as heads, one mask for all", (3, 3, 2, 4), 3),
        case("one head", (3, 1, 2, 5), 1),
        case("one head, a factor for each example", (3, 1, 2, 4), 3, 1),
        case("one example, one query, a mask for each example", (1, 3, 1, 4), 1, 3),
        Case("factors besides 0 and 1", {"outputs": draw.normal(*shape), "head_mask": any_factors}),
        Case(
            "factors of each example",
            {"outputs": draw.normal(5, 2, 3, 7), "head_mask": draw.normal(5, 2)},
        ),
    ]


def on_heads(mask, X):
    return mask.reshape(-1, mask.shape[-1], 1, 1)


def build_mask(spread=on_heads, factor=lambda mask: mask, apply=lambda X, factors: X * factors):
    def mask_heads(outputs, head_mask):
        return apply(outputs, spread(factor(head_mask), outputs))

    return mask_heads


def _in_another_order(mask, X):
    if mask.dim() == 1:
        mask = mask.repeat_interleave(len(X)).reshape(X.shape[:2])
    return on_heads(mask, X)


def _axis_by_size(X, mask):
    """A mask of (H,) falls on the first axis that is as long."""
    if mask.dim() == 2:
        return X * on_heads(mask, X)
    shape = [1] * X.dim()
    shape[list(X.shape).index(len(mask))] = len(mask)
    return X * mask.reshape(shape)


def _one_mask_if_as_long(X, mask):
    """A mask as long as there are heads is taken for (H,), and its first H numbers for one mask."""
    if len(mask) == X.shape[1]:
        return X * on_heads(mask.flatten()[: len(mask)], X)
    return X * on_heads(mask, X)


def _filled(size):
    return lambda X, factors: X.masked_fill((factors == 0).expand_as(X), -size)


def _shows_heads_removed(inputs, result):
    """Whether every head is there that has a factor besides 0, and no other one."""
    X, mask = inputs["outputs"], inputs["head_mask"]
    right, stay = mask_heads(X, mask), mask != 0
    if mask.dim() == 1:
        return _equal(result, right[:, stay])
    return any(_equal(result, form) for form in (right, right[stay], right[:, stay[0]]))


def _equal(one, other):
    return one.shape == other.shape and torch.allclose(one, other)


MASKS = {
    "on-queries": known(
        "Your factors fall on the queries instead of the heads.",
        "The axes of outputs are B, H, L, d. Broadcasting lines axes up from the right, so a "
        "factor meets the axis that your shape puts it on.",
        spread=lambda mask, X: mask.reshape(-1, 1, mask.shape[-1], 1),
    ),
    "on-features": known(
        "Your factors fall on the features instead of the heads.",
        "The axes of outputs are B, H, L, d, and broadcasting lines them up from the right.",
        spread=lambda mask, X: mask.reshape(-1, 1, 1, mask.shape[-1]),
    ),
    "on-examples": known(
        "With a mask of (H,) your factors fall on the examples instead of the heads.",
        "The axes of outputs are B, H, L, d. A mask of (H,) has no axis for the examples yet.",
        wrong=lambda X, mask: X * mask[(..., *[None] * (4 - mask.dim()))],
    ),
    "axis-by-its-size": known(
        "With as many examples as heads your factors of (H,) fall on the examples.",
        "Sizes may be equal by chance, and then they tell no axes apart. What else tells (H,) from "
        "(B, H)?",
        wrong=_axis_by_size,
    ),
    "one-mask-if-as-long": known(
        "With as many examples as heads all examples get the mask of the first, as if (B, H) were "
        "(H,).",
        "Sizes may be equal by chance, and then they tell no axes apart. What else tells (H,) from "
        "(B, H)?",
        wrong=_one_mask_if_as_long,
    ),
    "inverted": known(
        "Heads with factor 1 are off and heads with factor 0 stay.",
        "With ξ = 1 nothing changes.",
        factor=lambda mask: 1 - mask,
    ),
    "first-example-for-all": known(
        "All examples get the mask of the first.",
        "With (B, H) each example has a mask of its own.",
        spread=lambda mask, X: mask.reshape(-1, mask.shape[-1])[:1].reshape(1, -1, 1, 1),
    ),
    "one-head-for-all": known(
        "All heads get the factor of one: the first, or the last.",
        "Each head has a factor of its own.",
        **any_of(
            build_mask,
            spread=(
                lambda mask, X: on_heads(mask, X)[:, :1],
                lambda mask, X: on_heads(mask, X)[:, -1:],
            ),
        ),
    ),
    "summed": known(
        "You add the heads up, so that their axis is gone.",
        "Here heads stay apart: (B, H, L, d) goes in and comes out. W_o mixes them later.",
        apply=lambda X, factors: (X * factors).sum(1),
    ),
    "no-axes": known(
        "You multiply by the mask as it is, or add axes in front of it only, so the factors do not "
        "stand where the heads are.",
        "The axes of outputs are B, H, L, d, and two of them stand to the right of the heads. "
        "Broadcasting lines axes up from the right: the last axis of the mask meets the features.",
        wrong=lambda X, mask: X * mask,
    ),
    "one-axis": known(
        "You add one axis behind the mask, so the factors do not stand where the heads are.",
        "The axes of outputs are B, H, L, d, and two of them stand to the right of the heads. With "
        "one axis more, the factors of (H,) meet the queries.",
        wrong=lambda X, mask: X * mask[..., None],
    ),
}

# Not looked for together with another one: they hide it, or are seldom made.
ALONE = {
    "cut-to-whole-numbers": known(
        "You turn the factors into whole numbers.",
        "A factor may be any number, such as 0.5. To take a gradient for it, it has to be "
        "multiplied as it is.",
        **any_of(build_mask, factor=(torch.trunc, torch.round)),
    ),
    "only-on-or-off": known(
        "You treat each factor as on or off.",
        "A factor may be any number. To take a gradient for it, it has to be multiplied.",
        **any_of(
            build_mask,
            factor=(
                lambda mask: (mask != 0).double(),
                lambda mask: (mask > 0).double(),
                lambda mask: (mask == 1).double(),
                lambda mask: (mask > 0.5).double(),
            ),
        ),
    ),
    "from-0-to-1": known(
        "You limit the factors: negative ones become 0, or large ones 1.",
        "A factor may be any number, above 1 or below 0 too.",
        **any_of(
            build_mask,
            factor=(
                lambda mask: mask.clamp(0, 1),
                lambda mask: mask.clamp(min=0),
                lambda mask: mask.clamp(max=1),
            ),
        ),
    ),
    "minus-infinity": known(
        "Masked heads give -inf, or a large negative number.",
        "Scores are masked with these, because a softmax follows. Outputs of heads go into W_o.",
        **any_of(build_mask, apply=[_filled(size) for size in (torch.inf, 1e9, 1e6, 1e4)]),
    ),
    "scaled-up": known(
        "You scale the heads that stay up, as dropout does.",
        "A head with factor 1 stays as it is, whatever happens to the others.",
        **any_of(
            build_mask,
            factor=(lambda mask: mask / mask.mean(), lambda mask: mask / mask.mean(-1, True)),
        ),
    ),
    "factors-in-another-order": known(
        "You repeat each factor of a mask (H,) as often as there are examples, and lay the "
        "examples out one after another: an example gets factors of other heads.",
        "repeat_interleave says 0 0 1 1 2 2 where repeat says 0 1 2 0 1 2. Every example needs all "
        "factors, in the order of the heads. And an axis of size 1 needs no copies.",
        spread=_in_another_order,
    ),
    "made-weights": known(
        "You divide the factors by their sum, or take their softmax.",
        "Factors are no weights: with three factors of 1 nothing changes.",
        **any_of(
            build_mask,
            factor=(lambda mask: mask / mask.sum(-1, True), lambda mask: mask.softmax(-1)),
        ),
    ),
    "averaged-over-examples": known(
        "With a mask of (B, H) all examples get its average over the examples.",
        "With (B, H) each example has a mask of its own.",
        spread=lambda mask, X: on_heads(mask.reshape(-1, mask.shape[-1]).mean(0), X),
    ),
    "squeezed": known(
        "Axes of size 1 are gone from your result.",
        "squeeze takes such axes away, also that of a single example or query. The result is as "
        "the outputs came: (B, H, L, d).",
        **any_of(
            build_mask,
            apply=(
                lambda X, factors: (X * factors).squeeze(),
                lambda X, factors: (X * factors).squeeze(0),
            ),
        ),
    ),
    "heads-joined": known(
        "You join the heads: your result is (B, L, H · d).",
        "Here heads stay apart: (B, H, L, d) goes in and comes out. W_o mixes them later.",
        apply=lambda X, factors: (X * factors).transpose(1, 2).flatten(2),
    ),
    "heads-removed": known(
        "You take the heads with factor 0 out of the result.",
        "Their outputs become 0, and stay where they are: (B, H, L, d) goes in and comes out.",
        wrong=lambda X, mask: (
            (X * on_heads(mask, X))[:, mask != 0] if mask.dim() == 1 else X * on_heads(mask, X)
        ),
        shows=_shows_heads_removed,
    ),
    "added": known(
        "You add the factors.",
        "A factor is multiplied: 0 makes all of a head's outputs 0.",
        apply=lambda X, factors: X + factors,
    ),
}

TASK = Task(
    "08-mask_heads",
    mask_heads,
    mask_cases,
    mistakes=read_again(SWITCHING, MASKS | ALONE),
    build=build_mask,
    point_out=point_out_factor,
    alone=tuple(ALONE),
    number=1,
)
