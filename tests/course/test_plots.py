"""What is plotted is what was given, and a notebook shows each picture once."""

import math
from itertools import product

import matplotlib
import nbformat
import numpy as np
import pytest
import torch
from nbclient import NotebookClient

matplotlib.use("Agg")

from matplotlib import font_manager  # noqa: E402
from matplotlib import pyplot as plt  # noqa: E402
from matplotlib.backends.backend_agg import FigureCanvasAgg  # noqa: E402
from matplotlib.colors import to_rgba  # noqa: E402
from matplotlib.figure import Figure  # noqa: E402

from mha_course import plots  # noqa: E402
from mha_course.plots import (  # noqa: E402
    attention_heatmap,
    bars,
    head_grid,
    lines,
    split_heads_picture,
)
from mha_course.style import CURVES  # noqa: E402

L, S, H = 3, 5, 7
TOKENS = ["[CLS]", "##ing", "$x$", "a $b$ c", "注意力"]


@pytest.fixture(autouse=True)
def close_figures():
    yield
    plt.close("all")


def weights(*shape, seed=0):
    numbers = torch.randn(*shape, generator=torch.Generator().manual_seed(seed))
    return torch.softmax(3 * numbers.double(), dim=-1)


def texts(ax):
    return [text.get_text() for text in ax.texts]


def tick_labels(axis):
    return [label.get_text() for label in axis.get_ticklabels()]


# What a picture says for those who cannot see it.


def said(picture):
    """What a notebook keeps with the picture: no data of its own, the words as metadata."""
    figure = picture if isinstance(picture, Figure) else picture.figure
    data, metadata = figure._repr_mimebundle_(include=None, exclude=None)
    assert data == {} and set(metadata) == {"image/png"}
    return metadata["image/png"]["alt"]


def test_pictures_say_what_they_show():
    table = [[0.25, 0.75], [0.9, 0.1]]
    assert said(attention_heatmap(table, ["a", "b"], ["x", "y"], "Who looks\nwhere")) == (
        "Heat map, 2 by 2: Who looks where. The largest of each row: a: y 0.75; b: x 0.9."
    )
    assert said(attention_heatmap([[math.nan, 2.0]])) == (
        "Heat map, 1 by 2. The largest of each row: 0: 1 2."
    )
    assert said(attention_heatmap(torch.eye(17), title="Itself.")) == (
        "Heat map, 17 by 17: Itself."
    )
    assert said(head_grid([table, table], head_titles=["first", "last"], title="Two")) == (
        "Heat maps, 2 by 2: Two. One each for first; last."
    )
    curves = {"one": [1, 2], "two": [2, 1]}
    assert said(lines([0, 1], curves, "time", "height", "Up and down")) == (
        "Line plot: Up and down. height over time: one; two."
    )
    assert said(lines([0, 1], {"one": [1, 2]}, "time", "height", "Up")) == (
        "Line plot: Up. height over time."
    )
    assert said(bars({"a": 1200, "b": 0.123456}, "size", "Sizes")) == (
        "Bar chart: Sizes. size: a 1,200; b 0.123."
    )
    assert said(split_heads_picture(3, 4, 2)) == (
        "Three tables of numbers: The same shape (1, 2, 3, 2), numbers in different places. "
        "Head 0 holds with the transpose features 0, 1; with reshape alone only words 0, 1."
    )


def test_an_axes_of_the_readers_own_gets_no_words():
    figure, ax = plt.subplots()
    lines([0, 1], {"one": [1, 2]}, "time", "height", "Up", ax=ax)
    assert not hasattr(figure, "_repr_mimebundle_")


# attention_heatmap


@pytest.mark.parametrize(
    "as_given",
    [
        lambda w: w,
        lambda w: w.clone().requires_grad_(),
        lambda w: w.float(),
        lambda w: w.bfloat16(),
        lambda w: w.T.contiguous().T,
        lambda w: w.numpy(),
        lambda w: w.tolist(),
        lambda w: list(w.clone().requires_grad_()),
    ],
    ids="float64 grad float32 bfloat16 strided numpy lists list-of-tensors".split(),
)
def test_heatmap_plots_the_numbers_given(as_given):
    numbers = (8 * weights(L, S)).round() / 8  # eighths are exact in every type
    assert len(numbers.unique()) > 2
    ax = attention_heatmap(as_given(numbers))
    assert ax.images[0].get_array().tolist() == numbers.tolist()
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("keys", "queries")


def test_heatmap_does_not_change_its_input():
    given = weights(L, S)
    before = given.clone()
    given[0, 0] = before[0, 0] = math.nan
    attention_heatmap(given)
    torch.testing.assert_close(given, before, rtol=0, atol=0, equal_nan=True)


def test_heatmap_rows_are_queries_from_the_top(chinese_font):
    ax = attention_heatmap(weights(L, S), list("abc"), TOKENS, title="look here")
    assert tick_labels(ax.yaxis) == list("abc")
    assert tick_labels(ax.xaxis) == TOKENS
    assert ax.yaxis_inverted() and not ax.xaxis_inverted()
    assert ax.get_title() == "look here"


def test_heatmap_prints_the_numbers_of_a_small_matrix_in_a_readable_colour():
    ax = attention_heatmap([[0.125, 0.875], [1, -0.001]])
    assert texts(ax) == ["0.12", "0.88", "1.00", "0.00"]
    assert [text.get_position() for text in ax.texts] == [(0, 0), (1, 0), (0, 1), (1, 1)]
    assert [text.get_color() for text in ax.texts] == ["white", "black", "black", "white"]
    assert texts(attention_heatmap(torch.eye(2).bool())) == ["1", "0", "0", "1"]
    assert texts(attention_heatmap([[3, -10, math.nan]])) == ["3", "-10", "nan"]


def test_heatmap_annotates_up_to_64_cells_unless_told():
    assert len(texts(attention_heatmap(weights(8, 8)))) == 64
    assert texts(attention_heatmap(weights(8, 9))) == []
    assert texts(attention_heatmap(weights(1, 17))) == []
    assert len(texts(attention_heatmap(weights(8, 9), annotate=True))) == 72
    assert texts(attention_heatmap(weights(L, S), annotate=False)) == []


def test_heatmap_colour_scale():
    def limits(*args, **kwargs):
        return attention_heatmap(*args, **kwargs).images[0].get_clim()

    assert limits([[0.25, 0.5]]) == (0, 0.5)
    assert limits([[0.25, 0.5]], vmax=1) == (0, 1)
    assert limits([[-2.0, 3.0]]) == (-2, 3)
    assert limits([[0.0, 0.0]]) == (0, 1)
    assert limits([[math.nan, -math.inf]]) == (0, 1)


def test_heatmap_hatches_what_is_not_a_number():
    ax = attention_heatmap([[0.5, math.nan, 0.5], [-math.inf, 0.25, 0.75]])
    assert ax.images[0].get_array().mask.tolist() == [[False, True, False], [True, False, False]]
    assert texts(ax) == ["0.50", "nan", "0.50", "-inf", "0.25", "0.75"]
    (background,) = ax.patches
    assert background.get_hatch() and background.get_zorder() < ax.images[0].get_zorder()
    assert (background.get_x(), background.get_width(), background.get_height()) == (-0.5, 3, 2)
    ax.figure.canvas.draw()
    pixels = np.asarray(ax.figure.canvas.buffer_rgba()) / 255
    left, top = ax.transData.transform((0.55, -0.45))
    right, bottom = ax.transData.transform((1.45, 0.45))
    inside = pixels[::-1][round(bottom) : round(top), round(left) : round(right)]
    assert {tuple(pixel) for pixel in inside.reshape(-1, 4)} >= {to_rgba("white"), to_rgba("black")}
    assert not attention_heatmap(weights(L, S)).patches


def test_labels_are_drawn_as_they_are():
    ax = attention_heatmap(weights(L, S), ["$x$", "a_b^c", "\\frac{"], TOKENS)
    ax.figure.canvas.draw()
    for label in [*ax.get_xticklabels(), *ax.get_yticklabels()]:
        assert not label.get_parse_math()


def test_long_labels_are_shortened_and_crowded_ones_thinned_out():
    long = "Donaudampfschifffahrtsgesellschaft"
    ax = attention_heatmap(weights(L, 2), [long, "b", "c"])
    assert tick_labels(ax.yaxis) == [long[:19] + "…", "b", "c"]
    ax = attention_heatmap(weights(100, 64), key_labels=[f"token{key}" for key in range(64)])
    assert tick_labels(ax.yaxis) == [str(query) for query in range(0, 100, 2)]
    assert ax.get_yticks().tolist() == list(range(0, 100, 2))
    assert tick_labels(ax.xaxis)[1] == f"token{int(ax.get_xticks()[1])}"


@pytest.mark.parametrize("size", [(3, 5), (64, 64), (1, 40), (40, 2)])
def test_labels_do_not_overlap(size):
    labels = [[f"token{place}" for place in range(count)] for count in size]
    ax = attention_heatmap(weights(*size), *labels)
    ax.figure.canvas.draw()
    for axis, low, high in ((ax.xaxis, "x0", "x1"), (ax.yaxis, "y0", "y1")):
        boxes = sorted(
            ((getattr(box, low), getattr(box, high)))
            for box in (label.get_window_extent() for label in axis.get_ticklabels())
        )
        assert all(one[1] < two[0] + 1 for one, two in zip(boxes, boxes[1:], strict=False))


def test_heatmap_draws_into_the_axes_given():
    figure = Figure()
    left, right = figure.subplots(1, 2)
    assert attention_heatmap(weights(L, S), ax=right) is right
    assert right.images and not left.images
    assert plt.get_fignums() == []


CHINESE = ["查询", "键", "[CLS]"]


def test_tests_see_no_font_but_those_of_matplotlib():
    shipped = str(matplotlib.get_data_path())
    assert all(font.fname.startswith(shipped) for font in font_manager.fontManager.ttflist)
    assert plots.missing_in("a注é√·") == ["注"]


def test_with_a_chinese_font_labels_are_as_they_are(chinese_font, capsys):
    ax = attention_heatmap(weights(L, S), CHINESE, TOKENS, title="注意力")
    assert tick_labels(ax.yaxis) == CHINESE and tick_labels(ax.xaxis) == TOKENS
    assert ax.get_title() == "注意力"
    assert ax.yaxis.get_ticklabels()[0].get_fontfamily()[-1] == chinese_font
    ax.figure.canvas.draw()
    assert capsys.readouterr() == ("", "")


def test_a_font_that_was_installed_after_matplotlib_made_its_list_is_found(
    chinese_font, tmp_path, monkeypatch
):
    fonts = font_manager.fontManager
    monkeypatch.setattr(fonts, "ttflist", [f for f in fonts.ttflist if f.name != chinese_font])
    (tmp_path / "no font.ttf").write_text("")
    installed = [str(tmp_path / name) for name in ("no font.ttf", "test-cjk.ttf")]
    monkeypatch.setattr(font_manager, "findSystemFonts", lambda: installed)
    plots.find_new_fonts.cache_clear()
    assert plots.missing_in("猫 cat 狗") == ["狗"]
    assert chinese_font in plots.fonts()


def test_common_chinese_fonts_are_known():
    for name in ("WenQuanYi Zen Hei", "WenQuanYi Micro Hei", "Noto Sans CJK SC", "SimHei"):
        assert name in plots.CHINESE_FONTS


def test_without_a_chinese_font_labels_are_told_apart_and_one_sentence_says_why(capsys):
    ax = attention_heatmap(weights(L, S), CHINESE, TOKENS, title="the weights of 注意力")
    assert tick_labels(ax.yaxis) == ["#0", "#1", "[CLS]"]
    assert tick_labels(ax.xaxis) == [*TOKENS[:4], "#4"]
    assert ax.get_title() == "the weights of □□□"
    ax.figure.canvas.draw()  # a warning for a missing glyph would be an error
    head_grid(weights(2, L, S), CHINESE, title="注意力").canvas.draw()
    bars({"键": 1, "b": 2}, "y", "title").figure.canvas.draw()
    told = capsys.readouterr()
    assert told.out.startswith("No font on this machine has 查 询 键: a label ")
    assert told.out.count("\n") == 1 and not told.err


@pytest.mark.parametrize(
    "args, message",
    [
        ((torch.zeros(2, 3, 5),), r"weights must be \(L, S\).*\(2, 3, 5\)"),
        ((torch.zeros(3),), r"\(L, S\).*\(3,\)"),
        ((torch.zeros(0, 5),), r"not empty.*\(0, 5\)"),
        ((torch.zeros(L, S), list("ab")), "query_labels: 2 labels for 3 rows"),
        ((torch.zeros(L, S), None, list("abc")), "key_labels: 3 labels for 5 columns"),
        (([[1, 2], [3]],), "inhomogeneous"),
    ],
)
def test_heatmap_refuses(args, message):
    with pytest.raises(ValueError, match=message):
        attention_heatmap(*args)
    assert plt.get_fignums() == []


# head_grid


@pytest.mark.parametrize("count, columns", [(1, 4), (2, 4), (5, 3), (12, 4), (64, 8)])
def test_grid_plots_every_head_once_in_order(count, columns):
    given = weights(count, L, S)
    figure = head_grid(given, list("abc"), TOKENS, "all heads", columns=columns)
    *axes, colour_bar = figure.axes
    assert len(axes) == count and not colour_bar.images
    for head, ax in enumerate(axes):
        np.testing.assert_array_equal(ax.images[0].get_array(), given[head].numpy())
        assert ax.images[0].get_clim() == (0, given.max().item())
        assert ax.get_title() == f"head {head}"
        place = ax.get_subplotspec()
        assert (place.rowspan.start, place.colspan.start) == divmod(head, min(columns, count))
    assert figure.get_suptitle() == "all heads"
    assert (figure.get_supxlabel(), figure.get_supylabel()) == ("keys", "queries")


def test_grid_labels_stand_at_the_outer_edge_only(chinese_font):
    figure = head_grid(weights(5, L, S), list("abc"), TOKENS, columns=3)
    queries = ["".join(tick_labels(ax.yaxis)) for ax in figure.axes[:5]]
    keys = [tick_labels(ax.xaxis) == TOKENS for ax in figure.axes[:5]]
    assert queries == ["abc", "", "", "abc", ""]
    assert keys == [False, False, True, True, True]  # nothing stands below head 2


def test_grid_takes_titles_and_a_list_of_heads():
    figure = head_grid(list(weights(2, L, S)), head_titles=["before", "after"])
    assert [ax.get_title() for ax in figure.axes[:2]] == ["before", "after"]


@pytest.mark.parametrize(
    "args, kwargs, message",
    [
        ((torch.zeros(L, S),), {}, r"weights must be \(H, L, S\).*\(3, 5\)"),
        ((torch.zeros(1, H, L, S),), {}, r"\(1, 7, 3, 5\)"),
        ((torch.zeros(65, 1, 1),), {}, "up to 64 heads.*65"),
        ((torch.zeros(H, L, S),), {"columns": 0}, "columns=0"),
        ((torch.zeros(H, L, S), list("ab")), {}, "query_labels: 2 labels for 3 rows"),
        ((torch.zeros(H, L, S), None, list("ab")), {}, "key_labels: 2 labels for 5 columns"),
        ((torch.zeros(H, L, S),), {"head_titles": ["a"]}, "head_titles: 1 labels for 7 heads"),
    ],
)
def test_grid_refuses(args, kwargs, message):
    with pytest.raises(ValueError, match=message):
        head_grid(*args, **kwargs)
    assert plt.get_fignums() == []


def test_a_figure_given_is_filled_and_sized_and_pyplot_never_sees_it():
    figure, grid = Figure(), Figure()
    ax = attention_heatmap(weights(L, S), list("abc"), TOKENS, "look here", figure=figure)
    assert ax.figure is figure
    assert head_grid(weights(H, L, S), list("abc"), TOKENS, "look here", figure=grid) is grid
    assert len(grid.axes) == H + 1 and plt.get_fignums() == []
    own = attention_heatmap(weights(L, S), list("abc"), TOKENS, "look here").figure
    own_grid = head_grid(weights(H, L, S), list("abc"), TOKENS, "look here")
    for one, other in ((figure, own), (grid, own_grid)):
        assert one.get_size_inches().tolist() == other.get_size_inches().tolist()
        assert type(one.get_layout_engine()) is type(other.get_layout_engine())
        pixels = []
        for each in (one, other):
            each.set_dpi(50)
            FigureCanvasAgg(each).draw()
            pixels.append(np.asarray(each.canvas.buffer_rgba()))
        np.testing.assert_array_equal(*pixels)


# split_heads_picture


def numbers_of_heads(ax):
    """For each head its numbers, row by row."""
    found = []
    for text in texts(ax):
        if len(text) == 2:
            found[-1].append(text)
        else:
            assert int(text.removeprefix("head ")) == len(found)
            found.append([])
    return found


def test_split_picture_of_the_lesson():
    x, split, alone = split_heads_picture(3, 4, 2).axes
    assert numbers_of_heads(split)[0] == "00 01 10 11 20 21".split()
    assert numbers_of_heads(alone)[0] == "00 01 02 03 10 11".split()
    assert numbers_of_heads(x) == numbers_of_heads(split)
    assert "head 0: features 0, 1" in split.get_title()
    assert "head 0: only words 0, 1" in alone.get_title()
    assert "(1, 2, 3, 2), numbers in different places" in x.figure.get_suptitle()
    (cut,) = x.lines
    assert list(cut.get_xdata()) == [2, 2]


@pytest.mark.parametrize("words, width, heads", [(2, 6, 3), (5, 10, 2), (10, 10, 10), (7, 3, 1)])
def test_split_picture_by_loops(words, width, heads):
    _, split, alone = split_heads_picture(words, width, heads).axes
    d_k = width // heads
    by_word = [
        [f"{word}{head * d_k + i}" for word in range(words) for i in range(d_k)]
        for head in range(heads)
    ]
    in_memory = [f"{word}{feature}" for word, feature in product(range(words), range(width))]
    by_memory = [in_memory[head * words * d_k :][: words * d_k] for head in range(heads)]
    assert numbers_of_heads(split) == by_word
    assert numbers_of_heads(alone) == by_memory


def test_split_picture_has_a_colour_for_each_word_and_a_place_for_each_number():
    for ax in split_heads_picture(10, 10, 2).axes:
        numbers = [text for text in ax.texts if len(text.get_text()) == 2]
        assert len(numbers) == len(ax.patches) == len({text.get_position() for text in numbers})
        colours = {}
        for text, patch in zip(numbers, ax.patches, strict=True):
            assert patch.contains_point(ax.transData.transform(text.get_position()))
            colours.setdefault(text.get_text()[0], set()).add(patch.get_facecolor())
        assert len(colours) == 10 == len(set.union(*colours.values()))


def test_split_picture_says_when_both_agree():
    assert "here the same numbers" in split_heads_picture(5, 6, 1).get_suptitle()
    assert "here the same numbers" in split_heads_picture(1, 6, 3).get_suptitle()


def test_split_picture_names_the_words():
    figure = split_heads_picture(3, 4, 2, words=["the", "cat", "$at$"])
    assert tick_labels(figure.axes[0].yaxis) == ["the", "cat", "$at$"]
    assert figure.axes[0].get_yticks().tolist() == [0.5, 1.5, 2.5]


@pytest.mark.parametrize("sizes", [(3, 4, 2), (10, 1, 1), (5, 10, 1)])
def test_split_picture_titles_do_not_overlap(sizes):
    figure = split_heads_picture(*sizes)
    figure.canvas.draw()
    boxes = [ax.title.get_window_extent() for ax in figure.axes]
    assert boxes[0].x1 < boxes[1].x0 and boxes[1].x1 < boxes[2].x0
    assert boxes[0].x0 > 0 and boxes[2].x1 < figure.bbox.x1


@pytest.mark.parametrize(
    "args, message",
    [
        ((11, 4, 2), "'num_words': 11, 'num_hiddens': 4"),
        ((3, 12, 2), "'num_hiddens': 12"),
        ((0, 4, 2), "'num_words': 0"),
        ((3, 4, 0), "'num_heads': 0"),
        ((3, 4, 3), "num_hiddens 4 is not divisible by num_heads 3"),
        ((3, 4, 2, ["a", "b"]), "words: 2 labels for 3 words"),
    ],
)
def test_split_picture_refuses(args, message):
    with pytest.raises(ValueError, match=message):
        split_heads_picture(*args)


def test_split_picture_refuses_what_is_not_an_int():
    with pytest.raises(TypeError, match="'num_hiddens': 4.0"):
        split_heads_picture(3, 4.0, 2)


# lines and bars


def test_lines_plot_the_numbers_given():
    series = {"one": [1, 2, 3], "two": torch.tensor([2.0, 4.0, 8.0], requires_grad=True)}
    ax = lines([1, 2, 4], series, "heads", "loss", "more is less", logx=True, logy=True)
    assert [line.get_label() for line in ax.lines] == ["one", "two"]
    assert [line.get_xdata().tolist() for line in ax.lines] == [[1, 2, 4]] * 2
    assert [line.get_ydata().tolist() for line in ax.lines] == [[1, 2, 3], [2, 4, 8]]
    assert len({line.get_marker() for line in ax.lines}) == 2
    assert (ax.get_xlabel(), ax.get_ylabel(), ax.get_title()) == ("heads", "loss", "more is less")
    assert (ax.get_xscale(), ax.get_yscale()) == ("log", "log")
    assert tick_labels(ax.xaxis) == ["1", "2", "4"]
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["one", "two"]


def test_lines_of_one_series_need_no_legend_and_go_into_the_axes_given():
    ax = Figure().subplots()
    assert lines(range(30), {"one": range(30)}, "x", "y", "", ax=ax) is ax
    assert ax.get_legend() is None
    assert (ax.get_xscale(), ax.get_yscale()) == ("linear", "linear")


@pytest.mark.parametrize(
    "args, kwargs, message",
    [
        (([1, 2, 3], {"one": [1, 2]}), {}, "one has 2 values for 3 values of x"),
        (([[1, 2]], {"one": [1, 2]}), {}, r"x must be \(n,\).*\(1, 2\)"),
        (([1, 2], {"one": [0, 2]}), {"logy": True}, "needs one > 0, got 0"),
        (([-1, 2], {"one": [1, 2]}), {"logx": True}, "needs x > 0, got -1"),
    ],
)
def test_lines_refuse(args, kwargs, message):
    with pytest.raises(ValueError, match=message):
        lines(*args, "x", "y", "title", **kwargs)


def test_bars_plot_the_numbers_given():
    values = {"W_q": 1048576, "$x$": 0.25, "torch": torch.tensor(3.0)}
    ax = bars(values, "parameters", "where they are")
    assert [bar.get_height() for bar in ax.patches] == [1048576, 0.25, 3]
    assert texts(ax) == ["1,048,576", "0.25", "3"]
    assert tick_labels(ax.xaxis) == ["W_q", "$x$", "torch"]
    assert (ax.get_ylabel(), ax.get_title()) == ("parameters", "where they are")
    assert bars(values, "", "", ax=ax) is ax


def test_bars_refuse():
    with pytest.raises(ValueError, match=r"values must be \(n,\) and not empty"):
        bars({}, "y", "title")
    with pytest.raises(ValueError, match=r"finite numbers, got \[1.0, nan\]"):
        bars({"a": 1, "b": math.nan}, "y", "title")


def test_lines_start_at_zero_and_are_compared_with_a_level():
    ax = plots.lines([1, 2, 3], {"a": [0.5, 0.6, 0.7]}, "x", "y", "t", level={"chance": 0.25})
    assert ax.get_ylim()[0] == 0
    assert [list(line.get_ydata()) for line in ax.lines[1:]] == [[0.25, 0.25]]
    assert [text.get_text().strip() for text in ax.texts] == ["chance"]
    assert plots.lines([1, 2], {"a": [-1, 2]}, "x", "y", "t").get_ylim()[0] < -1
    assert plots.lines([1, 2], {"a": [0.5, 1]}, "x", "y", "t").get_ylim()[1] > 1
    assert plots.lines([1, 2], {"a": [1, 1]}, "x", "y", "t", level={"b": 2}).get_ylim()[1] > 2
    assert plots.lines([1, 2], {"a": [3, 5]}, "x", "y", "t", logy=True).get_ylim()[0] > 0
    ax = plots.bars({"a": 3, "b": 5}, "y", "t", level={"chance": 1, "all": 6})
    assert [text.get_text().strip() for text in ax.texts][-2:] == ["chance", "all"]
    assert ax.get_ylim()[1] > 6


def test_a_long_title_is_broken_into_lines_that_fit():
    title = "a title that goes on " * 6
    ax = plots.lines([1, 2], {"a": [1, 2]}, "x", "y", title)
    rows = ax.get_title().split("\n")
    assert " ".join(rows) == title.strip() and max(map(len, rows)) <= 64
    ax.figure.canvas.draw()
    left, right = ax.title.get_window_extent().intervalx
    assert 0 <= left and right <= ax.figure.bbox.width


def test_the_style_is_that_of_the_course_and_ends_with_the_call():
    before = dict(matplotlib.rcParams)
    ax = plots.lines([1, 2], {"a": [1, 2], "b": [2, 1]}, "x", "y", "t")
    assert [line.get_color() for line in ax.lines] == list(CURVES[:2])
    assert not ax.spines["top"].get_visible()
    assert ax.figure.get_facecolor() == (1, 1, 1, 1)  # a white sheet, on a dark page too
    assert dict(matplotlib.rcParams) == before
    with pytest.raises(ValueError):
        plots.lines([1, 2], {"a": [1]}, "x", "y", "t")
    assert dict(matplotlib.rcParams) == before


# in a notebook

IMPORTS = """import sys
from mha_course.plots import *
assert "matplotlib.pyplot" not in sys.modules
"""
CELLS = {
    "Figure, last, first use of pyplot": (IMPORTS + "split_heads_picture(3, 4, 2)", 1),
    "Figure, assigned": ("figure = split_heads_picture(3, 4, 2)", 1),
    "Figure, shown again": ("figure", 1),
    "Figure, assigned and last": ("figure = head_grid([[[1.0, 0.0]]] * 5)\nfigure", 1),
    "Figure, assigned and plt.show": (
        "import matplotlib.pyplot as plt\nfigure = head_grid([[[1.0, 0.0]]])\nplt.show()",
        1,
    ),
    "two Figures": ("head_grid([[[1.0, 0.0]]])\nsplit_heads_picture(2, 4, 2)", 2),
    "Axes, last": ("attention_heatmap([[0.25, 0.75]], title='look')", 1),
    "Axes, assigned": ("ax = attention_heatmap([[0.25, 0.75]], key_labels=['猫', '[CLS]'])", 1),
    "Axes given": ("_, ax = plt.subplots()\nattention_heatmap([[0.5, 0.5]], ax=ax)", 1),
    "lines, last": ("lines([1, 2], {'a': [1, 2], 'b': [2, 1]}, 'x', 'y', 'title')", 1),
    "bars, assigned": ("ax = bars({'a': 1}, 'y', 'title')", 1),
    "no picture": ("plt.get_fignums()", 0),
}


def new_notebook():
    cells = [nbformat.v4.new_code_cell(code) for code, _ in CELLS.values()]
    for number, cell in enumerate(cells):
        cell.id = f"cell-{number}"
    return nbformat.v4.new_notebook(cells=cells)


def executed():
    notebook = new_notebook()
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("MPLBACKEND", raising=False)
        NotebookClient(notebook, timeout=120, record_timing=False).execute()
    return notebook


@pytest.fixture(scope="module")
def notebook():
    """Executed by a kernel of its own."""
    return executed()


def test_a_notebook_shows_each_picture_once(notebook):
    shown = {
        name: sum("image/png" in output.get("data", {}) for output in cell.outputs)
        for name, cell in zip(CELLS, notebook.cells, strict=True)
    }
    assert shown == {name: count for name, (_, count) in CELLS.items()}


def test_a_notebook_keeps_the_words_with_each_picture(notebook):
    ours = [c for name, c in zip(CELLS, notebook.cells, strict=True) if name != "Axes given"]
    outputs = [output for cell in ours for output in cell.outputs]
    pictures = [output for output in outputs if "image/png" in output.get("data", {})]
    assert pictures and all(len(p.metadata["image/png"]["alt"]) > 10 for p in pictures)


def test_no_output_holds_an_address_or_a_warning(notebook):
    outputs = [output for cell in notebook.cells for output in cell.outputs]
    (told,) = (output for output in outputs if output.output_type == "stream")
    assert told.name == "stdout" and told.text.startswith("No font on this machine has 猫: ")
    outputs.remove(told)
    assert {output.output_type for output in outputs} == {"display_data", "execute_result"}
    assert not [output for output in outputs if " at 0x" in output.data["text/plain"]]


@pytest.mark.prove  # nbval shows the same of the lessons
def test_executing_a_notebook_again_gives_the_same_bytes(notebook):
    assert nbformat.writes(executed()) == nbformat.writes(notebook)
