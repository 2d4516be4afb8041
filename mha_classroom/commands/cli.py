"""The command `mha-course`. Nothing heavy is imported before the command that needs it runs."""

from __future__ import annotations

import argparse
import sys

from mha_classroom.clone import CourseError, find_root
from mha_course.embedded import ModelError

__all__ = ["main"]


def main(argv=None):
    """Run one command and return its exit code; 2 with a plain sentence is a mistake of usage."""
    args, rest = _parser().parse_known_args(argv)
    if rest and args.command not in (_lab, _explore):
        _parser().error(f"unrecognized arguments: {' '.join(rest)}")
    args.rest = rest
    try:
        return args.command(args) or 0
    except (CourseError, ModelError) as error:
        message = str(error)
    except ModuleNotFoundError as error:
        if (error.name or "mha_").startswith("mha_"):
            raise
        message = f"The package {error.name} is missing. `mha-course doctor` says how to fix it."
    except KeyboardInterrupt:
        return 130
    print(message, file=sys.stderr)
    return 2


def _parser():
    parser = argparse.ArgumentParser(prog="mha-course", description="The course at your fingertips")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

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
    add("checks", _checks, "say what the checks name, reject and accept")
    add("site", _site, "make the site of the lessons, to be read without running them")
    add("release", _release, "make exercises/ from solutions/")
    _add_grade(add("grade", _grade, "grade a class (Linux)"))
    run = add("run", _run, "execute lessons and their solutions in place")
    run.add_argument("nb", metavar="NB", nargs="+", help="a lesson, as 04, or a notebook file")
    for name, command, text in (
        ("edit", _edit, "write a lesson and its solution as text into .edit/"),
        ("save", _save, "write the edited text back into the notebooks and run them"),
    ):
        sub = add(name, command, text)
        sub.add_argument("nb", metavar="NB", help="a lesson, as 04")
        sub.add_argument("--force", action="store_true", help="even if changes are lost")
    return parser


def _add_grade(grade):
    from mha_classroom.grading.settings import MEGABYTES, SECONDS

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
        "--memory", metavar="MB", type=int, default=MEGABYTES, help=f"for a notebook ({MEGABYTES})"
    )
    option("--assignment", metavar="DIR", help="your own NAME.ipynb and NAME.py")
    option("--seed", metavar="N", type=int, help="draw the inputs of an earlier run again")
    option("--lesson", metavar="NN", action="append", help="grade this one alone, as 04 or NAME")
    option("--resume", action="store_true", help="keep what is graded already in --out")
    option("--overwrite", action="store_true", help="forget what is graded already in --out")
    option("--dask", metavar="ADDRESS", help="have a Dask cluster do it")
    option("--no-sandbox", action="store_true", help="run students' code as yourself")


def _lab(args):
    from mha_classroom.commands import lab

    root = find_root()
    for line in lab.prepare(root):
        print(line, flush=True)
    return lab.serve(root, args.rest)


def _reset(args):
    from mha_classroom.commands import lab

    print("\n".join(lab.reset(find_root(), args.nb)))


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
    from mha_classroom import exercises as release

    try:
        changed = release.main(find_root())
    except ValueError as error:
        raise CourseError(f"No exercise was written. {error}") from error
    print("\n".join(map(str, changed)) or "exercises/ is up to date")


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
