"""moodle.csv and canvas.csv: marks as learning platforms import them, a row for each student."""

import csv
import math
from collections import defaultdict

from mha_classroom.grading.handed_in.students import Unsure
from mha_classroom.grading.report.safe_text import guarded, number
from mha_classroom.grading.report.write_reports import replacing
from mha_classroom.grading.results import ABSENT

__all__ = ["ClassList", "write_platform_files"]

MOODLES = ("Full name", "Username", "ID number", "Email address")
CANVASES = ("Student", "ID", "SIS User ID", "SIS Login ID", "Section")
POINTS_POSSIBLE = "    Points Possible"  # how Canvas knows that row
TOTAL = "total"
MOODLES_MOST = 100  # a mark above that ends the import, unless the site allows it


class ClassList:
    """The marks of the students in students.csv.

    Nobody gets a 0 for having handed in nothing while there is a hand-in of the lesson that may be
    theirs: one that has no row.

    students: in its order. found, unmatched: see `match_students`. points: {lesson: {task id: the
    most points}}.
    """

    def __init__(self, students, found, unmatched, points):
        self.students, self.found, self.unmatched = students, found, unmatched
        self.most = {name: math.fsum(points[name].values()) for name in sorted(points)}
        self.marks, self.names = defaultdict(lambda: defaultdict(list)), defaultdict(set)
        self.nobodys = defaultdict(set)  # {lesson: names of hand-ins that have no row}

    def add(self, result):
        """Take a Result with decisions and deadlines applied."""
        student = self.found.get(result.student)
        if student is None:
            if result.problem != ABSENT:
                self.nobodys[result.lesson].add(result.student)
        elif result.problem != ABSENT or result.points:
            mark = None if result.open else result.counted
            self.marks[student.line][result.lesson].append(mark)
            self.names[student.line].add(result.student)

    def marks_of(self, student):
        """{lesson: points}, None where there is no mark yet, 0 where nothing was handed in."""
        own = self.marks[student.line]
        marks = {
            lesson: own.get(lesson, [self._of_nothing(student, lesson)]) for lesson in self.most
        }
        marks = {name: one[0] if len(one) == 1 else None for name, one in marks.items()}
        unknown = None in marks.values()
        return marks | {TOTAL: None if unknown else round(math.fsum(marks.values()), 6)}

    def _of_nothing(self, student, lesson):
        theirs = any(self._why_none(name).may_be(student) for name in self.nobodys[lesson])
        return None if theirs else 0.0

    def _why_none(self, name):
        return self.unmatched.get(name, Unsure())

    def told(self):
        """(title, lines) of what the instructor should know before an import."""
        unmatched = [
            f"{name}: {self._why_none(name)}"
            for name in sorted(set().union(*self.nobodys.values()))
        ]
        several, empty, perhaps, large = [], [], [], []
        for student in self.students:
            marks = self.marks_of(student)
            if any(len(found) > 1 for found in self.marks[student.line].values()):
                names = ", ".join(sorted(self.names[student.line]))
                several.append(f"{student.shown}: {names}. Which one counts?")
            elif marks[TOTAL] is None:
                own = self.marks[student.line]
                unknown = [name for name in self.most if marks[name] is None and name in own]
                if unknown:
                    empty.append(f"{student.shown}: {', '.join(unknown)}")
                missing = [name for name in self.most if marks[name] is None and name not in own]
                if missing:
                    perhaps.append(f"{student.shown}: {', '.join(missing)}")
            large += [name for name, mark in marks.items() if (mark or 0) > MOODLES_MOST]
        yield "Handed in by nobody in students.csv, and in no file for the platform", unmatched
        yield "Several hand-ins of one student, and no mark for the platform", several
        yield "Without a mark for the platform until someone decides", empty
        yield (
            "Nothing under this name, and no 0 while a hand-in without a row may be theirs",
            perhaps,
        )
        before = []
        if large:
            names = ", ".join(dict.fromkeys(large))
            before.append(f"Moodle refuses marks above {MOODLES_MOST}: {names}")
        yield "Before you import", [*before, *self._ahead()]
        absent = [
            student.shown
            for student in self.students
            if not self.marks[student.line] and self.marks_of(student)[TOTAL] is not None
        ]
        yield "In students.csv and handed in nothing, which is 0 points", absent

    def _ahead(self):
        """A line for each lesson that only a few have handed in: it may not be due yet."""
        there = [student for student in self.students if self.marks[student.line]]
        for lesson in self.most:
            count = sum(lesson in self.marks[student.line] for student in there)
            if 0 < 2 * count < len(there):
                yield (
                    f"{lesson}: handed in by {count} of {len(there)} students, and 0 points for "
                    "everyone else. --lesson with the others leaves it out"
                )


def write_platform_files(out, listed):
    """Write moodle.csv and canvas.csv of a ClassList into the folder `out`.

    Properties: a row for each student of students.csv, a column for each lesson and the total. No
        name is run as a formula. What has no mark yet is empty (in Moodle's file "-"), and so is
        its total.
    """
    columns = [*listed.most, TOTAL]
    with replacing(out / "moodle.csv") as file:
        table = csv.writer(file, lineterminator="\n")
        table.writerow([*MOODLES, *columns])
        for student in listed.students:
            who = (student.shown, student.login, student.number, student.email)
            table.writerow([*map(guarded, who), *_cells(listed, student, columns, "-")])
    with replacing(out / "canvas.csv") as file:
        table = csv.writer(file, lineterminator="\n")
        table.writerow([*CANVASES, *columns])
        most = [*listed.most.values(), math.fsum(listed.most.values())]
        table.writerow([POINTS_POSSIBLE, "", "", "", "", *map(number, most)])
        for student in listed.students:
            login = student.login or student.email
            who = (student.shown, student.canvas, student.number, login, student.section)
            table.writerow([*map(guarded, who), *_cells(listed, student, columns, "")])


def _cells(listed, student, columns, empty):
    marks = listed.marks_of(student)
    return [empty if marks[name] is None else number(marks[name]) for name in columns]
