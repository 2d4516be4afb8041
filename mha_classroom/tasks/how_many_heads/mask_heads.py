"""Task 8.1, mask_heads: a factor on the output of each head."""

import torch

from mha_classroom.checks.task import Case, Task, known, read_again

SWITCHING = "Switching heads off"


def mask_heads(outputs, head_mask):
    return outputs * head_mask.reshape(-1, head_mask.shape[-1], 1, 1)


def mask_cases(draw):
    """One mask for all examples, one for each; equal sizes and unequal; factors of any kind."""

    def case(name, shape, *mask_shape):
        mask = draw.integers(0, 1, *mask_shape).double()
        mask.view(-1)[:2] = mask.new_tensor([0.0, 1.0])[: mask.numel()]
        return Case(name, {"outputs": draw.normal(*shape), "head_mask": mask})

    shape, any_factors = (2, 3, 2, 5), torch.tensor([-1.5, 0.3, 2.0]).double()
    return [
        case("one mask for 3 heads", shape, 3),
        case("a mask for each of 2 examples", shape, 2, 3),
        case("as many queries as heads", (2, 5, 5, 3), 5),
        case("heads as wide as there are heads", (3, 4, 2, 4), 4),
        case("all sizes equal, a mask for each example", (3, 3, 3, 3), 3, 3),
        case("as many examples as queries", (4, 3, 4, 2), 4, 3),
        case("one head", (3, 1, 2, 5), 1),
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


def _no_axes(why, wrong):
    return known(
        "You add too few axes, so the factors do not stand where the heads are.", why, wrong=wrong
    )


NO_AXES = (
    "The axes of outputs are B, H, L, d. Broadcasting lines axes up from the right, so without two "
    "axes more the last axis of the mask meets the features."
)
ONE_AXIS = (
    "The axes of outputs are B, H, L, d, and two of them stand to the right of the heads. With one "
    "axis more, the factors of (H,) meet the queries."
)


def _for_one_mask(wrong):
    return known(
        "Your code is right for a mask of (H,), and not for one of (B, H).",
        "There each example has a mask of its own: the first axis of the mask counts examples, and "
        "the second one heads.",
        wrong=wrong,
    )


def _for_many_masks(wrong):
    return known(
        "Your code is right for a mask of (B, H), and not for one of (H,).",
        "There all examples share one mask, and it has one axis only. How do you make an axis for "
        "the examples?",
        wrong=wrong,
    )


def _by_heads(factors):
    """The heads one by one, each times what `factors` makes of its number and the mask."""
    return lambda X, mask: torch.stack(
        [X[:, h] * factors(mask, h) for h in range(X.shape[1])], dim=1
    )


def _on_or_off(factor):
    return known(
        "You treat each factor as on or off.",
        "A factor may be any number. To take a gradient for it, it has to be multiplied.",
        factor=factor,
    )


def _minus(size):
    return known(
        "Masked heads give -inf, or a large negative number.",
        "Scores are masked with these, because a softmax follows. Outputs of heads go into W_o.",
        apply=lambda X, factors: X.masked_fill((factors == 0).expand_as(X), -size),
    )


def _scaled_up(factor):
    return known(
        "You scale the heads that stay up, as dropout does.",
        "A head with factor 1 stays as it is, whatever happens to the others.",
        factor=factor,
    )


def _batch_and_heads_swapped(mask, X):
    batch, heads = X.shape[:2]
    return mask.expand(batch, heads).reshape(heads, batch).T[:, :, None, None]


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
    "masks-averaged": known(
        "All examples get the mean of the masks.",
        "With (B, H) each example has a mask of its own.",
        spread=lambda mask, X: mask.reshape(-1, mask.shape[-1]).mean(0).reshape(1, -1, 1, 1),
    ),
    "only-on-or-off": _on_or_off(lambda mask: (mask != 0).to(mask.dtype)),
    "on-above-0": _on_or_off(lambda mask: (mask > 0).to(mask.dtype)),
    "on-at-1": _on_or_off(lambda mask: (mask == 1).to(mask.dtype)),
    "on-above-a-half": _on_or_off(lambda mask: (mask > 0.5).to(mask.dtype)),
    "rounded-down": _on_or_off(lambda mask: mask.trunc()),
    "rounded": _on_or_off(lambda mask: mask.round()),
    "from-0-to-1": known(
        "You limit the factors to 0 to 1.",
        "A factor may be any number, a negative one too.",
        factor=lambda mask: mask.clamp(0, 1),
    ),
    "minus-infinity": _minus(float("inf")),
    "minus-1e9": _minus(1e9),
    "no-axes": _no_axes(NO_AXES, lambda X, mask: X * mask),
    "no-axes-mask-first": _no_axes(NO_AXES, lambda X, mask: mask * X),
    "no-axes-einsum": _no_axes(NO_AXES, lambda X, mask: torch.einsum("bhld,d->bhld", X, mask)),
    "one-axis": _no_axes(ONE_AXIS, lambda X, mask: X * mask[..., None]),
    "one-axis-mask-first": _no_axes(ONE_AXIS, lambda X, mask: mask[..., None] * X),
    "no-axes-expanded": _no_axes(NO_AXES, lambda X, mask: X * mask.expand_as(X)),
    "no-axes-for-one-mask": _no_axes(
        NO_AXES, lambda X, mask: X * (mask if mask.dim() == 1 else mask[..., None, None])
    ),
    "one-axis-for-one-mask": _no_axes(
        ONE_AXIS, lambda X, mask: X * mask[(..., *[None] * mask.dim())]
    ),
    "one-axis-for-many-masks": _no_axes(
        "The axes of outputs are B, H, L, d, and two of them stand to the right of the heads. "
        "Broadcasting lines axes up from the right.",
        lambda X, mask: X * mask[(..., *[None] * (3 - mask.dim()))],
    ),
    "axis-for-the-examples-always": _for_one_mask(lambda X, mask: X * mask[None, ..., None, None]),
    "viewed-by-the-first-axis": _for_one_mask(lambda X, mask: X * mask.view(len(mask), 1, 1)),
    "heads-in-front": known(
        "Your result has the heads in front of the examples.",
        "What comes back has the shape of outputs: (B, H, L, d). torch.stack makes a new axis in "
        "front, unless told where.",
        apply=lambda X, factors: (X * factors).transpose(0, 1),
    ),
    "two-axes-in-front": _for_one_mask(lambda X, mask: X * mask[:, None, None]),
    "two-axes-in-front-mask-first": _for_one_mask(lambda X, mask: mask[:, None, None] * X),
    "viewed-as-one-mask": _for_one_mask(lambda X, mask: X * mask.view(1, -1, 1, 1)),
    "viewed-as-one-mask-first": _for_one_mask(lambda X, mask: mask.view(1, -1, 1, 1) * X),
    "viewed-by-the-heads": _for_one_mask(lambda X, mask: X * mask.view(1, X.shape[1], 1, 1)),
    "viewed-by-the-heads-only": _for_one_mask(lambda X, mask: X * mask.view(X.shape[1], 1, 1)),
    "batch-axis-always": _for_one_mask(lambda X, mask: X * mask[None, :, None, None]),
    "batch-axis-always-mask-first": _for_one_mask(lambda X, mask: mask[None, :, None, None] * X),
    "sums-for-one-mask": _for_one_mask(lambda X, mask: torch.einsum("bhld,h->bhld", X, mask)),
    "sums-for-one-mask-first": _for_one_mask(lambda X, mask: torch.einsum("h,bhld->bhld", mask, X)),
    "factors-by-first-axis": _for_one_mask(_by_heads(lambda mask, h: mask[h])),
    "diagonal-of-one-mask": _for_one_mask(
        lambda X, mask: torch.einsum("gh,bhld->bgld", torch.diag(mask), X)
    ),
    "batch-axis-never": _for_many_masks(lambda X, mask: X * mask[:, :, None, None]),
    "sizes-of-outputs": _for_many_masks(lambda X, mask: X * mask.view(*X.shape[:2], 1, 1)),
    "sizes-of-outputs-reshaped": known(
        twin="sizes-of-outputs", wrong=lambda X, mask: X * mask.reshape(*X.shape[:2], 1, 1)
    ),
    "sizes-of-the-mask": _for_many_masks(
        lambda X, mask: X * mask.view(mask.shape[0], mask.shape[1], 1, 1)
    ),
    "sums-for-many-masks": _for_many_masks(lambda X, mask: torch.einsum("bhld,bh->bhld", X, mask)),
    "sums-for-many-masks-first": _for_many_masks(
        lambda X, mask: torch.einsum("bh,bhld->bhld", mask, X)
    ),
    "factors-without-axes": known(
        "You multiply a head by its factors. In a mask of (B, H) these are one for each example, "
        "and they fall on the features.",
        "outputs[:, h] has the axes B, L, d. Broadcasting lines axes up from the right.",
        wrong=_by_heads(lambda mask, h: mask[..., h]),
    ),
    "scaled-up": _scaled_up(lambda mask: mask / mask.mean()),
    "scaled-up-for-each-example": _scaled_up(lambda mask: mask / mask.mean(-1, keepdim=True)),
    "weighted-mean": known(
        "You divide the factors by their sum.",
        "Factors are no weights: with three factors of 1 nothing changes.",
        factor=lambda mask: mask / mask.sum(-1, keepdim=True),
    ),
    "softmax-of-the-mask": known(
        "You take a softmax of the factors.",
        "Each head is multiplied by its factor as it is.",
        factor=lambda mask: mask.softmax(-1),
    ),
    "batch-and-heads-swapped": known(
        "You give a mask of (B, H) the shape (H, B) before you use it.",
        "view and reshape fill new axes in the order of the numbers. Then a factor belongs to "
        "another example and another head.",
        spread=_batch_and_heads_swapped,
    ),
    "added": known(
        "You add the factors.",
        "A factor is multiplied: 0 makes all of a head's outputs 0.",
        apply=lambda X, factors: X + factors,
    ),
    "heads-added-up": known(
        "You add up the heads.",
        "What comes back has the shape of outputs: (B, H, L, d). W_o joins the heads later.",
        apply=lambda X, factors: (X * factors).sum(dim=1),
    ),
    "heads-joined": known(
        "You join the heads.",
        "What comes back has the shape of outputs: (B, H, L, d).",
        apply=lambda X, factors: (X * factors).transpose(1, 2).flatten(2),
    ),
    "kept-heads-only-of-one-mask": known(
        "You return the heads that are left, without the others.",
        "Masking keeps all sizes: W_o still expects every head.",
        wrong=lambda X, mask: X[:, mask != 0],
    ),
    "kept-heads-only": known(
        "You return the heads that are left, without the others.",
        "Masking keeps all sizes: W_o still expects every head.",
        wrong=lambda X, mask: X[:, mask.reshape(-1, mask.shape[-1])[0] != 0],
    ),
}

TASK = Task(
    "08-mask_heads",
    mask_heads,
    mask_cases,
    mistakes=read_again(SWITCHING, MASKS),
    build=build_mask,
    alone=(
        "minus-infinity",
        "minus-1e9",
        "kept-heads-only",
        "masks-averaged",
        "only-on-or-off",
        "on-above-0",
        "on-at-1",
        "on-above-a-half",
        "rounded-down",
        "rounded",
        "from-0-to-1",
        "scaled-up",
        "scaled-up-for-each-example",
        "weighted-mean",
        "softmax-of-the-mask",
        "batch-and-heads-swapped",
        "added",
        "heads-added-up",
        "heads-joined",
        "heads-in-front",
    ),
    number=1,
)
