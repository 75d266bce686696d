"""Tables of intervals: variance ratio and coverage, with Monte Carlo bounds."""

from dataclasses import replace
from itertools import product

import numpy as np
import pandas as pd

from vstatkit._typing import Floats
from vstatkit.studies.experiment import Record
from vstatkit.studies.measures import Intervals
from vstatkit.studies.metrics import (
    Ratio,
    binomial_interval,
    covered,
    true_variance,
    variance_ratio,
)
from vstatkit.studies.simulation import Arm

BOUNDS = 0.95
"""Level of the Monte Carlo bounds."""


def interval_frame(record: Record, arm: Arm, points: pd.Index) -> pd.DataFrame:
    """Tabulate what an `Intervals` arm measured.

    Parameters
    ----------
    record : dict of ndarray
        Results of a simulation, iterations first.
    arm : Arm
        One whose measure is `Intervals`.
    points : Index
        Names of the values.

    Returns
    -------
    DataFrame
        Tidy, with the columns of `coverage`, `ratio_spread` and `iterations`.
    """
    if not isinstance(arm.measure, Intervals):
        raise TypeError(f"arm {arm.label!r} does not measure intervals.")
    fields = ("mean", "variance", "half_width")
    mean, variance, half = (record[f"{arm.label}/{field}"] for field in fields)
    mean = mean[:, :, None, :]  # iterations, sizes, methods, points
    # Equal numbers do not vary, but their computed mean may be off by rounding.
    moving = np.where(np.ptp(mean, axis=0) == 0, 0.0, mean)
    inside = covered(moving, half)
    ratio = _finite_ratio(moving, variance)
    error = ratio.half_width(BOUNDS)
    bounds = binomial_interval(inside.sum(axis=0), len(mean), BOUNDS)
    rows = []
    cells = product(enumerate(arm.measure.methods), enumerate(arm.sizes))
    for (j, method), (i, size) in cells:
        for q, point in enumerate(points):
            at = (i, j, q)
            rows.append(
                {
                    "method": method.label,
                    "B": size,
                    "point": point,
                    "mean": mean[:, i, 0, q].mean(),
                    "true_variance": float(true_variance(moving[:, i, 0, q])),
                    "mean_variance": variance[:, i, j, q].mean(),
                    "ratio": ratio.value[at],
                    "ratio_lower": ratio.value[at] - error[at],
                    "ratio_upper": ratio.value[at] + error[at],
                    "coverage": inside[:, i, j, q].mean(),
                    "coverage_lower": bounds[0][at],
                    "coverage_upper": bounds[1][at],
                    "ratio_spread": ratio.spread[at],
                    "iterations": len(mean),
                }
            )
    return pd.DataFrame(rows)


def _finite_ratio(mean: Floats, variance: Floats) -> Ratio:
    """Divide estimated by true variances; NaN where the truth is zero."""
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = variance_ratio(np.broadcast_to(mean, variance.shape), variance)
    return replace(ratio, value=np.where(np.isinf(ratio.value), np.nan, ratio.value))


def ratio_of(frame: pd.DataFrame) -> Ratio:
    """Collect the ratios of a tidy table, with what their bounds need."""
    return Ratio(
        frame["ratio"].to_numpy(dtype=np.float64),
        frame["ratio_spread"].to_numpy(dtype=np.float64),
        int(frame["iterations"].iloc[0]),
    )
