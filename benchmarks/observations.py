"""Limits of new observations, checked on data sets from known designs, beside peers.

`python -m benchmarks.observations [data sets] [of them with peers] [designs]` draws
data sets of 500 rows and 500 new observations, fits forests of 500 trees, and tells for
every method the share of new observations within their 95 % limits, the mean width, and
the lowest share in ten slices of the first predictor (new observations of all data sets
together, sorted by it). Designs are those of the validity study. The first six were
named before anything was tried on them; the two after them are skewed, and were not
looked at until the method was settled. Designs of classes get sets of classes. Times
are taken on the data sets with peers: those of ours are a prediction with limits over
one without, the first and the second time, those of peers are seconds.

Peers take part where they are installed: quantile-forest, and MAPIE's jackknife+ after
bootstrap with scikit-learn's trees. They are not needed for anything else.
"""

import sys
import time
import warnings
import zlib
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

import vstatkit as vs
from vstatkit.studies.dgps import DGP, DGPS

NAMES = ("mars", "linear20", "heavy", "spread", "correlated", "levels")
ASIDE = ("lognormal", "counts")
OTHERS = ("clusters", "missing")
CLASSES = ("binary", "rare", "three")
ROWS, NEW, TREES, ALPHA, SLICES = 500, 500, 500, 0.05, 10
CLUSTER_ROWS = 480
METHODS = ("local", "residuals", "jackknife+")


def drawn(name: str, number: int) -> tuple[DGP, pd.DataFrame, pd.DataFrame]:
    """Draw a data set and new observations; new clusters, where there are any."""
    rng = np.random.default_rng([zlib.crc32(name.encode()), number])
    n = CLUSTER_ROWS if DGPS[name].groups else ROWS
    dgp = replace(DGPS[name], n=n)
    return dgp, dgp(rng), replace(dgp, n=n if dgp.groups else NEW)(rng)


def fitted(dgp: DGP, data: pd.DataFrame, number: int) -> vs.EnsembleResults:
    return vs.fit(
        dgp.formula,
        data,
        B=TREES,
        groups=dgp.groups,
        missing=dgp.missing,
        rng=number,
        n_jobs=1,
    )


def ours(
    dgp: DGP, data: pd.DataFrame, new: pd.DataFrame, number: int, timed: bool
) -> Iterator[tuple[str, Any, float]]:
    """Bound new observations by every method."""
    res = fitted(dgp, data, number)
    prediction = res.get_prediction(new)
    for method in METHODS:
        frame = prediction.summary_frame(ALPHA, method)
        found = inside(new, frame["obs_ci_lower"], frame["obs_ci_upper"])
        yield method, found, np.nan
    if timed:
        fresh = replace(res)
        plain = min(seconds(lambda: fresh.get_prediction(new)) for _ in range(3))
        for method in (*METHODS, "local"):

            def bounded(method: str = method) -> None:
                fresh.get_prediction(new, obs_method=method).summary_frame(ALPHA)

            yield method, None, seconds(bounded) / plain


def seconds(call: Callable[[], Any]) -> float:
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def inside(new: pd.DataFrame, lower: Any, upper: Any) -> tuple[Any, Any]:
    y, lower, upper = (np.asarray(one) for one in (new["y"], lower, upper))
    return (lower <= y) & (y <= upper), upper - lower


def by_quantile_forest(X: Any, y: Any, at: Any, number: int) -> tuple[Any, Any]:
    from quantile_forest import RandomForestQuantileRegressor  # noqa: PLC0415

    forest = RandomForestQuantileRegressor(
        TREES, min_samples_leaf=5, max_features=1 / 3, random_state=number
    )
    found = forest.fit(X, y).predict(at, quantiles=[ALPHA / 2, 1 - ALPHA / 2])
    return found[:, 0], found[:, 1]


def by_mapie(X: Any, y: Any, at: Any, number: int) -> tuple[Any, Any]:
    from mapie.regression import JackknifeAfterBootstrapRegressor  # noqa: PLC0415
    from sklearn.tree import DecisionTreeRegressor  # noqa: PLC0415

    model = JackknifeAfterBootstrapRegressor(
        DecisionTreeRegressor(max_features=1 / 3, random_state=number),
        confidence_level=1 - ALPHA,
        resampling=TREES,
        random_state=number,
    )
    _, found = model.fit_conformalize(X, y).predict_interval(at)
    return found[:, 0, 0], found[:, 1, 0]


PEERS: dict[str, Callable[..., tuple[Any, Any]]] = {
    "quantile-forest": by_quantile_forest,
    "MAPIE J+aB": by_mapie,
}


def peers(
    data: pd.DataFrame, new: pd.DataFrame, number: int
) -> Iterator[tuple[str, Any, float]]:
    X = pd.get_dummies(data.drop(columns="y"), dtype=float)
    at = pd.get_dummies(new.drop(columns="y"), dtype=float)[X.columns]
    for name, bound in PEERS.items():
        start = time.perf_counter()
        try:
            lower, upper = bound(
                X.to_numpy(), data["y"].to_numpy(), at.to_numpy(), number
            )
        except ImportError:
            continue
        yield name, inside(new, lower, upper), time.perf_counter() - start


def row(dgp: str, method: str, parts: list[Any], x: list[Any]) -> dict[str, Any]:
    """Tabulate what a method did on all data sets of a design."""
    hits = np.concatenate([hit for hit, _ in parts])
    places = np.argsort(np.argsort(np.concatenate(x), kind="stable"))
    slices = places * SLICES // places.size
    shares = [hits[slices == one].mean() for one in range(SLICES)]
    each = [hit.mean() for hit, _ in parts]
    return {
        "law": dgp,
        "method": method,
        "data sets": len(parts),
        "coverage": hits.mean(),
        "error": np.std(each, ddof=1) / np.sqrt(len(each)) if len(each) > 1 else np.nan,
        "lowest slice": min(shares),
        "highest slice": max(shares),
        "width": np.mean([width.mean() for _, width in parts]),
    }


def numbers(name: str, count: int, with_peers: int) -> list[dict[str, Any]]:
    """Check the limits of new observations from one design."""
    parts: dict[str, list[Any]] = {}
    places: dict[str, list[Any]] = {}
    times: dict[str, list[float]] = {}
    for number in range(count):
        dgp, data, new = drawn(name, number)
        timed = number < with_peers
        found = list(ours(dgp, data, new, number, timed))
        if timed and name not in OTHERS:
            found += list(peers(data, new, number))
        for method, part, taken in found:
            times.setdefault(method, []).append(taken)
            if part is not None:
                parts.setdefault(method, []).append(part)
                places.setdefault(method, []).append(new["x1"].fillna(-1).to_numpy())
    rows = [row(name, one, part, places[one]) for one, part in parts.items()]
    for one in rows:
        taken = [time for time in times[one["method"]] if time == time]  # noqa: PLR0124
        again = taken[1::2] if one["method"] == "local" else taken
        first = taken[::2] if one["method"] == "local" else taken
        one["time"] = float(np.median(first)) if first else np.nan
        one["time again"] = float(np.median(again)) if again else np.nan
    return rows


def classes(name: str, count: int) -> list[dict[str, Any]]:
    """Check the sets of classes of one design."""
    found: dict[bool, list[Any]] = {False: [], True: []}
    for number in range(count):
        dgp, data, new = drawn(name, number)
        prediction = fitted(dgp, data, number).get_prediction(new.drop(columns="y"))
        codes = new["y"].cat.codes.to_numpy()
        for by_class, parts in found.items():
            try:
                sets = prediction.class_sets(0.1, by_class=by_class).to_numpy()
            except ValueError:
                continue
            hit = sets[np.arange(len(codes)), codes]
            within = [hit[codes == c].mean() for c in range(sets.shape[1])]
            parts.append((hit.mean(), sets.sum(axis=1).mean(), *within))
    return [
        {
            "law": name,
            "within classes": by_class,
            "data sets": len(parts),
            "coverage": np.mean([one[0] for one in parts]),
            "error": np.std([one[0] for one in parts], ddof=1) / np.sqrt(len(parts)),
            "classes in a set": np.mean([one[1] for one in parts]),
            "lowest class": np.nanmean([one[2:] for one in parts], axis=0).min(),
        }
        for by_class, parts in found.items()
        if len(parts) > 1
    ]


def main() -> None:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 100
    with_peers = int(sys.argv[2]) if len(sys.argv) > 2 else 10
    every = (*NAMES, *ASIDE, *OTHERS, *CLASSES)
    wanted = sys.argv[3].split(",") if len(sys.argv) > 3 else every
    warnings.simplefilter("ignore", vs.MonteCarloWarning)
    for name in wanted:
        if name in CLASSES:
            rows = classes(name, count)
        else:
            rows = numbers(name, count, with_peers)
        print(pd.DataFrame(rows).round(3).to_string(), flush=True)


if __name__ == "__main__":
    main()
