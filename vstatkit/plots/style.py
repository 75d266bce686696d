"""Colours, lines, bands and legends that plots share."""

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
from vstatkit.results.estimate_table import EstimateTable
from vstatkit.results.labels import short_text

# Colours of Okabe and Ito, which colour-blind readers can distinguish.
POINT = "#0072B2"
BAND = "#56B4E9"
ACCENT = "#D55E00"
GREY = "#666666"
# Colours of several outcomes, also by Okabe and Ito.
OUTCOMES = (POINT, ACCENT, "#009E73", "#CC79A7", "#E69F00", BAND, "#000000")
STYLES = ("-", "--", ":")  # line styles of outcomes that share a colour


def new_axes(ax: Axes | None, rows: int = 8) -> Axes:
    """Return the given axes, or new ones that are high enough for the rows."""
    if ax is not None:
        return ax
    height = float(np.clip(1.2 + 0.32 * rows, 3.2, 12))
    return plt.subplots(figsize=(7.2, height), layout="constrained")[1]


def outcome_stroke(j: int) -> tuple[str, str]:
    """Return colour and line style of the j-th of several outcomes."""
    return OUTCOMES[j % len(OUTCOMES)], STYLES[j // len(OUTCOMES) % len(STYLES)]


def legend_above(ax: Axes) -> None:
    """Add a legend above the axes."""
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
    name_rows(ax, places, labels)
    clean(ax)


def name_rows(ax: Axes, places: Any, labels: list[str]) -> None:
    """Write the labels of rows beside an axis."""
    ax.set_yticks(places, labels)
    ax.set_ylim(-0.6, len(labels) - 0.4)


def draw_frame(
    frame: pd.DataFrame,
    labels: list[str],
    xlabel: str,
    ax: Axes | None,
    *,
    zero: bool = False,
) -> Axes:
    """Draw the estimates of a table with their intervals, and a line at zero."""
    ax = new_axes(ax, len(frame))
    if zero:
        ax.axvline(0, color=GREY, linewidth=1)
    draw_intervals(ax, labels, frame["estimate"], frame["ci_lower"], frame["ci_upper"])
    ax.set_xlabel(xlabel)
    return ax


def move_labels(frame: pd.DataFrame, labels: list[str]) -> list[str]:
    """Add the ends of moves to the labels of a table."""
    return [
        text if b is None else f"{text}: {short_text(a)} → {short_text(b)}"
        for text, a, b in zip(labels, frame["from"], frame["to"], strict=True)
    ]


def clean(ax: Axes) -> None:
    """Remove spines, add a grid, and write names without mathtext."""
    disable_mathtext(names_on(ax))
    ax.spines[["top", "right"]].set_visible(False)
    ax.grid(axis="x", color="0.9", linewidth=0.8)
    ax.set_axisbelow(True)


def disable_mathtext(texts: Iterable[Text]) -> None:
    """Show dollar signs in names literally."""
    for text in texts:
        text.set_parse_math(False)


def names_on(ax: Axes) -> list[Text]:
    """List texts that may have names; numbers on an axis are left to matplotlib."""
    texts = [ax.title]
    for axis in (ax.xaxis, ax.yaxis):
        texts.append(axis.label)
        if isinstance(axis.get_major_locator(), FixedLocator):
            texts += axis.get_ticklabels()
    legend = ax.get_legend()
    return texts if legend is None else texts + legend.get_texts()


MOST_WHISKERS = 4  # most classes whose curves have intervals; more would overlap
WHISKERS = 8  # intervals along the curve of a class
FEW_POINTS = 12  # most points of a curve that are marked
WRAP = 14  # characters per line of a level
LETTERS_PER_INCH = 10  # characters of levels that fit below one inch of an axis


@dataclass(frozen=True)
class Lines:
    """Estimates along one predictor, for one or several outcomes."""

    table: EstimateTable  # q estimates of K outcomes, outcomes within estimates
    x: Any  # (q,): values of the predictor, or levels of a factor
    factor: bool  # whether the predictor is a factor
    names: tuple[str, ...]  # names of the K outcomes
    alpha: float  # one minus the coverage
    banded: bool = True  # whether to draw the band of a curve

    @property
    def mean(self) -> Floats:
        """Estimates, shape (q, K)."""
        return self.table.params.to_numpy().reshape(-1, len(self.names))

    def bounds(self, *, simultaneous: bool = False) -> Floats:
        """Compute the ends of intervals, or of the band, shape (2, q, K)."""
        bounds = self.table.conf_int(self.alpha, simultaneous=simultaneous)
        return bounds.to_numpy().T.reshape(2, -1, len(self.names))


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
    """Draw a curve with a light band and dark pointwise intervals."""
    x, level = np.asarray(lines.x, dtype=np.float64), f"{1 - lines.alpha:.0%}"
    for whole, strength, text in (
        (True, 0.25, "whole curve"),
        (False, 0.6, "each point"),
    ):
        low, high = lines.bounds(simultaneous=whole)[:, :, 0]
        shade = ax.fill_between(x, low, high, color=BAND, alpha=strength, linewidth=0)
        shade.set_label(f"{level}, {text}")
    marks = "o-" if x.size <= FEW_POINTS else "-"
    ax.plot(x, lines.mean[:, 0], marks, color=POINT, linewidth=2, label="mean")


def _draw_classes(ax: Axes, lines: Lines) -> None:
    """Draw a curve for each class, with intervals at alternating places."""
    x, K = np.asarray(lines.x, dtype=np.float64), len(lines.names)
    mean, bounds = lines.mean, lines.bounds()
    for j, name in enumerate(lines.names):
        colour, style = outcome_stroke(j)
        if K <= MOST_WHISKERS:
            turns = (np.arange(WHISKERS) * K + j + 0.5) / (WHISKERS * K)
            at = x[0] + (x[-1] - x[0]) * turns
            whiskers = [np.interp(at, x, end) for end in bounds[:, :, j]]
            ax.vlines(at, *whiskers, color=colour, linewidth=1.5, alpha=0.6)
        ax.plot(x, mean[:, j], style, color=colour, linewidth=2, label=name)


def _draw_levels(ax: Axes, lines: Lines) -> None:
    count, bounds = len(lines.names), lines.bounds()
    band = lines.bounds(simultaneous=True) if lines.banded else None
    for j, name in enumerate(lines.names):
        colour = POINT if count == 1 else outcome_stroke(j)[0]
        places = np.arange(len(lines.x)) + 0.6 / count * (j - (count - 1) / 2)
        if band is not None:
            ax.vlines(places, *band[:, :, j], color=colour, alpha=0.35)
        ax.vlines(places, *bounds[:, :, j], color=colour, linewidth=3)
        ax.plot(places, lines.mean[:, j], "o", color=colour, label=name)
    _name_levels(ax, [str(level) for level in lines.x])
    ax.set_xlim(-0.6, len(lines.x) - 0.4)


def _name_levels(ax: Axes, texts: list[str]) -> None:
    """Write levels below an axis, rotated if they would overlap."""
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
        rotate_names(ax, 40)


def rotate_names(ax: Axes, degrees: float) -> None:
    """Rotate the names below an axis about their ends."""
    for label in ax.get_xticklabels():
        label.set(rotation=degrees, ha="right", rotation_mode="anchor")


def draw_rug(ax: Axes, values: Any) -> None:
    """Mark the observed values along the bottom."""
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
