"""Task 1.6, kernel_regression: an estimate between measured points is attention."""

from itertools import product

import torch
from torch.nn import functional as F

from mha_classroom.checks.forms import alike, any_of, like
from mha_classroom.checks.task import Case, Task, and_in_float32, known, read_again, unchanged
from mha_classroom.tasks.attention_math.softmax import CUT_OFF, near


def kernel_regression(places, known_places, known_results, width):
    squares = (places[:, None] - known_places).square().sum(-1)  # (L, S)
    return torch.softmax(-squares / (2 * width**2), dim=-1) @ known_results


FAR_FROM_0 = 2e6


@and_in_float32
def kernel_cases(draw):
    """Few and many places, one feature and several, places far from everything known."""

    def case(name, num_places, num_known, d, d_v, width, unit=1.0):
        places, known_places = (draw.normal(n, d, scale=unit) for n in (num_places, num_known))
        return _case(name, places, known_places, draw.normal(num_known, d_v), width * unit)

    results = [[0.0, 10], [4, 10], [12, 10]]
    # The powers of the last three places add up to about 2, to 1e-9 and to 1e-322, where a float64
    # has two digits.
    far = [[100.0, 0], [0, -200], [0.5, 0.5], [3, -2.2], [0.375, -19.25]]
    corners = [[0.0, 0], [1, 0], [0, 2], [1, 1], [3, 1]]
    transposed = (draw.normal(2, 7).T, draw.normal(2, 5).T, draw.normal(3, 5).T)
    return [
        _case("2 places on a line, 3 known ones", [[0.0], [1.5]], [[0.0], [1], [3]], results, 0.5),
        case("4 places with 3 features, 7 known ones", 4, 7, 3, 2, 0.8),
        case("more places than known ones", 11, 5, 2, 3, 1.5),
        case("as many places as known ones", 5, 5, 3, 2, 0.7),
        case("all sizes equal", 3, 3, 3, 3, 1.25),
        case("width 1", 3, 5, 2, 7, 1),
        case("a narrow width, and places as near to each other", 3, 5, 2, 2, 0.25, unit=1e-4),
        case("a wide one, nearly the plain average", 3, 5, 2, 2, 20.0),
        case("one place", 1, 7, 5, 2, 0.9),
        case("results of width 1", 4, 7, 2, 1, 0.9),
        case("one known place", 3, 1, 2, 5, 0.9),
        _case("places far from all known ones", far, corners, draw.normal(5, 3), 0.5),
        _case("all places far from all known ones", far[:2], corners, draw.normal(5, 3), 0.5),
        _case("no tensor is contiguous", *transposed, 0.6),
        _case(
            "places far from 0 and near to each other",
            draw.normal(7, 2) + FAR_FROM_0,
            draw.normal(5, 2) + FAR_FROM_0,
            draw.normal(5, 3),
            1.0,
        ),
    ]


def _case(name, places, known_places, known_results, width):
    tensors = {"places": places, "known_places": known_places, "known_results": known_results}
    tensors = {key: torch.as_tensor(X, dtype=torch.float64) for key, X in tensors.items()}
    return Case(name, tensors | {"width": width})


def kernel_stages(inputs):
    places, known_places, known_results, width = inputs.values()
    squares = _squared(_all_pairs(places, known_places))
    weights = torch.softmax(-squares / (2 * width**2), dim=-1)
    return {
        "the squared distances": squares,
        "the scores": -squares / (2 * width**2),
        "the weights": weights,
        "the estimates": weights @ known_results,
    }


def _squared(differences):
    return differences.square().sum(-1)


def _all_pairs(places, known_places):
    return places[:, None] - known_places


def build_kernel(
    pairs=_all_pairs,
    distance=_squared,
    scale=lambda width: -1 / (2 * width**2),
    weigh=lambda scores: scores.softmax(-1),
    average=torch.matmul,
    averaged="results",
    finish=unchanged,
):
    """pairs: the differences. distance: makes one number of each. scale: makes a score of it.
    weigh: scores become weights. average: of weights and results, or of what `averaged` names.
    """

    def kernel_regression(places, known_places, known_results, width):
        handed_over = {"results": known_results, "places": known_places}[averaged]
        scores = distance(pairs(places, known_places)) * scale(width)
        return finish(average(weigh(scores), handed_over))

    return kernel_regression


def _naive(scores):
    return scores.exp() / scores.exp().sum(-1, keepdim=True)


def _with_small_number(number, shifted):
    def weigh(scores):
        powers = (scores - shifted * scores.amax(-1, keepdim=True)).exp()
        return powers / (powers.sum(-1, keepdim=True) + number)

    return weigh


SMALL = [10.0**-k for k in (8, *range(2, 41), 45, 50, 60, 80, 99, 100, 200, 300, 307, 308)]
SMALL += [
    size
    for kind in map(torch.finfo, (torch.float32, torch.float64))
    for size in (kind.eps, kind.tiny)
]


def _nothing_without_powers(scores):
    sums = scores.exp().sum(-1, keepdim=True)
    return torch.where(sums > 1e-300, _naive(scores), 0.0)


def _shifted_without_powers(scores):
    return torch.where(scores.exp().sum(-1, keepdim=True) > 0, _naive(scores), scores.softmax(-1))


def _alike_far_away(scores):
    far = scores.amax(-1, keepdim=True) < -740
    return scores.masked_fill(far, 0.0).softmax(-1)


def _shows_dot_product(inputs, result):
    """Whether the estimates come of dot products, whatever they are divided by."""
    places, known_places, known_results, width = inputs.values()
    factors = (1, 1 / width, 1 / width**2, 1 / (2 * width), 1 / (2 * width**2))
    factors += (places.shape[1] ** -0.5,)
    products = places @ known_places.T
    return any(near((products * by).softmax(-1) @ known_results, result) for by in factors)


def _nearest_far_away(scores):
    weights = _naive(scores)
    return torch.where(weights.isnan(), _nearest(scores), weights)


def _nearest(scores):
    return F.one_hot(scores.argmax(-1), scores.shape[-1]).to(scores.dtype)


def _dot_product(places, known_places, known_results, width):
    return torch.softmax(places @ known_places.T, dim=-1) @ known_results


def _multiplied_out(places, known_places, known_results, width):
    squares = places.square().sum(-1)[:, None] + known_places.square().sum(-1)
    squares = squares - 2 * places @ known_places.T
    return torch.softmax(-squares / (2 * width**2), dim=-1) @ known_results


def _shows_multiplied_out(inputs, result):
    """Whether the estimates are right but where the squares are so large that digits are lost."""
    right = kernel_regression(*inputs.values())
    if bool(inputs["places"].abs().mean() > FAR_FROM_0 / 2):
        return torch.is_tensor(result) and result.shape == right.shape and not near(right, result)
    return alike(right, result)


def _in_float32(places, known_places, known_results, width):
    tensors = (X.float() for X in (places, known_places, known_results))
    return kernel_regression(*tensors, width).double()


def _shows_float32(inputs, result):
    """Whether the estimates have no more digits than float32 leaves of the places."""
    rounded = _in_float32(*inputs.values())
    if not torch.is_tensor(result) or result.shape != rounded.shape:
        return False
    return torch.allclose(result.double(), rounded, rtol=1e-3, atol=1e-4)


def _in_place(places, known_places, known_results, width):
    result = kernel_regression(places, known_places, known_results, width)
    places.zero_()
    return result


WEIGHTS = "From scores to weights"
SHIFT = "Only differences between scores count"
AVERAGE = "The output is an average of the values"
QKV = "Query, key and value"

KERNEL = {
    "naive-exp": known(
        "You take the powers of e as they are and divide by their sum.",
        "Far from all known places every power rounds to 0, and 0 / 0 is NaN. Which number may "
        "you add to all scores of one place without changing a weight?",
        section=SHIFT,
        weigh=_naive,
    ),
    "nothing-far-away": known(
        "Far from all known places your estimate is 0.",
        "All powers are 0 there, or nearly 0, and so is their sum. Zeros written over NaN, a sum "
        "that is clamped, or a tiny number added to it, leave nothing of the weights, which have "
        "to add up to 1. The powers must not all become so small in the first place: what may you "
        "add to all scores of one place?",
        section=SHIFT,
        **any_of(
            build_kernel,
            weigh=(lambda scores: _naive(scores).nan_to_num(0.0), _nothing_without_powers),
        ),
    ),
    "small-number-in-the-sum": known(
        "You add a small number to the sum of the powers.",
        "The weights then no longer add up to 1. Far from all known places powers that are not "
        "shifted are even smaller than that number. The sum can be kept away from 0 without "
        "changing any weight.",
        section=SHIFT,
        **any_of(
            build_kernel,
            weigh=[_with_small_number(*form) for form in product(SMALL, (False, True))],
        ),
    ),
    "one-maximum-for-the-table": known(
        "You subtract the same number from the scores of all places: the largest of all.",
        "A place far from all known ones is left with powers that all round to 0, and 0 / 0 is "
        "NaN. Each row can be shifted by a number of its own.",
        section=SHIFT,
        weigh=lambda scores: _naive(scores - scores.max()),
    ),
    "plain-average-far-away": known(
        "Far from all known places your estimate is the plain average of the known results.",
        "Scores that are cut off become equal, and so does what replaces a sum of 0. But one "
        "known place is nearer than the others, however far they all are. The scores can be moved "
        "instead: what may you add to all scores of one place?",
        section=SHIFT,
        weigh=lambda scores: _naive(scores).nan_to_num(1 / scores.shape[-1]),
        shows=like(*(build_kernel(weigh=weigh) for weigh in (_alike_far_away, *CUT_OFF))),
    ),
    "nearest-only-far-away": known(
        "Far from all known places you take the result of the nearest one alone.",
        "That is near to the truth and no more: two known places that are nearly as near share. "
        "One way to compute the weights does for all places: what may you add to all scores of "
        "one place?",
        section=SHIFT,
        weigh=_nearest_far_away,
    ),
    "shifted-only-where-all-round-to-0": known(
        "You shift the scores, or take softmax, only where all powers round to 0.",
        "Where they are nearly 0 they have lost their digits already: near 1e-322 a float64 has "
        "two. One way to compute the weights does for all places, near and far.",
        section=SHIFT,
        wrong=build_kernel(weigh=_shifted_without_powers),
    ),
    "not-divided-by-the-sum": known(
        "You do not divide the powers by their sum.",
        "Each place has one unit of weight to share out among the known places. A number that all "
        "known results share, like 10 in the example, should come out as it went in.",
        section=WEIGHTS,
        weigh=torch.exp,
    ),
    "shared-out-over-places": known(
        "Your weights add up to 1 over the places, not over the known places.",
        "Each place asks for itself, so each row of weights, one for each place, adds up to 1.",
        section="All queries at once",
        weigh=lambda scores: scores.softmax(0),
    ),
    "all-weights-together": known(
        "All your weights together add up to 1.",
        "Each place asks for itself: the weights of each place add up to 1.",
        section="All queries at once",
        weigh=lambda scores: scores.flatten().softmax(0).reshape(scores.shape),
    ),
    "nearest-only": known(
        "You return the result of the nearest known place.",
        "That is a look-up. Here all known places count, the nearer ones more.",
        section=AVERAGE,
        weigh=_nearest,
    ),
    "plain-average": known(
        "You return the plain average of the known results.",
        "That is what a very large width gives. The nearer a known place is, the more it counts.",
        section=AVERAGE,
        weigh=lambda scores: torch.full_like(scores, 1 / scores.shape[-1]),
    ),
    "farther-is-better": known(
        "You give the largest weight to the known place that is farthest away.",
        "A large score means a large weight. What should a large distance mean for the score?",
        scale=lambda width: 1 / (2 * width**2),
    ),
    "distance-not-squared": known(
        "You use the distance as it is, not its square.",
        "Those weights add up to 1, too, but far away they fall off more slowly.",
        distance=lambda differences: differences.norm(dim=-1),
    ),
    "absolute-differences": known(
        "You add up the differences of the features without their signs.",
        "The squared distance is the sum of the squares of the differences.",
        distance=lambda differences: differences.abs().sum(-1),
    ),
    "absolute-differences-squared": known(
        "You add up the differences of the features without their signs and square the sum.",
        "The squared distance is the sum of the squares: each difference is squared by itself.",
        distance=lambda differences: differences.abs().sum(-1).square(),
    ),
    "squared-after-the-sum": known(
        "You add up the differences of the features first and square the sum.",
        "Differences of opposite sign then cancel: two places far apart can seem to be the same. "
        "Each difference is squared by itself.",
        distance=lambda differences: differences.sum(-1).square(),
    ),
    "features-averaged": known(
        "You take the mean of the squared differences over the features, or divide by the number "
        "of features.",
        "The squared distance is the plain sum. With one feature nobody sees the difference.",
        distance=lambda differences: differences.square().mean(-1),
    ),
    "first-feature-only": known(
        "You compare the first feature only.",
        "A place has d features, and all of them count for the distance.",
        distance=lambda differences: differences[..., 0].square(),
    ),
    "in-float32": known(
        "You compute in float32.",
        "The places are float64. A float32 has about 7 digits: of two places that are near to "
        "each other and far from 0, too little of the difference is left. float32 comes from "
        ".float(), and from torch.zeros or torch.tensor without a dtype.",
        wrong=_in_float32,
        shows=_shows_float32,
    ),
    "squares-multiplied-out": known(
        "It is wrong where places lie far from 0 and near to each other: is the square of the "
        "difference multiplied out, p² − 2 p·k + k², by you or by cdist?",
        "On paper that is the same. But with numbers near 10¹³ the digits of a distance near 1 are "
        "gone. Take the difference first, in float64, "
        "then square it.",
        wrong=_multiplied_out,
        shows=_shows_multiplied_out,
    ),
    "width-not-squared": known(
        "You divide by twice the width, not by twice its square.",
        "Only width = 1 hides that. If all places and the width are given in another unit, the "
        "weights must stay as they are: what happens to a squared distance then?",
        scale=lambda width: -1 / (2 * width),
    ),
    "divided-by-the-width-alone": known(
        "You divide by the width alone.",
        "The formula of the statement divides by 2 · width², which is the same only at width 0.5.",
        scale=lambda width: -1 / width,
    ),
    "factor-2-left-out": known(
        "You leave out the 2 below the fraction bar.",
        "The formula of the statement divides by 2 · width².",
        scale=lambda width: -1 / width**2,
    ),
    "divided-by-the-root-of-the-features": known(
        "You divide the scores by the root of the number of features, too.",
        "That belongs to dot products, which grow with it. Here the width says how fast a score "
        "falls with the distance.",
        section="Scores",
        wrong=lambda places, known_places, known_results, width: kernel_regression(
            places, known_places, known_results, width * places.shape[1] ** 0.25
        ),
    ),
    "width-ignored": known(
        "You do not use the width.",
        "It says how far a known place makes itself felt.",
        scale=lambda width: -0.5,
    ),
    "multiplied-by-the-width": known(
        "You multiply by the square of the width where the formula divides.",
        "A larger width means that known places farther away still count. If the formula stands "
        "in one line: what is squares / 2 * width ** 2, read from the left?",
        scale=lambda width: -(width**2) / 2,
    ),
    "divided-first-squared-later": known(
        "You divide by 4 · width²: do you divide by 2 · width and square all of it?",
        "Then the 2 is squared, too.",
        scale=lambda width: -1 / (2 * width) ** 2,
    ),
    "dot-product": known(
        "Your scores come to dot products: do you take these, or multiply out the square and leave "
        "out k²?",
        "A dot product rewards known places that are far from 0. The score of this task falls "
        "with the distance of the two places.",
        section="Scores",
        wrong=_dot_product,
        shows=_shows_dot_product,
    ),
    "paired-one-to-one": known(
        "You subtract the known places as they are: place 0 meets known place 0 and no other.",
        "Every place has to meet every known one. Where do the places need an axis of length 1?",
        section="Additive attention",
        pairs=lambda places, known_places: places - known_places,
    ),
    "known-places-averaged": known(
        "You average the known places.",
        "They are the keys: places are compared with them. What was measured there is handed over.",
        section=QKV,
        averaged="places",
    ),
    "weights-returned": known(
        "You return the weights.",
        "They say how much each known result counts. The estimate is the average with them.",
        section="Attention with one query",
        average=lambda weights, results: weights,
    ),
    "scores-averaged": known(
        "You multiply the known results by the scores.",
        "Scores are not weights yet: they are negative and do not add up to 1.",
        section=WEIGHTS,
        weigh=unchanged,
    ),
    "squeezed-too-far": known(
        "You squeeze every axis of length 1 out of the result.",
        "One place is still an axis: the result is (L, d_v).",
        section="All queries at once",
        finish=torch.squeeze,
    ),
    "places-changed-in-place": known(
        "You change the places that you are given.",
        "Whoever calls the function still needs them. Functions whose names end in _, and -=, "
        "write into the tensor that they are given: work on a new one.",
        section="All queries at once",
        wrong=_in_place,
    ),
}

TASK = Task(
    "01-kernel_regression",
    kernel_regression,
    kernel_cases,
    returns=("the result",),
    mistakes=read_again("Scores", KERNEL),
    build=build_kernel,
    stages=kernel_stages,
    uses=("01-softmax",),
    number=6,
    since=2,
    alone=(
        *("paired-one-to-one", "places-changed-in-place", "squeezed-too-far", "weights-returned"),
        *("one-maximum-for-the-table", "nothing-far-away", "plain-average-far-away"),
        *("nearest-only-far-away", "squares-multiplied-out", "in-float32"),
    ),
)
