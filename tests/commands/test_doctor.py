"""What `mha-course doctor` finds, and that it runs where nothing is installed."""

import json
import os
import shutil
import subprocess
import sys
import tomllib
from importlib import metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from mha_classroom import clone
from mha_classroom.commands import doctor
from mha_course import embedded

PACKAGE = Path(clone.__file__).parent


def finding(name):
    return next(found for found in doctor.report() if found.name == name)


_import_error = doctor._import_error


@pytest.fixture(autouse=True)
def no_import(monkeypatch):
    """The slow imports in a process of their own are left out where they are not the point."""
    monkeypatch.setattr(doctor, "_import_error", lambda name: "")


@pytest.fixture
def without(monkeypatch):
    """Make a package look as if it were not installed."""
    find = doctor.find_spec

    def hide(missing):
        monkeypatch.setattr(doctor, "find_spec", lambda n: None if n == missing else find(n))

    return hide


def test_every_requirement_of_the_course_is_looked_at(monkeypatch):
    project = tomllib.loads((PACKAGE.parent / "pyproject.toml").read_text("utf-8"))["project"]
    assert doctor.packages() == [Requirement(text).name for text in project["dependencies"]]
    assert {"torch", "d2l", "nbval"} < set(doctor.packages())

    def missing(name):
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(doctor.metadata, "requires", missing)
    assert doctor.packages() == []


def test_a_python_that_is_too_old(monkeypatch):
    monkeypatch.setattr(doctor.sys, "version_info", (3, 10, 4, "final", 0))
    found = finding("Python")
    assert found.status == "missing" and "3.10.4" in found.message and "3.11" in found.fix


@pytest.mark.parametrize("name", doctor.packages())
def test_a_package_that_is_not_installed(without, name):
    without(name)
    found = finding(name)
    assert found.status == "missing" and found.message == "not installed"
    assert "-m pip install" in found.fix or "clone" in found.fix


def test_a_version_out_of_range(monkeypatch):
    real = metadata.version
    monkeypatch.setattr(
        doctor.metadata, "version", lambda name: "1.0.3" if name == "d2l" else real(name)
    )
    found = finding("d2l")
    assert (found.status, found.message) == ("missing", "1.0.3 is installed, ==0.17.0 is needed")


def test_torch_that_does_not_import(monkeypatch):
    monkeypatch.setattr(doctor, "_import_error", lambda name: "OSError: libtorch.so is gone")
    found = finding("torch")
    assert found.status == "missing" and "libtorch.so is gone" in found.message
    assert "--force-reinstall" in found.fix and "+cpu" not in found.fix


def test_the_reason_of_a_failed_import_is_its_last_line():
    assert _import_error("json") == ""
    assert _import_error("no_such_thing").startswith("ModuleNotFoundError")


def test_d2l_without_torchvision_is_fine(without):
    without("torchvision")
    found = finding("torchvision")
    assert found.status == "note" and "stands in for it" in found.message and not found.fix


def test_the_model_is_there():
    found = finding("model")
    assert found.status == "ok" and embedded.DEFAULT in found.message and not found.fix


def test_a_model_that_is_not_installed(monkeypatch):
    monkeypatch.setattr(embedded, "MODULE", "no_such_model")
    found = finding("model")
    assert (found.status, found.message) == (
        "missing",
        "The model all-MiniLM-L6-v2 is not installed.",
    )
    assert found.fix == embedded.command("setup-model")


def test_a_model_with_other_weights(monkeypatch, tmp_path):
    (tmp_path / embedded.WEIGHTS).write_bytes(b"other")
    monkeypatch.setattr(embedded, "folder", lambda: tmp_path)
    found = finding("model")
    assert found.status == "missing" and embedded.SHA256 in found.message
    assert found.fix == embedded.command("setup-model")


def test_the_command_is_said_as_it_can_be_typed(monkeypatch, tmp_path):
    scripts = tmp_path / "my env"
    scripts.mkdir()
    monkeypatch.setattr(embedded.sysconfig, "get_path", lambda name: str(scripts))
    monkeypatch.setattr(embedded.sys, "executable", "/opt/python")
    monkeypatch.setenv("PATH", str(tmp_path / "elsewhere"))
    assert embedded.command("doctor") == "/opt/python -m mha_classroom.commands.cli doctor"
    program = scripts / ("mha-course.exe" if os.name == "nt" else "mha-course")
    program.write_text("")
    program.chmod(0o755)
    assert embedded.command("doctor") == f'"{scripts / "mha-course"}" doctor'
    monkeypatch.setenv("PATH", str(scripts))
    assert embedded.command("doctor") == "mha-course doctor"
    assert embedded.fix() == "`mha-course setup-model` brings it (91 MB)."
    other = tmp_path / "other"  # a command of the same name in another environment
    shutil.copytree(scripts, other)
    monkeypatch.setenv("PATH", str(other))
    assert embedded.command("doctor") == f'"{scripts / "mha-course"}" doctor'


def kernel(tmp_path, monkeypatch, text):
    """Let Jupyter find one kernel named python3, with this kernel.json, and no other."""
    folder = tmp_path / "kernels" / "python3"
    folder.mkdir(parents=True)
    (folder / "kernel.json").write_text(text)
    monkeypatch.setenv("JUPYTER_PATH", str(tmp_path))
    monkeypatch.setenv("JUPYTER_PREFER_ENV_PATH", "0")
    return finding("kernel")


def spec(program):
    return json.dumps({"argv": [program, "-m", "x"], "display_name": "x", "language": "python"})


def test_kernel_of_this_python(tmp_path, monkeypatch):
    assert kernel(tmp_path, monkeypatch, spec(sys.executable)).status == "ok"


def test_kernel_by_plain_name(tmp_path, monkeypatch):
    assert kernel(tmp_path, monkeypatch, spec("python")).status == "ok"


def test_kernel_whose_interpreter_is_gone(tmp_path, monkeypatch):
    found = kernel(tmp_path, monkeypatch, spec(str(tmp_path / "old" / "python")))
    assert found.status == "missing" and "is missing" in found.message
    assert "-m ipykernel install" in found.fix


def test_kernel_of_another_python(tmp_path, monkeypatch):
    other = tmp_path / "bin" / Path(sys.executable).name
    other.parent.mkdir()
    other.write_bytes(b"")
    other.chmod(0o755)
    found = kernel(tmp_path, monkeypatch, spec(str(other)))
    assert found.status == "missing" and f"another Python, {other}" in found.message


def test_kernel_that_cannot_be_read(tmp_path, monkeypatch):
    assert kernel(tmp_path, monkeypatch, "{").status == "missing"


def test_no_kernel_at_all(monkeypatch):
    from jupyter_client import kernelspec

    def nothing(self, name):
        raise kernelspec.NoSuchKernel(name)

    monkeypatch.setattr(kernelspec.KernelSpecManager, "get_kernel_spec", nothing)
    assert finding("kernel").status == "missing"


def test_outside_a_clone(monkeypatch):
    def nowhere():
        raise clone.CourseError("not here")

    monkeypatch.setattr(doctor, "find_root", nowhere)
    assert finding("notebooks").status == "missing"
    assert doctor.main() == 1


def test_notebooks_and_work(tmp_path, monkeypatch):
    monkeypatch.setattr(doctor, "find_root", lambda: tmp_path)
    assert finding("notebooks").status == "missing"
    (tmp_path / "notebooks").mkdir()
    (tmp_path / "notebooks" / "00_start_here.ipynb").touch()
    assert finding("notebooks").status == "ok" and finding("work").status == "ok"
    (tmp_path / "work").write_text("a file")
    assert finding("work").status == "missing"


def test_findings_are_printed_with_what_mends_them(capsys, monkeypatch):
    findings = [doctor.Finding("a", "ok", "1.0"), doctor.Finding("b", "missing", "gone", "get b")]
    monkeypatch.setattr(doctor, "report", lambda: findings)
    assert doctor.main() == 1
    assert capsys.readouterr().out.splitlines() == [
        "ok      a: 1.0",
        "missing b: gone",
        "        to fix it: get b",
        "",
        "1 to fix.",
    ]
    findings.pop()
    assert doctor.main() == 0


@pytest.mark.parametrize("command", ["doctor", "lab"])
def test_without_any_package_there_is_a_sentence_and_no_traceback(tmp_path, command):
    for package in ("mha_course", "mha_classroom"):
        shutil.copytree(PACKAGE.parent / package, tmp_path / package)
    (tmp_path / "notebooks").mkdir()
    (tmp_path / "notebooks" / "00_start_here.ipynb").write_text("{}")
    # -S leaves the installed packages out, so that only the standard library is there.
    code = f"import sys; from mha_classroom.commands.cli import main; sys.exit(main(['{command}']))"
    done = subprocess.run(
        [sys.executable, "-S", "-c", code], cwd=tmp_path, capture_output=True, text=True
    )
    assert "Traceback" not in done.stderr
    if command == "lab":
        assert done.returncode == 2 and "JupyterLab is not installed" in done.stderr
    else:
        assert done.returncode == 1 and "missing mha-course: not installed" in done.stdout
        assert "to fix it: git clone" in done.stdout or "-m pip install" in done.stdout
