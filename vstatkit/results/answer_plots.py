"""Pictures of answers to questions about predictors; matplotlib loads on demand."""

from typing import TYPE_CHECKING, Any

import matplotlib.pyplot as plt
import numpy as np

from vstatkit.results.tables import label_texts

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from vstatkit.results.answers import Answer
    from vstatkit.results.importance import Importance
    from vstatkit.results.permutation_tests import PermutationTest

POINT, ACCENT, GREY = "#0072B2", "#D55E00", "0.6"


def _axes(ax: "Axes | None", rows: int = 8) -> "Axes":
    if ax is None:
        height = float(np.clip(1.2 + 0.32 * rows, 3.2, 12))
        ax = plt.subplots(figsize=(7.2, height), layout="constrained")[1]
    ax.spines[["top", "right"]].set_visible(False)
    ax.grid(axis="x", color="0.9", linewidth=0.8)
    ax.set_axisbelow(True)
    return ax


def _intervals(ax: "Axes", labels: list[str], centre: Any, bounds: Any) -> None:
    places = np.arange(len(labels))[::-1]
    ax.axvline(0, color=GREY, linewidth=1)
    ax.hlines(places, bounds["lower"], bounds["upper"], color=POINT, linewidth=2)
    ax.plot(centre, places, "o", color=POINT, markersize=5)
    ax.set_yticks(places, labels)
    ax.set_ylim(-0.6, len(labels) - 0.4)


MOST_NAMED = 40
"""Differences beyond which they are drawn in order of size, without names."""


def draw_differences(answer: "Answer", ax: "Axes | None" = None) -> "Axes":
    """Draw differences with 95 % intervals; many of them in order of size."""
    found = answer.differences
    bounds, centre = found.conf_int(), found.params
    if len(centre) <= MOST_NAMED:
        ax = _axes(ax, len(centre))
        _intervals(ax, label_texts(found.labels), centre, bounds)
    else:
        ax = _axes(ax)
        order = np.argsort(centre.to_numpy())
        places = np.arange(len(order))
        lower, upper = bounds["lower"].to_numpy(), bounds["upper"].to_numpy()
        ax.axvline(0, color=GREY, linewidth=1)
        ax.hlines(places, lower[order], upper[order], color=POINT, linewidth=0.7)
        ax.plot(centre.to_numpy()[order], places, ".", color=POINT, markersize=3)
        ax.set_ylabel("points, in order of the difference")
    ax.set_xlabel(f"difference, 95 % interval ({answer.question})")
    ax.set_title(f"{answer.null}: p = {answer.pvalue:.3g}", fontsize="medium")
    return ax


def draw_importance(
    importance: "Importance", alpha: float = 0.05, ax: "Axes | None" = None
) -> "Axes":
    """Draw importances with their intervals, the largest on top."""
    order = importance.frame["importance"].sort_values(ascending=False).index
    ax = _axes(ax, len(order))
    bounds = importance.conf_int(alpha).loc[order]
    _intervals(
        ax,
        [str(one) for one in order],
        importance.frame.loc[order, "importance"],
        bounds,
    )
    ax.set_xlabel(f"out-of-bag loss saved, {1 - alpha:.0%} interval")
    return ax


def draw_permutations(test: "PermutationTest", ax: "Axes | None" = None) -> "Axes":
    """Draw the statistic among those that are alike under the null."""
    ax = _axes(ax)
    ax.hist(test.others, bins="auto", color=POINT, alpha=0.6)
    ax.axvline(test.statistic, color=ACCENT, linewidth=2)
    ax.set_xlabel(f"loss saved by {', '.join(test.variables)}; p = {test.pvalue:.3g}")
    ax.set_ylabel("permutations")
    return ax
