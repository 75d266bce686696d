"""Comparisons of the corrected estimators with R in random settings."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from importlib import resources
from typing import Any

import numpy as np
import pandas as pd

import vstatkit as vs
from r_bridge import session
from r_bridge.adopt import TreesInR
from r_bridge.availability import require
from r_bridge.battery import FORMULA, data_set
from r_bridge.check_ranger import draw_counts
from r_bridge.columns import ForestData, read_columns
from r_bridge.compare import TOLERANCE, Comparison, Quantity
from r_bridge.convert import counts_to_inbag, to_r_frame
from r_bridge.forests import RForest
from r_bridge.objects import RObject
from vstatkit._typing import Ints
from vstatkit.variance.registry import ESTIMATORS

# What a setting must have, by section of the certificate; the rest is drawn
FEATURES = ("votes", "weights", "clusters", "missing values")

POINTS = 6  # query points

WHY_IN_R = (
    "compared with formulas written in plain R (r_bridge/corrected.R), on rows or "
    "clusters that R has kept and counted."
)

_GROW = """
function(x, y, options) {
  given <- list(x = x, y = y, keep.inbag = TRUE, verbose = FALSE, num.threads = 1)
  do.call(ranger::ranger, c(given, options), quote = TRUE)
}
"""

_COMPLETE = "function(frame) which(stats::complete.cases(frame))"

# Votes are counted by class; of two classes the second one's share is the estimate.
_VALUES = """
function(forest, x) {
  found <- predict(forest, data = x, predict.all = TRUE, num.threads = 1,
                   seed = 1)$predictions
  if (forest$treetype == "Regression") return(found)
  if (forest$treetype == "Classification") {
    codes <- seq_along(forest$forest$levels)
    found <- aperm(sapply(codes, function(code) 1 * (found == code),
                          simplify = "array"), c(1, 3, 2))
  }
  if (dim(found)[2] == 2) return(found[, 2, ])
  matrix(aperm(found, c(2, 1, 3)), ncol = dim(found)[3])
}
"""

_INBAG = "function(forest) simplify2array(forest$inbag.counts)"


@dataclass(frozen=True)
class Drawn:
    """A random setting."""

    seed: int  # seed of the data and of the subsamples
    n: int  # rows before any is dropped
    B: int  # trees
    fraction: float  # size of subsamples as a share of rows, or of clusters
    replace: bool  # with replacement or without
    kind: str  # of forest: "regression", "probability" or "votes"
    weighted: bool  # whether ranger draws rows itself, by weights
    clusters: int  # clusters that rows are in; 0 for none
    gaps: float  # share of cells that are missing
    options: dict[str, Any]  # options of ranger

    def __str__(self) -> str:
        way = "with" if self.replace else "without"
        parts = [self.kind, f"{way} replacement", f"n = {self.n}", f"B = {self.B}"]
        parts += [f"{self.fraction:.2f} of the units a tree"]
        parts += ["rows drawn by weights"] * self.weighted
        parts += [f"{self.clusters} clusters"] * bool(self.clusters)
        parts += [f"{self.gaps:.0%} of the cells missing"] * bool(self.gaps)
        return ", ".join([*parts, f"seed {self.seed}"])


def draw(feature: str, seed: int) -> Drawn:
    """Draw a random setting with a given feature."""
    rng = np.random.default_rng([FEATURES.index(feature), seed])
    n = int(rng.integers(30, 70))
    kinds = ["regression", "probability", "votes"]
    weighted = feature == "weights" or (feature != "clusters" and rng.random() < 0.3)
    clusters = int(rng.integers(12, n // 2 + 1))
    grouped = feature == "clusters" or (not weighted and rng.random() < 0.3)
    return Drawn(
        seed=seed,
        n=n,
        B=int(rng.integers(60, 200)),
        fraction=float(rng.uniform(0.25, 0.8)),
        replace=bool(rng.random() < 0.5),
        kind="votes" if feature == "votes" else str(rng.choice(kinds)),
        weighted=weighted,
        clusters=clusters if grouped else 0,
        gaps=0.04 if feature == "missing values" or rng.random() < 0.3 else 0.0,
        options={
            "mtry": int(rng.integers(1, 5)),
            "min.node.size": int(rng.integers(1, 8)),
            "max.depth": int(rng.integers(2, 8)),
            "seed": int(rng.integers(1, 2**31)),
        },
    )


def drawn_sections(kind: RForest, seeds: Iterable[int]) -> dict[str, list[Comparison]]:
    """Run all comparisons in random settings, by feature, one for each seed."""
    each = list(seeds)
    return {
        f"drawn at random, with {feature}": [
            compare_drawn(kind, draw(feature, seed)) for seed in each
        ]
        for feature in FEATURES
    }


def data_of(setting: Drawn) -> pd.DataFrame:
    """Draw data of the battery, with missing values if required."""
    rng = np.random.default_rng([setting.seed, 1])
    columns = ["x 1", "x2", "größe", "x4", "y"]
    data = data_set(setting.seed, setting.kind, setting.n)[columns]
    return data.mask(rng.random(data.shape) < setting.gaps)


def compare_drawn(kind: RForest, setting: Drawn) -> Comparison:
    """Fit one forest, and compare the corrected estimators with R's."""
    found = require("R", "rpy2", "ranger")
    data = data_of(setting)
    elsewhere = replace(setting, seed=setting.seed + 1000, n=60, gaps=0.0)
    points = data_of(elsewhere).dropna().head(POINTS)
    columns = read_columns(FORMULA, data, points)
    unit = _units(setting, len(columns.x))
    forest = _grown(setting, columns, unit)
    estimates = _estimates(setting, kind, forest, columns, unit)
    versions = {name: str(found[name]) for name in ("R", "ranger")}
    return Comparison(
        title=f"vstatkit and R: {FORMULA}",
        setting=str(setting),
        quantities=(_rows(data, columns), *estimates),
        versions={"vstatkit": vs.__version__, **versions},
    )


def _units(setting: Drawn, n: int) -> Ints:
    """Return the unit of every row: its cluster, or the row itself."""
    if not setting.clusters:
        return np.arange(n)
    rng = np.random.default_rng([setting.seed, 2])
    codes = rng.integers(setting.clusters, size=n)
    return np.asarray(np.unique(codes, return_inverse=True)[1], dtype=np.int64)


def _grown(setting: Drawn, columns: ForestData, unit: Ints) -> RObject:
    """Fit a ranger forest, on subsamples drawn here or by weights."""
    n = int(unit.max()) + 1
    size = max(2, round(setting.fraction * n))
    options = {
        **setting.options,
        "num.trees": setting.B,
        "probability": setting.kind == "probability",
    }
    if setting.weighted:
        rng = np.random.default_rng([setting.seed, 3])
        weights = rng.uniform(0.2, 2, len(unit))
        drawing = {"replace": setting.replace, "sample.fraction": size / n}
        options |= {"case.weights": weights, **drawing}
    else:
        counts = draw_counts(
            "iid", n, size, setting.B, replace=setting.replace, seed=setting.seed
        )
        options["inbag"] = counts_to_inbag(counts[:, unit])
    response = to_r_frame(columns.response.to_frame("y"))
    answers = session.keep("function(frame) frame$y", response)
    return session.keep(_GROW, to_r_frame(columns.x), answers, options)


def _rows(data: pd.DataFrame, columns: ForestData) -> Quantity:
    """Compare the rows that are complete."""
    ours = np.asarray(columns.parsed.rows, dtype=float) + 1
    theirs = np.asarray(session.call(_COMPLETE, to_r_frame(data)), dtype=float)
    if ours.shape != theirs.shape:  # no row is like another's
        ours, theirs = np.array([float(ours.size)]), np.array([float(theirs.size)])
    return Quantity("rows kept", ours, theirs, 0.0)


def _estimates(
    setting: Drawn, kind: RForest, forest: RObject, columns: ForestData, unit: Ints
) -> list[Quantity]:
    """Compute the estimators here, from the adopted forest, and in R."""
    fitted = kind.describe(kind.find(forest))
    read = kind.reader(fitted, to_r_frame(columns.x), 1)
    n_classes = None if fitted.classes is None else len(fitted.classes)
    values = TreesInR(len(fitted.columns), n_classes).predict(read, columns.new)
    firsts = np.unique(unit, return_index=True)[1]
    inbag = session.keep(_INBAG, forest)
    points = session.keep("function(x) x", to_r_frame(columns.new))
    code = resources.files("r_bridge").joinpath("corrected.R").read_text("utf-8")
    theirs = session.call(
        code, inbag, session.keep(_VALUES, forest, points), unit.astype(float)
    )
    methods = (
        ["corrected_v", "corrected_v_simple"] if setting.replace else ["corrected_u"]
    )
    found = {
        method: vs.variance_components(
            fitted.counts[:, firsts], values, method=method, replace=setting.replace
        )
        for method in ["bm", *methods]
    }
    monte_carlo = found["bm"].monte_carlo
    return [
        Quantity("zeta_k/B", monte_carlo, theirs["monte_carlo"], TOLERANCE, WHY_IN_R),
        *(
            Quantity(
                ESTIMATORS[method].label,
                one.sampling,
                np.asarray(theirs[method], dtype=float),
                TOLERANCE,
                WHY_IN_R,
            )
            for method, one in found.items()
        ),
    ]
