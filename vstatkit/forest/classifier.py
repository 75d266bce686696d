"""`ForestClassifier`, a random forest for classes."""

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets

from vstatkit._typing import Floats
from vstatkit.forest.base import Forest, weights_of_classes
from vstatkit.validation import with_advice


class ForestClassifier(ClassifierMixin, Forest):  # type: ignore[misc]
    """A random forest classifier with standard errors of the probabilities.

    Parameters
    ----------
    n_estimators, splitter, bootstrap, max_samples
        See `ForestRegressor`.
    criterion : {"gini", "entropy", "log_loss"}, default="gini"
        Criterion of the splits; "log_loss" is another name of "entropy".
    min_samples_split, min_samples_leaf
        See `ForestRegressor`.
    max_features : int, float, "sqrt", "log2" or None, default="sqrt"
        Number or fraction of features tried at a split; None for all.
    max_depth, max_leaf_nodes, min_weight_fraction_leaf, honest, categorical_features
        See `ForestRegressor`.
    oob_score, variance
        See `ForestRegressor`.
    class_weight : dict, "balanced", "balanced_subsample" or None, default=None
        Weights of the classes by label, or equal total weights of all classes, in all
        rows or in the rows of each tree. Probabilities refer to a population in which
        classes have these weights, not to the population that was sampled.
    warm_start, random_state, n_jobs
        See `ForestRegressor`.

    Attributes
    ----------
    classes_ : ndarray of shape (K,)
        Class labels.
    estimators_, n_estimators_, design_, estimators_samples_, feature_importances_
        See `ForestRegressor`.
    results_ : EnsembleResults
        See `ForestRegressor`.
    oob_score_ : float
        Out-of-bag accuracy; only if `oob_score=True`. It is weighted by `sample_weight`
        but not by `class_weight`, so that forests with different class weights can be
        compared. Scores and averages of `results_` are weighted by both.
    oob_decision_function_ : ndarray of shape (n, K)
        Out-of-bag probabilities; only if `oob_score=True`.
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
        max_leaf_nodes: int | None = None,
        min_weight_fraction_leaf: float = 0.0,
        honest: bool = False,
        categorical_features: Any = None,
        oob_score: bool = False,
        variance: str = "auto",
        class_weight: Any = None,
        warm_start: bool = False,
        random_state: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        self._store_parameters(locals())

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit the forest to training data.

        Parameters
        ----------
        X : array-like of shape (n, p)
            Features.
        y : array-like of shape (n,)
            Classes.
        sample_weight : array-like of shape (n,), optional
            Sampling weights; see `ForestRegressor.fit`.

        Returns
        -------
        self
            The fitted forest.
        """
        X, y, weights = self._read(X, y, sample_weight, numeric=False)
        check_classification_targets(y)
        self.classes_, codes = np.unique(y, return_inverse=True)
        self._fit(
            X,
            codes.astype(np.float64),
            weights,
            max(2, len(self.classes_)),
            by_class=weights_of_classes(self.class_weight, self.classes_, codes),
            balanced=self.class_weight == "balanced_subsample",
        )
        if self.oob_score:
            share = self.oob_prediction_
            self.oob_decision_function_ = self._by_output(share, 1 - share)
            self.oob_score_ = self.oob_scores_.table["OOB accuracy"]
        return self

    def _by_output(self, values: Floats, first: Floats) -> Floats:
        """Add the column of the first of two classes; a single class has only that."""
        if len(self.classes_) > 2:
            return values
        return np.column_stack([first, values])[:, : len(self.classes_)]

    def predict_proba(
        self,
        X: Any,
        return_std: bool = False,
        return_interval: bool = False,
        alpha: float = 0.05,
    ) -> Floats | tuple[Floats, ...]:
        """Predict class probabilities.

        Parameters
        ----------
        X : array-like of shape (rows, p)
            New data.
        return_std : bool, default=False
            Whether to return standard errors.
        return_interval : bool, default=False
            Whether to return confidence intervals of the probabilities.
        alpha : float, default=0.05
            One minus the coverage of the intervals.

        Returns
        -------
        ndarray of shape (rows, K), or a tuple
            Probabilities; with `return_std` also their standard errors of shape
            (rows, K), with `return_interval` also intervals of shape (rows, K, 2).
        """
        return self._predict(X, return_std, return_interval, alpha)

    def predict_log_proba(self, X: Any) -> Floats:
        """Predict the logarithms of class probabilities."""
        with np.errstate(divide="ignore"):
            return np.log(self._mean(X))

    @with_advice
    def predict(self, X: Any) -> NDArray[Any]:
        """Predict the most probable class."""
        share = self._mean(X)
        return np.asarray(self.classes_[share.argmax(axis=1)])
