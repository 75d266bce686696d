"""Figures of a report."""

import io
import warnings
from typing import Any

import numpy as np
import pandas as pd
from matplotlib import style
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator

from vstatkit.exceptions import MonteCarloWarning
from vstatkit.plots.registry import draw
from vstatkit.report.html_page import figure_markup, show_unseen
from vstatkit.report.tables import level_text
from vstatkit.results.ensemble_results import EnsembleResults
from vstatkit.results.summary_notes import MAX_ROWS

WIDTH = 5.6  # inches; text stays readable on a page 390 pixels wide
DPI = 200  # points an inch: sharp on paper, and still small
LONGEST = 40  # characters of a name in a figure; tables have all of them
# Influences, units by estimates, above which they are not drawn.
MOST_INFLUENCES = 2_000_000
MOST_CURVES = 4  # predictors whose curves are drawn: those with the largest effects


def _draw_figure(
    results: EnsembleResults,
    kind: str,
    description: str,
    caption: str,
    *,
    height: float = 3.4,
    **options: Any,
) -> str:
    """Draw a plot of results on new axes, and return the markup of the figure."""
    with style.context("default"), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph", UserWarning)  # a box is drawn
        # The page has a note on the Monte Carlo error.
        warnings.simplefilter("ignore", MonteCarloWarning)
        canvas = Figure(figsize=(WIDTH, height), layout="constrained")
        ax = canvas.subplots()
        draw(results, kind, ax, options)
        _shorten_names(ax)
        file = io.BytesIO()
        canvas.savefig(file, format="png", dpi=DPI, metadata={"Software": None})
    return figure_markup(file.getvalue(), description, caption)


def _shorten_names(ax: Axes) -> None:
    """Shorten long names, and take dollar signs literally."""
    for axis, longest in ((ax.xaxis, 56), (ax.yaxis, LONGEST)):
        axis.set_label_text(_shorten(axis.get_label_text(), longest))
        axis.label.set_parse_math(False)
        if isinstance(axis.get_major_locator(), FixedLocator):  # names
            names = [
                _shorten(tick.get_text(), LONGEST) for tick in axis.get_ticklabels()
            ]
            axis.set_ticks(axis.get_ticklocs(), names, parse_math=False)


def _shorten(text: str, longest: int) -> str:
    """Cut the middle out of a long text."""
    shown = show_unseen(" ".join(text.split()))
    half = (longest - 1) // 2
    return shown if len(shown) <= longest else f"{shown[:half]}…{shown[-half:]}"


def interval_figure(
    results: EnsembleResults, kind: str, rows: int, alpha: float
) -> str | None:
    """Draw the effects or the estimates; None if there are too many of them."""
    if rows > MAX_ROWS:
        return None
    level = level_text(alpha)
    return _draw_figure(
        results,
        kind,
        f"The {kind} as points with their {level} intervals, one line each; the table "
        "holds the same numbers.",
        f"The {kind} with their {level} intervals.",
        height=max(2.2, 1.0 + 0.3 * rows),
        alpha=alpha,
    )


def curve_figures(results: EnsembleResults, alpha: float) -> list[str]:
    """Draw predictions along the predictors that change them most."""
    level = level_text(alpha)
    return [
        _draw_figure(
            results,
            "profile",
            f"A curve of the prediction of {results.info.response} along {name}, with "
            f"a {level} band.",
            f"Prediction along {name}, the other predictors at typical values. The "
            f"dark band covers each point at {level}, the light one the whole curve.",
            variable=name,
            alpha=alpha,
        )
        for name in _largest_effects(results)
    ]


def _largest_effects(results: EnsembleResults) -> list[str]:
    """List the numeric predictors with the largest effects, if they have curves."""
    predictor, effects = results.predictor, results.effects
    if predictor is None or predictor.coding is None or effects is None:
        return []
    if isinstance(effects.index, pd.MultiIndex) or predictor.n_kept != results.B:
        return []
    numeric = [
        name
        for name in effects.index
        if name in results.info.ranges and name not in predictor.coding.categorical
    ]
    sizes = effects.loc[numeric, "estimate"].abs().to_numpy()
    order = np.argsort(-sizes, kind="stable")
    return [numeric[place] for place in order[:MOST_CURVES]]


def influence_figure(results: EnsembleResults) -> str | None:
    """Draw the influence of single units on the first estimate."""
    if len(results.labels) * results.design.n > MOST_INFLUENCES:
        return None
    return _draw_figure(
        results,
        "influence",
        "The influence of every unit on the first estimate against normal quantiles; "
        "points off the line are units that count for more than normal ones would.",
        "Influence on the first estimate against normal quantiles.",
    )


def convergence_figure(results: EnsembleResults) -> str | None:
    """Draw the first standard error against the number of learners."""
    if results.design.complete:
        return None
    return _draw_figure(
        results,
        "convergence",
        "The standard error of the first estimate as the number of learners grows, "
        "with a band for its Monte Carlo error.",
        "Standard error of the first estimate against the number of learners.",
    )
