"""Which parts of a result are right, and which other tensor a wrong part is."""

import contextlib

import torch

from mha_classroom.checks.compare import compare, is_plural, pairs_of
from mha_classroom.checks.showing import listed

__all__ = ["Parts", "instead", "is_right_elsewhere", "right_parts", "taken_from"]

MOST = 4  # parts that are named in a sentence
SHORT = 5  # words of a name; longer ones are sentences


class Parts:
    """The parts of what an answer returned for one case, by name.

    Raises: Exception if there is no result, or one with other parts.
    """

    def __init__(self, task, case, expected, outcome):
        if outcome.error is not None or outcome.changed:
            raise ValueError("no result")
        names = (name for name in case.inputs if name.isidentifier() and name not in task.hidden)
        self.given = {f"`{name}` as it was given": case.inputs[name] for name in names}
        self.want, self.have, self.wrong = {}, {}, []
        for name, want, have in pairs_of(expected, outcome.value, task.returns):
            if want is None or len(name.split()) > SHORT:
                raise ValueError("other parts")
            self.want[name], self.have[name] = want, have
            if compare(want, have, (name,), task.tolerance)[0]:
                self.wrong.append(name)

    @classmethod
    def of(cls, task, cases, expected, outcomes, tried):
        """Those of the cases in which a part is wrong; none if the first has none.

        expected: gives the right result of a case, by its index. tried: the indices of the cases
        that are looked at, that of the failing one first.
        """
        found = []
        for index in tried:
            with contextlib.suppress(Exception):
                found.append(cls(task, cases[index], expected(index), outcomes[index]))
            if not found:
                break
        return [] if task.secret else [parts for parts in found if parts.wrong]

    def others(self, name):
        """What a wrong part is, an input or another part of the right result, and whether that
        says something: numbers that are all the same are found anywhere."""
        rest = {f"what {other} should be": X for other, X in self.want.items() if other != name}
        found = {w: X for w, X in (self.given | rest).items() if _is(X, self.have[name])}
        return {words: bool((X != X.flatten()[0]).any()) for words, X in found.items()}


def _is(X, have):
    """Whether these are the same tensor, of several numbers."""
    if not torch.is_tensor(X) or not torch.is_tensor(have) or X.shape != have.shape:
        return False
    if (X.dtype == torch.bool) != (have.dtype == torch.bool):
        return False
    if have.layout != torch.strided or have.is_meta or have.is_complex():
        return False
    return X.numel() > 1 and torch.allclose(X.double(), have.detach().double(), 1e-9, 1e-9)


def is_or_are(name):
    return "are" if is_plural(name) else "is"


def instead(wrong):
    """What the wrong parts are in all cases where they are wrong: inputs, or what another part
    should be. "" if none is either.

    wrong: the Parts of these cases.
    """
    said = []
    for name in wrong[0].wrong if wrong else ():
        others = [parts.others(name) for parts in wrong if name in parts.wrong]
        every = (w for w in others[0] if all(w in o for o in others) and any(o[w] for o in others))
        words = next(every, "")
        said += [f"Your {name.removeprefix('the ')} {is_or_are(name)} {words}."] * bool(words)
    return " ".join(said[:MOST])


def right_parts(wrong):
    """A sentence on the tensors that are right even in the cases where other parts are wrong."""
    if len(wrong) < 2:  # one case is chance
        return ""
    names = [
        name
        for name, X in wrong[0].want.items()
        if torch.is_tensor(X) and not any(name in parts.wrong for parts in wrong)
    ]
    if not names or len(names) > MOST:
        return ""
    text, verb = listed(names), "are" if len(names) > 1 else is_or_are(names[0])
    return f"{text[0].upper() + text[1:] if ' ' in names[0] else text} {verb} right."


def is_right_elsewhere(wrong):
    """Whether the first wrong part should be what another part is, which is right.

    With and without need_weights the output is the same: then a step that is found among what was
    computed may be that of the right one.
    """
    if not wrong:
        return False
    parts = wrong[0]
    want = parts.want[parts.wrong[0]]
    return any(_is(X, want) for name, X in parts.want.items() if name not in parts.wrong)


def taken_from(task, difference, inputs, others=()):
    """Of a wrong tensor that is an input, or made of one's numbers: what it is, and what is asked
    for. "" if it is made otherwise, or a number occurs twice in the input.

    others: (difference, inputs) of other cases, in which it has to be made of the numbers, too: a
    mean of two numbers may be a third one.
    """
    if not difference or not difference.tensors or task.secret:
        return ""
    want, have = (Y.detach() for Y in difference.tensors)
    if want.shape != have.shape or not want.dim() or have.layout != torch.strided or have.is_meta:
        return ""
    have = have.cpu()
    given = {
        name: X
        for name, X in inputs.items()
        if torch.is_tensor(X) and X.is_floating_point() and name not in task.hidden
    }
    mine, right = (_inputs_that_are(Y, given) for Y in (have, want))
    if len(mine) == len(right) == 1 and mine != right and want.any():
        return f"What you have there is {mine[0]}; asked for is {right[0]}."
    wrong = (want != have).nonzero().tolist()
    for name, X in given.items() if wrong else ():
        numbers = set(X.flatten().tolist())
        once = len(numbers) == X.numel() > 1
        made_of_it = once and all(set(Y.flatten().tolist()) <= numbers for Y in (want, have))
        if made_of_it and all(_is_made_of(name, *other) for other in others):
            mine, right = ((X == Y[tuple(wrong[0])]).nonzero()[0].tolist() for Y in (have, want))
            return f"At {wrong[0]} you have the number of {name}{mine}; asked for is {name}{right}."
    return ""


def _is_made_of(name, difference, inputs):
    """Whether a wrong tensor of a case has numbers of this input alone; True if it is no tensor."""
    if not difference or not difference.tensors or not torch.is_tensor(inputs.get(name)):
        return True
    have = difference.tensors[1].detach()
    return set(have.flatten().tolist()) <= set(inputs[name].flatten().tolist())


def _inputs_that_are(Y, given):
    """The inputs whose numbers these are, all of them in their places, or transposed."""
    found = [f"`{name}`" for name, X in given.items() if _is(X, Y)]
    turned = {name: X.mT for name, X in given.items() if X.dim() > 1}
    return found or [f"`{name}`, transposed" for name, X in turned.items() if _is(X, Y)]
