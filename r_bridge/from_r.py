"""Results from forests that ranger, randomForest and grf have grown."""

import warnings
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from r_bridge import session
from r_bridge.adopt import (
    AdoptedForest,
    check_columns,
    check_grown,
    check_inbag,
    check_present,
    check_rows,
    check_training,
    check_votes,
    is_stratified,
    of_class,
    oob_scores,
    response_name,
    stratified_by,
)
from r_bridge.availability import require
from r_bridge.check_grf import extract
from r_bridge.columns import aligned_frame, as_query, kind_of, matrix
from r_bridge.convert import to_r_frame, trees_first
from r_bridge.exceptions import RError
from r_bridge.grf import GrfForest
from r_bridge.ranger import RangerForest
from vstatkit import EnsembleResults, VstatkitWarning
from vstatkit._typing import DataLike, Floats
from vstatkit.formula.frames import as_frame

# Columns of probabilities have the order of the levels; without levels, as for
# TRUE and FALSE, that in which the classes occur in the training data.
_ABOUT_RANGER = """
function(forest) {
  oob <- if (length(forest$predictions)) forest$predictions
  codes <- forest$forest$class.values
  levels <- forest$forest$levels
  places <- if (!is.null(codes)) order(codes)
  classes <- if (!is.null(levels)) levels[codes]
    else if (is.matrix(oob)) colnames(oob)
    else if (!is.null(codes)) as.character(codes)
  if (is.null(levels) && is.matrix(oob)) oob <- oob[, places, drop = FALSE]
  given <- forest$call$sample.fraction
  list(
    treetype = forest$treetype, n = forest$num.samples, replace = forest$replace,
    inbag = !is.null(forest$inbag.counts), grown = !is.null(forest$forest),
    columns = forest$forest$independent.variable.names,
    codes = codes[places], classes = classes[places],
    places = if (is.null(levels)) places else seq_along(codes),
    weighted = !is.null(forest$call$case.weights),
    stratified = is.call(given) && identical(given[[1]], as.name("c")),
    oob = if (is.factor(oob)) as.integer(oob) else oob
  )
}
"""

_ABOUT_RANDOMFOREST = """
function(forest) list(
  type = forest$type, n = length(forest$y), inbag = forest$inbag,
  stratified = !is.null(forest$call$strata) && !is.null(forest$call$sampsize) &&
    !is.numeric(forest$call$sampsize),
  grown = !is.null(forest$forest), levels = forest$classes,
  columns = rownames(forest$importance),
  comparable = is.null(forest$votes) || max(forest$votes, na.rm = TRUE) <= 1,
  line = forest$coefs,
  y = if (is.factor(forest$y)) as.character(forest$y) else as.numeric(forest$y),
  oob = if (is.null(forest$votes)) as.numeric(forest$predicted) else forest$votes
)
"""

# randomForest keeps the levels of factors, but takes text and ordered factors for
# the numbers of their levels: such columns count one category.
_RANDOMFOREST_TREES = """
function(forest, x) {
  loadNamespace("randomForest")
  categories <- stats::setNames(forest$forest$ncat, rownames(forest$importance))
  for (name in names(x)) {
    levels <- forest$forest$xlevels[[name]]
    if (is.character(levels)) x[[name]] <- factor(as.character(x[[name]]), levels)
    if (is.factor(x[[name]]) && categories[[name]] == 1) {
      x[[name]] <- as.integer(x[[name]])
    }
  }
  predict(forest, x, predict.all = TRUE)$individual
}
"""

_GRF_COLUMNS = "function(forest) colnames(forest[['X.orig']])"

_GRF_ROWS = """
function(forest, X) isTRUE(all.equal(as.matrix(forest[["X.orig"]]), X,
                                     check.attributes = FALSE))
"""


def from_ranger(
    model: Any,
    data: DataLike,
    newdata: DataLike,
    *,
    variance: str = "auto",
    threads: int = 1,
) -> EnsembleResults:
    """Give a forest that R's ranger has grown standard errors.

    Parameters
    ----------
    model : str, path or R object
        Name of the fitted model in the running R, path of an `.rds` file, or an
        object of rpy2's. It must have been fitted with `keep.inbag = TRUE`.
    data : DataFrame or dict of columns
        Its training data, row by row.
    newdata : DataFrame or dict of columns
        Query points.
    variance : str
        Variance estimator, as in `vstatkit.fit`.
    threads : int
        Threads that R uses.

    Returns
    -------
    EnsembleResults
        Summary, components, covariance and tests; regression, probability and
        classification forests (whose trees vote).
    """
    require("R", "rpy2", "ranger")
    session.keep("loadNamespace", "ranger")
    forest = of_class(model, "ranger", "ranger::ranger")
    about = session.call(_ABOUT_RANGER, forest)
    check_inbag(about["inbag"][0], "ranger", "ranger(..., keep.inbag = TRUE)")
    check_grown(about["grown"][0], "ranger", "write.forest = TRUE")
    votes, classes = _votes(about["treetype"][0]), _levels(about["classes"])
    frame = as_frame(data)
    check_rows(frame, int(about["n"][0]))
    train = to_r_frame(frame)

    def read(points: pd.DataFrame) -> Floats:
        query = aligned_frame(points, train)
        values = RangerForest(forest, query, threads).tree_values()
        if classes is None:
            return values
        if votes:
            return np.asarray(values[:, :, None] == about["codes"], dtype=np.float64)
        shares = values.reshape(len(values), len(points), -1)
        return np.asarray(shares[:, :, about["places"] - 1])

    counts = RangerForest(forest, train).counts()
    columns = list(map(str, about["columns"]))
    check_columns(frame, columns)
    if about["oob"] is not None and votes:
        elected = np.asarray(about["oob"])[:, None] == about["codes"]
        check_votes(frame[columns], counts, read, elected)
    elif about["oob"] is not None:
        check_training(frame[columns], counts, read, about["oob"])
    response = response_name(forest)
    y = frame.get(response)
    if about["weighted"][0]:
        _warn_unlike("by `case.weights`")
    others = frame.drop(columns=columns)
    if about["stratified"][0] or (classes and stratified_by(counts, others, classes)):
        _warn_unlike("from every class by itself")
    adopted = AdoptedForest(
        package="ranger",
        counts=counts,
        read=read,
        columns=tuple(columns),
        kinds={name: kind_of(frame[name]) for name in columns},
        # Subsamples that were given to ranger may be without replacement.
        replace=bool(about["replace"][0]) and bool(counts.max() > 1),
        response=response or "y",
        classes=classes,
        scores=None if votes else oob_scores(y, about["oob"], classes),
    )
    return adopted.results(newdata, frame, frame.index, variance)


def _levels(given: Any) -> tuple[str, ...] | None:
    return None if given is None else tuple(map(str, given))


def _votes(kind: str) -> bool:
    """Tell whether ranger's trees vote; refuse forests that do not predict."""
    if kind == "Survival":
        raise ValueError(
            "survival forests have no single prediction; fit a regression, probability "
            "or classification forest."
        )
    return kind == "Classification"


def _warn_unlike(how: str) -> None:
    warnings.warn(
        f"this forest draws rows {how}; the variances here are for rows that are drawn "
        "alike.",
        VstatkitWarning,
        stacklevel=3,
    )


def from_randomforest(
    model: Any,
    data: DataLike,
    newdata: DataLike,
    *,
    variance: str = "auto",
) -> EnsembleResults:
    """Give a forest that R's randomForest has grown standard errors.

    Parameters
    ----------
    model : str, path or R object
        Name of the fitted model in the running R, path of an `.rds` file, or an
        object of rpy2's. It must have been fitted with `keep.inbag = TRUE`.
    data : DataFrame or dict of columns
        Its training data, row by row.
    newdata : DataFrame or dict of columns
        Query points.
    variance : str
        Variance estimator, as in `vstatkit.fit`.

    Returns
    -------
    EnsembleResults
        Trees of a classification forest vote: their values are 0 or 1.
    """
    require("R", "rpy2", "randomForest")
    forest = of_class(model, "randomForest", "randomForest::randomForest")
    about = session.call(_ABOUT_RANDOMFOREST, forest)
    has_inbag = about["inbag"] is not None
    check_inbag(has_inbag, "randomForest", "randomForest(..., keep.inbag = TRUE)")
    check_grown(about["grown"][0], "randomForest", "keep.forest = TRUE")
    frame = as_frame(data)
    check_rows(frame, int(about["n"][0]))
    train, classes = to_r_frame(frame), _levels(about["levels"])

    def read(points: pd.DataFrame) -> Floats:
        check_present(points)
        query = aligned_frame(points, train)
        found = np.atleast_2d(session.call(_RANDOMFOREST_TREES, forest, query))
        if classes is None:
            return _on_line(trees_first(found), about["line"])
        votes = [(found == one).T for one in classes]
        return np.stack(votes, axis=-1).astype(np.float64)

    counts = np.asarray(about["inbag"], dtype=np.int64).T
    columns = list(map(str, about["columns"]))
    check_columns(frame, columns)
    if about["comparable"][0]:
        line = about["line"] is not None
        check_training(frame[columns], counts, read, about["oob"], shifted=line)
    y = pd.Series(list(about["y"]))
    if about["stratified"][0] or (classes and is_stratified(counts, y)):
        _warn_unlike("from every stratum by itself")
    adopted = AdoptedForest(
        package="randomForest",
        counts=counts,
        read=read,
        columns=tuple(columns),
        kinds={name: kind_of(frame[name]) for name in columns},
        replace=bool(counts.max() > 1),
        response=response_name(forest) or "y",
        classes=classes,
        scores=oob_scores(y, about["oob"], classes),
    )
    return adopted.results(newdata, frame, frame.index, variance)


def _on_line(values: Floats, line: Any) -> Floats:
    """Correct bias as `corr.bias = TRUE` does: a line applied to the mean of trees.

    Applied to every tree, the mean is R's and the variance that of the corrected
    mean, the line taken as given.
    """
    return values if line is None else line[0] + line[1] * values


def from_grf(
    model: Any,
    data: DataLike,
    newdata: DataLike,
    *,
    variance: str = "auto",
    threads: int = 1,
) -> EnsembleResults:
    """Give a regression forest that R's grf has grown our results.

    Parameters
    ----------
    model : str, path or R object
        Name of the fitted model in the running R, path of an `.rds` file, or an
        object of rpy2's.
    data : DataFrame or dict of columns
        Its training data, row by row.
    newdata : DataFrame or dict of columns
        Query points.
    variance : str
        "auto" is "little_bags", what grf computes, and "hoeffding" for forests
        with `ci.group.size = 1`, for which grf has no standard error and any
        estimator for draws without replacement may be named. Trees in groups
        depend on each other, and those estimators are refused for them.
    threads : int
        Threads that R uses.

    Returns
    -------
    EnsembleResults
        With weights, a tree's value is the forest's prediction plus the tree's
        deviation from it, so that the mean is grf's prediction. Trees whose leaf
        is empty at a point have values that leave mean and variance as grf has
        them.
    """
    require("R", "rpy2", "grf")
    forest = of_class(model, "regression_forest", "grf::regression_forest")
    frame, points = as_frame(data), as_query(newdata)
    named = session.call(_GRF_COLUMNS, forest)
    columns = tuple(map(str, points.columns if named is None else named))
    check_columns(points, list(columns))
    here = extract(forest, matrix(points[list(columns)]), threads=threads, name="grf")
    check_rows(frame, len(here.Y))
    check_columns(frame, list(columns))
    if not session.call(_GRF_ROWS, forest, matrix(frame[list(columns)]))[0]:
        raise ValueError(
            f"`data` are not what this forest was fitted to: the columns "
            f"{', '.join(columns)} differ from those that grf has kept. Give the rows "
            "in the order of the fit."
        )
    adopted = AdoptedForest(
        package="grf",
        counts=here.counts,
        read=lambda new: _full_values(replace(here, newdata=matrix(new))),
        columns=columns,
        kinds={},
        replace=False,
        response="Y",
    )
    units = frame.index if here.clusters is None else pd.Index(here.units[1])
    if here.group_size == 1:
        _check_apart(variance)
        return adopted.results(points, frame, units, variance)
    made = adopted.results(points, frame, units, "little_bags", here.groups)
    return made if variance == "auto" else made.with_variance(variance)


def _check_apart(variance: str) -> None:
    if variance == "little_bags":
        raise ValueError(
            "little bags need trees that share half-samples; this forest was grown "
            "with ci.group.size = 1. Use variance='ij_u' or 'corrected', or refit with "
            "ci.group.size = 2."
        )


def _full_values(forest: GrfForest) -> Floats:
    """Values of all trees; refuse points where the forest has no variance."""
    values = forest.full_values
    empty = ~np.isfinite(values).all(axis=0)
    if empty.any():
        raise RError(
            f"at {empty.sum()} points of `newdata`, the first in row "
            f"{np.flatnonzero(empty)[0]}, every group of trees has one with an empty "
            "leaf, which predicts nothing. Refit with more trees, or with "
            "honesty.prune.leaves = TRUE, grf's default."
        )
    return values
