"""How often each test rejects predictors that have no effect.

    python -m benchmarks.null_predictors out.csv [--sets 500] [--designs wage ...]

Every data set has a number, from which its random numbers come. The file has one row
per data set and test, and a second call adds the data sets that are not in it. At the
end the percentages of p-values below 5 % and 1 % are printed.

Every design has a predictor without an effect, given the others: `null`. In some it is
independent of the other predictors; there all tests have the level that they state. In
the others it is a proxy of a relevant one: a forest splits on it, so that its effects
and averages are not zero in the expectation of the ensemble, and `importance` alone
tests what is true. A second predictor without effect, `noise`, is in all designs.

The designs, 500 data sets and at most 7 % were written down before any were run.
"""

import argparse
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy import special

import vstatkit as vs

B = 500
Rng = np.random.Generator
Drawn = tuple[pd.DataFrame, dict[str, Any]]


@dataclass(frozen=True)
class Design:
    """How data sets are drawn, and which predictor has no effect in them.

    Attributes
    ----------
    draw : callable
        Draws data, and options of the fit.
    null, live : str
        A predictor without effect, given the others, and one with an effect.
    proxy : bool
        Whether the first is related to predictors with an effect.
    """

    draw: Callable[[Rng], Drawn]
    null: str
    live: str
    proxy: bool = False


def wages(rng: Rng, n: int = 300) -> pd.DataFrame:
    """Draw whole years of schooling and of experience, two flags, and log wages."""
    data = pd.DataFrame(
        {
            "educ": np.clip(rng.normal(12.5, 2.8, n).round(), 6, 18).astype(int),
            "exper": rng.gamma(1.5, 11, n).astype(int),
            "female": rng.integers(0, 2, n),
        }
    )
    married = rng.uniform(size=n) < special.expit(0.1 * data["exper"] - 1)
    log_wage = 0.08 * data["educ"] + 0.012 * data["exper"] - 0.3 * data["female"]
    return data.assign(
        married=married.astype(int), lwage=log_wage + rng.normal(0, 0.4, n)
    )


def wage(rng: Rng) -> Drawn:
    """Add a flag that is irrelevant."""
    return wages(rng).assign(union=rng.uniform(size=300) < 0.3), {}


def region(rng: Rng) -> Drawn:
    """Add a factor of six levels, some of them rare."""
    shares = [0.4, 0.25, 0.15, 0.1, 0.07, 0.03]
    return wages(rng).assign(region=rng.choice([*"abcdef"], 300, p=shares)), {}


def zeros(rng: Rng) -> Drawn:
    """Draw 70 % zeros and a tail, with skewed predictors."""
    data = pd.DataFrame(rng.lognormal(size=(250, 3)), columns=["x1", "x2", "x3"])
    some = rng.uniform(size=250) < special.expit(np.log(data["x1"]) - 1)
    tail = rng.gamma(1.5, 1, 250) * (1 + data["x2"])
    return data.assign(y=np.where(some, tail, 0.0)), {}


def votes(rng: Rng) -> Drawn:
    """Draw two classes, with a number, a factor and small integers."""
    data = pd.DataFrame(
        {
            "x1": rng.normal(size=240),
            "party": rng.choice([*"rdi"], 240, p=[0.45, 0.4, 0.15]),
            "kids": rng.integers(0, 10, 240),
        }
    )
    push = data["party"].map({"r": -0.8, "d": 0.8, "i": 0.0})
    yes = rng.uniform(size=240) < special.expit(data["x1"] + push)
    return data.assign(y=np.where(yes, "yes", "no")), {}


def schools(rng: Rng) -> Drawn:
    """Draw forty clusters of six with random effects; a flag is constant in each."""
    code = np.repeat(np.arange(40), 6)
    data = pd.DataFrame(
        {"x1": rng.normal(size=240), "private": rng.integers(0, 2, 40)[code]}
    )
    noise = rng.normal(0, 0.7, 40)[code] + rng.normal(size=240)
    return data.assign(y=data["x1"] + noise), {"groups": code}


def survey(rng: Rng) -> Drawn:
    """Draw rows with sampling weights that are related to a predictor."""
    data = pd.DataFrame(rng.normal(size=(250, 3)), columns=["x1", "x2", "x3"])
    weights = np.exp(0.4 * data["x1"] + rng.normal(0, 0.5, 250))
    y = data["x1"] + np.abs(data["x2"]) + rng.normal(size=250)
    return data.assign(y=y), {"weights": weights}


def counts(rng: Rng) -> Drawn:
    """Draw counts; a flag is rare."""
    data = pd.DataFrame(rng.normal(size=(240, 2)), columns=["x1", "x2"])
    y = rng.poisson(np.exp(0.2 + 0.5 * data["x1"]))
    return data.assign(rare=(rng.uniform(size=240) < 0.1).astype(int), y=y), {}


def age(rng: Rng) -> Drawn:
    """Add the age, which is schooling and experience with noise."""
    data = wages(rng)
    years = 6 + data["educ"] + data["exper"] + rng.integers(0, 4, 300)
    return data.assign(age=years), {}


def income(rng: Rng) -> Drawn:
    """Draw a skewed proxy and skewed errors."""
    data = pd.DataFrame(rng.normal(size=(200, 2)), columns=["x1", "x3"])
    skewed = np.exp(0.8 * data["x1"] + rng.normal(0, 0.4, 200))
    y = data["x1"] + data["x3"] + rng.exponential(size=200)
    return data.assign(income=skewed, y=y), {}


def class_of(rng: Rng) -> Drawn:
    """Draw a factor of five levels that is a coarse and noisy copy of a predictor."""
    data = pd.DataFrame(rng.normal(size=(240, 2)), columns=["x1", "x3"])
    noisy = data["x1"] + rng.normal(0, 0.5, 240)
    levels = np.array([*"abcde"])[pd.qcut(noisy, 5, labels=False)]
    y = 1.5 * np.sin(2 * data["x1"]) + data["x3"] + rng.normal(size=240)
    return data.assign(group=levels, y=y), {}


def flag(rng: Rng) -> Drawn:
    """Draw a flag that is a noisy sign of a predictor."""
    data = pd.DataFrame(rng.normal(size=(200, 2)), columns=["x1", "x3"])
    sign = (data["x1"] + rng.normal(0, 0.5, 200) > 0).astype(int)
    y = data["x1"] ** 2 + data["x1"] + data["x3"] + rng.normal(size=200)
    return data.assign(sign=sign, y=y), {}


def siblings(rng: Rng) -> Drawn:
    """Draw forty clusters; a proxy varies within them around what is relevant."""
    code = np.repeat(np.arange(40), 5)
    x1 = rng.normal(size=40)[code]
    data = pd.DataFrame({"x1": x1, "near": x1 + rng.normal(0, 0.5, 200)})
    y = x1 + rng.normal(0, 0.5, 40)[code] + rng.normal(size=200)
    return data.assign(y=y), {"groups": code}


DESIGNS = {
    "wage": Design(wage, "union", "educ"),
    "region": Design(region, "region", "educ"),
    "zeros": Design(zeros, "x3", "x1"),
    "votes": Design(votes, "kids", "x1"),
    "schools": Design(schools, "private", "x1"),
    "survey": Design(survey, "x3", "x1"),
    "counts": Design(counts, "rare", "x1"),
    "age": Design(age, "age", "educ", proxy=True),
    "income": Design(income, "income", "x1", proxy=True),
    "class": Design(class_of, "group", "x1", proxy=True),
    "flag": Design(flag, "sign", "x1", proxy=True),
    "siblings": Design(siblings, "near", "x1", proxy=True),
}


def measured(name: str, number: int) -> dict[str, float]:
    """Fit one data set; give the p-value of every test of its null predictor."""
    design = DESIGNS[name]
    rng = np.random.default_rng([*map(ord, name), number])
    data, options = design.draw(rng)
    data = data.assign(noise=rng.normal(size=len(data)))
    response = "lwage" if "lwage" in data else "y"
    predictors = [column for column in data if column != response]
    formula = f"{response} ~ {' + '.join(predictors)}"
    res = vs.fit(formula, data, B=B, rng=number, n_jobs=1, **options)
    null = design.null
    found = {"importance": res.importance(null).frame["p_value"].item()}
    if design.proxy:
        return found
    found["importance of a set"] = (
        res.importance([(null, "noise")]).frame["p_value"].item()
    )
    tables = {
        "effects, typical row": res.effects,
        "avg_effects": res.avg_effects([null]).frame,
        "avg_slopes": res.avg_slopes([null]).frame,
    }
    for test, table in tables.items():  # of a factor, its first contrast
        found[test] = float(table.loc[[null], "p_value"].iloc[0])
    found["interaction_test"] = res.interaction_test(design.live, null).pvalue
    found["additivity_test"] = res.additivity_test([null, "noise"]).pvalue
    return found


def summary(table: pd.DataFrame) -> pd.DataFrame:
    """Compute percentages of rejections, with those of proxies at the end."""
    by = table.groupby(["design", "test"], sort=False)["p"]
    return pd.DataFrame(
        {
            "at 5 %": 100 * by.apply(lambda p: (p <= 0.05).mean()),
            "at 1 %": 100 * by.apply(lambda p: (p <= 0.01).mean()),
            "sets": by.size(),
        }
    )


def main() -> None:
    """Measure, within a time, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("out", type=Path)
    parser.add_argument("--sets", type=int, default=500)
    parser.add_argument("--first", type=int, default=1000)
    parser.add_argument("--minutes", type=float, default=120.0)
    parser.add_argument("--designs", nargs="*", default=list(DESIGNS), choices=DESIGNS)
    asked = parser.parse_args()
    rows = [pd.read_csv(asked.out)] if asked.out.exists() else []
    done = {
        (d, s) for one in rows for d, s in zip(one["design"], one["set"], strict=True)
    }
    end = time.monotonic() + 60 * asked.minutes
    for number in range(asked.first, asked.first + asked.sets):
        new = []
        for name in asked.designs:
            if (name, number) not in done and time.monotonic() < end:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore", vs.VstatkitWarning)
                    found = measured(name, number)
                new += [
                    {"design": name, "set": number, "test": test, "p": p}
                    for test, p in found.items()
                ]
        if new:
            rows.append(pd.DataFrame(new))
            rows[-1].to_csv(
                asked.out, mode="a", header=not asked.out.exists(), index=False
            )
    print(summary(pd.concat(rows, ignore_index=True)).round(1).to_string())


if __name__ == "__main__":
    main()
