"""Task 8.6, expected_share: the answers that are right if heads bring values without order."""

import itertools

import torch
from torch.nn import functional as F

from mha_classroom.checks.task import Case, Task, known, read_again

TASK_OF_LESSON = "A task for several heads"


def expected_share(groups, num_values):
    return build_share()(groups, num_values)


def share_cases(draw):
    def case(name, groups, num_values):
        return Case(name, {"groups": groups, "num_values": num_values})

    return [
        case("a head for one answer, a head for two; 2 values", (1, 2), 2),
        case("two heads with two answers each", (2, 2), 8),
        case("one head with two answers, two with one", (2, 1, 1), 8),
        case("one head for all four", (4,), 5),
        case("a head for each", (1, 1, 1), 6),
        case("heads with 3 and 1", (3, 1), 4),
        case("heads with 1, 3 and 2", (1, 3, 2), 3),
        case("a single value", (3, 2), 1),
        case("one head with five answers", (5,), 4),
    ]


def most_frequent(values):
    return max(values.count(value) for value in values)


def build_share(
    right=most_frequent,
    possible=lambda n, size: itertools.product(range(n), repeat=size),
    total=lambda rights, groups: sum(rights) / sum(groups),
    groups_of=lambda groups: groups,
):
    """right: how many answers of a group are right, for values of one group."""

    def expected_share(groups, num_values):
        groups, rights = groups_of(groups), []
        for size in groups:
            counts = [right(list(values)) for values in possible(num_values, size)]
            rights.append(sum(counts) / max(len(counts), 1))
        return total(rights, groups)

    return expected_share


def _product(rights, groups):
    product = 1.0
    for right, size in zip(rights, groups, strict=True):
        product *= right / size
    return product


def _by_chance_unless_alone(groups, num_values):
    return sum(1 if size == 1 else size / num_values for size in groups) / sum(groups)


def _without_axis(groups, num_values):
    """The lesson's cell for each head."""
    rights = []
    for size in groups:
        values = torch.cartesian_prod(*[torch.arange(num_values)] * size)
        counts = F.one_hot(values, num_classes=num_values).sum(dim=1)
        rights.append(counts.max(dim=1).values.double().mean().item())
    return sum(rights) / sum(groups)


def _shows_nearly(inputs, share):
    right = expected_share(*inputs.values())
    return isinstance(share, (int, float)) and 0 <= share <= 1 and abs(share - right) < 0.02


def _never_equal(**part):
    return known(
        "You count values as if no two of a head's could be equal.",
        "Keys are there once each. Values are drawn independently, so one may come twice, and the "
        "same guess is then right twice.",
        possible=lambda n, size: itertools.permutations(range(n), size),
        **part,
    )


def _permutations_unguarded(groups, num_values):
    rights = []
    for size in groups:
        counts = [1 for _ in itertools.permutations(range(num_values), size)]
        rights.append(sum(counts) / len(counts))
    return sum(rights) / sum(groups)


def _too_few_of_all(groups, num_values):
    """Values from 1 on, divided by the number of all possible ones."""
    rights = []
    for size in groups:
        possible = itertools.product(range(1, num_values), repeat=size)
        rights.append(sum(most_frequent(values) for values in possible) / num_values**size)
    return sum(rights) / sum(groups)


def _cases_by_product(groups, num_values):
    rights = []
    for size in groups:
        possible = itertools.product(range(num_values), repeat=size)
        rights.append(sum(most_frequent(values) for values in possible) / (num_values * size))
    return sum(rights) / sum(groups)


def _one_mean(groups, num_values):
    right = count = 0
    for size in groups:
        possible = itertools.product(range(num_values), repeat=size)
        right += sum(most_frequent(values) for values in possible)
        count += size * num_values**size
    return right / count


def _one_head_only(total):
    return known(
        "Only one head gets into your result. Does a `return` stand inside the loop, or = where += "
        "should be?",
        "The answers of all heads count.",
        total=total,
    )


TOO_FEW = (
    "You leave one value out.",
    "There are num_values of them, and each is equally likely. Does your range begin at 1, or end "
    "too early?",
)

SHARES = {
    "groups-count-alike": known(
        "You take the mean of the heads' shares, so that a head with one answer counts as much as "
        "one with three.",
        "Asked for is the share of all answers.",
        total=lambda rights, groups: (
            sum(right / size for right, size in zip(rights, groups, strict=True)) / len(groups)
        ),
    ),
    "heads-pooled": known(
        "You put the answers of all heads into one heap.",
        "Two heads arrive side by side: the model knows which of them brought a value.",
        groups_of=lambda groups: (sum(groups),),
    ),
    "one-right-for-each-head": known(
        "You count one right answer for each head.",
        "Keys are there once each, but a value may come twice. Then the same guess is right twice.",
        right=lambda values: 1,
    ),
    "all-equal-or-one": known(
        "You count a guess as right for all answers of a head if their values are equal, and for "
        "one otherwise.",
        "With three answers, two of the values may be equal.",
        right=lambda values: len(values) if len(set(values)) == 1 else 1,
    ),
    "order-ignored": known(
        "You count sets of values, each as equally likely.",
        "Values 0 and 1 can come in two orders, 0 and 0 in one. Then 0 and 1 are twice as likely.",
        possible=lambda n, size: itertools.combinations_with_replacement(range(n), size),
    ),
    "blind-guess": known(
        "You let the model guess among all values, or give one value always.",
        "It does not know the order, but it knows which values a head brought.",
        wrong=lambda groups, num_values: 1 / num_values,
    ),
    "random-of-the-group": known(
        "You let the model choose one of a head's values, at random or the first, for each answer. "
        "(Or one answer of each head is right, and the others are by chance: the same number.)",
        "A better guess exists: which of a head's values is right most often?",
        right=lambda values: sum(values.count(value) for value in values) / len(values),
    ),
    "eight-values": known(
        "You count with 8 values, as in the lesson.",
        "How many values there are is an input: num_values.",
        possible=lambda n, size: itertools.product(range(8), repeat=size),
    ),
    "number-not-share": known(
        "You return how many answers are right.",
        "Asked for is their share.",
        total=lambda rights, groups: sum(rights),
    ),
    "divided-by-the-number-of-heads": known(
        "You divide the number of right answers by the number of heads.",
        "Asked for is the share of all answers. How many are there?",
        total=lambda rights, groups: sum(rights) / len(groups),
    ),
    "divided-twice": known(
        "You divide by the number of answers twice.",
        "A share of each head, or a share of all: one division.",
        total=lambda rights, groups: (
            sum(right / size for right, size in zip(rights, groups, strict=True)) / sum(groups)
        ),
    ),
    "sizes-counted-twice": known(
        "You multiply the number of a head's right answers by its number of answers.",
        "A head with three answers has a larger number of right ones already.",
        total=lambda rights, groups: (
            sum(right * size for right, size in zip(rights, groups, strict=True)) / sum(groups)
        ),
    ),
    "first-head-only": _one_head_only(lambda rights, groups: rights[0] / groups[0]),
    "first-head-of-all": _one_head_only(lambda rights, groups: rights[0] / sum(groups)),
    "last-head-only": _one_head_only(lambda rights, groups: rights[-1] / groups[-1]),
    "last-head-of-all": _one_head_only(lambda rights, groups: rights[-1] / sum(groups)),
    "first-head-s-number": _one_head_only(lambda rights, groups: rights[0]),
    "largest-share": known(
        "You return the largest share of a head.",
        "The answers of all heads count.",
        total=lambda rights, groups: max(
            right / size for right, size in zip(rights, groups, strict=True)
        ),
    ),
    "values-and-answers-swapped": known(
        "You give as many answers as there are values, and as many values as a head has answers.",
        "Each answer of a head can have each of the num_values values.",
        possible=lambda n, size: itertools.product(range(size), repeat=n),
    ),
    "all-cases-in-one-mean": known(
        "You add up the cases of all heads and divide once, so that a head with more cases counts "
        "more.",
        "A head with three answers has more cases than a head with one. First the mean of each "
        "head.",
        wrong=_one_mean,
    ),
    "rounded-down": known(
        "You divide with //, which rounds the number of right answers down.",
        "In Python / gives fractions.",
        total=lambda rights, groups: sum(right // 1 for right in rights) / sum(groups),
    ),
    "always-1": known(
        "You return 1: all answers are right.",
        "The model knows which values a head brought, and not which belongs to which answer.",
        wrong=lambda groups, num_values: 1.0,
    ),
    "percent": known(
        "You return percent.",
        "Asked for is a number from 0 to 1.",
        total=lambda rights, groups: 100 * sum(rights) / sum(groups),
    ),
    "never-equal": _never_equal(),
    "never-equal-divided-by-none": known(
        "You count values as if no two of a head's could be equal, and with more answers than "
        "values there is no such case.",
        "Values are drawn independently, so one may come twice.",
        wrong=_permutations_unguarded,
    ),
    "different-values-counted": known(
        "You count how many different values a head brings.",
        "How many answers are right if the model gives the same value, the best one, for each?",
        right=lambda values: len(set(values)),
    ),
    "rarest-value": known(
        "You count the rarest of a head's values.",
        "The model makes the best guess.",
        right=lambda values: min(values.count(value) for value in values),
    ),
    "one-value-too-few": known(
        *TOO_FEW, possible=lambda n, size: itertools.product(range(1, n), repeat=size)
    ),
    "one-value-too-few-of-all": known(*TOO_FEW, wrong=_too_few_of_all),
    "one-value-too-many": known(
        "You count with one value too many.",
        "There are num_values of them: the numbers below num_values, for instance.",
        possible=lambda n, size: itertools.product(range(n + 1), repeat=size),
    ),
    "cases-counted-by-a-product": known(
        "You get the number of cases wrong: it is not num_values times the number of answers.",
        "For each value of the first answer the second one can have all values again, and so on.",
        wrong=_cases_by_product,
    ),
    "chance-unless-alone": known(
        "You let the model guess among all values, unless a head brings just one.",
        "It knows which values a head brought, and one of these is right for sure.",
        wrong=_by_chance_unless_alone,
    ),
    "no-axis-for-one-answer": known(
        "With one answer your table of cases has no axis for the answers.",
        "torch.cartesian_prod of a single tensor returns that tensor, with one axis.",
        wrong=_without_axis,
    ),
    "product": known(
        "You multiply the shares of the heads.",
        "That is for all answers to be right at once. Here every answer counts by itself.",
        total=_product,
    ),
    "nearly": known(
        "Your share is nearly right. Do you draw at random, or round?",
        "Go through all possible values of a head, and give all digits.",
        wrong=lambda groups, num_values: round(expected_share(groups, num_values), 2),
        shows=_shows_nearly,
    ),
}


TASK = Task(
    "08-expected_share",
    expected_share,
    share_cases,
    returns=("the share",),
    mistakes=read_again(TASK_OF_LESSON, SHARES),
    build=build_share,
    alone=(
        "blind-guess",
        "product",
        "number-not-share",
        "eight-values",
        "percent",
        "rounded-down",
        "largest-share",
        "values-and-answers-swapped",
        "never-equal",
        "different-values-counted",
        "rarest-value",
        "one-value-too-few",
        "one-value-too-many",
        "divided-twice",
        "sizes-counted-twice",
        "first-head-only",
        "first-head-of-all",
        "last-head-only",
        "last-head-of-all",
        "first-head-s-number",
    ),
    number=6,
)
