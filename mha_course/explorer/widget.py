"""The explorer as a notebook widget."""

import html

import ipywidgets

from mha_course.explorer import words
from mha_course.explorer.attention_of_text import attention_map
from mha_course.explorer.heads import describe_head, most_attended
from mha_course.explorer.pictures import grid_picture, head_picture, image_tag

__all__ = ["Explorer"]

WIDE = {"style": {"description_width": "6.5em"}, "layout": {"width": "auto"}}
CARD = "background: white; color: black; padding: 6px; border-radius: 6px; width: fit-content"


class Explorer(ipywidgets.VBox):
    """The attention of a text; see `mha_course.explorer.explore`.

    Its parts, to read or to set from code: `text`, `pair`, `layer`, `head`, `start` (the first
    token drawn) are inputs, `message`, `picture`, `facts`, `grid` what is shown, `found` the
    AttentionMap.
    Lesson: notebooks/07_seeing_attention.ipynb.
    """

    def __init__(self, text, pair=None, model=None, tokenizer=None):
        self._reader = {"model": model, "tokenizer": tokenizer}
        self.found = None
        self.text = _line("Text", text, "Press Enter to read it")
        self.pair = _line("Second text", pair or "", "Optional: a sentence pair")
        self.layer, self.head = _slider("Layer"), _slider("Head")
        self.start = _slider("Drawn from")
        self.message, self.picture, self.facts, self.grid = (ipywidgets.HTML() for _ in range(4))
        self.picture.layout = {"flex": "3 1 340px", "min_width": "0"}
        self.facts.layout = {"flex": "2 1 260px", "min_width": "0", "margin": "0 0 0 16px"}
        self.results = ipywidgets.VBox(
            [
                ipywidgets.VBox([self.layer, self.head, self.start]),
                ipywidgets.HBox([self.picture, self.facts], layout={"flex_flow": "row wrap"}),
                self.grid,
            ]
        )
        super().__init__([self.text, self.pair, self.message, self.results])
        self._read()
        for line in (self.text, self.pair):
            line.observe(self._read, "value")
        for slider in (self.layer, self.start):
            slider.observe(self._draw, "value")
        self.head.observe(self._draw_head, "value")

    def __repr__(self):
        return f"Explorer({self.text.value!r})"

    def _read(self, _=None):
        try:
            found = attention_map(self.text.value, self.pair.value.strip() or None, **self._reader)
        except Exception as error:  # whatever a model of one's own raises is for its author to read
            self._complain(error)
            return
        self.found, self._grids = None, {}  # moving the ends of the sliders draws nothing yet
        num_layers, num_heads = found.weights.shape[:2]
        _set_end(self.layer, num_layers - 1)
        _set_end(self.head, num_heads - 1)
        _set_end(self.start, words.windows(found))
        self.found = found
        self._draw()
        self.results.layout.display = None

    def _draw(self, _=None):
        """All that depends on the layer, the grid included."""
        if self.found is None:
            return
        self._draw_head()
        place = self.layer.value, self.start.value
        if place not in self._grids:
            self._grids[place] = self._grid(*place)
        self.grid.value = self._grids[place]

    def _grid(self, layer, start):
        try:
            picture = grid_picture(self.found, layer, start)
        except ValueError as error:  # more heads than can be drawn
            return html.escape(str(error))
        kinds = _table(("head", "what it does"), words.kinds(self.found, layer))
        return (
            f"{_card(image_tag(picture, words.picture_text(self.found, layer)))}"
            f"<details><summary>What each head of layer {layer} does</summary>{kinds}</details>"
            f"{_reading()}"
        )

    def _draw_head(self, _=None):
        if self.found is None:
            return
        found, layer, head = self.found, self.layer.value, self.head.value
        weights = found.weights[layer, head]
        picture = head_picture(found, layer, head, self.start.value)
        self.message.value = _lines(words.notes(found, self.start.value))
        self.picture.value = _card(image_tag(picture, words.picture_text(found, layer, head)))
        best = [(token, f"{mean:.4f}") for token, mean in most_attended(weights, found.tokens, 5)]
        shares = [(name, f"{share:.4f}") for name, share in words.shares(found, layer, head)]
        self.facts.value = (
            f"<p>Layer {layer}, head {head} <b>"
            f"{html.escape(describe_head(weights, found.tokens))}</b>.</p>"
            f"{_table(('most attended', 'mean weight'), best)}"
            f"{_table(('where it looks', 'share'), shares)}"
        )

    def _complain(self, error):
        kind = "" if isinstance(error, ValueError) else f"{type(error).__name__}: "
        self.found = None
        self.message.value = f'<p role="alert"><b>{html.escape(f"{kind}{error}")}</b></p>'
        self.results.layout.display = "none"


def _line(name, value, hint):
    return ipywidgets.Text(
        value, description=name, placeholder=hint, tooltip=hint, continuous_update=False, **WIDE
    )


def _slider(name):
    return ipywidgets.IntSlider(0, 0, 0, description=name, continuous_update=False, **WIDE)


def _set_end(slider, end):
    slider.value = min(slider.value, end)
    slider.max = end
    slider.layout.display = None if end else "none"


def _lines(sentences):
    return "".join(f'<p role="status">{html.escape(line)}</p>' for line in sentences)


def _table(names, rows):
    head = "".join(f'<th scope="col" style="text-align: left">{name}</th>' for name in names)
    body = "".join(
        "<tr>" + "".join(f"<td>{html.escape(str(cell))}</td>" for cell in row) + "</tr>"
        for row in rows
    )
    style = "border-spacing: 1em 0; margin: 0 0 1em -1em; line-height: 1.4"
    return f'<table style="{style}"><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>'


def _card(inside):
    return f'<div style="{CARD}">{inside}</div>'


def _reading():
    items = "".join(f"<li>{html.escape(line)}</li>" for line in (*words.READING, words.KINDS))
    return f"<details><summary>How to read this</summary><ul>{items}</ul></details>"
