"""Who handed in what and when, what is due when, and who is in the class; kept for later runs."""

import json
import shutil
from dataclasses import astuple, dataclass, replace
from datetime import datetime
from pathlib import Path

from mha_classroom.grading.handed_in.arrival import Arrival, arrival_of
from mha_classroom.grading.handed_in.students import match_students, read_students
from mha_classroom.grading.report.due import Due
from mha_classroom.grading.report.write_reports import write_json

__all__ = ["Asked", "Register"]


@dataclass(frozen=True)
class Asked:
    """What the command line says of the class.

    students: path of students.csv, None for that of the run that goes on. due: a time with its
    zone, for the lessons that are graded now. percent: of the points, taken off for each day.
    """

    students: Path | None = None
    due: datetime | None = None
    percent: float = 0.0


class Register:
    """What is known of the class beside its notebooks.

    students: of students.csv, [] without one. deadlines: {lesson: Due}. arrivals: {(student,
    lesson): Arrival}. numbers: {student: (platform, the number that it gave)}.
    """

    def __init__(self, state, asked, resume):
        """state: folder of the run. Raises: ValueError for a students.csv that is no such list;
        OSError if it cannot be read."""
        self.path, self.asked = state / "register.json", asked
        self.list = asked.students or (state / "students.csv" if resume else None)
        known = self.list and self.list.exists()
        self.students = read_students(self.list) if known else []
        kept = json.loads(self.path.read_text("utf-8")) if resume and self.path.exists() else {}
        self.deadlines = {
            lesson: Due(datetime.fromisoformat(due), percent)
            for lesson, (due, percent) in kept.get("due", {}).items()
        }
        self.arrivals = {
            (student, lesson): Arrival(*arrival)
            for student, lesson, arrival in kept.get("arrivals", [])
        }
        self.numbers = {student: tuple(pair) for student, pair in kept.get("numbers", {}).items()}

    def told_apart(self, found):
        """The HandedIns; those that may be another student's than those of the same name in an
        earlier run have the platform's number behind it.

        Canvas always gives a student the same number. Moodle does not: there they are told apart
        if students.csv has several of the name.
        """

        def name(one):
            platform, number = self.numbers.get(one.student, ("", ""))
            if not number or not one.number or (platform, number) == (one.platform, one.number):
                return one.student
            _, none = match_students(self.students, {one.student: ("", "")})
            other = platform == "Canvas" or (one.student in none and none[one.student].lines)
            return f"{one.student} {one.number}" if other else one.student

        return [replace(one, student=name(one)) for one in found]

    def enter(self, found):
        """Take in what was handed in now, HandedIns. Raises: ValueError for a time in students.csv
        that is none."""
        if self.asked.due:
            one = Due(self.asked.due, self.asked.percent)
            self.deadlines |= {handed_in.lesson: one for handed_in in found}
        self.numbers |= {one.student: (one.platform, one.number) for one in found}
        matched, _ = self.match()
        for handed_in in found:
            deadline = self.deadlines.get(handed_in.lesson)
            told, zone = "", None
            if deadline:
                student = matched.get(handed_in.student)
                told, zone = student.handed if student else "", deadline.due.tzinfo
            key = handed_in.student, handed_in.lesson
            try:
                arrival = arrival_of(handed_in, told, zone)
            except ValueError as error:
                line = f"{self.list.name}, line {student.line}"
                raise ValueError(f"{line}: {error}") from error
            self.arrivals.pop(key, None)
            if arrival:
                self.arrivals[key] = arrival

    def match(self):
        """({name in grades.csv: Student}, {name: why there is none})."""
        return match_students(self.students, self.numbers)

    def save(self):
        """Keep all of it for later runs, students.csv as it is."""
        kept = self.path.with_name("students.csv")
        if not self.students:
            kept.unlink(missing_ok=True)
        elif self.list != kept:
            shutil.copyfile(self.list, kept)
        data = {
            "due": {
                lesson: [deadline.due.isoformat(), deadline.percent]
                for lesson, deadline in self.deadlines.items()
            },
            "arrivals": [[*key, astuple(arrival)] for key, arrival in self.arrivals.items()],
            "numbers": self.numbers,
        }
        write_json(self.path, data)
