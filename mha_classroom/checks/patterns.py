"""What two tensors have in common where they differ: a sentence for the learner."""

import itertools
import re

import torch

__all__ = ["IN_ORDER", "MOVED", "common_pattern", "pattern_of"]

AXES = ("the first axis", "the second axis", "the third axis", "the fourth axis", "the fifth axis")
MOST_AXES = 4  # whose orders are tried
NEAR = 1e-6  # so exact has what is found to be


NUMBERS = re.compile(r"half|a (third|quarter) of|[-+.\de]+ times|large|small|\d[.\de+-]*")

THERE = "All numbers are there"
MOVED = f"{THERE}, in other places."
IN_ORDER = (f"{THERE} in their order", "All numbers are right.")


def common_pattern(differences, failing):
    """What is seen in the failing one of the cases' differences, if it is seen in others too.

    Another number in its place is no other pattern. What most of the others do not show is chance.
    differences: {index of a case: a Difference, None if it is right, "" without a result}.
    """
    here = differences.get(failing)
    if not here or not here.tensors:
        return ""
    others = [d for i, d in differences.items() if d and i != failing]
    said, *elsewhere = (pattern_of(*d.tensors) if d.tensors else "" for d in (here, *others))
    alike = [other for other in elsewhere if NUMBERS.sub("", other) == NUMBERS.sub("", said)]
    if 2 * len(alike) < len(others):
        said = MOVED if all(text.startswith(THERE) for text in (said, *elsewhere)) else ""
    if said and not said.endswith("too many."):
        return said
    of_one_kind = [d.tensors for d in (here, *others) if d.tensors and d.name == here.name]
    every = "" not in differences.values() and len(of_one_kind) == 1 + len(others)
    if len(of_one_kind) > 1 and len({have.shape for _, have in of_one_kind}) == 1:
        if len({want.shape for want, _ in of_one_kind}) > 1:
            where = "Wherever it is wrong, it has" if every else "All that could be compared have"
            return f"{where} this shape. {said}".strip()
    where = _parts_of_masks(of_one_kind) or ("" if said else _always_right(of_one_kind, every))
    return f"{said} {where}".strip()


def pattern_of(want, have):
    """How the numbers of `have` come from those of `want`, "" if nothing is seen.

    Shapes: any. What holds of a single number, or of numbers that are all the same, says nothing
    and is not said. Nor is another order of only two different numbers.
    """
    if want.numel() < 2 or max(want.dim(), have.dim()) > MOST_AXES:
        return ""
    if have.layout != torch.strided or have.is_meta or have.is_complex():
        return ""
    have = have.detach().cpu()
    if want.shape != have.shape:
        telling = have.numel() > 1 and (want != want.flatten()[0]).any()
        return _of_shape(want.double(), have.double()) if telling else ""
    if torch.equal(want, have):
        return ""
    if want.dtype == torch.bool or have.dtype == torch.bool:
        return _of_mask(want.bool(), have.bool())
    want, have = want.double(), have.double()
    if not want.isfinite().all() or not have.isfinite().all():
        return _where(~_close(want, have))
    telling = (want != want.flatten()[0]).any()
    various = want.unique().numel() > 2  # of two, another order may be chance
    return (
        (various and _reordered(want, have))
        or (telling and (_scaled(want, have) or _shifted(want, have)))
        or _constant(want, have)
        or _where(~_close(want, have))
    )


def _close(want, have):
    return (want == have) | ((want - have).abs() <= NEAR * want.abs().clamp(min=1))


def _reordered(want, have):
    """The right numbers in other places."""
    if not _close(want.flatten().sort().values, have.flatten().sort().values).all():
        return ""
    for order in itertools.permutations(range(want.dim())):
        turned = have.permute(order)
        if turned.shape == want.shape and _close(want, turned).all():
            moved = _moved(order)
            return f"All numbers are there, with {moved} exchanged." if moved else ""
    for axis in range(want.dim()):
        if _close(want, have.flip(axis)).all():
            return f"All numbers are there, in reverse order along {AXES[axis]}."
        for by in range(1, want.shape[axis]):
            if _close(want, have.roll(by, axis)).all():
                return f"All numbers are there, moved along {AXES[axis]}."
    for axis in range(want.dim() if want.dim() > 1 else 0):
        if _close(want.sort(axis).values, have.sort(axis).values).all():
            return f"All numbers are there, in other places along {AXES[axis]}."
    return MOVED


def _of_shape(want, have):
    """What was done to the right numbers, so that they came out in another shape."""
    if want.numel() == have.numel():
        if _close(want.flatten(), have.flatten()).all():
            return _same_order(want, have)
        for order in itertools.permutations(range(have.dim())):
            turned = have.permute(order)
            if turned.shape == want.shape and _close(want, turned).all():
                return f"All numbers are there, with {_moved(order)} exchanged."
    for axis in range(want.dim()):
        for words, gather in GATHERED.items():
            if _is(gather(want, axis), have) or _is(gather(want, axis).unsqueeze(axis), have):
                return f"Yours is {words} of the right numbers along {AXES[axis]}."
        for end, start in (("ends too early", 0), ("begins too late", -1)):
            if have.dim() == want.dim() and 0 < have.shape[axis] < want.shape[axis]:
                size = have.shape[axis]
                part = want.narrow(axis, start and want.shape[axis] - size, size)
                if _is(part, have):
                    return f"What is there is right. It {end} along {AXES[axis]}."
    for axis in range(have.dim()):
        if have.shape[axis] and _is(want, have.select(axis, 0)):
            every = have.unbind(axis)
            if len(every) > 1 and all(_is(want, one) for one in every):
                return f"Yours is the right result {len(every)} times, along {AXES[axis]}."
    return ""


GATHERED = {
    "the sum": torch.sum,
    "the mean": torch.mean,
    "the largest": torch.amax,
}


def _is(want, have):
    return want.shape == have.shape and bool(_close(want, have).all())


def _same_order(want, have):
    ones = have.dim() - want.dim()
    if [n for n in want.shape if n != 1] != [n for n in have.shape if n != 1] or not ones:
        return f"{IN_ORDER[0]}, and the shape is another."
    which = "too many" if ones > 0 else "missing"
    axes = "An axis of size 1 is" if abs(ones) == 1 else f"{abs(ones)} axes of size 1 are"
    return f"{IN_ORDER[1]} {axes} {which}."


def _moved(order):
    return " and ".join(AXES[axis] for axis, place in enumerate(order) if axis != place)


def _scaled(want, have):
    """Each number the same multiple of the right one; or one sign turned."""
    there = want.abs() > NEAR
    if not there.any() or not _close(want[~there], have[~there]).all():
        return ""
    ratios = have[there] / want[there]
    ratio = ratios.mean()
    if ((ratios - ratio).abs() <= NEAR * ratio.abs()).all() and ratio.abs() > NEAR:
        if abs(ratio - 1) < NEAR:
            return ""
        if abs(ratio + 1) < NEAR:
            return "Every number has the wrong sign."
        return f"Every number is {_times(ratio.item())} the right one."
    if _close(want.abs(), have.abs()).all() and bool((want.sign() != have.sign()).any()):
        return "Only signs are wrong."
    return ""


def _times(ratio):
    for words, number in (("half", 0.5), ("a third of", 1 / 3), ("a quarter of", 0.25)):
        if abs(ratio - number) < NEAR:
            return words
    return f"{ratio:.4g} times"


def _shifted(want, have):
    off = have - want
    if ((off - off.mean()).abs() > NEAR).any() or off.mean().abs() < NEAR:
        return ""
    return f"Every number is too {'large' if off.mean() > 0 else 'small'} by {abs(off.mean()):.4g}."


def _constant(want, have):
    if (have == have.flatten()[0]).all() and not (want == want.flatten()[0]).all():
        return f"All of your numbers are {have.flatten()[0]:.4g}."
    return ""


def _of_mask(want, have):
    """How often True stands where False should, and the other way round."""
    if torch.equal(have, ~want):
        return "Every entry is the opposite of what it should be."
    turned = _reordered(want.double(), have.double()) if want.dim() == 2 else ""
    if "exchanged" in turned or "reverse" in turned or "moved" in turned:
        return turned.replace("numbers", "entries")
    more, less = have & ~want, want & ~have
    parts = [
        f"{value} in {count} {'place' if count == 1 else 'places'} too many"
        for value, count in (("True", int(more.sum())), ("False", int(less.sum())))
        if count
    ]
    where = _where(more | less)
    return f"Yours is {' and '.join(parts)}. {where}".strip()


def _parts_of_masks(pairs):
    """In which part of all these masks what is wrong stands, if that is said in a few words.

    pairs: what is expected and yours, for each mask.
    """
    if any(
        want.dtype != torch.bool or want.dim() < 2 or want.shape != have.shape
        for want, have in pairs
    ):
        return ""
    said = []
    for value in (True, False):
        wrong = [(have if value else want) & (have != want) for want, have in pairs]
        if sum(int(places.sum()) for places in wrong) > 1:
            parts = [_parts(*pair) for pair in pairs]
            inside = (
                words
                for words in parts[0]
                if not any((w & ~part[words]).any() for w, part in zip(wrong, parts, strict=True))
            )
            part = next(inside, "")
            said += [f"All that is {value} and should be {not value} stands {part}."] * bool(part)
    return " ".join(said)


def _always_right(pairs, every):
    """At which end of an axis all these tensors are right, where others show what is wrong.

    pairs: what is expected and yours, for each case. every: whether no other case is wrong.
    """
    where = "in every case" if every else "in all that could be compared"
    if any(want.shape != have.shape or want.dim() != pairs[0][0].dim() for want, have in pairs):
        return ""
    for axis in range(min(pairs[0][0].dim(), MOST_AXES)):
        long = [(want, have) for want, have in pairs if want.shape[axis] > 1]
        for place, words in ((0, "first"), (-1, "last")):
            alike = (_is(*(X.double().select(axis, place) for X in pair)) for pair in long)
            if len(long) > 1 and len(long) == len(pairs) and all(alike):
                said = f"the {words} is right {where}; of the others some are not."
                return f"Along {AXES[axis]} {said}"
    return ""


def _parts(want, have):
    """Parts of a mask (..., rows, columns) by their names, those first that say most."""
    rows, columns = torch.arange(want.shape[-2])[:, None], torch.arange(want.shape[-1])
    return {
        "on the diagonal": rows == columns,
        "above the diagonal": columns > rows,
        "in rows that should be all False": ~want.any(-1, keepdim=True),
        "in columns that should be all False": ~want.any(-2, keepdim=True),
        "in rows that you leave all False": ~have.any(-1, keepdim=True),
        "in columns that you leave all False": ~have.any(-2, keepdim=True),
        "in the first column": columns == 0,
        "in the first row": rows == 0,
        "in the last row": rows == len(rows) - 1,
        "in the last column": columns == len(columns) - 1,
        "below the diagonal": columns < rows,
    }


def _where(wrong):
    """In which part all that is wrong stands, if it is a part."""
    if not wrong.any() or wrong.all():
        return ""
    if wrong.dim() >= 2 and wrong.shape[-1] == wrong.shape[-2]:
        eye = torch.eye(wrong.shape[-1], dtype=torch.bool)
        for part, words in (
            (eye, "on the diagonal"),
            (eye.tril().logical_not() & torch.ones_like(eye).tril(), "below the diagonal"),
            (torch.ones_like(eye).triu(1), "above the diagonal"),
        ):
            if part.sum() > 1 and torch.equal(wrong, part.expand_as(wrong)):
                return f"Wrong is exactly what stands {words}."
    for axis in range(wrong.dim()):
        others = [other for other in range(wrong.dim()) if other != axis]
        places = wrong.amax(dim=others) if others else wrong
        found = places.nonzero().flatten().tolist()
        size = wrong.shape[axis]
        if size > 2 and len(found) == 1:
            return f"Only what has index {found[0]} on {AXES[axis]} is wrong."
        if size > 2 and len(found) == size - 1:
            (right,) = set(range(size)) - set(found)
            return f"On {AXES[axis]} only index {right} is right."
    return ""
