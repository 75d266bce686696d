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

POINT = "#0072B2"
BAND = "#56B4E9"
ACCENT = "#D55E00"
# Colours of Okabe and Ito, which colour-blind readers can distinguish.
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
    style = STYLES[j // len(OUTCOMES) % len(STYLES)]
    return OUTCOMES[j % len(OUTCOMES)], style


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
    ax.set_yticks(places, labels)
    ax.set_ylim(-0.6, len(labels) - 0.4)
    clean(ax)


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
    moves = zip(labels, frame["from"], frame["to"], strict=True)
    return [
        text if b is None else f"{text}: {short_text(a)} → {short_text(b)}"
        for text, a, b in moves
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
    return texts if legend is None else [*texts, *legend.get_texts()]


def short_text(value: Any) -> str:
    """Write a value of a predictor in few characters."""
    return f"{value:.3g}" if isinstance(value, float) else str(value)


MOST_WHISKERS = 4  # most classes whose curves have intervals; more would overlap
WHISKERS = 8  # intervals along the curve of a class
FEW_POINTS = 12  # most points of a curve that are marked
WRAP = 14  # characters per line of a level
LETTERS_PER_INCH = 10  # characters of levels that fit below one inch of an axis


@dataclass(frozen=True)
class Lines:
    """Estimates along one predictor, for one or several outcomes."""

    x: Any  # (q,): values of the predictor, or levels of a factor
    factor: bool  # whether the predictor is a factor
    mean: Floats  # (q, K): estimates
    each: Floats  # (2, q, K): pointwise intervals
    band: Floats | None  # (2, q, K): simultaneous band
    names: tuple[str, ...]  # names of the K outcomes
    level: str  # coverage, such as "95%"


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
    """Draw a curve for each class, with intervals at alternating places."""
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
    """Interpolate the intervals of the j-th of K classes at places of its own."""
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
        for label in ax.get_xticklabels():
            label.set(rotation=40, ha="right", rotation_mode="anchor")


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


def ends(bounds: pd.DataFrame, outputs: int) -> Floats:
    """Return the ends of intervals as an array of shape (2, points, outputs)."""
    return np.asarray(bounds.to_numpy().T.reshape(2, -1, outputs))
