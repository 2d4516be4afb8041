"""Task 8.1, mask_heads: a factor on the output of each head."""

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

    shape = (2, 3, 2, 5)
    return [
        case("one mask for 3 heads", shape, 3),
        case("a mask for each of 2 examples", shape, 2, 3),
        case("as many queries as heads", (2, 5, 5, 3), 5),
        case("heads as wide as there are heads", (3, 4, 2, 4), 4),
        case("all sizes equal, a mask for each example", (3, 3, 3, 3), 3, 3),
        case("as many examples as queries", (4, 3, 4, 2), 4, 3),
        case("one head", (3, 1, 2, 5), 1),
        Case(
            "factors besides 0 and 1", {"outputs": draw.normal(*shape), "head_mask": draw.normal(3)}
        ),
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
    "only-on-or-off": known(
        "You treat each factor as on or off.",
        "A factor may be any number. To take a gradient for it, it has to be multiplied.",
        factor=lambda mask: (mask != 0).to(mask.dtype),
    ),
    "minus-infinity": known(
        "Masked heads give -inf.",
        "Scores are masked with -inf, because a softmax follows. Outputs of heads go into W_o.",
        apply=lambda X, factors: X.masked_fill((factors == 0).expand_as(X), float("-inf")),
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
    alone=("minus-infinity", "kept-heads-only", "masks-averaged", "only-on-or-off"),
    number=1,
)
