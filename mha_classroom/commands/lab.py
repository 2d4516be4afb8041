"""The learner's own copies in work/, and JupyterLab serving them.

Nothing in work/ is ever overwritten or deleted: a copy is made only under a name that is free.
"""

from __future__ import annotations

import hashlib
import json
import os
import uuid
from contextlib import suppress
from importlib.util import find_spec
from itertools import count
from pathlib import Path

from mha_classroom.clone import CourseError, choose, stems

__all__ = ["create", "prepare", "reset", "serve", "trust"]

FOLDERS = ("notebooks", "exercises")
RECORD = ".given.json"
START = "notebooks/00_start_here.ipynb"


def prepare(root):
    """Copy what the learner does not have yet into root/work; returns the lines to tell them."""
    chosen = stems(root, FOLDERS)
    if not chosen:
        raise CourseError(f"There are no notebooks in {root / 'notebooks'}. Clone the course anew.")
    new, lines = [], []
    for name, made in _hand_out(root, chosen):
        if made == name:
            new.append(made)
        elif made:
            lines.append(f"{name} stays as it is; the course's present one is {made}.")
    if new:
        lines.insert(0, f"{len(new)} notebooks copied into {root / 'work'}.")
    return lines


def reset(root, word):
    """Put fresh copies of one lesson and its exercise beside the learner's; returns the lines."""
    chosen = choose(word, stems(root, FOLDERS))
    return [
        f"{made} is a fresh copy." + ("" if made == name else f" {name} stays as it is.")
        for name, made in _hand_out(root, chosen, anew=True)
    ]


def serve(root, args=()):
    """Open JupyterLab on root/work until it is stopped; `args` go to `jupyter lab`."""
    if find_spec("jupyterlab") is None:
        raise CourseError("JupyterLab is not installed. `mha-course doctor` says how to fix it.")
    from jupyterlab.labapp import main

    trust(root)
    work = root / "work"
    options = [f"--ServerApp.root_dir={work}"]
    if (work / START).is_file():
        options.append(f"--LabApp.default_url=/lab/tree/{START}")
    # Containers run as root; the server still listens on this machine only and asks for its token.
    if hasattr(os, "geteuid") and os.geteuid() == 0:
        options.append("--allow-root")
    # In this process, so that Ctrl-C and a kill reach the server on every system.
    return main([*options, *args])


def trust(root):
    """Sign the course's notebooks, so that JupyterLab shows their drawings before a cell is run.

    What a notebook holds is signed, not where it lies: copies in work/ count until they change.
    """
    import nbformat
    from jupyter_core.paths import jupyter_data_dir
    from nbformat.sign import NotebookNotary

    with suppress(OSError):  # no place to keep signatures: the drawings come with the first run
        Path(jupyter_data_dir()).mkdir(parents=True, exist_ok=True)
        notary = NotebookNotary()
        for stem in stems(root, FOLDERS):
            for path in (root / folder / f"{stem}.ipynb" for folder in FOLDERS):
                if path.is_file():
                    notary.sign(nbformat.read(path, as_version=4))


def create(path, content):
    """Write bytes to a new file, whole or not at all; returns whether the name was free."""
    if os.path.lexists(path):
        return False
    draft = path.parent / f".{uuid.uuid4().hex}.tmp"
    try:
        _write(draft, content)
        try:
            _publish(draft, path)
        except FileExistsError:
            return False
        except OSError:  # a file system without links
            return _create_without_link(path, content)
    finally:
        draft.unlink(missing_ok=True)
    return True


def _publish(draft, path):
    # Neither replaces what another start has put there meanwhile, as a rename does elsewhere.
    (os.rename if os.name == "nt" else os.link)(draft, path)


def _create_without_link(path, content):
    try:
        _write(path, content)
    except FileExistsError:
        return False
    except OSError:
        path.unlink(missing_ok=True)
        raise
    return True


def _write(path, content):
    with open(path, "xb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def _hand_out(root, chosen, anew=False):
    """(name, name of the copy made or found, or None) of each notebook, as paths from root."""
    work = root / "work"
    try:
        for folder in FOLDERS:
            (work / folder).mkdir(parents=True, exist_ok=True)
        given = _read_record(work)
        before = json.dumps(given)
        try:
            originals = [root / folder / f"{stem}.ipynb" for folder in FOLDERS for stem in chosen]
            return [_give(work, path, given, anew) for path in originals if path.is_file()]
        finally:
            if json.dumps(given) != before:
                _write_record(work, given)
    except OSError as error:
        raise CourseError(f"Your copies cannot be made in {work}: {error}") from error


def _give(work, original, given, anew):
    content = original.read_bytes()
    digest = hashlib.sha256(content).hexdigest()
    mine = work / original.parent.name / original.name
    key = f"{original.parent.name}/{original.name}"
    known = digest in given.get(key, ())
    if create(mine, content):
        made = mine
    elif not anew and (known or _same(mine, content)):
        made = None
    else:
        made = _create_beside(mine, content)
    if not known:
        given.setdefault(key, []).append(digest)
    return tuple(path and path.relative_to(work.parent).as_posix() for path in (mine, made))


def _create_beside(mine, content):
    """The path of a fresh copy next to `mine`; one that is still untouched is not made twice."""
    for number in count(1):
        ending = "_fresh" if number == 1 else f"_fresh_{number}"
        path = mine.with_name(f"{mine.stem}{ending}{mine.suffix}")
        if create(path, content) or _same(path, content):
            return path


def _same(path, content):
    try:
        return path.read_bytes() == content
    except OSError:  # a folder or a dead link under the name
        return False


def _read_record(work):
    """The sha256 of each original that was ever handed out, by notebook.

    Without it the copies are compared with the originals, so that losing it costs no more than
    one fresh copy beside each notebook that the learner has worked in.
    """
    path = work / RECORD
    try:
        given = json.loads(path.read_bytes())["given"]
        if all(isinstance(digests, list) for digests in given.values()):
            return given
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        pass
    with suppress(FileNotFoundError):  # another start has set it aside already
        path.rename(path.with_name(f"{RECORD}.broken-{uuid.uuid4().hex[:8]}"))
    return {}


def _write_record(work, given):
    draft = work / f"{RECORD}.{uuid.uuid4().hex}.tmp"
    try:
        _write(draft, json.dumps({"given": given}, indent=1).encode())
        os.replace(draft, work / RECORD)
    finally:
        draft.unlink(missing_ok=True)
