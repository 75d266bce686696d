"""Colours that all readers can tell apart, and axes like a paper's."""

from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

COLOURS = {
    "black": "#000000",
    "grey": "#7F7F7F",
    "blue": "#0072B2",
    "sky": "#56B4E9",
    "green": "#009E73",
    "orange": "#E69F00",
    "yellow": "#F0E442",
    "red": "#D55E00",
    "purple": "#CC79A7",
}
"""Okabe and Ito's colours."""

WIDTH = 10.0
"""Width of a picture in inches."""


def panels(rows: int, columns: int, *, height: float) -> tuple[Figure, Any]:
    """Make a picture with a grid of axes, apart from pyplot's global state.

    Returns
    -------
    figure, axes
        `axes[row][column]`.
    """
    figure = Figure(figsize=(WIDTH, height * rows + 0.7), layout="constrained")
    return figure, figure.subplots(rows, columns, sharey="row", squeeze=False)


def clean(ax: Axes) -> None:
    """Take away what carries no information."""
    ax.spines[["top", "right"]].set_visible(False)
    ax.grid(axis="y", color="0.9", linewidth=0.8)
    ax.set_axisbelow(True)
