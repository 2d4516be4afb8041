"""What an answer may not call: what is written in Python is taken away, the rest is watched."""

import contextlib
import functools
import importlib
import sys
import threading
import types

import torch
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

__all__ = ["Borrowed", "borrow", "forbid", "given_back", "named", "permitted", "take_away"]

_away = []  # for each `forbid` that is going on: {function: its code}, the list of what is called


class Borrowed(Exception):
    """What an answer failed with that calls what the task asks it to write; quotes the name."""


@contextlib.contextmanager
def forbid(names, closely=False):
    """Give a list to which each call of one of the dotted `names` adds its name.

    A function written in Python, and each method of a class and each function of a module, gets
    other code for this time, which raises Borrowed: so it does not matter by which name it is
    called. A function of torch that is not written in Python is recognised, whichever of torch's
    modules or methods it is called through, in threads too. It still works: an answer could
    swallow what is raised.
    closely: also where nothing shows the call, by what torch computes then. That takes longer.
    """
    called = []
    if not names:
        yield called
        return
    functions, built_in = _sorted_out(names)
    with contextlib.ExitStack() as within:
        within.enter_context(_taken_away(functions, called))
        if built_in:
            within.enter_context(_watched(built_in, called, closely))
        yield called


def take_away(names):
    """Take away for good what of the dotted `names` is written in Python, but for `given_back`."""
    _take(_sorted_out(names)[0], [])


@contextlib.contextmanager
def given_back():
    """Let what runs inside have everything that was taken away."""
    codes = {function: function.__code__ for was, _ in _away for function in was}
    for was, _ in reversed(_away):
        _put_back(was)
    try:
        yield
    finally:
        _put_back(codes)


@contextlib.contextmanager
def permitted():
    """Let what runs inside call anything, also where it is forbidden."""
    with given_back(), torch._C.DisableTorchFunction():
        yield


def named(name):
    """What a dotted name stands for; None if it belongs to what cannot be imported here.

    Raises: ValueError quoting the name if there is nothing of this name, or nothing to call.
    """
    parts, found = name.split("."), None
    for count in range(1, len(parts) + 1):
        module = ".".join(parts[:count])
        try:
            found = importlib.import_module(module)
        except ModuleNotFoundError as error:
            if count == 1 or error.name != module:
                return None
            found = _attribute(found, parts[count - 1 :])
            break
    if not callable(found) and not _functions_of(found, name):
        raise ValueError(f"There is no function, class or module {name!r} that could be forbidden.")
    return found


def _attribute(found, names):
    return functools.reduce(lambda part, name: getattr(part, name, None), names, found)


def _imported(name):
    """What a dotted name stands for, None if it is not imported, so that nobody can have it."""
    module, parts = name, []
    while module and module not in sys.modules:
        module, _, last = module.rpartition(".")
        parts.insert(0, last)
    return _attribute(sys.modules[module], parts) if module else None


def _sorted_out(names):
    """({function written in Python: its name}, {plain name of a function of torch: its name})."""
    functions, built_in = {}, {}
    for name in names:
        whole = _imported(name)
        found = _functions_of(whole, name)
        functions |= found
        if not found and name.startswith("torch."):  # a mode has torch take other ways
            built_in[_plain_name(whole)] = name  # linalg_norm for torch.linalg.norm
            built_in.setdefault(name.rpartition(".")[2].strip("_"), name)
    return functions, built_in


def _functions_of(found, name):
    if isinstance(found, types.FunctionType):
        return {found: name}
    if isinstance(found, type):
        return {part: name for part in vars(found).values() if isinstance(part, types.FunctionType)}
    functions = {}
    if isinstance(found, types.ModuleType):
        for own, part in vars(found).items():
            if getattr(part, "__module__", None) == found.__name__:
                functions |= _functions_of(part, f"{name}.{own}")
    return functions


STAND_IN = """
def around({free}):
    def stand_in(*args, **kwargs):
        from mha_classroom.checks.forbidden import borrow
        borrow()
        return {free}
"""


@functools.cache
def _code_of_stand_in(free):
    """Code for a function that has these free variables, since it has to have as many."""
    space = {}
    exec(STAND_IN.format(free=", ".join(free)), space)
    return next(c for c in space["around"].__code__.co_consts if isinstance(c, types.CodeType))


def borrow():
    """Note and refuse the call of a stand-in, whose code has the name of what it stands for."""
    name = sys._getframe(1).f_code.co_name
    for _, called in _away:
        called.append(name)
    raise Borrowed(name)


@contextlib.contextmanager
def _taken_away(functions, called):
    was = _take(functions, called)
    try:
        yield
    finally:
        _put_back(was)
        _away.pop()


def _take(functions, called):
    was = {function: function.__code__ for function in functions}
    _away.append((was, called))
    for function, name in functions.items():
        code = _code_of_stand_in(function.__code__.co_freevars)
        function.__code__ = code.replace(co_name=name)
    return was


def _put_back(codes):
    for function, code in codes.items():
        function.__code__ = code


@contextlib.contextmanager
def _watched(names, called, closely):
    modes = [_Watching(names, called), *([_Below(names, called)] if closely else [])]

    def enter(*event):
        """Is the profile of each thread that is started, and begins the watch there."""
        sys.setprofile(None)
        for mode in modes:
            mode.__enter__()

    before = threading.getprofile()
    threading.setprofile(enter)
    try:
        with contextlib.ExitStack() as within:
            for mode in modes:
                within.enter_context(mode)
            yield
    finally:
        threading.setprofile(before)


def _plain_name(function):
    """softmax for torch.softmax, torch._softmax, torch.ops.aten.softmax.int and their like."""
    return getattr(function, "__name__", "").split(".")[0].strip("_")


def _note(function, names, called):
    if _plain_name(function) in names:
        called.append(names[_plain_name(function)])


class _Watching(TorchFunctionMode):
    """Sees each call of a function of torch."""

    def __init__(self, names, called):
        super().__init__()
        self.names, self.called = names, called

    def __torch_function__(self, func, types, args=(), kwargs=None):
        _note(func, self.names, self.called)
        return func(*args, **(kwargs or {}))


class _Below(TorchDispatchMode):
    """Sees whatever torch computes, also where nothing shows the call."""

    def __init__(self, names, called):
        super().__init__()
        self.names, self.called = names, called

    @classmethod
    def _should_skip_dynamo(cls):
        """torch asks this of a mode, and would import its compiler only to keep it away."""
        return False

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        _note(func, self.names, self.called)
        return func(*args, **(kwargs or {}))
