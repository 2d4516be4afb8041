"""The real model for all tests, and what the proofs of the checks found, below the tests."""

from collections import Counter

import pytest


@pytest.fixture(scope="session")
def pretrained():
    """The model that comes with the course and its tokenizer, loaded once; not to be changed."""
    from mha_course.pretrained import load_pretrained

    return load_pretrained()


@pytest.fixture(scope="module", autouse=True)
def own_tasks_forgotten():
    """What a module registers of an instructor's own tasks is no task of the course after it."""
    yield
    from mha_course.checks import registry

    for stem in {stem for stem, _ in registry._own.values()}:
        registry.forget(stem)


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
