"""scikit-learn estimators on the compiled grower, with standard errors."""

from dataclasses import replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from vstatkit._typing import Floats
from vstatkit.ensemble.evaluate import Task, evaluate
from vstatkit.ensemble.forests import (
    grow_forest,
    importances,
    tell_of_error,
    tree_variance,
    why_no_errors,
)
from vstatkit.ensemble.prediction import Predictor
from vstatkit.ensemble.scores import Scores, score
from vstatkit.inference.estimate import Estimation
from vstatkit.inference.estimates import Estimates
from vstatkit.inference.intervals import prediction_support, value_limit
from vstatkit.kernels.evaluation import Evaluation
from vstatkit.kernels.levels import Factors
from vstatkit.kernels.staged import STAGE_OPTIONS, stored, with_stages
from vstatkit.kernels.tree_options import TREE_OPTIONS
from vstatkit.kernels.trees import TreeKernel, tree_kernel
from vstatkit.kernels.weights import row_weights
from vstatkit.sampling.design import check_size
from vstatkit.sampling.iid import IidDesign
from vstatkit.sampling.sizes import subsample_size
from vstatkit.variance.orders import HigherOrders, measure_orders
from vstatkit.variance.reference import reference_rows
from vstatkit.variance.registry import ESTIMATORS

OOB_ATTRIBUTES = (
    "oob_score_",
    "oob_scores_",
    "oob_prediction_",
    "oob_decision_function_",
)
"""What `oob_score=True` leaves on a fitted forest."""


class _Forest(BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """What both forests share; the parameters are documented in each."""

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
        honest: bool = False,
        trend: str | None = None,
        boost: int = 0,
        categorical_features: Any = None,
        oob_score: bool = False,
        variance: str = "auto",
        random_state: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        self.n_estimators = n_estimators
        self.criterion = criterion
        self.splitter = splitter
        self.bootstrap = bootstrap
        self.max_samples = max_samples
        self.max_features = max_features
        self.min_samples_split = min_samples_split
        self.min_samples_leaf = min_samples_leaf
        self.max_depth = max_depth
        self.honest = honest
        self.trend = trend
        self.boost = boost
        self.categorical_features = categorical_features
        self.oob_score = oob_score
        self.variance = variance
        self.random_state = random_state
        self.n_jobs = n_jobs

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags

    def _fit(
        self, X: Floats, y: Floats, weights: Floats | None, n_classes: int | None
    ) -> None:
        self._check_parameters()
        self._forget_scores()
        n = len(y)
        size = self._subsample_size(n)
        seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        self.design_ = IidDesign(n, size, bool(self.bootstrap), seed)
        names = (*TREE_OPTIONS, *STAGE_OPTIONS)
        options = {name: getattr(self, name) for name in names}
        how: dict[str, Any] = {"n_classes": n_classes, "weights": weights}
        how |= {"options": options, "levels": self._factors.levels(X)}
        kernel = with_stages(tree_kernel("tree", X, y, **how), options)
        self._limit = value_limit(kernel)
        self._reference = reference_rows(X, seed, kernel.n_outputs)
        self._orders: HigherOrders | None = None
        grown = self._grow(kernel)
        self.estimators_ = grown.learners
        self.n_estimators_ = len(grown.learners)
        self._told = False
        self._kernel = stored(kernel)
        if self.oob_score and grown.oob is not None:
            self._keep_scores(grown.oob.mean, score(y, grown.oob.mean, n_classes))

    def _grow(self, kernel: TreeKernel) -> Evaluation:
        """Grow as many trees as `n_estimators` asks for."""
        task = Task(
            *(kernel, self.design_, kernel.X[:0], None, True, bool(self.oob_score)),
            most_oob=None,
        )
        if not isinstance(self.n_estimators, str):
            B = int(self.n_estimators)
            return evaluate(task, 0, B, n_jobs=self.n_jobs, progress=False)
        return grow_forest(
            *(task, self._reference, kernel.n_outputs),
            variance=self.variance,
            limit=self._limit,
            n_jobs=self.n_jobs,
        )

    def _check_parameters(self) -> None:
        given = self.n_estimators
        whole = isinstance(given, int | np.integer) and not isinstance(given, bool)
        if given != "auto" and not (whole and int(given) >= 1):
            raise ValueError(
                "`n_estimators` must be 'auto' or a whole number, at least 1; got "
                f"{given!r}."
            )
        for name in ("bootstrap", "oob_score"):
            given = getattr(self, name)
            if not isinstance(given, bool | np.bool_):
                raise TypeError(f"`{name}` must be True or False; got {given!r}.")

    def _subsample_size(self, n: int) -> int:
        if self.max_samples is None:
            return n
        try:
            size = subsample_size(self.max_samples, n)
            check_size(n, size, replace=bool(self.bootstrap))
        except (TypeError, ValueError) as error:
            bound = "" if self.bootstrap else f" that is at most {n}"
            raise type(error)(
                "`max_samples` must be None, a number of rows of at least 1"
                f"{bound}, or a fraction of them in (0, 1]; got {self.max_samples!r}."
            ) from error
        return size

    def _forget_scores(self) -> None:
        """Drop the scores of an earlier fit."""
        for name in OOB_ATTRIBUTES:
            if hasattr(self, name):
                delattr(self, name)

    def _keep_scores(self, predicted: Floats, scores: Scores) -> None:
        if not scores.table:
            raise ValueError(
                "`oob_score=True` needs rows that some tree has not seen; use "
                "bootstrap=True or max_samples below the number of rows."
            )
        self.oob_prediction_ = predicted
        self.oob_scores_ = scores

    @property
    def feature_importances_(self) -> Floats:
        """Share of the impurity that the splits on each feature remove."""
        check_is_fitted(self)
        return importances(self.estimators_)

    def _rows(self, X: Any) -> Floats:
        check_is_fitted(self)
        rows = validate_data(
            *(self, self._factors.coded(X)),
            reset=False,
            dtype=np.float64,
            ensure_all_finite="allow-nan",
        )
        self._factors.check(rows)
        return np.asarray(rows)

    @property
    def _predictor(self) -> Predictor:
        return Predictor(self._kernel, self.estimators_, None, None, self.n_jobs)

    def _mean(self, X: Floats) -> Floats:
        return self._predictor.mean(X).reshape(len(X), -1)

    def _estimate(self, X: Floats) -> Estimates:
        if len(self.estimators_) < 2:
            raise ValueError("standard errors need at least two trees.")
        reason = why_no_errors(self.design_)
        if reason is not None:
            raise ValueError(reason)
        method = tree_variance(self.variance, self.design_)
        orders = self._known_orders() if ESTIMATORS[method].beyond else None
        found = self._predictor.estimates(
            X, Estimation(self.design_, method, self._limit, orders)
        )
        if not self._told:
            self._told = tell_of_error(found, self.n_estimators_, self._limit)
        return replace(found, support=prediction_support(self._kernel, self.design_.n))

    def _known_orders(self) -> HigherOrders:
        """Compare the trees beyond the first order, once."""
        if self._orders is None:
            predictor, rows = self._predictor, self._reference
            self._orders = measure_orders(
                self.design_,
                len(self.estimators_),
                lambda L: predictor.first(L).values(rows),
                self._kernel.kind,
            )
        return self._orders


PARAMETERS = frozenset(_Forest().get_params())
"""Names of what the constructors take."""


class ForestRegressor(RegressorMixin, _Forest):  # type: ignore[misc]
    """A random forest for regression, with standard errors.

    Parameters
    ----------
    n_estimators : int or "auto"
        Number of trees. "auto" grows 500, and then as many as standard errors need:
        until a typical one, over up to 50 reference rows made from data and seed,
        has a Monte Carlo error below 10 %, or below a thousandth of the range of
        the response. It stops at 5,000 trees, or at 16 million nodes (256 MB). A
        number is taken as it is. Where the typical standard error of a prediction
        is known to no better than 25 %, a `MonteCarloWarning`, once per fit, says how
        many trees are enough.
    criterion : "squared_error", "poisson" or "absolute_error"
        What splits make small. Leaves predict the mean, under "absolute_error" the
        median; "poisson" is for responses that are never negative.
    splitter : "best" or "random"
        Try all thresholds of a feature, or one at random, as extremely randomised
        trees do.
    bootstrap : bool
        Subsample with replacement, or without.
    max_samples : int, float or None
        Subsample size, or a fraction of the rows; None for as many as there are.
        Without replacement, None lets every tree see every row once, and there are no
        standard errors.
    max_features : int, float, "sqrt", "log2" or None
        Features tried at a split; None for all.
    min_samples_split, min_samples_leaf : int
        Fewest rows of a node that is split, and of a leaf.
    max_depth : int or None
        Largest depth of a tree.
    honest : bool
        Split with one half of the subsample and estimate with the other.
    trend, boost : "linear" or None, 1 or 0
        Stages that reduce the bias of a tree; see `fit`.
    categorical_features : array-like, "from_dtype" or None
        Columns that are unordered factors of up to 64 levels: a mask, places or names,
        or all that have pandas' categorical dtype. Other columns must hold codes from
        0 to 63. Categories that are new in prediction are missing values.
    oob_score : bool
        Whether to score out-of-bag predictions.
    variance : str
        Variance estimator, as in `fit`.
    random_state : int, RandomState or None
        Seed. The same seed gives the same forest for any `n_jobs`.
    n_jobs : int, optional
        Threads.

    Attributes
    ----------
    estimators_ : list of Tree or StagedTree
        Fitted trees.
    n_estimators_ : int
        Number of fitted trees.
    design_ : IidDesign
        Which rows each tree saw.
    oob_score_ : float
        Out-of-bag R-squared, if asked for.
    oob_prediction_ : ndarray of shape (n,)
        Out-of-bag predictions, if asked for.
    feature_importances_ : ndarray of shape (p,)
        Impurity-based importances; of the trees alone, where there is a trend.

    Examples
    --------
    >>> import vstatkit as vs
    >>> data = vs.datasets.mars(200, rng=1)
    >>> X, y = data.drop(columns="y"), data["y"]
    >>> forest = vs.ForestRegressor(max_samples=70, random_state=1).fit(X, y)
    >>> mean, std = forest.predict(X.head(2), return_std=True)
    >>> bool((std > 0).all())
    True
    """

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Grow the forest."""
        self._factors = Factors.find(X, self.categorical_features)
        X, y = validate_data(
            *(self, self._factors.coded(X), y),
            dtype=np.float64,
            y_numeric=True,
            ensure_all_finite="allow-nan",
        )
        weights = row_weights(sample_weight, len(X))
        self._fit(X, np.asarray(y, dtype=np.float64), weights, None)
        if self.oob_score:
            self.oob_prediction_ = self.oob_prediction_[:, 0]
            self.oob_score_ = self.oob_scores_.table.get("OOB R-squared", np.nan)
        return self

    def predict(
        self, X: Any, return_std: bool = False
    ) -> Floats | tuple[Floats, Floats]:
        """Predict means, with their standard errors on request."""
        rows = self._rows(X)
        if not return_std:
            return self._mean(rows)[:, 0]
        found = self._estimate(rows)
        return found.estimate, found.bse

    def predict_interval(self, X: Any, alpha: float = 0.05) -> Floats:
        """Confidence intervals of the means, shape (rows, 2)."""
        found = self._estimate(self._rows(X))
        return np.column_stack(found.interval(alpha))


class ForestClassifier(ClassifierMixin, _Forest):  # type: ignore[misc]
    """A random forest for classes, with standard errors of the probabilities.

    Parameters
    ----------
    n_estimators, splitter, bootstrap, max_samples
        See `ForestRegressor`.
    criterion : "gini"
        What splits make small.
    min_samples_split, min_samples_leaf
        See `ForestRegressor`.
    max_features : int, float, "sqrt", "log2" or None
        Features tried at a split; None for all.
    max_depth, honest, categorical_features, oob_score, variance, random_state, n_jobs
        See `ForestRegressor`.

    Attributes
    ----------
    classes_ : ndarray of shape (K,)
        Class labels.
    estimators_, n_estimators_, design_, feature_importances_
        See `ForestRegressor`.
    oob_score_ : float
        Out-of-bag accuracy, if asked for.
    oob_decision_function_ : ndarray of shape (n, K)
        Out-of-bag probabilities, if asked for.
    """

    def __init__(
        self,
        n_estimators: int | str = "auto",
        *,
        criterion: str = "gini",
        splitter: str = "best",
        bootstrap: bool = True,
        max_samples: int | float | None = None,
        max_features: int | float | str | None = "sqrt",
        min_samples_split: int = 2,
        min_samples_leaf: int = 1,
        max_depth: int | None = None,
        honest: bool = False,
        categorical_features: Any = None,
        oob_score: bool = False,
        variance: str = "auto",
        random_state: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        given = {name: value for name, value in locals().items() if name in PARAMETERS}
        super().__init__(**given)

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Grow the forest."""
        self._factors = Factors.find(X, self.categorical_features)
        X, y = validate_data(
            *(self, self._factors.coded(X), y),
            dtype=np.float64,
            ensure_all_finite="allow-nan",
        )
        check_classification_targets(y)
        self.classes_, codes = np.unique(y, return_inverse=True)
        weights = row_weights(sample_weight, len(X))
        self._fit(X, codes.astype(np.float64), weights, max(2, len(self.classes_)))
        if self.oob_score:
            self.oob_decision_function_ = self._all_classes(self.oob_prediction_)
            self.oob_score_ = self.oob_scores_.table["OOB accuracy"]
        return self

    def _all_classes(self, share: Floats) -> Floats:
        """Add the column of the first of two classes."""
        if len(self.classes_) > 2:
            return share
        return self._both(1 - share, share)

    def _both(self, first: Floats, second: Floats) -> Floats:
        """Put two columns together; one where the data hold a single class."""
        return np.column_stack([first, second])[:, : len(self.classes_)]

    def predict_proba(
        self, X: Any, return_std: bool = False
    ) -> Floats | tuple[Floats, Floats]:
        """Predict class probabilities, with their standard errors on request."""
        rows = self._rows(X)
        if not return_std:
            return self._all_classes(self._mean(rows))
        found = self._estimate(rows)
        std = found.bse.reshape(len(rows), -1)
        if len(self.classes_) <= 2:
            std = self._both(std, std)
        return self._all_classes(found.estimate.reshape(len(rows), -1)), std

    def predict(self, X: Any) -> NDArray[Any]:
        """Predict the most probable class."""
        share = self._all_classes(self._mean(self._rows(X)))
        return np.asarray(self.classes_[share.argmax(axis=1)])

    def predict_interval(self, X: Any, alpha: float = 0.05) -> Floats:
        """Confidence intervals of the probabilities, shape (rows, K, 2).

        They lie inside [0, 1].
        """
        rows = self._rows(X)
        found = self._estimate(rows)
        lower, upper = (end.reshape(len(rows), -1) for end in found.interval(alpha))
        if len(self.classes_) <= 2:
            lower, upper = self._both(1 - upper, lower), self._both(1 - lower, upper)
        return np.stack([lower, upper], axis=2)
