"""In which of its cases an answer is right, where nothing better can be said of it."""

import torch

__all__ = ["say_where"]

FEW = 4  # names of cases in a sentence
PLAIN = (bool, int, str)
LEFT_OUT = object()  # in place of an argument that a case does not give


def say_where(cases, is_right):
    """A sentence that says in which cases an answer is right and in which not; "" if in none.

    What tells the ones from the others is said where it is an argument that is left out, of another
    type or value, or with other axes; else the cases are named.
    is_right: whether the answer is right, for each case.
    """
    right = [case for case, good in zip(cases, is_right, strict=True) if good]
    wrong = [case for case, good in zip(cases, is_right, strict=True) if not good]
    if not right or not wrong:
        return ""
    return _by_argument(right, wrong) or _by_name(right, wrong)


def _by_argument(right, wrong):
    if min(len(right), len(wrong)) < 2:
        return ""  # one case differs from the others in many ways
    names = dict.fromkeys(name for case in (*right, *wrong) for name in case.inputs)
    names = [name for name in names if name.isidentifier()]  # others are entries of a dict
    for kind in (_given, _type, _axes, *MORE_AXES, _value, _sign, _above_0, _below_0):
        for name in names:
            good, bad = (
                {kind(case.inputs.get(name, LEFT_OUT)) for case in group}
                for group in (right, wrong)
            )
            if len(good) == len(bad) == 1 and good != bad and "" not in good | bad:
                words = f"right where {name} {good.pop()}, and wrong where it {bad.pop()}"
                return f"In the cases tried it is {words}."
    return ""


def _given(X):
    return "is None" if X is None else "is left out" if X is LEFT_OUT else "is given"


def _type(X):
    if torch.is_tensor(X):
        return f"has dtype {str(X.dtype).removeprefix('torch.')}"
    return ""


def _axes(X):
    return f"has {X.dim()} {'axis' if X.dim() == 1 else 'axes'}" if torch.is_tensor(X) else ""


def _more_axes(limit):
    def kind(X):
        if not torch.is_tensor(X):
            return ""
        return f"has more than {limit}" if X.dim() > limit else f"has at most {limit} axes"

    return kind


MORE_AXES = [_more_axes(limit) for limit in (2, 3)]


def _value(X):
    return f"is {X!r}" if isinstance(X, PLAIN) else ""


def _is_number(X):
    return isinstance(X, (int, float)) and not isinstance(X, bool)


def _sign(X):
    if not _is_number(X):
        return ""
    return "is 0" if X == 0 else f"is {'above' if X > 0 else 'below'} 0"


def _above_0(X):
    return f"is {'above' if X > 0 else 'at most'} 0" if _is_number(X) else ""


def _below_0(X):
    return f"is {'below' if X < 0 else 'at least'} 0" if _is_number(X) else ""


def _by_name(right, wrong):
    total = len(right) + len(wrong)
    if len(wrong) <= min(FEW, len(right)):
        return f"It is right in {len(right)} of {total} cases, and wrong in: {_listed(wrong)}."
    if len(right) <= FEW:
        return f"It is right in {len(right)} of {total} cases: {_listed(right)}."
    return ""


def _listed(cases):
    return ", ".join(f'"{case.name}"' for case in cases)
