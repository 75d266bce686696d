"""Coverage of intervals of probabilities, and of intervals with skewed responses.

    python benchmarks/intervals.py out.csv [--sets 500] [--designs p1 s1 ...]

Every data set has a number, from which its random numbers come. The file has one row
per data set and cell, and a second call adds the data sets that are not in it. At the
end, coverage of the mean of all estimates of a cell is printed: by the intervals of the
package, and by plain ones (estimate +/- t standard errors; for probabilities Agresti
and Coull's with N at most the number of rows). `width` compares the two. "null" is the
effect of a predictor that has none, of which the share of p-values below 5 % is shown.

Designs that begin with p and s were used to choose the rules, those that begin with q
and u were kept aside; r was written down last, and run once with the rules as they are.
"""

import argparse
import time
import warnings
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy import special, stats

import vstatkit as vs

B = 1000
NULL, AVERAGE = "null", "average"
Rng = np.random.Generator
Maker = Callable[[Rng], pd.DataFrame]


def uniform(rng: Rng, n: int, p: int) -> pd.DataFrame:
    """Draw p independent predictors."""
    names = [f"x{j + 1}" for j in range(p)]
    return pd.DataFrame(rng.uniform(size=(n, p)), columns=names)


def binary(chance: Callable[[pd.DataFrame], object], n: int, p: int) -> Maker:
    """Draw two classes with a probability that depends on the predictors."""

    def make(rng: Rng) -> pd.DataFrame:
        data = uniform(rng, n, p)
        yes = rng.uniform(size=n) < chance(data)
        return data.assign(y=np.where(yes, "yes", "no"))

    return make


def numeric(
    response: Callable[[Rng, pd.DataFrame, int], object], n: int, p: int
) -> Maker:
    """Draw a numeric response."""

    def make(rng: Rng) -> pd.DataFrame:
        data = uniform(rng, n, p)
        return data.assign(y=np.asarray(response(rng, data, n), dtype=float))

    return make


def clustered(chance: Callable[[Rng, np.ndarray], object], G: int, m: int) -> Maker:
    """Draw classes that are constant in a cluster, or given a cluster's probability."""

    def make(rng: Rng) -> pd.DataFrame:
        code = np.repeat(np.arange(G), m)
        x = rng.uniform(size=G)
        data = pd.DataFrame({"x1": x[code], "x2": rng.uniform(size=G * m)})
        found = np.asarray(chance(rng, x))
        whole = found.dtype == bool
        yes = found[code] if whole else rng.uniform(size=G * m) < found[code]
        return data.assign(y=np.where(yes, "yes", "no"), g=code)

    return make


def three_groups(rng: Rng) -> pd.DataFrame:
    """Draw three classes like irises: one apart, two that overlap."""
    centres = np.array([[0, 0, 0, 0], [4, 3, 2, 2], [5, 4, 2.5, 3]])
    code = rng.integers(0, 3, 150)
    columns = ["x1", "x2", "x3", "x4"]
    data = pd.DataFrame(centres[code] + rng.normal(size=(150, 4)), columns=columns)
    return data.assign(y=np.array(["a", "b", "c"])[code])


def three_shares(rng: Rng) -> pd.DataFrame:
    """Draw three classes that no predictor tells apart."""
    return uniform(rng, 120, 2).assign(y=rng.choice([*"abc"], 120, p=[0.1, 0.3, 0.6]))


def rare_third(rng: Rng) -> pd.DataFrame:
    """Draw two classes by the first predictor, and a third that is rare."""
    data = uniform(rng, 200, 3)
    rare = rng.uniform(size=200) < 0.05
    first = rng.uniform(size=200) < data["x1"]
    return data.assign(y=np.where(rare, "c", np.where(first, "a", "b")))


def cells(rng: Rng) -> pd.DataFrame:
    """Draw two classes by binary predictors."""
    columns = ["x1", "x2", "x3"]
    data = pd.DataFrame(rng.integers(0, 2, (150, 3)), columns=columns)
    yes = rng.uniform(size=150) < 0.05 + 0.3 * data["x1"] + 0.25 * data["x2"]
    return data.assign(y=np.where(yes, "yes", "no"))


def four_classes(rng: Rng) -> pd.DataFrame:
    """Draw four classes whose shares change with the first predictor."""
    data = uniform(rng, 200, 3)
    score = data["x1"] * 2.5 + 0.8 * rng.normal(size=200)
    return data.assign(y=np.array([*"abcd"])[np.clip(score, 0, 3).astype(int)])


def many_zeros(rng: Rng, zeros: object, mean: object, n: int) -> object:
    """Draw zeros, and gamma variables otherwise."""
    return np.where(rng.uniform(size=n) < zeros, 0.0, rng.gamma(1.5, 1 / 1.5, n) * mean)


def friedman(rng: Rng, d: pd.DataFrame, n: int) -> object:
    """Friedman's function with normal errors."""
    bent = 10 * np.sin(np.pi * d.x1 * d.x2) + 20 * (d.x3 - 0.5) ** 2
    return bent + 10 * d.x4 + 5 * d.x5 + rng.normal(size=n)


DESIGNS: dict[str, Maker] = {
    "p1": binary(lambda d: 0.08, 200, 1),
    "p2": clustered(lambda rng, x: rng.uniform(size=30) < 0.04, 30, 20),
    "p3": binary(
        lambda d: special.expit(-3.3 + 3 * (d.x1 - 0.5) + 2 * (d.x2 > 0.7)), 200, 5
    ),
    "p4": three_groups,
    "p5": binary(lambda d: special.expit(4 * (d.x1 - 0.5) + 2 * (d.x2 - 0.5)), 100, 5),
    "p6": binary(lambda d: 0.08, 200, 5),
    "p7": binary(lambda d: np.where(d.x1 > 0.5, 0.5, 0.02), 150, 2),
    "p8": clustered(
        lambda rng, x: special.expit(-1 + 1.5 * (x - 0.5) + rng.normal(size=20)), 20, 10
    ),
    "p9": binary(lambda d: 0.5, 100, 1),
    "p10": three_shares,
    "q1": binary(lambda d: 0.03, 300, 3),
    "q2": clustered(lambda rng, x: rng.uniform(size=40) < 0.05 + 0.25 * x, 40, 10),
    "q3": rare_third,
    "q4": cells,
    "r1": binary(lambda d: special.expit(-2 + 5 * d.x1 * d.x2), 250, 4),
    "r2": clustered(lambda rng, x: rng.uniform(size=25) < 0.3, 25, 8),
    "r3": four_classes,
    "r4": binary(lambda d: np.where(d.x1 > 0.5, 0.12, 0.02), 250, 3),
    "s1": numeric(lambda rng, d, n: many_zeros(rng, 0.85, 1.0, n), 200, 1),
    "s2": numeric(lambda rng, d, n: many_zeros(rng, 0.85, 1 + 2 * d.x1, n), 200, 5),
    "s3": numeric(lambda rng, d, n: np.exp(1.5 * d.x1 + rng.normal(size=n)), 200, 3),
    "s4": numeric(lambda rng, d, n: rng.poisson(0.3 + 0.7 * d.x1), 200, 3),
    "s5": numeric(lambda rng, d, n: rng.exponential(size=n) * (1 + d.x1), 100, 2),
    "s6": numeric(lambda rng, d, n: rng.uniform(size=n) < 0.1, 200, 3),
    "s7": numeric(lambda rng, d, n: 2 * d.x1 + rng.standard_t(3, n), 150, 3),
    "s8": numeric(lambda rng, d, n: 2 * d.x1 - rng.lognormal(size=n), 150, 3),
    "s9": numeric(friedman, 200, 5),
    "s10": numeric(lambda rng, d, n: 2 * d.x1 + rng.normal(size=n), 80, 2),
    "s11": numeric(lambda rng, d, n: rng.exponential(size=n), 150, 1),
    "u1": numeric(lambda rng, d, n: rng.gamma(0.5, 2, n) * (1 + d.x1), 150, 4),
    "u2": numeric(lambda rng, d, n: rng.pareto(3.5, n) + d.x1, 200, 2),
    "u3": numeric(
        lambda rng, d, n: many_zeros(rng, 0.95 - 0.45 * d.x1, 2.0, n), 250, 3
    ),
    "u4": numeric(
        lambda rng, d, n: 2 * d.x1 + (0.3 + d.x2) * rng.normal(size=n), 120, 3
    ),
}

AVERAGED = ("p1", "p4", "s1", "s2", "s3", "u1")
"""Designs whose average prediction is a cell, too."""

NO_NULL = ("p4", "s9", "u4")
"""Designs in which the last predictor matters, or need not be irrelevant."""


def points(name: str, data: pd.DataFrame) -> pd.DataFrame:
    """Choose four query points, the same in every data set."""
    columns = [column for column in data if column not in ("y", "g")]
    if name == "p4":
        rows = [[0, 0, 0, 0], [4, 3, 2, 2], [5, 4, 2.5, 3], [3, 2, 1.5, 1.5]]
        return pd.DataFrame(rows, columns=columns, dtype=float)
    if name == "q4":
        rows = [[0, 0, 0], [1, 0, 1], [0, 1, 0], [1, 1, 1]]
        return pd.DataFrame(rows, columns=columns)
    drawn = np.random.default_rng(77).uniform(0.1, 0.9, (4, len(columns)))
    drawn[0], drawn[1, 0], drawn[2, 0] = 0.5, 0.15, 0.85
    return pd.DataFrame(drawn, columns=columns)


def measured(name: str, number: int) -> list[dict[str, object]]:
    """Fit one data set; every cell has an estimate, an interval and a p-value."""
    rng = np.random.default_rng([*map(ord, name), number])
    data = DESIGNS[name](rng)
    while data["y"].nunique() < 2:  # two classes are needed
        data = DESIGNS[name](rng)
    at = points(name, data)
    last = at.columns[-1]
    moved = at.iloc[[0, 0]].copy()
    moved[last] = [0, 1] if name == "q4" else [0.2, 0.8]
    rows = pd.concat([at, moved], ignore_index=True)
    groups = data.pop("g").to_numpy() if "g" in data else None
    formula = "y ~ " + " + ".join(at.columns)
    res = vs.fit(formula, data, at=rows, B=B, rng=number, groups=groups, n_jobs=1)
    outputs = len(res.params) // len(rows)
    found = [(res, [f"{j // outputs}.{j % outputs}" for j in range(4 * outputs)])]
    if name not in NO_NULL:
        change = np.zeros((outputs, len(res.params)))
        for k in range(outputs):
            change[k, [5 * outputs + k, 4 * outputs + k]] = 1, -1
        found.append((res.t_test(change), [f"{NULL}.{k}" for k in range(outputs)]))
    if name in AVERAGED:
        means = res.avg_predictions(se="population")
        found.append((means, [f"{AVERAGE}.{k}" for k in range(len(means.params))]))
    table = []
    for one, labels in found:
        bounds = one.conf_int().to_numpy()
        estimates = one.estimates
        low, high = plain_interval(estimates, res.nobs)
        for j, label in enumerate(labels):
            table.append(
                {
                    "design": name,
                    "set": number,
                    "cell": label,
                    "estimate": estimates.estimate[j],
                    "lower": bounds[j, 0],
                    "upper": bounds[j, 1],
                    "low": low[j],
                    "high": high[j],
                    "p": estimates.pvalues[j],
                    "se": estimates.bse[j],
                    "df": estimates.df[j],
                    "N": np.nan if res.support is None else res.support.nobs,
                }
            )
    return table


def plain_interval(found: Any, nobs: int) -> tuple[Any, Any]:
    """Compute the intervals of estimates that skewness and clusters do not change.

    Those of probabilities stand for as many observations as there are rows, at most.
    """
    t = stats.t.isf(0.025, found.df)
    if found.support is not None:
        support = replace(found.support, nobs=float(nobs), average=False)
        return support.interval(found.estimate, found.bse, t)
    return found.estimate - t * found.bse, found.estimate + t * found.bse


def summary(table: pd.DataFrame) -> pd.DataFrame:
    """Compute coverage, misses on either side, rejections and widths of all cells."""
    mean = table.groupby(["design", "cell"])["estimate"].transform("mean")
    null = table["cell"].str.startswith(NULL)
    target = np.where(null, 0.0, mean)
    slack = 1e-12
    plain = (table["low"] <= target + slack) & (table["high"] >= target - slack)
    above, below = table["lower"] > target + slack, table["upper"] < target - slack
    width = table["upper"] - table["lower"]
    marked = table.assign(
        covered=~above & ~below,
        above=above,
        below=below,
        plain_covered=plain,
        rejected=table["p"] < 0.05,
        width=width,
        plain=table["high"] - table["low"],
    )
    by = marked.groupby(["design", "cell"], sort=False)
    found = by[["covered", "above", "below", "plain_covered"]].mean()
    found["rejected"] = (
        by["rejected"]
        .mean()
        .where(null.groupby([table["design"], table["cell"]], sort=False).first())
    )
    found["width"] = by["width"].mean() / by["plain"].mean().replace(0, np.nan)
    found["mean"], found["sets"] = by["estimate"].mean(), by.size()
    return found


def main() -> None:
    """Measure, within a time, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("out", type=Path)
    parser.add_argument("--sets", type=int, default=500)
    parser.add_argument("--first", type=int, default=1000)
    parser.add_argument("--minutes", type=float, default=50.0)
    parser.add_argument("--designs", nargs="*", default=list(DESIGNS), choices=DESIGNS)
    asked = parser.parse_args()
    rows = [pd.read_csv(asked.out)] if asked.out.exists() else []
    done = {
        (d, s) for one in rows for d, s in zip(one["design"], one["set"], strict=True)
    }
    end = time.monotonic() + 60 * asked.minutes
    for number in range(asked.first, asked.first + asked.sets):
        new: list[dict[str, object]] = []
        for name in asked.designs:
            if (name, number) not in done and time.monotonic() < end:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore", vs.VstatkitWarning)
                    new += measured(name, number)
        if new:
            rows.append(pd.DataFrame(new))
            rows[-1].to_csv(
                asked.out, mode="a", header=not asked.out.exists(), index=False
            )
    with pd.option_context("display.width", 120, "display.max_rows", None):
        print(summary(pd.concat(rows, ignore_index=True)).round(3).to_string())


if __name__ == "__main__":
    main()
