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


def _shows_small_number(inputs, importance):
    """Whether each layer is the right one, made smaller the more the smaller its gradients are."""
    right = head_importance(inputs["gradients"])
    if not torch.is_tensor(importance) or importance.shape != right.shape:
        return False
    norms, lengths = _layer_norms(inputs["gradients"]), importance.norm(dim=1)
    if not torch.allclose(importance, right * lengths[:, None], rtol=1e-6, atol=1e-9):
        return False
    lengths = lengths[norms > 0][norms[norms > 0].argsort()]
    return bool((lengths <= 1 + 1e-6).all() and (lengths.diff() >= -1e-6).all())


def _shows_idle_share(inputs, importance):
    """Whether a layer whose gradients are all 0 has importances, and the others are right."""
    right, idle = head_importance(inputs["gradients"]), _layer_norms(inputs["gradients"]) == 0
    if not torch.is_tensor(importance) or importance.shape != right.shape:
        return False
    alike = importance[idle].isfinite() & (importance[idle] == importance[idle][:, :1])
    return bool(torch.allclose(importance[~idle], right[~idle]) and alike.all())


def _layer_norms(gradients):
    return gradients.abs().mean(dim=0).norm(dim=1)


def _stretched(gradients):
    sizes = gradients.abs().mean(dim=0)
    low, high = sizes.amin(1, keepdim=True), sizes.amax(1, keepdim=True)
    return (sizes - low) / (high - low)


def _normal(sizes):
    return sizes / sizes.norm(dim=-1, keepdim=True)


def _standardised(sizes):
    return ((sizes - sizes.mean(1, keepdim=True)) / sizes.std(1, keepdim=True)).nan_to_num(0.0)


def _over(gradients, norms):
    return gradients.abs().mean(dim=0) / torch.where(norms == 0, 1.0, norms)


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
    "root-of-the-mean-for-norm": known(
        "You divide by the root of the mean of the squares of a layer.",
        "The norm is the root of their sum.",
        norm=lambda X: X.square().mean(dim=1, keepdim=True).sqrt(),
    ),
    "divided-by-the-mean": known(
        "You divide each layer by its mean importance.",
        "The task asks for the l2 norm: the root of the sum of squares.",
        norm=lambda X: X.mean(dim=1, keepdim=True),
    ),
    "divided-by-the-deviation": known(
        "You divide each layer by its standard deviation.",
        "The task asks for the l2 norm: the root of the sum of squares.",
        norm=lambda X: X.std(dim=1, keepdim=True),
    ),
    "norm-without-its-axis": known(
        "Your norms have the shape (layers,). In a division they fall on the heads.",
        "Broadcasting lines axes up from the right, and there stand the heads. With as many layers "
        "as heads no error is raised, and each head is divided by the norm of another layer.",
        norm=lambda X: X.norm(dim=1),
    ),
    "sum-without-its-axis": known(
        "You divide by the sums of the layers, and they fall on the heads.",
        "Broadcasting lines axes up from the right. And the task asks for the l2 norm.",
        norm=lambda X: X.sum(dim=1),
    ),
    "norm-of-the-gradients": known(
        "You divide each layer by the norm of all its gradients.",
        "Divide by the norm of what you divide: of the means that the heads of a layer have.",
        wrong=lambda G: _over(G, G.norm(dim=(0, 2))[:, None]),
    ),
    "norm-of-each-head": known(
        "You divide each head by the norm of its own gradients.",
        "Then heads with small gradients count as much as others. One norm belongs to a layer.",
        wrong=lambda G: _over(G, G.norm(dim=0)),
    ),
    "softmax": known(
        "You take a softmax in each layer.",
        "The task asks for a division by the l2 norm: the root of the sum of squares.",
        wrong=lambda G: G.abs().mean(dim=0).softmax(dim=1),
    ),
    "stretched": known(
        "You stretch each layer to the range from 0 to 1.",
        "The task asks for a division by the l2 norm: the root of the sum of squares.",
        wrong=_stretched,
    ),
    "mean-over-layers": known(
        "You take the mean over the layers.",
        "The axes of gradients are examples, layers, heads. The mean is over the examples.",
        gather=lambda X: X.mean(dim=1),
    ),
    "mean-over-heads": known(
        "You take the mean over the heads.",
        "The axes of gradients are examples, layers, heads. The mean is over the examples.",
        gather=lambda X: X.mean(dim=2),
    ),
    "layers-averaged": known(
        "You take the mean over the layers, too: there is one number for each head.",
        "Heads of different layers have nothing in common but a number.",
        wrong=lambda G: _normal(G.abs().mean(dim=(0, 1))),
    ),
    "no-mean": known(
        "You take no mean: your result still has an axis for the examples.",
        "Asked for is one number for each head: (layers, H).",
        wrong=lambda G: (G.abs() / G.norm(dim=2, keepdim=True)).nan_to_num(0.0),
    ),
    "standardised": known(
        "You subtract the mean of each layer and divide by its standard deviation.",
        "The task asks for a division by the l2 norm: the root of the sum of squares.",
        wrong=lambda G: _standardised(G.abs().mean(dim=0)),
    ),
    "median": known(
        "You take the median over the examples.",
        "The formula has a mean.",
        gather=lambda X: X.median(dim=0).values,
    ),
    "transposed": known(
        "Your result has the axes (H, layers).",
        "Asked for is (layers, H).",
        wrong=lambda G: head_importance(G).T,
    ),
    "small-number": known(
        "You treat small norms in a way of their own: you add a small number to them, do not let "
        "them fall below one, or take them for 0.",
        "Where gradients are small, as after long training, that changes the result. Only a norm "
        "of exactly 0 needs care.",
        guard=lambda norms: norms + 1e-8,
        shows=_shows_small_number,
    ),
    "idle-layer-shared": known(
        "In a layer whose gradients are all 0, heads have an importance other than 0.",
        "Nothing that they do changes the loss. 0 / 0 is NaN: what do you put in its place?",
        wrong=lambda G: (G.abs().mean(dim=0) / _layer_norms(G)[:, None]).nan_to_num(1.0),
        shows=_shows_idle_share,
    ),
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
        "norm-without-root",
        "signed",
        "small-number",
        "divided-by-the-mean",
        "divided-by-the-deviation",
        "sum-without-its-axis",
        "mean-over-layers",
        "mean-over-heads",
        "median",
    ),
    number=2,
)
