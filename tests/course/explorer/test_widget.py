"""The widget of the explorer, driven."""

import html
import importlib.util

import pytest
from small_reader import LAYERS, H, Words, small_model

from mha_course.explorer import (
    describe_head,
    explore,
    most_attended,
    pictures,
    words,
)


def shown(widget):
    return [part.value for part in (widget.picture, widget.facts, widget.grid)]


def changed(widget, change):
    """Which of picture, facts and grid are others after `change`."""
    before = shown(widget)
    change()
    return [one != two for one, two in zip(before, shown(widget), strict=True)]


def test_the_widget_shows_the_head_that_the_sliders_say(reader, quick):
    widget = explore("a cat and a dog", **reader)
    assert (widget.layer.max, widget.head.max, widget.start.max) == (LAYERS - 1, H - 1, 0)
    assert not widget.layer.continuous_update and widget.start.layout.display == "none"
    assert changed(widget, lambda: setattr(widget.head, "value", 2)) == [True, True, False]
    first = shown(widget)
    assert changed(widget, lambda: setattr(widget.layer, "value", 1)) == [True, True, True]
    weights = widget.found.weights[1, 2]
    assert (
        f"Layer 1, head 2 <b>{describe_head(weights, widget.found.tokens)}</b>" in shown(widget)[1]
    )
    for token, mean in most_attended(weights, widget.found.tokens, 5):
        assert f"<td>{token}</td><td>{mean:.4f}</td>" in widget.facts.value
    assert html.escape(words.picture_text(widget.found, 1, 2)) in widget.picture.value
    widget.layer.value = 0
    assert shown(widget) == first
    assert repr(widget) == "Explorer('a cat and a dog')"


def test_the_widget_reads_another_text_and_a_pair(reader, quick):
    widget = explore("a cat", **reader)
    assert changed(widget, lambda: setattr(widget.text, "value", "a dog barks")) == [True] * 3
    assert widget.found.tokens == ["[CLS]", "a", "dog", "barks", "[SEP]"]
    assert changed(widget, lambda: setattr(widget.pair, "value", " it is loud ")) == [True] * 3
    assert widget.found.second == 5
    assert explore("a cat", "a dog", **reader).found.second == 4


def test_the_widget_draws_long_texts_in_part_and_says_so(reader, quick):
    widget = explore("word " * 100, **reader)
    assert "102 tokens; the model reads the first 61" in widget.message.value
    assert widget.start.max == 61 - pictures.DRAWN and widget.start.layout.display is None
    widget.start.value = 3
    assert "Tokens 3 to 50 of 61" in widget.message.value
    widget.text.value = "short"
    assert (widget.start.value, widget.message.value) == (0, "")


def test_the_widget_shows_errors_as_text_and_recovers(reader, quick):
    widget = explore("", **reader)
    assert "text is empty" in widget.message.value and widget.results.layout.display == "none"
    widget.layer.value = widget.head.value = 0
    widget.text.value = "a <b>cat</b>"
    assert widget.message.value == "" and widget.results.layout.display is None
    assert "&lt;b&gt;cat&lt;/b&gt;" in widget.facts.value and "<b>cat" not in "".join(shown(widget))
    reader["model"].pooler.register_forward_hook(lambda *_: {}["<i>"])
    widget.text.value = "a dog"
    assert "KeyError: &#x27;&lt;i&gt;&#x27;" in widget.message.value


def test_the_widget_copes_with_one_head_and_with_too_many():
    one = explore("a cat", model=small_model(1, 1), tokenizer=Words())
    assert one.layer.layout.display == one.head.layout.display == "none"
    assert "Layer 0, head 0" in one.facts.value
    many = explore("a cat", model=small_model(1, 67), tokenizer=Words())
    assert "got 67 heads" in many.grid.value and "<img" in many.picture.value


def test_the_widget_shows_the_real_heads(quick):
    widget = explore("The children played in the garden until it got dark.")
    widget.head.value = 2
    assert "looks at the token before: 1.00 of its attention" in widget.facts.value
    assert (widget.layer.max, widget.head.max) == (5, 11)


def test_explore_without_ipywidgets_says_what_to_do(monkeypatch, capsys):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    assert explore("a cat") is None
    assert "%pip install ipywidgets" in capsys.readouterr().out


@pytest.mark.parametrize("texts, name", [((None,), "text"), ((["a"],), "text"), (("a", 1), "pair")])
def test_explore_refuses_what_is_no_text(texts, name):
    with pytest.raises(TypeError, match=f"{name} must be a str"):
        explore(*texts)
