"""Predictions with their uncertainty."""

import warnings
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from vstatkit._typing import DataLike, Floats, Labels, Restrictions
from vstatkit.exceptions import FewUnitsWarning
from vstatkit.formula.input_checks import is_number_kind
from vstatkit.inference.estimates import Estimates, Estimation
from vstatkit.inference.intervals import prediction_support, prediction_tails
from vstatkit.inference.linear_tests import WaldTest
from vstatkit.pickling import pickled_plainly
from vstatkit.results.class_sets import ClassSets
from vstatkit.results.contrasts import contrasts, joint_test
from vstatkit.results.learners import predictor_of
from vstatkit.results.observations import (
    check_method,
    class_sets,
    observation_limits,
)
from vstatkit.results.short import shown_means
from vstatkit.results.tables import mean_frame
from vstatkit.variance.estimator import VarianceComponents

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from vstatkit.results.comparison import VarianceComparison
    from vstatkit.results.contrast_results import ContrastResults
    from vstatkit.results.ensemble_results import EnsembleResults
    from vstatkit.results.transforming import Function, Transformed


@pickled_plainly
@dataclass(frozen=True)
class PredictionResults:
    """Predictions with their uncertainty.

    Attributes
    ----------
    results : EnsembleResults
        The ensemble that predicts.
    X : ndarray of shape (q, p)
        Coded query points.
    labels : Index of length m
        Row, or row and class, of every prediction.
    estimates : Estimates
        Estimates as arrays, with stabilised variances.
    obs_method : str or None
        How new observations are bounded, unless `summary_frame` is told otherwise.
    """

    results: "EnsembleResults"
    X: Floats
    labels: Labels
    estimates: Estimates
    obs_method: str | None = None

    def __repr__(self) -> str:
        return f"<PredictionResults: {shown_means(self)}>"

    @property
    def predicted_mean(self) -> pd.Series:
        """Ensemble means."""
        return pd.Series(self.estimates.estimate, self.labels, name="mean")

    @property
    def se_mean(self) -> pd.Series:
        """Standard errors of the means."""
        return pd.Series(self.estimates.bse, self.labels, name="mean_se")

    @property
    def components(self) -> VarianceComponents:
        """Raw variance components, as arrays; negative estimates are kept."""
        return self.estimates.components

    def summary_frame(
        self, alpha: float = 0.05, obs_method: str | None = None
    ) -> pd.DataFrame:
        """Tabulate the predictions.

        Parameters
        ----------
        alpha : float
            One minus the coverage of the intervals.
        obs_method : {"local", "residuals", "jackknife+"}, optional
            How a new observation is bounded, by default as `get_prediction` was told.
            See there.

        Returns
        -------
        DataFrame
            `mean`, `mean_se`, `mean_ci_lower`, `mean_ci_upper`; for a numeric
            response `obs_ci_lower`, `obs_ci_upper`, the bounds of a new
            observation from out-of-bag residuals; and `se_mc_error`, the Monte Carlo
            error of `mean_se`, in its unit. `attrs["obs_method"]` names the method.
            With too few units for the level the bounds are not a number,
            `attrs["obs_note"]` says why, and a `FewUnitsWarning` does (an error, if a
            method was asked for). A fit with `oob=False` has no such columns.

        Examples
        --------
        >>> import vstatkit as vs
        >>> data = vs.datasets.mars(200, rng=1)
        >>> res = vs.fit("y ~ x1 + x4", data, B=200, rng=1)
        >>> frame = res.get_prediction(data.head(2)).summary_frame(alpha=0.1)
        >>> frame.attrs["obs_method"]
        'local'
        """
        frame = mean_frame(self.estimates, self.labels, alpha)
        method = self.obs_method if obs_method is None else obs_method
        found = observation_limits(self, alpha, method)
        if found.limits is not None:
            frame.insert(4, "obs_ci_lower", found.limits[0])
            frame.insert(5, "obs_ci_upper", found.limits[1])
        if found.method is not None:
            frame.attrs["obs_method"] = found.method
        if found.note is not None:
            frame.attrs["obs_note"] = found.note
        if found.note is not None and found.limits is not None:
            words = f"obs_ci_lower and obs_ci_upper are not a number: {found.note}"
            warnings.warn(words, FewUnitsWarning, stacklevel=2)
        return frame

    def class_sets(self, alpha: float = 0.05, *, by_class: bool = False) -> ClassSets:
        """Say which classes a new observation may have.

        Parameters
        ----------
        alpha : float
            One minus the coverage: a new observation's class is in its set with
            probability 1 - alpha, over points like those of the fit.
        by_class : bool
            Whether that must hold for the observations of every class, not only for
            all of them together.

        Returns
        -------
        ClassSets
            A data frame, with a row for each point and a column for each class:
            whether it is in the set; `plot()` draws it. A set may hold several
            classes, or none where no class is as probable as the observed ones were.
            `attrs["least_probability"]` has the probability from which a class is in
            a set.

        Notes
        -----
        A class is in the set where it is at least as probable as all but a share
        alpha of the observed classes were, out of bag. See "New observations".

        References
        ----------
        Sadinle, Lei and Wasserman (2019), Journal of the American Statistical
        Association 114, doi:10.1080/01621459.2017.1395341.

        Examples
        --------
        >>> import vstatkit as vs
        >>> data = vs.datasets.iris()
        >>> res = vs.fit("species ~ petal_length", data, B=200, rng=1)
        >>> sets = res.get_prediction({"petal_length": [1.4, 4.9]}).class_sets(0.05)
        >>> sets.sum(axis=1).to_list()
        [1, 2]
        """
        return class_sets(self, alpha, by_class=by_class)

    def conf_int(self, alpha: float = 0.05, simultaneous: bool = False) -> pd.DataFrame:
        """Confidence intervals of the means, one by one or all at once."""
        if simultaneous:
            return self._joint.conf_int(alpha, simultaneous=True)
        bounds = np.column_stack(self.estimates.interval(alpha))
        return pd.DataFrame(bounds, self.labels, ["lower", "upper"])

    def plot(self, ax: "Axes | None" = None, *, alpha: float = 0.05) -> "Axes":
        """Draw the predictions with their intervals; see `plots.plot_prediction`."""
        from vstatkit.results.prediction_pictures import (  # noqa: PLC0415 on demand
            plot_prediction,
        )

        return plot_prediction(self, alpha=alpha, ax=ax)

    def cov(self) -> pd.DataFrame:
        """Covariance matrix of the predictions, positive semi-definite."""
        return self._joint.cov_params()

    def compare_variance(self, alpha: float = 0.05) -> "VarianceComparison":
        """Estimate the variances by every estimator that applies to the design."""
        return self._joint.compare_variance(alpha)

    def t_test(self, R: Restrictions) -> "ContrastResults":
        """Test linear combinations of the predictions, one by one.

        Parameters
        ----------
        R : str, list of str or array-like of shape (r, m)
            A matrix with a column for each prediction, or restrictions in words, such
            as "a = b" with the labels of the rows. Rows whose labels are numbers are
            called `row0`, `row1`, ... in words; with more than two classes a
            prediction is called `row0 [class]`.

        Returns
        -------
        ContrastResults
            See `EnsembleResults.t_test`. Covariances of the predictions are included:
            standard errors come from the same learners.

        Examples
        --------
        >>> import vstatkit as vs
        >>> data = vs.datasets.mars(200, rng=1)
        >>> res = vs.fit("y ~ x1 + x4", data, B=500, rng=1)
        >>> new = {"x1": [0.5, 0.5], "x4": [0.1, 0.9]}
        >>> bool(res.get_prediction(new).t_test("row0 = row1").pvalue < 0.05)
        True
        """
        return contrasts(self._named, R)

    def wald_test(self, R: Restrictions) -> WaldTest:
        """Test linear restrictions on the predictions jointly; see `t_test`."""
        return joint_test(self._named, R)

    def influence(self) -> pd.DataFrame:
        """Influence of every observation on every prediction, shape (n, m)."""
        return self._joint.influence()

    def transform(self, f: "Function") -> "Transformed":
        """Estimate a function of the predictions; see `EnsembleResults.transform`."""
        return self._joint.transform(f)

    @cached_property
    def _joint(self) -> "EnsembleResults":
        values, info = predictor_of(self.results).values(self.X), self.results.info
        aim = None if info.aim is None else info.aim.without_bias
        return replace(
            self.results,
            values=values,
            labels=self.labels,
            info=replace(info, aim=aim),
            effect_values=None,
            recipe=None,
            support=self.estimates.support,
            tails=self.estimates.tails,
        )

    @property
    def _named(self) -> "EnsembleResults":
        """Give rows that are labelled by numbers names that restrictions can use."""
        labels = self.labels
        classes = isinstance(labels, pd.MultiIndex) and labels.names[-1] == "class"
        rows = labels.get_level_values(0) if classes else labels
        several = isinstance(labels, pd.MultiIndex) and labels.nlevels > 1 + classes
        if several or not is_number_kind(rows.dtype):
            return self._joint
        named = pd.Index([f"row{label}" for label in rows])
        if classes:
            kinds = labels.get_level_values("class")
            named = pd.MultiIndex.from_arrays([named, kinds], names=[None, "class"])
        return replace(self._joint, labels=named)


def predicted_means(
    results: "EnsembleResults", data: DataLike
) -> pd.Series | pd.DataFrame:
    """Predict new data; see `EnsembleResults.predict`."""
    predictor = predictor_of(results)
    X, index = predictor.rows(data)
    mean = predictor.averages(X, results.design)
    if predictor.classes is not None and len(predictor.classes) > 2:
        table = mean.reshape(-1, len(predictor.classes))
        return pd.DataFrame(table, index, list(predictor.classes))
    return pd.Series(mean, index, name=results.info.response)


def predicted(
    results: "EnsembleResults", data: DataLike, obs_method: str | None = None
) -> PredictionResults:
    """Predict new data with standard errors, chunk after chunk."""
    check_method(obs_method)
    predictor = predictor_of(results)
    X, index = predictor.rows(data)
    labels = predictor.labels(index)
    limit = None if results.limit is None else float(np.max(results.limit))
    found = predictor.estimates(
        X, Estimation(results.design, results.variance, limit, results.orders)
    )
    support = prediction_support(predictor.kernel, results.design.n)
    known = results.support is not None and not results.info.coefficients
    found = replace(
        found,
        support=results.support if known else support,
        tails=prediction_tails(predictor.kernel)
        if results.tails is None
        else results.tails,
    )
    return PredictionResults(results, X, labels, found, obs_method)
