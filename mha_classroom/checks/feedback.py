"""What a check tells the learner: the same words as plain text and as HTML."""

import functools
import html
import json
import re
from dataclasses import dataclass

from mha_classroom.clone import CourseError, find_root

__all__ = ["Feedback"]

# Chosen to be read on white and on dark: the text itself keeps the colour of the theme.
GOOD, BAD = "#2e9e44", "#e5484d"
BOX = "border-left: 4px solid {}; padding: 4px 14px; margin: 4px 0; overflow-x: auto"
SIDE_BY_SIDE = "display: flex; gap: 0 3em; max-width: 100%"
# JupyterLab's own rule for pre breaks lines within a number. A mark in the last line has its line
# in the padding, or the text would scroll by that.
PRE = "margin: 0.3em 0; padding: 0 0 4px; line-height: 1.35; word-break: normal"
KEPT = "white-space: pre; overflow-x: auto"  # a line stays a line
BROKEN = "white-space: pre-wrap"  # only at spaces
MARK = f"background: none; color: inherit; font-weight: bold; border-bottom: 3px solid {BAD}"
WIDE, HIGH = 45, 8  # letters and lines: what has more stands below the comparison
BY_RESULTS = "(Recognised by your results. Other code can give the same results.)"


@dataclass(frozen=True, repr=False)
class Feedback:
    """The outcome of a check.

    kind: "passed"; "mistake" if a known one was recognised; else where the answer first goes
        wrong: "not run" (its cell failed), "unwritten", "raises", "timeout", "type", "shape",
        "dtype", "nan", "value", "changed inputs", "not repeatable", "borrowed", "strange" (cannot
        be compared), "earlier" (only an earlier task's function is wrong).
    message: one or two sentences for the learner.
    details: (heading, text) pairs: the inputs of the failing case, both results.
    remarks: what else there is to say, of a right answer too.
    mistake: the id of the known mistake that was recognised, "one + other" for two together,
        None if there is none.
    sections: headings of the lesson to read again. lesson: the stem of its notebook.
    """

    task_id: str
    kind: str
    message: str
    details: tuple[tuple[str, str], ...] = ()
    remarks: tuple[str, ...] = ()
    mistake: str | None = None
    sections: tuple[str, ...] = ()
    lesson: str = ""

    @property
    def passed(self):
        """Whether the answer is right."""
        return self.kind == "passed"

    def __str__(self):
        mark = "✓" if self.passed else "✗"
        lines = [f"{mark} {self.task_id}: {self.message}", *self.remarks]
        for heading, text in self.details:
            body = "\n".join("    " + line for line in text.split("\n"))
            lines.append(f"  {heading}:\n{body}")
        if self.sections:
            listed = " and ".join(f"“{section}”" for section in self.sections)
            again = f"Read again: lesson {self.task_id[:2]}, {listed}. {self._how_known()}"
            lines.append(again.strip())
        return "\n".join(lines)

    __repr__ = __str__

    def _repr_html_(self):
        colour, word = (GOOD, "✓ passed:") if self.passed else (BAD, "✗ not yet:")
        first = f"<strong>{word} {_escape(self.task_id)}</strong> · {_escape(self.message)}"
        parts = [f"<p>{line}</p>" for line in (first, *map(_escape, self.remarks))]
        parts += self._shown_details()
        if self.sections:
            parts.append(f"<p>Read again: {self._links()}. {self._how_known()}".strip() + "</p>")
        return f'<div role="status" style="{BOX.format(colour)}">{"".join(parts)}</div>'

    def _how_known(self):
        """What the name of a mistake rests on: nobody has read the learner's code."""
        return BY_RESULTS if self.mistake else ""

    def _shown_details(self):
        """Yours beside what was expected; what is small stands in the same row, the rest below."""
        compared = [d for d in self.details if d[0].startswith(("yours", "expected"))]
        others = [detail for detail in self.details if detail not in compared]
        small = [d for d in others if compared and not _is_large(d[1])]
        texts = _marked(*(text for _, text in compared)) if len(compared) == 2 else None
        texts = texts or [_escape(text) for _, text in compared]
        scrolls = any(_width(text) > WIDE for _, text in compared)
        row = [_block(heading, _escape(text), KEPT, scrolls) for heading, text in small]
        pair = [_block(d[0], text, KEPT, scrolls) for d, text in zip(compared, texts, strict=True)]
        if pair:
            row.append(f'<div style="{SIDE_BY_SIDE}">{"".join(pair)}</div>')
        below = [_block(h, _escape(text), BROKEN) for h, text in others if (h, text) not in small]
        first = (
            [f'<div style="{SIDE_BY_SIDE}; flex-wrap: wrap">{"".join(row)}</div>'] if row else []
        )
        return first + below

    def _links(self):
        page = f"../notebooks/{self.lesson}.ipynb"
        links = []
        for section in self.sections:
            anchor = html.escape(_anchor(self.lesson, section), quote=True)
            links.append(f'<a href="{page}#{anchor}">{_escape(section)}</a>')
        return f"lesson {_escape(self.task_id[:2])}, {' and '.join(links)}"


@functools.cache
def _anchor(lesson, section):
    """Where a section of a lesson is, for a link: JupyterLab finds a cell in a notebook that it is
    just opening, and a heading only in one that is open already."""
    try:
        notebook = json.loads((find_root() / "notebooks" / f"{lesson}.ipynb").read_bytes())
        for cell in notebook["cells"]:
            if re.search(rf"^#+ {re.escape(section)}$", "".join(cell["source"]), re.MULTILINE):
                return f"cell-id={cell['id']}"
    except (CourseError, OSError, ValueError, KeyError, TypeError):
        pass  # there is a page without the notebooks, too
    return section.replace(" ", "-")


def _block(heading, content, lines, scrolls=False):
    """A heading above a text in which numbers stay in their columns.

    scrolls: whether it may be wider than its place; then the keyboard reaches it too.
    """
    reached = f' tabindex="0" role="group" aria-label="{_escape(heading)}"' if scrolls else ""
    pre = f'<pre style="{PRE}; {lines}"{reached}>{content}</pre>'
    return f'<div style="min-width: 0"><em>{_escape(heading)}</em>{pre}</div>'


def _is_large(text):
    return text.count("\n") >= HIGH or _width(text) > WIDE


def _width(text):
    return max(map(len, text.split("\n")))


def _marked(yours, expected):
    """Both texts as HTML with the numbers that differ marked; None where all or none do, or where
    they do not stand in the same places."""
    one, other = (re.split(r"([^\s\[\](),]+)", text) for text in (yours, expected))
    if len(one) != len(other):
        return None
    words = range(1, len(one), 2)
    differ = {place for place in words if one[place] != other[place]}
    if not differ or len(differ) == len(words):
        return None
    return [
        "".join(
            f'<mark style="{MARK}">{_escape(part)}</mark>' if place in differ else _escape(part)
            for place, part in enumerate(parts)
        )
        for parts in (one, other)
    ]


def _escape(text):
    return html.escape(text).replace("$", "&#36;")
