"""`ForestRegressor`, the forest for a numeric response."""

from typing import Any, Self

import numpy as np
from sklearn.base import RegressorMixin

from vstatkit._typing import Floats
from vstatkit.forest.base import Forest, check_one_response
from vstatkit.kernels.tree import row_weights


class ForestRegressor(RegressorMixin, Forest):  # type: ignore[misc]
    """A random forest for regression, with standard errors.

    Parameters
    ----------
    n_estimators : int or "auto"
        Number of trees. "auto" grows 500, and then as many as standard errors need:
        until a typical one, over up to 50 reference rows made from data and seed, has a
        Monte Carlo error below 10 %, or below 0.2 % of the scale of the response (half
        its range, or three robust standard deviations). It stops at 5,000 trees, or at
        16 million nodes (256 MB). A number is taken as it is. Where the typical
        standard error of a prediction is known to no better than 25 %, a
        `MonteCarloWarning`, once per fit, says how many trees are enough.
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
    max_leaf_nodes : int or None
        Most leaves of a tree; the splits that gain most are made first.
    min_weight_fraction_leaf : float
        Least share of the weight of a tree's rows that a leaf must hold.
    honest : bool
        Split with one half of the subsample and estimate with the other.
    trend, boost : "linear" or None, 1 or 0
        Stages that reduce the bias of a tree; see `fit`.
    categorical_features : array-like, "from_dtype" or None
        Columns that are unordered factors of up to 64 levels: a mask, places or names,
        or all that have pandas' categorical dtype. Other columns must hold codes from
        0 to 63. Levels that no training row has give an `UnobservedLevelWarning` in
        prediction; those that are not among the categories are missing values.
    oob_score : bool
        Whether to score out-of-bag predictions.
    variance : str
        Variance estimator, as in `fit`.
    warm_start : bool
        Whether `fit`, called again with the same data and a larger `n_estimators`,
        keeps the trees that there are and adds those that are missing. The forest is
        the one that a single fit with all trees gives.
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
        How the rows of each tree were drawn.
    estimators_samples_ : list of ndarray
        Rows that each tree saw.
    results_ : EnsembleResults
        What `fit` gives: effects, tests, pictures, averages. `summary()` prints it.
    oob_score_ : float
        Out-of-bag R-squared, if asked for; weighted by `sample_weight`.
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
        """Grow the forest.

        Parameters
        ----------
        X : array-like of shape (n, p)
            Features.
        y : array-like of shape (n,)
            Response.
        sample_weight : array-like of shape (n,), optional
            Sampling weights: how many members of the population a row stands for, up
            to a factor. They multiply the loss of their row in every tree; out-of-bag
            scores and averages over rows are weighted. Standard errors count rows,
            whatever their weights: these are not frequencies. Precision weights give
            valid fits too, but scores and averages are then weighted by precision.
        """
        check_one_response(y, "MultiOutputRegressor")
        X, y = self._read(X, y, numeric=True)
        weights = row_weights(sample_weight, len(X))
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
        """Predict means, on request with standard errors and intervals.

        The keywords pass through a `Pipeline`: `pipe.predict(X, return_interval=True)`.

        Parameters
        ----------
        X : array-like of shape (rows, p)
            New data.
        return_std : bool
            Whether to return standard errors, too.
        return_interval : bool
            Whether to return confidence intervals of the means, too.
        alpha : float
            One minus their coverage.

        Returns
        -------
        ndarray of shape (rows,), or a tuple
            Means; then, as asked for, their standard errors of shape (rows,) and
            intervals of shape (rows, 2).
        """
        rows = self._rows(X)
        if not (return_std or return_interval):
            return self._mean(rows)[:, 0]
        estimates = self._estimate(rows)
        answer = [estimates.estimate]
        if return_std:
            answer.append(estimates.bse)
        if return_interval:
            answer.append(np.column_stack(self._with_tails(estimates).interval(alpha)))
        return tuple(answer)

    def predict_interval(self, X: Any, alpha: float = 0.05) -> Floats:
        """Confidence intervals of the means, shape (rows, 2)."""
        estimates = self._with_tails(self._estimate(self._rows(X)))
        return np.column_stack(estimates.interval(alpha))
