"""index.html, the page for the instructor: how the class did, and what needs a human."""

from urllib.parse import quote

from mha_classroom.grading.report.feedback_page import document, escape
from mha_classroom.grading.report.safe_text import case_clashes, feedback_path, number
from mha_classroom.grading.report.tally import COMMON, in_words, label, most, spread
from mha_classroom.grading.results import Verdict

__all__ = ["class_page"]

STYLE = """
body { max-width: 78rem; }
h2 { font-size: 1.35rem; margin-top: 2.75rem; } h3 { font-size: 1.1rem; margin: 1.75rem 0 .25rem; }
ul { padding-left: 1.25rem; margin: .5rem 0; } li { margin: .25rem 0; }
.look { border-left: .25rem solid var(--bad); padding-left: 1rem; }
.wide { overflow-x: auto; } .wide table { margin-top: .5rem; }
.n { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
td.n, th.n { padding-left: .75rem; } th code { white-space: nowrap; }
.words { min-width: 16rem; padding-left: .75rem; }
.spread { display: grid; grid-template-columns: max-content 1fr; gap: .15rem .75rem;
  align-items: center; max-width: 36rem; margin: .5rem 0 1rem; }
.spread span { white-space: nowrap; }
.row { display: flex; gap: .5rem; align-items: center; }
.bar { background: var(--bar); height: .8rem; border-radius: .2rem; }
details { margin: .5rem 0; } summary { cursor: pointer; font-weight: 600; }
nav a { margin-right: 1rem; } .late { color: var(--bad); white-space: nowrap; }
"""
OPEN = 15  # lines of a list that are shown unfolded


def class_page(tally, titles, deadlines=None):
    """Return the HTML of the page for the instructor.

    tally: a Tally. titles: {lesson: title of the exercise set}. deadlines: {lesson: Due}.
    Properties: everything that others chose is escaped; no script, nothing is loaded; links lead to
        the students' pages beside it.
    """
    clashes = case_clashes(tally.rows)

    def link(student, lesson, text):
        path = feedback_path("", student, lesson, clashes).as_posix()
        return f'<a href="{escape(quote(path))}">{text}</a>'

    parts = [
        "<header><h1>Marks of the class</h1>"
        f"<p>{tally.graded} of {tally.total} submissions graded</p></header>",
        '<nav><a href="#look">Needs a human</a><a href="#lessons">Lessons and tasks</a>'
        '<a href="#students">Students</a></nav><main>',
        _counts(tally, deadlines or {}),
        *_needs(list(tally.needs_a_human()), link),
        *(_list(title, map(escape, lines)) for title, lines in tally.told()),
        '<h2 id="lessons">Lessons and tasks</h2>',
        *(_lesson(tally, lesson, titles) for lesson, n in sorted(tally.handed.items()) if n),
        _students(tally, link),
        "</main>",
    ]
    return document("Marks of the class", parts, STYLE)


def _counts(tally, deadlines):
    lines = [f"{count} not graded: {why}" for why, count in most(tally.problems)]
    if tally.absent:
        lines.append(f"Nothing handed in, by student and lesson: {tally.absent}")
    if tally.decided:
        lines.append(f"Points decided by a human: {tally.decided}")
    for lesson, deadline in sorted(deadlines.items()):
        due = deadline.due.isoformat(" ", "minutes")
        percent = f", {number(deadline.percent)} % off for each day" if deadline.percent else ""
        lines.append(f"{lesson} was due at {due}{percent}")
    lines += tally.about_time()
    return f"<ul>{''.join(f'<li>{escape(line)}</li>' for line in lines)}</ul>" if lines else ""


def _needs(notes, link):
    """What needs a human, with links to the pages."""
    yield '<section class="look"><h2 id="look">Needs a human</h2>'
    if not notes:
        yield '<p class="quiet">Nothing.</p>'
    else:
        items = []
        for note in notes:
            links = [link(name, note.lesson, escape(name)) for name in note.students]
            who = f"{' = '.join(links)}, {escape(note.lesson)}"
            items.append(f"{who}: {escape(note.text)}")
        yield _items(items)
    yield "</section>"


def _list(title, items):
    return f"<h3>{escape(title)}</h3>{_items(list(items))}"


def _items(items):
    """A list; what is long is folded."""
    shown = f"<ul>{''.join(f'<li>{item}</li>' for item in items[:OPEN])}</ul>"
    if len(items) <= OPEN:
        return shown
    more = "".join(f"<li>{item}</li>" for item in items[OPEN:])
    return f"{shown}<details><summary>{len(items) - OPEN} more</summary><ul>{more}</ul></details>"


def _lesson(tally, lesson, titles):
    """The marks of a lesson as bars, and a table of its tasks."""
    counts = spread(tally.marks[lesson])[0] if tally.marks[lesson] else []
    longest = max(counts, default=0)
    bars = "".join(
        f'<span class="n">{label(i)}</span><span class="row"><span class="bar" style="width:'
        f'{80 * count / longest:.1f}%"></span>{count or ""}</span>'
        for i, count in enumerate(counts)
    )
    title = titles.get(lesson) or lesson
    tasks = tally.tasks.get(lesson, {})
    used = [v for v in Verdict if any(found[v] for found in tasks.values())]
    head = "".join(f'<th scope="col" class="n">{v.value}</th>' for v in used)
    rows = "".join(_task(tally, name, found, used) for name, found in tasks.items())
    table = (
        '<div class="wide"><table><caption>Tasks</caption><thead><tr><th scope="col">Task</th>'
        f'<th scope="col" class="n">right</th>{head}<th scope="col" class="words">Mistakes made'
        f" most often</th></tr></thead><tbody>{rows}</tbody></table></div>"
    )
    return (
        f'<section><h3>{escape(title)}</h3><p class="quiet">{escape(tally.about_marks(lesson))}</p>'
        f'<div class="spread" aria-label="How many got so many of the points">{bars}</div>'
        f"{table if rows else ''}</section>"
    )


def _task(tally, name, found, used):
    """A row of the table: how many got each verdict, and what they did wrong."""
    right = found[Verdict.PASSED] / sum(found.values())
    cells = "".join(f'<td class="n">{found[v] or ""}</td>' for v in used)
    mistakes = "<br>".join(
        f"{count} × {escape(in_words(name, mistake))}"
        for mistake, count in most(tally.mistakes.get(name, {}))[:COMMON]
    )
    return (
        f'<tr><th scope="row"><code>{escape(name)}</code></th><td class="n">{right:.0%}</td>'
        f'{cells}<td class="words">{mistakes}</td></tr>'
    )


def _students(tally, link):
    """A row for each student, with links to the pages."""
    lessons = sorted({lesson for row in tally.rows.values() for lesson in row})
    head = "".join(f'<th scope="col" class="n">{escape(lesson)}</th>' for lesson in lessons)
    rows = []
    for student, row in sorted(tally.rows.items()):
        cells = "".join(
            f'<td class="n">{_mark(student, lesson, row.get(lesson), link)}</td>'
            for lesson in lessons
        )
        known = all(has_mark for *_, has_mark, _ in row.values())
        total = number(sum(mark for mark, *_ in row.values())) if known else "–"
        rows.append(
            f'<tr><th scope="row"><bdi>{escape(student)}</bdi></th>{cells}<td class="n">{total}'
            "</td></tr>"
        )
    return (
        '<h2 id="students">Students</h2><p class="quiet">Points that count; each leads to the page '
        'of the student.</p><div class="wide"><table><thead><tr><th scope="col">Student</th>'
        f'{head}<th scope="col" class="n">total</th></tr></thead><tbody>{"".join(rows)}</tbody>'
        "</table></div>"
    )


def _mark(student, lesson, known, link):
    if known is None:
        return ""
    mark, best, days, has_mark, there = known
    text = f"{number(mark)} of {number(best)}" if has_mark else "no mark yet"
    text = text if there else "nothing"
    late = f' <span class="late">{days} d late</span>' if days else ""
    return link(student, lesson, text) + late
