"""Task 12.8, training_step: a linear layer on frozen vectors, one step of gradient descent."""

import math

import torch

from mha_classroom.checks.examining import total
from mha_classroom.checks.task import Case, Task, all_but, in_float32, known, read_again


def step_cases(draw):
    def case(name, texts, width, classes, scale=1.0, targets=None, **rate):
        given = draw.integers(0, classes - 1, texts) if targets is None else targets
        inputs = {
            "W": draw.normal(classes, width, scale=scale),
            "b": draw.normal(classes, scale=scale),
            "vectors": draw.normal(texts, width),
            "targets": torch.as_tensor(given),
        }
        return Case(name, inputs | rate)

    two = [[1.0, 0.0], [0.0, 2.0]]
    small = {"W": torch.zeros(2, 2), "b": torch.zeros(2), "vectors": torch.tensor(two)}
    small = {name: X.double() for name, X in small.items()} | {"targets": torch.tensor([0, 1])}
    # Logits so far apart that each probability is 0 or 1, and nothing is rounded.
    apart = {"W": torch.tensor([[200.0, 0.0], [0.0, 300.0]]), "b": torch.tensor([1.0, 2.0])}
    apart |= {"vectors": torch.tensor(two), "targets": torch.tensor([0, 1])}
    return [
        Case("2 texts, all weights 0, rate 1", small | {"rate": 1.0}),
        case("no rate given", 7, 5, 3),
        case("11 texts, 3 classes", 11, 2, 3, rate=0.5),
        case("one text", 1, 5, 2, targets=[1], rate=0.5),
        case("as many texts as classes and features", 5, 5, 5, rate=2.0),
        case("classes without a text", 5, 3, 7, targets=[2, 5, 2, 0, 2], rate=0.3),
        case("all texts of one class", 3, 7, 2, targets=[1, 1, 1], rate=0.7),
        _wrong_by_far(case("logits in the thousands", 5, 11, 3, scale=1000.0, rate=100.0), draw),
        _far_below(case("one text's logits far below those of the others", 4, 5, 3, rate=0.5)),
        case("a class with two texts more than another", 13, 3, 5, rate=1.5),
        in_float32(Case("numbers in float32", apart | {"rate": 0.5})),
        case("vectors of width 1", 3, 1, 2, targets=[0, 1, 1], rate=0.5),
        case("one class", 3, 2, 1, rate=0.5),
        case("rate 0", 3, 2, 3, rate=0.0),
    ]


def _wrong_by_far(case, draw):
    """All texts have logits near 3000, 1000 and -2000, and the first belongs to the class with the
    lowest, so that the loss is large."""
    table = draw.normal(5, 3, scale=30.0)
    for row in table:
        row += torch.tensor([3000.0, 1000.0, -2000.0])[draw.normal(3).argsort()]
    _set_logits(case, slice(None), table)
    case.inputs["targets"][0] = table[0].argmin()
    return case


def _far_below(case):
    """The second text's powers all become 0, if the largest logit of another text is taken off."""
    _set_logits(case, slice(1, 2), torch.tensor([[-5000.0, -5001.0, -5002.0]]).double())
    return case


def _set_logits(case, texts, wanted):
    W, b, vectors = (case.inputs[name] for name in ("W", "b", "vectors"))
    vectors[texts] = (wanted - b) @ torch.linalg.pinv(W).T


def _logits(W, b, vectors):
    return vectors @ W.T + b  # (N, C)


def _one_hot(logits, targets):
    return (torch.arange(logits.shape[1]) == targets[:, None]).to(logits.dtype)


def _cross_entropy(logits, targets):
    return -logits.log_softmax(1)[torch.arange(len(targets)), targets].mean()


def _slope(logits, targets):
    """The gradient of the mean loss with respect to the logits."""
    return (logits.softmax(1) - _one_hot(logits, targets)) / len(targets)


def step_stages(inputs):
    W, b, vectors = (inputs[name] for name in ("W", "b", "vectors"))
    logits = _logits(W, b, vectors)
    return {"the logits": logits, "the softmax of the logits": logits.softmax(1)}


def build_step(
    logits=_logits,
    cost=_cross_entropy,
    slope=_slope,
    of_W=lambda error, vectors: error.T @ vectors,
    of_b=lambda error: error.sum(0),
    move=lambda parameter, rate, gradient: parameter - rate * gradient,
    finish=lambda loss, W, b: (loss, W, b),
):
    """logits: from W, b and vectors. cost, slope: the loss and its gradient, from logits and
    targets. of_W, of_b: the gradients of both, from the slope. move: a parameter. finish: order.
    """

    def training_step(W, b, vectors, targets, rate=0.1):
        scores = logits(W, b, vectors)
        error = slope(scores, targets)
        new_W = move(W, rate, of_W(error, vectors))
        return finish(float(cost(scores, targets)), new_W, move(b, rate, of_b(error)))

    return training_step


@total
def loss_as_number(inputs, value):
    """The loss as a float, where it is a tensor of one: of NaN, too, a tensor is like a number."""
    if not isinstance(value, (tuple, list)) or len(value) != 3:
        return value
    loss, *moved = value
    if torch.is_tensor(loss) and loss.dim() == 0 and loss.is_floating_point():
        loss = loss.item()
    return type(value)([loss, *moved]) if type(value) in (tuple, list) else value


def _naive_softmax(logits):
    powers = logits.exp()
    return powers / powers.sum(1, keepdim=True)


def _naive_cost(logits, targets):
    return -_naive_softmax(logits)[torch.arange(len(targets)), targets].log().mean()


def _naive_slope(logits, targets):
    return (_naive_softmax(logits) - _one_hot(logits, targets)) / len(targets)


def _all_naive(W, b, vectors, targets, rate=0.1):
    return build_step(cost=_naive_cost, slope=_naive_slope)(W, b, vectors, targets, rate)


def _loss_afterwards(W, b, vectors, targets, rate=0.1):
    _, new_W, new_b = build_step()(W, b, vectors, targets, rate)
    return float(_cross_entropy(_logits(new_W, new_b, vectors), targets)), new_W, new_b


def _gradients(W, b, vectors, targets, rate=0.1):
    return build_step(move=lambda parameter, rate, gradient: gradient)(W, b, vectors, targets, rate)


def _loss_alone(wrong_as):
    """Whether W and b are right and the loss is wrong in a way; given both losses as numbers."""

    def shows(inputs, value):
        right, new_W, new_b = build_step()(*inputs.values())
        if not isinstance(value, tuple) or len(value) != 3:
            return False
        loss, *moved = value
        if torch.is_tensor(loss) and loss.dim():
            return False
        try:
            loss = float(loss)
        except (TypeError, ValueError, RuntimeError):
            return False
        for mine, wanted in zip(moved, (new_W, new_b), strict=True):
            if not torch.is_tensor(mine) or mine.shape != wanted.shape:
                return False
            if not torch.allclose(mine.double(), wanted.double(), rtol=1e-5, atol=1e-5):
                return False
        return wrong_as(loss, right)

    return shows


def _cut_off(loss, right):
    least = 0.95 * right if right < 10 else 0.0  # a probability may be small by chance
    return least - 1e-6 <= loss < right + 1e-6


def _not_finite(loss, right):
    return not math.isfinite(loss) or abs(loss - right) < 1e-5 * max(1, right)


def _no_infinity(logits, targets):
    own = logits.softmax(1)[torch.arange(len(targets)), targets]
    return -(own + 1e-9).log().mean()


def _one_by_one(W, b, vectors, targets, rate=0.1):
    """A step for each text, from where the one before has led."""
    made, total, count = build_step(), 0.0, len(vectors)
    for vector, target in zip(vectors, targets, strict=True):
        loss, W, b = made(W, b, vector[None], target[None], rate / count)
        total += loss / count
    return total, W, b


def _steps_one_by_one(W, b, vectors, targets, rate=0.1):
    loss, *_ = build_step()(W, b, vectors, targets, rate)
    return loss, *_one_by_one(W, b, vectors, targets, rate)[1:]


def _columns_of_all_targets(logits, targets):
    """1 taken from the columns of all targets, in every row."""
    error = logits.softmax(1)
    error[:, targets] -= 1
    return error / len(targets)


def _at_the_target_only(logits, targets):
    return (logits.softmax(1) - 1) * _one_hot(logits, targets) / len(targets)


def _narrow_one_hot(logits, targets):
    """one_hot with as many columns as the largest target needs."""
    return (logits.softmax(1) - torch.nn.functional.one_hot(targets)) / len(targets)


def _narrow_one_hot_first(logits, targets):
    """The same as the first operand, turned round: an error names it first."""
    return (torch.nn.functional.one_hot(targets) - logits.softmax(1)) / len(targets)


def _below_the_largest_of_all(logits):
    """The logarithm of the softmax with one maximum for all texts, infinite far below it."""
    lowered = logits - logits.max()
    return lowered - lowered.exp().sum(1, keepdim=True).log()


def _below_cost(logits, targets):
    return -_below_the_largest_of_all(logits)[torch.arange(len(targets)), targets].mean()


def _divided_below(logits):
    """The softmax with one maximum for all texts, 0 / 0 far below it."""
    powers = (logits - logits.max()).exp()
    return powers / powers.sum(1, keepdim=True)


def _below_divided(logits, targets):
    return -_divided_below(logits)[torch.arange(len(targets)), targets].log().mean()


def _below_slope(logits, targets):
    return (_divided_below(logits) - _one_hot(logits, targets)) / len(targets)


def _cut_off_at(limit, least=True):
    """The logits kept below a limit, and above minus that."""
    low = -limit if least else None
    return build_step(logits=lambda *given: _logits(*given).clamp(low, limit))


def _is_cut_off(inputs, value):
    """Whether loss, W and b come of logits that were cut off somewhere."""
    if not isinstance(value, tuple) or len(value) != 3:
        return False
    for limit in (10, 20, 30, 50, 60, 80, 88, 100, 500, 700, 709):
        for least in (True, False):
            wanted = _cut_off_at(limit, least)(*inputs.values())
            if all(_near(mine, right) for mine, right in zip(value, wanted, strict=True)):
                return True
    return False


def _near(mine, right):
    try:
        mine, right = (torch.as_tensor(X, dtype=torch.float64) for X in (mine, right))
    except (TypeError, ValueError, RuntimeError):
        return False
    return mine.shape == right.shape and torch.allclose(mine, right, rtol=1e-6, atol=1e-6)


def _squares(total):
    """Loss and slope of a squared error of the probabilities, whose softmax is not derived.

    total: over the classes of a text, a sum or a mean.
    """

    def cost(logits, targets):
        return total((logits.softmax(1) - _one_hot(logits, targets)).square()).mean()

    def slope(logits, targets):
        error = logits.softmax(1) - _one_hot(logits, targets)
        return 2 * error / len(targets) * total(torch.ones_like(error))[0] / error.shape[1]

    return {"cost": cost, "slope": slope}


def _squared_error(logits, targets):
    return (logits.softmax(1) - _one_hot(logits, targets)).square().mean()


STEP = {
    "uphill": known(
        "The step goes uphill: you add the gradient, or the sign of yours is turned round.",
        "The gradient points where the loss grows. A step that lowers it goes the other way.",
        move=lambda parameter, rate, gradient: parameter + rate * gradient,
    ),
    "rate-ignored": known(
        "Your step is as long as the gradient, whatever the rate is.",
        "rate says which part of the gradient is taken off.",
        move=lambda parameter, rate, gradient: parameter - gradient,
    ),
    **{
        f"rate-always-{rate}": known(
            f"Your step has the rate {rate}, whatever rate is.",
            "0.1 is what rate is when nobody says otherwise. The caller may ask for another.",
            move=lambda parameter, _, gradient, rate=rate: parameter - rate * gradient,
        )
        for rate in (0.1, 0.01)
    },
    "step-after-step": known(
        "You make a step for each text, and the next text meets W and b as that step left them.",
        "Asked for is one step for the whole batch: all texts are judged by the parameters that "
        "came in.",
        wrong=_one_by_one,
    ),
    "steps-one-by-one": known(
        "The loss is that of the whole batch, and then you make a step for each text: the next "
        "one meets W and b as that step left them.",
        "Asked for is one step for the whole batch: all texts are judged by the parameters that "
        "came in.",
        wrong=_steps_one_by_one,
    ),
    "nothing-moves": known(
        "Your new W and b are the old ones.",
        "The step is still to be made: each parameter less rate times its gradient, in a tensor of "
        "its own.",
        move=lambda parameter, rate, gradient: parameter,
    ),
    "bias-with-an-axis": known(
        "Your new b has an axis of length 1.",
        "It is one number for each class, (C,). Along which axis is the slope added up, and is "
        "that axis gone then?",
        of_b=lambda error: error.sum(0, keepdim=True),
    ),
    "gradients-returned": known(
        "You return the gradients in place of the new parameters.",
        "The step is still to be made: the new W is the old one, moved by the rate.",
        wrong=_gradients,
    ),
    "bias-not-moved": known(
        "W moves and b stays as it was.",
        "The bias is a parameter like the others, a number for each class. (Does your sum for b "
        "run over the classes as well as the texts? That sum is always 0.)",
        of_b=lambda error: 0 * error.sum(0),
    ),
    "weights-not-moved": known(
        "b moves and W stays as it was.",
        "Both are parameters, and both have a gradient.",
        of_W=lambda error, vectors: 0 * error.T @ vectors,
    ),
    "bias-left-out": known(
        "Your logits lack b.",
        "A linear layer gives each class a product with the vector, and its bias.",
        logits=lambda W, b, vectors: vectors @ W.T,
    ),
    "loss-summed": known(
        "Your loss is the sum over the texts.",
        "The mean was asked for, so that batches of different size can be compared.",
        cost=lambda logits, targets: _cross_entropy(logits, targets) * len(targets),
    ),
    "loss-divided-by-classes": known(
        "Your loss is divided by the number of classes, too: a mean over N · C numbers.",
        "Of each text one number counts, for its own class. The mean is over N texts.",
        cost=lambda logits, targets: _cross_entropy(logits, targets) / logits.shape[1],
    ),
    "gradient-summed": known(
        "Your gradients are sums over the texts; the loss is their mean.",
        "What is derived is the mean. With N texts your step is N times as long as it should be.",
        slope=lambda logits, targets: _slope(logits, targets) * len(targets),
    ),
    "all-summed": known(
        "You sum over the texts, in the loss and in the gradients.",
        "The mean was asked for. With sums the step grows with the number of texts.",
        cost=lambda logits, targets: _cross_entropy(logits, targets) * len(targets),
        slope=lambda logits, targets: _slope(logits, targets) * len(targets),
    ),
    "divided-by-classes": known(
        "You divide the gradient by the number of logits, classes included.",
        "The mean is over texts. The classes of one text share its one loss.",
        slope=lambda logits, targets: _slope(logits, targets) / logits.shape[1],
    ),
    "target-not-taken-off": known(
        "Your gradient is made of the probabilities alone.",
        "Then every class is pushed down, the right one too. What changes at the target?",
        slope=lambda logits, targets: logits.softmax(1) / len(targets),
    ),
    "no-softmax-in-the-gradient": known(
        "You take the target off the logits, not off the probabilities.",
        "That is the gradient of a squared error. Cross-entropy begins with a softmax.",
        slope=lambda logits, targets: (logits - _one_hot(logits, targets)) / len(targets),
    ),
    "targets-only": known(
        "You derive only through the logit of the target.",
        "The softmax divides by a sum over all classes, so each logit has a part in the loss.",
        slope=lambda logits, targets: -_one_hot(logits, targets) / len(targets),
    ),
    "target-alone": known(
        "Your gradient is 0 for all classes but the right one.",
        "The softmax divides by a sum over all classes, so each logit has a part in the loss. A "
        "wrong class has its whole probability as gradient.",
        slope=_at_the_target_only,
    ),
    "columns-of-all-targets": known(
        "You take 1 from the columns of all targets, in every row.",
        "[:, targets] picks these columns for every text. Each text has one target, its own: a "
        "pair of row and column.",
        slope=_columns_of_all_targets,
    ),
    **{
        id: known(
            "Your one-hot table has as many columns as the largest target needs, and the last "
            "class may have no text in the batch. (one_hot does that by itself.)",
            "How many classes there are is said by W and b. one_hot takes the number as its "
            "second argument.",
            slope=slope,
        )
        for id, slope in (
            ("one-hot-too-narrow", _narrow_one_hot),
            ("one-hot-too-narrow-in-front", lambda *given: -_narrow_one_hot_first(*given)),
        )
    },
    "softmax-over-texts": known(
        "Your softmax runs over the texts, in the loss and in the gradient.",
        "Each text has its own probabilities, one for each class. Which axis of (N, C) is that?",
        cost=lambda logits, targets: (
            -logits.log_softmax(0)[torch.arange(len(targets)), targets].mean()
        ),
        slope=lambda logits, targets: (
            (logits.softmax(0) - _one_hot(logits, targets)) / len(targets)
        ),
    ),
    "probability-for-loss": known(
        "Your loss is made of the probabilities, without a logarithm.",
        "Cross-entropy is minus the logarithm of the probability that the right class gets.",
        cost=lambda logits, targets: -logits.softmax(1)[torch.arange(len(targets)), targets].mean(),
    ),
    "sign-of-the-loss": known(
        "Your loss is negative.",
        "The logarithm of a probability is at most 0, and the loss is minus that.",
        cost=lambda logits, targets: -_cross_entropy(logits, targets),
    ),
    "loss-of-all-classes": known(
        "Your loss is a mean over all logarithms, those of the wrong classes too.",
        "Only the probability of each text's own class counts.",
        cost=lambda logits, targets: -logits.log_softmax(1).mean(),
    ),
    "loss-after-the-step": known(
        "Your loss is the one after the step.",
        "Asked for is the loss of the parameters that came in, from which the step was made.",
        wrong=_loss_afterwards,
    ),
    "infinite-loss": known(
        "Where the logits are large your loss is infinite or NaN.",
        "exp of 1000 is infinite, and the logarithm of a probability that was rounded to 0 is "
        "minus infinity. Take the logarithm before anything is rounded away: which function of "
        "torch gives the logarithm of a softmax at once?",
        cost=lambda logits, targets: (
            -logits.softmax(1)[torch.arange(len(targets)), targets].log().mean()
        ),
        shows=_loss_alone(_not_finite),
    ),
    **{
        id: known(
            "You take the largest logit of all texts off, not that of each row.",
            "Where a text's own logits are far below it, all its powers are rounded to 0, and 0 / "
            "0 or the logarithm of 0 comes out. Each text has a maximum of its own.",
            cost=cost,
            slope=_below_slope,
        )
        for id, cost in (
            ("one-maximum-for-all", _below_cost),
            ("one-maximum-for-all-and-divided", _below_divided),
        )
    },
    "logits-cut-off": known(
        "You cut the logits off where they are large.",
        "exp does not overflow then, but logits of 2000 and 1000 become the same. Taking the row's "
        "maximum off (lesson 1) changes no probability; log_softmax does that.",
        wrong=_cut_off_at(50),
        shows=_is_cut_off,
    ),
    "log-cut-off": known(
        "Where the logits are large your loss is too small: you add a small number in the "
        "logarithm, set a limit to a probability or to the loss, or put another number in the "
        "place of 0 or of infinity. W and b are right.",
        "softmax rounds a probability like e^-1000 to 0, and then what you put there is all that "
        "is left. The loss is 1000 there all the same: which function of torch gives the logarithm "
        "of a softmax at once?",
        cost=_no_infinity,
        shows=_loss_alone(_cut_off),
    ),
    "overflow": known(
        "Where the logits are large your exp is infinite, and the result NaN.",
        "Lesson 1 takes the row's maximum off first; torch.softmax and log_softmax do that, too.",
        wrong=_all_naive,
    ),
    "W-on-its-side": known(
        "Your new W lies on its side.",
        "The gradient has to have W's own shape, (C, d_model): which of its axes comes from the "
        "logits, which from the vectors?",
        finish=lambda loss, W, b: (loss, W.T, b),
    ),
    "mean-of-the-bias-too": known(
        "You divide the gradient of b twice by the number of texts.",
        "The mean over the texts is taken once, for W and for b alike.",
        of_b=lambda error: error.mean(0),
    ),
    "loss-last": known(
        "You return the parameters first and the loss last.",
        "The order asked for is loss, new W, new b.",
        finish=lambda loss, W, b: (W, b, loss),
    ),
    "loss-on-every-target": known(
        "Your loss takes each text's logarithms at the targets of all texts.",
        "[:, targets] picks a column for every target, in every row: a table (N, N). Each text has "
        "one target, its own.",
        cost=lambda logits, targets: -logits.log_softmax(1)[:, targets].mean(),
    ),
    "squared-error": known(
        "Your loss is a squared error. W and b are right.",
        "The gradient that you have is that of the cross-entropy: minus the logarithm of a "
        "probability. Of which one?",
        cost=_squared_error,
    ),
    **{
        id: known(
            "Your loss is a squared error, and so is your gradient.",
            "Asked for is the cross-entropy: minus the logarithm of the probability of the right "
            "class. What is its gradient with respect to the logits?",
            **_squares(total),
        )
        for id, total in (
            ("squares-added", lambda X: X.sum(1)),
            ("squares-averaged", lambda X: X.mean(1)),
        )
    },
    "bits": known(
        "Your loss has the logarithm to base 2. W and b are right.",
        "The gradient that you have is that of the natural logarithm.",
        cost=lambda logits, targets: _cross_entropy(logits, targets) / math.log(2),
    ),
    "loss-alone": known(
        "Your new W and b are right. Your loss is not.",
        "It is minus the logarithm of a probability, averaged over the texts. Which of its "
        "probabilities counts for a text, and how many numbers is the mean taken of?",
        cost=lambda logits, targets: 2 * _cross_entropy(logits, targets) + 1,
        shows=_loss_alone(lambda loss, right: True),
    ),
}
STEP = read_again("Train a linear layer", STEP)

TASK = Task(
    "12-training_step",
    build_step(),
    step_cases,
    examine=loss_as_number,
    returns=("the loss", "the new W", "the new b"),
    mistakes=STEP,
    build=build_step,
    alone=all_but(
        STEP,
        "uphill",
        "rate-ignored",
        "rate-always-0.1",
        "bias-left-out",
        "bias-not-moved",
        "weights-not-moved",
        "loss-summed",
        "gradient-summed",
        "target-not-taken-off",
        "sign-of-the-loss",
        "mean-of-the-bias-too",
    ),
    stages=step_stages,
    forbidden=(
        "torch.nn.functional.cross_entropy",
        "torch.nn.functional.nll_loss",
        "torch.nn.modules.loss.CrossEntropyLoss.forward",
        "torch.Tensor.backward",
        "torch.autograd.grad",
        "torch.autograd.backward",
    ),
    number=8,
    since=2,
)
