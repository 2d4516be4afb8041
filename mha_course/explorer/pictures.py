"""The pictures of the explorer, as PNG: one head, all heads of a layer. pyplot is not involved."""

import base64
import html
import io
import threading

from mha_course import plots
from mha_course.explorer.heads import describe_head

__all__ = ["DRAWN", "grid_picture", "head_picture", "image_tag"]

DRAWN = 48  # tokens a side; with more, labels could no longer be read
DPI = 144  # 1.5 pixels for each of a usual screen, so that letters stay sharp when magnified
LOCK = threading.Lock()  # matplotlib's fonts are not made for threads, and a web server has several


def head_picture(found, layer, head, start=0):
    """The heat map of one head, from token `start` on, DRAWN tokens at most.

    Shapes: found an AttentionMap; returns PNG bytes.
    Raises: IndexError if there is no such layer or head.
    Lesson: notebooks/07_seeing_attention.ipynb.
    """
    weights = found.weights[layer, head]
    kind = describe_head(weights, found.tokens).replace(": ", "\n", 1)
    title = f"layer {layer}, head {head} {kind}"
    shown, labels = _window(found, start)
    with LOCK:
        figure = _figure()
        ax = plots.attention_heatmap(weights[shown, shown], labels, labels, title, figure=figure)
        _separate(ax, found, shown)
        return _png(figure)


def grid_picture(found, layer, start=0):
    """The heat maps of all heads of a layer, on one colour scale; see `head_picture`.

    Shapes: found an AttentionMap of up to 64 heads; returns PNG bytes.
    Raises: IndexError if there is no such layer; ValueError if there are more heads.
    Lesson: notebooks/07_seeing_attention.ipynb.
    """
    shown, labels = _window(found, start)
    weights = found.weights[layer][:, shown, shown]
    with LOCK:
        figure = _figure()
        title = f"layer {layer}, all heads"
        plots.head_grid(weights, labels, labels, title, figure=figure)
        for ax in figure.axes[: len(weights)]:
            _separate(ax, found, shown)
        return _png(figure)


def image_tag(png, text):
    """An `<img>` of a PNG, with `text` for those who cannot see it."""
    width = int.from_bytes(png[16:20], "big") * 96 // DPI  # the header of a PNG says its size
    return (
        f'<img alt="{html.escape(text)}" width="{width}" style="max-width: 100%; height: auto" '
        f'src="data:image/png;base64,{base64.b64encode(png).decode()}">'
    )


def _window(found, start):
    shown = slice(start, start + DRAWN)
    with LOCK:
        return shown, plots.legible(found.tokens)[shown]


def _figure():
    from matplotlib.figure import Figure

    return Figure(facecolor="white")


def _separate(ax, found, shown):
    """A line before the second text, in both directions."""
    if found.second is not None and shown.start < found.second < shown.stop:
        place = found.second - shown.start - 0.5
        ax.axhline(place, color="white", linewidth=1)
        ax.axvline(place, color="white", linewidth=1)


def _png(figure):
    file = io.BytesIO()
    figure.savefig(file, format="png", dpi=DPI)
    return file.getvalue()
