"""The explorer's page, driven without a browser."""

import re
from pathlib import Path

import pytest
from small_reader import LAYERS, H, Words, small_model

from mha_course.explorer import (
    attention_map,
    head_figures,
    most_attended,
    pictures,
)
from mha_course.explorer import attention_of_text as attention

# The page


@pytest.fixture
def page(monkeypatch, quick):
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


def images(page):
    return [url for image in page.image for url in image.value]


def unescaped(block):
    return re.sub(r"\\(.)", r"\1", block.value)


def tables(page):
    return [table.value for table in page.dataframe]


def test_the_page_shows_a_head_and_its_figures(page):
    assert not page.exception and not page.error
    assert [slider.label for slider in page.slider] == ["Layer", "Head"]
    page.text_area(key="text").set_value("a cat and a dog").run()
    page.slider(key=f"Head/{H}").set_value(2).run()
    found = attention_map("a cat and a dog", model=small_model(), tokenizer=Words())
    best = most_attended(found.weights[0, 2], found.tokens, 5)
    most, where = tables(page)
    assert list(most["token"]) == [token for token, _ in best]
    assert list(most["mean weight"]) == pytest.approx([mean for _, mean in best])
    assert list(where["what"]) == list(head_figures(found.weights[0, 2], found.tokens))
    assert "Layer 0, head 2" in [line.value for line in page.subheader]


def test_the_picture_follows_text_pair_and_sliders(page):
    seen = images(page)
    for change in (
        lambda: page.text_area(key="text").set_value("a dog barks"),
        lambda: page.text_input(key="pair").set_value("it is loud"),
        lambda: page.slider(key=f"Layer/{LAYERS}").set_value(1),
        lambda: page.slider(key=f"Head/{H}").set_value(1),
    ):
        change().run()
        seen += images(page)
        assert not page.exception
    assert len(seen) == len(set(seen)) == 5
    page.slider(key=f"Head/{H}").set_value(0).run()
    assert images(page) == seen[3:4]


def test_the_page_compares_all_heads_and_takes_other_models(page):
    page.checkbox(key="compare").check().run()
    assert len(images(page)) == 2
    assert list(tables(page)[2]["head"]) == [f"head {head}" for head in range(H)]
    page.selectbox(key="model").select("bert-base-uncased").run()
    assert [slider.max for slider in page.slider] == [2, 4]
    assert len(tables(page)[2]) == 5
    page.selectbox(key="model").select("bert-base-chinese").run()
    assert not page.exception and len(page.slider) == 0 and len(tables(page)[2]) == 1
    page.checkbox(key="compare").uncheck().run()
    assert len(images(page)) == 1


def test_the_page_says_what_is_wrong_and_goes_on(page):
    text = page.text_area(key="text")
    text.set_value(" ").run()
    assert unescaped(page.error[0]) == "text is empty: there is nothing to attend to"
    assert not images(page)
    text.set_value("word " * 20_000).run()
    assert unescaped(page.info[0]) == "The text has 20,002 tokens; the model reads the first 61."
    page.selectbox(key="model").select("another one").run()
    assert "Name a model" in page.info[0].value and not images(page)
    page.text_input(key="name").set_value("no/such [x](y) $m$").run()
    assert page.error[0].value == r"there is no model no\/such \[x\]\(y\) \$m\$"
    page.selectbox(key="model").select("all-MiniLM-L6-v2").run()
    assert len(images(page)) == 1 and not page.error


def test_what_is_set_on_the_page_outlives_an_error(page):
    page.text_area(key="text").set_value("a cat").run()
    page.slider(key=f"Head/{H}").set_value(2).run()
    picture = images(page)
    page.text_area(key="text").set_value("").run()
    page.text_area(key="text").set_value("a cat").run()
    assert images(page) == picture
    page.selectbox(key="model").select("another one").run()
    page.selectbox(key="model").select("all-MiniLM-L6-v2").run()
    assert images(page) == picture and page.text_area(key="text").value == "a cat"
    assert not page.warning and not page.exception


def test_markup_of_a_text_reaches_no_markdown(page):
    page.text_area(key="text").set_value("<b>x</b> $y$ :red[**z**]").run()
    page.checkbox(key="compare").check().run()
    assert not page.exception
    assert "<b>x</b>" in list(tables(page)[0]["token"])
    written = [block.value for block in (*page.markdown, *page.subheader, *page.caption)]
    assert written and not any(x in "".join(written) for x in ("<b>x", "$y$", "**z", ":red"))
    assert not any(element.allow_html for element in page.markdown)


def test_the_page_offers_picture_numbers_and_the_code_that_ran(page):
    labels = [button.label for button in page.get("download_button")]
    assert [label.split()[-1] for label in labels] == ["(PNG)", "(CSV)", "(JSON)"]
    import inspect

    assert inspect.getsource(most_attended).rstrip() in [code.value.rstrip() for code in page.code]
    assert any("a column is a key" in block.value for block in page.markdown)
    assert any("Move the sliders" in block.value for block in page.sidebar.markdown)
