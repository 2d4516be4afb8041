"""Task 3.4, neighbour_weights: weights by hand: one head looks back, one ahead."""

import math

import torch

from mha_classroom.checks.examining import refuse_what_is_not_finite, total
from mha_classroom.checks.task import AnswerError, Case, Task, all_but, by_id, known, read_again
from mha_classroom.tasks.why_many_heads.runs import MANY, run_neighbours
from mha_course.attention import scaled_dot_product_attention


def neighbour_weights(num_features, num_positions):
    """Keys say where they are, queries where to look."""
    here = torch.eye(num_positions, dtype=torch.float64)
    W_q = here.new_zeros(2, num_features + num_positions, num_positions)
    W_k, W_v = W_q.clone(), W_q[:, :, :1].repeat(1, 1, num_features)
    W_k[:, num_features:] = 100 * here
    W_q[0, num_features + 1 :] = here[:-1]
    W_q[1, num_features:-1] = here[1:]
    W_v[:, :num_features] = torch.eye(num_features, dtype=torch.float64)
    return W_q, W_k, W_v


def neighbour_cases(draw):
    """Sizes, and contents between -1 and 1 to run the weights on."""

    def case(B, L, d, content=None):
        content = draw.normal(B, L, d).tanh() if content is None else content
        inputs = {"num_features": d, "num_positions": L, "content": content}
        return Case(f"{L} positions, {d} feature{'s' if d > 1 else ''} a word", inputs)

    digits = torch.tensor([[[1.0], [-1.0], [0.5]]], dtype=torch.float64)
    six = torch.tensor([[0.1, 0.2], [0.3, -0.4], [-0.5, 0.6], [0.7, 0.8], [-0.9, 1.0]])
    sign = torch.sign(draw.normal(2, 13, 60))  # as large as contents get
    same = sign[:, :1, :7].repeat(1, 7, 1)  # words alike: only their position tells them apart
    return [
        case(1, 3, 1, digits),
        case(1, 5, 2, six.double()[None]),
        case(3, 2, 5),
        case(2, 13, 60, sign),
        case(2, 7, 7, same * draw.normal(2, 7, 1).tanh()),
        case(2, MANY, 11),
        case(2, MANY, 1),
    ]


STEPS = (-1, 1)  # where head 0 and head 1 have to look
FIRM, NEAR = 0.99 - 1e-6, 0.02 + 1e-6  # a weight of 0.99 to the last digit is let through


@total
def examine_neighbours(inputs, seen):
    """Run a right attention with the learner's weights; return where its two heads look.

    Where a word has no such neighbour, 1 and 0 stand in for whatever the head does. A head that
    is wrong is seen as if its scores were as far apart as can be: all weight on the largest.
    Raises: AnswerError if the shapes are wrong, if scores overflow, if the heads look at the right
        words too weakly, if they look at contents, or bring a multiple of the right content.
    """
    d, L, content = inputs["num_features"], inputs["num_positions"], inputs["content"]
    weights = _checked(seen["weights"], d, L)
    heads = [_Head(content, *(W[h] for W in weights), STEPS[h]) for h in (0, 1)]
    if any(head.found.isnan().any() for head in heads):
        raise AnswerError("W_q and W_k are so large that scores overflow: the weights are NaN.")
    if not all(head.right() for head in heads):
        _complain_of_contents(heads)
        if all((head.hard == 1).all() for head in heads):
            _complain_of_strength(heads, seen["for many"])
            _complain_of_factor(heads)
    return tuple(part for head in heads for part in head.report())


class _Head:
    """What one head does with some contents, for the words that have the neighbour asked for."""

    def __init__(self, content, W_q, W_k, W_v, step):  # step: +1 or -1
        self.content, self.weights, self.step = content, (W_q, W_k), step
        self.first, self.end = max(0, -step), content.shape[1] - max(0, step)
        self.asks = range(self.first, self.end)
        self.wanted = content[:, self.first + step : self.end + step]
        X = _words(content)
        output, weights = scaled_dot_product_attention(X @ W_q, X @ W_k, X @ W_v)
        self.found = weights.diagonal(step, 1, 2)
        self.got = output[:, self.first : self.end]
        self.looked = self.looks(X)
        self.hard = torch.where(self.found > FIRM, 1.0, self.on_neighbour(self.looked))
        self.copied = self.looked @ (X @ W_v)

    def right(self):
        near = (self.got - self.wanted).abs() <= NEAR
        return bool((self.found > FIRM).all() and near.all())

    def on_neighbour(self, looks):
        """Of what `looks` returns, the weight on the neighbour asked for."""
        return looks.diagonal(max(0, self.step), 1, 2)

    def looks(self, X):
        """All weight on the largest score, shared where several are equally large."""
        W_q, W_k = self.weights
        scores = (X[:, self.first : self.end] @ W_q) @ (X @ W_k).mT
        slack = 1e-9 * scores.abs().amax(-1, keepdim=True)
        largest = (scores >= scores.amax(-1, keepdim=True) - slack).double()
        return largest / largest.sum(-1, keepdim=True)

    def report(self):
        """The weight on the neighbour (B, L) and what was copied (B, L, num_features)."""
        B, L, d = self.content.shape
        weight, copied = self.content.new_ones(B, L), torch.zeros_like(self.content)
        hard = self.hard.clone()
        near = ((self.got - self.wanted).abs() <= NEAR) & (hard == 1)[..., None]
        # With all weight on one word a wrong output may not show: then it counts itself.
        hidden = ((self.copied - self.wanted).abs() <= NEAR) & (hard == 1)[..., None]
        brought = torch.where(hidden, self.got, self.copied)
        brought = torch.where(near, self.wanted, brought)
        # Past the end a head may do what it likes. So where a wrong one sends the word at the other
        # end depends on the answer: of that word it is only said that it is wrong.
        middle = slice(1 - self.first, L - 1 - self.first)
        if L == 2 or (hard[:, middle] < 1).any():
            outer = 0 if self.step > 0 else -1
            lost = hard[:, outer] < 1
            hard[lost, outer], brought[lost, outer] = 0.0, 0.0
        weight[:, self.first : self.end], copied[:, self.first : self.end] = hard, brought
        return weight, copied


def _words(content):
    B, L, _ = content.shape
    return torch.cat([content, torch.eye(L, dtype=content.dtype).expand(B, L, L)], dim=-1)


def _complain_of_contents(heads):
    for h, head in enumerate(heads):
        here, empty = head.looked, head.looks(_words(0 * head.content))
        others = (empty, head.looks(_words(-head.content)))
        if any(not torch.equal(here, other) for other in others):
            moved = next(
                (here != other).any(-1).nonzero() for other in others if (here != other).any()
            )
            text = (
                f"Where head {h} looks depends on the content of the words: with other contents at "
                f"the same places, word {head.asks[moved[0, 1]]} looks elsewhere."
            )
            if (head.on_neighbour(empty) == 1).all():
                text += " If all contents were 0, it would look at the right word."
            raise AnswerError(text)


def _complain_of_strength(heads, many):
    for h, head in enumerate(heads):
        weak = (head.found <= FIRM).nonzero()
        if len(weak):
            place = tuple(weak[0].tolist())
            text = (
                f"The heads look at the right words, but not firmly enough: in head {h} word "
                f"{head.asks[place[1]]} puts {_below(head.found[place])} of its weight there, and "
                "more than 0.99 is asked for."
            )
            d = head.content.shape[-1]
            if many is not None and _firm_undivided(_checked(many, d, MANY)):
                text += " It would be enough if scores were not divided by √d_k."
            raise AnswerError(text)


def _below(weight):
    """A weight that is not firm, with as many digits as it takes to see that."""
    digits = 2
    while round(weight.item(), digits) > FIRM:
        digits += 1
    return f"{weight:.{digits}f}"


def _firm_undivided(weights):
    """Whether the weights for MANY positions would do if scores were not scaled."""
    root = weights[0].shape[-1] ** 0.5
    content = torch.zeros(1, MANY, weights[2].shape[-1], dtype=torch.float64)
    heads = [
        _Head(content, W_q * root, W_k, W_v, s)
        for W_q, W_k, W_v, s in zip(*weights, STEPS, strict=True)
    ]
    return all((head.found > FIRM).all() for head in heads)


def _complain_of_factor(heads):
    wanted, copied = (
        torch.cat([getattr(head, name) for head in heads], 1) for name in ("wanted", "copied")
    )
    factor = (wanted * copied).sum() / (wanted * wanted).sum()
    off = (copied - factor * wanted).abs().max()
    if factor.abs() > 0.01 and (factor - 1).abs() > 0.01 and off < 1e-6 * factor.abs():
        text = f"The heads bring the content of the right words, but {factor:.2f} times."
        raise AnswerError(text.replace("-", "minus "))


def _checked(weights, num_features, num_positions):
    """W_q, W_k, W_v in float64, or an AnswerError that says what about them is wrong."""
    if not isinstance(weights, (tuple, list)) or len(weights) != 3:
        raise AnswerError("neighbour_weights has to return three tensors: W_q, W_k, W_v.")
    d_model = num_features + num_positions
    wanted = {"W_q": "d_k", "W_k": "d_k", "W_v": num_features}
    for (name, width), W in zip(wanted.items(), weights, strict=True):
        if not torch.is_tensor(W) or W.dtype not in (torch.float32, torch.float64):
            kind = W.dtype if torch.is_tensor(W) else type(W).__name__
            raise AnswerError(f"{name} has to be a tensor of float32 or float64, got {kind}.")
        fits = W.dim() == 3 and W.shape[:2] == (2, d_model) and W.shape[2] > 0
        if not fits or (width != "d_k" and W.shape[2] != width):
            raise AnswerError(
                f"{name} has shape {tuple(W.shape)}, expected (2, {d_model}, {width})"
                f"{_which_axis(W, d_model, width)}."
            )
        refuse_what_is_not_finite(name, W)
    W_q, W_k, W_v = (W.detach().double() for W in weights)
    if W_q.shape != W_k.shape:
        sizes = f"{tuple(W_q.shape)} and {tuple(W_k.shape)}"
        raise AnswerError(f"W_q and W_k must have one width d_k, their shapes are {sizes}.")
    return W_q, W_k, W_v


def _which_axis(W, d_model, width):
    if W.dim() == 3 and W.shape[:2] == (2, d_model) and width != "d_k":
        return ": a value is the content of a word alone, and that has num_features numbers"
    if W.dim() == 3 and W.shape[0] == 2 and W.shape[2] == d_model:
        return ": words are the rows that X @ W meets, so d_model comes before the width"
    if W.dim() == 3 and W.shape[2] == 2 and W.shape[0] == d_model:
        return ": the heads come first"
    return ": one matrix for each of the two heads" if W.dim() == 2 else ""


def _copy_content(W_v, d):
    W_v[:, :d] = torch.eye(d)


def _sums_of_the_content(W_v, d):
    W_v[:, :d] = 1


def build_neighbours(
    looks=((-1,), (1,)),
    strength=lambda L: 100.0,
    fill=_copy_content,
    change=lambda weights, d: weights,
):
    """looks: how far from itself a word looks, for each head; a head may look at several places.
    fill: writes the values' matrices. change: what is done to W_q, W_k, W_v in the end.
    """

    def neighbour_weights(num_features, num_positions):
        d, L = num_features, num_positions
        W_q, W_k = torch.zeros(2, 2, d + L, L, dtype=torch.float64)
        W_v = torch.zeros(2, d + L, d, dtype=torch.float64)
        W_k[:, d:] = torch.eye(L)
        for head, steps in enumerate(looks):
            for step in steps:
                W_q[head, d:] += strength(L) * torch.ones(L - abs(step)).diag(step)
        fill(W_v, d)
        return change((W_q, W_k, W_v), d)

    return neighbour_weights


STANDS = "Where a word stands"
LOOP_OF_HEADS = "The loop of heads"


def _ends_forgotten(weights, d):
    weights[0][:, [d, -1]] = 0
    return weights


def _ring(*steps, strength=100.0):
    """Each head looks so far ahead; after the last position comes the first."""

    def change(weights, d):
        W_q = torch.zeros_like(weights[0])
        here = torch.eye(W_q.shape[2], dtype=W_q.dtype)
        W_q[:, d:] = strength * torch.stack([here.roll(step, 1) for step in steps])
        return W_q, *weights[1:]

    return change


def _shifted(rows, change=lambda weights, d: weights):
    """The rows of the positions start elsewhere; rows: by how much, from num_features."""

    def shifted(weights, d):
        W_q, W_k, W_v = change(weights, d)
        return W_q.roll(rows(d), 1), W_k.roll(rows(d), 1), W_v

    return shifted


def _nobody_asked_by(head, place):
    """The query of one word is empty; place: counted from the first position."""

    def change(weights, d):
        weights[0][head, place if place < 0 else d + place] = 0
        return weights

    return change


def _all_on_one_side(weights, d):
    W_q = torch.zeros_like(weights[0])
    ones = 100 * torch.ones(W_q.shape[2], W_q.shape[2], dtype=W_q.dtype)
    W_q[0, d:], W_q[1, d:] = ones.tril(-1), ones.triu(1)
    return W_q, *weights[1:]


def _products_of_places(weights, d):
    """Queries and keys of width 1: the number of the place that is asked for, and of one's own."""
    place = torch.arange(weights[0].shape[2], dtype=torch.float64)
    W_q, W_k = (torch.zeros(2, weights[0].shape[1], 1, dtype=torch.float64) for _ in range(2))
    W_q[:, d:, 0] = 100 * torch.stack([place - 1, place + 1])
    W_k[:, d:, 0] = place
    return W_q, W_k, weights[2]


def _all_features_shifted(weights, d):
    ones = torch.ones(weights[0].shape[1] - 1, dtype=torch.float64)
    W_q = 1000 * torch.stack([ones.diag(-1), ones.diag(1)])
    return W_q, torch.eye(len(ones) + 1, dtype=torch.float64).repeat(2, 1, 1), weights[2]


def _one_feature(W_v, d):
    W_v[:, 0, 0] = 1


ONE_FORGOTTEN = (
    "One word that has the neighbour finds nobody: all its scores are equal.",
    "A loop that ends one round early, or starts one round late, leaves a row of W_q empty, or of "
    "W_k. Which words have a word before, and which have one after?",
)
POSITIONS_FROM_ROW_1 = (
    "The rows of the positions start at row 1 in your W_q or W_k, as they would with one feature.",
    "The content takes num_features rows, and the position comes after it.",
)


def _with_contents(weights, d):
    W_q, W_k, W_v = weights
    eye = torch.eye(W_q.shape[1], d, dtype=torch.float64).expand(2, -1, -1)
    return torch.cat([100 * eye, W_q], -1), torch.cat([eye, W_k], -1), W_v


# Positions, the next larger number of them in a case, and a strength for the smaller one alone.
FIRM_UP_TO = ((2, 3, 8.0), (3, 5, 10.0), (5, 7, 15.0), (7, 13, 20.0), (13, MANY, 30.0))


def _always(strength):
    return lambda L: strength


def _positions(W_v, d):
    W_v[:, d:] = torch.eye(W_v.shape[1] - d, d)


def _last_features(W_v, d):
    W_v[:, -d:] = torch.eye(d)


# Looked for alone, all of them.
SHAPES = {
    "out-before-in": known(
        "Your matrices are (out, in), as nn.Linear keeps them.",
        "The lesson multiplies X @ W: which size of W has to meet the width of a word?",
        section="The package version",
        change=lambda weights, d: tuple(W.mT for W in weights),
    ),
    "heads-on-the-last-axis": known(
        "The two heads are on the last axis of your tensors.",
        "Each head takes its matrix with W_q[h], so the heads come first.",
        change=lambda weights, d: tuple(W.permute(1, 2, 0) for W in weights),
    ),
    "one-W_v-for-both": known(
        "You return one W_v for both heads.",
        "It may hold the same numbers for both. Each head still takes its own matrix, W_v[h].",
        change=lambda weights, d: (*weights[:2], weights[2][0]),
    ),
    "one-head-only": known(
        "Your W_q is the matrix of a single head.",
        "Two heads are asked for: the first axis of W_q, W_k and W_v has size 2. What is the same "
        "in both heads stands there twice.",
        change=lambda weights, d: tuple(W[0] for W in weights),
    ),
    "whole-numbers": known(
        "Your tensors hold whole numbers.",
        "Contents are fractions, and PyTorch does not multiply the two kinds.",
        section=STANDS,
        change=lambda weights, d: tuple(W.nan_to_num().long() for W in weights),
    ),
}
SHAPES = read_again(LOOP_OF_HEADS, SHAPES)

NEIGHBOURS = {
    "heads-swapped": known(
        "Head 0 brings the word after, head 1 the word before.",
        "Have the two heads changed places, or queries and keys? Row i of the scores belongs to "
        "the word that asks; is the large number left or right of the diagonal?",
        looks=((1,), (-1,)),
    ),
    "queries-and-keys-swapped": known(
        change=lambda weights, d: (weights[1], weights[0], weights[2]),
        twin="heads-swapped",
    ),
    "heads-swapped-on-a-ring": known(
        "Head 0 brings the word after, head 1 the word before. (At an end your words look "
        "elsewhere, as on a ring, where after the last comes the first. That is allowed.)",
        "Did you roll the wrong way, or queries where you meant keys? Rolled keys and rolled "
        "queries move the large score to opposite sides.",
        change=_ring(1, -1),
    ),
    "both-look-back": known(
        "Both heads bring the word before.",
        "One head does that. The second has matrices of its own, so that it can look elsewhere.",
        section=LOOP_OF_HEADS,
        looks=((-1,), (-1,)),
    ),
    "both-look-ahead": known(
        "Both heads bring the word after.",
        "One head does that. The first has matrices of its own, so that it can look elsewhere.",
        section=LOOP_OF_HEADS,
        looks=((1,), (1,)),
    ),
    "each-word-itself": known(
        "Every word looks at itself.",
        "Does the query of word i ask for place i? Or are queries and keys alike, shifted in the "
        "same way or W_q and W_k one tensor? Whom should it ask for?",
        looks=((0,), (0,)),
    ),
    "two-steps": known(
        "Your heads look two words away.",
        "Are queries and keys both shifted? One of them can say where a word stands.",
        looks=((-2,), (2,)),
    ),
    "two-steps-on-a-ring": known(
        "Your heads look two words away. (Your positions form a ring, which is allowed: with 3 of "
        "them, two steps back are one step ahead.)",
        "Are queries and keys both shifted? One of them can say where a word stands.",
        change=_ring(-2, 2),
    ),
    "both-neighbours-in-each-head": known(
        "Each of your heads looks at both neighbours, half and half.",
        "Their contents arrive as one mixture, and who was before and who after is lost. That is "
        "why there are two heads.",
        section=LOOP_OF_HEADS,
        looks=((-1, 1), (-1, 1)),
    ),
    "nobody-asked-for": known(
        "All scores of a row are equal, so every word gets the average of all.",
        "A score is a query times a key. Are W_q and W_k both filled, in the rows that a position "
        "meets? Or are all your keys alike?",
        looks=((), ()),
    ),
    "second-head-empty": known(
        "Head 1 looks at all words alike: the scores of a row are equal.",
        "Head 0 is done. A head makes its weights from its own W_q and W_k. Is one of them empty?",
        section=LOOP_OF_HEADS,
        looks=((-1,), ()),
    ),
    "ends-forgotten": known(
        "The first word and the last ask for nobody where they have a neighbour.",
        "Each of them lacks one neighbour only. In which head does the first word have one?",
        change=_ends_forgotten,
    ),
    "positions-in-the-wrong-rows": known(
        "Where your heads look depends on the contents of the words: queries or keys are made "
        "from features that should not reach them.",
        "A word is its content first, its position after it. Which rows of W_q and W_k does the "
        "position meet in X @ W?",
        change=lambda weights, d: tuple(W.roll(-d, 1) for W in weights),
    ),
    "positions-in-the-wrong-rows-on-a-ring": known(
        "Where your heads look depends on the contents of the words: queries or keys are made "
        "from features that should not reach them.",
        "A word is its content first, its position after it. Which rows of W_q and W_k does the "
        "position meet in X @ W?",
        wrong=build_neighbours(change=_shifted(lambda d: -d, _ring(-1, 1))),
    ),
    "positions-from-row-1": known(
        *POSITIONS_FROM_ROW_1, wrong=build_neighbours(change=_shifted(lambda d: 1 - d))
    ),
    "positions-from-row-1-on-a-ring": known(
        *POSITIONS_FROM_ROW_1,
        wrong=build_neighbours(change=_shifted(lambda d: 1 - d, _ring(-1, 1))),
    ),
    "last-but-one-asks-for-nobody": known(
        *ONE_FORGOTTEN, wrong=build_neighbours(change=_nobody_asked_by(1, -2))
    ),
    "second-asks-for-nobody": known(
        *ONE_FORGOTTEN, wrong=build_neighbours(change=_nobody_asked_by(0, 1))
    ),
    "first-asks-for-nobody": known(
        *ONE_FORGOTTEN, wrong=build_neighbours(change=_nobody_asked_by(1, 0))
    ),
    "last-asks-for-nobody": known(
        *ONE_FORGOTTEN, wrong=build_neighbours(change=_nobody_asked_by(0, -1))
    ),
    "all-on-one-side": known(
        "Head 0 looks at all words before, and head 1 at all words after, alike.",
        "Their contents arrive as one mixture. Only the word next to it is asked for: how many "
        "large scores may stand in a row?",
        wrong=build_neighbours(change=_all_on_one_side),
    ),
    "heads-swapped-and-weak-on-a-ring": known(
        "Head 0 brings the word after, head 1 the word before, and they look too weakly. (At an "
        "end your words look elsewhere, as on a ring. That is allowed.)",
        "Did you roll the wrong way, or queries where you meant keys? And how large must the lead "
        "of a score be, after the division by √d_k, for more than 0.99 of the weight?",
        wrong=build_neighbours(change=_ring(1, -1, strength=4.0)),
    ),
    "products-of-places": known(
        "Your query is the number of the place that is asked for, and your key that of one's own.",
        "Their product grows with the key's number, or falls with it, so that a word at an end "
        "wins, or nobody. Give each place a feature of its own: then a query meets one key alone.",
        wrong=build_neighbours(change=_products_of_places),
    ),
    "all-features-shifted": known(
        "Your queries or keys hold contents as well as the position, as they do if all features of "
        "a word are shifted.",
        "Contents then add to the scores, and a word may look at another one because of them. "
        "Which features of a word say where it stands?",
        wrong=build_neighbours(change=_all_features_shifted),
    ),
    "one-feature-only": known(
        "Your heads bring the first feature of the content alone.",
        "All num_features numbers are asked for, each in its own place: W_v has a column for each "
        "of them.",
        wrong=build_neighbours(fill=_one_feature),
    ),
    "contents-in-scores": known(
        "Your queries or keys hold the content as well as the position.",
        "Contents then add to the scores: if both hold them, words that are alike draw each "
        "other's attention. "
        "Which features of a word say where it stands?",
        change=_with_contents,
    ),
    "strength-too-small": known(
        "Your heads look at the right words, but too weakly.",
        "Softmax turns a lead of g into e^g times the weight: a lead of 1 is a factor of 2.72. "
        "How large a lead does 99 % take, against all the other words?",
        strength=lambda L: 1.0,
    ),
    "root-of-d_k-forgotten": known(
        "Your heads look at the right words, but too weakly.",
        "The lead would be enough if the softmax got the scores as they are. On the way there they "
        "are divided: by what? (If you have reckoned with that, did you aim at more than 0.99 of "
        "the weight?)",
        strength=lambda L: math.log(99 * (L - 1)),
    ),
    **{
        f"firm-up-to-{positions}-positions": known(
            f"Your heads look at the right words, firmly with {positions} positions, too weakly "
            f"with {more}.",
            "The more words compete, the larger a lead it takes, and what it is divided by may "
            "grow too. How large must the lead be for 19 positions?",
            section=STANDS,
            strength=_always(strength),
        )
        for positions, more, strength in FIRM_UP_TO
    },
    "sign-turned": known(
        "Your heads look at every word but the right one.",
        "The score that should lead is the smallest of its row, and the others are equal. What "
        "sign has your strength?",
        strength=lambda L: -100.0,
    ),
    "infinite-strength": known(
        "Your W_q holds inf or −inf, for the strength or to keep other words out.",
        "Most features of a word are 0, and inf · 0 is not a number. How large a lead is enough?",
        strength=lambda L: math.inf,
    ),
    "values-empty": known(
        "Your heads bring zeros: W_v is empty.",
        "They look at the right words. W_v says what is brought from there.",
        section="One head, with matrices of its own",
        fill=lambda W_v, d: None,
    ),
    "values-of-positions": known(
        "Your heads bring the position of the word that they look at, not its content.",
        "The value is what a word hands over. Which rows of W_v meet the content?",
        fill=_positions,
    ),
    "values-of-the-last-features": known(
        "Your heads bring the last num_features numbers of the word that they look at.",
        "A word is its content first, its position after it. Which rows of W_v meet the content?",
        fill=_last_features,
    ),
    "values-all-ones": known(
        "Your W_v is all ones: each number that a head brings is the sum of a whole word.",
        "Each feature of the content has to arrive in its own place, without the others.",
        fill=lambda W_v, d: W_v.fill_(1),
    ),
    "contents-added-up": known(
        "The rows of W_v that meet the content are all ones: each number that a head brings is the "
        "sum of all features of the content.",
        "Each feature has to arrive in its own place, without the others. For one feature this is "
        "the same.",
        fill=_sums_of_the_content,
    ),
    "values-of-head-0-only": known(
        "Head 1 brings zeros: its W_v is empty.",
        "Each head has a W_v of its own.",
        section=LOOP_OF_HEADS,
        fill=lambda W_v, d: _copy_content(W_v[:1], d),
    ),
    "values-multiplied": known(
        "Your heads bring the right content, multiplied.",
        "The strength belongs to the scores, where it makes a head look firmly. What is brought "
        "should arrive as it was.",
        fill=lambda W_v, d: _copy_content(W_v, d) or W_v.mul_(100),
    ),
    **by_id(SHAPES),
}

TASK = Task(
    "03-neighbour_weights",
    neighbour_weights,
    neighbour_cases,
    run=run_neighbours,
    examine=examine_neighbours,
    returns=tuple(
        f"{name}, if the largest score took all the weight"
        for name in ("weight_before", "copied_before", "weight_after", "copied_after")
    ),
    mistakes=read_again(STANDS, NEIGHBOURS),
    build=build_neighbours,
    alone=(
        "heads-swapped-on-a-ring",
        "two-steps-on-a-ring",
        "both-neighbours-in-each-head",
        "ends-forgotten",
        "positions-in-the-wrong-rows",
        "contents-in-scores",
        *(f"firm-up-to-{positions}-positions" for positions, _, _ in FIRM_UP_TO),
        "infinite-strength",
        *all_but(SHAPES),
    ),
    number=4,
)
