"""The fixed data sets and settings of the certificate."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from r_bridge.availability import Availability
from r_bridge.check_grf import compare_grf, compare_recorded
from r_bridge.check_ranger import compare_ranger
from r_bridge.compare import Comparison
from vstatkit import datasets

N = 50  # observations of each data set

B = 100  # trees; n divides B k for every k below, so that balanced designs are exact

# Trees of regression forests on small subsamples: ranger's jackknife after bootstrap
# takes off (e - 1) n v/B, which leaves zero where trees are few
MANY_TREES = {"n/2": 2000, "n/5": 4000}

POINTS = 12  # query points; ranger calibrates above 20

# How many of ten data sets have balanced designs; the others have iid ones
BALANCED_SEEDS = 7

FORMULA = "y ~ `x 1` + x2 + größe + x4"


@dataclass(frozen=True)
class Setting:
    """One way to grow ranger's forests."""

    title: str  # what the certificate calls it
    kind: str  # of forest: "regression" or "probability"
    replace: bool  # with replacement or without
    k: int  # subsample size
    B: int = B  # trees
    points: int = POINTS  # query points
    # "balanced" or "iid"; None leaves it to the data set's number
    design: str | None = None


def _main_settings() -> Iterator[Setting]:
    sizes = {
        True: {"n": N, "n/2": N // 2, "n/5": N // 5},
        False: {"4n/5": 4 * N // 5, "n/2": N // 2, "n/5": N // 5},
    }
    for kind in ("regression", "probability"):
        for replace, named in sizes.items():
            way = "with" if replace else "without"
            for name, k in named.items():
                title = f"{kind}, {way} replacement, k = {name}"
                trees = MANY_TREES.get(name, B) if kind == "regression" else B
                yield Setting(title, kind, replace, k, trees)


# Two kinds of forest, each with three sizes with and three without replacement
SETTINGS = tuple(_main_settings())

# Where ranger's formulas have corners
EDGE_CASES = (
    Setting(
        "few trees without replacement: rows that every tree has seen",
        "regression",
        replace=False,
        k=4 * N // 5,
        B=8,
        design="iid",
    ),
    Setting(
        "few trees with replacement: rows that every tree has seen",
        "probability",
        replace=True,
        k=2 * N,
        B=8,
        design="iid",
    ),
    Setting(
        "tiny subsamples with replacement that repeat no row",
        "regression",
        replace=True,
        k=1,
        B=B,
    ),
    Setting(
        "many trees: jackknife after bootstrap above zero",
        "regression",
        replace=True,
        k=N // 2,
        B=1000,
    ),
    Setting("one query point", "probability", replace=True, k=N // 2, points=1),
    Setting(
        "more than 20 query points: ranger calibrates",
        "regression",
        replace=False,
        k=N // 2,
        points=30,
    ),
)


def data_set(seed: int, kind: str, n: int = N) -> pd.DataFrame:
    """Draw a data set: numbers, a factor with an unused level, awkward names."""
    data = datasets.mars(n, rng=seed)
    groups = pd.cut(data["x3"], [0, 0.3, 0.7, 1], labels=["low", "mid", "high"])
    levels = ["low", "mid", "high", "unused"]
    data = data.assign(größe=groups.cat.set_categories(levels))
    data = data.rename(columns={"x1": "x 1"})
    if kind == "regression":
        return data
    labels = ["no", "yes"] if seed % 2 else ["a", "b b", "ç"]
    return data.assign(y=pd.qcut(data["y"], len(labels), labels=labels))


def compare_setting(setting: Setting, seed: int) -> Comparison:
    """Compare with ranger in one setting, on one data set."""
    by_seed = "balanced" if seed % 10 < BALANCED_SEEDS else "iid"
    return compare_ranger(
        FORMULA,
        data_set(seed, setting.kind),
        query_points(seed, setting),
        k=setting.k,
        B=setting.B,
        replace=setting.replace,
        design=setting.design or by_seed,
        rng=seed,
    )


def query_points(seed: int, setting: Setting) -> pd.DataFrame:
    """Draw query points that are not training data."""
    return data_set(seed + 1000, setting.kind).head(setting.points)


# Ways to grow grf's forests, by what sets them apart
GRF_SETTINGS: dict[str, dict[str, Any]] = {
    "grf's defaults": {},
    "without honesty": {"honesty": False},
    "groups of four, k = 0.4 n": {"group_size": 4, "k": 0.4},
    "weights": {"weights": "w"},
    "weights, leaves not pruned": {"weights": "w", "honesty_prune_leaves": False},
    "missing values": {"gaps": True},
}


def compare_live_grf(found: Availability) -> dict[str, Comparison]:
    """Compare with forests fitted by grf, if it is installed, by setting."""
    if found["grf"] is None:
        return {}
    return {name: _compare_grf(**given) for name, given in GRF_SETTINGS.items()}


def _compare_grf(*, gaps: bool = False, **options: Any) -> Comparison:
    data = datasets.mars(150, rng=1).assign(w=np.linspace(0.5, 2, 150))
    if gaps:
        data.loc[::5, "x1"] = np.nan
    points = datasets.mars(20, rng=2)
    return compare_grf("y ~ x1 + x2 + x3 + x4", data, points, **options)


def ranger_sections(seeds: Sequence[int]) -> dict[str, list[Comparison]]:
    """Run all comparisons with ranger, by the title of their setting."""
    main = {
        setting.title: [compare_setting(setting, seed) for seed in seeds]
        for setting in SETTINGS
    }
    edges = {
        setting.title: [compare_setting(setting, seeds[0])] for setting in EDGE_CASES
    }
    return main | edges


def grf_sections(found: Availability) -> dict[str, list[Comparison]]:
    """Run all comparisons with grf, recorded ones first, one section each."""
    recorded = {f"recorded, {_name(one)}": [one] for one in compare_recorded()}
    live = {
        f"live, {name}, {one.setting}": [one]
        for name, one in compare_live_grf(found).items()
    }
    return recorded | live


def _name(comparison: Comparison) -> str:
    """Name of the forest, and how it was grown."""
    return f"{comparison.title.partition(': ')[2]}, {comparison.setting}"
