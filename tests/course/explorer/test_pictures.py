"""Pictures of heads, and numbers to take along."""

import base64
import csv
import html
import io
import json
import re
import sys
from types import SimpleNamespace
from xml.etree import ElementTree

import pytest
import torch

from mha_course import plots
from mha_course.explorer import (
    attention_map,
    describe_head,
    export,
    head_figures,
    most_attended,
    pictures,
    words,
)

TOKENS = ["[CLS]", "the", "cat", "the", "[SEP]"]


# Pictures


@pytest.fixture
def drawn(monkeypatch):
    """What is given to the function that draws, in order."""
    calls = []
    draw = plots.attention_heatmap

    def spy(weights, labels, keys, title, figure):
        assert labels == keys
        calls.append(SimpleNamespace(weights=weights, labels=labels, title=title))
        return draw(weights, labels, keys, title, figure=figure)

    monkeypatch.setattr(plots, "attention_heatmap", spy)
    return calls


def size(png):
    assert png.startswith(b"\x89PNG")
    return int.from_bytes(png[16:20], "big"), int.from_bytes(png[20:24], "big")


def test_the_picture_shows_the_head_asked_for(reader, drawn):
    found = attention_map("a cat", "a dog", **reader)
    width, height = size(pictures.head_picture(found, 1, 2))
    assert 300 < width < 1500 and 300 < height < 1500
    (one,) = drawn
    torch.testing.assert_close(one.weights, found.weights[1, 2])
    assert one.labels == found.tokens
    kind = describe_head(found.weights[1, 2], found.tokens).replace(": ", "\n")
    assert one.title == f"layer 1, head 2 {kind}"
    assert (
        "matplotlib.pyplot" not in sys.modules or not sys.modules["matplotlib.pyplot"].get_fignums()
    )


def test_long_texts_are_drawn_in_part(reader, drawn):
    names = " ".join(f"w{place}" for place in range(100))
    found = attention_map(names, **reader)
    assert words.windows(found) == 61 - pictures.DRAWN
    pictures.head_picture(found, 0, 1, start=5)
    (one,) = drawn
    assert one.labels == found.tokens[5 : 5 + pictures.DRAWN]
    torch.testing.assert_close(one.weights, found.weights[0, 1, 5:53, 5:53])
    cut, part = words.notes(found, 5)
    assert cut == "The text has 102 tokens; the model reads the first 61."
    assert part.startswith("Tokens 5 to 52 of 61 are drawn")
    assert words.notes(attention_map("short", **reader)) == []
    (note, _) = words.notes(attention_map(names, "and one", **reader))
    assert (
        note == "The texts have 105 tokens; the model reads 61, and the longer text is cut first."
    )


def test_a_text_that_is_mostly_unknown_is_said_to_be(reader):
    def note(text):
        return words.notes(attention_map(text, **reader))

    assert note("[UNK] [UNK] 力") == [
        "Most tokens are [UNK], unknown: the model has no tokens for this text. "
        "The model of the course reads English."
    ]
    assert note("[UNK] cat") == note("[UNK] a cat") == []


STRANGE = (
    "<script>alert(1)</script> $x_1$ \\frac{ 注意力 😀 \u200d e\u0301 \u0915 &amp; a\x00b ``` **b**"
)


def test_strange_characters_are_drawn_without_a_warning(reader):
    found = attention_map(STRANGE, **reader)
    size(pictures.head_picture(found, 0, 0))
    size(pictures.head_picture(found, 0, 1, start=3))


def test_strange_characters_are_drawn_with_a_chinese_font_too(reader, chinese_font):
    test_strange_characters_are_drawn_without_a_warning(reader)


def test_what_cannot_be_drawn_is_replaced():
    assert plots.with_boxes("a注\n\U0001f9ff\ud800é") == "a□\n□□é"
    assert plots.legible(["$x$ <b>", "a\nb", "\ud800", "注", "é"]) == [
        *("$x$ <b>", "#1", "#2", "#3", "é")
    ]


def test_a_picture_is_told_in_words_and_nothing_of_them_is_markup(reader):
    found = attention_map('"><script> onload=x', **reader)
    told = words.picture_text(found, 1, 0)
    assert told.startswith("Heat map of the attention weights of 4 tokens, layer 1, head 0, which ")
    best = most_attended(found.weights[1, 0], found.tokens)
    assert all(f"{token} {mean:.2f}" in told for token, mean in best)
    tag = pictures.image_tag(pictures.head_svg(found, 1, 0), told)
    assert tag.count("<") == 1 and tag.count('"') == 6
    assert html.unescape(re.search('alt="(.*?)"', tag)[1]) == told
    assert base64.b64decode(re.search('base64,(.*?)"', tag)[1]).startswith(b"<svg")


def test_the_svg_has_a_square_for_each_weight_and_its_letters_as_text(reader, capsys):
    found = attention_map("注意力 <b>&", **reader)
    root = ElementTree.fromstring(pictures.head_svg(found, 1, 2))
    names = [text.text for text in root.findall(f"{{{pictures.SVG}}}text")]
    assert names == [token for token in found.tokens for _ in range(2)]
    squares = root.findall(f"{{{pictures.SVG}}}rect[@fill-opacity]")
    shown = found.weights[1, 2][found.weights[1, 2] >= 0.005].tolist()
    assert [float(square.get("fill-opacity")) for square in squares] == [round(w, 2) for w in shown]
    assert capsys.readouterr().out == ""  # nothing is said of fonts: the browser has them


def test_the_svg_of_strange_characters_and_of_a_long_text_is_one(reader):
    for text in (STRANGE, "\x07 \ufffe " + "word " * 100):
        root = ElementTree.fromstring(pictures.head_svg(attention_map(text, **reader), 0, 0, 3))
        assert len(root.findall(f"{{{pictures.SVG}}}text")) <= 2 * pictures.DRAWN


# Numbers to take along


def test_csv_holds_the_weights_and_no_formula(reader):
    text = '=1+1 +x -y @z \'q a,"b";c ＝1 <b>'
    found = attention_map(text, **reader)
    rows = list(csv.reader(io.StringIO(export.to_csv(found, 1, 2))))
    expected = ["[CLS]", "'=1+1", "'+x", "'-y", "'@z", "'q", 'a,"b";c', "'＝1", "<b>", "[SEP]"]
    assert rows[0] == ["query", *expected] and [row[0] for row in rows[1:]] == expected
    numbers = torch.tensor([[float(cell) for cell in row[1:]] for row in rows[1:]])
    torch.testing.assert_close(numbers, found.weights[1, 2], rtol=0, atol=1e-6)


def test_json_holds_the_weights_the_figures_and_what_is_added(reader):
    found = attention_map("a 猫", "a dog", **reader)
    text = export.to_json(found, 1, 2, model="mine", text="a 猫")
    content = json.loads(text)
    assert "猫" in text and content["model"] == "mine" and content["tokens"] == found.tokens
    torch.testing.assert_close(
        torch.tensor(content["weights"]), found.weights[1, 2], rtol=0, atol=1e-6
    )
    assert content["kind"] == describe_head(found.weights[1, 2], found.tokens)
    assert content["figures"] == head_figures(found.weights[1, 2], found.tokens)
    assert content["most_attended"] == [
        list(x) for x in most_attended(found.weights[1, 2], found.tokens)
    ]
    assert (content["layer"], content["head"], content["second"], content["num_cut"]) == (
        1,
        2,
        4,
        0,
    )
