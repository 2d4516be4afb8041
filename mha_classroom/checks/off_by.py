"""By what a wrong number is off, where it is off by the same thing in every case."""

import inspect
import itertools
import math
from fractions import Fraction

from mha_classroom.checks.showing import plain_number

__all__ = ["say_off_by"]

TIMES = {Fraction(1): "", Fraction(1, 2): "half of ", Fraction(2): "twice "}
FEW = 2  # of two things, more often than this nobody counts one too many
MANY = 100
FEW_PRODUCTS = 100  # so many of the simplest ones are tried two by two


def say_off_by(task, does, outcomes, cases):
    """A sentence that says by what the numbers are off in all cases, "" if nothing fits.

    The task's `quantities` give what a right number adds up, and what it multiplies, by case.
    Where two things fit, both are named.
    """
    pairs = []
    for index, case in enumerate(cases):
        right, got = does.expected("first", index), outcomes[index]
        yours = None if got.error is not None else plain_number(got.value)
        if not isinstance(yours, Fraction) or not isinstance(right, int):
            return ""
        pairs.append((case, yours, Fraction(right)))
    terms, factors = _by_name(task, [case for case, _, _ in pairs])
    off = [yours - right for _, yours, right in pairs]
    ratios = [yours / right if right else None for _, yours, right in pairs]
    found = [text for name, sizes in terms.items() if (text := _added(name, sizes, off))]
    found = [text for text in found if " half of " not in text] or found
    if not found and None not in ratios:
        found = [
            text for name, sizes in factors.items() if (text := _multiplied(name, sizes, ratios))
        ]
    found = found or _added_but_once(terms, factors, off) or _added_two(terms, off)
    if not found and (text := _a_constant(terms, off)):
        return text
    if not found and None not in ratios:
        found = _a_quotient(factors, ratios)
    found = found or _products(task, [case for case, _, _ in pairs], off)
    if not found:
        found = list(filter(None, [_always(off), None if None in ratios else _fold(ratios)]))[:1]
    where = "In every case" if all(off) else "In every case where it is wrong,"
    return f"{where} it is {', or '.join(found)}." if found else _one_way(off)


def _one_way(off):
    """Whether it is too large wherever it is wrong, or too small."""
    wrong = [by for by in off if by]
    if len(wrong) < 2 or len({by > 0 for by in wrong}) > 1:
        return ""
    by = f" by {abs(wrong[0])}" if len(set(wrong)) == 1 else ""
    return f"In each case tried in which it is wrong, it is {_too(wrong[0])}{by}."


def _by_name(task, cases):
    """Two dicts {what: its number in each case}: of what is added, and of what is multiplied."""
    made = [task.quantities(case.inputs) for case in cases] if task.quantities else [({}, {})]
    return tuple({name: [one[i][name] for one in made] for name in made[0][i]} for i in (0, 1))


def _added(name, sizes, off):
    """Off by the same multiple of a term in each case, and the term is not always the same."""
    if len(set(sizes)) < 2 or any(
        (size == 0) != (by == 0) for size, by in zip(sizes, off, strict=True)
    ):
        return ""
    times = {by / size for size, by in zip(sizes, off, strict=True) if size}
    if len(times) != 1:
        return ""
    (times,) = times
    much = TIMES.get(abs(times))
    if much is None and abs(times) in range(MANY + 1):
        much = f"{abs(times)} times "
    return "" if much is None else f"{_too(times)} by {much}{name}"


def _added_but_once(terms, factors, off):
    """Off by a term times one less than a factor, in a list: counted for each where once is due."""
    for (name, sizes), (factor, counts) in itertools.product(terms.items(), factors.items()):
        more = [size * (count - 1) for size, count in zip(sizes, counts, strict=True)]
        for sign in (1, -1):
            if any(more) and all(by == sign * m for by, m in zip(off, more, strict=True)):
                return [f"{_too(sign)} by {name} times ({factor} - 1)"]
    return []


def _too(by):
    return "too large" if by > 0 else "too small"


def _added_two(terms, off):
    """Off by a few times one term and a few times another: the fit with the fewest, in a list."""
    fits = []
    for (one, a), (other, b) in itertools.combinations(terms.items(), 2):
        rows = list(zip(a, b, off, strict=True))
        apart = any((x == 0) != (y == 0) for x, y, _ in rows)  # "in every case" would be untrue
        times = None if apart else _two_times(rows)
        if times and all(abs(t) in range(1, FEW + 1) for t in times):
            fits.append((sum(map(abs, times)), times, (one, other)))
    if not fits:
        return []
    _, times, names = min(fits, key=lambda fit: fit[0])
    first, second = (
        f"{TIMES.get(abs(t), f'{abs(t)} times ')}{name}"
        for t, name in zip(times, names, strict=True)
    )
    if times[0] * times[1] > 0:
        return [f"{_too(times[0])} by {first} and {second}"]
    return [f"{_too(times[0])} by {first}, and {_too(times[1])} by {second}"]


def _two_times(rows):
    """x and y with x·a + y·b = c for all rows (a, b, c), None if there are none or many."""
    for (a, b, c), (d, e, f) in itertools.combinations(rows, 2):
        if a * e != b * d:
            x, y = Fraction(c * e - b * f, a * e - b * d), Fraction(a * f - c * d, a * e - b * d)
            return (x, y) if all(x * a + y * b == c for a, b, c in rows) else None
    return None


def _a_constant(terms, off):
    """A sentence if one and the same number stands where a few times a term should, else ""."""
    for (name, sizes), times in itertools.product(terms.items(), range(1, 5)):
        rows = list(zip(sizes, off, strict=True))
        counted = {by + times * size for size, by in rows if size}
        right_elsewhere = not any(by for size, by in rows if not size)
        if len({*sizes} - {0}) > 2 and len(counted) == 1 and min(counted) > 0 and right_elsewhere:
            much = TIMES.get(Fraction(times), f"{times} times ")
            return f"In place of {much}{name} you count {counted.pop()} each time."
    return ""


def _a_quotient(factors, ratios):
    """The right number times one factor, divided by another, in a list."""
    for (one, a), (other, b) in itertools.permutations(factors.items(), 2):
        for part, words in TIMES.items():
            if all(r * y == part * x for r, x, y in zip(ratios, a, b, strict=True)):
                return [f"{words}the right number times {one}, divided by {other}"]
    return []


def _products(task, cases, off):
    """Off by a few times a product of the task's arguments, or by two such, in a list."""
    products = list(_of_arguments(task, cases))
    if any(by.denominator > 1 for by in off) or len({*off}) < 3:
        return []
    off = [int(by) for by in off]
    for name, sizes in products:
        times = off[0] // sizes[0]
        if 0 < abs(times) <= MANY and all(
            by == times * size for by, size in zip(off, sizes, strict=True)
        ):
            return [f"{_too(times)} by {_times(times, name)}"]
    for (one, a), (other, b) in itertools.combinations(products[:FEW_PRODUCTS], 2):
        times = _few_of_both(a, b, off)
        if times:
            first, second = _times(times[0], one), _times(times[1], other)
            if times[0] * times[1] > 0:
                return [f"{_too(times[0])} by {first} + {second}"]
            return [f"{_too(times[0])} by {first}, and {_too(times[1])} by {second}"]
    return []


def _of_arguments(task, cases):
    """Yield the products of a task's arguments, squares too: (how it is written, its numbers)."""
    signature, given = inspect.signature(task.reference), []
    named = max((case.inputs for case in cases), key=len)
    names = dict(zip(named, signature.parameters, strict=False))
    for case in cases:
        bound = signature.bind(**{names[name]: X for name, X in case.inputs.items()})
        bound.apply_defaults()
        given.append(dict(zip(named, bound.arguments.values(), strict=False)))
    names = [n for n in named if all(type(one[n]) is int and one[n] > 0 for one in given)]
    for powers in sorted(itertools.product(range(3), repeat=len(names)), key=sum):
        if any(powers):
            used = [(n, power) for n, power in zip(names, powers, strict=True) if power]
            text = " · ".join(n + "²" * (power == 2) for n, power in used)
            yield text, [math.prod(one[n] ** power for n, power in used) for one in given]


def _times(times, name):
    return name if abs(times) == 1 else f"{abs(times)} · {name}"


def _few_of_both(a, b, off):
    """Whole x and y, neither 0 nor large, with x·a + y·b = off in all places, or None."""
    for i, j in itertools.combinations(range(len(off)), 2):
        both = a[i] * b[j] - a[j] * b[i]
        if both:
            x, over = divmod(off[i] * b[j] - off[j] * b[i], both)
            y, over_too = divmod(a[i] * off[j] - a[j] * off[i], both)
            if over or over_too or not (0 < abs(x) <= MANY and 0 < abs(y) <= MANY):
                return None
            rows = zip(a, b, off, strict=True)
            return (x, y) if all(x * m + y * n == by for m, n, by in rows) else None
    return None


def _multiplied(name, sizes, ratios):
    if len(set(sizes)) < 2:
        return ""
    for part, words in TIMES.items():
        if all(ratio == part * size for ratio, size in zip(ratios, sizes, strict=True)):
            return f"{words}the right number times {name}"
    if all(ratio * size == 1 for ratio, size in zip(ratios, sizes, strict=True)):
        return f"the right number divided by {name}"
    return ""


def _always(off):
    (by, *others) = set(off)
    return "" if others or not by else f"{_too(by)} by {abs(by)}"


def _fold(ratios):
    (ratio, *others) = set(ratios)
    if others or ratio == 1 or ratio <= 0:
        return ""
    whole = ratio.denominator == 1
    return f"{ratio} times the right number" if whole else f"{ratio} of the right number"
