"""A word about what is good in a right answer of an unusual kind."""

import sys
from collections import Counter

from torch.overrides import TorchFunctionMode

from mha_classroom.checks.outcome import observe

__all__ = ["PRAISE", "Counting", "count_calls", "praise"]

LOOP = (
    "You computed it piece by piece. That is slower and clearer: keep it, it is the best test "
    "there is for a fast version."
)
WORDS = {
    "einsum": "You used einsum: it names every axis, so that none can be swapped unseen.",
    "unflatten": "You used unflatten: it says which axis is cut and leaves the others alone.",
    "movedim": "You used movedim: it says which axis moves, whatever the others are.",
    "logsumexp": "You used logsumexp: it subtracts the maximum for you.",
    "baddbmm": "You used baddbmm: product and scale in one step.",
    "scaled_dot_product_attention": "You used PyTorch's fused attention: it never stores the "
    "table of weights.",
}
PRAISE = frozenset({LOOP, *WORDS.values()})
MANY = 6  # products or softmaxes in one call: more than any answer without a loop has


def praise(task, calls):
    """Return a sentence about a right answer, "" if there is nothing special to say.

    calls: what it calls on its first case, as `count_calls` counts it.
    """
    for name, words in WORDS.items():
        if calls[name]:
            return words
    most = max(calls[name] for name in ("matmul", "mm", "dot", "softmax"))
    looped = most > MANY and most > calls["linear"]
    return LOOP if looped and task.stages else ""


def count_calls(task, answer, case):
    """How often an answer calls each function of torch on a case: a Counter by plain name."""
    with Counting(task.uses) as counting:
        observe(task, answer, case, watch=False)
    return counting.calls


class Counting(TorchFunctionMode):
    """Counts in `calls` the functions of torch that an answer calls itself.

    Not those that the course calls for it, or the answers to earlier tasks.
    uses: ids of these.
    """

    def __init__(self, uses=()):
        super().__init__()
        self.calls, self.others = Counter(), {task_id.split("-", 1)[1] for task_id in uses}

    def __torch_function__(self, func, types, args=(), kwargs=None):
        frame = sys._getframe(1)
        if not _calls_for_the_course(frame) and not _calls_for(self.others, frame):
            self.calls[getattr(func, "__name__", "").strip("_")] += 1
        return func(*args, **(kwargs or {}))


def _calls_for(names, frame):
    """Whether a call was made by a function, or a method of a class, of one of these names."""
    while frame and frame.f_code.co_qualname.split(".")[0] not in names:
        frame = frame.f_back
    return bool(frame)


def _calls_for_the_course(frame):
    """Whether a call of torch was made by a function of the course that the answer uses."""
    while frame and frame.f_globals.get("__name__", "").split(".")[0] == "torch":
        frame = frame.f_back
    return bool(frame) and frame.f_globals.get("__name__", "").startswith(
        ("mha_course.", "mha_classroom.")
    )
