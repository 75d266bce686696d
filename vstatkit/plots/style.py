"""Strokes, colours, lines and bands that pictures share."""

import textwrap
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.text import Text
from matplotlib.ticker import FixedLocator

from vstatkit._typing import Floats

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
    disable_mathtext(legend.get_texts())


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
    disable_mathtext(names_on(ax))
    ax.spines[["top", "right"]].set_visible(False)
    ax.grid(axis="x", color="0.9", linewidth=0.8)
    ax.set_axisbelow(True)


def disable_mathtext(texts: Iterable[Text]) -> None:
    """Take the dollars in names literally; between two there is no mathematics."""
    for text in texts:
        text.set_parse_math(False)


def names_on(ax: Axes) -> list[Text]:
    """List texts that may hold names; numbers on an axis are left to matplotlib."""
    texts = [ax.title]
    for axis in (ax.xaxis, ax.yaxis):
        texts.append(axis.label)
        if isinstance(axis.get_major_locator(), FixedLocator):
            texts += axis.get_ticklabels()
    legend = ax.get_legend()
    return texts if legend is None else [*texts, *legend.get_texts()]


def short_text(value: Any) -> str:
    """Write a setting in a few letters."""
    return f"{value:.3g}" if isinstance(value, float) else str(value)


MOST_WHISKERS = 4
"""Classes beyond which intervals of curves would only hide each other."""


WHISKERS = 8
"""Intervals along the curve of a class; those of other classes stand between them."""


FEW_POINTS = 12
"""Points of a curve up to which each is marked."""


WRAP = 14
"""Letters of a level after which it goes on in the next line."""


LETTERS_PER_INCH = 10
"""Letters of levels that stand side by side below an axis."""


@dataclass(frozen=True)
class Lines:
    """Estimates along one predictor, for one or several outcomes.

    Attributes
    ----------
    x : ndarray of shape (q,)
        Values of the predictor; levels, if it is a factor.
    factor : bool
        Whether it is one.
    mean : ndarray of shape (q, K)
        Estimates.
    each : ndarray of shape (2, q, K)
        Ends of the interval of every point.
    band : ndarray of shape (2, q, K) or None
        Ends of a band that holds for all points at once.
    names : tuple of str
        Names of the K outcomes.
    level : str
        Coverage, in words.
    """

    x: Any
    factor: bool
    mean: Floats
    each: Floats
    band: Floats | None
    names: tuple[str, ...]
    level: str


def draw_lines(ax: Axes, lines: Lines) -> None:
    """Draw estimates with their intervals."""
    if lines.factor:
        _draw_levels(ax, lines)
    elif len(lines.names) == 1:
        _draw_curve(ax, lines)
    else:
        _draw_classes(ax, lines)
    clean(ax)


def _draw_curve(ax: Axes, lines: Lines) -> None:
    """Shade the band of the whole curve lightly, the intervals of points darkly."""
    x = np.asarray(lines.x, dtype=np.float64)
    shades = ((lines.band, 0.25, "whole curve"), (lines.each, 0.6, "each point"))
    for bounds, strength, text in shades:
        if bounds is None:
            continue
        ax.fill_between(
            x,
            *bounds[:, :, 0],
            color=BAND,
            alpha=strength,
            linewidth=0,
            label=f"{lines.level}, {text}",
        )
    marks = "o-" if x.size <= FEW_POINTS else "-"
    ax.plot(x, lines.mean[:, 0], marks, color=POINT, linewidth=2, label="mean")


def _draw_classes(ax: Axes, lines: Lines) -> None:
    """Draw a line for each class, and intervals in turn: bands would blend."""
    x, K = np.asarray(lines.x, dtype=np.float64), len(lines.names)
    for j, name in enumerate(lines.names):
        colour, style = outcome_stroke(j)
        if K <= MOST_WHISKERS:
            at, each = _whisker_positions(x, lines.each[:, :, j], j, K)
            ax.vlines(at, *each, color=colour, linewidth=1.5, alpha=0.6)
        ax.plot(x, lines.mean[:, j], style, color=colour, linewidth=2, label=name)


def _whisker_positions(
    x: Floats, each: Floats, j: int, K: int
) -> tuple[Floats, Floats]:
    """Choose where the intervals of the j-th of K classes stand.

    Between points of the curve they are interpolated, as the curve is.
    """
    turns = (np.arange(WHISKERS) * K + j + 0.5) / (WHISKERS * K)
    at = x[0] + (x[-1] - x[0]) * turns
    return at, np.stack([np.interp(at, x, end) for end in each])


def _draw_levels(ax: Axes, lines: Lines) -> None:
    count = len(lines.names)
    for j, name in enumerate(lines.names):
        colour = POINT if count == 1 else outcome_stroke(j)[0]
        places = np.arange(len(lines.x)) + 0.6 / count * (j - (count - 1) / 2)
        if lines.band is not None:
            ax.vlines(places, *lines.band[:, :, j], color=colour, alpha=0.35)
        ax.vlines(places, *lines.each[:, :, j], color=colour, linewidth=3)
        ax.plot(places, lines.mean[:, j], "o", color=colour, label=name)
    name_levels(ax, [str(level) for level in lines.x])
    ax.set_xlim(-0.6, len(lines.x) - 0.4)


def name_levels(ax: Axes, texts: list[str]) -> None:
    """Write levels below an axis, aslant where they would run into each other."""
    lines = [line for text in texts for line in textwrap.wrap(text, WRAP) or [""]]
    wrapped = [
        "\n".join(
            part for line in text.split("\n") for part in textwrap.wrap(line, WRAP)
        )
        for text in texts
    ]
    ax.set_xticks(np.arange(len(texts)), wrapped)
    inches = ax.get_window_extent().width / ax.figure.dpi
    if max(map(len, lines)) * len(texts) > LETTERS_PER_INCH * inches:
        for label in ax.get_xticklabels():
            label.set(rotation=40, ha="right", rotation_mode="anchor")


def draw_rug(ax: Axes, values: Any) -> None:
    """Mark where the rows are, along the bottom."""
    known = np.asarray(values, dtype=np.float64)
    low, high = ax.get_xlim()
    inside = known[(known >= low) & (known <= high)]
    ax.plot(
        inside,
        np.zeros(inside.size),
        "|",
        color=GREY,
        alpha=0.5,
        markersize=8,
        transform=ax.get_xaxis_transform(),
        clip_on=False,
    )


def ends(bounds: pd.DataFrame, outputs: int) -> Floats:
    """Both ends of intervals, shape (2, points, outputs)."""
    return np.asarray(bounds.to_numpy().T.reshape(2, -1, outputs))
