"""What a task is: a right answer, the inputs it is tried on, and the mistakes that people make."""

import functools
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import torch

__all__ = [
    "AnswerError",
    "Case",
    "Draw",
    "Mistake",
    "Task",
    "all_but",
    "and_in_float32",
    "by_id",
    "in_float32",
    "known",
    "read_again",
    "unchanged",
    "without",
]


class AnswerError(Exception):
    """Raised by a task's `run` or `examine` for what no comparison shows; the learner reads it.

    For instance: a module without a parameter of the name that the task asks for.
    """


@dataclass(frozen=True)
class Case:
    """One set of inputs for an answer.

    name: what is special about it, in the learner's words: "3 sequences of unequal length".
    inputs: the arguments by name, in the order in which the answer takes them. Tensors are
        float64 unless they count something. The answer must leave them as they are, unless the
        task's `changes` names them.
    """

    name: str
    inputs: dict[str, Any]


def and_in_float32(cases):
    """Make a function that draws cases draw one more: the second of them in float32, as in a
    notebook where nobody has said a dtype."""

    @functools.wraps(cases)
    def with_float32(draw):
        drawn = cases(draw)
        case = drawn[min(1, len(drawn) - 1)]
        return [*drawn, replace(in_float32(case), name=f"{case.name}, in float32")]

    return with_float32


def in_float32(case):
    """The same in PyTorch's default dtype, as in a notebook. Where numbers are compared, these
    should come out without rounding, or nearly so."""
    inputs = case.inputs.items()
    floats = {n: X.float() for n, X in inputs if torch.is_tensor(X) and X.is_floating_point()}
    return Case(case.name, case.inputs | floats)


def call(answer, inputs):
    """Run an answer that is a function of the case's inputs, in their order."""
    return answer(*inputs.values())


@dataclass(frozen=True)
class Mistake:
    """A mistake that people make, recognised by its results.

    id: short, with hyphens: "split-without-permute".
    did: what the learner did, in a sentence to them. why: why it is wrong, without the answer.
    section: the heading of the lesson to read again.
    wrong: a small wrong answer; or
    parts: what it puts into the task's `build`. Two mistakes with other parts can be combined,
        so that an answer that makes both gets both named.
    twin: the id of the mistake of this task that gives the same results; it is named instead, so
    that this one needs no words.
    shows: where it gives one learner other numbers than the next: whether a result for a case's
        inputs comes of it. If it has `forms` (see forms.py), one of them has to fit all cases.
    """

    id: str
    did: str = ""
    why: str = ""
    section: str = ""
    wrong: Callable | None = None
    parts: dict[str, Any] | None = None
    twin: str | None = None
    shows: Callable[[dict[str, Any], Any], bool] | None = None


def known(did="", why="", section="", wrong=None, twin=None, shows=None, **parts):
    """A Mistake whose id is the key that it stands under in a dict, for `read_again`."""
    return Mistake("", did, why, section, wrong, parts or None, twin, shows)


def read_again(section, mistakes):
    """The mistakes of {id: mistake}, with this section of the lesson to read again where they name
    no other."""
    return tuple(
        replace(mistake, id=id, section=mistake.section or section)
        for id, mistake in mistakes.items()
    )


def by_id(mistakes):
    """{id: mistake}, to be put among others."""
    return {mistake.id: mistake for mistake in mistakes}


def without(mistakes, *ids):
    """The mistakes without those of these ids."""
    return tuple(mistake for mistake in mistakes if mistake.id not in ids)


def all_but(mistakes, *ids):
    """The ids of the mistakes without these."""
    return tuple(mistake.id for mistake in without(mistakes, *ids))


def unchanged(X):
    """X as it is: the part of an answer that does nothing, or that a mistake leaves out."""
    return X


@dataclass(frozen=True)
class Task:
    """One task of an exercise set.

    id: lesson number and the name that the learner defines, "04-transpose_qkv".
    reference: a right answer. Expected values are what it returns on the same inputs.
    cases: draws the cases from a `Draw`; easy ones first, since the first that fails is shown.
    run: calls an answer with a case's inputs and returns the values that are compared: a tensor,
        a number, or a tuple or dict of these. It never compares anything itself, so it can run
        where the student's code runs while the comparison happens elsewhere.
    examine: makes of a case's inputs and of what `run` returned what is compared, where that is
        not the same: "is each head dropped as a whole?". Like the comparison it runs where no
        learner's code does. Raises AnswerError for what no comparison can show.
    returns: the names of what is compared, one for each element if it is a tuple.
    kind: what the answer has to be, "function" or "class".
    tolerance: the largest |yours - expected| / max(1, |expected|) that is right in float64. More
        than 1e-9 gets a remark: a root of a width taken in float32 costs about 8 digits.
    forbidden: dotted names of functions and classes that the answer may not call. A torch
        function is recognised by its last name, whatever alias it is called through.
    changes: the names of inputs that the answer is meant to change.
    hidden: the names of inputs that are not shown: what the answer never gets, such as the number
        of the function that it is called with, and what tells nothing, such as a tuple of weights.
    secret: do not show expected values, because here they are the answer.
    mistakes: the known ones. build: makes an answer from parts, a right one without any.
    alone: ids of mistakes that are not combined with another one, since every pair costs time in
        a check: one that hides all others (it raises, or returns another shape), or is seldom made.
    stages: for a case's inputs, what a right answer computes on the way, as {what: tensor} in
        order; those made side by side in a dict of their own. Looked for among what the learner's
        answer computes, so that the first that is not there can be named.
    skippable: whether a good answer may do without some stage, in Python's own numbers or by other
        steps. Then only what is there is said, and not what is missing.
    quantities: for a case's inputs two dicts {what: number}: what the right number is the sum of,
        and what it is the product of. Looked for where a wrong number is off by one of them.
    reversible: whether a case with all numbers in reverse order is one that the statement allows.
        Then an answer is tried on it too, so that nothing kept from another call passes.
    point_out: of a wrong result that no known mistake explains, a sentence that leads on: what a
        right one is made of, for this case. Gets the case's inputs and the result.
    uses: ids of earlier tasks of the exercise set whose functions a good answer calls.
    since: the version of the exercise set since which its statement asks for the same.
    number: its place in the exercise set of a lesson, 2 for task 4.2.
    """

    id: str
    reference: Callable
    cases: Callable[["Draw"], list[Case]]
    run: Callable[[Callable, dict[str, Any]], Any] = call
    examine: Callable[[dict[str, Any], Any], Any] | None = None
    returns: tuple[str, ...] = ("result",)
    kind: str = "function"
    tolerance: float = 1e-5
    forbidden: tuple[str, ...] = ()
    changes: tuple[str, ...] = ()
    hidden: tuple[str, ...] = ()
    secret: bool = False
    mistakes: tuple[Mistake, ...] = ()
    build: Callable | None = None
    stages: Callable[[dict[str, Any]], dict[str, torch.Tensor]] | None = None
    skippable: bool = False
    quantities: Callable[[dict[str, Any]], tuple[dict[str, int], dict[str, int]]] | None = None
    reversible: bool = True
    point_out: Callable[[dict[str, Any], Any], str] | None = None
    uses: tuple[str, ...] = ()
    since: int = 1
    number: int = 0
    alone: tuple[str, ...] = ()

    @property
    def name(self):
        """The name that the learner defines: "transpose_qkv"."""
        return self.id.split("-", 1)[1]


class Draw:
    """Random inputs from a generator of their own, so that the global one is left alone.

    Shapes: as asked for. Everything is float64 or int64. Equal seeds give equal draws.
    """

    def __init__(self, seed=0):
        self._generator = torch.Generator().manual_seed(seed)

    def normal(self, *shape, scale=1.0):
        """Independent normal numbers of mean 0, standard deviation `scale`."""
        return scale * torch.randn(*shape, generator=self._generator, dtype=torch.float64)

    def integers(self, low, high, *shape):
        """Whole numbers from low to high, both included."""
        return torch.randint(low, high + 1, shape, generator=self._generator)

    def lengths(self, batch_size, num_keys, low=1):
        """One length a sequence, (B,), in low..S: the first two are S and low, so they differ."""
        lengths = self.integers(low, num_keys, batch_size)
        return torch.cat([torch.tensor([num_keys, low]), lengths])[:batch_size]
