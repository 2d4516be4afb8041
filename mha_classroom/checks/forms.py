"""A mistake in several forms: which numbers come of it differs from one learner to the next."""

import warnings

import torch

from mha_classroom.checks.showing import plain_number

__all__ = ["CUT_OFF_AT", "FILLS", "alike", "any_of", "like", "near"]

NEAR, NEAR_FLOAT32 = 1e-9, 1e-4
FAILED = object()
# In place of -inf: low among scores around 0, and not below all that scores can be.
FILLS = (-1.0, -5.0, -9.0, -10.0, -20.0, -50.0, -99.0, -100.0, -500.0, -999.0, -1e3, -9999.0, -1e4)
# Between which scores are cut off, so that exp does not overflow.
CUT_OFF_AT = [
    ends
    for most in (10.0, 20.0, 30.0, 50.0, 80.0, 88.0, 100.0, 500.0, 700.0, 1e3, 1e4, 65504.0)
    for ends in ((-most, most), (None, most), (-most, None))
]


def like(*answers, run=lambda answer, inputs: answer(*inputs.values()), where=None):
    """The `shows` of a mistake with as many forms as there are answers: a result is one of theirs.

    where: for inputs and result, a boolean tensor of the places that count; all unless told.
    What is returned has `forms`, one for each answer: a learner makes the mistake in one of them,
    and the same in every case.
    """

    def form(answer):
        def shows(inputs, value):
            places = where(inputs, value) if where and torch.is_tensor(value) else True
            return alike(_made(run, answer, inputs), value, places)

        return shows

    def shows(inputs, value):
        return any(form(inputs, value) for form in shows.forms)

    shows.forms = tuple(map(form, answers))
    return shows


def any_of(build, *choices, run=None, where=None, **lists):
    """The parts of a mistake with several forms: those of the first, and the `shows` for all.

    choices: dicts of the parts of a form. lists: of one part, what each form has for it.
    """
    choices = [*choices, *({name: part} for name, parts in lists.items() for part in parts)]
    given = {"where": where} | ({"run": run} if run else {})
    return {"shows": like(*(build(**parts) for parts in choices), **given), **choices[0]}


def _made(run, answer, inputs):
    given = {name: X.clone() if torch.is_tensor(X) else X for name, X in inputs.items()}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return run(answer, given)
        except Exception:  # of a form that does not fit this case
            return FAILED


def alike(one, other, places=True):
    """Whether two results, numbers, tensors or what holds them, are the same; NaN equals NaN.

    places: a boolean tensor of the places that count, or True.
    """
    if isinstance(one, dict):
        return (
            isinstance(other, dict)
            and one.keys() == other.keys()
            and all(alike(one[name], other[name], places) for name in one)
        )
    if isinstance(one, (tuple, list)):
        return (
            isinstance(other, (tuple, list))
            and len(one) == len(other)
            and all(alike(*pair, places) for pair in zip(one, other, strict=True))
        )
    if not torch.is_tensor(one):
        return _plainly_alike(one, other)
    if not torch.is_tensor(other) or one.shape != other.shape:
        return False
    kinds = [(X.is_floating_point(), X.dtype == torch.bool, X.is_complex()) for X in (one, other)]
    if kinds[0] != kinds[1]:
        return False
    tolerance = NEAR_FLOAT32 if other.dtype == torch.float32 else NEAR
    same = near(one, other, tolerance)
    return bool((same | ~torch.as_tensor(places)).all())


def _plainly_alike(one, other):
    number, mine = plain_number(one), plain_number(other)
    if number is None or mine is None:
        return type(one) is type(other) and one == other
    return abs(number - mine) <= NEAR * max(1, abs(number)) or number == mine


def near(one, other, tolerance=None):
    """Where two tensors of one shape hold the same number, NaN among them: a boolean tensor.

    tolerance: of what float32 or float64 can hold unless told.
    """
    if tolerance is None:
        tolerance = NEAR_FLOAT32 if torch.float32 in (one.dtype, other.dtype) else NEAR
    one, other = one.double(), other.double()
    off = (one - other).abs()  # inf or NaN where one of the two is infinite
    same = (one == other) | (off <= tolerance * other.abs().clamp(1, 1e300))
    return same | (one.isnan() & other.isnan())
