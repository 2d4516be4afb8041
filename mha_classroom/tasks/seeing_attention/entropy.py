"""Task 7.2, entropy: how broadly a query looks."""

import math

import torch

from mha_classroom.checks.examining import first_wrong
from mha_classroom.checks.forms import any_of
from mha_classroom.checks.showing import numbers_text
from mha_classroom.checks.task import Case, Task, and_in_float32, known, read_again, unchanged
from mha_classroom.tasks.seeing_attention.most_attended import FORBIDDEN, random_weights, table
from mha_course.explorer import heads


@and_in_float32
def entropy_cases(draw):
    """Weights of 0, of almost 0, one key, ranks 2 to 5, L = S and not."""

    def case(name, weights):
        return Case(name, {"weights": weights})

    small = table([0.25, 0.25, 0.25, 0.25], [0.5, 0, 0.5, 0], [0, 0, 1, 0])
    holes = random_weights(draw, 2, 3, 5, 7) * (draw.normal(2, 3, 5, 7) > -0.5)
    holes[..., 0] += 0.1
    tiny = random_weights(draw, 3, 5, 61)
    tiny[..., ::2] = 3e-9
    tiny[..., 1::4] = 3e-7
    tiniest = torch.full((3, 5, 203), 5e-13, dtype=torch.float64)
    tiniest[..., 0] = 1
    wide = torch.full((1, 4099), 1e-5)  # so many that float32's eps, added to each, shows
    wide[0, 1::2] = 0
    wide[0, 0] = 1 - wide[0, 1:].sum()
    sharp = random_weights(draw, 2, 5, 11, scale=300.0)
    return [
        case("3 queries, 4 keys", small),
        case("many weights are 0", holes / holes.sum(dim=-1, keepdim=True)),
        case("2 sentences, 3 heads", random_weights(draw, 2, 3, 5, 7)),
        case("as many queries as keys", random_weights(draw, 3, 5, 5)),
        case("a causal mask", _causal(draw, 2, 7)),
        case("many weights are almost 0", tiny / tiny.sum(dim=-1, keepdim=True)),
        case("203 keys, all but one nearly 0", tiniest / tiniest.sum(dim=-1, keepdim=True)),
        case("4,099 keys in float32, half of them 0", wide),
        case("one key", torch.ones(2, 3, 2, 1, dtype=torch.float64)),
        case("one query", random_weights(draw, 2, 1, 5)),
        case("97 keys", random_weights(draw, 3, 97, scale=0.3)),
        case("sharp heads", sharp.where(sharp > 1e-290, 0.0)),  # 1 / w is finite
        case("all axes equal", random_weights(draw, 3, 3, 3, 3)),
        case("layers too", random_weights(draw, 2, 1, 3, 5, 7)),
        case("weights are not contiguous", random_weights(draw, 3, 2, 5, 7).transpose(0, 1)),
    ]


def _causal(draw, *shape):
    scores = draw.normal(*shape, shape[-1])
    return scores.masked_fill(torch.ones_like(scores).triu(1).bool(), -math.inf).softmax(dim=-1)


def _logs(weights):
    """The logarithm, 0 where the weight is 0: there it does not count."""
    return torch.where(weights > 0, weights, 1.0).log()


def point_out_terms(inputs, entropies):
    """The weights of the first query whose entropy is wrong, and what each adds."""
    weights = inputs["weights"]
    place = first_wrong(entropies, heads.entropy(weights))
    row = weights[place]
    terms = numbers_text(-row * _logs(row))
    return f"The query at {list(place)} has the weights {numbers_text(row)}. They add {terms}."


def build_entropy(
    before=unchanged,
    logarithm=_logs,
    factor=unchanged,
    total=lambda terms: -terms.sum(dim=-1),
    unit=1.0,
    finish=lambda entropies, weights: entropies,
):
    """before: what is done to the weights first. logarithm: of them. factor: what it is multiplied
    by, from the weights. total: from the products to one number a query. unit: a last factor.
    finish: of the entropies, given the weights.
    """

    def entropy(weights):
        weights = before(weights)
        return finish(total(factor(weights) * logarithm(weights)) * unit, weights)

    return entropy


def _logs_with(small):
    return lambda weights: (weights + small).log()


def _cut_off(least):
    """Three ways to keep weights below `least` away from the logarithm."""
    return (
        lambda weights: -(weights * weights.clamp(min=least).log()).sum(dim=-1),
        lambda weights: -(weights.clamp(min=least) * weights.clamp(min=least).log()).sum(dim=-1),
        lambda weights: -(weights * weights.where(weights > least, 1.0).log()).sum(dim=-1),
    )


def _of_one_head(weights):
    """With an `if` for each weight."""
    terms = [[w * w.log() if w > 0 else 0.0 for w in row] for row in weights]
    return -torch.tensor(terms, dtype=weights.dtype).sum(dim=1)


def _with_added(small):
    """Two ways to add a small number: in the logarithm only, or to the weights before all."""
    return (
        lambda weights: -(weights * (weights + small).log()).sum(dim=-1),
        lambda weights: -((weights + small) * (weights + small).log()).sum(dim=-1),
    )


def _very_near(X, value):
    atol = 1e-13 if X.dtype == torch.float64 else 1e-5
    return X.shape == value.shape and torch.allclose(
        X.double(), value.double(), rtol=0, atol=atol, equal_nan=True
    )


def _is_one_of(ways, sizes):
    """A `shows`: whether the entropies come of one of these ways with one of these numbers, or with
    the eps of the weights' dtype."""

    def shows(inputs, value):
        weights = inputs["weights"]
        numbers = (*sizes, torch.finfo(weights.dtype).eps)
        found = (answer(weights) for number in numbers for answer in ways(number))
        return torch.is_tensor(value) and any(_very_near(X, value) for X in found)

    return shows


# What a weight of 0 is replaced by.
INSTEAD_OF_0 = (
    *(10.0**-n for n in range(9, 13)),
    *(10.0**-n for n in range(1, 9)),
    torch.finfo(torch.float32).eps,
    *(math.e, 2.718281828, 2.71828, 2.718, 0.5, 2.0),
)


ENTROPY = {
    "nan-for-a-weight-of-0": known(
        "A weight of 0 makes the whole row NaN.",
        "ln 0 is -inf, and 0 · (-inf) is not a number. What does w · ln w come to when w shrinks "
        "to 0? Try .1, .001, .00001.",
        logarithm=torch.log,
    ),
    "too-small-for-float32": known(
        "In float32 a weight of 0 makes the whole row NaN: the number that you add to it, or put "
        "in its place, is so small that it is 0 there.",
        "Float32 has nothing between 0 and about 1e-45. 0 · ln 0 needs an answer of its own: which "
        "one?",
        logarithm=lambda weights: weights.clamp(min=1e-300).log(),
    ),
    "nan-made-0": known(
        "Every row with a weight of 0 gets entropy 0. Do you replace the NaN after the sum?",
        "The other terms of that row are lost, too. It is each single term that needs an answer "
        "where the weight is 0.",
        wrong=lambda weights: torch.nan_to_num(-(weights * weights.log()).sum(dim=-1)),
    ),
    **{
        f"added-1e-{size}": known(
            "You add a small number to every weight before the logarithm.",
            "That keeps 0 · ln 0 from becoming NaN, but it moves every other term a little, too, "
            "and with many keys that adds up. 0 · ln 0 needs an answer of its own: which one?",
            logarithm=_logs_with(10.0**-size),
        )
        for size in (9, 10, 8, 6, 12)
    },
    "difference-from-the-largest": known(
        "You return how much is missing to the largest entropy, ln S.",
        "That is 0 for a head that looks everywhere alike. The task asks for the entropy itself, "
        "which is largest there.",
        finish=lambda entropies, weights: math.log(weights.shape[-1]) - entropies,
    ),
    "one-added": known(
        "You take the logarithm of 1 + w.",
        "ln (1 + w) is 0 where the weight is 0, and it is not ln w anywhere else. Only a weight of "
        "0 needs an answer of its own: what does w · ln w come to when w shrinks to 0?",
        logarithm=torch.log1p,
    ),
    "weights-cut-off": known(
        "You leave very small weights out, or make them larger, and not only those that are 0.",
        "Small weights count as well, each a little. Only 0 itself needs an answer of its own.",
        logarithm=lambda weights: weights.clamp(min=1e-6).log(),
        shows=_is_one_of(_cut_off, [10.0**-n for n in range(2, 13)]),
    ),
    "added-more-or-less": known(
        "You add a small number to every weight.",
        "That keeps 0 · ln 0 from becoming NaN, but it moves every other term a little, too, and "
        "with many keys that adds up. 0 · ln 0 needs an answer of its own: which one?",
        wrong=lambda weights: _with_added(1e-7)[0](weights),
        shows=_is_one_of(_with_added, [10.0**-n for n in range(2, 12)]),
    ),
    "another-number-for-0": known(
        "You put another number in the place of a weight of 0, in both factors.",
        "Its logarithm is no longer -inf, but the product is no longer 0: in w · ln w, the w in "
        "front has that number, too. What does such a key add, and what should it add?",
        **any_of(
            build_entropy,
            before=[
                lambda weights, number=number: weights.where(weights != 0, number)
                for number in INSTEAD_OF_0
            ],
        ),
    ),
    "base-2": known(
        "You take the logarithm to base 2, or divide by ln 2, which comes to the same.",
        "That is entropy in bits. The task asks for the natural logarithm, so that equal weights "
        "on S keys give ln S.",
        unit=1 / math.log(2),
    ),
    "base-10": known(
        "You take the logarithm to base 10.",
        "The task asks for the natural logarithm, so that equal weights on S keys give ln S.",
        unit=1 / math.log(10),
    ),
    "divided-by-the-largest": known(
        "You divide by the largest entropy that is possible, ln S.",
        "That is a good way to compare sentences of unequal length, and the lesson does it "
        "afterwards. The task asks for the entropy itself. (With one key ln S is 0.)",
        **any_of(
            build_entropy,
            finish=(
                lambda entropies, weights: entropies / math.log(weights.shape[-1]),
                lambda entropies, weights: entropies / math.log(max(weights.shape[-1], 2)),
            ),
        ),
    ),
    "divided-by-the-largest-in-float32": known(
        "You divide by ln S, the largest entropy that is possible, and your ln S is a float32.",
        "Divided by it, sentences of unequal length can be compared, and the lesson does it "
        "afterwards. The task asks for the entropy itself.",
        finish=lambda entropies, weights: entropies / torch.tensor(float(weights.shape[-1])).log(),
    ),
    "complements-too": known(
        "You count for each key the rest, 1 - w, as well: -(1 - w) · ln(1 - w) beside -w · ln w. "
        "(binary_cross_entropy does so, too.)",
        "That is the entropy of a single yes or no. The keys of a row share one unit of weight: "
        "what one of them does not get is in the terms of the others.",
        wrong=lambda weights: (
            torch.special.entr(weights) + torch.special.entr((1 - weights).clamp(min=0))
        ).sum(-1),
    ),
    "no-minus-sign": known(
        "The sign of your sum is turned round.",
        "The logarithm of a weight is at most 0. What does that say of the sign in front of the "
        "sum: is one missing, is one too many, or does abs stand in its place?",
        total=lambda terms: terms.sum(dim=-1),
    ),
    "mean-over-keys": known(
        "You average over the keys where they have to be added up.",
        "Every weight w adds its own w · ln w. Averaged, equal weights in a text of 4 tokens would "
        "count no more than in one of 2.",
        total=lambda terms: -terms.mean(dim=-1),
    ),
    "over-the-queries": known(
        "You add up down the columns, over the queries.",
        "A row is one query's unit of attention, and the entropy says how widely it is spread. A "
        "column mixes shares of different queries. With L = S no shape shows it.",
        section="Rows are queries, columns are keys",
        total=lambda terms: -terms.sum(dim=-2),
    ),
    **{
        f"axis-{axis}-by-number": known(
            f"You add up along axis {axis}, whatever the shape.",
            "The keys are on the last axis, and how many stand before it differs: heads, layers, "
            "texts. Axes can be counted from the end as well.",
            section="Rows are queries, columns are keys",
            total=lambda terms, axis=axis: -terms.sum(dim=axis),
        )
        for axis in (0, 1, 2, 3)
    },
    "one-head-only": known(
        "You go through rows and their weights one by one, as if there were never more axes.",
        "For one head, (L, S), that is right. With heads, layers or texts in front, what you take "
        "for a weight is a row or a table.",
        wrong=_of_one_head,
    ),
    "over-the-whole-table": known(
        "You add up over the queries as well.",
        "Each query spreads its own attention: one number for each of them.",
        total=lambda terms: -terms.sum(dim=(-2, -1)),
    ),
    "one-number-in-all": known(
        "You add up everything: one number in all.",
        "Each query of each head spreads its own attention. (Picking with weights[weights > 0] "
        "forgets which row a number is from.)",
        total=lambda terms: -terms.sum(),
    ),
    "axis-kept": known(
        "Your result has an axis of length 1 at its end.",
        "The numbers are right. The keys are gone, and so is their axis: (..., L).",
        total=lambda terms: -terms.sum(dim=-1, keepdim=True),
    ),
    "mean-of-the-queries": known(
        "You average the entropies of the queries.",
        "That is a next step, which the caller can do. The task asks for one number for each "
        "query.",
        wrong=lambda weights: torch.special.entr(weights).sum(dim=-1).mean(dim=-1),
    ),
    "number-of-tokens": known(
        "You return exp of the entropy.",
        "That is the number of equal weights that spread as widely. The "
        "task asks for the entropy itself.",
        finish=lambda entropies, weights: entropies.exp(),
    ),
    "weights-forgotten": known(
        "You add up the logarithms, each as often as any other.",
        "A key that gets nothing must count nothing. How much does each logarithm count?",
        factor=torch.ones_like,
    ),
    "softmax-again": known(
        "You apply softmax to the weights, or hand them on as logits, to which softmax is applied.",
        "They are weights already: each row sums to 1. A second softmax makes them almost equal, "
        "and every head looks broad.",
        before=lambda weights: weights.softmax(dim=-1),
    ),
    "log-softmax": known(
        "You take log_softmax of the weights as their logarithm. (cross_entropy does so, too.)",
        "log_softmax wants scores. These are weights, and their logarithm is a plain log.",
        logarithm=lambda weights: weights.log_softmax(dim=-1),
    ),
    "largest-weight-only": known(
        "Your number depends on the largest weight of the row alone.",
        "Two rows with the same largest weight may spread the rest widely or not at all. The sum "
        "goes over all keys.",
        wrong=lambda weights: -weights.amax(dim=-1).log(),
    ),
    "rows-averaged-first": known(
        "You average the rows of a table first, and take the entropy of that.",
        "Each query spreads its own attention. A mean of sharp rows is broad, though no query is.",
        before=lambda weights: weights.mean(dim=-2, keepdim=True).expand_as(weights),
    ),
    "rounded": known(
        "You round your numbers.",
        "Round what you print, not what you return: whoever goes on with it needs the digits.",
        **any_of(
            build_entropy,
            finish=[
                lambda entropies, weights, digits=digits: entropies.round(decimals=digits)
                for digits in (4, 2, 3, 5, 6)
            ],
        ),
    ),
    "squares": known(
        "Your number is 1 minus the sum of the squares.",
        "That measures spread as well (Gini's index). The task asks for the entropy, with a "
        "logarithm.",
        wrong=lambda weights: 1 - weights.square().sum(dim=-1),
    ),
}

TASK = Task(
    "07-entropy",
    heads.entropy,
    entropy_cases,
    tolerance=5e-12,  # a small number that is added to every weight shows
    mistakes=read_again("How widely a head looks", ENTROPY),
    build=build_entropy,
    point_out=point_out_terms,
    forbidden=FORBIDDEN,
    number=2,
    alone=("another-number-for-0", "divided-by-the-largest-in-float32"),
)
