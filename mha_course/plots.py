"""Heat maps, a grid of heads, the picture of head splitting, and simple curves.

In a notebook a call gives exactly one picture, last in its cell or assigned: an Axes belongs to a
pyplot figure, which is shown as the cell ends; a Figure leaves pyplot when it is first shown.
A Figure given as `figure` is filled and given the size that it needs, and pyplot never sees it.
Words and tokens are drawn as they are, a `$` too; titles and axis labels may hold mathtext.
A notebook keeps with each picture what it shows in words: the alternative text of web pages.
"""

import logging
import math
import os
import textwrap
from contextlib import suppress
from functools import cache, partial
from unicodedata import east_asian_width

import numpy as np
import torch

from mha_course.style import COLOUR_MAP, COLOURS, ink, styled

__all__ = ["attention_heatmap", "bars", "head_grid", "lines", "split_heads_picture"]

CHINESE_FONTS = (
    *("Noto Sans CJK SC", "Noto Sans CJK JP", "Noto Sans SC", "Source Han Sans SC", "PingFang SC"),
    *("Hiragino Sans GB", "Microsoft YaHei", "SimHei", "WenQuanYi Micro Hei", "WenQuanYi Zen Hei"),
    *("Droid Sans Fallback", "AR PL UMing CN", "Arial Unicode MS"),
)
LETTER, LINE = 0.085, 0.12  # inches: the width of a letter, the least height of a line of labels
LONGEST_TITLE = 64  # letters a line
LONGEST_LABEL = 20  # letters; what is longer ends in an ellipsis
SAID = []  # the text for which the reader was told that a font is missing
GAP = 0.5  # between two heads of the split picture, in cells


@styled
def attention_heatmap(
    weights,
    query_labels=None,
    key_labels=None,
    title="",
    ax=None,
    vmax=None,
    annotate=None,
    figure=None,
):
    """The attention weights as a picture: a row for each query, a column for each key.

    Colours go from 0 (or the smallest entry, if negative) to `vmax`, by default the largest entry.
    Cells that are not finite are hatched. The numbers are printed in the cells if `annotate`, by
    default up to 64 cells and 16 a side. Crowded labels are thinned out, long ones shortened.

    Shapes: weights (L, S), tensor, array or lists; L query labels; S key labels; returns Axes.
    Raises: ValueError quoting the sizes if weights are not (L, S) or the labels do not fit.
    Lesson: notebooks/07_seeing_attention.ipynb; used from 01 on.
    """
    words, title = title, wrapped(title)
    cells = array(weights, "weights", "(L, S)")
    queries = labels(query_labels, len(cells), "query_labels", "rows")
    keys = labels(key_labels, cells.shape[1], "key_labels", "columns")
    if annotate is None:
        annotate = cells.size <= 64 and max(cells.shape) <= 16
    if ax is None:
        width, height = panel(cells.shape, limit=9, cell=0.55 if annotate else 0.25)
        ax = new_axes(width, height, queries=queries, keys=keys, title=title, figure=figure)
        size = "{} by {}".format(*cells.shape)
        describe(ax.figure, f"Heat map, {size}", words, largest(cells, queries, keys))
    else:
        width, height = ax.get_window_extent().size / ax.figure.dpi
    image = draw_cells(ax, cells, *colour_range(cells, vmax))
    ax.figure.colorbar(image, ax=ax)
    label_axis(ax.xaxis, keys, width)
    label_axis(ax.yaxis, queries, height)
    ax.set(xlabel="keys", ylabel="queries")
    ax.set_title(with_boxes(title), fontfamily=fonts())
    if annotate:
        print_numbers(ax, image, cells, min(width / len(keys), height / len(queries)))
    return ax


@styled
def head_grid(
    weights,
    query_labels=None,
    key_labels=None,
    title="",
    head_titles=None,
    columns=4,
    figure=None,
):
    """The heat maps of all heads side by side, on one colour scale from 0 to the largest weight.

    One scale, so that a strong head looks stronger than a weak one; the colour bar says how far
    it reaches (and starts at the smallest entry, if that is negative). Labels stand at the outer
    edge only; places without a head stay empty.

    Shapes: weights (H, L, S), 1 to 64 heads; H head titles; returns a Figure.
    Raises: ValueError quoting the sizes if weights are not (H, L, S), the labels or titles do not
        fit, H is above 64 or `columns` below 1.
    Lesson: notebooks/07_seeing_attention.ipynb.
    """
    words, title = title, wrapped(title)
    heads = array(weights, "weights", "(H, L, S)")
    count, num_queries, num_keys = heads.shape
    if count > 64 or columns < 1:
        raise ValueError(f"up to 64 heads in 1 or more columns, got {count} heads, {columns=}")
    queries = labels(query_labels, num_queries, "query_labels", "rows")
    keys = labels(key_labels, num_keys, "key_labels", "columns")
    names = [f"head {head}" for head in range(count)] if head_titles is None else head_titles
    names = labels(names, count, "head_titles", "heads")
    columns = min(columns, count)
    rows = math.ceil(count / columns)
    width, height = panel(heads.shape[1:], limit=10 / columns, least=1.3)
    size = columns * (width + 0.1), rows * (height + 0.25)
    size = with_margins(*size, queries, keys, title)
    figure = new_figure(*size) if figure is None else fitted(figure, *size)
    grid = figure.subplots(rows, columns, squeeze=False).ravel()
    for place, ax in enumerate(grid[:count]):
        image = draw_cells(ax, heads[place], *colour_range(heads))
        ax.set_title(names[place], fontsize=9, fontfamily=fonts())
        label_axis(ax.xaxis, keys, width, shown=place + columns >= count)
        label_axis(ax.yaxis, queries, height, shown=place % columns == 0)
    for ax in grid[count:]:
        ax.remove()
    figure.colorbar(image, ax=list(grid[:count]), aspect=30)
    figure.supxlabel("keys", fontsize=10)
    figure.supylabel("queries", fontsize=10)
    figure.suptitle(with_boxes(title), fontfamily=fonts())
    size = f"{num_queries} by {num_keys}"
    describe(figure, f"Heat maps, {size}", words, f"One each for {'; '.join(names)}")
    return figure


@styled
def split_heads_picture(num_words, num_hiddens, num_heads, words=None):
    """Where each number of X goes, with the transpose and with `reshape` alone.

    Entries are 10 * word + feature: word 1, feature 2 is 12. A colour for each word.

    Shapes: X (1, num_words, num_hiddens), both outcomes (1, num_heads, num_words, d_k); up to 10
        words and 10 features, so that two digits say it all; returns a Figure of three Axes.
    Raises: TypeError if a size is not an int; ValueError quoting the sizes if one is below 1 or
        above 10, num_heads does not divide num_hiddens, or there are not num_words words.
    Lesson: notebooks/04_head_splitting.ipynb.
    """
    check_split(num_words, num_hiddens, num_heads)
    words = [f"word {word}" for word in range(num_words)] if words is None else words
    words = labels(words, num_words, "words", "words")
    d_k = num_hiddens // num_heads
    X = (10 * torch.arange(num_words)[:, None] + torch.arange(num_hiddens))[None]
    split = X.reshape(1, num_words, num_heads, d_k).permute(0, 2, 1, 3)
    alone = X.reshape(1, num_heads, num_words, d_k)

    cell = min(0.42, 11 / (3 * num_hiddens + 2 * GAP * num_heads))  # inches
    side = max(num_hiddens + GAP * num_heads + 1, 2.5 / cell)  # in cells, with room for a title
    figure = new_figure(*with_margins(3 * side * cell, (num_words + 1) * cell + 0.4, words))
    axes = figure.subplots(1, 3)
    for ax, heads, gap in zip(axes, (split, split, alone), (0, GAP, GAP), strict=True):
        draw_heads(ax, heads[0], gap, side, cell)
    label_axis(axes[0].yaxis, words, num_words * cell, offset=0.5)
    axes[0].set_title(f"X {tuple(X.shape)}\ncut at multiples of $d_k$ = {d_k}", size=10)
    axes[1].set_title(f"with the transpose\nhead 0: {contents(split[0, 0])}", size=10)
    axes[2].set_title(f"reshape alone\nhead 0: {contents(alone[0, 0])}", size=10)
    numbers = (
        "here the same numbers" if torch.equal(split, alone) else "numbers in different places"
    )
    title = f"The same shape {tuple(split.shape)}, {numbers}"
    figure.suptitle(title)
    firsts = f"transpose {contents(split[0, 0])}; with reshape alone {contents(alone[0, 0])}"
    describe(figure, "Three tables of numbers", title, f"Head 0 holds with the {firsts}")
    return figure


@styled
def lines(x, series, xlabel, ylabel, title, ax=None, logx=False, logy=False, level=None):
    """A line for each entry of `series` over the same x, and a legend if there are several.

    The y axis starts at 0 unless it is logarithmic or a number is below 0. `level` {label: number}
    adds dashed lines to compare with.
    Shapes: x (n,); series {label: (n,)}; returns Axes.
    Raises: ValueError quoting the sizes if a series is not as long as x, or the smallest number
        if it is not positive on a logarithmic axis.
    Lesson: notebooks/02_scaled_dot_product.ipynb and 05_parameter_counting.ipynb.
    """
    x = array(x, "x", "(n,)")
    curves = {label: array(values, label, "(n,)") for label, values in series.items()}
    for label, values in curves.items():
        if len(values) != len(x):
            raise ValueError(f"{label} has {len(values)} values for {len(x)} values of x")
        for name, numbers, log in (("x", x, logx), (label, values, logy)):
            if log and np.nanmin(numbers) <= 0:
                raise ValueError(f"a logarithmic axis needs {name} > 0, got {np.nanmin(numbers)}")
    if ax is None:
        ax = new_axes(5, 3, title=wrapped(title))
        drawn = f": {'; '.join(curves)}" if len(curves) > 1 else ""
        describe(ax.figure, "Line plot", title, f"{ylabel} over {xlabel}{drawn}")
    for place, (label, values) in enumerate(curves.items()):
        ax.plot(x, values, marker="osD^v<>"[place % 7] if len(x) <= 20 else "", label=label)
    ax.set(xlabel=xlabel, ylabel=ylabel)
    ax.set(xscale="log" if logx else "linear", yscale="log" if logy else "linear")
    draw_levels(ax, level)
    if not logy and all(np.nanmin(values) >= 0 for values in curves.values()):
        ax.set_ylim(0, ax.get_ylim()[1])
    ax.set_title(with_boxes(wrapped(title)), fontfamily=fonts())
    if logx and len(x) <= 10:  # the sizes of the lesson rather than powers of ten
        ax.set_xticks(x, [f"{number:g}" for number in x])
        ax.minorticks_off()
    if len(curves) > 1:
        ax.legend(prop={"family": fonts()})
    return ax


@styled
def bars(values, ylabel, title, ax=None, level=None):
    """A bar for each entry of `values`, with its number on top.

    `level` {label: number} adds dashed lines to compare with.
    Shapes: values {label: number}; returns Axes.
    Raises: ValueError if there are none, or quoting them if they are not finite.
    Lesson: notebooks/05_parameter_counting.ipynb.
    """
    heights = array(list(values.values()), "values", "(n,)")
    if not np.isfinite(heights).all():
        raise ValueError(f"bars need finite numbers, got {heights.tolist()}")
    names = labels(list(values), len(heights), "values", "bars")
    written = [f"{n:,.0f}" if n == int(n) else f"{n:.3g}" for n in heights]
    if ax is None:
        width = min(max(4, len(names) * max(0.9, longest(names) * LETTER + 0.1)), 9)
        ax = new_axes(width, 2.5, keys=names, title=wrapped(title))
        pairs = "; ".join(map(" ".join, zip(names, written, strict=True)))
        describe(ax.figure, "Bar chart", title, f"{ylabel}: {pairs}")
    else:
        width = ax.get_window_extent().width / ax.figure.dpi
    drawn = ax.bar(range(len(names)), heights, color=COLOURS["queries"])
    ax.bar_label(drawn, written, padding=2)
    ax.margins(y=0.12)
    draw_levels(ax, level)
    label_axis(ax.xaxis, names, width)
    ax.set_ylabel(ylabel)
    ax.set_title(with_boxes(wrapped(title)), fontfamily=fonts())
    return ax


# What the pictures are made of: words, cells, labels that fit, figures, fonts.


def describe(figure, kind, title, contents):
    """Keep in words what the figure shows; a notebook stores them with the picture."""
    parts = [f"{kind}: {title}" if title else kind, contents]
    words = " ".join(f"{part.rstrip('.')}." for part in parts if part)
    words = " ".join(words.split())  # a title may have line breaks
    figure._repr_mimebundle_ = lambda **_asked: ({}, {"image/png": {"alt": words}})


def largest(cells, queries, keys):
    """Of each row of (rows, columns) the largest number and its place, in words; not of many."""
    if len(cells) > 16:
        return ""
    found = []
    for row, query in zip(np.nan_to_num(cells, nan=-np.inf), queries, strict=True):
        found.append(f"{query}: {keys[row.argmax()]} {row.max():.3g}")
    return f"The largest of each row: {'; '.join(found)}"


def array(values, name, shape):
    """`values` in float64, of the rank that `shape` spells out: "(n,)", "(L, S)", "(H, L, S)"."""
    array = numbers(values)
    if array.ndim != len(shape.strip("(,)").split(",")) or array.size == 0:
        raise ValueError(f"{name} must be {shape} and not empty, got shape {array.shape}")
    return array


def numbers(values):
    """`values` as a float64 array: a tensor on any device, nested lists, or an array."""
    if isinstance(values, torch.Tensor):
        return values.detach().cpu().double().numpy()
    if isinstance(values, (list, tuple)):  # perhaps a list of tensors
        return np.array([numbers(value) for value in values])
    return np.asarray(values, dtype=np.float64)


def labels(labels, count, name, what):
    """`count` labels as strings, 0, 1, … by default; ValueError if there are more or fewer."""
    labels = range(count) if labels is None else labels
    if len(labels) != count:
        raise ValueError(f"{name}: {len(labels)} labels for {count} {what}")
    labels = [str(label) for label in labels]
    say_what_is_missing("".join(labels))
    return legible(labels)


def check_split(num_words, num_hiddens, num_heads):
    """Raise unless the sizes can be split and fit two digits; see `split_heads_picture`."""
    sizes = {"num_words": num_words, "num_hiddens": num_hiddens, "num_heads": num_heads}
    if not all(isinstance(size, int) for size in sizes.values()):
        raise TypeError(f"sizes must be ints, got {sizes}")
    if min(sizes.values()) < 1 or max(num_words, num_hiddens) > 10:
        raise ValueError(f"two digits are enough for 1 to 10 words and features, got {sizes}")
    if num_hiddens % num_heads:
        raise ValueError(f"num_hiddens {num_hiddens} is not divisible by num_heads {num_heads}")


def contents(head):
    """Say which features of every word are in a head (num_words, d_k), or which words only."""
    words, features = (head // 10).unique().tolist(), (head % 10).unique().tolist()
    noun, numbers = ("feature", features) if len(words) == len(head) else ("only word", words)
    return f"{noun}{'s' * (len(numbers) > 1)} {', '.join(map(str, numbers))}"


def draw_heads(ax, heads, gap, side, cell):
    """Draw (num_heads, num_words, d_k) side by side, each number on the colour of its word."""
    from matplotlib import colormaps
    from matplotlib.patches import Rectangle

    num_heads, num_words, d_k = heads.shape
    colours = colormaps[COLOUR_MAP]
    centred = {"ha": "center", "va": "center"}
    for head, block in enumerate(heads.tolist()):
        left = head * (d_k + gap)
        name = f"head {head}" if d_k > 1 or num_heads == 1 else str(head)
        ax.text(left + d_k / 2, -0.3, name, fontsize=8, **centred)
        for row, numbers in enumerate(block):
            for column, number in enumerate(numbers):
                corner = left + column, row
                colour = colours(number // 10 / max(num_words - 1, 1))
                ax.add_patch(Rectangle(corner, 1, 1, facecolor=colour, edgecolor="white"))
                style = {"color": ink(colour), "fontsize": 26 * cell, **centred}
                ax.text(corner[0] + 0.5, row + 0.5, f"{number:02d}", **style)
        if head and not gap:  # the cut
            ax.plot([left, left], [-0.5, num_words + 0.2], color="black", linewidth=2)
    middle = (num_heads * (d_k + gap) - gap) / 2
    ax.set(xlim=(middle - side / 2, middle + side / 2), ylim=(num_words + 0.25, -0.7))
    ax.set(aspect="equal", xticks=[], yticks=[])
    ax.tick_params(length=0)
    ax.grid(False)
    ax.spines[:].set_visible(False)


def draw_levels(ax, level):
    """Draw dashed lines across, each with its name at the right end."""
    for name, height in (level or {}).items():
        ax.axhline(height, color="#555555", linestyle="--", linewidth=1)
        where = {"xycoords": ax.get_yaxis_transform(), "va": "center", "fontsize": 9}
        ax.annotate(f" {name}", (1, height), color="#555555", **where)


def draw_cells(ax, cells, vmin, vmax):
    """Draw (rows, columns) as colours, hatched where a number is not finite."""
    from matplotlib.patches import Rectangle

    rows, columns = cells.shape
    if not np.isfinite(cells).all():  # seen through the cells that have no colour
        style = {"facecolor": "white", "edgecolor": "grey", "hatch": "////", "zorder": -1}
        ax.add_patch(Rectangle((-0.5, -0.5), columns, rows, **style))
    ax.grid(False)
    ax.spines[:].set_visible(False)
    aspect = "auto" if max(rows, columns) > 8 * min(rows, columns) else "equal"
    style = {"cmap": COLOUR_MAP, "interpolation": "nearest", "aspect": aspect}
    return ax.imshow(np.ma.masked_invalid(cells), vmin=vmin, vmax=vmax, **style)


def colour_range(cells, vmax=None):
    """The least and largest value of the colour map, which differ."""
    finite = cells[np.isfinite(cells)]
    low = finite.min(initial=0)
    high = finite.max(initial=low) if vmax is None else vmax
    return low, high if high > low else low + 1


def print_numbers(ax, image, cells, size):
    """Print each number in its cell of `size` inches, with two decimals unless all are whole."""
    decimals = 0 if np.array_equal(cells, np.round(cells), equal_nan=True) else 2
    for (row, column), number in np.ndenumerate(cells):
        colour = ink(image.to_rgba(number) if np.isfinite(number) else "#ffffff")
        style = {"color": colour, "fontsize": min(10, 24 * size), "ha": "center", "va": "center"}
        ax.text(column, row, f"{number:z.{decimals}f}", **style)


def label_axis(axis, labels, inches, shown=True, offset=0):
    """Label an axis that is so many inches long; if they do not all fit, every 2nd, 5th, 10th.

    One whose labels are not shown gets no ticks either: they would take a third of the time.
    """
    if not shown:
        axis.set_ticks([])
        return
    room = inches / len(labels)
    length = longest(labels) * LETTER + 0.05
    across = axis.axis_name == "x"
    upright = across and length > room and not "".join(labels).isdigit()
    needed = (length if across and not upright else LINE) / room
    step = next((step for step in (1, 2, 5, 10, 20, 50, 100) if step > needed - 0.01), len(labels))
    places = range(0, len(labels), step)
    axis.set_ticks([place + offset for place in places])
    texts = [shorten(labels[place]) for place in places]
    style = {"fontfamily": fonts(), "fontsize": 9 if room * step > 0.14 else 8}
    axis.set_ticklabels(texts, rotation=90 if upright else 0, parse_math=False, **style)


def shorten(label):
    """The label, with an ellipsis in place of what is past LONGEST_LABEL."""
    return label if len(label) <= LONGEST_LABEL else label[: LONGEST_LABEL - 1] + "…"


def longest(labels):
    """The width of the longest label in letters; a Chinese character is as wide as two."""
    widths = [[1 + (east_asian_width(c) in "WF") for c in shorten(label)] for label in labels]
    return max(map(sum, widths), default=0)


def wrapped(title):
    """The title in lines that fit a page; a line break in it stays."""
    return "\n".join(textwrap.fill(line, LONGEST_TITLE) for line in title.split("\n"))


def panel(shape, limit, least=0, cell=0.25):
    """Width and height in inches of (rows, columns), the longer side from `least` to `limit`."""
    rows, columns = shape
    size = min(max(cell * max(shape), least), limit) / max(shape)
    return max(columns * size, min(0.2 * columns, 1)), max(rows * size, min(0.2 * rows, 1))


def with_margins(width, height, queries=(), keys=(), title=""):
    """The size of a figure with room for labels, a colour bar and a title of up to 10 inches."""
    title_lines = title.split("\n")
    width = max(width + longest(queries) * LETTER + 1.3, 0.1 * max(map(len, title_lines)) + 0.3)
    return width, height + longest(keys) * LETTER + 0.6 + 0.2 * len(title_lines)


def new_axes(*sizes, figure=None, **labels):
    """An Axes with room for the labels, in the figure given or in a new one of pyplot."""
    size = with_margins(*sizes, **labels)
    if figure is not None:
        return fitted(figure, *size).subplots()
    import matplotlib.pyplot as plt

    return plt.subplots(figsize=size, layout="compressed")[1]


def fitted(figure, width, height):
    """The figure given, of this size in inches, with the layout of the course's pictures."""
    figure.set_size_inches(width, height)
    figure.set_layout_engine("compressed")
    return figure


def new_figure(width, height):
    """A Figure that a notebook shows once, when it is last in a cell or at its end."""
    import matplotlib.pyplot as plt

    figure = plt.figure(figsize=(width, height), layout="compressed")
    if "inline" in plt.get_backend():  # a notebook, which shows pyplot's figures as a cell ends
        figure._ipython_display_ = partial(show_once, figure)
    return figure


def show_once(figure):
    """Show the figure and take it from pyplot, which would show it again."""
    import matplotlib.pyplot as plt
    from IPython.display import display

    del figure._ipython_display_
    plt.close(figure)
    display(figure)


def fonts():
    """The reader's fonts, then those installed that have Chinese characters."""
    from matplotlib import font_manager, rcParams

    installed = {font.name for font in font_manager.fontManager.ttflist}
    # matplotlib tells on the page which weight of such a font it took.
    logging.getLogger("matplotlib.font_manager").setLevel(logging.ERROR)
    return [*rcParams["font.family"], *(name for name in CHINESE_FONTS if name in installed)]


def legible(labels):
    """The labels; one with a character that no font here has becomes #0, #1, …: its place."""
    return [f"#{i}" if missing_in(label) else label for i, label in enumerate(labels)]


def with_boxes(text):
    """The text with a box in place of each character that no font here has."""
    say_what_is_missing(text)
    missing = missing_in(text)
    return "".join("□" if c in missing and c != "\n" else c for c in text)


def missing_in(text):
    """The characters of a text that cannot be drawn with the fonts here, in order."""
    missing = not_in(font_faces(tuple(fonts())), text)
    if any(c.isprintable() for c in missing) and find_new_fonts():
        missing = not_in(font_faces(tuple(fonts())), text)
    return missing


def not_in(faces, text):
    """The characters of a text that none of these faces has, and those that are never drawn."""
    return [
        c
        for c in dict.fromkeys(text)
        if not c.isprintable() or not any(face.get_char_index(ord(c)) for face in faces)
    ]


@cache
def find_new_fonts():
    """Add fonts to matplotlib's list that were installed after it was made; returns how many.

    matplotlib keeps its list from one start to the next and never looks again.
    """
    from matplotlib import font_manager

    fonts, added = font_manager.fontManager, 0
    if os.environ.get("MPL_IGNORE_SYSTEM_FONTS"):
        return added
    known = {font.fname for font in fonts.ttflist}
    for path in sorted(set(font_manager.findSystemFonts()) - known):
        with suppress(Exception):  # of a font that it cannot read, whatever is wrong with it
            fonts.addfont(path)
            added += 1
    return added


def say_what_is_missing(text):
    """Tell the reader once that a font is missing; matplotlib would warn for each character."""
    missing = [c for c in missing_in(text) if c.isprintable()]
    if missing and not SAID:
        SAID.append(text)
        print(
            f"No font on this machine has {' '.join(missing[:5])}: a label with such characters is "
            "shown as #0, #1, …, its place, and in a title they are boxes. Install a font that has "
            "them, for Chinese say Noto Sans CJK, and restart the kernel."
        )


@cache
def font_faces(names):
    """The faces of these font families, the way matplotlib chooses them."""
    from matplotlib import font_manager

    found = []
    for name in names:
        properties = font_manager.FontProperties(family=[name])
        try:
            path = font_manager.findfont(properties, fallback_to_default=False)
        except ValueError:  # a family of the reader's settings that is not installed
            continue
        found.append(font_manager.get_font(path))
    return found
