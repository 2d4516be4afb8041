"""The widget of the explorer, driven from Python; for the browser see tests/project."""

import base64
import html
import importlib
import re

import pytest
import torch
from small_reader import LAYERS, H, Words, small_model

from mha_course.explorer import explore, handed_over, pictures, widget


@pytest.fixture
def displayed(monkeypatch):
    """What is displayed, in order, and what takes its place later: (bundle, display id)."""
    calls = []

    def show(bundle, metadata=None, raw=False, display_id=None):
        assert raw
        calls.append((bundle, display_id))

    monkeypatch.setattr(widget, "display", show)
    monkeypatch.setattr(widget, "update_display", show)
    return calls


def picture(bundle):
    """The SVG in a bundle, and its words."""
    given = bundle["text/html"]
    svg = base64.b64decode(re.search('base64,(.*?)"', given)[1]).decode()
    return svg, html.unescape(re.search('alt="(.*?)"', given)[1])


def test_the_widget_hands_over_what_it_read(reader):
    explorer = explore("a cat and a dog", **reader)
    expected = handed_over.handed_over(explorer.found)
    assert explorer.content == {"turn": 0, **expected}
    assert explorer.layer is None and explorer.head is None
    assert repr(explorer) == "Explorer('a cat and a dog')"
    state = explorer.get_state()
    assert {"text", "pair", "layer", "head", "start", "content", "_esm", "_css"} <= set(state)
    assert "export default" in state["_esm"] and ".mha-explorer" in state["_css"]


def test_the_component_loads_nothing_from_anywhere(reader):
    state = explore("a cat", **reader).get_state()
    addresses = re.findall(r"\w+://[^\"' )]*", state["_esm"] + state["_css"])
    assert addresses == ["http://www.w3.org/2000/svg"]  # a name, not a place
    assert not re.search(
        r"\bimport\b|\bfetch\b|@import|url\(|innerHTML", state["_esm"] + state["_css"]
    )


def test_another_text_is_read_anew_and_the_chosen_head_stays(reader):
    explorer = explore("a cat", **reader)
    explorer.layer, explorer.head = 1, 2
    explorer.set_state({"text": "a dog barks"})  # as it comes from the browser
    assert explorer.found.tokens == ["[CLS]", "a", "dog", "barks", "[SEP]"]
    assert explorer.content["tokens"] == explorer.found.tokens and explorer.content["turn"] == 1
    explorer.set_state({"pair": " it is loud "})
    assert explorer.found.second == explorer.content["second"] == 5
    assert (explorer.layer, explorer.head) == (1, 2)
    assert explore("a cat", "a dog", **reader).found.second == 4


def test_long_texts_are_handed_over_in_part(reader):
    explorer = explore("word " * 100, **reader)
    first, second = explorer.content["notes"]
    assert "102 tokens; the model reads the first 61" in first
    assert explorer.content["last_start"] == 61 - pictures.DRAWN
    explorer.set_state({"start": 3})
    assert explorer.content["start"] == 3 and "Tokens 3 to 50" in explorer.content["notes"][1]
    explorer.text = "short"
    assert (explorer.start, explorer.content["start"], explorer.content["notes"]) == (0, 0, [])


def test_errors_are_shown_and_the_next_text_is_read(reader):
    explorer = explore("", **reader)
    assert explorer.content["error"].startswith("text is empty") and explorer.found is None
    explorer.start = 5
    assert "error" in explorer.content
    explorer.text = "a <b>cat</b>"
    assert "error" not in explorer.content and "<b>cat</b>" in explorer.content["tokens"]
    reader["tokenizer"].tokens = lambda ids: {}["<i>"]
    explorer.text = "a dog"
    assert explorer.content["error"] == "KeyError: '<i>'" and explorer.found is None
    turn = explorer.content["turn"]
    explorer.text = "a cow"  # the same error again is said again
    assert explorer.content["turn"] > turn


def test_weights_that_are_no_numbers_are_an_error(reader):
    attention = reader["model"].encoder.layers[1].self_attention
    attention.register_forward_hook(lambda *call: (call[2][0], call[2][1] * float("nan")))
    explorer = explore("a cat", **reader)
    assert "nan" in explorer.content["error"] and explorer.found is None


def test_a_picture_follows_the_widget_and_another_text_changes_it(reader, displayed):
    explorer = explore("a cat", **reader)
    explorer._ipython_display_()
    (view, _), (saved, name) = displayed
    assert view["application/vnd.jupyter.widget-view+json"]["model_id"] == explorer.model_id
    place = explorer.content["opening"]
    svg, told = picture(saved)
    assert svg == pictures.head_svg(explorer.found, *place)
    assert f"layer {place[0]}, head {place[1]}" in told and saved["text/plain"] == told
    assert "mha-picture" in saved["text/html"] and "Run the cell" in saved["text/html"]
    explorer.layer, explorer.head = 1, 0
    assert len(displayed) == 2  # a head that is looked at is not kept
    explorer.text = "a <i>dog</i>"
    later, same_name = displayed[2]
    assert same_name == name and "<i>dog" not in later["text/html"]
    assert picture(later)[0] == pictures.head_svg(explorer.found, 1, 0)
    explorer.text = ""
    assert displayed[3][0] == {"text/plain": explorer.content["error"]}


def test_the_picture_names_no_model_so_that_running_again_changes_nothing(reader, displayed):
    for _ in range(2):
        explore("a cat", **reader)._ipython_display_()
    assert displayed[1][0] == displayed[3][0]


def test_the_widget_shows_the_real_heads():
    explorer = explore("The children played in the garden until it got dark.")
    assert "looks at the token before: 1.00" in explorer.content["figures"][0][2]["kind"]
    assert explorer.found.weights.shape[:2] == (6, 12)


def test_models_of_other_sizes_are_shown():
    for sizes in ((1, 1), (LAYERS, H), (1, 67)):
        explorer = explore("a cat", model=small_model(*sizes), tokenizer=Words())
        assert (explorer.content["layers"], explorer.content["heads"]) == sizes
        assert torch.isfinite(explorer.found.weights).all()


def test_explore_without_anywidget_says_what_to_do(monkeypatch, capsys):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    assert explore("a cat") is None
    assert "%pip install anywidget" in capsys.readouterr().out


@pytest.mark.parametrize("texts, name", [((None,), "text"), ((["a"],), "text"), (("a", 1), "pair")])
def test_explore_refuses_what_is_no_text(texts, name):
    with pytest.raises(TypeError, match=f"{name} must be a str"):
        explore(*texts)
