"""Plots of estimates, predictions, class sets, tests, importances and checks."""

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from scipy import stats

from vstatkit._typing import DataLike
from vstatkit.inference.estimates import estimate
from vstatkit.plots.style import (
    ACCENT,
    BAND,
    GREY,
    POINT,
    clean,
    disable_mathtext,
    draw_frame,
    draw_intervals,
    legend_above,
    move_labels,
    name_rows,
    names_on,
    new_axes,
    outcome_stroke,
    rotate_names,
)
from vstatkit.results.bootstrap import Bootstrap
from vstatkit.results.ensemble_results import EnsembleResults
from vstatkit.results.estimate_table import EstimateTable
from vstatkit.results.importance import Importance
from vstatkit.results.labels import label_texts
from vstatkit.results.prediction_results import ClassSets, PredictionResults, members
from vstatkit.results.predictor_tests import JointTest
from vstatkit.results.reliability_checks import NormalityCheck, VarianceComparison
from vstatkit.validation import check_alpha


def plot_estimates(
    results: EstimateTable, *, alpha: float = 0.05, ax: Axes | None = None
) -> Axes:
    """Draw the estimates with their intervals."""
    bounds, info = results.conf_int(alpha), results.info
    ax = new_axes(ax, len(bounds))
    labels = label_texts(results.labels)
    draw_intervals(ax, labels, results.params, bounds["lower"], bounds["upper"])
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
    classes = isinstance(frame.index, pd.MultiIndex)
    what = "probability" if classes else results.info.response
    labels = move_labels(frame, label_texts(frame.index))
    xlabel = f"Change in {what}, {1 - alpha:.0%} interval"
    return draw_frame(frame, labels, xlabel, ax, zero=True)


def plot_influence(results: EnsembleResults, *, ax: Axes | None = None) -> Axes:
    """Draw the influence values of the first estimate against normal quantiles."""
    influence = results.influence().iloc[:, 0]
    ax = new_axes(ax)
    (theory, ordered), (slope, start, _) = stats.probplot(influence)
    ax.plot(theory, ordered, "o", color=POINT, markersize=3.5, alpha=0.7)
    ends = theory[[0, -1]]
    ax.plot(ends, start + slope * ends, color=ACCENT, linewidth=1.5)
    ax.set_xlabel("Normal quantile")
    ax.set_ylabel(f"Influence on {label_texts(results.labels)[0]}")
    clean(ax)
    return ax


def plot_convergence(results: EnsembleResults, *, ax: Axes | None = None) -> Axes:
    """Draw the first standard error against B, with its Monte Carlo error."""
    B, design = results.B, results.design
    if design.complete:
        raise ValueError("a complete statistic has no Monte Carlo error to draw.")
    wanted = np.geomspace(min(B, max(50, B // 50)), B, 15)
    sizes = sorted({design.round_size(round(size), at_most=B) for size in wanted})
    influence = results.leaf_influence
    if influence is not None:
        influence = influence.take([0])
    looks = [
        estimate(
            *(design, results.values[:size, :1], results.variance),
            orders=results.orders,
            pooled=results.pooled,
            influence=influence,
        )
        for size in sizes
    ]
    bse = np.array([look.bse[0] for look in looks])
    error = bse * np.array([look.relative_mc_error[0] for look in looks])
    ax = new_axes(ax)
    lower = np.maximum(bse - error, 0)  # no standard error is below zero
    ax.fill_between(sizes, lower, bse + error, color=BAND, alpha=0.5, linewidth=0)
    ax.plot(sizes, bse, "o-", color=POINT, markersize=4)
    ax.set_ylim(bottom=0)
    ax.set_xscale("log")
    shown = sizes[:: -max(1, len(sizes) // 6)]  # with the last one
    ax.set_xticks(shown, [f"{size:,}" for size in shown])
    ax.minorticks_off()
    ax.set_xlabel("Base learners B")
    ax.set_ylabel(
        f"Std err of {label_texts(results.labels)[0]} ± its Monte Carlo error"
    )
    clean(ax)
    return ax


MOST_NAMED = 40  # most rows that are labelled; more differences are sorted by size


def outcome_text(results: EnsembleResults) -> str:
    """Name the predicted quantity: the response, or probabilities of its classes."""
    classes = None if results.predictor is None else results.predictor.classes
    response = results.info.response
    return response if classes is None or len(classes) <= 2 else f"P({response})"


def plot_prediction(
    prediction: PredictionResults, *, alpha: float = 0.05, ax: Axes | None = None
) -> Axes:
    """Draw predictions with their intervals; many of them sorted by size.

    Thick lines are confidence intervals of the means, thin ones are limits of a new
    observation, if known. Several classes have different colours.
    """
    results = prediction.results
    frame = prediction.summary_frame(alpha)
    classes = None if results.predictor is None else results.predictor.classes
    several = classes is not None and len(classes) > 2
    names = list(map(str, classes)) if classes is not None and several else ["mean"]
    outputs = len(names)
    rows = len(frame) // outputs
    named = rows <= MOST_NAMED
    ax = new_axes(ax, rows * (1 + outputs // 4) if named else 12)
    level = f"{1 - alpha:.0%}"
    order = np.arange(rows)
    if not named and not several:
        order = np.argsort(frame["mean"].to_numpy(), kind="stable")
    places = np.arange(rows)[::-1] if named else np.arange(rows)
    for j, name in enumerate(names):
        part = frame.iloc[j::outputs].iloc[order]
        shift = 0.6 / outputs * ((outputs - 1) / 2 - j)
        colour = outcome_stroke(j)[0] if several else POINT
        heights = places + shift
        if "obs_ci_lower" in part:
            limits = ax.hlines(heights, part["obs_ci_lower"], part["obs_ci_upper"])
            limits.set(color=BAND, linewidth=1.2 if named else 0.5)
            limits.set_label(f"{level}, a new observation")
        intervals = ax.hlines(heights, part["mean_ci_lower"], part["mean_ci_upper"])
        intervals.set(color=colour, linewidth=3 if named else 1)
        intervals.set_label("_" if several else f"{level}, the mean")
        (points,) = ax.plot(part["mean"], heights, "o", label=name)
        points.set_color(colour if several or named else ACCENT)
        points.set_markersize(5 if named else 1.5)
    if named:
        labels = frame.index[::outputs]
        labels = labels.get_level_values(0) if several else labels
        name_rows(ax, places, label_texts(labels))
    else:
        ax.set_ylabel("rows, in their order" if several else "rows, from low to high")
    ax.set_xlabel(outcome_text(results))
    legend_above(ax)
    clean(ax)
    return ax


MOST_ROWS = 40  # most rows that are drawn
MOST_LETTERS = 48  # most characters of the names of classes that are not rotated


def draw_sets(whole: pd.DataFrame, sets: ClassSets, ax: Axes | None = None) -> Axes:
    """Draw one row per set: probabilities as shades, members with a mark."""
    shares = whole.iloc[:MOST_ROWS]
    rows, values = len(shares), shares.to_numpy()
    ax = new_axes(ax, rows)
    mesh = ax.pcolormesh(
        values, cmap="Blues", vmin=0, vmax=1, edgecolors="white", linewidth=1
    )
    ax.figure.colorbar(mesh, ax=ax, label="probability", fraction=0.06)
    least = {name: sets.attrs["least_probability"][name] for name in shares.columns}
    row, column = np.nonzero(members(values, np.array([*least.values()])))
    label = f"in the set ({1 - sets.alpha:.0%})"
    (marks,) = ax.plot(column + 0.5, row + 0.5, "o", color=ACCENT, label=label)
    marks.set(markeredgecolor="white", markersize=9)
    ax.set_yticks(np.arange(rows) + 0.5, label_texts(shares.index))
    ax.set_ylim(rows, 0)
    ax.tick_params(length=0)
    ax.spines[:].set_visible(False)
    if len(whole) > rows:
        ax.set_ylabel(f"the first {rows} of {len(whole):,} rows")
    # The classes are named with their thresholds if these differ.
    if len(set(least.values())) > 1:
        probability = "this probability"
        names = [f"{name}\n{value:.2f}" for name, value in least.items()]
    else:
        probability = f"a probability of {min(least.values()):.2f}"
        names = [str(name) for name in least]
    ax.set_xticks(np.arange(len(names)) + 0.5, names)
    ax.set_xlabel(f"class, in a set from {probability} on")
    if sum(max(map(len, name.split("\n"))) + 2 for name in names) > MOST_LETTERS:
        rotate_names(ax, 45)
    legend_above(ax)
    disable_mathtext(names_on(ax))
    return ax


def plot_bias(
    results: EnsembleResults,
    *,
    data: DataLike | None = None,
    alpha: float = 0.05,
    ax: Axes | None = None,
) -> Axes:
    """Draw the remaining bias at new data (by default the query points).

    A wide bar extends one standard error of the prediction to each side of zero. If the
    bias is within half of it, the coverage of intervals is close to nominal. The
    intervals of the bias are normal.
    """
    check_alpha(alpha)
    left = results.bias_left(data)
    ax = new_axes(ax, len(left))
    table = results if data is None else results.get_prediction(data)
    reach = table.estimates.bse
    places = range(len(left))[::-1]
    ax.barh(places, 2 * reach, left=-reach, height=0.6, color=BAND, alpha=0.35)
    ax.axvline(0, color=GREY, linewidth=1)
    half = stats.norm.isf(alpha / 2) * left["std_error"]
    low, high = left["bias"] - half, left["bias"] + half
    draw_intervals(ax, label_texts(left.index), left["bias"], low, high)
    ax.set_xlabel(
        f"remaining bias, {results.info.response}, {1 - alpha:.0%} interval; "
        "bars: standard error of the prediction"
    )
    return ax


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
