"""Averages and curves: whether their standard errors and bands hold.

    python benchmarks/averages.py [data sets] [design ...] [--fresh]

Of every design data sets of 200 rows or so are drawn, and a forest of 2,000 trees is
fitted to each (the default grows 1,800 to 4,800 of them there). The mean estimated
variance is divided by the true one, over data sets, of

* averages over 200 rows that never change, for these rows (`se="sample"`),
* averages over the training rows, for the population (`se="population"`), all of
  them and by the halves of a predictor,
* averages over 100 fresh rows, for the population,

each of predictions and of the effect of a predictor. Bands of a partial dependence
are checked jointly, over 50 points for 50 rows that never change, and over 10 points
for the population of the training rows. `linear20` and `exclusive` were set aside
until all was settled; `jumps` was, before the study was repeated. With `--fresh` the
averages over fresh rows are taken alone, on the same data sets.
"""

import argparse
import time
import warnings
from dataclasses import replace

import numpy as np
import pandas as pd

import vstatkit as vs
from vstatkit.results.dependence_curves import Curve
from vstatkit.results.ensemble_results import EnsembleResults
from vstatkit.studies import dgps as parts
from vstatkit.studies.dgps import DGP, DGPS

B, N, POINTS = 2000, 200, 50

LINE = DGP(
    "line",
    "two normal predictors correlated at 0.7, one at work",
    lambda rng, n: pd.DataFrame(
        rng.multivariate_normal([0, 0], [[1, 0.7], [0.7, 1]], n), columns=["x1", "x2"]
    ),
    lambda X: 2 * X["x1"].to_numpy(),
    parts.add_normal_noise,
    pd.DataFrame({"x1": [0.0], "x2": [0.0]}),
)
"""A design of our own, simple enough to see through."""

NAMES = ("line", "mars", "binary", "clusters", "jumps")
ASIDE = ("linear20", "exclusive")
FRESH = "population, fresh rows"


def dgp_of(name: str) -> DGP:
    dgp = LINE if name == "line" else DGPS[name]
    return dgp if dgp.groups else replace(dgp, n=N)


def halved(frame: pd.DataFrame, middle: float) -> pd.DataFrame:
    return frame.assign(half=np.where(frame["x1"] > middle, "high", "low"))


class Setting:
    """What is the same for all data sets of a design."""

    def __init__(self, name: str) -> None:
        self.dgp = dgp_of(name)
        fixed = self.dgp.predictors(np.random.default_rng(1), N)
        many = self.dgp.predictors(np.random.default_rng(2), 5000)
        self.middle = float(many["x1"].median())
        self.fixed = halved(fixed, self.middle)
        ends = many["x1"].quantile([0.1, 0.9]).to_list()
        self.move = {"x1": tuple(ends)}
        self.grid = many["x1"].quantile(np.linspace(0.05, 0.95, POINTS)).to_numpy()
        names = [one for one in fixed if one != self.dgp.groups]
        self.formula = "y ~ " + " + ".join(names)

    def fitted(self, seed: int) -> tuple[EnsembleResults, pd.DataFrame]:
        """Fit one data set, and draw fresh rows."""
        rng = np.random.default_rng([11, seed])
        data = halved(self.dgp(rng), self.middle)
        fresh = self.dgp.predictors(rng, 100)
        res = vs.fit(
            self.formula,
            data,
            B=B,
            rng=seed,
            n_jobs=1,
            oob=False,
            progress=False,
            groups=self.dgp.groups,
        )
        return res, fresh

    def fresh(self, seed: int) -> dict[str, pd.DataFrame]:
        """Tabulate averages over fresh rows alone; clusters have none."""
        if self.dgp.groups is not None:
            return {}
        res, fresh = self.fitted(seed)
        return {FRESH: res.avg_predictions(fresh, se="population").frame}

    def tables(self, seed: int) -> tuple[dict[str, pd.DataFrame], dict[str, Curve]]:
        """Fit one data set; tabulate its averages, and draw its curves."""
        res, fresh = self.fitted(seed)
        tables = {
            "sample": res.avg_predictions(self.fixed),
            "sample, effect": res.avg_effects(self.move, self.fixed),
            "population": res.avg_predictions(se="population"),
            "population, by": res.avg_predictions(by="half", se="population"),
            "population, effect": res.avg_effects(self.move, se="population"),
        }
        if self.dgp.groups is None:
            tables[FRESH] = res.avg_predictions(fresh, se="population")
        curves = {
            "curve, sample": res.partial_dependence(
                "x1", data=self.fixed.iloc[::4], grid=self.grid
            ),
            "curve, population": res.partial_dependence(
                "x1", grid=self.grid[::5], se="population"
            ),
        }
        return {key: one.frame for key, one in tables.items()}, curves


def band_numbers(curve: Curve) -> tuple[np.ndarray, ...]:
    bounds = curve.conf_int(simultaneous=True).to_numpy()
    return curve.params.to_numpy(), bounds[:, 0], bounds[:, 1], curve.bse.to_numpy()


def measured(name: str, iterations: int, fresh: bool) -> list[pd.DataFrame]:
    setting = Setting(name)
    found: dict[str, list[np.ndarray]] = {}
    bands: dict[str, list[tuple[np.ndarray, ...]]] = {}
    for seed in range(iterations):
        tables, curves = (setting.fresh(seed), {}) if fresh else setting.tables(seed)
        for key, frame in tables.items():
            columns = ["estimate", "std_error", "ci_lower", "ci_upper"]
            found.setdefault(key, []).append(frame[columns].to_numpy())
        for key, curve in curves.items():
            bands.setdefault(key, []).append(band_numbers(curve))
    rows = [row(name, key, np.stack(one)) for key, one in found.items()]
    joint = [band_row(name, key, one) for key, one in bands.items()]
    return [pd.DataFrame(one) for one in (rows, joint) if one]


def row(name: str, key: str, found: np.ndarray) -> dict[str, object]:
    estimate, error, low, high = np.moveaxis(found, 2, 0)
    true, R = estimate.var(axis=0, ddof=1), len(estimate)
    inside = (low <= estimate.mean(axis=0)) & (estimate.mean(axis=0) <= high)
    squares = (estimate - estimate.mean(axis=0)) ** 2
    ratios = (error**2).mean(axis=0) / true
    noise = np.hypot(
        squares.std(axis=0) / true, (error**2).std(axis=0) / (error**2).mean(axis=0)
    ) / np.sqrt(R)
    return {
        "law": name,
        "what": key,
        "ratio": ratios.mean(),
        "mc": (ratios * noise).mean(),
        "coverage": inside.mean(),
    }


def band_row(
    name: str, key: str, found: list[tuple[np.ndarray, ...]]
) -> dict[str, object]:
    estimate, low, high, error = (np.stack(one) for one in zip(*found, strict=True))
    R = len(estimate)
    target = (estimate.sum(axis=0) - estimate) / (R - 1)  # by the other data sets
    held = ((low <= target) & (target <= high)).all(axis=1)
    ratio = (error**2).mean(axis=0).sum() / estimate.var(axis=0, ddof=1).sum()
    return {
        "law": name,
        "what": key,
        "joint": held.mean(),
        "mc": np.sqrt(held.mean() * (1 - held.mean()) / R),
        "ratio": ratio,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description="Averages and curves.")
    parser.add_argument("iterations", nargs="?", type=int, default=200)
    parser.add_argument("designs", nargs="*", default=(*NAMES, *ASIDE))
    parser.add_argument("--fresh", action="store_true")
    asked = parser.parse_args()
    warnings.simplefilter("ignore")
    print(f"{asked.iterations} data sets of each design, B = {B}")
    for name in asked.designs:
        started = time.perf_counter()
        for table in measured(name, asked.iterations, asked.fresh):
            print(table.round(3).to_string(index=False), flush=True)
        print(f"{time.perf_counter() - started:.0f} s", flush=True)


if __name__ == "__main__":
    main()
