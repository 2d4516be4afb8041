"""What a learner's code does that no answer needs, for a human to look at.

It proves nothing and stops nothing: the kernel runs the learner's code, which may change all of
this.
"""

import os
import sys
import threading

__all__ = ["running_threads", "start", "take_notes"]

MOST = 20
DIRECTLY = {
    "sys.addaudithook": "listens to what Python does",
    "gc.get_objects": "looks through the objects in memory",
    "gc.get_referrers": "looks through the objects in memory",
    "gc.get_referents": "looks through the objects in memory",
}
ANYHOW = {
    "_thread.start_new_thread": "starts a thread",
    "os.fork": "starts a process",
    "os.posix_spawn": "starts a process",
    "os.system": "starts a process",
    "subprocess.Popen": "starts a process",
}
HOOK = "has IPython call code of its own around cells: {}"
THREAD = "has a thread of its own running"
CHANGED = "changes the code that tries the answers: {}"
HARNESS = ("mha_classroom.checks", "mha_classroom.grading")
COURSE = ("mha_course", "mha_classroom")
KERNEL = ("IPython", "ipykernel")  # below their frames there is nothing of the learner's
STANDARD = os.path.dirname(os.__file__)

_notes = []


def start():
    """Take notes from now on, in the whole process and for ever.

    Call it once the probe is imported and before any cell of a learner's has run.
    """
    was, hooks = _fingerprints(), _hooks()

    def hook(event, args):
        if event == "mha_course.notes":
            now = _fingerprints()
            args[0].extend(CHANGED.format(name) for name in was if not _same(was, now, name))
            args[0].extend(HOOK.format(place) for place, _ in _hooks() - hooks)
        elif event in DIRECTLY and _is_own(sys._getframe(1)):
            _note(DIRECTLY[event])
        elif event in ANYHOW and _comes_from_own(sys._getframe(1)):
            _note(ANYHOW[event])

    sys.addaudithook(hook)


def _note(what):
    if len(_notes) < MOST:
        _notes.append(what)


def take_notes():
    """The notes since the last time."""
    notes = []
    sys.audit("mha_course.notes", notes)
    notes += _notes
    _notes.clear()
    return notes


def running_threads():
    """A note if a thread runs the learner's code beside this one."""
    frames = sys._current_frames()
    others = [frame for ident, frame in frames.items() if ident != threading.get_ident()]
    return [THREAD] if any(map(_comes_from_own, others)) else []


def _comes_from_own(frame):
    while frame is not None and _module(frame).split(".")[0] not in KERNEL:
        if _is_own(frame):
            return True
        frame = frame.f_back
    return False


def _module(frame):
    return str(frame.f_globals.get("__name__"))


def _is_own(frame):
    """Whether it is code of the learner's, of no library."""
    file = frame.f_code.co_filename
    library = "-packages" in file or file.startswith((STANDARD, "<frozen"))
    return not library and _module(frame).split(".")[0] not in COURSE


def _fingerprints():
    """What each name of the code that tries answers stands for, and its code."""
    return {
        f"{module}.{name}": (value, getattr(value, "__code__", None))
        for module, content in list(sys.modules.items())
        if module.startswith(HARNESS) and content is not None
        for name, value in list(vars(content).items())
        if callable(value)
    }


def _hooks():
    """(place, id) of what IPython calls around each cell and is of no library."""
    from IPython import get_ipython

    shell = get_ipython()
    if shell is None:
        return set()
    reads = vars(shell.input_transformer_manager).values()
    places = shell.events.callbacks | {
        "input transformers": [
            *shell.input_transformers_post,
            *(f for listed in reads if isinstance(listed, list) for f in listed),
        ],
        "ast transformers": shell.ast_transformers,
    }
    return {
        (place, id(function))
        for place, functions in places.items()
        for function in functions
        if "-packages" not in getattr(getattr(function, "__code__", None), "co_filename", "")
    }


def _same(was, now, name):
    return name in now and all(a is b for a, b in zip(was[name], now[name], strict=True))
