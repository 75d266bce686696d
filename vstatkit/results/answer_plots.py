"""Pictures of answers to questions about predictors; matplotlib loads on demand."""

from typing import TYPE_CHECKING

import numpy as np

from vstatkit.results.strokes import (
    GREY,
    POINT,
    clean,
    draw_intervals,
    new_axes,
)
from vstatkit.results.tables import label_texts

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from vstatkit.results.answers import Answer
    from vstatkit.results.importance import Importance

MOST_NAMED = 40
"""Differences beyond which they are drawn in order of size, without names."""


def draw_differences(answer: "Answer", ax: "Axes | None" = None) -> "Axes":
    """Draw differences with 95 % intervals; many of them in order of size."""
    found = answer.differences
    bounds, centre = found.conf_int(), found.params
    if len(centre) <= MOST_NAMED:
        ax = new_axes(ax, len(centre))
        labels = label_texts(found.labels)
        draw_intervals(ax, labels, centre, bounds["lower"], bounds["upper"])
    else:
        ax = new_axes(ax)
        order = np.argsort(centre.to_numpy())
        places = np.arange(len(order))
        lower, upper = bounds["lower"].to_numpy(), bounds["upper"].to_numpy()
        ax.hlines(places, lower[order], upper[order], color=POINT, linewidth=0.7)
        ax.plot(centre.to_numpy()[order], places, ".", color=POINT, markersize=3)
        ax.set_ylabel("points, in order of the difference")
        clean(ax)
    ax.axvline(0, color=GREY, linewidth=1)
    ax.set_xlabel(f"difference, 95 % interval ({answer.question})")
    ax.set_title(f"{answer.null}: p = {answer.pvalue:.3g}", fontsize="medium")
    return ax


def draw_importance(
    importance: "Importance", alpha: float = 0.05, ax: "Axes | None" = None
) -> "Axes":
    """Draw importances with their intervals, the largest on top."""
    order = importance.frame["importance"].sort_values(ascending=False).index
    ax = new_axes(ax, len(order))
    bounds = importance.conf_int(alpha).loc[order]
    saved = importance.frame.loc[order, "importance"]
    labels = [str(one) for one in order]
    lower, upper = (bounds[side].fillna(saved) for side in ("lower", "upper"))
    draw_intervals(ax, labels, saved, lower, upper)
    ax.axvline(0, color=GREY, linewidth=1)
    known = f", {1 - alpha:.0%} interval" if bounds.notna().all(axis=None) else ""
    ax.set_xlabel(f"out-of-bag loss saved{known}")
    return ax
