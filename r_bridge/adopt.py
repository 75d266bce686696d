"""Forests grown in R as results of ours."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

import vstatkit as vs
from r_bridge import session
from r_bridge.availability import require
from r_bridge.check_grf import extract
from r_bridge.columns import aligned_frame, as_query, matrix
from r_bridge.convert import to_r_frame, trees_first
from r_bridge.exceptions import RError
from r_bridge.ranger import RangerForest
from r_bridge.session import RObject
from vstatkit import EnsembleResults
from vstatkit._typing import DataLike, Floats, Ints, Labels
from vstatkit.frames import as_frame, nearest
from vstatkit.prediction import output_labels
from vstatkit.scores import Scores, score

_ABOUT_RANGER = """
function(forest) list(
  treetype = forest$treetype, n = forest$num.samples, replace = forest$replace,
  inbag = !is.null(forest$inbag.counts), grown = !is.null(forest$forest),
  columns = forest$forest$independent.variable.names, levels = forest$forest$levels,
  oob = forest$predictions
)
"""

_ABOUT_RANDOMFOREST = """
function(forest) list(
  type = forest$type, n = length(forest$y), inbag = forest$inbag,
  grown = !is.null(forest$forest), levels = forest$classes,
  columns = rownames(forest$importance),
  y = if (is.factor(forest$y)) as.character(forest$y) else as.numeric(forest$y),
  oob = if (is.null(forest$votes)) as.numeric(forest$predicted) else forest$votes
)
"""

# randomForest takes text for the numbers of its sorted levels, and forgets them.
_RANDOMFOREST_TREES = """
function(forest, x, train) {
  loadNamespace("randomForest")
  text <- names(x)[vapply(train[names(x)], is.character, logical(1))]
  x[text] <- lapply(x[text], as.integer)
  predict(forest, x, predict.all = TRUE)$individual
}
"""

_RESPONSE = """
function(forest) {
  given <- as.list(forest$call)[-1]
  named <- given$dependent.variable.name
  if (is.character(named)) return(named)
  first <- if (is.null(given$formula) && length(given)) given[[1]] else given$formula
  formula <- is.call(first) && identical(first[[1]], as.name("~")) && length(first) == 3
  if (formula) paste(deparse(first[[2]]), collapse = " ")
}
"""

_GRF_COLUMNS = "function(forest) colnames(forest[['X.orig']])"


@dataclass(frozen=True)
class AdoptedForest:
    """A forest of R's in our terms.

    Attributes
    ----------
    package : str
        Where it was grown.
    counts : ndarray of shape (B, n)
        In-bag counts.
    values : ndarray of shape (B, m) or (B, m, classes)
        Every tree's predictions, or shares of classes.
    replace : bool
        Whether subsamples were drawn with replacement.
    response : str
        Name of the response.
    classes : tuple of str or None
        Levels of a categorical response.
    scores : Scores or None
        Out-of-bag scores, where the responses are known.
    """

    package: str
    counts: Ints
    values: Floats
    replace: bool
    response: str
    classes: tuple[str, ...] | None = None
    scores: Scores | None = None

    def results(
        self,
        points: Labels,
        units: Labels | None,
        variance: str = "corrected",
        groups: Any = None,
    ) -> EnsembleResults:
        """Wrap as results; two classes need the second one's column only."""
        values, response = self.values, self.response
        if self.classes is not None and len(self.classes) == 2:
            values = values[:, :, 1]
            response = f"P({response} = {self.classes[1]})"
        made = vs.from_arrays(
            self.counts,
            values.reshape(len(values), -1),
            replace=self.replace,
            variance=variance,
            groups=groups,
            labels=output_labels(points, self.classes),
            units=units,
            name=self.package,
        )
        info = replace(
            made.info, title="Forest Results", response=response, coefficients=False
        )
        return replace(made, info=info, scores=self.scores)


def from_ranger(
    model: Any,
    data: DataLike,
    newdata: DataLike,
    *,
    variance: str = "corrected",
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
    forest = _of_class(model, "ranger", "ranger::ranger")
    about = session.call(_ABOUT_RANGER, forest)
    kind = about["treetype"][0]
    if kind == "Survival":
        raise ValueError(
            "survival forests have no single prediction; fit a regression, probability "
            "or classification forest."
        )
    _check_inbag(about["inbag"][0], "ranger", "ranger(..., keep.inbag = TRUE)")
    _check_grown(about["grown"][0], "ranger", "write.forest = TRUE")
    frame, points = _frames(data, newdata, int(about["n"][0]), about["columns"])
    query = aligned_frame(points[list(about["columns"])], to_r_frame(frame))
    grown = RangerForest(forest, query, threads)
    classes = None if about["levels"] is None else tuple(map(str, about["levels"]))
    values = grown.tree_values().reshape(len(grown.counts()), len(points), -1)
    if kind == "Classification" and classes is None:
        raise ValueError(
            "this classification forest was fitted to numbers, not to a factor; refit "
            "with a factor as response."
        )
    if classes is not None and kind == "Classification":
        codes = values[:, :, 0].astype(np.int64) - 1
        values = np.eye(len(classes))[codes]
    response = _response(forest)
    adopted = AdoptedForest(
        package="ranger",
        counts=grown.counts(),
        values=values if classes is not None else values[:, :, 0],
        replace=bool(about["replace"][0]),
        response=response or "y",
        classes=classes,
        scores=_scores(frame.get(response), about["oob"], classes),
    )
    return adopted.results(points.index, frame.index, variance)


def from_randomforest(
    model: Any,
    data: DataLike,
    newdata: DataLike,
    *,
    variance: str = "corrected",
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
    forest = _of_class(model, "randomForest", "randomForest::randomForest")
    about = session.call(_ABOUT_RANDOMFOREST, forest)
    has_inbag = about["inbag"] is not None
    _check_inbag(has_inbag, "randomForest", "randomForest(..., keep.inbag = TRUE)")
    _check_grown(about["grown"][0], "randomForest", "keep.forest = TRUE")
    frame, points = _frames(data, newdata, int(about["n"][0]), about["columns"])
    train = to_r_frame(frame)
    query = aligned_frame(points[list(about["columns"])], train)
    found = np.atleast_2d(session.call(_RANDOMFOREST_TREES, forest, query, train))
    counts = np.asarray(about["inbag"], dtype=np.int64).T
    classes = None if about["levels"] is None else tuple(map(str, about["levels"]))
    values = (
        trees_first(found)
        if classes is None
        else np.stack([(found == one).T for one in classes], axis=-1).astype(float)
    )
    adopted = AdoptedForest(
        package="randomForest",
        counts=counts,
        values=values,
        replace=bool(counts.max() > 1),
        response=_response(forest) or "y",
        classes=classes,
        scores=_scores(pd.Series(list(about["y"])), about["oob"], classes),
    )
    return adopted.results(points.index, frame.index, variance)


def from_grf(
    model: Any,
    data: DataLike,
    newdata: DataLike,
    *,
    variance: str = "little_bags",
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
        "little_bags" is what grf computes; any other estimator without
        replacement works too.
    threads : int
        Threads that R uses.

    Returns
    -------
    EnsembleResults
        With weights, a tree's value is the forest's prediction plus the tree's
        deviation from it, so that the mean is grf's prediction.
    """
    require("R", "rpy2", "grf")
    forest = _of_class(model, "regression_forest", "grf::regression_forest")
    frame, points = as_frame(data), as_query(newdata)
    names = session.call(_GRF_COLUMNS, forest)
    columns = list(points.columns) if names is None else [str(one) for one in names]
    _check_columns(points, columns)
    read = extract(forest, matrix(points[columns]), threads=threads, name="grf")
    _check_rows(frame, len(read.Y))
    values = read.pseudo_values
    if not np.isfinite(values).all():
        trees = int((~np.isfinite(values)).any(axis=1).sum())
        raise RError(
            f"{trees} trees have an empty leaf at some point of `newdata` and predict "
            "nothing there. Refit with honesty.prune.leaves = TRUE, grf's default."
        )
    adopted = AdoptedForest(
        package="grf",
        counts=read.counts,
        values=values,
        replace=False,
        response="Y",
    )
    units = frame.index if read.clusters is None else pd.Index(read.units[1])
    made = adopted.results(points.index, units, "little_bags", read.groups)
    return made.with_variance(variance)


def _of_class(model: Any, kind: str, maker: str) -> RObject:
    """Find a fitted model, and check what it is."""
    found = session.find(model)
    if kind not in found.classes:
        raise TypeError(
            f"`model` must be a forest of {maker}; its class in R is "
            f"{' '.join(found.classes)}."
        )
    return found


def _response(model: RObject) -> str | None:
    """Name of the response, where the model's call tells it."""
    found = session.call(_RESPONSE, model)
    return None if found is None else str(found[0])


def _check_inbag(kept: Any, package: str, call: str) -> None:
    if not kept:
        raise ValueError(
            f"this {package} forest has not kept which rows each tree has seen, and "
            f"they cannot be found out afterwards. Refit it with {call}."
        )


def _check_grown(kept: Any, package: str, option: str) -> None:
    if not kept:
        raise ValueError(
            f"this {package} model has not kept its trees. Refit it with {option}."
        )


def _frames(
    data: DataLike, newdata: DataLike, n: int, columns: Any
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Read training data and query points, checked against the model."""
    frame, points = as_frame(data), as_query(newdata)
    _check_rows(frame, n)
    _check_columns(points, [str(name) for name in columns])
    return frame, points


def _check_rows(frame: pd.DataFrame, n: int) -> None:
    if len(frame) != n:
        raise ValueError(
            f"`data` must be the model's training data, {n} rows; got {len(frame)}. "
            "R leaves out rows with missing values before it fits."
        )


def _check_columns(points: pd.DataFrame, columns: list[str]) -> None:
    for name in columns:
        if name not in points.columns:
            raise ValueError(
                f"`newdata` lacks column {name!r}{nearest(name, points.columns)} "
                f"The model was fitted to {', '.join(columns)}."
            )


def _scores(y: Any, oob: Any, classes: tuple[str, ...] | None) -> Scores | None:
    """Score R's out-of-bag predictions, where the responses are known."""
    if y is None or oob is None or np.asarray(oob).dtype == object:
        return None
    predicted = np.asarray(oob, dtype=np.float64).reshape(len(y), -1)
    if classes is None:
        return score(np.asarray(y, dtype=np.float64), predicted, None)
    if predicted.shape[1] != len(classes):
        return None
    codes = pd.Categorical(y.astype(str), list(classes)).codes.astype(np.float64)
    if len(classes) == 2:
        predicted = predicted[:, 1:]
    return score(codes, predicted, len(classes))
