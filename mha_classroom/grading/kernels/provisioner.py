"""Kernels forked from a zygote, as jupyter_client's kernel provisioner."""

import asyncio
import json
import os
import signal
import socket
import threading
from importlib.metadata import EntryPoint

from jupyter_client.provisioning import KernelProvisionerBase, KernelProvisionerFactory

__all__ = ["ForkProvisioner", "register"]

NAME = "mha-course-fork"

_GONE = '{"exit": 1, "why": "start", "text": "what watches over kernels has ended"}'


def register():
    """Make it known here, also where what was installed does not list its entry point yet."""
    factory = KernelProvisionerFactory.instance()
    entry = EntryPoint(NAME, f"{__name__}:ForkProvisioner", factory.GROUP_NAME)
    factory.provisioners[NAME] = entry


class ForkProvisioner(KernelProvisionerBase):
    """Has a zygote fork the kernel instead of starting a new Python.

    The environment variable MHA_COURSE_GRADING holds, as JSON, what the zygote is asked for (see
    supervisor.py) and its address: {"zygote": path of its socket, "folder": ..., ...}.
    Source: jupyter_client's documentation, "Kernel provisioning".
    """

    connection = None
    ended = None  # {"exit": code, "why": ...}
    process = None  # the number of the kernel's process
    listeners = []  # called with that when a kernel has ended, in a thread

    @property
    def has_process(self):
        """Whether there is a kernel, running or ended."""
        return self.connection is not None

    async def pre_launch(self, **kwargs):
        """Have the connection file written, with sockets in the folder that both sides see."""
        self.wanted = json.loads(os.environ["MHA_COURSE_GRADING"])
        manager = self.parent
        manager.transport = "ipc"
        manager.ip = os.path.join(self.wanted["folder"], "sockets", "k")
        manager.write_connection_file()
        self.connection_info = manager.get_connection_info()
        return await super().pre_launch(cmd=["fork"], **kwargs)

    async def launch_kernel(self, cmd, **kwargs):
        """Ask for the kernel, and wait until it can be talked to."""
        wanted = dict(self.wanted)
        self.connection = socket.socket(socket.AF_UNIX)
        self.connection.connect(wanted.pop("zygote"))
        info = dict(self.connection_info)
        info["key"] = info["key"].decode()
        if wanted["isolated"]:
            info["ip"] = "/sockets/k"
        wanted["connection"] = info
        self.connection.sendall(json.dumps(wanted).encode() + b"\n")
        lines = self.connection.makefile("r", encoding="utf-8")
        said = json.loads(lines.readline() or _GONE)
        if "ready" not in said:
            self.ended = said
            raise RuntimeError(f"the kernel did not start: {said.get('text') or said['why']}")
        self.process = said["process"]
        threading.Thread(target=self._wait_for_end, args=(lines,), daemon=True).start()
        return self.connection_info

    def _wait_for_end(self, lines):
        ended = json.loads(lines.readline() or _GONE)
        for listener in self.listeners:
            listener(ended)
        self.ended = ended  # only now: nbval fails every cell left of a kernel that it finds dead

    async def poll(self):
        """None while the kernel runs, else its exit code."""
        return None if self.ended is None else self.ended["exit"]

    async def wait(self):
        """Wait for the kernel's end and return its exit code."""
        while await self.poll() is None:
            await asyncio.sleep(0.01)
        return self.ended["exit"]

    async def send_signal(self, signum):
        """Send the kernel a signal."""
        if signum == 0:
            return await self.poll()
        if signum == signal.SIGKILL:
            return await self.kill()
        self.connection.sendall(f"signal {signum}\n".encode())

    async def kill(self, restart=False):
        """End the kernel at once."""
        try:
            self.connection.sendall(b"kill\n")
        except OSError:
            pass  # it has ended already

    async def terminate(self, restart=False):
        """The same: it has nothing to tidy up."""
        await self.kill(restart)

    async def cleanup(self, restart=False):
        """Let go of the zygote, which ends what is still there."""
        if self.connection:
            self.connection.close()
