"""JupyterLab on the learner's copies, set up for this course.

`jupyterlab/` beside this file holds what is set: defaults that the learner can change in the
settings, and a mark on the tabs of exercises.
"""

from __future__ import annotations

import os
import re
import sysconfig
from contextlib import closing, suppress
from importlib.util import find_spec
from pathlib import Path

from mha_classroom.clone import CourseError, stems
from mha_classroom.commands import copies
from mha_course.embedded import command

__all__ = ["environment", "running", "serve", "trust"]

START = "notebooks/00_start_here.ipynb"
CODESPACE = ("CODESPACE_NAME", "GITHUB_CODESPACES_PORT_FORWARDING_DOMAIN")
SETTINGS = Path(__file__).parent / "jupyterlab"


def serve(root, args=(), page=None):
    """Open JupyterLab on root/work until it is stopped; `args` go to `jupyter lab`.

    page: what the browser shows first, a name in work/; the start page unless told.
    """
    if find_spec("jupyterlab") is None:
        doctor = command("doctor")
        raise CourseError(f"JupyterLab is not installed. `{doctor}` says how to fix it.")
    from jupyterlab.labapp import main

    trust(root)
    work = root / "work"
    options = [f"--ServerApp.root_dir={work}", *_options()]
    if (work / (page or START)).is_file():
        options.append(f"--LabApp.default_url=/lab/tree/{page or START}")
    os.environ.update(environment(os.environ))
    os.chdir(work)  # where a terminal opens
    # In this process, so that Ctrl-C and a kill reach the server on every system.
    return main([*options, *args])


def running(root):
    """The address of the JupyterLab that serves root/work already, or None."""
    try:
        from jupyter_server.serverapp import list_running_servers
    except ImportError:
        return None
    work = os.path.realpath(root / "work")
    for server in list_running_servers():
        if os.path.realpath(server.get("root_dir", "")) == work:
            token = server.get("token")
            return f"{server['url']}lab" + (f"?token={token}" if token else "")
    return None


def environment(given):
    """What kernels and terminals get besides `given`: this Python's commands, the settings."""
    path = [sysconfig.get_path("scripts"), given.get("PATH", os.defpath)]
    settings = [str(SETTINGS), *filter(None, [given.get("JUPYTER_CONFIG_PATH")])]
    return {"PATH": os.pathsep.join(path), "JUPYTER_CONFIG_PATH": os.pathsep.join(settings)}


def _options():
    """Options of the server."""
    import zmq
    from jupyter_client import KernelManager

    # Pings keep connections through proxies open, and this server is on the learner's machine;
    # with them it warns of its own defaults, which tornado finds at odds with each other.
    settings = {"static_custom_path": [str(SETTINGS / "custom")], "ws_ping_interval": 0}
    options = ["--LabApp.custom_css=True", f"--ServerApp.tornado_settings={settings}"]
    if os.name != "nt":
        # A login shell, which is the default here without a terminal, may set another PATH.
        options.append(f"--ServerApp.terminado_settings={{'shell_command': {_shell()!r}}}")
    # A kernel warns of traffic that is not encrypted, so it is, where this Jupyter knows how to.
    if KernelManager.class_traits().get("transport_encryption") and zmq.has("curve"):
        options.append("--KernelManager.transport_encryption=auto")
    # In a GitHub codespace the browser asks from a forwarded address, and is not the server's.
    name, domain = map(os.environ.get, CODESPACE)
    if name and domain:
        origin = rf"https://{re.escape(name)}-\d+\.{re.escape(domain)}$"
        options += ["--no-browser", f"--ServerApp.allow_origin_pat={origin}"]
    # Containers run as root; the server still listens on this machine only and asks for its token.
    if hasattr(os, "geteuid") and os.geteuid() == 0:
        options.append("--allow-root")
    return options


def _shell():
    return [os.environ.get("SHELL") or "/bin/sh"]


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
        with closing(notary.store):
            for stem in stems(root, copies.FOLDERS):
                for path in (root / folder / f"{stem}.ipynb" for folder in copies.FOLDERS):
                    if path.is_file():
                        text = copies.as_opened(path.read_bytes()).decode("utf-8")
                        notary.sign(nbformat.reads(text, as_version=4))
