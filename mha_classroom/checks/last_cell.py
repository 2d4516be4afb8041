"""Whether what a check is given comes from the cell that was run last to define it."""

import inspect
import re

from mha_classroom.checks.feedback import Feedback

__all__ = ["not_from_the_last_cell"]


def not_from_the_last_cell(task, answer):
    """The Feedback if a later cell than the answer's was to define it and failed, None otherwise.

    Such a cell ended in an error (a wrong indentation, say), the name still has its old meaning,
    and to judge that in silence would be a riddle.
    """
    cells, own = _cells(), _source(answer, task.name)
    starts = re.compile(rf"^(def|class) {re.escape(task.name)}\b", re.MULTILINE)
    defining = [cell for cell in cells if starts.search(cell)]
    if not own or not defining or own in defining[-1] or not any(own in cell for cell in defining):
        return None
    word = starts.search(defining[-1])[1]
    message = (
        f"The last cell with `{word} {task.name}` ended in an error, so {task.name} is still the "
        "one from an earlier cell. Mend that cell, run it, and then run this one."
    )
    return Feedback(task.id, "not run", message)


def _cells():
    """The cells of this notebook that were run, in order."""
    try:
        from IPython import get_ipython
    except ImportError:
        return []
    shell = get_ipython()
    return list(shell.user_ns.get("In", [])) if shell else []


def _source(answer, name):
    """The text of a function, of a class its first method; "" for what has none of its own."""
    if isinstance(answer, type):
        answer = next(filter(inspect.isfunction, vars(answer).values()), None)
    elif getattr(answer, "__name__", None) != name:
        return ""
    try:
        return inspect.getsource(answer).rstrip() if inspect.isfunction(answer) else ""
    except (OSError, TypeError):
        return ""
