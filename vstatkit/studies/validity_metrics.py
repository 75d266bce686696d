"""Performance measures of the validity study, with Monte Carlo errors."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
from scipy import stats

from vstatkit._typing import Floats
from vstatkit.studies.coverage_metrics import (
    normal_quantile,
    true_variance,
    variance_ratio,
)
from vstatkit.studies.dgps import DGPS
from vstatkit.studies.experiment import Record
from vstatkit.studies.validity_experiments import ALPHA, ESTIMATORS

COVERAGE_GOAL = (0.93, 0.975)
RATIO_GOAL = (0.95, 1.15)
NULL_GOAL = (0.035, 0.065)
MC_GOAL = 1.3  # factor between the stated and the realised Monte Carlo error
# Share of the cells (design, point) that must meet the goal for coverage.
CELLS_GOAL = 0.9
# Records by setting, number of learners or package; and by design.
Records = Mapping[tuple[str, str], Record]


def distance_to_centre(mean: Floats) -> Floats:
    """Estimate the distance of each estimate from the true centre.

    The mean of all estimates is closer to each of them than the true centre: with R
    estimates the distance is enlarged by `sqrt(R / (R - 1))`.
    """
    count = len(mean)
    return np.asarray((mean.mean(axis=0) - mean) * np.sqrt(count / (count - 1)))


def covers_centre(mean: Floats, lower: Floats, upper: Floats) -> Floats:
    """Return 1 where an interval covers the centre; NaN never covers.

    Estimates are (iterations, m), bounds (iterations, estimators, m).
    """
    centre = (mean + distance_to_centre(mean))[:, None, :]
    return np.asarray((lower <= centre) & (centre <= upper), dtype=np.float64)


def standard_error(shares: Floats) -> Floats:
    """Compute the standard error of a mean over iterations, the first axis."""
    return np.asarray(shares.std(axis=0, ddof=1) / np.sqrt(len(shares)))


def point_frame(records: Records) -> pd.DataFrame:
    """Tabulate every setting, design, estimator and query point."""
    frames = []
    for (setting, name), record in records.items():
        first = {"setting": setting, "law": name, "held": DGPS[name].held_out}
        frames.append(_tabulate_points(record, "estimator", list(ESTIMATORS), first))
    return pd.concat(frames, ignore_index=True)


def peer_frame(records: Records) -> pd.DataFrame:
    """Tabulate every package, design and query point."""
    frames = []
    for (peer, name), record in records.items():
        first = {"law": name, "held": DGPS[name].held_out}
        frame = _tabulate_points(record, "peer", [peer], first)
        frames.append(frame.assign(data_sets=len(record["mean"])))
    return pd.concat(frames, ignore_index=True)


def _tabulate_points(
    record: Record, column: str, labels: list[str], first: dict[str, Any]
) -> pd.DataFrame:
    """Tabulate every label and query point; `first` are constant columns."""
    mean, lower, upper = record["mean"], record["lower"], record["upper"]
    inside = covers_centre(mean, lower, upper)
    wide = np.broadcast_to(mean[:, None, :], lower.shape)
    with np.errstate(divide="ignore", invalid="ignore"):  # the variance may be zero
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
    n_estimators, m = lower.shape[1:]
    frame = pd.DataFrame(
        first
        | {
            column: np.repeat(labels, m),
            "point": np.tile(np.arange(m), n_estimators),
            "true_sd": np.tile(np.sqrt(true_variance(mean)), n_estimators),
        }
        | {name: values.ravel() for name, values in columns.items()}
    )
    return frame.replace([np.inf, -np.inf], np.nan)


def design_frame(records: Records) -> pd.DataFrame:
    """Tabulate tests of null predictors and bands of every setting and design.

    `dead` is the share of null predictors that are rejected, `shadows` the share of
    intervals that miss the forest's own mean effect of a proxy, and `band` the share
    of bands that cover at all of their points.
    """
    rows = []
    for (setting, name), record in records.items():
        shares = _shares(record)
        for e, label in enumerate(ESTIMATORS):
            row: dict[str, Any] = {
                "setting": setting,
                "law": name,
                "held": DGPS[name].held_out,
                "estimator": label,
                "data_sets": len(record["mean"]),
                "B": float(np.median(record["B"])),
            }
            for column, share in shares.items():
                row[column] = float(share[:, e].mean())
                row[f"{column}_se"] = float(standard_error(share[:, e]))
            rows.append(row)
    return pd.DataFrame(rows)


def _shares(record: Record) -> dict[str, Floats]:
    """Compute shares by (iteration, estimator); NaN if something was not recorded."""
    p, proxies = record.get("dead_p"), record.get("shadow_mean")
    nothing = np.full(record["lower"].shape[:2], np.nan)
    shares = {"dead": nothing, "shadows": nothing, "band": nothing}
    if p is not None and p.shape[2]:
        shares["dead"] = (p < ALPHA).mean(axis=2)
    if proxies is not None and proxies.shape[1]:
        inside = covers_centre(proxies, record["shadow_lower"], record["shadow_upper"])
        shares["shadows"] = 1 - inside.mean(axis=2)
    if "band_mean" in record:
        bounds = record["band_lower"], record["band_upper"]
        shares["band"] = covers_centre(record["band_mean"], *bounds).min(axis=2)
    return shares


def seeds_frame(records: Records) -> pd.DataFrame:
    """Compare the stated Monte Carlo error of the variance with the realised one."""
    frames = []
    for (B, name), record in records.items():
        realised = record["total"].std(axis=0, ddof=1)
        stated = np.sqrt((record["mc_se"] ** 2).mean(axis=0))
        n_estimators, m = realised.shape
        frame = pd.DataFrame(
            {
                "B": B,
                "law": name,
                "estimator": np.repeat(list(ESTIMATORS), m),
                "point": np.tile(np.arange(m), n_estimators),
                "seeds": len(record["total"]),
                "learners": float(np.median(record["B"])),
                "realised": realised.ravel(),
                "stated": stated.ravel(),
            }
        )
        # Relative standard error of the standard deviation of normal numbers.
        relative = 1 / np.sqrt(2 * (frame["seeds"] - 1))
        ratio = frame["realised"] / frame["stated"]
        frames.append(frame.assign(ratio=ratio, se=relative))
    return pd.concat(frames, ignore_index=True)


def chance_outside(data_sets: int) -> float:
    """Compute the chance that the coverage of an exact interval misses the goal."""
    low, high = COVERAGE_GOAL
    least = np.ceil(low * data_sets - 1e-9)
    most = np.floor(high * data_sets + 1e-9)
    covered = stats.binom(data_sets, 1 - ALPHA)
    return float(1 - (covered.cdf(most) - covered.cdf(least - 1)))
