"""Reproduce grf's predictions and variances from its own trees."""

from os import PathLike
from typing import Any

import numpy as np

import vstatkit as vs
from r_bridge import session
from r_bridge.availability import require
from r_bridge.columns import matrix, options_of_r, read_columns
from r_bridge.compare import TOLERANCE, Comparison, Quantity
from r_bridge.grf import FLATTEN, GrfForest, split_trees, with_constants_of_grf
from r_bridge.objects import RObject
from r_bridge.recording import read_recording
from vstatkit._typing import DataLike, Floats
from vstatkit.formula.data_frames import as_frame
from vstatkit.formula.weights_and_groups import observation_weights, take_column
from vstatkit.sampling.registry import subsample_size
from vstatkit.variance.formulas import bag_moments

WHY_IJ_DIFFERS = (
    "another estimator, from the counts of one tree of each group instead of the "
    "groups; it is shown for information."
)

WHY_CONSTANTS = (
    "grf writes 1/sqrt(2 pi) and 1/sqrt(2) with ten and eleven digits; compared after "
    "exchanging the constants."
)

# Options of grf that have arguments of their own here
OWN_OPTIONS = {
    "num.trees": "B",
    "sample.fraction": "k",
    "ci.group.size": "group_size",
    "sample.weights": "weights",
    "seed": "rng",
    "num.threads": "threads",
}

GROW = """
function(X, Y, options) do.call(
  grf::regression_forest, c(list(X = X, Y = Y), options), quote = TRUE
)
"""

# What grf says at query points; without groups it has no variance
EXTRACT = """
function(forest, X, threads) {
  loadNamespace("grf")
  size <- forest[["ci.group.size"]]
  if (is.null(size)) size <- forest[["_ci_group_size"]]
  said <- predict(forest, X, estimate.variance = size > 1, num.threads = threads)
  list(
    group_size = size,
    Y = as.numeric(forest[["Y.orig"]]),
    weights = forest[["sample.weights"]],
    clusters = as.character(forest[["clusters"]]),
    predictions = said$predictions,
    variances = said$variance.estimates
  )
}
"""


def compare_grf(
    formula: str,
    data: DataLike,
    newdata: DataLike | None = None,
    *,
    k: int | float | None = None,
    B: int = 200,
    group_size: int = 2,
    honesty: bool = True,
    weights: Any = None,
    rng: int = 1,
    threads: int = 1,
    tolerance: float = TOLERANCE,
    **options: Any,
) -> Comparison:
    """Compare vstatkit with R's grf on one regression forest that grf grows.

    grf draws its own half-samples, so that its forest is taken as it is: trees,
    drawn samples and leaves are extracted, and its prediction and variance are
    computed again from them.

    Parameters
    ----------
    formula : str
        Response and numeric columns, as in R or as in patsy.
    data : DataFrame or dict of columns
        Training data; predictors may be missing, which grf takes as they are.
    newdata : DataFrame or dict of columns, optional
        Query points; the first 20 rows of the training data by default.
    k : int or float, optional
        Subsample size, at most n/2, or a fraction; n/2 by default.
    B : int
        Trees.
    group_size : int
        Trees that share a half-sample; with 1 grf has no variance to compare.
    honesty : bool
        Whether leaves average other rows than those that chose the splits.
    weights : str or array-like, optional
        Observation weights.
    rng : int
        Seed of grf.
    threads : int
        Threads that R uses.
    tolerance : float
        Largest relative difference that counts as equal.
    **options
        Options of `grf::regression_forest`, such as `min_node_size`; an
        underscore stands for R's dot.

    Returns
    -------
    Comparison

    See Also
    --------
    compare_recorded : the same for forests that were recorded from grf.
    """
    found = require("R", "rpy2", "grf")
    named = (weights,) if isinstance(weights, str) else ()
    columns = read_columns(formula, data, newdata, not_in_dot=named, missing="pass")
    if columns.parsed.classes is not None:
        raise ValueError(
            "`compare_grf` compares regression forests; the response "
            f"{columns.parsed.response!r} is not numeric."
        )
    n = len(columns.x)
    size = subsample_size(0.5 if k is None else k, n, at_most=n // 2)
    given = take_column(
        "weights",
        weights,
        columns.parsed.data,
        columns.parsed.rows,
        as_frame(data).index,
    )
    r_options = {
        "num.trees": B,
        "sample.fraction": size / n,
        "ci.group.size": group_size,
        "honesty": honesty,
        "sample.weights": observation_weights(given),
        "seed": rng,
        "num.threads": threads,
        **options_of_r(options, OWN_OPTIONS),
    }
    kept = {name: value for name, value in r_options.items() if value is not None}
    model = session.keep(GROW, matrix(columns.x), columns.parsed.y, kept)
    forest = extract(model, matrix(columns.new), threads=threads, name=formula)
    versions = {"R": str(found["R"]), "grf": str(found["grf"])}
    return compare_forest(forest, versions, tolerance)


def extract(model: RObject, X: Floats, *, threads: int, name: str) -> GrfForest:
    """Extract the trees of a grf regression forest, and its results at query points."""
    parts = session.call(EXTRACT, model, X, threads)
    return GrfForest(
        name=name,
        Y=parts["Y"],
        newdata=X,
        trees=split_trees(session.call(FLATTEN, model)),
        group_size=int(parts["group_size"][0]),
        predictions=parts["predictions"],
        variances=parts["variances"],
        weights=parts["weights"],
        clusters=parts["clusters"] if len(parts["clusters"]) else None,
    )


def compare_recorded(
    path: str | PathLike[str] | None = None, *, tolerance: float = TOLERANCE
) -> list[Comparison]:
    """Compare vstatkit with forests that were recorded from grf.

    Parameters
    ----------
    path : str or path, optional
        A file that `python -m r_bridge.record` wrote; by default the recording
        that comes with the package.
    tolerance : float
        Largest relative difference that counts as equal.

    Examples
    --------
    >>> import r_bridge
    >>> [comparison.ok for comparison in r_bridge.compare_recorded()]
    [True, True, True]
    """
    recording = read_recording(path)
    versions = {**recording.versions, "recorded": "yes"}
    return [compare_forest(forest, versions, tolerance) for forest in recording.forests]


def compare_forest(
    forest: GrfForest, versions: dict[str, str], tolerance: float
) -> Comparison:
    """Recompute grf's results from its trees, and compare."""
    values = forest.pseudo_values
    quantities = [
        Quantity("prediction", forest.prediction, forest.predictions, tolerance)
    ]
    if forest.tree_predictions is not None:
        trees = Quantity("tree predictions", values, forest.tree_predictions, tolerance)
        quantities.insert(0, trees)
    if forest.variances is not None:
        quantities += _variances(forest, forest.variances, tolerance)
    n, size = len(forest.Y), len(forest.trees[0].drawn)
    return Comparison(
        title=f"vstatkit and grf: {forest.name}",
        setting=(
            f"n = {n}, k = {size}, B = {len(forest.trees)}, groups of "
            f"{forest.group_size}"
        ),
        quantities=tuple(quantities),
        versions={"vstatkit": vs.__version__, **versions},
    )


def _variances(forest: GrfForest, theirs: Floats, tolerance: float) -> list[Quantity]:
    """Compare variances by little bags, and show another estimator if it applies."""
    ours = bags_variance(forest)
    bags = Quantity("little bags", ours, theirs, tolerance, WHY_CONSTANTS)
    values = forest.pseudo_values
    if not np.isfinite(values).all():
        return [bags]
    # Trees of a group share a half-sample; one of each group is a plain subsample.
    first = slice(None, None, forest.group_size)
    ij_u = vs.variance_components(
        forest.counts[first], values[first], method="ij_u", replace=False
    )
    return [bags, Quantity("IJ-U", ij_u.sampling, theirs, None, WHY_IJ_DIFFERS)]


def bags_variance(forest: GrfForest) -> Floats:
    """Estimate variances like grf, by `method="little_bags"` or point by point.

    Points whose trees have empty leaves use part of the groups each.
    """
    values = forest.pseudo_values
    if not np.isfinite(values).all():
        return forest.variance()
    parts = vs.variance_components(
        forest.counts, values, method="little_bags", replace=False, groups=forest.groups
    )
    return with_constants_of_grf(parts.sampling, *bag_moments(values, forest.groups))
