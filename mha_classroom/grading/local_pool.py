"""Processes that grade, several submissions at a time."""

import contextlib
import multiprocessing
import signal
import time
from collections import deque
from dataclasses import dataclass
from multiprocessing.connection import wait

import torch

from mha_classroom.grading.judge.grade_submission import failed_result, grade_submission
from mha_classroom.grading.judge.self_check import check_course
from mha_classroom.grading.kernels import jail
from mha_classroom.grading.results import Graded

__all__ = ["LATE", "TRIES", "could_not", "grade_whatever_happens", "local_pool"]

TRIES = 3  # for a submission whose worker dies, or that the machine cannot grade
LOOK_EVERY = 1.0  # seconds between two looks at whether the zygote and the workers are there
LATE = "it was not graded within {:g} s, and its process was ended"
DIED = "the process that graded it ended again and again"

_shared = {}  # what a worker has from the process that it was forked from


@contextlib.contextmanager
def local_pool(settings, loaded, kernels, workers):
    """Give a function that grades submissions in processes of this machine.

    loaded: {name: Assignment}. kernels: the Zygote that kernels are forked from. The function takes
    an iterable of HandedIn with their content and yields a Graded for each as they come; it reads
    one when a process is free for it.
    Properties: a submission holds a process for no longer than `settings.limits.deadline`, all its
        tries together; then the process is ended, and that is a fault.
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


@dataclass
class _Job:
    """A submission; how often and for how many seconds it has been tried."""

    handed_in: object
    tries: int = 0
    seconds: float = 0.0

    @property
    def left(self):
        """Seconds until its deadline."""
        return _shared["settings"].limits.deadline - self.seconds

    def again(self):
        """Whether it may be tried once more: what takes half of the time is for another run."""
        self.tries += 1
        return self.tries < TRIES and self.left > self.seconds

    def could_not(self, problem):
        """The Graded that says so."""
        return could_not(self.handed_in, _shared["loaded"], problem)


class _Worker:
    """A process that grades one submission after the other. Raises: OSError if none can be had."""

    def __init__(self):
        context = multiprocessing.get_context("fork")
        self.pipe, theirs = context.Pipe()
        self.process = context.Process(target=_serve, args=(theirs,), daemon=True)
        with theirs:
            self.process.start()
        self.job = self.started = None

    def give(self, job):
        """Have it grade a submission."""
        self.job, self.started = job, time.monotonic()
        with contextlib.suppress(OSError):  # it has ended, which is seen when its result is asked
            self.pipe.send((job.handed_in, job.left))

    def result(self):
        """The Graded, or the problem if there will be none; None while it is still grading."""
        try:
            if self.pipe.poll():
                return self.pipe.recv()
        except (EOFError, OSError):
            return DIED
        if time.monotonic() - self.started > self.job.left:
            return LATE.format(_shared["settings"].limits.deadline)

    def end(self):
        """End it, also if it is stopped; what it has started ends with it."""
        self.process.kill()
        self.process.join()
        self.pipe.close()


def _grade(all_handed_in, workers):
    coming, again, team = map(_Job, all_handed_in), deque(), []
    try:
        while True:
            problem = _fill(team, workers)
            for worker in team:
                if not worker.job:
                    job = _next(coming, again, team)
                    if job:
                        worker.give(job)
            if not team:  # and no process can be started, perhaps soon again
                job = _next(coming, again, team)
                if not job:
                    return
                if job.again():
                    again.append(job)
                else:
                    yield job.could_not(problem)
            busy = [worker for worker in team if worker.job]
            if not busy and team:
                return
            _shared["kernels"].revive()
            wait([worker.pipe for worker in busy], LOOK_EVERY)
            for worker in busy:
                result = worker.result()
                if result is None:
                    continue
                job, worker.job = worker.job, None
                job.seconds += time.monotonic() - worker.started
                if isinstance(result, str):
                    worker.end()
                    team.remove(worker)
                    result = job.could_not(result)
                if result.fault and job.again():
                    again.append(job)
                else:
                    yield result
    finally:
        for worker in team:
            worker.end()


def _next(coming, again, team):
    """The job that is next: what has failed before comes last, with nothing else beside it, since
    that may have been in its way."""
    job = next(coming, None)
    if job or any(worker.job for worker in team):
        return job
    return again.popleft() if again else None


def _fill(team, workers):
    """Start the processes that are missing; returns why not, "" if all are there."""
    try:
        while len(team) < workers:
            team.append(_Worker())
    except OSError as error:
        return f"no process could be started: {error}"
    return ""


def _serve(pipe):
    """Grade what comes through the pipe, until this process is ended."""
    jail.die_with_parent()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    while True:
        handed_in, seconds = pipe.recv()
        pipe.send(grade_whatever_happens(handed_in, **_shared, seconds=seconds))


def grade_whatever_happens(handed_in, loaded, settings, kernels, seconds=None):
    """The Graded of a submission also if grading it fails: one may not stop the rest.

    seconds: until its deadline, that of the settings unless told.
    """
    try:
        return grade_submission(handed_in, loaded[handed_in.lesson], settings, kernels, seconds)
    except Exception as error:
        problem = f"the grader failed: {type(error).__name__}: {error}"
        return could_not(handed_in, loaded, problem)


def could_not(handed_in, loaded, problem):
    """The Graded of a submission that could not be graded."""
    failed = failed_result(handed_in, loaded[handed_in.lesson], problem)
    return Graded(failed, 0.0, 0, fault=problem)
