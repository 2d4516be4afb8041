"""Processes that grade, several submissions at a time."""

import contextlib
import multiprocessing
import signal
from collections import deque
from concurrent.futures import FIRST_COMPLETED, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool

import torch

from mha_classroom.grading.judge.grade_submission import failed_result, grade_unit
from mha_classroom.grading.judge.self_check import check_course
from mha_classroom.grading.kernels import jail

__all__ = ["failed_outcome", "local_pool", "outcome_of"]

AHEAD = 2  # submissions that wait for each worker
TRIES = 3  # for a submission whose worker dies

_shared = {}  # what a worker has from the process that it was forked from


@contextlib.contextmanager
def local_pool(settings, loaded, kernels, workers):
    """Give a function that grades units of work in processes of this machine.

    loaded: {name: Assignment}. kernels: the Zygote that kernels are forked from. The function takes
    an iterable of units, see unit.py, and yields their outcomes as they come; it reads only a few
    units ahead.
    Raises: SelfCheckFailed if the grading itself does not work.
    """
    torch.set_num_threads(1)  # and what is forked has no threads to miss
    for assignment in loaded.values():
        check_course(assignment, settings, kernels)
    _shared.update(settings=settings, loaded=loaded, kernels=kernels)
    try:
        yield lambda units: _grade(units, workers)
    finally:
        _shared.clear()


def _grade(units, workers):
    units, again, waiting = iter(units), deque(), {}
    executor = _start(workers)
    try:
        while True:
            broken = not _submit(executor, units, again, waiting, workers * (1 + AHEAD))
            if not waiting and not broken:
                return
            done, _ = wait(waiting, return_when=FIRST_COMPLETED)
            for future in done:
                unit, tries = waiting.pop(future)
                try:
                    yield future.result()
                except BrokenProcessPool:
                    broken = True
                    if tries + 1 < TRIES:
                        again.append((unit, tries + 1))
                    else:
                        problem = "the process that graded it ended again and again"
                        yield failed_outcome(unit, _shared["loaded"], problem)
            if broken:  # then all that was waiting is broken
                again.extend(waiting.values())
                waiting.clear()
                executor.shutdown(wait=True)
                executor = _start(workers)
    finally:
        executor.shutdown(wait=True, cancel_futures=True)


def _submit(executor, units, again, waiting, most):
    """Have the next units graded; returns whether the processes are still there.

    What was there when a process ended is graded alone, so that one submission which ends its
    process every time does not use up the tries of others.
    """
    while len(waiting) < (1 if again else most):
        alone = bool(again)
        unit, tries = again.popleft() if alone else (next(units, None), 0)
        if unit is None:
            return True
        try:
            waiting[executor.submit(_work, unit)] = unit, tries
        except BrokenProcessPool:
            again.append((unit, tries))
            return False
        if alone:
            return True
    return True


def _start(workers):
    context = multiprocessing.get_context("fork")
    return ProcessPoolExecutor(workers, mp_context=context, initializer=_begin)


def _begin():
    jail.die_with_parent()
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def _work(unit):
    return outcome_of(unit, _shared["loaded"], _shared["settings"], _shared["kernels"])


def outcome_of(unit, loaded, settings, zygote):
    """Grade a unit of work whatever happens: one submission may not stop the rest."""
    try:
        return grade_unit(unit, loaded[unit["lesson"]], settings, zygote)
    except Exception as error:
        return failed_outcome(unit, loaded, f"the grader failed: {type(error).__name__}: {error}")


def failed_outcome(unit, loaded, problem):
    """The outcome of a unit of work that could not be done."""
    result = failed_result(unit, loaded[unit["lesson"]], problem)
    return {"result": result, "seconds": 0.0, "kernels": 0}
