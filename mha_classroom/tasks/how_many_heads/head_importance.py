"""Task 8.2, head_importance: the mean size of the gradients, divided by the norm of each layer."""

import torch

from mha_classroom.checks.task import Case, Task, known, read_again, unchanged

IMPORTANCE = "Importance: which head should go first?"


def head_importance(gradients):
    sizes = gradients.abs().mean(dim=0)  # (layers, H)
    norms = sizes.norm(dim=1, keepdim=True)
    return sizes / torch.where(norms == 0, 1.0, norms)


def importance_cases(draw):
    """Layers of very different size, one that does nothing, sizes that are equal and not."""

    def case(name, gradients):
        return Case(name, {"gradients": gradients})

    small = torch.tensor([[[3.0, 0.0], [2.0, 4.0]], [[-3.0, 4.0], [-2.0, 2.0]]]).double()
    uneven = draw.normal(7, 3, 5) * torch.tensor([0.001, 1.0, 30.0])[:, None].double()
    idle = draw.normal(5, 4, 3)
    idle[:, 2] = 0
    return [
        case("2 examples, 2 layers, 2 heads", small),
        case("5 examples, 2 layers, 3 heads", draw.normal(5, 2, 3)),
        case("3 layers of very different size", uneven),
        case("as many layers as heads", draw.normal(2, 3, 3)),
        case("one example", draw.normal(1, 4, 2)),
        case("one layer", draw.normal(6, 1, 5)),
        case("one head a layer", draw.normal(6, 3, 1)),
        case("all gradients of layer 2 are 0", idle),
        case("gradients that are tiny", 1e-14 * draw.normal(5, 2, 3)),
    ]


def build_importance(
    size=torch.abs,
    gather=lambda X: X.mean(dim=0),
    finish=unchanged,
    norm=lambda X: X.norm(dim=1, keepdim=True),
    guard=lambda norms: torch.where(norms == 0, 1.0, norms),
    before=unchanged,
):
    def head_importance(gradients):
        sizes = finish(gather(size(before(gradients))))  # (layers, H)
        return sizes / guard(norm(sizes))

    return head_importance


def _added(size):
    return known(
        "You add a small number to each norm.",
        "Where gradients are small, as after long training, that changes the result. Only a norm "
        "of exactly 0 needs care.",
        guard=lambda norms: norms + size,
    )


def _clamped(size):
    return known(
        "You do not let a norm fall below a small number.",
        "Where gradients are smaller, as after long training, that changes the result. Only a "
        "norm of exactly 0 needs care.",
        guard=lambda norms: norms.clamp(min=size),
    )


def _larger(size):
    """Added or clamped at: where norms are much smaller, both give the same."""
    return known(
        "Small norms become larger: you add a small number to them, or do not let them fall below "
        "one.",
        "Where gradients are small, as after long training, that changes the result. Only a norm "
        "of exactly 0 needs care.",
        guard=lambda norms: norms + size,
    )


NORMALISED = {
    "size-of-the-mean": known(
        "You take the mean first and its size afterwards.",
        "A head that helps one example and hurts another one then seems to do nothing.",
        size=unchanged,
        finish=torch.abs,
    ),
    "signed": known(
        "You take the mean of the gradients with their signs.",
        "Importance asks how much a head changes the loss, in whichever direction.",
        size=unchanged,
    ),
    "squared": known(
        "You take squares, where the formula has absolute values.",
        "A square gives the few examples with a large gradient much more say.",
        size=torch.square,
    ),
    "root-of-mean-square": known(
        "You take the root of the mean square of the gradients.",
        "The formula has the mean of absolute values.",
        size=torch.square,
        finish=torch.sqrt,
    ),
    "largest-example": known(
        "You take the largest gradient of all examples.",
        "The formula has a mean over examples.",
        gather=lambda X: X.amax(dim=0),
    ),
    "not-normalised": known(
        "You do not divide by the norm of the layer.",
        "The means over the examples are right. Without the division a layer whose gradients are "
        "all large would keep all of its heads.",
        norm=lambda X: torch.ones_like(X),
    ),
    "one-norm-for-all": known(
        "You divide all layers by one norm.",
        "Then the order of the heads stays what it was. Each layer has a norm of its own.",
        norm=lambda X: X.norm(),
    ),
    "norm-over-layers": known(
        "You divide by norms that are taken over the layers, one for each number of a head.",
        "Head 3 of one layer has nothing to do with head 3 of another. Over which axis do you "
        "stay in one layer?",
        norm=lambda X: X.norm(dim=0, keepdim=True),
    ),
    "divided-by-the-sum": known(
        "You divide each layer by the sum of its importances.",
        "The task asks for the l2 norm: the root of the sum of squares.",
        norm=lambda X: X.sum(dim=1, keepdim=True),
    ),
    "divided-by-the-largest": known(
        "You divide each layer by its largest importance.",
        "The task asks for the l2 norm: the root of the sum of squares.",
        norm=lambda X: X.amax(dim=1, keepdim=True),
    ),
    "norm-without-root": known(
        "You divide by the sum of squares.",
        "The norm is the root of that.",
        norm=lambda X: X.square().sum(dim=1, keepdim=True),
    ),
    "examples-normalised": known(
        "You divide each example's gradients by their norm, before the mean.",
        "Then examples with small gradients count as much as those with large ones. First the "
        "mean over the examples, then the norm.",
        before=lambda X: X / X.norm(dim=2, keepdim=True).clamp(min=1e-300),
        norm=lambda X: torch.ones_like(X),
    ),
    "zero-by-zero": known(
        "A layer whose gradients are all 0 gives NaN.",
        "There 0 is divided by 0. Its heads have importance 0.",
        guard=unchanged,
    ),
    "something-added": _added(1e-12),
    "clamped": _clamped(1e-12),
    "added-1e-6": _added(1e-6),
    "larger-by-1e-8": _larger(1e-8),
    "larger-by-1e-10": _larger(1e-10),
}

TASK = Task(
    "08-head_importance",
    head_importance,
    importance_cases,
    mistakes=read_again(IMPORTANCE, NORMALISED),
    build=build_importance,
    alone=(
        "examples-normalised",
        "largest-example",
        "clamped",
        "norm-without-root",
        "signed",
        "added-1e-6",
        "larger-by-1e-8",
        "larger-by-1e-10",
    ),
    number=2,
)
