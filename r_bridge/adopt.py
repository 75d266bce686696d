"""Forests of R's in our terms: results that predict through R."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import pandas as pd

import vstatkit as vs
from r_bridge import session
from r_bridge.columns import as_query
from r_bridge.session import RObject
from vstatkit import EnsembleResults
from vstatkit._typing import DataLike, Floats, Ints, Labels
from vstatkit.frames import nearest
from vstatkit.kernels import output_columns
from vstatkit.prediction import Predictor
from vstatkit.scores import Scores, score

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

ReadTrees = Callable[[pd.DataFrame], Floats]
"""Gives every tree's predictions, (B, m) or (B, m, classes), at query points."""


@dataclass(frozen=True)
class TreesInR:
    """Learners that stay in R; they predict all at once.

    Attributes
    ----------
    n_features : int
        Columns that they read.
    n_classes : int or None
        None for regression.
    """

    n_features: int
    n_classes: int | None

    coefficients: ClassVar[bool] = False

    @property
    def n_outputs(self) -> int:
        """One, or a column for each of more than two classes."""
        return output_columns(self.n_classes)

    def predict(self, learner: ReadTrees, X: Any) -> Floats:
        """Predict with all trees; two classes need the second one's column only."""
        values = learner(X)
        if self.n_classes == 2:
            values = values[:, :, 1]
        return values.reshape(len(values), -1)


@dataclass(frozen=True)
class RPredictor(Predictor):
    """Predicts through R, with the columns of a data frame.

    All learners are one and the same function, which predicts with every tree.
    """

    def rows(self, data: DataLike) -> tuple[Any, Labels]:
        """Check new data; they go to R as a data frame."""
        frame = as_query(data)
        columns = list(self.columns or frame.columns)
        check_columns(frame, columns)
        return frame[columns], frame.index

    def values(self, X: Any) -> Floats:
        """Predict with every tree, shape (B, rows * outputs)."""
        return self.kernel.predict(self.learners[0], X)


@dataclass(frozen=True)
class AdoptedForest:
    """A forest of R's in our terms.

    Attributes
    ----------
    package : str
        Where it was grown.
    counts : ndarray of shape (B, n)
        In-bag counts.
    read : callable
        Gives every tree's predictions, or shares of classes, at query points.
    columns : tuple of str
        Columns of the query points that it reads.
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
    read: ReadTrees
    columns: tuple[str, ...]
    replace: bool
    response: str
    classes: tuple[str, ...] | None = None
    scores: Scores | None = None

    def results(
        self,
        newdata: DataLike,
        units: Labels,
        variance: str = "corrected",
        groups: Any = None,
    ) -> EnsembleResults:
        """Predict at query points, and wrap as results."""
        n_classes = None if self.classes is None else len(self.classes)
        kernel = TreesInR(len(self.columns), n_classes)
        learners = [self.read] * len(self.counts)
        predictor = RPredictor(kernel, learners, None, self.classes, None, self.columns)
        rows, index = predictor.rows(newdata)
        made = vs.from_arrays(
            self.counts,
            predictor.values(rows),
            replace=self.replace,
            variance=variance,
            groups=groups,
            labels=predictor.labels(index),
            units=units,
            name=self.package,
        )
        info = replace(
            made.info,
            title="Forest Results",
            response=self._response(),
            coefficients=False,
        )
        return replace(made, info=info, scores=self.scores, predictor=predictor)

    def _response(self) -> str:
        if self.classes is None or len(self.classes) != 2:
            return self.response
        return f"P({self.response} = {self.classes[1]})"


def of_class(model: Any, kind: str, maker: str) -> RObject:
    """Find a fitted model, and check what it is."""
    found = session.find(model)
    if kind not in found.classes:
        raise TypeError(
            f"`model` must be a forest of {maker}; its class in R is "
            f"{' '.join(found.classes)}."
        )
    return found


def response_name(model: RObject) -> str | None:
    """Name of the response, where the model's call tells it."""
    found = session.call(_RESPONSE, model)
    return None if found is None else str(found[0])


def check_inbag(kept: Any, package: str, call: str) -> None:
    """Refuse forests that do not say which rows their trees have seen."""
    if not kept:
        raise ValueError(
            f"this {package} forest has not kept which rows each tree has seen, and "
            f"they cannot be found out afterwards. Refit it with {call}."
        )


def check_grown(kept: Any, package: str, option: str) -> None:
    """Refuse models without trees."""
    if not kept:
        raise ValueError(
            f"this {package} model has not kept its trees. Refit it with {option}."
        )


def check_rows(frame: pd.DataFrame, n: int) -> None:
    """Refuse training data that cannot be the model's."""
    if len(frame) != n:
        raise ValueError(
            f"`data` must be the model's training data, {n} rows; got {len(frame)}. "
            "R leaves out rows with missing values before it fits."
        )


CHECKED_ROWS = 20
"""Training rows at which the forest's out-of-bag predictions are computed again."""

SAME_PREDICTION = 1e-6
"""Relative to the spread of the predictions; R keeps them in double precision."""


def check_training(
    frame: pd.DataFrame, counts: Ints, read: ReadTrees, oob: Any, columns: list[str]
) -> None:
    """Refuse data that give other out-of-bag predictions than the model has.

    Rows in another order, or categories whose levels are not in R's order, would
    otherwise give wrong numbers without a word: ranger does not keep the levels.
    """
    check_columns(frame, columns)
    known = np.asarray(oob, dtype=np.float64).reshape(len(frame), -1)
    sure = np.flatnonzero(np.isfinite(known).all(axis=1) & (counts == 0).any(axis=0))
    if sure.size == 0:
        return
    rows = sure[np.unique(np.linspace(0, sure.size - 1, CHECKED_ROWS).astype(int))]
    values = read(frame[columns].iloc[rows])
    values = values.reshape(len(counts), rows.size, -1)
    outside = (counts[:, rows] == 0)[:, :, None]
    ours = (values * outside).sum(axis=0) / outside.sum(axis=0)
    spread = max(float(np.ptp(known[sure])), float(np.abs(known[sure]).max()))
    wrong = np.abs(ours - known[rows]).max(axis=1) > SAME_PREDICTION * spread
    if wrong.any():
        row = int(rows[np.flatnonzero(wrong)[0]])
        raise ValueError(
            "`data` are not what this forest was fitted to: out-of-bag predictions "
            f"computed from them differ from the model's own, first in row {row}. "
            "Give the rows in the order of the fit, and categories with the levels "
            "that R had, in R's order."
        )


def check_columns(points: pd.DataFrame, columns: list[str]) -> None:
    """Refuse query points that lack a column."""
    for name in columns:
        if name not in points.columns:
            raise ValueError(
                f"the data lack column {name!r}{nearest(name, points.columns)} "
                f"The model was fitted to {', '.join(columns)}."
            )


def oob_scores(y: Any, oob: Any, classes: tuple[str, ...] | None) -> Scores | None:
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
