"""Size and power of the tests of predictors.

`python -m benchmarks.predictor_tests [data sets] [B] [what ...]` draws data sets, fits
a forest to each and asks every test about one predictor: under the null the share of
p-values below 5 % should be about 5 %, under an alternative large. A case is a design
and a predictor; they were named before the first run, those in HELD were kept aside
until the tests were settled. With `time` for the number of data sets it measures how
long ten predictors take at n = 1000. `null_predictors` has data of other kinds.
"""

import sys
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np
import pandas as pd

import vstatkit as vs
from vstatkit.studies import dgps as parts
from vstatkit.studies.dgps import DGP, DGPS

Case = tuple[str, str]
Pvalues = dict[str, float]


def proxy(rng: np.random.Generator, n: int) -> pd.DataFrame:
    """Draw x1, a curved and noisy function x2 of it, and two others."""
    x = rng.standard_normal((n, 4))
    x[:, 1] = x[:, 0] ** 2 + 0.5 * x[:, 1]
    return pd.DataFrame(x, columns=parts.predictor_names(4))


def hill(X: pd.DataFrame) -> "np.typing.NDArray[np.float64]":
    """Let x1 act through its square, which x2 tells of."""
    return np.asarray(X["x1"] ** 2 + X["x3"])


def ripple(rng: np.random.Generator, n: int) -> pd.DataFrame:
    """Draw x1, a wave x2 of it, and two others."""
    x = rng.standard_normal((n, 4))
    x[:, 1] = np.sin(2 * x[:, 0]) + 0.4 * x[:, 1]
    return pd.DataFrame(x, columns=parts.predictor_names(4))


def rippled(X: pd.DataFrame) -> "np.typing.NDArray[np.float64]":
    """Let x1 act through the wave that x2 tells of."""
    return np.asarray(2 * np.sin(2 * X["x1"]) + X["x3"])


def joint(rng: np.random.Generator, n: int) -> pd.DataFrame:
    """Draw x1, x2, a noisy product x3 of them, and two others."""
    x = rng.standard_normal((n, 5))
    x[:, 2] = x[:, 0] * x[:, 1] + 0.5 * x[:, 2]
    return pd.DataFrame(x, columns=parts.predictor_names(5))


def product(X: pd.DataFrame) -> "np.typing.NDArray[np.float64]":
    """Let x1 and x2 act through their product, which x3 tells of."""
    return np.asarray(1.5 * X["x1"] * X["x2"] + X["x4"])


def fan(rng: np.random.Generator, n: int) -> pd.DataFrame:
    """Draw x1, an x2 around it whose spread grows with x1's size, and two others."""
    x = rng.standard_normal((n, 4))
    x[:, 1] = x[:, 0] + 0.8 * (0.2 + np.abs(x[:, 0])) * x[:, 1]
    return pd.DataFrame(x, columns=parts.predictor_names(4))


def valley(X: pd.DataFrame) -> "np.typing.NDArray[np.float64]":
    """Let x1 act through its size, which the spread of x2 tells of."""
    return np.asarray(2 * np.abs(X["x1"]) + X["x3"])


def far(rng: np.random.Generator, n: int) -> pd.DataFrame:
    """Draw x1, x2, a noisy distance x3 of the two from the middle, and two others."""
    x = rng.standard_normal((n, 5))
    x[:, 2] = np.hypot(x[:, 0], x[:, 1]) + 0.3 * x[:, 2]
    return pd.DataFrame(x, columns=parts.predictor_names(5))


def distance(X: pd.DataFrame) -> "np.typing.NDArray[np.float64]":
    """Let x1 and x2 act through the distance that x3 tells of."""
    return np.asarray(2 * np.hypot(X["x1"], X["x2"]) + X["x4"])


def swing(rng: np.random.Generator, n: int) -> pd.DataFrame:
    """Draw x1, an x2 around it whose spread grows with x3, x3, and another."""
    x = rng.standard_normal((n, 4))
    x[:, 1] = 0.8 * x[:, 0] + np.exp(0.7 * x[:, 2]) * x[:, 1]
    return pd.DataFrame(x, columns=parts.predictor_names(4))


def swung(X: pd.DataFrame) -> "np.typing.NDArray[np.float64]":
    """Let x1 act, and x3, which the spread of x2 tells of."""
    return np.asarray(X["x1"] + 1.5 * X["x3"])


MORE = {
    "distance": DGP(
        "distance",
        "x3 is a noisy distance of x1 and x2 from the middle, and does nothing itself",
        far,
        distance,
        parts.add_normal_noise,
        parts.query_points(5, gaussian=True),
        null=("x5",),
        proxies=("x3",),
        held_out=True,
    ),
    "swing": DGP(
        "swing",
        "x2 is x1 with noise whose spread depends on x3, and does nothing by itself",
        swing,
        swung,
        parts.add_normal_noise,
        parts.query_points(4, gaussian=True),
        null=("x4",),
        proxies=("x2",),
        held_out=True,
    ),
    "joint": DGP(
        "joint",
        "x3 is a noisy product of x1 and x2 and does nothing by itself",
        joint,
        product,
        parts.add_normal_noise,
        parts.query_points(5, gaussian=True),
        null=("x5",),
        proxies=("x3",),
        held_out=True,
    ),
    "fan": DGP(
        "fan",
        "x2 is x1 with noise whose spread depends on x1, and does nothing by itself",
        fan,
        valley,
        parts.add_normal_noise,
        parts.query_points(4, gaussian=True),
        null=("x4",),
        proxies=("x2",),
        held_out=True,
    ),
    "heavy chain": DGP(
        "heavy chain",
        "a chain of predictors correlated at 0.9, errors by Student's t with 3 df",
        parts.draw_chain,
        parts.chain_mean,
        parts.add_t_noise,
        parts.chain_points(),
        null=("x6", "x7"),
        proxies=("x2", "x3", "x5"),
        held_out=True,
    ),
    "ripple": DGP(
        "ripple",
        "x2 is a noisy wave of x1 and does nothing by itself",
        ripple,
        rippled,
        parts.add_normal_noise,
        parts.query_points(4, gaussian=True),
        null=("x4",),
        proxies=("x2",),
        held_out=True,
    ),
    "curved": DGP(
        "curved",
        "x2 is a noisy curve of x1 and does nothing by itself",
        proxy,
        hill,
        parts.add_normal_noise,
        parts.query_points(4, gaussian=True),
        null=("x4",),
        proxies=("x2",),
        held_out=True,
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
"""The same again, named before the tests were mended. Copies learnt products and
spreads after "joint" and "fan" had been looked at."""

LAST: tuple[Case, ...] = (("distance", "x3"), ("swing", "x2"))
"""The same again: named before that was measured, and looked at once, after."""

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


def fitted(dgp: DGP, seed: int, B: int) -> vs.EnsembleResults:
    data = dgp(np.random.default_rng([seed, 2022]))
    return vs.fit("y ~ .", data, B=B, rng=seed, n_jobs=1, groups=dgp.groups)


def asked(case: Case, seed: int, B: int) -> Pvalues:
    """Test one predictor of one data set."""
    name, variable = case
    res = fitted({**DGPS, **MORE}[name], seed, B)
    return {"importance": res.importance(variable).frame["p_value"].item()}


def paired(case: tuple[str, str, str], seed: int, B: int) -> Pvalues:
    """Ask about the interaction of two predictors, and of the first three."""
    name, first, second = case
    res = fitted(DGPS[name], seed, B)
    return {
        "interaction_test": res.interaction_test(first, second).pvalue,
        "additivity_test": res.additivity_test(["x1", "x2", "x3"]).pvalue,
    }


def lines(seed: int, B: int) -> Pvalues:
    """Compare regressions: with a predictor that does nothing, and one that does."""
    data = DGPS["linear20"](np.random.default_rng([seed, 2022]))
    options = {"kernel": "ols", "B": B, "rng": seed, "n_jobs": 1}
    base, dead, live = (
        vs.fit(f"y ~ x1 + x2{more}", data, **options)
        for more in ("", " + x20", " + x3")
    )
    return {
        "with x20": vs.compare(base, dead).pvalue,
        "with x3": vs.compare(base, live).pvalue,
    }


IDLE = {
    "noise": ("x1 + x2 + x3", "x4", "x5"),
    "friedman10": ("x1 + x2 + x3 + x4 + x5", "x6", "x7"),
    "correlated": ("x1 + x2 + x3 + x4 + x5", "x6", "x7"),
}
"""Predictors, and two that do nothing and are alike."""

COMPARED = 1000
"""Learners of forests that are compared, at least."""


def forests(name: str, seed: int, B: int) -> Pvalues:
    """Compare a forest with one that has another idle predictor, and with a line.

    At points where both idle predictors have the same value the means of the learners
    are the same.
    """
    dgp = DGPS[name]
    data = dgp(np.random.default_rng([seed, 2022]))
    common, first, second = IDLE[name]
    options = {"B": max(B, COMPARED), "rng": seed, "n_jobs": 1}
    one, two = (
        vs.fit(f"y ~ {common} + {idle}", data, **options) for idle in (first, second)
    )
    line = vs.fit(f"y ~ {common} + {first}", data, kernel="ols", **options)
    at = dgp.band()
    at = at.assign(**{second: at[first]})
    return {
        "two forests": vs.compare(one, two, at).pvalue,
        "forest and line": vs.compare(one, line, at).pvalue,
    }


def shares(case: str, data_sets: int, ask: Callable[[int], Pvalues]) -> str:
    """Write the shares of data sets in which each test rejects at 5 %."""
    found = pd.DataFrame([ask(seed) for seed in range(data_sets)])
    rejected = (found <= 0.05).mean()
    texts = [f"{test} {share:.3f}" for test, share in rejected.items()]
    return f"{case}: {', '.join(texts)}"


def timed() -> None:
    dgp = replace(DGPS["friedman10"], n=1000)
    data = dgp(np.random.default_rng(1))
    for B in (500, 2000):
        res = vs.fit("y ~ .", data, B=B, rng=1, n_jobs=2)
        start, own = time.perf_counter(), time.process_time()
        res.importance()
        wall, cpu = time.perf_counter() - start, time.process_time() - own
        print(f"importance of ten, B = {B}: {wall:.1f} s, {cpu:.1f} s of processor")


CASES = {
    "nulls": NULLS,
    "held": HELD,
    "aside": ASIDE,
    "last": LAST,
    "alternatives": ALTERNATIVES,
}


def questions(what: str, B: int) -> Iterator[tuple[str, Callable[[int], Pvalues]]]:
    """List cases, and what is asked of a data set of each."""
    if what == "pairs":
        for name, first, second in PAIRS:
            case = (name, first, second)
            yield (
                f"{name}: {first}, {second}",
                lambda seed, case=case: paired(case, seed, B),
            )
    elif what == "lines":
        yield "ols: linear20", lambda seed: lines(seed, B)
    elif what == "forests":
        for name in IDLE:
            yield name, lambda seed, name=name: forests(name, seed, B)
    else:
        for one in CASES[what]:
            yield (
                ": ".join(one),
                lambda seed, one=one: asked(one, seed, B),
            )


def main() -> None:
    warnings.simplefilter("ignore", vs.VstatkitWarning)
    if sys.argv[1:2] == ["time"]:
        timed()
        return
    data_sets = int(sys.argv[1]) if len(sys.argv) > 1 else 500
    B = int(sys.argv[2]) if len(sys.argv) > 2 else 300
    wanted = sys.argv[3:] or [*CASES, "pairs", "lines", "forests"]
    for what in wanted:
        print(f"{what}: share of {data_sets} data sets rejected at 5 %, B = {B}")
        for case, ask in questions(what, B):
            print("  ", shares(case, data_sets, ask), flush=True)
    error = 100 * np.sqrt(0.05 * 0.95 / data_sets)
    print(f"The Monte Carlo error of a share of 5 % is {error:.1f} points.")


if __name__ == "__main__":
    main()
