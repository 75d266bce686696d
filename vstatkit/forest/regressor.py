"""`ForestRegressor`, a random forest for a numeric response."""

from typing import Any, Self

import numpy as np
from sklearn.base import RegressorMixin

from vstatkit._typing import Floats
from vstatkit.forest.base import Forest


class ForestRegressor(RegressorMixin, Forest):  # type: ignore[misc]
    """A random forest regressor with standard errors.

    Parameters
    ----------
    n_estimators : int or "auto", default="auto"
        Number of trees. "auto" grows 500 trees, which are enough for standard errors
        because these are pooled; see "Few trees" in the theory. Where variances cannot
        be pooled (`boost`, `trend`, fewer than 100 rows, another `variance`), it grows
        more until the Monte Carlo error of a typical standard error, over up to 50
        reference rows, is below 10 % of it, or below 0.2 % of the scale of the response
        (half its range, or three robust standard deviations). It stops at 5,000 trees,
        or at 16 million nodes (256 MB). If that error is above 25 %, one
        `MonteCarloWarning` per fit recommends a number of trees.
    criterion : {"squared_error", "poisson", "absolute_error"}, default="squared_error"
        Criterion of the splits. Leaves predict the mean, or the median for
        "absolute_error". "poisson" requires a nonnegative response.
    splitter : {"best", "random"}, default="best"
        Whether splits try all thresholds of a feature, or one at random, as in
        extremely randomised trees.
    bootstrap : bool, default=True
        Whether subsamples are drawn with replacement.
    max_samples : int, float or None, default=None
        Size of the subsamples: a number of rows, or a fraction of the rows; None for as
        many as there are rows. Without replacement, None gives every tree all rows, and
        there are no standard errors.
    max_features : int, float, "sqrt", "log2" or None, default=1/3
        Number or fraction of features tried at a split; None for all.
    min_samples_split : int, default=2
        Minimum number of rows of a node that is split.
    min_samples_leaf : int, default=1
        Minimum number of rows of a leaf.
    max_depth : int or None, default=None
        Maximum depth of a tree.
    max_leaf_nodes : int or None, default=None
        Maximum number of leaves of a tree. Splits are made in the order of their gain.
    min_weight_fraction_leaf : float, default=0.0
        Minimum share of the total weight of a tree's rows in a leaf.
    honest : bool, default=False
        Whether one half of the subsample is used for splits and the other half for the
        values of the leaves.
    trend : "linear" or None, default=None
        "linear" fits a ridge regression first and the tree to its residuals; this
        reduces the bias.
    boost : {0, 1}, default=0
        1 adds a second tree, on residuals of rows that the first did not see; this
        reduces the bias.
    categorical_features : array-like, "from_dtype" or None, default=None
        Columns that are unordered factors of up to 64 levels: a mask, positions or
        names, or "from_dtype" for all columns of pandas' categorical dtype. Columns of
        another dtype must have codes from 0 to 63. In prediction, levels without a
        training row give an `UnobservedLevelWarning`, and values outside the
        categories are missing values.
    oob_score : bool, default=False
        Whether to compute out-of-bag scores.
    variance : str, default="auto"
        Variance estimator, as in `fit`.
    warm_start : bool, default=False
        Whether `fit`, called again with the same data and a larger `n_estimators`,
        keeps the existing trees and adds the missing ones. The forest is the same as
        from a single fit of all trees.
    random_state : int, RandomState or None, default=None
        Seed. The same seed gives the same forest for any `n_jobs`.
    n_jobs : int or None, default=None
        Number of threads.

    Attributes
    ----------
    estimators_ : list of Tree or StagedTree
        Fitted trees.
    n_estimators_ : int
        Number of fitted trees.
    design_ : IidDesign
        Design of the subsamples.
    estimators_samples_ : list of ndarray
        Rows in the subsample of each tree.
    results_ : EnsembleResults
        Results as of `fit`: effects, tests, plots, averages; see also `summary`.
    oob_score_ : float
        Out-of-bag R-squared, weighted by `sample_weight`; only if `oob_score=True`.
    oob_prediction_ : ndarray of shape (n,)
        Out-of-bag predictions; only if `oob_score=True`.
    feature_importances_ : ndarray of shape (p,)
        Impurity-based importances. A linear trend is not included.

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
        """Fit the forest to training data.

        Parameters
        ----------
        X : array-like of shape (n, p)
            Features.
        y : array-like of shape (n,)
            Response.
        sample_weight : array-like of shape (n,), optional
            Sampling weights: the number of members of the population that a row
            represents, up to a factor. They multiply the loss of the row in every tree,
            and weight out-of-bag scores and averages over rows. They are not frequency
            weights: standard errors count rows. Precision weights give valid fits too,
            but scores and averages are then weighted by precision.

        Returns
        -------
        self
            The fitted forest.
        """
        X, y, weights = self._read(X, y, sample_weight, numeric=True)
        self._fit(X, np.asarray(y, dtype=np.float64), weights, None)
        if self.oob_score:
            self.oob_prediction_ = self.oob_prediction_[:, 0]
            self.oob_score_ = self.oob_scores_.table.get("OOB R-squared", np.nan)
        return self

    def predict(
        self,
        X: Any,
        return_std: bool = False,
        return_interval: bool = False,
        alpha: float = 0.05,
    ) -> Floats | tuple[Floats, ...]:
        """Predict the mean response.

        A `Pipeline` passes the keywords on: `pipe.predict(X, return_interval=True)`.

        Parameters
        ----------
        X : array-like of shape (rows, p)
            New data.
        return_std : bool, default=False
            Whether to return standard errors.
        return_interval : bool, default=False
            Whether to return confidence intervals of the means.
        alpha : float, default=0.05
            One minus the coverage of the intervals.

        Returns
        -------
        ndarray of shape (rows,), or a tuple
            Means; with `return_std` also their standard errors of shape (rows,), with
            `return_interval` also intervals of shape (rows, 2).
        """
        return self._predict(X, return_std, return_interval, alpha)

    def _by_output(self, values: Floats, first: Floats) -> Floats:
        """Return the only output."""
        return values[:, 0]
