"""JupyterLab as the course serves it, and what the command line says."""

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import sysconfig
import time
import urllib.request
from contextlib import closing
from pathlib import Path

import nbformat
import pytest
from nbformat.sign import NotebookNotary
from small_clone import ALL, STEMS, notebooks, put
from websocket import WebSocketBadStatusException, create_connection

from mha_classroom import clone
from mha_classroom.commands import cli, copies, lab

PACKAGE = Path(clone.__file__).parent


def test_the_copies_are_trusted_until_they_change(root, tmp_path, monkeypatch):
    monkeypatch.setenv("JUPYTER_DATA_DIR", str(tmp_path / "data" / "jupyter"))
    cell = nbformat.v4.new_code_cell("1", outputs=[nbformat.v4.new_output("stream", text="1")])
    put(
        root, "notebooks/04_head_splitting", nbformat.writes(nbformat.v4.new_notebook(cells=[cell]))
    )
    copies.prepare(root)
    copy = nbformat.read(root / "work/notebooks/04_head_splitting.ipynb", as_version=4)
    assert not is_trusted(copy)
    lab.trust(root)
    assert is_trusted(copy)
    copy.cells[0].source = "2"
    assert not is_trusted(copy)


def is_trusted(notebook):
    notary = NotebookNotary()
    with closing(notary.store):  # Python warns from 3.13 on of a database that is left open
        return notary.check_signature(notebook)


def test_no_place_for_signatures_does_not_stop_the_start(root, tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("JUPYTER_DATA_DIR", str(tmp_path / "file" / "jupyter"))
    before = {path: path.read_bytes() for path in root.rglob("*.ipynb")}
    lab.trust(root)
    assert {path: path.read_bytes() for path in root.rglob("*.ipynb")} == before
    assert (tmp_path / "file").read_text() == ""


def test_root_is_searched_upwards_when_the_package_is_installed_alone(root, monkeypatch):
    monkeypatch.setattr(clone, "__file__", str(root.parent / "site" / "mha_classroom" / "clone.py"))
    assert clone.find_root(root / "notebooks") == root.resolve()
    with pytest.raises(clone.CourseError, match="Clone the course"):
        clone.find_root(root.parent)


def test_user_errors_are_a_sentence_and_exit_code_2(root, monkeypatch, capsys):
    monkeypatch.setattr(cli, "find_root", lambda: root)
    assert cli.main(["reset", "99"]) == 2
    captured = capsys.readouterr()
    assert captured.err.startswith("There is no lesson 99.") and captured.out == ""
    for wrong in (["--loud"], ["unknown"], ["reset"], ["doctor", "--loud"]):
        with pytest.raises(SystemExit, match="2"):
            cli.main(wrong)


def test_lab_passes_its_arguments_on_in_order(root, monkeypatch):
    seen = []
    monkeypatch.setattr(cli, "find_root", lambda: root)
    monkeypatch.setattr(lab, "serve", lambda root, args, page: seen.extend(args))
    words = ["--no-browser", "--port", "8901", "notebooks/04_head_splitting.ipynb", "--ip=::1"]
    assert cli.main(["lab", *words]) == 0
    assert seen == words
    assert notebooks(root) == ALL


def test_without_a_command_there_is_help_with_the_learners_commands_first(capsys):
    assert cli.main([]) == 0
    said = capsys.readouterr().out
    listed = re.findall(r"^    ([a-z-]+)(?: |$)", said, re.MULTILINE)
    assert listed[:4] == ["lab", "reset", "doctor", "explore"]
    assert {"grade", "save", "release"} <= set(listed[5:])


def test_the_page_with_what_is_new_is_shown_first(root, monkeypatch):
    seen = []
    monkeypatch.setattr(cli, "find_root", lambda: root)
    monkeypatch.setattr(lab, "serve", lambda root, args, page: seen.append(page))
    cli.main(["lab"])
    put(root, "work/notebooks/04_head_splitting", "mine")
    put(root, "notebooks/04_head_splitting", "version 2")
    cli.main(["lab"])
    assert seen == [None, "what_is_new.md"]


def test_a_second_start_says_how_to_open_the_first(root, monkeypatch, tmp_path, capsys):
    monkeypatch.setenv("JUPYTER_RUNTIME_DIR", str(tmp_path / "run"))
    monkeypatch.setattr(cli, "find_root", lambda: root)
    monkeypatch.setattr(lab, "serve", lambda *args: pytest.fail("a second server"))
    (tmp_path / "run").mkdir()
    server = {"pid": os.getpid(), "root_dir": str(root / "work"), "token": "abc"}
    server["url"] = "http://localhost:8888/"
    file = tmp_path / "run" / "jpserver-1.json"
    file.write_text(json.dumps(server), "utf-8")
    assert cli.main(["lab"]) == 0
    assert "http://localhost:8888/lab?token=abc" in capsys.readouterr().out
    file.write_text(json.dumps(server | {"root_dir": str(root)}), "utf-8")
    assert lab.running(root) is None  # another folder's


def test_what_kernels_and_terminals_are_given():
    scripts = sysconfig.get_path("scripts")
    made = lab.environment({"PATH": "/one", "JUPYTER_CONFIG_PATH": "/theirs"})
    assert made["PATH"].split(os.pathsep) == [scripts, "/one"]
    assert made["JUPYTER_CONFIG_PATH"].split(os.pathsep) == [str(lab.SETTINGS), "/theirs"]
    assert lab.environment({})["JUPYTER_CONFIG_PATH"] == str(lab.SETTINGS)


@pytest.fixture
def served(root, tmp_path):
    """(address, log, environment) of a JupyterLab with settings of its own, run by the command."""
    for package in ("mha_course", "mha_classroom"):
        shutil.copytree(PACKAGE.parent / package, root / package)
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [sys.executable, "-m", "mha_classroom.commands.cli", "lab"]
    places = ("CONFIG", "DATA", "RUNTIME")
    own = {f"JUPYTER_{place}_DIR": str(tmp_path / place) for place in places}
    own["HOME"] = str(tmp_path)  # nor a shell's
    where = {"cwd": root, "env": {**os.environ, **own, "PYTHONPATH": str(root)}}
    with open(root / "log", "wb") as log:
        server = subprocess.Popen(
            [*command, "--no-browser", f"--port={port}", "--IdentityProvider.token=abc"],
            **{"stdout": log, "stderr": log, **where},
        )
    address = f"http://127.0.0.1:{port}"
    try:
        ask(server, f"{address}/api/status?token=abc")
        yield lambda path: ask(server, f"{address}{path}?token=abc"), address, command, where
    finally:
        server.terminate()
        assert server.wait(timeout=30) in (0, 1, -signal.SIGTERM), (root / "log").read_text()


def test_lab_really_serves(served, root):
    get, address, command, where = served
    listing = get("/api/contents/notebooks")
    assert [item["name"] for item in listing["content"]] == [f"{stem}.ipynb" for stem in STEMS]
    with urllib.request.urlopen(f"{address}/?token=abc", timeout=10) as home:
        assert home.url.split("?")[0].endswith("/lab/tree/notebooks/00_start_here.ipynb")

    again = subprocess.run(command, **where, capture_output=True, text=True, timeout=60)
    assert again.returncode == 0 and "/lab?token=abc" in again.stdout, again.stderr

    news = get("/lab/api/settings/@jupyterlab/apputils-extension:notification")
    assert news["schema"]["properties"]["fetchNews"]["default"] == "false"
    viewers = get("/lab/api/settings/@jupyterlab/docmanager-extension:plugin")["schema"]
    assert viewers["properties"]["defaultViewers"]["default"] == {"markdown": "Markdown Preview"}
    with urllib.request.urlopen(f"{address}/custom/custom.css?token=abc", timeout=10) as style:
        assert "Path: exercises/" in style.read().decode()


@pytest.mark.skipif(os.name == "nt", reason="says it to a POSIX shell")
def test_a_terminal_opens_in_work_with_the_commands_of_this_python(served, root):
    _, address, *_ = served
    name = post(f"{address}/api/terminals")["name"]
    said, text = 'printf "%s|" at "$PWD" "${PATH%%:*}" "" ; echo\n', ""
    with connect(f"{address}/terminals/websocket/{name}") as terminal:
        terminal.send(json.dumps(["stdin", said]))
        while not (found := re.search(r"at\|([^|]+)\|([^|]+)\|", text)):
            kind, *rest = json.loads(terminal.recv())
            text += rest[0] if kind == "stdout" else ""
    assert os.path.realpath(found[1]) == os.path.realpath(root / "work")
    assert found[2] == sysconfig.get_path("scripts")


def test_a_kernel_has_the_commands_and_warns_of_nothing(served, root):
    _, address, *_ = served
    kernel = post(f"{address}/api/kernels", {"name": "python3", "path": "notebooks"})["id"]
    ask_path = {"code": "import os; print(os.environ['PATH'])", "silent": False}
    header = {"msg_id": "1", "msg_type": "execute_request", "session": "s", "username": ""}
    header |= {"version": "5.3", "date": "2020-01-01T00:00:00Z"}
    message = {"header": header, "parent_header": {}, "metadata": {}, "content": ask_path}
    with connect(f"{address}/api/kernels/{kernel}/channels") as channels:
        channels.send(json.dumps(message | {"channel": "shell", "buffers": []}))
        while (heard := json.loads(channels.recv()))["msg_type"] != "stream":
            pass
    assert heard["content"]["text"].split(os.pathsep)[0] == sysconfig.get_path("scripts")
    log = (root / "log").read_text("utf-8")
    assert "Kernel started" in log
    assert "encryption" not in log and "websocket_ping" not in log


@pytest.fixture
def codespace(monkeypatch):
    for key, value in zip(lab.CODESPACE, ("mine", "app.github.dev"), strict=True):
        monkeypatch.setenv(key, value)


def test_in_a_codespace_the_forwarded_address_may_talk_to_kernels(codespace, served):
    _, address, *_ = served
    kernel = post(f"{address}/api/kernels")["id"]
    with urllib.request.urlopen(f"{address}/lab?token=abc", timeout=10) as page:
        cookies = [c.split(";")[0] for c in page.headers.get_all("Set-Cookie")]
    channels = f"{address.replace('http', 'ws', 1)}/api/kernels/{kernel}/channels"
    given = {"cookie": "; ".join(cookies), "timeout": 60}  # as a browser, without the token
    for other in ("https://mine-8888.app.github.dev.example.org", "https://other.app.github.dev"):
        with pytest.raises(WebSocketBadStatusException, match="403"):
            create_connection(channels, origin=other, **given)
    create_connection(channels, origin="https://mine-8888.app.github.dev", **given).close()


def connect(url):
    return closing(create_connection(f"{url.replace('http', 'ws', 1)}?token=abc", timeout=60))


def post(url, content=None):
    request = urllib.request.Request(f"{url}?token=abc", json.dumps(content or {}).encode())
    with urllib.request.urlopen(request, timeout=60) as answer:
        return json.load(answer)


def ask(server, url):
    """The JSON that the address answers, as soon as it does."""
    for _ in range(300):
        assert server.poll() is None, "the server ended"
        try:
            with urllib.request.urlopen(url, timeout=10) as answer:
                return json.load(answer)
        except OSError:
            time.sleep(0.1)
    raise AssertionError("nothing answered")
