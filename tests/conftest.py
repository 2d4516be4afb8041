"""The real model for all tests, and what the proofs of the checks found, below the tests."""

from collections import Counter

import pytest


@pytest.fixture(scope="session")
def pretrained():
    """The model that comes with the course and its tokenizer, loaded once; not to be changed."""
    from mha_course.pretrained import load_pretrained

    return load_pretrained()


@pytest.fixture
def chinese_font(tmp_path, monkeypatch):
    """A font that has 注意力查询键值猫 as squares: the tests see no other that has Chinese."""
    from fontTools.fontBuilder import FontBuilder
    from fontTools.pens.ttGlyphPen import TTGlyphPen
    from matplotlib import font_manager

    from mha_course import plots

    pen = TTGlyphPen(None)
    for move, corner in zip(
        (pen.moveTo, pen.lineTo, pen.lineTo, pen.lineTo),
        ((100, 0), (100, 800), (900, 800), (900, 0)),
        strict=True,
    ):
        move(corner)
    pen.closePath()
    square = pen.glyph()
    names = {ord(c): f"uni{ord(c):04X}" for c in "注意力查询键值猫"}
    font = FontBuilder(1000, isTTF=True)
    font.setupGlyphOrder([".notdef", *names.values()])
    font.setupCharacterMap(names)
    font.setupGlyf({name: square for name in [".notdef", *names.values()]})
    font.setupHorizontalMetrics({name: (1000, 100) for name in [".notdef", *names.values()]})
    font.setupHorizontalHeader(ascent=800, descent=-200)
    font.setupNameTable({"familyName": "Course Test CJK", "styleName": "Regular"})
    font.setupOS2()
    font.setupPost()
    font.save(tmp_path / "test-cjk.ttf")
    monkeypatch.delenv("MPL_IGNORE_SYSTEM_FONTS")  # nor would matplotlib choose this one
    fonts = font_manager.fontManager
    monkeypatch.setattr(fonts, "ttflist", list(fonts.ttflist))
    fonts.addfont(tmp_path / "test-cjk.ttf")
    monkeypatch.setattr(plots, "CHINESE_FONTS", ("Course Test CJK", "not installed"))
    return "Course Test CJK"


@pytest.fixture(autouse=True)
def nothing_said_of_fonts(monkeypatch):
    """That a font is missing is said once: in each test, not in the first that draws."""
    from mha_course import plots

    monkeypatch.setattr(plots, "SAID", [])


@pytest.fixture(scope="module", autouse=True)
def own_tasks_forgotten():
    """What a module registers of an instructor's own tasks is no task of the course after it."""
    yield
    from mha_classroom.checks import registry

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
