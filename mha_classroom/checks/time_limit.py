"""Stop an answer that does not end."""

import ctypes
import signal
import threading
import time
from contextlib import contextmanager

__all__ = ["SOON", "OutOfTime", "own_time", "time_limit", "waited"]

SOON = 0.01  # seconds; so little is not waited for once more


class OutOfTime(BaseException):
    """Raised inside an answer when its time is over; not an Exception, so that a learner's
    `except Exception` does not swallow it."""


@contextmanager
def time_limit(seconds):
    """Raise OutOfTime in the code below `with` once the seconds are over.

    Properties: in the main thread of Linux and macOS a signal also ends a long sleep. Elsewhere
        (Windows, other threads) the exception arrives between two steps of Python code, so a
        single library call that never returns cannot be ended. On Linux the main thread's waiting
        for a processor that others use does not count.
    """
    if hasattr(signal, "setitimer") and threading.current_thread() is threading.main_thread():
        yield from _by_signal(seconds)
    else:
        yield from _by_thread(seconds)


def waited(process="self"):
    """Seconds that the main thread of a process was ready to run and others ran; 0 if not known.

    A sleep is no such waiting. Source: Linux, Documentation/scheduler/sched-stats.rst.
    """
    try:
        with open(f"/proc/{process}/schedstat") as file:
            return int(file.read().split()[1]) / 1e9
    except (OSError, IndexError):
        return 0.0


def own_time():
    """Seconds on a clock that stands still while the main thread waits for a processor."""
    return time.monotonic() - waited()


def _by_signal(seconds):
    started = own_time()

    def stop(signum, frame):
        left = seconds - (own_time() - started)
        if left > SOON:
            signal.setitimer(signal.ITIMER_REAL, left, 0.5)
        else:
            raise OutOfTime()

    before = signal.signal(signal.SIGALRM, stop)
    # The interval repeats it, should the first one be swallowed by a bare `except:`.
    signal.setitimer(signal.ITIMER_REAL, seconds, 0.5)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def _by_thread(seconds):
    target, over = ctypes.c_ulong(threading.get_ident()), threading.Event()

    def stop():
        while not over.wait(seconds):
            ctypes.pythonapi.PyThreadState_SetAsyncExc(target, ctypes.py_object(OutOfTime))

    watcher = threading.Thread(target=stop, daemon=True)
    watcher.start()
    try:
        yield
    finally:
        over.set()
        watcher.join()
