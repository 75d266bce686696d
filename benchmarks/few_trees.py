r"""Standard errors of forests with few trees, on simulated data.

Forests of `ForestRegressor(B)` with all other options at their defaults, so k = n, on
many data sets; the variance of their predictions over data sets is compared with the
mean of the estimated variances, at twenty points that do not change. Criteria, written
before anything was measured on the designs that are kept aside: the median ratio over
points in .85 to 1.25, 10 % to 90 % of the points in .65 to 1.6, and coverage of the
expectation of the forest of 92 to 98 %. `pooled` is the default (see
`vstatkit.variance.pooled_variance`), `pointwise` the jackknife of each point alone.

The rules and constants of the pooled variance were chosen on the first four designs,
and on those of `few_trees_real.py`. The other six had no part in that, although four of
them were measured once with an earlier version.

`python -m benchmarks.few_trees --n 500 2000 --trees 100 500` measures the designs that
the rule was developed on, and with `--aside` the others.
"""

import argparse
import csv
import warnings
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

import vstatkit as vs
from vstatkit.inference.estimates import Estimates

N_POINTS = 20


def friedman(X: Any) -> Any:
    return (
        10 * np.sin(np.pi * X[:, 0] * X[:, 1])
        + 20 * (X[:, 2] - 0.5) ** 2
        + 10 * X[:, 3]
        + 5 * X[:, 4]
    )


def uniform(n: int, rng: np.random.Generator) -> Any:
    return rng.uniform(size=(n, 10))


def correlated(n: int, rng: np.random.Generator) -> Any:
    return 0.7 * rng.normal(size=(n, 1)) + 0.7 * rng.normal(size=(n, 10))


def mixed(n: int, rng: np.random.Generator) -> Any:
    X = rng.uniform(size=(n, 10))
    X[:, :6] = X[:, :6] < 0.4
    return X


def skewed(n: int, rng: np.random.Generator) -> Any:
    return np.exp(rng.normal(size=(n, 10)))


def counts(n: int, rng: np.random.Generator) -> Any:
    return rng.poisson(2, size=(n, 10)).astype(np.float64)


Draw = Callable[[int, np.random.Generator], Any]
Respond = Callable[[Any, np.random.Generator], Any]

DEVELOPMENT: dict[str, tuple[Draw, Respond]] = {
    "Friedman": (uniform, lambda X, rng: friedman(X) + rng.normal(size=len(X))),
    "heteroscedastic": (
        uniform,
        lambda X, rng: friedman(X) + rng.normal(size=len(X)) * (0.5 + 6 * X[:, 5] ** 2),
    ),
    "noise": (uniform, lambda X, rng: rng.normal(size=len(X))),
    "linear, correlated": (
        correlated,
        lambda X, rng: X[:, 0] + X[:, 1] / 2 + X[:, 2] / 4 + rng.normal(size=len(X)),
    ),
}
ASIDE: dict[str, tuple[Draw, Respond]] = {
    "binary predictors": (
        mixed,
        lambda X, rng: (
            2 * X[:, 0] + 3 * X[:, 1] * X[:, 6] - X[:, 2] + rng.normal(size=len(X))
        ),
    ),
    "skewed, heavy tails": (
        skewed,
        lambda X, rng: (
            2 * np.log(X[:, 0]) + np.minimum(X[:, 1], 4) + rng.standard_t(4, len(X))
        ),
    ),
    "steps, skewed noise": (
        uniform,
        lambda X, rng: (
            3 * (X[:, 0] > 0.5)
            + 2 * (X[:, 1] > 0.3) * (X[:, 2] > 0.6)
            + rng.exponential(size=len(X))
        ),
    ),
    "counts": (
        counts,
        lambda X, rng: rng.poisson(
            np.exp(0.2 * X[:, 0] + 0.1 * X[:, 1] * (X[:, 2] > 1))
        ).astype(np.float64),
    ),
    "many predictors": (
        lambda n, rng: rng.normal(size=(n, 40)),
        lambda X, rng: (
            2 * X[:, 0]
            + X[:, 1] * X[:, 2]
            + np.abs(X[:, 3])
            + rng.normal(size=len(X)) * np.exp(X[:, 4] / 2)
        ),
    ),
    "binary response": (
        correlated,
        lambda X, rng: (rng.logistic(size=len(X)) < 1.5 * X[:, 0] - X[:, 1]).astype(
            np.float64
        ),
    ),
}


Answer = tuple[Estimates, dict[str, Any]]


def one_data_set(
    draw: Draw, respond: Respond, n: int, sizes: list[int], seed: int
) -> list[Answer]:
    """Fit, and return the estimates and the variances by each method for each B."""
    rng = np.random.default_rng([seed, n])
    X = draw(n, rng)
    y = respond(X, rng)
    points = draw(N_POINTS, np.random.default_rng(999))
    forest = vs.ForestRegressor(warm_start=True, random_state=seed)
    answers = []
    for B in sizes:
        forest.set_params(n_estimators=B).fit(X, y)
        pooled = forest._estimate(points)
        how = replace(forest._estimation(), pooled=None, residuals=None)
        pointwise = forest._predictor.estimates(points, how)
        found = {"pooled": pooled.variance, "pointwise": pointwise.variance}
        answers.append((pooled, found))
    return answers


def summarise(
    estimates: Any, variances: Any, intervals: Any = None
) -> dict[str, float]:
    """Compare estimated variances, (data sets, points), with that of the estimates."""
    ratio = variances.mean(axis=0) / estimates.var(axis=0, ddof=1)
    centre = estimates.mean(axis=0)
    covered = np.abs(estimates - centre) < 1.96 * np.sqrt(variances)
    if intervals is not None:
        covered = (intervals[:, 0] < centre) & (centre < intervals[:, 1])
    low, median, high = np.quantile(ratio, [0.1, 0.5, 0.9])
    return {
        "median": median,
        "10 %": low,
        "90 %": high,
        "coverage": covered.mean(),
        "width": np.sqrt(variances).mean() / estimates.std(axis=0, ddof=1).mean(),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--n", type=int, nargs="+", default=[500, 2000])
    parser.add_argument("--trees", type=int, nargs="+", default=[100, 200, 500])
    parser.add_argument("--data-sets", type=int, default=50)
    parser.add_argument("--designs", nargs="+", help="names of designs; all by default")
    parser.add_argument("--aside", action="store_true", help="the designs kept aside")
    parser.add_argument("--csv", type=Path, help="file that rows are added to")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    designs = ASIDE if options.aside else DEVELOPMENT
    names = ("median", "10 %", "90 %", "coverage", "width")
    columns = "".join(f"{name:>9}" for name in names)
    print(f"{'design':22}{'n':>7}{'B':>6}  {'variance':10}{columns}")
    for name in options.designs or designs:
        draw, respond = designs[name]
        for n in options.n:
            fits = [
                one_data_set(draw, respond, n, sorted(options.trees), seed)
                for seed in range(options.data_sets)
            ]
            for place, B in enumerate(sorted(options.trees)):
                estimates = np.array([fit[place][0].estimate for fit in fits])
                ends = np.array([fit[place][0].interval(0.05) for fit in fits])
                for label in ("pooled", "pointwise"):
                    part = np.array([fit[place][1][label] for fit in fits])
                    intervals = ends if label == "pooled" else None
                    row = summarise(estimates, part, intervals)
                    numbers = "".join(f"{value:9.3f}" for value in row.values())
                    print(f"{name:22}{n:7}{B:6}  {label:10}{numbers}", flush=True)
                    if options.csv is not None:
                        cells = [f"{value:.4f}" for value in row.values()]
                        with options.csv.open("a", newline="") as file:
                            line = [name, n, B, options.data_sets, label, *cells]
                            csv.writer(file).writerow(line)


if __name__ == "__main__":
    main()
