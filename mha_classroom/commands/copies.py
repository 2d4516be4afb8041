"""The learner's own copies of the notebooks, in work/.

Nothing of a learner's is ever lost: a copy is made only under a name that is free, and replaced by
a newer version only while its bytes are those that were handed out.
"""

from __future__ import annotations

import hashlib
import json
import os
import uuid
from contextlib import contextmanager, suppress
from itertools import count
from pathlib import Path
from typing import NamedTuple

from mha_classroom.clone import CourseError, choose, stems

__all__ = ["FOLDERS", "Given", "NEWS", "as_opened", "create", "prepare", "replace", "reset"]

FOLDERS = ("notebooks", "exercises")
RECORD = ".given.json"
NEWS = "what_is_new.md"
NEW, RENEWED, BESIDE = "new", "renewed", "beside"


class Given(NamedTuple):
    """What became of one notebook: paths from the root.

    name: the learner's. made: the file that was written, None if there was nothing to do.
    how: "new", "renewed" (an older version that was never changed gave way) or "beside".
    is_new: whether this version of it was never handed out before.
    """

    name: str
    made: str | None
    how: str
    is_new: bool


def prepare(root):
    """Bring root/work up to date; returns the lines to say, and the page to open or None.

    That page, work/what_is_new.md, is written when notebooks that the learner has are new.
    """
    chosen = stems(root, FOLDERS)
    if not chosen:
        raise CourseError(f"There are no notebooks in {root / 'notebooks'}. Clone the course anew.")
    given = _hand_out(root, chosen)
    new = [one for one in given if one.made and one.how == NEW]
    renewed = [one for one in given if one.made and one.how == RENEWED and one.is_new]
    beside = [one for one in given if one.made and one.how == BESIDE]
    lines = [f"{len(new)} notebooks copied into {root / 'work'}."] if new else []
    if not (renewed or beside):
        return lines, None
    page = _write_news(root, renewed, beside)
    if renewed:
        lines.append(f"Renewed, as you had not changed them: {len(renewed)} notebooks.")
    if beside:
        lines.append(f"Changed by you, so they stay, with the new one beside: {len(beside)}.")
    return [*lines, f"Which ones: work/{page}"], page


def reset(root, word):
    """Put fresh copies of one lesson and its exercise beside the learner's; returns the lines."""
    chosen = choose(word, stems(root, FOLDERS))
    return [
        f"{one.made} is a fresh copy."
        + ("" if one.made == one.name else f" {one.name} stays as it is.")
        for one in _hand_out(root, chosen, anew=True)
    ]


def as_opened(content):
    """A notebook's bytes with what the kernel here says of its language.

    JupyterLab writes that in when it opens a notebook. Where it is there already, a notebook that
    was only read does not ask to be saved.
    """
    try:
        from ipykernel.ipkernel import IPythonKernel

        notebook = json.loads(content)
        if notebook["metadata"]["language_info"]["name"] != "python":
            return content
    except (ImportError, ValueError, TypeError, KeyError):
        return content
    notebook["metadata"]["language_info"] = IPythonKernel.language_info
    text = json.dumps(notebook, indent=1, sort_keys=True, ensure_ascii=False)
    return f"{text}\n".encode("utf-8", "surrogatepass")


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


def replace(path, content, known):
    """Put new bytes in the place of a file whose sha256 is one of `known`; returns whether.

    The file is taken aside before it is looked at: whoever saves it meanwhile makes a new one,
    which stays, or writes into the one aside, which is then not known and comes back.
    """
    if _digest(path) not in known:
        return False
    aside = path.with_name(f"{path.stem}.before_{uuid.uuid4().hex[:8]}{path.suffix}")
    try:
        os.rename(path, aside)
    except OSError:  # another program has it open, on Windows, or has moved it
        return False
    if _digest(aside) not in known:
        _put_back(aside, path)
        return False
    try:
        done = create(path, content)
    except OSError:
        _put_back(aside, path)
        raise
    aside.unlink()
    return done


def _put_back(aside, path):
    """Where a new file has the name by now, both stay."""
    try:
        _publish(aside, path)
    except FileExistsError:
        return
    except OSError:  # a file system without links: whoever has the one aside open writes on there
        _create_without_link(path, aside.read_bytes())
        return
    aside.unlink(missing_ok=True)


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
    """What became of each notebook, as Given."""
    work = root / "work"
    originals = [root / folder / f"{stem}.ipynb" for folder in FOLDERS for stem in chosen]
    with _record(work) as given:
        for folder in FOLDERS:
            (work / folder).mkdir(parents=True, exist_ok=True)
        found = []
        for path in originals:
            if path.is_file():
                name = f"{path.parent.name}/{path.name}"
                found.append(_give(work, name, path.read_bytes(), given, anew))
        return found


def _give(work, name, original, given, anew=False):
    """Hand one file out under `name`, and note it."""
    mine, digests = work / name, given.setdefault(name, [])
    first = _sum(original)
    is_new = first not in digests
    content = as_opened(original)
    known = {*digests, first, _sum(content)}
    how = NEW
    if create(mine, content):
        made = mine
    elif not anew and _digest(mine) == _sum(content):
        made = None
    elif not anew and replace(mine, content, known):
        made, how = mine, RENEWED
    elif not anew and not is_new:
        made = None
    else:
        made, how = _create_beside(mine, content, known), BESIDE
    digests += [digest for digest in (first, _sum(content)) if digest not in digests]
    said = made and made.relative_to(work.parent).as_posix()
    return Given(mine.relative_to(work.parent).as_posix(), said, how, is_new)


def _create_beside(mine, content, known):
    """The path of a fresh copy next to `mine`; an older one that is still untouched gives way.

    The name sorts below the learner's in JupyterLab, where "_" comes before ".", numbers after it,
    and "n" after "i".
    """
    for number in count(1):
        ending = ".new_version" if number == 1 else f".new_version{number}"
        path = mine.with_name(f"{mine.stem}{ending}{mine.suffix}")
        if create(path, content) or _digest(path) == _sum(content) or replace(path, content, known):
            return path


def _write_news(root, renewed, beside):
    """Write what is new as a page for the browser; returns its name in work/."""
    text = ["# The course was updated", ""]
    if beside:
        text += [
            "## You have changed these: yours stay as they are",
            "",
            "The new version of each lies beside it. Go on in whichever you like. Where later "
            "lessons use your answers, they take them from the one under the old name.",
            "",
            "| yours | the new version |",
            "|---|---|",
            *(f"| {_link(one.name)} | {_link(one.made)} |" for one in beside),
            "",
        ]
    if renewed:
        text += [
            "## You had not changed these: they are now the new version",
            "",
            *(f"- {_link(one.made)}" for one in renewed),
            "",
        ]
    text.append("**Go on:** [Start here](notebooks/00_start_here.ipynb)")
    content = ("\n".join(text) + "\n").encode()
    with _record(root / "work") as given:
        page = _give(root / "work", NEWS, content, given)
    return Path(page.made or page.name).name


def _link(name):
    path = Path(name).relative_to("work").as_posix()
    return f"[{path}]({path})"


def _digest(path):
    """The sha256 of a file's bytes; None for what is no file of its own or cannot be read."""
    try:
        return None if path.is_symlink() else _sum(path.read_bytes())
    except OSError:
        return None


def _sum(content):
    return hashlib.sha256(content).hexdigest()


@contextmanager
def _record(work):
    """The sha256 of everything that was ever handed out, by name, to be added to; kept in work/.

    Without it the copies are compared with the originals, so that losing it costs no more than
    one fresh copy beside each notebook that the learner has worked in.
    """
    try:
        work.mkdir(parents=True, exist_ok=True)
        given = _read_record(work)
        before = json.dumps(given)
        try:
            yield given
        finally:
            if json.dumps(given) != before:
                _write_record(work, given)
    except OSError as error:
        raise CourseError(f"Your copies cannot be made in {work}: {error}") from error


def _read_record(work):
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
