"""The README, in English and in Chinese: in step with each other and with what they tell of."""

import re
import runpy
import tomllib
from pathlib import Path
from xml.etree import ElementTree

import pytest
import yaml
from markdown_it import MarkdownIt

ROOT = Path(__file__).parents[2]
ENGLISH = (ROOT / "README.md").read_text("utf-8")
CHINESE = (ROOT / "README.zh-CN.md").read_text("utf-8")
PICTURES = ROOT / "docs" / "pictures"
MAKE = runpy.run_path(str(PICTURES / "make.py"))
FENCE = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)


def outline(text):
    """What both languages must have in common, part by part."""
    blocks, prose = FENCE.findall(text), FENCE.sub("", text)
    rows = [line.split("|")[1:-1] for line in prose.splitlines() if line.startswith("|")]
    prose = re.sub(r"^\[English\].*$|^English .*$", "", prose, flags=re.MULTILINE)
    numbers = re.findall(r"(?<![\w.])\d[\d,.]*\d|\d", re.sub(r"`[^`]*`|alt=\"[^\"]*\"", "", prose))
    return {
        "headings": re.findall(r"^(#+) ", prose, re.MULTILINE),
        "blocks": blocks,
        "rows": [[len(row), *map(links, row), *map(figures, row)] for row in rows],
        "links": links(prose),
        "pictures": re.findall(r'(?:srcset|src|media|width)="[^"]*"', prose),
        "items": [links(line) + code(line) for line in prose.splitlines() if line[:2] == "- "],
        "numbers": sorted(number.replace(",", "") for number in numbers),
    }


def links(text):
    return re.findall(r"\]\(([^)]*)\)", text)


def figures(cell):
    """The numbers of a cell, such as minutes."""
    return re.findall(r"[\d.]+", re.sub(r"\([^)]*\)|Shift.*", "", cell))


def code(text):
    return sorted(re.findall(r"`([^`]+)`", text))


def test_english_and_chinese_are_in_step():
    english, chinese = outline(ENGLISH), outline(CHINESE)
    for part in english:
        assert chinese[part] == english[part], part
    assert len(english["headings"]) > 6 and len(english["rows"]) > 15
    assert ENGLISH.splitlines()[2] == "English · [中文](README.zh-CN.md)"
    assert CHINESE.splitlines()[2] == "[English](README.md) · 中文"


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("## Licence", "### Licence"),
        ("## Licence", "Licence"),
        ("| 75 + 90 |", "| 75 + 95 |"),
        ("(notebooks/07_seeing_attention.ipynb)", "(notebooks/08_how_many_heads.ipynb)"),
        ("make test    #", "make tests    #"),
        ("check-dark.png", "other-dark.png"),
        ("| 1.6 GB |", "| 1.7 GB |"),
        ("about 35 hours", "about 36 hours"),
        ("Over 2,900 known", "Over 3,000 known"),
        ("`--due`, ", ""),
    ],
)
def test_a_change_of_one_alone_is_noticed(old, new):
    assert old in ENGLISH
    assert outline(ENGLISH.replace(old, new, 1)) != outline(CHINESE)


@pytest.mark.parametrize("text", [ENGLISH, CHINESE], ids=["english", "chinese"])
def test_every_link_and_picture_leads_to_a_file(text):
    named = links(text) + re.findall(r'(?:srcset|src)="([^"]*)"', text)
    inside = [path for path in named if "://" not in path]
    assert len(inside) > 18
    assert [path for path in inside if not (ROOT / path).is_file()] == []


@pytest.mark.parametrize("text", [ENGLISH, CHINESE], ids=["english", "chinese"])
def test_no_stars_are_left_where_words_are_to_be_bold(text):
    """Markdown does not take ** for an end between a Chinese full stop and a Chinese letter."""
    shown = MarkdownIt("commonmark", {"html": True}).enable("table").render(text)
    assert shown.count("<strong>") == text.count("**") // 2 > 8
    assert "**" not in shown


@pytest.mark.parametrize("text", [ENGLISH, CHINESE], ids=["english", "chinese"])
def test_pictures_are_small_have_a_dark_twin_and_words(text):
    pictures = re.findall(r"<picture>.*?</picture>", text, re.DOTALL)
    assert len(pictures) == 2 == text.count("<img ")
    for picture in pictures:
        dark, light = (re.search(rf'{name}="([^"]*)"', picture)[1] for name in ("srcset", "src"))
        assert "(prefers-color-scheme: dark)" in picture
        assert dark == light.replace("-light", "-dark") != light
        assert len(re.search(r'alt="([^"]*)"', picture)[1]) > 80
        assert all((ROOT / path).stat().st_size < 80_000 for path in (dark, light))


def test_the_picture_of_a_check_shows_what_the_check_says_today():
    """Its letters are pixels; the words beside them are read by those who cannot see it."""
    from mha_course.checks import diagnose

    names = {}
    exec(MAKE["CHECKED"][0], names)
    feedback = diagnose("04-transpose_qkv", names["transpose_qkv"])
    assert feedback.mistake
    assert f"✗ not yet: {feedback.task_id} · {feedback.message}" in ENGLISH


@pytest.mark.parametrize("page", ["light", "dark"])
def test_the_picture_of_two_heads_is_drawn_anew_the_same(page):
    """But for the last digit of a weight, which another machine may round otherwise."""
    stored, drawn = (
        ElementTree.fromstring(text)
        for text in (
            (PICTURES / f"heads-{page}.svg").read_text("utf-8"),
            MAKE["heads"](MAKE["GROUNDS"][page]),
        )
    )
    words, strong = [], []
    for root in (stored, drawn):
        words.append(["".join(node.itertext()) for node in root.iter() if node.text])
        cells = [node.attrib for node in root.iter() if float(node.get("fill-opacity", 0)) > 0.05]
        strong.append({(cell["x"], cell["y"], root.get("fill")) for cell in cells})
    assert words[0] == words[1] and len(words[0]) == 2 * (2 + 2 * 13)
    assert len(strong[0] ^ strong[1]) <= 2 < len(strong[0])
    for title in (text for text in words[0] if text.startswith(("Layer", "looks", "12 of"))):
        assert title.replace("Layer", "layer") in ENGLISH
    assert f"“{MAKE['TEXT']}”" in ENGLISH


def test_the_hours_are_those_of_all_lessons_and_exercises():
    minutes = sum(int(a) + int(b) for a, b in re.findall(r"\| (\d+) \+ (\d+) \|", ENGLISH))
    assert f"about {minutes / 60:.0f} hours" in ENGLISH


def test_readme_workflow_and_package_name_the_same_pythons():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    jobs = yaml.safe_load((ROOT / ".github/workflows/ci.yml").read_text("utf-8"))["jobs"]
    tested = jobs["linux"]["strategy"]["matrix"]["python"]
    assert project["requires-python"] == f">={tested[0]}"
    marks = [re.search(r"Python :: (3\.\d+)$", text) for text in project["classifiers"]]
    assert [mark[1] for mark in marks if mark] == tested
    assert f"Python {tested[0]} to {tested[-1]} on Linux" in ENGLISH
    minors = [int(version.removeprefix("3.")) for version in tested]
    assert minors == list(range(minors[0], minors[-1] + 1))
