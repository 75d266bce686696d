"""Pictures of a report: the results' own, drawn for a page."""

import io
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pandas as pd
from matplotlib import style
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator

from vstatkit.exceptions import MonteCarloWarning
from vstatkit.plots.registry import draw
from vstatkit.report.html_markup import Picture, visible
from vstatkit.report.words import level_text
from vstatkit.results.ensemble_results import EnsembleResults
from vstatkit.results.summary_notes import MAX_ROWS

WIDTH = 5.6
"""Inches; letters stay readable where a page is 390 pixels wide."""

DPI = 200
"""Points an inch: sharp on paper, and still small."""

LONGEST = 40
"""Letters of a name in a picture; tables have all of them."""

MOST_INFLUENCES = 2_000_000
"""Influences, units by estimates, beyond which they are not drawn."""

MOST_CURVES = 4
"""Predictors whose curves are drawn: those with the largest effects."""


@contextmanager
def _page_style() -> Iterator[None]:
    """Draw alike whatever a session has set, and warn of nothing the page says."""
    with style.context("default"), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph", UserWarning)  # a box is drawn
        warnings.simplefilter("ignore", MonteCarloWarning)
        yield


def picture(
    draw_on: Callable[[Axes], Any], height: float, shows: str, caption: str
) -> Picture:
    """Draw on new axes, and keep what was drawn as a PNG file."""
    with _page_style():
        figure = Figure(figsize=(WIDTH, height), layout="constrained")
        ax = figure.subplots()
        draw_on(ax)
        _tame(ax)
        file = io.BytesIO()
        figure.savefig(file, format="png", dpi=DPI, metadata={"Software": None})
    return Picture(file.getvalue(), shows, caption)


def _tame(ax: Axes) -> None:
    """Cut long names, so that they leave room, and take their dollars literally."""
    for axis, longest in ((ax.xaxis, 56), (ax.yaxis, LONGEST)):
        axis.set_label_text(_cut(axis.get_label_text(), longest))
        axis.label.set_parse_math(False)
        if isinstance(axis.get_major_locator(), FixedLocator):  # names
            names = [_cut(one.get_text(), LONGEST) for one in axis.get_ticklabels()]
            axis.set_ticks(axis.get_ticklocs(), names, parse_math=False)


def _cut(text: str, longest: int) -> str:
    """Cut the middle out of a long text.

    Examples
    --------
    >>> _cut("abcdefghij", 7)
    'abc…hij'
    """
    seen = visible(" ".join(text.split()))
    half = (longest - 1) // 2
    return seen if len(seen) <= longest else f"{seen[:half]}…{seen[-half:]}"


def _height(rows: int) -> float:
    return max(2.2, 1.0 + 0.3 * rows)


def interval_picture(
    results: EnsembleResults, kind: str, rows: int, alpha: float
) -> Picture | None:
    """Draw the effects or the estimates; None where there are too many of them."""
    if rows > MAX_ROWS:
        return None
    level = level_text(alpha)
    return picture(
        lambda ax: draw(results, kind, ax, {"alpha": alpha}),
        _height(rows),
        f"The {kind} as points with their {level} intervals, one line each; the table "
        "holds the same numbers.",
        f"The {kind} with their {level} intervals.",
    )


def curve_pictures(results: EnsembleResults, alpha: float) -> list[Picture]:
    """Draw predictions along the predictors that change them most."""
    return [_curve(results, name, alpha) for name in _curved(results)]


def _curve(results: EnsembleResults, name: str, alpha: float) -> Picture:
    level = level_text(alpha)
    return picture(
        lambda ax: draw(results, "profile", ax, {"variable": name, "alpha": alpha}),
        3.4,
        f"A curve of the prediction of {results.info.response} along {name}, with "
        f"a {level} band.",
        f"Prediction along {name}, the other predictors at typical values. The dark "
        f"band covers each point at {level}, the light one the whole curve.",
    )


def _curved(results: EnsembleResults) -> list[str]:
    """Name the numeric predictors with the largest effects, where they have curves."""
    predictor, effects = results.predictor, results.effects
    if predictor is None or predictor.coding is None or effects is None:
        return []
    one_column = not isinstance(effects.index, pd.MultiIndex)
    if not one_column or predictor.n_kept != results.B:
        return []
    numeric = [
        name for name in effects.index if name not in predictor.coding.categorical
    ]
    sizes = effects["estimate"].abs().loc[numeric]
    known = [name for name in numeric if name in results.info.ranges]
    order = np.argsort(-sizes.loc[known].to_numpy(), kind="stable")
    return [known[place] for place in order[:MOST_CURVES]]


def influence_picture(results: EnsembleResults) -> Picture | None:
    """Draw the influence of single units on the first estimate."""
    if len(results.labels) * results.design.n > MOST_INFLUENCES:
        return None
    return picture(
        lambda ax: draw(results, "influence", ax, {}),
        3.4,
        "The influence of every unit on the first estimate against normal quantiles; "
        "points off the line are units that count for more than normal ones would.",
        "Influence on the first estimate against normal quantiles.",
    )


def convergence_picture(results: EnsembleResults) -> Picture | None:
    """Draw the first standard error against the number of learners."""
    if results.design.complete:
        return None
    return picture(
        lambda ax: draw(results, "convergence", ax, {}),
        3.4,
        "The standard error of the first estimate as the number of learners grows, "
        "with a band for its Monte Carlo error.",
        "Standard error of the first estimate against the number of learners.",
    )
