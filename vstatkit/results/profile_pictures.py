"""Pictures of profiles: one predictor moves, the others stay at typical values."""

from collections.abc import Sequence
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes

from vstatkit.results.ensemble_results import EnsembleResults
from vstatkit.results.lines import Lines, draw_lines, draw_rug, ends
from vstatkit.results.prediction_pictures import outcome_text
from vstatkit.results.profiles import Profile, profile_of, profiled
from vstatkit.results.strokes import as_written, legend_above, new_axes

MOST_PANELS = 12
"""Most panels of one picture."""


def plot_profile(
    results: EnsembleResults,
    variable: str | Sequence[str] | None = None,
    *,
    n_points: int = 40,
    alpha: float = 0.05,
    ax: Any = None,
) -> Any:
    """Draw predictions along one predictor, the others at typical values.

    Numeric predictors have a curve between the smallest and the largest value that
    was observed, and marks where the observations are; factors have a point for each
    level, with its number of observations. Of several classes each has a curve, and
    intervals of its colour here and there along it.

    Parameters
    ----------
    results : EnsembleResults
        Of learners that predict.
    variable : str or sequence of str, optional
        A predictor; several have a panel each. All of them by default.
    n_points : int
        Points on a curve; predictors of fewer values are drawn at these.
    alpha : float
        One minus the coverage: of each point (dark band), of all (light band).
    ax : Axes or sequence of Axes, optional
        Where to draw; one for each predictor.

    Returns
    -------
    Axes, or ndarray of them where `variable` is no text
    """
    names = profiled(results, variable)
    axes = _panels(names, ax)
    for name, panel in zip(names, axes, strict=True):
        _draw_profile(panel, results, name, n_points, alpha)
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
    """Take the axes given, or make a panel for each name."""
    if ax is not None:
        axes = np.atleast_1d(np.asarray(ax, dtype=object)).ravel()
        if len(axes) != len(names):
            raise ValueError(
                f"`ax` must have axes for {len(names)} panels; got {len(axes)}."
            )
        return axes
    if len(names) > MOST_PANELS:
        raise ValueError(
            f"there are {len(names)} predictors, and a picture has room for "
            f"{MOST_PANELS}. Name some as `variable`."
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
    """Name what is drawn once for all panels, by the one that has most to name."""
    found = [panel.get_legend_handles_labels() for panel in axes]
    handles, labels = max(found, key=lambda one: len(one[0]))
    if len(handles) > 1:
        legend = axes[0].figure.legend(
            handles,
            labels,
            loc="outside upper left",
            ncols=6,
            frameon=False,
            fontsize="small",
        )
        as_written(legend.get_texts())


def _draw_profile(
    ax: Axes,
    results: EnsembleResults,
    name: str,
    n_points: int,
    alpha: float,
) -> None:
    profile = profile_of(results, name, n_points)
    prediction, count = profile.prediction, len(profile.x)
    mean = prediction.predicted_mean.to_numpy().reshape(count, -1)
    outputs = mean.shape[1]
    band = None
    if outputs == 1:
        band = ends(prediction.conf_int(alpha, simultaneous=True), 1)
    classes = results.predictor.classes if results.predictor is not None else None
    lines = Lines(
        x=_with_counts(profile) if profile.factor else profile.x,
        factor=profile.factor,
        mean=mean,
        each=ends(prediction.conf_int(alpha), outputs),
        band=band,
        names=tuple(map(str, classes or ())) if outputs > 1 else ("mean",),
        level=f"{1 - alpha:.0%}",
    )
    draw_lines(ax, lines)
    if not profile.factor and profile.observed is not None:
        draw_rug(ax, profile.observed)


def _with_counts(profile: Profile) -> list[str]:
    """Write levels, and how many observations each has."""
    if profile.observed is None:
        return [str(level) for level in profile.x]
    times = profile.observed.value_counts()
    return [f"{level}\nn = {times.get(level, 0):,}" for level in profile.x]
