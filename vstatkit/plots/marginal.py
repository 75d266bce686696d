"""Plots of averages, curves, functions of estimates and profiles."""

from collections.abc import Sequence
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes

from vstatkit.plots.estimates import outcome_text
from vstatkit.plots.style import (
    Lines,
    disable_mathtext,
    draw_frame,
    draw_lines,
    draw_rug,
    legend_above,
    move_labels,
    names_on,
    new_axes,
)
from vstatkit.results.delta_method import Transformed
from vstatkit.results.dependence_curves import Curve, profile_of, profile_variables
from vstatkit.results.ensemble_results import EnsembleResults
from vstatkit.results.labels import label_texts
from vstatkit.results.marginal_effects import Averages, list_predictors, predictor_names
from vstatkit.results.prediction_results import predictor_of


def plot_averages(
    averages: Averages, *, alpha: float = 0.05, ax: Axes | None = None
) -> Axes:
    """Draw averages with their intervals."""
    frame = averages.summary_frame(alpha)
    moves = "from" in frame
    labels = move_labels(frame, averages.texts) if moves else averages.texts
    what = f"{averages.what.capitalize()}, {averages.info.response}"
    xlabel = f"{what}, {1 - alpha:.0%} interval ({averages.se})"
    return draw_frame(frame, labels, xlabel, ax, zero=moves)


def plot_transformed(
    transformed: Transformed, *, alpha: float = 0.05, ax: Axes | None = None
) -> Axes:
    """Draw functions of estimates with their intervals."""
    frame = transformed.summary_frame(alpha)
    xlabel = f"Functions of estimates, {1 - alpha:.0%} interval"
    return draw_frame(frame, label_texts(frame.index), xlabel, ax)


def plot_curve(curve: Curve, *, alpha: float = 0.05, ax: Axes | None = None) -> Axes:
    """Draw a curve with intervals, band and rug; points for a factor.

    Several classes have one curve each, without a band.
    """
    ax = new_axes(ax)
    outputs = len(curve.grid) // curve.n_points
    names: tuple[str, ...] = ("mean",)
    if outputs > 1:
        names = tuple(str(label[-1]) for label in curve.params.index[:outputs])
    x = curve.grid.iloc[::outputs, 0].to_numpy()
    lines = Lines(curve, x, curve.factors[0], names, alpha)
    draw_lines(ax, lines)
    if outputs > 1 or not lines.factor:
        legend_above(ax)
    if not lines.factor:
        draw_rug(ax, curve.rug[0])
    ax.set_xlabel(str(curve.variables[0]))
    ax.set_ylabel(f"{curve.title}, {curve.info.response}")
    return ax


def plot_map(curve: Curve, *, axes: Any = None) -> Any:
    """Draw a map of the estimate and one of its standard error."""
    if len(curve.grid) > curve.n_points:
        raise ValueError(
            "a map has one column of predictions, but this curve has several classes. "
            "Draw them from `frame`."
        )
    if axes is None:
        axes = plt.subplots(1, 2, figsize=(9.6, 4), layout="constrained")[1]
    first, second = curve.variables
    columns = [list(dict.fromkeys(curve.grid[name])) for name in curve.variables]
    places = [
        np.arange(len(values)) if factor else np.asarray(values, dtype=np.float64)
        for values, factor in zip(columns, curve.factors, strict=True)
    ]
    maps = ((curve.params, curve.title), (curve.bse, "Standard error"))
    for ax, (numbers, title) in zip(axes, maps, strict=True):
        table = numbers.to_numpy().reshape(len(columns[0]), len(columns[1])).T
        mesh = ax.pcolormesh(*places, table, shading="nearest", cmap="viridis")
        ax.figure.colorbar(mesh, ax=ax)
        for factor, values, ticks in zip(
            curve.factors, columns, (ax.set_xticks, ax.set_yticks), strict=True
        ):
            if factor:
                ticks(np.arange(len(values)), [str(value) for value in values])
        ax.set(xlabel=str(first), ylabel=str(second), title=title)
        disable_mathtext(names_on(ax))
    return axes


def plot_partial_dependence(
    results: EnsembleResults,
    variable: str | Sequence[str] | None = None,
    *,
    alpha: float = 0.05,
    ax: Any = None,
    **options: Any,
) -> Any:
    """Draw the partial dependence on one predictor, or a map of it on two.

    Parameters
    ----------
    results : EnsembleResults
        Results that predict.
    variable : str or sequence of str
        One or two predictors.
    alpha : float
        One minus the coverage of a curve's intervals and band.
    ax : Axes or sequence of Axes, optional
        Axes to draw on; two for a map.
    **options
        Options of `partial_dependence`.
    """
    if variable is None:
        names = predictor_names(predictor_of(results))
        given = f", such as variable={names[0]!r}" if names else ""
        raise ValueError(
            "a partial dependence needs `variable`, one or two predictors"
            f"{given}; {list_predictors(names)}"
        )
    return results.partial_dependence(variable, **options).plot(ax, alpha=alpha)


def plot_average_effects(
    results: EnsembleResults,
    *,
    alpha: float = 0.05,
    ax: Axes | None = None,
    **options: Any,
) -> Axes:
    """Draw the average effects; options are those of `avg_effects`."""
    return plot_averages(results.avg_effects(**options), alpha=alpha, ax=ax)


MOST_PANELS = 12  # most panels of one figure


def plot_profile(
    results: EnsembleResults,
    variable: str | Sequence[str] | None = None,
    *,
    n_points: int = 40,
    alpha: float = 0.05,
    ax: Any = None,
) -> Any:
    """Draw predictions along one predictor, the others at typical values.

    A numeric predictor has a curve over its observed range, and a rug; a factor has one
    point per level, with its number of observations. Several classes have one curve
    each, with some intervals along it.

    Parameters
    ----------
    results : EnsembleResults
        Results that predict.
    variable : str or sequence of str, optional
        A predictor, or several, each in a panel of its own; all by default.
    n_points : int
        Points on a curve; at most the number of distinct values.
    alpha : float
        One minus the coverage of the intervals (dark) and of the band (light).
    ax : Axes or sequence of Axes, optional
        Axes to draw on, one for each predictor.

    Returns
    -------
    Axes, or ndarray of Axes if `variable` is not a str
    """
    names = profile_variables(results, variable)
    axes = _panels(names, ax)
    classes = None if results.predictor is None else results.predictor.classes
    for name, panel in zip(names, axes, strict=True):
        profile = profile_of(results, name, n_points)
        x, observed, prediction = profile.x, profile.observed, profile.prediction
        if profile.factor and observed is not None:
            times = observed.value_counts()
            x = [f"{level}\nn = {times.get(level, 0):,}" for level in x]
        several = len(prediction.labels) > len(x)
        outcomes = tuple(map(str, classes or ())) if several else ("mean",)
        lines = Lines(prediction, x, profile.factor, outcomes, alpha, not several)
        draw_lines(panel, lines)
        if not profile.factor and observed is not None:
            draw_rug(panel, observed)
        alone = ", others at typical values" if len(names) == 1 else ""
        panel.set_xlabel(f"{name}{alone}")
    axes[0].set_ylabel(outcome_text(results))
    if len(names) > 1 and ax is None:
        axes[0].figure.supxlabel("others at typical values", fontsize="medium")
        _legend(axes)
    else:
        for panel in axes:
            if len(panel.get_legend_handles_labels()[0]) > 1:
                legend_above(panel)
    return axes[0] if isinstance(variable, str) else axes


def _panels(names: Sequence[str], ax: Any) -> Any:
    """Return the given axes, or a new panel for each name."""
    if ax is not None:
        axes = np.atleast_1d(np.asarray(ax, dtype=object)).ravel()
        if len(axes) != len(names):
            raise ValueError(
                f"`ax` must have axes for {len(names)} panels; got {len(axes)}."
            )
        return axes
    if len(names) > MOST_PANELS:
        raise ValueError(
            f"a figure has at most {MOST_PANELS} panels; there are {len(names)} "
            "predictors. Choose some with `variable`."
        )
    if len(names) == 1:
        return np.array([new_axes(None)], dtype=object)
    columns = min(3, len(names))
    rows = -(-len(names) // columns)
    figure, axes = plt.subplots(
        rows,
        columns,
        figsize=(3.2 * columns + 0.6, 2.9 * rows + 0.4),
        sharey=True,
        squeeze=False,
        layout="constrained",
    )
    for spare in axes.ravel()[len(names) :]:
        figure.delaxes(spare)
    for panel in axes.ravel()[: len(names)]:
        panel.tick_params(labelleft=panel in axes[:, 0])
    return axes.ravel()[: len(names)]


def _legend(axes: Any) -> None:
    """Add one legend for all panels."""
    legends = [panel.get_legend_handles_labels() for panel in axes]
    handles, labels = max(legends, key=lambda entries: len(entries[0]))
    if len(handles) > 1:
        place = {"loc": "outside upper left", "ncols": 6}
        legend = axes[0].figure.legend(
            handles, labels, **place, frameon=False, fontsize="small"
        )
        disable_mathtext(legend.get_texts())
