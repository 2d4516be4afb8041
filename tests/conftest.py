"""What the proofs of the checks found, in figures below the tests."""

from collections import Counter


def pytest_terminal_summary(terminalreporter):
    figures = Counter()
    for report in terminalreporter.stats.get("passed", []):
        if report.when == "call":
            for name, figure in getattr(report, "user_properties", []):
                figures[name] += figure if isinstance(figure, int) else 0
    if figures:
        terminalreporter.section("what the checks were tried on")
        for name, figure in figures.items():
            terminalreporter.line(f"{figure:6} {name}")
