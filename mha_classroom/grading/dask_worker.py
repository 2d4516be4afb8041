"""A process that grades one submission after the other for another process, over pipes.

Both are the course's own, so they talk in pickles: first the settings, then submissions, for each
of which a Graded comes back. Only the process itself imports what grading takes. A worker of a
cluster does not: it passes on what it does not unpickle.
"""

import contextlib
import os
import pickle
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

__all__ = ["Late", "Refused", "Remote", "files_of", "grade_here"]

_here = threading.local()  # the process of each thread


class Refused(RuntimeError):
    """Raised where this machine cannot grade as the one that asks; says why."""


class Late(RuntimeError):
    """Raised where a submission was not graded within its deadline; its process is ended."""


def files_of(folder):
    """{name: content} of an instructor's assignment, for a machine that does not have it."""
    if folder is None:
        return None
    paths = [*Path(folder).glob("*.ipynb"), *Path(folder).glob("*.py")]
    return {path.name: path.read_bytes() for path in paths}


class Remote:
    """Starts such a process, and ends it when it is garbage or this process ends.

    Raises: Refused if the course is another there, or kernels cannot be isolated.
    """

    def __init__(self, settings, files, keys):
        self.made_for = (settings, keys)
        self.process = subprocess.Popen(
            [sys.executable, "-m", "mha_classroom.grading.dask_worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        try:
            self._ask((settings, files, keys))
        except RuntimeError:
            self.close()
            raise

    def grade(self, handed_in):
        """A pickled Graded for a pickled HandedIn.

        Raises: Late; RuntimeError if the process ended otherwise.
        """
        late = threading.Event()

        def end():
            late.set()
            self.process.kill()

        timer = threading.Timer(self.made_for[0].limits.deadline, end)
        timer.start()
        try:
            return self._ask(handed_in)
        except RuntimeError as error:
            if late.is_set():
                raise Late("over its deadline") from error
            raise
        finally:
            timer.cancel()

    def _ask(self, what):
        try:
            pickle.dump(what, self.process.stdin)
            self.process.stdin.flush()
            answer = pickle.load(self.process.stdout)
        except (OSError, EOFError) as error:
            raise RuntimeError("the process that grades has ended") from error
        if isinstance(answer, str):
            raise Refused(answer)
        return answer

    def close(self):
        """End it."""
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.close()
        self.process.stdout.close()
        self.process.wait()


def grade_here(handed_in, work):
    """Grade a submission in this thread's own process, which stays for the next one.

    handed_in: a pickled HandedIn; returns a pickled Graded. work: the settings, the files of the
        assignment, and {name of an assignment: its key}.
    Raises: Refused and Late, see Remote; RuntimeError if the process ends otherwise.
    """
    settings, files, keys = work
    remote = getattr(_here, "remote", None)
    if remote and remote.made_for != (settings, keys):
        remote.close()
        remote = None
    _here.remote = None
    remote = remote or Remote(settings, files, keys)
    try:
        graded = remote.grade(handed_in)
    except RuntimeError:
        remote.close()
        raise
    _here.remote = remote
    return graded


def main():
    """Serve until the other end closes the pipe."""
    from mha_classroom.clone import CourseError
    from mha_classroom.grading.kernels import jail
    from mha_classroom.grading.kernels.start_zygote import zygote

    source, target = sys.stdin.buffer, sys.stdout.buffer
    sys.stdout = sys.stderr  # nothing else may go where the results go

    def say(what):
        pickle.dump(what, target)
        target.flush()

    settings, files, keys = pickle.load(source)
    reason = jail.unavailable() if settings.isolated else ""
    if reason:
        return say(f"cannot isolate what students wrote: {reason}")
    with tempfile.TemporaryDirectory() as folder, zygote(settings.isolated) as kernels:
        import torch  # these take seconds, and so do the imports of the zygote

        from mha_classroom.grading.fit.assignment import load_assignment
        from mha_classroom.grading.local_pool import grade_whatever_happens

        torch.set_num_threads(1)
        for name, content in (files or {}).items():
            Path(folder, name).write_bytes(content)
        try:
            loaded = {name: load_assignment(name, files and folder) for name in keys}
        except CourseError as error:
            return say(f"has another version of the course: {error}")
        other = [name for name, key in keys.items() if loaded[name].key != key]
        if other:
            return say(f"has another version of {', '.join(other)}")
        # The other end may be gone at any time, and then there is nobody left to tell.
        with contextlib.suppress(EOFError, BrokenPipeError):
            say(b"")
            while True:
                handed_in = pickle.loads(pickle.load(source))
                kernels.revive()
                say(pickle.dumps(grade_whatever_happens(handed_in, loaded, settings, kernels)))
    os._exit(0)  # or Python fails in writing what is still buffered


if __name__ == "__main__":
    main()
