"""In CI a skipped test is a failed test: whatever it lacked, CI was to install."""

import os

import pytest


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
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
