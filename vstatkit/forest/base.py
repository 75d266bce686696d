"""What the forests for regression and for classes share."""

import copy
import inspect
import warnings
from dataclasses import replace
from typing import Any, Self

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from vstatkit._typing import Floats, Ints
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
from vstatkit.exceptions import VstatkitWarning
from vstatkit.forest.answers import results_of
from vstatkit.forest.dependence import Dependence
from vstatkit.forest.parameters import (
    check_flag,
    check_names,
    check_tree_number,
    check_workers,
    rows_per_tree,
)
from vstatkit.forest.reading import (
    check_distinct_names,
    check_response,
    telling_of_text,
)
from vstatkit.forest.training import Trained
from vstatkit.forest.trees import Trees
from vstatkit.formula.data_checks import unobserved_finding, warn_of
from vstatkit.inference.estimate import Estimation
from vstatkit.inference.estimates import Estimates
from vstatkit.inference.intervals import (
    prediction_support,
    prediction_tails,
    value_limit,
)
from vstatkit.inference.precision import scale_share
from vstatkit.kernels.evaluation import Evaluation
from vstatkit.kernels.kind import KernelKind
from vstatkit.kernels.levels import Factors
from vstatkit.kernels.staged import STAGE_OPTIONS, stored, with_stages
from vstatkit.kernels.tree_options import TREE_OPTIONS
from vstatkit.kernels.trees import TreeKernel, tree_kernel
from vstatkit.results.beyond import (
    typical_estimates,
    typical_support,
    typical_tails,
)
from vstatkit.results.ensemble_results import EnsembleResults
from vstatkit.results.rows import average_orders
from vstatkit.sampling.iid import IidDesign
from vstatkit.variance.hoeffding import HigherOrders, measure_orders, reference_rows
from vstatkit.variance.registry import ESTIMATORS, large_k_warning

OOB_ATTRIBUTES = (
    "oob_score_",
    "oob_scores_",
    "oob_prediction_",
    "oob_decision_function_",
)
"""What `oob_score=True` leaves on a fitted forest."""

NOT_PICKLED = ("_trained", "_results")
"""Attributes that hold the training data: pickles are for predicting."""

ON_REQUEST = frozenset({"estimators_samples_", "results_"})
"""Attributes that take time or room, and are made when they are asked for."""


class Forest(Dependence, BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
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
        self.n_estimators = n_estimators
        self.criterion = criterion
        self.splitter = splitter
        self.bootstrap = bootstrap
        self.max_samples = max_samples
        self.max_features = max_features
        self.min_samples_split = min_samples_split
        self.min_samples_leaf = min_samples_leaf
        self.max_depth = max_depth
        self.max_leaf_nodes = max_leaf_nodes
        self.min_weight_fraction_leaf = min_weight_fraction_leaf
        self.honest = honest
        self.trend = trend
        self.boost = boost
        self.categorical_features = categorical_features
        self.oob_score = oob_score
        self.variance = variance
        self.warm_start = warm_start
        self.random_state = random_state
        self.n_jobs = n_jobs

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        cls.__signature__ = _signature(cls)

    def __new__(cls, *_: Any, **given: Any) -> Self:
        """Refuse parameters that there are not, and say what was probably meant."""
        check_names(cls.__name__, cls._get_param_names(), given)
        made: Self = super().__new__(cls)
        return made

    def __dir__(self) -> list[str]:
        """List what is there: notebooks look at all of it to show an estimator."""
        names = [name for name in object.__dir__(self) if name not in ON_REQUEST]
        return [name for name in names if hasattr(self, name)]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags

    def __getstate__(self) -> dict[str, Any]:
        """Leave the training data out of pickles."""
        state: dict[str, Any] = super().__getstate__()
        return {name: one for name, one in state.items() if name not in NOT_PICKLED}

    def __copy__(self) -> Self:
        """Copy the training data along: unlike a pickle, a copy stays in memory."""
        made = object.__new__(type(self))
        made.__dict__.update(self.__dict__)
        return made

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        """Copy everything but the training data and results, which never change."""
        made = object.__new__(type(self))
        memo[id(self)] = made
        shared = {name: one for name, one in vars(self).items() if name in NOT_PICKLED}
        own = {name: one for name, one in vars(self).items() if name not in shared}
        made.__dict__.update(copy.deepcopy(own, memo), **shared)
        return made

    def _read(self, X: Any, y: Any, *, numeric: bool) -> tuple[Floats, NDArray[Any]]:
        """Check training data, and remember the labels of rows and response."""
        self._check_parameters()
        check_distinct_names(X)
        self._factors = Factors.find(X, self.categorical_features)
        index = X.index if isinstance(X, pd.DataFrame) else None
        self._labels = (index, str(getattr(y, "name", None) or "y"))
        check_response(y, numeric=numeric)
        with telling_of_text(X):
            rows, response = validate_data(
                *(self, self._factors.coded(X), y),
                dtype=np.float64,
                y_numeric=numeric,
                ensure_all_finite="allow-nan",
                copy=True,  # results are made later, and X may change until then
            )
        self._observed = self._factors.observed(rows)
        return np.asarray(rows), np.array(response)

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
        self._forget_scores()
        sampling = weights
        if by_class is not None:
            weights = by_class if weights is None else weights * by_class
        names = (*TREE_OPTIONS, *STAGE_OPTIONS)
        options = {name: getattr(self, name) for name in names}
        how: dict[str, Any] = {"n_classes": n_classes, "weights": weights}
        how |= {"options": options, "levels": self._factors.levels(X)}
        kernel = with_stages(tree_kernel("tree", X, y, **how), options)
        kernel = replace(kernel, balanced=balanced) if balanced else kernel
        design = self._design(len(y))
        present = self._present(kernel, design)
        self.design_ = design
        self._limit, self._tails = value_limit(kernel), prediction_tails(kernel)
        self._share = scale_share(kernel)
        self._reference = reference_rows(X, design.seed, kernel.n_outputs)
        self._orders: HigherOrders | None = None
        self._typical: Estimates | None = None
        self._results: EnsembleResults | None = None
        grown = self._grow(kernel, present)
        self.estimators_ = Trees(grown.learners)
        self.n_estimators_ = len(grown.learners)
        self._told = False
        self._told_of_large_k = False
        self._kernel = stored(kernel)
        index, response = self.__dict__.pop("_labels")
        units = pd.RangeIndex(len(y)) if index is None else index
        # A copy of the kernel is without the ranks that it was grown by.
        self._trained = Trained(replace(kernel), design, grown.oob, y, units, response)
        if self.oob_score and grown.oob is not None:
            predicted = grown.oob.mean
            self._keep_scores(predicted, score(y, predicted, n_classes, sampling))

    def _design(self, n: int) -> IidDesign:
        """Draw as the present trees were drawn, if there are to be more of them."""
        replaced = bool(self.bootstrap)
        size = rows_per_tree(self.max_samples, n, replace=replaced)
        seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        if self.warm_start and hasattr(self, "design_"):
            seed = self.design_.seed
        return IidDesign(n, size, replaced, seed)

    def _present(self, kernel: TreeKernel, design: IidDesign) -> Evaluation | None:
        """Take the trees that there are, if a warm start can go on from them."""
        trained: Trained | None = getattr(self, "_trained", None)
        if not self.warm_start or trained is None:
            return None
        different = trained.difference(kernel, design)
        if different is not None:
            raise ValueError(
                f"warm_start=True adds trees to those there are, and {different} "
                "differs from when they were grown. Fit with warm_start=False to grow "
                "all trees anew."
            )
        B, present = self.n_estimators, len(self.estimators_)
        if not isinstance(B, str) and present > B:
            raise ValueError(
                f"warm_start=True adds trees to the {present} there are; "
                f"`n_estimators` must be at least {present}, got {B}."
            )
        if present == B:
            warnings.warn(
                f"there are {present} trees already, as `n_estimators` asks for: "
                "warm_start=True adds none.",
                VstatkitWarning,
                stacklevel=4,
            )
        if isinstance(B, str) or (self.oob_score and trained.oob is None):
            return (
                None  # the same seed gives the same trees again, with what is missing
            )
        oob = trained.oob if self.oob_score else None
        return Evaluation(np.empty((present, 0)), self.estimators_, oob)

    def _grow(self, kernel: TreeKernel, present: Evaluation | None) -> Evaluation:
        """Grow as many trees as `n_estimators` asks for, beside those there are."""
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

    def _check_parameters(self) -> None:
        check_tree_number(self.n_estimators)
        for name in ("bootstrap", "oob_score", "warm_start"):
            check_flag(name, getattr(self, name))
        check_workers(self.n_jobs)

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

    @property
    def estimators_samples_(self) -> list[Ints]:
        """Rows that each tree saw, as often as it saw them."""
        check_is_fitted(self)
        return list(self.design_.members(0, len(self.estimators_)))

    @property
    def results_(self) -> EnsembleResults:
        """What `fit` gives: estimates at the typical row, effects, tests, pictures.

        They are made when they are first asked for: the rows that trees left out are
        predicted, and for a numeric response 64 trees are grown on the size of the
        residuals, by which `get_prediction` bounds new observations. Pickles hold no
        training data, and so no results: save these by `results_.save(path)`.
        """
        check_is_fitted(self)
        self._check_errors()
        trained: Trained | None = getattr(self, "_trained", None)
        if trained is None:
            raise ValueError(
                "this forest was pickled, and pickles hold no training data. "
                "Fit again with the same data and random_state, or save "
                "`forest.results_.save(path)` beside the pickle."
            )
        if self._results is None:
            self._results = results_of(
                trained,
                self.estimators_,
                name=type(self).__name__,
                names=self._feature_names(),
                factors=self._factors,
                classes=getattr(self, "classes_", None),
                variance=self.variance,
                n_jobs=self.n_jobs,
            )
        return self._results

    def summary(self, alpha: float = 0.05) -> Any:
        """Summarise the fitted forest, as `results_.summary()` does."""
        return self.results_.summary(alpha)

    def _feature_names(self) -> list[str]:
        found = getattr(self, "feature_names_in_", None)
        return (
            [f"x{j}" for j in range(self.n_features_in_)] if found is None else [*found]
        )

    def apply(self, X: Any) -> Ints:
        """Find the leaf of every row in every tree.

        Returns
        -------
        ndarray of shape (rows, trees)
            Places of the leaves among the `nodes` of each tree.
        """
        rows = self._rows(X)
        leaves = [self._kernel.leaves(tree, rows) for tree in self.estimators_]
        return np.stack(leaves, axis=1).astype(np.int64)

    def _rows(self, X: Any) -> Floats:
        check_is_fitted(self)
        check_distinct_names(X)
        with telling_of_text(X):
            rows = validate_data(
                *(self, self._factors.coded(X)),
                reset=False,
                dtype=np.float64,
                ensure_all_finite="allow-nan",
            )
        self._factors.check(rows)
        self._tell_of_levels(X, np.asarray(rows))
        return np.asarray(rows)

    def _tell_of_levels(self, X: Any, rows: Floats) -> None:
        """Warn of levels of factors that no training row has."""
        known = getattr(self, "_observed", {})  # pickles of earlier versions have none
        for place, levels in known.items():
            table = isinstance(X, pd.DataFrame)
            given = X.iloc[:, place] if table else pd.Series(rows[:, place])
            unseen = given[given.notna().to_numpy() & ~np.isin(rows[:, place], levels)]
            name = X.columns[place] if table else f"column {place}"
            if len(unseen):
                warn_of([unobserved_finding(name, unseen, len(rows))])
                return

    @property
    def _predictor(self) -> Predictor:
        return Predictor(self._kernel, self.estimators_, None, None, self.n_jobs)

    def _mean(self, X: Floats) -> Floats:
        return self._predictor.mean(X).reshape(len(X), -1)

    def _check_errors(self) -> None:
        """Refuse standard errors where there are none."""
        if len(self.estimators_) < 2:
            raise ValueError("standard errors need at least two trees.")
        reason = why_no_errors(self.design_, self.variance)
        if reason is not None:
            raise ValueError(reason)

    def _estimate(self, X: Floats) -> Estimates:
        self._check_errors()
        self._tell_of_large_k()
        found = self._predictor.estimates(X, self._estimation())
        if not self._told:
            self._told = self._tell_of_error(found)
        return found

    def _with_tails(self, found: Estimates) -> Estimates:
        """Add what intervals need to know of predictions in general, found once."""
        if self._typical is None:
            how, B = self._estimation(), len(self.estimators_)
            self._typical = typical_estimates(self._predictor, self._reference, how, B)
        units = self.design_.n
        support, tails = prediction_support(self._kernel, units), self._tails
        if support is not None:
            support = typical_support(support, self._typical, units)
        if tails is not None:
            tails = typical_tails(tails, self._typical)
        return replace(found, support=support, tails=tails)

    def _tell_of_error(self, found: Estimates) -> bool:
        """Warn where standard errors are hardly known."""
        share = getattr(self, "_share", 1.0)  # pickles of earlier versions have none
        return tell_of_error(
            found, self.n_estimators_, self._limit, share, stacklevel=5
        )

    def _tell_of_large_k(self) -> None:
        """Warn, once, of an estimator that is too low for so many rows a tree."""
        method = tree_variance(self.variance, self.design_)
        words = large_k_warning(method, self.design_, KernelKind.TREES)
        if words and not getattr(self, "_told_of_large_k", False):
            self._told_of_large_k = True
            warnings.warn(words, VstatkitWarning, stacklevel=4)

    def _average_errors(self, averages: Floats) -> Floats:
        """Estimate the standard errors of averages that every tree has."""
        self._check_errors()
        self._tell_of_large_k()
        found = self._estimation(of_averages=True).of(averages)
        if not self._told:
            self._told = self._tell_of_error(found)
        return found.bse

    def _estimation(self, *, of_averages: bool = False) -> Estimation:
        """Settle how trees become standard errors, of predictions or of averages."""
        method = tree_variance(self.variance, self.design_)
        orders = self._known_orders() if ESTIMATORS[method].beyond else None
        if of_averages and orders is not None:
            orders = average_orders(orders)
        return Estimation(self.design_, method, self._limit, orders)

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


def _signature(kind: type[Forest]) -> inspect.Signature:
    """List the parameters of `__init__`: `__new__` only checks their names."""
    _, *parameters = inspect.signature(kind.__init__).parameters.values()
    return inspect.Signature(parameters)


Forest.__signature__ = _signature(Forest)

PARAMETERS = frozenset(Forest().get_params())
"""Names of what the constructors take."""
