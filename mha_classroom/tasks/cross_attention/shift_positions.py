"""Task 10.7, shift_positions: later positions from given ones, without knowing where they are."""

import torch

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
):
    def shift_positions(P, shift):
        angles = sign * shift * omega(P.shape[-1])
        return join(*turn(*apart(P), angles))

    return shift_positions


def _from_0(P, shift):
    return vectors(torch.arange(len(P)).double() + shift, P.shape[-1])


def _whole_angle(d):
    return torch.ones(d // 2, dtype=torch.float64)


SHIFT = {
    "turned-back": known(
        "You turn the wrong way: your positions are earlier, not later.",
        "Write down sin(a + b) and cos(a + b). Which of them has a minus sign?",
        sign=-1,
    ),
    "wrong-signs": known(
        "Your matrix is no rotation: a sign is wrong.",
        "Write down sin(a + b) and cos(a + b). One of the four terms is subtracted.",
        turn=lambda s, c, a: (s * a.cos() + c * a.sin(), c * a.cos() + s * a.sin()),
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
    "speeds-of-pairs": known(
        "Your speeds fall too slowly: the exponent of pair i is i / d.",
        "In the formula it is 2i / d.",
        omega=lambda d: 10000.0 ** (-torch.arange(d // 2).double() / d),
    ),
    "speeds-too-slow": known(
        "Your speeds fall too fast: the exponent of pair i is 4i / d.",
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
    ),
    "other-base": known(
        "Your speeds are powers of 1000.",
        "The number in the formula is 10000.",
        omega=lambda d: _omega(d, base=1000.0),
    ),
    "vectors-added": known(
        "You add the vector of the shift to each row.",
        "sin(a + b) is not sin a + sin b. A shift is a rotation.",
        wrong=lambda P, shift: P + vectors(torch.tensor([float(shift)]).double(), P.shape[-1]),
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
