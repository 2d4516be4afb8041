"""By what a wrong number is off, where it is off by the same thing in every case."""

from fractions import Fraction

from mha_classroom.checks.showing import plain_number

__all__ = ["say_off_by"]

TIMES = {Fraction(1): "", Fraction(1, 2): "half of ", Fraction(2): "twice "}
FEW = 4  # more often than this nobody counts one thing too many


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
    if not found:
        found = list(filter(None, [_always(off), None if None in ratios else _fold(ratios)]))[:1]
    return f"In every case it is {', or '.join(found)}." if found else ""


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
    if much is None and abs(times) in range(FEW + 1):
        much = f"{abs(times)} times "
    return "" if much is None else f"too {'large' if times > 0 else 'small'} by {much}{name}"


def _multiplied(name, sizes, ratios):
    if len(set(sizes)) < 2:
        return ""
    if all(ratio == size for ratio, size in zip(ratios, sizes, strict=True)):
        return f"the right number times {name}"
    if all(ratio * size == 1 for ratio, size in zip(ratios, sizes, strict=True)):
        return f"the right number divided by {name}"
    return ""


def _always(off):
    (by, *others) = set(off)
    return "" if others or not by else f"too {'large' if by > 0 else 'small'} by {abs(by)}"


def _fold(ratios):
    (ratio, *others) = set(ratios)
    if others or ratio == 1 or ratio <= 0:
        return ""
    whole = ratio.denominator == 1
    return f"{ratio} times the right number" if whole else f"{ratio} of the right number"
