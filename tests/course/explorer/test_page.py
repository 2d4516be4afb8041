"""The explorer's page, driven without a browser."""

import json
import re
from pathlib import Path

import pytest
from small_reader import LAYERS, H, Words, small_model

from mha_course.explorer import attention_map, most_attended, pictures
from mha_course.explorer import attention_of_text as attention
from mha_course.explorer.handed_over import handed_over

# The page


@pytest.fixture
def page(monkeypatch):
    """The page with small models instead of the real ones; `page.heads` are those of each."""
    import streamlit
    from streamlit.testing.v1 import AppTest

    streamlit.cache_resource.clear()
    streamlit.cache_data.clear()
    heads = {None: (LAYERS, H), "bert-base-uncased": (3, 5), "bert-base-chinese": (1, 1)}

    def load_small(name=None):
        if name not in heads:
            raise ValueError(f"there is no model {name}")
        return small_model(*heads[name]), Words()

    monkeypatch.setattr(attention, "load", load_small)
    # Each page would look through all installed packages for components; there are none.
    monkeypatch.setattr("importlib.metadata.distributions", lambda: iter(()))
    file = Path(pictures.__file__).with_name("page.py")
    return AppTest.from_file(str(file), default_timeout=60).run()


def shown(page):
    """What the component is given; None if the page has none."""
    components = page.get("bidi_component")
    return json.loads(components[0].proto.json) if components else None


def choose(page, layer, head):
    """As the page does when a head is clicked."""
    page.session_state["chosen"] = layer, head
    return page.run()


def offered(page):
    """The head that the page offers to download."""
    (line,) = [block.value for block in page.markdown if block.value.startswith("Take ")]
    return tuple(map(int, re.findall(r"\d+", line)))


def unescaped(block):
    return re.sub(r"\\(.)", r"\1", block.value)


def test_the_page_shows_what_the_notebook_shows(page):
    assert not page.exception and not page.error
    page.text_area(key="text").set_value("a cat and a dog").run()
    found = attention_map("a cat and a dog", model=small_model(), tokenizer=Words())
    content = shown(page)
    assert content["turn"] and content["chosen"] == [None, None]
    expected = json.loads(json.dumps(handed_over(found)))
    assert {name: content[name] for name in expected} == expected
    assert offered(page) == tuple(content["opening"])


def test_the_component_follows_text_pair_and_window(page):
    turns = [shown(page)["turn"]]
    for change in (
        lambda: page.text_area(key="text").set_value("word " * 100),
        lambda: page.text_input(key="pair").set_value("it is loud"),
        lambda: page.slider[0].set_value(3),
    ):
        change().run()
        turns.append(shown(page)["turn"])
        assert not page.exception
    assert len(set(turns)) == 4 and shown(page)["start"] == 3
    choose(page, 1, 2)
    assert shown(page)["turn"] == turns[-1]  # the component goes on as it is
    assert shown(page)["chosen"] == [1, 2] and offered(page) == (1, 2)


def test_a_model_without_the_chosen_head_shows_its_opening_one(page):
    choose(page, 1, 2)
    page.selectbox(key="model").select("bert-base-uncased").run()
    assert (shown(page)["layers"], shown(page)["heads"]) == (3, 5) and offered(page) == (1, 2)
    page.selectbox(key="model").select("bert-base-chinese").run()
    assert not page.exception and offered(page) == tuple(shown(page)["opening"]) == (0, 0)


def test_the_page_says_what_is_wrong_and_goes_on(page):
    text = page.text_area(key="text")
    text.set_value(" ").run()
    assert unescaped(page.error[0]) == "text is empty: there is nothing to attend to"
    assert shown(page) is None
    text.set_value("word " * 20_000).run()
    notes = shown(page)["notes"]
    assert notes[0] == "The text has 20,002 tokens; the model reads the first 61."
    page.selectbox(key="model").select("another one").run()
    assert "Name a model" in page.info[0].value and shown(page) is None
    page.text_input(key="name").set_value("no/such [x](y) $m$").run()
    assert page.error[0].value == r"there is no model no\/such \[x\]\(y\) \$m\$"
    page.selectbox(key="model").select("all-MiniLM-L6-v2").run()
    assert shown(page) and not page.error


def test_what_is_set_on_the_page_outlives_an_error(page):
    page.text_area(key="text").set_value("a cat").run()
    choose(page, 1, 2)
    before = shown(page)
    page.text_area(key="text").set_value("").run()
    page.text_area(key="text").set_value("a cat").run()
    assert shown(page) == before and offered(page) == (1, 2)
    page.selectbox(key="model").select("another one").run()
    page.selectbox(key="model").select("all-MiniLM-L6-v2").run()
    assert shown(page) == before and page.text_area(key="text").value == "a cat"
    assert not page.warning and not page.exception


def test_markup_of_a_text_reaches_no_markdown(page):
    page.text_area(key="text").set_value("<b>x</b> $y$ :red[**z**]").run()
    assert not page.exception
    assert "<b>x</b>" in shown(page)["tokens"]
    written = [block.value for block in (*page.markdown, *page.subheader, *page.caption)]
    assert written and not any(x in "".join(written) for x in ("<b>x", "$y$", "**z", ":red"))
    assert not any(element.allow_html for element in page.markdown)


def test_the_page_offers_picture_numbers_and_the_code_that_ran(page):
    labels = [button.label for button in page.get("download_button")]
    assert [label.split()[-1] for label in labels] == ["(PNG)", "(CSV)", "(JSON)"]
    import inspect

    assert inspect.getsource(most_attended).rstrip() in [code.value.rstrip() for code in page.code]
    assert any("a column is a key" in line for line in shown(page)["reading"])
    assert any("Click one of the small" in block.value for block in page.sidebar.markdown)
