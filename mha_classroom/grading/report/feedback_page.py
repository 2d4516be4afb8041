"""The page that a student gets back: one file without scripts, everything of theirs escaped."""

import html
import re

from mha_classroom.checks.feedback import Feedback
from mha_classroom.grading.report.safe_text import number, visible

__all__ = ["heading", "page"]

WORDS = {
    "wrong": "not yet",
    "error": "stopped with an error",
    "timeout": "stopped",
    "crashed": "crashed",
    "out of memory": "out of memory",
    "borrowed": "calls what it should write",
    "missing": "was not written",
    "not run": "was not run",
}
MEANING = {
    "error": "Python raised an exception while it ran.",
    "timeout": "It did not come to an end. Is there a loop whose condition never becomes false?",
    "crashed": "It ended Python itself, so nothing could be compared. Your other tasks were graded "
    "without it.",
    "out of memory": "It asked for more memory than there is for one notebook. Is a tensor much "
    "larger than it has to be, or a list that never stops growing?",
    "borrowed": "It calls a finished version of what this task asks you to write.",
    "missing": "There is no answer of yours in the notebook for this task.",
    "not run": "It was not tried, so nothing is said about it.",
}
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
pre { overflow-x: auto; }
section div div { max-width: calc(100% - 3em); }
em { color: var(--quiet); font-style: normal; font-size: .9em; }
a { color: inherit; }
"""
FOOTER = (
    "<footer>Your answers were run on inputs drawn for this grading. Numbers that would give an "
    "answer away are not shown.</footer>"
)
KEPT = "\n\t"  # where text may have lines
POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"


def page(result, title="", seconds=None):
    """Return the HTML of one student's feedback on one lesson.

    result: of one submission, with what a human decided applied. title: of the exercise set, its
    name if empty. seconds: how long an answer was allowed to take.
    """
    title = title or result["lesson"].replace("_", " ")
    tasks, problem = result["tasks"], result["problem"]
    sections = [_section(i, task, seconds, problem) for i, task in enumerate(tasks, 1)]
    parts = [
        f"<header><h1>{_escape(title)}</h1>"
        f"<p>Feedback for <bdi>{_escape(result['student'])}</bdi></p></header><main>",
        *_total(result),
        *([_table(tasks, sections, seconds)] if tasks else []),
        *filter(None, sections),
        *_notes(result["notes"]),
        f"</main>{'' if problem else FOOTER}",
    ]
    body = "\n".join(parts)
    head = (
        f'<meta charset="utf-8"><meta http-equiv="Content-Security-Policy" content="{POLICY}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        '<meta name="referrer" content="no-referrer"><meta name="color-scheme" '
        f'content="light dark"><title>{_escape(title)} · {_escape(result["student"])}</title>'
        f"<style>{STYLE}</style>"
    )
    # The class keeps a learning platform that shows the page from reading $ as a formula.
    return (
        f'<!doctype html>\n<html lang="en"><head>{head}</head>\n<body class="mathjax_ignore '
        f'tex2jax_ignore">\n{body}\n</body></html>\n'
    )


def _total(result):
    if result["problem"]:
        yield f'<p class="told">Your notebook was not graded: {_escape(result["problem"])}</p>'
    points, best = number(result["points"]), number(result["max"])
    right = [task for task in result["tasks"] if task["verdict"] == "passed"]
    count = f" · {len(right)} of {len(result['tasks'])} tasks passed" if result["tasks"] else ""
    yield f'<p class="total"><strong>{points}</strong> of {best} points{count}</p>'
    yield f'<progress value="{points}" max="{best}" aria-hidden="true"></progress>'
    wrong = [task for task in result["tasks"] if task["points"] < task["max"]]
    if right and len(right) == len(result["tasks"]):
        yield '<p class="quiet">Every task is right. Well done!</p>'
    elif len(wrong) > 1 and not result["problem"]:
        first = f"<code>{_escape(_name(wrong[0]))}</code>"
        yield f'<p class="quiet">Begin with {first}: later tasks build on earlier ones.</p>'


def _table(tasks, sections, seconds):
    rows = []
    for index, (task, section) in enumerate(zip(tasks, sections, strict=True), 1):
        name = f"<code>{_escape(_name(task))}</code>"
        if section:
            name = f'<a href="#task-{index}">{name}</a>'
        points = f"{number(task['points'])} of {number(task['max'])}"
        mark, kind = ("✓", "mark") if task["verdict"] == "passed" else ("✗", "mark bad")
        words = _words(task, seconds) + ("; decided by your instructor" * ("machine" in task))
        rows.append(
            f'<tr><th scope="row">{name}</th><td><span class="{kind}" aria-hidden="true">{mark}'
            f'</span> {_escape(words)}</td><td class="points">{points}</td></tr>'
        )
    return (
        '<table><caption>Your tasks</caption><thead><tr><th scope="col">Task</th>'
        '<th scope="col">Result</th><th scope="col" class="points">Points</th></tr></thead>'
        f"<tbody>{''.join(rows)}</tbody></table>"
    )


def _words(task, seconds):
    """A verdict as a student reads it in the table."""
    verdict = task["verdict"]
    if verdict == "passed":
        return "passed, carried forward" if task["carried"] else "passed"
    if (task["feedback"] or {}).get("kind") == "unwritten":
        return WORDS["missing"]
    if verdict == "timeout" and seconds:
        return f"stopped after {number(seconds)} s"
    return WORDS.get(verdict, verdict)


def _section(index, task, seconds, problem):
    """What is said of one task, "" where the notebook's problem says it all."""
    if problem and not task["feedback"] and "machine" not in task:
        return ""
    points = f"{number(task['points'])} of {number(task['max'])} points"
    parts = [f'<p class="told">{_escape(text, KEPT)}</p>' for text in _told(task)]
    if task["feedback"]:
        parts.append(_box(task["feedback"]))
    elif task["verdict"] in MEANING:
        words = _escape(f"{_words(task, seconds)}.")
        parts.append(
            f"<p><strong>{words[0].upper()}{words[1:]}</strong> {MEANING[task['verdict']]}</p>"
        )
    return (
        f'<section id="task-{index}" aria-labelledby="name-{index}"><h2 id="name-{index}"><code>'
        f'{_escape(_name(task))}</code> <span class="points">{points}</span></h2>'
        f"{''.join(parts)}</section>"
    )


def _told(task):
    """What there is to say beside the check's own words."""
    if task["carried"]:
        earlier = [name.split("-", 1)[-1] for name in task["carried"]]
        theirs = "is wrong; with the course's version in its place"
        if len(earlier) > 1:
            theirs = "are wrong; with the course's versions in their place"
        full = ": full points" if task.get("machine", task["points"]) == task["max"] else ""
        names = " and ".join(earlier)
        yield f"Carried forward: your earlier {names} {theirs} this task is right{full}."
    if "machine" in task:
        comment = f": {task['comment']}" if task["comment"] else "."
        yield f"Decided by your instructor{comment}"


def _box(fields):
    # The lessons do not lie beside this page, and nothing here is a live message.
    fields = {name: _visible_in(value) for name, value in fields.items()} | {"lesson": ""}
    shown = Feedback(**fields)
    box = re.sub(r"<a [^>]*>(.*?)</a>", r"“\1”", shown._repr_html_(), flags=re.S)
    return box.replace(' role="status"', "")


def _visible_in(value):
    if isinstance(value, str):
        return visible(value, keep=KEPT)
    return tuple(map(_visible_in, value)) if isinstance(value, (list, tuple)) else value


def _notes(notes):
    if notes:
        items = "".join(f"<li>{_escape(note)}</li>" for note in notes)
        yield f"<section><h2>About your notebook</h2><ul>{items}</ul></section>"


def _name(task):
    return task["id"].split("-", 1)[-1]


def _escape(text, keep=""):
    return html.escape(visible(text, keep)).replace("$", "&#36;")


def heading(notebook):
    """The first heading of a notebook without its #, "" if there is none."""
    for cell in notebook.cells:
        for line in cell.source.splitlines() if cell.cell_type == "markdown" else ():
            if line.startswith("# "):
                return line[2:].strip()
    return ""
