"""The module in which an instructor defines tasks, and whether it is as it should be."""

import importlib.machinery
import importlib.util
import re
import sys
from pathlib import Path

from mha_classroom.checks.registry import ExerciseSet
from mha_classroom.checks.task import Task

__all__ = ["load_own_tasks"]


class _Loader(importlib.machinery.SourceFileLoader):
    """Always from the source: no cached file is read, or left in the instructor's folder."""

    def get_code(self, fullname):
        return self.source_to_code(self.get_data(self.path), self.path)


def load_own_tasks(stem, folder):
    """Return (the ExerciseSet that NAME.py in a folder defines, {the module's name: its file}).

    NAME.py: defines TASKS, VERSION and perhaps LENDS.
    Raises: ValueError in words if there is none or it does not define what it should.
    """
    module, path = _from_file(stem, Path(folder).resolve())
    _check_tasks(module)
    _check_rest(module)
    lends = tuple(getattr(module, "LENDS", ()))
    made = ExerciseSet(stem, tuple(module.TASKS), module.VERSION, lends)
    return made, {module.__name__: path}


def _from_file(stem, folder):
    """Run NAME.py as a module of a name of its own, so that it hides no other."""
    path = folder / f"{stem}.py"
    if not path.is_file():
        raise ValueError(f"there is no {path.name} in {folder}")
    name = "own_" + re.sub(r"\W", "_", stem)
    spec = importlib.util.spec_from_file_location(name, path, loader=_Loader(name, str(path)))
    module = importlib.util.module_from_spec(spec)
    before, sys.modules[name] = sys.modules.get(name), module  # dataclasses look it up
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:
        sys.modules.pop(name)
        if before is not None:
            sys.modules[name] = before
        moved = _where_it_moved(error)
        raise ValueError(f"{path.name} ends in {type(error).__name__}: {error}{moved}") from error
    return module, path


def _where_it_moved(error):
    """A sentence for what was in mha_course once, "" for everything else."""
    name = str(getattr(error, "name", "") or "")
    if isinstance(error, ImportError) and name.startswith(
        ("mha_course.checks", "mha_course.grading")
    ):
        new = name.replace("mha_course", "mha_classroom")
        return f". It is in {new} now: `from mha_classroom.checks import Case, Mistake, Task`"
    return ""


def _check_tasks(module):
    tasks = getattr(module, "TASKS", None)
    if not isinstance(tasks, (list, tuple)) or not tasks:
        raise ValueError("the module of its tasks defines no list TASKS")
    seen = []
    for task in tasks:
        if not isinstance(task, Task):
            raise ValueError(f"TASKS has {type(task).__name__} in it, which is no Task")
        if not isinstance(task.id, str) or not re.fullmatch(r"[^\W_]\w*-[^\W\d]\w*", task.id):
            raise ValueError(
                f"the task id {task.id!r} is not letters or digits, '-' and the name to define"
            )
        if task.id in seen:
            raise ValueError(f"the task id {task.id!r} is used twice")
        later = [name for name in task.uses if name not in seen]
        if later:
            raise ValueError(f"{task.id} uses {later[0]}, which is no earlier task")
        if not all(hasattr(task.run, name) for name in ("__module__", "__qualname__")):
            raise ValueError(f"the run of {task.id} is no function of a module")
        seen.append(task.id)


def _check_rest(module):
    version = getattr(module, "VERSION", None)
    if type(version) is not int or version < 1:
        raise ValueError(f"VERSION is {version!r} and not a whole number from 1 up")
    lends = getattr(module, "LENDS", ())
    if not isinstance(lends, (list, tuple)) or not all(isinstance(n, str) for n in lends):
        raise ValueError(f"LENDS is {lends!r} and not a tuple of dotted names")
    for task in module.TASKS:
        since = getattr(task, "since", 1)
        if type(since) is not int or not 1 <= since <= version:
            raise ValueError(f"{task.id} is since version {since!r}, and VERSION is {version}")
