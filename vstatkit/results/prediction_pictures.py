"""Pictures of predictions."""

from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from vstatkit.results.ensemble_results import EnsembleResults
from vstatkit.results.prediction_results import PredictionResults
from vstatkit.results.strokes import (
    ACCENT,
    BAND,
    POINT,
    clean,
    legend_above,
    new_axes,
    outcome_stroke,
)
from vstatkit.results.tables import label_texts

MOST_NAMED = 40
"""Most rows that are named beside their predictions."""


def outcome_text(results: EnsembleResults) -> str:
    """Say what is predicted: the response, or probabilities of its classes."""
    classes = None if results.predictor is None else results.predictor.classes
    response = results.info.response
    return response if classes is None or len(classes) <= 2 else f"P({response})"


def plot_prediction(
    prediction: PredictionResults, *, alpha: float = 0.05, ax: Axes | None = None
) -> Axes:
    """Draw predictions with their intervals; many of them in order of size.

    Thick lines are confidence intervals of the means, thin ones hold a new
    observation where that is known. Of several classes each has its colour.
    """
    results = prediction.results
    frame = prediction.summary_frame(alpha)
    classes = None if results.predictor is None else results.predictor.classes
    several = classes is not None and len(classes) > 2
    outputs = len(classes) if several and classes is not None else 1
    rows = len(frame) // outputs
    named = rows <= MOST_NAMED
    ax = new_axes(ax, rows * (1 + outputs // 4) if named else 12)
    order = np.arange(rows)
    if not named and not several:
        order = np.argsort(frame["mean"].to_numpy(), kind="stable")
    places = np.arange(rows)[::-1] if named else np.arange(rows)
    for j in range(outputs):
        part = frame.iloc[j::outputs].iloc[order]
        shift = 0.6 / outputs * ((outputs - 1) / 2 - j)
        label = str(classes[j]) if several and classes is not None else None
        _draw_rows(ax, part, places + shift, f"{1 - alpha:.0%}", (j, label))
    if named:
        labels = frame.index[::outputs]
        if several:
            labels = labels.get_level_values(0)
        ax.set_yticks(places, label_texts(labels))
        ax.set_ylim(-0.6, rows - 0.4)
    else:
        ax.set_ylabel("rows, in their order" if several else "rows, from low to high")
    ax.set_xlabel(outcome_text(results))
    legend_above(ax)
    clean(ax)
    return ax


def _draw_rows(
    ax: Axes, part: pd.DataFrame, places: Any, level: str, outcome: tuple[int, Any]
) -> None:
    """Draw one interval a row, the mean in it, and limits of observations beneath."""
    few = len(part) <= MOST_NAMED
    number, name = outcome
    colour = POINT if name is None else outcome_stroke(number)[0]
    if "obs_ci_lower" in part:
        ax.hlines(
            places,
            part["obs_ci_lower"],
            part["obs_ci_upper"],
            color=BAND,
            linewidth=1.2 if few else 0.5,
            label=f"{level}, a new observation",
        )
    ax.hlines(
        places,
        part["mean_ci_lower"],
        part["mean_ci_upper"],
        color=colour,
        linewidth=3 if few else 1,
        label=f"{level}, the mean" if name is None else "_",
    )
    ax.plot(
        part["mean"],
        places,
        "o",
        color=ACCENT if name is None and not few else colour,
        markersize=5 if few else 1.5,
        label="mean" if name is None else name,
    )
