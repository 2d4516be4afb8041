"""Task 8.7, smallest_enough: the fewest heads with which every run of several reached a goal."""

import itertools

import torch

from mha_classroom.checks.examining import total
from mha_classroom.checks.forms import any_of
from mha_classroom.checks.showing import describe, numbers_text
from mha_classroom.checks.task import AnswerError, Case, Task, and_in_float32, known, read_again

STUDY = "Six seeds, four budgets"


def smallest_enough(num_heads, accuracies, goal, least_runs):
    return build_enough()(num_heads, accuracies, goal, least_runs)


@and_in_float32
def enough_cases(draw):
    """Unordered runs, counts with too few, one seed that fails, a goal met exactly, no answer."""

    def case(name, runs, goal, least_runs):
        heads, shares = zip(*runs, strict=True)
        inputs = {
            "num_heads": torch.tensor(heads),
            "accuracies": torch.tensor(shares, dtype=torch.float64),
        }
        return Case(name, inputs | {"goal": goal, "least_runs": least_runs})

    two = [(8, 0.99), (2, 0.60), (8, 0.97), (4, 0.96), (2, 0.70), (4, 0.95)]
    unlucky = [(4, 1.0), (16, 0.97), (4, 1.0), (4, 0.949), (16, 0.98), (16, 0.99), (8, 0.99)]
    close = [
        (4, 0.91),
        (2, 0.896),
        (4, 0.899999995),
        (8, 0.95),
        (2, 0.93),
        (8, 0.9),
        (1, 0.88),
        (1, 0.9),
    ]
    late = [(4, 0.9), (16, 0.97), (4, 1.0), (4, 1.0), (16, 0.98), (8, 0.99), (8, 0.96)]
    odd = [(6, 0.97), (8, 0.93), (3, 0.94), (2, 0.4), (6, 0.95), (3, 0.92), (8, 0.91), (2, 0.85)]
    falling = [(32, 0.5), (4, 0.97), (32, 0.6), (1, 0.4), (1, 0.4), (4, 0.98), (8, 1.0), (8, 1.0)]
    return [
        case("2 runs each of 2, 4 and 8 heads", two, 0.9, 2),
        case("3 heads are enough, no power of 2", odd, 0.9, 2),
        case("one seed fails", unlucky, 0.95, 3),
        case("too few runs of some", unlucky, 0.95, 2),
        case("the first seed fails", late, 0.95, 2),
        case("one seed fails badly", [(4, 1.0), (4, 0.0), (8, 0.9), (4, 1.0), (8, 1.0)], 0.85, 2),
        case("more heads are worse again", falling, 0.9, 2),
        case("the goal is met exactly", [(8, 1.0), (4, 0.8), (8, 1.0), (4, 0.8)], 0.8, 2),
        case("the goal is missed by 0.000000005", close, 0.9, 2),
        case("nothing reaches the goal", two, 0.999, 1),
        case("nothing has enough runs", two, 0.5, 3),
        case("one run each", [(8, 0.9), (2, 0.3), (4, 0.92), (1, 0.95)], 0.9, 1),
        case("1000 heads are enough", [(1000, 0.98), (96, 0.8), (96, 0.97), (1000, 0.99)], 0.9, 2),
        case("as many runs as asked for, and more", [*two, (4, 0.99), (2, 0.99)], 0.9, 3),
        case("a single run", [(4, 0.9)], 0.9, 1),
    ]


@total
def examine_enough(inputs, seen):
    """What is returned.

    Raises: AnswerError if it is None where a number is enough.
    """
    right = smallest_enough(**inputs)
    if seen is None and right is not None:
        raise AnswerError(
            f"smallest_enough returns None, as if no number of heads were enough. Here {right} "
            "is. (A function that comes to its end without `return` returns None, too.) "
            + point_out_runs(inputs, seen)
        )
    return seen


def point_out_runs(inputs, seen):
    """The accuracies of the number that is asked for and of the one that was returned."""
    num_heads, accuracies, goal, least_runs = inputs.values()
    right = smallest_enough(num_heads, accuracies, goal, least_runs)

    def says(count):
        runs = accuracies[num_heads == count]
        if not len(runs):
            return f"There is no run with {describe(count).removeprefix('the number ')} heads."
        return f"Runs with {count} head{'s' * (count != 1)}: {numbers_text(runs)}."

    runs = "1 run" if least_runs == 1 else f"{least_runs} runs"
    asked = f"Asked for: at least {runs}, all of them {goal} or more."
    return " ".join([asked, *(says(count) for count in (right, seen) if count is not None)])


def build_enough(
    judge=lambda shares: shares.min(),
    reaches=lambda share, goal: share >= goal,
    counted=lambda shares, goal, least: len(shares) >= least,
    choose=min,
    nothing=None,
    tried=lambda count: True,
):
    """tried: whether a number of heads is looked at. counted: whether its runs are enough of them.
    judge: one accuracy for all of its runs. reaches: whether that is as good as the goal.
    choose: one of the numbers that are enough. nothing: the result where there is none.
    """

    def smallest_enough(num_heads, accuracies, goal, least_runs):
        good = []
        for count in filter(tried, dict.fromkeys(num_heads.tolist())):
            shares = accuracies[num_heads == count]
            if counted(shares, goal, least_runs) and reaches(judge(shares), goal):
                good.append(count)
        return choose(good) if good else nothing

    return smallest_enough


def _most_accurate(num_heads, accuracies, goal, least_runs):
    good = {}
    for count in num_heads.unique().tolist():
        shares = accuracies[num_heads == count]
        if len(shares) >= least_runs and shares.min() >= goal:
            good[count] = shares.mean()
    return max(good, key=good.get) if good else None


def _with_all_larger(num_heads, accuracies, goal, least_runs):
    """From the largest number with enough runs down to the first that fails."""
    found = None
    for count in reversed(num_heads.unique().tolist()):
        shares = accuracies[num_heads == count]
        if len(shares) >= least_runs:
            if shares.min() < goal:
                break
            found = count
    return found


def _by_halving(num_heads, accuracies, goal, least_runs):
    heads = [n for n in num_heads.unique().tolist() if (num_heads == n).sum() >= least_runs]
    low, high = 0, len(heads)
    while low < high:
        middle = (low + high) // 2
        enough = accuracies[num_heads == heads[middle]].min() >= goal
        low, high = (low, middle) if enough else (middle + 1, high)
    return heads[low] if low < len(heads) else None


def _sorted_alone(heads, accuracies):
    """Numbers of heads and accuracies that no longer belong together."""

    def smallest(num_heads, shares, goal, least_runs):
        num_heads = num_heads.sort().values if heads else num_heads
        shares = shares.sort().values if accuracies else shares
        return smallest_enough(num_heads, shares, goal, least_runs)

    return smallest


def _good(num_heads, accuracies, goal, least_runs):
    counts = num_heads.unique().tolist()
    runs = ((count, accuracies[num_heads == count]) for count in counts)
    return [count for count, shares in runs if len(shares) >= least_runs and shares.min() >= goal]


def _first_in(order):
    def smallest_enough(num_heads, accuracies, goal, least_runs):
        good = _good(num_heads, accuracies, goal, least_runs)
        return next((count for count in order(num_heads.tolist()) if count in good), None)

    return smallest_enough


def _place_not_number(num_heads, accuracies, goal, least_runs):
    good = _good(num_heads, accuracies, goal, least_runs)
    return num_heads.unique().tolist().index(good[0]) if good else None


def _place_of_a_run(num_heads, accuracies, goal, least_runs):
    good = _good(num_heads, accuracies, goal, least_runs)
    return num_heads.tolist().index(good[0]) if good else None


def _judged_by(runs):
    """runs: which ones, given all numbers of heads and the one that is judged; None: all, as soon
    as there are enough of its own."""

    def smallest_enough(num_heads, accuracies, goal, least_runs):
        for count in num_heads.unique().tolist():
            shares = accuracies[runs(num_heads, count)] if runs else accuracies
            counted = shares if runs else accuracies[num_heads == count]
            if len(counted) >= least_runs and shares.min() >= goal:
                return count
        return None

    return smallest_enough


def _gives_up(where):
    def smallest_enough(num_heads, accuracies, goal, least_runs):
        for count in num_heads.unique().tolist():
            shares = accuracies[num_heads == count]
            if where(shares, goal, least_runs):
                return None
            if len(shares) >= least_runs and shares.min() >= goal:
                return count
        return None

    return smallest_enough


def _neighbours(num_heads, accuracies, goal, least_runs):
    good, runs = [], zip(num_heads.tolist(), accuracies.tolist(), strict=True)
    for count, group in itertools.groupby(runs, key=lambda run: run[0]):
        shares = [share for _, share in group]
        if len(shares) >= least_runs and min(shares) >= goal:
            good.append(count)
    return min(good, default=None)


def _neighbours_counted(num_heads, accuracies, goal, least_runs):
    groups = itertools.groupby(num_heads.tolist())
    enough = {count for count, runs in groups if len([*runs]) >= least_runs}
    good = _good(num_heads, accuracies, goal, least_runs)
    return min(enough.intersection(good), default=None)


def _all_but_the_largest(num_heads, accuracies, goal, least_runs):
    others = num_heads < num_heads.max()
    return smallest_enough(num_heads[others], accuracies[others], goal, least_runs)


def _in_steps(steps):
    """Accuracies are rounded to so many steps from 0 to 1."""
    return lambda share, goal: (steps * share).round() / steps >= goal


def _less(little):
    """A run may miss the goal by so much."""
    return lambda share, goal: share >= goal - little


ENOUGH = {
    "mean-not-worst": known(
        "You look at the mean of the runs, or at their median, or more than half of them are "
        "enough for you.",
        "Each of these can reach the goal while one seed fails. Every run has to reach it.",
        **any_of(build_enough, judge=(torch.mean, torch.median)),
    ),
    "best-not-worst": known(
        "One run that reaches the goal is enough for you.",
        "That may be luck. Every run has to reach it.",
        judge=lambda shares: shares.max(),
    ),
    "above-not-reached": known(
        "A run that meets the goal exactly does not count for you.",
        "It has reached it.",
        reaches=lambda share, goal: share > goal,
    ),
    "runs-not-counted": known(
        "A number of heads with fewer than least_runs runs counts for you.",
        "Then nothing is known of the spread. How many runs has each number of heads?",
        counted=lambda shares, goal, least: True,
    ),
    "more-than-least": known(
        "You ask for more runs than least_runs.",
        "As many as that are enough.",
        counted=lambda shares, goal, least: len(shares) > least,
    ),
    "first-found": known(
        "You take the first number of heads that fits, in the order of the runs.",
        "Runs come in any order. Asked for is the smallest number.",
        choose=lambda good: good[0],
    ),
    "first-of-a-set": known(
        "You take the first number of heads that fits, in the order in which a set holds them.",
        "A set has no order. Asked for is the smallest number.",
        wrong=_first_in(lambda heads: {*heads}),
    ),
    "first-as-text": known(
        "You sort the numbers of heads as text.",
        'As text "16" comes before "8". Asked for is the smallest number.',
        wrong=_first_in(lambda heads: sorted({*heads}, key=str)),
    ),
    "largest": known(
        "You take the largest number of heads that fits.",
        "Asked for is the smallest.",
        choose=max,
    ),
    "larger-ones-too": known(
        "A number of heads counts for you only if all larger ones are enough, too.",
        "More heads may be worse again. Each number of heads is judged by its own runs.",
        wrong=_with_all_larger,
    ),
    "halved": known(
        "Where 1 head is enough, you return more. Do you begin with 2, or search by halving?",
        "Halving is right only if all larger numbers of heads are enough, too. Go through all "
        "numbers, one by one.",
        wrong=_by_halving,
    ),
    **{
        id: known(
            f"You sort {which}.",
            "Number and accuracy of a run belong together. If one list is sorted, the other has to "
            "come along: argsort gives the order for both.",
            wrong=_sorted_alone(heads, accuracies),
        )
        for id, which, heads, accuracies in (
            ("heads-sorted", "the numbers of heads and leave the accuracies as they are", 1, 0),
            (
                "accuracies-sorted",
                "the accuracies and leave the numbers of heads as they are",
                0,
                1,
            ),
            ("each-sorted", "the numbers of heads and the accuracies, each by itself", 1, 1),
        )
    },
    "place-not-number": known(
        "You return the place of the number among the different ones.",
        "Asked for is the number of heads itself.",
        wrong=_place_not_number,
    ),
    "gives-up-at-few-runs": known(
        "Where a number of heads has too few runs, you give up.",
        "It does not count. A larger number may be enough.",
        wrong=_gives_up(lambda shares, goal, least: len(shares) < least),
    ),
    "smallest-only": known(
        "You judge the smallest number of heads and return None if it is not enough.",
        "Then a larger one may be. Does a `return None` stand inside the loop?",
        wrong=_gives_up(lambda shares, goal, least: len(shares) < least or shares.min() < goal),
    ),
    "first-run-only": known(
        "Of the runs with one number of heads you look at the first only.",
        "Every run has to reach the goal.",
        judge=lambda shares: shares[0],
    ),
    "last-run-only": known(
        "Of the runs with one number of heads you look at the last only.",
        "Every run has to reach the goal. In a dict with one accuracy for each number of heads, "
        "the next one replaces the one before.",
        judge=lambda shares: shares[-1],
    ),
    "zero-not-none": known(
        "You return a number, 0 or −1, where no number of heads is enough.",
        "Whoever reads that takes it for a number of heads. None says that there is none.",
        **any_of(build_enough, nothing=(0, -1)),
    ),
    "place-of-a-run": known(
        "You return the place of a run in the study.",
        "Asked for is the number of heads itself.",
        wrong=_place_of_a_run,
    ),
    **{
        id: known(
            f"You judge a number of heads by {which}.",
            "Each number of heads is judged by its own runs, and by nothing else.",
            wrong=_judged_by(runs),
        )
        for id, which, runs in (
            ("all-runs-of-the-study", "all runs of the study", None),
            ("runs-with-more-too", "the runs with more heads, too", torch.ge),
            ("runs-with-fewer-too", "the runs with fewer heads, too", torch.le),
        )
    },
    "runs-as-neighbours": known(
        "You take only neighbouring runs together.",
        "Runs come in any order: the same number of heads may come again later. (groupby of "
        "itertools needs a sorted list.)",
        wrong=_neighbours,
    ),
    "neighbours-counted": known(
        "You count only neighbouring runs to see whether there are enough.",
        "Runs come in any order: the same number of heads may come again later. "
        "(unique_consecutive counts neighbours, and unique all.)",
        wrong=_neighbours_counted,
    ),
}

# Not looked for together with another one: they hide it, or are seldom made.
ALONE = {
    "good-runs-counted": known(
        "You count the runs that reach the goal and forget those that do not.",
        "A single run that fails is enough to say no.",
        counted=lambda shares, goal, least: (shares >= goal).sum() >= least,
        judge=lambda shares: shares.max(),
    ),
    **{
        id: known(
            f"You look at the {which} least_runs runs only.",
            "least_runs says how many runs there have to be. If there are more, every one of them "
            "has to reach the goal.",
            counted=counted,
            judge=lambda shares: shares.max(),
        )
        for id, which, counted in (
            ("first-of-the-runs", "first", lambda X, goal, n: (X[:n] >= goal).sum() >= n),
            ("last-of-the-runs", "last", lambda X, goal, n: (X[-n:] >= goal).sum() >= n),
        )
    },
    "most-accurate": known(
        "You take the number of heads with the best mean, among those that fit.",
        "Among those that fit, fewer heads are enough.",
        wrong=_most_accurate,
    ),
    "exactly-least": known(
        "You ask for exactly least_runs runs.",
        "It is the least number: more are welcome.",
        counted=lambda shares, goal, least: len(shares) == least,
    ),
    "rounded": known(
        "You round the accuracies, hold them in float32, or let a run miss the goal by a little.",
        "0.899999995 is below 0.9. A run that meets the goal exactly has reached it, and one below "
        "has not.",
        **any_of(
            build_enough,
            reaches=(*map(_in_steps, (100, 1000, 10000)), *map(_less, (1e-2, 1e-3, 1e-4, 1e-6))),
        ),
    ),
    **{
        id: known(
            "You try only 1, 2, 4, 8 and so on.",
            "A study may have other numbers of heads, too: num_heads says which.",
            tried=tried,
        )
        for id, tried in (
            ("powers-of-2", lambda count: count & (count - 1) == 0),
            ("powers-of-2-up-to-8", lambda count: count in (1, 2, 4, 8)),
        )
    },
    **{
        id: known(
            "You try numbers of heads up to a limit of your own.",
            "A study may have larger ones: num_heads says which.",
            tried=tried,
        )
        for id, tried in (
            ("up-to-a-limit", lambda count: count <= 100),
            ("up-to-a-limit-below-16", lambda count: count <= 12),
        )
    },
    "largest-left-out": known(
        "You never look at the largest number of heads.",
        "It may be the only one that is enough. range(a, b) ends before b.",
        wrong=_all_but_the_largest,
    ),
}

TASK = Task(
    "08-smallest_enough",
    smallest_enough,
    enough_cases,
    examine=examine_enough,
    returns=("what you return",),
    mistakes=read_again(STUDY, ENOUGH | ALONE),
    build=build_enough,
    point_out=point_out_runs,
    alone=tuple(ALONE),
    number=7,
)
