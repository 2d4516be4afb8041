"""Task 8.2, head_importance: the mean size of the gradients, divided by the norm of each layer."""

import torch

from mha_classroom.checks.forms import any_of, like
from mha_classroom.checks.task import Case, Task, and_in_float32, known, read_again, unchanged

IMPORTANCE = "Importance: which head should go first?"


def head_importance(gradients):
    sizes = gradients.abs().mean(dim=0)  # (layers, H)
    norms = sizes.norm(dim=1, keepdim=True)
    return sizes / torch.where(norms == 0, 1.0, norms)


@and_in_float32
def importance_cases(draw):
    """Layers of very different size, one that does nothing, sizes that are equal and not."""

    def case(name, gradients):
        return Case(name, {"gradients": gradients})

    small = torch.tensor([[[3.0, 0.0], [2.0, 4.0]], [[-3.0, 4.0], [-2.0, 2.0]]]).double()
    balanced = torch.tensor([[[2.0, -3.0], [1.0, 2.0]], [[-2.0, 3.0], [4.0, 1.0]]]).double()
    uneven = draw.normal(7, 3, 5) * torch.tensor([1e-20, 1.0, 30.0])[:, None].double()
    idle = draw.normal(5, 4, 3)
    idle[:, 2] = 0
    idle_head = draw.normal(6, 2, 3)
    idle_head[:, 1, 0] = 0
    return [
        case("2 examples, 2 layers, 2 heads", small),
        case("5 examples, 2 layers, 3 heads", draw.normal(5, 2, 3)),
        case("3 layers of very different size", uneven),
        case("as many layers as heads", draw.normal(2, 3, 3)),
        case("one example", draw.normal(1, 4, 2)),
        case("the gradients of layer 0 add up to 0", balanced),
        case("one layer", draw.normal(6, 1, 5)),
        case("one head a layer", draw.normal(6, 3, 1)),
        case("all gradients of one head are 0", idle_head),
        case("all gradients of layer 2 are 0", idle),
        case("gradients that are tiny", 1e-60 * draw.normal(5, 2, 3)),
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


def _by_norm_of_signed_means(gradients):
    sizes = gradients.abs().mean(dim=0)
    norms = gradients.mean(dim=0).norm(dim=1, keepdim=True)
    return sizes / norms.masked_fill(sizes.sum(dim=1, keepdim=True) == 0, 1.0)


def _shows_small_number(inputs, importance):
    """Whether each layer is the right one, made smaller the more the smaller its gradients are."""
    right = head_importance(inputs["gradients"])
    if not torch.is_tensor(importance) or importance.shape != right.shape:
        return False
    norms, lengths = _layer_norms(inputs["gradients"]), importance.norm(dim=1)
    if not torch.allclose(importance, right * lengths[:, None], rtol=1e-6, atol=1e-9):
        return False
    if (lengths[norms > 0.01] < 0.5).any():  # no small norm
        return False
    lengths = lengths[norms > 0][norms[norms > 0].argsort()]
    return bool((lengths <= 1 + 1e-6).all() and (lengths.diff() >= -1e-6).all())


def _layer_norms(gradients):
    return gradients.abs().mean(dim=0).norm(dim=1)


def _if_no_norm_is_0(otherwise):
    def head_importance(gradients):
        sizes = gradients.abs().mean(dim=0)
        norms = sizes.norm(dim=1, keepdim=True)
        return otherwise(sizes) if (norms == 0).any() else sizes / norms

    return head_importance


def _0_if_one_head_is_0(gradients):
    right = head_importance(gradients)
    return right.masked_fill((right == 0).any(dim=1, keepdim=True), 0.0)


def _other_where_all_are_0(share):
    def answer(gradients):
        right = head_importance(gradients)
        nothing = (right == 0).all(dim=1, keepdim=True)
        return torch.where(nothing, share(right.shape[1]), right)

    return answer


def _standardised(corrected):
    def answer(gradients):
        sizes = gradients.abs().mean(dim=0)
        off = sizes - sizes.mean(dim=1, keepdim=True)
        return off / sizes.std(dim=1, keepdim=True, correction=int(corrected))

    return answer


def _examples_made_1(gradients):
    return gradients / gradients.norm(dim=2, keepdim=True).clamp(min=1e-300)


def _divided_by(what, norm):
    return known(
        f"You divide each layer by {what}.",
        "The task asks for the l2 norm: the root of the sum of squares.",
        norm=norm,
    )


NORMALISED = {
    "size-of-the-mean": known(
        "You take the mean, or the sum, first and its size afterwards.",
        "A head that helps one example and hurts another one then seems to do nothing.",
        size=unchanged,
        finish=torch.abs,
    ),
    "squared": known(
        "You take squares, where the formula has absolute values.",
        "A square gives the few examples with a large gradient much more say.",
        size=torch.square,
    ),
    "root-of-mean-square": known(
        "You take the root of the mean square of the gradients, or their l2 norm over the "
        "examples.",
        "The formula has the mean of absolute values.",
        size=torch.square,
        finish=torch.sqrt,
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
        "You divide by norms that are taken over the layers: one for head 0 of all of them, one "
        "for head 1, and so on.",
        "Head 3 of one layer has nothing to do with head 3 of another. Over which axis do you "
        "stay in one layer?",
        norm=lambda X: X.norm(dim=0, keepdim=True),
    ),
    "divided-by-the-sum": _divided_by("the sum of its importances", lambda X: X.sum(1, True)),
    "divided-by-the-largest": _divided_by("its largest importance", lambda X: X.amax(1, True)),
    "zero-by-zero": known(
        "A layer whose gradients are all 0 gives NaN.",
        "There 0 is divided by 0. Its heads have importance 0.",
        guard=unchanged,
    ),
    **{
        id: known(
            f"Where one layer has the norm 0, all layers {what}.",
            "The others have norms that are not 0: each of them is divided by its own.",
            wrong=_if_no_norm_is_0(otherwise),
        )
        for id, what, otherwise in (
            ("one-norm-of-0-none-divided", "stay undivided", unchanged),
            ("one-norm-of-0-all-become-0", "become 0", torch.zeros_like),
        )
    },
    "root-of-the-mean-for-norm": _divided_by(
        "the root of the mean of the squares", lambda X: X.square().mean(1, True).sqrt()
    ),
    "norm-without-its-axis": known(
        "Your norms have the shape (layers,). In a division they fall on the heads.",
        "Broadcasting lines axes up from the right, and there stand the heads. With as many layers "
        "as heads no error is raised, and heads are divided by the norms of other layers.",
        norm=lambda X: X.norm(dim=1),
    ),
    "norm-of-the-gradients": known(
        "You divide each layer by the norm of all its gradients.",
        "Divide by the norm of what you divide: of the means that the heads of a layer have.",
        wrong=lambda G: G.abs().mean(dim=0) / G.norm(dim=(0, 2)).clamp(min=1e-300)[:, None],
    ),
    "signed": known(
        "You take the mean, or the sum, of the gradients with their signs.",
        "Importance asks how much a head changes the loss, in whichever direction.",
        size=unchanged,
    ),
    "norm-without-root": _divided_by("the sum of squares", lambda X: X.square().sum(1, True)),
    "softmax": known(
        "You take a softmax in each layer.",
        "The task asks for a division by the l2 norm: the root of the sum of squares.",
        wrong=lambda G: G.abs().mean(dim=0).softmax(dim=1),
    ),
}

# Not looked for together with another one: they hide it, or are seldom made.
ALONE = {
    "norm-of-the-mean-with-signs": known(
        "You divide each layer by the norm of the mean gradients with their signs.",
        "What the heads of a layer are divided by is the norm of their importances, which are "
        "means of sizes.",
        wrong=_by_norm_of_signed_means,
    ),
    "largest-example": known(
        "You take the largest gradient of all examples.",
        "The formula has a mean over examples.",
        gather=lambda X: X.amax(dim=0),
    ),
    "examples-normalised": known(
        "You divide each example's gradients by their norm, before the mean.",
        "Then examples with small gradients count as much as those with large ones. First the "
        "mean over the examples, then the norm.",
        **any_of(
            build_importance,
            {"before": _examples_made_1, "norm": lambda X: torch.ones_like(X)},
            {"before": _examples_made_1},
        ),
    ),
    "one-head-of-0": known(
        "Where one head of a layer has the importance 0, all heads of the layer get it.",
        "Only if all gradients of a layer are 0, its norm is 0.",
        wrong=_0_if_one_head_is_0,
    ),
    "equal-where-all-are-0": known(
        "In a layer whose gradients are all 0 your heads get importances that are not 0.",
        "Nothing is divided there: its heads have importance 0.",
        wrong=_other_where_all_are_0(lambda H: H**-0.5),
        shows=like(*map(_other_where_all_are_0, (lambda H: H**-0.5, lambda H: 1 / H, lambda H: 1))),
    ),
    "sum-without-norm": known(
        "You add the sizes of all examples up, and do not divide by the norm of the layer.",
        "The lesson's importance is a mean. Then each layer is divided by its norm.",
        gather=lambda X: X.sum(dim=0),
        norm=lambda X: torch.ones_like(X),
    ),
    "standardised": known(
        "You subtract the mean of each layer and divide by its standard deviation.",
        "The task asks for a division by the l2 norm, and nothing is subtracted.",
        wrong=_standardised(True),
        shows=like(_standardised(True), _standardised(False)),
    ),
    "divided-by-the-mean": _divided_by("its mean importance", lambda X: X.mean(1, True)),
    "divided-by-the-deviation": _divided_by(
        "its standard deviation", lambda X: X.std(1, keepdim=True)
    ),
    "median-of-the-examples": known(
        "You take the median over the examples.",
        "The lesson's importance is a mean: every example counts as much as its gradient says.",
        gather=lambda X: X.median(dim=0).values,
    ),
    "one-example-only": known(
        "You look at one example only, the first or the last.",
        "The lesson's importance is the mean over all examples.",
        **any_of(build_importance, gather=(lambda X: X[0], lambda X: X[-1])),
    ),
    "mean-over-another-axis": known(
        "You take the mean over the layers, or over the heads.",
        "The axes of gradients are examples, layers, heads. The mean is over the examples.",
        **any_of(build_importance, gather=(lambda X: X.mean(dim=1), lambda X: X.mean(dim=2))),
    ),
    "small-number": known(
        "Layers with small norms come out too small. Perhaps you add a small number to every norm, "
        "or raise norms below a limit to that limit, or take them for 0.",
        "Where gradients are small, as after long training, that changes the result. Only a norm "
        "of exactly 0 needs care.",
        guard=lambda norms: norms + 1e-8,
        shows=_shows_small_number,
    ),
}


def importance_stages(inputs):
    sizes = inputs["gradients"].abs()
    if sizes.amax() < 1e-9:  # as good as 0, and zeros may come of anything
        return {}
    return {
        "the absolute values": sizes,
        "the mean of the absolute values": sizes.mean(dim=0),
        "the norm of each layer": _layer_norms(inputs["gradients"]),
    }


TASK = Task(
    "08-head_importance",
    head_importance,
    importance_cases,
    mistakes=read_again(IMPORTANCE, NORMALISED | ALONE),
    build=build_importance,
    stages=importance_stages,
    skippable=True,
    alone=tuple(ALONE),
    number=2,
)
