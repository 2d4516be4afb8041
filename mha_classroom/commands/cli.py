"""The command `mha-course`. Nothing heavy is imported before the command that needs it runs."""

from __future__ import annotations

import argparse
import sys

from mha_classroom.clone import CourseError, find_root
from mha_course import embedded

__all__ = ["main"]


def main(argv=None):
    """Run one command and return its exit code; 2 with a plain sentence is a mistake of usage."""
    args, rest = _parser().parse_known_args(argv)
    if args.command is None and not rest:
        _parser().print_help()
        return 0
    if rest and args.command not in (_lab, _explore):
        _parser().error(f"unrecognized arguments: {' '.join(rest)}")
    args.rest = rest
    try:
        return args.command(args) or 0
    except (CourseError, embedded.ModelError) as error:
        message = str(error)
    except ModuleNotFoundError as error:
        if (error.name or "mha_").startswith("mha_"):
            raise
        doctor = embedded.command("doctor")
        message = f"The package {error.name} is missing. `{doctor}` says how to fix it."
    except KeyboardInterrupt:
        return 130
    print(message, file=sys.stderr)
    return 2


def _parser():
    parser = argparse.ArgumentParser(
        prog="mha-course",
        description="The course at your fingertips. To learn, begin with `mha-course lab`.",
    )
    parser.set_defaults(command=None)
    # The first five are for those who learn; after them come instructors' and authors'.
    commands = parser.add_subparsers(metavar="COMMAND")

    def add(name, command, text):
        sub = commands.add_parser(name, help=text, description=text, allow_abbrev=False)
        sub.set_defaults(command=command)
        return sub

    add("lab", _lab, "open JupyterLab on your copies in work/; more arguments go to jupyter lab")
    reset = add("reset", _reset, "put a fresh copy of a lesson and its exercise beside yours")
    reset.add_argument("nb", metavar="NN", help="a lesson, as 04")
    add("doctor", _doctor, "say what is installed, what is missing and how to fix it")
    explore = add(
        "explore", _explore, "serve the page that shows what heads attend to; see also the lessons"
    )
    explore.add_argument("--port", type=int, help="8501 by default; more goes to streamlit run")
    add("setup-model", _setup_model, "install the model that lessons 06, 07 and 12 use (91 MB)")
    _add_grade(add("grade", _grade, "for instructors: grade a class (Linux)"))
    release = add(
        "release",
        _release,
        "make exercises/ and the links between notebooks, or, for instructors, what students get "
        "of your own tasks",
    )
    release.add_argument("folder", metavar="DIR", nargs="?", help="your own NAME.ipynb and NAME.py")
    release.add_argument("--out", metavar="DIR", help="where what students get is written")
    add("checks", _checks, "for authors: say what the checks name, reject and accept")
    add("site", _site, "for authors: make the site of the lessons, to be read without running them")
    run = add("run", _run, "for authors: execute lessons and their solutions in place")
    run.add_argument("nb", metavar="NB", nargs="+", help="a lesson, as 04, or a notebook file")
    for name, command, text in (
        ("edit", _edit, "for authors: write a lesson and its solution as text into .edit/"),
        ("save", _save, "for authors: write the edited text back into the notebooks and run them"),
    ):
        sub = add(name, command, text)
        sub.add_argument("nb", metavar="NB", help="a lesson, as 04")
        sub.add_argument("--force", action="store_true", help="even if changes are lost")
    return parser


def _add_grade(grade):
    from mha_classroom.grading.settings import DEADLINE, MEGABYTES, SECONDS

    option = grade.add_argument
    option("submissions", metavar="SUBMISSIONS", help="holds STUDENT/LESSON.ipynb for everyone")
    option("--out", metavar="DIR", required=True, help="where marks and feedback are written")
    option("--workers", metavar="N", type=int, help="submissions at a time (the cores)")
    option(
        "--timeout",
        metavar="S",
        type=float,
        default=SECONDS,
        help=f"seconds for a task ({SECONDS:g})",
    )
    option(
        "--deadline",
        metavar="S",
        type=float,
        default=DEADLINE,
        help=f"seconds for a submission in all ({DEADLINE:g})",
    )
    option(
        "--memory", metavar="MB", type=int, default=MEGABYTES, help=f"for a notebook ({MEGABYTES})"
    )
    option("--assignment", metavar="DIR", help="your own NAME.ipynb and NAME.py")
    option("--seed", metavar="N", type=int, help="draw the inputs of an earlier run again")
    option("--lesson", metavar="NN", action="append", help="grade this one alone, as 04 or NAME")
    option("--students", metavar="FILE", help="CSV of the class, for moodle.csv and canvas.csv")
    option("--due", metavar="TIME", help="mark what comes later, as '2026-11-22 23:59'")
    option("--penalty", metavar="P", type=float, default=0, help="percent off for a day late (0)")
    option("--resume", action="store_true", help="keep what is graded already in --out")
    option("--overwrite", action="store_true", help="forget what is graded already in --out")
    option("--dask", metavar="ADDRESS", help="have a Dask cluster do it")
    option("--no-sandbox", action="store_true", help="run students' code as yourself")


def _lab(args):
    from mha_classroom.commands import copies, lab

    root = find_root()
    address = lab.running(root)
    if address:
        print(f"JupyterLab is running on {root / 'work'} already. Open it in your browser:")
        print(f"\n    {address}\n\nTo stop it, press Ctrl-C twice in the terminal where it runs.")
        return 0
    lines, page = copies.prepare(root)
    for line in lines:
        print(line, flush=True)
    return lab.serve(root, args.rest, page)


def _reset(args):
    from mha_classroom.commands import copies

    print("\n".join(copies.reset(find_root(), args.nb)))


def _explore(args):
    from mha_classroom.commands import explore as server

    return server.serve(args.rest, args.port)


def _doctor(args):
    from mha_classroom.commands import doctor

    return doctor.main()


def _setup_model(args):
    from mha_classroom.commands import setup_model

    setup_model.setup()


def _checks(args):
    from mha_classroom.commands import kill_matrix as matrix

    return matrix.main(find_root())


def _site(args):
    from mha_classroom.commands import site

    print(f"Open {site.build(find_root())}")


def _release(args):
    if bool(args.folder) != bool(args.out):
        raise CourseError("A folder of your own needs --out DIR, and --out a folder of your own.")
    if args.folder:
        from mha_classroom.grading.fit.assignment import release_own

        print("\n".join(map(str, release_own(args.folder, args.out))))
        return
    from mha_classroom import exercises as release

    try:
        changed = release.main(find_root())
    except ValueError as error:
        raise CourseError(f"No exercise was written. {error}") from error
    print("\n".join(map(str, changed)) or "All notebooks are up to date.")


def _grade(args):
    if sys.platform != "linux":
        raise CourseError("Grading needs Linux: on Windows WSL, on macOS a virtual machine.")
    from mha_classroom.commands import grade as command

    return command.main(args)


def _run(args):
    from mha_classroom.commands import run_notebooks as execute

    return execute.run(args.nb)


def _edit(args):
    from mha_classroom.commands import edit

    return edit.edit(find_root(), args.nb, args.force)


def _save(args):
    from mha_classroom.commands import edit

    return edit.save(find_root(), args.nb, args.force)


if __name__ == "__main__":
    sys.exit(main())
