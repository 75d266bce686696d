"""Plots of tests, importances and checks."""

import numpy as np
from matplotlib.axes import Axes
from scipy import stats

from vstatkit.plots.style import (
    ACCENT,
    GREY,
    POINT,
    clean,
    draw_frame,
    draw_intervals,
    name_rows,
    new_axes,
)
from vstatkit.results.bootstrap import Bootstrap
from vstatkit.results.importance import Importance
from vstatkit.results.labels import label_texts
from vstatkit.results.predictor_tests import JointTest
from vstatkit.results.reliability_checks import NormalityCheck, VarianceComparison

MOST_NAMED = 40  # most differences that are labelled; more are sorted by size


def draw_differences(test: JointTest, ax: Axes | None = None) -> Axes:
    """Draw differences with 95 % intervals; many of them sorted by size."""
    frame = test.table()
    if len(frame) <= MOST_NAMED:
        ax = draw_frame(frame, label_texts(frame.index), "", ax)
    else:
        ax = new_axes(ax)
        frame = frame.iloc[np.argsort(frame["estimate"].to_numpy())]
        places = np.arange(len(frame))
        lower, upper = frame["ci_lower"], frame["ci_upper"]
        ax.hlines(places, lower, upper, color=POINT, linewidth=0.7)
        ax.plot(frame["estimate"], places, ".", color=POINT, markersize=3)
        ax.set_ylabel("points, in order of the difference")
        clean(ax)
    ax.axvline(0, color=GREY, linewidth=1)
    ax.set_xlabel(f"difference, 95 % interval ({test.question})")
    ax.set_title(f"{test.null}: p = {test.pvalue:.3g}", fontsize="medium")
    return ax


def draw_importance(
    importance: Importance, alpha: float = 0.05, ax: Axes | None = None
) -> Axes:
    """Draw importances with their intervals, the largest on top."""
    order = importance.frame["importance"].sort_values(ascending=False).index
    ax = new_axes(ax, len(order))
    bounds = importance.conf_int(alpha).loc[order]
    reduction = importance.frame.loc[order, "importance"]
    labels = [str(name) for name in order]
    lower, upper = (bounds[side].fillna(reduction) for side in ("lower", "upper"))
    draw_intervals(ax, labels, reduction, lower, upper)
    ax.axvline(0, color=GREY, linewidth=1)
    known = f", {1 - alpha:.0%} interval" if bounds.notna().all(axis=None) else ""
    ax.set_xlabel(f"reduction in out-of-bag loss{known}")
    return ax


def plot_comparison(comparison: VarianceComparison, *, ax: Axes | None = None) -> Axes:
    """Draw the intervals of several variance estimators, estimate by estimate.

    The estimator in use has another colour. Of many estimates the first and the last
    are drawn, as in the printed table.
    """
    shown = comparison.shown_tables()
    step = len(comparison.estimators) + 1  # a row for the estimate's label
    ax = new_axes(ax, step * len(shown))
    ticks: list[str] = []
    for group, (label, frame) in enumerate(shown):
        places = -(group * step + 1 + np.arange(len(frame)))
        colours = [
            ACCENT if name == comparison.chosen else POINT for name in frame.index
        ]
        ax.hlines(places, frame["ci_lower"], frame["ci_upper"], colours, linewidth=2)
        ax.scatter(frame["estimate"], places, s=25, c=colours, zorder=3)
        ticks += [label, *frame.index]
    ax.set_yticks(-np.arange(len(ticks)), ticks)
    for text in ax.get_yticklabels()[::step]:
        text.set_fontweight("bold")
    ax.tick_params(axis="y", length=0)
    ax.set_ylim(0.6 - len(ticks) - 0.2, 0.6)
    ax.set_xlabel(
        f"{1 - comparison.alpha:.0%} confidence interval by each variance estimator "
        "(orange: in use)"
    )
    clean(ax)
    return ax


def plot_misses(check: NormalityCheck, *, ax: Axes | None = None) -> Axes:
    """Draw how often intervals lie above and below the true value."""
    frame, alpha = check.frame, check.alpha
    ax = new_axes(ax, len(frame))
    places = np.arange(len(frame))[::-1]
    for side, mark, colour in (("above", "o", POINT), ("below", "s", ACCENT)):
        label = f"{side} the true value"
        ax.plot(frame[f"miss_{side}"], places, mark, color=colour, label=label)
    ax.axvline(alpha / 2, color=GREY, linewidth=1)
    name_rows(ax, places, label_texts(frame.index))
    ax.set_xlabel(f"Probability that the {1 - alpha:.0%} interval lies ...")
    ax.legend(frameon=False)
    clean(ax)
    return ax


def plot_quantiles(bootstrap: Bootstrap, *, ax: Axes | None = None) -> Axes:
    """Draw quantiles of the estimates on resampled data against normal quantiles.

    Each estimate is standardised; normal estimates lie on the line.
    """
    ax = new_axes(ax, 12)
    normal = stats.norm.ppf((np.arange(1, bootstrap.R + 1) - 0.5) / bootstrap.R)
    spread = bootstrap.bse.to_numpy()
    scale = np.where(spread > 0, spread, 1.0)
    centred = bootstrap.estimates - bootstrap.estimates.mean(axis=0)
    ordered = np.sort(centred / scale, axis=0)
    texts = label_texts(bootstrap.labels)
    for label, column in zip(texts, ordered.T, strict=True):
        ax.plot(normal, column, ".", markersize=4, label=label)
    ax.plot(normal, normal, color=GREY, linewidth=1)
    ax.set(
        xlabel="Normal quantiles", ylabel="Estimates on resampled data, standardised"
    )
    if len(texts) <= MOST_NAMED:
        ax.legend(frameon=False)
    clean(ax)
    return ax
