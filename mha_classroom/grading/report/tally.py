"""How the class did: what is counted of the results, for the terminal and for the page."""

import statistics
from collections import Counter, defaultdict
from dataclasses import dataclass

from mha_classroom.checks.registry import find
from mha_classroom.grading.report.safe_text import number
from mha_classroom.grading.results import ABSENT, Verdict

__all__ = ["COMMON", "Note", "Tally", "in_words", "label", "most", "spread", "tally_of"]

BINS = 10  # of the marks of a lesson, each a tenth of the most there are
COMMON = 3  # mistakes named for each task
OTHER = "(no known mistake)"
NAMED = 5  # of those whose text is the same, in a line


@dataclass(frozen=True)
class Note:
    """What someone has to look at: of whom, in which lesson, what."""

    students: tuple[str, ...]
    lesson: str
    text: str

    @property
    def line(self):
        """It as one line, in which not more than five students are named."""
        unnamed = len(self.students) - NAMED
        more = f" and {unnamed} more" if unnamed > 0 else ""
        return f"{' = '.join(self.students[:NAMED])}{more}, {self.lesson}: {self.text}"


def tally_of(results, texts=None, told=()):
    """Return the Tally of Results with decisions and deadlines applied, gone through once.

    texts: {(student, lesson): what `own_text` says}. told: (title, lines) of what else there is to
    tell, such as lines of overrides.csv that could not be used.
    """
    tally = Tally(texts or {}, told)
    for result in results:
        tally.add(result)
    return tally


class Tally:
    """What is counted of the results.

    total, graded: submissions. absent: how often a student handed in nothing for a lesson that
    others did. problems: {why not graded: how many}. verdicts: {verdict: tasks}. decided: tasks
    whose points a human gave. handed: {lesson: how many}. marks: {lesson: [(points, the most)]} of
    those that have a mark. tasks:
    {lesson: {task id: {verdict: how many}}}. mistakes: {task id: {mistake: how many}}. human:
    {(student, lesson): what someone has to look at}. rows: {student: {lesson: (points that count,
    the most, days late, whether it has a mark, whether anything was handed in)}}. sources: {who
    says when: how many hand-ins, how many of them late, how many of them at no known time}.
    """

    def __init__(self, texts, told):
        self.texts, self.others = texts, [(title, list(lines)) for title, lines in told]
        self.total = self.absent = self.decided = 0
        self.problems, self.verdicts = Counter(), Counter()
        self.handed, self.marks = Counter(), defaultdict(list)
        self.human = defaultdict(list)
        self.mistakes = defaultdict(Counter)
        self.tasks, self.rows = defaultdict(dict), defaultdict(dict)
        self.sources, self.penalised, self.one_day = defaultdict(Counter), 0, 0

    @property
    def graded(self):
        """How many submissions were graded."""
        return self.total - sum(self.problems.values())

    def add(self, result):
        """Count one Result."""
        student, lesson = result.student, result.lesson
        there = result.problem != ABSENT
        self.total += there
        self.absent += not there
        self.handed[lesson] += there
        if result.problem and there:
            self.problems[result.problem.split(":")[0]] += 1
            self.human[student, lesson].append(result.problem)
        if result.human:
            self.human[student, lesson] += result.human
        if there and not result.open:
            self.marks[lesson].append((result.points, result.max))
        for task in () if result.problem else result.tasks:
            self.verdicts[task.verdict] += 1
            self.tasks[lesson].setdefault(task.id, Counter())[task.verdict] += 1
            self.decided += task.machine is not None
            if task.verdict == Verdict.WRONG or task.mistake:
                names = (task.mistake or OTHER).split(" + ")
                self.mistakes[task.id].update(names)
        days = result.late.days if result.late else None
        self.rows[student][lesson] = (result.counted, result.max, days, not result.open, there)
        if result.late:
            source = self.sources[result.late.source]
            source["all"] += 1
            source["late"] += bool(days)
            source["unknown"] += days is None
            self.one_day += bool(days and not result.late.at)
            self.penalised += result.late.penalty > 0

    def about_marks(self, lesson):
        """How many handed a lesson in, and the mean and median of those that have a mark."""
        handed, marks = self.handed[lesson], self.marks[lesson]
        if not marks:
            return f"{handed} handed in, none with a mark yet"
        _, mean, median, best = spread(marks)
        of_them = "" if len(marks) == handed else f" {len(marks)} of them with a mark,"
        numbers = f"mean {mean:.1f} and median {number(median)} of {number(best)} points"
        return f"{handed} handed in,{of_them} {numbers}"

    def about_time(self):
        """Sentences about who was late, and who says so."""
        for source, count in most({source: n["all"] for source, n in self.sources.items()}):
            late, unknown = self.sources[source]["late"], self.sources[source]["unknown"]
            if unknown == count:
                yield f"Handed in: {count} at a time that is not known: {source}."
            else:
                yield f"Handed in: {late} of {count} late, as {source} says."
        if self.one_day:
            yield f"  {self.one_day} late by nobody knows how much: one day is counted."
        if self.penalised:
            yield f"A penalty for being late: {self.penalised}."

    def alike(self):
        """(lesson, names, tasks, lines) of each text that several students share."""
        shared = defaultdict(list)
        for (student, lesson), text in sorted(self.texts.items()):
            if text:
                shared[lesson, *text].append(student)
        for (lesson, _, tasks, lines), names in sorted(shared.items(), key=lambda x: x[1]):
            if len(names) > 1:
                yield lesson, names, tasks, lines

    def needs_a_human(self):
        """Notes: one for each submission, then of texts that several share, which are hints."""
        for (student, lesson), texts in self.human.items():
            yield Note((student,), lesson, "; ".join(texts))
        for lesson, names, tasks, lines in self.alike():
            text = (
                f"the same text in all answers (tasks: {tasks}, own lines: {lines}). A hint and no "
                "proof; no mark depends on it"
            )
            yield Note(tuple(names), lesson, text)

    def told(self):
        """(title, lines) of what else there is to tell."""
        return [(title, lines) for title, lines in self.others if lines]


def most(counts):
    """The largest counts first; of equal ones in the order of their names."""
    return sorted(counts.items(), key=lambda item: (-item[1], item[0]))


def in_words(task_id, name):
    """What a known mistake is in words, and its name."""
    try:
        known = {mistake.id: mistake.did for mistake in find(task_id).mistakes}
    except ValueError:
        known = {}
    return f"{known[name]} ({name})" if name in known else name


def spread(marks):
    """(How many marks lie in each tenth, their mean, their median, the most there are)."""
    best = max(most for _, most in marks)
    tenths = Counter(
        min(max(int(BINS * mark / most), 0), BINS - 1) if most else 0 for mark, most in marks
    )
    points = [mark for mark, _ in marks]
    counts = [tenths[i] for i in range(BINS)]
    return counts, statistics.fmean(points), statistics.median(points), best


def label(tenth):
    """What a tenth is called: "90–100 %"."""
    upper = 100 if tenth == BINS - 1 else 100 * (tenth + 1) // BINS - 1
    return f"{100 * tenth // BINS}–{upper} %"
