"""Task 8.6, expected_share: the answers that are right if heads bring values without order."""

import itertools

from mha_classroom.checks.forms import any_of, like
from mha_classroom.checks.showing import listed, number_text
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


def point_out_groups(inputs, share):
    """How many answers of a group are right, for the groups of each size."""
    num_values = inputs["num_values"]
    sizes = sorted(set(inputs["groups"]))
    rights = listed([f"{_mean_right(size, num_values)} of {size}" for size in sizes])
    values = "1 value" if num_values == 1 else f"{num_values} values"
    return f"With {values}, on average so many answers of a group are right: {rights}."


def _mean_right(size, num_values):
    counts = [most_frequent(values) for values in itertools.product(range(num_values), repeat=size)]
    return number_text(sum(counts) / len(counts), 4)


def build_share(
    right=most_frequent,
    possible=lambda n, size: itertools.product(range(n), repeat=size),
    total=lambda rights, groups: sum(rights) / sum(groups),
    groups_of=lambda groups: groups,
    least=0,
):
    """right: how many answers of a group are right, for values of one group. least: the number of
    cases that is divided by at the least, so that none at all may give 0 in place of an error.
    """

    def expected_share(groups, num_values):
        groups, rights = groups_of(groups), []
        for size in groups:
            counts = [right(list(values)) for values in possible(num_values, size)]
            rights.append(sum(counts) / max(len(counts), least))
        return total(rights, groups)

    return expected_share


def _number_of_best(values):
    """How many values come as often as the most frequent one."""
    return len({value for value in values if values.count(value) == most_frequent(values)})


def repeats_and_one(values):
    return len(values) - len(set(values)) + 1


def _most_frequent_itself(first, order):
    """The value, not how often it comes; values count from `first`, ties go by the order."""

    def right(values):
        values = [first + value for value in values]
        return max(order(values), key=values.count)

    return right


def _product(rights, groups):
    product = 1.0
    for right, size in zip(rights, groups, strict=True):
        product *= right / size
    return product


def _shows_nearly(inputs, share):
    right = expected_share(*inputs.values())
    return isinstance(share, (int, float)) and 0 <= share <= 1 and abs(share - right) < 0.02


def _one_mean(groups, num_values):
    right = count = 0
    for size in groups:
        possible = itertools.product(range(num_values), repeat=size)
        right += sum(most_frequent(values) for values in possible)
        count += size * num_values**size
    return right / count


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
    "nothing-in-a-tie": known(
        "Where no value of a head comes more often than all others, you count no right answer.",
        "The model may guess any of the most frequent ones: as many are right as that value comes.",
        right=lambda values: most_frequent(values) * (_number_of_best(values) == 1),
    ),
    "one-right-for-each-head": known(
        "In your number one answer of each head is right, as if its values always differed.",
        "Keys are there once each, but a value may come twice. Then the same guess is right twice.",
        right=lambda values: 1,
    ),
    "values-always-different": known(
        "Where there are enough values, you count as if all values of a head differed.",
        "Keys are there once each. Each value is drawn by itself, so one may come twice.",
        possible=lambda n, size: (
            itertools.permutations(range(n), size)
            if size <= n
            else itertools.product(range(n), repeat=size)
        ),
    ),
    "all-or-nothing": known(
        "You count the answers of a head only where all of its values are equal.",
        "With two different values the model still gets one of them right: the one it guesses.",
        right=lambda values: len(values) if len(set(values)) == 1 else 0,
    ),
    "different-values-counted": known(
        "You count how many different values a head has.",
        "The model gives the value that comes most often. How often does that one come?",
        right=lambda values: len(set(values)),
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
    "random-of-the-group": known(
        "You let the model choose one of a head's values, at random or the first, for each answer. "
        "(Or one answer of each head is right, and the others are right by chance: the same "
        "number.)",
        "A better guess exists: which of a head's values is right most often?",
        right=lambda values: sum(values.count(value) for value in values) / len(values),
    ),
    "different-values-alike": known(
        "In your number the model answers with one of a head's different values, by chance or by "
        "a rule of your own, also where another comes more often.",
        "A better guess exists: which of a head's values is right most often?",
        right=lambda values: len(values) / len(set(values)),
    ),
    "divided-by-the-number-of-heads": known(
        "You divide the number of right answers by the number of heads.",
        "Asked for is the share of all answers. How many are there?",
        total=lambda rights, groups: sum(rights) / len(groups),
    ),
    "all-cases-in-one-mean": known(
        "You add up the cases of all heads and divide once, so that a head with more cases counts "
        "more.",
        "A head with three answers has more cases than a head with one. First the mean of each "
        "head.",
        wrong=_one_mean,
    ),
    "nearly": known(
        "Your share is nearly right. Do you draw at random, or round?",
        "Go through all possible values of a head, and give all digits.",
        wrong=lambda groups, num_values: round(expected_share(groups, num_values), 2),
        shows=_shows_nearly,
    ),
}

# Not looked for together with another one: they hide it, or are seldom made.
ALONE = {
    "longest-run": known(
        "You count how often a value comes in a row, one right after the other.",
        "In a, b, a the value a comes twice. itertools.groupby puts only neighbours together: sort "
        "the values first, or count them.",
        right=lambda values: max(len(list(run)) for _, run in itertools.groupby(values)),
    ),
    "mean-cut-to-a-whole-number": known(
        "Your number of right answers of a head is cut to a whole one.",
        "It is a mean over all cases, such as 1.2. // and int() cut off what follows the point.",
        total=lambda rights, groups: sum(int(right + 1e-9) for right in rights) / sum(groups),
    ),
    "blind-guess": known(
        "Your number is what a guess among all values brings, or one value that is given always, "
        "perhaps only where a head brings several.",
        "The model does not know the order, but it knows which values a head brought. So its best "
        "guess differs from case to case.",
        wrong=lambda groups, num_values: 1 / num_values,
        shows=like(
            lambda groups, num_values: 1 / num_values,
            lambda groups, num_values: (
                sum(1 if size == 1 else size / num_values for size in groups) / sum(groups)
            ),
        ),
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
    "equal-groups-once": known(
        "Of heads with equally many answers you count one only.",
        "A set or a dict keeps equal numbers once. Two heads with one answer each are two heads.",
        **any_of(
            build_share,
            {"groups_of": set},
            {"groups_of": lambda groups: list(dict.fromkeys(groups))},
            total=(
                lambda rights, groups: (
                    sum(dict(zip(groups, rights, strict=True)).values()) / sum(groups)
                ),
            ),
        ),
    ),
    "rarest-value": known(
        "You answer with the value that came least often.",
        "The best guess is the value that most of the head's answers have.",
        right=lambda values: min(map(values.count, values)),
    ),
    "repeats-as-of-one-value": known(
        "You count every value that came before as one more right answer.",
        "Of four answers two may have one value, and two another. One guess is right for two of "
        "them only.",
        right=repeats_and_one,
    ),
    "value-not-its-number": known(
        "You add up the most frequent values themselves.",
        "A share is made of how often a value comes. Counter.most_common gives pairs of a value "
        "and its number, and max with a key gives the value.",
        **any_of(
            build_share,
            right=[
                _most_frequent_itself(*form)
                for form in itertools.product((0, 1), (list, sorted, set))
            ],
        ),
    ),
    "divided-twice": known(
        "You divide by the number of answers twice.",
        "A share of each head, or a share of all: one division.",
        total=lambda rights, groups: (
            sum(right / size for right, size in zip(rights, groups, strict=True)) / sum(groups)
        ),
    ),
    "one-head-only": known(
        "Only one head gets into your result. Does a `return` stand inside the loop, or = where += "
        "should be?",
        "The answers of all heads count.",
        **any_of(
            build_share,
            total=(
                lambda rights, groups: rights[0] / groups[0],
                lambda rights, groups: rights[0] / sum(groups),
                lambda rights, groups: rights[-1] / groups[-1],
                lambda rights, groups: rights[-1] / sum(groups),
            ),
        ),
    ),
    "largest-head-only": known(
        "You count only the head with the most answers.",
        "The answers of all heads count.",
        **any_of(
            build_share,
            {"groups_of": lambda groups: (max(groups),)},
            total=(
                lambda rights, groups: max(rights) / max(groups),
                lambda rights, groups: (
                    dict(zip(groups, rights, strict=True))[max(groups)] / sum(groups)
                ),
            ),
        ),
    ),
    **{
        f"{id}{end}": known(did, why, possible=possible, least=least)
        for id, did, why, possible in (
            (
                "never-equal",
                "You count values as if no two of a head's could be equal.",
                "Keys are there once each. Values are drawn independently, so one may come twice, "
                "and the same guess is then right twice.",
                lambda n, size: itertools.permutations(range(n), size),
            ),
            (
                "one-value-too-few",
                "You leave one value out.",
                "There are num_values of them, and each is equally likely. Does your range begin "
                "at 1, or end too early?",
                lambda n, size: itertools.product(range(1, n), repeat=size),
            ),
        )
        for end, least in (("", 0), ("-else-0", 1))
    },
    "one-value-too-many": known(
        "You count with one value too many.",
        "There are num_values of them: the numbers below num_values, for instance.",
        possible=lambda n, size: itertools.product(range(n + 1), repeat=size),
    ),
    "product": known(
        "You multiply the shares of the heads.",
        "That is for all answers to be right at once. Here every answer counts by itself.",
        total=_product,
    ),
}


TASK = Task(
    "08-expected_share",
    expected_share,
    share_cases,
    returns=("the share",),
    mistakes=read_again(TASK_OF_LESSON, SHARES | ALONE),
    build=build_share,
    point_out=point_out_groups,
    alone=tuple(ALONE),
    number=6,
)
