"""Task 8.7, smallest_enough: the fewest heads with which every run of several reached a goal."""

import torch

from mha_classroom.checks.task import Case, Task, known, read_again

STUDY = "Six seeds, four budgets"


def smallest_enough(num_heads, accuracies, goal, least_runs):
    return build_enough()(num_heads, accuracies, goal, least_runs)


def enough_cases(draw):
    """Unordered runs, counts with too few, one seed that fails, a goal met exactly, no answer."""

    def case(name, runs, goal, least_runs):
        heads, shares = zip(*runs, strict=True)
        inputs = {"num_heads": torch.tensor(heads), "accuracies": torch.tensor(shares).double()}
        return Case(name, inputs | {"goal": goal, "least_runs": least_runs})

    two = [(8, 0.99), (2, 0.60), (8, 0.97), (4, 0.96), (2, 0.70), (4, 0.95)]
    unlucky = [(4, 1.0), (16, 0.97), (4, 1.0), (4, 0.90), (16, 0.98), (16, 0.99), (8, 0.99)]
    falling = [(32, 0.5), (4, 0.97), (32, 0.6), (1, 0.4), (1, 0.4), (4, 0.98), (8, 1.0), (8, 1.0)]
    return [
        case("2 runs each of 2, 4 and 8 heads", two, 0.9, 2),
        case("one seed fails", unlucky, 0.95, 3),
        case("too few runs of some", unlucky, 0.95, 2),
        case("one seed fails badly", [(4, 1.0), (4, 1.0), (8, 0.9), (4, 0.2), (8, 1.0)], 0.85, 2),
        case("more heads are worse again", falling, 0.9, 2),
        case("the goal is met exactly", [(8, 1.0), (4, 0.75), (8, 1.0), (4, 0.75)], 0.75, 2),
        case("nothing reaches the goal", two, 0.999, 1),
        case("nothing has enough runs", two, 0.5, 3),
        case("one run each", [(8, 0.9), (2, 0.3), (4, 0.92), (1, 0.95)], 0.9, 1),
        case("as many runs as asked for, and more", [*two, (4, 0.99), (2, 0.99)], 0.9, 3),
    ]


def build_enough(
    judge=lambda shares: shares.min(),
    reaches=lambda share, goal: share >= goal,
    counted=lambda shares, goal, least: len(shares) >= least,
    choose=min,
    none=None,
):
    def smallest_enough(num_heads, accuracies, goal, least_runs):
        good = []
        for count in dict.fromkeys(num_heads.tolist()):
            shares = accuracies[num_heads == count]
            if counted(shares, goal, least_runs) and reaches(judge(shares), goal):
                good.append(count)
        return choose(good) if good else none

    return smallest_enough


def _most_accurate(num_heads, accuracies, goal, least_runs):
    good = {}
    for count in num_heads.unique().tolist():
        shares = accuracies[num_heads == count]
        if len(shares) >= least_runs and shares.min() >= goal:
            good[count] = shares.mean()
    return max(good, key=good.get) if good else None


def _with_all_larger(fewest):
    """From the largest number down to the first that fails, or that has too few runs."""

    def smallest_enough(num_heads, accuracies, goal, least_runs):
        found = None
        for count in reversed(num_heads.unique().tolist()):
            shares = accuracies[num_heads == count]
            if len(shares) < least_runs:
                if fewest == "stop":
                    break
                continue
            if shares.min() < goal:
                break
            found = count
        return found

    return smallest_enough


def _larger(fewest):
    return known(
        "You ask that all larger numbers of heads are enough, too.",
        "More heads may be worse again. Each number of heads is judged by its own runs.",
        wrong=_with_all_larger(fewest),
    )


ENOUGH = {
    "mean-not-worst": known(
        "You look at the mean of the runs.",
        "A mean can reach the goal while one seed fails. Every run has to reach it.",
        judge=lambda shares: shares.mean(),
    ),
    "best-not-worst": known(
        "One run that reaches the goal is enough for you.",
        "That may be luck. Every run has to reach it.",
        judge=lambda shares: shares.max(),
    ),
    "median-not-worst": known(
        "You look at the median of the runs.",
        "Every run has to reach the goal.",
        judge=lambda shares: shares.median(),
    ),
    "above-not-reached": known(
        "A run that meets the goal exactly does not count for you.",
        "It has reached it.",
        reaches=lambda share, goal: share > goal,
    ),
    "runs-not-counted": known(
        "You do not ask how many runs there are.",
        "With fewer than least_runs nothing is known of the spread.",
        counted=lambda shares, goal, least: True,
    ),
    "more-than-least": known(
        "You ask for more runs than least_runs.",
        "As many as that are enough.",
        counted=lambda shares, goal, least: len(shares) > least,
    ),
    "good-runs-counted": known(
        "You count the runs that reach the goal and forget those that do not.",
        "A single run that fails is enough to say no.",
        counted=lambda shares, goal, least: (shares >= goal).sum() >= least,
        judge=lambda shares: shares.max(),
    ),
    "first-found": known(
        "You take the first number of heads that fits, in the order of the runs.",
        "Runs come in any order. Asked for is the smallest number.",
        choose=lambda good: good[0],
    ),
    "largest": known(
        "You take the largest number of heads that fits.",
        "Asked for is the smallest.",
        choose=max,
    ),
    "most-accurate": known(
        "You take the number of heads with the best mean, among those that fit.",
        "Among those that fit, fewer heads are enough.",
        wrong=_most_accurate,
    ),
    "larger-ones-too": _larger("skip"),
    "larger-ones-too-with-enough-runs": _larger("stop"),
    "zero-for-none": known(
        "You return 0 where no number of heads is enough.",
        "0 would be a number of heads. The task asks for None.",
        none=0,
    ),
}

TASK = Task(
    "08-smallest_enough",
    smallest_enough,
    enough_cases,
    returns=("the number of heads",),
    mistakes=read_again(STUDY, ENOUGH),
    build=build_enough,
    alone=("most-accurate", "median-not-worst", "zero-for-none", "good-runs-counted"),
    number=7,
)
