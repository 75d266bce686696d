"""Table 2: normality, variance ratio and coverage on the MARS function."""

import numpy as np
import pandas as pd

from vstatkit._typing import Floats
from vstatkit.studies.dgps import Mars
from vstatkit.studies.experiment import Draw, Record, iteration_stream
from vstatkit.studies.measures import Intervals, Method
from vstatkit.studies.metrics import (
    LEVEL,
    PRINTED_ITERATIONS,
    interval_frame,
    normal_quantile,
    normality_bound,
    normality_statistic,
    proportion_bound,
    ratio_of,
)
from vstatkit.studies.report import read_printed
from vstatkit.studies.simulation import Arm, Scale, Simulation

ITERATIONS = 500
NOBS = 500
SIZES = (500, 1000, 2500, 5000)
SUBSAMPLES = (100, 250, 500)
POINTS = pd.Index(["p1", "p2", "p3"])

IJ = Method("IJ", "ij", monte_carlo=False)
FORMULA = Method("corrected-V", "corrected_v")
DISTINCT = Method("distinct", "distinct_within", monte_carlo=False)
VSTATKIT = Method("vstatkit", "hoeffding", interval="t")

CANDIDATES = (
    FORMULA,
    Method("corrected-V without zeta_k/B", "corrected_v", monte_carlo=False),
    DISTINCT,
    Method("distinct with zeta_k/B", "distinct_within"),
    Method("distinct from IJ", "distinct_from_ij", monte_carlo=False),
    Method("distinct from IJ with zeta_k/B", "distinct_from_ij"),
    Method("distinct, own size", "distinct_within_own_size", monte_carlo=False),
    Method("distinct throughout", "distinct_throughout", monte_carlo=False),
)
"""Readings of the correction, for the column "corrected"."""

METHODS = (IJ, VSTATKIT, *CANDIDATES)

PRINTED_COLUMN = {
    IJ.label: "original",
    FORMULA.label: "corrected",
    DISTINCT.label: "corrected",
    VSTATKIT.label: "none",
}
"""The printed column next to which a method is shown; ours has none."""


def simulation(seed: int, scale: Scale | None = None) -> Simulation:
    """Declare the experiment.

    Parameters
    ----------
    seed : int
        Seed of the study; the points p2 and p3, which the paper does not print,
        are drawn from it.
    scale : Scale, optional
        A smaller study of the same layout.
    """
    scale = scale or Scale()
    drawn = iteration_stream(seed, "table2", 0, Draw.POINTS).uniform(size=(2, 5))
    points = np.concatenate([np.full((1, 5), 0.5), drawn])
    sizes = tuple(B // scale.learners for B in SIZES)
    return Simulation(
        name="table2" if scale == Scale() else "table2-quick",
        generator=Mars(NOBS // scale.units),
        formula="y ~ .",
        at=pd.DataFrame(points, POINTS, [f"x{j}" for j in range(1, 6)]),
        kernel="tree",  # all features are tried at each split, as in print
        arms=tuple(
            Arm(f"k={k}", k // scale.units, sizes, Intervals(METHODS))
            for k in SUBSAMPLES
        ),
    )


def measured_frame(record: Record, study: Simulation) -> pd.DataFrame:
    """Tabulate all methods, with the paper's k and B as keys."""
    frames = []
    for k, arm in zip(SUBSAMPLES, study.arms, strict=True):
        frame = interval_frame(record, arm, POINTS)
        frame["B"] = frame["B"].map(dict(zip(arm.sizes, SIZES, strict=True)))
        frames.append(frame.assign(k=k))
    return pd.concat(frames, ignore_index=True)


def normality_frame(record: Record, study: Simulation) -> pd.DataFrame:
    """Test the estimates for normality, cell by cell."""
    rows = []
    for k, arm in zip(SUBSAMPLES, study.arms, strict=True):
        mean = record[f"{arm.label}/mean"]
        for i, B in enumerate(SIZES):
            statistics = normality_statistic(mean[:, i, :])
            rows += [
                {"k": k, "B": B, "point": point, "measured": value}
                for point, value in zip(POINTS, statistics, strict=True)
            ]
    return pd.DataFrame(rows)


def compare(record: Record, study: Simulation) -> pd.DataFrame:
    """Compare every measured number with the printed one.

    Returns
    -------
    DataFrame
        Columns `quantity`, `method`, `k`, `B`, `point`, `printed`, `measured`,
        `difference`, `bound` (of the difference of two studies of the same thing,
        at the level 0.99) and `beyond`, where the difference exceeds it.
    """
    printed = read_printed("table2")
    keys = ["k", "B", "point"]
    normality = normality_frame(record, study).merge(printed, on=keys)
    parts = [
        normality[[*keys, "measured"]].assign(
            quantity="normality",
            method="omnibus",
            printed=normality["normality_statistic"],
            bound=normality_bound(),
        )
    ]
    measured = measured_frame(record, study)
    printed = printed.assign(ratio_none=np.nan, coverage_none=np.nan)
    for method, column in PRINTED_COLUMN.items():
        one = measured[measured["method"] == method].merge(printed, on=keys)
        ratio = one[[*keys, "method"]].assign(
            quantity="ratio",
            printed=one[f"ratio_{column}"],
            measured=one["ratio"],
            bound=ratio_of(one).half_width(LEVEL, PRINTED_ITERATIONS),
        )
        share = one[f"coverage_{column}"] / 100
        bound = proportion_bound(
            one["coverage"].to_numpy(dtype=np.float64),
            int(one["iterations"].iloc[0]),
            share.to_numpy(dtype=np.float64),
            PRINTED_ITERATIONS,
        )
        coverage = one[[*keys, "method"]].assign(
            quantity="coverage",
            printed=one[f"coverage_{column}"],
            measured=100 * one["coverage"],
            bound=100 * bound,
        )
        parts += [ratio, coverage]
    table = pd.concat(parts, ignore_index=True)
    table["difference"] = table["measured"] - table["printed"]
    table["beyond"] = table["difference"].abs() > table["bound"]
    order = ["quantity", "method", *keys, "printed", "measured", "difference"]
    return table[[*order, "bound", "beyond"]]


def candidates_frame(
    record: Record, study: Simulation, sizes: tuple[int, ...] = SIZES
) -> pd.DataFrame:
    """Compare the readings of the correction with print, at p1.

    Compared is the mean corrected variance over the mean IJ variance: print's own
    quotient of the two does not depend on the true variance, so its sampling
    error is far smaller than that of a variance ratio.

    Parameters
    ----------
    record : dict of ndarray
        Results, iterations first.
    study : Simulation
        What they are results of.
    sizes : tuple of int
        The paper's B that the arms' sizes stand for.

    Returns
    -------
    DataFrame
        For each candidate and cell: `printed` and `measured` quotient,
        `difference`, `bound` and `beyond`.
    """
    printed = read_printed("table2")
    printed = printed[printed["point"] == "p1"].set_index(["k", "B"])
    target = printed["ratio_corrected"] / printed["ratio_original"]
    rows = []
    for k, arm in zip(SUBSAMPLES, study.arms, strict=True):
        variance = record[f"{arm.label}/variance"][..., 0]  # iterations, sizes, methods
        for i, B in enumerate(sizes):
            raw = variance[:, i, METHODS.index(IJ)]
            for method in CANDIDATES:
                corrected = variance[:, i, METHODS.index(method)]
                value, spread = _quotient(corrected, raw)
                share = 1 / len(raw) + 1 / PRINTED_ITERATIONS
                rows.append(
                    {
                        "candidate": method.label,
                        "k": k,
                        "B": B,
                        "printed": float(target[(k, B)]),
                        "measured": value,
                        "bound": normal_quantile(LEVEL) * spread * np.sqrt(share),
                    }
                )
    frame = pd.DataFrame(rows)
    frame["difference"] = frame["measured"] - frame["printed"]
    frame["beyond"] = frame["difference"].abs() > frame["bound"]
    return frame


def _quotient(one: Floats, two: Floats) -> tuple[float, float]:
    """Quotient of two means, and the spread of an iteration's share in it."""
    value = float(one.mean() / two.mean())
    return value, float(np.std(one - value * two, ddof=1) / two.mean())


def rank_candidates(frame: pd.DataFrame) -> pd.DataFrame:
    """Sort the candidates by their root mean square deviation from print."""
    relative = frame["difference"] / frame["printed"]
    grouped = frame.assign(relative=relative).groupby("candidate", sort=False)
    table = pd.DataFrame(
        {
            "rms": grouped["relative"].agg(lambda x: float(np.sqrt(np.mean(x**2)))),
            "largest": grouped["relative"].agg(lambda x: float(np.abs(x).max())),
            "beyond": grouped["beyond"].sum(),
            "cells": grouped.size(),
        }
    )
    return table.sort_values("rms").reset_index()
