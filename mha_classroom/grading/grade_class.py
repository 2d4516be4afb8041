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
from mha_classroom.grading.handed_in.find_submissions import find_submissions, read_submission
from mha_classroom.grading.report.feedback_page import heading
from mha_classroom.grading.report.overrides import apply_overrides, read_overrides
from mha_classroom.grading.report.summary import Progress, summary
from mha_classroom.grading.report.write_reports import (
    clear_drafts,
    versions,
    write_json,
    write_reports,
    write_run,
)

__all__ = ["grade_class"]

STATE = ".grading"  # in the folder of the reports: what --resume goes on from


def grade_class(submissions, out, settings, pool, resume=False, run_settings=()):
    """Grade every submission in a folder, write the reports into `out`, return the summary.

    settings: the Settings. pool: called with settings and {name: Assignment}, gives a context
    manager for what grades units of work, as pools.local_pool. resume: take over what an earlier
    run has graded with the same seed, submission, assignment and version.
    Raises: CourseError for what cannot be graded at all; ValueError for overrides.csv that cannot
        be understood, before anything is graded.
    """
    started, out = time.time(), Path(out)
    found = find_submissions(submissions, assignments(settings.folder))
    if not found:
        raise CourseError(f"There is nothing to grade in {submissions}.")
    with _state(out) as state:
        clear_drafts(out)  # of a run that was killed
        settings = settings.with_seed(_seed(state, settings.seed, resume))
        names = sorted({submission.lesson for submission in found})
        loaded = {name: load_assignment(name, settings.folder) for name in names}
        points = {name: assignment.points for name, assignment in loaded.items()}
        handed_in = [(submission.student, submission.lesson) for submission in found]
        overrides = read_overrides(out / "overrides.csv", points, handed_in)
        with pool(settings, loaded) as grade:
            times = _grade_all(found, loaded, settings, state, grade, resume)
        overrides = _read_again(overrides, out / "overrides.csv", points, handed_in)
        results = _Kept(state, handed_in)
        write_reports(
            out,
            results,
            points=points,
            titles={name: heading(assignment.exercise) for name, assignment in loaded.items()},
            seed=settings.seed,
            versions=versions({name: assignment.key for name, assignment in loaded.items()}),
            overrides=overrides,
            seconds=settings.limits.seconds,
        )
        how = {**settings.listed(), **dict(run_settings)}
        write_run(out / "run.json", started, time.time(), times, how)
    settled = (apply_overrides(result, overrides, points) for result in results)
    return summary(settled, overrides.problems)


def _read_again(overrides, path, points, handed_in):
    """The decisions as they stand now; as they were, if the file has been broken meanwhile."""
    try:
        return read_overrides(path, points, handed_in)
    except ValueError as error:
        return replace(overrides, problems=(*overrides.problems, f"read before: {error}"))


def _grade_all(found, loaded, settings, state, grade, resume):
    """Grade what is not graded yet; returns the times of each submission."""
    keys, times = {}, []

    def units():
        for unit, key in _units(found, loaded, settings):
            keys[unit["student"], unit["lesson"]] = key
            kept = _read(_path(state, unit["student"], unit["lesson"])) if resume else {}
            if kept.get("key") == key:
                progress.step()
                times.append(kept["times"])
            else:
                yield unit

    with Progress(len(found)) as progress:
        for outcome in grade(units()):
            result = outcome["result"]
            student, lesson = result["student"], result["lesson"]
            spent = {"student": student, "lesson": lesson}
            spent |= {name: outcome[name] for name in ("seconds", "kernels")}
            kept = {"key": keys.pop((student, lesson)), "result": result, "times": spent}
            write_json(_path(state, student, lesson), kept)
            times.append(spent)
            progress.step(result)
    return times


def _units(found, loaded, settings):
    """Each submission as a unit of work, and the key of what its result depends on."""
    made = json.dumps([versions({}), settings.listed()], sort_keys=True)
    for submission in found:
        content, problem = None, submission.problem
        if not problem:
            try:
                content = read_submission(submission.path)
            except (OSError, ValueError) as error:
                problem = str(error)
        unit = {
            "student": submission.student,
            "lesson": submission.lesson,
            "file": _short(submission.path),
            "content": content,
            "problem": problem,
            "note": submission.note,
            "human": submission.human,
        }
        told = json.dumps([unit["file"], problem, submission.note, submission.human])
        parts = (made, loaded[submission.lesson].key, told, content or b"")
        yield unit, _digest(parts)


def _short(path):
    return "/".join(path.parts[-2:]) if path else ""


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
    """The results on disk, read one at a time."""

    def __init__(self, state, handed_in):
        self.state, self.handed_in = state, handed_in

    def __iter__(self):
        for student, lesson in self.handed_in:
            yield _read(_path(self.state, student, lesson))["result"]
