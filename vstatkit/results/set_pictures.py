"""A picture of sets of classes."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from vstatkit.results.class_sets import ClassSets, members
from vstatkit.results.strokes import (
    ACCENT,
    as_written,
    legend_above,
    names_on,
    new_axes,
)
from vstatkit.results.tables import label_texts

MOST_ROWS = 40
"""Most rows that are drawn."""

MOST_LETTERS = 48
"""Most letters of the classes' names side by side; more are turned."""


def draw_sets(whole: pd.DataFrame, sets: ClassSets, ax: Axes | None = None) -> Axes:
    """Draw a row for each set: probabilities as shades, members with a mark.

    Parameters
    ----------
    whole : DataFrame
        Probabilities of the rows and classes that are drawn.
    sets : ClassSets
        The sets.
    ax : Axes, optional
        Where to draw.
    """
    shares = whole.iloc[:MOST_ROWS]
    rows = len(shares)
    ax = new_axes(ax, rows)
    drawn = ax.pcolormesh(
        shares.to_numpy(), cmap="Blues", vmin=0, vmax=1, edgecolors="white", linewidth=1
    )
    ax.figure.colorbar(drawn, ax=ax, label="probability", fraction=0.06)
    known = sets.attrs["least_probability"]
    least = {name: known[name] for name in shares.columns}
    row, column = np.nonzero(members(shares.to_numpy(), np.array([*least.values()])))
    ax.plot(
        column + 0.5,
        row + 0.5,
        "o",
        color=ACCENT,
        markeredgecolor="white",
        markersize=9,
        label=f"in the set ({1 - sets.alpha:.0%})",
    )
    ax.set_yticks(np.arange(rows) + 0.5, label_texts(shares.index))
    ax.set_ylim(rows, 0)
    ax.tick_params(length=0)
    ax.spines[:].set_visible(False)
    if len(whole) > rows:
        ax.set_ylabel(f"the first {rows} of {len(whole):,} rows")
    _name_classes(ax, least)
    legend_above(ax)
    as_written(names_on(ax))
    return ax


def _name_classes(ax: Axes, least: Mapping[Any, float]) -> None:
    """Name the classes, with their thresholds where these differ."""
    names = [str(name) for name in least]
    if len(set(least.values())) > 1:
        label = "class, in a set from this probability on"
        names = [
            f"{name}\n{value:.2f}"
            for name, value in zip(names, least.values(), strict=True)
        ]
    else:
        label = f"class, in a set from a probability of {min(least.values()):.2f} on"
    ax.set_xticks(np.arange(len(names)) + 0.5, names)
    ax.set_xlabel(label)
    if sum(max(map(len, name.split("\n"))) + 2 for name in names) > MOST_LETTERS:
        ax.tick_params(axis="x", rotation=45)
        for text in ax.get_xticklabels():
            text.set(ha="right", rotation_mode="anchor")
