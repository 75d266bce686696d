"""Forests of R's in our terms: results that predict through R."""

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np
import pandas as pd

import vstatkit as vs
from r_bridge import session
from r_bridge.columns import Kind, as_query, check_kinds
from r_bridge.objects import RObject
from vstatkit import EnsembleResults, VstatkitWarning
from vstatkit._typing import Bools, DataLike, Floats, Ints, Labels
from vstatkit.ensemble.prediction import Predictor
from vstatkit.ensemble.scores import Scores, score
from vstatkit.formula.frames import is_number, nearest
from vstatkit.inference.intervals import prediction_support
from vstatkit.kernels.protocol import output_columns
from vstatkit.variance.reference import reference_places

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

    Attributes
    ----------
    kinds : dict of str to str
        Kinds of the columns in training, as `r_bridge.columns.kind_of` names them.
    """

    kinds: Mapping[str, Kind] = field(default_factory=dict)

    def rows(self, data: DataLike) -> tuple[Any, Labels]:
        """Check new data; they go to R as a data frame."""
        frame = as_query(data)
        columns = list(self.columns or frame.columns)
        check_columns(frame, columns)
        check_kinds(frame, self.kinds)
        return frame[columns], frame.index

    def __reduce__(self) -> tuple[type[None], tuple[()]]:
        """Stay behind where results are pickled: the trees are R's."""
        warnings.warn(
            "pickled without the trees, which stay in R. All estimates are kept; the "
            "results cannot predict new data there.",
            VstatkitWarning,
            stacklevel=2,
        )
        return type(None), ()

    def __deepcopy__(self, memo: dict[int, Any]) -> "RPredictor":
        """Give itself: a copy within this process shares the trees in R."""
        return self

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
    kinds : dict of str to str
        Their kinds in training; those of other columns are not checked.
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
    kinds: Mapping[str, Kind]
    replace: bool
    response: str
    classes: tuple[str, ...] | None = None
    scores: Scores | None = None

    def results(
        self,
        newdata: DataLike,
        train: pd.DataFrame,
        units: Labels,
        variance: str = "auto",
        groups: Any = None,
    ) -> EnsembleResults:
        """Predict at query points, and wrap as results.

        Parameters
        ----------
        newdata : DataFrame or dict of columns
            Query points.
        train : DataFrame
            Training data.
        units : Index
            Labels of the rows, or of the clusters, that were resampled.
        variance : str
            Variance estimator.
        groups : array-like, optional
            Group of every tree.
        """
        n_classes = None if self.classes is None else len(self.classes)
        kernel = TreesInR(len(self.columns), n_classes)
        learners = [self.read] * len(self.counts)
        predictor = RPredictor(
            kernel, learners, None, self.classes, None, self.columns, self.kinds
        )
        rows, index = predictor.rows(newdata)
        made = vs.from_arrays(
            self.counts,
            predictor.values(rows),
            replace=self.replace,
            # Settled below, where there are trees to compare.
            variance="bm" if groups is None else variance,
            groups=groups,
            labels=predictor.labels(index),
            units=units,
            name=self.package,
            kind="trees",
        )
        info = replace(
            made.info,
            title="Forest Results",
            response=self._response(),
            coefficients=False,
        )
        return replace(
            made,
            info=info,
            scores=self.scores,
            predictor=predictor,
            support=prediction_support(kernel, made.nobs),
            reference=mixed_frame(train[list(self.columns)], kernel.n_outputs),
        ).with_variance(variance)

    def _response(self) -> str:
        if self.classes is None or len(self.classes) != 2:
            return self.response
        return f"P({self.response} = {self.classes[1]})"


def mixed_frame(frame: pd.DataFrame, n_outputs: int) -> pd.DataFrame:
    """Draw rows like the frame's, but not in it, on which trees are compared."""
    places = reference_places(*frame.shape, 0, n_outputs)
    columns = {
        name: frame[name].iloc[rows].reset_index(drop=True)
        for name, rows in zip(frame.columns, places.T, strict=True)
    }
    return pd.DataFrame(columns)


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

CHECKED_VOTES = 1000
"""The same where only the class with most votes is known, which says less."""

SAME_PREDICTION = 1e-6
"""Relative to the spread of the predictions; R keeps them in double precision."""


def check_training(
    x: pd.DataFrame,
    counts: Ints,
    read: ReadTrees,
    oob: Any,
    *,
    shifted: bool = False,
) -> None:
    """Refuse data that give other out-of-bag predictions than the model has.

    Rows in another order, or categories whose levels are not in R's order, would
    otherwise give wrong numbers without a word: ranger does not keep the levels.
    Predictions that are `shifted` may all differ by one number: randomForest
    corrects their bias by another constant than that of new data.
    """
    known = np.asarray(oob, dtype=np.float64).reshape(len(x), -1)
    rows = _some_rows(np.isfinite(known), counts, CHECKED_ROWS)
    if rows.size == 0:
        return
    ours = _out_of_bag(x, counts, read, rows)
    finite = known[np.isfinite(known)]
    spread = max(float(np.ptp(finite)), float(np.abs(finite).max()))
    gap = ours - known[rows]
    if shifted:
        gap = gap - np.median(gap)
    far = np.abs(gap).max(axis=1) > SAME_PREDICTION * spread
    _refuse_other_data(rows[far])


def check_votes(x: pd.DataFrame, counts: Ints, read: ReadTrees, elected: Bools) -> None:
    """Refuse data that elect other out-of-bag classes than the model has.

    Parameters
    ----------
    x : DataFrame
        Predictors of the training data.
    counts : ndarray of shape (B, n)
        In-bag counts.
    read : callable
        Gives every tree's votes.
    elected : ndarray of shape (n, classes)
        The class with most out-of-bag votes; ranger breaks ties at random, so any
        of the classes that share most votes is right.
    """
    rows = _some_rows(elected.any(axis=1, keepdims=True), counts, CHECKED_VOTES)
    if rows.size == 0:
        return
    shares = _out_of_bag(x, counts, read, rows)
    most = shares.max(axis=1, keepdims=True)
    _refuse_other_data(rows[((shares < most - SAME_PREDICTION) & elected[rows]).any(1)])


def _some_rows(known: Any, counts: Ints, most: int) -> Ints:
    """Choose rows, over all the data, whose out-of-bag predictions are all known."""
    sure: Ints = np.flatnonzero(known.all(axis=1) & (counts == 0).any(axis=0))
    if sure.size <= most:
        return sure
    chosen: Ints = sure[np.linspace(0, sure.size - 1, most).astype(int)]
    return chosen


def _out_of_bag(x: pd.DataFrame, counts: Ints, read: ReadTrees, rows: Ints) -> Floats:
    """Average the trees that have not seen a row, shape (rows, outputs)."""
    values = read(x.iloc[rows]).reshape(len(counts), rows.size, -1)
    outside = (counts[:, rows] == 0)[:, :, None]
    return np.asarray((values * outside).sum(axis=0) / outside.sum(axis=0))


def _refuse_other_data(wrong: Ints) -> None:
    if wrong.size:
        raise ValueError(
            "`data` are not what this forest was fitted to: out-of-bag predictions "
            f"computed from them differ from the model's own, first in row {wrong[0]}. "
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


def check_present(points: pd.DataFrame) -> None:
    """Refuse missing values, naming the first."""
    missing = points.isna().to_numpy()
    if missing.any():
        row, column = np.argwhere(missing)[0]
        raise ValueError(
            f"column {points.columns[column]!r} of the data is missing in row "
            f"{points.index[row]}. randomForest takes no missing values; leave such "
            "rows out, or fill them in."
        )


def stratified_by(counts: Ints, others: pd.DataFrame, classes: Sequence[str]) -> bool:
    """Tell whether trees drew by a column that has the classes of the response.

    The call of a forest does not always name its response.
    """
    named = (others[name] for name in others.columns)
    alike = (one for one in named if set(_texts_of_r(one)) == set(classes))
    return any(is_stratified(counts, one) for one in alike)


def is_stratified(counts: Ints, y: pd.Series) -> bool:
    """Tell whether every tree drew the same number of rows from each class.

    Drawn from all rows alike, the numbers would differ from tree to tree.
    """
    if (counts == counts[0]).all():
        return False
    codes, levels = pd.factorize(y)
    drawn = counts @ (codes[:, None] == np.arange(len(levels)))
    return len(levels) > 1 and bool((drawn == drawn[0]).all())


def oob_scores(y: Any, oob: Any, classes: tuple[str, ...] | None) -> Scores | None:
    """Score R's out-of-bag predictions, where the responses are known."""
    if y is None or oob is None or np.asarray(oob).dtype == object:
        return None
    predicted = np.asarray(oob, dtype=np.float64).reshape(len(y), -1)
    if classes is None:
        return score(np.asarray(y, dtype=np.float64), predicted, None)
    if predicted.shape[1] != len(classes):
        return None
    codes = pd.Categorical(_texts_of_r(y), list(classes)).codes.astype(np.float64)
    if (codes < 0).any():
        return None
    if len(classes) == 2:
        predicted = predicted[:, 1:]
    return score(codes, predicted, len(classes))


def _texts_of_r(y: pd.Series) -> list[str]:
    """Write classes as R does: TRUE and FALSE, whole numbers without a point."""
    if pd.api.types.is_bool_dtype(y.dtype):
        return [str(one).upper() for one in y]
    if is_number(y):
        return [f"{one:.15g}" for one in y]
    return [str(one) for one in y]
