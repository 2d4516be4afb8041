"""A word about what is good in a right answer of an unusual kind."""

from collections import Counter

from torch.overrides import TorchFunctionMode

from mha_course.checks.outcome import observe

__all__ = ["praise"]

LOOP = (
    "You wrote it as a loop. That is slower and clearer: keep it, it is the best test there is "
    "for a fast version."
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
MANY = 6  # products or softmaxes in one call: more than any answer without a loop has


def praise(task, answer, case):
    """Return a sentence about a right answer, "" if there is nothing special to say."""
    with _Counting() as counting:
        observe(task, answer, case, watch=False)
    for name, words in WORDS.items():
        if counting.calls[name]:
            return words
    most = max((counting.calls[name] for name in ("matmul", "mm", "dot", "softmax")), default=0)
    looped = most > MANY and most > counting.calls["linear"]
    return LOOP if looped and task.stages else ""


class _Counting(TorchFunctionMode):
    def __init__(self):
        super().__init__()
        self.calls = Counter()

    def __torch_function__(self, func, types, args=(), kwargs=None):
        self.calls[getattr(func, "__name__", "").strip("_")] += 1
        return func(*args, **(kwargs or {}))
