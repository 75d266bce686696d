"""Forests of ranger and grf for recordings."""

from dataclasses import replace
from typing import Any

import numpy as np

from r_bridge import session
from r_bridge.availability import available
from r_bridge.battery import FORMULA, SETTINGS, B, Setting, data_set, query_points
from r_bridge.check_grf import EXTRACT, GROW
from r_bridge.check_ranger import draw_counts
from r_bridge.columns import read_columns
from r_bridge.ranger import grow
from r_bridge.recording import ranger_document
from vstatkit import datasets

RANGER_POINTS = 3  # query points of a recorded ranger forest, which keep the file small

# All trees, node by node, as grf shows them
TREES = """
function(forest) lapply(seq_len(forest[["_num_trees"]]), function(index) {
  unclass(grf::get_tree(forest, index))[c("drawn_samples", "nodes")]
})
"""

# Settings of the grf forests that are recorded
GRF_FORESTS: dict[str, dict[str, Any]] = {
    "honest": {},
    "adaptive": {"honesty": False},
    "group4": {"ci.group.size": 4, "sample.fraction": 0.4},
    "weighted": {"sample.weights": np.linspace(0.5, 2, 150)},
    "unpruned": {"honesty.prune.leaves": False, "min.node.size": 1},
}


def record_ranger() -> dict[str, Any]:
    """Fit a ranger forest in every setting of the battery, and record its numbers."""
    found = available()
    versions = {"r_version": found["R"], "ranger_version": found["ranger"]}
    return {**versions, "forests": [_ranger_forest(setting) for setting in SETTINGS]}


def _ranger_forest(setting: Setting) -> dict[str, Any]:
    few = replace(setting, points=RANGER_POINTS)
    data = read_columns(FORMULA, data_set(0, few.kind), query_points(0, few))
    n = len(data.x)
    counts = draw_counts("balanced", n, few.k, B, replace=few.replace, seed=0)
    forest = grow(data, counts, seed=1, threads=1, options={})
    return ranger_document(
        few.title, forest, replace=few.replace, regression=few.kind == "regression"
    )


def record_grf() -> dict[str, Any]:
    """Fit grf forests in several settings, and record their trees and numbers."""
    data = datasets.mars(150, rng=1).round(4)
    X, Y = data.drop(columns=["y", "x5"]).to_numpy(), data["y"].to_numpy()
    points = datasets.mars(25, rng=2).round(4).drop(columns=["y", "x5"]).to_numpy()
    return {
        "grf_version": available()["grf"],
        "r_version": session.call("function() R.version.string")[0],
        "X": X,
        "Y": Y,
        "newdata": points,
        "forests": [_grf_forest(name, X, Y, points) for name in GRF_FORESTS],
    }


def _grf_forest(name: str, X: Any, Y: Any, points: Any) -> dict[str, Any]:
    options = {"num.trees": 200, "seed": 1, "num.threads": 1, **GRF_FORESTS[name]}
    model = session.keep(GROW, X, Y, options)
    parts, trees = session.call(EXTRACT, model, points, 1), session.call(TREES, model)
    return {
        "name": name,
        "num_trees": len(trees),
        "ci_group_size": int(parts["group_size"][0]),
        "weights": parts["weights"],
        "predictions": parts["predictions"],
        "variance_estimates": parts["variances"],
        "trees": trees,
    }
