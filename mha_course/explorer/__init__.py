"""The attention of a text: as data, as a widget, as a page. Start in `attention_of_text.py`."""

from mha_course.explorer.attention_of_text import AttentionMap, attention_map
from mha_course.explorer.heads import (
    describe_head,
    entropy,
    find_head,
    head_figures,
    most_attended,
    offset_score,
    separator_score,
    token_score,
)

__all__ = [
    "AttentionMap",
    "attention_map",
    "describe_head",
    "entropy",
    "explore",
    "find_head",
    "head_figures",
    "most_attended",
    "offset_score",
    "separator_score",
    "token_score",
]


def explore(text, pair=None, model=None, tokenizer=None):
    """The attention of a text to play with: change the text, move through layers and heads.

    Model and tokenizer as in `attention_map`. Errors are shown in the widget. Where anywidget is
    missing, says how to install it and returns None.

    Shapes: returns a widget, shown where it is last in a cell.
    Raises: TypeError unless text and pair are str.
    Lesson: notebooks/07_seeing_attention.ipynb.
    """
    from importlib.util import find_spec

    for name, given in (("text", text), ("pair", "" if pair is None else pair)):
        if not isinstance(given, str):
            raise TypeError(f"{name} must be a str, got {type(given).__name__}")
    if find_spec("anywidget") is None:
        print(
            "The explorer needs the package anywidget, which is not installed here. Run\n"
            "    %pip install anywidget\n"
            "restart the kernel and reload the page."
        )
        return None
    from mha_course.explorer.widget import Explorer

    return Explorer(text, pair, model, tokenizer)
