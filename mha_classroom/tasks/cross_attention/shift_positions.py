"""Task 10.7, shift_positions: later positions from given ones, without knowing where they are."""

import itertools
import math

import torch

from mha_classroom.checks.examining import first_wrong
from mha_classroom.checks.forms import alike, any_of, like
from mha_classroom.checks.showing import number_text
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
        case("unknown positions in any order, 20,007 later", [17, 2, 90, 4], 8, 20007),
        case("2 earlier", [5, 9, 2], 10, -2),
        case("half a position later", [3, 8], 4, 0.5),
        case("no shift", [6, 1, 3], 4, 0),
        case("1,000 later, as many positions as features", [1, 5, 2, 8, 11, 13], 6, 1000),
        case("so far away that each pair has gone round", [4000, 25000, 900000], 6, 5),
        case("one vector of width 64, 20,000.3 earlier", [1200], 64, -20000.3),
    ]


def point_out_turn(inputs, later):
    """By what the first wrong pair turns, and by what it has to."""
    P, shift = inputs["P"], inputs["shift"]
    row, feature = first_wrong(later, shift_positions(P, shift))
    pair = feature // 2
    (s, c), (s_later, c_later) = (X[row].view(-1, 2)[pair].tolist() for X in (P, later))
    length = math.hypot(s_later, c_later)
    where = f"Pair {pair} of row {row}"
    if abs(length - 1) > 1e-3:
        return f"{where} has the length {number_text(length, 4)}, and a turn keeps it 1."
    angle = shift * 10000 ** (-2 * pair / P.shape[-1])
    turned = math.atan2(s_later, c_later) - math.atan2(s, c)
    mine, right = (number_text(math.remainder(a, 2 * math.pi), 4) for a in (turned, angle))
    if mine == right:
        return ""
    return f"{where} turns by {mine} in your result, and {right} is asked for, up to whole turns."


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
    lambda s, c, omega: torch.atan2(s, c)[:, -1:] / omega[-1] * omega,
    lambda s, c, omega: s[:, -1:].asin() / omega[-1] * omega,
    lambda s, c, omega: s.asin(),
    lambda s, c, omega: c.acos(),
    lambda s, c, omega: _tangent(s, c),
]


def _vector(P, shift):
    return vectors(torch.tensor([float(shift)]).double(), P.shape[-1])


def _times_the_vector(P, shift):
    return P * _vector(P, shift)


def _powers(exponents, base=10000.0):
    return base ** -exponents.double()


def _even(d):
    return torch.arange(0, d, 2).double()


def _of_width(width):
    return lambda d: _powers(_even(d) / width)


def _of_base(base):
    return lambda d: _powers(_even(d) / d, base)


OTHER_SPEEDS = (
    lambda d: _powers((_even(d) + 2) / d),
    lambda d: _powers(2 * _even(d) / d),
    lambda d: _powers(-_even(d) / d),
    lambda d: _powers(_even(d).flip(0) / d),
    lambda d: _powers(_even(d) / 2 / max(d // 2 - 1, 1)),
    lambda d: _powers(_even(d) / max(d - 1, 1)),
    *map(_of_base, (1e3, 10.0, 2.0, math.e, 500.0, 5e3, 2e4, 5e4, 1e5, 1e6)),
)


def _with_two_speeds(speeds):
    """speeds: one for each of d features. The sines turn by those at their places, the cosines by
    those at theirs."""

    def shift_positions(P, shift):
        (s, c), angles = _pairs(P), shift * speeds(P.shape[-1])
        a, b = angles[0::2], angles[1::2]
        return _interleave(s * a.cos() + c * a.sin(), c * b.cos() - s * b.sin())

    return shift_positions


SPEEDS_OF_FEATURES = (
    lambda d: _powers(torch.arange(d).double() / d),
    lambda d: _powers(2 * torch.arange(d).double() / d),
)
_speed_for_each_feature = _with_two_speeds(SPEEDS_OF_FEATURES[0])


def _counts_from_0(inputs, value):
    """Of a longer table it is known only where the shift is a row number."""
    fits = isinstance(inputs["shift"], int) and inputs["shift"] >= 0 and inputs["P"].dim() == 2
    return not fits or like(_from_0)(inputs, value)


def _in_float32(P, shift):
    return build_shift(omega=lambda d: _omega(d).float())(P, shift)


def _but_for_digits(answer):
    """The `shows` of an answer whose angles may be in float32, which leaves them 7 digits."""

    def shows(inputs, value):
        want = answer(**inputs)
        if not torch.is_tensor(value) or value.shape != want.shape:
            return False
        return bool(((value - want).abs() < 2.5e-7 * (1 + abs(inputs["shift"]))).all())

    return shows


_as_pair_3 = build_shift(omega=lambda d: _omega(d)[:1] * 10000 ** (-6 / d))


SHIFT = {
    "turned-back": known(
        "You turn the wrong way: for a positive shift your positions are earlier, not later.",
        "Write down sin(a + b) and cos(a + b). Which of them has a minus sign? (To take sines for "
        "cosines and cosines for sines comes to the same.)",
        sign=-1,
    ),
    "speeds-of-pairs": known(
        "Your speeds fall too slowly: the exponent of pair i is i / d, or the base is 100.",
        "In the formula it is 10000 to the power of 2i / d, where i counts pairs.",
        omega=lambda d: _powers(torch.arange(d // 2) / d),
    ),
    "position-not-found": known(
        "You work out a position, an angle, a sine or a cosine from a single number, or a position "
        "from one pair, and that does not tell it.",
        "A sine has the same value at several angles, and each pair comes back to its start: pair "
        "0 after 6.28 positions, the others later. You need no position: each pair can be turned "
        "as it is.",
        wrong=_found(FOUND[0]),
        shows=like(*map(_found, FOUND)),
    ),
    "halves": known(
        "You pair feature i of the first half with feature i of the second half.",
        "Some libraries lay them out so. In this lesson the two numbers of a pair are neighbours.",
        **any_of(
            build_shift,
            {"apart": lambda P: P.chunk(2, -1), "join": lambda s, c: torch.cat([s, c], -1)},
            {"apart": lambda P: P.chunk(2, -1)},
        ),
    ),
    "multiplied-by-the-shift": known(
        "You multiply each row by the vector of the shift or by the shift itself, or add it.",
        "sin(a + b) is neither sin a · sin b nor sin a + sin b. A shift turns each pair.",
        wrong=_times_the_vector,
        shows=like(
            _times_the_vector,
            lambda P, shift: P + _vector(P, shift),
            lambda P, shift: P * shift,
            lambda P, shift: P + shift,
        ),
    ),
    "counted-from-0": known(
        "You compute the rows anew, or cut them out of a longer table, as if P held the positions "
        "0, 1, 2 and so on.",
        "Nobody says which positions these are. All that you know of them is in their numbers.",
        wrong=_from_0,
        shows=_counts_from_0,
    ),
    "rows-moved": known(
        "You move the rows of P along, as if the later positions stood in P as well.",
        "They need not be there: nobody says which positions these are. All that you know of them "
        "is in their numbers.",
        wrong=lambda P, shift: P.roll(-int(shift), 0),
    ),
    "speed-of-pair-3-for-all": known(
        "All pairs turn by the angle of pair 3.",
        "Each pair has its own speed: the lesson's ω for its number.",
        wrong=_as_pair_3,
        shows=_but_for_digits(_as_pair_3),
    ),
}

# Not looked for together with another one: they hide it, or are seldom made.
ALONE = {
    "wrong-signs": known(
        "One sign is wrong, or more, in the four terms that turn a pair.",
        "Write down sin(a + b) and cos(a + b). One of the four terms is subtracted.",
        **any_of(build_shift, turn=[_signs(*signs) for signs in WRONG_SIGNS]),
    ),
    "terms-missing": known(
        "A term is missing: your new sine or cosine is not made of both numbers of its pair.",
        "Write down sin(a + b) and cos(a + b). Each has two terms.",
        **any_of(build_shift, turn=[_signs(*which, -last) for *which, last in LACKING]),
    ),
    "new-sines-used": known(
        "You write the new sines over the old ones, and make the cosines of the new ones; or the "
        "other way round.",
        "Both are made of the old numbers. P[:, 0::2] of a tensor is a view: what is written into "
        "the tensor is seen there too.",
        **any_of(build_shift, turn=(_new_sines_used, _new_cosines_used)),
    ),
    "sines-and-cosines-swapped": known(
        "You take sines for cosines in P or in the result, and may turn the wrong way besides: the "
        "numbers do not tell.",
        "A pair is a sine and a cosine, in this order: places 0, 2, 4 hold sines. And which of "
        "sin(a + b) and cos(a + b) has a minus sign?",
        **any_of(build_shift, {"apart": _pairs_swapped}, {"join": _interleave_swapped}),
    ),
    "fractions-cut-off": known(
        "You make a whole number of the shift.",
        "A shift may be a fraction: half a position turns each pair by half of its angle.",
        **any_of(build_shift, by=(int, round, math.floor, math.ceil)),
    ),
    "negative-taken-for-positive": known(
        "You take a negative shift for a positive one, or for none.",
        "A shift of -2 leads to earlier positions, so each pair turns the other way.",
        **any_of(build_shift, by=(abs, lambda shift: max(shift, 0))),
    ),
    "turned-step-by-step": known(
        "Negative shifts do nothing, and fractions are cut off: do you turn by one position at a "
        "time, in a loop over range?",
        "One turn by shift · frequency is enough for each pair, for any number.",
        by=lambda shift: max(int(shift), 0),
    ),
    "degrees": known(
        "You take the angles for degrees or for turns: they are multiplied by π / 180, 180 / π, π "
        "or 2π.",
        "torch.sin and torch.cos count in radians, and so does the lesson: pair 0 turns by 1 "
        "radian for each position.",
        **any_of(build_shift, unit=(math.pi / 180, 180 / math.pi, 2 * math.pi, math.pi)),
    ),
    "width-fixed": known(
        "Your speeds are those of another width.",
        "The d of the formula is the width of P: P.shape[1], not a number from the lesson.",
        **any_of(build_shift, omega=map(_of_width, (64, 4, 6, 8, 10, 16, 32, 100, 128, 512, 768))),
    ),
    "joined-as-halves": known(
        "All sines come first in your result, then all cosines.",
        "The result has the layout of P: sine, cosine, sine, cosine.",
        join=lambda s, c: torch.cat([s, c], -1),
    ),
    "one-speed-for-all": known(
        "All pairs turn by the same angle.",
        "Each pair has its own speed: ω of the lesson.",
        omega=lambda d: torch.ones(d // 2, dtype=torch.float64),
        shows=_all_alike,
    ),
    "other-speeds": known(
        "Your speeds are not those of the formula: they fall too slowly or too fast, rise, or do "
        "not begin with 1.",
        "In the formula the speed of pair i is 10000 to the power of −2i / d, where i counts pairs "
        "from 0 and d counts all features.",
        **any_of(build_shift, omega=OTHER_SPEEDS),
    ),
    "speed-for-each-feature": known(
        "Each feature has a speed of its own: the cosine of a pair turns by another angle than its "
        "sine.",
        "A pair is one point on a circle, and both of its numbers turn by one angle. How many "
        "speeds are there for d features?",
        wrong=_speed_for_each_feature,
        shows=like(*(_with_two_speeds(speeds) for speeds in SPEEDS_OF_FEATURES)),
    ),
    "angles-in-float32": known(
        "Your angles have few digits: are the speeds or the shift in float32?",
        "That is what torch.tensor makes of a number with a fraction, and what a power of "
        "torch.arange is. Of the 7 digits a large shift needs most for whole turns. P is float64.",
        wrong=_in_float32,
        shows=_but_for_digits(shift_positions),
    ),
    "not-turned": known(
        "Your result is P as it was.",
        "Every pair has to be turned by its own angle.",
        turn=lambda s, c, a: (s, c),
    ),
}

TASK = Task(
    "10-shift_positions",
    shift_positions,
    shift_cases,
    returns=("the result",),
    mistakes=read_again(WHERE, SHIFT | ALONE),
    build=build_shift,
    point_out=point_out_turn,
    alone=tuple(ALONE),
    reversible=False,  # in reverse order they are not the vectors of positions
    number=7,
)
