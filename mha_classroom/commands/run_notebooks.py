"""Run a lesson and its solution in place, so that the same notebook gives the same file."""

from __future__ import annotations

import hashlib
import os
import re
import sys
import time
from pathlib import Path

import nbformat
from jupyter_client import AsyncKernelManager
from jupyter_client.kernelspec import KernelSpec
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError, CellTimeoutError, DeadKernelError

from mha_classroom.clone import CourseError, choose, find_root, stems

__all__ = ["as_text", "canonical", "read", "run", "write"]

FOLDERS = ("notebooks", "solutions")
KERNEL = {"display_name": "Python 3 (ipykernel)", "language": "python", "name": "python3"}
# The version of Python is left out: it differs from one machine to the next.
LANGUAGE = {
    "file_extension": ".py",
    "mimetype": "text/x-python",
    "name": "python",
    "nbconvert_exporter": "python",
    "pygments_lexer": "ipython3",
}
PASSING_NOTEBOOK_KEYS = ("jupytext", "signature", "toc", "widgets")
PASSING_CELL_KEYS = (
    "ExecuteTime",
    "cell_marker",
    "collapsed",
    "execution",
    "lines_to_end_of_cell_marker",
    "lines_to_next_cell",
    "scrolled",
    "trusted",
    "vscode",
)
WIDGET = "application/vnd.jupyter.widget-view+json"
# Where a file of the course, of a library or of Python lies is the machine's own business.
FOLDER_IN_TRACEBACK = re.compile(
    r"(?:~|[A-Za-z]:)?[/\\][^\x1b\n]*[/\\](?=(?:mha_course|mha_classroom|site-packages|python\d\.\d+)[/\\])"
)
SECONDS_A_CELL = 120


class _ThisPython(AsyncKernelManager):
    """Starts kernels with the interpreter that runs this, whatever kernels are registered."""

    @property
    def kernel_spec(self):
        command = [sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"]
        return KernelSpec(argv=command, display_name=KERNEL["display_name"], language="python")


def run(words, root=None, timeout=SECONDS_A_CELL):
    """Execute in place what `words` name: lessons (04), with their solutions, or notebook files.

    Returns 0, or 1 if a cell failed: that notebook's file stays as it was.
    """
    paths = [path for word in words for path in _paths(word, root)]
    return 1 if [path for path in paths if not _run_file(path, timeout)] else 0


def read(path):
    """The notebook in a file; cells that have no id yet get one that follows from their text."""
    return canonical(nbformat.reader.reads(path.read_text("utf-8")))


def write(path, notebook):
    """Write the canonical form, whole or not at all; returns whether the file changed."""
    content = as_text(notebook).encode("utf-8")
    if path.exists() and path.read_bytes() == content:
        return False
    draft = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    draft.write_bytes(content)
    os.replace(draft, path)
    return True


def as_text(notebook):
    """The text of a notebook's file in canonical form."""
    nbformat.validate(canonical(notebook))
    return nbformat.writes(notebook) + "\n"


def canonical(notebook):
    """Take out, in place, what differs from run to run; returns the notebook, in nbformat 4.5."""
    notebook.nbformat, notebook.nbformat_minor = 4, 5
    for key in PASSING_NOTEBOOK_KEYS:
        notebook.metadata.pop(key, None)
    notebook.metadata.update(nbformat.from_dict({"kernelspec": KERNEL, "language_info": LANGUAGE}))
    taken = set()
    for cell in notebook.cells:
        for key in PASSING_CELL_KEYS:
            cell.metadata.pop(key, None)
        if not cell.get("id") or cell.id in taken:
            cell.id = _new_id(cell, taken)
        taken.add(cell.id)
        if cell.cell_type == "code":
            cell.outputs = [_stable(output) for output in _merged(cell.outputs)]
    return notebook


def _new_id(cell, taken):
    text = f"{cell.cell_type}\n{cell.source}"
    for number in range(len(taken) + 1):
        new = hashlib.sha256(f"{number}\n{text}".encode()).hexdigest()[:8]
        if new not in taken:
            return new
    raise CourseError("Two cells of the notebook cannot be told apart.")


def _merged(outputs):
    """Between two other outputs one stream each of stdout and stderr, however it was chunked."""
    merged, streams = [], {}
    for output in outputs:
        if output.output_type != "stream":
            streams = {}
        elif output.name in streams:
            streams[output.name].text += output.text
            continue
        else:
            streams[output.name] = output
        merged.append(output)
    return merged


def _stable(output):
    if "data" in output and len(output.data) > 1:
        output.data.pop(WIDGET, None)  # it names a model that lives in one kernel only
    if output.output_type == "error":
        output.traceback = [FOLDER_IN_TRACEBACK.sub("", line) for line in output.traceback]
    return output


def _paths(word, root):
    if word.endswith(".ipynb") and Path(word).is_file():
        return [Path(word).resolve()]
    root = root or find_root()
    chosen = choose(word, stems(root, FOLDERS))
    paths = [root / folder / f"{stem}.ipynb" for stem in chosen for folder in FOLDERS]
    return [path for path in paths if path.exists()]


def _run_file(path, timeout):
    name = f"{path.parent.name}/{path.name}"
    try:
        notebook = read(path)
    except (ValueError, AttributeError, nbformat.ValidationError) as error:
        raise CourseError(f"{name} is not a notebook: {error}") from error
    started = time.monotonic()
    failure = _execute(notebook, path.parent, timeout)
    if failure:
        print(f"{name} failed and stays as it was. {failure}", file=sys.stderr)
        return False
    changed = "changed" if write(path, notebook) else "unchanged"
    print(f"{name}: {changed}, {time.monotonic() - started:.1f} s", flush=True)
    return True


def _execute(notebook, folder, timeout):
    """Run the cells; returns what went wrong, or None."""
    at = {}
    client = NotebookClient(
        notebook,
        kernel_manager_class=_ThisPython,
        on_cell_start=lambda cell, cell_index: at.update(cell=cell, index=cell_index),
        record_timing=False,
        resources={"metadata": {"path": str(folder)}},
        timeout=timeout,
    )
    for cell in notebook.cells:
        if cell.cell_type == "code" and not cell.source.strip():
            cell.outputs, cell.execution_count = [], None
    try:
        client.execute()
    except CellTimeoutError:
        reason = f"It took more than {timeout} s."
    except (CellExecutionError, DeadKernelError) as error:
        reason = re.sub(r"\x1b\[[0-9;]*m", "", getattr(error, "traceback", "") or str(error))
    else:
        return None
    number = sum(cell.cell_type == "code" for cell in notebook.cells[: at["index"] + 1])
    source = at["cell"].source
    return f"Cell {at['index'] + 1}, code cell [{number}]:\n\n{source}\n\n{reason}"
