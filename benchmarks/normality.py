"""Verdicts on normality, beside the coverage that intervals really have.

    python benchmarks/normality.py [data sets] [case ...]

Data sets are drawn from designs, and of each a statistic is estimated with its interval
of 95 %: the mean of skewed numbers, or the predictions of 3,000 trees on 100 rows at
the first three query points of a design of the validity study. `normality_check`
estimates from every data set how often its interval misses on either side. The means of
these estimates are printed beside the share of intervals that lie above and below the
mean of all estimates. The designs were named before any was run.
"""

import sys
import time
import warnings
from collections import Counter
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pandas as pd

import vstatkit as vs
from vstatkit.studies.dgps import DGPS

B, ROWS, POINTS = 3000, 100, 3

Draw = Callable[[np.random.Generator], vs.EnsembleResults]


def mean_of(draw: Callable[..., np.ndarray], n: int) -> Draw:
    """Estimate the mean of n numbers."""

    def fitted(rng: np.random.Generator) -> vs.EnsembleResults:
        seed = int(rng.integers(2**31))
        return vs.statistic("mean", draw(rng, n), k=n // 4, B=B, rng=seed, n_jobs=1)

    return fitted


def forest_on(name: str) -> Draw:
    """Predict three points with a forest."""
    dgp = DGPS[name]

    def fitted(rng: np.random.Generator) -> vs.EnsembleResults:
        return vs.fit(
            dgp.formula,
            replace(dgp, n=ROWS)(rng),
            B=B,
            at=dgp.points.head(POINTS),
            rng=int(rng.integers(2**31)),
            n_jobs=1,
            oob=False,
            progress=False,
        )

    return fitted


CASES: dict[str, Draw] = {
    "mean, normal, n = 40": mean_of(lambda rng, n: rng.normal(size=n), 40),
    "mean, exponential, n = 40": mean_of(lambda rng, n: rng.exponential(size=n), 40),
    "mean, exponential, n = 200": mean_of(lambda rng, n: rng.exponential(size=n), 200),
    "mean, lognormal, n = 40": mean_of(lambda rng, n: rng.lognormal(size=n), 40),
    "mean, lognormal, n = 200": mean_of(lambda rng, n: rng.lognormal(size=n), 200),
    "forest, noise": forest_on("noise"),
    "forest, heavy": forest_on("heavy"),
    "forest, lognormal": forest_on("lognormal"),
}


def row(case: str, iterations: int) -> dict[str, object]:
    """Compare what was said with what happened."""
    estimates, bounds, said, verdicts = [], [], [], Counter[str]()
    for number in range(iterations):
        res = CASES[case](np.random.default_rng([13, number]))
        frame = res.normality_check().frame
        estimates.append(res.params.to_numpy())
        bounds.append(res.conf_int().to_numpy())
        said.append(frame[["miss_above", "miss_below", "coverage"]].to_numpy())
        verdicts.update(frame["verdict"])
    target = np.mean(estimates, axis=0)
    low, high = np.moveaxis(np.stack(bounds), 2, 0)
    above, below = (low > target).mean(), (high < target).mean()
    held = ((low <= target) & (target <= high)).mean(axis=1)
    told = np.stack(said).mean(axis=(0, 1))
    total = sum(verdicts.values())
    return {
        "case": case,
        "above: said": told[0],
        "above": above,
        "below: said": told[1],
        "below": below,
        "coverage: said": told[2],
        "coverage": held.mean(),
        "mc": held.std(ddof=1) / np.sqrt(iterations),
        **{one: verdicts[one] / total for one in sorted(verdicts)},
    }


def main() -> None:
    iterations = int(sys.argv[1]) if len(sys.argv) > 1 else 300
    warnings.simplefilter("ignore", vs.VstatkitWarning)
    for case in sys.argv[2:] or CASES:
        started = time.perf_counter()
        table = pd.DataFrame([row(case, iterations)])
        print(table.round(3).to_string(index=False), flush=True)
        print(f"{time.perf_counter() - started:.0f} s", flush=True)


if __name__ == "__main__":
    main()
