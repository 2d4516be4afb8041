"""A file that anyone may have handed in, opened and read so that nothing in it can do harm."""

import json
import os
import re
import stat
import warnings

import nbformat

__all__ = ["LINK", "Unreadable", "label_of", "parse", "problem_of", "read_submission"]

LIMIT = 50_000_000  # bytes
LINK = "is a symbolic link, which is not followed"
REFUSED = (
    (stat.S_ISLNK, LINK),
    (stat.S_ISDIR, "is a folder and not a file"),
    (stat.S_ISFIFO, "is a pipe and not a file"),
    (stat.S_ISSOCK, "is a socket and not a file"),
)
MAX_CELLS = 2000
MAX_CODE = 2_000_000  # characters
MAX_BRACKETS = 3_000_000  # lists and objects cost far more memory than their two characters
KINDS = ("code", "markdown", "raw")
CELL_ID = re.compile(r"[a-zA-Z0-9_-]{1,64}")


class Unreadable(ValueError):
    """Why a submission cannot be graded, in words for the student and the instructor."""


def problem_of(path):
    """Why a file cannot be graded, in words, as far as opening it shows; "" if it can."""
    try:
        os.close(_open(path))
    except Unreadable as error:
        return str(error)
    return ""


def read_submission(path):
    """Return the content of a submission as bytes.

    Raises: Unreadable in words for a link, folder, pipe, device, a file that cannot be read or
        has more than 50 MB.
    """
    handle = _open(path)
    try:
        parts, left = [], LIMIT + 1
        while left > 0 and (part := os.read(handle, min(left, 1 << 20))):
            parts.append(part)
            left -= len(part)
    except OSError as error:
        raise Unreadable(f"cannot be read: {error.strerror}") from None
    finally:
        os.close(handle)
    if left <= 0:
        raise Unreadable(f"has more than {LIMIT // 1_000_000} MB")
    return b"".join(parts)


def _open(path):
    """A file descriptor of a regular file; looking first keeps devices from being touched."""
    try:
        _check_kind(os.lstat(path))
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        raise Unreadable(f"cannot be read: {error.strerror}") from None
    try:
        _check_kind(os.fstat(handle))
    except Unreadable:
        os.close(handle)
        raise
    return handle


def _check_kind(status):
    for is_kind, words in REFUSED:
        if is_kind(status.st_mode):
            raise Unreadable(words)
    if not stat.S_ISREG(status.st_mode):
        raise Unreadable("is a device and not a file")
    if status.st_size > LIMIT:
        size = status.st_size / 1_000_000
        raise Unreadable(f"has {size:.0f} MB, more than {LIMIT // 1_000_000} MB")


def parse(content):
    """Return the notebook in `content`, bytes, in format 4.5 and with what grading needs alone.

    Properties: cells keep their kind, source, id (a new one if it is missing, malformed or used
        before) and nbgrader's grade_id; the notebook keeps its metadata.mha_course. Outputs and
        all other metadata are dropped, whatever is in them.
    Raises: Unreadable, and nothing else, for what is no notebook of format 4 or of an older one.
    """
    data = _loaded(content)
    version = data.get("nbformat")
    if type(version) is not int or version < 1:
        raise Unreadable("is not a notebook: it does not say which format version it has")
    if version > 4:
        raise Unreadable(f"is a notebook of format version {str(version)[:20]}; 4 is the last")
    if version < 4:
        data = _converted(data, version)
    cells = data.get("cells")
    if not isinstance(cells, list):
        raise Unreadable("is not a notebook: it has no list of cells")
    if len(cells) > MAX_CELLS:
        raise Unreadable(f"has {len(cells)} cells, more than {MAX_CELLS}")
    used = set()
    cells = [_cell(cell, number + 1, used) for number, cell in enumerate(cells)]
    code = sum(len(cell["source"]) for cell in cells)
    if code > MAX_CODE:
        raise Unreadable(f"has {code} characters of code, more than {MAX_CODE}")
    label = _inside(data, "metadata", "mha_course")
    metadata = {"mha_course": label} if isinstance(label, dict) else {}
    metadata = {key: _plain_label(value) for key, value in metadata.items()}
    made = {"nbformat": 4, "nbformat_minor": 5, "metadata": metadata, "cells": cells}
    return nbformat.from_dict(made)


def label_of(content):
    """The exercise set that a notebook says it is, or None if it does not say so readably."""
    try:
        name = _inside(_loaded(content), "metadata", "mha_course", "exercise_set")
    except Unreadable:
        return None
    return name if isinstance(name, str) else None


def _loaded(content):
    """The JSON object in the bytes of a file."""
    if not content.strip():
        raise Unreadable("is empty")
    if content.startswith(b"PK\x03\x04"):
        raise Unreadable("is not a notebook but a zip file")
    if b"\0" in content:
        raise Unreadable("is not a notebook: it has NUL bytes, as binary files do")
    if content.count(b"[") + content.count(b"{") > MAX_BRACKETS:
        raise Unreadable(f"has more than {MAX_BRACKETS} brackets, too many to be read")
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise Unreadable(f"is not a notebook: byte {error.start} is not UTF-8 text") from None
    try:
        data = json.loads(text)
    except RecursionError:
        raise Unreadable("is nested too deeply for a notebook") from None
    except json.JSONDecodeError as error:
        place = f"line {error.lineno}, column {error.colno}"
        raise Unreadable(f"is not a notebook: malformed JSON at {place}: {error.msg}") from None
    except ValueError:  # a number of thousands of digits
        raise Unreadable("is not a notebook: it has a number that is too long") from None
    except MemoryError:
        raise Unreadable("is too large to be read") from None
    if not isinstance(data, dict):
        raise Unreadable("is not a notebook: its JSON is no object")
    return data


def _converted(data, version):
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return nbformat.convert(nbformat.from_dict(data), 4)
    except Exception as error:  # nbformat trips over a malformed old notebook in many ways
        raise Unreadable(
            f"is a notebook of format version {version} that cannot be converted to 4 "
            f"({type(error).__name__})"
        ) from None


def _cell(cell, number, used):
    if not isinstance(cell, dict) or not isinstance(cell.get("cell_type"), str):
        raise Unreadable(f"is not a notebook: cell {number} is no cell")
    kind = cell["cell_type"] if cell["cell_type"] in KINDS else "raw"
    source = _source(cell.get("source", ""), number)
    if kind == "code":
        _check_text(source, number)
    name = cell.get("id")
    if not isinstance(name, str) or not CELL_ID.fullmatch(name) or name in used:
        name = f"cell-{number}"
        while name in used:
            name += "-"
    used.add(name)
    grade_id = _inside(cell, "metadata", "nbgrader", "grade_id")
    known = isinstance(grade_id, str) and grade_id
    metadata = {"nbgrader": {"grade_id": grade_id}} if known else {}
    made = {"cell_type": kind, "id": name, "metadata": metadata, "source": source}
    if kind == "code":
        return made | {"outputs": [], "execution_count": None}
    return made | {"source": ""}


def _source(source, number):
    if isinstance(source, list) and all(isinstance(line, str) for line in source):
        return "".join(source)
    if not isinstance(source, str):
        raise Unreadable(f"is not a notebook: the source of cell {number} is no text")
    return source


def _check_text(source, number):
    if "\0" in source:
        raise Unreadable(f"has a NUL character in cell {number}, which Python does not allow")
    try:
        source.encode()
    except UnicodeEncodeError:
        raise Unreadable(f"has half a character (a lone surrogate) in cell {number}") from None


def _plain_label(label):
    """The two entries that grading reads, if they are of the right type."""
    name, version = label.get("exercise_set"), label.get("version")
    plain = {"exercise_set": name} if isinstance(name, str) else {}
    whole = type(version) is int and version > 0
    return plain | ({"version": version} if whole else {})


def _inside(data, *keys):
    for key in keys:
        data = data.get(key) if isinstance(data, dict) else None
    return data
