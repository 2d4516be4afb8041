"""`mha-course explore`: the page of `page.py`, served by Streamlit on this machine."""

from importlib.util import find_spec
from pathlib import Path

import mha_course
from mha_classroom.clone import CourseError, install_command

__all__ = ["serve"]

OPTIONS = (
    "--server.address=localhost",  # nobody else on the network sees the page
    "--browser.gatherUsageStats=false",
    "--server.showEmailPrompt=false",  # or the first start waits for an e-mail address
    "--server.fileWatcherType=none",  # the page does not change, and torch upsets the watcher
    "--client.toolbarMode=minimal",
)


def serve(args=(), port=None):
    """Serve the page until it is stopped; `args` go to `streamlit run`, and win over OPTIONS.

    Raises: CourseError if streamlit is not installed or does not know an argument.
    """
    if find_spec("streamlit") is None:
        raise CourseError(
            "The page of the explorer needs Streamlit, which is not installed. This installs it:\n"
            + install_command("app")
        )
    from click import ClickException
    from streamlit.web.cli import main

    options = [*OPTIONS, *([] if port is None else [f"--server.port={port}"]), *args]
    page = Path(mha_course.__file__).parent / "explorer" / "page.py"
    try:
        return main(["run", str(page), *options], standalone_mode=False)
    except ClickException as error:
        raise CourseError(f"Streamlit says: {error.format_message()}") from None
