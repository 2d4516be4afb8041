"""The files that set the course up say the same thing, and nothing about one machine."""

import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
CORE = [Requirement(text) for text in PROJECT["dependencies"]]
EXTRAS = {
    name: [Requirement(text) for text in texts]
    for name, texts in PROJECT["optional-dependencies"].items()
}
DEV = EXTRAS["dev"]
CONDA_NAMES = {"pytorch": "torch", "matplotlib-base": "matplotlib"}
FILES = (
    ".ci/run .devcontainer/devcontainer.json .gitattributes .github/workflows/ci.yml "
    ".github/workflows/site.yml Makefile "
    ".pre-commit-config.yaml conftest.py constraints.txt environment.yml postBuild pyproject.toml"
).split()
HAS_MAKE = shutil.which("make") is not None


def pins():
    lines = (ROOT / "constraints.txt").read_text("utf-8").splitlines()
    found = [Requirement(line) for line in lines if line and not line.startswith("#")]
    return {canonicalize_name(pin.name): pin for pin in found}


@pytest.mark.parametrize("wanted", CORE + DEV + EXTRAS["browser"], ids=str)
def test_every_dependency_is_pinned_within_its_range(wanted):
    (pin,) = pins()[canonicalize_name(wanted.name)].specifier
    assert pin.operator == "==" and wanted.specifier.contains(pin.version)


def test_tests_run_with_every_extra():
    assert {"app", "transformers"} <= set(EXTRAS)
    others = {name: wanted for name, wanted in EXTRAS.items() if name != "browser"}
    assert all(set(wanted) <= set(DEV) for wanted in others.values())


def test_pins_are_exact_public_versions():
    assert len(pins()) > 100
    for pin in pins().values():
        assert re.fullmatch(r"==[0-9][\w.]*", str(pin.specifier)), pin
    assert not {"pip", "setuptools", "mha-course"} & set(pins())


def test_conda_gets_the_same_packages_in_the_same_ranges():
    entries = yaml.safe_load((ROOT / "environment.yml").read_text("utf-8"))["dependencies"]
    from_pip = next(entry["pip"] for entry in entries if isinstance(entry, dict))
    conda = {}
    for entry in entries:
        if isinstance(entry, str) and not entry.startswith("python="):
            requirement = Requirement(entry)
            conda[CONDA_NAMES.get(requirement.name, requirement.name)] = requirement.specifier
    # Binder looks for one Python, and takes an older one where it finds a range.
    python = next(entry for entry in entries if str(entry).startswith("python"))
    version = re.fullmatch(r"python=(3\.\d+)", python)[1]
    assert SpecifierSet(PROJECT["requires-python"]).contains(version)
    conda.pop("pip")
    assert "-e ." in from_pip
    for text in set(from_pip) - {"-e ."}:
        requirement = Requirement(text)
        conda[requirement.name] = requirement.specifier
    assert conda == {wanted.name: wanted.specifier for wanted in CORE}


@pytest.mark.parametrize("name", FILES)
def test_no_registry_and_no_machine_is_named(name):
    text = (ROOT / name).read_text("utf-8").replace("https://download.pytorch.org/whl/cpu", "")
    assert not re.search(r"https?://|file:|index-url|find-links|/home/|/root/|/tmp/", text)


def test_workflow_runs_what_every_machine_runs():
    workflow = yaml.safe_load((ROOT / ".github/workflows/ci.yml").read_text("utf-8"))
    steps = [step.get("run") for step in workflow["jobs"]["linux"]["steps"]]
    assert ".ci/run" in steps
    browser = [step.get("run") for step in workflow["jobs"]["browser"]["steps"]]
    assert browser[-1] == ".ci/run browser"
    assert os.access(ROOT / ".ci/run", os.X_OK) or os.name == "nt"
    # Windows has no make, and runs the same tests.
    flags = [word for line in makefile() for word in line.split() if word.startswith("--nbval")]
    commands = [step.get("run") for step in workflow["jobs"]["windows"]["steps"]]
    assert commands.index("mha-course setup-model") < commands.index("mha-course doctor")
    windows = commands[-1]
    assert flags and all(flag in windows for flag in flags) and "--dist loadfile" in windows


def makefile():
    return (ROOT / "Makefile").read_text("utf-8").splitlines()


def test_make_lists_all_targets():
    targets = {line.split(":")[0] for line in makefile() if re.match(r"[a-z-]+:( |$)", line)}
    targets -= {"need-nb"}  # of others
    wanted = "help lab test test-browser run edit save exercises lint bench study prove pictures"
    wanted = [*wanted.split(), "site", "doctor"]
    assert targets == set(wanted)
    phony = " ".join(line for line in makefile() if line.startswith(".PHONY:"))
    assert targets <= set(phony.split())
    assert all(any(re.match(rf"{target}:.*## ", line) for line in makefile()) for target in wanted)
    if HAS_MAKE:
        done = subprocess.run(["make"], cwd=ROOT, capture_output=True, text=True, check=True)
        shown = re.findall(r"^  make ([\w-]+)", done.stdout, re.M)
        assert sorted(shown) == sorted(wanted)


def make(folder, *args, **environment):
    command = ["make", *args]
    environment = {**os.environ, "PIP_NO_INDEX": "1", **environment}
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)


@pytest.fixture
def empty(tmp_path):
    """A folder with a Makefile and nothing that could be installed."""
    folder = tmp_path / "a clöne"
    folder.mkdir()
    for name in ("Makefile", "constraints.txt"):
        shutil.copy(ROOT / name, folder)
    (folder / "pyproject.toml").write_text("not a project")
    return folder


@pytest.fixture
def stand_in(tmp_path):
    """A program that can be named as PYTHON: it notes its arguments and answers as told."""

    def write(answer):
        path = tmp_path / "stand-in"
        path.write_text(f'#!/bin/sh\necho "$@" >> "{tmp_path}/calls"\n{answer}\n')
        path.chmod(0o755)
        return f"PYTHON={path}"

    return write


if HAS_MAKE:

    def test_a_python_that_is_too_old_gets_a_sentence(empty, stand_in):
        done = make(empty, "lab", stand_in("exit 1"))
        assert done.returncode != 0 and "needs Python 3.11 or newer" in done.stdout
        assert "make lab PYTHON=python3.12" in done.stdout

    def test_a_python_without_venv_gets_a_sentence(empty, stand_in):
        done = make(empty, "test", stand_in('case "$2" in *ensurepip*) exit 1;; esac'))
        assert done.returncode != 0 and "python3-venv" in done.stdout

    def test_an_interrupted_install_starts_from_nothing(empty, stand_in, tmp_path):
        (empty / ".venv").mkdir()
        over = subprocess.Popen([sys.executable, "-c", ""])
        over.wait()
        (empty / ".venv" / ".installing").write_text(f"{over.pid}\n")
        make(empty, "lab", stand_in("exit 0"))
        assert "-m venv --clear .venv" in (tmp_path / "calls").read_text()

    def test_two_installs_do_not_meet(empty, stand_in, tmp_path):
        (empty / ".venv").mkdir()
        (empty / ".venv" / ".installing").write_text(f"{os.getpid()}\n")
        done = make(empty, "lab", stand_in("exit 0"))
        assert done.returncode != 0 and "Another make is installing" in done.stdout
        assert not (tmp_path / "calls").exists()

    def test_a_failed_install_is_not_taken_for_done(empty, stand_in):
        makes_itself = 'mkdir -p .venv/bin; cp "$0" .venv/bin/python'
        answer = f'case "$*" in *"-m venv"*) {makes_itself};; *"pip install"*) exit 3;; esac'
        done = make(empty, "lab", stand_in(answer))
        assert done.returncode != 0 and "The install failed" in done.stdout
        assert not list((empty / ".venv").glob(".ready*"))
        assert not (empty / ".venv" / ".installing").exists()

    @pytest.mark.parametrize("target", ["run", "edit", "save"])
    def test_a_lesson_must_be_named(empty, target):
        done = make(empty, target)
        assert done.returncode != 0 and "NB=04" in done.stdout
        assert not (empty / ".venv").exists()


def test_the_model_comes_with_every_way_of_setting_up():
    (install,) = [line for line in makefile() if "pip install" in line]
    assert "&& $(COURSE) setup-model && " in install
    assert (ROOT / "postBuild").read_text("utf-8").splitlines()[-1] == "mha-course setup-model"
    assert os.access(ROOT / "postBuild", os.X_OK) or os.name == "nt"
    container = json.loads((ROOT / ".devcontainer/devcontainer.json").read_text("utf-8"))
    assert container["postCreateCommand"] == "make .venv/.ready"
    # With a folder binder/, Binder would take no notice of the files at the top.
    assert not (ROOT / "binder").exists() and not (ROOT / ".binder").exists()


if HAS_MAKE:

    def test_a_model_that_could_not_be_had_is_not_taken_for_done(empty, stand_in):
        makes_itself = 'mkdir -p .venv/bin; cp "$0" .venv/bin/python'
        answer = f'case "$*" in *"-m venv"*) {makes_itself};; *setup-model*) exit 2;; esac'
        done = make(empty, "lab", stand_in(answer))
        assert done.returncode != 0 and "The install failed" in done.stdout
        assert not list((empty / ".venv").glob(".ready*"))

    def test_the_model_is_looked_for_once(empty, stand_in, tmp_path):
        makes_itself = 'mkdir -p .venv/bin; cp "$0" .venv/bin/python'
        option = stand_in(f'case "$*" in *"-m venv"*) {makes_itself};; esac')
        for _ in range(2):
            assert make(empty, "test", option).returncode == 0
        calls = (tmp_path / "calls").read_text().splitlines()
        assert calls.count("-m mha_classroom.commands.cli setup-model") == 1
        assert sum("-m pytest" in call for call in calls) == 2


SKIPS = {
    "test_body.py": "import pytest\ndef test():\n    pytest.skip('no gadget')\n",
    "test_import.py": "import pytest\npytest.importorskip('no_gadget')\n",
    "test_mark.py": "import pytest\n@pytest.mark.skipif(True, reason='x')\ndef test():\n    0\n",
    "test_fine.py": "import pytest\n@pytest.mark.xfail\ndef test():\n    assert 0\n",
}


@pytest.mark.parametrize(
    ("ci", "workers", "counts"),
    [("", "0", "3 skipped, 1 xfailed"), ("1", "0", "1 failed, 1 xfailed, 2 errors")]
    + [("1", "2", "1 failed, 1 xfailed, 2 errors")],
)
def test_a_skip_is_a_failure_in_ci_only(tmp_path, ci, workers, counts):
    shutil.copy(ROOT / "conftest.py", tmp_path)
    for name, source in SKIPS.items():
        (tmp_path / name).write_text(source)
    command = "-m pytest -q --continue-on-collection-errors -p xdist -p no:cacheprovider -n"
    environment = {**os.environ, "CI": ci, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    done = subprocess.run(
        [sys.executable, *command.split(), workers],
        **{"cwd": tmp_path, "env": environment, "capture_output": True, "text": True},
    )
    assert counts in done.stdout.splitlines()[-1], done.stdout
    assert ("CI does not allow" in done.stdout) == bool(ci) == bool(done.returncode)
