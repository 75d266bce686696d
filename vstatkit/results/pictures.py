"""Pictures of averages and curves."""

from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from vstatkit.results.averages import Averages
from vstatkit.results.curves import Curve
from vstatkit.results.ensemble_results import EnsembleResults
from vstatkit.results.strokes import (
    BAND,
    GREY,
    POINT,
    clean,
    draw_intervals,
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
    labels = label_texts(frame.index)
    if "from" in frame:
        moves = zip(labels, frame["from"], frame["to"], strict=True)
        labels = [f"{text}: {short(a)} → {short(b)}" for text, a, b in moves]
    if "from" in frame or "step" in frame:
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
    each = curve.conf_int(alpha)
    band = curve.conf_int(alpha, simultaneous=True)
    outputs = len(curve.grid) // len(curve.grid.drop_duplicates())
    for j in range(outputs):
        some = slice(j, None, outputs)
        x = curve.grid.iloc[some, 0].to_numpy()
        mean = curve.params.to_numpy()[some]
        one, all_ = each.iloc[some], band.iloc[some]
        colour = POINT if outputs == 1 else f"C{j}"
        name = "mean" if outputs == 1 else str(curve.params.index[j][-1])
        if curve.factors[0]:
            places = np.arange(len(x)) + 0.15 * (j - (outputs - 1) / 2)
            ax.vlines(places, all_["lower"], all_["upper"], color=colour, alpha=0.35)
            ax.vlines(places, one["lower"], one["upper"], color=colour, linewidth=3)
            ax.plot(places, mean, "o", color=colour, label=name)
            ax.set_xticks(np.arange(len(x)), [str(value) for value in x])
            continue
        if outputs == 1:
            _bands(ax, x.astype(float), one, all_, f"{1 - alpha:.0%}")
        else:
            ax.fill_between(
                x.astype(float), one["lower"], one["upper"], color=colour, alpha=0.2
            )
        ax.plot(x, mean, color=colour, linewidth=2, label=name)
    if not curve.factors[0]:
        _rug(ax, curve.rug[0])
    ax.set_xlabel(str(curve.variables[0]))
    ax.set_ylabel(f"{curve.title}, {curve.results.info.response}")
    if outputs > 1 or not curve.factors[0]:
        ax.legend(frameon=False)
    clean(ax)
    return ax


def _bands(
    ax: Axes, x: Any, each: pd.DataFrame, band: pd.DataFrame, level: str
) -> None:
    """Shade the band of the whole curve lightly, the intervals of points darkly."""
    shades = ((band, 0.25, "whole curve"), (each, 0.6, "each point"))
    for bounds, strength, text in shades:
        ax.fill_between(
            x,
            bounds["lower"],
            bounds["upper"],
            color=BAND,
            alpha=strength,
            linewidth=0,
            label=f"{level}, {text}",
        )


def _rug(ax: Axes, values: Any) -> None:
    """Mark where the rows are, along the bottom."""
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
    return axes


def plot_partial_dependence(
    results: EnsembleResults,
    variable: str,
    *,
    alpha: float = 0.05,
    ax: Axes | None = None,
    **options: Any,
) -> Axes:
    """Draw the partial dependence on one predictor; options are of the method."""
    return plot_curve(
        results.partial_dependence(variable, **options), alpha=alpha, ax=ax
    )


def plot_average_effects(
    results: EnsembleResults,
    *,
    alpha: float = 0.05,
    ax: Axes | None = None,
    **options: Any,
) -> Axes:
    """Draw the average effects; options are of `avg_effects`."""
    return plot_averages(results.avg_effects(**options), alpha=alpha, ax=ax)
