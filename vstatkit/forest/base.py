"""Base class of the forests for regression and classification."""

import copy
import inspect
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.utils import Bunch, check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from vstatkit._typing import Floats, Ints, Labels
from vstatkit.ensemble.evaluation import Task, evaluate
from vstatkit.ensemble.oob_scores import score
from vstatkit.ensemble.pooled_variance import (
    ForestData,
    measure_pooled_variance,
    typical_pooled_share,
)
from vstatkit.ensemble.prediction import OwnLearners, Predictor
from vstatkit.ensemble.query import build_query
from vstatkit.exceptions import VstatkitWarning, warn_caller
from vstatkit.fit_steps import assemble_results
from vstatkit.forest.dependence_grid import (
    GridPoints,
    build_grid,
    by_output,
    find_features,
)
from vstatkit.forest.number_of_trees import (
    grow_forest,
    warn_if_imprecise,
    why_no_errors,
)
from vstatkit.formula.data_warnings import unobserved_finding, warn_of
from vstatkit.formula.parse import parse_table, response_name
from vstatkit.inference.estimates import Estimates, Estimation
from vstatkit.inference.intervals import (
    prediction_support,
    prediction_tails,
    value_limit,
)
from vstatkit.inference.stopping import scale_share
from vstatkit.kernels.base import Evaluation, KernelKind, OutOfBag
from vstatkit.kernels.residual_trees import STAGE_OPTIONS, stored_kernel, with_stages
from vstatkit.kernels.tree import Tree, TreeKernel, row_weights, tree_kernel
from vstatkit.kernels.tree_options import TREE_OPTIONS, Factors
from vstatkit.results.bias import aim_of
from vstatkit.results.ensemble_results import EnsembleResults
from vstatkit.results.marginal_effects import average_orders
from vstatkit.results.model_description import ModelInfo
from vstatkit.results.prediction_results import (
    typical_estimates,
    typical_support,
    typical_tails,
)
from vstatkit.sampling.design import IidDesign, check_size
from vstatkit.sampling.registry import subsample_size
from vstatkit.text import suggest_name
from vstatkit.validation import check_workers, is_whole
from vstatkit.variance.higher_orders import HigherOrders, measure_orders, reference_rows
from vstatkit.variance.leaf_influence import RowResiduals
from vstatkit.variance.learner_pairs import LearnerPairs
from vstatkit.variance.pooled_variance import PooledVariance
from vstatkit.variance.registry import ESTIMATORS, large_k_warning, resolve_for_design


class Trees(list[Any]):
    """Fitted trees."""

    def __repr__(self) -> str:
        leaves = [int(np.sum(tree.nodes["feature"] < 0)) for tree in self]
        span = f" of {min(leaves)} to {max(leaves)} leaves" if leaves else ""
        return f"<{len(self)} trees{span}>"


def check_response(y: Any, *, numeric: bool) -> None:
    """Raise an error for missing values, and for text if `y` must be numeric."""
    values = np.asarray(y)
    if values.dtype.kind not in "OUSf" or values.ndim == 0:
        return
    column = pd.Series(values.reshape(len(values), -1)[:, 0])
    missing = np.flatnonzero(column.isna())
    if missing.size:
        raise ValueError(
            f"`y` must not have missing values; row {missing[0]} has one, and "
            f"{missing.size} of {len(values)} rows in all. Drop these rows. "
            "(Input contains NaN.)"
        )
    text = [value for value in column if isinstance(value, str)]
    if numeric and text and _is_text(column):
        raise ValueError(
            f"`y` must be numeric; got text such as {str(text[0])!r}. Use "
            "ForestClassifier for classes."
        )


def check_distinct_names(X: Any) -> None:
    """Raise an error if several columns of a frame have the same name."""
    if isinstance(X, pd.DataFrame) and not X.columns.is_unique:
        twice = X.columns[X.columns.duplicated()][0]
        raise ValueError(
            f"column names must be unique; {twice!r} occurs "
            f"{int((X.columns == twice).sum())} times in `X`. Rename such columns, or "
            "keep the first of each: X.loc[:, ~X.columns.duplicated()]."
        )


@contextmanager
def explain_text_errors(X: Any) -> Iterator[None]:
    """Replace the error of a failed conversion by one that names the text column."""
    try:
        yield
    except ValueError as error:
        if not isinstance(X, pd.DataFrame) or "could not convert" not in str(error):
            raise
        name = next((name for name, column in X.items() if _is_text(column)), None)
        if name is None:
            raise
        message = (
            f"column {name!r} holds text; features must be numeric. Make it "
            f"categorical, X.astype({{{name!r}: 'category'}}), and set "
            "categorical_features='from_dtype', or encode it, e.g. by OneHotEncoder."
        )
        if isinstance(X[name].dtype, pd.CategoricalDtype):
            message = (
                f"column {name!r} is categorical, and `categorical_features` does not "
                "include it. Set categorical_features='from_dtype' for all categorical "
                f"columns, or list it: [{name!r}]; or encode it, e.g. by OneHotEncoder."
            )
        raise ValueError(message) from error


def _is_text(column: pd.Series) -> bool:
    """Return whether some value of a column cannot be converted to a number."""
    if pd.api.types.is_numeric_dtype(column.dtype):
        return False
    values = pd.Series(column.to_numpy(dtype=object))
    present = values[values.notna()]
    return bool(pd.to_numeric(present, errors="coerce").isna().any())


# Class weights from the class shares, in all rows or in the rows of a tree.
BALANCED = ("balanced", "balanced_subsample")
# Names of parameters in other libraries and in `fit`.
OTHER_NAMES = {
    "B": "n_estimators",
    "k": "max_samples",
    "mtry": "max_features",
    "n_trees": "n_estimators",
    "ntree": "n_estimators",
    "num_trees": "n_estimators",
    "replace": "bootstrap",
    "rng": "random_state",
    "seed": "random_state",
}


def check_names(kind: str, known: Sequence[str], given: Mapping[str, Any]) -> None:
    """Raise an error for unknown parameters, and suggest the right name."""
    for name in given:
        if name in known:
            continue
        other = OTHER_NAMES.get(name)
        meant = (
            f"; here it is called {other!r}." if other else suggest_name(name, known)
        )
        raise TypeError(
            f"{kind} has no parameter {name!r}{meant} It takes {', '.join(known)}."
        )


def rows_per_tree(max_samples: Any, n: int, *, replace: bool) -> int:
    """Return the number of rows in the subsample of a tree."""
    if max_samples is None:
        return n
    try:
        size = subsample_size(max_samples, n)
        check_size(n, size, replace=replace)
    except (TypeError, ValueError) as error:
        bound = "" if replace else f" that is at most {n}"
        raise type(error)(
            "`max_samples` must be None, a number of rows of at least 1"
            f"{bound}, or a fraction of them in (0, 1]; got {max_samples!r}."
        ) from error
    return size


def weights_of_classes(
    class_weight: Any, classes: Sequence[Any] | NDArray[Any], codes: Ints
) -> Floats | None:
    """Compute the weight of every row from its class; None if all are equal.

    A mapping has weights by label; classes that are not in it have weight one.
    "balanced" weights are n / (K n_c) for class c with n_c of the n rows and K classes.
    "balanced_subsample" gives None here, because each tree computes its own.

    Examples
    --------
    >>> weights_of_classes("balanced", ["a", "b"], np.array([0, 1, 1]))
    array([1.5 , 0.75, 0.75])
    """
    if class_weight is None:
        return None
    if isinstance(class_weight, str) and class_weight in BALANCED:
        if class_weight != "balanced":
            return None
        counts = np.bincount(codes, minlength=len(classes))
        return np.asarray((codes.size / (len(classes) * counts))[codes])
    if not isinstance(class_weight, Mapping):
        raise TypeError(
            "`class_weight` must be 'balanced', 'balanced_subsample', a dict of "
            f"weights by label, or None; got {class_weight!r}."
        )
    labels = list(classes)
    for label, weight in class_weight.items():
        if label not in labels:
            raise ValueError(
                f"`class_weight` names {label!r}, which is not a class of `y`"
                f"{suggest_name(str(label), list(map(str, labels)))} Classes are "
                f"{', '.join(repr(c) for c in np.asarray(classes).tolist())}."
            )
        number = isinstance(weight, float | int | np.number)
        if not (number and 0 <= weight < np.inf):
            raise ValueError(
                "`class_weight` must have finite weights of at least 0; got "
                f"{weight!r} for {label!r}."
            )
    by_class = np.array([float(class_weight.get(label, 1.0)) for label in labels])
    return np.asarray(by_class[codes])


# Data fields of a kernel, as messages name them.
DATA = {"X": "`X`", "y": "`y`", "weights": "the weights"}
# Parameter names of options of the trees.
_PARAMETERS = {
    "random": "splitter",
    "loss": "criterion",
    "balanced": "class_weight",
    "levels": "categorical_features",
    "stages": "trend` or `boost",
}


@dataclass(frozen=True)
class TrainingRecord:
    """Data, options and subsamples of a fitted forest."""

    kernel: TreeKernel  # data and options of the trees
    design: IidDesign  # subsamples of the trees
    oob: OutOfBag | None  # out-of-bag sums of all trees, if `oob_score=True`
    y: Floats  # (n,): response, or class codes
    units: Labels  # length n: labels of the rows
    response: str  # name of the response

    def differences(self, other: TreeKernel, design: IidDesign) -> Iterator[str]:
        """Name what differs between this fit and another."""
        mine, theirs = _settings(self.kernel), _settings(other)
        if self.kernel.X.shape != other.X.shape:
            yield DATA["X"]
        for name, value in mine.items():
            if theirs[name] != value:
                yield f"`{_PARAMETERS.get(name, name)}`"
        if (self.design.k, self.design.replace) != (design.k, design.replace):
            yield "`max_samples` or `bootstrap`"
        for name, words in DATA.items():
            left, right = getattr(self.kernel, name), getattr(other, name)
            if left is None or right is None:
                same = left is right
            else:
                same = np.array_equal(left, right, equal_nan=True)
            if not same:
                yield words


def _settings(kernel: TreeKernel) -> dict[str, Any]:
    """List what defines the trees of a kernel, besides its data."""
    return {
        "stages": getattr(kernel, "stages", None),
        "levels": kernel.levels,
        "balanced": kernel.balanced,
        **kernel.options,
    }


def features_frame(
    X: Floats, names: Sequence[str], factors: Factors, index: Any
) -> pd.DataFrame:
    """Convert coded features to a frame with names and categories."""
    frame = pd.DataFrame(X, index, list(names))
    for place in factors.places:
        column = frame.iloc[:, place]
        codes = column.fillna(-1).to_numpy().astype(np.int64)
        if codes.min() < 0:
            raise ValueError(
                f"results need factors without missing values; {names[place]!r} has "
                f"{int((codes < 0).sum())}. Add a category for missing values, or use "
                "predict(X, return_std=True), which allows them."
            )
        levels = factors.categories.get(place, pd.RangeIndex(1 + codes.max()))
        frame[names[place]] = pd.Categorical.from_codes(codes, levels)
    return frame


def mean_importances(trees: Sequence[Tree]) -> Floats:
    """Average each feature's share of the reduction in impurity over the trees."""
    gains = np.stack([tree.gains for tree in trees])
    totals = gains.sum(axis=1, keepdims=True)
    shares = np.divide(gains, totals, out=np.zeros_like(gains), where=totals > 0)
    mean = shares.mean(axis=0)
    return np.asarray(mean / mean.sum()) if mean.any() else mean


# Attributes with training data, which pickles do not contain.
NOT_PICKLED = ("_trained", "_results", "_weighted_pairs")
COMPUTED_ONCE = ("_pooled", "_weighted_pairs")  # attributes that standard errors need
# Weight of pooled variances from which the jackknife is computed from pairs of trees.
MOSTLY_POOLED = 0.9
# Attributes that are expensive and computed on demand.
ON_REQUEST = frozenset({"estimators_samples_", "results_"})


class Forest(BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """Base class of the forests; see these for the parameters."""

    _warned_of_error = False
    _warned_of_large_k = False
    trend: str | None = None
    boost = 0
    design_: IidDesign

    def __init__(
        self,
        n_estimators: int | str = "auto",
        *,
        criterion: str = "squared_error",
        splitter: str = "best",
        bootstrap: bool = True,
        max_samples: int | float | None = None,
        max_features: int | float | str | None = 1 / 3,
        min_samples_split: int = 2,
        min_samples_leaf: int = 1,
        max_depth: int | None = None,
        max_leaf_nodes: int | None = None,
        min_weight_fraction_leaf: float = 0.0,
        honest: bool = False,
        trend: str | None = None,
        boost: int = 0,
        categorical_features: Any = None,
        oob_score: bool = False,
        variance: str = "auto",
        warm_start: bool = False,
        random_state: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        self._store_parameters(locals())

    def _store_parameters(self, arguments: Mapping[str, Any]) -> None:
        """Store the arguments of `__init__` as attributes of the same names."""
        for name in self._get_param_names():
            setattr(self, name, arguments[name])

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        # `__new__` only checks names.
        _, *parameters = inspect.signature(cls.__init__).parameters.values()
        cls.__signature__ = inspect.Signature(parameters)

    def __new__(cls, *_: Any, **given: Any) -> Self:
        """Raise an error for unknown parameters before `__init__` is called."""
        check_names(cls.__name__, cls._get_param_names(), given)
        estimator: Self = super().__new__(cls)
        return estimator

    def __dir__(self) -> list[str]:
        """List the attributes that are cheap to read; notebooks read all of them."""
        names = [name for name in object.__dir__(self) if name not in ON_REQUEST]
        return [name for name in names if hasattr(self, name)]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags

    def __getstate__(self) -> dict[str, Any]:
        """Exclude the training data from pickles."""
        fitted = hasattr(self, "estimators_") and hasattr(self, "design_")
        if fitted and why_no_errors(self.design_, self.variance) is None:
            self._estimation()  # it needs the training data
        state: dict[str, Any] = super().__getstate__()
        return {name: value for name, value in state.items() if name not in NOT_PICKLED}

    def __copy__(self) -> Self:
        """Copy with the training data: unlike a pickle, a copy stays in memory."""
        duplicate = object.__new__(type(self))
        duplicate.__dict__.update(self.__dict__)
        return duplicate

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        """Copy all but the training data and results, which are never changed."""
        duplicate = object.__new__(type(self))
        memo[id(self)] = duplicate
        state = dict(vars(self))
        shared = {name: state.pop(name) for name in NOT_PICKLED if name in state}
        duplicate.__dict__.update(copy.deepcopy(state, memo), **shared)
        return duplicate

    def _read(
        self, X: Any, y: Any, sample_weight: Any, *, numeric: bool
    ) -> tuple[Floats, NDArray[Any], Floats | None]:
        """Check the training data, and store the labels of rows and response."""
        shape = np.asarray(y).shape
        if len(shape) == 2 and shape[1] > 1:
            wrapper = "MultiOutputRegressor" if numeric else "MultiOutputClassifier"
            raise ValueError(
                f"`y` must have one column; got {shape[1]}. Fit one forest to each "
                f"column, or use sklearn.multioutput.{wrapper}(forest)."
            )
        number = self.n_estimators
        if number != "auto" and not (is_whole(number) and int(number) >= 1):
            raise ValueError(
                "`n_estimators` must be 'auto' or a whole number, at least 1; got "
                f"{number!r}."
            )
        for name in ("bootstrap", "oob_score", "warm_start"):
            flag = getattr(self, name)
            if not isinstance(flag, bool | np.bool_):
                raise TypeError(f"`{name}` must be True or False; got {flag!r}.")
        check_workers(self.n_jobs)
        check_distinct_names(X)
        self._factors = Factors.find(X, self.categorical_features)
        index = X.index if isinstance(X, pd.DataFrame) else None
        self._labels = (index, str(getattr(y, "name", None) or "y"))
        check_response(y, numeric=numeric)
        with explain_text_errors(X):
            rows, response = validate_data(
                *(self, self._factors.encode(X), y),
                dtype=np.float64,
                y_numeric=numeric,
                ensure_all_finite="allow-nan",
                copy=True,  # results are computed later, and X may change until then
            )
        self._observed = self._factors.observed_codes(rows)
        weights = row_weights(sample_weight, len(rows))
        return np.asarray(rows), np.array(response), weights

    def _fit(
        self,
        X: Floats,
        y: Floats,
        weights: Floats | None,
        n_classes: int | None,
        *,
        by_class: Floats | None = None,
        balanced: bool = False,
    ) -> None:
        scores_before = [name for name in vars(self) if re.fullmatch("oob_.*_", name)]
        for name in scores_before:
            delattr(self, name)
        sampling = weights
        if by_class is not None:
            weights = by_class if weights is None else weights * by_class
        names = (*TREE_OPTIONS, *STAGE_OPTIONS)
        options = {name: getattr(self, name) for name in names}
        trees = tree_kernel(
            *("tree", X, y),
            n_classes=n_classes,
            weights=weights,
            options=options,
            levels=self._factors.levels(X),
        )
        kernel = replace(with_stages(trees, options), balanced=balanced)
        replaced = bool(self.bootstrap)
        size = rows_per_tree(self.max_samples, len(y), replace=replaced)
        seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        if self.warm_start and hasattr(self, "design_"):
            seed = self.design_.seed  # of the existing trees
        design = IidDesign(len(y), size, replaced, seed)
        present = self._existing_trees(kernel, design)
        self.design_ = design
        self._limit, self._tails = value_limit(kernel), prediction_tails(kernel)
        self._share = scale_share(kernel)
        self._reference = reference_rows(X, design.seed, kernel.n_outputs)
        self._orders: HigherOrders | None = None
        for name in COMPUTED_ONCE:
            self.__dict__.pop(name, None)
        self._typical: Estimates | None = None
        self._results: EnsembleResults | None = None
        grown = self._grow(kernel, present)
        self.estimators_ = Trees(grown.learners)
        self.n_estimators_ = len(grown.learners)
        self._warned_of_error = self._warned_of_large_k = False
        self._kernel = stored_kernel(kernel)
        index, response = self.__dict__.pop("_labels")
        units = pd.RangeIndex(len(y)) if index is None else index
        # A copy of the kernel does not have the ranks of the features.
        self._trained = TrainingRecord(
            replace(kernel), design, grown.oob, y, units, response
        )
        if self.oob_score and grown.oob is not None:
            predicted = grown.oob.mean
            scores = score(y, predicted, n_classes, sampling)
            if not scores.table:
                raise ValueError(
                    "`oob_score=True` needs rows that some tree has not seen; use "
                    "bootstrap=True or max_samples below the number of rows."
                )
            self.oob_prediction_, self.oob_scores_ = predicted, scores

    def _existing_trees(
        self, kernel: TreeKernel, design: IidDesign
    ) -> Evaluation | None:
        """Return the existing trees for a warm start; None to grow all trees."""
        trained: TrainingRecord | None = getattr(self, "_trained", None)
        if not self.warm_start or trained is None:
            return None
        different = next(trained.differences(kernel, design), None)
        if different is not None:
            raise ValueError(
                f"warm_start=True adds trees to the existing ones, and {different} "
                "differs from their fit. Use warm_start=False to grow all trees again."
            )
        B, present = self.n_estimators, len(self.estimators_)
        if not isinstance(B, str) and present > B:
            raise ValueError(
                f"warm_start=True adds trees to the {present} existing ones; "
                f"`n_estimators` must be at least {present}, got {B}."
            )
        if present == B:
            warn_caller(
                f"the forest has `n_estimators` = {present} trees already: "
                "warm_start=True adds none.",
                VstatkitWarning,
            )
        if isinstance(B, str) or (self.oob_score and trained.oob is None):
            return None  # the same seed gives the same trees, and the missing sums
        oob = trained.oob if self.oob_score else None
        return Evaluation(np.empty((present, 0)), self.estimators_, oob)

    def _grow(self, kernel: TreeKernel, present: Evaluation | None) -> Evaluation:
        """Grow the trees that are missing from `n_estimators`."""
        task = Task(
            *(kernel, self.design_, kernel.X[:0], None, True, bool(self.oob_score)),
            most_oob=None,
        )
        if isinstance(self.n_estimators, str):
            return grow_forest(
                *(task, self._reference, kernel.n_outputs),
                variance=self.variance,
                limit=self._limit,
                share=self._share,
                n_jobs=self.n_jobs,
            )
        start, stop = 0, int(self.n_estimators)
        if present is not None:
            start = len(present.learners)
            if start == stop:
                return present
        grown = evaluate(task, start, stop, n_jobs=self.n_jobs, progress=False)
        return grown if present is None else present + grown

    @property
    def feature_importances_(self) -> Floats:
        """Impurity-based importance of each feature: its share of the decrease."""
        check_is_fitted(self)
        return mean_importances(self.estimators_)

    @property
    def estimators_samples_(self) -> list[Ints]:
        """Rows in the subsample of each tree; repeated rows occur repeatedly."""
        check_is_fitted(self)
        return list(self.design_.members(0, len(self.estimators_)))

    @property
    def results_(self) -> EnsembleResults:
        """Results as of `fit`: estimates at the typical row, effects, tests, plots.

        They are computed on first access. This predicts the out-of-bag rows and, for a
        numeric response, grows 64 trees on the size of the residuals, which
        `get_prediction` uses for the bounds of new observations. Pickles do not contain
        the training data or the results; use `results_.save(path)`.
        """
        check_is_fitted(self)
        self._check_errors()
        trained: TrainingRecord | None = getattr(self, "_trained", None)
        if trained is None:
            raise ValueError(
                "this forest was pickled, and pickles hold no training data. Fit again "
                "with the same data and random_state, or save the results with "
                "`forest.results_.save(path)` before pickling."
            )
        if self._results is None:
            self._results = self._build_results(trained)
        return self._results

    def _build_results(self, trained: TrainingRecord) -> EnsembleResults:
        """Build the results: estimates at the typical row, and effects."""
        kernel, learners = trained.kernel, list(self.estimators_)
        design, names = self.design_.with_size(len(learners)), self._feature_names()
        parsed = parse_table(
            features_frame(kernel.X, names, self._factors, trained.units),
            trained.y,
            response=trained.response,
            classes=getattr(self, "classes_", None),
        )
        query = build_query(kernel, parsed, None)
        assert query.rows is not None  # trees predict
        task = Task(kernel, design, query.rows, None, keep=True)
        predictor = Predictor(kernel, learners, None, None, self.n_jobs)
        oob = trained.oob
        if oob is None:  # predict the rows that each tree left out
            rows = task.oob_rows(len(kernel.X))
            places = np.arange(len(kernel.X)) if rows is None else rows
            nothing = sparse.csr_array((1, places.size))
            own = OwnLearners(design, places)
            sums = predictor.sums(kernel.X[places], nothing, own)
            oob = OutOfBag(np.asarray(sums.total), np.ravel(sums.times), rows)
        evaluation = Evaluation(predictor.values(query.rows), learners, oob)
        info = ModelInfo(
            title="Forest Results",
            response=response_name(parsed),
            formula=f"{parsed.response} ~ .",
            kernel=type(self).__name__,
            nobs=len(parsed.y),
            typical=parsed.typical_row,
            ranges=parsed.coding.ranges(parsed.frame),
            aim=aim_of(kernel, None),
            weights=None if kernel.weights is None else "given",
            weights_in_column=False,
        )
        results = assemble_results(
            task,
            design,
            evaluation.with_moves(len(query.labels)),
            query,
            info=info,
            units=trained.units,
            method=resolve_for_design(self.variance, design, KernelKind.TREES),
            n_jobs=self.n_jobs,
            progress=False,
            parsed=parsed,
        )
        assert results.predictor is not None
        predictor_with_names = replace(results.predictor, columns=tuple(names))
        return replace(results, predictor=predictor_with_names)

    def summary(self, alpha: float = 0.05) -> Any:
        """Summarise the fitted forest, as `results_.summary()` does."""
        return self.results_.summary(alpha)

    def partial_dependence(
        self,
        X: Any,
        features: Any,
        *,
        sample_weight: Any = None,
        percentiles: tuple[float, float] = (0.05, 0.95),
        grid_resolution: int = 100,
        custom_values: Mapping[Any, Any] | None = None,
        return_std: bool = False,
    ) -> Bunch:
        """Compute the partial dependence on one or two features.

        The result is that of `sklearn.inspection.partial_dependence` with
        method="brute". It is faster, because every tree is traversed once for all rows
        and points.

        Parameters
        ----------
        X : array-like of shape (rows, p)
            Rows to average over.
        features : int, str, or two of them
            Features that are set to the points of the grid, by position or name.
        sample_weight : array-like of shape (rows,), optional
            Weights of the rows in the average.
        percentiles : tuple of float
            Quantiles of a feature at which the grid begins and ends.
        grid_resolution : int
            Number of points of a feature. Factors, and features with fewer values, have
            one point for each value.
        custom_values : dict, optional
            Points of the grid, by feature.
        return_std : bool
            Whether to return standard errors of the averages over these rows.

        Returns
        -------
        Bunch
            `grid_values`, a list with the points of each feature; `average`, of shape
            (outputs, points) or (outputs, points, points); and `std_error`, of the same
            shape, if `return_std=True`. There is one output for regression and for two
            classes (the second class), otherwise one for each class.

        See Also
        --------
        EnsembleResults.partial_dependence : With bands, tests and a plot.

        Examples
        --------
        >>> import vstatkit as vs
        >>> data = vs.datasets.mars(100, rng=1)
        >>> X, y = data[["x1", "x2", "x4"]], data["y"]
        >>> forest = vs.ForestRegressor(50, random_state=1).fit(X, y)
        >>> forest.partial_dependence(X, "x4", grid_resolution=5).average.shape
        (1, 5)
        """
        rows, names = self._rows(X), self._feature_names()
        values, grid = build_grid(
            *(X, rows, find_features(features, names)),
            GridPoints(percentiles, grid_resolution, custom_values or {}),
            names=names,
            factors=self._factors,
            weights=sample_weight,
        )
        trees = self._predictor.dependence(grid)
        result = Bunch(
            grid_values=values, average=by_output(trees.mean(axis=0), values)
        )
        if return_std:
            result.std_error = by_output(self._estimate(averages=trees).bse, values)
        return result

    def _feature_names(self) -> list[str]:
        places = range(self.n_features_in_)
        return list(getattr(self, "feature_names_in_", [f"x{j}" for j in places]))

    def apply(self, X: Any) -> Ints:
        """Apply the trees to X and return leaf indices.

        Returns
        -------
        ndarray of shape (rows, trees)
            Index of the leaf among the `nodes` of each tree.
        """
        rows = self._rows(X)
        leaves = [self._kernel.leaves(tree, rows) for tree in self.estimators_]
        return np.stack(leaves, axis=1).astype(np.int64)

    def _rows(self, X: Any) -> Floats:
        check_is_fitted(self)
        check_distinct_names(X)
        with explain_text_errors(X):
            rows = validate_data(
                *(self, self._factors.encode(X)),
                reset=False,
                dtype=np.float64,
                ensure_all_finite="allow-nan",
            )
        self._factors.check(rows)
        self._warn_of_levels(X, np.asarray(rows))
        return np.asarray(rows)

    def _warn_of_levels(self, X: Any, rows: Floats) -> None:
        """Warn about levels of factors that no training row has."""
        observed = getattr(self, "_observed", {})  # pickles of earlier versions lack it
        for place, levels in observed.items():
            table = isinstance(X, pd.DataFrame)
            values = X.iloc[:, place] if table else pd.Series(rows[:, place])
            unseen = values[
                values.notna().to_numpy() & ~np.isin(rows[:, place], levels)
            ]
            name = X.columns[place] if table else f"column {place}"
            if len(unseen):
                warn_of([unobserved_finding(name, unseen, len(rows))])
                return

    def _variance_estimator(self) -> str:
        return resolve_for_design(self.variance, self.design_, KernelKind.TREES)

    @property
    def _predictor(self) -> Predictor:
        return Predictor(self._kernel, self.estimators_, None, None, self.n_jobs)

    def _by_output(self, values: Floats, first: Floats) -> Floats:
        """Shape values like predictions, given those of the first of two classes."""
        raise NotImplementedError

    def _mean(self, X: Any) -> Floats:
        rows = self._rows(X)
        mean = self._predictor.mean(rows).reshape(len(rows), -1)
        return self._by_output(mean, 1 - mean)

    def _predict(
        self, X: Any, return_std: bool, return_interval: bool, alpha: float
    ) -> Floats | tuple[Floats, ...]:
        """Predict, with standard errors and intervals if they are wanted."""
        if not (return_std or return_interval):
            return self._mean(X)
        rows = self._rows(X)
        estimates = self._estimate(rows)
        mean = estimates.estimate.reshape(len(rows), -1)
        parts = [self._by_output(mean, 1 - mean)]
        if return_std:
            std = estimates.bse.reshape(len(rows), -1)
            parts.append(self._by_output(std, std))
        if return_interval:
            parts.append(self._intervals(estimates, alpha))
        return tuple(parts)

    def predict_interval(self, X: Any, alpha: float = 0.05) -> Floats:
        """Compute confidence intervals: shape (rows, 2), or (rows, K, 2) of classes."""
        return self._intervals(self._estimate(self._rows(X)), alpha)

    def _intervals(self, estimates: Estimates, alpha: float) -> Floats:
        ends = self._with_tails(estimates).interval(alpha)
        lower, upper = (end.reshape(-1, self._kernel.n_outputs) for end in ends)
        by_output = [
            self._by_output(lower, 1 - upper),
            self._by_output(upper, 1 - lower),
        ]
        return np.stack(by_output, axis=-1)

    def _check_errors(self) -> None:
        """Raise an error if standard errors are not available."""
        if len(self.estimators_) < 2:
            raise ValueError("standard errors need at least two trees.")
        reason = why_no_errors(self.design_, self.variance)
        if reason is not None:
            raise ValueError(reason)

    def _estimate(
        self, X: Floats | None = None, *, averages: Floats | None = None
    ) -> Estimates:
        """Estimate predictions, or averages of trees; warn once of large errors."""
        self._check_errors()
        message = large_k_warning(
            self._variance_estimator(), self.design_, KernelKind.TREES
        )
        if message and not self._warned_of_large_k:
            self._warned_of_large_k = True
            warn_caller(message, VstatkitWarning)
        if X is not None:
            estimates = self._predictor.estimates(X, self._estimation())
        else:
            assert averages is not None
            estimates = self._estimation(of_averages=True).of(averages)
        if not self._warned_of_error:
            share = getattr(self, "_share", 1.0)  # pickles of earlier versions lack it
            self._warned_of_error = warn_if_imprecise(
                estimates, self.n_estimators_, self._limit, share
            )
        return estimates

    def _with_tails(self, estimates: Estimates) -> Estimates:
        """Add the support and the tails of predictions, which intervals use."""
        if self._typical is None:
            how, B = replace(self._estimation(), pairs=None), len(self.estimators_)
            self._typical = typical_estimates(self._predictor, self._reference, how, B)
        units, tails = self.design_.n, typical_tails(self._tails, self._typical)
        support = prediction_support(self._kernel, units)
        if support is not None:
            support = typical_support(support, self._typical, units)
        return replace(estimates, support=support, tails=tails)

    def _estimation(self, *, of_averages: bool = False) -> Estimation:
        """Choose the variance estimation, for predictions or averages."""
        method = self._variance_estimator()
        if not ESTIMATORS[method].beyond:
            return Estimation(self.design_, method, self._limit, None)
        orders = self._measured_orders()
        if of_averages:
            orders = average_orders(orders)
        pooling = None if of_averages else self._pooling()
        how = Estimation(self.design_, method, self._limit, orders, *(pooling or ()))
        return how if pooling is None else replace(how, pairs=self._pairs(orders))

    def _pairs(self, orders: HigherOrders) -> LearnerPairs | None:
        """Weigh the pairs of trees, once, if single points say little."""
        B = len(self.estimators_)
        if typical_pooled_share(self.design_, B, orders) < MOSTLY_POOLED:
            return None
        if "_weighted_pairs" not in self.__dict__:
            self._weighted_pairs = LearnerPairs.of(self.design_, B)
        return self._weighted_pairs

    def _measured_orders(self) -> HigherOrders:
        """Measure the correction beyond the first order, once."""
        if self._orders is None:
            predictor, rows = self._predictor, self._reference
            self._orders = measure_orders(
                self.design_,
                len(self.estimators_),
                lambda L: predictor.first(L).values(rows),
                self._kernel.kind,
            )
        return self._orders

    def _pooling(self) -> tuple[PooledVariance, RowResiduals] | None:
        """Measure what the variances of predictions have in common, once."""
        trained: TrainingRecord | None = getattr(self, "_trained", None)
        if "_pooled" not in self.__dict__ and trained is not None:
            forest = ForestData(trained.kernel, self.design_, None, self.estimators_)
            orders = self._measured_orders()
            self._pooled = measure_pooled_variance(forest, orders, n_jobs=self.n_jobs)
        return getattr(self, "_pooled", None)
