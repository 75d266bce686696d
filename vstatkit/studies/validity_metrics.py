"""Metrics of the validity study, with Monte Carlo errors."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
from scipy import stats

from vstatkit._typing import Floats
from vstatkit.studies.dgps import LAWS
from vstatkit.studies.experiment import Record
from vstatkit.studies.metrics import normal_quantile, true_variance, variance_ratio
from vstatkit.studies.validity import ALPHA, ESTIMATORS

COVERAGE_GOAL = (0.93, 0.975)
RATIO_GOAL = (0.95, 1.15)
DEAD_GOAL = (0.035, 0.065)
MC_GOAL = 1.3
"""Factor between the stated and the realised Monte Carlo error."""

CELLS_GOAL = 0.9
"""Share of the (law, point) cells that must meet the goal for coverage."""

Records = Mapping[tuple[str, str], Record]
"""Records by (setting, law)."""


def held_distance(mean: Floats) -> Floats:
    """Estimated distance of each estimate from the true centre.

    The centre is the mean of all estimates, and so nearer to each of them than the
    truth: of R estimates the distance is enlarged by `sqrt(R / (R - 1))`.
    """
    count = len(mean)
    return np.asarray((mean.mean(axis=0) - mean) * np.sqrt(count / (count - 1)))


def covers(mean: Floats, lower: Floats, upper: Floats) -> Floats:
    """Tell which intervals cover the centre; NaN covers nothing.

    Parameters
    ----------
    mean : ndarray of shape (iterations, m)
        Estimates.
    lower, upper : ndarray of shape (iterations, E, m)
        Bounds, by estimator.
    """
    centre = (mean + held_distance(mean))[:, None, :]
    return np.asarray((lower <= centre) & (centre <= upper), dtype=np.float64)


def standard_error(shares: Floats) -> Floats:
    """Compute the standard error of a mean over iterations, the first axis."""
    return np.asarray(shares.std(axis=0, ddof=1) / np.sqrt(len(shares)))


def point_frame(records: Records) -> pd.DataFrame:
    """Tabulate every setting, law, estimator and query point."""
    frames = []
    for (setting, law), record in records.items():
        one = _points(record, list(ESTIMATORS))
        one.insert(0, "setting", setting)
        one.insert(1, "law", law)
        one.insert(2, "held", LAWS[law].held)
        frames.append(one)
    return pd.concat(frames, ignore_index=True)


def peer_frame(records: Records) -> pd.DataFrame:
    """Tabulate every peer, law and query point; records by (peer, law)."""
    frames = []
    for (peer, law), record in records.items():
        one = _points(record, [peer]).rename(columns={"estimator": "peer"})
        one.insert(0, "law", law)
        one.insert(1, "held", LAWS[law].held)
        frames.append(one.assign(data_sets=len(record["mean"])))
    return pd.concat(frames, ignore_index=True)


def _points(record: Record, labels: list[str]) -> pd.DataFrame:
    mean, lower, upper = record["mean"], record["lower"], record["upper"]
    inside = covers(mean, lower, upper)
    wide = np.broadcast_to(mean[:, None, :], lower.shape)
    with np.errstate(divide="ignore", invalid="ignore"):  # the truth may be zero
        ratio = variance_ratio(wide, record["variance"])
        ideal = 2 * normal_quantile(1 - ALPHA) * np.sqrt(true_variance(mean))
        width = (upper - lower) / ideal
    columns = {
        "ratio": ratio.value,
        "ratio_se": ratio.spread / np.sqrt(ratio.iterations),
        "coverage": inside.mean(axis=0),
        "coverage_se": standard_error(inside),
        "mean_width": width.mean(axis=0),
        "median_width": np.median(width, axis=0),
    }
    shape = lower.shape[1:]
    frame = pd.DataFrame(
        {
            "estimator": np.repeat(labels, shape[1]),
            "point": np.tile(np.arange(shape[1]), shape[0]),
            "true_sd": np.tile(np.sqrt(true_variance(mean)), shape[0]),
        }
        | {name: values.ravel() for name, values in columns.items()}
    )
    return frame.replace([np.inf, -np.inf], np.nan)


def law_frame(records: Records) -> pd.DataFrame:
    """Tabulate what there is one of per law: tests of idle predictors, and bands."""
    rows = []
    for (setting, law), record in records.items():
        for e, label in enumerate(ESTIMATORS):
            row: dict[str, Any] = {
                "setting": setting,
                "law": law,
                "held": LAWS[law].held,
                "estimator": label,
                "data_sets": len(record["mean"]),
                "B": float(np.median(record["B"])),
            }
            rows.append(row | _dead(record, e) | _shadows(record, e) | _band(record, e))
    return pd.DataFrame(rows)


def _summary(name: str, shares: Floats) -> dict[str, float]:
    return {name: float(shares.mean()), f"{name}_se": float(standard_error(shares))}


def _dead(record: Record, e: int) -> dict[str, float]:
    """Compute the share of tests that reject a predictor that does nothing."""
    p = record.get("dead_p")
    if p is None or p.shape[2] == 0:
        return {"dead": np.nan, "dead_se": np.nan}
    return _summary("dead", (p[:, e] < ALPHA).mean(axis=1))


def _shadows(record: Record, e: int) -> dict[str, float]:
    """Compute the share of intervals that miss the forest's own mean effect."""
    mean = record.get("shadow_mean")
    if mean is None or mean.shape[1] == 0:
        return {"shadows": np.nan, "shadows_se": np.nan}
    inside = covers(mean, record["shadow_lower"], record["shadow_upper"])
    return _summary("shadows", 1 - inside[:, e].mean(axis=1))


def _band(record: Record, e: int) -> dict[str, float]:
    """Compute the share of bands that hold at all their points."""
    if "band_mean" not in record:
        return {"band": np.nan, "band_se": np.nan}
    inside = covers(record["band_mean"], record["band_lower"], record["band_upper"])
    return _summary("band", inside[:, e].min(axis=1))


def seeds_frame(records: Mapping[tuple[str, str], Record]) -> pd.DataFrame:
    """Compare the stated Monte Carlo error of the variance with the realised one.

    Parameters
    ----------
    records : mapping
        Records of `Seeds` by (B, law).
    """
    frames = []
    for (B, law), record in records.items():
        realised = record["total"].std(axis=0, ddof=1)
        stated = np.sqrt((record["mc_se"] ** 2).mean(axis=0))
        shape = realised.shape
        one = pd.DataFrame(
            {
                "B": B,
                "law": law,
                "estimator": np.repeat(list(ESTIMATORS), shape[1]),
                "point": np.tile(np.arange(shape[1]), shape[0]),
                "seeds": len(record["total"]),
                "learners": float(np.median(record["B"])),
                "realised": realised.ravel(),
                "stated": stated.ravel(),
            }
        )
        # The spread of a standard deviation of normal numbers, relative to it.
        relative = 1 / np.sqrt(2 * (one["seeds"] - 1))
        frames.append(one.assign(ratio=one["realised"] / one["stated"], se=relative))
    return pd.concat(frames, ignore_index=True)


def within(values: pd.Series, goal: tuple[float, float]) -> pd.Series:
    """Tell which numbers lie in a closed range; those that are missing do not."""
    return values.between(*goal)


def chance_outside(data_sets: int) -> float:
    """Chance that an exact interval's share among data sets misses the goal."""
    low, high = COVERAGE_GOAL
    least = np.ceil(low * data_sets - 1e-9)
    most = np.floor(high * data_sets + 1e-9)
    law = stats.binom(data_sets, 1 - ALPHA)
    return float(1 - (law.cdf(most) - law.cdf(least - 1)))
