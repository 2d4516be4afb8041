"""What a check tells the learner: the same words as plain text and as HTML."""

import html
from dataclasses import dataclass

__all__ = ["Feedback"]

GOOD, BAD = "#2e7d32", "#c62828"
BLOCK = "display: inline-block; vertical-align: top; margin-right: 3em"


@dataclass(frozen=True, repr=False)
class Feedback:
    """The outcome of a check.

    kind: "passed", or where the answer first goes wrong: "unwritten", "raises", "type", "shape",
        "dtype", "nan", "value", "changed inputs", "not repeatable", "borrowed".
    mistake: the id of the known mistake that was recognised, None if there is none.
    message: one or two sentences for the learner.
    details: (heading, text) pairs: the inputs of the failing case, both results.
    remarks: what may be said about a right answer.
    """

    task_id: str
    kind: str
    message: str
    details: tuple[tuple[str, str], ...] = ()
    remarks: tuple[str, ...] = ()
    mistake: str | None = None

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
        return "\n".join(lines)

    __repr__ = __str__

    def _repr_html_(self):
        colour, word = (GOOD, "✓ passed:") if self.passed else (BAD, "✗ not yet:")
        first = f"<strong>{word} {_escape(self.task_id)}</strong> · {_escape(self.message)}"
        parts = [f"<p>{line}</p>" for line in (first, *map(_escape, self.remarks))]
        for heading, text in self.details:
            block = f"<p><em>{_escape(heading)}</em></p><pre>{_escape(text)}</pre>"
            parts.append(f'<div style="{BLOCK}">{block}</div>')
        style = f"border-left: 4px solid {colour}; padding: 2px 12px"
        return f'<div role="status" style="{style}">{"".join(parts)}</div>'


def _escape(text):
    return html.escape(text).replace("$", "&#36;")
