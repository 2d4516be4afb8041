"""The command `mha-course grade`."""

import functools
import math
import sys
from pathlib import Path

from mha_classroom.clone import CourseError
from mha_classroom.grading.kernels.jail import unavailable
from mha_classroom.grading.kernels.start_zygote import zygote
from mha_classroom.grading.report.safe_text import visible
from mha_classroom.grading.settings import LEAST_MEGABYTES, Limits, Settings, cores

__all__ = ["main"]

NOT_ALL = 3  # the exit code where the grader itself could not grade some of it


def main(args):
    """Grade as the arguments of the command line say; print the summary. Returns the exit code."""
    _check_arguments(args)
    _asked(args)
    reason = "" if args.no_sandbox else unavailable()
    if reason:
        raise CourseError(
            "This machine cannot isolate what students wrote: "
            f"{reason}. Grading needs Linux with user namespaces. --no-sandbox runs their code as "
            "you, with all that you may read, change and delete: only do that in a container or a "
            "virtual machine made for it."
        )
    with zygote(isolated=not args.no_sandbox) as kernels:  # its imports run beside those below
        return _grade(args, kernels)


def _grade(args, kernels):
    from mha_classroom.grading.grade_class import grade_class

    limits = Limits(args.timeout, args.memory << 20, args.deadline)
    folder = args.assignment and Path(args.assignment).resolve()
    settings = Settings(args.seed, limits, not args.no_sandbox, folder)
    workers = args.workers or cores()
    try:
        text, faults = grade_class(
            Path(args.submissions),
            Path(args.out),
            settings,
            _pool(kernels, workers, args.dask),
            args.resume,
            {"workers": workers},
            args.lesson,
            _asked(args),
        )
    except KeyboardInterrupt:
        again = "The same command with --resume goes on from here."
        print(f"\nStopped. {again}", file=sys.stderr)
        return 130
    except ValueError as error:
        raise CourseError(str(error)) from error
    except OSError as error:
        raise CourseError(f"{args.out} cannot be written: {error.strerror or error}.") from error
    print(text, end="")
    print(f"Marks: {args.out}/grades.csv. Pages for the students: {args.out}/feedback.")
    print(f"Your page: {args.out}/index.html.")
    if faults:
        _print_faults(faults)
        return NOT_ALL


def _asked(args):
    """What the options say of the class. Raises: CourseError that quotes what is wrong."""
    from mha_classroom.grading.handed_in.arrival import read_due
    from mha_classroom.grading.register import Asked

    try:
        due = args.due and read_due(args.due)
    except ValueError as error:
        raise CourseError(f"--due: {error}.") from error
    if args.penalty and not due:
        raise CourseError("--penalty needs --due: late is what comes after that.")
    if not 0 <= args.penalty <= 100:
        raise CourseError(f"--penalty is percent a day, from 0 to 100, got {args.penalty:g}.")
    if args.students and not Path(args.students).is_file():
        raise CourseError(f"There is no file {args.students}.")
    return Asked(args.students and Path(args.students), due, args.penalty)


def _print_faults(faults):
    print(
        f"\nNot graded, by no fault of the students ({len(faults)}). The same command with "
        "--resume tries these again:",
        file=sys.stderr,
    )
    for line in faults:
        print(f"  {visible(line)}", file=sys.stderr)


def _check_arguments(args):
    for name in ("workers", "timeout", "deadline"):
        value = getattr(args, name)
        if value is not None and not 0 < value < math.inf:
            raise CourseError(f"--{name} has to be a number above 0, got {value:g}.")
    if args.deadline < args.timeout:
        raise CourseError(
            f"--deadline has to be --timeout, {args.timeout:g} s, or more, got {args.deadline:g}."
        )
    if args.memory < LEAST_MEGABYTES:
        least = f"{LEAST_MEGABYTES} MB or more"
        raise CourseError(f"--memory has to be {least}, got {args.memory}.")
    if args.seed is not None and not 0 <= args.seed < 2**63:
        raise CourseError(f"--seed has to be a whole number from 0 up, got {args.seed}.")
    if not Path(args.submissions).is_dir():
        raise CourseError(f"There is no folder {args.submissions}.")
    if Path(args.out).exists() and not Path(args.out).is_dir():
        raise CourseError(f"{args.out} is a file; --out has to be a folder.")
    if args.resume and args.overwrite:
        raise CourseError("--resume keeps what is in --out, --overwrite forgets it: choose one.")
    if Path(args.out, "results.json").exists() and not (args.resume or args.overwrite):
        raise CourseError(
            f"{args.out} holds the marks of an earlier run. --resume goes on with it, --overwrite "
            "forgets it; or give another --out."
        )
    folder = Path(args.submissions).resolve()
    nbgraders = (folder / "submitted").is_dir()  # then students are looked for below that
    if Path(args.out).resolve().is_relative_to(folder / "submitted" if nbgraders else folder):
        raise CourseError(
            f"--out lies in {args.submissions}, where it would be taken for a student."
        )


def _pool(kernels, workers, address):
    if address:
        from mha_classroom.grading.dask_pool import cluster_pool

        return functools.partial(cluster_pool, kernels=kernels, address=address)
    from mha_classroom.grading.local_pool import local_pool

    return functools.partial(local_pool, kernels=kernels, workers=workers)
