"""Pictures of a head: as PNG to take along, as SVG for a notebook that is not running."""

import base64
import html
import io
import re
import threading
import unicodedata

from mha_course import plots
from mha_course.explorer.heads import describe_head
from mha_course.style import COLOURS, ink

__all__ = ["DRAWN", "head_picture", "head_svg", "image_tag"]

DRAWN = 48  # tokens a side; with more, labels could no longer be read
DPI = 144  # 1.5 pixels for each of a usual screen, so that letters stay sharp when magnified
SVG = "http://www.w3.org/2000/svg"
CELL = 18  # pixels a side, in an SVG
NOT_IN_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
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


def head_svg(found, layer, head, start=0, ground="#ffffff"):
    """The heat map of one head as the text of an SVG, lettered in the fonts of whoever looks.

    Shapes: found an AttentionMap; DRAWN tokens at most, from token `start` on; `ground` the colour
        of the sheet, "#rrggbb".
    Raises: IndexError if there is no such layer or head.
    Lesson: notebooks/07_seeing_attention.ipynb.
    """
    shown = slice(start, start + DRAWN)
    weights, tokens = found.weights[layer, head, shown, shown].tolist(), found.tokens[shown]
    wide = [2 if unicodedata.east_asian_width(c) in "WF" else 1 for token in tokens for c in token]
    label = 10 + 7 * max(map(len, tokens)) * max(wide)
    side = label + CELL * len(tokens)
    parts = [
        f'<svg xmlns="{SVG}" width="{side}" height="{side}" font-family="sans-serif" '
        f'font-size="12" fill="{ink(ground)}"><rect width="100%" height="100%" fill="{ground}"/>'
    ]
    for i, token in enumerate(html.escape(NOT_IN_XML.sub("�", token)) for token in tokens):
        middle = label + CELL * i + CELL // 2
        parts.append(
            f'<text x="{label - 5}" y="{middle + 4}" text-anchor="end">{token}</text>'
            f'<text transform="translate({middle + 4} {label - 5}) rotate(-90)">{token}</text>'
        )
        parts += [
            f'<rect x="{label + CELL * j}" y="{label + CELL * i}" width="{CELL}" height="{CELL}" '
            f'fill="{COLOURS["queries"]}" fill-opacity="{weight:.2f}"/>'
            for j, weight in enumerate(weights[i])
            if weight >= 0.005
        ]
    cells = CELL * len(tokens)
    frame = f'<rect x="{label}" y="{label}" width="{cells}" height="{cells}" fill="none"'
    return "".join([*parts, f'{frame} stroke="#717581"/></svg>'])


def image_tag(svg, text):
    """An `<img>` of an SVG, with `text` for those who cannot see it."""
    return (
        f'<img alt="{html.escape(text)}" style="max-width: 100%" '
        f'src="data:image/svg+xml;base64,{base64.b64encode(svg.encode()).decode()}">'
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
