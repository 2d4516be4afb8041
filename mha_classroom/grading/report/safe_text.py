"""Names and texts that others chose, made safe for a page, a terminal, a spreadsheet, a disk."""

import hashlib
import re
import unicodedata
from pathlib import Path

__all__ = [
    "case_clashes",
    "cell_text",
    "feedback_path",
    "guarded",
    "number",
    "plain_text",
    "visible",
]

JOINERS = "\u200c\u200d"  # not seen, but Persian, Indian scripts and emoji need them
UNSEEN = {"Cc", "Cf", "Cs", "Zl", "Zp"}  # control, direction, half characters, line ends
# What begins a formula, in the widths and sizes that a spreadsheet may take for the same.
SIGNS = r"=+\-@＝＋－＠﹦﹢﹣﹫⁼⁺⁻₌₊₋−"
# After a semicolon too: where that separates columns, a file with commas is cut there.
AHEAD = rf"(?=['\"\s{JOINERS}]*[{SIGNS}])"
FORMULA, GUARDED = re.compile(rf"(^|;){AHEAD}"), re.compile(rf"(^|;)'{AHEAD}")
ESCAPE = re.compile(r"\\(\\|[nrt]|x[0-9a-f]{2}|u[0-9a-f]{4}|U[0-9a-f]{8})")
UNSAFE = re.compile(r'^[-.~ ]|[<>:"/\\|?*]|[. ]$')
RESERVED = re.compile(r"(con|prn|aux|nul|conin\$|conout\$|(com|lpt)[0-9¹²³]) *(\..*)?", re.I | re.S)
MARKED = re.compile(r"~[0-9a-f]{16}$", re.I)
LONGEST = 120  # bytes of a folder's name


def visible(text, keep=""):
    """The text with what cannot be seen (line ends, terminal codes, direction marks) as escapes.

    A name stays one line, and neither a terminal nor a page is led astray. `keep`: what stays.
    """
    if text.isprintable():
        return text
    return "".join(
        c.encode("unicode_escape").decode()
        if unicodedata.category(c) in UNSEEN and c not in keep + JOINERS
        else c
        for c in text
    )


def number(x):
    """Points as text: "2", "0.5"."""
    return f"{round(float(x), 6):.6f}".rstrip("0").rstrip(".")


def cell_text(text):
    """The text as a cell that no spreadsheet runs; `plain_text` gives the text back.

    Properties: an apostrophe stands before what would begin a formula; line ends and whatever
        cannot be seen become escapes, so that a cell is one line.
    """
    return guarded(text.replace("\\", r"\\"))


def guarded(text):
    """The text as a cell that no spreadsheet runs, for other programs to read."""
    return FORMULA.sub(r"\1'", visible(text))


def plain_text(cell):
    """The text that `cell_text` made a cell of."""

    def char(match):
        code = match[1]
        named = {"\\": "\\", "n": "\n", "r": "\r", "t": "\t"}
        return named[code] if code in named else chr(int(code[1:], 16))

    return ESCAPE.sub(char, GUARDED.sub(r"\1", cell))


def case_clashes(students):
    """Those students whose names are one and the same to a file system without upper case."""
    alike = {}
    for student in set(students):
        alike.setdefault(unicodedata.normalize("NFKC", student).casefold(), []).append(student)
    return frozenset(name for names in alike.values() if len(names) > 1 for name in names)


def feedback_path(out, student, lesson, clashes=()):
    """Where a student's page lies: out/feedback/<student>/<lesson>.html.

    Properties: two students never share a file. An ordinary name stays as it is; one that some
        system cannot take as a folder, or that is among `clashes`, is altered and marked with a
        sum of the whole name.
    """
    folder = _safe(student, student in clashes)
    return Path(out, "feedback", folder, f"{_safe(lesson)}.html")


def _safe(name, mark=False):
    tame = UNSAFE.sub("_", visible(name)).encode("utf-8", "replace")[:LONGEST]
    tame = tame.decode("utf-8", "ignore")
    if RESERVED.fullmatch(tame):
        tame = f"_{tame}"
    if tame == name != "" and not MARKED.search(name) and not mark:
        return name
    whole = hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:16]
    return f"{tame or '_'}~{whole}"
