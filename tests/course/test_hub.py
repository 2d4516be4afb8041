"""Names on the Hugging Face Hub, asked of a small one that answers on this machine."""

import json
import os
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

SHA = "0123456789" * 4
MODELS = {
    "owner/small": {"config.json": b"{}", "model.safetensors": b"12345", "other.bin": b"7"},
    "owner/pickled": {"config.json": b"{}", "pytorch_model.bin": b"67"},
}
ASK = """
import sys
from mha_course.pretrained import download

def lacking(files):
    return "" if "model.safetensors" in files else "lacks model.safetensors."

try:
    folder = download(sys.argv[1], ["config.json", "*.safetensors"], lacking)
    print(folder, *sorted(file.name for file in folder.iterdir()))
except ValueError as error:
    sys.exit(f"{type(error).__name__}: {error}" + "!" * (error.__cause__ is not None))
"""


class Hub(BaseHTTPRequestHandler):
    """Answers what the client asks: about a model, its files, and a file."""

    def do_GET(self):
        path = self.path.split("?")[0]
        self.server.asked.append(path)
        for name, files in MODELS.items():
            api = f"/api/models/{name}"
            if path in (api, f"{api}/revision/main"):
                siblings = [{"rfilename": file} for file in files]
                return self.answer(json.dumps({"id": name, "sha": SHA, "siblings": siblings}))
            if path == f"{api}/tree/{SHA}":
                tree = [{"type": "file", "path": f, "size": len(files[f]), "oid": f} for f in files]
                return self.answer(json.dumps(tree))
            for file, content in files.items():
                if path == f"/{name}/resolve/{SHA}/{file}":
                    return self.answer(content, ETag=f'"{file}"', **{"X-Repo-Commit": SHA})
        gated = path.startswith("/api/models/owner/gated")
        code = "GatedRepo" if gated else "RepoNotFound"
        return self.answer("{}", 403 if gated else 401, **{"X-Error-Code": code})

    do_HEAD = do_GET

    def answer(self, body, status=200, **headers):
        body = body.encode() if isinstance(body, str) else body
        self.send_response(status)
        for name, value in {**headers, "Content-Length": str(len(body))}.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(body)

    def log_message(self, *args):
        pass


@pytest.fixture
def hub():
    server = ThreadingHTTPServer(("127.0.0.1", 0), Hub)
    server.asked = []
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield server
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.fixture
def ask(tmp_path, hub):
    """Ask for a model in a process of its own, since the settings are read at import."""

    def run(name, **settings):
        endpoint = f"http://127.0.0.1:{hub.server_port}"
        settings = {"HF_ENDPOINT": endpoint, "HF_HOME": str(tmp_path), **settings}
        clean = {k: v for k, v in os.environ.items() if not k.startswith("HF_")}
        done = subprocess.run(
            [sys.executable, "-c", ASK, name],
            **{"env": {**clean, **settings}, "capture_output": True, "text": True},
        )
        assert "Traceback" not in done.stderr
        return done

    return run


def test_a_model_is_downloaded_once_and_then_needs_no_network(ask, hub):
    done = ask("owner/small")
    folder, *files = done.stdout.split()
    assert SHA in folder and files == ["config.json", "model.safetensors"]
    assert "Fetching" in done.stderr  # the progress bar
    hub.asked.clear()
    assert ask("owner/small").stdout == done.stdout
    assert not [path for path in hub.asked if "small" in path]
    assert ask("owner/small", HF_HUB_OFFLINE="1").stdout == done.stdout


@pytest.mark.parametrize(
    ("name", "settings", "says"),
    [
        ("owner/nothing", {}, "has no public model 'owner/nothing'"),
        ("owner/gated", {}, "only to people who accepted its terms"),
        ("owner/pickled", {}, "owner/pickled on the Hugging Face Hub lacks model.safetensors."),
        ("owner/small", {"HF_HUB_OFFLINE": "1"}, "HF_HUB_OFFLINE forbids to download it"),
        ("owner/small", {"HF_ENDPOINT": "http://127.0.0.1:9"}, "cannot be reached"),
        ("not a name", {}, "neither a folder nor a name"),
    ],
)
def test_what_cannot_be_had(ask, hub, name, settings, says):
    done = ask(name, **settings)
    assert done.returncode == 1 and done.stderr.startswith("ModelError: ")
    assert says in done.stderr and not done.stderr.endswith("!\n")
    assert not [path for path in hub.asked if "/resolve/" in path]


def test_a_download_that_breaks_off(ask, hub, monkeypatch):
    whole = Hub.answer

    def broken(self, body, status=200, **headers):
        if "/resolve/" in self.path:
            body, status = "no", 404
        whole(self, body, status, **headers)

    monkeypatch.setattr(Hub, "answer", broken)
    done = ask("owner/small")
    assert done.returncode == 1 and "The download of owner/small broke off" in done.stderr
    monkeypatch.undo()
    assert ask("owner/small").returncode == 0


def test_a_hub_that_never_answers_is_not_waited_for_without_end(monkeypatch):
    from mha_course import pretrained as subject

    waited = []

    class Silent:
        def model_info(self, name, timeout):
            waited.append(timeout)
            raise TimeoutError

    monkeypatch.setattr("huggingface_hub.HfApi", Silent)
    monkeypatch.setattr(subject, "_cached", lambda name, patterns: None)
    with pytest.raises(subject.ModelError, match=r"cannot be reached \(TimeoutError\)"):
        subject.download("owner/small", [], lambda files: "")
    assert waited == [subject.SECONDS] and subject.SECONDS <= 10
