"""The explorer as a web page. `mha-course explore` serves it; Streamlit runs it at each change."""

import inspect
import re

import streamlit as st

from mha_course import plots
from mha_course.embedded import DEFAULT
from mha_course.explorer import attention_of_text as attention
from mha_course.explorer import export, heads, pictures, words

__all__ = ["main"]

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
2. Move the sliders to another layer and another head.
3. Look at the heat map, and at what the head attends to most.
4. Tick *Compare all heads* to see a whole layer at once.
5. Take the picture and the numbers with you.

In a notebook, `from mha_course.explorer import explore` and `explore("your text")` show the same.
"""
SHOWN = (attention.attention_map, heads.most_attended, heads.head_figures, heads.describe_head)
DRAWING = (pictures.head_picture, plots.attention_heatmap, plots.head_grid)


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
    layer, head, start = place(found)
    for note in words.notes(found, start):
        st.info(plain(note))
    picture = show_head(source, layer, head, start)
    if st.checkbox("Compare all heads of this layer", key="compare"):
        show_grid(source, layer, start)
    more = {"model": name or DEFAULT, "text": text, "pair": pair}
    offer(found, layer, head, picture, more)
    with st.expander("How to read it", expanded=True):
        st.markdown("\n".join(f"- {line}" for line in (*words.READING, words.KINDS)))
    with st.expander("The code that made it"):
        for function in (*SHOWN, *DRAWING):
            st.code(inspect.getsource(function))


def keep():
    """Keep what is set on the page; Streamlit forgets a slider while an error takes its place."""
    st.session_state.setdefault("text", TEXT)
    for key in st.session_state:
        st.session_state[key] = st.session_state[key]


def choose_model():
    """The model's name or folder as chosen in the sidebar; None for the course's own."""
    with st.sidebar:
        st.header("Model")
        label = st.selectbox("Model", list(MODELS), label_visibility="collapsed", key="model")
        name = MODELS[label]
        if label == OTHER:
            name = st.text_input("Name on the Hugging Face Hub, or folder", key="name").strip()
        st.caption(ABOUT.get(label, ""))
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


def place(found):
    """The layer, the head and the first token drawn, as set by sliders; 0 where there is one."""
    counts = {"Layer": len(found.weights), "Head": found.weights.shape[1]}
    counts["Drawn from token"] = words.windows(found) + 1
    several = {label: count for label, count in counts.items() if count > 1}
    chosen = dict.fromkeys(counts, 0)
    for column, (label, count) in zip(st.columns(len(several) or 1), several.items(), strict=False):
        # A model with another number of heads gets another slider, whose value is in its range.
        chosen[label] = column.slider(label, 0, count - 1, key=f"{label}/{count}")
    return chosen.values()


@st.cache_data(max_entries=64, show_spinner=False)
def draw(source, layer, head, start):
    """The PNG of one head, or of the whole layer if there is no head."""
    if head is None:
        return pictures.grid_picture(attend(*source), layer, start)
    return pictures.head_picture(attend(*source), layer, head, start)


def show_head(source, layer, head, start):
    """The heat map of one head beside its figures; returns the PNG."""
    found, picture = attend(*source), draw(source, layer, head, start)
    left, right = st.columns([3, 2], gap="large")
    left.image(picture, alt=words.picture_text(found, layer, head))
    weights = found.weights[layer, head]
    with right:
        st.subheader(f"Layer {layer}, head {head}")
        st.markdown(f"This head **{plain(heads.describe_head(weights, found.tokens))}**.")
        st.markdown("It attends most to")
        table(("token", "mean weight"), heads.most_attended(weights, found.tokens, 5))
        st.markdown("Where its attention goes")
        table(("what", "share"), words.shares(found, layer, head))
    return picture


def show_grid(source, layer, start):
    """The heat maps of all heads of a layer, and what kind of head each is."""
    found = attend(*source)
    try:
        with st.spinner("Drawing …"):
            picture = draw(source, layer, None, start)
    except ValueError as error:  # more heads than can be drawn
        st.error(plain(str(error)))
        return
    st.image(picture, alt=words.picture_text(found, layer))
    table(("head", "what it does"), words.kinds(found, layer), width="content")


def table(names, rows, width="stretch"):
    """A table whose first column is as it is, and whose numbers in the second have a bar."""
    columns = dict(zip(names, zip(*rows, strict=True), strict=True))
    config = {names[0]: st.column_config.Column(width="small")}
    if isinstance(rows[0][1], float):
        settings = {"format": "%.4f", "min_value": 0.0, "max_value": 1.0}
        config[names[1]] = st.column_config.ProgressColumn(**settings)
    columns = {name: list(values) for name, values in columns.items()}
    st.dataframe(columns, hide_index=True, column_config=config, height="content", width=width)


def offer(found, layer, head, picture, more):
    """Buttons that download the picture and the numbers of this head."""
    stem = f"attention-layer{layer}-head{head}"
    # Excel takes a CSV for UTF-8 only if it begins with this mark.
    numbers = export.to_csv(found, layer, head).encode("utf-8-sig")
    content = export.to_json(found, layer, head, **more)
    for column, (label, data, ending, kind) in zip(
        st.columns(3),
        (
            ("Download the picture (PNG)", picture, "png", "image/png"),
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
