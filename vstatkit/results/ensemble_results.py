"""Results objects: labelled views of an ensemble's estimates."""

import copy
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from vstatkit._typing import Floats, Labels
from vstatkit.ensemble.growth import MAX_B
from vstatkit.ensemble.memory import (
    COVARIANCES,
    FLOAT,
    check_memory,
    covariance_bytes,
)
from vstatkit.ensemble.oob_scores import Scores
from vstatkit.ensemble.prediction import Predictor
from vstatkit.ensemble.prediction_intervals import Errors
from vstatkit.ensemble.query import EffectValues
from vstatkit.inference.estimates import Estimates, estimate
from vstatkit.inference.intervals import Support, Tails, band_critical_values
from vstatkit.inference.linear_tests import Covariance, covariance
from vstatkit.inference.normality import (
    influence_blocks,
    influence_normality,
    influential,
    most_influential,
)
from vstatkit.inference.population import RowInfluence, population_estimates
from vstatkit.inference.stopping import Tolerance, tolerance_of
from vstatkit.kernels.base import KernelKind
from vstatkit.pickling import plain_state, take_state
from vstatkit.results.aiming import Aiming
from vstatkit.results.asking import Asking
from vstatkit.results.averaging import Averaging
from vstatkit.results.beyond import measured_orders, with_typical
from vstatkit.results.checking import Checking
from vstatkit.results.continuation import Continuation, continued
from vstatkit.results.effects import effect_estimates, effects_table
from vstatkit.results.estimated import Estimated
from vstatkit.results.fitted import Fitted
from vstatkit.results.model_info import Growth, ModelInfo
from vstatkit.results.observations import collected_errors, with_errors
from vstatkit.results.predicting import Predicting
from vstatkit.results.short import shown
from vstatkit.results.tables import (
    diagnostics_frame,
    glance_frame,
    mean_frame,
    tidy_frame,
)
from vstatkit.results.tabular import Tabular
from vstatkit.results.testing import Testing
from vstatkit.results.views import Views
from vstatkit.sampling.design import SubsampleDesign
from vstatkit.sampling.shards import ShardsDesign
from vstatkit.validation import with_advice
from vstatkit.variance.estimator import VarianceComponents
from vstatkit.variance.hoeffding import HigherOrders
from vstatkit.variance.registry import ESTIMATORS, resolved


@dataclass(frozen=True)
class EnsembleResults(
    Estimated,
    Views,
    Predicting,
    Fitted,
    Testing,
    Tabular,
    Averaging,
    Asking,
    Aiming,
    Checking,
):
    """An ensemble's estimates with their uncertainty.

    Attributes
    ----------
    design : SubsampleDesign
        Which units each learner saw.
    values : ndarray of shape (B, m)
        Kernel values, learners first.
    labels : Index of length m
        Names of the estimates.
    variance : str
        Name of the variance estimator in use.
    info : ModelInfo
        What the summary's header says.
    units : Index of length n
        Labels of the observations (or clusters) that were resampled.
    effect_values : EffectValues or None
        Kernel differences behind the effects table.
    predictor : Predictor or None
        Predicts new data, where the kernel can.
    scores : Scores or None
        Out-of-bag scores.
    null : ndarray of shape (m,) or None
        Values that the tests compare the estimates with; None for zero.
    limit : float, ndarray of shape (m,) or None
        Largest standard deviation that an estimate can have; None where unknown.
    support : Support or None
        Range of estimates that are probabilities, or made of them; their intervals
        do not leave it.
    tails : Tails or None
        What is known of the tails of other predictions, for intervals that allow for
        skewness.
    kind : KernelKind
        How the kernel depends on its observations.
    reference : ndarray of shape (r, p), DataFrame or None
        Rows, as the predictor takes them, on which learners are compared beyond
        the first order; None to compare the values themselves.
    orders : HigherOrders or None
        What was found there; None if the variance estimator does not use it.
    errors : Errors or None
        Out-of-bag errors of single observations, and how large they are where.
    recipe : Continuation or None
        How to grow more learners; None where the training data are not available.
    points : RowInfluence or None
        Influence of the rows that were averaged over, for standard errors of averages
        that are about the population of these rows.
    """

    design: SubsampleDesign
    values: Floats
    labels: Labels
    variance: str
    info: ModelInfo
    units: Labels
    effect_values: EffectValues | None = None
    predictor: Predictor | None = None
    scores: Scores | None = None
    null: Floats | None = None
    limit: Floats | float | None = None
    support: Support | None = None
    tails: Tails | None = None
    kind: KernelKind = KernelKind.UNKNOWN
    reference: Any = None
    orders: HigherOrders | None = None
    errors: Errors | None = field(default=None, repr=False, compare=False)
    recipe: Continuation | None = field(default=None, repr=False, compare=False)
    points: RowInfluence | None = field(default=None, repr=False)

    def __getstate__(self) -> dict[str, Any]:
        """Leave the recipe out of pickles: it holds the data, and any function."""
        kept = {**self.__dict__, "errors": self.out_of_bag_errors, "recipe": None}
        return plain_state(kept)

    def __setstate__(self, state: dict[str, Any]) -> None:
        take_state(self, state)

    def __deepcopy__(self, memo: dict[int, Any]) -> "EnsembleResults":
        """Copy the recipe too: in this process the data are at hand."""
        made = object.__new__(type(self))
        memo[id(self)] = made
        made.__dict__.update(copy.deepcopy(self.__dict__, memo))
        return made

    @cached_property
    def estimates(self) -> Estimates:
        """Estimates as arrays, with stabilised variances."""
        found = estimate(
            self.design, self.values, self.variance, self.limit, self.orders
        )
        null = 0.0 if self.null is None else self.null
        found = replace(found, null=null, support=self.support, tails=self.tails)
        if self.points is None:
            return found
        return population_estimates(
            found, self.design, self.values, self.points, self.limit
        )

    @cached_property
    def out_of_bag_errors(self) -> Errors | None:
        """Out-of-bag errors of single observations, and how large they are where."""
        return collected_errors(self)

    @property
    def nobs(self) -> int:
        """Observations used."""
        return self.info.nobs

    @property
    def k(self) -> int:
        """Subsample size."""
        return self.design.k

    @property
    def B(self) -> int:  # noqa: N802
        """Number of base learners."""
        return len(self.values)

    @property
    def replace(self) -> bool:
        """Whether subsamples were drawn with replacement."""
        return self.design.replace

    @property
    def seed(self) -> int:
        """Seed that repeats the ensemble, given as `rng`."""
        return self.design.seed

    @property
    def typical(self) -> pd.DataFrame | None:
        """The typical row: medians, and the most frequent levels."""
        return self.info.typical

    def _series(self, values: Floats, name: str) -> pd.Series:
        return pd.Series(values, self.labels, name=name)

    @property
    def components(self) -> VarianceComponents:
        """Raw variance components, as arrays; negative estimates are kept."""
        return self.estimates.components

    @with_advice
    def conf_int(self, alpha: float = 0.05, simultaneous: bool = False) -> pd.DataFrame:
        """Confidence intervals for the expectation of this ensemble.

        They cover its expectation over data sets of this size, not E[y|x].

        Parameters
        ----------
        alpha : float
            One minus the coverage.
        simultaneous : bool
            Whether all intervals must hold at once.

        Returns
        -------
        DataFrame
            Columns `lower` and `upper`. Intervals of probabilities lie inside [0, 1],
            and so do those of trees if all responses are 0 or 1. Intervals of trees are
            not below zero if no response is negative. Intervals of skewed estimates are
            longer on one side; see "Skewed estimates" in the theory.
        """
        critical = self.band_values(alpha) if simultaneous else None
        bounds = np.column_stack(self.estimates.interval(alpha, critical))
        return pd.DataFrame(bounds, self.labels, ["lower", "upper"])

    def band_values(self, alpha: float = 0.05) -> Floats:
        """Multiples of the standard errors that make all intervals hold at once."""
        correlation, df = self.covariances.correlation, self.estimates.df
        return band_critical_values(correlation, alpha, df, self.seed)

    @cached_property
    def covariances(self) -> Covariance:
        """Covariances of the estimates, as arrays."""
        check_memory({COVARIANCES: covariance_bytes(len(self.labels))})
        return covariance(self.design, self.values, self.estimates, self.points)

    def cov_params(self) -> pd.DataFrame:
        """Covariance matrix of the estimates, positive semi-definite.

        Its `attrs["repaired"]` says how much had to be changed for that: the share
        of the correlation matrix's eigenvalues that was negative.
        """
        frame = pd.DataFrame(self.covariances.matrix, self.labels, self.labels)
        frame.attrs["repaired"] = self.covariances.repaired
        return frame

    def influence(self) -> pd.DataFrame:
        """Influence of every observation (or cluster) on every estimate.

        Returns
        -------
        DataFrame of shape (n, m)
            `cov_b(N[b, i], h_b)`; the sum of squares of a column is the
            infinitesimal jackknife variance. With shards there is a row for each of
            them, and the sum of squares is the variance that is reported.
        """
        entries = self.design.n * len(self.labels)
        check_memory({"the influences": 2 * FLOAT * entries})
        blocks = list(influence_blocks(self.design, self.values))
        index = influential(self.design, self.units)
        return pd.DataFrame(np.concatenate(blocks, axis=1), index, self.labels)

    @cached_property
    def most_influential(self) -> pd.DataFrame | None:
        """The observation (or cluster) with the largest influence on each estimate.

        Returns
        -------
        DataFrame or None
            One row per estimate: `unit`, the label of the observation, and `share`,
            the share of the sampling variance that is due to it, corrected for the
            Monte Carlo error of the influences. None for designs whose learners come
            in dependent groups.
        """
        frame = most_influential(self.design, self.values, self.units)
        return None if frame is None else frame.set_axis(self.labels)

    @cached_property
    def normality(self) -> pd.DataFrame:
        """Normality tests of the influence values, one row per estimate."""
        return influence_normality(self.design, self.values).set_axis(self.labels)

    @property
    def effects(self) -> pd.DataFrame | None:
        """Change of the estimate when one predictor moves and the others stay typical.

        Numeric predictors move from their 10 % to their 90 % quantile,
        categories from the reference level to each other one. None for kernels that
        do not predict.
        """
        return self.effects_frame()

    def effects_frame(self, alpha: float = 0.05) -> pd.DataFrame | None:
        """Tabulate the `effects` with intervals of coverage 1 - alpha."""
        return effects_table(self.effect_values, self.effect_estimates, alpha)

    @cached_property
    def effect_estimates(self) -> Estimates | None:
        """Estimates behind the effects."""
        return effect_estimates(self)

    @property
    def tolerance(self) -> Tolerance:
        """When the standard errors are known well enough; see `fit`."""
        growth = self.info.growth
        shards = isinstance(self.design, ShardsDesign)
        return tolerance_of(
            growth.tol,
            growth.atol,
            self.limit,
            share=self.info.scale_share,
            replicates=shards,
        )

    @property
    def diagnostics(self) -> pd.DataFrame:
        """Whether the numbers can be relied on, one row per estimate.

        Returns
        -------
        DataFrame
            `df`; `monte_carlo_share` of the variance; `relative_mc_error` of the
            standard error, and the `learners_needed` to bring it to 0.1 (or to the
            `tol` of the fit), or below what never matters (its `atol`);
            `linear_share`, `k zeta_1 / zeta_k`, the share of a learner's variance
            that single observations explain; `negative`, whether the raw
            sampling variance is below zero; `bounded`, whether the standard
            error is the largest that single learners allow, since the ensemble
            is too small to tell more.
        """
        return diagnostics_frame(self.estimates, self.labels, self.tolerance, self.k)

    def summary_frame(self, alpha: float = 0.05) -> pd.DataFrame:
        """Tabulate the estimates: `mean mean_se mean_ci_lower mean_ci_upper`.

        The last column, `se_mc_error`, is the Monte Carlo error of `mean_se`, in its
        unit: how much another seed would change the standard error. `components.mc_se`
        is that of the variance.
        """
        return mean_frame(self.estimates, self.labels, alpha)

    def tidy(self, alpha: float = 0.05) -> pd.DataFrame:
        """One flat row per estimate, with the columns of R's broom."""
        return tidy_frame(self.estimates, self.labels, alpha)

    def glance(self) -> pd.DataFrame:
        """One flat row for the whole ensemble."""
        return glance_frame(self)

    def with_variance(self, name: str) -> "EnsembleResults":
        """Switch the variance estimator; nothing is fitted again."""
        method = resolved(name, self.design, self.kind)
        orders = self.orders
        if ESTIMATORS[method].beyond and orders is None:
            orders = measured_orders(self)
        return with_typical(replace(self, variance=method, orders=orders))

    def more(
        self,
        B: int | str,
        *,
        tol: float | None = None,
        atol: float | None = None,
        max_B: int = MAX_B,
        n_jobs: int | None = None,
        progress: bool | None = None,
    ) -> "EnsembleResults":
        """Continue the fit to `B` learners in total; none is grown twice.

        Parameters
        ----------
        B : int or "auto"
            Learners in total, more than there are; "auto" grows until the
            standard errors are known well enough, as in `fit`.
        tol, atol, max_B
            See `fit`; `tol` and `atol` are those of the fit by default.
        n_jobs, progress
            See `fit`; those of the fit by default.

        Returns
        -------
        EnsembleResults
            The learners are those that `fit` with this `B` and the same seed
            would grow (sums of out-of-bag predictions may differ in their last
            digits). A balanced ensemble continues after whole blocks; a complete
            one cannot, nor results that were loaded, or made of learners fitted
            elsewhere: there are no training data to grow from. A statistic is
            evaluated on the data that were given, as they are now.

        Examples
        --------
        >>> import vstatkit as vs
        >>> data = vs.datasets.mars(100, rng=1)
        >>> few = vs.fit("y ~ x1 + x4", data, B=200, rng=1)
        >>> few.more(300).B
        300
        """
        tol = self.tolerance.tol if tol is None else tol
        atol = self.info.growth.atol if atol is None else atol
        growth = Growth(tol, max_B, atol)
        return with_errors(continued(self, B, growth, n_jobs=n_jobs, progress=progress))

    def __repr__(self) -> str:
        drawn = f"{self.info.kernel}, n={self.design.n}, k={self.k}, B={self.B}"
        return f"<{type(self).__name__}: {drawn}; {shown(self)}>"
