"""Size and power of the tests of predictors.

`python -m benchmarks.predictor_tests [data sets] [B] [what ...]` draws data sets, fits
a forest to each and asks every test about one predictor: under the null the share of
p-values below 5 % should be about 5 %, under an alternative large. A case is a law and
a predictor; they were named before the first run, those in HELD were kept aside until
the tests were settled. Names of tests among `what` leave the others out. With `time`
for the number of data sets it measures how long ten predictors take at n = 1000.
"""

import sys
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import pandas as pd

import vstatkit as vs
from vstatkit.studies import law_parts as parts
from vstatkit.studies.law import Law
from vstatkit.studies.laws import LAWS

Case = tuple[str, str]


def proxy(rng: np.random.Generator, n: int) -> pd.DataFrame:
    """Draw x1, a curved and noisy function x2 of it, and two others."""
    x = rng.standard_normal((n, 4))
    x[:, 1] = x[:, 0] ** 2 + 0.5 * x[:, 1]
    return pd.DataFrame(x, columns=parts.names(4))


def hill(X: pd.DataFrame) -> "np.typing.NDArray[np.float64]":
    """Let x1 act through its square, which x2 tells of."""
    return np.asarray(X["x1"] ** 2 + X["x3"])


def ripple(rng: np.random.Generator, n: int) -> pd.DataFrame:
    """Draw x1, a wave x2 of it, and two others."""
    x = rng.standard_normal((n, 4))
    x[:, 1] = np.sin(2 * x[:, 0]) + 0.4 * x[:, 1]
    return pd.DataFrame(x, columns=parts.names(4))


def rippled(X: pd.DataFrame) -> "np.typing.NDArray[np.float64]":
    """Let x1 act through the wave that x2 tells of."""
    return np.asarray(2 * np.sin(2 * X["x1"]) + X["x3"])


def joint(rng: np.random.Generator, n: int) -> pd.DataFrame:
    """Draw x1, x2, a noisy product x3 of them, and two others."""
    x = rng.standard_normal((n, 5))
    x[:, 2] = x[:, 0] * x[:, 1] + 0.5 * x[:, 2]
    return pd.DataFrame(x, columns=parts.names(5))


def product(X: pd.DataFrame) -> "np.typing.NDArray[np.float64]":
    """Let x1 and x2 act through their product, which x3 tells of."""
    return np.asarray(1.5 * X["x1"] * X["x2"] + X["x4"])


def fan(rng: np.random.Generator, n: int) -> pd.DataFrame:
    """Draw x1, an x2 around it whose spread grows with x1's size, and two others."""
    x = rng.standard_normal((n, 4))
    x[:, 1] = x[:, 0] + 0.8 * (0.2 + np.abs(x[:, 0])) * x[:, 1]
    return pd.DataFrame(x, columns=parts.names(4))


def valley(X: pd.DataFrame) -> "np.typing.NDArray[np.float64]":
    """Let x1 act through its size, which the spread of x2 tells of."""
    return np.asarray(2 * np.abs(X["x1"]) + X["x3"])


MORE = {
    "joint": Law(
        "joint",
        "x3 is a noisy product of x1 and x2 and does nothing by itself",
        joint,
        product,
        parts.gauss,
        parts.inside(5, gaussian=True),
        dead=("x5",),
        shadows=("x3",),
        held=True,
    ),
    "fan": Law(
        "fan",
        "x2 is x1 with noise whose spread depends on x1, and does nothing by itself",
        fan,
        valley,
        parts.gauss,
        parts.inside(4, gaussian=True),
        dead=("x4",),
        shadows=("x2",),
        held=True,
    ),
    "heavy chain": Law(
        "heavy chain",
        "a chain of predictors correlated at 0.9, errors by Student's t with 3 df",
        parts.chain,
        parts.ends,
        parts.heavy,
        parts.chain_points(),
        dead=("x6", "x7"),
        shadows=("x2", "x3", "x5"),
        held=True,
    ),
    "ripple": Law(
        "ripple",
        "x2 is a noisy wave of x1 and does nothing by itself",
        ripple,
        rippled,
        parts.gauss,
        parts.inside(4, gaussian=True),
        dead=("x4",),
        shadows=("x2",),
        held=True,
    ),
    "curved": Law(
        "curved",
        "x2 is a noisy curve of x1 and does nothing by itself",
        proxy,
        hill,
        parts.gauss,
        parts.inside(4, gaussian=True),
        dead=("x4",),
        shadows=("x2",),
        held=True,
    ),
}

NULLS: tuple[Case, ...] = (
    ("noise", "x1"),
    ("friedman10", "x6"),
    ("correlated", "x2"),
    ("correlated", "x6"),
    ("levels", "h"),
)
"""Predictors that do nothing, given the others."""

HELD: tuple[Case, ...] = (("curved", "x2"), ("jumps", "x4"), ("ripple", "x2"))
"""The same, kept aside. Copies learnt curves after "curved" had been looked at, and
"ripple" was added then."""

ASIDE: tuple[Case, ...] = (("joint", "x3"), ("fan", "x2"), ("heavy chain", "x3"))
"""The same again: named before the tests were mended, and looked at once, after."""

ALTERNATIVES: tuple[Case, ...] = (
    ("friedman10", "x5"),
    ("correlated", "x1"),
    ("linear20", "x3"),
    ("binary", "x2"),
)
"""Predictors that do something."""

PAIRS: tuple[tuple[str, str, str], ...] = (
    ("noise", "x1", "x2"),
    ("spread", "x1", "x2"),
    ("heavy", "x1", "x2"),
    ("friedman10", "x1", "x2"),
    ("exclusive", "x1", "x2"),
)
"""Pairs: nothing at work; two additive ones; two that interact."""

QUESTIONS: dict[str, Callable[[vs.EnsembleResults, str], float]] = {
    "feature_test": lambda res, name: res.feature_test(name).pvalue,
    "importance": lambda res, name: res.importance([name]).frame["pvalue"].item(),
    "copies": lambda res, name: (
        res.permutation_test(name, permutations=19, learners=100).pvalue
    ),
    "trees": lambda res, name: (
        res.permutation_test(name, swap="trees", permutations=199).pvalue
    ),
    "plain permutation": lambda res, name: (
        res.importance([name], how="permute").frame["pvalue"].item()
    ),
}
"""Tests of one predictor; the last one does not look at the other predictors."""


def fitted(law: Law, seed: int, B: int) -> vs.EnsembleResults:
    data = law(np.random.default_rng([seed, 2022]))
    return vs.fit("y ~ .", data, B=B, rng=seed, n_jobs=1, groups=law.groups)


def shares(
    case: Case, data_sets: int, B: int, tests: Sequence[str]
) -> dict[str, object]:
    """Shares of data sets in which each test rejects at 5 %."""
    name, variable = case
    law = {**LAWS, **MORE}[name]
    found = []
    for seed in range(data_sets):
        res = fitted(law, seed, B)
        found.append([QUESTIONS[test](res, variable) for test in tests])
    rejected = (np.array(found) <= 0.05).mean(axis=0)
    return {"case": f"{name}: {variable}", **dict(zip(tests, rejected, strict=True))}


def pair_shares(
    case: tuple[str, str, str], data_sets: int, B: int
) -> dict[str, object]:
    """Do the same for interactions."""
    name, first, second = case
    pvalues = []
    for seed in range(data_sets):
        res = fitted(LAWS[name], seed, B)
        one = res.interaction_test(first, second).pvalue
        pvalues.append([one, res.additivity_test().pvalue])
    pair, every = (np.array(pvalues) <= 0.05).mean(axis=0)
    return {
        "case": f"{name}: {first}, {second}",
        "interaction_test": pair,
        "additivity_test": every,
    }


def fit_shares(data_sets: int, B: int) -> dict[str, object]:
    """Two fits that differ by a predictor that does nothing, and by one that does."""
    found = []
    for seed in range(data_sets):
        data = LAWS["linear20"](np.random.default_rng([seed, 2022]))
        options = {"kernel": "ols", "B": B, "rng": seed, "n_jobs": 1}
        base, dead, live = (
            vs.fit(f"y ~ x1 + x2{more}", data, **options)
            for more in ("", " + x20", " + x3")
        )
        found.append([vs.compare(base, one).pvalue for one in (dead, live)])
    dead_share, live_share = (np.array(found) <= 0.05).mean(axis=0)
    return {"case": "ols: linear20", "with x20": dead_share, "with x3": live_share}


def timed() -> None:
    law = replace(LAWS["friedman10"], n=1000)
    data = law(np.random.default_rng(1))
    for B in (500, 2000):
        res = vs.fit("y ~ .", data, B=B, rng=1, n_jobs=2)
        for what in ("feature_test", "importance"):
            start, own = time.perf_counter(), time.process_time()
            for j in range(1, 11):
                QUESTIONS[what](res, f"x{j}")
            wall, cpu = time.perf_counter() - start, time.process_time() - own
            print(f"{what} of ten, B = {B}: {wall:.1f} s, {cpu:.1f} s of processor")


def main() -> None:
    warnings.simplefilter("ignore", vs.VstatkitWarning)
    if sys.argv[1:2] == ["time"]:
        timed()
        return
    data_sets = int(sys.argv[1]) if len(sys.argv) > 1 else 500
    B = int(sys.argv[2]) if len(sys.argv) > 2 else 300
    tests = [name for name in sys.argv[3:] if name in QUESTIONS] or list(QUESTIONS)
    asked = [name for name in sys.argv[3:] if name not in QUESTIONS]
    asked = asked or ["nulls", "held", "alternatives", "pairs", "fits"]
    cases = {
        "nulls": NULLS,
        "held": HELD,
        "aside": ASIDE,
        "alternatives": ALTERNATIVES,
    }
    for what in asked:
        if what == "pairs":
            rows = (pair_shares(case, data_sets, B) for case in PAIRS)
        elif what == "fits":
            rows = iter([fit_shares(data_sets, B)])
        else:
            rows = (shares(case, data_sets, B, tests) for case in cases[what])
        print(f"{what}: share of {data_sets} data sets rejected at 5 %, B = {B}")
        for row in rows:
            texts = [f"{k} {v if k == 'case' else f'{v:.3f}'}" for k, v in row.items()]
            print("  ", ", ".join(texts), flush=True)
    error = 100 * np.sqrt(0.05 * 0.95 / data_sets)
    print(f"The Monte Carlo error of a share of 5 % is {error:.1f} points.")


if __name__ == "__main__":
    main()
