"""Grade a class: find what was handed in, have it graded, write the reports."""

import contextlib
import fcntl
import hashlib
import json
import secrets
import time
from dataclasses import replace
from pathlib import Path

from mha_classroom.clone import CourseError
from mha_classroom.grading.fit.assignment import assignments, load_assignment
from mha_classroom.grading.handed_in.find_submissions import find_submissions
from mha_classroom.grading.register import Asked, Register
from mha_classroom.grading.report.class_page import class_page
from mha_classroom.grading.report.due import PENALTY, Settling
from mha_classroom.grading.report.feedback_page import heading
from mha_classroom.grading.report.overrides import read_overrides
from mha_classroom.grading.report.platform_files import ClassList, write_platform_files
from mha_classroom.grading.report.summary import Progress, summary
from mha_classroom.grading.report.tally import tally_of
from mha_classroom.grading.report.write_reports import (
    clear_drafts,
    versions,
    write_json,
    write_reports,
    write_run,
    write_text,
)
from mha_classroom.grading.results import Result

__all__ = ["grade_class"]

STATE = ".grading"  # in the folder of the reports: what --resume goes on from


def grade_class(
    submissions, out, settings, pool, resume=False, run_settings=(), only=None, asked=None
):
    """Grade every submission in a folder, and write the reports into `out`.

    Returns the summary, and a line for each submission that the grader itself could not grade:
    that is no mark, and a run with `resume` tries it again.

    settings: the Settings. pool: called with settings and {name: Assignment}, gives a context
    manager for what grades submissions, as `local_pool`. resume: take over what an earlier
    run has graded with the same seed, submission, assignment and version, and keep the results of
    others that it has graded. only: the lessons to be graded, by name or number, all unless told.
    asked: what is Asked about the class.
    Raises: CourseError for what cannot be graded at all; ValueError for overrides.csv or
        students.csv that cannot be understood, before anything is graded.
    """
    started, out, asked = time.time(), Path(out), asked or Asked()
    found, aside = find_submissions(submissions, assignments(settings.folder))
    if only:
        chosen = _chosen(only, assignments(settings.folder))
        found = [handed_in for handed_in in found if handed_in.lesson in chosen]
    if not found:
        raise CourseError("\n  ".join([f"There is nothing to grade in {submissions}.", *aside]))
    with _state(out) as state:
        clear_drafts(out)  # of a run that was killed
        earlier = _pairs(state) if resume else set()
        register = Register(state, asked, resume)
        found = register.told_apart(found)
        pairs = sorted(earlier | {(handed_in.student, handed_in.lesson) for handed_in in found})
        register.enter(found)
        settings = replace(settings, seed=_seed(state, settings.seed, resume))
        names = sorted({lesson for _, lesson in pairs})
        loaded = {name: load_assignment(name, settings.folder) for name in names}
        points = {name: assignment.points for name, assignment in loaded.items()}
        decidable = {name: _decidable(tasks, register, name) for name, tasks in points.items()}
        overrides = read_overrides(out / "overrides.csv", decidable, pairs)
        register.save()
        with pool(settings, loaded) as grade:
            times, faults = _grade_all(found, loaded, settings, state, grade, resume)
        overrides = _read_again(overrides, out / "overrides.csv", decidable, pairs)
        settle = Settling(overrides, register.deadlines, register.arrivals)
        results = _Kept(state, pairs)
        titles = {name: heading(assignment.exercise) for name, assignment in loaded.items()}
        write_reports(
            out,
            results,
            points=points,
            titles=titles,
            seed=settings.seed,
            versions=versions({name: assignment.key for name, assignment in loaded.items()}),
            settle=settle,
            seconds=settings.limits.seconds,
        )
        how = {**settings.listed(), **dict(run_settings)}
        write_run(out / "run.json", started, time.time(), times, how)
        told = [
            *_for_the_platform(out, register, map(settle, results), points),
            ("Not used of what humans decided", overrides.problems),
            ("Left aside", aside),
        ]
        tally = tally_of(map(settle, results), results.texts(), told)
        write_text(out / "index.html", class_page(tally, titles, register.deadlines))
    return summary(tally), faults


def _decidable(tasks, register, lesson):
    """{what a line of overrides.csv can be about: the most points}."""
    most = {PENALTY: sum(tasks.values())} if lesson in register.deadlines else {}
    return most | tasks


def _for_the_platform(out, register, results, points):
    """Write the files for learning platforms, if there is a students.csv; what is told of them."""
    if not register.students:
        return []
    listed = ClassList(register.students, *register.match(), points)
    for result in results:
        listed.add(result)
    write_platform_files(out, listed)
    return list(listed.told())


def _chosen(only, names):
    """The names of lessons that are given by name or number, "04"."""
    chosen = set()
    for given in only:
        found = {name for name in names if given in (name, name.split("_")[0])}
        if not found:
            listed = ", ".join(sorted(names))
            raise CourseError(f"There is no lesson {given!r} to be graded; there are {listed}.")
        chosen |= found
    return chosen


def _pairs(state):
    """The student and lesson of each result that an earlier run has kept."""
    kept = [_read(path).get("result") for path in (state / "results").glob("*.json")]
    return {(result["student"], result["lesson"]) for result in kept if result}


def _read_again(overrides, path, points, pairs):
    """The decisions as they stand now; as they were, if the file has been broken meanwhile."""
    try:
        return read_overrides(path, points, pairs)
    except ValueError as error:
        return replace(overrides, problems=(*overrides.problems, f"read before: {error}"))


def _grade_all(found, loaded, settings, state, grade, resume):
    """Grade what is not graded yet; returns the times of each submission, and what went wrong."""
    keys, times, faults = {}, [], []

    def to_be_graded():
        for handed_in in (one.read() for one in found):
            student, lesson = handed_in.student, handed_in.lesson
            key = _key(handed_in, loaded[lesson], settings)
            kept = _read(_path(state, student, lesson)) if resume else {}
            if kept.get("key") == key:
                progress.step()
                times.append(kept["times"])
            else:
                keys[student, lesson] = key
                yield handed_in

    with Progress(len(found)) as progress:
        for graded in grade(to_be_graded()):
            student, lesson = graded.result.student, graded.result.lesson
            spent = {"seconds": graded.seconds, "kernels": graded.kernels}
            spent |= {"student": student, "lesson": lesson}
            key, result = keys.pop((student, lesson)), graded.result.as_json()
            if graded.fault:
                key = None  # so that it is tried again
                faults.append(f"{student}, {lesson}: {graded.fault}")
            kept = {"key": key, "result": result, "times": spent, "text": graded.text}
            write_json(_path(state, student, lesson), kept)
            times.append(spent)
            progress.step(graded.result)
    return times, faults


def _key(handed_in, assignment, settings):
    """A sum of what the result of a submission depends on: as long as it stays, so does that."""
    made = json.dumps([versions({}), settings.listed()], sort_keys=True)
    told = json.dumps([handed_in.file, handed_in.problem, handed_in.note, handed_in.human])
    return _digest((made, assignment.key, told, handed_in.content or b""))


def _digest(parts):
    whole = hashlib.sha256()
    for part in parts:
        whole.update(hashlib.sha256(part if isinstance(part, bytes) else part.encode()).digest())
    return whole.hexdigest()


@contextlib.contextmanager
def _state(out):
    """The folder in which results are kept, for one run at a time."""
    state = out / STATE
    (state / "results").mkdir(parents=True, exist_ok=True)
    with open(state / "lock", "w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise CourseError(f"Another run is writing into {out}.") from None
        yield state


def _seed(state, asked, resume):
    """The seed to use: as asked for, of the run that goes on, or a new one."""
    kept = _read(state / "seed.json").get("seed")
    if asked is None and resume and isinstance(kept, int):
        return kept
    seed = secrets.randbits(31) if asked is None else asked
    write_json(state / "seed.json", {"seed": seed})
    return seed


def _path(state, student, lesson):
    name = _digest([student.encode("utf-8", "surrogatepass"), lesson])
    return state / "results" / f"{name}.json"


def _read(path):
    """A JSON file that this module has written, {} if it is not there or not whole."""
    try:
        return json.loads(path.read_text("utf-8"))
    except (OSError, ValueError):
        return {}


class _Kept:
    """The results on disk, read one at a time. texts: see `own_text`."""

    def __init__(self, state, pairs):
        self.state, self.pairs = state, pairs

    def __iter__(self):
        for student, lesson in self.pairs:
            yield Result.from_json(_read(_path(self.state, student, lesson))["result"])

    def texts(self):
        """{(student, lesson): what `own_text` says}."""
        kept = ((pair, _read(_path(self.state, *pair)).get("text")) for pair in self.pairs)
        return {pair: tuple(text) for pair, text in kept if text}
