"""Files that students handed in are opened so that nothing hangs and no link is followed."""

import os
import stat

from mha_classroom.grading.handed_in.parse_notebook import Unreadable

__all__ = ["LIMIT", "LINK", "problem_of", "read_submission"]

LIMIT = 50_000_000  # bytes
LINK = "is a symbolic link, which is not followed"
KINDS = (
    (stat.S_ISLNK, LINK),
    (stat.S_ISDIR, "is a folder and not a file"),
    (stat.S_ISFIFO, "is a pipe and not a file"),
    (stat.S_ISSOCK, "is a socket and not a file"),
)


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
    for is_kind, words in KINDS:
        if is_kind(status.st_mode):
            raise Unreadable(words)
    if not stat.S_ISREG(status.st_mode):
        raise Unreadable("is a device and not a file")
    if status.st_size > LIMIT:
        size = status.st_size / 1_000_000
        raise Unreadable(f"has {size:.0f} MB, more than {LIMIT // 1_000_000} MB")
