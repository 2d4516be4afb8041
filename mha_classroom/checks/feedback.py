"""What a check tells the learner: the same words as plain text and as HTML."""

import html
from dataclasses import dataclass

__all__ = ["Feedback"]

# Chosen to be read on white and on dark: the text itself keeps the colour of the theme.
GOOD, BAD = "#2e9e44", "#e5484d"
BOX = "border-left: 4px solid {}; padding: 4px 14px; margin: 4px 0; overflow-x: auto"
BLOCK = "display: inline-block; vertical-align: top; margin: 0 3em 0.5em 0"
PRE = "margin: 0.3em 0; line-height: 1.35"


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
            lines.append(f"Read again: lesson {self.task_id[:2]}, {listed}.")
        return "\n".join(lines)

    __repr__ = __str__

    def _repr_html_(self):
        colour, word = (GOOD, "✓ passed:") if self.passed else (BAD, "✗ not yet:")
        first = f"<strong>{word} {_escape(self.task_id)}</strong> · {_escape(self.message)}"
        parts = [f"<p>{line}</p>" for line in (first, *map(_escape, self.remarks))]
        for heading, text in self.details:
            block = f'<em>{_escape(heading)}</em><pre style="{PRE}">{_escape(text)}</pre>'
            parts.append(f'<div style="{BLOCK}">{block}</div>')
        if self.sections:
            parts.append(f"<p>Read again: {self._links()}</p>")
        return f'<div role="status" style="{BOX.format(colour)}">{"".join(parts)}</div>'

    def _links(self):
        page = f"../notebooks/{self.lesson}.ipynb"
        links = []
        for section in self.sections:
            anchor = html.escape(section.replace(" ", "-"), quote=True)
            links.append(f'<a href="{page}#{anchor}">{_escape(section)}</a>')
        return f"lesson {_escape(self.task_id[:2])}, {' and '.join(links)}"


def _escape(text):
    return html.escape(text).replace("$", "&#36;")
