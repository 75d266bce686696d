"""Results of forests that stay in R and predict there."""

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np
import pandas as pd
from scipy import sparse

import vstatkit as vs
from r_bridge.columns import Kind, as_query, check_kinds
from vstatkit import EnsembleResults, VstatkitWarning
from vstatkit._typing import DataLike, Floats, Ints, Labels
from vstatkit.ensemble.oob_scores import Scores
from vstatkit.ensemble.prediction import LearnerSums, OwnLearners, Predictor
from vstatkit.inference.estimates import ensemble_mean
from vstatkit.inference.intervals import prediction_support, prediction_tails
from vstatkit.kernels.base import output_columns
from vstatkit.sampling.design import SubsampleDesign, to_dense
from vstatkit.text import suggest_name
from vstatkit.variance.higher_orders import reference_places

# Function that returns the predictions of every tree, (B, m) or (B, m, classes)
ReadTrees = Callable[[pd.DataFrame], Floats]


@dataclass(frozen=True)
class TreesInR:
    """Learners in R, which predict all at once."""

    n_features: int  # columns that they read
    n_classes: int | None  # None for regression

    coefficients: ClassVar[bool] = False

    @property
    def n_outputs(self) -> int:
        """Number of outputs: one, or the number of classes if above two."""
        return output_columns(self.n_classes)

    def predict(self, learner: ReadTrees, X: Any) -> Floats:
        """Predict with all trees; for two classes, return the second column only."""
        values = learner(X)
        if self.n_classes == 2:
            values = values[:, :, 1]
        return values.reshape(len(values), -1)


@dataclass(frozen=True)
class RPredictor(Predictor):
    """Predictor that calls R with the columns of a data frame.

    All learners are one and the same function, which predicts with every tree.
    """

    # Kinds of the columns in training, as `r_bridge.columns.kind_of` names them
    kinds: Mapping[str, Kind] = field(default_factory=dict)
    # The training rows, if each is a unit by itself
    training: pd.DataFrame | None = None

    def is_category(self, name: Any) -> bool:
        """Return whether a predictor is a category."""
        return self.kinds.get(name) in ("category", "logical")

    def rows(self, data: DataLike) -> tuple[Any, Labels]:
        """Check new data and return them as a data frame for R."""
        frame = as_query(data)
        columns = list(self.columns or frame.columns)
        check_columns(frame, columns)
        check_kinds(frame, self.kinds)
        return frame[columns], frame.index

    def __reduce__(self) -> tuple[type[None], tuple[()]]:
        """Pickle nothing, with a warning: the trees are in R."""
        warnings.warn(
            "pickled without the trees, which stay in R. All estimates are kept; the "
            "results cannot predict new data there.",
            VstatkitWarning,
            stacklevel=2,
        )
        return type(None), ()

    def __deepcopy__(self, memo: dict[int, Any]) -> "RPredictor":
        """Return itself: copies within this process share the trees in R."""
        return self

    def values(self, X: Any) -> Floats:
        """Predict with every tree, shape (B, rows * outputs)."""
        return self.kernel.predict(self.learners[0], X)

    def averages(self, X: Any, design: SubsampleDesign) -> Floats:
        """Average the trees, in the process that calls R."""
        chunks = self.chunks(X, 0)
        return np.concatenate([ensemble_mean(design, values) for values in chunks])

    def mean(self, X: Any) -> Floats:
        """Average the trees, each counted once."""
        return np.concatenate([values.mean(axis=0) for values in self.chunks(X, 0)])

    def sums(self, X: Any, shares: Any, own: OwnLearners | None = None) -> LearnerSums:
        """Weighted sums over rows, tree by tree; see `Predictor.sums`."""
        shares, outputs = sparse.csr_array(shares), self.kernel.n_outputs
        total: Floats = np.zeros((len(X), outputs))
        times: Floats = np.zeros((len(X), 1))
        origin: Floats | None = None
        summed: Floats | float = 0.0
        first = 0
        for chunk in self.chunks(X, 0):
            values = chunk.reshape(len(chunk), -1, outputs)
            rows = slice(first, first + values.shape[1])
            first = rows.stop
            origin = values[:, 0] if origin is None else origin
            moved = (values - origin[:, None]).swapaxes(0, 1)
            part = shares[:, rows] @ moved.reshape(len(moved), -1)
            summed = summed + part.reshape(-1, *origin.shape)
            if own is not None:
                weight = _own_weights(own, rows, len(values))
                total[rows] = np.einsum("br,bro->ro", weight, values)
                times[rows] = weight.sum(axis=0)[:, None]
        # An offset of all rows costs no digits: it is added to their sum.
        whole = shares.sum(axis=1)[:, None, None] * origin
        by_tree = np.asarray(summed + whole).swapaxes(0, 1)
        sums = by_tree.reshape(len(by_tree), -1)
        return LearnerSums(sums, *((0.0, 0.0) if own is None else (total, times)))


def _own_weights(own: OwnLearners, rows: slice, B: int) -> Floats:
    """Weights of the trees in the mean of every row, shape (B, rows)."""
    n_rows = rows.stop - rows.start
    weights = np.ones((B, n_rows))
    if own.units is not None:
        counts = to_dense(own.design.counts(0, B))
        weights = (counts[:, own.units[rows]] == 0).astype(np.float64)
    by_design = own.design.weights(0, B)
    return weights if by_design is None else weights * by_design[:, None]


@dataclass(frozen=True)
class AdoptedForest:
    """A forest fitted in R, with the values that vstatkit needs."""

    package: str  # where it was grown
    counts: Ints  # (B, n): in-bag counts
    # Returns every tree's predictions, or shares of classes, at query points
    read: ReadTrees
    columns: tuple[str, ...]  # columns of the query points that it reads
    # Their kinds in training; those of other columns are not checked
    kinds: Mapping[str, Kind]
    replace: bool  # whether subsamples were drawn with replacement
    response: str  # name of the response
    classes: tuple[str, ...] | None = None  # levels of a categorical response
    scores: Scores | None = None  # out-of-bag scores, where the responses are known

    def results(
        self,
        newdata: DataLike,
        train: pd.DataFrame,
        units: Labels,
        variance: str = "auto",
        groups: Any = None,
    ) -> EnsembleResults:
        """Predict at query points, and wrap as results.

        `units` are the labels of the rows, or of the clusters, that were resampled;
        `groups` has the group of every tree.
        """
        n_classes = None if self.classes is None else len(self.classes)
        kernel = TreesInR(len(self.columns), n_classes)
        learners = [self.read] * len(self.counts)
        predictor = RPredictor(
            *(kernel, learners, None, self.classes, None, self.columns),
            kinds=self.kinds,
            training=train if units.equals(train.index) else None,
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
        response = self.response
        if self.classes is not None and n_classes == 2:
            response = f"P({response} = {self.classes[1]})"
        title = "Forest Results"
        return replace(
            made,
            info=replace(made.info, title=title, response=response, coefficients=False),
            scores=self.scores,
            predictor=predictor,
            support=prediction_support(kernel, made.design.n),
            tails=prediction_tails(kernel),
            reference=mixed_frame(train[list(self.columns)], kernel.n_outputs),
        ).with_variance(variance)


def mixed_frame(frame: pd.DataFrame, n_outputs: int) -> pd.DataFrame:
    """Draw reference rows, combined from rows of the frame."""
    places = reference_places(*frame.shape, 0, n_outputs)
    columns = {
        name: frame[name].iloc[rows].reset_index(drop=True)
        for name, rows in zip(frame.columns, places.T, strict=True)
    }
    return pd.DataFrame(columns)


def check_columns(points: pd.DataFrame, columns: list[str]) -> None:
    """Raise an error if query points lack a column."""
    for name in columns:
        if name not in points.columns:
            raise ValueError(
                f"the data lack column {name!r}{suggest_name(name, points.columns)} "
                f"The model was fitted to {', '.join(columns)}."
            )
