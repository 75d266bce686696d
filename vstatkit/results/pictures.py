"""Pictures of averages and curves."""

from collections.abc import Sequence
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes

from vstatkit.results.averages import Averages
from vstatkit.results.curves import Curve
from vstatkit.results.ensemble_results import EnsembleResults
from vstatkit.results.learners import predictor_of
from vstatkit.results.lines import Lines, draw_lines, draw_rug, ends
from vstatkit.results.moves import there_are
from vstatkit.results.rows import predictor_names
from vstatkit.results.strokes import (
    GREY,
    as_written,
    draw_intervals,
    legend_above,
    names_on,
    new_axes,
    short,
)
from vstatkit.results.tables import label_texts
from vstatkit.results.transforming import Transformed


def plot_averages(
    averages: Averages, *, alpha: float = 0.05, ax: Axes | None = None
) -> Axes:
    """Draw averages with their intervals."""
    frame = averages.summary_frame(alpha)
    ax = new_axes(ax, len(frame))
    labels = averages.texts
    if "from" in frame:
        moves = zip(labels, frame["from"], frame["to"], strict=True)
        labels = [
            text if b is None else f"{text}: {short(a)} → {short(b)}"
            for text, a, b in moves
        ]
        ax.axvline(0, color=GREY, linewidth=1)
    draw_intervals(ax, labels, frame["estimate"], frame["ci_lower"], frame["ci_upper"])
    response = averages.results.info.response
    what = averages.what.capitalize()
    ax.set_xlabel(f"{what}, {response}, {1 - alpha:.0%} interval ({averages.se})")
    return ax


def plot_transformed(
    made: Transformed, *, alpha: float = 0.05, ax: Axes | None = None
) -> Axes:
    """Draw functions of estimates with their intervals."""
    frame = made.summary_frame(alpha)
    ax = new_axes(ax, len(frame))
    labels = label_texts(frame.index)
    draw_intervals(ax, labels, frame["estimate"], frame["ci_lower"], frame["ci_upper"])
    ax.set_xlabel(f"Functions of estimates, {1 - alpha:.0%} interval")
    return ax


def plot_curve(curve: Curve, *, alpha: float = 0.05, ax: Axes | None = None) -> Axes:
    """Draw a curve with intervals, band and rug; points for a factor.

    Of several classes each has a curve, with its intervals alone.
    """
    ax = new_axes(ax)
    points = len(curve.grid.drop_duplicates())
    outputs = len(curve.grid) // points
    names = (
        ["mean"] if outputs == 1 else [str(label[-1]) for label in curve.params.index]
    )
    lines = Lines(
        x=curve.grid.iloc[::outputs, 0].to_numpy(),
        factor=curve.factors[0],
        mean=curve.params.to_numpy().reshape(points, outputs),
        each=ends(curve.conf_int(alpha), outputs),
        band=ends(curve.conf_int(alpha, simultaneous=True), outputs),
        names=tuple(names[:outputs]),
        level=f"{1 - alpha:.0%}",
    )
    draw_lines(ax, lines)
    if outputs > 1 or not lines.factor:
        legend_above(ax)
    if not lines.factor:
        draw_rug(ax, curve.rug[0])
    ax.set_xlabel(str(curve.variables[0]))
    ax.set_ylabel(f"{curve.title}, {curve.results.info.response}")
    return ax


def plot_map(curve: Curve, *, axes: Any = None) -> Any:
    """Draw a map of the estimate and one of its standard error."""
    if len(curve.grid) > len(curve.grid.drop_duplicates()):
        raise ValueError(
            "a map shows one column of predictions; with several classes draw from "
            "`frame`."
        )
    if axes is None:
        axes = plt.subplots(1, 2, figsize=(9.6, 4), layout="constrained")[1]
    first, second = curve.variables
    columns = [list(dict.fromkeys(curve.grid[name])) for name in curve.variables]
    for ax, numbers, title in zip(
        axes, (curve.params, curve.bse), (curve.title, "Standard error"), strict=True
    ):
        table = numbers.to_numpy().reshape(len(columns[0]), len(columns[1])).T
        places = [
            np.arange(len(values)) if factor else np.asarray(values, dtype=np.float64)
            for values, factor in zip(columns, curve.factors, strict=True)
        ]
        drawn = ax.pcolormesh(*places, table, shading="nearest", cmap="viridis")
        ax.figure.colorbar(drawn, ax=ax)
        for factor, values, ticks in zip(
            curve.factors, columns, (ax.set_xticks, ax.set_yticks), strict=True
        ):
            if factor:
                ticks(np.arange(len(values)), [str(one) for one in values])
        ax.set(xlabel=str(first), ylabel=str(second), title=title)
        as_written(names_on(ax))
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
        Of learners that predict.
    variable : str or sequence of str
        One predictor, or two.
    alpha : float
        One minus the coverage of a curve's intervals and band.
    ax : Axes or sequence of Axes, optional
        Where to draw; two for a map.
    **options
        Of `partial_dependence`.
    """
    if variable is None:
        names = predictor_names(predictor_of(results))
        given = f", such as variable={names[0]!r}" if names else ""
        raise ValueError(
            "a partial dependence needs `variable`, the predictor that moves (or two "
            f"of them){given}; {there_are(names)}"
        )
    return results.partial_dependence(variable, **options).plot(ax, alpha=alpha)


def plot_average_effects(
    results: EnsembleResults,
    *,
    alpha: float = 0.05,
    ax: Axes | None = None,
    **options: Any,
) -> Axes:
    """Draw the average effects; options are of `avg_effects`."""
    return plot_averages(results.avg_effects(**options), alpha=alpha, ax=ax)
