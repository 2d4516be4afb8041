"""Task 10.7, shift_positions: later positions from given ones, without knowing where they are."""

import itertools
import math

import torch

from mha_classroom.checks.forms import alike, like
from mha_classroom.checks.task import Case, Task, known, read_again

WHERE = "Where a token stands"


def shift_positions(P, shift):
    d = P.shape[-1]
    angles = shift * 10000 ** (-torch.arange(0, d, 2).double() / d)
    sines, cosines = P[..., 0::2], P[..., 1::2]
    later = (
        sines * angles.cos() + cosines * angles.sin(),
        cosines * angles.cos() - sines * angles.sin(),
    )
    return torch.stack(later, -1).flatten(-2)


def vectors(places, d):
    """The vectors of any positions, (n, d), in float64."""
    angles = places[:, None] * 10000 ** (-torch.arange(0, d, 2).double() / d)
    return torch.stack([angles.sin(), angles.cos()], -1).flatten(1)


def shift_cases(draw):
    def case(name, places, d, shift):
        places = torch.tensor(places, dtype=torch.float64)
        return Case(name, {"P": vectors(places, d), "shift": shift})

    return [
        case("positions 0 and 1, one pair, 1 later", [0, 1], 2, 1),
        case("positions 0 to 4, width 6, 3 later", [0, 1, 2, 3, 4], 6, 3),
        case("unknown positions in any order, 7 later", [17, 2, 90, 4], 8, 7),
        case("2 earlier", [5, 9, 2], 10, -2),
        case("half a position later", [3, 8], 4, 0.5),
        case("no shift", [6, 1, 3], 4, 0),
        case("1,000 later, as many positions as features", [1, 5, 2, 8, 11, 13], 6, 1000),
        Case("one vector", {"P": vectors(torch.tensor([12.0]).double(), 8), "shift": 4}),
    ]


def _omega(d, step=2, base=10000.0):
    return base ** (-torch.arange(0, d, step).double()[: d // 2] / d)


def _pairs(P):
    return P[..., 0::2], P[..., 1::2]


def _interleave(sines, cosines):
    return torch.stack([sines, cosines], -1).flatten(-2)


def build_shift(
    omega=_omega,
    sign=1,
    apart=_pairs,
    join=_interleave,
    turn=lambda s, c, a: (s * a.cos() + c * a.sin(), c * a.cos() - s * a.sin()),
    by=lambda shift: shift,
    unit=1.0,
):
    """by: what is taken for the shift. unit: what the angles are multiplied by."""

    def shift_positions(P, shift):
        angles = sign * by(shift) * omega(P.shape[-1]) * unit
        return join(*turn(*apart(P), angles))

    return shift_positions


def _from_0(P, shift):
    return vectors(torch.arange(len(P)).double() + shift, P.shape[-1])


def _whole_angle(d):
    return torch.ones(d // 2, dtype=torch.float64)


def _all_alike(inputs, value):
    """Whether all pairs are turned by one angle, which is not 0."""
    P, shift = inputs["P"], inputs["shift"]
    if not torch.is_tensor(value) or value.shape != P.shape or not value.is_floating_point():
        return False
    (s, c), (t, d) = _pairs(P), _pairs(value.to(P))
    sines, cosines = t * c - d * s, s * t + c * d  # of the angle by which each pair is turned
    lengths = sines.square() + cosines.square()
    one = alike(sines, sines[0, 0].expand_as(sines)) and alike(lengths, torch.ones_like(lengths))
    back = shift and alike(sines, torch.zeros_like(sines))
    return one and alike(cosines, cosines[0, 0].expand_as(cosines)) and not back


def _pairs_swapped(P):
    return P[..., 1::2], P[..., 0::2]


def _interleave_swapped(sines, cosines):
    return _interleave(cosines, sines)


def _new_sines_used(s, c, a):
    new = s * a.cos() + c * a.sin()
    return new, c * a.cos() - new * a.sin()


def _new_cosines_used(s, c, a):
    new = c * a.cos() - s * a.sin()
    return s * a.cos() + new * a.sin(), new


def _terms(which):
    """A turn with these of its four terms."""

    def turn(s, c, a):
        terms = s * a.cos(), c * a.sin(), c * a.cos(), -s * a.sin()
        one, two, three, four = (
            term if kept else torch.zeros_like(term)
            for term, kept in zip(terms, which, strict=True)
        )
        return one + two, three + four

    return turn


# All choices of terms that leave one out, or more, but not all of a feature's.
LACKING = [
    which
    for which in itertools.product((True, False), repeat=4)
    if not all(which) and any(which[:2]) and any(which[2:])
]


def _signs(*signs):
    def turn(s, c, a):
        one, two, three, four = signs
        return (
            one * s * a.cos() + two * c * a.sin(),
            three * c * a.cos() + four * s * a.sin(),
        )

    return turn


WRONG_SIGNS = [
    signs
    for signs in itertools.product((1, -1), repeat=4)
    if signs not in ((1, 1, 1, -1), (1, -1, 1, 1))
]


def _found(place):
    """Finds the position, or each pair's angle, by what undoes a sine, a cosine or both."""

    def shift_positions(P, shift):
        omega = _omega(P.shape[-1])
        angles = place(*_pairs(P.clamp(-1, 1)), omega) + shift * omega
        return _interleave(angles.sin(), angles.cos())

    return shift_positions


def _tangent(s, c):
    return (s / c).atan()


FOUND = [
    lambda s, c, omega: s[:, :1].asin() * omega,
    lambda s, c, omega: c[:, :1].acos() * omega,
    lambda s, c, omega: _tangent(s, c)[:, :1] * omega,
    lambda s, c, omega: torch.atan2(s, c)[:, :1] * omega,
    lambda s, c, omega: torch.atan2(s, c)[:, :1] % (2 * math.pi) * omega,
    lambda s, c, omega: s.asin(),
    lambda s, c, omega: c.acos(),
    lambda s, c, omega: _tangent(s, c),
]


def _times_the_vector(P, shift):
    return P * vectors(torch.tensor([float(shift)]).double(), P.shape[-1])


def _row_by_row(first):
    def shift_positions(P, shift):
        angles = shift * (torch.arange(len(P)).double() + first)[:, None] * _omega(P.shape[-1])
        (s, c) = _pairs(P)
        return _interleave(s * angles.cos() + c * angles.sin(), c * angles.cos() - s * angles.sin())

    return shift_positions


def _speeds_of_features(P, shift):
    """Sines and cosines of a pair turn at speeds of their own."""
    d = P.shape[-1]
    speeds = 10000 ** (-torch.arange(d).double() / d)
    (s, c), (a, b) = _pairs(P), _pairs(shift * speeds)
    return _interleave(s * a.cos() + c * a.sin(), c * b.cos() - s * b.sin())


def _all_forms(*choices):
    """The parts of the first of several forms of a mistake, and whether a result is of one."""
    return {"shows": like(*(build_shift(**parts) for parts in choices)), **choices[0]}


def _of_width(width):
    return {"omega": lambda d: 10000 ** (-torch.arange(0, d, 2).double() / width)}


def _of_base(base):
    return {"omega": lambda d: _omega(d, base=base)}


SHIFT = {
    "turned-back": known(
        "You turn the wrong way: your positions are earlier, not later.",
        "Write down sin(a + b) and cos(a + b). Which of them has a minus sign?",
        sign=-1,
    ),
    "wrong-signs": known(
        "Your matrix is no rotation: a sign is wrong.",
        "Write down sin(a + b) and cos(a + b). One of the four terms is subtracted.",
        **_all_forms({"turn": _signs(1, 1, 1, 1)}, *({"turn": _signs(*w)} for w in WRONG_SIGNS)),
    ),
    "terms-missing": known(
        "A term is missing: your new sine or cosine is not made of both numbers of its pair.",
        "Write down sin(a + b) and cos(a + b). Each has two terms.",
        **_all_forms(
            {"turn": _terms((True, False, True, True))}, *({"turn": _terms(w)} for w in LACKING)
        ),
    ),
    "new-sines-used": known(
        "You write the new sines over the old ones, and make the cosines of the new ones; or the "
        "other way round.",
        "Both are made of the old numbers. P[:, 0::2] of a tensor is a view: what is written into "
        "the tensor is seen there too.",
        **_all_forms({"turn": _new_sines_used}, {"turn": _new_cosines_used}),
    ),
    "sines-and-cosines-swapped": known(
        "You take the sines for the cosines.",
        "A pair is a sine and a cosine, in this order: places 0, 2, 4 hold sines.",
        **_all_forms(
            {"apart": _pairs_swapped},
            {"join": _interleave_swapped},
        ),
    ),
    "fractions-cut-off": known(
        "You make a whole number of the shift.",
        "A shift may be a fraction: half a position turns each pair by half of its angle.",
        **_all_forms({"by": int}, {"by": round}, {"by": math.floor}, {"by": math.ceil}),
    ),
    "negative-taken-for-positive": known(
        "You take a negative shift for a positive one, or for none.",
        "A shift of -2 leads to earlier positions, so each pair turns the other way.",
        **_all_forms({"by": abs}, {"by": lambda shift: max(shift, 0)}),
    ),
    "degrees": known(
        "You take the angles for degrees.",
        "torch.sin and torch.cos count in radians, and so does the lesson: pair 0 turns by 1 "
        "radian for each position.",
        **_all_forms({"unit": math.pi / 180}, {"unit": 180 / math.pi}),
    ),
    "whole-turns": known(
        "You multiply the angles by 2π or by π.",
        "The speeds are radians already: pair 0 turns by 1 radian for each position.",
        **_all_forms({"unit": 2 * math.pi}, {"unit": math.pi}),
    ),
    "position-not-found": known(
        "You work out a position or an angle from a single number, or from one pair, and that "
        "does not tell it.",
        "A sine has the same value at several angles, and pair 0 is back at its start after 6.28 "
        "positions. You need no position: each pair can be turned as it is.",
        wrong=_found(FOUND[0]),
        shows=like(*map(_found, FOUND)),
    ),
    "width-fixed": known(
        "Your speeds are those of another width.",
        "The d of the formula is the width of P: P.shape[1], not a number from the lesson.",
        **_all_forms(*map(_of_width, (64, 4, 6, 8, 10, 16, 32, 100, 128, 256, 512, 768, 1024))),
    ),
    "speeds-of-features": known(
        "The sine and the cosine of a pair turn at different speeds.",
        "Both belong to one hand: features 2i and 2i + 1 have the speed of pair i.",
        wrong=_speeds_of_features,
    ),
    "halves": known(
        "You pair feature i of the first half with feature i of the second half.",
        "Some libraries lay them out so. In this lesson the two numbers of a pair are neighbours.",
        apart=lambda P: P.chunk(2, -1),
        join=lambda s, c: torch.cat([s, c], -1),
    ),
    "joined-as-halves": known(
        "All sines come first in your result, then all cosines.",
        "The result has the layout of P: sine, cosine, sine, cosine.",
        join=lambda s, c: torch.cat([s, c], -1),
    ),
    "divided-by-less-than-d": known(
        "Your speeds fall a little too fast: you divide by less than d.",
        "The exponent of pair i is 2i / d, and d counts all features. No pair is as slow as "
        "1 / 10000.",
        **_all_forms(
            {"omega": lambda d: 10000.0 ** (-torch.arange(d // 2).double() / max(d // 2 - 1, 1))},
            {"omega": lambda d: 10000.0 ** (-torch.arange(0, d, 2).double() / max(d - 1, 1))},
            {"omega": lambda d: 10000.0 ** (-torch.arange(0, d, 2).double() / max(d - 2, 1))},
        ),
    ),
    "counted-from-1": known(
        "Your pairs are counted from 1.",
        "Pair 0 has the exponent 0: it turns by 1 for each position.",
        omega=lambda d: 10000.0 ** (-(torch.arange(0, d, 2).double() + 2) / d),
    ),
    "speeds-of-pairs": known(
        "Your speeds fall too slowly: the exponent of pair i is i / d, or the base is 100.",
        "In the formula it is 10000 to the power of 2i / d, where i counts pairs.",
        omega=lambda d: 10000.0 ** (-torch.arange(d // 2).double() / d),
    ),
    "speeds-too-slow": known(
        "Your speeds fall too fast: the exponent of pair i is 4i / d, or you divide by d / 2.",
        "In the formula it is 2i / d, where i counts pairs.",
        omega=lambda d: 10000.0 ** (-2 * torch.arange(0, d, 2).double() / d),
    ),
    "speeds-inverted": known(
        "Your hands get faster from pair to pair.",
        "The exponent is negative: pair 0 turns by 1 for each position, the others more slowly.",
        omega=lambda d: 10000.0 ** (torch.arange(0, d, 2).double() / d),
    ),
    "one-speed-for-all": known(
        "All pairs turn by the same angle.",
        "Each pair has its own speed: ω of the lesson.",
        omega=_whole_angle,
        shows=_all_alike,
    ),
    "other-base": known(
        "Your speeds are powers of another number.",
        "The number in the formula is 10000.",
        **_all_forms(*map(_of_base, (1e3, 1e2, 10.0, 2.0, math.e, 500.0, 5e3, 2e4, 5e4, 1e5, 1e6))),
    ),
    "vectors-added": known(
        "You add the vector of the shift to each row.",
        "sin(a + b) is not sin a + sin b. A shift is a rotation.",
        wrong=lambda P, shift: P + vectors(torch.tensor([float(shift)]).double(), P.shape[-1]),
    ),
    "multiplied-by-the-shift": known(
        "You multiply each row by the vector of the shift, or by the shift itself.",
        "sin(a + b) is not sin a · sin b. A shift turns each pair.",
        wrong=_times_the_vector,
        shows=like(_times_the_vector, lambda P, shift: P * shift),
    ),
    "angle-grows-with-the-row": known(
        "Your angle depends on the row: row n is turned n times.",
        "All rows of P are to lie the same shift later, so all are turned by the same angles.",
        wrong=_row_by_row(0),
        shows=like(_row_by_row(0), _row_by_row(1)),
    ),
    "shift-has-no-effect": known(
        "You turn by the same angles whatever the shift is.",
        "The angle of a pair is the shift times its speed.",
        by=lambda shift: 1,
        shows=like(build_shift(by=lambda shift: 1), build_shift(by=lambda shift: 5)),
    ),
    "first-pair-only": known(
        "You turn the first pair only.",
        "Every pair turns, each by its own angle.",
        omega=lambda d: _omega(d) * (torch.arange(d // 2) == 0),
    ),
    "shift-added": known(
        "You add the shift itself to the numbers of P.",
        "They are sines and cosines of a position, not the position. A shift turns each pair.",
        wrong=lambda P, shift: P + shift,
    ),
    "rows-moved": known(
        "You move the rows of P.",
        "They can be any positions, in any order. The row for a later one may not be there.",
        wrong=lambda P, shift: P.roll(-int(shift), 0),
    ),
    "counted-from-0": known(
        "You compute the rows anew, as if P held the positions 0, 1, 2 and so on.",
        "Nobody says which positions these are. All that you know of them is in their numbers.",
        wrong=_from_0,
    ),
    "longer-table": known(
        "You make a longer table and cut off its beginning, as if P held positions 0, 1, 2 and so "
        "on.",
        "Nobody says which positions these are. All that you know of them is in their numbers.",
        wrong=lambda P, shift: vectors(torch.arange(len(P) + shift).double(), P.shape[-1])[shift:],
    ),
    "not-turned": known(
        "You return P as it is.",
        "Every pair has to be turned by its own angle.",
        turn=lambda s, c, a: (s, c),
    ),
}

TASK = Task(
    "10-shift_positions",
    shift_positions,
    shift_cases,
    returns=("the result",),
    mistakes=read_again(WHERE, SHIFT),
    build=build_shift,
    alone=(
        "terms-missing",
        "first-pair-only",
        "shift-has-no-effect",
        "new-sines-used",
        "sines-and-cosines-swapped",
        "degrees",
        "whole-turns",
        "width-fixed",
        "divided-by-less-than-d",
        "counted-from-1",
        "negative-taken-for-positive",
        "fractions-cut-off",
        "not-turned",
        "other-base",
        "one-speed-for-all",
        "joined-as-halves",
        "wrong-signs",
        "speeds-inverted",
        "speeds-too-slow",
        "speeds-of-pairs",
    ),
    number=7,
)
