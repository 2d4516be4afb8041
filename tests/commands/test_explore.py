"""`mha-course explore` serves the page on this machine only, and says plainly why it cannot."""

import sys
from pathlib import Path

import pytest

from mha_classroom.commands import cli


@pytest.fixture(autouse=True)
def no_backend_left_behind(monkeypatch):
    # streamlit sets it for good when it is imported; notebooks run later would show no picture.
    monkeypatch.setenv("MPLBACKEND", "Agg")


@pytest.fixture
def streamlit_run(monkeypatch):
    import streamlit.web.cli as streamlit_cli

    calls = []
    monkeypatch.setattr(streamlit_cli, "main", lambda args, standalone_mode: calls.append(args))
    return calls


def test_the_command_serves_the_page_on_this_machine_only(streamlit_run):
    assert cli.main(["explore", "--port", "8599", "--server.headless=true"]) == 0
    (run, file, *options) = streamlit_run[0]
    assert run == "run" and Path(file).name == "page.py" and Path(file).is_file()
    assert {"--server.address=localhost", "--browser.gatherUsageStats=false"} < set(options)
    assert options[-2:] == ["--server.port=8599", "--server.headless=true"]


def test_the_command_says_what_streamlit_does_not_know(capsys):
    assert cli.main(["explore", "--server.nonsense=1"]) == 2
    assert "Streamlit says" in capsys.readouterr().err


def test_the_command_without_streamlit_says_how_to_install_it(monkeypatch, capsys):
    from mha_classroom.commands import explore as server

    monkeypatch.setattr(server, "find_spec", lambda name: None)
    assert cli.main(["explore"]) == 2
    said = capsys.readouterr().err
    assert f"{sys.executable} -m pip install" in said and '[app]"' in said
