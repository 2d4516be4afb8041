"""The explorer as a web page. `mha-course explore` serves it; Streamlit runs it at each change."""

import inspect
import re
from pathlib import Path

import streamlit as st

from mha_course import plots
from mha_course.embedded import DEFAULT
from mha_course.explorer import attention_of_text as attention
from mha_course.explorer import export, heads, pictures, words
from mha_course.explorer.handed_over import handed_over, head_shown

__all__ = ["main"]

COMPONENT = "explorer"
TEXT = "The children played in the garden until it got dark and their mother called them in."
OTHER = "another one"
MODELS = {
    DEFAULT: None,
    **{name: name for name in ("bert-base-uncased", "bert-base-chinese")},
    OTHER: "",
}
ABOUT = {
    DEFAULT: "6 layers of 12 heads, for English. It comes with the course and needs no network.",
    "bert-base-uncased": "12 layers of 12 heads, for English. Downloaded once, 440 MB.",
    "bert-base-chinese": "12 layers of 12 heads, for Chinese. Downloaded once, 410 MB.",
    OTHER: "Any BERT with weights in model.safetensors.",
}
USAGE = """
1. Change the text and leave the field (or press Ctrl+Enter). A second text makes a sentence pair.
2. Click one of the small pictures, or go there with Tab and the arrow keys: it is shown large.
3. Point at a token to see what it attends to, and what attends to it.
4. Click a token or a cell to see how a weight comes from a query and a key.
5. Take the picture and the numbers with you.

In a notebook, `from mha_course.explorer import explore` and `explore("your text")` show the same.
"""
SHOWN = (
    *(attention.attention_map, heads.opening_head, heads.most_attended, heads.head_figures),
    *(heads.describe_head, pictures.head_picture, plots.attention_heatmap),
)


def main():
    """The page, from top to bottom."""
    st.set_page_config("The attention of a text", layout="wide")
    keep()
    st.title("What each head attends to")
    name = choose_model()
    text = st.text_area("Text", key="text", height=90)
    pair = st.text_input("Second text, for a sentence pair (optional)", key="pair").strip() or None
    if name == "":
        st.info("Name a model in the sidebar: a BERT on the Hugging Face Hub, or a folder.")
        st.stop()
    source = text, pair, name
    found = read(*source)
    layer, head, start = show(found, source)
    more = {"model": name or DEFAULT, "text": text, "pair": pair}
    offer(found, layer, head, start, more)
    with st.expander("The code that made it"):
        for function in SHOWN:
            st.code(inspect.getsource(function))


def keep():
    """Keep what is set on the page; Streamlit forgets a slider while an error takes its place."""
    st.session_state.setdefault("text", TEXT)
    for key in st.session_state:
        if key != COMPONENT:  # its state is kept in "chosen"
            st.session_state[key] = st.session_state[key]


def choose_model():
    """The model's name or folder as chosen in the sidebar; None for the course's own."""
    with st.sidebar:
        st.header("Model")
        label = st.selectbox("Model", list(MODELS), label_visibility="collapsed", key="model")
        name = MODELS[label]
        if label == OTHER:
            name = st.text_input("Name on the Hugging Face Hub, or folder", key="name").strip()
        st.markdown(ABOUT.get(label, ""))
        st.header("How to use it")
        st.markdown(USAGE)
    return name


def read(text, pair, name):
    """The attention of the texts; what is wrong with them or the model is said, and ends the page.

    A slider that is moved runs the whole page again, so the last texts are kept.
    """
    try:
        with st.spinner("Reading …"):
            return attend(text, pair, name)
    except (ValueError, OSError) as error:
        st.error(plain(str(error)))
        st.stop()


@st.cache_resource(max_entries=2, show_spinner=False)
def attend(text, pair, name):
    """The AttentionMap of the texts by the model of this name."""
    return attention.attention_map(text, pair, *attention.load(name))


def show(found, source):
    """The component that a notebook shows, too; returns (layer, head, first token drawn)."""
    last = words.windows(found)
    start = st.slider("Drawn from token", 0, last, key=f"start/{last}") if last else 0
    chosen = st.session_state.get("chosen", (None, None))
    content = hand_over(source, start)
    component()(
        data={"turn": repr((source, start)), "chosen": chosen, **content},
        key=COMPONENT,
        on_chosen_change=choose,
    )
    return *head_shown(content, *chosen), start


def choose():
    """Keep the head that was chosen in the component, so that an error cannot take it away."""
    st.session_state["chosen"] = tuple(st.session_state[COMPONENT].chosen)


@st.cache_resource
def component():
    """The component, made known to Streamlit once."""
    js, css = (Path(pictures.__file__).with_name(f"component.{kind}") for kind in ("js", "css"))
    return st.components.v2.component(
        COMPONENT, js=js.read_text("utf-8"), css=css.read_text("utf-8")
    )


@st.cache_data(max_entries=8, show_spinner=False)
def hand_over(source, start):
    """What the component shows of the texts."""
    return handed_over(attend(*source), start)


def offer(found, layer, head, start, more):
    """Buttons that download the picture and the numbers of this head."""
    st.markdown(f"Take layer {layer}, head {head} along:")
    stem = f"attention-layer{layer}-head{head}"
    # Excel takes a CSV for UTF-8 only if it begins with this mark.
    numbers = export.to_csv(found, layer, head).encode("utf-8-sig")
    content = export.to_json(found, layer, head, **more)
    for column, (label, data, ending, kind) in zip(
        st.columns(3),
        (
            # Drawn when it is asked for: drawing takes longer than all the rest.
            (
                "Download the picture (PNG)",
                lambda: pictures.head_picture(found, layer, head, start),
                *("png", "image/png"),
            ),
            ("Download the numbers (CSV)", numbers, "csv", "text/csv"),
            ("Download the numbers (JSON)", content, "json", "application/json"),
        ),
        strict=True,
    ):
        column.download_button(label, data, f"{stem}.{ending}", kind, on_click="ignore")


def plain(text):
    """The text with a backslash before whatever Markdown could take for a sign."""
    return re.sub(r"([!-/:-@\[-`{-~])", r"\\\1", text)


if __name__ == "__main__":
    main()
