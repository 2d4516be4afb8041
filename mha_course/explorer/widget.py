"""The explorer as a notebook widget: Python reads, `component.js` shows."""

import html
from itertools import count
from pathlib import Path

import anywidget
import traitlets
from IPython.display import display, update_display

from mha_course.explorer import words
from mha_course.explorer.attention_of_text import attention_map
from mha_course.explorer.handed_over import handed_over, head_shown
from mha_course.explorer.heads import describe_head
from mha_course.explorer.pictures import head_svg, image_tag

__all__ = ["Explorer"]

# JupyterLab says "model not found" for a widget of a kernel that is gone, whatever else its output
# holds. So a picture follows as an output of its own. It is hidden beside a widget that lives, and
# stands in the place of one that does not.
STYLE = """<style>
.jp-OutputArea-child:has(.mha-explorer) + .jp-OutputArea-child:has(.mha-picture),
.jp-OutputArea-child:has(+ .jp-OutputArea-child .mha-picture) > .jupyter-widgets:not(:has(*))
{ display: none }
</style>"""
CARD = "background: white; color: black; padding: 6px; border-radius: 6px; width: fit-content"


class Explorer(anywidget.AnyWidget):
    """The attention of a text; see `mha_course.explorer.explore`.

    Its parts, to read or to set from code: `text`, `pair`; `layer` and `head`, None for those that
    `opening_head` finds; `start`, the first token drawn; `found`, the AttentionMap, None after an
    error. `content` is what the component in the browser shows.
    Lesson: notebooks/07_seeing_attention.ipynb.
    """

    _esm = Path(__file__).with_name("component.js")
    _css = Path(__file__).with_name("component.css")
    text = traitlets.Unicode().tag(sync=True)
    pair = traitlets.Unicode().tag(sync=True)
    layer = traitlets.Int(None, allow_none=True).tag(sync=True)
    head = traitlets.Int(None, allow_none=True).tag(sync=True)
    start = traitlets.Int(0).tag(sync=True)
    content = traitlets.Dict().tag(sync=True)

    def __init__(self, text, pair=None, model=None, tokenizer=None):
        super().__init__(text=text, pair=pair or "")
        self._reader = {"model": model, "tokenizer": tokenizer}
        self._turns, self._pictured, self.found = count(), False, None
        self._read()
        self.observe(self._read, ["text", "pair"])
        self.observe(self._show, "start")

    def __repr__(self):
        return f"Explorer({self.text!r})"

    def _ipython_display_(self):
        view, metadata = self._repr_mimebundle_()
        display(view, metadata=metadata, raw=True)
        display(self._picture(), raw=True, display_id=self.model_id)
        self._pictured = True

    def _read(self, _=None):
        try:
            self.found = attention_map(self.text, self.pair.strip() or None, **self._reader)
            self._show()
        except Exception as error:  # whatever a model of one's own raises is for its author to read
            kind = "" if isinstance(error, ValueError) else f"{type(error).__name__}: "
            self.found, self.content = None, {"turn": next(self._turns), "error": f"{kind}{error}"}
        if self._pictured:
            update_display(self._picture(), raw=True, display_id=self.model_id)

    def _show(self, _=None):
        if self.found is None:
            return
        start = max(0, min(self.start, words.windows(self.found)))
        if start != self.start:
            self.start = start  # which comes here again
            return
        self.content = {"turn": next(self._turns), **handed_over(self.found, start)}

    def _picture(self):
        """What stays when the kernel is gone: the head as a picture, and how to get more."""
        if self.found is None:
            return {"text/plain": self.content["error"]}
        place = head_shown(self.content, self.layer, self.head)
        told = words.picture_text(self.found, *place)
        kind = describe_head(self.found.weights[*place], self.found.tokens)
        note = (
            f"Layer {place[0]}, head {place[1]} {kind}. A row is a query, a column a key. "
            "Run the cell to see other heads and other texts."
        )
        image = image_tag(head_svg(self.found, *place, self.start), told)
        return {
            "text/plain": told,
            "text/html": f'<div class="mha-picture">{STYLE}<p>{html.escape(note)}</p>'
            f'<div style="{CARD}">{image}</div></div>',
        }
