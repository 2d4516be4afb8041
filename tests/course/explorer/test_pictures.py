"""Pictures of heads, and numbers to take along."""

import base64
import csv
import html
import io
import json
import re
import sys
from types import SimpleNamespace

import pytest
import torch
from small_reader import Words, small_model

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
    """What is given to the two functions that draw, in order, without drawing grids."""
    calls = []
    for name in ("attention_heatmap", "head_grid"):
        draw = getattr(plots, name)

        def spy(weights, labels, keys, title, figure, draw=draw):
            assert labels == keys
            calls.append(SimpleNamespace(weights=weights, labels=labels, title=title))
            return draw(weights, labels, keys, title, figure=figure)

        monkeypatch.setattr(plots, name, spy)
    return calls


def size(png):
    assert png.startswith(b"\x89PNG")
    return int.from_bytes(png[16:20], "big"), int.from_bytes(png[20:24], "big")


def test_the_pictures_show_the_head_and_the_layer_asked_for(reader, drawn):
    found = attention_map("a cat", "a dog", **reader)
    width, height = size(pictures.head_picture(found, 1, 2))
    assert 300 < width < 1500 and 300 < height < 1500
    size(pictures.grid_picture(found, 1))
    one, grid = drawn
    torch.testing.assert_close(one.weights, found.weights[1, 2])
    torch.testing.assert_close(grid.weights, found.weights[1])
    assert one.labels == grid.labels == found.tokens
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


@pytest.mark.parametrize("num_heads", [1, 5, 16])
def test_a_grid_of_any_number_of_heads(num_heads):
    found = attention_map("cat", model=small_model(1, num_heads), tokenizer=Words())
    size(pictures.grid_picture(found, 0))
    assert len(words.kinds(found, 0)) == num_heads


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
    tag = pictures.image_tag(pictures.head_picture(found, 1, 0), told)
    assert tag.count("<") == 1 and tag.count('"') == 8
    assert html.unescape(re.search('alt="(.*?)"', tag)[1]) == told
    assert base64.b64decode(re.search('base64,(.*?)"', tag)[1]).startswith(b"\x89PNG")


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
