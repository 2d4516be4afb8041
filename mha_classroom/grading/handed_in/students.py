"""The list of a class, students.csv, and which of its rows a hand-in belongs to."""

import re
import unicodedata
from collections import defaultdict
from dataclasses import dataclass, fields
from pathlib import Path

from mha_classroom.grading.handed_in.read_table import rows_of

__all__ = ["Student", "Unsure", "match_students", "read_students"]

# What the columns are called by Canvas, by Moodle, and by people.
NAMES = {
    "name": ("student", "full name", "name"),
    "first": ("first name", "firstname"),
    "last": ("last name", "lastname", "surname"),
    "canvas": (),  # "ID" beside "Student" or "SIS Login ID", as Canvas writes it
    "number": ("id number", "sis user id", "id"),
    "login": ("username", "sis login id", "login"),
    "email": ("email address", "email", "e-mail", "mail"),
    "section": ("section",),
    "participant": ("identifier",),
    "folder": ("folder",),
    "handed": ("last modified (submission)", "handed in"),
}
KEYS = ("canvas", "number", "login", "email", "participant")  # one student's alone
NO_STUDENT = re.compile(r"\s*points possible", re.I)  # a row of Canvas's about assignments
AGAIN = re.compile(r"( ~[0-9a-f]{8})+$")  # of a second folder of the same name
LEAST = 4  # characters of an id in a name: in "Ann (1)" and "Team 2" the number is none
BETWEEN = re.compile(r"[\s_()\[\],;]+")


@dataclass(frozen=True)
class Student:
    """A row of students.csv; a text is "" where there is none.

    canvas: the ID that Canvas gives. number: the institution's: "ID number" in Moodle, "SIS User
    ID" in Canvas. login: "Username" and "SIS Login ID". participant: the number that the student
    has in one assignment of Moodle's, of "Participant 12". folder: the names that hand-ins have in
    grades.csv, between semicolons, where nothing else tells. handed: when the student handed in, as
    it is written there. line: in the file.
    """

    name: str = ""
    first: str = ""
    last: str = ""
    canvas: str = ""
    number: str = ""
    login: str = ""
    email: str = ""
    section: str = ""
    participant: str = ""
    folder: str = ""
    handed: str = ""
    line: int = 0

    @property
    def shown(self):
        """The name, or what else there is."""
        return self.name or " ".join(filter(None, (self.first, self.last))) or self._key()

    def _key(self):
        return next(filter(None, (getattr(self, key) for key in KEYS)), self.folder)


def read_students(path):
    """Return the Students of a CSV file: Canvas's export of the gradebook, Moodle's of the grades
    or its grading worksheet, as they are, or an own list with a name and an id or mail.

    Raises: ValueError naming the file, and the line or the columns that are wrong.
    """
    path, students, seen = Path(path), [], {}
    for line, row in rows_of(path):
        row = {(name or "").strip().lower(): cell.strip() for name, cell in row.items()}
        student = _student(row, line)
        if not students:
            _check_columns(path, row)
        if not student.shown or NO_STUDENT.match(student.shown):
            continue
        for key in KEYS:
            value = (key, getattr(student, key).casefold())
            if value[1] and value in seen:
                what = f"a second row with {getattr(student, key)!r}, as in line {seen[value]}"
                raise ValueError(f"{path.name}, line {line}: {what}")
            seen[value] = line
        students.append(student)
    if not students:
        raise ValueError(f"{path.name}: there is no student in it")
    return students


def _student(row, line):
    found = {
        field: next((row[name] for name in names if name in row), "")
        for field, names in NAMES.items()
    }
    if "id" in row and ("student" in row or "sis login id" in row):  # also with two names
        found |= {"canvas": row["id"], "number": row.get("sis user id", "")}
    number = re.search(r"\d+$", found["participant"])  # after a word in the platform's language
    found["participant"] = number[0] if number else ""
    return Student(**found, line=line)


def _check_columns(path, row):
    known = {field for field, names in NAMES.items() if any(name in row for name in names)}
    if not known & set(KEYS) or not known & {"name", "first", "last", "folder", *KEYS}:
        columns = ",".join(row)
        raise ValueError(
            f"{path.name}: the first line names no column with an id or a mail, such as “ID "
            f"number”, “SIS User ID”, “Username” or “Email address”; got {columns!r}"
        )


@dataclass(frozen=True)
class Unsure:
    """Why a hand-in has no row. lines: of several that fit equally well, () if none does. number:
    that Canvas gave its student, "" if it did not."""

    lines: tuple[int, ...] = ()
    number: str = ""

    def __str__(self):
        if not self.lines:
            return "no row has this name or id"
        return f"could be several rows: lines {', '.join(map(str, self.lines))}"

    def may_be(self, student):
        """Whether it can be that Student's: not if Canvas gives them another number."""
        if self.lines:
            return student.line in self.lines
        return not (self.number.isdigit() and student.canvas)


def match_students(students, numbers):
    """Return ({name: Student}, {name: Unsure}) of hand-ins.

    students: as `read_students` gives them. numbers: {name as in grades.csv: (platform, the number
    that it gave the student, "" if none)}.
    Properties: what is surest decides: the column `folder`, the platform's number, an id or a mail
        that is the whole name, the name as it is written, the name in another order, an id or a
        mail in it. Upper case, spaces and signs do not matter. Where two rows fit equally well,
        none is taken.
    """
    ways = _Ways(students)
    found, none = {}, {}
    for name, (platform, number) in numbers.items():
        hits = next(filter(None, ways.of(name, platform, number)), [])
        if len(hits) == 1:
            found[name] = hits[0]
        else:
            lines = tuple(student.line for student in hits)
            none[name] = Unsure(lines, number if platform == "Canvas" else "")
    return found, none


class _Ways:
    """The rows by all that they can be known by."""

    def __init__(self, students):
        self.by = {field.name: defaultdict(list) for field in fields(Student)}
        self.by_name, self.as_written = defaultdict(list), defaultdict(list)
        for student in students:
            for key in KEYS:
                value = getattr(student, key)
                if value:
                    self.by[key][value.casefold()].append(student)
            for folder in filter(None, map(str.strip, student.folder.split(";"))):
                self.by["folder"][folder.casefold()].append(student)
            self.as_written[_plain(student.name)].append(student)
            for form in _forms(student):
                self.by_name[form].append(student)

    def of(self, name, platform, number):
        """The rows that fit, surest first."""
        yield self.by["folder"].get(name.casefold(), [])
        if platform == "Canvas":
            yield self.by["canvas"].get(number, [])
        elif platform == "Moodle":
            yield self.by["participant"].get(number, [])
        name = AGAIN.sub("", name).removesuffix(f" {number}")
        yield self._known(name.casefold(), ("number", "login", "email"))
        yield self.as_written.get(_plain(name), [])
        yield self.by_name.get(_plain(name), [])
        parts = [part for part in BETWEEN.split(name.casefold()) if len(part) >= LEAST]
        found = [student for part in parts for student in self._known(part, ("number", "email"))]
        yield list(dict.fromkeys(found))

    def _known(self, text, keys):
        found = [student for key in keys for student in self.by[key].get(text, [])]
        return list(dict.fromkeys(found))


def _forms(student):
    """The name in each order that a platform may write it in."""
    forms = {student.name, f"{student.first} {student.last}", f"{student.last} {student.first}"}
    last, comma, first = student.name.partition(",")
    words = student.name.split()
    forms.add(f"{first} {last}" if comma else " ".join([*words[-1:], *words[:-1]]))
    return {_plain(form) for form in forms} - {""}


def _plain(text):
    """Letters and digits alone, in lower case."""
    text = unicodedata.normalize("NFKC", text).casefold()
    return "".join(c for c in text if unicodedata.category(c)[0] in "LNM")
