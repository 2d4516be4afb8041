"""Run an answer on a case without letting it disturb anything, and watch what it calls."""

import contextlib
import functools
import random
import sys
import threading
import types

import numpy as np
import torch
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

__all__ = [
    "Borrowed",
    "changed_inputs",
    "copy_inputs",
    "quiet_state",
    "reversed_inputs",
    "unwatched",
    "watch_calls",
]


class Borrowed(Exception):
    """What an answer failed with that calls what the task asks it to write; quotes the name."""


def copy_inputs(inputs):
    """Return the inputs with tensors and lists copied, so that an answer cannot change the case."""
    return {name: _copied(X) for name, X in inputs.items()}


def _copied(X):
    if isinstance(X, list):
        return [_copied(one) for one in X]
    return X.clone() if torch.is_tensor(X) else X


def changed_inputs(given, inputs, allowed=()):
    """Return the names of tensors and lists in `given` that no longer equal those in `inputs`."""
    return [
        name for name, X in inputs.items() if name not in allowed and not _is_still(given[name], X)
    ]


def _is_still(given, X):
    if isinstance(X, list):
        return len(given) == len(X) and all(map(_is_still, given, X))
    if not torch.is_tensor(X):
        return True
    if not torch.is_tensor(given) or (given.shape, given.dtype) != (X.shape, X.dtype):
        return False
    return bool(((given == X) | ((given != given) & (X != X))).all())  # NaN stays NaN


def reversed_inputs(inputs):
    """Return the inputs with the numbers of every tensor in reverse order."""
    return {
        name: X.flip(tuple(range(X.dim()))) if torch.is_tensor(X) else X
        for name, X in inputs.items()
    }


@contextlib.contextmanager
def quiet_state():
    """Leave the global random generators and torch's defaults as they were found.

    Inside, the generators start from 0, so that what is said of an answer does not depend on what
    ran before, and torch has one thread: for the small tensors of a check a second one only waits.
    """
    python, numpy_state, dtype = random.getstate(), np.random.get_state(), torch.get_default_dtype()
    grad, threads = torch.is_grad_enabled(), torch.get_num_threads()
    torch.set_num_threads(1)
    with torch.random.fork_rng(devices=[]):
        for seed in (random.seed, np.random.seed, torch.manual_seed):
            seed(0)
        try:
            yield
        finally:
            random.setstate(python)
            np.random.set_state(numpy_state)
            torch.set_default_dtype(dtype)
            torch.set_grad_enabled(grad)
            torch.set_num_threads(threads)


NUMERIC = ("mm", "bmm", "addmm", "baddbmm", "exp", "softmax")  # what attention is made of
PAST = "computes with torch in a way that shows no calls (torch.jit and its like)"
THREAD = "starts a thread"
UNWATCHED = "ends the watch over its calls"


@contextlib.contextmanager
def watch_calls(forbidden, noticed=None):
    """Give a list to which each call of one of the `forbidden` dotted names adds its name.

    Functions written in Python are recognised by the module and name they were defined with, so
    another name for them changes nothing; torch's built-in ones by their last name, whichever of
    torch's modules or methods they are called through. Threads started inside are watched too.
    Nothing is raised: an answer could swallow it.
    noticed: a list for what only a human can judge. Where it is given, what reaches torch by ways
    that show no call (torch.jit, compiled functions) is watched as well, one level below.
    """
    called = []
    if not forbidden:
        yield called
        return
    built_in = {f.rsplit(".", 1)[1].strip("_") for f in forbidden if f.startswith("torch.")}
    on_event = _profile(forbidden, built_in, called)
    before, in_threads_before = sys.getprofile(), threading.getprofile()
    sys.setprofile(on_event)
    threading.setprofile(on_event if noticed is None else _in_threads(on_event, noticed))
    try:
        with contextlib.ExitStack() as within:
            if _any_compiled(forbidden):  # the profile shows every call of the others
                watching = within.enter_context(_Watching(built_in, called))
                if noticed is not None:
                    within.enter_context(_Below(watching, noticed))
            yield called
            # Not after an exception: one that arrives in the profile itself ends it.
            if noticed is not None and sys.getprofile() is not on_event:
                noticed.append(UNWATCHED)
    finally:
        sys.setprofile(before)
        threading.setprofile(in_threads_before)


def _profile(forbidden, built_in, called):
    modules = {f[:i] for f in forbidden for i in range(len(f) + 1) if f[i : i + 1] in (".", "")}

    is_built_in = {}  # by name, as most calls are of a few functions

    def on_event(frame, event, arg):
        # Called for every function there is, so the module is looked at first.
        if event == "call":
            if frame.f_globals.get("__name__") in modules:
                name = f"{frame.f_globals['__name__']}.{frame.f_code.co_qualname}"
                if any(name == f or name.startswith(f + ".") for f in forbidden):
                    called.append(name)
        elif event == "c_call":
            name = getattr(arg, "__name__", "")
            if name not in is_built_in:
                is_built_in[name] = _plain_name(arg) in built_in
            if is_built_in[name]:
                called.append(f"torch.{_plain_name(arg)}")

    return on_event


def _in_threads(on_event, noticed):
    def first(frame, event, arg):
        noticed.append(THREAD)
        sys.setprofile(on_event)
        on_event(frame, event, arg)

    return first


def _named(dotted):
    return functools.reduce(lambda part, name: getattr(part, name, None), dotted.split("."), torch)


@functools.cache
def _any_compiled(forbidden):
    """Whether one of these names is that of a function of torch not written in Python."""
    names = (name.removeprefix("torch.") for name in forbidden if name.startswith("torch."))
    found = (_named(name) for name in names)
    return not all(isinstance(function, (types.FunctionType, type)) for function in found)


def _plain_name(function):
    """softmax for torch.softmax, torch._softmax, torch.ops.aten.softmax.int and their like."""
    return getattr(function, "__name__", "").split(".")[0].strip("_")


@contextlib.contextmanager
def unwatched():
    """Let what runs inside call anything, also where calls are watched."""
    profile = sys.getprofile()
    sys.setprofile(None)
    try:
        with torch._C.DisableTorchFunction():
            yield
    finally:
        sys.setprofile(profile)


class _Watching(TorchFunctionMode):
    """Sees what torch calls by way of partial, map and torch.ops, which no profile shows."""

    def __init__(self, names, called):
        super().__init__()
        self.names, self.called, self.depth = names, called, 0

    def __torch_function__(self, func, types, args=(), kwargs=None):
        self.note(func)
        self.depth += 1
        try:
            return func(*args, **(kwargs or {}))
        finally:
            self.depth -= 1

    def note(self, func):
        if _plain_name(func) in self.names:
            self.called.append(f"torch.{_plain_name(func)}")


class _Below(TorchDispatchMode):
    """Sees whatever torch computes, also where nothing shows the call."""

    def __init__(self, watching, noticed):
        super().__init__()
        self.watching, self.noticed = watching, noticed

    @classmethod
    def _should_skip_dynamo(cls):
        """torch asks this of a mode, and would import its compiler only to keep it away."""
        return False

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.watching.note(func)
        if not self.watching.depth and _plain_name(func) in NUMERIC:
            self.noticed.append(PAST)
        return func(*args, **(kwargs or {}))
