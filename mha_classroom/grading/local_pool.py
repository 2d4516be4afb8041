"""Processes that grade, several submissions at a time."""

import contextlib
import multiprocessing
import signal
from collections import deque
from concurrent.futures import FIRST_COMPLETED, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool

import torch

from mha_classroom.grading.judge.grade_submission import failed_result, grade_submission
from mha_classroom.grading.judge.self_check import check_course
from mha_classroom.grading.kernels import jail
from mha_classroom.grading.results import Graded

__all__ = ["TRIES", "could_not", "grade_whatever_happens", "local_pool"]

AHEAD = 2  # submissions that wait for each worker
TRIES = 3  # for a submission whose worker dies, or that the machine cannot grade
LOOK_EVERY = 1.0  # seconds between two looks at whether the zygote is there

_shared = {}  # what a worker has from the process that it was forked from


@contextlib.contextmanager
def local_pool(settings, loaded, kernels, workers):
    """Give a function that grades submissions in processes of this machine.

    loaded: {name: Assignment}. kernels: the Zygote that kernels are forked from. The function takes
    an iterable of HandedIn with their content and yields a Graded for each as they come; it reads
    only a few of them ahead.
    Raises: SelfCheckFailed if the grading itself does not work.
    """
    torch.set_num_threads(1)  # and what is forked has no threads to miss
    for assignment in loaded.values():
        check_course(assignment, settings, kernels)
    _shared.update(settings=settings, loaded=loaded, kernels=kernels)
    try:
        yield lambda all_handed_in: _grade(all_handed_in, workers)
    finally:
        _shared.clear()


def _grade(all_handed_in, workers):
    coming, again, waiting = iter(all_handed_in), deque(), {}
    executor = _start(workers)
    try:
        while True:
            broken = not _submit(executor, coming, again, waiting, workers * (1 + AHEAD))
            if not waiting and not broken:
                return
            _shared["kernels"].revive()
            done, _ = wait(waiting, timeout=LOOK_EVERY, return_when=FIRST_COMPLETED)
            for future in done:
                handed_in, tries = waiting.pop(future)
                try:
                    graded = future.result()
                    if graded.fault and tries + 1 < TRIES:
                        again.append((handed_in, tries + 1))
                    else:
                        yield graded
                except BrokenProcessPool:
                    broken = True
                    if tries + 1 < TRIES:
                        again.append((handed_in, tries + 1))
                    else:
                        problem = "the process that graded it ended again and again"
                        yield could_not(handed_in, _shared["loaded"], problem)
            if broken:  # then all that was waiting is broken
                again.extend(waiting.values())
                waiting.clear()
                executor.shutdown(wait=True)
                executor = _start(workers)
    finally:
        executor.shutdown(wait=True, cancel_futures=True)


def _submit(executor, coming, again, waiting, most):
    """Have the next submissions graded; returns whether the processes are still there.

    What was there when a process ended is graded alone, so that one submission which ends its
    process every time does not use up the tries of others.
    """
    while len(waiting) < (1 if again else most):
        alone = bool(again)
        handed_in, tries = again.popleft() if alone else (next(coming, None), 0)
        if handed_in is None:
            return True
        try:
            waiting[executor.submit(_work, handed_in)] = handed_in, tries
        except BrokenProcessPool:
            again.append((handed_in, tries))
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


def _work(handed_in):
    return grade_whatever_happens(handed_in, **_shared)


def grade_whatever_happens(handed_in, loaded, settings, kernels):
    """The Graded of a submission also if grading it fails: one may not stop the rest."""
    try:
        return grade_submission(handed_in, loaded[handed_in.lesson], settings, kernels)
    except Exception as error:
        problem = f"the grader failed: {type(error).__name__}: {error}"
        return could_not(handed_in, loaded, problem)


def could_not(handed_in, loaded, problem):
    """The Graded of a submission that could not be graded."""
    failed = failed_result(handed_in, loaded[handed_in.lesson], problem)
    return Graded(failed, 0.0, 0, fault=problem)
