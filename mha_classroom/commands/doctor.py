"""`mha-course doctor`: what is installed, what is missing and how to fix it.

Only the standard library is imported at the top: people run this when other imports fail.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from importlib import metadata
from importlib.util import find_spec

from mha_classroom.clone import CourseError, find_root, install_command
from mha_course import embedded

__all__ = ["Finding", "main", "packages", "report"]

OLDEST_PYTHON = (3, 11)
CLONE = "git clone the course and run this inside the clone"


@dataclass(frozen=True)
class Finding:
    """One thing looked at: `status` is "ok", "missing" or "note", `fix` a command or empty."""

    name: str
    status: str
    message: str
    fix: str = ""

    def __str__(self):
        line = f"{self.status:8}{self.name}: {self.message}"
        return f"{line}\n        to fix it: {self.fix}" if self.fix else line


def report():
    """Everything that the course needs, looked at in this Python, as a list of Finding."""
    findings = [
        _python(),
        _itself(),
        *map(_package, packages()),
        _torchvision(),
        _model(),
        _kernel(),
    ]
    try:
        root = find_root()
    except CourseError as error:
        return [*findings, Finding("notebooks", "missing", str(error), CLONE)]
    return [*findings, _notebooks(root), _work(root)]


def packages():
    """The names of the packages that the course needs, as it was installed; none if it was not."""
    try:
        needed = metadata.requires("mha-course") or ()
    except metadata.PackageNotFoundError:
        return []
    return [re.match(r"[\w.-]+", text)[0] for text in needed if "extra ==" not in text]


def main():
    """Print the report; returns 1 if something that the course needs is missing, else 0."""
    findings = report()
    for finding in findings:
        print(finding)
    missing = sum(finding.status == "missing" for finding in findings)
    print(f"\n{missing} to fix." if missing else "\nEverything that the course needs is here.")
    return 1 if missing else 0


def _python():
    version = ".".join(map(str, sys.version_info[:3]))
    where = f"{version} in {sys.executable}"
    if sys.version_info[:2] >= OLDEST_PYTHON:
        return Finding("Python", "ok", where)
    needed = ".".join(map(str, OLDEST_PYTHON))
    fix = f"install Python {needed} or newer, make a new environment with it and install there"
    return Finding("Python", "missing", f"{where} is older than {needed}", fix)


def _itself():
    if not packages():
        return Finding("mha-course", "missing", "not installed", _install())
    broken = _import_error("mha_course")
    if broken:
        message = f"the notebooks cannot import the course's package: {broken}"
        return Finding("mha-course", "missing", message, _install())
    return Finding("mha-course", "ok", "the notebooks can import mha_course")


def _package(name):
    try:
        version = metadata.version(name)
    except metadata.PackageNotFoundError:
        version = ""
    if find_spec(name) is None:
        return Finding(name, "missing", "not installed", _install())
    problem = _out_of_range(name, version)
    if problem:
        return Finding(name, "missing", problem, _install())
    if name == "torch":
        broken = _import_error(name)
        if broken:
            pip = f"{embedded.quoted(sys.executable)} -m pip install --force-reinstall --no-deps"
            again = f"{pip} {name}=={version.split('+')[0]}"
            return Finding(name, "missing", f"{version} does not import: {broken}", again)
    return Finding(name, "ok", version or "installed")


def _out_of_range(name, version):
    """What is wrong with a version that the course's own requirements do not allow, or ""."""
    try:
        from packaging.requirements import Requirement

        for text in metadata.requires("mha-course") or ():
            wanted = Requirement(text)
            if wanted.name == name and "extra" not in text:
                right = not version or wanted.specifier.contains(version, prereleases=True)
                return "" if right else f"{version} is installed, {wanted.specifier} is needed"
    except (ImportError, metadata.PackageNotFoundError):
        pass
    return ""


def _import_error(name):
    """The last line of what importing says, tried in a process of its own: it may crash."""
    command = [sys.executable, "-c", f"import {name}"]
    # Elsewhere than in the clone, where mha_course would be found without being installed.
    where = {"cwd": tempfile.gettempdir()}
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=120, **where)
    except subprocess.TimeoutExpired:
        return "the import did not end within two minutes"
    lines = done.stderr.strip().splitlines() or [f"the import ended with code {done.returncode}"]
    return lines[-1] if done.returncode else ""


def _torchvision():
    if find_spec("torchvision") is None:
        message = "not installed, which is fine: d2l imports it, and the course stands in for it"
        return Finding("torchvision", "note", message)
    return Finding("torchvision", "ok", "installed; the course does not need it")


def _model():
    problem = embedded.problem()
    if problem:
        said = problem.removesuffix(f" {embedded.fix()}")
        return Finding("model", "missing", said, embedded.command("setup-model"))
    return Finding("model", "ok", f"{embedded.DEFAULT}, in {embedded.folder()}")


def _kernel():
    inside = "--sys-prefix" if os.access(sys.prefix, os.W_OK) else "--user"
    fix = f"{embedded.quoted(sys.executable)} -m ipykernel install {inside} --name python3"
    try:
        from jupyter_client.kernelspec import KernelSpecManager, NoSuchKernel
    except ImportError as error:
        return Finding("kernel", "missing", f"Jupyter does not import: {error}", _install())
    try:
        spec = KernelSpecManager().get_kernel_spec("python3")
    except NoSuchKernel:
        return Finding("kernel", "missing", "Jupyter finds no kernel named python3", fix)
    except (OSError, ValueError) as error:
        return Finding("kernel", "missing", f"python3 cannot be read: {error}", fix)
    program = spec.argv[0] if spec.argv else ""
    # Jupyter starts a plain name of Python with the interpreter that it runs in itself.
    if program in ("python", "python3", "python{}.{}".format(*sys.version_info[:2])):
        return Finding("kernel", "ok", f"python3, started by {sys.executable}")
    found = shutil.which(program) if program else None
    if found is None:
        message = f"its interpreter {program or '(none)'} is missing, says {spec.resource_dir}"
        return Finding("kernel", "missing", message, fix)
    if not _same_python(found):
        message = f"{spec.resource_dir} starts another Python, {found}, than this one"
        return Finding("kernel", "missing", message, fix)
    return Finding("kernel", "ok", f"python3, started by {found}")


def _same_python(program):
    # All virtual environments of one Python link to the same file, so the folder counts too.
    folders = {os.path.realpath(os.path.dirname(path)) for path in (program, sys.executable)}
    return len(folders) == 1 and os.path.samefile(program, sys.executable)


def _notebooks(root):
    number = len(list((root / "notebooks").glob("*.ipynb")))
    if not number:
        return Finding("notebooks", "missing", f"none in {root / 'notebooks'}", CLONE)
    return Finding("notebooks", "ok", f"{number} in {root / 'notebooks'}")


def _work(root):
    work = root / "work"
    folder = work if os.path.lexists(work) else root
    try:
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        fix = f"make {folder} a folder that you may write in"
        return Finding("work", "missing", f"your copies cannot be kept there: {error}", fix)
    return Finding("work", "ok", f"your copies are kept in {work}")


def _install():
    try:
        return install_command()
    except CourseError:
        return CLONE
