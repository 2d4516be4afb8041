"""What the pictures of `plots.py` are made of: cells, labels that fit, figures, fonts."""

from functools import cache, partial
from unicodedata import east_asian_width

import numpy as np
import torch

__all__ = [
    "array",
    "check_split",
    "colour_range",
    "contents",
    "draw_cells",
    "draw_heads",
    "fitted",
    "fonts",
    "label_axis",
    "labels",
    "legible",
    "longest",
    "new_axes",
    "new_figure",
    "panel",
    "print_numbers",
    "with_boxes",
    "with_margins",
]

COLOUR_MAP = "cividis"  # dark to light, made for colour-blind readers
# Ten colours that colour-blind readers can tell apart: Petroff 2021, arXiv:2107.02270.
WORD_COLOURS = "#3f90da #ffa90e #bd1f01 #94a4a2 #832db6 #a96b59 #e76300 #b9ac70 #717581 #92dadd"
CHINESE_FONTS = (
    *("Noto Sans CJK SC", "Noto Sans CJK JP", "Noto Sans SC", "Source Han Sans SC", "PingFang SC"),
    *("Hiragino Sans GB", "Microsoft YaHei", "SimHei", "WenQuanYi Micro Hei", "Arial Unicode MS"),
)
LETTER, LINE = 0.085, 0.12  # inches: the width of a letter, the least height of a line of labels
LONGEST_LABEL = 20  # letters; what is longer ends in an ellipsis
SAID = []  # the text for which the reader was told that a font is missing
GAP = 0.5  # between two heads of the split picture, in cells


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
    from matplotlib.patches import Rectangle

    num_heads, num_words, d_k = heads.shape
    centred = {"ha": "center", "va": "center"}
    for head, block in enumerate(heads.tolist()):
        left = head * (d_k + gap)
        name = f"head {head}" if d_k > 1 or num_heads == 1 else str(head)
        ax.text(left + d_k / 2, -0.3, name, fontsize=8, **centred)
        for row, numbers in enumerate(block):
            for column, number in enumerate(numbers):
                corner = left + column, row
                colour = WORD_COLOURS.split()[number // 10]
                ax.add_patch(Rectangle(corner, 1, 1, facecolor=colour, edgecolor="white"))
                style = {"color": ink(colour), "fontsize": 26 * cell, **centred}
                ax.text(corner[0] + 0.5, row + 0.5, f"{number:02d}", **style)
        if head and not gap:  # the cut
            ax.plot([left, left], [-0.5, num_words + 0.2], color="black", linewidth=2)
    middle = (num_heads * (d_k + gap) - gap) / 2
    ax.set(xlim=(middle - side / 2, middle + side / 2), ylim=(num_words + 0.25, -0.7))
    ax.set(aspect="equal", xticks=[], yticks=[])
    ax.tick_params(length=0)
    ax.spines[:].set_visible(False)


def draw_cells(ax, cells, vmin, vmax):
    """Draw (rows, columns) as colours, hatched where a number is not finite."""
    from matplotlib.patches import Rectangle

    rows, columns = cells.shape
    if not np.isfinite(cells).all():  # seen through the cells that have no colour
        style = {"facecolor": "white", "edgecolor": "grey", "hatch": "////", "zorder": -1}
        ax.add_patch(Rectangle((-0.5, -0.5), columns, rows, **style))
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
        colour = ink(image.to_rgba(number) if np.isfinite(number) else "white")
        style = {"color": colour, "fontsize": min(10, 24 * size), "ha": "center", "va": "center"}
        ax.text(column, row, f"{number:z.{decimals}f}", **style)


def ink(colour):
    """Black or white, whichever has more contrast on `colour` (WCAG 2, relative luminance)."""
    from matplotlib.colors import to_rgb

    luminance = np.dot(np.array(to_rgb(colour)) ** 2.2, (0.2126, 0.7152, 0.0722))
    return "black" if luminance > 0.18 else "white"


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


def panel(shape, limit, least=0, cell=0.25):
    """Width and height in inches of (rows, columns), the longer side from `least` to `limit`."""
    rows, columns = shape
    size = min(max(cell * max(shape), least), limit) / max(shape)
    return max(columns * size, min(0.2 * columns, 1)), max(rows * size, min(0.2 * rows, 1))


def with_margins(width, height, queries=(), keys=(), title=""):
    """The size of a figure with room for labels, a colour bar and a title of up to 10 inches."""
    title_width = min(0.1 * max(map(len, title.split("\n"))) + 0.3, 10)
    width = max(width + longest(queries) * LETTER + 1.3, title_width)
    return width, height + longest(keys) * LETTER + 0.8


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
    faces = font_faces(tuple(fonts()))
    return [
        c
        for c in dict.fromkeys(text)
        if not c.isprintable() or not any(face.get_char_index(ord(c)) for face in faces)
    ]


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
