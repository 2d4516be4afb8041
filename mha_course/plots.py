"""Heat maps, a grid of heads, the picture of head splitting, and simple curves.

In a notebook a call gives exactly one picture, last in its cell or assigned: an Axes belongs to a
pyplot figure, which is shown as the cell ends; a Figure leaves pyplot when it is first shown.
A Figure given as `figure` is filled and given the size that it needs, and pyplot never sees it.
Words and tokens are drawn as they are, a `$` too; titles and axis labels may hold mathtext.
"""

import math

import numpy as np
import torch

from mha_course import drawing

__all__ = ["attention_heatmap", "head_grid", "split_heads_picture", "lines", "bars"]


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
    cells = drawing.array(weights, "weights", "(L, S)")
    queries = drawing.labels(query_labels, len(cells), "query_labels", "rows")
    keys = drawing.labels(key_labels, cells.shape[1], "key_labels", "columns")
    if annotate is None:
        annotate = cells.size <= 64 and max(cells.shape) <= 16
    if ax is None:
        width, height = drawing.panel(cells.shape, limit=9, cell=0.55 if annotate else 0.25)
        ax = drawing.new_axes(width, height, queries=queries, keys=keys, title=title, figure=figure)
    else:
        width, height = ax.get_window_extent().size / ax.figure.dpi
    image = drawing.draw_cells(ax, cells, *drawing.colour_range(cells, vmax))
    ax.figure.colorbar(image, ax=ax)
    drawing.label_axis(ax.xaxis, keys, width)
    drawing.label_axis(ax.yaxis, queries, height)
    ax.set(xlabel="keys", ylabel="queries")
    ax.set_title(drawing.with_boxes(title), fontfamily=drawing.fonts())
    if annotate:
        drawing.print_numbers(ax, image, cells, min(width / len(keys), height / len(queries)))
    return ax


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
    heads = drawing.array(weights, "weights", "(H, L, S)")
    count, num_queries, num_keys = heads.shape
    if count > 64 or columns < 1:
        raise ValueError(f"up to 64 heads in 1 or more columns, got {count} heads, {columns=}")
    queries = drawing.labels(query_labels, num_queries, "query_labels", "rows")
    keys = drawing.labels(key_labels, num_keys, "key_labels", "columns")
    names = [f"head {head}" for head in range(count)] if head_titles is None else head_titles
    names = drawing.labels(names, count, "head_titles", "heads")
    columns = min(columns, count)
    rows = math.ceil(count / columns)
    width, height = drawing.panel(heads.shape[1:], limit=10 / columns, least=1.3)
    size = columns * (width + 0.1), rows * (height + 0.25)
    size = drawing.with_margins(*size, queries, keys, title)
    figure = drawing.new_figure(*size) if figure is None else drawing.fitted(figure, *size)
    grid = figure.subplots(rows, columns, squeeze=False).ravel()
    for place, ax in enumerate(grid[:count]):
        image = drawing.draw_cells(ax, heads[place], *drawing.colour_range(heads))
        ax.set_title(names[place], fontsize=9, fontfamily=drawing.fonts())
        drawing.label_axis(ax.xaxis, keys, width, shown=place + columns >= count)
        drawing.label_axis(ax.yaxis, queries, height, shown=place % columns == 0)
    for ax in grid[count:]:
        ax.remove()
    figure.colorbar(image, ax=list(grid[:count]), aspect=30)
    figure.supxlabel("keys", fontsize=10)
    figure.supylabel("queries", fontsize=10)
    figure.suptitle(drawing.with_boxes(title), fontfamily=drawing.fonts())
    return figure


def split_heads_picture(num_words, num_hiddens, num_heads, words=None):
    """Where each number of X goes, with the transpose and with `reshape` alone.

    Entries are 10 * word + feature: word 1, feature 2 is 12. A colour for each word.

    Shapes: X (1, num_words, num_hiddens), both outcomes (1, num_heads, num_words, d_k); up to 10
        words and 10 features, so that two digits say it all; returns a Figure of three Axes.
    Raises: TypeError if a size is not an int; ValueError quoting the sizes if one is below 1 or
        above 10, num_heads does not divide num_hiddens, or there are not num_words words.
    Lesson: notebooks/04_head_splitting.ipynb.
    """
    drawing.check_split(num_words, num_hiddens, num_heads)
    words = [f"word {word}" for word in range(num_words)] if words is None else words
    words = drawing.labels(words, num_words, "words", "words")
    d_k = num_hiddens // num_heads
    X = (10 * torch.arange(num_words)[:, None] + torch.arange(num_hiddens))[None]
    split = X.reshape(1, num_words, num_heads, d_k).permute(0, 2, 1, 3)
    alone = X.reshape(1, num_heads, num_words, d_k)

    cell = min(0.42, 11 / (3 * num_hiddens + 2 * drawing.GAP * num_heads))  # inches
    side = max(
        num_hiddens + drawing.GAP * num_heads + 1, 2.5 / cell
    )  # in cells, with room for a title
    figure = drawing.new_figure(
        *drawing.with_margins(3 * side * cell, (num_words + 1) * cell + 0.4, words)
    )
    axes = figure.subplots(1, 3)
    for ax, heads, gap in zip(
        axes, (split, split, alone), (0, drawing.GAP, drawing.GAP), strict=True
    ):
        drawing.draw_heads(ax, heads[0], gap, side, cell)
    drawing.label_axis(axes[0].yaxis, words, num_words * cell, offset=0.5)
    axes[0].set_title(f"X {tuple(X.shape)}\ncut at multiples of $d_k$ = {d_k}", size=10)
    axes[1].set_title(f"with the transpose\nhead 0: {drawing.contents(split[0, 0])}", size=10)
    axes[2].set_title(f"reshape alone\nhead 0: {drawing.contents(alone[0, 0])}", size=10)
    numbers = "here the same numbers" if torch.equal(split, alone) else "other numbers"
    figure.suptitle(f"The same shape {tuple(split.shape)}, {numbers}")
    return figure


def lines(x, series, xlabel, ylabel, title, ax=None, logx=False, logy=False):
    """A line for each entry of `series` over the same x, and a legend if there are several.

    Shapes: x (n,); series {label: (n,)}; returns Axes.
    Raises: ValueError quoting the sizes if a series is not as long as x, or the smallest number
        if it is not positive on a logarithmic axis.
    Lesson: notebooks/02_scaled_dot_product.ipynb and 05_parameter_counting.ipynb.
    """
    x = drawing.array(x, "x", "(n,)")
    curves = {label: drawing.array(values, label, "(n,)") for label, values in series.items()}
    for label, values in curves.items():
        if len(values) != len(x):
            raise ValueError(f"{label} has {len(values)} values for {len(x)} values of x")
        for name, numbers, log in (("x", x, logx), (label, values, logy)):
            if log and np.nanmin(numbers) <= 0:
                raise ValueError(f"a logarithmic axis needs {name} > 0, got {np.nanmin(numbers)}")
    ax = drawing.new_axes(5, 3, title=title) if ax is None else ax
    for place, (label, values) in enumerate(curves.items()):
        ax.plot(x, values, marker="osD^v<>"[place % 7] if len(x) <= 20 else "", label=label)
    ax.set(xlabel=xlabel, ylabel=ylabel)
    ax.set(xscale="log" if logx else "linear", yscale="log" if logy else "linear")
    ax.set_title(drawing.with_boxes(title), fontfamily=drawing.fonts())
    if logx and len(x) <= 10:  # the sizes of the lesson rather than powers of ten
        ax.set_xticks(x, [f"{number:g}" for number in x])
        ax.minorticks_off()
    if len(curves) > 1:
        ax.legend(prop={"family": drawing.fonts()})
    return ax


def bars(values, ylabel, title, ax=None):
    """A bar for each entry of `values`, with its number on top.

    Shapes: values {label: number}; returns Axes.
    Raises: ValueError if there are none, or quoting them if they are not finite.
    Lesson: notebooks/05_parameter_counting.ipynb.
    """
    heights = drawing.array(list(values.values()), "values", "(n,)")
    if not np.isfinite(heights).all():
        raise ValueError(f"bars need finite numbers, got {heights.tolist()}")
    names = drawing.labels(list(values), len(heights), "values", "bars")
    if ax is None:
        width = min(max(4, len(names) * max(0.9, drawing.longest(names) * drawing.LETTER + 0.1)), 9)
        ax = drawing.new_axes(width, 2.5, keys=names, title=title)
    else:
        width = ax.get_window_extent().width / ax.figure.dpi
    drawn = ax.bar(range(len(names)), heights, color=drawing.WORD_COLOURS.split()[0])
    ax.bar_label(drawn, [f"{n:,.0f}" if n == int(n) else f"{n:.3g}" for n in heights], padding=2)
    ax.margins(y=0.12)
    drawing.label_axis(ax.xaxis, names, width)
    ax.set_ylabel(ylabel)
    ax.set_title(drawing.with_boxes(title), fontfamily=drawing.fonts())
    return ax
