"""Grade on a Dask cluster: submissions are graded on many machines as they are on one."""

import contextlib
import pickle
from collections import deque

from mha_classroom.clone import CourseError, install_command
from mha_classroom.grading.dask_worker import Late, Refused, files_of, grade_here
from mha_classroom.grading.judge.self_check import check_course
from mha_classroom.grading.local_pool import LATE, TRIES, could_not

__all__ = ["cluster_pool"]

AHEAD = 3  # submissions that are on their way for each thread of the cluster
PATIENCE = 20  # seconds until a scheduler and a worker have to be there
AGAIN = "The same command with --resume goes on from here."


@contextlib.contextmanager
def cluster_pool(settings, loaded, kernels, address):
    """Give a function that grades submissions on the cluster with this scheduler.

    kernels: the Zygote on which the grading is tried out here.
    Properties: the assignment is sent along; the course has to be installed on the workers, in the
        same version. A submission whose worker dies is graded by another.
    Raises: CourseError if there is no such cluster, or no worker in it; SelfCheckFailed as
        `local_pool` does. While grading: CourseError if a worker cannot grade what this
        machine can, or the scheduler is gone.
    """
    with _connected(address) as client:
        for assignment in loaded.values():
            check_course(assignment, settings, kernels)
        keys = {name: assignment.key for name, assignment in loaded.items()}
        work = (settings, files_of(settings.folder), keys)
        yield lambda all_handed_in: _grade(client, all_handed_in, work, loaded)


def _connected(address):
    try:
        from distributed import Client
    except ModuleNotFoundError:
        command = install_command("cluster")
        raise CourseError(f"--dask needs Dask. This installs it:\n{command}") from None
    try:
        client = Client(address, timeout=PATIENCE)
    except (OSError, ValueError, TypeError) as error:
        raise CourseError(f"There is no Dask scheduler at {address!r}: {error}") from error
    try:
        client.wait_for_workers(1, timeout=PATIENCE)
    except TimeoutError:
        client.close()
        raise CourseError(f"The Dask scheduler at {address!r} has no workers.") from None
    return client


def _grade(client, all_handed_in, work, loaded):
    from distributed import as_completed

    coming, again, waiting = iter(all_handed_in), deque(), {}
    running = as_completed()

    def send():
        most = AHEAD * max(1, sum(client.nthreads().values()))
        while len(waiting) < most:
            handed_in, tries = again.popleft() if again else (next(coming, None), 0)
            if handed_in is None:
                return
            # What all of them need goes with each: what is stored once is gone with its workers.
            future = client.submit(grade_here, pickle.dumps(handed_in), work, pure=False)
            waiting[future] = handed_in, tries + 1
            running.add(future)

    send()
    while waiting:
        future = next(running)
        handed_in, tries = waiting.pop(future)
        if future.status == "finished":
            graded = pickle.loads(future.result())
            if graded.fault and tries < TRIES:
                again.append((handed_in, tries))
            else:
                yield graded
        else:
            _check_worker(future)
            error = future.exception()
            if isinstance(error, Late):
                yield could_not(handed_in, loaded, LATE.format(work[0].limits.deadline))
            elif tries < TRIES:
                again.append((handed_in, tries))
            else:
                yield could_not(handed_in, loaded, f"the cluster could not grade it: {error}")
        send()


def _check_worker(future):
    """Raise CourseError if grading a submission failed for what would fail for all of them."""
    if future.cancelled():
        raise CourseError(f"The Dask scheduler is gone. {AGAIN}")
    error = future.exception()
    if isinstance(error, ImportError):
        problem = f"lacks what grading needs: {error}"
    elif isinstance(error, Refused):
        problem = str(error)
    else:
        return
    raise CourseError(f"A worker of the cluster {problem}. Fix that worker or end it. {AGAIN}")
