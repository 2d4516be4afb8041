"""What all pictures of the course share: colours with a meaning, and the look of a plot.

The colours can be told apart by colour-blind readers: Petroff 2021, arXiv:2107.02270.
"""

import functools

import numpy as np

__all__ = ["COLOURS", "COLOUR_MAP", "CURVES", "HEADS", "PLOT", "coloured", "ink", "styled"]

COLOURS = {
    "queries": "#3f90da",
    "keys": "#ffa90e",
    "values": "#832db6",
    "output": "#717581",
    "mark": "#dd2c1a",  # the part in question
}
HEADS = ("#e76300", "#92dadd", "#a96b59", "#b9ac70", "#94a4a2")
CURVES = (*list(COLOURS.values())[:3], *HEADS)
COLOUR_MAP = "cividis"  # dark to light

PLOT = {
    "axes.axisbelow": True,
    "axes.grid": True,
    "axes.grid.axis": "y",
    "axes.labelsize": 10,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlesize": 11,
    "axes.titleweight": "bold",
    "figure.facecolor": "white",  # a white sheet, on a dark page too
    "figure.titlesize": 11,
    "figure.titleweight": "bold",
    "grid.color": "#e4e4e4",
    "legend.fontsize": 9,
    "legend.frameon": False,
    "lines.linewidth": 2,
    "xtick.labelsize": 9,
    "ytick.labelsize": 9,
}


def styled(draw):
    """A function that draws with matplotlib, in the style of the course."""

    @functools.wraps(draw)
    def drawn(*args, **options):
        from cycler import cycler
        from matplotlib import rcParams

        # Not rc_context: a notebook's first figure sets more of these, and they have to stay.
        ours = PLOT | {"axes.prop_cycle": cycler(color=CURVES)}
        before = {name: rcParams[name] for name in ours}
        rcParams.update(ours)
        try:
            return draw(*args, **options)
        finally:
            rcParams.update(before)

    return drawn


def coloured(head):
    """The colour of a head; from the sixth on they come again."""
    return HEADS[head % len(HEADS)]


def ink(colour):
    """Black or white, whichever has more contrast on `colour` (WCAG 2, relative luminance).

    Shapes: colour "#rrggbb", or three or four numbers from 0 to 1.
    """
    if isinstance(colour, str):
        colour = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    luminance = np.dot(np.array(colour[:3]) ** 2.2, (0.2126, 0.7152, 0.0722))
    return "black" if luminance > 0.18 else "white"
