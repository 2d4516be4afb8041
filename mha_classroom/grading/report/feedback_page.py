"""The page that a student gets back: one file without scripts, everything of theirs escaped."""

import html
import re
from dataclasses import fields, replace

from mha_classroom.checks.showing import listed
from mha_classroom.grading.report.safe_text import number, visible
from mha_classroom.grading.results import VERDICTS, Verdict

__all__ = ["document", "escape", "heading", "page"]

STYLE = """
:root { color-scheme: light dark; --text: #1d2330; --quiet: #5b6475; --line: #d8dce4;
  --page: #fff; --soft: #f4f6f9; --bar: #2e7d4f; --bad: #c62f35; }
@media (prefers-color-scheme: dark) { :root { --text: #e4e7ee; --quiet: #a3abba;
  --line: #3a4150; --page: #14171d; --soft: #1e232c; --bar: #4fb27c; --bad: #f0757a; } }
* { box-sizing: border-box; }
body { margin: 0 auto; padding: 2rem 1.25rem 3rem; max-width: 52rem; color: var(--text);
  background: var(--page); font: 1rem/1.55 system-ui, "Noto Sans", sans-serif;
  overflow-wrap: anywhere; }
h1 { font-size: 1.7rem; line-height: 1.25; margin: 0 0 .25rem; }
h2 { font-size: 1.15rem; margin: 0 0 .5rem; }
header p, footer, .quiet { color: var(--quiet); margin: 0; }
footer { border-top: 1px solid var(--line); margin-top: 2.5rem; padding-top: .75rem;
  font-size: .9rem; }
.total { font-size: 1.15rem; margin: 1.5rem 0 .25rem; }
.total strong { font-size: 1.7rem; }
progress { width: 100%; height: .6rem; accent-color: var(--bar); }
table { overflow-wrap: break-word; border-collapse: collapse; width: 100%; margin: 1.25rem 0 0; }
caption { text-align: left; font-weight: 600; padding-bottom: .25rem; }
th, td { text-align: left; font-weight: normal; padding: .4rem .75rem .4rem 0;
  border-top: 1px solid var(--line); vertical-align: top; }
thead th { border: 0; color: var(--quiet); }
.points { text-align: right; white-space: nowrap; font-variant-numeric: tabular-nums;
  padding-right: 0; }
.mark { color: var(--bar); font-weight: 600; }
.mark.bad { color: var(--bad); }
section { margin-top: 2.25rem; }
h2 .points { float: right; font-size: 1rem; font-weight: normal; color: var(--quiet); }
.told { background: var(--soft); padding: .6rem .9rem; border-radius: .4rem; margin: .5rem 0;
  white-space: pre-line; }
code, pre { font-family: ui-monospace, "DejaVu Sans Mono", monospace; font-size: .92em; }
pre { white-space: pre-wrap !important; overflow-wrap: anywhere; }
section div div { max-width: calc(100% - 3em); }
em { color: var(--quiet); font-style: normal; font-size: .9em; }
a { color: inherit; }
"""
FOOTER = (
    "<footer>Your answers were run on inputs drawn for this grading. Numbers that would give an "
    "answer away are not shown, or stand as #.</footer>"
)
TO_YOU = (
    (r"\bthe student's\b", "your"),
    (r"\ban own cell\b", "a cell of your own"),
    (r"\bown (?=(?:code )?cells\b)", "your own "),
    (r"\(added (\d+)\)", r"(code cell \1)"),
    (r"^it (?=does not say)", "your notebook "),
    (r"^(?=answers version)", "your notebook "),
)
KEPT = "\n\t"  # where text may have lines
POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"


def page(result, title="", seconds=None):
    """Return the HTML of one student's feedback on one lesson.

    result: a Result, with what a human decided applied. title: of the exercise set, its name if
    empty. seconds: how long an answer was allowed to take.
    """
    title = title or result.lesson.replace("_", " ")
    parts = [
        f"<header><h1>{escape(title)}</h1>"
        f"<p>Feedback for <bdi>{escape(result.student)}</bdi></p></header><main>",
        *_total(result),
        *(() if _nothing_known(result) else _of_tasks(result, seconds)),
        *_notes(result.notes),
        f"</main>{'' if result.problem else FOOTER}",
    ]
    return document(f"{title} · {result.student}", parts)


def document(title, parts, style=""):
    """A whole page of HTML of its parts; it runs no script and loads nothing."""
    body = "\n".join(parts)
    head = (
        f'<meta charset="utf-8"><meta http-equiv="Content-Security-Policy" content="{POLICY}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        '<meta name="referrer" content="no-referrer"><meta name="color-scheme" '
        f'content="light dark"><title>{escape(title)}</title><style>{STYLE}{style}</style>'
    )
    # The class keeps a learning platform that shows the page from reading $ as a formula.
    return (
        f'<!doctype html>\n<html lang="en"><head>{head}</head>\n<body class="mathjax_ignore '
        f'tex2jax_ignore">\n{body}\n</body></html>\n'
    )


def _total(result):
    if result.problem:
        yield f'<p class="told">{escape(_of_problem(result.problem))}</p>'
    if _nothing_known(result):
        yield '<p class="total">There is no mark yet.</p>'
        return
    points, best = number(result.points), number(result.max)
    right = [task for task in result.tasks if task.verdict == Verdict.PASSED]
    count = f" · {len(right)} of {len(result.tasks)} tasks passed"
    yield f'<p class="total"><strong>{points}</strong> of {best} points{count}</p>'
    yield f'<progress value="{points}" max="{best}" aria-hidden="true"></progress>'
    if result.open:
        yield '<p class="told">Not all is graded yet, so this is no mark.</p>'
    yield from _late(result.late, result)
    run = [task for task in result.tasks if task.verdict != Verdict.NOT_RUN]
    wrong = [task for task in run if task.points < task.max]
    if len(right) == len(result.tasks):
        yield '<p class="quiet">Every task is right. Well done!</p>'
    elif len(wrong) > 1 and not result.problem:
        first = f"<code>{escape(_name(wrong[0].id))}</code>"
        yield f'<p class="quiet">Begin with {first}: later tasks build on earlier ones.</p>'


def _of_tasks(result, seconds):
    yield _table(result.tasks, seconds)
    yield from (_section(i, task) for i, task in enumerate(result.tasks, 1))


def _nothing_known(result):
    """Whether there is a file of which nothing was run and nothing decided."""
    decided = any(task.machine is not None for task in result.tasks)
    return result.problem and result.open and not decided


def _late(late, result):
    """How late it was handed in, and what that takes off."""
    if not late or not (late.days or late.penalty):
        return
    days = f"{late.days or 'some'} day{'s' if late.days != 1 else ''}"
    at = f" at {late.at}" if late.at else ""
    words = f"Handed in late{at}: {days} begun after it was due."
    if late.penalty or late.decided:
        words += f" Taken off: {number(late.penalty)} points. Left: {number(result.counted)}."
    if late.decided:
        words += f" Decided by your instructor{f': {late.comment}' if late.comment else '.'}"
    yield f'<p class="told">{escape(words)}</p>'


def _of_problem(problem):
    """Why nothing was graded, to the student. Of a file it is said what it is: "is empty"."""
    of_file = problem.split(" ")[0] in ("is", "has", "cannot", "answers", "lies")
    return _sentence(f"your file {problem}" if of_file else problem)


def _sentence(text):
    """A note for the instructor as a sentence to the student."""
    for words, yours in TO_YOU:
        text = re.sub(words, yours, text)
    return f"{text[:1].upper()}{text[1:]}{'' if text.endswith(('.', '?')) else '.'}"


def _table(tasks, seconds):
    rows = []
    for index, task in enumerate(tasks, 1):
        mark, kind = ("✓", "mark") if task.verdict == Verdict.PASSED else ("✗", "mark bad")
        rows.append(
            f'<tr><th scope="row"><a href="#task-{index}"><code>{escape(_name(task.id))}</code>'
            f'</a></th><td><span class="{kind}" aria-hidden="true">{mark}</span> '
            f'{escape(_words(task, seconds))}</td><td class="points">{_points(task)}</td></tr>'
        )
    return (
        '<table><caption>Your tasks</caption><thead><tr><th scope="col">Task</th>'
        '<th scope="col">Result</th><th scope="col" class="points">Points</th></tr></thead>'
        f"<tbody>{''.join(rows)}</tbody></table>"
    )


def _words(task, seconds):
    """A verdict as a student reads it in the table."""
    words = VERDICTS[task.verdict].words
    if task.carried and task.verdict == Verdict.PASSED:
        words += ", carried forward"
    if task.verdict == Verdict.TIMEOUT and seconds:
        words += f" after {number(seconds)} s"
    return words if task.machine is None else f"{words}; decided by your instructor"


def _section(index, task):
    """What is said of one task."""
    told = "".join(f'<p class="told">{escape(text, KEPT)}</p>' for text in _told(task))
    return (
        f'<section id="task-{index}" aria-labelledby="name-{index}"><h2 id="name-{index}"><code>'
        f'{escape(_name(task.id))}</code> <span class="points">{_points(task)} points</span></h2>'
        f"{told}{_box(task.feedback)}</section>"
    )


def _points(task):
    return f"{number(task.points)} of {number(task.max)}"


def _told(task):
    """What there is to say beside the check's own words."""
    if task.carried:
        several = "s" if len(task.carried) > 1 else ""
        names = listed([_name(task_id) for task_id in task.carried])
        theirs = f"the course's version{several} in place of your earlier {names}"
        if task.verdict == Verdict.PASSED:
            of_machine = task.points if task.machine is None else task.machine
            full = ": full points" if of_machine == task.max else ""
            yield f"Carried forward: with {theirs}, this task is right{full}."
        else:
            yield f"This was found with {theirs}, so it is about this task alone."
    if task.machine is not None:
        comment = f": {task.comment}" if task.comment else "."
        yield f"Decided by your instructor{comment}"


def _box(feedback):
    # The lessons do not lie beside this page, and nothing here is a live message.
    seen = {each.name: _visible_in(getattr(feedback, each.name)) for each in fields(feedback)}
    shown = replace(feedback, **seen | {"lesson": ""})
    box = re.sub(r"<a [^>]*>(.*?)</a>", r"“\1”", shown._repr_html_(), flags=re.S)
    return box.replace(' role="status"', "")


def _visible_in(value):
    if isinstance(value, str):
        return visible(value, keep=KEPT)
    return tuple(map(_visible_in, value)) if isinstance(value, tuple) else value


def _notes(notes):
    if notes:
        items = "".join(f"<li>{escape(_sentence(note))}</li>" for note in notes)
        yield f"<section><h2>About your notebook</h2><ul>{items}</ul></section>"


def _name(task_id):
    return task_id.split("-", 1)[-1]


def escape(text, keep=""):
    """A text that others chose, as HTML."""
    return html.escape(visible(text, keep)).replace("$", "&#36;")


def heading(notebook):
    """The first heading of a notebook without its #, "" if there is none."""
    for cell in notebook.cells:
        for line in cell.source.splitlines() if cell.cell_type == "markdown" else ():
            if line.startswith("# "):
                return line[2:].strip()
    return ""
