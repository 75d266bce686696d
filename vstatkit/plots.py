"""Pictures of results; each takes results and axes, and returns the axes."""

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from scipy import stats

from vstatkit._typing import Floats
from vstatkit.inference.estimates import estimate
from vstatkit.results.bootstrap import Bootstrap
from vstatkit.results.comparison import VarianceComparison
from vstatkit.results.ensemble_results import EnsembleResults
from vstatkit.results.normality_check import NormalityCheck
from vstatkit.results.pictures import plot_average_effects, plot_partial_dependence
from vstatkit.results.prediction_pictures import plot_prediction
from vstatkit.results.profile_pictures import plot_profile
from vstatkit.results.strokes import (
    ACCENT,
    BAND,
    GREY,
    POINT,
    clean,
    draw_intervals,
    new_axes,
    short,
)
from vstatkit.results.tables import label_texts

__all__ = [
    "plot_average_effects",
    "plot_comparison",
    "plot_convergence",
    "plot_effects",
    "plot_estimates",
    "plot_influence",
    "plot_misses",
    "plot_partial_dependence",
    "plot_prediction",
    "plot_profile",
    "plot_quantiles",
]

MOST_NAMED = 8
"""Most estimates that a legend names."""


def plot_estimates(
    results: EnsembleResults, *, alpha: float = 0.05, ax: Axes | None = None
) -> Axes:
    """Draw the estimates with their intervals."""
    bounds = results.conf_int(alpha)
    ax = new_axes(ax, len(bounds))
    labels = label_texts(results.labels)
    draw_intervals(ax, labels, results.params, bounds["lower"], bounds["upper"])
    info = results.info
    coefficients = info.coefficients and info.formula is not None
    if coefficients:
        ax.axvline(0, color=GREY, linewidth=1)
    what = "Coefficient" if coefficients else info.response
    ax.set_xlabel(f"{what}, {1 - alpha:.0%} confidence interval")
    return ax


def plot_effects(
    results: EnsembleResults, *, alpha: float = 0.05, ax: Axes | None = None
) -> Axes:
    """Draw the change of the estimate as each predictor moves."""
    frame = results.effects_frame(alpha)
    if frame is None:
        raise ValueError(f"the kernel {results.info.kernel!r} has no effects to draw.")
    ax = new_axes(ax, len(frame))
    labels = [
        f"{label}: {short(start)} → {short(end)}"
        for label, start, end in zip(
            label_texts(frame.index), frame["from"], frame["to"], strict=True
        )
    ]
    ax.axvline(0, color=GREY, linewidth=1)
    draw_intervals(ax, labels, frame["estimate"], frame["ci_lower"], frame["ci_upper"])
    several = isinstance(frame.index, pd.MultiIndex)
    what = "probability" if several else results.info.response
    ax.set_xlabel(f"Change in {what}, {1 - alpha:.0%} interval")
    return ax


def plot_influence(results: EnsembleResults, *, ax: Axes | None = None) -> Axes:
    """Draw the influence values of the first estimate against normal quantiles."""
    influence = results.influence().iloc[:, 0]
    ax = new_axes(ax)
    (theory, ordered), (slope, start, _) = stats.probplot(influence)
    ax.plot(theory, ordered, "o", color=POINT, markersize=3.5, alpha=0.7)
    ends = np.array([theory[0], theory[-1]])
    ax.plot(ends, start + slope * ends, color=ACCENT, linewidth=1.5)
    ax.set_xlabel("Normal quantile")
    ax.set_ylabel(f"Influence on {label_texts(results.labels)[0]}")
    clean(ax)
    return ax


def plot_convergence(results: EnsembleResults, *, ax: Axes | None = None) -> Axes:
    """Draw the first standard error against B, with its Monte Carlo error."""
    sizes = _prefix_sizes(results)
    looks = [
        estimate(
            results.design,
            results.values[:size, :1],
            results.variance,
            orders=results.orders,
        )
        for size in sizes
    ]
    bse = np.array([look.bse[0] for look in looks])
    error: Floats = bse * np.array([look.relative_mc_error[0] for look in looks])
    ax = new_axes(ax)
    lower = np.maximum(bse - error, 0)  # no standard error is below zero
    ax.fill_between(sizes, lower, bse + error, color=BAND, alpha=0.5, linewidth=0)
    ax.plot(sizes, bse, "o-", color=POINT, markersize=4)
    ax.set_ylim(bottom=0)
    ax.set_xscale("log")
    shown = sizes[:: -max(1, len(sizes) // 6)]  # from the last one back
    ax.set_xticks(shown, [f"{size:,}" for size in shown])
    ax.minorticks_off()
    ax.set_xlabel("Base learners B")
    ax.set_ylabel(
        f"Std err of {label_texts(results.labels)[0]} ± its Monte Carlo error"
    )
    clean(ax)
    return ax


def _prefix_sizes(results: EnsembleResults) -> list[int]:
    if results.design.complete:
        raise ValueError("a complete statistic has no Monte Carlo error to follow.")
    start = min(results.B, max(50, results.B // 50))
    wanted = np.geomspace(start, results.B, 15)
    whole = {results.design.rounded(round(size), at_most=results.B) for size in wanted}
    return sorted(whole)


def plot_comparison(comparison: VarianceComparison, *, ax: Axes | None = None) -> Axes:
    """Draw the intervals of several variance estimators, estimate by estimate.

    The estimator in use stands out. Of many estimates the first and the last are
    drawn, as in the printed table.
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
    """Draw how often intervals lie above and below the truth."""
    frame, alpha = check.frame, check.alpha
    ax = new_axes(ax, len(frame))
    places = np.arange(len(frame))[::-1]
    ax.plot(frame["miss_above"], places, "o", color=POINT, label="above the truth")
    ax.plot(frame["miss_below"], places, "s", color=ACCENT, label="below the truth")
    ax.axvline(alpha / 2, color=GREY, linewidth=1)
    ax.set_yticks(places, label_texts(frame.index))
    ax.set_ylim(-0.6, len(frame) - 0.4)
    ax.set_xlabel(f"Probability that the {1 - alpha:.0%} interval lies ...")
    ax.legend(frameon=False)
    clean(ax)
    return ax


def plot_quantiles(found: Bootstrap, *, ax: Axes | None = None) -> Axes:
    """Draw quantiles of the estimates on resampled data against normal ones.

    Each estimate is centred and scaled by its own mean and standard deviation; normal
    ones lie on the line.
    """
    ax = new_axes(ax, 12)
    places = (np.arange(1, found.R + 1) - 0.5) / found.R
    normal = stats.norm.ppf(places)
    spread = found.bse.to_numpy()
    scale = np.where(spread > 0, spread, 1.0)
    ordered = np.sort((found.estimates - found.estimates.mean(axis=0)) / scale, axis=0)
    texts = label_texts(found.labels)
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
