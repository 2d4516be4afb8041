"""The sandbox that attacks run in, and what must be as before when they are over."""

import os
import tempfile
import time
from pathlib import Path

import pytest
from attack_kit import SECRET, descendants, parent_of_kernels

from mha_classroom.grading.kernels import jail, seccomp
from mha_classroom.grading.kernels.start_zygote import zygote


@pytest.fixture(scope="module")
def source():
    """A zygote with a sandbox; without one these tests have nothing to say, and fail."""
    reason = jail.unavailable()
    assert not reason, f"the sandbox is not available on this machine: {reason}"
    assert seccomp.SUPPORTED, "there is no filter of system calls for this machine"
    os.environ["MHA_SECRET"] = SECRET
    try:
        with zygote() as started:
            yield started
    finally:
        del os.environ["MHA_SECRET"]


@pytest.fixture
def untouched(source):
    """Afterwards there is no process, no file and no changed limit more than before."""
    before = sorted(os.listdir(source.folder)), sorted(os.listdir(Path(jail.__file__).parent))
    yield
    deadline = time.monotonic() + 5
    while descendants(parent_of_kernels()) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not descendants(parent_of_kernels())
    assert before == (
        sorted(os.listdir(source.folder)),
        sorted(os.listdir(Path(jail.__file__).parent)),
    )
    assert not list(Path(tempfile.gettempdir()).glob("mha-attack*"))
