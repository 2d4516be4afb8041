"""A student's own text, as a sum that is the same where the text is."""

import hashlib
import json

from mha_classroom.grading.fit.cell_sources import tidy
from mha_classroom.grading.fit.matching import frame_of

__all__ = ["own_text"]

LEAST_LINES = 10  # of the student's own: two who write fewer may well write the same


def own_text(answers, exercise):
    """Return (a sum of the answers, how many tasks, how many own lines), None of too little text.

    answers: {task id: source}. exercise: as it was handed out; its lines are nobody's own.
    Properties: spaces at the ends of lines and empty lines do not count. An answer of one own line
        counts for nothing, but two are only alike if these are, too.
    """
    released = {cell.id: cell.source for cell in frame_of(exercise) if cell.kind == "answer"}
    lines = {name: _own_lines(source, released.get(name, "")) for name, source in answers.items()}
    longer = [count for count in lines.values() if count > 1]
    if sum(longer) < LEAST_LINES:
        return None
    texts = {name: [x for x in _lines(answers[name]) if x] for name in answers}
    whole = json.dumps(texts, sort_keys=True).encode("utf-8", "backslashreplace")
    return hashlib.sha256(whole).hexdigest(), len(answers), sum(lines.values())


def _own_lines(source, released):
    known = {line.strip() for line in _lines(released)}
    return sum(bool(line.strip()) and line.strip() not in known for line in _lines(source))


def _lines(source):
    return tidy(source).split("\n")
