"""Colours and strokes that all pictures share."""

from collections.abc import Iterable
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.text import Text
from matplotlib.ticker import FixedLocator

POINT = "#0072B2"
BAND = "#56B4E9"
ACCENT = "#D55E00"
GREY = "#666666"
"""Colours of Okabe and Ito, which all readers can tell apart."""

OUTCOMES = (POINT, ACCENT, "#009E73", "#CC79A7", "#E69F00", BAND, "#000000")
"""Colours of several outcomes, theirs too."""

STYLES = ("-", "--", ":")
"""Lines of outcomes that share a colour."""


def new_axes(ax: Axes | None, rows: int = 8) -> Axes:
    """Take the axes given, or make some that are high enough for so many rows."""
    if ax is not None:
        return ax
    height = float(np.clip(1.2 + 0.32 * rows, 3.2, 12))
    return plt.subplots(figsize=(7.2, height), layout="constrained")[1]


def outcome_stroke(j: int) -> tuple[str, str]:
    """Give colour and line of the j-th of several outcomes."""
    style = STYLES[j // len(OUTCOMES) % len(STYLES)]
    return OUTCOMES[j % len(OUTCOMES)], style


def legend_above(ax: Axes) -> None:
    """Name what is drawn, above the axes, where it hides nothing."""
    legend = ax.legend(
        loc="lower left",
        bbox_to_anchor=(0, 1),
        ncols=4,
        frameon=False,
        fontsize="small",
        borderaxespad=0.2,
    )
    as_written(legend.get_texts())


def draw_intervals(
    ax: Axes, labels: list[str], centre: Any, low: Any, high: Any
) -> None:
    """Draw one horizontal interval per row, with the first row on top."""
    places = np.arange(len(labels))[::-1]
    ax.hlines(places, low, high, color=POINT, linewidth=2)
    ax.plot(centre, places, "o", color=POINT, markersize=5)
    ax.set_yticks(places, labels)
    ax.set_ylim(-0.6, len(labels) - 0.4)
    clean(ax)


def clean(ax: Axes) -> None:
    """Leave away what says nothing, and write names as they are."""
    as_written(names_on(ax))
    ax.spines[["top", "right"]].set_visible(False)
    ax.grid(axis="x", color="0.9", linewidth=0.8)
    ax.set_axisbelow(True)


def as_written(texts: Iterable[Text]) -> None:
    """Take the dollars in names literally; between two there is no mathematics."""
    for text in texts:
        text.set_parse_math(False)


def names_on(ax: Axes) -> list[Text]:
    """List texts that may hold names; numbers on an axis are left to matplotlib."""
    found = [ax.title]
    for axis in (ax.xaxis, ax.yaxis):
        found.append(axis.label)
        if isinstance(axis.get_major_locator(), FixedLocator):
            found += axis.get_ticklabels()
    legend = ax.get_legend()
    return found if legend is None else [*found, *legend.get_texts()]


def short(value: Any) -> str:
    """Write a setting in a few letters."""
    return f"{value:.3g}" if isinstance(value, float) else str(value)
