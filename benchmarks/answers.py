"""Every number of many calls, to show that a change leaves them as they were.

`python -m benchmarks.answers write FILE` fits ensembles of every kind and writes what
they answer, each number in its hexadecimal form; run it in the two versions to compare,
on the same machine and with the same number of threads. `python -m benchmarks.answers
compare OLD NEW` prints the largest difference and every answer that differs.
"""

import json
import math
import pickle
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy import sparse
from sklearn.datasets import load_diabetes
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
from sklearn.linear_model import Ridge

import vstatkit as vs

Answer = dict[str, list[str]]
SIZES = {"k": 30, "B": 120, "rng": 5, "n_jobs": 1, "progress": False}
ESTIMATORS = [
    "im",
    "bm",
    "ij",
    "ij_u",
    "jackknife",
    "hoeffding",
    "corrected_v",
    "corrected_v_simple",
    "corrected_u",
    "little_bags",
    "matched",
    "shards",
    "corrected",
    "auto",
]


def make_frame(n: int = 90) -> pd.DataFrame:
    """Numbers, integers, a binary column, two factors, clusters, weights, responses."""
    rng = np.random.default_rng(3)
    data = pd.DataFrame(rng.normal(size=(n, 3)).round(3), columns=["x1", "x2", "x3"])
    data["skewed"] = np.exp(data["x2"]).round(3)
    data["visits"] = rng.poisson(2, n)
    data["treated"] = rng.integers(0, 2, n)
    data["region"] = rng.choice(["north", "south", "west"], n)
    data["dose"] = pd.Categorical(rng.choice(["low", "mid", "high"], n), ordered=True)
    data["clinic"] = np.arange(n) % 22
    data["weight"] = rng.uniform(0.5, 2, n).round(2)
    signal = (
        data["x1"] + data["x2"] * (data["region"] == "west") + 0.5 * data["treated"]
    )
    data["y"] = (signal + rng.normal(0, 0.5, n)).round(3)
    data["sick"] = np.where(signal + rng.normal(0, 1, n) > 0.3, "yes", "no")
    data["grade"] = pd.cut(data["y"], 3, labels=["a", "b", "c"]).astype(str)
    return data


def fits(data: pd.DataFrame) -> dict[str, Callable[[], Any]]:
    """Fits by name: every kernel, design, target, and kind of data."""
    mixed = "y ~ x1 + x2 + visits + treated + region"
    holes = data.mask(np.random.default_rng(8).uniform(size=data.shape) < 0.03)
    holes[["y", "clinic"]] = data[["y", "clinic"]]

    def fit(formula: str = mixed, frame: pd.DataFrame = data, **options: Any) -> Any:
        return lambda: vs.fit(formula, frame, **{**SIZES, **options})

    return {
        "forest": fit(),
        "forest at": fit(at=data.head(4)),
        "all columns": fit(
            "y ~ .", data[["y", "x1", "x2", "skewed", "dose", "region"]]
        ),
        "forest U": fit(replace=False),
        "auto B": fit("y ~ x1 + x2", B="auto", tol=0.3),
        "default k": fit("y ~ x1 + x2 + region", k=None),
        "k = n": fit("y ~ x1 + x2", k=90),
        "mtry": fit(max_features=1, min_samples_leaf=3),
        "extremely random": fit("y ~ x1 + x2", splitter="random"),
        "honest": fit("y ~ x1 + x2", honest=True),
        "tree": fit(kernel="tree", max_depth=3),
        "trend": fit("y ~ x1 + x2", trend="linear"),
        "boosted": fit("y ~ x1 + x2", boost=1),
        "truth": fit("y ~ x1 + x2", target="truth"),
        "OLS": fit("y ~ x1 + x2 + treated", kernel="ols"),
        "logit": fit("I(sick == 'yes') ~ x1 + x2", kernel="logit", k=60),
        "scikit-learn": fit("y ~ x1 + x2", kernel=Ridge()),
        "function": fit("y ~ x1", kernel=lambda frame: frame["y"].mean()),
        "binary": fit("treated ~ x1 + x2"),
        "two classes": fit("sick ~ x1 + x2 + region"),
        "three classes": fit("grade ~ x1 + x2"),
        "log response": fit("np.log(skewed) ~ x1 + bs(x3, df=4)"),
        "clusters": fit(groups="clinic", k=10),
        "weights": fit(weights="weight"),
        "clusters, weights": fit(groups="clinic", weights="weight", k=10),
        "missing dropped": fit(frame=holes),
        "missing passed": fit("y ~ x1 + x2 + visits", holes, missing="pass"),
        "complete": fit("y ~ x1", data.head(9), k=3, B="complete", replace=False),
        "two threads": fit("y ~ x1 + x2", n_jobs=2),
        **{
            name: fit("y ~ x1 + x2 + region", design=name, **options)
            for name, options in {
                "iid": {},
                "balanced": {"block": 30},
                "two-level": {},
                "little-bags": {"replace": False, "k": 20},
                "matched": {"replace": False, "k": 20},
                "shards": {"k": 10, "n_shards": 8},
            }.items()
        },
    }


def statistics(data: pd.DataFrame) -> dict[str, Callable[[], Any]]:
    """Named and own statistics, ensembles made elsewhere, and forests."""
    values = data["y"].to_numpy()
    pairs = data[["x1", "y"]].to_numpy()
    rng = np.random.default_rng(2)
    counts = np.stack(
        [np.bincount(rng.integers(0, 40, 20), minlength=40) for _ in range(99)]
    )
    presence = np.stack(
        [np.isin(np.arange(40), rng.choice(40, 15, False)) for _ in range(99)]
    )
    table = rng.normal(size=(99, 3)) + counts[:, :3]
    bunch = load_diabetes()
    X, y = bunch.data[:100], bunch.target[:100]
    trees = {"n_estimators": 60, "random_state": 1}
    return {
        "mean": lambda: vs.statistic("variance", values, **SIZES),
        "gini U": lambda: vs.statistic("gini", values, replace=False, **SIZES),
        "kendall": lambda: vs.statistic("kendall", pairs, **SIZES),
        "own": lambda: vs.statistic(lambda d: {"a": d["y"].mean()}, data, **SIZES),
        "complete gini": lambda: vs.statistic(
            "gini", values[:10], k=3, B="complete", replace=False, rng=5
        ),
        "arrays V": lambda: vs.from_arrays(counts, table, replace=True),
        "arrays U": lambda: vs.from_arrays(presence.astype(int), table, replace=False),
        "sklearn forest": lambda: vs.from_sklearn(
            RandomForestRegressor(max_samples=40, **trees).fit(X, y), X, y, X[:5]
        ),
        "sklearn classes": lambda: vs.from_sklearn(
            RandomForestClassifier(**trees).fit(X, y > 140), X, y > 140, X[:5]
        ),
        "ForestRegressor": lambda: forest_answers(
            vs.ForestRegressor(80, random_state=3), X, y
        ),
        "ForestClassifier": lambda: forest_answers(
            vs.ForestClassifier(80, random_state=3), X, y > 140
        ),
    }


def forest_answers(forest: Any, X: Any, y: Any) -> Any:
    """Fit an estimator of scikit-learn's kind and predict with it."""
    fitted = forest.fit(X, y)
    return [
        getattr(fitted, "predict_proba", fitted.predict)(X[:9], return_std=True),
        fitted.feature_importances_,
        str(fitted.summary()),
        fitted.partial_dependence(X, 2, grid_resolution=3),
        fitted.results_,
    ]


def questions(new: pd.DataFrame) -> dict[str, Callable[[Any], Any]]:
    """Return calls by name; where a fit cannot answer one, its error is the answer."""

    def saved(res: Any) -> Any:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "results.vst"
            res.save(path)
            again = vs.load(path)
        return [again, str(again.summary())]

    return {
        "table": lambda res: res,
        "summary": lambda res: str(res.summary()),
        "frame": lambda res: res.summary_frame(0.1),
        "tidy, glance": lambda res: [res.tidy(), res.glance()],
        "normality": lambda res: [res.normality, res.normality_check()],
        "diagnostics": lambda res: res.diagnostics,
        "influence": lambda res: [res.influence, res.most_influential],
        "covariances": lambda res: res.cov_params(),
        "bands": lambda res: res.conf_int(simultaneous=True),
        "tolerance": lambda res: res.tolerance,
        "compare": lambda res: res.compare_variance(),
        "contrast": lambda res: res.t_test(np.eye(len(res.params))[-1]),
        "all zero": lambda res: res.wald_test(np.eye(len(res.params))),
        "transform": lambda res: res.transform(lambda b: b**2 + b[::-1]),
        "effects": lambda res: [res.effects, res.typical],
        "scores": lambda res: [res.scores.table, res.resid, res.fittedvalues],
        "predict": lambda res: res.predict(new),
        "prediction": lambda res: res.get_prediction(new),
        "observations": lambda res: res.get_prediction(new).summary_frame(),
        "prediction summary": lambda res: str(res.get_prediction(new).summary()),
        "class sets": lambda res: res.get_prediction(new).class_sets(),
        "difference": lambda res: res.get_prediction(new).t_test([1, -1, 0, 0]),
        "averages": lambda res: res.avg_predictions(),
        "averages of sample": lambda res: res.avg_predictions(se="sample"),
        "averages by region": lambda res: res.avg_predictions(by="region"),
        "average effects": lambda res: [e := res.avg_effects(), str(e.summary())],
        "average slopes": lambda res: res.avg_slopes("x1"),
        "curve": lambda res: [
            c := res.partial_dependence("x1", points=4),
            str(c.summary()),
        ],
        "accumulated": lambda res: res.accumulated_effects("x1", points=4),
        "importance": lambda res: res.importance(copies=3, learners=60),
        "interaction": lambda res: res.interaction_test("x1", "x2").frame,
        "additivity": lambda res: res.additivity_test().frame,
        "bias": lambda res: res.bias_left(),
        "bootstrap": lambda res: (
            res.bootstrap(8, rng=2, n_jobs=1, progress=False).estimates
        ),
        "more": lambda res: res.more(600, n_jobs=1, progress=False),
        "save": saved,
        "pickle": lambda res: pickle.loads(pickle.dumps(res)),
        **{f"variance {v}": lambda res, v=v: res.with_variance(v) for v in ESTIMATORS},
        **{
            f"prediction {v}": lambda res, v=v: (
                res.with_variance(v).get_prediction(new).summary_frame()
            )
            for v in ESTIMATORS
        },
    }


TABLE_PARTS = ("params", "bse", "df", "pvalues", "values")
COMPONENTS = ("zeta_1", "zeta_k", "sampling", "monte_carlo", "total", "mc_se")


def parts(item: Any, name: str = "") -> Iterator[tuple[str, Any]]:
    """Split lists of answers, and tables of estimates, into parts with names."""
    if isinstance(item, list):
        for position, entry in enumerate(item):
            yield from parts(entry, f"{name} {position}")
    elif hasattr(item, "params") and hasattr(item, "conf_int"):
        yield f"{name} conf_int", item.conf_int()
        for part in TABLE_PARTS:
            if hasattr(item, part):
                yield f"{name} {part}", getattr(item, part)
        for part in COMPONENTS:
            if hasattr(getattr(item, "components", None), part):
                yield f"{name} {part}", getattr(item.components, part)
    else:
        yield name, item


def numbers(item: Any) -> Iterator[str]:  # noqa: C901, PLR0912
    """Yield the numbers and texts of an answer, in order."""
    if item is None or isinstance(item, bool | str | np.bool_):
        yield f"{item}"
    elif isinstance(item, int | float | np.number):
        yield float(item).hex()
    elif isinstance(item, pd.DataFrame):
        yield from map(str, item.columns)
        for position in range(item.shape[1]):
            yield from numbers(item.iloc[:, position].to_numpy())
        yield from numbers(item.index.to_numpy())
    elif isinstance(item, pd.Series | pd.Index):
        yield from numbers(item.to_numpy())
    elif sparse.issparse(item):
        yield from numbers(item.toarray())
    elif isinstance(item, np.ndarray | pd.api.extensions.ExtensionArray):
        for entry in np.asarray(item).ravel().tolist():
            yield from numbers(entry)
    elif isinstance(item, Mapping):
        for key, entry in item.items():
            yield str(key)
            yield from numbers(entry)
    elif isinstance(item, list | tuple):
        for entry in item:
            yield from numbers(entry)
    elif hasattr(item, "frame"):
        yield from numbers(item.frame() if callable(item.frame) else item.frame)
    elif is_dataclass(item):
        yield from numbers([getattr(item, field.name) for field in fields(item)])
    else:
        yield type(item).__name__


def answer(name: str, call: Callable[[], Any]) -> Answer:
    """Call, and list what is returned or raised."""
    try:
        return {name + part: list(numbers(item)) for part, item in parts(call())}
    except Exception as error:
        return {name: [type(error).__name__, str(error)]}


def collect() -> Answer:
    data = make_frame()
    new = data.iloc[[3, 17, 41, 60]].assign(x1=[-1.0, 0.0, 0.5, 2.0])
    numeric = load_diabetes(as_frame=True).data.iloc[[3, 17, 41, 60]]
    numeric.columns = [f"x{i}" for i in range(numeric.shape[1])]
    answers: Answer = {}
    for name, build in {**fits(data), **statistics(data)}.items():
        try:
            res = build()
        except Exception as error:
            answers[name] = [type(error).__name__, str(error)]
            continue
        if not isinstance(res, vs.EnsembleResults):
            answers |= answer(name, lambda res=res: res)
            continue
        for question, ask in questions(numeric if "sklearn" in name else new).items():
            answers |= answer(f"{name}: {question}", lambda ask=ask, res=res: ask(res))
    return answers


def as_number(text: str) -> float | None:
    """Read a number in hexadecimal form; None for a text."""
    if text in {"inf", "-inf", "nan"} or "0x" in text:
        try:
            return float.fromhex(text)
        except ValueError:
            return None
    return None


def difference(old: list[str], new: list[str]) -> tuple[float, list[str]]:
    """Return the largest difference of numbers, and the texts that differ."""
    if len(old) != len(new):
        return math.inf, [f"{len(old)} and {len(new)} entries: {old[:2]} and {new[:2]}"]
    largest, texts = 0.0, []
    for a, b in zip(old, new, strict=True):
        if a == b:
            continue
        x, y = as_number(a), as_number(b)
        if x is None or y is None:
            texts.append(f"- {a}\n+ {b}")
        else:
            gap = abs(x - y)
            largest = max(largest, math.inf if math.isnan(gap) else gap)
    return largest, texts


def compare(old: Answer, new: Answer) -> None:
    """Print what differs, and how much was compared."""
    largest, changed = 0.0, 0
    for name in [*old, *(name for name in new if name not in old)]:
        if name not in old or name not in new:
            print(f"only in {'OLD' if name in old else 'NEW'}: {name}")
            continue
        gap, texts = difference(old[name], new[name])
        largest, changed = max(largest, gap), changed + bool(texts)
        if gap:
            print(f"{name}: numbers differ by {gap:g}")
        for text in texts:
            print(f"{name}: text differs\n{text}")
    entries = [text for texts in new.values() for text in texts]
    count = sum(as_number(text) is not None for text in entries)
    errors = sum(
        bool(t) and t[0].endswith(("Error", "Exception")) for t in new.values()
    )
    print(
        f"{len(new)} answers, {errors} of them errors, with {count} numbers; largest "
        f"difference {largest:g}; texts differ in {changed} answers"
    )


def main(task: str, *paths: str) -> None:
    if task == "write":
        warnings.simplefilter("ignore")
        Path(paths[0]).write_text(json.dumps(collect()))
    else:
        old, new = (json.loads(Path(path).read_text()) for path in paths)
        compare(old, new)


if __name__ == "__main__":
    main(*sys.argv[1:])
