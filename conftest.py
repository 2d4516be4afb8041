"""In which order test files are run, which fonts they see; in CI a skipped test is a failed one."""

import os
import shutil
import tempfile

import pytest

# Those that take longest, or wait most, come first; else the last worker would end with one.
FIRST = (
    "test_lessons.py",
    *("test_cluster.py", "test_whole_class.py", "test_cheating.py", "test_attacks.py"),
    *("test_checks.py", "test_mutation.py", "test_mistakes.py", "12_your_bert.ipynb"),
    *("test_plots.py", "test_pictures.py", "test_page.py", "07_seeing_attention.ipynb"),
)


def pytest_configure(config):
    """Tests, and the kernels of notebooks, see the fonts that matplotlib ships, and no others.

    Which others there are differs from machine to machine, and so would the pictures. A folder of
    their own keeps matplotlib from remembering them.
    """
    if "PYTEST_XDIST_WORKER" not in os.environ:  # those inherit it
        folder = tempfile.mkdtemp(prefix="mha-course-matplotlib-")
        config.add_cleanup(lambda: shutil.rmtree(folder, ignore_errors=True))
        os.environ |= {"MPL_IGNORE_SYSTEM_FONTS": "1", "MPLCONFIGDIR": folder}


def pytest_collection_modifyitems(items):
    """Workers take the files in this order."""
    order = {name: number for number, name in enumerate(FIRST)}
    items.sort(key=lambda item: order.get(item.path.name, len(FIRST)))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    """Whatever a skipped test lacked, CI was to install."""
    report = yield
    # A cell of a notebook is skipped only where the notebook itself says so.
    if item.path.suffix != ".ipynb":
        _fail_if_skipped(report)
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(collector):
    report = yield
    _fail_if_skipped(report)
    return report


def _fail_if_skipped(report):
    if os.environ.get("CI") and report.skipped and not hasattr(report, "wasxfail"):
        report.outcome = "failed"
        report.longrepr = f"skipped, which CI does not allow: {report.longrepr}"
